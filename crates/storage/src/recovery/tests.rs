//! Crashes at every write of scripted mini-transactions, checkpoints, page writes, allocations and drops.

use super::{Store, Transactions};
pub(crate) use super::rig::{NoTransactions, open};
use crate::buffer::Writer;
use crate::disk::{Disk, SimConfig, SimDisk};
use crate::error::{Error, Result};
use crate::ids::{IndexId, Lsn, PageId, TxnId};
use crate::options::Options;
use crate::page::{PageType, header, redo};
use crate::buffer::LatchClass;
use crate::sync::Arc;
use std::collections::BTreeMap;

mod damage;

pub(crate) fn small_options() -> Options {
    Options {
        buffer_pool_bytes: 0,
        redo_log_capacity: 512 << 10,
        pinned_log_max: 1 << 20,
        log_segment_bytes: 64 << 10,
        log_buffer_bytes: 64 << 10,
        background: false,
        abort_on_fatal: false,
        ..Options::default()
    }
}

/// What the pages should hold: tree -> page -> its mark. One mark a page, written at two places.
type Model = BTreeMap<u32, BTreeMap<u64, u64>>;

/// The script's state and every state that it committed, with how many of them are known durable.
struct Run {
    model: Model,
    states: Vec<Model>,
    durable: usize,
    mark: u64,
}

const MARKS: [usize; 2] = [header::HEADER_SIZE, header::PAGE_SIZE - 8];

fn mark_payload(at: usize, mark: u64) -> Vec<u8> {
    let mut p = Vec::from((at as u16).to_le_bytes());
    p.extend_from_slice(&mark.to_le_bytes());
    p
}

impl Run {
    fn new() -> Run {
        Run { model: Model::new(), states: vec![Model::new()], durable: 1, mark: 0 }
    }

    fn committed(&mut self) {
        self.states.push(self.model.clone());
    }

    fn flush(&mut self, store: &Store) -> Result<()> {
        store.wal.flush()?;
        self.durable = self.states.len();
        Ok(())
    }

    fn add(&mut self, store: &Store, tree: u32, pages: usize) -> Result<()> {
        let index = IndexId(tree);
        let mut scope = store.pool.scope(Writer::System)?;
        let mut ids = Vec::new();
        if store.space.root(index).is_none() {
            ids.push(store.space.create_tree(&mut scope, index)?);
        }
        while ids.len() < pages {
            ids.push(store.space.allocate(&mut scope, index)?);
        }
        let mut guards = Vec::new();
        for id in ids {
            let mut page = store.pool.fix_new(id)?;
            self.mark += 1;
            scope.apply(&mut page, redo::INIT, &redo::init_payload(PageType::Overflow, 0, 0, index))?;
            for at in MARKS {
                scope.apply(&mut page, redo::BYTES, &mark_payload(at, self.mark))?;
            }
            self.model.entry(tree).or_default().insert(id.0, self.mark);
            guards.push(page);
        }
        scope.commit()?;
        self.committed();
        Ok(())
    }

    /// Changes every `step`th page of the tree in one scope.
    fn change(&mut self, store: &Store, tree: u32, step: usize) -> Result<()> {
        let mut scope = store.pool.scope(Writer::System)?;
        let mut guards = Vec::new();
        for (id, mark) in self.model.get_mut(&tree).unwrap().iter_mut().step_by(step) {
            let mut page = store.pool.fix_exclusive(PageId(*id), LatchClass::Ordinary)?;
            self.mark += 1;
            *mark = self.mark;
            for at in MARKS {
                scope.apply(&mut page, redo::BYTES, &mark_payload(at, self.mark))?;
            }
            guards.push(page);
        }
        scope.commit()?;
        self.committed();
        Ok(())
    }

    fn free(&mut self, store: &Store, tree: u32, count: usize) -> Result<()> {
        let pages = self.model.get_mut(&tree).unwrap();
        let mut scope = store.pool.scope(Writer::System)?;
        for _ in 0..count {
            let (id, _) = pages.pop_last().unwrap();
            store.space.free(&mut scope, PageId(id))?;
        }
        scope.commit()?;
        self.committed();
        Ok(())
    }

    fn drop_tree(&mut self, store: &Store, tree: u32) -> Result<()> {
        let mut scope = store.pool.scope(Writer::System)?;
        store.space.drop_tree(&mut scope, IndexId(tree))?;
        scope.commit()?;
        self.model.remove(&tree);
        self.committed();
        Ok(())
    }

    /// More pages than frames, freed and taken again, written in place twice, checkpoints between.
    fn script(&mut self, store: &Store) -> Result<()> {
        self.add(store, 1, 10)?;
        self.flush(store)?;
        self.change(store, 1, 2)?;
        store.clean(5)?;
        self.change(store, 1, 3)?;
        store.checkpoint()?;
        self.add(store, 2, 40)?;
        self.add(store, 3, 30)?;
        self.flush(store)?;
        self.change(store, 2, 1)?;
        store.clean(100)?;
        store.checkpoint()?;
        self.change(store, 2, 1)?;
        self.flush(store)?;
        store.clean(30)?;
        self.free(store, 3, 10)?;
        self.add(store, 1, 20)?;
        self.drop_tree(store, 3)?;
        self.add(store, 4, 30)?;
        self.flush(store)?;
        self.change(store, 4, 1)?;
        store.clean(100)?;
        self.change(store, 1, 1)?;
        store.shutdown()?;
        self.durable = self.states.len();
        Ok(())
    }

    /// The recovered store holds one of the states from the last durable one on, whole.
    fn verify(&self, store: &Store) -> usize {
        assert_eq!(store.space.check_maps().unwrap(), Vec::<String>::new());
        let trees: Vec<u32> = store.space.trees().iter().map(|t| t.0).collect();
        let mut found = Model::new();
        for tree in trees {
            let pages = found.entry(tree).or_default();
            for id in store.space.pages_of(IndexId(tree)) {
                let page = store.pool.fix_shared(id).unwrap();
                let marks = MARKS.map(|at| header::get_u64(&page, at));
                assert_eq!(marks[0], marks[1], "page {id} is of one state");
                assert_eq!(header::index_id(&page), IndexId(tree));
                pages.insert(id.0, marks[0]);
            }
        }
        let state = (self.durable - 1..self.states.len()).rev().find(|n| self.states[*n] == found);
        state.unwrap_or_else(|| panic!("not a state from {} on: {found:?}", self.durable - 1))
    }
}

fn run_with_power_off(seed: u64, at: u64, sector: usize, options: &Options) -> bool {
    let disk = SimDisk::new(SimConfig { seed, sector, ..SimConfig::default() });
    disk.power_off_at(at);
    let mut run = Run::new();
    let completed = match open(&disk, options) {
        Ok(store) => run.script(&store).is_ok(),
        Err(_) => false,
    };
    // The power fails again somewhere in recovery, and once more.
    let mut disk = disk.crash();
    for again in 0..2 {
        disk.power_off_at((at + again) % 7 + 1);
        let _ = open(&disk, options).and_then(|s| s.checkpoint());
        disk = disk.crash();
    }
    let store = match open(&disk, options) {
        Ok(store) => store,
        Err(e) => panic!("seed {seed}, power off at {at}: {e}"),
    };
    let state = run.verify(&store);
    // And it works on.
    let mut next = Run { model: run.states[state].clone(), states: vec![run.states[state].clone()], durable: 1, mark: 1 << 40 };
    next.add(&store, 9, 3).unwrap();
    store.shutdown().unwrap();
    drop(store);
    next.durable = next.states.len();
    next.verify(&open(&disk, options).unwrap());
    completed
}

#[test]
fn crash_at_every_write() {
    let options = small_options();
    for sector in [512, 4096] {
        let mut at = 1;
        while !run_with_power_off(at, at, sector, &options) {
            at += 1;
            assert!(at < 2000, "the script ends");
        }
        assert!(at > 50, "the script writes");
    }
}

/// More fates of the sectors at each write: `make crash-sim`.
#[test]
#[ignore = "minutes"]
fn crash_at_every_write_with_many_seeds() {
    let options = small_options();
    for seed in 1000..1020 {
        for sector in [512, 4096] {
            let mut at = 1;
            while !run_with_power_off(seed * 1000 + at, at, sector, &options) {
                at += 1;
            }
        }
    }
}

/// Pages that are on disk are written over through the doublewrite file, between two checkpoints; the power goes off at every write, with
/// several fates of what was not synced. Every page comes back whole, and some of them from their copies.
#[test]
fn torn_pages_come_back_from_the_doublewrite_file_at_every_write() {
    let options = small_options();
    let (mut restored, mut tried) = (0, 0);
    for sector in [512, 4096] {
        for at in 0.. {
            let mut reached = true;
            for seed in 0..4 {
                let disk = SimDisk::new(SimConfig { seed: seed * 1000 + at, sector, ..SimConfig::default() });
                let store = open(&disk, &options).unwrap();
                let mut run = Run::new();
                run.add(&store, 1, 12).unwrap();
                run.flush(&store).unwrap();
                store.checkpoint().unwrap();
                store.clean(100).unwrap();
                disk.power_off_at(disk.changes() + 1 + at);
                let script = |run: &mut Run| -> Result<()> {
                    for round in 0..3 {
                        run.change(&store, 1, 1)?;
                        run.flush(&store)?;
                        store.clean(if round == 1 { 5 } else { 100 })?;
                        store.checkpoint()?;
                    }
                    Ok(())
                };
                reached = script(&mut run).is_err();
                drop(store);
                let after = disk.crash();
                let opened = Store::open(Arc::new(after), &options, &mut |_| {});
                let (store, found) = opened.unwrap_or_else(|e| panic!("power off at {at}, sectors of {sector}, seed {seed}: {e}"));
                restored += found.pages_restored;
                tried += 1;
                run.verify(&store);
            }
            if !reached {
                break;
            }
        }
    }
    println!("{tried} crashes, {restored} pages restored");
    assert!(restored > 0, "some page was torn in place");
}

/// A power failure may leave the sectors that were being written unreadable, until they are written again.
#[test]
fn a_page_that_cannot_be_read_comes_back_from_the_doublewrite_file() {
    let options = small_options();
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &options).unwrap();
    let mut run = Run::new();
    run.add(&store, 1, 3).unwrap();
    store.clean(100).unwrap();
    run.change(&store, 1, 1).unwrap();
    run.flush(&store).unwrap();
    store.clean(100).unwrap();
    drop(store);
    // Two slots of the control file, the head of the doublewrite file, the first copy, then the page in its place.
    disk.fail_read_in(Some(5));
    let (store, found) = Store::open(Arc::new(disk.clone()), &options, &mut |_| {}).unwrap();
    assert_eq!((found.pages_restored, disk.fail_read_in(None)), (1, false));
    run.verify(&store);
}

#[test]
fn without_doublewrite_torn_pages_are_noticed() {
    let options = Options { doublewrite: false, ..small_options() };
    let mut noticed = 0;
    for seed in 0..60 {
        let disk = SimDisk::new(SimConfig { seed, ..SimConfig::default() });
        let store = open(&disk, &options).unwrap();
        let mut run = Run::new();
        run.add(&store, 1, 20).unwrap();
        store.clean(100).unwrap();
        store.checkpoint().unwrap();
        run.change(&store, 1, 1).unwrap();
        store.wal.flush().unwrap();
        disk.power_off_at(disk.changes() + 2 + seed % 10);
        let _ = store.clean(100);
        drop(store);
        match open(&disk.crash(), &options) {
            Ok(store) => {
                run.durable = run.states.len();
                run.verify(&store);
            }
            Err(Error::Corrupt { .. }) => noticed += 1,
            Err(e) => panic!("{e}"),
        }
    }
    assert!(noticed > 0, "some page was torn");
}

#[test]
fn a_failed_write_stops_the_engine() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let mut run = Run::new();
    run.add(&store, 1, 5).unwrap();
    disk.fail_at(disk.changes() + 1, Error::io("write", std::io::Error::other("bad sector")));
    assert!(matches!(store.wal.flush(), Err(Error::Stopped)));
    assert!(matches!(store.wal.flush(), Err(Error::Stopped)), "it is not retried");
    assert!(matches!(run.add(&store, 1, 1), Err(Error::Stopped)));
    drop(store);
    run.verify(&open(&disk.crash(), &small_options()).unwrap());
}

/// The system says once that it could not write something, and shows it as long as it has it in memory. The process starts again at once, and the power
/// fails later: what was there after the start is there still.
#[test]
fn what_a_failed_sync_has_dropped_is_written_again() {
    let options = small_options();
    let mut stops = 0;
    for (n, goes_on) in (1..).flat_map(|n| [(n, false), (n, true)]) {
        let disk = SimDisk::new(SimConfig { seed: n, ..SimConfig::default() });
        let store = open(&disk, &options).unwrap();
        let mut run = Run::new();
        run.add(&store, 1, 10).unwrap();
        run.flush(&store).unwrap();
        store.clean(100).unwrap();
        store.checkpoint().unwrap();
        run.change(&store, 1, 1).unwrap();
        disk.fail_at(disk.changes() + n, Error::io("sync", std::io::Error::other("bad sector")));
        let through = run.flush(&store).and_then(|()| store.clean(100)).and_then(|_| store.checkpoint()).is_ok();
        if through {
            break;
        }
        stops += usize::from(store.is_stopped());
        drop(store);
        let store = open(&disk, &options).unwrap_or_else(|e| panic!("call {n} failed: {e}"));
        let state = run.verify(&store);
        let mut next = Run { model: run.states[state].clone(), states: vec![run.states[state].clone()], durable: 1, mark: 1 << 40 };
        // The pages are written before the power fails, or the log is.
        if goes_on {
            next.change(&store, 1, 1).unwrap();
            next.flush(&store).unwrap();
        } else {
            store.shutdown().unwrap();
        }
        drop(store);
        let store = open(&disk.crash(), &options).unwrap_or_else(|e| panic!("call {n} failed, later: {e}"));
        next.verify(&store);
    }
    assert!(stops > 5, "{stops} calls that fail");
}

#[test]
fn a_full_disk_is_reported_and_harms_nothing() {
    let disk = SimDisk::new(SimConfig { capacity: 8 << 20, ..SimConfig::default() });
    let store = open(&disk, &small_options()).unwrap();
    let mut run = Run::new();
    let mut full = false;
    for _ in 0..200 {
        match store.space.reserve(IndexId(1), 8) {
            Ok(_reserved) => run.add(&store, 1, 8).unwrap(),
            Err(Error::OutOfSpace) => {
                full = true;
                break;
            }
            Err(e) => panic!("{e}"),
        }
    }
    assert!(full);
    run.free(&store, 1, 100).unwrap();
    run.add(&store, 2, 40).unwrap();
    store.shutdown().unwrap();
    run.durable = run.states.len();
    run.verify(&store);
    drop(store);
    run.verify(&open(&disk, &small_options()).unwrap());
}

/// Everything else on the disk is taken; two log files are enough to go on for ever, over restarts too.
#[test]
fn a_full_disk_is_opened_again_and_its_space_used_again() {
    let disk = SimDisk::new(SimConfig { capacity: 10 << 20, ..SimConfig::default() });
    let options = Options { log_segment_bytes: 256 << 10, ..small_options() };
    let mut store = open(&disk, &options).unwrap();
    let mut run = Run::new();
    run.add(&store, 2, 30).unwrap();
    while store.space.reserve(IndexId(1), 8).is_ok() {
        run.add(&store, 1, 8).unwrap();
    }
    let mut disk = disk;
    for restart in 0..3 {
        run.change(&store, 2, 1).unwrap();
        run.flush(&store).unwrap();
        drop(store);
        disk = disk.crash();
        store = open(&disk, &options).unwrap();
        let ballast = disk.open(&format!("ballast{restart}"), true).unwrap();
        while ballast.allocate(ballast.len().unwrap() + 4096).is_ok() {}
        run.free(&store, 1, 100).unwrap();
        run.add(&store, 3, 10).unwrap();
        let until = store.wal.end().0 + 5 * options.log_segment_bytes;
        while store.wal.end().0 < until {
            run.change(&store, 2, 1).unwrap();
            run.states.truncate(1);
        }
        run.committed();
    }
    store.shutdown().unwrap();
    run.durable = run.states.len();
    drop(store);
    run.verify(&open(&disk, &options).unwrap());
}

/// Less space than the log's capacity: its files are used again instead.
#[test]
fn a_disk_too_small_for_the_log() {
    let disk = SimDisk::new(SimConfig { capacity: 7 << 20, ..SimConfig::default() });
    let options = Options { redo_log_capacity: 16 << 20, ..small_options() };
    let store = open(&disk, &options).unwrap();
    let mut run = Run::new();
    run.add(&store, 1, 50).unwrap();
    while store.wal.end().0 < 8 << 20 {
        run.change(&store, 1, 1).unwrap();
        run.states.clear();
    }
    run.committed();
    run.flush(&store).unwrap();
    drop(store);
    run.verify(&open(&disk.crash(), &options).unwrap());
}

#[test]
fn the_log_stays_within_its_capacity() {
    let disk = SimDisk::new(SimConfig::default());
    let options = small_options();
    let store = open(&disk, &options).unwrap();
    let mut run = Run::new();
    run.add(&store, 1, 50).unwrap();
    for _ in 0..2000 {
        run.change(&store, 1, 1).unwrap();
        run.states.clear();
    }
    assert!(store.wal.end().0 > 4 * options.redo_log_capacity);
    assert!(store.wal.file_bytes() <= 2 * options.redo_log_capacity, "{}", store.wal.file_bytes());
    assert!(store.counters().checkpoints.get() > 2);
    run.committed();
    run.flush(&store).unwrap();
    drop(store);
    run.verify(&open(&disk.crash(), &options).unwrap());
}

#[test]
fn an_open_transaction_pins_the_log_up_to_a_limit() {
    struct Open;
    impl Transactions for Open {
        fn oldest_lsn(&self) -> Option<Lsn> {
            Some(Lsn(64))
        }
        fn next_txn_id(&self) -> TxnId {
            TxnId(1)
        }
        fn max_ts(&self) -> u64 {
            0
        }
    }
    let disk = SimDisk::new(SimConfig::default());
    let options = small_options();
    let (store, _) = Store::open(Arc::new(disk), &options, &mut |_| {}).unwrap();
    store.start(Arc::new(Open));
    let mut run = Run::new();
    run.add(&store, 1, 50).unwrap();
    let error = (0..3000).find_map(|_| {
        run.change(&store, 1, 1).unwrap();
        store.pool.scope(Writer::Txn { id: TxnId(2), prev_lsn: Lsn::NONE, urgent: false }).err()
    });
    assert!(matches!(error, Some(Error::LogFull)));
    let clr = Writer::Clr { id: TxnId(1), prev_lsn: Lsn(64), undo_next: Lsn(0) };
    store.pool.scope(clr).unwrap().commit().unwrap();
}

#[test]
fn losers_and_numbers_are_found() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    let mut last = [Lsn::NONE; 4];
    let mut write = |id: u64| {
        let mut scope = store.pool.scope(Writer::Txn { id: TxnId(id), prev_lsn: last[id as usize], urgent: false }).unwrap();
        scope.add_undo(&[id as u8; 5]);
        last[id as usize] = scope.commit().unwrap();
        last[id as usize]
    };
    let first = write(1);
    let first_of_2 = write(2);
    write(3);
    let last_of_2 = write(2);
    let prev = write(1);
    let commit = store.pool.scope(Writer::Commit { id: TxnId(1), prev_lsn: prev }).unwrap();
    let (lsn, ts) = commit.commit_transaction(b"events", |lsn| lsn.0 + 1).unwrap();
    assert_eq!(ts, lsn.0 + 1);
    let record = store.wal.read(prev).unwrap();
    assert_eq!((record.undo(), record.prev_lsn, record.txn), (&[1u8; 5][..], first, TxnId(1)));
    store.pool.scope(Writer::Abort { id: TxnId(3), prev_lsn: Lsn(0) }).unwrap().commit().unwrap();
    store.wal.wait_durable(lsn).wait().unwrap();
    store.wal.flush().unwrap();
    drop(store);
    let disk = disk.crash();
    let mut seen = Vec::new();
    let (store, found) =
        Store::open(Arc::new(disk), &small_options(), &mut |r| seen.push(r.kind)).unwrap();
    assert_eq!(found.losers, vec![super::Loser { id: TxnId(2), first_lsn: first_of_2, last_lsn: last_of_2, prepared: None }]);
    assert_eq!((found.next_txn_id, found.max_ts), (TxnId(4), ts));
    assert!(seen.len() >= 7);
    assert_eq!(store.wal.read(last_of_2).unwrap().prev_lsn, first_of_2);
}

#[test]
fn a_second_engine_is_refused_and_a_lost_control_file_noticed() {
    let disk = SimDisk::new(SimConfig::default());
    let store = open(&disk, &small_options()).unwrap();
    assert!(matches!(open(&disk, &small_options()), Err(Error::InUse(_))));
    store.shutdown().unwrap();
    drop(store);
    disk.remove("control").unwrap();
    assert!(matches!(open(&disk, &small_options()), Err(Error::Unusable(_))));
}

#[test]
fn works_on_the_file_system() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { background: true, ..small_options() };
    let open = || {
        let disk: Arc<dyn Disk> = Arc::new(crate::disk::FileDisk::open(dir.path()).unwrap());
        let (store, found) = Store::open(disk, &options, &mut |_| {})?;
        store.start(Arc::new(NoTransactions));
        Ok::<_, Error>((store, found))
    };
    let (store, found) = open().unwrap();
    assert!(found.created);
    assert!(matches!(open(), Err(Error::InUse(_))));
    let mut run = Run::new();
    for _ in 0..5 {
        run.add(&store, 1, 40).unwrap();
        run.change(&store, 1, 7).unwrap();
    }
    run.flush(&store).unwrap();
    store.stop();
    drop(store);
    let (store, found) = open().unwrap();
    assert!(!found.created && !found.clean);
    run.verify(&store);
    store.shutdown().unwrap();
    drop(store);
    let (store, found) = open().unwrap();
    assert!(found.clean);
    run.verify(&store);
}

/// Threads change pairs of pages, everything in the background runs, the power fails at some write: what was acknowledged is
/// there, and a pair is always of one record.
#[test]
fn crashes_under_concurrent_load() {
    const THREADS: u64 = 3;
    const PAIRS: usize = 30;
    const FIRST_MARK: u64 = 1 << 32;
    for seed in 0..12u64 {
        let options = Options { background: seed % 2 == 0, redo_log_capacity: 256 << 10, ..small_options() };
        let disk = SimDisk::new(SimConfig { seed, ..SimConfig::default() });
        let store = open(&disk, &options).unwrap();
        let mut run = Run::new();
        for _ in 0..THREADS * 2 {
            run.add(&store, 1, PAIRS).unwrap();
        }
        run.flush(&store).unwrap();
        let pages: Vec<u64> = run.model[&1].keys().copied().collect();
        disk.power_off_at(disk.changes() + 40 + seed * 37);
        let acknowledged: Vec<Vec<(u64, u64)>> = std::thread::scope(|s| {
            let work = |t: u64| {
                let (store, pages) = (&store, &pages);
                move || {
                    // Per pair: the last mark known durable, the last one tried.
                    let mut marks = vec![(0, 0); PAIRS];
                    for n in FIRST_MARK.. {
                        let pair = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize % PAIRS;
                        let mine = &pages[(t as usize * PAIRS + pair) * 2..][..2];
                        marks[pair].1 = n;
                        let change = || -> Result<()> {
                            let mut scope = store.pool.scope(Writer::System)?;
                            let mut guards = Vec::new();
                            for id in mine {
                                let mut page = store.pool.fix_exclusive(PageId(*id), LatchClass::Ordinary)?;
                                for at in MARKS {
                                    scope.apply(&mut page, redo::BYTES, &mark_payload(at, n))?;
                                }
                                guards.push(page);
                            }
                            let lsn = scope.commit()?;
                            drop(guards);
                            if n % 3 == 0 { store.wal.wait_durable(lsn).wait() } else { Err(Error::LogFull) }
                        };
                        match change() {
                            Ok(()) => marks[pair].0 = n,
                            Err(Error::LogFull) => {}
                            Err(_) => return marks,
                        }
                    }
                    marks
                }
            };
            let threads: Vec<_> = (0..THREADS).map(|t| s.spawn(work(t))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(disk.is_off());
        drop(store);
        let store = open(&disk.crash(), &options).unwrap();
        assert!(store.space.check_maps().unwrap().is_empty());
        for (t, marks) in acknowledged.iter().enumerate() {
            for (pair, (durable, tried)) in marks.iter().enumerate() {
                let found: Vec<u64> = pages[(t * PAIRS + pair) * 2..][..2]
                    .iter()
                    .flat_map(|id| {
                        let page = store.pool.fix_shared(PageId(*id)).unwrap();
                        MARKS.map(|at| header::get_u64(&page, at))
                    })
                    .collect();
                let untouched = found.iter().all(|m| *m < FIRST_MARK) && *durable == 0;
                let whole = found.iter().all(|m| *m == found[0] && m >= durable && m <= tried);
                assert!(untouched || whole, "seed {seed}: thread {t}, pair {pair}: {durable} acknowledged, {tried} tried, {found:?} found");
            }
        }
    }
}
