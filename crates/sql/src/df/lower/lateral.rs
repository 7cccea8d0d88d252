//! LATERAL and JSON_TABLE: tables that are made for each row of those before them.

use std::sync::Arc;

use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::logical_plan::EmptyRelation;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan};
use highkey_types::ColumnType;

use super::{Lowered, Lowerer, Scope, schema};
use crate::df::lateral::{ApplyTable, Made};
use crate::plan::{Expr, ExprKind, JsonRows, Rel, RelKind};

/// A JSON_TABLE with what is asked of its rows.
struct JsonTable<'a> {
    rows: &'a Arc<JsonRows>,
    document: &'a Expr,
    conditions: Vec<&'a Expr>,
}

impl<'a> JsonTable<'a> {
    /// `None` if the relation is something else, or a condition runs a query.
    fn of(rel: &'a Rel) -> Option<JsonTable<'a>> {
        match &rel.kind {
            RelKind::JsonTable { rows, document } => Some(JsonTable { rows, document, conditions: Vec::new() }),
            RelKind::Filter { input, predicate } if !predicate.has_subquery() => {
                let mut table = JsonTable::of(input)?;
                table.conditions.push(predicate);
                Some(table)
            }
            _ => None,
        }
    }
}

impl Lowerer {
    /// For each row of `input` what `made` makes of it. `outer`: rows that have none are kept.
    pub fn apply(&self, rel: &Rel, input: &Rel, made: &Expr, outer: bool, hints: &[Expr]) -> Result<Lowered> {
        let ExprKind::Subquery(subquery) = &made.kind else { return plan_err!("rows are made by a subquery") };
        let width = input.fields.len();
        let of_input: Vec<Expr> = hints.iter().filter(|hint| hint.columns().last().is_some_and(|last| *last < width)).cloned().collect();
        let lowered = self.rel(input, &of_input)?;
        if let Some(table) = JsonTable::of(&subquery.plan) {
            let document = table.document.clone().out_of_subquery(width);
            return self.document_rows(rel, input, lowered, &table, document, outer);
        }
        let types = Self::types(input).into_iter().map(|t| t.ty).collect();
        let made = Made::Query { plan: Arc::new(subquery.plan.clone()), reads: made.columns() };
        self.made_beside(rel, lowered, types, made, outer)
    }

    /// JSON_TABLE of a document that no table before it has.
    pub fn json_table(&self, rel: &Rel, rows: &Arc<JsonRows>, document: &Expr) -> Result<Lowered> {
        let one_row = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema: Arc::new(DFSchema::empty()) });
        let table = JsonTable { rows, document, conditions: Vec::new() };
        self.document_rows(rel, &Rel::dual(), Lowered { plan: one_row, columns: Vec::new() }, &table, document.clone(), false)
    }

    /// The document is computed as one more column of the input, which it is an expression over.
    fn document_rows(&self, rel: &Rel, input: &Rel, lowered: Lowered, table: &JsonTable<'_>, document: Expr, outer: bool) -> Result<Lowered> {
        let width = input.fields.len();
        let mut scope = Scope::of(input, &lowered);
        let mut documents = [document];
        let plan = self.join_scalar_subqueries(lowered.plan, &mut scope, &mut documents)?;
        let document = self.value(&documents[0], &scope)?;
        let mut columns: Vec<DfExpr> = scope.exprs[..width].to_vec();
        columns.push(document);
        let mut types: Vec<ColumnType> = scope.types[..width].iter().map(|t| t.ty.clone()).collect();
        types.push(documents[0].ty.ty.clone());
        let mut conditions = Vec::new();
        for condition in &table.conditions {
            match self.with_outer_values(&(*condition).clone().out_of_subquery(width)) {
                Some(condition) => conditions.push(condition),
                None => return plan_err!("no enclosing row for a condition of JSON_TABLE"),
            }
        }
        let made = Made::Json { rows: table.rows.clone(), condition: Expr::and(conditions), document: width };
        self.made_beside(rel, Lowered { plan, columns }, types, made, outer)
    }

    /// `types`: of the columns of `input`, which are those of the output and then what only `made` reads.
    fn made_beside(&self, rel: &Rel, input: Lowered, types: Vec<ColumnType>, made: Made, outer: bool) -> Result<Lowered> {
        self.shared.plan_runs_inside();
        let names: Vec<String> = rel.fields.iter().map(|f| self.shared.name(&f.name)).collect();
        let output: Vec<(ColumnType, bool)> = rel.fields.iter().map(|f| (f.ty.ty.clone(), true)).collect();
        let input_names: Vec<String> = types.iter().map(|_| self.shared.name("row")).collect();
        let width = match &made {
            Made::Json { document, .. } => *document,
            Made::Query { .. } => types.len(),
        };
        let table = ApplyTable {
            lowerer: self.clone(),
            input: self.renamed(input, &input_names)?,
            input_names,
            input_types: types,
            width,
            made,
            made_types: output[width..].iter().map(|(ty, _)| ty.clone()).collect(),
            outer,
            aliases: rel.fields.iter().map(|f| f.table.to_string()).collect(),
            schema: schema(&names, &output),
        };
        let alias = rel.fields.get(width).map_or("lateral", |field| &*field.table).to_owned();
        self.table(Arc::new(table), &alias)
    }
}
