//! OPTIMIZE TABLE: every index dense again, while the table is used.

use std::time::{Duration, Instant};

use highkey_types::{MySqlError, errors};

use crate::table::Table;
use crate::transaction::Transaction;

/// Purge that has not got ahead for so long waits for somebody's snapshot, or for writers who give it more than it can do.
const PURGE_STALLED: Duration = Duration::from_millis(300);

impl Table {
    /// Makes the table's indexes dense and gives back the space that this frees (`Engine::compact`), one after the other. Reading and
    /// writing go on meanwhile; only DDL waits for `txn`, which has the table open and should have no snapshot, for that would keep deleted rows
    /// from being purged. Error 1317 leaves the indexes as dense as they have become.
    pub fn compact(&self, txn: &Transaction) -> Result<(), MySqlError> {
        self.wait_for_purge(txn)?;
        match self.partition_tables() {
            [] => self.compact_trees(txn),
            parts => parts.iter().try_for_each(|part| part.compact_trees(txn)),
        }
    }

    fn compact_trees(&self, txn: &Transaction) -> Result<(), MySqlError> {
        for codec in &self.indexes {
            let stop = || txn.check_interrupt().is_err();
            if !self.engine.compact(codec.id, &txn.progress, &stop).map_err(|e| self.failed(e))? {
                return Err(errors::query_interrupted());
            }
        }
        Ok(())
    }

    /// Rows deleted just before are records until purge has come by. Waits as long as it gets ahead.
    fn wait_for_purge(&self, txn: &Transaction) -> Result<(), MySqlError> {
        let mut least = u64::MAX;
        let mut since = Instant::now();
        loop {
            let left = self.engine.stats().history_length;
            if left < least {
                (least, since) = (left, Instant::now());
            }
            if left == 0 || since.elapsed() > PURGE_STALLED {
                return Ok(());
            }
            txn.check_interrupt()?;
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
