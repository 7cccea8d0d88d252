//! Compaction: how dense the tree is afterwards, what it gives back, and others that work in it meanwhile. Crashes are in `crash`.

use super::super::{Cursor, Decision, Direction, LeafScan};
use super::{Rig, checked, rig};
use crate::buffer::Writer;
use crate::ids::TxnId;
use crate::progress::{Progress, Stage};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A key of `len` bytes; long ones make a tree of many parents.
fn key(id: u64, len: usize) -> Vec<u8> {
    let mut key = id.to_be_bytes().to_vec();
    key.resize(len, b'k');
    key
}

/// A tree of `rows` rows of about `len` bytes under keys of `key_len`, inserted in the order that `shuffled` says, of which `kept` in 100 are left.
fn thinned(rows: u64, key_len: usize, len: usize, shuffled: bool, kept: u64) -> (Rig, BTreeMap<Vec<u8>, Vec<u8>>) {
    let rig = rig(3000);
    let mut rng = StdRng::seed_from_u64(rows + kept);
    let mut ids: Vec<u64> = (0..rows).collect();
    if shuffled {
        ids.shuffle(&mut rng);
    }
    let mut cursor = Cursor::new();
    let mut left = BTreeMap::new();
    for &id in &ids {
        let value = vec![id as u8; len + id as usize % 7];
        rig.tree.put(&mut cursor, &key(id, key_len), &value).unwrap();
        left.insert(key(id, key_len), value);
    }
    ids.shuffle(&mut rng);
    for id in ids.iter().filter(|_| rng.random_range(0..100) >= kept) {
        rig.tree.delete(&mut cursor, &key(*id, key_len)).unwrap();
        left.remove(&key(*id, key_len));
    }
    (rig, left)
}

#[test]
fn a_thinned_tree_becomes_dense_and_gives_its_space_back() {
    let trees = [
        (40_000, 8, 180, false, 50),
        (40_000, 8, 180, true, 50),
        (60_000, 8, 20, true, 50),
        (40_000, 8, 180, true, 10),
        (9_000, 8, 1500, true, 60),
        (30_000, 600, 100, true, 50),
        (30_000, 600, 100, false, 30),
    ];
    for (rows, key_len, len, shuffled, kept) in trees {
        let (rig, left) = thinned(rows, key_len, len, shuffled, kept);
        let before = checked(&rig.store, &rig.tree);
        let size = rig.store.space.size(rig.tree.index()).unwrap();
        let progress = Progress::default();
        assert!(rig.tree.compact(100, &progress, &|| false).unwrap());
        let after = checked(&rig.store, &rig.tree);
        let now = rig.store.space.size(rig.tree.index()).unwrap();
        println!("{rows} rows of {key_len} and {len}, height {}: {:.3} to {:.3}, {} to {} leaves, {size:?} to {now:?} pages", after.height, before.leaf_fill(), after.leaf_fill(), before.leaf_pages, after.leaf_pages);
        assert!(rig.tree.all().unwrap() == left, "the rows are what they were");
        // One leaf of every parent may stay as it is.
        assert!(after.leaf_fill() >= if key_len < 100 { 0.92 } else { 0.88 }, "{}", after.leaf_fill());
        // The tree has no extent that it does not need.
        assert!(now.0 <= now.1.div_ceil(64) * 64, "{now:?}");
        assert_eq!(now.1, after.pages.len() as u64);
        assert!(progress.done() <= progress.total().unwrap_or(u64::MAX) && progress.stage() == Stage::MovingPages);
        // Once more finds little to do: leaves that had two parents may have one now.
        rig.tree.compact(100, &progress, &|| false).unwrap();
        let again = checked(&rig.store, &rig.tree);
        assert!(again.leaf_pages <= after.leaf_pages && after.leaf_pages - again.leaf_pages <= 1 + after.leaf_pages / 20);
        // Inserts go on in it.
        let mut cursor = Cursor::new();
        for id in 0..2000u64 {
            rig.tree.put(&mut cursor, &key(id * 17, key_len), b"again").unwrap();
        }
        checked(&rig.store, &rig.tree);
    }
}

#[test]
fn a_tree_of_one_page_and_an_empty_one_stay() {
    let rig = rig(100);
    assert!(rig.tree.compact(100, &Progress::default(), &|| false).unwrap());
    let mut cursor = Cursor::new();
    rig.tree.put(&mut cursor, b"a", b"b").unwrap();
    assert!(rig.tree.compact(100, &Progress::default(), &|| false).unwrap());
    assert_eq!(checked(&rig.store, &rig.tree).records, 1);
}

#[test]
fn the_fill_factor_is_kept() {
    let (rig, _) = thinned(40_000, 8, 180, false, 40);
    rig.tree.compact(70, &Progress::default(), &|| false).unwrap();
    let fill = checked(&rig.store, &rig.tree).leaf_fill();
    assert!((0.66..=0.71).contains(&fill), "{fill}");
}

#[test]
fn it_stops_at_any_page() {
    let (rig, left) = thinned(20_000, 8, 180, true, 50);
    let mut done = false;
    let mut rounds = 0;
    while !done {
        let steps = AtomicU64::new(0);
        done = rig.tree.compact(100, &Progress::default(), &|| steps.fetch_add(1, Ordering::Relaxed) > 100 + rounds * 37).unwrap();
        checked(&rig.store, &rig.tree);
        rounds += 1;
    }
    assert!(rounds > 3, "{rounds}");
    assert!(rig.tree.all().unwrap() == left);
}

/// A key of a thread, longer than the others by two bytes.
fn own_key(n: u64, thread: u64, key_len: usize) -> Vec<u8> {
    [&key(n, key_len)[..], &[1, thread as u8]].concat()
}

#[test]
fn others_work_in_the_tree_meanwhile() {
    for seed in 0..4 {
        let key_len = if seed < 2 { 8 } else { 500 };
        let (rig, left) = thinned(20_000 / if seed < 2 { 1 } else { 4 }, key_len, 100, seed % 2 == 0, 50);
        let (tree, store) = (&rig.tree, &rig.store);
        let stop = AtomicBool::new(false);
        const THREADS: u64 = 3;
        let models: Vec<BTreeMap<u64, u8>> = std::thread::scope(|scope| {
            let stop = &stop;
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn(move || {
                        // Between the rows that stay, and this thread's own.
                        let key = |n: u64| own_key(n, thread, key_len);
                        let mut rng = StdRng::seed_from_u64(seed * 10 + thread);
                        let mut cursor = Cursor::new();
                        let mut model = BTreeMap::new();
                        while !stop.load(Ordering::Relaxed) {
                            let n = rng.random_range(0..5000) * if key_len == 8 { 4 } else { 1 };
                            if rng.random_range(0..3) == 0 {
                                tree.delete(&mut cursor, &key(n)).unwrap();
                                model.remove(&n);
                                continue;
                            }
                            let byte: u8 = rng.random();
                            tree.modify(&mut cursor, &key(n), Writer::System, |place, change| {
                                assert_eq!(place.record().map(|r| r.value[0]), model.get(&n).copied(), "seed {seed}");
                                change.value.resize(80, byte);
                                Decision::Put { txn: TxnId(thread + 1), flags: 0 }
                            })
                            .unwrap();
                            model.insert(n, byte);
                        }
                        model
                    })
                })
                .collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let left = &left;
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let mut scan = LeafScan::new(Bound::Unbounded, Bound::Unbounded, direction);
                        let mut seen = 0;
                        let mut key = Vec::new();
                        while tree
                            .scan_leaf(&mut scan, |view| {
                                for i in 0..view.len() {
                                    key.clear();
                                    view.key(i, &mut key);
                                    if key.len() == key_len {
                                        assert_eq!(left.get(&key).map(Vec::as_slice), Some(view.record(i).value));
                                        seen += 1;
                                    }
                                }
                            })
                            .unwrap()
                        {}
                        assert_eq!(seen, left.len(), "seed {seed}: every row that stays is seen once");
                    }
                });
            }
            for _ in 0..6 {
                assert!(tree.compact(100, &Progress::default(), &|| false).unwrap());
                tree.check().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            writers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        let report = checked(store, tree);
        assert_eq!(report.records as usize, left.len() + models.iter().map(BTreeMap::len).sum::<usize>());
        for (thread, model) in models.iter().enumerate() {
            for (n, byte) in model {
                let key = own_key(*n, thread as u64, key_len);
                assert_eq!(tree.get(&key).unwrap().map(|v| v[0]), Some(*byte), "seed {seed}");
            }
        }
    }
}
