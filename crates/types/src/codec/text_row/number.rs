//! The plain values of fixed columns: numbers, dates, times, ENUM and SET.

use crate::cast::double_prefix;
use crate::codec::scalar;
use crate::{Charset, ColumnType, Date, DateTime, Str, Time, TypeKind};

/// How the text of a fixed column reads.
#[derive(Clone, Debug)]
pub(super) enum NumberForm {
    Signed { low: i64, high: i64 },
    Unsigned { high: u64 },
    Decimal { whole_digits: usize, scale: usize, unsigned: bool },
    Float { unsigned: bool },
    Double { unsigned: bool },
    Bit { high: u64 },
    Year,
    Date,
    DateTime(u8),
    Time(u8),
    /// Members with their stored indexes.
    Enum(Vec<(Str, u64)>),
    /// Members with their stored bits.
    Set(Vec<(Str, u64)>),
}

/// Members of an ENUM are compared one after the other, so a long list is better converted.
const ENUM_MEMBERS_MAX: usize = 64;

/// Decimal digits that every `u128` with room for a sign holds.
const I128_DIGITS: usize = 38;
const I64_DIGITS: usize = 18;

impl NumberForm {
    /// `None` for a type whose values depend on more than their text.
    pub(super) fn of(ty: &ColumnType) -> Option<NumberForm> {
        use TypeKind::*;
        let unsigned = ty.unsigned;
        Some(match &ty.kind {
            TinyInt | SmallInt | MediumInt | Int | BigInt => {
                let (low, high) = ty.integer_range()?;
                if unsigned { NumberForm::Unsigned { high } } else { NumberForm::Signed { low, high: high as i64 } }
            }
            Decimal { precision, scale } => {
                let scale = usize::from(*scale);
                // Longer numbers, which only a DECIMAL of 39 digits or more holds, are declined.
                let whole_digits = usize::from(*precision).min(I128_DIGITS) - scale;
                NumberForm::Decimal { whole_digits, scale, unsigned }
            }
            // FLOAT(M,D) rounds.
            Float | Double if ty.float_digits.is_some() => return None,
            Float => NumberForm::Float { unsigned },
            Double => NumberForm::Double { unsigned },
            Bit(_) => NumberForm::Bit { high: ty.integer_range()?.1 },
            Year => NumberForm::Year,
            Date => NumberForm::Date,
            DateTime(fsp) => NumberForm::DateTime(*fsp),
            Time(fsp) => NumberForm::Time(*fsp),
            Enum(members) if members.len() <= ENUM_MEMBERS_MAX => NumberForm::Enum(by_name(members, ty, |at| at as u64 + 1)),
            Set(members) => NumberForm::Set(by_name(members, ty, |at| 1 << at)),
            _ => return None,
        })
    }

    /// Writes the plain value that `text` is; `None` if it is none.
    #[inline]
    pub(super) fn write(&self, text: &[u8], charset: Charset, to: &mut [u8]) -> Option<()> {
        // What most columns are is inlined into the row's loop, the rest is a call.
        match self {
            NumberForm::Signed { low, high } => {
                let (negative, digits) = sign(text);
                let magnitude = magnitude(digits)?;
                let number = if negative { 0i64.checked_sub_unsigned(magnitude)? } else { i64::try_from(magnitude).ok()? };
                if number < *low || number > *high {
                    return None;
                }
                put(scalar::signed_number(number, to.len()), to)
            }
            NumberForm::Decimal { whole_digits, scale, unsigned } => {
                let (negative, digits) = sign(text);
                put_decimal(negative, digits, *whole_digits, *scale, to).filter(|()| !(negative && *unsigned))
            }
            NumberForm::Date => put(scalar::date_number(date(text)?), to),
            other => other.write_other(text, charset, to),
        }
    }

    #[inline(never)]
    fn write_other(&self, text: &[u8], charset: Charset, to: &mut [u8]) -> Option<()> {
        match self {
            NumberForm::Signed { .. } | NumberForm::Decimal { .. } | NumberForm::Date => self.write(text, charset, to),
            NumberForm::Unsigned { high } => {
                let (negative, digits) = sign(text);
                let number = magnitude(digits)?;
                put((number <= *high && !(negative && number > 0)).then_some(number)?, to)
            }
            NumberForm::Float { unsigned } => {
                let number = real(text, *unsigned)?;
                to.copy_from_slice(&(number.abs() <= f64::from(f32::MAX)).then_some(number as f32)?.to_le_bytes());
                Some(())
            }
            NumberForm::Double { unsigned } => {
                to.copy_from_slice(&real(text, *unsigned)?.to_le_bytes());
                Some(())
            }
            NumberForm::Bit { high } => {
                let mut number = 0u64;
                for byte in text {
                    number = (number >> 56 == 0).then_some(number << 8 | u64::from(*byte))?;
                }
                put((number <= *high).then_some(number)?, to)
            }
            NumberForm::Year => {
                let year = magnitude((text.len() == 4).then_some(text)?)?;
                put((1901..=2155).contains(&year).then(|| year - 1900)?, to)
            }
            NumberForm::DateTime(fsp) => put(scalar::datetime_number(&datetime(text, *fsp)?, *fsp), to),
            NumberForm::Time(fsp) => put(scalar::time_number(time(text, *fsp)?, *fsp, to.len()), to),
            NumberForm::Enum(members) => put(member(members, name(text, charset)?)?, to),
            NumberForm::Set(members) => {
                let text = name(text, charset)?;
                let mut bits = 0;
                if !text.is_empty() {
                    for name in text.split(|byte| *byte == b',') {
                        bits |= member(members, name)?;
                    }
                }
                put(bits, to)
            }
        }
    }
}

/// The low bytes of a number.
#[inline(always)]
fn put(number: u64, to: &mut [u8]) -> Option<()> {
    let bytes = number.to_le_bytes();
    // The lengths are spelled out so that each is one store and not a call.
    match to.len() {
        1 => to.copy_from_slice(&bytes[..1]),
        3 => to.copy_from_slice(&bytes[..3]),
        4 => to.copy_from_slice(&bytes[..4]),
        8 => to.copy_from_slice(&bytes[..8]),
        width => to.copy_from_slice(&bytes[..width]),
    }
    Some(())
}

/// Whether the text is negative, and what follows the sign.
#[inline]
fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    }
}

/// A number of digits and nothing else.
#[inline]
fn magnitude(digits: &[u8]) -> Option<u64> {
    match digits.len() {
        0 => None,
        1..=19 => append_digits(0, digits),
        20 => append_digits(0, &digits[..19])?.checked_mul(10)?.checked_add(append_digits(0, &digits[19..])?),
        _ => None,
    }
}

/// `number` with `digits` behind it, which must not overflow; `None` if they are not digits.
#[inline(always)]
fn append_digits(number: u64, digits: &[u8]) -> Option<u64> {
    match digits.len() {
        0 => Some(number),
        n @ 1..=8 => Some(number * POW10[n] + eight_digits(digits)?),
        _ => append_more_digits(number, digits),
    }
}

#[inline(never)]
fn append_more_digits(number: u64, digits: &[u8]) -> Option<u64> {
    digits.chunks(8).try_fold(number, |number, chunk| Some(number * POW10[chunk.len()] + eight_digits(chunk)?))
}

/// The number of 1 to 8 digits, all at once: a digit per byte of a word, the last one in the highest byte.
#[inline(always)]
fn eight_digits(digits: &[u8]) -> Option<u64> {
    let n = digits.len();
    let empty = 8 * (8 - n);
    // Reads that overlap agree in what they share.
    let word = if let (Some(first), Some(last)) = (digits.first_chunk::<4>(), digits.last_chunk::<4>()) {
        u64::from(u32::from_le_bytes(*first)) << empty | u64::from(u32::from_le_bytes(*last)) << 32
    } else {
        (u64::from(digits[0]) | u64::from(digits[n / 2]) << (8 * (n / 2)) | u64::from(digits[n - 1]) << (8 * (n - 1))) << empty
    };
    let word = word ^ ZEROS << empty;
    if !all_digits(word) {
        return None;
    }
    // Pairs, then both halves of four: the products leave the sum of theirs in the high half.
    let pairs = word * 10 + (word >> 8);
    let (odd, even) = (pairs & 0x0000_00FF_0000_00FF, pairs >> 16 & 0x0000_00FF_0000_00FF);
    Some(odd.wrapping_mul(100 + (1_000_000 << 32)).wrapping_add(even.wrapping_mul(1 + (10_000 << 32))) >> 32)
}

/// No byte is above 9.
#[inline(always)]
fn all_digits(word: u64) -> bool {
    // A byte above 9 has its high bit set, or gets it with 0x76 added; 9 and less carry nothing into the next one.
    (word | word.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080 == 0
}

/// The digit 0 in every byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

const POW10: [u64; 20] = {
    let mut powers = [1; 20];
    let mut i = 1;
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

fn append_digits_u128(number: u128, digits: &[u8]) -> Option<u128> {
    digits.chunks(I64_DIGITS).try_fold(number, |number, chunk| {
        Some(number * u128::from(POW10[chunk.len()]) + u128::from(append_digits(0, chunk)?))
    })
}

/// `digits[.digits]`, unscaled, as two's complement.
#[inline]
fn put_decimal(negative: bool, text: &[u8], whole_digits: usize, scale: usize, to: &mut [u8]) -> Option<()> {
    // The point is where a full fraction has it, nearly always.
    let expected = text.len().wrapping_sub(scale + 1);
    let point = if text.get(expected) == Some(&b'.') { Some(expected) } else { text.iter().position(|byte| *byte == b'.') };
    let (mut whole, fraction) = match point {
        Some(at) if at + 1 < text.len() => (&text[..at], &text[at + 1..]),
        Some(_) => return None,
        None if text.is_empty() => return None,
        None => (text, &text[..0]),
    };
    if whole.len() > whole_digits {
        while let [b'0', rest @ ..] = whole {
            whole = rest;
        }
    }
    if whole.len() > whole_digits || fraction.len() > scale {
        return None;
    }
    let missing = scale - fraction.len();
    match to.len() {
        4 | 8 => {
            let number = append_digits(append_digits(0, whole)?, fraction)? * POW10[missing];
            put(if negative { number.wrapping_neg() } else { number }, to)
        }
        _ => put_long_decimal(negative, whole, fraction, missing, to),
    }
}

/// A decimal of 16 or 32 bytes, `missing` digits short of its scale.
#[inline(never)]
fn put_long_decimal(negative: bool, whole: &[u8], fraction: &[u8], missing: usize, to: &mut [u8]) -> Option<()> {
    let number = append_digits_u128(append_digits_u128(0, whole)?, fraction)? * 10u128.pow(missing as u32);
    let number = if negative { number.wrapping_neg() } else { number };
    let (low, high) = to.split_at_mut(16);
    low.copy_from_slice(&number.to_le_bytes());
    high.fill(if number >> 127 == 1 { 0xFF } else { 0 });
    Some(())
}

/// A finite number without spaces around it.
fn real(text: &[u8], unsigned: bool) -> Option<f64> {
    let first_is_number = matches!(text.first(), Some(b'0'..=b'9' | b'-' | b'+' | b'.'));
    let (number, end) = double_prefix(text);
    number.filter(|number| first_is_number && end == text.len() && number.is_finite() && !(unsigned && *number < 0.0))
}

/// Two digits; more than 99 if they are not.
#[inline]
fn two_digits(tens: u8, ones: u8) -> u32 {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    if tens > 9 || ones > 9 { 100 } else { u32::from(tens) * 10 + u32::from(ones) }
}

/// `YYYY-MM-DD`, a day of the calendar from year 1.
#[inline(always)]
fn date(text: &[u8]) -> Option<Date> {
    let text: &[u8; 10] = text.try_into().ok()?;
    let [c0, c1, rest @ ..] = text;
    let word = u64::from_le_bytes(*rest) ^ u64::from_le_bytes(*b"00-00-00");
    let century = two_digits(*c0, *c1);
    if !all_digits(word) || word & 0x0000_FF00_00FF_0000 != 0 || century > 99 {
        return None;
    }
    // Two digits each in bytes 0, 3 and 6.
    let pairs = word * 10 + (word >> 8);
    let (year, month, day) = (pairs & 0xFF, pairs >> 24 & 0xFF, pairs >> 48 & 0xFF);
    let date = Date::new((century * 100) as u16 + year as u16, month as u8, day as u8);
    // Every month has 28 days.
    let exists = (1..=12).contains(&date.month) && (1..=28).contains(&date.day) || date.is_valid();
    (date.year > 0 && exists).then_some(date)
}

/// `YYYY-MM-DD`, or `YYYY-MM-DD hh:mm:ss` with at most `fsp` digits behind a point.
fn datetime(text: &[u8], fsp: u8) -> Option<DateTime> {
    if text.len() < 19 {
        return Some(DateTime::from(date(text)?));
    }
    let [b' ', h0, h1, b':', m0, m1, b':', s0, s1, fraction @ ..] = &text[10..] else { return None };
    let (hour, minute, second) = (two_digits(*h0, *h1), two_digits(*m0, *m1), two_digits(*s0, *s1));
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(DateTime::new(date(&text[..10])?, hour as u8, minute as u8, second as u8, micros(fraction, fsp)?))
}

/// `[-]hh:mm:ss` or `[-]hhh:mm:ss` with at most `fsp` digits behind a point, within TIME's range.
fn time(text: &[u8], fsp: u8) -> Option<Time> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (hours, rest) = match text {
        [h0, h1, b':', rest @ ..] if two_digits(*h0, *h1) < 100 => (two_digits(*h0, *h1), rest),
        [h0 @ b'0'..=b'8', h1, h2, b':', rest @ ..] => match two_digits(*h1, *h2) {
            hours @ ..100 => (u32::from(h0 - b'0') * 100 + hours, rest),
            _ => return None,
        },
        _ => return None,
    };
    let [m0, m1, b':', s0, s1, fraction @ ..] = rest else { return None };
    let (minutes, seconds) = (two_digits(*m0, *m1), two_digits(*s0, *s1));
    if hours > 838 || minutes > 59 || seconds > 59 {
        return None;
    }
    let time = Time::from_hms(negative, hours, minutes, seconds, micros(fraction, fsp)?);
    (time.clamped() == time).then_some(time)
}

/// Nothing, or a point and at most `fsp` digits.
fn micros(fraction: &[u8], fsp: u8) -> Option<u32> {
    match fraction {
        [] => Some(0),
        [b'.', digits @ ..] if !digits.is_empty() && digits.len() <= usize::from(fsp) => {
            Some((append_digits(0, digits)? * POW10[6 - digits.len()]) as u32)
        }
        _ => None,
    }
}

/// Each member with the number of the first one that the collation finds equal, which is the one that is stored.
fn by_name(members: &[Str], ty: &ColumnType, number: impl Fn(usize) -> u64) -> Vec<(Str, u64)> {
    let first = |name: &Str| members.iter().position(|member| ty.collation.eq(member.as_bytes(), name.as_bytes()));
    members.iter().filter_map(|name| Some((name.clone(), number(first(name)?)))).collect()
}

/// A text that is UTF-8 if it is a member's name, without the trailing spaces that do not count.
fn name(text: &[u8], charset: Charset) -> Option<&[u8]> {
    let as_it_is = matches!(charset, Charset::Utf8mb4 | Charset::Binary) || text.is_ascii();
    (as_it_is && text.last() != Some(&b' ')).then_some(text)
}

fn member(members: &[(Str, u64)], name: &[u8]) -> Option<u64> {
    members.iter().find(|(member, _)| member.as_bytes() == name).map(|(_, number)| *number)
}
