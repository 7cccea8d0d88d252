//! Random transactions, interleaved, against an oracle that keeps every version of every key.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

type Key = u16;
type Value = Option<u32>;

fn key_bytes(key: Key) -> Vec<u8> {
    // Some keys are long, so that leaves are few rows and split.
    let mut bytes = key.to_be_bytes().to_vec();
    bytes.resize(2 + (key as usize % 5) * 60, b'k');
    bytes
}

fn value_bytes(value: u32) -> Vec<u8> {
    let len = match value % 40 {
        0 => 20_000,
        n => n as usize * 20 + 4,
    };
    let mut bytes = value.to_be_bytes().to_vec();
    bytes.resize(len, b'v');
    bytes
}

fn value_of(bytes: &[u8]) -> u32 {
    let value = u32::from_be_bytes(bytes[..4].try_into().unwrap());
    assert_eq!(bytes, value_bytes(value), "a value is whole");
    value
}

/// Everything committed: for each key its versions with their commit's number.
#[derive(Default)]
struct Oracle {
    versions: BTreeMap<Key, Vec<(u64, Value)>>,
    commits: u64,
}

impl Oracle {
    fn at(&self, key: Key, commit: u64) -> Value {
        self.versions.get(&key)?.iter().rev().find(|(c, _)| *c <= commit)?.1
    }
}

/// One open transaction and what it should see.
struct Session {
    txn: Txn,
    level: Isolation,
    snapshot: Option<u64>,
    writes: BTreeMap<Key, Value>,
    /// Keys written at some time, also if a savepoint took it back: others may have to wait for those.
    touched: BTreeSet<Key>,
    savepoints: Vec<(Savepoint, BTreeMap<Key, Value>)>,
}

impl Session {
    fn begin(engine: &Engine, level: Isolation) -> Session {
        let txn = engine.begin(level);
        Session { txn, level, snapshot: None, writes: BTreeMap::new(), touched: BTreeSet::new(), savepoints: Vec::new() }
    }

    fn sees(&mut self, oracle: &Oracle, key: Key) -> Value {
        let snapshot = *self.snapshot.get_or_insert(oracle.commits);
        self.writes.get(&key).copied().unwrap_or_else(|| oracle.at(key, snapshot))
    }

    fn latest(&self, oracle: &Oracle, key: Key) -> Value {
        self.writes.get(&key).copied().unwrap_or_else(|| oracle.at(key, oracle.commits))
    }
}

struct World {
    disk: crate::disk::SimDisk,
    engine: Engine,
    t: IndexId,
    oracle: Oracle,
    sessions: Vec<Session>,
    next_value: u32,
}

const KEYS: Key = 120;

impl World {
    /// Another session's uncommitted write is in the way, certainly or (after a savepoint) perhaps.
    fn blocked(&self, me: usize, key: Key) -> (bool, bool) {
        let others = || self.sessions.iter().enumerate().filter(|(n, _)| *n != me).map(|(_, s)| s);
        (others().any(|s| s.writes.contains_key(&key)), others().any(|s| s.touched.contains(&key)))
    }

    fn write(&mut self, me: usize, key: Key, kind: u32) {
        let value = self.next_value;
        self.next_value += 1;
        let bytes = key_bytes(key);
        let (must, may) = self.blocked(me, key);
        let old = self.sessions[me].latest(&self.oracle, key);
        let txn = &mut self.sessions[me].txn;
        let outcome = match kind {
            0 => match txn.insert(self.t, &bytes, &value_bytes(value)).unwrap() {
                Op::Wait(_) => None,
                Op::Done(Inserted::Yes) => Some((old.is_none(), true, Some(value))),
                Op::Done(Inserted::Duplicate) => Some((old.is_some(), false, None)),
            },
            1 => match txn.update(self.t, &bytes, &value_bytes(value)).unwrap() {
                Op::Wait(_) => None,
                Op::Done(done) => Some((old.is_some() == done, done, Some(value))),
            },
            _ => match txn.delete(self.t, &bytes).unwrap() {
                Op::Wait(_) => None,
                Op::Done(done) => Some((old.is_some() == done, done, None)),
            },
        };
        match outcome {
            None => {
                assert!(may, "waited for nobody");
                // The waiter has made the holder's lock explicit: it stays, whatever the holder takes back.
            }
            Some((right, changed, value)) => {
                assert!(!must, "went ahead of another's uncommitted write");
                assert!(right, "key {key}: the oracle says {old:?}");
                if changed {
                    self.sessions[me].writes.insert(key, value);
                    self.sessions[me].touched.insert(key);
                }
            }
        }
    }

    fn read(&mut self, me: usize, key: Key) {
        let session = &mut self.sessions[me];
        let expected = session.sees(&self.oracle, key);
        let mut out = Vec::new();
        let found = session.txn.get(self.t, &key_bytes(key), &mut out).unwrap().then(|| value_of(&out));
        assert_eq!(found, expected, "key {key}");
        let expected = session.latest(&self.oracle, key);
        let found = session.txn.get_latest(self.t, &key_bytes(key), &mut out).unwrap().then(|| value_of(&out));
        assert_eq!(found, expected, "latest of key {key}");
    }

    fn scan(&mut self, me: usize, from: Key, to: Key, direction: Direction) {
        let session = &mut self.sessions[me];
        // An empty range takes the snapshot too.
        session.snapshot.get_or_insert(self.oracle.commits);
        let mut expected: Vec<(Vec<u8>, u32)> =
            (from..to).filter_map(|k| session.sees(&self.oracle, k).map(|v| (key_bytes(k), v))).collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        let bounds = Bounds::new(
            std::ops::Bound::Included(from.to_be_bytes().to_vec()),
            std::ops::Bound::Excluded(to.to_be_bytes().to_vec()),
        );
        let found = drain(session.txn.scan(self.t, bounds, direction));
        let found: Vec<_> = found.into_iter().map(|(k, v)| (k, value_of(&v))).collect();
        if found != expected {
            let number = |(k, v): &(Vec<u8>, u32)| (u16::from_be_bytes([k[0], k[1]]), *v);
            let wrong = |a: &[(Vec<u8>, u32)], b: &[(Vec<u8>, u32)]| -> Vec<(u16, u32)> {
                a.iter().filter(|row| !b.contains(row)).map(number).collect()
            };
            let (extra, missing) = (wrong(&found, &expected), wrong(&expected, &found));
            panic!("scan {from}..{to} {direction:?}: extra {extra:?}, missing {missing:?}");
        }
    }

    fn commit(&mut self, me: usize) {
        let session = self.sessions.swap_remove(me);
        commit(session.txn);
        if !session.writes.is_empty() {
            self.oracle.commits += 1;
            for (key, value) in session.writes {
                self.oracle.versions.entry(key).or_default().push((self.oracle.commits, value));
            }
        }
    }

    fn step(&mut self, rng: &mut SmallRng) {
        if self.sessions.len() < 6 && rng.random_ratio(1, 8) {
            let levels = [Isolation::ReadCommitted, Isolation::RepeatableRead];
            self.sessions.push(Session::begin(&self.engine, levels[rng.random_range(0..2)]));
        }
        if self.sessions.is_empty() {
            return;
        }
        let me = rng.random_range(0..self.sessions.len());
        let key = rng.random_range(0..KEYS);
        match rng.random_range(0..100) {
            0..25 => self.write(me, key, 0),
            25..45 => self.write(me, key, 1),
            45..60 => self.write(me, key, 2),
            60..75 => self.read(me, key),
            75..79 => {
                let to = rng.random_range(key..=KEYS);
                let direction = if rng.random() { Direction::Forward } else { Direction::Backward };
                self.scan(me, key, to, direction);
            }
            79..83 => {
                let session = &mut self.sessions[me];
                let savepoint = session.txn.savepoint();
                session.savepoints.push((savepoint, session.writes.clone()));
            }
            83..86 => {
                let session = &mut self.sessions[me];
                if !session.savepoints.is_empty() {
                    let n = rng.random_range(0..session.savepoints.len());
                    session.savepoints.truncate(n + 1);
                    let (savepoint, writes) = session.savepoints[n].clone();
                    session.txn.rollback_to(&savepoint).unwrap();
                    session.writes = writes;
                }
            }
            86..90 => {
                let session = &mut self.sessions[me];
                session.txn.begin_statement();
                if session.level == Isolation::ReadCommitted {
                    session.snapshot = None;
                }
            }
            90..94 => self.commit(me),
            94..96 => self.sessions.swap_remove(me).txn.rollback().unwrap(),
            96..99 => {
                self.engine.background_step().unwrap();
            }
            _ => self.engine.checkpoint().unwrap(),
        }
    }

    fn verify(&mut self) {
        self.sessions.push(Session::begin(&self.engine, Isolation::RepeatableRead));
        self.scan(self.sessions.len() - 1, 0, KEYS, Direction::Forward);
        self.sessions.pop();
        self.engine.check(self.t).unwrap();
    }
}

fn run(seed: u64, steps: usize, version_bytes: Option<u64>) {
    println!("seed {seed}, {version_bytes:?} for versions");
    let open = |disk: &crate::disk::SimDisk| open_with(disk, Options { version_bytes, ..options() }).unwrap();
    let mut rng = SmallRng::seed_from_u64(seed);
    let disk = disk(seed);
    let engine = open(&disk);
    let t = new_index(&engine);
    let mut world = World { disk, engine, t, oracle: Oracle::default(), sessions: Vec::new(), next_value: 1 };
    for _ in 0..4 {
        for _ in 0..steps {
            world.step(&mut rng);
        }
        world.verify();
        // A crash in the middle of everything: what was committed is there, what was open is not.
        let sessions = std::mem::take(&mut world.sessions);
        if rng.random() {
            world.engine.flush_log().unwrap();
        }
        sessions.into_iter().for_each(|s| std::mem::forget(s.txn));
        let World { disk, engine, oracle, next_value, .. } = world;
        drop(engine);
        let disk = disk.crash();
        world = World { engine: open(&disk), disk, t, oracle, sessions: Vec::new(), next_value };
        world.verify();
    }
    while world.engine.background_step().unwrap() > 0 {}
    let stats = world.engine.stats();
    assert_eq!((stats.versions, stats.version_bytes, stats.version_scratch_bytes), (0, 0, 0));
    assert_eq!(world.engine.check(super::super::system::GARBAGE_INDEX).unwrap().records, 0);
    let rows = committed_len(&world);
    assert_eq!(world.engine.check(t).unwrap().records, rows);
}

fn committed_len(world: &World) -> u64 {
    let mut txn = world.engine.begin(Isolation::RepeatableRead);
    drain(txn.scan(world.t, Bounds::all(), Direction::Forward)).len() as u64
}

#[test]
fn random_transactions_agree_with_the_oracle() {
    for seed in 0..6 {
        run(seed, 700, None);
    }
    run(rand::random(), 700, None);
}

/// With nearly all older versions on disk.
#[test]
fn random_transactions_agree_with_the_oracle_without_memory_for_versions() {
    for seed in 0..6 {
        run(seed, 700, Some(seed * 3000));
    }
    run(rand::random(), 700, Some(0));
    run(rand::random(), 2000, Some(20_000));
}
