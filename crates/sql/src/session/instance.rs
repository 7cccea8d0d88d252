//! What all sessions of one server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use highkey_table::Database;
use highkey_types::MySqlError;
use parking_lot::RwLock;
use tokio::sync::watch;

use super::process::{ProcessEntry, ProcessList};
use super::status::{Status, StatusCounter};
use crate::variables::{Settings, Values};

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

/// The server behind all sessions: database, global variables, process list, counters, accounts.
pub struct Instance {
    database: Arc<Database>,
    /// Global values. Sessions start with a clone of the `Arc`; a change makes a new one.
    globals: RwLock<Arc<Values>>,
    processes: ProcessList,
    status: Status,
    started: Instant,
    shutdown: watch::Sender<bool>,
    pub(crate) globals_version: AtomicU64,
}

impl Instance {
    /// `settings` are the values from the command line and the configuration file.
    pub fn new(database: Arc<Database>, settings: &Settings) -> Arc<Instance> {
        Arc::new(Instance {
            database,
            globals: RwLock::new(Arc::new(settings.values().clone())),
            processes: ProcessList::default(),
            status: Status::default(),
            started: Instant::now(),
            shutdown: watch::channel(false).0,
            globals_version: AtomicU64::new(0),
        })
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
        let answer = change(Arc::make_mut(&mut globals));
        self.globals_version.fetch_add(1, Ordering::Release);
        answer
    }

    /// A global variable's numeric value, 0 if it has none: `global_u64("max_connections")`.
    pub fn global_u64(&self, name: &str) -> u64 {
        self.globals.read().u64(name)
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

    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Adds to a counter: `instance.count(StatusCounter::BytesSent, n)`.
    pub fn count(&self, counter: StatusCounter, n: u64) {
        self.status.add(counter, n);
    }

    pub fn uptime_seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// The most specific account for a user at a client host (`127.0.0.1`, `localhost`, …).
    pub fn account(&self, user: &str, host: &str) -> Option<Account> {
        super::accounts::find(&self.database, user, host)
    }

    /// All accounts.
    pub fn accounts(&self) -> Vec<Account> {
        super::accounts::all(&self.database)
    }

    /// Creates root@localhost without a password if there is no account at all; true if it did, so that the server can warn.
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
