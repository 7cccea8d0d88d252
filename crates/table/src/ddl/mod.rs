//! Data definition. Every statement here is one storage transaction over the catalog's records and the trees it makes
//! and drops: see README.md, "DDL".
//!
//! Waits for metadata locks are futures. The work itself runs on the calling thread, which a server takes from its
//! blocking pool.

mod alter;
mod build;
mod schema;
mod spec;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use highkey_storage::{Interrupt, Txn};
use highkey_types::{MySqlError, errors};

use crate::database::Database;
use crate::error;
use crate::transaction::HeldLocks;

pub use alter::{AlterPlan, RowConversion};
pub use table::TableName;

/// The circumstances of a DDL statement.
#[derive(Clone)]
pub struct DdlContext {
    /// `lock_wait_timeout`.
    pub lock_wait_timeout: Duration,
    pub interrupt: Arc<Interrupt>,
    pub progress: Arc<Progress>,
    /// The statement's binlog events, committed with it.
    pub binlog: Vec<u8>,
}

impl Default for DdlContext {
    fn default() -> DdlContext {
        DdlContext {
            lock_wait_timeout: Duration::from_secs(31_536_000),
            interrupt: Arc::default(),
            progress: Arc::default(),
            binlog: Vec::new(),
        }
    }
}

impl DdlContext {
    /// Commits on this thread: nothing may come between the commit and the publication of the new catalog.
    pub(crate) fn commit(&self, txn: Txn) -> Result<(), MySqlError> {
        let failed = |e| error::storage(e, "catalog");
        self.progress.enter(Phase::Committing, 0);
        txn.commit(&self.binlog).map_err(failed)?.wait().map_err(failed)
    }

    pub(crate) fn check_interrupt(&self) -> Result<(), MySqlError> {
        if self.interrupt.is_raised() { Err(errors::query_interrupted()) } else { Ok(()) }
    }
}

/// How far a DDL statement is; read by SHOW PROCESSLIST.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    done: AtomicU64,
    total: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    Starting,
    WaitingForMetadataLock,
    CopyingRows,
    BuildingIndex,
    Committing,
}

impl Progress {
    pub(crate) fn enter(&self, phase: Phase, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, rows: u64) {
        self.done.fetch_add(rows, Ordering::Relaxed);
    }

    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Starting,
            1 => Phase::WaitingForMetadataLock,
            2 => Phase::CopyingRows,
            3 => Phase::BuildingIndex,
            _ => Phase::Committing,
        }
    }

    /// Rows of the present phase that are done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Rows of the present phase, estimated; 0 if it has none.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

impl Database {
    pub(crate) fn ddl_locks(&self) -> HeldLocks {
        HeldLocks::new(self.metadata_locks.clone(), self.metadata_locks.new_owner())
    }

    /// Locks tables (present or future ones) for a DDL statement, and their schemas against being dropped.
    pub(crate) async fn lock_tables(
        &self,
        cx: &DdlContext,
        tables: Vec<crate::metadata_lock::Name>,
    ) -> Result<HeldLocks, MySqlError> {
        let mut locks = self.ddl_locks();
        cx.progress.enter(Phase::WaitingForMetadataLock, 0);
        locks.acquire_tables(tables, cx.lock_wait_timeout, &cx.interrupt).await?;
        Ok(locks)
    }
}
