//! AUTO-INC locks: a statement that has a table's is alone in getting AUTO_INCREMENT values of it, so that its own are consecutive.
//!
//! Which statements want it, `innodb_autoinc_lock_mode` says, to the layer above. Held to the statement's end, not the transaction's. Waited for as a
//! row's lock is, so that a circle through rows ends at once, too.

use highkey_storage::{NumberLock, Op};
use highkey_types::MySqlError;
use parking_lot::RwLockReadGuard;

use crate::table::Table;
use crate::transaction::Transaction;

/// A table's AUTO-INC lock, until this is dropped.
pub struct AutoIncrementLock {
    _lock: NumberLock,
}

/// While it lives values may be reserved without the lock.
pub struct Numbering<'t> {
    _guard: RwLockReadGuard<'t, ()>,
}

impl Table {
    /// Waits for the AUTO-INC lock. A statement takes it once. Errors 1205, 1213, 1317.
    pub async fn lock_auto_increment(&self, txn: &mut Transaction) -> Result<AutoIncrementLock, MySqlError> {
        let lock = txn.inner().number_lock(self.id().0);
        while let Op::Wait(wait) = lock.take(txn.inner()) {
            wait.await.map_err(crate::error::lock)?;
        }
        // Whoever has not seen it has its values now.
        drop(self.state.numbering.write());
        Ok(AutoIncrementLock { _lock: lock })
    }

    /// For a statement that does without the lock as long as nobody has it: `None` if somebody has, else none gets it while this lives, which must not be for
    /// longer than it takes to reserve values.
    pub fn numbering(&self) -> Option<Numbering<'_>> {
        let guard = self.state.numbering.read();
        (!self.is_auto_increment_locked()).then_some(Numbering { _guard: guard })
    }

    /// Somebody has the AUTO-INC lock.
    pub fn is_auto_increment_locked(&self) -> bool {
        self.engine.is_number_locked(self.id().0)
    }
}
