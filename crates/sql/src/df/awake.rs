//! Where workers are that are awake. A worker that is woken may begin on the processor of the one that wakes it, and queries of some milliseconds are over
//! before the system moves it to an idle one; where each was last, it begins the next time. So a worker that finds another one where it is goes elsewhere.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use highkey_table::{leave_processors, processor};

/// Asleep, or the system does not tell.
const NOWHERE: usize = usize::MAX;

thread_local! {
    /// Which of its engine's workers a thread is.
    static WORKER: Cell<usize> = const { Cell::new(NOWHERE) };
}

/// The processors of workers, by worker, as of when each woke up.
#[derive(Debug)]
pub(super) struct Awake {
    places: Vec<AtomicUsize>,
    begun: AtomicUsize,
}

impl Awake {
    pub fn of(workers: usize) -> Awake {
        Awake { places: (0..workers).map(|_| AtomicUsize::new(NOWHERE)).collect(), begun: AtomicUsize::new(0) }
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
        if may_move && self.is_taken(here, place) {
            leave_processors(&self.taken());
            here = processor().unwrap_or(NOWHERE);
        }
        place.store(here, Ordering::Relaxed);
    }

    fn is_taken(&self, processor: usize, by_others_than: &AtomicUsize) -> bool {
        self.places.iter().any(|place| !std::ptr::eq(place, by_others_than) && place.load(Ordering::Relaxed) == processor)
    }

    fn taken(&self) -> Vec<usize> {
        self.places.iter().map(|place| place.load(Ordering::Relaxed)).filter(|processor| *processor != NOWHERE).collect()
    }

    fn place(&self) -> Option<&AtomicUsize> {
        self.places.get(WORKER.get())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn whoever_wakes_up_where_another_is_goes_elsewhere() {
        if std::thread::available_parallelism().unwrap().get() == 1 {
            return;
        }
        let awake = Arc::new(Awake::of(2));
        awake.begins();
        let placed = |worker: usize| awake.places[worker].load(Ordering::Relaxed);
        let other = |may_move: bool| {
            let awake = awake.clone();
            // It says that it is where the other is: whoever looks may have been moved since.
            let woken = std::thread::spawn(move || {
                WORKER.set(1);
                awake.places[0].store(processor().unwrap(), Ordering::Relaxed);
                awake.wakes(may_move);
                awake.is_taken(awake.places[1].load(Ordering::Relaxed), &awake.places[1])
            });
            woken.join().unwrap()
        };
        assert!((0..100).any(|_| !other(true)), "it stays");
        assert!((0..100).any(|_| other(false)), "others need the processors");
        awake.sleeps();
        assert_eq!(placed(0), NOWHERE);
        // A thread that is no worker of this engine's.
        std::thread::scope(|scope| scope.spawn(|| awake.wakes(true)).join().unwrap());
        assert_eq!(placed(0), NOWHERE);
    }
}
