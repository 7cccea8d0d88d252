//! Transactions in two phases, as MySQL's sessions go through them: states and what each of them refuses.
//!
//! ```text
//!              START           END             PREPARE                  COMMIT, ROLLBACK
//! NON-EXISTING ------> ACTIVE ------> IDLE ---------------> PREPARED -------------------> NON-EXISTING
//!                        ^   RESUME    |                        | the session ends: anybody's
//!                        +-------------+ ROLLBACK, ONE PHASE    v
//!                        | END of what an error has rolled back
//!                        v
//!                  ROLLBACK ONLY ----------------------------------------------------> NON-EXISTING
//! ```

use std::sync::Arc;

use highkey_table::{ReplicaRecord, XaBranch, Xid};
use highkey_types::{MySqlError, Value, errors};

use super::Session;
use crate::execute::{Failure, Outcome};
use crate::parse::ast::{ShowWhat, Statement, XaStart, XaStatement};
use crate::session::{ResultSink, StatusCounter};
use crate::show::Answer;

/// A session's transaction in two phases.
pub(crate) struct Xa {
    branch: XaBranch,
    state: XaState,
    /// It has been rolled back by an error, this one.
    error: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum XaState {
    Active,
    Idle,
    Prepared,
    RollbackOnly,
}

impl XaState {
    fn name(self) -> &'static str {
        match self {
            XaState::Active => "ACTIVE",
            XaState::Idle => "IDLE",
            XaState::Prepared => "PREPARED",
            XaState::RollbackOnly => "ROLLBACK ONLY",
        }
    }
}

impl Xa {
    pub fn xid(&self) -> &Arc<Xid> {
        self.branch.xid()
    }

    /// The transaction has been rolled back because of the running statement's error.
    pub fn note_rolled_back(&mut self, code: u16) {
        self.error.get_or_insert(code);
    }

    /// Error 1613, 1614 or 1402 if it has been rolled back; it can only be ended from then on.
    fn check_not_rolled_back(&mut self) -> Result<(), MySqlError> {
        let Some(code) = self.error else { return Ok(()) };
        self.state = XaState::RollbackOnly;
        Err(match code {
            1205 => errors::xa_rbtimeout(),
            1213 => errors::xa_rbdeadlock(),
            _ => errors::xa_rbrollback(),
        })
    }
}

/// SHOW of these reads tables in MySQL.
fn reads_tables(what: &ShowWhat) -> bool {
    use ShowWhat::*;
    matches!(
        what,
        Databases | Tables { .. } | OpenTables { .. } | TableStatus { .. } | Columns { .. } | Index { .. } | CreateTable(_) | CreateView(_) | Variables { .. } | Status { .. }
            | CharacterSet | Collation | Triggers { .. } | Events { .. } | ProcedureStatus | FunctionStatus | Plugins
    )
}

impl Session {
    /// Error 1399 for what is not allowed inside a transaction in two phases. `commits`: the statement would commit first.
    pub(crate) fn check_xa(&self, statement: &Statement, commits: bool) -> Result<(), MySqlError> {
        let Some(xa) = &self.transaction.xa else { return Ok(()) };
        let active = xa.state == XaState::Active;
        let refused = match statement {
            Statement::Begin { .. } | Statement::Commit { .. } | Statement::Rollback { .. } => true,
            Statement::RollbackTo(name) | Statement::ReleaseSavepoint(name) => !active && self.has_savepoint(name),
            Statement::Savepoint(_) | Statement::Describe { .. } => !active,
            Statement::Show(show) => !active && reads_tables(&show.what),
            _ => commits,
        };
        if refused { self.check_outside_xa() } else { Ok(()) }
    }

    /// Error 1399 inside a transaction in two phases.
    pub(crate) fn check_outside_xa(&self) -> Result<(), MySqlError> {
        match &self.transaction.xa {
            Some(xa) => Err(errors::xaer_rmfail(xa.state.name())),
            None => Ok(()),
        }
    }

    /// This session has a transaction between its two phases.
    pub(crate) fn xa_is_prepared(&self) -> bool {
        self.transaction.xa.as_ref().is_some_and(|xa| xa.state == XaState::Prepared)
    }

    pub(crate) async fn xa(&mut self, statement: &XaStatement, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        match statement {
            XaStatement::Start { xid, how } => self.xa_start(xid, *how).await?,
            XaStatement::End { xid, suspend } => self.xa_end(xid, *suspend)?,
            XaStatement::Prepare(xid) => {
                self.xa_prepare(xid, || {}).await?;
                self.state.count(StatusCounter::HandlerPrepare, 1);
                // Another server's log goes on with other transactions.
                if self.state.variables.bool("pseudo_slave_mode") {
                    self.xa_over().await?;
                }
            }
            XaStatement::Commit { xid, one_phase } => self.xa_commit(xid, *one_phase).await?,
            XaStatement::Rollback(xid) => self.xa_rollback(xid).await?,
            XaStatement::Recover { convert } => {
                let answer = self.xa_recover(*convert);
                return self.send(answer, false, sink).await;
            }
        }
        self.state.tables_refused = self.transaction.xa.as_ref().map(|xa| xa.state).filter(|state| *state != XaState::Active).map(XaState::name);
        Ok(Outcome::ok())
    }

    /// XA START. Errors 1397 (NOTA), 1398 (INVAL), 1399 (RMFAIL), 1400 (OUTSIDE), 1440 (DUPID).
    pub(crate) async fn xa_start(&mut self, xid: &Xid, how: XaStart) -> Result<(), MySqlError> {
        if how == XaStart::Resume
            && let Some(xa) = self.transaction.xa.as_mut().filter(|xa| xa.state == XaState::Idle)
        {
            if **xa.xid() != *xid {
                return Err(errors::xaer_nota());
            }
            xa.state = XaState::Active;
            return Ok(());
        }
        if how != XaStart::New {
            return Err(errors::xaer_inval());
        }
        self.check_outside_xa()?;
        if self.state.locks.has_tables() || self.transaction.is_open(self.state.config.autocommit) {
            return Err(errors::xaer_outside());
        }
        let branch = self.state.instance.database().xa_start(xid.clone()).ok_or_else(errors::xaer_dupid)?;
        self.begin(false, None).await?;
        self.txn().set_xid(branch.xid().clone());
        self.transaction.xa = Some(Xa { branch, state: XaState::Active, error: None });
        Ok(())
    }

    /// XA END. Errors 1397, 1398, 1399, and why it was rolled back.
    pub(crate) fn xa_end(&mut self, xid: &Xid, suspend: bool) -> Result<(), MySqlError> {
        if suspend {
            return Err(errors::xaer_inval());
        }
        let xa = match &mut self.transaction.xa {
            Some(xa) if xa.state == XaState::Active => xa,
            _ => return Err(self.xa_not_now()),
        };
        if **xa.xid() != *xid {
            return Err(errors::xaer_nota());
        }
        let ended = xa.check_not_rolled_back();
        match &ended {
            Ok(()) => xa.state = XaState::Idle,
            Err(_) => self.state.tables_refused = Some(XaState::RollbackOnly.name()),
        }
        ended
    }

    /// Error 1399 with the present state.
    fn xa_not_now(&self) -> MySqlError {
        errors::xaer_rmfail(self.transaction.xa.as_ref().map_or("NON-EXISTING", |xa| xa.state.name()))
    }

    /// XA PREPARE. Errors 1397, 1399; 1402 for what could not be prepared, and is rolled back. `appended`: see `XaBranch::prepare`.
    pub(crate) async fn xa_prepare(&mut self, xid: &Xid, appended: impl FnOnce() + Send) -> Result<(), MySqlError> {
        match &self.transaction.xa {
            Some(xa) if xa.state == XaState::Idle => {
                if **xa.xid() != *xid {
                    return Err(errors::xaer_nota());
                }
            }
            _ => return Err(self.xa_not_now()),
        }
        let prepared = match self.txn().has_writes() {
            true => self.begin_commit().await,
            false => Ok(()),
        };
        let prepared = match (prepared, self.transaction.current.take(), &mut self.transaction.xa) {
            (Ok(()), Some(txn), Some(xa)) => {
                if txn.tells_binlog() {
                    self.gtid.tell();
                }
                xa.branch.prepare(txn, appended).await
            }
            (prepared, _, _) => prepared,
        };
        self.end_change();
        match (prepared, &mut self.transaction.xa) {
            (Ok(()), Some(xa)) => {
                xa.state = XaState::Prepared;
                self.gtid.give();
                let left = self.gtid.is_left();
                if left {
                    self.commit_gtid_alone().await?;
                }
                self.gtid.end_transaction();
                Ok(())
            }
            (failed, _) => {
                if let Err(e) = failed {
                    tracing::warn!("a transaction in two phases cannot be prepared: {}", e.message);
                }
                self.xa_over().await?;
                Err(errors::xa_rbrollback())
            }
        }
    }

    /// The transaction has ended, or is rolled back now; if it is prepared it is anybody's.
    pub(crate) async fn xa_over(&mut self) -> Result<(), MySqlError> {
        let rolled_back = self.rollback_current().await;
        self.transaction.xa = None;
        self.transaction.explicit = false;
        self.transaction.statement = None;
        self.state.tables_refused = None;
        rolled_back
    }

    /// XA COMMIT. Errors 1397, 1399; why it was rolled back, 1402; 1401 where it could not be committed and may be tried again.
    async fn xa_commit(&mut self, xid: &Xid, one_phase: bool) -> Result<(), MySqlError> {
        let Some(xa) = self.transaction.xa.as_mut().filter(|xa| **xa.xid() == *xid) else { return self.xa_end_other(xid, true, None).await.map(drop) };
        if let Err(e) = xa.check_not_rolled_back() {
            return self.xa_over().await.and(Err(e));
        }
        match (xa.state, one_phase) {
            (XaState::Idle, true) => {
                let committed = self.commit_current().await;
                self.xa_over().await?;
                committed.map_err(|e| {
                    tracing::warn!("a transaction in two phases cannot be committed: {}", e.message);
                    errors::xa_rbrollback()
                })
            }
            (XaState::Prepared, false) => self.xa_end_own(true).await,
            _ => Err(self.xa_not_now()),
        }
    }

    /// XA ROLLBACK. Errors 1397, 1399; 1401 as for XA COMMIT.
    async fn xa_rollback(&mut self, xid: &Xid) -> Result<(), MySqlError> {
        let Some(xa) = self.transaction.xa.as_mut().filter(|xa| **xa.xid() == *xid) else { return self.xa_end_other(xid, false, None).await.map(drop) };
        match xa.state {
            XaState::Active => Err(self.xa_not_now()),
            XaState::Prepared => self.xa_end_own(false).await,
            XaState::Idle | XaState::RollbackOnly => self.xa_over().await,
        }
    }

    /// Commits or rolls back what this session has prepared.
    async fn xa_end_own(&mut self, commit: bool) -> Result<(), MySqlError> {
        let Some(mut xa) = self.transaction.xa.take() else { return Err(self.xa_not_now()) };
        let ended = self.xa_end_branch(&mut xa.branch, commit, None).await;
        if ended.is_err() && xa.branch.is_prepared() {
            self.transaction.xa = Some(xa);
            return ended;
        }
        drop(xa);
        self.xa_over().await?;
        ended
    }

    /// Commits or rolls back what is prepared and nobody's. A commit of changes writes the replica's `record` with it: the answer says so.
    pub(crate) async fn xa_end_other(&mut self, xid: &Xid, commit: bool, record: Option<&ReplicaRecord>) -> Result<bool, MySqlError> {
        self.check_outside_xa()?;
        let mut branch = self.state.instance.database().xa_take(xid).ok_or_else(errors::xaer_nota)?;
        if self.transaction.is_open(self.state.config.autocommit) {
            return Err(self.xa_not_now());
        }
        let recorded = commit && branch.has_changes();
        self.xa_end_branch(&mut branch, commit, record).await.map(|()| recorded)
    }

    async fn xa_end_branch(&mut self, branch: &mut XaBranch, commit: bool, record: Option<&ReplicaRecord>) -> Result<(), MySqlError> {
        let failed = |e: MySqlError| {
            tracing::warn!("a prepared transaction cannot be ended: {}", e.message);
            errors::xaer_rmerr()
        };
        if commit && branch.is_rolled_back() {
            return Err(errors::xa_rbrollback());
        }
        if branch.has_changes() {
            self.begin_commit().await.map_err(failed)?;
        }
        let source = self.event_source();
        let tells = source.is_some() && branch.is_logged();
        let ended = match commit {
            true => branch.commit(source.as_ref(), record).await,
            false => branch.rollback(source.as_ref()).await,
        };
        self.end_change();
        if ended.is_ok() && tells {
            self.gtid.tell();
        }
        ended.map_err(failed)
    }

    fn xa_recover(&self, convert: bool) -> Answer {
        let prepared = self.state.instance.database().xa_prepared();
        let row = |xid: &Arc<Xid>| {
            let data = [&xid.gtrid[..], &xid.bqual].concat();
            let data = match (convert, String::from_utf8(data)) {
                (false, Ok(text)) => Value::Text(text.into()),
                (false, Err(other)) => Value::Bytes(other.into_bytes()),
                (true, data) => {
                    let bytes = data.map_or_else(|e| e.into_bytes(), String::into_bytes);
                    Value::Text(bytes.iter().fold("0x".to_owned(), |hex, byte| format!("{hex}{byte:02X}")).into())
                }
            };
            vec![Value::Int(xid.format), Value::Int(xid.gtrid.len() as i64), Value::Int(xid.bqual.len() as i64), data]
        };
        Answer::new("formatID i;gtrid_length i;bqual_length i;data s128", prepared.iter().map(row).collect())
    }
}
