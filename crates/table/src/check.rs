//! CHECK TABLE: every tree's own invariants, whose its pages are, and that rows and index entries belong to each other.

use std::sync::Arc;
use std::time::Duration;

use highkey_storage::{Bounds, Direction, Interrupt, LeafRows, PageId, PageOwnership, Progress, Stage};
use highkey_types::{MySqlError, errors};

use crate::index;
use crate::partition::Chooser;
use crate::row::RowBatch;
use crate::table::Table;
use crate::transaction::{Snapshot, Transaction};

/// How many findings a report lists.
const MAX_ERRORS: usize = 100;
/// How often, and how long each time, a check waits for the purge of what has just been written.
const QUIET_TRIES: usize = 5;
const QUIET_WAIT: Duration = Duration::from_millis(2);

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableCheck {
    pub rows: u64,
    /// Whether it was looked at whose the pages of all indexes are: not while others write.
    pub pages_judged: bool,
    /// Empty: the table is as it should be.
    pub errors: Vec<String>,
}

impl TableCheck {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.errors.is_empty()
    }

    fn note(&mut self, what: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(what);
        }
    }

    fn note_pages(&mut self, index: &str, found: &PageOwnership) {
        let mut note = |pages: &[PageId], what: &str| pages.iter().for_each(|page| self.note(format!("index {index}: page {page} {what}")));
        note(&found.orphans, "is allocated to it and not in use");
        note(&found.foreign, "is in use and not allocated to it");
        note(&found.doubled, "is in use twice");
    }
}

/// What a check looks at on its way.
struct Course {
    interrupt: Arc<Interrupt>,
    progress: Arc<Progress>,
}

impl Course {
    /// Error 1317.
    fn check(&self) -> Result<(), MySqlError> {
        if self.interrupt.is_raised() { Err(errors::query_interrupted()) } else { Ok(()) }
    }
}

impl Table {
    /// Checks the table as the transaction's snapshot sees it; others may write meanwhile. `quick` leaves out the trees themselves. Tells how far it is
    /// where the transaction does. Error 1317.
    ///
    /// Every entry of a secondary index must be the one its row would have; entries differ, so that together with
    /// equal numbers of rows and entries it means that every row has its entry too. Of a FULLTEXT index it is asked the other way round, row by row.
    pub fn check(self: &Arc<Self>, txn: &mut Transaction, quick: bool) -> Result<TableCheck, MySqlError> {
        let mut report = TableCheck::default();
        let (interrupt, progress) = txn.waits_with();
        let course = Course { interrupt, progress };
        let Some(parts) = &self.parts else {
            if !quick {
                self.check_trees(&course, &mut report)?;
            }
            let snapshot = txn.snapshot();
            self.check_one(&snapshot, &course, &mut report, None)?;
            return Ok(report);
        };
        // All trees first: a snapshot keeps what has just been written from becoming quiet.
        let mut reports = vec![TableCheck::default(); parts.tables.len()];
        if !quick {
            parts.tables.iter().zip(&mut reports).try_for_each(|(part, report)| part.check_trees(&course, report))?;
        }
        report.pages_judged = reports.iter().all(|report| report.pages_judged);
        let snapshot = txn.snapshot();
        let names = self.def.partitioning.iter().flat_map(|partitioning| &partitioning.partitions).map(|partition| &partition.name);
        for ((at, part), (mut found, name)) in parts.tables.iter().enumerate().zip(reports.into_iter().zip(names)) {
            part.check_one(&snapshot, &course, &mut found, Some((&*parts.chooser, at)))?;
            report.rows += found.rows;
            found.errors.into_iter().for_each(|what| report.note(format!("partition {name}: {what}")));
        }
        Ok(report)
    }

    /// Checks rows and entries of a table that has its own trees. `place`: which partition it is.
    fn check_one(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        course: &Course,
        report: &mut TableCheck,
        place: Option<(&Chooser, usize)>,
    ) -> Result<(), MySqlError> {
        if let Err(error) = self.check_rows(snapshot, course, report, place) {
            course.check()?;
            report.note(error.message);
        }
        for index in 1..self.indexes.len() {
            let checked = match self.indexes[index].is_full_text() {
                true => self.check_words(snapshot, index, course, report),
                false => self.check_entries(snapshot, index, course, report),
            };
            if let Err(error) = checked {
                course.check()?;
                report.note(error.message);
            }
        }
        Ok(())
    }

    fn check_trees(&self, course: &Course, report: &mut TableCheck) -> Result<(), MySqlError> {
        for _ in 0..QUIET_TRIES {
            if self.engine.is_quiet().map_err(|e| self.failed(e))? {
                break;
            }
            course.check()?;
            std::thread::sleep(QUIET_WAIT);
        }
        report.pages_judged = true;
        for (at, codec) in self.indexes.iter().enumerate() {
            let name = &self.def.indexes[at].name;
            match self.engine.check_until(codec.id, &course.progress, &|| course.interrupt.is_raised()) {
                Ok(None) => return Err(errors::query_interrupted()),
                Ok(Some(tree)) => match &tree.ownership {
                    Some(found) => report.note_pages(name, found),
                    None => report.pages_judged = false,
                },
                Err(error) => report.note(format!("index {name}: {error}")),
            }
        }
        Ok(())
    }

    fn check_rows(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        course: &Course,
        report: &mut TableCheck,
        place: Option<(&Chooser, usize)>,
    ) -> Result<(), MySqlError> {
        course.progress.enter(Stage::ReadingRows, self.row_count_estimate()?);
        let mut scan = self.scan_bounds(snapshot, 0, Bounds::all(), Direction::Forward)?;
        let mut batch = RowBatch::new();
        let mut key = Vec::new();
        let mut last: Vec<u8> = Vec::new();
        while scan.next_batch(&mut batch)? {
            course.check()?;
            course.progress.add(batch.len() as u64);
            for row in 0..batch.len() {
                report.rows += 1;
                key.clear();
                self.clustered().encode_row(&self.layout, batch.row(row), &mut key);
                if !self.clustered().parts.is_empty() && key != batch.key(row) {
                    report.note(format!("row {} is stored under another key than its own", report.rows));
                }
                if let Some((chooser, at)) = place
                    && chooser.partition_of(&batch.values(row)).ok() != Some(at)
                {
                    report.note(format!("row {} belongs to another partition", report.rows));
                }
                if report.rows > 1 && batch.key(row) <= last.as_slice() {
                    report.note(format!("row {} is not above the row before it", report.rows));
                }
                last.clear();
                last.extend_from_slice(batch.key(row));
            }
        }
        Ok(())
    }

    fn check_entries(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        index: usize,
        course: &Course,
        report: &mut TableCheck,
    ) -> Result<(), MySqlError> {
        let codec = &self.indexes[index];
        let name = &self.def.indexes[index].name;
        course.progress.enter(Stage::CheckingEntries, report.rows);
        let mut scan = snapshot.inner.scan(codec.id, Bounds::all(), Direction::Forward);
        let mut leaf = LeafRows::new();
        let (mut row, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        let mut entries = 0u64;
        while scan.next_leaf(&mut leaf).map_err(|e| self.failed(e))? {
            course.check()?;
            course.progress.add(leaf.len() as u64);
            for at in 0..leaf.len() {
                entries += 1;
                let Some(clustered) = index::clustered_key(leaf.key(at), leaf.value(at)) else {
                    report.note(format!("index {name}: entry {entries} is malformed"));
                    continue;
                };
                if !snapshot.inner.get(self.clustered().id, clustered, &mut row).map_err(|e| self.failed(e))? {
                    report.note(format!("index {name}: entry {entries} has no row"));
                    continue;
                }
                codec.entry_of_row(&self.layout, &row, clustered, &mut key, &mut value);
                if key != leaf.key(at) || value != leaf.value(at) {
                    report.note(format!("index {name}: entry {entries} is not its row's"));
                }
            }
        }
        if entries != report.rows {
            report.note(format!("index {name}: {entries} entries for {} rows", report.rows));
        }
        Ok(())
    }

    /// Every word of every row must have its entry; words of a row differ, so that together with as many entries it means that there are no others.
    fn check_words(self: &Arc<Self>, snapshot: &Snapshot, index: usize, course: &Course, report: &mut TableCheck) -> Result<(), MySqlError> {
        let codec = &self.indexes[index];
        let name = &self.def.indexes[index].name;
        course.progress.enter(Stage::CheckingEntries, report.rows);
        let mut rows = self.scan_bounds(snapshot, 0, Bounds::all(), Direction::Forward)?;
        let mut batch = RowBatch::new();
        let (mut key, mut value, mut stored) = (Vec::new(), Vec::new(), Vec::new());
        let mut words = 0u64;
        while rows.next_batch(&mut batch)? {
            course.progress.add(batch.len() as u64);
            for row in 0..batch.len() {
                course.check()?;
                let mut checked = Ok(true);
                codec.for_each_entry_of_row(&self.layout, batch.row(row), batch.key(row), &mut key, &mut value, |key, value| {
                    words += 1;
                    if let Ok(true) = checked {
                        checked = snapshot.inner.get(codec.id, key, &mut stored).map(|found| found && stored == value);
                    }
                });
                if !checked.map_err(|e| self.failed(e))? {
                    report.note(format!("index {name}: a word of row {} has no entry", batch.key(row).escape_ascii()));
                }
            }
        }
        let mut scan = snapshot.inner.scan(codec.id, Bounds::all(), Direction::Forward);
        let mut leaf = LeafRows::new();
        let mut entries = 0u64;
        while scan.next_leaf(&mut leaf).map_err(|e| self.failed(e))? {
            course.check()?;
            entries += leaf.len() as u64;
        }
        if entries != words {
            report.note(format!("index {name}: {entries} entries for {words} words of {} rows", report.rows));
        }
        Ok(())
    }
}
