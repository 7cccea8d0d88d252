//! Bulk load: an empty index filled from ascending rows, bottom-up.
//!
//! The pages' content is not logged. What is: each run of pages that is taken, with undo bytes that free it, and one record that puts the
//! finished pages under the root, whose `prev_lsn` leads before the first run (a nested top action): once attached, the pages are the tree's,
//! and taking the load back is removing its rows.

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
use crate::page::{PageType, redo as page_redo};
use crate::space::PageRun;
use crate::sync::Ordering;
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

/// A load under way. Between [`Txn::load`] and [`Load::finish`] the transaction writes nothing else; if it is not finished, roll back to a
/// savepoint taken before it.
pub struct Load {
    tree: BTree,
    build: TreeLoad,
    before: Lsn,
    rows: u64,
}

impl Txn {
    /// Begins to load an index. `None` if it is not empty: insert in batches then.
    pub fn load(&mut self, index: IndexId) -> Result<Option<Load>> {
        let owner = self.owner();
        let tree = self.system.tree(index)?;
        if !can_load(&self.system, &tree, owner.id)? {
            return Ok(None);
        }
        let fill_factor = self.system.fill_factor.load(Ordering::Relaxed);
        Ok(Some(Load { build: TreeLoad::new(tree.clone(), owner.id, fill_factor), tree, before: self.last_lsn, rows: 0 }))
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
    Ok(tree.is_empty_root()? && !system.locks.any_in(tree.index(), owner))
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

impl Load {
    /// Adds a row. Its key must be above all before it.
    pub fn push(&mut self, txn: &mut Txn, key: &[u8], value: &[u8]) -> Result<()> {
        self.rows += 1;
        if fits_inline(key.len(), value.len()) {
            return self.build.push(key, 0, value, &mut || txn.take_run(&self.tree));
        }
        let reference = long::write(txn, self.tree.index(), value)?;
        self.build.push(key, RecordFlags::OVERFLOW, &reference, &mut || txn.take_run(&self.tree))
    }

    /// Whether somebody has put a row into the index or locked a key of it since: [`Load::finish`] would load nothing.
    pub fn is_hindered(&self, txn: &mut Txn) -> Result<bool> {
        let owner = txn.owner();
        Ok(!can_load(&txn.system, &self.tree, owner.id)?)
    }

    /// Writes the pages to disk and puts them under the root. If that cannot be, every row goes to `back`, in key order.
    pub fn finish(mut self, txn: &mut Txn, back: impl FnMut(&[u8], &[u8])) -> Result<Loaded> {
        if self.rows == 0 {
            return Ok(Loaded::Rows(0));
        }
        let top = self.build.finish(&mut || txn.take_run(&self.tree))?;
        self.build.write_out()?;
        if self.attach(txn, &top)? {
            return Ok(Loaded::Rows(self.rows));
        }
        self.take_apart(txn, &top, back)?;
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

    fn attach(&self, txn: &mut Txn, top: &Top) -> Result<bool> {
        let owner = txn.owner();
        let system = txn.system.clone();
        let index = self.tree.index();
        let mut scope = system.store.pool.scope(Writer::Txn { id: owner.id, prev_lsn: self.before, urgent: false })?;
        let Some(root) = self.tree.attach(&mut scope, top, || system.locks.any_in(index, owner.id))? else { return Ok(false) };
        let unused = self.build.unused();
        if unused.pages > 0 {
            system.store.space.free_run(&mut scope, unused)?;
        }
        let mut undo = Vec::new();
        Undo::Load { index }.encode(&mut undo);
        scope.add_undo(&undo);
        txn.last_lsn = scope.commit()?;
        self.build.runs().iter().for_each(|run| self.tree.end_loading(*run));
        drop(root);
        owner.add_work(self.rows);
        count(&system.counters.rows_inserted, self.rows);
        Ok(true)
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
                let removed = tree.remove_freeing(&mut cursor, key, id, &runs, writer)?;
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
