//! Latch and group commit under shuttle's schedules: exclusion, no lost wake-up (shuttle reports a deadlock), versions.
//! `cargo test -p highkey-storage --features shuttle`.

use super::LatchClass;
use super::latch::{EVICTED, Latch, Outcome, validate};
use crate::counters::Counters;
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering, thread};
use std::sync::atomic::AtomicI64 as Plain;

const SCHEDULES: usize = 3000;

#[derive(Default)]
struct Page {
    word: AtomicU64,
    spins: AtomicU32,
    counters: Counters,
    /// Holders: -1 exclusive. Not one of shuttle's atomics: it only checks.
    holders: Plain,
    a: AtomicU64,
    b: AtomicU64,
}

impl Page {
    fn latch(&self) -> Latch<'_> {
        Latch { word: &self.word, spins: &self.spins, counters: &self.counters, waited: std::cell::Cell::new(false), parked: std::cell::Cell::default() }
    }

    fn exclusive(&self, class: LatchClass) {
        assert_eq!(self.latch().lock_exclusive(class), Outcome::Acquired);
        self.write();
        self.latch().unlock_exclusive();
    }

    fn write(&self) {
        assert_eq!(self.holders.swap(-1, Ordering::Relaxed), 0, "exclusive means alone");
        self.a.store(self.a.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        thread::yield_now();
        self.b.store(self.b.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        assert_eq!(self.holders.swap(0, Ordering::Relaxed), -1);
    }

    fn shared(&self) {
        assert_eq!(self.latch().lock_shared(0), Outcome::Acquired);
        self.read();
        self.latch().unlock_shared();
    }

    fn read(&self) {
        assert!(self.holders.fetch_add(1, Ordering::Relaxed) >= 0, "shared means no writer");
        assert_eq!(self.a.load(Ordering::Relaxed), self.b.load(Ordering::Relaxed));
        self.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

fn check(threads: Vec<fn(&Page)>) {
    let run = move || {
        let page = Arc::new(Page::default());
        let handles: Vec<_> = threads
            .iter()
            .map(|f| {
                let (f, page) = (*f, page.clone());
                thread::spawn(move || f(&page))
            })
            .collect();
        handles.into_iter().for_each(|h| h.join().unwrap());
        let w = page.word.load(Ordering::Relaxed);
        assert_eq!(w & 0x7ff & !(1 << 10), 0, "nobody holds or wants the latch any more: {w:#x}");
    };
    shuttle::check_random(run.clone(), SCHEDULES);
    shuttle::check_pct(run, SCHEDULES, 3);
}

#[test]
fn writers_readers_and_smos() {
    check(vec![
        |p| p.exclusive(LatchClass::Ordinary),
        |p| p.exclusive(LatchClass::Smo),
        |p| p.exclusive(LatchClass::Ordinary),
        |p| p.shared(),
        |p| p.shared(),
    ]);
}

#[test]
fn several_smos() {
    check(vec![
        |p| p.exclusive(LatchClass::Smo),
        |p| p.exclusive(LatchClass::Smo),
        |p| p.exclusive(LatchClass::Smo),
        |p| p.shared(),
        |p| p.exclusive(LatchClass::Ordinary),
    ]);
}

#[test]
fn optimistic_readers_notice_writers() {
    fn optimistic(p: &Page) {
        for _ in 0..2 {
            if let Some(version) = p.latch().optimistic() {
                let (a, b) = (p.a.load(Ordering::Relaxed), p.b.load(Ordering::Relaxed));
                if validate(&p.word, version) {
                    assert_eq!(a, b);
                }
            }
        }
    }
    check(vec![optimistic, optimistic, |p| p.exclusive(LatchClass::Ordinary), |p| p.exclusive(LatchClass::Smo)]);
}

#[test]
fn loading_failing_and_evicting() {
    fn get(p: &Page, class: Option<LatchClass>, fail: bool) {
        loop {
            let latch = p.latch();
            let outcome = match class {
                Some(class) => latch.lock_exclusive(class),
                None => latch.lock_shared(0),
            };
            if outcome == Outcome::Acquired {
                if class.is_some() {
                    p.write();
                    latch.unlock_exclusive();
                } else {
                    p.read();
                    latch.unlock_shared();
                }
                return;
            }
            if latch.begin_load(class.unwrap_or(LatchClass::Ordinary)) {
                assert_eq!(p.holders.swap(-1, Ordering::Relaxed), 0);
                thread::yield_now();
                p.holders.store(0, Ordering::Relaxed);
                if fail {
                    latch.abort_load();
                    return;
                }
                latch.end_load(0);
                if class.is_some() {
                    latch.unlock_exclusive();
                } else {
                    latch.downgrade();
                    p.read();
                    latch.unlock_shared();
                }
                return;
            }
        }
    }
    fn evict(p: &Page) {
        for _ in 0..3 {
            if p.latch().try_evict() {
                assert_eq!(p.holders.swap(-1, Ordering::Relaxed), 0);
                p.holders.store(0, Ordering::Relaxed);
                p.latch().end_evict();
            }
            p.latch().clear_ref();
        }
    }
    check(vec![
        |p| {
            p.latch().try_evict().then(|| p.latch().end_evict());
            get(p, None, true);
        },
        |p| get(p, None, false),
        |p| get(p, Some(LatchClass::Ordinary), true),
        |p| get(p, Some(LatchClass::Smo), false),
        evict,
    ]);
    assert_ne!(EVICTED, 0);
}
