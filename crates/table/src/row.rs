//! Rows as callers get them: encoded bytes with the layout to read them.

use std::sync::Arc;

use highkey_storage::LeafRows;
use highkey_types::{RowLayout, Value};

/// One row: its clustered key and its encoded columns. From a locking read it also identifies the row to update or delete.
#[derive(Clone, Debug)]
pub struct Row {
    pub(crate) layout: Arc<RowLayout>,
    pub(crate) key: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Row {
    /// A column's value, by its position.
    pub fn value(&self, column: usize) -> Value {
        self.layout.value(&self.data, column)
    }

    /// The values of all columns.
    pub fn values(&self) -> Vec<Value> {
        self.layout.values(&self.data)
    }

    /// How `data` is to be read.
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// The encoded columns, for `RowLayout`'s typed reads.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The clustered key: equal for equal rows of one table, in clustered order.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

/// The rows of one step of a scan. Reused between steps.
#[derive(Debug, Default)]
pub struct RowBatch {
    pub(crate) layout: Option<Arc<RowLayout>>,
    /// Rows of a clustered scan, as the storage engine copied them out.
    pub(crate) leaf: LeafRows,
    /// Rows that a secondary index led to; used if `gathered`.
    pub(crate) bytes: Vec<u8>,
    /// (key start, value start, value end)
    pub(crate) rows: Vec<(u32, u32, u32)>,
    pub(crate) gathered: bool,
}

impl RowBatch {
    pub fn new() -> RowBatch {
        RowBatch::default()
    }

    pub fn len(&self) -> usize {
        if self.gathered { self.rows.len() } else { self.leaf.len() }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory for rows, those that it has and those that it could take.
    pub fn bytes(&self) -> usize {
        self.leaf.bytes() + self.bytes.capacity()
    }

    /// The layout of every row of the batch. Panics before the first `next_batch`.
    pub fn layout(&self) -> &Arc<RowLayout> {
        self.layout.as_ref().expect("a batch is read after a scan filled it")
    }

    /// The encoded row.
    pub fn row(&self, row: usize) -> &[u8] {
        if self.gathered {
            let (_, start, end) = self.rows[row];
            &self.bytes[start as usize..end as usize]
        } else {
            self.leaf.value(row)
        }
    }

    /// The row's clustered key.
    pub fn key(&self, row: usize) -> &[u8] {
        if self.gathered {
            let (start, end, _) = self.rows[row];
            &self.bytes[start as usize..end as usize]
        } else {
            self.leaf.key(row)
        }
    }

    /// A column's value of a row, by their positions.
    pub fn value(&self, row: usize, column: usize) -> Value {
        self.layout().value(self.row(row), column)
    }

    /// The values of all columns of a row.
    pub fn values(&self, row: usize) -> Vec<Value> {
        self.layout().values(self.row(row))
    }

    /// A copy of a row, which outlives the batch.
    pub fn to_row(&self, row: usize) -> Row {
        Row { layout: self.layout().clone(), key: self.key(row).to_vec(), data: self.row(row).to_vec() }
    }

    pub(crate) fn start_gathering(&mut self, layout: &Arc<RowLayout>) {
        self.set_layout(layout);
        self.gathered = true;
        self.bytes.clear();
        self.rows.clear();
    }

    pub(crate) fn set_layout(&mut self, layout: &Arc<RowLayout>) {
        if !self.layout.as_ref().is_some_and(|l| Arc::ptr_eq(l, layout)) {
            self.layout = Some(layout.clone());
        }
        self.gathered = false;
    }

    pub(crate) fn gather(&mut self, key: &[u8], data: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len() as u32;
        self.bytes.extend_from_slice(data);
        let end = u32::try_from(self.bytes.len()).expect("the rows of one leaf of entries stay below 4 GiB");
        self.rows.push((start, middle, end));
    }
}
