//! Applies what the receiver has read, one transaction after the other, and writes the position with each.
//!
//! Everything of a transaction of the source is one transaction here, and the record of the position is a part of it. So whenever the server ends, the
//! transactions up to the recorded position are in, and no others: what is done again starts there.

use std::sync::Arc;
use std::time::Duration;

use highkey_sql::ProcessEntry;
use highkey_sql::replica::{Applier, RowsChange, RowsKind, StatementContext};
use highkey_types::MySqlError;
use tokio::sync::{mpsc, watch};

use super::channel::{Channel, POSITION_RECORD, now_micros};
use super::event::{DUMMY_TABLE, Event, Part, TableMaps, kind};
use super::gtid::Gtid;
use super::position::Position;
use super::receiver::{self, Item};
use super::settings::{Settings, Until};

/// Events of a transaction that are kept to be applied again after a deadlock: transactions beyond that are not tried again.
const RETRY_BYTES: usize = 32 << 20;

/// Why applying ended.
enum Ended {
    Stopped,
    Failed(u16, String),
}

/// Runs until it is stopped or fails, or until what UNTIL says.
pub async fn run(channel: Arc<Channel>, mut items: mpsc::Receiver<Item>, mut stop: watch::Receiver<bool>) {
    let mut apply = Apply::new(channel.clone());
    channel.applier_started(apply.process.id());
    let ended = apply.run(&mut items, &mut stop).await;
    apply.applier.close().await;
    if let Ended::Failed(number, message) = ended {
        channel.applier_failed(number, message);
    }
}

struct Apply {
    channel: Arc<Channel>,
    settings: Settings,
    until: Until,
    retries_max: u64,
    applier: Applier,
    process: Arc<ProcessEntry>,
    /// The end of the last event, and the transactions that are done.
    position: Position,
    tables: TableMaps,
    /// Variables for the statement to come.
    variables: StatementContext,
    transaction: Option<Transaction>,
    /// No transaction has been applied since the server started: the first may be one that a crash cut off.
    first: bool,
}

/// The transaction that is being applied.
struct Transaction {
    gtid: Option<Gtid>,
    /// It comes from a server whose events are not for us.
    ignored: bool,
    open: bool,
    /// What has come of it, to be applied again.
    events: Vec<(Event, Part)>,
    bytes: usize,
}

impl Apply {
    fn new(channel: Arc<Channel>) -> Apply {
        let applier = Applier::new(channel.instance().clone());
        Apply {
            settings: channel.settings(),
            until: channel.until(),
            retries_max: channel.instance().global_u64("slave_transaction_retries"),
            process: applier.process().clone(),
            applier,
            position: channel.applied(),
            tables: TableMaps::default(),
            variables: StatementContext::default(),
            transaction: None,
            first: true,
            channel,
        }
    }

    async fn run(&mut self, items: &mut mpsc::Receiver<Item>, stop: &mut watch::Receiver<bool>) -> Ended {
        let process = self.process.clone();
        loop {
            let item = tokio::select! {
                biased;
                () = receiver::stopped(stop) => return Ended::Stopped,
                item = items.recv() => item,
            };
            let Some(item) = item else { return Ended::Stopped };
            // An event is applied to its end: a row's indexes belong together, and a definition is not to be given up half-way. A wait for a lock ends at once.
            let taken = {
                let mut taking = std::pin::pin!(self.take(item));
                tokio::select! {
                    taken = &mut taking => taken,
                    () = receiver::stopped(stop) => {
                        Applier::interrupt(&process);
                        taking.await
                    }
                }
            };
            match taken {
                Ok(true) => {}
                Ok(false) => return Ended::Stopped,
                // Interrupted.
                Err(_) if *stop.borrow() => return Ended::Stopped,
                Err((number, message)) => return Ended::Failed(number, message),
            }
        }
    }

    /// False: UNTIL is reached.
    async fn take(&mut self, item: Item) -> Result<bool, (u16, String)> {
        let (event, part) = match item {
            Item::Restarted => {
                self.roll_back().await;
                return Ok(true);
            }
            Item::Event { event, part, .. } => (event, part),
        };
        let starts = part != Part::Log && self.transaction.is_none();
        if starts {
            let gtid = match part {
                Part::Start => event.transaction_start().map_err(damaged)?.gtid,
                _ => None,
            };
            if self.until.reached(&self.position, gtid.as_ref()) {
                return Ok(false);
            }
            let ignored = u64::from(event.server_id) == self.channel.server_id() || self.settings.ignore_server_ids.contains(&u64::from(event.server_id));
            self.channel.note_applying(gtid.as_ref(), event.timestamp);
            self.delay(event.timestamp).await;
            self.transaction = Some(Transaction { gtid, ignored, open: false, events: Vec::new(), bytes: 0 });
        }
        if part == Part::Log {
            self.log(&event).map_err(damaged)?;
            return Ok(true);
        }
        let mut outcome = self.step(&event, part).await;
        let mut attempt = 0;
        while let Err((number @ (1205 | 1213), _)) = &outcome {
            let whole = self.transaction.as_ref().is_some_and(|t| t.bytes < RETRY_BYTES);
            if attempt >= self.retries_max || !whole || self.process.check().is_err() {
                break;
            }
            attempt += 1;
            tracing::info!("replica: error {number}, the transaction is applied again ({attempt} of {})", self.retries_max);
            self.channel.note_retry();
            // A session whose transaction was undone is as a new one.
            let _ = self.applier.rollback().await;
            tokio::time::sleep(Duration::from_millis((attempt * attempt).min(5) * 100)).await;
            outcome = self.again(&event, part).await;
        }
        if outcome.is_err() {
            let _ = self.applier.rollback().await;
            return outcome.map(|()| true);
        }
        if part.ends() {
            self.transaction = None;
            self.first = false;
            self.channel.note_applied(&self.position);
            return Ok(!self.until.reached(&self.position, None));
        }
        if let Some(transaction) = &mut self.transaction
            && transaction.bytes < RETRY_BYTES
        {
            transaction.bytes += event.body.len() + size_of::<Event>();
            match transaction.bytes < RETRY_BYTES {
                true => transaction.events.push((event, part)),
                false => transaction.events = Vec::new(),
            }
        }
        Ok(true)
    }

    /// The transaction up to now, and the event that failed.
    async fn again(&mut self, last: &Event, part: Part) -> Result<(), (u16, String)> {
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        transaction.open = false;
        let events = std::mem::take(&mut transaction.events);
        self.variables = StatementContext::default();
        let mut outcome = Ok(());
        for (event, part) in &events {
            outcome = self.step(event, *part).await;
            if outcome.is_err() {
                break;
            }
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.events = events;
        }
        outcome?;
        self.step(last, part).await
    }

    /// Waits until the source's transaction is as old as SOURCE_DELAY wants it. Dropped when the applier is to stop.
    async fn delay(&self, timestamp: u32) {
        if self.settings.delay == 0 {
            return;
        }
        let due = i64::from(timestamp) + self.settings.delay as i64;
        loop {
            let left = due - now_micros() / 1_000_000;
            if left <= 0 || self.process.check().is_err() {
                break;
            }
            self.channel.note_delay(Some(left as u64));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.channel.note_delay(None);
    }

    /// An event about the log.
    fn log(&mut self, event: &Event) -> Result<(), String> {
        match event.kind {
            kind::ROTATE => {
                (self.position.file, self.position.offset) = event.rotate()?;
                self.tables.clear();
            }
            kind::GTID_TAGGED => return Err("GTIDs with tags are not supported".into()),
            kind::INCIDENT => return Err("the source lost events of its log (incident)".into()),
            _ => {}
        }
        Ok(())
    }

    /// Applies one event of a transaction.
    async fn step(&mut self, event: &Event, part: Part) -> Result<(), (u16, String)> {
        if event.log_pos > 0 {
            self.position.offset = receiver::after(self.position.offset, event.log_pos);
        }
        let ignored = self.transaction.as_ref().is_some_and(|t| t.ignored);
        match part {
            Part::Log => Ok(()),
            Part::Start => match event.transaction_start().map_err(damaged)?.begins {
                true => self.begin().await,
                false => Ok(()),
            },
            Part::Begin => self.begin().await,
            Part::Alone if !ignored => self.alone(event).await,
            Part::Inside if !ignored => self.inside(event).await,
            Part::Inside => Ok(()),
            Part::Commit | Part::Alone => self.commit().await,
            Part::Rollback => {
                self.applier.rollback().await.map_err(plain)?;
                self.commit().await
            }
        }
    }

    async fn begin(&mut self) -> Result<(), (u16, String)> {
        if let Some(transaction) = &mut self.transaction {
            transaction.open = true;
        }
        self.applier.begin().await.map_err(plain)
    }

    /// The position after the running transaction.
    fn next_position(&self) -> Position {
        let mut next = self.position.clone();
        if let Some(gtid) = self.transaction.as_ref().and_then(|t| t.gtid.as_ref()) {
            next.gtids.add(gtid);
        }
        next
    }

    async fn commit(&mut self) -> Result<(), (u16, String)> {
        let next = self.next_position();
        self.applier.commit(POSITION_RECORD, next.encode()).await.map_err(plain)?;
        self.position = next;
        Ok(())
    }

    /// A statement that is a transaction. A definition commits with its own change and the position; any other is a transaction with the position here.
    async fn alone(&mut self, event: &Event) -> Result<(), (u16, String)> {
        self.applier.begin().await.map_err(plain)?;
        let record = self.next_position().encode();
        self.statement(event, Some(record)).await?;
        self.commit().await
    }

    async fn inside(&mut self, event: &Event) -> Result<(), (u16, String)> {
        match event.kind {
            kind::QUERY => self.statement(event, None).await,
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
                let schema = self.settings.filters.rewritten(&table.schema);
                if schema != table.schema {
                    table.schema = schema.to_string();
                }
                self.tables.add(id, table);
                Ok(())
            }
            kind::WRITE_ROWS..=kind::DELETE_ROWS | kind::WRITE_ROWS_V1..=kind::DELETE_ROWS_V1 => self.rows(event).await,
            kind::PARTIAL_UPDATE_ROWS => Err(unsupported("parts of JSON documents (binlog_row_value_options = PARTIAL_JSON on the source)")),
            kind::RAND | kind::USER_VAR => Err(unsupported("statements that use user variables or RAND() (binlog_format on the source must be ROW)")),
            kind::XA_PREPARE => Err(unsupported("XA transactions")),
            kind if kind::MARIADB_COMPRESSED.contains(&kind) => Err(unsupported("compressed events (log_bin_compress on the source)")),
            _ => Err(unsupported("LOAD DATA as a statement (binlog_format on the source must be ROW)")),
        }
    }

    async fn statement(&mut self, event: &Event, record: Option<Vec<u8>>) -> Result<(), (u16, String)> {
        let query = event.query().map_err(damaged)?;
        let mut context = query.context.clone();
        context.schema = self.settings.filters.rewritten(&query.schema).to_string();
        let variables = std::mem::take(&mut self.variables);
        (context.insert_id, context.last_insert_id) = (variables.insert_id, variables.last_insert_id);
        if !self.settings.filters.admits_schema(&context.schema) {
            return Ok(());
        }
        let record = record.as_ref().map(|value| (POSITION_RECORD, value.clone()));
        match self.applier.statement(&context, query.sql, record).await {
            Ok(()) => Ok(()),
            Err(e) if query.error_code != 0 && e.code == query.error_code => Ok(()),
            Err(e) if self.first && is_about_account(&query.shown()) && e.code == 1396 => Ok(()),
            Err(e @ MySqlError { code: 1205 | 1213 | 1317, .. }) => Err(plain(e)),
            Err(e) => Err((e.code, format!("Error '{}' on query. Default database: '{}'. Query: '{}'", e.message, context.schema, query.shown()))),
        }
    }

    async fn rows(&mut self, event: &Event) -> Result<(), (u16, String)> {
        let rows = event.rows().map_err(damaged)?;
        if rows.table_id == DUMMY_TABLE {
            return Ok(());
        }
        let table = self.tables.get(rows.table_id).cloned().ok_or_else(|| damaged(format!("rows of table number {} come before its table map", rows.table_id)))?;
        let filters = &self.settings.filters;
        if !filters.admits_schema(&table.schema) || !filters.admits_table(&table.schema, &table.table) {
            return Ok(());
        }
        let change = RowsChange { kind: rows.kind, table: &table, before: rows.before, after: rows.after, images: rows.images };
        self.applier.rows(&change).await.map_err(|e| {
            let message = match e.code {
                1205 | 1213 | 1317 => e.message,
                1146 => format!("Error executing row event: '{}'", e.message),
                1535 | 1594 | 1677 => e.message,
                code => format!(
                    "Could not execute {} event on table {}.{}; {}, Error_code: {code}; handler error {}; the event's master log {}, end_log_pos {}",
                    rows.kind.name(),
                    table.schema,
                    table.table,
                    e.message,
                    handler_error(code, rows.kind),
                    self.position.file,
                    event.log_pos
                ),
            };
            (e.code, message)
        })
    }

    /// What has come of a transaction is undone; it will come again.
    async fn roll_back(&mut self) {
        let _ = self.applier.rollback().await;
        self.transaction = None;
        self.variables = StatementContext::default();
        self.tables.clear();
        self.position = self.channel.applied();
    }
}

/// Statements about accounts are several transactions, each of one account, and none has the position: what a crash leaves between them and the position
/// is done already when it comes again.
fn is_about_account(sql: &str) -> bool {
    let mut words = sql.split_whitespace();
    let first = words.next().unwrap_or_default().to_ascii_uppercase();
    matches!(first.as_str(), "CREATE" | "DROP" | "RENAME" | "ALTER") && words.next().is_some_and(|word| word.eq_ignore_ascii_case("USER"))
}

fn handler_error(code: u16, kind: RowsKind) -> &'static str {
    match (code, kind) {
        (1062, _) => "HA_ERR_FOUND_DUPP_KEY",
        (1032, _) => "HA_ERR_KEY_NOT_FOUND",
        _ => "HA_ERR_GENERIC",
    }
}

fn plain(e: MySqlError) -> (u16, String) {
    (e.code, e.message)
}

fn damaged(what: String) -> (u16, String) {
    (1594, format!("Relay log read failure: {what}"))
}

fn unsupported(what: &str) -> (u16, String) {
    (1235, format!("This version of Highkey doesn't yet support {what}"))
}
