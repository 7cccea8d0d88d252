//! The way to end a session's waits from outside.

use std::sync::atomic::{AtomicBool, Ordering};

/// One per session: `KILL` and a closed connection raise it, every lock wait of the transactions it is set on ends with `Interrupted`.
#[derive(Debug, Default)]
pub struct Interrupt {
    raised: AtomicBool,
}

impl Interrupt {
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Ends the present wait, if any, and every one begun before `clear`.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
    }

    pub fn clear(&self) {
        self.raised.store(false, Ordering::SeqCst);
    }

    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }
}
