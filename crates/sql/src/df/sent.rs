//! Rows that have left a query. One that runs out of memory behind them may start anew, with operators that spill: it gives the same rows again, though not
//! always in the same order, and leaves out those that have left.
//!
//! Each of them is known by 128 bits of a hash while they are few. If they are many all of them are known by one, and have to come first, in the same order, as
//! rows of scans do.

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;
use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::union::UnionExec;

use super::append::Append;
use super::error::out_of_memory;
use super::materialize::CteExec;

/// More rows than this are known together: 4 MiB of hashes, and some more when they are looked for.
const MOST_KNOWN: usize = 1 << 18;

/// Rows that have left, and what an attempt that starts anew has given of them.
#[derive(Default)]
pub(super) struct SentRows {
    count: u64,
    /// Of all rows, in their order.
    all: u128,
    /// Of each; none if they are too many.
    each: Vec<u128>,
    /// The attempt has to leave out so many more of each.
    again: HashMap<u128, u32>,
    /// Instead, so many at its beginning; and what those so far are together.
    first: u64,
    first_all: u128,
}

impl SentRows {
    /// Another attempt begins.
    pub fn begin(&mut self) {
        (self.first, self.first_all) = (0, 0);
        self.again.clear();
        if self.each.len() as u64 == self.count {
            self.each.iter().for_each(|row| *self.again.entry(*row).or_default() += 1);
        } else {
            self.first = self.count;
        }
    }

    /// Those of the attempt's next rows that have not left before; they leave now.
    pub fn fresh(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let rows = hashes(&batch)?;
        let fresh: Vec<bool> = rows.into_iter().map(|row| self.is_fresh(row)).collect::<Result<_>>()?;
        if fresh.iter().all(|fresh| *fresh) { Ok(batch) } else { Ok(filter_record_batch(&batch, &BooleanArray::from(fresh))?) }
    }

    /// The attempt has given all its rows. It fails if some have left that it did not give.
    pub fn end(&self) -> Result<()> {
        if self.first == 0 && self.again.is_empty() { Ok(()) } else { Err(others()) }
    }

    fn is_fresh(&mut self, row: u128) -> Result<bool> {
        if self.first > 0 {
            self.first -= 1;
            self.first_all = together(self.first_all, row);
            return if self.first > 0 || self.first_all == self.all { Ok(false) } else { Err(others()) };
        }
        if let Some(times) = self.again.get_mut(&row) {
            *times -= 1;
            if *times == 0 {
                self.again.remove(&row);
            }
            return Ok(false);
        }
        // Only as long as it has each.
        if self.each.len() as u64 == self.count && self.each.len() < MOST_KNOWN {
            self.each.push(row);
        } else {
            self.each = Vec::new();
        }
        self.count += 1;
        self.all = together(self.all, row);
        Ok(true)
    }
}

/// Of rows in their order.
fn together(before: u128, row: u128) -> u128 {
    before.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).wrapping_add(row)
}

fn others() -> DataFusionError {
    out_of_memory("the rows that have been sent are not the first ones of a plan that spills".to_owned())
}

/// Of each row.
fn hashes(batch: &RecordBatch) -> Result<Vec<u128>> {
    if batch.num_columns() == 0 {
        return Ok(vec![0; batch.num_rows()]);
    }
    // The same in each attempt.
    let (low, high) = (RandomState::with_seeds(1, 2, 3, 4), RandomState::with_seeds(5, 6, 7, 8));
    let fields = batch.columns().iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(batch.columns())?;
    Ok(rows.iter().map(|row| u128::from(low.hash_one(row.data())) | (u128::from(high.hash_one(row.data())) << 64)).collect())
}

/// True if memory may run out when rows have left the plan: the next input of a union begins then.
pub(super) fn runs_out_later(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let is_union = |node: &Arc<dyn ExecutionPlan>| node.is::<UnionExec>() || node.is::<Append>();
    let keeps_rows = |node: &Arc<dyn ExecutionPlan>| (node.children().len() > 1 && !is_union(node)) || node.is::<AggregateExec>() || node.is::<CteExec>();
    Ok(plan.exists(|node| Ok(is_union(node)))? && plan.exists(|node| Ok(keeps_rows(node)))?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};

    use super::*;

    fn batch(rows: &[(i64, &str)]) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(rows.iter().map(|(n, _)| Some(*n)).collect::<Int64Array>());
        let texts: ArrayRef = Arc::new(rows.iter().map(|(_, s)| (!s.is_empty()).then_some(*s)).collect::<StringViewArray>());
        RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("s", texts, true)]).unwrap()
    }

    fn left(sent: &mut SentRows, rows: &[(i64, &str)]) -> usize {
        sent.fresh(batch(rows)).unwrap().num_rows()
    }

    #[test]
    fn rows_that_have_left_are_left_out_in_any_order() {
        let mut sent = SentRows::default();
        sent.begin();
        assert_eq!(left(&mut sent, &[(1, "a"), (2, ""), (1, "a")]), 3);
        sent.begin();
        assert!(sent.end().is_err());
        assert_eq!(left(&mut sent, &[(3, ""), (1, "a"), (1, "a"), (1, "a"), (0, "")]), 3);
        assert!(sent.end().is_err(), "one is missing");
        assert_eq!(left(&mut sent, &[(2, ""), (2, "")]), 1);
        assert!(sent.end().is_ok());
        sent.begin();
        assert_eq!(left(&mut sent, &[(2, ""), (2, ""), (3, ""), (1, "a"), (1, "a"), (1, "a"), (0, "")]), 0);
        assert!(sent.end().is_ok());
    }

    #[test]
    fn many_rows_have_to_come_again_in_their_order() {
        let many: Vec<(i64, &str)> = (0..MOST_KNOWN as i64 + 5).map(|n| (n, "x")).collect();
        let mut sent = SentRows::default();
        sent.begin();
        assert_eq!(left(&mut sent, &many), many.len());
        sent.begin();
        assert_eq!(left(&mut sent, &many[..100]), 0);
        assert!(sent.end().is_err());
        assert_eq!(left(&mut sent, &many[100..]), 0);
        assert_eq!(left(&mut sent, &[(1, "x")]), 1);
        assert!(sent.end().is_ok());
        let mut changed = many.clone();
        changed.push((1, "x"));
        changed.swap(7, 8);
        sent.begin();
        assert!(sent.fresh(batch(&changed)).is_err());
    }
}
