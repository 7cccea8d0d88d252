//! Plans as EXPLAIN FORMAT=TREE prints them.

use std::sync::Arc;

use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, displayable};
use highkey_table::TableId;

use super::context::Shared;
use super::few_groups::FewGroupsExec;
use super::kept_rows::KeptRowsExec;
use super::lateral::ApplyExec;
use super::materialize::CteExec;
use super::parallel::SerialReason;
use super::scan::{ROW_COST, ScanExec};
use super::through::Through;
use super::wording::{Wording, plain_names};
use crate::measure::{Figures, Line};

/// A plan as EXPLAIN shows it.
pub struct Explained {
    /// FORMAT=TREE.
    pub lines: Vec<Line>,
    /// Its scans, in the order in which `lines` has them.
    pub scans: Vec<ShownScan>,
    /// Threads that it would run on.
    pub workers: usize,
    /// Some groups are collected in a table of all of them.
    pub collects_groups: bool,
}

/// How a plan reads a base table.
#[derive(Clone)]
pub struct ShownScan {
    pub table: TableId,
    pub alias: String,
    /// Position of the index whose ranges are read; `None`: all rows.
    pub index: Option<usize>,
    /// Position of the index of which all entries are read in place of the rows.
    pub entries: Option<usize>,
    /// The entries of the index are enough.
    pub covering: bool,
    /// An estimate of the rows that are read.
    pub rows: u64,
    /// Several threads share it.
    pub divided: bool,
    /// Indexes by which rows may be looked up instead, if a join has few keys.
    pub lookups: Vec<usize>,
}

pub(super) fn explained(plan: &dyn ExecutionPlan, degree: Result<usize, SerialReason>, shared: &Shared) -> Explained {
    let mut explained = Explained { lines: lines(plan, first_line(degree), shared), scans: Vec::new(), workers: degree.unwrap_or(1), collects_groups: false };
    look_into(plan, &mut explained, &mut Vec::new());
    explained
}

/// `made`: the common table expressions that have been looked into.
fn look_into(plan: &dyn ExecutionPlan, explained: &mut Explained, made: &mut Vec<usize>) {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        explained.scans.push(scan.shown());
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        explained.collects_groups |= !aggregate.group_expr().is_empty() && *aggregate.input_order_mode() == InputOrderMode::Linear;
    }
    if let Some(rows) = plan_of_cte(plan, made) {
        look_into(rows.as_ref(), explained, made);
    }
    if let Some(input) = plan.downcast_ref::<ApplyExec>().and_then(ApplyExec::input) {
        look_into(without_timing(input.as_ref()).0, explained, made);
    }
    for child in plan.children() {
        look_into(child.as_ref(), explained, made);
    }
}

/// What makes the rows that the operator reads of a common table expression, where it is the first that does.
pub(super) fn plan_of_cte(plan: &dyn ExecutionPlan, made: &mut Vec<usize>) -> Option<Arc<dyn ExecutionPlan>> {
    let cte = plan.downcast_ref::<CteExec>()?;
    if made.contains(&cte.id()) {
        return None;
    }
    made.push(cte.id());
    cte.plan()
}

/// The first line says on how many threads, or why on one.
pub(super) fn first_line(degree: Result<usize, SerialReason>) -> String {
    match degree {
        Ok(workers) => format!("Parallel execute ({workers} workers)"),
        Err(reason) => format!("Serial execute ({})", reason.explanation()),
    }
}

/// `first`, then one line per operator. Projections, batching and exchange operators are not shown: MySQL has no lines for them. A plan that tells what it does
/// (`timing`) has its figures in the lines; what is not shown is in those of the operator above.
pub(super) fn lines(plan: &dyn ExecutionPlan, first: String, shared: &Shared) -> Vec<Line> {
    let wording = Wording::of(plan, shared.constants());
    let (plan, figures) = without_timing(plan);
    let mut lines = vec![Line { depth: 0, text: first, figures }];
    add(plan, 1, &wording, &mut lines, &mut Vec::new());
    lines
}

/// It has a line.
pub(super) fn is_shown(plan: &dyn ExecutionPlan) -> bool {
    describe(plan, &Wording::default()).is_some()
}

/// What a plan is that tells what it does, and where it tells it.
pub(super) fn without_timing(plan: &dyn ExecutionPlan) -> (&dyn ExecutionPlan, Figures) {
    let (plan, figures) = match plan.downcast_ref::<Through>() {
        Some(through) => match through.measure() {
            Some(measure) => (through.input(), Figures::Of(measure.clone())),
            None => (plan, Figures::None),
        },
        None => (plan, Figures::None),
    };
    // The grouping that it stands for.
    (plan.downcast_ref::<FewGroupsExec>().map_or(plan, FewGroupsExec::shown), figures)
}

/// `made`: the common table expressions whose plans are shown.
fn add(plan: &dyn ExecutionPlan, depth: usize, wording: &Wording, lines: &mut Vec<Line>, made: &mut Vec<usize>) {
    let (plan, mut figures) = without_timing(plan);
    let mut depth = depth;
    if let Some(scan) = plan.downcast_ref::<ScanExec>()
        && !scan.conditions().is_empty()
    {
        let before = match &figures {
            Figures::Of(measure) => Figures::Read(measure.clone()),
            _ => Figures::None,
        };
        let filtered = std::mem::replace(&mut figures, before);
        lines.push(Line { depth, text: format!("Filter: {}", wording.all(scan.conditions())), figures: filtered });
        depth += 1;
    }
    let depth = match describe(plan, wording) {
        Some(text) => {
            lines.push(Line { depth, text, figures });
            depth + 1
        }
        None => depth,
    };
    if let Some(apply) = plan.downcast_ref::<ApplyExec>()
        && let Some(input) = apply.input()
    {
        add(input.as_ref(), depth, wording, lines, made);
        lines.push(Line::new(depth, apply.title()));
    }
    if let Some(cte) = plan.downcast_ref::<CteExec>() {
        match plan_of_cte(plan, made) {
            Some(rows) => {
                let (rows, figures) = without_timing(rows.as_ref());
                lines.push(Line { depth, text: cte.title().to_owned(), figures });
                add(rows, depth + 1, wording, lines, made);
            }
            None => lines.push(Line::new(depth, format!("{} (query plan printed elsewhere)", cte.title()))),
        }
    }
    // As MySQL has it: the side whose rows are looked up one by one, then the one that is built.
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        add(join.right().as_ref(), depth, wording, lines, made);
        lines.push(Line::new(depth, "Hash"));
        add(join.left().as_ref(), depth + 1, wording, lines, made);
        return;
    }
    for child in plan.children() {
        add(child.as_ref(), depth, wording, lines, made);
    }
}

fn describe(plan: &dyn ExecutionPlan, wording: &Wording) -> Option<String> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let rows = scan.row_estimate();
        return Some(format!("{}  (cost={:.2} rows={rows})", scan.describe(), rows as f64 * ROW_COST));
    }
    if let Some(cte) = plan.downcast_ref::<CteExec>() {
        return Some(format!("Table scan on {}", cte.alias()));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return Some(format!("Filter: {}", wording.all([filter.predicate()])));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let on = wording.join(join.on(), join.filter());
        return Some(format!("{} {on}", join_name(&join.join_type().to_string(), "hash join")));
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        let on = wording.join(join.on(), join.filter().as_ref());
        return Some(format!("{} {on}", join_name(&join.join_type().to_string(), "merge join")));
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        let on = wording.join(&[], join.filter());
        let on = if on.is_empty() { "(no condition)" } else { on.as_str() };
        return Some(format!("{} {on}", join_name(&join.join_type().to_string(), "nested loop join")));
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let limit = sort.fetch().map_or(String::new(), |n| format!(", limit input to {n} row(s) per chunk"));
        return Some(format!("Sort: {}{limit}", wording.keys(sort.expr().iter())));
    }
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        // That aggregates of all rows give one row need not be said.
        if limit.input().downcast_ref::<AggregateExec>().is_some_and(|aggregate| aggregate.group_expr().is_empty()) {
            return None;
        }
        let rows = limit.fetch().map_or("all".to_string(), |n| n.to_string());
        return Some(match limit.skip() {
            0 => format!("Limit: {rows} row(s)"),
            skip => format!("Limit/Offset: {rows}/{skip} row(s)"),
        });
    }
    if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        return Some(format!("Limit: {} row(s)", limit.fetch()));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let functions = wording.aggregates(aggregate);
        let how = match aggregate.group_expr().expr().len() {
            0 => "Aggregate",
            _ if aggregate.aggr_expr().is_empty() => return Some("Temporary table with deduplication".to_string()),
            _ if *aggregate.input_order_mode() != InputOrderMode::Linear => "Group aggregate",
            _ => "Aggregate using temporary table",
        };
        return Some(if functions.is_empty() { how.to_owned() } else { format!("{how}: {functions}") });
    }
    if let Some(windows) = plan.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr) {
        return Some(format!("Window aggregate: {}", wording.windows(windows)));
    }
    if let Some(windows) = plan.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr) {
        return Some(format!("Window aggregate: {}", wording.windows(windows)));
    }
    if plan.downcast_ref::<ProjectionExec>().is_some() {
        return None;
    }
    match plan.name() {
        "CoalesceBatchesExec" | "CoalescePartitionsExec" | Through::NAME | "RepartitionExec" | "CooperativeExec" | "SortPreservingMergeExec" => None,
        "Gather" => Some("Gather rows in order".to_string()),
        "DataSourceExec" | KeptRowsExec::NAME => Some("Rows fetched before execution".to_string()),
        "PlaceholderRowExec" => Some("Rows fetched before execution  (rows=1)".to_string()),
        "EmptyExec" => Some("Zero rows".to_string()),
        "UnionExec" => Some("Append".to_string()),
        "CrossJoinExec" => Some("Inner hash join (no condition)".to_string()),
        "StreamingTableExec" => Some("Table scan on <temporary>".to_string()),
        _ => Some(plain_names(displayable(plan).one_line().to_string().trim_end())),
    }
}

fn join_name(kind: &str, how: &str) -> String {
    match kind {
        "Inner" => format!("Inner {how}"),
        "Left" | "Right" => format!("Left {how}"),
        "LeftSemi" | "RightSemi" => format!("Hash semijoin, {how}"),
        "LeftAnti" | "RightAnti" => format!("Hash antijoin, {how}"),
        other => format!("{other} {how}"),
    }
}
