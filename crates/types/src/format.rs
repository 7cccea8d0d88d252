//! Values as text.
use crate::{ColumnType, Value};
impl Value {
    /// Appends the text-protocol bytes (in UTF-8 for text) of a value of type `ty`; false if it is NULL.
    pub fn to_text(&self, _ty: &ColumnType, _out: &mut Vec<u8>) -> bool { unimplemented!() }
}
/// The text of a value without a column: what CONCAT sees.  `None` is NULL.
pub fn display_text(_value: &Value) -> Option<String> { unimplemented!() }
/// As MySQL prints DOUBLE.
pub fn double_to_string(_v: f64) -> String { unimplemented!() }
/// As MySQL prints FLOAT.
pub fn float_to_string(_v: f32) -> String { unimplemented!() }
