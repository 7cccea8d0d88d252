//! The conditions that a scan evaluates itself: on the columns that they read first, so that the others are made for the rows that are left.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::{and, filter, filter_record_batch, prep_null_mask_filter};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};

/// The conditions of a scan, all of which a row must satisfy.
pub(super) struct Filter {
    conditions: Vec<Condition>,
    /// The scan's output columns that they read, by position.
    pub columns: Vec<usize>,
    schema: SchemaRef,
}

struct Condition {
    holds: Arc<dyn PhysicalExpr>,
    /// It has functions, which may raise errors and warnings: it is asked only about rows that satisfy the conditions before it.
    calls: bool,
}

/// Which rows of a batch are left.
pub(super) enum Selected {
    None,
    All,
    /// By their positions.
    Some(UInt32Array),
}

impl Filter {
    /// `conditions` are over `schema`, and are evaluated in this order.
    pub fn new(conditions: &[Arc<dyn PhysicalExpr>], schema: &SchemaRef) -> Result<Filter> {
        let mut columns: Vec<usize> = conditions.iter().flat_map(collect_columns).map(|column| column.index()).collect();
        columns.sort_unstable();
        columns.dedup();
        let schema = Arc::new(schema.project(&columns)?);
        let conditions = conditions.iter().map(|condition| {
            let holds = reassign_expr_columns(condition.clone(), &schema)?;
            let calls = holds.exists(|part| Ok(part.downcast_ref::<ScalarFunctionExpr>().is_some()))?;
            Ok(Condition { holds, calls })
        });
        Ok(Filter { conditions: conditions.collect::<Result<_>>()?, columns, schema })
    }

    /// `arrays` are the columns that the conditions read.
    pub fn select(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<Selected> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let mut batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        // The rows of `batch`, if it is not all; and which of them satisfy the conditions so far, if not all.
        let mut positions: Option<UInt32Array> = None;
        let mut left: Option<BooleanArray> = None;
        for condition in &self.conditions {
            if let Some(mask) = left.take_if(|_| condition.calls) {
                positions = Some(narrow(positions, &mask)?);
                batch = filter_record_batch(&batch, &mask)?;
            }
            let holds = condition.holds.evaluate(&batch)?.into_array(batch.num_rows())?;
            let holds = as_boolean_array(&holds)?;
            let holds = if holds.null_count() > 0 { prep_null_mask_filter(holds) } else { holds.clone() };
            let both = match left {
                Some(left) => and(&left, &holds)?,
                None => holds,
            };
            match both.true_count() {
                0 => return Ok(Selected::None),
                all if all == batch.num_rows() => left = None,
                _ => left = Some(both),
            }
        }
        Ok(match (left, positions) {
            (None, None) => Selected::All,
            (None, Some(positions)) => Selected::Some(positions),
            (Some(mask), positions) => Selected::Some(narrow(positions, &mask)?),
        })
    }
}

/// Those of the positions (`None`: 0, 1, 2 …) for which the mask is true.
fn narrow(positions: Option<UInt32Array>, mask: &BooleanArray) -> Result<UInt32Array> {
    Ok(match positions {
        None => UInt32Array::from_iter_values(mask.values().set_indices_u32()),
        Some(positions) => filter(&positions, mask)?.as_primitive().clone(),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{binary, col, lit};

    use super::*;

    #[test]
    fn conditions_are_anded_in_their_order() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("unused", DataType::Int64, true), Field::new("a", DataType::Int64, true)]));
        let compare = |op, n: i64| binary(col("a", &schema).unwrap(), op, lit(n), &schema).unwrap();
        let select = |calls: bool, conditions: &[Arc<dyn PhysicalExpr>]| {
            let mut filter = Filter::new(conditions, &schema).unwrap();
            assert_eq!(filter.columns, [1]);
            filter.conditions.iter_mut().for_each(|c| c.calls = calls);
            match filter.select(vec![Arc::new(Int64Array::from(vec![Some(1), None, Some(5), Some(7), Some(9)]))], 5).unwrap() {
                Selected::None => Vec::new(),
                Selected::All => vec![0, 1, 2, 3, 4],
                Selected::Some(rows) => rows.values().to_vec(),
            }
        };
        for calls in [false, true] {
            assert_eq!(select(calls, &[compare(Operator::Gt, 1), compare(Operator::Lt, 9), compare(Operator::NotEq, 5)]), [3]);
            assert_eq!(select(calls, &[compare(Operator::Gt, 1), compare(Operator::Gt, 4)]), [2, 3, 4]);
            assert!(select(calls, &[compare(Operator::Gt, 5), compare(Operator::Lt, 5)]).is_empty());
        }
    }
}
