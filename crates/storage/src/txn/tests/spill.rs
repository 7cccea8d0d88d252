//! Older versions on disk: what readers find there, how much memory is left to them, what failing disks make of it.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::Error;
use crate::disk::Disk;
use Isolation::*;

fn with_memory(version_bytes: u64) -> Options {
    Options { version_bytes: Some(version_bytes), ..options() }
}

fn small(version_bytes: u64) -> (SimDisk, Engine, IndexId) {
    let disk = disk(7);
    let engine = open_with(&disk, with_memory(version_bytes)).unwrap();
    let t = new_index(&engine);
    (disk, engine, t)
}

fn scratch_files(disk: &SimDisk) -> Vec<String> {
    disk.list().unwrap().into_iter().filter(|name| name.starts_with("versions")).collect()
}

fn key(n: u32) -> String {
    format!("row{n:06}")
}

fn fill(engine: &Engine, t: IndexId, rows: u32) {
    let mut txn = engine.begin(RepeatableRead);
    let batch = SortedRows::from_unsorted((0..rows).map(|n| (key(n).into_bytes(), b"0".to_vec())).collect());
    let mut at = 0;
    while at < rows as usize {
        at += done(txn.insert_batch(t, &batch, at)).inserted;
    }
    commit(txn);
}

#[test]
fn a_large_update_takes_no_more_memory_than_versions_may_have() {
    const MEMORY: u64 = 200_000;
    const ROWS: u32 = 20_000;
    let (disk, engine, t) = small(MEMORY);
    fill(&engine, t, ROWS);
    let mut readers = Vec::new();
    for round in 1..4 {
        let mut reader = engine.begin(RepeatableRead);
        reader.snapshot();
        readers.push((reader, round - 1));
        let mut txn = engine.begin(RepeatableRead);
        for n in 0..ROWS {
            // In no order of keys.
            let n = (n as u64 * 7919 % ROWS as u64) as u32;
            assert!(done(txn.update(t, key(n).as_bytes(), format!("{round}").as_bytes())));
            // The index of what is on disk comes on top: here blocks and runs are small.
            let stats = engine.stats();
            assert!(stats.version_bytes < MEMORY + 10_000 + stats.version_scratch_bytes / 5, "{} bytes", stats.version_bytes);
        }
        commit(txn);
        engine.background_step().unwrap();
    }
    let stats = engine.stats();
    assert!(stats.versions_spilled > 2 * ROWS as u64 && stats.versions <= 3 * ROWS as u64, "{} of {}", stats.versions_spilled, stats.versions);
    for (mut reader, round) in readers {
        let expected: Vec<_> = (0..ROWS).map(|n| (key(n), format!("{round}"))).collect();
        assert!(all(&mut reader, t) == expected);
        let mut backward = drain(reader.scan(t, Bounds::all(), Direction::Backward));
        backward.reverse();
        assert!(backward.into_iter().map(|(_, value)| value).eq(expected.iter().map(|(_, value)| value.as_bytes().to_vec())));
        assert_eq!(get(&mut reader, t, &key(ROWS / 2)), Some(format!("{round}")));
        drop(reader);
        engine.background_step().unwrap();
    }
    purge_all(&engine);
    let stats = engine.stats();
    assert_eq!((stats.versions, stats.versions_spilled, stats.version_bytes, stats.version_scratch_bytes), (0, 0, 0, 0));
    assert_eq!(scratch_files(&disk), Vec::<String>::new());
}

/// While a reader holds it, of a large transaction and of many small ones.
#[test]
fn what_purge_has_to_do_goes_to_disk_and_is_done() {
    let (disk, engine, t) = small(0);
    let lists = || disk.list().unwrap().into_iter().filter(|name| name.starts_with("purge")).count();
    fill(&engine, t, 3000);
    let mut reader = engine.begin(RepeatableRead);
    reader.snapshot();
    for n in 0..300 {
        let mut txn = engine.begin(RepeatableRead);
        assert!(done(txn.delete(t, key(n).as_bytes())));
        commit(txn);
    }
    engine.background_step().unwrap();
    assert!(lists() > 0 && engine.stats().purge_scratch_bytes > 0);
    let mut txn = engine.begin(RepeatableRead);
    (300..2000).for_each(|n| assert!(done(txn.delete(t, key(n).as_bytes()))));
    let savepoint = txn.savepoint();
    (2000..3000).for_each(|n| assert!(done(txn.delete(t, key(n).as_bytes()))));
    txn.rollback_to(&savepoint).unwrap();
    commit(txn);
    purge_all(&engine);
    assert_eq!((engine.stats().history_length, all(&mut reader, t).len()), (2000, 3000));
    drop(reader);
    purge_all(&engine);
    assert_eq!((engine.check(t).unwrap().records, engine.stats().history_length, lists()), (1000, 0, 0));
    assert_eq!(engine.stats().purge_scratch_bytes, 0);
}

/// Many transactions, readers of all ages, rows of very different fates: changed by nearly everybody, deleted, put there anew.
#[test]
fn readers_of_every_age_agree_with_a_model() {
    for seed in 0..4 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (disk, engine, t) = small(seed * 4000);
        let mut now: BTreeMap<String, String> = BTreeMap::new();
        let mut readers: Vec<(Txn, BTreeMap<String, String>)> = Vec::new();
        for round in 0..400u32 {
            let mut txn = engine.begin(RepeatableRead);
            let mut after = now.clone();
            let mut savepoint = None;
            for change in 0..rng.random_range(1..30u32) {
                let key = if rng.random_ratio(1, 5) { key(0) } else { key(rng.random_range(0..60)) };
                let value = format!("{round}.{change}").repeat(rng.random_range(1..30));
                match rng.random_range(0..10) {
                    0..7 => {
                        put(&mut txn, t, &key, &value);
                        after.insert(key, value);
                    }
                    7..9 => assert_eq!(done(txn.delete(t, key.as_bytes())), after.remove(&key).is_some()),
                    _ => match savepoint.take() {
                        Some((savepoint, then)) => {
                            txn.rollback_to(&savepoint).unwrap();
                            after = then;
                        }
                        None => savepoint = Some((txn.savepoint(), after.clone())),
                    },
                }
            }
            if rng.random_ratio(1, 4) {
                txn.rollback().unwrap();
            } else {
                commit(txn);
                now = after;
            }
            if readers.len() < 8 && rng.random_ratio(1, 6) {
                let mut reader = engine.begin(RepeatableRead);
                reader.snapshot();
                readers.push((reader, now.clone()));
            }
            if !readers.is_empty() && rng.random_ratio(1, 3) {
                let at = rng.random_range(0..readers.len());
                let (reader, seen) = &mut readers[at];
                assert_eq!(all(reader, t).into_iter().collect::<BTreeMap<_, _>>(), *seen, "seed {seed}, round {round}");
                let key = key(rng.random_range(0..60));
                assert_eq!(get(reader, t, &key), seen.get(&key).cloned(), "seed {seed}, round {round}");
                if rng.random_ratio(1, 3) {
                    readers.swap_remove(at);
                }
            }
            if rng.random_ratio(1, 3) {
                engine.background_step().unwrap();
            }
        }
        assert!(engine.stats().versions_spilled > 0);
        readers.clear();
        purge_all(&engine);
        assert_eq!((engine.stats().versions, engine.stats().version_scratch_bytes, scratch_files(&disk).len()), (0, 0, 0));
        assert_eq!(engine.check(t).unwrap().records, now.len() as u64);
    }
}

/// Runs do not grow many: they become one, of which only what somebody needs is left.
#[test]
fn runs_are_merged_and_lose_what_nobody_needs() {
    let (disk, engine, t) = small(0);
    fill(&engine, t, 100);
    let mut reader = engine.begin(RepeatableRead);
    reader.snapshot();
    // The run that has what it replaced stays.
    let mut idle = engine.begin(RepeatableRead);
    assert!(done(idle.update(t, key(99).as_bytes(), b"idle")));
    for round in 0..2000u32 {
        given(&engine, t, &[(&key(round % 90), "new")]);
        while round % 10 == 0 && engine.background_step().unwrap() > 0 {}
    }
    while engine.background_step().unwrap() > 0 {}
    assert!(scratch_files(&disk).len() < 80, "{} runs", scratch_files(&disk).len());
    assert_eq!(all(&mut reader, t), (0..100).map(|n| (key(n), "0".to_string())).collect::<Vec<_>>());
    drop(reader);
    for round in 0..1000u32 {
        given(&engine, t, &[(&key(round % 90), "newer")]);
        while round % 10 == 0 && engine.background_step().unwrap() > 0 {}
    }
    assert!(engine.stats().versions < 1500, "{} versions that one transaction may have left", engine.stats().versions);
    idle.rollback().unwrap();
    purge_all(&engine);
    assert_eq!((engine.stats().versions, scratch_files(&disk).len()), (0, 0));
}

/// It holds the low-water mark, and looks at nothing.
#[test]
fn runs_of_many_transactions_go_while_an_older_one_is_idle() {
    let (disk, engine, t) = small(0);
    fill(&engine, t, 100);
    let mut idle = engine.begin(ReadCommitted);
    // A new row replaces nothing.
    put(&mut idle, t, "idle", "new");
    let mut reader = engine.begin(RepeatableRead);
    reader.snapshot();
    for round in 0..600u32 {
        given(&engine, t, &[(&key(round % 90), "new")]);
        while round % 10 == 0 && engine.background_step().unwrap() > 0 {}
    }
    assert!(engine.stats().versions_spilled > 0);
    drop(reader);
    for _ in 0..100 {
        engine.background_step().unwrap();
    }
    assert_eq!((engine.stats().versions, scratch_files(&disk).len()), (0, 0));
    commit(idle);
    assert_eq!(committed(&engine, t).len(), 101);
}

#[test]
fn a_full_disk_ends_the_statement_and_nothing_else() {
    let (disk, engine, t) = small(50_000);
    fill(&engine, t, 2000);
    let mut reader = engine.begin(RepeatableRead);
    reader.snapshot();
    let mut txn = engine.begin(RepeatableRead);
    let savepoint = txn.savepoint();
    let mut updated = 0;
    let error = loop {
        if engine.stats().version_bytes > 50_000 {
            disk.fail_at(disk.changes() + 1, Error::OutOfSpace);
        }
        match txn.update(t, key(updated).as_bytes(), b"1") {
            Ok(op) => assert!(done(Ok(op))),
            Err(error) => break error,
        }
        updated += 1;
    };
    assert!(matches!(error, Error::OutOfSpace), "{error}");
    assert_eq!(engine.stats().versions, updated as u64);
    let before: Vec<_> = (0..2000).map(|n| (key(n), "0".to_string())).collect();
    assert!(all(&mut reader, t) == before, "what could not be written is read from memory");
    txn.rollback_to(&savepoint).unwrap();
    assert!(all(&mut txn, t) == before);
    // There is room again.
    for n in 0..2000 {
        assert!(done(txn.update(t, key(n).as_bytes(), b"2")));
    }
    assert!(engine.stats().versions_spilled > 1000 && engine.stats().version_bytes < 70_000);
    assert!(all(&mut reader, t) == before);
    commit(txn);
    drop(reader);
    purge_all(&engine);
    assert_eq!((engine.stats().versions, engine.stats().version_bytes, scratch_files(&disk).len()), (0, 0, 0));
}

#[test]
fn a_version_that_cannot_be_read_is_an_error() {
    let (disk, engine, t) = small(0);
    fill(&engine, t, 200);
    let mut reader = engine.begin(RepeatableRead);
    reader.snapshot();
    let mut txn = engine.begin(RepeatableRead);
    for n in 0..200 {
        assert!(done(txn.update(t, key(n).as_bytes(), b"1")));
    }
    commit(txn);
    engine.background_step().unwrap();
    let mut out = Vec::new();
    disk.fail_read_in(Some(1));
    assert!(matches!(reader.get(t, key(7).as_bytes(), &mut out), Err(Error::Io { .. })));
    disk.fail_read_in(Some(1));
    let mut scan = reader.scan(t, Bounds::all(), Direction::Forward);
    assert!(matches!(scan.next_leaf(&mut LeafRows::new()), Err(Error::Io { .. })));
    assert_eq!(get(&mut reader, t, &key(7)).as_deref(), Some("0"));
    for name in scratch_files(&disk) {
        disk.open(&name, false).unwrap().sync().unwrap();
        disk.flip_bit(&name, 3, 3);
    }
    assert!(matches!(reader.get(t, key(7).as_bytes(), &mut out), Err(Error::Corrupt { .. })));
    assert_eq!(latest(&mut reader, t, &key(7)).as_deref(), Some("1"));
}

/// What a crash left prepared hides more versions than fit in memory; files of the earlier life are gone.
#[test]
fn versions_restored_after_a_crash_go_to_disk_too() {
    for commits in [false, true] {
        let (disk, engine, t) = small(20_000);
        fill(&engine, t, 2000);
        let mut txn = engine.begin(RepeatableRead);
        for n in 0..2000 {
            let key = key(n);
            assert!(done(if n % 10 == 0 { txn.delete(t, key.as_bytes()) } else { txn.update(t, key.as_bytes(), b"1") }));
        }
        let (prepared, wait) = txn.prepare(b"p".to_vec(), b"").unwrap();
        wait.wait().unwrap();
        assert!(!scratch_files(&disk).is_empty());
        disk.sync_dir().unwrap();
        std::mem::forget(prepared);
        drop(engine);
        let disk = disk.crash();
        assert!(!scratch_files(&disk).is_empty());
        let engine = open_with(&disk, with_memory(20_000)).unwrap();
        let stats = engine.stats();
        assert!(stats.versions == 2000 && stats.versions_spilled == 2000, "{} of {}", stats.versions_spilled, stats.versions);
        let before: Vec<_> = (0..2000).map(|n| (key(n), "0".to_string())).collect();
        assert!(committed(&engine, t) == before);
        let (mut prepared, _) = engine.take_prepared().pop().unwrap();
        let after = if commits {
            prepared.commit(b"").unwrap().wait().unwrap();
            (0..2000).filter(|n| n % 10 > 0).map(|n| (key(n), "1".to_string())).collect()
        } else {
            prepared.rollback(b"").unwrap().wait().unwrap();
            before
        };
        drop(prepared);
        assert!(committed(&engine, t) == after);
        purge_all(&engine);
        assert_eq!((engine.stats().versions, scratch_files(&disk).len()), (0, 0));
        assert_eq!(engine.check(t).unwrap().records, after.len() as u64);
    }
}

/// Values in overflow pages whose references are on disk: each is freed once, whoever goes first.
#[test]
fn long_values_behind_spilled_versions_are_freed_once() {
    let (_, engine, t) = small(0);
    let value = |n: usize| n.to_string().repeat(20_000);
    given(&engine, t, &[("k", &value(0)), ("l", &value(1))]);
    let mut reader = engine.begin(RepeatableRead);
    reader.snapshot();
    for n in 2..6 {
        given(&engine, t, &[("k", &value(n))]);
        let mut txn = engine.begin(RepeatableRead);
        put(&mut txn, t, "l", &value(n));
        put(&mut txn, t, "l", &value(n + 1));
        txn.rollback().unwrap();
        engine.background_step().unwrap();
    }
    assert_eq!((get(&mut reader, t, "k"), get(&mut reader, t, "l")), (Some(value(0)), Some(value(1))));
    drop(reader);
    purge_all(&engine);
    assert_eq!(engine.check(super::super::system::GARBAGE_INDEX).unwrap().records, 0);
    let used = super::crash::pages_owned(&engine, t).len();
    let mut txn = engine.begin(RepeatableRead);
    assert!(done(txn.delete(t, b"k")) && done(txn.delete(t, b"l")));
    commit(txn);
    purge_all(&engine);
    assert!(super::crash::pages_owned(&engine, t).len() < used);
    assert_eq!((engine.stats().versions, engine.stats().version_scratch_bytes), (0, 0));
}
