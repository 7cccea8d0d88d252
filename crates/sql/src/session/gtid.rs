//! `gtid_next`: which GTID the session's next transaction gets, and what it means to give it one.
//!
//! A GTID that was set is owned until its transaction has ended; then it has been used, and whatever would be a transaction needs another
//! one. A statement by itself that changes nothing leaves it to the next; one that fails gives it up. If it had been executed before, statements that
//! would change something do nothing, those of transactions in two phases among them: so a log can be applied twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use highkey_binlog::Uuid;
use highkey_table::{GtidChoice, OwnedGtid, Owning};
use highkey_types::{MySqlError, errors};

use super::Session;
use super::error::err;
use crate::parse::ast::{Statement, XaStatement};
use crate::replica::begins_with_format;

/// Between two looks at a GTID that another session owns.
const BUSY_WAIT: Duration = Duration::from_millis(10);

/// The session's `gtid_next`.
#[derive(Default)]
pub(crate) struct NextGtid {
    next: Next,
    /// The running statement has made events that have it.
    given: AtomicBool,
    /// It has given it up.
    given_up: bool,
    /// Such events are in the log.
    told: Arc<AtomicBool>,
    /// A transaction was open when the statement began.
    was_open: bool,
}

#[derive(Default)]
enum Next {
    #[default]
    Automatic,
    Anonymous,
    Assigned { uuid: Uuid, number: u64, state: Assigned },
}

enum Assigned {
    Owned { _gtid: OwnedGtid },
    /// A transaction of this GTID has been committed before.
    Executed,
    /// By a transaction that has ended.
    Used,
}

impl NextGtid {
    pub fn begin_statement(&mut self, open: bool) {
        *self.given.get_mut() = false;
        self.given_up = false;
        self.forget_told();
        self.was_open = open;
    }

    /// What comes is told from its beginning.
    pub fn forget_told(&mut self) {
        self.told = Arc::default();
    }

    /// As `@@gtid_next`.
    pub fn text(&self) -> String {
        match &self.next {
            Next::Automatic => "AUTOMATIC".into(),
            Next::Anonymous => "ANONYMOUS".into(),
            Next::Assigned { uuid, number, .. } => format!("{uuid}:{number}"),
        }
    }

    /// What the events of a change say.
    pub fn choice(&self, automatic: GtidChoice) -> GtidChoice {
        match &self.next {
            Next::Automatic => automatic,
            Next::Anonymous => GtidChoice::Anonymous,
            Next::Assigned { uuid, number, .. } => GtidChoice::Assigned(*uuid, *number),
        }
    }

    /// Events that have it are to be committed with the running statement.
    pub fn give(&self) {
        self.given.store(true, Ordering::Relaxed);
    }

    /// They are committed.
    pub fn tell(&self) {
        self.give();
        self.told.store(true, Ordering::SeqCst);
    }

    /// Set by whoever commits a statement as its text.
    pub fn told(&self) -> &Arc<AtomicBool> {
        &self.told
    }

    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }

    /// The running statement used it up, and changed nothing that would have been logged.
    pub fn is_left(&self) -> bool {
        self.is_owned() && self.given.load(Ordering::Relaxed) && !self.given_up && !self.is_told()
    }

    pub fn is_owned(&self) -> bool {
        matches!(self.next, Next::Assigned { state: Assigned::Owned { .. }, .. })
    }

    /// ROLLBACK gives it up, whatever came before.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }

    /// The transaction that had it has ended.
    pub fn end_transaction(&mut self) {
        if let Next::Assigned { state, .. } = &mut self.next {
            *state = Assigned::Used;
        }
    }

    /// At a statement's end. `open`: a transaction goes on.
    pub fn end_statement(&mut self, open: bool, failed: bool) {
        if !open && (self.was_open || failed || self.given_up || *self.given.get_mut()) {
            self.end_transaction();
        }
    }
}

/// `UUID:NUMBER`.
fn parse(text: &str) -> Option<(Uuid, u64)> {
    let (uuid, number) = text.trim().rsplit_once(':')?;
    let number = number.trim().parse().ok().filter(|n| (1..i64::MAX as u64).contains(n))?;
    Some((uuid.trim().parse().ok()?, number))
}

/// Whether a statement changes something that the binary log would tell of, or a temporary table.
fn changes(statement: &Statement, commits: bool) -> bool {
    use Statement::*;
    match statement {
        Insert(_) | Update(_) | Delete(_) | LoadData(_) | CreateTable(_) | DropTable(_) => true,
        // It is run, and committed.
        Explain { analyze: true, statement, .. } => changes(statement, false),
        Binlog(text) => !begins_with_format(text),
        Xa(xa) => !matches!(xa, XaStatement::Recover { .. }),
        LockTables(_) => false,
        // FLUSH and what is said to a replica too, which are not logged here: they are in other servers' logs, with a GTID.
        _ => commits,
    }
}

impl Session {
    /// SET gtid_next. Errors 1381, 1766, 1774, 1781, 1782, 1790.
    pub(crate) async fn set_gtid_next(&mut self, text: &str) -> Result<(), MySqlError> {
        // Between the phases there is one to be set for the second.
        if self.transaction.is_open(self.state.config.autocommit) && !self.xa_is_prepared() {
            return Err(errors::variable_not_settable_in_transaction("gtid_next"));
        }
        let mode = self.state.instance.global_text("gtid_mode");
        let next = if text.eq_ignore_ascii_case("AUTOMATIC") {
            Next::Automatic
        } else if text.eq_ignore_ascii_case("ANONYMOUS") {
            if mode == "ON" {
                return Err(errors::cant_set_gtid_next_to_anonymous_when_gtid_mode_is_on());
            }
            Next::Anonymous
        } else {
            let (uuid, number) = parse(text).ok_or_else(|| err(1774, format!("Malformed GTID specification '{text}'.")))?;
            if mode == "OFF" {
                return Err(err(1781, "@@SESSION.GTID_NEXT cannot be set to UUID:NUMBER when @@GLOBAL.GTID_MODE = OFF."));
            }
            if let (true, Next::Assigned { uuid: owned, number: at, .. }) = (self.gtid.is_owned(), &self.gtid.next) {
                if (*owned, *at) == (uuid, number) {
                    return Ok(());
                }
                return Err(errors::cant_set_gtid_next_when_owning_gtid(&format!("{owned}:{at}")));
            }
            Next::Assigned { uuid, number, state: self.own(uuid, number).await? }
        };
        if self.gtid.is_owned() {
            return Err(errors::cant_set_gtid_next_when_owning_gtid(&self.gtid.text()));
        }
        self.gtid.next = next;
        Ok(())
    }

    /// Waits until nobody else owns it. Errors 1317, and 1381 without a binary log: nothing else keeps GTIDs.
    async fn own(&mut self, uuid: Uuid, number: u64) -> Result<Assigned, MySqlError> {
        let binlog = self.state.binlog()?.clone();
        loop {
            match binlog.own(uuid, number, self.state.client.connection_id)? {
                Owning::Owned(gtid) => return Ok(Assigned::Owned { _gtid: gtid }),
                Owning::Executed => return Ok(Assigned::Executed),
                Owning::Busy => {
                    self.state.process.check()?;
                    tokio::time::sleep(BUSY_WAIT).await;
                }
            }
        }
    }

    /// Before CREATE TABLE … SELECT, of which the binary log tells as of two transactions: error 1786 or a warning, as `enforce_gtid_consistency` says.
    pub(crate) fn check_gtid_consistency(&mut self) -> Result<(), MySqlError> {
        let told = self.state.instance.database().binlog().is_some() && self.state.variables.bool("sql_log_bin");
        match self.state.instance.global_text("enforce_gtid_consistency").as_str() {
            "ON" if told => Err(errors::gtid_unsafe_create_select()),
            "WARN" if told => {
                self.state.push_ignored(errors::gtid_unsafe_create_select());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Before a statement: whether it is left out, because the transaction with this GTID has been executed before. Errors: 1837 once it has been used, 1778
    /// for a statement that would commit it in its middle, 1786 for one that is two transactions.
    pub(crate) fn check_gtid(&mut self, statement: &Statement, commits: bool) -> Result<bool, MySqlError> {
        let Next::Assigned { state, .. } = &self.gtid.next else { return Ok(false) };
        if !changes(statement, commits) {
            return Ok(false);
        }
        let open = self.transaction.is_open(self.state.config.autocommit);
        // By itself a definition of temporary tables is a transaction too, of no events.
        let commits = commits || (!open && matches!(statement, Statement::CreateTable(_) | Statement::DropTable(_)));
        match state {
            Assigned::Used => return Err(errors::gtid_next_type_undefined_gtid(&self.gtid.text())),
            Assigned::Executed => {
                if commits || matches!(statement, Statement::Xa(XaStatement::Prepare(_) | XaStatement::Commit { .. } | XaStatement::Rollback(_))) {
                    self.gtid.give_up();
                }
                return Ok(true);
            }
            Assigned::Owned { .. } => {}
        }
        if commits && open {
            return Err(err(1778, "Cannot execute statements with implicit commit inside a transaction when @@SESSION.GTID_NEXT == 'UUID:NUMBER'."));
        }
        match statement {
            Statement::CreateTable(create) if create.select.is_some() && !create.temporary => Err(errors::gtid_unsafe_create_select()),
            Statement::CreateUser { users, .. } | Statement::AlterUser { users, .. } if users.len() > 1 => Err(several_accounts()),
            Statement::DropUser { users, .. } | Statement::SetDefaultRole { users, .. } if users.len() > 1 => Err(several_accounts()),
            Statement::CreateRole { roles, .. } | Statement::DropRole { roles, .. } if roles.len() > 1 => Err(several_accounts()),
            Statement::RenameUser(renames) if renames.len() > 1 => Err(several_accounts()),
            Statement::Grant(grant) | Statement::Revoke(grant) if grant.users.len() > 1 => Err(several_accounts()),
            _ => {
                // It uses the GTID up even if it finds nothing to do.
                if commits {
                    self.gtid.give();
                }
                Ok(false)
            }
        }
    }
}

/// Each account is a transaction here.
fn several_accounts() -> MySqlError {
    super::error::not_supported("several accounts in a statement with @@SESSION.GTID_NEXT == 'UUID:NUMBER'")
}
