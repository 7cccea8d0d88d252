//! Row locks: see README.md.

mod deadlock;
mod interrupt;
mod owner;
mod ranges;
mod runs;
#[cfg(all(test, feature = "shuttle"))]
mod schedules;
mod table;
#[cfg(test)]
mod tests;
mod timer;
mod wait;

pub use interrupt::Interrupt;
pub use wait::{LockError, LockWait};

pub(crate) use owner::Owner;
pub(crate) use ranges::{HeldRange, RangeKind, Span};
pub(crate) use runs::{HeldRun, Neighbours};
pub(crate) use table::{Answer, LockTable, RowKey, row_key};
pub(crate) use wait::{Waiter, Wants};
