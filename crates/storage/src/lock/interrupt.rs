//! The way to end a session's lock waits from outside.

use std::sync::Weak;
use std::task::Waker;

use super::table::LockTable;
use super::wait::{LockError, Waiter};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// One per session: `KILL` and a closed connection raise it, every lock wait of the transactions it is set on ends with `Interrupted`.
#[derive(Default)]
pub struct Interrupt {
    raised: AtomicBool,
    /// Who waits for something else than a lock.
    waker: Mutex<Option<Waker>>,
    waiting: Mutex<Option<(Weak<LockTable>, Weak<Waiter>)>>,
}

impl Interrupt {
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Ends the present wait, if any, and every one begun before `clear`.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
        let waiting = self.waiting.lock().take();
        let waker = self.waker.lock().take();
        waker.into_iter().for_each(Waker::wake);
        if let Some((table, waiter)) = waiting.and_then(|(t, w)| Some((t.upgrade()?, w.upgrade()?))) {
            table.cancel(&waiter, LockError::Interrupted);
        }
    }

    /// Waits may begin again.
    pub fn clear(&self) {
        self.raised.store(false, Ordering::SeqCst);
    }

    /// Whether waits end at once.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// Makes `raise` wake this one, once, in the place of the one before. The flag is to be read after the call.
    pub fn wake_on_raise(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    /// Makes `raise` end this wait. The flag is read after the registration, so a `raise` on either side of it is not missed.
    pub(super) fn watch(&self, table: &Arc<LockTable>, waiter: &Arc<Waiter>) {
        *self.waiting.lock() = Some((Arc::downgrade(table), Arc::downgrade(waiter)));
        if self.is_raised() {
            table.cancel(waiter, LockError::Interrupted);
        }
    }
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interrupt").field("raised", &self.is_raised()).finish()
    }
}
