//! The INNODB_ tables and mysql's statistics of InnoDB, with this engine's numbers: a table's space is its number (all are in one file), it has no
//! hidden columns but a row id where no key is, and what InnoDB counts and this engine does not is left out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use highkey_table::{ColumnDef, ForeignKeyDef, IndexDef, IndexKind, PAGE_BYTES, ReferenceAction, Table, TableDef};
use highkey_types::{Charset, Collation, TypeKind, Value, Warning};

use super::indexes::{Rows, each_open};
use super::rows::{all_wanted_tables, row_format, t, u, wall_clock};
use crate::plan::Wanted;
use crate::session::SessionState;
use crate::show;

/// A page is merged with a neighbour when it holds less than an eighth.
const MERGE_THRESHOLD: i64 = 12;

fn int(n: impl TryInto<i64>) -> Value {
    Value::Int(n.try_into().unwrap_or(i64::MAX))
}

fn full_name(schema: &str, name: &str) -> Value {
    t(format!("{schema}/{name}"))
}

/// INNODB_TABLES.
pub(super) fn tables(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let row = |table: Arc<Table>| {
        let def = table.def();
        let format = row_format(def);
        // Whether it is not Redundant, and whether long values leave the row as a whole.
        let flag = match format.as_str() {
            "Redundant" => 0,
            "Compact" => 1,
            _ => 33,
        };
        vec![
            u(def.id.0),
            full_name(&def.schema, &def.name),
            Value::Int(flag),
            int(def.columns.len()),
            int(def.id.0),
            t(format),
            u(0u64),
            t("System"),
            Value::Int(0),
        ]
    };
    all_wanted_tables(state, wanted).into_iter().map(row).collect()
}

/// INNODB_TABLESPACES: of each table's space its pages, in bytes. Reads a few pages of each index.
pub(super) fn tablespaces(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let row = |table: Arc<Table>| {
        let def = table.def();
        let size = show::table_size(state, &table);
        let bytes = size.data_bytes + size.index_bytes;
        vec![
            u(def.id.0),
            full_name(&def.schema, &def.name),
            u(0u64),
            t(row_format(def)),
            u(PAGE_BYTES),
            u(0u64),
            t("System"),
            u(4096u64),
            u(bytes),
            u(bytes),
            t("8.0.12"),
            u(1u64),
        ]
    };
    all_wanted_tables(state, wanted).into_iter().map(row).collect()
}

/// INNODB_TABLESTATS. Changes since the statistics were made are not counted, nor who has a table open.
pub(super) fn table_stats(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let row = |table: Arc<Table>| {
        let def = table.def();
        let size = show::table_size(state, &table);
        let pages = |bytes: u64| u(bytes.div_ceil(PAGE_BYTES));
        let next = table.next_auto_increment().unwrap_or(0);
        vec![
            u(def.id.0),
            full_name(&def.schema, &def.name),
            t("Initialized"),
            u(size.rows),
            pages(size.data_bytes),
            pages(size.index_bytes),
            u(0u64),
            u(next),
            Value::Int(0),
        ]
    };
    all_wanted_tables(state, wanted).into_iter().map(row).collect()
}

/// INNODB_BUFFER_POOL_STATS: one pool, without young and old pages. Rates are per second since the start.
pub(super) fn buffer_pool(state: &SessionState) -> Vec<Vec<Value>> {
    let stats = state.instance.database().engine().stats();
    let counter = |name: &str| stats.counter(name);
    let seconds = state.instance.uptime_seconds().max(1) as f64;
    let rate = |n: u64| Value::Double(n as f64 / seconds);
    let (read, new, written, gets) = (counter("pages_read"), counter("pages_new"), counter("pages_written"), counter("page_requests"));
    let none = |n: usize| (0..n).map(|_| u(0u64));
    let mut row = vec![u(0u64), u(stats.frames), u(stats.frames_free), u(stats.frames - stats.frames_free), u(0u64), u(stats.frames_dirty), u(0u64)];
    row.extend([u(counter("page_reads_pending")), u(0u64), u(counter("page_writes_pending")), u(0u64), u(0u64), Value::Double(0.0), Value::Double(0.0)]);
    row.extend([u(read), u(new), u(written), rate(read), rate(new), rate(written), u(gets)]);
    row.push(u(1000 - (read.min(gets) * 1000).checked_div(gets).unwrap_or(1000)));
    row.extend(none(4));
    row.extend([Value::Double(0.0), Value::Double(0.0)]);
    row.extend(none(4));
    vec![row]
}

/// INNODB_COLUMNS.
pub(super) fn columns(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in all_wanted_tables(state, wanted) {
        let def = table.def();
        let mut virtuals = 0;
        for (i, column) in def.columns.iter().enumerate() {
            let mut position = i as u64;
            let is_virtual = column.generated.as_ref().is_some_and(|g| !g.stored);
            if is_virtual {
                virtuals += 1;
                position += virtuals << 16;
            }
            let (main, precise) = type_numbers(column, is_virtual);
            rows.push(vec![u(def.id.0), t(&column.name), u(position), Value::Int(main), Value::Int(precise), int(length(column)), Value::Int(0), Value::Null]);
        }
    }
    rows
}

/// InnoDB's main type, and its precise type: MySQL's type, flags, and the number of the collation.
fn type_numbers(column: &ColumnDef, is_virtual: bool) -> (i64, i64) {
    const NOT_NULL: i64 = 0x100;
    const UNSIGNED: i64 = 0x200;
    const BINARY: i64 = 0x400;
    const VIRTUAL: i64 = 0x2000;
    let ty = &column.ty;
    let binary = i64::from(Collation::binary().id);
    // That of the digits of numbers and moments.
    let digits = i64::from(Collation::default_of(Charset::Latin1).id);
    let own = i64::from(ty.collation.id);
    let latin1 = own == digits;
    let (main, collation, flags) = match ty.kind {
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int | TypeKind::BigInt | TypeKind::Date => (6, 0, BINARY),
        TypeKind::Year => (6, 0, BINARY | UNSIGNED),
        TypeKind::Enum(_) | TypeKind::Set(_) => (6, 0, UNSIGNED),
        TypeKind::Float => (9, 0, BINARY),
        TypeKind::Double => (10, 0, BINARY),
        TypeKind::Decimal { .. } | TypeKind::DateTime(_) | TypeKind::Timestamp(_) | TypeKind::Time(_) => (3, digits, BINARY),
        TypeKind::Bit(_) => (3, binary, BINARY | UNSIGNED),
        TypeKind::VarChar(_) => (if latin1 { 1 } else { 12 }, own, 0),
        TypeKind::Char(_) => (if latin1 { 2 } else { 13 }, own, 0),
        TypeKind::VarBinary(_) => (4, binary, BINARY),
        TypeKind::Binary(_) => (3, binary, BINARY),
        TypeKind::Json => (5, i64::from(Collation::binary_of(Charset::Utf8mb4).id), BINARY),
        TypeKind::TinyBlob | TypeKind::Blob | TypeKind::MediumBlob | TypeKind::LongBlob => (5, binary, BINARY),
        TypeKind::Geometry(_) => (14, binary, BINARY),
        TypeKind::TinyText | TypeKind::Text | TypeKind::MediumText | TypeKind::LongText => (5, own, 0),
        TypeKind::Null => (6, 0, 0),
    };
    let number = match ty.kind {
        // Of a column, not of a result.
        TypeKind::VarChar(_) | TypeKind::VarBinary(_) => 15,
        _ => i64::from(ty.wire_type()),
    };
    let mut precise = collation << 16 | flags | number;
    if !column.nullable {
        precise |= NOT_NULL;
    }
    if ty.unsigned {
        precise |= UNSIGNED;
    }
    if is_virtual {
        precise |= VIRTUAL;
    }
    (main, precise)
}

/// The most bytes in a row; of a long value those of its length and its address.
fn length(column: &ColumnDef) -> u64 {
    match column.ty.kind {
        TypeKind::TinyBlob | TypeKind::TinyText => 9,
        TypeKind::Blob | TypeKind::Text => 10,
        TypeKind::MediumBlob | TypeKind::MediumText => 11,
        TypeKind::LongBlob | TypeKind::LongText | TypeKind::Json | TypeKind::Geometry(_) => 12,
        _ => column.ty.max_bytes(),
    }
}

fn index_name(index: &IndexDef) -> &str {
    if index.kind == IndexKind::RowId { "GEN_CLUST_INDEX" } else { &index.name }
}

/// Columns of an entry: of a clustered index the row, of another its own and those of the clustered key that it lacks.
fn entry_columns(def: &TableDef, index: &IndexDef) -> usize {
    let clustered = |kind| matches!(kind, IndexKind::RowId | IndexKind::Primary);
    let row_id = def.indexes.iter().any(|i| i.kind == IndexKind::RowId);
    if clustered(index.kind) {
        return def.columns.len() + usize::from(row_id);
    }
    let has = |column: usize| index.parts.iter().any(|part| part.column == column && part.prefix.is_none());
    let added = def.primary_key().map_or(usize::from(row_id), |key| key.parts.iter().filter(|part| !has(part.column)).count());
    index.parts.len() + added
}

/// INNODB_INDEXES. Reads a few pages of each index.
pub(super) fn indexes(state: &SessionState, wanted: &Wanted, warnings: &mut Vec<Warning>) -> Rows {
    each_open(state, all_wanted_tables(state, wanted), warnings, |table, txn, rows| {
        state.process.check()?;
        let statistics = table.statistics(txn)?;
        for (_, table) in table.stored_tables() {
            let def = table.def();
            for (i, index) in def.indexes.iter().enumerate() {
                let kind = match index.kind {
                    IndexKind::RowId => 1,
                    IndexKind::Primary => 3,
                    IndexKind::Unique => 2,
                    IndexKind::Ordinary => 0,
                    IndexKind::FullText => 32,
                };
                let root = table.index_summary(&statistics, i)?.root_page;
                rows.push(vec![
                    u(index.id.0),
                    t(index_name(index)),
                    u(def.id.0),
                    Value::Int(kind),
                    int(entry_columns(def, index)),
                    int(root),
                    int(def.id.0),
                    Value::Int(MERGE_THRESHOLD),
                ]);
            }
        }
        Ok(())
    })
}

/// INNODB_FIELDS: what indexes are over.
pub(super) fn fields(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in all_wanted_tables(state, wanted) {
        let def = table.def();
        for (tree, at, _) in def.trees() {
            rows.extend(def.indexes[at].parts.iter().enumerate().map(|(i, part)| vec![u(tree.0), t(&def.columns[part.column].name), u(i as u64)]));
        }
    }
    rows
}

/// INNODB_FOREIGN.
pub(super) fn foreign(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    each_foreign_key(state, wanted, |def, key, rows| {
        let on_delete = match key.on_delete {
            ReferenceAction::Cascade => 1,
            ReferenceAction::SetNull => 2,
            ReferenceAction::NoAction => 16,
            ReferenceAction::Restrict => 0,
        };
        let on_update = match key.on_update {
            ReferenceAction::Cascade => 4,
            ReferenceAction::SetNull => 8,
            ReferenceAction::NoAction => 32,
            ReferenceAction::Restrict => 0,
        };
        rows.push(vec![
            full_name(&def.schema, &key.name),
            full_name(&def.schema, &def.name),
            full_name(&key.parent_schema, &key.parent_table),
            int(key.columns.len()),
            Value::Int(on_delete | on_update),
        ]);
    })
}

/// INNODB_FOREIGN_COLS.
pub(super) fn foreign_columns(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    each_foreign_key(state, wanted, |def, key, rows| {
        for (i, (column, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
            rows.push(vec![full_name(&def.schema, &key.name), t(&def.columns[*column].name), t(parent), u(i as u64 + 1)]);
        }
    })
}

fn each_foreign_key(state: &SessionState, wanted: &Wanted, f: impl Fn(&TableDef, &ForeignKeyDef, &mut Vec<Vec<Value>>)) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in all_wanted_tables(state, wanted) {
        let def = table.def();
        for key in &def.foreign_keys {
            f(def, key, &mut rows);
        }
    }
    rows
}

/// mysql.innodb_table_stats: as it is now, so that the moment of the query is the last update.
pub(super) fn table_statistics(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let now = wall_clock(state, SystemTime::now());
    let row = |table: Arc<Table>| {
        let size = show::table_size(state, &table);
        let def = table.def();
        vec![t(&def.schema), t(&def.name), Value::DateTime(now), u(size.rows), u(size.data_bytes.div_ceil(PAGE_BYTES)), u(size.index_bytes.div_ceil(PAGE_BYTES))]
    };
    all_wanted_tables(state, wanted).into_iter().map(row).collect()
}

/// mysql.innodb_index_stats: distinct values of the leading columns, and pages. Reads a few pages of each index.
pub(super) fn index_statistics(state: &SessionState, wanted: &Wanted, warnings: &mut Vec<Warning>) -> Rows {
    let now = wall_clock(state, SystemTime::now());
    each_open(state, all_wanted_tables(state, wanted), warnings, |table, txn, rows| {
        state.process.check()?;
        let statistics = table.statistics(txn)?;
        for (name_of_table, table) in table.stored_tables() {
            let def = table.def();
            for (i, index) in def.indexes.iter().enumerate() {
                let mut push = |name: &str, value: u64, description: &str| {
                    let index = index_name(index);
                    rows.push(vec![t(&def.schema), t(&name_of_table), t(index), Value::DateTime(now), t(name), u(value), Value::Null, t(description)]);
                };
                let mut columns = String::new();
                let distinct = statistics.cardinality.get(i).map_or(&[][..], Vec::as_slice);
                for (n, (part, distinct)) in index.parts.iter().zip(distinct).enumerate() {
                    columns.push_str(if n == 0 { "" } else { "," });
                    columns.push_str(&def.columns[part.column].name);
                    push(&format!("n_diff_pfx{:02}", n + 1), *distinct, &columns);
                }
                let summary = table.index_summary(&statistics, i)?;
                push("n_leaf_pages", summary.leaf_pages, "Number of leaf pages in the index");
                push("size", summary.size_pages, "Number of pages in the index");
            }
        }
        Ok(())
    })
}

/// What is counted: metric, subsystem, whether it is a present value, the status variable that says the same, and what it is.
const METRICS: &[(&str, &str, bool, &str, &str)] = &[
    ("buffer_data_reads", "buffer", false, "Innodb_data_reads", "Amount of data read in bytes (innodb_data_reads)"),
    ("buffer_data_written", "buffer", false, "Innodb_data_written", "Amount of data written in bytes (innodb_data_written)"),
    ("buffer_pages_created", "buffer", false, "Innodb_pages_created", "Number of pages created (innodb_pages_created)"),
    ("buffer_pages_read", "buffer", false, "Innodb_pages_read", "Number of pages read (innodb_pages_read)"),
    ("buffer_pages_written", "buffer", false, "Innodb_pages_written", "Number of pages written (innodb_pages_written)"),
    ("buffer_pool_bytes_data", "buffer", true, "Innodb_buffer_pool_bytes_data", "Buffer bytes containing data (innodb_buffer_pool_bytes_data)"),
    ("buffer_pool_bytes_dirty", "buffer", true, "Innodb_buffer_pool_bytes_dirty", "Buffer bytes currently dirty (innodb_buffer_pool_bytes_dirty)"),
    ("buffer_pool_pages_data", "buffer", true, "Innodb_buffer_pool_pages_data", "Buffer pages containing data (innodb_buffer_pool_pages_data)"),
    ("buffer_pool_pages_dirty", "buffer", true, "Innodb_buffer_pool_pages_dirty", "Buffer pages currently dirty (innodb_buffer_pool_pages_dirty)"),
    ("buffer_pool_pages_free", "buffer", true, "Innodb_buffer_pool_pages_free", "Buffer pages currently free (innodb_buffer_pool_pages_free)"),
    ("buffer_pool_pages_misc", "buffer", true, "Innodb_buffer_pool_pages_misc", "Buffer pages for misc use such as row locks or the adaptive hash index (innodb_buffer_pool_pages_misc)"),
    ("buffer_pool_pages_total", "buffer", true, "Innodb_buffer_pool_pages_total", "Total buffer pool size in pages (innodb_buffer_pool_pages_total)"),
    ("buffer_pool_reads", "buffer", false, "Innodb_buffer_pool_reads", "Number of reads directly from disk (innodb_buffer_pool_reads)"),
    ("buffer_pool_read_ahead", "buffer", false, "Innodb_buffer_pool_read_ahead", "Number of pages read as read ahead (innodb_buffer_pool_read_ahead)"),
    ("buffer_pool_read_ahead_evicted", "buffer", false, "Innodb_buffer_pool_read_ahead_evicted", "Read-ahead pages evicted without being accessed (innodb_buffer_pool_read_ahead_evicted)"),
    ("buffer_pool_wait_free", "buffer", false, "Innodb_buffer_pool_wait_free", "Number of times waited for free buffer (innodb_buffer_pool_wait_free)"),
    ("dml_deletes", "dml", false, "Innodb_rows_deleted", "Number of rows deleted"),
    ("dml_inserts", "dml", false, "Innodb_rows_inserted", "Number of rows inserted"),
    ("dml_updates", "dml", false, "Innodb_rows_updated", "Number of rows updated"),
    ("innodb_dblwr_pages_written", "server", false, "Innodb_dblwr_pages_written", "Number of pages that have been written for doublewrite operations (innodb_dblwr_pages_written)"),
    ("innodb_dblwr_writes", "server", false, "Innodb_dblwr_writes", "Number of doublewrite operations that have been performed (innodb_dblwr_writes)"),
    ("innodb_page_size", "server", true, "Innodb_page_size", "InnoDB page size in bytes (innodb_page_size)"),
    ("lock_deadlocks", "lock", false, "Innodb_deadlocks", "Number of deadlocks"),
    ("lock_row_lock_current_waits", "lock", false, "Innodb_row_lock_current_waits", "Number of row locks currently being waited for (innodb_row_lock_current_waits)"),
    ("lock_row_lock_time", "lock", false, "Innodb_row_lock_time", "Time spent in acquiring row locks, in milliseconds (innodb_row_lock_time)"),
    ("lock_row_lock_time_avg", "lock", true, "Innodb_row_lock_time_avg", "The average time to acquire a row lock, in milliseconds (innodb_row_lock_time_avg)"),
    ("lock_row_lock_time_max", "lock", true, "Innodb_row_lock_time_max", "The maximum time to acquire a row lock, in milliseconds (innodb_row_lock_time_max)"),
    ("lock_row_lock_waits", "lock", false, "Innodb_row_lock_waits", "Number of times a row lock had to be waited for (innodb_row_lock_waits)"),
    ("lock_timeouts", "lock", false, "Innodb_row_lock_timeouts", "Number of lock timeouts"),
    ("log_waits", "log", false, "Innodb_log_waits", "Number of log waits due to small log buffer (innodb_log_waits)"),
    ("log_writes", "log", false, "Innodb_log_writes", "Number of log writes"),
    ("log_write_requests", "log", false, "Innodb_log_write_requests", "Number of log write requests"),
    ("os_data_fsyncs", "os", false, "Innodb_data_fsyncs", "Number of fsync() calls (innodb_data_fsyncs)"),
    ("os_data_reads", "os", false, "Innodb_data_reads", "Number of reads initiated (innodb_data_reads)"),
    ("os_data_writes", "os", false, "Innodb_data_writes", "Number of writes initiated (innodb_data_writes)"),
    ("os_log_bytes_written", "os", false, "Innodb_os_log_written", "Bytes of log written (innodb_os_log_written)"),
    ("os_log_fsyncs", "os", false, "Innodb_os_log_fsyncs", "Number of fsync log writes (innodb_os_log_fsyncs)"),
    ("trx_rseg_history_len", "transaction", true, "Innodb_history_list_length", "Length of the TRX_RSEG_HISTORY list"),
];

/// INNODB_METRICS: those that status variables tell too. None can be switched off or reset.
pub(super) fn metrics(state: &SessionState) -> Vec<Vec<Value>> {
    let counted = show::status_rows(state, true);
    let counted: HashMap<String, i64> =
        counted.iter().filter_map(|row| Some((row[0].as_str()?.to_ascii_lowercase(), row[1].as_str()?.parse().ok()?))).collect();
    let started = Value::DateTime(wall_clock(state, state.instance.started_at()));
    let elapsed = state.instance.uptime_seconds();
    let row = |(name, subsystem, present, variable, comment): &(&str, &str, bool, &str, &str)| {
        let count = Value::Int(*counted.get(&variable.to_ascii_lowercase())?);
        let mut row = vec![t(name), t(subsystem), count.clone(), Value::Null, Value::Null, Value::Null, count];
        row.extend([Value::Null, Value::Null, Value::Null, started.clone(), Value::Null, int(elapsed), Value::Null]);
        row.extend([t("enabled"), t(if *present { "value" } else { "status_counter" }), t(comment)]);
        Some(row)
    };
    METRICS.iter().filter_map(row).collect()
}
