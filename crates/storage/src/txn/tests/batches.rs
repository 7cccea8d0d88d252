//! Batches of several threads' transactions, with duplicates, rows deleted but not purged, savepoints and rollbacks; crashes in between.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::crash::pages_owned;
use super::*;
use crate::LockError;
use crate::btree::BatchRows;
use crate::page::slotted::fits_inline;
use crate::sync::{AtomicBool, Ordering};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const THREADS: usize = 3;
const ROUNDS: u64 = 2;
const TRANSACTIONS: usize = 40;
/// A thread that has more rows deletes more.
const ROWS_MAX: usize = 3000;

/// The last byte of a key says whose it is.
fn key(rng: &mut StdRng, thread: usize, kind: u32, i: u64) -> Vec<u8> {
    let mut key = match kind {
        0 => (rng.random_range(0..5000u64) << 20).to_be_bytes().to_vec(),
        1 => i.to_be_bytes().to_vec(),
        2 => ((1u64 << 40) - i).to_be_bytes().to_vec(),
        // Prefixes of each other.
        _ => (0..rng.random_range(0..7)).map(|_| b"\0a\xff"[rng.random_range(0..3)]).collect(),
    };
    key.push(thread as u8);
    key
}

fn value(rng: &mut StdRng, kind: u32) -> Vec<u8> {
    let len = match kind {
        0 => rng.random_range(8..60),
        1 => rng.random_range(8..4097),
        // A few are long values.
        _ if rng.random_range(0..40) == 0 => 20_000,
        _ => rng.random_range(8..300),
    };
    vec![rng.random(); len]
}

/// Blocks until the operation is done.
fn retry<T>(mut op: impl FnMut() -> crate::Result<Op<T>>) -> Result<T, LockError> {
    loop {
        match op().unwrap() {
            Op::Done(outcome) => return Ok(outcome),
            Op::Wait(wait) => wait.wait()?,
        }
    }
}

/// Inserts a batch; the rows that are there already stay as they are.
fn insert(txn: &mut Txn, t: IndexId, rows: &SortedRows, mine: &mut Model) -> Result<(), LockError> {
    let mut at = 0;
    while at < rows.len() {
        let outcome = retry(|| txn.insert_batch(t, rows, at))?;
        for row in at..at + outcome.inserted {
            let old = mine.insert(rows.key(row).to_vec(), rows.value(row).to_vec());
            assert!(old.is_none(), "a row was inserted twice");
        }
        at += outcome.inserted;
        if outcome.duplicate {
            assert!(mine.contains_key(rows.key(at)), "a duplicate of nothing");
            at += 1;
        }
    }
    Ok(())
}

/// Some changes; what the transaction's rows are then.
fn change(txn: &mut Txn, t: IndexId, rng: &mut StdRng, thread: usize, next: &mut u64, mine: &mut Model) -> Result<(), LockError> {
    for _ in 0..rng.random_range(1..5) {
        let saved = (txn.savepoint(), mine.clone());
        if mine.len() > ROWS_MAX || rng.random_range(0..4) == 0 {
            let (from, count) = (key(rng, thread, 0, 0), if mine.len() > ROWS_MAX { 1500 } else { 100 });
            let some: Vec<_> = mine.range(from..).take(count).map(|(key, _)| key.clone()).collect();
            for key in some {
                if rng.random_range(0..5) == 0 {
                    let value = value(rng, 0);
                    assert!(retry(|| txn.update(t, &key, &value))?);
                    mine.insert(key, value);
                } else {
                    assert!(retry(|| txn.delete(t, &key))?);
                    mine.remove(&key);
                }
            }
        } else {
            let (keys, values, count) = (rng.random_range(0..4), rng.random_range(0..3), [1, 10, 300][rng.random_range(0..3)]);
            let mut rows = Model::new();
            for _ in 0..count {
                *next += 1;
                rows.insert(key(rng, thread, keys, *next), value(rng, values));
            }
            insert(txn, t, &SortedRows::from_unsorted(rows.into_iter().collect()), mine)?;
        }
        if rng.random_range(0..5) == 0 {
            txn.rollback_to(&saved.0).unwrap();
            *mine = saved.1;
        }
    }
    Ok(())
}

/// What a thread's rows were after each of its transactions.
fn work(engine: &Engine, t: IndexId, rng: &mut StdRng, thread: usize, next: &mut u64, model: &mut Model) -> Vec<u64> {
    let mut sums = vec![sum(model)];
    for _ in 0..TRANSACTIONS {
        let mut txn = engine.begin(Isolation::RepeatableRead);
        let mut mine = model.clone();
        match change(&mut txn, t, rng, thread, next, &mut mine) {
            Ok(()) if rng.random_range(0..4) > 0 => {
                commit(txn);
                *model = mine;
                sums.push(sum(model));
            }
            Ok(()) | Err(LockError::Deadlock) => txn.rollback().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
    sums
}

fn sum(rows: &Model) -> u64 {
    let digest = |bytes: &[u8]| bytes.iter().fold(7, |sum: u64, byte| (sum ^ *byte as u64).wrapping_mul(0x100_0000_01B3).rotate_left(5));
    rows.iter().fold(0, |sum: u64, (key, value)| sum.wrapping_add(digest(key).wrapping_mul(digest(value))))
}

fn found(engine: &Engine, t: IndexId) -> Vec<Model> {
    let mut models = vec![Model::new(); THREADS];
    let mut txn = engine.begin(Isolation::RepeatableRead);
    for (key, value) in drain(txn.scan(t, Bounds::all(), Direction::Forward)) {
        models[*key.last().unwrap() as usize].insert(key, value);
    }
    models
}

/// Nothing is left of what was deleted or taken back.
fn verify(engine: &Engine, t: IndexId, models: &[Model], what: &str) {
    purge_all(engine);
    let report = engine.check(t).unwrap();
    assert_eq!(report.records as usize, models.iter().map(BTreeMap::len).sum::<usize>(), "{what}");
    let long = models.iter().flatten().filter(|(key, value)| !fits_inline(key.len(), value.len()));
    let pages = report.pages.iter().collect::<BTreeSet<_>>().len() + long.map(|(_, value)| value.len().div_ceil(16384 - 96)).sum::<usize>();
    assert_eq!(pages_owned(engine, t).len(), pages, "{what}");
}

fn stress(seed: u64) {
    let options = || Options { buffer_pool_bytes: if seed % 2 == 0 { 4 << 20 } else { 64 << 20 }, redo_log_capacity: 64 << 20, ..options() };
    let mut disk = disk(seed);
    let mut engine = open_with(&disk, options()).unwrap();
    let t = new_index(&engine);
    let mut models = vec![(Model::new(), 0u64); THREADS];
    for round in 0..ROUNDS {
        let what = format!("seed {seed} round {round}");
        let stop = AtomicBool::new(false);
        let (sums, image) = std::thread::scope(|scope| {
            let workers: Vec<_> = models
                .iter_mut()
                .enumerate()
                .map(|(thread, (model, next))| {
                    let engine = &engine;
                    let mut rng = StdRng::seed_from_u64(seed * 1000 + round * 10 + thread as u64);
                    scope.spawn(move || work(engine, t, &mut rng, thread, next, model))
                })
                .collect();
            let crash = scope.spawn(|| {
                let mut image = disk.crash();
                let mut steps = 0;
                while !stop.load(Ordering::Relaxed) {
                    steps += 1;
                    engine.background_step().unwrap();
                    if steps % 8 == 5 {
                        engine.checkpoint().unwrap();
                    }
                    if steps % 16 == 1 {
                        engine.flush_log().unwrap();
                        image = disk.crash();
                    }
                    std::thread::yield_now();
                }
                image
            });
            let sums: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            stop.store(true, Ordering::Relaxed);
            (sums.into_iter().map(|sums| sums.unwrap()).collect::<Vec<_>>(), crash.join().unwrap())
        });
        let now: Vec<Model> = models.iter().map(|(model, _)| model.clone()).collect();
        assert!(found(&engine, t) == now, "{what}");
        verify(&engine, t, &now, &what);

        // The power went off in between.
        let crashed = open_with(&image, options()).unwrap();
        let rows = found(&crashed, t);
        for (rows, sums) in rows.iter().zip(&sums) {
            assert!(sums.contains(&sum(rows)), "{what}: a state that never was");
        }
        verify(&crashed, t, &rows, &what);
        drop(crashed);

        // It goes off now, and finds each thread in a transaction; the next round goes on with what recovery made.
        for (thread, (model, next)) in models.iter().enumerate() {
            let mut rng = StdRng::seed_from_u64(seed * 1000 + round * 10 + 5 + thread as u64);
            let mut loser = engine.begin(Isolation::RepeatableRead);
            change(&mut loser, t, &mut rng, thread, &mut { *next }, &mut model.clone()).unwrap();
            engine.flush_log().unwrap();
            std::mem::forget(loser);
        }
        let image = disk.crash();
        drop(engine);
        (disk, engine) = (image.clone(), open_with(&image, options()).unwrap());
        assert!(found(&engine, t) == now, "{what}");
        verify(&engine, t, &now, &what);
        println!("{what}: {} rows {:?}", now.iter().map(BTreeMap::len).sum::<usize>(), engine.tree_counters(t).unwrap());
    }
}

#[test]
fn batches_that_meet_duplicates_and_are_taken_back() {
    for seed in 0..4 {
        stress(seed);
    }
}

#[test]
#[ignore = "minutes"]
fn batches_that_meet_duplicates_and_are_taken_back_for_long() {
    for seed in 100..160 {
        stress(seed);
    }
}
