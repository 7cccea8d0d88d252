//! Commit.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::Result;

/// A commit on its way to the disk. Resolves when it is as durable as `innodb_flush_log_at_trx_commit` asks, visible, and its locks are
/// released. Dropping it does not undo the commit.
pub struct CommitWait {}

impl CommitWait {
    /// Waits on this thread.
    pub fn wait(self) -> Result<()> {
        unimplemented!()
    }
}

impl Future for CommitWait {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        unimplemented!()
    }
}
