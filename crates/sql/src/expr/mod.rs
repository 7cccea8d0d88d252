//! The evaluator: bound expressions over rows of [`Value`](highkey_types::Value). See `README.md`.

mod cast;
mod compare;
mod context;
pub(crate) mod convert;
mod eval;
mod warns;

pub(crate) use cast::cast_typed;
pub use compare::compare_values;
pub(crate) use compare::{deciding, moment, order};
pub(crate) use context::Turn;
pub use context::{EvalContext, Raised, SharedContext, is_strict_error};
pub use eval::{eval, eval_condition};
pub use warns::Warns;

use highkey_types::Value;

/// What a value takes in memory, about.
pub(crate) fn value_bytes(value: &Value) -> usize {
    let long = match value {
        Value::Text(text) | Value::Json(text) | Value::Enum(_, text) | Value::Set(_, text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Value>() + long
}

/// What the values of a row take.
pub(crate) fn row_bytes(row: &[Value]) -> usize {
    row.iter().map(value_bytes).sum()
}
