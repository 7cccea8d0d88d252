//! The write-ahead log. See README.md.

mod record;

pub use record::{Kind, Record};

use crate::error::Result;
use crate::ids::Lsn;
use crate::sync::Arc;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Who may take the log's last reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// Waits for a checkpoint when the log is full, or answers `LogFull`.
    Normal,
    /// Rollback, purge and structure repair: may use the headroom kept for them.
    Rollback,
}

/// The log. LSN = byte offset of a record's first byte in the endless stream.
pub struct Wal {}

impl Wal {
    /// Waits until the log has room for one more mini-transaction. Called holding no latch.
    pub fn reserve(&self, _urgency: Urgency) -> Result<()> {
        unimplemented!()
    }
    /// The end of the log: the next record's LSN is at least this.
    pub fn end(&self) -> Lsn {
        unimplemented!()
    }
    /// Everything before this is durable; the record that begins at `lsn` is durable when `lsn < durable()`.
    pub fn durable(&self) -> Lsn {
        unimplemented!()
    }
    /// The record that begins at `lsn`, from memory or file.
    pub fn read(&self, _lsn: Lsn) -> Result<Record> {
        unimplemented!()
    }
    /// Resolves when the record at `lsn` is durable, whatever the flush level. `.wait()` blocks instead.
    pub fn wait_durable(self: &Arc<Self>, _lsn: Lsn) -> DurableWait {
        unimplemented!()
    }
    /// As `wait_durable`, but as the flush level says: 1 durable, 2 written to the operating system, 0 at once.
    pub fn wait_commit(self: &Arc<Self>, _lsn: Lsn) -> DurableWait {
        unimplemented!()
    }
    /// Writes and syncs everything appended so far.
    pub fn flush(&self) -> Result<()> {
        unimplemented!()
    }
    /// `innodb_flush_log_at_trx_commit`.
    pub fn set_flush_level(&self, _level: u8) {
        unimplemented!()
    }
}

/// The wait for a record to be durable: a future, or `.wait()`.
pub struct DurableWait {
    _wal: Arc<Wal>,
}

impl DurableWait {
    /// Blocks the thread.
    pub fn wait(self) -> Result<()> {
        unimplemented!()
    }
}

impl Future for DurableWait {
    type Output = Result<()>;
    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        unimplemented!()
    }
}
