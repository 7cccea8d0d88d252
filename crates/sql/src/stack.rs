//! Stack for whatever follows the nesting of a statement: its syntax, its expressions, its plan.

use highkey_types::MySqlError;

/// Bytes that the step to the next level may take.
const STEP_BYTES: usize = 128 << 10;
/// Bytes that are added where fewer are left.
const ADDED_BYTES: usize = 1 << 20;

/// Runs `f`, one level deeper, with the stack that a level may take.
pub(crate) fn ensure<R>(f: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(STEP_BYTES, ADDED_BYTES, f)
}

/// Error 1436: a statement that is nested too deeply, or grows too large by what it names again and again.
pub(crate) fn overrun() -> MySqlError {
    MySqlError::with_message(1436, "Thread stack overrun: the statement is nested too deeply")
}
