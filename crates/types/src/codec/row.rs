//! Encoded rows.
use crate::{ColumnType, I256, Value, Date, DateTime, Time};

/// Where each column of a table's rows lies.
#[derive(Clone, Debug)]
pub struct RowLayout { types: Vec<ColumnType> }
impl RowLayout {
    pub fn new(types: &[ColumnType]) -> RowLayout { RowLayout { types: types.to_vec() } }
    pub fn types(&self) -> &[ColumnType] { &self.types }
    /// Appends the row.  Values must be stored values (see [`store`](crate::store())) of the layout's types.
    pub fn encode(&self, _values: &[Value], _out: &mut Vec<u8>) { unimplemented!() }
    pub fn is_null(&self, _row: &[u8], _col: usize) -> bool { unimplemented!() }
    pub fn value(&self, _row: &[u8], _col: usize) -> Value { unimplemented!() }
    pub fn values(&self, _row: &[u8]) -> Vec<Value> { unimplemented!() }
    /// Integer columns, signed or unsigned up to i64::MAX; `None` is NULL.
    pub fn int(&self, _row: &[u8], _col: usize) -> Option<i64> { unimplemented!() }
    /// Unsigned integers, BIT, YEAR, ENUM index and SET bits.
    pub fn uint(&self, _row: &[u8], _col: usize) -> Option<u64> { unimplemented!() }
    /// FLOAT and DOUBLE.
    pub fn double(&self, _row: &[u8], _col: usize) -> Option<f64> { unimplemented!() }
    /// The unscaled DECIMAL.
    pub fn decimal(&self, _row: &[u8], _col: usize) -> Option<I256> { unimplemented!() }
    /// The unscaled DECIMAL of precision up to 38.
    pub fn decimal_i128(&self, _row: &[u8], _col: usize) -> Option<i128> { unimplemented!() }
    pub fn date(&self, _row: &[u8], _col: usize) -> Option<Date> { unimplemented!() }
    /// DATETIME and TIMESTAMP.
    pub fn datetime(&self, _row: &[u8], _col: usize) -> Option<DateTime> { unimplemented!() }
    pub fn time(&self, _row: &[u8], _col: usize) -> Option<Time> { unimplemented!() }
    /// The stored bytes of a text (UTF-8), binary or JSON column.
    pub fn bytes<'r>(&self, _row: &'r [u8], _col: usize) -> Option<&'r [u8]> { unimplemented!() }
}
