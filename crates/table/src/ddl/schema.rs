//! CREATE, ALTER and DROP DATABASE.

use std::sync::Arc;

use highkey_storage::{Isolation, Stage};
use highkey_types::MySqlError;

use super::DdlContext;
use crate::catalog::{keys, record};
use crate::database::Database;
use crate::def::{SchemaDef, is_system_schema};
use crate::error;
use crate::foreign::define;
use crate::high_water;
use crate::transaction::HeldLocks;

impl Database {
    /// Errors: 1007, 1059, 3552.
    pub async fn create_schema(self: &Arc<Self>, cx: &DdlContext, def: SchemaDef) -> Result<(), MySqlError> {
        super::spec::check_name(&def.name)?;
        if is_system_schema(&def.name) {
            return Err(error::schema_exists(&def.name));
        }
        // One that is there is there, whoever has it locked.
        if self.catalog().schema(&def.name).is_some() {
            return Err(error::schema_exists(&def.name));
        }
        let _locks = self.lock_schema(cx, &def.name).await?;
        if self.catalog().schema(&def.name).is_some() {
            return Err(error::schema_exists(&def.name));
        }
        self.store_schema(cx, def)
    }

    /// ALTER DATABASE. Errors: 1049, 3552.
    pub async fn alter_schema(self: &Arc<Self>, cx: &DdlContext, def: SchemaDef) -> Result<(), MySqlError> {
        if is_system_schema(&def.name) {
            return Err(error::system_schema(&def.name));
        }
        let _locks = self.lock_schema(cx, &def.name).await?;
        if self.catalog().schema(&def.name).is_none() {
            return Err(error::unknown_schema(&def.name));
        }
        self.store_schema(cx, def)
    }

    /// Drops the schema with its tables, views, routines and events; returns how many tables and views. Errors: 1008, 3552, 3730.
    pub async fn drop_schema(self: &Arc<Self>, cx: &DdlContext, name: &str) -> Result<u64, MySqlError> {
        if is_system_schema(name) {
            return Err(error::system_schema(name));
        }
        let mut locks = self.lock_schema(cx, name).await?;
        if self.catalog().schema(name).is_none() {
            return Err(error::no_schema_to_drop(name));
        }
        // Nobody makes tables in the schema any more; wait for those who use the ones that are there.
        loop {
            let catalog = self.catalog();
            let mut names: Vec<_> = catalog.tables(name).iter().map(|t| (t.def.schema.clone(), t.def.name.clone())).collect();
            names.extend(catalog.views(name).iter().map(|v| (v.def().schema.clone(), v.def().name.clone())));
            let related = self.catalog().related(&names);
            locks.acquire_exclusive(related.iter().cloned().collect(), cx.lock_wait_timeout, &cx.interrupt).await?;
            if self.catalog().related(&names).is_subset(&related) {
                break;
            }
        }
        let (tables, views) = (self.catalog().tables(name), self.catalog().views(name));
        define::check_dropped(cx, &tables)?;
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        for table in &tables {
            self.drop_records(&mut txn, table)?;
        }
        for view in &views {
            high_water::remove(&mut txn, self.catalog_index(), &keys::view(name, &view.def().name))?;
        }
        for routine in self.catalog().routines(name) {
            high_water::remove(&mut txn, self.catalog_index(), &keys::routine(name, routine.kind, &routine.name))?;
        }
        for event in self.catalog().events(name) {
            high_water::remove(&mut txn, self.catalog_index(), &keys::event(name, &event.name))?;
        }
        high_water::remove(&mut txn, self.catalog_index(), &keys::schema(name))?;
        cx.commit(self, txn)?;
        self.publish(|catalog, _| catalog.remove_schema(name));
        for table in &tables {
            table.retire();
        }
        views.iter().for_each(|view| view.retire());
        Ok((tables.len() + views.len()) as u64)
    }

    fn store_schema(&self, cx: &DdlContext, def: SchemaDef) -> Result<(), MySqlError> {
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::put(&mut txn, self.catalog_index(), &keys::schema(&def.name), &record::encode_schema(&def))?;
        cx.commit(self, txn)?;
        self.publish(|catalog, _| catalog.put_schema(def));
        Ok(())
    }

    async fn lock_schema(&self, cx: &DdlContext, name: &str) -> Result<HeldLocks, MySqlError> {
        let mut locks = self.ddl_locks(cx);
        cx.progress.enter(Stage::WaitingForMetadataLock, 0);
        locks.acquire_exclusive(vec![(name.into(), "".into())], cx.lock_wait_timeout, &cx.interrupt).await?;
        Ok(locks)
    }
}
