//! Transactions of a session by MySQL's rules: autocommit, implicit commit, savepoints, what an error undoes.

use highkey_binlog::transaction::flags2;
use highkey_table::{DefinitionPassage, Isolation, Passage, StatementSavepoint, Transaction};
use highkey_types::MySqlError;

use super::Session;
use super::config::CompletionType;
use super::error;
use super::status::StatusCounter;
use super::temporary::KeptChanges;
use super::xa::Xa;
use crate::parse::ast::{AccessMode, IsolationLevel};

/// Characteristics of a transaction to come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Characteristics {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
}

/// A session's transaction.
#[derive(Default)]
pub struct TransactionState {
    /// Made when the first statement needs it.
    pub(super) current: Option<Transaction>,
    /// BEGIN was executed; ends with COMMIT or ROLLBACK.
    pub(super) explicit: bool,
    /// START TRANSACTION READ ONLY, or the session's default.
    read_only: bool,
    /// SET TRANSACTION without a scope: for the next one only.
    next: Characteristics,
    /// Where the running statement began.
    pub(super) statement: Option<StatementSavepoint>,
    /// The running statement changes something: the global read lock waits for its end.
    change: Option<Passage>,
    /// It changes a definition: LOCK INSTANCE FOR BACKUP waits for its end.
    definition: Option<DefinitionPassage>,
    /// It has changed rows of temporary tables and nothing else: its commit does not wait for the global read lock.
    only_temporary: bool,
    /// Since it began.
    pub(super) kept: KeptChanges,
    /// It is one in two phases. Declared after `current`: the name is free once that is undone.
    pub(super) xa: Option<Xa>,
}

pub fn isolation(level: IsolationLevel) -> Isolation {
    match level {
        IsolationLevel::ReadUncommitted => Isolation::ReadUncommitted,
        IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
        IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
        IsolationLevel::Serializable => Isolation::Serializable,
    }
}

impl TransactionState {
    /// SERVER_STATUS_IN_TRANS.
    pub fn is_open(&self, autocommit: bool) -> bool {
        self.explicit || (!autocommit && self.current.is_some())
    }

    /// Whether statements are part of a transaction that goes on after them, if none has begun yet then of the one that they begin.
    pub fn outlives_statements(&self, autocommit: bool) -> bool {
        self.explicit || !autocommit
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only && self.explicit
    }
}

impl Session {
    /// The transaction of the running statement, made if there is none.
    pub(crate) fn txn(&mut self) -> &mut Transaction {
        if self.transaction.current.is_none() {
            let isolation = self.transaction.next.isolation.take().unwrap_or(self.state.config.isolation);
            if !self.transaction.explicit {
                self.transaction.read_only = self.transaction.next.read_only.take().unwrap_or(self.state.config.read_only);
            }
            let mut txn = self.state.instance.database().begin_in(isolation, &self.state.locks);
            txn.set_lock_wait_timeout(self.state.config.lock_wait_timeout);
            txn.set_metadata_lock_timeout(self.state.config.metadata_timeout);
            txn.set_interrupt(self.state.process.flag());
            txn.set_progress(self.state.process.progress());
            txn.set_activity(self.state.process.activity().clone());
            let goes_on = self.transaction.outlives_statements(self.state.config.autocommit);
            self.state.process.set_transaction_mode(self.transaction.read_only, goes_on);
            if let Some(xa) = &self.transaction.xa {
                txn.set_xid(xa.xid().clone());
            }
            self.transaction.current = Some(txn);
            self.transaction.only_temporary = false;
        }
        self.transaction.current.as_mut().expect("made above")
    }

    /// The isolation level of the running statement's transaction, begun or not.
    pub(crate) fn isolation(&self) -> Isolation {
        match &self.transaction.current {
            Some(txn) => txn.isolation(),
            None => self.transaction.next.isolation.unwrap_or(self.state.config.isolation),
        }
    }

    /// Whether locking reads lock gaps too.
    pub(crate) fn locks_gaps(&self) -> bool {
        matches!(self.isolation(), Isolation::RepeatableRead | Isolation::Serializable)
    }

    /// SERIALIZABLE: reads inside a transaction lock, as if they said FOR SHARE.
    pub(crate) fn reads_lock(&self) -> bool {
        self.isolation() == Isolation::Serializable && self.transaction.outlives_statements(self.state.config.autocommit)
    }

    /// The transaction beside the state it is evaluated with.
    pub(crate) fn txn_and_state(&mut self) -> (&mut Transaction, &mut super::SessionState) {
        self.txn();
        (self.transaction.current.as_mut().expect("made above"), &mut self.state)
    }

    /// At the start of every statement.
    pub(crate) fn transaction_begin_statement(&mut self) {
        self.transaction.statement = None;
        self.routines.settled = false;
        let config = &self.state.config;
        self.state.process.set_checks(config.foreign_key_checks, config.events.flags2 & flags2::RELAXED_UNIQUE_CHECKS == 0);
        if let Some(txn) = &mut self.transaction.current {
            txn.set_lock_wait_timeout(self.state.config.lock_wait_timeout);
            txn.begin_statement();
        }
    }

    /// Before a statement that may change something takes any lock. Waits for the global read lock of another session; error 1223 if it is this one's.
    pub(crate) async fn begin_change(&mut self, definition: bool) -> Result<(), MySqlError> {
        if self.transaction.change.is_none() {
            let process = self.state.process.clone();
            let told = || process.set_state("Waiting for global read lock");
            let (locks, timeout, interrupt) = (&self.state.locks, self.state.config.metadata_timeout, process.flag());
            let begun = match definition {
                true => locks.begin_definition(timeout, &interrupt, told).await?,
                false => locks.begin_change(timeout, &interrupt, told).await?,
            };
            self.transaction.change = Some(begun);
        }
        Ok(())
    }

    /// Before a statement's first change of a definition: waits while another session has locked the instance for a backup.
    pub(crate) async fn begin_definition(&mut self) -> Result<(), MySqlError> {
        if self.transaction.definition.is_none() {
            let process = self.state.process.clone();
            let told = || process.set_state("Waiting for backup lock");
            let begun = self.state.locks.begin_definition_beside_backups(self.state.config.metadata_timeout, &process.flag(), told).await?;
            self.transaction.definition = Some(begun);
        }
        Ok(())
    }

    /// Both, before a statement that changes definitions takes any lock. It holds neither while it waits for the other: who makes a backup may take
    /// LOCK INSTANCE and the global read lock in any order while statements wait for one of them.
    pub(crate) async fn begin_definition_change(&mut self) -> Result<(), MySqlError> {
        loop {
            self.begin_definition().await?;
            if self.transaction.change.is_none() {
                self.transaction.change = self.state.locks.try_begin_definition()?;
            }
            if self.transaction.change.is_some() {
                return Ok(());
            }
            self.transaction.definition = None;
            self.begin_change(true).await?;
            self.transaction.definition = self.state.locks.try_begin_definition_beside_backups();
            if self.transaction.definition.is_some() {
                return Ok(());
            }
            self.transaction.change = None;
        }
    }

    /// Waits for the global read lock of another session now, so that the commit that follows does not.
    pub(crate) async fn begin_commit(&mut self) -> Result<(), MySqlError> {
        if self.transaction.change.is_none() {
            let process = self.state.process.clone();
            let told = || process.set_state("Waiting for commit lock");
            let passage = self.state.locks.begin_commit(self.state.config.metadata_timeout, &process.flag(), told).await?;
            self.transaction.change = Some(passage);
        }
        Ok(())
    }

    /// The statement changes nothing any more: neither the global read lock nor LOCK INSTANCE waits for it any longer.
    pub(crate) fn end_change(&mut self) {
        self.transaction.change = None;
        self.transaction.definition = None;
    }

    /// Before a statement's first change. Refuses what may not write (1792, 1290). `temporary`: it changes rows of temporary tables only, which is always
    /// allowed.
    pub(crate) fn begin_write(&mut self, temporary: bool) -> Result<(), MySqlError> {
        if temporary {
            let first = !self.txn().has_writes();
            self.transaction.only_temporary |= first;
        } else {
            self.check_writable()?;
            self.transaction.only_temporary = false;
        }
        let checks = self.state.config.foreign_key_checks;
        self.txn().set_foreign_key_checks(checks);
        self.begin_part_of_transaction();
        Ok(())
    }

    /// The running statement may change something, itself or by functions that it calls: that is undone with it, and told as its own.
    pub(crate) fn begin_part_of_transaction(&mut self) {
        // Alone in its transaction, a failed statement takes the transaction with it.
        let is_part = self.transaction.explicit || !self.state.config.autocommit || self.routines.is_nested();
        if self.transaction.statement.is_none() && is_part {
            let savepoint = self.txn().statement_savepoint();
            self.transaction.statement = Some(savepoint);
        }
        // What a body does is told as the statement's that it runs inside of.
        if !self.routines.is_nested()
            && let Some(source) = self.rows_source()
        {
            self.txn().log_statement(source);
        }
    }

    /// Error 1792 in a READ ONLY transaction, whatever is to be changed, or locked FOR UPDATE.
    pub(crate) fn check_transaction_writable(&self) -> Result<(), MySqlError> {
        let read_only = match self.transaction.current {
            Some(_) => self.transaction.read_only,
            None if self.transaction.explicit => self.transaction.read_only,
            None => self.transaction.next.read_only.unwrap_or(self.state.config.read_only),
        };
        if read_only { Err(error::read_only_transaction()) } else { Ok(()) }
    }

    pub(crate) fn check_writable(&self) -> Result<(), MySqlError> {
        self.check_transaction_writable()?;
        self.check_server_writable()
    }

    /// Error 1290 if `super_read_only` is set, or `read_only` and the account may not pass it. A replica's changes pass both.
    pub(crate) fn check_server_writable(&self) -> Result<(), MySqlError> {
        if self.replica.is_some() {
            return Ok(());
        }
        let globals = self.state.instance.globals();
        if globals.bool("super_read_only") {
            return Err(error::option_prevents("--super-read-only"));
        }
        if globals.bool("read_only") && !self.state.administers_connections() {
            return Err(error::option_prevents("--read-only"));
        }
        Ok(())
    }

    /// After a statement: commits in autocommit mode, undoes a failed statement. The error is the statement's, or the commit's.
    pub(crate) async fn transaction_end_statement(&mut self, outcome: Result<(), MySqlError>) -> Result<(), MySqlError> {
        let mut ended = self.commit_or_undo_statement(outcome).await;
        self.end_change();
        self.drop_left_tables();
        let open = self.transaction.is_open(self.state.config.autocommit);
        if ended.is_ok() && !open && self.gtid.is_left() {
            ended = self.commit_gtid_alone().await;
        }
        self.gtid.end_statement(open, ended.is_err());
        ended
    }

    async fn commit_or_undo_statement(&mut self, outcome: Result<(), MySqlError>) -> Result<(), MySqlError> {
        let savepoint = self.transaction.statement.take();
        let alone = !self.transaction.explicit && self.state.config.autocommit;
        match outcome {
            Ok(()) if alone => self.commit_current().await,
            Ok(()) => Ok(()),
            Err(e) => {
                let whole = self.ends_transaction(&e);
                if whole || alone {
                    Box::pin(self.roll_back_whole(e.code)).await?;
                } else if let (Some(savepoint), Some(txn)) = (savepoint, &mut self.transaction.current) {
                    let undone = txn.rollback_to_statement(&savepoint);
                    self.abandon_unless(undone).await?;
                }
                Err(e)
            }
        }
    }

    /// The error of a statement takes the whole transaction with it.
    fn ends_transaction(&self, e: &MySqlError) -> bool {
        !self.routines.settled && (e.code == 1213 || (e.code == 1205 && self.state.config.rollback_on_timeout))
    }

    pub(super) async fn commit_current(&mut self) -> Result<(), MySqlError> {
        if self.transaction.current.is_some() {
            self.state.count(StatusCounter::HandlerCommit, 1);
        }
        if self.transaction.current.as_ref().is_some_and(Transaction::tells_binlog) {
            self.gtid.tell();
            self.state.count(StatusCounter::BinlogCacheUse, 1);
            if self.transaction.current.as_ref().is_some_and(Transaction::logs_ahead) {
                self.state.count(StatusCounter::BinlogCacheDiskUse, 1);
            }
        }
        self.transaction.kept = KeptChanges::default();
        match self.transaction.current.take() {
            Some(txn) if !txn.has_something_to_commit() => txn.commit_unwritten(),
            Some(txn) if self.transaction.change.is_some() || (self.transaction.only_temporary && !txn.tells_binlog()) => Box::pin(txn.commit()).await,
            Some(txn) => {
                let committed = match self.begin_commit().await {
                    Ok(()) => Box::pin(txn.commit()).await,
                    // As MySQL does it: what may not be committed is gone.
                    Err(e) => Box::pin(txn.rollback()).await.and(Err(e)),
                };
                self.end_change();
                committed
            }
            None => Ok(()),
        }
    }

    /// Nothing was logged that has the GTID; it counts as executed, as in MySQL, which logs statements that do nothing.
    pub(super) async fn commit_gtid_alone(&mut self) -> Result<(), MySqlError> {
        let Some(source) = self.gtid_source() else { return Ok(()) };
        let mut txn = self.state.instance.database().begin(Isolation::ReadCommitted);
        txn.log_empty(source);
        Box::pin(txn.commit()).await
    }

    /// After a panic, and at the end of a session: the transaction is dropped, which rolls it back.
    pub(crate) fn abandon_transaction(&mut self) {
        self.forget_transaction();
    }

    /// Ends what is left of the transaction. A prepared one is anybody's from now on.
    pub(crate) fn forget_transaction(&mut self) {
        self.transaction = TransactionState::default();
        self.state.tables_refused = None;
    }

    pub(crate) async fn rollback_current(&mut self) -> Result<(), MySqlError> {
        self.transaction.kept = KeptChanges::default();
        match self.transaction.current.take() {
            Some(txn) => {
                self.state.count(StatusCounter::HandlerRollback, 1);
                Box::pin(txn.rollback()).await
            }
            None => Ok(()),
        }
    }

    /// What DDL, BEGIN, LOCK TABLES and others do first.
    pub(crate) async fn implicit_commit(&mut self) -> Result<(), MySqlError> {
        self.transaction.explicit = false;
        self.transaction.statement = None;
        self.commit_current().await
    }

    /// What SET TRANSACTION has said of the next transaction is over.
    pub(crate) fn forget_next_transaction(&mut self) {
        self.transaction.next = Characteristics::default();
    }

    /// BEGIN and START TRANSACTION.
    pub(crate) async fn begin(&mut self, consistent_snapshot: bool, access: Option<AccessMode>) -> Result<(), MySqlError> {
        self.implicit_commit().await?;
        self.state.locks.unlock_tables();
        self.transaction.explicit = true;
        let default = self.transaction.next.read_only.take().unwrap_or(self.state.config.read_only);
        self.transaction.read_only = access.map_or(default, |a| a == AccessMode::ReadOnly);
        // Now, so that it has the level that is set now, whatever SET says before its first statement.
        let txn = self.txn();
        if consistent_snapshot {
            if txn.isolation() == Isolation::RepeatableRead || txn.isolation() == Isolation::Serializable {
                txn.snapshot();
            } else {
                self.state.push_warning(error::warning(138, "InnoDB: WITH CONSISTENT SNAPSHOT was ignored because this phrase can only be used with REPEATABLE READ isolation level."));
            }
        }
        Ok(())
    }

    /// COMMIT and ROLLBACK. True: the connection is to be closed (RELEASE).
    pub(crate) async fn end_transaction(&mut self, commit: bool, chain: bool, release: bool) -> Result<bool, MySqlError> {
        let chained = chain || (!release && self.state.config.completion_type == CompletionType::Chain);
        let release = release || (!chain && self.state.config.completion_type == CompletionType::Release);
        let isolation = self.transaction.current.as_ref().map(|t| t.isolation());
        let read_only = self.transaction.read_only;
        self.transaction.explicit = false;
        self.transaction.statement = None;
        if commit && self.gtid.is_owned() && let Some(source) = self.gtid_source() {
            // It is told of even if it has changed nothing: the GTID counts as executed.
            self.txn().log_empty(source);
        }
        if !commit {
            self.gtid.give_up();
        }
        if commit {
            self.commit_current().await?;
        } else {
            let kept = self.transaction.kept;
            self.rollback_current().await?;
            self.warn_of_kept(kept);
        }
        if chained {
            self.transaction.explicit = true;
            self.transaction.read_only = read_only;
            self.transaction.next.isolation = isolation;
        }
        Ok(release)
    }

    pub(crate) fn has_savepoint(&self, name: &str) -> bool {
        self.transaction.current.as_ref().is_some_and(|txn| txn.has_savepoint(name))
    }

    pub(crate) fn savepoint(&mut self, name: &str) {
        // In autocommit mode outside of a transaction a savepoint ends with its statement: a body's, with the one that it runs inside of.
        if self.transaction.explicit || !self.state.config.autocommit || self.routines.is_nested() {
            self.state.count(StatusCounter::HandlerSavepoint, 1);
            self.txn().savepoint(name);
        }
    }

    pub(crate) async fn rollback_to(&mut self, name: &str) -> Result<(), MySqlError> {
        let undone = match &mut self.transaction.current {
            Some(txn) => {
                self.state.count(StatusCounter::HandlerSavepointRollback, 1);
                txn.rollback_to(name)
            }
            None => Err(error::savepoint_missing(name)),
        };
        match undone {
            Err(e) if e.code == error::savepoint_missing(name).code => Err(e),
            undone => {
                let kept = self.transaction.kept;
                self.abandon_unless(undone).await?;
                self.warn_of_kept(kept);
                Ok(())
            }
        }
    }

    /// What could not be undone is half there: nothing of the transaction may be committed.
    async fn abandon_unless(&mut self, undone: Result<(), MySqlError>) -> Result<(), MySqlError> {
        let Err(e) = undone else { return Ok(()) };
        self.roll_back_whole(e.code).await.and(Err(e))
    }

    /// An error of that code ends the transaction.
    async fn roll_back_whole(&mut self, code: u16) -> Result<(), MySqlError> {
        let rolled_back = self.rollback_current().await;
        match &mut self.transaction.xa {
            // What comes until its end is for nothing.
            Some(xa) => xa.note_rolled_back(code),
            None => self.transaction.explicit = false,
        }
        rolled_back
    }

    pub(crate) fn release_savepoint(&mut self, name: &str) -> Result<(), MySqlError> {
        match &mut self.transaction.current {
            Some(txn) => txn.release(name),
            None => Err(error::savepoint_missing(name)),
        }
    }

    /// SET TRANSACTION without a scope.
    pub(crate) fn set_next_transaction(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) -> Result<(), MySqlError> {
        if self.transaction.explicit || self.transaction.current.is_some() {
            return Err(error::transaction_in_progress());
        }
        if isolation.is_some() {
            self.transaction.next.isolation = isolation;
        }
        if read_only.is_some() {
            self.transaction.next.read_only = read_only;
        }
        Ok(())
    }

    /// After SET autocommit = 1: what was open is committed, and over even if BEGIN began it.
    pub(crate) async fn autocommit_turned_on(&mut self) -> Result<(), MySqlError> {
        self.implicit_commit().await
    }
}
