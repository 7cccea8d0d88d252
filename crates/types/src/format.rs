//! Values as text: the cells of the text protocol, and what CONCAT sees.

use crate::types::ALL_DIGITS;
use crate::{ColumnType, TypeKind, Value};

impl Value {
    /// Appends the cell of a column of type `ty` (text in UTF-8); false if it is NULL.  The type decides about digits:
    /// a DECIMAL's scale, fractional seconds, ZEROFILL.
    pub fn to_text(&self, ty: &ColumnType, out: &mut Vec<u8>) -> bool {
        use TypeKind as K;
        match (self, &ty.kind) {
            (Value::Null, _) => return false,
            (Value::Int(v), K::Year) => out.extend_from_slice(format!("{v:04}").as_bytes()),
            (Value::UInt(v), K::Year) => out.extend_from_slice(format!("{v:04}").as_bytes()),
            (Value::UInt(v), K::Bit(n)) => out.extend_from_slice(&v.to_be_bytes()[8 - usize::from(n.div_ceil(8)).clamp(1, 8)..]),
            (Value::Int(v), K::Bit(n)) => out.extend_from_slice(&v.to_be_bytes()[8 - usize::from(n.div_ceil(8)).clamp(1, 8)..]),
            (Value::Int(v), _) => push_padded(&itoa(v.unsigned_abs(), *v < 0), ty, out),
            (Value::UInt(v), _) => push_padded(&itoa(*v, false), ty, out),
            (Value::Decimal(v), K::Decimal { scale, .. }) => {
                let start = out.len();
                v.rescale(*scale).unwrap_or(*v).push_text(out);
                if ty.zerofill {
                    let text = out.split_off(start);
                    push_padded(&text, ty, out);
                }
            }
            (Value::Float(v), K::Float) => push_padded(fixed_or(f64::from(*v), ty, || float_to_string(*v)).as_bytes(), ty, out),
            (Value::Double(v), _) => push_padded(fixed_or(*v, ty, || double_to_string(*v)).as_bytes(), ty, out),
            (Value::DateTime(v), K::DateTime(fsp) | K::Timestamp(fsp)) => out.extend_from_slice(v.format(*fsp).as_bytes()),
            (Value::DateTime(v), K::Date) => out.extend_from_slice(v.date.to_string().as_bytes()),
            (Value::Date(v), K::DateTime(fsp) | K::Timestamp(fsp)) => {
                out.extend_from_slice(crate::DateTime::from(*v).format(*fsp).as_bytes());
            }
            (Value::Time(v), K::Time(fsp)) => out.extend_from_slice(v.format(*fsp).as_bytes()),
            (Value::Text(v) | Value::Json(v) | Value::Enum(_, v) | Value::Set(_, v), _) => out.extend_from_slice(v.as_bytes()),
            (Value::Bytes(v), _) => out.extend_from_slice(v),
            (other, _) => out.extend_from_slice(display_text(other).unwrap_or_default().as_bytes()),
        }
        true
    }
}

/// The text of a value without a column.  `None` is NULL; bytes that are not UTF-8 are replaced.
pub fn display_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Int(v) => v.to_string(),
        Value::UInt(v) => v.to_string(),
        Value::Float(v) => float_to_string(*v),
        Value::Double(v) => double_to_string(*v),
        Value::Decimal(v) => v.to_string(),
        Value::Text(v) | Value::Json(v) | Value::Enum(_, v) | Value::Set(_, v) => v.to_string(),
        Value::Bytes(v) => String::from_utf8_lossy(v).into_owned(),
        Value::Date(v) => v.to_string(),
        Value::DateTime(v) => v.to_string(),
        Value::Time(v) => v.to_string(),
    })
}

/// As MySQL prints a DOUBLE: the shortest digits that read back equal, plain up to 15 integer digits and down to
/// 10^-15, else as `d.ddde±x` without a plus sign.
pub fn double_to_string(v: f64) -> String {
    if v.is_nan() || v.is_infinite() {
        return if v.is_nan() { "nan" } else if v > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // Rust prints the shortest digits too, always plain.
    if v == 0.0 || (1e-14..1e15).contains(&v.abs()) {
        return v.to_string();
    }
    plain_or_exponential(&format!("{v:e}"))
}

/// A double in at most `width` characters, with as many digits as fit; longer only if one digit does not fit.
pub(crate) fn double_in_width(v: f64, width: usize) -> String {
    let exponential = |digits: usize| {
        let text = format!("{v:.*e}", digits - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        format!("{mantissa}e{exponent}")
    };
    (1..=17)
        .rev()
        .flat_map(|digits| [plain_or_exponential(&format!("{v:.*e}", digits - 1)), exponential(digits)])
        .find(|text| text.len() <= width)
        .unwrap_or_else(|| exponential(1))
}

/// As MySQL prints a FLOAT: six significant digits.
pub fn float_to_string(v: f32) -> String {
    if !v.is_finite() {
        return double_to_string(f64::from(v));
    }
    plain_or_exponential(&format!("{:.5e}", f64::from(v)))
}

/// my_gcvt's choice of notation, from scientific notation `d.ddde±x`.
fn plain_or_exponential(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = match digits.trim_end_matches('0') {
        "" => return format!("{sign}0"),
        digits => digits,
    };
    // Position of the point in `digits`.
    let point = exponent + 1;
    // A fraction that is there is printed, however long the integer part (1e15 but 1000000000000000.2).
    if point < -14 || (point > 15 && digits.len() <= point as usize) {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{dot}{rest}e{exponent}");
    }
    if point <= 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(-point as usize));
    }
    let point = point as usize;
    if digits.len() <= point {
        format!("{sign}{digits}{}", "0".repeat(point - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..point], &digits[point..])
    }
}

/// A finite double with `digits` digits behind the point. Zeros follow the shortest digits that read back equal: the double says no more.
pub fn double_to_fixed(v: f64, digits: usize) -> String {
    let mut text = v.to_string();
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    if fraction > digits {
        return format!("{v:.digits$}");
    }
    if fraction == 0 && digits > 0 {
        text.push('.');
    }
    text.extend(std::iter::repeat_n('0', digits - fraction));
    text
}

/// `FLOAT(M,D)` prints D digits, other floats as they need, one that is computed as a double does.
fn fixed_or(v: f64, ty: &ColumnType, free: impl FnOnce() -> String) -> String {
    match ty.float_digits {
        Some((_, ALL_DIGITS)) => double_to_string(v),
        Some((_, digits)) if v.is_finite() => double_to_fixed(v, usize::from(digits)),
        _ => free(),
    }
}

/// Decimal digits without the formatting machinery.
fn itoa(mut v: u64, negative: bool) -> smallvec::SmallVec<[u8; 24]> {
    let mut reversed = smallvec::SmallVec::<[u8; 24]>::new();
    loop {
        reversed.push(b'0' + (v % 10) as u8);
        v /= 10;
        if v == 0 {
            break;
        }
    }
    if negative {
        reversed.push(b'-');
    }
    reversed.reverse();
    reversed
}

/// Zeros up to the display width of a ZEROFILL column.
fn push_padded(text: &[u8], ty: &ColumnType, out: &mut Vec<u8>) {
    if ty.zerofill {
        let width = ty.display_length() as usize;
        out.resize(out.len() + width.saturating_sub(text.len()), b'0');
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from MySQL 8.0.12.
    #[test]
    fn doubles_and_floats() {
        for (v, text) in [
            (1e15, "1e15"),
            (1e14, "100000000000000"),
            (1.5e300, "1.5e300"),
            (1e-5, "0.00001"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (123456789.12345679, "123456789.12345679"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-0.0, "-0"),
            (f64::MAX, "1.7976931348623157e308"),
            (12345678901234567.0, "1.2345678901234568e16"),
        ] {
            assert_eq!(double_to_string(v), text);
        }
        for (v, text) in
            [(0.1f32, "0.1"), (1e10, "10000000000"), (123456.79, "123457"), (1e-5, "0.00001"), (3.4e38, "3.4e38"), (16777216.0, "16777200"), (1234567.0, "1234570")]
        {
            assert_eq!(float_to_string(v), text);
        }
    }

    #[test]
    fn cells_follow_their_type() {
        let cell = |value: Value, ty: ColumnType| {
            let mut out = Vec::new();
            assert!(value.to_text(&ty, &mut out));
            String::from_utf8(out).unwrap()
        };
        let zerofill = ColumnType { zerofill: true, unsigned: true, width: 5, ..ColumnType::new(TypeKind::Int) };
        assert_eq!(cell(Value::UInt(42), zerofill), "00042");
        assert_eq!(cell(Value::Decimal("0.333333333".parse().unwrap()), ColumnType::decimal(5, 4)), "0.3333");
        assert_eq!(cell(Value::Double(1234.5678), ColumnType { float_digits: Some((10, 2)), ..ColumnType::double() }), "1234.57");
        assert_eq!(cell(Value::Double(1.0 / 3.0), ColumnType { float_digits: Some((22, 20)), ..ColumnType::double() }), "0.33333333333333330000");
        assert_eq!(cell(Value::Double(1e23), ColumnType { float_digits: Some((22, 1)), ..ColumnType::double() }), "100000000000000000000000.0");
        assert_eq!(cell(Value::Float(0.1), ColumnType { float_digits: Some((12, ALL_DIGITS)), ..ColumnType::new(TypeKind::Float) }), "0.10000000149011612");
        assert_eq!(cell(Value::UInt(0), ColumnType::new(TypeKind::Year)), "0000");
        assert_eq!(cell(Value::Int(i64::MIN), ColumnType::bigint()), "-9223372036854775808");
        assert!(!Value::Null.to_text(&ColumnType::bigint(), &mut Vec::new()));
    }
}

/// A string literal that any server reads as `text`, if its sql_mode has no NO_BACKSLASH_ESCAPES: as SHOW CREATE TABLE writes one.
pub fn string_literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("''"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}
