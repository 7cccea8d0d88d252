//! Assignment to DATE, DATETIME, TIMESTAMP and TIME.

use super::{SqlMode, StoreContext};
use crate::cast::printable;
use crate::errors::{self, MySqlError};
use crate::temporal::MICROS;
use crate::{
    DateRules, DateTime, Decimal, Time, Trouble, UtcMoment, Value, parse_datetime, parse_datetime_number, parse_time,
    parse_time_number,
};

type Stored = Result<Value, MySqlError>;

/// 1292 naming the value in strict mode; otherwise a warning 1264 or 1265 naming the column.
fn fail(trouble: Trouble, kind: &str, value: &Value, column: &str, cx: &mut StoreContext) -> Result<(), MySqlError> {
    if cx.is_strict() {
        return Err(errors::wrong_value_for_column(kind, &printable(value), column, cx.row));
    }
    cx.warn(match trouble {
        Trouble::Truncated => errors::warn_data_truncated(column, cx.row),
        _ => errors::warn_data_out_of_range(column, cx.row),
    });
    Ok(())
}

/// The note for a lost part: names the value in strict mode, the column otherwise.
fn note(kind: &str, text: &str, column: &str, cx: &mut StoreContext) {
    let note = if cx.is_strict() {
        errors::wrong_value_for_column(kind, text, column, cx.row)
    } else {
        errors::warn_data_truncated(column, cx.row)
    };
    cx.note(note);
}

fn rules(cx: &StoreContext) -> DateRules {
    rules_of(&cx.mode)
}

fn rules_of(mode: &SqlMode) -> DateRules {
    DateRules {
        no_zero_parts: mode.no_zero_in_date,
        no_zero_date: mode.no_zero_date,
        allow_invalid_dates: mode.allow_invalid_dates,
    }
}

/// Whether the mode lets a date that is a value already into a column.
pub(super) fn is_admitted(v: DateTime, mode: &SqlMode) -> bool {
    check(v, rules_of(mode)).is_ok()
}

/// Any value as a datetime rounded to `fsp` digits, the zero date if there is none, in the session's zone.
fn to_datetime(value: &Value, fsp: u8, kind: &str, column: &str, cx: &mut StoreContext) -> Result<DateTime, MySqlError> {
    let round = |v: DateTime, cx: &StoreContext| if cx.mode.time_truncate_fractional { Some(v.truncate(fsp)) } else { v.round(fsp) };
    let found = match value {
        Value::DateTime(v) => check(*v, rules(cx)).and_then(|v| round(v, cx).ok_or(Trouble::OutOfRange)),
        Value::Date(v) => check(DateTime::from(*v), rules(cx)),
        Value::Time(v) => DateTime::from_date_and_time(cx.today(), *v).and_then(|v| round(v, cx)).ok_or(Trouble::OutOfRange),
        Value::Int(v) => parse_datetime_number(*v, rules(cx)).map(|(v, _)| v),
        Value::UInt(v) => match i64::try_from(*v) {
            Ok(v) => parse_datetime_number(v, rules(cx)).map(|(v, _)| v),
            Err(_) => Err(Trouble::OutOfRange),
        },
        Value::Float(_) | Value::Double(_) | Value::Decimal(_) => match fractional(value) {
            Some((number, micros, false)) => match parse_datetime_number(number, rules(cx)) {
                // A fraction belongs to seconds; behind a bare date it is garbage.
                Ok((v, true)) if micros > 0 && number > 0 => {
                    fail(Trouble::Truncated, kind, value, column, cx)?;
                    return Ok(v);
                }
                Ok((v, _)) => round(DateTime { micros, ..v }, cx)
                    .filter(|v| !v.date.is_zero() || v.second == 0)
                    .ok_or(Trouble::OutOfRange),
                Err(trouble) => Err(trouble),
            },
            _ => Err(Trouble::OutOfRange),
        },
        Value::Null => return Ok(DateTime::default()),
        Value::Text(_) | Value::Bytes(_) | Value::Json(_) | Value::Enum(..) | Value::Set(..) => {
            let text = crate::cast::to_str(value).unwrap_or_default();
            match parse_datetime(&text, rules(cx)) {
                Ok(parsed) => {
                    if let Some(trouble) = parsed.trouble {
                        fail(trouble, kind, value, column, cx)?;
                    }
                    let v = parsed.rounded(fsp, cx.mode.time_truncate_fractional);
                    match parsed.offset_seconds {
                        Some(offset) => v
                            .and_then(|v| DateTime::from_micros(v.to_micros() - i64::from(offset) * MICROS))
                            .map(|utc| cx.time_zone.from_utc(&utc))
                            .ok_or(Trouble::OutOfRange),
                        None => v.ok_or(Trouble::OutOfRange),
                    }
                }
                Err(trouble) => Err(trouble),
            }
        }
    };
    match found {
        Ok(v) => Ok(v),
        Err(trouble) => {
            fail(trouble, kind, value, column, cx)?;
            Ok(DateTime::default())
        }
    }
}

/// The mode's opinion of a date that is a value already.
fn check(v: DateTime, rules: DateRules) -> Result<DateTime, Trouble> {
    if v.is_zero() {
        return if rules.no_zero_date { Err(Trouble::ZeroDate) } else { Ok(v) };
    }
    if v.date.has_zero_part() {
        return if rules.no_zero_parts { Err(Trouble::ZeroInDate) } else { Ok(v) };
    }
    // As MySQL, which copies dates without a look at them if no mode asks for one.
    if (rules.no_zero_parts || rules.no_zero_date) && !rules.allow_invalid_dates && !v.date.is_valid() {
        return Err(Trouble::OutOfRange);
    }
    Ok(v)
}

/// The integer part's magnitude, the microseconds and whether it is negative, of a number whose integer part fits `i64`.
fn fractional(value: &Value) -> Option<(i64, u32, bool)> {
    let decimal = match value {
        Value::Decimal(v) => *v,
        Value::Double(v) => Decimal::from_f64(*v)?,
        Value::Float(v) => Decimal::from_f64(f64::from(*v))?,
        _ => return None,
    };
    let magnitude = decimal.abs();
    let whole = magnitude.truncate(0);
    let micros = magnitude.sub(&whole)?.rescale(6)?.unscaled().as_u32().min(999_999);
    Some((whole.to_i64()?, micros, decimal.is_negative()))
}

pub(super) fn date(value: &Value, column: &str, cx: &mut StoreContext) -> Stored {
    if let Value::Date(v) = value
        && v.is_valid()
    {
        return Ok(Value::Date(*v));
    }
    let stored = to_datetime(value, 0, "date", column, cx)?;
    if stored.hour != 0 || stored.minute != 0 || stored.second != 0 || stored.micros != 0 {
        let text = match value {
            Value::DateTime(_) => stored.format(0),
            Value::Time(v) => v.truncate(0).format(0),
            other => printable(other),
        };
        note("date", &text, column, cx);
    }
    Ok(Value::Date(stored.date))
}

pub(super) fn datetime(value: &Value, fsp: u8, column: &str, cx: &mut StoreContext) -> Stored {
    Ok(Value::DateTime(to_datetime(value, fsp, "datetime", column, cx)?))
}

pub(super) fn timestamp(value: &Value, fsp: u8, column: &str, cx: &mut StoreContext) -> Stored {
    let local = to_datetime(value, fsp, "datetime", column, cx)?;
    if local.date.is_zero() {
        return Ok(Value::DateTime(DateTime::default()));
    }
    match cx.time_zone.utc_moment(&local) {
        UtcMoment::At(utc) => Ok(Value::DateTime(utc)),
        UtcMoment::Gap(utc) => {
            if cx.is_strict() {
                return Err(errors::wrong_value_for_column("datetime", &printable(value), column, cx.row));
            }
            let warning = errors::warn_invalid_timestamp(column, cx.row);
            cx.warn(warning);
            Ok(Value::DateTime(utc))
        }
        UtcMoment::OutOfRange => {
            fail(Trouble::OutOfRange, "datetime", value, column, cx)?;
            Ok(Value::DateTime(DateTime::default()))
        }
    }
}

pub(super) fn time(value: &Value, fsp: u8, column: &str, cx: &mut StoreContext) -> Stored {
    let round = |v: Time, cx: &StoreContext| if cx.mode.time_truncate_fractional { v.truncate(fsp) } else { v.round(fsp).clamped() };
    let stored = match value {
        Value::Time(v) => round(*v, cx),
        Value::DateTime(v) => Time { micros: round(v.time(), cx).micros % crate::temporal::DAY_MICROS },
        Value::Date(_) => Time::default(),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            let (number, micros, negative) = match value {
                Value::Int(v) => (*v, 0, false),
                Value::UInt(v) => (i64::try_from(*v).unwrap_or(i64::MAX), 0, false),
                other => number_parts(other),
            };
            match parse_time_number(number) {
                Ok((v, trouble)) => {
                    if let Some(trouble) = trouble {
                        fail(trouble, "time", value, column, cx)?;
                        v
                    } else {
                        if number >= 10_000_000_000 {
                            note("time", &printable(value), column, cx);
                        }
                        let magnitude = v.micros.abs() + i64::from(micros);
                        round(Time { micros: if v.is_negative() || negative { -magnitude } else { magnitude } }, cx)
                    }
                }
                Err(trouble) => {
                    fail(trouble, "time", value, column, cx)?;
                    Time::default()
                }
            }
        }
        Value::Null => return Ok(Value::Null),
        Value::Text(_) | Value::Bytes(_) | Value::Json(_) | Value::Enum(..) | Value::Set(..) => {
            let text = crate::cast::to_str(value).unwrap_or_default();
            match parse_time(&text) {
                Ok(parsed) => {
                    if let Some(trouble) = parsed.trouble {
                        fail(trouble, "time", value, column, cx)?;
                    } else if parsed.had_date {
                        note("time", &text, column, cx);
                    }
                    parsed.rounded(fsp, cx.mode.time_truncate_fractional)
                }
                // No time, but no failure either in any mode.
                Err(_) if matches!(text.trim(), "" | "-") => Time::default(),
                Err(trouble) => {
                    fail(trouble, "time", value, column, cx)?;
                    Time::default()
                }
            }
        }
    };
    Ok(Value::Time(stored))
}

/// The signed integer part, microseconds, and whether the number is negative; saturated.
fn number_parts(value: &Value) -> (i64, u32, bool) {
    match fractional(value) {
        Some((whole, micros, negative)) => (if negative { -whole } else { whole }, micros, negative),
        None => {
            let negative = match value {
                Value::Decimal(v) => v.is_negative(),
                Value::Double(v) => *v < 0.0,
                Value::Float(v) => *v < 0.0,
                _ => false,
            };
            (if negative { i64::MIN } else { i64::MAX }, 0, negative)
        }
    }
}
