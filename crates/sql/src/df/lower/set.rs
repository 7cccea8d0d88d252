//! DISTINCT, UNION, INTERSECT, EXCEPT, and what WITH names: recursions, and rows that are made once.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::logical_plan::{Projection, Union, Window};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, WindowFrame};

use super::{Lowered, Lowerer, Projecting, Scope};
use crate::df::materialize::{CteTable, MaterializedCte};
use crate::df::recursion::{Recursion, WorkTable};
use crate::plan::{Expr, ExprType, Rel, RelKind, SetOperator};

impl Lowerer {
    /// `input` without duplicate rows.
    pub fn distinct(&self, input: Lowered, types: &[ExprType]) -> Result<Lowered> {
        let scope = Scope { exprs: input.columns, types: types.to_vec() };
        let groups = (0..types.len()).map(|i| self.group_column(&Expr::column(i, types[i].clone()), &scope)).collect::<Result<Vec<_>>>()?;
        self.grouped(input.plan, groups, Vec::new())
    }

    pub fn set_operation(&self, rel: &Rel, op: SetOperator, all: bool, inputs: &[Rel]) -> Result<Lowered> {
        let types = inputs.first().map(Self::types).unwrap_or_default();
        let lowered = inputs.iter().map(|input| self.converted(self.rel(input, &[])?, &Self::types(input), &types)).collect::<Result<Vec<_>>>()?;
        match op {
            SetOperator::Union => {
                let names: Vec<String> = rel.fields.iter().map(|f| self.shared.name(&f.name)).collect();
                let inputs = lowered.into_iter().map(|input| Ok(Arc::new(self.renamed(input, &names)?))).collect::<Result<Vec<_>>>()?;
                let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
                let lowered = Lowered { plan, columns: names.into_iter().map(Lowerer::named).collect() };
                if all { Ok(lowered) } else { self.distinct(lowered, &types) }
            }
            SetOperator::Intersect | SetOperator::Except => {
                let Ok([l, r]) = <[Lowered; 2]>::try_from(lowered) else { return datafusion::common::plan_err!("{op:?} of {} inputs", inputs.len()) };
                let l = if all { l } else { self.distinct(l, &types)? };
                let (l, left_keys) = self.with_keys(l, &types, all)?;
                let (r, right_keys) = self.with_keys(r, &types, all)?;
                let kind = if op == SetOperator::Intersect { JoinType::LeftSemi } else { JoinType::LeftAnti };
                let columns = |keys: &[DfExpr]| keys.iter().filter_map(|k| k.try_as_col().cloned()).collect::<Vec<_>>();
                let plan = LogicalPlanBuilder::from(l.plan)
                    .join_detailed(r.plan, kind, (columns(&left_keys), columns(&right_keys)), None, NullEquality::NullEqualsNull)?
                    .build()?;
                Ok(Lowered { plan, columns: l.columns })
            }
        }
    }

    /// `input` with a key column per column and, to match duplicates one by one, each row's number among its equals.
    fn with_keys(&self, input: Lowered, types: &[ExprType], numbered: bool) -> Result<(Lowered, Vec<DfExpr>)> {
        let scope = Scope { exprs: input.columns.clone(), types: types.to_vec() };
        let mut out = Projecting::default();
        let columns: Vec<DfExpr> = input.columns.into_iter().map(|c| out.push(self, c, "column")).collect();
        let mut keys = Vec::new();
        for (i, ty) in types.iter().enumerate() {
            // Under a name of its own even where the key is the column: both sides' join keys must be distinct columns.
            let name = self.shared.name("key");
            let key = self.group_key(&Expr::column(i, ty.clone()), &scope)?;
            out.exprs.push(key.alias(name.clone()));
            keys.push(Lowerer::named(name));
        }
        let mut plan = out.over(input.plan)?;
        if numbered {
            let name = self.shared.name("number");
            let number = DfExpr::WindowFunction(Box::new(WindowFunction {
                fun: datafusion::logical_expr::WindowFunctionDefinition::WindowUDF(row_number_udwf()),
                params: WindowFunctionParams {
                    args: Vec::new(),
                    partition_by: keys.clone(),
                    order_by: Vec::new(),
                    window_frame: WindowFrame::new(None),
                    filter: None,
                    null_treatment: None,
                    distinct: false,
                },
            }));
            plan = LogicalPlan::Window(Window::try_new(vec![number.alias(name.clone())], Arc::new(plan))?);
            keys.push(Lowerer::named(name));
        }
        Ok((Lowered { plan, columns }, keys))
    }

    /// The columns under given names, in order, and nothing else.
    pub fn renamed(&self, input: Lowered, names: &[String]) -> Result<LogicalPlan> {
        let exprs = input.columns.into_iter().zip(names).map(|(column, name)| column.alias(name.clone())).collect();
        Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input.plan))?))
    }

    /// `input` converted to other types, column by column.
    fn converted(&self, input: Lowered, from: &[ExprType], to: &[ExprType]) -> Result<Lowered> {
        let forms = |types: &[ExprType]| types.iter().map(|t| crate::df::repr::data_type(&t.ty)).collect::<Vec<DataType>>();
        if forms(from) == forms(to) {
            return Ok(input);
        }
        let scope = Scope { exprs: input.columns, types: from.to_vec() };
        let mut out = Projecting::default();
        let mut columns = Vec::new();
        for (i, (from, to)) in from.iter().zip(to).enumerate() {
            columns.push(out.push(self, self.value_as(&Expr::column(i, from.clone()), &to.ty, &scope)?, "column"));
        }
        Ok(Lowered { plan: out.over(input.plan)?, columns })
    }

    pub fn recursive(&self, rel: &Rel, id: usize, [anchor, step]: [&Rel; 2], distinct: bool, strict: bool) -> Result<Lowered> {
        self.shared.plan_runs_inside();
        let types = Self::types(rel);
        let names: Vec<String> = rel.fields.iter().map(|f| self.shared.name(&f.name)).collect();
        let work = Arc::new(WorkTable::new(&names, &types));
        let anchor_rows = self.converted(self.rel(anchor, &[])?, &Self::types(anchor), &types)?;
        let mut inner = self.clone();
        let mut recursions = (*self.recursions).clone();
        recursions.insert(id, work.clone());
        inner.recursions = Arc::new(recursions);
        let step_rows = inner.converted(inner.rel(step, &[])?, &Self::types(step), &types)?;
        let recursion = Recursion {
            shared: self.shared.clone(),
            anchor: self.renamed(anchor_rows, &names)?,
            step: self.renamed(step_rows, &names)?,
            work,
            fields: rel.fields.clone(),
            distinct,
            strict,
        };
        self.table(Arc::new(recursion), "recursive")
    }

    pub fn cte_scan(&self, rel: &Rel, id: usize, name: &str) -> Result<Lowered> {
        match self.recursions.get(&id) {
            Some(work) => self.table(work.clone().provider(self.shared.clone()), name),
            None => datafusion::common::plan_err!("no recursion {id} around {} columns", rel.fields.len()),
        }
    }

    /// Rows that are made once for all who read them. `plan` is lowered by the first of them.
    pub fn materialized_cte(&self, rel: &Rel, id: usize, name: &str, plan: &Rel) -> Result<Lowered> {
        self.shared.plan_for_once();
        let cte = match self.shared.cte(id) {
            Some(cte) => cte,
            None => {
                let types = Self::types(plan);
                let names: Vec<String> = plan.fields.iter().map(|f| self.shared.name(&f.name)).collect();
                // It reads nothing of what is around it.
                let alone = Lowerer::new(self.shared.clone());
                let mut folded = plan.clone();
                if !self.shared.explain {
                    alone.fold_constant_subqueries(&mut folded)?;
                }
                let rows = alone.renamed(alone.rel(&folded, &[])?, &names)?;
                let title = format!("Materialize {}CTE {name} if needed", if matches!(plan.kind, RelKind::RecursiveCte { .. }) { "recursive " } else { "" });
                self.shared.keep_cte(id, MaterializedCte::new(self.shared.clone(), id, title, rows, &names, &types))?
            }
        };
        let alias = rel.fields.first().map_or(name, |field| &*field.table);
        let read = self.table(Arc::new(CteTable::new(cte, alias)), alias)?;
        self.converted(read, &Self::types(plan), &Self::types(rel))
    }
}
