//! Prepared transactions: the first half of a commit in two phases. README.md, "Prepared".

use ahash::{AHashMap, AHashSet};

use super::commit::CommitWait;
use super::purge::PurgeItem;
use super::purge_list::{Mark, PurgeList};
use super::rows::Isolation;
use super::system::System;
use super::transaction::Txn;
use super::undo::Undo;
use crate::btree::RecordFlags;
use crate::error::{Error, Result};
use crate::ids::{Lsn, TxnId};
use crate::lock::Owner;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};
use crate::wal::{Draft, Kind, Record, Urgency, prepare_extra};

/// Undo bytes of one copied record.
const COPY_BYTES: usize = 1 << 20;
/// Between two looks for what is to be copied, and after a copy that failed.
const COPY_WAIT_MS: u64 = 100;
const COPY_WAIT_AFTER_ERROR_MS: u64 = 1000;

/// Where a prepared transaction is in the log.
struct Chain {
    owner: Arc<Owner>,
    /// What its owner wants to know of it.
    info: Vec<u8>,
    /// Changes whenever the transaction's log is copied. Held by whoever appends to it, and by a copy while it takes the log's place.
    end: Mutex<ChainEnd>,
}

impl Chain {
    /// Undoes what was done after it was prepared.
    fn settle(&self, system: &System) -> Result<()> {
        let mut end = self.end.lock();
        let ChainEnd { prepare, last, .. } = &mut *end;
        if *last > *prepare {
            system.undo_until(&self.owner, last, *prepare, None)?;
            // As after a crash: what was taken back leads to nothing else. A copy begins here again.
            *last = *prepare;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct ChainEnd {
    prepare: Lsn,
    /// Behind `prepare` only while the transaction is being ended.
    last: Lsn,
    /// Undo bytes that the last copy had.
    copied: u64,
    /// Its commit, or the decision to roll it back, is in the log: a copy behind that would make it prepared again.
    is_over: bool,
}

impl ChainEnd {
    /// Nothing is to be committed with it, or taken back, that a copy would not have.
    fn can_be_copied(&self) -> bool {
        !self.is_over && self.last == self.prepare
    }
}

#[derive(Default)]
pub(crate) struct PreparedTransactions {
    chains: Mutex<AHashMap<TxnId, Arc<Chain>>>,
    /// Those of an earlier life that nobody has taken yet, with what they leave for purge.
    found: Mutex<Vec<(Arc<Chain>, PurgeList)>>,
    /// All of an earlier life, ended or not: what they leave is purged when nobody can see it any more.
    recovered: Mutex<AHashSet<TxnId>>,
}

impl PreparedTransactions {
    /// It was prepared in an earlier life.
    pub fn is_recovered(&self, id: TxnId) -> bool {
        self.recovered.lock().contains(&id)
    }
}

/// A transaction that neither a crash nor dropping this ends: its rows stay locked until `commit` or `rollback`. Locks of rows that it has not
/// changed, and of gaps, last until the engine's end.
pub struct Prepared {
    txn: Txn,
    chain: Arc<Chain>,
    /// What it left for purge when it was prepared.
    purge: Mark,
    /// The record that says that it is rolled back. What is left is the undo.
    rolled_back: Option<Lsn>,
    /// What was added is to be undone, and is not wholly.
    forgets: bool,
}

impl Txn {
    /// Prepares the transaction, which must have written something and must not drop an index. `info` is given back by `Engine::take_prepared`
    /// after a crash; `binlog` as in `commit`. On an error it is rolled back. It is prepared once the wait is over.
    pub fn prepare(mut self, info: Vec<u8>, binlog: &[u8]) -> Result<(Prepared, CommitWait)> {
        assert!(self.has_writes() && self.dropped.is_empty(), "what is prepared can be undone from the log alone");
        self.view = None;
        let extra = prepare_extra(Lsn::NONE, &info, binlog);
        let wal = self.system.store.wal.clone();
        wal.reserve_events(extra.len(), Urgency::Normal)?;
        let owner = self.owner();
        let draft = Draft { kind: Kind::Prepare, txn: owner.id, prev_lsn: self.last_lsn, undo: &[], parts: &[], extra: &extra };
        let first_events = self.first_events.take();
        let (lsn, _) = wal.append(&draft, |lsn| {
            if let Some(first) = first_events {
                wal.note_parts(lsn, first);
            }
            0
        })?;
        (self.last_lsn, self.is_prepared) = (lsn, true);
        self.note_events(binlog);
        let system = self.system.clone();
        let chain = system.add_prepared(owner, info, lsn, lsn);
        // What was asked of this record is not asked of the one that ends it.
        let how = std::mem::take(&mut self.how);
        Ok((Prepared { purge: self.purge.mark(), txn: self, chain, rolled_back: None, forgets: false }, CommitWait::unpublished(system, lsn, how)))
    }
}

impl Prepared {
    pub(crate) fn take(system: &Arc<System>) -> Vec<(Prepared, Vec<u8>)> {
        let found = std::mem::take(&mut *system.prepared.found.lock());
        found
            .into_iter()
            .map(|(chain, purge)| {
                let mut txn = Txn::begin(system.clone(), Isolation::RepeatableRead);
                (txn.owner, txn.purge, txn.is_prepared) = (Some(chain.owner.clone()), purge, true);
                let info = chain.info.clone();
                (Prepared { purge: txn.purge.mark(), txn, chain, rolled_back: None, forgets: false }, info)
            })
            .collect()
    }

    /// Its transaction id.
    pub fn id(&self) -> TxnId {
        self.chain.owner.id
    }

    /// REPEATABLE READ if an earlier life has prepared it.
    pub fn isolation(&self) -> Isolation {
        self.txn.isolation()
    }

    /// Where it was prepared, or the copy of that.
    pub fn lsn(&self) -> Lsn {
        self.chain.end.lock().prepare
    }

    /// See [`Txn::releasing`].
    pub fn releasing(&self) -> Lsn {
        self.txn.releasing()
    }

    /// Reports show it no longer as the transaction of the session that prepared it.
    pub fn leave_session(&mut self) {
        self.txn.leave_session();
    }

    /// Changes something more, to be committed with it. After a crash before the commit it is undone. It may use the log's last reserve.
    /// Nothing is done on an error, which is one of undoing what was added before.
    pub fn add<T>(&mut self, change: impl FnOnce(&mut Txn) -> T) -> Result<T> {
        self.finish_forgetting()?;
        let mut end = self.chain.end.lock();
        self.txn.last_lsn = end.last;
        let changed = change(&mut self.txn);
        end.last = self.txn.last_lsn;
        Ok(changed)
    }

    /// Undoes what was added: it is not committed now. After an error the next `add`, `commit` or call of this goes on with the undo first.
    pub fn forget_added(&mut self) -> Result<()> {
        self.forgets = true;
        self.finish_forgetting()
    }

    fn finish_forgetting(&mut self) -> Result<()> {
        if self.forgets {
            self.chain.settle(&self.txn.system)?;
            self.txn.purge.truncate(&self.purge);
            self.forgets = false;
        }
        Ok(())
    }

    /// As [`Txn::commit`], but on an error it stays prepared. Not to be called once a rollback is decided.
    pub fn commit(&mut self, binlog: &[u8]) -> Result<CommitWait> {
        assert!(self.rolled_back.is_none(), "P1: what is rolled back is not committed");
        // P6: half of what was added may be undone.
        self.finish_forgetting()?;
        let mut end = self.chain.end.lock();
        self.txn.last_lsn = end.last;
        let wait = self.txn.append_commit(binlog)?;
        self.ended(&mut end);
        Ok(wait)
    }

    /// For what is asked of the record that ends it: `Txn::wait_for_gate`, `Txn::wait_for_disk`.
    pub fn as_txn(&mut self) -> &mut Txn {
        &mut self.txn
    }

    /// Rolls back: from the record that says so on it is an unfinished transaction like any other. On an error before that it stays prepared; on
    /// one behind it a rollback is decided (`is_rolled_back`), and the next call, or the next open, goes on with the undo.
    /// It is rolled back for good once the wait is over.
    pub fn rollback(&mut self, binlog: &[u8]) -> Result<CommitWait> {
        let lsn = match self.rolled_back {
            Some(lsn) => lsn,
            None => self.decide_rollback(binlog)?,
        };
        self.txn.end_rolled_back()?;
        Ok(CommitWait::unpublished(self.txn.system.clone(), lsn, self.txn.how))
    }

    /// A rollback has been decided, and may be under way still.
    pub fn is_rolled_back(&self) -> bool {
        self.rolled_back.is_some()
    }

    fn decide_rollback(&mut self, binlog: &[u8]) -> Result<Lsn> {
        let wal = &self.txn.system.store.wal;
        wal.reserve_events(binlog.len(), Urgency::Rollback)?;
        let mut end = self.chain.end.lock();
        let draft = Draft { kind: Kind::RollBack, txn: self.id(), prev_lsn: end.last, undo: &[], parts: &[], extra: binlog };
        let (lsn, _) = wal.append(&draft, |_| 0)?;
        self.ended(&mut end);
        drop(end);
        (self.rolled_back, self.txn.last_lsn) = (Some(lsn), lsn);
        self.txn.note_events(binlog);
        self.txn.system.commits.note_releasing(lsn);
        Ok(lsn)
    }

    /// The record that ends it is in the log, and `end` held since before.
    fn ended(&self, end: &mut ChainEnd) {
        end.is_over = true;
        self.txn.system.prepared.chains.lock().remove(&self.chain.owner.id);
    }
}

impl System {
    fn add_prepared(&self, owner: Arc<Owner>, info: Vec<u8>, prepare: Lsn, last: Lsn) -> Arc<Chain> {
        let id = owner.id;
        let chain = Arc::new(Chain { owner, info, end: Mutex::new(ChainEnd { prepare, last, copied: 0, is_over: false }) });
        self.prepared.chains.lock().insert(id, chain.clone());
        chain
    }

    /// At open: what an earlier life left prepared, and what purge has to do once it is committed.
    pub(super) fn adopt_prepared(&self, owner: Arc<Owner>, prepare: Lsn, last: Lsn) -> Result<()> {
        let info = self.store.wal.read(prepare)?.prepared().1.to_vec();
        let mut purge = PurgeList::default();
        self.for_each_undo(prepare, &mut |record| {
            for entry in Undo::decode(record.undo())? {
                let Undo::Row { index, key, before: Some(before) } = entry else { continue };
                // Whether the record is delete-marked is looked at then.
                purge.push_row(&self.history.space, index, key, true);
                if before.flags & RecordFlags::OVERFLOW != 0 {
                    purge.push(&self.history.space, &PurgeItem::Overflow { index, reference: before.value.into() });
                }
            }
            Ok(())
        })?;
        let chain = self.add_prepared(owner, info, prepare, last);
        self.prepared.recovered.lock().insert(chain.owner.id);
        self.prepared.found.lock().push((chain, purge));
        Ok(())
    }

    /// At open: undoes what transactions did after they were prepared. The crash came before their commit.
    pub fn settle_prepared(&self) -> Result<()> {
        self.chains().iter().try_for_each(|chain| chain.settle(self))
    }

    fn chains(&self) -> Vec<Arc<Chain>> {
        self.prepared.chains.lock().values().cloned().collect()
    }

    /// A transaction's records that say how to undo something and are not undone, newest first.
    fn for_each_undo(&self, last: Lsn, visit: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        let mut next = last;
        while !next.is_none() {
            let record = self.store.wal.read(next)?;
            next = match record.kind {
                Kind::Clr => record.undo_next(),
                _ => {
                    if !record.undo().is_empty() {
                        visit(&record)?;
                    }
                    record.prev_lsn
                }
            };
        }
        Ok(())
    }

    /// The thread that copies. One of its own: a copy may be long, and may wait for room in the log.
    pub fn copy_prepared_until(&self, stop: &AtomicBool) {
        let mut reported = false;
        while !stop.load(Ordering::SeqCst) {
            match self.copy_prepared(stop) {
                Ok(()) => {
                    reported = false;
                    self.history.sleep(COPY_WAIT_MS);
                }
                Err(Error::Stopped) => return,
                Err(error) => {
                    if !std::mem::replace(&mut reported, true) {
                        tracing::warn!(%error, "a prepared transaction keeps the log: it cannot be copied");
                    }
                    self.history.sleep(COPY_WAIT_AFTER_ERROR_MS);
                }
            }
        }
    }

    /// Copies the undo bytes of transactions that have been prepared for long to the end of the log, which can let go of their records then.
    pub fn copy_prepared(&self, stop: &AtomicBool) -> Result<()> {
        for chain in self.chains() {
            let begun = *chain.end.lock();
            let age = self.store.wal.end().0.saturating_sub(chain.owner.first_lsn());
            // So that copies never are most of what is logged.
            let due = age > (self.store.wal.capacity() / 4).max(4 * begun.copied);
            if due && begun.can_be_copied() {
                match self.copy_undo(&chain, begun.last, stop) {
                    Ok(Some(copy)) => self.adopt_copy(&chain, &begun, &copy)?,
                    Ok(None) => {}
                    // What it read may have been let go meanwhile.
                    Err(_) if chain.end.lock().is_over => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Copies everything that is prepared, and lets something happen before a copy counts.
    #[cfg(test)]
    pub fn copy_around(&self, between: impl FnOnce()) {
        let stop = AtomicBool::new(false);
        let chains = self.chains();
        let begun: Vec<_> = chains.iter().map(|chain| (*chain.end.lock(), chain)).collect();
        let copies: Vec<_> = begun.iter().map(|(end, chain)| self.copy_undo(chain, end.last, &stop).unwrap().unwrap()).collect();
        between();
        for ((end, chain), copy) in begun.iter().zip(copies) {
            self.adopt_copy(chain, end, &copy).unwrap();
        }
    }

    /// Copies a chain. Its transaction may be ended meanwhile: the copy counts from `adopt_copy` on. `None`: told to stop.
    fn copy_undo(&self, chain: &Chain, last: Lsn, stop: &AtomicBool) -> Result<Option<Copy>> {
        let mut records = Vec::new();
        self.for_each_undo(last, &mut |record| {
            records.push(record.lsn);
            Ok(())
        })?;
        let mut copy = Copy { first: Lsn::NONE, last: Lsn::NONE, bytes: 0 };
        let mut undo = Vec::new();
        // In the order in which things were done: a record's entries are undone last to first.
        while let Some(lsn) = records.pop() {
            if stop.load(Ordering::SeqCst) {
                return Ok(None);
            }
            let record = self.store.wal.read(lsn)?;
            // What may be undone only once begins a record, as it did in the first one: a crash in the middle of a record's undo begins it again.
            let once = Undo::decode(record.undo())?.iter().any(|entry| !matches!(entry, Undo::Row { .. } | Undo::Load { .. }));
            if once && !undo.is_empty() {
                self.append_copy(chain.owner.id, &mut copy, &mut undo)?;
            }
            undo.extend_from_slice(record.undo());
            if undo.len() >= COPY_BYTES || (records.is_empty() && !undo.is_empty()) {
                self.append_copy(chain.owner.id, &mut copy, &mut undo)?;
            }
        }
        Ok(Some(copy))
    }

    /// One record of a copy.
    fn append_copy(&self, id: TxnId, copy: &mut Copy, undo: &mut Vec<u8>) -> Result<()> {
        self.store.wal.reserve_events(undo.len(), Urgency::Normal)?;
        let draft = Draft { kind: Kind::Undo, txn: id, prev_lsn: copy.last, undo, parts: &[], extra: &[] };
        (copy.last, _) = self.store.wal.append(&draft, |_| 0)?;
        if copy.first.is_none() {
            copy.first = copy.last;
        }
        copy.bytes += undo.len() as u64;
        undo.clear();
        Ok(())
    }

    /// From here on the transaction lives from the copy, if it is still as it was when that was begun.
    fn adopt_copy(&self, chain: &Chain, begun: &ChainEnd, copy: &Copy) -> Result<()> {
        let wal = &self.store.wal;
        let extra = prepare_extra(copy.first, &chain.info, &[]);
        wal.reserve_events(extra.len(), Urgency::Normal)?;
        let mut end = chain.end.lock();
        if !end.can_be_copied() || end.prepare != begun.prepare {
            return Ok(());
        }
        let draft = Draft { kind: Kind::Prepare, txn: chain.owner.id, prev_lsn: copy.last, undo: &[], parts: &[], extra: &extra };
        let (prepare, _) = wal.append(&draft, |_| 0)?;
        // What is logged of it from now on leads to the copy.
        (end.prepare, end.last, end.copied) = (prepare, prepare, copy.bytes);
        // Only now: a checkpoint must not let go of what the copy replaces before the copy counts.
        wal.flush_to(prepare)?;
        chain.owner.set_first_lsn(if copy.first.is_none() { prepare.0 } else { copy.first.0 });
        Ok(())
    }
}

/// Undo bytes of a prepared transaction that were logged again.
struct Copy {
    /// The first and the last record of them; none if there are no such bytes.
    first: Lsn,
    last: Lsn,
    bytes: u64,
}
