//! Which of the entries with equal keys stays, and which row of a statement is its first that meets another.

use highkey_storage::{BatchRows, SealedLoad};
use highkey_types::MySqlError;

use super::run::Item;
use super::runs::{Runs, scratch};
use super::{BATCH_ROWS, BulkInsert, IGNORED_ERRORS_MAX};
use crate::index::clustered_key;
use crate::insert::OnDuplicate;
use crate::transaction::Transaction;

/// A duplicate met while merging: in `OnDuplicate::Error` the first in statement order counts.
#[derive(Default)]
pub(super) struct FirstDuplicate {
    pub(super) row: Option<u64>,
    /// Its key and value.
    pub(super) entry: (Vec<u8>, Vec<u8>),
}

impl FirstDuplicate {
    pub(super) fn note(&mut self, item: &Item<'_>) {
        if self.row.is_none_or(|row| item.row < row) {
            self.row = Some(item.row);
            self.entry = (item.key.to_vec(), item.value.to_vec());
        }
    }
}

/// Of equal keys, which entry stays: given in key order, one by one.
#[derive(Default)]
pub(super) struct Distinct {
    first: FirstDuplicate,
    /// The entry before: with REPLACE the last of equal keys stays, so each waits for the next key.
    key: Vec<u8>,
    value: Vec<u8>,
    waiting: bool,
    count: usize,
}

impl Distinct {
    /// Takes the next entry; `each` gets those that stay.
    pub(super) fn take(
        &mut self,
        insert: &mut BulkInsert,
        txn: &Transaction,
        item: &Item<'_>,
        each: &mut impl FnMut(&mut BulkInsert, &[u8], &[u8]) -> Result<(), MySqlError>,
    ) -> Result<(), MySqlError> {
        self.count += 1;
        if self.count % BATCH_ROWS == 0 {
            txn.check_interrupt()?;
            txn.progress.add(BATCH_ROWS as u64);
        }
        let equal = self.count > 1 && item.key == self.key.as_slice();
        if equal {
            insert.note_contested(item.key);
        }
        match insert.mode {
            OnDuplicate::Replace | OnDuplicate::ReplaceNumbered => {
                if equal {
                    insert.report.replaced += 1;
                } else if self.waiting {
                    each(insert, &self.key, &self.value)?;
                }
                self.value.clear();
                self.value.extend_from_slice(item.value);
                self.waiting = true;
            }
            OnDuplicate::Ignore if equal => {
                insert.report.ignored += 1;
                if insert.report.ignored_errors.len() < IGNORED_ERRORS_MAX {
                    let row = insert.table.layout.values(item.value);
                    let error = insert.table.duplicate_entry(0, &row);
                    insert.report.ignored_errors.push(error);
                }
            }
            _ if equal => self.first.note(item),
            _ if self.first.row.is_some() => {}
            _ => each(insert, item.key, item.value)?,
        }
        if !equal {
            self.key.clear();
            self.key.extend_from_slice(item.key);
        }
        Ok(())
    }

    /// All entries were given. Error 1062 if one of equal keys may not stay.
    pub(super) fn end(
        &mut self,
        insert: &mut BulkInsert,
        each: &mut impl FnMut(&mut BulkInsert, &[u8], &[u8]) -> Result<(), MySqlError>,
    ) -> Result<(), MySqlError> {
        if self.waiting {
            each(insert, &self.key, &self.value)?;
        }
        match self.first.row {
            Some(_) => Err(insert.table.duplicate_entry(0, &insert.table.layout.values(&self.first.entry.1))),
            None => Ok(()),
        }
    }
}

impl BulkInsert {
    /// Error 1062 for the first row of the statement that has a key of a row before it, and of its keys for that of the first index, as if the rows had come one
    /// by one: the load has met some duplicate, and others may come before it. Reads the entries of all unique indexes once more. `loaded`: the clustered one, whose
    /// keys all differ, if its entries are there; else they are in its runs or in the table.
    pub(super) fn first_duplicate(&self, txn: &mut Transaction, indexes: &[Runs], loaded: Option<&SealedLoad>) -> MySqlError {
        self.find_first_duplicate(txn, indexes, loaded).unwrap_or_else(|e| e)
    }

    fn find_first_duplicate(&self, txn: &mut Transaction, indexes: &[Runs], loaded: Option<&SealedLoad>) -> Result<MySqlError, MySqlError> {
        let table = &self.table;
        let mut first: Option<(usize, u64, FirstDuplicate)> = None;
        for (index, runs) in indexes.iter().enumerate().filter(|(index, _)| table.indexes[*index].is_unique()) {
            let found = first_repeated(txn, runs)?;
            if let Some(row) = found.row
                && first.as_ref().is_none_or(|(_, least, _)| row < *least)
            {
                first = Some((index, row, found));
            }
        }
        let Some((index, row, found)) = first else { return Err(table.corrupt(0)) };
        let (key, value) = &found.entry;
        if index == 0 {
            return Ok(table.duplicate_entry(0, &table.layout.values(value)));
        }
        let clustered = clustered_key(key, value).ok_or_else(|| table.corrupt(index))?;
        let values = match loaded {
            Some(load) => load.get(txn.inner(), clustered).map_err(|e| table.failed(e))?,
            None => find_row(txn, &indexes[0], clustered, row)?,
        };
        match values {
            Some(values) => Ok(table.duplicate_entry(index, &table.layout.values(&values))),
            None => Ok(table.duplicate_of_entry(txn, index, key, value)),
        }
    }
}

/// The first row whose key one before it has.
fn first_repeated(txn: &Transaction, runs: &Runs) -> Result<FirstDuplicate, MySqlError> {
    let mut merge = runs.merge()?;
    let mut first = FirstDuplicate::default();
    let mut last: Vec<u8> = Vec::new();
    let mut count = 0usize;
    while let Some(item) = merge.next().map_err(scratch)? {
        count += 1;
        if count % BATCH_ROWS == 0 {
            txn.check_interrupt()?;
        }
        // Of equal keys the second is of the earliest row that meets another.
        if count > 1 && item.key == last.as_slice() {
            first.note(&item);
        } else {
            last.clear();
            last.extend_from_slice(item.key);
        }
    }
    Ok(first)
}

/// The bytes of a row by its clustered key and its place in the statement, if the runs have it.
fn find_row(txn: &Transaction, clustered: &Runs, key: &[u8], row: u64) -> Result<Option<Vec<u8>>, MySqlError> {
    for run in &clustered.memory {
        if let Some(at) = (0..run.len()).find(|at| run.row(*at) == row && run.key(*at) == key) {
            return Ok(Some(run.value(at).to_vec()));
        }
    }
    let mut merge = clustered.merge()?;
    let mut count = 0usize;
    while let Some(item) = merge.next().map_err(scratch)? {
        count += 1;
        if count % BATCH_ROWS == 0 {
            txn.check_interrupt()?;
        }
        if item.row == row && item.key == key {
            return Ok(Some(item.value.to_vec()));
        }
    }
    Ok(None)
}
