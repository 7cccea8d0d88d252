//! DATE and the calendar.

use std::fmt;

use super::push2;

/// DATE.  Zero years, months and days are representable, as MySQL stores them outside of NO_ZERO_IN_DATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

/// `to_days` of 9999-12-31.
pub(crate) const MAX_DAYS: i64 = 3_652_424;

pub(crate) fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400) && year != 0)
}

/// Days of a month 1-12; 31 for a zero month.
pub(crate) fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u8::from(is_leap(year.into())),
        _ => 31,
    }
}

impl Date {
    pub fn new(year: u16, month: u8, day: u8) -> Date {
        Date { year, month, day }
    }

    /// 0000-00-00.
    pub fn is_zero(&self) -> bool {
        *self == Date::default()
    }

    /// True if the month or the day is zero.
    pub fn has_zero_part(&self) -> bool {
        self.month == 0 || self.day == 0
    }

    /// True for an existing day of the calendar.
    pub fn is_valid(&self) -> bool {
        self.year <= 9999 && (1..=12).contains(&self.month) && (1..=days_in_month(self.year, self.month)).contains(&self.day)
    }

    /// Day number as TO_DAYS() counts, from year 0; zero parts count as MySQL's calc_daynr counts them.
    pub fn to_days(&self) -> i64 {
        if self.year == 0 && self.month == 0 {
            return 0;
        }
        let (mut year, month) = (i64::from(self.year), i64::from(self.month));
        let mut days = 365 * year + 31 * (month - 1) + i64::from(self.day);
        if month <= 2 {
            year -= 1;
        } else {
            days -= (month * 4 + 23) / 10;
        }
        // Cut towards zero: the first two months of year 0 count from 1.
        days + year / 4 - ((year / 100 + 1) * 3) / 4
    }

    /// The inverse of [`to_days`](Date::to_days); `None` before 0000-01-01 and after 9999-12-31.
    pub fn from_days(days: i64) -> Option<Date> {
        if !(1..=MAX_DAYS).contains(&days) {
            return None;
        }
        let mut year = (days * 100 / 36525) as u16;
        while Date::new(year + 1, 1, 1).to_days() <= days {
            year += 1;
        }
        while year > 0 && Date::new(year, 1, 1).to_days() > days {
            year -= 1;
        }
        let mut day = days - Date::new(year, 1, 1).to_days();
        let mut month = 1;
        while month < 12 && day >= i64::from(days_in_month(year, month)) {
            day -= i64::from(days_in_month(year, month));
            month += 1;
        }
        Some(Date::new(year, month, day as u8 + 1))
    }

    /// 0 is Monday.
    pub fn weekday(&self) -> u8 {
        (self.to_days() + 5).rem_euclid(7) as u8
    }

    /// 1 to 366.
    pub fn day_of_year(&self) -> u16 {
        (self.to_days() - Date::new(self.year, 1, 1).to_days() + 1) as u16
    }

    /// The last day of this month.
    pub fn last_day(&self) -> Date {
        Date { day: days_in_month(self.year, self.month), ..*self }
    }

    /// (year, week) for WEEK()'s `mode` 0 to 7, after MySQL's calc_week, whose unsigned numbers go round before year 0.
    pub fn week(&self, mode: u8) -> (u32, u32) {
        let monday_first = mode & 1 != 0;
        let mut week_year = mode & 2 != 0;
        let first_weekday = (mode & 4 != 0) ^ !monday_first;
        let days = self.to_days();
        let mut first = Date::new(self.year, 1, 1).to_days();
        let mut weekday = (first + 5 + i64::from(!monday_first)) % 7;
        let mut year = u32::from(self.year);
        let starts_late = |weekday: i64| if first_weekday { weekday != 0 } else { weekday >= 4 };
        let days_in_year = |year: u32| 365 + i64::from(is_leap(year));
        if self.month == 1 && i64::from(self.day) <= 7 - weekday {
            if !week_year && starts_late(weekday) {
                return (year, 0);
            }
            week_year = true;
            year = year.wrapping_sub(1);
            first -= days_in_year(year);
            weekday = (weekday + 53 * 7 - days_in_year(year)) % 7;
        }
        let since = days - if starts_late(weekday) { first + 7 - weekday } else { first - weekday };
        let since = since as u32;
        if week_year && since >= 52 * 7 {
            weekday = (weekday + days_in_year(year)) % 7;
            if !starts_late(weekday) {
                return (year.wrapping_add(1), 1);
            }
        }
        (year, since / 7 + 1)
    }

    /// YYYYMMDD.
    pub fn to_number(&self) -> i64 {
        i64::from(self.year) * 10_000 + i64::from(self.month) * 100 + i64::from(self.day)
    }

    pub(crate) fn push(&self, text: &mut String) {
        push2(text, (self.year / 100) as u8);
        push2(text, (self.year % 100) as u8);
        text.push('-');
        push2(text, self.month);
        text.push('-');
        push2(text, self.day);
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(10);
        self.push(&mut text);
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_numbers_round_trip() {
        assert_eq!(Date::new(1970, 1, 1).to_days(), 719_528);
        assert_eq!(Date::new(9999, 12, 31).to_days(), MAX_DAYS);
        assert_eq!(Date::new(2000, 1, 1).weekday(), 5);
        // Year 0 has no leap day.
        assert_eq!((Date::new(0, 1, 1).to_days(), Date::new(0, 12, 31).to_days(), Date::new(1, 1, 1).to_days()), (1, 365, 366));
        for days in (1..=MAX_DAYS).step_by(97) {
            let date = Date::from_days(days).unwrap();
            assert!(date.is_valid(), "{date}");
            assert_eq!(date.to_days(), days);
        }
    }

    #[test]
    fn weeks() {
        // Recorded from MySQL 8.0.12.
        assert_eq!(Date::new(2008, 2, 20).week(0), (2008, 7));
        assert_eq!(Date::new(2008, 2, 20).week(1), (2008, 8));
        assert_eq!(Date::new(2008, 12, 31).week(1), (2008, 53));
        assert_eq!(Date::new(2000, 1, 1).week(0), (2000, 0));
        assert_eq!(Date::new(2000, 1, 1).week(2), (1999, 52));
        assert_eq!(Date::new(2007, 12, 31).week(3), (2008, 1));
        assert_eq!(Date::new(0, 1, 1).week(3), (u32::MAX, 52));
        assert_eq!(Date::default().week(0), (0, 613_566_757));
    }
}
