//! STR_TO_DATE.

use highkey_types::{Date, DateTime, TypeKind, Value};

use super::call::{Result, Types};
use super::datetime::{DAYS, MONTHS};
use crate::expr::EvalContext;
use crate::expr::convert::{to_text, warn};

/// What a format has read so far.
#[derive(Default)]
struct Parts {
    year: u16,
    month: u8,
    day: u8,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    pm: Option<bool>,
    twelve_hours: bool,
    day_of_year: Option<u32>,
    week: Option<(u32, WeekKind)>,
    weekday: Option<u8>,
    week_year: Option<u16>,
}

/// Which day weeks start with, and whether a week belongs to one year strictly.
#[derive(Clone, Copy, PartialEq)]
struct WeekKind {
    monday: bool,
    strict: bool,
}

/// STR_TO_DATE(text, format).
pub(super) fn str_to_date(args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let (text, format) = (to_text(&args[0]).unwrap_or_default(), to_text(&args[1]).unwrap_or_default());
    let result = read(&text, &format).and_then(|(parts, rest)| Some((assemble(&parts)?, rest)));
    let kind = &types.result.ty.kind;
    let Some((moment, rest)) = result else {
        // These are read as formats of their own.
        let what = if format.contains("%T") || format.contains("%r") { "time" } else { "datetime" };
        warn(cx, 1411, format!("Incorrect {what} value: '{text}' for function str_to_date"));
        return Ok(Value::Null);
    };
    let mode = cx.sql_mode();
    // No other mode is asked, nor the calendar.
    if mode.no_zero_date && (moment.date.year == 0 || moment.date.has_zero_part()) {
        warn(cx, 1411, format!("Incorrect datetime value: '{text}' for function str_to_date"));
        return Ok(Value::Null);
    }
    if !rest.trim().is_empty() {
        let what = if matches!(kind, TypeKind::Date) { "date" } else { "datetime" };
        warn(cx, 1292, format!("Truncated incorrect {what} value: '{text}'"));
    }
    Ok(match kind {
        TypeKind::Date => Value::Date(moment.date),
        TypeKind::Time(_) => Value::Time(moment.time()),
        _ => Value::DateTime(moment),
    })
}

/// Up to `most` digits.
fn digits(text: &mut &str, most: usize) -> Option<u32> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let number = text[..count].parse().ok()?;
    *text = &text[count..];
    Some(number)
}

fn name(text: &mut &str, names: &[&str], length: Option<usize>) -> Option<usize> {
    let found = names.iter().position(|n| {
        let n = &n[..length.unwrap_or(n.len()).min(n.len())];
        text.get(..n.len()).is_some_and(|t| t.eq_ignore_ascii_case(n))
    })?;
    let taken = length.unwrap_or(names[found].len());
    *text = &text[taken..];
    Some(found)
}

fn read<'t>(text: &'t str, format: &str) -> Option<(Parts, &'t str)> {
    let mut parts = Parts::default();
    let mut rest = text;
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        if c.is_whitespace() {
            continue;
        }
        if c != '%' {
            rest = rest.strip_prefix(c)?;
            continue;
        }
        match chars.next()? {
            'Y' => {
                let before = rest.len();
                let year = digits(&mut rest, 4)?;
                parts.year = if before - rest.len() <= 2 { two_digits(year) } else { year as u16 };
            }
            'y' => parts.year = two_digits(digits(&mut rest, 2)?),
            'm' | 'c' => parts.month = digits(&mut rest, 2)? as u8,
            'M' => parts.month = name(&mut rest, &MONTHS, None)? as u8 + 1,
            'b' => parts.month = name(&mut rest, &MONTHS, Some(3))? as u8 + 1,
            'd' | 'e' => parts.day = digits(&mut rest, 2)? as u8,
            'D' => {
                parts.day = digits(&mut rest, 2)? as u8;
                rest = rest.get(2..)?;
            }
            'h' | 'I' | 'l' => {
                parts.hour = digits(&mut rest, 2)?;
                parts.twelve_hours = true;
            }
            'H' | 'k' => parts.hour = digits(&mut rest, 2)?,
            'i' => parts.minute = digits(&mut rest, 2)?,
            's' | 'S' => parts.second = digits(&mut rest, 2)?,
            'f' => {
                let before = rest.len();
                let value = digits(&mut rest, 6)?;
                parts.micros = value * 10u32.pow(6 - (before - rest.len()) as u32);
            }
            'p' => {
                let half = rest.get(..2)?;
                parts.pm = Some(if half.eq_ignore_ascii_case("PM") { true } else if half.eq_ignore_ascii_case("AM") { false } else { return None });
                rest = &rest[2..];
            }
            'W' => parts.weekday = Some(name(&mut rest, &DAYS, None)? as u8 + 1),
            'a' => parts.weekday = Some(name(&mut rest, &DAYS, Some(3))? as u8 + 1),
            'w' => parts.weekday = Some(match digits(&mut rest, 1)? {
                0 => 7,
                d @ 1..=6 => d as u8,
                _ => return None,
            }),
            'j' => parts.day_of_year = Some(digits(&mut rest, 3)?),
            kind @ ('U' | 'u' | 'V' | 'v') => {
                let week = digits(&mut rest, 2)?;
                let kind = WeekKind { monday: matches!(kind, 'u' | 'v'), strict: matches!(kind, 'V' | 'v') };
                if week > 53 || (kind.strict && week == 0) {
                    return None;
                }
                parts.week = Some((week, kind));
            }
            'X' | 'x' => parts.week_year = Some(digits(&mut rest, 4)? as u16),
            'T' => {
                let (inner, after) = read(rest, "%H:%i:%S")?;
                (parts.hour, parts.minute, parts.second) = (inner.hour, inner.minute, inner.second);
                rest = after;
            }
            'r' => {
                let (inner, after) = read(rest, "%I:%i:%S %p")?;
                (parts.hour, parts.minute, parts.second, parts.pm, parts.twelve_hours) = (inner.hour, inner.minute, inner.second, inner.pm, true);
                rest = after;
            }
            '.' => rest = rest.trim_start_matches(|c: char| c.is_ascii_punctuation()),
            '@' => rest = rest.trim_start_matches(|c: char| c.is_alphabetic()),
            '#' => rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()),
            _ => return None,
        }
    }
    Some((parts, rest))
}

fn two_digits(year: u32) -> u16 {
    year as u16 + if year < 70 { 2000 } else { 1900 }
}

fn assemble(parts: &Parts) -> Option<DateTime> {
    let mut hour = parts.hour;
    if parts.twelve_hours || parts.pm.is_some() {
        if hour > 12 || hour < 1 {
            return None;
        }
        hour = hour % 12 + if parts.pm == Some(true) { 12 } else { 0 };
    }
    if hour > 23 || parts.minute > 59 || parts.second > 59 || parts.month > 12 || parts.day > 31 {
        return None;
    }
    let mut date = Date::new(parts.year, parts.month, parts.day);
    if let Some(day) = parts.day_of_year.filter(|d| *d > 0) {
        date = Date::from_days(Date::new(parts.year, 1, 1).to_days() + i64::from(day) - 1)?;
    }
    if let (Some((week, kind)), Some(weekday)) = (parts.week, parts.weekday) {
        if kind.strict != parts.week_year.is_some() {
            return None;
        }
        let year = parts.week_year.unwrap_or(parts.year);
        let first = Date::new(year, 1, 1);
        // 0 is the day that weeks start with.
        let start = if kind.monday { i64::from(first.weekday()) } else { i64::from((first.weekday() + 1) % 7) };
        let day_in_week = if kind.monday { i64::from(weekday) - 1 } else { i64::from(weekday % 7) };
        let mut days = first.to_days() + (if start == 0 { 0 } else { 7 } - start) + (i64::from(week) - 1) * 7 + day_in_week;
        if kind.monday && kind.strict && start <= 3 && start != 0 {
            days -= 7;
        } else if kind.monday && !kind.strict && start <= 3 && start != 0 {
            days -= 7;
        }
        date = Date::from_days(days)?;
    }
    Some(DateTime::new(date, hour as u8, parts.minute as u8, parts.second as u8, parts.micros))
}
