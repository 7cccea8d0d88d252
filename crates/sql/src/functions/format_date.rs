//! DATE_FORMAT and TIME_FORMAT.

use std::fmt::Write;

use highkey_types::{Date, DateTime, Value};

use super::call::Result;
use super::datetime::{DAYS, MONTHS};
use crate::expr::EvalContext;
use crate::expr::convert::{to_fuzzy_datetime, to_text, to_time};

/// DATE_FORMAT(date, format); TIME_FORMAT takes a duration, whose hours may pass 24.
pub(super) fn date_format(args: &[Value], time_only: bool, cx: &mut dyn EvalContext) -> Result<Value> {
    let format_text = to_text(&args[1]).unwrap_or_default();
    if format_text.is_empty() {
        return Ok(Value::Null);
    }
    if time_only {
        let Some(time) = to_time(&args[0], cx) else { return Ok(Value::Null) };
        let moment = DateTime::new(Date::default(), 0, time.minutes() as u8, time.seconds() as u8, time.subsec_micros());
        return Ok(formatted(&moment, time.hours(), time.is_negative(), true, &format_text).map_or(Value::Null, Value::from));
    }
    let Some(moment) = to_fuzzy_datetime(&args[0], cx) else { return Ok(Value::Null) };
    Ok(formatted(&moment, moment.hour.into(), false, false, &format_text).map_or(Value::Null, Value::from))
}

/// A moment under a format: for FROM_UNIXTIME.
pub(super) fn format(moment: &DateTime, format: &str, _cx: &mut dyn EvalContext) -> Result<String> {
    Ok(formatted(moment, moment.hour.into(), false, false, format).unwrap_or_default())
}

/// `None` when the format asks for a name or a week of a date that has none.
fn formatted(moment: &DateTime, hours: u32, negative: bool, time_only: bool, format: &str) -> Option<String> {
    let date = moment.date;
    let mut out = String::new();
    if negative {
        out.push('-');
    }
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let Some(specifier) = chars.next() else {
            out.push('%');
            break;
        };
        if time_only && !"HkhIlifprsSTp%".contains(specifier) {
            // Parts of a date are zero or NULL in TIME_FORMAT.
            match specifier {
                'c' | 'e' => out.push('0'),
                'd' | 'm' | 'y' => out.push_str("00"),
                'Y' => out.push_str("0000"),
                'M' | 'b' | 'D' | 'W' | 'a' | 'j' | 'U' | 'u' | 'V' | 'v' | 'w' | 'X' | 'x' => return None,
                other => out.push(other),
            }
            continue;
        }
        let twelve = if hours % 12 == 0 { 12 } else { hours % 12 };
        let half = if hours % 24 < 12 { "AM" } else { "PM" };
        // Writing to a String cannot fail.
        let _ = match specifier {
            'M' => out.write_str(MONTHS.get(usize::from(date.month).checked_sub(1)?)?),
            'b' => out.write_str(&MONTHS.get(usize::from(date.month).checked_sub(1)?)?[..3]),
            'W' | 'a' | 'w' if date.year == 0 && date.month == 0 => return None,
            'W' => out.write_str(DAYS[usize::from(date.weekday())]),
            'a' => out.write_str(&DAYS[usize::from(date.weekday())][..3]),
            'D' => {
                let suffix = match (date.day % 10, date.day) {
                    (_, 11..=13) => "th",
                    (1, _) => "st",
                    (2, _) => "nd",
                    (3, _) => "rd",
                    _ => "th",
                };
                write!(out, "{}{suffix}", date.day)
            }
            'Y' => write!(out, "{:04}", date.year),
            'y' => write!(out, "{:02}", date.year % 100),
            'm' => write!(out, "{:02}", date.month),
            'c' => write!(out, "{}", date.month),
            'd' => write!(out, "{:02}", date.day),
            'e' => write!(out, "{}", date.day),
            'f' => write!(out, "{:06}", moment.micros),
            'H' => write!(out, "{hours:02}"),
            'k' => write!(out, "{hours}"),
            'h' | 'I' => write!(out, "{twelve:02}"),
            'l' => write!(out, "{twelve}"),
            'i' => write!(out, "{:02}", moment.minute),
            // A month of zero begins before the year.
            'j' => write!(out, "{:03}", date.to_days() - Date::new(date.year, 1, 1).to_days() + 1),
            'p' => out.write_str(half),
            'r' => write!(out, "{twelve:02}:{:02}:{:02} {half}", moment.minute, moment.second),
            'S' | 's' => write!(out, "{:02}", moment.second),
            'T' => write!(out, "{hours:02}:{:02}:{:02}", moment.minute, moment.second),
            'U' => write!(out, "{:02}", date.week(0).1),
            'u' => write!(out, "{:02}", date.week(1).1),
            'V' => write!(out, "{:02}", date.week(2).1),
            'v' => write!(out, "{:02}", date.week(3).1),
            'X' => write!(out, "{:04}", date.week(2).0),
            'x' => write!(out, "{:04}", date.week(3).0),
            'w' => write!(out, "{}", (date.weekday() + 1) % 7),
            other => {
                out.push(other);
                Ok(())
            }
        };
    }
    Some(out)
}
