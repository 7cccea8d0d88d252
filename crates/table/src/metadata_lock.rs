//! Metadata locks: a table's definition does not change under a statement or transaction that uses it.
//!
//! Queries and DML may go together, DDL is alone; held to the end of the transaction. First come first served among those that stand against each
//! other: a query passes a writer that waits for LOCK TABLES ... READ. LOCK TABLES and the global read lock are of a session (`session_locks.rs`).
//! Who has a lock and wants it in a stronger mode does not queue behind others: they may be waiting for it.
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
use highkey_storage::{Interrupt, StripedCounter, WaitKind, waiting};
use highkey_types::{MySqlError, Str, errors};
use parking_lot::Mutex;

use crate::gate::Gate;
use crate::timer::{Alarm, Timer};

/// How often a waiter looks at its interrupt flag.
const INTERRUPT_CHECK: Duration = Duration::from_millis(100);
/// How often who wants several locks lets all go because one is busy, before it keeps those that it gets,
const ROUNDS_WITHOUT_ANY: u32 = 10;
/// and for how long at first: whom it keeps from them may be waited for elsewhere, for a row.
const KEEP_FOR: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode {
    /// Queries; whoever needs a schema to stay.
    Read,
    /// Statements that change rows.
    Write,
    /// LOCK TABLES ... READ, the global read lock: nobody changes anything.
    ReadOnly,
    /// DDL that builds something while others read and write: no other DDL comes between.
    Upgradable,
    /// DDL, LOCK TABLES ... WRITE.
    Exclusive,
}

impl MetadataMode {
    fn conflicts(self, other: MetadataMode) -> bool {
        use MetadataMode::*;
        matches!((self, other), (Exclusive, _) | (_, Exclusive) | (Upgradable, Upgradable) | (Write, ReadOnly) | (ReadOnly, Write))
    }

    /// Whoever has this one may do what the other one is for.
    pub(crate) fn covers(self, other: MetadataMode) -> bool {
        self == other || self == MetadataMode::Exclusive || other == MetadataMode::Read
    }
}

/// A transaction, a DDL statement or a session (`session_locks.rs`), as the lock table knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    number: u64,
    /// Owners that are one session's: it waits at one place at a time, and for none of its own.
    group: u64,
}

impl Owner {
    /// One of no session is a group by itself.
    pub(crate) fn group(self) -> u64 {
        self.group
    }

    /// One of `count` parts into which sessions fall.
    pub(crate) fn shard(self, count: usize) -> usize {
        self.group as usize % count
    }
}

/// What a metadata lock is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetadataObject {
    /// The global read lock: it keeps statements from beginning to change something,
    Global,
    /// and transactions from committing.
    Commit,
    /// LOCK INSTANCE FOR BACKUP: it keeps statements from beginning to change a definition.
    Backup,
    Schema(Str),
    /// Schema and name.
    Table(Str, Str),
}

/// A metadata lock that somebody has or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataLockReport {
    pub object: MetadataObject,
    pub mode: MetadataMode,
    pub is_granted: bool,
    /// See [`crate::SessionLocks::number`]. A number that no session has is that of a transaction which is prepared, or of the server itself.
    pub session: u64,
    /// Held until the session gives it up, not until a statement or transaction ends.
    pub is_of_session: bool,
}

/// (schema, table); an empty table name is the schema itself.
pub(crate) type Name = (Str, Str);

pub(crate) struct MetadataLocks {
    names: Mutex<AHashMap<Name, Arc<MetadataLock>>>,
    /// What every waiter waits for, by its group. Always locked before a lock's own state.
    waits: Mutex<AHashMap<u64, Wait>>,
    timer: Timer,
    next_owner: AtomicU64,
    /// The global read lock is made of these.
    statements: Gate,
    commits: Gate,
    /// LOCK INSTANCE FOR BACKUP has it for reading, and statements that change a definition for writing.
    backup: Arc<MetadataLock>,
    /// Tables and views that statements have opened, each time that one did.
    pub(crate) uses: StripedCounter,
    /// Definitions that have been made or read.
    pub(crate) opened: AtomicU64,
}

struct Wait {
    owner: Owner,
    lock: Arc<MetadataLock>,
    mode: MetadataMode,
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
    /// Each owner once.
    holders: Vec<(Owner, MetadataMode)>,
    queue: VecDeque<Arc<Waiter>>,
}

impl State {
    /// Without waiting.
    fn try_acquire(&mut self, owner: Owner, mode: MetadataMode) -> bool {
        let ahead = if self.held_by(owner).is_some() { 0 } else { self.queue.len() };
        self.try_give(owner, mode, ahead)
    }

    fn held_by(&mut self, owner: Owner) -> Option<&mut MetadataMode> {
        self.holders.iter_mut().find(|(o, _)| *o == owner).map(|(_, mode)| mode)
    }

    /// Gives the lock to `owner` if no holder stands against it, and nobody among the first `ahead` that wait.
    fn try_give(&mut self, owner: Owner, mode: MetadataMode, ahead: usize) -> bool {
        let held = self.holders.iter().any(|(o, held)| *o != owner && held.conflicts(mode));
        if held || self.queue.iter().take(ahead).any(|waiter| waiter.mode.conflicts(mode)) {
            return false;
        }
        match self.held_by(owner) {
            Some(held) => *held = mode,
            None => self.holders.push((owner, mode)),
        }
        true
    }
}

struct Waiter {
    owner: Owner,
    mode: MetadataMode,
    /// What the owner has already.
    before: Option<MetadataMode>,
    granted: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl MetadataLocks {
    pub(crate) fn new() -> MetadataLocks {
        MetadataLocks {
            names: Mutex::default(),
            waits: Mutex::default(),
            timer: Timer::new(),
            next_owner: AtomicU64::new(1),
            statements: Gate::default(),
            commits: Gate::default(),
            backup: Arc::default(),
            uses: StripedCounter::default(),
            opened: AtomicU64::new(0),
        }
    }

    /// An owner of no session, or a session.
    pub(crate) fn new_owner(&self) -> Owner {
        let number = self.next_owner.fetch_add(1, Ordering::Relaxed);
        Owner { number, group: number }
    }

    /// An owner of the same session.
    pub(crate) fn new_owner_beside(&self, owner: Owner) -> Owner {
        Owner { group: owner.group, ..self.new_owner() }
    }

    /// Before every statement that changes something.
    pub(crate) fn statements(&self) -> &Gate {
        &self.statements
    }

    /// Before every commit of a transaction that changed something, unless its statement has passed the other gate.
    pub(crate) fn commits(&self) -> &Gate {
        &self.commits
    }

    pub(crate) fn backup(&self) -> &Arc<MetadataLock> {
        &self.backup
    }

    pub(crate) fn wake_at(&self, deadline: Instant, waker: Waker) -> Alarm {
        self.timer.wake_at(deadline, waker)
    }

    pub(crate) fn lock_of(&self, schema: &str, table: &str) -> Arc<MetadataLock> {
        let mut names = self.names.lock();
        if names.len() > 1024 && names.len().is_power_of_two() {
            // Names that nobody refers to any more: only this map holds their lock.
            names.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        names.entry((schema.into(), table.into())).or_default().clone()
    }

    /// The names of those locks of tables that `wanted` picks.
    pub(crate) fn names_of(&self, wanted: impl Fn(&Arc<MetadataLock>) -> bool) -> Vec<Name> {
        self.names.lock().iter().filter(|((_, table), lock)| !table.is_empty() && wanted(lock)).map(|(name, _)| name.clone()).collect()
    }

    /// What there is of all names and of the global read lock, by object.
    pub(crate) fn reports(&self) -> Vec<MetadataLockReport> {
        let mut locks = vec![
            (MetadataObject::Global, self.statements.lock().clone()),
            (MetadataObject::Commit, self.commits.lock().clone()),
            (MetadataObject::Backup, self.backup.clone()),
        ];
        for ((schema, table), lock) in self.names.lock().iter() {
            let object = if table.is_empty() { MetadataObject::Schema(schema.clone()) } else { MetadataObject::Table(schema.clone(), table.clone()) };
            locks.push((object, lock.clone()));
        }
        locks.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut reports = Vec::new();
        for (object, lock) in locks {
            let state = lock.state.lock();
            let holders = state.holders.iter().map(|(owner, mode)| (*owner, *mode, true));
            let waiters = state.queue.iter().map(|waiter| (waiter.owner, waiter.mode, false));
            reports.extend(holders.chain(waiters).map(|(owner, mode, is_granted)| MetadataLockReport {
                object: object.clone(),
                mode,
                is_granted,
                session: owner.group,
                is_of_session: owner.number == owner.group,
            }));
        }
        reports
    }

    /// Waits until `owner` has `lock` in this mode, which covers the one that it may have already.
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
            if state.try_acquire(owner, mode) {
                return Ok(());
            }
            drop(state);
            // Lock order: `waits`, then the state.
            let waits = waits.insert(self.waits.lock());
            state = lock.state.lock();
            let before = state.held_by(owner).copied();
            let waiter = Arc::new(Waiter { owner, mode, before, granted: AtomicU8::new(0), waker: Mutex::new(None) });
            match before {
                Some(_) => state.queue.push_front(waiter.clone()),
                None => state.queue.push_back(waiter.clone()),
            }
            grant(&mut state);
            drop(state);
            if waiter.granted.load(Ordering::Acquire) != 0 {
                return Ok(());
            }
            waits.insert(owner.group, Wait { owner, lock: lock.clone(), mode });
            if closes_circle(waits, owner) {
                waits.remove(&owner.group);
                cancel(lock, &waiter);
                return Err(errors::lock_deadlock());
            }
            waiter
        };
        let deadline = Instant::now().checked_add(timeout);
        let acquire = Acquire { locks: self, lock, waiter, deadline, interrupt, alarm: None, taken: false };
        waiting(WaitKind::TableLock, acquire).await
    }

    pub(crate) fn try_acquire(&self, owner: Owner, lock: &Arc<MetadataLock>, mode: MetadataMode) -> bool {
        lock.state.lock().try_acquire(owner, mode)
    }

    pub(crate) fn release(&self, owner: Owner, lock: &Arc<MetadataLock>) {
        let mut state = lock.state.lock();
        let at = state.holders.iter().position(|(o, _)| *o == owner).expect("a released metadata lock was held");
        state.holders.swap_remove(at);
        if !state.queue.is_empty() {
            grant(&mut state);
        }
    }

    /// Back to what the owner had before, a weaker mode or nothing.
    pub(crate) fn give_back(&self, owner: Owner, lock: &Arc<MetadataLock>, before: Option<MetadataMode>) {
        let Some(before) = before else { return self.release(owner, lock) };
        let mut state = lock.state.lock();
        *state.held_by(owner).expect("a weakened metadata lock was held") = before;
        grant(&mut state);
    }

    /// Takes all locks. First holding none, but in a mode that it had before, while it waits for one: so DDL and LOCK TABLES on several tables close no
    /// circle. Where one is always busy when another one is free that never ends: then some rounds are followed by one in which it keeps what it has
    /// got while it waits for the next, in the order that all keep to who do this. Somebody else who has one of them and wants another may be the victim of
    /// a deadlock then, as in MySQL.
    pub(crate) async fn acquire_all(
        &self,
        owner: Owner,
        wanted: &[(Arc<MetadataLock>, MetadataMode)],
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), MySqlError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let before: Vec<_> = wanted.iter().map(|(lock, _)| lock.state.lock().held_by(owner).copied()).collect();
        let deadline = Instant::now().checked_add(timeout);
        let left = || deadline.map_or(timeout, |d| d.saturating_duration_since(Instant::now()));
        let (mut first, mut rounds, mut keep_for) = (0, 0_u32, KEEP_FOR);
        loop {
            self.acquire(owner, &wanted[first].0, wanted[first].1, left(), interrupt).await?;
            let busy = (0..wanted.len()).filter(|&i| i != first).find(|&i| !self.try_acquire(owner, &wanted[i].0, wanted[i].1));
            let Some(busy) = busy else { return Ok(()) };
            for (i, (lock, _)) in wanted.iter().enumerate() {
                if i == first || i < busy {
                    self.give_back(owner, lock, before[i]);
                }
            }
            first = busy;
            rounds += 1;
            if rounds.is_multiple_of(ROUNDS_WITHOUT_ANY) {
                if self.acquire_in_order(owner, wanted, &before, left().min(keep_for), interrupt).await? {
                    return Ok(());
                }
                keep_for = keep_for.saturating_mul(2);
            }
            if left().is_zero() {
                return Err(errors::lock_wait_timeout());
            }
        }
    }

    /// Takes all locks, each while it holds those before it. False: that took longer than `limit`, or closed a circle; the owner has what it had `before`.
    async fn acquire_in_order(
        &self,
        owner: Owner,
        wanted: &[(Arc<MetadataLock>, MetadataMode)],
        before: &[Option<MetadataMode>],
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<bool, MySqlError> {
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        // Whoever wants a lock has the same one: its address is an order for all.
        order.sort_unstable_by_key(|&i| Arc::as_ptr(&wanted[i].0) as usize);
        let deadline = Instant::now().checked_add(limit);
        let mut kept = Kept { locks: self, owner, taken: Vec::with_capacity(wanted.len()) };
        for i in order {
            let (lock, mode) = &wanted[i];
            let left = deadline.map_or(limit, |d| d.saturating_duration_since(Instant::now()));
            match self.acquire(owner, lock, *mode, left, interrupt).await {
                Ok(()) => kept.taken.push((lock, before[i])),
                // A circle that is there without what it has kept is found again when it holds nothing.
                Err(e) if matches!(e.code, 1205 | 1213) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        kept.taken.clear();
        Ok(true)
    }
}

/// Locks that are given back unless all were got.
struct Kept<'a> {
    locks: &'a MetadataLocks,
    owner: Owner,
    /// With what the owner had before.
    taken: Vec<(&'a Arc<MetadataLock>, Option<MetadataMode>)>,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        for (lock, before) in self.taken.drain(..) {
            self.locks.give_back(self.owner, lock, before);
        }
    }
}

/// Gives the lock to those in the queue whom neither the holders nor others before them stand against.
fn grant(state: &mut State) {
    let mut at = 0;
    while let Some(waiter) = state.queue.get(at) {
        let (owner, mode) = (waiter.owner, waiter.mode);
        if !state.try_give(owner, mode, at) {
            at += 1;
            continue;
        }
        let waiter = state.queue.remove(at).expect("it was there");
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
fn closes_circle(waits: &AHashMap<u64, Wait>, start: Owner) -> bool {
    let mut seen = vec![start.group];
    let mut stack = vec![start.group];
    while let Some(group) = stack.pop() {
        let Some(Wait { owner, lock, mode }) = waits.get(&group) else { continue };
        let state = lock.state.lock();
        let Some(place) = state.queue.iter().position(|w| w.owner == *owner) else { continue };
        let holders = state.holders.iter().filter(|(o, held)| o != owner && held.conflicts(*mode)).map(|(o, _)| o.group);
        let ahead = state.queue.iter().take(place).filter(|w| w.mode.conflicts(*mode)).map(|w| w.owner.group);
        for blocker in holders.chain(ahead) {
            if blocker == start.group {
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
    /// The caller has been told that it has the lock.
    taken: bool,
}

impl Future for Acquire<'_> {
    type Output = Result<(), MySqlError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        *self.waiter.waker.lock() = Some(cx.waker().clone());
        if self.waiter.granted.load(Ordering::Acquire) != 0 {
            self.taken = true;
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
        self.taken = cancel(self.lock, &self.waiter);
        Poll::Ready(if self.taken { Ok(()) } else { outcome })
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        self.locks.waits.lock().remove(&self.waiter.owner.group);
        // Dropped before its end (the session went away): leave no entry and no lock that nobody will release.
        if !self.taken && cancel(self.lock, &self.waiter) {
            self.locks.give_back(self.waiter.owner, self.lock, self.waiter.before);
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
        block_on(locks.acquire(one, &a, MetadataMode::Read, Duration::ZERO, &never)).unwrap();
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
                block_on(locks.acquire(three, &a, MetadataMode::Read, Duration::from_secs(5), &never)).unwrap();
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
            block_on(locks.acquire(two, &a, MetadataMode::Read, Duration::from_millis(20), &never)).unwrap_err();
        assert_eq!(error.code, 1205);
        assert!(a.state.lock().queue.is_empty());
        assert!(locks.waits.lock().is_empty());
        locks.release(one, &a);
        assert!(locks.try_acquire(two, &a, MetadataMode::Read));
    }

    #[test]
    fn a_circle_has_a_victim() {
        let (locks, a, b) = setup();
        let (one, two) = (locks.new_owner(), locks.new_owner());
        let never = Interrupt::default();
        let long = Duration::from_secs(5);
        block_on(locks.acquire(one, &a, MetadataMode::Read, long, &never)).unwrap();
        block_on(locks.acquire(two, &b, MetadataMode::Read, long, &never)).unwrap();
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
    fn readers_go_with_locks_for_reading_and_writers_do_not() {
        let (locks, a, _) = setup();
        let [one, two, three] = [(); 3].map(|()| locks.new_owner());
        for (mode, admitted) in [
            (MetadataMode::Read, [true, true, true, true, false]),
            (MetadataMode::Write, [true, true, false, true, false]),
            (MetadataMode::ReadOnly, [true, false, true, true, false]),
            (MetadataMode::Upgradable, [true, true, true, false, false]),
            (MetadataMode::Exclusive, [false; 5]),
        ] {
            assert!(locks.try_acquire(one, &a, mode));
            let all =
                [MetadataMode::Read, MetadataMode::Write, MetadataMode::ReadOnly, MetadataMode::Upgradable, MetadataMode::Exclusive];
            for (other, admits) in all.into_iter().zip(admitted) {
                assert_eq!(locks.try_acquire(two, &a, other), admits, "{other:?} beside {mode:?}");
                if admits {
                    locks.release(two, &a);
                }
            }
            locks.release(one, &a);
        }
        assert!(locks.try_acquire(three, &a, MetadataMode::Exclusive));
    }

    #[test]
    fn a_reader_passes_a_writer_that_waits() {
        let (locks, a, _) = setup();
        let [locker, writer, reader, ddl, late] = [(); 5].map(|()| locks.new_owner());
        let never = Interrupt::default();
        let long = Duration::from_secs(5);
        let wait = |owner, mode| {
            let mut wait = Box::pin(locks.acquire(owner, &a, mode, long, &never));
            assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            wait
        };
        assert!(locks.try_acquire(locker, &a, MetadataMode::ReadOnly));
        let written = wait(writer, MetadataMode::Write);
        assert!(locks.try_acquire(reader, &a, MetadataMode::Read));
        assert!(!locks.try_acquire(late, &a, MetadataMode::ReadOnly), "the writer was first");
        let changed = wait(ddl, MetadataMode::Exclusive);
        let read = wait(late, MetadataMode::Read);
        locks.release(locker, &a);
        block_on(written).unwrap();
        locks.release(writer, &a);
        locks.release(reader, &a);
        block_on(changed).unwrap();
        locks.release(ddl, &a);
        block_on(read).unwrap();
    }

    #[test]
    fn who_has_a_lock_gets_it_stronger_before_those_who_wait() {
        let (locks, a, _) = setup();
        let [one, two, three] = [(); 3].map(|()| locks.new_owner());
        let never = Interrupt::default();
        let long = Duration::from_secs(5);
        block_on(locks.acquire(one, &a, MetadataMode::Read, long, &never)).unwrap();
        std::thread::scope(|s| {
            let ddl = s.spawn(|| block_on(locks.acquire(two, &a, MetadataMode::Exclusive, long, &never)));
            while a.state.lock().queue.is_empty() {
                std::thread::yield_now();
            }
            block_on(locks.acquire(one, &a, MetadataMode::Write, Duration::ZERO, &never)).unwrap();
            assert_eq!(a.state.lock().holders, [(one, MetadataMode::Write)], "once");
            locks.release(one, &a);
            ddl.join().unwrap().unwrap();
        });
        locks.release(two, &a);
        // One that waits is before others too, and if it gives up keeps what it had.
        assert!(locks.try_acquire(one, &a, MetadataMode::Read) && locks.try_acquire(three, &a, MetadataMode::ReadOnly));
        let late = block_on(locks.acquire(one, &a, MetadataMode::Write, Duration::ZERO, &never)).unwrap_err();
        assert_eq!((late.code, a.state.lock().holders[0]), (1205, (one, MetadataMode::Read)));
    }

    #[test]
    fn a_wait_that_is_dropped_when_it_was_granted_gives_the_lock_back() {
        let (locks, a, _) = setup();
        let (one, two) = (locks.new_owner(), locks.new_owner());
        let never = Interrupt::default();
        for before in [None, Some(MetadataMode::Read)] {
            assert!(before.is_none_or(|mode| locks.try_acquire(two, &a, mode)));
            assert!(locks.try_acquire(one, &a, MetadataMode::ReadOnly));
            let mut wait = Box::pin(locks.acquire(two, &a, MetadataMode::Write, Duration::from_secs(5), &never));
            assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            locks.release(one, &a);
            assert_eq!(a.state.lock().holders, [(two, MetadataMode::Write)], "granted");
            drop(wait);
            assert_eq!(a.state.lock().holders, before.map(|mode| (two, mode)).into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn who_waits_for_several_locks_keeps_what_it_had_of_them() {
        let (locks, a, b) = setup();
        let (one, two) = (locks.new_owner(), locks.new_owner());
        let never = Interrupt::default();
        assert!(locks.try_acquire(one, &a, MetadataMode::Read) && locks.try_acquire(two, &b, MetadataMode::Read));
        let wanted = [(a.clone(), MetadataMode::Exclusive), (b.clone(), MetadataMode::Exclusive)];
        let mut wait = Box::pin(locks.acquire_all(one, &wanted, Duration::from_secs(5), &never));
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(a.state.lock().holders, [(one, MetadataMode::Read)]);
        locks.release(two, &b);
        block_on(wait).unwrap();
        for lock in [&a, &b] {
            assert_eq!(lock.state.lock().holders, [(one, MetadataMode::Exclusive)]);
        }
    }

    /// Others go from one table to the other and have always one of them.
    #[test]
    fn several_locks_of_which_one_is_always_busy_are_got() {
        let (locks, a, b) = setup();
        let never = Interrupt::default();
        let long = Duration::from_secs(30);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                let owner = locks.new_owner();
                let (mut held, mut next) = (&a, &b);
                block_on(locks.acquire(owner, held, MetadataMode::Write, long, &never)).unwrap();
                while !done.load(Ordering::Relaxed) {
                    match block_on(locks.acquire(owner, next, MetadataMode::Write, long, &never)) {
                        Ok(()) => {
                            locks.release(owner, held);
                            std::mem::swap(&mut held, &mut next);
                        }
                        Err(e) => {
                            assert_eq!(e.code, 1213);
                            locks.release(owner, held);
                            block_on(locks.acquire(owner, held, MetadataMode::Write, long, &never)).unwrap();
                        }
                    }
                }
                locks.release(owner, held);
            });
            let owner = locks.new_owner();
            let wanted = [(a.clone(), MetadataMode::Exclusive), (b.clone(), MetadataMode::Exclusive)];
            let got = block_on(locks.acquire_all(owner, &wanted, long, &never));
            done.store(true, Ordering::Relaxed);
            got.unwrap();
            for lock in [&a, &b] {
                assert_eq!(lock.state.lock().holders, [(owner, MetadataMode::Exclusive)]);
                locks.release(owner, lock);
            }
        });
    }

    #[test]
    fn what_was_kept_for_several_locks_is_given_back() {
        let (locks, a, b) = setup();
        let (one, two, three) = (locks.new_owner(), locks.new_owner(), locks.new_owner());
        let never = Interrupt::default();
        let last = if Arc::as_ptr(&a) < Arc::as_ptr(&b) { &b } else { &a };
        let first = if Arc::ptr_eq(last, &b) { &a } else { &b };
        assert!(locks.try_acquire(one, first, MetadataMode::Read) && locks.try_acquire(two, last, MetadataMode::Read));
        let wanted = [(a.clone(), MetadataMode::Exclusive), (b.clone(), MetadataMode::Exclusive)];
        let before = wanted.each_ref().map(|(lock, _)| Arc::ptr_eq(lock, first).then_some(MetadataMode::Read));
        let long = Duration::from_secs(5);
        let late = block_on(locks.acquire_in_order(one, &wanted, &before, Duration::from_millis(10), &never));
        assert!(!late.unwrap());
        assert_eq!(first.state.lock().holders, [(one, MetadataMode::Read)]);
        let mut wait = Box::pin(locks.acquire_in_order(one, &wanted, &before, long, &never));
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(first.state.lock().holders, [(one, MetadataMode::Exclusive)]);
        assert!(!locks.try_acquire(three, first, MetadataMode::Read));
        drop(wait);
        assert_eq!(first.state.lock().holders, [(one, MetadataMode::Read)]);
        assert!(locks.waits.lock().is_empty());
    }

    #[test]
    fn kill_ends_a_wait() {
        let (locks, a, _) = setup();
        let (one, two) = (locks.new_owner(), locks.new_owner());
        block_on(locks.acquire(one, &a, MetadataMode::Exclusive, Duration::ZERO, &Interrupt::default())).unwrap();
        let interrupt = Interrupt::default();
        interrupt.raise();
        let error = block_on(locks.acquire(two, &a, MetadataMode::Read, Duration::from_secs(5), &interrupt));
        assert_eq!(error.unwrap_err().code, 1317);
    }
}
