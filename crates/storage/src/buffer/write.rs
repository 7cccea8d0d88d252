//! Writing dirty pages: copies taken under a shared latch, the log flushed up to them, the doublewrite file, then in place.

use super::BufferPool;
use super::doublewrite::BATCH;
use crate::disk::SEGMENT_PAGES;
use crate::error::Result;
use crate::ids::{Lsn, PageId};
use crate::page::{PAGE_SIZE, header};
use crate::space::PageRun;
use crate::sync::Ordering;

/// The copies being written.
#[derive(Default)]
pub(super) struct Batch {
    data: Vec<u8>,
    pages: Vec<(PageId, u32)>,
    fresh: Vec<bool>,
}

impl BufferPool {
    /// Writes up to `max` dirty pages, those that hold the log longest first, up to those changed at `before` or later.
    /// Returns how many were written.
    pub(crate) fn write_oldest(&self, max: usize, before: Option<Lsn>) -> Result<usize> {
        let before = before.map_or(u64::MAX, |l| l.0);
        let mut dirty: Vec<(u64, u32)> = self
            .frames
            .iter()
            .map(|(i, f)| (f.rec_lsn.load(Ordering::Relaxed), i))
            .filter(|(lsn, _)| *lsn != 0 && *lsn < before)
            .collect();
        if dirty.len() > max {
            dirty.select_nth_unstable(max);
            dirty.truncate(max);
        }
        dirty.sort_unstable();
        let mut pages: Vec<_> =
            dirty.into_iter().filter_map(|(_, i)| self.frames.get(i).page().map(|page| (page, i))).collect();
        self.write_pages(&mut pages)
    }

    /// Writes those pages of the runs that are newer in memory than on disk, and waits for those that are being written.
    /// The files are synchronised once, after all: nothing refers to the pages before that, so nobody minds which of them a crash keeps.
    pub(crate) fn write_out(&self, runs: &[PageRun]) -> Result<()> {
        // Here, and not batch by batch.
        self.wal.flush()?;
        // A page that a late reader has latched is met in the next round.
        while self.write_round(runs, &mut Vec::new())? {}
        let mut segments: Vec<u64> = runs.iter().map(|run| run.first.0 / SEGMENT_PAGES).collect();
        segments.sort_unstable();
        self.sync_segments(segments).map_err(|e| self.fatal.stop(&format!("cannot write pages: {e}")))
    }

    /// Writes the pages of the runs as they are now, and lets the disk begin with them; nothing is synchronised.
    pub(super) fn begin_write_out(&self, runs: &[PageRun]) -> Result<()> {
        let mut written = Vec::new();
        self.write_round(runs, &mut written)?;
        written.into_iter().for_each(|(first, pages)| self.files.begin_sync(first, pages));
        Ok(())
    }

    /// One look at the pages of the runs. False if none had to be written; `written` gets what was, as first pages and lengths.
    fn write_round(&self, runs: &[PageRun], written: &mut Vec<(PageId, u64)>) -> Result<bool> {
        let mut dirty = Vec::new();
        for id in runs.iter().flat_map(|run| run.first.0..run.first.0 + run.pages as u64).map(PageId) {
            let frame = self.table.entry(id)?.frame();
            if self.frames.get(frame).page() == Some(id) && !self.frames.get(frame).is_clean() {
                dirty.push((id, frame));
            }
        }
        dirty.sort_unstable();
        for chunk in dirty.chunks(BATCH) {
            self.write_batch(chunk, &mut self.writing.lock(), Some(written))?;
        }
        Ok(!dirty.is_empty())
    }

    /// Grows a file of pages, durably, or changes nothing. An error of its sync stops the engine: it may be of pages that were written, and whoever
    /// syncs the file next is not told again.
    pub(crate) fn grow_file(&self, segment: u64, pages: u64) -> Result<()> {
        self.files.grow(segment, pages, |e| self.fatal.stop(&format!("cannot grow the files of pages: {e}")))
    }

    fn sync_segments(&self, mut segments: Vec<u64>) -> Result<()> {
        segments.dedup();
        for segment in segments {
            let _pending = self.counters.data_fsyncs_pending.enter();
            self.files.sync(segment)?;
            self.counters.data_fsyncs.add(1);
        }
        Ok(())
    }

    /// Writes those of the pages that are dirty and not latched exclusively. Waits for no latch.
    pub(super) fn write_pages(&self, pages: &mut [(PageId, u32)]) -> Result<usize> {
        let mut written = 0;
        pages.sort_unstable();
        for chunk in pages.chunks(BATCH) {
            let mut batch = self.writing.lock();
            written += self.write_batch(chunk, &mut batch, None)?;
        }
        Ok(written)
    }

    /// `later`: where it is noted what the caller synchronises itself, as first pages and lengths.
    fn write_batch(&self, wanted: &[(PageId, u32)], batch: &mut Batch, later: Option<&mut Vec<(PageId, u64)>>) -> Result<usize> {
        self.fatal.check()?;
        batch.pages.clear();
        batch.fresh.clear();
        batch.data.clear();
        let mut newest = Lsn::NONE;
        for &(page, frame) in wanted {
            newest = newest.max(self.copy_dirty(page, frame, batch));
        }
        if batch.pages.is_empty() {
            return Ok(0);
        }
        if let Err(e) = self.wal.flush_to(newest).and_then(|()| self.write_copies(batch, later)) {
            return Err(self.fatal.stop(&format!("cannot write pages: {e}")));
        }
        for &(_, frame) in &batch.pages {
            self.frames.get(frame).flushing.store(0, Ordering::SeqCst);
        }
        self.counters.pages_written.add(batch.pages.len() as u64);
        Ok(batch.pages.len())
    }

    /// Copies the page if it is dirty, and takes its `rec_lsn` over to `flushing`. Returns the copy's LSN.
    fn copy_dirty(&self, page: PageId, frame: u32, batch: &mut Batch) -> Lsn {
        let Ok(entry) = self.table.entry(page) else { return Lsn::NONE };
        let latch = self.latch(entry);
        if !latch.try_shared(0) {
            return Lsn::NONE;
        }
        let state = self.frames.get(frame);
        let rec_lsn = state.rec_lsn.load(Ordering::SeqCst);
        let mut lsn = Lsn::NONE;
        if entry.frame() == frame && rec_lsn != 0 && state.flushing.load(Ordering::SeqCst) == 0 {
            let at = batch.data.len();
            // SAFETY: I1, the shared latch is held.
            batch.data.extend_from_slice(unsafe { self.frames.bytes(frame) });
            lsn = header::lsn(&batch.data[at..]);
            header::seal(&mut batch.data[at..]);
            // I5: a checkpoint that looks meanwhile sees one of the two.
            state.flushing.store(rec_lsn, Ordering::SeqCst);
            state.rec_lsn.store(0, Ordering::SeqCst);
            self.dirty.fetch_sub(1, Ordering::Relaxed);
            batch.pages.push((page, frame));
            batch.fresh.push(state.fresh.swap(false, Ordering::Relaxed));
        }
        latch.unlock_shared();
        lsn
    }

    fn write_copies(&self, batch: &Batch, later: Option<&mut Vec<(PageId, u64)>>) -> Result<()> {
        if let Some(doublewrite) = &self.doublewrite {
            let needs_copy = |i: &usize| !batch.fresh[*i] || doublewrite.holds(batch.pages[*i].0);
            let old: Vec<usize> = (0..batch.pages.len()).filter(needs_copy).collect();
            if !old.is_empty() {
                let copies = old.iter().map(|i| (batch.pages[*i].0, &batch.data[i * PAGE_SIZE..(i + 1) * PAGE_SIZE]));
                let pending = self.counters.page_writes_pending.enter();
                doublewrite.write(copies)?;
                drop(pending);
                self.counters.doublewrite_writes.add(1);
                self.counters.doublewrite_pages.add(old.len() as u64);
                self.counters.data_fsyncs.add(1);
            }
        }
        // Neighbours lie beside each other in the batch, which is sorted by page id.
        let mut start = 0;
        let mut written = Vec::new();
        while start < batch.pages.len() {
            let first = batch.pages[start].0;
            let segment = first.0 / SEGMENT_PAGES;
            let mut end = start + 1;
            while end < batch.pages.len()
                && batch.pages[end].0.0 == first.0 + (end - start) as u64
                && batch.pages[end].0.0 / SEGMENT_PAGES == segment
            {
                end += 1;
            }
            let pending = self.counters.page_writes_pending.enter();
            self.files.write(first, &batch.data[start * PAGE_SIZE..end * PAGE_SIZE])?;
            drop(pending);
            self.counters.data_writes.add(1);
            written.push((first, (end - start) as u64));
            start = end;
        }
        match later {
            Some(later) => later.extend(written),
            None => self.sync_segments(written.into_iter().map(|(first, _)| first.0 / SEGMENT_PAGES).collect())?,
        }
        Ok(())
    }
}
