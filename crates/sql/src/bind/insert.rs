//! INSERT, REPLACE and LOAD DATA.

use highkey_table::{Table, TableDef};
use highkey_types::{ColumnType, MySqlError, Str};

use super::binder::{Binder, Result};
use super::dml::{AssignedValue, BoundInsert, BoundLoad, BoundLoadTarget, BoundSource};
use super::errors;
use super::from::table_fields;
use super::scope::{Clause, FromScope, Scope, same_name};
use crate::parse::ast::{self, ColumnRef, ExprKind as Ast, InsertSource, LoadTarget};

impl Binder<'_> {
    pub fn insert(&mut self, insert: &ast::Insert) -> Result<BoundInsert> {
        let table = self.target_table(&insert.table)?;
        if !insert.partitions.is_empty() {
            return Err(MySqlError::with_message(1747, "PARTITION () clause on non partitioned table"));
        }
        let def = table.def().clone();
        let columns = target_columns(insert, &def)?;
        let source = match &insert.source {
            InsertSource::Values(rows) => {
                let scope = Scope { clause: Some(Clause::Values), ..Scope::new(FromScope::of(table_fields(&def, &def.name))) };
                let (rows, _) = self.within(scope, |binder| binder.insert_rows(rows, &columns, &def))?;
                BoundSource::Rows(rows)
            }
            InsertSource::Query(query) => {
                let query = self.statement_query(query)?;
                if query.rel.fields.len() != columns.len() {
                    return Err(count_mismatch(1));
                }
                BoundSource::Query(Box::new(query))
            }
        };
        // INSERT INTO t VALUES () means a row of defaults whatever the column list.
        let on_duplicate = self.on_duplicate(insert, &table)?;
        Ok(BoundInsert { table, replace: insert.replace, ignore: insert.ignore, columns, source, on_duplicate, hints: super::hints::hints(&insert.hints) })
    }

    fn insert_rows(&mut self, rows: &[Vec<ast::Expr>], columns: &[usize], def: &TableDef) -> Result<Vec<Vec<AssignedValue>>> {
        let mut bound = Vec::with_capacity(rows.len());
        for (i, row) in rows.iter().enumerate() {
            if row.is_empty() {
                bound.push(columns.iter().map(|_| AssignedValue::Default).collect());
                continue;
            }
            if row.len() != columns.len() {
                return Err(count_mismatch(i + 1));
            }
            let values = row.iter().zip(columns).map(|(e, c)| self.assigned(e, def, *c)).collect::<Result<Vec<_>>>()?;
            bound.push(values);
        }
        Ok(bound)
    }

    /// A value for a column: DEFAULT, or an expression; hexadecimal literals are numbers for numeric columns.
    pub fn assigned(&mut self, expr: &ast::Expr, def: &TableDef, column: usize) -> Result<AssignedValue> {
        let target = &def.columns[column];
        let value = match &expr.kind {
            Ast::Default(None) => return Ok(AssignedValue::Default),
            Ast::Default(Some(name)) => {
                let other = def.column(&name.column).ok_or_else(|| errors::unknown_column(&name.to_string(), "field list"))?;
                if other == column {
                    return Ok(AssignedValue::Default);
                }
                self.default_value(def, other)?
            }
            Ast::Literal(literal) if wants_number(&target.ty) => match self.numeric_literal(literal) {
                Some(number) => number,
                None => self.expr(expr)?,
            },
            _ => self.expr(expr)?,
        };
        if target.generated.is_some() {
            return Err(MySqlError::with_message(
                3105,
                format!("The value specified for generated column '{}' in table '{}' is not allowed.", target.name, def.name),
            ));
        }
        Ok(AssignedValue::Expr(value))
    }

    /// DEFAULT(column) as an expression.
    fn default_value(&mut self, def: &TableDef, column: usize) -> Result<crate::plan::Expr> {
        use crate::plan::{Expr, ExprType};
        let target = &def.columns[column];
        let ty = ExprType::column(target.ty.clone(), target.nullable);
        match &target.default {
            highkey_table::Default::Literal(value) => Ok(Expr::literal(value.clone(), ty)),
            highkey_table::Default::Expr(text) => self.expr(&crate::parse::parse_expr(text)?),
            highkey_table::Default::CurrentTimestamp(fsp) => {
                self.call(crate::functions::FuncId::Now, vec![Expr::int(i64::from(*fsp))])
            }
            highkey_table::Default::None if target.nullable => Ok(Expr { ty, ..Expr::null() }),
            highkey_table::Default::None => Err(MySqlError::with_message(1364, format!("Field '{}' doesn't have a default value", target.name))),
        }
    }

    /// ON DUPLICATE KEY UPDATE over the existing row followed by the proposed one.
    fn on_duplicate(&mut self, insert: &ast::Insert, table: &Table) -> Result<Vec<(usize, AssignedValue)>> {
        if insert.on_duplicate.is_empty() {
            return Ok(Vec::new());
        }
        let def = table.def();
        let width = def.columns.len();
        let mut fields = table_fields(def, &def.name);
        let (alias, names) = match &insert.row_alias {
            Some((alias, names)) => (alias.as_str(), names.as_slice()),
            None => ("", [].as_slice()),
        };
        let mut proposed = table_fields(def, alias);
        if !names.is_empty() {
            let targets = target_columns(insert, def)?;
            if names.len() != targets.len() {
                return Err(MySqlError::with_message(1353, "Column list of the row alias does not match"));
            }
            for (name, column) in names.iter().zip(targets) {
                proposed[column].name = Str::from(name.as_str());
            }
        }
        fields.extend(proposed);
        let hidden = if insert.row_alias.is_some() { Vec::new() } else { (width..2 * width).collect() };
        let from = FromScope { star: (0..2 * width).collect(), fields, hidden };
        let scope = Scope { clause: Some(Clause::Values), values_base: Some(width), ..Scope::new(from) };
        let (bound, _) = self.within(scope, |binder| {
            let mut bound = Vec::new();
            for assignment in &insert.on_duplicate {
                let column = assigned_column(def, &assignment.column)?;
                bound.push((column, binder.assigned(&assignment.value, def, column)?));
            }
            Ok(bound)
        })?;
        Ok(bound)
    }

    pub fn load(&mut self, load: &ast::LoadData) -> Result<BoundLoad> {
        let table = self.target_table(&load.table)?;
        let def = table.def().clone();
        let targets = if load.targets.is_empty() {
            let all = def.columns.iter().enumerate().filter(|(_, c)| !c.invisible && c.generated.is_none());
            all.map(|(i, _)| BoundLoadTarget::Column(i)).collect()
        } else {
            load.targets
                .iter()
                .map(|target| match target {
                    LoadTarget::Column(name) => {
                        let column = def.column(name).ok_or_else(|| errors::unknown_column(name, "field list"))?;
                        Ok(BoundLoadTarget::Column(column))
                    }
                    LoadTarget::Variable(name) => Ok(BoundLoadTarget::Variable(Str::from(name.to_lowercase()))),
                })
                .collect::<Result<Vec<_>>>()?
        };
        if load.format.is_fixed() {
            let is_long = |t: &BoundLoadTarget| matches!(t, BoundLoadTarget::Column(c) if def.columns[*c].ty.is_blob());
            if load.format.line_terminator.is_empty() && targets.iter().any(is_long) {
                return Err(errors::blobs_and_no_terminator());
            }
            if targets.iter().any(|t| matches!(t, BoundLoadTarget::Variable(_))) {
                return Err(errors::fixed_rows_to_variable());
            }
        }
        if let Some(name) = &load.charset {
            super::collation::charset_by_name(name)?;
        }
        let scope = Scope { clause: Some(Clause::Values), ..Scope::new(FromScope::of(table_fields(&def, &def.name))) };
        let (assignments, _) = self.within(scope, |binder| {
            let mut bound = Vec::new();
            for assignment in &load.assignments {
                let column = assigned_column(&def, &assignment.column)?;
                bound.push((column, binder.assigned(&assignment.value, &def, column)?));
            }
            Ok(bound)
        })?;
        Ok(BoundLoad {
            table,
            local: load.local,
            path: load.path.clone(),
            duplicates: load.duplicates,
            charset: load.charset.clone(),
            format: load.format.clone(),
            ignore_lines: load.ignore_lines,
            targets,
            assignments,
        })
    }
}

/// Positions of the columns that an INSERT names, or of all visible ones.
fn target_columns(insert: &ast::Insert, def: &TableDef) -> Result<Vec<usize>> {
    let Some(names) = &insert.columns else {
        let empty = matches!(&insert.source, InsertSource::Values(rows) if rows.iter().all(Vec::is_empty));
        let visible = def.columns.iter().enumerate().filter(|(_, c)| !c.invisible);
        return Ok(if empty { Vec::new() } else { visible.map(|(i, _)| i).collect() });
    };
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = assigned_column(def, name)?;
        if columns.contains(&column) {
            return Err(MySqlError::with_message(1110, format!("Column '{}' specified twice", name.column)));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// The column that an assignment names.
pub(super) fn assigned_column(def: &TableDef, name: &ColumnRef) -> Result<usize> {
    let unknown = || errors::unknown_column(&name.to_string(), "field list");
    if let Some(table) = &name.table
        && !same_name(table, &def.name)
    {
        return Err(unknown());
    }
    def.column(&name.column).ok_or_else(unknown)
}

fn wants_number(ty: &ColumnType) -> bool {
    ty.is_number()
}

fn count_mismatch(row: usize) -> MySqlError {
    MySqlError::with_message(1136, format!("Column count doesn't match value count at row {row}"))
}
