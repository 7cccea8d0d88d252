//! The commit order: where the database's log and the binary log meet. README.md, "Commit order".
//!
//! A transaction collects its events ([`cache`]); its commit record carries them ([`payload`]); behind the log the [`writer`] puts them into
//! classic files ([`files`]), from which replicas and tools read. What is known of the files survives in the catalog ([`state`]).

mod cache;
mod files;
mod payload;
mod reader;
mod semi_sync;
mod state;
mod writer;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highkey_binlog::{GtidSet, Uuid};
use highkey_storage::{CommitWait, Engine, Error, Isolation, Result};
use highkey_types::{MySqlError, errors};
use parking_lot::{Condvar, Mutex};

pub use cache::EventSource;
pub(crate) use cache::{Change, EventCache, EventMark, table_map};
pub(crate) use files::name_of;
pub use files::number_of;
pub use payload::GtidChoice;
use payload::NumberNote;
pub use reader::BinlogBytes;
pub use semi_sync::{SemiSync, SemiSyncSettings, SemiSyncStatus};
pub(crate) use semi_sync::ReplicaWait;
use state::State;
use writer::Writer;

/// Between two looks at the log while there are commits and nobody waits for the files.
const BUSY_WAIT: Duration = Duration::from_millis(50);
/// Between two looks while nothing happens: for what is not a commit.
const IDLE_WAIT: Duration = Duration::from_secs(1);

/// What a binary log is opened with; the atomics can be changed while it is open.
pub struct Settings {
    pub uuid: Uuid,
    /// `@@version`, and as a number.
    pub server_version: String,
    pub version_number: u32,
    pub server_id: AtomicU32,
    /// `binlog_expire_logs_seconds`: files whose end is older are purged when a new one begins; 0: never.
    pub expire_seconds: AtomicU64,
    /// `gtid_mode`: transactions get GTIDs from now on. For those who make events.
    pub assigns_gtids: AtomicBool,
    /// `binlog_row_metadata=FULL`. For those who make events.
    pub full_metadata: AtomicBool,
    /// `max_binlog_size`: a file ends behind the transaction that reaches it.
    pub max_size: AtomicU64,
    /// `max_binlog_cache_size`: events of a transaction may take so many bytes. For those who make events.
    pub max_cache_size: AtomicU64,
    /// `binlog_checksum=CRC32`, for files begun from now on.
    pub checksum: AtomicBool,
    /// Whether commits wait for replicas.
    pub semi_sync: Arc<SemiSync>,
}

/// Whether a database has a binary log, and which: server options.
#[derive(Clone, Debug)]
pub struct BinlogOptions {
    /// `log_bin`.
    pub enabled: bool,
    /// Without `enabled`, for tools: what a server left in the log for its files stays there for the server's next start.
    pub untouched: bool,
    pub server_version: String,
    pub version_number: u32,
    pub server_id: u32,
    pub expire_seconds: u64,
    pub assigns_gtids: bool,
    pub full_metadata: bool,
    pub max_size: u64,
    pub max_cache_size: u64,
    pub checksum: bool,
}

impl Default for BinlogOptions {
    fn default() -> BinlogOptions {
        BinlogOptions {
            enabled: false,
            untouched: false,
            server_version: "8.0.36-highkey".into(),
            version_number: 80036,
            server_id: 1,
            expire_seconds: 2_592_000,
            assigns_gtids: false,
            full_metadata: false,
            max_size: 1 << 30,
            max_cache_size: u64::MAX,
            checksum: true,
        }
    }
}

/// One file of the binary log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileInfo {
    pub number: u64,
    pub size: u64,
}

/// A place in the binary log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinlogPosition {
    pub file: String,
    pub position: u64,
}

/// The highest file that RESET may begin with.
const MAX_RESET_TO: u64 = i32::MAX as u64;

/// What has been written since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BinlogWritten {
    pub transactions: u64,
    /// Bytes of their events, as they stand in the files.
    pub bytes: u64,
}

/// What readers may see.
#[derive(Default)]
struct Shared {
    files: Vec<FileInfo>,
    executed: GtidSet,
    purged: GtidSet,
    written: BinlogWritten,
    waiters: Vec<Waker>,
}

/// Wakes the writer's thread.
#[derive(Default)]
struct Signal {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn ask(&self) {
        *self.asked.lock() = true;
        self.changed.notify_one();
    }

    fn wait(&self, time: Duration) {
        let mut asked = self.asked.lock();
        if !*asked {
            self.changed.wait_for(&mut asked, time);
        }
        *asked = false;
    }
}

/// The binary log of an open database.
pub struct Binlog {
    engine: Engine,
    settings: Arc<Settings>,
    writer: Mutex<Writer>,
    shared: Mutex<Shared>,
    signal: Arc<Signal>,
    /// Readers at the tail: the files follow every group commit.
    watching: AtomicUsize,
    stopping: AtomicBool,
    /// The writer met an error.
    failed: AtomicBool,
    /// Counts RESETs: names come again then.
    generation: AtomicU64,
    /// The newest file when old ones were looked for.
    expired_at: AtomicU64,
    /// GTIDs that transactions under way have been assigned, and whose they are.
    owned: Mutex<BTreeMap<(Uuid, u64), u64>>,
    /// How often such a transaction has ended.
    given_up: AtomicU64,
    /// Numbers of files that are being sent to replicas, with how many. Locked before `shared`.
    in_use: Mutex<BTreeMap<u64, usize>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Binlog {
    /// For an opened database.
    pub(crate) fn open_or_close(engine: &Engine, uuid: Uuid, options: BinlogOptions) -> Result<Option<Arc<Binlog>>> {
        let settings = Settings {
            uuid,
            server_version: options.server_version,
            version_number: options.version_number,
            server_id: AtomicU32::new(options.server_id),
            expire_seconds: AtomicU64::new(options.expire_seconds),
            assigns_gtids: AtomicBool::new(options.assigns_gtids),
            full_metadata: AtomicBool::new(options.full_metadata),
            max_size: AtomicU64::new(options.max_size),
            max_cache_size: AtomicU64::new(options.max_cache_size),
            checksum: AtomicBool::new(options.checksum),
            semi_sync: Arc::new(SemiSync::new(engine.clone())),
        };
        if options.enabled {
            return Binlog::open(engine, settings).map(Some);
        }
        // Of the log nothing is let go before somebody has followed it.
        if !options.untouched {
            Binlog::close_earlier(engine, settings)?;
        }
        Ok(None)
    }

    /// Brings the files up to date with the database and begins a new one. Without space for that the database opens all the same, so that files
    /// can be purged; the rest follows when there is space.
    fn open(engine: &Engine, settings: Settings) -> Result<Arc<Binlog>> {
        let settings = Arc::new(settings);
        let mut writer = Writer::load(engine, settings.clone())?;
        let failed = match writer.restore().and_then(|()| writer.start()) {
            Err(Error::OutOfSpace | Error::LogFull) => {
                tracing::error!("no space for the binary log; PURGE BINARY LOGS makes some");
                writer = Writer::load(engine, settings.clone())?;
                true
            }
            started => started.map(|()| false)?,
        };
        let signal = Arc::new(Signal::default());
        let hook = signal.clone();
        engine.on_durable(Box::new(move || hook.ask()));
        let background = engine.options().background;
        let binlog = Arc::new(Binlog {
            engine: engine.clone(),
            settings,
            shared: Mutex::new(Shared::default()),
            writer: Mutex::new(writer),
            signal: signal.clone(),
            watching: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            failed: AtomicBool::new(failed),
            generation: AtomicU64::new(0),
            expired_at: AtomicU64::new(0),
            owned: Mutex::default(),
            given_up: AtomicU64::new(0),
            in_use: Mutex::default(),
            thread: Mutex::new(None),
        });
        binlog.publish(&binlog.writer.lock());
        if background {
            let weak = Arc::downgrade(&binlog);
            let thread = std::thread::Builder::new().name("hk-binlog".into()).spawn(move || run(&weak, &signal));
            *binlog.thread.lock() = Some(thread.map_err(|e| Error::Unusable(format!("cannot start the binary log's thread: {e}")))?);
        }
        Ok(binlog)
    }

    /// For a server without a binary log: what an earlier one left in the log goes into its files, then nothing is kept for it any more.
    fn close_earlier(engine: &Engine, settings: Settings) -> Result<()> {
        if let Some(state) = State::read(engine)?
            && state.lsn.is_some()
        {
            let mut writer = Writer::open(engine, Arc::new(settings))?;
            writer.stop()?;
            writer.close()?;
        }
        engine.release_log(None);
        Ok(())
    }

    /// Semi-synchronous replication: what commits wait for.
    pub fn semi_sync(&self) -> &Arc<SemiSync> {
        &self.settings.semi_sync
    }

    /// What is set of the log, at present.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn publish(&self, writer: &Writer) {
        let progress = writer.progress();
        let waiters = {
            let mut shared = self.shared.lock();
            shared.files.clear();
            shared.files.extend_from_slice(progress.files);
            shared.written = progress.written;
            if shared.executed != *progress.executed {
                shared.executed = progress.executed.clone();
            }
            if shared.purged != *progress.purged {
                shared.purged = progress.purged.clone();
            }
            std::mem::take(&mut shared.waiters)
        };
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Works with the writer. After an error there is another one, made from the saved state; an error that cannot pass stops the engine.
    fn with_writer<T>(&self, work: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        // A large transaction keeps the writer busy for long, and this thread may be others' too.
        self.engine.blocking(|| self.with_writer_here(work))
    }

    fn with_writer_here<T>(&self, work: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        let mut writer = self.writer.lock();
        let done = (|| {
            if self.failed.load(Ordering::SeqCst) {
                *writer = writer.reopen()?;
                self.failed.store(false, Ordering::SeqCst);
            }
            work(&mut writer)
        })();
        match &done {
            Ok(_) => self.publish(&writer),
            Err(error) => {
                self.failed.store(true, Ordering::SeqCst);
                if !matches!(error, Error::OutOfSpace | Error::LogFull | Error::Stopped) {
                    self.engine.stop_with(&format!("cannot write the binary log: {error}"));
                }
            }
        }
        done
    }

    /// Writes what is durable in the log. True: something was written.
    pub fn step(&self) -> Result<bool> {
        self.with_writer(Writer::step)
    }

    /// Waits until every commit that was acknowledged before the call is in the files.
    pub fn catch_up(&self) -> std::result::Result<(), MySqlError> {
        self.engine.flush_log().and_then(|()| self.step()).map(drop).map_err(failed)
    }

    fn change(&self, change: impl FnOnce(&mut Writer) -> Result<()>) -> std::result::Result<(), MySqlError> {
        self.engine.flush_log().map_err(failed)?;
        self.with_writer(|writer| {
            writer.step()?;
            change(writer)
        })
        .map_err(failed)
    }

    /// FLUSH BINARY LOGS: ends the present file and begins the next one.
    pub fn rotate(&self) -> std::result::Result<(), MySqlError> {
        self.change(Writer::rotate)
    }

    /// PURGE BINARY LOGS TO: removes the files before `name`, up to the first that is in use. Error 1373 for a name that there is not.
    pub fn purge_to(&self, name: &str) -> std::result::Result<(), MySqlError> {
        let number = self.file_number(name).ok_or_else(errors::unknown_target_binlog)?;
        self.purge(number)
    }

    /// Removes the files before one of them. Not by `with_writer`: it needs nothing of the log, it is what helps when nothing can be written for
    /// want of space, and an error of it is its caller's alone.
    fn purge(&self, number: u64) -> std::result::Result<(), MySqlError> {
        self.engine.blocking(|| -> std::result::Result<(), MySqlError> {
            let mut writer = self.writer.lock();
            let in_use = self.in_use.lock();
            let number = in_use.keys().next().map_or(number, |first| number.min(*first));
            writer.purge(number).map_err(failed)?;
            let mut shared = self.shared.lock();
            shared.files.retain(|f| f.number >= number);
            shared.purged = writer.progress().purged.clone();
            Ok(())
        })
    }

    /// Keeps a file and those after it from being purged while the guard lives: a replica has not read them yet. `None`: it is not in the index.
    pub fn use_file(self: &Arc<Self>, name: &str) -> Option<FileInUse> {
        let mut in_use = self.in_use.lock();
        let number = self.file_number(name)?;
        *in_use.entry(number).or_default() += 1;
        Some(FileInUse { binlog: self.clone(), number })
    }

    /// PURGE BINARY LOGS BEFORE, and `binlog_expire_logs_seconds`: removes files whose last write is before `time`, up to the first that
    /// is not or is in use.
    pub fn purge_before(&self, time: SystemTime) -> std::result::Result<(), MySqlError> {
        let files = self.shared.lock().files.clone();
        let time = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let disk = &**self.engine.disk();
        let mut keep = files[0].number;
        // A file ended when the next one was begun.
        for FileInfo { number: next, size } in &files[1..] {
            // One that somebody has removed by hand goes with those before it.
            if !disk.exists(&name_of(*next)).map_err(failed)? {
                continue;
            }
            // There was no space to begin it.
            if *size == 0 {
                break;
            }
            if reader::head(disk, *next).map_err(failed)?.begun_at >= time {
                break;
            }
            keep = *next;
        }
        self.purge(keep)
    }

    /// Purges what is too old, once for each new file.
    fn expire(&self) {
        let newest = self.shared.lock().files.last().map_or(0, |f| f.number);
        let seconds = self.settings.expire_seconds.load(Ordering::Relaxed);
        if self.expired_at.load(Ordering::Relaxed) == newest || seconds == 0 {
            return;
        }
        let Some(time) = SystemTime::now().checked_sub(Duration::from_secs(seconds)) else { return };
        self.expired_at.store(newest, Ordering::Relaxed);
        if let Err(e) = self.purge_before(time) {
            tracing::warn!("cannot purge old binary log files: {}", e.message);
        }
    }

    /// RESET BINARY LOGS AND GTIDS: removes everything and begins with the file of the number `first`. Error 3567 for one that is out of MySQL's range.
    pub fn reset(&self, first: u64) -> std::result::Result<(), MySqlError> {
        if !(1..=MAX_RESET_TO).contains(&first) {
            return Err(errors::reset_master_to_value_out_of_range(first, MAX_RESET_TO));
        }
        // Before the new names are known: whoever reads the old ones is to see it.
        self.generation.fetch_add(1, Ordering::SeqCst);
        let done = self.change(|writer| writer.reset(first));
        // And who began meanwhile.
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.semi_sync().forget();
        done
    }

    /// Another one than before: the files were reset, and what was being read is gone.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// The files with their sizes, oldest first.
    pub fn files(&self) -> Vec<(String, u64)> {
        self.shared.lock().files.iter().map(|f| (name_of(f.number), f.size)).collect()
    }

    /// What has been written into the files.
    pub fn written(&self) -> BinlogWritten {
        self.shared.lock().written
    }

    /// Where the next event goes.
    pub fn position(&self) -> BinlogPosition {
        let shared = self.shared.lock();
        let last = shared.files.last().expect("there is a file");
        BinlogPosition { file: name_of(last.number), position: last.size }
    }

    /// GTIDs of all transactions in the files and purged ones.
    pub fn executed(&self) -> GtidSet {
        self.shared.lock().executed.clone()
    }

    /// Whether a transaction is among those. As of the last step of the files' writer: right for what was durable a moment ago.
    pub fn has_executed(&self, uuid: Uuid, number: u64) -> bool {
        self.shared.lock().executed.contains(uuid, number)
    }

    /// As `has_executed`, with what sessions that owned a GTID have committed up to now, which may not be in the files yet. `seen` is the caller's: it begins
    /// as 0 and says how many of them have been waited for.
    pub fn has_executed_now(&self, uuid: Uuid, number: u64, seen: &mut u64) -> std::result::Result<bool, MySqlError> {
        let given_up = self.given_up.load(Ordering::SeqCst);
        if given_up != *seen {
            self.catch_up()?;
            *seen = given_up;
        }
        Ok(self.has_executed(uuid, number))
    }

    /// As `has_executed`, of all of a set.
    pub fn has_executed_all(&self, set: &GtidSet) -> bool {
        set.is_subset(&self.shared.lock().executed)
    }

    /// `gtid_purged`.
    pub fn purged(&self) -> GtidSet {
        self.shared.lock().purged.clone()
    }

    /// Makes a GTID that is to be assigned the property of `connection`.
    pub fn own(self: &Arc<Self>, uuid: Uuid, number: u64, connection: u64) -> std::result::Result<Owning, MySqlError> {
        {
            let mut owned = self.owned.lock();
            if owned.contains_key(&(uuid, number)) {
                return Ok(Owning::Busy);
            }
            owned.insert((uuid, number), connection);
        }
        let gtid = OwnedGtid { binlog: self.clone(), uuid, number };
        if uuid == self.settings.uuid {
            // What is logged behind this gets another number. What was before it is looked at below.
            self.note_number(NumberNote::Taken(number)).and_then(CommitWait::wait).map_err(failed)?;
        }
        // Whoever had it before has committed by now.
        self.catch_up()?;
        Ok(if self.shared.lock().executed.contains(uuid, number) { Owning::Executed } else { Owning::Owned(gtid) })
    }

    fn note_number(&self, note: NumberNote) -> Result<CommitWait> {
        let txn = self.engine.begin(Isolation::ReadCommitted);
        match note {
            NumberNote::Taken(_) => txn.commit(&note.encode()),
            // A number that stayed taken because the log is full could not be used before the next start.
            NumberNote::Free(_) => txn.commit_urgent(&note.encode()),
        }
    }

    /// All GTIDs that are owned, with their connections.
    pub fn owned(&self) -> Vec<(Uuid, u64, u64)> {
        self.owned.lock().iter().map(|((uuid, number), connection)| (*uuid, *number, *connection)).collect()
    }

    /// `gtid_purged`: counts transactions as executed and purged that never were in the files. Error 3546 if it may not: `+` adds GTIDs of which
    /// none is executed; without, the set takes the place of the present one.
    pub fn declare_purged(&self, add: bool, set: &GtidSet) -> std::result::Result<(), MySqlError> {
        self.engine.flush_log().map_err(failed)?;
        let refused = |why: &str| MySqlError::with_message(3546, format!("@@GLOBAL.GTID_PURGED cannot be changed: {why}"));
        let mut answer = Ok(());
        self.with_writer(|writer| {
            writer.step()?;
            let progress = writer.progress();
            let mut added = set.clone();
            if !add {
                if !progress.purged.is_subset(set) {
                    answer = Err(refused("the new value must be a superset of the old value"));
                    return Ok(());
                }
                added.subtract(progress.purged);
            }
            let mut both = added.clone();
            both.intersect(progress.executed);
            if !both.is_empty() {
                answer = Err(refused("the added gtid set must not overlap with @@GLOBAL.GTID_EXECUTED"));
                return Ok(());
            }
            writer.declare(&added)
        })
        .map_err(failed)?;
        answer
    }

    fn file_number(&self, name: &str) -> Option<u64> {
        let name = name.rsplit('/').next().unwrap_or(name);
        let number = number_of(name)?;
        self.shared.lock().files.iter().any(|f| f.number == number && name_of(number) == name).then_some(number)
    }

    /// The bytes of a file from `position` on. `None`: it is not in the index.
    pub fn read_file(self: &Arc<Self>, name: &str, position: u64) -> std::result::Result<Option<BinlogBytes>, MySqlError> {
        let Some(number) = self.file_number(name) else { return Ok(None) };
        BinlogBytes::open(self.clone(), number, position).map(Some).map_err(failed)
    }

    /// Whether the events of a file end in checksums. `None`: it is not in the index.
    pub fn has_checksums(&self, name: &str) -> std::result::Result<Option<bool>, MySqlError> {
        let Some(number) = self.file_number(name) else { return Ok(None) };
        reader::head(&**self.engine.disk(), number).map(|head| Some(head.checksum)).map_err(failed)
    }

    fn size_of(&self, number: u64) -> Option<u64> {
        self.shared.lock().files.iter().find(|f| f.number == number).map(|f| f.size)
    }

    /// The file that comes after `name`; `None` if there is none, or if it was purged.
    pub fn file_after(&self, name: &str) -> Option<String> {
        let next = number_of(name)? + 1;
        self.shared.lock().files.iter().any(|f| f.number == next).then(|| name_of(next))
    }

    /// Whether `name` is the file that is being written.
    pub fn is_newest(&self, name: &str) -> bool {
        self.shared.lock().files.last().is_some_and(|f| name_of(f.number) == name)
    }

    /// The newest file before which everything is in `known`: where a replica that has `known` begins to read. `None`: something that it
    /// lacks has been purged.
    pub fn find_start(&self, known: &GtidSet) -> std::result::Result<Option<String>, MySqlError> {
        if !self.purged().is_subset(known) {
            return Ok(None);
        }
        let files: Vec<u64> = self.shared.lock().files.iter().map(|f| f.number).collect();
        let disk = self.engine.disk();
        for number in files.iter().rev() {
            let before = reader::head(&**disk, *number).map_err(failed)?.previous;
            if before.is_subset(known) {
                return Ok(Some(name_of(*number)));
            }
        }
        Ok(None)
    }

    /// Resolves when the file has bytes beyond `position`, is not the newest any more, or was reset since `generation`.
    pub fn wait_beyond<'b>(&'b self, name: &str, position: u64, generation: u64) -> BinlogWait<'b> {
        BinlogWait { binlog: self, number: number_of(name).unwrap_or(0), position, generation }
    }

    /// While the guard lives the files follow every group commit at once.
    pub fn watch(self: &Arc<Self>) -> WatchGuard {
        self.watching.fetch_add(1, Ordering::SeqCst);
        self.engine.watch_log(true);
        self.signal.ask();
        WatchGuard(self.clone())
    }

    /// The clean end. No transaction may be under way.
    pub(crate) fn shutdown(&self) -> Result<()> {
        self.join();
        self.engine.flush_log()?;
        self.with_writer(Writer::stop)
    }

    pub(crate) fn join(&self) {
        self.semi_sync().stop();
        self.stopping.store(true, Ordering::SeqCst);
        self.signal.ask();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

pub(crate) fn failed(cause: Error) -> MySqlError {
    crate::error::storage(cause, "binlog")
}

/// The writer's thread: eager while somebody reads at the tail or nothing happens, else in steps that cost the commits little.
fn run(binlog: &Weak<Binlog>, signal: &Signal) {
    let mut reported = false;
    loop {
        let wait = {
            let Some(binlog) = binlog.upgrade() else { return };
            if binlog.stopping.load(Ordering::SeqCst) {
                return;
            }
            match binlog.step() {
                Ok(busy) => {
                    reported = false;
                    binlog.expire();
                    let eager = !busy || binlog.watching.load(Ordering::SeqCst) > 0;
                    binlog.engine.watch_log(eager);
                    if busy && !eager { BUSY_WAIT } else { IDLE_WAIT }
                }
                // Space may come back; until then the log keeps what is to be written.
                Err(Error::OutOfSpace | Error::LogFull) => {
                    if !std::mem::replace(&mut reported, true) {
                        tracing::warn!("no space for the binary log");
                    }
                    // No new file will be begun: what has become too old meanwhile makes room.
                    binlog.expired_at.store(0, Ordering::Relaxed);
                    binlog.expire();
                    IDLE_WAIT
                }
                Err(_) => return,
            }
        };
        signal.wait(wait);
    }
}

/// What came of an attempt to own a GTID.
pub enum Owning {
    Owned(OwnedGtid),
    /// A transaction of this GTID has been committed.
    Executed,
    /// Somebody else owns it now.
    Busy,
}

/// A GTID for the transaction under way.
pub struct OwnedGtid {
    binlog: Arc<Binlog>,
    uuid: Uuid,
    number: u64,
}

impl Drop for OwnedGtid {
    fn drop(&mut self) {
        if self.uuid == self.binlog.settings.uuid
            // In the log before the next owner's note is. It need not become durable: after a crash nobody owns anything.
            && let Err(error) = self.binlog.note_number(NumberNote::Free(self.number))
        {
            tracing::debug!(%error, "a GTID that was given up is not used before the next start");
        }
        self.binlog.owned.lock().remove(&(self.uuid, self.number));
        self.binlog.given_up.fetch_add(1, Ordering::SeqCst);
    }
}

/// See [`Binlog::use_file`].
pub struct FileInUse {
    binlog: Arc<Binlog>,
    number: u64,
}

impl Drop for FileInUse {
    fn drop(&mut self) {
        let mut in_use = self.binlog.in_use.lock();
        if let Some(count) = in_use.get_mut(&self.number) {
            *count -= 1;
            if *count == 0 {
                in_use.remove(&self.number);
            }
        }
    }
}

/// See [`Binlog::watch`].
pub struct WatchGuard(Arc<Binlog>);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.0.watching.fetch_sub(1, Ordering::SeqCst);
    }
}

/// See [`Binlog::wait_beyond`].
pub struct BinlogWait<'b> {
    binlog: &'b Binlog,
    number: u64,
    position: u64,
    generation: u64,
}

impl Future for BinlogWait<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.binlog.shared.lock();
        let last = shared.files.last().expect("there is a file");
        if last.number != self.number || last.size > self.position || self.binlog.generation() != self.generation {
            return Poll::Ready(());
        }
        if !shared.waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            shared.waiters.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
