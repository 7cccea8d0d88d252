//! Session time zones and TIMESTAMP's conversion to UTC.

use jiff::civil;
use jiff::tz::{self, AmbiguousOffset, Offset};

use super::{Date, DateTime, MICROS};
use crate::Str;

/// A value of `@@time_zone`: `SYSTEM`, an offset, or a zone of the tz database.
#[derive(Clone, Debug)]
pub struct TimeZone {
    name: Str,
    zone: tz::TimeZone,
}

/// Where a wall-clock time of a zone lies in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UtcMoment {
    /// The moment; the earlier one if the wall clock showed it twice.
    At(DateTime),
    /// The wall clock skipped it; the moment after the gap.
    Gap(DateTime),
    /// Outside of TIMESTAMP's range, 1970-01-01 00:00:01 to 2038-01-19 03:14:07 UTC.
    OutOfRange,
}

/// The largest TIMESTAMP, 2038-01-19 03:14:07.999999 UTC, in microseconds.
const MAX_TIMESTAMP: i64 = (i32::MAX as i64) * MICROS + 999_999;

impl TimeZone {
    /// `SYSTEM`, `±h:mm` from -13:59 to +14:00, or a name of the tz database; `None` is error 1298.
    pub fn parse(name: &str) -> Option<TimeZone> {
        if name.eq_ignore_ascii_case("SYSTEM") {
            return Some(TimeZone::system());
        }
        if let Some(seconds) = parse_offset(name) {
            let zone = tz::TimeZone::fixed(Offset::from_seconds(seconds).ok()?);
            let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
            let name = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
            return Some(TimeZone { name: name.into(), zone });
        }
        if name.starts_with(['+', '-']) {
            return None;
        }
        Some(TimeZone { name: name.into(), zone: tz::TimeZone::get(name).ok()? })
    }

    /// The names of the tz database, ascending.
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = tz::db().available().map(|name| name.to_string()).collect();
        names.sort_unstable();
        names
    }

    pub fn utc() -> TimeZone {
        TimeZone { name: "UTC".into(), zone: tz::TimeZone::UTC }
    }

    /// The machine's time zone, named `SYSTEM`.
    pub fn system() -> TimeZone {
        TimeZone { name: "SYSTEM".into(), zone: tz::TimeZone::system() }
    }

    /// As `@@time_zone` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `@@system_time_zone`'s abbreviation at a moment, `UTC` or `CEST`.
    pub fn abbreviation(&self, utc: &DateTime) -> String {
        jiff_timestamp(utc).map_or_else(String::new, |at| self.zone.to_offset_info(at).abbreviation().to_string())
    }

    /// Wall clock to UTC with TIMESTAMP's range; `None` in a gap and out of range.
    pub fn to_utc(&self, local: &DateTime) -> Option<DateTime> {
        match self.utc_moment(local) {
            UtcMoment::At(utc) => Some(utc),
            UtcMoment::Gap(_) | UtcMoment::OutOfRange => None,
        }
    }

    /// Wall clock to UTC with TIMESTAMP's range.
    pub fn utc_moment(&self, local: &DateTime) -> UtcMoment {
        let date = local.date;
        if !date.is_valid() {
            return UtcMoment::OutOfRange;
        }
        let wall = civil::date(date.year as i16, date.month as i8, date.day as i8).at(
            local.hour as i8,
            local.minute as i8,
            local.second as i8,
            local.micros as i32 * 1000,
        );
        let at = |offset: Offset| -> Option<DateTime> {
            let micros = local.to_micros() - i64::from(offset.seconds()) * MICROS;
            (MICROS..=MAX_TIMESTAMP).contains(&micros).then(|| DateTime::from_micros(micros)).flatten()
        };
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => at(offset).map_or(UtcMoment::OutOfRange, UtcMoment::At),
            AmbiguousOffset::Fold { before, .. } => at(before).map_or(UtcMoment::OutOfRange, UtcMoment::At),
            // The clock jumps from `before` to `after` at the gap's start: the first moment after it.
            AmbiguousOffset::Gap { before, .. } => match at(before) {
                Some(inside) => UtcMoment::Gap(self.gap_end(&inside)),
                None => UtcMoment::OutOfRange,
            },
        }
    }

    /// How many microseconds later the wall clock shows this time again; 0 for all but an hour a year.
    pub fn shown_again(&self, local: &DateTime) -> i64 {
        let date = local.date;
        if !date.is_valid() {
            return 0;
        }
        let wall = civil::date(date.year as i16, date.month as i8, date.day as i8).at(local.hour as i8, local.minute as i8, local.second as i8, 0);
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Fold { before, after } => i64::from(before.seconds() - after.seconds()) * MICROS,
            _ => 0,
        }
    }

    /// The transition that made the gap: the last offset change at or before `inside`.
    fn gap_end(&self, inside: &DateTime) -> DateTime {
        jiff_timestamp(inside)
            .and_then(|at| self.zone.preceding(at).next())
            .and_then(|transition| DateTime::from_micros(transition.timestamp().as_microsecond()))
            .unwrap_or(*inside)
    }

    /// UTC to this zone's wall clock; the zero date stays the zero date.
    pub fn from_utc(&self, utc: &DateTime) -> DateTime {
        if utc.date.has_zero_part() {
            return *utc;
        }
        DateTime::from_micros(utc.to_micros() + i64::from(self.offset_seconds(utc)) * MICROS).unwrap_or(*utc)
    }

    /// Seconds east of UTC at a UTC moment.
    pub fn offset_seconds(&self, utc: &DateTime) -> i32 {
        jiff_timestamp(utc).map_or(0, |at| self.zone.to_offset(at).seconds())
    }

    /// Wall clock of this zone to wall clock of `other`, for CONVERT_TZ; `None` outside of TIMESTAMP's range, where
    /// CONVERT_TZ does not convert.
    pub fn convert(&self, local: &DateTime, other: &TimeZone) -> Option<DateTime> {
        match self.utc_moment(local) {
            UtcMoment::At(utc) | UtcMoment::Gap(utc) => Some(other.from_utc(&utc)),
            UtcMoment::OutOfRange => None,
        }
    }
}

/// Two zones are equal if `@@time_zone` shows them equal.
impl PartialEq for TimeZone {
    fn eq(&self, other: &TimeZone) -> bool {
        self.name == other.name
    }
}

fn jiff_timestamp(utc: &DateTime) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_microsecond(utc.to_micros()).ok()
}

/// Seconds of `[+-]h:mm` or `[+-]hh:mm`.
pub(super) fn parse_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str| {
        ((1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<i32>().ok()).flatten()
    };
    let minutes = number(hours)? * 60 + number(minutes).filter(|minutes| *minutes < 60 && rest.len() - hours.len() == 3)?;
    let seconds = sign * minutes * 60;
    (-(13 * 60 + 59) * 60..=14 * 3600).contains(&seconds).then_some(seconds)
}

/// Today and now in a zone, for callers that have a clock.
impl DateTime {
    /// The zone's wall clock at a UTC moment given in microseconds since 1970.
    pub fn now_in(zone: &TimeZone, utc_micros: i64) -> DateTime {
        let utc = DateTime::from_micros(utc_micros).unwrap_or(DateTime::from(Date::new(1970, 1, 1)));
        zone.from_utc(&utc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(y: u16, m: u8, d: u8, h: u8, mi: u8) -> DateTime {
        DateTime::new(Date::new(y, m, d), h, mi, 0, 0)
    }

    #[test]
    fn offsets_and_names() {
        let india = TimeZone::parse("+5:30").unwrap();
        assert_eq!(india.name(), "+05:30");
        assert_eq!(india.to_utc(&at(2020, 1, 1, 5, 30)), Some(at(2020, 1, 1, 0, 0)));
        assert_eq!(india.from_utc(&at(2020, 1, 1, 0, 0)), at(2020, 1, 1, 5, 30));
        assert!(TimeZone::parse("+14:01").is_none() && TimeZone::parse("-14:00").is_none() && TimeZone::parse("Mars/X").is_none());
        assert!(TimeZone::parse("SYSTEM").is_some());
    }

    #[test]
    fn daylight_saving() {
        let berlin = TimeZone::parse("Europe/Berlin").unwrap();
        assert_eq!(berlin.to_utc(&at(2020, 7, 1, 12, 0)), Some(at(2020, 7, 1, 10, 0)));
        assert_eq!(berlin.utc_moment(&at(2020, 3, 29, 2, 30)), UtcMoment::Gap(at(2020, 3, 29, 1, 0)));
        assert_eq!(berlin.utc_moment(&at(2020, 10, 25, 2, 30)), UtcMoment::At(at(2020, 10, 25, 0, 30)));
        assert_eq!((berlin.shown_again(&at(2020, 10, 25, 2, 30)), berlin.shown_again(&at(2020, 10, 25, 3, 0))), (3600 * MICROS, 0));
        assert_eq!(berlin.utc_moment(&at(2038, 1, 20, 0, 0)), UtcMoment::OutOfRange);
        assert_eq!(TimeZone::utc().utc_moment(&at(1970, 1, 1, 0, 0)), UtcMoment::OutOfRange);
    }
}
