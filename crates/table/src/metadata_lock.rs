//! Metadata locks: a table's definition does not change under a statement or transaction that uses it.
//!
//! Shared for queries and DML, exclusive for DDL, first come first served, held to the end of the transaction.
//! A waiter is a future. It ends by the grant, by its timeout (1205), by KILL (1317), or as the victim of a
//! deadlock (1213): whoever starts to wait last looks whether it closes a circle, and if so gives up.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use highkey_storage::{Interrupt, WaitKind, waiting};
use highkey_types::{MySqlError, Str, errors};
use parking_lot::Mutex;

use crate::timer::{Alarm, Timer};

/// How often a waiter looks at its interrupt flag.
const INTERRUPT_CHECK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode {
    Shared,
    Exclusive,
}

impl MetadataMode {
    fn conflicts(self, other: MetadataMode) -> bool {
        self == MetadataMode::Exclusive || other == MetadataMode::Exclusive
    }
}

/// A transaction or DDL statement, as the lock table knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner(u64);

/// (schema, table); an empty table name is the schema itself.
pub(crate) type Name = (Str, Str);

pub(crate) struct MetadataLocks {
    names: Mutex<AHashMap<Name, Arc<MetadataLock>>>,
    /// What every waiter waits for. Always locked before a lock's own state.
    waits: Mutex<AHashMap<Owner, (Arc<MetadataLock>, MetadataMode)>>,
    timer: Timer,
    next_owner: AtomicU64,
}

/// The lock of one name. Tables keep theirs, so the hot path does no lookup by name.
#[derive(Default)]
pub(crate) struct MetadataLock {
    state: Mutex<State>,
}

impl std::fmt::Debug for MetadataLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MetadataLock")
    }
}

#[derive(Default)]
struct State {
    holders: Vec<(Owner, MetadataMode)>,
    queue: VecDeque<Arc<Waiter>>,
}

struct Waiter {
    owner: Owner,
    mode: MetadataMode,
    granted: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl MetadataLocks {
    pub(crate) fn new() -> MetadataLocks {
        MetadataLocks { names: Mutex::default(), waits: Mutex::default(), timer: Timer::new(), next_owner: AtomicU64::new(1) }
    }

    pub(crate) fn new_owner(&self) -> Owner {
        Owner(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn lock_of(&self, schema: &str, table: &str) -> Arc<MetadataLock> {
        let mut names = self.names.lock();
        if names.len() > 1024 && names.len().is_power_of_two() {
            // Names that nobody refers to any more: only this map holds their lock.
            names.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        names.entry((schema.into(), table.into())).or_default().clone()
    }

    /// Waits until `owner` has `lock`. The owner must not hold it yet.
    pub(crate) async fn acquire(
        &self,
        owner: Owner,
        lock: &Arc<MetadataLock>,
        mode: MetadataMode,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), MySqlError> {
        let waiter = {
            let mut waits = None;
            let mut state = lock.state.lock();
            if state.queue.is_empty() && !state.holders.iter().any(|(_, held)| held.conflicts(mode)) {
                state.holders.push((owner, mode));
                return Ok(());
            }
            drop(state);
            // Lock order: `waits`, then the state.
            let waits = waits.insert(self.waits.lock());
            state = lock.state.lock();
            let waiter =
                Arc::new(Waiter { owner, mode, granted: AtomicU8::new(0), waker: Mutex::new(None) });
            state.queue.push_back(waiter.clone());
            grant(&mut state);
            drop(state);
            if waiter.granted.load(Ordering::Acquire) != 0 {
                return Ok(());
            }
            waits.insert(owner, (lock.clone(), mode));
            if closes_circle(waits, owner) {
                waits.remove(&owner);
                cancel(lock, &waiter);
                return Err(errors::lock_deadlock());
            }
            waiter
        };
        let deadline = Instant::now().checked_add(timeout);
        let acquire = Acquire { locks: self, lock, waiter, deadline, interrupt, alarm: None };
        waiting(WaitKind::TableLock, acquire).await
    }

    pub(crate) fn try_acquire(&self, owner: Owner, lock: &Arc<MetadataLock>, mode: MetadataMode) -> bool {
        let mut state = lock.state.lock();
        let free = state.queue.is_empty() && !state.holders.iter().any(|(_, held)| held.conflicts(mode));
        if free {
            state.holders.push((owner, mode));
        }
        free
    }

    pub(crate) fn release(&self, owner: Owner, lock: &Arc<MetadataLock>) {
        let mut state = lock.state.lock();
        let at = state.holders.iter().position(|(o, _)| *o == owner).expect("a released metadata lock was held");
        state.holders.swap_remove(at);
        if !state.queue.is_empty() {
            grant(&mut state);
        }
    }

    /// Takes all locks exclusively, holding none while it waits for one: so DDL on several tables closes no circle.
    pub(crate) async fn acquire_all(
        &self,
        owner: Owner,
        wanted: &[Arc<MetadataLock>],
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), MySqlError> {
        let deadline = Instant::now().checked_add(timeout);
        let mut first = 0;
        loop {
            let left = deadline.map_or(timeout, |d| d.saturating_duration_since(Instant::now()));
            self.acquire(owner, &wanted[first], MetadataMode::Exclusive, left, interrupt).await?;
            let busy = (0..wanted.len())
                .filter(|&i| i != first)
                .find(|&i| !self.try_acquire(owner, &wanted[i], MetadataMode::Exclusive));
            let Some(busy) = busy else { return Ok(()) };
            for (i, lock) in wanted.iter().enumerate() {
                if i == first || i < busy {
                    self.release(owner, lock);
                }
            }
            first = busy;
        }
    }
}

/// Gives the lock to the front of the queue as far as the holders allow.
fn grant(state: &mut State) {
    while let Some(front) = state.queue.front() {
        let blocked = state.holders.iter().any(|(o, held)| *o != front.owner && held.conflicts(front.mode));
        if blocked {
            return;
        }
        let waiter = state.queue.pop_front().expect("there is a front");
        state.holders.push((waiter.owner, waiter.mode));
        waiter.granted.store(1, Ordering::Release);
        if let Some(waker) = waiter.waker.lock().take() {
            waker.wake();
        }
    }
}

/// Takes the waiter out of the queue; true if it had been granted before.
fn cancel(lock: &MetadataLock, waiter: &Arc<Waiter>) -> bool {
    let mut state = lock.state.lock();
    if waiter.granted.load(Ordering::Acquire) != 0 {
        return true;
    }
    state.queue.retain(|w| !Arc::ptr_eq(w, waiter));
    grant(&mut state);
    false
}

/// Whether `start`, through those it waits for and those they wait for, waits for itself.
fn closes_circle(waits: &AHashMap<Owner, (Arc<MetadataLock>, MetadataMode)>, start: Owner) -> bool {
    let mut seen = vec![start];
    let mut stack = vec![start];
    while let Some(owner) = stack.pop() {
        let Some((lock, mode)) = waits.get(&owner) else { continue };
        let state = lock.state.lock();
        let Some(place) = state.queue.iter().position(|w| w.owner == owner) else { continue };
        let holders = state.holders.iter().filter(|(o, held)| *o != owner && held.conflicts(*mode)).map(|(o, _)| *o);
        let ahead = state.queue.iter().take(place).filter(|w| w.mode.conflicts(*mode)).map(|w| w.owner);
        for blocker in holders.chain(ahead) {
            if blocker == start {
                return true;
            }
            if !seen.contains(&blocker) {
                seen.push(blocker);
                stack.push(blocker);
            }
        }
    }
    false
}

struct Acquire<'a> {
    locks: &'a MetadataLocks,
    lock: &'a Arc<MetadataLock>,
    waiter: Arc<Waiter>,
    deadline: Option<Instant>,
    interrupt: &'a Interrupt,
    alarm: Option<Alarm>,
}

impl Future for Acquire<'_> {
    type Output = Result<(), MySqlError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        *self.waiter.waker.lock() = Some(cx.waker().clone());
        if self.waiter.granted.load(Ordering::Acquire) != 0 {
            return Poll::Ready(Ok(()));
        }
        let now = Instant::now();
        let outcome = if self.interrupt.is_raised() {
            Err(errors::query_interrupted())
        } else if self.deadline.is_some_and(|d| d <= now) {
            Err(errors::lock_wait_timeout())
        } else {
            let tick = now + INTERRUPT_CHECK;
            let wake = self.deadline.map_or(tick, |d| d.min(tick));
            self.alarm = Some(self.locks.timer.wake_at(wake, cx.waker().clone()));
            return Poll::Pending;
        };
        // A grant that came meanwhile wins.
        if cancel(self.lock, &self.waiter) { Poll::Ready(Ok(())) } else { Poll::Ready(outcome) }
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        self.locks.waits.lock().remove(&self.waiter.owner);
        // Dropped before its end (the session went away): leave no entry and no lock that nobody will release.
        if self.waiter.granted.load(Ordering::Acquire) == 0 {
            cancel(self.lock, &self.waiter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;

    fn setup() -> (Arc<MetadataLocks>, Arc<MetadataLock>, Arc<MetadataLock>) {
        let locks = Arc::new(MetadataLocks::new());
        let (a, b) = (locks.lock_of("s", "a"), locks.lock_of("s", "b"));
        (locks, a, b)
    }

    #[test]
    fn exclusive_waits_for_shared_and_later_shared_waits_behind_it() {
        let (locks, a, _) = setup();
        let (one, two, three) = (locks.new_owner(), locks.new_owner(), locks.new_owner());
        let never = Interrupt::default();
        block_on(locks.acquire(one, &a, MetadataMode::Shared, Duration::ZERO, &never)).unwrap();
        let done = Arc::new(Mutex::new(Vec::new()));
        std::thread::scope(|s| {
            s.spawn(|| {
                block_on(locks.acquire(two, &a, MetadataMode::Exclusive, Duration::from_secs(5), &never)).unwrap();
                done.lock().push(2);
                locks.release(two, &a);
            });
            while a.state.lock().queue.is_empty() {
                std::thread::yield_now();
            }
            s.spawn(|| {
                block_on(locks.acquire(three, &a, MetadataMode::Shared, Duration::from_secs(5), &never)).unwrap();
                done.lock().push(3);
                locks.release(three, &a);
            });
            while a.state.lock().queue.len() < 2 {
                std::thread::yield_now();
            }
            locks.release(one, &a);
        });
        assert_eq!(*done.lock(), [2, 3]);
    }

    #[test]
    fn a_wait_times_out_and_leaves_nothing() {
        let (locks, a, _) = setup();
        let (one, two) = (locks.new_owner(), locks.new_owner());
        let never = Interrupt::default();
        block_on(locks.acquire(one, &a, MetadataMode::Exclusive, Duration::ZERO, &never)).unwrap();
        let error =
            block_on(locks.acquire(two, &a, MetadataMode::Shared, Duration::from_millis(20), &never)).unwrap_err();
        assert_eq!(error.code, 1205);
        assert!(a.state.lock().queue.is_empty());
        assert!(locks.waits.lock().is_empty());
        locks.release(one, &a);
        assert!(locks.try_acquire(two, &a, MetadataMode::Shared));
    }

    #[test]
    fn a_circle_has_a_victim() {
        let (locks, a, b) = setup();
        let (one, two) = (locks.new_owner(), locks.new_owner());
        let never = Interrupt::default();
        let long = Duration::from_secs(5);
        block_on(locks.acquire(one, &a, MetadataMode::Shared, long, &never)).unwrap();
        block_on(locks.acquire(two, &b, MetadataMode::Shared, long, &never)).unwrap();
        std::thread::scope(|s| {
            let first = s.spawn(|| block_on(locks.acquire(one, &b, MetadataMode::Exclusive, long, &never)));
            while b.state.lock().queue.is_empty() || locks.waits.lock().is_empty() {
                std::thread::yield_now();
            }
            let victim = block_on(locks.acquire(two, &a, MetadataMode::Exclusive, long, &never)).unwrap_err();
            assert_eq!(victim.code, 1213);
            locks.release(two, &b);
            first.join().unwrap().unwrap();
        });
    }

    #[test]
    fn kill_ends_a_wait() {
        let (locks, a, _) = setup();
        let (one, two) = (locks.new_owner(), locks.new_owner());
        block_on(locks.acquire(one, &a, MetadataMode::Exclusive, Duration::ZERO, &Interrupt::default())).unwrap();
        let interrupt = Interrupt::default();
        interrupt.raise();
        let error = block_on(locks.acquire(two, &a, MetadataMode::Shared, Duration::from_secs(5), &interrupt));
        assert_eq!(error.unwrap_err().code, 1317);
    }
}
