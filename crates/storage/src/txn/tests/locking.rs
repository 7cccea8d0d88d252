//! Row locks as transactions meet them.

use super::*;
use crate::{Interrupt, LockError};
use Isolation::*;

fn lock(txn: &mut Txn, t: IndexId, key: &str, mode: LockMode) -> Option<String> {
    match done(txn.lock(t, key.as_bytes(), mode, LockWaitPolicy::Wait)) {
        Locked::Yes(value) => value.map(|v| String::from_utf8(v).unwrap()),
        Locked::WouldBlock => panic!("waits if it must"),
    }
}

#[test]
fn a_writer_waits_for_a_writer_and_then_sees_its_row() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let mut first = engine.begin(RepeatableRead);
    put(&mut first, t, "a", "2");
    let mut second = engine.begin(RepeatableRead);
    let waiting = wait(second.update(t, b"a", b"3"));
    let thread = std::thread::spawn(move || waiting.wait());
    commit(first);
    assert_eq!(thread.join().unwrap(), Ok(()));
    assert_eq!(latest(&mut second, t, "a").as_deref(), Some("2"));
    assert!(done(second.update(t, b"a", b"3")));
    commit(second);
    assert_eq!(committed(&engine, t), rows(&[("a", "3")]));
    assert_eq!(engine.stats().locked_keys, 0);
}

#[test]
fn an_inserter_waits_for_an_uncommitted_delete() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let mut first = engine.begin(RepeatableRead);
    assert!(done(first.delete(t, b"a")));
    let mut second = engine.begin(RepeatableRead);
    let waiting = wait(second.insert(t, b"a", b"2"));
    first.rollback().unwrap();
    assert_eq!(waiting.wait(), Ok(()));
    assert_eq!(done(second.insert(t, b"a", b"2")), Inserted::Duplicate);
}

/// The lock that others wait for is kept when the deleter looks for the row once more.
#[test]
fn what_a_transaction_has_deleted_it_keeps_locked() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    for level in [ReadCommitted, RepeatableRead] {
        let (mut first, mut second, mut third) = (engine.begin(level), engine.begin(level), engine.begin(level));
        assert!(done(first.delete(t, b"a")));
        let updating = wait(second.update(t, b"a", b"2"));
        let inserting = wait(third.insert(t, b"a", b"3"));
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            assert_eq!(lock(&mut first, t, "a", mode), None);
        }
        assert!(!done(first.delete(t, b"a")));
        assert_eq!(engine.locks(usize::MAX).unwrap().locks.iter().filter(|lock| lock.wait.is_some()).count(), 2);
        first.rollback().unwrap();
        assert_eq!(updating.wait(), Ok(()));
        assert!(done(second.update(t, b"a", b"2")));
        second.rollback().unwrap();
        assert_eq!(inserting.wait(), Ok(()));
        assert_eq!(done(third.insert(t, b"a", b"3")), Inserted::Duplicate);
    }
    assert_eq!(engine.stats().locked_keys, 0);
}

/// A batch ends before a row that somebody has locked, and gives up its place in the queue: nobody has waited as yet.
#[test]
fn only_waits_that_begin_are_counted() {
    let (engine, t) = engine();
    let mut holder = engine.begin(RepeatableRead);
    put(&mut holder, t, "b", "1");
    let mut txn = engine.begin(RepeatableRead);
    let rows = SortedRows::from_unsorted(["a", "b"].map(|key| (key.into(), b"2".to_vec())).into());
    let counted = || (engine.stats().row_lock_waits, engine.stats().row_lock_current_waits);
    assert_eq!(done(txn.insert_batch(t, &rows, 0)).inserted, 1);
    assert_eq!(counted(), (0, 0));
    let waiting = wait(txn.insert_batch(t, &rows, 1));
    assert_eq!(counted(), (1, 1));
    drop(waiting);
    assert_eq!(counted(), (1, 0));
}

/// A long value is written before its row is found to be locked; taking it back fails.
#[test]
fn who_fails_to_take_a_value_back_waits_for_no_row() {
    let disk = disk(2);
    let engine = open_with(&disk, Options { log_buffer_bytes: 64 << 10, ..options() }).unwrap();
    let t = new_index(&engine);
    let mut holder = engine.begin(RepeatableRead);
    put(&mut holder, t, "k", "1");
    let mut txn = engine.begin(RepeatableRead);
    // Of several records only the last is in memory still.
    disk.fail_read_in(Some(1));
    assert!(txn.insert(t, b"k", &[7; 1_000_000]).is_err());
    assert!(!disk.fail_read_in(None), "a read has failed");
    assert!(engine.locks(usize::MAX).unwrap().locks.iter().all(|lock| lock.wait.is_none()));
    txn.rollback().unwrap();
    commit(holder);
    assert_eq!(committed(&engine, t), rows(&[("k", "1")]));
}

#[test]
fn deadlock() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1"), ("b", "1")]);
    let (mut x, mut y) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    put(&mut x, t, "a", "x");
    put(&mut x, t, "z", "x");
    put(&mut y, t, "b", "y");
    let x_waits = wait(x.update(t, b"b", b"x"));
    let y_waits = wait(y.update(t, b"a", b"y"));
    // y has done less.
    assert_eq!(y_waits.wait(), Err(LockError::Deadlock));
    y.rollback().unwrap();
    assert_eq!(x_waits.wait(), Ok(()));
    assert!(done(x.update(t, b"b", b"x")));
    commit(x);
    assert_eq!(committed(&engine, t), rows(&[("a", "x"), ("b", "x"), ("z", "x")]));
    assert_eq!(engine.stats().deadlocks, 1);
}

#[test]
fn without_detection_a_deadlock_is_a_timeout() {
    let (engine, t) = engine();
    engine.set_deadlock_detect(false);
    let (mut x, mut y) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    put(&mut x, t, "a", "x");
    put(&mut y, t, "b", "y");
    y.set_lock_wait_timeout(Duration::from_millis(30));
    let x_waits = wait(x.insert(t, b"b", b"x"));
    assert_eq!(wait(y.insert(t, b"a", b"y")).wait(), Err(LockError::Timeout));
    // After a timeout the transaction goes on.
    put(&mut y, t, "c", "y");
    commit(y);
    assert_eq!(x_waits.wait(), Ok(()));
    assert_eq!(engine.stats().lock_timeouts, 1);
}

#[test]
fn a_raised_interrupt_ends_the_wait() {
    let (engine, t) = engine();
    let (mut x, mut y) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    put(&mut x, t, "a", "x");
    let interrupt = Arc::new(Interrupt::new());
    y.set_interrupt(interrupt.clone());
    let waiting = wait(y.insert(t, b"a", b"y"));
    let thread = std::thread::spawn(move || waiting.wait());
    interrupt.raise();
    assert_eq!(thread.join().unwrap(), Err(LockError::Interrupted));
}

#[test]
fn nowait_and_skip_locked() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut holder = engine.begin(RepeatableRead);
    put(&mut holder, t, "a", "2");
    assert_eq!(lock(&mut holder, t, "b", LockMode::Exclusive).as_deref(), Some("1"));
    let mut other = engine.begin(RepeatableRead);
    for policy in [LockWaitPolicy::NoWait, LockWaitPolicy::SkipLocked] {
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let mut found = Vec::new();
            for key in [b"a", b"b", b"c"] {
                found.push(done(other.lock(t, key, mode, policy)));
            }
            assert_eq!(found, [Locked::WouldBlock, Locked::WouldBlock, Locked::Yes(Some(b"1".to_vec()))]);
        }
    }
}

#[test]
fn shared_locks_keep_writers_out() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let (mut x, mut y, mut z) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    assert_eq!(lock(&mut x, t, "a", LockMode::Shared).as_deref(), Some("1"));
    assert_eq!(lock(&mut y, t, "a", LockMode::Shared).as_deref(), Some("1"));
    let z_waits = wait(z.delete(t, b"a"));
    commit(x);
    drop(y);
    assert_eq!(z_waits.wait(), Ok(()));
    assert!(done(z.delete(t, b"a")));
    commit(z);
}

#[test]
fn a_locked_absent_key_keeps_inserters_out() {
    let (engine, t) = engine();
    let (mut x, mut y) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    assert_eq!(lock(&mut x, t, "a", LockMode::Exclusive), None);
    let waiting = wait(y.insert(t, b"a", b"y"));
    assert_eq!(done(x.insert(t, b"a", b"x")), Inserted::Yes);
    commit(x);
    assert_eq!(waiting.wait(), Ok(()));
    assert_eq!(done(y.insert(t, b"a", b"y")), Inserted::Duplicate);
}

#[test]
fn candidates_of_a_locking_scan_include_what_others_have_in_hand() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1"), ("b", "1"), ("c", "1"), ("gone", "1")]);
    let mut deleter = engine.begin(RepeatableRead);
    assert!(done(deleter.delete(t, b"gone")));
    commit(deleter);
    let mut writer = engine.begin(RepeatableRead);
    put(&mut writer, t, "a", "2");
    assert!(done(writer.delete(t, b"b")));
    put(&mut writer, t, "d", "2");
    let mut scanner = engine.begin(RepeatableRead);
    assert!(done(scanner.delete(t, b"c")));
    let found = drain(scanner.scan_latest(t, Bounds::all(), Direction::Forward, LockMode::Exclusive, None));
    let found: Vec<_> = found.iter().map(|(k, v)| (k.as_slice(), v.as_slice())).collect();
    assert_eq!(found, [(&b"a"[..], &b"1"[..]), (b"b", b"1"), (b"d", b"")]);
}

#[test]
fn locks_survive_splits_and_a_savepoint() {
    let (engine, t) = engine();
    given(&engine, t, &[("k05000", "1")]);
    let mut holder = engine.begin(RepeatableRead);
    lock(&mut holder, t, "k05000", LockMode::Exclusive);
    let savepoint = holder.savepoint();
    put(&mut holder, t, "k05000", "2");
    let mut filler = engine.begin(RepeatableRead);
    for n in 0..3000 {
        if n != 1500 {
            put(&mut filler, t, &format!("k{:05}", n * 10 / 3), &"x".repeat(50));
        }
    }
    commit(filler);
    holder.rollback_to(&savepoint).unwrap();
    let mut other = engine.begin(RepeatableRead);
    let waiting = wait(other.update(t, b"k05000", b"3"));
    drop(holder);
    assert_eq!(waiting.wait(), Ok(()));
}

#[test]
fn a_dropped_transaction_is_rolled_back() {
    let (engine, t) = engine();
    {
        let mut txn = engine.begin(RepeatableRead);
        put(&mut txn, t, "a", "1");
    }
    assert_eq!(committed(&engine, t), rows(&[]));
    let stats = engine.stats();
    assert_eq!((stats.open_transactions, stats.rollbacks), (0, 1));
}

#[test]
fn an_abandoned_commit_is_published_in_the_background() {
    let (engine, t) = engine();
    let mut txn = engine.begin(RepeatableRead);
    put(&mut txn, t, "a", "1");
    drop(txn.commit(b"").unwrap());
    let mut next = engine.begin(RepeatableRead);
    let waiting = wait(next.update(t, b"a", b"2"));
    engine.background_step().unwrap();
    std::thread::sleep(Duration::from_millis(60));
    engine.background_step().unwrap();
    assert_eq!(waiting.wait(), Ok(()));
    assert_eq!(committed(&engine, t), rows(&[("a", "1")]));
}

#[test]
fn a_lock_is_given_back_if_it_was_just_taken_and_not_waited_for() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut first = engine.begin(ReadCommitted);
    let mut other = engine.begin(ReadCommitted);
    let is_free = |other: &mut Txn, key: &str| done(other.lock(t, key.as_bytes(), LockMode::Exclusive, LockWaitPolicy::NoWait)) != Locked::WouldBlock;

    lock(&mut first, t, "a", LockMode::Exclusive);
    first.unlock(t, b"a");
    assert!(is_free(&mut other, "a"));
    other.unlock(t, b"a");

    // What it had before, be it shared, and another row than the last.
    lock(&mut first, t, "a", LockMode::Shared);
    lock(&mut first, t, "a", LockMode::Exclusive);
    first.unlock(t, b"a");
    lock(&mut first, t, "b", LockMode::Exclusive);
    first.unlock(t, b"a");
    assert!(!is_free(&mut other, "a") && !is_free(&mut other, "b"));
    // A row of its own is not locked by an entry, and stays.
    put(&mut first, t, "c", "2");
    lock(&mut first, t, "c", LockMode::Exclusive);
    first.unlock(t, b"c");
    assert!(!is_free(&mut other, "c"));

    let waiting = wait(other.lock(t, b"b", LockMode::Exclusive, LockWaitPolicy::Wait));
    let thread = std::thread::spawn(move || waiting.wait());
    commit(first);
    assert_eq!(thread.join().unwrap(), Ok(()));
    lock(&mut other, t, "b", LockMode::Exclusive);
    other.unlock(t, b"b");
    let mut third = engine.begin(ReadCommitted);
    assert!(!is_free(&mut third, "b"), "waited for");
    commit(other);
    assert_eq!(engine.stats().locked_keys, 0);
}

#[test]
fn a_lock_given_back_wakes_who_waits_for_it() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let mut first = engine.begin(ReadCommitted);
    lock(&mut first, t, "a", LockMode::Exclusive);
    let mut second = engine.begin(ReadCommitted);
    let waiting = wait(second.update(t, b"a", b"2"));
    first.unlock(t, b"a");
    assert_eq!(waiting.wait(), Ok(()));
    assert!(done(second.update(t, b"a", b"2")));
    commit(second);
    commit(first);
    assert_eq!(committed(&engine, t), rows(&[("a", "2")]));
}

/// Long values of one leaf are not all fetched at once, and none is left out or given twice.
#[test]
fn a_leaf_of_very_long_values_is_read_in_steps() {
    let (engine, t) = engine();
    let mut txn = engine.begin(RepeatableRead);
    for n in 0..6u8 {
        assert_eq!(done(txn.insert(t, &[n], &vec![n; if n % 2 == 0 { 20 << 20 } else { 10 }])), Inserted::Yes);
    }
    let first = |direction, locking| {
        let mut txn = engine.begin(RepeatableRead);
        let mut scan = match locking {
            true => txn.scan_latest(t, Bounds::all(), direction, LockMode::Exclusive, None),
            false => txn.scan(t, Bounds::all(), direction),
        };
        let (mut leaf, mut steps) = (LeafRows::new(), Vec::new());
        while scan.next_leaf(&mut leaf).unwrap() {
            steps.push((0..leaf.len()).map(|n| (leaf.key(n)[0], leaf.value(n).len(), leaf.value(n)[0])).collect::<Vec<_>>());
        }
        steps
    };
    commit(txn);
    for locking in [false, true] {
        for direction in [Direction::Forward, Direction::Backward] {
            let steps = first(direction, locking);
            assert!(steps.len() > 1 && steps.iter().all(|rows| rows.iter().map(|row| row.1).sum::<usize>() < 60 << 20));
            let mut rows = steps.concat();
            if direction == Direction::Backward {
                rows.reverse();
            }
            let expected: Vec<_> = (0..6u8).map(|n| (n, if n % 2 == 0 { 20 << 20 } else { 10 }, n)).collect();
            assert_eq!(rows, expected);
        }
    }
}

/// A number is locked beside rows, and given back before the transaction ends.
#[test]
fn a_circle_through_a_row_and_a_number_is_a_deadlock() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let (mut first, mut second) = (engine.begin(RepeatableRead), engine.begin(RepeatableRead));
    let of_first = first.number_lock(7);
    done(Ok(of_first.take(&first)));
    assert!(engine.is_number_locked(7) && !engine.is_number_locked(8));
    assert!(done(second.update(t, b"a", b"2")));
    let of_second = second.number_lock(7);
    let waiting = wait(Ok(of_second.take(&second)));
    // It has changed nothing, the other one a row.
    assert_eq!(wait(first.update(t, b"a", b"3")).wait(), Err(LockError::Deadlock));
    drop(of_first);
    assert_eq!(waiting.wait(), Ok(()));
    done(Ok(of_second.take(&second)));
    drop(of_second);
    assert!(!engine.is_number_locked(7));
    let left = second.number_lock(8);
    done(Ok(left.take(&second)));
    commit(second);
    assert!(!engine.is_number_locked(8), "the transaction's end gives it back");
    drop(left);
    first.rollback().unwrap();
}

fn number(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// An index with the rows of even numbers below `end`.
fn even_rows(engine: &Engine, end: u32) -> IndexId {
    let t = new_index(engine);
    let mut rows = SortedRows::new();
    (0..end).step_by(2).for_each(|n| rows.push(&number(n), b"value"));
    let mut txn = engine.begin(RepeatableRead);
    assert_eq!(done(txn.insert_batch(t, &rows, 0)).inserted, end as usize / 2);
    commit(txn);
    t
}

fn lock_rows(txn: &mut Txn, t: IndexId, rows: impl Iterator<Item = u32>, mode: LockMode) {
    for n in rows {
        assert!(matches!(done(txn.lock(t, &number(n), mode, LockWaitPolicy::Wait)), Locked::Yes(Some(_))));
    }
}

fn is_locked(txn: &mut Txn, t: IndexId, n: u32) -> bool {
    let locked = done(txn.lock(t, &number(n), LockMode::Exclusive, LockWaitPolicy::NoWait)) == Locked::WouldBlock;
    txn.unlock(t, &number(n));
    locked
}

/// Rows of which there is a report that the transaction has locked them exclusively.
fn reported(engine: &Engine, txn: &Txn) -> Vec<u32> {
    let held = engine.locks(usize::MAX).unwrap().locks.into_iter().filter(|lock| Some(lock.txn) == txn.id() && lock.wait.is_none());
    held.filter(|lock| lock.mode == LockMode::Exclusive).map(|lock| u32::from_be_bytes(lock.key.unwrap().try_into().unwrap())).collect()
}

#[test]
fn locks_on_rows_in_order_take_few_bytes() {
    const ROWS: usize = 200_000;
    let engine = open_with(&disk(1), Options { buffer_pool_bytes: 64 << 20, redo_log_capacity: 256 << 20, ..options() }).unwrap();
    let t = even_rows(&engine, 2 * ROWS as u32);
    for backward in [false, true] {
        let mut txn = engine.begin(ReadCommitted);
        let row = |n: usize| 2 * if backward { ROWS - 1 - n } else { n } as u32;
        lock_rows(&mut txn, t, (0..ROWS).map(row), LockMode::Exclusive);
        let size = engine.txn_size(txn.id().unwrap()).unwrap();
        assert_eq!((size.locked_keys, engine.stats().locked_keys), (ROWS, ROWS as u64));
        assert!(size.lock_bytes < ROWS, "{} bytes for {ROWS} rows", size.lock_bytes);
        commit(txn);
        assert_eq!(engine.stats().locked_keys, 0);
    }
}

/// What the others meet does not depend on how many locks the holder has.
#[test]
fn each_row_of_a_run_is_locked_by_itself() {
    let (engine, _) = engine();
    let t = even_rows(&engine, 2000);
    let (mut first, mut other) = (engine.begin(ReadCommitted), engine.begin(ReadCommitted));
    let kept = |n: &u32| !n.is_multiple_of(10);
    for n in (0..1000).step_by(2) {
        lock_rows(&mut first, t, [n].into_iter(), LockMode::Exclusive);
        if !kept(&n) {
            first.unlock(t, &number(n));
        }
    }
    let locked: Vec<u32> = (0..1000).step_by(2).filter(kept).collect();
    assert_eq!(reported(&engine, &first), locked);
    for n in (0..2000).step_by(2) {
        assert_eq!(is_locked(&mut other, t, n), locked.contains(&n), "row {n}");
    }
    // A missing key has no lock, and a row that comes to be in between has none either.
    assert_eq!(done(first.lock(t, &number(501), LockMode::Exclusive, LockWaitPolicy::Wait)), Locked::Yes(None));
    assert_eq!(done(other.insert(t, &number(503), b"new")), Inserted::Yes);
    let mut third = engine.begin(ReadCommitted);
    assert!(is_locked(&mut third, t, 503), "by who has inserted it");
    commit(other);
    assert!(!is_locked(&mut third, t, 503) && is_locked(&mut third, t, 502) && is_locked(&mut third, t, 504));
    assert_eq!(reported(&engine, &first), locked);
    assert_eq!(engine.txn_size(first.id().unwrap()).unwrap().locked_keys, locked.len());

    let updating = wait(third.update(t, &number(502), b"third"));
    assert_eq!(reported(&engine, &first), locked, "also what somebody waits for");
    assert_eq!(updating_blockers(&engine, &third), [first.id().unwrap()]);
    let (mut x, mut y) = (engine.begin(ReadCommitted), engine.begin(ReadCommitted));
    lock_rows(&mut x, t, (1200..1400).step_by(2), LockMode::Exclusive);
    lock_rows(&mut y, t, (1400..1700).step_by(2), LockMode::Exclusive);
    let x_waits = wait(x.lock(t, &number(1550), LockMode::Shared, LockWaitPolicy::Wait));
    let y_waits = wait(y.delete(t, &number(1300)));
    // The younger of two that have changed nothing.
    assert_eq!(y_waits.wait(), Err(LockError::Deadlock));
    y.rollback().unwrap();
    assert_eq!(x_waits.wait(), Ok(()));
    x.rollback().unwrap();
    commit(first);
    assert_eq!(updating.wait(), Ok(()));
    assert!(done(third.update(t, &number(502), b"third")));
    commit(third);
    assert_eq!(engine.stats().locked_keys, 0);
}

fn updating_blockers(engine: &Engine, txn: &Txn) -> Vec<crate::TxnId> {
    let waits = engine.locks(usize::MAX).unwrap().locks.into_iter().filter(|lock| Some(lock.txn) == txn.id()).filter_map(|lock| lock.wait);
    waits.flat_map(|wait| wait.blockers).collect()
}

#[test]
fn shared_runs_go_together_and_can_become_exclusive() {
    let (engine, _) = engine();
    let t = even_rows(&engine, 1000);
    let (mut a, mut b, mut c) = (engine.begin(ReadCommitted), engine.begin(ReadCommitted), engine.begin(ReadCommitted));
    for txn in [&mut a, &mut b] {
        lock_rows(txn, t, (0..1000).step_by(2), LockMode::Shared);
    }
    let waiting = wait(c.update(t, &number(500), b"c"));
    assert_eq!(updating_blockers(&engine, &c).len(), 2);
    let upgrading = wait(a.lock(t, &number(600), LockMode::Exclusive, LockWaitPolicy::Wait));
    commit(b);
    assert_eq!(upgrading.wait(), Ok(()));
    assert!(reported(&engine, &a).contains(&600));
    lock_rows(&mut a, t, (0..1000).step_by(2).filter(|n| *n != 500), LockMode::Exclusive);
    let size = engine.txn_size(a.id().unwrap()).unwrap();
    assert!(size.locked_keys == 500 && size.lock_bytes < 500, "{size:?}");
    let mut d = engine.begin(ReadCommitted);
    assert!((0..1000).step_by(2).all(|n| is_locked(&mut d, t, n)));
    commit(a);
    assert_eq!(waiting.wait(), Ok(()));
    drop((c, d));
    assert_eq!(engine.stats().locked_keys, 0);
}

#[test]
fn a_savepoint_keeps_the_locks_of_a_run() {
    let (engine, _) = engine();
    let t = even_rows(&engine, 400);
    let mut txn = engine.begin(RepeatableRead);
    let savepoint = txn.savepoint();
    for n in (0..400).step_by(2) {
        lock_rows(&mut txn, t, [n].into_iter(), LockMode::Exclusive);
        assert!(done(txn.delete(t, &number(n))));
    }
    assert_eq!(done(txn.insert(t, &number(101), b"new")), Inserted::Yes);
    txn.rollback_to(&savepoint).unwrap();
    let mut other = engine.begin(ReadCommitted);
    assert!((0..400).step_by(2).all(|n| is_locked(&mut other, t, n)));
    assert_eq!(done(other.insert(t, &number(101), b"other")), Inserted::Yes);
    commit(other);
    commit(txn);
    assert_eq!(engine.stats().locked_keys, 0);
}

/// A row of a shared run is changed, waited for, and the change taken back: what is locked again then is locked exclusively.
#[test]
fn a_row_of_a_shared_run_whose_change_was_undone_can_be_locked_exclusively() {
    let (engine, _) = engine();
    let t = even_rows(&engine, 200);
    let (mut first, mut second, mut third) = (engine.begin(ReadCommitted), engine.begin(ReadCommitted), engine.begin(ReadCommitted));
    lock_rows(&mut first, t, (0..40).step_by(2), LockMode::Shared);
    lock_rows(&mut second, t, (100..140).step_by(2), LockMode::Shared);
    let savepoint = first.savepoint();
    assert!(done(first.update(t, &number(20), b"first")));
    drop(wait(third.lock(t, &number(20), LockMode::Shared, LockWaitPolicy::Wait)));
    first.rollback_to(&savepoint).unwrap();
    lock_rows(&mut first, t, [20].into_iter(), LockMode::Exclusive);
    assert_eq!(reported(&engine, &first), [20]);
    assert_eq!(engine.txn_size(first.id().unwrap()).unwrap().locked_keys, 20);
    assert_eq!(done(second.lock(t, &number(20), LockMode::Shared, LockWaitPolicy::NoWait)), Locked::WouldBlock);
    assert_eq!(done(second.lock(t, &number(22), LockMode::Shared, LockWaitPolicy::NoWait)), Locked::Yes(Some(b"value".to_vec())));
    commit(first);
    drop((second, third));
    assert_eq!(engine.stats().locked_keys, 0);
}
