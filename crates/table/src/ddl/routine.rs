//! CREATE, ALTER and DROP of stored routines.

use std::sync::Arc;

use highkey_storage::Isolation;
use highkey_types::{MySqlError, errors};

use super::DdlContext;
use super::table::{TableName, refuse_system_schema};
use crate::catalog::{keys, stored_record};
use crate::database::Database;
use crate::def::UserDef;
use crate::error;
use crate::grants::Privileges;
use crate::high_water;
use crate::routine::{RoutineDef, RoutineKind};

/// The metadata lock of a routine; no table has such a name.
pub(super) fn lock_name(schema: &str, kind: RoutineKind, name: &str) -> TableName {
    (schema.into(), format!("{} {}\0", kind.name(), name.to_lowercase()).into())
}

impl Database {
    /// Makes a routine. `creator`: this account may run, alter and drop it from now on. Errors: 1049, 1304, 3552.
    pub async fn create_routine(self: &Arc<Self>, cx: &DdlContext, def: RoutineDef, creator: Option<(&str, &str)>) -> Result<(), MySqlError> {
        refuse_system_schema(&def.schema)?;
        let _locks = self.lock_tables(cx, vec![lock_name(&def.schema, def.kind, &def.name)]).await?;
        let _accounts = if creator.is_some() { Some(self.lock_accounts(cx).await?) } else { None };
        let catalog = self.catalog();
        if catalog.schema(&def.schema).is_none() {
            return Err(error::unknown_schema(&def.schema));
        }
        if catalog.routine(&def.schema, def.kind, &def.name).is_some() {
            return Err(errors::sp_already_exists(def.kind.name(), &def.name));
        }
        let granted = creator.and_then(|(user, host)| catalog.user(user, host)).map(|account| {
            let mut account = UserDef::clone(&account);
            let of_schema = account.grants.routines_mut(def.kind).entry(def.schema.to_string()).or_default();
            let granted = of_schema.entry(def.name.to_lowercase()).or_default();
            *granted = granted.and(Privileges::OF_ROUTINE);
            account
        });
        self.store_routine(cx, def, granted.into_iter().collect())
    }

    /// Gives a routine other characteristics. Errors: 1305, 3552.
    pub async fn alter_routine(
        self: &Arc<Self>,
        cx: &DdlContext,
        (kind, schema, name): (RoutineKind, &str, &str),
        change: impl FnOnce(&mut RoutineDef),
    ) -> Result<(), MySqlError> {
        refuse_system_schema(schema)?;
        let _locks = self.lock_tables(cx, vec![lock_name(schema, kind, name)]).await?;
        let Some(old) = self.catalog().routine(schema, kind, name) else {
            return Err(errors::sp_does_not_exist(kind.name(), format_args!("{schema}.{name}")));
        };
        let mut def = RoutineDef::clone(&old);
        change(&mut def);
        self.store_routine(cx, def, Vec::new())
    }

    /// Drops a routine, and with it what has been granted on it. Errors: 1305, 3552.
    pub async fn drop_routine(self: &Arc<Self>, cx: &DdlContext, (kind, schema, name): (RoutineKind, &str, &str)) -> Result<(), MySqlError> {
        refuse_system_schema(schema)?;
        let _locks = self.lock_tables(cx, vec![lock_name(schema, kind, name)]).await?;
        let _accounts = self.lock_accounts(cx).await?;
        let catalog = self.catalog();
        if catalog.routine(schema, kind, name).is_none() {
            return Err(errors::sp_does_not_exist(kind.name(), format_args!("{schema}.{name}")));
        }
        let key = name.to_lowercase();
        let has_grant = |account: &UserDef| account.grants.routines(kind).get(schema).is_some_and(|routines| routines.contains_key(&key));
        let mut accounts: Vec<UserDef> = catalog.users().iter().filter(|account| has_grant(account)).map(|account| UserDef::clone(account)).collect();
        for account in &mut accounts {
            if let Some(routines) = account.grants.routines_mut(kind).get_mut(schema) {
                routines.remove(&key);
            }
            account.grants.tidy();
        }
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::remove(&mut txn, self.catalog_index(), &keys::routine(schema, kind, name))?;
        self.put_accounts(&mut txn, &accounts)?;
        cx.commit(self, txn)?;
        self.publish_accounts(accounts, |catalog| catalog.remove_routine(schema, kind, name));
        Ok(())
    }

    /// Logs a statement that changes nothing of the catalog: DROP … IF EXISTS of what is not there, ANALYZE TABLE.
    pub fn log_needless_drop(self: &Arc<Self>, cx: &DdlContext) -> Result<(), MySqlError> {
        cx.commit(self, self.engine().begin(Isolation::ReadCommitted))
    }

    /// `accounts` have other grants with it.
    fn store_routine(&self, cx: &DdlContext, def: RoutineDef, accounts: Vec<UserDef>) -> Result<(), MySqlError> {
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        high_water::put(&mut txn, self.catalog_index(), &keys::routine(&def.schema, def.kind, &def.name), &stored_record::encode_routine(&def))?;
        self.put_accounts(&mut txn, &accounts)?;
        cx.commit(self, txn)?;
        self.publish_accounts(accounts, |catalog| catalog.put_routine(Arc::new(def)));
        Ok(())
    }
}
