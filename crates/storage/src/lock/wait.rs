//! A wait for a row lock: the queue's side (`Waiter`) and the caller's (`LockWait`).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::interrupt::Interrupt;
use super::owner::Owner;
use super::table::{LockTable, split_row};
use crate::buffer::held;
use crate::ids::IndexId;
use crate::sync::{Arc, Condvar, Mutex};
use crate::txn::LockMode;
use crate::waits::{FutureWait, WaitKind};

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

/// What somebody waits for at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// A lock on it: a place in the key's queue.
    Row(LockMode),
    /// To lock it exclusively or to write it, where another's shared range covers it.
    Lock,
    /// To insert it into another's gap or range.
    Insert,
}

/// A place in a lock's queue. Its outcome is set once, under the mutex of the key's shard.
pub(crate) struct Waiter {
    pub owner: Arc<Owner>,
    pub key: Box<[u8]>,
    pub wants: Wants,
    /// Wall clock, microseconds since 1970.
    pub since_us: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    outcome: Option<Result<(), LockError>>,
    waker: Option<Waker>,
}

impl Waiter {
    pub fn new(owner: Arc<Owner>, key: &[u8], wants: Wants, since_us: u64) -> Waiter {
        Waiter { owner, key: key.into(), wants, since_us, state: Mutex::default(), changed: Condvar::new() }
    }

    /// What it waits for lies there.
    pub fn place(&self) -> (IndexId, &[u8]) {
        split_row(&self.key)
    }

    pub fn outcome(&self) -> Option<Result<(), LockError>> {
        self.state.lock().outcome
    }

    /// Sets the outcome. The waker that is returned is to be woken once the shard's mutex is free.
    pub fn resolve(&self, outcome: Result<(), LockError>) -> Option<Waker> {
        let mut state = self.state.lock();
        debug_assert!(state.outcome.is_none(), "I2: a waiter is resolved once");
        state.outcome = Some(outcome);
        self.changed.notify_all();
        state.waker.take()
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<(), LockError>> {
        let mut state = self.state.lock();
        match state.outcome {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(super) fn block(&self) -> Result<(), LockError> {
        let mut state = self.state.lock();
        loop {
            if let Some(outcome) = state.outcome {
                return outcome;
            }
            self.changed.wait(&mut state);
        }
    }
}

/// A wait for a row lock. Holds no thread and no latch; dropping it gives the place in the queue up. After `Ok` retry the operation.
pub struct LockWait {
    table: Arc<LockTable>,
    waiter: Arc<Waiter>,
    /// The timer's entry, and when the wait began.
    timer: u64,
    deadline: Duration,
    began: Duration,
    counted: FutureWait,
}

impl LockWait {
    /// Starts the clock of a waiter that is in its queue, lets `interrupt` end it, and looks for a deadlock.
    pub(crate) fn start(
        table: &Arc<LockTable>,
        waiter: Arc<Waiter>,
        timeout: Duration,
        interrupt: Option<&Interrupt>,
    ) -> LockWait {
        let (began, counted) = (table.now(), FutureWait::begin(WaitKind::RowLock));
        table.note_wait_begun();
        let deadline = began.saturating_add(timeout);
        let timer = table.start_timer(deadline, &waiter);
        let wait = LockWait { table: table.clone(), waiter, timer, deadline, began, counted };
        if let Some(interrupt) = interrupt {
            interrupt.watch(table, &wait.waiter);
        }
        table.break_deadlocks(&wait.waiter);
        wait
    }

    #[cfg(test)]
    pub(super) fn waiter_outcome(&self) -> Option<Result<(), LockError>> {
        self.waiter.outcome()
    }

    /// Waits on this thread.
    pub fn wait(mut self) -> Result<(), LockError> {
        held::assert_none("a row lock is waited for");
        let outcome = self.waiter.block();
        self.counted.all_held();
        outcome
    }
}

impl Future for LockWait {
    type Output = Result<(), LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        held::assert_none("a row lock is waited for");
        self.waiter.poll(cx)
    }
}

impl Drop for LockWait {
    fn drop(&mut self) {
        self.table.stop_timer(self.deadline, self.timer);
        self.table.abandon(&self.waiter);
        self.table.note_wait_ended(self.began);
    }
}

impl std::fmt::Debug for LockWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockWait").field("txn", &self.waiter.owner.id).finish()
    }
}
