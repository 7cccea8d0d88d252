//! What commits cost in the log, as histograms: how many of them one sync serves, how long it takes, how long they wait, what the binary log's
//! events add.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};

/// Powers of two up to 2^30; what is larger is in the last bucket.
const BUCKETS: usize = 32;

/// A figure's values since the start, counted by powers of two.
#[derive(Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
    max: AtomicU64,
}

impl Histogram {
    pub fn note(&self, value: u64) {
        let bucket = (u64::BITS - value.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    pub fn get(&self) -> HistogramReport {
        let count = |bucket: usize| self.buckets[bucket].load(Ordering::Relaxed);
        let bounds = |bucket: usize| if bucket == 0 { (0, 0) } else { (1 << (bucket - 1), (1 << bucket) - 1) };
        let buckets: Vec<HistogramBucket> = (0..BUCKETS)
            .filter(|bucket| count(*bucket) > 0)
            .map(|bucket| HistogramBucket { low: bounds(bucket).0, high: bounds(bucket).1, count: count(bucket) })
            .collect();
        let (sum, max) = (self.sum.load(Ordering::Relaxed), self.max.load(Ordering::Relaxed));
        HistogramReport { count: buckets.iter().map(|bucket| bucket.count).sum(), sum, max, buckets }
    }
}

/// Values from `low` to `high`, both included; the highest bucket has what is larger too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBucket {
    pub low: u64,
    pub high: u64,
    pub count: u64,
}

/// How often a figure was how large. Buckets that nothing fell into are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramReport {
    pub count: u64,
    pub sum: u64,
    pub max: u64,
    pub buckets: Vec<HistogramBucket>,
}

#[derive(Default)]
pub(crate) struct Anatomy {
    pub group_size: Histogram,
    pub sync_us: Histogram,
    pub wait_us: Histogram,
    pub binlog_bytes: Histogram,
    /// Of the last sync that served commits: how many, and its nanoseconds.
    last_commits: AtomicU64,
    last_nanos: AtomicU64,
}

/// What commits cost since the start. The end of a transaction that was prepared, and its preparation, count as commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitAnatomy {
    /// Commits that one sync of the log made durable; syncs that served none are left out.
    pub group_size: HistogramReport,
    /// How long those syncs took, in microseconds.
    pub sync_us: HistogramReport,
    /// How long commits waited for the log, the write and the sync by whoever did them included, in microseconds.
    pub wait_us: HistogramReport,
    /// Bytes of binary log events that a commit brought into the log, for those that brought some.
    pub binlog_bytes: HistogramReport,
}

impl Anatomy {
    /// A sync has made so many commits durable.
    pub fn note_sync(&self, commits: u64, took: Duration) {
        self.group_size.note(commits);
        self.sync_us.note(took.as_micros() as u64);
        self.last_commits.store(commits, Ordering::Relaxed);
        self.last_nanos.store(took.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The last sync that made commits durable, and how many; 0 if there was none. Whoever looks while the next one ends may find a part of either.
    pub fn last_sync(&self) -> (u64, Duration) {
        (self.last_commits.load(Ordering::Relaxed), Duration::from_nanos(self.last_nanos.load(Ordering::Relaxed)))
    }

    pub fn get(&self) -> CommitAnatomy {
        CommitAnatomy {
            group_size: self.group_size.get(),
            sync_us: self.sync_us.get(),
            wait_us: self.wait_us.get(),
            binlog_bytes: self.binlog_bytes.get(),
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn values_fall_between_powers_of_two() {
        let histogram = Histogram::default();
        for value in [0, 1, 2, 3, 4, 7, 8, 1 << 40] {
            histogram.note(value);
        }
        let report = histogram.get();
        let found: Vec<_> = report.buckets.iter().map(|b| (b.low, b.high, b.count)).collect();
        assert_eq!(found, [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 2), (8, 15, 1), (1 << 30, (1 << 31) - 1, 1)]);
        assert_eq!((report.count, report.sum, report.max), (8, 25 + (1 << 40), 1 << 40));
    }
}
