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
        assert_eq!(engine.locks().unwrap().iter().filter(|lock| lock.wait.is_some()).count(), 2);
        first.rollback().unwrap();
        assert_eq!(updating.wait(), Ok(()));
        assert!(done(second.update(t, b"a", b"2")));
        second.rollback().unwrap();
        assert_eq!(inserting.wait(), Ok(()));
        assert_eq!(done(third.insert(t, b"a", b"3")), Inserted::Duplicate);
    }
    assert_eq!(engine.stats().locked_keys, 0);
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
    assert_eq!(engine.stats().locked_keys, 0);
}
