//! Batches of every kind from several threads: each thread knows its rows, a crash in between leaves a state that was, and recovery rebuilds
//! every page as it was.

use super::super::{BTree, BatchRows, Cursor, Decision, TreeReport};
use super::{Rows, checked, create, open, options, reopen};
use crate::buffer::Writer;
use crate::disk::{SimConfig, SimDisk};
use crate::ids::TxnId;
use crate::page::slotted::layout::TYPE;
use crate::page::slotted::{MAX_KEY_LEN, fits_inline};
use crate::recovery::Store;
use crate::sync::Ordering;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const THREADS: usize = 3;
const ROUNDS: u64 = 3;
const BATCHES: usize = 60;
/// A thread that has more rows removes more.
const ROWS_MAX: usize = 4000;

/// Random keys lie below this; those of appends, and of blocks that descend, from twice that on.
const TOP: u64 = 1 << 40;

fn digest(parts: [&[u8]; 2]) -> u64 {
    let byte = |sum: u64, byte: &u8| (sum ^ *byte as u64).wrapping_mul(0x100_0000_01B3).rotate_left(5);
    parts.iter().fold(7, |sum, part| part.iter().fold(sum ^ part.len() as u64, byte))
}

/// Whose key it is.
fn thread_of(key: &[u8]) -> usize {
    (digest([key, b""]) >> 32) as usize % THREADS
}

/// A number for what a thread has: it changes with every row.
fn sum(rows: &Model) -> u64 {
    rows.iter().fold(0, |sum, (key, value)| sum.wrapping_add(digest([key, value])))
}

fn keys(rng: &mut StdRng, next: &AtomicU64) -> Vec<Vec<u8>> {
    let count = [1, 8, 90, 600][rng.random_range(0..4)];
    let number = |n: u64| n.to_be_bytes().to_vec();
    match rng.random_range(0..9) {
        0 | 1 => (0..count).map(|_| number(2 * TOP + next.fetch_add(1, Ordering::Relaxed))).collect(),
        2 => (0..count).map(|_| number(2 * TOP - next.fetch_add(1, Ordering::Relaxed))).collect(),
        3 | 4 => (0..count).map(|_| number(rng.random_range(0..TOP))).collect(),
        5 => {
            let (first, step) = (rng.random_range(0..TOP), rng.random_range(1..5));
            (0..count).map(|i| number(first + i * step)).collect()
        }
        // Prefixes of each other, the empty key among them.
        6 | 7 => (0..count).map(|_| (0..rng.random_range(0..9)).map(|_| b"\0a\xff"[rng.random_range(0..3)]).collect()).collect(),
        // Long ones, different in their first or their last bytes, or in their lengths.
        _ => (0..count.min(30))
            .map(|_| {
                let mut key = vec![b'l'; [300, 1500, MAX_KEY_LEN][rng.random_range(0..3)]];
                match rng.random_range(0..3) {
                    0 => key[..2].copy_from_slice(&rng.random::<[u8; 2]>()),
                    1 => _ = key.splice(key.len() - 2.., rng.random::<[u8; 2]>()).count(),
                    _ => key.truncate(rng.random_range(1..=MAX_KEY_LEN)),
                }
                key
            })
            .collect(),
    }
}

fn value(rng: &mut StdRng, key: &[u8], kind: u32) -> Vec<u8> {
    let mut len: usize = match kind {
        0 => rng.random_range(8..60),
        1 if rng.random_range(0..12) == 0 => rng.random_range(1000..8000),
        1 => rng.random_range(8..200),
        2 => rng.random_range(8..4097),
        _ => rng.random_range(3500..4200),
    };
    while !fits_inline(key.len(), len) {
        len /= 2;
    }
    vec![rng.random(); len]
}

/// One thread's share of a round; what `sum` was after each of its records.
fn work(tree: &BTree, rng: &mut StdRng, thread: usize, next: &AtomicU64, model: &mut Model) -> Vec<u64> {
    let mut cursor = Cursor::new();
    let mut now = sum(model);
    let mut sums = vec![now];
    for _ in 0..BATCHES {
        let mut keys = keys(rng, next);
        let crowded = model.len() > ROWS_MAX;
        if crowded || rng.random_range(0..4) == 0 {
            let from = keys.swap_remove(0);
            keys = model.range(from..).take(rng.random_range(1..if crowded { 2000 } else { 200 })).map(|(key, _)| key.clone()).collect();
        }
        keys.retain(|key| thread_of(key) == thread);
        keys.sort();
        keys.dedup();
        let kind = rng.random_range(0..4);
        let rows: Rows = keys.into_iter().map(|key| (value(rng, &key, kind), key)).map(|(value, key)| (key, value)).collect();
        let remove = if crowded { 9 } else { [0, 0, 3, 9][rng.random_range(0..4)] };
        let decisions: Vec<Decision> = (0..rows.len())
            .map(|_| match rng.random_range(0..10) {
                n if n < remove => Decision::Remove,
                9 => Decision::Leave,
                _ => Decision::Put { txn: TxnId(thread as u64 + 1), flags: 0 },
            })
            .collect();
        let mut at = 0;
        while at < rows.len() {
            let done = tree
                .modify_batch(&mut cursor, &rows, at..rows.len(), Writer::System, |row, place, _| {
                    assert!(place.record().map(|r| r.value) == model.get(rows.key(row)).map(Vec::as_slice), "a row is not as it was left");
                    decisions[row]
                })
                .unwrap();
            assert!(done.done > 0 && !done.stopped);
            for row in at..at + done.done {
                let (key, value) = &rows.0[row];
                let old = match decisions[row] {
                    Decision::Put { .. } => {
                        now = now.wrapping_add(digest([key, value]));
                        model.insert(key.clone(), value.clone())
                    }
                    Decision::Remove => model.remove(key),
                    _ => None,
                };
                now = old.map_or(now, |old| now.wrapping_sub(digest([key, &old])));
            }
            sums.push(now);
            at += done.done;
        }
    }
    sums
}

/// What each thread finds in the tree.
fn found(tree: &BTree) -> Vec<Model> {
    let mut models = vec![Model::new(); THREADS];
    for (key, value) in tree.all().unwrap() {
        models[thread_of(&key)].insert(key, value);
    }
    models
}

/// The pages of one store are those of the other, byte by byte but for the checksum.
fn same_pages(a: &Store, b: &Store, report: &TreeReport, seed: u64) {
    for page in &report.pages {
        let (a, b) = (a.pool.fix_shared(*page).unwrap(), b.pool.fix_shared(*page).unwrap());
        let difference = (TYPE..a.len()).find(|at| a[*at] != b[*at]);
        assert!(difference.is_none(), "seed {seed}: recovery makes another page {page:?} from byte {difference:?} on");
    }
}

fn stress(seed: u64, frames: usize) {
    let options = options(frames, 64 << 20);
    let mut disk = SimDisk::new(SimConfig { seed, ..SimConfig::default() });
    let mut store = open(&disk, &options).unwrap();
    let mut tree = create(&store).unwrap();
    store.wal.flush().unwrap();
    let next = AtomicU64::new(0);
    let mut models = vec![Model::new(); THREADS];
    for round in 0..ROUNDS {
        let stop = AtomicBool::new(false);
        let (sums, image) = std::thread::scope(|scope| {
            let workers: Vec<_> = models
                .iter_mut()
                .enumerate()
                .map(|(thread, model)| {
                    let (tree, next) = (&tree, &next);
                    let mut rng = StdRng::seed_from_u64(seed * 1000 + round * 10 + thread as u64);
                    scope.spawn(move || work(tree, &mut rng, thread, next, model))
                })
                .collect();
            let crash = scope.spawn(|| {
                let mut image = disk.crash();
                let mut steps = 0;
                while !stop.load(Ordering::Relaxed) {
                    steps += 1;
                    tree.check().unwrap();
                    store.clean(frames / 8).unwrap();
                    store.wal.flush().unwrap();
                    if steps % 8 == 5 {
                        store.checkpoint().unwrap();
                    }
                    if steps % 4 == 1 {
                        image = disk.crash();
                    }
                }
                image
            });
            let sums: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            stop.store(true, Ordering::Relaxed);
            (sums.into_iter().map(|sums| sums.unwrap()).collect::<Vec<_>>(), crash.join().unwrap())
        });
        let report = checked(&store, &tree);
        assert!(found(&tree) == models, "seed {seed}");
        assert_eq!(report.incomplete_splits, 0, "seed {seed}");

        // The power went off in between.
        let crashed = open(&image, &options).unwrap();
        let reopened = reopen(&crashed, tree.index()).unwrap();
        checked(&crashed, &reopened);
        for (model, sums) in found(&reopened).iter().zip(&sums) {
            assert!(sums.contains(&sum(model)), "seed {seed}: a state that never was");
        }
        crashed.stop();

        // It goes off now, and the next round goes on with what recovery made.
        store.wal.flush().unwrap();
        let image = disk.crash();
        let recovered = open(&image, &options).unwrap();
        let reopened = reopen(&recovered, tree.index()).unwrap();
        assert_eq!(checked(&recovered, &reopened), report, "seed {seed}");
        same_pages(&store, &recovered, &report, seed);
        println!("seed {seed} round {round}: fill {:.3} {:?}", report.leaf_fill(), tree.stats().counters());
        store.stop();
        (disk, store, tree) = (image, recovered, reopened);
    }
}

#[test]
fn batches_of_every_kind_and_crashes() {
    for seed in 0..4 {
        stress(seed, 3000);
    }
}

#[test]
fn batches_of_every_kind_with_eviction() {
    for seed in 10..13 {
        stress(seed, 120);
    }
}

#[test]
#[ignore = "minutes"]
fn batches_of_every_kind_for_long() {
    for seed in 100..180 {
        stress(seed, if seed % 2 == 0 { 120 } else { 3000 });
    }
}

/// Rows of very different sizes in shuffled batches: making room for many rows at once leaves no pages half empty.
#[test]
fn shuffled_batches_of_different_sizes_fill_leaves() {
    for (seed, longest) in [(1, 60), (2, 900), (3, 4096)] {
        let rig = super::rig(6000);
        let mut rng = StdRng::seed_from_u64(seed);
        let mut cursor = Cursor::new();
        let mut used = 0;
        while used < 24 << 20 {
            let mut rows = Model::new();
            while rows.len() < 500 {
                // Every other row is short.
                let len = if rng.random() { rng.random_range(8..=longest) } else { 20 };
                rows.insert(rng.random::<u64>().to_be_bytes().to_vec(), vec![7; len]);
            }
            used += rows.values().map(|value| value.len() + 26).sum::<usize>();
            let rows: Rows = rows.into_iter().collect();
            let mut at = 0;
            while at < rows.len() {
                let put = |_, _: &super::super::Place, _: &mut Vec<u8>| Decision::Put { txn: TxnId(1), flags: 0 };
                at += rig.tree.modify_batch(&mut cursor, &rows, at..rows.len(), Writer::System, put).unwrap().done;
            }
        }
        let fill = checked(&rig.store, &rig.tree).leaf_fill();
        println!("values of up to {longest} bytes: {fill:.3} {:?}", rig.tree.stats().counters());
        assert!(fill >= 0.75, "values of up to {longest} bytes: {fill}");
    }
}
