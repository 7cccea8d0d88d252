//! What a log record is.
//!
//! ```text
//! 0 len u32 (all of it) · 4 crc32c u32 · 8 kind u8 · 9 txn u64 · 17 prev_lsn u64 · 25 undo len u32 · 29 parts len u32
//! 33 undo · parts {page_id u64, op u8, payload len u16, payload}* · extra (to the end)
//! ```
//! The stored checksum is that of bytes 8.. and of `len`, XORed with a hash of the record's LSN, so that what an earlier
//! life of the segment left at the same place never looks like a record.

use crate::error::Result;
use crate::ids::{Lsn, PageId, TxnId};

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Pages changed outside any transaction (a split, a purge).
    System = 1,
    /// Pages changed by a transaction; `undo` says how to take it back.
    Data = 2,
    /// Pages changed by taking back a `Data` record; `extra` is undo_next u64.
    Clr = 3,
    /// A transaction committed; `extra` is the commit timestamp u64, then its binlog events.
    Commit = 4,
    /// A transaction has been taken back completely.
    Abort = 5,
    /// A checkpoint; `extra` is the recovery module's.
    Checkpoint = 6,
}

/// A record read back.
#[derive(Clone, Debug)]
pub struct Record {
    pub lsn: Lsn,
    pub kind: Kind,
    pub txn: TxnId,
    pub prev_lsn: Lsn,
    bytes: Vec<u8>,
}

impl Record {
    /// Where the next record begins.
    pub fn end(&self) -> Lsn {
        Lsn(self.lsn.0 + self.bytes.len() as u64)
    }
    pub fn undo(&self) -> &[u8] {
        unimplemented!()
    }
    pub fn extra(&self) -> &[u8] {
        unimplemented!()
    }
    /// A `Clr`'s next record to take back.
    pub fn undo_next(&self) -> Lsn {
        unimplemented!()
    }
    /// A `Commit`'s timestamp.
    pub fn commit_ts(&self) -> u64 {
        unimplemented!()
    }
    /// The page operations: page, operation, payload.
    pub fn parts(&self) -> impl Iterator<Item = Result<(PageId, u8, &[u8])>> {
        std::iter::empty()
    }
}
