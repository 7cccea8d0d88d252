//! DISTINCT around another aggregate: rows whose key was seen in their group are dropped before it.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, UInt64Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result};

use super::GroupState;

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
    /// The order of the rows shows, and they have it: their states must not come back from spill files in another one.
    in_order: bool,
}

impl Distinct {
    /// `inputs` are the types of the key and of `inner`'s arguments.
    pub fn new(inner: Box<dyn GroupState>, inputs: &[DataType], in_order: bool) -> Result<Distinct> {
        let rows = RowConverter::new(inputs.iter().map(|ty| SortField::new(ty.clone())).collect())?;
        Ok(Distinct { inner, rows, seen: Vec::new(), kept: Vec::new(), bytes: 0, in_order })
    }
}

impl GroupState for Distinct {
    fn resize(&mut self, len: usize) {
        self.inner.resize(len);
        self.seen.resize_with(len, HashSet::new);
        self.kept.resize_with(len, Vec::new);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let key_rows = RowConverter::new(vec![SortField::new(args[0].data_type().clone())])?.convert_columns(&args[..1])?;
        let full_rows = self.rows.convert_columns(args)?;
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
                kept.extend_from_slice(&(full.as_ref().len() as u32).to_le_bytes());
                kept.extend_from_slice(full.as_ref());
                self.bytes += key.as_ref().len() + KEY_BYTES + size_of::<u32>() + full.as_ref().len();
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
        let parser = self.rows.parser();
        let mut rows = Vec::new();
        let mut row_groups = Vec::new();
        for (i, &group) in groups.iter().enumerate() {
            let mut blob = blobs.value(i);
            while let Some((len, rest)) = blob.split_first_chunk::<4>() {
                let (row, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
                rows.push(parser.parse(row));
                row_groups.push(group);
                blob = rest;
            }
        }
        let args = self.rows.convert_rows(rows)?;
        self.update(&args, &row_groups)
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        self.inner.evaluate(len)
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        if self.in_order {
            // The query is planned again, with DISTINCT by sorting.
            return Err(DataFusionError::ResourcesExhausted("groups of DISTINCT rows in their order do not spill".into()));
        }
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
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::BinaryView]
    }

    fn bytes(&self) -> usize {
        self.bytes + self.inner.bytes()
    }
}
