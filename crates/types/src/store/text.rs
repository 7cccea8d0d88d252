//! Assignment to CHAR, VARCHAR, TEXT, BINARY, BLOB, ENUM, SET and JSON.

use super::StoreContext;
use crate::cast::to_bytes;
use crate::codec::scalar::set_text;
use crate::errors::{self, MySqlError};
use crate::format::{display_text, double_in_width, double_to_string};
use super::number::cut_to_bits;
use crate::{Charset, ColumnType, Str, TypeKind, Value, json as json_text};

type Stored = Result<Value, MySqlError>;

pub(super) fn text(value: Value, ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Stored {
    let text: Str = match value {
        Value::Text(text) | Value::Json(text) | Value::Enum(_, text) | Value::Set(_, text) => text,
        Value::Bytes(bytes) => match ty.charset().decode(&bytes) {
            Ok(text) => text.into(),
            Err(at) => {
                cx.fail(errors::truncated_wrong_value_for_field("string", escaped(&bytes[at..]), column, cx.row))?;
                // MySQL keeps what is well-formed before the first bad byte.
                ty.charset().decode(&bytes[..at]).unwrap_or_default().into()
            }
        },
        Value::Double(v) => fitting(v, ty).into(),
        other => display_text(&other).unwrap_or_default().into(),
    };
    let text = match ty.charset().first_invalid(&text) {
        Some(at) => {
            cx.fail(errors::truncated_wrong_value_for_field("string", escaped(&text.as_bytes()[at..]), column, cx.row))?;
            text.chars().map(|c| if ty.charset().can_encode(c) { c } else { '?' }).collect::<String>().into()
        }
        None => text,
    };
    let text = fit(text, ty, column, cx)?;
    if matches!(ty.kind, TypeKind::Char(_)) && text.ends_with(' ') {
        return Ok(Value::Text(text.trim_end_matches(' ').into()));
    }
    Ok(Value::Text(text))
}

/// Cut to the column's length: characters of CHAR and VARCHAR, bytes of TEXT.  Lost spaces are silent in a CHAR, a note
/// in a VARCHAR.
fn fit(text: Str, ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Result<Str, MySqlError> {
    let end = match ty.kind {
        TypeKind::Char(limit) | TypeKind::VarChar(limit) => {
            // A character has at least one byte.
            if text.len() <= limit as usize {
                return Ok(text);
            }
            text.char_indices().nth(limit as usize).map(|(at, _)| at)
        }
        _ => {
            let limit = ty.max_bytes();
            if ty.charset().encoded_len(&text) as u64 <= limit {
                return Ok(text);
            }
            let mut bytes = 0;
            text.char_indices()
                .find(|(_, c)| {
                    bytes += ty.charset().encoded_len(c.encode_utf8(&mut [0; 4])) as u64;
                    bytes > limit
                })
                .map(|(at, _)| at)
        }
    };
    let Some(end) = end else { return Ok(text) };
    if text[end..].bytes().any(|byte| byte != b' ') {
        cx.too_long(column)?;
    } else if !matches!(ty.kind, TypeKind::Char(_)) {
        let note = errors::warn_data_truncated(column, cx.row);
        cx.note(note);
    }
    Ok(text[..end].into())
}

/// A double with as many digits as a CHAR, VARCHAR, BINARY or VARBINARY of this length can hold.
fn fitting(v: f64, ty: &ColumnType) -> String {
    let text = double_to_string(v);
    match ty.max_length() {
        Some(limit) if text.len() as u64 > limit && !ty.is_blob() => double_in_width(v, limit as usize),
        _ => text,
    }
}

/// Six bytes of a bad string as `\xNN`, printable ASCII as it is, then dots if there is more.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(6) {
        if (0x20..0x7F).contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    if bytes.len() > 6 {
        text.push_str("...");
    }
    text
}

pub(super) fn binary(value: Value, ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Stored {
    let mut bytes = match value {
        Value::Bytes(bytes) => bytes,
        Value::Double(v) => fitting(v, ty).into_bytes(),
        other => to_bytes(&other).unwrap_or_default(),
    };
    let limit = ty.max_bytes() as usize;
    if bytes.len() > limit {
        cx.too_long(column)?;
        bytes.truncate(limit);
    }
    if let TypeKind::Binary(_) = ty.kind {
        bytes.resize(limit, 0);
    }
    Ok(Value::Bytes(bytes))
}

/// A member by name under the collation, or by its number in digits.
pub(super) fn enumeration(value: &Value, members: &[Str], ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Stored {
    let member = |index: u64| match index {
        0 => Value::Enum(0, Str::default()),
        _ => Value::Enum(index as u16, members[index as usize - 1].clone()),
    };
    let by_number = |index: u64| (1..=members.len() as u64).contains(&index).then(|| member(index));
    let found = match value {
        Value::Enum(0, _) => Some(member(0)),
        Value::Int(v) => u64::try_from(*v).ok().and_then(by_number),
        Value::UInt(v) => by_number(*v),
        Value::Double(v) => by_number(cut_to_bits(*v)),
        Value::Float(v) => by_number(cut_to_bits(f64::from(*v))),
        Value::Decimal(v) => v.truncate(0).to_u64().and_then(by_number),
        other => {
            let text = to_text(other);
            let text = text.trim_end_matches(' ');
            match position(members, text, ty) {
                Some(at) => Some(member(at as u64 + 1)),
                None if !text.is_empty() && text.len() <= 6 && text.bytes().all(|b| b.is_ascii_digit()) => {
                    // The text '0' is the error value without an error.
                    text.parse().ok().and_then(|index| if index == 0 { Some(member(0)) } else { by_number(index) })
                }
                None => None,
            }
        }
    };
    match found {
        Some(v) => Ok(v),
        None => {
            cx.data_truncated(column)?;
            Ok(member(0))
        }
    }
}

/// Members by name, comma-separated, or their bits as a number.
pub(super) fn set(value: &Value, members: &[Str], ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Stored {
    let all = if members.len() >= 64 { u64::MAX } else { (1 << members.len()) - 1 };
    let (bits, complete) = match value {
        Value::Int(v) => (*v as u64, true),
        Value::UInt(v) => (*v, true),
        Value::Double(v) => (cut_to_bits(*v), true),
        Value::Float(v) => (cut_to_bits(f64::from(*v)), true),
        Value::Decimal(v) => {
            let whole = v.truncate(0);
            (whole.to_u64().or(whole.to_i64().map(|v| v as u64)).unwrap_or(1 << 63), true)
        }
        other => {
            let text = to_text(other);
            let trimmed = text.trim_end_matches(' ');
            let mut bits = 0;
            let mut complete = true;
            if !trimmed.is_empty() {
                for name in trimmed.split(',') {
                    match position(members, name, ty) {
                        Some(at) => bits |= 1 << at,
                        None => complete = false,
                    }
                }
            }
            if bits == 0 && !text.is_empty() && !complete || trimmed.is_empty() && !text.is_empty() {
                complete = false;
                if text.len() < 22
                    && let Ok(number) = text.parse::<u64>()
                    && number <= all
                {
                    (bits, complete) = (number, true);
                }
            }
            (bits, complete)
        }
    };
    if !complete || bits & !all != 0 {
        cx.data_truncated(column)?;
    }
    let bits = bits & all;
    Ok(Value::Set(bits, set_text(bits, members)))
}

fn position(members: &[Str], text: &str, ty: &ColumnType) -> Option<usize> {
    members.iter().position(|member| ty.collation.eq(member.as_bytes(), text.as_bytes()))
}

fn to_text(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => Charset::Utf8mb4.decode_lossy(bytes).into_owned(),
        other => display_text(other).unwrap_or_default(),
    }
}

pub(super) fn json(value: Value, column: &str) -> Stored {
    match value {
        Value::Json(_) => Ok(value),
        Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text) => match json_text::normalise(&text) {
            Ok(normal) => Ok(Value::Json(normal)),
            Err((reason, _)) if reason == json_text::TOO_DEEP => Err(errors::json_document_too_deep()),
            Err((reason, position)) => Err(errors::invalid_json_text(reason, position, column)),
        },
        Value::Bytes(_) => Err(errors::invalid_json_charset("binary")),
        _ => Err(errors::invalid_json_text("not a JSON text, may need CAST", 0, column)),
    }
}
