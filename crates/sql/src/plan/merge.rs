//! Derived tables and views made one with what reads them, as far as they only choose columns and rows: so a condition reaches the scan below, and its index.

use super::{Aggregate, AggregateFunc, Expr, ExprKind, ExprType, JoinKind, Rel, RelKind, SortKey};

impl Expr {
    /// The expression over the row that `exprs` are over, each column of its own row being what `exprs` says. None if a subquery would have to move into another.
    pub fn over(mut self, exprs: &[Expr]) -> Option<Expr> {
        let mut possible = true;
        place(&mut self, 0, exprs, &mut possible);
        possible.then_some(self)
    }

    fn is_plain(&self) -> bool {
        matches!(self.kind, ExprKind::Column(_) | ExprKind::Literal(_))
    }

    /// What reads it reads it as it stands: a column or constant, or, as MySQL does where it merges, a quotient with all its digits.
    fn is_passed_on(&self, from_rows: bool) -> bool {
        self.is_plain() || from_rows && self.has_hidden_digits() && !self.has_subquery()
    }

    /// All columns that it reads are passed on by the projection of `exprs`.
    fn reads_through(&self, exprs: &[Expr], from_rows: bool) -> bool {
        self.columns().iter().all(|c| exprs[*c].is_passed_on(from_rows)) && self.clone().over(exprs).is_some()
    }

    /// The argument of SUM or AVG: a decimal that keeps the digits which a quotient has beyond its type, groups of nine, and as many for a factor.
    pub fn summed(self) -> Expr {
        let (int, scale) = self.ty.decimal_digits();
        if !self.has_hidden_digits() {
            return self;
        }
        let added = (scale.div_ceil(9) * 9 + 9).min(30);
        Expr { ty: ExprType::decimal((int + added).min(65), added, true), kind: ExprKind::Cast(Box::new(self)) }
    }
}

fn place(expr: &mut Expr, depth: usize, exprs: &[Expr], possible: &mut bool) {
    let replaced = match &mut expr.kind {
        ExprKind::Column(i) if depth == 0 => Some(exprs[*i].kind.clone()),
        ExprKind::Outer { depth: d, index } if depth > 0 && *d == depth => {
            let mut outer = exprs[*index].clone();
            *possible &= !outer.has_subquery();
            outer.walk_mut(&mut |e| match &mut e.kind {
                ExprKind::Column(i) => e.kind = ExprKind::Outer { depth, index: *i },
                ExprKind::Outer { depth: d, .. } => *d += depth,
                _ => {}
            });
            Some(outer.kind)
        }
        ExprKind::Subquery(sub) => {
            sub.plan.for_each_root_mut(&mut |e| place(e, depth + 1, exprs, possible));
            None
        }
        _ => None,
    };
    match replaced {
        Some(kind) => expr.kind = kind,
        None => expr.children_mut().into_iter().for_each(|child| place(child, depth, exprs, possible)),
    }
}

impl Rel {
    /// Its rows are rows of tables: where MySQL merges a derived table with what reads it.
    fn gives_rows(&self) -> bool {
        match &self.kind {
            RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::Join { .. } | RelKind::Apply { .. } => true,
            RelKind::Filter { input, .. } | RelKind::Project { input, .. } => input.gives_rows(),
            _ => false,
        }
    }

    /// True if a column of FROM comes through a derived table or a view that MySQL merges.
    pub fn is_of_merged(&self, column: usize) -> bool {
        match &self.kind {
            RelKind::Join { left, right, .. } => match column.checked_sub(left.fields.len()) {
                None => left.is_of_merged(column),
                Some(column) => right.is_of_merged(column),
            },
            RelKind::Apply { input, .. } => match column.checked_sub(input.fields.len()) {
                None => input.is_of_merged(column),
                Some(column) => self.made().is_some_and(|made| made.is_of_merged(column)),
            },
            RelKind::Project { .. } => self.gives_rows(),
            _ => false,
        }
    }

    /// The same rows from fewer operators.
    pub fn merged(mut self) -> Rel {
        crate::stack::ensure(|| {
            for input in self.inputs_mut() {
                let taken = std::mem::replace(input, Rel::dual());
                *input = taken.merged();
            }
            self.merged_here()
        })
    }

    fn merged_here(self) -> Rel {
        let Rel { kind, fields } = self;
        match kind {
            RelKind::Filter { input, predicate } => match input.kind {
                RelKind::Filter { input, predicate: first } => match Expr::and([first, predicate]) {
                    Some(both) => Rel { kind: RelKind::Filter { input, predicate: both }, fields },
                    None => *input,
                },
                RelKind::Project { input: below, exprs } if exprs.iter().all(Expr::is_steady) && predicate.reads_through(&exprs, below.gives_rows()) => {
                    let predicate = predicate.over(&exprs).expect("asked above");
                    Rel { kind: RelKind::Project { input: Box::new(below.filter_early(predicate).merged_here()), exprs }, fields }
                }
                kind => Rel { kind: RelKind::Filter { input: Box::new(Rel { kind, fields: input.fields }), predicate }, fields },
            },
            RelKind::Project { input, exprs } => {
                let RelKind::Project { input: below, exprs: inner } = input.kind else {
                    return Rel { kind: RelKind::Project { input, exprs }, fields };
                };
                // What is computed is computed once.
                let once = |i: usize| exprs.iter().filter(|e| e.columns().contains(&i)).count() <= 1;
                let from_rows = below.gives_rows() && inner.iter().all(Expr::is_steady);
                let fits = |e: &Expr| match e.as_column() {
                    Some(i) => inner[i].is_passed_on(from_rows) || once(i),
                    None => e.reads_through(&inner, from_rows),
                };
                if exprs.iter().all(fits) {
                    let exprs = exprs.into_iter().map(|e| e.over(&inner).expect("asked above")).collect();
                    return Rel { kind: RelKind::Project { input: below, exprs }, fields };
                }
                let input = Box::new(Rel { kind: RelKind::Project { input: below, exprs: inner }, fields: input.fields });
                Rel { kind: RelKind::Project { input, exprs }, fields }
            }
            RelKind::Aggregate { input, groups, aggregates, rollup } => {
                let RelKind::Project { input: below, exprs } = &input.kind else {
                    return Rel { kind: RelKind::Aggregate { input, groups, aggregates, rollup }, fields };
                };
                let sums = |a: &Aggregate| matches!(a.func, AggregateFunc::Sum | AggregateFunc::Avg) && a.args[0].columns().iter().any(|c| exprs[*c].has_hidden_digits());
                let reads = |a: &Aggregate| a.args.iter().chain(a.order_by.iter().map(|k| &k.expr)).all(|e| e.reads_through(exprs, true));
                let plain = |e: &Expr| e.columns().iter().all(|c| exprs[*c].is_plain()) && e.clone().over(exprs).is_some();
                let from_rows = below.gives_rows() && exprs.iter().all(Expr::is_steady);
                if !from_rows || !aggregates.iter().any(sums) || !groups.iter().all(plain) || !aggregates.iter().all(reads) {
                    return Rel { kind: RelKind::Aggregate { input, groups, aggregates, rollup }, fields };
                }
                let over = |e: Expr| e.over(exprs).expect("asked above");
                let groups = groups.into_iter().map(over).collect();
                let moved = |a: Aggregate| {
                    let sum = sums(&a);
                    let args = a.args.into_iter().map(over).map(|e| if sum { e.summed() } else { e }).collect();
                    let order_by = a.order_by.into_iter().map(|k| SortKey { expr: over(k.expr), ..k }).collect();
                    Aggregate { args, order_by, ..a }
                };
                let aggregates = aggregates.into_iter().map(moved).collect();
                Rel { kind: RelKind::Aggregate { input: below.clone(), groups, aggregates, rollup }, fields }
            }
            RelKind::Join { kind, left, right, on } => join(kind, *left, *right, on, fields),
            kind => Rel { kind, fields },
        }
    }
}

/// A join with the choice of columns of its sides above it.
fn join(kind: JoinKind, left: Rel, right: Rel, on: Option<Expr>, fields: Vec<super::Field>) -> Rel {
    let chosen = |rel: &Rel| match &rel.kind {
        RelKind::Project { exprs, .. } => exprs.iter().map(Expr::as_column).collect::<Option<Vec<usize>>>(),
        _ => None,
    };
    let (of_left, of_right) = (chosen(&left), chosen(&right));
    if of_left.is_none() && of_right.is_none() {
        return Rel { kind: RelKind::Join { kind, left: Box::new(left), right: Box::new(right), on }, fields };
    }
    let below = |rel: Rel, chosen: Option<Vec<usize>>| match (rel.kind, chosen) {
        (RelKind::Project { input, .. }, Some(chosen)) => (*input, chosen),
        (kind, _) => {
            let all = (0..rel.fields.len()).collect();
            (Rel { kind, fields: rel.fields }, all)
        }
    };
    let (left, mut columns) = below(left, of_left);
    let (right, of_right) = below(right, of_right);
    let width = left.fields.len();
    columns.extend(of_right.into_iter().map(|c| c + width));
    let on = on.map(|mut on| {
        on.map_columns(&mut |i| columns[i]);
        on
    });
    let mut joined: Vec<super::Field> = left.fields.iter().chain(&right.fields).cloned().collect();
    if kind == JoinKind::Left {
        joined[width..].iter_mut().for_each(|field| field.ty.nullable = true);
    }
    let exprs = columns.iter().zip(&fields).map(|(c, field)| Expr::column(*c, field.ty.clone())).collect();
    let rel = Rel { kind: RelKind::Join { kind, left: Box::new(left), right: Box::new(right), on }, fields: joined };
    Rel { kind: RelKind::Project { input: Box::new(rel), exprs }, fields }
}
