//! Row changes: insert, batch insert, update, delete, and locking reads.
//!
//! Everything is decided under the exclusive latch of the row's leaf (a locking read: the shared one): whose record it is, which
//! locks there are, what the older version is. Nothing waits there; who must wait is queued and told so.

use super::long;
use super::purge::PurgeItem;
use super::rollback::garbage_entry;
use super::rows::{BatchOutcome, Inserted, LockMode, LockWaitPolicy, Locked, Op};
use super::system::{GARBAGE_INDEX, System, count};
use super::transaction::Txn;
use super::undo::{Before, Undo};
use super::versions::Version;
use super::views::View;
use crate::btree::{BTree, BatchRows, Decision, RecordFlags, RecordRef};
use crate::error::Result;
use crate::ids::{IndexId, TxnId};
use crate::lock::{Answer, LockWait, Neighbours, Owner, Waiter, Wants, row_key};
use crate::page::slotted::fits_inline;
use crate::sync::Arc;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Update,
    Delete,
}

/// What to do with a row, found under its leaf's latch.
enum Verdict {
    Go,
    /// Insert: there is a live row.
    Duplicate,
    /// Update, delete: there is no live row.
    Missing,
    Wait(Arc<Waiter>),
    /// Its owner ended this moment.
    Again,
}

/// What a change found and left, for what follows outside the latch.
#[derive(Default)]
struct Trace {
    /// An older version was entered for this row.
    pushed: bool,
    /// The view of the transaction's consistent reads does not see that version.
    unseen: bool,
    /// The overflow value that was replaced.
    replaced: Option<Vec<u8>>,
}

/// One transaction writing to one index.
struct Writing<'a> {
    system: &'a System,
    owner: &'a Arc<Owner>,
    index: IndexId,
    kind: Kind,
    /// Of the transaction's consistent reads.
    view: Option<&'a View>,
}

impl Writing<'_> {
    fn id(&self) -> TxnId {
        self.owner.id
    }

    fn judge(&self, key: &[u8], record: Option<RecordRef>) -> Verdict {
        if let Some(record) = record {
            let live = record.flags & RecordFlags::DELETE_MARK == 0;
            if record.txn != self.id() && self.system.status.is_open(record.txn) {
                return self.ask(key, Some(record.txn));
            }
            match self.kind {
                Kind::Insert if live => return Verdict::Duplicate,
                Kind::Update | Kind::Delete if !live => return Verdict::Missing,
                _ => {}
            }
            if record.txn == self.id() {
                return Verdict::Go;
            }
        } else if self.kind != Kind::Insert {
            return Verdict::Missing;
        }
        if self.kind == Kind::Insert {
            self.system.locks.note_new_row(self.index, key);
        }
        if self.system.locks.blocks_write(self.id(), self.index, key) {
            return self.ask(key, None);
        }
        let locks = &self.system.locks;
        let wants = if self.kind == Kind::Insert { Wants::Insert } else { Wants::Lock };
        if locks.range_forbids(self.id(), self.index, wants, key)
            && (wants == Wants::Insert || !locks.holds_exclusively(self.id(), self.index, key))
        {
            return locks.wait_for_range(self.owner, self.index, wants, key).map_or(Verdict::Again, Verdict::Wait);
        }
        Verdict::Go
    }

    fn ask(&self, key: &[u8], implicit: Option<TxnId>) -> Verdict {
        match self.system.locks.acquire(self.owner, self.index, key, LockMode::Exclusive, implicit, true) {
            Answer::Queued(waiter) => Verdict::Wait(waiter),
            // With the lock in hand it is looked at what else there is: gaps.
            Answer::Granted { .. } | Answer::Again | Answer::Blocked => Verdict::Again,
        }
    }

    /// Says how the change is taken back, keeps the old record where older snapshots find it.
    fn prepare(&self, key: &[u8], record: Option<RecordRef>, mut flags: u16, undo: &mut Vec<u8>, trace: &mut Trace) -> Decision {
        let id = self.id();
        let before = record.map(|r| Before { txn: r.txn, flags: r.flags, value: r.value });
        Undo::Row { index: self.index, key, before }.encode(undo);
        if let Some(record) = record {
            if record.txn == id {
                flags |= record.flags & RecordFlags::HAS_OLDER;
            } else {
                let version = Version { txn: record.txn, flags: record.flags, value: record.value.into(), by: id };
                let row = row_key(self.index, key);
                if self.system.versions.push(&row, version) {
                    self.system.versions.prune(&row, &self.system.recent_horizon());
                }
                trace.pushed = true;
                trace.unseen = self.view.is_some_and(|view| !self.system.status.visible_at(record.txn, view.ts));
                flags |= RecordFlags::HAS_OLDER;
            }
            if record.flags & RecordFlags::OVERFLOW != 0 {
                trace.replaced = Some(record.value.to_vec());
            }
        }
        if self.kind == Kind::Delete {
            flags |= RecordFlags::DELETE_MARK;
        }
        Decision::Put { txn: id, flags }
    }

    /// Takes back what `prepare` entered: the decision was not carried out.
    fn forget(&self, key: &[u8], trace: &mut Trace) {
        if trace.pushed {
            self.system.versions.pop(&row_key(self.index, key), self.id());
        }
        *trace = Trace::default();
    }
}

impl Txn {
    /// Inserts a row unless a live one of this key exists.
    pub fn insert(&mut self, index: IndexId, key: &[u8], value: &[u8]) -> Result<Op<Inserted>> {
        Ok(match self.change_row(index, key, Kind::Insert, value)? {
            Verdict::Go => Op::Done(Inserted::Yes),
            Verdict::Wait(waiter) => Op::Wait(self.wait(waiter)),
            _ => Op::Done(Inserted::Duplicate),
        })
    }

    /// Replaces the value of the latest committed or own row. False when there is none.
    pub fn update(&mut self, index: IndexId, key: &[u8], value: &[u8]) -> Result<Op<bool>> {
        Ok(match self.change_row(index, key, Kind::Update, value)? {
            Verdict::Go => Op::Done(true),
            Verdict::Wait(waiter) => Op::Wait(self.wait(waiter)),
            _ => Op::Done(false),
        })
    }

    /// Deletes the latest committed or own row. False when there is none.
    pub fn delete(&mut self, index: IndexId, key: &[u8]) -> Result<Op<bool>> {
        Ok(match self.change_row(index, key, Kind::Delete, &[])? {
            Verdict::Go => Op::Done(true),
            Verdict::Wait(waiter) => Op::Wait(self.wait(waiter)),
            _ => Op::Done(false),
        })
    }

    pub(super) fn wait(&self, waiter: Arc<Waiter>) -> LockWait {
        LockWait::start(&self.system.locks, waiter, self.lock_wait_timeout, self.interrupt.as_deref())
    }

    fn change_row(&mut self, index: IndexId, key: &[u8], kind: Kind, value: &[u8]) -> Result<Verdict> {
        self.system.make_room_for_versions()?;
        if kind == Kind::Delete || fits_inline(key.len(), value.len()) {
            return self.change_inline(index, key, kind, value, 0);
        }
        // A long value is written first, holding no latch. If the row turns out not to take it, it is taken back.
        let start = self.last_lsn;
        let reference = long::write(self, index, value)?;
        let verdict = self.change_inline(index, key, kind, &reference, RecordFlags::OVERFLOW);
        if !matches!(verdict, Ok(Verdict::Go))
            && let Err(error) = self.undo_part(start)
        {
            if let Ok(Verdict::Wait(waiter)) = &verdict {
                self.system.locks.abandon(waiter);
            }
            return Err(error);
        }
        verdict
    }

    fn change_inline(&mut self, index: IndexId, key: &[u8], kind: Kind, value: &[u8], flags: u16) -> Result<Verdict> {
        let owner = self.owner();
        let tree = self.system.tree(index)?;
        let system = &self.system;
        let writing = Writing { system, owner: &owner, index, kind, view: self.view.as_deref() };
        let mut trace = Trace::default();
        loop {
            let mut verdict = Verdict::Again;
            let writer = self.writer(owner.id);
            let result = tree.modify(&mut self.cursor, key, writer, |place, change| {
                writing.forget(key, &mut trace);
                verdict = writing.judge(key, place.record());
                match verdict {
                    Verdict::Go => {
                        change.value.extend_from_slice(value);
                        writing.prepare(key, place.record(), flags, &mut change.undo, &mut trace)
                    }
                    _ => Decision::Leave,
                }
            });
            match (result, &verdict) {
                (Ok(lsn), Verdict::Go) => {
                    self.last_lsn = lsn;
                    if let Some(notes) = system.watches.of(index) {
                        notes.add(owner.id, [key].into_iter());
                    }
                    owner.add_work(1);
                    count(
                        match kind {
                            Kind::Insert => &system.counters.rows_inserted,
                            Kind::Update => &system.counters.rows_updated,
                            Kind::Delete => &system.counters.rows_deleted,
                        },
                        1,
                    );
                    self.leave_history(index, key, kind == Kind::Delete, trace)?;
                    return Ok(verdict);
                }
                (Ok(_), Verdict::Again) => {}
                (Ok(_), _) => return Ok(verdict),
                (Err(error), _) => {
                    writing.forget(key, &mut trace);
                    if let Verdict::Wait(waiter) = verdict {
                        system.locks.abandon(&waiter);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Notes what purge will have to do for a change.
    fn leave_history(&mut self, index: IndexId, key: &[u8], deleted: bool, trace: Trace) -> Result<()> {
        if trace.unseen
            && let Some(view) = &self.view
        {
            view.note_replaced(index, key);
        }
        if trace.pushed || deleted {
            self.purge.push_row(&self.system.history.space, index, key, deleted);
        }
        if let Some(reference) = trace.replaced {
            self.enter_garbage(index, &reference)?;
            self.purge.push(&self.system.history.space, &PurgeItem::Overflow { index, reference: reference.into() });
        }
        Ok(())
    }

    /// Enters a replaced overflow value in the garbage index, so that it is freed even if purge does not get to it before a crash.
    fn enter_garbage(&mut self, index: IndexId, reference: &[u8]) -> Result<()> {
        let owner = self.owner();
        let mut undo = Vec::new();
        let key = garbage_entry(index, reference, &mut undo);
        let writer = self.writer(owner.id);
        self.last_lsn = self.system.tree(GARBAGE_INDEX)?.modify(&mut self.cursor, &key, writer, |_, change| {
            change.undo.extend_from_slice(&undo);
            Decision::Put { txn: owner.id, flags: 0 }
        })?;
        Ok(())
    }

    /// Inserts `rows[start..]` as far as it gets without waiting: one descent, latch and log record per leaf. `Wait` only when the
    /// first of them has to.
    pub fn insert_batch(&mut self, index: IndexId, rows: &impl BatchRows, start: usize) -> Result<Op<BatchOutcome>> {
        let tree = self.system.tree(index)?;
        let mut at = start;
        // Rows before this are short: looked at once, however many leaves they go to.
        let mut short_end = start;
        while at < rows.len() {
            while short_end < rows.len() && fits_inline(rows.key(short_end).len(), rows.value(short_end).len()) {
                short_end += 1;
            }
            let verdict = if short_end == at {
                let verdict = self.change_row(index, rows.key(at), Kind::Insert, rows.value(at))?;
                at += matches!(verdict, Verdict::Go) as usize;
                short_end = at;
                verdict
            } else {
                let (done, verdict) = self.insert_leaf(&tree, rows, at..short_end)?;
                at += done;
                verdict
            };
            let inserted = at - start;
            match verdict {
                Verdict::Duplicate => return Ok(Op::Done(BatchOutcome { inserted, duplicate: true })),
                Verdict::Wait(waiter) if inserted == 0 => return Ok(Op::Wait(self.wait(waiter))),
                Verdict::Wait(waiter) => {
                    // The caller hears of what was done first, and asks again.
                    self.system.locks.abandon(&waiter);
                    return Ok(Op::Done(BatchOutcome { inserted, duplicate: false }));
                }
                _ => {}
            }
        }
        Ok(Op::Done(BatchOutcome { inserted: at - start, duplicate: false }))
    }

    /// Inserts the rows of one leaf. Returns how many, and why it stopped if it did.
    fn insert_leaf(&mut self, tree: &BTree, rows: &impl BatchRows, range: Range<usize>) -> Result<(usize, Verdict)> {
        self.system.make_room_for_versions()?;
        let owner = self.owner();
        let index = tree.index();
        let system = &self.system;
        let writing = Writing { system, owner: &owner, index, kind: Kind::Insert, view: self.view.as_deref() };
        let writer = self.writer(owner.id);
        // Rows that revive a deleted one: few.
        let mut traces: Vec<(usize, Trace)> = Vec::new();
        let mut verdict = Verdict::Go;
        let result = tree.modify_batch(&mut self.cursor, rows, range.clone(), writer, |row, place, undo| {
            let key = rows.key(row);
            if let Some(again) = traces.iter().position(|(traced, _)| *traced == row) {
                writing.forget(key, &mut traces.swap_remove(again).1);
            }
            verdict = writing.judge(key, place.record());
            if !matches!(verdict, Verdict::Go) {
                return Decision::Stop;
            }
            let mut trace = Trace::default();
            let decision = writing.prepare(key, place.record(), 0, undo, &mut trace);
            if trace.pushed || trace.replaced.is_some() {
                traces.push((row, trace));
            }
            decision
        });
        let done = result.as_ref().map_or(0, |batch| batch.done);
        let end = range.start + done;
        for (row, trace) in traces.iter_mut().filter(|(row, _)| *row >= end) {
            writing.forget(rows.key(*row), trace);
        }
        let batch = match result {
            Ok(batch) => batch,
            Err(error) => {
                if let Verdict::Wait(waiter) = verdict {
                    system.locks.abandon(&waiter);
                }
                return Err(error);
            }
        };
        if let Some(notes) = system.watches.of(index) {
            notes.add(owner.id, (range.start..end).map(|row| rows.key(row)));
        }
        owner.add_work(done as u64);
        count(&system.counters.rows_inserted, done as u64);
        if !batch.lsn.is_none() {
            self.last_lsn = batch.lsn;
        }
        for (row, trace) in traces.into_iter().filter(|(row, _)| *row < end) {
            self.leave_history(index, rows.key(row), false, trace)?;
        }
        Ok((done, verdict))
    }

    /// Locks a row, and reads its latest committed or own value. Where there is no row, the gap is locked at REPEATABLE READ and SERIALIZABLE, and
    /// below that nothing.
    pub fn lock(&mut self, index: IndexId, key: &[u8], mode: LockMode, policy: LockWaitPolicy) -> Result<Op<Locked>> {
        let system = self.system.clone();
        let owner = self.owner();
        let tree = system.tree(index)?;
        let mut value = Vec::new();
        loop {
            let mut answer = Answer::Again;
            let mut found = None;
            let mut missing = false;
            let mut deleted_here = false;
            tree.read_place(key, |place| {
                let record = place.record();
                let own = record.is_some_and(|r| r.txn == owner.id);
                let implicit = record.map(|r| r.txn).filter(|txn| !own && system.status.is_open(*txn));
                missing = implicit.is_none() && record.is_none_or(|r| r.flags & RecordFlags::DELETE_MARK != 0);
                deleted_here = own && missing;
                self.newest_lock.clear();
                let near = || {
                    let [before, after] = place.neighbours();
                    Neighbours { before, after }
                };
                answer = if own || missing {
                    // Its own record is its exclusive lock.
                    Answer::Granted { new: false }
                } else if implicit.is_none()
                    && let Some(new) = system.locks.lock_in_run(&owner, index, key, mode, near)
                {
                    Answer::Granted { new }
                } else {
                    system.locks.acquire(&owner, index, key, mode, implicit, policy == LockWaitPolicy::Wait)
                };
                if matches!(answer, Answer::Granted { new: true }) {
                    self.newest_lock = row_key(index, key);
                }
                if !own && !missing && matches!(answer, Answer::Granted { .. }) {
                    system.locks.join_run(&owner, index, key, near);
                }
                if let (Answer::Granted { .. }, Some(record), None) = (&answer, record, implicit)
                    && record.flags & RecordFlags::DELETE_MARK == 0
                {
                    value.clear();
                    value.extend_from_slice(record.value);
                    found = Some(record.flags);
                }
            })?;
            if missing {
                // A lock that was waited for until the row was gone is of no use. Of a row that the transaction has deleted itself, others wait for it.
                if !deleted_here {
                    system.locks.release_key(&owner, index, key);
                }
                if self.locks_gaps() && !self.lock_gap(&tree, key, mode)? {
                    continue;
                }
                return Ok(Op::Done(Locked::Yes(None)));
            }
            return Ok(match answer {
                Answer::Again => continue,
                Answer::Blocked => Op::Done(Locked::WouldBlock),
                Answer::Queued(waiter) => Op::Wait(self.wait(waiter)),
                Answer::Granted { .. } => match found {
                    None => Op::Done(Locked::Yes(None)),
                    // The lock keeps the row, hence the overflow value, as it is.
                    Some(flags) if flags & RecordFlags::OVERFLOW != 0 => {
                        Op::Done(Locked::Yes(Some(long::read(&system, &value)?)))
                    }
                    Some(_) => Op::Done(Locked::Yes(Some(value))),
                },
            });
        }
    }

    /// Gives a row's lock back that `lock` has just taken: below REPEATABLE READ a row that a statement turns out not to want is not kept. Nothing
    /// happens if the transaction had the lock before, if it had to wait for it (InnoDB keeps such a lock too), or if it has locked another row since.
    pub fn unlock(&mut self, index: IndexId, key: &[u8]) {
        if self.newest_lock.is_empty() || self.newest_lock != row_key(index, key) {
            return;
        }
        self.newest_lock.clear();
        if let Some(owner) = &self.owner {
            self.system.locks.release_row(owner, index, key);
        }
    }
}
