//! Lenient conversions of expressions: what does not convert entirely gives a warning, never an error.
//! `None` is NULL everywhere.

use crate::errors;
use crate::json::Json;
use crate::format::display_text;
use crate::temporal::MICROS;
use crate::{
    Date, DateRules, DateTime, Decimal, SqlMode, Str, Time, TimeZone, Value, Warning, parse_datetime, parse_datetime_number,
    parse_time, parse_time_number,
};

/// What conversions need to know and report.
pub struct CastContext<'a> {
    pub warnings: &'a mut Vec<Warning>,
    pub mode: SqlMode,
    /// Today in the session's zone: the date of a TIME that becomes a DATETIME.
    pub today: Date,
    pub time_zone: &'a TimeZone,
}

impl CastContext<'_> {
    /// 1292 `Truncated incorrect KIND value: 'text'`.
    pub fn truncated(&mut self, kind: &str, text: &str) {
        self.warnings.push(Warning::warning(errors::truncated_wrong_value(kind, text)));
    }

    /// 1292 `Incorrect datetime value: 'text'`.
    fn incorrect(&mut self, kind: &str, text: &str) {
        self.warnings.push(Warning::warning(errors::wrong_temporal_value(kind, text)));
    }

    /// What expressions ask of dates: zero parts pass, unless the mode refuses zero dates.
    fn date_rules(&self) -> DateRules {
        DateRules {
            no_zero_parts: self.mode.no_zero_in_date,
            no_zero_date: self.mode.no_zero_date,
            allow_invalid_dates: self.mode.allow_invalid_dates,
        }
    }

    /// 3156: a JSON value that is none of the kind that CAST makes of it.
    fn invalid_json(&mut self, kind: &str) {
        self.warnings.push(Warning::warning(errors::invalid_json_value_for_cast(kind, "json", 1)));
    }

    /// 3155: a JSON number that an integer does not hold.
    fn json_out_of_range(&mut self, kind: &str) {
        self.warnings.push(Warning::warning(errors::numeric_json_value_out_of_range(kind, "json", 1)));
    }
}

/// Text in a warning: bytes that are not printable ASCII as `\xNN`.
pub(crate) fn printable(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => bytes
            .iter()
            .map(|byte| if (0x20..0x7F).contains(byte) { char::from(*byte).to_string() } else { format!("\\x{byte:02X}") })
            .collect(),
        other => display_text(other).unwrap_or_default(),
    }
}

/// The text of TEXT, BLOB, ENUM, SET and JSON values as bytes.
fn text_bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        other => other.as_str().map(str::as_bytes),
    }
}

/// How much of a text is an integer.
struct IntegerPrefix {
    negative: bool,
    magnitude: u64,
    /// Something other than the integer is there, or the integer is too large, or there is none.
    inexact: bool,
}

impl IntegerPrefix {
    fn wrapped(&self) -> i64 {
        if self.negative { (self.magnitude as i64).wrapping_neg() } else { self.magnitude as i64 }
    }
}

fn integer_prefix(text: &[u8]) -> IntegerPrefix {
    let start = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let negative = text.get(start) == Some(&b'-');
    let from = start + usize::from(matches!(text.get(start), Some(b'-' | b'+')));
    let mut at = from;
    let mut magnitude = Some(0u64);
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        magnitude = magnitude.and_then(|m| m.checked_mul(10)).and_then(|m| m.checked_add(u64::from(digit - b'0')));
        at += 1;
    }
    let limit = if negative { 1 << 63 } else { u64::MAX };
    let overflow = magnitude.is_none_or(|m| m > limit);
    IntegerPrefix {
        negative,
        magnitude: magnitude.filter(|m| *m <= limit).unwrap_or(limit),
        inexact: overflow || at == from || at < text.len(),
    }
}

/// Rounded to an integer; text gives its integer prefix.  Unsigned values past `i64::MAX` wrap as MySQL's CAST does.
pub fn to_i64(value: &Value, cx: &mut CastContext) -> Option<i64> {
    Some(match value {
        Value::Null => return None,
        Value::Int(v) => *v,
        Value::UInt(v) => *v as i64,
        Value::Float(v) => f64::from(*v).round_ties_even() as i64,
        Value::Double(v) => v.round_ties_even() as i64,
        Value::Decimal(v) => v.to_i64().unwrap_or_else(|| {
            cx.truncated("DECIMAL", &v.to_string());
            if v.is_negative() { i64::MIN } else { i64::MAX }
        }),
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) => temporal_integer(value)?,
        Value::Enum(index, _) => i64::from(*index),
        Value::Set(bits, _) => *bits as i64,
        Value::Text(_) | Value::Bytes(_) => {
            let prefix = integer_prefix(text_bytes(value)?);
            if prefix.inexact {
                cx.truncated("INTEGER", &printable(value));
            }
            prefix.wrapped()
        }
        Value::Json(text) => match Json::of_normal(text) {
            Json::Int(v) => v,
            Json::UInt(v) => v as i64,
            Json::Bool(truth) => i64::from(truth),
            Json::Double(v) => {
                let rounded = v.round_ties_even();
                if rounded < i64::MIN as f64 || rounded >= -(i64::MIN as f64) {
                    cx.json_out_of_range("INTEGER");
                }
                rounded as i64
            }
            Json::Decimal(v) => v.to_i64().unwrap_or_else(|| {
                cx.json_out_of_range("INTEGER");
                if v.is_negative() { i64::MIN } else { i64::MAX }
            }),
            Json::String(text) => {
                let prefix = integer_prefix(text.as_bytes());
                if prefix.inexact {
                    cx.invalid_json("INTEGER");
                }
                prefix.wrapped()
            }
            Json::Null | Json::Array(_) | Json::Object(_) => {
                cx.invalid_json("INTEGER");
                0
            }
        },
    })
}

/// Like [`to_i64`] for CAST(.. AS UNSIGNED): negative numbers wrap, negative decimals become 0 with a warning.
pub fn to_u64(value: &Value, cx: &mut CastContext) -> Option<u64> {
    match value {
        Value::UInt(v) => Some(*v),
        Value::Decimal(v) => Some(v.to_u64().unwrap_or_else(|| {
            cx.truncated("DECIMAL", &v.to_string());
            if v.is_negative() { 0 } else { u64::MAX }
        })),
        other => {
            let v = to_i64(other, cx)?;
            if v < 0 && !matches!(other, Value::Json(_)) && text_bytes(value).is_some_and(|text| integer_prefix(text).negative) {
                let message = "Cast to unsigned converted negative integer to it's positive complement";
                cx.warnings.push(Warning::warning(errors::unknown_error(message)));
            }
            Some(v as u64)
        }
    }
}

/// The number at the start of a text (`None` if there is none) and where it ends.
pub(crate) fn double_prefix(text: &[u8]) -> (Option<f64>, usize) {
    let start = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let digits = |from: usize| text[from.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = start + usize::from(matches!(text.get(start), Some(b'-' | b'+')));
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        if whole + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return (None, 0);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    let number = std::str::from_utf8(&text[start..at]).ok().and_then(|text| text.parse::<f64>().ok());
    (number, at)
}

/// The number at the start of a text, and whether the whole text is one.
fn double_of(text: &[u8]) -> (f64, bool) {
    let (found, end) = double_prefix(text);
    let number = found.unwrap_or(0.0);
    let whole = found.is_some() && !number.is_infinite() && text[end..].iter().all(u8::is_ascii_whitespace);
    (number.clamp(f64::MIN, f64::MAX), whole)
}

/// The nearest double; text gives its numeric prefix.
pub fn to_f64(value: &Value, cx: &mut CastContext) -> Option<f64> {
    Some(match value {
        Value::Null => return None,
        Value::Int(v) => *v as f64,
        Value::UInt(v) => *v as f64,
        Value::Float(v) => f64::from(*v),
        Value::Double(v) => *v,
        Value::Decimal(v) => v.to_f64(),
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) => temporal_number(value)?.to_f64(),
        Value::Enum(index, _) => f64::from(*index),
        Value::Set(bits, _) => *bits as f64,
        Value::Text(_) | Value::Bytes(_) => {
            let text = text_bytes(value)?;
            let (number, whole) = double_of(text);
            // An empty text is 0 without a warning, but for integers and decimals.
            if !whole && !text.iter().all(u8::is_ascii_whitespace) {
                cx.truncated("DOUBLE", &printable(value));
            }
            number
        }
        Value::Json(text) => match Json::of_normal(text) {
            Json::Int(v) => v as f64,
            Json::UInt(v) => v as f64,
            Json::Double(v) => v,
            Json::Decimal(v) => v.to_f64(),
            Json::Bool(truth) => f64::from(u8::from(truth)),
            Json::String(text) => {
                let (number, whole) = double_of(text.as_bytes());
                if !whole {
                    cx.invalid_json("DOUBLE");
                }
                number
            }
            Json::Null | Json::Array(_) | Json::Object(_) => {
                cx.invalid_json("DOUBLE");
                0.0
            }
        },
    })
}

/// The number at the start of a text, and whether the whole text is one.
fn decimal_of(text: &[u8]) -> (Decimal, bool) {
    let parsed = Decimal::parse_prefix(text);
    let rest_is_space = text[parsed.length..].iter().all(u8::is_ascii_whitespace);
    (parsed.value, parsed.length > 0 && !parsed.overflow && rest_is_space)
}

/// An exact number; text gives its numeric prefix, doubles what they print as.
pub fn to_decimal(value: &Value, cx: &mut CastContext) -> Option<Decimal> {
    Some(match value {
        Value::Null => return None,
        Value::Int(v) => Decimal::from(*v),
        Value::UInt(v) => Decimal::from(*v),
        Value::Decimal(v) => *v,
        Value::Float(_) | Value::Double(_) => {
            let v = to_f64(value, cx)?;
            Decimal::from_f64(v).unwrap_or_else(|| {
                cx.truncated("DECIMAL", &printable(value));
                let limit = Decimal::max(Decimal::MAX_PRECISION, 0);
                if v < 0.0 { limit.neg() } else { limit }
            })
        }
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) => temporal_number(value)?,
        Value::Enum(index, _) => Decimal::from(i64::from(*index)),
        Value::Set(bits, _) => Decimal::from(*bits),
        Value::Text(_) | Value::Bytes(_) => {
            let (number, whole) = decimal_of(text_bytes(value)?);
            if !whole {
                cx.truncated("DECIMAL", &printable(value));
            }
            number
        }
        Value::Json(text) => match Json::of_normal(text) {
            Json::Int(v) => Decimal::from(v),
            Json::UInt(v) => Decimal::from(v),
            Json::Double(v) => to_decimal(&Value::Double(v), cx)?,
            Json::Decimal(v) => v,
            Json::Bool(truth) => Decimal::from(i64::from(truth)),
            Json::String(text) => {
                let (number, whole) = decimal_of(text.as_bytes());
                if !whole {
                    cx.invalid_json("DECIMAL");
                }
                number
            }
            Json::Null | Json::Array(_) | Json::Object(_) => {
                cx.invalid_json("DECIMAL");
                Decimal::from(0i64)
            }
        },
    })
}

/// YYYYMMDD, YYYYMMDDhhmmss.ffffff or hhmmss.ffffff.  An integer of it rounds the seconds, carrying as time does.
fn temporal_number(value: &Value) -> Option<Decimal> {
    Some(match value {
        Value::Date(v) => Decimal::from(v.to_number()),
        Value::DateTime(v) if v.micros == 0 => Decimal::from(v.to_number()),
        Value::DateTime(v) => Decimal::from_i128(i128::from(v.to_number()) * i128::from(MICROS) + i128::from(v.micros), 6),
        Value::Time(v) if v.subsec_micros() == 0 => Decimal::from(v.to_number()),
        Value::Time(v) => {
            let magnitude = i128::from(v.to_number().abs()) * i128::from(MICROS) + i128::from(v.subsec_micros());
            Decimal::from_i128(if v.is_negative() { -magnitude } else { magnitude }, 6)
        }
        _ => return None,
    })
}

/// A temporal value rounded to whole seconds, as integers see it.
pub(crate) fn temporal_integer(value: &Value) -> Option<i64> {
    Some(match value {
        Value::Date(v) => v.to_number(),
        Value::DateTime(v) => v.round(0).unwrap_or(v.truncate(0)).to_number(),
        Value::Time(v) => v.round(0).to_number(),
        _ => return None,
    })
}

/// The text form; bytes that are not UTF-8 are replaced.
pub fn to_str(value: &Value) -> Option<Str> {
    match value {
        Value::Text(v) | Value::Json(v) | Value::Enum(_, v) | Value::Set(_, v) => Some(v.clone()),
        other => display_text(other).map(Str::from),
    }
}

/// The bytes of the text form.
pub fn to_bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Bytes(v) => Some(v.clone()),
        other => to_str(other).map(|text| text.as_bytes().to_vec()),
    }
}

/// CAST(.. AS DATE).
pub fn to_date(value: &Value, cx: &mut CastContext) -> Option<Date> {
    match value {
        Value::Date(v) => Some(*v),
        Value::DateTime(v) => Some(v.date),
        other => to_datetime(other, cx).map(|v| v.date),
    }
}

/// CAST(.. AS DATETIME(6)).
pub fn to_datetime(value: &Value, cx: &mut CastContext) -> Option<DateTime> {
    match value {
        Value::Null => None,
        Value::DateTime(v) => Some(*v),
        Value::Date(v) => Some(DateTime::from(*v)),
        Value::Time(v) => DateTime::from_date_and_time(cx.today, *v),
        Value::Json(text) => temporal_of_json(text, cx, to_datetime),
        Value::Text(_) | Value::Bytes(_) | Value::Enum(..) | Value::Set(..) => {
            let text = to_str(value)?;
            match parse_datetime(&text, cx.date_rules()) {
                Ok(parsed) => {
                    if parsed.trouble.is_some() {
                        cx.truncated(if parsed.date_only { "date" } else { "datetime" }, &text);
                    }
                    let rounded = parsed.rounded(6, cx.mode.time_truncate_fractional);
                    match (rounded, parsed.offset_seconds) {
                        (Some(v), Some(offset)) => {
                            let utc = DateTime::from_micros(v.to_micros() - i64::from(offset) * MICROS)?;
                            Some(cx.time_zone.from_utc(&utc))
                        }
                        (v, _) => v,
                    }
                }
                Err(_) => {
                    cx.incorrect("datetime", &printable(value));
                    None
                }
            }
        }
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            let found = number_and_micros(value).and_then(|(number, micros)| {
                let (mut v, date_only) = parse_datetime_number(number, cx.date_rules()).ok()?;
                if !date_only || number == 0 {
                    v.micros = micros;
                }
                Some(v)
            });
            if found.is_none() {
                cx.incorrect("datetime", &printable(value));
            }
            found
        }
    }
}

/// The integer part and the microseconds of a number; `None` if it does not fit `i64` or is negative with a fraction.
fn number_and_micros(value: &Value) -> Option<(i64, u32)> {
    let decimal = match value {
        Value::Int(v) => return Some((*v, 0)),
        Value::UInt(v) => return Some((i64::try_from(*v).ok()?, 0)),
        Value::Decimal(v) => *v,
        Value::Float(v) => Decimal::from_f64(f64::from(*v))?,
        Value::Double(v) => Decimal::from_f64(*v)?,
        _ => return None,
    };
    if decimal.is_negative() {
        return None;
    }
    let decimal = decimal.rescale(6)?;
    let whole = decimal.truncate(0);
    let micros = decimal.sub(&whole)?.unscaled();
    Some((whole.to_i64()?, micros.as_u32()))
}

/// JSON has its temporal values as strings; no other value is one.
fn temporal_of_json<T>(text: &str, cx: &mut CastContext, convert: impl Fn(&Value, &mut CastContext) -> Option<T>) -> Option<T> {
    let mut warnings = Vec::new();
    let found = match Json::of_normal(text) {
        Json::String(text) => {
            let mut quiet = CastContext { warnings: &mut warnings, mode: cx.mode, today: cx.today, time_zone: cx.time_zone };
            convert(&Value::Text(text.into()), &mut quiet)
        }
        _ => None,
    };
    if found.is_none() {
        cx.invalid_json("DATE/TIME/DATETIME/TIMESTAMP");
    }
    found
}

/// CAST(.. AS TIME(6)).
pub fn to_time(value: &Value, cx: &mut CastContext) -> Option<Time> {
    match value {
        Value::Null => None,
        Value::Time(v) => Some(*v),
        Value::DateTime(v) => Some(v.time()),
        Value::Date(_) => Some(Time::default()),
        Value::Json(text) => temporal_of_json(text, cx, to_time),
        Value::Text(_) | Value::Bytes(_) | Value::Enum(..) | Value::Set(..) => {
            let text = to_str(value)?;
            match parse_time(&text) {
                Ok(parsed) => {
                    if parsed.trouble.is_some() {
                        cx.truncated("time", &text);
                    }
                    Some(parsed.rounded(6, cx.mode.time_truncate_fractional))
                }
                Err(_) => {
                    cx.truncated("time", &printable(value));
                    None
                }
            }
        }
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            let found = number_to_time(value);
            if found.is_none() {
                cx.truncated("time", &printable(value));
            }
            found
        }
    }
}

fn number_to_time(value: &Value) -> Option<Time> {
    let (number, micros) = match value {
        Value::Int(v) => (*v, 0),
        Value::UInt(v) => (i64::try_from(*v).ok()?, 0),
        other => {
            let negative = match other {
                Value::Decimal(v) => v.is_negative(),
                Value::Float(v) => *v < 0.0,
                Value::Double(v) => *v < 0.0,
                _ => false,
            };
            let magnitude = match other {
                Value::Decimal(v) => Value::Decimal(v.abs()),
                Value::Float(v) => Value::Float(v.abs()),
                Value::Double(v) => Value::Double(v.abs()),
                other => other.clone(),
            };
            let (number, micros) = number_and_micros(&magnitude)?;
            let (mut time, trouble) = parse_time_number(number).ok()?;
            if trouble.is_some() {
                return None;
            }
            time.micros += i64::from(micros);
            return Some(if negative { Time { micros: -time.micros } } else { time });
        }
    };
    let (mut time, trouble) = parse_time_number(number).ok()?;
    if trouble.is_some() {
        return None;
    }
    time.micros += micros;
    Some(time)
}

/// Truth as WHERE sees it: a number other than zero.
pub fn to_bool(value: &Value, cx: &mut CastContext) -> Option<bool> {
    Some(match value {
        Value::Null => return None,
        Value::Int(v) => *v != 0,
        Value::UInt(v) => *v != 0,
        Value::Float(v) => *v != 0.0,
        Value::Double(v) => *v != 0.0,
        Value::Decimal(v) => !v.is_zero(),
        Value::Date(v) => !v.is_zero(),
        Value::DateTime(v) => !v.is_zero(),
        Value::Time(v) => v.micros != 0,
        Value::Enum(index, _) => *index != 0,
        Value::Set(bits, _) => *bits != 0,
        Value::Text(_) | Value::Bytes(_) | Value::Json(_) => to_f64(value, cx)? != 0.0,
    })
}

#[cfg(test)]
pub(crate) mod tests;
