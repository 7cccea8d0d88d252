//! FORMAT=TREE of what DataFusion does not run.

use super::access::Access;
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
    // One operator stands on the other here.
    let kept = |line: &str, lines: &mut Vec<String>| {
        if let Some(at) = lines.iter().position(|l| l.trim_start().starts_with(line)) {
            lines.remove(at);
            lines[at..].iter_mut().for_each(|l| *l = l.strip_prefix(INDENT).unwrap_or(l).to_owned());
        }
    };
    match fast.reading() {
        Reading::Table { backward, .. } => {
            if !fast.sorts() {
                kept("-> Sort: ", &mut lines);
            }
            if let Some(table) = innermost(shown) {
                if !table.access.residual && table.condition.is_some() {
                    // The index has answered all of it.
                    kept("-> Filter: ", &mut lines);
                }
                replace_last(&mut lines, &scan(table, backward));
            }
        }
        Reading::Counted => replace_last(&mut lines, "Rows fetched before execution"),
        Reading::Constants if !matches!(shown, Query::Select(Block { message: Some("No tables used"), .. })) => replace_last(&mut lines, "Zero rows"),
        Reading::Constants | Reading::Join(_) => {}
    }
    let mut all = vec!["-> Fast path".to_owned()];
    all.extend(lines.into_iter().map(|line| format!("{INDENT}{line}")));
    all
}
