//! What all sessions of one server share.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime};

use highkey_table::{Database, DeadlockReport, SemiSyncSettings};
use highkey_types::MySqlError;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore, watch};

use super::admission::Admission;
use super::digests::Digests;
use super::process::{ProcessEntry, ProcessList};
use super::status::{Status, StatusCounter};
use super::table_exprs::TableExprCache;
use super::tls::ServerTls;
use super::user_locks::UserLocks;
use crate::df::{EngineOptions, QueryEngine};
use crate::information_schema;
use crate::replica::ReplicaControl;
use crate::variables::{self, Settings, Values, VarValue};

/// Queries have at least this much memory, whatever `parallel_memory_limit` says.
const LEAST_QUERY_MEMORY: u64 = 16 << 20;

/// Operators of the queries that sessions keep planned (`execute::KeptQueries`): with the plans some hundred megabytes at most.
const KEPT_OPERATORS: usize = 10_000;

/// An account as authentication needs it.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: String,
    pub host: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    pub authentication_string: Vec<u8>,
    pub password_expired: bool,
    pub locked: bool,
}

/// What a replica has said of itself.
#[derive(Clone, Debug)]
pub struct Replica {
    pub server_id: u32,
    pub host: String,
    pub port: u16,
    pub uuid: String,
}

/// `innodb_autoinc_lock_mode`: which statements take a table's AUTO-INC lock to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AutoIncrementLocking {
    /// 0: all that insert. They get no more numbers than they have rows.
    Traditional,
    /// 1: those of which nobody knows beforehand how many rows they insert, and the others while somebody has it.
    Consecutive,
    /// 2: none.
    Interleaved,
}

impl AutoIncrementLocking {
    fn of(mode: u64) -> AutoIncrementLocking {
        match mode {
            0 => AutoIncrementLocking::Traditional,
            1 => AutoIncrementLocking::Consecutive,
            _ => AutoIncrementLocking::Interleaved,
        }
    }
}

/// The server behind all sessions: database, global variables, process list, counters, accounts.
pub struct Instance {
    database: Arc<Database>,
    /// Global values. Sessions start with a clone of the `Arc`; a change makes a new one.
    globals: RwLock<Arc<Values>>,
    processes: ProcessList,
    /// What no connection counts, and what those that have gone had counted.
    status: Status,
    max_used_at: Mutex<SystemTime>,
    status_flushed: Mutex<Instant>,
    started: Instant,
    started_at: SystemTime,
    shutdown: watch::Sender<bool>,
    queries: Arc<QueryEngine>,
    user_locks: Arc<UserLocks>,
    exprs: TableExprCache,
    admission: Admission,
    auto_increment_locking: AutoIncrementLocking,
    prepared_statements: AtomicU64,
    plan_room: Arc<Semaphore>,
    digests: Digests,
    /// Statements that are kept of each connection.
    history_size: usize,
    /// Replicas that read the binary log, by connection.
    replicas: Mutex<BTreeMap<u64, Replica>>,
    /// The latest deadlock, as SHOW ENGINE INNODB STATUS shows it.
    last_deadlock: Mutex<Option<String>>,
    /// Likewise the latest statement that a foreign key has refused.
    last_foreign_key_error: Mutex<Option<String>>,
    /// Said when events are other ones, or are to run or not to.
    event_changes: Notify,
    /// The server's replica, once it is there.
    replica: OnceLock<Arc<dyn ReplicaControl>>,
    tls: OnceLock<ServerTls>,
    password_key: OnceLock<String>,
}

impl Instance {
    /// `settings` are the values from the command line and the configuration file.
    /// Fails if the directory for spilled queries (`#highkey_tmp` in the data directory) cannot be made.
    pub fn new(database: Arc<Database>, settings: &Settings) -> std::io::Result<Arc<Instance>> {
        let datadir = settings.datadir();
        let spill_dir = if datadir.as_os_str().is_empty() {
            std::env::temp_dir().join(format!("highkey-{}-{:x}", std::process::id(), rand::random::<u32>()))
        } else {
            datadir.join("#highkey_tmp")
        };
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let queries = QueryEngine::new(EngineOptions {
            threads,
            memory_bytes: settings.u64("parallel_memory_limit").max(LEAST_QUERY_MEMORY) as usize,
            temp_bytes: settings.u64("highkey_temp_space_limit"),
            column_cache_bytes: settings.u64("highkey_column_cache_size") as usize,
            spill_dir,
        })?;
        let mut settings = settings.clone();
        settings.set_internal("server_uuid", &database.server_uuid().to_string());
        if database.binlog().is_none() {
            settings.set_internal("log_bin", "OFF");
        } else {
            let path = |name: &str| datadir.join(name).display().to_string();
            settings.set_internal("log_bin_basename", &path("binlog"));
            settings.set_internal("log_bin_index", &path("binlog.index"));
        }
        let instance = Arc::new(Instance {
            database,
            globals: RwLock::new(Arc::new(settings.values().clone())),
            processes: ProcessList::default(),
            status: Status::default(),
            max_used_at: Mutex::new(SystemTime::now()),
            status_flushed: Mutex::new(Instant::now()),
            started: Instant::now(),
            started_at: SystemTime::now(),
            shutdown: watch::channel(false).0,
            queries,
            user_locks: Arc::default(),
            exprs: TableExprCache::default(),
            admission: Admission::default(),
            auto_increment_locking: AutoIncrementLocking::of(settings.u64("innodb_autoinc_lock_mode")),
            prepared_statements: AtomicU64::new(0),
            plan_room: Arc::new(Semaphore::new(KEPT_OPERATORS)),
            digests: Digests::new(settings.u64("performance_schema_digests_size")),
            history_size: settings.u64("performance_schema_events_statements_history_size") as usize,
            replicas: Mutex::default(),
            last_deadlock: Mutex::default(),
            last_foreign_key_error: Mutex::default(),
            event_changes: Notify::new(),
            replica: OnceLock::new(),
            tls: OnceLock::new(),
            password_key: OnceLock::new(),
        });
        instance.admission.set_limit(settings.u64("innodb_thread_concurrency") as usize);
        instance.database.engine().set_spin_wait_delay(settings.u64("innodb_spin_wait_delay") as u32);
        // Who waits for a replica must not keep those who serve it from running.
        instance.database.engine().on_blocking(Box::new(|wait| super::state::blocking(wait)));
        instance.apply_semi_sync();
        let told = Arc::downgrade(&instance);
        instance.database.engine().watch_deadlocks(Box::new(move |deadlock| {
            if let Some(instance) = told.upgrade() {
                instance.note_deadlock(deadlock);
            }
        }));
        Ok(instance)
    }

    /// Which statements take a table's AUTO-INC lock.
    pub(crate) fn auto_increment_locking(&self) -> AutoIncrementLocking {
        self.auto_increment_locking
    }

    /// What is left of `sql_slave_skip_counter`.
    pub fn set_skip_counter(&self, left: u64) {
        let id = variables::find("sql_slave_skip_counter").expect("a variable of the table");
        self.update_globals(|values| values.set(id, VarValue::UInt(left)));
    }

    /// What `rpl_semi_sync_source_*` say now.
    pub(crate) fn apply_semi_sync(&self) {
        let Some(binlog) = self.database.binlog() else { return };
        let globals = self.globals();
        binlog.semi_sync().set(SemiSyncSettings {
            enabled: globals.bool("rpl_semi_sync_source_enabled"),
            timeout: Duration::from_millis(globals.u64("rpl_semi_sync_source_timeout")),
            replicas: globals.u64("rpl_semi_sync_source_wait_for_replica_count") as usize,
            after_sync: globals.text("rpl_semi_sync_source_wait_point") == "AFTER_SYNC",
            wait_no_replica: globals.bool("rpl_semi_sync_source_wait_no_replica"),
        });
    }

    fn note_deadlock(&self, deadlock: &DeadlockReport) {
        let text = information_schema::deadlock_text(self, deadlock);
        if self.globals().bool("innodb_print_all_deadlocks") {
            tracing::warn!("transactions deadlock detected\n{text}");
        }
        *self.last_deadlock.lock() = Some(text);
    }

    pub(crate) fn last_deadlock(&self) -> Option<String> {
        self.last_deadlock.lock().clone()
    }

    /// A statement of this connection ends with error 1451 or 1452.
    pub(crate) fn note_foreign_key_error(&self, process: &ProcessEntry, error: &MySqlError) {
        let text = information_schema::foreign_key_text(self, process, error);
        *self.last_foreign_key_error.lock() = Some(text);
    }

    pub(crate) fn last_foreign_key_error(&self) -> Option<String> {
        self.last_foreign_key_error.lock().clone()
    }

    pub(crate) fn queries(&self) -> &Arc<QueryEngine> {
        &self.queries
    }

    pub(crate) fn user_locks(&self) -> &Arc<UserLocks> {
        &self.user_locks
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    pub(crate) fn exprs(&self) -> &TableExprCache {
        &self.exprs
    }

    /// Prepared statements of all sessions.
    pub(crate) fn prepared_statements(&self) -> &AtomicU64 {
        &self.prepared_statements
    }

    /// What a query that a session keeps planned has a permit of for each of its operators.
    pub(crate) fn plan_room(&self) -> &Arc<Semaphore> {
        &self.plan_room
    }

    /// What statements cost, by digest.
    pub(crate) fn digests(&self) -> &Digests {
        &self.digests
    }

    /// Of each connection so many statements are kept that have ended.
    pub(crate) fn history_size(&self) -> usize {
        self.history_size
    }

    /// From the start of the server to a moment.
    pub(crate) fn since_start(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.started)
    }

    pub(crate) fn replicas(&self) -> &Mutex<BTreeMap<u64, Replica>> {
        &self.replicas
    }

    /// Where statements about the replica go; a server sets it once, before the first session.
    pub fn set_replica(&self, replica: Arc<dyn ReplicaControl>) {
        let _ = self.replica.set(replica);
    }

    pub(crate) fn replica(&self) -> Option<Arc<dyn ReplicaControl>> {
        self.replica.get().cloned()
    }

    /// The server takes TLS connections; set once, before the first session.
    pub fn set_tls(&self, tls: ServerTls) {
        let _ = self.tls.set(tls);
    }

    pub(crate) fn tls(&self) -> Option<&ServerTls> {
        self.tls.get()
    }

    /// The public key, in PEM, by which clients send passwords on plain connections: once there is one.
    pub fn set_password_key(&self, pem: &str) {
        self.password_key.get_or_init(|| pem.to_owned());
    }

    pub(crate) fn password_key(&self) -> Option<&str> {
        self.password_key.get().map(String::as_str)
    }

    /// A client has sent attributes of its connection of so many bytes.
    pub fn note_connect_attributes(&self, bytes: u64) {
        self.status.max(StatusCounter::ConnectAttributesLongest, bytes);
    }

    /// What the scheduler of events waits for, who is alone with it.
    pub(crate) fn event_changes(&self) -> &Notify {
        &self.event_changes
    }

    /// Enters the scheduler of events into the process list.
    pub(crate) fn register_daemon(&self, user: &str) -> Arc<ProcessEntry> {
        self.processes.register_daemon(self.next_connection_id(), user)
    }

    pub(crate) fn started_at(&self) -> SystemTime {
        self.started_at
    }

    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The current global values.
    pub fn globals(&self) -> Arc<Values> {
        self.globals.read().clone()
    }

    /// Changes global values; sessions that exist keep theirs.
    pub(crate) fn update_globals<T>(&self, change: impl FnOnce(&mut Values) -> T) -> T {
        let mut globals = self.globals.write();
        change(Arc::make_mut(&mut globals))
    }

    /// A global variable's numeric value, 0 if it has none: `global_u64("max_connections")`.
    pub fn global_u64(&self, name: &str) -> u64 {
        self.globals.read().u64(name)
    }

    /// What queries may use, as the global variables have it now.
    pub fn limit_queries(&self) {
        // Until they are set nobody changes them: whoever comes later would put old ones back.
        let globals = self.globals.read();
        let (memory, temp) = (globals.u64("parallel_memory_limit"), globals.u64("highkey_temp_space_limit"));
        self.queries.set_limits(memory.max(LEAST_QUERY_MEMORY) as usize, temp);
        self.queries.give_way().set_limit(globals.u64("highkey_session_delay_limit"));
    }

    /// A global variable's text, empty for NULL.
    pub fn global_text(&self, name: &str) -> String {
        self.globals.read().text(name)
    }

    pub fn processes(&self) -> &ProcessList {
        &self.processes
    }

    /// A fresh connection id, for the handshake packet; pass it to `Session::new`.
    pub fn next_connection_id(&self) -> u64 {
        self.processes.next_id()
    }

    /// The process entry of a live connection.
    pub fn process(&self, id: u64) -> Option<Arc<ProcessEntry>> {
        self.processes.get(id)
    }

    /// Adds to a counter where there is no connection to count it: `instance.count(StatusCounter::AbortedConnects, 1)`.
    pub fn count(&self, counter: StatusCounter, n: u64) {
        self.status.add(counter, n);
    }

    /// What all connections have counted, those that have gone too.
    pub fn counted(&self, counter: StatusCounter) -> u64 {
        self.processes.counted_one(counter, &self.status)
    }

    /// All counters as `counted` has them.
    pub(crate) fn all_counted(&self) -> Status {
        self.processes.counted(&self.status)
    }

    /// A connection has been entered into the process list.
    pub(crate) fn note_connected(&self) {
        if self.status.max(StatusCounter::MaxUsedConnections, self.processes.len() as u64) {
            *self.max_used_at.lock() = SystemTime::now();
        }
    }

    /// Takes a connection out of the process list; what it has counted stays.
    pub(crate) fn forget_connection(&self, id: u64) {
        self.processes.remove(id, &self.status);
    }

    /// Takes what is no connection out of it.
    pub(crate) fn forget_daemon(&self, id: u64) {
        self.processes.remove_daemon(id, &self.status);
    }

    /// FLUSH STATUS by a connection: its counters begin anew, the server's sums stay.
    pub(crate) fn flush_status(&self, process: &ProcessEntry) {
        self.processes.give_counts(process, &self.status);
        self.status.set(StatusCounter::MaxUsedConnections, self.processes.len() as u64);
        *self.max_used_at.lock() = SystemTime::now();
        *self.status_flushed.lock() = Instant::now();
    }

    /// When there were as many connections as `Max_used_connections` says.
    pub(crate) fn max_used_at(&self) -> SystemTime {
        *self.max_used_at.lock()
    }

    /// Since FLUSH STATUS, or the start.
    pub(crate) fn seconds_since_flush(&self) -> u64 {
        self.status_flushed.lock().elapsed().as_secs()
    }

    pub fn uptime_seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// The most specific account for a user at a client host (`127.0.0.1`, `localhost`, …).
    pub fn account(&self, user: &str, host: &str) -> Option<Account> {
        super::accounts::find(&self.database, user, host)
    }

    /// The account that a client acts as who has logged in as `account`, if it is another one: PROXY has been granted to it, and `check_proxy_users` and
    /// `mysql_native_password_proxy_users` are ON. The other plugin knows of no proxies.
    pub fn proxied_account(&self, account: &Account, host: &str) -> Option<Account> {
        let globals = self.globals();
        let maps = account.plugin == "mysql_native_password" && globals.bool("check_proxy_users") && globals.bool("mysql_native_password_proxy_users");
        if maps { super::accounts::find_proxied(&self.database, &account.user, host) } else { None }
    }

    /// Creates root@localhost without a password if there is no account at all. True while root has no password, so that the server can warn.
    pub async fn bootstrap_root(&self) -> Result<bool, MySqlError> {
        super::accounts::bootstrap_root(&self.database).await
    }

    /// Asks for a shutdown, as SHUTDOWN does.
    pub fn request_shutdown(&self) {
        self.shutdown.send_replace(true);
    }

    /// Becomes true when SHUTDOWN was executed.
    pub fn shutdown_requested(&self) -> watch::Receiver<bool> {
        self.shutdown.subscribe()
    }
}
