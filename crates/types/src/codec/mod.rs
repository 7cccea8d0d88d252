//! The two byte forms of values: index keys, which order by memcmp, and rows, which read column by column.
//! README.md has the byte tables.

mod key;
mod row;
pub(crate) mod scalar;

pub use key::{KeyPart, encode_key, encode_key_part};
pub use row::RowLayout;

#[cfg(test)]
mod tests;
