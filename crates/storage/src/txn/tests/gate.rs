//! The commit gate: what it holds back, in which order it lets go, and what goes past it.

use super::*;
use crate::ids::Lsn;
use crate::sync::Arc;
use Isolation::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A gated transaction that has put a row, committed: its wait.
fn gated(engine: &Engine, t: IndexId, key: &str) -> CommitWait {
    let mut txn = engine.begin(RepeatableRead);
    put(&mut txn, t, key, "1");
    txn.wait_for_gate();
    txn.commit(b"events").unwrap()
}

fn poll(wait: &mut CommitWait, woken: &Arc<Woken>) -> Poll<crate::Result<()>> {
    let waker = Waker::from(woken.clone());
    std::pin::Pin::new(wait).poll(&mut Context::from_waker(&waker))
}

fn closed(engine: &Engine) {
    engine.set_commit_gate(Some(Lsn(engine.log_position().0.0 - 1)));
}

#[test]
fn what_is_behind_the_gate_is_durable_and_not_seen() {
    let (engine, t) = engine();
    closed(&engine);
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let mut first = gated(&engine, t, "a");
    let mut second = gated(&engine, t, "b");
    assert!(poll(&mut first, &woken).is_pending() && poll(&mut second, &woken).is_pending());
    assert!(first.is_held() && engine.log_position().1 > first.lsn().unwrap());
    assert_eq!(committed(&engine, t), rows(&[]));
    // What does not ask for the gate comes behind what does.
    let mut other = engine.begin(RepeatableRead);
    put(&mut other, t, "c", "1");
    let mut third = other.commit(&[]).unwrap();
    assert!(poll(&mut third, &woken).is_pending());
    assert!(!woken.0.load(Ordering::SeqCst));
    engine.set_commit_gate(first.lsn());
    assert!(woken.0.swap(false, Ordering::SeqCst));
    assert!(poll(&mut first, &woken).is_ready() && poll(&mut second, &woken).is_pending());
    assert_eq!(committed(&engine, t), rows(&[("a", "1")]));
    engine.set_commit_gate(None);
    assert!(poll(&mut second, &woken).is_ready() && poll(&mut third, &woken).is_ready());
    assert_eq!(committed(&engine, t), rows(&[("a", "1"), ("b", "1"), ("c", "1")]));
    assert_eq!(engine.stats().locked_keys, 0);
}

#[test]
fn without_something_gated_before_it_nothing_waits() {
    let (engine, t) = engine();
    closed(&engine);
    let mut txn = engine.begin(RepeatableRead);
    put(&mut txn, t, "a", "1");
    commit(txn);
    assert_eq!(committed(&engine, t), rows(&[("a", "1")]));
}

#[test]
fn what_goes_aside_frees_its_locks_and_is_seen_in_its_turn() {
    let (engine, t) = engine();
    given(&engine, t, &[("n", "0")]);
    closed(&engine);
    let mut first = gated(&engine, t, "a");
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    assert!(poll(&mut first, &woken).is_pending());
    for n in ["1", "2", "3"] {
        let mut txn = engine.begin(ReadCommitted);
        assert!(done(txn.update(t, b"n", n.as_bytes())));
        txn.commit_aside().unwrap().wait_aside().unwrap();
        // The latest version is there, snapshots are as they were.
        let mut reader = engine.begin(ReadCommitted);
        assert_eq!(latest(&mut reader, t, "n").as_deref(), Some(n));
        assert_eq!(committed(&engine, t), rows(&[("n", "0")]));
    }
    let mut old = engine.begin(RepeatableRead);
    let snapshot = old.snapshot();
    engine.set_commit_gate(None);
    assert!(poll(&mut first, &woken).is_ready());
    assert_eq!(committed(&engine, t), rows(&[("a", "1"), ("n", "3")]));
    // Who had begun to read sees none of it.
    let mut value = Vec::new();
    assert!(snapshot.get(t, b"n", &mut value).unwrap());
    assert_eq!(value, b"0");
    drop((snapshot, old));
    // Without a gate it is a commit like any other.
    let mut txn = engine.begin(ReadCommitted);
    assert!(done(txn.update(t, b"n", b"4")));
    txn.commit_aside().unwrap().wait_aside().unwrap();
    assert_eq!(committed(&engine, t), rows(&[("a", "1"), ("n", "4")]));
}

#[test]
fn a_wait_that_is_left_is_ended_by_the_publication() {
    let (engine, t) = engine();
    closed(&engine);
    let left = gated(&engine, t, "a");
    let done = Arc::new(Woken(AtomicBool::new(false)));
    let told = done.clone();
    left.leave(Box::new(move || told.0.store(true, Ordering::SeqCst)));
    engine.flush_log().unwrap();
    let blocked = {
        let wait = gated(&engine, t, "b");
        std::thread::spawn(move || wait.wait())
    };
    std::thread::sleep(Duration::from_millis(100));
    assert!(!done.0.load(Ordering::SeqCst) && !blocked.is_finished());
    engine.set_commit_gate(None);
    blocked.join().unwrap().unwrap();
    assert!(done.0.load(Ordering::SeqCst));
    assert_eq!(committed(&engine, t), rows(&[("a", "1"), ("b", "1")]));
}

#[test]
fn the_engines_end_opens_it() {
    let (engine, t) = engine();
    closed(&engine);
    let mut wait = gated(&engine, t, "a");
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    assert!(poll(&mut wait, &woken).is_pending());
    engine.shutdown().unwrap();
    assert!(poll(&mut wait, &woken).is_ready());
}
