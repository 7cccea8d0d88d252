//! The version store under shuttle's schedules: readers find their versions whatever goes to disk meanwhile. And whole transactions: readers see what was
//! committed when their view was taken, whatever a writer and purge do.
//! `cargo test -p highkey-storage --features shuttle txn::schedules`.

use super::needs::{Needs, Over};
use super::scratch::Scratch;
use super::tests::{commit, done, purge_all};
use super::version_run::BlocksRead;
use super::versions::{Found, Version, VersionStore};
use super::views::Sight;
use super::{Bounds, Direction, Inserted, Isolation, LeafRows, Txn};
use crate::btree::RecordFlags;
use crate::disk::{SimClock, SimConfig, SimDisk};
use crate::engine::Engine;
use crate::ids::{IndexId, TxnId};
use crate::options::Options;
use crate::page::PAGE_SIZE;
use crate::sync::{Arc, AtomicU64, Ordering, RwLock, thread};

const SCHEDULES: usize = 2000;
const ROW: &[u8] = b"row";
/// Runs that there are before: with one more they are merged.
const RUNS: usize = 7;

/// A row, each of whose values is the number of the transaction that wrote it. The lock is its leaf's latch.
struct Row {
    store: VersionStore,
    record: RwLock<u64>,
    /// Transactions commit in the order of their numbers: all up to this one have.
    committed: AtomicU64,
}

/// What the snapshots at `SNAPSHOTS` need of it, and those that are taken from now on.
struct Snapshots {
    taken_at: u64,
}

const SNAPSHOTS: [u64; 2] = [1, 2];

impl Needs for Snapshots {
    fn is_over(&self, by: TxnId) -> bool {
        is_over(by)
    }

    fn is_unseen(&self, txn: TxnId, by: TxnId, settled: u64) -> bool {
        by.0 <= self.taken_at.min(settled) && SNAPSHOTS.iter().all(|ts| *ts < txn.0 || *ts >= by.0)
    }

    fn committed_at(&self, txn: TxnId) -> Option<u64> {
        (1..=self.taken_at).contains(&txn.0).then_some(txn.0)
    }

    fn taken_at(&self) -> u64 {
        self.taken_at
    }
}

fn is_over(by: TxnId) -> bool {
    by.0 == 1
}

impl Row {
    fn new() -> Row {
        let store = VersionStore::new(0, Arc::new(Scratch::new(Arc::new(SimDisk::new(SimConfig::default())), "versions")));
        Row { store, record: RwLock::new(1), committed: AtomicU64::new(0) }
    }

    /// One beside which there are runs.
    fn beside_runs() -> Arc<Row> {
        let row = Arc::new(Row::new());
        for n in 0..RUNS {
            let version = |by| Version { txn: TxnId(0), flags: 0, value: [].into(), by: TxnId(by) };
            row.store.push(b"another", version(1 + n as u64 % 2));
            row.store.push(b"yet another", version(9));
            row.store.spill(&Over(is_over)).unwrap();
        }
        row
    }

    fn needs(&self) -> Snapshots {
        Snapshots { taken_at: self.committed.load(Ordering::SeqCst) }
    }

    fn commit(&self, by: u64) {
        self.committed.store(by, Ordering::SeqCst);
    }

    fn change(&self, by: u64) {
        let mut record = self.record.write();
        let flags = if *record > 1 { RecordFlags::HAS_OLDER } else { 0 };
        if self.store.push(ROW, Version { txn: TxnId(*record), flags, value: [*record as u8].into(), by: TxnId(by) }) {
            self.store.prune(ROW, &self.needs());
        }
        *record = by;
    }

    /// As `System::undo_row`.
    fn take_back(&self, by: u64, before: u64) {
        *self.record.write() = before;
        self.store.pop(ROW, TxnId(by));
    }

    /// What a snapshot sees that sees the first transactions.
    fn read(&self, seen: u64) -> Option<u64> {
        let sees = |txn: TxnId| txn.0 <= seen;
        let record = self.record.read();
        if sees(TxnId(*record)) {
            return Some(*record);
        }
        let found = self.store.find(ROW, TxnId(*record), sees);
        drop(record);
        let version = match found {
            Found::Nothing => None,
            Found::Here(version) => Some(version),
            Found::Below(below) => self.store.find_below(&below, &mut BlocksRead::default(), sees).unwrap(),
        };
        version.map(|version| version.value[0] as u64)
    }
}

#[test]
fn a_version_is_found_on_its_way_to_disk() {
    let run = || {
        let row = Row::beside_runs();
        row.change(2);
        let writer = {
            let row = row.clone();
            thread::spawn(move || {
                row.change(9);
                row.take_back(9, 2);
                row.change(3);
                row.change(9);
            })
        };
        let spiller = {
            let row = row.clone();
            thread::spawn(move || {
                for _ in 0..3 {
                    row.store.spill(&Over(is_over)).unwrap();
                    while row.store.merge(2, &Over(is_over)).unwrap() {}
                    row.store.drop_runs(TxnId(2), &Over(is_over));
                }
            })
        };
        for _ in 0..3 {
            assert_eq!((row.read(1), row.read(2)), (Some(1), Some(2)));
        }
        writer.join().unwrap();
        spiller.join().unwrap();
        assert_eq!((row.read(1), row.read(2), row.read(3)), (Some(1), Some(2), Some(3)));
    };
    shuttle::check_random(run, SCHEDULES);
}

/// Versions that no snapshot sees go from the maps and from runs, while others are found, and what is taken back beside them may be in a run.
#[test]
fn a_version_is_found_while_those_around_it_go() {
    let run = || {
        let row = Row::beside_runs();
        row.change(2);
        row.change(3);
        row.commit(3);
        let writer = {
            let row = row.clone();
            thread::spawn(move || {
                // Its first change may be in a run when it is taken back, and look there as if it had stayed.
                row.change(6);
                row.take_back(6, 3);
                row.change(4);
                row.commit(4);
                row.change(5);
                row.commit(5);
                row.change(6);
                row.commit(6);
                row.change(7);
            })
        };
        let pruner = {
            let row = row.clone();
            thread::spawn(move || {
                for _ in 0..3 {
                    let needs = row.needs();
                    row.store.prune(ROW, &needs);
                    row.store.spill(&needs).unwrap();
                    while row.store.merge(2, &needs).unwrap() {}
                }
            })
        };
        for _ in 0..3 {
            assert_eq!((row.read(1), row.read(2)), (Some(1), Some(2)));
        }
        writer.join().unwrap();
        pruner.join().unwrap();
        let needs = row.needs();
        row.store.spill(&needs).unwrap();
        while row.store.merge(2, &needs).unwrap() {}
        assert_eq!((row.read(1), row.read(2), row.read(6)), (Some(1), Some(2), Some(6)));
    };
    shuttle::check_random(run, SCHEDULES);
}

/// What a transaction does with the row.
#[derive(Clone, Copy)]
enum Step {
    Put(u8),
    Delete,
    /// Rolled back.
    PutTakenBack,
    DeleteTakenBack,
    /// Another change comes before this one, and is taken back to a savepoint.
    PutAgain(u8),
}

const STEPS: [Step; 9] =
    [Step::Put(2), Step::Put(3), Step::PutTakenBack, Step::Put(4), Step::Delete, Step::Put(5), Step::PutAgain(6), Step::DeleteTakenBack, Step::Put(7)];
/// Nobody may see it.
const LOST: u8 = 99;
const NEIGHBOUR: &[u8] = b"sow";
/// Fewer: each makes a database.
const DATABASE_SCHEDULES: usize = 200;

/// One of them is long, and has pages of its own.
fn value(n: u8) -> Vec<u8> {
    vec![n; if n == 3 { 9000 } else { 20 }]
}

/// The row after each commit, from the first on.
fn states() -> Vec<Option<Vec<u8>>> {
    let later = STEPS.iter().filter_map(|step| match step {
        Step::Put(n) | Step::PutAgain(n) => Some(Some(value(*n))),
        Step::Delete => Some(None),
        Step::PutTakenBack | Step::DeleteTakenBack => None,
    });
    std::iter::once(Some(value(1))).chain(later).collect()
}

/// A database whose row `ROW` has been written once.
struct Written {
    engine: Engine,
    index: IndexId,
    /// The timestamp of that.
    first: u64,
    /// Commits of the row that have been acknowledged since.
    acknowledged: AtomicU64,
}

impl Written {
    fn new(version_bytes: Option<u64>) -> Arc<Written> {
        let options = Options {
            buffer_pool_bytes: (128 * PAGE_SIZE) as u64,
            version_bytes,
            redo_log_capacity: 1 << 20,
            log_segment_bytes: 128 << 10,
            log_buffer_bytes: 256 << 10,
            background: false,
            abort_on_fatal: false,
            ..Options::default()
        };
        let engine = Engine::open(Arc::new(SimDisk::new(SimConfig::default())), options, Arc::new(SimClock::default())).unwrap();
        let mut txn = engine.begin(Isolation::RepeatableRead);
        let index = txn.create_index().unwrap();
        commit(txn);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        for key in [ROW, NEIGHBOUR] {
            assert!(done(txn.insert(index, key, &value(1))) == Inserted::Yes);
        }
        commit(txn);
        let first = engine.system().commits.last_ts();
        Arc::new(Written { engine, index, first, acknowledged: AtomicU64::new(0) })
    }

    fn put(&self, txn: &mut Txn, n: u8) {
        if done(txn.insert(self.index, ROW, &value(n))) == Inserted::Duplicate {
            assert!(done(txn.update(self.index, ROW, &value(n))));
        }
    }

    fn write(&self) {
        for step in STEPS {
            let mut txn = self.engine.begin(Isolation::RepeatableRead);
            match step {
                Step::Put(n) => self.put(&mut txn, n),
                Step::Delete | Step::DeleteTakenBack => assert!(done(txn.delete(self.index, ROW))),
                Step::PutTakenBack => self.put(&mut txn, LOST),
                Step::PutAgain(n) => {
                    let savepoint = txn.savepoint();
                    self.put(&mut txn, LOST);
                    txn.rollback_to(&savepoint).unwrap();
                    self.put(&mut txn, n);
                }
            }
            if matches!(step, Step::PutTakenBack | Step::DeleteTakenBack) {
                txn.rollback().unwrap();
            } else {
                commit(txn);
                self.acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// What the transaction's view has to see, and sees.
    fn read(&self, txn: &mut Txn) {
        let Sight::Snapshot { view, .. } = txn.sight() else { panic!("a view of what is committed") };
        let at = view.ts - self.first;
        let expected = states().swap_remove(at as usize);
        let mut out = Vec::new();
        let found = txn.get(self.index, ROW, &mut out).unwrap().then_some(out);
        assert!(found == expected, "at {at}: {:?}, not {:?}", found.map(|v| v[0]), expected.map(|v| v[0]));
        let mut scan = txn.scan(self.index, Bounds::all(), Direction::Forward);
        let (mut leaf, mut rows) = (LeafRows::new(), Vec::new());
        while scan.next_leaf(&mut leaf).unwrap() {
            rows.extend((0..leaf.len()).map(|n| (leaf.key(n).to_vec(), leaf.value(n).to_vec())));
        }
        let row = expected.map(|value| (ROW.to_vec(), value));
        let expected: Vec<_> = row.into_iter().chain([(NEIGHBOUR.to_vec(), value(1))]).collect();
        assert!(rows == expected, "at {at}: a scan sees {} rows", rows.len());
    }

    /// What is latest is no older than what was acknowledged before, and no newer than what was committed after.
    fn read_latest(&self) {
        let states = states();
        let mut txn = self.engine.begin(Isolation::ReadCommitted);
        let oldest = self.acknowledged.load(Ordering::SeqCst) as usize;
        let mut out = Vec::new();
        let found = txn.get_latest(self.index, ROW, &mut out).unwrap().then_some(out);
        let newest = (self.acknowledged.load(Ordering::SeqCst) as usize + 1).min(states.len() - 1);
        assert!(states[oldest..=newest].contains(&found), "{:?} is none of {oldest} to {newest}", found.map(|v| v[0]));
    }
}

fn read_while_it_is_written_and_purged(version_bytes: Option<u64>) {
    let run = move || {
        let row = Written::new(version_bytes);
        let mut oldest = row.engine.begin(Isolation::RepeatableRead);
        row.read(&mut oldest);
        let spawn = |work: fn(&Written)| {
            let row = row.clone();
            thread::spawn(move || work(&row))
        };
        let purge = |row: &Written| {
            for _ in 0..4 {
                row.engine.background_step().unwrap();
            }
        };
        let read = |row: &Written| {
            for _ in 0..3 {
                let mut txn = row.engine.begin(Isolation::RepeatableRead);
                (0..2).for_each(|_| row.read(&mut txn));
                row.read_latest();
            }
        };
        let threads = [spawn(Written::write), spawn(purge), spawn(read)];
        for _ in 0..3 {
            row.read(&mut oldest);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        row.read(&mut oldest);
        drop(oldest);
        purge_all(&row.engine);
        row.read(&mut row.engine.begin(Isolation::RepeatableRead));
        assert_eq!(row.engine.system().history.len(), 0);
        row.engine.check(row.index).unwrap();
    };
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::None;
    shuttle::Runner::new(shuttle::scheduler::RandomScheduler::new(DATABASE_SCHEDULES), config).run(run);
}

#[test]
fn a_view_sees_what_was_committed_whatever_is_written_and_purged() {
    read_while_it_is_written_and_purged(None);
}

/// Every version is in a run at once.
#[test]
fn a_view_sees_what_was_committed_when_all_versions_are_on_disk() {
    read_while_it_is_written_and_purged(Some(0));
}
