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
