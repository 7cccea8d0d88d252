//! MySQL's binary JSON.
//!
//! A document is its type and its value. An object or an array is small (2-byte numbers) or, where it does not fit 64 KiB, large (4-byte):
//!
//! ```text
//! count, size of the whole, OBJECT: { key's offset, key's length u16 }, { type u8, value's offset or the value itself }, keys, values
//! ```
//!
//! Offsets count from `count`. Literals and 16-bit integers stand in place of the offset, in the large form 32-bit integers too.
//! A decimal is opaque: the column type, the length, precision and scale, the packed decimal. A time that was put into a document by a
//! function is a string in our text, so it is one here.

use highkey_types::json::{self, Json};
use highkey_types::Decimal;
use highkey_types::wire;

use super::decimal;

const SMALL_OBJECT: u8 = 0x00;
const LARGE_OBJECT: u8 = 0x01;
const SMALL_ARRAY: u8 = 0x02;
const LARGE_ARRAY: u8 = 0x03;
const LITERAL: u8 = 0x04;
const INT16: u8 = 0x05;
const INT32: u8 = 0x07;
const INT64: u8 = 0x09;
const UINT64: u8 = 0x0A;
const DOUBLE: u8 = 0x0B;
const STRING: u8 = 0x0C;
const OPAQUE: u8 = 0x0F;

/// The small form is too small.
struct TooBig;

/// Appends the length as u32 and the document of the normalised `text`. Panics if it is not JSON (I1).
pub(super) fn push(text: &str, out: &mut Vec<u8>) {
    let document = json::parse_normal(text).expect("I1: a stored JSON value is JSON");
    let start = out.len();
    out.extend_from_slice(&[0; 5]);
    out[start + 4] = match push_value(&document, true, out) {
        Ok(value_type) => value_type,
        Err(TooBig) => unreachable!("the large form holds what a row holds"),
    };
    let len = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// The bytes of a document: its type and its value. MySQL keeps as many in a column.
pub fn json_len(document: &Json) -> usize {
    let mut out = Vec::new();
    match push_value(document, true, &mut out) {
        Ok(_) => 1 + out.len(),
        Err(TooBig) => unreachable!("the large form holds what a statement holds"),
    }
}

/// Appends a value and answers its type. `large`: what it stands in may be large.
fn push_value(value: &Json, large: bool, out: &mut Vec<u8>) -> Result<u8, TooBig> {
    match value {
        Json::Null | Json::Bool(_) => {
            out.push(literal(value));
            Ok(LITERAL)
        }
        Json::String(text) => {
            push_variable_length(text.len(), out);
            out.extend_from_slice(text.as_bytes());
            Ok(STRING)
        }
        Json::Int(_) | Json::UInt(_) | Json::Double(_) => {
            let (number_type, bytes, len) = packed_number(value);
            out.extend_from_slice(&bytes[..len]);
            Ok(number_type)
        }
        Json::Decimal(v) => {
            push_decimal(v, out);
            Ok(OPAQUE)
        }
        Json::Array(_) | Json::Object(_) => {
            let start = out.len();
            let is_object = matches!(value, Json::Object(_));
            if push_container::<2>(value, out).is_ok() {
                return Ok(if is_object { SMALL_OBJECT } else { SMALL_ARRAY });
            }
            // What is too big for the small form is so within a small container too.
            out.truncate(start);
            if !large {
                return Err(TooBig);
            }
            push_container::<4>(value, out)?;
            Ok(if is_object { LARGE_OBJECT } else { LARGE_ARRAY })
        }
    }
}

/// `WIDTH` bytes for each offset, count and size.
fn push_container<const WIDTH: usize>(value: &Json, out: &mut Vec<u8>) -> Result<(), TooBig> {
    let start = out.len();
    let (members, values) = match value {
        Json::Object(members) => (members.iter().collect::<Vec<_>>(), None),
        Json::Array(values) => (Vec::new(), Some(values)),
        _ => unreachable!("only a container is written as one"),
    };
    let count = values.map_or(members.len(), Vec::len);
    out.resize(start + 2 * WIDTH, 0);
    put::<WIDTH>(count, start, out)?;
    let key_entries = out.len();
    let value_entries = key_entries + members.len() * (WIDTH + 2);
    out.resize(value_entries + count * (1 + WIDTH), 0);
    for (i, (key, _)) in members.iter().enumerate() {
        let entry = key_entries + i * (WIDTH + 2);
        put::<WIDTH>(out.len() - start, entry, out)?;
        let len = u16::try_from(key.len()).expect("I1: a key of a stored document has at most 65535 bytes");
        out[entry + WIDTH..entry + WIDTH + 2].copy_from_slice(&len.to_le_bytes());
        out.extend_from_slice(key.as_bytes());
    }
    let values = members.iter().map(|(_, value)| *value).chain(values.into_iter().flatten());
    for (i, value) in values.enumerate() {
        let entry = value_entries + i * (1 + WIDTH);
        if let Some((value_type, inlined)) = inlined(value, WIDTH) {
            out[entry] = value_type;
            out[entry + 1..entry + 1 + WIDTH].copy_from_slice(&inlined[..WIDTH]);
            continue;
        }
        put::<WIDTH>(out.len() - start, entry + 1, out)?;
        out[entry] = push_value(value, WIDTH == 4, out)?;
    }
    put::<WIDTH>(out.len() - start, start + WIDTH, out)
}

/// Writes an offset, a count or a size.
fn put<const WIDTH: usize>(n: usize, at: usize, out: &mut [u8]) -> Result<(), TooBig> {
    if n as u64 >= 1 << (8 * WIDTH) {
        return Err(TooBig);
    }
    out[at..at + WIDTH].copy_from_slice(&(n as u32).to_le_bytes()[..WIDTH]);
    Ok(())
}

/// A value that fits in place of its offset.
fn inlined(value: &Json, width: usize) -> Option<(u8, [u8; 4])> {
    match value {
        Json::Null | Json::Bool(_) => Some((LITERAL, [literal(value), 0, 0, 0])),
        Json::Int(_) | Json::UInt(_) | Json::Double(_) => {
            let (number_type, bytes, len) = packed_number(value);
            (len <= width).then_some((number_type, [bytes[0], bytes[1], bytes[2], bytes[3]]))
        }
        _ => None,
    }
}

fn literal(value: &Json) -> u8 {
    match value {
        Json::Bool(true) => 1,
        Json::Bool(false) => 2,
        _ => 0,
    }
}

/// Type, bytes and how many of them count. Positive integers above 32 bits are unsigned, as MySQL's parser reads them.
fn packed_number(number: &Json) -> (u8, [u8; 8], usize) {
    match *number {
        Json::Int(v) if i16::try_from(v).is_ok() => (INT16, v.to_le_bytes(), 2),
        Json::Int(v) if i32::try_from(v).is_ok() => (INT32, v.to_le_bytes(), 4),
        Json::Int(v) if v <= i64::from(u32::MAX) => (INT64, v.to_le_bytes(), 8),
        Json::Int(v) => (UINT64, v.to_le_bytes(), 8),
        Json::UInt(v) => (UINT64, v.to_le_bytes(), 8),
        Json::Double(v) => (DOUBLE, v.to_le_bytes(), 8),
        _ => unreachable!("only numbers are packed"),
    }
}

fn push_decimal(v: &Decimal, out: &mut Vec<u8>) {
    let (precision, scale) = (v.precision().max(v.scale()).max(1), v.scale());
    let mut packed = vec![precision, scale];
    decimal::push(v, precision, scale, &mut packed);
    out.push(wire::NEWDECIMAL);
    push_variable_length(packed.len(), out);
    out.extend_from_slice(&packed);
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn push_variable_length(mut len: usize, out: &mut Vec<u8>) {
    while len > 0x7F {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
}
