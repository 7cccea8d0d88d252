//! The first row's value of each group, of any type.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array, new_empty_array, new_null_array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use super::GroupState;

const NO_ROW: u64 = u64::MAX;

/// Values are kept as one array per batch that brought new groups, so no cell is copied more than once.
#[derive(Debug)]
pub(super) struct First {
    data_type: DataType,
    /// Groups `0..seen.len()`, and whether each has had a row.
    seen: Vec<bool>,
    /// One value per group.
    values: ArrayRef,
    /// What `values` will be extended by.
    chunks: Vec<ArrayRef>,
    chunked: usize,
}

impl First {
    pub fn new(data_type: DataType) -> First {
        First { values: new_empty_array(&data_type), data_type, seen: Vec::new(), chunks: Vec::new(), chunked: 0 }
    }

    fn gather(&mut self) -> Result<()> {
        if !self.chunks.is_empty() {
            let mut parts: Vec<&dyn Array> = vec![self.values.as_ref()];
            parts.extend(self.chunks.iter().map(|c| c.as_ref()));
            self.values = compute::concat(&parts)?;
            self.chunks.clear();
            self.chunked = 0;
        }
        let missing = self.seen.len() - self.values.len();
        if missing > 0 {
            let nulls = new_null_array(&self.data_type, missing);
            self.values = compute::concat(&[self.values.as_ref(), nulls.as_ref()])?;
        }
        Ok(())
    }

    fn add(&mut self, values: &ArrayRef, present: Option<&BooleanArray>, groups: &[usize]) -> Result<()> {
        let have = self.values.len() + self.chunked;
        let mut rows = vec![NO_ROW; self.seen.len() - have];
        let mut late = Vec::new();
        for (row, &group) in groups.iter().enumerate() {
            if present.is_some_and(|p| !p.value(row)) {
                continue;
            }
            if self.seen[group] {
                continue;
            }
            self.seen[group] = true;
            if group >= have { rows[group - have] = row as u64 } else { late.push((group, row)) }
        }
        if !rows.is_empty() {
            let indices: UInt64Array = rows.iter().map(|&r| (r != NO_ROW).then_some(r)).collect();
            self.chunked += rows.len();
            self.chunks.push(compute::take(values, &indices, None)?);
        }
        if !late.is_empty() {
            // A group that existed without a row (only the ungrouped aggregate's one group does).
            self.gather()?;
            let mut picks: Vec<(usize, usize)> = (0..self.values.len()).map(|i| (0, i)).collect();
            late.iter().for_each(|&(group, row)| picks[group] = (1, row));
            self.values = compute::interleave(&[self.values.as_ref(), values.as_ref()], &picks)?;
        }
        Ok(())
    }
}

impl GroupState for First {
    fn resize(&mut self, len: usize) {
        self.seen.resize(len, false);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.add(&args[0], None, groups)
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let present = datafusion::common::cast::as_boolean_array(&states[1])?.clone();
        self.add(&states[0], Some(&present), groups)
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        self.gather()?;
        Ok(self.values.slice(0, len))
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        let values = self.evaluate(len)?;
        Ok(vec![values, Arc::new(BooleanArray::from(self.seen[..len].to_vec()))])
    }

    fn forget(&mut self, len: usize) {
        // `evaluate` or `partial` came before, so `values` is complete.
        self.values = self.values.slice(len, self.values.len() - len);
        self.seen.drain(..len);
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![self.data_type.clone(), DataType::Boolean]
    }

    fn bytes(&self) -> usize {
        self.values.get_array_memory_size() + self.chunks.iter().map(|c| c.get_array_memory_size()).sum::<usize>() + self.seen.capacity()
    }
}
