//! Numbers: from one form to another, and arithmetic.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, Decimal256Array, PrimitiveArray};
use datafusion::arrow::buffer::{NullBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{Decimal128Type, Decimal256Type, Float64Type, Int64Type, UInt16Type, UInt64Type, i256};
use highkey_types::{Decimal, I256};

use super::{Arithmetic, Operand};
use crate::df::repr::{Repr, from_i256};

/// 10^n for scales, where it fits 128 bits.
fn power(n: u8) -> Option<i128> {
    10i128.checked_pow(u32::from(n))
}

fn wide_power(n: u8) -> i256 {
    i256::from_i128(10).wrapping_pow(u32::from(n))
}

fn scale_of(repr: Repr) -> u8 {
    match repr {
        Repr::Decimal(scale) | Repr::WideDecimal(scale) => scale,
        _ => 0,
    }
}

/// Integers and 128-bit decimals as `i128`, unscaled.
fn as_i128(array: &ArrayRef, repr: Repr) -> Option<Decimal128Array> {
    Some(match repr {
        Repr::Int => array.as_primitive::<Int64Type>().unary(i128::from),
        Repr::UInt => array.as_primitive::<UInt64Type>().unary(i128::from),
        Repr::Decimal(_) => array.as_primitive::<Decimal128Type>().clone(),
        _ => return None,
    })
}

fn as_i256(array: &ArrayRef, repr: Repr) -> Option<Decimal256Array> {
    Some(match repr {
        Repr::WideDecimal(_) => array.as_primitive::<Decimal256Type>().clone(),
        _ => as_i128(array, repr)?.unary(i256::from_i128),
    })
}

/// The double nearest to `unscaled / 10^scale`.
fn decimal_to_double(unscaled: i128, scale: u8) -> f64 {
    // Both operands are exact, so the division rounds once.
    if unscaled.unsigned_abs() < 1 << 53 && scale <= 22 {
        unscaled as f64 / 10f64.powi(i32::from(scale))
    } else {
        Decimal::new(I256::from(unscaled), scale).to_f64()
    }
}

pub(super) fn to_doubles(array: &ArrayRef, from: Repr) -> PrimitiveArray<Float64Type> {
    match from {
        Repr::Int => array.as_primitive::<Int64Type>().unary(|v| v as f64),
        Repr::UInt | Repr::Set => array.as_primitive::<UInt64Type>().unary(|v| v as f64),
        Repr::Enum => array.as_primitive::<UInt16Type>().unary(f64::from),
        Repr::Decimal(scale) => array.as_primitive::<Decimal128Type>().unary(|v| decimal_to_double(v, scale)),
        Repr::WideDecimal(scale) => array.as_primitive::<Decimal256Type>().unary(|v| match v.to_i128() {
            Some(v) => decimal_to_double(v, scale),
            None => Decimal::new(from_i256(v), scale).to_f64(),
        }),
        _ => array.as_primitive::<Float64Type>().clone(),
    }
}

pub(super) fn to_decimals(array: &ArrayRef, from: Repr, to: Repr) -> Option<ArrayRef> {
    let (have, want) = (scale_of(from), scale_of(to));
    if let (Repr::Decimal(_), Some(values)) = (to, as_i128(array, from)) {
        let result: Option<Decimal128Array> = if want >= have {
            let factor = power(want - have)?;
            try_unary(&values, |v| product(v, factor))
        } else {
            let divisor = power(have - want)?;
            try_unary(&values, |v| Some(round_divide(v, divisor)))
        };
        return Some(Arc::new(result?.with_data_type(to.data_type())));
    }
    let values = as_i256(array, from)?;
    let wide: Decimal256Array = if want >= have {
        let factor = wide_power(want - have);
        try_unary(&values, |v| v.checked_mul(factor))?
    } else {
        let divisor = wide_power(have - want);
        try_unary(&values, |v| Some(round_divide_wide(v, divisor)))?
    };
    match to {
        Repr::WideDecimal(_) => Some(Arc::new(wide.with_data_type(to.data_type()))),
        _ => {
            let narrow: Decimal128Array = try_unary(&wide, i256::to_i128)?;
            Some(Arc::new(narrow.with_data_type(to.data_type())))
        }
    }
}

/// By what `to_decimals` multiplies the numbers of 128 bits at most, if it does not round them.
pub(super) fn decimal_times(from: Repr, to: Repr) -> Option<i128> {
    match from {
        Repr::Int | Repr::UInt | Repr::Decimal(_) => power(scale_of(to).checked_sub(scale_of(from))?),
        _ => None,
    }
}

fn round_divide(value: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (value / divisor, value % divisor);
    if rest.abs() >= divisor - rest.abs() { quotient + value.signum() } else { quotient }
}

fn round_divide_wide(value: i256, divisor: i256) -> i256 {
    let quotient = value.wrapping_div(divisor);
    let rest = value.wrapping_rem(divisor).wrapping_abs();
    if rest.wrapping_add(rest) >= divisor { quotient.wrapping_add(i256::from_i128(if value.is_negative() { -1 } else { 1 })) } else { quotient }
}

/// `op` of every value; `None` as soon as `op` has no result for one that is not NULL.
fn try_unary<A: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    array: &PrimitiveArray<A>,
    op: impl Fn(A::Native) -> Option<O::Native>,
) -> Option<PrimitiveArray<O>> {
    let mut out = vec![O::Native::default(); array.len()];
    let all = out.iter_mut().zip(array.values());
    match array.nulls() {
        None => {
            for (out, &value) in all {
                *out = op(value)?;
            }
        }
        Some(nulls) => {
            for ((out, &value), valid) in all.zip(nulls) {
                if valid {
                    *out = op(value)?;
                }
            }
        }
    }
    Some(PrimitiveArray::new(ScalarBuffer::from(out), array.nulls().cloned()))
}

/// The same for two arrays, of which either may be a single value for all rows.
fn try_binary<A: ArrowPrimitiveType, B: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    left: (&PrimitiveArray<A>, bool),
    right: (&PrimitiveArray<B>, bool),
    rows: usize,
    op: impl Fn(A::Native, B::Native) -> Option<O::Native>,
) -> Option<PrimitiveArray<O>> {
    match (left, right) {
        ((l, true), (r, false)) => {
            if l.is_null(0) {
                return Some(PrimitiveArray::new_null(rows));
            }
            let l = l.value(0);
            try_unary(r, |r| op(l, r))
        }
        ((l, false), (r, true)) => {
            if r.is_null(0) {
                return Some(PrimitiveArray::new_null(rows));
            }
            let r = r.value(0);
            try_unary(l, |l| op(l, r))
        }
        ((l, _), (r, _)) => {
            let nulls = NullBuffer::union(l.nulls(), r.nulls());
            let mut out = vec![O::Native::default(); l.len()];
            let all = out.iter_mut().zip(l.values()).zip(r.values());
            match &nulls {
                None => {
                    for ((out, &a), &b) in all {
                        *out = op(a, b)?;
                    }
                }
                Some(nulls) => {
                    for (((out, &a), &b), valid) in all.zip(nulls) {
                        if valid {
                            *out = op(a, b)?;
                        }
                    }
                }
            }
            Some(PrimitiveArray::new(ScalarBuffer::from(out), nulls))
        }
    }
}

/// `op`, which has a result for all, of values that fit 64 bits, those of NULLs too; `None` if one does not. Either side may be a single value for all rows.
fn small_binary<O: ArrowPrimitiveType>(
    left: (&Decimal128Array, bool),
    right: (&Decimal128Array, bool),
    rows: usize,
    op: impl Fn(i64, i64) -> O::Native,
) -> Option<PrimitiveArray<O>> {
    // Known behind the last row: one pass for both.
    let mut large = 0i128;
    let mut small = |value: i128| {
        large |= i128::from(value as i64) ^ value;
        value as i64
    };
    let (values, nulls): (Vec<O::Native>, _) = match (left, right) {
        ((l, true), (r, false)) => {
            if l.is_null(0) {
                return Some(PrimitiveArray::new_null(rows));
            }
            let l = small(l.value(0));
            (r.values().iter().map(|&r| op(l, small(r))).collect(), r.nulls().cloned())
        }
        ((l, false), (r, true)) => {
            if r.is_null(0) {
                return Some(PrimitiveArray::new_null(rows));
            }
            let r = small(r.value(0));
            (l.values().iter().map(|&l| op(small(l), r)).collect(), l.nulls().cloned())
        }
        ((l, _), (r, _)) => (l.values().iter().zip(r.values()).map(|(&l, &r)| op(small(l), small(r))).collect(), NullBuffer::union(l.nulls(), r.nulls())),
    };
    (large == 0).then(|| PrimitiveArray::new(values.into(), nulls))
}

/// The product, quickly where both are small.
fn product(a: i128, b: i128) -> Option<i128> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => Some(i128::from(a) * i128::from(b)),
        _ => a.checked_mul(b),
    }
}

pub(super) fn arithmetic(op: Arithmetic, left: (&Operand, Repr), right: (&Operand, Repr), output: Repr, rows: usize) -> Option<ArrayRef> {
    let (l, r) = (left.0, right.0);
    match output {
        Repr::Double => {
            let (a, b) = (to_doubles(&l.array, left.1), to_doubles(&r.array, right.1));
            let finite = |v: f64| v.is_finite().then_some(v);
            let result = try_binary::<_, _, Float64Type>((&a, l.single), (&b, r.single), rows, |a, b| match op {
                Arithmetic::Add => finite(a + b),
                Arithmetic::Sub => finite(a - b),
                Arithmetic::Mul => finite(a * b),
                Arithmetic::Div if b != 0.0 => finite(a / b),
                _ => None,
            });
            Some(Arc::new(result?))
        }
        Repr::Int | Repr::UInt => {
            let (a, b) = (as_i128(&l.array, left.1)?, as_i128(&r.array, right.1)?);
            let exact = |a: i128, b: i128| match op {
                Arithmetic::Add => Some(a + b),
                Arithmetic::Sub => Some(a - b),
                Arithmetic::Mul => product(a, b),
                Arithmetic::IntDiv if b != 0 => Some(a / b),
                Arithmetic::Mod if b != 0 => Some(a % b),
                _ => None,
            };
            Some(if output == Repr::Int {
                let result =
                    try_binary::<_, _, Int64Type>((&a, l.single), (&b, r.single), rows, |a, b| exact(a, b).and_then(|v| i64::try_from(v).ok()));
                Arc::new(result?)
            } else {
                let result =
                    try_binary::<_, _, UInt64Type>((&a, l.single), (&b, r.single), rows, |a, b| exact(a, b).and_then(|v| u64::try_from(v).ok()));
                Arc::new(result?)
            })
        }
        Repr::Decimal(scale) => {
            let (a, b) = (as_i128(&l.array, left.1)?, as_i128(&r.array, right.1)?);
            let (a, b) = ((&a, l.single), (&b, r.single));
            let result = match op {
                Arithmetic::Mul => small_binary::<Decimal128Type>(a, b, rows, |a, b| i128::from(a) * i128::from(b))
                    .or_else(|| try_binary::<_, _, Decimal128Type>(a, b, rows, product)),
                Arithmetic::Add | Arithmetic::Sub => {
                    let (f, g) = (power(scale - scale_of(left.1))?, power(scale - scale_of(right.1))?);
                    let minus = op == Arithmetic::Sub;
                    let small = match (i64::try_from(f), i64::try_from(g)) {
                        // Two products of 64 bits each.
                        (Ok(f), Ok(g)) => small_binary::<Decimal128Type>(a, b, rows, |a, b| {
                            let (a, b) = (i128::from(a) * i128::from(f), i128::from(b) * i128::from(g));
                            if minus { a - b } else { a + b }
                        }),
                        _ => None,
                    };
                    small.or_else(|| {
                        try_binary::<_, _, Decimal128Type>(a, b, rows, |a, b| {
                            let (a, b) = (product(a, f)?, product(b, g)?);
                            if minus { a.checked_sub(b) } else { a.checked_add(b) }
                        })
                    })
                }
                _ => None,
            };
            Some(Arc::new(result?.with_data_type(output.data_type())))
        }
        Repr::WideDecimal(scale) => {
            let narrow = Cell::new(true);
            let result = match (op, as_i128(&l.array, left.1), as_i128(&r.array, right.1)) {
                (Arithmetic::Mul, Some(a), Some(b)) => {
                    let (a, b) = ((&a, l.single), (&b, r.single));
                    // The usual product: wide by its declared digits, narrow by its values.
                    small_binary::<Decimal256Type>(a, b, rows, |a, b| i256::from_i128(i128::from(a) * i128::from(b))).or_else(|| {
                        try_binary::<_, _, Decimal256Type>(a, b, rows, |a, b| match product(a, b) {
                            Some(product) => Some(i256::from_i128(product)),
                            None => {
                                narrow.set(false);
                                i256::from_i128(a).checked_mul(i256::from_i128(b))
                            }
                        })
                    })
                }
                _ => {
                    narrow.set(false);
                    let (a, b) = (as_i256(&l.array, left.1)?, as_i256(&r.array, right.1)?);
                    match op {
                        Arithmetic::Mul => try_binary::<_, _, Decimal256Type>((&a, l.single), (&b, r.single), rows, |a, b| a.checked_mul(b)),
                        Arithmetic::Add | Arithmetic::Sub => {
                            let (f, g) = (wide_power(scale - scale_of(left.1)), wide_power(scale - scale_of(right.1)));
                            let minus = op == Arithmetic::Sub;
                            try_binary::<_, _, Decimal256Type>((&a, l.single), (&b, r.single), rows, |a, b| {
                                let (a, b) = (a.checked_mul(f)?, b.checked_mul(g)?);
                                if minus { a.checked_sub(b) } else { a.checked_add(b) }
                            })
                        }
                        _ => None,
                    }
                }
            }?;
            // MySQL's DECIMAL ends at 65 digits.
            let limit = wide_power(65);
            if !narrow.get() && result.iter().flatten().any(|v| v >= limit || v <= limit.wrapping_neg()) {
                return None;
            }
            Some(Arc::new(result.with_data_type(output.data_type())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of numbers that fit 64 bits, of some that just do not, of NULLs, and of one number for all rows: exact.
    #[test]
    fn small_and_large_decimals_are_computed_exactly() {
        let edges = [0, 7, -7, i128::from(i64::MAX), i128::from(i64::MAX) + 1, i128::from(i64::MIN), i128::from(i64::MIN) - 1];
        let array = |values: Vec<Option<i128>>| -> ArrayRef { Arc::new(Decimal128Array::from(values).with_data_type(Repr::Decimal(2).data_type())) };
        for edge in edges {
            let left: Vec<Option<i128>> = (0..40).map(|i| if i == 33 { Some(edge) } else { (i % 6 != 5).then_some(i * 1001 - 20_000) }).collect();
            for other in edges {
                let right: Vec<Option<i128>> = (0..40).map(|i| if i == 34 { None } else { Some(other + i % 2) }).collect();
                for (op, output) in [(Arithmetic::Add, Repr::Decimal(3)), (Arithmetic::Sub, Repr::Decimal(3)), (Arithmetic::Mul, Repr::Decimal(4)), (Arithmetic::Mul, Repr::WideDecimal(4))] {
                    let exact = |a: Option<i128>, b: Option<i128>| {
                        let (a, b) = (i256::from_i128(a?), i256::from_i128(b?));
                        let ten = i256::from_i128(10);
                        Some(match op {
                            Arithmetic::Add => a.wrapping_mul(ten).wrapping_add(b.wrapping_mul(ten)),
                            Arithmetic::Sub => a.wrapping_mul(ten).wrapping_sub(b.wrapping_mul(ten)),
                            _ => a.wrapping_mul(b),
                        })
                    };
                    let check = |l: (&[Option<i128>], bool), r: (&[Option<i128>], bool)| {
                        let operand = |(values, single): (&[Option<i128>], bool)| Operand { array: array(values.to_vec()), single };
                        let repr = Repr::Decimal(2);
                        let found = arithmetic(op, (&operand(l), repr), (&operand(r), repr), output, 40).unwrap();
                        let found: Vec<Option<i256>> = match output {
                            Repr::WideDecimal(_) => found.as_primitive::<Decimal256Type>().iter().collect(),
                            _ => found.as_primitive::<Decimal128Type>().iter().map(|v| v.map(i256::from_i128)).collect(),
                        };
                        let at = |(values, single): (&[Option<i128>], bool), row: usize| if single { values[0] } else { values[row] };
                        let expected: Vec<Option<i256>> = (0..40).map(|row| exact(at(l, row), at(r, row))).collect();
                        assert_eq!(found, expected, "{edge} {op:?} {other}");
                    };
                    check((&left[..], false), (&right[..], false));
                    check((&left[..], false), (&[Some(other)][..], true));
                    check((&[Some(edge)][..], true), (&right[..], false));
                    check((&[None][..], true), (&right[..], false));
                }
            }
        }
    }

    #[test]
    fn products_of_large_numbers_are_exact_or_none() {
        let big = i128::from(i64::MAX) * 4;
        assert_eq!(product(i128::from(i64::MIN), i128::from(i64::MIN)), Some(1 << 126));
        assert_eq!(product(big, -3), Some(big * -3));
        assert_eq!(product(i128::MAX / 2, 3), None);
    }
}
