//! Rows in the order of one thread, read by several. Where the order of the rows shows in the answer, a plan is made for one thread; what lies between a
//! scan and the first operator that needs all rows in their order is then done by several: each takes the next piece of the scan, with the
//! filters, projections and probes of joins above it, and [`Gather`] gives the pieces one after the other, as one thread would read them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{BatchCoalescer, SortOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, Statistics, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
    StatisticsArgs, replace_children_if_necessary,
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::aside;
use super::build_side::estimated_rows;
use super::context::Shared;
use super::materialize::CteExec;
use super::scan::ScanExec;
use super::through::{OnTheWay, Through, knowing};
use crate::expr::Raised;

/// Batches of the piece that the reader is at that may wait for it, whatever memory there is.
const BATCHES_AHEAD: usize = 2;
/// The part of the memory of all queries that batches of later pieces, which wait for their turn, may fill.
const MEMORY_PART: usize = 8;

/// Makes the scans of a plan for one thread shared by `workers`; with one worker only the batches are made what they are with more.
pub(super) fn shared_scans(plan: Arc<dyn ExecutionPlan>, shared: &Arc<Shared>, workers: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let exact = plan.exists(|node| Ok(by_batches(node)))?;
    gathered(plan, &Sharing { shared, workers, exact })
}

/// True if an operator gives equal rows, or pairs, in an order that depends on how rows are cut into batches.
fn by_batches(plan: &Arc<dyn ExecutionPlan>) -> bool {
    use JoinType::{Full, Left, LeftAnti, LeftMark, LeftSemi};
    // What a build side gives comes batch by batch, the last one first.
    let of_build_side = |join: &HashJoinExec| matches!(join.join_type(), Full | Left | LeftAnti | LeftMark | LeftSemi);
    plan.is::<SortExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.downcast_ref::<HashJoinExec>().is_some_and(of_build_side)
}

/// True if a plan for one thread reads its rows in another order than the plan in order that is made of it: if the order shows, the answers differ.
pub(super) fn changes_order(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    // A sort that nothing is computed above shows nothing.
    let of_entries = |node: &Arc<dyn ExecutionPlan>| node.downcast_ref::<ScanExec>().is_some_and(ScanExec::changes_order);
    Ok(with_outer_order(plan.clone())?.transformed || plan.exists(|node| Ok(of_entries(node) || node.is::<AggregateExec>() && depends_on_batches(node)?))?)
}

/// True if the order of some rows of a plan, or of a common table expression that it reads, depends on how rows are cut into batches.
pub(super) fn depends_on_batches(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(by_batches(node) || node.downcast_ref::<CteExec>().is_some_and(CteExec::depends_on_batches)))
}

/// True if some scan of a plan for one thread can be shared.
pub(super) fn can_share(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(node.downcast_ref::<ScanExec>().is_some_and(|scan| scan.by_piece().is_some_and(|scan| scan.properties().output_partitioning().partition_count() > 1))))
}

/// How scans are shared.
struct Sharing<'a> {
    shared: &'a Arc<Shared>,
    workers: usize,
    /// See [`Gather`].
    exact: bool,
}

fn gathered(plan: Arc<dyn ExecutionPlan>, sharing: &Sharing) -> Result<Arc<dyn ExecutionPlan>> {
    let Sharing { shared, workers, exact } = *sharing;
    if let Some(pieces) = by_piece(&plan, sharing)? {
        // The rows are the same, so what is known of them is.
        let known = plan.equivalence_properties().clone();
        return Ok(if workers > 1 || exact { Arc::new(Gather::new(pieces, known, shared.clone(), workers, exact)) } else { pieces });
    }
    let children = plan.children().into_iter().map(|child| gathered(child.clone(), sharing)).collect::<Result<Vec<_>>>()?;
    if children.is_empty() { Ok(plan) } else { replace_children_if_necessary(plan, children) }
}

/// The plan with a partition for each piece of its scan, if each row that it gives comes of one row of the scan, in the scan's order.
fn by_piece(plan: &Arc<dyn ExecutionPlan>, sharing: &Sharing) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        // One worker reads the scan as it is; below it, too, batches are made what they are with more.
        return Ok(scan.by_piece().map(|pieces| if sharing.workers > 1 { Arc::new(pieces) as _ } else { plan.clone() }));
    }
    // A LIMIT counts rows of all pieces.
    if plan.fetch().is_some() {
        return Ok(None);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        use JoinType::{Inner, Right, RightAnti, RightMark, RightSemi};
        let by_probe = matches!(join.join_type(), Inner | Right | RightAnti | RightMark | RightSemi);
        if !by_probe || *join.partition_mode() != PartitionMode::CollectLeft {
            return Ok(None);
        }
        let Some(probe) = by_piece(join.right(), sharing)? else { return Ok(None) };
        let build = gathered(join.left().clone(), sharing)?;
        return Ok(Some(replace_children_if_necessary(plan.clone(), vec![build, probe])?));
    }
    let passes = plan.is::<ProjectionExec>() || plan.is::<FilterExec>() || plan.is::<CooperativeExec>();
    if passes || plan.downcast_ref::<Through>().is_some_and(Through::divides) {
        let Some(input) = by_piece(plan.children()[0], sharing)? else { return Ok(None) };
        return Ok(Some(replace_children_if_necessary(plan.clone(), vec![input])?));
    }
    Ok(None)
}

/// Its input's partitions one after the other, several of them computed at a time.
#[derive(Debug)]
pub(super) struct Gather {
    input: Arc<dyn ExecutionPlan>,
    shared: Arc<Shared>,
    workers: usize,
    /// Batches have exactly the rows that the session's settings say, whatever those of the input have.
    exact: bool,
    properties: Arc<PlanProperties>,
}

impl Gather {
    fn new(input: Arc<dyn ExecutionPlan>, known: EquivalenceProperties, shared: Arc<Shared>, workers: usize, exact: bool) -> Gather {
        let properties = PlanProperties::new(known, Partitioning::UnknownPartitioning(1), EmissionType::Incremental, Boundedness::Bounded);
        Gather { input, shared, workers, exact, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Gather {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Gather in order")
    }
}

impl ExecutionPlan for Gather {
    fn name(&self) -> &str {
        "Gather"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>, _: ReplaceChildrenOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Gather::new(children.remove(0), self.properties.equivalence_properties().clone(), self.shared.clone(), self.workers, self.exact)))
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Gather::new(children.remove(0), self.properties.equivalence_properties().clone(), self.shared.clone(), self.workers, self.exact)))
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(inputs[0].clone())
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let batch_rows = context.session_config().batch_size();
        let partitions = self.input.output_partitioning().partition_count();
        let pieces = match self.workers {
            0 | 1 => Pieces::Direct(self.input.execute(0, context)?),
            workers => {
                let (input, shared) = (self.input.clone(), self.shared.clone());
                Pieces::Later(Some(Box::new(move || Ahead::start(input, context, shared, partitions, workers))))
            }
        };
        let batches = futures::stream::unfold(pieces, |mut pieces| async move { Some((pieces.next().await?, pieces)) });
        if !self.exact {
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)));
        }
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema.clone(), in_batches_of(batch_rows, schema, batches))))
    }
}

/// The rows in batches of exactly so many, but for the last, whatever the batches of the input have.
pub(super) fn in_batches_of(rows: usize, schema: SchemaRef, batches: impl Stream<Item = Result<RecordBatch>> + Send + 'static) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let coalescer = Some(BatchCoalescer::new(schema, rows));
    futures::stream::unfold((Box::pin(batches), coalescer), |(mut batches, mut coalescer)| async move {
        let batch = loop {
            let waiting = coalescer.as_mut()?;
            if let Some(batch) = waiting.next_completed_batch() {
                break Ok(batch);
            }
            match batches.next().await {
                Some(Ok(batch)) => {
                    if let Err(error) = waiting.push_batch(batch) {
                        break Err(error.into());
                    }
                }
                Some(Err(error)) => break Err(error),
                None => {
                    let rest = waiting.finish_buffered_batch().map(|()| waiting.next_completed_batch());
                    coalescer = None;
                    break Ok(rest.transpose()?.ok()?);
                }
            }
        };
        Some((batch, (batches, coalescer)))
    })
}

enum Pieces {
    Direct(SendableRecordBatchStream),
    /// Begun when the first batch is asked for: an operator above may have much to do before, and what is found by keys waits for those.
    Later(Option<Box<dyn FnOnce() -> Ahead + Send>>),
    Ahead(Ahead),
}

impl Pieces {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        if let Pieces::Later(start) = self
            && let Some(start) = start.take()
        {
            *self = Pieces::Ahead(start());
        }
        match self {
            Pieces::Later(_) => None,
            Pieces::Direct(stream) => stream.next().await,
            Pieces::Ahead(ahead) => ahead.next().await,
        }
    }
}

/// Pieces being computed by several workers.
struct Ahead {
    line: Arc<Line>,
    shared: Arc<Shared>,
    attempt: usize,
    _workers: Vec<SpawnedTask<()>>,
}

/// What waits for its turn.
struct Line {
    waiting: Mutex<Waiting>,
    /// There is room for more.
    room: Notify,
    /// The first piece has a batch, or has ended.
    ready: Notify,
    unwanted: Arc<AtomicBool>,
}

struct Waiting {
    /// Those that have been begun and the reader has not read, in order.
    pieces: VecDeque<Piece>,
    /// Which one is the first of them, and of how many.
    first: usize,
    all: usize,
    /// Bytes of batches, and how many those behind the first piece may have.
    memory: MemoryReservation,
    most: usize,
}

/// What the reader gets, with the warnings that belong to it.
enum Next {
    Batch(RecordBatch, Raised),
    EndOfPiece(Result<()>, Raised),
    NotYet,
    End,
}

#[derive(Default)]
struct Piece {
    batches: VecDeque<(RecordBatch, Raised)>,
    /// What was raised behind the last batch.
    raised: Raised,
    ended: Option<Result<()>>,
}

impl Ahead {
    fn start(input: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>, shared: Arc<Shared>, pieces: usize, workers: usize) -> Ahead {
        let most = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(limit) => limit / MEMORY_PART,
            _ => usize::MAX,
        };
        let memory = MemoryConsumer::new("rows whose turn has not come").register(context.memory_pool());
        let waiting = Waiting { pieces: VecDeque::new(), first: 0, all: pieces, memory, most };
        let line = Arc::new(Line { waiting: Mutex::new(waiting), room: Notify::new(), ready: Notify::new(), unwanted: Arc::default() });
        let worker = |number| {
            let (input, context, line) = (input.clone(), context.clone(), line.clone());
            SpawnedTask::spawn(async move {
                // Pieces are begun in their order, so the one that the reader waits for never waits itself.
                while let Some(place) = Place::next(&line) {
                    let ended = compute(input.as_ref(), context.clone(), &place, number).await;
                    place.end(ended);
                }
            })
        };
        let attempt = shared.attempt();
        let workers = (0..workers.min(pieces)).map(worker).collect();
        Ahead { line, shared, attempt, _workers: workers }
    }

    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            let next = self.line.waiting.lock().next();
            match next {
                // A permit is kept for one who is about to wait.
                Next::NotYet => self.line.ready.notified().await,
                Next::End => return None,
                Next::Batch(batch, raised) => {
                    self.line.room.notify_waiters();
                    self.shared.raise(self.attempt, raised);
                    return Some(Ok(batch));
                }
                Next::EndOfPiece(ended, raised) => {
                    self.line.room.notify_waiters();
                    self.shared.raise(self.attempt, raised);
                    if let Err(error) = ended {
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.line.unwanted.store(true, Ordering::Relaxed);
    }
}

impl Waiting {
    fn next(&mut self) -> Next {
        if self.first == self.all {
            return Next::End;
        }
        let Some(piece) = self.pieces.front_mut() else { return Next::NotYet };
        if let Some((batch, raised)) = piece.batches.pop_front() {
            self.memory.shrink(batch.get_array_memory_size());
            return Next::Batch(batch, raised);
        }
        let Some(ended) = piece.ended.take() else { return Next::NotYet };
        let raised = std::mem::take(&mut piece.raised);
        self.pieces.pop_front();
        // Nothing is read behind an error.
        self.first = if ended.is_ok() { self.first + 1 } else { self.all };
        Next::EndOfPiece(ended, raised)
    }

    /// Puts a batch behind those of its piece, if there is room for it; gives it back otherwise.
    fn put(&mut self, piece: usize, batch: RecordBatch, raised: Raised) -> Option<(RecordBatch, Raised)> {
        let bytes = batch.get_array_memory_size();
        // Behind an error nobody wants it, and nobody waits.
        let batches = &mut self.pieces.get_mut(piece.checked_sub(self.first)?)?.batches;
        if piece == self.first && batches.len() < BATCHES_AHEAD {
            self.memory.grow(bytes);
        } else if self.memory.size() + bytes > self.most || self.memory.try_grow(bytes).is_err() {
            return Some((batch, raised));
        }
        batches.push_back((batch, raised));
        None
    }
}

/// A piece that a worker computes.
struct Place<'a> {
    line: &'a Arc<Line>,
    piece: usize,
    ended: bool,
}

impl<'a> Place<'a> {
    /// The next piece that nobody has begun.
    fn next(line: &'a Arc<Line>) -> Option<Place<'a>> {
        let mut waiting = line.waiting.lock();
        let piece = waiting.first + waiting.pieces.len();
        if piece >= waiting.all {
            return None;
        }
        waiting.pieces.push_back(Piece::default());
        Some(Place { line, piece, ended: false })
    }

    /// Waits until there is room for a batch.
    async fn put(&self, batch: RecordBatch, raised: Raised) {
        let mut next = (batch, raised);
        loop {
            let room = self.line.room.notified();
            match self.line.waiting.lock().put(self.piece, next.0, next.1) {
                Some(refused) => next = refused,
                None => break,
            }
            room.await;
        }
        self.line.ready.notify_one();
    }

    fn end(mut self, (ended, raised): (Result<()>, Raised)) {
        self.set_end(ended, raised);
    }

    fn set_end(&mut self, ended: Result<()>, raised: Raised) {
        self.ended = true;
        let mut waiting = self.line.waiting.lock();
        let first = waiting.first;
        // After an error nothing is read.
        if let Some(piece) = self.piece.checked_sub(first).and_then(|at| waiting.pieces.get_mut(at)) {
            (piece.ended, piece.raised) = (Some(ended), raised);
        }
        drop(waiting);
        self.line.ready.notify_one();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.set_end(internal_err!("a worker ended before its piece"), Raised::default());
        }
    }
}

/// Computes a piece; what is raised behind its last batch comes with its end.
async fn compute(input: &dyn ExecutionPlan, context: Arc<TaskContext>, place: &Place<'_>, worker: usize) -> (Result<()>, Raised) {
    let unwanted = &place.line.unwanted;
    let (batches, mut raised) = aside::work(unwanted, worker, || input.execute(place.piece, context));
    let mut batches = match batches {
        Ok(batches) => batches,
        Err(error) => return (Err(error), raised),
    };
    loop {
        let next = std::future::poll_fn(|cx| {
            let (next, more) = aside::work(unwanted, worker, || batches.poll_next_unpin(cx));
            raised.append(more);
            next
        });
        match next.await {
            None => return (Ok(()), raised),
            Some(Err(error)) => return (Err(error), raised),
            Some(Ok(batch)) if batch.num_rows() == 0 => {}
            Some(Ok(batch)) => place.put(batch, std::mem::take(&mut raised)).await,
        }
    }
}

/// Inner tables of fewer rows are built for any outer one that has a row for so many: a smaller one finds its rows by an index.
const BUILT_ANYWAY: f64 = 200_000.0;
const ANY_INNER_TO_OUTER: f64 = 1000.0;
/// Others, if the outer table has at least a row for so many.
const INNER_TO_OUTER: f64 = 4.0;

/// Left, semi and anti joins that give their rows in the order of the outer table, as MySQL does: DataFusion builds the outer table where that is the
/// smaller one, reads the inner one, and gives the rows without a match, or all, at the end. It costs building the inner table, so a much larger one is left as
/// it is.
pub(super) fn outer_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    with_outer_order(plan).data()
}

fn with_outer_order(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    plan.transform_up(|node| {
        let Some(join) = node.downcast_ref::<HashJoinExec>().filter(|join| *join.partition_mode() == PartitionMode::CollectLeft && !join.null_aware) else {
            return Ok(Transformed::no(node));
        };
        use JoinType::{Left, LeftAnti, LeftMark, LeftSemi, Right};
        let probing_outer = match join.join_type() {
            Right => node.clone(),
            Left | LeftAnti | LeftMark | LeftSemi if is_built(estimated_rows(join.right()), estimated_rows(join.left())) => {
                join.swap_inputs(PartitionMode::CollectLeft)?
            }
            _ => return Ok(Transformed::no(node)),
        };
        // The operators above were planned by what was known of these rows.
        let known = Known(node.equivalence_properties().clone());
        Ok(Transformed::yes(Through::over(probes_in_order(probing_outer)?, Arc::new(known))))
    })
}

fn is_built(inner: f64, outer: f64) -> bool {
    inner <= (outer * INNER_TO_OUTER).max(BUILT_ANYWAY.min(outer * ANY_INNER_TO_OUTER))
}

/// A join, perhaps under a projection, whose rows come in the order of its probe side, those without a match where they belong.
fn probes_in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else {
        let input = probes_in_order(plan.children()[0].clone())?;
        return replace_children_if_necessary(plan, vec![input]);
    };
    let inputs = vec![join.left().clone(), Through::over(join.right().clone(), Arc::new(KeepsOrder))];
    replace_children_if_necessary(plan.clone(), inputs)
}

/// Tells a join that the order of its rows matters; of which columns is of no matter, nothing else reads it.
#[derive(Debug)]
struct KeepsOrder;

impl OnTheWay for KeepsOrder {
    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        let schema = input.schema();
        let Some(first) = schema.fields().first() else { return input.properties().clone() };
        let key = PhysicalSortExpr::new(Arc::new(Column::new(first.name(), 0)), SortOptions::default());
        let ordering = LexOrdering::new([key]).into_iter();
        knowing(input, EquivalenceProperties::new_with_orderings(schema, ordering))
    }
}

/// What was known of a join's rows before its input claimed an order.
#[derive(Debug)]
struct Known(EquivalenceProperties);

impl OnTheWay for Known {
    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        knowing(input, self.0.clone())
    }
}
