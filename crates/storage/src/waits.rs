//! Why a statement was slow: what it waited for, how often and how long, kept apart from the time it worked.
//!
//! A session has one [`Waits`]. While its statement runs on a thread, the thread knows it ([`Waits::attend`], [`Waits::work`]), and the few
//! places where a thread or a future really waits add to it. Who waits for nothing reads no clock; a thread of the engine's own (cleaner,
//! checkpoint, purge) is nobody's and is not counted.
//!
//! A wait inside a wait belongs to the outer one: a page that is written because the log is full is a wait for the log.
//!
//! Threads that help a statement may outlive it, if it fails. The next statement then gets a [`Waits`] of its own, and what they add is lost with the old one.
//!
//! Time comes from the machine's clock and not from the engine's `Clock`: nothing depends on these figures, they are for people.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::task::Poll;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use parking_lot::Mutex;

use crate::disk::thread_cpu;
use crate::ids::IndexId;
use crate::page::{PageType, header, slotted::Node};
use crate::sync::Arc;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum WaitKind {
    /// A page's latch, once spinning for it has not helped. Which index and which use of the page: [`LatchWaits`].
    Latch,
    /// A row lock of another transaction.
    RowLock,
    /// A table's metadata lock. The owner of the tables counts it.
    TableLock,
    /// The log: for a commit to be durable, for room in its buffer or its files.
    Log,
    /// A page that comes from disk, read by this thread or by another one.
    PageRead,
    /// Pages that the statement writes itself: old ones to get a frame, those of a bulk load, which a thread of its own writes meanwhile.
    PageWrite,
    /// Nothing of the engine's: SLEEP(), GET_LOCK().
    Pause,
}

impl WaitKind {
    /// In the order in which they are listed.
    pub const ALL: [WaitKind; 7] =
        [WaitKind::Latch, WaitKind::RowLock, WaitKind::TableLock, WaitKind::Log, WaitKind::PageRead, WaitKind::PageWrite, WaitKind::Pause];
}

/// Waits of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSum {
    pub count: u64,
    pub nanos: u64,
}

impl WaitSum {
    fn add(&mut self, other: WaitSum) {
        self.count += other.count;
        self.nanos += other.nanos;
    }
}

/// Syncs of the log that the commits of a statement waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitSyncs {
    pub count: u64,
    /// Commits that they made durable, those of others too.
    pub commits: u64,
    /// How long they took.
    pub nanos: u64,
}

impl CommitSyncs {
    /// Adds those of another statement.
    pub fn add(&mut self, other: CommitSyncs) {
        self.count += other.count;
        self.commits += other.commits;
        self.nanos += other.nanos;
    }
}

/// What a page is that was latched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatchedPage {
    Leaf,
    Inner,
    /// Part of a long value.
    Overflow,
    /// Extent maps and the directory of trees. They are of no index: their waits have index 0.
    Space,
}

/// How it was latched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatchMode {
    Shared,
    Exclusive,
    /// Exclusive for a structure modification, which goes before everybody else.
    Smo,
}

/// The class of a latch, as `leaf exclusive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LatchPlace {
    pub index: IndexId,
    pub page: LatchedPage,
    pub mode: LatchMode,
}

impl LatchPlace {
    /// Of a page that the caller has latched.
    pub(crate) fn of(page: &[u8], mode: LatchMode) -> LatchPlace {
        let ty = header::page_type(page);
        let (index, page) = if ty == PageType::Tree as u8 {
            (header::index_id(page), if Node(page).level() == 0 { LatchedPage::Leaf } else { LatchedPage::Inner })
        } else if ty == PageType::Overflow as u8 {
            (header::index_id(page), LatchedPage::Overflow)
        } else {
            (IndexId(0), LatchedPage::Space)
        };
        LatchPlace { index, page, mode }
    }
}

impl fmt::Display for LatchPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = match self.page {
            LatchedPage::Leaf => "leaf",
            LatchedPage::Inner => "inner",
            LatchedPage::Overflow => "overflow",
            LatchedPage::Space => "space",
        };
        let mode = match self.mode {
            LatchMode::Shared => "shared",
            LatchMode::Exclusive => "exclusive",
            LatchMode::Smo => "smo",
        };
        write!(f, "{page} {mode}")
    }
}

/// Waits for the latches of one class of one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatchWaits {
    pub place: LatchPlace,
    pub sum: WaitSum,
}

#[derive(Default)]
struct Sum {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Sum {
    fn add(&self, sum: WaitSum) {
        self.count.fetch_add(sum.count, Ordering::Relaxed);
        self.nanos.fetch_add(sum.nanos, Ordering::Relaxed);
    }

    fn get(&self) -> WaitSum {
        WaitSum { count: self.count.load(Ordering::Relaxed), nanos: self.nanos.load(Ordering::Relaxed) }
    }

    fn clear(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.nanos.store(0, Ordering::Relaxed);
    }
}

/// Classes of latches that one statement tells apart; what comes later is in its sum only.
const PLACES_MAX: usize = 32;
const SHARDS: usize = 8;

/// What all statements of an engine waited for, since it was opened.
#[derive(Default)]
pub(crate) struct WaitTotals {
    kinds: [Sum; WaitKind::ALL.len()],
    latches: [Mutex<AHashMap<LatchPlace, WaitSum>>; SHARDS],
    next: AtomicUsize,
}

impl WaitTotals {
    pub fn get(&self) -> [WaitSum; WaitKind::ALL.len()] {
        WaitKind::ALL.map(|kind| self.kinds[kind as usize].get())
    }

    /// The longest first.
    pub fn latches(&self) -> Vec<LatchWaits> {
        let mut sums: AHashMap<LatchPlace, WaitSum> = AHashMap::new();
        for shard in &self.latches {
            for (place, sum) in shard.lock().iter() {
                sums.entry(*place).or_default().add(*sum);
            }
        }
        longest_first(sums.into_iter().map(|(place, sum)| LatchWaits { place, sum }).collect())
    }

    /// The index is gone.
    pub fn forget(&self, index: IndexId) {
        for shard in &self.latches {
            shard.lock().retain(|place, _| place.index != index);
        }
    }
}

fn longest_first(mut waits: Vec<LatchWaits>) -> Vec<LatchWaits> {
    waits.sort_by_key(|w| (std::cmp::Reverse(w.sum.nanos), w.place));
    waits
}

/// What the present statement of one session waited for. Others may read it at any time.
pub struct Waits {
    totals: Arc<WaitTotals>,
    shard: usize,
    /// Something is not zero.
    used: AtomicBool,
    kinds: [Sum; WaitKind::ALL.len()],
    latches: Mutex<Vec<LatchWaits>>,
    /// Of the waits, nanoseconds in which a thread was held.
    held: AtomicU64,
    /// Nanoseconds in which the statement's future was not being polled, or a thread of the statement's waited for another one.
    away: AtomicU64,
    /// Nanoseconds of other threads in its service.
    helped: AtomicU64,
    /// While processor time is measured: what the clock of the thread that runs the statement said when it began, and nanoseconds so far.
    cpu_mark: AtomicU64,
    cpu: AtomicU64,
    /// Of that, what other threads in its service had.
    cpu_helping: AtomicU64,
    /// Of both, what waits spent: a write is a wait for the log or a page, whatever the system does for it.
    cpu_waiting: AtomicU64,
    /// Bytes of the binary log's events that it has made.
    binlog_bytes: AtomicU64,
    /// As `CommitSyncs` has them.
    syncs: AtomicU64,
    synced_commits: AtomicU64,
    sync_nanos: AtomicU64,
}

/// A statement's time, taken apart. All in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSplit {
    pub elapsed: u64,
    /// On a processor, but for what waits do there. More than `elapsed` if several threads worked. If it was not measured: the time of the statement's threads less
    /// their waits, which includes waits for a free processor.
    pub cpu: u64,
    /// Of that, what other threads than the session's had; 0 if it was not measured.
    pub cpu_helping: u64,
    /// By [`WaitKind`].
    pub waits: [WaitSum; WaitKind::ALL.len()],
    /// The latch waits by index and class, the longest first.
    pub latches: Vec<LatchWaits>,
    /// No time, but what some of it went into: bytes of the binary log's events that the statement has made. See [`Waits::note_binlog_bytes`].
    pub binlog_bytes: u64,
    /// What its waits for the log were for, as far as they were for commits.
    pub syncs: CommitSyncs,
}

impl TimeSplit {
    /// The waits of a kind.
    pub fn of(&self, kind: WaitKind) -> WaitSum {
        self.waits[kind as usize]
    }

    /// What is left of `elapsed`: waits for a free processor, for the client, for threads that work for the statement.
    pub fn other(&self) -> u64 {
        let known: u64 = self.waits.iter().map(|w| w.nanos).sum();
        self.elapsed.saturating_sub(known).saturating_sub(self.cpu)
    }
}

thread_local! {
    /// Whose statement this thread is working on.
    static CURRENT: RefCell<Option<Arc<Waits>>> = const { RefCell::new(None) };
    /// A wait is being counted.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Waits {
    pub(crate) fn new(totals: Arc<WaitTotals>) -> Arc<Waits> {
        let shard = totals.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        Arc::new(Waits {
            totals,
            shard,
            used: AtomicBool::new(false),
            kinds: Default::default(),
            latches: Mutex::default(),
            held: AtomicU64::new(0),
            away: AtomicU64::new(0),
            helped: AtomicU64::new(0),
            cpu_mark: AtomicU64::new(0),
            cpu: AtomicU64::new(0),
            cpu_helping: AtomicU64::new(0),
            cpu_waiting: AtomicU64::new(0),
            binlog_bytes: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            synced_commits: AtomicU64::new(0),
            sync_nanos: AtomicU64::new(0),
        })
    }

    /// The statement that this thread works for has waited for a sync that made so many commits durable.
    pub(crate) fn note_sync(commits: u64, took: Duration) {
        CURRENT.with_borrow(|current| {
            if let Some(waits) = current {
                waits.add_to(&waits.syncs, 1);
                waits.add_to(&waits.synced_commits, commits);
                waits.add_to(&waits.sync_nanos, nanos(took));
            }
        });
    }

    /// The statement that this thread works for has made so many bytes of events for the binary log.
    pub fn note_binlog_bytes(bytes: u64) {
        if bytes > 0 {
            CURRENT.with_borrow(|current| {
                if let Some(waits) = current {
                    waits.add_to(&waits.binlog_bytes, bytes);
                }
            });
        }
    }

    /// The one that this thread is working for.
    pub fn current() -> Option<Arc<Waits>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// A new statement of the session that keeps `self` begins: all is zero, and processor time is not measured. What threads still add that helped
    /// the one before goes nowhere: `self` is then another one, as is the one that this thread works for if that was it.
    pub fn next_statement(self: &mut Arc<Self>) {
        let here = CURRENT.with_borrow(|current| current.as_ref().is_some_and(|current| Arc::ptr_eq(current, self)));
        if Arc::strong_count(self) == 1 + usize::from(here) {
            // With the release of a reference by its last helper: what that added is there to be cleared.
            fence(Ordering::Acquire);
            return self.clear();
        }
        *self = Waits::new(self.totals.clone());
        if here {
            CURRENT.set(Some(self.clone()));
        }
    }

    pub(crate) fn clear(&self) {
        if !self.any() {
            return;
        }
        self.used.store(false, Ordering::Relaxed);
        self.kinds.iter().for_each(Sum::clear);
        self.latches.lock().clear();
        let times = [&self.held, &self.away, &self.helped, &self.cpu_mark, &self.cpu, &self.cpu_helping, &self.cpu_waiting];
        let others = [&self.binlog_bytes, &self.syncs, &self.synced_commits, &self.sync_nanos];
        times.into_iter().chain(others).for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    fn add_to(&self, counter: &AtomicU64, nanos: u64) {
        counter.fetch_add(nanos, Ordering::Relaxed);
        self.used.store(true, Ordering::Relaxed);
    }

    /// `held`: how long of it a thread was kept.
    fn add(&self, kind: WaitKind, waited: Duration, held: Duration) {
        let sum = WaitSum { count: 1, nanos: nanos(waited) };
        self.kinds[kind as usize].add(sum);
        self.totals.kinds[kind as usize].add(sum);
        self.add_to(&self.held, nanos(held));
    }

    /// A wait ends that began when the thread had had so much processor time.
    fn add_waiting(&self, cpu: Option<u64>) {
        if let Some(began) = cpu {
            self.add_to(&self.cpu_waiting, thread_cpu().saturating_sub(began));
        }
    }

    fn add_latch(&self, place: LatchPlace, sum: WaitSum) {
        let mut latches = self.latches.lock();
        match latches.iter().position(|w| w.place == place) {
            Some(at) => latches[at].sum.add(sum),
            None if latches.len() < PLACES_MAX => latches.push(LatchWaits { place, sum }),
            None => {}
        }
        drop(latches);
        self.totals.latches[self.shard].lock().entry(place).or_default().add(sum);
    }

    /// Polls the statement's future with this thread known as its own, and notes how long nobody polled it.
    pub async fn attend<F: Future>(self: Arc<Self>, statement: F) -> F::Output {
        let mut statement = pin!(statement);
        let mut left: Option<Instant> = None;
        // Handed to the thread and back: to count one more reference at each poll would be two accesses to shared memory.
        let mut mine = Some(self);
        poll_fn(|cx| {
            if let (Some(left), Some(waits)) = (left.take(), &mine) {
                waits.come_back(left);
            }
            let here = Here { before: CURRENT.replace(mine.take()) };
            let answer = statement.as_mut().poll(cx);
            mine = here.leave();
            if answer.is_pending() {
                left = Some(Instant::now());
                mine.iter().for_each(|waits| waits.take_cpu());
            }
            answer
        })
        .await
    }

    /// The statement's future is polled again, which it was not since `left`.
    fn come_back(&self, left: Instant) {
        self.add_to(&self.away, nanos(left.elapsed()));
        if self.measures_cpu() {
            self.cpu_mark.store(thread_cpu(), Ordering::Relaxed);
        }
    }

    /// As `attend`, for a future that works for the statement beside it, on other threads.
    pub async fn assist<F: Future>(self: &Arc<Self>, helper: F) -> F::Output {
        let mut helper = pin!(helper);
        poll_fn(|cx| self.work(|| helper.as_mut().poll(cx))).await
    }

    /// Does something for the statement on another thread than its own: what is waited for meanwhile is the statement's, and so is the time.
    pub fn work<T>(self: &Arc<Self>, f: impl FnOnce() -> T) -> T {
        let (began, cpu) = (Instant::now(), self.measures_cpu().then(thread_cpu));
        let here = enter(self);
        let done = f();
        drop(here);
        self.add_to(&self.helped, nanos(began.elapsed()));
        if let Some(cpu) = cpu {
            let spent = thread_cpu().saturating_sub(cpu);
            self.add_to(&self.cpu, spent);
            self.add_to(&self.cpu_helping, spent);
        }
        done
    }

    /// See [`Waits::measure_cpu`].
    pub fn measures_cpu(&self) -> bool {
        self.cpu_mark.load(Ordering::Relaxed) != 0
    }

    /// From now on processor time is measured, which costs two system calls each time the statement comes to or leaves a thread. To be called in
    /// the statement's future.
    pub fn measure_cpu(&self) {
        self.cpu.store(0, Ordering::Relaxed);
        self.cpu_helping.store(0, Ordering::Relaxed);
        self.cpu_waiting.store(0, Ordering::Relaxed);
        self.cpu_mark.store(thread_cpu().max(1), Ordering::Relaxed);
        self.used.store(true, Ordering::Relaxed);
    }

    fn take_cpu(&self) {
        let mark = self.cpu_mark.load(Ordering::Relaxed);
        if mark != 0 {
            let now = thread_cpu();
            self.add_to(&self.cpu, now.saturating_sub(mark));
            self.cpu_mark.store(now, Ordering::Relaxed);
        }
    }

    /// True once something was noted since `clear`.
    pub fn any(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// The time since the last `clear`, which is `elapsed` ago. To be called in the statement's future.
    pub fn split(&self, elapsed: Duration) -> TimeSplit {
        let elapsed = nanos(elapsed);
        if !self.any() {
            return TimeSplit { elapsed, cpu: elapsed, ..TimeSplit::default() };
        }
        self.take_cpu();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let cpu = if self.measures_cpu() {
            load(&self.cpu).saturating_sub(load(&self.cpu_waiting))
        } else {
            (elapsed + load(&self.helped)).saturating_sub(load(&self.away)).saturating_sub(load(&self.held))
        };
        TimeSplit {
            elapsed,
            cpu,
            cpu_helping: load(&self.cpu_helping).min(cpu),
            waits: WaitKind::ALL.map(|kind| self.kinds[kind as usize].get()),
            latches: longest_first(self.latches.lock().clone()),
            binlog_bytes: load(&self.binlog_bytes),
            syncs: CommitSyncs { count: load(&self.syncs), commits: load(&self.synced_commits), nanos: load(&self.sync_nanos) },
        }
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waits").field("kinds", &WaitKind::ALL.map(|kind| self.kinds[kind as usize].get())).finish()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The thread works for `waits` until the answer is dropped.
fn enter(waits: &Arc<Waits>) -> Here {
    Here { before: CURRENT.replace(Some(waits.clone())) }
}

/// What the thread worked for before, to be put back.
struct Here {
    before: Option<Arc<Waits>>,
}

impl Here {
    /// Puts it back; the answer is what the thread worked for meanwhile.
    fn leave(mut self) -> Option<Arc<Waits>> {
        let before = self.before.take();
        std::mem::forget(self);
        CURRENT.replace(before)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// This thread waits until the answer is dropped. Nothing is counted, and no clock is read, on a thread that works for no statement or
/// inside another wait.
pub fn blocked(kind: WaitKind) -> Blocked {
    let mut cpu = None;
    let counts = !INSIDE.get() && CURRENT.with_borrow(|current| {
        cpu = current.as_ref().and_then(|waits| waits.measures_cpu().then(thread_cpu));
        current.is_some()
    });
    if counts {
        INSIDE.set(true);
    }
    Blocked { kind, began: counts.then(Instant::now), cpu }
}

/// Does what only waits for other threads that work for the same statement: their time counts, this thread's does not.
pub fn for_helpers<T>(wait: impl FnOnce() -> T) -> T {
    let waits = if INSIDE.get() { None } else { Waits::current() };
    let Some(waits) = waits else { return wait() };
    let began = Instant::now();
    let done = wait();
    waits.add_to(&waits.away, nanos(began.elapsed()));
    done
}

/// See [`blocked`].
pub struct Blocked {
    kind: WaitKind,
    began: Option<Instant>,
    /// The thread's processor time then, if that is measured.
    cpu: Option<u64>,
}

impl Blocked {
    /// Ends the wait and says how long it was; 0 if it is not counted.
    pub(crate) fn end(mut self) -> u64 {
        self.finish()
    }

    fn finish(&mut self) -> u64 {
        let Some(began) = self.began.take() else { return 0 };
        let waited = began.elapsed();
        INSIDE.set(false);
        CURRENT.with_borrow(|current| {
            if let Some(waits) = current {
                waits.add(self.kind, waited, waited);
                waits.add_waiting(self.cpu);
            }
        });
        nanos(waited)
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The latch of a page was waited for: by whose statement, `Blocked` has noted.
pub(crate) fn note_latch(place: LatchPlace, sum: WaitSum) {
    CURRENT.with_borrow(|current| current.iter().for_each(|waits| waits.add_latch(place, sum)));
}

/// A wait of a future: begun on one thread, ended on the same or another one. Counted, for the statement whose thread began it, when it is
/// dropped.
pub struct FutureWait(Option<Counting>);

struct Counting {
    kind: WaitKind,
    waits: Arc<Waits>,
    began: Instant,
    held: Duration,
    /// When the thread that was kept last was let go.
    last: Option<Instant>,
}

/// Puts back what `INSIDE` was, after a panic too.
struct Outside(bool);

impl Drop for Outside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

impl FutureWait {
    /// A wait begins of the statement that the thread works for now; of no statement nothing is counted. It ends when this is dropped.
    pub fn begin(kind: WaitKind) -> FutureWait {
        FutureWait(Waits::current().map(|waits| Counting { kind, waits, began: Instant::now(), held: Duration::ZERO, last: None }))
    }

    /// The wait kept a thread all the time.
    pub(crate) fn all_held(&mut self) {
        if let Some(counting) = &mut self.0 {
            counting.held = counting.began.elapsed();
        }
    }

    /// Does what keeps the thread for a part of the wait, the first time from its beginning on; waits inside it are not counted again.
    pub(crate) fn hold<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let Some(counting) = &mut self.0 else { return f() };
        let began = if counting.last.is_none() { counting.began } else { Instant::now() };
        let cpu = counting.waits.measures_cpu().then(thread_cpu);
        let outside = Outside(INSIDE.replace(true));
        let done = f();
        drop(outside);
        let now = Instant::now();
        counting.held += now.saturating_duration_since(began);
        counting.last = Some(now);
        counting.waits.add_waiting(cpu);
        done
    }

    /// The wait was over when `hold` last ended.
    pub(crate) fn end_with_hold(mut self) {
        if let Some(Counting { kind, waits, began, held, last }) = self.0.take() {
            waits.add(kind, last.map_or(Duration::ZERO, |last| last.saturating_duration_since(began)), held);
        }
    }
}

impl Drop for FutureWait {
    fn drop(&mut self) {
        if let Some(Counting { kind, waits, began, held, .. }) = self.0.take() {
            waits.add(kind, began.elapsed(), held);
        }
    }
}

/// Polls a future that may have to wait: once it says so, the wait is counted as of `kind`.
pub async fn waiting<F: Future>(kind: WaitKind, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut wait = None;
    poll_fn(|cx| {
        let answer = future.as_mut().poll(cx);
        if matches!(answer, Poll::Pending) && wait.is_none() {
            wait = Some(FutureWait::begin(kind));
        }
        answer
    })
    .await
}
