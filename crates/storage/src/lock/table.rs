//! The explicit locks: a sharded table of queues, keyed by (index, key).

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::task::Waker;
use std::time::Duration;

use ahash::AHashMap;
use crossbeam::utils::CachePadded;
use smallvec::SmallVec;

use super::owner::{Owner, Owners};
use super::ranges::Ranges;
use super::runs::{HeldRun, Neighbours, Runs};
use super::timer::Timer;
use super::wait::{LockError, Waiter, Wants};
use crate::disk::Clock;
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::txn::LockMode;

const SHARDS: usize = 128;
/// A transaction with so many locks on single keys keeps what comes more in runs. Few in tests, so that all of them meet runs.
const SINGLE_KEYS: usize = if cfg!(test) { 2 } else { 4000 };

/// A key and its index in one string of bytes: what locks and older versions are found by.
pub(crate) type RowKey = SmallVec<[u8; 64]>;

pub(crate) fn row_key(index: IndexId, key: &[u8]) -> RowKey {
    let mut row = RowKey::with_capacity(4 + key.len());
    row.extend_from_slice(&index.0.to_be_bytes());
    row.extend_from_slice(key);
    row
}

/// The parts of a `RowKey`.
pub(super) fn split_row(row: &[u8]) -> (IndexId, &[u8]) {
    let (index, key) = row.split_at(4);
    (IndexId(u32::from_be_bytes(index.try_into().expect("4 bytes"))), key)
}

/// What became of a request.
pub(crate) enum Answer {
    /// The lock is held until the transaction ends. `new`: it was not held before, not even in a weaker mode.
    Granted { new: bool },
    /// Somebody is in the way and the request was not to wait.
    Blocked,
    /// Queued. The caller leaves its latch and then starts the `LockWait`.
    Queued(Arc<Waiter>),
    /// The implicit holder ended meanwhile: look at the record again.
    Again,
}

/// Counters of the lock table since the start; times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockStats {
    pub waits: u64,
    pub current_waits: u64,
    pub wait_micros: u64,
    pub wait_micros_max: u64,
    pub deadlocks: u64,
    pub timeouts: u64,
    pub explicit_keys: u64,
    /// Range locks, by transaction and index.
    pub ranges: u64,
}

#[derive(Default)]
struct Counters {
    waits: AtomicU64,
    ended: AtomicU64,
    wait_micros: AtomicU64,
    wait_micros_max: AtomicU64,
    deadlocks: AtomicU64,
    timeouts: AtomicU64,
}

/// Called with the waiters of a circle and the victim's place among them.
pub(crate) type DeadlockWatcher = Box<dyn Fn(&[Arc<Waiter>], usize) + Send + Sync>;

pub(crate) struct LockTable {
    shards: Vec<CachePadded<Shard>>,
    hash: ahash::RandomState,
    pub owners: Owners,
    ranges: Ranges,
    runs: Runs,
    timer: Timer,
    search: Mutex<()>,
    deadlock_watcher: OnceLock<DeadlockWatcher>,
    deadlock_detect: AtomicBool,
    clock: Arc<dyn Clock>,
    counters: Counters,
}

#[derive(Default)]
struct Shard {
    /// Keys in the map. A writer that finds 0 has no explicit lock to respect: whoever locks a key does it under the latch of the
    /// key's leaf, so the count cannot rise for that key while the writer holds that latch (I4).
    keys: AtomicUsize,
    map: Mutex<AHashMap<Box<[u8]>, Queue>>,
}

#[derive(Default)]
struct Queue {
    granted: SmallVec<[Grant; 2]>,
    waiting: VecDeque<Arc<Waiter>>,
}

struct Grant {
    owner: Arc<Owner>,
    mode: LockMode,
}

pub(super) fn conflict(a: LockMode, b: LockMode) -> bool {
    a == LockMode::Exclusive || b == LockMode::Exclusive
}

/// The mode that a waiter in a key's queue asks for.
fn wanted(waiter: &Waiter) -> LockMode {
    match waiter.wants {
        Wants::Row(mode) => mode,
        Wants::Lock | Wants::Insert => unreachable!("waits for ranges have queues of their own"),
    }
}

impl Queue {
    fn held_by(&self, owner: TxnId) -> Option<LockMode> {
        self.granted.iter().find(|g| g.owner.id == owner).map(|g| g.mode)
    }

    /// Whether a holder other than `owner` is in the way.
    fn holder_conflicts(&self, owner: TxnId, mode: LockMode) -> bool {
        self.granted.iter().any(|g| g.owner.id != owner && conflict(g.mode, mode))
    }

    fn waiter_conflicts(&self, owner: TxnId, mode: LockMode) -> bool {
        self.waiting.iter().any(|w| w.owner.id != owner && conflict(wanted(w), mode))
    }

    /// Enters the lock in the queue and in its owner's list. False if the owner has ended (I3).
    fn grant(&mut self, key: &[u8], owner: &Arc<Owner>, mode: LockMode) -> bool {
        if let Some(grant) = self.granted.iter_mut().find(|g| g.owner.id == owner.id) {
            if mode == LockMode::Exclusive {
                grant.mode = mode;
            }
            return true;
        }
        let mut held = owner.held.lock();
        if held.released {
            return false;
        }
        held.keys.push(key.into());
        self.granted.push(Grant { owner: owner.clone(), mode });
        true
    }

    /// Grants from the front as far as possible. FIFO: the first that must go on waiting stops those behind it.
    fn grant_waiting(&mut self, wakers: &mut Vec<Waker>) {
        while let Some(waiter) = self.waiting.front() {
            if self.holder_conflicts(waiter.owner.id, wanted(waiter)) {
                return;
            }
            let waiter = self.waiting.pop_front().expect("looked at above");
            *waiter.owner.waiting.lock() = None;
            let granted = self.grant(&waiter.key, &waiter.owner, wanted(&waiter));
            debug_assert!(granted, "a transaction does not end while it waits");
            wakers.extend(waiter.resolve(Ok(())));
        }
    }

    fn is_empty(&self) -> bool {
        self.granted.is_empty() && self.waiting.is_empty()
    }
}

impl LockTable {
    pub fn new(clock: Arc<dyn Clock>, deadlock_detect: bool) -> Arc<LockTable> {
        Arc::new(LockTable {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            hash: ahash::RandomState::new(),
            owners: Owners::new(),
            ranges: Ranges::new(),
            runs: Runs::new(),
            timer: Timer::default(),
            search: Mutex::new(()),
            deadlock_watcher: OnceLock::new(),
            deadlock_detect: AtomicBool::new(deadlock_detect),
            clock,
            counters: Counters::default(),
        })
    }

    fn shard(&self, row: &[u8]) -> &Shard {
        let (index, key) = split_row(row);
        self.shard_of(index, key)
    }

    fn shard_of(&self, index: IndexId, key: &[u8]) -> &Shard {
        let mut hasher = self.hash.build_hasher();
        hasher.write_u32(index.0);
        hasher.write(key);
        &self.shards[hasher.finish() as usize % SHARDS]
    }

    /// Whether an explicit lock or an earlier waiter of another transaction keeps `owner` from writing the key.
    /// Called under the exclusive latch of the key's leaf.
    pub fn blocks_write(&self, owner: TxnId, index: IndexId, key: &[u8]) -> bool {
        if self.runs.conflicts(owner, index, key, LockMode::Exclusive) {
            return true;
        }
        let shard = self.shard_of(index, key);
        if shard.keys.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let row = row_key(index, key);
        let map = shard.map.lock();
        map.get(row.as_slice()).is_some_and(|q| match q.held_by(owner) {
            Some(LockMode::Exclusive) => false,
            Some(LockMode::Shared) => q.holder_conflicts(owner, LockMode::Exclusive),
            None => !q.is_empty(),
        })
    }

    /// A key gets a row that had none. Under the exclusive latch of its leaf.
    pub fn note_new_row(&self, index: IndexId, key: &[u8]) {
        self.runs.cut(index, key);
    }

    /// Whether another transaction holds or waits for an explicit lock on any key of the index. Called under the exclusive latch of the
    /// index's only page.
    pub fn any_in(&self, index: IndexId, owner: TxnId) -> bool {
        let prefix = index.0.to_be_bytes();
        let others = |q: &Queue| q.granted.iter().any(|g| g.owner.id != owner) || q.waiting.iter().any(|w| w.owner.id != owner);
        self.shards.iter().any(|shard| {
            shard.keys.load(Ordering::Relaxed) > 0 && shard.map.lock().iter().any(|(row, q)| row.starts_with(&prefix) && others(q))
        }) || self.runs.any_in(index, owner)
            || self.any_range_in(index, owner)
    }

    /// Whether there is any explicit lock on a key; as `is_wanted_exclusively`, for all keys at once.
    pub fn any_key(&self) -> bool {
        // In this order: a lock that goes into a run has an owner that is there first, and stays while the owner has not ended.
        self.shards.iter().any(|shard| shard.keys.load(Ordering::SeqCst) > 0) || !self.runs.is_empty()
    }

    /// Whether another transaction has the key exclusively by an explicit lock, or is in its queue for that. Asked by who has just taken a shared
    /// range that covers the key; see `range_forbids_lock`.
    pub fn is_wanted_exclusively(&self, owner: TxnId, index: IndexId, key: &[u8]) -> bool {
        let shard = self.shard_of(index, key);
        // In this order: see `any_key`.
        if shard.keys.load(Ordering::SeqCst) == 0 && !self.runs.may_have(index) {
            return false;
        }
        // With the mutex held nothing goes from the queue into a run or back.
        let map = shard.map.lock();
        let is_wanted = |q: &Queue| q.holder_conflicts(owner, LockMode::Shared) || q.waiter_conflicts(owner, LockMode::Shared);
        map.get(row_key(index, key).as_slice()).is_some_and(is_wanted) || self.runs.conflicts(owner, index, key, LockMode::Shared)
    }

    /// Whether anybody has an explicit lock on the key.
    pub fn is_held(&self, index: IndexId, key: &[u8]) -> bool {
        let shard = self.shard_of(index, key);
        shard.keys.load(Ordering::Relaxed) > 0 && shard.map.lock().get(row_key(index, key).as_slice()).is_some_and(|q| !q.granted.is_empty())
    }

    /// Whether the owner has an explicit exclusive lock on the key.
    pub fn holds_exclusively(&self, owner: TxnId, index: IndexId, key: &[u8]) -> bool {
        if self.runs.mode_of(owner, index, key) == Some(LockMode::Exclusive) {
            return true;
        }
        let map = self.shard_of(index, key).map.lock();
        map.get(row_key(index, key).as_slice()).is_some_and(|q| q.held_by(owner) == Some(LockMode::Exclusive))
    }

    /// Asks for a lock, under a latch of the key's leaf. `implicit` is the active transaction that the record belongs to, if that is
    /// another one: its implicit lock is made explicit first, so that its end wakes those who wait for it.
    pub fn acquire(
        &self,
        owner: &Arc<Owner>,
        index: IndexId,
        key: &[u8],
        mode: LockMode,
        implicit: Option<TxnId>,
        wait: bool,
    ) -> Answer {
        let row = row_key(index, key);
        let shard = self.shard(&row);
        let mut map = shard.map.lock();
        if !map.contains_key(row.as_slice()) {
            if implicit.is_some() && !wait {
                return Answer::Blocked;
            }
            map.insert(row.as_slice().into(), Queue::default());
            shard.keys.fetch_add(1, Ordering::SeqCst);
        }
        let queue = map.get_mut(row.as_slice()).expect("entered above");
        let answer = self.acquire_in(queue, owner, &row, mode, implicit, wait);
        if queue.is_empty() {
            map.remove(row.as_slice());
            shard.keys.fetch_sub(1, Ordering::Relaxed);
        }
        answer
    }

    fn acquire_in(
        &self,
        queue: &mut Queue,
        owner: &Arc<Owner>,
        row: &[u8],
        mode: LockMode,
        implicit: Option<TxnId>,
        wait: bool,
    ) -> Answer {
        let (index, key) = split_row(row);
        if let Some(holder) = implicit {
            if !wait {
                return Answer::Blocked;
            }
            let converted = self.owners.get(holder).is_some_and(|h| queue.grant(row, &h, LockMode::Exclusive));
            if !converted {
                return Answer::Again;
            }
            // I1: it may have had the row in a run before it changed it.
            self.runs.take(index, key, |id, _| id == holder);
        }
        let held = queue.held_by(owner.id).or_else(|| self.runs.mode_of(owner.id, index, key));
        debug_assert!(implicit.is_none() || held.is_none(), "I1: a key that another has changed is nobody else's");
        if held == Some(LockMode::Exclusive) || held == Some(mode) {
            return Answer::Granted { new: false };
        }
        if mode == LockMode::Exclusive && self.range_forbids_lock(owner.id, row) {
            return match wait {
                false => Answer::Blocked,
                true => self.wait_for_range(owner, index, Wants::Lock, key).map_or(Answer::Again, Answer::Queued),
            };
        }
        if !wait && self.runs.conflicts(owner.id, index, key, mode) {
            return Answer::Blocked;
        }
        for (holder, held) in self.runs.take(index, key, |holder, held| holder == owner.id || conflict(held, mode)) {
            // One that has ended has no locks any more.
            queue.grant(row, &holder, held);
        }
        // A holder that wants more goes ahead of those who wait: they wait for it in any case.
        let blocked = queue.holder_conflicts(owner.id, mode) || (held.is_none() && queue.waiter_conflicts(owner.id, mode));
        if !blocked {
            let granted = queue.grant(row, owner, mode);
            assert!(granted, "a transaction that has ended asks for no lock");
            return Answer::Granted { new: held.is_none() };
        }
        if !wait {
            return Answer::Blocked;
        }
        let waiter = Arc::new(Waiter::new(owner.clone(), row, Wants::Row(mode), self.clock.wall_micros()));
        *owner.waiting.lock() = Some(waiter.clone());
        if held.is_some() {
            queue.waiting.push_front(waiter.clone());
        } else {
            queue.waiting.push_back(waiter.clone());
        }
        Answer::Queued(waiter)
    }

    /// Locks a row in a run at once, for an owner that has runs on the index, if nobody else wants the row: whether it did not have the lock before.
    /// `None`: ask `acquire`. Called as `join_run`, of a record that no other open transaction has changed.
    pub fn lock_in_run(&self, owner: &Arc<Owner>, index: IndexId, key: &[u8], mode: LockMode, near: impl FnOnce() -> Neighbours) -> Option<bool> {
        if !self.runs.may_have(index) || owner.held.lock().keys.len() < SINGLE_KEYS {
            return None;
        }
        let shard = self.shard_of(index, key);
        let map = shard.map.lock();
        // As long as the mutex is held, who has shared a range that covers the key does not look at its locks.
        if (!map.is_empty() && map.contains_key(row_key(index, key).as_slice()))
            || (mode == LockMode::Exclusive && self.range_forbids_lock(owner.id, &row_key(index, key)))
        {
            return None;
        }
        self.runs.lock(owner.id, index, key, mode, near)
    }

    /// Keeps a lock that the owner has on a row in a run with its neighbours, if the owner has many and nobody else wants the row. Under the latch of
    /// the leaf that has them all.
    pub fn join_run(&self, owner: &Arc<Owner>, index: IndexId, key: &[u8], near: impl FnOnce() -> Neighbours) {
        if owner.held.lock().keys.len() <= SINGLE_KEYS {
            return;
        }
        let row = row_key(index, key);
        let shard = self.shard(&row);
        let mut map = shard.map.lock();
        let Some(queue) = map.get(row.as_slice()) else { return };
        let [Grant { owner: holder, mode }] = queue.granted.as_slice() else { return };
        if holder.id != owner.id || !queue.waiting.is_empty() {
            return;
        }
        if self.runs.add(owner, index, key, *mode, &near()) {
            owner.forget_key(&row);
            map.remove(row.as_slice());
            // After the run is there: see `any_key`.
            shard.keys.fetch_sub(1, Ordering::Release);
        }
    }

    /// A place in a queue is waited for, and not given up at once. `note_wait_ended` follows.
    pub(super) fn note_wait_begun(&self) {
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a wait with an error, unless it has its outcome already.
    pub fn cancel(&self, waiter: &Arc<Waiter>, error: LockError) {
        self.leave(waiter, error, true);
    }

    /// The one who queued up has no use for the lock any more.
    pub fn abandon(&self, waiter: &Arc<Waiter>) {
        self.leave(waiter, LockError::Interrupted, false);
    }

    fn leave(&self, waiter: &Arc<Waiter>, error: LockError, count: bool) {
        let mut wakers = Vec::new();
        let shard = self.shard(&waiter.key);
        if !matches!(waiter.wants, Wants::Row(_)) {
            if !self.leave_range(waiter, error) {
                return;
            }
        } else {
            let mut map = shard.map.lock();
            let Some(queue) = map.get_mut(&waiter.key) else { return };
            let Some(place) = queue.waiting.iter().position(|w| Arc::ptr_eq(w, waiter)) else { return };
            queue.waiting.remove(place);
            *waiter.owner.waiting.lock() = None;
            wakers.extend(waiter.resolve(Err(error)));
            queue.grant_waiting(&mut wakers);
            if queue.is_empty() {
                map.remove(&waiter.key);
                shard.keys.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if count {
            match error {
                LockError::Deadlock => self.counters.deadlocks.fetch_add(1, Ordering::Relaxed),
                LockError::Timeout => self.counters.timeouts.fetch_add(1, Ordering::Relaxed),
                LockError::Interrupted => 0,
            };
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Gives a row's explicit lock back; nothing if the owner has none.
    pub fn release_row(&self, owner: &Arc<Owner>, index: IndexId, key: &[u8]) {
        // Nobody waits for a run.
        if self.runs.take(index, key, |holder, _| holder == owner.id).is_empty() {
            self.release_key(owner, index, key);
        }
    }

    /// Gives the explicit lock on a key that has no row back; nothing if the owner has none.
    pub fn release_key(&self, owner: &Arc<Owner>, index: IndexId, key: &[u8]) {
        let shard = self.shard_of(index, key);
        if shard.keys.load(Ordering::Relaxed) == 0 {
            return;
        }
        let row = row_key(index, key);
        let mut wakers = Vec::new();
        {
            let mut map = shard.map.lock();
            let Some(queue) = map.get_mut(row.as_slice()).filter(|q| q.held_by(owner.id).is_some()) else { return };
            queue.granted.retain(|g| g.owner.id != owner.id);
            owner.forget_key(&row);
            queue.grant_waiting(&mut wakers);
            if queue.is_empty() {
                map.remove(row.as_slice());
                shard.keys.fetch_sub(1, Ordering::Relaxed);
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Releases all locks of a transaction whose end is visible already: those who are woken look at its rows next.
    pub fn release(&self, owner: &Arc<Owner>) {
        let (keys, ranges, runs) = {
            let mut held = owner.held.lock();
            held.released = true;
            (std::mem::take(&mut held.keys), std::mem::take(&mut held.ranges), std::mem::take(&mut held.runs))
        };
        self.owners.remove(owner.id);
        runs.into_iter().for_each(|index| self.runs.release(owner.id, index));
        let mut wakers = Vec::new();
        for key in keys {
            let shard = self.shard(&key);
            let mut map = shard.map.lock();
            let Some(queue) = map.get_mut(&key) else { continue };
            queue.granted.retain(|g| g.owner.id != owner.id);
            queue.grant_waiting(&mut wakers);
            if queue.is_empty() {
                map.remove(&key);
                shard.keys.fetch_sub(1, Ordering::Relaxed);
            }
        }
        ranges.into_iter().for_each(|index| self.release_ranges(owner.id, index, &mut wakers));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whom a waiter waits for; nobody once its wait has ended.
    pub fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<Arc<Owner>> {
        let Wants::Row(mode) = waiter.wants else { return self.range_blockers(waiter) };
        let map = self.shard(&waiter.key).map.lock();
        let queue = map.get(&waiter.key).filter(|_| waiter.outcome().is_none());
        let Some(queue) = queue else { return Vec::new() };
        let me = waiter.owner.id;
        let holders = queue.granted.iter().filter(|g| g.owner.id != me && conflict(g.mode, mode)).map(|g| &g.owner);
        let ahead = queue.waiting.iter().take_while(|w| !Arc::ptr_eq(w, waiter));
        let ahead = ahead.filter(|w| conflict(wanted(w), mode)).map(|w| &w.owner);
        holders.chain(ahead).cloned().collect()
    }

    pub fn set_deadlock_detect(&self, on: bool) {
        self.deadlock_detect.store(on, Ordering::Relaxed);
    }

    pub(super) fn deadlock_detect(&self) -> bool {
        self.deadlock_detect.load(Ordering::Relaxed)
    }

    /// Tells `watcher` of every deadlock from now on. The first one stays.
    pub fn watch_deadlocks(&self, watcher: DeadlockWatcher) {
        let _ = self.deadlock_watcher.set(watcher);
    }

    pub(super) fn deadlock_watcher(&self) -> Option<&DeadlockWatcher> {
        self.deadlock_watcher.get()
    }

    /// Explicit locks on keys that `wanted` picks, about `most` of them.
    pub fn held_keys(&self, wanted: impl Fn(IndexId, &[u8]) -> bool, most: usize) -> Vec<(TxnId, IndexId, Vec<u8>, LockMode)> {
        let mut granted = Vec::new();
        for shard in &self.shards {
            for (row, queue) in shard.map.lock().iter() {
                if granted.len() >= most {
                    return granted;
                }
                let (index, key) = split_row(row);
                if wanted(index, key) {
                    granted.extend(queue.granted.iter().map(|g| (g.owner.id, index, key.to_vec(), g.mode)));
                }
            }
        }
        granted
    }

    /// The waits for explicit locks.
    pub fn key_waiters(&self) -> Vec<Arc<Waiter>> {
        self.shards.iter().flat_map(|shard| shard.map.lock().values().flat_map(|queue| queue.waiting.iter().cloned()).collect::<Vec<_>>()).collect()
    }

    /// Explicit locks in runs: those, by their first key and the first one behind them, that `wanted` picks, at most `most` of them.
    pub fn held_runs(&self, wanted: impl Fn(IndexId, &[u8], Option<&[u8]>) -> bool, most: usize) -> Vec<HeldRun> {
        self.runs.held(wanted, most)
    }

    /// The indexes that the owner has locks on.
    pub fn locked_indexes(&self, owner: &Owner) -> BTreeSet<IndexId> {
        let held = owner.held.lock();
        let of_keys = held.keys.iter().map(|row| split_row(row).0);
        of_keys.chain(held.runs.iter().copied()).chain(held.ranges.iter().copied()).collect()
    }

    /// Keys that the owner has explicit locks on, the bytes of them and of their lists, indexes with ranges.
    pub fn size(&self, owner: &Owner) -> (usize, usize, usize) {
        let (mut keys, mut bytes, ranges, runs) = {
            let held = owner.held.lock();
            let bytes = held.keys.iter().map(|key| key.len() + size_of::<Box<[u8]>>()).sum::<usize>();
            (held.keys.len(), bytes, held.ranges.len(), held.runs.clone())
        };
        for index in runs {
            let (rows, of_runs) = self.runs.size(owner.id, index);
            (keys, bytes) = (keys + rows, bytes + of_runs);
        }
        (keys, bytes, ranges)
    }

    pub(super) fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    pub(super) fn search(&self) -> &Mutex<()> {
        &self.search
    }

    pub(super) fn timer(&self) -> &Timer {
        &self.timer
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    pub(super) fn start_timer(self: &Arc<Self>, deadline: Duration, waiter: &Arc<Waiter>) -> u64 {
        self.timer.add(self, deadline, waiter)
    }

    pub(super) fn stop_timer(&self, deadline: Duration, number: u64) {
        self.timer.remove(deadline, number);
    }

    pub(super) fn note_wait_ended(&self, began: Duration) {
        let micros = self.now().saturating_sub(began).as_micros() as u64;
        self.counters.ended.fetch_add(1, Ordering::Relaxed);
        self.counters.wait_micros.fetch_add(micros, Ordering::Relaxed);
        self.counters.wait_micros_max.fetch_max(micros, Ordering::Relaxed);
    }

    pub fn stats(&self) -> LockStats {
        let c = &self.counters;
        let (ended, waits) = (c.ended.load(Ordering::Relaxed), c.waits.load(Ordering::Relaxed));
        LockStats {
            waits,
            current_waits: waits.saturating_sub(ended),
            wait_micros: c.wait_micros.load(Ordering::Relaxed),
            wait_micros_max: c.wait_micros_max.load(Ordering::Relaxed),
            deadlocks: c.deadlocks.load(Ordering::Relaxed),
            timeouts: c.timeouts.load(Ordering::Relaxed),
            ranges: self.ranges.len() as u64,
            explicit_keys: self.shards.iter().map(|s| s.keys.load(Ordering::Relaxed) as u64).sum::<u64>() + self.runs.rows() as u64,
        }
    }

    /// Joins the timer's thread.
    pub fn stop(&self) {
        self.timer.stop();
    }
}
