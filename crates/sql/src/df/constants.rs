//! What DataFusion believes of outer joins and unions, wrongly. Its joins keep what is known of both inputs, also that a column of the side that may
//! be filled with NULLs is constant or equals another one (`EquivalenceGroup::join`, DataFusion 55), and its unions that a column which is constant in each
//! input, another value in each, is constant; a sort by such a column was then left out.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties, replace_children_if_necessary};

use super::through::{OnTheWay, Through, knowing};

/// Puts a [`NothingKnown`] below each outer join, on the sides that may be filled with NULLs, below unions, below joins and groupings over constants, and below windows: some
/// constants are found while rules run, and lost again when operators below take over a projection.
#[derive(Debug)]
pub(super) struct ForgetConstants;

impl PhysicalOptimizerRule for ForgetConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let groups = node.downcast_ref::<AggregateExec>().is_some_and(|grouping| !grouping.group_expr().expr().is_empty());
            if is_window(&node) && !over_window(node.children()[0]) || groups && gives_constants(node.children()[0]) {
                let inputs = vec![Through::over(node.children()[0].clone(), Arc::new(NothingKnown))];
                return Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?));
            }
            let kind = node.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
            let kind = kind.or(node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type()));
            let sides = match kind {
                Some(JoinType::Left) => [false, true],
                Some(JoinType::Right) => [true, false],
                Some(JoinType::Full) => [true, true],
                Some(_) => [false, false],
                None if node.is::<UnionExec>() => [true, true],
                None => return Ok(Transformed::no(node)),
            };
            let is_join = kind.is_some();
            // A union has any number of inputs.
            let sides = sides.into_iter().chain(std::iter::repeat(!is_join));
            let forget = |(input, forget): (&Arc<dyn ExecutionPlan>, bool)| match forget || is_join && gives_constants(input) {
                true => Through::over(input.clone(), Arc::new(NothingKnown)),
                false => input.clone(),
            };
            let inputs = node.children().into_iter().zip(sides).map(forget).collect();
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "forget_constants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>()
}

/// Its rows come sorted out of another window.
fn over_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    is_window(plan) || plan.is::<ProjectionExec>() && over_window(plan.children()[0])
}

/// Some columns of its rows are known to be constant. A join that leaves out columns forgets which are, when nothing sorts by them any more.
fn gives_constants(plan: &Arc<dyn ExecutionPlan>) -> bool {
    !plan.equivalence_properties().constants().is_empty()
}

/// Of the columns of its rows nothing is known.
#[derive(Debug)]
pub(super) struct NothingKnown;

impl OnTheWay for NothingKnown {
    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        knowing(input, EquivalenceProperties::new(input.schema()))
    }
}
