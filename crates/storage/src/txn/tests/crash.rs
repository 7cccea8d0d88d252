//! Crashes on the simulated disk: the power goes at every write of a workload, and what is found afterwards is one of its states.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::error::Error;
use crate::ids::PageId;

/// Pages the extent maps say an index owns.
pub(super) fn pages_owned(engine: &Engine, index: IndexId) -> Vec<PageId> {
    engine.store().space.pages_of(index)
}

/// Every table's rows, by the table's name in the root index.
type State = BTreeMap<String, BTreeMap<String, String>>;

fn state_of(engine: &Engine) -> State {
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let tables = drain(txn.scan(engine.root_index(), Bounds::all(), Direction::Forward));
    tables
        .into_iter()
        .map(|(name, id)| {
            let index = IndexId(u32::from_be_bytes(id.try_into().unwrap()));
            (String::from_utf8(name).unwrap(), all(&mut txn, index).into_iter().collect())
        })
        .collect()
}

fn table(txn: &mut Txn, engine: &Engine, name: &str) -> IndexId {
    let mut id = Vec::new();
    assert!(txn.get_latest(engine.root_index(), name.as_bytes(), &mut id).unwrap());
    IndexId(u32::from_be_bytes(id.try_into().unwrap()))
}

/// A step of the workload: one transaction. `Ok` when it is acknowledged.
type Step = fn(&Engine) -> crate::Result<()>;

fn write(txn: &mut Txn, t: IndexId, key: &str, value: &str) -> crate::Result<()> {
    let Op::Done(inserted) = txn.insert(t, key.as_bytes(), value.as_bytes())? else { panic!("nobody else writes") };
    if inserted == Inserted::Duplicate {
        let Op::Done(true) = txn.update(t, key.as_bytes(), value.as_bytes())? else { panic!("nobody else writes") };
    }
    Ok(())
}

fn delete(txn: &mut Txn, t: IndexId, key: &str) -> crate::Result<()> {
    let Op::Done(true) = txn.delete(t, key.as_bytes())? else { panic!("{key} is there") };
    Ok(())
}

/// Some leaves of rows at once.
fn batch(txn: &mut Txn, t: IndexId, prefix: &str, value: &str) -> crate::Result<()> {
    let rows: Vec<_> = (0..150).map(|n| (format!("{prefix}{n:03}").into_bytes(), value.repeat(n).into_bytes())).collect();
    let rows = SortedRows::from_unsorted(rows);
    let Op::Done(outcome) = txn.insert_batch(t, &rows, 0)? else { panic!("nobody else writes") };
    assert_eq!(outcome, BatchOutcome { inserted: 150, duplicate: false });
    Ok(())
}

fn create(txn: &mut Txn, engine: &Engine, name: &str) -> crate::Result<IndexId> {
    let index = txn.create_index()?;
    let Op::Done(_) = txn.insert(engine.root_index(), name.as_bytes(), &index.0.to_be_bytes())? else { panic!() };
    Ok(index)
}

fn finish(txn: Txn) -> crate::Result<()> {
    txn.commit(b"binlog")?.wait()
}

const STEPS: &[Step] = &[
    |e| {
        let mut txn = e.begin(Isolation::RepeatableRead);
        let t = create(&mut txn, e, "one")?;
        for n in 0..60 {
            write(&mut txn, t, &format!("{n:03}"), &"a".repeat(n * 10))?;
        }
        write(&mut txn, t, "long", &"long".repeat(20_000))?;
        finish(txn)
    },
    |e| {
        let mut txn = e.begin(Isolation::RepeatableRead);
        let t = table(&mut txn, e, "one");
        for n in (0..60).step_by(3) {
            write(&mut txn, t, &format!("{n:03}"), "updated")?;
            delete(&mut txn, t, &format!("{:03}", n + 1))?;
        }
        write(&mut txn, t, "long", &"other".repeat(9_000))?;
        finish(txn)
    },
    |e| {
        e.background_step()?;
        let mut txn = e.begin(Isolation::RepeatableRead);
        let t = table(&mut txn, e, "one");
        write(&mut txn, t, "kept", "x")?;
        let savepoint = txn.savepoint();
        for n in 0..60 {
            write(&mut txn, t, &format!("{n:03}"), "for nothing")?;
        }
        write(&mut txn, t, "long too", &"y".repeat(30_000))?;
        txn.rollback_to(&savepoint)?;
        write(&mut txn, t, "000", "after the savepoint")?;
        finish(txn)
    },
    |e| {
        e.checkpoint()?;
        let mut txn = e.begin(Isolation::RepeatableRead);
        let t = create(&mut txn, e, "never")?;
        for n in 0..200 {
            write(&mut txn, t, &format!("{n:03}"), &"never".repeat(30))?;
        }
        batch(&mut txn, t, "batch", "never")?;
        let one = table(&mut txn, e, "one");
        delete(&mut txn, one, "long")?;
        batch(&mut txn, one, "batch", "never")?;
        e.flush_log()?;
        txn.rollback()
    },
    |e| {
        let mut txn = e.begin(Isolation::RepeatableRead);
        let one = table(&mut txn, e, "one");
        let two = create(&mut txn, e, "two")?;
        for (key, value) in drain(txn.scan(one, Bounds::all(), Direction::Forward)) {
            let (key, value) = (String::from_utf8(key).unwrap(), String::from_utf8(value).unwrap());
            write(&mut txn, two, &key, &value)?;
        }
        batch(&mut txn, two, "batch", "rows ")?;
        delete(&mut txn, e.root_index(), "one")?;
        txn.drop_index(one)?;
        finish(txn)
    },
    |e| {
        while e.background_step()? > 0 {}
        e.checkpoint()?;
        let mut txn = e.begin(Isolation::RepeatableRead);
        let two = table(&mut txn, e, "two");
        write(&mut txn, two, "long", "short")?;
        finish(txn)
    },
    |e| {
        while e.background_step()? > 0 {}
        let mut loser = e.begin(Isolation::RepeatableRead);
        let two = table(&mut loser, e, "two");
        let lost = create(&mut loser, e, "lost")?;
        write(&mut loser, lost, "x", &"lost".repeat(9_000))?;
        for n in 0..60 {
            write(&mut loser, two, &format!("{n:03}"), "lost")?;
        }
        write(&mut loser, two, "long", &"lost".repeat(9_000))?;
        batch(&mut loser, two, "lost", "lost")?;
        e.flush_log()?;
        // The end of the workload finds it open.
        std::mem::forget(loser);
        Ok(())
    },
];

/// Runs until a step fails. Returns how many were acknowledged.
fn run(engine: &Engine) -> usize {
    STEPS.iter().take_while(|step| step(engine).is_ok()).count()
}

/// The states before the first step and after each.
fn expected() -> Vec<State> {
    let engine = open(&disk(7));
    let mut states = vec![state_of(&engine)];
    for step in STEPS {
        step(&engine).unwrap();
        states.push(state_of(&engine));
    }
    assert_eq!(states[3], states[4], "rolled back");
    assert_eq!(states[6], states[7], "left open");
    states
}

/// Every page is owned by a live table's tree or long value, or free.
fn verify_pages(engine: &Engine) {
    while engine.background_step().unwrap() > 0 {}
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let tables = drain(txn.scan(engine.root_index(), Bounds::all(), Direction::Forward));
    let mut known: BTreeSet<IndexId> = [GARBAGE, ROOT].into();
    known.extend(tables.iter().map(|(_, id)| IndexId(u32::from_be_bytes(id.as_slice().try_into().unwrap()))));
    assert_eq!(engine.indexes().into_iter().collect::<BTreeSet<_>>(), known, "no tree that nobody knows");
    for index in known {
        let tree = engine.check(index).unwrap();
        let long: usize = drain(txn.scan(index, Bounds::all(), Direction::Forward))
            .iter()
            .filter(|(k, v)| index != GARBAGE && !crate::page::slotted::fits_inline(k.len(), v.len()))
            .map(|(_, v)| v.len().div_ceil(16384 - 96))
            .sum();
        assert_eq!(pages_owned(engine, index).len(), tree.pages.len() + long, "pages of {index}");
    }
    assert_eq!(engine.check(GARBAGE).unwrap().records, 0, "garbage is gone");
}

const GARBAGE: IndexId = IndexId(1);
const ROOT: IndexId = IndexId(2);

#[test]
fn the_power_goes_at_every_write() {
    let states = expected();
    let whole = disk(7);
    let engine = open(&whole);
    let begin = whole.changes();
    assert_eq!(run(&engine), STEPS.len());
    let end = whole.changes();
    drop(engine);
    println!("writes {begin}..{end}");
    for n in begin + 1..=end + 1 {
        let sector = if n % 2 == 0 { 512 } else { 4096 };
        let disk = SimDisk::new(SimConfig { seed: n, sector, ..SimConfig::default() });
        let engine = open(&disk);
        disk.power_off_at(n);
        let acknowledged = run(&engine);
        assert_eq!(acknowledged < STEPS.len(), n <= end, "write {n} of {end} is reached");
        drop(engine);
        let after = disk.crash();
        let engine = open(&after);
        let found = state_of(&engine);
        let next = (acknowledged + 1).min(STEPS.len());
        assert!(
            found == states[acknowledged] || found == states[next],
            "power off at write {n}: {acknowledged} steps acknowledged, found tables {:?}",
            found.iter().map(|(name, rows)| (name, rows.len())).collect::<Vec<_>>()
        );
        verify_pages(&engine);
        // And it works.
        let mut txn = engine.begin(Isolation::RepeatableRead);
        write(&mut txn, engine.root_index(), "zzz", "\0\0\0\u{2}").unwrap();
        finish(txn).unwrap();
    }
}

/// The disk fails while a change makes room for its record: the row's page has the change already, and the version before it is taken back.
#[test]
fn nobody_is_told_half_a_change_by_an_engine_that_stops() {
    let disk = disk(3);
    let engine = open_with(&disk, Options { log_buffer_bytes: 4096, ..options() }).unwrap();
    let index = new_index(&engine);
    let before = "b".repeat(1500);
    given(&engine, index, &[("k", before.as_str())]);
    let mut reader = engine.begin(Isolation::RepeatableRead);
    assert_eq!(get(&mut reader, index, "k"), Some(before));
    let mut writer = engine.begin(Isolation::RepeatableRead);
    // Less than is written before anybody waits. The next record does not fit beside it.
    put(&mut writer, index, "a", &"a".repeat(1000));
    disk.power_off_at(disk.changes() + 1);
    let changed = writer.update(index, b"k", "c".repeat(2500).as_bytes()).map(drop);
    assert!(disk.is_off() && matches!(changed, Err(Error::Stopped)), "{changed:?}");
    let mut out = Vec::new();
    let read = reader.get(index, b"k", &mut out);
    assert!(matches!(read, Err(Error::Stopped)), "{read:?}");
    let mut scan = reader.scan(index, Bounds::all(), Direction::Forward);
    let scanned = scan.next_leaf(&mut LeafRows::new());
    assert!(matches!(scanned, Err(Error::Stopped)), "{scanned:?}");
}

#[test]
fn a_crash_during_undo_begins_it_again() {
    let states = expected();
    let disk = disk(9);
    let engine = open(&disk);
    assert_eq!(run(&engine), STEPS.len());
    drop(engine);
    // The power goes off at every write of recovery and undo, and again a little later in what comes after.
    for n in 1.. {
        let image = disk.crash();
        image.power_off_at(n);
        let _ = open_with(&image, options()).and_then(|engine| engine.checkpoint());
        let undone = !image.is_off();
        let again = image.crash();
        again.power_off_at(n % 5 + 1);
        drop(open_with(&again, options()));
        let engine = open(&again.crash());
        assert_eq!(state_of(&engine), states[STEPS.len()], "power off at write {n} of undo");
        verify_pages(&engine);
        if undone {
            println!("{n} writes");
            assert!(n > 5, "undo writes");
            break;
        }
    }
}

#[test]
fn losers_keep_their_rows_until_they_are_undone() {
    let disk = disk(11);
    let engine = open(&disk);
    let t = new_index(&engine);
    given(&engine, t, &[("a", "1"), ("b", "1")]);
    let mut loser = engine.begin(Isolation::RepeatableRead);
    put(&mut loser, t, "a", "lost");
    put(&mut loser, t, "a", "lost again");
    assert!(done(loser.delete(t, b"b")));
    put(&mut loser, t, "c", "lost");
    engine.flush_log().unwrap();
    std::mem::forget(loser);
    drop(engine);
    // What open does, up to where the background begins.
    let disk = disk.crash();
    let clock: Arc<dyn crate::Clock> = Arc::new(SystemClock::new());
    let opened = crate::recovery::Store::open(Arc::new(disk.clone()), &options(), &mut |_| {});
    let (store, recovered) = opened.unwrap();
    assert_eq!(recovered.losers.len(), 1);
    let system = Arc::new(System::new(store.clone(), options(), clock, &recovered));
    let losers = system.adopt_losers(&recovered.losers).unwrap();
    store.start(Arc::new(ForCheckpoint(Arc::downgrade(&system))));
    let mut txn = Txn::begin(system.clone(), Isolation::RepeatableRead);
    assert_eq!(all(&mut txn, t), rows(&[("a", "1"), ("b", "1")]));
    let waits = [wait(txn.update(t, b"a", b"2"))];
    let mut left = crate::txn::LeftByCrash { losers: losers.into(), dropped: Vec::new() };
    system.finish_open(&mut left, &crate::sync::AtomicBool::new(false)).unwrap();
    for waiting in waits {
        assert_eq!(waiting.wait(), Ok(()));
    }
    assert!(done(txn.update(t, b"a", b"2")));
    commit(txn);
    assert_eq!(all(&mut Txn::begin(system.clone(), Isolation::RepeatableRead), t), rows(&[("a", "2"), ("b", "1")]));
    store.stop();
}

/// Above the engine a lock keeps a table with open transactions from being dropped; after a crash those have none.
#[test]
fn a_loser_in_a_dropped_tree_is_undone_before_the_tree_is_freed() {
    let disk = disk(21);
    let engine = open(&disk);
    let (dropped, kept) = (new_index(&engine), new_index(&engine));
    given(&engine, dropped, &[("a", "1"), ("b", "2")]);
    given(&engine, kept, &[("a", "1")]);
    let mut loser = engine.begin(Isolation::RepeatableRead);
    put(&mut loser, kept, "a", "lost");
    put(&mut loser, dropped, "a", "lost");
    put(&mut loser, dropped, "c", &"long".repeat(20_000));
    let mut ddl = engine.begin(Isolation::RepeatableRead);
    ddl.drop_index(dropped).unwrap();
    commit(ddl);
    let disk = disk.crash();
    drop(loser);
    let engine = open(&disk);
    assert_eq!((engine.stats().open_transactions, engine.index_exists(dropped)), (0, false));
    assert_eq!(committed(&engine, kept), [("a".to_owned(), "1".to_owned())]);
    // Dropped while the loser is still there: a purge before its end frees nothing.
    assert!(pages_owned(&engine, dropped).is_empty());
}
