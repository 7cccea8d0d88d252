//! Locking reads of joined tables. As in MySQL's nested loops the rows of one table are locked first, and those of the next are looked up by what these have:
//! rows that none of them matches stay free, and so do the tables' other rows where an index finds the ones that are wanted.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use futures::future::BoxFuture;
use highkey_table::Table;
use highkey_types::{MySqlError, Value};

use super::locking::has_outer;
use super::subqueries::sort_members;
use crate::expr::{EvalContext, Warns};
use crate::plan::{self, CompareOp, Expr, ExprKind, ExprType, IndexChoice, JoinKind, LockSpec, Rel, RelKind};
use crate::session::Session;

/// Rows of a table that is locked in share mode and by no index: a larger one is not read into memory, its range is locked as one.
const FEW_SHARED_ROWS: u64 = 1 << 16;

/// Which of the scans of a join is locked next, the greatest: there are no such rows; how well an index finds them; something is
/// asked of them; how few the table has.
type Rank = (bool, Option<(bool, usize, usize)>, bool, Reverse<u64>);

/// A scan of a join that locks.
struct Leaf {
    /// The way to it, input by input.
    path: Vec<usize>,
    table: Arc<Table>,
    columns: Vec<usize>,
    indexes: IndexChoice,
    lock: LockSpec,
    /// Where its fields begin among those of the join.
    start: usize,
    /// What rows of it must satisfy, over the fields of the join.
    conditions: Vec<Expr>,
}

impl Session {
    /// Locks what joins of the plan that lock rows exclusively read, as far as it is found by an index or is to be locked exclusively or is little, and puts
    /// the rows in the place of the scans.
    pub(super) fn lock_joins<'a>(&'a mut self, rel: &'a mut Rel) -> BoxFuture<'a, Result<(), MySqlError>> {
        Box::pin(async move {
            if is_join(rel) && locks_exclusively(rel) {
                return self.lock_join(rel).await;
            }
            for input in rel.inputs_mut() {
                self.lock_joins(input).await?;
            }
            Ok(())
        })
    }

    async fn lock_join(&mut self, rel: &mut Rel) -> Result<(), MySqlError> {
        let (mut waiting, mut others) = (Vec::new(), Vec::new());
        collect(rel, &mut Vec::new(), 0, &[], &mut waiting, &mut others);
        let mut locked: Vec<Leaf> = Vec::new();
        while let Some((next, filter)) = self.next_to_lock(rel, &waiting, &locked)? {
            let leaf = waiting.swap_remove(next);
            self.lock_scan(at(rel, &leaf.path), filter.as_ref()).await?;
            locked.push(leaf);
        }
        for path in others {
            self.lock_joins(at(rel, &path)).await?;
        }
        Ok(())
    }

    /// Which scan is locked next, and what is known of the rows that it needs: the one that an index answers best, else the smallest.
    fn next_to_lock(&mut self, rel: &mut Rel, waiting: &[Leaf], locked: &[Leaf]) -> Result<Option<(usize, Option<Expr>)>, MySqlError> {
        let mut best: Option<(Rank, usize, Option<Expr>)> = None;
        for (i, leaf) in waiting.iter().enumerate() {
            let filter = self.known_of(rel, leaf, locked);
            let access = filter.as_ref().and_then(|filter| plan::best_access(filter, leaf.table.def(), &leaf.columns, &leaf.indexes));
            let rows = leaf.table.row_count_estimate()?;
            let nothing = matches!(filter.as_ref().and_then(Expr::as_literal), Some(Value::Int(0) | Value::Null));
            if access.is_none() && !nothing && !leaf.lock.exclusive && rows > FEW_SHARED_ROWS {
                continue;
            }
            let rank = (nothing, access.map(|access| (access.unique, access.equalities, access.matched)), filter.is_some(), Reverse(rows));
            if best.as_ref().is_none_or(|(known, ..)| rank > *known) {
                best = Some((rank, i, filter));
            }
        }
        Ok(best.map(|(_, i, filter)| (i, filter)))
    }

    /// What is known of the rows of a scan, over its own fields: the conditions on these, and that fields which are equal to those of locked rows have their values.
    fn known_of(&mut self, rel: &mut Rel, leaf: &Leaf, locked: &[Leaf]) -> Option<Expr> {
        let mut warns = self.state.warnings_are_errors().then(|| Warns::new(&self.state));
        let mut known = Vec::new();
        for condition in &leaf.conditions {
            let moves = condition.is_steady() && !condition.has_subquery() && !has_outer(condition);
            // In strict DML what may warn is asked of rows of the join only.
            if !moves || warns.as_mut().is_some_and(|warns| warns.condition(condition)) {
                continue;
            }
            if condition.columns().iter().all(|column| leaf.fields().contains(column)) {
                let mut condition = condition.clone();
                condition.map_columns(&mut |column| column - leaf.start);
                known.push(condition);
                continue;
            }
            let ExprKind::Compare { op: CompareOp::Eq, by, left, right } = &condition.kind else { continue };
            let (own, other) = if leaf.has(left) { (left, right) } else { (right, left) };
            let (Some(column), Some(with)) = (own.as_column().filter(|_| leaf.has(own)), locked.iter().find(|with| with.has(other))) else { continue };
            let Some(mut values) = values_of(at(rel, &with.path), other, with.start) else { continue };
            if values.is_empty() {
                return Some(Expr::boolean(false));
            }
            if sort_members(&mut values, *by, &mut self.state) {
                let list = values.into_iter().map(|value| Expr::literal(value, other.ty.clone())).collect();
                let expr = Box::new(Expr::column(column - leaf.start, own.ty.clone()));
                known.push(Expr { kind: ExprKind::In { expr, list, by: *by, negated: false, sorted: true }, ty: ExprType::boolean(true) });
            }
        }
        Expr::and(known)
    }
}

impl Leaf {
    /// Its fields among those of the join.
    fn fields(&self) -> Range<usize> {
        self.start..self.start + self.columns.len()
    }

    /// The expression is one of its fields.
    fn has(&self, expr: &Expr) -> bool {
        expr.as_column().is_some_and(|column| self.fields().contains(&column))
    }
}

/// The values, but for NULLs, that locked rows have in a field of the join; their own fields begin at `start`.
fn values_of(rel: &Rel, field: &Expr, start: usize) -> Option<Vec<Value>> {
    let (RelKind::Values { rows }, Some(column)) = (&rel.kind, field.as_column()) else { return None };
    let values: Option<Vec<&Value>> = rows.iter().map(|row| row[column - start].as_literal()).collect();
    Some(values?.into_iter().filter(|value| !value.is_null()).cloned().collect())
}

/// The node at the end of a way.
fn at<'r>(rel: &'r mut Rel, path: &[usize]) -> &'r mut Rel {
    path.iter().fold(rel, |rel, &input| rel.inputs_mut().swap_remove(input))
}

fn is_join(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Join { .. } => true,
        RelKind::Filter { input, .. } => is_join(input),
        _ => false,
    }
}

/// Whether a scan of the join locks exclusively.
fn locks_exclusively(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Scan { lock, .. } => lock.is_some_and(|lock| lock.exclusive),
        RelKind::Join { .. } | RelKind::Filter { .. } => rel.inputs().into_iter().any(locks_exclusively),
        _ => false,
    }
}

/// The scans of a join that lock, with the conditions that a row of theirs must satisfy to matter, and the ways to its other inputs. `start`: where the fields of
/// `rel` begin among those of the join. What is asked above an outer join is not asked of its inner side, which has rows of NULLs in place of those that fail.
fn collect(rel: &Rel, path: &mut Vec<usize>, start: usize, conditions: &[Expr], leaves: &mut Vec<Leaf>, others: &mut Vec<Vec<usize>>) {
    let of_join = |condition: &Expr| {
        let mut condition = condition.clone();
        condition.map_columns(&mut |column| column + start);
        condition
    };
    let mut below = |input: usize, rel: &Rel, start: usize, conditions: &[Expr]| {
        path.push(input);
        collect(rel, path, start, conditions, leaves, others);
        path.pop();
    };
    match &rel.kind {
        RelKind::Filter { input, predicate } => {
            let all: Vec<Expr> = conditions.iter().cloned().chain(predicate.conjuncts().iter().map(of_join)).collect();
            below(0, input, start, &all);
        }
        RelKind::Join { kind, left, right, on } => {
            let on: Vec<Expr> = on.iter().flat_map(Expr::conjuncts).map(of_join).collect();
            let all = [conditions, &on[..]].concat();
            let (of_left, of_right) = if *kind == JoinKind::Left { (conditions, &on[..]) } else { (&all[..], &all[..]) };
            below(0, left, start, of_left);
            below(1, right, start + left.fields.len(), of_right);
        }
        RelKind::Scan { table, columns, indexes, lock: Some(lock), .. } => leaves.push(Leaf {
            path: path.clone(),
            table: table.clone(),
            columns: columns.clone(),
            indexes: indexes.clone(),
            lock: *lock,
            start,
            conditions: conditions.to_vec(),
        }),
        _ => others.push(path.clone()),
    }
}
