//! What every page has, and how page bytes change.

pub mod header;
pub mod redo;
pub mod slotted;

pub use header::{PAGE_SIZE, PageType};
