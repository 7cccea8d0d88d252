//! Strict DML, where what a condition warns of ends the statement: one that may warn is asked only of rows that the conditions before it are true for, as in
//! MySQL. DataFusion evaluates conditions for whole batches, and those of one table before it joins.
//! A condition that calls a stored function, which may fail, do something or take long, is asked only of rows that those before it over the same tables are true for.

use super::Lowerer;
use crate::expr::Warns;
use crate::plan::{CompareBy, CompareOp, Expr, ExprKind, Rel, RelKind};

impl Lowerer {
    /// `conjuncts`, asked in this order of rows for which `before` is true: one that may warn is the conjunction of those before it and itself, which is evaluated
    /// row by row (`must_stop_early`). Rows of different relations that a join finds by equalities are together first; such an equality stays as it is unless
    /// it may warn itself.
    /// `relation` tells of which joined relation a column is.
    pub fn guarded(&self, before: &[Expr], conjuncts: &[Expr], relation: &dyn Fn(usize) -> usize) -> Vec<Expr> {
        if !self.shared.warnings_are_errors() {
            return behind_in_order(before, conjuncts, relation);
        }
        let mut warns = self.warns();
        // Of each, whether it is such an equality, and whether it is guarded.
        let kind = |conjunct: &Expr| {
            let (tie, fit) = (is_tie(conjunct, relation), conjunct.is_steady() && !conjunct.has_subquery());
            let warned = (tie || fit) && self.may_warn(&mut warns, conjunct);
            (tie && !warned, fit && warned)
        };
        let kinds: Vec<(bool, bool)> = conjuncts.iter().map(kind).collect();
        let guard = |(i, conjunct): (usize, &Expr)| {
            if !kinds[i].1 {
                return conjunct.clone();
            }
            let earlier = conjuncts.iter().enumerate().filter(|(j, _)| *j < i || kinds[*j].0).map(|(_, c)| c);
            let guards = before.iter().chain(earlier).filter(|c| c.is_steady() && !c.has_subquery()).cloned();
            Expr::and(guards.chain([conjunct.clone()])).unwrap_or_else(|| conjunct.clone())
        };
        conjuncts.iter().enumerate().map(guard).collect()
    }

    /// An operand of AND or OR behind the first calls a stored function; or, in strict DML, may warn. It must not for rows that those before it decide.
    pub fn must_stop_early(&self, parts: &[Expr]) -> bool {
        if parts.iter().skip(1).any(calls_stored) && !parts.iter().any(holds_subquery) {
            return true;
        }
        if !self.shared.warnings_are_errors() || parts.iter().any(Expr::has_subquery) {
            return false;
        }
        let mut warns = self.warns();
        parts.iter().skip(1).any(|part| self.may_warn(&mut warns, part))
    }

    /// The same of what IN compares with.
    pub fn must_stop_at_member(&self, list: &[Expr], by: CompareBy) -> bool {
        if !self.shared.warnings_are_errors() || list.iter().any(Expr::has_subquery) {
            return false;
        }
        let mut warns = self.warns();
        list.iter().skip(1).any(|item| warns.compared(by, item))
    }

    fn warns(&self) -> Warns {
        Warns::new(&*self.shared.surroundings())
    }

    fn may_warn(&self, warns: &mut Warns, condition: &Expr) -> bool {
        self.with_outer_values(condition).is_none_or(|condition| warns.condition(&condition))
    }
}

/// Conditions that call stored functions, each asked only of rows that those of `before` and those in front of it are true for.
pub(super) fn behind<'e>(before: impl IntoIterator<Item = &'e Expr>, calls: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    let guards = before.into_iter().filter(|c| c.is_steady() && !c.has_subquery()).cloned();
    Expr::and(guards.chain(calls))
}

/// Those that call functions behind those that come before them; those that a join finds rows by stay as they are. What gives the same each time stays a
/// condition over its own relations, which may be asked before they are joined.
fn behind_in_order(before: &[Expr], conjuncts: &[Expr], relation: &dyn Fn(usize) -> usize) -> Vec<Expr> {
    if !conjuncts.iter().any(calls_stored) {
        return conjuncts.to_vec();
    }
    let relations = |expr: &Expr| expr.columns().into_iter().map(relation).collect::<Vec<_>>();
    let mut asked = Vec::with_capacity(conjuncts.len());
    let mut in_turn = None;
    for (i, conjunct) in conjuncts.iter().enumerate() {
        if !calls_only(conjunct) || is_tie(conjunct, relation) {
            asked.push(conjunct.clone());
        } else if conjunct.is_steady() {
            let own = relations(conjunct);
            let earlier = before.iter().chain(&conjuncts[..i]).filter(|&c| relations(c).iter().all(|other| own.contains(other)));
            asked.extend(behind(earlier, [conjunct.clone()]));
        } else {
            in_turn = Some(i);
        }
    }
    if let Some(last) = in_turn {
        let all = conjuncts[..=last].iter().filter(|c| if c.is_steady() { !holds_subquery(c) } else { calls_only(c) && !is_tie(c, relation) });
        asked.extend(behind(before, all.cloned()));
    }
    asked
}

/// It calls a stored function, and holds no subquery.
pub(super) fn calls_only(expr: &Expr) -> bool {
    calls_stored(expr) && !holds_subquery(expr)
}

fn calls_stored(expr: &Expr) -> bool {
    let mut calls = false;
    expr.walk(&mut |e| calls |= matches!(e.kind, ExprKind::Stored { .. }));
    calls
}

pub(super) fn holds_subquery(expr: &Expr) -> bool {
    let mut holds = false;
    expr.walk(&mut |e| holds |= matches!(e.kind, ExprKind::Subquery(_)));
    holds
}

/// It compares something of one relation with something of another: a join finds rows by it.
fn is_tie(condition: &Expr, relation: &dyn Fn(usize) -> usize) -> bool {
    let ExprKind::Compare { op: CompareOp::Eq, left, right, .. } = &condition.kind else { return false };
    let relations = |side: &Expr| side.columns().into_iter().map(relation).collect::<Vec<_>>();
    let (left, right) = (relations(left), relations(right));
    !left.is_empty() && !right.is_empty() && !left.iter().any(|relation| right.contains(relation))
}

/// Of which of the relations that `rel` joins a column is: where that one's columns begin.
pub(super) fn joined_relation(rel: &Rel, column: usize) -> usize {
    match &rel.kind {
        RelKind::Join { left, right, .. } => relation_of(left, right, column),
        _ => 0,
    }
}

/// The same for what is to be joined.
pub(super) fn relation_of(left: &Rel, right: &Rel, column: usize) -> usize {
    match column.checked_sub(left.fields.len()) {
        None => joined_relation(left, column),
        Some(column) => left.fields.len() + joined_relation(right, column),
    }
}
