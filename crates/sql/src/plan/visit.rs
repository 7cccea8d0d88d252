//! Walking and rewriting expressions and plans.

use highkey_types::Value;

use crate::stack;

use super::{Expr, ExprKind, Rel, RelKind, SubqueryKind, FrameBoundary};

impl Expr {
    /// The direct operands, not entering subqueries' plans.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Column(_)
            | ExprKind::Outer { .. }
            | ExprKind::Literal(_)
            | ExprKind::Param(_)
            | ExprKind::UserVar(_)
            | ExprKind::SystemVar { .. }
            | ExprKind::AggregateRef(_)
            | ExprKind::WindowRef(_) => Vec::new(),
            ExprKind::AssignUserVar { value: e, .. }
            | ExprKind::Not(e)
            | ExprKind::IsNull { expr: e, .. }
            | ExprKind::IsTruth { expr: e, .. }
            | ExprKind::Cast(e) => vec![e],
            ExprKind::Call { args, .. } | ExprKind::Stored { args, .. } | ExprKind::Match { columns: args, .. } | ExprKind::And(args) | ExprKind::Or(args) => args.iter().collect(),
            ExprKind::Compare { left, right, .. } => vec![left, right],
            ExprKind::In { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
            ExprKind::Like { expr, pattern, .. } => vec![expr, pattern],
            ExprKind::Case { branches, otherwise } => {
                branches.iter().flat_map(|(when, then)| [when, then]).chain(otherwise.as_deref()).collect()
            }
            ExprKind::Subquery(sub) => match &sub.kind {
                SubqueryKind::Scalar | SubqueryKind::Exists { .. } => Vec::new(),
                SubqueryKind::In { exprs, .. } => exprs.iter().collect(),
                SubqueryKind::Quantified { expr, .. } => vec![expr],
            },
        }
    }

    /// The direct operands, to change.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Column(_)
            | ExprKind::Outer { .. }
            | ExprKind::Literal(_)
            | ExprKind::Param(_)
            | ExprKind::UserVar(_)
            | ExprKind::SystemVar { .. }
            | ExprKind::AggregateRef(_)
            | ExprKind::WindowRef(_) => Vec::new(),
            ExprKind::AssignUserVar { value: e, .. }
            | ExprKind::Not(e)
            | ExprKind::IsNull { expr: e, .. }
            | ExprKind::IsTruth { expr: e, .. }
            | ExprKind::Cast(e) => vec![e],
            ExprKind::Call { args, .. } | ExprKind::Stored { args, .. } | ExprKind::Match { columns: args, .. } | ExprKind::And(args) | ExprKind::Or(args) => args.iter_mut().collect(),
            ExprKind::Compare { left, right, .. } => vec![left, right],
            ExprKind::In { expr, list, .. } => std::iter::once(&mut **expr).chain(list).collect(),
            ExprKind::Like { expr, pattern, .. } => vec![expr, pattern],
            ExprKind::Case { branches, otherwise } => {
                branches.iter_mut().flat_map(|(when, then)| [when, then]).chain(otherwise.as_deref_mut()).collect()
            }
            ExprKind::Subquery(sub) => match &mut sub.kind {
                SubqueryKind::Scalar | SubqueryKind::Exists { .. } => Vec::new(),
                SubqueryKind::In { exprs, .. } => exprs.iter_mut().collect(),
                SubqueryKind::Quantified { expr, .. } => vec![expr],
            },
        }
    }

    /// Calls `f` on this expression and everything below it, not entering subqueries' plans.
    pub fn walk<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        stack::ensure(|| {
            f(self);
            for child in self.children() {
                child.walk(f);
            }
        });
    }

    /// Calls `f` on everything below this expression and then on it, not entering subqueries' plans.
    pub fn walk_mut(&mut self, f: &mut impl FnMut(&mut Expr)) {
        stack::ensure(|| {
            for child in self.children_mut() {
                child.walk_mut(f);
            }
            f(self);
        });
    }

    /// The input columns it reads, including what its subqueries read of this row; ascending, without duplicates.
    pub fn columns(&self) -> Vec<usize> {
        let mut found = Vec::new();
        collect_columns(self, 0, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Replaces every reference to the input row by `f(index)`, also the outer references of subqueries.
    /// `f` must give an expression that is a `Column` for indexes that subqueries refer to.
    pub fn map_columns(&mut self, f: &mut impl FnMut(usize) -> usize) {
        map_columns_at(self, 0, f);
    }

    /// Puts the values of the input row into the subqueries of this expression, which then depend on it no more.
    pub fn bind_outer_row(&mut self, row: &[Value]) {
        self.walk_mut(&mut |e| {
            if let ExprKind::Subquery(sub) = &mut e.kind {
                sub.plan.for_each_root_mut(&mut |e| bind_outer_at(e, 1, row));
                sub.correlated = sub.plan.is_correlated();
            }
        });
    }

    /// There is a subquery in it, or a function that runs queries.
    pub fn has_subquery(&self) -> bool {
        let mut found = false;
        self.walk(&mut |e| found |= e.runs_query_itself());
        found
    }
}

fn collect_columns(expr: &Expr, depth: usize, found: &mut Vec<usize>) {
    match &expr.kind {
        ExprKind::Column(i) if depth == 0 => found.push(*i),
        ExprKind::Outer { depth: d, index } if depth > 0 && *d == depth => found.push(*index),
        ExprKind::Subquery(sub) => {
            sub.plan.for_each_expr(&mut |e, extra| collect_columns_flat(e, depth + 1 + extra, found));
        }
        _ => {}
    }
    for child in expr.children() {
        collect_columns(child, depth, found);
    }
}

// `for_each_expr` already enters nested expressions, so only the node itself counts here.
fn collect_columns_flat(expr: &Expr, depth: usize, found: &mut Vec<usize>) {
    if let ExprKind::Outer { depth: d, index } = &expr.kind
        && *d == depth
    {
        found.push(*index);
    }
}

fn map_columns_at(expr: &mut Expr, depth: usize, f: &mut impl FnMut(usize) -> usize) {
    match &mut expr.kind {
        ExprKind::Column(i) if depth == 0 => *i = f(*i),
        ExprKind::Outer { depth: d, index } if depth > 0 && *d == depth => *index = f(*index),
        ExprKind::Subquery(sub) => sub.plan.for_each_root_mut(&mut |e| map_columns_at_dyn(e, depth + 1, f)),
        _ => {}
    }
    for child in expr.children_mut() {
        map_columns_at(child, depth, f);
    }
}

fn map_columns_at_dyn(expr: &mut Expr, depth: usize, f: &mut dyn FnMut(usize) -> usize) {
    match &mut expr.kind {
        ExprKind::Column(i) if depth == 0 => *i = f(*i),
        ExprKind::Outer { depth: d, index } if depth > 0 && *d == depth => *index = f(*index),
        ExprKind::Subquery(sub) => sub.plan.for_each_root_mut(&mut |e| map_columns_at_dyn(e, depth + 1, f)),
        _ => {}
    }
    for child in expr.children_mut() {
        map_columns_at_dyn(child, depth, f);
    }
}

fn bind_outer_at(expr: &mut Expr, depth: usize, row: &[Value]) {
    match &mut expr.kind {
        ExprKind::Outer { depth: d, index } if *d == depth => expr.kind = ExprKind::Literal(row[*index].clone()),
        ExprKind::Subquery(sub) => {
            sub.plan.for_each_root_mut(&mut |e| bind_outer_at(e, depth + 1, row));
            sub.correlated = sub.plan.is_correlated();
        }
        _ => {}
    }
    for child in expr.children_mut() {
        bind_outer_at(child, depth, row);
    }
}

impl Rel {
    /// Calls `f` on each expression that an operator of this plan holds directly (roots only), in all operators.
    pub fn for_each_root(&self, f: &mut dyn FnMut(&Expr)) {
        self.own_roots(f);
        for input in self.inputs() {
            input.for_each_root(f);
        }
    }

    /// Those of this operator.
    pub(super) fn own_roots(&self, f: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::CteScan { .. } | RelKind::Distinct { .. } => {}
            RelKind::SetOperation { .. } | RelKind::RecursiveCte { .. } | RelKind::MaterializedCte { .. } => {}
            RelKind::Values { rows } => rows.iter().flatten().for_each(&mut *f),
            RelKind::Filter { predicate, .. } => f(predicate),
            RelKind::Project { exprs, .. } => exprs.iter().for_each(&mut *f),
            RelKind::Join { on, .. } => on.iter().for_each(&mut *f),
            RelKind::Aggregate { groups, aggregates, .. } => {
                groups.iter().for_each(&mut *f);
                for aggregate in aggregates {
                    aggregate.args.iter().for_each(&mut *f);
                    aggregate.order_by.iter().for_each(|k| f(&k.expr));
                }
            }
            RelKind::Window { windows, .. } => {
                for window in windows {
                    window.args.iter().for_each(&mut *f);
                    window.partition_by.iter().for_each(&mut *f);
                    window.order_by.iter().for_each(|k| f(&k.expr));
                    for bound in window.frame.iter().flat_map(|w| [&w.start, &w.end]) {
                        if let FrameBoundary::Preceding(e, _) | FrameBoundary::Following(e, _) = bound {
                            f(e);
                        }
                    }
                }
            }
            RelKind::Sort { keys, .. } => keys.iter().for_each(|k| f(&k.expr)),
            RelKind::Limit { offset, count, .. } => offset.iter().chain(count).for_each(&mut *f),
        }
    }

    /// Calls `f` on each operator of this plan and of the subqueries in it, once.
    pub fn for_each_operator(&self, f: &mut dyn FnMut(&Rel)) {
        f(self);
        self.own_roots(&mut |root| {
            root.walk(&mut |e| {
                if let ExprKind::Subquery(sub) = &e.kind {
                    sub.plan.for_each_operator(f);
                }
            });
        });
        for input in self.inputs() {
            input.for_each_operator(f);
        }
    }

    /// How many operators this plan and the subqueries in it have, and how many of them stand on each other.
    pub fn size(&self) -> (usize, usize) {
        let (mut operators, mut height) = (0, 0);
        let mut add = |below: &Rel| {
            let (some, levels) = stack::ensure(|| below.size());
            operators += some;
            height = height.max(levels);
        };
        self.inputs().into_iter().for_each(&mut add);
        self.own_roots(&mut |root| {
            root.walk(&mut |e| {
                if let ExprKind::Subquery(sub) = &e.kind {
                    add(&sub.plan);
                }
            });
        });
        (operators + 1, height + 1)
    }

    /// As [`Rel::for_each_root`], to change.
    pub fn for_each_root_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.own_roots_mut(f);
        for input in self.inputs_mut() {
            input.for_each_root_mut(f);
        }
    }

    /// Those of this operator, to change.
    pub fn own_roots_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::CteScan { .. } | RelKind::Distinct { .. } => {}
            RelKind::SetOperation { .. } | RelKind::RecursiveCte { .. } | RelKind::MaterializedCte { .. } => {}
            RelKind::Values { rows } => rows.iter_mut().flatten().for_each(&mut *f),
            RelKind::Filter { predicate, .. } => f(predicate),
            RelKind::Project { exprs, .. } => exprs.iter_mut().for_each(&mut *f),
            RelKind::Join { on, .. } => on.iter_mut().for_each(&mut *f),
            RelKind::Aggregate { groups, aggregates, .. } => {
                groups.iter_mut().for_each(&mut *f);
                for aggregate in aggregates {
                    aggregate.args.iter_mut().for_each(&mut *f);
                    aggregate.order_by.iter_mut().for_each(|k| f(&mut k.expr));
                }
            }
            RelKind::Window { windows, .. } => {
                for window in windows {
                    window.args.iter_mut().for_each(&mut *f);
                    window.partition_by.iter_mut().for_each(&mut *f);
                    window.order_by.iter_mut().for_each(|k| f(&mut k.expr));
                    for bound in window.frame.iter_mut().flat_map(|w| [&mut w.start, &mut w.end]) {
                        if let FrameBoundary::Preceding(e, _) | FrameBoundary::Following(e, _) = bound {
                            f(e);
                        }
                    }
                }
            }
            RelKind::Sort { keys, .. } => keys.iter_mut().for_each(|k| f(&mut k.expr)),
            RelKind::Limit { offset, count, .. } => offset.iter_mut().chain(count).for_each(&mut *f),
        }
    }

    /// Calls `f` on every expression node of the plan and of the subqueries in it; the number is how many subqueries
    /// lie between this plan and the node.
    pub fn for_each_expr(&self, f: &mut dyn FnMut(&Expr, usize)) {
        self.for_each_expr_at(0, f);
    }

    fn for_each_expr_at(&self, depth: usize, f: &mut dyn FnMut(&Expr, usize)) {
        self.for_each_root(&mut |root| {
            root.walk(&mut |e| {
                f(e, depth);
                if let ExprKind::Subquery(sub) = &e.kind {
                    sub.plan.for_each_expr_at(depth + 1, f);
                }
            });
        });
    }

    /// Some expression refers to a row outside this plan.
    pub fn is_correlated(&self) -> bool {
        let mut correlated = false;
        self.for_each_expr(&mut |e, depth| {
            if let ExprKind::Outer { depth: d, .. } = e.kind {
                correlated |= d > depth;
            }
        });
        correlated
    }
}
