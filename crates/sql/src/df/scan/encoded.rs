//! Rows that wait, encoded, for the filter: the columns that it asks for are decoded first, the others for the rows that it leaves.

use std::cell::OnceCell;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::common::Result;
use highkey_table::{RowBatch, Table};

use super::decode::Decoder;
use crate::df::key_set::KeySet;

/// Rows that take more bytes do not wait: the columns that are wanted of them may be small.
const MOST_BYTES: usize = 8 << 20;

/// Leaves whose rows wait, in their order.
#[derive(Default)]
pub(super) struct Waiting {
    leaves: Vec<RowBatch>,
    rows: usize,
    bytes: usize,
    /// Leaves to be filled again.
    spare: Vec<RowBatch>,
}

impl Waiting {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the rows of a leaf, and leaves another batch to be filled. What is too much to wait is decoded, and what comes behind that.
    pub fn take_in(&mut self, leaf: &mut RowBatch, decoder: &mut Decoder) -> Result<()> {
        if decoder.rows() == 0 && self.bytes + leaf.bytes() <= MOST_BYTES {
            self.rows += leaf.len();
            self.bytes += leaf.bytes();
            self.leaves.push(std::mem::replace(leaf, self.spare.pop().unwrap_or_default()));
            return Ok(());
        }
        self.decode(decoder)?;
        decoder.append(leaf, 0..leaf.len())?;
        if leaf.bytes() > MOST_BYTES {
            // The next leaf may wait.
            *leaf = RowBatch::new();
        }
        Ok(())
    }

    /// Decodes what waits.
    pub fn decode(&mut self, decoder: &mut Decoder) -> Result<()> {
        for leaf in &self.leaves {
            decoder.append(leaf, 0..leaf.len())?;
        }
        self.clear();
        Ok(())
    }

    /// What waits, by its columns; `clear` follows.
    pub fn encoded(&self, table: &Arc<Table>, columns: &[usize]) -> Encoded<'_> {
        Encoded { table: table.clone(), leaves: &self.leaves, rows: self.rows, columns: columns.iter().map(|&column| (column, OnceCell::new())).collect() }
    }

    pub fn clear(&mut self) {
        self.spare.append(&mut self.leaves);
        // Some may have grown since they last waited.
        let mut bytes = 0;
        self.spare.retain(|leaf| {
            bytes += leaf.bytes();
            bytes <= MOST_BYTES
        });
        (self.rows, self.bytes) = (0, 0);
    }
}

/// Columns of encoded rows.
pub(super) struct Encoded<'a> {
    table: Arc<Table>,
    leaves: &'a [RowBatch],
    rows: usize,
    /// Of the table, and all rows of each that somebody has asked for.
    columns: Vec<(usize, OnceCell<ArrayRef>)>,
}

impl Encoded<'_> {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All rows of a column, by its position.
    pub fn whole(&self, at: usize) -> Result<ArrayRef> {
        let (column, known) = &self.columns[at];
        if let Some(known) = known.get() {
            return Ok(known.clone());
        }
        let mut decoder = Decoder::new(&self.table, &[*column], self.rows);
        for leaf in self.leaves {
            decoder.append(leaf, 0..leaf.len())?;
        }
        Ok(known.get_or_init(|| decoder.finish().swap_remove(0)).clone())
    }

    /// Some of its rows, which ascend.
    pub fn some(&self, at: usize, rows: &[u32]) -> Result<ArrayRef> {
        let (column, known) = &self.columns[at];
        if let Some(known) = known.get() {
            return Ok(take(known, &UInt32Array::from(rows.to_vec()), None)?);
        }
        let mut decoder = Decoder::new(&self.table, &[*column], rows.len());
        let (mut first, mut left) = (0, rows);
        for leaf in self.leaves {
            let end = first + leaf.len() as u32;
            let (here, behind) = left.split_at(left.partition_point(|&row| row < end));
            decoder.append(leaf, here.iter().map(|&row| (row - first) as usize))?;
            (first, left) = (end, behind);
        }
        Ok(decoder.finish().swap_remove(0))
    }

    /// Which rows, of those in `among` or of all, may have a key of the set; None if the column is none of integers.
    pub fn pick(&self, at: usize, keys: &KeySet, among: Option<&[u32]>) -> Option<Vec<u32>> {
        match among {
            Some(rows) if self.columns[at].1.get().is_none() => {
                let picked = keys.pick_of(&self.some(at, rows).ok()?, None)?;
                Some(picked.into_iter().map(|row| rows[row as usize]).collect())
            }
            _ => keys.pick_of(&self.whole(at).ok()?, among),
        }
    }
}
