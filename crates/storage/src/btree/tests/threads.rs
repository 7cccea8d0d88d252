//! Threads on one tree: every thread's keys are its own, so each knows what it must find.

use super::super::{Cursor, Decision, Direction, LeafScan};
use super::{checked, options, rig};
use crate::buffer::Writer;
use crate::disk::{SimConfig, SimDisk};
use crate::ids::TxnId;
use crate::sync::Ordering;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::AtomicBool;

fn stress(seed: u64, frames: usize, writers: u64, steps: u64) {
    let rig = rig(frames);
    let (tree, store) = (&rig.tree, &rig.store);
    // Never removed: every scan must see them all.
    let mut cursor = Cursor::new();
    for i in 0..400u64 {
        tree.put(&mut cursor, &(i * 1000).to_be_bytes(), b"fixed").unwrap();
    }
    let stop = AtomicBool::new(false);
    let models: Vec<BTreeMap<u64, u8>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..writers)
            .map(|thread| {
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(seed * 100 + thread);
                    let mut cursor = Cursor::new();
                    let mut model = BTreeMap::new();
                    let mut next = 400_000 + thread;
                    for step in 0..steps {
                        // Random keys, appends interleaved with the other threads', and stretches of removals.
                        let key = match rng.random_range(0..10) {
                            0..4 => {
                                next += writers;
                                next
                            }
                            _ => rng.random_range(0..40_000) * 10 + 1 + thread,
                        };
                        let shrinking = step / (steps / 5).max(1) % 2 == 1;
                        if shrinking && rng.random_range(0..10) < 8 {
                            let stretch: Vec<u64> = model.range(key.saturating_sub(3000)..).take(30).map(|(k, _)| *k).collect();
                            for key in stretch {
                                tree.delete(&mut cursor, &key.to_be_bytes()).unwrap();
                                model.remove(&key);
                            }
                            continue;
                        }
                        let byte: u8 = rng.random();
                        let len = if rng.random_range(0..50) == 0 { 3000 } else { 50 };
                        tree.modify(&mut cursor, &key.to_be_bytes(), Writer::System, |place, change| {
                            assert_eq!(place.record().map(|r| r.value[0]), model.get(&key).copied(), "seed {seed}");
                            change.value.resize(len, byte);
                            Decision::Put { txn: TxnId(thread + 1), flags: 0 }
                        })
                        .unwrap();
                        model.insert(key, byte);
                        if step % 64 == 0 {
                            let (key, byte) = model.range(key..).next().map_or((key, byte), |(k, b)| (*k, *b));
                            assert_eq!(tree.get(&key.to_be_bytes()).unwrap().map(|v| v[0]), Some(byte), "seed {seed} key {key}");
                        }
                    }
                    model
                })
            })
            .collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let mut scan = LeafScan::new(Bound::Unbounded, Bound::Unbounded, direction);
                    let (mut last, mut fixed) = (None::<u64>, 0);
                    while tree
                        .scan_leaf(&mut scan, |view| {
                            let mut see = |i: usize| {
                                let mut key = Vec::new();
                                view.key(i, &mut key);
                                let key = u64::from_be_bytes(key.try_into().unwrap());
                                if let Some(last) = last {
                                    assert!((key > last) == (direction == Direction::Forward) && key != last, "seed {seed}: order");
                                }
                                last = Some(key);
                                fixed += u64::from(view.record(i).value == b"fixed");
                            };
                            match direction {
                                Direction::Forward => (0..view.len()).for_each(&mut see),
                                Direction::Backward => (0..view.len()).rev().for_each(&mut see),
                            }
                        })
                        .unwrap()
                    {}
                    assert_eq!(fixed, 400, "seed {seed}: a scan missed or repeated a record");
                }
            });
        }
        let checker = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                tree.check().unwrap();
                let levels = tree.levels(&|| false).unwrap().unwrap();
                assert!(levels[0].level == 0 && levels[0].records >= 400, "seed {seed}: {levels:?}");
                store.clean(20).unwrap();
                std::thread::yield_now();
            }
        });
        let models = writers.into_iter().map(|w| w.join()).collect::<Vec<_>>();
        stop.store(true, Ordering::Relaxed);
        checker.join().unwrap();
        models.into_iter().map(|m| m.unwrap()).collect()
    });
    let report = checked(store, tree);
    let expected: usize = models.iter().map(BTreeMap::len).sum();
    assert_eq!(report.records, expected as u64 + 400, "seed {seed}");
    assert_eq!(report.incomplete_splits, 0, "seed {seed}");
    for model in &models {
        for (key, byte) in model {
            assert_eq!(tree.get(&key.to_be_bytes()).unwrap().map(|v| v[0]), Some(*byte), "seed {seed}");
        }
    }
    println!("{report:?} {:?}", tree.stats());
}

#[test]
fn writers_scans_and_merges_in_memory() {
    for seed in 0..3 {
        stress(seed, 4000, 4, 5000);
    }
}

#[test]
fn writers_scans_and_merges_with_eviction() {
    for seed in 10..12 {
        stress(seed, 80, 3, 3000);
    }
}

/// Two threads append to the same place while splits are interrupted between their two steps.
#[test]
fn interrupted_splits_are_finished_by_others() {
    // Each thread appends, and now and then inserts behind.
    let key = |i: u64, thread: u64| (if i % 4 == 0 { i * 2654435761 % 100_000 } else { 200_000 + i } * 4 + thread).to_be_bytes();
    let disk = SimDisk::new(SimConfig::default());
    let store = super::open(&disk, &options(500, 64 << 20)).unwrap();
    let tree = super::create(&store).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let tree = &tree;
            scope.spawn(move || {
                let mut cursor = Cursor::new();
                for i in 0..6000u64 {
                    tree.inner.interrupt.store(u8::from(i % 3 == thread % 3 && i < 5000), Ordering::Relaxed);
                    tree.put(&mut cursor, &key(i, thread), &[1; 60]).unwrap();
                }
            });
        }
    });
    tree.inner.interrupt.store(0, Ordering::Relaxed);
    let mut cursor = Cursor::new();
    for thread in 0..3u64 {
        for i in 0..6000u64 {
            let key = key(i, thread);
            assert!(tree.get(&key).unwrap().is_some());
            tree.put(&mut cursor, &key, &[2; 60]).unwrap();
        }
    }
    let report = checked(&store, &tree);
    assert_eq!(report.records, 18_000);
    assert_eq!(report.incomplete_splits, 0, "{:?}", tree.stats());
    assert!(tree.stats().splits_finished.load(Ordering::Relaxed) > 0);
}
