//! Which of the entries with equal keys stays.

use highkey_types::MySqlError;

use super::run::Item;
use super::{BATCH_ROWS, BulkInsert, IGNORED_ERRORS_MAX};
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
