//! MySQL's binary JSON (`json_binary.h`) as the text that MySQL shows of it.

use highkey_types::json::push_quoted;
use highkey_types::{ColumnType, TypeKind, double_to_string};

use super::image::{SourceColumn, from_packed, packed_time};
use crate::functions::to_base64;

const SMALL_OBJECT: u8 = 0;
const LARGE_OBJECT: u8 = 1;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;
const LITERAL: u8 = 4;
const INT16: u8 = 5;
const UINT16: u8 = 6;
const INT32: u8 = 7;
const UINT32: u8 = 8;
const INT64: u8 = 9;
const UINT64: u8 = 10;
const DOUBLE: u8 = 11;
const STRING: u8 = 12;
const OPAQUE: u8 = 15;

/// Nesting that MySQL allows.
const MAX_DEPTH: usize = 100;

/// The text of a document; the empty one is null, as MySQL reads it.
pub fn text(document: &[u8]) -> Result<String, String> {
    let Some((kind, value)) = document.split_first() else { return Ok("null".into()) };
    let mut out = String::with_capacity(document.len() * 2);
    push(*kind, value, 0, &mut Unread(document.len()), &mut out).ok_or("its binary JSON is damaged")?;
    Ok(out)
}

/// Bytes of a document that nothing has been read from. Offsets may point anywhere, but no byte is part of two values: a document is never read for longer
/// than it is long.
struct Unread(usize);

impl Unread {
    /// None: there are not so many.
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}

/// None: the bytes are no such value. The type and a value that is kept with it are its container's.
fn push(kind: u8, value: &[u8], depth: usize, unread: &mut Unread, out: &mut String) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match kind {
        SMALL_OBJECT | LARGE_OBJECT | SMALL_ARRAY | LARGE_ARRAY => return push_members(kind, value, depth, unread, out),
        LITERAL => out.push_str(*["null", "true", "false"].get(usize::from(*value.first()?))?),
        INT16 => out.push_str(&i16::from_le_bytes(fixed(value)?).to_string()),
        UINT16 => out.push_str(&u16::from_le_bytes(fixed(value)?).to_string()),
        INT32 => out.push_str(&i32::from_le_bytes(fixed(value)?).to_string()),
        UINT32 => out.push_str(&u32::from_le_bytes(fixed(value)?).to_string()),
        INT64 => out.push_str(&i64::from_le_bytes(fixed(value)?).to_string()),
        UINT64 => out.push_str(&u64::from_le_bytes(fixed(value)?).to_string()),
        DOUBLE => {
            let number = f64::from_le_bytes(fixed(value)?);
            if !number.is_finite() {
                return None;
            }
            let text = double_to_string(number);
            out.push_str(&text);
            if !text.contains(['.', 'e']) {
                out.push_str(".0");
            }
        }
        STRING => {
            let text = sized(value)?;
            unread.take(1 + text.len())?;
            push_quoted(std::str::from_utf8(text).ok()?, out);
        }
        OPAQUE => {
            let (kind, value) = value.split_first()?;
            let value = sized(value)?;
            unread.take(2 + value.len())?;
            push_opaque(*kind, value, out)?;
        }
        _ => return None,
    }
    Some(())
}

/// An object or array: the count, the size in bytes, entries of the keys (offset, length), entries of the values (type, offset or the value itself
/// where it fits). Offsets count from the start of the count.
fn push_members(kind: u8, bytes: &[u8], depth: usize, unread: &mut Unread, out: &mut String) -> Option<()> {
    let object = matches!(kind, SMALL_OBJECT | LARGE_OBJECT);
    let large = matches!(kind, LARGE_OBJECT | LARGE_ARRAY);
    let width = if large { 4 } else { 2 };
    let number = |at: usize| -> Option<usize> {
        let bytes = bytes.get(at..at.checked_add(width)?)?;
        Some(bytes.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)))
    };
    let (count, size) = (number(0)?, number(width)?);
    let bytes = bytes.get(..size)?;
    let keys = 2 * width;
    let values = if object { keys.checked_add(count.checked_mul(width + 2)?)? } else { keys };
    unread.take(values.checked_add(count.checked_mul(width + 1)?)?)?;
    out.push(if object { '{' } else { '[' });
    for i in 0..count {
        if i > 0 {
            out.push_str(", ");
        }
        if object {
            let entry = keys + i * (width + 2);
            let (at, length) = (number(entry)?, usize::from(u16::from_le_bytes(fixed(bytes.get(entry + width..)?)?)));
            unread.take(length)?;
            push_quoted(std::str::from_utf8(bytes.get(at..at.checked_add(length)?)?).ok()?, out);
            out.push_str(": ");
        }
        let entry = values.checked_add(i.checked_mul(width + 1)?)?;
        let kind = *bytes.get(entry)?;
        let inlined = matches!(kind, LITERAL | INT16 | UINT16) || large && matches!(kind, INT32 | UINT32);
        let at = if inlined { entry + 1 } else { number(entry + 1)? };
        if !inlined {
            unread.take(match kind {
                INT32 | UINT32 => 4,
                INT64 | UINT64 | DOUBLE => 8,
                _ => 0,
            })?;
        }
        push(kind, bytes.get(at..)?, depth + 1, unread, out)?;
    }
    out.push(if object { '}' } else { ']' });
    Some(())
}

/// A value of one of MySQL's own types.
fn push_opaque(kind: u8, value: &[u8], out: &mut String) -> Option<()> {
    const DECIMAL: u8 = 246;
    match kind {
        DECIMAL => {
            let (precision, scale) = (*value.first()?, *value.get(1)?);
            let column = SourceColumn::new(DECIMAL, &[precision, scale])?;
            let ty = ColumnType::new(TypeKind::Decimal { precision, scale });
            match column.decode(&ty, &mut value.get(2..)?).ok()? {
                highkey_types::Value::Decimal(number) => out.push_str(&number.to_string()),
                _ => return None,
            }
        }
        // DATE, DATETIME, TIMESTAMP and TIME: packed, the fraction in the low three bytes.
        7 | 10 | 11 | 12 => {
            let packed = i64::from_le_bytes(fixed(value)?);
            let (whole, micros) = (packed.unsigned_abs() >> 24, (packed.unsigned_abs() & 0xFF_FFFF) as u32);
            let text = match kind {
                11 => packed_time(packed < 0, whole, micros).format(6),
                10 => from_packed(whole, micros).date.to_string(),
                _ => from_packed(whole, micros).format(6),
            };
            push_quoted(&text, out);
        }
        _ => {
            push_quoted(&format!("base64:type{kind}:{}", to_base64(value)), out);
        }
    }
    Some(())
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.get(..N)?.try_into().ok()
}

/// The bytes after a length of seven bits a byte, the lowest first.
fn sized(bytes: &[u8]) -> Option<&[u8]> {
    let mut length = 0usize;
    for (i, byte) in bytes.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7F) << (7 * i);
        if byte & 0x80 == 0 {
            return bytes.get(i + 1..)?.get(..length);
        }
    }
    None
}
