//! Privileges: what the account of a session may do, and the errors for what it may not.
//!
//! The catalog keeps each account's [`Grants`](highkey_table::Grants). An [`Access`] is an account as it was at one moment; a session has one, and takes
//! another as soon as any account has changed (`SessionState::refresh_access`). `None` in place of one means that everything is allowed, which costs a check
//! one branch. Kept plans hold under the number of the accounts' version that they were bound under.
//!
//! - Tables and columns of SELECT, INSERT, UPDATE, DELETE and LOAD DATA are checked where the binder resolves their names (`bind::privileges`), those inside a
//!   view for its definer or its invoker.
//! - `statements.rs` checks all other statements before they run.
//! - With a temporary table its session may do everything: CREATE TEMPORARY TABLES has been asked for when it was made.
//! - What lists (SHOW, information_schema) leaves out what may not be seen.
//! - `roles.rs`: with the roles that are active an account may do what they may, too. A session has its active roles (`SessionState::active_roles`); a view's
//!   definer has those that its sessions begin with.
//! - `text.rs` writes grants as the statements that would make them.

mod roles;
mod statements;
mod text;

use std::collections::BTreeSet;
use std::sync::Arc;

use highkey_table::{AccountName, Catalog, DYNAMIC_PRIVILEGES, Grants, Privileges, RoutineKind, TableGrants, UserDef};
use highkey_types::{Collation, MySqlError, errors};

pub use roles::{RoleSettings, grants_with_roles, quoted_role, quoted_roles, role_name, with_roles_of_roles};
pub use text::{account, column_cell, grant_statements};

/// Tables of performance_schema that every account may read.
const WORLD_READABLE: [&str; 6] =
    ["global_status", "global_variables", "persisted_variables", "session_account_connect_attrs", "session_status", "session_variables"];

/// What an account may do, and how errors name it.
#[derive(Clone, Debug)]
pub struct Access {
    account: Arc<UserDef>,
    /// What it may do with its active roles; `None`: none is active.
    with_roles: Option<Arc<Grants>>,
    /// Where the client is.
    client_host: String,
}

impl Access {
    /// What the account may do: `None` for everything. `active` gives its active roles. An account that is not there any more may do nothing.
    pub fn of(catalog: &Catalog, user: &str, host: &str, client_host: &str, active: impl FnOnce(&UserDef) -> BTreeSet<AccountName>) -> Option<Arc<Access>> {
        let found = catalog.user(user, host);
        let active = found.as_deref().map(active).unwrap_or_default();
        let account = found.unwrap_or_else(|| {
            Arc::new(UserDef {
                user: user.to_owned(),
                host: host.to_owned(),
                plugin: String::new(),
                authentication_string: String::new(),
                password_expired: false,
                account_locked: true,
                grants: Grants::default(),
            })
        });
        let with_roles = (!active.is_empty()).then(|| Arc::new(grants_with_roles(catalog, &account, &active)));
        let access = Access { account, with_roles, client_host: client_host.to_owned() };
        let Grants { global, dynamic, .. } = access.grants();
        let everything = global.has(Privileges::ALL.and(Privileges::GRANT)) && DYNAMIC_PRIVILEGES.iter().all(|name| dynamic.get(*name) == Some(&true));
        if everything { None } else { Some(Arc::new(access)) }
    }

    fn grants(&self) -> &Grants {
        self.with_roles.as_deref().unwrap_or(&self.account.grants)
    }

    /// It may grant the role: an active role of its has it WITH ADMIN OPTION, or the account itself has it so and it is active.
    pub fn administers(&self, role: &AccountName) -> bool {
        self.with_roles.as_ref().is_some_and(|grants| grants.administered.contains(role))
    }

    /// ON *.*
    pub fn global(&self) -> Privileges {
        self.grants().global
    }

    /// The dynamic privilege.
    pub fn has_dynamic(&self, name: &str) -> bool {
        self.grants().dynamic.contains_key(name)
    }

    /// The dynamic privilege, or SUPER, which was split into most of them.
    pub fn has_dynamic_or_super(&self, name: &str) -> bool {
        self.has_dynamic(name) || self.global().has(Privileges::SUPER)
    }

    /// It may grant the dynamic privilege.
    pub fn may_grant_dynamic(&self, name: &str) -> bool {
        self.grants().dynamic.get(name) == Some(&true)
    }

    /// What it may do with all tables of a schema.
    pub fn schema(&self, schema: &str) -> Privileges {
        if schema.eq_ignore_ascii_case("information_schema") {
            return Privileges::SELECT;
        }
        // A name with a wildcard in it is a pattern among the grants, which others may say more than.
        let exact = self.grants().schemas.get(schema).filter(|_| !schema.contains(['%', '_', '\\'])).copied();
        let granted = exact.unwrap_or_else(|| {
            let matching = self.grants().schemas.iter().filter(|(pattern, _)| matches(pattern, schema));
            if self.with_roles.is_some() {
                // Each of them may be another role's.
                return matching.fold(Privileges::NONE, |all, (_, granted)| all.and(*granted));
            }
            // The one that says most about the name.
            matching.max_by_key(|(pattern, _)| first_wildcard(pattern)).map(|(_, granted)| *granted).unwrap_or_default()
        });
        self.global().and(granted)
    }

    /// What it may do with all schemas that a pattern of GRANT means.
    pub fn schema_pattern(&self, pattern: &str) -> Privileges {
        if first_wildcard(pattern) == usize::MAX {
            return self.schema(&unescaped(pattern));
        }
        self.global().and(self.grants().schemas.get(pattern).copied().unwrap_or_default())
    }

    /// What has been granted on a table itself.
    fn of_table(&self, schema: &str, table: &str) -> Option<&TableGrants> {
        self.grants().tables.get(schema)?.get(table)
    }

    /// What it may do with the whole of a table.
    pub fn table(&self, schema: &str, table: &str) -> Privileges {
        let granted = self.of_table(schema, table).map(|grants| grants.table).unwrap_or_default();
        let world = schema.eq_ignore_ascii_case("performance_schema") && WORLD_READABLE.iter().any(|name| name.eq_ignore_ascii_case(table));
        let readable = if world { Privileges::SELECT } else { Privileges::NONE };
        self.schema(schema).and(granted).and(readable)
    }

    /// What it may do with a column.
    pub fn column(&self, schema: &str, table: &str, column: &str) -> Privileges {
        let columns = self.of_table(schema, table).map(|grants| &grants.columns);
        let granted = columns.into_iter().flatten().filter(|(name, _)| name.to_lowercase() == column.to_lowercase());
        granted.fold(self.table(schema, table), |all, (_, granted)| all.and(*granted))
    }

    /// What it may do with a table or some column of it.
    pub fn any_column(&self, schema: &str, table: &str) -> Privileges {
        let columns = self.of_table(schema, table).map(|grants| &grants.columns);
        columns.into_iter().flatten().fold(self.table(schema, table), |all, (_, granted)| all.and(*granted))
    }

    /// What it may do with a stored routine.
    pub fn routine(&self, kind: RoutineKind, schema: &str, name: &str) -> Privileges {
        let granted = self.grants().routines(kind).get(schema).and_then(|routines| routines.get(&name.to_lowercase()));
        self.schema(schema).and(granted.copied().unwrap_or_default())
    }

    /// Error 1370.
    pub fn check_routine(&self, wanted: Privileges, kind: RoutineKind, schema: &str, name: &str) -> Result<(), MySqlError> {
        let missing = wanted.without(self.routine(kind, schema, name));
        if missing.is_empty() {
            return Ok(());
        }
        let command = missing.names().collect::<Vec<_>>().join(", ").to_lowercase();
        Err(errors::procaccess_denied_error(command, &self.account.user, &self.account.host, format!("{schema}.{name}")))
    }

    /// The schema is listed: it may do something there.
    pub fn sees_schema(&self, schema: &str) -> bool {
        self.schema(schema).has_any(Privileges::OF_SCHEMA.and(Privileges::SHOW_DATABASES).and(Privileges::GRANT))
            || self.grants().tables.contains_key(schema)
            || RoutineKind::GRANTED.into_iter().any(|kind| self.grants().routines(kind).contains_key(schema))
    }

    /// The table is listed: it may do something with it.
    pub fn sees_table(&self, schema: &str, table: &str) -> bool {
        self.any_column(schema, table).has_any(Privileges::OF_TABLE)
    }

    /// Error 1227 with the privileges' names, unless it has one of them ON *.*.
    pub fn check_global(&self, wanted: Privileges, names: &str) -> Result<(), MySqlError> {
        if self.global().has_any(wanted) { Ok(()) } else { Err(errors::specific_access_denied_error(names)) }
    }

    /// Error 1227, unless it has SUPER or the dynamic privilege.
    pub fn check_dynamic(&self, name: &str) -> Result<(), MySqlError> {
        if self.has_dynamic_or_super(name) { Ok(()) } else { Err(errors::specific_access_denied_error(format!("SUPER or {name}"))) }
    }

    /// Error 1044.
    pub fn check_schema(&self, wanted: Privileges, schema: &str) -> Result<(), MySqlError> {
        if self.schema(schema).has(wanted) { Ok(()) } else { Err(self.schema_denied(schema)) }
    }

    /// Error 1142 with what is missing.
    pub fn check_table(&self, wanted: Privileges, schema: &str, table: &str) -> Result<(), MySqlError> {
        self.check_found(wanted, self.table(schema, table), schema, table)
    }

    /// Error 1142 with what it has for no column of the table.
    pub fn check_any_column(&self, wanted: Privileges, schema: &str, table: &str) -> Result<(), MySqlError> {
        self.check_found(wanted, self.any_column(schema, table), schema, table)
    }

    fn check_found(&self, wanted: Privileges, found: Privileges, schema: &str, table: &str) -> Result<(), MySqlError> {
        let missing = wanted.without(found);
        if missing.is_empty() {
            return Ok(());
        }
        if schema.eq_ignore_ascii_case("information_schema") {
            return Err(self.schema_denied(schema));
        }
        Err(self.table_denied(&missing.names().collect::<Vec<_>>().join(", "), table))
    }

    /// Error 1143.
    pub fn check_column(&self, wanted: Privileges, schema: &str, table: &str, column: &str) -> Result<(), MySqlError> {
        let missing = wanted.without(self.column(schema, table, column));
        if missing.is_empty() {
            return Ok(());
        }
        let command = missing.names().collect::<Vec<_>>().join(", ");
        Err(errors::columnaccess_denied_error(command, &self.account.user, &self.client_host, column, table))
    }

    /// Error 1142.
    pub fn table_denied(&self, command: &str, table: &str) -> MySqlError {
        errors::tableaccess_denied_error(command, &self.account.user, &self.client_host, table)
    }

    /// Error 1044.
    pub fn schema_denied(&self, schema: &str) -> MySqlError {
        errors::dbaccess_denied_error(&self.account.user, &self.account.host, schema)
    }

    /// Error 1045.
    pub fn denied(&self) -> MySqlError {
        let password = if self.account.authentication_string.is_empty() { "NO" } else { "YES" };
        errors::access_denied_error(&self.account.user, &self.account.host, password)
    }
}

/// Where the first `%` or `_` of a schema's pattern is; `usize::MAX`: it has none and means one schema.
fn first_wildcard(pattern: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in pattern.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'%' | b'_' => return at,
            _ => {}
        }
    }
    usize::MAX
}

/// A pattern without wildcards as the name that it means.
fn unescaped(pattern: &str) -> String {
    let mut name = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        name.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    name
}

fn matches(pattern: &str, schema: &str) -> bool {
    let collation = Collation::by_name("utf8mb4_bin").unwrap_or_else(Collation::utf8mb4);
    collation.like(schema.as_bytes(), pattern.as_bytes(), Some('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(grants: Grants) -> Access {
        let account = UserDef {
            user: "u".into(),
            host: "%".into(),
            plugin: "mysql_native_password".into(),
            authentication_string: String::new(),
            password_expired: false,
            account_locked: false,
            grants,
        };
        Access { account: Arc::new(account), with_roles: None, client_host: "h".into() }
    }

    #[test]
    fn the_pattern_that_says_most_counts_alone() {
        let mut grants = Grants::default();
        grants.schemas.insert("%".into(), Privileges::SELECT);
        grants.schemas.insert("ab%".into(), Privileges::INSERT);
        grants.schemas.insert("a_c".into(), Privileges::UPDATE);
        grants.schemas.insert("abd".into(), Privileges::DELETE);
        grants.schemas.insert("x\\_y".into(), Privileges::DROP);
        grants.schemas.insert("x_y".into(), Privileges::ALTER);
        let mut access = access(grants);
        assert_eq!(access.schema("other"), Privileges::SELECT);
        assert_eq!(access.schema("abc"), Privileges::INSERT);
        assert_eq!(access.schema("axc"), Privileges::UPDATE);
        assert_eq!(access.schema("abd"), Privileges::DELETE);
        assert_eq!(access.schema("x_y"), Privileges::DROP);
        assert_eq!(access.schema("xzy"), Privileges::ALTER);
        assert_eq!(access.schema_pattern("x\\_y"), Privileges::DROP);
        assert_eq!(access.schema_pattern("x_y"), Privileges::ALTER);
        assert_eq!(access.schema_pattern("x_z"), Privileges::NONE);
        assert_eq!(access.schema("information_schema"), Privileges::SELECT);
        // Those of several roles count together, but for one that is the name.
        access.with_roles = Some(Arc::new(access.account.grants.clone()));
        assert_eq!(access.schema("abd"), Privileges::DELETE);
        assert_eq!(access.schema("x_y"), Privileges::SELECT.and(Privileges::ALTER).and(Privileges::DROP));
    }

    #[test]
    fn a_table_has_what_is_above_it_and_columns_what_is_theirs() {
        let mut grants = Grants { global: Privileges::PROCESS, ..Grants::default() };
        grants.schemas.insert("d".into(), Privileges::SELECT);
        grants.tables.entry("d".into()).or_default().insert("t".into(), TableGrants { table: Privileges::INSERT, columns: [("a".to_owned(), Privileges::UPDATE)].into() });
        grants.tables.entry("e".into()).or_default().insert("t".into(), TableGrants { table: Privileges::NONE, columns: [("a".to_owned(), Privileges::SELECT)].into() });
        let access = access(grants);
        assert!(access.check_table(Privileges::SELECT.and(Privileges::INSERT), "d", "t").is_ok());
        let error = access.check_table(Privileges::INSERT.and(Privileges::DELETE), "d", "other").unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (1142, "INSERT, DELETE command denied to user 'u'@'h' for table 'other'"));
        assert!(access.check_column(Privileges::UPDATE, "d", "t", "A").is_ok());
        let error = access.check_column(Privileges::UPDATE, "d", "t", "b").unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (1143, "UPDATE command denied to user 'u'@'h' for column 'b' in table 't'"));
        assert!(access.check_any_column(Privileges::SELECT, "e", "t").is_ok() && access.check_table(Privileges::SELECT, "e", "t").is_err());
        assert!(access.sees_schema("d") && access.sees_schema("e") && !access.sees_schema("f"));
        assert!(access.sees_table("e", "t") && !access.sees_table("e", "s") && access.sees_table("d", "whatever"));
        assert_eq!(access.check_schema(Privileges::DROP, "d").unwrap_err().message, "Access denied for user 'u'@'%' to database 'd'");
        assert!(access.check_global(Privileges::PROCESS, "PROCESS").is_ok() && access.check_global(Privileges::RELOAD, "RELOAD").is_err());
    }
}
