//! Joins.

use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, lit};

use super::{Lowered, Lowerer, Scope};
use crate::plan::{Expr, JoinKind, Rel};

impl Lowerer {
    pub fn join(&self, kind: JoinKind, left: &Rel, right: &Rel, on: Option<&Expr>, hints: &[Expr]) -> Result<Lowered> {
        let width = left.fields.len();
        let conjuncts = on.map_or(&[][..], |on| on.conjuncts());
        let (mut left_hints, mut right_hints) = (Vec::new(), Vec::new());
        // Rows that ON refuses are lost in an inner join; in a left join only ON's conditions on the right side restrict it.
        for (hint, of_on) in hints.iter().map(|h| (h, false)).chain(conjuncts.iter().filter(|c| !c.has_subquery()).map(|c| (c, true))) {
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
                let on = plain.iter().map(|c| self.condition(c, &scope)).collect::<Result<Vec<_>>>()?;
                let plan = inner_join(l.plan, r.plan, on)?;
                if with_subquery.is_empty() {
                    plan
                } else {
                    self.filter_lowered(Lowered { plan, columns: columns.clone() }, scope.types.clone(), &with_subquery)?
                }
            }
            JoinKind::Left => {
                let on = conjuncts.iter().map(|c| self.condition(c, &scope)).collect::<Result<Vec<_>>>()?;
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
