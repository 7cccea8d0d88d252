//! Rows of one partition handed out to several workers, some at a time, to whoever asks: few rows that a join makes many of.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements, PlanProperties,
    ReplaceChildrenOptions, SendableRecordBatchStream, StatisticsArgs, replace_children_if_necessary,
};
use futures::StreamExt;
use parking_lot::Mutex;

use super::build_side::estimated_rows;

/// Pairs of rows from which on a join of a table that one worker reads is worth handing its rows out.
const PAIRS: f64 = 1_000_000.0;
/// Parts that a batch is cut into for each worker: some take longer than others.
const PARTS_FOR_EACH: usize = 4;

/// Hands out what one worker would read, where a join looks for partners of it that may be many.
#[derive(Debug)]
pub(super) struct DealProbes;

impl PhysicalOptimizerRule for DealProbes {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let workers = config.execution.target_partitions;
        if workers == 1 {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            let collects = node.downcast_ref::<HashJoinExec>().is_some_and(|join| *join.partition_mode() == PartitionMode::CollectLeft && !join.null_aware);
            if !collects && !node.is::<NestedLoopJoinExec>() && !node.is::<CrossJoinExec>() {
                return Ok(Transformed::no(node));
            }
            let [built, probe] = node.children()[..] else { return Ok(Transformed::no(node)) };
            if probe.output_partitioning().partition_count() > 1 || estimated_rows(built) * estimated_rows(probe) < PAIRS {
                return Ok(Transformed::no(node));
            }
            let dealt = Deal::over(probe.clone(), workers);
            let children = vec![built.clone(), dealt];
            Ok(Transformed::yes(replace_children_if_necessary(node.clone(), children)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "deal_probes"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows of its input's only partition, in several.
#[derive(Debug)]
struct Deal {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    /// The inputs of its executions, and how often each partition was executed: its n-th time is part of the n-th execution.
    executions: Mutex<(Vec<Arc<tokio::sync::Mutex<Rest>>>, Vec<usize>)>,
}

/// What has not been handed out.
struct Rest {
    input: SendableRecordBatchStream,
    batch: Option<RecordBatch>,
    /// Rows of the batch to hand out at a time.
    rows: usize,
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rest")
    }
}

impl Rest {
    async fn next(&mut self, workers: usize) -> Option<Result<RecordBatch>> {
        if self.batch.is_none() {
            match self.input.next().await? {
                Ok(batch) => {
                    self.rows = batch.num_rows().div_ceil(workers * PARTS_FOR_EACH).max(1);
                    self.batch = Some(batch);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        let batch = self.batch.take()?;
        let rows = self.rows.min(batch.num_rows());
        if rows < batch.num_rows() {
            self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        Some(Ok(batch.slice(0, rows)))
    }
}

impl Deal {
    fn over(input: Arc<dyn ExecutionPlan>, workers: usize) -> Arc<dyn ExecutionPlan> {
        let mut known: EquivalenceProperties = input.equivalence_properties().clone();
        known.clear_orderings();
        let properties = PlanProperties::new(known, Partitioning::UnknownPartitioning(workers), EmissionType::Incremental, Boundedness::Bounded);
        Arc::new(Deal { input, properties: Arc::new(properties), executions: Mutex::new((Vec::new(), vec![0; workers])) })
    }

    fn workers(&self) -> usize {
        self.properties.output_partitioning().partition_count()
    }
}

impl DisplayAs for Deal {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Rows for {} workers", self.workers())
    }
}

impl ExecutionPlan for Deal {
    fn name(&self) -> &str {
        "Deal"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// What comes in several partitions later, when they are planned, is made one again.
    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>, _: ReplaceChildrenOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Deal::over(children.remove(0), self.workers()))
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Deal::over(children.remove(0), self.workers()))
    }

    fn gather_filters_for_pushdown(&self, _: FilterPushdownPhase, filters: Vec<Arc<dyn PhysicalExpr>>, _: &ConfigOptions) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(inputs[0].clone())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let workers = self.workers();
        let rest = {
            let (rests, executed) = &mut *self.executions.lock();
            let execution = executed[partition];
            executed[partition] += 1;
            if execution == rests.len() {
                let input = self.input.execute(0, context)?;
                rests.push(Arc::new(tokio::sync::Mutex::new(Rest { input, batch: None, rows: 0 })));
            }
            rests[execution].clone()
        };
        let batches = futures::stream::unfold(rest, move |rest| async move {
            let next = rest.lock().await.next(workers).await?;
            Some((next, rest))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
