//! Keeping the log within its capacity, and its files prepared ahead of the end, so that neither a full log nor a full disk is
//! met where it could not be reported.

use super::Wal;
use super::record::MAX_RECORD;
use super::segments::{Content, Segments};
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, thread};
use crate::waits::{self, WaitKind};
use std::sync::OnceLock;
use std::time::Duration;

/// More than a record has beside its events.
const RECORD_HEAD: u64 = 4 << 10;

/// More than one mini-transaction without events logs: images of a few pages.
const LARGEST_CHANGE: u64 = 128 << 10;

/// Waits of 2 ms for a follower that reads nothing before a writer gives up.
const FOLLOWER_ROUNDS: u32 = 5000;

/// Who may take the log's last reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// Answers `LogFull` when open transactions pin too much of the log.
    Normal,
    /// Rollback, the end of what is prepared, and the structure changes that they may need: goes on as long as there is room for its next record.
    Rollback,
}

/// Makes room: writes old pages and takes a checkpoint. When told that the disk is full, all pages, to free whole log files.
pub(crate) type MakeRoom = Box<dyn Fn(bool) -> Result<()> + Send + Sync>;

#[derive(Default)]
pub(super) struct Room {
    /// No unwritten page change is older (as of the last checkpoint).
    page_floor: AtomicU64,
    /// The log before this is not needed by anybody.
    keep: AtomicU64,
    /// Files exist up to here.
    prepared: AtomicU64,
    preparing: Mutex<()>,
    /// The log's end when the background last looked.
    seen: AtomicU64,
    /// The background had no space for a file, and said so.
    starved: AtomicBool,
    make_room: OnceLock<MakeRoom>,
}

impl Room {
    pub fn start(&self, wal: &Wal, keep: Lsn) -> Result<()> {
        self.page_floor.store(keep.0, Ordering::SeqCst);
        self.keep.store(keep.0, Ordering::SeqCst);
        let end = wal.end().0;
        self.prepared.store(wal.segments.lock().prepared_end(end), Ordering::SeqCst);
        self.seen.store(end, Ordering::Relaxed);
        match wal.prepare_ahead(end, Content::Zeros) {
            // There is something to read, and perhaps to delete. Who writes meets it in `reserve`.
            Err(Error::OutOfSpace) => {
                tracing::warn!("no space for another log file");
                Ok(())
            }
            other => other,
        }
    }
}

impl Wal {
    /// Bytes of prepared files ahead of the end that only `Urgency::Rollback` may do without.
    fn ahead(&self) -> u64 {
        (self.capacity() / 16).clamp(64 << 10, 8 << 20)
    }

    pub(crate) fn set_make_room(&self, make_room: MakeRoom) {
        let _ = self.room.make_room.set(make_room);
    }

    /// All changes before this are in the files of pages, as of the last checkpoint.
    pub fn checkpoint(&self) -> Lsn {
        Lsn(self.room.page_floor.load(Ordering::SeqCst))
    }

    /// Log between the oldest unwritten page change (as of the last checkpoint) and the end.
    pub fn checkpoint_age(&self) -> u64 {
        // The floor may have gone beyond the end that was read first.
        self.end().0.saturating_sub(self.room.page_floor.load(Ordering::SeqCst))
    }

    /// `innodb_redo_log_capacity`.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// If that is less than before, writers wait for pages to be written, as they do whenever the log is full.
    pub fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Ordering::Relaxed);
    }

    /// As `reserve`, for a record with so many bytes of events: files are made for them too. Error `TooLarge` for more than a record can be.
    pub fn reserve_events(&self, bytes: usize, urgency: Urgency) -> Result<()> {
        const MAX: usize = MAX_RECORD - (1 << 20);
        if bytes > MAX {
            return Err(Error::TooLarge { what: "a change with its binary log event", size: bytes, max: MAX });
        }
        self.reserve(urgency)?;
        let end = self.end().0;
        match self.prepare_to(end, end + bytes as u64 + self.ahead(), Content::Blocks) {
            // The record itself finds room: what is ahead of it is for such as this.
            Err(Error::OutOfSpace) if urgency == Urgency::Rollback && self.room.prepared.load(Ordering::SeqCst) >= end + bytes as u64 + RECORD_HEAD => Ok(()),
            other => other,
        }
    }

    /// Waits until the log has room for one more mini-transaction. Called holding no latch.
    pub fn reserve(&self, urgency: Urgency) -> Result<()> {
        self.fatal.check()?;
        self.write_early()?;
        let must = urgency == Urgency::Rollback;
        if !must {
            self.wait_for_follower()?;
        }
        let mut round = 0;
        let mut counted = None;
        let most = |capacity: u64| capacity - capacity / 8;
        while self.checkpoint_age() > most(self.capacity()) {
            if round == 0 {
                self.counters.log_room_waits.add(1);
                counted = Some(waits::blocked(WaitKind::Log));
            }
            let Some(make_room) = self.room.make_room.get() else { break };
            make_room(false)?;
            round += 1;
            if round > 10 {
                thread::sleep(Duration::from_millis(2));
            }
            if round == 1000 {
                if must {
                    break;
                }
                return Err(Error::LogFull);
            }
        }
        drop(counted);
        let end = self.end().0;
        let kept = end - self.room.keep.load(Ordering::SeqCst).min(end);
        if !must && kept > self.capacity().saturating_add(self.pinned_max) {
            return Err(Error::LogFull);
        }
        match self.prepare_ahead(end, Content::Blocks) {
            Err(Error::OutOfSpace) => self.prepare_on_full_disk(end, must),
            other => other,
        }
    }

    /// No space for another log file: a checkpoint lets old ones go, to be used again.
    fn prepare_on_full_disk(&self, end: u64, must: bool) -> Result<()> {
        if let Some(make_room) = self.room.make_room.get() {
            make_room(true)?;
        }
        // What a rollback may use up, others leave; it stops while its next record still finds room.
        let least = end + if must { (self.ahead() / 4).min(LARGEST_CHANGE) } else { self.ahead() };
        match self.prepare_ahead(end, Content::Blocks) {
            Err(Error::OutOfSpace) if self.room.prepared.load(Ordering::SeqCst) >= least => Ok(()),
            other => other,
        }
    }

    /// Makes sure that files exist well beyond `end`: the next file always, so that when the log has gone into it, the one before can
    /// be let go and become the next again. On a full disk there is no other.
    fn prepare_ahead(&self, end: u64, content: Content) -> Result<()> {
        let next_file_end = (end / self.segment_bytes + 2) * self.segment_bytes;
        self.prepare_to(end, next_file_end.max(end + self.ahead()), content)
    }

    /// The background's part: a file more than writers ask for, so that they rarely make one themselves.
    pub(crate) fn prepare_in_background(&self) {
        let end = self.end().0;
        let grown = end.saturating_sub(self.room.seen.swap(end, Ordering::Relaxed));
        let content = if grown > self.segment_bytes / 4 { Content::Blocks } else { Content::Zeros };
        let prepared = self.prepare_to(end, end + self.ahead() + 2 * self.segment_bytes, content);
        // Writers will meet it and report it.
        if let Err(e) = &prepared
            && !self.room.starved.load(Ordering::Relaxed)
        {
            tracing::warn!("cannot prepare a log file: {e}");
        }
        self.room.starved.store(prepared.is_err(), Ordering::Relaxed);
    }

    pub(super) fn prepare_to(&self, end: u64, until: u64, content: Content) -> Result<()> {
        if self.room.prepared.load(Ordering::Relaxed) >= until {
            return Ok(());
        }
        let _counted = waits::blocked(WaitKind::Log);
        let _one = self.room.preparing.lock();
        let from = self.durable().0.min(end);
        loop {
            let mut segments = self.segments.lock();
            let Some(number) = segments.missing(from, until) else {
                self.room.prepared.fetch_max(segments.prepared_end(end), Ordering::SeqCst);
                return Ok(());
            };
            let (disk, bytes) = (segments.disk(), segments.bytes);
            let old = segments.take_old(self.needed_from());
            // The leader must not wait while a file is renamed or filled.
            drop(segments);
            let file = match old {
                Some((old, file)) => Segments::reuse(&*disk, old, number, &*file).map(|()| file)?,
                None => Segments::make(&*disk, number, bytes, content)?,
            };
            self.segments.lock().add(number, file);
        }
    }

    /// Files wholly before this may go: neither redo and undo nor a follower needs them.
    fn needed_from(&self) -> u64 {
        self.room.keep.load(Ordering::SeqCst).min(self.followed.released())
    }

    /// Waits for a follower that is far behind; what it has not read cannot be let go.
    fn wait_for_follower(&self) -> Result<()> {
        let mut rounds = 0;
        let mut counted = None;
        let mut seen = self.followed.read();
        while self.followed.lag(self.durable().0) > self.capacity() {
            counted.get_or_insert_with(|| waits::blocked(WaitKind::Log));
            self.fatal.check()?;
            self.followed.wake();
            thread::sleep(Duration::from_millis(2));
            let read = self.followed.read();
            rounds = if read == seen { rounds + 1 } else { 0 };
            seen = read;
            if rounds == FOLLOWER_ROUNDS {
                return Err(Error::LogFull);
            }
        }
        Ok(())
    }

    /// A checkpoint was taken: no unwritten page change before `page_floor`, nothing before `keep` is needed.
    pub(crate) fn advance(&self, page_floor: Lsn, keep: Lsn) -> Result<()> {
        self.room.page_floor.fetch_max(page_floor.0, Ordering::SeqCst);
        self.room.keep.fetch_max(keep.0, Ordering::SeqCst);
        let mut segments = self.segments.lock();
        let spare = (self.capacity() / segments.bytes) as usize;
        let used = (self.end().0 - keep.0) / segments.bytes;
        // One in any case: on a full disk it is the next file.
        let trimmed = segments.trim(self.needed_from().min(keep.0), spare.saturating_sub(used as usize + 1).max(1));
        // A file that cannot be removed only takes space.
        if let Err(e) = trimmed {
            tracing::warn!("cannot remove an old log file: {e}");
        }
        Ok(())
    }
}
