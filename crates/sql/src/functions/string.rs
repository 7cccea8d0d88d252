//! String functions that look at characters and bytes.

use std::borrow::Cow;

use highkey_types::{Charset, Str, TypeKind, Value};

use super::FuncId;
use super::call::{Result, Types};
use crate::expr::EvalContext;
use crate::expr::convert::{invalid_bytes, to_bytes, to_i64, to_text, warn};
use crate::plan::ExprType;

/// Bytes of a string in its own character set: what LENGTH counts and HEX shows.
pub(super) fn encoded<'a>(value: &'a Value, ty: &ExprType) -> Cow<'a, [u8]> {
    match value {
        Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text) if ty.ty.is_string() => ty.ty.charset().encode(text),
        _ => to_bytes(value).unwrap_or_default(),
    }
}

/// A string while it is worked on: characters of text, or bytes.
pub(super) enum Chars {
    Text(Vec<char>),
    Bytes(Vec<u8>),
}

impl Chars {
    /// The form follows the result's type: a binary result is bytes.
    pub fn of(value: &Value, binary: bool) -> Chars {
        if binary { Chars::Bytes(to_bytes(value).unwrap_or_default().into_owned()) } else { Chars::Text(to_text(value).unwrap_or_default().chars().collect()) }
    }

    pub fn len(&self) -> usize {
        match self {
            Chars::Text(c) => c.len(),
            Chars::Bytes(b) => b.len(),
        }
    }

    /// The part from `start` to `end`.
    pub fn slice(&self, start: usize, end: usize) -> Value {
        match self {
            Chars::Text(c) => Value::from(c[start..end].iter().collect::<String>()),
            Chars::Bytes(b) => Value::Bytes(b[start..end].to_vec()),
        }
    }
}

/// A string result in the form that its type says.
pub(super) fn string(bytes: Vec<u8>, types: &Types<'_>) -> Value {
    if types.result.ty.is_binary() { Value::Bytes(bytes) } else { Value::from(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())) }
}

/// NULL with a warning for a result longer than max_allowed_packet.
pub(super) fn too_long(func: FuncId, cx: &mut dyn EvalContext) -> Value {
    let limit = cx.max_allowed_packet();
    warn(cx, 1301, format!("Result of {}() was larger than max_allowed_packet ({limit}) - truncated", func.name().to_lowercase()));
    Value::Null
}

/// How often REPEAT and SPACE repeat: not at all for what is negative.
fn repetitions(value: &Value, cx: &mut dyn EvalContext) -> usize {
    match value {
        Value::UInt(n) => usize::try_from(*n).unwrap_or(usize::MAX),
        _ => to_i64(value, cx).unwrap_or(0).max(0) as usize,
    }
}

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    let binary = types.result.ty.is_binary();
    let text = |i: usize| to_text(&args[i]).unwrap_or_default();
    Ok(match func {
        F::Concat => {
            let mut out = Vec::new();
            for (i, arg) in args.iter().enumerate() {
                out.extend_from_slice(&if binary { encoded(arg, types.arg(i)) } else { to_bytes(arg).unwrap_or_default() });
                if out.len() > cx.max_allowed_packet() {
                    return Ok(too_long(func, cx));
                }
            }
            string(out, types)
        }
        F::ConcatWs => {
            let Some(separator) = to_bytes(&args[0]) else { return Ok(Value::Null) };
            let parts: Vec<_> = args[1..].iter().filter_map(to_bytes).collect();
            string(parts.join(&separator[..]), types)
        }
        F::CutText => {
            let (text, length) = (text(0), to_i64(&args[1], cx).unwrap_or(0).max(0) as usize);
            match text.char_indices().nth(length) {
                None => args[0].clone(),
                Some((at, _)) => {
                    warn(cx, 1292, format!("Truncated incorrect CHAR({length}) value: '{text}'"));
                    Value::from(&text[..at])
                }
            }
        }
        F::PadBytes => {
            let mut bytes = to_bytes(&args[0]).unwrap_or_default().into_owned();
            let length = to_i64(&args[1], cx).unwrap_or(0).max(0) as usize;
            if length > cx.max_allowed_packet() {
                return Ok(too_long(func, cx));
            }
            if bytes.len() > length {
                warn(cx, 1292, format!("Truncated incorrect BINARY({length}) value: '{}'", String::from_utf8_lossy(&bytes)));
            }
            bytes.resize(length, 0);
            Value::Bytes(bytes)
        }
        F::ConvertUsing => return Ok(convert_using(&args[0], types, cx)),
        F::Ascii => Value::Int(encoded(&args[0], types.arg(0)).first().map_or(0, |b| i64::from(*b))),
        F::Ord => {
            let first = match &args[0] {
                Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text) => Value::from(text.chars().take(1).collect::<String>()),
                other => Value::Bytes(encoded(other, types.arg(0)).iter().take(1).copied().collect()),
            };
            Value::Int(encoded(&first, types.arg(0)).iter().fold(0, |n, b| n << 8 | i64::from(*b)))
        }
        F::Length => Value::Int(encoded(&args[0], types.arg(0)).len() as i64),
        F::BitLength => Value::Int(encoded(&args[0], types.arg(0)).len() as i64 * 8),
        F::CharLength => Value::Int(match &args[0] {
            Value::Bytes(bytes) => bytes.len() as i64,
            _ => text(0).chars().count() as i64,
        }),
        F::Char => {
            let mut out = Vec::new();
            for arg in args.iter().filter(|a| !a.is_null()) {
                let n = to_i64(arg, cx).unwrap_or(0) as u32;
                let bytes = n.to_be_bytes();
                let skip = bytes.iter().take(3).take_while(|b| **b == 0).count();
                out.extend_from_slice(&bytes[skip..]);
            }
            Value::Bytes(out)
        }
        F::Elt => match to_i64(&args[0], cx) {
            Some(n) if n >= 1 && (n as usize) < args.len() => match &args[n as usize] {
                Value::Null => Value::Null,
                chosen => string(to_bytes(chosen).unwrap_or_default().into_owned(), types),
            },
            _ => Value::Null,
        },
        F::MakeSet => {
            let Some(bits) = to_i64(&args[0], cx) else { return Ok(Value::Null) };
            let chosen = args[1..].iter().enumerate().filter(|(i, _)| *i < 64 && bits as u64 >> i & 1 == 1);
            let parts: Vec<_> = chosen.filter_map(|(_, a)| to_bytes(a)).collect();
            string(parts.join(&b","[..]), types)
        }
        F::ExportSet => {
            if args.iter().any(Value::is_null) {
                return Ok(Value::Null);
            }
            let bits = to_i64(&args[0], cx).unwrap_or(0) as u64;
            let separator = args.get(3).and_then(to_bytes).unwrap_or(Cow::Borrowed(b","));
            let count = match args.get(4) {
                Some(n) => to_i64(n, cx).unwrap_or(64).clamp(0, 64),
                None => 64,
            };
            let (on, off) = (to_bytes(&args[1]).unwrap_or_default(), to_bytes(&args[2]).unwrap_or_default());
            let parts: Vec<&[u8]> = (0..count).map(|i| if bits >> i & 1 == 1 { &on[..] } else { &off[..] }).collect();
            string(parts.join(&separator[..]), types)
        }
        F::Insert => {
            let chars = Chars::of(&args[0], binary);
            let (position, length) = (to_i64(&args[1], cx).unwrap_or(0), to_i64(&args[2], cx).unwrap_or(0));
            let total = chars.len() as i64;
            // MySQL compares the position with the number of bytes, too: it may be behind the last character if there are more of them.
            let last = if encoded(&args[0], types.result).len() > chars.len() { total + 1 } else { total };
            if position < 1 || position > last {
                return Ok(args[0].clone());
            }
            let start = position as usize - 1;
            let end = if length < 0 || length > total - position + 1 { chars.len() } else { start + length as usize };
            let mut out = to_bytes(&chars.slice(0, start)).unwrap_or_default().into_owned();
            out.extend_from_slice(&to_bytes(&args[3]).unwrap_or_default());
            out.extend_from_slice(&to_bytes(&chars.slice(end, chars.len())).unwrap_or_default());
            string(out, types)
        }
        F::Left | F::Right => {
            let chars = Chars::of(&args[0], binary);
            let count = to_i64(&args[1], cx).unwrap_or(0).clamp(0, chars.len() as i64) as usize;
            if func == F::Left { chars.slice(0, count) } else { chars.slice(chars.len() - count, chars.len()) }
        }
        F::Substring => {
            let chars = Chars::of(&args[0], binary);
            let total = chars.len() as i64;
            let position = to_i64(&args[1], cx).unwrap_or(0);
            let start = if position < 0 { total + position } else { position - 1 };
            let count = match args.get(2) {
                Some(n) => to_i64(n, cx).unwrap_or(0),
                None => i64::MAX,
            };
            if position == 0 || start < 0 || start >= total || count <= 0 {
                return Ok(string(Vec::new(), types));
            }
            let end = start.saturating_add(count).min(total);
            chars.slice(start as usize, end as usize)
        }
        F::Lower | F::Upper => match &args[0] {
            Value::Bytes(_) => args[0].clone(),
            _ => {
                let collation = types.result.ty.collation;
                Value::from(if func == F::Lower { collation.lower(&text(0)) } else { collation.upper(&text(0)) })
            }
        },
        F::Lpad | F::Rpad => return pad(func, args, binary, cx),
        F::Ltrim | F::Rtrim => {
            let bytes = to_bytes(&args[0]).unwrap_or_default();
            let start = if func == F::Ltrim { bytes.iter().take_while(|b| **b == b' ').count() } else { 0 };
            let end = if func == F::Rtrim { bytes.len() - bytes.iter().rev().take_while(|b| **b == b' ').count() } else { bytes.len() };
            string(bytes[start..end.max(start)].to_vec(), types)
        }
        F::TrimBoth | F::TrimLeading | F::TrimTrailing => {
            let bytes = to_bytes(&args[0]).unwrap_or_default();
            let what = args.get(1).and_then(to_bytes).unwrap_or(Cow::Borrowed(b" "));
            let mut rest = &bytes[..];
            if !what.is_empty() {
                while func != F::TrimTrailing && rest.starts_with(&what) {
                    rest = &rest[what.len()..];
                }
                while func != F::TrimLeading && rest.ends_with(&what) {
                    rest = &rest[..rest.len() - what.len()];
                }
            }
            string(rest.to_vec(), types)
        }
        F::Quote => string(quote(&args[0]), types),
        F::Repeat => {
            let count = repetitions(&args[1], cx);
            let bytes = to_bytes(&args[0]).unwrap_or_default();
            if bytes.len().saturating_mul(count) > cx.max_allowed_packet() {
                return Ok(too_long(func, cx));
            }
            string(bytes.repeat(count), types)
        }
        F::Space => {
            let count = repetitions(&args[0], cx);
            if count > cx.max_allowed_packet() {
                return Ok(too_long(func, cx));
            }
            string(vec![b' '; count], types)
        }
        F::Reverse => match Chars::of(&args[0], binary) {
            Chars::Text(c) => Value::from(c.into_iter().rev().collect::<String>()),
            Chars::Bytes(b) => Value::Bytes(b.into_iter().rev().collect()),
        },
        F::Soundex => Value::from(soundex(&text(0), types.arg(0).ty.charset())),
        F::LoadFile => cx.load_file(&text(0)).map_or(Value::Null, Value::Bytes),
        F::WeightString => match &args[0] {
            Value::Text(s) | Value::Enum(_, s) | Value::Set(_, s) => Value::Bytes(types.arg(0).ty.collation.weight_string(s.as_bytes())),
            Value::Bytes(b) => Value::Bytes(b.clone()),
            _ => Value::Null,
        },
        F::Charset | F::Collation => {
            let ty = &types.arg(0).ty;
            let json = ty.kind == TypeKind::Json;
            Value::from(match func {
                F::Charset if json => Charset::Utf8mb4.name(),
                F::Charset => ty.charset().name(),
                _ if json => "utf8mb4_bin",
                _ => ty.collation.name,
            })
        }
        _ => Value::Int(types.arg(0).coercibility as i64),
    })
}

/// CONVERT(… USING charset): what the character set cannot hold becomes `?`.
fn convert_using(value: &Value, types: &Types<'_>, cx: &mut dyn EvalContext) -> Value {
    let charset = types.result.ty.charset();
    match value {
        _ if charset == Charset::Binary => Value::Bytes(encoded(value, types.arg(0)).into_owned()),
        Value::Bytes(bytes) => match charset.decode(bytes) {
            Ok(text) => Value::from(text.into_owned()),
            Err(at) => {
                warn(cx, 1300, format!("Invalid {} character string: '{}'", charset.name(), invalid_bytes(bytes, at)));
                // Bytes that are a character of the character set, but stand for none, are a character that cannot be shown.
                if charset.is_well_formed(bytes) { Value::from(charset.decode_lossy(bytes).into_owned()) } else { Value::Null }
            }
        },
        _ => {
            let text = to_text(value).unwrap_or_default();
            if charset.first_invalid(&text).is_none() {
                return Value::Text(Str::from(&*text));
            }
            Value::from(text.chars().map(|c| if charset.can_encode(c) { c } else { '?' }).collect::<String>())
        }
    }
}

fn pad(func: FuncId, args: &[Value], binary: bool, cx: &mut dyn EvalContext) -> Result<Value> {
    let (chars, fill) = (Chars::of(&args[0], binary), Chars::of(&args[2], binary));
    let length = to_i64(&args[1], cx).unwrap_or(-1);
    if length < 0 {
        return Ok(Value::Null);
    }
    let length = length as usize;
    if length <= chars.len() {
        return Ok(chars.slice(0, length));
    }
    if length > cx.max_allowed_packet() {
        return Ok(too_long(func, cx));
    }
    let missing = length - chars.len();
    if fill.len() == 0 {
        return Ok(Value::Null);
    }
    Ok(match (chars, fill) {
        (Chars::Text(c), Chars::Text(f)) => {
            let padding = f.iter().cycle().take(missing);
            Value::from(if func == FuncId::Lpad { padding.chain(&c).collect::<String>() } else { c.iter().chain(padding).collect::<String>() })
        }
        (Chars::Bytes(b), Chars::Bytes(f)) => {
            let padding = f.iter().cycle().take(missing).copied();
            Value::Bytes(if func == FuncId::Lpad { padding.chain(b).collect() } else { b.into_iter().chain(padding).collect() })
        }
        _ => Value::Null,
    })
}

fn quote(value: &Value) -> Vec<u8> {
    let Some(bytes) = to_bytes(value) else { return b"NULL".to_vec() };
    let mut out = Vec::with_capacity(bytes.len() + 2);
    out.push(b'\'');
    for byte in bytes.iter() {
        match byte {
            b'\\' | b'\'' => out.extend([b'\\', *byte]),
            0 => out.extend(b"\\0"),
            0x1A => out.extend(b"\\Z"),
            _ => out.push(*byte),
        }
    }
    out.push(b'\'');
    out
}

/// MySQL's SOUNDEX: vowels dropped first, duplicates after, at least four characters, any length.
fn soundex(text: &str, charset: Charset) -> String {
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    let code = |c: char| if c.is_ascii_alphabetic() { CODES[(c.to_ascii_uppercase() as u8 - b'A') as usize] } else { b'0' };
    // Where characters have several bytes, MySQL takes all from À on for letters.
    let is_letter = |c: &char| if charset.max_bytes() > 1 { c.is_ascii_alphabetic() || *c >= 'À' } else { c.is_alphabetic() };
    let mut letters = text.chars().filter(is_letter);
    let Some(first) = letters.next() else { return String::new() };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for c in letters {
        let next = code(c);
        if next != b'0' && next != last {
            out.push(next as char);
        }
        if next != b'0' {
            last = next;
        }
    }
    while out.chars().count() < 4 {
        out.push('0');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soundex_as_mysql() {
        assert_eq!(soundex("Hello", Charset::Utf8mb4), "H400");
        assert_eq!(soundex("Quadratically", Charset::Utf8mb4), "Q36324");
        assert_eq!(soundex("äb", Charset::Utf8mb4), "ä100");
        assert_eq!(soundex("äb", Charset::Latin1), "ä100");
    }
}
