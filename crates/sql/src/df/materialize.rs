//! Common table expressions that are made once, however many read them.
//!
//! The rows are made when the first reader asks for one, by a task of its own: a reader that rests, because another one must come first, keeps nobody
//! waiting. They are kept until the query ends, in memory as long as there is some, then in a file.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, Statistics, internal_err};
use datafusion::datasource::TableType;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SpillFile, TaskContext};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream, SpillManager, execute_stream,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use highkey_table::Waits;
use highkey_types::ColumnType;
use tokio::sync::Mutex;

use super::build_side::estimated_rows;
use super::compact::tight;
use super::context::Shared;
use super::in_order::{depends_on_batches, in_batches_of};
use super::lower::schema;
use super::{Physical, on_threads};
use crate::plan::ExprType;

/// A common table expression of a query.
pub(super) struct MaterializedCte {
    shared: Arc<Shared>,
    id: usize,
    /// As EXPLAIN names it.
    title: String,
    schema: SchemaRef,
    /// Once it is planned.
    known: OnceLock<Known>,
    state: Mutex<State>,
}

/// What its plan tells of its rows.
struct Known {
    /// An estimate.
    rows: f64,
    /// See [`depends_on_batches`].
    by_batches: bool,
}

enum State {
    Lowered(Box<LogicalPlan>),
    Planned(Physical),
    /// Somebody has asked for rows.
    Making(Making),
}

/// All rows, once they are made; each reader waits for it.
type Making = futures::future::Shared<BoxFuture<'static, Made>>;
type Made = std::result::Result<Arc<Rows>, Arc<DataFusionError>>;

/// Rows that are kept.
struct Rows {
    batches: Vec<RecordBatch>,
    /// Instead, where they were too many for the memory.
    file: Option<(SpillManager, Arc<dyn SpillFile>)>,
    /// What the batches take.
    _memory: MemoryReservation,
}

impl MaterializedCte {
    /// `plan` gives columns of these names and types.
    pub fn new(shared: Arc<Shared>, id: usize, title: String, plan: LogicalPlan, names: &[String], types: &[ExprType]) -> MaterializedCte {
        let types: Vec<(ColumnType, bool)> = types.iter().map(|t| (t.ty.clone(), true)).collect();
        MaterializedCte { shared, id, title, schema: schema(names, &types), known: OnceLock::new(), state: Mutex::new(State::Lowered(Box::new(plan))) }
    }

    /// Plans it, unless that is done.
    async fn plan(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        if let State::Lowered(plan) = &*state {
            let planned = on_threads(&self.shared, plan, true).await?;
            let known = Known { rows: estimated_rows(&planned.physical), by_batches: depends_on_batches(&planned.physical)? };
            let _ = self.known.set(known);
            *state = State::Planned(planned);
        }
        Ok(())
    }

    /// Its rows; whoever asks first begins to make them.
    async fn rows(&self) -> Result<Arc<Rows>> {
        let making = {
            let mut state = self.state.lock().await;
            let making = match &*state {
                State::Lowered(_) => return internal_err!("a common table expression is read before it is planned"),
                State::Planned(plan) => self.begin(plan.physical.clone(), plan.context.clone()),
                State::Making(making) => making.clone(),
            };
            // The plan is the task's: with its end what joins have built is dropped.
            *state = State::Making(making.clone());
            making
        };
        making.await.map_err(DataFusionError::Shared)
    }

    fn begin(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Making {
        let rows = make(plan, context, self.schema.clone(), self.shared.clone());
        // The statement's work, and its waits, are done there. While processor time is measured, every task that is begun counts its own.
        let task = match Waits::current().filter(|waits| !waits.measures_cpu()) {
            Some(waits) => SpawnedTask::spawn(async move { waits.assist(rows).await }),
            None => SpawnedTask::spawn(rows),
        };
        let made = async move {
            match task.join().await {
                Ok(Ok(rows)) => Ok(Arc::new(rows)),
                Ok(Err(error)) => Err(Arc::new(error)),
                Err(_) => Err(Arc::new(DataFusionError::Internal("the query panicked".into()))),
            }
        };
        made.boxed().shared()
    }

    /// Reads all rows; `projection`: the columns that are wanted.
    async fn read(&self, projection: Option<Vec<usize>>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows = self.rows().await?;
        let shared = self.shared.clone();
        let wanted = move |batch: &RecordBatch| -> Result<RecordBatch> {
            shared.check_killed()?;
            match &projection {
                Some(columns) => Ok(batch.project(columns)?),
                None => Ok(batch.clone()),
            }
        };
        if let Some((files, file)) = &rows.file {
            let batches = files.read_spill_as_stream(file.clone(), None)?;
            return Ok(batches.map(move |batch| wanted(&batch?)).boxed());
        }
        let batches = (0..rows.batches.len()).map(move |at| wanted(&rows.batches[at]));
        Ok(futures::stream::iter(batches).boxed())
    }
}

impl fmt::Debug for MaterializedCte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)
    }
}

/// Runs the plan and keeps what it gives.
async fn make(plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>, schema: SchemaRef, shared: Arc<Shared>) -> Result<Rows> {
    let memory = MemoryConsumer::new("rows of a common table expression").with_can_spill(true).register(context.memory_pool());
    // Joins and sorts of these rows may show how they are cut into batches: the same way for any number of threads.
    let given = in_batches_of(context.session_config().batch_size(), schema.clone(), execute_stream(plan, context.clone())?);
    let mut given = pin!(given);
    let mut batches: Vec<RecordBatch> = Vec::new();
    let mut file = None;
    while let Some(batch) = given.next().await {
        shared.check_killed()?;
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), batch.columns().iter().map(tight).collect(), &options)?;
        if file.is_none() && memory.try_grow(batch.get_array_memory_size()).is_err() {
            let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
            let files = SpillManager::new(context.runtime_env(), metrics, schema.clone());
            let mut begun = files.create_in_progress_file("rows of a common table expression")?;
            for batch in batches.drain(..) {
                begun.append_batch(&batch)?;
            }
            memory.free();
            file = Some((files, begun));
        }
        match &mut file {
            Some((_, file)) => {
                file.append_batch(&batch)?;
            }
            None => batches.push(batch),
        }
    }
    let file = match file {
        Some((files, mut file)) => file.finish()?.map(|file| (files, file)),
        None => None,
    };
    Ok(Rows { batches, file, _memory: memory })
}

/// The rows as a table, under an alias.
#[derive(Debug)]
pub(super) struct CteTable {
    cte: Arc<MaterializedCte>,
    alias: String,
}

impl CteTable {
    pub fn new(cte: Arc<MaterializedCte>, alias: &str) -> CteTable {
        CteTable { cte, alias: alias.to_owned() }
    }
}

#[async_trait]
impl TableProvider for CteTable {
    fn schema(&self) -> SchemaRef {
        self.cte.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(&self, _: &dyn Session, projection: Option<&Vec<usize>>, _: &[DfExpr], _: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        self.cte.plan().await?;
        let schema = match projection {
            Some(columns) => Arc::new(self.cte.schema.project(columns)?),
            None => self.cte.schema.clone(),
        };
        let properties =
            PlanProperties::new(EquivalenceProperties::new(schema), Partitioning::UnknownPartitioning(1), EmissionType::Incremental, Boundedness::Bounded)
                .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Arc::new(CteExec { cte: self.cte.clone(), alias: self.alias.clone(), projection: projection.cloned(), properties: Arc::new(properties) }))
    }
}

/// A reader of the rows.
#[derive(Debug)]
pub(super) struct CteExec {
    cte: Arc<MaterializedCte>,
    alias: String,
    projection: Option<Vec<usize>>,
    properties: Arc<PlanProperties>,
}

impl CteExec {
    /// The number of the common table expression.
    pub fn id(&self) -> usize {
        self.cte.id
    }

    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// As EXPLAIN names what makes the rows.
    pub fn title(&self) -> &str {
        &self.cte.title
    }

    /// About how many rows there are.
    pub fn row_estimate(&self) -> f64 {
        self.cte.known.get().map_or(1.0, |known| known.rows)
    }

    /// As [`depends_on_batches`], of what makes the rows.
    pub fn depends_on_batches(&self) -> bool {
        self.cte.known.get().is_some_and(|known| known.by_batches)
    }

    /// The plan that makes the rows; `None` once they are being made.
    pub fn plan(&self) -> Option<Arc<dyn ExecutionPlan>> {
        match &*self.cte.state.try_lock().ok()? {
            State::Planned(plan) => Some(plan.physical.clone()),
            State::Lowered(_) | State::Making(_) => None,
        }
    }
}

impl DisplayAs for CteExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Table scan on {}", self.alias)
    }
}

impl ExecutionPlan for CteExec {
    fn name(&self) -> &str {
        "CteExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>, _: ReplaceChildrenOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut known = Statistics::new_unknown(&self.schema());
        known.num_rows = Precision::Inexact(self.row_estimate() as usize);
        Ok(Arc::new(known))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (cte, projection) = (self.cte.clone(), self.projection.clone());
        let rows = futures::stream::once(async move { cte.read(projection).await }).try_flatten().boxed();
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(self.schema(), rows))))
    }
}

/// The plan, and those of what it reads that is to be made, each once.
pub(super) fn with_ctes(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
    let mut plans = vec![plan.clone()];
    let mut at = 0;
    while let Some(plan) = plans.get(at).cloned() {
        plan.apply(|node| {
            if let Some(below) = node.downcast_ref::<CteExec>().and_then(CteExec::plan)
                && !plans.iter().any(|known| Arc::ptr_eq(known, &below))
            {
                plans.push(below);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        at += 1;
    }
    Ok(plans)
}
