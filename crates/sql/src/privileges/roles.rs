//! Roles: accounts whose privileges others take on. Those of roles that a role has come with it.

use std::collections::BTreeSet;

use highkey_table::{AccountName, Catalog, Grants, UserDef};

use crate::parse;
use crate::parse::ast::UserName;
use crate::parse::print::quote;
use crate::variables::Values;

/// What the global variables say of roles.
pub struct RoleSettings {
    /// `mandatory_roles`: every account has them, as far as they are there.
    mandatory: BTreeSet<AccountName>,
    /// `activate_all_roles_on_login`.
    activate_all: bool,
}

impl RoleSettings {
    pub fn of(globals: &Values) -> RoleSettings {
        let text = globals.text("mandatory_roles");
        // What is no list of roles is taken by SET as in MySQL, and names none.
        let named = if text.is_empty() { Vec::new() } else { parse::parse_roles(&text).unwrap_or_default() };
        RoleSettings { mandatory: named.iter().map(role_name).collect(), activate_all: globals.bool("activate_all_roles_on_login") }
    }

    /// The mandatory roles that there are, for others than themselves.
    pub fn mandatory_of(&self, catalog: &Catalog, account: &UserDef) -> BTreeSet<AccountName> {
        let there = |role: &&AccountName| (role.user != account.user || role.host != account.host) && catalog.user(&role.user, &role.host).is_some();
        self.mandatory.iter().filter(there).cloned().collect()
    }

    pub fn is_mandatory(&self, role: &AccountName) -> bool {
        self.mandatory.contains(role)
    }

    /// The roles that sessions of an account can make active: those granted to it, and the mandatory ones.
    pub fn available(&self, catalog: &Catalog, account: &UserDef) -> BTreeSet<AccountName> {
        let mut roles = self.mandatory_of(catalog, account);
        roles.extend(account.grants.roles.iter().cloned());
        roles
    }

    /// The default roles of an account, as far as they are available.
    pub fn default_roles(&self, catalog: &Catalog, account: &UserDef) -> BTreeSet<AccountName> {
        if account.grants.default_roles.is_empty() {
            return BTreeSet::new();
        }
        let available = self.available(catalog, account);
        account.grants.default_roles.intersection(&available).cloned().collect()
    }

    /// The roles that are active where a session of the account begins, and in what works for it as a definer.
    pub fn initial(&self, catalog: &Catalog, account: &UserDef) -> BTreeSet<AccountName> {
        if self.activate_all { self.available(catalog, account) } else { self.default_roles(catalog, account) }
    }
}

/// The role that a name means.
pub fn role_name(name: &UserName) -> AccountName {
    AccountName { user: name.user.clone(), host: name.host.to_lowercase() }
}

/// `` `user`@`host` ``
pub fn quoted_role(role: &AccountName) -> String {
    format!("{}@{}", quote(&role.user), quote(&role.host))
}

/// `` `user`@`host`,… ``
pub fn quoted_roles(roles: &BTreeSet<AccountName>) -> String {
    roles.iter().map(quoted_role).collect::<Vec<_>>().join(",")
}

/// What an account may do while `active` roles of its are. Roles that it has WITH ADMIN OPTION it may grant while they are active, as in MySQL.
pub fn grants_with_roles(catalog: &Catalog, account: &UserDef, active: &BTreeSet<AccountName>) -> Grants {
    let mut grants = account.grants.clone();
    grants.administered.retain(|role| active.contains(role));
    for role in with_roles_of_roles(catalog, active) {
        if let Some(role) = catalog.user(&role.user, &role.host) {
            grants.add_role(&role.grants);
        }
    }
    grants
}

/// The roles, those that they have, and so on.
pub fn with_roles_of_roles(catalog: &Catalog, roles: &BTreeSet<AccountName>) -> BTreeSet<AccountName> {
    let mut found = roles.clone();
    let mut left: Vec<AccountName> = roles.iter().cloned().collect();
    while let Some(name) = left.pop() {
        let Some(role) = catalog.user(&name.user, &name.host) else { continue };
        for further in &role.grants.roles {
            if found.insert(further.clone()) {
                left.push(further.clone());
            }
        }
    }
    found
}
