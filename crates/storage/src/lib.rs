//! The storage engine of Highkey: a transactional, versioned, ordered byte store.
#![allow(dead_code)]

mod buffer;
mod disk;
mod engine;
mod error;
mod ids;
mod lock;
mod options;
mod page;
mod recovery;
mod space;
mod stand_in;
mod sync;
mod txn;
mod wal;

pub use disk::{Clock, Disk, DiskFile, FileDisk, Rng, SeededRng, SimClock, SimConfig, SimDisk, SystemClock, SystemRng};
pub use engine::{Engine, Stats};
pub use error::{Error, Result};
pub use ids::{IndexId, Lsn, PageId, TxnId};
pub use lock::{Interrupt, LockError, LockWait};
pub use options::Options;
pub use stand_in::CheckReport;
pub use txn::{
    BatchOutcome, Bounds, CommitWait, Direction, Inserted, Isolation, LeafRows, LockMode, LockWaitPolicy, Locked, Op,
    Savepoint, Scan, Snapshot, SortedRows, Txn,
};
