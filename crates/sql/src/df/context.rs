//! What a running query knows of its session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use datafusion::common::Result;
use datafusion::execution::context::SessionState;
use highkey_table::Snapshot;
use highkey_types::{MySqlError, TimeZone, Value, errors};
use parking_lot::Mutex;

use super::engine::QueryEngine;
use super::error::user;
use crate::expr::EvalContext;
use crate::plan::{VirtualTable, Wanted};

/// Makes the rows of an information_schema table, at least those about the tables asked about.
pub type VirtualRows = Arc<dyn Fn(&VirtualTable, &Wanted) -> Result<Vec<Vec<Value>>, MySqlError> + Send + Sync>;

/// What the session gives to a query.
pub struct QueryContext {
    pub engine: Arc<QueryEngine>,
    /// The view that scans read under; it contains the transaction's own writes.
    pub snapshot: Snapshot,
    /// The surroundings of expressions, owned by the query: warnings and user variables are taken from it when the query has ended.
    pub eval: Arc<Mutex<dyn EvalContext + Send>>,
    pub virtual_rows: VirtualRows,
    /// Raised by KILL and by max_execution_time; `interruption` tells which.
    pub killed: Arc<AtomicBool>,
    /// The error of a raised `killed`: 1317, or 3024 after max_execution_time.
    pub interruption: Arc<dyn Fn() -> MySqlError + Send + Sync>,
    /// Counts the rows that scans read.
    pub examined: Arc<AtomicU64>,
    /// `cte_max_recursion_depth`.
    pub recursion_limit: u64,
    /// `group_concat_max_len`.
    pub group_concat_max_len: u64,
}

/// A query's context, shared by its operators.
pub(super) struct Shared {
    pub engine: Arc<QueryEngine>,
    pub snapshot: Snapshot,
    pub eval: Arc<Mutex<dyn EvalContext + Send>>,
    pub virtual_rows: VirtualRows,
    pub time_zone: TimeZone,
    pub recursion_limit: u64,
    pub group_concat_max_len: u64,
    pub examined: Arc<AtomicU64>,
    killed: Arc<AtomicBool>,
    interruption: Arc<dyn Fn() -> MySqlError + Send + Sync>,
    names: AtomicUsize,
    /// This is a second attempt, after memory ran out.
    spilling: AtomicBool,
    /// EXPLAIN: subqueries are planned, not run.
    pub explain: bool,
}

impl Shared {
    pub fn new(cx: QueryContext, explain: bool) -> Arc<Shared> {
        let time_zone = cx.eval.lock().time_zone().clone();
        Arc::new(Shared {
            engine: cx.engine,
            snapshot: cx.snapshot,
            eval: cx.eval,
            virtual_rows: cx.virtual_rows,
            time_zone,
            recursion_limit: cx.recursion_limit,
            group_concat_max_len: cx.group_concat_max_len,
            examined: cx.examined,
            killed: cx.killed,
            interruption: cx.interruption,
            names: AtomicUsize::new(0),
            spilling: AtomicBool::new(false),
            explain,
        })
    }

    /// Ends the query if it was killed. Every source of rows asks once per batch.
    pub fn check_killed(&self) -> Result<()> {
        if self.killed.load(Ordering::Relaxed) { Err(user((self.interruption)())) } else { Ok(()) }
    }

    pub fn state(&self) -> &Arc<SessionState> {
        self.engine.state(self.spilling.load(Ordering::Relaxed))
    }

    /// Prepares a second attempt; false if this was it.
    pub fn start_spilling(&self) -> bool {
        !self.spilling.swap(true, Ordering::Relaxed)
    }

    /// A name that nothing else in the query's plans has.
    pub fn name(&self, hint: &str) -> String {
        let n = self.names.fetch_add(1, Ordering::Relaxed);
        format!("{hint}#{n}")
    }

    pub fn next_id(&self) -> usize {
        self.names.fetch_add(1, Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

/// 1317, for a context whose only interruption is KILL QUERY.
pub fn killed_error() -> MySqlError {
    errors::query_interrupted()
}
