//! Locks of things that are no rows, by numbers that the layer above gives them.

use super::rows::{LockMode, Op};
use super::transaction::Txn;
use crate::ids::IndexId;
use crate::lock::{Answer, LockTable, Owner};
use crate::sync::Arc;

/// A place for an exclusive lock on a number. It is waited for as a row's is, so that a circle through rows and numbers is a deadlock as any other. Dropping
/// this gives it back before the transaction ends, which gives it back too.
pub struct NumberLock {
    locks: Arc<LockTable>,
    owner: Arc<Owner>,
    number: u64,
}

impl NumberLock {
    /// Takes the lock. After the wait it is called again.
    pub fn take(&self, txn: &Txn) -> Op<()> {
        match self.locks.acquire(&self.owner, IndexId::NUMBERS, &self.number.to_be_bytes(), LockMode::Exclusive, None, true) {
            Answer::Granted { .. } => Op::Done(()),
            Answer::Queued(waiter) => Op::Wait(txn.wait(waiter)),
            Answer::Blocked | Answer::Again => unreachable!("it may wait, and nobody has a number by a record"),
        }
    }
}

impl Drop for NumberLock {
    fn drop(&mut self) {
        self.locks.release_key(&self.owner, IndexId::NUMBERS, &self.number.to_be_bytes());
    }
}

impl Txn {
    /// A place for a lock on a number, which is not taken yet.
    pub fn number_lock(&mut self, number: u64) -> NumberLock {
        NumberLock { locks: self.system.locks.clone(), owner: self.owner(), number }
    }
}
