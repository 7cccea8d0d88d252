//! USER_PRIVILEGES, SCHEMA_PRIVILEGES, TABLE_PRIVILEGES and COLUMN_PRIVILEGES, those about roles, and the tables of `mysql` that say the same.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use highkey_table::{AccountName, Grants, Privileges, RoutineKind, TableGrants, UserDef};
use highkey_types::{DateTime, Value};

use super::rows::{t, u};
use crate::privileges::{RoleSettings, account, with_roles_of_roles};
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

/// Accounts that MySQL has for itself and nobody can log in as, which restores bring to it and from it.
static SERVER_ACCOUNTS: LazyLock<[Arc<UserDef>; 3]> = LazyLock::new(|| {
    let account = |user: &str, grants: Grants| {
        Arc::new(UserDef {
            user: user.into(),
            plugin: "caching_sha2_password".into(),
            authentication_string: "$A$005$THISISACOMBINATIONOFINVALIDSALTANDPASSWORDTHATMUSTNEVERBRBEUSED".into(),
            account_locked: true,
            grants,
            ..UserDef::root()
        })
    };
    let grants = |(schema, granted): (&str, Privileges), (of, table): (&str, &str)| {
        let mut grants = Grants::default();
        grants.schemas.insert(schema.to_owned(), granted);
        grants.tables.entry(of.to_owned()).or_default().insert(table.to_owned(), TableGrants { table: Privileges::SELECT, ..TableGrants::default() });
        grants
    };
    let mut session = grants(("performance_schema", Privileges::SELECT), ("mysql", "user"));
    session.global = Privileges::SUPER;
    session.dynamic.extend(["PERSIST_RO_VARIABLES_ADMIN", "SYSTEM_VARIABLES_ADMIN"].map(|name| (name.to_owned(), false)));
    [
        account("mysql.infoschema", Grants { global: Privileges::SELECT, ..Grants::default() }),
        account("mysql.session", session),
        account("mysql.sys", grants(("sys", Privileges::TRIGGER), ("sys", "sys_config"))),
    ]
});

/// The accounts that `mysql.user` and its like tell of: those of the catalog, and those that MySQL has for itself.
fn shown_accounts(state: &SessionState) -> Vec<Arc<UserDef>> {
    let mut users = state.instance.database().catalog().users();
    let missing: Vec<_> = SERVER_ACCOUNTS.iter().filter(|own| !users.iter().any(|user| user.user == own.user && user.host == own.host)).cloned().collect();
    users.extend(missing);
    users.sort_by(|a, b| (&a.user, &a.host).cmp(&(&b.user, &b.host)));
    users
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
    shown_accounts(state).into_iter().map(row).collect()
}

/// `mysql.global_grants`: the dynamic privileges.
pub(super) fn global_grants_table(state: &SessionState) -> Vec<Vec<Value>> {
    let of_user = |user: Arc<UserDef>| {
        let row = |(name, grantable): (&String, &bool)| vec![t(&user.user), t(&user.host), t(name), flag(*grantable)];
        user.grants.dynamic.iter().map(row).collect::<Vec<_>>()
    };
    shown_accounts(state).into_iter().flat_map(of_user).collect()
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
    for user in shown_accounts(state) {
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
    for user in shown_accounts(state) {
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
        for kind in RoutineKind::GRANTED {
            for (schema, routines) in user.grants.routines(kind) {
                for (routine, granted) in routines {
                    let on = [t(&user.host), t(schema), t(&user.user), t(routine), t(kind.name()), t("")];
                    all.push(on.into_iter().chain([set_text(*granted), Value::DateTime(DateTime::default())]).collect());
                }
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

fn yes(on: bool) -> Value {
    t(if on { "YES" } else { "NO" })
}

/// The session's own account; `None`: it is not there any more.
fn own(state: &SessionState) -> Option<Arc<UserDef>> {
    state.instance.database().catalog().user(&state.client.account_user, &state.client.account_host)
}

fn settings(state: &SessionState) -> RoleSettings {
    RoleSettings::of(&state.instance.globals())
}

/// APPLICABLE_ROLES: the roles of the session's account, active or not, and those of roles. `administered`: those only that who has them may grant.
pub(super) fn applicable_roles(state: &SessionState, administered: bool) -> Vec<Vec<Value>> {
    let Some(own) = own(state) else { return Vec::new() };
    let (catalog, settings) = (state.instance.database().catalog(), settings(state));
    let available = settings.available(&catalog, &own);
    let mut all = Vec::new();
    let mut add = |holder: &UserDef, role: &AccountName| {
        let grantable = holder.grants.administered.contains(role);
        if grantable || !administered {
            let mut row: Vec<Value> = [&own.user, &own.host, &holder.user, &holder.host, &role.user, &role.host].map(t).into();
            row.extend([yes(grantable), yes(own.grants.default_roles.contains(role)), yes(settings.is_mandatory(role))]);
            all.push(row);
        }
    };
    available.iter().for_each(|role| add(&own, role));
    for name in with_roles_of_roles(&catalog, &available) {
        let Some(holder) = catalog.user(&name.user, &name.host) else { continue };
        holder.grants.roles.iter().for_each(|role| add(&holder, role));
    }
    all
}

/// The active roles that the session's account still has.
fn enabled(state: &SessionState) -> BTreeSet<AccountName> {
    let available = own(state).map(|own| settings(state).available(&state.instance.database().catalog(), &own)).unwrap_or_default();
    state.active_roles().intersection(&available).cloned().collect()
}

/// ENABLED_ROLES: the active roles, without those that they have.
pub(super) fn enabled_roles(state: &SessionState) -> Vec<Vec<Value>> {
    let (own, settings) = (own(state), settings(state));
    let is_default = |role: &AccountName| own.as_ref().is_some_and(|own| own.grants.default_roles.contains(role));
    let row = |role: AccountName| vec![t(&role.user), t(&role.host), yes(is_default(&role)), yes(settings.is_mandatory(&role))];
    enabled(state).into_iter().map(row).collect()
}

/// The accounts that the active roles are and have.
fn enabled_accounts(state: &SessionState) -> Vec<Arc<UserDef>> {
    let catalog = state.instance.database().catalog();
    with_roles_of_roles(&catalog, &enabled(state)).iter().filter_map(|role| catalog.user(&role.user, &role.host)).collect()
}

/// ROLE_TABLE_GRANTS. Nobody keeps who granted it.
pub(super) fn role_table_grants(state: &SessionState) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for role in enabled_accounts(state) {
        for (schema, tables) in &role.grants.tables {
            for (table, granted) in tables.iter().filter(|(_, granted)| !granted.table.is_empty()) {
                let on = [t(""), t(""), t(&role.user), t(&role.host), t("def"), t(schema), t(table)];
                all.push(on.into_iter().chain([set_text(granted.table), yes(granted.table.has(Privileges::GRANT))]).collect());
            }
        }
    }
    all
}

/// ROLE_COLUMN_GRANTS.
pub(super) fn role_column_grants(state: &SessionState) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for role in enabled_accounts(state) {
        for (schema, tables) in &role.grants.tables {
            for (table, of_table) in tables {
                for (column, granted) in &of_table.columns {
                    let on = [t(""), t(""), t(&role.user), t(&role.host), t("def"), t(schema), t(table), t(column)];
                    all.push(on.into_iter().chain([set_text(*granted), yes(of_table.table.has(Privileges::GRANT))]).collect());
                }
            }
        }
    }
    all
}

/// `mysql.role_edges`: who has whom as a role, by their hosts first as in MySQL.
pub(super) fn role_edges_table(state: &SessionState) -> Vec<Vec<Value>> {
    let users = state.instance.database().catalog().users();
    let mut edges = Vec::new();
    for holder in &users {
        for role in &holder.grants.roles {
            edges.push((&role.host, &role.user, &holder.host, &holder.user, holder.grants.administered.contains(role)));
        }
    }
    edges.sort();
    edges.into_iter().map(|(from_host, from_user, to_host, to_user, admin)| vec![t(from_host), t(from_user), t(to_host), t(to_user), flag(admin)]).collect()
}

/// `mysql.proxies_priv`.
pub(super) fn proxies_priv_table(state: &SessionState) -> Vec<Vec<Value>> {
    let users = state.instance.database().catalog().users();
    let mut rows = Vec::new();
    for holder in &users {
        for proxied in &holder.grants.proxied {
            let grantable = Value::Int(i64::from(holder.grants.proxied_grantable.contains(proxied)));
            // Who has granted it, and when, is not kept.
            rows.push(vec![t(&holder.host), t(&holder.user), t(&proxied.host), t(&proxied.user), grantable, t(""), Value::DateTime(DateTime::default())]);
        }
    }
    rows
}

/// `mysql.default_roles`.
pub(super) fn default_roles_table(state: &SessionState) -> Vec<Vec<Value>> {
    let users = state.instance.database().catalog().users();
    let mut rows = Vec::new();
    for holder in &users {
        for role in &holder.grants.default_roles {
            rows.push([&holder.host, &holder.user, &role.host, &role.user]);
        }
    }
    rows.sort();
    rows.into_iter().map(|row| row.map(t).into()).collect()
}
