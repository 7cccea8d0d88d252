//! Aggregates over all rows, or over groups of them: COUNT, SUM, AVG, MIN, MAX, any value.

use ahash::{AHashMap, AHashSet};
use highkey_types::{Decimal, KeyPart, MySqlError, TypeKind, Value, encode_key_part};

use crate::expr;
use crate::plan::{Aggregate, AggregateFunc, Expr};
use crate::session::SessionState;

/// Groups under way, in the order in which they were met.
pub(super) struct Groups<'a> {
    exprs: &'a [Expr],
    keys: &'a [KeyPart],
    aggregates: &'a [Aggregate],
    positions: AHashMap<Vec<u8>, usize>,
    found: Vec<(Vec<Value>, Vec<Accumulator<'a>>)>,
}

impl<'a> Groups<'a> {
    pub fn new(exprs: &'a [Expr], keys: &'a [KeyPart], aggregates: &'a [Aggregate]) -> Groups<'a> {
        Groups { exprs, keys, aggregates, positions: AHashMap::new(), found: Vec::new() }
    }

    pub fn add(&mut self, row: &[Value], state: &mut SessionState) -> Result<(), MySqlError> {
        let mut values = Vec::with_capacity(self.exprs.len());
        let mut key = Vec::new();
        for (expr, part) in self.exprs.iter().zip(self.keys) {
            let value = expr::eval(expr, row, state)?;
            encode_key_part(&value, part, &mut key);
            values.push(value);
        }
        let position = *self.positions.entry(key).or_insert(self.found.len());
        if position == self.found.len() {
            self.found.push((values, self.aggregates.iter().map(Accumulator::new).collect()));
        }
        self.found[position].1.iter_mut().try_for_each(|accumulator| accumulator.add(row, state))
    }

    pub fn finish(self, state: &mut SessionState) -> Vec<Vec<Value>> {
        let finish = |(mut values, accumulators): (Vec<Value>, Vec<Accumulator<'_>>)| {
            values.extend(accumulators.into_iter().map(|a| a.finish(state)));
            values
        };
        self.found.into_iter().map(finish).collect()
    }
}

/// One aggregate under way.
pub(super) struct Accumulator<'a> {
    aggregate: &'a Aggregate,
    count: u64,
    value: Value,
    /// With DISTINCT, what has been met.
    met: Option<AHashSet<Vec<u8>>>,
}

impl<'a> Accumulator<'a> {
    pub fn new(aggregate: &'a Aggregate) -> Accumulator<'a> {
        Accumulator { aggregate, count: 0, value: Value::Null, met: aggregate.distinct.then(AHashSet::new) }
    }

    /// For COUNT(*) where rows are counted elsewhere.
    pub fn add_rows(&mut self, rows: u64) {
        self.count += rows;
    }

    /// For MIN and MAX where the index has found the value.
    pub fn set(&mut self, value: Value) {
        self.value = value;
    }

    pub fn add(&mut self, row: &[Value], state: &mut SessionState) -> Result<(), MySqlError> {
        let Some(arg) = self.aggregate.args.first() else {
            self.count += 1;
            return Ok(());
        };
        let value = expr::eval(arg, row, state)?;
        if self.aggregate.func == AggregateFunc::AnyValue {
            if self.count == 0 {
                self.value = value;
            }
            self.count += 1;
            return Ok(());
        }
        if value.is_null() || !self.is_new(&value, row, state)? {
            return Ok(());
        }
        self.count += 1;
        match self.aggregate.func {
            AggregateFunc::CountStar | AggregateFunc::Count | AggregateFunc::AnyValue => {}
            AggregateFunc::Min | AggregateFunc::Max => {
                let keep = match &self.value {
                    Value::Null => false,
                    known => {
                        let collation = arg.ty.collation();
                        let order = state.with_cast(|cx| match (&value, known) {
                            // MIN and MAX compare members as text, sorts compare them by number.
                            (Value::Enum(_, a), Value::Enum(_, b)) | (Value::Set(_, a), Value::Set(_, b)) => collation.compare(a.as_bytes(), b.as_bytes()),
                            _ => super::order_values(&value, known, collation, cx),
                        });
                        if self.aggregate.func == AggregateFunc::Min { order.is_ge() } else { order.is_le() }
                    }
                };
                if !keep {
                    self.value = value;
                }
            }
            _ => self.value = add(std::mem::take(&mut self.value), value, state)?,
        }
        Ok(())
    }

    /// The row counts: without DISTINCT always, with it if no argument is NULL and no row had the same ones. `first` is the first one's value.
    fn is_new(&mut self, first: &Value, row: &[Value], state: &mut SessionState) -> Result<bool, MySqlError> {
        let Some(met) = &mut self.met else { return Ok(true) };
        let mut key = Vec::new();
        for (i, arg) in self.aggregate.args.iter().enumerate() {
            let part = KeyPart { ty: arg.ty.ty.clone(), descending: false, prefix: None, nullable: true };
            let other = if i > 0 { expr::eval(arg, row, state)? } else { Value::Null };
            let value = if i > 0 { &other } else { first };
            if value.is_null() {
                return Ok(false);
            }
            encode_key_part(value, &part, &mut key);
        }
        Ok(met.insert(key))
    }

    pub fn finish(self, state: &mut SessionState) -> Value {
        let ty = &self.aggregate.ty.ty;
        match self.aggregate.func {
            AggregateFunc::CountStar | AggregateFunc::Count => {
                if ty.unsigned { Value::UInt(self.count) } else { Value::Int(self.count as i64) }
            }
            AggregateFunc::Avg => match self.value {
                Value::Decimal(sum) => {
                    let count = Decimal::from_i128(i128::from(self.count), 0);
                    let quotient = sum.div(&count, state.config.div_precision_increment);
                    quotient.map_or(Value::Null, |q| Value::Decimal(fit(q, &ty.kind)))
                }
                Value::Double(sum) => Value::Double(sum / self.count as f64),
                other => other,
            },
            _ => match self.value {
                Value::Decimal(sum) => Value::Decimal(fit(sum, &ty.kind)),
                other => other,
            },
        }
    }
}

/// Rounded to the scale of the result's type.
fn fit(value: Decimal, kind: &TypeKind) -> Decimal {
    match kind {
        TypeKind::Decimal { scale, .. } if *scale != value.scale() => value.rescale(*scale).unwrap_or(value),
        _ => value,
    }
}

fn add(sum: Value, value: Value, state: &mut SessionState) -> Result<Value, MySqlError> {
    let out_of_range = || crate::session::error::err(1690, "DECIMAL value is out of range in 'sum'");
    Ok(match (sum, value) {
        (Value::Null, Value::Int(n)) => Value::Decimal(Decimal::from_i128(i128::from(n), 0)),
        (Value::Null, Value::UInt(n)) => Value::Decimal(Decimal::from_i128(i128::from(n), 0)),
        // A sum begins with 0: of nothing but -0 it is 0.
        (Value::Null, Value::Float(f)) => Value::Double(f64::from(f) + 0.0),
        (Value::Null, Value::Double(d)) => Value::Double(d + 0.0),
        (Value::Null, value) => value,
        (Value::Decimal(a), Value::Decimal(b)) => Value::Decimal(a.add(&b).ok_or_else(out_of_range)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
        (Value::Double(a), value) => Value::Double(a + state.with_cast(|cx| highkey_types::cast::to_f64(&value, cx)).unwrap_or(0.0)),
        (Value::Decimal(a), value) => {
            let b = state.with_cast(|cx| highkey_types::cast::to_decimal(&value, cx)).ok_or_else(out_of_range)?;
            Value::Decimal(a.add(&b).ok_or_else(out_of_range)?)
        }
        (other, _) => other,
    })
}
