//! The two byte forms of values: index keys, which order by memcmp, and rows, which read column by column.
//! README.md has the byte tables.

mod key;
mod restore;
mod row;
pub(crate) mod scalar;
mod text_row;

pub use key::{KeyPart, encode_key, encode_key_part, encode_key_part_of_row, key_part_len};
pub use restore::{RowOfKeys, follows_from_key};
pub use row::RowLayout;
pub use text_row::TextRowEncoder;

#[cfg(test)]
mod tests;
