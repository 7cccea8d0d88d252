//! What purge takes away, and what it must leave.

use super::*;
use Isolation::*;

#[test]
fn a_long_snapshot_holds_only_what_it_must() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "0"), ("b", "0")]);
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(get(&mut reader, t, "a").as_deref(), Some("0"));
    for n in 1..=50 {
        given(&engine, t, &[("a", &n.to_string())]);
    }
    purge_all(&engine);
    assert_eq!(get(&mut reader, t, "a").as_deref(), Some("0"));
    assert!(engine.stats().versions > 0);
    drop(reader);
    purge_all(&engine);
    assert_eq!((engine.stats().versions, engine.stats().history_length), (0, 0));
}

#[test]
fn a_tree_stays_small_under_inserts_and_deletes() {
    let (engine, t) = engine();
    let value = "v".repeat(100);
    for round in 0..20 {
        let mut txn = engine.begin(RepeatableRead);
        for n in 0..200 {
            put(&mut txn, t, &format!("{:06}", round * 200 + n), &value);
        }
        commit(txn);
        let mut txn = engine.begin(RepeatableRead);
        for n in 0..200 {
            assert!(done(txn.delete(t, format!("{:06}", round * 200 + n).as_bytes())));
        }
        commit(txn);
        purge_all(&engine);
    }
    let report = engine.check(t).unwrap();
    assert_eq!(report.records, 0);
    assert!(report.leaf_pages <= 4, "{} leaves for no row", report.leaf_pages);
}

#[test]
fn delete_marks_of_an_earlier_life_go_when_they_are_met() {
    let disk = disk(3);
    let engine = open(&disk);
    let t = new_index(&engine);
    given(&engine, t, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut txn = engine.begin(RepeatableRead);
    assert!(done(txn.delete(t, b"a")) && done(txn.delete(t, b"c")));
    commit(txn);
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(&disk);
    assert_eq!(committed(&engine, t), rows(&[("b", "1")]));
    purge_all(&engine);
    assert_eq!(engine.check(t).unwrap().records, 1);
}

#[test]
fn a_rolled_back_revival_leaves_the_delete_mark_to_purge() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let mut deleter = engine.begin(RepeatableRead);
    assert!(done(deleter.delete(t, b"a")));
    commit(deleter);
    let mut reviver = engine.begin(RepeatableRead);
    assert_eq!(done(reviver.insert(t, b"a", b"2")), Inserted::Yes);
    purge_all(&engine);
    reviver.rollback().unwrap();
    purge_all(&engine);
    assert_eq!(engine.check(t).unwrap().records, 0);
}

#[test]
fn a_dropped_index_goes_once_no_snapshot_needs_it() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1"), ("b", "1")]);
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(get(&mut reader, t, "a").as_deref(), Some("1"));
    let mut dropper = engine.begin(RepeatableRead);
    assert!(done(dropper.delete(t, b"b")));
    dropper.drop_index(t).unwrap();
    commit(dropper);
    purge_all(&engine);
    assert_eq!(all(&mut reader, t), rows(&[("a", "1"), ("b", "1")]));
    drop(reader);
    purge_all(&engine);
    assert!(!engine.index_exists(t));
    // A rolled back drop is none.
    let t = new_index(&engine);
    let mut dropper = engine.begin(RepeatableRead);
    dropper.drop_index(t).unwrap();
    dropper.rollback().unwrap();
    purge_all(&engine);
    assert!(engine.index_exists(t));
}

/// A transaction that leaves as much to purge as one step does, after which the history of `then` is still to be purged.
fn fill_a_step(engine: &Engine, t: IndexId, first: &[&str], then: impl FnOnce()) {
    let others: Vec<String> = (0..3000).map(|n| format!("o{n:05}")).collect();
    given(engine, t, &others.iter().map(|key| (key.as_str(), "1")).collect::<Vec<_>>());
    purge_all(engine);
    let mut txn = engine.begin(RepeatableRead);
    for key in first {
        assert!(done(txn.delete(t, key.as_bytes())));
    }
    for key in &others {
        assert!(done(txn.update(t, key.as_bytes(), b"2")));
    }
    commit(txn);
    then();
    engine.background_step().unwrap();
    assert!(engine.stats().history_length > 0);
}

/// `k` is deleted, and stays so for a snapshot taken now, whatever comes after it.
fn stays_deleted(engine: &Engine, t: IndexId) {
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(get(&mut reader, t, "k"), None);
    given(engine, t, &[("k", "new")]);
    given(engine, t, &[("k", "newer")]);
    assert_eq!(get(&mut reader, t, "k"), None);
    purge_all(engine);
    assert_eq!(get(&mut reader, t, "k"), None);
    drop(reader);
    purge_all(engine);
    assert_eq!((engine.stats().versions, engine.stats().history_length), (0, 0));
}

/// A key that was deleted, revived and deleted, of which purge has come as far as the first deletion.
#[test]
fn a_deleted_row_stays_deleted_while_purge_goes_on() {
    let (engine, t) = engine();
    given(&engine, t, &[("k", "old")]);
    fill_a_step(&engine, t, &["k"], || {
        given(&engine, t, &[("k", "revived")]);
        let mut last = engine.begin(RepeatableRead);
        assert!(done(last.delete(t, b"k")));
        commit(last);
    });
    stays_deleted(&engine, t);
}

/// The same left by a rollback: the record that it restores is a deletion whose history is still to be purged.
#[test]
fn a_deletion_that_a_rollback_restores_waits_for_its_history() {
    let (engine, t) = engine();
    given(&engine, t, &[("k", "old")]);
    fill_a_step(&engine, t, &[], || {
        let mut deleter = engine.begin(RepeatableRead);
        assert!(done(deleter.delete(t, b"k")));
        commit(deleter);
        let mut reviver = engine.begin(RepeatableRead);
        put(&mut reviver, t, "k", "revived");
        reviver.rollback().unwrap();
    });
    stays_deleted(&engine, t);
}

/// A page of a replaced long value, or of the garbage index, cannot be read at first: no page is lost for it.
#[test]
fn a_long_value_that_could_not_be_read_is_freed_later() {
    let disk = disk(5);
    let engine = open_with(&disk, Options { buffer_pool_bytes: 0, ..options() }).unwrap();
    let t = new_index(&engine);
    let mut txn = engine.begin(RepeatableRead);
    for key in ["a", "b", "c"] {
        put(&mut txn, t, key, &key.repeat(600_000));
    }
    put(&mut txn, t, "k", "short");
    commit(txn);
    let before = engine.index_size(t).unwrap().pages_used;
    given(&engine, t, &[("k", &"k".repeat(900_000))]);
    given(&engine, t, &[("k", "short")]);
    // Its pages leave memory.
    engine.store().clean(1000).unwrap();
    for key in ["a", "b", "c"] {
        assert!(latest(&mut engine.begin(RepeatableRead), t, key).is_some());
    }
    for n in 1..20 {
        disk.fail_read_in(Some(n));
        let _ = engine.background_step();
    }
    disk.fail_read_in(None);
    purge_all(&engine);
    assert_eq!((engine.stats().history_length, engine.index_size(t).unwrap().pages_used), (0, before));
}

/// Reports look at indexes that nobody keeps from being dropped.
#[test]
fn a_dropped_index_is_not_found_again_by_who_looked_while_it_went() {
    let (engine, _) = engine();
    let system = engine.system();
    let looked_at = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                match looked_at.load(std::sync::atomic::Ordering::SeqCst) {
                    u32::MAX => return,
                    index => drop(system.tree(IndexId(index))),
                }
            }
        });
        for _ in 0..300 {
            let index = new_index(&engine);
            looked_at.store(index.0, std::sync::atomic::Ordering::SeqCst);
            system.drop_tree(index).unwrap();
            looked_at.store(0, std::sync::atomic::Ordering::SeqCst);
            std::thread::yield_now();
            if system.tree(index).is_ok() {
                looked_at.store(u32::MAX, std::sync::atomic::Ordering::SeqCst);
                panic!("{index} is there again");
            }
        }
        looked_at.store(u32::MAX, std::sync::atomic::Ordering::SeqCst);
    });
}
