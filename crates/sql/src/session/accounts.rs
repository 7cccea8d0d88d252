//! Accounts: rows of the catalog's user list.

use std::sync::Arc;

use highkey_table::Database;
use highkey_types::MySqlError;

use super::instance::Account;

pub(crate) fn all(_database: &Arc<Database>) -> Vec<Account> {
    unimplemented!()
}

pub(crate) fn find(_database: &Arc<Database>, _user: &str, _host: &str) -> Option<Account> {
    unimplemented!()
}

pub(crate) async fn bootstrap_root(_database: &Arc<Database>) -> Result<bool, MySqlError> {
    unimplemented!()
}
