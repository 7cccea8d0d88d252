//! EXPLAIN ANALYZE: an operator above each one that is shown, which counts its rows and takes their time.
//!
//! DataFusion's own figures would not do: they are the processor's time of the operator alone, not every operator has them, and they are kept by its node,
//! which for a join keeps the rows that it has built. What is here is the time that whoever wants a row waits for it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, replace_children_if_necessary};
use futures::{Stream, StreamExt};

use super::aside;
use super::explain::is_shown;
use super::scan::ScanExec;
use super::through::{OnTheWay, Through};
use crate::measure::Measure;

/// A plan about to be executed that tells what its operators do. What is done to a plan behind this gives the rows of the operators that it replaces.
pub(super) fn timed(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    // Once more for the whole of it.
    Ok(Through::over(with_timings(plan)?, Arc::new(Timing(Arc::default()))))
}

fn with_timings(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter().cloned().map(with_timings).collect::<Result<Vec<_>>>()?;
    let plan = if children.is_empty() { plan } else { replace_children_if_necessary(plan, children)? };
    if !is_shown(plan.as_ref()) {
        return Ok(plan);
    }
    let measure = plan.downcast_ref::<ScanExec>().map_or_else(Arc::default, ScanExec::measure);
    Ok(Through::over(plan, Arc::new(Timing(measure))))
}

/// Tells of the operator below.
#[derive(Debug)]
struct Timing(Arc<Measure>);

impl OnTheWay for Timing {
    fn measure(&self) -> Option<&Arc<Measure>> {
        Some(&self.0)
    }

    fn stream(&self, input: SendableRecordBatchStream, partition: usize, _: &TaskContext) -> SendableRecordBatchStream {
        self.0.begin(partition);
        let schema = input.schema();
        // Partitions that are pieces of a scan are those of the worker that has the piece, which need not be its first.
        let worker = aside::worker();
        let has_rows = worker.is_some_and(|worker| self.0.has_rows(worker));
        let rows = TimedRows { input, measure: self.0.clone(), worker: worker.unwrap_or(partition), asked: None, has_rows };
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}

struct TimedRows {
    input: SendableRecordBatchStream,
    measure: Arc<Measure>,
    worker: usize,
    /// Since when somebody waits for the next batch.
    asked: Option<Instant>,
    has_rows: bool,
}

impl Stream for TimedRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let this = &mut *self;
        let asked = *this.asked.get_or_insert_with(Instant::now);
        let next = this.input.poll_next_unpin(cx);
        if let Poll::Ready(batch) = &next {
            let rows = if let Some(Ok(batch)) = batch { batch.num_rows() } else { 0 };
            this.measure.add(this.worker, asked.elapsed(), rows, !this.has_rows);
            this.has_rows |= rows > 0;
            this.asked = None;
        }
        next
    }
}
