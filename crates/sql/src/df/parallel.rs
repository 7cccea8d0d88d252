//! Which queries run on several threads, on how many, and why the others do not.
//!
//! Workers read rows in any order where the answer does not depend on it; where it does, their rows are put in the order of one thread
//! (`super::in_order`). What shows the order is known from the plan (`shows_order`), or only from the rows: the text that stands for a group
//! whose texts differ, a sum of doubles that was rounded. Such operators carry an [`OrderWatch`]; when it is raised the query starts anew, in order
//! (`super::run`).

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::LOOK_FOR_KILL;
use crate::plan::{AggregateFunc, Expr, ExprKind, PqHint, Rel, RelKind, SetOperator, WindowFunc};

/// Why a query stays on one thread; counted in `PQ_serial_<reason>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialReason {
    /// `force_parallel_execute` is off, or a degree of 0 or 1 was asked for.
    Disabled,
    /// The hint NO_PQ.
    Hint,
    /// It reads less than `parallel_cost_threshold`.
    Cost,
    /// No worker was free within `parallel_queue_timeout`.
    Workers,
    /// Its answer depends on the order of the rows, and no scan of it can be shared in order, or it evaluates what must be evaluated row by row.
    Order,
    /// The fast path has read its rows, so many that DataFusion would have shared them out.
    FastPath,
}

impl SerialReason {
    pub const ALL: [SerialReason; 6] =
        [SerialReason::Disabled, SerialReason::Hint, SerialReason::Cost, SerialReason::Workers, SerialReason::Order, SerialReason::FastPath];

    /// As in `PQ_serial_<reason>`.
    pub fn name(self) -> &'static str {
        match self {
            SerialReason::Disabled => "disabled",
            SerialReason::Hint => "hint",
            SerialReason::Cost => "cost",
            SerialReason::Workers => "workers",
            SerialReason::Order => "order",
            SerialReason::FastPath => "fast_path",
        }
    }

    /// As EXPLAIN says it.
    pub fn explanation(self) -> &'static str {
        match self {
            SerialReason::Disabled => "parallel execution is switched off",
            SerialReason::Hint => "NO_PQ",
            SerialReason::Cost => "cost below parallel_cost_threshold",
            SerialReason::Workers => "no free workers",
            SerialReason::Order => "the answer depends on the order of the rows",
            SerialReason::FastPath => "the fast path",
        }
    }
}

/// What a session asks of its queries.
#[derive(Clone, Debug)]
pub struct ParallelSettings {
    /// `force_parallel_execute`.
    pub enabled: bool,
    /// `parallel_default_dop`; 0 and 1 are serial.
    pub default_degree: usize,
    /// `parallel_cost_threshold`; 0 is always.
    pub cost_threshold: u64,
    /// `parallel_max_threads`: workers of all queries together.
    pub max_workers: usize,
    /// `parallel_queue_timeout`: how long to wait for workers.
    pub queue_timeout: Duration,
    /// PQ and NO_PQ.
    pub hint: PqHint,
    /// As of `BoundQuery`.
    pub ordered: bool,
}

impl ParallelSettings {
    /// Everything on one thread.
    #[cfg(test)]
    pub fn serial() -> ParallelSettings {
        ParallelSettings {
            enabled: false,
            default_degree: 1,
            cost_threshold: 0,
            max_workers: 0,
            queue_timeout: Duration::ZERO,
            hint: PqHint::Unset,
            ordered: false,
        }
    }

    /// A query with that hint may have several threads.
    pub fn wants_several(&self, hint: &PqHint) -> bool {
        match hint {
            PqHint::Off => false,
            PqHint::On { workers, .. } => workers.is_none_or(|workers| workers > 1),
            PqHint::Unset => self.enabled && self.default_degree > 1,
        }
    }

    /// How many threads a query should have, from what is known before it is planned.
    pub fn wanted(&self) -> Result<usize, SerialReason> {
        let degree = match &self.hint {
            PqHint::Off => return Err(SerialReason::Hint),
            PqHint::On { workers: Some(n), .. } => *n as usize,
            // The hint turns it on, as in GreatSQL.
            PqHint::On { workers: None, .. } => self.default_degree.max(2),
            PqHint::Unset if !self.enabled => return Err(SerialReason::Disabled),
            PqHint::Unset => self.default_degree,
        };
        if degree <= 1 {
            return Err(SerialReason::Disabled);
        }
        Ok(degree)
    }

    /// True if the order in which rows come shows in the query's answer.
    pub fn shows_order(&self, rel: &Rel) -> bool {
        shows_order(rel, !self.ordered && !gives_rows_as_read(rel)) || is_sorted_below(rel, false)
    }
}

/// True if rows come to the client as the scans give them: nothing between sorts or groups them. MySQL gives them in the order of an index then,
/// and its users have come to expect it.
fn gives_rows_as_read(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::Values { .. } | RelKind::Kept { .. } | RelKind::Join { .. } | RelKind::RecursiveCte { .. }
        | RelKind::CteScan { .. } | RelKind::Apply { .. } | RelKind::JsonTable { .. } => true,
        RelKind::Filter { input, .. }
        | RelKind::Project { input, .. }
        | RelKind::Window { input, .. }
        | RelKind::Limit { input, .. }
        | RelKind::MaterializedCte { plan: input, .. } => gives_rows_as_read(input),
        RelKind::Aggregate { .. } | RelKind::Sort { .. } | RelKind::Distinct { .. } => false,
        RelKind::SetOperation { all, inputs, .. } => *all && inputs.iter().any(gives_rows_as_read),
    }
}

/// True if rows of a derived table with an ORDER BY, which MySQL keeps, are `joined` after it: with a subquery.
fn is_sorted_below(rel: &Rel, joined: bool) -> bool {
    match &rel.kind {
        RelKind::Project { input, exprs } => is_sorted_below(input, joined || exprs.iter().any(Expr::has_subquery)),
        RelKind::Filter { input, predicate } => is_sorted_below(input, joined || predicate.has_subquery()),
        RelKind::Limit { input, .. } | RelKind::MaterializedCte { plan: input, .. } => is_sorted_below(input, joined),
        RelKind::SetOperation { all: true, inputs, .. } => inputs.iter().any(|input| is_sorted_below(input, joined)),
        RelKind::Sort { .. } => joined,
        _ => false,
    }
}

/// True if another order of the rows that scans give could change the answer. `free`: the order of this relation's own rows is not seen.
fn shows_order(rel: &Rel, free: bool) -> bool {
    let mut seen = false;
    match &rel.kind {
        // LIMIT takes the first rows: which they are must be said by a sort below it.
        RelKind::Limit { input, .. } => return first_rows_show_order(input) || shows_order(input, true),
        RelKind::Sort { input, keys } => return keys.iter().any(|key| depends_on_order(&key.expr)) || shows_order(input, true),
        RelKind::Aggregate { input, groups, aggregates, rollup } => {
            let ordered = |func: AggregateFunc| {
                use AggregateFunc as A;
                matches!(func, A::GroupConcat | A::JsonArrayAgg | A::JsonObjectAgg | A::StddevPop | A::StddevSamp | A::VarPop | A::VarSamp)
            };
            seen |= aggregates.iter().any(|a| ordered(a.func) || a.args.iter().any(depends_on_order)) || groups.iter().any(depends_on_order);
            // Groups come out in no order, which matters only to one who sees it; ROLLUP's come sorted.
            // Of texts that are the same in their collation, one is taken as the number.
            seen |= aggregates.iter().any(|a| a.distinct && matches!(a.func, AggregateFunc::Sum | AggregateFunc::Avg) && a.args.iter().any(reads_text));
            return seen || (!free && !groups.is_empty() && !rollup) || shows_order(input, true);
        }
        RelKind::Distinct { input } => return !free || shows_order(input, true),
        RelKind::SetOperation { op, all, inputs } => {
            // INTERSECT ALL and EXCEPT ALL keep as many of equal rows as they should, whichever they are.
            if *all && *op != SetOperator::Union {
                return true;
            }
            let hashed = !*all;
            return (hashed && !free) || inputs.iter().any(|input| shows_order(input, free || hashed));
        }
        RelKind::Window { input, windows } => {
            // Rows that are peers to a window get the same from these, whoever of them comes first.
            let by_peers = |func: &WindowFunc| matches!(func, WindowFunc::Rank | WindowFunc::DenseRank | WindowFunc::PercentRank | WindowFunc::CumeDist);
            seen |= windows.iter().any(|w| {
                let keys = w.partition_by.iter().chain(w.order_by.iter().map(|key| &key.expr));
                !by_peers(&w.func) || w.args.iter().chain(keys).any(depends_on_order)
            });
            seen |= !free;
            return seen || shows_order(input, true);
        }
        RelKind::RecursiveCte { .. } | RelKind::CteScan { .. } => return true,
        RelKind::Filter { predicate, .. } => seen |= depends_on_order(predicate),
        RelKind::Project { exprs, .. } => seen |= exprs.iter().any(depends_on_order),
        RelKind::Join { on, .. } => seen |= !free || on.as_ref().is_some_and(depends_on_order),
        RelKind::Scan { .. } => seen |= !free,
        RelKind::Apply { made, .. } => seen |= !free || depends_on_order(made),
        RelKind::JsonTable { document, .. } => seen |= depends_on_order(document),
        RelKind::Values { .. } | RelKind::Kept { .. } | RelKind::Virtual { .. } | RelKind::MaterializedCte { .. } => {}
    }
    seen || rel.inputs().iter().any(|input| shows_order(input, free))
}

/// True if which of a relation's rows come first depends on the order in which scans give theirs.
pub(super) fn first_rows_show_order(rel: &Rel) -> bool {
    !is_sorted(rel) && !is_one_row(rel)
}

fn is_sorted(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Sort { .. } => true,
        RelKind::Project { input, .. } | RelKind::Filter { input, .. } | RelKind::Limit { input, .. } => is_sorted(input),
        _ => false,
    }
}

fn is_one_row(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Aggregate { groups, .. } => groups.is_empty(),
        RelKind::Values { rows } => rows.len() <= 1,
        RelKind::Kept { rows } => rows.count() <= 1,
        RelKind::Project { input, .. } | RelKind::Filter { input, .. } | RelKind::Limit { input, .. } | RelKind::MaterializedCte { plan: input, .. } => is_one_row(input),
        _ => false,
    }
}

fn reads_text(expr: &Expr) -> bool {
    let mut text = false;
    expr.walk(&mut |e| text |= e.ty.ty.is_text());
    text
}

/// True if some expression assigns a variable or gives another value each time: rows must be evaluated one after the other.
pub(super) fn has_steps(rel: &Rel) -> bool {
    let mut steps = false;
    rel.for_each_expr(&mut |e, _| steps |= e.is_volatile_itself());
    steps
}

/// True if the value of an expression depends on which rows were evaluated before.
fn depends_on_order(expr: &Expr) -> bool {
    let mut depends = false;
    expr.walk(&mut |e| {
        depends |= e.is_volatile_itself() || matches!(&e.kind, ExprKind::Subquery(sub) if shows_order(&sub.plan, true));
    });
    depends
}

/// Tells whether the order of rows was seen in the answer of a query that runs in parallel. Clones are the same watch.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderWatch(Arc<WatchFlags>);

#[derive(Debug, Default)]
struct WatchFlags {
    watching: AtomicBool,
    raised: AtomicBool,
    /// For whoever waits for it.
    told: Notify,
}

impl OrderWatch {
    pub fn watch(&self) {
        self.0.watching.store(true, Ordering::Relaxed);
    }

    /// The query starts anew, with its rows in order.
    pub fn stop(&self) {
        self.0.watching.store(false, Ordering::Relaxed);
        self.0.raised.store(false, Ordering::Relaxed);
    }

    /// True if it matters: the query runs in parallel.
    pub fn is_watching(&self) -> bool {
        self.0.watching.load(Ordering::Relaxed)
    }

    /// Another order of the rows would have given something else.
    pub fn raise(&self) {
        if !self.0.raised.swap(true, Ordering::Relaxed) {
            self.0.told.notify_waiters();
        }
    }

    /// Waits until it is raised.
    pub async fn until_raised(&self) {
        loop {
            let told = self.0.told.notified();
            if self.is_raised() {
                return;
            }
            told.await;
        }
    }

    /// Never after `stop`, whatever is left of the attempt before still does.
    pub fn is_raised(&self) -> bool {
        self.is_watching() && self.0.raised.load(Ordering::Relaxed)
    }
}

impl PartialEq for OrderWatch {
    fn eq(&self, other: &OrderWatch) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for OrderWatch {}

impl Hash for OrderWatch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// Threads that parallel queries have taken, of all that they may.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    running: AtomicUsize,
    given_back: Notify,
    statements: AtomicU64,
    refused: AtomicU64,
    serial: [AtomicU64; SerialReason::ALL.len()],
}

impl Workers {
    /// Takes up to `wanted` workers while all queries together have at most `limit`, waiting up to `timeout` for at least two, or until
    /// `is_killed`.
    pub(super) async fn take(self: &Arc<Self>, wanted: usize, limit: usize, timeout: Duration, is_killed: impl Fn() -> bool) -> Option<TakenWorkers> {
        let deadline = Instant::now() + timeout;
        let mut refused = false;
        loop {
            let given_back = self.given_back.notified();
            if let Some(taken) = self.take_free(wanted, limit, true) {
                return Some(taken);
            }
            if !std::mem::replace(&mut refused, true) {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            let now = Instant::now();
            if limit < 2 || now >= deadline || is_killed() {
                return None;
            }
            let _ = tokio::time::timeout_at(deadline.min(now + LOOK_FOR_KILL).into(), given_back).await;
        }
    }

    /// As `take`, without waiting. `first`: the statement has got none before.
    pub(super) fn take_free(self: &Arc<Self>, wanted: usize, limit: usize, first: bool) -> Option<TakenWorkers> {
        let mut count = 0;
        let taken = self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |running| {
            count = wanted.min(limit.saturating_sub(running));
            (count >= 2).then_some(running + count)
        });
        taken.ok()?;
        self.statements.fetch_add(u64::from(first), Ordering::Relaxed);
        Some(TakenWorkers { workers: Some(self.clone()), count })
    }

    /// A query has stayed on one thread.
    pub fn stayed_serial(&self, reason: SerialReason) {
        self.serial[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// `PQ_threads_running`.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// `PQ_threads_refused`: statements that found too few free workers, whether they waited or not.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// `PQ_stmt_executed`: statements that got workers.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// `PQ_serial_<reason>`.
    pub fn serial(&self, reason: SerialReason) -> u64 {
        self.serial[reason as usize].load(Ordering::Relaxed)
    }
}

/// Workers of one query; dropping it gives them back.
#[derive(Debug)]
pub(super) struct TakenWorkers {
    /// Whose they are; none for EXPLAIN.
    workers: Option<Arc<Workers>>,
    pub count: usize,
}

impl TakenWorkers {
    /// What EXPLAIN says that a query would have.
    pub fn for_show(count: usize) -> TakenWorkers {
        TakenWorkers { workers: None, count }
    }
}

impl Drop for TakenWorkers {
    fn drop(&mut self) {
        if let Some(workers) = &self.workers {
            workers.running.fetch_sub(self.count, Ordering::Relaxed);
            workers.given_back.notify_waiters();
        }
    }
}
