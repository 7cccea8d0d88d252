//! The tree against a sorted map, its fill under known orders, threads, crashes after every write, failing I/O.

#[cfg(not(feature = "shuttle"))]
mod batches;
#[cfg(not(feature = "shuttle"))]
mod bench;
#[cfg(not(feature = "shuttle"))]
mod compact;
#[cfg(not(feature = "shuttle"))]
mod crash;
#[cfg(not(feature = "shuttle"))]
mod fill;
#[cfg(all(debug_assertions, not(feature = "shuttle")))]
mod latches;
#[cfg(not(feature = "shuttle"))]
mod model;
#[cfg(not(feature = "shuttle"))]
mod overflow;
#[cfg(feature = "shuttle")]
mod schedules;
#[cfg(not(feature = "shuttle"))]
mod threads;

use super::{BTree, Cursor, Decision, Direction, LeafScan, TreeReport};
use crate::buffer::Writer;
#[cfg(not(feature = "shuttle"))]
use crate::disk::{SimConfig, SimDisk};
use crate::error::Result;
#[cfg(not(feature = "shuttle"))]
use crate::ids::IndexId;
use crate::ids::{Lsn, TxnId};
use crate::options::Options;
use crate::page::PAGE_SIZE;
use crate::recovery::Store;
pub(super) use crate::recovery::rig::open;
use crate::sync::Arc;
use std::collections::BTreeMap;
use std::ops::Bound;

#[cfg(not(feature = "shuttle"))]
pub(super) struct Rig {
    pub store: Arc<Store>,
    pub tree: BTree,
}

/// A batch's rows.
#[cfg(not(feature = "shuttle"))]
pub(super) struct Rows(pub Vec<(Vec<u8>, Vec<u8>)>);

#[cfg(not(feature = "shuttle"))]
impl FromIterator<(Vec<u8>, Vec<u8>)> for Rows {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Vec<u8>)>>(rows: I) -> Rows {
        Rows(rows.into_iter().collect())
    }
}

#[cfg(not(feature = "shuttle"))]
impl super::BatchRows for Rows {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn key(&self, row: usize) -> &[u8] {
        &self.0[row].0
    }
    fn value(&self, row: usize) -> &[u8] {
        &self.0[row].1
    }
}

pub(super) fn options(frames: usize, log: u64) -> Options {
    Options {
        buffer_pool_bytes: (frames * PAGE_SIZE) as u64,
        redo_log_capacity: log,
        log_segment_bytes: (log / 8).clamp(64 << 10, 4 << 20),
        log_buffer_bytes: 256 << 10,
        background: false,
        abort_on_fatal: false,
        ..Options::default()
    }
}

pub(super) fn create(store: &Arc<Store>) -> Result<BTree> {
    let index = store.space.next_index_id();
    let mut scope = store.pool.scope(Writer::System)?;
    let tree = BTree::create(&store.pool, &store.space, &mut scope, index)?;
    scope.commit()?;
    Ok(tree)
}

#[cfg(not(feature = "shuttle"))]
pub(super) fn reopen(store: &Arc<Store>, index: IndexId) -> Result<BTree> {
    BTree::open(store.pool.clone(), store.space.clone(), index)
}

#[cfg(not(feature = "shuttle"))]
pub(super) fn rig(frames: usize) -> Rig {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &options(frames, 64 << 20)).unwrap();
    let tree = create(&store).unwrap();
    Rig { store, tree }
}

impl BTree {
    pub(super) fn put(&self, cursor: &mut Cursor, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.modify(cursor, key, Writer::System, |_, change| {
            change.value.extend_from_slice(value);
            Decision::Put { txn: TxnId(1), flags: 0 }
        })
    }
    pub(super) fn delete(&self, cursor: &mut Cursor, key: &[u8]) -> Result<Lsn> {
        self.modify(cursor, key, Writer::System, |_, _| Decision::Remove)
    }
    #[cfg(not(feature = "shuttle"))]
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.read(key, |record| record.map(|r| r.value.to_vec()))
    }
    pub(super) fn range(&self, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>, direction: Direction) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut scan = LeafScan::new(lower, upper, direction);
        let mut rows = Vec::new();
        while self.scan_leaf(&mut scan, |view| {
            let mut add = |i: usize| {
                let mut key = Vec::new();
                view.key(i, &mut key);
                rows.push((key, view.record(i).value.to_vec()));
            };
            match direction {
                Direction::Forward => (0..view.len()).for_each(&mut add),
                Direction::Backward => (0..view.len()).rev().for_each(&mut add),
            }
        })? {}
        Ok(rows)
    }
    pub(super) fn all(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        Ok(self.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward)?.into_iter().collect())
    }
}

/// Checks the tree, and that its pages are those the extent map says.
pub(super) fn checked(store: &Store, tree: &BTree) -> TreeReport {
    let report = tree.check().unwrap();
    let mut pages = report.pages.clone();
    pages.sort();
    assert_eq!(pages, store.space.pages_of(tree.index()), "every allocated page is in the tree");
    report
}
