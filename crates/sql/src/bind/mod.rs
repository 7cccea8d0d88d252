//! The binder: from syntax to a bound plan, with MySQL's name resolution and typing. See `README.md`.

mod context;
mod dml;

pub use context::{BindContext, TableSource};
pub use dml::{AssignedValue, BoundDelete, BoundInsert, BoundLoad, BoundLoadTarget, BoundSource, BoundUpdate, MultiUpdate, ROW_ID, SingleDelete, SingleUpdate, UpdateTarget};

use highkey_table::TableDef;
use highkey_types::{Collation, ColumnType, MySqlError};

use crate::parse::ast;
use crate::plan::{BoundQuery, Expr, Field};

/// Binds a query.
pub fn bind_query(query: &ast::Query, cx: &dyn BindContext) -> Result<BoundQuery, MySqlError> {
    let _ = (query, cx);
    unimplemented!()
}

/// Binds INSERT and REPLACE.
pub fn bind_insert(insert: &ast::Insert, cx: &dyn BindContext) -> Result<BoundInsert, MySqlError> {
    let _ = (insert, cx);
    unimplemented!()
}

/// Binds UPDATE.
pub fn bind_update(update: &ast::Update, cx: &dyn BindContext) -> Result<BoundUpdate, MySqlError> {
    let _ = (update, cx);
    unimplemented!()
}

/// Binds DELETE.
pub fn bind_delete(delete: &ast::Delete, cx: &dyn BindContext) -> Result<BoundDelete, MySqlError> {
    let _ = (delete, cx);
    unimplemented!()
}

/// Binds LOAD DATA.
pub fn bind_load(load: &ast::LoadData, cx: &dyn BindContext) -> Result<BoundLoad, MySqlError> {
    let _ = (load, cx);
    unimplemented!()
}

/// Binds an expression that may not name columns (SET, KILL, DO, DEFAULT literals).
pub fn bind_constant(expr: &ast::Expr, cx: &dyn BindContext) -> Result<Expr, MySqlError> {
    let _ = (expr, cx);
    unimplemented!()
}

/// Binds an expression over a table's columns in definition order (generated columns, CHECK, expression defaults).
pub fn bind_table_expr(expr: &ast::Expr, table: &TableDef, cx: &dyn BindContext) -> Result<Expr, MySqlError> {
    let _ = (expr, table, cx);
    unimplemented!()
}

/// Binds an expression over `fields` (SHOW … WHERE).
pub fn bind_fields_expr(expr: &ast::Expr, fields: &[Field], cx: &dyn BindContext) -> Result<Expr, MySqlError> {
    let _ = (expr, fields, cx);
    unimplemented!()
}

/// The expressions that a table's definition holds as text, bound over its columns in definition order.
/// Keep it per table id and definition version.
#[derive(Debug, Clone)]
pub struct TableExprs {
    /// For each column, its expression default.
    pub defaults: Vec<Option<Expr>>,
    /// For each column, its generation expression. Evaluate in column order.
    pub generated: Vec<Option<Expr>>,
    /// Names and conditions of the enforced CHECKs.
    pub checks: Vec<(highkey_types::Str, Expr)>,
}

/// Binds what `table` holds as text.
pub fn bind_table_exprs(table: &TableDef, cx: &dyn BindContext) -> Result<TableExprs, MySqlError> {
    let _ = (table, cx);
    unimplemented!()
}

/// The column type that a written type means in a table with the default collation `default`.
pub fn resolve_type(ty: &ast::DataType, default: &'static Collation, column: &str) -> Result<ColumnType, MySqlError> {
    let _ = (ty, default, column);
    unimplemented!()
}
