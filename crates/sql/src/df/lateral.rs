//! Tables of FROM that are made anew for each row of those before them: LATERAL derived tables, and JSON_TABLE, also of a document that depends on no row.
//!
//! The rows before are a plan of their own, which may run on several threads. What is made for them is made on one, row after row. A query is planned for
//! each row, as one is that runs for a row elsewhere (`subquery`); a document's rows are made here.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics, internal_err};
use datafusion::datasource::TableType;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::logical_plan::Projection;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType, reset_plan_states};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream, execute_stream,
};
use futures::StreamExt;
use highkey_types::{ColumnType, MySqlError, Value};

use super::context::{Shared, killed_error};
use super::error::user;
use super::lower::Lowerer;
use super::on_threads;
use super::repr::{ColumnBuilder, ColumnReader, data_type};
use crate::expr::eval_condition;
use crate::functions::json_table_rows;
use crate::plan::{Expr, JsonRows, Rel};

/// What is made for a row.
#[derive(Debug, Clone)]
pub(super) enum Made {
    /// The rows of the document in this column, for which the condition over the row and its columns holds.
    Json { rows: Arc<JsonRows>, condition: Option<Expr>, document: usize },
    /// Those of a query, which reads these columns of the row.
    Query { plan: Arc<Rel>, reads: Vec<usize> },
}

/// The rows before, each beside what is made for it.
#[derive(Debug)]
pub(super) struct ApplyTable {
    pub lowerer: Lowerer,
    /// The rows before.
    pub input: LogicalPlan,
    pub input_names: Vec<String>,
    pub input_types: Vec<ColumnType>,
    /// The first columns of the input are the first of the output.
    pub width: usize,
    pub made: Made,
    /// Of the columns that are made.
    pub made_types: Vec<ColumnType>,
    /// Rows that nothing is made for are kept.
    pub outer: bool,
    /// The tables that the columns of the output are of.
    pub aliases: Vec<String>,
    pub schema: SchemaRef,
}

#[async_trait]
impl TableProvider for ApplyTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(&self, _: &dyn Session, projection: Option<&Vec<usize>>, _: &[DfExpr], _: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        let shared = &self.lowerer.shared;
        let outputs: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let needed = self.needed(&outputs);
        let exprs = needed.iter().map(|column| Lowerer::named(self.input_names[*column].clone())).collect();
        let input = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(self.input.clone()))?);
        // The rounds of a recursion execute it again.
        let once = self.lowerer.recursions.is_empty();
        let input = on_threads(shared, &input, once).await?.physical;
        let schema = Arc::new(self.schema.project(&outputs)?);
        let properties =
            PlanProperties::new(EquivalenceProperties::new(schema.clone()), Partitioning::UnknownPartitioning(1), EmissionType::Incremental, Boundedness::Bounded)
                .with_scheduling_type(SchedulingType::Cooperative);
        let apply = Apply {
            lowerer: self.lowerer.clone(),
            input,
            columns: (0..self.input_names.len()).map(|column| needed.iter().position(|n| *n == column)).collect(),
            input_types: self.input_types.clone(),
            width: self.width,
            made: self.made.clone(),
            made_types: self.made_types.clone(),
            outer: self.outer,
            outputs,
            schema,
        };
        let aliases = apply.outputs.iter().map(|output| self.aliases[*output].clone()).collect();
        Ok(Arc::new(ApplyExec { apply, aliases, properties: Arc::new(properties) }))
    }
}

impl ApplyTable {
    /// The columns of the input that somebody reads, ascending.
    fn needed(&self, outputs: &[usize]) -> Vec<usize> {
        let mut needed: Vec<usize> = outputs.iter().copied().filter(|output| *output < self.width).collect();
        match &self.made {
            Made::Json { condition, document, .. } => {
                needed.push(*document);
                needed.extend(condition.iter().flat_map(Expr::columns).filter(|column| *column < self.width));
            }
            Made::Query { reads, .. } => needed.extend(reads),
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }
}

/// Makes rows for rows.
#[derive(Debug)]
pub(super) struct ApplyExec {
    apply: Apply,
    /// The tables that its columns are of.
    aliases: Vec<String>,
    properties: Arc<PlanProperties>,
}

impl ApplyExec {
    /// What gives the rows that others are made for; `None` if it is nothing but one row.
    pub fn input(&self) -> Option<&Arc<dyn ExecutionPlan>> {
        (self.apply.width > 0).then_some(&self.apply.input)
    }

    /// What is made, as EXPLAIN says it.
    pub fn title(&self) -> &'static str {
        match self.apply.made {
            Made::Json { .. } => "Materialize table function",
            Made::Query { .. } => "Materialize for each row",
        }
    }

    /// The table that each of its columns is of.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }
}

impl DisplayAs for ApplyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match (self.input(), self.apply.outer) {
            (None, _) => self.title(),
            (Some(_), false) => "Nested loop inner join",
            (Some(_), true) => "Nested loop left join",
        })
    }
}

impl ExecutionPlan for ApplyExec {
    fn name(&self) -> &str {
        "ApplyExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    // The plan below has been made ready already.
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
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        // The rounds of a recursion execute it again.
        let input = execute_stream(reset_plan_states(self.apply.input.clone())?, context.clone())?;
        let running = Running {
            attempt: self.apply.lowerer.shared.attempt(),
            batch_rows: context.session_config().batch_size(),
            enough: 1,
            apply: self.apply.clone(),
            input,
            batch: None,
            row: 0,
            made: None,
            has_made: false,
            waiting: Vec::new(),
            waiting_rows: 0,
            ready: VecDeque::new(),
            memory: MemoryConsumer::new("rows of a document").register(context.memory_pool()),
        };
        let next = |mut running: Running| async move {
            let batch = running.next().await?;
            // Lets go of the thread. `cooperative` takes units of the task's budget: many of these above each other would have all of it, and ask for no row.
            tokio::task::yield_now().await;
            Ok::<_, DataFusionError>(batch.map(|batch| (batch, running)))
        };
        let rows = futures::stream::try_unfold(running, next).boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

#[derive(Debug, Clone)]
struct Apply {
    lowerer: Lowerer,
    input: Arc<dyn ExecutionPlan>,
    /// Where a column of the input is in its batches.
    columns: Vec<Option<usize>>,
    input_types: Vec<ColumnType>,
    width: usize,
    made: Made,
    made_types: Vec<ColumnType>,
    outer: bool,
    outputs: Vec<usize>,
    schema: SchemaRef,
}

struct Running {
    apply: Apply,
    /// At the query.
    attempt: usize,
    batch_rows: usize,
    /// So many rows make the next batch: few at first, as whoever reads them may want no more.
    enough: usize,
    input: SendableRecordBatchStream,
    /// The rows that others are being made for.
    batch: Option<RecordBatch>,
    /// The next of them, or the one that `made` is for.
    row: usize,
    made: Option<SendableRecordBatchStream>,
    /// It has given rows.
    has_made: bool,
    /// Output that is too little for a batch.
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    /// Output of a document that has more rows than a batch, with the bytes of what was made.
    ready: VecDeque<(RecordBatch, usize)>,
    /// What these bytes take.
    memory: MemoryReservation,
}

impl Running {
    fn shared(&self) -> &Arc<Shared> {
        &self.apply.lowerer.shared
    }

    /// The next output; `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.shared().check_killed()?;
            if let Some((batch, bytes)) = self.ready.pop_front() {
                self.memory.shrink(bytes);
                return Ok(Some(batch));
            }
            if self.waiting_rows >= self.enough {
                return self.take_waiting().map(Some);
            }
            if let Some(made) = &mut self.made {
                match made.next().await.transpose()? {
                    Some(rows) => self.add(&rows)?,
                    None => self.end_row()?,
                }
                continue;
            }
            let Some(batch) = self.batch.clone() else {
                match self.input.next().await.transpose()? {
                    Some(batch) => (self.batch, self.row) = (Some(batch), 0),
                    None if self.waiting.is_empty() => return Ok(None),
                    None => return self.take_waiting().map(Some),
                }
                continue;
            };
            if self.row >= batch.num_rows() {
                self.batch = None;
                continue;
            }
            match self.apply.made.clone() {
                Made::Json { rows, condition, document } => {
                    self.document_rows(&batch, &rows, condition.as_ref(), document)?;
                    self.enough = self.batch_rows.min(self.enough * 2);
                }
                Made::Query { plan, reads } => {
                    self.made = Some(self.apply.begin(&batch, self.row, &plan, &reads).await?);
                    self.has_made = false;
                }
            }
        }
    }

    fn take_waiting(&mut self) -> Result<RecordBatch> {
        self.waiting_rows = 0;
        self.enough = self.batch_rows.min(self.enough * 2);
        let waiting = std::mem::take(&mut self.waiting);
        Ok(concat_batches(&self.apply.schema, &waiting)?)
    }

    /// Rows that were made for the present one.
    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let Some(batch) = &self.batch else { return Ok(()) };
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let repeated = UInt64Array::from(vec![self.row as u64; rows.num_rows()]);
        let output = self.apply.output(batch, &repeated, rows.columns())?;
        self.has_made = true;
        self.waiting_rows += output.num_rows();
        self.waiting.push(output);
        Ok(())
    }

    /// All rows were made for the present one.
    fn end_row(&mut self) -> Result<()> {
        self.made = None;
        if let Some(batch) = &self.batch
            && self.apply.outer
            && !self.has_made
        {
            let nulls: Vec<ArrayRef> = self.apply.made_types.iter().map(|ty| new_null_array(&data_type(ty), 1)).collect();
            let output = self.apply.output(batch, &UInt64Array::from(vec![self.row as u64]), &nulls)?;
            self.waiting_rows += 1;
            self.waiting.push(output);
        }
        self.row += 1;
        Ok(())
    }

    /// The rows of documents from the present one on, until they are enough or there are no more rows in this batch.
    fn document_rows(&mut self, batch: &RecordBatch, rows: &JsonRows, condition: Option<&Expr>, document: usize) -> Result<()> {
        let apply = &self.apply;
        let read: Vec<usize> = condition.map(Expr::columns).unwrap_or_default().into_iter().filter(|column| *column < apply.width).collect();
        let mut made = Output::new(apply, batch);
        let mut row = self.row;
        let shared = self.shared().clone();
        let (enough, batch_rows, memory) = (self.enough, self.batch_rows, &self.memory);
        let mut given = 0_usize;
        let mut interrupted = None;
        let outcome = shared.evaluate(self.attempt, |cx| -> std::result::Result<(), MySqlError> {
            while row < batch.num_rows() && made.rows() < enough {
                let mut both = vec![Value::Null; apply.width + apply.made_types.len()];
                for &column in &read {
                    both[column] = apply.value(batch, column, row);
                }
                let before = made.rows();
                json_table_rows(rows, apply.made_types.len(), &apply.value(batch, document, row), cx, &mut |values, cx| {
                    // A document may have many.
                    given += 1;
                    if given.is_multiple_of(batch_rows) {
                        interrupted = shared.check_killed().and_then(|()| made.cut(memory)).err();
                    }
                    if interrupted.is_some() {
                        return Err(killed_error());
                    }
                    if let Some(condition) = condition {
                        both[apply.width..].clone_from_slice(values);
                        if !eval_condition(condition, &both, cx)? {
                            return Ok(());
                        }
                    }
                    made.push(row, values);
                    Ok(())
                })?;
                if apply.outer && made.rows() == before {
                    made.push_nulls(row);
                }
                row += 1;
            }
            Ok(())
        });
        if let Some(error) = interrupted {
            return Err(error);
        }
        outcome.map_err(user)?;
        made.cut(memory)?;
        let ready = made.batches;
        self.ready.extend(ready);
        self.row = row;
        Ok(())
    }
}

/// Rows of documents, in batches.
struct Output<'a> {
    apply: &'a Apply,
    /// The rows that they are made for.
    batch: &'a RecordBatch,
    batches: VecDeque<(RecordBatch, usize)>,
    /// How many rows are in these.
    in_batches: usize,
    /// For which of the rows the following ones are made.
    repeated: Vec<u64>,
    builders: Vec<ColumnBuilder>,
}

impl<'a> Output<'a> {
    fn new(apply: &'a Apply, batch: &'a RecordBatch) -> Output<'a> {
        let builders = apply.made_types.iter().map(|ty| ColumnBuilder::new(ty, 0)).collect();
        Output { apply, batch, batches: VecDeque::new(), in_batches: 0, repeated: Vec::new(), builders }
    }

    fn rows(&self) -> usize {
        self.in_batches + self.repeated.len()
    }

    fn push(&mut self, row: usize, values: &[Value]) {
        self.repeated.push(row as u64);
        self.builders.iter_mut().zip(values).for_each(|(builder, value)| builder.push(value));
    }

    fn push_nulls(&mut self, row: usize) {
        self.repeated.push(row as u64);
        self.builders.iter_mut().for_each(ColumnBuilder::push_null);
    }

    /// Makes a batch of the rows that are in none. An error if there is no memory for them.
    fn cut(&mut self, memory: &MemoryReservation) -> Result<()> {
        if self.repeated.is_empty() {
            return Ok(());
        }
        let made: Vec<ArrayRef> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let bytes: usize = made.iter().map(|column| column.get_array_memory_size()).sum();
        memory.try_grow(bytes)?;
        self.in_batches += self.repeated.len();
        let repeated = UInt64Array::from(std::mem::take(&mut self.repeated));
        self.batches.push_back((self.apply.output(self.batch, &repeated, &made)?, bytes));
        Ok(())
    }
}

impl Apply {
    /// Starts the query for a row.
    async fn begin(&self, batch: &RecordBatch, row: usize, plan: &Rel, reads: &[usize]) -> Result<SendableRecordBatchStream> {
        let mut enclosing = vec![Value::Null; reads.last().map_or(0, |last| last + 1)];
        for &column in reads {
            enclosing[column] = self.value(batch, column, row);
        }
        let mut lowerer = self.lowerer.clone();
        let mut outer = (*lowerer.outer).clone();
        outer.push(Arc::new(enclosing));
        lowerer.outer = Arc::new(outer);
        let lowered = lowerer.rel(plan, &[])?;
        let names: Vec<String> = plan.fields.iter().map(|f| lowerer.shared.name(&f.name)).collect();
        let logical = lowerer.renamed(lowered, &names)?;
        // What runs for each row runs on one thread.
        let state = lowerer.shared.serial_state(&logical);
        execute_stream(state.create_physical_plan(&logical).await?, lowerer.shared.task_context(&state))
    }

    /// A value of the input; NULL for a column that is not read.
    fn value(&self, batch: &RecordBatch, column: usize, row: usize) -> Value {
        self.columns[column].map_or(Value::Null, |at| ColumnReader::new(batch.column(at).as_ref(), &self.input_types[column]).get(row))
    }

    /// These rows of the input beside what was made for them.
    fn output(&self, batch: &RecordBatch, repeated: &UInt64Array, made: &[ArrayRef]) -> Result<RecordBatch> {
        let column = |output: &usize| -> Result<ArrayRef> {
            match output.checked_sub(self.width) {
                Some(column) => Ok(made[column].clone()),
                None => match self.columns[*output] {
                    Some(at) => Ok(take(batch.column(at), repeated, None)?),
                    None => internal_err!("a column that is read is needed"),
                },
            }
        };
        let columns = self.outputs.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(repeated.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}
