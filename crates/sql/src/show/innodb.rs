//! SHOW ENGINE INNODB STATUS: InnoDB's sections in its order and words, as far as there is something true to say in them; then what is counted here only.

use std::fmt::Write as _;
use std::time::SystemTime;

use highkey_table::{PAGE_BYTES, WaitKind, WaitSum};
use highkey_types::MySqlError;

use super::facts;
use crate::execute;
use crate::information_schema;
use crate::session::{SessionState, StatusCounter};

/// Classes of latches that are listed.
const LATCHES_SHOWN: usize = 10;

/// The monitor's text.
pub(super) fn monitor(state: &SessionState) -> Result<String, MySqlError> {
    let instance = &state.instance;
    let stats = instance.database().engine().stats();
    let counter = |name: &str| stats.counter(name);
    let line = "=".repeat(37);
    let now = information_schema::wall_clock(state, SystemTime::now()).format(0);
    let mut text = format!("\n{line}\n{now} INNODB MONITOR OUTPUT\n{line}\n");

    section(&mut text, "BACKGROUND THREAD");
    let _ = writeln!(text, "{} checkpoints, {} records purged, {} unfinished transactions undone", counter("checkpoints"), stats.records_purged, stats.losers_undone);

    section(&mut text, "SEMAPHORES");
    let _ = writeln!(text, "OS WAIT ARRAY INFO: reservation count {}", counter("latch_waits"));
    let _ = writeln!(text, "Mutex spin waits {}", counter("latch_spins"));
    let seconds = |sum: WaitSum| format!("{:.6} s{}", sum.nanos as f64 / 1e9, execute::counted(sum.count));
    for kind in WaitKind::ALL {
        let _ = writeln!(text, "{}: {}", execute::wait_name(kind), seconds(stats.waits[kind as usize]));
    }
    if !stats.latch_waits.is_empty() {
        let names = facts::index_names(state);
        text += "Latches waited for most:\n";
        for latch in stats.latch_waits.iter().take(LATCHES_SHOWN) {
            let _ = writeln!(text, "{}: {}", execute::latch_name(&names, latch), seconds(latch.sum));
        }
    }

    for (name, latest) in [("LATEST FOREIGN KEY ERROR", instance.last_foreign_key_error()), ("LATEST DETECTED DEADLOCK", instance.last_deadlock())] {
        if let Some(latest) = latest {
            section(&mut text, name);
            text += &latest;
        }
    }

    section(&mut text, "TRANSACTIONS");
    let idle = if stats.history_length == 0 { " but idle" } else { "" };
    let _ = writeln!(text, "Trx id counter {}", stats.next_txn_id);
    let _ = writeln!(text, "Purge done for trx's n:o < {} undo n:o < 0 state: running{idle}", stats.purged_txn_id);
    let _ = writeln!(text, "History list length {}", stats.history_length);
    let _ = writeln!(text, "Purge queue on disk: {} bytes", stats.purge_scratch_bytes);
    let _ = writeln!(text, "Older versions of rows: {}, {} on disk; {} bytes in memory, {} bytes on disk", stats.versions, stats.versions_spilled, stats.version_bytes, stats.version_scratch_bytes);
    text += "LIST OF TRANSACTIONS FOR EACH SESSION:\n";
    text += &information_schema::transactions_text(instance)?;

    section(&mut text, "FILE I/O");
    let writes = counter("data_writes") + counter("doublewrite_writes") + counter("log_writes");
    let fsyncs = counter("data_fsyncs") + counter("log_fsyncs");
    let _ = writeln!(text, "{} OS file reads, {writes} OS file writes, {fsyncs} OS fsyncs", counter("pages_read"));

    section(&mut text, "LOG");
    let log = [
        ("Log sequence number", stats.log_end),
        ("Log buffer assigned up to", stats.log_end),
        ("Log buffer completed up to", stats.log_end),
        ("Log written up to", stats.log_written),
        ("Log flushed up to", stats.log_durable),
        ("Last checkpoint at", stats.log_checkpoint),
    ];
    for (name, lsn) in log {
        let _ = writeln!(text, "{name:<29}{lsn}");
    }
    let _ = writeln!(text, "{} log i/o's done", counter("log_writes"));

    section(&mut text, "BUFFER POOL AND MEMORY");
    let pool = [
        ("Total large memory allocated", stats.frames * PAGE_BYTES),
        ("Buffer pool size  ", stats.frames),
        ("Free buffers      ", stats.frames_free),
        ("Database pages    ", stats.frames - stats.frames_free),
        ("Modified db pages ", stats.frames_dirty),
    ];
    for (name, n) in pool {
        let _ = writeln!(text, "{name} {n}");
    }
    let _ = writeln!(text, "Pages read {}, created {}, written {}", counter("pages_read"), counter("pages_new"), counter("pages_written"));

    section(&mut text, "ROW OPERATIONS");
    let (inside, queued) = instance.admission().load();
    let _ = writeln!(text, "{inside} queries inside InnoDB, {queued} queries in queue");
    let _ = writeln!(text, "{} read views open inside InnoDB", stats.open_snapshots);
    let _ = writeln!(text, "Process ID={}", std::process::id());
    let status = instance.all_counted();
    let _ = writeln!(
        text,
        "Number of rows inserted {}, updated {}, deleted {}, read {}",
        status.get(StatusCounter::InnodbRowsInserted),
        status.get(StatusCounter::InnodbRowsUpdated),
        status.get(StatusCounter::InnodbRowsDeleted),
        status.get(StatusCounter::InnodbRowsRead)
    );

    section(&mut text, "COUNTERS");
    for (name, value) in facts::engine_counters(state) {
        let _ = writeln!(text, "{name} {value}");
    }
    text += "----------------------------\nEND OF INNODB MONITOR OUTPUT\n============================\n";
    Ok(text)
}

fn section(text: &mut String, name: &str) {
    let line = "-".repeat(name.len());
    let _ = writeln!(text, "{line}\n{name}\n{line}");
}
