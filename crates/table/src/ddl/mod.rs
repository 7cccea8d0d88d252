//! Data definition. Every statement here is one storage transaction over the catalog's records and the trees it makes
//! and drops: see README.md, "DDL".
//!
//! Waits for metadata locks are futures. The work itself runs on the calling thread, which a server takes from its
//! blocking pool.

mod alter;
mod build;
mod checks;
mod event;
mod online;
mod partition;
mod routine;
mod schema;
mod spec;
mod table;
mod trigger;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use highkey_storage::{Interrupt, Progress, Stage, Txn, Waits};
use highkey_types::{MySqlError, Str, errors};

use crate::commit::EventSource;
use crate::database::Database;
use crate::error;
use crate::replica::ReplicaRecord;
use crate::session_locks::SessionLocks;
use crate::transaction::HeldLocks;

pub(crate) use alter::same_bytes;
pub use alter::{AlterPlan, Others, RowConversion};
pub use checks::rename_checks;
pub use partition::RepartitionPlan;
pub(crate) use spec::define;
pub use table::TableName;
pub(crate) use table::{drop_trees, make_trees, next_definition, refuse_system_schema};

/// A statement that is logged as its text.
#[derive(Clone, Debug, Default)]
pub struct LoggedStatement {
    pub source: EventSource,
    pub text: Str,
    /// Set once it is in the log.
    pub told: Arc<AtomicBool>,
}

/// The circumstances of a DDL statement.
#[derive(Clone)]
pub struct DdlContext {
    /// `lock_wait_timeout`.
    pub lock_wait_timeout: Duration,
    pub interrupt: Arc<Interrupt>,
    pub progress: Arc<Progress>,
    /// The statement's text for the binary log, committed with it.
    pub log: Option<Arc<LoggedStatement>>,
    /// What the session has locked.
    pub session: Option<Arc<SessionLocks>>,
    /// What a replica notes with the statement: how far it has got.
    pub replica: Option<ReplicaRecord>,
    /// `foreign_key_checks`: what foreign keys tie together stays together, and rows are checked when one is added.
    pub foreign_key_checks: bool,
    /// `innodb_ddl_threads`: threads that build indexes; no more than the machine has cores.
    pub threads: usize,
    /// `innodb_ddl_buffer_size`: bytes of index entries in memory, for all threads together; each has a mebibyte at least.
    pub memory: usize,
    /// `innodb_online_alter_log_max_size`: bytes of notes on what others change while indexes are built.
    pub online_log: usize,
    /// `LOCK=`: what others may do with the table meanwhile.
    pub others: Others,
}

impl Default for DdlContext {
    fn default() -> DdlContext {
        DdlContext {
            lock_wait_timeout: Duration::from_secs(31_536_000),
            interrupt: Arc::default(),
            progress: Arc::default(),
            log: None,
            session: None,
            replica: None,
            foreign_key_checks: true,
            threads: 1,
            memory: 256 << 20,
            online_log: 128 << 20,
            others: Others::default(),
        }
    }
}

impl DdlContext {
    /// Commits on this thread: nothing may come between the commit and the publication of the new catalog.
    pub(crate) fn commit(&self, db: &Database, mut txn: Txn) -> Result<(), MySqlError> {
        let failed = |e| error::storage(e, "catalog");
        self.progress.enter(Stage::Committing, 0);
        if let Some(record) = &self.replica {
            record.put(&mut txn)?;
        }
        let events = match &self.log {
            Some(log) => log.source.statement_payload(&log.text, txn.releasing())?,
            None => Vec::new(),
        };
        let replicas = db.semi_sync().filter(|replicas| replicas.is_enabled() && !events.is_empty());
        if let Some(replicas) = replicas {
            replicas.prepare(&mut txn);
        }
        Waits::note_binlog_bytes(events.len() as u64);
        let wait = txn.commit(&events).map_err(failed)?;
        let acknowledged = replicas.and_then(|replicas| replicas.begin(wait.lsn()));
        if let Some(log) = &self.log {
            log.told.store(true, Ordering::SeqCst);
        }
        wait.wait().map_err(failed)?;
        if let Some(acknowledged) = acknowledged {
            self.progress.enter(Stage::WaitingForReplica, 0);
            acknowledged.wait_blocking();
        }
        Ok(())
    }

    /// Commits what the binary log is told nothing of, on this thread.
    pub(crate) fn commit_unlogged(&self, txn: Txn) -> Result<(), MySqlError> {
        let failed = |e| error::storage(e, "catalog");
        self.progress.enter(Stage::Committing, 0);
        txn.commit(&[]).map_err(failed)?.wait().map_err(failed)
    }

    pub(crate) fn check_interrupt(&self) -> Result<(), MySqlError> {
        if self.interrupt.is_raised() { Err(errors::query_interrupted()) } else { Ok(()) }
    }
}

impl Database {
    pub(crate) fn ddl_locks(&self, cx: &DdlContext) -> HeldLocks {
        HeldLocks::new(self.metadata_locks.clone(), cx.session.clone())
    }

    /// Locks tables (present or future ones) for a DDL statement, and their schemas against being dropped.
    pub(crate) async fn lock_tables(
        &self,
        cx: &DdlContext,
        tables: Vec<crate::metadata_lock::Name>,
    ) -> Result<HeldLocks, MySqlError> {
        let mut locks = self.ddl_locks(cx);
        cx.progress.enter(Stage::WaitingForMetadataLock, 0);
        locks.acquire_tables(tables, cx.lock_wait_timeout, &cx.interrupt).await?;
        Ok(locks)
    }
}
