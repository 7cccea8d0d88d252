//! Which part of a condition an index answers: sargable ranges, for the fast path and for scans under DataFusion.

use std::ops::Bound;

use highkey_table::{KeyRange, TableDef};
use highkey_types::MySqlError;

use super::Expr;
use crate::expr::EvalContext;

/// One range of an index: `prefix` equals the first parts, the bounds are on the next part.
#[derive(Debug, Clone)]
pub struct KeyRangeExpr {
    /// Constants for the leading parts.
    pub prefix: Vec<Expr>,
    /// Lower bound of the part after the prefix.
    pub lower: Bound<Expr>,
    /// Upper bound of the part after the prefix.
    pub upper: Bound<Expr>,
}

/// How an index answers a condition.
#[derive(Debug, Clone)]
pub struct IndexAccess {
    /// Position in `TableDef::indexes`.
    pub index: usize,
    /// The ranges: disjoint once evaluated by [`key_ranges`].
    pub ranges: Vec<KeyRangeExpr>,
    /// At most one row for each range: all parts of a unique index are equal to constants that cannot be NULL.
    pub unique: bool,
    /// What remains to be checked on each row.
    pub residual: Option<Expr>,
    /// How many parts of the index the ranges restrict.
    pub matched: usize,
}

/// How `index` can answer `filter`, which is over a row whose field i is table column `columns[i]`. `None`: not at all.
pub fn index_access(filter: &Expr, table: &TableDef, columns: &[usize], index: usize) -> Option<IndexAccess> {
    let _ = (filter, table, columns, index);
    unimplemented!()
}

/// The index that answers most of `filter`: unique first, then more equal parts, then a range, the clustered one at a tie.
pub fn best_access(filter: &Expr, table: &TableDef, columns: &[usize]) -> Option<IndexAccess> {
    let _ = (filter, table, columns);
    unimplemented!()
}

/// The ranges with their values in the column types, ascending and disjoint; those that cannot match are left out.
pub fn key_ranges(access: &IndexAccess, table: &TableDef, cx: &mut dyn EvalContext) -> Result<Vec<KeyRange>, MySqlError> {
    let _ = (access, table, cx);
    unimplemented!()
}
