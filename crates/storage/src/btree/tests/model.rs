//! A tree against a sorted map, and trees of the longest keys and values.

use super::super::{BatchRows, Cursor, Decision, Direction};
use super::{Rows, checked, rig};
use crate::buffer::Writer;
use crate::ids::TxnId;
use crate::page::slotted::{MAX_KEY_LEN, fits_inline};
use crate::sync::Ordering;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(rng: &mut StdRng, long: bool) -> Vec<u8> {
    match rng.random_range(0..10) {
        0 if long => {
            let len = rng.random_range(0..=MAX_KEY_LEN);
            let mut key = vec![b'k'; len];
            if len > 2 {
                let at = rng.random_range(0..len);
                key[at] = rng.random();
                key[len - 1] = rng.random();
            }
            key
        }
        1 => rng.random::<u16>().to_string().into_bytes(),
        _ => (rng.random_range(0..20_000u64)).to_be_bytes().to_vec(),
    }
}

fn value(rng: &mut StdRng, key: &[u8]) -> Vec<u8> {
    let len = match rng.random_range(0..20) {
        0 => rng.random_range(0..8000),
        1..4 => rng.random_range(0..900),
        _ => rng.random_range(0..60),
    };
    let mut len: usize = len;
    while !fits_inline(key.len(), len) {
        len /= 2;
    }
    vec![rng.random(); len]
}

fn bound(rng: &mut StdRng, long: bool) -> Bound<Vec<u8>> {
    match rng.random_range(0..4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key(rng, long)),
        _ => Bound::Included(key(rng, long)),
    }
}

fn run(seed: u64, frames: usize, steps: usize, long: bool) {
    let rig = rig(frames);
    let tree = &rig.tree;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut model = Model::new();
    let mut cursor = Cursor::new();
    for step in 0..steps {
        // Phases of growth and of shrinking, so that pages merge and the root comes down again.
        let shrinking = step / (steps / 6).max(1) % 3 == 2;
        let key = key(&mut rng, long);
        match rng.random_range(0..100) {
            0..3 => assert_eq!(tree.get(&key).unwrap(), model.get(&key).cloned(), "seed {seed} step {step}"),
            3..5 => {
                let (lower, upper) = (bound(&mut rng, long), bound(&mut rng, long));
                let direction = if rng.random() { Direction::Forward } else { Direction::Backward };
                let mut expected: Vec<_> = model
                    .iter()
                    .filter(|(key, _)| {
                        use std::ops::RangeBounds;
                        (lower.as_ref(), upper.as_ref()).contains(key)
                    })
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect();
                if direction == Direction::Backward {
                    expected.reverse();
                }
                assert!(tree.range(lower, upper, direction).unwrap() == expected, "seed {seed} step {step}: range differs");
            }
            5..8 => {
                let count = rng.random_range(1..300);
                let start = rng.random_range(0..20_000u64);
                let rows: Rows = (0..count).map(|i| ((start + i * 3).to_be_bytes().to_vec(), vec![7; 40])).collect();
                let mut at = 0;
                while at < rows.len() {
                    let done = tree
                        .modify_batch(&mut cursor, &rows, at..rows.len(), Writer::System, |row, place, _| {
                            assert_eq!(place.record().is_some(), model.contains_key(rows.key(row)));
                            if shrinking { Decision::Remove } else { Decision::Put { txn: TxnId(2), flags: 0 } }
                        })
                        .unwrap();
                    assert!(done.done > 0 && !done.stopped);
                    for (key, value) in &rows.0[at..at + done.done] {
                        if shrinking {
                            model.remove(key);
                        } else {
                            model.insert(key.clone(), value.clone());
                        }
                    }
                    at += done.done;
                }
            }
            _ if shrinking => {
                // A stretch of neighbours, as purge does.
                let stretch: Vec<_> = model.range(key..).take(20).map(|(k, _)| k.clone()).collect();
                for key in stretch {
                    tree.delete(&mut cursor, &key).unwrap();
                    model.remove(&key);
                }
            }
            8..20 => {
                tree.delete(&mut cursor, &key).unwrap();
                model.remove(&key);
            }
            _ => {
                let value = value(&mut rng, &key);
                tree.put(&mut cursor, &key, &value).unwrap();
                model.insert(key, value);
            }
        }
        if step % 997 == 0 {
            checked(&rig.store, tree);
        }
    }
    let report = checked(&rig.store, tree);
    assert_eq!(report.records, model.len() as u64);
    assert!(tree.all().unwrap() == model, "seed {seed}: contents differ");
    for key in model.keys().collect::<Vec<_>>() {
        tree.delete(&mut cursor, key).unwrap();
    }
    let report = checked(&rig.store, tree);
    assert_eq!(report.records, 0);
    assert!(report.leaf_pages <= 1 + report.inner_pages.max(1) * 4, "seed {seed}: an emptied tree keeps {} pages", report.leaf_pages);
    assert_eq!(report.incomplete_splits, 0);
}

#[test]
fn random_operations_match_a_sorted_map() {
    for seed in 0..3 {
        run(seed, 64, 6000, false);
    }
}

#[test]
fn long_keys_and_values_always_split_legally() {
    for seed in 10..13 {
        run(seed, 96, 4000, true);
    }
}

#[test]
fn longest_keys_in_every_order() {
    let rig = rig(128);
    let mut cursor = Cursor::new();
    let mut rng = StdRng::seed_from_u64(4);
    let mut model = Model::new();
    for i in 0..700u32 {
        let order = match i / 100 % 3 {
            0 => i,
            1 => 100_000 - i,
            _ => rng.random_range(0..100_000),
        };
        // The longest keys, different in their last or in their first bytes.
        let mut key = vec![b'x'; MAX_KEY_LEN];
        let at = if i % 2 == 0 { MAX_KEY_LEN - 4 } else { 0 };
        key[at..at + 4].copy_from_slice(&order.to_be_bytes());
        let len = [0, 10, 4000, 4900][i as usize % 4];
        assert!(fits_inline(key.len(), len));
        rig.tree.put(&mut cursor, &key, &vec![1; len]).unwrap();
        model.insert(key, vec![1; len]);
        if i % 50 == 0 {
            checked(&rig.store, &rig.tree);
        }
    }
    checked(&rig.store, &rig.tree);
    assert!(rig.tree.all().unwrap() == model);
    assert!(rig.tree.put(&mut cursor, &vec![0; MAX_KEY_LEN + 1], b"").is_err());
    assert!(rig.tree.put(&mut cursor, b"k", &vec![0; 16000]).is_err());
}

#[test]
fn a_value_that_grows_page_by_page() {
    let rig = rig(64);
    let mut cursor = Cursor::new();
    for i in 0..300u32 {
        rig.tree.put(&mut cursor, &i.to_be_bytes(), &[1; 40]).unwrap();
    }
    for len in [100usize, 900, 3000, 8000, 10] {
        for i in 0..300u32 {
            rig.tree.put(&mut cursor, &i.to_be_bytes(), &vec![2; len]).unwrap();
        }
        let report = checked(&rig.store, &rig.tree);
        assert_eq!(report.records, 300);
        assert_eq!(rig.tree.get(&77u32.to_be_bytes()).unwrap().unwrap().len(), len);
    }
}

#[test]
fn estimates_and_separators() {
    let rig = rig(400);
    let mut cursor = Cursor::new();
    for i in 0..30_000u64 {
        rig.tree.put(&mut cursor, &i.to_be_bytes(), &[1; 60]).unwrap();
    }
    let report = checked(&rig.store, &rig.tree);
    let estimate = rig.tree.estimate().unwrap();
    assert!(estimate.rows.abs_diff(30_000) < 3000, "{estimate:?}");
    assert!(estimate.leaf_pages.abs_diff(report.leaf_pages) < report.leaf_pages / 10, "{estimate:?}");
    let half = rig.tree.estimate_range(Bound::Included(&10_000u64.to_be_bytes()), Bound::Excluded(&25_000u64.to_be_bytes())).unwrap();
    assert!(half.abs_diff(15_000) < 3000, "{half}");
    for count in [1, 3, 7, 50] {
        let keys = rig.tree.separators(&1000u64.to_be_bytes(), Some(&20_000u64.to_be_bytes()), count).unwrap();
        assert_eq!(keys.len(), count);
        assert!(keys.windows(2).all(|w| w[0] < w[1]));
        assert!(keys[0].as_slice() > 1000u64.to_be_bytes().as_slice() && keys[count - 1].as_slice() < 20_000u64.to_be_bytes().as_slice());
    }
}

/// An inner page whose downlink is not posted, after a crash or an error, is reached by its left neighbour's link.
#[test]
fn separators_go_along_an_interrupted_split_of_an_inner_page() {
    let rig = rig(4000);
    let tree = rig.tree.clone();
    tree.inner.interrupt.store(2, Ordering::Relaxed);
    let mut cursor = Cursor::new();
    let mut rows = 0u64;
    while tree.stats().splits_inner.load(Ordering::Relaxed) < 2 {
        tree.put(&mut cursor, &rows.to_be_bytes(), &[1; 8000]).unwrap();
        rows += 1;
    }
    let report = checked(&rig.store, &tree);
    assert_eq!((report.height, report.incomplete_splits), (3, 1), "the first split was the root's");
    // A thread of its own: a loop in it is to fail the test, not to hang it.
    let (done, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send((tree.separators(&[], None, 255), tree.morsel_cuts(&[], None, 1))));
    let (separators, cuts) = found.recv_timeout(std::time::Duration::from_secs(60)).expect("it comes to an end");
    assert_eq!(separators.unwrap().len(), 255);
    assert_eq!(cuts.unwrap().len() as u64, report.leaf_pages - 1, "between all leaves");
}

#[test]
fn an_emptied_page_between_full_ones_goes() {
    let rig = rig(64);
    let mut cursor = Cursor::new();
    for i in 0..2000u32 {
        rig.tree.put(&mut cursor, &i.to_be_bytes(), &[1; 100]).unwrap();
    }
    let before = checked(&rig.store, &rig.tree).leaf_pages;
    for i in 700..1300u32 {
        rig.tree.delete(&mut cursor, &i.to_be_bytes()).unwrap();
    }
    let report = checked(&rig.store, &rig.tree);
    assert_eq!(report.records, 1400);
    assert!(report.leaf_pages <= before - 4, "{before} leaves before, {} after", report.leaf_pages);
}
