//! Tables of the server's own that a restore makes, and the accounts that they tell of.
//!
//! What `mysql.user` and the others show are rows that are made when a query asks. The restore of a dump of all databases drops such a table, makes it and fills it: while a table of
//! the catalog has the name it stands before the server's own. `Database::load_privileges`, which is FLUSH PRIVILEGES, takes the accounts from the tables that are there, keeps of the accounts what no
//! table tells of, and drops the tables, all in one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use highkey_storage::{Direction, Isolation};
use highkey_types::{MySqlError, Value};

use crate::catalog::{Catalog, keys};
use crate::database::Database;
use crate::ddl::DdlContext;
use crate::def::{TableId, UserDef, is_system_schema};
use crate::error;
use crate::foreign::define;
use crate::grants::{AccountName, Grants, Privileges, TableGrants};
use crate::high_water;
use crate::metadata_lock::Name;
use crate::routine::RoutineKind;
use crate::row::RowBatch;
use crate::scan::KeyRange;
use crate::table::Table;

/// Tables of `mysql` that tell of accounts.
const OF_ACCOUNTS: [&str; 9] =
    ["columns_priv", "db", "default_roles", "global_grants", "procs_priv", "proxies_priv", "role_edges", "tables_priv", "user"];

/// Tables of `mysql` that show how the server is: what is restored there is past.
const OF_STATE: [&str; 7] =
    ["gtid_executed", "innodb_index_stats", "innodb_table_stats", "slave_master_info", "slave_relay_log_info", "slave_worker_info", "time_zone_name"];

/// The other tables that MySQL 8.0 has in `mysql`. They keep what is restored.
const KEPT: [&str; 17] = [
    "component", "engine_cost", "func", "general_log", "help_category", "help_keyword", "help_relation", "help_topic", "password_history", "plugin", "server_cost", "servers", "slow_log",
    "time_zone", "time_zone_leap_second", "time_zone_transition", "time_zone_transition_type",
];

/// Columns of `mysql.user`, and some of `mysql.db`, that say Y or N of a privilege, in the order of its bits.
const FLAGS: [&str; 31] = [
    "select_priv", "insert_priv", "update_priv", "delete_priv", "create_priv", "drop_priv", "reload_priv", "shutdown_priv", "process_priv", "file_priv", "grant_priv", "references_priv",
    "index_priv", "alter_priv", "show_db_priv", "super_priv", "create_tmp_table_priv", "lock_tables_priv", "execute_priv", "repl_slave_priv", "repl_client_priv", "create_view_priv",
    "show_view_priv", "create_routine_priv", "alter_routine_priv", "create_user_priv", "event_priv", "trigger_priv", "create_tablespace_priv", "create_role_priv", "drop_role_priv",
];

/// A table that MySQL has in a schema of its own, and that a restore therefore makes.
pub fn is_server_table(schema: &str, name: &str) -> bool {
    match schema {
        "mysql" => [&OF_ACCOUNTS[..], &OF_STATE, &KEPT].iter().any(|names| names.contains(&name)),
        "sys" => name == "sys_config",
        _ => false,
    }
}

/// Error 3552 for a table of a system schema that a restore would not make.
pub(crate) fn refuse_system_table(schema: &str, name: &str) -> Result<(), MySqlError> {
    if is_system_schema(schema) && !is_server_table(schema, name) { Err(error::system_schema(schema)) } else { Ok(()) }
}

/// Error 3552 for a table of a system schema that no restore has made.
pub(crate) fn refuse_unless_restored(catalog: &Catalog, schema: &str, name: &str) -> Result<(), MySqlError> {
    if is_system_schema(schema) && catalog.find_table(schema, name).is_none() { Err(error::system_schema(schema)) } else { Ok(()) }
}

/// Name and host, the key of an account.
type Key = (String, String);

impl Database {
    /// A restore has made tables that FLUSH PRIVILEGES reads or drops.
    pub fn has_restored_privileges(&self) -> bool {
        !self.restored_tables().is_empty()
    }

    fn restored_tables(&self) -> Vec<Arc<Table>> {
        let catalog = self.catalog();
        OF_ACCOUNTS.iter().chain(&OF_STATE).filter_map(|name| catalog.find_table("mysql", name)).collect()
    }

    /// FLUSH PRIVILEGES: takes the accounts from the tables of `mysql` that a restore has made, and drops these and those of the server's state. Returns what it has dropped. Without such
    /// tables it does nothing, and the binary log is told nothing. Error 1728 for a table without the columns that name accounts, and for a `mysql.user` without rows; 3730 for a table
    /// that another one references. Nothing has changed then.
    pub async fn load_privileges(self: &Arc<Self>, cx: &DdlContext) -> Result<Vec<TableId>, MySqlError> {
        if !self.has_restored_privileges() {
            return Ok(Vec::new());
        }
        // `mysql.user` is what statements about accounts lock too.
        let names: Vec<Name> = OF_ACCOUNTS.iter().chain(&OF_STATE).map(|name| ("mysql".into(), (*name).into())).collect();
        let _locks = self.lock_related(cx, names, &[]).await?;
        let tables = self.restored_tables();
        define::check_dropped(cx, &tables)?;
        let before = self.catalog().users();
        let accounts = self.restored_accounts(&tables, &before)?;
        let gone: Vec<&Arc<UserDef>> = before.iter().filter(|old| !accounts.contains_key(&key_of(old))).collect();
        let accounts: Vec<UserDef> = accounts.into_values().collect();
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        for old in &gone {
            high_water::remove(&mut txn, self.catalog_index(), &keys::user(&old.user, &old.host))?;
        }
        self.put_accounts(&mut txn, &accounts)?;
        for table in &tables {
            self.drop_records(&mut txn, table)?;
        }
        cx.commit(self, txn)?;
        self.publish_accounts(accounts, |catalog| {
            for old in &gone {
                catalog.remove_user(&old.user, &old.host);
            }
            for table in &tables {
                catalog.remove_table(&table.def.schema, &table.def.name);
                table.retire();
            }
        });
        Ok(tables.iter().map(|table| table.id()).collect())
    }

    /// The accounts as the tables tell of them: what there is no table for is as it was.
    fn restored_accounts(self: &Arc<Self>, tables: &[Arc<Table>], before: &[Arc<UserDef>]) -> Result<BTreeMap<Key, UserDef>, MySqlError> {
        let read = |name: &str| tables.iter().find(|table| &*table.def.name == name).map(|table| self.rows_of(table)).transpose();
        let mut accounts: BTreeMap<Key, UserDef> = before.iter().map(|user| (key_of(user), (**user).clone())).collect();
        if let Some(rows) = read("user")? {
            // A restore that has not come to the rows: nobody could log in again.
            if rows.rows.is_empty() {
                return Err(error::cannot_load("mysql", "user"));
            }
            let mut kept = std::mem::take(&mut accounts);
            for row in rows.each() {
                let (key, user) = account(&row, &mut kept)?;
                accounts.insert(key, user);
            }
        }
        // Of an account that has gone, or never was, rows grant nothing.
        type Take = fn(&mut Grants, &RestoredRow<'_>) -> Result<(), MySqlError>;
        type Forget = fn(&mut Grants);
        let sources: [(&str, Forget, Take); 8] = [
            ("global_grants", |grants| grants.dynamic.clear(), dynamic),
            ("db", |grants| grants.schemas.clear(), of_schema),
            ("tables_priv", forget_tables, of_table),
            ("columns_priv", forget_columns, of_column),
            ("procs_priv", forget_routines, of_routine),
            ("proxies_priv", forget_proxied, of_proxied),
            ("role_edges", forget_roles, of_role),
            ("default_roles", |grants| grants.default_roles.clear(), of_default_role),
        ];
        for (name, forget, take) in sources {
            let Some(rows) = read(name)? else { continue };
            accounts.values_mut().for_each(|account| forget(&mut account.grants));
            let (user, host) = if name == "role_edges" { ("to_user", "to_host") } else { ("user", "host") };
            for row in rows.each() {
                if let Some(account) = accounts.get_mut(&(row.name(user)?, row.name(host)?.to_lowercase())) {
                    take(&mut account.grants, &row)?;
                }
            }
        }
        let known: Vec<Key> = accounts.keys().cloned().collect();
        let is_known = |role: &AccountName| known.binary_search(&(role.user.clone(), role.host.clone())).is_ok();
        for account in accounts.values_mut() {
            let grants = &mut account.grants;
            grants.roles.retain(is_known);
            grants.administered.retain(is_known);
            grants.default_roles.retain(is_known);
            grants.tidy();
        }
        Ok(accounts)
    }

    /// All rows of a table that nobody else uses.
    fn rows_of(self: &Arc<Self>, table: &Arc<Table>) -> Result<RestoredRows, MySqlError> {
        let columns = table.def.columns.iter().enumerate().map(|(at, column)| (column.name.to_lowercase(), at)).collect();
        let mut txn = self.begin(Isolation::ReadCommitted);
        let mut scan = table.scan(&mut txn, 0, &KeyRange::all(), Direction::Forward)?;
        let mut batch = RowBatch::new();
        let mut rows = Vec::new();
        while scan.next_batch(&mut batch)? {
            rows.extend((0..batch.len()).map(|row| batch.values(row)));
        }
        Ok(RestoredRows { table: table.def.name.to_string(), columns, rows })
    }
}

/// The rows of a table, and where its columns are, by their names in lower case.
struct RestoredRows {
    table: String,
    columns: BTreeMap<String, usize>,
    rows: Vec<Vec<Value>>,
}

impl RestoredRows {
    fn each(&self) -> impl Iterator<Item = RestoredRow<'_>> {
        self.rows.iter().map(|values| RestoredRow { of: self, values })
    }
}

struct RestoredRow<'a> {
    of: &'a RestoredRows,
    values: &'a [Value],
}

impl RestoredRow<'_> {
    fn value(&self, column: &str) -> Option<&Value> {
        self.of.columns.get(column).and_then(|at| self.values.get(*at))
    }

    /// Empty for NULL, and for a column that the version that was dumped did not have.
    fn text(&self, column: &str) -> String {
        match self.value(column) {
            Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Some(value) => value.as_str().unwrap_or_default().to_owned(),
            None => String::new(),
        }
    }

    /// Error 1728 without the column.
    fn name(&self, column: &str) -> Result<String, MySqlError> {
        if self.of.columns.contains_key(column) { Ok(self.text(column)) } else { Err(error::cannot_load("mysql", &self.of.table)) }
    }

    fn is_set(&self, column: &str) -> bool {
        match self.value(column) {
            Some(Value::Int(n)) => *n != 0,
            Some(Value::UInt(n)) => *n != 0,
            Some(value) => value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("y")),
            None => false,
        }
    }

    fn flags(&self) -> Privileges {
        Privileges::of_flags(FLAGS.iter().map(|column| self.is_set(column)))
    }

    /// Of a SET of privileges.
    fn members(&self, column: &str) -> Privileges {
        let text = self.text(column).to_uppercase();
        let names = text.split(',').map(|name| if name == "GRANT" { "GRANT OPTION" } else { name });
        names.filter_map(Privileges::by_name).fold(Privileges::NONE, Privileges::and)
    }

    fn account(&self, user: &str, host: &str) -> Result<AccountName, MySqlError> {
        Ok(AccountName { user: self.name(user)?, host: self.name(host)?.to_lowercase() })
    }
}

fn key_of(user: &UserDef) -> Key {
    (user.user.clone(), user.host.clone())
}

/// A row of `mysql.user`. What the other tables tell is as `before` has it.
fn account(row: &RestoredRow<'_>, before: &mut BTreeMap<Key, UserDef>) -> Result<(Key, UserDef), MySqlError> {
    let AccountName { user, host } = row.account("user", "host")?;
    let key = (user.clone(), host.clone());
    let grants = before.remove(&key).map_or_else(Grants::default, |known| known.grants);
    let (mut plugin, mut authentication_string) = (row.name("plugin")?, row.name("authentication_string")?);
    // MySQL before 5.7 has passwords in a column of their own, and names no plugin.
    if plugin.is_empty() {
        plugin = "mysql_native_password".into();
    }
    if authentication_string.is_empty() {
        authentication_string = row.text("password");
    }
    let def = UserDef {
        user,
        host,
        plugin,
        authentication_string,
        password_expired: row.is_set("password_expired"),
        account_locked: row.is_set("account_locked"),
        grants: Grants { global: row.flags(), ..grants },
    };
    Ok((key, def))
}

fn dynamic(grants: &mut Grants, row: &RestoredRow<'_>) -> Result<(), MySqlError> {
    grants.dynamic.insert(row.name("priv")?.to_uppercase(), row.is_set("with_grant_option"));
    Ok(())
}

fn of_schema(grants: &mut Grants, row: &RestoredRow<'_>) -> Result<(), MySqlError> {
    grants.schemas.insert(row.name("db")?, row.flags());
    Ok(())
}

fn forget_tables(grants: &mut Grants) {
    grants.tables.values_mut().flat_map(BTreeMap::values_mut).for_each(|of_table| of_table.table = Privileges::NONE);
}

fn forget_columns(grants: &mut Grants) {
    grants.tables.values_mut().flat_map(BTreeMap::values_mut).for_each(|of_table| of_table.columns.clear());
}

fn forget_routines(grants: &mut Grants) {
    RoutineKind::GRANTED.into_iter().for_each(|kind| grants.routines_mut(kind).clear());
}

fn forget_proxied(grants: &mut Grants) {
    grants.proxied.clear();
    grants.proxied_grantable.clear();
}

fn forget_roles(grants: &mut Grants) {
    grants.roles.clear();
    grants.administered.clear();
}

fn table_grants<'a>(grants: &'a mut Grants, row: &RestoredRow<'_>) -> Result<&'a mut TableGrants, MySqlError> {
    Ok(grants.tables.entry(row.name("db")?).or_default().entry(row.name("table_name")?).or_default())
}

fn of_table(grants: &mut Grants, row: &RestoredRow<'_>) -> Result<(), MySqlError> {
    table_grants(grants, row)?.table = row.members("table_priv");
    Ok(())
}

fn of_column(grants: &mut Grants, row: &RestoredRow<'_>) -> Result<(), MySqlError> {
    let column = row.name("column_name")?;
    table_grants(grants, row)?.columns.insert(column, row.members("column_priv"));
    Ok(())
}

fn of_routine(grants: &mut Grants, row: &RestoredRow<'_>) -> Result<(), MySqlError> {
    let kind = if row.name("routine_type")?.eq_ignore_ascii_case("FUNCTION") { RoutineKind::Function } else { RoutineKind::Procedure };
    let routine = row.name("routine_name")?.to_lowercase();
    grants.routines_mut(kind).entry(row.name("db")?).or_default().insert(routine, row.members("proc_priv"));
    Ok(())
}

fn of_proxied(grants: &mut Grants, row: &RestoredRow<'_>) -> Result<(), MySqlError> {
    let proxied = row.account("proxied_user", "proxied_host")?;
    if row.is_set("with_grant") {
        grants.proxied_grantable.insert(proxied.clone());
    }
    grants.proxied.insert(proxied);
    Ok(())
}

fn of_role(grants: &mut Grants, row: &RestoredRow<'_>) -> Result<(), MySqlError> {
    let role = row.account("from_user", "from_host")?;
    if row.is_set("with_admin_option") {
        grants.administered.insert(role.clone());
    }
    grants.roles.insert(role);
    Ok(())
}

fn of_default_role(grants: &mut Grants, row: &RestoredRow<'_>) -> Result<(), MySqlError> {
    grants.default_roles.insert(row.account("default_role_user", "default_role_host")?);
    Ok(())
}
