//! The buffer pool: the only way to page bytes. See README.md.

mod doublewrite;
mod evict;
mod fix;
mod frames;
mod guard;
pub(crate) mod held;
mod latch;
mod optimistic;
mod scope;
mod table;
mod write;
mod write_behind;

#[cfg(all(test, feature = "shuttle"))]
mod latch_schedules;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

pub(crate) use doublewrite::{Restored, remove_doublewrite, restore_torn_pages};
pub use guard::{ExclusiveGuard, SharedGuard};
pub use optimistic::OptimisticGuard;
pub use scope::{Scope, Writer};
pub(crate) use write_behind::WriteBehind;

use crate::counters::Counters;
use std::cell::Cell;
use crate::disk::{Disk, PageFiles};
use crate::error::{Error, Result};
use crate::fatal::Fatal;
use crate::ids::Lsn;
use crate::options::Options;
use crate::page::{PAGE_SIZE, header};
use crate::sync::{Arc, AtomicU32, AtomicUsize, Mutex, Ordering, SPIN_LIMIT};
use crate::wal::Wal;
use doublewrite::Doublewrite;
use frames::Frames;
use latch::Latch;
use table::{Entry, PageTable};

/// The `innodb_spin_wait_delay` that stands for `SPIN_LIMIT`: MySQL's default.
const SPIN_WAIT_DELAY: u32 = 6;

/// Who waits for a latch: a structure modification goes before everybody else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatchClass {
    Ordinary,
    Smo,
}

/// How a page that is fixed ages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Likely to be wanted again.
    Normal,
    /// Read once by a scan: does not count as a use.
    Scan,
}

/// Page frames, the page table, latches, and eviction.
pub struct BufferPool {
    table: PageTable,
    frames: Frames,
    files: Arc<PageFiles>,
    wal: Arc<Wal>,
    fatal: Arc<Fatal>,
    counters: Arc<Counters>,
    doublewrite: Option<Doublewrite>,
    /// Whether there may be threads beside those that call (`Options::background`).
    background: bool,
    /// The clock's hand.
    hand: AtomicU32,
    /// One batch of page writes at a time.
    writing: Mutex<write::Batch>,
    cleaner_wanted: crate::sync::AtomicBool,
    /// Frames with a `rec_lsn`.
    dirty: AtomicUsize,
    /// How many times a latch is polled before its waiter parks.
    latch_spins: AtomicU32,
}

impl BufferPool {
    pub(crate) fn new(
        disk: &Arc<dyn Disk>,
        files: Arc<PageFiles>,
        wal: Arc<Wal>,
        options: &Options,
        fatal: Arc<Fatal>,
        counters: Arc<Counters>,
    ) -> Result<BufferPool> {
        let count = ((options.buffer_pool_bytes / PAGE_SIZE as u64) as usize).max(Options::MIN_FRAMES);
        let frames = Frames::new(count).map_err(|e| Error::io(format!("cannot map a buffer pool of {count} pages"), e))?;
        let doublewrite = if options.doublewrite { Some(Doublewrite::open(&**disk)?) } else { None };
        Ok(BufferPool {
            table: PageTable::new(),
            frames,
            files,
            wal,
            fatal,
            counters,
            doublewrite,
            background: options.background,
            hand: AtomicU32::new(0),
            writing: Mutex::new(write::Batch::default()),
            cleaner_wanted: crate::sync::AtomicBool::new(false),
            dirty: AtomicUsize::new(0),
            latch_spins: AtomicU32::new(SPIN_LIMIT),
        })
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn files(&self) -> &PageFiles {
        &self.files
    }

    fn latch<'a>(&'a self, entry: &'a Entry) -> Latch<'a> {
        Latch { word: &entry.latch, spins: &self.latch_spins, counters: &self.counters, waited: Cell::new(false), parked: Cell::default() }
    }

    /// See `Engine::set_spin_wait_delay`.
    pub(crate) fn set_spin_wait_delay(&self, delay: u32) {
        self.latch_spins.store(delay * SPIN_LIMIT / SPIN_WAIT_DELAY, Ordering::Relaxed);
    }

    /// Frames in all.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Frames in all, frames holding no page, frames whose page is newer than on disk.
    pub fn usage(&self) -> (usize, usize, usize) {
        (self.frames.len(), self.frames.free_count(), self.dirty_pages())
    }

    /// True if nobody can have changed the page since a guard had this version: its bytes are the same, in memory or on disk. Reads nothing.
    /// Counts as a use. False says nothing: who latches a page exclusively need not change it.
    pub fn has_version(&self, id: crate::ids::PageId, version: u64) -> Result<bool> {
        Ok(latch::same_bytes(&self.table.entry(id)?.latch, version))
    }

    /// The cleaner's step while the pool grows: memory for pages to come.
    pub(crate) fn populate_ahead(&self) {
        self.frames.populate_ahead();
    }

    /// Pages newer in memory than on disk.
    pub fn dirty_pages(&self) -> usize {
        self.dirty.load(Ordering::Relaxed)
    }

    /// The oldest log position that a page not yet on disk needs; none if all pages are on disk.
    pub(crate) fn oldest_dirty(&self) -> Option<Lsn> {
        let mut oldest: Option<u64> = None;
        for (_, frame) in self.frames.iter() {
            // In this order: the writer moves the value from the first to the second.
            for lsn in [frame.rec_lsn.load(Ordering::SeqCst), frame.flushing.load(Ordering::SeqCst)] {
                if lsn != 0 {
                    oldest = Some(oldest.map_or(lsn, |o| o.min(lsn)));
                }
            }
        }
        oldest.map(Lsn)
    }

    /// The page stays in memory for good.
    pub(crate) fn pin(&self, page: &ExclusiveGuard<'_>) {
        self.frames.get(page.frame).pinned.store(true, Ordering::Relaxed);
    }

    /// The frame's page, held exclusively, will differ from the disk from `lsn` on.
    fn mark_dirty(&self, frame: u32, lsn: Lsn) {
        let state = self.frames.get(frame);
        if state.rec_lsn.load(Ordering::SeqCst) == 0 {
            state.rec_lsn.store(lsn.0, Ordering::SeqCst);
            self.dirty.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The page was filled without a log record, by a load that writes it out before anything refers to it. `lsn`: of the record that
    /// allocated it.
    pub(crate) fn mark_unlogged(&self, page: &mut ExclusiveGuard<'_>, lsn: Lsn) {
        header::set_lsn(page.bytes_mut(), lsn);
        self.counters.page_changes.add(1);
        self.frames.get(page.frame).fresh.store(true, Ordering::Relaxed);
        self.mark_dirty(page.frame, lsn);
    }

    /// Redo changed the page by the record at `lsn`.
    pub(crate) fn mark_redone(&self, page: &ExclusiveGuard<'_>, lsn: Lsn) {
        self.mark_dirty(page.frame, lsn);
    }

    /// True if the page is in memory.
    pub fn is_resident(&self, id: crate::ids::PageId) -> bool {
        self.table.entry(id).is_ok_and(|e| self.latch(e).is_resident())
    }
}
