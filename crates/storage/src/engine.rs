//! The engine: everything below tables behind one handle.

use std::sync::Arc;

use crate::txn::{Bounds, Isolation, Txn};
use crate::{CheckReport, Clock, Disk, IndexId, Options, Result};

/// A transactional, versioned, ordered byte store: many indexes, each a tree of (key, value). Cloning shares it.
#[derive(Clone)]
pub struct Engine {}

/// Counters since the start, for SHOW STATUS and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub commits: u64,
    pub rollbacks: u64,
    pub row_lock_waits: u64,
    pub deadlocks: u64,
}

impl Engine {
    /// Opens or makes the database on `disk`; after a crash it returns as soon as redo is done.
    pub fn open(_disk: Arc<dyn Disk>, _options: Options, _clock: Arc<dyn Clock>) -> Result<Engine> {
        unimplemented!()
    }

    /// Flushes everything, writes a checkpoint and joins all threads. Live transactions are rolled back by the next open.
    pub fn shutdown(&self) -> Result<()> {
        unimplemented!()
    }

    pub fn begin(&self, _isolation: Isolation) -> Txn {
        unimplemented!()
    }

    /// The index that every new database has: the owner's catalog starts here.
    pub fn root_index(&self) -> IndexId {
        unimplemented!()
    }

    /// False for an index never created, rolled back, or dropped and freed.
    pub fn index_exists(&self, _index: IndexId) -> bool {
        unimplemented!()
    }

    pub fn options(&self) -> &Options {
        unimplemented!()
    }

    pub fn stats(&self) -> Stats {
        unimplemented!()
    }

    /// Verifies every invariant of the index's tree.
    pub fn check(&self, _index: IndexId) -> Result<CheckReport> {
        unimplemented!()
    }

    /// About how many rows the index has.
    pub fn estimate_rows(&self, _index: IndexId) -> Result<u64> {
        unimplemented!()
    }

    /// Cuts the range at inner separators into about `parts` ranges of similar size, in key order.
    pub fn split_range(&self, _index: IndexId, _bounds: &Bounds, _parts: usize) -> Result<Vec<Bounds>> {
        unimplemented!()
    }
}
