//! Dates and times.

use highkey_types::{Date, DateRules, DateTime, Decimal, Interval, IntervalUnit, MySqlError, Time, TimeZone, TypeKind, Value, is_datetime_text, parse_datetime};

use super::FuncId;
use super::call::{Result, Types};
use super::format_date;
use crate::expr::EvalContext;
use crate::expr::convert::{to_date, to_datetime, to_fuzzy_datetime, to_decimal, to_i64, to_text, to_time, warn};

const MICROS: i64 = 1_000_000;

pub(super) const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
/// From Monday.
pub(super) const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn unit(value: &Value) -> Result<IntervalUnit> {
    value.as_str().and_then(IntervalUnit::by_name).ok_or_else(|| MySqlError::with_message(1210, "Incorrect arguments to INTERVAL"))
}

/// The amount of an INTERVAL, as MySQL reads its value for the unit.
pub(crate) fn interval(value: &Value, unit: IntervalUnit, cx: &mut dyn EvalContext) -> Option<Interval> {
    use IntervalUnit as U;
    let simple = matches!(unit, U::Microsecond | U::Minute | U::Hour | U::Day | U::Week | U::Month | U::Quarter | U::Year);
    match value {
        Value::Int(n) => Some(Interval::from_i64(*n, unit)),
        // What is too large for a signed number is the negative one of the same bits.
        Value::UInt(n) if simple || unit == U::Second => Some(Interval::from_i64(*n as i64, unit)),
        Value::UInt(n) => Some(Interval::from_i64(i64::try_from(*n).unwrap_or(i64::MAX), unit)),
        _ if unit == U::Second => {
            let decimal = to_decimal(value, cx)?;
            let micros = decimal.mul(&Decimal::from(MICROS))?.truncate(0).to_i64()?;
            Some(Interval::from_micros(micros))
        }
        _ if simple => Some(Interval::from_i64(to_i64(value, cx)?, unit)),
        _ => Interval::parse(&to_text(value)?, unit),
    }
}

/// DATE_ADD and DATE_SUB: (date, value, unit).
pub(super) fn date_add(args: &[Value], subtract: bool, types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let unit = unit(&args[2])?;
    let Some(mut amount) = interval(&args[1], unit, cx) else { return Ok(Value::Null) };
    if subtract {
        amount = amount.negate();
    }
    if let (Value::Time(time), TypeKind::Time(_)) = (&args[0], &types.result.ty.kind) {
        if amount.years != 0 || amount.months != 0 {
            return Ok(Value::Null);
        }
        let hours = amount.days as i128 * 24 + amount.hours as i128;
        let micros = ((hours * 60 + amount.minutes as i128) * 60 + amount.seconds as i128) * i128::from(MICROS) + amount.micros as i128;
        let total = i128::from(time.micros) + if amount.negative { -micros } else { micros };
        if total.abs() > i128::from(Time::MAX.micros) {
            warn(cx, 1441, "Datetime function: time field overflow");
            return Ok(Value::Null);
        }
        return Ok(Value::Time(Time { micros: total as i64 }));
    }
    let Some(start) = to_datetime(&args[0], cx) else { return Ok(Value::Null) };
    if start.date.has_zero_part() && !(start.date.month != 0 && start.date.day != 0) {
        warn(cx, 1292, format!("Incorrect datetime value: '{}'", to_text(&args[0]).unwrap_or_default()));
        return Ok(Value::Null);
    }
    let Some(result) = start.add(&amount) else {
        warn(cx, 1441, "Datetime function: datetime field overflow");
        return Ok(Value::Null);
    };
    Ok(match types.result.ty.kind {
        TypeKind::Date => Value::Date(result.date),
        _ if types.result.ty.is_temporal() => Value::DateTime(result),
        // A string in, a string out: a date if no time of day was given or asked for.
        _ => {
            if unit.has_time() || !is_date_only(&args[0]) {
                Value::from(result.format(if result.micros > 0 { 6 } else { 0 }))
            } else {
                Value::from(result.date.to_string())
            }
        }
    })
}

/// EXTRACT: (unit, date).
pub(super) fn extract(args: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    use IntervalUnit as U;
    let unit = unit(&args[0])?;
    let of_time = |t: Time| {
        let (hours, minutes, seconds, micros) = (i64::from(t.hours()), i64::from(t.minutes()), i64::from(t.seconds()), i64::from(t.subsec_micros()));
        let n = match unit {
            U::Hour => hours,
            U::Minute => minutes,
            U::Second => seconds,
            U::Microsecond => micros,
            U::HourMinute => hours * 100 + minutes,
            U::HourSecond => (hours * 100 + minutes) * 100 + seconds,
            U::HourMicrosecond => ((hours * 100 + minutes) * 100 + seconds) * MICROS + micros,
            U::MinuteSecond => minutes * 100 + seconds,
            U::MinuteMicrosecond => (minutes * 100 + seconds) * MICROS + micros,
            _ => seconds * MICROS + micros,
        };
        Value::Int(if t.is_negative() { -n } else { n })
    };
    let days_too = matches!(unit, U::DayHour | U::DayMinute | U::DaySecond | U::DayMicrosecond);
    let dates = matches!(unit, U::Year | U::Quarter | U::Month | U::Week | U::Day | U::YearMonth);
    // A string with a date counts by its time of day, and by its day where that is asked for. Any other string is a time of day, whose hours may be many.
    if !dates && !days_too {
        return Ok(to_time(&args[1], cx).map_or(Value::Null, of_time));
    }
    // Of what is a duration there is no day, and a number is one unless it has a time of day behind a date.
    if days_too && !has_date(&args[1]) {
        let Some(t) = to_time(&args[1], cx) else { return Ok(Value::Null) };
        let n = packed_day(unit, 0, t.hours().into(), t.minutes().into(), t.seconds().into(), t.subsec_micros().into());
        return Ok(Value::Int(if t.is_negative() { -n } else { n }));
    }
    let Some(moment) = to_fuzzy_datetime(&args[1], cx) else { return Ok(Value::Null) };
    let date = moment.date;
    Ok(Value::Int(match unit {
        U::Year => i64::from(date.year),
        U::Quarter => i64::from(date.month.div_ceil(3)),
        U::Month => i64::from(date.month),
        U::Week => i64::from(date.week(default_week_format(cx)).1),
        U::Day => i64::from(date.day),
        U::YearMonth => i64::from(date.year) * 100 + i64::from(date.month),
        _ => packed_day(unit, date.day.into(), moment.hour.into(), moment.minute.into(), moment.second.into(), moment.micros.into()),
    }))
}

fn packed_day(unit: IntervalUnit, day: i64, hour: i64, minute: i64, second: i64, micros: i64) -> i64 {
    let n = day * 100 + hour;
    match unit {
        IntervalUnit::DayHour => n,
        IntervalUnit::DayMinute => n * 100 + minute,
        IntervalUnit::DaySecond => (n * 100 + minute) * 100 + second,
        _ => ((n * 100 + minute) * 100 + second) * MICROS + micros,
    }
}

fn default_week_format(cx: &mut dyn EvalContext) -> u8 {
    cx.system_var(None, "default_week_format").ok().and_then(|v| v.as_i64()).unwrap_or(0) as u8
}

/// TIMESTAMPDIFF: (unit, from, to).
pub(super) fn timestamp_diff(args: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    use IntervalUnit as U;
    let unit = unit(&args[0])?;
    let (Some(from), Some(to)) = (to_datetime(&args[1], cx), to_datetime(&args[2], cx)) else { return Ok(Value::Null) };
    if from.date.has_zero_part() || to.date.has_zero_part() {
        return Ok(Value::Null);
    }
    let micros = to.to_micros() - from.to_micros();
    let months = || {
        let (early, late, sign) = if micros < 0 { (to, from, -1) } else { (from, to, 1) };
        let mut months = (i64::from(late.date.year) - i64::from(early.date.year)) * 12 + i64::from(late.date.month) - i64::from(early.date.month);
        if (late.date.day, late.time().micros) < (early.date.day, early.time().micros) {
            months -= 1;
        }
        months * sign
    };
    Ok(Value::Int(match unit {
        U::Year => months() / 12,
        U::Quarter => months() / 3,
        U::Month => months(),
        U::Week => micros / (7 * 86_400 * MICROS),
        U::Day => micros / (86_400 * MICROS),
        U::Hour => micros / (3600 * MICROS),
        U::Minute => micros / (60 * MICROS),
        U::Second => micros / MICROS,
        _ => micros,
    }))
}

fn utc_now(cx: &dyn EvalContext) -> DateTime {
    DateTime::from_micros(cx.now_micros()).unwrap_or_default()
}

fn fsp(types: &Types<'_>) -> u8 {
    types.result.ty.fsp()
}

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    match func {
        F::Now => return Ok(Value::DateTime(cx.now().truncate(fsp(types)))),
        F::CurDate => return Ok(Value::Date(cx.now().date)),
        F::CurTime => return Ok(Value::Time(cx.now().time().truncate(fsp(types)))),
        F::UtcDate => return Ok(Value::Date(utc_now(cx).date)),
        F::UtcTime => return Ok(Value::Time(utc_now(cx).time().truncate(fsp(types)))),
        F::UtcTimestamp => return Ok(Value::DateTime(utc_now(cx).truncate(fsp(types)))),
        F::SysDate => {
            let micros = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
            let utc = DateTime::from_micros(micros).unwrap_or_default();
            return Ok(Value::DateTime(cx.time_zone().from_utc(&utc).truncate(fsp(types))));
        }
        F::UnixTimestamp => return unix_timestamp(args, types, cx),
        F::FromUnixtime => return from_unixtime(args, types, cx),
        F::ConvertTz => return convert_tz(args, cx),
        F::GetFormat => return Ok(get_format(args)),
        F::MakeDate | F::MakeTime | F::PeriodAdd | F::PeriodDiff | F::FromDays | F::SecToTime => return from_numbers(func, args, types, cx),
        F::AddTime | F::SubTime | F::TimeDiff | F::TimeFunc | F::TimestampFunc => return time_arithmetic(func, args, types, cx),
        F::Hour | F::Minute | F::Second | F::Microsecond | F::TimeToSec => {
            let Some(t) = to_time(&args[0], cx) else { return Ok(Value::Null) };
            return Ok(Value::Int(match func {
                F::Hour => i64::from(t.hours()),
                F::Minute => i64::from(t.minutes()),
                F::Second => i64::from(t.seconds()),
                F::Microsecond => i64::from(t.subsec_micros()),
                _ => t.micros / MICROS,
            }));
        }
        _ => {}
    }
    let Some(moment) = to_fuzzy_datetime(&args[0], cx) else { return Ok(Value::Null) };
    let date = moment.date;
    // What needs a real day answers NULL for a date with zero parts.
    let needs_day = !matches!(func, F::Year | F::Month | F::DayOfMonth | F::Quarter | F::DateFunc | F::MonthName);
    if needs_day && date.has_zero_part() && !(func == F::LastDay && date.month != 0) {
        warn(cx, 1292, format!("Incorrect datetime value: '{}'", to_text(&args[0]).unwrap_or_default()));
        return Ok(Value::Null);
    }
    let mode = |cx: &mut dyn EvalContext, default: u8| match args.get(1) {
        Some(value) => to_i64(value, cx).unwrap_or(0) as u8 & 7,
        None => default,
    };
    Ok(match func {
        F::DateFunc => Value::Date(date),
        F::LastDay => Value::Date(date.last_day()),
        F::Year => Value::Int(date.year.into()),
        F::Month => Value::Int(date.month.into()),
        F::DayOfMonth => Value::Int(date.day.into()),
        F::Quarter => Value::Int(date.month.div_ceil(3).into()),
        F::MonthName => match date.month {
            0 => Value::Null,
            m => Value::from(MONTHS[usize::from(m) - 1]),
        },
        F::DayName => Value::from(DAYS[usize::from(date.weekday())]),
        F::Weekday => Value::Int(date.weekday().into()),
        F::DayOfWeek => Value::Int(i64::from((date.weekday() + 1) % 7) + 1),
        F::DayOfYear => Value::Int(date.day_of_year().into()),
        F::WeekOfYear => Value::Int(date.week(3).1.into()),
        F::Week => {
            let default = default_week_format(cx);
            Value::Int(date.week(mode(cx, default)).1.into())
        }
        F::YearWeek => {
            let (year, week) = date.week(mode(cx, 0) | 2);
            Value::Int(year.wrapping_mul(100).wrapping_add(week).into())
        }
        F::ToDays => Value::Int(date.to_days()),
        F::ToSeconds => Value::Int(date.to_days() * 86_400 + moment.time().micros / MICROS),
        _ => match to_date(&args[1], cx) {
            Some(other) if !other.has_zero_part() => Value::Int(date.to_days() - other.to_days()),
            _ => Value::Null,
        },
    })
}

fn unix_timestamp(args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let micros = match args.first() {
        None => return Ok(Value::Int(cx.now_micros() / MICROS)),
        Some(value) => {
            // What is no moment, or none that TIMESTAMP can hold, is zero.
            let local = to_datetime(value, cx);
            local.and_then(|local| cx.time_zone().to_utc(&local)).map_or(0, |utc| utc.to_micros().max(0))
        }
    };
    Ok(match types.result.ty.kind {
        TypeKind::Decimal { scale, .. } => {
            let exact = Decimal::from_i128(micros.into(), 6);
            Value::Decimal(exact.truncate(scale.into()).rescale(scale).unwrap_or(exact))
        }
        _ => Value::Int(micros / MICROS),
    })
}

fn from_unixtime(args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let Some(seconds) = to_decimal(&args[0], cx) else { return Ok(Value::Null) };
    let micros = seconds.mul(&Decimal::from(MICROS)).and_then(|d| d.round(0).to_i64());
    // The range of TIMESTAMP, as in 8.0.12.
    let Some(micros) = micros.filter(|m| (0..2_147_483_648 * MICROS).contains(m)) else { return Ok(Value::Null) };
    let utc = DateTime::from_micros(micros).unwrap_or_default();
    let local = cx.time_zone().from_utc(&utc);
    match args.get(1) {
        Some(format) => Ok(Value::from(format_date::format(&local, &to_text(format).unwrap_or_default(), cx)?)),
        None => Ok(Value::DateTime(local.truncate(fsp(types)))),
    }
}

fn convert_tz(args: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    let zone = |value: &Value| to_text(value).and_then(|name| TimeZone::parse(&name));
    let Some(local) = to_datetime(&args[0], cx) else { return Ok(Value::Null) };
    if local.date.has_zero_part() {
        warn(cx, 1292, format!("Incorrect datetime value: '{}'", to_text(&args[0]).unwrap_or_default()));
        return Ok(Value::Null);
    }
    let (Some(from), Some(to)) = (zone(&args[1]), zone(&args[2])) else { return Ok(Value::Null) };
    // Outside of TIMESTAMP's range the value stays as it is.
    Ok(Value::DateTime(from.convert(&local, &to).unwrap_or(local)))
}

fn get_format(args: &[Value]) -> Value {
    let (kind, style) = (to_text(&args[0]).unwrap_or_default(), to_text(&args[1]).unwrap_or_default().to_ascii_uppercase());
    let format = match (&*kind, style.as_str()) {
        ("DATE", "USA") => "%m.%d.%Y",
        ("DATE", "JIS" | "ISO") => "%Y-%m-%d",
        ("DATE", "EUR") => "%d.%m.%Y",
        ("DATE", "INTERNAL") => "%Y%m%d",
        ("TIME", "USA") => "%h:%i:%s %p",
        ("TIME", "JIS" | "ISO") => "%H:%i:%s",
        ("TIME", "EUR") => "%H.%i.%s",
        ("TIME", "INTERNAL") => "%H%i%s",
        ("DATETIME" | "TIMESTAMP", "USA" | "EUR") => "%Y-%m-%d %H.%i.%s",
        ("DATETIME" | "TIMESTAMP", "JIS" | "ISO") => "%Y-%m-%d %H:%i:%s",
        ("DATETIME" | "TIMESTAMP", "INTERNAL") => "%Y%m%d%H%i%s",
        _ => return Value::Null,
    };
    Value::from(format)
}

fn from_numbers(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let first = match func {
        FuncId::SecToTime => 0,
        _ => to_i64(&args[0], cx).unwrap_or(0),
    };
    Ok(match func {
        FuncId::MakeDate => {
            let day = to_i64(&args[1], cx).unwrap_or(0);
            let year = match first {
                0..=69 => first + 2000,
                70..=99 => first + 1900,
                _ => first,
            };
            if day <= 0 || !(0..=9999).contains(&year) {
                return Ok(Value::Null);
            }
            let start = Date::new(year as u16, 1, 1).to_days();
            Date::from_days(start.saturating_add(day - 1)).map_or(Value::Null, Value::Date)
        }
        FuncId::MakeTime => {
            let minute = to_i64(&args[1], cx).unwrap_or(-1);
            let Some(seconds) = to_decimal(&args[2], cx) else { return Ok(Value::Null) };
            let micros = seconds.mul(&Decimal::from(MICROS)).and_then(|d| d.round(0).to_i64()).unwrap_or(-1);
            if !(0..60).contains(&minute) || !(0..60 * MICROS).contains(&micros) {
                return Ok(Value::Null);
            }
            let hours = match &args[0] {
                Value::UInt(hours) => i128::from(*hours),
                _ => i128::from(first),
            };
            let total = hours.abs() * 3600 * i128::from(MICROS) + i128::from(minute * 60 * MICROS + micros);
            Value::Time(clamp_time(if hours < 0 { -total } else { total }, cx))
        }
        FuncId::SecToTime => {
            let Some(seconds) = to_decimal(&args[0], cx) else { return Ok(Value::Null) };
            let too_many = if seconds.is_negative() { i64::MIN } else { i64::MAX };
            let micros = seconds.mul(&Decimal::from(MICROS)).and_then(|d| d.round(0).to_i64()).unwrap_or(too_many);
            Value::Time(clamp_time(micros.into(), cx).round(fsp(types)))
        }
        // Year 0 has no dates to count.
        FuncId::FromDays if first <= 365 => Value::Date(Date::default()),
        FuncId::FromDays => Date::from_days(first).map_or(Value::Date(Date::default()), Value::Date),
        FuncId::PeriodAdd => {
            let months = to_i64(&args[1], cx).unwrap_or(0);
            Value::Int(period(months_of(first, func)?.saturating_add(months)))
        }
        _ => Value::Int(months_of(first, func)? - months_of(to_i64(&args[1], cx).unwrap_or(0), func)?),
    })
}

/// Months since year 0 of a period YYMM or YYYYMM, an argument of `func`.
fn months_of(period: i64, func: FuncId) -> Result<i64> {
    if period <= 0 || !(1..=12).contains(&(period % 100)) {
        return Err(MySqlError::with_message(1210, format!("Incorrect arguments to {}", func.name().to_ascii_lowercase())));
    }
    let year = period / 100;
    let year = if year < 70 { year + 2000 } else if year < 100 { year + 1900 } else { year };
    Ok(year.saturating_mul(12).saturating_add(period % 100 - 1))
}

fn period(months: i64) -> i64 {
    if months <= 0 {
        return 0;
    }
    let year = months / 12;
    let year = if year < 70 { year + 2000 } else if year < 100 { year + 1900 } else { year };
    year.saturating_mul(100).saturating_add(months % 12 + 1)
}

fn clamp_time(micros: i128, cx: &mut dyn EvalContext) -> Time {
    let most = i128::from(Time::MAX.micros);
    if micros.abs() > most {
        let seconds = micros / i128::from(MICROS);
        warn(cx, 1292, format!("Truncated incorrect time value: '{seconds}'"));
    }
    Time { micros: micros.clamp(-most, most) as i64 }
}

/// Whether a value is a moment (has a date and a time of day) rather than a duration, which a string may be by its form that means a date.
fn has_date(value: &Value) -> bool {
    match value {
        Value::Date(_) | Value::DateTime(_) => true,
        Value::Time(_) => false,
        Value::Int(n) => n.unsigned_abs() >= 10_000_000_000,
        Value::Decimal(n) => n.to_f64().abs() >= 1e10,
        Value::Double(n) => n.abs() >= 1e10,
        _ => to_text(value).is_some_and(|text| is_datetime_text(&text)),
    }
}

/// Whether what is read as a date or a moment is one without a time of day.
fn is_date_only(value: &Value) -> bool {
    match value {
        Value::Date(_) => true,
        Value::DateTime(_) | Value::Time(_) => false,
        Value::Int(n) => *n <= 99_999_999,
        Value::UInt(n) => *n <= 99_999_999,
        Value::Decimal(n) => n.to_f64() <= 99_999_999.0,
        Value::Double(n) => *n <= 99_999_999.0,
        _ => to_text(value).is_some_and(|text| parse_datetime(&text, DateRules { allow_invalid_dates: true, ..DateRules::default() }).is_ok_and(|read| read.date_only)),
    }
}

/// A moment and microseconds; `None` before year 1 and after year 9999.
fn moved(moment: DateTime, micros: i64) -> Option<DateTime> {
    moment.add(&Interval::from_micros(micros)).filter(|sum| !sum.date.has_zero_part())
}

fn time_arithmetic(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    match func {
        FuncId::TimeFunc => {
            return Ok(to_time(&args[0], cx).map_or(Value::Null, Value::Time));
        }
        FuncId::TimestampFunc => {
            let Some(time) = args.get(1) else { return Ok(to_fuzzy_datetime(&args[0], cx).map_or(Value::Null, Value::DateTime)) };
            let Some(moment) = to_datetime(&args[0], cx) else { return Ok(Value::Null) };
            return Ok(match time {
                Value::Text(_) | Value::Int(_) | Value::Decimal(_) | Value::Double(_) if has_date(time) => Value::Null,
                time => match to_time(time, cx).and_then(|t| moved(moment, t.micros)) {
                    Some(sum) => Value::DateTime(sum),
                    None => Value::Null,
                },
            });
        }
        FuncId::TimeDiff => {
            let dated = |value: &Value| matches!(value, Value::Date(_) | Value::DateTime(_));
            // Beside a date or a moment the other one is read as such.
            let as_dates = dated(&args[0]) || dated(&args[1]);
            let differ = if as_dates { is_date_only(&args[0]) != is_date_only(&args[1]) } else { has_date(&args[0]) != has_date(&args[1]) };
            if differ || (as_dates && args.iter().any(|value| matches!(value, Value::Time(_)))) {
                return Ok(Value::Null);
            }
            let micros = if as_dates {
                match (to_fuzzy_datetime(&args[0], cx), to_fuzzy_datetime(&args[1], cx)) {
                    (Some(a), Some(b)) => a.to_micros() - b.to_micros(),
                    _ => return Ok(Value::Null),
                }
            } else if has_date(&args[0]) {
                match (to_datetime(&args[0], cx), to_datetime(&args[1], cx)) {
                    (Some(a), Some(b)) => a.to_micros() - b.to_micros(),
                    _ => return Ok(Value::Null),
                }
            } else {
                match (to_time(&args[0], cx), to_time(&args[1], cx)) {
                    (Some(a), Some(b)) => a.micros - b.micros,
                    _ => return Ok(Value::Null),
                }
            };
            return Ok(Value::Time(clamp_time(micros.into(), cx)));
        }
        _ => {}
    }
    // ADDTIME and SUBTIME: the second argument is a duration.
    if matches!(&args[1], Value::Date(_) | Value::DateTime(_)) || has_date(&args[1]) {
        return Ok(Value::Null);
    }
    let Some(duration) = to_time(&args[1], cx) else { return Ok(Value::Null) };
    let micros = if func == FuncId::SubTime { -duration.micros } else { duration.micros };
    let text = !types.result.ty.is_temporal();
    if has_date(&args[0]) {
        let Some(sum) = to_datetime(&args[0], cx).and_then(|d| moved(d, micros)) else { return Ok(Value::Null) };
        return Ok(if text { Value::from(sum.format(if sum.micros > 0 { 6 } else { 0 })) } else { Value::DateTime(sum) });
    }
    let Some(time) = to_time(&args[0], cx) else { return Ok(Value::Null) };
    let sum = clamp_time(i128::from(time.micros) + i128::from(micros), cx);
    Ok(if text { Value::from(sum.format(if sum.subsec_micros() > 0 { 6 } else { 0 })) } else { Value::Time(sum) })
}
