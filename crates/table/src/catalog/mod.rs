//! The catalog: committed definitions as an immutable snapshot, and the records they are kept in.

pub(crate) mod keys;
pub(crate) mod load;
mod partition;
pub(crate) mod record;
pub(crate) mod stored_record;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highkey_types::{MySqlError, Str};

use crate::def::{SYSTEM_SCHEMAS, SchemaDef, UserDef, is_system_schema};
use crate::error;
use crate::event::EventDef;
use crate::foreign::Links;
use crate::metadata_lock::Name;
use crate::routine::{RoutineDef, RoutineKind};
use crate::table::Table;
use crate::trigger::TriggerDef;
use crate::view::View;

/// All committed definitions at one moment. `Database::catalog` gives the present one; it never changes.
#[derive(Clone, Default)]
pub struct Catalog {
    schemas: BTreeMap<Str, Arc<Schema>>,
    users: Arc<BTreeMap<(String, String), Arc<UserDef>>>,
    /// The tables whose foreign keys reference a name, whether there is a table of that name or not.
    references: Arc<BTreeMap<Name, BTreeSet<Name>>>,
    /// Names whose tables may have other links since `settle_links`.
    unsettled: BTreeSet<Name>,
}

#[derive(Clone)]
struct Schema {
    def: Arc<SchemaDef>,
    tables: BTreeMap<Str, Arc<Table>>,
    views: BTreeMap<Str, Arc<View>>,
    /// By the name in lower case.
    routines: BTreeMap<(RoutineKind, Str), Arc<RoutineDef>>,
    /// Likewise.
    events: BTreeMap<Str, Arc<EventDef>>,
}

impl Catalog {
    /// All schemas by name, the system ones among them.
    pub fn schemas(&self) -> Vec<Arc<SchemaDef>> {
        // System schemas are among them once a restore has made tables there.
        let mut all: Vec<_> = self.schemas.values().map(|s| s.def.clone()).filter(|def| !is_system_schema(&def.name)).collect();
        all.extend(SYSTEM_SCHEMAS.iter().map(|name| system_schema(name)));
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The schema of that name.
    pub fn schema(&self, name: &str) -> Option<Arc<SchemaDef>> {
        if let Some(schema) = self.schemas.get(name) {
            return Some(schema.def.clone());
        }
        SYSTEM_SCHEMAS.iter().find(|s| s.eq_ignore_ascii_case(name)).map(|name| system_schema(name))
    }

    /// Error 1146, or 1049 if there is no such schema.
    pub fn table(&self, schema: &str, name: &str) -> Result<Arc<Table>, MySqlError> {
        match self.schemas.get(schema) {
            Some(entry) => entry.tables.get(name).cloned().ok_or_else(|| error::no_such_table(schema, name)),
            None if is_system_schema(schema) => Err(error::no_such_table(schema, name)),
            None => Err(error::unknown_schema(schema)),
        }
    }

    /// The table of that name, if there is one.
    pub fn find_table(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        self.schemas.get(schema)?.tables.get(name).cloned()
    }

    /// The view of that name, if there is one.
    pub fn find_view(&self, schema: &str, name: &str) -> Option<Arc<View>> {
        self.schemas.get(schema)?.views.get(name).cloned()
    }

    /// There is a table or a view of that name.
    pub fn has(&self, schema: &str, name: &str) -> bool {
        self.schemas.get(schema).is_some_and(|s| s.tables.contains_key(name) || s.views.contains_key(name))
    }

    /// The views of a schema by name.
    pub fn views(&self, schema: &str) -> Vec<Arc<View>> {
        self.schemas.get(schema).map_or_else(Vec::new, |s| s.views.values().cloned().collect())
    }

    /// The routine of that name in any case.
    pub fn routine(&self, schema: &str, kind: RoutineKind, name: &str) -> Option<Arc<RoutineDef>> {
        let schema = self.schemas.get(schema)?;
        // Most schemas have none.
        if schema.routines.is_empty() { None } else { schema.routines.get(&(kind, Str::from(name.to_lowercase()))).cloned() }
    }

    /// The routines of a schema by kind and name.
    pub fn routines(&self, schema: &str) -> Vec<Arc<RoutineDef>> {
        self.schemas.get(schema).map_or_else(Vec::new, |s| s.routines.values().cloned().collect())
    }

    /// The trigger of that name in any case, and its table.
    pub fn trigger(&self, schema: &str, name: &str) -> Option<(Arc<Table>, TriggerDef)> {
        self.schemas.get(schema)?.tables.values().find_map(|table| {
            let found = table.def.triggers.iter().find(|trigger| trigger.is_named(name))?;
            Some((table.clone(), found.clone()))
        })
    }

    /// The event of that name in any case.
    pub fn event(&self, schema: &str, name: &str) -> Option<Arc<EventDef>> {
        self.schemas.get(schema)?.events.get(&*name.to_lowercase()).cloned()
    }

    /// The events of a schema by name.
    pub fn events(&self, schema: &str) -> Vec<Arc<EventDef>> {
        self.schemas.get(schema).map_or_else(Vec::new, |s| s.events.values().cloned().collect())
    }

    /// Every event of every schema.
    pub fn all_events(&self) -> impl Iterator<Item = &Arc<EventDef>> {
        self.schemas.values().flat_map(|s| s.events.values())
    }

    /// The tables of a schema by name.
    pub fn tables(&self, schema: &str) -> Vec<Arc<Table>> {
        self.schemas.get(schema).map_or_else(Vec::new, |s| s.tables.values().cloned().collect())
    }

    /// Every table of every schema.
    pub fn all_tables(&self) -> Vec<Arc<Table>> {
        self.schemas.values().flat_map(|s| s.tables.values().cloned()).collect()
    }

    /// All accounts, by user and host.
    pub fn users(&self) -> Vec<Arc<UserDef>> {
        self.users.values().cloned().collect()
    }

    /// The account of exactly these names.
    pub fn user(&self, user: &str, host: &str) -> Option<Arc<UserDef>> {
        self.users.get(&(user.to_string(), host.to_string())).cloned()
    }

    pub(crate) fn put_schema(&mut self, def: SchemaDef) {
        let (tables, views, routines) = self.schemas.get(&def.name).map_or_else(Default::default, |s| (s.tables.clone(), s.views.clone(), s.routines.clone()));
        let events = self.schemas.get(&def.name).map_or_else(Default::default, |s| s.events.clone());
        self.schemas.insert(def.name.clone(), Arc::new(Schema { def: Arc::new(def), tables, views, routines, events }));
    }

    pub(crate) fn remove_schema(&mut self, name: &str) {
        for table in self.tables(name) {
            self.remove_table(name, &table.def.name);
        }
        self.schemas.remove(name);
    }

    /// Names of the tables with foreign keys that reference the name.
    pub(crate) fn children(&self, schema: &str, table: &str) -> impl Iterator<Item = &Name> {
        let found = if self.references.is_empty() { None } else { self.references.get(&(schema.into(), table.into())) };
        found.into_iter().flatten()
    }

    /// The names, and those that foreign keys tie to them.
    pub(crate) fn related(&self, names: &[Name]) -> BTreeSet<Name> {
        let mut related: BTreeSet<Name> = names.iter().cloned().collect();
        for (schema, name) in names {
            related.extend(self.children(schema, name).cloned());
            if let Some(table) = self.find_table(schema, name) {
                related.extend(table.def.foreign_keys.iter().map(|key| (key.parent_schema.clone(), key.parent_table.clone())));
            }
        }
        related
    }

    /// Replaces the tables whose links are other ones, now that tables have come, gone or changed. To be called before the catalog is shown.
    pub(crate) fn settle_links(&mut self) {
        if self.unsettled.is_empty() {
            return;
        }
        let names: Vec<Name> = std::mem::take(&mut self.unsettled).into_iter().collect();
        for (schema, name) in self.related(&names) {
            let Some(table) = self.find_table(&schema, &name) else { continue };
            let links = Links::of(&table, self);
            // DDL has locked the tables tied to its own, not those tied to them: their links are as before.
            if links == table.links {
                continue;
            }
            let linked = Arc::new(table.with_links(links));
            table.retire();
            if let Some(schema) = self.schemas.get_mut(&schema) {
                Arc::make_mut(schema).tables.insert(name, linked);
            }
        }
    }

    /// Enters a table's foreign keys among the references, or takes them out.
    fn note_references(&mut self, table: &Table, present: bool) {
        let name = (table.def.schema.clone(), table.def.name.clone());
        for key in &table.def.foreign_keys {
            let parent = (key.parent_schema.clone(), key.parent_table.clone());
            let references = Arc::make_mut(&mut self.references);
            let children = references.entry(parent.clone()).or_default();
            if present {
                children.insert(name.clone());
            } else {
                children.remove(&name);
            }
            if children.is_empty() {
                references.remove(&parent);
            }
            self.unsettled.insert(parent);
        }
        if !table.def.foreign_keys.is_empty() || self.references.contains_key(&name) {
            self.unsettled.insert(name);
        }
    }

    pub(crate) fn put_table(&mut self, table: Arc<Table>) {
        self.note_references(&table, true);
        let name = &table.def.schema;
        if is_system_schema(name) && !self.schemas.contains_key(name) {
            self.put_schema((*system_schema(name)).clone());
        }
        let schema = self.schemas.get_mut(name).expect("a table's schema exists while it is locked");
        Arc::make_mut(schema).tables.insert(table.def.name.clone(), table);
    }

    pub(crate) fn remove_table(&mut self, schema: &str, name: &str) {
        if let Some(table) = self.find_table(schema, name) {
            self.note_references(&table, false);
        }
        if let Some(schema) = self.schemas.get_mut(schema) {
            Arc::make_mut(schema).tables.remove(name);
        }
    }

    pub(crate) fn put_view(&mut self, view: Arc<View>) {
        let schema = self.schemas.get_mut(&view.def().schema).expect("a view's schema exists while it is locked");
        Arc::make_mut(schema).views.insert(view.def().name.clone(), view);
    }

    pub(crate) fn remove_view(&mut self, schema: &str, name: &str) {
        if let Some(schema) = self.schemas.get_mut(schema) {
            Arc::make_mut(schema).views.remove(name);
        }
    }

    pub(crate) fn put_routine(&mut self, routine: Arc<RoutineDef>) {
        let schema = self.schemas.get_mut(&routine.schema).expect("a routine's schema exists while it is locked");
        Arc::make_mut(schema).routines.insert((routine.kind, routine.name.to_lowercase().into()), routine);
    }

    pub(crate) fn remove_routine(&mut self, schema: &str, kind: RoutineKind, name: &str) {
        if let Some(schema) = self.schemas.get_mut(schema) {
            Arc::make_mut(schema).routines.remove(&(kind, Str::from(name.to_lowercase())));
        }
    }

    pub(crate) fn put_event(&mut self, event: Arc<EventDef>) {
        let schema = self.schemas.get_mut(&event.schema).expect("an event's schema exists while it is locked");
        Arc::make_mut(schema).events.insert(event.name.to_lowercase().into(), event);
    }

    pub(crate) fn remove_event(&mut self, schema: &str, name: &str) {
        if let Some(schema) = self.schemas.get_mut(schema) {
            Arc::make_mut(schema).events.remove(&*name.to_lowercase());
        }
    }

    pub(crate) fn put_user(&mut self, user: UserDef) {
        let key = (user.user.clone(), user.host.clone());
        Arc::make_mut(&mut self.users).insert(key, Arc::new(user));
    }

    pub(crate) fn remove_user(&mut self, user: &str, host: &str) {
        Arc::make_mut(&mut self.users).remove(&(user.to_string(), host.to_string()));
    }
}

fn system_schema(name: &str) -> Arc<SchemaDef> {
    use highkey_types::Collation;
    let collation = match name {
        "information_schema" => Collation::by_name("utf8_general_ci"),
        _ => Collation::by_name("utf8mb4_0900_ai_ci"),
    };
    Arc::new(SchemaDef { name: name.into(), collation: collation.expect("both are built in") })
}
