//! USER_PRIVILEGES, SCHEMA_PRIVILEGES, TABLE_PRIVILEGES and COLUMN_PRIVILEGES.

use std::sync::Arc;

use highkey_table::{Privileges, UserDef};
use highkey_types::Value;

use super::rows::t;
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
