//! Bit operators: on 64-bit integers, or byte by byte on binary strings (MySQL 8).

use highkey_types::{Value, errors};

use super::FuncId;
use super::call::{Result, Types};
use crate::expr::EvalContext;
use crate::expr::convert::{to_bytes, to_decimal, to_u64};

/// An operand as a 64-bit pattern: negative numbers wrap, fractions round.
fn pattern(value: &Value, cx: &mut dyn EvalContext) -> u64 {
    match value {
        Value::Int(n) => *n as u64,
        Value::UInt(n) => *n,
        Value::Double(d) if *d < 0.0 => d.round_ties_even() as i64 as u64,
        Value::Double(d) => d.round_ties_even() as u64,
        Value::Decimal(d) if d.is_negative() => d.to_i64().unwrap_or(i64::MIN) as u64,
        Value::Decimal(d) => d.to_u64().unwrap_or(u64::MAX),
        Value::Text(_) | Value::Bytes(_) => {
            let decimal = to_decimal(value, cx);
            decimal.map_or(0, |d| {
                let whole = d.truncate(0);
                if whole.is_negative() { whole.to_i64().unwrap_or(i64::MIN) as u64 } else { whole.to_u64().unwrap_or(u64::MAX) }
            })
        }
        _ => to_u64(value, cx).unwrap_or(0),
    }
}

pub(super) fn operator(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    if func == FuncId::BitCount {
        let ones = match &args[0] {
            Value::Bytes(bytes) => bytes.iter().map(|b| u64::from(b.count_ones())).sum(),
            other => u64::from(pattern(other, cx).count_ones()),
        };
        return Ok(Value::Int(ones as i64));
    }
    if types.result.ty.is_binary() {
        return binary(func, args, cx);
    }
    let a = pattern(&args[0], cx);
    let shift = |cx: &mut dyn EvalContext| pattern(&args[1], cx);
    Ok(Value::UInt(match func {
        FuncId::BitNot => !a,
        FuncId::BitAnd => a & pattern(&args[1], cx),
        FuncId::BitOr => a | pattern(&args[1], cx),
        FuncId::BitXor => a ^ pattern(&args[1], cx),
        FuncId::ShiftLeft => u32::try_from(shift(cx)).ok().and_then(|n| a.checked_shl(n)).unwrap_or(0),
        _ => u32::try_from(shift(cx)).ok().and_then(|n| a.checked_shr(n)).unwrap_or(0),
    }))
}

fn binary(func: FuncId, args: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    let a = to_bytes(&args[0]).unwrap_or_default();
    match func {
        FuncId::BitNot => return Ok(Value::Bytes(a.iter().map(|b| !b).collect())),
        FuncId::ShiftLeft | FuncId::ShiftRight => {
            let by = pattern(&args[1], cx);
            return Ok(Value::Bytes(shift(&a, by, func == FuncId::ShiftLeft)));
        }
        _ => {}
    }
    let b = to_bytes(&args[1]).unwrap_or_default();
    if a.len() != b.len() {
        return Err(errors::invalid_bitwise_operands_size());
    }
    let combine = |x: u8, y: u8| match func {
        FuncId::BitAnd => x & y,
        FuncId::BitOr => x | y,
        _ => x ^ y,
    };
    Ok(Value::Bytes(a.iter().zip(b.iter()).map(|(x, y)| combine(*x, *y)).collect()))
}

fn shift(bytes: &[u8], by: u64, left: bool) -> Vec<u8> {
    let length = bytes.len();
    let mut result = vec![0u8; length];
    if by >= length as u64 * 8 {
        return result;
    }
    let (whole, bits) = (by as usize / 8, (by % 8) as u32);
    for (i, out) in result.iter_mut().enumerate() {
        let source = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().map_or(0, u16::from);
        let joined = if left {
            source(Some(i + whole)) << 8 | source(Some(i + whole + 1))
        } else {
            let at = i.checked_sub(whole);
            source(at.and_then(|a| a.checked_sub(1))) << 8 | source(at)
        };
        *out = if left { (joined << bits >> 8) as u8 } else { (joined >> bits) as u8 };
    }
    result
}
