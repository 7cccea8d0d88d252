//! DECIMAL(65,30).
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

pub use ethnum::I256;

/// An exact decimal number: `unscaled / 10^scale`, at most 65 digits and 30 of them fractional when stored.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    unscaled: I256,
    scale: u8,
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
    /// Significant digits, at least `scale`.
    pub fn precision(&self) -> u8 { unimplemented!() }
    pub fn is_negative(&self) -> bool { self.unscaled < I256::ZERO }
    pub fn is_zero(&self) -> bool { self.unscaled == I256::ZERO }
    /// `None`: overflow past 65 digits.
    pub fn add(&self, _other: &Decimal) -> Option<Decimal> { unimplemented!() }
    pub fn sub(&self, _other: &Decimal) -> Option<Decimal> { unimplemented!() }
    pub fn mul(&self, _other: &Decimal) -> Option<Decimal> { unimplemented!() }
    /// `None`: division by zero or overflow; check `is_zero` first. Scale is `self.scale + increment`, at most 30.
    pub fn div(&self, _other: &Decimal, _increment: u8) -> Option<Decimal> { unimplemented!() }
    pub fn rem(&self, _other: &Decimal) -> Option<Decimal> { unimplemented!() }
    pub fn neg(&self) -> Decimal { unimplemented!() }
    pub fn abs(&self) -> Decimal { unimplemented!() }
    /// Half away from zero; negative `digits` round left of the point.  The result's scale is `max(digits, 0)`, never larger than now.
    pub fn round(&self, _digits: i32) -> Decimal { unimplemented!() }
    pub fn truncate(&self, _digits: i32) -> Decimal { unimplemented!() }
    /// Rounded or extended to exactly `scale` fractional digits.
    pub fn rescale(&self, _scale: u8) -> Option<Decimal> { unimplemented!() }
    pub fn floor(&self) -> Decimal { unimplemented!() }
    pub fn ceil(&self) -> Decimal { unimplemented!() }
    /// True if it fits DECIMAL(precision, scale) without rounding its integer part.
    pub fn fits(&self, _precision: u8, _scale: u8) -> bool { unimplemented!() }
    /// The largest DECIMAL(precision, scale).
    pub fn max(_precision: u8, _scale: u8) -> Decimal { unimplemented!() }
    /// Rounded to an integer; `None` outside of i64.
    pub fn to_i64(&self) -> Option<i64> { unimplemented!() }
    pub fn to_u64(&self) -> Option<u64> { unimplemented!() }
    pub fn to_f64(&self) -> f64 { unimplemented!() }
    pub fn from_f64(_v: f64) -> Option<Decimal> { unimplemented!() }
    /// The longest decimal prefix of `text` (after spaces), and how many bytes it took.
    pub fn parse_prefix(_text: &[u8]) -> (Decimal, usize) { unimplemented!() }
}
impl From<i64> for Decimal { fn from(v: i64) -> Decimal { Decimal::from_i128(v.into(), 0) } }
impl From<u64> for Decimal { fn from(v: u64) -> Decimal { Decimal::from_i128(v.into(), 0) } }
impl PartialEq for Decimal { fn eq(&self, other: &Decimal) -> bool { self.cmp(other) == Ordering::Equal } }
impl Eq for Decimal {}
impl PartialOrd for Decimal { fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> { Some(self.cmp(other)) } }
impl Ord for Decimal { fn cmp(&self, _other: &Decimal) -> Ordering { unimplemented!() } }
impl std::hash::Hash for Decimal { fn hash<H: std::hash::Hasher>(&self, _state: &mut H) { unimplemented!() } }
impl FromStr for Decimal { type Err = (); fn from_str(_s: &str) -> Result<Decimal, ()> { unimplemented!() } }
impl fmt::Display for Decimal { fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result { unimplemented!() } }
