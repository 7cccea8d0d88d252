//! The condition that a scan evaluates itself: on the columns that it reads first, so that the others are made for the rows that are left.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};

/// The condition of a scan.
pub(super) struct Filter {
    condition: Arc<dyn PhysicalExpr>,
    /// The scan's output columns that it reads, by position.
    pub columns: Vec<usize>,
    schema: SchemaRef,
}

/// Which rows of a batch are left.
pub(super) enum Selected {
    None,
    All,
    Some(BooleanArray),
}

impl Filter {
    /// `condition` is over `schema`.
    pub fn new(condition: Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Filter> {
        let mut columns: Vec<usize> = collect_columns(&condition).into_iter().map(|column| column.index()).collect();
        columns.sort_unstable();
        let schema = Arc::new(schema.project(&columns)?);
        Ok(Filter { condition: reassign_expr_columns(condition, &schema)?, columns, schema })
    }

    /// `arrays` are the columns that the condition reads.
    pub fn select(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<Selected> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        let holds = self.condition.evaluate(&batch)?.into_array(rows)?;
        let holds = as_boolean_array(&holds)?;
        let holds = if holds.null_count() > 0 { prep_null_mask_filter(holds) } else { holds.clone() };
        Ok(match holds.true_count() {
            0 => Selected::None,
            all if all == rows => Selected::All,
            _ => Selected::Some(holds),
        })
    }
}
