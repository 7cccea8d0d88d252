//! How fast the engine is by itself: `cargo run --release -p highkey-storage --example engine_bench [seconds] [directory] [operation] [threads]`.
//!
//! Per thread count (1 to 16 if `threads` does not say at most how many): single-row commits (durable, and at flush level 2), single-row inserts in large transactions, batch inserts of ascending
//! keys, new tables of 200,000 rows of 190 bytes filled by batches of 1000 whose keys ascend or are shuffled, and in a table of 8,000,000 cached rows inserts of random
//! keys, single-row and in batches, updates of random rows and point reads. Rows are 100 bytes under 8-byte keys if not said otherwise.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use highkey_storage::{
    BatchRows, Engine, FileDisk, IndexId, Inserted, Isolation, Op, Options, SortedRows, SystemClock, Txn,
};
use rand::Rng;
use rand::seq::SliceRandom;

const VALUE: [u8; 100] = [b'v'; 100];
const LOADED: u64 = 8_000_000;
/// Rows of a table that is filled from empty, and their length.
const FILLED: u64 = 200_000;
const FILLED_VALUE: [u8; 190] = [b'v'; 190];
/// Loaded keys are multiples of this: random keys fall between them.
const SPACING: u64 = 1 << 20;

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds: f64 = args.next().map_or(1.0, |s| s.parse().expect("seconds"));
    let directory = args.next().map_or_else(|| std::env::temp_dir().join("highkey-engine-bench"), PathBuf::from);
    let only = args.next().unwrap_or_default();
    let threads_max = args.next().map_or(16, |s| s.parse().expect("threads"));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory for the database");
    let options = Options { buffer_pool_bytes: 4 << 30, redo_log_capacity: 1 << 30, ..Options::default() };
    let disk = Arc::new(FileDisk::open(&directory).expect("the directory opens"));
    let engine = Engine::open(disk, options, Arc::new(SystemClock::new())).expect("the engine opens");
    let bench = Bench { engine, duration: Duration::from_secs_f64(seconds), next: AtomicU64::new(0), only };

    let loaded = bench.load();
    println!("{:<36} {:>7} {:>12} {:>20}", "", "threads", "per second", "thread's CPU ns each");
    for threads in [1, 2, 4, 8, 16].into_iter().filter(|threads| *threads <= threads_max) {
        bench.measure("commits, one insert, durable", threads, |bench, t| bench.commit_one(t));
        bench.engine.set_flush_log_at_commit(2);
        bench.measure("commits, one insert, level 2", threads, |bench, t| bench.commit_one(t));
        bench.engine.set_flush_log_at_commit(1);
        bench.measure("inserts, 1000 a transaction", threads, |bench, t| bench.insert_many(t));
        bench.measure("inserts, batches of 1000", threads, |bench, t| bench.insert_batch(t));
        bench.measure("fills, ascending batches", threads, |bench, _| bench.fill(false));
        bench.measure("fills, shuffled batches", threads, |bench, _| bench.fill(true));
        bench.measure("inserts, random, 1000 a transaction", threads, |bench, _| bench.insert_random(loaded));
        bench.measure("inserts, random, batches of 1000", threads, |bench, _| bench.insert_random_batch(loaded));
        bench.measure("updates, 100 a transaction", threads, |bench, _| bench.update_some(loaded));
        bench.measure("point reads, 100 a snapshot", threads, |bench, _| bench.read_some(loaded));
    }
    println!("{:#?}", bench.engine.stats());
    bench.engine.shutdown().expect("a clean shutdown");
    let _ = std::fs::remove_dir_all(&directory);
}

struct Bench {
    engine: Engine,
    duration: Duration,
    next: AtomicU64,
    /// Only operations whose name has this in it.
    only: String,
}

/// Processor time of this thread, without its waits for the disk and for a processor: what a busy machine distorts least.
fn thread_cpu() -> Duration {
    let known = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    let nanos = known.split_whitespace().next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

fn loaded_key(n: u64) -> [u8; 8] {
    (n * SPACING).to_be_bytes()
}

fn done<T>(op: highkey_storage::Result<Op<T>>) -> T {
    match op.expect("the engine works") {
        Op::Done(outcome) => outcome,
        Op::Wait(_) => panic!("no two threads of this operation share a row"),
    }
}

fn commit(txn: Txn) {
    txn.commit(b"").and_then(|wait| wait.wait()).expect("the commit is durable");
}

impl Bench {
    fn index(&self) -> IndexId {
        let mut txn = self.engine.begin(Isolation::RepeatableRead);
        let index = txn.create_index().expect("an index");
        commit(txn);
        index
    }

    fn load(&self) -> IndexId {
        let index = self.index();
        let started = Instant::now();
        let mut txn = self.engine.begin(Isolation::RepeatableRead);
        let mut load = txn.load(index).expect("the index is there").expect("and empty");
        for n in 0..LOADED {
            load.push(&mut txn, &loaded_key(n), &VALUE).expect("the row fits");
        }
        load.finish(&mut txn, |_, _| {}).expect("the load is attached");
        commit(txn);
        println!("{LOADED} rows loaded in {:.2} s", started.elapsed().as_secs_f64());
        index
    }

    /// Runs `work` on every thread until the time is up; it returns how much it did.
    fn measure(&self, name: &str, threads: usize, work: impl Fn(&Bench, IndexId) -> u64 + Sync) {
        if !name.contains(&self.only) {
            return;
        }
        let index = self.index();
        let (stop, total, cpu) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let worker = || {
                    let (mut count, before) = (0, thread_cpu());
                    while !stop.load(Ordering::Relaxed) {
                        count += work(self, index);
                    }
                    total.fetch_add(count, Ordering::Relaxed);
                    cpu.fetch_add((thread_cpu() - before).as_nanos() as u64, Ordering::Relaxed);
                };
                std::thread::Builder::new().name("worker".into()).spawn_scoped(scope, worker).expect("a thread");
            }
            std::thread::sleep(self.duration);
            stop.store(true, Ordering::Relaxed);
        });
        let total = total.into_inner();
        let rate = total as f64 / started.elapsed().as_secs_f64();
        println!("{name:<36} {threads:>7} {rate:>12.0} {:>20.0}", cpu.into_inner() as f64 / total as f64);
    }

    fn commit_one(&self, index: IndexId) -> u64 {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let mut txn = self.engine.begin(Isolation::RepeatableRead);
        assert_eq!(done(txn.insert(index, &key.to_be_bytes(), &VALUE)), Inserted::Yes);
        commit(txn);
        1
    }

    fn insert_many(&self, index: IndexId) -> u64 {
        let first = self.next.fetch_add(1000, Ordering::Relaxed);
        let mut txn = self.engine.begin(Isolation::RepeatableRead);
        for key in first..first + 1000 {
            assert_eq!(done(txn.insert(index, &key.to_be_bytes(), &VALUE)), Inserted::Yes);
        }
        commit(txn);
        1000
    }

    fn insert_batch(&self, index: IndexId) -> u64 {
        let first = self.next.fetch_add(1000, Ordering::Relaxed);
        let mut rows = SortedRows::new();
        for key in first..first + 1000 {
            rows.push(&key.to_be_bytes(), &VALUE);
        }
        let mut txn = self.engine.begin(Isolation::RepeatableRead);
        let mut at = 0;
        while at < rows.len() {
            at += done(txn.insert_batch(index, &rows, at)).inserted;
        }
        commit(txn);
        1000
    }

    /// Fills a new table; `shuffled`: each batch, which is sorted, has keys of all parts of the table.
    fn fill(&self, shuffled: bool) -> u64 {
        let index = self.index();
        let mut keys: Vec<u32> = (0..FILLED as u32).collect();
        if shuffled {
            keys.shuffle(&mut rand::rng());
        }
        for keys in keys.chunks_mut(1000) {
            keys.sort_unstable();
            let mut rows = SortedRows::new();
            for key in keys {
                rows.push(&key.to_be_bytes(), &FILLED_VALUE);
            }
            let mut txn = self.engine.begin(Isolation::RepeatableRead);
            let mut at = 0;
            while at < rows.len() {
                at += done(txn.insert_batch(index, &rows, at)).inserted;
            }
            commit(txn);
        }
        FILLED
    }

    fn insert_random_batch(&self, index: IndexId) -> u64 {
        let mut rng = rand::rng();
        let mut keys: Vec<u64> = (0..1000).map(|_| rng.random_range(0..LOADED * SPACING)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut rows = SortedRows::new();
        for key in &keys {
            rows.push(&key.to_be_bytes(), &VALUE);
        }
        let mut txn = self.engine.begin(Isolation::RepeatableRead);
        let mut at = 0;
        while at < rows.len() {
            match txn.insert_batch(index, &rows, at).expect("the engine works") {
                // A key that is there already is left out.
                Op::Done(outcome) => at += outcome.inserted + usize::from(outcome.duplicate),
                Op::Wait(wait) => wait.wait().expect("ascending keys do not deadlock"),
            }
        }
        commit(txn);
        rows.len() as u64
    }

    fn insert_random(&self, index: IndexId) -> u64 {
        let mut rng = rand::rng();
        let mut txn = self.engine.begin(Isolation::RepeatableRead);
        for _ in 0..1000 {
            let key = rng.random_range(0..LOADED * SPACING).to_be_bytes();
            while let Op::Wait(wait) = txn.insert(index, &key, &VALUE).expect("the engine works") {
                wait.wait().expect("a key is rarely met twice");
            }
        }
        commit(txn);
        1000
    }

    /// Random rows in ascending order, so that no two threads deadlock; a row in use is waited for.
    fn update_some(&self, index: IndexId) -> u64 {
        let mut rng = rand::rng();
        let mut keys: Vec<u64> = (0..100).map(|_| rng.random_range(0..LOADED)).collect();
        keys.sort_unstable();
        let mut txn = self.engine.begin(Isolation::ReadCommitted);
        for key in keys {
            while let Op::Wait(wait) = txn.update(index, &loaded_key(key), &VALUE).expect("the engine works") {
                wait.wait().expect("ascending keys do not deadlock");
            }
        }
        commit(txn);
        100
    }

    fn read_some(&self, index: IndexId) -> u64 {
        let mut rng = rand::rng();
        let mut txn = self.engine.begin(Isolation::RepeatableRead);
        let mut value = Vec::new();
        for _ in 0..100 {
            let key = rng.random_range(0..LOADED);
            assert!(txn.get(index, &loaded_key(key), &mut value).expect("the engine works"));
        }
        100
    }
}
