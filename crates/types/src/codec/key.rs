//! Index keys: bytes that compare by memcmp as the values do under their types, collations and directions.

use super::scalar;
use crate::{ColumnType, TypeKind, Value};

/// One column of an index key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    pub ty: ColumnType,
    pub descending: bool,
    /// Index prefix: characters of text, bytes of binary.
    pub prefix: Option<u32>,
    /// A NOT NULL part has no NULL byte, and no NULL may be encoded in it.
    pub nullable: bool,
}

impl KeyPart {
    /// An ascending NOT NULL part of the whole column.
    pub fn new(ty: ColumnType) -> KeyPart {
        KeyPart { ty, descending: false, prefix: None, nullable: false }
    }
}

const NULL: u8 = 0;
const PRESENT: u8 = 1;

/// Appends the key of `values`: the first `values.len()` parts, so fewer than `parts` make the prefix that bounds a
/// range.
pub fn encode_key(values: &[Value], parts: &[KeyPart], out: &mut Vec<u8>) {
    debug_assert!(values.len() <= parts.len(), "no more values than key parts");
    for (value, part) in values.iter().zip(parts) {
        encode_key_part(value, part, out);
    }
}

/// Appends one part.  Panics if `value` is not a stored value of the part's type (I1).
pub fn encode_key_part(value: &Value, part: &KeyPart, out: &mut Vec<u8>) {
    let start = out.len();
    if part.nullable {
        out.push(if value.is_null() { NULL } else { PRESENT });
    }
    if value.is_null() {
        assert!(part.nullable, "I1: no NULL in a NOT NULL key part");
    } else {
        encode_value(value, part, out);
    }
    if part.descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

fn encode_value(value: &Value, part: &KeyPart, out: &mut Vec<u8>) {
    let ty = &part.ty;
    if let Some(width) = scalar::width(ty) {
        let number = scalar::to_number(value, ty, width);
        out.extend_from_slice(&number.to_be_bytes()[8 - width..]);
        return;
    }
    match &ty.kind {
        TypeKind::Float => {
            // Adding zero turns -0 into +0, its equal.
            let bits = (scalar::double(value, ty) as f32 + 0.0).to_bits();
            let ordered = if bits >> 31 == 1 { !bits } else { bits ^ 1 << 31 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        TypeKind::Double => {
            let bits = (scalar::double(value, ty) + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        TypeKind::Decimal { precision, scale } => {
            let width = decimal_width(*precision);
            let mut bytes = scalar::unscaled(value, ty, *scale).to_be_bytes();
            bytes[32 - width] ^= 0x80;
            out.extend_from_slice(&bytes[32 - width..]);
        }
        TypeKind::Null => {}
        _ if ty.is_binary() || ty.kind == TypeKind::Json => {
            let bytes = scalar::bytes(value, ty);
            let length = part.prefix.map_or(bytes.len(), |prefix| bytes.len().min(prefix as usize));
            ty.collation.sort_key(&bytes[..length], out);
        }
        _ => {
            let text = scalar::bytes(value, ty);
            ty.collation.sort_key(char_prefix(text, part.prefix), out);
        }
    }
}

/// The first `prefix` characters of UTF-8 text.
fn char_prefix(text: &[u8], prefix: Option<u32>) -> &[u8] {
    match prefix {
        Some(prefix) if text.len() > prefix as usize => {
            let mut starts = text.iter().enumerate().filter(|(_, byte)| **byte & 0xC0 != 0x80).map(|(at, _)| at);
            &text[..starts.nth(prefix as usize).unwrap_or(text.len())]
        }
        _ => text,
    }
}

/// Bytes of a signed number of `precision` decimal digits.
fn decimal_width(precision: u8) -> usize {
    // 3402/1024 is just above log2(10); one bit more for the sign.
    (usize::from(precision) * 3402 / 1024 + 1 + 1).div_ceil(8)
}
