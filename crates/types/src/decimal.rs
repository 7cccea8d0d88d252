//! DECIMAL(65,30): exact decimal numbers on 256-bit integers, with MySQL's scales and rounding.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::LazyLock;

pub use ethnum::I256;

/// An exact decimal number, `unscaled / 10^scale`.
///
/// A stored value has at most 65 digits, 30 of them fractional.  Results of arithmetic keep to 65 integer digits and
/// to what fits in 76 digits altogether, fractional digits being cut first, as MySQL's fixed buffer does.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    unscaled: I256,
    scale: u8,
}

/// What [`Decimal::parse_prefix`] found at the start of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedDecimal {
    pub value: Decimal,
    /// Bytes of the text that belong to the number, leading spaces included; 0 if there is no number.
    pub length: usize,
    /// More than 65 integer digits: `value` is the largest decimal.
    pub overflow: bool,
}

/// The most digits that an `I256` always holds.
const MAX_DIGITS: usize = 76;

static POW10: LazyLock<[I256; MAX_DIGITS + 1]> = LazyLock::new(|| {
    let mut powers = [I256::ONE; MAX_DIGITS + 1];
    for i in 1..powers.len() {
        powers[i] = powers[i - 1] * I256::from(10);
    }
    powers
});

const POW10_I128: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

fn pow10(exponent: usize) -> I256 {
    POW10[exponent]
}

/// The value as an `i128` if it fits.
fn small(v: I256) -> Option<i128> {
    let (high, low) = v.into_words();
    (high == low >> 127).then_some(low)
}

/// `v / 10^digits`, half away from zero.
fn divide_rounding(v: I256, digits: usize) -> I256 {
    if digits > MAX_DIGITS {
        return I256::ZERO;
    }
    if let (Some(small), true) = (small(v), digits < POW10_I128.len()) {
        let divisor = POW10_I128[digits];
        let (quotient, remainder) = (small / divisor, small % divisor);
        let up = remainder.unsigned_abs() >= (divisor / 2).unsigned_abs() && digits > 0;
        return I256::from(quotient + if up { small.signum() } else { 0 });
    }
    let divisor = pow10(digits);
    let (quotient, remainder) = (v / divisor, v % divisor);
    if digits > 0 && remainder.abs() >= divisor / I256::from(2) { quotient + v.signum() } else { quotient }
}

/// Decimal digits of `|v|`; 0 for 0.
fn digits(v: I256) -> usize {
    let v = v.unsigned_abs();
    if v == ethnum::U256::ZERO {
        return 0;
    }
    // 1233/4096 approximates log10(2); the table corrects the estimate.
    let bits = 256 - v.leading_zeros() as usize;
    let estimate = (bits * 1233) >> 12;
    if estimate <= MAX_DIGITS && v >= pow10(estimate).as_u256() { estimate + 1 } else { estimate }
}

impl Decimal {
    pub const MAX_PRECISION: u8 = 65;
    pub const MAX_SCALE: u8 = 30;
    pub const ZERO: Decimal = Decimal { unscaled: I256::ZERO, scale: 0 };

    pub fn new(unscaled: I256, scale: u8) -> Decimal {
        Decimal { unscaled, scale }
    }

    pub fn from_i128(unscaled: i128, scale: u8) -> Decimal {
        Decimal { unscaled: I256::from(unscaled), scale }
    }

    pub fn unscaled(&self) -> I256 {
        self.unscaled
    }

    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Significant digits, at least `scale` and at least 1.
    pub fn precision(&self) -> u8 {
        digits(self.unscaled).max(usize::from(self.scale)).max(1) as u8
    }

    /// Digits before the point; 0 for 0.5.
    pub fn integer_digits(&self) -> u8 {
        digits(self.unscaled).saturating_sub(usize::from(self.scale)) as u8
    }

    pub fn is_negative(&self) -> bool {
        self.unscaled < I256::ZERO
    }

    pub fn is_zero(&self) -> bool {
        self.unscaled == I256::ZERO
    }

    /// `None`: more than 65 integer digits.
    pub fn add(&self, other: &Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        match (self.unscaled_at(scale), other.unscaled_at(scale)) {
            (Some(a), Some(b)) => Decimal { unscaled: a.checked_add(b)?, scale }.within_limits(),
            _ if scale > 0 => self.truncate(i32::from(scale) - 1).add(&other.truncate(i32::from(scale) - 1)),
            _ => None,
        }
    }

    /// `None`: more than 65 integer digits.
    pub fn sub(&self, other: &Decimal) -> Option<Decimal> {
        self.add(&other.neg())
    }

    /// Scale is the sum of the scales, at most 30.  `None`: more than 65 integer digits.
    pub fn mul(&self, other: &Decimal) -> Option<Decimal> {
        let scale = self.scale + other.scale;
        let product = match (small(self.unscaled), small(other.unscaled)) {
            (Some(a), Some(b)) => match a.checked_mul(b) {
                Some(product) => Some(I256::from(product)),
                None => I256::from(a).checked_mul(I256::from(b)),
            },
            _ => self.unscaled.checked_mul(other.unscaled),
        };
        match product {
            Some(unscaled) => Decimal { unscaled, scale }.round(i32::from(Decimal::MAX_SCALE)).within_limits(),
            // Too wide for 256 bits: give up the last fractional digit of the longer fraction.
            None if self.scale >= other.scale && self.scale > 0 => self.truncate(i32::from(self.scale) - 1).mul(other),
            None if other.scale > 0 => self.mul(&other.truncate(i32::from(other.scale) - 1)),
            None => None,
        }
    }

    /// The quotient with scale `self.scale + increment` (at most 30), `increment` being div_precision_increment.
    /// `None`: division by zero (check first) or more than 65 integer digits.
    pub fn div(&self, other: &Decimal, increment: u8) -> Option<Decimal> {
        let scale = (self.scale + increment).min(Decimal::MAX_SCALE);
        self.div_unrounded(other, increment)?.rescale(scale)
    }

    /// The quotient with all the digits that MySQL computes before it rounds for output: whole groups of nine, the last
    /// one cut.  `1/3*3` is `1.0000` in MySQL because the product sees `0.333333333`.
    pub fn div_unrounded(&self, other: &Decimal, increment: u8) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let group = |digits: u8| digits.div_ceil(9) * 9;
        let (frac0, frac1) = (group(self.scale), group(other.scale));
        let more = i32::from(increment) - i32::from(frac0 - self.scale) - i32::from(frac1 - other.scale);
        let mut scale = group(frac0 + frac1 + more.max(0) as u8);
        let integer = usize::from(self.integer_digits()) + usize::from(other.scale) + 1;
        while scale > 9 && usize::from(scale) + integer > MAX_DIGITS + digits(other.unscaled) {
            scale -= 9;
        }
        let mut shift = usize::from(scale) + usize::from(other.scale) - usize::from(self.scale).min(usize::from(scale) + usize::from(other.scale));
        if usize::from(self.scale) > usize::from(scale) + usize::from(other.scale) {
            return self.truncate(i32::from(scale)).div_unrounded(other, increment);
        }
        if let (Some(n), Some(d)) = (small(self.unscaled), small(other.unscaled))
            && let Some(n) = POW10_I128.get(shift).and_then(|power| n.checked_mul(*power))
        {
            return Decimal { unscaled: I256::from(n / d), scale }.within_limits();
        }
        let mut quotient = self.unscaled / other.unscaled;
        let mut remainder = self.unscaled % other.unscaled;
        // Long division, as many digits at a time as the remainder leaves room for.
        while shift > 0 {
            let step = (MAX_DIGITS - digits(remainder)).min(MAX_DIGITS.saturating_sub(digits(quotient))).min(shift);
            if step == 0 {
                return None;
            }
            let wide = remainder * pow10(step);
            quotient = quotient * pow10(step) + wide / other.unscaled;
            remainder = wide % other.unscaled;
            shift -= step;
        }
        Decimal { unscaled: quotient, scale }.within_limits()
    }

    /// The remainder with the sign of `self`.  `None`: division by zero.
    pub fn rem(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let scale = self.scale.max(other.scale);
        match (self.unscaled_at(scale), other.unscaled_at(scale)) {
            (Some(a), Some(b)) => Some(Decimal { unscaled: a % b, scale }),
            // `other` is larger than any number at this scale; `self` at its own scale is not.
            (Some(a), None) => Some(Decimal { unscaled: a, scale }),
            // r = (integer part mod b) with b's scale: reduce digit by digit.
            (None, Some(b)) => {
                let mut remainder = self.unscaled % b;
                for _ in self.scale..scale {
                    remainder = (remainder * I256::from(10)) % b;
                }
                Some(Decimal { unscaled: remainder, scale })
            }
            (None, None) => None,
        }
    }

    pub fn neg(&self) -> Decimal {
        Decimal { unscaled: -self.unscaled, scale: self.scale }
    }

    pub fn abs(&self) -> Decimal {
        Decimal { unscaled: self.unscaled.abs(), scale: self.scale }
    }

    /// Rounds half away from zero to `digits` fractional digits; negative `digits` round left of the point.  The
    /// result's scale is the smaller of `digits` (at least 0) and the scale now.
    pub fn round(&self, digits: i32) -> Decimal {
        if digits >= i32::from(self.scale) {
            return *self;
        }
        let drop = (i32::from(self.scale) - digits) as usize;
        let unscaled = divide_rounding(self.unscaled, drop);
        Decimal::from_dropped(unscaled, digits)
    }

    /// Like [`round`](Decimal::round), towards zero.
    pub fn truncate(&self, digits: i32) -> Decimal {
        if digits >= i32::from(self.scale) {
            return *self;
        }
        let drop = (i32::from(self.scale) - digits) as usize;
        let unscaled = if drop > MAX_DIGITS { I256::ZERO } else { self.unscaled / pow10(drop) };
        Decimal::from_dropped(unscaled, digits)
    }

    /// `unscaled` units of `10^-digits`, where a negative `digits` gets its zeros back.
    fn from_dropped(unscaled: I256, digits: i32) -> Decimal {
        if digits >= 0 {
            return Decimal { unscaled, scale: digits as u8 };
        }
        let zeros = (-digits) as usize;
        let unscaled = if unscaled == I256::ZERO { I256::ZERO } else { unscaled * pow10(zeros.min(MAX_DIGITS)) };
        Decimal { unscaled, scale: 0 }
    }

    /// Rounded or extended to exactly `scale` fractional digits; `None` if the digits do not fit.
    pub fn rescale(&self, scale: u8) -> Option<Decimal> {
        if scale <= self.scale {
            return Some(self.round(i32::from(scale)));
        }
        Some(Decimal { unscaled: self.unscaled_at(scale)?, scale })
    }

    pub fn floor(&self) -> Decimal {
        let cut = self.truncate(0);
        if self.is_negative() && cut != *self { Decimal { unscaled: cut.unscaled - I256::ONE, scale: 0 } } else { cut }
    }

    pub fn ceil(&self) -> Decimal {
        let cut = self.truncate(0);
        if !self.is_negative() && cut != *self { Decimal { unscaled: cut.unscaled + I256::ONE, scale: 0 } } else { cut }
    }

    /// True if, rounded to `scale`, it fits DECIMAL(precision, scale).
    pub fn fits(&self, precision: u8, scale: u8) -> bool {
        self.rescale(scale).is_some_and(|v| digits(v.unscaled) <= usize::from(precision))
    }

    /// The largest DECIMAL(precision, scale).
    pub fn max(precision: u8, scale: u8) -> Decimal {
        Decimal { unscaled: pow10(usize::from(precision)) - I256::ONE, scale }
    }

    /// Rounded to an integer; `None` outside of `i64`.
    pub fn to_i64(&self) -> Option<i64> {
        small(self.round(0).unscaled).and_then(|v| i64::try_from(v).ok())
    }

    /// Rounded to an integer; `None` outside of `u64`.
    pub fn to_u64(&self) -> Option<u64> {
        small(self.round(0).unscaled).and_then(|v| u64::try_from(v).ok())
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        // Both operands are exact below 2^53 and 10^22, so their quotient is correctly rounded.
        if let Some(v) = small(self.unscaled)
            && v.unsigned_abs() < 1 << 53
            && self.scale <= 22
        {
            return v as f64 / 10f64.powi(i32::from(self.scale));
        }
        self.to_string().parse().unwrap_or(f64::MAX)
    }

    /// The decimal that a double prints as; `None` for infinities, NaN and more than 65 integer digits.
    pub fn from_f64(v: f64) -> Option<Decimal> {
        if !v.is_finite() {
            return None;
        }
        let text = format!("{v:e}");
        let parsed = Decimal::parse_prefix(text.as_bytes());
        (!parsed.overflow).then_some(parsed.value)
    }

    /// Reads the longest decimal number (with an optional exponent) at the start of `text`, after spaces.  Fractional
    /// digits past 30 are rounded away.
    pub fn parse_prefix(text: &[u8]) -> ParsedDecimal {
        let mut at = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let nothing = ParsedDecimal { value: Decimal::ZERO, length: 0, overflow: false };
        let negative = text.get(at) == Some(&b'-');
        if matches!(text.get(at), Some(b'-' | b'+')) {
            at += 1;
        }
        let whole = run_of_digits(&text[at..]);
        at += whole.len();
        let mut fraction: &[u8] = &[];
        if text.get(at) == Some(&b'.') {
            fraction = run_of_digits(&text[at + 1..]);
            if !whole.is_empty() || !fraction.is_empty() {
                at += 1 + fraction.len();
            }
        }
        if whole.is_empty() && fraction.is_empty() {
            return nothing;
        }
        let mut exponent = 0i64;
        if matches!(text.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(text.get(at + 1), Some(b'-' | b'+')));
            let power = text.get(at + 1 + sign..).map_or(&[][..], run_of_digits);
            if !power.is_empty() {
                let value = power.iter().fold(0i64, |n, d| (n * 10 + i64::from(d - b'0')).min(1_000_000));
                exponent = if text[at + 1] == b'-' { -value } else { value };
                at += 1 + sign + power.len();
            }
        }
        let (value, overflow) = Decimal::from_digits(negative, whole, fraction, exponent);
        ParsedDecimal { value, length: at, overflow }
    }

    /// `whole.fraction * 10^exponent`, and whether it overflowed.
    fn from_digits(negative: bool, whole: &[u8], fraction: &[u8], exponent: i64) -> (Decimal, bool) {
        let leading = whole.iter().take_while(|d| **d == b'0').count();
        let all = whole[leading..].iter().chain(fraction).copied();
        let point = (whole.len() - leading) as i64 + exponent; // digits before the point; may be negative
        let count = (whole.len() - leading + fraction.len()) as i64;
        // Fractional digits kept: one more than the limit decides the rounding.
        let available = (count - point).max(0);
        let kept_scale = available.min(i64::from(Decimal::MAX_SCALE));
        let mut unscaled = I256::ZERO;
        let mut significant = 0;
        let wanted = point + kept_scale; // digits of `all` that are kept
        let mut round_up = false;
        for (i, digit) in all.enumerate() {
            if (i as i64) < wanted {
                if unscaled != I256::ZERO || digit != b'0' {
                    significant += 1;
                }
                if significant > i64::from(Decimal::MAX_PRECISION) + kept_scale.min(11) {
                    break;
                }
                unscaled = unscaled * I256::from(10) + I256::from(digit - b'0');
            } else {
                round_up = (i as i64) == wanted && digit >= b'5';
                break;
            }
        }
        let mut zeros = (wanted - count).max(0);
        if unscaled == I256::ZERO {
            zeros = 0;
        }
        if significant + zeros - kept_scale > i64::from(Decimal::MAX_PRECISION) || significant + zeros > MAX_DIGITS as i64 {
            let limit = Decimal::max(Decimal::MAX_PRECISION, 0);
            return (if negative { limit.neg() } else { limit }, true);
        }
        unscaled *= pow10(zeros as usize);
        if round_up {
            unscaled += I256::ONE;
        }
        if negative {
            unscaled = -unscaled;
        }
        (Decimal { unscaled, scale: kept_scale as u8 }, false)
    }

    /// Exactly these 65-digit rules: integer digits at most 65, fractional digits cut to what is left of 76.
    fn within_limits(self) -> Option<Decimal> {
        let have = digits(self.unscaled);
        if have <= usize::from(Decimal::MAX_PRECISION) {
            return Some(self);
        }
        if usize::from(self.integer_digits()) > usize::from(Decimal::MAX_PRECISION) {
            return None;
        }
        if have > MAX_DIGITS {
            return Some(self.truncate(i32::from(self.scale) - (have - MAX_DIGITS) as i32));
        }
        Some(self)
    }

    fn unscaled_at(&self, scale: u8) -> Option<I256> {
        let more = usize::from(scale - self.scale);
        if more == 0 {
            return Some(self.unscaled);
        }
        if let Some(v) = small(self.unscaled)
            && let Some(v) = POW10_I128.get(more).and_then(|power| v.checked_mul(*power))
        {
            return Some(I256::from(v));
        }
        (digits(self.unscaled) + more <= MAX_DIGITS).then(|| self.unscaled * pow10(more))
    }
}

fn run_of_digits(text: &[u8]) -> &[u8] {
    &text[..text.iter().take_while(|b| b.is_ascii_digit()).count()]
}

impl From<i64> for Decimal {
    fn from(v: i64) -> Decimal {
        Decimal::from_i128(v.into(), 0)
    }
}

impl From<u64> for Decimal {
    fn from(v: u64) -> Decimal {
        Decimal::from_i128(v.into(), 0)
    }
}

/// Numeric equality: `1.0 = 1.00`.
impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        if self.scale == other.scale {
            return self.unscaled.cmp(&other.unscaled);
        }
        let scale = self.scale.max(other.scale);
        match (self.unscaled_at(scale), other.unscaled_at(scale)) {
            (Some(a), Some(b)) => a.cmp(&b),
            // What does not fit at the common scale is larger in magnitude than everything that does.
            (None, _) => self.unscaled.signum().cmp(&I256::ZERO),
            (_, None) => I256::ZERO.cmp(&other.unscaled.signum()),
        }
    }
}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (mut unscaled, mut scale) = (self.unscaled, self.scale);
        let ten = I256::from(10);
        while scale > 0 && unscaled % ten == I256::ZERO {
            unscaled /= ten;
            scale -= 1;
        }
        unscaled.hash(state);
        scale.hash(state);
    }
}

/// A whole text that is a decimal number, spaces around it allowed.
impl FromStr for Decimal {
    type Err = ();

    fn from_str(text: &str) -> Result<Decimal, ()> {
        let parsed = Decimal::parse_prefix(text.as_bytes());
        if parsed.length == 0 || parsed.overflow || !text[parsed.length..].trim().is_empty() {
            return Err(());
        }
        Ok(parsed.value)
    }
}

impl Decimal {
    /// Appends the text form.
    pub fn push_text(&self, out: &mut Vec<u8>) {
        if self.is_negative() {
            out.push(b'-');
        }
        // Digits from the right, through 64-bit numbers of 18 digits.
        let mut digits = [b'0'; MAX_DIGITS + 4];
        let mut at = digits.len();
        let mut rest = self.unscaled.unsigned_abs();
        loop {
            let (group, last) = match u64::try_from(rest) {
                Ok(group) => (group, true),
                Err(_) => {
                    let unit = ethnum::U256::from(1_000_000_000_000_000_000u64);
                    let group = (rest % unit).as_u64();
                    rest /= unit;
                    (group, false)
                }
            };
            let end = if last { 0 } else { at - 18 };
            let mut group = group;
            while group > 0 {
                at -= 1;
                digits[at] = b'0' + (group % 10) as u8;
                group /= 10;
            }
            if last {
                break;
            }
            at = end;
        }
        let scale = usize::from(self.scale);
        let point = digits.len() - scale;
        if at >= point {
            out.push(b'0');
        } else {
            out.extend_from_slice(&digits[at..point]);
        }
        if scale > 0 {
            out.push(b'.');
            out.extend_from_slice(&digits[point..]);
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(24);
        self.push_text(&mut text);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn d(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn prints_what_it_parsed() {
        for text in ["0", "-1", "0.5", "-0.05", "123456789012345678901234567890.123456789", "0.000000000000000000000000000001"] {
            assert_eq!(d(text).to_string(), text);
        }
        assert_eq!(Decimal::max(65, 30).to_string(), format!("{}.{}", "9".repeat(35), "9".repeat(30)));
        assert_eq!(Decimal::new(pow10(36), 0).neg().to_string(), format!("-1{}", "0".repeat(36)));
        assert_eq!(d("1e3").to_string(), "1000");
        assert_eq!(d("1.5e-3").to_string(), "0.0015");
        assert_eq!(d(".5").to_string(), "0.5");
        assert_eq!(d("00012.50").to_string(), "12.50");
        assert_eq!(Decimal::parse_prefix(b" 12abc").length, 3);
        assert_eq!(Decimal::parse_prefix(b"1e").length, 1);
        assert!(Decimal::parse_prefix("9".repeat(66).as_bytes()).overflow);
        assert!(!Decimal::parse_prefix("9".repeat(65).as_bytes()).overflow);
        assert_eq!(Decimal::parse_prefix("9".repeat(65).as_bytes()).value, Decimal::max(65, 0));
    }

    #[test]
    fn arithmetic_has_mysqls_scales() {
        assert_eq!(d("1.10").add(&d("2.225")).unwrap().to_string(), "3.325");
        assert_eq!(d("1.10").mul(&d("2.225")).unwrap().to_string(), "2.44750");
        assert_eq!(d("1").div(&d("3"), 4).unwrap().to_string(), "0.3333");
        assert_eq!(d("2").div(&d("3"), 4).unwrap().to_string(), "0.6667");
        assert_eq!(d("10.00").div(&d("4"), 4).unwrap().to_string(), "2.500000");
        assert_eq!(d("1").div_unrounded(&d("3"), 4).unwrap().mul(&d("3")).unwrap().rescale(4).unwrap().to_string(), "1.0000");
        assert_eq!(d("-7.5").rem(&d("2")).unwrap().to_string(), "-1.5");
        assert_eq!(d("2.00000").div(&d("3"), 4).unwrap().to_string(), "0.666666666");
        assert_eq!(d("5").div(&d("0.000003"), 4).unwrap().to_string(), "1666666.6667");
        assert_eq!(d("1").div(&d("0"), 4), None);
        assert_eq!(Decimal::max(65, 0).add(&d("1")), None);
        assert_eq!(Decimal::max(65, 0).mul(&d("2")), None);
        assert_eq!(Decimal::max(65, 30).mul(&d("0.5")).unwrap().scale(), 30);
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        assert_eq!(d("2.5").round(0).to_string(), "3");
        assert_eq!(d("-2.5").round(0).to_string(), "-3");
        assert_eq!(d("1.005").round(2).to_string(), "1.01");
        assert_eq!(d("155").round(-1).to_string(), "160");
        assert_eq!(d("5").round(-1).to_string(), "10");
        assert_eq!(d("4").round(-1).to_string(), "0");
        assert_eq!(d("-1.999").truncate(1).to_string(), "-1.9");
        assert_eq!(d("-1.5").floor().to_string(), "-2");
        assert_eq!(d("-1.5").ceil().to_string(), "-1");
        assert_eq!(d("1.5").ceil().to_string(), "2");
    }

    #[test]
    fn conversions() {
        assert_eq!(Decimal::from_f64(0.1).unwrap().to_string(), "0.1");
        assert_eq!(Decimal::from_f64(1e20).unwrap().to_string(), "100000000000000000000");
        assert_eq!(d("9223372036854775807.4").to_i64(), Some(i64::MAX));
        assert_eq!(d("9223372036854775807.5").to_i64(), None);
        assert_eq!(d("18446744073709551615").to_u64(), Some(u64::MAX));
        assert_eq!(d("0.1").to_f64(), 0.1);
        assert_eq!(d("1.0"), d("1.000"));
        assert!(d("99.99").fits(4, 2) && !d("99.995").fits(4, 2));
    }

    proptest! {
        #[test]
        fn agrees_with_integers(a in -(1i128 << 100)..(1i128 << 100), b in -(1i128 << 100)..(1i128 << 100), s in 0u8..9, t in 0u8..9) {
            let (x, y) = (Decimal::from_i128(a, s), Decimal::from_i128(b, t));
            prop_assert_eq!(x.add(&y).unwrap().sub(&y).unwrap(), x);
            prop_assert_eq!(x.to_string().parse::<Decimal>().unwrap(), x);
            if !y.is_zero() {
                let q = x.div_unrounded(&y, 4).unwrap();
                // |x - q*y| < |y| * 10^-scale(q)
                if let Some(back) = q.mul(&y) {
                    let ulp = Decimal::new(I256::ONE, q.scale().min(30));
                    let slack = y.abs().mul(&ulp).unwrap().add(&Decimal::new(I256::ONE, 30)).unwrap();
                    prop_assert!(x.sub(&back).unwrap().abs() <= slack);
                }
            }
        }
    }
}
