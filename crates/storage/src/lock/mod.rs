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

pub(crate) use owner::{Owner, Owners};
pub(crate) use table::{Answer, LockStats, LockTable, RowKey, row_key};
