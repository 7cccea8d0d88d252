//! Fixed-width numbers for both codecs: how many bytes a type takes and the number that goes into them.

use crate::{ColumnType, Date, DateTime, Decimal, I256, Time, TypeKind, Value};

/// Bytes of fractional seconds, as in MySQL: one per two digits.
fn fraction_bytes(fsp: u8) -> usize {
    usize::from(fsp.div_ceil(2))
}

/// Microseconds per unit of the stored fraction.
fn fraction_unit(fsp: u8) -> i64 {
    [1_000_000, 10_000, 100, 1][fraction_bytes(fsp)]
}

/// Bytes of the unsigned number that [`to_number`] makes of a column's values; `None` for DECIMAL, FLOAT, DOUBLE and
/// the variable types.
pub(super) fn width(ty: &ColumnType) -> Option<usize> {
    use TypeKind::*;
    Some(match &ty.kind {
        TinyInt | Year => 1,
        SmallInt => 2,
        MediumInt | Date => 3,
        Int => 4,
        BigInt => 8,
        Bit(n) => usize::from(n.div_ceil(8)).max(1),
        DateTime(fsp) => 5 + fraction_bytes(*fsp),
        Timestamp(fsp) => 4 + fraction_bytes(*fsp),
        Time(fsp) => 3 + fraction_bytes(*fsp),
        Enum(members) => if members.len() < 256 { 1 } else { 2 },
        Set(members) => members.len().div_ceil(8).max(1),
        _ => return None,
    })
}

/// The sign bit of a width, which signed numbers flip so that they order as unsigned ones.
#[inline]
fn sign_bit(width: usize) -> u64 {
    1 << (width * 8 - 1)
}

/// A stored value as an order-preserving unsigned number of [`width`] bytes.  Integers outside of the type's range
/// are clamped to it.
pub(super) fn to_number(value: &Value, ty: &ColumnType, width: usize) -> u64 {
    use TypeKind::*;
    match (&ty.kind, value) {
        (TinyInt | SmallInt | MediumInt | Int | BigInt, _) => {
            let (low, high) = ty.integer_range().unwrap_or((i64::MIN, u64::MAX));
            if ty.unsigned {
                return match value {
                    Value::UInt(v) => (*v).min(high),
                    Value::Int(v) => u64::try_from(*v).unwrap_or(0).min(high),
                    other => unstorable(other, ty),
                };
            }
            let v = match value {
                Value::Int(v) => (*v).clamp(low, high as i64),
                Value::UInt(v) => (*v).min(high) as i64,
                other => unstorable(other, ty),
            };
            signed_number(v, width)
        }
        (Year, Value::UInt(v)) => v.saturating_sub(1900),
        (Year, Value::Int(v)) => (*v as u64).saturating_sub(1900),
        (Bit(_), Value::UInt(v)) => *v & mask(width),
        (Bit(_), Value::Int(v)) => *v as u64 & mask(width),
        (Date, Value::Date(v)) => date_number(*v),
        (Date, Value::DateTime(v)) => date_number(v.date),
        (DateTime(fsp), Value::DateTime(v)) => datetime_number(v, *fsp),
        (DateTime(fsp), Value::Date(v)) => datetime_number(&crate::DateTime::from(*v), *fsp),
        (Timestamp(fsp), Value::DateTime(v)) => timestamp_number(v, *fsp),
        (Time(fsp), Value::Time(v)) => time_number(*v, *fsp, width),
        (Enum(_), Value::Enum(index, _)) => u64::from(*index),
        (Set(_), Value::Set(bits, _)) => *bits,
        (Enum(_) | Set(_), Value::UInt(v)) => *v,
        (Enum(_) | Set(_), Value::Int(v)) => *v as u64,
        (_, other) => unstorable(other, ty),
    }
}

/// The inverse of [`to_number`].
pub(super) fn from_number(number: u64, ty: &ColumnType, width: usize) -> Value {
    use TypeKind::*;
    match &ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt if ty.unsigned => Value::UInt(number),
        TinyInt | SmallInt | MediumInt | Int | BigInt => Value::Int(signed(number, width)),
        Year => Value::UInt(if number == 0 { 0 } else { number + 1900 }),
        Bit(_) => Value::UInt(number),
        Date => Value::Date(date_of(number)),
        DateTime(fsp) => Value::DateTime(datetime_of(number, *fsp)),
        Timestamp(fsp) => Value::DateTime(timestamp_of(number, *fsp)),
        Time(fsp) => Value::Time(time_of(number, *fsp, width)),
        Enum(members) => {
            let index = number as usize;
            let text = index.checked_sub(1).and_then(|at| members.get(at)).cloned().unwrap_or_default();
            Value::Enum(number as u16, text)
        }
        Set(members) => Value::Set(number, set_text(number, members)),
        _ => Value::Null,
    }
}

/// A signed number of `width` bytes with the sign bit flipped.
#[inline]
pub(super) fn signed_number(v: i64, width: usize) -> u64 {
    (v as u64 ^ sign_bit(width)) & mask(width)
}

/// The inverse of [`signed_number`].
pub(super) fn signed(number: u64, width: usize) -> i64 {
    let shift = 64 - width * 8;
    ((number ^ sign_bit(width)) << shift) as i64 >> shift
}

#[inline]
fn mask(width: usize) -> u64 {
    u64::MAX >> (64 - width * 8)
}

#[inline]
pub(super) fn date_number(date: Date) -> u64 {
    u64::from(date.year) << 9 | u64::from(date.month) << 5 | u64::from(date.day)
}

pub(super) fn date_of(number: u64) -> Date {
    Date::new((number >> 9) as u16, (number >> 5 & 15) as u8, (number & 31) as u8)
}

/// `(date << 17 | second of day) << 8*fraction bytes | fraction`.
pub(super) fn datetime_number(v: &DateTime, fsp: u8) -> u64 {
    let seconds = u64::from(v.hour) * 3600 + u64::from(v.minute) * 60 + u64::from(v.second);
    (date_number(v.date) << 17 | seconds) << (8 * fraction_bytes(fsp)) | fraction(v.micros, fsp)
}

fn fraction(micros: u32, fsp: u8) -> u64 {
    if fsp == 0 { 0 } else { u64::from(micros) / fraction_unit(fsp) as u64 }
}

pub(super) fn datetime_of(number: u64, fsp: u8) -> DateTime {
    let bits = 8 * fraction_bytes(fsp);
    let whole = number >> bits;
    let seconds = whole & 0x1_FFFF;
    DateTime {
        date: date_of(whole >> 17),
        hour: (seconds / 3600) as u8,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        micros: ((number & ((1 << bits) - 1)) * fraction_unit(fsp) as u64) as u32,
    }
}

/// Seconds since 1970 in UTC, then the fraction; 0 is the zero date.
fn timestamp_number(v: &DateTime, fsp: u8) -> u64 {
    let seconds = if v.date.is_zero() { 0 } else { v.to_micros().div_euclid(1_000_000).clamp(0, i64::from(u32::MAX)) as u64 };
    seconds << (8 * fraction_bytes(fsp)) | fraction(v.micros, fsp)
}

pub(super) fn timestamp_of(number: u64, fsp: u8) -> DateTime {
    let bits = 8 * fraction_bytes(fsp);
    let seconds = (number >> bits) as i64;
    let fraction = (number & ((1 << bits) - 1)) as i64 * fraction_unit(fsp);
    if seconds == 0 {
        return DateTime { micros: fraction as u32, ..DateTime::default() };
    }
    DateTime::from_micros(seconds * 1_000_000 + fraction).unwrap_or_default()
}

/// Signed units of the stored fraction.
pub(super) fn time_number(v: Time, fsp: u8, width: usize) -> u64 {
    signed_number(v.micros.div_euclid(fraction_unit(fsp)), width)
}

pub(super) fn time_of(number: u64, fsp: u8, width: usize) -> Time {
    Time { micros: signed(number, width) * fraction_unit(fsp) }
}

/// The members of a SET value, comma-separated.
pub(crate) fn set_text(bits: u64, members: &[crate::Str]) -> crate::Str {
    let mut text = String::new();
    for (i, member) in members.iter().enumerate() {
        if bits >> i & 1 == 1 {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(member);
        }
    }
    text.into()
}

/// The unscaled number of a DECIMAL column's value.
pub(super) fn unscaled(value: &Value, ty: &ColumnType, scale: u8) -> I256 {
    let decimal = match value {
        Value::Decimal(v) => *v,
        Value::Int(v) => Decimal::from(*v),
        Value::UInt(v) => Decimal::from(*v),
        other => unstorable(other, ty),
    };
    match decimal.rescale(scale) {
        Some(v) => v.unscaled(),
        None => unstorable(value, ty),
    }
}

/// The double of a FLOAT or DOUBLE column's value.
pub(super) fn double(value: &Value, ty: &ColumnType) -> f64 {
    match value {
        Value::Double(v) => *v,
        Value::Float(v) => f64::from(*v),
        Value::Int(v) => *v as f64,
        Value::UInt(v) => *v as f64,
        Value::Decimal(v) => v.to_f64(),
        other => unstorable(other, ty),
    }
}

/// Text of a text-like column's value.
pub(super) fn bytes<'v>(value: &'v Value, ty: &ColumnType) -> &'v [u8] {
    match value {
        Value::Text(v) | Value::Json(v) | Value::Enum(_, v) | Value::Set(_, v) => v.as_bytes(),
        Value::Bytes(v) => v,
        other => unstorable(other, ty),
    }
}

/// I1: callers convert with `store` before they encode.
#[cold]
pub(super) fn unstorable(value: &Value, ty: &ColumnType) -> ! {
    panic!("I1: {value:?} is not a stored value of {ty}")
}
