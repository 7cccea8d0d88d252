//! A small tree under shuttle's schedules: every latch and atomic is a place where another thread may run.
//! `cargo test -p highkey-storage --features shuttle btree::tests::schedules`.

use super::super::{BTree, BatchRows, Cursor, Decision, Direction, LeafScan, Place};
use super::{checked, create, open, options};
use crate::buffer::Writer;
use crate::disk::{SimConfig, SimDisk};
use crate::ids::TxnId;
use crate::progress::Progress;
use crate::recovery::Store;
use crate::sync::{Arc, thread};
use std::collections::BTreeSet;
use std::ops::Bound;

const SCHEDULES: usize = 100;

/// Four rows a page.
const ROW: [u8; 3500] = [1; 3500];

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// Runs the threads over a tree of rows 0, 100, 200 … and checks it: those rows are never removed.
fn check(rows: u64, threads: Vec<fn(&BTree) -> BTreeSet<u64>>) {
    check_in(rows, false, threads);
}

/// `thinned`: between the rows there were as many others, which leaves the pages half empty.
fn check_in(rows: u64, thinned: bool, threads: Vec<fn(&BTree) -> BTreeSet<u64>>) {
    let run = move || {
        let disk = SimDisk::new(SimConfig::default());
        let store: Arc<Store> = open(&disk, &options(64, 1 << 20)).unwrap();
        let tree = create(&store).unwrap();
        let mut cursor = Cursor::new();
        let mut expected: BTreeSet<u64> = (0..rows).map(|i| i * 100).collect();
        for row in &expected {
            tree.put(&mut cursor, &key(*row), &ROW).unwrap();
            if thinned {
                tree.put(&mut cursor, &key(*row + 50), &ROW).unwrap();
            }
        }
        for row in expected.iter().filter(|_| thinned) {
            tree.delete(&mut cursor, &key(*row + 50)).unwrap();
        }
        let handles: Vec<_> = threads
            .iter()
            .map(|f| {
                let (f, tree) = (*f, tree.clone());
                thread::spawn(move || f(&tree))
            })
            .collect();
        for handle in handles {
            expected.extend(handle.join().unwrap());
        }
        let report = checked(&store, &tree);
        assert_eq!(report.incomplete_splits, 0);
        if thinned {
            assert_eq!(store.space.size(tree.index()).unwrap().0, 64, "compacted, the tree needs one extent");
        }
        let found: BTreeSet<u64> = tree.all().unwrap().into_keys().map(|key| u64::from_be_bytes(key.try_into().unwrap())).collect();
        assert_eq!(found, expected);
    };
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::None;
    shuttle::Runner::new(shuttle::scheduler::RandomScheduler::new(SCHEDULES), config.clone()).run(run.clone());
    shuttle::Runner::new(shuttle::scheduler::PctScheduler::new(3, SCHEDULES), config).run(run);
}

fn insert(tree: &BTree, rows: impl Iterator<Item = u64>) -> BTreeSet<u64> {
    let mut cursor = Cursor::new();
    rows.inspect(|row| _ = tree.put(&mut cursor, &key(*row), &ROW).unwrap()).collect()
}

struct Batch(Vec<[u8; 8]>);

impl BatchRows for Batch {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn key(&self, row: usize) -> &[u8] {
        &self.0[row]
    }
    fn value(&self, _: usize) -> &[u8] {
        &ROW
    }
}

/// Ascending rows, as a batch.
fn insert_batch(tree: &BTree, rows: impl Iterator<Item = u64>) -> BTreeSet<u64> {
    let inserted: Vec<u64> = rows.collect();
    let rows = Batch(inserted.iter().map(|row| key(*row)).collect());
    let (mut cursor, mut at) = (Cursor::new(), 0);
    while at < rows.len() {
        let put = |_, _: &Place, _: &mut Vec<u8>| Decision::Put { txn: TxnId(1), flags: 0 };
        at += tree.modify_batch(&mut cursor, &rows, at..rows.len(), Writer::System, put).unwrap().done;
    }
    inserted.into_iter().collect()
}

/// Inserts rows and takes them away again, which splits and merges.
fn come_and_go(tree: &BTree, rows: std::ops::Range<u64>) -> BTreeSet<u64> {
    insert(tree, rows.clone());
    let mut cursor = Cursor::new();
    for row in rows {
        tree.delete(&mut cursor, &key(row)).unwrap();
    }
    BTreeSet::new()
}

fn scan(tree: &BTree, direction: Direction, rows: u64) -> BTreeSet<u64> {
    let mut scan = LeafScan::new(Bound::Unbounded, Bound::Unbounded, direction);
    let mut seen = Vec::new();
    while tree
        .scan_leaf(&mut scan, |view| {
            let mut see = |i: usize| {
                let mut key = Vec::new();
                view.key(i, &mut key);
                seen.push(u64::from_be_bytes(key.try_into().unwrap()));
            };
            match direction {
                Direction::Forward => (0..view.len()).for_each(&mut see),
                Direction::Backward => (0..view.len()).rev().for_each(&mut see),
            }
        })
        .unwrap()
    {}
    assert!(seen.windows(2).all(|w| (w[0] < w[1]) == (direction == Direction::Forward)), "in order");
    assert_eq!(seen.iter().filter(|row| **row % 100 == 0).count() as u64, rows, "every lasting row once");
    BTreeSet::new()
}

fn compact(tree: &BTree) -> BTreeSet<u64> {
    assert!(tree.compact(100, &Progress::default(), &|| false).unwrap());
    BTreeSet::new()
}

#[test]
fn two_writers_split_the_same_leaf() {
    check(2, vec![|tree| insert(tree, 1..6), |tree| insert(tree, 50..55)]);
}

#[test]
fn scans_across_splits() {
    check(8, vec![|tree| insert(tree, 101..106), |tree| scan(tree, Direction::Forward, 8), |tree| scan(tree, Direction::Backward, 8)]);
}

#[test]
fn scans_across_merges() {
    check(8, vec![|tree| come_and_go(tree, 101..108), |tree| scan(tree, Direction::Forward, 8), |tree| scan(tree, Direction::Backward, 8)]);
}

#[test]
fn splits_against_merges() {
    check(4, vec![|tree| come_and_go(tree, 101..107), |tree| come_and_go(tree, 131..137), |tree| insert(tree, 120..124)]);
}

#[test]
fn batches_across_splits_and_merges() {
    check(8, vec![|tree| insert_batch(tree, (50..800).step_by(100)), |tree| insert_batch(tree, (60..800).step_by(100)), |tree| come_and_go(tree, 301..306)]);
    check_in(8, true, vec![compact, |tree| insert_batch(tree, (60..800).step_by(100))]);
}

#[test]
fn appends_side_by_side() {
    check(3, vec![|tree| insert(tree, (1001..1013).step_by(2)), |tree| insert(tree, (1002..1014).step_by(2))]);
}

#[test]
fn compaction_against_splits_and_merges() {
    check_in(8, true, vec![compact, |tree| come_and_go(tree, 101..107), |tree| insert(tree, 331..335)]);
    check_in(8, true, vec![compact, |tree| scan(tree, Direction::Forward, 8), |tree| scan(tree, Direction::Backward, 8)]);
    check_in(6, true, vec![compact, compact, |tree| insert(tree, 201..204)]);
}

/// Two extents, of which the second becomes free: its pages move.
#[test]
fn compaction_that_moves_pages() {
    const ROWS: u64 = 140;
    check_in(ROWS, true, vec![compact, |tree| come_and_go(tree, 12_001..12_007), |tree| scan(tree, Direction::Forward, ROWS), |tree| scan(tree, Direction::Backward, ROWS)]);
}
