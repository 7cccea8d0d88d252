//! Row locks: see README.md.

mod deadlock;
mod interrupt;
mod owner;
mod table;
#[cfg(test)]
mod tests;
mod timer;
mod wait;

pub use interrupt::Interrupt;
pub use wait::{LockError, LockWait};

pub(crate) use owner::Owner;
pub(crate) use table::{Answer, LockTable, row_key};
pub(crate) use wait::Waiter;
