//! MySQL's order of JSON values, and bytes that have it.

use std::cmp::Ordering;

use super::{Json, key_order};
use crate::format::double_to_string;

/// The byte that a value's key begins with: null, numbers, strings, objects, arrays, booleans.
fn rank(value: &Json) -> u8 {
    match value {
        Json::Null => 1,
        Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) => 2,
        Json::String(_) => 3,
        Json::Object(_) => 4,
        Json::Array(_) => 5,
        Json::Bool(_) => 6,
    }
}

/// MySQL's order of JSON values: null, numbers, strings, objects, arrays, booleans; numbers of all types by value, strings by their bytes.
pub fn compare(a: &Json, b: &Json) -> Ordering {
    match (a, b) {
        (Json::Int(a), Json::Int(b)) => a.cmp(b),
        (Json::Double(a), Json::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Json::String(a), Json::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
        (Json::Array(a), Json::Array(b)) => {
            a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
        }
        (Json::Object(a), Json::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
            let by_member = |((k, v), (l, w)): ((&str, &Json), (&str, &Json))| key_order(k, l).then_with(|| compare(v, w));
            a.iter().zip(b.iter()).map(by_member).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        _ => rank(a).cmp(&rank(b)).then_with(|| match (Digits::of(a), Digits::of(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => Ordering::Equal,
        }),
    }
}

/// A number as `0.digits * 10^exponent`: the first digit and the last are not zero. Zero has no digits.
/// A double is what it prints as, so 0.1 is equal to the decimal 0.1; one without a fraction is exact while it has at most 19 digits.
#[derive(PartialEq, Eq)]
struct Digits {
    negative: bool,
    exponent: i32,
    digits: Vec<u8>,
}

impl Digits {
    fn of(value: &Json) -> Option<Digits> {
        Some(match value {
            Json::Int(v) => Digits::parse(&v.to_string()),
            Json::UInt(v) => Digits::parse(&v.to_string()),
            Json::Decimal(v) => Digits::parse(&v.to_string()),
            Json::Double(v) if v.fract() == 0.0 && v.abs() < 1e19 => Digits::parse(&(*v as i128).to_string()),
            Json::Double(v) => Digits::parse(&double_to_string(*v)),
            _ => return None,
        })
    }

    /// Of `[-]digits[.digits][e[-]digits]`.
    fn parse(text: &str) -> Digits {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        let exponent = exponent.parse::<i32>().unwrap_or(0) + (whole.len() as i32 - zeros as i32);
        digits.drain(..zeros);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let zero = digits.is_empty();
        Digits { negative: negative && !zero, exponent: if zero { 0 } else { exponent }, digits }
    }

    fn push_key(&self, out: &mut Vec<u8>) {
        if self.digits.is_empty() {
            out.push(1);
            return;
        }
        out.push(if self.negative { 0 } else { 2 });
        let start = out.len();
        out.extend_from_slice(&((self.exponent as u32) ^ 1 << 31).to_be_bytes());
        // Behind the last digit comes less than any digit.
        out.extend(self.digits.iter().map(|digit| digit + 1));
        out.push(0);
        if self.negative {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

impl Ord for Digits {
    fn cmp(&self, other: &Digits) -> Ordering {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.push_key(&mut a);
        other.push_key(&mut b);
        a.cmp(&b)
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Digits) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Appends bytes that compare by memcmp as the values do by [`compare`]. A key ends itself: none is the prefix of another.
pub fn push_key(value: &Json, out: &mut Vec<u8>) {
    out.push(rank(value));
    match value {
        Json::Null => {}
        Json::Bool(truth) => out.push(u8::from(*truth)),
        Json::String(text) => push_text(text, out),
        Json::Array(values) => {
            values.iter().for_each(|value| push_key(value, out));
            out.push(0);
        }
        Json::Object(members) => {
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (key, value) in members.iter() {
                out.extend_from_slice(&(key.len() as u32).to_be_bytes());
                out.extend_from_slice(key.as_bytes());
                push_key(value, out);
            }
        }
        Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) => {
            if let Some(digits) = Digits::of(value) {
                digits.push_key(out);
            }
        }
    }
}

/// Bytes ended by two zeros; a zero within is followed by one more than that.
fn push_text(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        out.push(byte);
        if byte == 0 {
            out.push(1);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_normal;

    /// In ascending order; on one line what is equal.
    const ORDERED: &[&[&str]] = &[
        &["null"],
        &["-1e300"],
        &["-12345678901234567890123.02"],
        &["-12345678901234567890123.01"],
        &["-2.5", "-2.50", "-25e-1"],
        &["-2"],
        &["-0.001"],
        &["0", "0.0", "-0.0", "0.00"],
        &["1e-300"],
        &["0.1", "0.10", "1e-1"],
        &["1", "1.0", "1.00"],
        &["1.5", "1.50"],
        &["9"],
        &["10", "1e1"],
        &["100"],
        &["9007199254740992", "9007199254740992.0"],
        &["9007199254740993"],
        &["9223372036854775807"],
        &["9223372036854775808.0"],
        &["18446744073709551615"],
        &["1e20"],
        &["1e300"],
        &["\"\""],
        &["\"\\u0000\""],
        &["\"\\u0000a\""],
        &["\"1\""],
        &["\"A\""],
        &["\"a\""],
        &["\"aa\""],
        &["\"é\""],
        &["{}"],
        &[r#"{"a": 1}"#, r#"{"a": 1.0}"#],
        &[r#"{"a": 2}"#],
        &[r#"{"b": 0}"#],
        &[r#"{"aa": 0}"#],
        &[r#"{"a": 0, "b": 0}"#],
        &["[]"],
        &["[null]"],
        &["[1]", "[1.0]"],
        &["[1, 0]"],
        &["[1, 0, 0]"],
        &["[1, 1]"],
        &["[\"a\"]"],
        &["[\"a\", 1]"],
        &["[{}]"],
        &["[[]]"],
        &["[[], 1]"],
        &["[false]"],
        &["false"],
        &["true"],
    ];

    #[test]
    fn keys_have_the_order_of_the_values() {
        let all: Vec<(usize, Json)> =
            ORDERED.iter().enumerate().flat_map(|(i, texts)| texts.iter().map(move |text| (i, parse_normal(text).unwrap()))).collect();
        let key = |value: &Json| {
            let mut out = Vec::new();
            push_key(value, &mut out);
            out
        };
        for (i, a) in &all {
            for (j, b) in &all {
                assert_eq!(compare(a, b), i.cmp(j), "{a:?} and {b:?}");
                assert_eq!(key(a).cmp(&key(b)), i.cmp(j), "keys of {a:?} and {b:?}");
            }
        }
    }
}
