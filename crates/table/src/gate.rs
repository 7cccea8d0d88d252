//! The gates of the global read lock: one before every statement that changes something, one before every commit.
//!
//! An open gate costs who goes through two writes to a counter that few others use. To close it, the counters are told to be shut, and those
//! who are inside are waited for; from then on everybody goes by a metadata lock, for writing, which whoever has closed the gate holds for
//! reading. So a wait before a closed gate is a wait as for a table: it has its timeout, KILL ends it, and circles through tables are found.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use highkey_storage::{Interrupt, WaitKind, waiting};
use highkey_types::{MySqlError, errors};

use crate::metadata_lock::{MetadataLock, MetadataLocks, MetadataMode, Owner};

const SHARDS: usize = 16;
/// How often it is looked whether those inside have come out.
const LOOK: Duration = Duration::from_millis(1);

#[repr(align(128))]
#[derive(Default)]
struct Inside(AtomicU64);

#[derive(Default)]
pub(crate) struct Gate {
    inside: [Inside; SHARDS],
    /// How many have closed it, or are about to.
    closed: AtomicU64,
    lock: Arc<MetadataLock>,
}

/// How somebody went in.
pub(crate) enum Way {
    /// Counted in this shard.
    Counted(usize),
    Locked,
}

impl Gate {
    /// Who has closed it, and who waits before it while it is closed.
    pub(crate) fn lock(&self) -> &Arc<MetadataLock> {
        &self.lock
    }

    /// Goes in if it is open.
    pub(crate) fn try_enter(&self, owner: Owner) -> Option<Way> {
        let shard = owner.shard(SHARDS);
        let inside = &self.inside[shard].0;
        // The count goes up before it is looked whether the gate is closed, and `close` looks at the counts after it has closed it: one of the two
        // sees the other.
        inside.fetch_add(1, Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) == 0 {
            return Some(Way::Counted(shard));
        }
        inside.fetch_sub(1, Ordering::SeqCst);
        None
    }

    /// Goes in by the lock, if that is free: to stay for long, or to wait for tables inside. Whoever closes the gate waits for it as for a table.
    pub(crate) fn try_enter_locked(&self, locks: &MetadataLocks, owner: Owner) -> Option<Way> {
        locks.try_acquire(owner, &self.lock, MetadataMode::Write).then_some(Way::Locked)
    }

    /// Goes in by the lock. Errors: 1205, 1213, 1317.
    pub(crate) async fn enter_locked(
        &self,
        locks: &MetadataLocks,
        owner: Owner,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Way, MySqlError> {
        locks.acquire(owner, &self.lock, MetadataMode::Write, timeout, interrupt).await?;
        Ok(Way::Locked)
    }

    pub(crate) fn leave(&self, locks: &MetadataLocks, owner: Owner, way: &Way) {
        match way {
            Way::Counted(shard) => drop(self.inside[*shard].0.fetch_sub(1, Ordering::SeqCst)),
            Way::Locked => locks.release(owner, &self.lock),
        }
    }

    /// Closes it and waits for those inside. Others may have it closed too. Errors: 1205, 1213, 1317.
    pub(crate) async fn close<'l>(
        &'l self,
        locks: &'l MetadataLocks,
        owner: Owner,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Closed<'l>, MySqlError> {
        let deadline = Instant::now().checked_add(timeout);
        self.closed.fetch_add(1, Ordering::SeqCst);
        let mut closed = Closed { gate: self, locks, owner, locked: false };
        locks.acquire(owner, &self.lock, MetadataMode::ReadOnly, timeout, interrupt).await?;
        closed.locked = true;
        let mut alarm = None;
        let emptied = poll_fn(|cx| {
            // Who comes now counts itself for a moment only.
            if self.inside.iter().all(|shard| shard.0.load(Ordering::SeqCst) == 0) {
                return Poll::Ready(Ok(()));
            }
            let now = Instant::now();
            if interrupt.is_raised() {
                return Poll::Ready(Err(errors::query_interrupted()));
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Poll::Ready(Err(errors::lock_wait_timeout()));
            }
            alarm = Some(locks.wake_at(now + LOOK, cx.waker().clone()));
            Poll::Pending
        });
        waiting(WaitKind::TableLock, emptied).await?;
        Ok(closed)
    }

    /// Opens what `close` has closed and `Closed::keep` has kept so.
    pub(crate) fn open(&self, locks: &MetadataLocks, owner: Owner) {
        drop(Closed { gate: self, locks, owner, locked: true });
    }
}

/// A gate that is closed, or about to be, until this is dropped.
pub(crate) struct Closed<'l> {
    gate: &'l Gate,
    locks: &'l MetadataLocks,
    owner: Owner,
    locked: bool,
}

impl Closed<'_> {
    /// Leaves it closed: `Gate::open` opens it.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        // Before the lock: who comes in between counts itself, and nobody waits for that any more.
        self.gate.closed.fetch_sub(1, Ordering::SeqCst);
        if self.locked {
            self.locks.release(self.owner, &self.gate.lock);
        }
    }
}
