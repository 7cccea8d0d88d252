//! What DataFusion believes of outer joins and unions, wrongly. Its joins keep what is known of both inputs, also that a column of the side that may
//! be filled with NULLs is constant or equals another one (`EquivalenceGroup::join`, DataFusion 55), and its unions that a column which is constant in each
//! input, another value in each, is constant; a sort by such a column was then left out.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, Statistics};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
    StatisticsArgs, replace_children_if_necessary,
};

/// Puts a [`NothingKnown`] below each outer join, on the sides that may be filled with NULLs, and below unions.
#[derive(Debug)]
pub(super) struct ForgetConstants;

impl PhysicalOptimizerRule for ForgetConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if node.is::<UnionExec>() {
                let inputs = node.children().into_iter().map(|input| NothingKnown::of(input.clone())).collect();
                return Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?));
            }
            let kind = node.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
            let Some(kind) = kind.or(node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type())) else { return Ok(Transformed::no(node)) };
            let (left, right) = match kind {
                JoinType::Left => (false, true),
                JoinType::Right => (true, false),
                JoinType::Full => (true, true),
                _ => return Ok(Transformed::no(node)),
            };
            let inputs = node.children().into_iter().zip([left, right]);
            let inputs = inputs.map(|(input, forget)| if forget { NothingKnown::of(input.clone()) } else { input.clone() }).collect();
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

/// Its input's rows, of whose columns nothing is known.
#[derive(Debug)]
pub(super) struct NothingKnown {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl NothingKnown {
    fn of(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let known = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            known.emission_type,
            known.boundedness,
        )
        .with_scheduling_type(known.scheduling_type);
        Arc::new(NothingKnown { input, properties: Arc::new(properties) })
    }
}

impl DisplayAs for NothingKnown {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("NothingKnown")
    }
}

impl ExecutionPlan for NothingKnown {
    fn name(&self) -> &str {
        "NothingKnown"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>, _: ReplaceChildrenOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(NothingKnown::of(children.remove(0)))
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(NothingKnown::of(children.remove(0)))
    }

    fn gather_filters_for_pushdown(&self, _: FilterPushdownPhase, filters: Vec<Arc<dyn PhysicalExpr>>, _: &ConfigOptions) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(inputs[0].clone())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
