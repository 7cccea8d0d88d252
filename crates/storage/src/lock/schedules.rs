//! Range locks and runs under shuttle's schedules: of two that meet, one sees the other.
//! `cargo test -p highkey-storage --features shuttle lock::schedules`.

use super::*;
use crate::disk::SimClock;
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, AtomicUsize, Ordering, thread};
use crate::txn::LockMode;

const T: IndexId = IndexId(3);
const SCHEDULES: usize = 2000;

fn table() -> Arc<LockTable> {
    LockTable::new(Arc::new(SimClock::default()), true)
}

fn owner(table: &LockTable, id: u64) -> Arc<Owner> {
    let owner = Arc::new(Owner::new(TxnId(id), 0));
    table.owners.insert(owner.clone());
    owner
}

fn span(lower: &str, upper: &str) -> Span {
    Span { lower: lower.into(), upper: Some(upper.into()) }
}

/// Both under a shared latch: who shares a range and who locks a row of it exclusively.
#[test]
fn a_shared_range_and_an_exclusive_lock_do_not_miss_each_other() {
    let run = || {
        let table = table();
        let inside = Arc::new(AtomicUsize::new(0));
        let (sharer, locker) = (owner(&table, 1), owner(&table, 2));
        let share = {
            let (table, inside) = (table.clone(), inside.clone());
            thread::spawn(move || {
                table.lock_range(&sharer, T, RangeKind::Shared, span("a", "z"));
                if !table.is_wanted_exclusively(sharer.id, T, b"k") {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "both have the row");
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
                table.release(&sharer);
            })
        };
        if let Answer::Granted { .. } = table.acquire(&locker, T, b"k", LockMode::Exclusive, None, false) {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "both have the row");
            inside.fetch_sub(1, Ordering::SeqCst);
        }
        table.release(&locker);
        share.join().unwrap();
        assert_eq!((table.stats().explicit_keys, table.stats().ranges), (0, 0));
    };
    shuttle::check_random(run, SCHEDULES);
}

/// An owner with so many locks that what it locks from now on goes into runs.
fn owner_with_a_run(table: &LockTable, id: u64) -> Arc<Owner> {
    let owner = owner(table, id);
    for key in [b"a", b"b", b"c"] {
        assert!(matches!(table.acquire(&owner, T, key, LockMode::Exclusive, None, false), Answer::Granted { new: true }));
        table.join_run(&owner, T, key, Neighbours::default);
    }
    owner
}

/// As above, of a lock that goes into a run at once.
#[test]
fn a_shared_range_and_a_lock_in_a_run_do_not_miss_each_other() {
    let run = || {
        let table = table();
        let inside = Arc::new(AtomicUsize::new(0));
        let (sharer, locker) = (owner(&table, 1), owner_with_a_run(&table, 2));
        let share = {
            let (table, inside) = (table.clone(), inside.clone());
            thread::spawn(move || {
                table.lock_range(&sharer, T, RangeKind::Shared, span("d", "z"));
                if !table.any_key() || !table.is_wanted_exclusively(sharer.id, T, b"k") {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "both have the row");
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
                table.release(&sharer);
            })
        };
        if table.lock_in_run(&locker, T, b"k", LockMode::Exclusive, Neighbours::default) == Some(true) {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "both have the row");
            inside.fetch_sub(1, Ordering::SeqCst);
        }
        table.release(&locker);
        share.join().unwrap();
        assert_eq!((table.stats().explicit_keys, table.stats().ranges), (0, 0));
    };
    shuttle::check_random(run, SCHEDULES);
}

/// A row of a run is given back, or its holder ends, while another asks for it: who waits is woken, and one at a time has it.
#[test]
fn a_row_leaves_a_run_once() {
    for ends in [false, true] {
        let run = move || {
            let table = table();
            let inside = Arc::new(AtomicUsize::new(1));
            let (holder, other) = (owner_with_a_run(&table, 1), owner(&table, 2));
            let leave = {
                let (table, inside) = (table.clone(), inside.clone());
                thread::spawn(move || {
                    inside.fetch_sub(1, Ordering::SeqCst);
                    if !ends {
                        table.release_row(&holder, T, b"c");
                    }
                    table.release(&holder);
                })
            };
            match table.acquire(&other, T, b"c", LockMode::Exclusive, None, true) {
                Answer::Granted { new: true } => {}
                Answer::Queued(waiter) => assert_eq!(waiter.block(), Ok(())),
                _ => panic!("granted at once or later"),
            }
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "both have the row");
            table.release(&other);
            leave.join().unwrap();
            assert_eq!(table.stats().explicit_keys, 0);
        };
        shuttle::check_random(run, SCHEDULES);
    }
}

/// No wake-up is lost, whichever of the holders goes first and however a scan gives back what it did not read.
#[test]
fn an_inserter_goes_on_when_the_last_gap_over_its_key_goes() {
    let run = || {
        let table = table();
        let (a, b, inserter) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
        table.lock_range(&a, T, RangeKind::Gap(LockMode::Exclusive), span("a", "z"));
        let number = table.open_range(&b, T, RangeKind::Gap(LockMode::Exclusive), span("a", "z"));
        let first = {
            let table = table.clone();
            thread::spawn(move || table.release(&a))
        };
        let second = {
            let table = table.clone();
            thread::spawn(move || {
                table.close_range(b.id, T, number, Some(span("a", "c")));
                table.release(&b);
            })
        };
        while let Some(waiter) = table.wait_for_range(&inserter, T, Wants::Insert, b"k") {
            assert_eq!(waiter.block(), Ok(()));
        }
        first.join().unwrap();
        second.join().unwrap();
        table.release(&inserter);
        assert_eq!(table.stats().ranges, 0);
    };
    shuttle::check_random(run, SCHEDULES);
}
