//! Checkpoints and crash recovery. See README.md.

use crate::buffer::BufferPool;
use crate::disk::{Clock, Disk};
use crate::error::Result;
use crate::ids::{Lsn, TxnId};
use crate::options::Options;
use crate::space::Space;
use crate::sync::Arc;
use crate::wal::{Record, Wal};

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
}

/// The lower half of an engine: everything but transactions.
pub struct Store {
    pub disk: Arc<dyn Disk>,
    pub wal: Arc<Wal>,
    pub pool: Arc<BufferPool>,
    pub space: Arc<Space>,
}

/// What recovery found.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// To be undone, in the background, with their rows locked meanwhile.
    pub losers: Vec<Loser>,
    pub next_txn_id: TxnId,
    pub max_ts: u64,
    /// True when the directory was empty and a new database was made.
    pub created: bool,
    pub records_redone: u64,
}

impl Store {
    /// Locks the directory, opens or makes the database, redoes the log. `visit` sees every record scanned, in order.
    pub fn open(
        _disk: Arc<dyn Disk>,
        _options: &Options,
        _clock: Arc<dyn Clock>,
        _visit: &mut dyn FnMut(&Record),
    ) -> Result<(Arc<Store>, Recovered)> {
        unimplemented!()
    }
    /// Starts checkpointing and the background threads (unless `options.background` is off). Called once undo is set up.
    pub fn start(&self, _transactions: Arc<dyn Transactions>) {
        unimplemented!()
    }
    /// Takes a fuzzy checkpoint now.
    pub fn checkpoint(&self) -> Result<()> {
        unimplemented!()
    }
    /// Writes some dirty pages, oldest first (the cleaner's step).
    pub fn clean(&self, _pages: usize) -> Result<usize> {
        unimplemented!()
    }
    /// Joins the threads, writes everything, takes a checkpoint.
    pub fn shutdown(&self) -> Result<()> {
        unimplemented!()
    }
    /// Joins the threads and writes nothing more.
    pub fn stop(&self) {
        unimplemented!()
    }
}
