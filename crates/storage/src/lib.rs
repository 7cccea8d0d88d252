//! The storage engine of Highkey: a transactional, versioned, ordered byte store.

mod engine;
mod lock;
mod stand_in;
mod txn;

pub use engine::{Engine, Stats};
pub use lock::{Interrupt, LockError, LockWait};
pub use stand_in::{CheckReport, Clock, Disk, Error, IndexId, Lsn, Options, PageId, Result, TxnId};
pub use txn::{
    BatchOutcome, Bounds, CommitWait, Direction, Inserted, Isolation, LeafRows, LockMode, LockWaitPolicy, Locked, Op,
    Savepoint, Scan, Snapshot, SortedRows, Txn,
};
