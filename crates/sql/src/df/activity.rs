//! What the queries of a running statement are at, for others to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use highkey_table::{Progress, Stage};
use parking_lot::Mutex;

use super::parallel::{ParallelSettings, SerialReason};
use crate::session::Work;

/// The queries on DataFusion of a connection's running statement, and why those on the fast path, if they were large, did without.
#[derive(Debug, Default)]
pub struct QueryActivity {
    /// On how many threads they ran: a bit for several, and one for each reason why on one.
    degrees: AtomicU8,
    /// The statement's, where it has no other stage.
    progress: Arc<Progress>,
    /// Of the latest query that has begun, but for its subqueries.
    scans: Mutex<Vec<Arc<ScanActivity>>>,
    /// Rows that scans have found by ranges of an index.
    by_ranges: AtomicU64,
    /// What the session asks of the statement's queries, once there is one.
    settings: Mutex<Option<ParallelSettings>>,
    /// What queries that have run to their end have done besides reading rows.
    work: Mutex<Work>,
}

const PARALLEL: u8 = 1 << SerialReason::ALL.len();

impl QueryActivity {
    /// Of a connection whose statements tell their progress there.
    pub fn new(progress: Arc<Progress>) -> QueryActivity {
        QueryActivity { progress, ..QueryActivity::default() }
    }

    /// Another statement begins.
    pub fn clear(&self) {
        self.degrees.store(0, Ordering::Relaxed);
        self.by_ranges.store(0, Ordering::Relaxed);
        // Of a query that ran to its end, but whose statement did not.
        *self.work.lock() = Work::default();
        *self.settings.lock() = None;
        let mut scans = self.scans.lock();
        if !scans.is_empty() {
            scans.clear();
        }
    }

    /// What is asked of a query that is about to be planned, for whoever explains it.
    pub fn note_settings(&self, settings: &ParallelSettings) {
        *self.settings.lock() = Some(settings.clone());
    }

    pub fn settings(&self) -> Option<ParallelSettings> {
        self.settings.lock().clone()
    }

    /// A query is about to run on so many threads, or on one.
    pub fn note_degree(&self, degree: Result<usize, SerialReason>) {
        let bit = degree.map_or_else(|reason| 1 << reason as u8, |_| PARALLEL);
        self.degrees.fetch_or(bit, Ordering::Relaxed);
    }

    /// A query of the statement ran on several threads.
    pub fn was_parallel(&self) -> bool {
        self.degrees.load(Ordering::Relaxed) & PARALLEL != 0
    }

    /// By [`SerialReason`]: a query of the statement stayed on one thread for it. One that started anew may have run in more ways than one.
    pub fn was_serial(&self) -> [bool; SerialReason::ALL.len()] {
        let degrees = self.degrees.load(Ordering::Relaxed);
        SerialReason::ALL.map(|reason| degrees & (1 << reason as u8) != 0)
    }

    /// A query begins to run; these are its scans.
    pub(super) fn begin(&self, scans: Vec<Arc<ScanActivity>>) {
        let pieces: usize = scans.iter().map(|scan| scan.pieces).sum();
        *self.scans.lock() = scans;
        // One piece tells nothing, and what the statement does with the rows tells more.
        if pieces > 1 && matches!(self.progress.stage(), Stage::Executing | Stage::ReadingTables) {
            self.progress.enter(Stage::ReadingTables, pieces as u64);
        }
    }

    /// The statement has all rows of the query.
    pub fn end(&self) {
        self.scans.lock().clear();
        if self.progress.stage() == Stage::ReadingTables {
            self.progress.enter(Stage::Executing, 0);
        }
    }

    /// A scan has found rows by ranges of an index.
    pub(super) fn add_by_ranges(&self, rows: usize) {
        self.by_ranges.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// A query has run to its end.
    pub(super) fn add_work(&self, work: &Work) {
        self.work.lock().add(work);
    }

    /// What has been done since it was asked last; `read` rows have been read.
    pub fn take_work(&self, read: u64) -> Work {
        let by_ranges = self.by_ranges.swap(0, Ordering::Relaxed).min(read);
        let mut work = std::mem::take(&mut *self.work.lock());
        work.read_next += by_ranges;
        work.read_rnd_next += read - by_ranges;
        work
    }

    /// A worker has read a piece of a scan.
    pub(super) fn piece_done(&self, scan: &ScanActivity) {
        scan.done.fetch_add(1, Ordering::Relaxed);
        if self.progress.stage() == Stage::ReadingTables {
            self.progress.add(1);
        }
    }

    /// Lines that tell how far the query is, for EXPLAIN; none if it reads no table.
    pub fn describe(&self) -> Vec<String> {
        let scans = self.scans.lock();
        let (done, all) = scans.iter().fold((0, 0), |(done, all), scan| (done + scan.done(), all + scan.pieces));
        if all == 0 {
            return Vec::new();
        }
        let first = format!("-> Progress: {}% ({done} of {all} pieces)", done * 100 / all);
        std::iter::once(first).chain(scans.iter().map(|scan| format!("    -> {}", scan.describe()))).collect()
    }
}

/// How far a scan is.
#[derive(Debug)]
pub(super) struct ScanActivity {
    /// As EXPLAIN names it.
    name: String,
    /// What its workers share.
    pieces: usize,
    done: AtomicUsize,
    /// Those that each worker has read.
    rows: Vec<AtomicU64>,
}

impl ScanActivity {
    pub fn new(name: String, pieces: usize, workers: usize) -> ScanActivity {
        ScanActivity { name, pieces, done: AtomicUsize::new(0), rows: (0..workers).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A worker has read rows.
    pub fn add_rows(&self, worker: usize, rows: usize) {
        if let Some(read) = self.rows.get(worker) {
            read.fetch_add(rows as u64, Ordering::Relaxed);
        }
    }

    /// Of the pieces that there were when it was planned: of the keys of a join others are made.
    fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed).min(self.pieces)
    }

    fn describe(&self) -> String {
        let rows: Vec<u64> = self.rows.iter().map(|rows| rows.load(Ordering::Relaxed)).collect();
        let all = format!("{}: {} of {} pieces, {} rows", self.name, self.done(), self.pieces, rows.iter().sum::<u64>());
        if rows.len() < 2 {
            return all;
        }
        let workers: Vec<String> = rows.iter().enumerate().map(|(n, rows)| format!("worker {}: {rows}", n + 1)).collect();
        format!("{all} ({})", workers.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_told_apart() {
        let activity = QueryActivity::default();
        assert!(!activity.was_parallel());
        activity.note_degree(Ok(2));
        assert!(activity.was_parallel());
        assert_eq!(activity.was_serial(), [false; SerialReason::ALL.len()]);
        for (n, reason) in SerialReason::ALL.into_iter().enumerate() {
            activity.clear();
            activity.note_degree(Err(reason));
            assert!(!activity.was_parallel());
            assert_eq!(activity.was_serial().iter().position(|serial| *serial), Some(n));
        }
    }

    #[test]
    fn progress_is_told() {
        let progress: Arc<Progress> = Arc::default();
        let activity = QueryActivity::new(progress.clone());
        assert_eq!(activity.describe(), Vec::<String>::new());
        let large = Arc::new(ScanActivity::new("PQblock scan on t".into(), 6, 2));
        let small = Arc::new(ScanActivity::new("Table scan on u".into(), 1, 1));
        activity.begin(vec![large.clone(), small.clone()]);
        large.add_rows(0, 100);
        large.add_rows(1, 50);
        large.add_rows(0, 10);
        large.add_rows(7, 10);
        activity.piece_done(&large);
        activity.piece_done(&large);
        (0..3).for_each(|_| activity.piece_done(&small));
        assert_eq!(
            activity.describe(),
            [
                "-> Progress: 42% (3 of 7 pieces)",
                "    -> PQblock scan on t: 2 of 6 pieces, 160 rows (worker 1: 110, worker 2: 50)",
                "    -> Table scan on u: 1 of 1 pieces, 0 rows",
            ]
        );
        assert_eq!((progress.stage(), progress.done(), progress.total()), (Stage::ReadingTables, 5, Some(7)));
        activity.end();
        assert_eq!((progress.stage(), activity.describe().len()), (Stage::Executing, 0));
        activity.add_by_ranges(30);
        activity.add_work(&Work { select_scan: 1, ..Work::default() });
        assert_eq!(activity.take_work(100), Work { read_next: 30, read_rnd_next: 70, select_scan: 1, ..Work::default() });
        assert_eq!(activity.take_work(0), Work::default());
        // What an abandoned statement has not asked for is not the next one's.
        activity.add_by_ranges(30);
        activity.add_work(&Work { select_scan: 1, ..Work::default() });
        activity.clear();
        assert_eq!(activity.take_work(0), Work::default());
        // Another stage is left as it is.
        progress.enter(Stage::CopyingRows, 10);
        activity.begin(vec![large.clone()]);
        activity.piece_done(&large);
        activity.end();
        assert_eq!((progress.stage(), progress.done()), (Stage::CopyingRows, 0));
    }
}
