//! The version store under shuttle's schedules: readers find their versions whatever goes to disk meanwhile.
//! `cargo test -p highkey-storage --features shuttle txn::schedules`.

use super::scratch::Scratch;
use super::version_run::BlocksRead;
use super::versions::{Found, Version, VersionStore};
use crate::btree::RecordFlags;
use crate::disk::{SimConfig, SimDisk};
use crate::ids::TxnId;
use crate::sync::{Arc, RwLock, thread};

const SCHEDULES: usize = 2000;
const ROW: &[u8] = b"row";
/// Runs that there are before: with one more they are merged.
const RUNS: usize = 7;

/// A row, each of whose values is the number of the transaction that wrote it. The lock is its leaf's latch.
struct Row {
    store: VersionStore,
    record: RwLock<u64>,
}

fn is_over(by: TxnId) -> bool {
    by.0 == 1
}

impl Row {
    fn new() -> Row {
        let store = VersionStore::new(0, Arc::new(Scratch::new(Arc::new(SimDisk::new(SimConfig::default())), "versions")));
        Row { store, record: RwLock::new(1) }
    }

    fn change(&self, by: u64) {
        let mut record = self.record.write();
        let flags = if *record > 1 { RecordFlags::HAS_OLDER } else { 0 };
        self.store.push(ROW, Version { txn: TxnId(*record), flags, value: [*record as u8].into(), by: TxnId(by) });
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
        let row = Arc::new(Row::new());
        for n in 0..RUNS {
            let version = |by| Version { txn: TxnId(0), flags: 0, value: [].into(), by: TxnId(by) };
            row.store.push(b"another", version(1 + n as u64 % 2));
            row.store.push(b"yet another", version(9));
            row.store.spill(&is_over).unwrap();
        }
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
                    row.store.spill(&is_over).unwrap();
                    while row.store.merge(2, &is_over).unwrap() {}
                    row.store.drop_runs(TxnId(2), &is_over);
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
