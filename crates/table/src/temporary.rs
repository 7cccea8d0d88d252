//! Temporary tables: one session's own, in no catalog. The session knows them by name; here they are made, changed and dropped.
//!
//! Their trees are ordinary ones, so rows obey transactions as any rows do. Each tree is entered in the catalog's tree (`keys::temporary`) by the transaction
//! that makes it and taken out by the one that drops it: what is there at an open is of sessions that are gone.
//!
//! Nobody else has a name for such a table, so there is nothing to lock and nothing to publish.

use std::sync::Arc;

use highkey_storage::{Isolation, Txn};
use highkey_types::MySqlError;

use crate::catalog::keys;
use crate::database::Database;
use crate::ddl::{DdlContext, define, drop_trees, make_trees, next_definition, refuse_system_schema};
use crate::def::{IndexKind, TableDef, TableId, TableSpec};
use crate::error;
use crate::high_water;
use crate::metadata_lock::MetadataLock;
use crate::table::{Table, TableState};

impl Database {
    /// Makes a temporary table. Whether the session has one of that name already is its own business. Errors: 1049, 1215, and those of the definition, as
    /// `create_table`.
    pub fn create_temporary_table(&self, cx: &DdlContext, wanted: &TableSpec) -> Result<Arc<Table>, MySqlError> {
        self.check_temporary(wanted)?;
        let mut def = define(wanted)?;
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        make_trees(&mut txn, &mut def)?;
        def.id = TableId(u64::from(def.indexes[0].id.0));
        self.note_temporary_trees(&mut txn, &def)?;
        cx.commit_unlogged(txn)?;
        let next_auto = wanted.auto_increment.unwrap_or(1).max(1);
        let state = TableState::temporary(self.engine(), self.catalog_index(), def.id, next_auto);
        state.set_rows(0);
        Ok(self.temporary_table(def, Arc::new(state)))
    }

    /// Error 1049 for a schema that is not there, 1215 for foreign keys, 1562 for partitions and 1796 for FULLTEXT indexes, which temporary tables have none of, 3552.
    pub(crate) fn check_temporary(&self, wanted: &TableSpec) -> Result<(), MySqlError> {
        refuse_system_schema(&wanted.schema)?;
        if self.catalog().schema(&wanted.schema).is_none() {
            return Err(error::unknown_schema(&wanted.schema));
        }
        if wanted.indexes.iter().any(|index| index.kind == IndexKind::FullText) {
            return Err(highkey_types::errors::innodb_no_ft_temp_table());
        }
        if wanted.partitioning.is_some() {
            return Err(highkey_types::errors::partition_no_temporary());
        }
        if wanted.foreign_keys.is_empty() { Ok(()) } else { Err(highkey_types::errors::cannot_add_foreign()) }
    }

    /// TRUNCATE TABLE of a temporary table, which no transaction uses: what it is from now on.
    pub fn truncate_temporary_table(&self, cx: &DdlContext, old: &Arc<Table>) -> Result<Arc<Table>, MySqlError> {
        let mut def = next_definition(&old.def);
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        drop_trees(&mut txn, &old.def)?;
        self.forget_temporary_trees(&mut txn, &old.def)?;
        make_trees(&mut txn, &mut def)?;
        self.note_temporary_trees(&mut txn, &def)?;
        cx.commit_unlogged(txn)?;
        old.state.auto_increment.reset(1);
        old.state.row_ids.reset(1);
        old.state.set_rows(0);
        *old.state.statistics.lock() = None;
        old.retire();
        Ok(self.temporary_table(def, old.state.clone()))
    }

    /// Drops temporary tables that no transaction has rows in any more. It is not waited for the disk: what a crash leaves, the next open drops.
    pub fn drop_temporary_tables(&self, tables: &[Arc<Table>]) -> Result<(), MySqlError> {
        if tables.is_empty() {
            return Ok(());
        }
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        for table in tables {
            drop_trees(&mut txn, &table.def)?;
            self.forget_temporary_trees(&mut txn, &table.def)?;
        }
        txn.commit(&[]).map(drop).map_err(|e| error::storage(e, "catalog"))?;
        tables.iter().for_each(|table| table.retire());
        Ok(())
    }

    pub(crate) fn temporary_table(&self, def: TableDef, state: Arc<TableState>) -> Arc<Table> {
        let lock = Arc::<MetadataLock>::default();
        Arc::new(Table::new(self.engine().clone(), def, state, lock, 0).into_temporary())
    }

    pub(crate) fn note_temporary_trees(&self, txn: &mut Txn, def: &TableDef) -> Result<(), MySqlError> {
        def.indexes.iter().try_for_each(|index| high_water::put(txn, self.catalog_index(), &keys::temporary(index.id), b""))
    }

    pub(crate) fn forget_temporary_trees(&self, txn: &mut Txn, def: &TableDef) -> Result<(), MySqlError> {
        def.indexes.iter().try_for_each(|index| high_water::remove(txn, self.catalog_index(), &keys::temporary(index.id)))
    }
}
