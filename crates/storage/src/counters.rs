//! Counters of everything the lower half does; plain relaxed atomics, read by status reports.

use crossbeam::utils::CachePadded;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A number that only grows.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

const STRIPES: usize = 64;

/// The stripe of the next thread that counts.
static NEXT_STRIPE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's stripe, once it has counted.
    static STRIPE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A number that only grows, and that all threads raise all the time. Each has a stripe, as a rule to itself, and raises it by a plain load and store:
/// threads that share one may lose a count, as InnoDB's do.
#[derive(Debug)]
pub struct StripedCounter([CachePadded<AtomicU64>; STRIPES]);

impl Default for StripedCounter {
    fn default() -> StripedCounter {
        StripedCounter(std::array::from_fn(|_| CachePadded::default()))
    }
}

/// The stripe of this thread.
fn own_stripe() -> usize {
    STRIPE.with(|own| {
        own.get().unwrap_or_else(|| {
            let stripe = NEXT_STRIPE.fetch_add(1, Ordering::Relaxed);
            own.set(Some(stripe));
            stripe
        })
    })
}

impl StripedCounter {
    /// Counts `n` more, in the thread's own stripe.
    pub fn add(&self, n: u64) {
        let count = &self.0[own_stripe() % STRIPES];
        count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }
    /// The sum of all stripes; what is counted meanwhile may be in it or not.
    pub fn get(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

const FEW_STRIPES: usize = 16;

/// `N` numbers of one thing, of which there are many: they take no memory before the first of them is raised, and two kilobytes then. Threads that share a stripe lose
/// no count.
#[derive(Debug)]
pub struct StripedCounts<const N: usize>(OnceLock<Box<[CachePadded<[AtomicU64; N]>]>>);

impl<const N: usize> Default for StripedCounts<N> {
    fn default() -> StripedCounts<N> {
        StripedCounts(OnceLock::new())
    }
}

impl<const N: usize> StripedCounts<N> {
    /// Counts `n` more of the number at `which`.
    pub fn add(&self, which: usize, n: u64) {
        let stripe = || CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let stripes = self.0.get_or_init(|| (0..FEW_STRIPES).map(|_| stripe()).collect());
        stripes[own_stripe() % FEW_STRIPES][which].fetch_add(n, Ordering::Relaxed);
    }

    /// The sums; `None` if nothing was ever counted. What is counted meanwhile may be in them or not.
    pub fn get(&self) -> Option<[u64; N]> {
        let stripes = self.0.get()?;
        Some(std::array::from_fn(|which| stripes.iter().map(|stripe| stripe[which].load(Ordering::Relaxed)).sum()))
    }

    /// All are 0 again. What is counted meanwhile may stay.
    pub fn clear(&self) {
        for count in self.0.get().into_iter().flat_map(|stripes| stripes.iter()).flat_map(|stripe| stripe.iter()) {
            count.store(0, Ordering::Relaxed);
        }
    }
}

/// How many of something go on now.
#[derive(Default, Debug)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// One more, for as long as the answer lives.
    pub fn enter(&self) -> Entered<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Entered(self)
    }
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counted by a [`Gauge`] until it is dropped.
#[must_use]
pub struct Entered<'g>(&'g Gauge);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

macro_rules! counters {
    ($($kind:ident { $($(#[$doc:meta])* $name:ident),* $(,)? })*) => {
        /// Counters since the start; gauges say what is now.
        #[derive(Default, Debug)]
        pub struct Counters { $($($(#[$doc])* pub $name: $kind,)*)* }
        impl Counters {
            /// (name, value) of all.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$($((stringify!($name), self.$name.get()),)*)*]
            }
        }
    };
}

counters! {
    Counter {
        log_records, log_bytes, log_writes,
        /// fdatasync calls on the log.
        log_fsyncs,
        /// Appenders that found the log buffer full.
        log_buffer_waits,
        /// Writers that found the log full and had to wait for a checkpoint.
        log_room_waits,
        commit_waits,
        /// Commits made durable by another one's fdatasync.
        group_commits,
        /// Groups of commits that one leader has written, with binary log events among them.
        binlog_groups,
        checkpoints,
        pages_read, pages_written,
        /// Pages that the disk was told of before somebody asked for them.
        pages_read_ahead,
        /// Writes of one or more pages beside each other.
        data_writes, data_fsyncs, doublewrite_pages, doublewrite_writes,
        pages_new, evictions,
        /// Pages that the foreground wrote because no frame was free.
        foreground_writes,
        /// Fixes that found no free frame.
        frame_waits,
        latch_waits, latch_spins, smo_waits, optimistic_waits,
        pages_allocated, pages_freed, extents_grown,
    }
    StripedCounter {
        /// Pages asked for, in memory or not.
        page_requests,
        /// Pages changed, once for each mini-transaction that changes them.
        page_changes,
    }
    Gauge {
        page_reads_pending, page_writes_pending, data_fsyncs_pending, log_writes_pending, log_fsyncs_pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_threads_add_up_until_they_are_cleared() {
        let counts = StripedCounts::<3>::default();
        assert_eq!(counts.get(), None);
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| (0..100).for_each(|_| counts.add(1, 2)));
            }
        });
        counts.add(2, 5);
        assert_eq!(counts.get(), Some([0, 8000, 5]));
        counts.clear();
        assert_eq!(counts.get(), Some([0, 0, 0]));
    }

    #[test]
    fn stripes_add_up_and_gauges_go_down_again() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| counters.page_requests.add(2));
            }
        });
        assert_eq!(counters.page_requests.get(), 6);
        let entered = counters.page_reads_pending.enter();
        assert_eq!(counters.page_reads_pending.get(), 1);
        drop(entered);
        assert_eq!(counters.page_reads_pending.get(), 0);
        assert!(counters.all().contains(&("page_requests", 6)));
    }
}
