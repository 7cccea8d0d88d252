//! What an engine is opened with.

use std::time::Duration;

/// Options of [`crate::Engine::open`]; sizes are bytes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for page frames (`innodb_buffer_pool_size`); at least [`Options::MIN_FRAMES`] pages are used.
    pub buffer_pool_bytes: u64,
    /// Memory for older versions of rows, beyond which they are in scratch files; `None`: a quarter of `buffer_pool_bytes`, at least 16 MiB.
    pub version_bytes: Option<u64>,
    /// The log between the oldest unwritten page change and the end is kept below this (`innodb_redo_log_capacity`).
    pub redo_log_capacity: u64,
    /// Bytes of log that one open transaction may pin beyond the capacity before writers get `LogFull`.
    pub pinned_log_max: u64,
    /// Size of one log file.
    pub log_segment_bytes: u64,
    /// Bytes of log kept in memory before appenders wait for a write.
    pub log_buffer_bytes: usize,
    /// `innodb_flush_log_at_trx_commit`: 1 durable at commit, 2 written at commit, 0 neither; 0 and 2 are flushed
    /// once a second. Changed later through `Wal::set_flush_level`.
    pub flush_log_at_commit: u8,
    /// Torn-page protection of pages written in place.
    pub doublewrite: bool,
    /// `innodb_lock_wait_timeout`'s default for a transaction.
    pub lock_wait_timeout: Duration,
    /// `innodb_deadlock_detect`.
    pub deadlock_detect: bool,
    /// Percent of each page that a bulk load fills, 10 to 100; 100 leaves 1/16 (`innodb_fill_factor`).
    pub fill_factor: u8,
    /// Pages a second that background writing may spend while nothing presses (`innodb_io_capacity`).
    pub io_capacity: u32,
    /// The log's files are kept from the first one there is until `Engine::release_log`: something beside the database is written behind
    /// from the log.
    pub hold_log: bool,
    /// Cleaner, checkpointer and log-flusher threads; without them the owner calls the steps (simulation).
    pub background: bool,
    /// After a failed log or data write: abort the process, or (tests) answer everything with `Error::Stopped`.
    pub abort_on_fatal: bool,
}

impl Options {
    /// The smallest buffer pool, in pages: what the deepest operation latches at once, with room to spare.
    pub const MIN_FRAMES: usize = 64;
}

impl Default for Options {
    fn default() -> Options {
        Options {
            buffer_pool_bytes: 128 << 20,
            version_bytes: None,
            redo_log_capacity: 256 << 20,
            pinned_log_max: 64 << 30,
            log_segment_bytes: 16 << 20,
            log_buffer_bytes: 16 << 20,
            flush_log_at_commit: 1,
            doublewrite: true,
            lock_wait_timeout: Duration::from_secs(50),
            deadlock_detect: true,
            fill_factor: 100,
            io_capacity: 2000,
            hold_log: false,
            background: true,
            abort_on_fatal: true,
        }
    }
}
