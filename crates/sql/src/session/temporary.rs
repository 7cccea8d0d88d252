//! The session's temporary tables. A name is theirs before it is the catalog's, for this session alone; views never read them.
//!
//! A dropped one is out of the session's reach at once. Its trees go when the transaction is over that may have rows in them.

use std::sync::Arc;

use highkey_table::{Table, TableSpec};
use highkey_types::MySqlError;

use super::{Session, SessionState, error};
use crate::parse::ast::{ObjectName, Statement};

/// Shared by the copies of a session's state.
#[derive(Clone, Default)]
pub struct TemporaryTables {
    tables: Arc<Vec<Arc<Table>>>,
    version: u64,
}

impl TemporaryTables {
    pub fn find(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        self.tables.iter().find(|table| *table.def().name == *name && *table.def().schema == *schema)
    }

    /// Another number after each table that came, went or became another one: plans made under the same number mean the same tables.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A new one, or the next definition of one that is there.
    fn put(&mut self, table: Arc<Table>) {
        self.remove(&table);
        Arc::make_mut(&mut self.tables).push(table);
    }

    fn remove(&mut self, table: &Table) {
        self.version += 1;
        Arc::make_mut(&mut self.tables).retain(|other| other.id() != table.id());
    }

    fn take(&mut self) -> Vec<Arc<Table>> {
        self.version += 1;
        std::mem::take(Arc::make_mut(&mut self.tables))
    }
}

/// What a ROLLBACK of the transaction does not take back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptChanges {
    created: bool,
    dropped: bool,
}

impl SessionState {
    /// The base table that a name means: a temporary one of this session, or the catalog's. Errors 1049, 1146.
    pub(crate) fn base_table(&self, schema: &str, name: &str) -> Result<Arc<Table>, MySqlError> {
        match self.temporary.find(schema, name) {
            Some(table) => Ok(table.clone()),
            None => self.instance.database().catalog().table(schema, name),
        }
    }

    pub(crate) fn is_temporary(&self, name: &ObjectName) -> bool {
        self.schema_of(name.schema.as_deref()).is_ok_and(|schema| self.temporary.find(&schema, &name.name).is_some())
    }
}

impl Session {
    /// Makes a temporary table, which no rollback takes back.
    pub(crate) fn add_temporary_table(&mut self, spec: &TableSpec) -> Result<Arc<Table>, MySqlError> {
        let cx = self.unlogged_ddl_context();
        let table = self.state.instance.database().create_temporary_table(&cx, spec)?;
        self.state.temporary.put(table.clone());
        self.transaction.kept.created |= self.transaction.outlives_statements(self.state.config.autocommit);
        Ok(table)
    }

    /// DDL has made this of a temporary table.
    pub(crate) fn replace_temporary_table(&mut self, table: Arc<Table>) {
        self.state.temporary.put(table);
    }

    /// The name is free, and means the catalog's table again.
    pub(crate) fn remove_temporary_table(&mut self, table: Arc<Table>) {
        self.state.temporary.remove(&table);
        self.left_tables.push(table);
        self.transaction.kept.dropped |= self.transaction.outlives_statements(self.state.config.autocommit);
    }

    /// The session ends, or begins anew; it has no transaction any more.
    pub(super) fn drop_temporary_tables(&mut self) {
        self.left_tables.append(&mut self.state.temporary.take());
        self.drop_left_tables();
    }

    /// What has been dropped goes, unless the transaction may have rows in it.
    pub(super) fn drop_left_tables(&mut self) {
        if self.left_tables.is_empty() || self.transaction.current.is_some() {
            return;
        }
        let tables = std::mem::take(&mut self.left_tables);
        let instance = &self.state.instance;
        if let Err(error) = instance.database().drop_temporary_tables(&tables) {
            tracing::warn!(error = %error.message, "temporary tables could not be dropped; the next start drops them");
        }
        tables.iter().for_each(|table| instance.exprs().forget(table.id()));
    }

    /// After a rollback: warns of what it has not taken back.
    pub(super) fn warn_of_kept(&mut self, kept: KeptChanges) {
        if kept.created {
            self.state.push_warning(error::warning(1751, "The creation of some temporary tables could not be rolled back."));
        }
        if kept.dropped {
            self.state.push_warning(error::warning(1752, "Some temporary tables were dropped, but these operations could not be rolled back."));
        }
    }

    /// A definition of temporary tables alone: it has nothing to do with LOCK TABLES, the global read lock and servers that are read-only.
    pub(crate) fn defines_temporary(&self, statement: &Statement) -> bool {
        let own = |name: &ObjectName| self.state.is_temporary(name);
        match statement {
            Statement::DropTable(drop) => !drop.view && drop.names.iter().all(own),
            Statement::AlterTable(alter) => own(&alter.name),
            Statement::TruncateTable(name) => own(name),
            Statement::CreateIndex(create) => own(&create.table),
            Statement::DropIndex { table, .. } => own(table),
            _ => false,
        }
    }
}
