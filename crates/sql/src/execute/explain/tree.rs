//! FORMAT=TREE of what DataFusion does not run.

use super::access::ROW_COST;
use super::block::{Block, Operation, Query, ShownTable};
use crate::fast::{FastQuery, Reading};
use crate::plan::{self, Rel};

const INDENT: &str = "    ";

/// A query on the fast path: the bound plan, with the way to the rows that was found for it.
pub(super) fn fast(fast: &FastQuery, rel: &Rel, shown: &Query) -> Vec<String> {
    let mut lines: Vec<String> = match fast.describe_join() {
        Some(join) => join,
        None => plan::describe_rel(rel).lines().map(str::to_owned).collect(),
    };
    match fast.reading() {
        Reading::Table { backward, .. } => {
            if !fast.sorts() {
                remove_operator(&mut lines, "-> Sort: ");
            }
            if let Some(table) = innermost(shown) {
                if !table.access.residual && table.condition.is_some() {
                    // The index has answered all of it.
                    remove_operator(&mut lines, "-> Filter: ");
                }
                replace_last(&mut lines, &scan(table, backward));
            }
        }
        Reading::Counted => replace_last(&mut lines, "Rows fetched before execution"),
        Reading::Constants => {
            if let Some(at) = lines.iter().position(|line| matches!(line.trim_start(), "-> Filter: 0" | "-> Filter: NULL")) {
                lines.truncate(at + 1);
                replace_last(&mut lines, "Zero rows");
            }
        }
        Reading::Join(_) => {}
    }
    let mut all = vec!["-> Fast path".to_owned()];
    all.extend(lines.into_iter().map(|line| format!("{INDENT}{line}")));
    all
}

/// UPDATE or DELETE of one table.
pub(super) fn change(block: &Block, table: &str) -> Vec<String> {
    let mut lines = vec![format!("-> {} {table}", block.kind)];
    let mut add = |text: String| lines.push(format!("{}-> {text}", INDENT.repeat(lines.len())));
    let Some(shown) = block.tables.first() else {
        add("Zero rows".to_owned());
        return lines;
    };
    if block.operations.iter().any(|operation| matches!(operation, Operation::Sort)) {
        add("Sort".to_owned());
    }
    if let Some(condition) = shown.condition.as_ref().filter(|_| shown.access.residual) {
        add(format!("Filter: {condition}"));
    }
    add(scan(shown, false));
    lines
}

/// How a table is read.
fn scan(table: &ShownTable, backward: bool) -> String {
    let access = &table.access;
    let how = match access.kind {
        "const" | "eq_ref" => "Single-row index lookup",
        "ref" => "Index lookup",
        "range" => "Index range scan",
        "index" => "Index scan",
        _ => "Table scan",
    };
    let key = access.key.as_ref().map_or(String::new(), |key| format!(" using {}", key.name));
    let rows = access.rows.unwrap_or(1);
    format!("{how} on {}{key}{}  (cost={:.2} rows={rows})", table.name, if backward { " (reverse)" } else { "" }, rows as f64 * ROW_COST)
}

/// The table behind all derived ones.
fn innermost(query: &Query) -> Option<&ShownTable> {
    let Query::Select(block) = query else { return None };
    let table = block.tables.first()?;
    match &table.derived {
        Some(derived) => innermost(derived.query()?),
        None => Some(table),
    }
}

/// Removes the innermost operator whose line begins so; one operator stands on the other here.
fn remove_operator(lines: &mut Vec<String>, beginning: &str) {
    if let Some(at) = lines.iter().rposition(|line| line.trim_start().starts_with(beginning)) {
        lines.remove(at);
        for line in &mut lines[at..] {
            line.replace_range(..INDENT.len().min(line.len()), "");
        }
    }
}

fn replace_last(lines: &mut [String], text: &str) {
    if let Some(last) = lines.last_mut() {
        let spaces = last.len() - last.trim_start().len();
        *last = format!("{}-> {text}", " ".repeat(spaces));
    }
}
