//! The transaction: what callers hold.

use std::time::Duration;

use super::activity::TxnActivity;
use super::commit::{CommitWait, HowToCommit};
use super::purge::PurgeItem;
use super::purge_list::{Mark, PurgeList};
use super::rows::{Bounds, Direction, Isolation, LockMode};
use super::scan::{Scan, Wanted};
use super::snapshot::Snapshot;
use super::system::System;
use super::undo::Undo;
use super::views::{Sight, View};
use super::watch::{Watch, WatchBudget};
use crate::btree::{self, BTree, Cursor};
use crate::buffer::Writer;
use crate::error::Result;
use crate::ids::{IndexId, Lsn, TxnId};
use crate::lock::{Interrupt, Owner, RowKey};
use crate::progress::Progress;
use crate::sync::Arc;
use crate::wal::{Draft, Kind, Urgency};

/// A point inside a transaction that `rollback_to` returns to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    lsn: Lsn,
    purge: Mark,
    dropped: usize,
}

/// A transaction. Dropping one that was not committed rolls it back.
pub struct Txn {
    pub(super) system: Arc<System>,
    isolation: Isolation,
    /// From the first write or lock on.
    pub(super) owner: Option<Arc<Owner>>,
    /// Its newest log record.
    pub(super) last_lsn: Lsn,
    pub(super) view: Option<Arc<View>>,
    pub(super) purge: PurgeList,
    pub(super) dropped: Vec<IndexId>,
    /// The first record of binlog events that were logged before the commit.
    pub(super) first_events: Option<Lsn>,
    /// Bytes of those.
    part_bytes: u64,
    pub(super) lock_wait_timeout: Duration,
    pub(super) interrupt: Option<Arc<Interrupt>>,
    pub(super) progress: Option<Arc<Progress>>,
    activity: Option<Arc<TxnActivity>>,
    pub(super) how: HowToCommit,
    /// Neither a crash nor dropping this ends the transaction any more.
    pub(super) is_prepared: bool,
    /// The row whose lock the last call of `lock` has taken without waiting; empty if it took none. See `unlock`.
    pub(super) newest_lock: RowKey,
    pub(super) cursor: Cursor,
}

impl Txn {
    pub(crate) fn begin(system: Arc<System>, isolation: Isolation) -> Txn {
        Txn {
            isolation,
            owner: None,
            last_lsn: Lsn::NONE,
            view: None,
            purge: PurgeList::default(),
            dropped: Vec::new(),
            first_events: None,
            part_bytes: 0,
            lock_wait_timeout: system.options.lock_wait_timeout,
            interrupt: None,
            progress: None,
            activity: None,
            how: HowToCommit::default(),
            is_prepared: false,
            newest_lock: RowKey::new(),
            cursor: Cursor::new(),
            system,
        }
    }

    /// The id, given at the first write or lock.
    pub fn id(&self) -> Option<TxnId> {
        self.owner.as_ref().map(|o| o.id)
    }

    /// Its isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Changes the isolation level; the present snapshot, if any, ends.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.isolation = isolation;
        self.view = None;
    }

    /// Ends the statement's snapshot under READ COMMITTED and READ UNCOMMITTED.
    pub fn begin_statement(&mut self) {
        if matches!(self.isolation, Isolation::ReadCommitted | Isolation::ReadUncommitted) {
            self.view = None;
        }
    }

    /// How long it waits for a row lock from now on before `LockError::Timeout`.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.lock_wait_timeout = timeout;
    }

    /// Lets `interrupt` end this transaction's lock waits.
    pub fn set_interrupt(&mut self, interrupt: Arc<Interrupt>) {
        self.interrupt = Some(interrupt);
    }

    /// Where a rollback of this transaction says how far it is.
    pub fn set_progress(&mut self, progress: Arc<Progress>) {
        self.progress = Some(progress);
    }

    /// Where reports find this transaction from its first read or lock on.
    pub fn set_activity(&mut self, activity: Arc<TxnActivity>) {
        self.activity = Some(activity);
    }

    fn note_begun(&self) {
        if let Some(activity) = &self.activity
            && !activity.has_begun()
        {
            activity.begin(self.system.locks.clock().wall_micros(), self.isolation);
        }
    }

    /// Counts rows that the transaction has changed, for reports.
    pub fn note_rows_changed(&self, rows: u64) {
        if let Some(activity) = &self.activity {
            activity.add_rows(rows);
        }
    }

    /// True once something was written that a commit must log.
    pub fn has_writes(&self) -> bool {
        !self.last_lsn.is_none() || !self.dropped.is_empty()
    }

    /// Every commit behind this LSN holds all its locks: this transaction, as far as it has its own, does not depend on it.
    pub fn releasing(&self) -> Lsn {
        self.system.commits.releasing()
    }

    /// Rows changed so far.
    pub fn rows_changed(&self) -> u64 {
        self.owner.as_ref().map_or(0, |o| o.work.load(crate::sync::Ordering::Relaxed))
    }

    /// What happens from here on is not the session's that began it.
    pub(super) fn leave_session(&mut self) {
        (self.interrupt, self.progress) = (None, None);
        if let Some(activity) = self.activity.take() {
            activity.end();
        }
    }

    /// For its next change.
    pub(super) fn writer(&self, id: TxnId) -> Writer {
        Writer::Txn { id, prev_lsn: self.last_lsn, urgent: self.is_prepared }
    }

    pub(super) fn owner(&mut self) -> Arc<Owner> {
        if let Some(owner) = &self.owner {
            return owner.clone();
        }
        self.note_begun();
        let owner = self.system.begin_owner();
        if let Some(activity) = &self.activity {
            activity.set_id(owner.id);
        }
        self.owner.insert(owner).clone()
    }

    fn view(&mut self) -> Arc<View> {
        if self.view.is_none() {
            self.note_begun();
        }
        self.view.get_or_insert_with(|| self.system.pin()).clone()
    }

    pub(super) fn sight(&mut self) -> Sight {
        let own = self.id();
        match self.isolation {
            Isolation::ReadUncommitted => Sight::Newest { own, _view: self.system.pin() },
            _ => Sight::Snapshot { view: self.view(), own },
        }
    }

    fn latest(&self) -> Sight {
        Sight::Latest { own: self.id(), _view: self.system.pin() }
    }

    /// The view of this transaction's consistent reads, taken now if there is none yet. It sees what the transaction has written,
    /// also later than now.
    pub fn snapshot(&mut self) -> Snapshot {
        Snapshot { sight: self.sight(), system: self.system.clone() }
    }

    /// A view of what is committed now, and of what the transaction writes. The view of its consistent reads stays as it is.
    pub fn fresh_snapshot(&mut self) -> Snapshot {
        Snapshot { sight: Sight::Snapshot { view: self.system.pin(), own: self.id() }, system: self.system.clone() }
    }

    /// Begins to watch an index: which rows of it transactions change is noted from now on. No transaction that is not over has written to it, and who
    /// will hears of it by what keeps them away now: the caller sees to that.
    pub fn watch(&self, index: IndexId, budget: &Arc<WatchBudget>) -> Watch {
        Watch::begin(self.system.clone(), index, budget)
    }

    /// Consistent read of one row into `out` (cleared first). False when there is none.
    pub fn get(&mut self, index: IndexId, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let sight = self.sight();
        self.system.read_row(index, key, &sight, out)
    }

    /// `Snapshot::replaced_unseen` of the view of this transaction's consistent reads, if there is one.
    pub fn replaced_unseen(&self, index: IndexId) -> std::collections::BTreeSet<Vec<u8>> {
        self.view.as_ref().map(|view| view.replaced(index)).unwrap_or_default()
    }

    /// As `get`, of the latest committed or own row, without a lock.
    pub fn get_latest(&mut self, index: IndexId, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        self.system.read_row(index, key, &self.latest(), out)
    }

    /// Consistent scan.
    pub fn scan(&mut self, index: IndexId, bounds: Bounds, direction: Direction) -> Scan {
        Scan::new(self.system.clone(), self.sight(), Wanted::Visible, index, bounds, direction)
    }

    /// Scan for a locking statement: every key that has a live latest row or an uncommitted change of anybody. Call `lock` on each key to
    /// wait for its owner and to get the value that counts; the scan's own value is the latest committed or own one, empty if there is none.
    /// At REPEATABLE READ and SERIALIZABLE the gaps that it passes over are locked: see [`Scan::stop`]; `mode` is what reports say of them. `last` is the key of the range
    /// that a row would be the last of, where the range names such a key.
    pub fn scan_latest(&mut self, index: IndexId, bounds: Bounds, direction: Direction, mode: LockMode, last: Option<Vec<u8>>) -> Scan {
        let toward = match direction {
            Direction::Forward => btree::Direction::Forward,
            Direction::Backward => btree::Direction::Backward,
        };
        let gaps = self.gaps(index, toward, mode, last);
        let scan = Scan::new(self.system.clone(), self.latest(), Wanted::Candidates, index, bounds, direction);
        match gaps {
            Some(gaps) => scan.locking(gaps),
            None => scan,
        }
    }

    /// The present place among its changes, to go back to.
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint { lsn: self.last_lsn, purge: self.purge.mark(), dropped: self.dropped.len() }
    }

    /// Undoes everything written since. Row locks stay.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.undo_to(savepoint.lsn)?;
        self.forget_since(savepoint);
        Ok(())
    }

    /// As `rollback_to`, for a part of a statement that goes on: the statement's stage stays as it is.
    pub fn take_back(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.undo_part(savepoint.lsn)?;
        self.forget_since(savepoint);
        Ok(())
    }

    fn forget_since(&mut self, savepoint: &Savepoint) {
        self.purge.truncate(&savepoint.purge);
        self.dropped.truncate(savepoint.dropped);
    }

    /// As `undo_to`; see `take_back`.
    pub(super) fn undo_part(&mut self, lsn: Lsn) -> Result<()> {
        let progress = self.progress.take();
        let undone = self.undo_to(lsn);
        self.progress = progress;
        undone
    }

    fn undo_to(&mut self, lsn: Lsn) -> Result<()> {
        match &self.owner {
            Some(owner) if self.last_lsn > lsn => self.system.undo_until(owner, &mut self.last_lsn, lsn, self.progress.as_deref()),
            _ => Ok(()),
        }
    }

    /// Logs a part of the transaction's binlog events before its commit, for a transaction whose events would take too much memory. They
    /// count only if the commit's own events refer to the returned position (`LogFollower::part`).
    pub fn log_events(&mut self, part: &[u8]) -> Result<Lsn> {
        // The checkpoint keeps the log from the owner's beginning.
        let owner = self.owner();
        let wal = &self.system.store.wal;
        wal.reserve_events(part.len(), Urgency::Normal)?;
        let draft = Draft { kind: Kind::Events, txn: owner.id, prev_lsn: Lsn::NONE, undo: &[], parts: &[], extra: part };
        let (lsn, _) = wal.append(&draft, |_| 0)?;
        self.first_events.get_or_insert(lsn);
        self.part_bytes += part.len() as u64;
        Ok(lsn)
    }

    /// Appends the commit record with `binlog`, the transaction's binlog events (may be empty). On an error the transaction is rolled
    /// back. A transaction that wrote nothing logs nothing.
    pub fn commit(mut self, binlog: &[u8]) -> Result<CommitWait> {
        self.append_commit(binlog)
    }

    /// Its commit is to be seen only when the gate admits it (`Engine::set_commit_gate`).
    pub fn wait_for_gate(&mut self) {
        (self.how.gated, self.how.durable) = (true, true);
    }

    /// Its commit, preparation or rollback of what is prepared waits until it is durable, whatever `innodb_flush_log_at_trx_commit` says.
    pub fn wait_for_disk(&mut self) {
        self.how.durable = true;
    }

    /// As `commit`, of a few bytes that undo something, as rollbacks do: a log that is full for everybody else still takes them.
    pub fn commit_urgent(mut self, binlog: &[u8]) -> Result<CommitWait> {
        self.how.urgent = true;
        self.append_commit(binlog)
    }

    /// As `commit`, of what no snapshot has to see in the order of the commits: numbers that the catalog notes. It waits for no gate, and whoever writes
    /// the same next does not either; `CommitWait::wait_aside` waits for it.
    pub fn commit_aside(mut self) -> Result<CommitWait> {
        self.how.aside = true;
        self.append_commit(&[])
    }

    pub(super) fn append_commit(&mut self, binlog: &[u8]) -> Result<CommitWait> {
        self.view = None;
        if !self.has_writes() && binlog.is_empty() {
            self.end_unwritten();
            return Ok(CommitWait::done());
        }
        if !binlog.is_empty() {
            // While it is an answer: the record itself is never refused. What is prepared keeps the log until it has ended.
            let urgency = if self.is_prepared || self.how.urgent { Urgency::Rollback } else { Urgency::Normal };
            self.system.store.wal.reserve_events(binlog.len(), urgency)?;
        }
        let owner = self.owner();
        let system = self.system.clone();
        let mut scope = system.store.pool.scope(Writer::Commit { id: owner.id, prev_lsn: self.last_lsn })?;
        for index in &self.dropped {
            // Remembered in the directory by the commit record itself: an open after a crash frees them.
            system.store.space.mark_dropping(&mut scope, *index)?;
        }
        let mut purge = std::mem::take(&mut self.purge);
        self.dropped.drain(..).for_each(|index| purge.push(&system.history.space, &PurgeItem::Tree(index)));
        let first_events = self.first_events.take();
        let how = self.how;
        let (lsn, _) = scope.commit_transaction(binlog, |lsn| {
            if let Some(first) = first_events {
                system.store.wal.note_parts(lsn, first);
            }
            system.commits.enter(lsn, owner, purge, how)
        })?;
        self.owner = None;
        self.last_lsn = Lsn::NONE;
        self.note_events(binlog);
        Ok(CommitWait::new(system, lsn, how))
    }

    /// A record with these events, and those that were logged in parts before, is in the log.
    pub(super) fn note_events(&mut self, binlog: &[u8]) {
        if !binlog.is_empty() {
            let bytes = binlog.len() as u64 + std::mem::take(&mut self.part_bytes);
            self.system.store.wal.anatomy.binlog_bytes.note(bytes);
        }
    }

    /// Undoes everything, and lets its locks go. An error of the disk.
    pub fn rollback(mut self) -> Result<()> {
        self.end_rolled_back()
    }

    fn end_unwritten(&mut self) {
        if let Some(owner) = self.owner.take() {
            self.system.status.abort(owner.id);
            self.system.locks.release(&owner);
        }
    }

    /// After an error it can be called again, and goes on where it was.
    pub(super) fn end_rolled_back(&mut self) -> Result<()> {
        self.view = None;
        self.purge = PurgeList::default();
        self.dropped.clear();
        if let Some(owner) = &self.owner {
            self.system.roll_back(owner, &mut self.last_lsn, self.progress.as_deref())?;
        }
        (self.owner, self.last_lsn) = (None, Lsn::NONE);
        Ok(())
    }

    /// Makes an empty index; it goes away if the transaction does not commit.
    pub fn create_index(&mut self) -> Result<IndexId> {
        let owner = self.owner();
        let system = &self.system;
        let index = system.store.space.next_index_id();
        let _reserved = system.store.space.reserve(index, 1)?;
        let mut undo = Vec::new();
        Undo::Tree { index }.encode(&mut undo);
        let mut scope = system.store.pool.scope(self.writer(owner.id))?;
        scope.add_undo(&undo);
        BTree::create(&system.store.pool, &system.store.space, &mut scope, index)?;
        self.last_lsn = scope.commit()?;
        Ok(index)
    }

    /// Frees the index after the commit, once no snapshot needs it. The caller sees to it that nobody writes to it any more.
    pub fn drop_index(&mut self, index: IndexId) -> Result<()> {
        self.owner();
        if !self.dropped.contains(&index) {
            self.system.tree(index)?;
            self.dropped.push(index);
        }
        Ok(())
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        let activity = self.activity.take();
        if self.owner.is_some()
            && !self.is_prepared
            && let Err(error) = self.end_rolled_back()
        {
            tracing::error!(%error, "rolling back a dropped transaction failed");
            // Its rows stay locked until the background has undone it, or the next open.
            self.system.left_to_undo.fetch_add(1, crate::sync::Ordering::SeqCst);
            self.system.undo_later.lock().extend(self.owner.take().map(|owner| (owner, self.last_lsn)));
        }
        // Reports show it until it is undone.
        if let Some(activity) = activity {
            activity.end();
        }
    }
}
