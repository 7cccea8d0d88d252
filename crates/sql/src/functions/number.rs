//! Numeric functions.

use highkey_types::{TypeKind, Value};

use super::FuncId;
use super::call::{Result, Types};
use crate::expr::EvalContext;
use crate::expr::convert::{out_of_range, to_decimal, to_f64, to_i64, to_text, to_u64, warn};

fn real(n: f64, func: FuncId, args: &[Value]) -> Result<Value> {
    if n.is_finite() {
        return Ok(Value::Double(n));
    }
    let shown: Vec<_> = args.iter().map(|a| to_text(a).unwrap_or_default().into_owned()).collect();
    Err(out_of_range("DOUBLE", &format!("{}({})", func.name().to_lowercase(), shown.join(","))))
}

/// NULL outside of a function's domain, with a warning for logarithms.
fn logarithm(n: f64, base: Option<f64>, cx: &mut dyn EvalContext) -> Value {
    let bad = n <= 0.0 || base.is_some_and(|b| b <= 0.0 || b == 1.0);
    if bad {
        warn(cx, 3020, "Invalid argument for logarithm");
        return Value::Null;
    }
    Value::Double(base.map_or_else(|| n.ln(), |b| n.ln() / b.ln()))
}

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    match func {
        F::Abs => return abs(&args[0], types, cx),
        F::Ceiling | F::Floor => return whole(func, &args[0], types, cx),
        F::Round | F::Truncate => return round(func == F::Truncate, args, types, cx),
        F::Sign => {
            let n = to_f64(&args[0], cx).unwrap_or(0.0);
            return Ok(Value::Int(if n > 0.0 { 1 } else { -i64::from(n < 0.0) }));
        }
        F::Pi => return Ok(Value::Double(std::f64::consts::PI)),
        F::Rand => return Ok(Value::Double(rand(args.first(), Some(0), cx))),
        F::Crc32 => return Ok(Value::UInt(u64::from(crc32(&super::string::encoded(&args[0], types.arg(0)))))),
        F::Conv => {
            let from = to_i64(&args[1], cx);
            // Bits are their number, and no digits of a base.
            let decimal = matches!(types.arg(0).ty.kind, TypeKind::Bit(_)) && from.is_some_and(is_base);
            return Ok(conv(&args[0], if decimal { Some(10) } else { from }, to_i64(&args[2], cx)));
        }
        F::Bin => return Ok(conv(&args[0], Some(10), Some(2))),
        F::Oct => return Ok(conv(&args[0], Some(10), Some(8))),
        _ => {}
    }
    let x = to_f64(&args[0], cx).unwrap_or(0.0);
    match func {
        F::Acos => Ok(if x.abs() > 1.0 { Value::Null } else { Value::Double(x.acos()) }),
        F::Asin => Ok(if x.abs() > 1.0 { Value::Null } else { Value::Double(x.asin()) }),
        F::Atan | F::Atan2 => match args.get(1) {
            Some(y) => {
                let y = to_f64(y, cx).unwrap_or(0.0);
                Ok(Value::Double(x.atan2(y)))
            }
            None => Ok(Value::Double(x.atan())),
        },
        F::Cos => real(x.cos(), func, args),
        F::Sin => real(x.sin(), func, args),
        F::Tan => real(x.tan(), func, args),
        F::Cot => {
            let tan = x.tan();
            real(1.0 / tan, func, args)
        }
        F::Degrees => real(x.to_degrees(), func, args),
        F::Radians => real(x.to_radians(), func, args),
        F::Exp => real(x.exp(), func, args),
        F::Ln => Ok(logarithm(x, None, cx)),
        F::Log => match args.get(1) {
            None => Ok(logarithm(x, None, cx)),
            Some(n) => {
                let n = to_f64(n, cx).unwrap_or(0.0);
                Ok(logarithm(n, Some(x), cx))
            }
        },
        F::Log10 | F::Log2 => {
            if x <= 0.0 {
                warn(cx, 3020, "Invalid argument for logarithm");
                return Ok(Value::Null);
            }
            Ok(Value::Double(if func == F::Log10 { x.log10() } else { x.log2() }))
        }
        F::Pow => {
            let y = to_f64(&args[1], cx).unwrap_or(0.0);
            real(x.powf(y), func, args)
        }
        _ => Ok(if x < 0.0 { Value::Null } else { Value::Double(x.sqrt()) }),
    }
}

fn abs(value: &Value, types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    Ok(match value {
        Value::Int(n) => match n.checked_abs() {
            Some(n) => Value::Int(n),
            None => return Err(out_of_range("BIGINT", &format!("abs({n})"))),
        },
        Value::UInt(n) => Value::UInt(*n),
        Value::Decimal(d) => Value::Decimal(d.abs()),
        _ if types.result.ty.is_integer() => Value::Int(to_i64(value, cx).unwrap_or(0).saturating_abs()),
        _ => Value::Double(to_f64(value, cx).unwrap_or(0.0).abs()),
    })
}

fn whole(func: FuncId, value: &Value, types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    Ok(match value {
        Value::Int(_) | Value::UInt(_) => value.clone(),
        Value::Decimal(d) => {
            let d = if func == FuncId::Ceiling { d.ceil() } else { d.floor() };
            match (types.result.ty.is_integer(), d.to_i64()) {
                (true, Some(n)) => Value::Int(n),
                _ => Value::Decimal(d),
            }
        }
        _ if types.result.ty.is_integer() => {
            let n = to_i64(value, cx).unwrap_or(0);
            if types.result.ty.unsigned { Value::UInt(n as u64) } else { Value::Int(n) }
        }
        _ => {
            let n = to_f64(value, cx).unwrap_or(0.0);
            Value::Double(if func == FuncId::Ceiling { n.ceil() } else { n.floor() })
        }
    })
}

fn round(truncate: bool, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let digits = match args.get(1) {
        None => 0,
        Some(Value::UInt(n)) => i64::try_from(*n).unwrap_or(i64::MAX),
        Some(digits) => to_i64(digits, cx).unwrap_or(0),
    };
    let digits = digits.clamp(-100, 400) as i32;
    Ok(match (&args[0], types.result.ty.kind.clone()) {
        (_, TypeKind::Decimal { scale, .. }) => {
            let Some(d) = to_decimal(&args[0], cx) else { return Ok(Value::Null) };
            let d = if truncate { d.truncate(digits) } else { d.round(digits) };
            Value::Decimal(d.rescale(scale).unwrap_or(d))
        }
        (value, _) if types.result.ty.is_integer() => return round_integer(truncate, value, digits, types, cx),
        (value, _) => {
            let n = to_f64(value, cx).unwrap_or(0.0);
            Value::Double(round_double(n, digits, truncate))
        }
    })
}

fn round_integer(truncate: bool, value: &Value, digits: i32, types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let n: i128 = match value {
        Value::Int(n) => i128::from(*n),
        Value::UInt(n) => i128::from(*n),
        _ if types.result.ty.unsigned => i128::from(to_u64(value, cx).unwrap_or(0)),
        // A parameter that turns out to be a fraction keeps its own kind.
        Value::Decimal(d) => return Ok(Value::Decimal(if truncate { d.truncate(digits) } else { d.round(digits) })),
        Value::Double(d) => return Ok(Value::Double(round_double(*d, digits, truncate))),
        _ => i128::from(to_i64(value, cx).unwrap_or(0)),
    };
    let rounded = if digits >= 0 {
        n
    } else if digits < -38 {
        0
    } else {
        let unit = 10i128.pow(digits.unsigned_abs());
        let cut = n / unit * unit;
        if !truncate && (n - cut).abs() * 2 >= unit { cut + unit * n.signum() } else { cut }
    };
    if types.result.ty.unsigned {
        return u64::try_from(rounded).map(Value::UInt).map_err(|_| out_of_range("BIGINT UNSIGNED", &format!("round({n},{digits})")));
    }
    i64::try_from(rounded).map(Value::Int).map_err(|_| out_of_range("BIGINT", &format!("round({n},{digits})")))
}

/// MySQL's my_double_round: halves go to the even neighbour, as rint() does.
fn round_double(value: f64, digits: i32, truncate: bool) -> f64 {
    let unit = 10f64.powi(digits.abs());
    if digits < 0 && unit.is_infinite() {
        return 0.0;
    }
    let scaled = if digits < 0 { value / unit } else { value * unit };
    if digits >= 0 && !scaled.is_finite() {
        return value;
    }
    let whole = if truncate { scaled.trunc() } else { scaled.round_ties_even() };
    if digits < 0 { whole * unit } else { whole / unit }
}

/// RAND([seed]): MySQL's generator of two linear congruences.
///
/// A constant seed starts one sequence for the call at `site` in the statement; without a site every call starts anew,
/// as it does for a seed that changes from row to row.
pub(crate) fn rand(seed: Option<&Value>, site: Option<usize>, cx: &mut dyn EvalContext) -> f64 {
    const MODULUS: u64 = 0x3FFF_FFFF;
    let Some(seed) = seed else { return cx.random() };
    let seed = to_i64(seed, cx).unwrap_or(0) as u32;
    let start = || {
        let first = seed.wrapping_mul(0x10001).wrapping_add(55_555_555);
        let second = seed.wrapping_mul(0x1000_0001);
        ((u64::from(first) % MODULUS) as u32, (u64::from(second) % MODULUS) as u32)
    };
    let (a, b) = site.and_then(|site| *cx.random_state(site)).unwrap_or_else(start);
    let a = (u64::from(a) * 3 + u64::from(b)) % MODULUS;
    let b = (a + u64::from(b) + 33) % MODULUS;
    if let Some(site) = site {
        *cx.random_state(site) = Some((a as u32, b as u32));
    }
    a as f64 / MODULUS as f64
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// CONV counts in it, with the sign or without.
fn is_base(base: i64) -> bool {
    (2..=36).contains(&base.unsigned_abs())
}

/// CONV: digits of one base in another; a negative base means signed.
fn conv(value: &Value, from: Option<i64>, to: Option<i64>) -> Value {
    let (Some(from), Some(to)) = (from, to) else { return Value::Null };
    if !is_base(from) || !is_base(to) {
        return Value::Null;
    }
    let text = match value {
        Value::Double(d) => to_text(&Value::Int(d.trunc() as i64)).unwrap_or_default().into_owned(),
        Value::Decimal(d) => d.truncate(0).to_string(),
        _ => to_text(value).unwrap_or_default().into_owned(),
    };
    if text.is_empty() {
        return Value::Null;
    }
    let trimmed = text.trim_start();
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let radix = from.unsigned_abs() as u32;
    let magnitude = digits.chars().map_while(|c| c.to_digit(radix)).try_fold(0u64, |n, digit| n.checked_mul(radix.into())?.checked_add(digit.into()));
    let number = match magnitude {
        // A signed base has the numbers of a BIGINT.
        _ if from < 0 && negative => magnitude.unwrap_or(u64::MAX).min(i64::MIN.unsigned_abs()).wrapping_neg(),
        _ if from < 0 => magnitude.unwrap_or(u64::MAX).min(i64::MAX as u64),
        Some(n) if negative => n.wrapping_neg(),
        Some(n) => n,
        // MySQL's answer to what is too small; it is the greatest number where the first digit is a letter.
        None if negative && digits.starts_with(|c: char| c.is_ascii_digit()) => 0,
        None => u64::MAX,
    };
    let target = to.unsigned_abs();
    let (sign, mut rest) = if to < 0 && (number as i64) < 0 { ("-", (number as i64).unsigned_abs()) } else { ("", number) };
    let mut out = Vec::new();
    loop {
        let digit = char::from_digit((rest % target) as u32, target as u32).unwrap_or('0');
        out.push(digit.to_ascii_uppercase());
        rest /= target;
        if rest == 0 {
            break;
        }
    }
    out.extend(sign.chars());
    Value::from(out.iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_of_doubles_is_to_even() {
        assert_eq!(round_double(2.5, 0, false), 2.0);
        assert_eq!(round_double(-1.55, 1, true), -1.5);
        assert_eq!(round_double(1234.5, -2, false), 1200.0);
    }

    #[test]
    fn checksum() {
        assert_eq!(crc32(b"MySQL"), 3_259_397_556);
    }
}
