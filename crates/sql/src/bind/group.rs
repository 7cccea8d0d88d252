//! Aggregated queries: expressions over FROM rewritten to expressions over groups, and ONLY_FULL_GROUP_BY.

use super::binder::Result;
use super::errors;
use super::scope::same_expr;
use crate::plan::{Aggregate, AggregateFunc, Coercibility, Expr, ExprKind, ExprType, Field};

/// Stands for the rollup set until the aggregate's width is known.
pub(super) const ROLLUP_SET: usize = usize::MAX - 1;

/// A place to name in error 1055.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub position: usize,
    pub clause: &'static str,
}

/// Rewrites expressions over FROM to expressions over the aggregate's output.
pub(super) struct Grouping<'a> {
    pub groups: &'a [Expr],
    pub aggregates: Vec<Aggregate>,
    pub fields: &'a [Field],
    pub full_group_by: bool,
    pub rollup: bool,
    /// Columns that the group columns determine.
    pub determined: Vec<usize>,
}

impl Grouping<'_> {
    /// `expr` over groups and aggregates. A column that is neither is ANY_VALUE where the mode or a key allows it.
    pub fn rewrite(&mut self, expr: &mut Expr, place: Place) -> Result<()> {
        if let Some(position) = self.group(expr) {
            let nullable = expr.ty.nullable || self.rollup;
            *expr = Expr::column(position, expr.ty.clone().with_nullable(nullable));
            return Ok(());
        }
        match &mut expr.kind {
            ExprKind::AggregateRef(index) => expr.kind = ExprKind::Column(self.groups.len() + *index),
            ExprKind::Column(ROLLUP_SET) => {}
            ExprKind::Column(index) => {
                let (index, ty) = (*index, expr.ty.clone());
                let column = self.ungrouped(index, ty, place)?;
                *expr = column;
            }
            ExprKind::Subquery(sub) => {
                let mut failure = None;
                sub.plan.for_each_root_mut(&mut |root| {
                    if failure.is_none() {
                        failure = self.rewrite_outer(root, 1, place).err();
                    }
                });
                if let Some(error) = failure {
                    return Err(error);
                }
                for child in expr.children_mut() {
                    self.rewrite(child, place)?;
                }
            }
            _ => {
                for child in expr.children_mut() {
                    self.rewrite(child, place)?;
                }
            }
        }
        Ok(())
    }

    /// The group column that an expression is, whatever COLLATE is put on it.
    fn group(&self, expr: &Expr) -> Option<usize> {
        let is_grouped = |group: &Expr| {
            if expr.ty.coercibility != Coercibility::Explicit || group.ty.coercibility == Coercibility::Explicit {
                return same_expr(group, expr);
            }
            let mut plain = expr.clone();
            plain.ty.ty.collation = group.ty.ty.collation;
            same_expr(group, &plain)
        };
        let exact = self.groups.iter().position(|group| same_expr(group, expr));
        exact.or_else(|| self.groups.iter().position(is_grouped))
    }

    /// Outer references of a subquery to the aggregated query's FROM become references to its groups.
    fn rewrite_outer(&mut self, expr: &mut Expr, depth: usize, place: Place) -> Result<()> {
        match &mut expr.kind {
            ExprKind::Outer { depth: d, index } if *d == depth => {
                let source = Expr::column(*index, expr.ty.clone());
                let mapped = match self.group(&source) {
                    Some(position) => position,
                    None => match self.ungrouped(*index, expr.ty.clone(), place)?.as_column() {
                        Some(position) => position,
                        None => return Err(crate::plan::unresolved("outer reference to a group")),
                    },
                };
                *index = mapped;
            }
            ExprKind::Subquery(sub) => {
                let mut failure = None;
                sub.plan.for_each_root_mut(&mut |root| {
                    if failure.is_none() {
                        failure = self.rewrite_outer(root, depth + 1, place).err();
                    }
                });
                if let Some(error) = failure {
                    return Err(error);
                }
            }
            _ => {}
        }
        for child in expr.children_mut() {
            self.rewrite_outer(child, depth, place)?;
        }
        Ok(())
    }

    fn ungrouped(&mut self, index: usize, ty: ExprType, place: Place) -> Result<Expr> {
        if self.full_group_by && !self.determined.contains(&index) {
            let column = self.fields[index].full_name();
            return Err(if self.groups.is_empty() {
                errors::mixed_without_group(place.position, &column)
            } else {
                errors::not_grouped(place.position, place.clause, &column)
            });
        }
        let known = self.aggregates.iter().position(|a| a.func == AggregateFunc::AnyValue && a.args.first().and_then(Expr::as_column) == Some(index));
        let position = known.unwrap_or_else(|| {
            // Without groups there may be no row at all.
            let nullable = ty.nullable || self.groups.is_empty() || self.rollup;
            let ty = ty.clone().with_nullable(nullable);
            let args = vec![Expr::column(index, ty.clone())];
            self.aggregates.push(Aggregate { func: AggregateFunc::AnyValue, distinct: false, args, order_by: Vec::new(), ty });
            self.aggregates.len() - 1
        });
        Ok(Expr::column(self.groups.len() + position, self.aggregates[position].ty.clone()))
    }
}

/// After all rewriting: the rollup set's place is known.
pub(super) fn place_rollup_set(expr: &mut Expr, at: usize) {
    expr.walk_mut(&mut |e| {
        if let ExprKind::Column(index) = &mut e.kind
            && *index == ROLLUP_SET
        {
            *index = at;
        }
    });
}
