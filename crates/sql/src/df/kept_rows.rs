//! Rows that were read, and locked, before the query. Those that are too many for memory are read where they wait, batch by batch, by each who asks.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::datasource::TableType;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Expr as DfExpr;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream};
use highkey_types::ColumnType;

use super::context::Shared;
use super::repr::ColumnBuilder;
use crate::expr::row_bytes;
use crate::prepared::{KeptRows, OpenCursor};

/// The rows as a table.
#[derive(Debug)]
pub(super) struct KeptTable {
    shared: Arc<Shared>,
    rows: Arc<KeptRows>,
    schema: SchemaRef,
    types: Arc<[ColumnType]>,
}

impl KeptTable {
    /// `types`: those of the columns of `schema`.
    pub fn new(shared: Arc<Shared>, rows: Arc<KeptRows>, schema: SchemaRef, types: Vec<ColumnType>) -> KeptTable {
        KeptTable { shared, rows, schema, types: types.into() }
    }
}

#[async_trait]
impl TableProvider for KeptTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(&self, _: &dyn Session, projection: Option<&Vec<usize>>, _: &[DfExpr], _: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..self.types.len()).collect());
        let schema = Arc::new(self.schema.project(&columns)?);
        let properties =
            PlanProperties::new(EquivalenceProperties::new(schema), Partitioning::UnknownPartitioning(1), EmissionType::Incremental, Boundedness::Bounded)
                .with_scheduling_type(SchedulingType::Cooperative);
        let (shared, rows, types) = (self.shared.clone(), self.rows.clone(), self.types.clone());
        Ok(Arc::new(KeptRowsExec { shared, rows, types, columns: columns.into(), properties: Arc::new(properties) }))
    }
}

/// A reader of the rows.
#[derive(Debug)]
pub(super) struct KeptRowsExec {
    shared: Arc<Shared>,
    rows: Arc<KeptRows>,
    types: Arc<[ColumnType]>,
    /// Those that are read.
    columns: Arc<[usize]>,
    properties: Arc<PlanProperties>,
}

impl KeptRowsExec {
    pub const NAME: &'static str = "KeptRowsExec";

    pub fn count(&self) -> usize {
        self.rows.count()
    }
}

impl DisplayAs for KeptRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Rows fetched before execution")
    }
}

impl ExecutionPlan for KeptRowsExec {
    fn name(&self) -> &str {
        Self::NAME
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
        known.num_rows = Precision::Inexact(self.count());
        Ok(Arc::new(known))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let reader = Reader {
            shared: self.shared.clone(),
            rows: self.rows.read(),
            types: self.types.clone(),
            columns: self.columns.clone(),
            schema: schema.clone(),
            batch_rows: context.session_config().batch_size(),
        };
        let next = |mut reader: Reader| async move { Ok::<_, DataFusionError>(reader.next()?.map(|batch| (batch, reader))) };
        let batches = Box::pin(futures::stream::try_unfold(reader, next));
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, batches))))
    }
}

/// A batch ends behind so many bytes: what waits in a file need not be in memory.
const BATCH_BYTES: usize = 1 << 20;

struct Reader {
    shared: Arc<Shared>,
    rows: OpenCursor,
    types: Arc<[ColumnType]>,
    columns: Arc<[usize]>,
    schema: SchemaRef,
    batch_rows: usize,
}

impl Reader {
    /// The next batch; `None` at the end.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.shared.check_killed()?;
        let mut builders: Vec<ColumnBuilder> = self.columns.iter().map(|&column| ColumnBuilder::new(&self.types[column], self.batch_rows)).collect();
        let (mut count, mut bytes) = (0, 0);
        while count < self.batch_rows
            && bytes < BATCH_BYTES
            && let Some(row) = self.rows.next_row()?
        {
            bytes += row_bytes(&row);
            builders.iter_mut().zip(self.columns.iter()).for_each(|(builder, &column)| builder.push(&row[column]));
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?))
    }
}
