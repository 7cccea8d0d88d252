//! Counters of everything the lower half does; plain relaxed atomics, read by status reports.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters since the start.
        #[derive(Default, Debug)]
        pub struct Counters { $($(#[$doc])* pub $name: Counter,)* }
        impl Counters {
            /// (name, value) of all.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)*]
            }
        }
    };
}

counters! {
    log_records, log_bytes, log_writes,
    /// fdatasync calls on the log.
    log_fsyncs,
    /// Appenders that found the log buffer full.
    log_buffer_waits,
    /// Writers that found the log full and had to wait for a checkpoint.
    log_room_waits,
    commit_waits,
    /// Commits made durable by another one's fdatasync.
    group_commits,
    /// Groups of commits that one leader has written, with binary log events among them.
    binlog_groups,
    checkpoints,
    pages_read, pages_written,
    /// Writes of one or more pages beside each other.
    data_writes, data_fsyncs, doublewrite_pages, doublewrite_writes,
    pages_new, evictions,
    /// Pages that the foreground wrote because no frame was free.
    foreground_writes,
    /// Fixes that found no free frame.
    frame_waits,
    latch_waits, latch_spins, smo_waits, optimistic_waits,
    pages_allocated, pages_freed, extents_grown,
}
