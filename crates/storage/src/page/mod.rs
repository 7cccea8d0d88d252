//! What every page has, and how page bytes change.

pub mod header;
pub mod redo;
pub mod slotted;

pub use header::{HEADER_SIZE, PAGE_SIZE, PageFlags, PageType};
