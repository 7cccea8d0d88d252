//! CREATE and DROP ROLE, GRANT and REVOKE of roles, SET ROLE and SET DEFAULT ROLE.

use std::collections::BTreeSet;

use highkey_table::{AccountName, Catalog, Grants, UserDef};
use highkey_types::{MySqlError, errors};

use super::users::quoted_account;
use super::{Failure, Outcome};
use crate::parse::ast::{Grant, RoleChoice, UserName};
use crate::privileges::{RoleSettings, quoted_role, role_name, with_roles_of_roles};
use crate::session::{Session, error};

impl Session {
    fn role_settings(&self) -> RoleSettings {
        RoleSettings::of(&self.state.instance.globals())
    }

    /// CREATE ROLE: an account that nobody can log in to.
    pub(crate) async fn create_role(&mut self, if_not_exists: bool, roles: &[UserName]) -> Result<Outcome, Failure> {
        let mut failed = Vec::new();
        let mut wanted = Vec::new();
        for AccountName { user, host } in roles.iter().map(role_name) {
            if user.is_empty() {
                return Err(error::err(1396, "Operation CREATE ROLE failed for anonymous user").into());
            }
            if user.chars().count() > 32 {
                return Err(error::err(1470, format!("String '{user}' is too long for user name (should be no longer than 32)")).into());
            }
            let account = (user, host);
            let (user, host) = &account;
            if self.find_account(user, host).is_none() && !wanted.contains(&account) {
                wanted.push(account);
            } else if if_not_exists {
                self.state.note(3163, format!("Authorization ID '{user}'@'{host}' already exists."));
            } else {
                failed.push(format!("'{user}'@'{host}'"));
            }
        }
        let failed = self.failed("CREATE ROLE", &failed)?;
        for (user, host) in wanted {
            let cx = self.account_context(format!("CREATE ROLE {}", quoted_account(&user, &host)));
            let plugin = self.state.instance.global_text("default_authentication_plugin");
            let role = UserDef { user, host, plugin, authentication_string: String::new(), password_expired: true, account_locked: true, grants: Grants::default() };
            self.state.instance.database().clone().create_user(&cx, role).await?;
        }
        failed.map_or(Ok(Outcome::ok()), |e| Err(e.into()))
    }

    /// Error 3628 for a role that every account has.
    pub(super) fn check_not_mandatory(&self, roles: &[AccountName]) -> Result<(), MySqlError> {
        let settings = self.role_settings();
        match roles.iter().find(|role| settings.is_mandatory(role)) {
            Some(role) => Err(errors::mandatory_role(&role.user, &role.host)),
            None => Ok(()),
        }
    }

    /// Error 3523 unless there is such an account.
    fn check_authid(&self, name: &AccountName) -> Result<(), MySqlError> {
        if self.find_account(&name.user, &name.host).is_some() { Ok(()) } else { Err(errors::unknown_authid(&name.user, &name.host)) }
    }

    /// Error 1227: who grants a role and takes it away has ROLE_ADMIN, or the role WITH ADMIN OPTION.
    pub(super) fn check_role_grantor(&self, roles: &[AccountName]) -> Result<(), MySqlError> {
        match self.state.access() {
            Some(access) if !access.has_dynamic_or_super("ROLE_ADMIN") && !roles.iter().all(|role| access.administers(role)) => {
                Err(errors::specific_access_denied_error("WITH ADMIN, ROLE_ADMIN, SUPER"))
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn grant_roles(&mut self, grant: &Grant, granting: bool) -> Result<Outcome, Failure> {
        let roles: Vec<AccountName> = grant.roles.iter().map(role_name).collect();
        let accounts: Vec<AccountName> = grant.users.iter().map(|name| self.account_of(name)).collect();
        self.check_role_grantor(&roles)?;
        if !granting {
            self.check_not_mandatory(&roles)?;
        }
        // What fails for one account changes none.
        for account in &accounts {
            self.check_authid(account)?;
            for role in &roles {
                if granting && role.user.is_empty() {
                    return Err(errors::failed_role_grant(format!("``@`{}`", role.host), quoted_role(account)).into());
                }
                self.check_authid(role)?;
                if granting {
                    check_no_loop(&self.state.instance.database().catalog(), role, account)?;
                }
            }
        }
        let named: Vec<String> = roles.iter().map(|role| quoted_account(&role.user, &role.host)).collect();
        let named = named.join(", ");
        for account in &accounts {
            let to = quoted_account(&account.user, &account.host);
            let cx = self.account_context(if granting {
                format!("GRANT {named} TO {to}{}", if grant.grant_option { " WITH ADMIN OPTION" } else { "" })
            } else {
                format!("REVOKE {named} FROM {to}")
            });
            let database = self.state.instance.database().clone();
            let change = |grants: &mut Grants| {
                if !granting {
                    roles.iter().for_each(|role| grants.remove_role(role));
                    return Ok(());
                }
                // As the accounts are now that nobody else changes them.
                let catalog = database.catalog();
                for role in &roles {
                    if catalog.user(&role.user, &role.host).is_none() {
                        return Err(errors::unknown_authid(&role.user, &role.host));
                    }
                    check_no_loop(&catalog, role, account)?;
                    grants.roles.insert(role.clone());
                    if grant.grant_option {
                        grants.administered.insert(role.clone());
                    }
                }
                Ok(())
            };
            database.change_grants(&cx, &account.user, &account.host, change).await?;
        }
        Ok(Outcome::ok())
    }

    /// SET ROLE. Error 3530 for a role that the account does not have.
    pub(crate) fn set_role(&mut self, choice: &RoleChoice) -> Result<Outcome, Failure> {
        let client = &self.state.client;
        let own = AccountName { user: client.account_user.clone(), host: client.account_host.clone() };
        let settings = self.role_settings();
        let catalog = self.state.instance.database().catalog();
        let account = catalog.user(&own.user, &own.host);
        let available = account.as_deref().map(|account| settings.available(&catalog, account)).unwrap_or_default();
        let active = match choice {
            RoleChoice::None => BTreeSet::new(),
            RoleChoice::All => available,
            RoleChoice::AllExcept(names) => {
                let except: BTreeSet<AccountName> = names.iter().map(role_name).collect();
                available.difference(&except).cloned().collect()
            }
            RoleChoice::Default => account.as_deref().map(|account| settings.default_roles(&catalog, account)).unwrap_or_default(),
            RoleChoice::These(names) => {
                let roles: BTreeSet<AccountName> = names.iter().map(role_name).collect();
                check_available(&roles, &available, &own)?;
                roles
            }
        };
        self.state.set_active_roles(active);
        Ok(Outcome::ok())
    }

    /// SET DEFAULT ROLE and ALTER USER … DEFAULT ROLE. Errors 3530 for a role that an account does not have, 3523 for ALL of one that is not there.
    pub(crate) async fn set_default_role(&mut self, choice: &RoleChoice, users: &[UserName]) -> Result<Outcome, Failure> {
        let accounts: Vec<AccountName> = users.iter().map(|name| self.account_of(name)).collect();
        // What fails for one account changes none.
        for account in &accounts {
            self.lasting_roles(choice, account)?;
        }
        for account in &accounts {
            let roles = self.lasting_roles(choice, account)?;
            if self.find_account(&account.user, &account.host).is_none() {
                continue;
            }
            let named: Vec<String> = roles.iter().map(|role| quoted_account(&role.user, &role.host)).collect();
            let named = if named.is_empty() { "NONE".to_owned() } else { named.join(", ") };
            let cx = self.account_context(format!("SET DEFAULT ROLE {named} TO {}", quoted_account(&account.user, &account.host)));
            let (settings, database) = (self.role_settings(), self.state.instance.database().clone());
            let change = |grants: &mut Grants| {
                // What has been taken away meanwhile does not last.
                let catalog = database.catalog();
                let there = catalog.user(&account.user, &account.host);
                let available = there.map(|there| settings.available(&catalog, &there)).unwrap_or_default();
                grants.default_roles = roles.intersection(&available).cloned().collect();
                Ok(())
            };
            database.change_grants(&cx, &account.user, &account.host, change).await?;
        }
        Ok(Outcome::ok())
    }

    /// The roles of an account that a choice for its default roles means.
    fn lasting_roles(&self, choice: &RoleChoice, account: &AccountName) -> Result<BTreeSet<AccountName>, MySqlError> {
        let catalog = self.state.instance.database().catalog();
        let available = catalog.user(&account.user, &account.host).map(|found| self.role_settings().available(&catalog, &found));
        match choice {
            RoleChoice::These(names) => {
                let roles = names.iter().map(role_name).collect();
                check_available(&roles, &available.unwrap_or_default(), account)?;
                Ok(roles)
            }
            RoleChoice::All => available.ok_or_else(|| errors::unknown_authid(&account.user, &account.host)),
            // The parser takes no others here.
            RoleChoice::None | RoleChoice::AllExcept(_) | RoleChoice::Default => Ok(BTreeSet::new()),
        }
    }

    pub(super) fn account_of(&self, name: &UserName) -> AccountName {
        let (user, host) = self.account_name(name);
        AccountName { user, host }
    }
}

/// Error 3530 for the first of `roles` that an account does not have.
pub(crate) fn check_available(roles: &BTreeSet<AccountName>, available: &BTreeSet<AccountName>, account: &AccountName) -> Result<(), MySqlError> {
    match roles.difference(available).next() {
        Some(role) => Err(errors::role_not_granted(&role.user, &role.host, &account.user, &account.host)),
        None => Ok(()),
    }
}

/// Error 4027 if the account is the role, or is itself a role of it. (MySQL 8.0.12 grants in circles; later releases do not.)
fn check_no_loop(catalog: &Catalog, role: &AccountName, account: &AccountName) -> Result<(), MySqlError> {
    if with_roles_of_roles(catalog, &[role.clone()].into()).contains(account) {
        return Err(errors::role_granted_to_itself(quoted_role(account), quoted_role(role)));
    }
    Ok(())
}
