//! Semi-synchronous replication, the source's side: a commit waits until replicas say that they have received it. See README.md, "Semi-synchronous".
//!
//! Positions of acknowledgements are places in the files; commits are known by their LSN. The writer of the files says which belong together.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use highkey_storage::{Engine, Interrupt, Lsn, Progress, Stage, Txn};
use parking_lot::{Condvar, Mutex};

/// A place in the files: number and offset of an event's end.
type Place = (u64, u64);

/// `rpl_semi_sync_source_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemiSyncSettings {
    pub enabled: bool,
    /// `_timeout`: a commit that waits longer turns the waiting off for all.
    pub timeout: Duration,
    /// `_wait_for_replica_count`.
    pub replicas: usize,
    /// `_wait_point=AFTER_SYNC`: nobody sees a commit before it is acknowledged. Else its own client does not hear of it.
    pub after_sync: bool,
    /// `_wait_no_replica`: commits also wait, until the timeout, while there are too few replicas.
    pub wait_no_replica: bool,
}

impl Default for SemiSyncSettings {
    fn default() -> SemiSyncSettings {
        SemiSyncSettings { enabled: false, timeout: Duration::from_secs(10), replicas: 1, after_sync: true, wait_no_replica: true }
    }
}

/// `Rpl_semi_sync_source_*`; times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SemiSyncStatus {
    /// Commits wait.
    pub on: bool,
    pub clients: u64,
    /// Acknowledgements received.
    pub net_waits: u64,
    /// How often the waiting was turned off by a timeout or for want of replicas.
    pub no_times: u64,
    /// Commits that were not acknowledged, and that were.
    pub no_tx: u64,
    pub yes_tx: u64,
    pub tx_waits: u64,
    pub tx_wait_time: u64,
    pub wait_sessions: u64,
}

pub struct SemiSync {
    engine: Engine,
    /// What every commit asks first.
    enabled: AtomicBool,
    state: Mutex<State>,
    /// The oldest waiting commit is another one, or it is over.
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Commits that ended while nobody waited.
    unwaited: AtomicU64,
}

#[derive(Default)]
struct State {
    settings: SemiSyncSettings,
    on: bool,
    stopped: bool,
    /// By connection, the last place that it has acknowledged.
    replicas: BTreeMap<u64, Option<Place>>,
    /// Transactions in the files that are not acknowledged, in order; while nobody waits, the last one.
    written: VecDeque<(Place, Lsn)>,
    /// Everything up to here is acknowledged, or was not waited for.
    acknowledged: Lsn,
    /// Commits that wait.
    waiting: BTreeMap<Lsn, Waiting>,
    counted: SemiSyncStatus,
}

struct Waiting {
    since: Instant,
    wakers: Vec<Waker>,
}

impl SemiSync {
    pub(super) fn new(engine: Engine) -> SemiSync {
        SemiSync {
            engine,
            enabled: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
            thread: Mutex::new(None),
            unwaited: AtomicU64::new(0),
        }
    }

    /// What is set, at present.
    pub fn settings(&self) -> SemiSyncSettings {
        self.state.lock().settings
    }

    /// What the status variables say.
    pub fn status(&self) -> SemiSyncStatus {
        let state = self.state.lock();
        SemiSyncStatus {
            on: state.on,
            clients: state.replicas.len() as u64,
            wait_sessions: state.waiting.len() as u64,
            no_tx: state.counted.no_tx + self.unwaited.load(Ordering::Relaxed),
            ..state.counted
        }
    }

    /// Changes the settings. What waits goes on waiting by the new ones, or ends if nobody is to wait any more.
    pub fn set(self: &Arc<Self>, settings: SemiSyncSettings) {
        {
            let mut state = self.state.lock();
            let was = std::mem::replace(&mut state.settings, settings);
            if state.stopped {
                return;
            }
            match (was.enabled, settings.enabled) {
                (false, true) => {
                    state.on = settings.wait_no_replica || state.replicas.len() >= settings.replicas;
                    // What was committed before is not waited for.
                    state.acknowledged = self.appended();
                    state.written.clear();
                }
                (true, false) => {
                    state.on = false;
                    state.end_waiting(|_| true, false);
                }
                _ => {}
            }
            self.move_gate(&state);
            self.enabled.store(settings.enabled, Ordering::SeqCst);
            self.changed.notify_all();
        }
        if settings.enabled {
            self.start();
        }
    }

    /// Every record that is in the log begins at or before this.
    fn appended(&self) -> Lsn {
        Lsn(self.engine.log_position().0.0.saturating_sub(1))
    }

    /// Behind the gate is what is not acknowledged, while commits wait for that before they are seen.
    fn move_gate(&self, state: &State) {
        let closed = state.on && state.settings.after_sync;
        self.engine.set_commit_gate(closed.then_some(state.acknowledged));
    }

    /// The thread that ends waits which take too long.
    fn start(self: &Arc<Self>) {
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return;
        }
        let weak = Arc::downgrade(self);
        let spawned = std::thread::Builder::new().name("hk-semi-sync".into()).spawn(move || {
            while let Some(semi_sync) = weak.upgrade()
                && semi_sync.watch()
            {}
        });
        match spawned {
            Ok(handle) => *thread = Some(handle),
            Err(e) => tracing::error!("cannot start the thread that ends waits for replicas: {e}"),
        }
    }

    /// Looks at the oldest commit that waits, once, or sleeps for a while. False: it is over.
    fn watch(&self) -> bool {
        let mut state = self.state.lock();
        if state.stopped {
            return false;
        }
        let oldest = state.waiting.first_key_value().map(|(_, waiting)| waiting.since);
        match oldest.map(|since| (since + state.settings.timeout).saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => {
                let (seconds, waiting) = (state.settings.timeout, state.waiting.len());
                tracing::warn!("no replica has acknowledged a commit for {seconds:?}: semi-synchronous replication is off, {waiting} commits go on");
                self.switch_off(&mut state);
            }
            // A moment at a time, so that the last owner of this is not kept by its own thread.
            left => drop(self.changed.wait_for(&mut state, left.unwrap_or(Duration::MAX).min(Duration::from_millis(500)))),
        }
        true
    }

    fn switch_off(&self, state: &mut State) {
        state.on = false;
        state.counted.no_times += 1;
        state.end_waiting(|_| true, false);
        if state.written.len() > 1 {
            state.written.drain(..state.written.len() - 1);
        }
        self.move_gate(state);
    }

    /// The server ends: nobody waits any more.
    pub fn stop(&self) {
        {
            let mut state = self.state.lock();
            self.enabled.store(false, Ordering::SeqCst);
            (state.stopped, state.on) = (true, false);
            state.end_waiting(|_| true, false);
            self.move_gate(&state);
            self.changed.notify_all();
        }
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }

    /// The files are gone: what was in them is acknowledged by nobody.
    pub(super) fn forget(&self) {
        let mut state = self.state.lock();
        state.written.clear();
        state.replicas.values_mut().for_each(|place| *place = None);
        state.end_waiting(|_| true, false);
        if state.settings.enabled {
            state.acknowledged = self.appended();
            self.move_gate(&state);
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Before the commit of a transaction of the binary log: what it is to wait for.
    pub(crate) fn prepare(&self, txn: &mut Txn) {
        let state = self.state.lock();
        match state.on {
            true if state.settings.after_sync => txn.wait_for_gate(),
            // Replicas read what is durable.
            true => txn.wait_for_disk(),
            false => {}
        }
    }

    /// As `prepare`, of a record that nobody sees: a preparation, a rollback of what is prepared.
    pub(crate) fn prepare_unseen(&self, txn: &mut Txn) {
        if self.state.lock().on {
            txn.wait_for_disk();
        }
    }

    /// A transaction of the binary log has its record in the log. `None`: nobody waits for replicas.
    pub(crate) fn begin(self: &Arc<Self>, lsn: Option<Lsn>) -> Option<ReplicaWait> {
        if !self.is_enabled() {
            return None;
        }
        let lsn = lsn?;
        let mut state = self.state.lock();
        if !state.on {
            drop(state);
            self.unwaited.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        if lsn <= state.acknowledged {
            state.counted.yes_tx += 1;
            return None;
        }
        let first = state.waiting.is_empty();
        state.waiting.insert(lsn, Waiting { since: Instant::now(), wakers: Vec::new() });
        if first {
            self.changed.notify_all();
        }
        Some(ReplicaWait { semi_sync: self.clone(), lsn })
    }

    /// The writer has put a transaction into the files; readers see it later.
    pub(super) fn note_written(&self, lsn: Lsn, end: Place) {
        if !self.enabled.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        if !state.on {
            state.written.clear();
        }
        // Written again after an error of the writer.
        while state.written.back().is_some_and(|(_, last)| *last >= lsn) {
            state.written.pop_back();
        }
        state.written.push_back((end, lsn));
    }

    /// Whether a replica is to acknowledge the event that ends there.
    pub fn wants_acknowledgement(&self, file: u64, end: u64) -> bool {
        let state = self.state.lock();
        match state.on {
            true => state.written.binary_search_by_key(&(file, end), |(place, _)| *place).is_ok(),
            false => state.written.back().is_some_and(|(place, _)| *place == (file, end)),
        }
    }

    /// A replica that acknowledges reads from now on.
    pub fn add_replica(&self, connection: u64) {
        self.state.lock().replicas.insert(connection, None);
    }

    /// A replica's connection has ended. Too few that are left may switch waiting off (`wait_no_replica`).
    pub fn remove_replica(&self, connection: u64) {
        let mut state = self.state.lock();
        state.replicas.remove(&connection);
        let SemiSyncSettings { replicas, wait_no_replica, .. } = state.settings;
        if state.on && !wait_no_replica && state.replicas.len() < replicas {
            tracing::warn!("too few replicas are left: semi-synchronous replication is off");
            self.switch_off(&mut state);
        }
    }

    /// A replica has everything up to the end of an event.
    pub fn acknowledge(&self, connection: u64, file: u64, end: u64) {
        let mut state = self.state.lock();
        state.counted.net_waits += 1;
        let Some(place) = state.replicas.get_mut(&connection) else { return };
        *place = (*place).max(Some((file, end)));
        let wanted = state.settings.replicas;
        let mut places: Vec<Place> = state.replicas.values().filter_map(|place| *place).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        let Some(acknowledged) = places.get(wanted - 1).copied() else { return };
        let done = state.written.partition_point(|(place, _)| *place <= acknowledged);
        let Some((_, lsn)) = state.written.drain(..done).next_back() else { return };
        state.acknowledged = state.acknowledged.max(lsn);
        if state.on {
            state.end_waiting(|waiting| waiting <= lsn, true);
        } else if state.settings.enabled && state.written.is_empty() {
            tracing::info!("replicas have caught up: semi-synchronous replication is on");
            state.on = true;
            // What is in the log already is not waited for: who committed it has asked for the gate while waiting was on before, may have been told since not to
            // wait, and is not among those that the timeout ends.
            state.acknowledged = state.acknowledged.max(self.appended());
        }
        self.move_gate(&state);
    }
}

impl State {
    fn end_waiting(&mut self, ended: impl Fn(Lsn) -> bool, acknowledged: bool) {
        let now = Instant::now();
        while let Some(first) = self.waiting.first_entry().filter(|entry| ended(*entry.key())) {
            let waiting = first.remove();
            match acknowledged {
                true => self.counted.yes_tx += 1,
                false => self.counted.no_tx += 1,
            }
            self.counted.tx_waits += 1;
            self.counted.tx_wait_time += now.saturating_duration_since(waiting.since).as_micros() as u64;
            waiting.wakers.into_iter().for_each(Waker::wake);
        }
    }
}

/// A commit's wait for replicas. Resolves when they have acknowledged it, when nobody waits any more, or at a KILL.
pub(crate) struct ReplicaWait {
    semi_sync: Arc<SemiSync>,
    lsn: Lsn,
}

impl ReplicaWait {
    /// For the session that `interrupt` ends.
    pub async fn wait(self, interrupt: &Interrupt, progress: &Progress) {
        progress.enter(Stage::WaitingForReplica, 0);
        std::future::poll_fn(|cx| {
            interrupt.wake_on_raise(cx.waker());
            if interrupt.is_raised() { Poll::Ready(()) } else { self.poll_wait(cx.waker()) }
        })
        .await;
        progress.enter(Stage::Executing, 0);
    }

    /// On this thread, as `Engine::on_blocking` has it.
    pub fn wait_blocking(self) {
        struct Thread(std::thread::Thread);
        impl Wake for Thread {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        self.semi_sync.engine.block(&mut || {
            let waker = Arc::new(Thread(std::thread::current())).into();
            while self.poll_wait(&waker).is_pending() {
                std::thread::park();
            }
        });
    }

    fn poll_wait(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.semi_sync.state.lock();
        let Some(waiting) = state.waiting.get_mut(&self.lsn) else { return Poll::Ready(()) };
        if !waiting.wakers.iter().any(|known| known.will_wake(waker)) {
            waiting.wakers.push(waker.clone());
        }
        Poll::Pending
    }
}

