//! The rows of the virtual tables.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use highkey_table::{CheckOption, ColumnDef, Default, IndexDef, IndexKind, PartitionMethod, Privileges, ReferenceAction, Table, TableDef, View};
use highkey_types::{Charset, Collation, DateTime, MySqlError, TimeZone, TypeKind, Value, Warning};

use super::{histograms, indexes, innodb, io, locks, performance, privileges, routines, spatial, statements, threads, triggers, usage, waits};
use crate::event;
use crate::execute;
use crate::parse::keywords;
use crate::parse::print::quote;
use crate::plan::{VirtualTable, Wanted};
use crate::privileges::column_cell;
use crate::replica;
use crate::session::{ProcessEntry, SessionState, stage_name};
use crate::show::{self, TableSize};
use crate::sys;

/// Text, number, NULL.
pub(super) fn t(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

pub(super) fn u(n: impl Into<u64>) -> Value {
    Value::UInt(n.into())
}

pub(super) fn rows(state: &SessionState, table: &VirtualTable, wanted: &Wanted, warnings: &mut Vec<Warning>) -> Result<Vec<Vec<Value>>, MySqlError> {
    let of_engine = match &*table.schema {
        "information_schema" => table.name.starts_with("innodb_") || matches!(&*table.name, "highkey_commit_anatomy" | "highkey_latch_waits"),
        schema => schema == "performance_schema" && &*table.name == "highkey_row_lock_waits",
    };
    if of_engine {
        state.check_global(Privileges::PROCESS, "PROCESS")?;
    }
    Ok(match (&*table.schema, &*table.name) {
        ("information_schema", "character_sets") => Charset::ALL.iter().map(|c| character_set(*c)).collect(),
        ("information_schema", "collations") => Collation::all().iter().map(collation).collect(),
        ("information_schema", "collation_character_set_applicability") => Collation::all().iter().map(|c| vec![t(c.name), t(c.charset.name())]).collect(),
        ("information_schema", "engines") => show::engines(),
        ("information_schema", "events") => event::rows(state),
        ("information_schema", "keywords") => keywords().into_iter().map(|(word, reserved)| vec![t(word), Value::Int(i64::from(reserved))]).collect(),
        ("information_schema", "processlist") => show::processes(state).into_iter().map(|p| p.into_row(true)).collect(),
        ("information_schema", "plugins") => plugins(),
        ("information_schema", "parameters") => routines::parameters(state),
        ("information_schema", "routines") => routines::routines(state),
        ("information_schema", "triggers") => triggers::rows(state, wanted),
        ("information_schema", "schemata") => schemata(state),
        ("information_schema", "tables") => tables(state, wanted),
        ("information_schema", "columns") => columns(state, wanted),
        ("information_schema", "views") => views(state, wanted),
        ("information_schema", "statistics") => each_table(state, wanted, statistics),
        ("information_schema", "key_column_usage") => each_table(state, wanted, key_column_usage),
        ("information_schema", "table_constraints") => each_table(state, wanted, table_constraints),
        ("information_schema", "referential_constraints") => each_table(state, wanted, referential_constraints),
        ("information_schema", "check_constraints") => each_table(state, wanted, check_constraints),
        ("information_schema", "column_statistics") => each_table(state, wanted, histograms::rows),
        ("information_schema", "partitions") => each_table(state, wanted, partitions),
        ("information_schema", "highkey_index_levels") => indexes::levels(state, wanted, warnings)?,
        ("information_schema", "highkey_index_statistics") => indexes::statistics(state, wanted, warnings)?,
        ("information_schema", "highkey_commit_anatomy") => waits::commit_anatomy(state),
        ("information_schema", "highkey_latch_waits") => waits::latches(state),
        ("information_schema", "innodb_columns") => innodb::columns(state, wanted),
        ("information_schema", "innodb_fields") => innodb::fields(state, wanted),
        ("information_schema", "innodb_foreign") => innodb::foreign(state, wanted),
        ("information_schema", "innodb_foreign_cols") => innodb::foreign_columns(state, wanted),
        ("information_schema", "innodb_ft_default_stopword") => highkey_table::STOPWORDS.iter().map(|word| vec![t(word)]).collect(),
        ("information_schema", "innodb_indexes") => innodb::indexes(state, wanted, warnings)?,
        ("information_schema", "innodb_metrics") => innodb::metrics(state),
        ("information_schema", "innodb_tables") => innodb::tables(state, wanted),
        ("information_schema", "innodb_tablespaces") => innodb::tablespaces(state, wanted),
        ("information_schema", "innodb_tablestats") => innodb::table_stats(state, wanted),
        ("information_schema", "innodb_buffer_pool_stats") => innodb::buffer_pool(state),
        ("information_schema", "innodb_trx") => locks::transactions(state)?,
        ("information_schema", "st_geometry_columns") => spatial::geometry_columns(columns(state, wanted)),
        ("information_schema", "st_spatial_reference_systems") => spatial::reference_systems(),
        ("information_schema", "user_privileges") => privileges::of_users(state),
        ("information_schema", "schema_privileges") => privileges::of_schemas(state),
        ("information_schema", "table_privileges") => privileges::of_tables(state),
        ("information_schema", "column_privileges") => privileges::of_columns(state),
        ("information_schema", "applicable_roles") => privileges::applicable_roles(state, false),
        ("information_schema", "administrable_role_authorizations") => privileges::applicable_roles(state, true),
        ("information_schema", "enabled_roles") => privileges::enabled_roles(state),
        ("information_schema", "role_table_grants") => privileges::role_table_grants(state),
        ("information_schema", "role_column_grants") => privileges::role_column_grants(state),
        ("performance_schema", "data_locks") => locks::data_locks(state, warnings)?,
        ("performance_schema", "data_lock_waits") => locks::data_lock_waits(state)?,
        ("performance_schema", "events_stages_current") => state.instance.processes().all().iter().filter_map(|p| stage(p)).collect(),
        ("performance_schema", "events_statements_current") => threads::statements(state),
        ("performance_schema", name) if name.starts_with("events_statements_summary_") && name.ends_with("_by_event_name") => statements::by_event_name(state, name),
        ("performance_schema", "events_statements_history") => threads::past_statements(state),
        ("performance_schema", "events_statements_summary_by_digest") => waits::digests(state),
        ("performance_schema", "events_transactions_current") => locks::current_transactions(state),
        ("performance_schema", "events_waits_summary_global_by_event_name") => io::waits(state),
        ("performance_schema", "file_instances") => io::file_instances(state),
        ("performance_schema", "file_summary_by_event_name") => io::file_events(state),
        ("performance_schema", "file_summary_by_instance") => io::file_summary(state),
        ("performance_schema", "memory_summary_global_by_event_name") => io::memory(state),
        ("performance_schema", "socket_summary_by_event_name") => io::sockets(state),
        // There are no groups of servers.
        ("performance_schema", name) if name.starts_with("replication_group_") => Vec::new(),
        ("performance_schema", "replication_applier_filters") => replica::filters(state, true),
        ("performance_schema", "replication_applier_global_filters") => replica::filters(state, false),
        ("performance_schema", name) if name.starts_with("replication_") => replica::performance_schema(state, name),
        ("performance_schema", "metadata_locks") => threads::metadata_locks(state),
        ("performance_schema", "performance_timers") => performance::timers(),
        ("performance_schema", "setup_actors") => performance::actors(),
        ("performance_schema", "setup_consumers") => performance::consumers(),
        ("performance_schema", "setup_instruments") => performance::instruments(),
        ("performance_schema", "setup_objects") => performance::objects(),
        ("performance_schema", "table_io_waits_summary_by_index_usage") => usage::by_index(state, wanted),
        ("performance_schema", "table_io_waits_summary_by_table") => usage::by_table(state, wanted),
        ("performance_schema", "accounts") => threads::connections(state, true, true),
        ("performance_schema", "highkey_row_lock_waits") => locks::lock_waits(state)?,
        ("performance_schema", "highkey_table_lock_waits") => threads::table_lock_waits(state),
        ("performance_schema", "hosts") => threads::connections(state, false, true),
        ("performance_schema", "processlist") => show::processes(state).into_iter().map(|p| p.into_row(true)).collect(),
        ("performance_schema", "session_account_connect_attrs") => threads::attributes(state, true),
        ("performance_schema", "session_connect_attrs") => threads::attributes(state, false),
        ("performance_schema", "status_by_thread") => threads::status(state),
        ("performance_schema", "threads") => threads::threads(state),
        ("performance_schema", "users") => threads::connections(state, true, false),
        ("sys", "sys_config") => sys::config(state),
        ("performance_schema", "global_variables") => show::variable_rows(state, true),
        ("performance_schema", "session_variables") => show::variable_rows(state, false),
        ("performance_schema", "global_status") => show::status_rows(state, true),
        ("performance_schema", "session_status") => show::status_rows(state, false),
        ("mysql", "columns_priv") => privileges::columns_priv_table(state),
        ("mysql", "db") => privileges::db_table(state),
        ("mysql", "default_roles") => privileges::default_roles_table(state),
        ("mysql", "gtid_executed") => gtid_executed(state),
        ("mysql", "slave_master_info" | "slave_relay_log_info") => replica::repository(state, &table.name),
        ("mysql", "role_edges") => privileges::role_edges_table(state),
        ("mysql", "global_grants") => privileges::global_grants_table(state),
        ("mysql", "innodb_index_stats") => innodb::index_statistics(state, wanted, warnings)?,
        ("mysql", "innodb_table_stats") => innodb::table_statistics(state, wanted),
        ("mysql", "time_zone_name") => TimeZone::names().into_iter().zip(1u64..).map(|(name, number)| vec![t(name), u(number)]).collect(),
        ("mysql", "proxies_priv") => privileges::proxies_priv_table(state),
        ("mysql", "procs_priv") => privileges::procs_priv_table(state),
        ("mysql", "tables_priv") => privileges::tables_priv_table(state),
        ("mysql", "user") => privileges::user_table(state),
        // What Highkey does not have: events, compressed pages and so on.
        _ => Vec::new(),
    })
}

/// mysql.gtid_executed: what the binary log tells, now.
fn gtid_executed(state: &SessionState) -> Vec<Vec<Value>> {
    let Some(binlog) = state.instance.database().binlog() else { return Vec::new() };
    let executed = binlog.executed();
    let row = |source: &str, (first, last): &(u64, u64)| vec![t(source), Value::Int(*first as i64), Value::Int(*last as i64)];
    let mut rows = Vec::new();
    for (source, intervals) in executed.iter() {
        let source = source.to_string();
        rows.extend(intervals.iter().map(|interval| row(&source, interval)));
    }
    rows
}

/// What a connection's statement is doing, and how far it is. Times are not taken, and thread ids are the connections'.
fn stage(process: &ProcessEntry) -> Option<Vec<Value>> {
    let progress = process.progress();
    let stage = progress.stage();
    if process.snapshot().command == "Sleep" {
        return None;
    }
    let total = progress.total();
    let completed = if total.is_some() || progress.done() > 0 { u(progress.done()) } else { Value::Null };
    let n = || Value::Null;
    let name = format!("stage/sql/{}", stage_name(stage).0);
    let event = u(progress.entered());
    Some(vec![u(process.id()), event, n(), t(name), n(), n(), n(), n(), completed, total.map_or(Value::Null, u), n(), n()])
}

fn character_set(charset: Charset) -> Vec<Value> {
    vec![t(charset.name()), t(Collation::default_of(charset).name), t(charset.description()), u(charset.max_bytes() as u64)]
}

fn collation(c: &Collation) -> Vec<Value> {
    vec![
        t(c.name),
        t(c.charset.name()),
        u(c.id),
        t(if c.is_default { "Yes" } else { "" }),
        t("Yes"),
        u(show::sort_length(c)),
        t(if c.pad_space { "PAD SPACE" } else { "NO PAD" }),
    ]
}

fn plugins() -> Vec<Vec<Value>> {
    let row = |name: &str, kind: &str, description: &str| {
        vec![t(name), t("1.0"), t("ACTIVE"), t(kind), t("1.0"), Value::Null, Value::Null, t("Highkey"), t(description), t("Apache-2.0"), t("FORCE")]
    };
    vec![
        row("mysql_native_password", "AUTHENTICATION", "Native MySQL authentication"),
        row("caching_sha2_password", "AUTHENTICATION", "Caching sha2 authentication"),
        row("InnoDB", "STORAGE ENGINE", "Highkey's B-link engine under InnoDB's name"),
        row("ngram", "FTPARSER", "Ngram Full-Text Parser"),
        row("rpl_semi_sync_source", "REPLICATION", "Semi-synchronous replication, the source's side"),
        row("rpl_semi_sync_replica", "REPLICATION", "Semi-synchronous replication, the replica's side"),
    ]
}

fn schemata(state: &SessionState) -> Vec<Vec<Value>> {
    show::seen_schemas(state)
        .into_iter()
        .map(|(name, collation)| vec![t("def"), t(name), t(collation.charset.name()), t(collation.name), Value::Null, t("NO")])
        .collect()
}

/// The tables asked about, by schema and name, whoever asks: for who may see the server's insides.
pub(super) fn all_wanted_tables(state: &SessionState, wanted: &Wanted) -> Vec<Arc<Table>> {
    let catalog = state.instance.database().catalog();
    let schemas = catalog.schemas().into_iter().filter(|schema| wanted.schema(&schema.name));
    schemas.flat_map(|schema| catalog.tables(&schema.name)).filter(|table| wanted.table(&table.def().name)).collect()
}

/// The tables asked about that may be seen, by schema and name.
pub(super) fn wanted_tables(state: &SessionState, wanted: &Wanted) -> Vec<Arc<Table>> {
    let mut tables = all_wanted_tables(state, wanted);
    tables.retain(|table| state.sees_table(&table.def().schema, &table.def().name));
    tables
}

/// The views asked about that may be seen, by schema and name.
fn wanted_views(state: &SessionState, wanted: &Wanted) -> Vec<Arc<View>> {
    let catalog = state.instance.database().catalog();
    let schemas = catalog.schemas().into_iter().filter(|schema| wanted.schema(&schema.name));
    schemas.flat_map(|schema| sys::views(&catalog, &schema.name)).filter(|view| wanted.table(&view.def().name) && state.sees_table(&view.def().schema, &view.def().name)).collect()
}

fn views(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let row = |view: Arc<View>| {
        let def = view.def();
        let shows_text = state.access().is_none_or(|access| access.table(&def.schema, &def.name).has(Privileges::SHOW_VIEW));
        let check = match def.check {
            CheckOption::None => "NONE",
            CheckOption::Local => "LOCAL",
            CheckOption::Cascaded => "CASCADED",
        };
        vec![
            t("def"),
            t(&def.schema),
            t(&def.name),
            t(if shows_text { &*def.text } else { "" }),
            t(check),
            t(if def.updatable { "YES" } else { "NO" }),
            t(format!("{}@{}", def.definer.0, def.definer.1)),
            t(if def.invoker { "INVOKER" } else { "DEFINER" }),
            t(def.charset.name()),
            t(def.collation.name),
        ]
    };
    wanted_views(state, wanted).into_iter().map(row).collect()
}

pub(super) fn each_table(state: &SessionState, wanted: &Wanted, f: impl Fn(&SessionState, &Arc<Table>, &mut Vec<Vec<Value>>)) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in wanted_tables(state, wanted) {
        f(state, &table, &mut rows);
    }
    rows
}

/// Schemas of tables whose rows are made when a query asks.
const SYSTEM_SCHEMAS: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];

fn tables(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let mut rows = each_table(state, wanted, |state, table, rows| {
        let def = table.def();
        let size = show::table_size(state, table);
        rows.push(vec![
            t("def"),
            t(&def.schema),
            t(&def.name),
            t("BASE TABLE"),
            t("InnoDB"),
            Value::Int(10),
            t(row_format(def)),
            u(size.rows),
            u(size.average()),
            u(size.data_bytes),
            u(0u64),
            u(size.index_bytes),
            u(0u64),
            auto_increment(table),
            Value::DateTime(wall_clock(state, def.created_at)),
            changed_at(state, table),
            Value::Null,
            t(def.collation.name),
            Value::Null,
            t(create_options(def)),
            t(&def.comment),
        ]);
    });
    for view in wanted_views(state, wanted) {
        let def = view.def();
        let mut row = vec![t("def"), t(&def.schema), t(&def.name), t("VIEW")];
        row.resize(20, Value::Null);
        row[7] = u(0u64);
        row[14] = Value::DateTime(wall_clock(state, def.created_at));
        row.push(t("VIEW"));
        rows.push(row);
    }
    for schema in SYSTEM_SCHEMAS {
        for table in super::tables_of(&state.instance.database().catalog(), schema).into_iter().filter(|table| wanted.schema(schema) && state.sees_table(schema, &table.name)) {
            let kind = super::table_type(&table);
            let (engine, format, collation) = match kind {
                "BASE TABLE" => (t("InnoDB"), t("Dynamic"), t("utf8_bin")),
                _ => (Value::Null, Value::Null, Value::Null),
            };
            let mut row = vec![t("def"), t(schema), t(super::shown_name(&table)), t(kind), engine, Value::Int(10), format];
            row.extend((0..5).map(|_| u(0u64)));
            row.push(u(0u64));
            row.push(Value::Null);
            row.push(Value::DateTime(wall_clock(state, state.instance.started_at())));
            row.extend([Value::Null, Value::Null, collation, Value::Null, t(""), t("")]);
            rows.push(row);
        }
    }
    rows
}

/// The value that SHOW TABLE STATUS shows: NULL for a table without such a column.
pub fn auto_increment(table: &Table) -> Value {
    table.next_auto_increment().map_or(Value::Null, Value::UInt)
}

/// When its rows were last changed: NULL for not since the start, as in InnoDB.
pub fn changed_at(state: &SessionState, table: &Table) -> Value {
    table.changed_at().map_or(Value::Null, |at| Value::DateTime(wall_clock(state, at)))
}

pub fn row_format(def: &TableDef) -> String {
    match def.row_format.as_deref() {
        Some(format) => {
            let lower = format.to_lowercase();
            let mut chars = lower.chars();
            chars.next().map_or(String::new(), |c| c.to_uppercase().collect::<String>() + chars.as_str())
        }
        None => "Dynamic".to_owned(),
    }
}

pub fn create_options(def: &TableDef) -> String {
    let format = def.row_format.as_deref().map(|f| format!("row_format={f}"));
    let partitioned = def.partitioning.as_ref().map(|_| "partitioned".to_owned());
    format.into_iter().chain(partitioned).collect::<Vec<_>>().join(" ")
}

/// A moment in the session's time zone, whole seconds.
pub fn wall_clock(state: &SessionState, moment: SystemTime) -> DateTime {
    let micros = moment.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64 * 1_000_000);
    state.config.time_zone.from_utc(&DateTime::from_micros(micros).unwrap_or_default())
}

fn columns(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let cell = |schema: &str, table: &str, column: &str| column_cell(state.access(), schema, table, column);
    let mut rows = each_table(state, wanted, |state, table, rows| {
        let def = table.def();
        let hidden = show::hidden_key(state, def);
        for (i, column) in def.columns.iter().enumerate().filter(|(i, _)| Some(*i) != hidden) {
            if let Some(privileges) = cell(&def.schema, &def.name, &column.name) {
                rows.push(column_row(def, i, column, &privileges));
            }
        }
    });
    for view in wanted_views(state, wanted) {
        // One that is no longer valid has no columns to show.
        let columns = execute::view::columns(state, &view).unwrap_or_default();
        for (i, column) in columns.iter().enumerate() {
            let def = view.def();
            let Some(privileges) = cell(&def.schema, &def.name, &column.name) else { continue };
            let default = column_default(column).map_or(Value::Null, t);
            let mut row = vec![t("def"), t(&def.schema), t(&def.name), t(&column.name), u(i as u64 + 1), default];
            row.extend(type_cells(column, "", &privileges));
            rows.push(row);
        }
    }
    for schema in SYSTEM_SCHEMAS {
        for table in super::tables_of(&state.instance.database().catalog(), schema).into_iter().filter(|_| wanted.schema(schema)) {
            for (i, (name, ty, nullable)) in table.columns.iter().enumerate() {
                let Some(privileges) = cell(schema, &table.name, name) else { continue };
                let mut def = ColumnDef::new(name, ty.clone());
                def.nullable = *nullable;
                let mut row = vec![t("def"), t(schema), t(super::shown_name(&table)), t(name), u(i as u64 + 1), Value::Null];
                row.extend(type_cells(&def, "", &privileges));
                rows.push(row);
            }
        }
    }
    rows
}

fn column_row(def: &TableDef, position: usize, column: &ColumnDef, privileges: &str) -> Vec<Value> {
    let mut row = vec![t("def"), t(&def.schema), t(&def.name), t(&column.name), u(position as u64 + 1), column_default(column).map_or(Value::Null, t)];
    row.extend(type_cells(column, column_key(def, position), privileges));
    row
}

/// From IS_NULLABLE on.
pub(super) fn type_cells(column: &ColumnDef, key: &str, privileges: &str) -> Vec<Value> {
    let ty = &column.ty;
    let full = ty.to_string();
    let base = full.split(['(', ' ']).next().unwrap_or("").to_owned();
    let (characters, octets) = match &ty.kind {
        TypeKind::Char(n) | TypeKind::VarChar(n) => (u(*n), u(u64::from(*n) * ty.charset().max_bytes() as u64)),
        TypeKind::Binary(n) | TypeKind::VarBinary(n) => (u(*n), u(*n)),
        TypeKind::Enum(_) | TypeKind::Set(_) => (u(u64::from(ty.display_length()) / ty.charset().max_bytes() as u64), u(ty.display_length())),
        _ if ty.is_blob() && ty.kind != TypeKind::Json && !ty.is_geometry() => (u(ty.max_bytes() / ty.charset().min_bytes() as u64), u(ty.max_bytes())),
        _ => (Value::Null, Value::Null),
    };
    let (precision, scale) = match ty.kind {
        TypeKind::TinyInt => (u(3u64), u(0u64)),
        TypeKind::SmallInt => (u(5u64), u(0u64)),
        TypeKind::MediumInt => (u(7u64), u(0u64)),
        TypeKind::Int => (u(10u64), u(0u64)),
        TypeKind::BigInt => (u(if ty.unsigned { 20u64 } else { 19 }), u(0u64)),
        TypeKind::Decimal { precision, scale } => (u(precision), u(scale)),
        TypeKind::Float | TypeKind::Double => match ty.float_digits.filter(|_| ty.fixed_digits().is_some()) {
            Some((m, d)) => (u(m), u(d)),
            None => (u(if ty.kind == TypeKind::Float { 12u64 } else { 22 }), Value::Null),
        },
        TypeKind::Bit(n) => (u(n), Value::Null),
        _ => (Value::Null, Value::Null),
    };
    let datetime = match ty.kind {
        TypeKind::DateTime(n) | TypeKind::Timestamp(n) | TypeKind::Time(n) => u(n),
        _ => Value::Null,
    };
    let text = ty.is_text() || matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_));
    vec![
        t(if column.nullable { "YES" } else { "NO" }),
        t(base),
        characters,
        octets,
        precision,
        scale,
        datetime,
        if text { t(ty.charset().name()) } else { Value::Null },
        if text { t(ty.collation.name) } else { Value::Null },
        t(full),
        t(key),
        t(column_extra(column)),
        t(privileges),
        t(&column.comment),
        t(column.generated.as_ref().map_or(String::new(), |g| escaped(&g.expr))),
        spatial::srid(ty).map_or(Value::Null, u),
    ]
}

/// A default as SHOW COLUMNS shows it.
pub fn column_default(column: &ColumnDef) -> Option<String> {
    match &column.default {
        Default::None | Default::Dropped | Default::Literal(Value::Null) => None,
        Default::Literal(value) => Some(match (&column.ty.kind, value) {
            (TypeKind::Bit(_), Value::UInt(bits)) => format!("b'{bits:b}'"),
            _ => {
                let mut text = Vec::new();
                value.to_text(&column.ty, &mut text);
                match &column.ty.kind {
                    TypeKind::Binary(_) | TypeKind::VarBinary(_) if !text.is_empty() => {
                        format!("0x{}", text.iter().map(|b| format!("{b:02X}")).collect::<String>())
                    }
                    _ => String::from_utf8_lossy(&text).into_owned(),
                }
            }
        }),
        Default::Expr(text) => Some(escaped(text)),
        Default::CurrentTimestamp(0) => Some("CURRENT_TIMESTAMP".to_owned()),
        Default::CurrentTimestamp(n) => Some(format!("CURRENT_TIMESTAMP({n})")),
    }
}

/// An expression as MySQL's tables hold it: what delimits its strings is escaped.
fn escaped(expr: &str) -> String {
    expr.replace('\\', "\\\\").replace('\'', "\\'")
}

/// The Extra column of SHOW COLUMNS.
pub fn column_extra(column: &ColumnDef) -> String {
    let mut words = Vec::new();
    if column.auto_increment {
        words.push("auto_increment".to_owned());
    }
    if matches!(column.default, Default::Expr(_)) {
        words.push("DEFAULT_GENERATED".to_owned());
    }
    if column.on_update_now {
        words.push(match column.ty.fsp() {
            0 => "on update CURRENT_TIMESTAMP".to_owned(),
            n => format!("on update CURRENT_TIMESTAMP({n})"),
        });
    }
    match &column.generated {
        Some(g) if g.stored => words.push("STORED GENERATED".to_owned()),
        Some(_) => words.push("VIRTUAL GENERATED".to_owned()),
        None => {}
    }
    if column.invisible {
        words.push("INVISIBLE".to_owned());
    }
    words.join(" ")
}

/// PRI, UNI, MUL or nothing.
pub fn column_key(def: &TableDef, column: usize) -> &'static str {
    let promoted = match def.primary_key() {
        Some(_) => None,
        None => def.indexes.iter().find(|i| i.kind == IndexKind::Unique && i.parts.iter().all(|p| !def.columns[p.column].nullable)),
    };
    if def.primary_key().or(promoted).is_some_and(|i| i.parts.iter().any(|p| p.column == column)) {
        return "PRI";
    }
    let leading = |unique: bool| {
        def.indexes.iter().any(|i| i.parts.first().is_some_and(|p| p.column == column) && (i.kind == IndexKind::Unique && i.parts.len() == 1) == unique)
    };
    if leading(true) {
        "UNI"
    } else if leading(false) {
        "MUL"
    } else {
        ""
    }
}

fn statistics(state: &SessionState, table: &Arc<Table>, rows: &mut Vec<Vec<Value>>) {
    let def = table.def();
    for mut part in show::index_rows(state, table) {
        // The index's schema stands between its uniqueness and its name.
        part.insert(1, t(&def.schema));
        rows.push([t("def"), t(&def.schema), t(&def.name)].into_iter().chain(part).collect());
    }
}

/// The primary key and the unique indexes, as far as the session is to see them.
fn unique_indexes<'t>(state: &SessionState, def: &'t TableDef) -> impl Iterator<Item = &'t IndexDef> + use<'t> {
    let hidden = show::hidden_key(state, def).is_some();
    def.indexes.iter().filter(move |i| i.is_unique() && !(hidden && i.kind == IndexKind::Primary))
}

fn key_column_usage(state: &SessionState, table: &Arc<Table>, rows: &mut Vec<Vec<Value>>) {
    let def = table.def();
    for index in unique_indexes(state, def) {
        for (i, part) in index.parts.iter().enumerate() {
            let mut row = vec![t("def"), t(&def.schema), t(&index.name), t("def"), t(&def.schema), t(&def.name), t(&def.columns[part.column].name), u(i as u64 + 1)];
            row.extend((0..4).map(|_| Value::Null));
            rows.push(row);
        }
    }
    for key in &def.foreign_keys {
        for (i, (column, parent_column)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
            let position = || u(i as u64 + 1);
            let mut row = vec![t("def"), t(&def.schema), t(&key.name), t("def"), t(&def.schema), t(&def.name), t(&def.columns[*column].name), position(), position()];
            row.extend([t(&key.parent_schema), t(&key.parent_table), t(parent_column)]);
            rows.push(row);
        }
    }
}

fn referential_constraints(state: &SessionState, table: &Arc<Table>, rows: &mut Vec<Vec<Value>>) {
    let def = table.def();
    let catalog = state.instance.database().catalog();
    let rule = |action: ReferenceAction| match action {
        ReferenceAction::NoAction => "NO ACTION",
        ReferenceAction::Restrict => "RESTRICT",
        ReferenceAction::Cascade => "CASCADE",
        ReferenceAction::SetNull => "SET NULL",
    };
    for key in &def.foreign_keys {
        let parent = catalog.find_table(&key.parent_schema, &key.parent_table);
        let unique = parent.as_ref().and_then(|parent| parent.unique_index_of(&key.parent_columns));
        rows.push(vec![
            t("def"),
            t(&def.schema),
            t(&key.name),
            t("def"),
            t(&key.parent_schema),
            unique.map_or(Value::Null, |index| t(&index.name)),
            t("NONE"),
            t(rule(key.on_update)),
            t(rule(key.on_delete)),
            t(&def.name),
            t(&key.parent_table),
        ]);
    }
}

fn table_constraints(state: &SessionState, table: &Arc<Table>, rows: &mut Vec<Vec<Value>>) {
    let def = table.def();
    let mut push = |name: &str, kind: &str, enforced: bool| {
        rows.push(vec![t("def"), t(&def.schema), t(name), t(&def.schema), t(&def.name), t(kind), t(if enforced { "YES" } else { "NO" })]);
    };
    for index in unique_indexes(state, def) {
        push(&index.name, if index.kind == IndexKind::Primary { "PRIMARY KEY" } else { "UNIQUE" }, true);
    }
    for key in &def.foreign_keys {
        push(&key.name, "FOREIGN KEY", true);
    }
    for check in &def.checks {
        push(&check.name, "CHECK", check.enforced);
    }
}

fn check_constraints(_state: &SessionState, table: &Arc<Table>, rows: &mut Vec<Vec<Value>>) {
    let def = table.def();
    for check in &def.checks {
        rows.push(vec![t("def"), t(&def.schema), t(&check.name), t(escaped(&check.expr))]);
    }
}

fn partitions(state: &SessionState, table: &Arc<Table>, rows: &mut Vec<Vec<Value>>) {
    let def = table.def();
    let mut push = |partition: [Value; 9], size: TableSize, comment: Value, group: &str| {
        let mut row = vec![t("def"), t(&def.schema), t(&def.name)];
        row.extend(partition);
        row.extend([u(size.rows), u(size.average()), u(size.data_bytes), u(0u64), u(size.index_bytes), u(0u64)]);
        row.push(Value::DateTime(wall_clock(state, def.created_at)));
        row.extend([Value::Null, Value::Null, Value::Null, comment, t(group), Value::Null]);
        rows.push(row);
    };
    let Some(partitioning) = &def.partitioning else {
        push(std::array::from_fn(|_| Value::Null), show::table_size(state, table), t(""), "");
        return;
    };
    let expression = match &partitioning.method {
        PartitionMethod::Range(expr) | PartitionMethod::List(expr) | PartitionMethod::Hash { expr, .. } => Some(expr.text()),
        PartitionMethod::RangeColumns(columns) | PartitionMethod::ListColumns(columns) | PartitionMethod::Key { columns, .. } => {
            (!columns.is_empty()).then(|| columns.iter().map(|name| quote(name)).collect::<Vec<_>>().join(","))
        }
    };
    let or_null = |text: Option<String>| text.map_or(Value::Null, t);
    for (at, (partition, part)) in partitioning.partitions.iter().zip(table.partition_tables()).enumerate() {
        let size = part.sizes().map(|s| TableSize { rows: s.rows, data_bytes: s.data_length, index_bytes: s.index_length }).unwrap_or_default();
        let cells = [
            t(&partition.name),
            Value::Null,
            u(at as u64 + 1),
            Value::Null,
            t(partitioning.method_name()),
            Value::Null,
            or_null(expression.clone()),
            Value::Null,
            or_null(partition.values.description()),
        ];
        push(cells, size, t(&partition.comment), "default");
    }
}
