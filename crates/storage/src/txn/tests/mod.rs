//! Transactions on a simulated disk.

mod batches;
mod check;
mod crash;
mod follow;
mod full_disk;
mod gaps;
mod gate;
mod isolation;
mod load;
mod locking;
mod model;
mod prepared;
mod purge;
mod spill;
mod threads;
mod views;
mod waits;

use std::time::Duration;

use super::*;
use crate::disk::{SimConfig, SimDisk, SystemClock};
use crate::engine::Engine;
use crate::ids::IndexId;
use crate::options::Options;
use crate::sync::Arc;

/// Small, without threads: every step is the test's own.
fn options() -> Options {
    Options {
        buffer_pool_bytes: 8 << 20,
        redo_log_capacity: 16 << 20,
        log_segment_bytes: 1 << 20,
        log_buffer_bytes: 1 << 20,
        lock_wait_timeout: Duration::from_secs(20),
        background: false,
        abort_on_fatal: false,
        ..Options::default()
    }
}

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(SimConfig { seed, ..SimConfig::default() })
}

fn open_with(disk: &SimDisk, options: Options) -> crate::Result<Engine> {
    Engine::open(Arc::new(disk.clone()), options, Arc::new(SystemClock::new()))
}

fn open(disk: &SimDisk) -> Engine {
    open_with(disk, options()).unwrap()
}

/// A new engine with one index.
pub(super) fn engine() -> (Engine, IndexId) {
    let engine = open(&disk(1));
    let index = new_index(&engine);
    (engine, index)
}

pub(super) fn new_index(engine: &Engine) -> IndexId {
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let index = txn.create_index().unwrap();
    commit(txn);
    index
}

pub(super) fn done<T>(op: crate::Result<Op<T>>) -> T {
    match op.unwrap() {
        Op::Done(outcome) => outcome,
        Op::Wait(_) => panic!("has to wait"),
    }
}

fn wait<T>(op: crate::Result<Op<T>>) -> crate::LockWait {
    match op.unwrap() {
        Op::Done(_) => panic!("does not have to wait"),
        Op::Wait(wait) => wait,
    }
}

pub(super) fn commit(txn: Txn) {
    txn.commit(b"").unwrap().wait().unwrap();
}

fn put(txn: &mut Txn, index: IndexId, key: &str, value: &str) {
    if done(txn.insert(index, key.as_bytes(), value.as_bytes())) == Inserted::Duplicate {
        assert!(done(txn.update(index, key.as_bytes(), value.as_bytes())));
    }
}

/// One committed transaction that puts these rows.
fn given(engine: &Engine, index: IndexId, rows: &[(&str, &str)]) {
    let mut txn = engine.begin(Isolation::RepeatableRead);
    for (key, value) in rows {
        put(&mut txn, index, key, value);
    }
    commit(txn);
}

fn get(txn: &mut Txn, index: IndexId, key: &str) -> Option<String> {
    let mut out = Vec::new();
    txn.get(index, key.as_bytes(), &mut out).unwrap().then(|| String::from_utf8(out).unwrap())
}

fn latest(txn: &mut Txn, index: IndexId, key: &str) -> Option<String> {
    let mut out = Vec::new();
    txn.get_latest(index, key.as_bytes(), &mut out).unwrap().then(|| String::from_utf8(out).unwrap())
}

fn drain(mut scan: Scan) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut leaf = LeafRows::new();
    let mut rows = Vec::new();
    while scan.next_leaf(&mut leaf).unwrap() {
        assert!(!leaf.is_empty());
        rows.extend((0..leaf.len()).map(|n| (leaf.key(n).to_vec(), leaf.value(n).to_vec())));
    }
    rows
}

fn all(txn: &mut Txn, index: IndexId) -> Vec<(String, String)> {
    let rows = drain(txn.scan(index, Bounds::all(), Direction::Forward));
    rows.into_iter().map(|(k, v)| (String::from_utf8(k).unwrap(), String::from_utf8(v).unwrap())).collect()
}

fn committed(engine: &Engine, index: IndexId) -> Vec<(String, String)> {
    all(&mut engine.begin(Isolation::ReadCommitted), index)
}

fn rows(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

/// Purges all that may go.
pub(super) fn purge_all(engine: &Engine) {
    while engine.background_step().unwrap() > 0 {}
}
