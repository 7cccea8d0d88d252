//! The storage engine of Highkey: a transactional, versioned, ordered byte store.
//!
//! From the bottom up, each a folder with a README.md:
//!
//! - `disk`: files, real or simulated; the clock and randomness beside them.
//! - `wal`: the log. What is not in it did not happen.
//! - `page`, `buffer`: pages, their latches and frames, and the mini-transaction through which alone their bytes change.
//! - `space`: who owns which page; the directory of trees.
//! - `btree`, `overflow`: one B-link tree per index; values too long for a leaf.
//! - `recovery`: checkpoints, and redo after a crash.
//! - `lock`: row locks and deadlocks.
//! - `txn`: transactions, snapshots, older versions, commit, rollback, purge.
//! - `engine`: all of it behind one handle; `progress` beside it, how far a long statement is, and `waits`, what it waited for; `priority`, who goes first, and `processor`, where.
//!
//! Nothing here knows of SQL, rows' columns or a runtime: keys and values are bytes, and the two waits there are (a row lock, a
//! durable commit) are plain futures.

mod btree;
mod buffer;
mod counters;
mod disk;
mod engine;
mod error;
mod fatal;
mod ids;
mod lock;
mod options;
mod overflow;
mod page;
mod prefetch;
mod priority;
mod processor;
mod progress;
mod recovery;
mod space;
mod stats;
mod sync;
mod txn;
mod waits;
mod wal;

pub use btree::{BatchRows, LevelReport, MORSEL_LEAVES, TreeCounters};
pub use counters::{StripedCounter, StripedCounts};
pub use disk::{Clock, Disk, DiskFile, DiskUsage, FileDisk, FileUsage, IoSum, Rng, SeededRng, SimClock, SimConfig, SimDisk, SystemClock, SystemRng};
pub use engine::{CheckReport, Engine, IndexSize, Morsels};
pub use error::{Error, Result};
pub use ids::{IndexId, Lsn, PageId, TxnId};
pub use lock::{Interrupt, LockError, LockWait};
pub use options::Options;
pub use prefetch::prefetch;
pub use priority::lower_priority;
pub use processor::{leave_processors, processor};
pub use progress::{Progress, Stage};
pub use space::PageOwnership;
pub use stats::Stats;
pub use txn::{
    ActiveTxn, BatchOutcome, Bounds, ChangedKeys, CommitWait, DeadlockReport, Direction, Inserted, Isolation, LeafRows, LeafRun, Load, LoadTxn, Loaded, LockExtent,
    LockMode, LockReport, LockReports, LockWaitPolicy, Locked, NumberLock, Op, Prepared, Savepoint, Scan, SealedLoad, ShareRange, SharedTxn, Snapshot, SortedRows, Txn,
    TxnActivity, TxnLocks, TxnSize, WaitReport, Watch, WatchBudget,
};
pub use waits::{
    Blocked, CommitSyncs, FutureWait, LatchMode, LatchPlace, LatchWaits, LatchedPage, TimeSplit, WaitKind, WaitSum, Waits, blocked, for_helpers, waiting,
};
pub use wal::{CommitAnatomy, HistogramBucket, HistogramReport, LogFollower, Record as LogRecord};
