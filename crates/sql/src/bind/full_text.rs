//! MATCH … AGAINST: which FULLTEXT index it asks.

use std::sync::Arc;

use highkey_table::{IndexKind, Table};
use highkey_types::errors as mysql;

use super::TableSource;
use super::binder::{Binder, Result};
use super::errors;
use super::scope::Clause;
use crate::full_text::Search;
use crate::parse::ast::MatchCall;
use crate::plan::{Expr, ExprKind, ExprType, Field};

impl Binder<'_> {
    /// Errors: 1191 if no index has exactly these columns, 1210 for columns of several tables or of none, and for a search that is not constant.
    pub fn full_text(&mut self, call: &MatchCall) -> Result<Expr> {
        let mut columns = Vec::with_capacity(call.columns.len());
        let mut asked: Option<(Field, Arc<Table>)> = None;
        let mut positions = Vec::with_capacity(call.columns.len());
        for column in &call.columns {
            let bound = self.expr(column)?;
            let (field, table, position) = self.searched_column(&bound)?.ok_or_else(|| errors::wrong_arguments("MATCH"))?;
            if asked.as_ref().is_some_and(|(first, other)| first.table != field.table || first.schema != field.schema || other.id() != table.id()) {
                return Err(errors::wrong_arguments("MATCH"));
            }
            asked.get_or_insert((field, table));
            positions.push(position);
            columns.push(bound);
        }
        let query = self.expr(&call.query)?;
        let mut of_row = false;
        query.walk(&mut |e| of_row |= matches!(e.kind, ExprKind::Outer { .. }));
        if of_row || !query.is_known() {
            return Err(errors::wrong_arguments("AGAINST"));
        }
        let Some((_, table)) = asked else { return Err(errors::wrong_arguments("MATCH")) };
        let def = table.def();
        let index = def.indexes.iter().position(|index| {
            let has = |position: &usize| index.parts.iter().any(|part| part.column == *position);
            index.kind == IndexKind::FullText && !index.invisible && index.parts.len() == positions.len() && positions.iter().all(has)
        });
        let index = index.ok_or_else(mysql::ft_matching_key_not_found)?;
        // In the order of the index; a column that is named twice is not in it twice.
        let mut ordered = Vec::with_capacity(columns.len());
        for part in &def.indexes[index].parts {
            let place = positions.iter().position(|position| *position == part.column).ok_or_else(mysql::ft_matching_key_not_found)?;
            ordered.push(columns[place].clone());
        }
        let is_condition = matches!(self.scope().clause(), Clause::Where | Clause::On);
        let search = Arc::new(Search::new(table.clone(), index, call.mode, query, is_condition));
        Ok(Expr { kind: ExprKind::Match { search, columns: ordered }, ty: ExprType::double(true) })
    }

    /// The column of a base table that a bound column is, be it under a view's name.
    fn searched_column(&mut self, bound: &Expr) -> Result<Option<(Field, Arc<Table>, usize)>> {
        let (depth, index) = match bound.kind {
            ExprKind::Column(index) => (0, index),
            ExprKind::Outer { depth, index } => (depth, index),
            _ => return Ok(None),
        };
        let field = self.scopes.iter().rev().nth(depth).and_then(|scope| scope.from.fields.get(index).cloned());
        let Some(field) = field.filter(|field| !field.schema.is_empty()) else { return Ok(None) };
        let base = match self.source_of(&field.schema, &field.org_table)? {
            TableSource::Base(table) => table.def().column(&field.org_name).map(|position| (table, position)),
            TableSource::View(view) => self.base_column(&view, &field.org_name)?,
            TableSource::Virtual(_) => None,
        };
        Ok(base.map(|(table, position)| (field, table, position)))
    }
}
