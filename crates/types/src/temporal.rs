//! Dates and times.
use std::fmt;

/// DATE; a zero month or day is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Date { pub year: u16, pub month: u8, pub day: u8 }
/// DATETIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DateTime { pub date: Date, pub hour: u8, pub minute: u8, pub second: u8, pub micros: u32 }
/// TIME: signed microseconds within ±838:59:59.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time { pub micros: i64 }
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalUnit { Microsecond, Second, Minute, Hour, Day, Week, Month, Quarter, Year, SecondMicrosecond, MinuteMicrosecond, MinuteSecond, HourMicrosecond, HourSecond, HourMinute, DayMicrosecond, DaySecond, DayMinute, DayHour, YearMonth }
/// An amount of calendar time; all fields share `negative`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval { pub negative: bool, pub years: u64, pub months: u64, pub days: u64, pub hours: u64, pub minutes: u64, pub seconds: u64, pub micros: u64 }
/// A session time zone.
#[derive(Clone, Debug)]
pub struct TimeZone { name: crate::Str, zone: jiff::tz::TimeZone }

impl Date {
    pub fn new(year: u16, month: u8, day: u8) -> Date { Date { year, month, day } }
    pub fn is_zero(&self) -> bool { *self == Date::default() }
    /// True for an existing day of the calendar.
    pub fn is_valid(&self) -> bool { unimplemented!() }
    /// MySQL's TO_DAYS; zero parts count as MySQL counts them.
    pub fn to_days(&self) -> i64 { unimplemented!() }
    /// `None` outside of 0000-01-01 .. 9999-12-31.
    pub fn from_days(_days: i64) -> Option<Date> { unimplemented!() }
    /// 0 = Monday.
    pub fn weekday(&self) -> u8 { unimplemented!() }
    pub fn day_of_year(&self) -> u16 { unimplemented!() }
    /// MySQL's calc_week: (year, week) for WEEK()'s mode 0-7.
    pub fn week(&self, _mode: u8) -> (u16, u8) { unimplemented!() }
    pub fn to_number(&self) -> i64 { unimplemented!() }
}
impl DateTime {
    pub fn new(date: Date, hour: u8, minute: u8, second: u8, micros: u32) -> DateTime { DateTime { date, hour, minute, second, micros } }
    pub fn is_zero(&self) -> bool { *self == DateTime::default() }
    pub fn time(&self) -> Time { unimplemented!() }
    pub fn round(&self, _fsp: u8) -> Option<DateTime> { unimplemented!() }
    pub fn truncate(&self, _fsp: u8) -> DateTime { unimplemented!() }
    /// `None` past year 9999 or before year 0.
    pub fn add(&self, _interval: &Interval) -> Option<DateTime> { unimplemented!() }
    /// YYYYMMDDhhmmss.
    pub fn to_number(&self) -> i64 { unimplemented!() }
    /// Microseconds since 1970-01-01 00:00:00, the fields taken as UTC.
    pub fn to_micros(&self) -> i64 { unimplemented!() }
    pub fn from_micros(_micros: i64) -> Option<DateTime> { unimplemented!() }
    /// Text with `fsp` fractional digits.
    pub fn format(&self, _fsp: u8) -> String { unimplemented!() }
}
impl Time {
    pub const MAX: Time = Time { micros: (838 * 3600 + 59 * 60 + 59) * 1_000_000 };
    pub fn from_hms(_negative: bool, _hours: u32, _minutes: u32, _seconds: u32, _micros: u32) -> Time { unimplemented!() }
    pub fn is_negative(&self) -> bool { self.micros < 0 }
    pub fn hours(&self) -> u32 { unimplemented!() }
    pub fn minutes(&self) -> u32 { unimplemented!() }
    pub fn seconds(&self) -> u32 { unimplemented!() }
    pub fn subsec_micros(&self) -> u32 { unimplemented!() }
    pub fn round(&self, _fsp: u8) -> Time { unimplemented!() }
    pub fn truncate(&self, _fsp: u8) -> Time { unimplemented!() }
    pub fn to_number(&self) -> i64 { unimplemented!() }
    pub fn format(&self, _fsp: u8) -> String { unimplemented!() }
}
impl Interval {
    /// From MySQL's `INTERVAL 'text' unit` text.
    pub fn parse(_text: &str, _unit: IntervalUnit) -> Option<Interval> { unimplemented!() }
    pub fn from_i64(_n: i64, _unit: IntervalUnit) -> Interval { unimplemented!() }
    pub fn negate(self) -> Interval { Interval { negative: !self.negative, ..self } }
}
impl IntervalUnit {
    pub fn by_name(_name: &str) -> Option<IntervalUnit> { unimplemented!() }
}
impl TimeZone {
    /// `SYSTEM`, `+hh:mm`, or a zone of the tz database.
    pub fn parse(_name: &str) -> Option<TimeZone> { unimplemented!() }
    pub fn utc() -> TimeZone { unimplemented!() }
    pub fn system() -> TimeZone { unimplemented!() }
    pub fn name(&self) -> &str { &self.name }
    /// Session-zone wall clock to UTC; `None` if it does not exist there (a DST gap) or is outside of TIMESTAMP's range.
    pub fn to_utc(&self, _local: &DateTime) -> Option<DateTime> { let _ = &self.zone; unimplemented!() }
    pub fn from_utc(&self, _utc: &DateTime) -> DateTime { unimplemented!() }
    /// Seconds east of UTC at that UTC moment.
    pub fn offset_seconds(&self, _utc: &DateTime) -> i32 { unimplemented!() }
}
impl fmt::Display for Date { fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result { unimplemented!() } }
impl fmt::Display for DateTime { fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result { unimplemented!() } }
impl fmt::Display for Time { fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result { unimplemented!() } }
