//! Text of expressions and plans: EXPLAIN, and the golden tests of the binder.

use super::{Expr, Field, Rel};

/// An expression in SQL-like text; columns are named by `fields`.
pub fn describe(expr: &Expr, fields: &[Field]) -> String {
    let _ = (expr, fields);
    unimplemented!()
}

/// A plan as an indented tree.
pub fn describe_rel(rel: &Rel) -> String {
    let _ = rel;
    unimplemented!()
}
