//! Real threads: money moves between accounts, and none is made or lost.

use std::ops::Bound;

use rand::Rng;

use super::*;
use crate::LockError;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

const ACCOUNTS: u32 = 40;
const START: i64 = 1000;

fn account(n: u32) -> Vec<u8> {
    format!("account {n:03}").into_bytes()
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

fn transfer(engine: &Engine, t: IndexId, rng: &mut impl Rng) -> Result<bool, LockError> {
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let (from, to) = (rng.random_range(0..ACCOUNTS), rng.random_range(0..ACCOUNTS));
    let amount: i64 = rng.random_range(1..20);
    for (n, change) in [(from, -amount), (to, amount)] {
        let locked = retry(|| txn.lock(t, &account(n), LockMode::Exclusive, LockWaitPolicy::Wait))?;
        let Locked::Yes(Some(balance)) = locked else { panic!("account {n} is gone") };
        let balance = i64::from_le_bytes(balance[..8].try_into().unwrap()) + change;
        let mut value = balance.to_le_bytes().to_vec();
        value.resize(rng.random_range(8..200), 0);
        assert!(retry(|| txn.update(t, &account(n), &value))?);
    }
    if rng.random_ratio(1, 10) {
        txn.rollback().unwrap();
        return Ok(false);
    }
    commit(txn);
    Ok(true)
}

fn total(txn: &mut Txn, t: IndexId) -> i64 {
    let rows = drain(txn.scan(t, Bounds::all(), Direction::Forward));
    assert_eq!(rows.len(), ACCOUNTS as usize);
    rows.iter().map(|(_, v)| i64::from_le_bytes(v[..8].try_into().unwrap())).sum()
}

#[test]
fn money_is_neither_made_nor_lost() {
    move_money(None);
}

/// Every change spills, while others read and runs are merged.
#[test]
fn money_is_neither_made_nor_lost_without_memory_for_versions() {
    move_money(Some(0));
    move_money(Some(5000));
}

fn move_money(version_bytes: Option<u64>) {
    let disk = disk(21);
    let with_threads = || Options { background: true, version_bytes, ..options() };
    let engine = open_with(&disk, with_threads()).unwrap();
    let t = new_index(&engine);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    for n in 0..ACCOUNTS {
        assert_eq!(done(txn.insert(t, &account(n), &START.to_le_bytes())), Inserted::Yes);
    }
    commit(txn);
    let sum = START * ACCOUNTS as i64;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut rng = rand::rng();
                for _ in 0..300 {
                    match transfer(&engine, t, &mut rng) {
                        Ok(_) | Err(LockError::Deadlock) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
                stop.store(true, Ordering::SeqCst);
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let mut txn = engine.begin(Isolation::RepeatableRead);
                assert_eq!(total(&mut txn, t), sum);
                std::thread::yield_now();
                assert_eq!(total(&mut txn, t), sum);
            }
        });
    });
    engine.check(t).unwrap();
    let mut open_one = engine.begin(Isolation::RepeatableRead);
    assert!(done(open_one.update(t, &account(0), &[0; 8])));
    engine.flush_log().unwrap();
    std::mem::forget(open_one);
    drop(engine);
    let image = disk.crash();
    let engine = open_with(&image, with_threads()).unwrap();
    assert_eq!(total(&mut engine.begin(Isolation::RepeatableRead), t), sum);
    let mut next = engine.begin(Isolation::RepeatableRead);
    // Waits for the loser to be undone if it is not yet.
    assert!(retry(|| next.update(t, &account(0), &START.to_le_bytes())).unwrap());
    drop(next);
    assert_eq!(total(&mut engine.begin(Isolation::RepeatableRead), t), sum);
    engine.check(t).unwrap();
    engine.shutdown().unwrap();
}

const SLOTS: u32 = 30;
const TOKENS: u8 = 12;

fn slot(n: u32) -> Vec<u8> {
    format!("slot {n:03}").into_bytes()
}

/// Some are overflow values.
fn token(n: u8) -> Vec<u8> {
    vec![n; if n.is_multiple_of(4) { 20_000 } else { 1 + n as usize * 20 }]
}

/// Takes what is in one slot to the other, and what is there to the first.
fn move_token(txn: &mut Txn, t: IndexId, from: u32, to: u32) -> Result<(), LockError> {
    let Locked::Yes(Some(moved)) = retry(|| txn.lock(t, &slot(from), LockMode::Exclusive, LockWaitPolicy::Wait))? else { return Ok(()) };
    match retry(|| txn.insert(t, &slot(to), &moved))? {
        Inserted::Yes => assert!(retry(|| txn.delete(t, &slot(from)))?),
        Inserted::Duplicate => {
            let Locked::Yes(Some(other)) = retry(|| txn.lock(t, &slot(to), LockMode::Exclusive, LockWaitPolicy::Wait))? else { return Ok(()) };
            assert!(retry(|| txn.update(t, &slot(to), &moved))? && retry(|| txn.update(t, &slot(from), &other))?);
        }
    }
    Ok(())
}

fn move_tokens_once(engine: &Engine, t: IndexId, rng: &mut impl Rng) -> Result<(), LockError> {
    let level = if rng.random_ratio(1, 5) { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
    let mut txn = engine.begin(level);
    for _ in 0..rng.random_range(1..4) {
        let savepoint = txn.savepoint();
        let (from, to) = (rng.random_range(0..SLOTS), rng.random_range(0..SLOTS));
        if from != to {
            move_token(&mut txn, t, from, to)?;
        }
        if rng.random_ratio(1, 3) {
            txn.rollback_to(&savepoint).unwrap();
        }
    }
    if rng.random_ratio(1, 8) {
        txn.rollback().unwrap();
    } else {
        commit(txn);
    }
    Ok(())
}

/// Each is somewhere, once.
fn tokens(txn: &mut Txn, t: IndexId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = drain(txn.scan(t, Bounds::all(), Direction::Forward));
    let mut found: Vec<u8> = rows.iter().map(|(_, value)| value[0]).collect();
    found.sort_unstable();
    assert!(found.into_iter().eq(0..TOKENS), "{:?}", rows.iter().map(|(key, value)| (key, value[0])).collect::<Vec<_>>());
    assert!(rows.iter().all(|(_, value)| *value == token(value[0])));
    rows
}

/// Rows come and go, and changes are taken back, while snapshots of all ages are read.
#[test]
fn tokens_are_always_in_one_place() {
    for version_bytes in [None, Some(0), Some(5000)] {
        let disk = disk(23);
        let engine = open_with(&disk, Options { background: true, version_bytes, ..options() }).unwrap();
        let t = new_index(&engine);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        for n in 0..TOKENS {
            assert_eq!(done(txn.insert(t, &slot(n as u32), &token(n))), Inserted::Yes);
        }
        commit(txn);
        let left = AtomicU64::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut rng = rand::rng();
                    for _ in 0..150 {
                        match move_tokens_once(&engine, t, &mut rng) {
                            Ok(()) | Err(LockError::Deadlock) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                    left.fetch_sub(1, Ordering::SeqCst);
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut rng = rand::rng();
                    while left.load(Ordering::SeqCst) > 0 {
                        let mut txn = engine.begin(Isolation::RepeatableRead);
                        let rows = tokens(&mut txn, t);
                        for _ in 0..rng.random_range(0..20) {
                            std::thread::yield_now();
                            let (n, mut value) = (rng.random_range(0..SLOTS), Vec::new());
                            let found = txn.get(t, &slot(n), &mut value).unwrap().then_some(value);
                            assert_eq!(found.as_ref(), rows.iter().find(|(key, _)| *key == slot(n)).map(|(_, value)| value));
                        }
                        assert!(tokens(&mut txn, t) == rows);
                    }
                });
            }
        });
        engine.check(t).unwrap();
        engine.shutdown().unwrap();
        drop(engine);
        let engine = open_with(&disk, options()).unwrap();
        tokens(&mut engine.begin(Isolation::RepeatableRead), t);
        purge_all(&engine);
        assert_eq!(engine.check(crate::txn::system::GARBAGE_INDEX).unwrap().records, 0);
    }
}

#[test]
fn inserters_of_one_key_agree_on_one_winner() {
    let engine = open_with(&disk(22), Options { background: true, ..options() }).unwrap();
    let t = new_index(&engine);
    let winners = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (engine, winners) = (&engine, &winners);
            scope.spawn(move || {
                for n in 0..200u32 {
                    let mut txn = engine.begin(Isolation::ReadCommitted);
                    match retry(|| txn.insert(t, &n.to_be_bytes(), &[thread])).unwrap() {
                        Inserted::Yes => {
                            winners.fetch_add(1, Ordering::SeqCst);
                            commit(txn);
                        }
                        Inserted::Duplicate => drop(txn),
                    }
                }
            });
        }
    });
    assert_eq!(winners.into_inner(), 200);
    assert_eq!(drain(engine.begin(Isolation::ReadCommitted).scan(t, Bounds::all(), Direction::Forward)).len(), 200);
    engine.shutdown().unwrap();
}

const ROWS: usize = 60;
const EXCLUSIVELY: u64 = 1000;

fn weight(mode: Option<LockMode>) -> u64 {
    match mode {
        None => 0,
        Some(LockMode::Shared) => 1,
        Some(LockMode::Exclusive) => EXCLUSIVELY,
    }
}

/// What a transaction has locked for certain. It may have more.
struct Certain<'a> {
    /// By row: the weights of all who have it.
    rows: &'a [AtomicU64],
    mine: Vec<Option<LockMode>>,
}

impl Certain<'_> {
    /// After the lock was granted.
    fn take(&mut self, row: usize, mode: LockMode) {
        let before = self.mine[row];
        if before == Some(LockMode::Exclusive) {
            return;
        }
        let others = self.rows[row].fetch_add(weight(Some(mode)) - weight(before), Ordering::SeqCst) - weight(before);
        match mode {
            LockMode::Shared => assert!(others < EXCLUSIVELY, "row {row} is shared with one who has it exclusively"),
            LockMode::Exclusive => assert_eq!(others, 0, "row {row} is somebody else's too"),
        }
        self.mine[row] = Some(mode);
    }

    /// Before the lock is given back.
    fn give(&mut self, row: usize, kept: Option<LockMode>) {
        self.rows[row].fetch_sub(weight(self.mine[row]) - weight(kept), Ordering::SeqCst);
        self.mine[row] = kept;
    }

    fn give_all(&mut self, kept: &[Option<LockMode>]) {
        kept.iter().enumerate().for_each(|(row, kept)| self.give(row, *kept));
    }
}

/// Locks rows, mostly one beside the other, and lets others come and go between them.
fn lock_and_change(txn: &mut Txn, t: IndexId, certain: &mut Certain<'_>, rng: &mut impl Rng) -> Result<(), LockError> {
    let key = |n: usize| (n as u32).to_be_bytes();
    let mut savepoint = None;
    let mut at = rng.random_range(0..ROWS);
    for _ in 0..rng.random_range(5..40) {
        at = if rng.random_ratio(3, 4) { (at + 1) % ROWS } else { rng.random_range(0..ROWS) };
        match rng.random_range(0..10) {
            0 => savepoint = Some((txn.savepoint(), certain.mine.clone())),
            1 => {
                if let Some((savepoint, mine)) = savepoint.take() {
                    // What was only changed since is not locked any more.
                    certain.give_all(&mine);
                    txn.rollback_to(&savepoint).unwrap();
                }
            }
            2 => {
                retry(|| txn.insert(t, &key(2 * at + 1), b"between"))?;
            }
            3 => {
                retry(|| txn.delete(t, &key(2 * at + 1)))?;
            }
            4 => {
                assert!(retry(|| txn.update(t, &key(2 * at), b"changed"))?);
                certain.take(at, LockMode::Exclusive);
            }
            _ => {
                let mode = if rng.random() { LockMode::Shared } else { LockMode::Exclusive };
                let before = certain.mine[at];
                let locked = retry(|| txn.lock(t, &key(2 * at), mode, LockWaitPolicy::Wait))?;
                assert!(matches!(locked, Locked::Yes(Some(_))));
                certain.take(at, mode);
                if before.is_none() && rng.random_ratio(1, 3) {
                    certain.give(at, None);
                    txn.unlock(t, &key(2 * at));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn nobody_has_a_row_with_another_who_excludes_him() {
    use rand::SeedableRng;
    let engine = open_with(&disk(23), Options { background: true, ..options() }).unwrap();
    let t = new_index(&engine);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    for n in 0..ROWS as u32 {
        assert_eq!(done(txn.insert(t, &(2 * n).to_be_bytes(), b"row")), Inserted::Yes);
    }
    commit(txn);
    let rows: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (engine, rows) = (&engine, &rows);
            scope.spawn(move || {
                let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
                for _ in 0..150 {
                    let mut txn = engine.begin(Isolation::ReadCommitted);
                    let mut certain = Certain { rows, mine: vec![None; ROWS] };
                    let outcome = lock_and_change(&mut txn, t, &mut certain, &mut rng);
                    certain.give_all(&[None; ROWS]);
                    match outcome {
                        Ok(()) if rng.random_ratio(2, 3) => commit(txn),
                        Ok(()) | Err(LockError::Deadlock) => txn.rollback().unwrap(),
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    assert_eq!(engine.stats().locked_keys, 0);
    engine.check(t).unwrap();
    engine.shutdown().unwrap();
}

/// Polls a future on this thread, parked between its wakes.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut cx = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        std::thread::park_timeout(Duration::from_secs(20));
    }
}

#[test]
fn both_waits_are_futures() {
    let engine = open_with(&disk(23), Options { background: true, ..options() }).unwrap();
    let t = new_index(&engine);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let engine = &engine;
            scope.spawn(move || {
                for n in 0..100u32 {
                    let mut txn = engine.begin(Isolation::RepeatableRead);
                    let own = (thread << 16 | n).to_be_bytes();
                    let inserted = block_on(async { txn.insert(t, &own, b"own") }).unwrap();
                    assert!(matches!(inserted, Op::Done(Inserted::Yes)));
                    let shared = n.to_be_bytes();
                    block_on(async {
                        loop {
                            match txn.insert(t, &shared[..3], b"shared").unwrap() {
                                Op::Done(_) => return,
                                Op::Wait(wait) => wait.await.unwrap(),
                            }
                        }
                    });
                    block_on(txn.commit(b"events").unwrap()).unwrap();
                }
            });
        }
    });
    assert_eq!(engine.stats().open_transactions, 0);
    assert_eq!(drain(engine.begin(Isolation::ReadCommitted).scan(t, Bounds::all(), Direction::Forward)).len(), 401);
    engine.shutdown().unwrap();
}

#[test]
fn purge_keeps_up_with_updates_in_the_background() {
    let engine = open_with(&disk(24), Options { background: true, ..options() }).unwrap();
    let t = new_index(&engine);
    given(&engine, t, &[("a", "0"), ("b", "0")]);
    for n in 0..2000 {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        put(&mut txn, t, "a", &n.to_string());
        if n % 2 == 0 {
            put(&mut txn, t, "c", "here");
        } else {
            assert!(done(txn.delete(t, b"c")));
        }
        commit(txn);
    }
    for _ in 0..500 {
        let stats = engine.stats();
        if (stats.history_length, stats.versions) == (0, 0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let stats = engine.stats();
    assert_eq!((stats.history_length, stats.versions), (0, 0));
    assert_eq!(engine.check(t).unwrap().records, 2);
    engine.shutdown().unwrap();
}

/// A locking scan gives every key that has been inserted, whenever its transaction commits meanwhile.
#[test]
fn no_commit_slips_through_a_locking_scan() {
    let engine = open_with(&disk(22), Options { background: true, ..options() }).unwrap();
    let t = new_index(&engine);
    const KEYS: u64 = 20_000;
    let inserted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=KEYS {
                let mut txn = engine.begin(Isolation::ReadCommitted);
                assert_eq!(done(txn.insert(t, &n.to_be_bytes(), b"")), Inserted::Yes);
                inserted.store(n, Ordering::SeqCst);
                commit(txn);
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut txn = engine.begin(Isolation::ReadCommitted);
                let mut leaf = LeafRows::new();
                loop {
                    let newest = inserted.load(Ordering::SeqCst);
                    let bounds = Bounds::new(Bound::Included(newest.to_be_bytes().to_vec()), Bound::Unbounded);
                    let mut scan = txn.scan_latest(t, bounds, Direction::Forward, LockMode::Exclusive, None);
                    assert!(newest == 0 || scan.next_leaf(&mut leaf).unwrap(), "{newest} is missing");
                    if newest == KEYS {
                        break;
                    }
                }
            });
        }
    });
    engine.shutdown().unwrap();
}

/// What a shared range covers is what a snapshot taken after it sees, whatever was committed a moment ago.
#[test]
fn a_shared_range_shows_the_rows_that_it_locked() {
    let engine = open_with(&disk(23), Options { background: true, ..options() }).unwrap();
    let t = new_index(&engine);
    given(&engine, t, &[("a", "0")]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..10_000u32 {
                let mut txn = engine.begin(Isolation::ReadCommitted);
                assert!(retry(|| txn.update(t, b"a", n.to_string().as_bytes())).unwrap());
                commit(txn);
            }
            stop.store(true, Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let mut txn = engine.begin(Isolation::Serializable);
                    let mut range = txn.share_range(t, Bounds::all());
                    retry(|| range.lock(&mut txn)).unwrap();
                    let mut seen = Vec::new();
                    let mut leaf = LeafRows::new();
                    let snapshot = txn.fresh_snapshot();
                    let mut scan = snapshot.scan(t, Bounds::all(), Direction::Forward);
                    while scan.next_leaf(&mut leaf).unwrap() {
                        seen.extend_from_slice(leaf.value(0));
                    }
                    let locked = retry(|| txn.lock(t, b"a", LockMode::Shared, LockWaitPolicy::Wait)).unwrap();
                    assert_eq!(locked, Locked::Yes(Some(seen)));
                }
            });
        }
    });
    engine.shutdown().unwrap();
}
