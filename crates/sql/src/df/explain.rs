//! Plans as EXPLAIN FORMAT=TREE prints them.

use std::sync::Arc;

use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, displayable};
use highkey_table::TableId;

use super::few_groups::FewGroupsExec;
use super::materialize::CteExec;
use super::parallel::SerialReason;
use super::scan::{ROW_COST, ScanExec};
use super::through::Through;
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
    /// Position of the index whose ranges are read; `None`: the whole table.
    pub index: Option<usize>,
    /// An estimate of the rows that are read.
    pub rows: u64,
    /// Several threads share it.
    pub divided: bool,
    /// Indexes by which rows may be looked up instead, if a join has few keys.
    pub lookups: Vec<usize>,
}

pub(super) fn explained(plan: &dyn ExecutionPlan, degree: Result<usize, SerialReason>) -> Explained {
    let mut explained = Explained { lines: lines(plan, first_line(degree)), scans: Vec::new(), workers: degree.unwrap_or(1), collects_groups: false };
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
    for child in plan.children() {
        look_into(child.as_ref(), explained, made);
    }
}

/// What makes the rows that the operator reads of a common table expression, where it is the first that does.
fn plan_of_cte(plan: &dyn ExecutionPlan, made: &mut Vec<usize>) -> Option<Arc<dyn ExecutionPlan>> {
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
pub(super) fn lines(plan: &dyn ExecutionPlan, first: String) -> Vec<Line> {
    let (plan, figures) = without_timing(plan);
    let mut lines = vec![Line { depth: 0, text: first, figures }];
    add(plan, 1, &mut lines, &mut Vec::new());
    lines
}

/// It has a line.
pub(super) fn is_shown(plan: &dyn ExecutionPlan) -> bool {
    describe(plan).is_some()
}

/// What a plan is that tells what it does, and where it tells it.
fn without_timing(plan: &dyn ExecutionPlan) -> (&dyn ExecutionPlan, Figures) {
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
fn add(plan: &dyn ExecutionPlan, depth: usize, lines: &mut Vec<Line>, made: &mut Vec<usize>) {
    let (plan, mut figures) = without_timing(plan);
    let mut depth = depth;
    if let Some(scan) = plan.downcast_ref::<ScanExec>()
        && !scan.conditions().is_empty()
    {
        let conditions: Vec<String> = scan.conditions().iter().map(|c| readable(&c.to_string())).collect();
        let before = match &figures {
            Figures::Of(measure) => Figures::Read(measure.clone()),
            _ => Figures::None,
        };
        let filtered = std::mem::replace(&mut figures, before);
        lines.push(Line { depth, text: format!("Filter: ({})", conditions.join(" AND ")), figures: filtered });
        depth += 1;
    }
    let depth = match describe(plan) {
        Some(text) => {
            lines.push(Line { depth, text, figures });
            depth + 1
        }
        None => depth,
    };
    if let Some(cte) = plan.downcast_ref::<CteExec>() {
        match plan_of_cte(plan, made) {
            Some(rows) => {
                let (rows, figures) = without_timing(rows.as_ref());
                lines.push(Line { depth, text: cte.title().to_owned(), figures });
                add(rows, depth + 1, lines, made);
            }
            None => lines.push(Line::new(depth, format!("{} (query plan printed elsewhere)", cte.title()))),
        }
    }
    for child in plan.children() {
        add(child.as_ref(), depth, lines, made);
    }
}

fn describe(plan: &dyn ExecutionPlan) -> Option<String> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let rows = scan.row_estimate();
        return Some(format!("{}  (cost={:.2} rows={rows})", scan.describe(), rows as f64 * ROW_COST));
    }
    if let Some(cte) = plan.downcast_ref::<CteExec>() {
        return Some(format!("Table scan on {}", cte.alias()));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return Some(format!("Filter: ({})", readable(&filter.predicate().to_string())));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let on: Vec<String> = join.on().iter().map(|(l, r)| readable(&format!("({l} = {r})"))).collect();
        return Some(format!("{} ({})", join_name(&join.join_type().to_string(), "hash join"), on.join(" and ")));
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        return Some(join_name(&join.join_type().to_string(), "nested loop join"));
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let keys: Vec<String> = sort
            .expr()
            .iter()
            .map(|k| readable(&format!("{}{}", k.expr, if k.options.descending { " DESC" } else { "" })))
            .collect();
        let limit = sort.fetch().map_or(String::new(), |n| format!(", limit input to {n} row(s) per chunk"));
        return Some(format!("Sort: {}{limit}", keys.join(", ")));
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
        let functions: Vec<String> = aggregate.aggr_expr().iter().map(|a| readable(a.fun().name())).collect();
        let groups = aggregate.group_expr().expr().len();
        return Some(match (groups, functions.is_empty()) {
            (0, _) => format!("Aggregate: {}", functions.join(", ")),
            (_, true) => "Temporary table with deduplication".to_string(),
            _ if *aggregate.input_order_mode() != InputOrderMode::Linear => format!("Group aggregate: {}", functions.join(", ")),
            _ => format!("Aggregate using temporary table: {}", functions.join(", ")),
        });
    }
    if plan.downcast_ref::<ProjectionExec>().is_some() {
        return None;
    }
    match plan.name() {
        "CoalesceBatchesExec" | "CoalescePartitionsExec" | Through::NAME | "RepartitionExec" | "CooperativeExec" | "SortPreservingMergeExec" => None,
        "Gather" => Some("Gather rows in order".to_string()),
        "DataSourceExec" => Some("Rows fetched before execution".to_string()),
        "PlaceholderRowExec" => Some("Rows fetched before execution  (rows=1)".to_string()),
        "EmptyExec" => Some("Zero rows".to_string()),
        "UnionExec" => Some("Append".to_string()),
        "CrossJoinExec" => Some("Inner hash join (no condition)".to_string()),
        "WindowAggExec" | "BoundedWindowAggExec" => Some("Window aggregate".to_string()),
        "StreamingTableExec" => Some("Table scan on <temporary>".to_string()),
        _ => Some(readable(displayable(plan).one_line().to_string().trim_end())),
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

/// Without the numbers of generated names and of Arrow's columns: `l_orderkey#12@0` is `l_orderkey`.
fn readable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if matches!(c, '#' | '@') && chars.peek().is_some_and(char::is_ascii_digit) {
            while chars.peek().is_some_and(char::is_ascii_digit) {
                chars.next();
            }
        } else {
            out.push(c);
        }
    }
    out
}
