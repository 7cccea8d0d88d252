//! What inserts in random order cost a thread: `cargo run --release -p highkey-storage --example insert_bench [directory]`.
//!
//! A fixed work, so that two builds can be compared on a busy machine by running them in turns: into 4,000,000 rows in memory 600 transactions of 1000
//! single rows, then 400 batches of 1000; then a new table is filled with 200 batches of 1000. Reported is the thread's processor time a row. Rows are
//! 100 bytes (in the new table 190) under 8-byte keys (4-byte ones).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use highkey_storage::{BatchRows, Engine, FileDisk, IndexId, Isolation, Op, Options, SortedRows, SystemClock, Txn};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

const VALUE: [u8; 100] = [b'v'; 100];
const LOADED: u64 = 4_000_000;
const FILLED: u32 = 200_000;
const FILLED_VALUE: [u8; 190] = [b'v'; 190];
/// Rows of a transaction.
const ROWS: usize = 1000;
/// Loaded keys are multiples of this: random keys fall between them.
const SPACING: u64 = 1 << 20;

fn main() {
    let directory = std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("highkey-insert-bench"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory for the database");
    let options = Options { buffer_pool_bytes: 3 << 30, redo_log_capacity: 1 << 30, ..Options::default() };
    let disk = Arc::new(FileDisk::open(&directory).expect("the directory opens"));
    let engine = Engine::open(disk, options, Arc::new(SystemClock::new())).expect("the engine opens");
    let mut rng = SmallRng::seed_from_u64(1);

    let index = new_index(&engine);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let mut load = txn.load(index).expect("the index is there").expect("and empty");
    for n in 0..LOADED {
        load.push(&mut txn, &(n * SPACING).to_be_bytes(), &VALUE).expect("the row fits");
    }
    load.finish(&mut txn, |_, _| {}).expect("the load is attached");
    commit(txn);

    report("single rows", 600, || {
        let mut txn = engine.begin(Isolation::RepeatableRead);
        for _ in 0..ROWS {
            let key = rng.random_range(0..LOADED * SPACING).to_be_bytes();
            assert!(matches!(txn.insert(index, &key, &VALUE), Ok(Op::Done(_))));
        }
        commit(txn);
    });
    report("batches", 400, || {
        let mut keys: Vec<u64> = (0..ROWS).map(|_| rng.random_range(0..LOADED * SPACING)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut rows = SortedRows::new();
        keys.iter().for_each(|key| rows.push(&key.to_be_bytes(), &VALUE));
        insert(&engine, index, &rows);
    });
    let index = new_index(&engine);
    let mut keys: Vec<u32> = (0..FILLED).collect();
    keys.shuffle(&mut rng);
    let mut batches = keys.chunks_mut(ROWS);
    report("batches into a new table", FILLED as usize / ROWS, || {
        let keys = batches.next().expect("as many as rounds");
        keys.sort_unstable();
        let mut rows = SortedRows::new();
        keys.iter().for_each(|key| rows.push(&key.to_be_bytes(), &FILLED_VALUE));
        insert(&engine, index, &rows);
    });
    engine.shutdown().expect("a clean shutdown");
    let _ = std::fs::remove_dir_all(&directory);
}

fn report(name: &str, rounds: usize, mut work: impl FnMut()) {
    let before = thread_cpu();
    (0..rounds).for_each(|_| work());
    println!("{name:<26} {:>6} ns a row", (thread_cpu() - before).as_nanos() / (rounds * ROWS) as u128);
}

/// Processor time of this thread, without its waits.
fn thread_cpu() -> Duration {
    let known = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    let nanos = known.split_whitespace().next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

fn new_index(engine: &Engine) -> IndexId {
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let index = txn.create_index().expect("an index");
    commit(txn);
    index
}

fn insert(engine: &Engine, index: IndexId, rows: &SortedRows) {
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let mut at = 0;
    while at < rows.len() {
        let Ok(Op::Done(outcome)) = txn.insert_batch(index, rows, at) else { panic!("nobody else works here") };
        // A key that is there already is left out.
        at += outcome.inserted + usize::from(outcome.duplicate);
    }
    commit(txn);
}

fn commit(txn: Txn) {
    txn.commit(b"").and_then(|wait| wait.wait()).expect("the commit is durable");
}
