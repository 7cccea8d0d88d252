//! Prepared transactions: they outlive crashes, with their rows locked, until somebody ends them.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::crash::pages_owned;
use super::follow::log_bytes;
use super::*;
use crate::ids::Lsn;

type Rows = BTreeMap<String, String>;
/// A key and its new value; none: the row goes.
type Changes = Vec<(String, Option<String>)>;

fn changes(name: &str) -> Changes {
    let key = |n: usize| format!("{name}{n:03}");
    let mut changes = Changes::new();
    for n in (0..30).step_by(3) {
        changes.push((key(n), Some(format!("by {name}"))));
        changes.push((key(n + 1), None));
        changes.push((format!("{name}new{n:03}"), Some("x".repeat(n * 20))));
    }
    // Its own row again, a row of its own that goes, and a value that is replaced twice.
    changes.push((key(0), Some("again".into())));
    changes.push((format!("{name}new000"), None));
    changes.push((format!("{name}long"), Some("first ".repeat(5_000))));
    changes.push((format!("{name}long"), Some("second ".repeat(6_000))));
    changes
}

fn change(txn: &mut Txn, index: IndexId, changes: &Changes) -> crate::Result<()> {
    for (key, value) in changes {
        match value {
            None => assert!(matches!(txn.delete(index, key.as_bytes())?, Op::Done(true))),
            Some(value) => {
                let Op::Done(inserted) = txn.insert(index, key.as_bytes(), value.as_bytes())? else { panic!("nobody else writes") };
                if inserted == Inserted::Duplicate {
                    assert!(matches!(txn.update(index, key.as_bytes(), value.as_bytes())?, Op::Done(true)));
                }
            }
        }
    }
    Ok(())
}

fn apply(rows: &mut Rows, changes: &Changes) {
    for (key, value) in changes {
        match value {
            None => drop(rows.remove(key)),
            Some(value) => drop(rows.insert(key.clone(), value.clone())),
        }
    }
}

/// What there is: committed rows, who is prepared, the events that a follower has seen.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    rows: Rows,
    prepared: Vec<String>,
    events: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Prepare(&'static str),
    Commit(&'static str),
    /// As `Commit`, with a row that was written after the preparation.
    CommitWithMore(&'static str),
    RollBack(&'static str),
    /// Commits of others, so many that prepared ones are copied to the log's end.
    Others(&'static str),
}

const STEPS: &[Step] = &[
    Step::Prepare("a"),
    Step::Others("1"),
    Step::Commit("a"),
    Step::Prepare("b"),
    Step::Prepare("c"),
    Step::Others("2"),
    Step::RollBack("b"),
    Step::CommitWithMore("c"),
    Step::Prepare("d"),
];

fn more(name: &str) -> Changes {
    vec![(format!("{name}more"), Some("more".into()))]
}

/// An engine with what is prepared in it.
struct World {
    engine: Engine,
    index: IndexId,
    prepared: Vec<(String, Prepared)>,
}

const INDEX: IndexId = IndexId(3);

/// A copy is due after little log.
fn small() -> Options {
    Options { redo_log_capacity: 512 << 10, log_segment_bytes: 64 << 10, log_buffer_bytes: 64 << 10, hold_log: true, ..options() }
}

fn given_rows() -> Rows {
    let keys = ["a", "b", "c", "d"].into_iter().flat_map(|name| (0..30).map(move |n| format!("{name}{n:03}")));
    let mut rows: Rows = keys.map(|key| (key.clone(), format!("{key} as it was"))).collect();
    rows.extend(["a", "b", "c", "d"].map(|name| (format!("{name}long"), "long".repeat(10_000))));
    rows
}

impl World {
    fn new(disk: &SimDisk) -> World {
        let engine = open_with(disk, small()).unwrap();
        let index = new_index(&engine);
        assert_eq!(index, INDEX);
        let rows = given_rows();
        given(&engine, index, &rows.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>());
        World { engine, index, prepared: Vec::new() }
    }

    fn open(disk: &SimDisk) -> World {
        let engine = open_with(disk, small()).unwrap();
        let prepared = engine.take_prepared().into_iter().map(|(p, info)| (String::from_utf8(info).unwrap(), p)).collect();
        World { engine, index: INDEX, prepared }
    }

    fn take(&mut self, name: &str) -> Prepared {
        let at = self.prepared.iter().position(|(n, _)| n == name).unwrap();
        self.prepared.remove(at).1
    }

    fn step(&mut self, step: Step) -> crate::Result<()> {
        match step {
            Step::Prepare(name) => {
                let mut txn = self.engine.begin(Isolation::RepeatableRead);
                change(&mut txn, self.index, &changes(name))?;
                txn.log_events(b"part")?;
                let (prepared, wait) = txn.prepare(name.as_bytes().to_vec(), format!("prepare {name}").as_bytes())?;
                self.prepared.push((name.into(), prepared));
                wait.wait()
            }
            Step::Commit(name) => self.take(name).commit(format!("commit {name}").as_bytes())?.wait(),
            Step::CommitWithMore(name) => {
                let mut prepared = self.take(name);
                let index = self.index;
                prepared.add(|txn| change(txn, index, &more(name)))??;
                self.engine.flush_log()?;
                prepared.commit(format!("commit {name}").as_bytes())?.wait()
            }
            Step::RollBack(name) => self.take(name).rollback(format!("rollback {name}").as_bytes())?.wait(),
            Step::Others(name) => {
                // Much log, little that is written: the pages are the same ones.
                let mut txn = self.engine.begin(Isolation::RepeatableRead);
                for n in 0..40 {
                    change(&mut txn, self.index, &vec![("other".into(), Some(name.repeat(4_000 + n)))])?;
                }
                change(&mut txn, self.index, &vec![("other".into(), Some(name.into()))])?;
                txn.commit(name.as_bytes())?.wait()?;
                self.engine.background_step()?;
                self.engine.checkpoint()
            }
        }
    }

    fn state(&self) -> State {
        let mut prepared: Vec<_> = self.prepared.iter().map(|(name, _)| name.clone()).collect();
        prepared.sort();
        let mut follower = self.engine.follow_log(Lsn(64));
        let mut events = Vec::new();
        while let Some(record) = follower.next().unwrap() {
            events.push(String::from_utf8(record.events().to_vec()).unwrap());
        }
        follower.pause();
        State { rows: committed(&self.engine, self.index).into_iter().collect(), prepared, events }
    }

    /// Ends all that is prepared and looks at everything.
    fn finish(mut self, commit: bool, mut rows: Rows) {
        for (name, mut prepared) in std::mem::take(&mut self.prepared) {
            let (id, changed) = (prepared.id(), changes(&name));
            // Its rows are locked, each of them, and nobody sees anything of them.
            let mut other = self.engine.begin(Isolation::RepeatableRead);
            let mut before = self.engine.begin(Isolation::RepeatableRead);
            assert_eq!(all(&mut before, self.index).into_iter().collect::<Rows>(), rows);
            for (key, _) in &changed {
                let locked = other.lock(self.index, key.as_bytes(), LockMode::Exclusive, LockWaitPolicy::NoWait).unwrap();
                assert!(matches!(locked, Op::Done(Locked::WouldBlock)), "{key} is locked by {id:?}");
            }
            drop(other);
            if commit {
                prepared.commit(b"").unwrap().wait().unwrap();
                assert_eq!(all(&mut before, self.index).into_iter().collect::<Rows>(), rows, "a snapshot from before");
                apply(&mut rows, &changed);
            } else {
                prepared.rollback(b"").unwrap().wait().unwrap();
            }
            assert_eq!(committed(&self.engine, self.index).into_iter().collect::<Rows>(), rows);
        }
        purge_all(&self.engine);
        assert_eq!(self.engine.stats().open_transactions, 0);
        // What it replaced is gone: the tree has the rows that there are, and only they have long values.
        let tree = self.engine.check(self.index).unwrap();
        let long: usize = rows.iter().filter(|(k, v)| !crate::page::slotted::fits_inline(k.len(), v.len())).map(|(_, v)| v.len().div_ceil(16384 - 96)).sum();
        assert_eq!((tree.records, pages_owned(&self.engine, self.index).len()), (rows.len() as u64, tree.pages.len() + long));
        let disk = self.engine.disk().clone();
        drop(self);
        let again = Engine::open(disk, small(), Arc::new(SystemClock::new())).unwrap();
        assert!(again.take_prepared().is_empty());
        assert_eq!(committed(&again, INDEX).into_iter().collect::<Rows>(), rows);
    }
}

/// The states before the first step and after each.
fn expected() -> Vec<State> {
    let mut state = State { rows: given_rows(), ..State::default() };
    let mut states = vec![state.clone()];
    for step in STEPS {
        match step {
            Step::Prepare(name) => {
                state.prepared.push(name.to_string());
                state.prepared.sort();
                state.events.push(format!("prepare {name}"));
            }
            Step::Commit(name) | Step::CommitWithMore(name) | Step::RollBack(name) => {
                state.prepared.retain(|n| n != name);
                if !matches!(step, Step::RollBack(_)) {
                    apply(&mut state.rows, &changes(name));
                }
                if matches!(step, Step::CommitWithMore(_)) {
                    apply(&mut state.rows, &more(name));
                }
                state.events.push(format!("{} {name}", if matches!(step, Step::RollBack(_)) { "rollback" } else { "commit" }));
            }
            Step::Others(name) => {
                state.rows.insert("other".into(), name.to_string());
                state.events.push(name.to_string());
            }
        }
        states.push(state.clone());
    }
    states
}

#[test]
fn the_power_goes_at_every_write_of_two_phases() {
    let states = expected();
    let whole = disk(31);
    let mut world = World::new(&whole);
    let begin = whole.changes();
    for (step, state) in STEPS.iter().zip(&states[1..]) {
        world.step(*step).unwrap();
        assert_eq!(world.state(), *state, "after {step:?}");
    }
    let end = whole.changes();
    drop(world);
    println!("writes {begin}..{end}");
    for n in begin + 1..=end + 1 {
        let disk = SimDisk::new(SimConfig { seed: n, sector: if n % 2 == 0 { 512 } else { 4096 }, ..SimConfig::default() });
        let mut world = World::new(&disk);
        disk.power_off_at(n);
        let acknowledged = STEPS.iter().take_while(|step| world.step(**step).is_ok()).count();
        assert_eq!(acknowledged < STEPS.len(), n <= end, "write {n} of {end} is reached");
        drop(world);
        let crashed = disk.crash();
        if n % 3 == 0 {
            // Once more while it recovers.
            crashed.power_off_at(n % 7 + 1);
            drop(open_with(&crashed, small()));
        }
        let world = World::open(&crashed.crash());
        let found = world.state();
        let next = (acknowledged + 1).min(STEPS.len());
        assert!(
            found == states[acknowledged] || found == states[next],
            "power off at write {n}: {acknowledged} steps acknowledged, found {:?} prepared and {:?}",
            found.prepared,
            found.events
        );
        world.finish(n % 2 == 0, found.rows);
    }
}

#[test]
fn a_rollback_of_what_is_prepared_begins_again_after_a_crash() {
    let disk = disk(33);
    let mut world = World::new(&disk);
    world.step(Step::Prepare("a")).unwrap();
    world.step(Step::Others("1")).unwrap();
    let mut rows = given_rows();
    rows.insert("other".into(), "1".into());
    drop(world);
    for n in 1.. {
        let image = disk.crash();
        let mut world = World::open(&image);
        image.power_off_at(n);
        let done = world.step(Step::RollBack("a")).is_ok() && world.engine.checkpoint().is_ok();
        drop(world);
        let world = World::open(&image.crash());
        assert!(!done || world.prepared.is_empty());
        let told = world.state().events.iter().any(|event| event == "rollback a");
        assert_eq!(told, world.prepared.is_empty(), "rolled back if the log says so, and only then");
        assert_eq!(committed(&world.engine, world.index).into_iter().collect::<Rows>(), rows);
        world.finish(false, rows.clone());
        if done {
            assert!(n > 3, "undo writes");
            break;
        }
    }
}

#[test]
fn what_is_prepared_for_long_does_not_keep_the_log() {
    let disk = disk(35);
    let mut world = World::new(&disk);
    world.engine.release_log(None);
    world.step(Step::Prepare("a")).unwrap();
    for _ in 0..40 {
        world.step(Step::Others("1")).unwrap();
    }
    let kept = log_bytes(&disk);
    assert!(kept < 2 * small().redo_log_capacity, "{kept} bytes");
    drop(world);
    let mut rows = given_rows();
    rows.insert("other".into(), "1".into());
    World::open(&disk.crash()).finish(true, rows);
}

#[test]
fn locks_of_what_was_only_read_last_until_the_engine_ends() {
    let disk = disk(37);
    let mut world = World::new(&disk);
    let index = world.index;
    let mut txn = world.engine.begin(Isolation::RepeatableRead);
    assert!(matches!(done(txn.lock(index, b"b000", LockMode::Shared, LockWaitPolicy::Wait)), Locked::Yes(_)));
    drain(txn.scan_latest(index, Bounds::new(Bound::Included(b"c".to_vec()), Bound::Excluded(b"d".to_vec())), Direction::Forward, LockMode::Exclusive, None));
    put(&mut txn, index, "a000", "prepared");
    let (prepared, wait) = txn.prepare(b"x".to_vec(), b"").unwrap();
    wait.wait().unwrap();
    world.prepared.push(("x".into(), prepared));
    let blocked = |world: &World| {
        let mut other = world.engine.begin(Isolation::RepeatableRead);
        let changed = [other.update(index, b"a000", b"2"), other.update(index, b"b000", b"2")].map(|op| matches!(op.unwrap(), Op::Wait(_)));
        let inserted = matches!(other.insert(index, b"c0005", b"").unwrap(), Op::Wait(_));
        [changed[0], changed[1], inserted]
    };
    assert_eq!(blocked(&world), [true; 3]);
    drop(world);
    assert_eq!(blocked(&World::open(&disk.crash())), [true, false, false]);
}

/// A transaction whose undo is of every kind: rows, long values one behind the other, an index that it makes, and one that it loads.
fn prepare_everything(world: &mut World) -> (IndexId, IndexId) {
    let mut txn = world.engine.begin(Isolation::RepeatableRead);
    let loaded = txn.create_index().unwrap();
    let made = new_index(&world.engine);
    change(&mut txn, world.index, &changes("a")).unwrap();
    for n in 0..6 {
        put(&mut txn, world.index, &format!("b{n:03}"), &"several ".repeat(8_000));
    }
    for index in [loaded, made] {
        let mut load = txn.load(index).unwrap().expect("the index is empty");
        for n in 0..40_u64 {
            load.push(&mut txn, &n.to_be_bytes(), &vec![7; if n % 9 == 0 { 40_000 } else { 100 }]).unwrap();
        }
        load.finish(&mut txn, |_, _| panic!("nobody else writes")).unwrap();
        for n in 6..9 {
            put(&mut txn, world.index, &format!("b{n:03}"), &"more ".repeat(8_000));
        }
    }
    let (prepared, wait) = txn.prepare(b"a".to_vec(), b"").unwrap();
    wait.wait().unwrap();
    world.prepared.push(("a".into(), prepared));
    (loaded, made)
}

/// Nothing of it is left.
fn assert_rolled_back(world: World, (loaded, made): (IndexId, IndexId), rows: &Rows) {
    assert!(!world.engine.index_exists(loaded), "what it made is gone");
    purge_all(&world.engine);
    let size = world.engine.index_size(made).unwrap();
    assert_eq!((committed(&world.engine, made).len(), size.pages_used), (0, 1), "what it loaded is empty, its pages are free");
    world.finish(false, rows.clone());
}

/// Reads fail, one after the other, while it is rolled back. The decision stands from its record on: it cannot be committed, the next call goes
/// on with the undo, and so does a restart; and what may be undone only once is.
#[test]
fn a_rollback_that_meets_an_error_goes_on() {
    let disk = disk(41);
    let mut world = World::new(&disk);
    let indexes = prepare_everything(&mut world);
    let mut rows = given_rows();
    for _ in 0..3 {
        world.step(Step::Others("1")).unwrap();
        rows.insert("other".into(), "1".into());
    }
    let copied = world.prepared[0].1.lsn();
    assert!(world.engine.store().wal.read(copied).unwrap().prepared().0 > Lsn::NONE, "it lives from a copy");
    drop(world);
    let (mut decided, mut before) = (0, 0);
    for n in 1.. {
        let image = disk.crash();
        let mut world = World::open(&image);
        let mut prepared = world.take("a");
        image.fail_read_in(Some(n));
        let first = prepared.rollback(b"rollback a");
        let met = !image.fail_read_in(None);
        if !met {
            first.unwrap().wait().unwrap();
            drop(prepared);
            assert_rolled_back(world, indexes, &rows);
            break;
        }
        // Reads that only look ahead may fail.
        if first.is_err() && !prepared.is_rolled_back() {
            before += 1;
            assert_eq!(world.engine.stats().open_transactions, 1);
        }
        let undecided = !prepared.is_rolled_back();
        decided += u64::from(first.is_err() && !undecided);
        drop(first);
        if n % 2 == 0 {
            prepared.rollback(b"rollback a").unwrap().wait().unwrap();
            drop(prepared);
        } else {
            world.engine.flush_log().unwrap();
            drop((prepared, world));
            world = World::open(&image.crash());
            assert_eq!(world.prepared.len(), usize::from(undecided), "read {n}: decided is decided");
            for (_, mut prepared) in std::mem::take(&mut world.prepared) {
                prepared.rollback(b"rollback a").unwrap().wait().unwrap();
            }
        }
        let told = world.state().events.iter().filter(|event| *event == "rollback a").count();
        assert_eq!(told, 1, "read {n}: the decision is logged once");
        assert_rolled_back(world, indexes, &rows);
    }
    assert!(decided > 10, "{decided} errors behind the decision, {before} before it");
}

#[test]
#[should_panic(expected = "P1")]
fn what_is_to_be_rolled_back_is_not_committed() {
    let disk = disk(42);
    let mut world = World::new(&disk);
    world.step(Step::Prepare("a")).unwrap();
    drop(world);
    let image = disk.crash();
    let mut prepared = World::open(&image).take("a");
    image.fail_read_in(Some(1));
    assert!(prepared.rollback(b"").is_err() && prepared.is_rolled_back());
    let _ = prepared.commit(b"");
}

/// Forty rows, some of them long.
fn put_forty(txn: &mut Txn, index: IndexId, from: u32) {
    for n in from..from + 40 {
        put(txn, index, &format!("{n:05}"), &"long ".repeat(if n % 3 == 0 { 8_000 } else { 200 }));
    }
}

/// Nothing is left but the rows that `put_forty` puts from 0 on, and the pages of these, after the read of that number has failed.
fn assert_first_forty(engine: &Engine, index: IndexId, read: u64) {
    let tree = engine.check(index).unwrap();
    let long = (0..40).filter(|n| n % 3 == 0).count() * 40_000_usize.div_ceil(16384 - 96);
    assert_eq!((tree.records, pages_owned(engine, index).len()), (40, tree.pages.len() + long), "read {read}");
}

/// As `a_rollback_that_meets_an_error_goes_on`, of a part of a transaction that goes on, and of a transaction that is dropped.
#[test]
fn a_rollback_to_a_savepoint_that_meets_an_error_goes_on() {
    let options = Options { buffer_pool_bytes: 1 << 20, ..small() };
    let mut met = 0;
    for n in 1.. {
        let disk = disk(43);
        let engine = open_with(&disk, options.clone()).unwrap();
        let index = new_index(&engine);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        put_forty(&mut txn, index, 0);
        let savepoint = txn.savepoint();
        put_forty(&mut txn, index, 100);
        disk.fail_read_in(Some(n));
        let first = txn.rollback_to(&savepoint);
        if !disk.fail_read_in(None) && first.is_err() {
            met += 1;
            txn.rollback_to(&savepoint).unwrap();
        }
        if n % 2 == 0 {
            disk.fail_read_in(Some(n));
            let _ = txn.rollback();
            disk.fail_read_in(None);
            purge_all(&engine);
            assert_eq!(engine.stats().open_transactions, 0);
            assert_eq!((committed(&engine, index).len(), engine.index_size(index).unwrap().pages_used), (0, 1));
        } else {
            commit(txn);
            purge_all(&engine);
            assert_first_forty(&engine, index, n);
        }
        if first.is_ok() {
            break;
        }
    }
    assert!(met > 10, "{met} errors");
}

/// A crash comes between what is added to a prepared transaction and its commit. The transaction is copied as before.
#[test]
fn what_was_added_before_a_crash_does_not_keep_the_log() {
    for crash in [true, false] {
        let disk = disk(44);
        let mut world = World::new(&disk);
        world.step(Step::Prepare("a")).unwrap();
        let index = world.index;
        let mut prepared = world.take("a");
        prepared.add(|txn| change(txn, index, &more("a"))).unwrap().unwrap();
        if crash {
            world.engine.flush_log().unwrap();
            drop((prepared, world));
            world = World::open(&disk.crash());
        } else {
            // Its commit was refused.
            prepared.forget_added().unwrap();
            world.prepared.push(("a".into(), prepared));
        }
        world.engine.release_log(None);
        let begin = world.prepared[0].1.lsn();
        for _ in 0..40 {
            world.step(Step::Others("1")).unwrap();
        }
        assert!(world.prepared[0].1.lsn() > begin, "it was copied");
        let oldest = world.engine.store().wal.end().0 - world.engine.system().locks.owners.oldest_lsn().unwrap();
        assert!(oldest < small().redo_log_capacity, "{oldest} bytes of log are kept");
        let mut rows = given_rows();
        rows.insert("other".into(), "1".into());
        world.finish(crash, rows);
    }
}

/// Reads fail, one after the other, while what was added is undone, as its commit was refused. The next commit is one of what was prepared, and of no half of that.
#[test]
fn what_could_not_be_undone_is_not_committed() {
    let options = Options { buffer_pool_bytes: 1 << 20, ..small() };
    let mut met = 0;
    for n in 1.. {
        let disk = disk(50);
        let engine = open_with(&disk, options.clone()).unwrap();
        let index = new_index(&engine);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        put_forty(&mut txn, index, 0);
        let (mut prepared, wait) = txn.prepare(b"a".to_vec(), b"").unwrap();
        wait.wait().unwrap();
        prepared.add(|txn| put_forty(txn, index, 100)).unwrap();
        disk.fail_read_in(Some(n));
        let first = prepared.forget_added();
        if !disk.fail_read_in(None) && first.is_err() {
            met += 1;
            // The next try may meet an error too.
            disk.fail_read_in(Some(1));
            let wait = prepared.commit(b"").or_else(|_| {
                disk.fail_read_in(None);
                prepared.commit(b"")
            });
            disk.fail_read_in(None);
            wait.unwrap().wait().unwrap();
        } else {
            prepared.commit(b"").unwrap().wait().unwrap();
        }
        drop(prepared);
        assert_eq!(committed(&engine, index).len(), 40, "read {n}");
        purge_all(&engine);
        assert_first_forty(&engine, index, n);
        if first.is_ok() {
            break;
        }
    }
    assert!(met > 5, "{met} errors");
}

/// The log is full, pinned by what is prepared: that can be ended, which frees the log.
#[test]
fn a_full_log_does_not_keep_what_is_prepared_from_its_end() {
    let options = Options { pinned_log_max: 64 << 10, hold_log: false, ..small() };
    for end in [Step::Commit("a"), Step::CommitWithMore("a"), Step::RollBack("a")] {
        let disk = disk(45);
        let engine = open_with(&disk, options.clone()).unwrap();
        let mut world = World { index: new_index(&engine), engine, prepared: Vec::new() };
        let rows = given_rows();
        given(&world.engine, world.index, &rows.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>());
        world.step(Step::Prepare("a")).unwrap();
        // Nobody copies it.
        let full = |world: &World| {
            (0..1000).any(|n| {
                let mut txn = world.engine.begin(Isolation::RepeatableRead);
                let changed = change(&mut txn, world.index, &vec![("other".into(), Some("x".repeat(8_000 + n % 2)))]);
                match changed {
                    Ok(()) => commit(txn),
                    Err(crate::Error::LogFull) => return true,
                    Err(other) => panic!("{other}"),
                }
                world.engine.checkpoint().unwrap();
                false
            })
        };
        assert!(full(&world), "{end:?}");
        world.step(end).unwrap();
        world.engine.checkpoint().unwrap();
        let mut txn = world.engine.begin(Isolation::RepeatableRead);
        put(&mut txn, world.index, "other", "there is room again");
        commit(txn);
        let rows: Rows = committed(&world.engine, world.index).into_iter().collect();
        assert_eq!(rows.contains_key("amore"), matches!(end, Step::CommitWithMore(_)));
        assert_eq!(rows["a000"] == "again", !matches!(end, Step::RollBack(_)));
    }
}

/// As above, of a disk that has no room for another log file. Others leave what is left to those who end.
#[test]
fn a_full_disk_does_not_keep_what_is_prepared_from_its_end() {
    use crate::disk::Disk;
    for end in [Step::Commit("a"), Step::RollBack("a")] {
        let disk = SimDisk::new(SimConfig { seed: 46, capacity: 32 << 20, ..SimConfig::default() });
        let mut world = World::new(&disk);
        world.step(Step::Prepare("a")).unwrap();
        let ballast = disk.open("ballast", true).unwrap();
        while ballast.allocate(ballast.len().unwrap() + 4096).is_ok() {}
        let full = (0..1000).any(|n| {
            let mut txn = world.engine.begin(Isolation::RepeatableRead);
            match change(&mut txn, world.index, &vec![("other".into(), Some("x".repeat(8_000 + n % 2)))]).and_then(|()| txn.commit(b"events")) {
                Ok(wait) => wait.wait().map(|()| false).unwrap(),
                Err(crate::Error::OutOfSpace) => true,
                Err(other) => panic!("{other}"),
            }
        });
        assert!(full, "{end:?}");
        world.step(end).unwrap();
        assert!(world.prepared.is_empty());
        drop(world);
        let world = World::open(&disk.crash());
        assert!(world.prepared.is_empty());
        assert_eq!(committed(&world.engine, world.index).into_iter().collect::<Rows>()["a000"] == "again", matches!(end, Step::Commit(_)));
    }
}

/// A copy that was begun before its transaction was ended does not bring it back.
#[test]
fn a_copy_does_not_outlive_its_transaction() {
    for end in [Step::Commit("a"), Step::RollBack("a"), Step::CommitWithMore("a")] {
        let disk = disk(47);
        let mut world = World::new(&disk);
        world.step(Step::Prepare("a")).unwrap();
        let system = world.engine.system();
        system.copy_around(|| {
            // The copy is made, and does not count yet.
            if let Step::CommitWithMore(_) = end {
                let mut prepared = world.prepared.pop().unwrap().1;
                let index = world.index;
                prepared.add(|txn| change(txn, index, &more("a"))).unwrap().unwrap();
                world.prepared.push(("a".into(), prepared));
            } else {
                let mut prepared = world.prepared.pop().unwrap().1;
                match end {
                    Step::Commit(_) => prepared.commit(b"").unwrap().wait().unwrap(),
                    _ => prepared.rollback(b"").unwrap().wait().unwrap(),
                }
            }
        });
        world.engine.flush_log().unwrap();
        drop(world);
        let world = World::open(&disk.crash());
        let left = matches!(end, Step::CommitWithMore(_));
        assert_eq!(world.prepared.len(), usize::from(left), "{end:?}");
        let mut rows = given_rows();
        if let Step::Commit(_) = end {
            apply(&mut rows, &changes("a"));
        }
        // Marks of deletions that the crash has made unknown are found by a scan.
        committed(&world.engine, world.index);
        world.finish(false, rows);
    }
}

/// Each begins a record, as it did in the transaction's own: a crash in the middle of a record's undo begins with the record's last entry again.
#[test]
fn what_may_be_undone_only_once_begins_a_record_of_a_copy() {
    use crate::txn::undo::Undo;
    let mut world = World::new(&disk(48));
    prepare_everything(&mut world);
    for _ in 0..3 {
        world.step(Step::Others("1")).unwrap();
    }
    let wal = &world.engine.store().wal;
    let mut next = wal.read(world.prepared[0].1.lsn()).unwrap().prev_lsn;
    let mut once = BTreeMap::new();
    while !next.is_none() {
        let record = wal.read(next).unwrap();
        assert_eq!(record.kind, crate::wal::Kind::Undo);
        for (n, entry) in Undo::decode(record.undo()).unwrap().iter().enumerate() {
            let kind = match entry {
                Undo::Row { .. } | Undo::Load { .. } => continue,
                Undo::Run { .. } => "run",
                Undo::Pages { .. } => "pages",
                Undo::Tree { .. } => "tree",
            };
            assert_eq!(n, 0, "a {kind} is the first of its record");
            *once.entry(kind).or_insert(0) += 1;
        }
        next = record.prev_lsn;
    }
    assert!(once["run"] > 10 && once["tree"] == 1, "{once:?}");
}

/// The value that it replaced is kept for snapshots from before its commit, though an earlier life of the engine entered it as garbage.
#[test]
fn what_a_recovered_transaction_replaced_is_kept_while_somebody_reads_it() {
    let disk = disk(49);
    let mut world = World::new(&disk);
    world.step(Step::Prepare("a")).unwrap();
    drop(world);
    let mut world = World::open(&disk.crash());
    let mut before = world.engine.begin(Isolation::RepeatableRead);
    assert_eq!(all(&mut before, world.index).into_iter().collect::<Rows>(), given_rows());
    world.take("a").commit(b"").unwrap().wait().unwrap();
    // The open's last step may be as late as this.
    world.engine.system().purge_old_garbage().unwrap();
    // Pages that were freed are somebody else's.
    let mut txn = world.engine.begin(Isolation::RepeatableRead);
    for n in 0..60 {
        put(&mut txn, world.index, &format!("cnew{n:03}"), &"other ".repeat(2_000));
    }
    assert_eq!(all(&mut before, world.index).into_iter().collect::<Rows>(), given_rows());
    txn.rollback().unwrap();
    drop(before);
    let mut rows = given_rows();
    apply(&mut rows, &changes("a"));
    world.finish(false, rows);
}
