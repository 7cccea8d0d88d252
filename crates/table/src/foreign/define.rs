//! What DDL may do with tables that foreign keys tie together, and what it changes in the other ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highkey_storage::{Bounds, Direction, LockMode, LeafRows, Txn};
use highkey_types::{MySqlError, RowLayout, Str, encode_key_part, errors};

use super::check::key_exists;
use super::{Mismatch, index_of, referenced};
use crate::catalog::Catalog;
use crate::database::Database;
use crate::ddl::{AlterPlan, DdlContext};
use crate::def::{ForeignKeyDef, ReferenceAction, TableDef, TableId, same_name};
use crate::error;
use crate::index::IndexCodec;
use crate::metadata_lock::Name;
use crate::table::Table;
use crate::transaction::HeldLocks;

impl Database {
    /// Locks tables (present or future ones) for a DDL statement, with all that foreign keys tie to them or, by `added`, are to tie.
    pub(crate) async fn lock_related(
        &self,
        cx: &DdlContext,
        mut tables: Vec<Name>,
        added: &[ForeignKeyDef],
    ) -> Result<HeldLocks, MySqlError> {
        tables.extend(added.iter().map(|key| (key.parent_schema.clone(), key.parent_table.clone())));
        loop {
            let wanted = self.catalog().related(&tables);
            let locks = self.lock_tables(cx, wanted.iter().cloned().collect()).await?;
            if self.catalog().related(&tables).is_subset(&wanted) {
                return Ok(locks);
            }
        }
    }
}

/// What an ALTER TABLE means for foreign keys.
#[derive(Default)]
pub(crate) struct Altered {
    /// Names of the foreign keys that are new: rows are to be checked.
    pub(crate) added: Vec<Str>,
    /// New definitions of the tables whose foreign keys reference the altered one by another name.
    pub(crate) children: Vec<(Arc<Table>, TableDef)>,
}

/// The foreign keys of a new table. Errors: 1215, 1821, 1822, 1824, 1826, 1830, 3734, 3780.
pub(crate) fn check_created(catalog: &Catalog, cx: &DdlContext, def: &TableDef) -> Result<(), MySqlError> {
    check_partitioned(catalog, def)?;
    for key in &def.foreign_keys {
        check_key(catalog, cx, def, key)?;
    }
    check_names(catalog, def, &[])?;
    check_awaited(catalog, cx, def)
}

/// Partitioned tables are not referenced, not even by foreign keys that waited for their name. Error 1506.
pub(crate) fn check_partitioned(catalog: &Catalog, def: &TableDef) -> Result<(), MySqlError> {
    let referenced = def.partitioning.is_some() && catalog.children(&def.schema, &def.name).next().is_some();
    if referenced { Err(errors::foreign_key_on_partitioned()) } else { Ok(()) }
}

/// A table that comes under a name which foreign keys already reference must have what they reference. Errors: 1822, 3734, 3780.
fn check_awaited(catalog: &Catalog, cx: &DdlContext, def: &TableDef) -> Result<(), MySqlError> {
    if !cx.foreign_key_checks {
        return Ok(());
    }
    for (schema, name) in catalog.children(&def.schema, &def.name) {
        let Some(child) = catalog.find_table(schema, name).filter(|child| child.def.id != def.id) else { continue };
        for key in child.def.foreign_keys.iter().filter(|key| key.is_of_parent(&def.schema, &def.name)) {
            referenced(&child.def, key, def).map_err(|why| mismatch(&child.def, key, def, why))?;
        }
    }
    Ok(())
}

/// Error 1826 for a name that another foreign key of the schema has; tables that are `leaving` their names are asked under the new ones.
fn check_names(catalog: &Catalog, def: &TableDef, leaving: &[TableId]) -> Result<(), MySqlError> {
    for (at, key) in def.foreign_keys.iter().enumerate() {
        let mut taken = def.foreign_keys[..at].iter().any(|other| same_name(&other.name, &key.name));
        taken |= catalog.tables(&def.schema).iter().filter(|table| table.def.id != def.id && !leaving.contains(&table.def.id)).any(|table| {
            table.def.foreign_keys.iter().any(|other| same_name(&other.name, &key.name))
        });
        if taken {
            return Err(errors::fk_dup_name(&key.name));
        }
    }
    Ok(())
}

/// A new foreign key of a table as it will be.
fn check_key(catalog: &Catalog, cx: &DdlContext, def: &TableDef, key: &ForeignKeyDef) -> Result<(), MySqlError> {
    check_nullable(def, key)?;
    check_generated(def, key)?;
    if index_of(def, &key.columns).is_none() {
        return Err(errors::fk_no_index_child(&key.name, &def.name));
    }
    let own = key.is_of_parent(&def.schema, &def.name);
    let parent = if own { None } else { catalog.find_table(&key.parent_schema, &key.parent_table) };
    match (own, &parent) {
        (true, _) => referenced(def, key, def).map(drop).map_err(|why| mismatch(def, key, def, why)),
        (_, Some(parent)) if parent.is_partitioned() => Err(errors::cannot_add_foreign()),
        (_, Some(parent)) => referenced(def, key, &parent.def).map(drop).map_err(|why| mismatch(def, key, &parent.def, why)),
        _ if cx.foreign_key_checks => Err(errors::fk_cannot_open_parent(&key.parent_table)),
        _ => Ok(()),
    }
}

/// Error 1830.
fn check_nullable(def: &TableDef, key: &ForeignKeyDef) -> Result<(), MySqlError> {
    let sets_null = [key.on_delete, key.on_update].contains(&ReferenceAction::SetNull);
    match key.columns.iter().find(|column| sets_null && !def.columns[**column].nullable) {
        Some(column) => Err(errors::fk_column_not_null(&def.columns[*column].name, &key.name)),
        None => Ok(()),
    }
}

/// Errors 3104 and 3733.
fn check_generated(def: &TableDef, key: &ForeignKeyDef) -> Result<(), MySqlError> {
    for &column in &key.columns {
        let Some(generated) = &def.columns[column].generated else { continue };
        if !generated.stored {
            return Err(errors::fk_cannot_use_virtual_column(&key.name, &def.columns[column].name));
        }
        let clause = match (key.on_update, key.on_delete) {
            (ReferenceAction::Cascade, _) => "ON UPDATE CASCADE",
            (ReferenceAction::SetNull, _) => "ON UPDATE SET NULL",
            (_, ReferenceAction::SetNull) => "ON DELETE SET NULL",
            _ => continue,
        };
        return Err(errors::wrong_fk_option_for_generated_column(clause));
    }
    Ok(())
}

fn mismatch(child: &TableDef, key: &ForeignKeyDef, parent: &TableDef, why: Mismatch<'_>) -> MySqlError {
    match why {
        Mismatch::NoColumn(column) => errors::fk_no_column_parent(column, &key.name, &parent.name),
        Mismatch::NoIndex => errors::fk_no_index_parent(&key.name, &parent.name),
        Mismatch::Types { child: own, parent: other } => {
            error::incompatible_columns(&child.columns[own].name, &parent.columns[other].name, &key.name)
        }
    }
}

/// Tables that go, together. Error 3730 if another one references one of them.
pub(crate) fn check_dropped(cx: &DdlContext, tables: &[Arc<Table>]) -> Result<(), MySqlError> {
    if !cx.foreign_key_checks {
        return Ok(());
    }
    for table in tables {
        let stays = |name: &Name| !tables.iter().any(|t| t.def.schema == name.0 && t.def.name == name.1);
        if let Some((child, key)) = first_child(table, stays) {
            return Err(errors::fk_cannot_drop_parent(&table.def.name, &key.name, &child.1));
        }
    }
    Ok(())
}

/// Error 1701 if another table references the one to be emptied.
pub(crate) fn check_truncated(cx: &DdlContext, table: &Table) -> Result<(), MySqlError> {
    let another = |name: &Name| table.def.schema != name.0 || table.def.name != name.1;
    match first_child(table, another).filter(|_| cx.foreign_key_checks) {
        Some((child, key)) => Err(errors::truncate_illegal_fk(format!("`{}`.`{}`, CONSTRAINT `{}`", child.0, child.1, key.name))),
        None => Ok(()),
    }
}

/// The first foreign key by name that references the table.
fn first_child(table: &Table, wanted: impl Fn(&Name) -> bool) -> Option<(&Name, &ForeignKeyDef)> {
    table.referencing().filter(|(name, _)| wanted(name)).min_by_key(|(name, key)| (name.0.clone(), key.name.clone()))
}

/// What the foreign keys of a table become when tables get other names: `names`, from the old ones. `old` is the table's own before.
fn rename_keys(def: &mut TableDef, old: &Name, names: &BTreeMap<Name, Name>) {
    let prefix = format!("{}_ibfk_", old.1);
    for key in &mut def.foreign_keys {
        if old.1 != def.name
            && let Some(number) = key.name.strip_prefix(&*prefix)
        {
            key.name = format!("{}_ibfk_{number}", def.name).into();
        }
        if let Some((schema, name)) = names.get(&(key.parent_schema.clone(), key.parent_table.clone())) {
            (key.parent_schema, key.parent_table) = (schema.clone(), name.clone());
        }
    }
}

fn sort_keys(def: &mut TableDef) {
    def.foreign_keys.sort_by(|a, b| a.name.cmp(&b.name));
}

/// The tables that are not renamed themselves and reference renamed ones, with their new definitions. Errors: 1822, 1826, 3734, 3780.
pub(crate) fn check_renamed(
    catalog: &Catalog,
    cx: &DdlContext,
    renamed: &mut [(Arc<Table>, TableDef)],
) -> Result<Vec<(Arc<Table>, TableDef)>, MySqlError> {
    let name_of = |def: &TableDef| (def.schema.clone(), def.name.clone());
    let names: BTreeMap<Name, Name> = renamed.iter().map(|(table, def)| (name_of(&table.def), name_of(def))).collect();
    for (table, def) in renamed.iter_mut() {
        rename_keys(def, &name_of(&table.def), &names);
        sort_keys(def);
        check_awaited(catalog, cx, def)?;
    }
    let leaving: Vec<TableId> = renamed.iter().map(|(table, _)| table.def.id).collect();
    for (at, (_, def)) in renamed.iter().enumerate() {
        check_names(catalog, def, &leaving)?;
        let among = renamed[..at].iter().filter(|(_, other)| other.schema == def.schema).flat_map(|(_, other)| &other.foreign_keys);
        if let Some(key) = among.into_iter().find(|key| def.foreign_keys.iter().any(|own| same_name(&own.name, &key.name))) {
            return Err(errors::fk_dup_name(&key.name));
        }
    }
    let mut others: BTreeSet<Name> = names.keys().flat_map(|(schema, name)| catalog.children(schema, name)).cloned().collect();
    others.retain(|name| !names.contains_key(name));
    let others = others.iter().filter_map(|(schema, name)| catalog.find_table(schema, name));
    Ok(others
        .map(|child| {
            let mut def = TableDef { version: child.def.version + 1, ..(*child.def).clone() };
            let old = name_of(&child.def);
            rename_keys(&mut def, &old, &names);
            (child, def)
        })
        .collect())
}

/// An ALTER TABLE as far as foreign keys are concerned: `def` is the new definition, whose foreign keys reference renamed columns and
/// tables by their old names as long as they are not new. Errors: those of `check_created`, 1553, 1829, 1832, 1833.
pub(crate) fn check_altered(
    catalog: &Catalog,
    cx: &DdlContext,
    old: &Table,
    plan: &AlterPlan,
    def: &mut TableDef,
) -> Result<Altered, MySqlError> {
    let was = &old.def;
    let new_name = |column: &str| {
        let from = was.column(column)?;
        let at = plan.columns.iter().position(|old| *old == Some(from))?;
        Some(def.columns[at].name.clone())
    };
    let mut altered = Altered::default();
    let mut keys = def.foreign_keys.clone();
    let added: Vec<bool> = keys.iter().map(|key| plan.added_keys.iter().any(|name| same_name(name, &key.name))).collect();
    for (key, _) in keys.iter_mut().zip(&added).filter(|(_, added)| !**added) {
        for &column in key.columns.iter().filter(|_| cx.foreign_key_checks) {
            let from = plan.columns[column].map(|from| &was.columns[from].ty);
            if from.is_none_or(|ty| !crate::ddl::same_bytes(ty, &def.columns[column].ty)) {
                return Err(errors::fk_column_cannot_change(&def.columns[column].name, &key.name));
            }
        }
        check_nullable(def, key)?;
        if index_of(def, &key.columns).is_none() {
            let before: Option<Vec<usize>> = key.columns.iter().map(|column| plan.columns[*column]).collect();
            let index = before.and_then(|columns| index_of(was, &columns));
            return Err(errors::drop_index_fk(index.map_or("", |index| &was.indexes[index].name)));
        }
        if key.is_of_parent(&was.schema, &was.name) {
            let referenced_columns: Option<Vec<usize>> = key.parent_columns.iter().map(|name| was.column(name)).collect();
            for column in &mut key.parent_columns {
                *column = new_name(column).ok_or_else(|| errors::fk_column_cannot_drop_child(&*column, &key.name, &was.name))?;
            }
            referenced(def, key, def).map_err(|why| match why {
                Mismatch::NoIndex => {
                    let index = referenced_columns.and_then(|columns| index_of(was, &columns));
                    errors::drop_index_fk(index.map_or("", |index| &was.indexes[index].name))
                }
                why => mismatch(def, key, def, why),
            })?;
        }
    }
    let children: BTreeSet<Name> = catalog.children(&was.schema, &was.name).cloned().collect();
    for (schema, name) in children {
        let Some(child) = catalog.find_table(&schema, &name).filter(|child| child.def.id != was.id) else { continue };
        let mut child_def = TableDef { version: child.def.version + 1, ..(*child.def).clone() };
        for key in child_def.foreign_keys.iter_mut().filter(|key| key.is_of_parent(&was.schema, &was.name)) {
            let before = referenced(&child.def, key, was).ok();
            for column in &mut key.parent_columns {
                match new_name(column) {
                    Some(new) => *column = new,
                    None if cx.foreign_key_checks => return Err(errors::fk_column_cannot_drop_child(&*column, &key.name, &child.def.name)),
                    None => {}
                }
            }
            let Some((columns, index)) = before.filter(|_| cx.foreign_key_checks) else { continue };
            for from in columns {
                let Some(at) = plan.columns.iter().position(|old| *old == Some(from)) else { continue };
                if !crate::ddl::same_bytes(&was.columns[from].ty, &def.columns[at].ty) {
                    let table = format!("{}.{}", child.def.schema, child.def.name);
                    return Err(errors::fk_column_cannot_change_child(&was.columns[from].name, &key.name, table));
                }
            }
            match referenced(&child.def, key, def) {
                Err(Mismatch::NoIndex) => return Err(errors::drop_index_fk(&was.indexes[index].name)),
                Err(why) => return Err(mismatch(&child.def, key, def, why)),
                Ok(_) => {}
            }
        }
        if child_def.foreign_keys != child.def.foreign_keys || was.schema != def.schema || was.name != def.name {
            altered.children.push((child, child_def));
        }
    }
    def.foreign_keys = keys;
    let names = BTreeMap::from([((was.schema.clone(), was.name.clone()), (def.schema.clone(), def.name.clone()))]);
    if was.schema != def.schema || was.name != def.name {
        rename_keys(def, &(was.schema.clone(), was.name.clone()), &names);
        for (child, child_def) in &mut altered.children {
            rename_keys(child_def, &(child.def.schema.clone(), child.def.name.clone()), &names);
        }
        check_awaited(catalog, cx, def)?;
    }
    for (key, added) in def.foreign_keys.iter().zip(&added) {
        if *added {
            check_key(catalog, cx, def, key)?;
            altered.added.push(key.name.clone());
        } else if let Some(parent) = catalog.find_table(&key.parent_schema, &key.parent_table)
            && let Err(why @ Mismatch::Types { .. }) = referenced(def, key, &parent.def)
        {
            return Err(mismatch(def, key, &parent.def, why));
        }
    }
    check_names(catalog, def, &[])?;
    sort_keys(def);
    altered.children.iter_mut().for_each(|(_, child)| sort_keys(child));
    Ok(altered)
}

/// Whether all rows of a table, as the transaction has made it, have parents by a new foreign key; how many rows those are. Error 1452.
pub(crate) fn check_rows(
    catalog: &Catalog,
    cx: &DdlContext,
    txn: &mut Txn,
    def: &TableDef,
    key: &ForeignKeyDef,
) -> Result<u64, MySqlError> {
    let failed = |e| error::storage(e, &def.name);
    let own = key.is_of_parent(&def.schema, &def.name);
    let parent = if own { None } else { catalog.find_table(&key.parent_schema, &key.parent_table) };
    let parent_def = parent.as_ref().map_or(def, |parent| &parent.def);
    let (_, index) = referenced(def, key, parent_def).map_err(|why| mismatch(def, key, parent_def, why))?;
    let codec = IndexCodec::new(parent_def, index);
    let types: Vec<_> = def.columns.iter().map(|c| c.ty.clone()).collect();
    let layout = RowLayout::new(&types);
    let mut scan = txn.scan_latest(def.indexes[0].id, Bounds::all(), Direction::Forward, LockMode::Shared, None);
    let (mut leaf, mut wanted, mut before) = (LeafRows::new(), Vec::new(), Vec::new());
    let mut rows = 0;
    while scan.next_leaf(&mut leaf).map_err(failed)? {
        cx.check_interrupt()?;
        for at in 0..leaf.len() {
            let row = leaf.value(at);
            if row.is_empty() {
                // Nothing is committed there. Who inserts has no metadata lock: it is being undone.
                continue;
            }
            rows += 1;
            if key.columns.iter().any(|column| layout.is_null(row, *column)) {
                continue;
            }
            wanted.clear();
            for (column, part) in key.columns.iter().zip(&codec.parts) {
                encode_key_part(&layout.value(row, *column), part, &mut wanted);
            }
            if wanted != before && !key_exists(txn, codec.id, &wanted).map_err(failed)? {
                return Err(errors::no_referenced_row_2(super::constraint_text(def, key)));
            }
            std::mem::swap(&mut wanted, &mut before);
        }
    }
    Ok(rows)
}
