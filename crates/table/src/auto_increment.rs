//! AUTO_INCREMENT: one counter per table. Who wants consecutive values from several reservations is alone with it (`auto_lock.rs`).

use highkey_types::{ColumnType, MySqlError, Value, errors};

use crate::high_water::HighWater;

/// The most values that one catalog write covers, and so the largest gap after a crash.
pub(crate) const MARK_STEP: u64 = 65_536;

/// The counter of a table's AUTO_INCREMENT column.
pub struct AutoIncrement {
    counter: HighWater,
}

/// Values `first`, `first + increment`, … , `count` of them. Fewer than asked for only at the end of the type's range; none where `increment`
/// leaves no value up to its end, and `first` is then the last one that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub first: u64,
    pub count: u64,
    pub increment: u64,
}

/// The value of an AUTO_INCREMENT column that generated ones have to pass; `None` for zero, negative and NULL ones.
pub fn explicit_value(value: &Value) -> Option<u64> {
    match *value {
        Value::Int(v) if v > 0 => Some(v as u64),
        Value::UInt(v) if v > 0 => Some(v),
        Value::Float(v) if v >= 1.0 => Some(f64::from(v) as u64),
        Value::Double(v) if v >= 1.0 => Some(v as u64),
        _ => None,
    }
}

impl AutoIncrement {
    pub(crate) fn new(counter: HighWater) -> AutoIncrement {
        AutoIncrement { counter }
    }

    /// The column is of this type.
    pub(crate) fn set_type(&self, ty: &ColumnType) {
        self.counter.set_last(largest(ty));
    }

    /// The value that the next plain insert into a column of type `ty` gets, as SHOW TABLE STATUS says.
    pub fn next(&self, ty: &ColumnType) -> u64 {
        self.counter.next().min(largest(ty))
    }

    /// Reserves `count` consecutive values of a column of type `ty`: those congruent to `offset` modulo `increment`
    /// (`auto_increment_offset`, `auto_increment_increment`; an offset above the increment counts as 0, as in MySQL).
    ///
    /// At the end of the range the largest value is given again and again, so that the insert fails with 1062, as InnoDB does. Error 1467 at the
    /// end of BIGINT UNSIGNED, whose largest value is never given.
    pub fn reserve(&self, ty: &ColumnType, count: u64, increment: u64, offset: u64) -> Result<Reservation, MySqlError> {
        let max = largest(ty);
        let increment = increment.max(1);
        let offset = if offset > increment { 0 } else { offset };
        self.counter.advance(|next| {
            if next == u64::MAX && max == u64::MAX {
                return Err(errors::autoinc_read_failed());
            }
            // A mark from before a crash may lie beyond the range.
            let Some(first) = align(next.clamp(1, max), increment, offset).filter(|&first| first <= max && first < u64::MAX) else {
                if max == u64::MAX {
                    return Err(errors::autoinc_read_failed());
                }
                let last = if increment == 1 || max < offset { max } else { max - (max - offset) % increment };
                return Ok((next, Reservation { first: last, count: 0, increment }));
            };
            let fits = (max.min(u64::MAX - 1) - first) / increment + 1;
            let count = count.max(1).min(fits);
            let last = first + (count - 1) * increment;
            Ok((next.max(last + 1), Reservation { first, count, increment }))
        })
    }

    /// A row has `value` in the column: later reservations are above it.
    pub fn note_explicit(&self, value: u64) -> Result<(), MySqlError> {
        if value < self.counter.next() {
            return Ok(());
        }
        self.counter.advance(|next| Ok((next.max(value.saturating_add(1)), ())))
    }

    /// As `note_explicit`, for a column's value. Zero, negative and NULL values push nothing.
    pub(crate) fn note_value(&self, value: &Value) -> Result<(), MySqlError> {
        explicit_value(value).map_or(Ok(()), |value| self.note_explicit(value))
    }

    pub(crate) fn reset(&self, next: u64) {
        self.counter.reset(next);
    }

    pub(crate) fn counter(&self) -> &HighWater {
        &self.counter
    }
}

/// The largest value of an AUTO_INCREMENT column; floating types count exactly up to their mantissa.
pub(crate) fn largest(ty: &ColumnType) -> u64 {
    use highkey_types::TypeKind;
    match (ty.integer_range(), &ty.kind) {
        (Some((_, max)), _) => max,
        (None, TypeKind::Float) => 1 << 24,
        _ => 1 << 53,
    }
}

/// The smallest value from `next` on that is congruent to `offset` modulo `increment`.
fn align(next: u64, increment: u64, offset: u64) -> Option<u64> {
    if increment == 1 {
        return Some(next);
    }
    if next <= offset {
        return Some(offset);
    }
    let steps = (next - offset).div_ceil(increment);
    steps.checked_mul(increment)?.checked_add(offset)
}

#[cfg(test)]
mod tests {
    use super::align;

    #[test]
    fn values_follow_increment_and_offset() {
        assert_eq!(align(1, 1, 1), Some(1));
        assert_eq!(align(1, 10, 5), Some(5));
        assert_eq!(align(6, 10, 5), Some(15));
        assert_eq!(align(15, 10, 5), Some(15));
        assert_eq!(align(u64::MAX, 10, 3), None);
    }
}
