//! What SHOW and information_schema both tell: schemas, sizes, variables, counters, processes, engines.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use highkey_table::{IndexKind, PAGE_BYTES, Privileges, Table, TableDef, WaitKind};
use highkey_types::{Collation, Str, Value};

use super::tls;
use crate::df::SerialReason;
use crate::execute::has_generated_key;
use crate::information_schema;
use crate::session::{NEVER, SessionState, StatusCounter};
use crate::variables::{self, Effect, Scope};

fn t(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

/// Every schema with its collation, in name order; the system schemas among them.
pub fn schemas(state: &SessionState) -> Vec<(Str, &'static Collation)> {
    let utf8 = Collation::default_of(highkey_types::Charset::Utf8mb3);
    let mut schemas: Vec<(Str, &'static Collation)> = state.instance.database().catalog().schemas().iter().map(|s| (s.name.clone(), s.collation)).collect();
    for (name, collation) in [("information_schema", utf8), ("mysql", Collation::utf8mb4()), ("performance_schema", Collation::utf8mb4())] {
        if !schemas.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
            schemas.push((name.into(), collation));
        }
    }
    schemas.sort_by(|a, b| a.0.cmp(&b.0));
    schemas
}

/// Those of the schemas in which the session may do something.
pub fn seen_schemas(state: &SessionState) -> Vec<(Str, &'static Collation)> {
    schemas(state).into_iter().filter(|(name, _)| state.access().is_none_or(|access| access.sees_schema(name))).collect()
}

/// Estimated size of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableSize {
    pub rows: u64,
    pub data_bytes: u64,
    pub index_bytes: u64,
}

impl TableSize {
    pub fn average(self) -> u64 {
        if self.rows == 0 { 0 } else { self.data_bytes / self.rows }
    }
}

/// From the table's statistics; zero where they cannot be had.
pub fn table_size(state: &SessionState, table: &Arc<Table>) -> TableSize {
    let rows = table.row_count_estimate().unwrap_or(0);
    let mut txn = state.instance.database().begin(highkey_table::Isolation::ReadCommitted);
    match table.statistics(&mut txn) {
        Ok(statistics) => TableSize { rows, data_bytes: statistics.data_length, index_bytes: statistics.index_length },
        Err(_) => TableSize { rows, ..TableSize::default() },
    }
}

/// The column that `sql_generate_invisible_primary_key` has made, where this session is not to see it nor its index.
pub fn hidden_key(state: &SessionState, def: &TableDef) -> Option<usize> {
    if state.variables.bool("show_gipk_in_create_table_and_information_schema") {
        return None;
    }
    has_generated_key(def).then_some(0)
}

/// What SHOW INDEX and `information_schema.statistics` tell of each part of each index: uniqueness, index, place, column, order, cardinality, prefix,
/// packing, NULL, kind, comments, visibility, expression.
pub fn index_rows(state: &SessionState, table: &Arc<Table>) -> Vec<Vec<Value>> {
    let def = table.def();
    let mut txn = state.instance.database().begin(highkey_table::Isolation::ReadCommitted);
    let statistics = table.statistics(&mut txn).unwrap_or_default();
    let mut rows = Vec::new();
    let hidden = hidden_key(state, def).is_some();
    let shown = def.indexes.iter().enumerate().filter(|(_, i)| i.kind != IndexKind::RowId && !(hidden && i.kind == IndexKind::Primary));
    for (number, index) in shown {
        for (i, part) in index.parts.iter().enumerate() {
            let column = &def.columns[part.column];
            let of_words = index.kind == IndexKind::FullText;
            let distinct = if of_words { Some(&statistics.rows) } else { statistics.cardinality.get(number).and_then(|parts| parts.get(i)) };
            rows.push(vec![
                Value::Int(i64::from(!index.is_unique())),
                t(&index.name),
                Value::UInt(i as u64 + 1),
                t(&column.name),
                if of_words { Value::Null } else { t(if part.descending { "D" } else { "A" }) },
                distinct.map_or(Value::Null, |n| Value::Int(*n as i64)),
                part.prefix.map_or(Value::Null, |n| Value::Int(i64::from(n))),
                Value::Null,
                t(if column.nullable { "YES" } else { "" }),
                t(if of_words { "FULLTEXT" } else { "BTREE" }),
                t(""),
                t(&index.comment),
                t(if index.invisible { "NO" } else { "YES" }),
                Value::Null,
            ]);
        }
    }
    rows
}

/// Schema, table and name of every index, by its number.
pub fn index_names(state: &SessionState) -> HashMap<u32, [Str; 3]> {
    let catalog = state.instance.database().catalog();
    let mut names = HashMap::new();
    for table in catalog.schemas().iter().flat_map(|schema| catalog.tables(&schema.name)) {
        let def = table.def();
        names.extend(def.trees().into_iter().map(|(tree, at, _)| (tree.0, [def.schema.clone(), def.name.clone(), def.indexes[at].name.clone()])));
    }
    names
}

/// The engines: ours, under the name that tables are made with.
pub fn engines() -> Vec<Vec<Value>> {
    let comment = "Highkey's own engine: B-link trees, transactions, row-level locking";
    vec![vec![t("InnoDB"), t("DEFAULT"), t(comment), t("YES"), t("NO"), t("YES")]]
}

/// `Sortlen` of SHOW COLLATION.
pub fn sort_length(collation: &Collation) -> u64 {
    match collation.name {
        "utf8mb4_0900_ai_ci" | "utf8mb4_0900_as_ci" | "utf8mb4_0900_as_cs" => 0,
        "gb18030_chinese_ci" => 2,
        "gb18030_unicode_520_ci" => 8,
        name if collation.charset.is_unicode() && !name.ends_with("_bin") && !name.ends_with("_general_ci") => 8,
        _ => 1,
    }
}

/// The static privileges as SHOW PRIVILEGES tells of them: name, what they are for, comment.
pub const PRIVILEGES: &[(&str, &str, &str)] = &[
    ("Alter", "Tables", "To alter the table"),
    ("Alter routine", "Functions,Procedures", "To alter or drop stored functions/procedures"),
    ("Create", "Databases,Tables,Indexes", "To create new databases and tables"),
    ("Create routine", "Databases", "To use CREATE FUNCTION/PROCEDURE"),
    ("Create role", "Server Admin", "To create new roles"),
    ("Create temporary tables", "Databases", "To use CREATE TEMPORARY TABLE"),
    ("Create view", "Tables", "To create new views"),
    ("Create user", "Server Admin", "To create new users"),
    ("Delete", "Tables", "To delete existing rows"),
    ("Drop", "Databases,Tables", "To drop databases, tables, and views"),
    ("Drop role", "Server Admin", "To drop roles"),
    ("Event", "Server Admin", "To create, alter, drop and execute events"),
    ("Execute", "Functions,Procedures", "To execute stored routines"),
    ("File", "File access on server", "To read and write files on the server"),
    ("Grant option", "Databases,Tables,Functions,Procedures", "To give to other users those privileges you possess"),
    ("Index", "Tables", "To create or drop indexes"),
    ("Insert", "Tables", "To insert data into tables"),
    ("Lock tables", "Databases", "To use LOCK TABLES (together with SELECT privilege)"),
    ("Process", "Server Admin", "To view the plain text of currently executing queries"),
    ("Proxy", "Server Admin", "To make proxy user possible"),
    ("References", "Databases,Tables", "To have references on tables"),
    ("Reload", "Server Admin", "To reload or refresh tables, logs and privileges"),
    ("Replication client", "Server Admin", "To ask where the slave or master servers are"),
    ("Replication slave", "Server Admin", "To read binary log events from the master"),
    ("Select", "Tables", "To retrieve rows from table"),
    ("Show databases", "Server Admin", "To see all databases with SHOW DATABASES"),
    ("Show view", "Tables", "To see views with SHOW CREATE VIEW"),
    ("Shutdown", "Server Admin", "To shut down the server"),
    ("Super", "Server Admin", "To use KILL thread, SET GLOBAL, CHANGE MASTER, etc."),
    ("Trigger", "Tables", "To use triggers"),
    ("Create tablespace", "Server Admin", "To create/alter/drop tablespaces"),
    ("Update", "Tables", "To update existing rows"),
    ("Usage", "Server Admin", "No privileges - allow connect only"),
];

/// Name and value of the variables that are true here, as SHOW VARIABLES shows them.
pub fn variable_rows(state: &SessionState, global: bool) -> Vec<Vec<Value>> {
    let globals = state.instance.globals();
    let mut rows = Vec::new();
    let named = variables::all().map(|id| (id.definition().name, id)).chain(variables::also_shown());
    for (name, id) in named {
        let definition = id.definition();
        if definition.effect == Effect::Ignored || global && definition.scope == Scope::SessionOnly {
            continue;
        }
        let value = match definition.scope {
            Scope::SessionOnly => match state.session_only(definition.name) {
                Some(Value::UInt(n)) => Some(n.to_string()),
                Some(Value::Double(d)) => Some(format!("{d:.6}")),
                Some(Value::Text(text)) => Some(text.to_string()),
                _ => variables::show(id, state.variables.get(id)),
            },
            Scope::Both if !global => variables::show(id, state.variables.get(id)),
            _ => match state.global_only(definition.name) {
                Some(Value::Text(text)) => Some(text.to_string()),
                _ => variables::show(id, globals.get(id)),
            },
        };
        // SHOW VARIABLES prints NULL as an empty string, but for the few that are NULL to say "refused".
        let value = match value {
            Some(text) => t(text),
            None if definition.name == "secure_file_priv" => t("NULL"),
            None => t(""),
        };
        rows.push(vec![t(name), value]);
    }
    rows.sort_by(|a, b| a[0].as_str().cmp(&b[0].as_str()));
    rows
}

/// Name and value of every counter: with `global` of the whole server, or the session's own where it has one.
pub fn status_rows(state: &SessionState, global: bool) -> Vec<Vec<Value>> {
    let instance = &state.instance;
    let all = instance.all_counted();
    let counted = all.all(if global { &all } else { state.process.status() });
    let mut rows: Vec<(String, String)> = counted.map(|(name, n)| (name.to_owned(), n.to_string())).collect();
    rows.extend(NEVER.iter().map(|name| ((*name).to_owned(), "0".to_owned())));
    // All tables are open as long as they are there.
    let catalog = instance.database().catalog();
    let tables: usize = catalog.schemas().iter().map(|schema| catalog.tables(&schema.name).len()).sum();
    rows.push(("Open_tables".into(), tables.to_string()));
    rows.push(("Open_table_definitions".into(), tables.to_string()));
    rows.push(("Prepared_stmt_count".into(), instance.prepared_statements().load(Ordering::Relaxed).to_string()));
    rows.push(("Max_used_connections_time".into(), information_schema::wall_clock(state, instance.max_used_at()).format(0)));
    let connected = instance.processes().len() as u64;
    rows.push(("Threads_connected".into(), connected.to_string()));
    let running = instance.processes().all().iter().filter(|p| !matches!(p.snapshot().command, "Sleep" | "Daemon")).count();
    rows.push(("Threads_running".into(), running.to_string()));
    rows.push(("Threads_cached".into(), "0".into()));
    rows.push(("Threads_created".into(), all.get(StatusCounter::Connections).to_string()));
    rows.push(("Uptime".into(), instance.uptime_seconds().to_string()));
    rows.push(("Uptime_since_flush_status".into(), instance.seconds_since_flush().to_string()));
    rows.push(("Performance_schema_digest_lost".into(), instance.digests().lost().to_string()));
    rows.extend(tls::rows(state));
    // No pages are dumped or loaded, and the pool has one size for as long as the server runs.
    rows.push(("Innodb_buffer_pool_dump_status".into(), "Dumping of buffer pool not started".into()));
    rows.push(("Innodb_buffer_pool_load_status".into(), "Loading of buffer pool not started".into()));
    rows.push(("Innodb_buffer_pool_resize_status".into(), String::new()));
    rows.extend(parallel_counters(state).into_iter().map(|(name, n)| (name, n.to_string())));
    rows.extend(semi_sync_rows(state));
    rows.extend(engine_counters(state).into_iter().map(|(name, n)| (name, n.to_string())));
    rows.sort();
    rows.dedup_by(|a, b| a.0 == b.0);
    rows.into_iter().map(|(name, value)| vec![t(name), t(value)]).collect()
}

/// Semi-synchronous replication, under both names that MySQL has had for it; times in microseconds.
fn semi_sync_rows(state: &SessionState) -> Vec<(String, String)> {
    let status = state.instance.database().binlog().map(|binlog| binlog.semi_sync().status()).unwrap_or_default();
    let average = |sum: u64, count: u64| sum.checked_div(count).unwrap_or(0);
    let counters = [
        ("clients", status.clients),
        // MySQL does not measure these any more either.
        ("net_avg_wait_time", 0),
        ("net_wait_time", 0),
        ("net_waits", status.net_waits),
        ("no_times", status.no_times),
        ("no_tx", status.no_tx),
        ("timefunc_failures", 0),
        ("tx_avg_wait_time", average(status.tx_wait_time, status.tx_waits)),
        ("tx_wait_time", status.tx_wait_time),
        ("tx_waits", status.tx_waits),
        // Commits wait in the order of the log.
        ("wait_pos_backtraverse", 0),
        ("wait_sessions", status.wait_sessions),
        ("yes_tx", status.yes_tx),
    ];
    let values = counters.iter().map(|(name, count)| (*name, count.to_string()));
    let values: Vec<(&str, String)> = values.chain([("status", if status.on { "ON" } else { "OFF" }.to_owned())]).collect();
    let named = |role: &'static str| values.iter().map(move |(name, value)| (format!("Rpl_semi_sync_{role}_{name}"), value.clone()));
    let acknowledges = state.instance.replica().and_then(|replica| replica.status()).is_some_and(|status| status.semi_sync);
    let replica = |role| (format!("Rpl_semi_sync_{role}_status"), if acknowledges { "ON" } else { "OFF" }.to_owned());
    named("source").chain(named("master")).chain(["replica", "slave"].map(replica)).collect()
}

/// Parallel queries: what runs, what was refused, why statements stayed on one thread.
fn parallel_counters(state: &SessionState) -> Vec<(String, u64)> {
    let queries = state.instance.queries();
    let (workers, memory) = (queries.workers(), queries.memory());
    let mut counters: Vec<(String, u64)> = SerialReason::ALL.iter().map(|&reason| (format!("PQ_serial_{}", reason.name()), workers.serial(reason))).collect();
    let columns = queries.column_cache_usage();
    counters.extend([
        ("Highkey_column_cache_bytes".into(), columns.bytes),
        ("Highkey_column_cache_hits".into(), columns.hits),
        ("Highkey_column_cache_misses".into(), columns.misses),
        ("Highkey_column_cache_skips".into(), columns.skips),
        ("Highkey_report_gave_way".into(), queries.give_way().times()),
        ("Highkey_report_rest_us".into(), queries.give_way().rested_us()),
        ("Highkey_session_delay_us".into(), queries.give_way().delay_us()),
        ("PQ_memory_refused".into(), memory.refused),
        ("PQ_memory_used".into(), memory.bytes as u64),
        ("PQ_stmt_executed".into(), workers.statements()),
        ("PQ_temp_used".into(), queries.temp_bytes()),
        ("PQ_threads_refused".into(), workers.refused()),
        ("PQ_threads_running".into(), workers.running() as u64),
    ]);
    counters
}

/// What statements wait for, as status variables name it.
const WAITS: &[(WaitKind, &str)] = &[
    (WaitKind::Latch, "latch"),
    (WaitKind::RowLock, "row_lock"),
    (WaitKind::TableLock, "table_lock"),
    (WaitKind::Log, "log"),
    (WaitKind::PageRead, "page_read"),
    (WaitKind::PageWrite, "page_write"),
];

/// What the storage engine counts, under InnoDB's names where it has one; what all trees together count as `Highkey_splits_append`
/// and so on.
pub fn engine_counters(state: &SessionState) -> Vec<(String, u64)> {
    let stats = state.instance.database().engine().stats();
    let counter = |name: &str| stats.counter(name);
    let data_pages = stats.frames - stats.frames_free;
    let (uses, opened) = state.instance.database().table_opens();
    let table_waits = stats.waits[WaitKind::TableLock as usize].count;
    let pages = [
        ("Innodb_page_size", PAGE_BYTES),
        ("Innodb_buffer_pool_pages_total", stats.frames),
        ("Innodb_buffer_pool_pages_free", stats.frames_free),
        ("Innodb_buffer_pool_pages_data", data_pages),
        ("Innodb_buffer_pool_pages_dirty", stats.frames_dirty),
        ("Innodb_buffer_pool_pages_misc", 0),
        ("Innodb_buffer_pool_pages_flushed", counter("pages_written")),
        ("Innodb_buffer_pool_bytes_data", data_pages * PAGE_BYTES),
        ("Innodb_buffer_pool_bytes_dirty", stats.frames_dirty * PAGE_BYTES),
        ("Innodb_buffer_pool_read_requests", counter("page_requests")),
        ("Innodb_buffer_pool_reads", counter("pages_read")),
        ("Innodb_buffer_pool_write_requests", counter("page_changes")),
        // By the system, at the engine's word: into its memory, not the pool's.
        ("Innodb_buffer_pool_read_ahead", counter("pages_read_ahead")),
        ("Innodb_buffer_pool_read_ahead_evicted", 0),
        ("Innodb_buffer_pool_read_ahead_rnd", 0),
        ("Innodb_buffer_pool_wait_free", counter("frame_waits")),
        ("Innodb_pages_created", counter("pages_new")),
        ("Innodb_pages_read", counter("pages_read")),
        ("Innodb_pages_written", counter("pages_written")),
        ("Innodb_dblwr_pages_written", counter("doublewrite_pages")),
        ("Innodb_dblwr_writes", counter("doublewrite_writes")),
        // As InnoDB has it, of pages and log together.
        ("Innodb_data_reads", counter("pages_read")),
        ("Innodb_data_read", counter("pages_read") * PAGE_BYTES),
        ("Innodb_data_writes", counter("data_writes") + counter("doublewrite_writes") + counter("log_writes")),
        ("Innodb_data_written", (counter("pages_written") + counter("doublewrite_pages")) * PAGE_BYTES + counter("log_bytes")),
        ("Innodb_data_fsyncs", counter("data_fsyncs") + counter("log_fsyncs")),
        ("Innodb_data_pending_reads", counter("page_reads_pending")),
        ("Innodb_data_pending_writes", counter("page_writes_pending") + counter("log_writes_pending")),
        ("Innodb_data_pending_fsyncs", counter("data_fsyncs_pending") + counter("log_fsyncs_pending")),
        ("Innodb_os_log_pending_writes", counter("log_writes_pending")),
        ("Innodb_os_log_pending_fsyncs", counter("log_fsyncs_pending")),
        ("Innodb_num_open_files", stats.page_files_open),
        ("Innodb_log_waits", counter("log_buffer_waits")),
        ("Innodb_log_write_requests", counter("log_records")),
        ("Innodb_log_writes", counter("log_writes")),
        ("Innodb_row_lock_time_avg", (stats.row_lock_time_us / 1000).checked_div(stats.row_lock_waits).unwrap_or(0)),
        // Every use of a table is a metadata lock, had at once or waited for.
        ("Table_locks_waited", table_waits),
        ("Table_locks_immediate", uses.saturating_sub(table_waits)),
        // A definition is opened when it is made or when the server starts.
        ("Table_open_cache_hits", uses),
        ("Table_open_cache_misses", opened),
        ("Opened_tables", opened),
        ("Opened_table_definitions", opened),
    ];
    let named = [
        ("Innodb_row_lock_waits", stats.row_lock_waits),
        ("Innodb_row_lock_current_waits", stats.row_lock_current_waits),
        ("Innodb_row_lock_time", stats.row_lock_time_us / 1000),
        ("Innodb_row_lock_time_max", stats.row_lock_time_us_max / 1000),
        ("Innodb_deadlocks", stats.deadlocks),
        ("Innodb_row_lock_timeouts", stats.lock_timeouts),
        ("Innodb_history_list_length", stats.history_length),
        ("Highkey_open_transactions", stats.open_transactions),
        ("Highkey_records_purged", stats.records_purged),
        ("Highkey_purge_disk_bytes", stats.purge_scratch_bytes),
        ("Highkey_versions", stats.versions),
        ("Highkey_version_memory_bytes", stats.version_bytes),
        ("Highkey_version_disk_bytes", stats.version_scratch_bytes),
        ("Highkey_page_splits", stats.splits),
        ("Innodb_os_log_written", stats.counter("log_bytes")),
        ("Innodb_os_log_fsyncs", stats.counter("log_fsyncs")),
        ("Highkey_commits_by_others_fsync", stats.counter("group_commits")),
    ];
    let binlog = state.instance.database().binlog().map(|binlog| binlog.written()).unwrap_or_default();
    let binlog = [
        ("Binlog_commits", binlog.transactions),
        // The log brings the events to the disk, and the binary log's files follow: its groups are the binary log's.
        ("Binlog_group_commits", counter("binlog_groups")),
        ("Highkey_binlog_bytes", binlog.bytes),
    ];
    let cost = &stats.commits_cost;
    let commits = [
        ("Highkey_commit_groups", cost.group_size.count),
        ("Highkey_commit_group_commits", cost.group_size.sum),
        ("Highkey_commit_group_size_max", cost.group_size.max),
        ("Highkey_commit_sync_us", cost.sync_us.sum),
        ("Highkey_commit_sync_us_max", cost.sync_us.max),
        ("Highkey_commit_wait_count", cost.wait_us.count),
        ("Highkey_commit_wait_us", cost.wait_us.sum),
        ("Highkey_commit_wait_us_max", cost.wait_us.max),
        ("Highkey_commit_binlog_count", cost.binlog_bytes.count),
        ("Highkey_commit_binlog_bytes", cost.binlog_bytes.sum),
        ("Highkey_commit_binlog_bytes_max", cost.binlog_bytes.max),
    ];
    let named = named.into_iter().chain(pages).chain(binlog).chain(commits);
    let waits = WAITS.iter().flat_map(|(kind, name)| {
        let sum = stats.waits[*kind as usize];
        [(format!("Highkey_{name}_wait_count"), sum.count), (format!("Highkey_{name}_wait_us"), sum.nanos / 1000)]
    });
    let trees = stats.trees.all().into_iter().map(|(name, count)| (format!("Highkey_{name}"), count));
    named.map(|(name, count)| (name.to_owned(), count)).chain(waits).chain(trees).collect()
}

/// A row of the process list.
pub struct ProcessRow(crate::session::ProcessSnapshot);

impl ProcessRow {
    /// `full`: the whole statement instead of its first 100 characters.
    pub fn into_row(self, full: bool) -> Vec<Value> {
        let p = self.0;
        let info = match p.info {
            Some(text) if full => Value::Text(text),
            Some(text) => t(text.chars().take(100).collect::<String>()),
            None => Value::Null,
        };
        vec![
            Value::UInt(p.id),
            t(p.user),
            t(p.host),
            p.db.map_or(Value::Null, t),
            t(p.command),
            Value::Int(p.seconds as i64),
            t(p.state),
            info,
        ]
    }
}

/// All connections by id that the session may see.
pub fn processes(state: &SessionState) -> Vec<ProcessRow> {
    state.instance.processes().all().iter().map(|p| p.snapshot()).filter(|p| sees_process(state, &p.user)).map(ProcessRow).collect()
}

/// The connections of a user: one's own, or all with PROCESS.
pub fn sees_process(state: &SessionState, user: &str) -> bool {
    user == state.client.user || state.check_global(Privileges::PROCESS, "PROCESS").is_ok()
}
