//! Index keys: bytes that compare by memcmp as the values do under their types, collations and directions.

use super::{RowLayout, scalar};
use crate::{ColumnType, I256, TypeKind, Value, json};

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

pub(super) const NULL: u8 = 0;
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
    encode_part(value.is_null(), part, out, |out| encode_value(value, part, out));
}

/// Appends one part for column `col` of an encoded row, whose type is the part's, and makes no [`Value`] of it.  True if
/// it is NULL.
pub fn encode_key_part_of_row(layout: &RowLayout, row: &[u8], col: usize, part: &KeyPart, out: &mut Vec<u8>) -> bool {
    debug_assert_eq!(layout.types()[col], part.ty, "the part's type is the column's");
    let is_null = layout.is_null(row, col);
    encode_part(is_null, part, out, |out| encode_column(layout, row, col, part, out));
    is_null
}

/// Bytes of the encoded part that `key` begins with; all of them if the part is cut short.
pub fn key_part_len(part: &KeyPart, key: &[u8]) -> usize {
    let plain: Vec<u8>;
    let key = if part.descending {
        plain = key.iter().map(|byte| !byte).collect();
        &plain
    } else {
        key
    };
    let value = match (part.nullable, key.first()) {
        (_, None) => return 0,
        (true, Some(&NULL)) => return 1,
        (nullable, _) => &key[usize::from(nullable)..],
    };
    let length = match &part.ty.kind {
        TypeKind::Float => 4,
        TypeKind::Double => 8,
        TypeKind::Decimal { precision, .. } => decimal_width(*precision),
        TypeKind::Null => 0,
        // In no index.
        TypeKind::Json => value.len(),
        _ => scalar::width(&part.ty).unwrap_or_else(|| part.ty.collation.sort_key_len(value)),
    };
    (key.len() - value.len()) + length.min(value.len())
}

/// The NULL byte, the value if there is one, and the direction.
fn encode_part(is_null: bool, part: &KeyPart, out: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    if part.nullable {
        out.push(if is_null { NULL } else { PRESENT });
    }
    if is_null {
        assert!(part.nullable, "I1: no NULL in a NOT NULL key part");
    } else {
        encode(out);
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
        TypeKind::Float => push_float(scalar::double(value, ty) as f32, out),
        TypeKind::Double => push_double(scalar::double(value, ty), out),
        TypeKind::Decimal { precision, scale } => push_decimal(scalar::unscaled(value, ty, *scale).to_be_bytes(), *precision, out),
        TypeKind::Null => {}
        _ => push_string(scalar::bytes(value, ty), part, out),
    }
}

/// [`encode_value`] of a column that is not NULL.
fn encode_column(layout: &RowLayout, row: &[u8], col: usize, part: &KeyPart, out: &mut Vec<u8>) {
    match &part.ty.kind {
        TypeKind::Float => push_float(layout.double(row, col).unwrap_or_default() as f32, out),
        TypeKind::Double => push_double(layout.double(row, col).unwrap_or_default(), out),
        TypeKind::Decimal { precision, .. } if decimal_width(*precision) <= 16 => {
            push_decimal(layout.decimal_i128(row, col).unwrap_or_default().to_be_bytes(), *precision, out);
        }
        TypeKind::Decimal { precision, .. } => {
            push_decimal(layout.decimal(row, col).unwrap_or(I256::ZERO).to_be_bytes(), *precision, out);
        }
        _ => match layout.fixed(row, col) {
            // The key's number, in the row's byte order.
            Some(number) => out.extend(number.iter().rev()),
            None => push_string(layout.bytes(row, col).unwrap_or_default(), part, out),
        },
    }
}

fn push_float(v: f32, out: &mut Vec<u8>) {
    // Adding zero turns -0 into +0, its equal.
    let bits = (v + 0.0).to_bits();
    let ordered = if bits >> 31 == 1 { !bits } else { bits ^ 1 << 31 };
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn push_double(v: f64, out: &mut Vec<u8>) {
    let bits = (v + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 };
    out.extend_from_slice(&ordered.to_be_bytes());
}

/// The unscaled number, of at least as many bytes as the key's.
fn push_decimal<const N: usize>(mut unscaled: [u8; N], precision: u8, out: &mut Vec<u8>) {
    let start = N - decimal_width(precision);
    unscaled[start] ^= 0x80;
    out.extend_from_slice(&unscaled[start..]);
}

/// The sort key of a prefix: characters of text, bytes of everything else. JSON has no prefixes.
fn push_string(bytes: &[u8], part: &KeyPart, out: &mut Vec<u8>) {
    let ty = &part.ty;
    if ty.kind == TypeKind::Json {
        return json::push_key(&json::Json::of_normal(&String::from_utf8_lossy(bytes)), out);
    }
    let end = part.prefix.map_or(bytes.len(), |prefix| bytes.len().min(prefix as usize));
    let prefix = if ty.is_binary() { &bytes[..end] } else { char_prefix(bytes, part.prefix) };
    ty.collation.sort_key(prefix, out);
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
pub(super) fn decimal_width(precision: u8) -> usize {
    // 3402/1024 is just above log2(10); one bit more for the sign.
    (usize::from(precision) * 3402 / 1024 + 1 + 1).div_ceil(8)
}
