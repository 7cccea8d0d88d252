//! WITH RECURSIVE: an anchor's rows, then a step over the previous round's rows until it gives none.
//!
//! DataFusion's own recursive query compares rows as Arrow does; here rows are the same when MySQL says so, and the number of rounds is
//! limited as `cte_max_recursion_depth` says.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, BinaryViewArray, BooleanArray, RecordBatch, StringViewArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use futures::TryStreamExt;
use highkey_types::{ColumnType, MySqlError, SqlState, TypeKind, errors};
use parking_lot::Mutex;

use super::append::under_schema;
use super::compact::used_bytes;
use super::context::Shared;
use super::error::{final_refusal, user};
use super::explain::lines;
use super::kernel::key_array;
use super::lower::own_key;
use super::lower::schema;
use super::on_threads;
use crate::plan::{ExprType, Field};

/// What a row that was seen takes beside its bytes.
const SEEN_BYTES: usize = 40;

/// The previous round's rows.
#[derive(Debug)]
pub(super) struct WorkTable {
    schema: SchemaRef,
    rows: Mutex<Vec<RecordBatch>>,
}

impl WorkTable {
    pub fn new(names: &[String], types: &[ExprType]) -> WorkTable {
        let types: Vec<(ColumnType, bool)> = types.iter().map(|t| (t.ty.clone(), true)).collect();
        WorkTable { schema: schema(names, &types), rows: Mutex::default() }
    }

    pub fn provider(self: Arc<Self>, shared: Arc<Shared>) -> Arc<dyn TableProvider> {
        Arc::new(WorkScan { work: self, shared })
    }
}

/// The step's view of the previous round.
#[derive(Debug)]
struct WorkScan {
    work: Arc<WorkTable>,
    shared: Arc<Shared>,
}

#[async_trait]
impl TableProvider for WorkScan {
    fn schema(&self) -> SchemaRef {
        self.work.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(&self, _: &dyn Session, projection: Option<&Vec<usize>>, _: &[DfExpr], limit: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        let partition = Arc::new(WorkScan { work: self.work.clone(), shared: self.shared.clone() });
        Ok(Arc::new(StreamingTableExec::try_new(self.work.schema.clone(), vec![partition], projection, None, false, limit)?))
    }
}

impl PartitionStream for WorkScan {
    fn schema(&self) -> &SchemaRef {
        &self.work.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.work.rows.lock().clone();
        let killed = self.shared.check_killed();
        let batches = killed.err().map(Err).into_iter().chain(rows.into_iter().map(Ok));
        Box::pin(RecordBatchStreamAdapter::new(self.work.schema.clone(), futures::stream::iter(batches)))
    }
}

/// A recursion as a table.
#[derive(Debug)]
pub(super) struct Recursion {
    pub shared: Arc<Shared>,
    pub anchor: LogicalPlan,
    pub step: LogicalPlan,
    pub work: Arc<WorkTable>,
    pub fields: Vec<Field>,
    pub distinct: bool,
    /// sql_mode is.
    pub strict: bool,
}

#[async_trait]
impl TableProvider for Recursion {
    fn schema(&self) -> SchemaRef {
        self.work.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(&self, _: &dyn Session, projection: Option<&Vec<usize>>, _: &[DfExpr], limit: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        let run = Run {
            shared: self.shared.clone(),
            anchor: on_threads(&self.shared, &self.anchor, true).await?.physical,
            step: on_threads(&self.shared, &self.step, false).await?.physical,
            work: self.work.clone(),
            fields: self.fields.clone(),
            distinct: self.distinct,
            strict: self.strict,
        };
        if let Some(profile) = &self.shared.profile {
            for (plan, name) in [(&run.anchor, "Recursion: first round"), (&run.step, "Recursion: further rounds")] {
                profile.add_subquery(self.shared.next_id(), lines(plan.as_ref(), name.to_owned(), &self.shared));
            }
        }
        Ok(Arc::new(StreamingTableExec::try_new(self.work.schema.clone(), vec![Arc::new(run)], projection, None, false, limit)?))
    }
}

/// One execution.
#[derive(Debug, Clone)]
struct Run {
    shared: Arc<Shared>,
    anchor: Arc<dyn ExecutionPlan>,
    step: Arc<dyn ExecutionPlan>,
    work: Arc<WorkTable>,
    fields: Vec<Field>,
    distinct: bool,
    strict: bool,
}

impl PartitionStream for Run {
    fn schema(&self) -> &SchemaRef {
        &self.work.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let memory = |name: &str| MemoryConsumer::new(name).register(context.memory_pool());
        let (seen_memory, round_memory) = (memory("rows of all rounds"), memory("rows of a round"));
        let rounds = Rounds { run: self.clone(), context, seen: HashSet::new(), seen_memory, round_memory, round: 0, step_rows: 0 };
        let batches = futures::stream::try_unfold(rounds, |mut rounds| async move {
            let rows = rounds.next().await?;
            Ok::<_, datafusion::common::DataFusionError>((!rows.is_empty()).then_some((rows, rounds)))
        });
        let batches = batches.map_ok(|rows| futures::stream::iter(rows.into_iter().map(Ok))).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(self.work.schema.clone(), batches))
    }
}

struct Rounds {
    run: Run,
    context: Arc<TaskContext>,
    /// Rows of a UNION DISTINCT so far.
    seen: HashSet<Box<[u8]>>,
    seen_memory: MemoryReservation,
    /// Of the rows of the last round.
    round_memory: MemoryReservation,
    round: u64,
    /// Those that the step has given so far.
    step_rows: usize,
}

impl Rounds {
    /// The next round's rows; none at the end.
    async fn next(&mut self) -> Result<Vec<RecordBatch>> {
        self.run.shared.check_killed()?;
        let plan = if self.round == 0 {
            self.run.anchor.clone()
        } else {
            if self.round > self.run.shared.recursion_limit {
                return Err(user(MySqlError {
                    code: 3636,
                    sqlstate: SqlState::new("HY000"),
                    message: format!(
                        "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.",
                        self.round
                    ),
                }));
            }
            reset_plan_states(self.run.step.clone())?
        };
        self.round += 1;
        let mut produced = execute_stream(plan, self.context.clone())?;
        let memory = self.round_memory.new_empty();
        let mut rows = Vec::new();
        while let Some(batch) = produced.try_next().await? {
            let batch = under_schema(&batch, self.run.work.schema.clone())?;
            let batch = if self.round > 1 { self.stored(batch)? } else { batch };
            let batch = if self.run.distinct { self.unseen(batch)? } else { batch };
            if batch.num_rows() > 0 {
                memory.try_grow(used_bytes(&batch)).map_err(final_refusal)?;
                rows.push(batch);
            }
        }
        self.round_memory = memory;
        *self.run.work.rows.lock() = rows.clone();
        Ok(rows)
    }

    /// The step's rows as the columns keep them, which the first round has made. Error 1406 of the first text that is too long, in strict mode.
    fn stored(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        let mut too_long: Option<(usize, &Field)> = None;
        for (column, field) in columns.iter_mut().zip(&self.run.fields) {
            let Some(room) = room(&field.ty.ty) else { continue };
            let mut cut = None;
            if let Some(texts) = column.as_string_view_opt() {
                if texts.iter().flatten().all(|text| text.len() <= room) {
                    continue;
                }
                let kept = texts.iter().enumerate().map(|(row, text)| text.map(|text| {
                    let end = text.char_indices().nth(room).map_or(text.len(), |(end, _)| end);
                    // Spaces do not count.
                    if cut.is_none() && text[end..].bytes().any(|b| b != b' ') {
                        cut = Some(row);
                    }
                    &text[..end]
                }));
                *column = Arc::new(kept.collect::<StringViewArray>());
            } else if let Some(blobs) = column.as_binary_view_opt() {
                cut = blobs.iter().position(|blob| blob.is_some_and(|blob| blob.len() > room));
                let kept: BinaryViewArray = blobs.iter().map(|blob| blob.map(|blob| &blob[..blob.len().min(room)])).collect();
                *column = Arc::new(kept);
            }
            if let Some(row) = cut.filter(|row| too_long.is_none_or(|(first, _)| *row < first)) {
                too_long = Some((row, field));
            }
        }
        if let Some((row, field)) = too_long.filter(|_| self.run.strict) {
            return Err(user(errors::data_too_long(&field.name, self.step_rows + row + 1)));
        }
        self.step_rows += batch.num_rows();
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    }

    fn unseen(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let keys = batch.columns().iter().zip(&self.run.fields).map(|(array, field)| key_array(array, own_key(&field.ty.ty))).collect::<Result<Vec<_>>>()?;
        let fields = keys.iter().map(|k| SortField::new(k.data_type().clone())).collect();
        let rows = RowConverter::new(fields)?.convert_columns(&keys)?;
        let mut bytes = 0;
        let mut is_fresh = |row: &[u8]| {
            let fresh = self.seen.insert(row.into());
            bytes += if fresh { row.len() + SEEN_BYTES } else { 0 };
            fresh
        };
        let fresh: BooleanArray = rows.iter().map(|row| Some(is_fresh(row.as_ref()))).collect();
        self.seen_memory.try_grow(bytes).map_err(final_refusal)?;
        Ok(filter_record_batch(&batch, &fresh)?)
    }
}

/// How many characters or bytes a column of the recursion keeps; `None` for what is no string, and for strings so long that MySQL keeps them in a BLOB.
fn room(ty: &ColumnType) -> Option<usize> {
    match ty.kind {
        TypeKind::Char(length) | TypeKind::VarChar(length) | TypeKind::Binary(length) | TypeKind::VarBinary(length) if length <= 512 => Some(length as usize),
        _ => None,
    }
}
