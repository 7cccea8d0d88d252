//! UNION ALL in order. DataFusion's union gives its inputs' rows as separate partitions, merged as they come; serial execution gives the
//! left input's rows first, as MySQL does, and the same rows in the same order every time.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
    StatisticsArgs,
};
use futures::{StreamExt, TryStreamExt};

/// Replaces unions while plans run on one partition.
#[derive(Debug)]
pub(super) struct UnionInOrder;

impl PhysicalOptimizerRule for UnionInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if config.execution.target_partitions > 1 {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            Ok(match node.downcast_ref::<UnionExec>() {
                Some(union) => Transformed::yes(Arc::new(Append::new(union.inputs().clone(), union.schema())) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "union_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Its inputs' rows, one input after the other.
#[derive(Debug)]
pub(super) struct Append {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl Append {
    fn new(inputs: Vec<Arc<dyn ExecutionPlan>>, schema: SchemaRef) -> Append {
        let properties =
            PlanProperties::new(EquivalenceProperties::new(schema), Partitioning::UnknownPartitioning(1), EmissionType::Incremental, Boundedness::Bounded);
        Append { inputs, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Append {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Append")
    }
}

impl ExecutionPlan for Append {
    fn name(&self) -> &str {
        "Append"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>, _: ReplaceChildrenOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Append::new(children, self.schema())))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Append::new(children, self.schema())))
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None); self.inputs.len()]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut all = Statistics::new_unknown(&self.schema());
        all.num_rows = inputs.iter().map(|s| s.num_rows).reduce(|a, b| a.add(&b)).unwrap_or_default().to_inexact();
        Ok(Arc::new(all))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let sources: Vec<(Arc<dyn ExecutionPlan>, usize)> =
            self.inputs.iter().flat_map(|input| (0..input.output_partitioning().partition_count()).map(|p| (input.clone(), p))).collect();
        // An input starts when the one before it has ended.
        let streams = futures::stream::iter(sources).map(move |(input, partition)| input.execute(partition, context.clone()));
        let named = schema.clone();
        let batches = streams.try_flatten().and_then(move |batch| {
            let schema = named.clone();
            async move { under_schema(&batch, schema) }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// The batch under another schema of the same types; it may have rows and no columns, as under COUNT(*).
pub(super) fn under_schema(batch: &RecordBatch, schema: SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options)?)
}
