//! Rows on their way into a bulk insert: encoded, then as sorted entries of each index.

use std::ops::Range;

use highkey_storage::BatchRows;
use highkey_types::{MySqlError, Value};

use super::run::Run;
use crate::def::IndexKind;
use crate::table::Table;
use crate::transaction::Transaction;

/// A buffer of encoded rows longer than the first goes to the second at once if nothing else is said: as long as the chunks of a large statement are
/// (`BULK_CHUNK_BYTES` of `highkey-sql`, and a leaf).
const GROWN_BYTES: usize = 64 << 10;
const CHUNK_BYTES: usize = (4 << 20) + GROWN_BYTES;

/// Encoded rows one after the other, as a table's `RowLayout` writes them.
#[derive(Clone, Debug)]
pub struct EncodedRows {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Room that a buffer longer than `GROWN_BYTES` gets at once: doubling would copy the rows several times.
    room: usize,
}

impl Default for EncodedRows {
    fn default() -> Self {
        EncodedRows::with_room(CHUNK_BYTES)
    }
}

impl EncodedRows {
    /// Empty; more than a few rows are taken to be a chunk of a large statement.
    pub fn new() -> EncodedRows {
        EncodedRows::default()
    }

    /// Empty; more than a few rows are taken to be about so many bytes. What is not needed of them is memory lost where memory comes in huge pages.
    pub fn with_room(bytes: usize) -> EncodedRows {
        EncodedRows { bytes: Vec::new(), ends: Vec::new(), room: bytes }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all rows together.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds what `write` appends as a row.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.try_push_with(|out| {
            write(out);
            true
        });
    }

    /// Adds what `write` appends as a row, if it says so; else the rows are as before.
    pub fn try_push_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let start = self.bytes.len();
        if start > GROWN_BYTES && start < self.room {
            self.bytes.reserve_exact(self.room - start);
        }
        if !write(&mut self.bytes) {
            self.bytes.truncate(start);
            return false;
        }
        let end = u32::try_from(self.bytes.len()).expect("a chunk of rows stays below 4 GiB");
        self.ends.push(end);
        true
    }

    /// A row's bytes.
    pub fn row(&self, i: usize) -> &[u8] {
        &self.bytes[self.place(i)]
    }

    /// The row, to be changed in place.
    pub fn row_mut(&mut self, i: usize) -> &mut [u8] {
        let place = self.place(i);
        &mut self.bytes[place]
    }

    fn place(&self, i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        start..self.ends[i] as usize
    }
}

/// A chunk of rows with their index entries.
pub struct PreparedRows {
    /// Of each index; of the clustered one only, as long as a table's row ids are not given.
    pub(super) runs: Vec<Run>,
    pub(super) count: usize,
    /// The largest value of the auto_increment column.
    pub(super) auto_increment: Option<Value>,
}

impl PreparedRows {
    pub(super) fn bytes(&self) -> usize {
        self.runs.iter().map(Run::bytes).sum()
    }
}

impl Table {
    /// Finds the rows' keys and sorts them. They are complete rows of this table, in statement order.
    pub fn prepare_rows(&self, rows: EncodedRows) -> PreparedRows {
        let count = rows.len();
        let mut run = Run::default();
        run.entries.reserve_exact(count);
        let mut start = 0;
        let row_ids = self.clustered().kind == IndexKind::RowId;
        for (i, end) in rows.ends.iter().enumerate() {
            let key_start = run.keys.len();
            if row_ids {
                run.keys.extend_from_slice(&[0; 8]);
            } else {
                self.clustered().encode_row(&self.layout, &rows.bytes[start as usize..*end as usize], &mut run.keys);
            }
            run.push(key_start, (start, *end), i as u64);
            start = *end;
        }
        let auto_increment = self.auto_increment_column().and_then(|column| {
            let values = (0..count).map(|i| self.layout.value(rows.row(i), column));
            values.max_by_key(number)
        });
        run.values = rows.bytes;
        let mut prepared = PreparedRows { runs: vec![run], count, auto_increment };
        if !row_ids {
            prepared.runs[0].sort();
            self.add_secondaries(&mut prepared);
        }
        prepared
    }

    /// The hidden keys of a chunk for a table without a primary key, and the secondary entries that wait for them.
    pub(super) fn give_row_ids(&self, txn: &mut Transaction, chunk: &mut PreparedRows) -> Result<(), MySqlError> {
        if self.clustered().kind == IndexKind::RowId {
            let first = txn.take_row_ids(&self.state, chunk.count as u64)?;
            chunk.runs[0].number(first);
            self.add_secondaries(chunk);
        }
        Ok(())
    }

    fn add_secondaries(&self, prepared: &mut PreparedRows) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for codec in &self.indexes[1..] {
            let clustered = &prepared.runs[0];
            let mut run = Run::default();
            run.entries.reserve_exact(clustered.len());
            for i in 0..clustered.len() {
                codec.for_each_entry_of_row(&self.layout, clustered.value(i), clustered.key(i), &mut key, &mut value, |key, value| {
                    run.add(key, value, clustered.row(i));
                });
            }
            run.sort();
            prepared.runs.push(run);
        }
    }
}

/// For finding the largest of a column's values.
fn number(value: &Value) -> i128 {
    match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        Value::Float(v) => *v as i128,
        Value::Double(v) => *v as i128,
        _ => 0,
    }
}
