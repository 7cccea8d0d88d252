//! Views of every age: what none of them sees goes, what one of them sees stays.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use Isolation::*;

type Rows = BTreeMap<String, String>;

fn read_all(txn: &mut Txn, t: IndexId) -> Rows {
    all(txn, t).into_iter().collect()
}

fn purge_to_the_end(engine: &Engine, t: IndexId, rows: usize) {
    purge_all(engine);
    let stats = engine.stats();
    assert_eq!((stats.versions, stats.version_bytes, stats.version_scratch_bytes, stats.history_length), (0, 0, 0, 0));
    assert_eq!(engine.check(t).unwrap().records, rows as u64);
}

/// A transaction under way and what it has changed.
struct Writing {
    txn: Txn,
    changes: BTreeMap<String, Option<String>>,
    savepoint: Option<(Savepoint, BTreeMap<String, Option<String>>)>,
}

struct World {
    engine: Engine,
    t: IndexId,
    rng: SmallRng,
    /// What is committed.
    now: Rows,
    readers: Vec<(Txn, Rows)>,
    /// Each has every second key to itself.
    writers: [Option<Writing>; 2],
    values: u32,
}

impl World {
    /// Most changes meet a few rows.
    fn key(&mut self, writer: usize) -> String {
        let n = if self.rng.random() { 0 } else { self.rng.random_range(0..12) };
        format!("row{:03}", 2 * n + writer)
    }

    fn write(&mut self, at: usize) {
        let mut writing = self.writers[at].take().unwrap_or_else(|| {
            let txn = self.engine.begin(ReadCommitted);
            Writing { txn, changes: BTreeMap::new(), savepoint: None }
        });
        for _ in 0..self.rng.random_range(1..4) {
            let key = self.key(at);
            match self.rng.random_range(0..10) {
                0..6 => {
                    self.values += 1;
                    let len = if self.rng.random_ratio(1, 100) { 4000 } else { self.rng.random_range(1..8) };
                    let value = self.values.to_string().repeat(len);
                    put(&mut writing.txn, self.t, &key, &value);
                    writing.changes.insert(key, Some(value));
                }
                6..9 => {
                    let there = match writing.changes.get(&key) {
                        Some(value) => value.is_some(),
                        None => self.now.contains_key(&key),
                    };
                    assert_eq!(done(writing.txn.delete(self.t, key.as_bytes())), there);
                    if there {
                        writing.changes.insert(key, None);
                    }
                }
                _ => match writing.savepoint.take() {
                    Some((savepoint, then)) => {
                        writing.txn.rollback_to(&savepoint).unwrap();
                        writing.changes = then;
                    }
                    None => writing.savepoint = Some((writing.txn.savepoint(), writing.changes.clone())),
                },
            }
        }
        match self.rng.random_range(0..8) {
            0 => writing.txn.rollback().unwrap(),
            1..6 => {
                commit(writing.txn);
                for (key, value) in writing.changes {
                    match value {
                        Some(value) => drop(self.now.insert(key, value)),
                        None => drop(self.now.remove(&key)),
                    }
                }
            }
            _ => self.writers[at] = Some(writing),
        }
    }

    fn step(&mut self) {
        if self.readers.len() < 10 && self.rng.random_ratio(1, 5) {
            let mut reader = self.engine.begin(RepeatableRead);
            reader.snapshot();
            self.readers.push((reader, self.now.clone()));
        }
        let at = self.rng.random_range(0..2);
        self.write(at);
        if !self.readers.is_empty() {
            let (key, at) = (self.key(at), self.rng.random_range(0..self.readers.len()));
            let (reader, seen) = &mut self.readers[at];
            assert_eq!(read_all(reader, self.t), *seen);
            assert_eq!(get(reader, self.t, &key), seen.get(&key).cloned());
            assert_eq!(latest(reader, self.t, &key), self.now.get(&key).cloned());
            // Of some the oldest goes last.
            if self.rng.random_ratio(1, 6) {
                self.readers.swap_remove(at.max(self.readers.len() / 2));
            }
        }
        if self.rng.random_ratio(1, 3) {
            self.engine.background_step().unwrap();
        }
    }
}

fn run(seed: u64, version_bytes: Option<u64>) {
    println!("seed {seed}, {version_bytes:?} for versions");
    let engine = open_with(&disk(seed), Options { version_bytes, ..options() }).unwrap();
    let t = new_index(&engine);
    let rng = SmallRng::seed_from_u64(seed);
    let mut world = World { engine, t, rng, now: Rows::new(), readers: Vec::new(), writers: [None, None], values: 0 };
    for _ in 0..1500 {
        world.step();
    }
    let World { engine, now, readers, writers, .. } = world;
    drop(writers);
    for (mut reader, seen) in readers {
        assert_eq!(read_all(&mut reader, t), seen);
    }
    purge_to_the_end(&engine, t, now.len());
}

#[test]
fn every_view_reads_its_own_time() {
    for seed in 0..6 {
        run(seed, None);
    }
    run(rand::random(), None);
}

/// The same with nearly all versions in runs.
#[test]
fn every_view_reads_its_own_time_from_disk() {
    for seed in 0..6 {
        run(seed, Some(seed * 2000));
    }
    run(rand::random(), Some(0));
}

/// An old view, and others that come and go: what lies between them is kept for nobody.
fn update_a_hot_row(updates: u32, version_bytes: Option<u64>, versions_max: u64) {
    let engine = open_with(&disk(1), Options { version_bytes, ..options() }).unwrap();
    let t = new_index(&engine);
    given(&engine, t, &[("cold", "0"), ("hot", "0")]);
    let mut old = engine.begin(RepeatableRead);
    assert_eq!(get(&mut old, t, "hot").as_deref(), Some("0"));
    let mut young = VecDeque::new();
    for n in 1..=updates {
        given(&engine, t, &[("hot", &n.to_string())]);
        if n % 100 == 0 {
            let mut reader = engine.begin(RepeatableRead);
            reader.snapshot();
            young.push_back((reader, n));
            if young.len() > 3 {
                let (mut reader, n) = young.pop_front().unwrap();
                assert_eq!(get(&mut reader, t, "hot"), Some(n.to_string()));
            }
            purge_all(&engine);
            assert!(engine.stats().versions <= versions_max, "{} versions after {n} updates", engine.stats().versions);
        }
        if n % 5000 == 0 {
            engine.checkpoint().unwrap();
        }
    }
    assert_eq!(engine.stats().history_length, updates as u64);
    for (mut reader, n) in young {
        assert_eq!(get(&mut reader, t, "hot"), Some(n.to_string()));
    }
    assert_eq!(all(&mut old, t), rows(&[("cold", "0"), ("hot", "0")]));
    drop(old);
    purge_to_the_end(&engine, t, 2);
}

#[test]
fn a_hot_row_has_hardly_more_versions_than_there_are_views() {
    update_a_hot_row(100_000, None, 64);
}

/// Each version in a run of its own, until runs become one.
#[test]
fn a_hot_row_has_hardly_more_versions_than_there_are_views_on_disk() {
    update_a_hot_row(3000, Some(0), 300);
}

/// Rows that come and go while a report runs, under new keys and under old ones.
#[test]
fn a_queue_stays_small_beside_a_report() {
    for version_bytes in [None, Some(0)] {
        let engine = open_with(&disk(2), Options { version_bytes, ..options() }).unwrap();
        let t = new_index(&engine);
        given(&engine, t, &[("key3", "old"), ("key7", "old"), ("z", "old")]);
        let mut report = engine.begin(RepeatableRead);
        let before = all(&mut report, t);
        let mut second = None;
        for n in 0..3000 {
            let key = if n % 2 == 0 { format!("job{n:05}") } else { format!("key{}", n / 2 % 10) };
            let mut txn = engine.begin(RepeatableRead);
            put(&mut txn, t, &key, "new");
            commit(txn);
            if n == 1500 {
                let mut reader = engine.begin(RepeatableRead);
                let seen = all(&mut reader, t);
                assert!(seen.iter().any(|(found, _)| *found == key));
                second = Some((reader, seen));
            }
            let mut txn = engine.begin(RepeatableRead);
            assert!(done(txn.delete(t, key.as_bytes())));
            if n % 3 == 0 {
                // There for nobody but itself.
                put(&mut txn, t, "brief", "new");
                assert!(done(txn.delete(t, b"brief")));
            }
            commit(txn);
            if n % 50 == 0 {
                while engine.background_step().unwrap() > 0 {}
            }
            if n % 500 == 499 && version_bytes.is_none() {
                let records = engine.check(t).unwrap().records;
                assert!(records < 400, "{records} records for what two views see");
                assert!(engine.stats().versions < 400, "{} versions", engine.stats().versions);
            }
        }
        assert_eq!(all(&mut report, t), before);
        let (mut second, seen) = second.unwrap();
        assert_eq!(all(&mut second, t), seen);
        drop(report);
        purge_all(&engine);
        assert_eq!(all(&mut second, t), seen);
        drop(second);
        // What was deleted is gone, the old row that nobody has touched is there.
        purge_to_the_end(&engine, t, 1);
    }
}

/// Who reads the latest row while what it replaced goes.
#[test]
fn the_latest_row_is_never_older_than_it_was() {
    const UPDATES: u32 = 5000;
    let (engine, t) = engine();
    given(&engine, t, &[("hot", "0")]);
    let mut old = engine.begin(RepeatableRead);
    assert_eq!(get(&mut old, t, "hot").as_deref(), Some("0"));
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=UPDATES {
                given(&engine, t, &[("hot", &n.to_string())]);
            }
            written.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while !written.load(Ordering::SeqCst) {
                engine.background_step().unwrap();
            }
        });
        for isolation in [RepeatableRead, ReadCommitted] {
            let (engine, written) = (&engine, &written);
            scope.spawn(move || {
                let mut seen = 0;
                while !written.load(Ordering::SeqCst) {
                    let mut txn = engine.begin(isolation);
                    let now: u32 = latest(&mut txn, t, "hot").unwrap().parse().unwrap();
                    assert!(now >= seen, "{now} after {seen}");
                    let then: u32 = get(&mut txn, t, "hot").unwrap().parse().unwrap();
                    assert!(then >= now, "{then} in a view that was taken after {now} had been read");
                    seen = then;
                }
            });
        }
    });
    assert_eq!(get(&mut old, t, "hot").as_deref(), Some("0"));
    drop(old);
    purge_to_the_end(&engine, t, 1);
}
