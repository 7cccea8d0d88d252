//! Accounts.

use std::sync::Arc;

use highkey_storage::{Isolation, Txn};
use highkey_types::{MySqlError, errors};

use crate::catalog::{Catalog, keys, record};
use crate::database::Database;
use crate::ddl::DdlContext;
use crate::def::UserDef;
use crate::error;
use crate::grants::{AccountName, Grants};
use crate::high_water;
use crate::transaction::HeldLocks;

impl Database {
    /// CREATE USER and CREATE ROLE. Error 1396 if the account exists, 3523 if one of its roles does not.
    pub async fn create_user(self: &Arc<Self>, cx: &DdlContext, user: UserDef) -> Result<(), MySqlError> {
        let _locks = self.lock_accounts(cx).await?;
        if self.catalog().user(&user.user, &user.host).is_some() {
            return Err(error::user_operation("CREATE USER", &user.user, &user.host));
        }
        if let Some(missing) = user.grants.roles.iter().find(|role| self.catalog().user(&role.user, &role.host).is_none()) {
            return Err(errors::unknown_authid(&missing.user, &missing.host));
        }
        self.store_user(cx, user)
    }

    /// ALTER USER, SET PASSWORD: `change` edits the account, which nobody else changes meanwhile, and returns what the binary log is told in place of the
    /// text of `cx`. Error 1396 if there is no such account.
    pub async fn alter_user(
        self: &Arc<Self>,
        cx: &DdlContext,
        user: &str,
        host: &str,
        change: impl FnOnce(&mut UserDef) -> Result<String, MySqlError>,
    ) -> Result<(), MySqlError> {
        let _locks = self.lock_accounts(cx).await?;
        let Some(current) = self.catalog().user(user, host) else {
            return Err(error::user_operation("ALTER USER", user, host));
        };
        let mut changed = (*current).clone();
        let text = change(&mut changed)?;
        let mut cx = cx.clone();
        if let Some(log) = cx.log.as_mut().map(Arc::make_mut) {
            log.text = text.into();
        }
        self.store_user(&cx, changed)
    }

    /// RENAME USER. Error 1396 if there is no such account or the new name is taken, 3532 if others have it as a role.
    pub async fn rename_user(self: &Arc<Self>, cx: &DdlContext, from: &AccountName, to: &AccountName) -> Result<(), MySqlError> {
        let _locks = self.lock_accounts(cx).await?;
        let catalog = self.catalog();
        let current = catalog.user(&from.user, &from.host).filter(|_| catalog.user(&to.user, &to.host).is_none());
        let Some(current) = current else {
            return Err(error::user_operation("RENAME USER", &from.user, &from.host));
        };
        if catalog.users().iter().any(|holder| holder.grants.names_role(from)) {
            return Err(errors::rename_role());
        }
        let renamed = UserDef { user: to.user.clone(), host: to.host.clone(), ..(*current).clone() };
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::remove(&mut txn, self.catalog_index(), &keys::user(&from.user, &from.host))?;
        let accounts = vec![renamed];
        self.put_accounts(&mut txn, &accounts)?;
        cx.commit(self, txn)?;
        self.publish_accounts(accounts, |catalog| catalog.remove_user(&from.user, &from.host));
        Ok(())
    }

    /// GRANT and REVOKE, SET DEFAULT ROLE: `change` edits what the account may do; no account changes meanwhile. Error 1141 if there is no such account.
    pub async fn change_grants(
        self: &Arc<Self>,
        cx: &DdlContext,
        user: &str,
        host: &str,
        change: impl FnOnce(&mut Grants) -> Result<(), MySqlError>,
    ) -> Result<(), MySqlError> {
        let _locks = self.lock_accounts(cx).await?;
        let Some(current) = self.catalog().user(user, host) else {
            return Err(errors::nonexisting_grant(user, host));
        };
        let mut changed = (*current).clone();
        change(&mut changed.grants)?;
        changed.grants.tidy();
        self.store_user(cx, changed)
    }

    /// DROP USER and DROP ROLE: who had the account as a role has it no more. Error 1396 if there is no such account.
    pub async fn drop_user(self: &Arc<Self>, cx: &DdlContext, user: &str, host: &str) -> Result<(), MySqlError> {
        let _locks = self.lock_accounts(cx).await?;
        if self.catalog().user(user, host).is_none() {
            return Err(error::user_operation("DROP USER", user, host));
        }
        let role = AccountName { user: user.to_owned(), host: host.to_owned() };
        let mut holders = Vec::new();
        for holder in self.catalog().users() {
            if holder.grants.names_role(&role) {
                let mut holder = (*holder).clone();
                holder.grants.remove_role(&role);
                holders.push(holder);
            }
        }
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::remove(&mut txn, self.catalog_index(), &keys::user(user, host))?;
        self.put_accounts(&mut txn, &holders)?;
        cx.commit(self, txn)?;
        self.publish_accounts(holders, |catalog| catalog.remove_user(user, host));
        Ok(())
    }

    fn store_user(&self, cx: &DdlContext, user: UserDef) -> Result<(), MySqlError> {
        let accounts = vec![user];
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        self.put_accounts(&mut txn, &accounts)?;
        cx.commit(self, txn)?;
        self.publish_accounts(accounts, |_| ());
        Ok(())
    }

    /// Writes the accounts' records.
    pub(crate) fn put_accounts(&self, txn: &mut Txn, accounts: &[UserDef]) -> Result<(), MySqlError> {
        for account in accounts {
            high_water::put(txn, self.catalog_index(), &keys::user(&account.user, &account.host), &record::encode_user(account))?;
        }
        Ok(())
    }

    /// Shows everybody the accounts that have been committed, and at once what else `change` does.
    pub(crate) fn publish_accounts(&self, accounts: Vec<UserDef>, change: impl FnOnce(&mut Catalog)) {
        self.publish(|catalog, _| {
            change(catalog);
            accounts.into_iter().for_each(|account| catalog.put_user(account));
        });
        self.note_accounts_changed();
    }

    pub(crate) async fn lock_accounts(&self, cx: &DdlContext) -> Result<HeldLocks, MySqlError> {
        let mut locks = self.ddl_locks(cx);
        locks
            .acquire_exclusive(vec![("mysql".into(), "user".into())], cx.lock_wait_timeout, &cx.interrupt)
            .await?;
        Ok(locks)
    }
}
