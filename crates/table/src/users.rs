//! Accounts.

use std::sync::Arc;

use highkey_storage::Isolation;
use highkey_types::{MySqlError, errors};

use crate::catalog::keys;
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

    /// ALTER USER, SET PASSWORD: replaces the account's record but for its grants. Error 1396 if there is none.
    pub async fn alter_user(self: &Arc<Self>, cx: &DdlContext, user: UserDef) -> Result<(), MySqlError> {
        let _locks = self.lock_accounts(cx).await?;
        let Some(current) = self.catalog().user(&user.user, &user.host) else {
            return Err(error::user_operation("ALTER USER", &user.user, &user.host));
        };
        self.store_user(cx, UserDef { grants: current.grants.clone(), ..user })
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
        for holder in &holders {
            let record = serde_json::to_vec(holder).expect("an account has string keys only");
            high_water::put(&mut txn, self.catalog_index(), &keys::user(&holder.user, &holder.host), &record)?;
        }
        cx.commit(self, txn)?;
        self.publish(|catalog, _| {
            catalog.remove_user(user, host);
            holders.into_iter().for_each(|holder| catalog.put_user(holder));
        });
        self.note_accounts_changed();
        Ok(())
    }

    fn store_user(&self, cx: &DdlContext, user: UserDef) -> Result<(), MySqlError> {
        let record = serde_json::to_vec(&user).expect("an account has string keys only");
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::put(&mut txn, self.catalog_index(), &keys::user(&user.user, &user.host), &record)?;
        cx.commit(self, txn)?;
        self.publish(|catalog, _| catalog.put_user(user));
        self.note_accounts_changed();
        Ok(())
    }

    pub(crate) async fn lock_accounts(&self, cx: &DdlContext) -> Result<HeldLocks, MySqlError> {
        let mut locks = self.ddl_locks(cx);
        locks
            .acquire_exclusive(vec![("mysql".into(), "user".into())], cx.lock_wait_timeout, &cx.interrupt)
            .await?;
        Ok(locks)
    }
}
