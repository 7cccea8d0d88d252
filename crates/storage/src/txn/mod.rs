//! Transactions: see README.md.

mod commit;
mod rows;
mod scan;
mod snapshot;
mod transaction;

pub use commit::CommitWait;
pub use rows::{
    BatchOutcome, Bounds, Direction, Inserted, Isolation, LeafRows, LockMode, LockWaitPolicy, Locked, Op, SortedRows,
};
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use transaction::{Savepoint, Txn};
