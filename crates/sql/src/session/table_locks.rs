//! LOCK TABLES: which tables sessions have locked against others, beside the metadata locks of `table`.
//!
//! A session under LOCK TABLES may use the tables it named only, and others wait for them. LOCK TABLES does not wait for row locks of
//! transactions that were open before; it waits for statements and for other LOCK TABLES.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use highkey_table::{FutureWait, WaitKind};
use highkey_types::{MySqlError, Str, errors};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::process::ProcessEntry;

type Key = (Str, Str);

#[derive(Default)]
struct Held {
    writer: Option<u64>,
    readers: Vec<u64>,
}

/// All LOCK TABLES of the instance.
#[derive(Default)]
pub struct TableLocks {
    /// How many tables are locked: statements look no further while it is 0.
    count: AtomicU64,
    held: Mutex<HashMap<Key, Held>>,
    released: Notify,
}

impl TableLocks {
    /// True if anything at all is locked.
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    fn admits(held: &HashMap<Key, Held>, key: &Key, write: bool, session: u64) -> bool {
        match held.get(key) {
            None => true,
            Some(h) => h.writer.is_none_or(|w| w == session) && (!write || h.readers.iter().all(|r| *r == session)),
        }
    }

    /// Takes all locks at once, or waits; 1205 after `timeout`.
    pub async fn lock(&self, tables: &[(Key, bool)], session: u64, process: &ProcessEntry, timeout: Duration) -> Result<(), MySqlError> {
        self.wait(process, timeout, |held| {
            if !tables.iter().all(|(key, write)| Self::admits(held, key, *write, session)) {
                return false;
            }
            for (key, write) in tables {
                let entry = held.entry(key.clone()).or_default();
                if *write {
                    entry.writer = Some(session);
                } else {
                    entry.readers.push(session);
                }
            }
            self.count.store(held.len() as u64, Ordering::Release);
            true
        })
        .await
    }

    /// Waits until `session` may use a table.
    pub async fn admit(&self, key: &Key, write: bool, session: u64, process: &ProcessEntry, timeout: Duration) -> Result<(), MySqlError> {
        self.wait(process, timeout, |held| Self::admits(held, key, write, session)).await
    }

    async fn wait(&self, process: &ProcessEntry, timeout: Duration, mut ready: impl FnMut(&mut HashMap<Key, Held>) -> bool) -> Result<(), MySqlError> {
        let end = Instant::now() + timeout;
        let mut counted = None;
        loop {
            let notified = self.released.notified();
            if ready(&mut self.held.lock()) {
                return Ok(());
            }
            process.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(errors::lock_wait_timeout());
            }
            counted.get_or_insert_with(|| FutureWait::begin(WaitKind::TableLock));
            process.set_state("Waiting for table metadata lock");
            tokio::select! {
                _ = notified => {}
                _ = process.interrupted() => {}
                _ = tokio::time::sleep(left) => {}
            }
        }
    }

    /// UNLOCK TABLES, and the end of the session.
    pub fn release(&self, session: u64) {
        let mut held = self.held.lock();
        held.retain(|_, h| {
            if h.writer == Some(session) {
                h.writer = None;
            }
            h.readers.retain(|r| *r != session);
            h.writer.is_some() || !h.readers.is_empty()
        });
        self.count.store(held.len() as u64, Ordering::Release);
        drop(held);
        self.released.notify_waiters();
    }
}
