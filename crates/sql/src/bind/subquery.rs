//! Subqueries in expressions: scalars, EXISTS, IN, ANY and ALL.

use highkey_types::{MySqlError, TypeKind, errors::not_supported_yet};

use super::binder::{Binder, Result};
use super::compare::{comparison, unify, unify_selected};
use super::errors;
use super::merge::{bare_number, coerce, members_as_text};
use crate::parse::ast::{self, BinaryOp};
use crate::plan::{CompareBy, CompareOp, Expr, ExprKind, ExprType, Field, Rel, RelKind, Subquery, SubqueryKind};

impl Binder<'_> {
    pub fn subquery(&self, kind: SubqueryKind, plan: Rel, ty: ExprType) -> Expr {
        let correlated = plan.is_correlated();
        Expr { kind: ExprKind::Subquery(Box::new(Subquery { kind, plan, correlated, failed: None })), ty }
    }

    pub fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let plan = self.subquery_plan(query)?;
        let [field] = plan.fields.as_slice() else { return Err(errors::operand_columns(1)) };
        let ty = field.ty.clone().with_nullable(true);
        let value = members_as_text(self.subquery(SubqueryKind::Scalar, plan, ty));
        // It is no column: of a FLOAT it shows the double, of a BIT the number.
        Ok(match value.ty.ty.kind {
            TypeKind::Bit(_) => bare_number(value),
            TypeKind::Float if value.ty.ty.float_digits.is_none() => coerce(value, &ExprType::double(true)),
            _ => value,
        })
    }

    pub fn in_query(&mut self, expr: &ast::Expr, query: &ast::Query, negated: bool) -> Result<Expr> {
        self.among(expr, query, negated, Self::rows_plan)
    }

    fn among(&mut self, expr: &ast::Expr, query: &ast::Query, negated: bool, plan: impl FnOnce(&mut Self, &ast::Query) -> Result<Rel>) -> Result<Expr> {
        let mut exprs = match self.row(expr) {
            Some(items) => items.iter().map(|e| self.expr(e)).collect::<Result<Vec<_>>>()?,
            None => vec![self.expr(expr)?],
        };
        let plan = plan(self, query)?;
        if plan.fields.len() != exprs.len() {
            return Err(errors::operand_columns(exprs.len()));
        }
        if exprs.len() == 1
            && let Some((item, constant)) = constant_of(query, &plan)
        {
            let op = if negated { CompareOp::Ne } else { CompareOp::Eq };
            return self.compare_scalars(comparison, op, (expr, exprs.swap_remove(0)), (item, constant.clone()));
        }
        let literals = literals_of(query, &plan);
        let mut by = Vec::with_capacity(exprs.len());
        let mut nullable = false;
        for (i, (expr, field)) in exprs.iter_mut().zip(&plan.fields).enumerate() {
            nullable |= expr.ty.nullable || field.ty.nullable;
            by.push(unify_selected(expr, &field.ty, literals.get(i), &self.folder, "=")?);
        }
        Ok(self.subquery(SubqueryKind::In { exprs, by, negated }, plan, ExprType::boolean(nullable)))
    }

    /// A row that equals, or `negated` differs from, the row that a query gives: IN of at most one row. Error 1242 with more of them, NULL without any.
    pub fn row_of_query(&mut self, row: &ast::Expr, query: &ast::Query, negated: bool) -> Result<Expr> {
        let among = self.among(row, query, negated, Self::subquery_plan)?;
        let plan = match &among.kind {
            ExprKind::Subquery(subquery) if !gives_one_row(&subquery.plan) => subquery.plan.clone(),
            _ => return Ok(among),
        };
        let one = Expr::int(1);
        let fields = vec![Field::computed("1", one.ty.clone())];
        let ty = one.ty.clone().with_nullable(true);
        let plan = plan.project(vec![one], fields);
        let given = self.subquery(SubqueryKind::Scalar, plan, ty);
        comparison(CompareOp::Eq, among, given, &self.folder)
    }

    /// `<=>` and the orders of a row and the row that a query gives: the query gives the answer itself. Error 1242 with more rows than one. Without any the row
    /// is not the same, and has no order.
    pub fn row_beside_query(&mut self, op: CompareOp, row: &[ast::Expr], query: &ast::Query) -> Result<Expr> {
        let row = row.iter().map(|e| self.expr(e).and_then(as_outer)).collect::<Result<Vec<_>>>()?;
        let plan = self.subquery_plan(query)?;
        if plan.fields.len() != row.len() {
            return Err(errors::operand_columns(row.len()));
        }
        let given = plan.fields.iter().enumerate().map(|(i, field)| Expr::column(i, field.ty.clone()));
        let pairs: Vec<(Expr, Expr)> = row.into_iter().zip(given).collect();
        let answer = self.compare_pairs(op, &pairs)?;
        let ty = answer.ty.clone().with_nullable(true);
        let field = Field::computed("1", answer.ty.clone());
        let answer = self.subquery(SubqueryKind::Scalar, plan.project(vec![answer], vec![field]), ty);
        if op != CompareOp::NullSafeEq {
            return Ok(answer);
        }
        Ok(Expr { kind: ExprKind::IsTruth { expr: Box::new(answer), value: true, negated: false }, ty: ExprType::boolean(false) })
    }

    /// Pairs that are all the same, or of which the first that differ decide.
    fn compare_pairs(&self, op: CompareOp, pairs: &[(Expr, Expr)]) -> Result<Expr> {
        let compare = |op, (left, right): &(Expr, Expr)| comparison(op, left.clone(), right.clone(), &self.folder);
        let strict = match op {
            CompareOp::Le => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Gt,
            other => other,
        };
        let Some((last, before)) = pairs.split_last() else { return Err(errors::operand_columns(1)) };
        let mut answer = compare(op, last)?;
        for pair in before.iter().rev() {
            let equal = if op == CompareOp::NullSafeEq { op } else { CompareOp::Eq };
            let equal = Expr::and([compare(equal, pair)?, answer]).expect("two parts");
            answer = if op == CompareOp::NullSafeEq { equal } else { either(compare(strict, pair)?, equal) };
        }
        Ok(answer)
    }

    pub fn quantified(&mut self, op: BinaryOp, quantifier: ast::Quantifier, expr: &ast::Expr, query: &ast::Query) -> Result<Expr> {
        match (op, quantifier) {
            (BinaryOp::Eq, ast::Quantifier::Any) => return self.in_query(expr, query, false),
            (BinaryOp::Ne, ast::Quantifier::All) => return self.in_query(expr, query, true),
            _ => {}
        }
        let op = match op {
            BinaryOp::Eq => CompareOp::Eq,
            BinaryOp::Ne => CompareOp::Ne,
            BinaryOp::Lt => CompareOp::Lt,
            BinaryOp::Le => CompareOp::Le,
            BinaryOp::Gt => CompareOp::Gt,
            BinaryOp::Ge => CompareOp::Ge,
            _ => return Err(MySqlError::with_message(1064, "You have an error in your SQL syntax: <=> cannot be quantified")),
        };
        let mut bound = self.expr(expr)?;
        let plan = self.rows_plan(query)?;
        let [field] = plan.fields.as_slice() else { return Err(errors::operand_columns(1)) };
        if let Some((item, constant)) = constant_of(query, &plan) {
            return self.compare_scalars(comparison, op, (expr, bound), (item, constant.clone()));
        }
        // An order is asked of the least or the greatest, which is no literal.
        let literals = if matches!(op, CompareOp::Eq | CompareOp::Ne) { literals_of(query, &plan) } else { &[] };
        let by = unify_selected(&mut bound, &field.ty, literals.first(), &self.folder, op.symbol())?;
        let nullable = bound.ty.nullable || field.ty.nullable;
        let kind = SubqueryKind::Quantified { op, all: quantifier == ast::Quantifier::All, expr: Box::new(bound), by, own: None };
        Ok(self.subquery(kind, plan, ExprType::boolean(nullable)))
    }
}

impl Binder<'_> {
    /// In a condition that only has to be true or not, ANY and ALL with an order ask the least or the greatest of what a query selects that depends on no row. Of
    /// texts beside a number that is another one: '9' is the greatest of '9' and '10', and of 9 and 10 it is not.
    pub fn ask_extremes(&self, condition: &mut Expr) {
        match &mut condition.kind {
            ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter_mut().for_each(|part| self.ask_extremes(part)),
            ExprKind::Not(inner) => self.ask_extremes(inner),
            ExprKind::Subquery(subquery) if !subquery.correlated => {
                let SubqueryKind::Quantified { op, by, own, .. } = &mut subquery.kind else { return };
                if matches!(op, CompareOp::Eq | CompareOp::Ne | CompareOp::NullSafeEq) {
                    return;
                }
                let [field] = subquery.plan.fields.as_slice() else { return };
                let (mut one, mut other) = (Expr::column(usize::MAX, field.ty.clone()), Expr::column(usize::MAX, field.ty.clone()));
                let beside_text = matches!(by, CompareBy::Text(_));
                let among_themselves = unify(&mut one, &mut other, &self.folder, op.symbol()).ok();
                *own = among_themselves.filter(|domain| !beside_text && matches!(domain, CompareBy::Text(_)));
            }
            _ => {}
        }
    }
}

fn either(one: Expr, other: Expr) -> Expr {
    let nullable = one.ty.nullable || other.ty.nullable;
    Expr { kind: ExprKind::Or(vec![one, other]), ty: ExprType::boolean(nullable) }
}

/// An expression as a subquery beside it has it.
fn as_outer(mut expr: Expr) -> Result<Expr> {
    let mut fits = true;
    expr.walk_mut(&mut |e| match &mut e.kind {
        ExprKind::Column(index) => e.kind = ExprKind::Outer { depth: 1, index: *index },
        ExprKind::Outer { depth, .. } => *depth += 1,
        ExprKind::Subquery(_) | ExprKind::AggregateRef(_) | ExprKind::WindowRef(_) => fits = false,
        _ => {}
    });
    if fits { Ok(expr) } else { Err(not_supported_yet("aggregates and subqueries in a row beside a subquery")) }
}

/// It reads no table or has aggregates without GROUP BY, and chooses nothing.
pub(super) fn gives_one_row(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Project { input, .. } | RelKind::Sort { input, .. } | RelKind::MaterializedCte { plan: input, .. } => gives_one_row(input),
        RelKind::Aggregate { groups, .. } => groups.is_empty(),
        RelKind::Values { rows } => rows.len() == 1,
        _ => false,
    }
}

/// What a query selects that reads no table: one expression, nothing else. To MySQL the query is that expression.
pub(super) fn lone_item(query: &ast::Query) -> Option<&ast::Expr> {
    if query.with.is_some() || query.limit.is_some() {
        return None;
    }
    match &query.body {
        ast::QueryBody::Nested(inner) => lone_item(inner),
        ast::QueryBody::Select(select) if select.from.is_empty() && select.filter.is_none() && select.group_by.is_empty() && select.having.is_none() => {
            match select.items.as_slice() {
                [ast::SelectItem::Expr { expr, .. }] => Some(expr),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The same of a query's plan too, if it depends on no row: an aggregate or a window is more than an expression.
fn constant_of<'q, 'p>(query: &'q ast::Query, plan: &'p Rel) -> Option<(&'q ast::Expr, &'p Expr)> {
    let item = lone_item(query)?;
    let (input, exprs) = plan.selected()?;
    let alone = matches!(&input.kind, RelKind::Values { rows } if rows.len() == 1 && rows[0].is_empty());
    let [constant] = exprs else { return None };
    (alone && !plan.is_correlated()).then_some((item, constant))
}

/// The expressions that a query selects, which MySQL compares where the rows are found; none of UNION and HAVING, of which it compares the result.
fn literals_of<'p>(query: &ast::Query, plan: &'p Rel) -> &'p [Expr] {
    match &query.body {
        ast::QueryBody::Nested(inner) => literals_of(inner, plan),
        ast::QueryBody::Select(select) if select.having.is_none() => plan.selected().map(|(_, exprs)| exprs).unwrap_or_default(),
        _ => &[],
    }
}
