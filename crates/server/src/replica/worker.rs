//! A worker: applies one transaction after the other, each with the position after it, and commits when its turn has come.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use highkey_binlog::{Uuid, Xid, xa};
use highkey_sql::replica::{Applier, BranchStatement, DUMMY_TABLE, Event, ReplicaTransaction, RowsChange, RowsKind, SourceTransaction, StatementContext, TableMaps, event_kind as kind};
use highkey_types::MySqlError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::channel::{Channel, worker_record};
use super::event::{Part, transaction_start};
use super::filter::Filters;
use super::gtid::Gtid;
use super::order::{Order, Turn};
use super::position::Position;

/// Events of a transaction that are kept to be applied again after a deadlock. A larger transaction waits for its turn before it goes on, and is not
/// tried again.
const RETRY_BYTES: usize = 32 << 20;

/// How long a transaction that has others before it waits for a lock: one of those may hold it, and may be waiting for a lock of this one.
const LOCK_WAIT_AHEAD: Duration = Duration::from_millis(200);

/// An event that a worker cannot bear.
#[cfg(test)]
pub const PANIC: u8 = 255;

/// What a worker is given.
pub enum Work {
    Start(Start),
    Event {
        event: Event,
        part: Part,
        /// With the last event of a transaction: where the replica is after it.
        end: Option<Position>,
        /// The event's room in the queue.
        room: OwnedSemaphorePermit,
    },
    /// The rest of the transaction does not come: what there is of it is void.
    Abort,
}

/// A transaction to come.
pub struct Start {
    pub ticket: u64,
    pub gtid: Option<Gtid>,
    /// The server that ran it first.
    pub server_id: u32,
    /// When that one committed it, in microseconds since 1970.
    pub committed_micros: Option<u64>,
    /// The version of that one.
    pub server_version: Option<u32>,
    /// When the source ran it, seconds since 1970.
    pub timestamp: u32,
    /// As it is shown.
    pub shown: ReplicaTransaction,
    /// The source's file that it is in.
    pub file: Arc<str>,
    /// It comes from a server whose changes are not for us.
    pub ignored: bool,
    /// The first since the replica started: it may be one that a crash cut off.
    pub first: bool,
}

/// Why an event was not applied.
enum Problem {
    /// To be applied again when it is the transaction's turn.
    Again(u16, String),
    Failed(u16, String),
    /// Nothing commits any more.
    Over,
}

type Result<T = (), E = Problem> = std::result::Result<T, E>;

pub struct Worker {
    number: usize,
    channel: Arc<Channel>,
    order: Arc<Order>,
    filters: Filters,
    retries_max: u64,
    applier: Applier,
    tables: TableMaps,
    /// Variables for the statement to come.
    variables: StatementContext,
    transaction: Option<Transaction>,
}

/// The transaction that is being applied.
struct Transaction {
    start: Start,
    /// It is its turn: nothing is before it.
    at_turn: bool,
    /// Its name, if it is in two phases.
    branch: Option<Xid>,
    /// It is prepared here already: only its position is missing.
    done_before: bool,
    /// It has been executed here, by whomever, as our own binary log tells: only its position is missing.
    executed: bool,
    /// What has come of it, to be applied again.
    events: Vec<(Event, Part)>,
    bytes: usize,
}

impl Worker {
    pub fn new(number: usize, channel: Arc<Channel>, order: Arc<Order>) -> Worker {
        let applier = Applier::new(channel.instance().clone());
        Worker {
            number,
            filters: channel.settings().filters,
            retries_max: channel.instance().global_u64("slave_transaction_retries"),
            applier,
            tables: TableMaps::default(),
            variables: StatementContext::default(),
            transaction: None,
            channel,
            order,
        }
    }

    /// Its entry in the process list, by which its waits for locks can be ended.
    pub fn process(&self) -> Arc<highkey_sql::ProcessEntry> {
        self.applier.process().clone()
    }

    /// Works until there is nothing more to come, or until something fails, which ends all workers. What a transaction has done by then is undone.
    pub async fn run(mut self, mut work: mpsc::Receiver<Work>) {
        while let Some(next) = work.recv().await {
            // A panic ends the transaction, and the applier, as an error does.
            let taken = AssertUnwindSafe(self.take(next)).catch_unwind().await.unwrap_or_else(|cause| Err(panicked(&*cause)));
            match taken {
                Ok(()) => {}
                Err(Problem::Over) => break,
                // Interrupted.
                Err(_) if self.order.is_over() => break,
                Err(Problem::Again(number, message) | Problem::Failed(number, message)) => {
                    self.channel.applier_failed(number, message);
                    self.order.end();
                    break;
                }
            }
        }
        self.applier.close().await;
    }

    async fn take(&mut self, work: Work) -> Result {
        let (event, part, end, _room) = match work {
            Work::Start(start) => {
                self.channel.worker_started(self.number, start.shown.clone(), start.timestamp);
                self.variables = StatementContext::default();
                self.tables.trim();
                let executed = !self.announce(&start);
                self.transaction = Some(Transaction { start, at_turn: false, branch: None, done_before: false, executed, events: Vec::new(), bytes: 0 });
                return Ok(());
            }
            Work::Abort => {
                self.undo().await;
                self.transaction = None;
                return Ok(());
            }
            Work::Event { event, part, end, room } => (event, part, end, room),
        };
        let mut outcome = match self.keep_going(&event).await {
            Ok(()) => self.step(&event, part, end.as_ref()).await,
            Err(problem) => Err(problem),
        };
        let mut attempt = 0;
        while let Err(Problem::Again(number, message)) = outcome {
            let transaction = self.transaction()?;
            let (ticket, whole) = (transaction.start.ticket, transaction.bytes < RETRY_BYTES);
            if attempt > self.retries_max || !whole {
                return Err(Problem::Failed(number, message));
            }
            // To be overtaken is no failure; anything else counts.
            attempt += u64::from(number != 0);
            self.undo().await;
            if !self.order.turn_at_rest(ticket).await {
                return Err(Problem::Over);
            }
            if attempt > 1 {
                tokio::time::sleep(Duration::from_millis((attempt * attempt).min(20) * 50)).await;
            }
            self.transaction()?.at_turn = true;
            self.order.make_way(ticket);
            if number != 0 {
                self.channel.note_retry();
            }
            outcome = self.again(&event, part, end.as_ref()).await;
        }
        outcome?;
        match part.ends() {
            true => self.transaction = None,
            false => self.keep(event, part),
        }
        Ok(())
    }

    /// False: it has been executed.
    fn announce(&mut self, start: &Start) -> bool {
        let gtid = match start.gtid {
            Some(Gtid::MySql { source, number }) => Some((Uuid(source), number)),
            _ => None,
        };
        let told = SourceTransaction { server_id: start.server_id, gtid, committed_micros: start.committed_micros, server_version: start.server_version };
        // Other replicas of ours have an ignored one from elsewhere.
        self.applier.announce((!start.ignored).then_some(told))
    }

    fn transaction(&mut self) -> Result<&mut Transaction> {
        self.transaction.as_mut().ok_or_else(|| damaged("an event comes outside of any transaction".into()))
    }

    fn keep(&mut self, event: Event, part: Part) {
        let Some(transaction) = &mut self.transaction else { return };
        transaction.bytes += event.body.len() + size_of::<Event>();
        match transaction.bytes < RETRY_BYTES {
            true => transaction.events.push((event, part)),
            false => transaction.events = Vec::new(),
        }
    }

    /// Before an event: a transaction that is too large to be applied again waits until nothing is before it, and so nobody will ask it to make way.
    async fn keep_going(&mut self, event: &Event) -> Result {
        let transaction = self.transaction()?;
        let ahead = match transaction.bytes + event.body.len() >= RETRY_BYTES {
            true => {
                self.wait_for_turn().await?;
                None
            }
            false => (!transaction.at_turn).then_some(LOCK_WAIT_AHEAD),
        };
        self.applier.set_lock_wait_limit(ahead);
        Ok(())
    }

    /// The transaction up to now, and the event that was not applied.
    async fn again(&mut self, last: &Event, part: Part, end: Option<&Position>) -> Result {
        let events = std::mem::take(&mut self.transaction()?.events);
        self.variables = StatementContext::default();
        self.applier.set_lock_wait_limit(None);
        let mut outcome = Ok(());
        for (event, part) in &events {
            outcome = self.step(event, *part, None).await;
            if outcome.is_err() {
                break;
            }
        }
        self.transaction()?.events = events;
        outcome?;
        self.step(last, part, end).await
    }

    async fn undo(&mut self) {
        // A rollback fails only if the engine has stopped.
        let _ = self.applier.rollback().await;
    }

    /// Waits until nothing is before this transaction. It may hold locks.
    async fn wait_for_turn(&mut self) -> Result {
        let transaction = self.transaction()?;
        if transaction.at_turn {
            return Ok(());
        }
        let ticket = transaction.start.ticket;
        match self.order.turn(ticket).await {
            Turn::Ours => {
                self.transaction()?.at_turn = true;
                Ok(())
            }
            Turn::MakeWay => Err(Problem::Again(0, String::new())),
            Turn::Over => Err(Problem::Over),
        }
    }

    async fn step(&mut self, event: &Event, part: Part, end: Option<&Position>) -> Result {
        let Transaction { executed, start: Start { ignored, .. }, .. } = *self.transaction()?;
        match part {
            Part::Log => Ok(()),
            Part::Alone if executed => {
                self.finish_rollback(event).await?;
                self.commit(end).await
            }
            Part::Commit | Part::Rollback if executed => self.commit(end).await,
            _ if executed => Ok(()),
            Part::Start => match transaction_start(event).map_err(damaged)?.begins {
                true => self.applier.begin().await.map_err(plain),
                false => Ok(()),
            },
            // Its name may be that of a transaction of ours.
            Part::Begin if ignored => self.applier.begin().await.map_err(plain),
            Part::Begin => self.begin(event).await,
            Part::Inside if self.transaction()?.done_before => Ok(()),
            Part::Alone if !ignored => self.alone(event, end).await,
            Part::Inside if !ignored => self.inside(event).await,
            Part::Inside => Ok(()),
            Part::Commit if event.kind == kind::XA_PREPARE && !ignored => self.prepare(event, end).await,
            Part::Commit | Part::Alone => self.commit(end).await,
            Part::Rollback => {
                self.undo().await;
                self.commit(end).await
            }
        }
    }

    async fn begin(&mut self, event: &Event) -> Result {
        let Some(statement) = branch_statement(event)? else { return self.applier.begin().await.map_err(plain) };
        let BranchStatement::Start(xid) = statement else { return Err(damaged("a transaction begins with its end".into())) };
        let new = self.applier.begin_branch(&xid).await.map_err(plain)?;
        let transaction = self.transaction()?;
        (transaction.branch, transaction.done_before) = (Some(xid), !new);
        Ok(())
    }

    /// The end of a transaction that is prepared, or committed in one phase.
    async fn prepare(&mut self, event: &Event, end: Option<&Position>) -> Result {
        let Some(end) = end else { return Err(damaged("a transaction ends twice".into())) };
        let (xid, one_phase) = xa::decode_prepare(&event.body).ok_or_else(|| damaged("an XA PREPARE without a name".into()))?;
        let transaction = self.transaction()?;
        let Some(branch) = transaction.branch.take() else { return Err(unsupported("XA transactions of MariaDB")) };
        if (branch.format as i32, &branch.gtrid, &branch.bqual) != (xid.format as i32, &xid.gtrid, &xid.bqual) {
            return Err(damaged("a transaction is prepared under another name than it began with".into()));
        }
        let done_before = transaction.done_before;
        // Should it be applied again.
        transaction.branch = Some(branch.clone());
        self.wait_for_turn().await?;
        let ticket = self.transaction()?.start.ticket;
        let order = self.order.clone();
        let (record, value) = (worker_record(self.number), end.encode());
        let appended = || order.appended(ticket);
        let prepared = match (done_before, one_phase) {
            (true, _) => {
                appended();
                self.applier.note(&record, value).await
            }
            (false, false) => self.applier.prepare_branch(&branch, &record, value, appended).await,
            (false, true) => self.applier.commit_branch(&record, value, appended).await,
        };
        prepared.map_err(plain)?;
        self.is_over(ticket, end);
        Ok(())
    }

    /// The transaction is done, and so is everything before it.
    fn is_over(&mut self, ticket: u64, end: &Position) {
        self.order.done(ticket, end.clone(), |position| self.channel.note_applied(position));
        self.channel.worker_rests(self.number);
    }

    /// XA COMMIT and XA ROLLBACK of what was prepared before.
    async fn end_branch(&mut self, xid: &Xid, commit: bool, end: Option<&Position>) -> Result {
        let Some(end) = end else { return Err(damaged("a transaction ends twice".into())) };
        self.wait_for_turn().await?;
        let ticket = self.transaction()?.start.ticket;
        let (record, value) = (worker_record(self.number), end.encode());
        match self.applier.end_branch(xid, commit, &record, value.clone()).await {
            // Nothing of it was for us, and a restart has forgotten its name.
            Err(e) if e.code == 1397 && self.filters.leaves_out() => self.applier.note(&record, value).await.map_err(plain)?,
            ended => ended.map_err(plain)?,
        }
        self.order.appended(ticket);
        self.is_over(ticket, end);
        Ok(())
    }

    /// An XA ROLLBACK is executed, as our own binary log tells, when it is decided. If what came then met an error it is still to be undone.
    async fn finish_rollback(&mut self, event: &Event) -> Result {
        let Some(BranchStatement::Rollback(xid)) = branch_statement(event)? else { return Ok(()) };
        self.wait_for_turn().await?;
        self.applier.finish_rollback(&xid).await.map_err(plain)
    }

    async fn commit(&mut self, end: Option<&Position>) -> Result {
        let Some(end) = end else { return Err(damaged("a transaction ends twice".into())) };
        self.wait_for_turn().await?;
        let ticket = self.transaction()?.start.ticket;
        let order = self.order.clone();
        self.applier.commit(&worker_record(self.number), end.encode(), || order.appended(ticket)).await.map_err(plain)?;
        self.order.done(ticket, end.clone(), |position| self.channel.note_applied(position));
        self.channel.worker_rests(self.number);
        Ok(())
    }

    /// A statement that is a transaction. A definition commits with its own change and the position, so it has to be its turn; any other statement
    /// is a transaction with the position here.
    async fn alone(&mut self, event: &Event, end: Option<&Position>) -> Result {
        match branch_statement(event)? {
            Some(BranchStatement::Commit(xid)) => return self.end_branch(&xid, true, end).await,
            Some(BranchStatement::Rollback(xid)) => return self.end_branch(&xid, false, end).await,
            _ => {}
        }
        self.wait_for_turn().await?;
        self.applier.begin().await.map_err(plain)?;
        if self.statement(event, end.map(Position::encode)).await? {
            self.applier.is_one_statement();
        }
        self.commit(end).await
    }

    async fn inside(&mut self, event: &Event) -> Result {
        match event.kind {
            kind::QUERY => {
                if let Some(BranchStatement::End(xid)) = branch_statement(event)? {
                    return self.applier.finish_branch(&xid).map_err(plain);
                }
                // It may be a definition, which commits at once.
                self.wait_for_turn().await?;
                self.statement(event, None).await.map(drop)
            }
            kind::INTVAR => {
                let (insert_id, value) = event.integer_variable().map_err(damaged)?;
                match insert_id {
                    true => self.variables.insert_id = Some(value),
                    false => self.variables.last_insert_id = Some(value),
                }
                Ok(())
            }
            kind::TABLE_MAP => {
                let (id, mut table) = event.table_map().map_err(damaged)?;
                let schema = self.filters.rewritten(&table.schema);
                if schema != table.schema {
                    table.schema = schema.to_string();
                }
                self.tables.add(id, table);
                Ok(())
            }
            kind::WRITE_ROWS..=kind::DELETE_ROWS | kind::WRITE_ROWS_V1..=kind::DELETE_ROWS_V1 => self.rows(event).await,
            kind::PARTIAL_UPDATE_ROWS => Err(unsupported("parts of JSON documents (binlog_row_value_options = PARTIAL_JSON on the source)")),
            #[cfg(test)]
            PANIC => panic!("as a test wants"),
            kind::RAND | kind::USER_VAR => Err(unsupported("statements that use user variables or RAND() (binlog_format on the source must be ROW)")),
            kind if kind::MARIADB_COMPRESSED.contains(&kind) => Err(unsupported("compressed events (log_bin_compress on the source)")),
            _ => Err(unsupported("LOAD DATA as a statement (binlog_format on the source must be ROW)")),
        }
    }

    /// False: it was not for us, or failed as it did on the source.
    async fn statement(&mut self, event: &Event, record: Option<Vec<u8>>) -> Result<bool> {
        let query = event.query().map_err(damaged)?;
        let mut context = query.context.clone();
        context.schema = self.filters.rewritten(&query.schema).to_string();
        let variables = std::mem::take(&mut self.variables);
        (context.insert_id, context.last_insert_id) = (variables.insert_id, variables.last_insert_id);
        if !self.filters.admits_schema(&context.schema) {
            return Ok(false);
        }
        if self.filters.names_tables() {
            let tables = self.applier.tables_of(&context, query.sql).map_err(plain)?;
            let names = tables.iter().map(|(schema, table)| (schema.as_str(), table.as_str()));
            if !tables.is_empty() && !self.filters.admits_tables(names) {
                return Ok(false);
            }
        }
        let name = worker_record(self.number);
        let first = self.transaction()?.start.first;
        match self.applier.statement(&context, query.sql, record.map(|value| (name.as_slice(), value))).await {
            Ok(()) => Ok(true),
            Err(e) if query.error_code != 0 && e.code == query.error_code => Ok(false),
            // Of a table that is not for us, or was not: as in MySQL a trigger that is not there is dropped without a word.
            Err(MySqlError { code: 1360, .. }) => Ok(false),
            Err(e) if first && may_be_done(&query.shown(), e.code) => Ok(true),
            Err(e @ MySqlError { code: 1205 | 1213, .. }) => Err(plain(e)),
            Err(e) if self.applier.skips(e.code) => {
                skipped(&e);
                Ok(false)
            }
            Err(e) => Err(Problem::Failed(e.code, format!("Error '{}' on query. Default database: '{}'. Query: '{}'", e.message, context.schema, query.shown()))),
        }
    }

    async fn rows(&mut self, event: &Event) -> Result {
        let rows = event.rows().map_err(damaged)?;
        if rows.table_id == DUMMY_TABLE {
            return Ok(());
        }
        let table = self.tables.get(rows.table_id).cloned().ok_or_else(|| damaged(format!("rows of table number {} come before its table map", rows.table_id)))?;
        if !self.filters.admits_schema(&table.schema) || !self.filters.admits_table(&table.schema, &table.table) {
            return Ok(());
        }
        let change = RowsChange { kind: rows.kind, table: &table, before: rows.before, after: rows.after, images: rows.images, no_foreign_key_checks: rows.no_foreign_key_checks };
        let Err(e) = self.applier.rows(&change, event.timestamp).await else { return Ok(()) };
        if self.applier.skips(e.code) {
            skipped(&e);
            return Ok(());
        }
        let file = self.transaction()?.start.file.clone();
        Err(match e.code {
            1205 | 1213 => plain(e),
            1146 => Problem::Failed(e.code, format!("Error executing row event: '{}'", e.message)),
            1317 | 1535 | 1594 | 1677 => Problem::Failed(e.code, e.message),
            code => Problem::Failed(
                code,
                format!(
                    "Could not execute {} event on table {}.{}; {}, Error_code: {code}; handler error {}; the event's master log {file}, end_log_pos {}",
                    rows.kind.name(),
                    table.schema,
                    table.table,
                    e.message,
                    handler_error(code, rows.kind),
                    event.log_pos
                ),
            ),
        })
    }
}

fn skipped(e: &MySqlError) {
    tracing::warn!("an event is passed over as slave_skip_errors says: error {}: {}", e.code, e.message);
}

/// What an event says about a transaction in two phases; `None` for all other statements.
fn branch_statement(event: &Event) -> Result<Option<BranchStatement>> {
    match event.kind {
        kind::QUERY => Ok(BranchStatement::parse(event.query().map_err(damaged)?.sql)),
        _ => Ok(None),
    }
}

/// Statements about accounts are several transactions, each of one account, and none has the position: what a crash leaves between them and the position
/// is done already when it comes again.
fn may_be_done(sql: &str, code: u16) -> bool {
    let mut words = sql.split_whitespace().map(str::to_ascii_uppercase);
    match words.next().as_deref() {
        Some("CREATE" | "DROP" | "RENAME" | "ALTER") => code == 1396 && matches!(words.next().as_deref(), Some("USER" | "ROLE")),
        Some("REVOKE") => matches!(code, 1141 | 1147),
        _ => false,
    }
}

fn handler_error(code: u16, kind: RowsKind) -> &'static str {
    match (code, kind) {
        (1062, _) => "HA_ERR_FOUND_DUPP_KEY",
        (1032, _) => "HA_ERR_KEY_NOT_FOUND",
        _ => "HA_ERR_GENERIC",
    }
}

fn panicked(cause: &(dyn Any + Send)) -> Problem {
    let text = cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Problem::Failed(1815, format!("Internal error: {text}"))
}

/// A deadlock or the end of a wait for a lock is worth another attempt.
fn plain(e: MySqlError) -> Problem {
    match e.code {
        1205 | 1213 => Problem::Again(e.code, e.message),
        code => Problem::Failed(code, e.message),
    }
}

fn damaged(what: String) -> Problem {
    Problem::Failed(1594, format!("Relay log read failure: {what}"))
}

fn unsupported(what: &str) -> Problem {
    Problem::Failed(1235, format!("This version of Highkey doesn't yet support {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_accounts_answer_once_it_is_done() {
        assert!(may_be_done("create user a", 1396) && may_be_done("DROP USER a", 1396) && may_be_done("CREATE ROLE a, b", 1396) && !may_be_done("CREATE TABLE a (a INT)", 1396));
        assert!(may_be_done("REVOKE SELECT ON d.* FROM a", 1141) && may_be_done("revoke select on d.t from a", 1147));
        assert!(!may_be_done("REVOKE SELECT ON d.* FROM a", 1045) && !may_be_done("GRANT SELECT ON d.t TO a", 1146) && !may_be_done("", 1396));
    }
}
