//! Guards: a latched page, shared or exclusive. Move-only; dropping one releases.

use super::BufferPool;
use super::held::{self, How};
use super::latch::Latch;
use super::table::Entry;
use crate::ids::PageId;
use crate::sync::Ordering;

/// A page latched shared. Dropping it releases.
pub struct SharedGuard<'p> {
    pool: &'p BufferPool,
    entry: &'p Entry,
    frame: u32,
    id: PageId,
}

impl<'p> SharedGuard<'p> {
    /// The caller has taken the shared latch.
    pub(super) fn new(pool: &'p BufferPool, entry: &'p Entry, id: PageId, how: How) -> SharedGuard<'p> {
        let guard = SharedGuard { pool, entry, frame: entry.frame(), id };
        held::add(pool, id, &guard, how);
        guard
    }

    pub fn id(&self) -> PageId {
        self.id
    }

    /// What the page's version is while this guard is held; see `BufferPool::has_version`.
    pub fn version(&self) -> u64 {
        self.entry.latch.load(Ordering::Relaxed)
    }
}

impl std::ops::Deref for SharedGuard<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: I1, the guard holds the shared latch.
        unsafe { self.pool.frames.bytes(self.frame) }
    }
}

impl Drop for SharedGuard<'_> {
    fn drop(&mut self) {
        held::remove(self.pool, self.id);
        self.pool.latch(self.entry).unlock_shared();
    }
}

/// A page latched exclusively; its bytes change only through `Scope::apply`. Dropping it releases.
pub struct ExclusiveGuard<'p> {
    pub(super) pool: &'p BufferPool,
    pub(super) entry: &'p Entry,
    pub(super) frame: u32,
    id: PageId,
    /// Others had the latch when it was asked for, as a structure modification.
    pub(super) waited: bool,
}

impl<'p> ExclusiveGuard<'p> {
    /// The caller has taken the exclusive latch.
    pub(super) fn new(pool: &'p BufferPool, entry: &'p Entry, id: PageId, how: How) -> ExclusiveGuard<'p> {
        let guard = ExclusiveGuard { pool, entry, frame: entry.frame(), id, waited: false };
        held::add(pool, id, &guard, how);
        guard
    }

    pub fn id(&self) -> PageId {
        self.id
    }

    /// Whether a structure modification had to wait for the latch.
    pub fn waited(&self) -> bool {
        self.waited
    }

    /// For `Scope` and redo only: everything else must log what it changes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: I1, the guard holds the exclusive latch, and the borrow of the guard makes the slice the only one.
        unsafe { self.pool.frames.bytes_mut(self.frame) }
    }

    /// Keeps the latch, shared: others may read, nobody may write. Of a page that was only read in: no change is counted.
    pub(super) fn downgrade(self) -> SharedGuard<'p> {
        self.assert_committed();
        let (pool, entry, frame, id) = (self.pool, self.entry, self.frame, self.id);
        std::mem::forget(self);
        pool.latch(entry).downgrade();
        SharedGuard { pool, entry, frame, id }
    }

    fn assert_committed(&self) {
        if self.pool.frames.get(self.frame).in_scope.load(Ordering::Relaxed) {
            self.pool.fatal.stop("I3: a page was released before its mini-transaction committed");
        }
    }
}

impl std::ops::Deref for ExclusiveGuard<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: I1, the guard holds the exclusive latch.
        unsafe { self.pool.frames.bytes(self.frame) }
    }
}

impl Drop for ExclusiveGuard<'_> {
    fn drop(&mut self) {
        self.assert_committed();
        held::remove(self.pool, self.id);
        let latch: Latch<'_> = self.pool.latch(self.entry);
        latch.unlock_exclusive();
    }
}
