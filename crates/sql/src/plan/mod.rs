//! The bound plan: what a query means, with every name resolved to a position and every expression typed as MySQL types it.
//!
//! The binder makes it; the fast path and DataFusion's lowering consume it; nothing else reaches them. See `README.md`.

mod access;
mod covering;
mod cte;
mod display;
mod expr;
mod implied;
mod joins;
mod json_table;
mod merge;
mod operands;
mod pruning;
mod query;
mod ranges;
mod rel;
mod selectivity;
mod types;
mod visit;
mod wanted;

pub use access::{IndexAccess, KeyRangeExpr, Row, best_access, index_access, preferred_access};
pub use covering::{smaller_index, smallest_index};
#[cfg(test)]
pub use display::describe_rel;
pub use display::{describe as describe_expr, describe_keys, describe_lookup, describe_operator, window_name};
pub use expr::{CompareBy, CompareOp, Expr, ExprKind, Subquery, SubqueryKind, unresolved};
pub use implied::implied_constants;
pub use joins::{JoinGraph, JoinedTable};
pub use json_table::{JsonColumn, JsonOtherwise, JsonRows, JsonSource};
pub use operands::{differing_operands, for_each_operand, is_alike, operand_number, operand_parameter};
pub use pruning::{is_fixed, pruned};
pub use ranges::{key_ranges, key_ranges_for};
pub use query::{BoundQuery, Hints, IntoTarget, PqHint};
pub use rel::{
    IndexChoice,     Aggregate, AggregateFunc, Field, FrameBoundary, JoinKind, LockSpec, Rel, RelKind, SetOperator, SortKey, VirtualTable, WindowExpr, WindowFrame,
    WindowFunc,
};
pub use selectivity::{column_share, rows_in_ranges, selectivity, selectivity_by_indexes};
pub use types::{Coercibility, ExprType};
pub use wanted::Wanted;
