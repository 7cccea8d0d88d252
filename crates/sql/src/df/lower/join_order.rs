//! In which order tables are joined. DataFusion keeps that of FROM; here the two relations whose join promises the fewest rows are joined first, then
//! again two of what there is then: greedy operator ordering (Fegaras, DEXA 1998), which gives bushy trees. Joins by a unique key come before all others:
//! how many rows they give at most is certain, and how many about is known from the tables' rows and the conditions on them alone.

use std::ops::Range;

use datafusion::common::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::LogicalPlan;

use super::join::inner_join;
use super::{Lowered, Lowerer, Scope};
use crate::plan::{CompareOp, Expr, ExprKind, ExprType, JoinKind, Rel, RelKind, implied_constants, selectivity_by_indexes};

/// What inner joins join, and their conditions over the fields of all of it, side by side.
#[derive(Default)]
struct InnerTree<'a> {
    leaves: Vec<Leaf<'a>>,
    conditions: Vec<Expr>,
}

struct Leaf<'a> {
    rel: &'a Rel,
    fields: Range<usize>,
    /// An estimate of its rows, without the conditions of the joins.
    rows: f64,
}

/// A set of leaves: leaf i is bit i.
type Leaves = u128;

/// Some of the leaves, joined.
struct Part {
    has: Leaves,
    /// The leaf of which it has each row once at most.
    root: Option<usize>,
    plan: LogicalPlan,
    rows: f64,
}

/// Fewer tables are joined as they are written: which side is built is chosen later.
const LEAST: usize = 3;
/// More have no place in a set.
const MOST: usize = Leaves::BITS as usize;
/// What is guessed of conditions: as MySQL guesses.
const EQUALITY: f64 = 0.1;
const OTHER: f64 = 0.33;

impl<'a> InnerTree<'a> {
    /// False if the order is not free.
    fn add(&mut self, rel: &'a Rel, at: usize) -> bool {
        match &rel.kind {
            RelKind::Join { kind: JoinKind::Inner, left, right, on } => {
                if !self.add(left, at) || !self.add(right, at + left.fields.len()) {
                    return false;
                }
                for condition in on.iter().flat_map(|on| on.conjuncts()) {
                    if condition.has_subquery() {
                        return false;
                    }
                    let mut condition = condition.clone();
                    condition.map_columns(&mut |i| i + at);
                    self.conditions.push(condition);
                }
                true
            }
            RelKind::Join { kind: JoinKind::Straight, .. } => false,
            _ => {
                self.leaves.push(Leaf { rel, fields: at..at + rel.fields.len(), rows: rows(rel) });
                true
            }
        }
    }

    fn leaves_of(&self, condition: &Expr) -> Leaves {
        condition.columns().into_iter().fold(0, |leaves, field| leaves | 1 << self.leaf_of(field))
    }

    fn leaf_of(&self, field: usize) -> usize {
        self.leaves.iter().position(|leaf| leaf.fields.contains(&field)).expect("every field is a leaf's")
    }

    /// Every row of `many` has one partner in `one` at most: conditions between them are equalities with a unique key of what `one` has rows of.
    fn finds_one(&self, many: &Part, one: &Part, between: &[&Expr]) -> bool {
        let Some(root) = one.root.map(|root| &self.leaves[root]) else { return false };
        let RelKind::Scan { table, columns, .. } = &root.rel.kind else { return false };
        let mut equal = Vec::new();
        for condition in between {
            let ExprKind::Compare { op: CompareOp::Eq, left, right, .. } = &condition.kind else { continue };
            for (key, value) in [(left, right), (right, left)] {
                if let Some(field) = key.as_column().filter(|field| root.fields.contains(field))
                    && self.leaves_of(value) & !many.has == 0
                {
                    equal.push(columns[field - root.fields.start]);
                }
            }
        }
        let mut unique = table.def().indexes.iter().filter(|index| index.is_unique());
        unique.any(|index| index.parts.iter().all(|part| part.prefix.is_none() && equal.contains(&part.column)))
    }

    /// What joining two parts gives.
    fn joined(&self, a: &Part, b: &Part, between: &[&Expr]) -> Joined {
        let equalities = between.iter().filter(|c| matches!(c.kind, ExprKind::Compare { op: CompareOp::Eq, .. })).count();
        let others = OTHER.powi((between.len() - equalities) as i32);
        // The share of a key's rows that are left is the share of the rows referring to it that find one.
        let found = |many: &Part, one: &Part| many.rows * (one.rows / one.root.map_or(one.rows, |root| self.leaves[root].rows)).min(1.0) * others;
        let (rows, kind, root) = match (self.finds_one(a, b, between), self.finds_one(b, a, between)) {
            (true, true) => (found(a, b).min(found(b, a)), Kind::ByKey, a.root),
            (true, false) => (found(a, b), Kind::ByKey, a.root),
            (false, true) => (found(b, a), Kind::ByKey, b.root),
            (false, false) if equalities > 0 => (a.rows * b.rows * EQUALITY.powi(equalities as i32) * others, Kind::Tied, None),
            (false, false) => (a.rows * b.rows * others, Kind::Untied, None),
        };
        Joined { kind, rows: rows.max(1.0), root }
    }
}

/// How two parts are joined; the better comes first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Kind {
    /// By a unique key of one of them: there are no more rows than the other has.
    ByKey,
    /// By equalities, which may multiply rows; by how much nobody knows well enough.
    Tied,
    Untied,
}

struct Joined {
    kind: Kind,
    rows: f64,
    root: Option<usize>,
}

impl Lowerer {
    /// Joins what `rel`, a tree of inner joins, joins, in an order of ours, and keeps the rows that satisfy `also`, conditions over its fields without
    /// subqueries. `None` if there is nothing to choose. `hints` are as for [`Lowerer::rel`].
    pub fn joined_in_order(&self, rel: &Rel, also: &[Expr], hints: &[Expr]) -> Result<Option<Lowered>> {
        let mut tree = InnerTree::default();
        if !matches!(rel.kind, RelKind::Join { .. }) || !tree.add(rel, 0) || !(LEAST..=MOST).contains(&tree.leaves.len()) {
            return Ok(None);
        }
        tree.conditions.extend(also.iter().cloned());
        // What has no field of a table, or may differ each time, is asked of what comes out.
        let (last, conditions): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut tree.conditions).into_iter().partition(|c| c.columns().is_empty() || !c.is_steady());
        let known: Vec<&Expr> = hints.iter().chain(&conditions).collect();
        let implied = implied_constants(&known);
        let mut exprs = Vec::with_capacity(rel.fields.len());
        let mut parts = Vec::with_capacity(tree.leaves.len());
        let asked = self.guarded(&[], &conditions, &|field| tree.leaf_of(field));
        let mut waiting: Vec<(Leaves, &Expr)> = asked.iter().map(|c| (tree.leaves_of(c), c)).collect();
        for (i, leaf) in tree.leaves.iter().enumerate() {
            let own = |c: &Expr| {
                let columns = c.columns();
                !columns.is_empty() && columns.iter().all(|field| leaf.fields.contains(field))
            };
            let moved = |c: &Expr| {
                let mut c = c.clone();
                c.map_columns(&mut |field| field - leaf.fields.start);
                c
            };
            let sides: Vec<Expr> = known.iter().filter_map(|c| of_all_sides(c, &own)).collect();
            let asked_here: Vec<Expr> = known.iter().copied().chain(&sides).filter(|c| own(c)).map(moved).collect();
            // What is implied is another table's condition: to count it here, too, would count it twice where the two are joined.
            let share = self.share_of(leaf.rel, &asked_here);
            let leaf_hints: Vec<Expr> = asked_here.into_iter().chain(implied.iter().filter(|c| own(c)).map(moved)).collect();
            let local: Vec<Expr> = waiting.iter().filter(|(leaves, _)| *leaves == 1 << i).map(|(_, c)| moved(c)).collect();
            waiting.retain(|(leaves, _)| *leaves != 1 << i);
            let lowered = self.rel(leaf.rel, &leaf_hints)?;
            let scope = Scope::of(leaf.rel, &lowered);
            exprs.extend(lowered.columns.iter().cloned());
            let filter = self.conditions(&local, &scope)?;
            let plan = match conjunction(filter) {
                Some(filter) => self.where_true(lowered.plan, filter)?,
                None => lowered.plan,
            };
            parts.push(Part { has: 1 << i, root: Some(i), plan, rows: (leaf.rows * share).max(1.0) });
        }
        let scope = Scope { exprs: exprs.clone(), types: Self::types(rel) };
        while parts.len() > 1 {
            let (i, j, Joined { rows, root, .. }) = next_join(&tree, &parts, &waiting);
            // i < j
            let (second, first) = (parts.swap_remove(j), parts.swap_remove(i));
            let (left, right) = if first.rows <= second.rows { (first, second) } else { (second, first) };
            let has = left.has | right.has;
            let on = self.conditions(waiting.iter().filter(|(leaves, _)| leaves & !has == 0).map(|(_, c)| *c), &scope)?;
            waiting.retain(|(leaves, _)| leaves & !has != 0);
            parts.push(Part { plan: inner_join(left.plan, right.plan, on)?, has, root, rows });
        }
        let plan = parts.pop().expect("one part is left").plan;
        let last = self.conditions(&last, &scope)?;
        let plan = match conjunction(last) {
            Some(last) => self.where_true(plan, last)?,
            None => plan,
        };
        Ok(Some(Lowered { plan, columns: exprs }))
    }

    /// The share of a leaf's rows that conditions on it keep.
    fn share_of(&self, rel: &Rel, conditions: &[Expr]) -> f64 {
        let with_values = |condition: &Expr| self.with_outer_values(condition).unwrap_or_else(|| condition.clone());
        match (&rel.kind, Expr::and(conditions.iter().map(with_values))) {
            (_, None) => 1.0,
            (RelKind::Scan { table, columns, .. }, Some(all)) => selectivity_by_indexes(&all, table, columns, &mut *self.shared.unheard()),
            _ => OTHER,
        }
    }
}

/// What a disjunction over several tables asks of one of them: its conditions, of each side that it has some in; None if a side has none.
fn of_all_sides(condition: &Expr, own: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let ExprKind::Or(sides) = &condition.kind else { return None };
    if own(condition) || !condition.is_steady() {
        return None;
    }
    let of_side = |side: &Expr| Expr::and(side.conjuncts().iter().filter(|c| own(c)).cloned());
    let sides: Option<Vec<Expr>> = sides.iter().map(of_side).collect();
    Some(Expr { kind: ExprKind::Or(sides?), ty: ExprType::boolean(true) })
}

/// The two parts to be joined next, and what comes of it.
fn next_join(tree: &InnerTree<'_>, parts: &[Part], waiting: &[(Leaves, &Expr)]) -> (usize, usize, Joined) {
    let mut best: Option<(usize, usize, Joined)> = None;
    for i in 0..parts.len() {
        for j in i + 1..parts.len() {
            let both = parts[i].has | parts[j].has;
            let between: Vec<&Expr> = waiting.iter().filter(|(leaves, _)| leaves & !both == 0).map(|(_, c)| *c).collect();
            let joined = tree.joined(&parts[i], &parts[j], &between);
            if best.as_ref().is_none_or(|(_, _, other)| (joined.kind, joined.rows) < (other.kind, other.rows)) {
                best = Some((i, j, joined));
            }
        }
    }
    best.expect("there are two parts at least")
}

/// An estimate of a relation's rows.
fn rows(rel: &Rel) -> f64 {
    match &rel.kind {
        RelKind::Scan { table, .. } => table.row_count_estimate().unwrap_or(0).max(1) as f64,
        RelKind::Values { rows } => rows.len() as f64,
        RelKind::Kept { rows } => rows.count() as f64,
        RelKind::Filter { input, .. } => (rows(input) * EQUALITY).max(1.0),
        // Groups of some rows each.
        RelKind::Aggregate { input, groups, .. } => if groups.is_empty() { 1.0 } else { rows(input).powf(0.9) },
        RelKind::Limit { input, count, .. } => {
            let most = count.as_ref().and_then(|count| count.as_literal()).and_then(|n| n.as_i64());
            most.map_or(rows(input), |most| rows(input).min(most as f64).max(1.0))
        }
        _ => rel.inputs().into_iter().map(rows).fold(1.0, f64::max),
    }
}
