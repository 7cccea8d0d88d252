//! DATE, DATETIME and TIME: values, calendar arithmetic, lenient parsing, intervals and time zones.

mod date;
mod datetime;
mod interval;
mod parse;
mod time;
mod zone;

pub use date::Date;
pub use datetime::DateTime;
pub use interval::{Interval, IntervalUnit};
pub use parse::{DateRules, ParsedDateTime, ParsedTime, Trouble, is_datetime_text, parse_datetime, parse_datetime_number, parse_time, parse_time_number};
pub use time::Time;
pub use zone::{TimeZone, UtcMoment};

/// Microseconds in a second.
pub(crate) const MICROS: i64 = 1_000_000;
/// Microseconds in a day.
pub(crate) const DAY_MICROS: i64 = 86_400 * MICROS;

/// `micros` of a second as `fsp` digits with the point, appended.
pub(crate) fn push_fraction(text: &mut String, micros: u32, fsp: u8) {
    if fsp > 0 {
        let digits = format!("{micros:06}");
        text.push('.');
        text.push_str(&digits[..usize::from(fsp.min(6))]);
    }
}

/// Two digits.
pub(crate) fn push2(text: &mut String, n: u8) {
    text.push(char::from(b'0' + n / 10 % 10));
    text.push(char::from(b'0' + n % 10));
}

/// Microseconds rounded half up at `fsp` digits; may reach the next second.
pub(crate) fn round_micros(micros: i64, fsp: u8) -> i64 {
    let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
    (micros + unit / 2).div_euclid(unit) * unit
}
