//! Commit: one record, whose timestamp is given inside the append; then, in log order, what others see of it.
//!
//! A gate (`README.md`, "The gate") can hold commits back behind their being durable, until somebody else has them too.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use super::purge_list::PurgeList;
use super::system::System;
use crate::error::Result;
use crate::ids::Lsn;
use crate::lock::Owner;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};
use crate::wal::{DurableWait, Signal};

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
    /// Commits that wait for the gate are published up to this LSN; the largest number: there is no gate.
    gate: AtomicU64,
    /// Somebody has asked for everything up to here to be published: it is as durable as it has to be.
    asked: AtomicU64,
    /// Those who wait behind the gate.
    held: Mutex<Vec<Held>>,
    /// There may be some.
    any_held: AtomicBool,
}

struct Pending {
    lsn: Lsn,
    ts: u64,
    owner: Arc<Owner>,
    purge: PurgeList,
    how: HowToCommit,
    /// It has ended for those who read what is latest; snapshots do not see it yet.
    settled: bool,
}

/// What a commit asks of its publication.
#[derive(Clone, Copy, Default)]
pub(super) struct HowToCommit {
    /// It waits for the gate.
    pub gated: bool,
    /// Nobody's snapshot needs it: its locks are free as soon as it is durable, whatever the gate holds before it.
    pub aside: bool,
    /// It waits for the disk, whatever the flush level: what nobody reads behind the log is not acknowledged.
    pub durable: bool,
    /// Its record may take the log's last reserve.
    pub urgent: bool,
}

/// Something to be done once a commit is published.
struct Held {
    lsn: Lsn,
    then: Then,
}

enum Then {
    Wake(Waker),
    Run(Box<dyn FnOnce() + Send>),
}

const NO_GATE: u64 = u64::MAX;

impl Commits {
    pub fn new(last_ts: u64) -> Commits {
        Commits {
            last_ts: AtomicU64::new(last_ts),
            pending: Mutex::default(),
            publishing: Mutex::new(()),
            releasing: AtomicU64::new(0),
            published: AtomicU64::new(0),
            count: AtomicU64::new(0),
            gate: AtomicU64::new(NO_GATE),
            asked: AtomicU64::new(0),
            held: Mutex::default(),
            any_held: AtomicBool::new(false),
        }
    }

    pub fn last_ts(&self) -> u64 {
        self.last_ts.load(Ordering::SeqCst)
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Gives the timestamp. Called inside the append of the commit record, which orders the callers.
    pub(super) fn enter(&self, lsn: Lsn, owner: Arc<Owner>, purge: PurgeList, how: HowToCommit) -> u64 {
        let ts = self.last_ts.fetch_add(1, Ordering::SeqCst) + 1;
        let mut pending = self.pending.lock();
        debug_assert!(pending.back().is_none_or(|last| last.lsn < lsn), "I5: timestamps in log order");
        pending.push_back(Pending { lsn, ts, owner, purge, how, settled: false });
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
        self.published.load(Ordering::SeqCst) >= lsn.0
    }

    fn next(&self, limit: Lsn, gate: u64) -> Option<Pending> {
        let mut pending = self.pending.lock();
        let first = pending.front()?;
        if first.lsn > limit || (first.how.gated && first.lsn.0 > gate) { None } else { pending.pop_front() }
    }

    /// Those aside of what the gate holds that have become durable.
    fn next_aside(&self, limit: Lsn) -> Vec<(u64, Arc<Owner>)> {
        let mut pending = self.pending.lock();
        let ready = pending.iter_mut().take_while(|p| p.lsn <= limit).filter(|p| p.how.aside && !p.settled);
        ready
            .map(|p| {
                p.settled = true;
                (p.ts, p.owner.clone())
            })
            .collect()
    }

    /// Does `then` once the commit at `lsn` is published, which may be now.
    fn hold(&self, lsn: Lsn, then: Then) {
        self.held.lock().push(Held { lsn, then });
        self.any_held.store(true, Ordering::SeqCst);
        if self.is_published(lsn) {
            self.let_go();
        }
    }

    /// After a publication: what was to follow it. Called with no mutex held.
    fn let_go(&self) {
        if !self.any_held.load(Ordering::SeqCst) {
            return;
        }
        let ready: Vec<Held> = {
            let mut held = self.held.lock();
            let ready = held.extract_if(.., |h| self.is_published(h.lsn)).collect();
            self.any_held.store(!held.is_empty(), Ordering::SeqCst);
            ready
        };
        for Held { then, .. } in ready {
            match then {
                Then::Wake(waker) => waker.wake(),
                Then::Run(run) => run(),
            }
        }
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
        {
            let _order = self.commits.publishing.lock();
            let asked = self.commits.asked.fetch_max(lsn.0, Ordering::SeqCst).max(lsn.0);
            self.publish_in_order(Lsn(asked));
        }
        self.commits.let_go();
    }

    /// With the publications' mutex held: everything up to `asked` and what is durable, as far as the gate is open.
    fn publish_in_order(&self, asked: Lsn) {
        let limit = asked.max(Lsn(self.store.wal.durable().0.saturating_sub(1)));
        let gate = self.commits.gate.load(Ordering::SeqCst);
        while let Some(commit) = self.commits.next(limit, gate) {
            // First: from the next line on others may change its rows.
            self.commits.note_releasing(commit.lsn);
            self.status.set_publishing_ts(commit.ts);
            if !commit.settled {
                self.status.commit(commit.owner.id, commit.ts);
            }
            self.status.set_visible_ts(commit.ts);
            self.history.push(commit.ts, commit.owner.id, commit.purge);
            if !commit.settled {
                self.locks.release(&commit.owner);
            }
            self.commits.published.store(commit.lsn.0, Ordering::SeqCst);
            self.commits.count.fetch_add(1, Ordering::Relaxed);
        }
        if gate != NO_GATE {
            for (ts, owner) in self.commits.next_aside(limit) {
                self.status.commit(owner.id, ts);
                self.locks.release(&owner);
            }
        }
    }

    /// Opens the gate up to `lsn`, or for everything. A gate that was open for everything is closed behind `lsn`.
    pub fn set_gate(&self, lsn: Option<Lsn>) {
        {
            let _order = self.commits.publishing.lock();
            self.commits.gate.store(lsn.map_or(NO_GATE, |lsn| lsn.0), Ordering::SeqCst);
            self.publish_in_order(Lsn(self.commits.asked.load(Ordering::SeqCst)));
        }
        self.commits.let_go();
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
    /// None: it is durable.
    durable: Option<DurableWait>,
    /// It is to be published. A preparation and a rollback are not: the record is all there is to wait for.
    publishes: bool,
    /// Who is woken when it is published.
    waker: Option<Waker>,
}

impl CommitWait {
    /// The commit of a transaction that wrote nothing.
    pub(super) fn done() -> CommitWait {
        CommitWait(None)
    }

    pub(super) fn new(system: Arc<System>, lsn: Lsn, how: HowToCommit) -> CommitWait {
        let durable = system.store.wal.wait_commit(lsn, how.durable);
        CommitWait(Some(Waiting { system, lsn, durable: Some(durable), publishes: true, waker: None }))
    }

    /// Of a record that ends nothing for others, or what has been undone already.
    pub(super) fn unpublished(system: Arc<System>, lsn: Lsn, how: HowToCommit) -> CommitWait {
        let mut wait = CommitWait::new(system, lsn, how);
        if let Some(waiting) = &mut wait.0 {
            waiting.publishes = false;
        }
        wait
    }

    /// Where the commit record is in the log; none if nothing was written.
    pub fn lsn(&self) -> Option<Lsn> {
        self.0.as_ref().map(|w| w.lsn)
    }

    /// Waits on this thread.
    pub fn wait(self) -> Result<()> {
        let Some(waiting) = self.wait_for_log()? else { return Ok(()) };
        if waiting.is_held() {
            let published = Arc::new(Signal::default());
            waiting.system.commits.hold(waiting.lsn, Then::Wake(published.clone().into()));
            waiting.system.block(&mut || published.wait());
        }
        Ok(())
    }

    /// As `wait`, of a transaction that `Txn::commit_aside` has committed: the gate is not waited for.
    pub fn wait_aside(self) -> Result<()> {
        self.wait_for_log().map(drop)
    }

    /// Does `then` once the commit is published, in whatever thread: nobody waits any more. At once if it need not be published.
    pub fn leave(self, then: Box<dyn FnOnce() + Send>) {
        match self.0 {
            Some(waiting) if waiting.publishes => waiting.system.commits.hold(waiting.lsn, Then::Run(then)),
            _ => then(),
        }
    }

    fn wait_for_log(self) -> Result<Option<Waiting>> {
        let Some(mut waiting) = self.0 else { return Ok(None) };
        if let Some(durable) = waiting.durable.take() {
            durable.wait()?;
        }
        waiting.system.publish(waiting.lsn);
        Ok(Some(waiting))
    }

    /// It is durable, and waits for the gate.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_some_and(|waiting| waiting.durable.is_none() && waiting.is_held())
    }
}

impl Waiting {
    fn is_held(&self) -> bool {
        self.publishes && !self.system.commits.is_published(self.lsn)
    }
}

impl Future for CommitWait {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(waiting) = &mut self.0 else { return Poll::Ready(Ok(())) };
        if let Some(durable) = &mut waiting.durable {
            ready!(Pin::new(durable).poll(cx))?;
            waiting.durable = None;
            waiting.system.publish(waiting.lsn);
        }
        if !waiting.is_held() {
            return Poll::Ready(Ok(()));
        }
        if !waiting.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            waiting.waker = Some(cx.waker().clone());
            waiting.system.commits.hold(waiting.lsn, Then::Wake(cx.waker().clone()));
        }
        if waiting.is_held() { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}
