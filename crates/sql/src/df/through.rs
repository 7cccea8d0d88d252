//! An operator that gives the rows of its input, all of them and in their order, and does something on the way.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream, StatisticsArgs,
};

use crate::measure::Measure;

/// What is done on the way.
pub(super) trait OnTheWay: fmt::Debug + Send + Sync {
    /// What plans know of the rows.
    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        input.properties().clone()
    }

    /// Nothing is lost if the rows come in other partitions than when the plan was made.
    fn divides(&self) -> bool {
        true
    }

    /// What is told of the rows, if anything is.
    fn measure(&self) -> Option<&Arc<Measure>> {
        None
    }

    /// The rows of one partition.
    fn stream(&self, input: SendableRecordBatchStream, _: usize, _: &TaskContext) -> SendableRecordBatchStream {
        input
    }
}

/// The properties of `input` where something else is known of its columns.
pub(super) fn knowing(input: &dyn ExecutionPlan, columns: EquivalenceProperties) -> Arc<PlanProperties> {
    let known = input.properties();
    let properties = PlanProperties::new(columns, input.output_partitioning().clone(), known.emission_type, known.boundedness);
    Arc::new(properties.with_scheduling_type(known.scheduling_type))
}

/// Its input's rows.
#[derive(Debug)]
pub(super) struct Through {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    way: Arc<dyn OnTheWay>,
}

impl Through {
    pub const NAME: &'static str = "Through";

    pub fn divides(&self) -> bool {
        self.way.divides()
    }

    pub fn measure(&self) -> Option<&Arc<Measure>> {
        self.way.measure()
    }

    pub fn input(&self) -> &dyn ExecutionPlan {
        self.input.as_ref()
    }

    pub fn over(input: Arc<dyn ExecutionPlan>, way: Arc<dyn OnTheWay>) -> Arc<dyn ExecutionPlan> {
        let properties = way.properties(input.as_ref());
        Arc::new(Through { input, properties, way })
    }
}

impl DisplayAs for Through {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {:?}", Through::NAME, self.way)
    }
}

impl ExecutionPlan for Through {
    fn name(&self) -> &str {
        Through::NAME
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
        Ok(Through::over(children.remove(0), self.way.clone()))
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Through::over(children.remove(0), self.way.clone()))
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
        Ok(self.way.stream(self.input.execute(partition, context.clone())?, partition, &context))
    }
}
