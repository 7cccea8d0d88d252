//! When an event runs: the next moment, and what is said of a schedule in SQL.

use highkey_table::{EventDef, EventSchedule};
use highkey_types::{DateTime, Interval, IntervalUnit, TimeZone, UtcMoment};

const MICROS: i64 = 1_000_000;
/// In seconds.
const DAY: i64 = 86_400;

/// What is to come of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It runs at this moment, in seconds since 1970, UTC.
    At(i64),
    /// It does not run any more.
    Over,
}

/// When the event runs next, as seen at `now`. One that has missed its time runs as soon as it can; one that comes again and again goes on with the time that
/// comes next.
pub fn next_run(def: &EventDef, now: i64) -> Next {
    match def.schedule {
        EventSchedule::At(at) if def.last_executed.is_none() => Next::At(at),
        EventSchedule::At(_) => Next::Over,
        EventSchedule::Every { count, unit, starts, ends } => {
            let next = if now <= starts && def.last_executed != Some(starts) {
                Some(starts)
            } else {
                let zone = TimeZone::parse(&def.time_zone).unwrap_or_else(TimeZone::system);
                behind(starts, count, unit, &zone, now)
            };
            next.filter(|next| ends.is_none_or(|ends| *next <= ends)).map_or(Next::Over, Next::At)
        }
    }
}

/// The first of the moments that lies behind `now`, which is not before `starts`; `None`: beyond what TIMESTAMP holds.
fn behind(starts: i64, count: u32, unit: IntervalUnit, zone: &TimeZone, now: i64) -> Option<i64> {
    use IntervalUnit as U;
    let count = i64::from(count);
    // (months, days) of an interval by the calendar; others are so many seconds.
    let (months, days) = match unit {
        U::Year => (12 * count, 0),
        U::Quarter | U::Month | U::YearMonth => (count, 0),
        U::Week | U::Day => (0, count),
        U::Hour | U::DayHour => return elapsed(starts, 3600 * count, now),
        U::Minute | U::DayMinute | U::HourMinute => return elapsed(starts, 60 * count, now),
        _ => return elapsed(starts, count, now),
    };
    let start = zone.from_utc(&DateTime::from_micros(starts * MICROS)?);
    // No month is longer than that: the one that is looked for is this, or comes after it.
    let mut number = ((now - starts) / ((31 * months + days) * DAY)).max(1);
    loop {
        let interval = Interval { months: (months * number) as u64, days: (days * number) as u64, ..Interval::default() };
        let moment = seconds_of(&start.add(&interval)?, zone)?;
        if moment > now {
            return Some(moment);
        }
        number += 1;
    }
}

fn elapsed(starts: i64, step: i64, now: i64) -> Option<i64> {
    starts.checked_add(((now - starts).max(0) / step + 1).checked_mul(step)?)
}

/// The moment that a wall clock shows, the first after it where the clock leaves it out; `None`: no moment that TIMESTAMP holds.
pub fn seconds_of(local: &DateTime, zone: &TimeZone) -> Option<i64> {
    match zone.utc_moment(local) {
        UtcMoment::At(utc) | UtcMoment::Gap(utc) => Some(utc.to_micros().div_euclid(MICROS)),
        UtcMoment::OutOfRange => None,
    }
}

/// What the wall clock of the event's time zone shows at a moment.
pub fn wall_clock(def: &EventDef, seconds: i64) -> DateTime {
    let zone = TimeZone::parse(&def.time_zone).unwrap_or_else(TimeZone::system);
    DateTime::now_in(&zone, seconds * MICROS)
}

/// How many of the last part of the unit an interval has, as `EventSchedule::Every` counts them.
pub fn count_of(interval: &Interval, unit: IntervalUnit) -> u64 {
    use IntervalUnit as U;
    let sum = |parts: &[(u64, u64)]| parts.iter().fold(0u64, |sum, (n, each)| sum.saturating_mul(*each).saturating_add(*n));
    let Interval { years, months, days, hours, minutes, seconds, .. } = *interval;
    match unit {
        U::Year => years,
        U::YearMonth => sum(&[(years, 1), (months, 12)]),
        U::Quarter | U::Month => months,
        U::Week | U::Day => days,
        U::Hour => hours,
        U::DayHour => sum(&[(days, 1), (hours, 24)]),
        U::Minute => minutes,
        U::HourMinute => sum(&[(hours, 1), (minutes, 60)]),
        U::DayMinute => sum(&[(days, 1), (hours, 24), (minutes, 60)]),
        _ => sum(&[(days, 1), (hours, 24), (minutes, 60), (seconds, 60)]),
    }
}

/// The interval as it is written behind EVERY.
pub fn interval_text(count: u32, unit: IntervalUnit) -> String {
    use IntervalUnit as U;
    let amount = match unit {
        U::Week => (count / 7).to_string(),
        U::Quarter => (count / 3).to_string(),
        U::YearMonth => format!("'{}-{}'", count / 12, count % 12),
        U::DayHour => format!("'{} {}'", count / 24, count % 24),
        U::HourMinute | U::MinuteSecond => format!("'{}:{}'", count / 60, count % 60),
        U::DayMinute => format!("'{} {}:{}'", count / 1440, count / 60 % 24, count % 60),
        U::HourSecond => format!("'{}:{}:{}'", count / 3600, count / 60 % 60, count % 60),
        U::DaySecond => format!("'{} {}:{}:{}'", count / 86_400, count / 3600 % 24, count / 60 % 60, count % 60),
        _ => count.to_string(),
    };
    format!("{amount} {}", unit.name())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use highkey_table::EventStatus;
    use highkey_types::{Charset, Collation, Date};

    use super::*;

    fn moment(text: &str, zone: &TimeZone) -> i64 {
        let n: Vec<u16> = text.split(['-', ' ', ':']).map(|n| n.parse().unwrap()).collect();
        let local = DateTime::new(Date::new(n[0], n[1] as u8, n[2] as u8), n[3] as u8, n[4] as u8, n[5] as u8, 0);
        seconds_of(&local, zone).unwrap()
    }

    fn event(schedule: EventSchedule, time_zone: &str, last_executed: Option<i64>) -> EventDef {
        let collation = Collation::utf8mb4();
        EventDef {
            schema: "s".into(),
            name: "e".into(),
            body: "DO 1".into(),
            schedule,
            time_zone: time_zone.into(),
            status: EventStatus::Enabled,
            preserve: false,
            comment: "".into(),
            definer: ("root".into(), "localhost".into()),
            sql_mode: 0,
            charset: Charset::Utf8mb4,
            collation,
            schema_collation: collation,
            originator: 1,
            created_at: UNIX_EPOCH,
            altered_at: UNIX_EPOCH,
            last_executed,
        }
    }

    #[test]
    fn a_run_that_was_missed_comes_late_and_one_that_was_made_not_again() {
        assert_eq!(next_run(&event(EventSchedule::At(100), "+00:00", None), 500), Next::At(100));
        assert_eq!(next_run(&event(EventSchedule::At(100), "+00:00", Some(100)), 100), Next::Over);
        let every = |ends| EventSchedule::Every { count: 10, unit: IntervalUnit::Second, starts: 100, ends };
        let next = |ends, last, now| next_run(&event(every(ends), "+00:00", last), now);
        assert_eq!(next(None, None, 50), Next::At(100));
        assert_eq!(next(None, None, 100), Next::At(100));
        assert_eq!(next(None, Some(100), 100), Next::At(110));
        assert_eq!(next(None, Some(100), 109), Next::At(110));
        assert_eq!(next(None, None, 134), Next::At(140), "those in between are left out");
        assert_eq!(next(Some(110), Some(100), 109), Next::At(110));
        assert_eq!(next(Some(110), Some(110), 110), Next::Over);
        assert_eq!(next(Some(110), None, 111), Next::Over);
    }

    #[test]
    fn days_and_months_are_those_of_the_calendar() {
        let zone = TimeZone::parse("Europe/Berlin").unwrap();
        let next = |count, unit, starts, now| {
            let schedule = EventSchedule::Every { count, unit, starts: moment(starts, &zone), ends: None };
            let Next::At(at) = next_run(&event(schedule, "Europe/Berlin", None), moment(now, &zone)) else { panic!("no end is set") };
            DateTime::now_in(&zone, at * MICROS).to_string()
        };
        assert_eq!(next(1, IntervalUnit::Month, "2024-01-31 12:00:00", "2024-02-10 00:00:00"), "2024-02-29 12:00:00");
        assert_eq!(next(1, IntervalUnit::Month, "2024-01-31 12:00:00", "2024-02-29 12:00:00"), "2024-03-31 12:00:00");
        assert_eq!(next(3, IntervalUnit::Quarter, "2024-01-31 12:00:00", "2031-02-01 00:00:00"), "2031-04-30 12:00:00");
        assert_eq!(next(2, IntervalUnit::Year, "2000-02-29 00:00:00", "2001-03-01 00:00:00"), "2002-02-28 00:00:00");
        // The clock goes from 2 to 3 on that day.
        assert_eq!(next(1, IntervalUnit::Day, "2024-03-29 12:00:00", "2024-03-30 12:00:00"), "2024-03-31 12:00:00");
        assert_eq!(next(1, IntervalUnit::Day, "2024-03-29 02:30:00", "2024-03-30 12:00:00"), "2024-03-31 03:00:00");
        assert_eq!(next(14, IntervalUnit::Week, "2024-01-01 00:00:00", "2024-06-01 00:00:00"), "2024-06-03 00:00:00");
        assert_eq!(next(60, IntervalUnit::Minute, "2024-03-31 01:30:00", "2024-03-31 01:30:01"), "2024-03-31 03:30:00");
    }

    #[test]
    fn intervals_are_counted_and_written() {
        for (text, unit, count) in [
            ("3", IntervalUnit::Week, 21),
            ("3", IntervalUnit::Quarter, 9),
            ("3", IntervalUnit::Year, 3),
            ("'2-2'", IntervalUnit::YearMonth, 26),
            ("'1 2'", IntervalUnit::DayHour, 26),
            ("'1:30'", IntervalUnit::HourMinute, 90),
            ("'1:2'", IntervalUnit::MinuteSecond, 62),
            ("'1 2:3'", IntervalUnit::DayMinute, 1563),
            ("'1:2:3'", IntervalUnit::HourSecond, 3723),
            ("'1 2:3:4'", IntervalUnit::DaySecond, 93_784),
        ] {
            let interval = Interval::parse(text.trim_matches('\''), unit).unwrap();
            assert_eq!(count_of(&interval, unit), u64::from(count), "{text} {unit:?}");
            assert_eq!(interval_text(count, unit), format!("{text} {}", unit.name()));
        }
    }
}
