//! Assignment to integers, DECIMAL, FLOAT, DOUBLE, BIT and YEAR.

use super::StoreContext;
use crate::cast::{double_prefix, printable, temporal_integer};
use crate::errors::{self, MySqlError};
use crate::json::Json;
use crate::{ColumnType, Decimal, TypeKind, Value};

type Stored = Result<Value, MySqlError>;

/// The bytes of a value that is text to numbers.
fn text_of(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Text(text) | Value::Json(text) => Some(text.as_bytes()),
        _ => None,
    }
}

/// The number of a JSON value: a boolean is 1 or 0, a string what is written in it. 3156 if there is none.
pub(super) fn of_json(text: &str, kind: &str, column: &str, cx: &mut StoreContext) -> Stored {
    Ok(match Json::of_normal(text) {
        Json::Int(v) => Value::Int(v),
        Json::UInt(v) => Value::UInt(v),
        Json::Double(v) => Value::Double(v),
        Json::Decimal(v) => Value::Decimal(v),
        Json::Bool(truth) => Value::bool(truth),
        Json::String(text) if double_prefix(text.as_bytes()).0.is_some() => Value::Text(text.into()),
        Json::String(_) | Json::Null | Json::Array(_) | Json::Object(_) => {
            let error = errors::invalid_json_value_for_cast(kind, column, cx.row);
            cx.fail(error)?;
            Value::Int(0)
        }
    })
}

/// A number or temporal value as an integer, rounded; far outside of every range if it is.
fn to_integer(value: &Value) -> i128 {
    match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        Value::Float(v) => f64::from(*v).round_ties_even() as i128,
        Value::Double(v) => v.round_ties_even() as i128,
        Value::Decimal(v) => decimal_to_integer(v),
        Value::Enum(index, _) => i128::from(*index),
        Value::Set(bits, _) => i128::from(*bits),
        other => i128::from(temporal_integer(other).unwrap_or(0)),
    }
}

/// Only a client's parameter is none.
fn is_nan(value: &Value) -> bool {
    match value {
        Value::Float(v) => v.is_nan(),
        Value::Double(v) => v.is_nan(),
        _ => false,
    }
}

/// Digits with an optional sign and nothing else.
fn plain_integer(text: &[u8]) -> Option<i128> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0i64, |n, digit| n * 10 + i64::from(digit - b'0'));
    Some(i128::from(if negative { -number } else { number }))
}

fn decimal_to_integer(v: &Decimal) -> i128 {
    let rounded = v.round(0);
    i128::try_from(rounded.unscaled()).unwrap_or(if v.is_negative() { i128::MIN } else { i128::MAX })
}

pub(super) fn integer(value: &Value, ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Stored {
    if is_nan(value) {
        cx.out_of_range(column)?;
    }
    let (low, high) = ty.integer_range().unwrap_or((i64::MIN, u64::MAX));
    let (number, garbage) = integer_and_garbage(value, column, cx)?;
    let clamped = number.clamp(i128::from(low), i128::from(high));
    if clamped != number {
        cx.out_of_range(column)?;
    } else if garbage {
        cx.data_truncated(column)?;
    }
    Ok(if ty.unsigned { Value::UInt(clamped as u64) } else { Value::Int(clamped as i64) })
}

pub(super) fn year(value: &Value, column: &str, cx: &mut StoreContext) -> Stored {
    let is_text = text_of(value).is_some();
    if is_nan(value) {
        cx.out_of_range(column)?;
    }
    let (number, garbage) = match value {
        Value::Date(v) => (i128::from(v.year), false),
        Value::DateTime(v) => (i128::from(v.date.year), false),
        Value::Time(_) => (i128::from(cx.today().year), false),
        Value::Float(_) | Value::Double(_) if double(value) < 0.0 => (-1, false),
        Value::Float(_) | Value::Double(_) => (double(value) as i128, false),
        _ => integer_and_garbage(value, column, cx)?,
    };
    let no_number = text_of(value).is_some_and(|text| Decimal::parse_prefix(text).length == 0);
    let year = match number {
        0 if no_number => 0,
        // '0' and '00' are 2000, the number 0 is the year 0000.
        0 if is_text && text_of(value).is_some_and(|text| text.len() != 4) => 2000,
        0 => 0,
        1..=69 => number + 2000,
        70..=99 => number + 1900,
        1901..=2155 => number,
        _ => {
            cx.out_of_range(column)?;
            return Ok(Value::UInt(0));
        }
    };
    if garbage {
        cx.data_truncated(column)?;
    }
    Ok(Value::UInt(year as u64))
}

pub(super) fn bit(value: &Value, bits: u8, column: &str, cx: &mut StoreContext) -> Stored {
    let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    let text = match value {
        Value::Bytes(bytes) => Some(bytes.clone()),
        Value::Text(_) | Value::Json(_) | Value::Date(_) | Value::DateTime(_) | Value::Time(_) => crate::cast::to_bytes(value),
        _ => None,
    };
    let (number, fits) = match text {
        // Text is its bytes, a big-endian number.
        Some(bytes) => {
            let significant = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
            let fits = significant.len() <= 8;
            (significant.iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte)), fits)
        }
        None => match value {
            // A double is cut as the processor cuts it: what is out of range is the top bit.
            Value::Float(_) | Value::Double(_) => (cut_to_bits(double(value)), true),
            Value::Decimal(v) if v.is_negative() => {
                cx.out_of_range(column)?;
                (0, true)
            }
            _ => {
                let number = to_integer(value);
                if number > i128::from(u64::MAX) || number < i128::from(i64::MIN) {
                    cx.out_of_range(column)?;
                }
                (number.clamp(i128::from(i64::MIN), i128::from(u64::MAX)) as u64, true)
            }
        },
    };
    if fits && number <= mask {
        return Ok(Value::UInt(number));
    }
    if cx.strict {
        let error = errors::data_too_long(column, cx.row);
        cx.fail(error)?;
    } else {
        cx.out_of_range(column)?;
    }
    Ok(Value::UInt(mask))
}

/// A double's integer part as 64 bits; what is outside of `i64` is the top bit.
pub(super) fn cut_to_bits(v: f64) -> u64 {
    if v >= i64::MIN as f64 && v < -(i64::MIN as f64) { v as i64 as u64 } else { 1 << 63 }
}

/// An integer and whether something followed it in a text.
fn integer_and_garbage(value: &Value, column: &str, cx: &mut StoreContext) -> Result<(i128, bool), MySqlError> {
    let Some(text) = text_of(value) else {
        return Ok((to_integer(value), false));
    };
    if let Some(number) = plain_integer(text) {
        return Ok((number, false));
    }
    let parsed = Decimal::parse_prefix(text);
    if parsed.length == 0 {
        let error = errors::truncated_wrong_value_for_field("integer", printable(value), column, cx.row);
        cx.fail(error)?;
        return Ok((0, false));
    }
    let garbage = !text[parsed.length..].iter().all(u8::is_ascii_whitespace);
    Ok((decimal_to_integer(&parsed.value), garbage))
}

pub(super) fn decimal(value: &Value, precision: u8, scale: u8, ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Stored {
    let mut noted = false;
    let exact = match value {
        Value::Int(v) => Decimal::from(*v),
        Value::UInt(v) => Decimal::from(*v),
        Value::Decimal(v) => *v,
        Value::Float(_) | Value::Double(_) => {
            let v = if let Value::Float(v) = value { f64::from(*v) } else { double(value) };
            match Decimal::from_f64(v) {
                Some(v) => v,
                None => {
                    cx.out_of_range(column)?;
                    let limit = if v.is_nan() { Decimal::new(crate::I256::ZERO, scale) } else { Decimal::max(precision, scale) };
                    return Ok(Value::Decimal(if v < 0.0 { limit.neg() } else { limit }));
                }
            }
        }
        Value::Enum(index, _) => Decimal::from(i64::from(*index)),
        Value::Set(bits, _) => Decimal::from(*bits),
        Value::Date(v) => Decimal::from(v.to_number()),
        Value::DateTime(v) => Decimal::from_i128(i128::from(v.to_number()) * 1_000_000 + i128::from(v.micros), 6),
        Value::Time(v) => {
            let magnitude = i128::from(v.to_number().abs()) * 1_000_000 + i128::from(v.subsec_micros());
            Decimal::from_i128(if v.is_negative() { -magnitude } else { magnitude }, 6)
        }
        Value::Text(_) | Value::Json(_) | Value::Bytes(_) => {
            let text = text_of(value).unwrap_or_default();
            let parsed = Decimal::parse_prefix(text);
            let garbage = !text[parsed.length..].iter().all(u8::is_ascii_whitespace);
            if parsed.length == 0 || garbage && cx.is_strict() || parsed.overflow && cx.is_strict() {
                let error = errors::truncated_wrong_value_for_field("decimal", printable(value), column, cx.row);
                cx.fail(error)?;
            } else if garbage {
                let note = errors::warn_data_truncated(column, cx.row);
                cx.note(note);
                noted = true;
            }
            parsed.value
        }
        Value::Null => return Ok(Value::Null),
    };
    if ty.unsigned && exact.is_negative() {
        cx.out_of_range(column)?;
        return Ok(Value::Decimal(Decimal::new(crate::I256::ZERO, scale)));
    }
    match exact.rescale(scale) {
        Some(rounded) if rounded.fits(precision, scale) => {
            if rounded != exact && !noted {
                let note = errors::warn_data_truncated(column, cx.row);
                cx.note(note);
            }
            Ok(Value::Decimal(rounded))
        }
        _ => {
            cx.out_of_range(column)?;
            let limit = Decimal::max(precision, scale);
            Ok(Value::Decimal(if exact.is_negative() { limit.neg() } else { limit }))
        }
    }
}

/// A numeric or temporal value's double.
fn double(value: &Value) -> f64 {
    match value {
        Value::Int(v) => *v as f64,
        Value::UInt(v) => *v as f64,
        Value::Float(v) => f64::from(*v),
        Value::Double(v) => *v,
        Value::Decimal(v) => v.to_f64(),
        Value::Enum(index, _) => f64::from(*index),
        Value::Set(bits, _) => *bits as f64,
        Value::Date(v) => v.to_number() as f64,
        Value::DateTime(v) => v.to_number() as f64 + f64::from(v.micros) / 1e6,
        Value::Time(v) => {
            let magnitude = v.to_number().abs() as f64 + f64::from(v.subsec_micros()) / 1e6;
            if v.is_negative() { -magnitude } else { magnitude }
        }
        Value::Text(_) | Value::Json(_) | Value::Bytes(_) | Value::Null => 0.0,
    }
}

pub(super) fn real(value: &Value, ty: &ColumnType, column: &str, cx: &mut StoreContext) -> Stored {
    let mut number = match text_of(value) {
        None => double(value),
        Some(text) => {
            let (number, end) = double_prefix(text);
            if number.is_some_and(f64::is_infinite) {
                cx.out_of_range(column)?;
            } else if number.is_none() || end < text.len() {
                // Trailing spaces count here, unlike for the exact numbers.
                cx.data_truncated(column)?;
            }
            number.unwrap_or(0.0).clamp(f64::MIN, f64::MAX)
        }
    };
    if number.is_nan() {
        cx.out_of_range(column)?;
        return Ok(Value::Null);
    }
    let mut in_range = true;
    if ty.unsigned && number < 0.0 {
        number = 0.0;
        in_range = false;
    }
    let mut limit = if ty.kind == TypeKind::Float { f64::from(f32::MAX) } else { f64::MAX };
    if let Some((total, digits)) = ty.float_digits {
        let unit = 10f64.powi(i32::from(digits));
        limit = limit.min(10f64.powi(i32::from(total - digits)) - 1.0 / unit);
        // As MySQL: the fraction alone is scaled, which keeps its last digits.
        let fraction = (number - number.floor()) * unit;
        if fraction.is_finite() {
            number = number.floor() + fraction.round_ties_even() / unit;
        }
    }
    if number.abs() > limit {
        number = limit.copysign(number);
        in_range = false;
    }
    if !in_range {
        cx.out_of_range(column)?;
    }
    Ok(if ty.kind == TypeKind::Float { Value::Float(number as f32) } else { Value::Double(number) })
}
