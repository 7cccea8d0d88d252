//! Reports give way when sessions wait for a processor.
//!
//! While queries run on the engine's threads, a thread of its own asks every few milliseconds how long a task of the sessions' runtime waits for
//! a thread. When that is long, and sessions have other statements than reports, the reports' workers rest between batches of their scans, for so
//! long that together they work as much as fewer workers would, down to one ([`Controller`]). A rest is short and waits for nobody, so no worker
//! keeps another one waiting for ever, whatever the plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

use super::parallel::Workers;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(10);
/// Longer delays are as bad.
const LONGEST_DELAY: Duration = Duration::from_millis(100);
/// Late samples, with few others between them, before reports give way.
const LATE: u32 = 2;
/// Samples in time, one after the other, before they have another worker back.
const IN_TIME: u32 = 8;
/// Samples without other statements before reports have all workers back.
const QUIET: u32 = 16;

/// The timer's unit is a millisecond.
const SHORTEST_REST: Duration = Duration::from_millis(2);
const LONGEST_REST: Duration = Duration::from_millis(50);

/// One look at the sessions.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// How long a task waited for a thread.
    delay: Duration,
    /// Sessions began statements that are no reports.
    others: bool,
    /// Workers that reports have.
    workers: usize,
}

/// Decides how many workers' work reports may do. It halves when sessions wait, and comes back one by one.
#[derive(Debug, Default)]
struct Controller {
    /// None: all of them.
    allowed: Option<usize>,
    late: u32,
    in_time: u32,
    quiet: u32,
}

impl Controller {
    /// Takes the next sample. True: reports may do less than before.
    fn next(&mut self, sample: Sample, limit: Duration) -> bool {
        if !sample.others {
            self.quiet += 1;
            if self.quiet >= QUIET {
                *self = Controller { quiet: QUIET, ..Controller::default() };
            }
            return false;
        }
        self.quiet = 0;
        if sample.delay <= limit {
            self.in_time += 1;
            if self.in_time >= IN_TIME {
                (self.in_time, self.late) = (0, 0);
                self.allowed = self.allowed.map(|allowed| allowed + 1).filter(|allowed| *allowed < sample.workers);
            }
            return false;
        }
        self.in_time = 0;
        self.late += 1;
        if self.late < LATE {
            return false;
        }
        self.late = 0;
        let before = self.allowed.unwrap_or(usize::MAX).min(sample.workers.max(1));
        let allowed = (before / 2).max(1);
        if allowed == before {
            return false;
        }
        self.allowed = Some(allowed);
        true
    }

    /// How long each of so many workers rests, in thousandths of the time that it works.
    fn rest(&self, workers: usize) -> u64 {
        match self.allowed {
            Some(allowed) if allowed < workers => (workers * 1000 / allowed - 1000) as u64,
            _ => 0,
        }
    }
}

/// More threads than that share counters.
const COUNTERS: usize = 16;

/// A number that many threads add to, each where the others do not.
#[derive(Default)]
struct Began([Counter; COUNTERS]);

#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicU64);

impl Began {
    fn add_one(&self) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % COUNTERS;
        }
        MINE.with(|mine| self.0[*mine].0.fetch_add(1, Ordering::Relaxed));
    }

    fn sum(&self) -> u64 {
        self.0.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }
}

/// Makes the reports of an engine give way.
pub(crate) struct GiveWay {
    workers: Arc<Workers>,
    /// A report runs: statements are counted.
    counting: AtomicBool,
    /// Statements that sessions have begun while they were counted, reports among them.
    statements: Began,
    state: Mutex<State>,
    changed: Condvar,
    /// `highkey_session_delay_limit` in microseconds; 0: reports do not give way.
    limit: AtomicU64,
    /// As [`Controller::rest`].
    rest: AtomicU64,
    /// At the last look sessions had begun statements that are no reports.
    others: AtomicBool,
    times: AtomicU64,
    rested: AtomicU64,
    delay: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Reports that run, and those that have been begun while statements were counted.
    running: usize,
    begun: u64,
    /// Where the session of the latest one runs.
    sessions: Option<Handle>,
    watched: bool,
    stopped: bool,
}

impl GiveWay {
    pub fn new(workers: Arc<Workers>) -> Arc<GiveWay> {
        Arc::new(GiveWay {
            workers,
            counting: AtomicBool::new(false),
            statements: Began::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            limit: AtomicU64::new(0),
            rest: AtomicU64::new(0),
            others: AtomicBool::new(false),
            times: AtomicU64::new(0),
            rested: AtomicU64::new(0),
            delay: AtomicU64::new(0),
        })
    }

    /// A session begins a statement.
    pub fn note_statement(&self) {
        if self.counting.load(Ordering::Relaxed) {
            self.statements.add_one();
        }
    }

    /// Sessions had statements that are no reports when a report last looked.
    pub fn sessions_work(&self) -> bool {
        self.others.load(Ordering::Relaxed)
    }

    /// `highkey_session_delay_limit`, in microseconds.
    pub fn set_limit(&self, micros: u64) {
        if self.limit.swap(micros, Ordering::Relaxed) != micros {
            // Who has just seen the old one waits by now.
            drop(self.state.lock());
            self.changed.notify_one();
        }
    }

    /// A report begins, for a session on these threads.
    pub(crate) fn begin(self: &Arc<Self>, sessions: Handle) -> Report {
        let mut state = self.state.lock();
        state.running += 1;
        // The statement of the first one was not counted.
        state.begun += u64::from(self.counting.swap(true, Ordering::Relaxed));
        state.sessions = Some(sessions);
        if !state.watched && self.limit.load(Ordering::Relaxed) > 0 {
            let guard = self.clone();
            // Without it reports do not give way.
            state.watched = std::thread::Builder::new().name("highkey-giveway".into()).spawn(move || guard.watch()).is_ok();
        }
        drop(state);
        self.changed.notify_one();
        Report(self.clone())
    }

    /// Ends the thread that watches.
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_one();
    }

    fn watch(&self) {
        let mut controller = Controller::default();
        let mut before = self.begun_statements();
        loop {
            let Some(sessions) = self.until_reports_run(&mut controller) else { return };
            std::thread::sleep(INTERVAL);
            let Some(delay) = delay(&sessions) else { continue };
            self.delay.store(delay.as_micros() as u64, Ordering::Relaxed);
            let now = self.begun_statements();
            let workers = self.workers.running().max(self.state.lock().running);
            let others = now.0.saturating_sub(before.0) > now.1.saturating_sub(before.1);
            before = now;
            self.others.store(others, Ordering::Relaxed);
            let limit = Duration::from_micros(self.limit.load(Ordering::Relaxed));
            if controller.next(Sample { delay, others, workers }, limit) {
                self.times.fetch_add(1, Ordering::Relaxed);
            }
            self.rest.store(controller.rest(workers), Ordering::Relaxed);
        }
    }

    /// Where sessions run, once there is something to watch; None: never again.
    fn until_reports_run(&self, controller: &mut Controller) -> Option<Handle> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(sessions) = state.sessions.as_ref().filter(|_| self.limit.load(Ordering::Relaxed) > 0) {
                return Some(sessions.clone());
            }
            *controller = Controller::default();
            self.rest.store(0, Ordering::Relaxed);
            self.changed.wait(&mut state);
        }
    }

    /// All statements, and reports, that have begun beside a report.
    pub(crate) fn begun_statements(&self) -> (u64, u64) {
        let reports = self.state.lock().begun;
        (self.statements.sum(), reports)
    }

    /// `Highkey_report_gave_way`: how often reports were told to do less.
    pub fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// `Highkey_report_rest_us`: how long their workers have rested for it, in microseconds.
    pub fn rested_us(&self) -> u64 {
        self.rested.load(Ordering::Relaxed)
    }

    /// `Highkey_session_delay_us`: how long a task of the sessions waited for a thread when a report last looked, in microseconds.
    pub fn delay_us(&self) -> u64 {
        self.delay.load(Ordering::Relaxed)
    }
}

/// How long a task of the sessions waits for a thread; None: they are gone.
fn delay(sessions: &Handle) -> Option<Duration> {
    let (tell, told) = sync_channel(1);
    let asked = Instant::now();
    sessions.spawn(async move {
        // Nobody may wait for it any more.
        let _ = tell.send(asked.elapsed());
    });
    match told.recv_timeout(LONGEST_DELAY) {
        Ok(delay) => Some(delay),
        Err(RecvTimeoutError::Timeout) => Some(LONGEST_DELAY),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// A report that runs.
pub(crate) struct Report(Arc<GiveWay>);

impl Drop for Report {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.running -= 1;
        if state.running == 0 {
            state.sessions = None;
            self.0.counting.store(false, Ordering::Relaxed);
        }
    }
}

/// The rests of one worker of a scan.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Since it last rested or was asked to; None while no worker rests.
    since: Option<Instant>,
    /// What it owes.
    owed: Duration,
}

impl Pace {
    /// Between two batches: rests if reports are to give way.
    pub async fn rest(&mut self, give_way: &GiveWay) {
        if let Some((now, owed)) = self.due(give_way) {
            tokio::time::sleep(owed).await;
            self.has_rested(now, give_way);
        }
    }

    /// As `rest`, on a thread that may block.
    pub fn rest_blocking(&mut self, give_way: &GiveWay) {
        if let Some((now, owed)) = self.due(give_way) {
            std::thread::sleep(owed);
            self.has_rested(now, give_way);
        }
    }

    /// A rest to be taken now, and for how long.
    fn due(&mut self, give_way: &GiveWay) -> Option<(Instant, Duration)> {
        let rest = give_way.rest.load(Ordering::Relaxed);
        if rest == 0 {
            *self = Pace::default();
            return None;
        }
        let now = Instant::now();
        self.owes(now, rest).map(|owed| (now, owed))
    }

    fn has_rested(&mut self, since: Instant, give_way: &GiveWay) {
        let rested = since.elapsed();
        give_way.rested.fetch_add(rested.as_micros() as u64, Ordering::Relaxed);
        self.since = Some(since + rested);
    }

    /// How long to rest now, after the work since the last time.
    fn owes(&mut self, now: Instant, rest: u64) -> Option<Duration> {
        // Part of a long time was waiting for others.
        let worked = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since).min(LONGEST_REST));
        self.since = Some(now);
        self.owed += worked * rest as u32 / 1000;
        (self.owed >= SHORTEST_REST).then(|| std::mem::take(&mut self.owed).min(LONGEST_REST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(5);

    fn take(controller: &mut Controller, times: u32, millis: u64, others: bool, workers: usize) -> usize {
        let sample = Sample { delay: Duration::from_millis(millis), others, workers };
        (0..times).filter(|_| controller.next(sample, LIMIT)).count()
    }

    #[test]
    fn workers_halve_when_sessions_wait_and_come_back_one_by_one() {
        let mut controller = Controller::default();
        assert_eq!(take(&mut controller, 1, 20, true, 8), 0, "one late sample may be chance");
        assert_eq!(take(&mut controller, 1, 20, true, 8), 1);
        assert_eq!((controller.allowed, controller.rest(8)), (Some(4), 1000));
        assert_eq!(take(&mut controller, 2 * LATE, 20, true, 8), 2);
        assert_eq!((controller.allowed, controller.rest(8)), (Some(1), 7000));
        assert_eq!(take(&mut controller, 20, 20, true, 8), 0, "one worker always works");
        assert_eq!(controller.allowed, Some(1));
        for expected in 2..8 {
            take(&mut controller, IN_TIME, 1, true, 8);
            assert_eq!(controller.allowed, Some(expected));
        }
        take(&mut controller, IN_TIME, 1, true, 8);
        assert_eq!((controller.allowed, controller.rest(8)), (None, 0));
    }

    #[test]
    fn what_is_late_now_and_then_is_no_reason() {
        let mut controller = Controller::default();
        for _ in 0..10 {
            take(&mut controller, 1, 20, true, 4);
            assert_eq!(take(&mut controller, IN_TIME, 5, true, 4), 0);
        }
        assert_eq!(controller.allowed, None);
    }

    #[test]
    fn reports_alone_lose_nothing() {
        let mut controller = Controller::default();
        assert_eq!(take(&mut controller, 100, 90, false, 4), 0);
        assert_eq!(controller.rest(4), 0);
        // The sessions have gone to sleep.
        take(&mut controller, 4, 90, true, 4);
        assert_eq!(controller.rest(4), 3000);
        take(&mut controller, QUIET - 1, 90, false, 4);
        assert_eq!(controller.rest(4), 3000);
        take(&mut controller, 1, 90, false, 4);
        assert_eq!(controller.rest(4), 0);
    }

    #[test]
    fn one_worker_never_rests() {
        let mut controller = Controller::default();
        assert_eq!(take(&mut controller, 10, 90, true, 1), 0);
        assert_eq!(take(&mut controller, 10, 90, true, 0), 0);
        assert_eq!((controller.rest(1), controller.rest(0)), (0, 0));
        // Others have ended.
        take(&mut controller, 4, 90, true, 4);
        assert_eq!((controller.rest(4), controller.rest(1)), (3000, 0));
    }

    #[test]
    fn rests_are_in_proportion_to_work() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut pace = Pace::default();
        assert_eq!(pace.owes(at(0), 1000), None);
        assert_eq!(pace.owes(at(1), 1000), None);
        assert_eq!(pace.owes(at(3), 1000), Some(Duration::from_millis(3)));
        assert_eq!(pace.owes(at(4), 3000), Some(Duration::from_millis(3)));
        assert_eq!(pace.owes(at(4000), 3000), Some(LONGEST_REST));
    }

    #[test]
    fn the_thread_ends_with_its_engine() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let give_way = GiveWay::new(Arc::default());
        give_way.set_limit(1000);
        drop(give_way.begin(runtime.handle().clone()));
        assert!(give_way.state.lock().sessions.is_none());
        give_way.stop();
        while Arc::strong_count(&give_way) > 1 {
            std::thread::yield_now();
        }
        assert!(delay(runtime.handle()).is_some());
    }
}
