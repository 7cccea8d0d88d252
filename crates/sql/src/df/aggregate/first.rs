//! The first row's value of each group, of any type.

use std::hash::BuildHasher;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray, UInt64Array, new_empty_array, new_null_array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::hash_utils::{RandomState, create_hashes};

use super::GroupState;
use crate::df::compact::tight;
use crate::df::parallel::OrderWatch;

const NO_ROW: u64 = u64::MAX;

/// Values are kept as one array per batch that brought new groups, so no cell is copied more than once.
#[derive(Debug)]
pub(super) struct First {
    data_type: DataType,
    /// Groups `0..seen.len()`, and whether each has had a row.
    seen: Vec<bool>,
    /// Those that have not.
    unseen: usize,
    /// One value per group.
    values: ArrayRef,
    /// What `values` will be extended by.
    chunks: Vec<ArrayRef>,
    chunked: usize,
    watch: OrderWatch,
    /// While the order is watched: what tells each group's value from others.
    marks: Vec<u128>,
}

impl First {
    pub fn new(data_type: DataType, watch: OrderWatch) -> First {
        First { values: new_empty_array(&data_type), data_type, seen: Vec::new(), unseen: 0, chunks: Vec::new(), chunked: 0, watch, marks: Vec::new() }
    }

    /// Raises the watch if rows of a group have different values, so that it matters which is the first.
    fn compare(&mut self, values: &ArrayRef, present: Option<&BooleanArray>, groups: &[usize]) -> Result<()> {
        self.marks.resize(self.seen.len(), 0);
        let mark = Marks::of(values)?;
        if let (Marks::Texts(texts), None) = (&mark, present)
            && texts.null_count() == 0
        {
            let differs = groups.iter().zip(texts.views().iter()).enumerate().any(|(row, (&group, &view))| {
                // The usual text is short.
                let mark = if view as u32 <= SHORT { view | KNOWN } else { mark.at(row) };
                let known = &mut self.marks[group];
                if *known == 0 {
                    *known = mark;
                }
                *known != mark
            });
            if differs {
                self.watch.raise();
            }
            return Ok(());
        }
        for (row, &group) in groups.iter().enumerate() {
            if present.is_some_and(|p| !p.value(row)) {
                continue;
            }
            let mark = mark.at(row);
            let known = &mut self.marks[group];
            if *known == 0 {
                *known = mark;
            } else if *known != mark {
                self.watch.raise();
                break;
            }
        }
        Ok(())
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
        if self.watch.is_watching() {
            self.compare(values, present, groups)?;
        }
        if self.unseen == 0 {
            return Ok(());
        }
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
            self.unseen -= 1;
            if group >= have { rows[group - have] = row as u64 } else { late.push((group, row)) }
        }
        if !rows.is_empty() {
            let indices: UInt64Array = rows.iter().map(|&r| (r != NO_ROW).then_some(r)).collect();
            self.chunked += rows.len();
            self.chunks.push(tight(&compute::take(values, &indices, None)?));
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
        self.unseen += len.saturating_sub(self.seen.len());
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
        self.values = tight(&self.values.slice(len, self.values.len() - len));
        self.unseen -= self.seen.drain(..len).filter(|seen| !seen).count();
        self.marks.drain(..len.min(self.marks.len()));
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![self.data_type.clone(), DataType::Boolean]
    }

    fn bytes(&self) -> usize {
        self.values.get_array_memory_size() + self.chunks.iter().map(|c| c.get_array_memory_size()).sum::<usize>() + self.seen.capacity() + self.marks.capacity() * 16
    }
}

/// The low 32 bits of a view are the text's length; up to so many bytes of text are in the rest.
const SHORT: u32 = 12;
/// In every mark; no text is so long.
const KNOWN: u128 = 1 << 31;

/// Numbers, never 0, that differ where values differ: the value itself if it is a short text, else a hash with its length.
enum Marks<'a> {
    Texts(&'a StringViewArray),
    Hashes(Vec<u64>, &'a dyn Array),
}

impl Marks<'_> {
    fn of(values: &ArrayRef) -> Result<Marks<'_>> {
        if let Some(texts) = values.as_string_view_opt() {
            return Ok(Marks::Texts(texts));
        }
        let mut hashes = vec![0; values.len()];
        create_hashes([values], &RANDOM, &mut hashes)?;
        Ok(Marks::Hashes(hashes, values.as_ref()))
    }

    fn at(&self, row: usize) -> u128 {
        // No view has such a length.
        const NULL: u128 = u128::MAX;
        match self {
            Marks::Texts(texts) if texts.is_null(row) => NULL,
            Marks::Texts(texts) => {
                let view = texts.views()[row];
                let length = view as u32;
                let rest = if length <= SHORT { view } else { u128::from(RANDOM.hash_one(texts.value(row))) << 32 | u128::from(length) };
                rest | KNOWN
            }
            Marks::Hashes(_, values) if values.is_null(row) => NULL,
            Marks::Hashes(hashes, _) => u128::from(hashes[row]) << 32 | KNOWN,
        }
    }
}

/// The same in all threads of a query, whose partial states meet.
static RANDOM: RandomState = RandomState::with_seed(0x4869_6768_6b65_79);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_texts_of_a_group_raise_the_watch() {
        let (long, other) = ("a text that is longer than a view", "a text that is longer than a View");
        for (texts, differ) in [(["a", "b", "a"], false), (["a", "b", "A"], true), ([long, "", long], false), ([long, "", other], true), (["", "b", long], true)] {
            // With a NULL of another group, and without.
            for more in [None, Some("c")] {
                let watch = OrderWatch::default();
                watch.watch();
                let mut first = First::new(DataType::Utf8View, watch.clone());
                first.resize(3);
                let values: ArrayRef = Arc::new(texts.into_iter().map(Some).chain([more]).collect::<StringViewArray>());
                first.update(&[values], &[0, 1, 0, 2]).unwrap();
                assert_eq!(watch.is_raised(), differ, "{texts:?} {more:?}");
            }
        }
    }
}
