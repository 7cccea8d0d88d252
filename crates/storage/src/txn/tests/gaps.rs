//! Gap locks: phantoms that must not come, and inserts that nothing may hinder.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::LockError;
use Isolation::*;
use std::ops::Bound;

fn key(n: u32) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

/// An engine with one index of these keys.
fn with_keys(keys: impl IntoIterator<Item = u32>) -> (Engine, IndexId) {
    let (engine, t) = engine();
    let mut txn = engine.begin(RepeatableRead);
    for n in keys {
        assert_eq!(done(txn.insert(t, &key(n), &[b'x'; 200])), Inserted::Yes);
    }
    commit(txn);
    (engine, t)
}

fn from(n: u32) -> Bound<Vec<u8>> {
    Bound::Included(key(n))
}

/// Locks all rows between the bounds, as a locking read does, at most `limit` of them.
fn lock_range(txn: &mut Txn, t: IndexId, bounds: Bounds, direction: Direction, limit: usize) -> Vec<Vec<u8>> {
    let mut scan = txn.scan_latest(t, bounds, direction, LockMode::Exclusive, None);
    let (mut leaf, mut found) = (LeafRows::new(), Vec::new());
    while scan.next_leaf(&mut leaf).unwrap() {
        for n in 0..leaf.len() {
            if let Locked::Yes(Some(_)) = done(txn.lock(t, leaf.key(n), LockMode::Exclusive, LockWaitPolicy::Wait)) {
                found.push(leaf.key(n).to_vec());
            }
            if found.len() == limit {
                scan.stop(&leaf, n + 1);
                return found;
            }
        }
    }
    found
}

fn lock_all(txn: &mut Txn, t: IndexId, lower: u32, upper: u32) -> usize {
    lock_range(txn, t, Bounds::new(from(lower), from(upper)), Direction::Forward, usize::MAX).len()
}

/// Which of `keys` another transaction cannot insert.
fn blocked(engine: &Engine, t: IndexId, keys: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut blocked = Vec::new();
    for n in keys {
        let mut txn = engine.begin(ReadCommitted);
        if let Op::Wait(_) = txn.insert(t, &key(n), b"").unwrap() {
            blocked.push(n);
        }
        txn.rollback().unwrap();
    }
    blocked
}

fn exists(txn: &mut Txn, t: IndexId, n: u32) -> bool {
    match done(txn.lock(t, &key(n), LockMode::Exclusive, LockWaitPolicy::Wait)) {
        Locked::Yes(value) => value.is_some(),
        Locked::WouldBlock => panic!("waits if it must"),
    }
}

#[test]
fn a_range_is_locked_from_row_to_row() {
    for level in [RepeatableRead, Serializable] {
        let (engine, t) = with_keys([10, 20, 30, 40]);
        let mut reader = engine.begin(level);
        assert_eq!(lock_all(&mut reader, t, 15, 25), 1);
        assert_eq!(blocked(&engine, t, [5, 11, 19, 21, 29, 31, 41]), [11, 19, 21, 29]);
        commit(reader);
        assert_eq!(blocked(&engine, t, [11, 29]), []);
        assert_eq!((engine.stats().locked_keys, engine.stats().locked_ranges), (0, 0));
    }
}

#[test]
fn read_committed_locks_no_gaps() {
    for level in [ReadCommitted, ReadUncommitted] {
        let (engine, t) = with_keys([10, 20]);
        let mut reader = engine.begin(level);
        assert_eq!(lock_all(&mut reader, t, 0, 99), 2);
        assert!(!exists(&mut reader, t, 15));
        assert_eq!(blocked(&engine, t, [5, 15, 25]), []);
        assert_eq!(engine.stats().locked_ranges, 0);
        // Nor the key that it did not find.
        assert!(!exists(&mut engine.begin(level), t, 15));
    }
}

#[test]
fn a_row_found_by_its_key_is_locked_alone() {
    let (engine, t) = with_keys([10, 20, 30]);
    let mut reader = engine.begin(RepeatableRead);
    assert!(exists(&mut reader, t, 20));
    assert_eq!(blocked(&engine, t, [15, 25]), []);
    assert_eq!(engine.stats().locked_ranges, 0);
}

#[test]
fn a_missing_key_locks_its_gap() {
    let (engine, t) = with_keys([10, 20, 30]);
    let mut reader = engine.begin(RepeatableRead);
    assert!(!exists(&mut reader, t, 15));
    assert!(!exists(&mut reader, t, 99));
    assert_eq!(blocked(&engine, t, [9, 11, 15, 19, 21, 29, 31, 500]), [11, 15, 19, 31, 500]);
    // The rows at its ends are free.
    let mut writer = engine.begin(RepeatableRead);
    assert!(done(writer.update(t, &key(10), b"")) && done(writer.update(t, &key(20), b"")));
}

#[test]
fn a_deleted_row_is_a_missing_key() {
    let (engine, t) = with_keys([10, 20, 30]);
    let mut writer = engine.begin(RepeatableRead);
    assert!(done(writer.delete(t, &key(20))));
    commit(writer);
    for purged in [false, true] {
        if purged {
            purge_all(&engine);
        }
        let mut reader = engine.begin(RepeatableRead);
        assert!(!exists(&mut reader, t, 20));
        assert_eq!(blocked(&engine, t, [9, 11, 20, 29, 31]), [11, 20, 29]);
    }
}

/// What a purge or a rollback takes out from under a gap leaves the gap as it is.
#[test]
fn gaps_outlive_the_records_at_their_ends() {
    let (engine, t) = with_keys([10, 30]);
    let mut deleter = engine.begin(RepeatableRead);
    assert!(done(deleter.delete(t, &key(30))));
    commit(deleter);
    let mut reader = engine.begin(RepeatableRead);
    assert!(!exists(&mut reader, t, 15));
    purge_all(&engine);
    assert_eq!(blocked(&engine, t, [11, 15, 29]), [11, 15, 29]);
    let mut inserter = engine.begin(RepeatableRead);
    assert_eq!(done(inserter.insert(t, &key(40), b"")), Inserted::Yes);
    let mut other = engine.begin(RepeatableRead);
    assert!(!exists(&mut other, t, 39));
    inserter.rollback().unwrap();
    commit(reader);
    assert_eq!(blocked(&engine, t, [9, 11, 29, 31, 39, 41]), [11, 29, 31, 39]);
}

#[test]
fn inserting_into_ones_own_gap_leaves_it_locked() {
    let (engine, t) = with_keys([10, 30]);
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(lock_all(&mut reader, t, 11, 29), 0);
    assert_eq!(done(reader.insert(t, &key(20), b"")), Inserted::Yes);
    assert_eq!(blocked(&engine, t, [11, 19, 20, 21, 29]), [11, 19, 20, 21, 29]);
}

#[test]
fn gaps_are_shared_and_their_inserters_deadlock() {
    let (engine, t) = with_keys([10, 30]);
    let (mut x, mut y) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    assert!(!exists(&mut x, t, 20) && !exists(&mut y, t, 21));
    let x_waits = wait(x.insert(t, &key(20), b""));
    let y_waits = wait(y.insert(t, &key(21), b""));
    // Equal work: who has closed the cycle goes.
    assert_eq!(y_waits.wait(), Err(LockError::Deadlock));
    y.rollback().unwrap();
    assert_eq!(x_waits.wait(), Ok(()));
    assert_eq!(done(x.insert(t, &key(20), b"")), Inserted::Yes);
    assert_eq!(engine.stats().deadlocks, 1);
}

#[test]
fn a_wait_for_a_gap_times_out_and_is_interrupted() {
    let (engine, t) = with_keys([10, 30]);
    let mut reader = engine.begin(RepeatableRead);
    assert!(!exists(&mut reader, t, 20));
    let mut writer = engine.begin(RepeatableRead);
    writer.set_lock_wait_timeout(Duration::from_millis(20));
    assert_eq!(wait(writer.insert(t, &key(20), b"")).wait(), Err(LockError::Timeout));
    let interrupt = Arc::new(crate::Interrupt::new());
    writer.set_interrupt(interrupt.clone());
    writer.set_lock_wait_timeout(Duration::from_secs(20));
    let waiting = wait(writer.insert(t, &key(20), b""));
    interrupt.raise();
    assert_eq!(waiting.wait(), Err(LockError::Interrupted));
    interrupt.clear();
    let waiting = wait(writer.insert(t, &key(20), b""));
    reader.rollback().unwrap();
    assert_eq!(waiting.wait(), Ok(()));
    assert_eq!(done(writer.insert(t, &key(20), b"")), Inserted::Yes);
}

#[test]
fn a_scan_that_stops_gives_back_what_it_did_not_read() {
    let (engine, t) = with_keys([10, 20, 30, 40]);
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(lock_range(&mut reader, t, Bounds::all(), Direction::Forward, 2).len(), 2);
    assert_eq!(blocked(&engine, t, [5, 15, 25, 35, 45]), [5, 15]);
    reader.rollback().unwrap();
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(lock_range(&mut reader, t, Bounds::all(), Direction::Backward, 2), [key(40), key(30)]);
    assert_eq!(blocked(&engine, t, [5, 15, 25, 35, 45]), [25, 35, 45]);
}

#[test]
fn who_waits_for_what_a_scan_gives_back_goes_on() {
    let (engine, t) = with_keys([10, 20]);
    let mut reader = engine.begin(RepeatableRead);
    let mut scan = reader.scan_latest(t, Bounds::all(), Direction::Forward, LockMode::Exclusive, None);
    let mut leaf = LeafRows::new();
    assert!(scan.next_leaf(&mut leaf).unwrap());
    let mut writer = engine.begin(RepeatableRead);
    let waiting = wait(writer.insert(t, &key(15), b""));
    let mut other = engine.begin(RepeatableRead);
    let kept = wait(other.insert(t, &key(5), b""));
    scan.stop(&leaf, 1);
    drop(scan);
    assert_eq!(waiting.wait(), Ok(()));
    assert_eq!(done(writer.insert(t, &key(15), b"")), Inserted::Yes);
    reader.rollback().unwrap();
    assert_eq!(kept.wait(), Ok(()));
}

#[test]
fn a_range_that_ends_with_its_last_row_locks_nothing_behind_it() {
    let (engine, t) = with_keys([10, 20, 30]);
    let mut reader = engine.begin(RepeatableRead);
    for direction in [Direction::Forward, Direction::Backward] {
        let mut scan = reader.scan_latest(t, Bounds::new(from(10), from(20)), direction, LockMode::Exclusive, Some(key(20)));
        while scan.next_leaf(&mut LeafRows::new()).unwrap() {}
    }
    assert_eq!(blocked(&engine, t, [9, 11, 19, 21]), [11, 19]);
}

/// The gap is as wide where its ends are in other leaves.
#[test]
fn a_gap_goes_over_many_leaves() {
    for direction in [Direction::Forward, Direction::Backward] {
        let (engine, t) = with_keys((0..3000).filter(|n| !(500..2500).contains(n)).chain(500..2500));
        let mut deleter = engine.begin(RepeatableRead);
        for n in 500..2500 {
            assert!(done(deleter.delete(t, &key(n))));
        }
        commit(deleter);
        purge_all(&engine);
        let mut reader = engine.begin(RepeatableRead);
        assert!(!exists(&mut reader, t, 1500));
        let probes = [499, 500, 501, 700, 1000, 1499, 1500, 1501, 2000, 2499, 2500];
        assert_eq!(blocked(&engine, t, probes.into_iter().filter(|n| (500..2500).contains(n))), probes[1..10]);
        reader.rollback().unwrap();
        let mut reader = engine.begin(RepeatableRead);
        let found = lock_range(&mut reader, t, Bounds::new(from(1000), from(2000)), direction, usize::MAX);
        assert_eq!(found.len(), 0);
        assert_eq!(blocked(&engine, t, [500, 501, 700, 999, 1000, 1500, 2000, 2499]).len(), 8);
        reader.rollback().unwrap();
        let mut reader = engine.begin(RepeatableRead);
        assert_eq!(lock_range(&mut reader, t, Bounds::new(from(490), from(2510)), direction, usize::MAX).len(), 21);
        assert_eq!(blocked(&engine, t, [500, 501, 700, 1000, 1500, 2000, 2499]).len(), 7);
        assert!(engine.stats().locked_ranges <= 2, "what meets becomes one");
    }
}

#[test]
fn a_batch_stops_at_a_gap() {
    let (engine, t) = with_keys([10, 30]);
    let mut reader = engine.begin(RepeatableRead);
    assert!(!exists(&mut reader, t, 20));
    let mut writer = engine.begin(RepeatableRead);
    let batch = SortedRows::from_unsorted([5, 20, 40].map(|n| (key(n), vec![])).into());
    assert_eq!(done(writer.insert_batch(t, &batch, 0)), BatchOutcome { inserted: 1, duplicate: false });
    let waiting = wait(writer.insert_batch(t, &batch, 1));
    commit(reader);
    assert_eq!(waiting.wait(), Ok(()));
    assert_eq!(done(writer.insert_batch(t, &batch, 1)), BatchOutcome { inserted: 2, duplicate: false });
}

#[test]
fn a_bulk_load_respects_the_gap_of_an_empty_index() {
    let (engine, t) = with_keys([]);
    let mut loader = engine.begin(RepeatableRead);
    let load = loader.load(t).unwrap().expect("the index is empty");
    assert!(!load.is_hindered(&mut loader).unwrap());
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(lock_all(&mut reader, t, 0, 99), 0);
    assert!(load.is_hindered(&mut loader).unwrap());
    assert!(engine.begin(RepeatableRead).load(t).unwrap().is_none());
    assert_eq!(blocked(&engine, t, [1]), [1]);
}

#[test]
fn the_gap_before_a_record() {
    let (engine, t) = with_keys([10, 20, 30]);
    let mut txn = engine.begin(RepeatableRead);
    txn.lock_gap_before(t, &key(20), LockMode::Exclusive).unwrap();
    txn.lock_gap_before(t, &key(10), LockMode::Exclusive).unwrap();
    assert_eq!(blocked(&engine, t, [5, 15, 25]), [5, 15]);
    engine.begin(ReadCommitted).lock_gap_before(t, &key(30), LockMode::Exclusive).unwrap();
    assert_eq!(blocked(&engine, t, [25]), []);
}

fn share(txn: &mut Txn, t: IndexId, bounds: Bounds) {
    done(txn.share_range(t, bounds).lock(txn));
}

#[test]
fn a_shared_range_keeps_writers_and_lockers_out() {
    let (engine, t) = with_keys([10, 20, 30, 40]);
    let (mut x, mut y) = (engine.begin(Serializable), engine.begin(Serializable));
    share(&mut x, t, Bounds::new(from(15), from(30)));
    share(&mut y, t, Bounds::all());
    y.rollback().unwrap();
    assert_eq!(blocked(&engine, t, [5, 11, 25, 31, 39, 41]), [11, 25, 31, 39]);
    let mut writer = engine.begin(RepeatableRead);
    assert!(done(writer.update(t, &key(10), b"")));
    assert!(done(writer.update(t, &key(40), b"")));
    let _ = wait(writer.update(t, &key(20), b""));
    let _ = wait(writer.delete(t, &key(30)));
    let _ = wait(writer.lock(t, &key(20), LockMode::Exclusive, LockWaitPolicy::Wait));
    assert_eq!(done(writer.lock(t, &key(20), LockMode::Exclusive, LockWaitPolicy::NoWait)), Locked::WouldBlock);
    assert!(matches!(done(writer.lock(t, &key(20), LockMode::Shared, LockWaitPolicy::NoWait)), Locked::Yes(Some(_))));
    // Its own holder writes, once it is alone.
    let waiting = wait(x.update(t, &key(20), b""));
    writer.rollback().unwrap();
    assert_eq!(waiting.wait(), Ok(()));
    assert!(done(x.update(t, &key(20), b"")));
    let mut writer = engine.begin(RepeatableRead);
    let waiting = wait(writer.update(t, &key(30), b"new"));
    commit(x);
    assert_eq!(waiting.wait(), Ok(()));
    assert!(done(writer.update(t, &key(30), b"new")));
    assert_eq!(engine.stats().locked_ranges, 0);
}

#[test]
fn sharing_a_range_waits_for_those_who_write_in_it() {
    let (engine, t) = with_keys([10, 20, 30]);
    let mut writer = engine.begin(RepeatableRead);
    assert!(done(writer.update(t, &key(20), b"new")));
    let mut reader = engine.begin(Serializable);
    let mut range = reader.share_range(t, Bounds::all());
    let waiting = wait(range.lock(&mut reader));
    // It has come as far as the row that it waits for: what is behind is free.
    assert!(done(writer.update(t, &key(30), b"new")));
    assert_eq!(blocked(&engine, t, [5, 15, 25, 35]), [5, 15]);
    // One of two that both wait for the other is the victim.
    let deadlocked = wait(writer.update(t, &key(10), b"new"));
    assert_eq!(waiting.wait(), Err(LockError::Deadlock));
    reader.rollback().unwrap();
    assert_eq!(deadlocked.wait(), Ok(()));
    let mut reader = engine.begin(Serializable);
    let mut range = reader.share_range(t, Bounds::all());
    let mut waits = 0;
    let mut writer = Some(writer);
    while let Op::Wait(wait) = range.lock(&mut reader).unwrap() {
        waits += 1;
        writer.take().into_iter().for_each(commit);
        assert_eq!(wait.wait(), Ok(()));
    }
    assert_eq!(waits, 1);
    assert_eq!(blocked(&engine, t, [5, 15, 25, 35]), [5, 15, 25, 35]);
}

#[test]
fn two_who_share_and_then_write_deadlock() {
    let (engine, t) = with_keys([10, 20]);
    let (mut x, mut y) = (engine.begin(Serializable), engine.begin(Serializable));
    share(&mut x, t, Bounds::all());
    share(&mut y, t, Bounds::all());
    let x_waits = wait(x.update(t, &key(10), b""));
    let y_waits = wait(y.update(t, &key(20), b""));
    assert_eq!(y_waits.wait(), Err(LockError::Deadlock));
    y.rollback().unwrap();
    assert_eq!(x_waits.wait(), Ok(()));
}

fn retry<T>(mut op: impl FnMut() -> crate::Result<Op<T>>) -> Result<T, LockError> {
    loop {
        match op().unwrap() {
            Op::Done(outcome) => return Ok(outcome),
            Op::Wait(wait) => wait.wait()?,
        }
    }
}

/// The rows of a range, locked, or shared as a whole.
fn read_locked(txn: &mut Txn, t: IndexId, bounds: &Bounds, direction: Direction, shared: bool) -> Result<Vec<Vec<u8>>, LockError> {
    let mut found = Vec::new();
    if shared {
        let mut range = txn.share_range(t, bounds.clone());
        retry(|| range.lock(txn))?;
        // A fresh view: nobody has changed anything since it was locked.
        let mut scan = txn.scan_latest(t, bounds.clone(), direction, LockMode::Exclusive, None);
        let mut leaf = LeafRows::new();
        while scan.next_leaf(&mut leaf).unwrap() {
            found.extend((0..leaf.len()).map(|n| leaf.key(n).to_vec()));
        }
        return Ok(found);
    }
    let mut scan = txn.scan_latest(t, bounds.clone(), direction, LockMode::Exclusive, None);
    let mut leaf = LeafRows::new();
    while scan.next_leaf(&mut leaf).unwrap() {
        for n in 0..leaf.len() {
            if let Locked::Yes(Some(_)) = retry(|| txn.lock(t, leaf.key(n), LockMode::Shared, LockWaitPolicy::Wait))? {
                found.push(leaf.key(n).to_vec());
            }
        }
    }
    Ok(found)
}

/// Readers that lock see the same twice, whatever inserters, deleters, purge and splits do; and what inserters are kept from is not lost.
#[test]
fn no_phantoms_among_threads() {
    let engine = open_with(&disk(31), Options { background: true, ..options() }).unwrap();
    let t = new_index(&engine);
    const KEYS: u32 = 600;
    let mut txn = engine.begin(RepeatableRead);
    for n in (0..KEYS).step_by(3) {
        assert_eq!(done(txn.insert(t, &key(n), &[b'x'; 300])), Inserted::Yes);
    }
    commit(txn);
    std::thread::scope(|scope| {
        for seed in 0..4u64 {
            let engine = &engine;
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed);
                for _ in 0..250 {
                    let mut txn = engine.begin(Serializable);
                    let outcome = (|| {
                        for _ in 0..rng.random_range(1..4) {
                            let n = rng.random_range(0..KEYS);
                            match rng.random_range(0..5) {
                                0 | 1 => {
                                    retry(|| txn.insert(t, &key(n), &[b'y'; 300]))?;
                                }
                                2 => {
                                    retry(|| txn.delete(t, &key(n)))?;
                                }
                                _ => {
                                    let bounds = Bounds::new(from(n), from(n + rng.random_range(0..30)));
                                    let direction = if rng.random() { Direction::Forward } else { Direction::Backward };
                                    let shared = rng.random();
                                    let first = read_locked(&mut txn, t, &bounds, direction, shared)?;
                                    std::thread::yield_now();
                                    let second = read_locked(&mut txn, t, &bounds, direction, shared)?;
                                    assert_eq!(first, second, "a phantom between {bounds:?}");
                                }
                            }
                        }
                        Ok(())
                    })();
                    match outcome {
                        Ok(()) if rng.random_bool(0.8) => commit(txn),
                        Ok(()) | Err(LockError::Deadlock) => txn.rollback().unwrap(),
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    engine.check(t).unwrap();
    assert_eq!((engine.stats().locked_keys, engine.stats().locked_ranges), (0, 0));
    engine.shutdown().unwrap();
}

fn text(reports: &[crate::LockReport]) -> Vec<String> {
    reports
        .iter()
        .map(|lock| {
            let key = lock.key.as_ref().map_or("supremum".into(), |key| String::from_utf8(key.clone()).unwrap().trim_start_matches('0').to_string());
            let waits = lock.wait.as_ref().map_or(String::new(), |wait| format!(" waits for {}", wait.blockers.len()));
            format!("{:?} {:?} {key}{waits}", lock.mode, lock.extent)
        })
        .collect()
}

#[test]
fn reports_show_gaps_on_the_records_behind_them() {
    let (engine, t) = with_keys([10, 20, 30, 40]);
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(lock_all(&mut reader, t, 12, 22), 1);
    assert!(exists(&mut reader, t, 10));
    assert!(!exists(&mut reader, t, 99));
    let reports = engine.locks(usize::MAX).unwrap().locks;
    assert!(reports.iter().all(|lock| Some(lock.txn) == reader.id() && lock.index == t));
    let expected = ["Exclusive Record 10", "Exclusive NextKey 20", "Exclusive Gap 30", "Exclusive NextKey supremum"];
    assert_eq!(text(&reports), expected);
    let (mut inserter, mut writer) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    let inserting = wait(inserter.insert(t, &key(25), b""));
    let writing = wait(writer.update(t, &key(10), b""));
    let reports = engine.locks(usize::MAX).unwrap().locks;
    assert_eq!(text(&reports)[4..], ["Exclusive InsertIntention 30 waits for 1", "Exclusive Record 10 waits for 1"]);
    assert_eq!(reports[4].wait.as_ref().unwrap().blockers, [reader.id().unwrap()]);
    let contended = ["Exclusive Record 10", "Exclusive Gap 30", "Exclusive InsertIntention 30 waits for 1", "Exclusive Record 10 waits for 1"];
    assert_eq!((text(&engine.contended_locks().unwrap()), engine.lock_waits().unwrap().len()), (contended.map(String::from).to_vec(), 2));
    let locks = engine.txn_locks(reader.id().unwrap()).unwrap().unwrap();
    assert_eq!((locks.rows, locks.indexes), (2, std::collections::BTreeSet::from([t])));
    let size = engine.txn_size(reader.id().unwrap()).unwrap();
    assert_eq!((size.locked_keys, size.locked_ranges, size.entries_changed), (2, 1, 0));
    commit(reader);
    assert_eq!((inserting.wait(), writing.wait()), (Ok(()), Ok(())));
    drop((inserter, writer));
    let mut sharer = engine.begin(Serializable);
    share(&mut sharer, t, Bounds::new(from(20), from(35)));
    assert_eq!(text(&engine.locks(usize::MAX).unwrap().locks), ["Shared Record 20", "Shared NextKey 30", "Shared Gap 40"]);
    assert_eq!(engine.txn_locks(sharer.id().unwrap()).unwrap().unwrap().rows, 2);
    assert!(!engine.locks(4).unwrap().is_cut);
    assert!(engine.locks(1).unwrap().is_cut);
}

#[test]
fn deadlocks_are_told_of_before_they_are_broken() {
    let (engine, t) = with_keys([10, 20]);
    let told = Arc::new(crate::sync::Mutex::new(Vec::new()));
    let watched = told.clone();
    engine.watch_deadlocks(Box::new(move |deadlock| watched.lock().push(deadlock.clone())));
    let (mut x, mut y) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    assert!(exists(&mut x, t, 10) && exists(&mut y, t, 20));
    let x_waits = wait(x.update(t, &key(20), b""));
    let y_waits = wait(y.update(t, &key(10), b""));
    assert_eq!(y_waits.wait(), Err(LockError::Deadlock));
    let told = told.lock();
    assert_eq!((told.len(), told[0].members.len()), (1, 2));
    assert_eq!(Some(told[0].members[told[0].victim].txn), y.id());
    drop(x_waits);
}

#[test]
fn a_transactions_activity_shows_while_it_lasts() {
    let (engine, t) = with_keys([10]);
    let activity = Arc::new(crate::TxnActivity::default());
    for commits in [true, false] {
        let mut txn = engine.begin(ReadCommitted);
        txn.set_activity(activity.clone());
        assert_eq!(activity.get(), None);
        assert_eq!(get(&mut txn, t, "000010").map(|v| v.len()), Some(200));
        let shown = activity.get().unwrap();
        assert_eq!((shown.id, shown.isolation), (None, ReadCommitted));
        assert!(exists(&mut txn, t, 10));
        txn.note_rows_changed(2);
        assert_eq!((activity.get().unwrap().id, activity.get().unwrap().rows_changed), (txn.id(), 2));
        if commits { commit(txn) } else { txn.rollback().unwrap() }
        assert_eq!(activity.get(), None);
    }
}
