//! A transaction over tables: the storage engine's, with the metadata locks, savepoints and row counts on top.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use highkey_storage::{CommitWait, Interrupt, Isolation, Progress, Savepoint, SortedRows, Stage, Txn, TxnActivity, TxnId, Waits};
use highkey_binlog::Xid;
use highkey_types::MySqlError;

use crate::commit::{Change, EventCache, EventMark, EventSource, ReplicaWait};
use crate::database::Database;
use crate::ddl::DdlContext;
use crate::error;
use crate::foreign::Generator;
use crate::metadata_lock::{MetadataLock, MetadataLocks, MetadataMode, Name, Owner};
use crate::row_id::Lease;
use crate::pace::{Pace, give_way};
use crate::session_locks::SessionLocks;
use crate::table::{Table, TableState};
use crate::view::View;
use crate::xa::{ChangedTable, PreparedInfo, PreparedTransaction};

/// One transaction of one session. Dropping it without `commit` rolls it back.
pub struct Transaction {
    /// None once it has ended.
    inner: Option<Txn>,
    pub(crate) db: Arc<Database>,
    /// Declared after `inner`: metadata locks go after the rows have been committed or rolled back.
    locks: HeldLocks,
    interrupt: Arc<Interrupt>,
    pub(crate) progress: Arc<Progress>,
    metadata_timeout: Duration,
    /// The catalog's epoch when the present snapshot was taken.
    view_epoch: Option<u64>,
    /// Rows added to each table, for its row count at commit.
    deltas: Vec<(Arc<TableState>, i64)>,
    savepoints: Savepoints,
    /// The binary log's events, if they are wanted.
    pub(crate) events: Option<Box<EventCache>>,
    /// Its name, if it is in two phases.
    xid: Option<Arc<Xid>>,
    /// A table that comes with this transaction.
    pub(crate) created: Option<Arc<Table>>,
    /// Row ids that this transaction may hand out; what is left goes back to the table.
    leases: Vec<(Arc<TableState>, Lease)>,
    pub(crate) scratch: Scratch,
    pub(crate) foreign_key_checks: bool,
    pub(crate) generator: Option<Arc<dyn Generator>>,
    /// Tables opened because foreign keys tie them to the statements' own.
    pub(crate) related: Vec<(Arc<Table>, MetadataMode)>,
    /// The key of the parent that is looked for, reused.
    pub(crate) parent_key: Vec<u8>,
    pace: Pace,
}

/// Buffers that row operations reuse.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) other_key: Vec<u8>,
    pub(crate) other_value: Vec<u8>,
    pub(crate) arena: Vec<u8>,
    pub(crate) spans: Vec<(u32, u32)>,
    pub(crate) order: Vec<u32>,
    pub(crate) sorted: SortedRows,
}

/// A point of the transaction to return to: the start of a statement, or what a named savepoint stands for.
#[derive(Clone)]
pub struct StatementSavepoint {
    inner: Savepoint,
    deltas: Vec<i64>,
    events: EventMark,
}

/// Named savepoints of one level: those of the transaction, or of a body that runs inside of one of its statements.
#[derive(Default)]
pub struct Savepoints(Vec<(String, StatementSavepoint)>);

/// A consistent view that other threads can scan under (`Table::scan_at`).
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) inner: highkey_storage::Snapshot,
    pub(crate) epoch: u64,
}

impl Snapshot {
    /// READ UNCOMMITTED: what is latest, whoever made it.
    pub fn is_uncommitted(&self) -> bool {
        self.inner.is_uncommitted()
    }
}

impl Transaction {
    pub(crate) fn new(db: Arc<Database>, isolation: Isolation, session: Option<Arc<SessionLocks>>) -> Transaction {
        let inner = db.engine().begin(isolation);
        Transaction {
            inner: Some(inner),
            locks: HeldLocks::new(db.metadata_locks.clone(), session),
            db,
            interrupt: Arc::default(),
            progress: Arc::default(),
            metadata_timeout: DEFAULT_METADATA_TIMEOUT,
            view_epoch: None,
            deltas: Vec::new(),
            savepoints: Savepoints::default(),
            events: None,
            xid: None,
            created: None,
            leases: Vec::new(),
            scratch: Scratch::default(),
            foreign_key_checks: true,
            generator: None,
            related: Vec::new(),
            parent_key: Vec::new(),
            pace: Pace::default(),
        }
    }

    pub(crate) fn inner(&mut self) -> &mut Txn {
        self.inner.as_mut().expect("the transaction has not ended")
    }

    /// For what needs the storage transaction and this one's interrupt at the same time; `put_inner` gives it back.
    pub(crate) fn take_inner(&mut self) -> Txn {
        self.inner.take().expect("the transaction has not ended")
    }

    pub(crate) fn put_inner(&mut self, inner: Txn) {
        self.inner = Some(inner);
    }

    /// Raised once KILL has asked for it.
    pub(crate) fn interrupt(&self) -> Arc<Interrupt> {
        self.interrupt.clone()
    }

    /// Error 1317 once KILL has asked for it.
    pub(crate) fn check_interrupt(&self) -> Result<(), MySqlError> {
        if self.interrupt.is_raised() { Err(highkey_types::errors::query_interrupted()) } else { Ok(()) }
    }

    /// To be called every few steps, rows or so, of work that may go on for long: now and then it lets other tasks of the thread run, and sees whether
    /// KILL wants the statement to end. Error 1317.
    pub async fn breathe(&mut self, steps: usize) -> Result<(), MySqlError> {
        if !self.pace.is_due(steps) {
            return Ok(());
        }
        give_way().await;
        self.pace.begin_turn();
        self.check_interrupt()
    }

    /// The storage engine's number, once the transaction has written or locked.
    pub fn id(&self) -> Option<TxnId> {
        self.inner.as_ref().and_then(Txn::id)
    }

    /// Its isolation level.
    pub fn isolation(&self) -> Isolation {
        self.inner.as_ref().expect("the transaction has not ended").isolation()
    }

    /// True once it has something to commit.
    pub fn has_writes(&self) -> bool {
        self.inner.as_ref().is_some_and(Txn::has_writes)
    }

    /// `innodb_lock_wait_timeout`, for row locks.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.inner().set_lock_wait_timeout(timeout);
    }

    /// `lock_wait_timeout`, for metadata locks.
    pub fn set_metadata_lock_timeout(&mut self, timeout: Duration) {
        self.metadata_timeout = timeout;
    }

    /// Lets KILL end this transaction's waits.
    pub fn set_interrupt(&mut self, interrupt: Arc<Interrupt>) {
        self.inner().set_interrupt(interrupt.clone());
        self.interrupt = interrupt;
    }

    /// Where long work of this transaction says how far it is.
    pub fn set_progress(&mut self, progress: Arc<Progress>) {
        self.inner().set_progress(progress.clone());
        self.progress = progress;
    }

    /// Where reports find this transaction from its first read or lock on.
    pub fn set_activity(&mut self, activity: Arc<TxnActivity>) {
        self.inner().set_activity(activity);
    }

    /// To be called before each statement: READ COMMITTED takes a new snapshot.
    pub fn begin_statement(&mut self) {
        self.inner().begin_statement();
        // Between statements the thread was others'.
        self.pace = Pace::default();
        if matches!(self.isolation(), Isolation::ReadCommitted | Isolation::ReadUncommitted) {
            self.view_epoch = None;
        }
    }

    /// Opens a table: its definition stays as it is until this transaction ends. Errors: 1146, 1205, 1213, 1317.
    pub async fn table(&mut self, schema: &str, name: &str) -> Result<Arc<Table>, MySqlError> {
        loop {
            let table = self.db.catalog().table(schema, name)?;
            if self.open(&table).await? {
                return Ok(table);
            }
        }
    }

    /// Locks the name of a table that this transaction will make, and of those that foreign keys tie to it, exclusively, and their schemas
    /// against being dropped.
    pub(crate) async fn lock_new_table(&mut self, cx: &DdlContext, names: Vec<Name>) -> Result<(), MySqlError> {
        cx.progress.enter(Stage::WaitingForMetadataLock, 0);
        self.locks.acquire_tables(names, cx.lock_wait_timeout, &cx.interrupt).await?;
        cx.progress.enter(Stage::Executing, 0);
        Ok(())
    }

    /// As `open`, without waiting: false also while DDL has the table or waits for it.
    pub fn try_open(&mut self, table: &Arc<Table>) -> bool {
        self.db.metadata_locks.uses.add(1);
        match self.locks.try_acquire(&table.lock, MetadataMode::Read) {
            Ok(Got::Had) => table.is_current(),
            Ok(Got::New(before)) => self.keep_if_current(table, before),
            Ok(Got::Nothing) | Err(_) => false,
        }
    }

    /// Opens a table found earlier (a prepared statement's), to read it. False: its definition has changed since, look it up again.
    pub async fn open(&mut self, table: &Arc<Table>) -> Result<bool, MySqlError> {
        self.open_for(table, MetadataMode::Read).await
    }

    /// As `open`, to change rows or lock them for that: waits for LOCK TABLES ... READ of others. Error 1099 if the session itself has the table so.
    pub async fn open_to_write(&mut self, table: &Arc<Table>) -> Result<bool, MySqlError> {
        self.open_for(table, MetadataMode::Write).await
    }

    /// As `open`, of a view: it stays as it is until this transaction ends.
    pub async fn open_view(&mut self, view: &Arc<View>) -> Result<bool, MySqlError> {
        self.db.metadata_locks.uses.add(1);
        let Some(lock) = &view.lock else { return Ok(true) };
        let before = match self.locks.try_acquire(lock, MetadataMode::Read)? {
            Got::Had => return Ok(view.is_current()),
            Got::New(before) => before,
            Got::Nothing => self.wait_for(lock, MetadataMode::Read).await?,
        };
        let current = view.is_current();
        if !current {
            self.locks.give_back(lock, before);
        }
        Ok(current)
    }

    pub(crate) async fn open_for(&mut self, table: &Arc<Table>, mode: MetadataMode) -> Result<bool, MySqlError> {
        self.db.metadata_locks.uses.add(1);
        let before = match self.locks.try_acquire(&table.lock, mode)? {
            Got::Had => return Ok(table.is_current()),
            Got::New(before) => before,
            Got::Nothing => self.wait_for(&table.lock, mode).await?,
        };
        Ok(self.keep_if_current(table, before))
    }

    /// The mode in which the lock was held before.
    async fn wait_for(&mut self, lock: &Arc<MetadataLock>, mode: MetadataMode) -> Result<Option<MetadataMode>, MySqlError> {
        self.progress.enter(Stage::WaitingForMetadataLock, 0);
        let acquired = self.locks.acquire(lock, mode, self.metadata_timeout, &self.interrupt).await;
        self.progress.enter(Stage::Executing, 0);
        acquired
    }

    /// Of a table whose lock has just been acquired: if its definition has changed, the lock is again what it was `before`.
    fn keep_if_current(&mut self, table: &Arc<Table>, before: Option<MetadataMode>) -> bool {
        let current = table.is_current();
        if !current {
            self.locks.give_back(&table.lock, before);
        }
        current
    }

    /// The view of this transaction's consistent reads; taken now if there is none yet.
    pub fn snapshot(&mut self) -> Snapshot {
        // The epoch is read first: a definition published in between counts as unseen, which is on the safe side.
        let epoch = self.view_epoch();
        Snapshot { inner: self.inner().snapshot(), epoch }
    }

    /// What is committed now, with the transaction's own writes: for a statement that has locked what it reads. The view of its consistent reads stays.
    pub fn fresh_snapshot(&mut self) -> Snapshot {
        let epoch = self.db.epoch();
        Snapshot { inner: self.inner().fresh_snapshot(), epoch }
    }

    pub(crate) fn view_epoch(&mut self) -> u64 {
        let db = &self.db;
        *self.view_epoch.get_or_insert_with(|| db.epoch())
    }

    /// Where a failed statement returns to.
    pub fn statement_savepoint(&mut self) -> StatementSavepoint {
        StatementSavepoint {
            inner: self.inner().savepoint(),
            deltas: self.counted(),
            events: self.event_mark(),
        }
    }

    /// Undoes what was written since. Locks stay.
    pub fn rollback_to_statement(&mut self, savepoint: &StatementSavepoint) -> Result<(), MySqlError> {
        self.inner().rollback_to(&savepoint.inner).map_err(|e| error::storage(e, "transaction"))?;
        self.count_again(&savepoint.deltas);
        self.forget_events(&savepoint.events);
        Ok(())
    }

    /// SAVEPOINT: replaces one of the same name.
    pub fn savepoint(&mut self, name: &str) {
        self.savepoints.0.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        let point = self.statement_savepoint();
        self.savepoints.0.push((name.to_string(), point));
    }

    /// ROLLBACK TO: later savepoints go, this one stays. Error 1305.
    pub fn rollback_to(&mut self, name: &str) -> Result<(), MySqlError> {
        let at = self.find_savepoint(name)?;
        let point = self.savepoints.0[at].1.clone();
        self.rollback_to_statement(&point)?;
        self.savepoints.0.truncate(at + 1);
        Ok(())
    }

    /// RELEASE SAVEPOINT: this one and later ones go, nothing is undone. Error 1305.
    pub fn release(&mut self, name: &str) -> Result<(), MySqlError> {
        let at = self.find_savepoint(name)?;
        self.savepoints.0.truncate(at);
        Ok(())
    }

    /// Begins a level of savepoints, or goes back to one: these are those that names mean from here on. Returns those that they meant before.
    pub fn exchange_savepoints(&mut self, savepoints: Savepoints) -> Savepoints {
        std::mem::replace(&mut self.savepoints, savepoints)
    }

    /// Whether it has a savepoint of that name, in any case.
    pub fn has_savepoint(&self, name: &str) -> bool {
        self.find_savepoint(name).is_ok()
    }

    fn find_savepoint(&self, name: &str) -> Result<usize, MySqlError> {
        let found = self.savepoints.0.iter().position(|(n, _)| n.eq_ignore_ascii_case(name));
        found.ok_or_else(|| error::no_such_savepoint(name))
    }

    /// The changes of the statement that begins are events of the binary log. To be called before a statement's first change.
    pub fn log_statement(&mut self, source: EventSource) {
        let xid = &self.xid;
        let bytes_max = self.db.binlog().map_or(u64::MAX, |binlog| binlog.settings().max_cache_size.load(Ordering::Relaxed));
        let events = self.events.get_or_insert_with(|| Box::new(EventCache::new(xid.clone())));
        events.begin_statement(source, bytes_max);
    }

    /// The binary log is to tell of the transaction even if it changes nothing.
    pub fn log_empty(&mut self, source: EventSource) {
        self.log_statement(source);
        if let Some(events) = &mut self.events {
            events.begin_empty();
        }
    }

    /// Whether its commit has something to make durable: changes, or what the binary log is to tell.
    pub fn has_something_to_commit(&self) -> bool {
        self.has_writes() || self.events.as_ref().is_some_and(|events| events.is_empty_transaction())
    }

    /// Whether its commit is a transaction of the binary log.
    pub fn tells_binlog(&self) -> bool {
        self.events.as_ref().is_some_and(|events| events.tells())
    }

    /// Whether events of it are in the log before its commit: they did not stay in memory.
    pub fn logs_ahead(&self) -> bool {
        self.events.as_ref().is_some_and(|events| events.logged() > 0)
    }

    /// The transaction is one in two phases. To be called before its first change.
    pub fn set_xid(&mut self, xid: Arc<Xid>) {
        self.xid = Some(xid);
    }

    /// A statement that is logged as its text, before any row of the transaction: the CREATE TABLE of CREATE TABLE … SELECT.
    /// Error 1059: the name of the default schema is too long for the binary log.
    pub fn log_text(&mut self, sql: &str) -> Result<(), MySqlError> {
        self.events.as_mut().map_or(Ok(()), |events| events.add_statement(sql))
    }

    /// Notes a row's change that has been made. Of temporary tables nothing is told. Error 1059: the table's name is too long for the binary log.
    pub(crate) fn log_change(&mut self, table: &Table, change: &Change<'_>) -> Result<(), MySqlError> {
        let Some(events) = self.events.as_mut().filter(|_| !table.is_temporary()) else { return Ok(()) };
        let inner = self.inner.as_mut().expect("the transaction has not ended");
        let map = table.event_map(events.source().row_metadata)?;
        let before = events.size();
        let noted = events.change(inner, map, change).map_err(|e| error::storage(e, "transaction"));
        Waits::note_binlog_bytes(events.size().saturating_sub(before));
        noted.and_then(|()| check_size(events))
    }

    /// As `log_change`, of an inserted row in the table's encoding.
    pub(crate) fn log_encoded(&mut self, table: &Table, row: &[u8]) -> Result<(), MySqlError> {
        let Some(events) = self.events.as_mut().filter(|_| !table.is_temporary()) else { return Ok(()) };
        let inner = self.inner.as_mut().expect("the transaction has not ended");
        let before = events.size();
        let noted = events.insert_encoded(inner, table, row);
        Waits::note_binlog_bytes(events.size().saturating_sub(before));
        noted.and_then(|()| check_size(events))
    }

    /// The events so far; what comes later can be forgotten again.
    pub(crate) fn event_mark(&mut self) -> EventMark {
        self.events.as_mut().map(|events| events.mark()).unwrap_or_default()
    }

    pub(crate) fn forget_events(&mut self, mark: &EventMark) {
        if let Some(events) = &mut self.events {
            events.return_to(mark);
        }
    }

    /// Commits; when it returns the changes are as durable as `innodb_flush_log_at_trx_commit` asks, and so are the binary log's events.
    pub async fn commit(mut self) -> Result<(), MySqlError> {
        let mut inner = self.inner.take().expect("the transaction has not ended");
        let events = match self.events.take() {
            Some(events) => finish(*events, &inner, false),
            None => Vec::new(),
        };
        let replicas = self.db.semi_sync().filter(|replicas| replicas.is_enabled() && !events.is_empty()).cloned();
        if let Some(replicas) = &replicas {
            replicas.prepare(&mut inner);
        }
        let wait = inner.commit(&events).map_err(|e| error::storage(e, "transaction"))?;
        let acknowledged = replicas.and_then(|replicas| replicas.begin(wait.lsn()));
        let deltas = std::mem::take(&mut self.deltas);
        let count = move || deltas.into_iter().for_each(|(table, delta)| table.add_rows(delta));
        if let Some(created) = self.created.take() {
            // On this thread: nothing may come between the commit and the publication.
            wait.wait().map_err(|e| error::storage(e, "transaction"))?;
            self.db.publish_created(&created);
            count();
        } else if let Some(left) = Committing::new(wait, &self.interrupt, &self.progress).await.map_err(|e| error::storage(e, "transaction"))? {
            // Who was killed does not wait for replicas. Others open the tables when the rows are there, which may be at once.
            self.give_back_leases();
            let locks = std::mem::replace(&mut self.locks, HeldLocks::new(self.db.metadata_locks.clone(), None));
            left.leave(Box::new(move || {
                count();
                drop(locks);
            }));
            return Ok(());
        } else {
            count();
        }
        if let Some(acknowledged) = acknowledged {
            acknowledged.wait(&self.interrupt, &self.progress).await;
        }
        Ok(())
    }

    /// What ends its waits, and what says how far it is.
    pub(crate) fn waits_with(&self) -> (Arc<Interrupt>, Arc<Progress>) {
        (self.interrupt.clone(), self.progress.clone())
    }

    /// Prepares a transaction that has changed something. What is returned is prepared whatever becomes of the wait.
    pub(crate) fn prepare(mut self, xid: &Xid) -> Result<(PreparedTransaction, Committing, Option<ReplicaWait>), MySqlError> {
        let mut inner = self.inner.take().expect("the transaction has not ended");
        let events = match self.events.take() {
            Some(events) => finish(*events, &inner, true),
            None => Vec::new(),
        };
        self.give_back_leases();
        let locks = std::mem::replace(&mut self.locks, HeldLocks::new(self.db.metadata_locks.clone(), None));
        let deltas = std::mem::take(&mut self.deltas);
        let catalog = self.db.catalog();
        let tables = locks.changed().into_iter().map(|(schema, table)| {
            let found = catalog.table(&schema, &table).ok();
            let added = found.and_then(|found| deltas.iter().find(|(state, _)| Arc::ptr_eq(state, &found.state)).map(|(_, added)| *added));
            ChangedTable { schema: schema.to_string(), table: table.to_string(), added: added.unwrap_or(0) }
        });
        let info = PreparedInfo { xid: xid.clone(), logged: !events.is_empty(), tables: tables.collect() };
        let replicas = self.db.semi_sync().filter(|replicas| replicas.is_enabled() && info.logged);
        if let Some(replicas) = replicas {
            replicas.prepare_unseen(&mut inner);
        }
        let (prepared, wait) = inner.prepare(info.encode(), &events).map_err(|e| error::storage(e, "transaction"))?;
        let acknowledged = replicas.and_then(|replicas| replicas.begin(wait.lsn()));
        let wait = Committing::new(wait, &self.interrupt, &self.progress);
        Ok((PreparedTransaction { inner: prepared, deltas, logged: info.logged, _locks: locks }, wait, acknowledged))
    }

    /// As `commit`, of a transaction that has written nothing: nothing has to become durable, so there is nothing to wait for.
    pub fn commit_unwritten(mut self) -> Result<(), MySqlError> {
        debug_assert!(!self.has_writes(), "writes are committed by a future");
        let inner = self.inner.take().expect("the transaction has not ended");
        inner.commit(&[]).map(drop).map_err(|e| error::storage(e, "transaction"))
    }

    /// Undoes everything. Panics if it has ended.
    pub async fn rollback(mut self) -> Result<(), MySqlError> {
        let inner = self.inner.take().expect("the transaction has not ended");
        inner.rollback().map_err(|e| error::storage(e, "transaction"))
    }

    pub(crate) fn count_rows(&mut self, table: &Arc<TableState>, added: i64) {
        self.inner().note_rows_changed(added.unsigned_abs());
        match self.deltas.iter_mut().find(|(t, _)| Arc::ptr_eq(t, table)) {
            Some((_, delta)) => *delta += added,
            None => self.deltas.push((table.clone(), added)),
        }
    }

    /// A row of the table was changed where it is.
    pub(crate) fn note_changed(&mut self, table: &Arc<TableState>) {
        self.inner().note_rows_changed(1);
        if !self.deltas.iter().any(|(t, _)| Arc::ptr_eq(t, table)) {
            self.deltas.push((table.clone(), 0));
        }
    }

    /// Rows added so far, to go back to.
    pub(crate) fn counted(&self) -> Vec<i64> {
        self.deltas.iter().map(|(_, delta)| *delta).collect()
    }

    /// Back to what `counted` gave.
    pub(crate) fn count_again(&mut self, counted: &[i64]) {
        for (i, (_, delta)) in self.deltas.iter_mut().enumerate() {
            *delta = counted.get(i).copied().unwrap_or(0);
        }
    }

    /// `count` consecutive row ids.
    pub(crate) fn take_row_ids(&mut self, table: &Arc<TableState>, count: u64) -> Result<u64, MySqlError> {
        let at = match self.leases.iter().position(|(t, _)| Arc::ptr_eq(t, table)) {
            Some(at) => at,
            None => {
                self.leases.push((table.clone(), Lease::empty()));
                self.leases.len() - 1
            }
        };
        let lease = &mut self.leases[at].1;
        if let Some(first) = lease.take(count) {
            return Ok(first);
        }
        let next = table.row_ids.lease(count, lease)?;
        table.row_ids.give_back(std::mem::replace(lease, next));
        Ok(lease.take(count).expect("a lease holds what was asked for"))
    }

    /// Before the metadata locks go: DDL that comes then may number the rows anew.
    fn give_back_leases(&mut self) {
        for (table, lease) in self.leases.drain(..) {
            table.row_ids.give_back(lease);
        }
    }
}

/// Error 1197 if the events take more than `max_binlog_cache_size`.
fn check_size(events: &EventCache) -> Result<(), MySqlError> {
    if events.is_too_large() { Err(highkey_types::errors::trans_cache_full()) } else { Ok(()) }
}

/// What the record that ends a transaction, or prepares it, has for the binary log.
fn finish(events: EventCache, inner: &Txn, prepare: bool) -> Vec<u8> {
    let (size, logged) = (events.size(), events.logged());
    let payload = events.finish(inner.id().map_or(0, |id| id.0), inner.releasing(), prepare);
    Waits::note_binlog_bytes((logged + payload.len() as u64).saturating_sub(size));
    payload
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // Rolled back before its counters go: they must not be missed by a table that stays.
        self.inner = None;
        if let Some(created) = self.created.take() {
            created.retire();
            self.db.forget_counters(created.id());
        }
        self.give_back_leases();
    }
}

/// `lock_wait_timeout`'s default: one year.
const DEFAULT_METADATA_TIMEOUT: Duration = Duration::from_secs(31_536_000);

/// The wait for a commit. If its future is dropped the wait ends on the spot, blocking: metadata locks may only go
/// when the rows are visible, because DDL copies what it sees.
///
/// Where a replica's acknowledgement is waited for, a KILL ends it: what it resolves to is the wait that is left then, and is to be left to
/// (`CommitWait::leave`) what keeps others from the tables.
pub(crate) struct Committing {
    wait: Option<CommitWait>,
    interrupt: Arc<Interrupt>,
    progress: Arc<Progress>,
    /// It waits for replicas.
    held: bool,
}

impl Committing {
    pub(crate) fn new(wait: CommitWait, interrupt: &Arc<Interrupt>, progress: &Arc<Progress>) -> Committing {
        Committing { wait: Some(wait), interrupt: interrupt.clone(), progress: progress.clone(), held: false }
    }
}

impl Future for Committing {
    type Output = highkey_storage::Result<Option<CommitWait>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wait = self.wait.as_mut().expect("not polled after it was ready");
        match Pin::new(&mut *wait).poll(cx) {
            Poll::Ready(outcome) => {
                self.wait = None;
                if self.held {
                    self.progress.enter(Stage::Executing, 0);
                }
                return Poll::Ready(outcome.map(|()| None));
            }
            Poll::Pending if !wait.is_held() => return Poll::Pending,
            Poll::Pending => {}
        }
        if !std::mem::replace(&mut self.held, true) {
            self.progress.enter(Stage::WaitingForReplica, 0);
        }
        self.interrupt.wake_on_raise(cx.waker());
        if !self.interrupt.is_raised() {
            return Poll::Pending;
        }
        self.progress.enter(Stage::Executing, 0);
        Poll::Ready(Ok(self.wait.take()))
    }
}

impl Drop for Committing {
    fn drop(&mut self) {
        if let Some(wait) = self.wait.take() {
            let _ = wait.wait();
        }
    }
}

/// The metadata locks of one transaction or DDL statement; released when dropped. What its session has locked (`session_locks.rs`) it has too.
pub(crate) struct HeldLocks {
    locks: Arc<MetadataLocks>,
    owner: Owner,
    session: Option<Arc<SessionLocks>>,
    held: Vec<(Arc<MetadataLock>, MetadataMode)>,
}

/// What came of an attempt to get a lock.
enum Got {
    /// It was there, in this mode or a stronger one.
    Had,
    /// It was held in this weaker mode before, or not at all.
    New(Option<MetadataMode>),
    Nothing,
}

impl HeldLocks {
    pub(crate) fn new(locks: Arc<MetadataLocks>, session: Option<Arc<SessionLocks>>) -> HeldLocks {
        let owner = session.as_ref().map_or_else(|| locks.new_owner(), |session| locks.new_owner_beside(session.owner()));
        HeldLocks { locks, owner, session, held: Vec::new() }
    }

    /// Error 1099 if the session has it, and not in a mode that is enough.
    fn holds(&self, lock: &Arc<MetadataLock>, mode: MetadataMode) -> Result<bool, MySqlError> {
        if self.held.iter().any(|(held, as_what)| Arc::ptr_eq(held, lock) && as_what.covers(mode)) {
            return Ok(true);
        }
        self.session.as_ref().map_or(Ok(false), |session| session.covers(lock, mode))
    }

    /// Waits for a lock that is not held, or in a weaker mode: which one is returned.
    pub(crate) async fn acquire(
        &mut self,
        lock: &Arc<MetadataLock>,
        mode: MetadataMode,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<MetadataMode>, MySqlError> {
        self.locks.acquire(self.owner, lock, mode, timeout, interrupt).await?;
        Ok(self.note(lock, mode))
    }

    /// The mode in which it was held before.
    fn note(&mut self, lock: &Arc<MetadataLock>, mode: MetadataMode) -> Option<MetadataMode> {
        if let Some((_, held)) = self.held.iter_mut().find(|(held, _)| Arc::ptr_eq(held, lock)) {
            return Some(std::mem::replace(held, mode));
        }
        self.held.push((lock.clone(), mode));
        None
    }

    fn try_acquire(&mut self, lock: &Arc<MetadataLock>, mode: MetadataMode) -> Result<Got, MySqlError> {
        if self.holds(lock, mode)? {
            return Ok(Got::Had);
        }
        if !self.locks.try_acquire(self.owner, lock, mode) {
            return Ok(Got::Nothing);
        }
        Ok(Got::New(self.note(lock, mode)))
    }

    /// The schemas against being dropped, then exclusive locks on the tables, in an order that all DDL shares.
    pub(crate) async fn acquire_tables(
        &mut self,
        mut tables: Vec<Name>,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), MySqlError> {
        tables.sort();
        tables.dedup();
        let mut schemas: Vec<_> = tables.iter().map(|(schema, _)| schema.clone()).collect();
        schemas.dedup();
        for schema in schemas {
            let lock = self.locks.lock_of(&schema, "");
            if !self.holds(&lock, MetadataMode::Read)? {
                self.acquire(&lock, MetadataMode::Read, timeout, interrupt).await?;
            }
        }
        self.acquire_exclusive(tables, timeout, interrupt).await
    }

    /// Exclusive locks on distinct names.
    pub(crate) async fn acquire_exclusive(
        &mut self,
        names: Vec<Name>,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), MySqlError> {
        let mut wanted = Vec::with_capacity(names.len());
        for (schema, table) in &names {
            let lock = self.locks.lock_of(schema, table);
            if !self.holds(&lock, MetadataMode::Exclusive)? {
                wanted.push((lock, MetadataMode::Exclusive));
            }
        }
        self.locks.acquire_all(self.owner, &wanted, timeout, interrupt).await?;
        for (lock, mode) in wanted {
            self.note(&lock, mode);
        }
        Ok(())
    }

    /// Others may do beside the exclusive locks of tables what this mode lets them. Locks of the session stay.
    pub(crate) fn weaken(&mut self, mode: MetadataMode) {
        for (lock, held) in self.held.iter_mut().filter(|(_, held)| *held == MetadataMode::Exclusive && mode != MetadataMode::Exclusive) {
            self.locks.give_back(self.owner, lock, Some(mode));
            *held = mode;
        }
    }

    /// What `weaken` made of the locks is exclusive again. Errors: 1205, 1213, 1317.
    pub(crate) async fn strengthen(&mut self, cx: &DdlContext, mode: MetadataMode) -> Result<(), MySqlError> {
        let weak = self.held.iter().filter(|(_, held)| *held == mode && mode != MetadataMode::Exclusive);
        let wanted: Vec<_> = weak.map(|(lock, _)| (lock.clone(), MetadataMode::Exclusive)).collect();
        cx.progress.enter(Stage::WaitingForMetadataLock, 0);
        self.locks.acquire_all(self.owner, &wanted, cx.lock_wait_timeout, &cx.interrupt).await?;
        for (lock, mode) in wanted {
            self.note(&lock, mode);
        }
        Ok(())
    }

    /// The tables that it may have changed.
    fn changed(&self) -> Vec<Name> {
        self.locks.names_of(|lock| self.held.iter().any(|(held, mode)| Arc::ptr_eq(held, lock) && mode.covers(MetadataMode::Write)))
    }

    /// Of an earlier life: the locks of tables that nobody else has yet.
    pub(crate) fn restored(locks: &Arc<MetadataLocks>, tables: &[ChangedTable]) -> HeldLocks {
        let mut held = HeldLocks::new(locks.clone(), None);
        for ChangedTable { schema, table, .. } in tables {
            let got = held.try_acquire(&locks.lock_of(schema, table), MetadataMode::Write);
            debug_assert!(matches!(got, Ok(Got::New(None))), "nobody has it but those who change it");
        }
        held
    }

    /// A lock that was acquired is held again as it was before.
    fn give_back(&mut self, lock: &Arc<MetadataLock>, before: Option<MetadataMode>) {
        let at = self.held.iter().position(|(held, _)| Arc::ptr_eq(held, lock)).expect("what is given back was acquired");
        match before {
            Some(mode) => self.held[at].1 = mode,
            None => drop(self.held.remove(at)),
        }
        self.locks.give_back(self.owner, lock, before);
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        while let Some((lock, _)) = self.held.pop() {
            self.locks.release(self.owner, &lock);
        }
    }
}
