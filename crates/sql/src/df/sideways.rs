//! Sideways information passing: what the build side of a join has keys of is all that its probe side need give.
//!
//! A hash join reads its build side first. [`GatherKeys`] stands above it and remembers its keys; scans on the probe side wait for them. Where they
//! are few and the table has an index on its key, the scan reads those rows alone; otherwise it leaves out the rows whose key is not among them,
//! before their other columns are made ([`super::scan`]). The join itself is as it was: what a scan leaves out no row of the build side would have met.
//!
//! For plans that are executed once: another execution would find the keys of the first.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryPool;
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
use super::key_tuples::{KeyTuples, RememberedTuples};
use super::scan::ScanExec;
use super::through::{OnTheWay, Through};

/// How long a scan waits for keys once it is asked for rows. The join has read its own share of the build side by then; the other shares are
/// about to be complete, unless nobody reads them before this one has ended. So much longer for each row of the scan: about what is lost without the keys.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_FOR_ROW: Duration = Duration::from_nanos(500);

/// What a build side has keys of. The keys of a join of several columns have the numbers of its equalities; here are those that somebody wants.
#[derive(Debug)]
pub(super) struct BuildKeys {
    /// None for one that has too many values.
    sets: Vec<(usize, Option<Arc<KeySet>>)>,
    /// The same keys side by side, if they are several and not too many.
    tuples: Option<KeyTuples>,
}

impl BuildKeys {
    /// None if nothing is known.
    fn of(mut parts: Vec<Part>) -> Option<BuildKeys> {
        let keys: Vec<usize> = parts.first()?.columns.iter().map(|(key, _)| *key).collect();
        let mut sets = Vec::with_capacity(keys.len());
        for (at, key) in keys.into_iter().enumerate() {
            let all: Option<Vec<Remembered>> = parts.iter_mut().map(|part| part.columns[at].1.take()).collect();
            sets.push((key, all.and_then(KeySet::of).map(Arc::new)));
        }
        let tuples: Option<Vec<RememberedTuples>> = parts.into_iter().map(|part| part.tuples).collect();
        let known = BuildKeys { sets, tuples: tuples.map(KeyTuples::of) };
        (known.tuples.is_some() || known.sets.iter().any(|(_, set)| set.is_some())).then_some(known)
    }

    /// All values of a key.
    pub fn set(&self, key: usize) -> Option<&Arc<KeySet>> {
        self.sets.iter().find(|(known, _)| *known == key)?.1.as_ref()
    }

    /// The different values of some keys side by side, or of the first of them alone where those of all are too many; ascending. None if these are
    /// more than `most`, too.
    pub fn listed(&self, keys: &[usize], most: usize) -> Option<Vec<Vec<i128>>> {
        if let Some(tuples) = self.tuples.as_ref().filter(|_| keys.len() > 1) {
            let columns: Option<Vec<usize>> = keys.iter().map(|key| self.sets.iter().position(|(known, _)| known == key)).collect();
            if let Some(list) = tuples.listed(&columns?, most) {
                return Some(list);
            }
        }
        let set = self.set(*keys.first()?)?;
        if set.list_len()? > most {
            return None;
        }
        let mut list: Vec<Vec<i128>> = set.list()?.map(|key| vec![key]).collect();
        list.sort_unstable();
        Some(list)
    }
}

/// The keys of a build side, from all its partitions.
#[derive(Debug)]
pub(super) struct JoinKeys {
    gathered: Mutex<Gathered>,
    complete: Notify,
}

#[derive(Debug)]
enum Gathered {
    /// What partitions that have ended had, and how many have not.
    Running(Vec<Part>, usize),
    /// What all of them had. Whoever wants the sets first makes them: the worker that read the last row has the join's table to make.
    Read(Vec<Part>),
    /// Somebody makes them.
    Making,
    Complete(Arc<BuildKeys>),
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
    pub async fn wait(&self, deadline: Instant) -> Option<Arc<BuildKeys>> {
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
                let keys = BuildKeys::of(parts).map(Arc::new);
                *self.gathered.lock() = keys.clone().map_or(Gathered::Unknown, Gathered::Complete);
                self.complete.notify_waiters();
                return keys;
            }
            tokio::time::timeout_at(deadline, complete).await.ok()?;
        }
    }

    /// What a partition of the build side had at its end; None if that is not known.
    fn end(&self, of_partition: Option<Part>) {
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

/// What a partition of a build side has keys of.
#[derive(Debug)]
struct Part {
    /// Each key that is wanted; None if it has too many values.
    columns: Vec<(usize, Option<Remembered>)>,
    /// All of them side by side; None if there is one only, or they are too many.
    tuples: Option<RememberedTuples>,
}

impl Part {
    fn new(keys: impl Iterator<Item = usize>, pool: &Arc<dyn MemoryPool>) -> Part {
        let columns: Vec<(usize, Option<Remembered>)> = keys.map(|key| (key, Some(Remembered::new(pool)))).collect();
        let tuples = (columns.len() > 1).then(|| RememberedTuples::new(columns.len(), pool));
        Part { columns, tuples }
    }

    /// False if nothing is known any more.
    fn see(&mut self, arrays: &[&ArrayRef]) -> bool {
        for ((_, seen), array) in self.columns.iter_mut().zip(arrays) {
            if seen.as_mut().is_some_and(|seen| !seen.add(array)) {
                *seen = None;
            }
        }
        if self.tuples.as_mut().is_some_and(|tuples| !tuples.add(arrays)) {
            self.tuples = None;
        }
        self.tuples.is_some() || self.columns.iter().any(|(_, seen)| seen.is_some())
    }
}

/// One partition of a build side.
struct Partition {
    keys: Arc<JoinKeys>,
    /// Those of this partition, until it ends; None if there were too many.
    seen: Option<Part>,
}

impl Partition {
    fn see(&mut self, arrays: &[&ArrayRef]) {
        if self.seen.as_mut().is_some_and(|seen| !seen.see(arrays)) {
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
    /// Which keys, and where they are in the rows.
    columns: Vec<(usize, usize)>,
    keys: Arc<JoinKeys>,
}

impl OnTheWay for GatherKeys {
    /// Those who wait for the keys wait for so many partitions.
    fn divides(&self) -> bool {
        false
    }

    fn stream(&self, input: SendableRecordBatchStream, _: usize, context: &TaskContext) -> SendableRecordBatchStream {
        let seen = Part::new(self.columns.iter().map(|(key, _)| *key), context.memory_pool());
        let part = Partition { keys: self.keys.clone(), seen: Some(seen) };
        let schema = input.schema();
        let columns: Vec<usize> = self.columns.iter().map(|(_, column)| *column).collect();
        let batches = futures::stream::unfold((input, part, columns), |(mut input, mut part, columns)| async move {
            let batch = input.next().await;
            match &batch {
                Some(Ok(batch)) => part.see(&columns.iter().map(|&column| batch.column(column)).collect::<Vec<_>>()),
                Some(Err(_)) => {}
                None => part.end(),
            }
            batch.map(|batch| (batch, (input, part, columns)))
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
    let left = join.left();
    // Where the rows of several workers are brought together, each worker remembers its own.
    let together = left.downcast_ref::<CoalescePartitionsExec>().filter(|together| together.fetch().is_none());
    let read = together.map_or(left, CoalescePartitionsExec::input);
    let mut passing = Passing { keys: JoinKeys::new(read.output_partitioning().partition_count()), taken: Vec::new() };
    let (mut columns, mut wanted) = (Vec::new(), Vec::new());
    for (key, (left_key, right_key)) in join.on().iter().enumerate() {
        if let (Some(left_key), Some(right_key)) = (left_key.downcast_ref::<Column>(), right_key.downcast_ref::<Column>()) {
            columns.push((key, left_key.index()));
            wanted.push(Wanted { column: right_key.name().to_owned(), key });
        }
    }
    let Some(right) = restricted(join.right(), &wanted, &mut passing)? else { return Ok(None) };
    columns.retain(|(key, _)| passing.taken.contains(key));
    let read = Through::over(read.clone(), Arc::new(GatherKeys { columns, keys: passing.keys }));
    let left = if together.is_some() { replace_children_if_necessary(left.clone(), vec![read])? } else { read };
    Ok(Some((left, right)))
}

/// A column of a plan and the key of the join that its values must be among.
#[derive(Clone)]
struct Wanted {
    column: String,
    key: usize,
}

/// Keys on their way to scans.
struct Passing {
    keys: Arc<JoinKeys>,
    /// Those that some scan can use.
    taken: Vec<usize>,
}

/// `plan` where scans know that of some columns only some keys are wanted; None if no scan could use it. Names of columns are generated: a
/// column that an operator passes on has the same name below it.
fn restricted(plan: &Arc<dyn ExecutionPlan>, wanted: &[Wanted], passing: &mut Passing) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let wanted: Vec<Wanted> = wanted.iter().filter(|wanted| has_column(plan, &wanted.column)).cloned().collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let columns: Vec<(&str, usize)> = wanted.iter().map(|wanted| (wanted.column.as_str(), wanted.key)).collect();
        return Ok(scan.by_keys(&columns, &passing.keys).map(|(scan, taken)| {
            passing.taken.extend(taken);
            Arc::new(scan) as Arc<dyn ExecutionPlan>
        }));
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
        let mut inputs = [join.left().clone(), join.right().clone()];
        let mut any = false;
        for (input, _) in inputs.iter_mut().zip(kept).filter(|(_, kept)| *kept) {
            if let Some(fewer) = restricted(input, &wanted, passing)? {
                *input = fewer;
                any = true;
            }
        }
        return Ok(if any { Some(replace_children_if_necessary(plan.clone(), inputs.to_vec())?) } else { None });
    }
    let below: Vec<Wanted> = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let passed = |wanted: Wanted| {
            let expr = projection.expr().iter().find(|expr| expr.alias == wanted.column)?;
            Some(Wanted { column: expr.expr.downcast_ref::<Column>()?.name().to_owned(), ..wanted })
        };
        wanted.into_iter().filter_map(passed).collect()
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        // Groups of other keys are of no use.
        let groups = aggregate.group_expr();
        let passed = |wanted: Wanted| {
            let (expr, _) = groups.expr().iter().find(|(_, name)| *name == wanted.column && groups.is_single())?;
            Some(Wanted { column: expr.downcast_ref::<Column>()?.name().to_owned(), ..wanted })
        };
        wanted.into_iter().filter_map(passed).collect()
    } else {
        let passes = plan.is::<FilterExec>()
            || plan.is::<RepartitionExec>()
            || plan.is::<CoalescePartitionsExec>()
            || plan.is::<CooperativeExec>()
            || plan.is::<Through>()
            || plan.is::<SortExec>();
        if passes { wanted } else { Vec::new() }
    };
    let [input] = plan.children()[..] else { return Ok(None) };
    let Some(input) = restricted(input, &below, passing)? else { return Ok(None) };
    Ok(Some(replace_children_if_necessary(plan.clone(), vec![input])?))
}

/// Exactly one of its columns has the name.
fn has_column(plan: &Arc<dyn ExecutionPlan>, name: &str) -> bool {
    plan.schema().fields().iter().filter(|field| field.name() == name).count() == 1
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::execution::memory_pool::UnboundedMemoryPool;

    use super::*;

    fn ints(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    /// Of a join with one key.
    fn partition(keys: &Arc<JoinKeys>, values: &[i64]) -> Partition {
        let mut part = unseen(keys, &[0]);
        part.see(&[&ints(values)]);
        part
    }

    fn unseen(keys: &Arc<JoinKeys>, wanted: &[usize]) -> Partition {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        Partition { keys: keys.clone(), seen: Some(Part::new(wanted.iter().copied(), &pool)) }
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
        assert_eq!(first.set(0).unwrap().list().unwrap().collect::<Vec<_>>(), [3, 7, 40]);
        assert!(first.set(1).is_none());
    }

    #[tokio::test]
    async fn several_keys_are_known_side_by_side_and_each_for_itself() {
        let keys = JoinKeys::new(1);
        // Nobody wants key 1.
        let mut part = unseen(&keys, &[0, 2]);
        part.see(&[&ints(&[5, 5, 6]), &ints(&[9, 8, 9])]);
        part.end();
        let known = keys.wait(JoinKeys::patience(0)).await.unwrap();
        assert_eq!(known.listed(&[2, 0], 10).unwrap(), [[8, 5], [9, 5], [9, 6]]);
        assert_eq!(known.listed(&[2, 0], 2).unwrap(), [[8], [9]], "the first of them alone");
        assert!(known.listed(&[2, 0], 1).is_none());
        assert_eq!(known.listed(&[0], 2).unwrap(), [[5], [6]]);
    }

    #[tokio::test]
    async fn of_a_partition_that_was_not_read_nothing_is_known() {
        let keys = JoinKeys::new(2);
        partition(&keys, &[1]).end();
        drop(partition(&keys, &[2]));
        assert!(keys.wait(JoinKeys::patience(0)).await.is_none());
    }
}
