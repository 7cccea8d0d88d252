//! `+ - * / DIV %` and unary minus: exact for integers and decimals, errors when the result does not fit.

use highkey_types::{Decimal, TypeKind, Value};

use super::FuncId;
use super::call::{Result, Types};
use crate::expr::EvalContext;
use crate::plan::ExprType;
use crate::expr::convert::{division_by_zero, out_of_range, to_decimal, to_f64, to_text};

/// An operand as arithmetic sees it.
enum Number {
    Int(i128),
    Decimal(Decimal),
    Double(f64),
}

fn number(value: &Value, cx: &mut dyn EvalContext) -> Number {
    match value {
        Value::Int(n) => Number::Int(i128::from(*n)),
        Value::UInt(n) => Number::Int(i128::from(*n)),
        Value::Decimal(d) => Number::Decimal(*d),
        Value::Enum(n, _) => Number::Double(f64::from(*n)),
        Value::Set(n, _) => Number::Double(*n as f64),
        Value::Date(d) => Number::Int(i128::from(d.to_number())),
        Value::DateTime(d) if d.micros == 0 => Number::Int(i128::from(d.to_number())),
        Value::Time(t) if t.subsec_micros() == 0 => Number::Int(i128::from(t.to_number())),
        Value::DateTime(_) | Value::Time(_) => Number::Decimal(to_decimal(value, cx).unwrap_or(Decimal::ZERO)),
        _ => Number::Double(to_f64(value, cx).unwrap_or(0.0)),
    }
}

pub(super) fn operator(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    // The common case first.
    if let (FuncId::Add | FuncId::Sub | FuncId::Mul, [Value::Int(a), Value::Int(b)]) = (func, args)
        && !types.result.ty.unsigned
    {
        let exact = match func {
            FuncId::Add => a.checked_add(*b),
            FuncId::Sub => a.checked_sub(*b),
            _ => a.checked_mul(*b),
        };
        if let (Some(n), true) = (exact, types.result.ty.kind == TypeKind::BigInt) {
            return Ok(Value::Int(n));
        }
    }
    if func == FuncId::Neg {
        return negate(&args[0], types, cx);
    }
    let (a, b) = (number(&args[0], cx), number(&args[1], cx));
    if func == FuncId::IntDiv {
        return int_div(a, b, args, types, cx);
    }
    // The static type decides what literals and columns make; a parameter's value may ask for more.
    let real = types.result.ty.is_real() || matches!(a, Number::Double(_)) || matches!(b, Number::Double(_));
    if real {
        return doubles(func, double(&a), double(&b), args, cx);
    }
    let exact = matches!(types.result.ty.kind, TypeKind::Decimal { .. }) || func == FuncId::Div;
    match (a, b) {
        (Number::Int(a), Number::Int(b)) if !exact => integers(func, a, b, args, types, cx),
        (a, b) => decimals(func, decimal(a), decimal(b), args, types, cx),
    }
}

fn double(n: &Number) -> f64 {
    match n {
        Number::Int(n) => *n as f64,
        Number::Decimal(d) => d.to_f64(),
        Number::Double(d) => *d,
    }
}

fn decimal(n: Number) -> Decimal {
    match n {
        Number::Int(n) => Decimal::from_i128(n, 0),
        Number::Decimal(d) => d,
        Number::Double(d) => Decimal::from_f64(d).unwrap_or(Decimal::ZERO),
    }
}

/// The expression as error 1690 shows it.
fn shown(func: FuncId, args: &[Value]) -> String {
    let operand = |i: usize| args.get(i).and_then(to_text).unwrap_or_default().into_owned();
    match func {
        FuncId::Neg => format!("-({})", operand(0)),
        _ => format!("({} {} {})", operand(0), if func == FuncId::Mod { "%" } else { func.name() }, operand(1)),
    }
}

/// An integer result in the range of its type.
fn integer(n: i128, func: FuncId, args: &[Value], types: &Types<'_>) -> Result<Value> {
    if types.result.ty.unsigned {
        return u64::try_from(n).map(Value::UInt).map_err(|_| out_of_range("BIGINT UNSIGNED", &shown(func, args)));
    }
    match i64::try_from(n) {
        Ok(n) => Ok(Value::Int(n)),
        // An unsigned parameter under a type that did not know it.
        Err(_) if !knows_unsigned(types) && args.iter().any(|a| matches!(a, Value::UInt(_))) && u64::try_from(n).is_ok() => Ok(Value::UInt(n as u64)),
        Err(_) => Err(out_of_range("BIGINT", &shown(func, args))),
    }
}

/// An operand is known to have no sign: the result has one because it is to (NO_UNSIGNED_SUBTRACTION).
fn knows_unsigned(types: &Types<'_>) -> bool {
    (0..2).any(|i| types.arg(i).ty.unsigned)
}

fn integers(func: FuncId, a: i128, b: i128, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let result = match func {
        FuncId::Add => a + b,
        FuncId::Sub => a - b,
        FuncId::Mul => match a.checked_mul(b) {
            Some(n) => n,
            None => return Err(out_of_range(if types.result.ty.unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }, &shown(func, args))),
        },
        _ => {
            if b == 0 {
                return division_by_zero(cx);
            }
            a % b
        }
    };
    integer(result, func, args, types)
}

fn doubles(func: FuncId, a: f64, b: f64, args: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    let result = match func {
        FuncId::Add => a + b,
        FuncId::Sub => a - b,
        FuncId::Mul => a * b,
        _ if b == 0.0 => return division_by_zero(cx),
        FuncId::Div => a / b,
        _ => a % b,
    };
    if result.is_finite() { Ok(Value::Double(result)) } else { Err(out_of_range("DOUBLE", &shown(func, args))) }
}

fn decimals(func: FuncId, a: Decimal, b: Decimal, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let result = match func {
        FuncId::Add => a.add(&b),
        FuncId::Sub => a.sub(&b),
        FuncId::Mul => a.mul(&b),
        _ if b.is_zero() => return division_by_zero(cx),
        FuncId::Div => {
            let increment = match types.result.ty.kind {
                TypeKind::Decimal { scale, .. } => scale.saturating_sub(types.arg(0).decimal_digits().1 as u8),
                _ => 4,
            };
            a.div_unrounded(&b, increment)
        }
        _ => a.rem(&b),
    };
    result.map(Value::Decimal).ok_or_else(|| out_of_range("DECIMAL", &shown(func, args)))
}

/// A decimal with the scale of its type: what leaves an expression.
pub(crate) fn rounded(value: Value, ty: &ExprType) -> Value {
    match (&value, &ty.ty.kind) {
        (Value::Decimal(d), TypeKind::Decimal { scale, .. }) if d.scale() != *scale => Value::Decimal(d.rescale(*scale).unwrap_or(*d)),
        _ => value,
    }
}

fn int_div(a: Number, b: Number, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    if let (Number::Int(a), Number::Int(b)) = (&a, &b) {
        if *b == 0 {
            return division_by_zero(cx);
        }
        return integer(a / b, FuncId::IntDiv, args, types);
    }
    let (a, b) = (decimal(a), decimal(b));
    if b.is_zero() {
        return division_by_zero(cx);
    }
    let fail = || out_of_range(if types.result.ty.unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }, &shown(FuncId::IntDiv, args));
    let quotient = a.div(&b, 4).ok_or_else(fail)?;
    let whole = quotient.truncate(0);
    if types.result.ty.unsigned { whole.to_u64().map(Value::UInt).ok_or_else(fail) } else { whole.to_i64().map(Value::Int).ok_or_else(fail) }
}

fn negate(value: &Value, types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    Ok(match number(value, cx) {
        Number::Int(n) if matches!(types.result.ty.kind, TypeKind::Decimal { .. }) => Value::Decimal(Decimal::from_i128(-n, 0)),
        Number::Int(n) => Value::Int(i64::try_from(-n).map_err(|_| out_of_range("BIGINT", &shown(FuncId::Neg, std::slice::from_ref(value))))?),
        Number::Decimal(d) => Value::Decimal(d.neg()),
        Number::Double(d) => Value::Double(-d),
    })
}
