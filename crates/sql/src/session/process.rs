//! The process list: one entry per connection, readable while the connection works, and the place a KILL arrives.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use highkey_table::{Interrupt, Progress, Stage, TxnActivity};
use highkey_types::{MySqlError, Value, errors};
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::Notify;

use super::error;
use super::history::{History, Kinds, add_kind};
use super::status::{Status, StatusCounter};
use crate::df::QueryActivity;

/// Why a running statement was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    None,
    /// KILL QUERY: the statement ends with 1317.
    Query,
    /// KILL CONNECTION: the connection ends.
    Connection,
    /// `max_execution_time` passed: 3024.
    Timeout,
}

/// Of so many users and hosts it is known how many connections they have made.
const MAX_ACCOUNTS: usize = 10_000;

/// So many bytes of a connection's attributes are kept, as MySQL does unless it is told otherwise.
const ATTRIBUTES_MAX: usize = 512;

/// A client's host without its port.
pub fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// What SHOW PROCESSLIST shows of a connection.
#[derive(Clone, Debug)]
pub struct ProcessSnapshot {
    pub id: u64,
    pub user: String,
    pub host: String,
    pub db: Option<String>,
    pub command: &'static str,
    /// How long it has done what it does.
    pub elapsed: Duration,
    pub seconds: u64,
    pub state: String,
    pub info: Option<Arc<str>>,
}

struct Activity {
    user: String,
    host: String,
    db: Option<String>,
    command: &'static str,
    since: Instant,
    state: &'static str,
    info: Option<Arc<str>>,
    /// Of what runs, if it is a prepared statement: its text, and the values of its parameters.
    prepared: Option<Arc<str>>,
    params: Vec<Value>,
    /// What runs does nothing but send rows.
    only_reads: bool,
}

const READ_ONLY: u8 = 1;
const IN_TRANSACTION: u8 = 2;
const NO_FOREIGN_KEY_CHECKS: u8 = 1;
const NO_UNIQUE_CHECKS: u8 = 2;

/// One connection in the process list.
pub struct ProcessEntry {
    id: u64,
    activity: Mutex<Activity>,
    interruption: AtomicU8,
    /// Raised together with `interruption`; lock waits end by it and long work polls it.
    interrupt: Arc<Interrupt>,
    progress: Arc<Progress>,
    /// Its transaction, and how that was begun: bits of `READ_ONLY` and `IN_TRANSACTION`.
    transaction: Arc<TxnActivity>,
    transaction_mode: AtomicU8,
    /// What the statement that began last does without: bits of `NO_FOREIGN_KEY_CHECKS` and `NO_UNIQUE_CHECKS`.
    no_checks: AtomicU8,
    /// Rows that the running statement has read, whatever it did with them.
    rows_examined: Arc<AtomicU64>,
    queries: Arc<QueryActivity>,
    killed: Arc<AtomicBool>,
    /// The session's number in reports of metadata locks.
    lock_owner: AtomicU64,
    connection_type: OnceLock<&'static str>,
    /// Version and cipher.
    tls: OnceLock<(String, String)>,
    /// Name and value of what the client has said of itself.
    attributes: OnceLock<Vec<(String, String)>>,
    /// Tells whether the client has left.
    client: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// What it has counted since it is there, or since FLUSH STATUS.
    status: Status,
    history: Mutex<History>,
    /// Wakes whoever waits in the statement (a lock wait's task, SLEEP) or an idle connection's read.
    wake: Notify,
}

impl ProcessEntry {
    pub fn id(&self) -> u64 {
        self.id
    }

    /// To be said when the session begins, or begins anew: its number in reports of metadata locks.
    pub fn set_lock_owner(&self, number: u64) {
        self.lock_owner.store(number, Ordering::Relaxed);
    }

    pub fn lock_owner(&self) -> u64 {
        self.lock_owner.load(Ordering::Relaxed)
    }

    /// How the client is connected, in performance_schema's words; stays as it is said first.
    pub fn set_connection_type(&self, name: &'static str) {
        let _ = self.connection_type.set(name);
    }

    /// `None`: there is no client.
    pub fn connection_type(&self) -> Option<&'static str> {
        self.connection_type.get().copied()
    }

    /// The connection has TLS; stays as it is said first.
    pub fn set_tls(&self, version: &str, cipher: &str) {
        self.tls.get_or_init(|| (version.to_owned(), cipher.to_owned()));
    }

    /// Version and cipher; both are empty without TLS.
    pub fn tls(&self) -> (&str, &str) {
        self.tls.get().map_or(("", ""), |(version, cipher)| (version.as_str(), cipher.as_str()))
    }

    /// Name and value of what the client says of itself, as far as there is room; stays as it is said first.
    pub fn set_attributes(&self, attributes: Vec<(String, String)>) {
        let mut bytes = 0;
        let fits = |(name, value): &(String, String)| {
            bytes += name.len() + value.len();
            bytes <= ATTRIBUTES_MAX
        };
        let _ = self.attributes.set(attributes.into_iter().take_while(fits).collect());
    }

    pub fn attributes(&self) -> &[(String, String)] {
        self.attributes.get().map_or(&[], Vec::as_slice)
    }

    /// How to know that the client has left; stays as it is said first.
    pub fn set_client(&self, has_left: Box<dyn Fn() -> bool + Send + Sync>) {
        let _ = self.client.set(has_left);
    }

    /// Its own counters.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// User and host.
    fn account(&self) -> (String, String) {
        let activity = self.activity.lock();
        (activity.user.clone(), host_of(&activity.host).to_owned())
    }

    /// The statements that it has run last.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock()
    }

    /// Resolves when KILL CONNECTION hit this connection. The server selects on it while it waits for the next command.
    pub async fn connection_killed(&self) {
        loop {
            let notified = self.wake.notified();
            if self.interruption() == Interruption::Connection {
                return;
            }
            notified.await;
        }
    }

    /// Resolves when the running statement is to stop, whatever the reason.
    pub async fn interrupted(&self) {
        loop {
            let notified = self.wake.notified();
            if self.interruption() != Interruption::None {
                return;
            }
            notified.await;
        }
    }

    /// True once KILL CONNECTION hit.
    pub fn is_connection_killed(&self) -> bool {
        self.interruption() == Interruption::Connection
    }

    pub fn interruption(&self) -> Interruption {
        match self.interruption.load(Ordering::Acquire) {
            0 => Interruption::None,
            1 => Interruption::Query,
            2 => Interruption::Timeout,
            _ => Interruption::Connection,
        }
    }

    /// Interrupts what runs; a KILL CONNECTION is never weakened to a KILL QUERY.
    pub fn interrupt(&self, kind: Interruption) {
        let code = match kind {
            Interruption::None => return,
            Interruption::Query => 1,
            Interruption::Timeout => 2,
            Interruption::Connection => 3,
        };
        self.interruption.fetch_max(code, Ordering::AcqRel);
        self.interrupt.raise();
        self.killed.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    /// What lock waits end by and long work polls.
    pub fn flag(&self) -> Arc<Interrupt> {
        self.interrupt.clone()
    }

    /// Where long work says how far it is.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// What is known of its transaction.
    pub fn activity(&self) -> &Arc<TxnActivity> {
        &self.transaction
    }

    /// To be said when a transaction begins: START TRANSACTION READ ONLY, and whether it goes on after its first statement.
    pub fn set_transaction_mode(&self, read_only: bool, in_transaction: bool) {
        self.transaction_mode.store(u8::from(read_only) * READ_ONLY + u8::from(in_transaction) * IN_TRANSACTION, Ordering::Relaxed);
    }

    /// To be said when a statement begins: `foreign_key_checks` and `unique_checks`.
    pub fn set_checks(&self, foreign_key: bool, unique: bool) {
        self.no_checks.store(u8::from(!foreign_key) * NO_FOREIGN_KEY_CHECKS + u8::from(!unique) * NO_UNIQUE_CHECKS, Ordering::Relaxed);
    }

    pub fn checks_foreign_keys(&self) -> bool {
        self.no_checks.load(Ordering::Relaxed) & NO_FOREIGN_KEY_CHECKS == 0
    }

    pub fn checks_unique(&self) -> bool {
        self.no_checks.load(Ordering::Relaxed) & NO_UNIQUE_CHECKS == 0
    }

    pub fn is_read_only(&self) -> bool {
        self.transaction_mode.load(Ordering::Relaxed) & READ_ONLY != 0
    }

    /// False: its transaction is one statement's.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction_mode.load(Ordering::Relaxed) & IN_TRANSACTION != 0
    }

    /// How far the running statement is, for a client that draws it; None in a stage that counts nothing.
    pub fn progress_report(&self) -> Option<ProgressReport> {
        ProgressReport::of(&self.progress)
    }

    /// The same as a plain flag, for DataFusion.
    pub fn killed_flag(&self) -> Arc<AtomicBool> {
        self.killed.clone()
    }

    /// The error that the running statement is to end with, if it was interrupted.
    pub fn check(&self) -> Result<(), MySqlError> {
        match self.interruption() {
            Interruption::None => Ok(()),
            Interruption::Timeout => Err(error::query_timeout()),
            Interruption::Query | Interruption::Connection => Err(errors::query_interrupted()),
        }
    }

    /// If the client has left, nobody waits for the answer: a statement that does nothing but send rows, and has run for so long, ends as by KILL QUERY.
    /// What changes something is finished, as by MySQL: the client may have known that it need not wait.
    fn end_if_left(&self, after: Duration) {
        let Some(has_left) = self.client.get() else { return };
        let looked_for = {
            let activity = self.activity.lock();
            activity.only_reads && activity.since.elapsed() >= after
        };
        if !looked_for || !has_left() {
            return;
        }
        // It may have ended meanwhile. While this is locked none ends and none begins.
        let activity = self.activity.lock();
        if activity.only_reads {
            self.interrupt(Interruption::Query);
        }
    }

    /// A KILL QUERY that came while nothing ran, or for the statement before, is forgotten. `only_reads`: the statement does nothing but send rows.
    pub fn begin_statement(&self, command: &'static str, info: Arc<str>, only_reads: bool, started: Instant) {
        let left = self.interruption.load(Ordering::Acquire);
        if left != 0
            && self.interruption() != Interruption::Connection
            // A KILL CONNECTION that comes now has changed it, and stays.
            && self.interruption.compare_exchange(left, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
        {
            self.interrupt.clear();
            self.killed.store(false, Ordering::Release);
            // What came between is said again: it may have been cleared with the rest.
            if self.interruption() != Interruption::None {
                self.interrupt.raise();
                self.killed.store(true, Ordering::Release);
            }
        }
        self.progress.enter(Stage::Executing, 0);
        let mut activity = self.activity.lock();
        activity.command = command;
        activity.since = started;
        activity.state = "executing";
        activity.info = Some(info);
        activity.prepared = None;
        activity.params.clear();
        activity.only_reads = only_reads;
    }

    /// What runs is a prepared statement.
    pub fn set_prepared(&self, text: &Arc<str>, params: &[Value]) {
        let mut activity = self.activity.lock();
        activity.prepared = Some(text.clone());
        activity.params.clear();
        activity.params.extend_from_slice(params);
    }

    /// The text of what runs, with the values of its parameters if it is a prepared statement.
    pub fn running(&self) -> Option<(Arc<str>, Option<Vec<Value>>)> {
        let activity = self.activity.lock();
        let info = activity.info.clone()?;
        Some(match &activity.prepared {
            Some(text) => (text.clone(), Some(activity.params.clone())),
            None => (info, None),
        })
    }

    /// Runs no statement: what SHOW PROCESSLIST says instead.
    pub fn set_command(&self, command: &'static str, state: &'static str) {
        let mut activity = self.activity.lock();
        (activity.command, activity.state, activity.since) = (command, state, Instant::now());
    }

    /// Says when it ended, and its text.
    pub fn end_statement(&self) -> (Instant, Option<Arc<str>>) {
        self.progress.enter(Stage::Executing, 0);
        let ended = Instant::now();
        let mut activity = self.activity.lock();
        activity.command = "Sleep";
        activity.since = ended;
        activity.state = "";
        activity.only_reads = false;
        activity.prepared = None;
        activity.params.clear();
        // Long ones take no memory while nothing runs.
        activity.params.shrink_to(64);
        (ended, activity.info.take())
    }

    /// Rows that the running statement has read.
    pub fn rows_examined(&self) -> u64 {
        self.rows_examined.load(Ordering::Relaxed)
    }

    /// What is read from now on is the next statement's.
    pub fn clear_examined(&self) {
        self.rows_examined.store(0, Ordering::Relaxed);
        self.queries.clear();
    }

    pub fn add_examined(&self, rows: u64) {
        self.rows_examined.fetch_add(rows, Ordering::Relaxed);
    }

    /// Where scans on other threads count them.
    pub fn examined_counter(&self) -> Arc<AtomicU64> {
        self.rows_examined.clone()
    }

    /// What the queries of the running statement are at.
    pub fn queries(&self) -> &Arc<QueryActivity> {
        &self.queries
    }

    pub fn set_state(&self, state: &'static str) {
        self.activity.lock().state = state;
    }

    pub fn set_db(&self, db: Option<&str>) {
        self.activity.lock().db = db.map(str::to_owned);
    }

    pub fn set_user(&self, user: &str) {
        self.activity.lock().user = user.to_owned();
    }

    pub fn snapshot(&self) -> ProcessSnapshot {
        let activity = self.activity.lock();
        let elapsed = activity.since.elapsed();
        ProcessSnapshot {
            id: self.id,
            user: activity.user.clone(),
            host: activity.host.clone(),
            db: activity.db.clone(),
            command: activity.command,
            elapsed,
            seconds: elapsed.as_secs(),
            state: stage_text(&self.progress).unwrap_or_else(|| activity.state.to_owned()),
            info: activity.info.clone(),
        }
    }
}

/// A statement's progress in the form that MariaDB's clients are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// From 1 to `stages`. A statement may end without having come to all of them: rows that are inserted one by one leave no index to build.
    pub stage: u8,
    pub stages: u8,
    /// Thousandths of a percent of the stage; 0 where nobody knows how much is to do.
    pub thousandths: u32,
    pub text: String,
}

impl ProgressReport {
    fn of(progress: &Progress) -> Option<Self> {
        let stage = progress.stage();
        let (number, stages) = match stage {
            Stage::Executing | Stage::WaitingForMetadataLock | Stage::Committing | Stage::WaitingForReplica | Stage::ReadingTables => return None,
            Stage::ReadingFile | Stage::CopyingRows => (1, 2),
            Stage::FillingPages => (1, 2),
            Stage::BuildingIndexes | Stage::ApplyingChanges | Stage::MovingPages => (2, 2),
            Stage::ReadingRows | Stage::ChangingRows | Stage::CheckingPages | Stage::CheckingEntries | Stage::RollingBack => (1, 1),
        };
        let done = progress.done();
        Some(match progress.total() {
            Some(total) => {
                let thousandths = (u128::from(done.min(total)) * 100_000 / u128::from(total)) as u32;
                Self { stage: number, stages, thousandths, text: stage_name(stage).0.to_owned() }
            }
            None => Self { stage: number, stages, thousandths: 0, text: stage_text(progress)? },
        })
    }
}

/// A stage as `events_stages_current` names it, behind `stage/sql/`, and what its work is counted in.
pub(crate) fn stage_name(stage: Stage) -> (&'static str, &'static str) {
    match stage {
        Stage::Executing => ("executing", ""),
        Stage::WaitingForMetadataLock => ("Waiting for table metadata lock", ""),
        Stage::ReadingFile => ("reading file", "bytes"),
        Stage::CopyingRows => ("copying rows", "rows"),
        Stage::ReadingRows => ("reading rows", "rows"),
        Stage::ChangingRows => ("changing rows", "rows"),
        Stage::CheckingPages => ("checking pages", "pages"),
        Stage::CheckingEntries => ("checking entries", "entries"),
        Stage::BuildingIndexes => ("building indexes", "entries"),
        Stage::ApplyingChanges => ("applying changes", "rows"),
        Stage::FillingPages => ("filling pages", "pages"),
        Stage::MovingPages => ("moving pages", "pages"),
        Stage::RollingBack => ("Rolling back", "bytes of log"),
        Stage::Committing => ("waiting for handler commit", ""),
        Stage::WaitingForReplica => ("Waiting for semi-sync ACK from replica", ""),
        Stage::ReadingTables => ("reading tables", "pieces"),
    }
}

/// `copying rows: 1200 of about 5000 rows (24%)`; None without a stage.
fn stage_text(progress: &Progress) -> Option<String> {
    let (stage, done) = (progress.stage(), progress.done());
    let (name, unit) = stage_name(stage);
    Some(match progress.total() {
        _ if stage == Stage::Executing => return None,
        Some(total) => format!("{name}: {done} of about {total} {unit} ({}%)", done * 100 / total),
        None if done > 0 => format!("{name}: {done} {unit}"),
        None => name.to_owned(),
    })
}

/// All connections by id.
#[derive(Default)]
pub struct ProcessList {
    next_id: AtomicU64,
    /// How many of the entries are no connections.
    daemons: AtomicUsize,
    entries: RwLock<BTreeMap<u64, Arc<ProcessEntry>>>,
    /// How many connections there have been, by user and host.
    made: Mutex<BTreeMap<(String, String), u64>>,
    /// What those have run that are gone, by user and host; without either what there is no room for.
    ran: Mutex<BTreeMap<(String, String), Kinds>>,
}

/// What was run by a connection, or by an account's that are gone.
pub(crate) struct Ran {
    pub id: Option<u64>,
    pub user: String,
    pub host: String,
    pub kinds: Kinds,
}

impl ProcessList {
    /// Connection ids start at 1 and are never reused while the server runs.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn register(&self, id: u64, user: &str, host: &str) -> Arc<ProcessEntry> {
        let progress: Arc<Progress> = Arc::default();
        let entry = Arc::new(ProcessEntry {
            id,
            activity: Mutex::new(Activity {
                user: user.to_owned(),
                host: host.to_owned(),
                db: None,
                command: "Sleep",
                since: Instant::now(),
                state: "",
                info: None,
                prepared: None,
                params: Vec::new(),
                only_reads: false,
            }),
            interruption: AtomicU8::new(0),
            interrupt: Arc::default(),
            queries: Arc::new(QueryActivity::new(progress.clone())),
            progress,
            transaction: Arc::default(),
            transaction_mode: AtomicU8::new(0),
            no_checks: AtomicU8::new(0),
            rows_examined: Arc::default(),
            killed: Arc::default(),
            lock_owner: AtomicU64::new(0),
            connection_type: OnceLock::new(),
            tls: OnceLock::new(),
            attributes: OnceLock::new(),
            client: OnceLock::new(),
            status: Status::default(),
            history: Mutex::default(),
            wake: Notify::new(),
        });
        self.entries.write().insert(id, entry.clone());
        entry
    }

    /// Something of the server's own that is no connection, to be removed by `remove_daemon`.
    pub fn register_daemon(&self, id: u64, user: &str) -> Arc<ProcessEntry> {
        self.daemons.fetch_add(1, Ordering::Relaxed);
        let entry = self.register(id, user, "localhost");
        entry.set_command("Daemon", "");
        entry
    }

    pub fn remove_daemon(&self, id: u64, sums: &Status) {
        self.remove(id, sums);
        self.daemons.fetch_sub(1, Ordering::Relaxed);
    }

    /// What the connection has counted goes into `sums`.
    pub fn remove(&self, id: u64, sums: &Status) {
        let mut entries = self.entries.write();
        if let Some(entry) = entries.remove(&id) {
            entry.status.move_into(sums);
            self.keep_ran(&entry);
        }
    }

    /// The connection is about to be another user's: what it has run stays this one's.
    pub fn leave_account(&self, entry: &ProcessEntry) {
        // As if it went.
        let _entries = self.entries.write();
        self.keep_ran(entry);
    }

    fn keep_ran(&self, entry: &ProcessEntry) {
        let kinds = entry.history().take_kinds();
        if kinds.is_empty() {
            return;
        }
        let mut account = entry.account();
        let mut ran = self.ran.lock();
        if ran.len() >= MAX_ACCOUNTS && !ran.contains_key(&account) {
            account = Default::default();
        }
        let known = ran.entry(account).or_default();
        kinds.iter().for_each(|(kind, sums)| add_kind(known, *kind, sums));
    }

    /// What connections have run, those that are there and those that are gone.
    pub(crate) fn ran(&self) -> Vec<Ran> {
        // While nobody goes.
        let entries = self.entries.read();
        let here = entries.values().map(|entry| {
            let (user, host) = entry.account();
            Ran { id: Some(entry.id), user, host, kinds: entry.history().kinds().clone() }
        });
        let mut all: Vec<Ran> = here.collect();
        let gone = self.ran.lock();
        all.extend(gone.iter().map(|((user, host), kinds)| Ran { id: None, user: user.clone(), host: host.clone(), kinds: kinds.clone() }));
        all
    }

    /// `ran` begins anew.
    pub(crate) fn forget_ran(&self) {
        let entries = self.entries.read();
        entries.values().for_each(|entry| drop(entry.history().take_kinds()));
        self.ran.lock().clear();
    }

    /// Moves what a connection has counted into `sums`, while nobody counts together.
    pub fn give_counts(&self, entry: &ProcessEntry, sums: &Status) {
        let _entries = self.entries.write();
        entry.status.move_into(sums);
    }

    /// `sums` and what the connections have counted, together.
    pub fn counted(&self, sums: &Status) -> Status {
        let entries = self.entries.read();
        let all = Status::default();
        all.add_all(sums);
        entries.values().for_each(|entry| all.add_all(&entry.status));
        all
    }

    /// One counter of `counted`.
    pub fn counted_one(&self, counter: StatusCounter, sums: &Status) -> u64 {
        let entries = self.entries.read();
        entries.values().map(|entry| entry.status.get(counter)).sum::<u64>() + sums.get(counter)
    }

    /// A client has connected, or has become another user.
    pub fn note_made(&self, user: &str, address: &str) {
        let account = (user.to_owned(), host_of(address).to_owned());
        let mut made = self.made.lock();
        if made.len() < MAX_ACCOUNTS || made.contains_key(&account) {
            *made.entry(account).or_default() += 1;
        }
    }

    /// How many connections there have been, by user and host.
    pub fn made(&self) -> BTreeMap<(String, String), u64> {
        self.made.lock().clone()
    }

    pub fn get(&self, id: u64) -> Option<Arc<ProcessEntry>> {
        self.entries.read().get(&id).cloned()
    }

    pub fn all(&self) -> Vec<Arc<ProcessEntry>> {
        self.entries.read().values().cloned().collect()
    }

    /// Ends queries that have run for so long and whose clients have left.
    pub fn end_left(&self, after: Duration) {
        self.entries.read().values().for_each(|entry| entry.end_if_left(after));
    }

    /// Of the connections.
    pub fn len(&self) -> usize {
        self.entries.read().len().saturating_sub(self.daemons.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KILL QUERY has hit the statement before; KILL comes while the next begins.
    #[test]
    fn a_kill_is_not_forgotten_with_the_one_before() {
        let list = ProcessList::default();
        for id in 0..5000 {
            let entry = list.register(id, "root", "localhost");
            entry.interrupt(Interruption::Query);
            let together = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    together.wait();
                    entry.interrupt(Interruption::Connection);
                });
                together.wait();
                entry.begin_statement("Query", "SELECT 1".into(), true, Instant::now());
            });
            assert!(entry.is_connection_killed() && entry.flag().is_raised() && entry.killed_flag().load(Ordering::Acquire));
            list.remove(id, &Status::default());
        }
    }

    #[test]
    fn who_leaves_ends_what_only_reads() {
        let list = ProcessList::default();
        let entry = list.register(1, "root", "localhost");
        let ended = |only_reads, after| {
            entry.begin_statement("Query", "".into(), only_reads, Instant::now());
            list.end_left(after);
            entry.interruption() == Interruption::Query
        };
        assert!(!ended(true, Duration::ZERO), "nobody knows");
        let gone = Arc::new(AtomicBool::new(false));
        let told = gone.clone();
        entry.set_client(Box::new(move || told.load(Ordering::Relaxed)));
        assert!(!ended(true, Duration::ZERO), "there still");
        gone.store(true, Ordering::Relaxed);
        assert!(!ended(true, Duration::from_secs(3600)), "not looked for yet");
        assert!(!ended(false, Duration::ZERO), "a change");
        assert!(ended(true, Duration::ZERO));
        entry.begin_statement("Query", "".into(), true, Instant::now());
        entry.end_statement();
        list.end_left(Duration::ZERO);
        assert_eq!(entry.interruption(), Interruption::None, "nothing runs");
    }

    #[test]
    fn the_state_tells_stage_and_progress() {
        let list = ProcessList::default();
        let entry = list.register(1, "root", "localhost");
        let state = || entry.snapshot().state;
        assert_eq!(state(), "");
        entry.begin_statement("Query", "SELECT 1".into(), true, Instant::now());
        assert_eq!(state(), "executing");
        let progress = entry.progress();
        progress.enter(Stage::CopyingRows, 5000);
        progress.add(1200);
        assert_eq!(state(), "copying rows: 1200 of about 5000 rows (24%)");
        let report = |stage, stages, thousandths, text: &str| Some(ProgressReport { stage, stages, thousandths, text: text.to_owned() });
        assert_eq!(entry.progress_report(), report(1, 2, 24_000, "copying rows"));
        progress.add(4800);
        assert_eq!(state(), "copying rows: 6000 of about 6000 rows (100%)");
        progress.enter(Stage::ReadingFile, 0);
        assert_eq!(state(), "reading file");
        progress.add(7);
        assert_eq!(state(), "reading file: 7 bytes");
        assert_eq!(entry.progress_report(), report(1, 2, 0, "reading file: 7 bytes"));
        progress.enter(Stage::BuildingIndexes, 3);
        progress.add(1);
        assert_eq!(entry.progress_report(), report(2, 2, 33_333, "building indexes"));
        entry.end_statement();
        assert_eq!((state().as_str(), entry.progress_report()), ("", None));
    }
}
