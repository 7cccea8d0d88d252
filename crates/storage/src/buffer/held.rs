//! How many page latches this thread holds: waiting for log space or a row lock with any would stop the engine.

use std::cell::Cell;

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
}

pub(super) fn add() {
    HELD.with(|h| h.set(h.get() + 1));
}

pub(super) fn remove() {
    // A guard may be dropped by another thread than the one that took it.
    HELD.with(|h| h.set(h.get().saturating_sub(1)));
}

/// True if this thread holds a page latch.
pub(crate) fn any() -> bool {
    HELD.with(|h| h.get() > 0)
}
