//! Checkpoints and crash recovery. See README.md.

mod background;
mod checkpoint;
mod open;
mod redo;

#[cfg(test)]
pub(crate) mod rig;
#[cfg(all(test, not(feature = "shuttle")))]
pub(crate) mod tests;

use crate::buffer::BufferPool;
use crate::counters::Counters;
use crate::disk::Disk;
use crate::fatal::Fatal;
use crate::ids::{Lsn, TxnId};
use crate::options::Options;
use crate::space::Space;
use crate::sync::{Arc, AtomicU32, Mutex, Ordering};
use crate::wal::{ControlFile, Wal};
use std::sync::OnceLock;

/// What the checkpoint must know of transactions.
pub trait Transactions: Send + Sync {
    /// A lower bound of the first record of every open transaction, `None` without any. A transaction must be counted, with
    /// `Wal::end()` read before, from before its first record is appended.
    fn oldest_lsn(&self) -> Option<Lsn>;
    /// Above every id given so far.
    fn next_txn_id(&self) -> TxnId;
    /// The newest commit timestamp given so far.
    fn max_ts(&self) -> u64;
}

/// A transaction that was open at the crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loser {
    pub id: TxnId,
    pub first_lsn: Lsn,
    pub last_lsn: Lsn,
    /// The record that prepared it, if it is prepared and was not being taken back: what comes behind that record only is to be undone.
    pub prepared: Option<Lsn>,
}

/// What recovery found.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// To be undone, in the background, with their rows locked meanwhile; or prepared.
    pub losers: Vec<Loser>,
    pub next_txn_id: TxnId,
    pub max_ts: u64,
    /// True when the directory was empty and a new database was made.
    pub created: bool,
    /// True when the last shutdown was clean: the log ends at its checkpoint.
    pub clean: bool,
    pub records_scanned: u64,
    pub pages_redone: u64,
    pub pages_restored: usize,
}

/// The lower half of an engine: everything but trees and transactions.
pub struct Store {
    pub disk: Arc<dyn Disk>,
    pub wal: Arc<Wal>,
    pub pool: Arc<BufferPool>,
    pub space: Arc<Space>,
    fatal: Arc<Fatal>,
    counters: Arc<Counters>,
    options: Options,
    /// Pages a second (`innodb_io_capacity`).
    io_capacity: AtomicU32,
    control: ControlFile,
    transactions: OnceLock<Arc<dyn Transactions>>,
    /// One checkpoint at a time.
    checkpointing: Mutex<()>,
    threads: Mutex<background::Threads>,
    /// The directory's lock, until the store is gone.
    _lock: Box<dyn Send + Sync>,
}

impl Store {
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// See `Engine::set_io_capacity`.
    pub(crate) fn set_io_capacity(&self, pages: u32) {
        self.io_capacity.store(pages, Ordering::Relaxed);
    }

    pub(crate) fn stop_with(&self, reason: &str) -> crate::error::Error {
        self.fatal.stop(reason)
    }

    /// True after a failed write or a broken invariant: everything answers `Error::Stopped`.
    pub fn is_stopped(&self) -> bool {
        self.fatal.is_stopped()
    }
}
