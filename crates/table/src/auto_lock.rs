//! AUTO-INC locks: a statement that has a table's is alone in getting AUTO_INCREMENT values of it, so that its own are consecutive.
//!
//! Which statements want it, `innodb_autoinc_lock_mode` says, to the layer above. Held to the statement's end, not the transaction's. Waited for as a
//! row's lock is, so that a circle through rows ends at once, too.

use highkey_storage::{NumberLock, Op};
use highkey_types::MySqlError;

use crate::table::Table;
use crate::transaction::Transaction;

/// A table's AUTO-INC lock, until this is dropped.
pub struct AutoIncrementLock {
    _lock: NumberLock,
}

impl Table {
    /// Waits for the AUTO-INC lock. A statement takes it once. Errors 1205, 1213, 1317.
    pub async fn lock_auto_increment(&self, txn: &mut Transaction) -> Result<AutoIncrementLock, MySqlError> {
        let lock = txn.inner().number_lock(self.id().0);
        while let Op::Wait(wait) = lock.take(txn.inner()) {
            wait.await.map_err(crate::error::lock)?;
        }
        Ok(AutoIncrementLock { _lock: lock })
    }

    /// Somebody has the AUTO-INC lock.
    pub fn is_auto_increment_locked(&self) -> bool {
        self.engine.is_number_locked(self.id().0)
    }
}
