//! The binder: from syntax to a bound plan, with MySQL's name resolution and typing. See `README.md`.

mod aggregate;
mod binder;
mod call;
mod collation;
mod compare;
mod context;
mod dependence;
mod dml;
pub(crate) mod errors;
mod expr;
mod fold;
mod from;
mod full_text;
mod group;
mod hint_warnings;
mod hints;
mod insert;
mod join_order;
mod json;
mod json_table;
mod literal;
mod merge;
mod privileges;
mod query;
mod scope;
mod select;
mod stored;
mod subquery;
mod types;
mod update;
mod view;

pub use context::{BindContext, TableSource};
pub use dml::{
    AssignedValue, BoundDelete, BoundInsert, BoundLoad, BoundLoadTarget, BoundSource, BoundUpdate, MultiUpdate, ROW_KEY, RowValue, SingleDelete, SingleUpdate,
    UpdateTarget, ViewCheck, needs_row_key,
};
pub use view::BoundView;
pub(crate) use call::is_native_function;
pub(crate) use from::table_fields;
pub(crate) use literal::param_type;
pub(crate) use view::root;
pub(crate) use types::members;
pub use types::resolve_type;

use highkey_table::{ColumnDef, TableDef};
use highkey_types::{ColumnType, MySqlError};

use crate::parse::ast;
use crate::plan::{BoundQuery, Coercibility, Expr, Field};
use binder::Binder;
use scope::{Clause, FromScope, Scope};

/// Binds a query.
pub fn bind_query(query: &ast::Query, cx: &dyn BindContext) -> Result<BoundQuery, MySqlError> {
    Binder::new(cx).statement_query(query)
}

/// A query as EXPLAIN's note shows it. Error 1351 for one with variables or parameters.
pub fn explained(query: &ast::Query, cx: &dyn BindContext) -> Result<String, MySqlError> {
    Binder::new(cx).explained(query)
}

/// Binds INSERT and REPLACE.
pub fn bind_insert(insert: &ast::Insert, cx: &dyn BindContext) -> Result<BoundInsert, MySqlError> {
    Binder::new(cx).insert(insert)
}

/// Binds UPDATE.
pub fn bind_update(update: &ast::Update, cx: &dyn BindContext) -> Result<BoundUpdate, MySqlError> {
    Binder::new(cx).update(update)
}

/// Binds DELETE.
pub fn bind_delete(delete: &ast::Delete, cx: &dyn BindContext) -> Result<BoundDelete, MySqlError> {
    Binder::new(cx).delete(delete)
}

/// Binds the query of CREATE VIEW or ALTER VIEW; `schema` is the view's.
pub fn bind_view(view: &ast::CreateView, schema: &highkey_types::Str, cx: &dyn BindContext) -> Result<BoundView, MySqlError> {
    Binder::new(cx).new_view(view, schema)
}

/// Binds `SELECT * FROM view`.
pub fn bind_view_columns(view: &std::sync::Arc<highkey_table::View>, cx: &dyn BindContext) -> Result<(crate::plan::Rel, Vec<std::sync::Arc<highkey_table::View>>), MySqlError> {
    let mut binder = Binder::new(cx);
    let rel = binder.view_rel(view, &view.def().name, &[])?;
    Ok((rel, binder.views))
}

/// Binds LOAD DATA.
pub fn bind_load(load: &ast::LoadData, cx: &dyn BindContext) -> Result<BoundLoad, MySqlError> {
    Binder::new(cx).load(load)
}

/// Binds an expression that may not name columns (SET, KILL, DO).
pub fn bind_constant(expr: &ast::Expr, cx: &dyn BindContext) -> Result<Expr, MySqlError> {
    bind_fields_expr(expr, &[], false, cx)
}

/// Binds the DEFAULT literal of a column of this type.
pub fn bind_default(literal: &ast::Expr, ty: &ColumnType, cx: &dyn BindContext) -> Result<Expr, MySqlError> {
    let bound = bind_fields_expr(literal, &[], ty.is_number(), cx)?;
    Ok(if ty.is_binary() { merge::as_bytes(bound, &fold::Folder::new(cx)) } else { bound })
}

/// Binds an expression over a table's columns in definition order (generated columns, CHECK, expression defaults). `number` as for `bind_fields_expr`.
pub fn bind_table_expr(expr: &ast::Expr, table: &TableDef, number: bool, cx: &dyn BindContext) -> Result<Expr, MySqlError> {
    bind_over(expr, &table_fields(table, &table.name), number, true, cx)
}

/// Binds an expression over `fields` (SHOW … WHERE). `number`: one that is nothing but a hexadecimal or bit literal is a number, not bytes; so it is in
/// conditions and for columns of numbers.
pub fn bind_fields_expr(expr: &ast::Expr, fields: &[Field], number: bool, cx: &dyn BindContext) -> Result<Expr, MySqlError> {
    bind_over(expr, fields, number, false, cx)
}

/// `trusted`: it is part of a definition, which who uses the table need not be allowed to read.
fn bind_over(expr: &ast::Expr, fields: &[Field], number: bool, trusted: bool, cx: &dyn BindContext) -> Result<Expr, MySqlError> {
    let scope = Scope { clause: Some(Clause::Where), ..Scope::new(FromScope::of(fields.to_vec())) };
    let mut binder = Binder::new(cx);
    binder.trusted = trusted;
    binder.within(scope, |binder| if number { binder.operand(expr) } else { binder.expr(expr) }).map(|(bound, _)| bound)
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
    let bind = |text: &str, number: bool| bind_table_expr(&crate::parse::parse_expr(text)?, table, number, cx);
    // Literals have no character set of their own here: theirs is that of whoever binds the definition, so it must not matter.
    let bind_value = |text: &str, column: &ColumnDef| {
        let bound = bind(text, column.ty.is_number())?;
        let recoded = column.ty.is_binary() && bound.ty.coercibility < Coercibility::Coercible;
        Ok::<Expr, MySqlError>(if recoded { merge::as_bytes(bound, &fold::Folder::new(cx)) } else { bound })
    };
    let mut exprs = TableExprs { defaults: Vec::new(), generated: Vec::new(), checks: Vec::new() };
    for column in &table.columns {
        exprs.defaults.push(match &column.default {
            highkey_table::Default::Expr(text) => Some(bind_value(text, column)?),
            _ => None,
        });
        exprs.generated.push(column.generated.as_ref().map(|g| bind_value(&g.expr, column)).transpose()?);
    }
    for check in table.checks.iter().filter(|c| c.enforced) {
        exprs.checks.push((check.name.clone(), bind(&check.expr, true)?));
    }
    Ok(exprs)
}

#[cfg(test)]
mod tests;
