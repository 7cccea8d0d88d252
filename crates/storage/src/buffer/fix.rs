//! `fix`: from a page id to a guard, reading the page if it is not in memory.

use super::held::How;
use super::latch::{Latch, Outcome, REF};
use super::table::Entry;
use super::{Access, BufferPool, ExclusiveGuard, LatchClass, OptimisticGuard, SharedGuard};
use crate::disk::SEGMENT_PAGES;
use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::page::{PAGE_SIZE, header};
use crate::sync::Ordering;
use crate::waits::{self, LatchMode, LatchPlace, WaitKind};

/// How a page comes into its frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Disk,
    /// Recovery: a page never written or torn is all zeros, for redo to judge.
    DiskLenient,
    Zeros,
}

impl BufferPool {
    /// Latches the page shared, reading it if need be.
    pub fn fix_shared(&self, id: PageId) -> Result<SharedGuard<'_>> {
        self.fix_shared_as(id, Access::Normal)
    }

    pub fn fix_shared_as(&self, id: PageId, access: Access) -> Result<SharedGuard<'_>> {
        self.counters.page_requests.add(1);
        self.shared(id, access)
    }

    /// As `fix_shared_as`, for a page that was counted as asked for.
    fn shared(&self, id: PageId, access: Access) -> Result<SharedGuard<'_>> {
        let entry = self.table.entry(id)?;
        self.frames.prefetch(entry.frame());
        let latch = self.latch(entry);
        let mark = if access == Access::Scan { 0 } else { REF };
        loop {
            let guard = if latch.lock_shared(mark) == Outcome::Acquired {
                SharedGuard::new(self, entry, id, How::Waited)
            } else if latch.begin_load(LatchClass::Ordinary) {
                self.load(entry, id, Source::Disk, mark)?;
                ExclusiveGuard::new(self, entry, id, How::Waited).downgrade()
            } else {
                continue;
            };
            note_parked(&latch, &guard, LatchMode::Shared);
            // I3: a change that could not be logged stays on its page.
            self.fatal.check()?;
            return Ok(guard);
        }
    }

    /// Latches the page exclusively, reading it if need be. `Ordinary` waits while an `Smo` wants the page.
    pub fn fix_exclusive(&self, id: PageId, class: LatchClass) -> Result<ExclusiveGuard<'_>> {
        self.fix_exclusive_from(id, class, Source::Disk)
    }

    /// Latches a page just allocated, without reading it: zeros but for its id, or what it was in an earlier life. The first
    /// operation on it must be an initialising one.
    pub fn fix_new(&self, id: PageId) -> Result<ExclusiveGuard<'_>> {
        self.counters.pages_new.add(1);
        self.fix_exclusive_from(id, LatchClass::Ordinary, Source::Zeros)
    }

    /// For redo: what is on disk, or zeros with the page's id if that is not a whole page.
    pub(crate) fn fix_redo(&self, id: PageId) -> Result<ExclusiveGuard<'_>> {
        self.fix_exclusive_from(id, LatchClass::Ordinary, Source::DiskLenient)
    }

    /// Lets the processor fetch what a writer of the page reads first. Whether the page is in memory is not asked.
    pub fn prefetch(&self, id: PageId) {
        if let Ok(entry) = self.table.entry(id) {
            self.frames.prefetch(entry.frame());
            self.frames.prefetch_state(entry.frame());
        }
    }

    /// Lets the disk begin to read those of the pages that are not in memory, as somebody will ask for them soon. It waits for nothing, and no frame is taken.
    pub fn read_ahead(&self, pages: &[PageId]) {
        let is_absent = |id: PageId| self.table.entry(id).is_ok_and(|entry| !self.latch(entry).is_resident());
        let mut rest = pages;
        while let Some((&first, behind)) = rest.split_first() {
            let mut run = 0;
            if is_absent(first) {
                let follows = |(i, id): &(usize, &PageId)| id.0 == first.0 + 1 + *i as u64 && id.0 / SEGMENT_PAGES == first.0 / SEGMENT_PAGES && is_absent(**id);
                run = 1 + behind.iter().enumerate().take_while(follows).count();
                self.files.will_read(first, run as u64);
                self.counters.pages_read_ahead.add(run as u64);
            }
            rest = &rest[run.max(1)..];
        }
    }

    fn fix_exclusive_from(&self, id: PageId, class: LatchClass, source: Source) -> Result<ExclusiveGuard<'_>> {
        let entry = self.table.entry(id)?;
        self.frames.prefetch(entry.frame());
        self.frames.prefetch_state(entry.frame());
        let latch = self.latch(entry);
        let how = if source == Source::Disk { How::Waited } else { How::New };
        if source == Source::Disk {
            self.counters.page_requests.add(1);
        }
        loop {
            let mut guard = if latch.lock_exclusive(class) == Outcome::Acquired {
                ExclusiveGuard::new(self, entry, id, how)
            } else if latch.begin_load(class) {
                self.load(entry, id, source, REF)?;
                ExclusiveGuard::new(self, entry, id, how)
            } else {
                continue;
            };
            guard.waited = latch.waited.get();
            note_parked(&latch, &guard, if class == LatchClass::Smo { LatchMode::Smo } else { LatchMode::Exclusive });
            // As in `shared`.
            self.fatal.check()?;
            return Ok(guard);
        }
    }

    /// `None` when the latch is not free at once or the page is not in memory: no wait, no I/O.
    pub fn try_shared(&self, id: PageId) -> Option<SharedGuard<'_>> {
        let entry = self.table.entry(id).ok()?;
        self.latch(entry).try_shared(REF).then(|| {
            self.counters.page_requests.add(1);
            SharedGuard::new(self, entry, id, How::Tried)
        })
    }

    /// As `try_shared`, exclusively.
    pub fn try_exclusive(&self, id: PageId) -> Option<ExclusiveGuard<'_>> {
        let entry = self.table.entry(id).ok()?;
        self.latch(entry).try_exclusive().then(|| {
            self.counters.page_requests.add(1);
            ExclusiveGuard::new(self, entry, id, How::Tried)
        })
    }

    /// The page's version for unlatched reads, reading it from disk if need be; waits while it is latched exclusively.
    pub fn optimistic(&self, id: PageId) -> Result<OptimisticGuard<'_>> {
        self.counters.page_requests.add(1);
        let entry = self.table.entry(id)?;
        loop {
            // The frame is looked at before the latch allows it: a hint.
            self.frames.prefetch_ends(entry.frame());
            if let Some(version) = self.latch(entry).optimistic() {
                return Ok(OptimisticGuard::new(self, entry, version));
            }
            self.counters.optimistic_waits.add(1);
            drop(self.shared(id, Access::Normal)?);
        }
    }

    /// Fills a frame for the page, whose entry the caller has exclusively since `begin_load`. On success X stays held.
    fn load(&self, entry: &Entry, id: PageId, source: Source, mark: u64) -> Result<()> {
        let latch = self.latch(entry);
        match self.load_frame(id, source) {
            Ok(frame) => {
                entry.set_frame(frame);
                self.frames.get(frame).set_page(Some(id));
                latch.end_load(mark);
                Ok(())
            }
            Err(e) => {
                latch.abort_load();
                Err(e)
            }
        }
    }

    fn load_frame(&self, id: PageId, source: Source) -> Result<u32> {
        self.fatal.check()?;
        let frame = self.take_frame()?;
        let state = self.frames.get(frame);
        for flag in [&state.in_scope, &state.fresh, &state.pinned] {
            flag.store(false, Ordering::Relaxed);
        }
        // SAFETY: I1, the frame is this thread's: it holds no page.
        let bytes = unsafe { self.frames.bytes_mut(frame) };
        if source == Source::Zeros {
            bytes.fill(0);
            header::set_page_id(bytes, id);
            return Ok(frame);
        }
        if let Err(e) = self.read_page(id, bytes, source) {
            self.frames.push_free(frame);
            return Err(e);
        }
        Ok(frame)
    }

    fn read_page(&self, id: PageId, bytes: &mut [u8], source: Source) -> Result<()> {
        debug_assert_eq!(bytes.len(), PAGE_SIZE);
        let (counted, pending) = (waits::blocked(WaitKind::PageRead), self.counters.page_reads_pending.enter());
        let read = self.files.read(id, bytes);
        drop((counted, pending));
        self.counters.pages_read.add(1);
        let problem = match read {
            Ok(()) => header::verify(bytes, id).err(),
            Err(_) if source == Source::DiskLenient => Some("cannot be read".to_string()),
            Err(e) => return Err(e),
        };
        let never_written = problem.is_none() && header::page_id(bytes) != id || problem.is_none() && header::page_type(bytes) == 0;
        match (source, problem) {
            (Source::Disk, Some(what)) => Err(Error::corrupt(id, what)),
            (Source::Disk, None) if never_written => Err(Error::corrupt(id, "never written")),
            (Source::DiskLenient, Some(_)) => {
                bytes.fill(0);
                Ok(())
            }
            // I6: the log's end was lost, and with it other changes.
            (_, None) if header::lsn(bytes) >= self.wal.durable() => {
                let (lsn, durable) = (header::lsn(bytes), self.wal.durable());
                Err(Error::corrupt(id, format!("is of log position {lsn}, but the log ends at {durable}")))
            }
            _ => Ok(()),
        }
    }
}

/// The latch, which the caller holds now, was waited for: for which index, its page tells.
fn note_parked(latch: &Latch<'_>, page: &[u8], mode: LatchMode) {
    let parked = latch.parked.get();
    if parked.count > 0 {
        waits::note_latch(LatchPlace::of(page, mode), parked);
    }
}
