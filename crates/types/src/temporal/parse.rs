//! The lenient readings of dates and times: text and numbers, after MySQL's str_to_datetime, str_to_time,
//! number_to_datetime and number_to_time.

use super::{Date, DateTime, Time, date::days_in_month, zone::parse_offset};

/// What sql_mode and the context ask of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DateRules {
    /// Zero months and days are refused even outside of NO_ZERO_IN_DATE.
    pub no_zero_parts: bool,
    pub no_zero_date: bool,
    pub allow_invalid_dates: bool,
}

/// Why a text is not, or not entirely, a date or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Not a value, or something follows it.
    Truncated,
    /// A field out of its range.
    OutOfRange,
    /// 0000-00-00 under NO_ZERO_DATE.
    ZeroDate,
    /// A zero month or day where none may be.
    ZeroInDate,
}

/// A date read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedDateTime {
    /// Not rounded: `nanos` tells whether microseconds round up.
    pub value: DateTime,
    /// No time part was given.
    pub date_only: bool,
    /// Fractional digits given, at most 6.
    pub fraction_digits: u8,
    /// A seventh fractional digit of 5 or more was given.
    pub rounds_up: bool,
    /// Seconds of a trailing `+hh:mm`.
    pub offset_seconds: Option<i32>,
    /// Garbage follows.
    pub trouble: Option<Trouble>,
}

/// A time read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedTime {
    /// Within TIME's range.
    pub value: Time,
    pub fraction_digits: u8,
    pub rounds_up: bool,
    /// It was a DATETIME, whose date is lost.
    pub had_date: bool,
    /// Garbage follows, or the value was out of range and is clamped.
    pub trouble: Option<Trouble>,
}

impl ParsedDateTime {
    /// The value rounded (or cut, under TIME_TRUNCATE_FRACTIONAL) to `fsp` digits; `None` past year 9999.
    pub fn rounded(&self, fsp: u8, truncate: bool) -> Option<DateTime> {
        if truncate {
            return Some(self.value.truncate(fsp));
        }
        // The seventh digit only decides at six: below that, microseconds already hold what rounding needs.
        if self.rounds_up && fsp >= 6 {
            let mut value = self.value;
            value.micros += 1;
            if value.micros < 1_000_000 {
                return Some(value);
            }
            value.micros = 999_999;
            return value.round(5);
        }
        self.value.round(fsp)
    }
}

impl ParsedTime {
    /// The value rounded (or cut) to `fsp` digits, clamped to TIME's range.
    pub fn rounded(&self, fsp: u8, truncate: bool) -> Time {
        if truncate {
            return self.value.truncate(fsp);
        }
        let mut value = self.value;
        if self.rounds_up && fsp >= 6 {
            value.micros += if value.micros < 0 { -1 } else { 1 };
        }
        value.round(fsp).clamped()
    }
}

fn check_date(date: Date, not_zero: bool, rules: DateRules) -> Result<(), Trouble> {
    if not_zero {
        if rules.no_zero_parts && date.has_zero_part() {
            return Err(Trouble::ZeroInDate);
        }
        if !rules.allow_invalid_dates && date.month > 0 && date.day > days_in_month(date.year, date.month) {
            return Err(Trouble::OutOfRange);
        }
        Ok(())
    } else if rules.no_zero_date {
        Err(Trouble::ZeroDate)
    } else {
        Ok(())
    }
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || (9..=13).contains(&byte)
}

/// Reads a DATE or DATETIME.  Fields may be separated by any punctuation, or not at all (`YYYYMMDD`, `YYMMDDhhmmss`).
pub fn parse_datetime(text: &str, rules: DateRules) -> Result<ParsedDateTime, Trouble> {
    read_datetime(text, rules, &mut false)
}

/// `is_certain` becomes true if the text is a DATE or DATETIME by its form, good or bad, and no TIME: its fields are not separated, or by a space too.
fn read_datetime(text: &str, rules: DateRules, is_certain: &mut bool) -> Result<ParsedDateTime, Trouble> {
    let bytes = text.as_bytes();
    let end = bytes.len();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = bytes.iter().take_while(|b| is_space(**b)).count();
    if !digit(at) {
        return Err(Trouble::Truncated);
    }
    let run = bytes[at..].iter().take_while(|b| b.is_ascii_digit() || **b == b'T').count();
    let undelimited = at + run == end || bytes[at + run] == b'.';
    let mut field_length = if undelimited && !(run == 4 || run == 8 || run >= 14) { 2 } else { 4 };
    let mut fields = [0u32; 7];
    let mut lengths = [0usize; 7];
    let mut last_field_end = at;
    let mut i = 0;
    let mut not_zero = false;
    let (mut delimited, mut spaced) = (false, false);
    while i < 7 && digit(at) {
        let start = at;
        let mut value = u32::from(bytes[at] - b'0');
        at += 1;
        let until_delimiter = !undelimited && i != 6;
        let mut left: usize = field_length - 1;
        while digit(at) && (until_delimiter || left > 0) {
            value = value * 10 + u32::from(bytes[at] - b'0');
            if value > 999_999 {
                return Err(Trouble::Truncated);
            }
            at += 1;
            left = left.saturating_sub(1);
        }
        fields[i] = value;
        lengths[i] = at - start;
        not_zero |= value != 0;
        field_length = 2;
        last_field_end = at;
        if at == end {
            i += 1;
            break;
        }
        if i == 2 && bytes[at] == b'T' {
            at += 1;
            i += 1;
            continue;
        }
        if i == 5 {
            if bytes[at] == b'.' {
                at += 1;
                last_field_end = at;
                field_length = 6;
            } else if digit(at) {
                i += 1;
                break;
            }
            i += 1;
            continue;
        }
        while at < end && (bytes[at].is_ascii_punctuation() || is_space(bytes[at])) {
            if is_space(bytes[at]) && !(i == 2 || i == 6) {
                return Err(Trouble::Truncated);
            }
            // A sign after the last field begins a time zone offset, not another field.
            if i == 6 && matches!(bytes[at], b'+' | b'-') {
                break;
            }
            (delimited, spaced) = (true, spaced || is_space(bytes[at]));
            at += 1;
        }
        if i < 6 {
            last_field_end = at;
        }
        i += 1;
    }
    *is_certain = spaced || !delimited;
    at = last_field_end;
    let field_count = i;
    let year_length = if undelimited { if run == 4 || run == 8 || run >= 14 { 4 } else { 2 } } else { lengths[0] };
    let fraction_digits = lengths[6].min(6);
    let micros = fields[6] * 10u32.pow(6 - fraction_digits as u32);
    let mut year = fields[0];
    if year_length == 2 && not_zero {
        year += if year < 70 { 2000 } else { 1900 };
    }
    let out_of_range = year > 9999 || fields[1] > 12 || fields[2] > 31 || fields[3] > 23 || fields[4] > 59 || fields[5] > 59;
    if field_count < 3 || out_of_range {
        let garbage = bytes[at..].iter().any(|b| !is_space(*b));
        return Err(if not_zero || garbage { Trouble::Truncated } else { Trouble::ZeroDate });
    }
    let date = Date::new(year as u16, fields[1] as u8, fields[2] as u8);
    check_date(date, not_zero, rules)?;
    let mut rounds_up = false;
    if fraction_digits == 6 && digit(at) {
        rounds_up = bytes[at] >= b'5';
        while digit(at) {
            at += 1;
        }
    }
    let mut offset_seconds = None;
    if field_count > 3 && matches!(bytes.get(at), Some(b'+' | b'-')) && bytes.len() - at == 6 {
        offset_seconds = text.get(at..).and_then(parse_offset);
        if offset_seconds.is_some() {
            at = end;
        }
    }
    let trouble = bytes[at..].iter().any(|b| !is_space(*b)).then_some(Trouble::Truncated);
    Ok(ParsedDateTime {
        value: DateTime::new(date, fields[3] as u8, fields[4] as u8, fields[5] as u8, micros),
        date_only: field_count <= 3,
        fraction_digits: fraction_digits as u8,
        rounds_up,
        offset_seconds,
        trouble,
    })
}

/// Reads a number as YYYYMMDD, YYMMDD, YYYYMMDDhhmmss or YYMMDDhhmmss.
pub fn parse_datetime_number(number: i64, rules: DateRules) -> Result<(DateTime, bool), Trouble> {
    let mut date_only = true;
    let number = match number {
        0 => 0,
        10_000_101_000_000..=99_999_999_999_999 => {
            date_only = false;
            number
        }
        101..=691_231 => (number + 20_000_000) * 1_000_000,
        700_101..=991_231 => (number + 19_000_000) * 1_000_000,
        10_000_101..=99_991_231 => number * 1_000_000,
        101_000_000..=691_231_235_959 => {
            date_only = false;
            number + 20_000_000_000_000
        }
        700_101_000_000..=991_231_235_959 => {
            date_only = false;
            number + 19_000_000_000_000
        }
        1_000_000_000_000..=9_999_999_999_999 => {
            date_only = false;
            number
        }
        100_000_000_000_000.. => return Err(Trouble::OutOfRange),
        ..0 => return Err(Trouble::OutOfRange),
        _ => return Err(Trouble::Truncated),
    };
    let (day, time) = (number / 1_000_000, number % 1_000_000);
    let (month, mday) = (day / 100 % 100, day % 100);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    if month > 12 || mday > 31 || hour > 23 || minute > 59 || second > 59 {
        return Err(Trouble::Truncated);
    }
    let date = Date::new((day / 10_000) as u16, month as u8, mday as u8);
    check_date(date, number != 0, rules)?;
    Ok((DateTime::new(date, hour as u8, minute as u8, second as u8, 0), date_only))
}

/// Reads a TIME: `[-][days ]hh:mm[:ss[.fraction]]`, `[-]hhmmss[.fraction]`, or a full DATETIME whose time of day counts.
pub fn parse_time(text: &str) -> Result<ParsedTime, Trouble> {
    let bytes = text.as_bytes();
    let end = bytes.len();
    let mut at = bytes.iter().take_while(|b| is_space(**b)).count();
    let negative = bytes.get(at) == Some(&b'-');
    if negative {
        at += 1;
    }
    if at == end {
        return Err(Trouble::Truncated);
    }
    if let Some(time) = time_of_datetime(&text[at..]) {
        return time;
    }
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let number = |at: &mut usize| -> Result<u64, Trouble> {
        let mut value = 0u64;
        while digit(*at) {
            value = value * 10 + u64::from(bytes[*at] - b'0');
            if value > u64::from(u32::MAX) {
                return Err(Trouble::Truncated);
            }
            *at += 1;
        }
        Ok(value)
    };
    let start = at;
    let first = number(&mut at)?;
    let had_digits = at > start;
    let end_of_days = at;
    while at < end && is_space(bytes[at]) {
        at += 1;
    }
    let mut parts = [0u64; 4]; // days, hours, minutes, seconds
    let mut state;
    if end - at > 1 && at != end_of_days && digit(at) {
        parts[0] = first;
        state = 1;
    } else if end - at > 1 && bytes[at] == b':' && digit(at + 1) {
        parts[1] = first;
        state = 2;
        at += 1;
    } else {
        if !had_digits && bytes.get(at) != Some(&b'.') {
            return Err(Trouble::Truncated);
        }
        parts = [0, first / 10_000, first / 100 % 100, first % 100];
        state = 4;
        at = end_of_days;
    }
    while state < 4 {
        parts[state] = number(&mut at)?;
        state += 1;
        if state == 4 || end - at < 2 || bytes[at] != b':' || !digit(at + 1) {
            break;
        }
        at += 1;
    }
    let (mut micros, mut fraction_digits, mut rounds_up) = (0u32, 0, false);
    if end - at >= 2 && bytes[at] == b'.' && digit(at + 1) {
        at += 1;
        while digit(at) && fraction_digits < 6 {
            micros = micros * 10 + u32::from(bytes[at] - b'0');
            fraction_digits += 1;
            at += 1;
        }
        micros *= 10u32.pow(6 - fraction_digits);
        if digit(at) {
            rounds_up = bytes[at] >= b'5';
            while digit(at) {
                at += 1;
            }
        }
    } else if end - at == 1 && bytes[at] == b'.' {
        at += 1;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E'))
        && (digit(at + 1) || matches!(bytes.get(at + 1), Some(b'+' | b'-')) && digit(at + 2))
    {
        return Err(Trouble::Truncated);
    }
    if parts[2] > 59 || parts[3] > 59 {
        return Err(Trouble::OutOfRange);
    }
    let hours = parts[0] * 24 + parts[1];
    let garbage = bytes[at..].iter().any(|b| !is_space(*b));
    let mut trouble = garbage.then_some(Trouble::Truncated);
    let value = if hours > 838 {
        trouble = Some(Trouble::OutOfRange);
        if negative { Time::MIN } else { Time::MAX }
    } else {
        let value = Time::from_hms(negative, hours as u32, parts[2] as u32, parts[3] as u32, micros);
        if value.clamped() != value {
            trouble = Some(Trouble::OutOfRange);
        }
        value.clamped()
    };
    Ok(ParsedTime { value, fraction_digits: fraction_digits as u8, rounds_up, had_date: false, trouble })
}

/// Whether [`parse_time`] reads a text as a DATE or DATETIME by its form.
pub fn is_datetime_text(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(is_space));
    time_of_datetime(text.strip_prefix('-').unwrap_or(text)).is_some()
}

/// The time of day of a text that is certainly a DATE or DATETIME.
fn time_of_datetime(text: &str) -> Option<Result<ParsedTime, Trouble>> {
    // "2001-01-01 10:10:10" and "20010101101010" are; twelve characters is the shortest.
    if text.len() < 12 {
        return None;
    }
    let mut is_certain = false;
    let read = read_datetime(text, DateRules::default(), &mut is_certain);
    is_certain.then(|| {
        read.map(|parsed| ParsedTime {
            value: parsed.value.time(),
            fraction_digits: parsed.fraction_digits,
            rounds_up: parsed.rounds_up,
            had_date: !parsed.value.date.is_zero(),
            trouble: parsed.trouble,
        })
    })
}

/// Reads a number as hhmmss, or as a full datetime if it is that large.
pub fn parse_time_number(number: i64) -> Result<(Time, Option<Trouble>), Trouble> {
    const LARGEST: i64 = 8_385_959;
    if number > LARGEST {
        if number >= 10_000_000_000
            && let Ok((value, _)) = parse_datetime_number(number, DateRules::default())
        {
            return Ok((value.time(), None));
        }
        return Ok((Time::MAX, Some(Trouble::OutOfRange)));
    }
    if number < -LARGEST {
        return Ok((Time::MIN, Some(Trouble::OutOfRange)));
    }
    let magnitude = number.unsigned_abs();
    if magnitude % 100 > 59 || magnitude / 100 % 100 > 59 {
        return Err(Trouble::OutOfRange);
    }
    let (hours, minutes, seconds) = (magnitude / 10_000, magnitude / 100 % 100, magnitude % 100);
    Ok((Time::from_hms(number < 0, hours as u32, minutes as u32, seconds as u32, 0), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datetime(text: &str) -> Result<String, Trouble> {
        parse_datetime(text, DateRules::default()).map(|p| p.rounded(6, false).unwrap().to_string())
    }

    fn time(text: &str) -> Result<String, Trouble> {
        parse_time(text).map(|p| p.rounded(6, false).to_string())
    }

    #[test]
    fn datetimes() {
        for (text, value) in [
            ("2018-01-02", "2018-01-02 00:00:00"),
            ("2018-1-2 3:4:5", "2018-01-02 03:04:05"),
            ("18/01/02", "2018-01-02 00:00:00"),
            ("70@1@2", "1970-01-02 00:00:00"),
            ("20180102", "2018-01-02 00:00:00"),
            ("180102", "2018-01-02 00:00:00"),
            ("20180102030405", "2018-01-02 03:04:05"),
            ("180102030405", "2018-01-02 03:04:05"),
            ("2018-01-02T03:04:05.6", "2018-01-02 03:04:05.600000"),
            ("2018-01-02 03:04:05.1234567", "2018-01-02 03:04:05.123457"),
            ("2018-01-02 23:59:59.9999999", "2018-01-03 00:00:00"),
            ("2018-00-00", "2018-00-00 00:00:00"),
            ("0000-00-00 00:00:00", "0000-00-00 00:00:00"),
            ("2018-01-02 03", "2018-01-02 03:00:00"),
        ] {
            assert_eq!(datetime(text).as_deref(), Ok(value), "{text}");
        }
        assert_eq!(datetime("abc"), Err(Trouble::Truncated));
        assert_eq!(datetime("2018-13-01"), Err(Trouble::Truncated));
        assert_eq!(datetime("2018-02-30"), Err(Trouble::OutOfRange));
        assert_eq!(datetime("2018 01 01"), Err(Trouble::Truncated));
        assert_eq!(datetime("2018-01"), Err(Trouble::Truncated));
        assert_eq!(parse_datetime("2018-01-01x", DateRules::default()).unwrap().trouble, Some(Trouble::Truncated));
        let offset = parse_datetime("2020-01-01 10:10:10+05:30", DateRules::default()).unwrap();
        assert_eq!((offset.offset_seconds, offset.trouble), (Some(19_800), None));
    }

    #[test]
    fn times() {
        for (text, value) in [
            ("10:11:12", "10:11:12"),
            ("10:11", "10:11:00"),
            ("101112", "10:11:12"),
            ("12", "00:00:12"),
            ("-1 2:3:4.5", "-26:03:04.500000"),
            ("2 03", "51:00:00"),
            ("838:59:59", "838:59:59"),
            ("900:00:00", "838:59:59"),
            ("2018-01-02 03:04:05", "03:04:05"),
            ("10:11:12.1234567", "10:11:12.123457"),
            // Recorded from MySQL 8.0.12.
            ("2020-01-01T10:11:12", "00:20:20"),
            ("20200101T101112", "10:11:12"),
            ("2020.01.01 10:11:12", "10:11:12"),
            ("2020-01 10:11:12", "00:20:20"),
            ("2020-01-01     ", "00:00:00"),
            ("10:11:12    ", "00:00:00"),
            ("101112      ", "10:11:12"),
            ("2020-01-01 23:59:59.9999999", "24:00:00"),
        ] {
            assert_eq!(time(text).as_deref(), Ok(value), "{text}");
        }
        for text in ["2020-01-01 25:11:12", "2020-02-31 10:11:12", "99:99:99 10:11", "838:59:59   ", "200101251112"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert_eq!(time("10:60:00"), Err(Trouble::OutOfRange));
        assert_eq!(time("abc"), Err(Trouble::Truncated));
        assert_eq!(parse_time_number(101112).unwrap().0.to_string(), "10:11:12");
        assert_eq!(parse_time_number(-6000), Err(Trouble::OutOfRange));
    }

    #[test]
    fn numbers() {
        let number = |n| parse_datetime_number(n, DateRules::default()).map(|(v, _)| v.to_string());
        assert_eq!(number(20180102).as_deref(), Ok("2018-01-02 00:00:00"));
        assert_eq!(number(180102).as_deref(), Ok("2018-01-02 00:00:00"));
        assert_eq!(number(991231235959).as_deref(), Ok("1999-12-31 23:59:59"));
        assert_eq!(number(0).as_deref(), Ok("0000-00-00 00:00:00"));
        assert_eq!(number(99), Err(Trouble::Truncated));
    }
}
