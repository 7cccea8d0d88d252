//! What a running query knows of its session.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::{Arc, OnceLock, Weak};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::LogicalPlan;
use highkey_table::Snapshot;
use highkey_types::{MySqlError, TimeZone, Value, Warning, errors};
use parking_lot::{Mutex, MutexGuard};

use super::activity::QueryActivity;
use super::aside;
use super::engine::{Planning, QueryEngine, SPILLING_BATCH_ROWS};
use super::error::{is_of_rows, user};
use super::kept::{KeptPlan, PlanSlot};
use super::materialize::MaterializedCte;
use super::memory::OwnMemory;
use super::parameters::Parameters;
use super::parallel::{OrderWatch, ParallelSettings, SerialReason, TakenWorkers, has_steps};
use crate::expr::{EvalContext, Raised, SharedContext};
use crate::measure::Profile;
use crate::plan::{Expr, Rel, VirtualTable, Wanted, describe_expr};
use crate::session::blocking;

/// A query that failed when it had read so many rows at most is run again row by row, for so long.
const MOST_RETRACED: u64 = 10_000;
const MOST_RETRACING: Duration = Duration::from_secs(1);

/// Makes the rows of an information_schema table, at least those about the tables asked about.
pub type VirtualRows = Arc<dyn Fn(&VirtualTable, &Wanted) -> Result<Vec<Vec<Value>>, MySqlError> + Send + Sync>;

/// What the session gives to a query.
pub struct QueryContext {
    pub engine: Arc<QueryEngine>,
    /// The view that scans read under; it contains the transaction's own writes.
    pub snapshot: Snapshot,
    /// The surroundings of expressions, owned by the query: warnings and user variables are taken from it when the query has ended.
    pub eval: Arc<Mutex<dyn SharedContext>>,
    pub virtual_rows: VirtualRows,
    /// Makes `eval` what it was: the query starts anew, on one thread or with operators that spill.
    pub start_over: Arc<dyn Fn() + Send + Sync>,
    /// Raised by KILL and by max_execution_time; `interruption` tells which.
    pub killed: Arc<AtomicBool>,
    /// The error of a raised `killed`: 1317, or 3024 after max_execution_time.
    pub interruption: Arc<dyn Fn() -> MySqlError + Send + Sync>,
    /// Counts the rows that scans read.
    pub examined: Arc<AtomicU64>,
    /// Tells others what the query is at.
    pub activity: Arc<QueryActivity>,
    /// `cte_max_recursion_depth`.
    pub recursion_limit: u64,
    /// `group_concat_max_len`.
    pub group_concat_max_len: u64,
    pub parallel: ParallelSettings,
    /// EXPLAIN ANALYZE: where the query tells what its operators do.
    pub profile: Option<Profile>,
    /// Where the plan is kept for the next execution, and was by the last one.
    pub slot: Option<Arc<PlanSlot>>,
}

/// Of a subquery that was run before a row needed it.
#[derive(Debug)]
pub(super) struct EarlyFailure {
    error: Arc<DataFusionError>,
    /// At the query.
    attempt: usize,
    /// Until a row needs it.
    raised: Mutex<Raised>,
}

/// One of those that are counted, until it is done or nobody wants it.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn begin(count: &'a AtomicUsize) -> Counted<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The query that a plan's functions and scans work for. A plan that is kept between executions works for one after the other, and holds nothing of
/// any of them meanwhile. Equal to itself only.
#[derive(Debug, Default)]
pub(super) struct Owner(Mutex<Weak<Shared>>);

impl Owner {
    /// Error 1317 if it has ended.
    pub fn shared(&self) -> DfResult<Arc<Shared>> {
        self.0.lock().upgrade().ok_or_else(|| user(killed_error()))
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Owner) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Owner {}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self, state);
    }
}

/// A query's context, shared by its operators.
pub(super) struct Shared {
    pub engine: Arc<QueryEngine>,
    pub snapshot: Snapshot,
    pub eval: Arc<Mutex<dyn SharedContext>>,
    /// Those that no thread has just now.
    copies: Mutex<Vec<Box<dyn SharedContext>>>,
    /// The first warning of several threads.
    first_warning: Mutex<Option<Warning>>,
    /// Has the warnings of a subquery that is run while the query is planned.
    early: Mutex<Option<Box<dyn SharedContext>>>,
    /// Subqueries that are run so; those in them, too.
    early_runs: AtomicUsize,
    /// By their numbers.
    failures: Mutex<HashMap<usize, Arc<EarlyFailure>>>,
    attempt: AtomicUsize,
    /// Nobody wants its rows any more.
    ended: AtomicBool,
    pub virtual_rows: VirtualRows,
    pub time_zone: TimeZone,
    pub recursion_limit: u64,
    pub group_concat_max_len: u64,
    pub examined: Arc<AtomicU64>,
    pub activity: Arc<QueryActivity>,
    pub profile: Option<Profile>,
    start_over: Arc<dyn Fn() + Send + Sync>,
    killed: Arc<AtomicBool>,
    interruption: Arc<dyn Fn() -> MySqlError + Send + Sync>,
    names: AtomicUsize,
    /// Tells operators to watch for answers that the order of rows shows in.
    pub order: OrderWatch,
    parallel: ParallelSettings,
    /// Threads that the query may have; 1 is serial.
    wanted: usize,
    serial_reason: Option<SerialReason>,
    taken: Mutex<Option<TakenWorkers>>,
    /// Held by the part of the query that asks for them.
    taking: tokio::sync::Mutex<()>,
    /// There were no workers when it asked, or it has given them back: it does not wait for them again.
    refused: AtomicBool,
    /// The order in which rows come shows in the answer: they come as on one thread.
    in_order: AtomicBool,
    /// Plans that are being made now whose rows must come in the order of the tables.
    ordered_plans: AtomicUsize,
    /// Every row's values may depend on what was evaluated before it: nothing is done beside anything else.
    has_steps: bool,
    /// It calls functions that the session runs, or assigns variables: what is evaluated for a row comes before the next one.
    pub one_by_one: bool,
    /// It calls functions that the session runs.
    pub calls_session: bool,
    /// How often memory ran out before this attempt.
    spilling: AtomicUsize,
    /// Of the last attempt, if others have left no memory.
    own_memory: OnceLock<OwnMemory>,
    /// The attempt before has failed, and this one finds out behind which warnings: until then.
    by_row: OnceLock<Instant>,
    /// What the attempt runs is planned.
    executes: AtomicBool,
    /// Rows that the statement had read before it.
    examined_before: u64,
    /// The common table expressions whose rows this attempt makes once, by their ids. They hold this context: it lets go of them when it ends.
    ctes: Mutex<HashMap<usize, Arc<MaterializedCte>>>,
    /// EXPLAIN: subqueries are planned, not run.
    pub explain: bool,
    /// For EXPLAIN: how constants were written that a plan has in a form that compares, by their Debug form.
    constants: Mutex<HashMap<String, String>>,
    /// What its plan knows it by.
    pub owner: Arc<Owner>,
    /// The constants that its plan is made without.
    pub parameters: Parameters,
    /// Its plan holds what is this execution's only.
    for_once: AtomicBool,
    /// Its plan runs others when it is executed.
    runs_inside: AtomicBool,
}

impl Shared {
    /// `kept`: the plan that it is to be executed by, if that may be.
    pub fn new(cx: QueryContext, rel: &Rel, explain: bool, kept: Option<&KeptPlan>) -> Arc<Shared> {
        let (owner, order) = kept.map(|kept| (kept.owner.clone(), kept.order.clone())).unwrap_or_default();
        order.stop();
        let time_zone = cx.eval.lock().time_zone().clone();
        let wanted = cx.parallel.wanted();
        let in_order = cx.parallel.shows_order(rel);
        let examined_before = cx.examined.load(Ordering::Relaxed);
        let parameters = Parameters::of(cx.slot.as_ref(), rel);
        let shared = Arc::new(Shared {
            engine: cx.engine,
            snapshot: cx.snapshot,
            eval: cx.eval,
            copies: Mutex::default(),
            first_warning: Mutex::default(),
            early: Mutex::default(),
            early_runs: AtomicUsize::new(0),
            failures: Mutex::default(),
            attempt: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            virtual_rows: cx.virtual_rows,
            time_zone,
            recursion_limit: cx.recursion_limit,
            group_concat_max_len: cx.group_concat_max_len,
            examined: cx.examined,
            activity: cx.activity,
            profile: cx.profile,
            start_over: cx.start_over,
            killed: cx.killed,
            interruption: cx.interruption,
            names: AtomicUsize::new(0),
            order,
            parallel: cx.parallel,
            wanted: wanted.unwrap_or(1),
            serial_reason: wanted.err(),
            taken: Mutex::default(),
            taking: tokio::sync::Mutex::default(),
            refused: AtomicBool::new(false),
            in_order: AtomicBool::new(in_order),
            ordered_plans: AtomicUsize::new(0),
            has_steps: has_steps(rel),
            one_by_one: rel.calls_session() || rel.assigns_variables(),
            calls_session: rel.calls_session(),
            spilling: AtomicUsize::new(0),
            own_memory: OnceLock::new(),
            by_row: OnceLock::new(),
            executes: AtomicBool::new(false),
            examined_before,
            ctes: Mutex::default(),
            explain,
            constants: Mutex::default(),
            owner,
            parameters,
            for_once: AtomicBool::new(false),
            runs_inside: AtomicBool::new(false),
        });
        *shared.owner.0.lock() = Arc::downgrade(&shared);
        shared
    }

    /// Its plan has become part of this execution: rows of the session, values of subqueries, what has the query itself. Such a plan is not kept.
    pub fn plan_for_once(&self) {
        self.for_once.store(true, Ordering::Relaxed);
    }

    pub fn is_for_once(&self) -> bool {
        self.for_once.load(Ordering::Relaxed)
    }

    /// The same, of a plan that runs others for its rows.
    pub fn plan_runs_inside(&self) {
        self.plan_for_once();
        self.runs_inside.store(true, Ordering::Relaxed);
    }

    pub fn runs_inside(&self) -> bool {
        self.runs_inside.load(Ordering::Relaxed)
    }

    /// Another attempt gives the same rows.
    pub fn may_give_rows_again(&self) -> bool {
        !self.has_steps && !self.calls_session
    }

    /// Ends the query if it was killed, or what a thread works for if nobody wants it any more. Every source of rows asks once per batch.
    pub fn check_killed(&self) -> DfResult<()> {
        if self.killed.load(Ordering::Relaxed) {
            return Err(user((self.interruption)()));
        }
        let is_late = self.by_row.get().is_some_and(|until| Instant::now() > *until);
        if is_late || self.ended.load(Ordering::Relaxed) || aside::is_unwanted() {
            return Err(user(killed_error()));
        }
        Ok(())
    }

    /// What still runs for the query is for nobody.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.forget_ctes();
    }

    /// The common table expression of this id, if it is known already.
    pub fn cte(&self, id: usize) -> Option<Arc<MaterializedCte>> {
        self.ctes.lock().get(&id).cloned()
    }

    /// Keeps a common table expression for all who read it; another thread may have been first.
    pub fn keep_cte(&self, id: usize, cte: MaterializedCte) -> DfResult<Arc<MaterializedCte>> {
        let mut ctes = self.ctes.lock();
        // Nobody would let go of it after the end, which is noted before they are forgotten.
        self.check_killed()?;
        Ok(ctes.entry(id).or_insert_with(|| Arc::new(cte)).clone())
    }

    fn forget_ctes(&self) {
        // Dropped without the latch.
        let ctes = std::mem::take(&mut *self.ctes.lock());
        drop(ctes);
    }

    /// Which attempt at the query this is.
    pub fn attempt(&self) -> usize {
        self.attempt.load(Ordering::Relaxed)
    }

    /// The session's surroundings. Who has them may be waiting for a query of a stored function, which needs a thread: whoever waits for them leaves its other
    /// tasks to other threads.
    pub fn surroundings(&self) -> MutexGuard<'_, dyn SharedContext + 'static> {
        self.eval.try_lock().unwrap_or_else(|| blocking(|| self.eval.lock()))
    }

    /// Evaluates something in the session's surroundings, beside other threads that do so, for an attempt at the query. With steps there is one
    /// thread, and what it evaluates sees what it did before.
    pub fn evaluate<T>(&self, attempt: usize, evaluate: impl FnOnce(&mut dyn EvalContext) -> T) -> T {
        if self.has_steps {
            return evaluate(&mut *self.surroundings());
        }
        let copy = self.copies.lock().pop();
        let mut copy = copy.unwrap_or_else(|| self.surroundings().copy());
        let result = evaluate(&mut *copy);
        let raised = copy.take_raised();
        self.copies.lock().push(copy);
        self.raise(attempt, raised);
        result
    }

    /// The same for what may depend on no row (`is_constant`): there, what strict DML refuses is an error, as planning asks for values that no row may need. Planning
    /// goes on after an error, and leaves the expression to whoever needs it.
    pub fn evaluate_wrapped<T>(&self, attempt: usize, is_constant: bool, evaluate: impl FnOnce(&mut dyn EvalContext) -> DfResult<T>) -> DfResult<T> {
        if !is_constant {
            return self.evaluate(attempt, evaluate);
        }
        let mut copy = self.unheard();
        let value = evaluate(&mut *copy);
        let mut raised = copy.take_raised();
        if value.is_err() && self.executes.load(Ordering::Relaxed) {
            self.raise(attempt, raised);
            return value;
        }
        let value = value?;
        if let Some(error) = raised.strict.take() {
            return Err(user(error));
        }
        self.raise(attempt, raised);
        Ok(value)
    }

    /// Surroundings whose warnings nobody hears: for estimates.
    pub fn unheard(&self) -> Box<dyn SharedContext> {
        self.surroundings().copy()
    }

    /// What a row does not need must not be evaluated for it: `EvalContext::warnings_are_errors`.
    pub fn warnings_are_errors(&self) -> bool {
        self.surroundings().warnings_are_errors()
    }

    /// Adds warnings to the statement's list; or to those of the piece that the thread works on, which come when its rows do.
    pub fn raise(&self, attempt: usize, raised: Raised) {
        if raised.is_empty() {
            return;
        }
        let Some(raised) = aside::put(raised) else { return };
        if let Some(early) = &mut *self.early.lock() {
            if attempt == self.attempt() {
                early.add_raised(raised);
            }
            return;
        }
        if self.order.is_watching() {
            // SHOW WARNINGS has them in the order of the rows.
            let mut first = self.first_warning.lock();
            let strict = raised.strict.clone().map(Warning::warning);
            for warning in raised.first.iter().chain(&strict) {
                let first = first.get_or_insert_with(|| warning.clone());
                if (warning.code, &warning.message) != (first.code, &first.message) {
                    self.order.raise();
                    break;
                }
            }
        }
        let mut eval = self.surroundings();
        // A thread of the attempt before may still be at it.
        if attempt == self.attempt() {
            eval.add_raised(raised);
        }
    }

    /// Runs a subquery, of this plan, before a row needs it. The inner error: it fails, as it does (`fail`) for the row that needs it, if there is one. Until then
    /// nobody hears what it warned of. But that is with the statement's warnings at once where the query's rows are read already, or it has steps; where it is run for
    /// another such subquery, which several threads may do; and where it may be the first to make rows that others read, too, who do not make them again.
    pub fn run_early<T>(&self, plan: &Rel, run: impl FnOnce() -> DfResult<T>) -> DfResult<Result<T, Arc<EarlyFailure>>> {
        let attempt = self.attempt();
        let _run = Counted::begin(&self.early_runs);
        let apart = !self.executes.load(Ordering::Relaxed) && self.early_runs.load(Ordering::Relaxed) == 1 && !plan.makes_shared_rows();
        if apart {
            let early = self.unheard();
            *self.early.lock() = Some(early);
        }
        let outcome = run();
        let early = if apart { self.early.lock().take() } else { None };
        let raised = early.map_or_else(Raised::default, |mut early| early.take_raised());
        match outcome {
            Err(error) if is_of_rows(&error) => Ok(Err(Arc::new(EarlyFailure { error: Arc::new(error), attempt, raised: Mutex::new(raised) }))),
            outcome => {
                self.raise(attempt, raised);
                outcome.map(Ok)
            }
        }
    }

    /// Keeps it for `early_failure`.
    pub fn note_failure(&self, number: usize, failure: Arc<EarlyFailure>) {
        self.failures.lock().insert(number, failure);
    }

    /// Of the subquery of that number, which has failed.
    pub fn early_failure(&self, number: usize) -> DfResult<Arc<EarlyFailure>> {
        // What is left of the attempt before is for nobody.
        self.failures.lock().get(&number).cloned().ok_or_else(|| user(killed_error()))
    }

    /// A row needs the subquery that has failed: its error, and the first time its warnings.
    pub fn fail(&self, failure: &EarlyFailure) -> DataFusionError {
        let raised = std::mem::take(&mut *failure.raised.lock());
        self.raise(failure.attempt, raised);
        DataFusionError::Shared(failure.error.clone())
    }

    /// How plans that run for a row, or that nobody decided about, are made: on one thread.
    pub fn serial_state(&self, plan: &LogicalPlan) -> Arc<SessionState> {
        self.engine.state(self.planning(1, plan))
    }

    /// The query starts anew if the order of its rows shows; with steps it has one thread and one order.
    pub fn watch_order(&self) {
        if !self.has_steps && !self.is_by_row() {
            self.order.watch();
        }
    }

    /// True if rows may be read in another order than that of the table: where it shows, the query starts anew, in order ([`Shared::watch_order`]).
    pub fn may_change_order(&self) -> bool {
        !self.in_order() && !self.has_steps && !self.is_by_row() && self.ordered_plans.load(Ordering::Relaxed) == 0
    }

    /// Makes a plan whose rows come in the order of the tables. Another one that is made meanwhile is in that order, too.
    pub async fn ordered_plan<T>(&self, make: impl Future<Output = T>) -> T {
        let _ordered = Counted::begin(&self.ordered_plans);
        make.await
    }

    /// True if rows must come in the order in which one thread would read them.
    pub fn in_order(&self) -> bool {
        self.in_order.load(Ordering::Relaxed)
    }

    /// How a plan that costs so much is made: on as many threads as it may have and are free, or on one, and why. The first plan of
    /// the query that pays for workers takes them, for all. `divisible`: nothing in the plan itself keeps it on one thread.
    pub async fn degree(&self, cost: f64, divisible: bool) -> Result<usize, SerialReason> {
        if let Some(reason) = self.serial_reason {
            return Err(reason);
        }
        if self.has_steps || self.is_by_row() {
            return Err(SerialReason::Order);
        }
        if !divisible {
            return self.taken().ok_or(SerialReason::Order);
        }
        if cost < self.parallel.cost_threshold as f64 {
            return Err(SerialReason::Cost);
        }
        let _taking = self.taking.lock().await;
        // Another part of the query may have them already.
        if let Some(count) = self.taken() {
            return Ok(count);
        }
        if self.explain {
            let count = self.wanted.min(self.parallel.max_workers);
            if count < 2 {
                return Err(SerialReason::Workers);
            }
            *self.taken.lock() = Some(TakenWorkers::for_show(count));
            return Ok(count);
        }
        if self.refused.load(Ordering::Relaxed) {
            return Err(SerialReason::Workers);
        }
        let killed = || self.check_killed().is_err();
        let taken = self.engine.workers().take(self.wanted, self.parallel.max_workers, self.parallel.queue_timeout, killed).await;
        let Some(taken) = taken else {
            self.refused.store(true, Ordering::Relaxed);
            return Err(SerialReason::Workers);
        };
        let count = taken.count;
        *self.taken.lock() = Some(taken);
        Ok(count)
    }

    /// How many workers the query has, if some part of it has taken them.
    fn taken(&self) -> Option<usize> {
        self.taken.lock().as_ref().map(|taken| taken.count)
    }

    /// Even a scan of few rows is cut into pieces: `parallel_cost_threshold` is 0.
    pub fn cuts_small_scans(&self) -> bool {
        self.parallel.cost_threshold == 0
    }

    /// The scan of this table may be divided: no hint names others.
    pub fn divides(&self, alias: &str) -> bool {
        self.parallel.hint.divides(alias)
    }

    /// How a plan for so many threads is made.
    pub fn planning(&self, degree: usize, plan: &LogicalPlan) -> Planning {
        let windows = plan.exists(|node| Ok(matches!(node, LogicalPlan::Window(_)))).unwrap_or(false);
        Planning {
            degree,
            spilling: self.spilling.load(Ordering::Relaxed),
            windows,
            by_row: self.calls_session || self.is_by_row(),
            own_memory: self.own_memory.get().is_some(),
        }
    }

    /// Where the attempt counts what it keeps.
    pub fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        self.own_memory.get().map_or(self.engine.memory_pool(), |own| &own.environment.memory_pool)
    }

    /// What a plan that was made under `state` runs in.
    pub fn task_context(&self, state: &SessionState) -> Arc<TaskContext> {
        let context = TaskContext::from(state);
        Arc::new(match self.own_memory.get() {
            Some(own) => context.with_runtime(own.environment.clone()),
            None => context,
        })
    }

    /// The query is planned again in the same attempt, as if it had not been planned yet.
    pub fn plan_again(&self) {
        self.for_once.store(false, Ordering::Relaxed);
        self.runs_inside.store(false, Ordering::Relaxed);
        self.forget_ctes();
        (self.start_over)();
    }

    fn start_anew(&self) {
        self.attempt.fetch_add(1, Ordering::Relaxed);
        self.executes.store(false, Ordering::Relaxed);
        *self.first_warning.lock() = None;
        *self.early.lock() = None;
        self.failures.lock().clear();
        self.forget_ctes();
        (self.start_over)();
    }

    /// Memory ran out before: operators spill.
    pub fn is_spilling(&self) -> bool {
        self.spilling.load(Ordering::Relaxed) > 0
    }

    /// Threads of a plan that may have so many: with batches of a few long rows, one leaves its operators the most memory.
    pub fn threads(&self, degree: Result<usize, SerialReason>) -> usize {
        if self.spilling.load(Ordering::Relaxed) < SPILLING_BATCH_ROWS.len() { degree.unwrap_or(1) } else { 1 }
    }

    /// Prepares another attempt, with operators that spill and smaller batches, at last in memory that no other query takes it; false if this was the last.
    pub async fn start_spilling(&self) -> bool {
        if self.spilling.load(Ordering::Relaxed) < SPILLING_BATCH_ROWS.len() {
            self.spilling.fetch_add(1, Ordering::Relaxed);
        } else {
            if self.own_memory.get().is_some() {
                return false;
            }
            // It runs on one thread now, and keeps no workers from others while it waits for them.
            self.refused.store(true, Ordering::Relaxed);
            drop(self.taken.lock().take());
            let Some(own) = self.engine.own_memory(|| self.check_killed().is_err()).await else { return false };
            let _ = self.own_memory.set(own);
        }
        self.start_anew();
        true
    }

    /// Prepares another attempt, with the rows in their order; false if this was it.
    pub fn start_in_order(&self) -> bool {
        self.start_anew();
        self.order.stop();
        !self.in_order.swap(true, Ordering::Relaxed)
    }

    /// Prepares another attempt that evaluates row by row, as MySQL does, after one that a row has failed: false if it read too much for that, or if its expressions
    /// must not be evaluated again.
    pub fn start_by_row(&self) -> bool {
        let read = self.examined.load(Ordering::Relaxed).saturating_sub(self.examined_before);
        if self.has_steps || self.calls_session || read > MOST_RETRACED || self.by_row.set(Instant::now() + MOST_RETRACING).is_err() {
            return false;
        }
        self.start_anew();
        self.order.stop();
        true
    }

    fn is_by_row(&self) -> bool {
        self.by_row.get().is_some()
    }

    /// The attempt's plan is ready: what is evaluated from here on is for rows.
    pub fn begin_rows(&self) {
        self.executes.store(true, Ordering::Relaxed);
    }

    /// The plan has `constant` where the literal `written` was. Integers are what they look like.
    pub fn note_constant(&self, constant: &ScalarValue, written: &Expr) {
        let coded = match constant {
            ScalarValue::BinaryView(Some(_)) => true,
            ScalarValue::Int32(Some(_)) | ScalarValue::Int64(Some(_)) => !matches!(written.as_literal(), Some(Value::Int(_) | Value::UInt(_))),
            _ => false,
        };
        if coded && (self.explain || self.profile.is_some()) {
            self.constants.lock().entry(format!("{constant:?}")).or_insert_with(|| describe_expr(written, &[]));
        }
    }

    /// What [`Shared::note_constant`] has noted.
    pub fn constants(&self) -> HashMap<String, String> {
        self.constants.lock().clone()
    }

    /// A name that nothing else in the query's plans has.
    pub fn name(&self, hint: &str) -> String {
        let n = self.names.fetch_add(1, Ordering::Relaxed);
        format!("{hint}#{n}")
    }

    pub fn next_id(&self) -> usize {
        self.names.fetch_add(1, Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

/// 1317, for a context whose only interruption is KILL QUERY.
pub fn killed_error() -> MySqlError {
    errors::query_interrupted()
}
