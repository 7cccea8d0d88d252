//! `INTERVAL amount unit`.

use super::MICROS;

/// The unit words of INTERVAL, EXTRACT and TIMESTAMPDIFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

/// An amount of calendar time; `negative` applies to all fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    pub negative: bool,
    pub years: u64,
    pub months: u64,
    pub days: u64,
    pub hours: u64,
    pub minutes: u64,
    pub seconds: u64,
    pub micros: u64,
}

const NAMES: [(&str, IntervalUnit); 20] = {
    use IntervalUnit::*;
    [
        ("MICROSECOND", Microsecond),
        ("SECOND", Second),
        ("MINUTE", Minute),
        ("HOUR", Hour),
        ("DAY", Day),
        ("WEEK", Week),
        ("MONTH", Month),
        ("QUARTER", Quarter),
        ("YEAR", Year),
        ("SECOND_MICROSECOND", SecondMicrosecond),
        ("MINUTE_MICROSECOND", MinuteMicrosecond),
        ("MINUTE_SECOND", MinuteSecond),
        ("HOUR_MICROSECOND", HourMicrosecond),
        ("HOUR_SECOND", HourSecond),
        ("HOUR_MINUTE", HourMinute),
        ("DAY_MICROSECOND", DayMicrosecond),
        ("DAY_SECOND", DaySecond),
        ("DAY_MINUTE", DayMinute),
        ("DAY_HOUR", DayHour),
        ("YEAR_MONTH", YearMonth),
    ]
};

impl IntervalUnit {
    /// By its SQL word, any case.
    pub fn by_name(name: &str) -> Option<IntervalUnit> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, unit)| *unit)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// True if adding it to a DATE gives a DATETIME.
    pub fn has_time(self) -> bool {
        use IntervalUnit::*;
        !matches!(self, Day | Week | Month | Quarter | Year | YearMonth)
    }

    /// True if adding it can give fractional seconds.
    pub fn has_micros(self) -> bool {
        use IntervalUnit::*;
        matches!(self, Microsecond | SecondMicrosecond | MinuteMicrosecond | HourMicrosecond | DayMicrosecond)
    }

    /// How many numbers its text has; 1 for the simple units.
    fn parts(self) -> usize {
        use IntervalUnit::*;
        match self {
            SecondMicrosecond | MinuteSecond | HourMinute | DayHour | YearMonth => 2,
            MinuteMicrosecond | HourSecond | DayMinute => 3,
            HourMicrosecond | DaySecond => 4,
            DayMicrosecond => 5,
            _ => 1,
        }
    }
}

impl Interval {
    /// `n` of a simple unit, or the last part of a composite one.
    pub fn from_i64(n: i64, unit: IntervalUnit) -> Interval {
        if unit.parts() > 1 {
            return Interval::parse(&n.to_string(), unit).unwrap_or_default();
        }
        Interval::from_parts(n < 0, &[n.unsigned_abs()], unit)
    }

    /// `SECOND` amounts with a fraction, and every other simple unit, from microseconds of a second.
    pub fn from_micros(micros: i64) -> Interval {
        let magnitude = micros.unsigned_abs();
        Interval {
            negative: micros < 0,
            seconds: magnitude / MICROS as u64,
            micros: magnitude % MICROS as u64,
            ..Interval::default()
        }
    }

    /// From `INTERVAL 'text' unit`: any non-digits separate the numbers of a composite unit, missing leading numbers
    /// are 0, and microseconds are read as a fraction, even if they are the only number.  `None`: a number too large, or more of them than the unit has.
    pub fn parse(text: &str, unit: IntervalUnit) -> Option<Interval> {
        let text = text.trim_start();
        let negative = text.starts_with('-');
        let count = unit.parts();
        if count == 1 {
            if unit == IntervalUnit::Second {
                let value = crate::Decimal::parse_prefix(text.as_bytes()).value;
                let micros = value.rescale(6)?.unscaled();
                return i64::try_from(micros).ok().map(Interval::from_micros);
            }
            // A decimal amount of any other unit is rounded to an integer.
            let number = crate::Decimal::parse_prefix(text.as_bytes()).value.abs().to_u64()?;
            return Some(Interval::from_parts(negative, &[number], unit));
        }
        let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
        let separators = |text: &[u8]| text.iter().take_while(|b| !b.is_ascii_digit()).count();
        let mut numbers = Vec::with_capacity(count);
        let mut rest = &text.as_bytes()[separators(text.as_bytes())..];
        let mut last_digits = 0;
        while numbers.len() < count {
            last_digits = digits(rest);
            let mut number = 0u64;
            for digit in &rest[..last_digits] {
                number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            }
            numbers.push(number);
            rest = &rest[last_digits..];
            rest = &rest[separators(rest)..];
            if rest.is_empty() {
                break;
            }
        }
        if !rest.is_empty() {
            return None;
        }
        if unit.has_micros() && last_digits < 6 {
            *numbers.last_mut()? *= 10u64.pow(6 - last_digits as u32);
        }
        while numbers.len() < count {
            numbers.insert(0, 0);
        }
        Some(Interval::from_parts(negative, &numbers, unit))
    }

    fn from_parts(negative: bool, n: &[u64], unit: IntervalUnit) -> Interval {
        use IntervalUnit::*;
        let zero = Interval { negative, ..Interval::default() };
        match unit {
            Microsecond => Interval { micros: n[0], ..zero },
            Second => Interval { seconds: n[0], ..zero },
            Minute => Interval { minutes: n[0], ..zero },
            Hour => Interval { hours: n[0], ..zero },
            Day => Interval { days: n[0], ..zero },
            Week => Interval { days: n[0].saturating_mul(7), ..zero },
            Month => Interval { months: n[0], ..zero },
            Quarter => Interval { months: n[0].saturating_mul(3), ..zero },
            Year => Interval { years: n[0], ..zero },
            SecondMicrosecond => Interval { seconds: n[0], micros: n[1], ..zero },
            MinuteMicrosecond => Interval { minutes: n[0], seconds: n[1], micros: n[2], ..zero },
            MinuteSecond => Interval { minutes: n[0], seconds: n[1], ..zero },
            HourMicrosecond => Interval { hours: n[0], minutes: n[1], seconds: n[2], micros: n[3], ..zero },
            HourSecond => Interval { hours: n[0], minutes: n[1], seconds: n[2], ..zero },
            HourMinute => Interval { hours: n[0], minutes: n[1], ..zero },
            DayMicrosecond => Interval { days: n[0], hours: n[1], minutes: n[2], seconds: n[3], micros: n[4], ..zero },
            DaySecond => Interval { days: n[0], hours: n[1], minutes: n[2], seconds: n[3], ..zero },
            DayMinute => Interval { days: n[0], hours: n[1], minutes: n[2], ..zero },
            DayHour => Interval { days: n[0], hours: n[1], ..zero },
            YearMonth => Interval { years: n[0], months: n[1], ..zero },
        }
    }

    /// The opposite interval, for DATE_SUB.
    pub fn negate(self) -> Interval {
        Interval { negative: !self.negative, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Date, DateTime};

    #[test]
    fn adds_like_mysql() {
        let at = |y, m, d| DateTime::from(Date::new(y, m, d));
        let add = |start: DateTime, text, unit| start.add(&Interval::parse(text, unit).unwrap()).map(|d| d.to_string());
        assert_eq!(add(at(2018, 1, 31), "1", IntervalUnit::Month).unwrap(), "2018-02-28 00:00:00");
        assert_eq!(add(at(2020, 2, 29), "1", IntervalUnit::Year).unwrap(), "2021-02-28 00:00:00");
        assert_eq!(add(at(2020, 2, 29), "-1", IntervalUnit::Day).unwrap(), "2020-02-28 00:00:00");
        assert_eq!(add(at(2018, 12, 31), "1 1:1:1", IntervalUnit::DaySecond).unwrap(), "2019-01-01 01:01:01");
        assert_eq!(add(at(2018, 12, 31), "1.5", IntervalUnit::Second).unwrap(), "2018-12-31 00:00:01.500000");
        assert_eq!(add(at(2018, 12, 31), "1.5", IntervalUnit::SecondMicrosecond).unwrap(), "2018-12-31 00:00:01.500000");
        assert_eq!(add(at(2018, 12, 31), "1", IntervalUnit::DayMicrosecond).unwrap(), "2018-12-31 00:00:00.100000");
        assert_eq!(Interval::parse("1:2:3", IntervalUnit::HourMinute), None);
        assert_eq!(add(at(9999, 12, 31), "1", IntervalUnit::Day), None);
        assert_eq!(add(at(1, 1, 1), "-1", IntervalUnit::Second).unwrap(), "0000-00-00 23:59:59");
        assert_eq!(add(at(1, 1, 1), "-367", IntervalUnit::Day), None);
        assert_eq!(add(at(2018, 5, 1), "1-2", IntervalUnit::YearMonth).unwrap(), "2019-07-01 00:00:00");
        assert_eq!(add(at(2018, 5, 1), "1", IntervalUnit::Quarter).unwrap(), "2018-08-01 00:00:00");
    }
}
