//! CREATE, DROP, TRUNCATE and RENAME TABLE.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use highkey_storage::{IndexId, Isolation, Txn};
use highkey_types::{MySqlError, Str, errors};

use super::{DdlContext, checks, spec};
use crate::catalog::{Catalog, keys, record, stored_record};
use crate::database::Database;
use crate::def::{TableDef, TableId, TableSpec, is_system_schema};
use crate::error;
use crate::foreign::define;
use crate::high_water;
use crate::metadata_lock::Name;
use crate::restored::{refuse_system_table, refuse_unless_restored};
use crate::table::{Table, TableState};
use crate::transaction::Transaction;
use crate::view::{View, ViewDef};

/// A table name: schema, table.
pub type TableName = Name;

impl Database {
    /// Errors: 1049, 1050, and those of the definition (1059 to 1075, 1089, 1113, 1117, 1118, 1170, 1280, 1821 to 1830, 3104, 3152, 3733,
    /// 3734, 3780, 3822).
    pub async fn create_table(self: &Arc<Self>, cx: &DdlContext, wanted: TableSpec) -> Result<Arc<Table>, MySqlError> {
        refuse_system_table(&wanted.schema, &wanted.name)?;
        let name = (wanted.schema.clone(), wanted.name.clone());
        let _locks = self.lock_related(cx, vec![name.clone()], &wanted.foreign_keys).await?;
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        let def = self.make_table(cx, &mut txn, &wanted)?;
        let next_auto = wanted.auto_increment.unwrap_or(1).max(1);
        if next_auto > 1 {
            self.write_counter(&mut txn, keys::auto_increment(def.id), next_auto)?;
        }
        cx.commit(self, txn)?;
        let state = Arc::new(TableState::new(self.engine(), self.catalog_index(), def.id, next_auto, 1));
        state.set_rows(0);
        self.publish(|catalog, epoch| catalog.put_table(self.new_table(def, state, epoch)));
        self.catalog().table(&name.0, &name.1)
    }

    /// The definition of a table that is not there yet, whose name the caller has locked: in the catalog's records, with empty trees.
    fn make_table(&self, cx: &DdlContext, txn: &mut Txn, wanted: &TableSpec) -> Result<TableDef, MySqlError> {
        let catalog = self.catalog();
        if catalog.schema(&wanted.schema).is_none() {
            return Err(error::unknown_schema(&wanted.schema));
        }
        if catalog.has(&wanted.schema, &wanted.name) {
            return Err(error::table_exists(&wanted.name));
        }
        let mut def = spec::define(wanted)?;
        define::check_created(&catalog, cx, &def)?;
        checks::check_names(&catalog, &def, None, &[])?;
        make_trees(txn, &mut def)?;
        // The number of a table's first tree is never used again, nor is the table's number then.
        def.id = TableId(u64::from(def.trees()[0].0.0));
        self.write_table(txn, &def)?;
        Ok(def)
    }

    /// Drops tables, all or none. With `if_exists` missing ones are returned, else they are error 1051. Error 3730 for one that another
    /// table references.
    pub async fn drop_tables(
        self: &Arc<Self>,
        cx: &DdlContext,
        names: &[TableName],
        if_exists: bool,
    ) -> Result<Vec<TableName>, MySqlError> {
        for (schema, name) in names {
            match if_exists {
                true => refuse_system_table(schema, name)?,
                false => refuse_unless_restored(&self.catalog(), schema, name)?,
            }
        }
        let _locks = self.lock_related(cx, names.to_vec(), &[]).await?;
        let catalog = self.catalog();
        let mut tables: Vec<Arc<Table>> = Vec::new();
        let mut missing = Vec::new();
        for (schema, name) in names {
            match catalog.find_table(schema, name) {
                Some(table) if tables.iter().any(|t| Arc::ptr_eq(t, &table)) => {
                    return Err(MySqlError::with_message(1066, format!("Not unique table/alias: '{name}'")));
                }
                Some(table) => tables.push(table),
                None => missing.push((schema.clone(), name.clone())),
            }
        }
        if !missing.is_empty() && !if_exists {
            let names: Vec<_> = missing.iter().map(|(schema, name)| format!("{schema}.{name}")).collect();
            return Err(error::unknown_tables(&names.join(",")));
        }
        define::check_dropped(cx, &tables)?;
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        for table in &tables {
            self.drop_records(&mut txn, table)?;
        }
        cx.commit(self, txn)?;
        self.publish(|catalog, _| {
            for table in &tables {
                catalog.remove_table(&table.def.schema, &table.def.name);
                table.retire();
            }
        });
        Ok(missing)
    }

    /// Empties a table by giving it new trees; AUTO_INCREMENT starts again at 1. Errors: 1146, 1701.
    pub async fn truncate_table(self: &Arc<Self>, cx: &DdlContext, schema: &str, name: &str) -> Result<(), MySqlError> {
        refuse_unless_restored(&self.catalog(), schema, name)?;
        let _locks = self.lock_related(cx, vec![(schema.into(), name.into())], &[]).await?;
        let old = self.catalog().table(schema, name)?;
        define::check_truncated(cx, &old)?;
        let mut def = next_definition(&old.def);
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        drop_trees(&mut txn, &old.def)?;
        make_trees(&mut txn, &mut def)?;
        self.write_table(&mut txn, &def)?;
        self.write_counter(&mut txn, keys::auto_increment(def.id), 1)?;
        self.write_counter(&mut txn, keys::row_id(def.id), 1)?;
        cx.commit(self, txn)?;
        old.state.auto_increment.reset(1);
        old.state.row_ids.reset(1);
        old.state.set_rows(0);
        *old.state.statistics.lock() = None;
        self.publish(|catalog, epoch| {
            let table = self.new_table(def, old.state.clone(), epoch);
            self.replace_table(catalog, &old, table);
        });
        Ok(())
    }

    /// RENAME TABLE of tables and views: renames from left to right, all or none; names may be exchanged through a third one.
    /// Foreign keys and triggers follow; views over what is renamed do not. Errors: 1049, 1050, 1146, 1435 (triggers stay in their schema), 1450, 1822, 1826, 3734, 3780, 3822.
    pub async fn rename_tables(
        self: &Arc<Self>,
        cx: &DdlContext,
        renames: &[(TableName, TableName)],
    ) -> Result<(), MySqlError> {
        for (from, to) in renames {
            refuse_system_schema(&from.0)?;
            refuse_system_schema(&to.0)?;
            spec::check_name(&to.1)?;
        }
        let names = renames.iter().flat_map(|(from, to)| [from.clone(), to.clone()]).collect();
        let _locks = self.lock_related(cx, names, &[]).await?;
        let catalog = self.catalog();
        // What each name stands for after the renames so far, where that differs from the catalog.
        let mut places: BTreeMap<TableName, Option<Arc<Table>>> = BTreeMap::new();
        let mut view_places: BTreeMap<TableName, Option<Arc<View>>> = BTreeMap::new();
        for (from, to) in renames {
            if catalog.schema(&to.0).is_none() {
                return Err(error::unknown_schema(&to.0));
            }
            let at = |name: &TableName| match places.get(name) {
                Some(place) => place.clone(),
                None => catalog.find_table(&name.0, &name.1),
            };
            let view_at = |name: &TableName| match view_places.get(name) {
                Some(place) => place.clone(),
                None => catalog.find_view(&name.0, &name.1),
            };
            if at(to).is_some() || view_at(to).is_some() {
                return Err(error::table_exists(&to.1));
            }
            if let Some(view) = view_at(from) {
                if from.0 != to.0 {
                    return Err(error::other_schema(&from.0, &to.0));
                }
                view_places.insert(from.clone(), None);
                view_places.insert(to.clone(), Some(view));
                continue;
            }
            let table = at(from).ok_or_else(|| error::no_such_table(&from.0, &from.1))?;
            if from.0 != to.0 && !table.def.triggers.is_empty() {
                return Err(errors::trg_in_wrong_schema());
            }
            places.insert(from.clone(), None);
            places.insert(to.clone(), Some(table));
        }
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        let mut renamed = Vec::new();
        for ((schema, name), table) in &places {
            let Some(table) = table else { continue };
            let mut def = next_definition(&table.def);
            (def.schema, def.name) = (schema.clone(), name.clone());
            checks::rename_checks(&mut def.checks, &table.def.name, name);
            renamed.push((table.clone(), def));
        }
        let others = define::check_renamed(&catalog, cx, &mut renamed)?;
        renamed.iter().try_for_each(|(_, def)| define::check_partitioned(&catalog, def))?;
        let leaving: Vec<TableId> = renamed.iter().map(|(table, _)| table.def.id).collect();
        renamed.iter().try_for_each(|(table, def)| checks::check_names(&catalog, def, Some(table.def()), &leaving))?;
        checks::check_names_among(renamed.iter().map(|(_, def)| def))?;
        renamed.extend(others);
        renamed.iter().try_for_each(|(_, def)| self.write_table(&mut txn, def))?;
        let views = self.rename_views(&mut txn, &view_places)?;
        cx.commit(self, txn)?;
        self.publish(|catalog, _| {
            self.replace_definitions(catalog, renamed);
            for ((schema, name), place) in &view_places {
                catalog.remove_view(schema, name);
                if let Some(old) = place {
                    old.retire();
                }
            }
            views.into_iter().for_each(|view| catalog.put_view(view));
        });
        Ok(())
    }

    /// Writes the records of views under their new names, and takes those under the old ones away.
    fn rename_views(&self, txn: &mut Txn, places: &BTreeMap<TableName, Option<Arc<View>>>) -> Result<Vec<Arc<View>>, MySqlError> {
        let mut views = Vec::new();
        for ((schema, name), view) in places {
            let key = keys::view(schema, name);
            let Some(view) = view else {
                high_water::remove(txn, self.catalog_index(), &key)?;
                continue;
            };
            let def = ViewDef { name: name.clone(), ..view.def().clone() };
            high_water::put(txn, self.catalog_index(), &key, &stored_record::encode_view(&def))?;
            views.push(Arc::new(View::new(def, self.metadata_locks.lock_of(schema, name))));
        }
        Ok(views)
    }

    /// Replaces tables by their next definitions, whose names may be other ones and whose rows stay.
    pub(crate) fn replace_definitions(&self, catalog: &mut Catalog, tables: Vec<(Arc<Table>, TableDef)>) {
        for (old, _) in &tables {
            catalog.remove_table(&old.def.schema, &old.def.name);
            old.retire();
        }
        for (old, def) in tables {
            catalog.put_table(self.new_table(def, old.state.clone(), old.trees_epoch));
        }
    }

    pub(crate) fn new_table(&self, def: TableDef, state: Arc<TableState>, trees_epoch: u64) -> Arc<Table> {
        let lock = self.metadata_locks.lock_of(&def.schema, &def.name);
        self.metadata_locks.opened.fetch_add(1, Ordering::Relaxed);
        Arc::new(Table::new(self.engine().clone(), def, state, lock, trees_epoch))
    }

    pub(crate) fn write_table(&self, txn: &mut Txn, def: &TableDef) -> Result<(), MySqlError> {
        high_water::put(txn, self.catalog_index(), &keys::table(def.id), &record::encode_table(def))
    }

    pub(crate) fn write_counter(&self, txn: &mut Txn, key: Vec<u8>, next: u64) -> Result<(), MySqlError> {
        high_water::put(txn, self.catalog_index(), &key, &next.to_le_bytes())
    }

    /// Removes all that the catalog has of a table, and its trees.
    pub(crate) fn drop_records(&self, txn: &mut Txn, table: &Table) -> Result<(), MySqlError> {
        let id = table.id();
        drop_trees(txn, &table.def)?;
        for key in [keys::table(id), keys::auto_increment(id), keys::row_id(id), keys::statistics(id)] {
            high_water::remove(txn, self.catalog_index(), &key)?;
        }
        let histograms: Vec<_> = table.state.histograms.lock().keys().cloned().collect();
        self.remove_histograms(txn, id, &histograms)
    }

    pub(crate) fn remove_histograms(&self, txn: &mut Txn, table: TableId, columns: &[Str]) -> Result<(), MySqlError> {
        for column in columns {
            high_water::remove(txn, self.catalog_index(), &keys::histogram(table, column))?;
        }
        Ok(())
    }
}

impl Transaction {
    /// Makes a table that nobody else sees, to be filled by this transaction: its commit publishes the table, anything else leaves nothing
    /// of it. One table a transaction. Its rows are not checked against its foreign keys. Errors as [`Database::create_table`].
    pub async fn create_table(&mut self, cx: &DdlContext, wanted: TableSpec) -> Result<Arc<Table>, MySqlError> {
        refuse_system_schema(&wanted.schema)?;
        assert!(self.created.is_none(), "one table a transaction");
        let db = self.db.clone();
        loop {
            let mut names = vec![(wanted.schema.clone(), wanted.name.clone())];
            names.extend(wanted.foreign_keys.iter().map(|key| (key.parent_schema.clone(), key.parent_table.clone())));
            let related = db.catalog().related(&names);
            self.lock_new_table(cx, related.iter().cloned().collect()).await?;
            if db.catalog().related(&names).is_subset(&related) {
                break;
            }
        }
        let def = db.make_table(cx, self.inner(), &wanted)?;
        let next_auto = wanted.auto_increment.unwrap_or(1).max(1);
        // Counters are written by transactions of their own, so that a value is never given twice.
        let state = TableState::new(db.engine(), db.catalog_index(), def.id, next_auto, 1);
        state.set_rows(0);
        let table = db.new_table(def, Arc::new(state), 0);
        self.created = Some(table.clone());
        if next_auto > 1 {
            let mut txn = db.engine().begin(Isolation::ReadCommitted);
            db.write_counter(&mut txn, keys::auto_increment(table.id()), next_auto)?;
            cx.commit(&db, txn)?;
        }
        Ok(table)
    }
}

impl Database {
    /// What the transaction that made the table has committed is everybody's.
    pub(crate) fn publish_created(&self, created: &Table) {
        self.publish(|catalog, epoch| {
            catalog.put_table(self.new_table((*created.def).clone(), created.state.clone(), epoch));
            created.retire();
        });
    }

    /// The counters of a table that came to nothing. If they stay, the next open removes them.
    pub(crate) fn forget_counters(&self, id: TableId) {
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        let removed = [keys::auto_increment(id), keys::row_id(id)].iter().try_for_each(|key| {
            high_water::remove(&mut txn, self.catalog_index(), key)
        });
        if removed.is_ok()
            && let Ok(wait) = txn.commit(&[])
        {
            let _ = wait.wait();
        }
    }
}

/// Error 3552.
pub(crate) fn refuse_system_schema(schema: &str) -> Result<(), MySqlError> {
    if is_system_schema(schema) { Err(error::system_schema(schema)) } else { Ok(()) }
}

/// Makes all trees of a definition, whatever it names.
pub(crate) fn make_trees(txn: &mut Txn, def: &mut TableDef) -> Result<(), MySqlError> {
    let TableDef { name, indexes, partitioning, .. } = def;
    match partitioning {
        Some(partitioning) => {
            for partition in &mut partitioning.partitions {
                partition.trees = new_trees(txn, name, indexes.len())?;
            }
        }
        None => {
            let trees = new_trees(txn, name, indexes.len())?;
            indexes.iter_mut().zip(trees).for_each(|(index, tree)| index.id = tree);
        }
    }
    Ok(())
}

/// `count` empty trees for the table of this name.
pub(crate) fn new_trees(txn: &mut Txn, table: &str, count: usize) -> Result<Vec<IndexId>, MySqlError> {
    (0..count).map(|_| txn.create_index().map_err(|e| error::storage(e, table))).collect()
}

pub(crate) fn drop_trees(txn: &mut Txn, def: &TableDef) -> Result<(), MySqlError> {
    for (tree, ..) in def.trees() {
        txn.drop_index(tree).map_err(|e| error::storage(e, &def.name))?;
    }
    Ok(())
}

/// The same definition as the table's next one.
pub(crate) fn next_definition(def: &TableDef) -> TableDef {
    TableDef { version: def.version + 1, created_at: spec::now(), ..def.clone() }
}
