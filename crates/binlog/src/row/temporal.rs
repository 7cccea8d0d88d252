//! DATE, TIME, DATETIME and TIMESTAMP in row images: big-endian numbers that sort as the times do, the fraction of a second in as many
//! bytes as its digits need; DATE is an older form, little-endian.

use highkey_types::{Date, DateTime, Time};

/// Year, month, day in 15, 4 and 5 bits.
pub(super) fn push_date(date: &Date, out: &mut Vec<u8>) {
    let packed = u32::from(date.year) << 9 | u32::from(date.month) << 5 | u32::from(date.day);
    out.extend_from_slice(&packed.to_le_bytes()[..3]);
}

/// Hours, minutes, seconds in 12, 6 and 6 bits with the fraction behind them as one signed number, moved up to be positive.
pub(super) fn push_time(time: &Time, fsp: u8, out: &mut Vec<u8>) {
    let hms = u64::from(time.hours()) << 12 | u64::from(time.minutes()) << 6 | u64::from(time.seconds());
    let magnitude = (hms << 24 | u64::from(time.subsec_micros())) as i64;
    let packed = if time.is_negative() { -magnitude } else { magnitude };
    if fsp >= 5 {
        return out.extend_from_slice(&(packed + 0x8000_0000_0000).to_be_bytes()[2..]);
    }
    // As MySQL cuts it: the integer part rounds down, the fraction has the sign of the whole.
    let (integer, fraction) = (packed >> 24, (packed % (1 << 24)) as i32);
    out.extend_from_slice(&(integer + 0x80_0000).to_be_bytes()[5..]);
    push_fraction(fraction, fsp, out);
}

/// Months as 13 a year, day, hour, minute, second in 17, 5, 5, 6 and 6 bits; the first bit says that it is not negative.
pub(super) fn push_datetime(v: &DateTime, fsp: u8, out: &mut Vec<u8>) {
    let date = (u64::from(v.date.year) * 13 + u64::from(v.date.month)) << 5 | u64::from(v.date.day);
    let time = u64::from(v.hour) << 12 | u64::from(v.minute) << 6 | u64::from(v.second);
    let packed = (date << 17 | time) + 0x80_0000_0000;
    out.extend_from_slice(&packed.to_be_bytes()[3..]);
    push_fraction(v.micros as i32, fsp, out);
}

/// Seconds since 1970-01-01 of a value in UTC; 0 for `0000-00-00`.
pub(super) fn push_timestamp(v: &DateTime, fsp: u8, out: &mut Vec<u8>) {
    let seconds = if v.is_zero() { 0 } else { v.to_micros().div_euclid(1_000_000) as u32 };
    out.extend_from_slice(&seconds.to_be_bytes());
    push_fraction(v.micros as i32, fsp, out);
}

/// Two digits in a byte, four in two, six in three.
fn push_fraction(micros: i32, fsp: u8, out: &mut Vec<u8>) {
    match fsp {
        0 => {}
        1 | 2 => out.push((micros / 10_000) as u8),
        3 | 4 => out.extend_from_slice(&((micros / 100) as i16).to_be_bytes()),
        _ => out.extend_from_slice(&micros.to_be_bytes()[1..]),
    }
}
