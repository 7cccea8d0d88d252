//! CHECK TABLE: every tree's own invariants, and that rows and index entries belong to each other.

use std::sync::Arc;

use highkey_storage::{Bounds, Direction, LeafRows};
use highkey_types::MySqlError;

use crate::index;
use crate::row::RowBatch;
use crate::table::Table;
use crate::transaction::{Snapshot, Transaction};

/// How many findings a report lists.
const MAX_ERRORS: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableCheck {
    pub rows: u64,
    /// Empty: the table is as it should be.
    pub errors: Vec<String>,
}

impl TableCheck {
    pub fn is_ok(&self) -> bool {
        self.errors.is_empty()
    }

    fn note(&mut self, what: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(what);
        }
    }
}

impl Table {
    /// Checks the table as the transaction's snapshot sees it.
    ///
    /// Every entry of a secondary index must be the one its row would have; entries differ, so that together with
    /// equal numbers of rows and entries it means that every row has its entry too.
    pub fn check(self: &Arc<Self>, txn: &mut Transaction) -> Result<TableCheck, MySqlError> {
        let mut report = TableCheck::default();
        for (at, codec) in self.indexes.iter().enumerate() {
            if let Err(error) = self.engine.check(codec.id) {
                report.note(format!("index {}: {error}", self.def.indexes[at].name));
            }
        }
        let snapshot = txn.snapshot();
        if let Err(error) = self.check_rows(&snapshot, &mut report) {
            report.note(error.message);
        }
        for index in 1..self.indexes.len() {
            if let Err(error) = self.check_entries(&snapshot, index, &mut report) {
                report.note(error.message);
            }
        }
        Ok(report)
    }

    fn check_rows(self: &Arc<Self>, snapshot: &Snapshot, report: &mut TableCheck) -> Result<(), MySqlError> {
        let mut scan = self.scan_bounds(snapshot, 0, Bounds::all(), Direction::Forward)?;
        let mut batch = RowBatch::new();
        let mut key = Vec::new();
        let mut last: Vec<u8> = Vec::new();
        while scan.next_batch(&mut batch)? {
            for row in 0..batch.len() {
                report.rows += 1;
                key.clear();
                self.clustered().encode_row(&self.layout, batch.row(row), &mut key);
                if !self.clustered().parts.is_empty() && key != batch.key(row) {
                    report.note(format!("row {} is stored under another key than its own", report.rows));
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
        report: &mut TableCheck,
    ) -> Result<(), MySqlError> {
        let codec = &self.indexes[index];
        let name = &self.def.indexes[index].name;
        let mut scan = snapshot.inner.scan(codec.id, Bounds::all(), Direction::Forward);
        let mut leaf = LeafRows::new();
        let (mut row, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        let mut entries = 0u64;
        while scan.next_leaf(&mut leaf).map_err(|e| self.failed(e))? {
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
}
