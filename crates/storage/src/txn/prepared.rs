//! Prepared transactions: the first half of a commit in two phases. README.md, "Prepared".

use ahash::{AHashMap, AHashSet};

use super::commit::CommitWait;
use super::purge::PurgeItem;
use super::rows::Isolation;
use super::system::System;
use super::transaction::Txn;
use super::undo::Undo;
use crate::btree::RecordFlags;
use crate::error::Result;
use crate::ids::{Lsn, TxnId};
use crate::lock::{Owner, row_key};
use crate::sync::{Arc, Mutex};
use crate::wal::{Draft, Kind, Record, prepare_extra};

/// Undo bytes of one copied record.
const COPY_BYTES: usize = 1 << 20;

/// Where a prepared transaction is in the log.
struct Chain {
    owner: Arc<Owner>,
    /// What its owner wants to know of it.
    info: Vec<u8>,
    /// Changes whenever the transaction's log is copied. Held by whoever appends to it.
    end: Mutex<ChainEnd>,
}

#[derive(Clone, Copy)]
struct ChainEnd {
    prepare: Lsn,
    /// Behind `prepare` only while the transaction is being ended.
    last: Lsn,
    /// Undo bytes that the last copy had.
    copied: u64,
}

#[derive(Default)]
pub(crate) struct PreparedTransactions {
    chains: Mutex<AHashMap<TxnId, Arc<Chain>>>,
    /// Those of an earlier life that nobody has taken yet, with what they leave for purge.
    found: Mutex<Vec<(Arc<Chain>, Vec<PurgeItem>)>>,
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
}

impl Txn {
    /// Prepares the transaction, which must have written something and must not drop an index. `info` is given back by `Engine::take_prepared`
    /// after a crash; `binlog` as in `commit`. On an error it is rolled back. It is prepared once the wait is over.
    pub fn prepare(mut self, info: Vec<u8>, binlog: &[u8]) -> Result<(Prepared, CommitWait)> {
        assert!(self.has_writes() && self.dropped.is_empty(), "what is prepared can be undone from the log alone");
        self.view = None;
        let extra = prepare_extra(Lsn::NONE, &info, binlog);
        let wal = self.system.store.wal.clone();
        wal.reserve_events(extra.len())?;
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
        Ok((Prepared { txn: self, chain }, CommitWait::new(system, lsn)))
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
                (Prepared { txn, chain }, info)
            })
            .collect()
    }

    pub fn id(&self) -> TxnId {
        self.chain.owner.id
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

    /// Changes something more, to be committed with it. After a crash before the commit it is undone.
    pub fn add<T>(&mut self, change: impl FnOnce(&mut Txn) -> T) -> T {
        let mut end = self.chain.end.lock();
        self.txn.last_lsn = end.last;
        let changed = change(&mut self.txn);
        end.last = self.txn.last_lsn;
        changed
    }

    /// As [`Txn::commit`], but on an error it stays prepared.
    pub fn commit(&mut self, binlog: &[u8]) -> Result<CommitWait> {
        let end = self.chain.end.lock();
        self.txn.last_lsn = end.last;
        let wait = self.txn.append_commit(binlog)?;
        // While `end` is held: a copy must not be logged behind the commit.
        self.ended();
        drop(end);
        Ok(wait)
    }

    /// Rolls back: from the record that says so on it is an unfinished transaction like any other. On an error before that it stays prepared.
    /// It is rolled back for good once the wait is over.
    pub fn rollback(&mut self, binlog: &[u8]) -> Result<CommitWait> {
        let system = self.txn.system.clone();
        let wal = &system.store.wal;
        wal.reserve_events(binlog.len())?;
        let end = self.chain.end.lock();
        let draft = Draft { kind: Kind::RollBack, txn: self.id(), prev_lsn: end.last, undo: &[], parts: &[], extra: binlog };
        let (lsn, _) = wal.append(&draft, |_| 0)?;
        self.ended();
        drop(end);
        self.txn.last_lsn = lsn;
        self.txn.note_events(binlog);
        system.commits.note_releasing(lsn);
        self.txn.end_rolled_back()?;
        Ok(CommitWait::new(system, lsn))
    }

    fn ended(&self) {
        self.txn.system.prepared.chains.lock().remove(&self.chain.owner.id);
    }
}

impl System {
    fn add_prepared(&self, owner: Arc<Owner>, info: Vec<u8>, prepare: Lsn, last: Lsn) -> Arc<Chain> {
        let id = owner.id;
        let chain = Arc::new(Chain { owner, info, end: Mutex::new(ChainEnd { prepare, last, copied: 0 }) });
        self.prepared.chains.lock().insert(id, chain.clone());
        chain
    }

    /// At open: what an earlier life left prepared, and what purge has to do once it is committed.
    pub(super) fn adopt_prepared(&self, owner: Arc<Owner>, prepare: Lsn, last: Lsn) -> Result<()> {
        let info = self.store.wal.read(prepare)?.prepared().1.to_vec();
        let mut purge = Vec::new();
        let id = owner.id;
        self.for_each_undo(prepare, &mut |record| {
            for entry in Undo::decode(record.undo())? {
                let Undo::Row { index, key, before: Some(before) } = entry else { continue };
                // Whether the record is delete-marked is looked at then.
                purge.push(PurgeItem::Row { row: row_key(index, key).into_boxed_slice(), deleted: true });
                if before.txn == id && before.flags & RecordFlags::OVERFLOW != 0 {
                    purge.push(PurgeItem::Overflow { index, reference: before.value.into() });
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
        for chain in self.chains() {
            let mut end = chain.end.lock();
            if end.last > end.prepare {
                end.last = self.undo_until(&chain.owner, end.last, end.prepare, None)?;
            }
        }
        Ok(())
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

    /// Copies the undo bytes of transactions that have been prepared for long to the end of the log, which can let go of their records then.
    pub fn copy_prepared(&self) -> Result<()> {
        for chain in self.chains() {
            let mut end = chain.end.lock();
            let age = self.store.wal.end().0 - chain.owner.first_lsn();
            // So that copies never are most of what is logged.
            let due = age > (self.store.wal.capacity() / 4).max(4 * end.copied);
            let alive = self.prepared.chains.lock().contains_key(&chain.owner.id);
            if due && alive && end.last == end.prepare {
                *end = self.copy_chain(&chain, end.last)?;
            }
        }
        Ok(())
    }

    /// One record of a copy; the last and the first record of it so far.
    fn append_copy(&self, id: TxnId, prev: Lsn, first: Lsn, undo: &[u8]) -> Result<(Lsn, Lsn)> {
        self.store.wal.reserve_events(undo.len())?;
        let draft = Draft { kind: Kind::Undo, txn: id, prev_lsn: prev, undo, parts: &[], extra: &[] };
        let (lsn, _) = self.store.wal.append(&draft, |_| 0)?;
        Ok((lsn, if first.is_none() { lsn } else { first }))
    }

    fn copy_chain(&self, chain: &Chain, last: Lsn) -> Result<ChainEnd> {
        let mut records = Vec::new();
        self.for_each_undo(last, &mut |record| {
            records.push(record.lsn);
            Ok(())
        })?;
        let wal = &self.store.wal;
        let id = chain.owner.id;
        let (mut first, mut prev, mut copied) = (Lsn::NONE, Lsn::NONE, 0);
        let mut undo = Vec::new();
        // In the order in which things were done: a record's entries are undone last to first.
        while let Some(lsn) = records.pop() {
            let record = wal.read(lsn)?;
            // What may be undone only once begins a record, as it did in the first one: a crash in the middle of a record's undo begins it again.
            let once = Undo::decode(record.undo())?.iter().any(|entry| !matches!(entry, Undo::Row { .. } | Undo::Load { .. }));
            if once && !undo.is_empty() {
                (prev, first) = self.append_copy(id, prev, first, &undo)?;
                copied += undo.len() as u64;
                undo.clear();
            }
            undo.extend_from_slice(record.undo());
            if undo.len() >= COPY_BYTES || (records.is_empty() && !undo.is_empty()) {
                (prev, first) = self.append_copy(id, prev, first, &undo)?;
                copied += undo.len() as u64;
                undo.clear();
            }
        }
        let extra = prepare_extra(first, &chain.info, &[]);
        wal.reserve_events(extra.len())?;
        let draft = Draft { kind: Kind::Prepare, txn: id, prev_lsn: prev, undo: &[], parts: &[], extra: &extra };
        let (prepare, _) = wal.append(&draft, |_| 0)?;
        // Only now: a checkpoint must not let go of what the copy replaces before the copy counts.
        wal.flush_to(prepare)?;
        chain.owner.set_first_lsn(if first.is_none() { prepare.0 } else { first.0 });
        Ok(ChainEnd { prepare, last: prepare, copied })
    }
}
