//! Queries on DataFusion: everything that the fast path does not take. README.md has the mapping of types and semantics.
//!
//! A bound plan is made a DataFusion plan whose types and meaning are MySQL's already (`lower`), optimised with our statistics, and
//! executed on the threads of the [`QueryEngine`]; the rows come back as MySQL values ([`RowStream`]).
//!
//! - `repr`: types and values in Arrow. `scan`: tables as DataFusion sources.
//! - `lower`: operators and expressions. `kernel`: vectorised functions. `wrapped`: any other expression, row by row.
//! - `subquery`: subqueries that are not joins. `aggregate`: MySQL's aggregates. `explain`: plans as text.

mod aggregate;
mod context;
mod engine;
mod error;
mod repr;
mod stream;

pub use context::{QueryContext, VirtualRows, killed_error};
pub use engine::{EngineOptions, QueryEngine};
pub use stream::{RowStream, Rows};

use highkey_types::MySqlError;

use crate::plan::BoundQuery;

/// Starts `bound` and returns its rows as they come. Errors of planning come from here, errors of execution from the stream.
pub async fn query(_bound: BoundQuery, _cx: QueryContext) -> Result<RowStream, MySqlError> {
    unimplemented!()
}

/// The plan of `bound` as EXPLAIN FORMAT=TREE prints it, one line per operator.
pub async fn explain(_bound: BoundQuery, _cx: QueryContext) -> Result<Vec<String>, MySqlError> {
    unimplemented!()
}
