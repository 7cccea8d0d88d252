//! Queries on DataFusion: everything that the fast path does not take. README.md has the mapping of types and semantics.
//!
//! A bound plan is made a DataFusion plan whose types and meaning are MySQL's already (`lower`), optimised with our statistics, and
//! executed on the threads of the [`QueryEngine`]; the rows come back as MySQL values ([`RowStream`]).
//!
//! - `repr`: types and values in Arrow. `scan`: tables as DataFusion sources.
//! - `lower`: operators and expressions. `kernel`: vectorised functions. `wrapped`: any other expression, row by row.
//! - `build_side`, `sideways`, `key_set`, `key_tuples`: which side of a join is built, and what its keys spare the other. `read_ahead`: what the other workers do meanwhile. `deal`: few rows for several workers. `sorted_groups`: groups that come sorted. `few_groups`: groups that are few. `sent`: rows that are not given twice. `parallel`: which queries run on several threads, `in_order`, `aside`: how those do whose answers show the order of the rows. `crew`: workers for what is no query. `engine`, `memory`: what they run on. `helpers`: what its tasks take is their statement's. `give_way`: how they give way to sessions. `awake`: on which processors they are. `activity`: what others see of them. `yielding`: when they let go of their thread. `one_by_one`: rows of queries that do something for each.
//! - `subquery`: subqueries that are not joins. `kept`: plans for the next execution, `parameters`: without the values of some constants. `kept_rows`: rows that were read before. `temp_space`: that of other files. `lateral`: LATERAL and JSON_TABLE. `recursion`: WITH RECURSIVE. `materialize`: what WITH names more than once. `aggregate`: MySQL's aggregates. `explain`: plans as text, `wording`: their expressions. `timing`: what EXPLAIN ANALYZE tells of operators.

mod activity;
mod aggregate;
mod append;
mod aside;
mod awake;
mod build_side;
mod compact;
mod constants;
mod context;
mod crew;
mod deal;
mod engine;
mod error;
mod explain;
mod few_groups;
mod give_way;
mod helpers;
mod in_order;
mod kept;
mod kept_rows;
mod kernel;
mod key_set;
mod key_tuples;
mod lateral;
mod lower;
mod materialize;
mod memory;
mod merge_join;
mod one_by_one;
mod parallel;
mod parameters;
mod read_ahead;
mod recursion;
mod repr;
mod scan;
mod sent;
mod sideways;
mod sorted_groups;
mod stream;
mod subquery;
mod temp_space;
#[cfg(test)]
mod tests;
mod text;
mod through;
mod ties;
mod timing;
mod wording;
mod wrapped;
mod yielding;

pub use activity::QueryActivity;
pub use context::{QueryContext, killed_error};
pub use crew::{Crew, Making};
pub use engine::{EngineOptions, QueryEngine};
pub use explain::{Explained, ShownScan};
pub use kept::PlanSlot;
pub use parallel::{ParallelSettings, SerialReason};
pub use scan::ROW_COST;
pub use stream::{RowStream, Rows};
pub(crate) use temp_space::TempSpace;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result as DfResult, exec_err};
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use futures::{FutureExt, StreamExt};
use highkey_table::Waits;
use highkey_types::MySqlError;
use tokio::sync::{mpsc, oneshot};

use compact::{sorts_that_spill, windows_counted};
use context::Shared;
use engine::Planning;
use error::{is_of_rows, is_out_of_memory, to_mysql, user};
use few_groups::few_groups;
use give_way::Report;
use helpers::holding;
use kept::KeptPlan;
use lower::Lowerer;
use merge_join::{reads_again, refusals_end};
use one_by_one::one_by_one;
use read_ahead::probes_read_ahead;
use sent::{SentRows, runs_out_later};
use sorted_groups::sorted_groups;
use yielding::yielding;

use crate::plan::{BoundQuery, Field, Rel};
use crate::stack;

/// Starts `bound` and returns its rows as they come. Errors of planning come from here, errors of execution from the stream.
pub async fn query(bound: BoundQuery, cx: QueryContext) -> Result<RowStream, MySqlError> {
    let report = cx.engine.give_way().begin(tokio::runtime::Handle::current());
    begin(bound, cx, Some(report)).await
}

/// The same for a query inside of a statement, which may run one for each row: it is no report of its own.
pub async fn query_inside(bound: BoundQuery, cx: QueryContext) -> Result<RowStream, MySqlError> {
    begin(bound, cx, None).await
}

async fn begin(bound: BoundQuery, cx: QueryContext, report: Option<Report>) -> Result<RowStream, MySqlError> {
    let rel = bound.rel;
    let engine = cx.engine.clone();
    let fields: Arc<[Field]> = rel.fields.clone().into();
    let (rows, batches) = mpsc::channel(stream::BATCHES_AHEAD);
    let (planned, plan_ready) = oneshot::channel();
    let (killed, interruption) = (cx.killed.clone(), cx.interruption.clone());
    let query = async move {
        let _report = report;
        let alive = Arc::new(());
        let running = holding(alive.clone(), run(rel, cx, planned, rows.clone(), alive));
        let outcome = AssertUnwindSafe(running).catch_unwind().await;
        // A panic in a query ends the query, never the server.
        if outcome.is_err() {
            let _ = rows.send(Err(DataFusionError::Internal("the query panicked".into()))).await;
        }
    };
    // The statement's work, and its waits, are done there.
    let task = match Waits::current() {
        Some(waits) => engine.handle().spawn(async move { waits.assist(query).await }),
        None => engine.handle().spawn(query),
    };
    let stream = RowStream::new(fields, batches, task, engine);
    let planned = tokio::select! {
        planned = plan_ready => planned,
        // Dropping the stream ends the query, once the planner lets go.
        () = killed_for(&killed, PATIENCE) => return Err(interruption()),
    };
    match planned {
        Ok(Ok(())) => Ok(stream),
        Ok(Err(error)) => Err(to_mysql(&error)),
        // The task ended before it had a plan.
        Err(_) => Err(to_mysql(&DataFusionError::Internal("the query panicked while it was planned".into()))),
    }
}

/// How long a query that was killed may take to end by itself. DataFusion's planner never looks.
const PATIENCE: Duration = Duration::from_millis(500);

/// Ends when `killed` has been set for so long.
async fn killed_for(killed: &AtomicBool, long: Duration) {
    while !killed.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK_FOR_KILL).await;
    }
    tokio::time::sleep(long).await;
}

/// `alive`: held by whatever runs for the query.
async fn run(rel: Rel, cx: QueryContext, planned: oneshot::Sender<DfResult<()>>, rows: mpsc::Sender<DfResult<RecordBatch>>, alive: Arc<()>) {
    let slot = cx.slot.clone();
    let mut kept = slot.as_ref().and_then(|slot| slot.take());
    let shared = Shared::new(cx, &rel, false, kept.as_ref());
    // Also where this future is dropped.
    let _end = End(shared.clone());
    let mut planned = Some(planned);
    let mut used = false;
    // Of the attempt before, which this one only retraces.
    let mut failure: Option<DataFusionError> = None;
    // What has left, if it may start anew behind it.
    let mut left: Option<SentRows> = None;
    loop {
        if let Some(profile) = &shared.profile {
            profile.start_over();
        }
        let found = used_plan(&shared, kept.as_ref()).await;
        let plan = match found {
            Ok(Some(plan)) => {
                used = true;
                Ok(plan)
            }
            Ok(None) => {
                kept = None;
                physical(&shared, rel.clone(), slot.is_some().then_some(&mut kept)).await
            }
            Err(error) => Err(error),
        };
        let begun = plan.and_then(|plan| {
            if let Some(profile) = &shared.profile {
                profile.set_query(explain::lines(plan.physical.as_ref(), explain::first_line(plan.degree), &shared));
            }
            if left.is_none() && shared.may_give_rows_again() && (shared.runs_inside() || runs_out_later(&plan.physical)?) {
                left = Some(SentRows::default());
            }
            let stream = execute_stream(plan.physical.clone(), plan.context)?;
            shared.begin_rows();
            Ok((stream, scan::working(&plan.physical)))
        });
        if let Some(left) = &mut left {
            left.begin();
        }
        let mut out = Output { rows: &rows, planned: &mut planned, left: &mut left, held: Vec::new(), held_bytes: 0, sent: false, retraces: failure.is_some() };
        let outcome = match begun {
            Ok((stream, working)) => send_rows(&shared, stream, &mut out).await.map(|()| shared.activity.add_work(&working.end())),
            Err(error) => Err(error),
        };
        // As long as nothing has left the query it may start again; for want of memory behind rows that it leaves out, too.
        let sent = out.sent;
        if outcome.is_err() {
            (kept, used) = (None, false);
        }
        let outcome = match (outcome, failure.take()) {
            (outcome, None) => outcome,
            // Another error is the one that MySQL meets first.
            (Err(error), Some(_)) if is_of_rows(&error) => return tell(error, planned, &rows).await,
            (_, Some(before)) => return tell(before, planned, &rows).await,
        };
        let Err(error) = outcome else {
            if let (Some(slot), Some(kept)) = (slot, kept)
                && is_alone(&shared, &alive).await
            {
                slot.put(kept, used);
            }
            return;
        };
        // As on one thread, where the order of the rows is always the same.
        if !sent && shared.order.is_raised() && shared.start_in_order() {
            continue;
        }
        // With operators that spill.
        if (!sent || left.is_some()) && is_out_of_memory(&error) {
            if shared.start_spilling().await {
                continue;
            }
            // Perhaps while it waited.
            let error = shared.check_killed().err().unwrap_or(error);
            return tell(error, planned, &rows).await;
        }
        if !(is_of_rows(&error) && shared.start_by_row()) {
            return tell(error, planned, &rows).await;
        }
        failure = Some(error);
    }
}

/// The query ends with an error.
async fn tell(error: DataFusionError, planned: Option<oneshot::Sender<DfResult<()>>>, rows: &mpsc::Sender<DfResult<RecordBatch>>) {
    match planned {
        Some(planned) => drop(planned.send(Err(error))),
        None => drop(rows.send(Err(error)).await),
    }
}

/// What `run` itself holds of a query: `shared` and `_end`; and of what all its tasks hold: its task, and `alive`.
const HELD_BY_RUN: usize = 2;
/// How long it waits for others to let go of it, who have nothing left to do: a worker gives its last row shortly before it ends.
const LETTING_GO: Duration = Duration::from_micros(200);

/// True if nothing runs for the query any more: it would be part of the next execution of its plan.
async fn is_alone(shared: &Arc<Shared>, alive: &Arc<()>) -> bool {
    let is_alone = || Arc::strong_count(shared) == HELD_BY_RUN && Arc::strong_count(alive) == HELD_BY_RUN;
    let since = Instant::now();
    while !is_alone() && since.elapsed() < LETTING_GO {
        tokio::task::yield_now().await;
    }
    is_alone()
}

/// The kept plan, if the query may be executed by it.
async fn used_plan(shared: &Arc<Shared>, kept: Option<&KeptPlan>) -> DfResult<Option<Physical>> {
    let Some(kept) = kept else { return Ok(None) };
    let Some(plan) = kept.ready(shared).await? else { return Ok(None) };
    note(shared, &plan)?;
    Ok(Some(plan))
}

/// Tells whatever still runs for a query that it has ended.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Time between two looks at KILL while no row comes.
const LOOK_FOR_KILL: Duration = Duration::from_millis(50);
/// Bytes of rows that are kept back until it is known that no other order of the rows would have given others.
const HELD_BYTES: usize = 16 << 20;

/// Rows on their way out of the query.
struct Output<'a> {
    rows: &'a mpsc::Sender<DfResult<RecordBatch>>,
    /// Who waits for the plan; told when rows are about to leave.
    planned: &'a mut Option<oneshot::Sender<DfResult<()>>>,
    /// Where it is noted what leaves.
    left: &'a mut Option<SentRows>,
    held: Vec<RecordBatch>,
    held_bytes: usize,
    sent: bool,
    /// Nobody is sent its rows.
    retraces: bool,
}

impl Output<'_> {
    /// The order of the rows is watched, and none has left. That may begin late: what only subqueries read is planned when one of them runs for a row.
    fn can_wait(&self, shared: &Shared) -> bool {
        !self.sent && shared.order.is_watching()
    }

    /// Sends what was held. False: nobody wants rows any more.
    async fn release(&mut self) -> DfResult<bool> {
        if self.retraces {
            self.held.clear();
            return Ok(true);
        }
        if let Some(planned) = self.planned.take() {
            let _ = planned.send(Ok(()));
        }
        for batch in std::mem::take(&mut self.held) {
            let batch = match self.left {
                Some(left) => left.fresh(batch)?,
                None => batch,
            };
            self.sent |= batch.num_rows() > 0;
            if self.rows.send(Ok(batch)).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The attempt has given all its rows.
    async fn finish(&mut self) -> DfResult<()> {
        if self.release().await? && !self.retraces && let Some(left) = self.left {
            left.end()?;
        }
        Ok(())
    }
}

/// Sends all batches.
async fn send_rows(shared: &Shared, mut stream: SendableRecordBatchStream, out: &mut Output<'_>) -> DfResult<()> {
    let mut look = tokio::time::interval(LOOK_FOR_KILL);
    // Operators that watch the order see all their rows before they give any, so it is known early. Behind more rows than are held here,
    // a group whose texts differ may show another of them than on one thread.
    let mut hold = shared.order.is_watching();
    if !hold && !out.release().await? {
        return Ok(());
    }
    let order_was_seen = || if shared.order.is_raised() { exec_err!("the order of the rows shows") } else { Ok(()) };
    loop {
        // An aggregation over a join may go on for hours before its first row.
        let batch = tokio::select! {
            batch = stream.next() => batch,
            _ = look.tick() => {
                shared.check_killed()?;
                continue;
            }
            () = shared.order.until_raised(), if hold => {
                order_was_seen()?;
                continue;
            }
        };
        let Some(batch) = batch else { break };
        let batch = batch?;
        shared.check_killed()?;
        hold |= out.can_wait(shared);
        out.held_bytes += batch.get_array_memory_size();
        out.held.push(batch);
        if hold {
            order_was_seen()?;
            hold = out.held_bytes < HELD_BYTES;
        }
        if !hold && !out.release().await? {
            // Nobody wants them any more.
            return Ok(());
        }
    }
    if hold || out.can_wait(shared) {
        order_was_seen()?;
    }
    out.finish().await
}

/// A plan as DataFusion made it.
#[derive(Clone)]
struct Planned {
    physical: Arc<dyn ExecutionPlan>,
    planning: Planning,
    state: Arc<SessionState>,
    cost: f64,
    /// On how many threads, or why on one; `None` if its rows come in order, where that is known later.
    degree: Option<Result<usize, SerialReason>>,
}

/// A plan and what it runs in.
struct Physical {
    physical: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    /// On how many threads, or why on one.
    degree: Result<usize, SerialReason>,
}

/// Operators that may stand on each other. Each becomes some of DataFusion's, every one of which takes stack while the plan is made, and while it runs.
const MOST_LEVELS: usize = 1000;

/// The plan to execute, its columns in the order of the relation's fields. `kept`: where it is kept for the next execution if it can be.
async fn physical(shared: &Arc<Shared>, rel: Rel, kept: Option<&mut Option<KeptPlan>>) -> DfResult<Physical> {
    if rel.size().1 > MOST_LEVELS {
        return Err(user(stack::overrun()));
    }
    let planned = match kept {
        Some(kept) => planned_to_keep(shared, rel, kept).await?,
        None => planned_rel(shared, rel).await?,
    };
    shared.parameters.know();
    let physical = ready(shared, planned, true).await?;
    if !shared.explain {
        note(shared, &physical)?;
    }
    Ok(physical)
}

async fn planned_rel(shared: &Arc<Shared>, mut rel: Rel) -> DfResult<Planned> {
    let lowerer = Lowerer::new(shared.clone());
    if !shared.explain {
        lowerer.fold_constant_subqueries(&mut rel)?;
    }
    let lowered = lowerer.rel(&rel, &[])?;
    let names: Vec<String> = rel.fields.iter().map(|f| shared.name(&f.name)).collect();
    let plan = lowerer.renamed(lowered, &names)?;
    planned(shared, &plan, shared.in_order()).await
}

/// A plan for this execution, which is kept in `kept` for the next one if it can be: for any values of the constants that its slot leaves open, or else for these.
async fn planned_to_keep(shared: &Arc<Shared>, rel: Rel, kept: &mut Option<KeptPlan>) -> DfResult<Planned> {
    if shared.parameters.are_open() && shared.attempt() == 0 {
        let planned = planned_rel(shared, shared.parameters.opened(&rel)).await;
        if let Ok(planned) = planned
            && shared.parameters.are_open()
            && let Some(open) = KeptPlan::of(&planned, shared)
            && let Some(planned) = planned.anew()?
        {
            *kept = Some(open);
            return Ok(planned);
        }
        shared.check_killed()?;
        shared.parameters.close();
        shared.plan_again();
    }
    let planned = planned_rel(shared, rel).await?;
    *kept = KeptPlan::of(&planned, shared);
    if kept.is_some()
        && let Some(planned) = planned.clone().anew()?
    {
        return Ok(planned);
    }
    *kept = None;
    Ok(planned)
}

/// A plan is about to be executed: what others see of it.
fn note(shared: &Shared, plan: &Physical) -> DfResult<()> {
    shared.activity.note_degree(plan.degree);
    shared.activity.begin(scan::watched(&plan.physical, shared.threads(plan.degree))?);
    if let Err(reason) = plan.degree {
        shared.engine.workers().stayed_serial(reason);
    }
    Ok(())
}

/// The plan to execute, on as many threads as it may have by what it reads. `once`: it is executed once only.
async fn on_threads(shared: &Arc<Shared>, plan: &LogicalPlan, once: bool) -> DfResult<Physical> {
    let planned = planned(shared, plan, shared.in_order()).await?;
    ready(shared, planned, once).await
}

/// The same of a plan that is executed once and not to its end: what is read of it is what one thread would read.
async fn in_order_on_threads(shared: &Arc<Shared>, plan: &LogicalPlan) -> DfResult<Physical> {
    let planned = planned(shared, plan, true).await?;
    ready(shared, planned, true).await
}

/// The plan as DataFusion makes it. `in_order`: its rows come in the order of one thread.
async fn planned(shared: &Arc<Shared>, plan: &LogicalPlan, in_order: bool) -> DfResult<Planned> {
    // Planning looks at KILL between its steps only.
    shared.check_killed()?;
    let cost = scan::cost(plan);
    if in_order {
        let planning = shared.planning(1, plan);
        let state = shared.engine.state(planning);
        let physical = in_order::outer_order(shared.ordered_plan(state.create_physical_plan(plan)).await?)?;
        return Ok(Planned { physical, planning, state, cost, degree: None });
    }
    let degree = shared.degree(cost, true).await;
    let mut planning = shared.planning(shared.threads(degree), plan);
    let mut state = shared.engine.state(planning);
    let mut physical = state.create_physical_plan(plan).await?;
    if shared.is_spilling() && reads_again(&physical)? {
        planning = shared.planning(1, plan);
        state = shared.engine.state(planning);
        physical = state.create_physical_plan(plan).await?;
    }
    shared.check_killed()?;
    Ok(Planned { physical, planning, state, cost, degree: Some(degree) })
}

/// A plan with what this query adds to it. `once`: it is executed once only.
async fn ready(shared: &Arc<Shared>, planned: Planned, once: bool) -> DfResult<Physical> {
    let Planned { physical, state, cost, degree, .. } = planned;
    let pass_keys = |physical| if once { sideways::pass_keys(physical) } else { Ok(physical) };
    if let Some(degree) = degree {
        if degree.is_ok() || in_order::changes_order(&physical)? {
            shared.watch_order();
        }
        let physical = pass_keys(yielding(physical)?)?;
        let physical = sorted_groups(physical, !shared.is_spilling())?;
        let physical = if shared.is_spilling() { sorts_that_spill(physical)? } else { refusals_end(physical)? };
        let physical = if once && degree.is_ok() { probes_read_ahead(physical)? } else { physical };
        let physical = measured(shared, windows_counted(physical)?)?;
        // Behind the timings: those of a grouping are of what is done in its place.
        let physical = if shared.is_spilling() { physical } else { few_groups(physical)? };
        let physical = if shared.one_by_one { one_by_one(physical)? } else { physical };
        return Ok(Physical { physical, context: shared.task_context(&state), degree });
    }
    let physical = pass_keys(yielding(physical)?)?;
    let degree = shared.degree(cost, in_order::can_share(&physical)?).await;
    let physical = in_order::shared_scans(physical, shared, shared.threads(degree))?;
    let physical = if shared.is_spilling() { sorts_that_spill(physical)? } else { refusals_end(physical)? };
    let physical = measured(shared, windows_counted(physical)?)?;
    let physical = if shared.one_by_one { one_by_one(physical)? } else { physical };
    Ok(Physical { physical, context: shared.task_context(&state), degree })
}

/// Under EXPLAIN ANALYZE, the plan that tells what its operators do.
fn measured(shared: &Shared, plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if shared.profile.is_some() { timing::timed(plan) } else { Ok(plan) }
}

/// The plan of `bound`, which is not run.
pub async fn explain(bound: BoundQuery, cx: QueryContext) -> Result<Explained, MySqlError> {
    let engine = cx.engine.clone();
    let (killed, interruption) = (cx.killed.clone(), cx.interruption.clone());
    let mut task = engine.handle().spawn(async move {
        let shared = Shared::new(cx, &bound.rel, true, None);
        let _end = End(shared.clone());
        physical(&shared, bound.rel, None).await.map(|plan| explain::explained(plan.physical.as_ref(), plan.degree, &shared))
    });
    let explained = tokio::select! {
        explained = &mut task => explained,
        () = killed_for(&killed, PATIENCE) => {
            // It ends once the planner lets go.
            task.abort();
            return Err(interruption());
        }
    };
    match explained {
        Ok(Ok(explained)) => Ok(explained),
        Ok(Err(error)) => Err(to_mysql(&error)),
        Err(_) => Err(to_mysql(&DataFusionError::Internal("the query panicked while it was planned".into()))),
    }
}
