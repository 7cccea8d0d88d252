//! Applies a source's transactions: an internal session whose statements and rows are the source's.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use highkey_binlog::Uuid;
use highkey_binlog::transaction::flags2;
use highkey_table::{GtidChoice, Isolation, Xid};
use highkey_types::{Charset, Collation, MySqlError, Str};

use super::rows::{MappedTables, RowsChange};
use super::tolerance::{SkippedErrors, Tolerance};
use crate::execute::DiscardingSink;
use crate::parse::{
    self,
    ast::{ObjectName, Statement, StoredProgram, XaStart, XaStatement},
};
use crate::session::{decode, ClientInfo, Instance, Interruption, ProcessEntry, Session, error};
use crate::variables::{self, SqlModes, VarValue};

/// The circumstances of a statement of the source, from the status variables of its QUERY_EVENT and the events before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementContext {
    /// The default database; empty for none.
    pub schema: String,
    /// `sql_mode` as bits; None: the source does not say.
    pub sql_mode: Option<u64>,
    /// Collation ids of `character_set_client`, `collation_connection` and `collation_server`.
    pub charsets: Option<(u16, u16, u16)>,
    pub time_zone: Option<String>,
    /// `auto_increment_increment` and `auto_increment_offset`.
    pub auto_increment: Option<(u16, u16)>,
    /// The start of the statement, microseconds since 1970.
    pub timestamp_micros: i64,
    /// The first AUTO_INCREMENT value that the statement generated.
    pub insert_id: Option<u64>,
    /// What LAST_INSERT_ID() was.
    pub last_insert_id: Option<u64>,
    /// `foreign_key_checks` was off.
    pub no_foreign_key_checks: bool,
    /// The id of `default_collation_for_utf8mb4`; None for sources that have no such variable: MySQL 5.7 and MariaDB.
    pub utf8mb4_collation: Option<u16>,
    /// `explicit_defaults_for_timestamp`; None where the source does not say, because the statement has no TIMESTAMP or it has no such variable.
    pub explicit_defaults_for_timestamp: Option<bool>,
}

/// utf8mb4_general_ci: what utf8mb4 alone means on sources that say nothing of it.
const UTF8MB4_GENERAL_CI: u16 = 45;

/// A source's transaction, as far as our own binary log tells of it.
#[derive(Clone, Copy, Debug)]
pub struct SourceTransaction {
    /// The server that ran it first.
    pub server_id: u32,
    /// `None`: it has none of MySQL's.
    pub gtid: Option<(Uuid, u64)>,
    /// When it was committed there, in microseconds since 1970; `None`: the source does not say.
    pub committed_micros: Option<u64>,
    /// The version of that server as a number, 80036; `None`: the source does not say.
    pub server_version: Option<u32>,
}

/// Applies transactions one after the other. One exists per thread of the replica; it shows in the process list as `system user`.
///
/// A transaction is announced by `announce`, which says how our own binary log tells of it (`log_replica_updates`). It is `begin`, `statement` and `rows` in the source's order, `commit`; anything may be `rollback` instead. A definition is one `statement`
/// without `begin`.
pub struct Applier {
    session: Session,
    tables: MappedTables,
    lock_wait_limit: Option<Duration>,
    /// A statement that is a transaction, and that has not been logged with a change of its own: an account's, or one that has changed nothing.
    text: Option<Str>,
    /// See `Binlog::has_executed_now`.
    gtids_seen: u64,
}

impl Applier {
    pub fn new(instance: Arc<Instance>) -> Applier {
        let client = ClientInfo { connection_id: instance.next_connection_id(), user: "system user".into(), unrestricted: true, ..ClientInfo::default() };
        let mut session = Session::new(instance, client);
        session.replica = Some(Default::default());
        let mut applier = Applier { session, tables: MappedTables::default(), lock_wait_limit: None, text: None, gtids_seen: 0 };
        // Rows are found by key, or by what they hold: gaps need no locks.
        applier.set("transaction_isolation", VarValue::Text("READ-COMMITTED".into()));
        applier.set("sql_require_primary_key", VarValue::Bool(false));
        applier.set("sql_generate_invisible_primary_key", VarValue::Bool(false));
        applier.session.state.refresh();
        let skipped = SkippedErrors::parse(&applier.session.state.instance.global_text("slave_skip_errors"));
        applier.tables.tolerance = Arc::new(Tolerance { idempotent: false, skipped });
        applier
    }

    /// Whether an event that ends in this error is passed over (`slave_skip_errors`).
    pub fn skips(&self, code: u16) -> bool {
        self.tables.tolerance.skipped.has(code)
    }

    /// Its entry in the process list.
    pub fn process(&self) -> &Arc<ProcessEntry> {
        self.session.process()
    }

    /// Ends its waits for locks: what waits fails with 1317.
    pub fn interrupt(process: &ProcessEntry) {
        process.interrupt(Interruption::Query);
    }

    /// The transaction to come, if our own binary log is to tell of it. False: it has been executed here before, and is to be left out.
    pub fn announce(&mut self, transaction: Option<SourceTransaction>) -> bool {
        self.forget_told();
        let state = &self.session.state;
        let idempotent = state.instance.globals().text("slave_exec_mode") == "IDEMPOTENT";
        if idempotent != self.tables.tolerance.idempotent {
            let skipped = self.tables.tolerance.skipped.clone();
            self.tables.tolerance = Arc::new(Tolerance { idempotent, skipped });
        }
        let binlog = state.instance.database().binlog().filter(|_| state.instance.globals().bool("log_slave_updates"));
        let executed = match (binlog, transaction.and_then(|t| t.gtid)) {
            // A client may just have passed over it with an empty transaction.
            (Some(binlog), Some((uuid, number))) => binlog.has_executed_now(uuid, number, &mut self.gtids_seen).unwrap_or_else(|e| {
                tracing::warn!("the binary log cannot be brought up to date: {}", e.message);
                binlog.has_executed(uuid, number)
            }),
            _ => false,
        };
        let mut log = transaction.filter(|_| binlog.is_some() && !executed);
        if let Some(log) = &mut log
            && state.instance.global_text("gtid_mode") == "OFF"
        {
            log.gtid = None;
        }
        if let Some(replica) = &mut self.session.replica {
            replica.log = log;
        }
        !executed
    }

    fn forget_told(&mut self) {
        self.text = None;
        self.session.gtid.forget_told();
    }

    /// The transaction is one statement, the last that has run.
    pub fn is_one_statement(&mut self) {
        self.text = Some(self.session.statement_text.clone());
    }

    /// What tells of a transaction that has changed nothing which was logged. A GTID counts as executed in any case.
    fn tell_the_rest(&mut self) -> Result<(), MySqlError> {
        if self.session.gtid.is_told() || self.session.txn().tells_binlog() {
            return Ok(());
        }
        let Some(source) = self.session.gtid_source() else { return Ok(()) };
        let text = self.text.take();
        let txn = self.session.txn();
        match text {
            Some(text) => {
                txn.log_statement(source);
                txn.log_text(&text)?;
            }
            None if matches!(source.gtid, GtidChoice::Assigned(..)) => txn.log_empty(source),
            None => {}
        }
        Ok(())
    }

    /// Starts a transaction of the source.
    pub async fn begin(&mut self) -> Result<(), MySqlError> {
        self.session.begin(false, None).await
    }

    /// Starts a transaction of the source in two phases: `begin` of those. The end of its rows, XA END, is `finish_branch`.
    /// False: it has been prepared before, by an applier that did not get to note it.
    pub async fn begin_branch(&mut self, xid: &Xid) -> Result<bool, MySqlError> {
        if self.session.state.instance.database().xa_may_be_unnoted(xid) {
            return Ok(false);
        }
        self.session.xa_start(xid, XaStart::New).await.map(|()| true)
    }

    /// The rows of such a transaction have come to their end.
    pub fn finish_branch(&mut self, xid: &Xid) -> Result<(), MySqlError> {
        self.session.xa_end(xid, false)
    }

    /// Prepares it. The record is committed behind it: after a crash or an error in between `begin_branch` says that it is prepared.
    pub async fn prepare_branch(&mut self, xid: &Xid, name: &[u8], value: Vec<u8>, appended: impl FnOnce() + Send) -> Result<(), MySqlError> {
        self.session.xa_prepare(xid, appended).await?;
        self.session.xa_over().await?;
        let noted = self.note(name, value).await;
        if noted.is_err() {
            self.session.state.instance.database().xa_is_unnoted(xid);
        }
        noted
    }

    /// Commits it in one phase, as `commit`.
    pub async fn commit_branch(&mut self, name: &[u8], value: Vec<u8>, appended: impl FnOnce() + Send) -> Result<(), MySqlError> {
        let committed = self.commit(name, value, appended).await;
        self.session.xa_over().await.and(committed)
    }

    /// Commits what was prepared together with the record, or rolls it back and commits the record then.
    pub async fn end_branch(&mut self, xid: &Xid, commit: bool, name: &[u8], value: Vec<u8>) -> Result<(), MySqlError> {
        let record = self.session.state.instance.database().replica_record(name, value.clone());
        match self.session.xa_end_other(xid, commit, Some(&record)).await {
            // A crash came before the record was written.
            Err(e) if e.code == 1397 && !commit => {}
            Ok(true) if self.session.gtid.is_told() || !self.has_gtid() => return Ok(()),
            ended => drop(ended?),
        }
        self.note(name, value).await
    }

    /// Goes on with the rollback of what was prepared, if it has been decided and could not be done.
    pub async fn finish_rollback(&mut self, xid: &Xid) -> Result<(), MySqlError> {
        match self.session.state.instance.database().xa_take(xid) {
            Some(mut branch) if branch.is_rolled_back() => branch.rollback(None).await,
            _ => Ok(()),
        }
    }

    /// Whether our own binary log is to tell of the transaction's GTID.
    fn has_gtid(&self) -> bool {
        self.session.replica.as_ref().and_then(|replica| replica.log).is_some_and(|log| log.gtid.is_some())
    }

    /// Commits a record alone, with an empty transaction of the binary log if nothing else has told of the GTID.
    pub async fn note(&mut self, name: &[u8], value: Vec<u8>) -> Result<(), MySqlError> {
        let database = self.session.state.instance.database().clone();
        let mut txn = database.begin(Isolation::ReadCommitted);
        txn.put_replica_record(&database.replica_record(name, value))?;
        if let Some(source) = self.session.gtid_source().filter(|_| !self.session.gtid.is_told())
            && let (GtidChoice::Assigned(uuid, number), Some(binlog)) = (&source.gtid, database.binlog())
        {
            // A crash may have come between what told of it and this record.
            binlog.catch_up()?;
            if !binlog.has_executed(*uuid, *number) {
                txn.log_empty(source);
            }
        }
        txn.commit().await
    }

    /// Runs a statement. `record`, a name and a value, is written into the catalog by a definition, with it; all others leave it to `commit`.
    pub async fn statement(&mut self, cx: &StatementContext, sql: &[u8], record: Option<(&[u8], Vec<u8>)>) -> Result<(), MySqlError> {
        self.adopt(cx)?;
        if let Some(replica) = &mut self.session.replica {
            let database = self.session.state.instance.database();
            replica.definition_record = record.map(|(name, value)| database.replica_record(name, value));
        }
        let mut sink = DiscardingSink::default();
        let ran = self.session.execute(sql, &mut sink).await;
        if let Some(replica) = &mut self.session.replica {
            replica.definition_record = None;
        }
        match (sink.error, ran) {
            (Some(e), _) => Err(e),
            (None, Err(e)) => Err(error::internal(&e.to_string())),
            (None, Ok(())) => Ok(()),
        }
    }

    /// The tables that a statement is about, by schema and name, as filters ask: those that it defines, alters or drops, whose triggers or privileges it changes.
    /// Empty for other statements and for what does not parse (`statement` says why).
    pub fn tables_of(&mut self, cx: &StatementContext, sql: &[u8]) -> Result<Vec<(String, String)>, MySqlError> {
        self.adopt(cx)?;
        let config = &self.session.state.config;
        let escapes = !self.session.state.mode(SqlModes::NO_BACKSLASH_ESCAPES);
        let Ok(text) = decode::statement(sql, config.charset_client, escapes) else { return Ok(Vec::new()) };
        let Ok(parsed) = parse::parse_single(&text, config.parse) else { return Ok(Vec::new()) };
        let names: Vec<&ObjectName> = match &parsed.statement {
            Statement::CreateTable(create) => vec![&create.name],
            Statement::AlterTable(alter) => vec![&alter.name],
            Statement::CreateView(view) => vec![&view.name],
            Statement::DropTable(drop) => drop.names.iter().collect(),
            Statement::RenameTable(renames) => renames.iter().flat_map(|(from, to)| [from, to]).collect(),
            Statement::TruncateTable(name) | Statement::DropIndex { table: name, .. } => vec![name],
            Statement::CreateIndex(create) => vec![&create.table],
            Statement::CreateTrigger(create) => vec![&create.table],
            Statement::DropProgram { kind: StoredProgram::Trigger, name, .. } => {
                let trigger = self.session.state.instance.database().catalog().trigger(name.schema.as_deref().unwrap_or(&cx.schema), &name.name);
                return Ok(trigger.iter().map(|(table, _)| (table.def().schema.to_string(), table.def().name.to_string())).collect());
            }
            Statement::Maintain { tables, .. } => tables.iter().collect(),
            Statement::Histogram(histogram) => histogram.tables.iter().collect(),
            Statement::Grant(grant) | Statement::Revoke(grant) if grant.routine.is_none() => {
                let Some((schema, Some(table))) = &grant.on else { return Ok(Vec::new()) };
                return Ok(vec![(schema.clone().unwrap_or_else(|| cx.schema.clone()), table.clone())]);
            }
            _ => Vec::new(),
        };
        Ok(names.into_iter().map(|name| (name.schema.clone().unwrap_or_else(|| cx.schema.clone()), name.name.clone())).collect())
    }

    /// Applies a row event. Errors: 1032 for a row that is not there, 1062, 1146 and 1677 for a table that is another here, 1594 for an image that
    /// cannot be read, and those of locks.
    ///
    /// `timestamp` is the event's, in seconds since 1970: the time of defaults that only this server has.
    pub async fn rows(&mut self, change: &RowsChange<'_>, timestamp: u32) -> Result<(), MySqlError> {
        self.session.transaction_begin_statement();
        self.session.begin_change(false).await?;
        let applied = self.session.apply_rows(&mut self.tables, change, timestamp).await;
        self.session.end_change();
        applied
    }

    /// Commits the transaction together with a record of the catalog: after any crash both are there or neither is. `appended` is called once the commit
    /// record is in the log, before the wait for the disk: what commits after that cannot become durable before this.
    pub async fn commit(&mut self, name: &[u8], value: Vec<u8>, appended: impl FnOnce() + Send) -> Result<(), MySqlError> {
        let record = self.session.state.instance.database().replica_record(name, value);
        self.session.txn().put_replica_record(&record)?;
        let begun = match self.tell_the_rest() {
            Ok(()) => self.session.begin_commit().await,
            Err(e) => Err(e),
        };
        if let Err(e) = begun {
            return self.session.rollback_current().await.and(Err(e));
        }
        let committed = self.commit_now(appended).await;
        self.session.end_change();
        committed
    }

    async fn commit_now(&mut self, appended: impl FnOnce() + Send) -> Result<(), MySqlError> {
        let mut commit = std::pin::pin!(self.session.implicit_commit());
        // The first step of the commit writes its record; what may be left is the wait.
        match std::future::poll_fn(|cx| Poll::Ready(commit.as_mut().poll(cx))).await {
            Poll::Ready(outcome) => {
                outcome?;
                appended();
                Ok(())
            }
            Poll::Pending => {
                appended();
                commit.await
            }
        }
    }

    /// The longest wait for a row lock from now on; None: `innodb_lock_wait_timeout`.
    pub fn set_lock_wait_limit(&mut self, limit: Option<Duration>) {
        self.lock_wait_limit = limit;
        self.apply_lock_wait_limit();
    }

    fn apply_lock_wait_limit(&mut self) {
        let state = &mut self.session.state;
        let usual = Duration::from_secs(state.variables.u64("innodb_lock_wait_timeout"));
        state.config.lock_wait_timeout = self.lock_wait_limit.unwrap_or(usual).min(usual);
    }

    /// Undoes the transaction.
    pub async fn rollback(&mut self) -> Result<(), MySqlError> {
        self.forget_told();
        self.session.xa_over().await?;
        self.session.end_transaction(false, false, true).await.map(drop)
    }

    /// Rolls back and gives up what the session holds.
    pub async fn close(mut self) {
        self.session.close().await;
    }

    fn set(&mut self, name: &str, value: VarValue) {
        let id = variables::find(name).unwrap_or_else(|| panic!("no variable {name} in the table"));
        let values = &mut self.session.state.variables;
        if *values.get(id) != value {
            Arc::make_mut(values).set(id, value);
        }
    }

    /// Makes the session what the source's was.
    fn adopt(&mut self, cx: &StatementContext) -> Result<(), MySqlError> {
        if let Some(bits) = cx.sql_mode {
            let modes = SqlModes::of_known_bits(bits);
            self.set("sql_mode", VarValue::Text(modes.to_string().into()));
        }
        if let Some((client, connection, server)) = cx.charsets {
            let charset = charset_of(client).ok_or_else(|| error::unknown_character_set(&format!("#{client}")))?;
            let connection = Collation::by_id(connection).unwrap_or_else(|| Collation::default_of(charset));
            let server = Collation::by_id(server).unwrap_or_else(Collation::utf8mb4);
            let text = |text: &str| VarValue::Text(text.into());
            self.set("character_set_client", text(charset.name()));
            self.set("character_set_connection", text(connection.charset.name()));
            self.set("collation_connection", text(connection.name));
            self.set("character_set_server", text(server.charset.name()));
            self.set("collation_server", text(server.name));
        }
        if let Some(zone) = &cx.time_zone {
            self.set("time_zone", VarValue::Text(zone.as_str().into()));
        }
        // As in MySQL 8.0: its own say what utf8mb4 alone means, and older ones know one meaning.
        let utf8mb4 = Collation::by_id(cx.utf8mb4_collation.unwrap_or(UTF8MB4_GENERAL_CI)).filter(|collation| collation.charset == Charset::Utf8mb4);
        self.set("default_collation_for_utf8mb4", VarValue::Text(utf8mb4.unwrap_or_else(Collation::utf8mb4).name.into()));
        let explicit = cx.explicit_defaults_for_timestamp.unwrap_or_else(|| self.session.state.instance.globals().bool("explicit_defaults_for_timestamp"));
        self.set("explicit_defaults_for_timestamp", VarValue::Bool(explicit));
        self.set("foreign_key_checks", VarValue::Bool(!cx.no_foreign_key_checks));
        let (increment, offset) = cx.auto_increment.unwrap_or((1, 1));
        self.set("auto_increment_increment", VarValue::UInt(u64::from(increment)));
        self.set("auto_increment_offset", VarValue::UInt(u64::from(offset)));
        self.session.state.refresh();
        self.session.state.config.timestamp_micros = Some(cx.timestamp_micros);
        self.apply_lock_wait_limit();
        self.session.state.next_insert_id = cx.insert_id;
        if let Some(id) = cx.last_insert_id {
            self.session.state.last_insert_id = id;
        }
        if cx.schema.is_empty() {
            self.session.state.database = None;
        } else if self.session.state.database.as_deref() != Some(&cx.schema) || self.session.schema_changed {
            match self.session.use_database(&cx.schema) {
                // CREATE DATABASE comes with its own database as the default one.
                Err(e) if e.code == 1049 => self.session.state.database = Some(cx.schema.as_str().into()),
                used => used?,
            }
        }
        Ok(())
    }
}

/// A source's statement about a transaction in two phases, without XA RECOVER, which is in no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchStatement {
    Start(Xid),
    End(Xid),
    Commit(Xid),
    Rollback(Xid),
}

impl BranchStatement {
    /// `None`: it is another statement.
    pub fn parse(sql: &[u8]) -> Option<BranchStatement> {
        if !sql.get(..3)?.eq_ignore_ascii_case(b"XA ") {
            return None;
        }
        let parsed = parse::parse_single(std::str::from_utf8(sql).ok()?, Default::default()).ok()?;
        match parsed.statement {
            Statement::Xa(XaStatement::Start { xid, how: XaStart::New }) => Some(BranchStatement::Start(xid)),
            Statement::Xa(XaStatement::End { xid, suspend: false }) => Some(BranchStatement::End(xid)),
            Statement::Xa(XaStatement::Commit { xid, one_phase: false }) => Some(BranchStatement::Commit(xid)),
            Statement::Xa(XaStatement::Rollback(xid)) => Some(BranchStatement::Rollback(xid)),
            _ => None,
        }
    }
}

/// The character set of a collation id. MySQL's ids that we do not have as collations still name their character set.
pub(super) fn charset_of(id: u16) -> Option<Charset> {
    if let Some(collation) = Collation::by_id(id) {
        return Some(collation.charset);
    }
    match id {
        2 => Some(Charset::Latin2),
        31 => Some(Charset::Latin1),
        34 => Some(Charset::Cp1250),
        101..=124 => Some(Charset::Utf16),
        128..=151 | 159 => Some(Charset::Ucs2),
        160..=183 => Some(Charset::Utf32),
        192..=215 | 223 => Some(Charset::Utf8mb3),
        224..=247 | 255..=323 => Some(Charset::Utf8mb4),
        _ => None,
    }
}

impl Session {
    /// Applies a row event in the session's transaction, as it was at `timestamp`, in seconds since 1970.
    pub(super) async fn apply_rows(&mut self, tables: &mut MappedTables, change: &RowsChange<'_>, timestamp: u32) -> Result<(), MySqlError> {
        self.state.now_micros = i64::from(timestamp) * 1_000_000;
        if let Some(mut source) = self.rows_source() {
            source.flags2 &= !flags2::NO_FOREIGN_KEY_CHECKS;
            if change.no_foreign_key_checks {
                source.flags2 |= flags2::NO_FOREIGN_KEY_CHECKS;
            }
            self.txn().log_statement(source);
        }
        tables.apply(self, change).await
    }

    /// Opens a table for the transaction's rows, waiting for LOCK TABLES of others. False: its definition is another by now.
    pub(super) async fn open_for_replica(&mut self, table: &Arc<highkey_table::Table>) -> Result<bool, MySqlError> {
        self.txn().open_to_write(table).await
    }
}
