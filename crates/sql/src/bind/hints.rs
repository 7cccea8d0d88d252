//! Optimizer hints: what they change.

use std::sync::Arc;

use highkey_table::Table;
use highkey_types::Str;

use super::binder::Binder;
use super::hint_warnings::{misplaced_time, warnings};
use crate::parse::ast::{HintTable, OptimizerHint};
use crate::plan::{Hints, IndexChoice, PqHint, Rel, RelKind};

/// The warnings of hints that are ignored: about the same as one before, and about a table that there is not.
pub(super) const IGNORED: u16 = 3126;
pub(super) const UNRESOLVED: u16 = 3128;

/// Hints as the plan keeps them. NO_PQ wins; a bad number warns and is ignored. `query`: the statement is nothing but a query.
pub(super) fn hints(written: &[OptimizerHint], query: bool) -> Hints {
    let mut hints = Hints::default();
    for hint in written {
        match hint.name.as_str() {
            "PQ" => {
                let parsed = match hint.args.as_slice() {
                    [] => Some((None, None)),
                    [n] if n.parse::<u32>().is_ok_and(|n| n > 0 && n <= 1024) => Some((n.parse().ok(), None)),
                    [table] if !table.starts_with(|c: char| c.is_ascii_digit() || c == '-') => Some((None, Some(table.clone()))),
                    [table, n] if n.parse::<u32>().is_ok_and(|n| n > 0 && n <= 1024) => Some((n.parse().ok(), Some(table.clone()))),
                    _ => None,
                };
                match parsed {
                    Some(_) if hints.pq == PqHint::Off => {}
                    Some((workers, table)) => hints.pq = with_pq(&hints.pq, workers, table),
                    None => hints.warnings.push((IGNORED, format!("Optimizer hint PQ({}) is ignored: bad number of workers", hint.args.join(" ")))),
                }
            }
            "NO_PQ" => hints.pq = PqHint::Off,
            "MAX_EXECUTION_TIME" if !query => hints.warnings.push(misplaced_time()),
            "MAX_EXECUTION_TIME" => match hint.args.as_slice() {
                [n] if hints.max_execution_time_ms.is_none() => hints.max_execution_time_ms = n.parse().ok(),
                args => hints.warnings.push((IGNORED, format!("Hint MAX_EXECUTION_TIME({}) is ignored as conflicting/duplicated", args.join(" ")))),
            },
            _ => {}
        }
    }
    hints
}

/// PQ beside what was hinted before: the most workers, all tables that were named.
fn with_pq(before: &PqHint, workers: Option<u32>, table: Option<String>) -> PqHint {
    let PqHint::On { workers: more, tables } = before else { return PqHint::On { workers, tables: table.into_iter().collect() } };
    let tables = match table {
        Some(table) if !tables.is_empty() => tables.iter().cloned().chain([table]).collect(),
        // One of them is for all tables.
        _ => Vec::new(),
    };
    PqHint::On { workers: workers.max(*more), tables }
}

/// Forgets the tables of PQ hints that the query does not read, with MySQL's warning; a hint that named only such is no hint.
pub(super) fn resolve(hints: &mut Hints, rel: &Rel) {
    let PqHint::On { tables, .. } = &mut hints.pq else { return };
    if tables.is_empty() {
        return;
    }
    let warnings = &mut hints.warnings;
    tables.retain(|table| {
        let known = reads(rel, table);
        if !known {
            warnings.push((UNRESOLVED, format!("Unresolved name '{table}'@'select#1' for PQ hint")));
        }
        known
    });
    if tables.is_empty() {
        hints.pq = PqHint::Unset;
    }
}

/// The query reads a table of this name, perhaps in a subquery.
fn reads(rel: &Rel, name: &str) -> bool {
    let mut found = false;
    rel.for_each_operator(&mut |rel| found |= matches!(&rel.kind, RelKind::Scan { alias, .. } if **alias == *name));
    found
}

/// A SELECT of the statement with its hints.
pub(super) struct HintedBlock {
    pub number: u32,
    pub hints: Vec<OptimizerHint>,
    /// The tables of FROM by their aliases; base tables with their indexes.
    pub tables: Vec<(Str, Option<Arc<Table>>)>,
}

impl HintedBlock {
    /// The block that reads `from`.
    pub fn new(number: u32, hints: &[OptimizerHint], from: &Rel) -> HintedBlock {
        let mut tables: Vec<(Str, Option<Arc<Table>>)> = Vec::new();
        for field in &from.fields {
            if !tables.iter().any(|(alias, _)| *alias == field.table) {
                tables.push((field.table.clone(), None));
            }
        }
        for_each_scan(from, &mut |alias, table| {
            if let Some((_, known)) = tables.iter_mut().find(|(known, _)| known == alias) {
                *known = Some(table.clone());
            }
        });
        HintedBlock { number, hints: hints.to_vec(), tables }
    }

    fn name(&self) -> Option<&str> {
        self.hints.iter().find(|hint| hint.name == "QB_NAME").and_then(|hint| hint.args.first()).map(String::as_str)
    }

    /// The hint is about this block: it stands here, or names it from around it.
    fn is_meant(&self, block: Option<&str>) -> bool {
        block.is_none_or(|name| self.name() == Some(name))
    }
}

/// The base tables of FROM, but not those of its derived tables.
fn for_each_scan<'r>(from: &'r Rel, f: &mut impl FnMut(&'r Str, &'r Arc<Table>)) {
    match &from.kind {
        RelKind::Scan { table, alias, .. } => f(alias, table),
        RelKind::Join { left, right, .. } => {
            for_each_scan(left, f);
            for_each_scan(right, f);
        }
        RelKind::Apply { input, .. } => for_each_scan(input, f),
        // The exchange of a right join.
        RelKind::Project { input, .. } if matches!(input.kind, RelKind::Join { .. }) => for_each_scan(input, f),
        _ => {}
    }
}

/// What a hint says of the joins of a block.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ordering {
    Fixed,
    Order,
    Prefix,
    Suffix,
}

impl Ordering {
    pub fn of(hint: &OptimizerHint) -> Option<Ordering> {
        Some(match hint.name.as_str() {
            "JOIN_FIXED_ORDER" => Ordering::Fixed,
            "JOIN_ORDER" => Ordering::Order,
            "JOIN_PREFIX" => Ordering::Prefix,
            "JOIN_SUFFIX" => Ordering::Suffix,
            _ => return None,
        })
    }

    /// Behind `before` in the same block it is ignored.
    pub fn conflicts(self, before: Ordering) -> bool {
        self == Ordering::Fixed || before == Ordering::Fixed || self == before && self != Ordering::Order
    }
}

/// Those of `written` that say in which order the tables of a block are joined, the ones that conflict with one before left out.
fn orderings<'h>(written: impl Iterator<Item = &'h OptimizerHint>) -> Vec<(Ordering, &'h OptimizerHint)> {
    let mut kept: Vec<(Ordering, &OptimizerHint)> = Vec::new();
    for hint in written {
        if let Some(ordering) = Ordering::of(hint)
            && !kept.iter().any(|(before, _)| ordering.conflicts(*before))
        {
            kept.push((ordering, hint));
        }
    }
    kept
}

/// What hints ask of a block's joins.
#[derive(Default)]
pub(super) struct JoinHints {
    /// JOIN_FIXED_ORDER.
    pub fixed: bool,
    /// Sequences of aliases.
    pub sequences: Vec<JoinSequence>,
}

/// JOIN_ORDER, JOIN_PREFIX or JOIN_SUFFIX.
pub(super) struct JoinSequence {
    pub aliases: Vec<String>,
    /// Before all other tables.
    pub first: bool,
    /// Behind all other tables.
    pub last: bool,
}

/// What the hints of a block and of those around it, `outer`, ask of its joins.
pub(super) fn join_hints(block: &HintedBlock, outer: &[OptimizerHint]) -> JoinHints {
    let named = outer.iter().filter(|hint| hint.block.is_some());
    let meant = block.hints.iter().chain(named).filter(|hint| block.is_meant(hint.block.as_deref()));
    let mut hints = JoinHints::default();
    for (ordering, hint) in orderings(meant) {
        let known = |table: &HintTable| block.is_meant(table.block.as_deref()) && block.tables.iter().any(|(alias, _)| **alias == *table.name);
        match ordering {
            Ordering::Fixed => hints.fixed = true,
            _ if hint.tables.is_empty() || !hint.tables.iter().all(known) => {}
            _ => hints.sequences.push(JoinSequence {
                aliases: hint.tables.iter().map(|table| table.name.clone()).collect(),
                first: ordering == Ordering::Prefix,
                last: ordering == Ordering::Suffix,
            }),
        }
    }
    hints
}

/// Lets the scans of a block use the indexes that INDEX hints and the like leave. They win over USE, FORCE and IGNORE INDEX.
pub(super) fn choose_indexes(from: &mut Rel, block: &HintedBlock, outer: &[OptimizerHint]) {
    let named = outer.iter().filter(|hint| hint.block.is_some());
    for hint in block.hints.iter().chain(named).filter(|hint| block.is_meant(hint.block.as_deref())) {
        for table in hint.tables.iter().filter(|table| block.is_meant(table.block.as_deref())) {
            choose_index(from, &table.name, hint);
        }
    }
}

fn choose_index(from: &mut Rel, name: &str, hint: &OptimizerHint) {
    match &mut from.kind {
        RelKind::Scan { table, alias, indexes, .. } if **alias == *name => leave(indexes, table, hint),
        RelKind::Join { left, right, .. } => {
            choose_index(left, name, hint);
            choose_index(right, name, hint);
        }
        RelKind::Apply { input, .. } => choose_index(input, name, hint),
        RelKind::Project { input, .. } if matches!(input.kind, RelKind::Join { .. }) => choose_index(input, name, hint),
        _ => {}
    }
}

/// What a hint about a table leaves of its indexes, if it is about them.
fn leave(choice: &mut IndexChoice, table: &Table, hint: &OptimizerHint) {
    let (negated, kind) = hint.name.strip_prefix("NO_").map_or((false, &hint.name[..]), |kind| (true, kind));
    let (rows, order) = match kind {
        "INDEX" => (true, true),
        "JOIN_INDEX" => (true, false),
        "ORDER_INDEX" | "GROUP_INDEX" => (false, true),
        _ => return,
    };
    let all = || (0..table.def().indexes.len()).collect::<Vec<usize>>();
    let position = |name: &String| table.def().indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
    let named: Vec<usize> = if hint.args.is_empty() { all() } else { hint.args.iter().filter_map(position).collect() };
    if named.is_empty() {
        return;
    }
    let IndexChoice { rows: for_rows, order: for_order } = choice;
    for allowed in [rows.then_some(for_rows), order.then_some(for_order)].into_iter().flatten() {
        if negated {
            allowed.get_or_insert_with(all).retain(|index| !named.contains(index));
        } else {
            *allowed = Some(named.clone());
        }
    }
}

impl Binder<'_> {
    /// What the hints of UPDATE or DELETE of one table leave of its indexes; the warnings about them and those of its subqueries.
    pub fn hints_of_change(&mut self, written: &[OptimizerHint], table: &Arc<Table>, alias: &Str, choice: &mut IndexChoice, hints: &mut Hints) {
        let block = HintedBlock { number: 1, hints: written.to_vec(), tables: vec![(alias.clone(), Some(table.clone()))] };
        for hint in block.hints.iter().filter(|hint| block.is_meant(hint.block.as_deref())) {
            let tables = hint.tables.iter().filter(|named| block.is_meant(named.block.as_deref()) && **alias == *named.name);
            tables.for_each(|_| leave(choice, table, hint));
        }
        self.hinted.push(block);
        hints.warnings.extend(warnings(&mut self.hinted));
    }
}
