//! The tasks that DataFusion begins for a query work for its statement: EXPLAIN ANALYZE tells their processor time, and what they wait for.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;
use highkey_table::Waits;

type Answer = Box<dyn Any + Send>;

/// From now on, in all of the process.
pub(super) fn count_helpers() {
    // It fails where another engine has done it.
    let _ = set_join_set_tracer(&OfStatements);
}

/// Lets a task that a thread begins work for the statement that the thread works for, if its time is measured.
struct OfStatements;

fn measured() -> Option<Arc<Waits>> {
    Waits::current().filter(|waits| waits.measures_cpu())
}

impl JoinSetTracer for OfStatements {
    fn trace_future(&self, task: BoxFuture<'static, Answer>) -> BoxFuture<'static, Answer> {
        match measured() {
            Some(waits) => async move { waits.assist(task).await }.boxed(),
            None => task,
        }
    }

    fn trace_block(&self, task: Box<dyn FnOnce() -> Answer + Send>) -> Box<dyn FnOnce() -> Answer + Send> {
        match measured() {
            Some(waits) => Box::new(move || waits.work(task)),
            None => task,
        }
    }
}
