//! Commit: one record, whose timestamp is given inside the append; then, in log order, what others see of it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::purge::PurgeItem;
use super::system::System;
use crate::error::Result;
use crate::ids::Lsn;
use crate::lock::Owner;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::wal::DurableWait;

/// Commits between their record and their publication.
pub(crate) struct Commits {
    last_ts: AtomicU64,
    /// In log order: entered inside the append.
    pending: Mutex<VecDeque<Pending>>,
    /// Held while publishing, so that it happens in log order too.
    publishing: Mutex<()>,
    /// Every commit behind this LSN still holds all its locks, in whatever way a row is locked.
    releasing: AtomicU64,
    /// Every commit at or before this LSN has been published.
    published: AtomicU64,
    count: AtomicU64,
}

struct Pending {
    lsn: Lsn,
    ts: u64,
    owner: Arc<Owner>,
    purge: Vec<PurgeItem>,
}

impl Commits {
    pub fn new(last_ts: u64) -> Commits {
        Commits {
            last_ts: AtomicU64::new(last_ts),
            pending: Mutex::default(),
            publishing: Mutex::new(()),
            releasing: AtomicU64::new(0),
            published: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }
    }

    pub fn last_ts(&self) -> u64 {
        self.last_ts.load(Ordering::SeqCst)
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Gives the timestamp. Called inside the append of the commit record, which orders the callers.
    pub fn enter(&self, lsn: Lsn, owner: Arc<Owner>, purge: Vec<PurgeItem>) -> u64 {
        let ts = self.last_ts.fetch_add(1, Ordering::SeqCst) + 1;
        let mut pending = self.pending.lock();
        debug_assert!(pending.back().is_none_or(|last| last.lsn < lsn), "I5: timestamps in log order");
        pending.push_back(Pending { lsn, ts, owner, purge });
        ts
    }

    /// Every commit behind this still holds all its locks. The newest one that does not may be in the middle of giving them up.
    pub fn releasing(&self) -> Lsn {
        Lsn(self.releasing.load(Ordering::SeqCst))
    }

    /// The locks of a transaction whose end is at `lsn` are about to be released.
    pub fn note_releasing(&self, lsn: Lsn) {
        self.releasing.fetch_max(lsn.0, Ordering::SeqCst);
    }

    fn is_published(&self, lsn: Lsn) -> bool {
        self.published.load(Ordering::Acquire) >= lsn.0
    }

    fn next(&self, limit: Lsn) -> Option<Pending> {
        let mut pending = self.pending.lock();
        if pending.front()?.lsn > limit { None } else { pending.pop_front() }
    }

    /// The LSN of the oldest commit that is not published.
    pub fn oldest_pending(&self) -> Option<Lsn> {
        self.pending.lock().front().map(|p| p.lsn)
    }
}

impl System {
    /// Publishes, in log order, every commit up to `lsn`, which is as durable as the flush level asks, and those behind it that are
    /// durable too: its timestamp, then its history for purge, then the release of its locks.
    pub fn publish(&self, lsn: Lsn) {
        if self.commits.is_published(lsn) {
            return;
        }
        let _order = self.commits.publishing.lock();
        let limit = lsn.max(Lsn(self.store.wal.durable().0.saturating_sub(1)));
        while let Some(commit) = self.commits.next(limit) {
            // First: from the next line on others may change its rows.
            self.commits.note_releasing(commit.lsn);
            self.status.commit(commit.owner.id, commit.ts);
            self.status.set_visible_ts(commit.ts);
            self.history.push(commit.ts, commit.owner.id, commit.purge);
            self.locks.release(&commit.owner);
            self.commits.published.store(commit.lsn.0, Ordering::Release);
            self.commits.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Publishes commits whose callers do not wait for them. Flushes the log for that if it must.
    pub fn publish_abandoned(&self) -> Result<()> {
        let Some(lsn) = self.commits.oldest_pending() else { return Ok(()) };
        if lsn >= self.store.wal.durable() {
            self.store.wal.flush()?;
        }
        self.publish(lsn);
        Ok(())
    }
}

/// A commit on its way to the disk. Resolves when it is as durable as `innodb_flush_log_at_trx_commit` asks, visible, and its locks are
/// released. Dropping it does not undo the commit.
pub struct CommitWait(Option<Waiting>);

struct Waiting {
    system: Arc<System>,
    lsn: Lsn,
    durable: DurableWait,
}

impl CommitWait {
    /// The commit of a transaction that wrote nothing.
    pub(super) fn done() -> CommitWait {
        CommitWait(None)
    }

    pub(super) fn new(system: Arc<System>, lsn: Lsn) -> CommitWait {
        let durable = system.store.wal.wait_commit(lsn);
        CommitWait(Some(Waiting { system, lsn, durable }))
    }

    /// Where the commit record is in the log; none if nothing was written.
    pub fn lsn(&self) -> Option<Lsn> {
        self.0.as_ref().map(|w| w.lsn)
    }

    /// Waits on this thread.
    pub fn wait(self) -> Result<()> {
        let Some(Waiting { system, lsn, durable }) = self.0 else { return Ok(()) };
        durable.wait()?;
        system.publish(lsn);
        Ok(())
    }
}

impl Future for CommitWait {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(waiting) = &mut self.0 else { return Poll::Ready(Ok(())) };
        ready!(Pin::new(&mut waiting.durable).poll(cx))?;
        waiting.system.publish(waiting.lsn);
        Poll::Ready(Ok(()))
    }
}
