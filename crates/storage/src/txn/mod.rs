//! Transactions: see README.md.

mod commit;
mod rows;
mod scan;
mod scratch;
mod snapshot;
mod status;
mod transaction;
mod undo;
mod versions;
mod views;

pub use commit::CommitWait;
pub use rows::{
    BatchOutcome, Bounds, Direction, Inserted, Isolation, LeafRows, LockMode, LockWaitPolicy, Locked, Op, SortedRows,
};
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use transaction::{Savepoint, Txn};
