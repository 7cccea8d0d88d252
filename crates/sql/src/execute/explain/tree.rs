//! FORMAT=TREE of what DataFusion does not run.

use std::sync::Arc;

use super::block::{Block, Operation, Query, ShownTable};
use crate::df::ROW_COST;
use crate::fast::{FILTER, FastQuery, LEVEL_NODES, Reading, SCAN};
use crate::measure::{Actual, Changing, Figures, Line, Measure};
use crate::plan::{self, Rel, RelKind};

/// What is expected of a line: what reading for it costs, with all that is below it, and the rows that it gives.
#[derive(Clone, Copy)]
struct Estimate {
    cost: f64,
    rows: f64,
}

impl Estimate {
    /// Of reading rows.
    fn of(rows: f64) -> Estimate {
        Estimate { cost: rows * ROW_COST, rows }
    }

    fn kept(self, share: f64) -> Estimate {
        Estimate { rows: self.rows * share, ..self }
    }
}

/// A line of a query on the fast path.
pub(in crate::execute) struct FastLine {
    depth: usize,
    text: String,
    /// The node that it is of, in the numbering of `fast::meter`.
    node: Option<usize>,
    estimate: Option<Estimate>,
}

impl FastLine {
    fn new(depth: usize, text: String, node: usize) -> FastLine {
        FastLine { depth, text, node: Some(node), estimate: None }
    }

    fn expecting(self, estimate: Option<Estimate>) -> FastLine {
        FastLine { estimate, ..self }
    }

    /// `measured`: what the nodes have done, if the query has run.
    pub fn line(self, measured: &[Actual]) -> Line {
        let figures = self.node.and_then(|node| measured.get(node)).map_or(Figures::None, |actual| Figures::Known(*actual));
        Line { depth: self.depth, text: self.text + &self.estimate.map_or(String::new(), estimated), figures }
    }
}

fn estimated(Estimate { cost, rows }: Estimate) -> String {
    format!("  (cost={cost:.2} rows={rows:.0})")
}

/// A query on the fast path: the bound plan, with the way to the rows that was found for it.
pub(super) fn fast(fast: &FastQuery, rel: &Rel, shown: &Query) -> Vec<FastLine> {
    let (operators, source) = fast.operators(rel);
    let block = innermost(shown);
    let table = block.and_then(|block| block.tables.first());
    let depth = operators.len() + 1;
    let mut below = None;
    // From the source up.
    let mut inside: Vec<FastLine> = match (fast.reading(), table) {
        (Reading::Join(_), _) => {
            let lines = joined(fast, depth, block.map_or(&[][..], |block| &block.tables[..]));
            below = lines.first().and_then(|line| line.estimate);
            lines.into_iter().rev().collect()
        }
        (Reading::Table { backward, .. }, Some(table)) => {
            below = Some(Estimate::of(table.access.rows.unwrap_or(1) as f64));
            vec![FastLine::new(depth, scan(table, backward), SCAN).expecting(below)]
        }
        (Reading::Counted, _) => vec![FastLine::new(depth, "Rows fetched before execution".to_owned(), SCAN)],
        // No row is asked for.
        (Reading::Constants, _) if matches!(source.kind, RelKind::Filter { .. }) => vec![FastLine::new(depth, "Zero rows".to_owned(), SCAN)],
        (Reading::Table { .. } | Reading::Constants, _) => vec![FastLine::new(depth, plan::describe_operator(source), SCAN)],
    };
    for (at, (operator, node)) in operators.into_iter().enumerate().rev() {
        below = match &operator.kind {
            RelKind::Filter { .. } if node == FILTER => below.map(|read| read.kept(table.map_or(1.0, |table| table.access.filtered))),
            RelKind::Project { .. } | RelKind::Sort { .. } => below,
            RelKind::Limit { count, .. } => below.and_then(|read| {
                let count = count.as_ref()?.as_literal()?.as_i64()?;
                Some(Estimate { rows: read.rows.min(count as f64), ..read })
            }),
            RelKind::Aggregate { groups, .. } if groups.is_empty() => below.map(|read| Estimate { rows: 1.0, ..read }),
            // How many rows are the same, or satisfy a condition, nobody knows.
            _ => None,
        };
        inside.push(FastLine::new(at + 1, plan::describe_operator(operator), node).expecting(below));
    }
    inside.push(FastLine { depth: 0, text: fast.headline().to_owned(), node: None, estimate: None });
    inside.reverse();
    inside
}

/// The loops of a join at a depth; `tables` in the order in which they are read.
fn joined(fast: &FastQuery, depth: usize, tables: &[ShownTable]) -> Vec<FastLine> {
    let lines = fast.describe_join().unwrap_or_default();
    let levels = 1 + lines.iter().map(|line| line.node / LEVEL_NODES).max().unwrap_or(0);
    // By node; none if the tables are not those of the loops.
    let mut estimates = Vec::new();
    if tables.len() == levels {
        let mut all = Estimate { cost: 0.0, rows: 1.0 };
        for table in tables {
            let read = Estimate::of(table.access.rows.unwrap_or(1) as f64);
            // Rows that are kept are read once.
            let times = if table.buffer.is_some() { 1.0 } else { all.rows };
            let kept = read.kept(table.access.filtered);
            all = Estimate { cost: all.cost + times * read.cost, rows: all.rows * kept.rows };
            estimates.extend([read, kept, all]);
        }
    }
    let line = |line: crate::fast::JoinLine| FastLine::new(depth + line.depth, line.text, line.node).expecting(estimates.get(line.node).copied());
    lines.into_iter().map(line).collect()
}

/// UPDATE or DELETE of one table. `told`: what it does, if it is run.
pub(super) fn change(block: &Block, table: &str, told: Option<&Changing>) -> Vec<Line> {
    let mut lines = vec![Line::new(0, format!("{} {table}", block.kind))];
    let Some(shown) = block.tables.first() else {
        lines.push(Line::new(1, "Zero rows"));
        return lines;
    };
    let mut add = |text: String, estimate: Estimate, measure: Option<&Arc<Measure>>| {
        let figures = measure.map_or(Figures::None, |measure| Figures::Of(measure.clone()));
        lines.push(Line { depth: lines.len(), text: text + &estimated(estimate), figures });
    };
    let read = Estimate::of(shown.access.rows.unwrap_or(1) as f64);
    let condition = shown.filter.as_ref().filter(|_| shown.access.residual);
    let kept = if condition.is_some() { read.kept(shown.access.filtered) } else { read };
    for operation in &block.operations {
        if let Operation::Sort { keys } = operation {
            let limit = block.limit.map_or(String::new(), |n| format!(", limit input to {n} row(s) per chunk"));
            add(format!("Sort: {keys}{limit}"), kept, told.map(|told| &told.sort));
        }
    }
    if let Some(condition) = condition {
        add(format!("Filter: {condition}"), kept, told.map(|told| &told.filter));
    }
    add(scan(shown, false), read, told.map(|told| &told.scan));
    lines
}

/// How a table is read.
fn scan(table: &ShownTable, backward: bool) -> String {
    let access = &table.access;
    let how = match access.kind {
        "const" | "eq_ref" => "Single-row index lookup",
        "ref" => "Index lookup",
        "range" => "Index range scan",
        "fulltext" => "Full-text index search",
        "index" => "Index scan",
        _ => "Table scan",
    };
    let key = access.key.as_ref().map_or(String::new(), |key| format!(" using {}{}", key.name, key.lookup));
    format!("{how} on {}{key}{}", table.name, if backward { " (reverse)" } else { "" })
}

/// The block behind all derived tables.
fn innermost(query: &Query) -> Option<&Block> {
    let Query::Select(block) = query else { return None };
    let table = block.tables.first();
    match table.and_then(|table| table.derived.as_ref()) {
        Some(derived) => innermost(derived.query()?),
        None => Some(block),
    }
}
