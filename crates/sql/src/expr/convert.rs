//! Conversions of values with the context's warnings, and shortcuts where nothing has to be converted.

use std::borrow::Cow;

use highkey_types::cast::{self, CastContext};
use highkey_types::{Date, DateTime, Decimal, Level, MySqlError, Str, Time, Value, Warning, parse_time};

use super::EvalContext;

/// Runs a conversion of `highkey_types::cast` under the context's settings.
pub(crate) fn converting<T>(cx: &mut dyn EvalContext, f: impl FnOnce(&mut CastContext<'_>) -> T) -> T {
    converting_on(cx, Date::default(), f)
}

fn converting_on<T>(cx: &mut dyn EvalContext, today: Date, f: impl FnOnce(&mut CastContext<'_>) -> T) -> T {
    let mut warnings: Vec<Warning> = Vec::new();
    let mode = cx.sql_mode();
    let result = f(&mut CastContext { warnings: &mut warnings, mode, today, time_zone: cx.time_zone() });
    for warning in warnings {
        cx.warn(warning);
    }
    result
}

pub(crate) fn to_i64(value: &Value, cx: &mut dyn EvalContext) -> Option<i64> {
    match value {
        Value::Null => None,
        Value::Int(n) => Some(*n),
        Value::UInt(n) => Some(*n as i64),
        _ => converting(cx, |c| cast::to_i64(value, c)),
    }
}

pub(crate) fn to_u64(value: &Value, cx: &mut dyn EvalContext) -> Option<u64> {
    match value {
        Value::Null => None,
        Value::Int(n) => Some(*n as u64),
        Value::UInt(n) => Some(*n),
        _ => converting(cx, |c| cast::to_u64(value, c)),
    }
}

pub(crate) fn to_f64(value: &Value, cx: &mut dyn EvalContext) -> Option<f64> {
    match value {
        Value::Null => None,
        Value::Int(n) => Some(*n as f64),
        Value::UInt(n) => Some(*n as f64),
        Value::Double(n) => Some(*n),
        Value::Float(n) => Some(f64::from(*n)),
        Value::Decimal(n) => Some(n.to_f64()),
        _ => converting(cx, |c| cast::to_f64(value, c)),
    }
}

pub(crate) fn to_decimal(value: &Value, cx: &mut dyn EvalContext) -> Option<Decimal> {
    match value {
        Value::Null => None,
        Value::Int(n) => Some(Decimal::from(*n)),
        Value::UInt(n) => Some(Decimal::from(*n)),
        Value::Decimal(n) => Some(*n),
        _ => converting(cx, |c| cast::to_decimal(value, c)),
    }
}

/// The text form; `None` is NULL.
pub(crate) fn to_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::Text(s) | Value::Json(s) | Value::Enum(_, s) | Value::Set(_, s) => Some(Cow::Borrowed(s)),
        Value::Bytes(b) => Some(String::from_utf8_lossy(b)),
        _ => highkey_types::display_text(value).map(Cow::Owned),
    }
}

/// The bytes of the text form; `None` is NULL.
pub(crate) fn to_bytes(value: &Value) -> Option<Cow<'_, [u8]>> {
    match value {
        Value::Null => None,
        Value::Bytes(b) => Some(Cow::Borrowed(b)),
        Value::Text(s) | Value::Json(s) | Value::Enum(_, s) | Value::Set(_, s) => Some(Cow::Borrowed(s.as_bytes())),
        _ => highkey_types::display_text(value).map(|s| Cow::Owned(s.into_bytes())),
    }
}

pub(crate) fn to_str(value: &Value) -> Option<Str> {
    match value {
        Value::Text(s) => Some(s.clone()),
        _ => to_text(value).map(|s| Str::from(&*s)),
    }
}

pub(crate) fn to_date(value: &Value, cx: &mut dyn EvalContext) -> Option<Date> {
    match value {
        Value::Null => None,
        Value::Date(d) => Some(*d),
        Value::DateTime(d) => Some(d.date),
        _ => {
            let today = today_for(value, cx);
            converting_on(cx, today, |c| cast::to_date(value, c))
        }
    }
}

pub(crate) fn to_datetime(value: &Value, cx: &mut dyn EvalContext) -> Option<DateTime> {
    match value {
        Value::Null => None,
        Value::DateTime(d) => Some(*d),
        Value::Date(d) => Some(DateTime::new(*d, 0, 0, 0, 0)),
        _ => {
            let today = today_for(value, cx);
            converting_on(cx, today, |c| cast::to_datetime(value, c))
        }
    }
}

/// A moment whose date may have zero parts whatever sql_mode says: what YEAR(), DATE_FORMAT(), CAST and the like take. A string may be the zero date only if
/// sql_mode lets it, a number always.
pub(crate) fn to_fuzzy_datetime(value: &Value, cx: &mut dyn EvalContext) -> Option<DateTime> {
    match value {
        Value::Text(_) | Value::Bytes(_) => converting(cx, |c| {
            c.mode.no_zero_in_date = false;
            cast::to_datetime(value, c)
        }),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => converting(cx, |c| {
            c.mode.no_zero_date = false;
            c.mode.no_zero_in_date = false;
            cast::to_datetime(value, c)
        }),
        _ => to_datetime(value, cx),
    }
}

pub(crate) fn to_time(value: &Value, cx: &mut dyn EvalContext) -> Option<Time> {
    match value {
        Value::Null => None,
        Value::Time(t) => Some(*t),
        Value::DateTime(d) => Some(d.time()),
        _ => converting(cx, |c| cast::to_time(value, c)),
    }
}

/// A time to be looked up in an index: without a warning, which comes when the row is compared. A text with a date before the time is none.
pub(crate) fn to_compared_time(value: &Value, cx: &dyn EvalContext) -> Option<Time> {
    if has_date(value) { None } else { quietly(cx, |quiet| cast::to_time(value, quiet)) }
}

/// A text that is a time with a date before it.
pub(crate) fn has_date(value: &Value) -> bool {
    matches!(value, Value::Text(text) if parse_time(text).is_ok_and(|time| time.had_date))
}

/// The number that a text begins with, to be looked up in an index: without a warning, which comes when the row is compared.
pub(crate) fn leading_number(value: &Value, cx: &dyn EvalContext) -> Value {
    quietly(cx, |quiet| cast::to_decimal(value, quiet)).map_or(Value::Null, Value::Decimal)
}

/// The number that a text begins with, as a double and without a warning.
pub(crate) fn quiet_f64(value: &Value, cx: &dyn EvalContext) -> Option<f64> {
    quietly(cx, |quiet| cast::to_f64(value, quiet))
}

/// A conversion whose warnings nobody hears. It does not ask what day it is.
fn quietly<T>(cx: &dyn EvalContext, convert: impl FnOnce(&mut CastContext<'_>) -> T) -> T {
    let mut warnings: Vec<Warning> = Vec::new();
    convert(&mut CastContext { warnings: &mut warnings, mode: cx.sql_mode(), today: Date::default(), time_zone: cx.time_zone() })
}

/// Only a TIME needs to know what day it is.
fn today_for(value: &Value, cx: &mut dyn EvalContext) -> Date {
    if matches!(value, Value::Time(_)) { cx.now().date } else { Date::default() }
}

/// Truth of a value: `None` is NULL.
pub(crate) fn truth(value: &Value, cx: &mut dyn EvalContext) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::Int(n) => Some(*n != 0),
        Value::UInt(n) => Some(*n != 0),
        Value::Double(n) => Some(*n != 0.0),
        Value::Decimal(n) => Some(!n.is_zero()),
        Value::Enum(n, _) => Some(*n != 0),
        Value::Set(n, _) => Some(*n != 0),
        _ => converting(cx, |c| cast::to_bool(value, c)),
    }
}

/// Raises a warning by code.
pub(crate) fn warn(cx: &mut dyn EvalContext, code: u16, message: impl Into<String>) {
    cx.warn(Warning { level: Level::Warning, code, message: message.into() });
}

/// Division by zero: NULL, with a warning under ERROR_FOR_DIVISION_BY_ZERO.
pub(crate) fn division_by_zero(cx: &mut dyn EvalContext) -> Result<Value, MySqlError> {
    if cx.sql_mode().error_for_division_by_zero {
        warn(cx, 1365, "Division by 0");
    }
    Ok(Value::Null)
}

/// Error 1690: a result that its type cannot hold.
pub(crate) fn out_of_range(ty: &str, expression: &str) -> MySqlError {
    MySqlError::with_message(1690, format!("{ty} value is out of range in '{expression}'"))
}

/// What error 1300 shows of bytes that are no text from `at` on: three of them.
pub(crate) fn invalid_bytes(bytes: &[u8], at: usize) -> String {
    bytes.iter().skip(at).take(3).map(|b| format!("{b:02X}")).collect()
}
