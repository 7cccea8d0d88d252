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
                prepared.add(|txn| change(txn, index, &more(name)))?;
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
