//! Where workers are that are awake. A worker that is woken may begin on the processor of the one that wakes it, and queries of some milliseconds are over
//! before the system moves it to an idle one; where each was last, it begins the next time. So a worker that finds another one where it is goes elsewhere.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use highkey_table::{leave_processors, processor};

/// Asleep, or the system does not tell.
const NOWHERE: u64 = u64::MAX;
/// Bits for the number of a processor.
const PROCESSOR_BITS: u32 = 16;
/// Later the system has had time to spread workers, and nobody knows where they are.
const SETTLED: Duration = Duration::from_millis(20);

thread_local! {
    /// Which of its engine's workers a thread is.
    static WORKER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The processors of workers, by worker, and when each woke up there.
#[derive(Debug)]
pub(super) struct Awake {
    places: Vec<AtomicU64>,
    begun: AtomicUsize,
    since: Instant,
}

impl Awake {
    pub fn of(workers: usize) -> Awake {
        Awake { places: (0..workers).map(|_| AtomicU64::new(NOWHERE)).collect(), begun: AtomicUsize::new(0), since: Instant::now() }
    }

    /// The calling thread is a worker. The first threads of a runtime are; later ones are for what blocks.
    pub fn begins(&self) {
        WORKER.set(self.begun.fetch_add(1, Ordering::Relaxed));
    }

    /// The calling worker goes to sleep.
    pub fn sleeps(&self) {
        if let Some(place) = self.place() {
            place.store(NOWHERE, Ordering::Relaxed);
        }
    }

    /// The calling worker has been woken. `may_move`: nobody else waits for processors.
    pub fn wakes(&self, may_move: bool) {
        let (Some(place), Some(mut here)) = (self.place(), processor()) else { return };
        let now = self.since.elapsed().as_millis() as u64;
        place.store(NOWHERE, Ordering::Relaxed);
        if may_move {
            let taken = self.taken(now);
            if taken.contains(&here) {
                leave_processors(&taken);
                here = processor().unwrap_or(here);
            }
        }
        place.store(now << PROCESSOR_BITS | here as u64, Ordering::Relaxed);
    }

    /// The processors on which workers have woken up just before.
    fn taken(&self, now: u64) -> Vec<usize> {
        let awake = self.places.iter().map(|place| place.load(Ordering::Relaxed)).filter(|place| *place != NOWHERE);
        let fresh = awake.filter(|place| now.saturating_sub(place >> PROCESSOR_BITS) < SETTLED.as_millis() as u64);
        fresh.map(|place| (place & ((1 << PROCESSOR_BITS) - 1)) as usize).collect()
    }

    fn place(&self) -> Option<&AtomicU64> {
        self.places.get(WORKER.get())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn whoever_wakes_up_where_another_has_just_woken_up_goes_elsewhere() {
        if std::thread::available_parallelism().unwrap().get() == 1 {
            return;
        }
        let began = Instant::now().checked_sub(Duration::from_secs(10)).expect("the system runs for longer");
        let awake = Arc::new(Awake { since: began, ..Awake::of(2) });
        // Wakes up where the other is said to have woken up so many milliseconds ago, and says whether it stayed. It may also be moved by the system meanwhile.
        let stays = |may_move: bool, ago: u64| {
            let awake = awake.clone();
            let woken = std::thread::spawn(move || {
                WORKER.set(1);
                let here = processor().unwrap() as u64;
                let then = awake.since.elapsed().as_millis() as u64 - ago;
                awake.places[0].store(then << PROCESSOR_BITS | here, Ordering::Relaxed);
                awake.wakes(may_move);
                awake.places[1].load(Ordering::Relaxed) & ((1 << PROCESSOR_BITS) - 1) == here
            });
            woken.join().unwrap()
        };
        assert!((0..100).any(|_| !stays(true, 0)), "it does not move");
        assert!((0..100).any(|_| stays(false, 0)), "others need the processors");
        assert!((0..100).any(|_| stays(true, 1000)), "the system has moved the other one since");
    }

    #[test]
    fn workers_have_places_while_they_are_awake() {
        let awake = Awake::of(1);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                awake.begins();
                awake.wakes(true);
                assert_eq!(awake.taken(0).len(), 1);
                awake.sleeps();
                assert!(awake.taken(0).is_empty());
            });
            worker.join().unwrap();
            // A thread for what blocks.
            let other = scope.spawn(|| {
                awake.begins();
                awake.wakes(true);
            });
            other.join().unwrap();
        });
        assert!(awake.taken(0).is_empty());
    }
}
