//! Lenient conversions of expressions: what does not convert gives a warning, never an error.
use crate::{Date, DateTime, Decimal, Str, Time, TimeZone, Value, Warning};

/// What conversions need to know and report.
pub struct CastContext<'a> {
    pub warnings: &'a mut Vec<Warning>,
    pub mode: crate::SqlMode,
    /// Today, for TIME to DATETIME.
    pub today: Date,
    pub time_zone: &'a TimeZone,
}
/// `None` is NULL. Unsigned values past i64::MAX wrap as MySQL's do.
pub fn to_i64(_v: &Value, _cx: &mut CastContext) -> Option<i64> { unimplemented!() }
pub fn to_u64(_v: &Value, _cx: &mut CastContext) -> Option<u64> { unimplemented!() }
pub fn to_f64(_v: &Value, _cx: &mut CastContext) -> Option<f64> { unimplemented!() }
pub fn to_decimal(_v: &Value, _cx: &mut CastContext) -> Option<Decimal> { unimplemented!() }
/// The text form; bytes that are not UTF-8 are replaced.
pub fn to_str(_v: &Value) -> Option<Str> { unimplemented!() }
/// The bytes of the text form.
pub fn to_bytes(_v: &Value) -> Option<Vec<u8>> { unimplemented!() }
pub fn to_date(_v: &Value, _cx: &mut CastContext) -> Option<Date> { unimplemented!() }
pub fn to_datetime(_v: &Value, _cx: &mut CastContext) -> Option<DateTime> { unimplemented!() }
pub fn to_time(_v: &Value, _cx: &mut CastContext) -> Option<Time> { unimplemented!() }
/// Truth as WHERE sees it.
pub fn to_bool(_v: &Value, _cx: &mut CastContext) -> Option<bool> { unimplemented!() }
