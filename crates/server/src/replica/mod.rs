//! Highkey as a replica of MySQL or MariaDB. See `README.md`.
//!
//! - `receiver` reads the source's binary log over a connection (`source`, `login`, `tls`), `event` says what its events mean, `apply` gives transactions to `worker`s, which commit in
//!   the source's `order`.
//! - `channel` is the state that both share with the statements about it; `settings`, `filter`, `position` and `gtid` are its parts.
//! - [`Replica`] here does what CHANGE REPLICATION SOURCE, START, STOP and RESET REPLICA ask, and starts with the server.

mod apply;
mod channel;
mod event;
mod filter;
mod gtid;
mod login;
mod order;
mod position;
mod receiver;
mod settings;
mod source;
mod tls;
mod worker;

use std::sync::Arc;

use async_trait::async_trait;
use highkey_sql::Instance;
use highkey_sql::replica::{ReplicaAction, ReplicaControl, ReplicaFilter, ReplicaStatement, ReplicaStatus, ReplicaThreads, SourceOptions};
use highkey_types::{Level, MySqlError, Warning};
use parking_lot::RwLock;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tracing::{error, info};

use channel::{Channel, POSITION_RECORD, SETTINGS_RECORD, now_micros};
use position::Position;
use receiver::Queue;
use settings::{Settings, Until, fail};

/// The replica of this server: at most one source.
pub struct Replica {
    instance: Arc<Instance>,
    channel: RwLock<Option<Arc<Channel>>>,
    /// Held while a statement changes what runs.
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    receiver: Option<Thread>,
    applier: Option<Thread>,
}

/// One of the replica's two tasks.
struct Thread {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Thread {
    fn runs(thread: &Option<Thread>) -> bool {
        thread.as_ref().is_some_and(|thread| !thread.task.is_finished())
    }

    /// Waits for its end. False: it had ended already.
    async fn stop(thread: &mut Option<Thread>) -> bool {
        let Some(Thread { stop, task }) = thread.take() else { return false };
        let ran = !task.is_finished();
        stop.send_replace(true);
        if let Err(e) = task.await {
            error!("replica: {e}");
        }
        ran
    }
}

impl Replica {
    /// The replica as the catalog has it. Fails if its records do not decode.
    pub fn open(instance: Arc<Instance>) -> Result<Arc<Replica>, String> {
        let records = instance.database().replica_records().map_err(|e| e.message)?;
        let record = |name: &[u8]| records.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_slice());
        let channel = match record(SETTINGS_RECORD) {
            Some(settings) => {
                let position = positions(&records)?.into_iter().max_by_key(|position| position.number).unwrap_or_else(Position::start);
                let mut settings = Settings::decode(settings)?;
                settings.filters.apply_options(now_micros(), |name| instance.global_text(name));
                Some(Channel::new(instance.clone(), settings, position))
            }
            None => None,
        };
        Ok(Arc::new(Replica { instance, channel: RwLock::new(channel), threads: Mutex::default() }))
    }

    /// Starts both threads if there is a source: with the server, unless `skip_slave_start`.
    pub async fn start_with_server(&self) {
        let source = self.channel().is_ok_and(|channel| !channel.settings().host.is_empty());
        if source && self.instance.global_u64("skip_slave_start") == 0 {
            let both = ReplicaThreads { io: true, sql: true };
            if let Err(e) = self.start(both, &Vec::new(), &Vec::new()).await {
                error!("replica: {}", e.message);
            }
        }
    }

    /// Ends both threads, with the server. What a transaction has done so far is undone; it comes again.
    pub async fn shut_down(&self) {
        let mut threads = self.threads.lock().await;
        Thread::stop(&mut threads.receiver).await;
        Thread::stop(&mut threads.applier).await;
    }

    /// Error 1200 without a source.
    fn channel(&self) -> Result<Arc<Channel>, MySqlError> {
        let channel = self.channel.read().clone();
        channel.ok_or_else(|| fail(1200, "The server is not configured as slave; fix in config file or with CHANGE MASTER TO"))
    }

    /// Before anything is set.
    fn first_settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.filters.apply_options(now_micros(), |name| self.instance.global_text(name));
        settings
    }

    async fn change_source(&self, options: &SourceOptions) -> Result<Vec<Warning>, MySqlError> {
        let threads = self.threads.lock().await;
        let of_applier = |name: &str| matches!(name, "SOURCE_DELAY" | "RELAY_LOG_FILE" | "RELAY_LOG_POS" | "PRIVILEGE_CHECKS_USER" | "REQUIRE_ROW_FORMAT");
        let (receiver, applier) = (Thread::runs(&threads.receiver), Thread::runs(&threads.applier));
        // The applier's position is where the receiver starts: what changes it needs both at rest.
        let moves = options.iter().any(|(name, _)| matches!(name.as_str(), "SOURCE_HOST" | "SOURCE_PORT" | "SOURCE_LOG_FILE" | "SOURCE_LOG_POS" | "SOURCE_AUTO_POSITION" | "SOURCE_USE_GTID" | "GTID_EXECUTED"));
        if receiver && options.iter().any(|(name, _)| !of_applier(name)) {
            return Err(fail(3021, "This operation cannot be performed with a running slave io thread; run STOP SLAVE IO_THREAD FOR CHANNEL '' first."));
        }
        if applier && (moves || options.iter().any(|(name, _)| of_applier(name))) {
            return Err(fail(3017, "This operation cannot be performed with a running slave sql thread; run STOP SLAVE SQL_THREAD first"));
        }
        let known = self.channel.read().clone();
        let (before, position) = match &known {
            Some(channel) => (channel.settings(), channel.applied()),
            None => (self.first_settings(), Position::start()),
        };
        let (settings, moved, warnings) = before.change(&position, options)?;
        self.store(&settings, Some(&moved))?;
        match known {
            Some(channel) if moved == position => channel.replace_settings(settings),
            Some(channel) => channel.replace(settings, moved),
            None => *self.channel.write() = Some(Channel::new(self.instance.clone(), settings, moved)),
        }
        Ok(warnings)
    }

    async fn change_filter(&self, rules: &[(String, Vec<String>)]) -> Result<Vec<Warning>, MySqlError> {
        let threads = self.threads.lock().await;
        if Thread::runs(&threads.applier) {
            return Err(fail(3017, "This operation cannot be performed with a running slave sql thread; run STOP SLAVE SQL_THREAD first"));
        }
        let known = self.channel.read().clone();
        let mut settings = known.as_ref().map_or_else(|| self.first_settings(), |channel| channel.settings());
        for (rule, items) in rules {
            if !settings.filters.set(rule, items, now_micros()) {
                return Err(fail(1064, format!("{rule} is no replication filter")));
            }
        }
        self.store(&settings, None)?;
        match known {
            Some(channel) => channel.replace_settings(settings),
            None => *self.channel.write() = Some(Channel::new(self.instance.clone(), settings, Position::start())),
        }
        Ok(Vec::new())
    }

    /// Makes settings durable, and a position that a statement has set.
    fn store(&self, settings: &Settings, position: Option<&Position>) -> Result<(), MySqlError> {
        let database = self.instance.database();
        let mut records = vec![database.replica_record(SETTINGS_RECORD, settings.encode())];
        records.extend(position.map(|position| database.replica_record(POSITION_RECORD, position.encode())));
        database.change_replica_records(&records, &[])
    }

    async fn start(&self, wanted: ReplicaThreads, until: &SourceOptions, login: &SourceOptions) -> Result<Vec<Warning>, MySqlError> {
        let mut threads = self.threads.lock().await;
        let channel = self.channel()?;
        let until = Until::parse(until)?;
        let settings = channel.settings();
        if settings.host.is_empty() {
            return Err(fail(1200, "The server is not configured as slave; fix in config file or with CHANGE MASTER TO"));
        }
        let running = (Thread::runs(&threads.receiver), Thread::runs(&threads.applier));
        if (!wanted.io || running.0) && (!wanted.sql || running.1) {
            return Ok(vec![Warning { level: Level::Note, code: 3083, message: "Replication thread(s) for channel '' are already runnning.".into() }]);
        }
        if wanted.sql && !running.1 {
            Thread::stop(&mut threads.applier).await;
            let (queue, items) = Queue::new();
            channel.offer_queue(queue.clone(), until);
            let (stop, stopped) = watch::channel(false);
            let channel = channel.clone();
            let task = tokio::spawn(async move {
                let ended = tokio::spawn(apply::run(channel.clone(), items, stopped)).await;
                if let Err(e) = ended {
                    channel.applier_failed(1815, format!("Internal error: {e}"));
                }
                channel.forget_queue(&queue);
                channel.applier_stopped();
            });
            threads.applier = Some(Thread { stop, task });
            info!("replica: the applier has started at {}:{}", self.channel()?.applied().file, self.channel()?.applied().offset);
        }
        if wanted.io && !running.0 {
            Thread::stop(&mut threads.receiver).await;
            let mut login_settings = settings.clone();
            for (name, value) in login {
                match (name.as_str(), value.text()) {
                    ("USER", Some(text)) => login_settings.user = text.into(),
                    ("PASSWORD", Some(text)) => login_settings.password = text.into(),
                    _ => {}
                }
            }
            let (stop, stopped) = watch::channel(false);
            channel.receiver_started(self.instance.next_connection_id());
            let channel = channel.clone();
            let task = tokio::spawn(async move {
                let ended = tokio::spawn(receiver::run(channel.clone(), login_settings.user, login_settings.password, stopped)).await;
                if let Err(e) = ended {
                    channel.receiver_failed(1815, format!("Internal error: {e}"));
                }
                channel.receiver_stopped();
            });
            threads.receiver = Some(Thread { stop, task });
        }
        Ok(Vec::new())
    }

    async fn stop(&self, wanted: ReplicaThreads) -> Result<Vec<Warning>, MySqlError> {
        let mut threads = self.threads.lock().await;
        let mut ran = false;
        if wanted.io {
            ran |= Thread::stop(&mut threads.receiver).await;
        }
        if wanted.sql {
            ran |= Thread::stop(&mut threads.applier).await;
        }
        match ran {
            true => Ok(Vec::new()),
            false => Ok(vec![Warning { level: Level::Note, code: 3084, message: "Replication thread(s) for channel '' are already stopped.".into() }]),
        }
    }

    async fn reset(&self, all: bool) -> Result<Vec<Warning>, MySqlError> {
        let threads = self.threads.lock().await;
        if Thread::runs(&threads.receiver) || Thread::runs(&threads.applier) {
            return Err(fail(3081, "This operation cannot be performed with running replication threads; run STOP SLAVE FOR CHANNEL '' first"));
        }
        let Some(channel) = self.channel.read().clone() else { return Ok(Vec::new()) };
        if all {
            let database = self.instance.database();
            let records = database.replica_records()?;
            let names: Vec<&[u8]> = records.iter().map(|(name, _)| name.as_slice()).collect();
            database.change_replica_records(&[], &names)?;
            *self.channel.write() = None;
            return Ok(Vec::new());
        }
        // The transactions stay done: only the place in the source's files is forgotten.
        let applied = channel.applied();
        let position = Position { gtids: applied.gtids, number: applied.number + 1, ..Position::start() };
        self.store(&channel.settings(), Some(&position))?;
        channel.replace(channel.settings(), position);
        channel.forget_status();
        Ok(Vec::new())
    }
}

/// The positions of all records. The transactions behind them committed in the order of their numbers.
fn positions(records: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<Position>, String> {
    records.iter().filter(|(name, _)| name.starts_with(POSITION_RECORD)).map(|(_, value)| Position::decode(value)).collect()
}

#[async_trait]
impl ReplicaControl for Replica {
    async fn execute(&self, statement: &ReplicaStatement) -> Result<Vec<Warning>, MySqlError> {
        if let Some(name) = statement.channel.as_ref().filter(|name| !name.is_empty()) {
            return Err(fail(3074, format!("Slave channel '{name}' does not exist.")));
        }
        match &statement.action {
            ReplicaAction::ChangeSource(options) => self.change_source(options).await,
            ReplicaAction::ChangeFilter(rules) => self.change_filter(rules).await,
            ReplicaAction::Start { threads, until, login } => self.start(*threads, until, login).await,
            ReplicaAction::Stop(threads) => self.stop(*threads).await,
            ReplicaAction::Reset { all } => self.reset(*all).await,
        }
    }

    fn status(&self) -> Option<ReplicaStatus> {
        let channel = self.channel.read().clone()?;
        Some(channel.status()).filter(|status| !status.host.is_empty())
    }

    fn filters(&self) -> Vec<ReplicaFilter> {
        let channel = self.channel.read().clone();
        channel.map_or_else(|| self.first_settings(), |channel| channel.settings()).filters.rules()
    }
}
