//! Walking and rewriting expressions and plans.

use highkey_types::Value;

use crate::stack;

use super::{Expr, ExprKind, Rel, RelKind, SubqueryKind, FrameBoundary};

/// The same visitors twice: to look at what they come to, and to change it.
macro_rules! visitors {
    ($children:ident, $inputs:ident, $own_roots:ident, $iter:ident $(, $mutability:tt)?) => {
        impl Expr {
            /// The direct operands, not entering subqueries' plans.
            pub fn $children(& $($mutability)? self) -> Vec<& $($mutability)? Expr> {
                match & $($mutability)? self.kind {
                    ExprKind::Column(_)
                    | ExprKind::Outer { .. }
                    | ExprKind::Literal(_)
                    | ExprKind::Param(_)
                    | ExprKind::UserVar(_)
                    | ExprKind::SystemVar { .. }
                    | ExprKind::Kept(_)
                    | ExprKind::AggregateRef(_)
                    | ExprKind::WindowRef(_) => Vec::new(),
                    ExprKind::AssignUserVar { value: e, .. }
                    | ExprKind::Not(e)
                    | ExprKind::IsNull { expr: e, .. }
                    | ExprKind::IsTruth { expr: e, .. }
                    | ExprKind::Cast(e) => vec![e],
                    ExprKind::Call { args, .. } | ExprKind::Stored { args, .. } | ExprKind::Match { columns: args, .. } | ExprKind::And(args) | ExprKind::Or(args) => args.$iter().collect(),
                    ExprKind::Compare { left, right, .. } => vec![left, right],
                    ExprKind::Once { value, body, .. } => vec![value, body],
                    ExprKind::In { expr, list, .. } => std::iter::once(& $($mutability)? **expr).chain(list).collect(),
                    ExprKind::Like { expr, pattern, .. } => vec![expr, pattern],
                    ExprKind::Case { branches, otherwise } => {
                        let otherwise = otherwise.$iter().map(|value| & $($mutability)? **value);
                        branches.$iter().flat_map(|(when, then)| [when, then]).chain(otherwise).collect()
                    }
                    ExprKind::Subquery(sub) => match & $($mutability)? sub.kind {
                        SubqueryKind::Scalar | SubqueryKind::Exists { .. } | SubqueryKind::Rows => Vec::new(),
                        SubqueryKind::In { exprs, .. } => exprs.$iter().collect(),
                        SubqueryKind::Quantified { expr, .. } => vec![expr],
                    },
                }
            }
        }

        impl Rel {
            /// The operator's inputs.
            pub fn $inputs(& $($mutability)? self) -> Vec<& $($mutability)? Rel> {
                match & $($mutability)? self.kind {
                    RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::Values { .. } | RelKind::Kept { .. } | RelKind::CteScan { .. } | RelKind::JsonTable { .. } => Vec::new(),
                    RelKind::Filter { input, .. }
                    | RelKind::Apply { input, .. }
                    | RelKind::Project { input, .. }
                    | RelKind::Aggregate { input, .. }
                    | RelKind::Window { input, .. }
                    | RelKind::Sort { input, .. }
                    | RelKind::Limit { input, .. }
                    | RelKind::Distinct { input } => vec![input],
                    RelKind::Join { left, right, .. } => vec![left, right],
                    RelKind::SetOperation { inputs, .. } => inputs.$iter().collect(),
                    RelKind::RecursiveCte { anchor, step, .. } => vec![anchor, step],
                    RelKind::MaterializedCte { plan, .. } => vec![plan],
                }
            }

            /// Calls `f` on each expression that the operator holds directly (roots only).
            pub fn $own_roots(& $($mutability)? self, f: &mut dyn FnMut(& $($mutability)? Expr)) {
                match & $($mutability)? self.kind {
                    RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::Kept { .. } | RelKind::CteScan { .. } | RelKind::Distinct { .. } => {}
                    RelKind::SetOperation { .. } | RelKind::RecursiveCte { .. } | RelKind::MaterializedCte { .. } => {}
                    RelKind::Values { rows } => rows.$iter().flatten().for_each(&mut *f),
                    RelKind::Filter { predicate, .. } => f(predicate),
                    RelKind::Apply { made: expr, .. } | RelKind::JsonTable { document: expr, .. } => f(expr),
                    RelKind::Project { exprs, .. } => exprs.$iter().for_each(&mut *f),
                    RelKind::Join { on, .. } => on.$iter().for_each(&mut *f),
                    RelKind::Aggregate { groups, aggregates, .. } => {
                        groups.$iter().for_each(&mut *f);
                        for aggregate in aggregates {
                            aggregate.args.$iter().for_each(&mut *f);
                            aggregate.order_by.$iter().for_each(|k| f(& $($mutability)? k.expr));
                        }
                    }
                    RelKind::Window { windows, .. } => {
                        for window in windows {
                            window.args.$iter().for_each(&mut *f);
                            window.partition_by.$iter().for_each(&mut *f);
                            window.order_by.$iter().for_each(|k| f(& $($mutability)? k.expr));
                            for bound in window.frame.$iter().flat_map(|w| [& $($mutability)? w.start, & $($mutability)? w.end]) {
                                if let FrameBoundary::Preceding(e, _) | FrameBoundary::Following(e, _) = bound {
                                    f(e);
                                }
                            }
                        }
                    }
                    RelKind::Sort { keys, .. } => keys.$iter().for_each(|k| f(& $($mutability)? k.expr)),
                    RelKind::Limit { offset, count, .. } => offset.$iter().chain(count).for_each(&mut *f),
                }
            }
        }
    };
}

visitors!(children, inputs, own_roots, iter);
visitors!(children_mut, inputs_mut, own_roots_mut, iter_mut, mut);

impl Expr {
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
        walk_deep_mut(self, 0, &mut |e, depth| match &mut e.kind {
            ExprKind::Column(index) if depth == 0 => *index = f(*index),
            ExprKind::Outer { depth: d, index } if depth > 0 && *d == depth => *index = f(*index),
            _ => {}
        });
    }

    /// The same expression in a subquery of the row that it is over, of whose own rows the last columns are: the first `width` are the row's.
    pub fn in_subquery(mut self, width: usize) -> Expr {
        shift_outer(&mut self, 1);
        let count = self.columns().last().map_or(0, |last| last + 1);
        let columns: Vec<Expr> = (0..count)
            .map(|i| {
                let kind = if i < width { ExprKind::Outer { depth: 1, index: i } } else { ExprKind::Column(i - width) };
                Expr { kind, ty: super::ExprType::null() }
            })
            .collect();
        self.over(&columns).expect("columns hold no subqueries")
    }

    /// An expression of a subquery over the row of the subquery's operator: references to that row become columns. Its own columns are behind the `width` of that row.
    pub fn out_of_subquery(mut self, width: usize) -> Expr {
        walk_deep_mut(&mut self, 0, &mut |e, depth| match &mut e.kind {
            ExprKind::Column(index) if depth == 0 => *index += width,
            ExprKind::Outer { depth: 1, index } if depth == 0 => e.kind = ExprKind::Column(*index),
            ExprKind::Outer { depth: d, index } if depth > 0 && *d == depth => *index += width,
            ExprKind::Outer { depth: d, .. } if *d > depth => *d -= 1,
            _ => {}
        });
        self
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

    /// Puts the values of the input row into this expression, but not into its subqueries.
    pub fn bind_row(&mut self, row: &[Value]) {
        self.walk_mut(&mut |e| {
            if let ExprKind::Column(index) = e.kind
                && let Some(value) = row.get(index)
            {
                e.kind = ExprKind::Literal(value.clone());
            }
        });
    }

    /// The same with `value` wherever it asks for what is kept by that number.
    pub fn with_kept(&self, id: usize, value: &Expr) -> Expr {
        let mut expr = self.clone();
        expr.walk_mut(&mut |e| {
            if matches!(e.kind, ExprKind::Kept(kept) if kept == id) {
                *e = value.clone();
            }
        });
        expr
    }

    /// It calls functions that the session runs, if not in subqueries.
    pub fn calls_session(&self) -> bool {
        let mut calls = false;
        self.walk(&mut |e| calls |= e.calls_session_itself());
        calls
    }

    /// The same of what is in its subqueries, too.
    pub fn calls_session_anywhere(&self) -> bool {
        let mut calls = false;
        self.walk(&mut |e| calls |= e.calls_session_itself() || matches!(&e.kind, ExprKind::Subquery(subquery) if subquery.plan.calls_session()));
        calls
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

/// Calls `f` on this expression and everything in it, those of subqueries too; the number is how many subqueries lie between.
fn walk_deep_mut(expr: &mut Expr, depth: usize, f: &mut dyn FnMut(&mut Expr, usize)) {
    f(expr, depth);
    if let ExprKind::Subquery(sub) = &mut expr.kind {
        sub.plan.for_each_root_mut(&mut |e| walk_deep_mut(e, depth + 1, f));
    }
    for child in expr.children_mut() {
        walk_deep_mut(child, depth, f);
    }
}

/// References to rows outside are to rows so many queries further out.
fn shift_outer(expr: &mut Expr, by: isize) {
    walk_deep_mut(expr, 0, &mut |e, depth| {
        if let ExprKind::Outer { depth: d, .. } = &mut e.kind
            && *d > depth
        {
            *d = d.saturating_add_signed(by);
        }
    });
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

    /// Calls `f` on every expression node of the plan and of the subqueries in it; the number is how many subqueries
    /// lie between this plan and the node.
    pub fn for_each_expr(&self, f: &mut dyn FnMut(&Expr, usize)) {
        self.for_each_expr_at(0, f);
    }

    /// Some expression of it, those of subqueries too, calls a function that the session runs.
    pub fn calls_session(&self) -> bool {
        let mut calls = false;
        self.for_each_expr(&mut |e, _| calls |= e.calls_session_itself());
        calls
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

    /// Some expression refers to the row of the operator that would hold this plan as a subquery.
    pub fn reads_enclosing_row(&self) -> bool {
        let mut reads = false;
        self.for_each_expr(&mut |e, depth| {
            if let ExprKind::Outer { depth: d, .. } = e.kind {
                reads |= d == depth + 1;
            }
        });
        reads
    }

    /// References to rows outside this plan are to rows so many queries further out: it moves into subqueries, or, below 0, out of ones whose rows it does not read.
    pub fn shift_outer(&mut self, by: isize) {
        self.for_each_root_mut(&mut |root| shift_outer(root, by));
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
