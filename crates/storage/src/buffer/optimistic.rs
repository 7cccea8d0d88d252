//! Unlatched reads: a version taken before, checked after. Everything between goes through relaxed atomic loads, because
//! another thread may be writing; what was read means nothing until `validate` says so.

use super::latch;
use super::table::Entry;
use super::BufferPool;
use crate::page::PAGE_SIZE;
use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};

/// A page not latched at all. Offsets are clamped into the page, so a torn offset reads garbage, never outside.
#[derive(Clone, Copy)]
pub struct OptimisticGuard<'p> {
    entry: &'p Entry,
    base: *const u8,
    version: u64,
}

macro_rules! load {
    ($name:ident, $int:ty, $atomic:ty) => {
        pub fn $name(&self, at: usize) -> $int {
            const N: usize = std::mem::size_of::<$int>();
            let at = at.min(PAGE_SIZE - N);
            if at % N == 0 {
                // SAFETY: I2, inside the arena and aligned; concurrent writers are detected by `validate`.
                <$int>::from_le(unsafe { (*(self.base.add(at) as *const $atomic)).load(Ordering::Relaxed) })
            } else {
                let mut bytes = [0; N];
                for (i, b) in bytes.iter_mut().enumerate() {
                    *b = self.u8(at + i);
                }
                <$int>::from_le_bytes(bytes)
            }
        }
    };
}

impl<'p> OptimisticGuard<'p> {
    pub(super) fn new(pool: &'p BufferPool, entry: &'p Entry, version: u64) -> OptimisticGuard<'p> {
        OptimisticGuard { entry, base: pool.frames.pointer(entry.frame()), version }
    }

    pub fn u8(&self, at: usize) -> u8 {
        let at = at.min(PAGE_SIZE - 1);
        // SAFETY: I2, inside the arena; concurrent writers are detected by `validate`.
        unsafe { (*(self.base.add(at) as *const AtomicU8)).load(Ordering::Relaxed) }
    }

    load!(u16, u16, AtomicU16);
    load!(u64, u64, AtomicU64);

    fn clamp(at: usize, len: usize) -> (usize, usize) {
        let at = at.min(PAGE_SIZE);
        (at, len.min(PAGE_SIZE - at))
    }

    /// Replaces `out` by `len` bytes from `at` (clamped to the page).
    #[cfg(all(test, not(feature = "shuttle")))]
    pub fn copy(&self, at: usize, len: usize, out: &mut Vec<u8>) {
        let (at, len) = Self::clamp(at, len);
        out.clear();
        out.reserve(len);
        self.words(at, len, |bytes| {
            out.extend_from_slice(bytes);
            true
        });
    }

    /// Compares the `len` bytes from `at` with `other`, as `slice::cmp` would.
    pub fn compare(&self, at: usize, len: usize, other: &[u8]) -> Order {
        let (at, len) = Self::clamp(at, len);
        let mut done = 0;
        let mut order = Order::Equal;
        self.words(at, len.min(other.len()), |bytes| {
            order = bytes.cmp(&other[done..done + bytes.len()]);
            done += bytes.len();
            order == Order::Equal
        });
        order.then(len.cmp(&other.len()))
    }

    /// Hands out the range in pieces of at most 8 bytes, while `f` says to go on.
    fn words(&self, mut at: usize, len: usize, mut f: impl FnMut(&[u8]) -> bool) {
        let end = at + len;
        while at < end {
            let n = (end - at).min(8 - at % 8);
            let word = self.u64(at - at % 8).to_le_bytes();
            if !f(&word[at % 8..at % 8 + n]) {
                return;
            }
            at += n;
        }
    }

    /// True if nothing changed since the guard was made: everything read so far was of one state of the page.
    #[must_use]
    pub fn validate(&self) -> bool {
        latch::validate(&self.entry.latch, self.version)
    }
}

// SAFETY: the pointer is into the pool's arena, which the pool of `'p` keeps alive; all access is atomic.
unsafe impl Send for OptimisticGuard<'_> {}
