//! Transactions: see README.md.

mod activity;
mod background;
mod commit;
mod load;
mod long;
mod needs;
mod numbers;
mod prepared;
mod purge;
mod purge_list;
mod ranges;
mod read;
mod report;
mod rollback;
mod rows;
mod scan;
#[cfg(all(test, feature = "shuttle"))]
mod schedules;
mod scratch;
mod snapshot;
mod spill;
mod status;
mod system;
#[cfg(test)]
mod tests;
mod transaction;
mod undo;
mod version_run;
mod versions;
mod views;
mod watch;
mod write;

pub use activity::{ActiveTxn, TxnActivity};
pub use commit::CommitWait;
pub use load::{Load, LoadTxn, Loaded, SealedLoad, SharedTxn};
pub use numbers::NumberLock;
pub use prepared::Prepared;
pub use ranges::ShareRange;
pub use report::{DeadlockReport, LockExtent, LockReport, LockReports, TxnLocks, TxnSize, WaitReport};
pub use rows::{
    BatchOutcome, Bounds, Direction, Inserted, Isolation, LeafRows, LockMode, LockWaitPolicy, Locked, Op, SortedRows,
};
pub use scan::{LeafRun, Scan};
pub use snapshot::Snapshot;
pub use transaction::{Savepoint, Txn};
pub use watch::{ChangedKeys, Watch, WatchBudget};

pub(crate) use background::{LeftByCrash, Pace};
pub(crate) use system::{ForCheckpoint, ROOT_INDEX, System};
