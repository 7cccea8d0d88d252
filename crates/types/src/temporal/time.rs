//! TIME values.

use std::fmt;

use super::{MICROS, push_fraction, push2, round_micros};

/// TIME: signed microseconds within ±838:59:59.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    pub micros: i64,
}

impl Time {
    /// 838:59:59.
    pub const MAX: Time = Time { micros: (838 * 3600 + 59 * 60 + 59) * MICROS };
    /// -838:59:59.
    pub const MIN: Time = Time { micros: -Time::MAX.micros };

    /// From fields; not clamped.
    pub fn from_hms(negative: bool, hours: u32, minutes: u32, seconds: u32, micros: u32) -> Time {
        let total = (i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds)) * MICROS + i64::from(micros);
        Time { micros: if negative { -total } else { total } }
    }

    pub fn is_negative(&self) -> bool {
        self.micros < 0
    }

    pub fn hours(&self) -> u32 {
        (self.micros.unsigned_abs() / (3600 * MICROS as u64)) as u32
    }

    pub fn minutes(&self) -> u32 {
        (self.micros.unsigned_abs() / (60 * MICROS as u64) % 60) as u32
    }

    pub fn seconds(&self) -> u32 {
        (self.micros.unsigned_abs() / MICROS as u64 % 60) as u32
    }

    /// Microseconds of the second, as a magnitude.
    pub fn subsec_micros(&self) -> u32 {
        (self.micros.unsigned_abs() % MICROS as u64) as u32
    }

    /// The nearest value of TIME's range.
    pub fn clamped(&self) -> Time {
        (*self).clamp(Time::MIN, Time::MAX)
    }

    /// Rounded half away from zero to `fsp` fractional digits; not clamped.
    pub fn round(&self, fsp: u8) -> Time {
        let rounded = round_micros(self.micros.abs(), fsp);
        Time { micros: if self.micros < 0 { -rounded } else { rounded } }
    }

    /// Cut towards zero to `fsp` fractional digits.
    pub fn truncate(&self, fsp: u8) -> Time {
        let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
        Time { micros: self.micros / unit * unit }
    }

    /// Signed hhmmss.
    pub fn to_number(&self) -> i64 {
        let number = i64::from(self.hours()) * 10_000 + i64::from(self.minutes()) * 100 + i64::from(self.seconds());
        if self.micros < 0 { -number } else { number }
    }

    /// `[-]hh:mm:ss` with `fsp` fractional digits; three digits of hours from 100.
    pub fn format(&self, fsp: u8) -> String {
        let mut text = String::with_capacity(17);
        if self.micros < 0 {
            text.push('-');
        }
        let hours = self.hours();
        if hours >= 100 {
            text.push_str(&hours.to_string());
        } else {
            push2(&mut text, hours as u8);
        }
        text.push(':');
        push2(&mut text, self.minutes() as u8);
        text.push(':');
        push2(&mut text, self.seconds() as u8);
        push_fraction(&mut text, self.subsec_micros(), fsp);
        text
    }
}

/// With six fractional digits if there are any.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(if self.subsec_micros() == 0 { 0 } else { 6 }))
    }
}
