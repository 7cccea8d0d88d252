//! The future of a row lock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Why a wait for a row lock ended without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// The transaction's lock wait timeout passed. It goes on; MySQL's error 1205.
    Timeout,
    /// The transaction was chosen to break a cycle: its caller must roll all of it back. MySQL's error 1213.
    Deadlock,
    /// The session's `Interrupt` was raised.
    Interrupted,
}

/// A wait for a row lock. Holds no thread and no latch; dropping it gives the place in the queue up. After `Ok` retry the operation.
pub struct LockWait {}

impl LockWait {
    /// Waits on this thread.
    pub fn wait(self) -> Result<(), LockError> {
        unimplemented!()
    }
}

impl Future for LockWait {
    type Output = Result<(), LockError>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        unimplemented!()
    }
}
