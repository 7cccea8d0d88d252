//! Guards: a latched page, shared or exclusive, or a version to validate.

use crate::ids::{Lsn, PageId};
use std::marker::PhantomData;

/// A page latched shared. Dropping it releases.
pub struct SharedGuard<'p>(PhantomData<&'p ()>);
/// A page latched exclusively; its bytes change only through `Scope::apply`. Dropping it releases.
pub struct ExclusiveGuard<'p>(PhantomData<&'p ()>);
/// A page not latched at all: reads may be torn until `validate` says they were not.
#[derive(Clone, Copy)]
pub struct OptimisticGuard<'p>(PhantomData<&'p ()>);

impl SharedGuard<'_> {
    pub fn id(&self) -> PageId {
        unimplemented!()
    }
    pub fn lsn(&self) -> Lsn {
        unimplemented!()
    }
}
impl std::ops::Deref for SharedGuard<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        unimplemented!()
    }
}
impl ExclusiveGuard<'_> {
    pub fn id(&self) -> PageId {
        unimplemented!()
    }
    pub fn lsn(&self) -> Lsn {
        unimplemented!()
    }
}
impl std::ops::Deref for ExclusiveGuard<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        unimplemented!()
    }
}

/// Offsets are masked into the page, so a torn offset reads garbage, never outside.
impl<'p> OptimisticGuard<'p> {
    pub fn id(&self) -> PageId {
        unimplemented!()
    }
    pub fn u8(&self, _at: usize) -> u8 {
        unimplemented!()
    }
    pub fn u16(&self, _at: usize) -> u16 {
        unimplemented!()
    }
    pub fn u32(&self, _at: usize) -> u32 {
        unimplemented!()
    }
    pub fn u64(&self, _at: usize) -> u64 {
        unimplemented!()
    }
    /// Replaces `out` by `len` bytes from `at` (clamped to the page).
    pub fn copy(&self, _at: usize, _len: usize, _out: &mut Vec<u8>) {
        unimplemented!()
    }
    /// Compares the `len` bytes from `at` with `other`, as `slice::cmp` would.
    pub fn compare(&self, _at: usize, _len: usize, _other: &[u8]) -> std::cmp::Ordering {
        unimplemented!()
    }
    /// True if nothing changed since the guard was made: everything read so far was of one state of the page.
    #[must_use]
    pub fn validate(&self) -> bool {
        unimplemented!()
    }
    /// Latches the page if it is still the version read; `None` if it changed or the latch is not free at once.
    pub fn try_upgrade_shared(&self) -> Option<SharedGuard<'p>> {
        unimplemented!()
    }
    /// As `try_upgrade_shared`.
    pub fn try_upgrade_exclusive(&self) -> Option<ExclusiveGuard<'p>> {
        unimplemented!()
    }
}
