//! Joins that fit any memory: a hash join keeps one side in memory and cannot spill it, a merge join sorts both sides and can. So does one without
//! conditions; a nested-loop join reads a file of its inner side, part by part, and all of the other side for each.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, replace_children_if_necessary};
use futures::TryStreamExt;

use super::error::final_refusal;
use super::through::{OnTheWay, Through};

/// Replaces hash joins by merge joins, and those without conditions by nested-loop joins: the plan of a query's second attempt, after the first one ran out of memory.
#[derive(Debug)]
pub(super) struct JoinsBySorting;

impl PhysicalOptimizerRule for JoinsBySorting {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if let Some(join) = node.downcast_ref::<CrossJoinExec>() {
                let pairs = NestedLoopJoinExec::try_new(join.left().clone(), join.right().clone(), None, &JoinType::Inner, None)?;
                return Ok(Transformed::yes(Arc::new(pairs) as Arc<dyn ExecutionPlan>));
            }
            let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
            let on = join.on().to_vec();
            let order = vec![SortOptions::default(); on.len()];
            let merge = SortMergeJoinExec::try_new(
                join.left().clone(),
                join.right().clone(),
                on,
                join.filter().cloned(),
                *join.join_type(),
                order,
                join.null_equality(),
            )?;
            Ok(Transformed::yes(Arc::new(merge) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &str {
        "joins_by_sorting"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What an operator below a nested-loop join is refused, in words that the join does not know: it would read its inner side again, which exchanges between
/// threads do not allow. The query starts anew instead.
#[derive(Debug)]
struct RefusalsEnd;

impl OnTheWay for RefusalsEnd {
    fn stream(&self, input: SendableRecordBatchStream, _: usize, _: &TaskContext) -> SendableRecordBatchStream {
        let schema = input.schema();
        Box::pin(RecordBatchStreamAdapter::new(schema, input.map_err(final_refusal)))
    }
}

/// The first plan of a query, whose nested-loop joins end where memory is refused.
pub(super) fn refusals_end(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else { return Ok(Transformed::no(node)) };
        let left = Through::over(join.left().clone(), Arc::new(RefusalsEnd));
        let right = join.right().clone();
        Ok(Transformed::yes(replace_children_if_necessary(node, vec![left, right])?))
    })
    .data()
}

/// True if a plan that spills must run on one thread: a nested-loop join reads its inner side a second time, which an exchange does not give twice, and
/// tells which of those rows had no partner by the rows of one thread.
pub(super) fn reads_again(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(node.is::<NestedLoopJoinExec>()))
}
