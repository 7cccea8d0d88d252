//! The evaluator: bound expressions over rows of [`Value`](highkey_types::Value). See `README.md`.

mod context;

pub use context::EvalContext;

use highkey_types::{ColumnType, MySqlError, Value};

use crate::plan::Expr;

/// The value of `expr` for `row`.
pub fn eval(expr: &Expr, row: &[Value], cx: &mut dyn EvalContext) -> Result<Value, MySqlError> {
    let _ = (expr, row, cx);
    unimplemented!()
}

/// Whether the condition `expr` is true for `row` (neither false nor NULL).
pub fn eval_condition(expr: &Expr, row: &[Value], cx: &mut dyn EvalContext) -> Result<bool, MySqlError> {
    let _ = (expr, row, cx);
    unimplemented!()
}

/// A function applied to values: what DataFusion's kernels call.
pub fn call(func: crate::functions::FuncId, args: &[Value], arg_types: &[crate::plan::ExprType], result: &crate::plan::ExprType, cx: &mut dyn EvalContext) -> Result<Value, MySqlError> {
    let _ = (func, args, arg_types, result, cx);
    unimplemented!()
}

/// CAST of a value to a type, as [`crate::plan::ExprKind::Cast`] does it.
pub fn cast_value(value: Value, ty: &ColumnType, cx: &mut dyn EvalContext) -> Result<Value, MySqlError> {
    let _ = (value, ty, cx);
    unimplemented!()
}

/// A comparison: `None` is NULL.
pub fn compare_values(op: crate::plan::CompareOp, by: crate::plan::CompareBy, left: &Value, right: &Value, cx: &mut dyn EvalContext) -> Option<bool> {
    let _ = (op, by, left, right, cx);
    unimplemented!()
}
