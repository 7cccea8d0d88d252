//! CAST: conversion to a type, lenient, with warnings.

use highkey_types::{Charset, ColumnType, Decimal, MySqlError, Str, TypeKind, Value, json};

use super::EvalContext;
use super::convert::{invalid_bytes, to_bytes, to_decimal, to_f64, to_fuzzy_datetime, to_i64, to_text, to_time, to_u64, warn};

/// CAST of a value of type `from` to a type, as [`crate::plan::ExprKind::Cast`] does it. The character set of `from` decides the value's bytes.
pub(crate) fn cast_typed(value: Value, from: Option<&ColumnType>, ty: &ColumnType, cx: &mut dyn EvalContext) -> Result<Value, MySqlError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    use TypeKind as K;
    let value = match &ty.kind {
        K::Date | K::DateTime(_) | K::Timestamp(_) | K::Time(_) => bits(&value, from).map_or(value, Value::Bytes),
        _ => value,
    };
    Ok(match &ty.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => {
            if ty.unsigned { optional(to_u64(&value, cx), Value::UInt) } else { optional(to_i64(&value, cx), Value::Int) }
        }
        K::Bit(_) => optional(to_u64(&value, cx), Value::UInt),
        K::Year => year(&value, cx),
        K::Decimal { precision, scale } => match to_decimal(&value, cx) {
            None => Value::Null,
            Some(decimal) => Value::Decimal(fit(decimal, *precision, *scale, cx)),
        },
        K::Float => optional(to_f64(&value, cx), |n| Value::Float(n as f32)),
        K::Double => optional(to_f64(&value, cx), Value::Double),
        K::Char(_) | K::VarChar(_) | K::TinyText | K::Text | K::MediumText | K::LongText | K::Enum(_) | K::Set(_) => match (value, from) {
            (Value::Text(text), _) => Value::Text(text),
            (value, from) => match text_of(&value, ty.charset(), from) {
                Ok(text) => Value::Text(text),
                Err(shown) => invalid_text(&shown, ty.charset(), cx),
            },
        },
        K::Binary(_) | K::VarBinary(_) | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob | K::Geometry(_) => Value::Bytes(encoded(&value, from)),
        K::Date => optional(to_fuzzy_datetime(&value, cx), |moment| Value::Date(moment.date)),
        K::DateTime(fsp) | K::Timestamp(fsp) => match to_fuzzy_datetime(&value, cx) {
            Some(moment) => optional(round_datetime(moment, *fsp, cx), Value::DateTime),
            None => Value::Null,
        },
        K::Time(fsp) => optional(to_time(&value, cx), |t| Value::Time(if cx.sql_mode().time_truncate_fractional { t.truncate(*fsp) } else { t.round(*fsp) })),
        K::Json => to_json(value, from)?,
        K::Null => value,
    })
}

fn round_datetime(moment: highkey_types::DateTime, fsp: u8, cx: &mut dyn EvalContext) -> Option<highkey_types::DateTime> {
    if cx.sql_mode().time_truncate_fractional { Some(moment.truncate(fsp)) } else { moment.round(fsp) }
}

fn optional<T>(value: Option<T>, make: impl FnOnce(T) -> Value) -> Value {
    value.map_or(Value::Null, make)
}

/// A decimal rounded and clamped to DECIMAL(precision, scale).
fn fit(decimal: Decimal, precision: u8, scale: u8, cx: &mut dyn EvalContext) -> Decimal {
    if decimal.scale() == scale && decimal.precision() <= precision {
        return decimal;
    }
    match decimal.rescale(scale) {
        Some(fitting) if fitting.fits(precision, scale) => fitting,
        _ => {
            warn(cx, 1264, "Out of range value for column 'CAST' at row 1");
            let most = Decimal::max(precision, scale);
            if decimal.is_negative() { most.neg() } else { most }
        }
    }
}

fn year(value: &Value, cx: &mut dyn EvalContext) -> Value {
    let year = match value {
        Value::Date(d) => i64::from(d.year),
        Value::DateTime(d) => i64::from(d.date.year),
        _ => match to_i64(value, cx) {
            Some(n) => n,
            None => return Value::Null,
        },
    };
    match year {
        0 if matches!(value, Value::Text(_)) => Value::UInt(2000),
        1..=69 => Value::UInt(year as u64 + 2000),
        70..=99 => Value::UInt(year as u64 + 1900),
        0 | 1901..=2155 => Value::UInt(year as u64),
        _ => {
            warn(cx, 1292, format!("Truncated incorrect YEAR value: '{}'", to_text(value).unwrap_or_default()));
            Value::Null
        }
    }
}

/// The text of a value whose type says how many digits it shows: of a second, behind the point, or in all.
fn shown(value: &Value, from: Option<&ColumnType>) -> Option<String> {
    let from = from?;
    let digits = match (value, &from.kind) {
        (Value::DateTime(_), TypeKind::DateTime(_) | TypeKind::Timestamp(_)) | (Value::Time(_), TypeKind::Time(_)) | (Value::Decimal(_), TypeKind::Decimal { .. }) => true,
        (Value::Int(_) | Value::UInt(_), kind) => *kind == TypeKind::Year || (from.zerofill && from.is_integer()),
        (Value::Float(_) | Value::Double(_), TypeKind::Float | TypeKind::Double) => from.zerofill || from.float_digits.is_some(),
        _ => false,
    };
    if !digits {
        return None;
    }
    let value = match (value, &from.kind) {
        (Value::Decimal(d), TypeKind::Decimal { scale, .. }) => Value::Decimal(d.rescale(*scale).unwrap_or(*d)),
        _ => value.clone(),
    };
    let mut text = Vec::new();
    value.to_text(from, &mut text);
    String::from_utf8(text).ok()
}

/// The bytes of a BIT.
fn bits(value: &Value, from: Option<&ColumnType>) -> Option<Vec<u8>> {
    let from = from.filter(|from| matches!(from.kind, TypeKind::Bit(_)))?;
    let mut bytes = Vec::new();
    value.to_text(from, &mut bytes);
    Some(bytes)
}

/// Bytes of a string in its own character set.
fn encoded(value: &Value, from: Option<&ColumnType>) -> Vec<u8> {
    if let Some(text) = shown(value, from) {
        return text.into_bytes();
    }
    if let Some(bytes) = bits(value, from) {
        return bytes;
    }
    match (value, from) {
        (Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text), Some(ty)) => ty.charset().encode(text).into_owned(),
        _ => to_bytes(value).unwrap_or_default().into_owned(),
    }
}

/// Text of a value; bytes are read in the target's character set (`Err` shows those that are not valid in it).
fn text_of(value: &Value, charset: Charset, from: Option<&ColumnType>) -> Result<Str, String> {
    if let Some(text) = shown(value, from) {
        return Ok(text.into());
    }
    let bits = bits(value, from);
    let bytes = match (value, &bits) {
        (_, Some(bits)) => bits,
        (Value::Bytes(bytes), None) => bytes,
        (Value::Text(text), None) => return Ok(text.clone()),
        _ => return Ok(Str::from(&*to_text(value).unwrap_or_default())),
    };
    match charset.decode(bytes) {
        Ok(text) => Ok(Str::from(&*text)),
        Err(at) => Err(invalid_bytes(bytes, at)),
    }
}

fn invalid_text(shown: &str, charset: Charset, cx: &mut dyn EvalContext) -> Value {
    warn(cx, 1300, format!("Invalid {} character string: '{shown}'", charset.name()));
    Value::Null
}

/// CAST(… AS JSON): text is parsed, everything else becomes a JSON value.
fn to_json(value: Value, from: Option<&ColumnType>) -> Result<Value, MySqlError> {
    Ok(match value {
        Value::Json(_) => value,
        Value::Text(text) => Value::Json(json::normalise(&text).map_err(|reason| crate::functions::invalid_json(reason, 1, "cast_as_json"))?),
        other => Value::Json(json::to_text(&crate::functions::json_of(&other, from)).into()),
    })
}
