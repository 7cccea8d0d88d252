//! The engine's counters in one value, for SHOW STATUS and metrics.

use crate::btree::TreeCounters;
use crate::sync::{AtomicU64, Ordering};
use crate::txn::System;
use crate::waits::{LatchWaits, WaitKind, WaitSum};
use crate::wal::CommitAnatomy;

/// Counters since the start unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub commits: u64,
    pub rollbacks: u64,
    pub rows_inserted: u64,
    pub rows_updated: u64,
    pub rows_deleted: u64,
    pub rows_read: u64,
    /// Transactions with an id that have not ended, now.
    pub open_transactions: u64,
    /// Snapshots that live, now.
    pub open_snapshots: u64,
    /// Waits for a row lock: begun, going on now, and their time in microseconds.
    pub row_lock_waits: u64,
    pub row_lock_current_waits: u64,
    pub row_lock_time_us: u64,
    pub row_lock_time_us_max: u64,
    pub deadlocks: u64,
    pub lock_timeouts: u64,
    /// Keys with explicit locks, now.
    pub locked_keys: u64,
    /// Gap and range locks: pairs of a transaction and an index.
    pub locked_ranges: u64,
    /// Changes that purge has not dealt with, now.
    pub history_length: u64,
    /// Delete-marked records that purge took out of their pages.
    pub records_purged: u64,
    /// Older versions, now: how many, how many of them are on disk (until the file that they are in is of no use to anybody), their memory and
    /// the scratch files in bytes.
    pub versions: u64,
    pub versions_spilled: u64,
    pub version_bytes: u64,
    pub version_scratch_bytes: u64,
    /// What purge has to do, as far as it is not in memory, now: bytes of scratch files.
    pub purge_scratch_bytes: u64,
    /// Unfinished transactions of the last crash that were undone.
    pub losers_undone: u64,
    /// Splits of every kind.
    pub splits: u64,
    /// What all trees counted together, those dropped since included.
    pub trees: TreeCounters,
    /// Page frames, now: all, free, holding changes not yet written.
    pub frames: u64,
    pub frames_free: u64,
    pub frames_dirty: u64,
    /// Page files that are open, now.
    pub page_files_open: u64,
    /// The number that the next transaction gets, and the one that purge has come to, in the order of commits: older ones have left it nothing to do.
    pub next_txn_id: u64,
    pub purged_txn_id: u64,
    /// The log's end, how far it has been written, how far it is durable, and what the last checkpoint needs no more; as byte offsets.
    pub log_end: u64,
    pub log_written: u64,
    pub log_durable: u64,
    pub log_checkpoint: u64,
    /// What statements waited for, by [`WaitKind`], and for which latches, the longest first.
    pub waits: [WaitSum; WaitKind::ALL.len()],
    pub latch_waits: Vec<LatchWaits>,
    pub commits_cost: CommitAnatomy,
    /// What log, pages and space count, by name.
    pub counters: Vec<(&'static str, u64)>,
}

impl Stats {
    pub(crate) fn of(system: &System) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (counters, locks, trees) = (&system.counters, system.locks.stats(), system.tree_counters());
        let (frames, free, dirty) = system.store.pool.usage();
        Stats {
            commits: system.commits.count(),
            rollbacks: load(&counters.rollbacks),
            rows_inserted: load(&counters.rows_inserted),
            rows_updated: load(&counters.rows_updated),
            rows_deleted: load(&counters.rows_deleted),
            rows_read: load(&counters.rows_read),
            open_transactions: system.locks.owners.len() as u64,
            open_snapshots: system.views.len() as u64,
            row_lock_waits: locks.waits,
            row_lock_current_waits: locks.current_waits,
            row_lock_time_us: locks.wait_micros,
            row_lock_time_us_max: locks.wait_micros_max,
            deadlocks: locks.deadlocks,
            lock_timeouts: locks.timeouts,
            locked_keys: locks.explicit_keys,
            locked_ranges: locks.ranges,
            history_length: system.history.len(),
            records_purged: load(&system.history.removed),
            versions: system.versions.len(),
            versions_spilled: system.versions.spilled(),
            version_bytes: system.versions.memory() as u64,
            version_scratch_bytes: system.scratch.len(),
            purge_scratch_bytes: system.history.space.scratch_bytes(),
            losers_undone: load(&counters.losers_undone),
            splits: trees.splits(),
            trees,
            frames: frames as u64,
            frames_free: free as u64,
            frames_dirty: dirty as u64,
            page_files_open: system.store.pool.files().open_count() as u64,
            next_txn_id: system.status.next_id().0,
            purged_txn_id: system.history.next_id().map_or(u64::MAX, |id| id.0).min(system.status.low_water().0),
            log_end: system.store.wal.end().0,
            log_written: system.store.wal.written().0,
            log_durable: system.store.wal.durable().0,
            log_checkpoint: system.store.wal.checkpoint().0,
            waits: system.waits.get(),
            latch_waits: system.waits.latches(),
            commits_cost: system.store.wal.anatomy.get(),
            counters: system.store.counters().all(),
        }
    }

    /// A counter of `counters` by its name; 0 for none of that name.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(n, _)| *n == name).map_or(0, |(_, count)| *count)
    }
}
