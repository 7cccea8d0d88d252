//! Bulk load: against a model, beside others, taken back, and with the power gone at every write.

use std::collections::BTreeMap;

use super::crash::pages_owned;
use super::*;
use crate::disk::{Rng, SeededRng};
use crate::error::Error;
use crate::page::PAGE_SIZE;
use crate::txn::{LoadTxn, Loaded, SealedLoad, SharedTxn};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn fill(txn: &mut Txn, index: IndexId, rows: &Model) -> crate::Result<Loaded> {
    let mut load = txn.load(index)?.expect("the index is empty");
    for (key, value) in rows {
        load.push(txn, key, value)?;
    }
    load.finish(txn, |_, _| panic!("nobody else writes"))
}

fn numbered(count: u64, len: usize) -> Model {
    (0..count).map(|n| (n.to_be_bytes().to_vec(), vec![n as u8; len])).collect()
}

fn found(engine: &Engine, index: IndexId) -> Model {
    drain(engine.begin(Isolation::ReadCommitted).scan(index, Bounds::all(), Direction::Forward)).into_iter().collect()
}

/// The tree is sound and owns its pages and those of the long values, no others.
fn sound(engine: &Engine, index: IndexId, rows: &Model) -> crate::CheckReport {
    purge_all(engine);
    assert_eq!(&found(engine, index), rows);
    let report = engine.check(index).unwrap();
    assert_eq!(report.records, rows.len() as u64);
    let long = rows.iter().filter(|(k, v)| !crate::page::slotted::fits_inline(k.len(), v.len()));
    let long: usize = long.map(|(_, v)| v.len().div_ceil(16384 - 96)).sum();
    assert_eq!(pages_owned(engine, index).len(), report.pages.len() + long);
    let levels = engine.levels(index, &|| false).unwrap().unwrap();
    assert_eq!(levels.iter().map(|l| l.pages).sum::<u64>(), report.pages.len() as u64);
    assert_eq!((levels[0].records, levels[0].overflow_pages), (rows.len() as u64, long as u64));
    let size = engine.index_size(index).unwrap();
    assert_eq!(size.pages_used, (report.pages.len() + long) as u64);
    assert!(size.pages >= size.pages_used && size.pages % 64 == 0, "{size:?}");
    report
}

#[test]
fn a_long_scan_tells_the_disk_which_pages_come() {
    let disk = disk(3);
    let engine = open(&disk);
    let index = new_index(&engine);
    let rows = numbered(20_000, 400);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    fill(&mut txn, index, &rows).unwrap();
    commit(txn);
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open_with(&disk, Options { buffer_pool_bytes: 32 << 20, ..options() }).unwrap();
    let announced = || engine.stats().counter("pages_read_ahead");
    // Few leaves: perhaps nobody wants more.
    let few = Bounds::new(std::ops::Bound::Unbounded, std::ops::Bound::Excluded(100_u64.to_be_bytes().to_vec()));
    assert_eq!(drain(engine.begin(Isolation::ReadCommitted).scan(index, few, Direction::Forward)).len(), 100);
    assert_eq!(announced(), 0);
    assert_eq!(found(&engine, index), rows);
    let leaves = engine.levels(index, &|| false).unwrap().unwrap()[0].pages;
    assert!(leaves > 300 && announced() > leaves / 2 && announced() <= leaves, "{} of {leaves}", announced());
    // They are in memory now.
    let before = announced();
    assert_eq!(found(&engine, index), rows);
    assert_eq!(announced(), before);
}

#[test]
fn what_is_loaded_is_found() {
    let rng = SeededRng::new(5);
    let below = move |n: u64| rng.below(n);
    for round in 0..24 {
        let (engine, index) = engine();
        let count = [1, 2, 3, 50, 300, 5_000][round % 6];
        let longest = [8, 40, 600, 3_000][round % 4];
        let mut rows = Model::new();
        for _ in 0..count {
            // Keys of one byte often, so that separators and prefixes of all lengths come about.
            let len = 1 + below(longest) as usize;
            let key: Vec<u8> = (0..len).map(|_| if below(8) == 0 { below(256) as u8 } else { 7 }).collect();
            let value = vec![3; below(if round % 3 == 0 { 8_000 } else { 120 }) as usize];
            rows.insert(key, value);
            if rows.len() > 400 && longest > 600 {
                break;
            }
        }
        if round % 6 == 4 {
            rows.insert(b"long".to_vec(), vec![9; 70_000]);
        }
        let mut txn = engine.begin(Isolation::RepeatableRead);
        assert_eq!(fill(&mut txn, index, &rows).unwrap(), Loaded::Rows(rows.len() as u64));
        assert_eq!(found(&engine, index), Model::new(), "not committed");
        commit(txn);
        sound(&engine, index, &rows);
        // It is a tree as any other.
        let mut txn = engine.begin(Isolation::RepeatableRead);
        for n in 0..200u64 {
            let key = [&b"later"[..], &n.to_be_bytes()].concat();
            assert_eq!(done(txn.insert(index, &key, b"x")), Inserted::Yes);
            rows.insert(key, b"x".to_vec());
        }
        commit(txn);
        sound(&engine, index, &rows);
    }
}

#[test]
fn pages_are_filled_and_appends_go_on() {
    for (len, count) in [(20, 40_000), (200, 8_000), (500, 4_000)] {
        let engine = open_with(&disk(3), Options { buffer_pool_bytes: 64 << 20, ..options() }).unwrap();
        let index = new_index(&engine);
        let mut rows = numbered(count, len);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        let written = engine.stats().counter("pages_written");
        fill(&mut txn, index, &rows).unwrap();
        let report = engine.check(index).unwrap();
        // Every leaf but the last is as full as it is to be (the key that it ends before may have become shorter), whatever the rows.
        let full = PAGE_SIZE as u64 * 15 / 16 - 64;
        assert!(report.leaf_bytes >= (report.leaf_pages - 1) * full, "{len}: {}", report.leaf_fill());
        // Each page but the root, once, and what was left of the last run.
        let written = engine.stats().counter("pages_written") - written;
        assert!((report.pages.len() as u64 - 1..report.pages.len() as u64 + 15).contains(&written), "{written}");
        for n in count..count + 3_000 {
            let (key, value) = (n.to_be_bytes().to_vec(), vec![1; len]);
            assert_eq!(done(txn.insert(index, &key, &value)), Inserted::Yes);
            rows.insert(key, value);
        }
        commit(txn);
        let report = sound(&engine, index, &rows);
        assert!(report.leaf_fill() > 0.91, "{len}: {}", report.leaf_fill());
    }
}

#[test]
fn the_fill_factor_leaves_room() {
    let engine = open_with(&disk(3), Options { fill_factor: 40, ..options() }).unwrap();
    let rows = numbered(3_000, 200);
    let filled = || {
        let index = new_index(&engine);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        fill(&mut txn, index, &rows).unwrap();
        commit(txn);
        sound(&engine, index, &rows).leaf_fill()
    };
    let fill = filled();
    assert!((0.36..0.41).contains(&fill), "{fill}");
    engine.set_fill_factor(10);
    let fill = filled();
    assert!((0.07..0.11).contains(&fill), "{fill}");
    engine.set_fill_factor(100);
    assert!(filled() > 0.91);
}

#[test]
fn a_load_is_taken_back() {
    let (engine, index) = engine();
    let mut rows = numbered(3_000, 100);
    rows.insert(b"long".to_vec(), vec![5; 50_000]);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let start = txn.savepoint();
    fill(&mut txn, index, &rows).unwrap();
    txn.rollback_to(&start).unwrap();
    let empty = sound(&engine, index, &Model::new());
    // Removing the rows one by one leaves the chain of the pages; merging takes most of it away.
    assert!(empty.pages.len() < 20, "{} pages", empty.pages.len());
    // Given up half way.
    let other = new_index(&engine);
    let start = txn.savepoint();
    let mut load = txn.load(other).unwrap().unwrap();
    for (key, value) in &rows {
        load.push(&mut txn, key, value).unwrap();
    }
    drop(load);
    txn.rollback_to(&start).unwrap();
    assert_eq!(pages_owned(&engine, other).len(), 1);
    fill(&mut txn, other, &rows).unwrap();
    txn.rollback().unwrap();
    sound(&engine, other, &Model::new());
}

#[test]
fn pages_are_written_while_others_are_made() {
    let engine = open_with(&disk(3), Options { buffer_pool_bytes: 64 << 20, background: true, ..options() }).unwrap();
    let [index, other] = [(); 2].map(|()| new_index(&engine));
    let rows = numbered(40_000, 200);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let before = engine.stats().counter("pages_written");
    let mut load = txn.load(index).unwrap().unwrap();
    for (key, value) in &rows {
        load.push(&mut txn, key, value).unwrap();
    }
    // Some 600 pages; the writer is told of all but the last runs.
    let since = std::time::Instant::now();
    while engine.stats().counter("pages_written") - before < 400 {
        assert!(since.elapsed().as_secs() < 60, "nobody writes");
        std::thread::yield_now();
    }
    assert_eq!(load.finish(&mut txn, |_, _| {}).unwrap(), Loaded::Rows(40_000));
    commit(txn);
    assert!(sound(&engine, index, &rows).pages.len() > 500);
    // Given up while the writer works.
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let mut half = txn.load(other).unwrap().unwrap();
    for (key, value) in &rows {
        half.push(&mut txn, key, value).unwrap();
    }
    drop(half);
    txn.rollback().unwrap();
    sound(&engine, other, &Model::new());
}

#[test]
fn a_load_that_is_given_back_leaves_nothing() {
    let (engine, index) = engine();
    for count in [3, 5_000] {
        let mut rows = numbered(count, 100);
        rows.insert(b"long".to_vec(), vec![4; 30_000]);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        let mut load = txn.load(index).unwrap().unwrap();
        for (key, value) in &rows {
            load.push(&mut txn, key, value).unwrap();
        }
        assert!(!load.is_hindered(&mut txn).unwrap());
        let mut back = Vec::new();
        load.give_back(&mut txn, |k, v| back.push((k.to_vec(), v.to_vec()))).unwrap();
        assert_eq!(back, rows.into_iter().collect::<Vec<_>>());
        assert_eq!(pages_owned(&engine, index).len(), 1);
        fill(&mut txn, index, &numbered(300, 100)).unwrap();
        txn.rollback().unwrap();
        sound(&engine, index, &Model::new());
    }
}

#[test]
fn a_row_is_found_in_a_load_that_is_not_attached() {
    let (engine, index) = engine();
    for count in [1, 3, 5_000] {
        let mut rows = numbered(count, 100);
        rows.insert(b"long".to_vec(), vec![4; 30_000]);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        let mut load = txn.load(index).unwrap().unwrap();
        rows.iter().for_each(|(key, value)| load.push(&mut txn, key, value).unwrap());
        let sealed = load.seal(&mut txn).unwrap();
        for (key, value) in &rows {
            assert_eq!(sealed.get(&txn, key).unwrap().as_ref(), Some(value));
            assert_eq!(sealed.get(&txn, &[key.as_slice(), b"x"].concat()).unwrap(), None);
        }
        assert_eq!(sealed.get(&txn, b"").unwrap(), None);
        drop(sealed);
        txn.rollback().unwrap();
        assert_eq!(pages_owned(&engine, index).len(), 1);
    }
}

#[test]
fn others_come_first() {
    let (engine, index) = engine();
    let mut rows = numbered(500, 100);
    rows.insert(b"long".to_vec(), vec![4; 30_000]);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let load = |txn: &mut Txn| {
        let mut load = txn.load(index).unwrap().unwrap();
        for (key, value) in &rows {
            load.push(txn, key, value).unwrap();
        }
        load
    };
    // A lock on a key that is not there.
    let half = load(&mut txn);
    let mut other = engine.begin(Isolation::RepeatableRead);
    assert_eq!(done(other.lock(index, &7u64.to_be_bytes(), LockMode::Shared, LockWaitPolicy::Wait)), Locked::Yes(None));
    let mut back = Model::new();
    assert_eq!(half.finish(&mut txn, |k, v| assert!(back.insert(k.into(), v.into()).is_none())).unwrap(), Loaded::NotEmpty);
    assert_eq!(back, rows);
    assert_eq!(pages_owned(&engine, index).len(), 1);
    assert!(txn.load(index).unwrap().is_none());
    other.rollback().unwrap();
    // A row.
    let half = load(&mut txn);
    given(&engine, index, &[("a", "b")]);
    assert!(half.is_hindered(&mut txn).unwrap());
    assert_eq!(half.finish(&mut txn, |_, _| {}).unwrap(), Loaded::NotEmpty);
    assert!(txn.load(index).unwrap().is_none());
    commit(txn);
    sound(&engine, index, &BTreeMap::from([(b"a".to_vec(), b"b".to_vec())]));
}

/// Loads of several indexes, made by turns, a few rows at a time.
fn fill_by_turns(txn: &mut Txn, indexes: &[IndexId], rows: &[Model]) -> crate::Result<Loaded> {
    let mut loads = Vec::new();
    for (index, rows) in indexes.iter().zip(rows) {
        loads.push((txn.load(*index)?.expect("the index is empty"), rows.iter().peekable()));
    }
    while loads.iter_mut().any(|(_, rows)| rows.peek().is_some()) {
        for (load, rows) in &mut loads {
            rows.by_ref().take(40).try_for_each(|(key, value)| load.push(txn, key, value))?;
        }
    }
    let sealed: crate::Result<Vec<SealedLoad>> = loads.into_iter().map(|(load, _)| load.seal(txn)).collect();
    txn.attach(sealed?)
}

fn three(engine: &Engine) -> [IndexId; 3] {
    [(); 3].map(|()| new_index(engine))
}

/// Different heights, long values among them.
fn rows_of_three() -> [Model; 3] {
    let mut rows = [numbered(1_200, 300), numbered(3, 20), numbered(400, 900)];
    rows[2].insert(b"long".to_vec(), vec![6; 40_000]);
    rows
}

#[test]
fn loads_side_by_side_come_and_go_together() {
    let (engine, _) = engine();
    let (indexes, rows) = (three(&engine), rows_of_three());
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let start = txn.savepoint();
    let count = rows.iter().map(|rows| rows.len() as u64).sum();
    assert_eq!(fill_by_turns(&mut txn, &indexes, &rows).unwrap(), Loaded::Rows(count));
    txn.rollback_to(&start).unwrap();
    for index in indexes {
        sound(&engine, index, &Model::new());
    }
    // What was emptied row by row is no single leaf any more.
    let indexes = three(&engine);
    fill_by_turns(&mut txn, &indexes, &rows).unwrap();
    assert_eq!(done(txn.insert(indexes[1], b"later", b"x")), Inserted::Yes);
    commit(txn);
    let mut rows = rows;
    rows[1].insert(b"later".to_vec(), b"x".to_vec());
    for (index, rows) in indexes.iter().zip(&rows) {
        sound(&engine, *index, rows);
    }
}

#[test]
fn loads_side_by_side_that_cannot_be_attached_give_the_rows_of_the_first_back() {
    let (engine, _) = engine();
    let (indexes, rows) = (three(&engine), rows_of_three());
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let mut loads: Vec<_> = indexes.iter().map(|index| txn.load(*index).unwrap().expect("the index is empty")).collect();
    for (load, rows) in loads.iter_mut().zip(&rows) {
        rows.iter().for_each(|(key, value)| load.push(&mut txn, key, value).unwrap());
    }
    let sealed: Vec<SealedLoad> = loads.into_iter().map(|load| load.seal(&mut txn).unwrap()).collect();
    given(&engine, indexes[2], &[("a", "b")]);
    let mut back = Model::new();
    let attached = txn.attach_or_give_back(sealed, |k, v| assert!(back.insert(k.into(), v.into()).is_none())).unwrap();
    assert_eq!(attached, Loaded::NotEmpty);
    assert_eq!(back, rows[0]);
    commit(txn);
    for index in &indexes[..2] {
        assert_eq!(pages_owned(&engine, *index).len(), 1);
        sound(&engine, *index, &Model::new());
    }
    sound(&engine, indexes[2], &BTreeMap::from([(b"a".to_vec(), b"b".to_vec())]));
}

/// Loads of several indexes, each in a thread of its own.
fn fill_in_threads<const N: usize>(txn: &mut Txn, indexes: [IndexId; N], rows: &[Model; N]) -> Loaded {
    let loads = indexes.map(|index| txn.load(index).unwrap().expect("the index is empty"));
    let shared = &SharedTxn::new(txn);
    let sealed: Vec<SealedLoad> = std::thread::scope(|scope| {
        let threads: Vec<_> = loads
            .into_iter()
            .zip(rows)
            .map(|(mut load, rows)| {
                let mut shared = shared;
                scope.spawn(move || {
                    for (key, value) in rows {
                        load.push(&mut shared, key, value).unwrap();
                    }
                    load.seal(&mut shared).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut last = shared;
    last.with(|txn| txn.attach(sealed)).unwrap()
}

#[test]
fn loads_side_by_side_in_threads_make_the_pages_of_one_after_the_other() {
    let engine = open_with(&disk(3), Options { buffer_pool_bytes: 64 << 20, background: true, ..options() }).unwrap();
    let rows = [numbered(30_000, 100), numbered(20_000, 200), numbered(5, 10), numbered(9_000, 400)];
    let one_by_one: Vec<usize> = rows
        .iter()
        .map(|rows| {
            let index = new_index(&engine);
            let mut txn = engine.begin(Isolation::RepeatableRead);
            fill(&mut txn, index, rows).unwrap();
            commit(txn);
            sound(&engine, index, rows).pages.len()
        })
        .collect();
    let indexes = [(); 4].map(|()| new_index(&engine));
    let mut txn = engine.begin(Isolation::RepeatableRead);
    assert_eq!(fill_in_threads(&mut txn, indexes, &rows), Loaded::Rows(59_005));
    commit(txn);
    for ((index, rows), pages) in indexes.iter().zip(&rows).zip(one_by_one) {
        assert_eq!(sound(&engine, *index, rows).pages.len(), pages);
    }
}

#[test]
fn loads_side_by_side_are_given_up_together() {
    let (engine, _) = engine();
    let (indexes, rows) = (three(&engine), rows_of_three());
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let mut loads: Vec<_> = indexes.iter().map(|index| txn.load(*index).unwrap().unwrap()).collect();
    for (load, rows) in loads.iter_mut().zip(&rows) {
        rows.iter().for_each(|(key, value)| load.push(&mut txn, key, value).unwrap());
    }
    given(&engine, indexes[2], &[("a", "b")]);
    let sealed = loads.into_iter().map(|load| load.seal(&mut txn).unwrap()).collect();
    assert_eq!(txn.attach(sealed).unwrap(), Loaded::NotEmpty);
    for index in indexes {
        assert_eq!(pages_owned(&engine, index).len(), 1);
    }
    // The others are as they were.
    fill_by_turns(&mut txn, &indexes[..2], &rows[..2]).unwrap();
    commit(txn);
    sound(&engine, indexes[0], &rows[0]);
    sound(&engine, indexes[1], &rows[1]);
    sound(&engine, indexes[2], &BTreeMap::from([(b"a".to_vec(), b"b".to_vec())]));
}

/// The first three indexes side by side, committed; the others, rolled back, or found by the crash. How many steps were acknowledged.
fn loads_by_turns(engine: &Engine, indexes: &[[IndexId; 3]; 3]) -> usize {
    let rows = rows_of_three();
    let begin = || engine.begin(Isolation::RepeatableRead);
    let steps: [&dyn Fn() -> crate::Result<()>; 3] = [
        &|| {
            let mut txn = begin();
            fill_by_turns(&mut txn, &indexes[0], &rows)?;
            txn.commit(b"")?.wait()
        },
        &|| {
            let mut txn = begin();
            fill_by_turns(&mut txn, &indexes[1], &rows)?;
            engine.checkpoint()?;
            txn.rollback()
        },
        &|| {
            let mut txn = begin();
            fill_by_turns(&mut txn, &indexes[2], &rows)?;
            engine.flush_log()?;
            std::mem::forget(txn);
            Ok(())
        },
    ];
    steps.iter().take_while(|step| step().is_ok()).count()
}

#[test]
fn the_power_goes_at_every_write_of_loads_side_by_side() {
    let begin = |seed| {
        let disk = disk(seed);
        let engine = open(&disk);
        let indexes = [(); 3].map(|()| three(&engine));
        (disk, engine, indexes)
    };
    let (whole, engine, indexes) = begin(17);
    let first = whole.changes();
    assert_eq!(loads_by_turns(&engine, &indexes), 3);
    let last = whole.changes();
    drop(engine);
    let (rows, none) = (rows_of_three(), [(); 3].map(|()| Model::new()));
    for n in first..=last {
        let (disk, engine, indexes) = begin(n);
        disk.power_off_at(n);
        let acknowledged = loads_by_turns(&engine, &indexes);
        drop(engine);
        let engine = open(&disk.crash());
        let is_there = !found(&engine, indexes[0][0]).is_empty();
        assert!(is_there || acknowledged == 0, "write {n}: acknowledged and gone");
        let expected = if is_there { &rows } else { &none };
        for (index, rows) in indexes[0].iter().zip(expected) {
            sound(&engine, *index, rows);
        }
        for index in indexes[1..].iter().flatten() {
            sound(&engine, *index, &Model::new());
        }
    }
}

#[test]
fn long_values_of_a_load_are_not_logged_and_are_written_once() {
    let engine = open_with(&disk(3), Options { buffer_pool_bytes: 64 << 20, ..options() }).unwrap();
    let index = new_index(&engine);
    let rows: Model = (0..150).map(|n: u64| (n.to_be_bytes().to_vec(), vec![n as u8; 9_000 + 2_000 * n as usize])).collect();
    let bytes: u64 = rows.values().map(|value| value.len() as u64).sum();
    let count = |name| engine.stats().counter(name);
    let (logged, written) = (count("log_bytes"), count("pages_written"));
    let mut txn = engine.begin(Isolation::RepeatableRead);
    fill(&mut txn, index, &rows).unwrap();
    commit(txn);
    let (logged, written) = (count("log_bytes") - logged, count("pages_written") - written);
    assert!(logged < bytes / 50, "{logged} for {bytes}");
    // And what was left of the last runs.
    let owned = pages_owned(&engine, index).len() as u64;
    assert!((owned - 1..owned + 32).contains(&written), "{written} for {owned}");
    sound(&engine, index, &rows);
}

/// Values of one page, of several, and of several runs, among short ones.
fn long_rows() -> Model {
    let mut rows = numbered(40, 100);
    for (name, len) in [("a page", 16_288), ("pages", 20_000), ("runs", 300_000), ("last", 50_000)] {
        rows.insert(name.as_bytes().to_vec(), (0..len).map(|n| (n % 251) as u8).collect());
    }
    rows
}

/// A load that is committed, one that is rolled back, one half done and one attached when the power goes. How many steps were acknowledged.
fn long_loads(engine: &Engine, indexes: &[IndexId; 4]) -> usize {
    let rows = long_rows();
    let begin = || engine.begin(Isolation::RepeatableRead);
    let steps: [&dyn Fn() -> crate::Result<()>; 4] = [
        &|| {
            let mut txn = begin();
            fill(&mut txn, indexes[0], &rows)?;
            txn.commit(b"")?.wait()
        },
        &|| {
            let mut txn = begin();
            fill(&mut txn, indexes[1], &rows)?;
            engine.checkpoint()?;
            txn.rollback()
        },
        &|| {
            // Perhaps of pages that the load before has given back.
            let mut txn = begin();
            let mut load = txn.load(indexes[2])?.expect("empty");
            for (key, value) in &rows {
                load.push(&mut txn, key, value)?;
            }
            drop(load);
            std::mem::forget(txn);
            Ok(())
        },
        &|| {
            let mut txn = begin();
            fill(&mut txn, indexes[3], &rows)?;
            engine.flush_log()?;
            std::mem::forget(txn);
            Ok(())
        },
    ];
    steps.iter().take_while(|step| step().is_ok()).count()
}

#[test]
fn the_power_goes_at_every_write_of_a_load_of_long_values() {
    let begin = |seed| {
        let disk = disk(seed);
        let engine = open(&disk);
        let indexes = [(); 4].map(|()| new_index(&engine));
        (disk, engine, indexes)
    };
    let (whole, engine, indexes) = begin(23);
    let first = whole.changes();
    assert_eq!(long_loads(&engine, &indexes), 4);
    let last = whole.changes();
    drop(engine);
    let (rows, none) = (long_rows(), Model::new());
    for n in first..=last {
        let (disk, engine, indexes) = begin(n);
        disk.power_off_at(n);
        let acknowledged = long_loads(&engine, &indexes);
        drop(engine);
        let engine = open(&disk.crash());
        let is_there = !found(&engine, indexes[0]).is_empty();
        assert!(is_there || acknowledged == 0, "write {n}: acknowledged and gone");
        sound(&engine, indexes[0], if is_there { &rows } else { &none });
        for index in &indexes[1..] {
            sound(&engine, *index, &none);
        }
    }
}

/// They are evicted and read again while others are made, and are as any others once they are attached.
#[test]
fn long_values_of_loads_in_threads_may_be_more_than_the_pool_and_go_with_their_rows() {
    let disk = disk(5);
    let engine = open_with(&disk, Options { background: true, ..options() }).unwrap();
    let indexes = three(&engine);
    let rows: [Model; 3] = [1, 2, 3].map(|seed: u64| {
        let row = |n: u64| (n.to_be_bytes().to_vec(), vec![(n * seed) as u8; 10_000 + 3_000 * (n * seed % 60) as usize]);
        (0..60).map(row).collect()
    });
    let mut txn = engine.begin(Isolation::RepeatableRead);
    assert_eq!(fill_in_threads(&mut txn, indexes, &rows), Loaded::Rows(180));
    commit(txn);
    for (index, rows) in indexes.iter().zip(&rows) {
        sound(&engine, *index, rows);
    }
    drop(engine);
    let engine = open(&disk.crash());
    for (index, rows) in indexes.iter().zip(&rows) {
        sound(&engine, *index, rows);
    }
    let mut txn = engine.begin(Isolation::RepeatableRead);
    for key in rows[0].keys() {
        assert!(done(txn.delete(indexes[0], key)));
    }
    for key in rows[1].keys() {
        assert!(done(txn.update(indexes[1], key, b"short")));
    }
    commit(txn);
    let short: Model = rows[1].keys().map(|key| (key.clone(), b"short".to_vec())).collect();
    sound(&engine, indexes[0], &Model::new());
    sound(&engine, indexes[1], &short);
    sound(&engine, indexes[2], &rows[2]);
}

#[test]
fn long_values_that_fill_the_disk_are_all_given_back() {
    let disk = SimDisk::new(SimConfig { capacity: 24 << 20, ..SimConfig::default() });
    let engine = open(&disk);
    let index = new_index(&engine);
    let row = |n: u64| (n.to_be_bytes().to_vec(), vec![n as u8; 50_000]);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let mut load = txn.load(index).unwrap().unwrap();
    let mut pushed = 0;
    loop {
        let (key, value) = row(pushed);
        match load.push(&mut txn, &key, &value) {
            Ok(()) => pushed += 1,
            Err(Error::OutOfSpace) => break,
            Err(e) => panic!("{e}"),
        }
    }
    assert!(pushed > 150, "{pushed} rows fill the disk");
    drop(load);
    txn.rollback().unwrap();
    assert_eq!(pages_owned(&engine, index).len(), 1);
    let rows: Model = (0..pushed / 2).map(row).collect();
    let mut txn = engine.begin(Isolation::RepeatableRead);
    fill(&mut txn, index, &rows).unwrap();
    commit(txn);
    drop(engine);
    sound(&open(&disk.crash()), index, &rows);
}

#[test]
fn loaded_rows_are_locked_until_the_commit() {
    let (engine, index) = engine();
    let mut txn = engine.begin(Isolation::RepeatableRead);
    fill(&mut txn, index, &numbered(500, 100)).unwrap();
    let mut other = engine.begin(Isolation::RepeatableRead);
    let waiting = wait(other.insert(index, &9u64.to_be_bytes(), b"mine"));
    assert_eq!(done(other.insert(index, b"beside", b"them")), Inserted::Yes);
    txn.rollback().unwrap();
    assert_eq!(waiting.wait(), Ok(()));
    assert_eq!(done(other.insert(index, &9u64.to_be_bytes(), b"mine")), Inserted::Yes);
    commit(other);
    let left = [(9u64.to_be_bytes().to_vec(), b"mine".to_vec()), (b"beside".to_vec(), b"them".to_vec())];
    sound(&engine, index, &left.into());
}

/// A committed load, one that is rolled back, one that the crash finds attached, one half done. Returns how many steps were acknowledged.
fn loads(engine: &Engine, indexes: &[IndexId; 4]) -> usize {
    // The last two are of so many pages that the first are written while the others are made.
    let rows = |n: usize| numbered(260 + n as u64, if n < 2 { 150 } else { 3_000 });
    let steps: [&dyn Fn() -> crate::Result<()>; 5] = [
        &|| {
            let mut txn = engine.begin(Isolation::RepeatableRead);
            let mut rows = rows(0);
            rows.insert(b"long".to_vec(), vec![1; 40_000]);
            fill(&mut txn, indexes[0], &rows)?;
            txn.commit(b"")?.wait()
        },
        &|| {
            let mut txn = engine.begin(Isolation::RepeatableRead);
            fill(&mut txn, indexes[1], &rows(1))?;
            engine.checkpoint()?;
            txn.rollback()
        },
        &|| {
            // The pages of a tree that was dropped are taken again by a load.
            let mut txn = engine.begin(Isolation::RepeatableRead);
            for key in rows(0).keys() {
                let Op::Done(_) = txn.delete(indexes[0], key)? else { panic!("nobody else writes") };
            }
            txn.commit(b"")?.wait()?;
            while engine.background_step()? > 0 {}
            Ok(())
        },
        &|| {
            let mut txn = engine.begin(Isolation::RepeatableRead);
            let mut load = txn.load(indexes[3])?.expect("empty");
            for (key, value) in rows(3) {
                load.push(&mut txn, &key, &value)?;
            }
            drop(load);
            std::mem::forget(txn);
            Ok(())
        },
        &|| {
            let mut txn = engine.begin(Isolation::RepeatableRead);
            fill(&mut txn, indexes[2], &rows(2))?;
            let Op::Done(_) = txn.insert(indexes[2], b"later", &[1; 100])? else { panic!("nobody else writes") };
            engine.flush_log()?;
            std::mem::forget(txn);
            Ok(())
        },
    ];
    steps.iter().take_while(|step| step().is_ok()).count()
}

#[test]
fn the_power_goes_at_every_write_of_a_load() {
    let begin = |seed| {
        let disk = disk(seed);
        let engine = open(&disk);
        let indexes = [(); 4].map(|()| new_index(&engine));
        (disk, engine, indexes)
    };
    let (whole, engine, indexes) = begin(31);
    let first = whole.changes();
    assert_eq!(loads(&engine, &indexes), 5);
    let last = whole.changes();
    drop(engine);
    let mut full = numbered(260, 150);
    full.insert(b"long".to_vec(), vec![1; 40_000]);
    let rest: Model = [(b"long".to_vec(), vec![1; 40_000])].into();
    for n in first..=last {
        let (disk, engine, indexes) = begin(n);
        disk.power_off_at(n);
        let acknowledged = loads(&engine, &indexes);
        drop(engine);
        let after = disk.crash();
        let engine = open(&after);
        let now = found(&engine, indexes[0]);
        let legal: &[&Model] = match acknowledged {
            0 => &[&Model::new(), &full],
            1 => &[&full],
            2 => &[&full, &rest],
            _ => &[&rest],
        };
        assert!(legal.contains(&&now), "write {n}, {acknowledged} steps: {} rows", now.len());
        sound(&engine, indexes[0], &now);
        for index in &indexes[1..] {
            sound(&engine, *index, &Model::new());
        }
    }
}
