//! MySQL's comparison of two values of any types.
//!
//! | operands | compared as |
//! |---|---|
//! | either NULL | NULL |
//! | integers | integers, signed against unsigned by value |
//! | exact numbers | DECIMAL |
//! | numbers, or number and text | DOUBLE |
//! | text and text | under the collation; bytes if either is binary |
//! | DATE or DATETIME and anything readable as one | DATETIME |
//! | TIME and text or number | TIME |
//! | JSON and JSON, JSON and a scalar | JSON; a temporal value or bytes are more than what JSON text can say |

use std::cmp::Ordering;

use crate::cast::{CastContext, to_datetime, to_decimal, to_f64, to_str, to_time};
use crate::json::Json;
use crate::{Collation, DateTime, Decimal, Value, json};

/// `None` if either is NULL, or if a NaN is involved.
pub fn compare(a: &Value, b: &Value, collation: &Collation, cx: &mut CastContext) -> Option<Ordering> {
    use Value as V;
    match (a, b) {
        (V::Null, _) | (_, V::Null) => None,
        (V::Int(a), V::Int(b)) => Some(a.cmp(b)),
        (V::UInt(a), V::UInt(b)) => Some(a.cmp(b)),
        (V::Int(a), V::UInt(b)) => Some(if *a < 0 { Ordering::Less } else { (*a as u64).cmp(b) }),
        (V::UInt(a), V::Int(b)) => Some(if *b < 0 { Ordering::Greater } else { a.cmp(&(*b as u64)) }),
        (V::Decimal(a), V::Decimal(b)) => Some(a.cmp(b)),
        (V::Decimal(a), V::Int(b)) => Some(a.cmp(&Decimal::from(*b))),
        (V::Decimal(a), V::UInt(b)) => Some(a.cmp(&Decimal::from(*b))),
        (V::Int(a), V::Decimal(b)) => Some(Decimal::from(*a).cmp(b)),
        (V::UInt(a), V::Decimal(b)) => Some(Decimal::from(*a).cmp(b)),
        (V::Date(a), V::Date(b)) => Some(a.cmp(b)),
        (V::DateTime(a), V::DateTime(b)) => Some(a.cmp(b)),
        (V::Date(a), V::DateTime(b)) => Some(DateTime::from(*a).cmp(b)),
        (V::DateTime(a), V::Date(b)) => Some(a.cmp(&DateTime::from(*b))),
        (V::Time(a), V::Time(b)) => Some(a.cmp(b)),
        (V::Json(a), V::Json(b)) => Some(json::compare(&Json::of_normal(a), &Json::of_normal(b))),
        (V::Json(a), _) => Some(compare_json(&Json::of_normal(a), b)),
        (_, V::Json(b)) => Some(compare_json(&Json::of_normal(b), a).reverse()),
        _ if is_day(a) || is_day(b) => compare_days(a, b, cx),
        (V::Time(_), _) | (_, V::Time(_)) => compare_times(a, b, collation, cx),
        _ if a.is_number() || b.is_number() => to_f64(a, cx)?.partial_cmp(&to_f64(b, cx)?),
        _ => compare_texts(a, b, collation),
    }
}

/// `<=>`: NULL equals NULL and nothing else.
pub fn null_safe_eq(a: &Value, b: &Value, collation: &Collation, cx: &mut CastContext) -> bool {
    match (a.is_null(), b.is_null()) {
        (true, true) => true,
        (false, false) => compare(a, b, collation, cx) == Some(Ordering::Equal),
        _ => false,
    }
}

fn is_day(value: &Value) -> bool {
    matches!(value, Value::Date(_) | Value::DateTime(_))
}

fn compare_texts(a: &Value, b: &Value, collation: &Collation) -> Option<Ordering> {
    match (a, b) {
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), b) => Some(a.as_slice().cmp(b.as_str()?.as_bytes())),
        (a, Value::Bytes(b)) => Some(a.as_str()?.as_bytes().cmp(b)),
        _ => Some(collation.compare(a.as_str()?.as_bytes(), b.as_str()?.as_bytes())),
    }
}

/// At least one is a DATE or DATETIME.  A number that is no date compares as a number, a text as the zero date.
fn compare_days(a: &Value, b: &Value, cx: &mut CastContext) -> Option<Ordering> {
    match (to_datetime(a, cx), to_datetime(b, cx)) {
        (Some(x), Some(y)) => Some(x.cmp(&y)),
        _ if a.is_number() || b.is_number() => Some(to_decimal(a, cx)?.cmp(&to_decimal(b, cx)?)),
        (x, y) => Some(x.unwrap_or_default().cmp(&y.unwrap_or_default())),
    }
}

/// One is a TIME, the other text or a number.
fn compare_times(a: &Value, b: &Value, collation: &Collation, cx: &mut CastContext) -> Option<Ordering> {
    if let (Some(x), Some(y)) = (to_time(a, cx), to_time(b, cx)) {
        return Some(x.cmp(&y));
    }
    if a.is_number() || b.is_number() {
        return Some(to_decimal(a, cx)?.cmp(&to_decimal(b, cx)?));
    }
    Some(collation.compare(to_str(a)?.as_bytes(), to_str(b)?.as_bytes()))
}

/// A JSON value and an SQL value, which becomes a JSON scalar. MySQL's JSON has temporal values and bytes, which functions make and which are
/// more than all that a text can say. Here they are strings: one in the form that such a function writes is the temporal value.
fn compare_json(json: &Json, value: &Value) -> Ordering {
    let scalar = match value {
        Value::Null => Json::Null,
        Value::Int(v) => Json::Int(*v),
        Value::UInt(v) => Json::UInt(*v),
        Value::Float(v) => Json::Double(f64::from(*v)),
        Value::Double(v) => Json::Double(*v),
        Value::Decimal(v) => Json::Decimal(*v),
        Value::Bytes(_) => return Ordering::Less,
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) => {
            let Json::String(text) = json else { return Ordering::Less };
            let shape = |form: &str| {
                text.len() == form.len() && text.bytes().zip(form.bytes()).all(|(byte, sample)| if sample == b'0' { byte.is_ascii_digit() } else { byte == sample })
            };
            // Dates are before times of day, and those before moments.
            let forms = ["0000-00-00", "00:00:00.000000", "0000-00-00 00:00:00.000000"];
            let (own, other) = match value {
                Value::Date(v) => (0, v.to_string()),
                Value::Time(v) => (1, v.format(6)),
                Value::DateTime(v) => (2, v.format(6)),
                _ => unreachable!("matched above"),
            };
            return match forms.iter().position(|form| shape(form)) {
                Some(form) if form != own => form.cmp(&own),
                Some(_) if other.len() == text.len() => text.as_str().cmp(&other),
                _ => Ordering::Less,
            };
        }
        other => Json::String(to_str(other).unwrap_or_default().to_string()),
    };
    json::compare(json, &scalar)
}
