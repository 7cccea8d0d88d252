//! Rows made of the entries of a secondary index: README.md, "Covering scans".

use highkey_storage::Isolation;
use highkey_types::{MySqlError, RowOfKeys, Value, follows_from_key};

use crate::index::{self, IndexCodec};
use crate::row::Row;
use crate::table::Table;
use crate::transaction::Transaction;

/// What a scan asks of the entries of a secondary index.
pub(crate) struct Covering {
    index: usize,
    /// For each part of the entry's key, up to the last that is wanted: the column that it gives.
    own: Vec<Option<usize>>,
    /// The same of the clustered key.
    clustered: Vec<Option<usize>>,
    row: RowOfKeys,
}

impl Covering {
    /// `None` if some of these columns are not to be had without the row.
    pub(crate) fn new(table: &Table, index: usize, columns: &[usize]) -> Option<Covering> {
        let (own, clustered) = parts_of(table, index, columns)?;
        Some(Covering { index, own, clustered, row: RowOfKeys::new(&table.layout) })
    }

    /// The row of an entry, which leads to this clustered key: replaces `row`. False if the keys are not what they should be; the row itself then has to tell.
    pub(crate) fn restore(&mut self, table: &Table, entry: &[u8], clustered: &[u8], row: &mut Vec<u8>) -> bool {
        self.row.begin();
        let taken = take(&mut self.row, &self.own, &table.indexes[self.index], entry) && take(&mut self.row, &self.clustered, table.clustered(), clustered);
        row.clear();
        if taken {
            self.row.finish(row);
        }
        taken
    }
}

/// Takes the columns that are wanted from a key. False if it is not one of this index.
fn take(row: &mut RowOfKeys, wanted: &[Option<usize>], codec: &IndexCodec, key: &[u8]) -> bool {
    let mut rest = key;
    for (column, part) in wanted.iter().zip(&codec.parts) {
        rest = match column {
            Some(column) => match row.take(*column, part, rest) {
                Some(rest) => rest,
                None => return false,
            },
            None => RowOfKeys::skip(part, rest),
        };
    }
    true
}

/// By parts of the index and of the clustered one, which columns are taken from where; `None` if that does not give all of them.
fn parts_of(table: &Table, index: usize, columns: &[usize]) -> Option<(Vec<Option<usize>>, Vec<Option<usize>>)> {
    let codec = &table.indexes[index];
    if index == 0 || codec.is_full_text() {
        return None;
    }
    let mut left: Vec<usize> = columns.iter().copied().filter(|column| *column < table.columns().len()).collect();
    left.sort_unstable();
    left.dedup();
    let own = parts_with(codec, &mut left);
    let clustered = parts_with(table.clustered(), &mut left);
    left.is_empty().then_some((own, clustered))
}

/// For each part, up to the last that gives one, the column of `left` that it gives, which is taken out there.
fn parts_with(codec: &IndexCodec, left: &mut Vec<usize>) -> Vec<Option<usize>> {
    let mut parts: Vec<Option<usize>> = Vec::with_capacity(codec.parts.len());
    for (column, part) in codec.columns.iter().zip(&codec.parts) {
        let at = left.iter().position(|wanted| wanted == column).filter(|_| follows_from_key(part));
        parts.push(at.map(|at| left.swap_remove(at)));
    }
    let used = parts.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    parts.truncate(used);
    parts
}

impl Table {
    /// Whether scans of a secondary index give these columns without a look at the rows (`TableScan::of_columns`). Numbers of no column are passed over.
    pub fn covers(&self, index: usize, columns: &[usize]) -> bool {
        match &self.parts {
            None => parts_of(self, index, columns).is_some(),
            // Rows of several partitions are put in order by the columns of the index.
            Some(_) => parts_of(self, index, &[columns, &self.indexes[index].columns[..]].concat()).is_some(),
        }
    }

    /// As `get`, for whoever asks for these columns only: all others may be NULL (`TableScan::of_columns`).
    pub fn get_columns(&self, txn: &mut Transaction, index: usize, key: &[Value], columns: &[usize]) -> Result<Option<Row>, MySqlError> {
        let by_entry = index != 0 && self.parts.is_none() && txn.isolation() != Isolation::ReadUncommitted && !key.iter().any(Value::is_null);
        let Some(mut covering) = by_entry.then(|| Covering::new(self, index, columns)).flatten() else { return self.get(txn, index, key) };
        let epoch = txn.view_epoch();
        self.check_view(epoch)?;
        // E5.
        if !txn.inner().replaced_unseen(self.clustered().id).is_empty() {
            return self.get(txn, index, key);
        }
        let codec = &self.indexes[index];
        let (mut entry, mut value, mut data) = (Vec::new(), Vec::new(), Vec::new());
        codec.encode_prefix(key, &mut entry);
        if !txn.inner().get(codec.id, &entry, &mut value).map_err(|e| self.failed(e))? {
            return Ok(None);
        }
        let clustered = index::clustered_key(&entry, &value).ok_or_else(|| self.corrupt(index))?;
        if !covering.restore(self, &entry, clustered, &mut data) {
            return self.get(txn, index, key);
        }
        Ok(Some(Row { layout: self.layout.clone(), key: clustered.to_vec(), data }))
    }
}
