//! Sessions: one per connection. See `README.md`.

mod accounts;
mod admission;
mod config;
pub mod decode;
mod diagnostics;
mod digests;
pub mod error;
mod events;
mod files;
mod gtid;
pub(crate) mod history;
mod instance;
mod nested;
mod process;
mod replication_waits;
mod run_event;
mod set_var;
mod sink;
mod state;
mod status;
mod table_exprs;
mod temporary;
mod tls;
#[cfg(test)]
pub(crate) mod tests;
mod transaction;
mod user_locks;
mod work;
mod xa;

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::FutureExt;
use highkey_table::{ReplicaRecord, Table, Waits};
use highkey_types::{Charset, Collation, MySqlError, Str, Value};

use crate::execute::{self, Failure, Handlers, Outcome};
use crate::measure::Profile;
use crate::parse::ast::Statement;
use crate::parse::{self, Parsed};
use crate::prepared::{CutText, Patterns, PreparedStatement, PreparedStatements, StatementPatterns, file_error};
use crate::replica::{Replay, SourceTransaction};
use crate::routine::Routines;
use crate::variables::SqlModes;
use history::{PastStatement, StatementKind};

pub(crate) use config::Config;
pub use config::Executor;
pub(crate) use config::parse_options;
pub(crate) use diagnostics::{Diagnostics, SignalItems};
pub(crate) use digests::{KeptDigest, Sums, hash as digest_hash};
pub use accounts::{authentication_string, check_plugin, verify_caching_sha2};
pub use events::binlog_options;
pub(crate) use events::TextFacts;
pub use files::resolve as resolve_file;
pub(crate) use instance::AutoIncrementLocking;
pub use instance::{Account, Instance, Replica};
pub(crate) use process::{host_of, stage_name};
pub use process::{Interruption, ProcessEntry, ProcessSnapshot, ProgressReport};
pub use sink::{Column, ColumnFlags, LocalInfile, OkSummary, ResultSink, StatusFlags};
pub use state::SessionState;
pub(crate) use state::{Actor, LockedName, blocking, clock_micros};
pub(crate) use status::NEVER;
pub use status::{Status, StatusCounter};
pub use tls::ServerTls;
pub use transaction::{TransactionState, isolation};
pub(crate) use work::{Reach, Work};

/// What VERSION() says: MySQL's version whose dialect this is, then our own.
pub const VERSION: &str = concat!("8.0.12-highkey-", env!("CARGO_PKG_VERSION"));

/// The client capabilities that change what statements do.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientFlags {
    /// CLIENT_FOUND_ROWS: affected rows of UPDATE count matched rows.
    pub found_rows: bool,
    /// CLIENT_INTERACTIVE: `interactive_timeout` instead of `wait_timeout`.
    pub interactive: bool,
    /// CLIENT_MULTI_STATEMENTS; COM_SET_OPTION changes it.
    pub multi_statements: bool,
    /// CLIENT_LOCAL_FILES.
    pub local_files: bool,
    /// CLIENT_MULTI_RESULTS: a CALL may answer several result sets.
    pub multi_results: bool,
    /// CLIENT_PS_MULTI_RESULTS: so may one that was prepared, and the values of OUT parameters are one of them.
    pub ps_multi_results: bool,
}

/// Who connected, after authentication.
#[derive(Clone, Debug, Default)]
pub struct ClientInfo {
    pub connection_id: u64,
    /// The name the client gave: USER() is `user@client_host`.
    pub user: String,
    /// Host name or address without the port.
    pub client_host: String,
    /// Shown by SHOW PROCESSLIST: `127.0.0.1:40312`, `localhost`.
    pub client_address: String,
    /// CURRENT_USER(): the account that matched.
    pub account_user: String,
    pub account_host: String,
    /// The account that has logged in, `'user'@'host'`, if it acts as another one (PROXY).
    pub proxy_user: Option<String>,
    /// No account: the server's own work, which may do everything.
    pub unrestricted: bool,
    /// Until it has another password it may run nothing but what gives it one, and SET.
    pub password_expired: bool,
    pub flags: ClientFlags,
    /// The collation id of the handshake response.
    pub collation: u16,
    /// For the status variables Ssl_cipher and Ssl_version.
    pub tls_cipher: Option<String>,
    pub tls_version: Option<String>,
}

impl ClientInfo {
    /// User and host of the account whose password is the client's own, to change without privileges: as in MySQL that of whoever has logged in under the name, not of
    /// the account that it acts as by PROXY.
    pub(crate) fn password_account(&self) -> (&str, &str) {
        let user = if self.proxy_user.is_some() { &self.user } else { &self.account_user };
        (user, &self.account_host)
    }

    /// As performance_schema names it; `None` where there is no client.
    fn connection_type(&self) -> Option<&'static str> {
        match (&self.tls_cipher, &*self.client_address) {
            (_, "") => None,
            (Some(_), _) => Some("SSL/TLS"),
            (None, address) if address.contains(':') => Some("TCP/IP"),
            (None, _) => Some("Socket"),
        }
    }
}

/// What COM_STMT_PREPARE answers.
#[derive(Clone, Debug)]
pub struct PreparedInfo {
    pub id: u32,
    pub params: usize,
    /// Empty for statements without a result set.
    pub columns: Vec<Column>,
    pub warnings: u16,
}

/// One connection's session. All methods need `&mut self`: a session does one thing at a time. Its futures are `Send`.
pub struct Session {
    pub(crate) state: SessionState,
    pub(crate) transaction: TransactionState,
    pub(crate) prepared: PreparedStatements,
    patterns: Patterns,
    /// COMMIT RELEASE, SHUTDOWN by this session: the connection is to be closed.
    close_requested: bool,
    /// The running statement is SHOW WARNINGS or one like it.
    pub(crate) about_conditions: bool,
    /// USE changed the database in the running statement.
    pub(crate) schema_changed: bool,
    /// The running statement as it was written; a prepared one's own text.
    pub(crate) statement_text: Str,
    /// What the running statement waits for.
    pub(crate) waits: Arc<Waits>,
    /// When the running statement began.
    started: Instant,
    /// Set in the sessions that apply a source's transactions: `read_only` is not for them.
    pub(crate) replica: Option<ReplicaSession>,
    /// What BINLOG statements have told.
    pub(crate) replay: Option<Replay>,
    /// `gtid_next`.
    pub(crate) gtid: gtid::NextGtid,
    /// Of the running statement.
    pub(crate) text_facts: TextFacts,
    /// What the running statement's SET_VAR hints have changed.
    unhinted: set_var::Unhinted,
    /// The session's database, while a statement runs that was prepared in another.
    pub(crate) own_database: Option<Option<Str>>,
    /// EXPLAIN ANALYZE: where what the running statement does is told.
    pub(crate) profile: Option<Profile>,
    /// Rows that the running statement sent, where that is not the number that FOUND_ROWS() tells.
    pub(crate) rows_sent: Option<u64>,
    /// What it knows of stored routines, and those that are running.
    pub(crate) routines: Routines,
    /// Temporary tables that have been dropped, until the transaction is over that may have rows in them.
    left_tables: Vec<Arc<Table>>,
    /// What HANDLER has opened.
    pub(crate) handlers: Handlers,
}

/// What a session of the replica has besides.
#[derive(Default)]
pub(crate) struct ReplicaSession {
    /// What the running statement writes with its change of the catalog, if it is a definition.
    pub(crate) definition_record: Option<ReplicaRecord>,
    /// As our own binary log tells the transaction under way; `None`: not at all.
    pub(crate) log: Option<SourceTransaction>,
}

/// What came of a statement.
struct Done {
    failed: bool,
    affected: u64,
    sent: u64,
}

impl Default for Done {
    /// An error.
    fn default() -> Done {
        Done { failed: true, affected: 0, sent: 0 }
    }
}

impl Done {
    fn of(outcome: &Outcome, rows_sent: Option<u64>) -> Done {
        match outcome {
            Outcome::Rows { count, .. } => Done { failed: false, affected: 0, sent: rows_sent.unwrap_or(*count) },
            Outcome::Cursor => Done { failed: false, affected: 0, sent: 0 },
            Outcome::Done { affected, .. } => Done { failed: false, affected: *affected, sent: 0 },
        }
    }
}

/// A statement as its digest is found.
enum Digested<'a> {
    /// One that keeps it.
    Kept(&'a PreparedStatement),
    /// Its digest, and what it is; `None`: no statement.
    Text(&'a str, Option<&'a Statement>),
}

impl Session {
    /// Registers the connection in the process list; dropping the session removes it and rolls back its transaction.
    pub fn new(instance: Arc<Instance>, client: ClientInfo) -> Session {
        let process = instance.processes().register(client.connection_id, &client.user, &client.client_address);
        instance.note_connected();
        if client.connection_type().is_some() {
            instance.processes().note_made(&client.user, &client.client_address);
        }
        Session {
            waits: instance.database().engine().waits(),
            started: Instant::now(),
            statement_text: Str::default(),
            profile: None,
            rows_sent: None,
            state: SessionState::new(instance, client, process),
            transaction: TransactionState::default(),
            prepared: PreparedStatements::default(),
            patterns: Patterns::default(),
            close_requested: false,
            about_conditions: false,
            schema_changed: false,
            replica: None,
            replay: None,
            gtid: gtid::NextGtid::default(),
            text_facts: TextFacts::default(),
            unhinted: set_var::Unhinted::default(),
            own_database: None,
            routines: Routines::default(),
            left_tables: Vec::new(),
            handlers: Handlers::default(),
        }
    }

    /// COM_QUERY: runs one statement, or several if the client may send several, and answers each into `sink`. Errors of
    /// statements go into the sink; `Err` is only a broken connection.
    pub async fn execute(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> io::Result<()> {
        let waits = self.waits.clone();
        let statements = std::pin::pin!(self.execute_text(sql, sink));
        waits.attend(statements).await
    }

    async fn execute_text(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> io::Result<()> {
        let escapes = !self.state.mode(SqlModes::NO_BACKSLASH_ESCAPES);
        let text = match decode::statement(sql, self.state.config.charset_client, escapes) {
            Ok(text) => text,
            Err(e) => return self.refuse(e, sink),
        };
        let mut started = Instant::now();
        let cut = match self.state.config.patterns {
            StatementPatterns::Off => None,
            _ => CutText::new(&text),
        };
        if let Some(statement) = cut.as_ref().and_then(|cut| self.find_pattern(cut)) {
            self.count_question();
            return self.run_pattern(&statement, &text, started, sink).await;
        }
        let text: Arc<str> = Arc::from(&*text);
        let mut from = 0;
        loop {
            self.count_question();
            let parsed = match parse::parse(&text, from, self.state.config.parse) {
                Ok(parsed) => parsed,
                Err(e) => {
                    let digest = parse::digest_text(&text, from, self.state.config.parse);
                    self.refuse(e, sink)?;
                    self.begin_time(started);
                    if let Some((digest, statement)) = digest {
                        self.note_ended(Digested::Text(&digest, None), Done::default(), Instant::now(), Arc::from(&text[statement]));
                    }
                    return Ok(());
                }
            };
            let next = parsed.next;
            if let Some(at) = next
                && !self.state.client.flags.multi_statements
            {
                return self.refuse(syntax_error(&text, at), sink);
            }
            if parsed.params > 0 {
                // A parameter outside of a prepared statement.
                let at = text[parsed.text.clone()].find('?').map_or(parsed.text.start, |i| parsed.text.start + i);
                return self.refuse(syntax_error(&text, at), sink);
            }
            let more = next.is_some();
            let alone = cut.as_ref().filter(|_| from == 0 && !more);
            if let Some(cut) = alone.filter(|_| self.state.config.patterns == StatementPatterns::Always) {
                self.patterns.note(cut, self.state.config.parse, parsed.clone(), true);
                if let Some(statement) = self.find_pattern(cut) {
                    return self.run_pattern(&statement, &text, started, sink).await;
                }
            }
            let info: Arc<str> = if parsed.text.len() == text.len() { text.clone() } else { Arc::from(&text[parsed.text.clone()]) };
            let completed = Box::pin(self.run_parsed(&parsed, info, more, started, sink)).await?;
            if let Some(cut) = alone.filter(|_| completed) {
                self.patterns.note(cut, self.state.config.parse, parsed, false);
            }
            match next {
                Some(at) if completed && !self.close_requested => from = at,
                _ => return Ok(()),
            }
            started = Instant::now();
        }
    }

    /// The kept statement that serves a text, whose values are then the parameters.
    fn find_pattern(&mut self, cut: &CutText<'_>) -> Option<Arc<PreparedStatement>> {
        let SessionState { params, config, .. } = &mut self.state;
        self.patterns.find(cut, config.parse, config.collation_connection, params)
    }

    /// Runs a kept statement with the values of `text`, which are the parameters.
    async fn run_pattern(&mut self, statement: &PreparedStatement, text: &str, started: Instant, sink: &mut dyn ResultSink) -> io::Result<()> {
        let info = if statement.params == 0 { statement.text.clone() } else { Arc::from(text) };
        self.enter("Query", info, &statement.parsed.statement, started);
        self.note_set_vars(&statement.parsed.set_vars);
        self.run_kept(statement, None, sink).await
    }

    /// Runs a statement that keeps its plan, up to its closing bracket. `cursor` as for `run_prepared`.
    async fn run_kept(&mut self, statement: &PreparedStatement, cursor: Option<u32>, sink: &mut dyn ResultSink) -> io::Result<()> {
        let outcome = AssertUnwindSafe(self.run_prepared(statement, cursor, sink)).catch_unwind().await;
        if matches!(outcome, Ok(Ok(_))) {
            self.send_out_parameters(sink);
        }
        self.leave(outcome.unwrap_or_else(|cause| Err(Failure::panicked(&*cause))), Digested::Kept(statement), false, sink).await?;
        Ok(())
    }

    fn count_question(&self) {
        self.state.count(StatusCounter::Questions, 1);
        self.state.count(StatusCounter::Queries, 1);
        self.state.instance.queries().give_way().note_statement();
    }

    /// An error before any statement ran.
    fn refuse(&mut self, e: MySqlError, sink: &mut dyn ResultSink) -> io::Result<()> {
        self.state.begin_statement(false);
        self.state.diagnostics.push_error(&e, self.state.config.max_error_count);
        self.state.row_count = -1;
        sink.error(&e);
        Ok(())
    }

    /// Runs one parsed statement between the brackets that every statement has. True: it succeeded.
    async fn run_parsed(&mut self, parsed: &Parsed, info: Arc<str>, more: bool, started: Instant, sink: &mut dyn ResultSink) -> io::Result<bool> {
        self.enter("Query", info, &parsed.statement, started);
        self.note_set_vars(&parsed.set_vars);
        self.begin_set_vars(&parsed.set_vars);
        // A panic in a statement ends the statement, never the server.
        let outcome = AssertUnwindSafe(self.dispatch(&parsed.statement, sink)).catch_unwind().await;
        self.leave(outcome.unwrap_or_else(|cause| Err(Failure::panicked(&*cause))), Digested::Text(&parsed.digest, Some(&parsed.statement)), more, sink).await
    }

    /// The opening bracket of a statement.
    fn enter(&mut self, command: &'static str, info: Arc<str>, statement: &Statement, started: Instant) {
        let keep_diagnostics = execute::keeps_diagnostics(statement);
        self.begin_time(started);
        let shown = execute::masked(statement).map_or_else(|| info.clone(), Arc::<str>::from);
        self.statement_text = info;
        self.state.process.begin_statement(command, shown, execute::only_reads(statement), started);
        self.state.begin_statement(keep_diagnostics);
        self.about_conditions = keep_diagnostics;
        self.transaction_begin_statement();
        self.gtid.begin_statement(self.transaction.is_open(self.state.config.autocommit));
        self.schema_changed = false;
    }

    /// The closing bracket: ends the transaction of an autocommit statement, undoes a failed one, answers.
    async fn leave(&mut self, outcome: Result<Outcome, Failure>, digested: Digested<'_>, more: bool, sink: &mut dyn ResultSink) -> io::Result<bool> {
        // A panic has left them where they were.
        self.leave_routines(0);
        self.routines.in_use.clear();
        self.state.in_body = false;
        let answer = match outcome {
            Ok(outcome) => match self.transaction_end_statement(Ok(())).await {
                Ok(()) => Ok(outcome),
                Err(e) => Err(e),
            },
            Err(Failure::Sql(e)) => {
                let e = self.name_interruption(e);
                if matches!(e.code, 1451 | 1452) {
                    self.state.instance.note_foreign_key_error(&self.state.process, &e);
                }
                match self.transaction_end_statement(Err(e)).await {
                    Ok(()) => unreachable!("a failed statement stays failed"),
                    Err(e) => Err(e),
                }
            }
            Err(Failure::Panic(e)) => {
                self.abandon_transaction();
                self.state.bind_params = false;
                self.state.param_types.clear();
                self.state.declared_types.clear();
                Err(e)
            }
            Err(Failure::Io(e)) => {
                // The client is gone: its statement is undone, and its transaction with the session.
                let _ = self.transaction_end_statement(Err(highkey_types::errors::query_interrupted())).await;
                self.finish_process(digested, Done::default());
                return Err(e);
            }
        };
        self.end_set_vars();
        self.leave_database();
        let succeeded = answer.is_ok();
        let done = match &answer {
            Ok(outcome) => Done::of(outcome, self.rows_sent),
            Err(_) => Done::default(),
        };
        match answer {
            Ok(outcome) => self.answer(outcome, more, sink),
            Err(e) => {
                self.state.diagnostics.push_error(&e, self.state.config.max_error_count);
                self.state.row_count = -1;
                sink.error(&e);
            }
        }
        self.state.params.clear();
        self.state.declared_types.clear();
        self.state.reads = None;
        self.finish_process(digested, done);
        if sink.wants_flush() {
            sink.flush().await?;
        }
        Ok(succeeded)
    }

    /// From now on time and waits are the next statement's.
    fn begin_time(&mut self, started: Instant) {
        self.started = started;
        self.waits.next_statement();
        self.state.process.clear_examined();
        self.state.work = Work::default();
        self.profile = None;
        self.rows_sent = None;
    }

    fn finish_process(&mut self, digested: Digested<'_>, done: Done) {
        let (ended, text) = self.state.process.end_statement();
        self.note_ended(digested, done, ended, text.unwrap_or_default());
    }

    /// Adds the statement that has ended to the sums of its digest, to those of the connection that ended last, and to the slow ones if it was slow.
    fn note_ended(&mut self, digested: Digested<'_>, done: Done, ended: Instant, text: Arc<str>) {
        let elapsed = ended.saturating_duration_since(self.started);
        let state = &self.state;
        if elapsed > state.config.long_query_time {
            state.count(StatusCounter::SlowQueries, 1);
        }
        state.work.count_in(state.process.status());
        let (digests, kept) = (state.instance.digests(), state.instance.history_size());
        if digests.is_off() && kept == 0 {
            return;
        }
        let digest = match digested {
            Digested::Kept(statement) => &*statement.parsed.digest,
            Digested::Text(digest, _) => digest,
        };
        if digest.is_empty() {
            return;
        }
        let time = self.waits.split(elapsed);
        let execution = digests::Execution {
            session: state.client.connection_id,
            time: &time,
            failed: done.failed,
            warnings: if self.about_conditions { 0 } else { state.diagnostics.count() - state.diagnostics.error_count() },
            rows_affected: done.affected,
            rows_sent: done.sent,
            rows_examined: state.process.rows_examined(),
            parallel: state.process.queries().was_parallel(),
            serial: state.process.queries().was_serial(),
            work: Work { no_index_used: state.work.no_index_used.min(1), ..state.work },
            // NOW() may have been set.
            ended_micros: if state.config.timestamp_micros.is_some() { clock_micros() } else { state.now_micros + elapsed.as_micros() as i64 },
            text: &text,
        };
        match digested {
            _ if digests.is_off() => {}
            Digested::Kept(statement) => digests.add_kept(&statement.digest, &state.database, digest, &execution),
            Digested::Text(..) => digests.add(&state.database, digest, &execution),
        }
        let locked = history::locked(&time);
        let whole = Arc::ptr_eq(&text, &self.statement_text);
        let kind = match digested {
            Digested::Kept(statement) if statement.is_pattern() => StatementKind::Text(execute::counter_of(&statement.parsed.statement)),
            Digested::Kept(statement) => StatementKind::Prepared(execute::counter_of(&statement.parsed.statement)),
            Digested::Text(_, Some(statement)) => StatementKind::Text(execute::counter_of(statement)),
            Digested::Text(_, None) => StatementKind::Error,
        };
        let mut past = PastStatement::new(&execution, text.clone(), whole, digest, kind, ended, locked);
        past.schema = state.database.clone();
        if let Some(error) = state.diagnostics.conditions().last().filter(|_| done.failed) {
            past.note_error(error.code, &error.message);
        }
        state.process.history().add(kept, past);
    }

    pub(crate) fn answer(&mut self, outcome: Outcome, more: bool, sink: &mut dyn ResultSink) {
        let mut status = self.status_flags();
        if more && !self.close_requested {
            status.0 |= StatusFlags::MORE_RESULTS_EXISTS;
        }
        // A statement about conditions has none of its own.
        let warnings = if self.about_conditions { 0 } else { self.state.diagnostics.packet_count() };
        let mut summary = OkSummary { status, warnings, ..OkSummary::default() };
        match outcome {
            Outcome::Rows { count, found } => {
                self.state.row_count = -1;
                if found {
                    self.state.found_rows = count;
                }
                sink.end(summary);
            }
            Outcome::Cursor => {
                self.state.row_count = -1;
                summary.status.0 |= StatusFlags::CURSOR_EXISTS;
                sink.end(summary);
            }
            Outcome::Done { affected, last_insert_id, info } => {
                // GET DIAGNOSTICS leaves it as it is.
                if !self.about_conditions {
                    self.state.row_count = affected as i64;
                }
                summary.affected_rows = affected;
                summary.last_insert_id = last_insert_id;
                summary.info = info;
                // The server sends it, with SESSION_STATE_CHANGED, to clients that track the session.
                if self.schema_changed && self.state.variables.bool("session_track_schema") {
                    summary.schema_changed = self.state.database.as_deref().map(str::to_owned);
                }
                sink.ok(summary);
            }
            // The OK of a LOAD DATA and the like is made like any other; a session that ends answers nothing more.
        }
    }

    /// What ended the statement by its right name: a timeout is no KILL.
    pub(crate) fn name_interruption(&self, e: MySqlError) -> MySqlError {
        if e.code != 1317 && e.code != 3024 {
            return e;
        }
        match self.state.process.interruption() {
            Interruption::Timeout => {
                self.state.count(StatusCounter::MaxExecutionTimeExceeded, 1);
                error::query_timeout()
            }
            _ => highkey_types::errors::query_interrupted(),
        }
    }

    /// COM_STMT_PREPARE.
    pub async fn prepare(&mut self, sql: &[u8]) -> Result<PreparedInfo, MySqlError> {
        self.count_question();
        self.state.count(StatusCounter::ComStmtPrepare, 1);
        let escapes = !self.state.mode(SqlModes::NO_BACKSLASH_ESCAPES);
        let text = decode::statement(sql, self.state.config.charset_client, escapes)?;
        self.state.begin_statement(false);
        let prepared = self.prepare_text(&text).await;
        if let Err(e) = &prepared {
            self.state.diagnostics.push_error(e, self.state.config.max_error_count);
        }
        prepared
    }

    /// COM_STMT_EXECUTE. With `cursor`, a result set is kept for `fetch` and only `columns` and `end` (CURSOR_EXISTS) are sent.
    pub async fn execute_prepared(&mut self, id: u32, params: &[Value], cursor: bool, sink: &mut dyn ResultSink) -> io::Result<()> {
        let waits = self.waits.clone();
        let statement = std::pin::pin!(self.execute_kept(id, params, cursor, sink));
        waits.attend(statement).await
    }

    async fn execute_kept(&mut self, id: u32, params: &[Value], cursor: bool, sink: &mut dyn ResultSink) -> io::Result<()> {
        self.count_question();
        self.state.count(StatusCounter::ComStmtExecute, 1);
        let Some(statement) = self.prepared.get(id) else {
            return self.refuse(error::unknown_stmt_handler(&id.to_string(), "mysqld_stmt_execute"), sink);
        };
        if statement.params != params.len() {
            return self.refuse(error::wrong_arguments("mysqld_stmt_execute"), sink);
        }
        self.enter("Execute", statement.text.clone(), &statement.parsed.statement, Instant::now());
        self.state.params.clear();
        self.state.params.extend_from_slice(params);
        self.state.process.set_prepared(&statement.text, params);
        self.run_kept(&statement, cursor.then_some(id), sink).await
    }

    /// COM_STMT_FETCH: `row`s and `end`, with LAST_ROW_SENT when the cursor is exhausted.
    pub async fn fetch(&mut self, id: u32, rows: usize, sink: &mut dyn ResultSink) -> io::Result<()> {
        self.state.count(StatusCounter::ComStmtFetch, 1);
        let Some(mut cursor) = self.prepared.take_cursor(id) else {
            return self.refuse(error::err(1421, format!("The statement ({id}) has no open cursor.")), sink);
        };
        for _ in 0..rows.max(1) {
            match cursor.next_row() {
                Ok(Some(row)) => sink.row(&row),
                Ok(None) => break,
                Err(e) => return self.refuse(file_error(&e), sink),
            }
            if sink.wants_flush() {
                sink.flush().await?;
            }
        }
        let mut status = self.status_flags();
        if cursor.is_exhausted() {
            status.0 |= StatusFlags::LAST_ROW_SENT;
        } else {
            status.0 |= StatusFlags::CURSOR_EXISTS;
            self.prepared.open_cursor(id, cursor);
        }
        sink.end(OkSummary { status, ..OkSummary::default() });
        Ok(())
    }

    /// COM_STMT_CLOSE; unknown ids are ignored.
    pub fn close_prepared(&mut self, id: u32) {
        self.state.count(StatusCounter::ComStmtClose, 1);
        if self.prepared.close(id) {
            self.prepared_count(-1);
        }
    }

    /// COM_STMT_RESET: closes the cursor. (Long data is the server's.)
    pub fn reset_prepared(&mut self, id: u32) -> Result<(), MySqlError> {
        self.state.count(StatusCounter::ComStmtReset, 1);
        if self.prepared.get(id).is_none() {
            return Err(error::unknown_stmt_handler(&id.to_string(), "mysqld_stmt_reset"));
        }
        self.prepared.close_cursor(id);
        Ok(())
    }

    /// An execution that asks for a cursor gets one: the statement is a query whose rows go to the client. Others answer as if nothing had been asked.
    pub fn opens_cursor(&self, id: u32) -> bool {
        self.prepared.get(id).is_some_and(|s| execute::only_reads(&s.parsed.statement))
    }

    /// Number of parameters of a prepared statement, for decoding COM_STMT_EXECUTE.
    pub fn prepared_params(&self, id: u32) -> Option<usize> {
        self.prepared.get(id).map(|s| s.params)
    }

    pub(crate) fn prepared_count(&self, change: i64) {
        let count = self.state.instance.prepared_statements();
        if change >= 0 {
            count.fetch_add(change as u64, Ordering::Relaxed);
        } else {
            count.fetch_sub(change.unsigned_abs(), Ordering::Relaxed);
        }
    }

    /// COM_FIELD_LIST: the columns of a table whose names are like `wild`, all of them if it is empty, and what each is in an empty row.
    pub async fn field_list(&mut self, table: &str, wild: &str) -> Result<Vec<(Column, Value)>, MySqlError> {
        self.state.begin_statement(false);
        let sql = format!("SELECT * FROM {} LIMIT 0", crate::show::quote(table));
        let parsed = parse::parse_single(&sql, self.state.config.parse)?;
        let Statement::Query(query) = &parsed.statement else { return Ok(Vec::new()) };
        let bound = crate::bind::bind_query(query, &self.state)?;
        let defs = execute::defined_columns(&self.state, table)?;
        let collation = Collation::by_name("utf8_general_ci").expect("a collation that is compiled in");
        let mut columns = execute::columns(&self.state, bound.fields());
        columns.retain(|column| wild.is_empty() || collation.like(column.name.as_bytes(), wild.as_bytes(), Some('\\')));
        Ok(columns
            .into_iter()
            .map(|column| {
                let value = execute::empty_value(&column, defs.iter().find(|def| *def.name == *column.name));
                (column, value)
            })
            .collect())
    }

    /// COM_INIT_DB and the database of the handshake.
    pub fn init_db(&mut self, database: &str) -> Result<(), MySqlError> {
        self.state.refresh_access();
        self.use_database(database)
    }

    /// COM_RESET_CONNECTION: rolls back, forgets variables, prepared statements, temporary tables and locks; keeps user and database.
    pub async fn reset(&mut self) -> Result<(), MySqlError> {
        let database = self.state.database.clone();
        self.close().await;
        let state = &self.state;
        self.state = SessionState::new(state.instance.clone(), state.client.clone(), state.process.clone());
        self.patterns = Patterns::default();
        // Their statements are bound for what the account before might do.
        self.routines = Routines::default();
        self.gtid = gtid::NextGtid::default();
        self.state.database = database;
        Ok(())
    }

    /// COM_CHANGE_USER after authentication: `reset` with another identity (the connection id stays).
    pub async fn change_user(&mut self, client: ClientInfo) -> Result<(), MySqlError> {
        self.close().await;
        self.state.instance.processes().leave_account(&self.state.process);
        self.state.process.set_user(&client.user);
        self.state.instance.processes().note_made(&client.user, &client.client_address);
        self.state = SessionState::new(self.state.instance.clone(), client, self.state.process.clone());
        self.patterns = Patterns::default();
        // Their statements are bound for what the account before might do.
        self.routines = Routines::default();
        self.gtid = gtid::NextGtid::default();
        self.state.process.set_db(None);
        Ok(())
    }

    /// Runs `init_connect`. Accounts with CONNECTION_ADMIN or SUPER skip it, so that a wrong one can be repaired, and those whose password has expired.
    pub async fn run_init_connect(&mut self) -> Result<(), MySqlError> {
        let sql = self.state.instance.global_text("init_connect");
        if sql.trim().is_empty() || self.state.administers_connections() || self.must_change_password() {
            return Ok(());
        }
        let multi = std::mem::replace(&mut self.state.client.flags.multi_statements, true);
        let mut sink = crate::execute::DiscardingSink::default();
        let ran = self.execute(sql.as_bytes(), &mut sink).await;
        self.state.client.flags.multi_statements = multi;
        match (ran, sink.error) {
            (_, Some(e)) => Err(e),
            (Err(e), None) => Err(error::err(1184, format!("Aborted connection: init_connect command failed: {e}"))),
            (Ok(()), None) => Ok(()),
        }
    }

    /// Rolls back an open transaction and gives up everything the session holds; the last call before dropping a session.
    pub async fn close(&mut self) {
        let _ = self.rollback_current().await;
        self.forget_transaction();
        self.give_up_everything();
    }

    /// Gives up what it holds beside its transaction, which has ended: its locks of tables protect nothing any more.
    fn give_up_everything(&mut self) {
        self.handlers = Handlers::default();
        self.drop_temporary_tables();
        self.unlock_tables();
        self.state.locks.unlock_instance();
        self.state.instance.user_locks().release_all(self.state.client.connection_id);
        let closed = self.prepared.clear();
        self.prepared_count(-(closed as i64));
    }

    /// True once the session asked to be closed (COMMIT RELEASE): nothing more is run, and nothing more is to be expected.
    pub fn wants_close(&self) -> bool {
        self.close_requested
    }

    pub(crate) fn request_close(&mut self) {
        self.close_requested = true;
    }

    /// The status word outside a statement (COM_PING's OK, the handshake).
    pub fn status_flags(&self) -> StatusFlags {
        let autocommit = self.state.config.autocommit;
        let mut flags = 0;
        if autocommit {
            flags |= StatusFlags::AUTOCOMMIT;
        }
        if self.transaction.is_open(autocommit) {
            flags |= StatusFlags::IN_TRANS;
            if self.transaction.is_read_only() {
                flags |= StatusFlags::IN_TRANS_READONLY;
            }
        }
        if self.state.mode(SqlModes::NO_BACKSLASH_ESCAPES) {
            flags |= StatusFlags::NO_BACKSLASH_ESCAPES;
        }
        StatusFlags(flags)
    }

    pub fn set_multi_statements(&mut self, on: bool) {
        self.state.client.flags.multi_statements = on;
    }

    /// The account's password has expired: most commands are error 1820.
    pub fn must_change_password(&self) -> bool {
        self.state.client.password_expired
    }

    /// Its account has CONNECTION_ADMIN or SUPER: the connection beyond `max_connections` is for such.
    pub fn administers_connections(&self) -> bool {
        self.state.administers_connections()
    }

    pub fn client(&self) -> &ClientInfo {
        &self.state.client
    }

    pub fn database(&self) -> Option<&str> {
        self.state.database.as_deref()
    }

    pub fn process(&self) -> &Arc<ProcessEntry> {
        &self.state.process
    }

    pub fn instance(&self) -> &Arc<Instance> {
        &self.state.instance
    }

    /// How the client encodes statement text and text parameters (`character_set_client`).
    pub fn client_charset(&self) -> Charset {
        self.state.config.charset_client
    }

    /// How long the server waits for the next command (`wait_timeout` or `interactive_timeout`).
    pub fn idle_timeout(&self) -> Duration {
        if self.state.client.flags.interactive { self.state.config.interactive_timeout } else { self.state.config.wait_timeout }
    }

    pub fn net_read_timeout(&self) -> Duration {
        Duration::from_secs(self.state.variables.u64("net_read_timeout"))
    }

    pub fn net_write_timeout(&self) -> Duration {
        self.state.config.net_write_timeout
    }

    /// Between two progress reports to a client that takes them (`progress_report_time`); zero: none are wanted.
    pub fn progress_report_time(&self) -> Duration {
        Duration::from_secs(self.state.variables.u64("progress_report_time"))
    }

    /// The session's `max_allowed_packet`.
    pub fn max_allowed_packet(&self) -> u64 {
        self.state.config.max_allowed_packet
    }

    /// Counts a command that the server answers itself (COM_PING, COM_STATISTICS).
    pub fn note_command(&self) {
        self.count_question();
        self.state.count(StatusCounter::ComAdminCommands, 1);
    }
}

/// A server runs sessions as tasks that move between threads: their futures must be able to.
const _: fn(&mut Session, &mut dyn ResultSink) = |session, sink| {
    fn moves<T: Send>(_: T) {}
    moves(session.execute(b"", sink));
    moves(session.execute_prepared(0, &[], false, sink));
    moves(session.prepare(b""));
};

/// 1064 at a byte of the text.
fn syntax_error(text: &str, at: usize) -> MySqlError {
    let rest: String = text[at..].chars().take(80).collect();
    let line = text[..at].matches('\n').count() + 1;
    error::err(
        1064,
        format!("You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{rest}' at line {line}"),
    )
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abandon_transaction();
        self.give_up_everything();
        self.state.instance.replicas().lock().remove(&self.state.client.connection_id);
        self.state.instance.forget_connection(self.state.client.connection_id);
    }
}
