//! What the queries of a running statement are at, for others to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use highkey_table::{Progress, Stage};
use parking_lot::Mutex;

use super::parallel::SerialReason;

/// The queries on DataFusion of a connection's running statement.
#[derive(Debug, Default)]
pub struct QueryActivity {
    /// On how many threads they ran: a bit for several, and one for each reason why on one.
    degrees: AtomicU8,
    /// The statement's, where it has no other stage.
    progress: Arc<Progress>,
    /// Of the latest query that has begun, but for its subqueries.
    scans: Mutex<Vec<Arc<ScanActivity>>>,
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
        let mut scans = self.scans.lock();
        if !scans.is_empty() {
            scans.clear();
        }
    }

    /// A query is about to run on so many threads, or on one.
    pub(super) fn note_degree(&self, degree: Result<usize, SerialReason>) {
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
        assert_eq!(activity.was_serial(), [false; 5]);
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
        // Another stage is left as it is.
        progress.enter(Stage::CopyingRows, 10);
        activity.begin(vec![large.clone()]);
        activity.piece_done(&large);
        activity.end();
        assert_eq!((progress.stage(), progress.done()), (Stage::CopyingRows, 0));
    }
}
