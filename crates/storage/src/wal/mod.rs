//! The write-ahead log. See README.md.

mod anatomy;
mod append;
mod control;
mod end;
mod follow;
mod group;
mod read;
mod record;
mod room;
mod segments;

#[cfg(all(test, feature = "shuttle"))]
mod schedules;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

pub use anatomy::{CommitAnatomy, HistogramBucket, HistogramReport};
pub(crate) use append::Draft;
pub(crate) use control::{Control, ControlFile};
pub(crate) use end::{Evidence, Remains};
pub use follow::LogFollower;
pub use group::DurableWait;
pub(crate) use group::Signal;
pub(crate) use record::{Parts, begin_part, end_part, prepare_extra, push_part, set_part_page};
pub use record::{Kind, Record};
pub use room::Urgency;

use crate::counters::Counters;
use crate::disk::Disk;
use crate::error::Result;
use crate::fatal::Fatal;
use crate::ids::Lsn;
use crate::options::Options;
use crate::sync::{Arc, AtomicU8, AtomicU64, AtomicUsize, Mutex, Ordering};
use append::Tail;
use group::Group;
use segments::Segments;

/// Where the log begins in a new database: after nothing, but not at 0, which means "none".
pub(crate) const FIRST_LSN: Lsn = Lsn(64);

/// The log. LSN = byte offset of a record's first byte in the endless stream.
pub struct Wal {
    fatal: Arc<Fatal>,
    counters: Arc<Counters>,
    buffer_max: AtomicUsize,
    segment_bytes: u64,
    capacity: AtomicU64,
    pinned_max: u64,
    level: AtomicU8,
    /// A commit whose record is behind this waits until it is durable.
    relaxed: Mutex<Lsn>,
    /// Appended bytes not yet taken by a leader.
    tail: Mutex<Tail>,
    /// Everything before is appended.
    end: AtomicU64,
    /// Everything before has been given to the operating system.
    written: AtomicU64,
    /// Everything before is durable.
    durable: AtomicU64,
    group: Mutex<Group>,
    segments: Mutex<Segments>,
    room: room::Room,
    followed: follow::Followed,
    pub(crate) anatomy: anatomy::Anatomy,
    /// Commits that have been written and not synced.
    unsynced_commits: AtomicU64,
}

impl Wal {
    /// Opens the log's files; the log is usable after `start_at` or, if there may be one, `resume_at` and `start`.
    pub(crate) fn open(disk: Arc<dyn Disk>, options: &Options, fatal: Arc<Fatal>, counters: Arc<Counters>) -> Result<Wal> {
        let segments = Segments::open(disk, options.log_segment_bytes)?;
        Ok(Wal {
            fatal,
            counters,
            buffer_max: AtomicUsize::new(options.log_buffer_bytes),
            segment_bytes: options.log_segment_bytes,
            capacity: AtomicU64::new(options.redo_log_capacity),
            pinned_max: options.pinned_log_max,
            level: AtomicU8::new(options.flush_log_at_commit),
            relaxed: Mutex::new(if options.flush_log_at_commit == 1 { Lsn::NONE } else { Lsn(u64::MAX) }),
            tail: Mutex::new(Tail::default()),
            end: AtomicU64::new(0),
            written: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            group: Mutex::new(Group::default()),
            segments: Mutex::new(segments),
            room: room::Room::default(),
            followed: follow::Followed::new(options.hold_log),
            anatomy: anatomy::Anatomy::default(),
            unsynced_commits: AtomicU64::new(0),
        })
    }

    /// A new log: appends begin at `end`.
    pub(crate) fn start_at(&self, end: Lsn) -> Result<()> {
        self.set_end(end);
        self.room.start(self, end)
    }

    /// Everything before `end` is durable, and there is nothing more.
    fn set_end(&self, end: Lsn) {
        self.tail.lock().base = end.0;
        for position in [&self.end, &self.written, &self.durable] {
            position.store(end.0, Ordering::SeqCst);
        }
    }

    /// The end of the log: the next record's LSN is at least this.
    pub fn end(&self) -> Lsn {
        Lsn(self.end.load(Ordering::SeqCst))
    }

    /// Everything before this has been given to the operating system.
    pub fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::SeqCst))
    }

    /// Everything before this is durable; the record that begins at `lsn` is durable when `lsn < durable()`.
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Bytes that may wait in memory (`innodb_log_buffer_size`).
    fn buffer_max(&self) -> usize {
        self.buffer_max.load(Ordering::Relaxed)
    }

    /// Holds from the next record on.
    pub fn set_buffer_max(&self, bytes: usize) {
        self.buffer_max.store(bytes, Ordering::Relaxed);
    }

    /// `innodb_flush_log_at_trx_commit`.
    pub fn set_flush_level(&self, level: u8) {
        let mut relaxed = self.relaxed.lock();
        if level != 1 {
            *relaxed = Lsn(u64::MAX);
        }
        self.level.store(level, Ordering::SeqCst);
        if level == 1 {
            // Whoever has seen the level before has appended its record.
            *relaxed = (*relaxed).min(self.end());
        }
    }

    pub fn flush_level(&self) -> u8 {
        self.level.load(Ordering::SeqCst)
    }

    /// Whether every commit that has been waited for is durable, by whatever level.
    pub fn commits_are_durable(&self) -> bool {
        *self.relaxed.lock() <= self.durable()
    }
}
