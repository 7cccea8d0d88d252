//! The catalog: committed definitions as an immutable snapshot, and the records they are kept in.

pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod record;

use std::collections::BTreeMap;
use std::sync::Arc;

use highkey_types::{MySqlError, Str};

use crate::def::{SYSTEM_SCHEMAS, SchemaDef, UserDef, is_system_schema};
use crate::error;
use crate::table::Table;

/// All committed definitions at one moment. `Database::catalog` gives the present one; it never changes.
#[derive(Clone, Default)]
pub struct Catalog {
    schemas: BTreeMap<Str, Arc<Schema>>,
    users: Arc<BTreeMap<(String, String), Arc<UserDef>>>,
}

#[derive(Clone)]
struct Schema {
    def: Arc<SchemaDef>,
    tables: BTreeMap<Str, Arc<Table>>,
}

impl Catalog {
    /// All schemas by name, the system ones among them.
    pub fn schemas(&self) -> Vec<Arc<SchemaDef>> {
        let mut all: Vec<_> = self.schemas.values().map(|s| s.def.clone()).collect();
        all.extend(SYSTEM_SCHEMAS.iter().map(|name| system_schema(name)));
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

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

    pub fn find_table(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        self.schemas.get(schema)?.tables.get(name).cloned()
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

    pub fn user(&self, user: &str, host: &str) -> Option<Arc<UserDef>> {
        self.users.get(&(user.to_string(), host.to_string())).cloned()
    }

    pub(crate) fn put_schema(&mut self, def: SchemaDef) {
        let tables = self.schemas.get(&def.name).map_or_else(BTreeMap::new, |s| s.tables.clone());
        self.schemas.insert(def.name.clone(), Arc::new(Schema { def: Arc::new(def), tables }));
    }

    pub(crate) fn remove_schema(&mut self, name: &str) {
        self.schemas.remove(name);
    }

    pub(crate) fn put_table(&mut self, table: Arc<Table>) {
        let schema = self.schemas.get_mut(&table.def.schema).expect("a table's schema exists while it is locked");
        Arc::make_mut(schema).tables.insert(table.def.name.clone(), table);
    }

    pub(crate) fn remove_table(&mut self, schema: &str, name: &str) {
        if let Some(schema) = self.schemas.get_mut(schema) {
            Arc::make_mut(schema).tables.remove(name);
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
