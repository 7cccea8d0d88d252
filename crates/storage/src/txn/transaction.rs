//! The transaction: what callers hold.

use std::sync::Arc;
use std::time::Duration;

use super::commit::CommitWait;
use super::rows::{
    BatchOutcome, Bounds, Direction, Inserted, Isolation, LockMode, LockWaitPolicy, Locked, Op, SortedRows,
};
use super::scan::Scan;
use super::snapshot::Snapshot;
use crate::lock::Interrupt;
use crate::{IndexId, Result, TxnId};

/// A point inside a transaction that `rollback_to` returns to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {}

/// A transaction. Dropping one that was not committed rolls it back.
pub struct Txn {}

impl Txn {
    /// The id, given at the first write or lock.
    pub fn id(&self) -> Option<TxnId> {
        unimplemented!()
    }

    pub fn isolation(&self) -> Isolation {
        unimplemented!()
    }

    /// Ends the statement's snapshot under READ COMMITTED.
    pub fn begin_statement(&mut self) {
        unimplemented!()
    }

    /// The view of this transaction's consistent reads, taken now if there is none yet.
    pub fn snapshot(&mut self) -> Snapshot {
        unimplemented!()
    }

    pub fn set_lock_wait_timeout(&mut self, _timeout: Duration) {
        unimplemented!()
    }

    /// Lets `interrupt` end this transaction's lock waits.
    pub fn set_interrupt(&mut self, _interrupt: Arc<Interrupt>) {
        unimplemented!()
    }

    /// True once something was written that a commit must log.
    pub fn has_writes(&self) -> bool {
        unimplemented!()
    }

    pub fn savepoint(&mut self) -> Savepoint {
        unimplemented!()
    }

    /// Undoes everything written since. Row locks stay.
    pub fn rollback_to(&mut self, _savepoint: &Savepoint) -> Result<()> {
        unimplemented!()
    }

    /// Appends the commit record with `binlog`, the transaction's binlog events (may be empty).
    pub fn commit(self, _binlog: &[u8]) -> Result<CommitWait> {
        unimplemented!()
    }

    pub fn rollback(self) -> Result<()> {
        unimplemented!()
    }

    /// Makes an empty index; it goes away if the transaction does not commit.
    pub fn create_index(&mut self) -> Result<IndexId> {
        unimplemented!()
    }

    /// Frees the index after the commit, once no snapshot needs it.
    pub fn drop_index(&mut self, _index: IndexId) -> Result<()> {
        unimplemented!()
    }

    pub fn insert(&mut self, _index: IndexId, _key: &[u8], _value: &[u8]) -> Result<Op<Inserted>> {
        unimplemented!()
    }

    /// Inserts `rows[start..]` as far as it gets in one go.
    pub fn insert_batch(&mut self, _index: IndexId, _rows: &SortedRows, _start: usize) -> Result<Op<BatchOutcome>> {
        unimplemented!()
    }

    /// Replaces the value of the latest committed or own row. False when there is none.
    pub fn update(&mut self, _index: IndexId, _key: &[u8], _value: &[u8]) -> Result<Op<bool>> {
        unimplemented!()
    }

    /// Deletes the latest committed or own row. False when there is none.
    pub fn delete(&mut self, _index: IndexId, _key: &[u8]) -> Result<Op<bool>> {
        unimplemented!()
    }

    /// Locks a key, whether or not it has a row, and reads its latest committed or own value.
    pub fn lock(
        &mut self,
        _index: IndexId,
        _key: &[u8],
        _mode: LockMode,
        _policy: LockWaitPolicy,
    ) -> Result<Op<Locked>> {
        unimplemented!()
    }

    /// Consistent read of one row into `out` (cleared first). False when there is none.
    pub fn get(&mut self, _index: IndexId, _key: &[u8], _out: &mut Vec<u8>) -> Result<bool> {
        unimplemented!()
    }

    /// As `get`, of the latest committed or own row, without a lock.
    pub fn get_latest(&mut self, _index: IndexId, _key: &[u8], _out: &mut Vec<u8>) -> Result<bool> {
        unimplemented!()
    }

    /// Consistent scan.
    pub fn scan(&mut self, _index: IndexId, _bounds: Bounds, _direction: Direction) -> Scan {
        unimplemented!()
    }

    /// Scan for a locking statement: every key that has a live latest row or an uncommitted change of anybody. Call `lock` on each key to
    /// wait for its owner and to get the value that counts; the scan's own value is the latest committed or own one, empty if there is none.
    pub fn scan_latest(&mut self, _index: IndexId, _bounds: Bounds, _direction: Direction) -> Scan {
        unimplemented!()
    }
}
