//! Sideways information passing: what the build side of a join has keys of is all that its probe side need give.
//!
//! A hash join reads its build side first. [`GatherKeys`] stands above it and remembers its keys; scans on the probe side wait for them. Where they
//! are few and the table has an index on its key, the scan reads those rows alone; otherwise it leaves out the rows whose key is not among them,
//! before their other columns are made ([`super::scan`]). The join itself is as it was: what a scan leaves out no row of the build side would have met.
//!
//! For plans that are executed once: another execution would find the keys of the first.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream, replace_children_if_necessary};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::key_set::{KeySet, Remembered};
use super::scan::ScanExec;
use super::through::{OnTheWay, Through};

/// How long a scan waits for keys once it is asked for rows. The join has read its own share of the build side by then; the other shares are
/// about to be complete, unless nobody reads them before this one has ended. So much longer for each row of the scan: about what is lost without the keys.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_FOR_ROW: Duration = Duration::from_nanos(500);

/// The keys of a build side, from all its partitions.
#[derive(Debug)]
pub(super) struct JoinKeys {
    gathered: Mutex<Gathered>,
    complete: Notify,
}

#[derive(Debug)]
enum Gathered {
    /// What partitions that have ended had, and how many have not.
    Running(Vec<Remembered>, usize),
    /// What all of them had. Whoever wants the set first makes it: the worker that read the last row has the join's table to make.
    Read(Vec<Remembered>),
    /// Somebody makes it.
    Making,
    Complete(Arc<KeySet>),
    /// Too many, or some were never seen.
    Unknown,
}

impl JoinKeys {
    fn new(partitions: usize) -> Arc<JoinKeys> {
        Arc::new(JoinKeys { gathered: Mutex::new(Gathered::Running(Vec::new(), partitions)), complete: Notify::new() })
    }

    /// When a scan of so many rows that begins to wait now gives up.
    pub fn patience(rows: usize) -> Instant {
        Instant::now() + PATIENCE + PATIENCE_FOR_ROW.saturating_mul(rows.try_into().unwrap_or(u32::MAX))
    }

    /// All keys, once the build side is complete; None if there are too many, or it takes too long.
    pub async fn wait(&self, deadline: Instant) -> Option<Arc<KeySet>> {
        loop {
            let complete = self.complete.notified();
            let parts = {
                let mut gathered = self.gathered.lock();
                match &mut *gathered {
                    Gathered::Running(..) | Gathered::Making => None,
                    Gathered::Read(parts) => {
                        let parts = std::mem::take(parts);
                        *gathered = Gathered::Making;
                        Some(parts)
                    }
                    Gathered::Complete(keys) => return Some(keys.clone()),
                    Gathered::Unknown => return None,
                }
            };
            if let Some(parts) = parts {
                let keys = KeySet::of(parts).map(Arc::new);
                *self.gathered.lock() = keys.clone().map_or(Gathered::Unknown, Gathered::Complete);
                self.complete.notify_waiters();
                return keys;
            }
            tokio::time::timeout_at(deadline, complete).await.ok()?;
        }
    }

    /// What a partition of the build side had at its end; None if that is not known.
    fn end(&self, of_partition: Option<Remembered>) {
        let mut gathered = self.gathered.lock();
        *gathered = match (std::mem::replace(&mut *gathered, Gathered::Unknown), of_partition) {
            (Gathered::Running(mut parts, running), Some(part)) => {
                parts.push(part);
                match running {
                    1 => Gathered::Read(parts),
                    _ => Gathered::Running(parts, running - 1),
                }
            }
            _ => Gathered::Unknown,
        };
        drop(gathered);
        self.complete.notify_waiters();
    }
}

/// One partition of a build side.
struct Partition {
    keys: Arc<JoinKeys>,
    /// Those of this partition, until it ends; None if there were too many.
    seen: Option<Remembered>,
}

impl Partition {
    fn see(&mut self, batch: &RecordBatch, column: usize) {
        if self.seen.as_mut().is_some_and(|seen| !seen.add(batch.column(column))) {
            self.seen = None;
            self.keys.end(None);
        }
    }

    fn end(&mut self) {
        if let Some(seen) = self.seen.take() {
            self.keys.end(Some(seen));
        }
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        // Nobody wanted the rest.
        if self.seen.take().is_some() {
            self.keys.end(None);
        }
    }
}

/// Remembers the keys of its rows.
#[derive(Debug)]
struct GatherKeys {
    column: usize,
    keys: Arc<JoinKeys>,
}

impl OnTheWay for GatherKeys {
    /// Those who wait for the keys wait for so many partitions.
    fn divides(&self) -> bool {
        false
    }

    fn stream(&self, input: SendableRecordBatchStream, _: usize, context: &TaskContext) -> SendableRecordBatchStream {
        let part = Partition { keys: self.keys.clone(), seen: Some(Remembered::new(context.memory_pool())) };
        let (schema, column) = (input.schema(), self.column);
        let batches = futures::stream::unfold((input, part), move |(mut input, mut part)| async move {
            let batch = input.next().await;
            match &batch {
                Some(Ok(batch)) => part.see(batch, column),
                Some(Err(_)) => {}
                None => part.end(),
            }
            batch.map(|batch| (batch, (input, part)))
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

/// Lets scans on the probe sides of hash joins know the keys of the build sides.
pub(super) fn pass_keys(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = match plan.downcast_ref::<HashJoinExec>() {
        Some(join) => match passed(join)? {
            Some((left, right)) => replace_children_if_necessary(plan.clone(), vec![left, right])?,
            None => plan,
        },
        None => plan,
    };
    let children = plan.children().into_iter().cloned().map(pass_keys).collect::<Result<Vec<_>>>()?;
    if children.is_empty() { Ok(plan) } else { replace_children_if_necessary(plan, children) }
}

/// The inputs of a join whose probe side learns some key of the build side.
fn passed(join: &HashJoinExec) -> Result<Option<(Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>)>> {
    use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, RightSemi};
    // Rows of the probe side that meet nothing are of no use.
    let useless = matches!(join.join_type(), Inner | Left | LeftSemi | LeftAnti | LeftMark | RightSemi);
    if !useless || join.null_aware || join.null_equality() != NullEquality::NullEqualsNothing {
        return Ok(None);
    }
    for (left_key, right_key) in join.on() {
        let (Some(left_key), Some(right_key)) = (left_key.downcast_ref::<Column>(), right_key.downcast_ref::<Column>()) else { continue };
        let left = join.left();
        // Where the rows of several workers are brought together, each worker remembers its own.
        let together = left.downcast_ref::<CoalescePartitionsExec>().filter(|together| together.fetch().is_none());
        let read = together.map_or(left, CoalescePartitionsExec::input);
        let keys = JoinKeys::new(read.output_partitioning().partition_count());
        if let Some(right) = restricted(join.right(), right_key.name(), &keys)? {
            let read = Through::over(read.clone(), Arc::new(GatherKeys { column: left_key.index(), keys }));
            let left = if together.is_some() { replace_children_if_necessary(left.clone(), vec![read])? } else { read };
            return Ok(Some((left, right)));
        }
    }
    Ok(None)
}

/// `plan` where a scan knows that of `column` only some keys are wanted; None if no scan could use it. Names of columns are generated: a
/// column that an operator passes on has the same name below it.
fn restricted(plan: &Arc<dyn ExecutionPlan>, column: &str, keys: &Arc<JoinKeys>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Ok(scan.by_keys(column, keys).map(|scan| Arc::new(scan) as _));
    }
    if plan.fetch().is_some() {
        // Which rows a LIMIT takes is not for us to choose.
        return Ok(None);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let kept = match join.join_type() {
            JoinType::Inner => [true, true],
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => [true, false],
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => [false, true],
            JoinType::Full => [false, false],
        };
        for (side, kept) in kept.into_iter().enumerate() {
            let mut inputs = [join.left().clone(), join.right().clone()];
            if kept
                && has_column(&inputs[side], column)
                && let Some(input) = restricted(&inputs[side], column, keys)?
            {
                inputs[side] = input;
                return Ok(Some(replace_children_if_necessary(plan.clone(), inputs.to_vec())?));
            }
        }
        return Ok(None);
    }
    let below = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let expr = projection.expr().iter().find(|expr| expr.alias == column);
        expr.and_then(|expr| expr.expr.downcast_ref::<Column>()).map(|c| c.name().to_owned())
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        // Groups of other keys are of no use.
        let groups = aggregate.group_expr();
        let group = groups.expr().iter().find(|(_, name)| name == column && groups.is_single());
        group.and_then(|(expr, _)| expr.downcast_ref::<Column>()).map(|c| c.name().to_owned())
    } else {
        let passes = plan.is::<FilterExec>()
            || plan.is::<RepartitionExec>()
            || plan.is::<CoalescePartitionsExec>()
            || plan.is::<CooperativeExec>()
            || plan.is::<Through>()
            || plan.is::<SortExec>();
        passes.then(|| column.to_owned())
    };
    let Some(below) = below else { return Ok(None) };
    let [input] = plan.children()[..] else { return Ok(None) };
    if !has_column(input, &below) {
        return Ok(None);
    }
    let Some(input) = restricted(input, &below, keys)? else { return Ok(None) };
    Ok(Some(replace_children_if_necessary(plan.clone(), vec![input])?))
}

/// Exactly one of its columns has the name.
fn has_column(plan: &Arc<dyn ExecutionPlan>, name: &str) -> bool {
    plan.schema().fields().iter().filter(|field| field.name() == name).count() == 1
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};

    use super::*;

    fn partition(keys: &Arc<JoinKeys>, values: &[i64]) -> Partition {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let mut part = Partition { keys: keys.clone(), seen: Some(Remembered::new(&pool)) };
        let array: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        part.see(&RecordBatch::try_from_iter([("k", array)]).unwrap(), 0);
        part
    }

    #[tokio::test]
    async fn the_keys_of_all_partitions_are_known_when_all_have_ended() {
        let keys = JoinKeys::new(2);
        let (mut one, mut two) = (partition(&keys, &[7, 3]), partition(&keys, &[3, 40]));
        one.end();
        assert!(keys.wait(Instant::now()).await.is_none(), "one has not ended");
        two.end();
        let deadline = JoinKeys::patience(0);
        let (first, second) = tokio::join!(keys.wait(deadline), keys.wait(deadline));
        let first = first.unwrap();
        assert!(Arc::ptr_eq(&first, &second.unwrap()), "the set is made once");
        assert_eq!(first.list().unwrap().collect::<Vec<_>>(), [3, 7, 40]);
    }

    #[tokio::test]
    async fn of_a_partition_that_was_not_read_nothing_is_known() {
        let keys = JoinKeys::new(2);
        partition(&keys, &[1]).end();
        drop(partition(&keys, &[2]));
        assert!(keys.wait(JoinKeys::patience(0)).await.is_none());
    }
}
