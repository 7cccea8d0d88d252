//! JSON_TABLE().

use std::sync::Arc;

use highkey_types::json::{self, Path};
use highkey_types::{Collation, ColumnType, Str, StoreContext, Value, errors};

use super::binder::{Binder, Result};
use super::scope::{Clause, Scope};
use super::types::resolve_type;
use crate::functions::{invalid_json, json_table_value};
use crate::parse::ast;
use crate::plan::{ExprType, Field, JsonColumn, JsonOtherwise, JsonRows, JsonSource, Rel, RelKind};

/// NESTED PATHs of one table.
const MOST_NESTED: usize = 16;

impl Binder<'_> {
    /// JSON_TABLE: its document is an expression over no row of its own.
    pub fn json_table(&mut self, table: &ast::JsonTable) -> Result<Rel> {
        let clause = Some(Clause::TableFunction);
        let scope = Scope { clause, ..Scope::default() };
        let (document, _) = self.lateral(clause, |binder| binder.within(scope, |binder| binder.expr(&table.document)))?;
        let nested = count_nested(&table.columns);
        if nested > MOST_NESTED {
            return Err(errors::jt_max_nested_path(MOST_NESTED, &table.alias));
        }
        let mut fields: Vec<Field> = Vec::new();
        let rows = self.json_rows(&table.path, &table.columns, &mut fields)?;
        let alias = Str::from(table.alias.as_str());
        for (i, field) in fields.iter().enumerate() {
            if fields[..i].iter().any(|before| before.name == field.name) {
                return Err(super::errors::duplicate_column(&field.name));
            }
        }
        for field in &mut fields {
            field.table = alias.clone();
            field.org_table = alias.clone();
            field.org_name = field.name.clone();
        }
        Ok(Rel { kind: RelKind::JsonTable { rows: Arc::new(rows), document }, fields })
    }

    /// Adds the columns to `fields`.
    fn json_rows(&self, path: &str, columns: &[ast::JsonTableColumn], fields: &mut Vec<Field>) -> Result<JsonRows> {
        let mut rows = JsonRows { path: json_path(path)?, columns: Vec::new(), nested: Vec::new() };
        for column in columns {
            let (name, ty, source) = match column {
                ast::JsonTableColumn::Nested { path, columns } => {
                    rows.nested.push(self.json_rows(path, columns, fields)?);
                    continue;
                }
                ast::JsonTableColumn::Ordinality { name } => (name, ColumnType::ubigint(), JsonSource::Ordinality),
                ast::JsonTableColumn::Exists { name, ty, path, .. } => {
                    let ty = resolve_type(ty, Collation::utf8mb4(), self.cx.utf8mb4_collation(), name)?;
                    (name, ty.clone(), JsonSource::Exists { path: json_path(path)?, ty })
                }
                ast::JsonTableColumn::Path { name, ty, path, on_empty, on_error, .. } => {
                    let ty = resolve_type(ty, Collation::utf8mb4(), self.cx.utf8mb4_collation(), name)?;
                    let on_empty = self.json_otherwise(on_empty.as_ref(), &ty, name)?;
                    let on_error = self.json_otherwise(on_error.as_ref(), &ty, name)?;
                    (name, ty.clone(), JsonSource::Path { path: json_path(path)?, ty, on_empty, on_error })
                }
            };
            rows.columns.push(JsonColumn { output: fields.len(), name: Str::from(name.as_str()), source });
            fields.push(Field::computed(name.as_str(), ExprType::column(ty, true)));
        }
        Ok(rows)
    }

    fn json_otherwise(&self, otherwise: Option<&ast::JsonTableOtherwise>, ty: &ColumnType, column: &str) -> Result<JsonOtherwise> {
        Ok(match otherwise {
            None | Some(ast::JsonTableOtherwise::Null) => JsonOtherwise::Null,
            Some(ast::JsonTableOtherwise::Error) => JsonOtherwise::Error,
            Some(ast::JsonTableOtherwise::Default(text)) => {
                let value = json::parse(text).map_err(|reason| invalid_json(reason, 1, "JSON_TABLE"))?;
                let mut notes = Vec::new();
                // No value of a document is a time of day: it need not know what day it is.
                let mut cx = StoreContext {
                    strict: true,
                    ignore: false,
                    mode: self.cx.sql_mode(),
                    time_zone: self.cx.time_zone(),
                    now_micros: 0,
                    row: 1,
                    warnings: &mut notes,
                };
                let stored: Result<Value> = json_table_value(&value, ty, column, &mut cx);
                JsonOtherwise::Default(stored.map_err(|_| errors::invalid_default(column))?)
            }
        })
    }
}

fn json_path(text: &str) -> Result<Path> {
    Path::parse(text).map_err(errors::invalid_json_path)
}

fn count_nested(columns: &[ast::JsonTableColumn]) -> usize {
    let nested = |column: &ast::JsonTableColumn| match column {
        ast::JsonTableColumn::Nested { columns, .. } => 1 + count_nested(columns),
        _ => 0,
    };
    columns.iter().map(nested).sum()
}
