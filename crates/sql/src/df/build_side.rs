//! Which side of a join is built. DataFusion builds the left side of a semi join unless statistics of both sides tell otherwise, and has none
//! above joins and groups; building the six million rows of an outer query to ask a subquery for fifty is what it costs.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::{ExecutionPlan, StatisticsArgs};
use datafusion::physical_plan::statistics::StatisticsContext;

use super::kept_rows::KeptRowsExec;
use super::materialize::CteExec;
use super::parameters::with_constants;
use super::scan::ScanExec;

/// Exchanges the sides of joins whose left side has more rows, by estimates of ours, after DataFusion has chosen by what it knows, and decides
/// whether all workers ask one table or each has a share of both sides.
#[derive(Debug)]
pub(super) struct BuildSmallerSide;

/// A side must promise so many times fewer rows to be built instead: the estimates are rough.
const FEWER: f64 = 1.5;
/// Nanoseconds that one worker takes to put a row into a join's table, and to hand a row to the worker whose share it is in.
const BUILT_ROW: f64 = 30.0;
const HANDED_ROW: f64 = 15.0;

impl PhysicalOptimizerRule for BuildSmallerSide {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let workers = config.execution.target_partitions;
        plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
            if join.null_aware {
                return Ok(Transformed::no(node));
            }
            let (left, right) = (rows(join.left()).estimate, rows(join.right()).estimate);
            let swaps = join.join_type().supports_swap() && right * FEWER <= left;
            let (built, asking) = if swaps { (right, left) } else { (left, right) };
            let mode = if workers == 1 || is_built_together(built, asking, workers) { PartitionMode::CollectLeft } else { PartitionMode::Partitioned };
            Ok(if swaps {
                Transformed::yes(join.swap_inputs(mode)?)
            } else if *join.partition_mode() != mode {
                Transformed::yes(Arc::new(join.builder().with_partition_mode(mode).build()?))
            } else {
                Transformed::no(node)
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "build_smaller_side"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// True if one worker should build the whole table, which costs the others their time, rather than all share both sides, which costs handing each row over.
fn is_built_together(built: f64, asking: f64, workers: usize) -> bool {
    let together = built * BUILT_ROW;
    let shared = (built * (BUILT_ROW + HANDED_ROW) + asking * HANDED_ROW) / workers as f64;
    together <= shared
}

#[derive(Clone, Copy)]
struct Rows {
    estimate: f64,
    /// Without the conditions on them, and the ranges that these make.
    whole: f64,
}

/// A condition keeps a fifth, as DataFusion has it.
const KEPT: f64 = 0.2;

/// About how many rows the plan gives.
pub(super) fn estimated_rows(plan: &Arc<dyn ExecutionPlan>) -> f64 {
    rows(plan).estimate
}

fn rows(plan: &Arc<dyn ExecutionPlan>) -> Rows {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let estimate = scan.row_estimate() as f64 * KEPT.powi(scan.conditions().len() as i32);
        return Rows { estimate: estimate.max(1.0), whole: scan.table_rows() as f64 };
    }
    if let Some(cte) = plan.downcast_ref::<CteExec>() {
        return Rows { estimate: cte.row_estimate(), whole: cte.row_estimate() };
    }
    if let Some(kept) = plan.downcast_ref::<KeptRowsExec>() {
        return Rows { estimate: kept.count() as f64, whole: kept.count() as f64 };
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let (left, right) = (rows(join.left()), rows(join.right()));
        // Each row of the larger table has one partner in the smaller one.
        let inner = (left.estimate * right.estimate / left.whole.min(right.whole).max(1.0)).max(1.0);
        let whole = left.whole.max(right.whole);
        let estimate = match join.join_type() {
            JoinType::Inner => inner,
            JoinType::Left | JoinType::LeftMark => left.estimate.max(inner),
            JoinType::Right | JoinType::RightMark => right.estimate.max(inner),
            JoinType::Full => left.estimate + right.estimate,
            JoinType::LeftSemi | JoinType::LeftAnti => left.estimate.min(inner.max(left.estimate * KEPT)),
            JoinType::RightSemi | JoinType::RightAnti => right.estimate.min(inner.max(right.estimate * KEPT)),
        };
        return Rows { estimate, whole };
    }
    let inputs: Vec<Rows> = plan.children().into_iter().map(rows).collect();
    let sum = Rows { estimate: inputs.iter().map(|r| r.estimate).sum::<f64>().max(1.0), whole: inputs.iter().map(|r| r.whole).sum::<f64>().max(1.0) };
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        // DataFusion knows the share of a condition on a column with a histogram, if it sees the constants.
        let statistics = |plan: &dyn ExecutionPlan| StatisticsContext::new().compute(plan, &StatisticsArgs::new());
        let known = match with_constants(filter.predicate().clone()) {
            Ok(closed) if closed.transformed => FilterExec::try_new(closed.data, filter.input().clone()).and_then(|filter| statistics(&filter)),
            _ => statistics(plan.as_ref()),
        };
        if let Some(known) = known.ok().and_then(|statistics| statistics.num_rows.get_value().copied()) {
            return Rows { estimate: (known as f64).max(1.0), ..sum };
        }
        return Rows { estimate: (sum.estimate * KEPT).max(1.0), ..sum };
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        if aggregate.group_expr().expr().is_empty() {
            return Rows { estimate: 1.0, whole: 1.0 };
        }
        // Groups of some rows each; a final aggregation has as many as its partial ones gave.
        return match aggregate.mode().input_mode() {
            AggregateInputMode::Raw => Rows { estimate: sum.estimate.powf(0.9), whole: sum.whole.powf(0.9) },
            AggregateInputMode::Partial => sum,
        };
    }
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>()
        && let Some(fetch) = limit.fetch()
    {
        return Rows { estimate: sum.estimate.min(fetch as f64), ..sum };
    }
    sum
}
