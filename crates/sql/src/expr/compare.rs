//! Comparisons in the domain that the binder chose.

use std::cmp::Ordering;

use highkey_types::{Collation, DateTime, Time, Value, cast, compare};

use super::EvalContext;
use super::convert::{converting, has_date, to_bytes, to_datetime, to_decimal, to_f64, to_time};
use crate::plan::{CompareBy, CompareOp};

/// A comparison: `None` is NULL.
pub fn compare_values(op: CompareOp, by: CompareBy, left: &Value, right: &Value, cx: &mut dyn EvalContext) -> Option<bool> {
    if left.is_null() || right.is_null() {
        return (op == CompareOp::NullSafeEq).then(|| left.is_null() && right.is_null());
    }
    match (order(by, left, right, cx), op) {
        (Some(ordering), _) => Some(op.holds(ordering)),
        (None, CompareOp::NullSafeEq) => Some(false),
        (None, _) => None,
    }
}

/// The order of two values that are not NULL; `None` if one cannot be converted.
pub(crate) fn order(by: CompareBy, left: &Value, right: &Value, cx: &mut dyn EvalContext) -> Option<Ordering> {
    match (by, left, right) {
        (CompareBy::Int | CompareBy::Dynamic, Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (CompareBy::Int | CompareBy::Dynamic, Value::UInt(a), Value::UInt(b)) => Some(a.cmp(b)),
        (CompareBy::Int | CompareBy::Dynamic, Value::Int(a), Value::UInt(b)) => Some(signed_unsigned(*a, *b)),
        (CompareBy::Int | CompareBy::Dynamic, Value::UInt(a), Value::Int(b)) => Some(signed_unsigned(*b, *a).reverse()),
        (CompareBy::Text(collation), Value::Text(a), Value::Text(b)) => Some(collation.compare(a.as_bytes(), b.as_bytes())),
        (CompareBy::Text(collation), _, _) => {
            let (a, b) = (to_bytes(left)?, to_bytes(right)?);
            Some(collation.compare(&a, &b))
        }
        (CompareBy::Decimal, Value::Decimal(a), Value::Decimal(b)) => Some(a.cmp(b)),
        (CompareBy::Decimal, a, b) if exact(a) && exact(b) => Some(to_decimal(a, cx)?.cmp(&to_decimal(b, cx)?)),
        (CompareBy::Double, _, _) => to_f64(left, cx)?.partial_cmp(&to_f64(right, cx)?),
        (CompareBy::Date, Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (CompareBy::DateTime, Value::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        // A parameter may bring a time of day to a date.
        (CompareBy::Date, Value::Date(a), Value::Text(_) | Value::DateTime(_)) => Some(DateTime::from(*a).cmp(&moment(right, cx)?)),
        (CompareBy::Date, Value::Text(_) | Value::DateTime(_), Value::Date(b)) => Some(moment(left, cx)?.cmp(&DateTime::from(*b))),
        (CompareBy::Date | CompareBy::DateTime | CompareBy::Time, a, b) if a.is_number() || b.is_number() => numeric(left, right, cx),
        (CompareBy::Date, _, _) => Some(moment(left, cx)?.date.cmp(&moment(right, cx)?.date)),
        (CompareBy::DateTime, _, _) => Some(moment(left, cx)?.cmp(&moment(right, cx)?)),
        (CompareBy::Time, _, _) => Some(match (time_of_day(left, cx), time_of_day(right, cx)) {
            (Some(a), Some(b)) => a.cmp(&b),
            // What is no time equals none.
            _ => Ordering::Less,
        }),
        (CompareBy::Int | CompareBy::Decimal, _, _) => numeric(left, right, cx),
        (CompareBy::Json | CompareBy::Dynamic, _, _) => {
            let collation = Collation::utf8mb4();
            converting(cx, |c| compare(left, right, collation, c))
        }
    }
}

/// Of the values that `op` ANY or `op` ALL compares with the one that decides, in the order `own` of their type; `None` if all are NULL.
pub(crate) fn deciding<'v>(values: impl Iterator<Item = &'v Value>, op: CompareOp, all: bool, own: CompareBy, cx: &mut dyn EvalContext) -> Option<&'v Value> {
    let wanted = if matches!(op, CompareOp::Gt | CompareOp::Ge) == all { Ordering::Greater } else { Ordering::Less };
    let mut found: Option<&Value> = None;
    for value in values.filter(|value| !value.is_null()) {
        if found.is_none_or(|found| order(own, value, found, cx) == Some(wanted)) {
            found = Some(value);
        }
    }
    found
}

/// What a value is among moments. A string may be a day that its month does not have, whatever sql_mode says; one that is no date is the zero date, with a
/// warning.
pub(crate) fn moment(value: &Value, cx: &mut dyn EvalContext) -> Option<DateTime> {
    if !matches!(value, Value::Text(_) | Value::Bytes(_) | Value::Enum(..) | Value::Set(..)) {
        return to_datetime(value, cx);
    }
    let found = converting(cx, |c| {
        c.mode.allow_invalid_dates = true;
        cast::to_datetime(value, c)
    });
    Some(found.unwrap_or_default())
}

/// What a value is among times of day; `None` if it is none, with a warning, or has a date before the time.
fn time_of_day(value: &Value, cx: &mut dyn EvalContext) -> Option<Time> {
    if has_date(value) { None } else { to_time(value, cx) }
}

fn exact(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::UInt(_) | Value::Decimal(_))
}

/// Numbers of any kind: exactly if both are exact, else as doubles.
fn numeric(left: &Value, right: &Value, cx: &mut dyn EvalContext) -> Option<Ordering> {
    let inexact = |v: &Value| matches!(v, Value::Double(_) | Value::Float(_) | Value::Text(_) | Value::Bytes(_) | Value::Json(_));
    if inexact(left) || inexact(right) {
        return to_f64(left, cx)?.partial_cmp(&to_f64(right, cx)?);
    }
    Some(to_decimal(left, cx)?.cmp(&to_decimal(right, cx)?))
}

fn signed_unsigned(a: i64, b: u64) -> Ordering {
    u64::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b))
}
