//! Assignment to a column.
use crate::{ColumnType, MySqlError, TimeZone, Value, Warning};

/// The bits of sql_mode that conversions look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SqlMode { pub no_zero_date: bool, pub no_zero_in_date: bool, pub allow_invalid_dates: bool, pub pad_char_to_full_length: bool, pub time_truncate_fractional: bool, pub error_for_division_by_zero: bool, pub no_unsigned_subtraction: bool }
/// The circumstances of an assignment.
pub struct StoreContext<'a> {
    /// STRICT_ALL_TABLES or STRICT_TRANS_TABLES.
    pub strict: bool,
    /// INSERT IGNORE and friends: errors become warnings.
    pub ignore: bool,
    pub mode: SqlMode,
    pub time_zone: &'a TimeZone,
    /// The `at row N` of messages, from 1.
    pub row: u64,
    pub warnings: &'a mut Vec<Warning>,
}
/// Converts `value` to what the column `column` of type `ty` stores; NULL stays NULL.
pub fn store(_value: Value, _ty: &ColumnType, _column: &str, _cx: &mut StoreContext) -> Result<Value, MySqlError> { unimplemented!() }
