//! The numbers that a statement gives the rows of a table with an AUTO_INCREMENT column.

use highkey_table::Table;
use highkey_types::{ColumnType, MySqlError, TypeKind, Value, errors};

use crate::session::{AutoIncrementLocking, SessionState};
use crate::variables::SqlModes;

/// A number as a value of an AUTO_INCREMENT column's type.
pub(super) fn number_value(number: u64, ty: &ColumnType) -> Value {
    match ty.kind {
        TypeKind::Float => Value::Float(number as f32),
        TypeKind::Double => Value::Double(number as f64),
        _ if ty.unsigned => Value::UInt(number),
        _ => Value::Int(number as i64),
    }
}

/// Values of the AUTO_INCREMENT column.
pub(super) struct AutoValues {
    pub column: usize,
    /// The largest value of the column's type.
    largest: u64,
    /// 0 before the first one.
    next: u64,
    pub left: u64,
    increment: u64,
    /// What was reserved, each from its first number to behind its last one: the last of these blocks is the one that `next` is of, and those between
    /// them may be others'.
    blocks: Vec<(u64, u64)>,
    /// Blocks that follow, the next one last: rows that were left out had them reserved.
    spare: Vec<(u64, u64)>,
    /// The size of the next block of a statement whose size is not known.
    pub block: u64,
    /// A block may be greater than what is needed.
    pub spares: bool,
    pub zero_is_value: bool,
}

impl AutoValues {
    /// Of a statement that begins, if the table has such a column.
    pub fn of(table: &Table, state: &SessionState) -> Option<AutoValues> {
        let column = table.auto_increment_column()?;
        Some(AutoValues {
            column,
            largest: table.largest_auto_increment().unwrap_or(u64::MAX),
            next: 0,
            left: 0,
            increment: 1,
            blocks: Vec::new(),
            spare: Vec::new(),
            block: 1,
            spares: state.instance.auto_increment_locking() != AutoIncrementLocking::Traditional,
            zero_is_value: state.mode(SqlModes::NO_AUTO_VALUE_ON_ZERO),
        })
    }

    /// A row whose column has this value asks for a number.
    pub fn is_asked(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            _ if self.zero_is_value => false,
            Value::Int(0) | Value::UInt(0) => true,
            Value::Float(f) => *f == 0.0,
            Value::Double(d) => *d == 0.0,
            _ => false,
        }
    }

    /// The next value, for the row of that number; where none is left, `count` more are reserved. Error 1467 where a statement that had
    /// values before runs out of them, and 1264 (or its warning) where its first one would be beyond the range.
    pub fn take(&mut self, state: &mut SessionState, table: &Table, count: u64, ignore: bool, row: u64) -> Result<u64, MySqlError> {
        if self.left == 0 && self.next <= self.largest {
            if let Some((first, end)) = self.spare.pop() {
                self.enter(first, self.count(first, end), self.increment);
            } else if let Some(first) = state.next_insert_id.take() {
                // SET INSERT_ID is for all rows of the statement.
                self.enter(first, u64::MAX, state.config.auto_increment_increment);
            } else {
                let reserved = table.reserve(count, state.config.auto_increment_increment, state.config.auto_increment_offset)?;
                if reserved.count == 0 {
                    let error = errors::warn_data_out_of_range(&table.columns()[self.column].name, row);
                    if state.strict() && !ignore {
                        return Err(error);
                    }
                    state.push_ignored(error);
                }
                self.enter(reserved.first, reserved.count.max(1), reserved.increment);
            }
        }
        if self.next > self.largest {
            return Err(errors::autoinc_read_failed());
        }
        let value = self.next;
        self.next = value.saturating_add(self.increment);
        self.left -= 1;
        Ok(value)
    }

    /// The next numbers are those of this block, one at least.
    fn enter(&mut self, first: u64, count: u64, increment: u64) {
        (self.next, self.left, self.increment) = (first, count, increment);
        let end = first.saturating_add((count - 1).saturating_mul(increment)).saturating_add(1);
        // It may go on where the one before ends.
        let first = self.blocks.pop_if(|(_, behind)| behind.saturating_add(increment - 1) == first).map_or(first, |(first, _)| first);
        self.blocks.push((first, end));
    }

    /// How many numbers a block has from one of them on.
    fn count(&self, from: u64, end: u64) -> u64 {
        end.saturating_sub(from).div_ceil(self.increment)
    }

    /// So many of those that are reserved have not been given.
    pub fn has_left(&self, count: u64) -> bool {
        let spare: u64 = self.spare.iter().map(|(first, end)| self.count(*first, *end)).sum();
        self.left.saturating_add(spare) >= count
    }

    /// No number is greater.
    pub fn is_last(&self, number: u64) -> bool {
        number == self.largest
    }

    /// Whether it is among what was reserved.
    pub fn has(&self, number: u64) -> bool {
        self.blocks.iter().chain(&self.spare).any(|(first, end)| (*first..*end).contains(&number))
    }

    /// A number of a row that did not go in is the next one once more, with all that follow it.
    pub fn take_back(&mut self, number: u64) {
        while let Some(block) = self.blocks.pop_if(|(first, _)| number < *first) {
            self.spare.push(block);
        }
        self.next = number;
        self.left = self.blocks.last().map_or(0, |(_, end)| self.count(number, *end));
    }

    /// A row gives a value itself: what follows is generated above it.
    pub fn pass(&mut self, given: u64) {
        while self.spare.pop_if(|(first, _)| given >= *first).is_some() {}
        if self.left > 0 && given >= self.next {
            let steps = (given - self.next) / self.increment + 1;
            self.next = self.next.saturating_add(steps.saturating_mul(self.increment));
            self.left = self.left.saturating_sub(steps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AutoValues;

    fn values() -> AutoValues {
        AutoValues {
            column: 0,
            largest: u64::MAX,
            next: 0,
            left: 0,
            increment: 1,
            blocks: Vec::new(),
            spare: Vec::new(),
            block: 1,
            spares: true,
            zero_is_value: false,
        }
    }

    #[test]
    fn numbers_between_blocks_are_nobodys() {
        let mut auto = values();
        // Other statements have what is between them.
        for first in [1, 11, 21] {
            auto.enter(first, 3, 1);
        }
        assert!(auto.has(3) && auto.has(11) && !auto.has(4) && !auto.has(14));
        auto.take_back(2);
        assert_eq!((auto.next, auto.left), (2, 2));
        assert!(auto.has_left(8) && !auto.has_left(9));
        for first in [11, 21] {
            let (block, end) = auto.spare.pop().unwrap();
            auto.enter(block, auto.count(block, end), 1);
            assert_eq!((auto.next, auto.left), (first, 3));
        }
        auto.take_back(12);
        assert_eq!((auto.next, auto.left, auto.spare.len()), (12, 2, 1));
        // A row gives 30 itself: what is left is below it.
        auto.pass(30);
        assert_eq!((auto.left, auto.spare.len()), (0, 0));
    }

    #[test]
    fn blocks_that_follow_each_other_are_one() {
        let mut auto = values();
        auto.enter(5, 2, 10);
        auto.enter(25, 1, 10);
        auto.take_back(15);
        assert_eq!((auto.next, auto.left, auto.blocks.len()), (15, 2, 1));
        // The last number that there is.
        auto.enter(u64::MAX - 5, 1, 10);
        auto.take_back(u64::MAX - 5);
        assert_eq!(auto.left, 1);
    }
}
