//! Row locks: see README.md.

mod interrupt;
mod wait;

pub use interrupt::Interrupt;
pub use wait::{LockError, LockWait};
