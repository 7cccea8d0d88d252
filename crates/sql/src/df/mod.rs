//! Queries on DataFusion: everything that the fast path does not take. README.md has the mapping of types and semantics.
//!
//! A bound plan is made a DataFusion plan whose types and meaning are MySQL's already (`lower`), optimised with our statistics, and
//! executed on the threads of the [`QueryEngine`]; the rows come back as MySQL values ([`RowStream`]).
//!
//! - `repr`: types and values in Arrow. `scan`: tables as DataFusion sources.
//! - `lower`: operators and expressions. `kernel`: vectorised functions. `wrapped`: any other expression, row by row.
//! - `subquery`: subqueries that are not joins. `recursion`: WITH RECURSIVE. `aggregate`: MySQL's aggregates. `explain`: plans as text.

mod aggregate;
mod append;
mod context;
mod engine;
mod error;
mod explain;
mod kernel;
mod lower;
mod memory;
mod merge_join;
mod recursion;
mod repr;
mod scan;
mod stream;
mod subquery;
#[cfg(test)]
mod tests;
mod text;
mod wrapped;

pub use context::{QueryContext, killed_error};
pub use engine::{EngineOptions, QueryEngine};
pub use stream::RowStream;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use futures::{FutureExt, StreamExt};
use highkey_table::Waits;
use highkey_types::MySqlError;
use tokio::sync::{mpsc, oneshot};

use context::Shared;
use error::{is_out_of_memory, to_mysql};
use lower::Lowerer;

use crate::plan::{BoundQuery, Field, Rel};

/// Starts `bound` and returns its rows as they come. Errors of planning come from here, errors of execution from the stream.
pub async fn query(bound: BoundQuery, cx: QueryContext) -> Result<RowStream, MySqlError> {
    query_rel(bound.rel, cx).await
}

/// The same for a plan without its surroundings: the SELECT of INSERT … SELECT, the rows of a multi-table UPDATE.
pub async fn query_rel(rel: Rel, cx: QueryContext) -> Result<RowStream, MySqlError> {
    let engine = cx.engine.clone();
    let fields: Arc<[Field]> = rel.fields.clone().into();
    let (rows, batches) = mpsc::channel(stream::BATCHES_AHEAD);
    let (planned, plan_ready) = oneshot::channel();
    let query = async move {
        let outcome = AssertUnwindSafe(run(rel, cx, planned, rows.clone())).catch_unwind().await;
        // A panic in a query ends the query, never the server.
        if outcome.is_err() {
            let _ = rows.send(Err(DataFusionError::Internal("the query panicked".into()))).await;
        }
    };
    // The statement's work, and its waits, are done there.
    let task = match Waits::current() {
        Some(waits) => engine.handle().spawn(async move { waits.assist(query).await }),
        None => engine.handle().spawn(query),
    };
    let stream = RowStream::new(fields, batches, task, engine);
    match plan_ready.await {
        Ok(Ok(())) => Ok(stream),
        Ok(Err(error)) => Err(to_mysql(&error)),
        // The task ended before it had a plan.
        Err(_) => Err(to_mysql(&DataFusionError::Internal("the query panicked while it was planned".into()))),
    }
}

async fn run(rel: Rel, cx: QueryContext, planned: oneshot::Sender<DfResult<()>>, rows: mpsc::Sender<DfResult<RecordBatch>>) {
    let shared = Shared::new(cx, false);
    let mut planned = Some(planned);
    loop {
        let stream = physical(&shared, rel.clone()).await.and_then(|plan| execute_stream(plan, shared.state().task_ctx()));
        let outcome = match stream {
            Ok(stream) => {
                if let Some(planned) = planned.take() {
                    let _ = planned.send(Ok(()));
                }
                send_rows(&shared, stream, &rows).await
            }
            Err(error) => Err((error, false)),
        };
        match outcome {
            Ok(()) => return,
            // Nothing has left the query: it may start again, with operators that spill.
            Err((error, false)) if is_out_of_memory(&error) && shared.start_spilling() => continue,
            Err((error, _)) => {
                match planned.take() {
                    Some(planned) => drop(planned.send(Err(error))),
                    None => drop(rows.send(Err(error)).await),
                }
                return;
            }
        }
    }
}

/// Time between two looks at KILL while no row comes.
const LOOK_FOR_KILL: Duration = Duration::from_millis(50);

/// Sends all batches; an error comes with whether any were sent before it.
async fn send_rows(shared: &Shared, mut stream: SendableRecordBatchStream, rows: &mpsc::Sender<DfResult<RecordBatch>>) -> Result<(), (DataFusionError, bool)> {
    let mut sent = false;
    let mut look = tokio::time::interval(LOOK_FOR_KILL);
    loop {
        // An aggregation over a join may go on for hours before its first row.
        let batch = tokio::select! {
            batch = stream.next() => batch,
            _ = look.tick() => {
                shared.check_killed().map_err(|error| (error, sent))?;
                continue;
            }
        };
        let Some(batch) = batch else { return Ok(()) };
        let batch = batch.and_then(|batch| shared.check_killed().map(|()| batch)).map_err(|error| (error, sent))?;
        sent |= batch.num_rows() > 0;
        if rows.send(Ok(batch)).await.is_err() {
            // Nobody wants them any more.
            return Ok(());
        }
    }
}

/// Joins make rows without asking their inputs for more, so they are made to let go now and then: KILL, and other queries.
fn yielding(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|node| {
        Ok(if node.children().len() > 1 { Transformed::yes(Arc::new(CooperativeExec::new(node)) as _) } else { Transformed::no(node) })
    })?;
    Ok(wrapped.data)
}

/// The plan to execute, its columns in the order of the relation's fields.
async fn physical(shared: &Arc<Shared>, mut rel: Rel) -> DfResult<Arc<dyn ExecutionPlan>> {
    let lowerer = Lowerer::new(shared.clone());
    if !shared.explain {
        lowerer.fold_constant_subqueries(&mut rel)?;
    }
    let lowered = lowerer.rel(&rel, &[])?;
    let names: Vec<String> = rel.fields.iter().map(|f| shared.name(&f.name)).collect();
    let plan = lowerer.renamed(lowered, &names)?;
    yielding(shared.state().create_physical_plan(&plan).await?)
}

/// The plan of `bound` as EXPLAIN FORMAT=TREE prints it, one line per operator.
pub async fn explain(bound: BoundQuery, cx: QueryContext) -> Result<Vec<String>, MySqlError> {
    let engine = cx.engine.clone();
    let task = engine.handle().spawn(async move {
        let shared = Shared::new(cx, true);
        physical(&shared, bound.rel).await.map(|plan| explain::tree(plan.as_ref()))
    });
    match task.await {
        Ok(Ok(lines)) => Ok(lines),
        Ok(Err(error)) => Err(to_mysql(&error)),
        Err(_) => Err(to_mysql(&DataFusionError::Internal("the query panicked while it was planned".into()))),
    }
}
