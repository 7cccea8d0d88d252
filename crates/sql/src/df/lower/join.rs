//! Joins.

use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, lit};

use super::guard::relation_of;
use super::{Lowered, Lowerer, Scope};
use crate::plan::{CompareBy, CompareOp, Expr, ExprKind, ExprType, JoinKind, Rel};

impl Lowerer {
    pub fn join(&self, kind: JoinKind, left: &Rel, right: &Rel, on: Option<&Expr>, hints: &[Expr]) -> Result<Lowered> {
        let width = left.fields.len();
        let conjuncts = on.map_or(&[][..], |on| on.conjuncts());
        let (mut left_hints, mut right_hints) = (Vec::new(), Vec::new());
        let plain: Vec<&Expr> = conjuncts.iter().filter(|c| !c.has_subquery()).collect();
        let implied = implied_constants(&hints.iter().chain(plain.iter().copied()).collect::<Vec<_>>());
        // Rows that ON refuses are lost in an inner join; in a left join only ON's conditions on the right side restrict it.
        for (hint, of_on) in hints.iter().map(|h| (h, false)).chain(plain.into_iter().chain(&implied).map(|c| (c, true))) {
            let columns = hint.columns();
            if columns.is_empty() {
                continue;
            }
            let inner = kind != JoinKind::Left;
            if columns.iter().all(|&c| c < width) && (inner || !of_on) {
                left_hints.push(hint.clone());
            } else if columns.iter().all(|&c| c >= width) && (inner || of_on) {
                let mut hint = hint.clone();
                hint.map_columns(&mut |i| i - width);
                right_hints.push(hint);
            }
        }
        let (l, r) = (self.rel(left, &left_hints)?, self.rel(right, &right_hints)?);
        let scope = Scope::of(left, &l).join(Scope::of(right, &r));
        let columns = scope.exprs.clone();
        let plan = match kind {
            JoinKind::Inner | JoinKind::Straight => {
                let (with_subquery, plain): (Vec<Expr>, Vec<Expr>) = conjuncts.iter().cloned().partition(Expr::has_subquery);
                let plain = self.guarded(&[], &plain, &|column| relation_of(left, right, column));
                let on = self.conditions(&plain, &scope)?;
                let plan = inner_join(l.plan, r.plan, on)?;
                if with_subquery.is_empty() {
                    plan
                } else {
                    self.filter_lowered(Lowered { plan, columns: columns.clone() }, scope.types.clone(), &with_subquery)?
                }
            }
            JoinKind::Left => {
                let conjuncts = self.guarded(&[], conjuncts, &|column| relation_of(left, right, column));
                let on = self.conditions(&conjuncts, &scope)?;
                LogicalPlanBuilder::from(l.plan).join_on(r.plan, JoinType::Left, some_condition(on))?.build()?
            }
        };
        Ok(Lowered { plan, columns })
    }
}

/// What equalities of columns with each other and with constants say together: `a = 1 AND a = b` is about `b`, too.
pub(super) fn implied_constants(conditions: &[&Expr]) -> Vec<Expr> {
    let equality = |e: &'_ Expr| match &e.kind {
        ExprKind::Compare { op: CompareOp::Eq, by, left, right } => Some((*by, (**left).clone(), (**right).clone())),
        _ => None,
    };
    let equalities: Vec<(CompareBy, Expr, Expr)> = conditions.iter().filter_map(|e| equality(e)).collect();
    let of_constant = |(by, left, right): &(CompareBy, Expr, Expr)| match (left.as_column(), right.as_column()) {
        (Some(column), None) if right.is_known() => Some((column, *by, right.clone())),
        (None, Some(column)) if left.is_known() => Some((column, *by, left.clone())),
        _ => None,
    };
    let mut constants: Vec<(usize, CompareBy, Expr)> = equalities.iter().filter_map(of_constant).collect();
    let mut implied = Vec::new();
    let mut at = 0;
    while let Some((column, by, constant)) = constants.get(at).cloned() {
        at += 1;
        for (tied_by, left, right) in &equalities {
            let (Some(l), Some(r)) = (left.as_column(), right.as_column()) else { continue };
            let other = match (l == column, r == column) {
                (true, false) => right,
                (false, true) => left,
                _ => continue,
            };
            let other_column = if l == column { r } else { l };
            if *tied_by != by || constants.iter().any(|(known, ..)| *known == other_column) {
                continue;
            }
            let kind = ExprKind::Compare { op: CompareOp::Eq, by, left: Box::new(other.clone()), right: Box::new(constant.clone()) };
            implied.push(Expr { kind, ty: ExprType::boolean(true) });
            constants.push((other_column, by, constant.clone()));
        }
    }
    implied
}

pub(super) fn inner_join(left: LogicalPlan, right: LogicalPlan, on: Vec<DfExpr>) -> Result<LogicalPlan> {
    let left = LogicalPlanBuilder::from(left);
    if on.is_empty() { left.cross_join(right)?.build() } else { left.join_on(right, JoinType::Inner, on)?.build() }
}

/// DataFusion's outer and semi joins want a condition.
pub(super) fn some_condition(mut on: Vec<DfExpr>) -> Vec<DfExpr> {
    if on.is_empty() {
        on.push(lit(true));
    }
    on
}
