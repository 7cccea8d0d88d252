//! What the server waits for, reads and writes, and keeps in memory: the summaries of waits, files, sockets and memory of performance_schema.
//!
//! Names are MySQL's where there is the same thing here, else ours, with `highkey` where MySQL has the part of the server. Files are counted and timed where they are
//! read and written (storage's `disk/usage.rs`), waits where statements wait; of the memory there is what has a size of its own.

use highkey_table::{FileUsage, IoSum, LatchMode, PAGE_BYTES, RowUses, WaitKind, WaitSum};
use highkey_types::Value;

use super::rows::{all_wanted_tables, t, u};
use crate::plan::Wanted;
use crate::session::{SessionState, StatusCounter};

/// What `waits` tells of, and whether it is timed.
pub(super) const INSTRUMENTS: [(&str, bool); 15] = [
    ("wait/io/file/innodb/innodb_data_file", true),
    ("wait/io/file/innodb/innodb_dblwr_file", true),
    ("wait/io/file/innodb/innodb_log_file", true),
    ("wait/io/file/innodb/innodb_temp_file", true),
    ("wait/io/file/sql/binlog", true),
    ("wait/io/file/sql/binlog_index", true),
    ("wait/io/file/sql/misc", true),
    ("wait/io/log/highkey/commit", true),
    ("wait/io/page/highkey/read", true),
    ("wait/io/page/highkey/write", true),
    ("wait/io/table/sql/handler", false),
    ("wait/lock/metadata/sql/mdl", true),
    ("wait/lock/row/highkey/row", true),
    ("wait/synch/sxlock/innodb/buf_block_lock", true),
    ("wait/synch/sxlock/innodb/index_tree_rw_lock", true),
];

/// What a file is, by its name.
fn event_of_file(name: &str) -> &'static str {
    match name.split('.').next().unwrap_or(name) {
        "binlog" if name.starts_with("binlog.index") => "wait/io/file/sql/binlog_index",
        "binlog" => "wait/io/file/sql/binlog",
        "pages" => "wait/io/file/innodb/innodb_data_file",
        "doublewrite" => "wait/io/file/innodb/innodb_dblwr_file",
        "wal" | "control" => "wait/io/file/innodb/innodb_log_file",
        "versions" | "purge" => "wait/io/file/innodb/innodb_temp_file",
        _ => "wait/io/file/sql/misc",
    }
}

/// Files with what was done with them, by the name of the event.
fn files(state: &SessionState) -> Vec<(&'static str, FileUsage)> {
    let usage = state.instance.database().engine().disk().usage();
    usage.files.into_iter().map(|file| (event_of_file(&file.name), file)).collect()
}

/// The same summed up, those that are gone too.
fn files_by_event(state: &SessionState) -> Vec<(&'static str, FileUsage)> {
    let usage = state.instance.database().engine().disk().usage();
    let mut sums: Vec<(&'static str, FileUsage)> = Vec::new();
    for file in usage.files.into_iter().chain(usage.gone) {
        let event = event_of_file(&file.name);
        match sums.iter_mut().find(|(other, _)| *other == event) {
            Some((_, sum)) => {
                sum.reads = sum.reads.with(file.reads);
                sum.writes = sum.writes.with(file.writes);
                sum.syncs = sum.syncs.with(file.syncs);
            }
            None => sums.push((event, file)),
        }
    }
    sums
}

fn all_calls(file: &FileUsage) -> IoSum {
    file.reads.with(file.writes).with(file.syncs)
}

/// Count, then sum, least, average and greatest time.
fn timed(sum: IoSum) -> [Value; 5] {
    let picos = |nanos: u64| u(nanos.saturating_mul(1000));
    [u(sum.calls), picos(sum.nanos), picos(sum.nanos_min), picos(sum.nanos / sum.calls.max(1)), picos(sum.nanos_max)]
}

fn file_cells(file: &FileUsage) -> Vec<Value> {
    let bytes = |sum: IoSum| Value::Int(i64::try_from(sum.bytes).unwrap_or(i64::MAX));
    let mut cells = timed(all_calls(file)).to_vec();
    cells.extend(timed(file.reads));
    cells.push(bytes(file.reads));
    cells.extend(timed(file.writes));
    cells.push(bytes(file.writes));
    cells.extend(timed(file.syncs));
    cells
}

fn path(state: &SessionState, name: &str) -> Value {
    match state.instance.database().engine().disk().directory() {
        Some(directory) => t(directory.join(name).to_string_lossy()),
        None => t(name),
    }
}

/// performance_schema.file_instances.
pub(super) fn file_instances(state: &SessionState) -> Vec<Vec<Value>> {
    files(state).iter().map(|(event, file)| vec![path(state, &file.name), t(event), u(file.open)]).collect()
}

/// performance_schema.file_summary_by_instance.
pub(super) fn file_summary(state: &SessionState) -> Vec<Vec<Value>> {
    let row = |(number, (event, file)): (usize, &(&'static str, FileUsage))| {
        let mut row = vec![path(state, &file.name), t(event), u(number as u64 + 1)];
        row.extend(file_cells(file));
        row
    };
    files(state).iter().enumerate().map(row).collect()
}

/// performance_schema.file_summary_by_event_name.
pub(super) fn file_events(state: &SessionState) -> Vec<Vec<Value>> {
    let row = |(event, file): &(&'static str, FileUsage)| {
        let mut row = vec![t(event)];
        row.extend(file_cells(file));
        row
    };
    files_by_event(state).iter().map(row).collect()
}

/// performance_schema.events_waits_summary_global_by_event_name: what is done with files and tables, and what statements have waited for. The shortest and longest
/// are known of files only.
pub(super) fn waits(state: &SessionState) -> Vec<Vec<Value>> {
    let stats = state.instance.database().engine().stats();
    let of_kind = |kind: WaitKind| stats.waits[kind as usize];
    let latches = |smo: bool| {
        let mut sum = WaitSum::default();
        for latch in stats.latch_waits.iter().filter(|latch| (latch.place.mode == LatchMode::Smo) == smo) {
            sum.count += latch.sum.count;
            sum.nanos += latch.sum.nanos;
        }
        sum
    };
    let uses = all_wanted_tables(state, &Wanted::default()).iter().map(|table| super::usage::sum(table)).fold(RowUses::default(), |sum, uses| std::array::from_fn(|i| sum[i] + uses[i]));
    let mut events: Vec<(&str, IoSum)> = files_by_event(state).iter().map(|(event, file)| (*event, all_calls(file))).collect();
    let waited = |sum: WaitSum| IoSum { calls: sum.count, nanos: sum.nanos, ..IoSum::default() };
    events.extend([
        ("wait/io/table/sql/handler", IoSum { calls: uses.iter().sum(), ..IoSum::default() }),
        ("wait/lock/metadata/sql/mdl", waited(of_kind(WaitKind::TableLock))),
        ("wait/lock/row/highkey/row", waited(of_kind(WaitKind::RowLock))),
        ("wait/synch/sxlock/innodb/buf_block_lock", waited(latches(false))),
        ("wait/synch/sxlock/innodb/index_tree_rw_lock", waited(latches(true))),
        ("wait/io/log/highkey/commit", waited(of_kind(WaitKind::Log))),
        ("wait/io/page/highkey/read", waited(of_kind(WaitKind::PageRead))),
        ("wait/io/page/highkey/write", waited(of_kind(WaitKind::PageWrite))),
    ]);
    events.sort_by_key(|(event, _)| *event);
    let row = |(event, sum): (&str, IoSum)| {
        let mut row = vec![t(event)];
        row.extend(timed(sum));
        row
    };
    events.into_iter().map(row).collect()
}

/// performance_schema.socket_summary_by_event_name: the bytes that clients have sent and got. Calls are not counted.
pub(super) fn sockets(state: &SessionState) -> Vec<Vec<Value>> {
    let counted = state.instance.all_counted();
    let zeros = |count: usize| vec![u(0_u64); count];
    let mut row = vec![t("wait/io/socket/sql/client_connection")];
    row.extend(zeros(10));
    row.push(u(counted.get(StatusCounter::BytesReceived)));
    row.extend(zeros(5));
    row.push(u(counted.get(StatusCounter::BytesSent)));
    row.extend(zeros(5));
    vec![row]
}

/// performance_schema.memory_summary_global_by_event_name: what has a size of its own, now. What it was before is not kept.
pub(super) fn memory(state: &SessionState) -> Vec<Vec<Value>> {
    let stats = state.instance.database().engine().stats();
    let queries = state.instance.queries();
    let sizes = [
        ("memory/highkey/column_cache", queries.column_cache_usage().bytes),
        ("memory/highkey/parallel_queries", queries.memory().bytes as u64),
        ("memory/highkey/row_versions", stats.version_bytes),
        ("memory/innodb/buf_buf_pool", stats.frames * PAGE_BYTES),
    ];
    let row = |(event, bytes): (&str, u64)| {
        let (count, signed) = (u64::from(bytes > 0), i64::try_from(bytes).unwrap_or(i64::MAX));
        let mut row = vec![t(event), u(count), u(0_u64), u(bytes), u(0_u64)];
        row.extend([0, count as i64, count as i64, 0, signed, signed].map(Value::Int));
        row
    };
    sizes.into_iter().map(row).collect()
}
