//! DATETIME and TIMESTAMP values.

use std::fmt;

use super::date::{MAX_DAYS, days_in_month};
use super::{DAY_MICROS, Date, Interval, MICROS, Time, push_fraction, push2, round_micros};

/// `to_days` of 1970-01-01.
const EPOCH_DAYS: i64 = 719_528;

/// `to_days` of the day before 0001-01-01.
const DAYS_OF_YEAR_0: i128 = 365;

/// A date with a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DateTime {
    pub date: Date,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub micros: u32,
}

impl From<Date> for DateTime {
    fn from(date: Date) -> DateTime {
        DateTime { date, ..DateTime::default() }
    }
}

impl DateTime {
    pub fn new(date: Date, hour: u8, minute: u8, second: u8, micros: u32) -> DateTime {
        DateTime { date, hour, minute, second, micros }
    }

    /// 0000-00-00 00:00:00.
    pub fn is_zero(&self) -> bool {
        *self == DateTime::default()
    }

    /// The time of day.
    pub fn time(&self) -> Time {
        Time { micros: self.day_micros() }
    }

    /// Microseconds since midnight.
    pub(crate) fn day_micros(&self) -> i64 {
        (i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second)) * MICROS + i64::from(self.micros)
    }

    /// `date` and a time of day in microseconds below one day.
    pub(crate) fn at(date: Date, day_micros: i64) -> DateTime {
        let seconds = day_micros / MICROS;
        DateTime {
            date,
            hour: (seconds / 3600) as u8,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            micros: (day_micros % MICROS) as u32,
        }
    }

    /// The date plus a (possibly negative or many days long) time; `None` outside of years 0 to 9999.
    pub fn from_date_and_time(date: Date, time: Time) -> Option<DateTime> {
        DateTime::from_day_number_micros(date.to_days(), time.micros)
    }

    /// Day number `days` plus `micros`.
    fn from_day_number_micros(days: i64, micros: i64) -> Option<DateTime> {
        let days = days.checked_add(micros.div_euclid(DAY_MICROS))?;
        Some(DateTime::at(Date::from_days(days)?, micros.rem_euclid(DAY_MICROS)))
    }

    /// Rounded half up to `fsp` fractional digits; `None` if that leaves year 9999.
    pub fn round(&self, fsp: u8) -> Option<DateTime> {
        let micros = self.day_micros();
        let rounded = round_micros(micros, fsp);
        if rounded < DAY_MICROS {
            return Some(DateTime::at(self.date, rounded));
        }
        if self.date.has_zero_part() {
            return None;
        }
        DateTime::from_day_number_micros(self.date.to_days(), rounded)
    }

    /// Cut to `fsp` fractional digits.
    pub fn truncate(&self, fsp: u8) -> DateTime {
        let unit = 10u32.pow(6 - u32::from(fsp.min(6)));
        DateTime { micros: self.micros - self.micros % unit, ..*self }
    }

    /// DATE_ADD; `None` outside of years 0 to 9999.  Months first (clipping to the month's last day), then the rest.
    pub fn add(&self, interval: &Interval) -> Option<DateTime> {
        let sign: i128 = if interval.negative { -1 } else { 1 };
        let mut result = *self;
        let months = i128::from(interval.years) * 12 + i128::from(interval.months);
        if months != 0 {
            let month = i128::from(self.date.year) * 12 + i128::from(self.date.month) - 1 + sign * months;
            if !(0..120_000).contains(&month) {
                return None;
            }
            let (year, month) = ((month / 12) as u16, (month % 12) as u8 + 1);
            result.date = Date::new(year, month, self.date.day.min(days_in_month(year, month)));
        }
        if interval.days == 0 && interval.hours == 0 && interval.minutes == 0 && interval.seconds == 0 && interval.micros == 0 {
            return Some(result);
        }
        let seconds = i128::from(interval.days) * 86_400
            + i128::from(interval.hours) * 3600
            + i128::from(interval.minutes) * 60
            + i128::from(interval.seconds);
        let total = i128::from(result.day_micros()) + sign * (seconds * i128::from(MICROS) + i128::from(interval.micros));
        let days = i128::from(result.date.to_days()) + total.div_euclid(i128::from(DAY_MICROS));
        if !(0..=i128::from(MAX_DAYS)).contains(&days) {
            return None;
        }
        let micros = total.rem_euclid(i128::from(DAY_MICROS)) as i64;
        // Year 0 has no days to count: what falls into it is the zero date.
        if days <= DAYS_OF_YEAR_0 {
            return Some(DateTime::at(Date::default(), micros));
        }
        DateTime::from_day_number_micros(days as i64, micros)
    }

    /// YYYYMMDDhhmmss.
    pub fn to_number(&self) -> i64 {
        self.date.to_number() * 1_000_000 + self.time().to_number()
    }

    /// Microseconds since 1970-01-01 00:00:00, the fields taken as UTC.
    pub fn to_micros(&self) -> i64 {
        (self.date.to_days() - EPOCH_DAYS) * DAY_MICROS + self.day_micros()
    }

    /// The inverse of [`to_micros`](DateTime::to_micros); `None` outside of years 0 to 9999.
    pub fn from_micros(micros: i64) -> Option<DateTime> {
        DateTime::from_day_number_micros(EPOCH_DAYS, micros)
    }

    /// An order-preserving number that keeps zero parts apart: `((year*13 + month)*32 + day) << 37 | microseconds of day`.
    pub fn to_packed(&self) -> u64 {
        let date = (u64::from(self.date.year) * 13 + u64::from(self.date.month)) * 32 + u64::from(self.date.day);
        date << 37 | self.day_micros() as u64
    }

    /// The inverse of [`to_packed`](DateTime::to_packed).
    pub fn from_packed(packed: u64) -> DateTime {
        let date = packed >> 37;
        let months = date / 32;
        DateTime::at(Date::new((months / 13) as u16, (months % 13) as u8, (date % 32) as u8), (packed & ((1 << 37) - 1)) as i64)
    }

    /// `YYYY-MM-DD hh:mm:ss` with `fsp` fractional digits.
    pub fn format(&self, fsp: u8) -> String {
        let mut text = String::with_capacity(26);
        self.date.push(&mut text);
        text.push(' ');
        push2(&mut text, self.hour);
        text.push(':');
        push2(&mut text, self.minute);
        text.push(':');
        push2(&mut text, self.second);
        push_fraction(&mut text, self.micros, fsp);
        text
    }
}

/// With six fractional digits if there are any.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(if self.micros == 0 { 0 } else { 6 }))
    }
}
