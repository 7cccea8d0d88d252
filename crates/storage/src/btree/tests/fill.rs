//! How full each order of inserts leaves the leaves; the goals of DESIGN's split point.

use super::super::{BTree, Cursor, Decision};
use super::{checked, rig};
use crate::buffer::Writer;
use crate::ids::TxnId;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Inserts the keys in the given order with rows of `len` bytes; the fill of the leaves.
fn fill(keys: impl IntoIterator<Item = u64>, len: usize) -> f64 {
    let rig = rig(2000);
    let mut cursor = Cursor::new();
    for key in keys {
        rig.tree.put(&mut cursor, &key.to_be_bytes(), &vec![7; len]).unwrap();
    }
    let report = checked(&rig.store, &rig.tree);
    let fill = report.leaf_fill();
    println!("{} leaves {fill:.3} {:?}", report.leaf_pages, rig.tree.stats());
    fill
}

const ROWS: u64 = 24_000;

#[test]
fn ascending() {
    assert!(fill(0..ROWS, 180) >= 0.92);
    assert!(fill(0..2 * ROWS, 14) >= 0.92);
}

#[test]
fn descending() {
    assert!(fill((0..ROWS).rev(), 180) >= 0.92);
    assert!(fill((0..2 * ROWS).rev(), 14) >= 0.92);
}

#[test]
fn random() {
    let mut keys: Vec<u64> = (0..ROWS * 2).map(|i| i * 1_000_003).collect();
    keys.shuffle(&mut StdRng::seed_from_u64(3));
    assert!(fill(keys.clone(), 180) >= 0.82);
    assert!(fill(keys, 14) >= 0.82);
}

/// Threads that take ids from one counter and insert them a little later, each at its own moment.
fn interleaved(threads: usize, seed: u64) -> impl Iterator<Item = u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut next = 0;
    let mut held: Vec<u64> = Vec::new();
    std::iter::from_fn(move || {
        while held.len() < threads && next < ROWS {
            held.push(next);
            next += 1;
        }
        if held.is_empty() {
            return None;
        }
        let at = rng.random_range(0..held.len());
        Some(held.swap_remove(at))
    })
}

#[test]
fn interleaved_auto_increment() {
    for threads in [2, 8, 32] {
        let fill = fill(interleaved(threads, 5), 180);
        assert!(fill >= 0.92, "{threads} threads: {fill}");
    }
}

/// Threads that each append to a range of their own.
#[test]
fn own_ranges() {
    for threads in [2u64, 10] {
        let mut rng = StdRng::seed_from_u64(9);
        let mut next: Vec<u64> = (0..threads).map(|t| t << 40).collect();
        let keys = (0..ROWS * 2).map(|_| {
            let t = rng.random_range(0..threads) as usize;
            next[t] += 1;
            next[t]
        });
        let fill = fill(keys.collect::<Vec<_>>(), 180);
        assert!(fill >= 0.92, "{threads} threads: {fill}");
    }
}

fn batches(tree: &BTree, cursor: &mut Cursor, rows: &[u64], len: usize) {
    let keys: Vec<[u8; 8]> = rows.iter().map(|key| key.to_be_bytes()).collect();
    let mut at = 0;
    while at < keys.len() {
        let done = tree
            .modify_batch(cursor, keys.len() - at, |i| keys[at + i].as_slice(), Writer::System, |_, _, change| {
                change.value.resize(len, 7);
                Decision::Put { txn: TxnId(1), flags: 0 }
            })
            .unwrap();
        at += done.done;
    }
}

#[test]
fn batches_ascending() {
    let rig = rig(2000);
    let mut cursor = Cursor::new();
    let keys: Vec<u64> = (0..ROWS * 2).collect();
    for chunk in keys.chunks(700) {
        batches(&rig.tree, &mut cursor, chunk, 100);
    }
    let report = checked(&rig.store, &rig.tree);
    println!("{:.3} {:?}", report.leaf_fill(), rig.tree.stats());
    assert_eq!(report.records, ROWS * 2);
    assert!(report.leaf_fill() >= 0.92);
}
