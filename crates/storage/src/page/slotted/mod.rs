//! The slotted page of the tree: leaves and inner pages. See README.md in `page/`.

pub(crate) mod edit;
pub(crate) mod layout;
pub(crate) mod node;
pub(crate) mod op;
pub(crate) mod read;
#[cfg(test)]
mod tests;

pub(crate) use edit::{Frame, TXN_MASK};
pub use layout::{MAX_INLINE_RECORD, MAX_KEY_LEN, fits_inline};
pub(crate) use node::{Node, common_prefix, round8};
pub use read::Corrupt;
pub(crate) use read::{Checked, PageBytes, Range};
