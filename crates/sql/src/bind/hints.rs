//! Optimizer hints that mean something here.

use crate::parse::ast::OptimizerHint;
use crate::plan::{Hints, PqHint, Rel, RelKind};

/// The warning of a hint that is ignored.
const IGNORED: u16 = 3126;

/// Hints as the plan keeps them. NO_PQ wins; a bad number warns and is ignored.
pub(super) fn hints(written: &[OptimizerHint]) -> Hints {
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
            "MAX_EXECUTION_TIME" => match hint.args.as_slice() {
                [n] if n.parse::<u64>().is_ok() && hints.max_execution_time_ms.is_none() => hints.max_execution_time_ms = n.parse().ok(),
                [n] if n.parse::<u64>().is_ok() => hints.warnings.push((IGNORED, format!("Hint MAX_EXECUTION_TIME({n}) is ignored as conflicting/duplicated"))),
                _ => hints.warnings.push((IGNORED, "Optimizer hint MAX_EXECUTION_TIME is ignored: it takes a number".to_string())),
            },
            known if KNOWN.contains(&known) => {}
            other => hints.warnings.push((IGNORED, format!("Optimizer hint syntax error near '{other}'"))),
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
            warnings.push((3128, format!("Unresolved name '{table}'@'select#1' for PQ hint")));
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

/// Hints of MySQL that ask for plans this server does not choose between, and JOIN_FIXED_ORDER, which `select` takes.
const KNOWN: &[&str] = &[
    "BKA", "NO_BKA", "BNL", "NO_BNL", "DERIVED_CONDITION_PUSHDOWN", "NO_DERIVED_CONDITION_PUSHDOWN", "GROUP_INDEX", "NO_GROUP_INDEX", "HASH_JOIN", "NO_HASH_JOIN",
    "INDEX", "NO_INDEX", "INDEX_MERGE", "NO_INDEX_MERGE", "JOIN_FIXED_ORDER", "JOIN_INDEX", "NO_JOIN_INDEX", "JOIN_ORDER", "JOIN_PREFIX", "JOIN_SUFFIX", "MERGE",
    "NO_MERGE", "MRR", "NO_MRR", "NO_ICP", "NO_RANGE_OPTIMIZATION", "ORDER_INDEX", "NO_ORDER_INDEX", "QB_NAME", "RESOURCE_GROUP", "SEMIJOIN", "NO_SEMIJOIN",
    "SKIP_SCAN", "NO_SKIP_SCAN", "SUBQUERY",
];
