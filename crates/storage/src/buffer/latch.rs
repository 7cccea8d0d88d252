//! The latch word of a page.
//!
//! ```text
//! 63..24 changes (counted when X is released)   23..16 loads (counted when the page is read in)
//! 14 EVICTED  13 IO  12 REF
//! 11 SMO_WAITERS  10 WAITERS  9 SMO_PENDING  8..1 shared count  0 X
//! ```
//! An ordinary waiter spins briefly, then parks on the word's address. A structure modification sets SMO_PENDING, which
//! keeps everybody else out while the latch drains, and is woken before them.

use crate::counters::Counters;
use crate::sync::park::{self, Choice};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, spin_hint};
use crate::waits::{self, WaitKind, WaitSum};

use super::LatchClass;
use std::cell::Cell;

pub(super) const X: u64 = 1;
const SHARED_ONE: u64 = 1 << 1;
const SHARED_MASK: u64 = 0xff << 1;
const SMO_PENDING: u64 = 1 << 9;
const WAITERS: u64 = 1 << 10;
const SMO_WAITERS: u64 = 1 << 11;
pub(super) const REF: u64 = 1 << 12;
const IO: u64 = 1 << 13;
pub(super) const EVICTED: u64 = 1 << 14;
const LOAD_ONE: u64 = 1 << 16;
const CHANGE_ONE: u64 = 1 << 24;
/// What unlatched reads compare: other bytes, or the same in another frame. A load too many is counted as a change.
const VERSION_MASK: u64 = !(LOAD_ONE - 1);
/// The same bytes, in whatever frame, or on disk.
const CHANGES_MASK: u64 = !(CHANGE_ONE - 1);

/// Who is parked.
const SHARED: usize = 0;
const EXCLUSIVE: usize = 1;
const SMO: usize = 2;

/// What asking for a latch led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Acquired,
    /// The page is not in memory and nobody is reading it: the caller may, after `begin_load`.
    Evicted,
}

/// The latch operations on one word.
pub(super) struct Latch<'a> {
    pub word: &'a AtomicU64,
    /// How many times it is polled before a waiter parks.
    pub spins: &'a AtomicU32,
    pub counters: &'a Counters,
    /// A structure modification had to wait for it.
    pub waited: Cell<bool>,
    /// How a statement was parked for it, but for the times that it was parked while another thread read the page in.
    pub parked: Cell<WaitSum>,
}

impl Latch<'_> {
    fn address(&self) -> usize {
        self.word as *const AtomicU64 as usize
    }

    fn swap(&self, from: u64, to: u64) -> bool {
        let swapped = self.word.compare_exchange_weak(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if swapped && to & X != 0 {
            // No change of the page is seen before this: who reads it without a latch validates against it.
            fence(Ordering::Release);
        }
        swapped
    }

    fn shared_blocked(w: u64) -> bool {
        w & (X | SMO_PENDING) != 0 || w & SHARED_MASK == SHARED_MASK
    }

    fn exclusive_blocked(w: u64) -> bool {
        w & (X | SMO_PENDING | SHARED_MASK) != 0
    }

    fn smo_blocked(w: u64) -> bool {
        w & (X | SHARED_MASK) != 0
    }

    /// Shared; `mark` is REF or 0.
    pub fn lock_shared(&self, mark: u64) -> Outcome {
        let mut spins = 0;
        loop {
            let w = self.word.load(Ordering::Relaxed);
            if w & (EVICTED | X) == EVICTED {
                return Outcome::Evicted;
            }
            if !Self::shared_blocked(w) {
                if self.swap(w, (w + SHARED_ONE) | mark) {
                    return Outcome::Acquired;
                }
                continue;
            }
            self.wait(&mut spins, SHARED, WAITERS, Self::shared_blocked);
        }
    }

    pub fn lock_exclusive(&self, class: LatchClass) -> Outcome {
        let mut spins = 0;
        loop {
            let w = self.word.load(Ordering::Relaxed);
            if w & (EVICTED | X) == EVICTED {
                return Outcome::Evicted;
            }
            match class {
                LatchClass::Ordinary => {
                    if !Self::exclusive_blocked(w) {
                        if self.swap(w, w | X | REF) {
                            return Outcome::Acquired;
                        }
                        continue;
                    }
                    self.wait(&mut spins, EXCLUSIVE, WAITERS, Self::exclusive_blocked);
                }
                LatchClass::Smo => {
                    if !Self::smo_blocked(w) {
                        if self.swap(w, taken_by_smo(w) | REF) {
                            return Outcome::Acquired;
                        }
                        continue;
                    }
                    self.waited.set(true);
                    if w & SMO_PENDING == 0 {
                        if self.swap(w, w | SMO_PENDING) {
                            self.counters.smo_waits.add(1);
                        }
                        continue;
                    }
                    self.wait(&mut spins, SMO, SMO_WAITERS, Self::smo_blocked);
                }
            }
        }
    }

    pub fn try_shared(&self, mark: u64) -> bool {
        loop {
            let w = self.word.load(Ordering::Relaxed);
            if w & EVICTED != 0 || Self::shared_blocked(w) {
                return false;
            }
            if self.swap(w, (w + SHARED_ONE) | mark) {
                return true;
            }
        }
    }

    /// Exclusive, if nobody has the latch or has asked for it as a structure modification.
    pub fn try_exclusive(&self) -> bool {
        loop {
            let w = self.word.load(Ordering::Relaxed);
            if w & EVICTED != 0 || Self::exclusive_blocked(w) {
                return false;
            }
            if self.swap(w, w | X | REF) {
                return true;
            }
        }
    }

    /// Takes X to evict: only a page that nobody holds, wants, or used since the clock hand last came by.
    pub fn try_evict(&self) -> bool {
        let w = self.word.load(Ordering::Relaxed);
        w & (X | SHARED_MASK | SMO_PENDING | WAITERS | SMO_WAITERS | EVICTED | IO | REF) == 0 && self.swap(w, w | X)
    }

    /// Becomes the one who reads the page in: X and IO on an evicted page.
    pub fn begin_load(&self, class: LatchClass) -> bool {
        let w = self.word.load(Ordering::Relaxed);
        if w & (EVICTED | X) != EVICTED {
            return false;
        }
        debug_assert_eq!(w & SHARED_MASK, 0, "an evicted page is held by nobody");
        let taken = if class == LatchClass::Smo { taken_by_smo(w) } else { w | X };
        self.swap(w, taken | IO)
    }

    /// The page is in memory; X stays.
    pub fn end_load(&self, mark: u64) {
        self.change(|w| ((w & !(EVICTED | IO)) | mark).wrapping_add(LOAD_ONE));
    }

    /// Reading failed: the page is as absent as before.
    pub fn abort_load(&self) {
        self.change(|w| w & !IO);
        self.unlock_unchanged();
    }

    /// The page leaves memory: EVICTED and release.
    pub fn end_evict(&self) {
        self.change(|w| w | EVICTED);
        self.unlock_unchanged();
    }

    fn change(&self, f: impl Fn(u64) -> u64) {
        loop {
            let w = self.word.load(Ordering::Relaxed);
            if self.word.compare_exchange_weak(w, f(w), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    pub fn clear_ref(&self) {
        self.word.fetch_and(!REF, Ordering::Relaxed);
    }

    pub fn unlock_shared(&self) {
        let old = self.word.fetch_sub(SHARED_ONE, Ordering::Release);
        debug_assert!(old & SHARED_MASK != 0 && old & X == 0, "a shared latch is held");
        let shared = old & SHARED_MASK;
        if (shared == SHARED_ONE || shared == SHARED_MASK) && old & (WAITERS | SMO_WAITERS) != 0 {
            self.wake();
        }
    }

    pub fn unlock_exclusive(&self) {
        // One addition clears X and counts a change, whatever bits others set meanwhile.
        self.release_exclusive(CHANGE_ONE - X);
    }

    /// As `unlock_exclusive`, by one who has not changed the page.
    pub fn unlock_unchanged(&self) {
        self.release_exclusive(X.wrapping_neg());
    }

    fn release_exclusive(&self, add: u64) {
        let old = self.word.fetch_add(add, Ordering::Release);
        debug_assert!(old & X != 0, "the exclusive latch is held");
        if old & (WAITERS | SMO_WAITERS) != 0 {
            self.wake();
        }
    }

    /// From exclusive to shared, after reading a page in.
    pub fn downgrade(&self) {
        let old = self.word.fetch_add(SHARED_ONE - X, Ordering::Release);
        debug_assert!(old & X != 0 && old & SHARED_MASK == 0);
        if old & (WAITERS | SMO_WAITERS) != 0 {
            self.wake();
        }
    }

    fn wait(&self, spins: &mut u32, token: usize, bit: u64, blocked: fn(u64) -> bool) {
        if *spins < self.spins.load(Ordering::Relaxed) {
            if *spins == 0 {
                self.counters.latch_spins.add(1);
            }
            *spins += 1;
            spin_hint();
            return;
        }
        let w = self.word.load(Ordering::Relaxed);
        if !blocked(w) || (w & bit == 0 && !self.swap(w, w | bit)) {
            return;
        }
        self.counters.latch_waits.add(1);
        // Under the queue's lock the bit is still set (a waker that cleared it saw no waiter) and the way still blocked.
        let counted = waits::blocked(if w & IO != 0 { WaitKind::PageRead } else { WaitKind::Latch });
        park::park(self.address(), token, || {
            let w = self.word.load(Ordering::Relaxed);
            w & bit != 0 && blocked(w) && w & (EVICTED | X) != EVICTED
        });
        let nanos = counted.end();
        if nanos > 0 && w & IO == 0 {
            let before = self.parked.get();
            self.parked.set(WaitSum { count: before.count + 1, nanos: before.nanos + nanos });
        }
        *spins = 0;
    }

    /// Wakes one SMO if any is parked; else, unless one is about to take the latch, all readers and one writer.
    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) & SMO_WAITERS != 0 && self.wake_smo() {
            return;
        }
        let w = self.word.load(Ordering::Relaxed);
        if w & WAITERS != 0 && w & SMO_PENDING == 0 {
            self.wake_ordinary();
        }
    }

    fn wake_smo(&self) -> bool {
        let (woken, more) = (Cell::new(false), Cell::new(false));
        park::unpark(
            self.address(),
            |token| match token {
                SMO if !woken.replace(true) => Choice::Wake,
                SMO => {
                    more.set(true);
                    Choice::Stop
                }
                _ => Choice::Skip,
            },
            || {
                // With nobody parked, the bits were left by an SMO that got the latch before it could park. Were there
                // another one, still polling, it sets them again; left alone they would keep everybody else out.
                let stale = if woken.get() { 0 } else { SMO_PENDING };
                if !more.get() {
                    self.word.fetch_and(!(SMO_WAITERS | stale), Ordering::Relaxed);
                }
            },
        );
        woken.get()
    }

    fn wake_ordinary(&self) {
        let (writer, more) = (Cell::new(false), Cell::new(false));
        park::unpark(
            self.address(),
            |token| match token {
                SHARED => Choice::Wake,
                EXCLUSIVE if !writer.replace(true) => Choice::Wake,
                EXCLUSIVE => {
                    more.set(true);
                    Choice::Skip
                }
                _ => Choice::Skip,
            },
            || {
                if !more.get() {
                    self.word.fetch_and(!WAITERS, Ordering::Relaxed);
                }
            },
        );
    }

    /// The version for unlatched reads, `None` while the page is written or absent.
    pub fn optimistic(&self) -> Option<u64> {
        let w = self.word.load(Ordering::Acquire);
        if w & (X | EVICTED) != 0 {
            return None;
        }
        if w & REF == 0 {
            self.word.fetch_or(REF, Ordering::Relaxed);
        }
        Some(w)
    }

    pub fn is_resident(&self) -> bool {
        self.word.load(Ordering::Relaxed) & EVICTED == 0
    }
}

/// The word once an SMO has taken it: SMO_PENDING stays while another one is parked.
fn taken_by_smo(w: u64) -> u64 {
    if w & SMO_WAITERS != 0 { w | X } else { (w | X) & !SMO_PENDING }
}

fn same_version(now: u64, then: u64) -> bool {
    (now ^ then) & (VERSION_MASK | X | EVICTED) == 0
}

/// True if nobody can have changed the page since the word was `then`, nor can now: it may have been evicted and read in again.
pub(super) fn same_bytes(word: &AtomicU64, then: u64) -> bool {
    let now = word.load(Ordering::Acquire);
    if now & (REF | EVICTED) == 0 {
        word.fetch_or(REF, Ordering::Relaxed);
    }
    (now ^ then) & CHANGES_MASK == 0 && now & X == 0
}

/// True if what was read since `version` was taken is of one state of the page.
pub(super) fn validate(word: &AtomicU64, version: u64) -> bool {
    fence(Ordering::Acquire);
    same_version(word.load(Ordering::Relaxed), version)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    /// A word that only the latch protects, so that Miri sees a race if it does not.
    struct Page {
        word: AtomicU64,
        spins: AtomicU32,
        counters: Counters,
        value: UnsafeCell<u64>,
    }

    // SAFETY: `value` is read under the shared latch and written under the exclusive one.
    unsafe impl Sync for Page {}

    impl Page {
        fn latch(&self) -> Latch<'_> {
            Latch { word: &self.word, spins: &self.spins, counters: &self.counters, waited: Cell::new(false), parked: Cell::default() }
        }
    }

    const ROUNDS: u64 = if cfg!(miri) { 40 } else { 20_000 };

    #[test]
    fn what_the_latch_protects_is_not_raced_for() {
        let page = Page { word: AtomicU64::new(0), spins: AtomicU32::new(crate::sync::SPIN_LIMIT), counters: Counters::default(), value: UnsafeCell::new(0) };
        let write = |class| {
            for _ in 0..ROUNDS {
                assert!(page.latch().lock_exclusive(class) == Outcome::Acquired);
                // SAFETY: the exclusive latch is held.
                unsafe { *page.value.get() += 1 };
                page.latch().unlock_exclusive();
            }
        };
        let read = || {
            let mut last = 0;
            for _ in 0..ROUNDS {
                assert!(page.latch().lock_shared(REF) == Outcome::Acquired);
                // SAFETY: the shared latch is held.
                let now = unsafe { *page.value.get() };
                assert!(now >= last);
                last = now;
                page.latch().unlock_shared();
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| write(LatchClass::Ordinary));
            s.spawn(|| write(LatchClass::Smo));
            s.spawn(read);
            s.spawn(|| {
                for _ in 0..ROUNDS {
                    assert!(page.latch().lock_exclusive(LatchClass::Smo) == Outcome::Acquired);
                    // SAFETY: the exclusive latch is held.
                    unsafe { *page.value.get() += 1 };
                    page.latch().downgrade();
                    page.latch().unlock_shared();
                }
            });
        });
        let version = page.latch().optimistic().expect("nobody has it");
        assert!(validate(&page.word, version));
        assert_eq!(page.value.into_inner(), ROUNDS * 3);
    }

    #[test]
    fn a_page_that_was_away_has_the_same_bytes_in_another_place() {
        let page = Page { word: AtomicU64::new(0), spins: AtomicU32::new(crate::sync::SPIN_LIMIT), counters: Counters::default(), value: UnsafeCell::new(0) };
        let then = page.latch().optimistic().expect("nobody has it");
        page.latch().clear_ref();
        assert!(page.latch().try_evict());
        assert!(!same_bytes(&page.word, then));
        page.latch().end_evict();
        assert!(same_bytes(&page.word, then) && !validate(&page.word, then));
        assert!(page.latch().begin_load(LatchClass::Ordinary));
        page.latch().end_load(0);
        page.latch().downgrade();
        page.latch().unlock_shared();
        assert!(same_bytes(&page.word, then) && !validate(&page.word, then));
        // Somebody who meant to evict it, and did not.
        page.latch().clear_ref();
        assert!(page.latch().try_evict());
        page.latch().unlock_unchanged();
        assert!(same_bytes(&page.word, then));
        assert!(page.latch().lock_exclusive(LatchClass::Ordinary) == Outcome::Acquired);
        page.latch().unlock_exclusive();
        assert!(!same_bytes(&page.word, then));
    }
}
