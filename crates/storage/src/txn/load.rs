//! Bulk load: empty indexes filled from ascending rows, bottom-up, one of them or several side by side.
//!
//! The pages' content is not logged, whether they are of the tree or of long values. What is: each run of pages that is taken, with undo bytes
//! that free it, and one record that puts the finished pages of all loads under the roots, whose `prev_lsn` leads before the first run (a nested
//! top action): once attached, the pages are the trees', and taking the loads back is removing their rows. It is one record because a second one
//! would lead around the runs of the loads that are not attached yet.

use super::long;
use super::system::{System, count};
use super::transaction::Txn;
use super::undo::Undo;
use crate::btree::{corrupt, record_ref};
use crate::btree::{BTree, BatchRows, Cursor, Decision, Direction as LeafDirection, LeafScan, RecordFlags, Top, TreeLoad};
use crate::buffer::{Scope, Writer};
use crate::error::Result;
use crate::ids::{IndexId, Lsn, PageId, TxnId};
use crate::page::slotted::fits_inline;
use crate::page::{PAGE_SIZE, PageType, redo as page_redo};
use crate::space::PageRun;
use crate::sync::{Mutex, Ordering};
use crate::wal::Urgency;
use std::ops::Bound;

/// Pages taken at a time, all latched while their allocation is logged: a quarter of an extent.
const RUN_PAGES: u32 = 16;

/// What became of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// So many rows are in the index.
    Rows(u64),
    /// Somebody has put a row into the index or locked a key of it meanwhile: nothing was loaded.
    NotEmpty,
}

/// A load under way. Between [`Txn::load`] and [`Load::finish`] or [`Txn::attach`] the transaction writes nothing but other loads, all begun before the
/// first row of any. If it is not finished, roll back to a savepoint taken before it.
pub struct Load {
    tree: BTree,
    build: TreeLoad,
    before: Lsn,
    rows: u64,
}

/// A load whose pages are all made and on disk; see [`Txn::attach`].
pub struct SealedLoad {
    load: Load,
    top: Top,
}

/// Where a load finds its transaction: alone with it, or beside other loads.
pub trait LoadTxn {
    /// Does `f` with the transaction, while nobody else has it.
    fn with<T>(&mut self, f: impl FnOnce(&mut Txn) -> T) -> T;
}

impl LoadTxn for Txn {
    fn with<T>(&mut self, f: impl FnOnce(&mut Txn) -> T) -> T {
        f(self)
    }
}

/// A transaction for several threads, each with a load of its own. They need it once in some hundred rows.
pub struct SharedTxn<'t>(Mutex<&'t mut Txn>);

impl<'t> SharedTxn<'t> {
    /// Shares the transaction for as long as this lives.
    pub fn new(txn: &'t mut Txn) -> SharedTxn<'t> {
        SharedTxn(Mutex::new(txn))
    }
}

impl LoadTxn for &SharedTxn<'_> {
    fn with<T>(&mut self, f: impl FnOnce(&mut Txn) -> T) -> T {
        f(&mut self.0.lock())
    }
}

impl Txn {
    /// Begins to load an index. `None` if it is not empty, or watched: insert in batches then.
    pub fn load(&mut self, index: IndexId) -> Result<Option<Load>> {
        let owner = self.owner();
        let tree = self.system.tree(index)?;
        if !can_load(&self.system, &tree, owner.id)? {
            return Ok(None);
        }
        let fill_factor = self.system.fill_factor.load(Ordering::Relaxed);
        Ok(Some(Load { build: TreeLoad::new(tree.clone(), owner.id, fill_factor), tree, before: self.last_lsn, rows: 0 }))
    }

    /// Puts the pages of loads under their roots: of all, or, if that cannot be, of none, and their pages are free again. They were begun one after the
    /// other, with nothing in between.
    pub fn attach(&mut self, loads: Vec<SealedLoad>) -> Result<Loaded> {
        let Some(before) = loads.first().map(|sealed| sealed.load.before) else { return Ok(Loaded::Rows(0)) };
        let filled: Vec<&SealedLoad> = loads.iter().filter(|sealed| sealed.load.rows > 0).collect();
        if filled.is_empty() || self.attach_all(&filled)? {
            return Ok(Loaded::Rows(filled.iter().map(|sealed| sealed.load.rows).sum()));
        }
        // Nobody writes the pages once they are given up.
        drop(loads);
        self.undo_part(before)?;
        Ok(Loaded::NotEmpty)
    }

    /// As `attach`; if that cannot be, every row of the first load goes to `back`, in key order.
    pub fn attach_or_give_back(&mut self, mut loads: Vec<SealedLoad>, back: impl FnMut(&[u8], &[u8])) -> Result<Loaded> {
        let filled: Vec<&SealedLoad> = loads.iter().filter(|sealed| sealed.load.rows > 0).collect();
        if filled.is_empty() || self.attach_all(&filled)? {
            return Ok(Loaded::Rows(filled.iter().map(|sealed| sealed.load.rows).sum()));
        }
        let first = loads.swap_remove(0);
        // Nobody writes the pages once they are given up, which those of all loads are with the first one's.
        drop(loads);
        first.give_back(self, back)?;
        Ok(Loaded::NotEmpty)
    }

    /// False, and nothing was changed, if one of the trees is not empty or somebody has a lock in it.
    fn attach_all(&mut self, loads: &[&SealedLoad]) -> Result<bool> {
        let owner = self.owner();
        let system = self.system.clone();
        let before = loads[0].load.before;
        assert!(loads.iter().all(|sealed| sealed.load.before == before), "loads side by side are begun before the first row of any");
        // This also reads the roots, so that it need not be done under latches.
        for sealed in loads {
            if !can_load(&system, &sealed.load.tree, owner.id)? {
                return Ok(false);
            }
        }
        // Roots of several trees are latched in the order of the trees (btree/README.md, "Latch order").
        let mut loads = loads.to_vec();
        loads.sort_by_key(|sealed| sealed.load.tree.index());
        system.store.wal.reserve_events(loads.len() * PAGE_SIZE, Urgency::Normal)?;
        let mut scope = system.store.pool.scope(Writer::Txn { id: owner.id, prev_lsn: before, urgent: false })?;
        let mut roots = Vec::with_capacity(loads.len());
        for SealedLoad { load, top } in &loads {
            let hindered = || system.locks.any_in(load.tree.index(), owner.id);
            let Some(root) = load.tree.begin_attach(top, hindered)? else { return Ok(false) };
            roots.push(root);
        }
        let mut undo = Vec::new();
        for (SealedLoad { load, .. }, root) in loads.iter().zip(&mut roots) {
            root.fill(&mut scope)?;
            for unused in load.build.unused() {
                system.store.space.free_run(&mut scope, unused)?;
            }
            Undo::Load { index: load.tree.index() }.encode(&mut undo);
        }
        scope.add_undo(&undo);
        self.last_lsn = scope.commit()?;
        for SealedLoad { load, .. } in &loads {
            load.build.runs().iter().rev().for_each(|run| load.tree.end_loading(*run));
        }
        drop(roots);
        let rows: u64 = loads.iter().map(|sealed| sealed.load.rows).sum();
        owner.add_work(rows);
        count(&system.counters.rows_inserted, rows);
        Ok(true)
    }

    /// Pages for the load. Their record makes them anew, so that redo neither needs nor applies what the log has of an earlier life.
    fn take_run(&mut self, tree: &BTree) -> Result<(PageRun, Lsn)> {
        let owner = self.owner();
        let system = self.system.clone();
        let index = tree.index();
        let mut scope = system.store.pool.scope(self.writer(owner.id))?;
        let run = system.store.space.allocate_run(&mut scope, index, RUN_PAGES)?;
        blank(&system, &mut scope, index, run)?;
        let mut undo = Vec::new();
        Undo::Pages { index, first: run.first, pages: run.pages }.encode(&mut undo);
        scope.add_undo(&undo);
        self.last_lsn = scope.commit()?;
        tree.begin_loading(run);
        Ok((run, self.last_lsn))
    }
}

fn can_load(system: &System, tree: &BTree, owner: TxnId) -> Result<bool> {
    Ok(tree.is_empty_root()? && !system.locks.any_in(tree.index(), owner) && system.watches.of(tree.index()).is_none())
}

/// Makes the run's pages ones of no tree.
fn blank<'p>(system: &'p System, scope: &mut Scope<'p>, index: IndexId, run: PageRun) -> Result<()> {
    let guards: Result<Vec<_>> = (0..run.pages as u64).map(|n| system.store.pool.fix_new(PageId(run.first.0 + n))).collect();
    for mut guard in guards? {
        scope.apply(&mut guard, page_redo::INIT, &page_redo::init_payload(PageType::Overflow, 0, 0, index))?;
        scope.keep(guard);
    }
    Ok(())
}

impl SealedLoad {
    /// The value of a row that was loaded.
    pub fn get(&self, txn: &Txn, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some((flags, value)) = self.load.build.get(&self.top, key)? else { return Ok(None) };
        if flags & RecordFlags::OVERFLOW != 0 { long::read(&txn.system, &value).map(Some) } else { Ok(Some(value)) }
    }

    /// As [`Load::give_back`]. The pages of loads beside it go with its own.
    fn give_back(self, txn: &mut Txn, back: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let SealedLoad { load, top } = self;
        load.take_apart(txn, &top, back)
    }
}

impl Load {
    /// Adds a row. Its key must be above all before it.
    pub fn push(&mut self, txn: &mut impl LoadTxn, key: &[u8], value: &[u8]) -> Result<()> {
        self.rows += 1;
        let mut take = || txn.with(|txn| txn.take_run(&self.tree));
        if fits_inline(key.len(), value.len()) {
            return self.build.push(key, 0, value, &mut take);
        }
        let reference = self.build.write_long(value, &mut take)?;
        self.build.push(key, RecordFlags::OVERFLOW, &reference.encode(), &mut take)
    }

    /// Makes the last pages and waits until all are on disk. The rows are in the index once [`Txn::attach`] says so.
    pub fn seal(mut self, txn: &mut impl LoadTxn) -> Result<SealedLoad> {
        let top = self.build.finish(&mut || txn.with(|txn| txn.take_run(&self.tree)))?;
        self.build.write_out()?;
        Ok(SealedLoad { load: self, top })
    }

    /// Whether somebody has put a row into the index or locked a key of it since: [`Load::finish`] would load nothing.
    pub fn is_hindered(&self, txn: &mut Txn) -> Result<bool> {
        let owner = txn.owner();
        Ok(!can_load(&txn.system, &self.tree, owner.id)?)
    }

    /// Writes the pages to disk and puts them under the root. If that cannot be, every row goes to `back`, in key order.
    pub fn finish(self, txn: &mut Txn, back: impl FnMut(&[u8], &[u8])) -> Result<Loaded> {
        if self.rows == 0 {
            return Ok(Loaded::Rows(0));
        }
        let sealed = self.seal(txn)?;
        if txn.attach_all(&[&sealed])? {
            return Ok(Loaded::Rows(sealed.load.rows));
        }
        sealed.load.take_apart(txn, &sealed.top, back)?;
        Ok(Loaded::NotEmpty)
    }

    /// Loads nothing after all: every row goes to `back`, in key order.
    pub fn give_back(mut self, txn: &mut Txn, back: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let top = self.build.finish(&mut || txn.take_run(&self.tree))?;
        self.take_apart(txn, &top, back)
    }

    fn take_apart(self, txn: &mut Txn, top: &Top, mut back: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let (mut key, mut long) = (Vec::new(), Vec::new());
        self.build.for_each(top, |node, slot| {
            key.clear();
            node.key(slot, &mut key).map_err(|e| corrupt(PageId(node.page_id()), e))?;
            let record = record_ref(node, slot).map_err(|e| corrupt(PageId(node.page_id()), e))?;
            if record.flags & RecordFlags::OVERFLOW != 0 {
                long = long::read(&txn.system, record.value)?;
                back(&key, &long);
            } else {
                back(&key, record.value);
            }
            Ok(())
        })?;
        let before = self.before;
        // Nobody writes the pages once they are given up.
        drop(self);
        txn.undo_part(before)
    }
}

/// Keys that are to go.
#[derive(Default)]
struct Keys(Vec<Vec<u8>>);

impl BatchRows for Keys {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn key(&self, row: usize) -> &[u8] {
        &self.0[row]
    }

    fn value(&self, _: usize) -> &[u8] {
        &[]
    }
}

impl System {
    /// Gives the pages of a load that was not attached back.
    pub(super) fn undo_pages(&self, index: IndexId, run: PageRun, writer: Writer) -> Result<Lsn> {
        let tree = self.tree(index)?;
        let mut scope = self.store.pool.scope(writer)?;
        blank(self, &mut scope, index, run)?;
        self.store.space.free_run(&mut scope, run)?;
        let lsn = scope.commit()?;
        tree.end_loading(run);
        Ok(lsn)
    }

    /// Takes a load back: removes every row of `id` from the index. `lsn`: the load's record, where a crash in between begins again.
    pub(super) fn undo_load(&self, id: TxnId, index: IndexId, mut last_lsn: Lsn, lsn: Lsn) -> Result<Lsn> {
        let tree = self.tree(index)?;
        let mut cursor = Cursor::new();
        let mut scan = LeafScan::new(Bound::Unbounded, Bound::Unbounded, LeafDirection::Forward);
        let (mut keys, mut long): (Keys, Vec<(Vec<u8>, Vec<u8>)>) = (Keys::default(), Vec::new());
        loop {
            keys.0.clear();
            long.clear();
            let more = tree.scan_leaf(&mut scan, |leaf| {
                for i in (0..leaf.len()).filter(|i| leaf.record(*i).txn == id) {
                    let mut key = Vec::new();
                    leaf.key(i, &mut key);
                    let record = leaf.record(i);
                    if record.flags & RecordFlags::OVERFLOW != 0 {
                        long.push((key, record.value.to_vec()));
                    } else {
                        keys.0.push(key);
                    }
                }
            })?;
            let mut done = 0;
            while done < keys.len() {
                let writer = Writer::Clr { id, prev_lsn: last_lsn, undo_next: lsn };
                let batch = tree.modify_batch(&mut cursor, &keys, done..keys.len(), writer, |_, place, _| {
                    if place.record().is_some_and(|r| r.txn == id) { Decision::Remove } else { Decision::Leave }
                })?;
                if !batch.lsn.is_none() {
                    last_lsn = batch.lsn;
                }
                done += batch.done;
            }
            for (key, reference) in &long {
                let runs = long::runs(self, reference)?;
                let writer = Writer::Clr { id, prev_lsn: last_lsn, undo_next: lsn };
                let removed = tree.remove_freeing(&mut cursor, key, |txn| txn == id, &runs, writer)?;
                if !removed.is_none() {
                    last_lsn = removed;
                }
            }
            if !more {
                return Ok(last_lsn);
            }
        }
    }
}
