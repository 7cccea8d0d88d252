//! Joins.

use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, lit};

use super::guard::relation_of;
use super::{Lowered, Lowerer, Scope};
use crate::plan::{Expr, JoinKind, Rel, implied_constants};

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
