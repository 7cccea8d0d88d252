//! Index keys.
use crate::{ColumnType, Value};

/// One column of an index key.
#[derive(Clone, Debug)]
pub struct KeyPart {
    pub ty: ColumnType,
    pub descending: bool,
    /// Index prefix: characters of text, bytes of binary.
    pub prefix: Option<u32>,
    /// A NOT NULL part has no NULL byte.
    pub nullable: bool,
}
/// Appends the key of `values` (the first `values.len()` parts; fewer than `parts` make a prefix for range bounds).
pub fn encode_key(values: &[Value], parts: &[KeyPart], out: &mut Vec<u8>) {
    for (value, part) in values.iter().zip(parts) { encode_key_part(value, part, out); }
}
/// Appends one part.
pub fn encode_key_part(_value: &Value, _part: &KeyPart, _out: &mut Vec<u8>) { unimplemented!() }
