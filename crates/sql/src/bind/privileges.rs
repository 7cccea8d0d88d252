//! What names of tables and columns ask of the account that they are looked up for: see `crate::privileges`.

use std::sync::Arc;

use highkey_table::{Privileges, Table, View, ViewDef};
use highkey_types::{MySqlError, Str};

use super::binder::{Binder, Result};
use super::errors;
use super::scope::{same_name, same_table};
use super::view::invalid_view;
use crate::parse::ast::{self, ColumnRef, ObjectName};
use crate::plan::Field;
use crate::privileges::Access;

/// A view that is given with its base tables, because a statement may change rows through it.
pub(super) struct Below {
    /// Its name in the statement.
    pub alias: Str,
    pub view: Arc<View>,
    /// What the view's definer, or its invoker, may do with everything that it reads.
    pub granted: Privileges,
    /// And with what each of its columns is, if that is a column.
    pub columns: Vec<(Str, Privileges)>,
}

impl Below {
    fn column(&self, name: &str) -> Privileges {
        let columns = self.columns.iter().filter(|(column, _)| same_name(column, name));
        columns.fold(self.granted, |all, (_, granted)| all.and(*granted))
    }

    fn any_column(&self) -> Privileges {
        self.columns.iter().fold(self.granted, |all, (_, granted)| all.and(*granted))
    }
}

fn no_explanation() -> MySqlError {
    MySqlError::with_message(1345, "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table")
}

impl Binder<'_> {
    fn access(&self) -> Option<&Access> {
        if self.trusted { None } else { self.cx.access() }
    }

    pub fn schema_named(&self, name: &ObjectName) -> Result<Str> {
        match &name.schema {
            Some(schema) => Ok(Str::from(schema.as_str())),
            None => self.cx.current_schema().ok_or_else(errors::no_database),
        }
    }

    /// The name is a temporary table's: whoever may make one may do everything with it.
    pub fn is_temporary(&self, schema: &str, table: &str) -> bool {
        self.cx.temporary_table(schema, table).is_some()
    }

    /// A table or view in FROM: error 1142, be it there or not, if nothing of it may be read.
    pub fn check_read(&mut self, name: &ObjectName, alias: &str, locks: &[ast::LockClause]) -> Result<()> {
        if name.schema.is_none() && self.ctes.iter().any(|c| same_name(&c.name, &name.name)) {
            return Ok(());
        }
        self.check_explained_below(name)?;
        let Some(access) = self.access() else { return Ok(()) };
        let schema = self.schema_named(name)?;
        if self.is_temporary(&schema, &name.name) {
            return Ok(());
        }
        if !access.any_column(&schema, &name.name).has_any(self.readable) {
            access.check_any_column(Privileges::SELECT, &schema, &name.name)?;
        }
        let table = access.table(&schema, &name.name);
        let locked = !self.exposing && locks.iter().any(|lock| lock.of.is_empty() || lock.of.iter().any(|of| same_table(of, alias)));
        if locked && !table.has_any(Privileges::UPDATE.and(Privileges::DELETE).and(Privileges::LOCK_TABLES)) {
            return Err(access.table_denied("SELECT with locking clause", &name.name));
        }
        if self.exposing {
            self.granted = self.granted.within(table);
        }
        Ok(())
    }

    /// What a statement changes: error 1142, be it there or not, if it has one of `wanted` for no column of it.
    pub fn check_change(&self, wanted: Privileges, name: &ObjectName) -> Result<()> {
        let Some(access) = self.access() else { return Ok(()) };
        let schema = self.schema_named(name)?;
        if self.is_temporary(&schema, &name.name) { Ok(()) } else { access.check_any_column(wanted, &schema, &name.name) }
    }

    /// All columns of a table that is changed: error 1142.
    pub fn check_all_columns(&self, wanted: Privileges, name: &ObjectName) -> Result<()> {
        let Some(access) = self.access() else { return Ok(()) };
        let schema = self.schema_named(name)?;
        if self.is_temporary(&schema, &name.name) { Ok(()) } else { access.check_table(wanted, &schema, &name.name) }
    }

    /// A column of a table or a view that grants are made on.
    fn asks(&self, field: &Field) -> bool {
        !field.schema.is_empty() && !self.is_temporary(&field.schema, &field.org_table)
    }

    /// A column of FROM: error 1143. Those of derived tables have been checked where they are made.
    pub fn check_field(&self, wanted: Privileges, field: &Field) -> Result<()> {
        match self.access() {
            Some(access) if self.asks(field) => access.check_column(wanted, &field.schema, &field.org_table, &field.org_name)?,
            _ => {}
        }
        if wanted == Privileges::SELECT { Ok(()) } else { self.check_column_through(wanted, field) }
    }

    /// What is behind a column of a view that is written: error 1356, if the one that the view works for may not do so.
    pub fn check_column_through(&self, wanted: Privileges, field: &Field) -> Result<()> {
        match self.below.iter().find(|below| same_table(&below.alias, &field.table)) {
            Some(below) if !below.column(&field.name).has(wanted) => Err(invalid_view(below.view.def())),
            _ => Ok(()),
        }
    }

    /// What whoever a view works for may do with a column that it reads, be that a table's or another view's.
    pub fn granted_on(&self, field: &Field) -> Privileges {
        let own = match self.access() {
            Some(access) if self.asks(field) => access.column(&field.schema, &field.org_table, &field.name),
            _ => Privileges::ALL,
        };
        match self.below.iter().find(|below| same_table(&below.alias, &field.table)) {
            Some(below) => own.within(below.column(&field.name)),
            None => own,
        }
    }

    /// The columns of `*`: error 1142.
    pub fn check_star(&self, fields: &[Field]) -> Result<()> {
        let Some(access) = self.access() else { return Ok(()) };
        for field in fields.iter().filter(|field| self.asks(field)) {
            if !access.column(&field.schema, &field.org_table, &field.org_name).has(Privileges::SELECT) {
                return Err(access.table_denied("SELECT", &field.org_table));
            }
        }
        Ok(())
    }

    fn explainer(&self) -> Option<&Access> {
        if self.trusted { None } else { self.cx.explainer() }
    }

    /// EXPLAIN shows what a view reads to who may see its text: error 1345.
    pub fn check_explained(&self, view: &ViewDef) -> Result<()> {
        match self.explainer() {
            Some(access) if !access.table(&view.schema, &view.name).has(Privileges::SHOW_VIEW) => Err(no_explanation()),
            _ => Ok(()),
        }
    }

    /// And who may read that too, whoever the view works for: error 1345. How many rows there are is told with it.
    fn check_explained_below(&self, name: &ObjectName) -> Result<()> {
        let Some(access) = self.explainer().filter(|_| !self.expanding.is_empty()) else { return Ok(()) };
        let schema = self.schema_named(name)?;
        if access.any_column(&schema, &name.name).has(Privileges::SELECT) { Ok(()) } else { Err(no_explanation()) }
    }

    /// A name that no table of FROM has: error 1143 beside a table of which not all may be read, as for a column that is there.
    pub fn check_unknown(&self, name: &ColumnRef) -> Result<()> {
        let (Some(access), Some(scope)) = (self.access(), self.scopes.last()) else { return Ok(()) };
        let hides = |field: &&Field| {
            let named = name.table.as_ref().is_none_or(|table| same_table(&field.table, table));
            named && self.asks(field) && !access.table(&field.schema, &field.org_table).has(Privileges::SELECT)
        };
        match scope.from.fields.iter().find(hides) {
            Some(field) => access.check_column(Privileges::SELECT, &field.schema, &field.org_table, &name.column),
            None => Ok(()),
        }
    }

    /// What is behind a view that rows are changed through, by its name in the statement: error 1356, if the one that the view works for may do so with nothing of it.
    pub fn check_through(&self, wanted: Privileges, alias: &str) -> Result<()> {
        match self.below.iter().find(|below| same_table(&below.alias, alias)) {
            Some(below) if !below.any_column().has(wanted) => Err(invalid_view(below.view.def())),
            _ => Ok(()),
        }
    }

    /// A table that a statement over several tables changes, itself or through the view of that name: errors 1142 and 1356.
    pub fn check_target(&self, wanted: Privileges, alias: &str, table: &Table) -> Result<()> {
        if let Some(access) = self.access() {
            match self.below.iter().find(|below| same_table(&below.alias, alias)) {
                Some(below) => access.check_any_column(wanted, &below.view.def().schema, &below.view.def().name)?,
                None if table.is_temporary() => {}
                None => access.check_any_column(wanted, &table.def().schema, &table.def().name)?,
            }
        }
        self.check_through(wanted, alias)
    }
}
