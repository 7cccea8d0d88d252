//! The mini-transaction: page changes that reach the log as one record, all or nothing.

use super::ExclusiveGuard;
use crate::error::Result;
use crate::ids::{Lsn, PageId, TxnId};
use std::marker::PhantomData;

/// For whom a mini-transaction writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writer {
    /// Structure changes outside any transaction: never undone. Uses the log's headroom.
    System,
    /// A transaction's change; `prev_lsn` is its previous record (none: its first).
    Txn { id: TxnId, prev_lsn: Lsn },
    /// A compensation record: what `undo_next` was before the record it takes back.
    Clr { id: TxnId, prev_lsn: Lsn, undo_next: Lsn },
    /// The record that ends a rollback.
    Abort { id: TxnId, prev_lsn: Lsn },
    /// The record that commits; use `commit_transaction`.
    Commit { id: TxnId, prev_lsn: Lsn },
}

/// One mini-transaction. Use: make it (holding no latch), fix pages, check everything that can fail, `apply`, `commit`,
/// drop the guards. Once something was applied it must be committed: dropping it then stops the engine.
pub struct Scope<'p>(PhantomData<&'p ()>);

impl<'p> Scope<'p> {
    /// Changes the page and notes the change for the record.
    pub fn apply(&mut self, _page: &mut ExclusiveGuard<'_>, _op: u8, _payload: &[u8]) -> Result<()> {
        unimplemented!()
    }
    /// Changes a page that cannot be held by the caller, at `commit` (space maps, the directory): pages are latched then, in id order.
    pub fn apply_at_commit(&mut self, _page: PageId, _op: u8, _payload: &[u8]) {
        unimplemented!()
    }
    /// Adds to the record's undo bytes.
    pub fn add_undo(&mut self, _bytes: &[u8]) {
        unimplemented!()
    }
    /// Holds the guard until the scope has committed.
    pub fn keep(&mut self, _guard: ExclusiveGuard<'p>) {
        unimplemented!()
    }
    /// True if nothing was applied or noted.
    pub fn is_empty(&self) -> bool {
        unimplemented!()
    }
    /// Appends the record, stamps its LSN on the pages, marks them dirty. Returns the record's LSN, or none if the scope was empty.
    pub fn commit(self) -> Result<Lsn> {
        unimplemented!()
    }
    /// As `commit`, for a `Writer::Commit`: `timestamp(lsn)` runs inside the append, so timestamps are in log order. Always
    /// writes a record. Returns (lsn, timestamp).
    pub fn commit_transaction(self, _binlog: &[u8], _timestamp: impl FnOnce(Lsn) -> u64) -> Result<(Lsn, u64)> {
        unimplemented!()
    }
}
