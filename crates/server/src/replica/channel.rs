//! The channel's state that its receiver, its applier and the statements about it share.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highkey_sql::Instance;
use highkey_sql::replica::{ReplicaFailure, ReplicaStatus, ReplicaTransaction, ReplicaWorker, ThreadState};
use highkey_types::MySqlError;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::gtid::Gtids;
use super::position::Position;
use super::receiver::Queue;
use super::settings::{Settings, Until};

/// Microseconds since 1970.
pub fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)
}

/// The name of the catalog's record of the settings.
pub const SETTINGS_RECORD: &[u8] = b"settings";
/// The name of the catalog's record of the position as a statement has set it. Those of workers start with it.
pub const POSITION_RECORD: &[u8] = b"position";

/// The name of a worker's record of the position. Each has its own, so that none waits for another one's commit.
pub fn worker_record(worker: usize) -> Vec<u8> {
    format!("position {worker}").into_bytes()
}

/// One source. A server has at most one; MySQL calls it the default channel.
pub struct Channel {
    instance: Arc<Instance>,
    state: Mutex<State>,
    /// The applier's queue while there is an applier.
    queue: watch::Sender<Option<Queue>>,
    /// The number of the applied position, for whoever waits for a transaction.
    applied_number: watch::Sender<u64>,
}

struct State {
    settings: Settings,
    /// What is durable.
    applied: Position,
    /// The end of the last whole transaction in the queue.
    received: Position,
    /// The end of the last event read.
    read: (String, u64),
    until: Until,
    status: ReplicaStatus,
    /// When the source ran what each worker applies, microseconds since 1970; 0: nothing.
    applying_since: Vec<i64>,
}

impl Channel {
    pub fn new(instance: Arc<Instance>, settings: Settings, applied: Position) -> Arc<Channel> {
        let applied_number = watch::channel(applied.number).0;
        let state = State {
            settings,
            read: (applied.file.clone(), applied.offset),
            received: applied.clone(),
            applied,
            until: Until::Never,
            status: ReplicaStatus::default(),
            applying_since: Vec::new(),
        };
        Arc::new(Channel { instance, state: Mutex::new(state), queue: watch::channel(None).0, applied_number })
    }

    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    pub fn settings(&self) -> Settings {
        self.state.lock().settings.clone()
    }

    pub fn applied(&self) -> Position {
        self.state.lock().applied.clone()
    }

    pub fn server_id(&self) -> u64 {
        self.instance.global_u64("server_id")
    }

    pub fn server_uuid(&self) -> String {
        self.instance.global_text("server_uuid")
    }

    /// Whether transactions are acknowledged to the source.
    pub fn is_semi_sync(&self) -> bool {
        self.instance.globals().bool("rpl_semi_sync_replica_enabled")
    }

    /// Follows the number of the last transaction that is applied, as is every one before it.
    pub fn applied_number(&self) -> watch::Receiver<u64> {
        self.applied_number.subscribe()
    }

    /// Returns when everything that is applied is on the disk. It is already, unless `innodb_flush_log_at_trx_commit` has let commits go before.
    pub async fn make_durable(&self) -> Result<(), MySqlError> {
        let database = self.instance.database().clone();
        if database.engine().commits_are_durable() {
            return Ok(());
        }
        let flushed = tokio::task::spawn_blocking(move || database.engine().flush_log().map_err(|e| e.to_string())).await;
        flushed.unwrap_or_else(|e| Err(e.to_string())).map_err(|e| MySqlError::with_message(1815, format!("Internal error: {e}")))
    }

    /// What has been executed here, by whomever, as our own binary log tells, up to this moment; `None`: it does not tell of what is applied.
    pub fn executed(&self) -> Option<Gtids> {
        let binlog = self.instance.database().binlog().filter(|_| self.instance.globals().bool("log_slave_updates"))?;
        if let Err(e) = binlog.catch_up() {
            tracing::warn!("the binary log cannot be brought up to date: {}", e.message);
        }
        Some(binlog.executed().into())
    }

    /// How long the source may be silent.
    pub fn net_timeout(&self) -> Duration {
        Duration::from_secs(self.instance.global_u64("slave_net_timeout").max(1))
    }

    /// Seconds between heartbeats.
    pub fn heartbeat_period(&self, settings: &Settings) -> f64 {
        settings.heartbeat_period.unwrap_or_else(|| self.net_timeout().as_secs_f64() / 2.0)
    }

    /// Other settings and another position, while no thread runs.
    pub fn replace(&self, settings: Settings, position: Position) {
        let mut state = self.state.lock();
        state.settings = settings;
        state.read = (position.file.clone(), position.offset);
        state.received = position.clone();
        self.applied_number.send_replace(position.number);
        state.applied = position;
    }

    /// Other settings that running threads see when they look next.
    pub fn replace_settings(&self, settings: Settings) {
        self.state.lock().settings = settings;
    }

    /// Forgets what the threads noted: errors, the source's identity, counters.
    pub fn forget_status(&self) {
        self.state.lock().status = ReplicaStatus::default();
    }

    /// A new applier's queue: reading starts again at what is applied.
    pub fn offer_queue(&self, queue: Queue, until: Until) {
        let mut state = self.state.lock();
        state.received = state.applied.clone();
        state.until = until;
        self.queue.send_replace(Some(queue));
    }

    /// Waits for a queue.
    pub async fn queue(&self) -> Queue {
        let mut queues = self.queue.subscribe();
        loop {
            if let Some(queue) = queues.borrow_and_update().clone() {
                return queue;
            }
            // The sender is ours.
            let _ = queues.changed().await;
        }
    }

    /// The applier of this queue has ended.
    pub fn forget_queue(&self, queue: &Queue) {
        self.queue.send_if_modified(|present| {
            let ours = present.as_ref().is_some_and(|present| present.same(queue));
            if ours {
                *present = None;
            }
            ours
        });
    }

    // The receiver.

    /// Where the next connection starts.
    pub fn received(&self) -> Position {
        self.state.lock().received.clone()
    }

    /// How far the receiver has read for `queue`, and the transaction that begins there. Of a queue whose applier has ended nothing is noted: its successor reads that again.
    pub fn note_read(&self, queue: &Queue, position: &Position, begun: Option<ReplicaTransaction>, whole: bool) {
        let mut state = self.state.lock();
        if !self.queue.borrow().as_ref().is_some_and(|present| present.same(queue)) {
            return;
        }
        if state.read.0 != position.file {
            state.read.0.clone_from(&position.file);
        }
        state.read.1 = position.offset;
        if begun.is_some() || whole {
            let status = &mut state.status;
            if whole && status.queueing.started_micros > 0 {
                status.last_queued = status.queueing.end(now_micros());
            }
            status.queueing = begun.unwrap_or_default();
        }
        if whole {
            state.received = position.clone();
        }
    }

    pub fn note_heartbeat(&self, at: i64) {
        let status = &mut self.state.lock().status;
        status.heartbeats += 1;
        status.last_heartbeat_micros = at;
    }

    pub fn note_source(&self, id: u64, uuid: &str) {
        let status = &mut self.state.lock().status;
        status.source_id = id;
        status.source_uuid = uuid.into();
    }

    pub fn receiver_state(&self, words: &str) {
        self.state.lock().status.receiver_state = words.into();
    }

    pub fn receiver_started(&self, process: u64) {
        let status = &mut self.state.lock().status;
        status.receiver = ThreadState::Connecting;
        status.receiver_thread = process;
        status.receiver_failure = ReplicaFailure::default();
    }

    /// `semi_sync`: it acknowledges what the source waits for.
    pub fn receiver_connected(&self, semi_sync: bool) {
        let status = &mut self.state.lock().status;
        status.receiver = ThreadState::Yes;
        status.semi_sync = semi_sync;
        status.receiver_failure = ReplicaFailure::default();
        status.receiver_state = "Waiting for master to send event".into();
    }

    /// The connection is gone, and there is no other before an applier comes.
    pub fn receiver_waits(&self) {
        self.state.lock().status.semi_sync = false;
    }

    pub fn receiver_connecting(&self, number: u16, message: String) {
        let status = &mut self.state.lock().status;
        tracing::warn!("replica: {message}");
        status.receiver = ThreadState::Connecting;
        status.semi_sync = false;
        status.receiver_state = "Reconnecting after a failed master event read".into();
        status.receiver_failure = ReplicaFailure { number, message, at_micros: now_micros() };
    }

    pub fn receiver_failed(&self, number: u16, message: String) {
        tracing::error!("replica: the receiver stops: {message}");
        self.state.lock().status.receiver_failure = ReplicaFailure { number, message, at_micros: now_micros() };
    }

    pub fn receiver_stopped(&self) {
        let status = &mut self.state.lock().status;
        status.receiver = ThreadState::No;
        status.queueing = ReplicaTransaction::default();
        status.semi_sync = false;
        status.receiver_state = String::new();
    }

    // The applier.

    pub fn until(&self) -> Until {
        self.state.lock().until.clone()
    }

    /// `threads`: the workers' connection ids.
    pub fn applier_started(&self, threads: impl Iterator<Item = u64>) {
        let mut state = self.state.lock();
        let status = &mut state.status;
        status.applier = ThreadState::Yes;
        status.applier_failure = ReplicaFailure::default();
        status.applier_state = "Slave has read all relay log; waiting for more updates".into();
        status.workers = threads.map(|thread| ReplicaWorker { thread, ..ReplicaWorker::default() }).collect();
        state.applying_since = vec![0; state.status.workers.len()];
    }

    /// A transaction is given to a worker from here on.
    pub fn note_processing(&self, transaction: ReplicaTransaction) {
        self.state.lock().status.processing = transaction;
    }

    /// All of it is given.
    pub fn note_processed(&self) {
        let status = &mut self.state.lock().status;
        status.last_processed = status.processing.end(now_micros());
    }

    /// A worker starts a transaction that the source ran at that time, in seconds since 1970.
    pub fn worker_started(&self, worker: usize, transaction: ReplicaTransaction, timestamp: u32) {
        let mut state = self.state.lock();
        state.applying_since[worker] = i64::from(timestamp) * 1_000_000;
        state.status.workers[worker].applying = ReplicaTransaction { started_micros: now_micros(), ..transaction };
    }

    /// A worker has applied its transaction.
    pub fn worker_rests(&self, worker: usize) {
        let mut state = self.state.lock();
        state.applying_since[worker] = 0;
        let worker = &mut state.status.workers[worker];
        worker.last_applied = worker.applying.end(now_micros());
    }

    /// All transactions up to there are durable.
    pub fn note_applied(&self, position: &Position) {
        self.state.lock().applied.clone_from(position);
        self.applied_number.send_replace(position.number);
    }

    pub fn note_delay(&self, remaining: Option<u64>) {
        self.state.lock().status.remaining_delay = remaining;
    }

    pub fn note_retry(&self) {
        self.state.lock().status.retries += 1;
    }

    pub fn applier_failed(&self, number: u16, message: String) {
        tracing::error!("replica: the applier stops: {message}");
        self.state.lock().status.applier_failure = ReplicaFailure { number, message, at_micros: now_micros() };
    }

    pub fn applier_stopped(&self) {
        let mut state = self.state.lock();
        state.applying_since.fill(0);
        let status = &mut state.status;
        status.applier = ThreadState::No;
        status.applier_state = String::new();
        status.remaining_delay = None;
        status.processing = ReplicaTransaction::default();
        status.workers.iter_mut().for_each(|worker| worker.applying = ReplicaTransaction::default());
    }

    /// What SHOW REPLICA STATUS shows.
    pub fn status(&self) -> ReplicaStatus {
        let state = self.state.lock();
        let settings = state.settings.clone();
        let (until_condition, until_file, until_position) = state.until.shown();
        let running = state.status.applier == ThreadState::Yes;
        let oldest = state.applying_since.iter().copied().filter(|since| *since > 0).min();
        let seconds_behind = match (running, oldest) {
            (false, _) => None,
            // Nothing to apply: as far as the receiver is.
            (true, None) => (state.status.receiver == ThreadState::Yes).then_some(0),
            (true, Some(since)) => Some(((now_micros() - since) / 1_000_000).max(0) as u64),
        };
        ReplicaStatus {
            heartbeat_period: self.heartbeat_period(&settings),
            host: settings.host,
            user: settings.user,
            port: settings.port,
            bind: settings.bind,
            connect_retry: settings.connect_retry,
            retry_count: settings.retry_count,
            auto_position: settings.auto_position,
            delay: settings.delay,
            ssl: settings.ssl,
            ssl_ca: settings.ssl_ca,
            ssl_capath: settings.ssl_capath,
            ssl_cert: settings.ssl_cert,
            ssl_cipher: settings.ssl_cipher,
            ssl_key: settings.ssl_key,
            ssl_crl: settings.ssl_crl,
            ssl_crlpath: settings.ssl_crlpath,
            ssl_verify: settings.ssl_verify,
            tls_version: settings.tls_version,
            public_key_path: settings.public_key_path,
            get_public_key: settings.get_public_key,
            ignore_server_ids: settings.ignore_server_ids.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
            filters: settings.filters.shown(),
            read_file: state.read.0.clone(),
            read_position: state.read.1,
            applied_file: state.applied.file.clone(),
            applied_position: state.applied.offset,
            received_gtids: state.received.gtids.to_string(),
            applied_gtids: state.applied.gtids.to_string(),
            queued_bytes: self.queue.borrow().as_ref().map_or(0, Queue::bytes),
            seconds_behind,
            skip_counter: self.instance.global_u64("sql_slave_skip_counter"),
            until_condition: until_condition.into(),
            until_file,
            until_position,
            ..state.status.clone()
        }
    }
}
