//! The version store under shuttle's schedules: readers find their versions whatever goes to disk meanwhile.
//! `cargo test -p highkey-storage --features shuttle txn::schedules`.

use super::needs::{Needs, Over};
use super::scratch::Scratch;
use super::version_run::BlocksRead;
use super::versions::{Found, Version, VersionStore};
use crate::btree::RecordFlags;
use crate::disk::{SimConfig, SimDisk};
use crate::ids::TxnId;
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
