//! Sums, means, variances and bit operations.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, Float64Array, Int64Array, UInt64Array};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, UInt64Type, i256};
use datafusion::common::{Result, exec_err};

use super::{BitOperation, GroupState};
use crate::df::parallel::OrderWatch;
use crate::df::repr::{DECIMAL256_DIGITS, Repr};

/// SUM and AVG of integers and decimals. Sums are `i128`; a sum that would overflow moves into `carried`, an `i256` per group that
/// does not exist until then, so the usual case stays on 128 bits and no sum is ever wrong.
#[derive(Debug)]
pub(super) struct ExactSum {
    input: Repr,
    input_scale: u8,
    output: DataType,
    mean: bool,
    sums: Vec<i128>,
    carried: Vec<i256>,
    counts: Vec<i64>,
}

impl ExactSum {
    pub fn new(input: Repr, output: &DataType, mean: bool) -> ExactSum {
        let input_scale = match input {
            Repr::Decimal(scale) | Repr::WideDecimal(scale) => scale,
            _ => 0,
        };
        ExactSum { input, input_scale, output: output.clone(), mean, sums: Vec::new(), carried: Vec::new(), counts: Vec::new() }
    }

    fn add(&mut self, group: usize, value: i128) {
        match self.sums[group].checked_add(value) {
            Some(sum) => self.sums[group] = sum,
            None => {
                let old = std::mem::replace(&mut self.sums[group], value);
                self.carry(group, i256::from_i128(old));
            }
        }
    }

    fn carry(&mut self, group: usize, value: i256) {
        if self.carried.len() < self.sums.len() {
            self.carried.resize(self.sums.len(), i256::ZERO);
        }
        self.carried[group] = self.carried[group].wrapping_add(value);
    }

    fn total(&self, group: usize) -> i256 {
        let carried = self.carried.get(group).copied().unwrap_or(i256::ZERO);
        carried.wrapping_add(i256::from_i128(self.sums[group]))
    }

    /// Adds values that all fit 64 bits together, where there are few groups; false: they were not added. `bits` has all that tells a value from a
    /// small one: the value itself, or its complement if it is negative.
    fn add_small<T: ArrowPrimitiveType>(&mut self, values: &ArrayRef, groups: &[usize], sign: i64, bits: impl Fn(T::Native) -> u128, small: impl Fn(T::Native) -> i64) -> bool {
        let values = values.as_primitive::<T>();
        let all = self.sums.len();
        // A batch may have no rows, and none before it had any.
        if all * LANES >= groups.len() / 4 || values.null_count() > 0 {
            return false;
        }
        // Rows in turn have sums of their own: one group's addition waits for the one before it. What a large value adds is nonsense.
        let mut parts = vec![(0i64, 0i64); all * LANES];
        let mut widest = 0u128;
        for (row, (&group, &value)) in groups.iter().zip(values.values()).enumerate() {
            widest |= bits(value);
            let (sum, count) = &mut parts[group * LANES + row % LANES];
            *sum = sum.wrapping_add(small(value));
            *count += 1;
        }
        if widest >= i64::MAX as u128 / groups.len() as u128 {
            return false;
        }
        for (group, parts) in parts.chunks_exact(LANES).enumerate() {
            let (sum, count) = parts.iter().fold((0, 0), |(sum, count), part| (sum + part.0, count + part.1));
            self.add(group, i128::from(sum * sign));
            self.counts[group] += count * sign;
        }
        true
    }

    fn each<T: ArrowPrimitiveType>(&mut self, values: &ArrayRef, groups: &[usize], sign: i64, mut add: impl FnMut(&mut Self, usize, T::Native)) {
        let values = values.as_primitive::<T>();
        if values.null_count() == 0 {
            for (&group, &value) in groups.iter().zip(values.values()) {
                add(self, group, value);
                self.counts[group] += sign;
            }
        } else {
            for (row, &group) in groups.iter().enumerate() {
                if values.is_valid(row) {
                    add(self, group, values.value(row));
                    self.counts[group] += sign;
                }
            }
        }
    }

    fn accumulate(&mut self, values: &ArrayRef, groups: &[usize], sign: i64) {
        let signed = |v: i128| if sign < 0 { -v } else { v };
        let added = match self.input {
            Repr::UInt | Repr::Set => self.add_small::<UInt64Type>(values, groups, sign, u128::from, |v| v as i64),
            Repr::Decimal(_) => self.add_small::<Decimal128Type>(values, groups, sign, |v| (v ^ (v >> 127)) as u128, |v| v as i64),
            Repr::WideDecimal(_) => self.add_small::<Decimal256Type>(values, groups, sign, wide_bits, |v| v.to_parts().0 as i64),
            _ => self.add_small::<Int64Type>(values, groups, sign, |v| (v ^ (v >> 63)) as u128, |v| v),
        };
        if added {
            return;
        }
        match self.input {
            Repr::UInt | Repr::Set => self.each::<UInt64Type>(values, groups, sign, |s, g, v| s.add(g, signed(i128::from(v)))),
            Repr::Decimal(_) => self.each::<Decimal128Type>(values, groups, sign, |s, g, v| s.add(g, signed(v))),
            Repr::WideDecimal(_) => self.each::<Decimal256Type>(values, groups, sign, |s, g, v| {
                let v = if sign < 0 { v.wrapping_neg() } else { v };
                match v.to_i128() {
                    Some(v) => s.add(g, v),
                    None => s.carry(g, v),
                }
            }),
            _ => self.each::<Int64Type>(values, groups, sign, |s, g, v| s.add(g, signed(i128::from(v)))),
        }
    }

    fn output_scale(&self) -> u8 {
        match self.output {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => scale as u8,
            _ => 0,
        }
    }

    /// `up` and `down` take the total from the input's scale to the output's; one of them is 1.
    fn result(&self, group: usize, up: i256, down: i256) -> Option<i256> {
        let count = self.counts[group];
        if count == 0 {
            return None;
        }
        let total = self.total(group).wrapping_mul(up);
        let divisor = if self.mean { i256::from_i128(i128::from(count)).wrapping_mul(down) } else { down };
        Some(if divisor == i256::ONE { total } else { divide_rounded(total, divisor) })
    }
}

/// Sums that a group has while a batch is added up.
const LANES: usize = 4;

/// What tells a number from a small one.
fn wide_bits(value: i256) -> u128 {
    let (low, high) = value.to_parts();
    let sign = high >> 127;
    (low ^ sign as u128) | (high ^ sign) as u128
}

/// Division rounded half away from zero.
fn divide_rounded(dividend: i256, divisor: i256) -> i256 {
    let quotient = dividend.wrapping_div(divisor);
    let rest = dividend.wrapping_sub(quotient.wrapping_mul(divisor)).wrapping_abs();
    if rest.wrapping_add(rest) >= divisor {
        quotient.wrapping_add(i256::from_i128(if dividend.is_negative() { -1 } else { 1 }))
    } else {
        quotient
    }
}

impl GroupState for ExactSum {
    fn resize(&mut self, len: usize) {
        self.sums.resize(len, 0);
        self.counts.resize(len, 0);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.accumulate(&args[0], groups, 1);
        Ok(())
    }

    fn retract(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.accumulate(&args[0], groups, -1);
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let sums = states[0].as_primitive::<Decimal256Type>();
        let counts = states[1].as_primitive::<Int64Type>();
        for (row, &group) in groups.iter().enumerate() {
            match sums.value(row).to_i128() {
                Some(sum) => self.add(group, sum),
                None => self.carry(group, sums.value(row)),
            }
            self.counts[group] += counts.value(row);
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let scale = self.output_scale();
        let ten = i256::from_i128(10);
        let up = ten.wrapping_pow(u32::from(scale.saturating_sub(self.input_scale)));
        let down = ten.wrapping_pow(u32::from(self.input_scale.saturating_sub(scale)));
        let results = (0..len).map(|group| self.result(group, up, down));
        Ok(match &self.output {
            DataType::Decimal128(..) => {
                let values: Decimal128Array = results.map(|v| v.and_then(i256::to_i128)).collect();
                Arc::new(values.with_data_type(self.output.clone()))
            }
            DataType::Decimal256(..) => {
                let values: Decimal256Array = results.collect();
                Arc::new(values.with_data_type(self.output.clone()))
            }
            other => return exec_err!("an exact sum is a decimal, not {other}"),
        })
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        let sums = Decimal256Array::from_iter_values((0..len).map(|g| self.total(g))).with_data_type(self.partial_types()[0].clone());
        Ok(vec![Arc::new(sums), Arc::new(Int64Array::from(self.counts[..len].to_vec()))])
    }

    fn forget(&mut self, len: usize) {
        self.sums.drain(..len);
        self.counts.drain(..len);
        self.carried.drain(..len.min(self.carried.len()));
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::Decimal256(DECIMAL256_DIGITS, self.input_scale as i8), DataType::Int64]
    }

    fn bytes(&self) -> usize {
        self.sums.capacity() * 16 + self.counts.capacity() * 8 + self.carried.capacity() * 32
    }
}

/// SUM and AVG of doubles, added in row order.
#[derive(Debug)]
pub(super) struct DoubleSum {
    mean: bool,
    watch: OrderWatch,
    sums: Vec<f64>,
    counts: Vec<i64>,
    /// Kept while the order is watched: bounds within which no order of the values would round.
    exactness: Vec<Exactness>,
}

/// Whether values can be added up in any order without rounding: all of them are multiples of 2^step, and all partial sums are at most
/// `magnitude`, so below 2^53 steps every partial sum is a double.
#[derive(Clone, Copy, Debug)]
struct Exactness {
    magnitude: f64,
    step: i32,
}

impl Exactness {
    const NOTHING: Exactness = Exactness { magnitude: 0.0, step: i32::MAX };

    fn of(value: f64) -> Exactness {
        if value == 0.0 {
            return Exactness::NOTHING;
        }
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        // Subnormal numbers have no hidden bit; infinity and NaN never hold.
        let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        Exactness { magnitude: value.abs(), step: exponent + mantissa.trailing_zeros() as i32 }
    }

    fn and(self, other: Exactness) -> Exactness {
        Exactness { magnitude: self.magnitude + other.magnitude, step: self.step.min(other.step) }
    }

    fn holds(self) -> bool {
        self.step == i32::MAX || (self.magnitude.is_finite() && self.magnitude <= 2f64.powi(self.step.saturating_add(53)))
    }
}

impl DoubleSum {
    pub fn new(mean: bool, watch: OrderWatch) -> DoubleSum {
        DoubleSum { mean, watch, sums: Vec::new(), counts: Vec::new(), exactness: Vec::new() }
    }

    fn note(&mut self, group: usize, exactness: Exactness) {
        let known = &mut self.exactness[group];
        *known = known.and(exactness);
        if !known.holds() {
            self.watch.raise();
        }
    }
}

impl GroupState for DoubleSum {
    fn resize(&mut self, len: usize) {
        self.sums.resize(len, 0.0);
        self.counts.resize(len, 0);
        self.exactness.resize(len, Exactness::NOTHING);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let values = args[0].as_primitive::<Float64Type>();
        let watching = self.watch.is_watching();
        for (row, &group) in groups.iter().enumerate() {
            if values.is_valid(row) {
                self.sums[group] += values.value(row);
                self.counts[group] += 1;
                if watching {
                    self.note(group, Exactness::of(values.value(row)));
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let sums = states[0].as_primitive::<Float64Type>();
        let counts = states[1].as_primitive::<Int64Type>();
        let magnitudes = states[2].as_primitive::<Float64Type>();
        let steps = states[3].as_primitive::<Int64Type>();
        let watching = self.watch.is_watching();
        for (row, &group) in groups.iter().enumerate() {
            self.sums[group] += sums.value(row);
            self.counts[group] += counts.value(row);
            if watching {
                self.note(group, Exactness { magnitude: magnitudes.value(row), step: steps.value(row) as i32 });
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let mean = self.mean;
        let results = self.sums[..len].iter().zip(&self.counts).map(|(&sum, &count)| match count {
            0 => None,
            _ if mean => Some(sum / count as f64),
            _ => Some(sum),
        });
        Ok(Arc::new(results.collect::<Float64Array>()))
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        let exactness = &self.exactness[..len];
        Ok(vec![
            Arc::new(Float64Array::from(self.sums[..len].to_vec())),
            Arc::new(Int64Array::from(self.counts[..len].to_vec())),
            Arc::new(Float64Array::from_iter_values(exactness.iter().map(|e| e.magnitude))),
            Arc::new(Int64Array::from_iter_values(exactness.iter().map(|e| i64::from(e.step)))),
        ])
    }

    fn forget(&mut self, len: usize) {
        self.sums.drain(..len);
        self.counts.drain(..len);
        self.exactness.drain(..len);
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::Float64, DataType::Int64, DataType::Float64, DataType::Int64]
    }

    fn bytes(&self) -> usize {
        (self.sums.capacity() + self.counts.capacity()) * 8 + self.exactness.capacity() * size_of::<Exactness>()
    }
}

/// Variance by Welford's recurrence, as MySQL computes it; partial states merge by Chan's formula.
#[derive(Debug)]
pub(super) struct Variance {
    sample: bool,
    root: bool,
    counts: Vec<i64>,
    means: Vec<f64>,
    squares: Vec<f64>,
}

impl Variance {
    pub fn new(sample: bool, root: bool) -> Variance {
        Variance { sample, root, counts: Vec::new(), means: Vec::new(), squares: Vec::new() }
    }
}

impl GroupState for Variance {
    fn resize(&mut self, len: usize) {
        self.counts.resize(len, 0);
        self.means.resize(len, 0.0);
        self.squares.resize(len, 0.0);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let values = args[0].as_primitive::<Float64Type>();
        for (row, &group) in groups.iter().enumerate() {
            if values.is_null(row) {
                continue;
            }
            let value = values.value(row);
            self.counts[group] += 1;
            let delta = value - self.means[group];
            self.means[group] += delta / self.counts[group] as f64;
            self.squares[group] += delta * (value - self.means[group]);
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let counts = states[0].as_primitive::<Int64Type>();
        let means = states[1].as_primitive::<Float64Type>();
        let squares = states[2].as_primitive::<Float64Type>();
        for (row, &group) in groups.iter().enumerate() {
            let (left, right) = (self.counts[group] as f64, counts.value(row) as f64);
            if right == 0.0 {
                continue;
            }
            let delta = means.value(row) - self.means[group];
            self.squares[group] += squares.value(row) + delta * delta * left * right / (left + right);
            self.means[group] += delta * right / (left + right);
            self.counts[group] += counts.value(row);
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let least = i64::from(self.sample);
        let results = (0..len).map(|g| {
            let count = self.counts[g];
            (count > least).then(|| {
                let variance = self.squares[g] / (count - least) as f64;
                if self.root { variance.sqrt() } else { variance }
            })
        });
        Ok(Arc::new(results.collect::<Float64Array>()))
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            Arc::new(Int64Array::from(self.counts[..len].to_vec())),
            Arc::new(Float64Array::from(self.means[..len].to_vec())),
            Arc::new(Float64Array::from(self.squares[..len].to_vec())),
        ])
    }

    fn forget(&mut self, len: usize) {
        self.counts.drain(..len);
        self.means.drain(..len);
        self.squares.drain(..len);
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::Int64, DataType::Float64, DataType::Float64]
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * 24
    }
}

/// BIT_AND, BIT_OR, BIT_XOR over 64 bits. An empty group has the neutral value, never NULL.
#[derive(Debug)]
pub(super) struct Bits {
    operation: BitOperation,
    bits: Vec<u64>,
}

impl Bits {
    pub fn new(operation: BitOperation) -> Bits {
        Bits { operation, bits: Vec::new() }
    }
}

impl GroupState for Bits {
    fn resize(&mut self, len: usize) {
        self.bits.resize(len, if self.operation == BitOperation::And { u64::MAX } else { 0 });
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let values = args[0].as_primitive::<UInt64Type>();
        for (row, &group) in groups.iter().enumerate() {
            if values.is_valid(row) {
                let bits = &mut self.bits[group];
                match self.operation {
                    BitOperation::And => *bits &= values.value(row),
                    BitOperation::Or => *bits |= values.value(row),
                    BitOperation::Xor => *bits ^= values.value(row),
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        Ok(Arc::new(UInt64Array::from(self.bits[..len].to_vec())))
    }

    fn forget(&mut self, len: usize) {
        self.bits.drain(..len);
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::UInt64]
    }

    fn bytes(&self) -> usize {
        self.bits.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_past_128_bits_is_exact() {
        let output = DataType::Decimal256(76, 0);
        let mut sum = ExactSum::new(Repr::Decimal(0), &output, false);
        sum.resize(1);
        let big: ArrayRef = Arc::new(Decimal128Array::from(vec![i128::MAX / 2; 5]).with_data_type(DataType::Decimal128(38, 0)));
        sum.update(&[big], &[0; 5]).unwrap();
        let expected = i256::from_i128(i128::MAX / 2).wrapping_mul(i256::from_i128(5));
        assert_eq!(sum.evaluate(1).unwrap().as_primitive::<Decimal256Type>().value(0), expected);
    }

    #[test]
    fn sums_of_doubles_are_exact_in_any_order_or_known_not_to_be() {
        let all = |values: &[f64]| values.iter().fold(Exactness::NOTHING, |known, &v| known.and(Exactness::of(v))).holds();
        assert!(all(&[0.25, 1e6, -3.5, 0.0]) && all(&[]) && all(&[4e18]));
        // The sum is 0 or 1.
        assert!(!all(&[1e16, 1.0, -1e16]));
        assert!(!all(&[0.1, 0.2, 0.3]) && !all(&[f64::INFINITY]) && !all(&[5e-324, 1.0]));
    }

    /// Of few groups, of many, with large values and with NULLs: the same as one by one.
    #[test]
    fn small_values_are_added_up_as_others_are() {
        let rows = 4000;
        let values = |edge: i128| (0..rows as i128).map(move |row| if row == 77 { edge } else { (row * 7919 % 20_001 - 10_000) * 1_000_003 });
        for (edge, has_null) in [(5, false), (-5, false), (i128::from(i64::MAX), false), (i128::from(i64::MIN), false), (i128::MAX, false), (i128::MIN + 1, false), (5, true)] {
            for of_groups in [1, 3, 900] {
                let groups: Vec<usize> = (0..rows).map(|row| row * 31 % of_groups).collect();
                let mut expected = vec![(i256::ZERO, 0i64); of_groups];
                for (row, (&group, value)) in groups.iter().zip(values(edge)).enumerate() {
                    if !has_null || row != 9 {
                        expected[group] = (expected[group].0.wrapping_add(i256::from_i128(value)), expected[group].1 + 1);
                    }
                }
                let present = || (0..rows).map(|row| !has_null || row != 9);
                let narrow: ArrayRef = Arc::new(values(edge).zip(present()).map(|(v, p)| p.then_some(v)).collect::<Decimal128Array>());
                let wide: ArrayRef = Arc::new(values(edge).zip(present()).map(|(v, p)| p.then_some(i256::from_i128(v))).collect::<Decimal256Array>());
                for (input, array) in [(Repr::Decimal(0), narrow), (Repr::WideDecimal(0), wide)] {
                    let mut sum = ExactSum::new(input, &DataType::Decimal256(76, 0), false);
                    sum.resize(of_groups);
                    sum.update(&[array.clone()], &groups).unwrap();
                    let found: Vec<(i256, i64)> = (0..of_groups).map(|g| (sum.total(g), sum.counts[g])).collect();
                    assert_eq!(found, expected, "{edge} {of_groups} {input:?}");
                    sum.retract(&[array], &groups).unwrap();
                    assert!((0..of_groups).all(|g| sum.total(g) == i256::ZERO && sum.counts[g] == 0));
                }
            }
        }
    }

    #[test]
    fn batches_without_rows_may_come_before_groups() {
        let mut sum = ExactSum::new(Repr::Int, &DataType::Decimal256(65, 0), false);
        let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
        sum.update(&[none.clone()], &[]).unwrap();
        sum.resize(1);
        sum.update(&[none], &[]).unwrap();
        sum.update(&[Arc::new(Int64Array::from(vec![2; 40]))], &[0; 40]).unwrap();
        assert_eq!((sum.total(0), sum.counts[0]), (i256::from_i128(80), 40));
    }

    #[test]
    fn means_round_half_away_from_zero() {
        let at = |a, b| divide_rounded(i256::from_i128(a), i256::from_i128(b)).as_i128();
        assert_eq!([at(5, 2), at(-5, 2), at(7, 3), at(-7, 3), at(8, 3)], [3, -3, 2, -2, 3]);
    }
}
