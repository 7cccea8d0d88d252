//! Real threads: money moves between accounts, and none is made or lost.

use rand::Rng;

use super::*;
use crate::LockError;
use crate::sync::{AtomicBool, Ordering};

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
    let disk = disk(21);
    let with_threads = || Options { background: true, ..options() };
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
