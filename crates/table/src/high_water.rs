//! A counter whose values are never handed out twice, not even after a crash, unless it is volatile: then no later life asks for it.
//!
//! The catalog holds a mark above every value handed out. A value at or above the mark is handed out only after a
//! higher mark is durable; marks rise in steps that grow with what is asked for, so that costs one small transaction for
//! thousands of values. A clean shutdown writes the exact value; a crash skips to the mark: little of what is left up to the last value that there is.

use std::sync::atomic::{AtomicU64, Ordering};

use highkey_storage::{Engine, IndexId, Isolation, Op};
use highkey_types::MySqlError;
use parking_lot::Mutex;

use crate::error;

pub(crate) struct HighWater {
    engine: Engine,
    catalog: IndexId,
    key: Vec<u8>,
    /// The next value to hand out.
    next: AtomicU64,
    /// The durable mark: `next` never passes it.
    mark: AtomicU64,
    /// How far the next mark goes; locked while a mark is written.
    step: Mutex<u64>,
    step_max: u64,
    /// The last value that there is.
    last: AtomicU64,
    /// Its marks are not written.
    volatile: bool,
}

const FIRST_STEP: u64 = 1024;
/// A crash costs at most one in so many of the values that are left.
const LEFT_PER_STEP: u64 = 64;

impl HighWater {
    pub(crate) fn new(engine: Engine, catalog: IndexId, key: Vec<u8>, next: u64, step_max: u64) -> HighWater {
        HighWater {
            engine,
            catalog,
            key,
            next: AtomicU64::new(next),
            mark: AtomicU64::new(next),
            step: Mutex::new(FIRST_STEP.min(step_max)),
            step_max,
            last: AtomicU64::new(u64::MAX),
            volatile: false,
        }
    }

    /// The same for a table that no later life of the database knows.
    pub(crate) fn volatile(self) -> HighWater {
        HighWater { volatile: true, ..self }
    }

    pub(crate) fn set_last(&self, last: u64) {
        self.last.store(last, Ordering::Relaxed);
    }

    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Moves the counter from its present value to `f` of it. `f` gives the new value (and what to return), or stops.
    pub(crate) fn advance<T>(&self, f: impl Fn(u64) -> Result<(u64, T), MySqlError>) -> Result<T, MySqlError> {
        loop {
            let now = self.next.load(Ordering::Acquire);
            let (then, answer) = f(now)?;
            assert!(then >= now, "a counter moves forward");
            if then > self.mark.load(Ordering::Acquire) {
                self.raise_mark(then, then - now)?;
            }
            if self.next.compare_exchange(now, then, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Ok(answer);
            }
        }
    }

    /// DDL under an exclusive metadata lock wrote `next` into the catalog: follow it.
    pub(crate) fn reset(&self, next: u64) {
        let mut step = self.step.lock();
        *step = FIRST_STEP.min(self.step_max);
        self.mark.store(next, Ordering::Release);
        self.next.store(next, Ordering::Release);
    }

    /// `count`: values wanted at once. Others of the same statement, and of those beside it, will want as many.
    fn raise_mark(&self, needed: u64, count: u64) -> Result<(), MySqlError> {
        let mut step = self.step.lock();
        if needed <= self.mark.load(Ordering::Acquire) {
            return Ok(());
        }
        *step = (*step).max(count.saturating_mul(8)).min(self.step_max);
        let left = self.last.load(Ordering::Relaxed).saturating_sub(needed);
        let mark = needed.saturating_add((*step).min(left / LEFT_PER_STEP));
        *step = (*step * 2).min(self.step_max);
        self.write(mark)?;
        self.mark.store(mark, Ordering::Release);
        Ok(())
    }

    /// Makes the exact value durable, for a clean shutdown.
    pub(crate) fn settle(&self) -> Result<(), MySqlError> {
        let _writing = self.step.lock();
        let next = self.next.load(Ordering::Acquire);
        if self.mark.load(Ordering::Acquire) != next {
            self.write(next)?;
            self.mark.store(next, Ordering::Release);
        }
        Ok(())
    }

    fn write(&self, mark: u64) -> Result<(), MySqlError> {
        if self.volatile {
            return Ok(());
        }
        let failed = |e| error::storage(e, "counter");
        let mut txn = self.engine.begin(Isolation::ReadCommitted);
        put(&mut txn, self.catalog, &self.key, &mark.to_le_bytes())?;
        // Nobody reads it before the next open, and the next mark must not wait for replicas.
        txn.commit_aside().map_err(failed)?.wait_aside().map_err(failed)
    }
}

/// Writes one catalog record, whether or not it exists. Waits on this thread: catalog records have one writer at a
/// time, by metadata lock or by the counter's own lock, so a wait is for a commit that is under way.
pub(crate) fn put(
    txn: &mut highkey_storage::Txn,
    catalog: IndexId,
    key: &[u8],
    value: &[u8],
) -> Result<(), MySqlError> {
    let failed = |e| error::storage(e, "catalog");
    loop {
        match txn.update(catalog, key, value).map_err(failed)? {
            Op::Done(true) => return Ok(()),
            Op::Done(false) => {}
            Op::Wait(wait) => {
                wait.wait().map_err(error::lock)?;
                continue;
            }
        }
        match txn.insert(catalog, key, value).map_err(failed)? {
            Op::Done(highkey_storage::Inserted::Yes) => return Ok(()),
            Op::Done(highkey_storage::Inserted::Duplicate) => {}
            Op::Wait(wait) => wait.wait().map_err(error::lock)?,
        }
    }
}

/// Removes one catalog record if it exists.
pub(crate) fn remove(txn: &mut highkey_storage::Txn, catalog: IndexId, key: &[u8]) -> Result<(), MySqlError> {
    loop {
        match txn.delete(catalog, key).map_err(|e| error::storage(e, "catalog"))? {
            Op::Done(_) => return Ok(()),
            Op::Wait(wait) => wait.wait().map_err(error::lock)?,
        }
    }
}
