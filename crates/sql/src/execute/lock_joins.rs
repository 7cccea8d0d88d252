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

/// The values of more rows are not kept in memory to look up others by: the other table is locked as a whole.
const MOST_LOOKED_UP: usize = 1 << 20;

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
    /// Where its fields begin among those of all inputs of the join.
    start: usize,
    /// What rows of it must satisfy to matter, over the fields of all inputs.
    conditions: Vec<Expr>,
    /// It is on the inner side of an outer join, which has rows of NULLs in place of those that fail: nothing is asked of it above that.
    is_inner: bool,
}

/// The inputs of a join.
#[derive(Default)]
struct Inputs {
    /// The scans that lock.
    leaves: Vec<Leaf>,
    /// The ways to the others.
    others: Vec<Vec<usize>>,
    /// How many fields they have, all together.
    width: usize,
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
        let mut inputs = Inputs::default();
        inputs.collect(rel, &mut Vec::new());
        let Inputs { leaves: mut waiting, others, .. } = inputs;
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
    /// Its fields among those of all inputs.
    fn fields(&self) -> Range<usize> {
        self.start..self.start + self.columns.len()
    }

    /// The expression is one of its fields.
    fn has(&self, expr: &Expr) -> bool {
        expr.as_column().is_some_and(|column| self.fields().contains(&column))
    }
}

/// The values, but for NULLs, that locked rows have in a field; their own fields begin at `start`. `None` if they are too many.
fn values_of(rel: &Rel, field: &Expr, start: usize) -> Option<Vec<Value>> {
    let (RelKind::Kept { rows }, Some(column)) = (&rel.kind, field.as_column()) else { return None };
    if rows.count() > MOST_LOOKED_UP {
        return None;
    }
    let mut values = Vec::new();
    let mut read = rows.read();
    // Who reads the rows for the query tells why they cannot be read.
    while let Some(mut row) = read.next_row().ok()? {
        values.push(row.swap_remove(column - start));
    }
    values.retain(|value| !value.is_null());
    Some(values)
}

/// The node at the end of a way.
fn at<'r>(rel: &'r mut Rel, path: &[usize]) -> &'r mut Rel {
    path.iter().fold(rel, |rel, &input| rel.inputs_mut().swap_remove(input))
}

/// A projection of columns alone, such as that which puts the sides of a RIGHT JOIN back in order.
fn only_orders(exprs: &[Expr]) -> bool {
    exprs.iter().all(|expr| expr.as_column().is_some())
}

fn is_join(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Join { .. } => true,
        RelKind::Filter { input, .. } => is_join(input),
        RelKind::Project { input, exprs } => only_orders(exprs) && is_join(input),
        _ => false,
    }
}

/// Whether a scan of the join locks exclusively.
fn locks_exclusively(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Scan { lock, .. } => lock.is_some_and(|lock| lock.exclusive),
        RelKind::Project { exprs, .. } if !only_orders(exprs) => false,
        RelKind::Join { .. } | RelKind::Filter { .. } | RelKind::Project { .. } => rel.inputs().into_iter().any(locks_exclusively),
        _ => false,
    }
}

impl Inputs {
    /// Adds those of `rel`, to which `path` is the way. Returns which fields of all inputs its fields are.
    fn collect(&mut self, rel: &Rel, path: &mut Vec<usize>) -> Vec<usize> {
        match &rel.kind {
            RelKind::Filter { input, predicate } => {
                let first = self.leaves.len();
                let fields = self.collect_below(input, 0, path);
                self.ask(first, predicate.conjuncts(), &fields);
                fields
            }
            RelKind::Project { input, exprs } if only_orders(exprs) => {
                let fields = self.collect_below(input, 0, path);
                exprs.iter().filter_map(Expr::as_column).map(|column| fields[column]).collect()
            }
            RelKind::Join { kind, left, right, on } => {
                let first = self.leaves.len();
                let mut fields = self.collect_below(left, 0, path);
                let inner = self.leaves.len();
                fields.extend(self.collect_below(right, 1, path));
                let is_outer = *kind == JoinKind::Left;
                self.ask(if is_outer { inner } else { first }, on.iter().flat_map(Expr::conjuncts), &fields);
                self.leaves[inner..].iter_mut().for_each(|leaf| leaf.is_inner |= is_outer);
                fields
            }
            RelKind::Scan { table, columns, indexes, lock: Some(lock), .. } => {
                self.leaves.push(Leaf {
                    path: path.clone(),
                    table: table.clone(),
                    columns: columns.clone(),
                    indexes: indexes.clone(),
                    lock: *lock,
                    start: self.width,
                    conditions: Vec::new(),
                    is_inner: false,
                });
                self.add_fields(columns.len())
            }
            _ => {
                self.others.push(path.clone());
                self.add_fields(rel.fields.len())
            }
        }
    }

    fn collect_below(&mut self, rel: &Rel, input: usize, path: &mut Vec<usize>) -> Vec<usize> {
        path.push(input);
        let fields = self.collect(rel, path);
        path.pop();
        fields
    }

    fn add_fields(&mut self, count: usize) -> Vec<usize> {
        let start = self.width;
        self.width += count;
        (start..self.width).collect()
    }

    /// The scans from `first` on are asked these conditions, which are over `fields`.
    fn ask<'e>(&mut self, first: usize, conditions: impl IntoIterator<Item = &'e Expr>, fields: &[usize]) {
        for condition in conditions {
            let mut condition = condition.clone();
            condition.map_columns(&mut |column| fields[column]);
            self.leaves[first..].iter_mut().filter(|leaf| !leaf.is_inner).for_each(|leaf| leaf.conditions.push(condition.clone()));
        }
    }
}
