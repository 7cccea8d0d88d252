//! DISTINCT around another aggregate: rows whose key was seen in their group are dropped before it.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, UInt64Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;

use super::GroupState;
use super::concat::next_rows;

/// What a key takes in a set, about, beside its bytes.
const KEY_BYTES: usize = 48;

/// Keys are Arrow's row encoding of the first argument. The rows that passed are kept encoded as well: they are the partial state,
/// because only keys from all partitions together tell what is distinct.
#[derive(Debug)]
pub(super) struct Distinct {
    inner: Box<dyn GroupState>,
    rows: RowConverter,
    seen: Vec<HashSet<Box<[u8]>>>,
    kept: Vec<Vec<u8>>,
    bytes: usize,
    /// The order of the rows shows: of a group whose states come back from spill files, in any order, `inner` sees the rows when all are there.
    in_order: bool,
    /// Groups of which there are such states.
    merged: Vec<bool>,
}

impl Distinct {
    /// `inputs` are the types of the key and of `inner`'s arguments.
    pub fn new(inner: Box<dyn GroupState>, inputs: &[DataType], in_order: bool) -> Result<Distinct> {
        let rows = RowConverter::new(inputs.iter().map(|ty| SortField::new(ty.clone())).collect())?;
        Ok(Distinct { inner, rows, seen: Vec::new(), kept: Vec::new(), bytes: 0, in_order, merged: Vec::new() })
    }

    /// Gives `inner` the rows of a group's states in their order.
    fn see_merged(&mut self, group: usize) -> Result<()> {
        let kept = std::mem::take(&mut self.kept[group]);
        self.bytes -= kept.len();
        let mut rows: Vec<(u64, &[u8])> = rows_of(&kept).collect();
        rows.sort_unstable_by_key(|(number, _)| *number);
        let parser = self.rows.parser();
        // The first of a key is kept, in the order of its number.
        for rows in rows.chunks(MOST_AT_ONCE) {
            let args = self.rows.convert_rows(rows.iter().map(|(_, row)| parser.parse(row)))?;
            self.update(&args, &vec![group; rows.len()])?;
        }
        Ok(())
    }
}

/// Rows that are decoded together.
const MOST_AT_ONCE: usize = 8192;

/// `number u64 · length u32 · row`
fn push_row(number: u64, row: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&(row.len() as u32).to_le_bytes());
    out.extend_from_slice(row);
}

fn rows_of(mut kept: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let (number, rest) = kept.split_first_chunk::<8>()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (row, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        kept = rest;
        Some((u64::from_le_bytes(*number), row))
    })
}

impl GroupState for Distinct {
    fn resize(&mut self, len: usize) {
        self.inner.resize(len);
        self.seen.resize_with(len, HashSet::new);
        self.kept.resize_with(len, Vec::new);
        self.merged.resize(len, false);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let key_rows = RowConverter::new(vec![SortField::new(args[0].data_type().clone())])?.convert_columns(&args[..1])?;
        let full_rows = self.rows.convert_columns(args)?;
        let first = next_rows(groups.len());
        let mut picked = Vec::new();
        let mut picked_groups = Vec::new();
        for (row, &group) in groups.iter().enumerate() {
            // A NULL key is no value: every DISTINCT aggregate ignores it.
            if args[0].is_null(row) {
                continue;
            }
            let key = key_rows.row(row);
            if self.seen[group].insert(key.as_ref().into()) {
                let full = full_rows.row(row);
                let kept = &mut self.kept[group];
                let before = kept.len();
                push_row(first + row as u64, full.as_ref(), kept);
                self.bytes += key.as_ref().len() + KEY_BYTES + kept.len() - before;
                picked.push(row as u64);
                picked_groups.push(group);
            }
        }
        let picked = UInt64Array::from(picked);
        let inner_args = args[1..].iter().map(|a| Ok(compute::take(a, &picked, None)?)).collect::<Result<Vec<_>>>()?;
        self.inner.update(&inner_args, &picked_groups)
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let blobs = states[0].as_binary_view();
        if self.in_order {
            for (i, &group) in groups.iter().enumerate() {
                self.kept[group].extend_from_slice(blobs.value(i));
                self.bytes += blobs.value(i).len();
                self.merged[group] = true;
            }
            return Ok(());
        }
        let parser = self.rows.parser();
        let mut rows = Vec::new();
        let mut row_groups = Vec::new();
        for (i, &group) in groups.iter().enumerate() {
            for (_, row) in rows_of(blobs.value(i)) {
                rows.push(parser.parse(row));
                row_groups.push(group);
            }
        }
        let args = self.rows.convert_rows(rows)?;
        self.update(&args, &row_groups)
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        for group in 0..len {
            if std::mem::take(&mut self.merged[group]) {
                self.see_merged(group)?;
            }
        }
        self.inner.evaluate(len)
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        let mut out = BinaryViewBuilder::with_capacity(len);
        self.kept[..len].iter().for_each(|blob| out.append_value(blob));
        // The inner state is not part of it, but its groups are forgotten with these.
        self.inner.evaluate(len)?;
        Ok(vec![Arc::new(out.finish())])
    }

    fn forget(&mut self, len: usize) {
        self.inner.forget(len);
        self.bytes -= self.seen.drain(..len).flatten().map(|key| key.len() + KEY_BYTES).sum::<usize>();
        self.bytes -= self.kept.drain(..len).map(|rows| rows.len()).sum::<usize>();
        self.merged.drain(..len);
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::BinaryView]
    }

    fn bytes(&self) -> usize {
        self.bytes + self.inner.bytes()
    }
}
