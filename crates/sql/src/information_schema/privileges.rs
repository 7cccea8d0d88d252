//! USER_PRIVILEGES, SCHEMA_PRIVILEGES, TABLE_PRIVILEGES and COLUMN_PRIVILEGES, and the tables of `mysql` that say the same.

use std::sync::Arc;

use highkey_table::{Privileges, UserDef};
use highkey_types::{DateTime, Value};

use super::rows::{t, u};
use crate::privileges::account;
use crate::session::SessionState;

/// All accounts, or the session's own if it may not read those of the others.
fn accounts(state: &SessionState) -> Vec<Arc<UserDef>> {
    let client = &state.client;
    let all = state.access().is_none_or(|access| access.schema("mysql").has(Privileges::SELECT));
    let users = state.instance.database().catalog().users();
    users.into_iter().filter(|user| all || (user.user == client.account_user && user.host == client.account_host)).collect()
}

/// A row for each privilege: who has it, on what, its name, whether it can be granted.
fn rows(user: &UserDef, on: &[&str], names: &[&str], grantable: bool) -> Vec<Vec<Value>> {
    let row = |name: &&str| {
        let mut row = vec![t(account(&user.user, &user.host)), t("def")];
        row.extend(on.iter().map(t));
        row.extend([t(name), t(if grantable { "YES" } else { "NO" })]);
        row
    };
    names.iter().map(row).collect()
}

/// The names without GRANT OPTION; USAGE for nothing.
fn names(privileges: Privileges) -> Vec<&'static str> {
    let privileges = privileges.without(Privileges::GRANT);
    if privileges.is_empty() { vec!["USAGE"] } else { privileges.names().collect() }
}

pub(super) fn of_users(state: &SessionState) -> Vec<Vec<Value>> {
    let of_user = |user: Arc<UserDef>| {
        let grants = &user.grants;
        let mut all = rows(&user, &[], &names(grants.global), grants.global.has(Privileges::GRANT));
        for (name, grantable) in &grants.dynamic {
            all.extend(rows(&user, &[], &[name.as_str()], *grantable));
        }
        all
    };
    accounts(state).into_iter().flat_map(of_user).collect()
}

pub(super) fn of_schemas(state: &SessionState) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for user in accounts(state) {
        for (schema, granted) in &user.grants.schemas {
            all.extend(rows(&user, &[schema.as_str()], &names(*granted), granted.has(Privileges::GRANT)));
        }
    }
    all
}

pub(super) fn of_tables(state: &SessionState) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for user in accounts(state) {
        for (schema, tables) in &user.grants.tables {
            // What is granted for columns only is with the columns.
            for (table, granted) in tables.iter().filter(|(_, granted)| !granted.table.is_empty()) {
                all.extend(rows(&user, &[schema.as_str(), table.as_str()], &names(granted.table), granted.table.has(Privileges::GRANT)));
            }
        }
    }
    all
}

pub(super) fn of_columns(state: &SessionState) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for user in accounts(state) {
        for (schema, tables) in &user.grants.tables {
            for (table, of_table) in tables {
                for (column, granted) in &of_table.columns {
                    let on = [schema.as_str(), table.as_str(), column.as_str()];
                    all.extend(rows(&user, &on, &names(*granted), of_table.table.has(Privileges::GRANT)));
                }
            }
        }
    }
    all
}

fn flag(on: bool) -> Value {
    t(if on { "Y" } else { "N" })
}

/// `mysql.user`. Who may read it sees all accounts.
pub(super) fn user_table(state: &SessionState) -> Vec<Vec<Value>> {
    let row = |user: Arc<UserDef>| {
        let mut flags = user.grants.global.flags().map(flag);
        let mut row = vec![t(&user.host), t(&user.user)];
        // Those about roles came last and stand last.
        row.extend(flags.by_ref().take(29));
        row.extend([t(""), t(""), t(""), t(""), u(0u64), u(0u64), u(0u64), u(0u64)]);
        row.extend([t(&user.plugin), t(&user.authentication_string), flag(user.password_expired), Value::Null, Value::Null, flag(user.account_locked)]);
        row.extend(flags);
        row.extend([Value::Null, Value::Null]);
        row
    };
    state.instance.database().catalog().users().into_iter().map(row).collect()
}

/// `mysql.global_grants`: the dynamic privileges.
pub(super) fn global_grants_table(state: &SessionState) -> Vec<Vec<Value>> {
    let of_user = |user: Arc<UserDef>| {
        let row = |(name, grantable): (&String, &bool)| vec![t(&user.user), t(&user.host), t(name), flag(*grantable)];
        user.grants.dynamic.iter().map(row).collect::<Vec<_>>()
    };
    state.instance.database().catalog().users().into_iter().flat_map(of_user).collect()
}

/// `mysql.db`.
pub(super) fn db_table(state: &SessionState) -> Vec<Vec<Value>> {
    /// In the order of the table's columns.
    const COLUMNS: [Privileges; 19] = [
        Privileges::SELECT,
        Privileges::INSERT,
        Privileges::UPDATE,
        Privileges::DELETE,
        Privileges::CREATE,
        Privileges::DROP,
        Privileges::GRANT,
        Privileges::REFERENCES,
        Privileges::INDEX,
        Privileges::ALTER,
        Privileges::CREATE_TEMPORARY,
        Privileges::LOCK_TABLES,
        Privileges::CREATE_VIEW,
        Privileges::SHOW_VIEW,
        Privileges::CREATE_ROUTINE,
        Privileges::ALTER_ROUTINE,
        Privileges::EXECUTE,
        Privileges::EVENT,
        Privileges::TRIGGER,
    ];
    let mut all = Vec::new();
    for user in state.instance.database().catalog().users() {
        for (schema, granted) in &user.grants.schemas {
            let mut row = vec![t(&user.host), t(schema), t(&user.user)];
            row.extend(COLUMNS.iter().map(|privilege| flag(granted.has(*privilege))));
            all.push(row);
        }
    }
    all
}

/// Privileges as the SETs of `mysql.tables_priv` and `mysql.columns_priv` spell them.
fn set_text(privileges: Privileges) -> Value {
    let spell = |name: &str| match name {
        "CREATE VIEW" => "Create View".to_owned(),
        name => format!("{}{}", &name[..1], name[1..].to_lowercase()),
    };
    t(privileges.names().map(spell).collect::<Vec<_>>().join(","))
}

/// `mysql.tables_priv`. Nobody keeps who granted it, and MySQL does not keep when either.
pub(super) fn tables_priv_table(state: &SessionState) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for user in state.instance.database().catalog().users() {
        for (schema, tables) in &user.grants.tables {
            for (table, granted) in tables {
                let of_columns = granted.columns.values().fold(Privileges::NONE, |all, some| all.and(*some));
                let on = [t(&user.host), t(schema), t(&user.user), t(table), t(""), Value::DateTime(DateTime::default())];
                all.push(on.into_iter().chain([set_text(granted.table), set_text(of_columns)]).collect());
            }
        }
    }
    all
}

/// `mysql.procs_priv`. Who has granted it is not kept.
pub(super) fn procs_priv_table(state: &SessionState) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for user in state.instance.database().catalog().users() {
        for (schema, routines) in &user.grants.routines {
            for (routine, granted) in routines {
                let on = [t(&user.host), t(schema), t(&user.user), t(routine), t("PROCEDURE"), t("")];
                all.push(on.into_iter().chain([set_text(*granted), Value::DateTime(DateTime::default())]).collect());
            }
        }
    }
    all
}

/// `mysql.columns_priv`.
pub(super) fn columns_priv_table(state: &SessionState) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for user in state.instance.database().catalog().users() {
        for (schema, tables) in &user.grants.tables {
            for (table, of_table) in tables {
                for (column, granted) in &of_table.columns {
                    let on = [t(&user.host), t(schema), t(&user.user), t(table), t(column), Value::DateTime(DateTime::default())];
                    all.push(on.into_iter().chain([set_text(*granted)]).collect());
                }
            }
        }
    }
    all
}
