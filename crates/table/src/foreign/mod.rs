//! Foreign keys: what a table has to do with others (`Links`), checking for parents (`check.rs`), what becomes of children (`action.rs`),
//! and what DDL may do (`define.rs`). See README.md, "Foreign keys".

mod action;
mod check;
pub(crate) mod define;

use std::sync::Arc;

use highkey_types::{ColumnType, KeyPart, MySqlError, Str, TypeKind, Value};

use crate::catalog::Catalog;
use crate::def::{ForeignKeyDef, IndexDef, IndexKind, ReferenceAction, TableDef};
use crate::metadata_lock::{MetadataLock, MetadataMode, Name};
use crate::table::Table;
use crate::transaction::Transaction;

/// Computes the generated columns of a row whose other columns a foreign key's action has changed.
pub trait Generator: Send + Sync {
    /// Errors are the statement's.
    fn generate(&self, table: &Arc<Table>, row: &mut Vec<Value>) -> Result<(), MySqlError>;
}

/// The tables that a table's rows reference, and those whose rows reference it, as the catalog has them that the table is of.
#[derive(PartialEq)]
pub(crate) struct Links {
    /// One for each foreign key of the table, in the order in which they are checked: by index, then by name.
    pub(crate) parents: Vec<ParentLink>,
    /// By the index of this table that they reference, then by schema and name of the foreign key.
    pub(crate) children: Vec<ChildLink>,
}

/// Another table.
#[derive(Clone)]
pub(crate) struct Place {
    name: Name,
    lock: Arc<MetadataLock>,
}

impl Place {
    fn of(table: &Table) -> Place {
        Place { name: (table.def.schema.clone(), table.def.name.clone()), lock: table.lock.clone() }
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.lock, &other.lock)
    }
}

/// A foreign key of the table.
#[derive(PartialEq)]
pub(crate) struct ParentLink {
    /// Position in the definition.
    pub(crate) key: usize,
    /// The table's own index that begins with its columns: with that index's entry a row is checked.
    pub(crate) index: usize,
    /// None: there is no such table, or it has no such key. Then no row has a parent.
    pub(crate) parent: Option<ParentKey>,
}

/// Where a parent row is looked for.
#[derive(PartialEq)]
pub(crate) struct ParentKey {
    place: Place,
    index: usize,
    /// The columns are all of a unique index: there is one row at most.
    whole: bool,
    parts: Vec<KeyPart>,
    /// Rows reference rows of their own table.
    own: bool,
}

/// A foreign key of another table, or of this one, that references the table.
#[derive(PartialEq)]
pub(crate) struct ChildLink {
    pub(crate) place: Place,
    pub(crate) key: ForeignKeyDef,
    /// The table's own index and columns that are referenced.
    pub(crate) index: usize,
    pub(crate) columns: Vec<usize>,
    child_index: usize,
    /// The first parts of that index.
    parts: Vec<KeyPart>,
    own: bool,
}

impl Links {
    /// None for a table that has to do with no other.
    pub(crate) fn of(table: &Table, catalog: &Catalog) -> Option<Box<Links>> {
        let def = &table.def;
        let mut parents: Vec<ParentLink> = (0..def.foreign_keys.len())
            .filter_map(|key| {
                let index = index_of(def, &def.foreign_keys[key].columns)?;
                Some(ParentLink { key, index, parent: ParentKey::find(def, &def.foreign_keys[key], catalog) })
            })
            .collect();
        parents.sort_by_key(|link| (link.index, link.key));
        let mut children = Vec::new();
        for (schema, name) in catalog.children(&def.schema, &def.name) {
            let Some(child) = catalog.find_table(schema, name) else { continue };
            for key in child.def.foreign_keys.iter().filter(|key| key.is_of_parent(&def.schema, &def.name)) {
                children.extend(ChildLink::new(def, &child, key));
            }
        }
        children.sort_by(|a, b| (a.index, &a.place.name.0, &a.key.name).cmp(&(b.index, &b.place.name.0, &b.key.name)));
        (!parents.is_empty() || !children.is_empty()).then(|| Box::new(Links { parents, children }))
    }
}

impl ParentKey {
    fn find(child: &TableDef, key: &ForeignKeyDef, catalog: &Catalog) -> Option<ParentKey> {
        let parent = catalog.find_table(&key.parent_schema, &key.parent_table)?;
        let (columns, index) = referenced(child, key, &parent.def).ok()?;
        let parts = &parent.indexes[index].parts;
        let whole = parent.indexes[index].is_unique() && parts.len() == columns.len();
        let own = parent.def.id == child.id;
        Some(ParentKey { place: Place::of(&parent), index, whole, parts: parts[..columns.len()].to_vec(), own })
    }
}

impl ChildLink {
    fn new(parent: &TableDef, child: &Table, key: &ForeignKeyDef) -> Option<ChildLink> {
        let (columns, index) = referenced(&child.def, key, parent).ok()?;
        let child_index = index_of(&child.def, &key.columns)?;
        let parts = child.indexes[child_index].parts[..columns.len()].to_vec();
        Some(ChildLink { place: Place::of(child), key: key.clone(), index, columns, child_index, parts, own: child.def.id == parent.id })
    }

    fn action(&self, deletes: bool) -> ReferenceAction {
        if deletes { self.key.on_delete } else { self.key.on_update }
    }
}

/// Why a foreign key cannot be resolved in the parent that there is.
pub(crate) enum Mismatch<'a> {
    /// This column of the parent is missing.
    NoColumn(&'a str),
    /// No index of the parent begins with the columns.
    NoIndex,
    /// These columns of child and parent are of types that do not compare.
    Types { child: usize, parent: usize },
}

/// The parent's columns of a foreign key and its first index that begins with them.
pub(crate) fn referenced<'a>(child: &TableDef, key: &'a ForeignKeyDef, parent: &TableDef) -> Result<(Vec<usize>, usize), Mismatch<'a>> {
    let mut columns = Vec::with_capacity(key.parent_columns.len());
    for name in &key.parent_columns {
        columns.push(parent.column(name).ok_or(Mismatch::NoColumn(name))?);
    }
    let index = index_of(parent, &columns).ok_or(Mismatch::NoIndex)?;
    for (&own, &other) in key.columns.iter().zip(&columns) {
        if !comparable(&child.columns[own].ty, &parent.columns[other].ty) {
            return Err(Mismatch::Types { child: own, parent: other });
        }
    }
    Ok((columns, index))
}

/// The first index of values that begins with the whole columns, in their order.
pub(crate) fn index_of(def: &TableDef, columns: &[usize]) -> Option<usize> {
    def.indexes.iter().position(|index| {
        let parts = index.parts.get(..columns.len());
        index.kind != IndexKind::FullText && parts.is_some_and(|parts| parts.iter().zip(columns).all(|(part, column)| part.column == *column && part.prefix.is_none()))
    })
}

/// Whether values of two types may be of one foreign key: keys of one are keys of the other. As in MySQL texts and binary strings need not
/// have the same length, nor ENUM and SET the same members (they compare by number). Other types must be the same; MySQL is laxer about
/// DECIMAL and temporal ones, whose values then never match.
fn comparable(child: &ColumnType, parent: &ColumnType) -> bool {
    use TypeKind::*;
    let text = |kind: &TypeKind| matches!(kind, Char(_) | VarChar(_));
    let binary = |kind: &TypeKind| matches!(kind, Binary(_) | VarBinary(_));
    if text(&child.kind) || text(&parent.kind) {
        return text(&child.kind) && text(&parent.kind) && child.collation == parent.collation;
    }
    match (&child.kind, &parent.kind) {
        (Enum(a), Enum(b)) => (a.len() > 255) == (b.len() > 255),
        (Set(a), Set(b)) => a.len().div_ceil(8) == b.len().div_ceil(8),
        (a, b) if binary(a) && binary(b) => true,
        (a, b) => a == b && child.unsigned == parent.unsigned,
    }
}

/// The constraint as errors 1451 and 1452 tell it.
fn constraint_text(def: &TableDef, key: &ForeignKeyDef) -> String {
    let quote = |name: &str| format!("`{}`", name.replace('`', "``"));
    format!("{}.{}, {}", quote(&def.schema), quote(&def.name), def.foreign_key_text(key, &quote))
}

impl TableDef {
    /// `CONSTRAINT … FOREIGN KEY … REFERENCES …` for a foreign key of this table, as SHOW CREATE TABLE prints it; `quote` makes an
    /// identifier of a name.
    pub fn foreign_key_text(&self, key: &ForeignKeyDef, quote: &dyn Fn(&str) -> String) -> String {
        let columns: Vec<String> = key.columns.iter().map(|column| quote(&self.columns[*column].name)).collect();
        let mut text = format!("CONSTRAINT {} FOREIGN KEY ({}) REFERENCES ", quote(&key.name), columns.join(", "));
        if key.parent_schema != self.schema {
            text += &format!("{}.", quote(&key.parent_schema));
        }
        let columns: Vec<String> = key.parent_columns.iter().map(|name| quote(name)).collect();
        text += &format!("{} ({})", quote(&key.parent_table), columns.join(", "));
        for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
            match action {
                ReferenceAction::NoAction | ReferenceAction::Restrict => {}
                ReferenceAction::Cascade => text += &format!(" ON {event} CASCADE"),
                ReferenceAction::SetNull => text += &format!(" ON {event} SET NULL"),
            }
        }
        text
    }
}

impl Table {
    /// The definitions of foreign keys that reference this table, each with the table that it is of: schema, name.
    pub fn referencing(&self) -> impl Iterator<Item = (&Name, &ForeignKeyDef)> {
        self.links.iter().flat_map(|links| &links.children).map(|child| (&child.place.name, &child.key))
    }

    /// Deleting or updating rows of this table may delete or update rows of other tables, or other rows of this one.
    pub fn cascades(&self) -> bool {
        self.referencing().any(|(_, key)| !key.on_delete.refuses() || !key.on_update.refuses())
    }

    /// The unique index that a foreign key's columns are all of, in the parent table; None if there is none.
    pub fn unique_index_of(&self, columns: &[Str]) -> Option<&IndexDef> {
        let columns: Vec<usize> = columns.iter().filter_map(|name| self.def.column(name)).collect();
        let same = |index: &IndexDef| index.parts.iter().map(|part| part.column).eq(columns.iter().copied());
        self.def.indexes.iter().find(|index| index.is_unique() && same(index))
    }
}

impl Transaction {
    /// Whether foreign keys are checked and their actions carried out (`foreign_key_checks`), from now on.
    pub fn set_foreign_key_checks(&mut self, on: bool) {
        self.foreign_key_checks = on;
    }

    /// Who computes generated columns of rows that foreign keys' actions change.
    pub fn set_generator(&mut self, generator: Arc<dyn Generator>) {
        self.generator = Some(generator);
    }

    /// A related table, open in this transaction. None: it is not there any more.
    pub(crate) async fn related(&mut self, place: &Place, mode: MetadataMode) -> Result<Option<Arc<Table>>, MySqlError> {
        let open = self.related.iter().find(|(table, held)| Arc::ptr_eq(&table.lock, &place.lock) && held.covers(mode));
        if let Some((table, _)) = open {
            return Ok(Some(table.clone()));
        }
        loop {
            let Some(table) = self.db.catalog().find_table(&place.name.0, &place.name.1) else { return Ok(None) };
            if self.open_for(&table, mode).await? {
                self.related.push((table.clone(), mode));
                return Ok(Some(table));
            }
        }
    }
}
