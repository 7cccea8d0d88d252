//! Subqueries in statements that rows are written by. One that does not depend on the row is run once, before, and its answer takes its
//! place; with one that does, the rows are found by DataFusion (`update.rs`, `delete.rs`).

use std::cmp::Ordering;

use futures::future::BoxFuture;
use highkey_types::{MySqlError, Value};

use super::Failure;
use crate::expr::{EvalContext, SharedContext, deciding, eval, order};
use crate::measure::Profile;
use crate::plan::{BoundQuery, CompareBy, CompareOp, Expr, ExprKind, ExprType, Hints, Rel, Subquery, SubqueryKind, unresolved};
use crate::session::{Session, SessionState, error};

/// A plan as a query of its own.
pub(crate) fn query_of(mut rel: Rel) -> BoundQuery {
    rel.inline_lone_ctes();
    let locking = has_lock(&rel);
    BoundQuery { rel, hints: Hints::default(), into: None, views: Vec::new(), locking, calc_found_rows: false, ordered: false }
}

/// A scan of the plan locks rows, but for its subqueries.
pub(super) fn has_lock(rel: &Rel) -> bool {
    matches!(rel.kind, crate::plan::RelKind::Scan { lock: Some(_), .. }) || rel.inputs().into_iter().any(has_lock)
}

/// Replaces the subqueries of an assigned expression by outputs of the query that finds the rows (`exprs`, of which the first `width` are the row
/// itself). Those that read a column assigned before stay: their answer is not known yet. `columns`: where the outputs stand in the row that the
/// expression is evaluated over.
pub(super) fn lift_subqueries(expr: &mut Expr, assigned: &[usize], columns: usize, exprs: &mut Vec<Expr>, width: usize) {
    if matches!(expr.kind, ExprKind::Subquery(_)) {
        if expr.columns().iter().all(|c| !assigned.contains(c)) {
            let at = Expr::column(columns + exprs.len() - width, expr.ty.clone());
            exprs.push(std::mem::replace(expr, at));
        }
        return;
    }
    for child in expr.children_mut() {
        lift_subqueries(child, assigned, columns, exprs, width);
    }
}

/// True if a subquery in it refers to the row.
pub(crate) fn has_correlated_subquery(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| {
        if let ExprKind::Subquery(s) = &e.kind {
            found |= s.correlated;
        }
    });
    found
}

/// The same, or a function that runs queries has not become its value.
pub(crate) fn has_correlated(expr: &Expr) -> bool {
    let mut found = has_correlated_subquery(expr);
    expr.walk(&mut |e| found |= matches!(&e.kind, ExprKind::Stored { function, .. } if function.runs_queries()));
    found
}

/// Calls of functions that run queries become their values where no row goes into them, so that they are made once, and indexes are asked for them. One that fails
/// or warns stays: no row may need it.
pub(super) fn settle_calls(rel: &mut Rel, state: &SessionState) {
    rel.for_each_root_mut(&mut |root| settle_calls_in(root, state));
}

fn settle_calls_in(root: &mut Expr, state: &SessionState) {
    root.walk_mut(&mut |e| {
        if let ExprKind::Subquery(subquery) = &mut e.kind {
            settle_calls(&mut subquery.plan, state);
        }
        let settled = matches!(&e.kind, ExprKind::Stored { function, args, .. } if function.is_settled() && args.iter().all(Expr::is_constant));
        if !settled {
            return;
        }
        let mut cx = state.copy();
        if let Ok(value) = eval(e, &[], &mut *cx)
            && cx.take_raised().is_empty()
        {
            *e = Expr::literal(value, e.ty.clone());
        }
    });
}

impl Session {
    /// Replaces the subqueries that do not depend on the row by their answers.
    pub(crate) fn resolve_subqueries<'a>(&'a mut self, expr: &'a mut Expr) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.resolve(expr))
    }

    async fn resolve(&mut self, expr: &mut Expr) -> Result<(), Failure> {
        if !expr.has_subquery() {
            return Ok(());
        }
        if let ExprKind::Subquery(subquery) = &expr.kind
            && !subquery.correlated
        {
            let subquery = (**subquery).clone();
            *expr = self.subquery_answer(subquery, expr.ty.clone()).await?;
            return Ok(());
        }
        for child in expr.children_mut() {
            self.resolve_subqueries(child).await?;
        }
        // A function that runs queries, of arguments that are known: nothing but what it reads goes into it.
        if let ExprKind::Stored { function, args, .. } = &expr.kind
            && function.runs_queries()
            && function.is_pure()
            && args.iter().all(Expr::is_constant)
        {
            let value = eval(expr, &[], &mut self.state)?;
            *expr = Expr::literal(value, expr.ty.clone());
        }
        Ok(())
    }

    async fn subquery_answer(&mut self, subquery: Subquery, ty: ExprType) -> Result<Expr, Failure> {
        let types: Vec<ExprType> = subquery.plan.fields.iter().map(|f| f.ty.clone()).collect();
        let plan = match &subquery.kind {
            SubqueryKind::Exists { .. } => subquery.plan.limit(None, Some(Expr::literal(Value::UInt(1), ExprType::ubigint(false)))),
            _ => subquery.plan,
        };
        let mut query = query_of(plan);
        self.share_reads(&mut query);
        let rows = self.rows_before(&query, matches!(subquery.kind, SubqueryKind::Scalar)).await?;
        let kind = match subquery.kind {
            SubqueryKind::In { mut exprs, by, negated } => {
                for expr in &mut exprs {
                    self.resolve_subqueries(expr).await?;
                }
                SubqueryKind::In { exprs, by, negated }
            }
            SubqueryKind::Quantified { op, all, mut expr, by, own } => {
                self.resolve_subqueries(&mut expr).await?;
                SubqueryKind::Quantified { op, all, expr, by, own }
            }
            kind => kind,
        };
        Ok(answered(kind, rows, &types, ty, &mut self.state)?)
    }

    /// The rows of a query that is not the statement's. `one`: there is to be one; two are as good as more.
    async fn rows_before(&mut self, query: &BoundQuery, one: bool) -> Result<Vec<Vec<Value>>, Failure> {
        let Some(profile) = self.profile.take() else { return self.rows_wanted(query, one).await };
        let own = Profile::default();
        self.profile = Some(own.clone());
        let rows = self.rows_wanted(query, one).await;
        profile.add_query_before(&own);
        self.profile = Some(profile);
        rows
    }

    async fn rows_wanted(&mut self, query: &BoundQuery, one: bool) -> Result<Vec<Vec<Value>>, Failure> {
        if one { self.first_rows_of(query, 2).await } else { self.rows_of(query).await }
    }

    /// Resolves a list of assigned values and conditions; true if some subquery still depends on the row.
    pub(crate) async fn resolve_all(&mut self, exprs: Vec<&mut Expr>) -> Result<bool, Failure> {
        let mut correlated = false;
        for expr in exprs {
            self.resolve_subqueries(expr).await?;
            correlated |= has_correlated(expr);
        }
        Ok(correlated)
    }
}

/// Sorts the members of a list, each once, a NULL last. False, and nothing is done, if some do not compare as they are.
pub(crate) fn sort_members(values: &mut Vec<Value>, by: CompareBy, cx: &mut dyn EvalContext) -> bool {
    let compares = |value: &Value| match by {
        CompareBy::Int => matches!(value, Value::Int(_) | Value::UInt(_)),
        CompareBy::Decimal => matches!(value, Value::Int(_) | Value::UInt(_) | Value::Decimal(_)),
        CompareBy::Double => value.is_number(),
        CompareBy::Text(_) => matches!(value, Value::Text(_) | Value::Bytes(_)),
        CompareBy::Date => matches!(value, Value::Date(_)),
        CompareBy::DateTime => matches!(value, Value::DateTime(_)),
        CompareBy::Time => matches!(value, Value::Time(_)),
        CompareBy::Json | CompareBy::Dynamic => false,
    };
    if !values.iter().all(|value| value.is_null() || compares(value)) {
        return false;
    }
    let all = values.len();
    values.retain(|value| !value.is_null());
    let has_null = values.len() < all;
    values.sort_by(|a, b| order(by, a, b, cx).unwrap_or(Ordering::Equal));
    values.dedup_by(|a, b| order(by, a, b, cx) == Some(Ordering::Equal));
    values.extend(has_null.then_some(Value::Null));
    true
}

/// A subquery of these rows, of fields of these types, as an expression of type `ty`. Error 1242.
pub(crate) fn answered(kind: SubqueryKind, mut rows: Vec<Vec<Value>>, types: &[ExprType], ty: ExprType, cx: &mut dyn EvalContext) -> Result<Expr, MySqlError> {
    let literal = |value: Value, i: usize| Expr::literal(value, types[i].clone());
    Ok(match kind {
        SubqueryKind::Scalar => match rows.len() {
            0 => Expr::literal(Value::Null, ty),
            1 => Expr::literal(rows.remove(0).swap_remove(0), ty),
            _ => return Err(error::err(1242, "Subquery returns more than 1 row")),
        },
        SubqueryKind::Rows => return Err(unresolved("rows of a subquery")),
        SubqueryKind::Exists { negated } => Expr::boolean(rows.is_empty() == negated),
        SubqueryKind::In { negated, .. } if rows.is_empty() => Expr::boolean(negated),
        SubqueryKind::In { mut exprs, by, negated } => {
            if exprs.len() == 1 {
                let mut values: Vec<Value> = rows.into_iter().map(|mut row| row.swap_remove(0)).collect();
                let sorted = sort_members(&mut values, by[0], cx);
                let list = values.into_iter().map(|value| literal(value, 0)).collect();
                return Ok(Expr { kind: ExprKind::In { expr: Box::new(exprs.swap_remove(0)), list, by: by[0], negated, sorted }, ty });
            }
            let alternatives = rows
                .into_iter()
                .map(|row| {
                    let parts = row.into_iter().enumerate().map(|(i, value)| compare(CompareOp::Eq, by[i], exprs[i].clone(), literal(value, i), &ty));
                    Expr::and(parts).unwrap_or_else(|| Expr::boolean(true))
                })
                .collect();
            let any = or(alternatives, &ty);
            if negated { Expr { kind: ExprKind::Not(Box::new(any)), ty } } else { any }
        }
        SubqueryKind::Quantified { all, .. } if rows.is_empty() => Expr::boolean(all),
        SubqueryKind::Quantified { op, all, expr, by, own } => {
            if let Some(own) = own {
                let decides = deciding(rows.iter().map(|row| &row[0]), op, all, own, cx).cloned();
                let has_null = rows.iter().any(|row| row[0].is_null());
                rows = decides.into_iter().chain(has_null.then_some(Value::Null)).map(|value| vec![value]).collect();
            }
            let parts: Vec<Expr> = rows.into_iter().map(|mut row| compare(op, by, (*expr).clone(), literal(row.swap_remove(0), 0), &ty)).collect();
            if all { Expr::and(parts).unwrap_or_else(|| Expr::boolean(true)) } else { or(parts, &ty) }
        }
    })
}

fn compare(op: CompareOp, by: crate::plan::CompareBy, left: Expr, right: Expr, ty: &ExprType) -> Expr {
    Expr { kind: ExprKind::Compare { op, by, left: Box::new(left), right: Box::new(right) }, ty: ty.clone() }
}

fn or(mut parts: Vec<Expr>, ty: &ExprType) -> Expr {
    if parts.len() == 1 { parts.swap_remove(0) } else { Expr { kind: ExprKind::Or(parts), ty: ty.clone() } }
}
