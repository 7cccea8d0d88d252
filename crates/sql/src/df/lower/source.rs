//! Where rows come from: tables, tables of the session, constants.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field as ArrowField, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, Result};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::logical_plan::{EmptyRelation, Projection, Union};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder};
use highkey_table::Table;
use highkey_types::{ColumnType, Value};

use super::{Lowered, Lowerer, Scope};
use crate::df::error::user;
use crate::df::kept_rows::KeptTable;
use crate::df::parameters::has_parameter;
use crate::df::repr::{ColumnBuilder, data_type};
use crate::df::scan::{Access, BEHIND_INDEX, BaseTable, OpenConditions};
use crate::expr::EvalContext;
use crate::plan::{
    Expr, ExprKind, IndexAccess, IndexChoice, Rel, VirtualTable, Wanted, column_share, index_access, key_ranges, pruned, rows_in_ranges, selectivity_by_indexes,
};
use crate::prepared::KeptRows;

/// So many rows that were read before are made a batch; more are read where they wait.
const FEW_KEPT: usize = 4096;

impl Lowerer {
    pub fn scan(&self, rel: &Rel, table: &Arc<Table>, alias: &str, columns: &[usize], choice: &IndexChoice, hints: &[Expr]) -> Result<Lowered> {
        let names: Vec<String> = rel.fields.iter().map(|f| self.shared.name(&f.name)).collect();
        let types: Vec<(ColumnType, bool)> = rel.fields.iter().map(|f| (f.ty.ty.clone(), f.ty.nullable)).collect();
        let table = &if table.is_partitioned() { self.pruned(table, columns, hints)? } else { table.clone() };
        let (access, others) = self.access(table, columns, choice, hints)?;
        let open = self.open_conditions(table, columns, hints);
        let provider = BaseTable::new(self.shared.owner.clone(), table.clone(), alias, columns.to_vec(), schema(&names, &types), access, others, choice.clone(), open);
        self.table(Arc::new(provider), alias)
    }

    /// Those of `hints` that can be told before the query runs, if there are parameters in them.
    fn open_conditions(&self, table: &Table, columns: &[usize], hints: &[Expr]) -> Option<OpenConditions> {
        if !hints.iter().any(has_parameter) {
            return None;
        }
        let told = |hint: &&Expr| !hint.has_subquery() && self.with_outer_values(hint).is_some();
        let filter = Expr::and(self.known_hints(hints))?;
        let rows = table.row_count_estimate().unwrap_or(0) as f64 * selectivity_by_indexes(&filter, table, columns, &mut *self.shared.unheard());
        Some(OpenConditions::new(hints.iter().filter(told).cloned().collect(), columns.to_vec(), rows))
    }

    /// The table without the partitions in which no row satisfies `hints`.
    fn pruned(&self, table: &Arc<Table>, columns: &[usize], hints: &[Expr]) -> Result<Arc<Table>> {
        if hints.iter().any(has_parameter) {
            // With other values it would be without others.
            self.shared.parameters.close();
        }
        match Expr::and(self.known_hints(hints)) {
            Some(filter) => pruned(table, &filter, columns, &mut *self.shared.unheard()).map_err(user),
            None => Ok(table.clone()),
        }
    }

    /// The index ranges that hold every row which satisfies `hints`, and those of secondary indexes that would be the better ones if no row had to be looked at.
    fn access(&self, table: &Arc<Table>, columns: &[usize], choice: &IndexChoice, hints: &[Expr]) -> Result<(Access, Vec<Access>)> {
        let Some(filter) = Expr::and(self.known_hints(hints)) else { return Ok((Access::whole(0), Vec::new())) };
        let def = table.def();
        let total = table.row_count_estimate().unwrap_or(0);
        // One row is looked up however small the table is.
        let whole_cost = (total as f64).max(BEHIND_INDEX + 1.0);
        let mut best: Option<(f64, Access)> = None;
        let mut others = Vec::new();
        let mut unheard = self.shared.unheard();
        for index in (0..def.indexes.len()).filter(|&i| choice.finds(i)) {
            let Some(found) = index_access(&filter, def, columns, index) else { continue };
            let rows = rows_found(&found, &filter, table, columns, &mut *unheard);
            let cost = if index == 0 { rows } else { rows * BEHIND_INDEX };
            if cost < best.as_ref().map_or(whole_cost, |(cost, _)| *cost) || (index == 0 && best.is_none()) {
                let ranges = key_ranges(&found, def, &mut *self.shared.surroundings()).map_err(user)?;
                let passed = best.replace((cost, Access { index, ranges, rows: Some(rows as u64), scattered: false }));
                others.extend(passed.map(|(_, access)| access));
            } else if index != 0
                && let Ok(ranges) = key_ranges(&found, def, &mut *unheard)
            {
                others.push(Access { index, ranges, rows: Some(rows as u64), scattered: false });
            }
        }
        others.retain(|access| access.index != 0);
        Ok((best.map_or_else(|| Access::whole(0), |(_, access)| access), others))
    }

    /// Those of `hints` that can be told before the query runs.
    fn known_hints(&self, hints: &[Expr]) -> Vec<Expr> {
        hints.iter().filter(|h| !h.has_subquery()).filter_map(|h| self.with_outer_values(h)).collect()
    }

    pub fn virtual_table(&self, table: &Arc<VirtualTable>, alias: &str, hints: &[Expr]) -> Result<Lowered> {
        self.shared.plan_for_once();
        let names: Vec<String> = table.columns.iter().map(|(name, ..)| self.shared.name(name)).collect();
        let types: Vec<(ColumnType, bool)> = table.columns.iter().map(|(_, ty, _)| (ty.clone(), true)).collect();
        let rows = if self.shared.explain {
            Vec::new()
        } else {
            let wanted = Wanted::of(table, &self.known_hints(hints), &mut *self.shared.surroundings());
            (self.shared.virtual_rows)(table, &wanted).map_err(user)?
        };
        self.table(memory_table(schema(&names, &types), &types, &rows)?, alias)
    }

    /// Rows that were read before.
    pub fn kept_rows(&self, rel: &Rel, rows: &Arc<KeptRows>) -> Result<Lowered> {
        self.shared.plan_for_once();
        let names: Vec<String> = rel.fields.iter().map(|f| self.shared.name(&f.name)).collect();
        let types: Vec<(ColumnType, bool)> = rel.fields.iter().map(|f| (f.ty.ty.clone(), true)).collect();
        let schema = schema(&names, &types);
        if rows.count() > FEW_KEPT || rows.is_in_file() {
            let types = types.into_iter().map(|(ty, _)| ty).collect();
            return self.table(Arc::new(KeptTable::new(self.shared.clone(), rows.clone(), schema, types)), "values");
        }
        let mut few = Vec::with_capacity(rows.count());
        let mut read = rows.read();
        while let Some(row) = read.next_row()? {
            few.push(row);
        }
        self.table(memory_table(schema, &types, &few)?, "values")
    }

    pub fn values(&self, rel: &Rel, rows: &[Vec<Expr>]) -> Result<Lowered> {
        let one_row = || LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema: Arc::new(datafusion::common::DFSchema::empty()) });
        let names: Vec<String> = rel.fields.iter().map(|f| self.shared.name(&f.name)).collect();
        if rel.fields.is_empty() && rows.len() == 1 {
            return Ok(Lowered { plan: one_row(), columns: Vec::new() });
        }
        let literal = |row: &Vec<Expr>| -> Option<Vec<Value>> {
            let same = |e: &Expr, ty: &ColumnType| e.ty.ty == *ty || matches!(e.kind, ExprKind::Literal(Value::Null));
            row.iter().zip(&rel.fields).map(|(e, f)| e.as_literal().filter(|_| same(e, &f.ty.ty)).cloned()).collect()
        };
        if let Some(rows) = rows.iter().map(literal).collect::<Option<Vec<_>>>() {
            let types: Vec<(ColumnType, bool)> = rel.fields.iter().map(|f| (f.ty.ty.clone(), true)).collect();
            return self.table(memory_table(schema(&names, &types), &types, &rows)?, "values");
        }
        let scope = Scope::empty();
        let lowered = rows
            .iter()
            .map(|row| row.iter().zip(&rel.fields).map(|(e, f)| self.value_as(e, &f.ty.ty, &scope)).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>()?;
        let columns = names.iter().cloned().map(Lowerer::named).collect();
        let constant = lowered.iter().flatten().all(|e| matches!(e, DfExpr::Literal(..)));
        if constant || rows.is_empty() {
            let types: Vec<(ColumnType, bool)> = rel.fields.iter().map(|f| (f.ty.ty.clone(), true)).collect();
            let schema = schema(&names, &types);
            let arrays = (0..names.len())
                .map(|column| {
                    let cells = lowered.iter().filter_map(|row| match &row[column] {
                        DfExpr::Literal(value, _) => Some(value.clone()),
                        _ => None,
                    });
                    if rows.is_empty() {
                        Ok(datafusion::arrow::array::new_empty_array(schema.field(column).data_type()))
                    } else {
                        datafusion::common::ScalarValue::iter_to_array(cells)
                    }
                })
                .collect::<Result<Vec<ArrayRef>>>()?;
            let batch = RecordBatch::try_new(schema.clone(), arrays)?;
            return self.table(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?), "values");
        }
        let mut inputs = lowered
            .into_iter()
            .map(|row| {
                let exprs = row.into_iter().zip(&names).map(|(e, name)| e.alias(name.clone())).collect();
                Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(one_row()))?)))
            })
            .collect::<Result<Vec<_>>>()?;
        let plan = if inputs.len() == 1 { Arc::unwrap_or_clone(inputs.remove(0)) } else { LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?) };
        Ok(Lowered { plan, columns })
    }

    /// A scan of a provider, all its columns in order.
    pub fn table(&self, provider: Arc<dyn TableProvider>, alias: &str) -> Result<Lowered> {
        let qualifier = datafusion::common::TableReference::bare(self.shared.name(alias));
        let columns =
            provider.schema().fields().iter().map(|f| DfExpr::Column(Column::new(Some(qualifier.clone()), f.name().clone()))).collect();
        let plan = LogicalPlanBuilder::scan(qualifier, provider_as_source(provider), None)?.build()?;
        Ok(Lowered { plan, columns })
    }
}

/// About how many rows an access reads; for unique keys, how many at most.
pub(in crate::df) fn rows_found(found: &IndexAccess, filter: &Expr, table: &Table, columns: &[usize], cx: &mut dyn EvalContext) -> f64 {
    if found.unique { found.ranges.len() as f64 } else { rows_of(found, filter, table, columns, cx).max(1.0) }
}

/// By the histograms of its columns if all have one, or by the index itself if its ranges are few.
fn rows_of(found: &IndexAccess, filter: &Expr, table: &Table, columns: &[usize], cx: &mut dyn EvalContext) -> f64 {
    let (def, total) = (table.def(), table.row_count_estimate().unwrap_or(0) as f64);
    let parts = def.indexes[found.index].parts.iter().take(found.matched);
    let known: Vec<Option<f64>> = parts.map(|part| column_share(filter, table, columns, part.column, cx)).collect();
    if known.contains(&None)
        && let Some(rows) = key_ranges(found, def, cx).ok().and_then(|ranges| rows_in_ranges(table, found.index, &ranges))
    {
        return rows as f64;
    }
    let equal_parts = found.ranges.iter().map(|r| r.prefix.len()).min().unwrap_or(0);
    // Without a histogram a range is taken for a third of its parent, an equality for a tenth.
    let guess = |part: usize| if part < equal_parts { 0.1 } else { 0.33 };
    let share: f64 = known.iter().enumerate().map(|(part, share)| share.unwrap_or_else(|| guess(part))).product();
    // A histogram has counted all ranges of its column.
    total * if known.iter().any(Option::is_some) { share } else { share * found.ranges.len() as f64 }
}

pub(in crate::df) fn schema(names: &[String], types: &[(ColumnType, bool)]) -> SchemaRef {
    Arc::new(Schema::new(names.iter().zip(types).map(|(name, (ty, nullable))| ArrowField::new(name, data_type(ty), *nullable)).collect::<Vec<_>>()))
}

fn memory_table(schema: SchemaRef, types: &[(ColumnType, bool)], rows: &[Vec<Value>]) -> Result<Arc<dyn TableProvider>> {
    let arrays = types
        .iter()
        .enumerate()
        .map(|(i, (ty, _))| {
            let mut builder = ColumnBuilder::new(ty, rows.len());
            rows.iter().for_each(|row| builder.push(&row[i]));
            builder.finish()
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}
