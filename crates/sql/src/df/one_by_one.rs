//! Rows one by one, for queries that call stored functions which the session runs, or assign variables: what they do is seen, so all expressions of a row
//! come before those of the next.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, replace_children_if_necessary};
use futures::TryStreamExt;

use super::through::{OnTheWay, Through};

/// Batches of one row.
#[derive(Debug)]
struct OneByOne;

impl OnTheWay for OneByOne {
    fn stream(&self, input: SendableRecordBatchStream, _: usize, _: &TaskContext) -> SendableRecordBatchStream {
        let schema = input.schema();
        let rows = input.map_ok(|batch| futures::stream::iter((0..batch.num_rows()).map(move |at| Ok::<RecordBatch, DataFusionError>(batch.slice(at, 1)))));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten()))
    }
}

/// The plan whose projections and filters get their rows one by one, however many their inputs give at once.
pub(super) fn one_by_one(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if !node.is::<ProjectionExec>() && !node.is::<FilterExec>() {
            return Ok(Transformed::no(node));
        }
        let input = Through::over(node.children()[0].clone(), Arc::new(OneByOne));
        Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?))
    })
    .data()
}
