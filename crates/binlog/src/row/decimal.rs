//! MySQL's packed decimal: groups of nine digits in four bytes, a group cut short at each end in fewer; the first bit is flipped, and all
//! bits of a negative number, so that the bytes sort as the numbers do.

use highkey_types::{Decimal, I256};

/// Bytes of a group by its digits.
const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
const POW10: [u32; 10] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// The most bytes: DECIMAL(65,30).
const MAX_BYTES: usize = 32;

/// Appends `v` as DECIMAL(precision, scale). Panics if it does not fit (I1).
pub(super) fn push(v: &Decimal, precision: u8, scale: u8, out: &mut Vec<u8>) {
    let v = if v.scale() == scale { *v } else { v.rescale(scale).expect("I1: the value fits its column") };
    let mut digits = Digits::of(v.unscaled().abs());
    let (integer, scale) = (usize::from(precision - scale), usize::from(scale));
    let mut bytes = [0; MAX_BYTES];
    let mut at = bytes.len();
    // From the last digit to the first: a short group of the fraction, its full ones, the integer's full ones, its short one.
    let mut group = |digit_count: usize| {
        let size = GROUP_BYTES[digit_count];
        at -= size;
        let group = digits.pop(digit_count).to_be_bytes();
        bytes[at..at + size].copy_from_slice(&group[4 - size..]);
    };
    group(scale % 9);
    (0..scale / 9 + integer / 9).for_each(|_| group(9));
    group(integer % 9);
    assert!(digits.is_zero(), "I1: {v} has more digits than DECIMAL({precision},{scale})");
    let bytes = &mut bytes[at..];
    if v.is_negative() {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    out.extend_from_slice(bytes);
}

/// A magnitude whose last digits are taken away; narrow as soon as it can be.
enum Digits {
    Narrow(u64),
    Middle(u128),
    Wide(I256),
}

impl Digits {
    fn of(magnitude: I256) -> Digits {
        let (high, low) = magnitude.into_words();
        match u64::try_from(low) {
            Ok(narrow) if high == 0 => Digits::Narrow(narrow),
            _ if high == 0 && low >= 0 => Digits::Middle(low as u128),
            _ => Digits::Wide(magnitude),
        }
    }

    /// Takes the last `count` digits, at most nine.
    fn pop(&mut self, count: usize) -> u32 {
        let unit = POW10[count];
        match self {
            Digits::Narrow(v) => {
                let group = (*v % u64::from(unit)) as u32;
                *v /= u64::from(unit);
                group
            }
            Digits::Middle(v) => {
                let (rest, group) = (*v / u128::from(unit), (*v % u128::from(unit)) as u32);
                *self = u64::try_from(rest).map_or(Digits::Middle(rest), Digits::Narrow);
                group
            }
            Digits::Wide(v) => {
                let unit = I256::from(unit);
                let (rest, group) = (*v / unit, (*v % unit).as_u32());
                *self = Digits::of(rest);
                group
            }
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, Digits::Narrow(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &str, precision: u8, scale: u8) -> Vec<u8> {
        let mut out = Vec::new();
        push(&text.parse().unwrap(), precision, scale, &mut out);
        out
    }

    #[test]
    fn the_manuals_example() {
        // decimal2bin's comment in MySQL's strings/decimal.cc.
        assert_eq!(packed("1234567890.1234", 14, 4), [0x81, 0x0D, 0xFB, 0x38, 0xD2, 0x04, 0xD2]);
        assert_eq!(packed("-1234567890.1234", 14, 4), [0x7E, 0xF2, 0x04, 0xC7, 0x2D, 0xFB, 0x2D]);
        assert_eq!(packed("0", 1, 0), [0x80]);
        assert_eq!(packed("0.5", 5, 5), [0x80, 0xC3, 0x50]);
    }

    #[test]
    fn bytes_sort_as_numbers() {
        let (least, most) = ("-99999999999999999999999999999999999999", "99999999999999999999999999999999999999");
        let texts = [least, "-1.5", "-1", "-0.0000000001", "0", "0.0000000001", "1", most];
        let all: Vec<_> = texts.iter().map(|text| packed(text, 65, 20)).collect();
        assert!(all.is_sorted(), "{all:02x?}");
        assert!(all.iter().all(|bytes| bytes.len() == all[0].len()));
    }

    #[test]
    #[should_panic(expected = "I1")]
    fn a_value_too_wide_is_a_bug() {
        packed("100", 2, 0);
    }
}
