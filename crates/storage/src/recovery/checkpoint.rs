//! Fuzzy checkpoints: writers go on. Redo would start at the oldest change not on disk, or at the first record of the oldest
//! open transaction, whichever is older; the control file says so, and the log before is let go.

use super::{Store, Transactions, background};
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::sync::Arc;
use crate::wal::Control;

impl Store {
    /// Starts checkpointing and the background threads (unless `options.background` is off). Called once undo is set up.
    pub fn start(self: &Arc<Self>, transactions: Arc<dyn Transactions>) {
        let first = self.transactions.set(transactions).is_ok();
        assert!(first, "a store is started once");
        let store = Arc::downgrade(self);
        self.wal.set_make_room(Box::new(move |full| store.upgrade().map_or(Err(Error::Stopped), |s| s.make_room(full))));
        if self.options.background {
            *self.threads.lock() = background::Threads::start(self);
        }
    }

    /// Takes a fuzzy checkpoint now.
    pub fn checkpoint(&self) -> Result<()> {
        let _one = self.checkpointing.lock();
        self.checkpoint_locked()
    }

    fn checkpoint_locked(&self) -> Result<()> {
        self.fatal.check()?;
        let Some(transactions) = self.transactions.get() else { return Ok(()) };
        // First the end, then what is older: whatever is appended after this needs nothing older than the end, and whoever
        // appended before it was already counted.
        let end = self.wal.end();
        let page_floor = self.pool.oldest_dirty().map_or(end, |lsn| lsn.min(end));
        let redo_lsn = transactions.oldest_lsn().map_or(page_floor, |lsn| lsn.min(page_floor));
        let last = self.control.last();
        // I1: a lower bound taken before the last checkpoint's look, but published after it, may be older than that checkpoint;
        // its owner had appended nothing then, so nothing before that checkpoint is needed.
        let redo_lsn = redo_lsn.max(last.redo_lsn);
        // The log is durable up to where redo starts, or recovery would find a hole.
        self.wal.flush()?;
        let (next_txn_id, max_ts, durable) = (transactions.next_txn_id(), transactions.max_ts(), self.wal.durable());
        let control = Control { redo_lsn, next_txn_id, max_ts, durable, ..last };
        self.control.write(control).map_err(|e| self.fatal.stop(&format!("cannot write the control file: {e}")))?;
        self.counters.checkpoints.add(1);
        self.wal.advance(page_floor, redo_lsn)
    }

    /// The log is nearly full: writes pages until half of it is free. Or the disk is full: writes all of them, so that log files
    /// can be used again. Runs in the thread that needs the room.
    fn make_room(&self, disk_is_full: bool) -> Result<()> {
        let _one = self.checkpointing.lock();
        let (age, end) = (self.wal.checkpoint_age(), self.wal.end().0);
        if disk_is_full {
            // Only whole files can be used again, and an open transaction's are not let go.
            let oldest = self.transactions.get().and_then(|t| t.oldest_lsn()).map_or(end, |lsn| lsn.0.min(end));
            let bytes = self.options.log_segment_bytes;
            if oldest / bytes <= self.control.last().redo_lsn.0 / bytes {
                return Ok(());
            }
            self.write_pages_before(Lsn(oldest))?;
        } else if age > self.wal.capacity() / 4 * 3 {
            self.write_pages_before(Lsn(end.saturating_sub(self.wal.capacity() / 2)))?;
        } else {
            return Ok(());
        }
        self.checkpoint_locked()
    }

    /// Writes all pages that hold the log before `target`.
    pub(super) fn write_pages_before(&self, target: Lsn) -> Result<()> {
        for _ in 0..1000 {
            if self.pool.oldest_dirty().is_none_or(|lsn| lsn >= target) {
                return Ok(());
            }
            if self.pool.write_oldest(256, Some(target))? == 0 {
                // What is left is latched, or being written by somebody else.
                crate::sync::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Writes some dirty pages, oldest first (the cleaner's step).
    pub fn clean(&self, pages: usize) -> Result<usize> {
        self.pool.write_oldest(pages, None)
    }

    /// Joins the threads, writes everything, takes a checkpoint. No mini-transaction may be open.
    pub fn shutdown(&self) -> Result<()> {
        self.stop();
        self.wal.flush()?;
        while self.pool.write_oldest(usize::MAX, None)? > 0 {}
        self.checkpoint()
    }

    /// Joins the threads and writes nothing more.
    pub fn stop(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        threads.join();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.stop();
    }
}
