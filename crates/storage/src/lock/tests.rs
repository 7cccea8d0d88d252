//! Queues of row locks: who is granted what, and what ends a wait.

use std::time::Duration;

use super::*;
use crate::disk::SystemClock;
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, thread};
use crate::txn::LockMode::{self, Exclusive, Shared};

const T: IndexId = IndexId(3);
const LONG: Duration = Duration::from_secs(20);

fn table() -> Arc<LockTable> {
    LockTable::new(Arc::new(SystemClock::new()), true)
}

fn owner(table: &LockTable, id: u64) -> Arc<Owner> {
    let owner = Arc::new(Owner::new(TxnId(id), 0));
    table.owners.insert(owner.clone());
    owner
}

fn ask(table: &LockTable, owner: &Arc<Owner>, key: &str, mode: LockMode) -> Answer {
    table.acquire(owner, T, key.as_bytes(), mode, None, true)
}

fn granted(answer: Answer) -> bool {
    matches!(answer, Answer::Granted { .. })
}

fn queue(table: &Arc<LockTable>, owner: &Arc<Owner>, key: &str, mode: LockMode, timeout: Duration) -> LockWait {
    match ask(table, owner, key, mode) {
        Answer::Queued(waiter) => LockWait::start(table, waiter, timeout, None),
        _ => panic!("{} was expected to wait", owner.id),
    }
}

#[test]
fn shared_locks_go_together_and_a_writer_waits_for_all() {
    let table = table();
    let (a, b, c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    assert!(granted(ask(&table, &a, "k", Shared)));
    assert!(granted(ask(&table, &b, "k", Shared)));
    assert!(granted(ask(&table, &b, "k", Shared)));
    assert!(table.blocks_write(TxnId(1), T, b"k"));
    assert!(!table.blocks_write(TxnId(1), T, b"l"));
    let wait = queue(&table, &c, "k", Exclusive, LONG);
    table.release(&a);
    assert_eq!(wait.waiter_outcome(), None);
    table.release(&b);
    assert_eq!(wait.wait(), Ok(()));
    assert!(!table.blocks_write(TxnId(3), T, b"k"));
    assert_eq!(c.explicit_locks(), 1);
    table.release(&c);
    assert_eq!(table.stats().explicit_keys, 0);
}

#[test]
fn a_queue_is_first_in_first_out() {
    let table = table();
    let (a, b, c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    assert!(granted(ask(&table, &a, "k", Shared)));
    let b_waits = queue(&table, &b, "k", Exclusive, LONG);
    let c_waits = queue(&table, &c, "k", Shared, LONG);
    table.release(&a);
    assert_eq!((b_waits.waiter_outcome(), c_waits.waiter_outcome()), (Some(Ok(())), None));
    table.release(&b);
    assert_eq!(c_waits.wait(), Ok(()));
}

#[test]
fn dropping_a_wait_lets_those_behind_pass() {
    let table = table();
    let (a, b, c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    assert!(granted(ask(&table, &a, "k", Shared)));
    let b_waits = queue(&table, &b, "k", Exclusive, LONG);
    let c_waits = queue(&table, &c, "k", Shared, LONG);
    drop(b_waits);
    assert_eq!(c_waits.wait(), Ok(()));
}

#[test]
fn an_implicit_lock_becomes_explicit_and_its_end_wakes() {
    let table = table();
    let (a, b) = (owner(&table, 1), owner(&table, 2));
    assert!(matches!(table.acquire(&b, T, b"k", Exclusive, Some(TxnId(1)), false), Answer::Blocked));
    assert_eq!(table.stats().explicit_keys, 0);
    let Answer::Queued(waiter) = table.acquire(&b, T, b"k", Exclusive, Some(TxnId(1)), true) else { panic!() };
    let wait = LockWait::start(&table, waiter, LONG, None);
    let waiting = thread::spawn(move || wait.wait());
    table.release(&a);
    assert_eq!(waiting.join().unwrap(), Ok(()));
    assert!(matches!(table.acquire(&b, T, b"other", Exclusive, Some(TxnId(1)), true), Answer::Again));
    table.release(&b);
    assert_eq!(table.stats().explicit_keys, 0);
}

/// Whoever asked for it, and whatever it had to wait for in the end.
#[test]
fn a_changed_row_that_somebody_asked_for_is_in_no_run() {
    let table = table();
    let (a, b, c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    let keys = ["a", "b", "c", "d", "e"];
    let key_at = |n: usize| keys.get(n).map(|key| RowKey::from_slice(key.as_bytes()));
    let join = |n: usize| {
        let near = || Neighbours { before: n.checked_sub(1).and_then(key_at), after: key_at(n + 1) };
        table.join_run(&a, T, keys[n].as_bytes(), near);
    };
    for (n, key) in keys.into_iter().enumerate() {
        assert!(granted(ask(&table, &a, key, Exclusive)));
        join(n);
    }
    assert_eq!(a.explicit_locks(), 2, "the others are in a run");
    table.lock_range(&c, T, RangeKind::Shared, Span { lower: b"d".to_vec(), upper: Some(b"e".to_vec()) });
    let Answer::Queued(waiter) = table.acquire(&b, T, b"d", Exclusive, Some(a.id), true) else { panic!("a has changed d") };
    table.abandon(&waiter);
    assert_eq!((a.explicit_locks(), table.stats().explicit_keys), (3, 5));
    // The change is undone, and the row locked once more.
    assert!(granted(ask(&table, &a, "d", Exclusive)));
    join(3);
    assert_eq!((a.explicit_locks(), table.stats().explicit_keys), (2, 5));
    for key in keys {
        assert!(matches!(table.acquire(&b, T, key.as_bytes(), Shared, None, false), Answer::Blocked), "{key}");
    }
    [a, b, c].iter().for_each(|owner| table.release(owner));
    assert_eq!(table.stats().explicit_keys, 0);
}

#[test]
fn a_wait_times_out() {
    let table = table();
    let (a, b) = (owner(&table, 1), owner(&table, 2));
    assert!(granted(ask(&table, &a, "k", Exclusive)));
    assert_eq!(queue(&table, &b, "k", Shared, Duration::from_millis(20)).wait(), Err(LockError::Timeout));
    table.release(&a);
    assert!(granted(ask(&table, &b, "k", Shared)));
    table.stop();
}

#[test]
fn an_interrupt_ends_a_wait_before_and_after_it_began() {
    let table = table();
    let (a, b) = (owner(&table, 1), owner(&table, 2));
    assert!(granted(ask(&table, &a, "k", Exclusive)));
    let interrupt = Interrupt::new();
    let Answer::Queued(waiter) = ask(&table, &b, "k", Shared) else { panic!() };
    let wait = LockWait::start(&table, waiter, LONG, Some(&interrupt));
    interrupt.raise();
    assert_eq!(wait.wait(), Err(LockError::Interrupted));
    let Answer::Queued(waiter) = ask(&table, &b, "k", Shared) else { panic!() };
    assert_eq!(LockWait::start(&table, waiter, LONG, Some(&interrupt)).wait(), Err(LockError::Interrupted));
}

#[test]
fn the_one_with_the_least_work_is_the_victim() {
    for victim in [1, 2] {
        let table = table();
        let (a, b) = (owner(&table, 1), owner(&table, 2));
        (if victim == 1 { &b } else { &a }).add_work(10);
        assert!(granted(ask(&table, &a, "x", Exclusive)) && granted(ask(&table, &b, "y", Exclusive)));
        let a_waits = queue(&table, &a, "y", Exclusive, LONG);
        let b_waits = queue(&table, &b, "x", Shared, LONG);
        let (loser, winner, loser_owner) = if victim == 1 { (a_waits, b_waits, &a) } else { (b_waits, a_waits, &b) };
        assert_eq!(loser.wait(), Err(LockError::Deadlock));
        assert_eq!(winner.waiter_outcome(), None);
        table.release(loser_owner);
        assert_eq!(winner.wait(), Ok(()));
        assert_eq!(table.stats().deadlocks, 1);
    }
}

#[test]
fn two_holders_that_both_want_more_are_a_deadlock() {
    let table = table();
    let (a, b) = (owner(&table, 1), owner(&table, 2));
    assert!(granted(ask(&table, &a, "k", Shared)) && granted(ask(&table, &b, "k", Shared)));
    let a_waits = queue(&table, &a, "k", Exclusive, LONG);
    let b_waits = queue(&table, &b, "k", Exclusive, LONG);
    // Equal work: who has closed the cycle goes.
    assert_eq!(b_waits.wait(), Err(LockError::Deadlock));
    table.release(&b);
    assert_eq!(a_waits.wait(), Ok(()));
}

#[test]
fn the_older_goes_if_it_closes_the_cycle() {
    let table = table();
    let (a, b) = (owner(&table, 1), owner(&table, 2));
    assert!(granted(ask(&table, &a, "x", Exclusive)) && granted(ask(&table, &b, "y", Exclusive)));
    let b_waits = queue(&table, &b, "x", Exclusive, LONG);
    let a_waits = queue(&table, &a, "y", Exclusive, LONG);
    assert_eq!(a_waits.wait(), Err(LockError::Deadlock));
    table.release(&a);
    assert_eq!(b_waits.wait(), Ok(()));
}

#[test]
fn a_long_cycle_is_found() {
    let table = table();
    let owners: Vec<_> = (1..=20).map(|id| owner(&table, id)).collect();
    for (n, o) in owners.iter().enumerate() {
        assert!(granted(ask(&table, o, &n.to_string(), Exclusive)));
    }
    let waits: Vec<_> =
        (0..20).map(|n| queue(&table, &owners[n], &((n + 1) % 20).to_string(), Exclusive, LONG)).collect();
    let deadlocked = waits.iter().filter(|w| w.waiter_outcome() == Some(Err(LockError::Deadlock))).count();
    assert_eq!(deadlocked, 1);
}

/// A search that meets a transaction just as it gets its lock must not take those behind it for those before it.
#[test]
fn who_got_the_lock_waits_for_nobody() {
    let table = table();
    let (a, b, c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    assert!(granted(ask(&table, &a, "k", Exclusive)));
    let Answer::Queued(b_waits) = ask(&table, &b, "k", Exclusive) else { panic!("a holds the key") };
    let Answer::Queued(c_waits) = ask(&table, &c, "k", Exclusive) else { panic!("a holds the key") };
    let ids = |waiter| table.blockers(waiter).iter().map(|o| o.id.0).collect::<Vec<_>>();
    assert_eq!((ids(&b_waits), ids(&c_waits)), (vec![1], vec![1, 2]));
    table.release(&a);
    assert_eq!((ids(&b_waits), ids(&c_waits)), (vec![], vec![2]));
}

#[test]
fn threads_take_turns() {
    let table = table();
    let inside = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let threads: Vec<_> = (0..4u64)
        .map(|n| {
            let (table, inside) = (table.clone(), inside.clone());
            thread::spawn(move || {
                for round in 0..500 {
                    let me = owner(&table, 1 + n * 1000 + round);
                    if let Answer::Queued(waiter) = ask(&table, &me, "k", Exclusive) {
                        LockWait::start(&table, waiter, LONG, None).wait().unwrap();
                    }
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    table.release(&me);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(table.stats().explicit_keys, 0);
    table.stop();
}
