//! Which share of a table's rows satisfies a condition: from the histograms of its columns, from what their indexes have, and MySQL's guesses where there
//! is neither.

use std::cmp::Ordering;

use highkey_table::{Histogram, KeyRange, Table};
use highkey_types::Value;

use super::access::{index_access, usable};
use super::ranges::{Key, key, key_ranges};
use super::{CompareBy, CompareOp, Expr, ExprKind};
use crate::expr::{EvalContext, eval};

/// MySQL's COND_FILTER_* (sql_const.h): what is guessed of a column compared with something.
const EQUALITY: f64 = 0.1;
const INEQUALITY: f64 = 0.3333;
const BETWEEN: f64 = 0.1111;

/// The share of the table's rows that satisfy `filter`, between 0 and 1; `filter` is over a row whose field i is table column `columns[i]`.
/// Conditions on different columns are taken for independent.
pub fn selectivity(filter: &Expr, table: &Table, columns: &[usize], cx: &mut dyn EvalContext) -> f64 {
    Estimate { table, columns, cx, asks_indexes: false }.of(filter).clamp(0.0, 1.0)
}

/// The same, by the indexes of columns without histograms, too.
pub fn selectivity_by_indexes(filter: &Expr, table: &Table, columns: &[usize], cx: &mut dyn EvalContext) -> f64 {
    Estimate { table, columns, cx, asks_indexes: true }.of(filter).clamp(0.0, 1.0)
}

/// Ranges of an index that are asked for their rows: each takes two descents, and a look at a dozen pages of each level.
const MOST_ASKED: usize = 16;

/// About how many rows ranges of an index have, by the pages above them; None if they are too many to ask.
pub fn rows_in_ranges(table: &Table, index: usize, ranges: &[KeyRange]) -> Option<u64> {
    if ranges.len() > MOST_ASKED {
        return None;
    }
    ranges.iter().map(|range| table.estimate_range(index, range).ok()).sum()
}

/// The share that satisfy what `filter` says of table column `column` alone; None if it has no histogram, or `filter` says nothing of it.
pub fn column_share(filter: &Expr, table: &Table, columns: &[usize], column: usize, cx: &mut dyn EvalContext) -> Option<f64> {
    table.histogram(column)?;
    let conditions: Vec<&Expr> = filter.conjuncts().iter().filter(|c| subject(c).is_some_and(|i| columns.get(i) == Some(&column))).collect();
    (!conditions.is_empty()).then(|| Estimate { table, columns, cx, asks_indexes: false }.conjunction(conditions).clamp(0.0, 1.0))
}

/// The column that a condition compares with something known.
fn subject(condition: &Expr) -> Option<usize> {
    match &condition.kind {
        ExprKind::Compare { left, right, .. } => match (left.as_column(), right.as_column()) {
            (Some(column), None) if right.is_known() => Some(column),
            (None, Some(column)) if left.is_known() => Some(column),
            _ => None,
        },
        ExprKind::In { expr, list, .. } if list.iter().all(Expr::is_known) => expr.as_column(),
        ExprKind::IsNull { expr, .. } | ExprKind::Like { expr, .. } => expr.as_column(),
        _ => None,
    }
}

struct Estimate<'a> {
    table: &'a Table,
    columns: &'a [usize],
    cx: &'a mut dyn EvalContext,
    asks_indexes: bool,
}

impl Estimate<'_> {
    fn of(&mut self, condition: &Expr) -> f64 {
        match &condition.kind {
            ExprKind::And(all) => self.conjunction(all.iter().collect()),
            ExprKind::Or(any) => any.iter().fold(0.0, |share, e| {
                let other = self.of(e);
                share + other - share * other
            }),
            ExprKind::Not(e) => 1.0 - self.of(e),
            _ => self.single(condition),
        }
    }

    /// Two bounds of one column are a range of it, not independent of each other.
    fn conjunction(&mut self, mut conditions: Vec<&Expr>) -> f64 {
        let mut share = 1.0;
        while let Some(condition) = conditions.pop() {
            let partner = bound_of(condition).and_then(|(column, upper)| {
                conditions.iter().position(|other| bound_of(other) == Some((column, !upper))).map(|at| (column, at))
            });
            share *= match partner {
                Some((column, at)) => {
                    let other = conditions.swap_remove(at);
                    match self.histogram(column) {
                        Some(histogram) => (self.single(condition) + self.single(other) - (1.0 - histogram.null_fraction())).max(0.0),
                        None => self.by_index(column, &[condition, other]).unwrap_or(BETWEEN),
                    }
                }
                None => self.of(condition),
            };
        }
        share
    }

    fn single(&mut self, condition: &Expr) -> f64 {
        let Some(column) = subject(condition) else { return 1.0 };
        if self.histogram(column).is_none()
            && let Some(share) = self.by_index(column, &[condition])
        {
            return share;
        }
        match &condition.kind {
            ExprKind::Compare { op, by, left, right } => {
                let (op, value) = if left.as_column() == Some(column) { (*op, right) } else { (op.flip(), left) };
                self.compared(column, op, *by, value).unwrap_or(match op {
                    CompareOp::Eq | CompareOp::NullSafeEq => EQUALITY,
                    CompareOp::Ne => 1.0 - EQUALITY,
                    _ => INEQUALITY,
                })
            }
            ExprKind::In { list, by, negated, .. } => {
                let known: Option<f64> = list.iter().map(|value| self.compared(column, CompareOp::Eq, *by, value)).sum();
                let (inside, present) = match (known, self.histogram(column)) {
                    (Some(inside), Some(histogram)) => (inside, 1.0 - histogram.null_fraction()),
                    _ => ((list.len() as f64 * EQUALITY).min(0.5), 1.0),
                };
                if *negated { (present - inside).max(0.0) } else { inside.min(present) }
            }
            ExprKind::IsNull { negated, .. } => {
                let nulls = self.histogram(column).map_or(EQUALITY, |h| h.null_fraction());
                if *negated { 1.0 - nulls } else { nulls }
            }
            ExprKind::Like { negated, .. } => if *negated { 1.0 - BETWEEN } else { BETWEEN },
            _ => 1.0,
        }
    }

    fn histogram(&self, column: usize) -> Option<std::sync::Arc<Histogram>> {
        // A field that is no column of the table is its hidden row id.
        self.columns.get(column).filter(|&&c| c < self.table.columns().len()).and_then(|&c| self.table.histogram(c))
    }

    /// By an index that begins with the column; None if there is none that answers the conditions.
    fn by_index(&mut self, column: usize, conditions: &[&Expr]) -> Option<f64> {
        let column = *self.columns.get(column).filter(|_| self.asks_indexes)?;
        let def = self.table.def();
        let leads = |index: &usize| def.indexes[*index].parts.first().is_some_and(|part| part.column == column && part.prefix.is_none());
        let filter = Expr::and(conditions.iter().map(|condition| (*condition).clone()))?;
        let access = (0..def.indexes.len()).filter(leads).find_map(|index| index_access(&filter, def, self.columns, index))?;
        let ranges = key_ranges(&access, def, self.cx).ok()?;
        let rows = rows_in_ranges(self.table, access.index, &ranges)?;
        Some((rows as f64 / self.table.row_count_estimate().ok()?.max(1) as f64).min(1.0))
    }

    /// By the column's histogram; None if there is none for this comparison.
    fn compared(&mut self, column: usize, op: CompareOp, by: CompareBy, value: &Expr) -> Option<f64> {
        let histogram = self.histogram(column)?;
        let ty = &self.table.columns()[self.columns[column]].ty;
        if !usable(by, ty, matches!(op, CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne)) {
            return None;
        }
        let value: Value = eval(value, &[], self.cx).ok()?;
        let (near, side) = match key(&value, ty, self.cx) {
            Key::Null if op == CompareOp::NullSafeEq && value.is_null() => return Some(histogram.null_fraction()),
            Key::Null => return Some(0.0),
            Key::Unknown => return None,
            Key::Near(near, side) => (near, side),
        };
        let present = 1.0 - histogram.null_fraction();
        let (below, equal) = (histogram.below(&near), histogram.equal(&near));
        // Where the constant lies between two values of the type, the near one is on one side of it.
        let less = if side == Ordering::Less { below + equal } else { below };
        let same = if side == Ordering::Equal { equal } else { 0.0 };
        let share = match op {
            CompareOp::Eq | CompareOp::NullSafeEq => same,
            CompareOp::Ne => present - same,
            CompareOp::Lt => less,
            CompareOp::Le => less + same,
            CompareOp::Gt => present - less - same,
            CompareOp::Ge => present - less,
        };
        Some(share.clamp(0.0, 1.0))
    }
}

/// The column that a condition bounds, and whether from above.
fn bound_of(condition: &Expr) -> Option<(usize, bool)> {
    let column = subject(condition)?;
    let ExprKind::Compare { op, left, .. } = &condition.kind else { return None };
    let op = if left.as_column() == Some(column) { *op } else { op.flip() };
    match op {
        CompareOp::Lt | CompareOp::Le => Some((column, true)),
        CompareOp::Gt | CompareOp::Ge => Some((column, false)),
        _ => None,
    }
}
