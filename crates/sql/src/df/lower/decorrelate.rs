//! Subqueries as joins, where that is exact: EXISTS and IN as semi joins, their negations as anti joins, a correlated scalar aggregate as
//! a left join with its groups. What does not fit is run per row (`subquery`), so no shape is refused.
//!
//! DataFusion has rules for this too; they are not used because they do not know MySQL's NULLs in NOT IN, error 1242, and keys that are
//! sort keys.

use datafusion::common::{JoinType, Result, ScalarValue};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit};
use datafusion::logical_expr::expr::Case;
use highkey_types::{ColumnType, Value};

use super::aggregate::GroupColumn;
use super::expr::{KeyForm, key_form};
use super::guard::joined_relation;
use super::join::some_condition;
use super::{Lowered, Lowerer, Scope, expr_mut, for_each_expr_mut};
use crate::df::repr::Repr;
use crate::plan::{Aggregate, AggregateFunc, CompareBy, CompareOp, Expr, ExprKind, Rel, RelKind, Subquery, SubqueryKind};

/// A subquery taken apart: rows of `core` that satisfy `local`, tied to the enclosing row by `ties`.
struct Parts<'a> {
    core: &'a Rel,
    local: Vec<Expr>,
    ties: Vec<Expr>,
}

impl Lowerer {
    /// `plan` restricted by a condition that is a subquery, as a semi or anti join; `None` if the condition is not of that kind.
    pub fn semi_join(&self, plan: &LogicalPlan, scope: &Scope, conjunct: &Expr) -> Result<Option<LogicalPlan>> {
        let (sub, flipped) = match &conjunct.kind {
            ExprKind::Subquery(sub) => (sub, false),
            ExprKind::Not(inner) => match &inner.kind {
                ExprKind::Subquery(sub) => (sub, true),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        if sub.failed.is_some() {
            return Ok(None);
        }
        let (rel, outputs, negated) = match &sub.kind {
            SubqueryKind::Exists { negated } => (peel_exists(&sub.plan), None, negated ^ flipped),
            SubqueryKind::In { exprs, by, negated } => {
                if exprs.iter().any(|e| e.has_subquery()) {
                    return Ok(None);
                }
                let negated = negated ^ flipped;
                let (rel, outputs) = peel_in(&sub.plan);
                // NOT IN is true only if nothing on either side can be NULL; with NULLs the row evaluator decides.
                let may_find_null = sub.plan.fields.iter().zip(&outputs).any(|(field, output)| field.ty.nullable && !output.coalesces_to_value());
                if negated && (may_find_null || exprs.iter().any(|e| e.ty.nullable && !e.coalesces_to_value())) {
                    return Ok(None);
                }
                // What is not compared natively; asked before the subquery is lowered.
                let is_foreign = |by: CompareBy, e: &Expr, o: &Expr| e.has_hidden_digits() || o.has_hidden_digits() || key_form(by, &[e, o]).is_none();
                if by.iter().zip(exprs).zip(&outputs).any(|((by, e), o)| is_foreign(*by, e, o)) {
                    return Ok(None);
                }
                (rel, Some((exprs, by, outputs)), negated)
            }
            _ => return Ok(None),
        };
        let Some(parts) = take_apart(rel) else { return Ok(None) };
        if outputs.iter().flat_map(|(_, _, o)| o).any(|e| refers_out(e) || e.has_subquery()) {
            return Ok(None);
        }
        let width = scope.exprs.len();
        let right = self.core(&parts)?;
        let both = scope.clone().join(Scope::of(parts.core, &right));
        let mut on = Vec::new();
        for tie in &parts.ties {
            on.push(self.condition(&over_both(tie, width), &both)?);
        }
        if let Some((exprs, by, outputs)) = outputs {
            for ((left, by), output) in exprs.iter().zip(by).zip(&outputs) {
                let output = over_both(output, width);
                let Some(equal) = self.native_compare(CompareOp::Eq, *by, left, &output, &both)? else { return Ok(None) };
                on.push(equal);
            }
        }
        let kind = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
        Ok(Some(LogicalPlanBuilder::from(plan.clone()).join_on(right.plan, kind, some_condition(on))?.build()?))
    }

    /// Joins the correlated scalar aggregates in `exprs` to `plan`; the expressions then refer to new columns of `scope`.
    pub fn join_scalar_subqueries(&self, plan: LogicalPlan, scope: &mut Scope, exprs: &mut [Expr]) -> Result<LogicalPlan> {
        let mut plan = Some(plan);
        let mut failure = None;
        for expr in exprs {
            walk_own(expr, &mut |e| {
                if failure.is_some() {
                    return;
                }
                if let ExprKind::Subquery(sub) = &e.kind
                    && matches!(sub.kind, SubqueryKind::Scalar)
                    && sub.correlated
                {
                    let current = plan.take().expect("put back below");
                    match self.join_scalar(current.clone(), scope, sub) {
                        Ok(Some((joined, value))) => {
                            plan = Some(joined);
                            scope.exprs.push(value);
                            scope.types.push(e.ty.clone());
                            e.kind = ExprKind::Column(scope.exprs.len() - 1);
                        }
                        Ok(None) => plan = Some(current),
                        Err(error) => {
                            plan = Some(current);
                            failure = Some(error);
                        }
                    }
                }
            });
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(plan.expect("put back above")),
        }
    }

    fn join_scalar(&self, plan: LogicalPlan, scope: &Scope, sub: &Subquery) -> Result<Option<(LogicalPlan, DfExpr)>> {
        // Projections over one aggregate without groups.
        let mut projections = Vec::new();
        let mut rel = &sub.plan;
        while let RelKind::Project { input, exprs } = &rel.kind {
            projections.push(exprs);
            rel = input;
        }
        let RelKind::Aggregate { input, groups, aggregates, rollup: false } = &rel.kind else { return Ok(None) };
        if !groups.is_empty() || !projections.iter().all(|p| p.iter().all(|e| !e.has_subquery())) {
            return Ok(None);
        }
        let inner_only = |e: &Expr| !refers_out(e) && !e.has_subquery();
        if !aggregates.iter().all(|a| a.args.iter().chain(a.order_by.iter().map(|k| &k.expr)).all(inner_only)) {
            return Ok(None);
        }
        let Some(parts) = take_apart(input) else { return Ok(None) };
        let mut ties = Vec::new();
        for tie in &parts.ties {
            match equality(tie) {
                Some(tie) => ties.push(tie),
                None => return Ok(None),
            }
        }
        if ties.is_empty() {
            return Ok(None);
        }
        let inner = self.core(&parts)?;
        let inner_scope = Scope::of(parts.core, &inner);
        let calls = aggregates.iter().map(|a| self.call(a.func, a.distinct, &a.args, &a.order_by, &a.ty, &inner_scope)).collect::<Result<Vec<_>>>()?;
        let mut keys = Vec::new();
        let mut on_left = Vec::new();
        for (inside, outside, form) in &ties {
            keys.push(GroupColumn { key: self.key(inside, *form, &inner_scope)?, value: None, ty: key_type(*form), dependent: false });
            let mut outside = outside.clone();
            expr_mut(&mut outside, 0, &mut |e, _| lower_outer(e, 0));
            on_left.push(self.key(&outside, *form, scope)?);
        }
        let grouped = self.grouped(inner.plan, keys, calls)?;
        let (key_columns, values) = grouped.columns.split_at(ties.len());
        let on = on_left.into_iter().zip(key_columns).map(|(l, r)| binary_expr(l, Operator::Eq, r.clone())).collect::<Vec<_>>();
        let joined = LogicalPlanBuilder::from(plan).join_on(grouped.plan, JoinType::Left, on)?.build()?;
        // A row without partners has the aggregates of nothing.
        let mut result = Scope {
            exprs: values.iter().zip(aggregates).map(|(value, a)| of_nothing(value.clone(), a)).collect(),
            types: aggregates.iter().map(|a| a.ty.clone()).collect(),
        };
        for exprs in projections.iter().rev() {
            let width = result.exprs.len();
            let both = result.clone().join(scope.clone());
            let mut next = Vec::new();
            for expr in exprs.iter() {
                let mut expr = expr.clone();
                expr_mut(&mut expr, 0, &mut |e, _| lower_outer(e, width));
                next.push(self.value(&expr, &both)?);
            }
            result = Scope { exprs: next, types: exprs.iter().map(|e| e.ty.clone()).collect() };
        }
        Ok(result.exprs.into_iter().next().map(|value| (joined, value)))
    }

    /// The rows of a subquery that do not depend on the enclosing row.
    fn core(&self, parts: &Parts) -> Result<Lowered> {
        let mut core = parts.core.clone();
        for_each_expr_mut(&mut core, 0, &mut raise);
        let mut local = parts.local.clone();
        local.iter_mut().for_each(|e| expr_mut(e, 0, &mut raise));
        let hints: Vec<Expr> = local.iter().filter(|e| !e.has_subquery()).cloned().collect();
        let lowered = self.rel(&core, &hints)?;
        let columns = lowered.columns.clone();
        let asked = self.guarded(&[], &local, &|column| joined_relation(&core, column));
        let plan = self.filter_lowered(lowered, Self::types(&core), &asked)?;
        Ok(Lowered { plan, columns })
    }
}

/// A core is lowered in the place of the enclosing query: rows further out are one step nearer.
fn raise(expr: &mut Expr, depth: usize) {
    if let ExprKind::Outer { depth: d, .. } = &mut expr.kind
        && *d > depth + 1
    {
        *d -= 1;
    }
}

/// An enclosing row's field as a column: the enclosing row's columns start at `at`.
fn lower_outer(expr: &mut Expr, at: usize) {
    match &mut expr.kind {
        ExprKind::Outer { depth: 1, index } => expr.kind = ExprKind::Column(*index + at),
        ExprKind::Outer { depth, .. } => *depth -= 1,
        _ => {}
    }
}

/// A condition of a subquery as one of the join: the enclosing row's columns come first, `width` of them.
fn over_both(expr: &Expr, width: usize) -> Expr {
    let mut expr = expr.clone();
    expr_mut(&mut expr, 0, &mut |e, _| match &mut e.kind {
        ExprKind::Column(index) => *index += width,
        _ => lower_outer(e, 0),
    });
    expr
}

/// Calls `f` on the nodes of an expression, not entering subqueries.
fn walk_own(expr: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    for child in expr.children_mut() {
        walk_own(child, f);
    }
    f(expr);
}

/// Refers to the row right around the subquery.
fn refers_out(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| match &e.kind {
        ExprKind::Outer { depth: 1, .. } => found = true,
        ExprKind::Subquery(sub) => sub.plan.for_each_expr(&mut |e, inner| {
            if let ExprKind::Outer { depth, .. } = e.kind {
                found |= depth == inner + 2;
            }
        }),
        _ => {}
    });
    found
}

/// What EXISTS does not look at: outputs, order, duplicates, a LIMIT of at least one row.
fn peel_exists(rel: &Rel) -> &Rel {
    match &rel.kind {
        RelKind::Project { input, .. } | RelKind::Sort { input, .. } | RelKind::Distinct { input } => peel_exists(input),
        RelKind::Limit { input, offset: None, count: Some(count) } if matches!(count.as_literal(), Some(Value::UInt(1..) | Value::Int(1..))) => {
            peel_exists(input)
        }
        _ => rel,
    }
}

/// The relation under IN's projections, and the outputs as expressions over it.
fn peel_in(rel: &Rel) -> (&Rel, Vec<Expr>) {
    let columns = |rel: &Rel| rel.fields.iter().enumerate().map(|(i, f)| Expr::column(i, f.ty.clone())).collect::<Vec<_>>();
    match &rel.kind {
        RelKind::Project { input, exprs } => match &input.kind {
            RelKind::Project { .. } | RelKind::Sort { .. } => {
                let (inner, outputs) = peel_in(input);
                let plain: Option<Vec<Expr>> = exprs.iter().map(|e| e.as_column().map(|i| outputs[i].clone())).collect();
                match plain {
                    Some(outputs) => (inner, outputs),
                    None => (input, exprs.clone()),
                }
            }
            _ => (input, exprs.clone()),
        },
        RelKind::Sort { input, .. } | RelKind::Distinct { input } => peel_in(input),
        _ => (rel, columns(rel)),
    }
}

/// Splits filters over a core that does not depend on the enclosing row; `None` if the core does.
fn take_apart(rel: &Rel) -> Option<Parts<'_>> {
    let (mut local, mut ties) = (Vec::new(), Vec::new());
    let mut core = rel;
    while let RelKind::Filter { input, predicate } = &core.kind {
        for conjunct in predicate.conjuncts() {
            if !refers_out(conjunct) {
                local.push(conjunct.clone());
            } else if conjunct.has_subquery() {
                return None;
            } else {
                ties.push(conjunct.clone());
            }
        }
        core = input;
    }
    if let RelKind::Join { kind, left, right, on: Some(on) } = &core.kind
        && *kind != crate::plan::JoinKind::Left
        && refers_out(on)
        && !on.has_subquery()
        && !left.reads_enclosing_row()
        && !right.reads_enclosing_row()
    {
        // Ties in an inner join's ON would have to be lifted; rare enough for the row evaluator.
        return None;
    }
    (!core.reads_enclosing_row()).then_some(Parts { core, local, ties })
}

/// A tie that is an equality of something inside and something outside.
fn equality(tie: &Expr) -> Option<(Expr, Expr, KeyForm)> {
    let ExprKind::Compare { op: CompareOp::Eq, by, left, right } = &tie.kind else { return None };
    let by: CompareBy = *by;
    let form = key_form(by, &[left, right])?;
    let outside_only = |e: &Expr| refers_out(e) && e.columns().is_empty();
    match (outside_only(left), outside_only(right)) {
        (false, true) if !refers_out(left) => Some(((**left).clone(), (**right).clone(), form)),
        (true, false) if !refers_out(right) => Some(((**right).clone(), (**left).clone(), form)),
        _ => None,
    }
}

/// A type whose group key is the key itself.
fn key_type(form: KeyForm) -> ColumnType {
    match form {
        KeyForm::Text(_) | KeyForm::Json => ColumnType::new(highkey_types::TypeKind::LongBlob),
        KeyForm::Double | KeyForm::Plain(Repr::Double) => ColumnType::double(),
        KeyForm::Plain(_) => ColumnType::bigint(),
    }
}

/// The aggregate's value, or what it is over no rows.
fn of_nothing(value: DfExpr, aggregate: &Aggregate) -> DfExpr {
    let neutral = match aggregate.func {
        AggregateFunc::Count | AggregateFunc::CountStar => lit(0i64),
        AggregateFunc::BitAnd | AggregateFunc::BitOr | AggregateFunc::BitXor => {
            let all = aggregate.func == AggregateFunc::BitAnd;
            match Repr::of(&aggregate.ty.ty) {
                Repr::Bytes => lit(ScalarValue::BinaryView(Some(vec![if all { u8::MAX } else { 0 }; aggregate.args[0].ty.char_length() as usize]))),
                _ => lit(if all { u64::MAX } else { 0 }),
            }
        }
        _ => return value,
    };
    let present = DfExpr::IsNotNull(Box::new(value.clone()));
    DfExpr::Case(Case::new(None, vec![(Box::new(present), Box::new(value))], Some(Box::new(neutral))))
}

impl Lowerer {
    /// Replaces scalar and EXISTS subqueries that depend on no row by their values, innermost first. One that fails stays, and fails for the row that needs it,
    /// but where MySQL asks for its value before it reads rows (`early`).
    pub fn fold_constant_subqueries(&self, rel: &mut Rel) -> Result<()> {
        let mut failure = None;
        for_each_own_expr_mut(rel, true, &mut |expr, early| {
            if failure.is_some() {
                return;
            }
            let ExprKind::Subquery(sub) = &expr.kind else { return };
            let has_value = matches!(sub.kind, SubqueryKind::Scalar | SubqueryKind::Exists { .. });
            if !has_value || sub.correlated || reads_recursion(&sub.plan) || rel_is_volatile(&sub.plan) {
                return;
            }
            let number = self.shared.next_id();
            let value = self.shared.run_early(&sub.plan, || match sub.kind {
                SubqueryKind::Exists { negated } => self.has_rows(&sub.plan, number).map(|any| Value::bool(any != negated)),
                _ => self.scalar_value(&sub.plan, number),
            });
            match value {
                Ok(Ok(value)) => *expr = Expr::literal(value, expr.ty.clone()),
                Ok(Err(failed)) if early => failure = Some(self.shared.fail(&failed)),
                Ok(Err(failed)) => {
                    if let ExprKind::Subquery(sub) = &mut expr.kind {
                        self.shared.note_failure(number, failed);
                        sub.failed = Some(number);
                    }
                }
                Err(error) => failure = Some(error),
            }
        });
        failure.map_or(Ok(()), Err)
    }
}

/// What is done to an expression; true: its value is wanted before there are rows.
type Visit<'v> = dyn FnMut(&mut Expr, bool) + 'v;

/// Calls `f` on every expression node of a plan and of the subqueries in it, children first, but for the plans of common table expressions that are made once.
/// `early`: its rows are wanted for certain.
fn for_each_own_expr_mut(rel: &mut Rel, early: bool, f: &mut Visit<'_>) {
    if matches!(rel.kind, RelKind::MaterializedCte { .. }) {
        return;
    }
    if early {
        for_each_early(rel, f);
    }
    rel.own_roots_mut(&mut |root| walk_with_subqueries(root, false, f));
    for input in rel.inputs_mut() {
        for_each_own_expr_mut(input, early, f);
    }
}

fn walk_with_subqueries(expr: &mut Expr, early: bool, f: &mut Visit<'_>) {
    expr.walk_mut(&mut |e| {
        if let ExprKind::Subquery(sub) = &mut e.kind {
            for_each_own_expr_mut(&mut sub.plan, early, f);
        }
        f(e, early);
    });
}

/// Calls `f` on what MySQL's optimizer evaluates: what conditions ask of no row, what they say that a column is equal to, and groups by what is of no row.
fn for_each_early(rel: &mut Rel, f: &mut Visit<'_>) {
    match &mut rel.kind {
        RelKind::Filter { input, predicate } => early_in(predicate, !matches!(input.kind, RelKind::Aggregate { .. }), f),
        RelKind::Join { on: Some(on), .. } => early_in(on, true, f),
        RelKind::Aggregate { groups, .. } => groups.iter_mut().filter(|group| is_of_no_row(group)).for_each(|group| walk_with_subqueries(group, true, f)),
        _ => {}
    }
}

/// `equal`: the rows are those for which the condition is true, and they are no groups.
fn early_in(condition: &mut Expr, equal: bool, f: &mut Visit<'_>) {
    match &mut condition.kind {
        ExprKind::And(parts) => return parts.iter_mut().for_each(|part| early_in(part, equal, f)),
        ExprKind::Or(parts) => return parts.iter_mut().for_each(|part| early_in(part, false, f)),
        ExprKind::Not(inner) => return early_in(inner, false, f),
        _ => {}
    }
    if is_of_no_row(condition) {
        return walk_with_subqueries(condition, true, f);
    }
    if let ExprKind::Compare { op: CompareOp::Eq, left, right, .. } = &mut condition.kind
        && equal
    {
        if left.as_column().is_some() && is_of_no_row(right) {
            walk_with_subqueries(right, true, f);
        } else if right.as_column().is_some() && is_of_no_row(left) {
            walk_with_subqueries(left, true, f);
        }
    }
}

fn is_of_no_row(expr: &Expr) -> bool {
    expr.columns().is_empty() && !refers_out(expr)
}

/// It reads rows of a recursion around it.
pub(in crate::df) fn reads_recursion(rel: &Rel) -> bool {
    match rel.kind {
        RelKind::CteScan { .. } => true,
        RelKind::MaterializedCte { .. } => false,
        _ => rel.inputs().into_iter().any(reads_recursion),
    }
}

fn rel_is_volatile(rel: &Rel) -> bool {
    let mut volatile = false;
    rel.for_each_root(&mut |root| volatile |= !root.is_steady());
    volatile
}

