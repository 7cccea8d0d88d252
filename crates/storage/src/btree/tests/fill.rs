//! How full each order of inserts leaves the leaves; the goals of DESIGN's split point.

use super::super::{BTree, BatchRows, Cursor, Decision, Place, TreeCounters};
use super::{Rows, checked, rig};
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
    let levels = rig.tree.levels(&|| false).unwrap().unwrap();
    assert_eq!((levels[0].pages, levels[0].records, levels[0].used_bytes), (report.leaf_pages, report.records, report.leaf_bytes));
    assert_eq!(levels.iter().map(|l| l.pages).sum::<u64>(), report.pages.len() as u64);
    assert_eq!(levels.len() as u32, report.height);
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

/// Threads that are made to wait behind one that was preempted with the last leaf latched: now and then a block of consecutive ids is held
/// back, and they come one by one while the others go on, some of them thousands of inserts late.
fn preempted(block: u64, seed: u64) -> impl Iterator<Item = u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut next = 0;
    let mut held: Vec<u64> = Vec::new();
    std::iter::from_fn(move || {
        if held.is_empty() && next % 800 == 0 && next < ROWS {
            held.extend(next + 1..=next + block);
            next += 1;
            return Some(next - 1);
        }
        if !held.is_empty() && (next >= ROWS || rng.random_ratio(1, 40)) {
            return Some(held.swap_remove(rng.random_range(0..held.len())));
        }
        if next >= ROWS {
            return None;
        }
        // The block was handed out at its start.
        if next % 800 == 1 {
            next += block;
        }
        next += 1;
        Some(next - 1)
    })
}

#[test]
fn late_blocks_of_auto_increment() {
    for block in [1, 8, 30] {
        let mut keys: Vec<u64> = preempted(block, 6).collect();
        let fill = fill(keys.iter().copied(), 180);
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "each id once");
        assert!(fill >= 0.92, "blocks of {block}: {fill}");
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
    let rows: Rows = rows.iter().map(|key| (key.to_be_bytes().to_vec(), vec![7; len])).collect();
    let mut at = 0;
    while at < rows.len() {
        let put = |_, _: &Place, _: &mut Vec<u8>| Decision::Put { txn: TxnId(1), flags: 0 };
        at += tree.modify_batch(cursor, &rows, at..rows.len(), Writer::System, put).unwrap().done;
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

/// Real threads that take ids from one counter, or each from a range of its own, and race for the pages.
fn threads(count: u64, rows: u64, key: impl Fn(u64, u64) -> u64 + Sync) -> (f64, TreeCounters) {
    let rig = rig(6000);
    let next = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|s| {
        for t in 0..count {
            let (rig, next, key) = (&rig, &next, &key);
            s.spawn(move || {
                let mut cursor = Cursor::new();
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if n >= rows {
                        return;
                    }
                    rig.tree.put(&mut cursor, &key(t, n).to_be_bytes(), &[7; 180]).unwrap();
                }
            });
        }
    });
    let report = checked(&rig.store, &rig.tree);
    assert_eq!(report.records, rows);
    (report.leaf_fill(), rig.tree.stats().counters())
}

/// A thread that the kernel preempts keeps its id for thousands of others, so how full the leaves get depends on the schedule: 0.92 to 0.94
/// for 32 threads on two busy cores. `late_blocks_of_auto_increment` and `interleaved_auto_increment` assert the goal; here the rows count,
/// and that no order of arrival leaves pages half empty.
#[test]
fn threads_with_auto_increment() {
    let (fill, counters) = threads(32, ROWS * 2, |_, n| n);
    println!("{fill:.3} {counters:?}");
    assert!(fill >= 0.85, "{fill}");
    assert!(counters.splits_append > 0 && counters.splits_root > 0, "{counters:?}");
}

/// Rows enough that a thread's last page, half full, does not count.
#[test]
fn threads_with_own_ranges() {
    for count in [2, 10, 32] {
        let (fill, counters) = threads(count, count.max(5) * 8000, |t, n| t << 40 | n);
        println!("{count}: {fill:.3} {counters:?}");
        assert!(fill >= 0.92, "{count} threads: {fill}");
    }
}

#[test]
fn reading_levels_stops_when_told() {
    let rig = rig(2000);
    let mut cursor = Cursor::new();
    for key in 0..5000u64 {
        rig.tree.put(&mut cursor, &key.to_be_bytes(), &[7; 180]).unwrap();
    }
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    assert_eq!(rig.tree.levels(&stop).unwrap(), None);
    assert_eq!(asked.get(), 3, "no page is read after the answer");
    let pages: u64 = rig.tree.levels(&stop).unwrap().unwrap().iter().map(|l| l.pages).sum();
    assert_eq!(asked.get(), 3 + pages, "asked before every page");
}

/// Every order of inserts is counted as its kind of split.
#[test]
fn kinds_of_split_are_counted() {
    let run = |keys: Vec<u64>| {
        let rig = rig(2000);
        let mut cursor = Cursor::new();
        for key in keys {
            rig.tree.put(&mut cursor, &key.to_be_bytes(), &[7; 180]).unwrap();
        }
        rig.tree.stats().counters()
    };
    let ascending = run((0..5000).collect());
    assert!(ascending.splits_append > 50 && ascending.splits_even + ascending.splits_two_to_three + ascending.shares == 0, "{ascending:?}");
    let descending = run((0..5000).rev().collect());
    assert!(descending.splits_descending > 50 && descending.splits_append + descending.splits_two_to_three == 0, "{descending:?}");
    let mut shuffled: Vec<u64> = (0..5000).map(|i| i * 1_000_003).collect();
    shuffled.shuffle(&mut StdRng::seed_from_u64(4));
    let random = run(shuffled);
    assert!(random.shares > 0 && random.splits_two_to_three > 0 && random.splits_append + random.splits_descending == 0, "{random:?}");
    // A run in the middle of what is there.
    let middle = run((0..200).map(|i| i << 40).chain((1..3000).map(|i| (100 << 40) + i)).collect());
    assert!(middle.splits_run > 0 && middle.splits_append > 20 && middle.splits_even == 0, "{middle:?}");
    let late = run(interleaved(32, 5).collect());
    assert!(late.splits_slack + late.shares_slack > 0, "{late:?}");
}
