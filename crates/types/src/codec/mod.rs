//! The two byte forms of values: index keys and rows.
mod key;
mod row;
pub use key::{KeyPart, encode_key, encode_key_part};
pub use row::RowLayout;
