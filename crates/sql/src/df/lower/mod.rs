//! From a bound plan to a DataFusion plan that means the same.
//!
//! Columns are positions in the bound plan and unique generated names in DataFusion's; a [`Lowered`] holds the names in position order.
//! Every expression comes out in the Arrow form of its MySQL type (`repr`), every condition as Arrow's Boolean.

mod aggregate;
mod decorrelate;
mod dependent;
mod expr;
mod guard;
mod join;
mod join_order;
mod lateral;
mod set;
mod source;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::logical_plan::{Filter, Projection, Sort as SortPlan};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, SortExpr};
use highkey_types::Value;

pub(super) use decorrelate::reads_recursion;
pub(super) use expr::{KeyForm, apply, key_form, literal, own_key};
pub(super) use source::{rows_found, schema};

use guard::{behind, calls_only, joined_relation};

use super::context::Shared;
use super::recursion::WorkTable;
use crate::plan::{Expr, ExprKind, ExprType, JoinKind, Rel, RelKind, SortKey};
use crate::stack;

/// Rows of the enclosing queries while a subquery runs for one of them; the innermost is last.
pub(super) type Rows = Arc<Vec<Arc<Vec<Value>>>>;

/// Lowers the plans of one query.
#[derive(Clone, Debug)]
pub(super) struct Lowerer {
    pub shared: Arc<Shared>,
    pub outer: Rows,
    /// The recursions around the plan.
    pub recursions: Arc<HashMap<usize, Arc<WorkTable>>>,
}

/// A lowered relation.
#[derive(Clone)]
pub(super) struct Lowered {
    pub plan: LogicalPlan,
    /// Its columns by position; the plan may have more.
    pub columns: Vec<DfExpr>,
}

/// What the columns of an expression stand for.
#[derive(Clone)]
pub(super) struct Scope {
    pub exprs: Vec<DfExpr>,
    pub types: Vec<ExprType>,
}

impl Scope {
    pub fn of(rel: &Rel, lowered: &Lowered) -> Scope {
        Scope { exprs: lowered.columns.clone(), types: rel.fields.iter().map(|f| f.ty.clone()).collect() }
    }

    pub fn empty() -> Scope {
        Scope { exprs: Vec::new(), types: Vec::new() }
    }

    /// The columns of both, one after the other: what a join condition sees.
    pub fn join(mut self, other: Scope) -> Scope {
        self.exprs.extend(other.exprs);
        self.types.extend(other.types);
        self
    }
}

impl Lowerer {
    pub fn new(shared: Arc<Shared>) -> Lowerer {
        Lowerer { shared, outer: Arc::default(), recursions: Arc::default() }
    }

    /// Lowers a relation. `hints` are conditions over its fields that its rows will be filtered by anyway: scans make ranges of them.
    pub fn rel(&self, rel: &Rel, hints: &[Expr]) -> Result<Lowered> {
        self.shared.check_killed()?;
        stack::ensure(|| self.rel_here(rel, hints))
    }

    fn rel_here(&self, rel: &Rel, hints: &[Expr]) -> Result<Lowered> {
        match &rel.kind {
            RelKind::Scan { table, alias, columns, indexes, .. } => self.scan(rel, table, alias, columns, indexes, hints),
            RelKind::Virtual { table, alias } => self.virtual_table(table, alias, hints),
            RelKind::Values { rows } => self.values(rel, rows),
            RelKind::Kept { rows } => self.kept_rows(rel, rows),
            RelKind::Filter { input, predicate } => self.filter(input, predicate, hints),
            RelKind::Project { input, exprs } => self.project(rel, input, exprs, hints),
            RelKind::Join { kind, left, right, on } => match self.joined_in_order(rel, &[], hints)? {
                Some(joined) => Ok(joined),
                None => self.join(*kind, left, right, on.as_ref(), hints),
            },
            RelKind::Apply { input, made, outer } => self.apply(rel, input, made, *outer, hints),
            RelKind::JsonTable { rows, document } => self.json_table(rel, rows, document),
            RelKind::Aggregate { input, groups, aggregates, rollup } => self.aggregate(input, groups, aggregates, *rollup),
            RelKind::Window { input, windows } => self.window(input, windows),
            RelKind::Sort { input, keys } => self.sort(input, keys, hints),
            RelKind::Limit { input, offset, count } => self.limit(input, offset.as_ref(), count.as_ref()),
            RelKind::Distinct { input } => {
                let lowered = self.rel(input, hints)?;
                self.distinct(lowered, &Self::types(input))
            }
            RelKind::SetOperation { op, all, inputs } => self.set_operation(rel, *op, *all, inputs),
            RelKind::RecursiveCte { id, anchor, step, distinct, strict } => self.recursive(rel, *id, [anchor, step], *distinct, *strict),
            RelKind::CteScan { id, name } => self.cte_scan(rel, *id, name),
            RelKind::MaterializedCte { id, name, plan } => self.materialized_cte(rel, *id, name, plan),
        }
    }

    pub fn types(rel: &Rel) -> Vec<ExprType> {
        rel.fields.iter().map(|f| f.ty.clone()).collect()
    }

    fn filter(&self, input: &Rel, predicate: &Expr, hints: &[Expr]) -> Result<Lowered> {
        let mut all_hints: Vec<Expr> = hints.to_vec();
        all_hints.extend(predicate.conjuncts().iter().filter(|c| !c.has_subquery()).cloned());
        let (with_subquery, mut plain): (Vec<Expr>, Vec<Expr>) = predicate.conjuncts().iter().cloned().partition(Expr::has_subquery);
        let (calls, mut with_subquery): (Vec<Expr>, Vec<Expr>) = with_subquery.into_iter().partition(calls_only);
        if !calls.is_empty() {
            with_subquery.extend(behind(&plain, calls));
        }
        // What all sides of an OR ask for may tie tables.
        let common: Vec<Expr> = plain.iter().flat_map(in_all_sides).collect();
        plain.extend(common);
        let (lowered, conjuncts) = match self.joined_in_order(input, &plain, hints)? {
            Some(joined) => (joined, with_subquery),
            None => {
                let before: &[Expr] = match &input.kind {
                    RelKind::Join { kind: JoinKind::Inner | JoinKind::Straight, on: Some(on), .. } => on.conjuncts(),
                    _ => &[],
                };
                let asked = self.guarded(before, &plain, &|column| joined_relation(input, column));
                (self.rel(input, &all_hints)?, asked.into_iter().chain(with_subquery).collect())
            }
        };
        let columns = lowered.columns.clone();
        let plan = self.filter_lowered(lowered, Self::types(input), &conjuncts)?;
        Ok(Lowered { plan, columns })
    }

    /// `input` filtered by conditions over it; subqueries among them become joins where they can.
    pub fn filter_lowered(&self, input: Lowered, types: Vec<ExprType>, conjuncts: &[Expr]) -> Result<LogicalPlan> {
        let mut scope = Scope { exprs: input.columns.clone(), types };
        let mut plan = input.plan;
        // Plain conditions first: they are cheap and shrink what the subqueries' joins see.
        let (with_subquery, plain): (Vec<&Expr>, Vec<&Expr>) = conjuncts.iter().partition(|c| c.has_subquery());
        let plain = self.conditions(plain, &scope)?;
        if let Some(all) = conjunction(plain) {
            plan = self.where_true(plan, all)?;
        }
        for conjunct in with_subquery {
            if let Some(joined) = self.semi_join(&plan, &scope, conjunct)? {
                plan = joined;
                continue;
            }
            let mut conjunct = conjunct.clone();
            plan = self.join_scalar_subqueries(plan, &mut scope, std::slice::from_mut(&mut conjunct))?;
            plan = self.where_true(plan, self.condition(&conjunct, &scope)?)?;
        }
        Ok(plan)
    }

    pub fn where_true(&self, plan: LogicalPlan, condition: DfExpr) -> Result<LogicalPlan> {
        if self.shared.calls_session && condition.is_volatile() && plan.exists(|node| Ok(matches!(node, LogicalPlan::Join(_))))? {
            return self.where_called(plan, condition);
        }
        Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?))
    }

    /// The same of a condition that calls functions, over a join. DataFusion asks either side of that for what is asked of the other, by the columns that are equal,
    /// which would call them twice: the condition is a column first, which it leaves where it is.
    fn where_called(&self, plan: LogicalPlan, condition: DfExpr) -> Result<LogicalPlan> {
        let (calls, steady): (Vec<DfExpr>, Vec<DfExpr>) = split_conjunction_owned(condition).into_iter().partition(DfExpr::is_volatile);
        let mut plan = plan;
        if let Some(steady) = conjunction(steady) {
            plan = LogicalPlan::Filter(Filter::try_new(steady, Arc::new(plan))?);
        }
        let Some(calls) = conjunction(calls) else { return Ok(plan) };
        let mut computed = Projecting::default();
        for column in plan.schema().columns() {
            computed.push(self, DfExpr::Column(column), "");
        }
        let asked = computed.push(self, calls, "asked");
        Ok(LogicalPlan::Filter(Filter::try_new(asked, Arc::new(computed.over(plan)?))?))
    }

    fn project(&self, rel: &Rel, input: &Rel, exprs: &[Expr], hints: &[Expr]) -> Result<Lowered> {
        let through: Vec<Expr> = hints.iter().filter_map(|hint| through_projection(hint, exprs)).collect();
        let lowered = self.rel(input, &through)?;
        let mut scope = Scope::of(input, &lowered);
        let mut exprs = exprs.to_vec();
        let plan = self.join_scalar_subqueries(lowered.plan, &mut scope, &mut exprs)?;
        let mut out = Projecting::default();
        let columns = exprs
            .iter()
            .zip(&rel.fields)
            .map(|(expr, field)| Ok(out.push(self, self.value_as(expr, &field.ty.ty, &scope)?, &field.name)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Lowered { plan: out.over(plan)?, columns })
    }

    fn sort(&self, input: &Rel, keys: &[SortKey], hints: &[Expr]) -> Result<Lowered> {
        let lowered = self.rel(input, hints)?;
        let mut scope = Scope::of(input, &lowered);
        let mut exprs: Vec<Expr> = keys.iter().map(|k| k.expr.clone()).collect();
        let plan = self.join_scalar_subqueries(lowered.plan, &mut scope, &mut exprs)?;
        let expr = exprs
            .iter()
            .zip(keys)
            .map(|(expr, key)| Ok(SortExpr::new(self.order_key(expr, &scope)?, !key.desc, !key.desc)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Lowered { plan: LogicalPlan::Sort(SortPlan { expr, input: Arc::new(plan), fetch: None }), columns: lowered.columns })
    }

    fn limit(&self, input: &Rel, offset: Option<&Expr>, count: Option<&Expr>) -> Result<Lowered> {
        let lowered = self.rel(input, &[])?;
        let skip = offset.map(|e| self.row_count(e)).transpose()?.unwrap_or(0);
        let fetch = count.map(|e| self.row_count(e)).transpose()?;
        Ok(Lowered { plan: LogicalPlanBuilder::from(lowered.plan).limit(skip, fetch)?.build()?, columns: lowered.columns })
    }

    /// The value of OFFSET or LIMIT.
    fn row_count(&self, expr: &Expr) -> Result<usize> {
        let value = match self.value(expr, &Scope::empty())? {
            DfExpr::Literal(ScalarValue::UInt64(Some(n)), _) => n,
            DfExpr::Literal(ScalarValue::Int64(Some(n)), _) => n.max(0) as u64,
            other => return datafusion::common::plan_err!("LIMIT of {other}"),
        };
        Ok(usize::try_from(value).unwrap_or(usize::MAX).min(i64::MAX as usize))
    }

    /// A column reference by a name of ours.
    pub fn named(name: String) -> DfExpr {
        DfExpr::Column(Column::new_unqualified(name))
    }
}

/// A projection being put together.
#[derive(Default)]
pub(super) struct Projecting {
    exprs: Vec<DfExpr>,
}

impl Projecting {
    /// Adds an expression; returns the column that it becomes.
    pub fn push(&mut self, lowerer: &Lowerer, expr: DfExpr, hint: &str) -> DfExpr {
        if let DfExpr::Column(_) = &expr {
            // A column may appear twice in the output, but only once under its name.
            if !self.exprs.contains(&expr) {
                self.exprs.push(expr.clone());
            }
            return expr;
        }
        let name = lowerer.shared.name(hint);
        self.exprs.push(expr.alias(name.clone()));
        Lowerer::named(name)
    }

    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    pub fn over(self, plan: LogicalPlan) -> Result<LogicalPlan> {
        Ok(LogicalPlan::Projection(Projection::try_new(self.exprs, Arc::new(plan))?))
    }
}

/// The conditions that stand in every side of a disjunction.
fn in_all_sides(condition: &Expr) -> Vec<Expr> {
    let ExprKind::Or(sides) = &condition.kind else { return Vec::new() };
    let Some((first, others)) = sides.split_first() else { return Vec::new() };
    let same = |a: &Expr, b: &Expr| format!("{:?}", a.kind) == format!("{:?}", b.kind);
    let everywhere = |c: &&Expr| c.is_steady() && others.iter().all(|side| side.conjuncts().iter().any(|other| same(c, other)));
    first.conjuncts().iter().filter(everywhere).cloned().collect()
}

/// A condition over a projection as one over its input, if it reads plain columns only.
fn through_projection(hint: &Expr, exprs: &[Expr]) -> Option<Expr> {
    let plain = hint.columns().iter().all(|&i| exprs[i].as_column().is_some());
    plain.then(|| {
        let mut hint = hint.clone();
        hint.map_columns(&mut |i| exprs[i].as_column().unwrap_or(i));
        hint
    })
}

/// Calls `f` on every expression node of a plan and of the subqueries in it, children first; the number counts the subqueries around it.
pub(super) fn for_each_expr_mut(rel: &mut Rel, depth: usize, f: &mut dyn FnMut(&mut Expr, usize)) {
    rel.for_each_root_mut(&mut |root| expr_mut(root, depth, f));
}

pub(super) fn expr_mut(expr: &mut Expr, depth: usize, f: &mut dyn FnMut(&mut Expr, usize)) {
    for child in expr.children_mut() {
        expr_mut(child, depth, f);
    }
    if let ExprKind::Subquery(sub) = &mut expr.kind {
        for_each_expr_mut(&mut sub.plan, depth + 1, f);
    }
    f(expr, depth);
}
