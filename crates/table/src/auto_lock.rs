//! AUTO-INC locks: a statement that has a table's is alone in getting AUTO_INCREMENT values of it, so that its own are consecutive.
//!
//! Which statements want it, `innodb_autoinc_lock_mode` says, to the layer above. Held to the statement's end, not the transaction's. Waited for as a
//! metadata lock is, so circles through tables are found at once; one through a row lock ends by the timeout.

use std::sync::Arc;
use std::time::Duration;

use highkey_types::MySqlError;

use crate::metadata_lock::{MetadataLock, MetadataLocks, MetadataMode, Owner};
use crate::table::Table;
use crate::transaction::Transaction;

/// A table's AUTO-INC lock, until this is dropped.
pub struct AutoIncrementLock {
    locks: Arc<MetadataLocks>,
    owner: Owner,
    lock: Arc<MetadataLock>,
}

impl Drop for AutoIncrementLock {
    fn drop(&mut self) {
        self.locks.release(self.owner, &self.lock);
    }
}

impl Table {
    /// Waits for the AUTO-INC lock, `timeout` at most. A statement takes it once. Errors 1205, 1213, 1317.
    pub async fn lock_auto_increment(&self, txn: &mut Transaction, timeout: Duration) -> Result<AutoIncrementLock, MySqlError> {
        let (locks, owner) = txn.metadata_owner();
        let (interrupt, _) = txn.waits_with();
        let lock = self.state.auto_lock.clone();
        locks.acquire(owner, &lock, MetadataMode::Exclusive, timeout, &interrupt).await?;
        Ok(AutoIncrementLock { locks, owner, lock })
    }

    /// Somebody has the AUTO-INC lock.
    pub fn is_auto_increment_locked(&self) -> bool {
        self.state.auto_lock.is_held()
    }
}
