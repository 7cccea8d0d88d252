//! The anomalies by name, each under the levels that forbid and allow it.

use super::*;
use Isolation::*;

#[test]
fn dirty_read_only_under_read_uncommitted() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1"), ("b", "1")]);
    let mut writer = engine.begin(RepeatableRead);
    assert!(done(writer.update(t, b"a", b"2")));
    assert!(done(writer.delete(t, b"b")));
    assert_eq!(done(writer.insert(t, b"c", b"2")), Inserted::Yes);
    for level in [ReadCommitted, RepeatableRead, Serializable] {
        assert_eq!(all(&mut engine.begin(level), t), rows(&[("a", "1"), ("b", "1")]));
        assert_eq!(latest(&mut engine.begin(level), t, "a").as_deref(), Some("1"));
    }
    let mut dirty = engine.begin(ReadUncommitted);
    assert_eq!(all(&mut dirty, t), rows(&[("a", "2"), ("c", "2")]));
    assert_eq!(get(&mut dirty, t, "a").as_deref(), Some("2"));
    writer.rollback().unwrap();
    assert_eq!(all(&mut dirty, t), rows(&[("a", "1"), ("b", "1")]));
}

#[test]
fn non_repeatable_read_only_below_repeatable_read() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let mut committed = engine.begin(ReadCommitted);
    let mut repeatable = engine.begin(RepeatableRead);
    assert_eq!(get(&mut committed, t, "a").as_deref(), Some("1"));
    assert_eq!(get(&mut repeatable, t, "a").as_deref(), Some("1"));
    given(&engine, t, &[("a", "2")]);
    given(&engine, t, &[("a", "3")]);
    // One statement reads one snapshot under both.
    assert_eq!(get(&mut committed, t, "a").as_deref(), Some("1"));
    committed.begin_statement();
    repeatable.begin_statement();
    assert_eq!(get(&mut committed, t, "a").as_deref(), Some("3"));
    assert_eq!(get(&mut repeatable, t, "a").as_deref(), Some("1"));
    assert_eq!(latest(&mut repeatable, t, "a").as_deref(), Some("3"));
}

#[test]
fn the_snapshot_is_taken_at_the_first_read() {
    let (engine, t) = engine();
    let mut reader = engine.begin(RepeatableRead);
    given(&engine, t, &[("a", "1")]);
    assert_eq!(get(&mut reader, t, "a").as_deref(), Some("1"));
}

#[test]
fn no_phantoms_in_a_snapshot() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1"), ("c", "1"), ("e", "1")]);
    let mut reader = engine.begin(RepeatableRead);
    let before = rows(&[("a", "1"), ("c", "1"), ("e", "1")]);
    assert_eq!(all(&mut reader, t), before);
    let mut writer = engine.begin(RepeatableRead);
    put(&mut writer, t, "b", "2");
    put(&mut writer, t, "d", "2");
    assert!(done(writer.delete(t, b"c")));
    commit(writer);
    purge_all(&engine);
    assert_eq!(all(&mut reader, t), before);
    let back = drain(reader.scan(t, Bounds::all(), Direction::Backward));
    assert_eq!(back.iter().map(|(k, _)| k[0]).collect::<Vec<_>>(), b"eca");
    assert_eq!(committed(&engine, t), rows(&[("a", "1"), ("b", "2"), ("d", "2"), ("e", "1")]));
}

#[test]
fn dml_reads_the_latest_committed_row() {
    // MySQL's REPEATABLE READ: the snapshot is for reads, updates see what is committed. No update is lost.
    let (engine, t) = engine();
    given(&engine, t, &[("n", "1")]);
    let mut a = engine.begin(RepeatableRead);
    assert_eq!(get(&mut a, t, "n").as_deref(), Some("1"));
    given(&engine, t, &[("n", "2")]);
    assert_eq!(get(&mut a, t, "n").as_deref(), Some("1"));
    let locked = done(a.lock(t, b"n", LockMode::Exclusive, LockWaitPolicy::Wait));
    assert_eq!(locked, Locked::Yes(Some(b"2".to_vec())));
    assert!(done(a.update(t, b"n", b"3")));
    // Its own write it sees.
    assert_eq!(get(&mut a, t, "n").as_deref(), Some("3"));
    commit(a);
    assert_eq!(committed(&engine, t), rows(&[("n", "3")]));
}

#[test]
fn a_row_deleted_after_the_snapshot_is_missing_for_dml_but_not_for_reads() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(get(&mut reader, t, "a").as_deref(), Some("1"));
    let mut other = engine.begin(RepeatableRead);
    assert!(done(other.delete(t, b"a")));
    commit(other);
    assert!(!done(reader.update(t, b"a", b"2")));
    assert!(!done(reader.delete(t, b"a")));
    assert_eq!(get(&mut reader, t, "a").as_deref(), Some("1"));
    assert_eq!(done(reader.insert(t, b"a", b"3")), Inserted::Yes);
    assert_eq!(get(&mut reader, t, "a").as_deref(), Some("3"));
}

#[test]
fn unique_means_latest_committed_or_own() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let mut txn = engine.begin(RepeatableRead);
    assert_eq!(done(txn.insert(t, b"a", b"2")), Inserted::Duplicate);
    assert!(done(txn.delete(t, b"a")));
    assert_eq!(done(txn.insert(t, b"a", b"2")), Inserted::Yes);
    assert_eq!(done(txn.insert(t, b"a", b"3")), Inserted::Duplicate);
    // Others cannot tell yet: they wait, and are not told Duplicate.
    let mut other = engine.begin(RepeatableRead);
    drop(wait(other.insert(t, b"a", b"4")));
    assert!(done(txn.delete(t, b"a")));
    commit(txn);
    assert_eq!(done(other.insert(t, b"a", b"4")), Inserted::Yes);
    commit(other);
    assert_eq!(committed(&engine, t), rows(&[("a", "4")]));
}

#[test]
fn version_chains_serve_every_snapshot() {
    let (engine, t) = engine();
    let mut readers = Vec::new();
    for n in 0..20 {
        let value = format!("{n:0>200}");
        given(&engine, t, &[("k", &value)]);
        let mut reader = engine.begin(RepeatableRead);
        assert_eq!(get(&mut reader, t, "k").as_deref(), Some(value.as_str()));
        readers.push((reader, value));
        if n % 5 == 4 {
            let mut deleter = engine.begin(RepeatableRead);
            assert!(done(deleter.delete(t, b"k")));
            commit(deleter);
        }
        purge_all(&engine);
    }
    // Ended in a scattered order, the rest still read theirs.
    for n in [7, 0, 3, 12, 11, 0, 5] {
        readers.remove(n);
        purge_all(&engine);
        for (reader, value) in &mut readers {
            assert_eq!(get(reader, t, "k").as_deref(), Some(value.as_str()));
        }
    }
    readers.clear();
    purge_all(&engine);
    let stats = engine.stats();
    assert_eq!((stats.versions, stats.version_bytes, stats.history_length), (0, 0, 0));
    assert_eq!(committed(&engine, t), rows(&[]));
    assert_eq!(engine.check(t).unwrap().records, 0);
}

#[test]
fn a_snapshot_sees_its_own_transaction_from_another_thread() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let mut txn = engine.begin(RepeatableRead);
    put(&mut txn, t, "b", "2");
    let snapshot = txn.snapshot();
    given(&engine, t, &[("c", "3")]);
    let seen = std::thread::spawn(move || drain(snapshot.scan(t, Bounds::all(), Direction::Forward))).join().unwrap();
    assert_eq!(seen.iter().map(|(k, _)| k[0]).collect::<Vec<_>>(), b"ab");
}

#[test]
fn long_values_have_versions_too() {
    let (engine, t) = engine();
    let long = |c: &str| c.repeat(100_000);
    given(&engine, t, &[("k", &long("a"))]);
    let mut reader = engine.begin(RepeatableRead);
    assert_eq!(get(&mut reader, t, "k"), Some(long("a")));
    given(&engine, t, &[("k", &long("b"))]);
    given(&engine, t, &[("k", "short")]);
    let mut writer = engine.begin(RepeatableRead);
    put(&mut writer, t, "k", &long("c"));
    put(&mut writer, t, "k", &long("d"));
    assert_eq!(get(&mut writer, t, "k"), Some(long("d")));
    // An uncommitted long value is not read even by READ UNCOMMITTED.
    assert_eq!(get(&mut engine.begin(ReadUncommitted), t, "k").as_deref(), Some("short"));
    assert_eq!(get(&mut reader, t, "k"), Some(long("a")));
    purge_all(&engine);
    assert_eq!(get(&mut reader, t, "k"), Some(long("a")));
    writer.rollback().unwrap();
    assert_eq!(get(&mut engine.begin(RepeatableRead), t, "k").as_deref(), Some("short"));
    drop(reader);
    purge_all(&engine);
    // All overflow pages are free again.
    assert_eq!(engine.check(t).unwrap().pages.len(), crash::pages_owned(&engine, t).len());
}

#[test]
fn a_batch_inserts_up_to_what_is_in_its_way() {
    let (engine, t) = engine();
    given(&engine, t, &[("k0500", "old")]);
    let mut other = engine.begin(RepeatableRead);
    put(&mut other, t, "k0800", "theirs");
    let mut batch = SortedRows::new();
    let long = "x".repeat(40_000);
    for n in 0..1000 {
        let value = if n % 300 == 7 { long.as_str() } else { "value" };
        batch.push(format!("k{n:04}").as_bytes(), value.as_bytes());
    }
    let mut txn = engine.begin(RepeatableRead);
    let outcome = done(txn.insert_batch(t, &batch, 0));
    assert_eq!(outcome, BatchOutcome { inserted: 500, duplicate: true });
    assert!(done(txn.delete(t, b"k0500")));
    let outcome = done(txn.insert_batch(t, &batch, 500));
    assert_eq!(outcome, BatchOutcome { inserted: 300, duplicate: false });
    drop(wait(txn.insert_batch(t, &batch, 800)));
    other.rollback().unwrap();
    let outcome = done(txn.insert_batch(t, &batch, 800));
    assert_eq!(outcome, BatchOutcome { inserted: 200, duplicate: false });
    commit(txn);
    let found = committed(&engine, t);
    assert_eq!(found.len(), 1000);
    assert!(found.iter().enumerate().all(|(n, (k, v))| *k == format!("k{n:04}") && (v == "value") == (n % 300 != 7)));
    engine.check(t).unwrap();
}

#[test]
fn savepoints_take_back_what_came_after() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut txn = engine.begin(RepeatableRead);
    put(&mut txn, t, "a", "2");
    let first = txn.savepoint();
    put(&mut txn, t, "a", "3");
    put(&mut txn, t, "b", "3");
    assert!(done(txn.delete(t, b"c")));
    put(&mut txn, t, "d", &"3".repeat(50_000));
    let second = txn.savepoint();
    put(&mut txn, t, "c", "4");
    put(&mut txn, t, "d", "4");
    let made = txn.create_index().unwrap();
    put(&mut txn, made, "x", "4");
    txn.rollback_to(&second).unwrap();
    assert!(!engine.index_exists(made));
    assert_eq!(get(&mut txn, t, "d"), Some("3".repeat(50_000)));
    assert_eq!(get(&mut txn, t, "c"), None);
    txn.rollback_to(&first).unwrap();
    txn.rollback_to(&first).unwrap();
    assert_eq!(all(&mut txn, t), rows(&[("a", "2"), ("b", "1"), ("c", "1")]));
    put(&mut txn, t, "e", "5");
    commit(txn);
    purge_all(&engine);
    assert_eq!(committed(&engine, t), rows(&[("a", "2"), ("b", "1"), ("c", "1"), ("e", "5")]));
    assert_eq!(engine.stats().versions, 0);
    assert_eq!(engine.check(t).unwrap().pages.len(), crash::pages_owned(&engine, t).len());
}

#[test]
fn a_large_transaction_rolls_back() {
    let (engine, t) = engine();
    given(&engine, t, &[("k00000", "old"), ("k02500", "old")]);
    let before = committed(&engine, t);
    let mut txn = engine.begin(RepeatableRead);
    let mut batch = SortedRows::new();
    for n in 0..5000 {
        if n % 2500 != 0 {
            batch.push(format!("k{n:05}").as_bytes(), format!("{n:0>60}").as_bytes());
        }
    }
    assert_eq!(done(txn.insert_batch(t, &batch, 0)).inserted, 4998);
    for n in (0..5000).step_by(7) {
        put(&mut txn, t, &format!("k{n:05}"), "updated");
    }
    for n in (0..5000).step_by(5) {
        assert!(done(txn.delete(t, format!("k{n:05}").as_bytes())));
    }
    txn.rollback().unwrap();
    assert_eq!(committed(&engine, t), before);
    purge_all(&engine);
    assert_eq!(engine.check(t).unwrap().records, 2);
    assert_eq!(engine.stats().open_transactions, 0);
}
