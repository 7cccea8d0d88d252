//! Probe sides that are read ahead. A hash join puts the rows of its build side into a table on one worker, and asks for no row of the probe side before the
//! table is complete. Until then the other workers would have nothing to do: they read rows of the probe side, which the join finds ready when it asks.
//!
//! They begin when the build side has been read, not before: scans on the probe side wait for its keys (`sideways`). A join whose build side has no row that
//! anything could meet may never ask, so nothing is read ahead for it.
//!
//! For plans that are executed once: in another execution the build side of the first would have been read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, SendableRecordBatchStream, replace_children_if_necessary};
use futures::stream::Fuse;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::through::{OnTheWay, Through};

/// The part of the memory of all queries that the rows which are read ahead for one join may fill, and bytes of each worker that are enough however much
/// there is.
const MEMORY_PART: usize = 64;
const MOST_BYTES: usize = 8 << 20;

/// Lets workers read the probe sides of joins ahead while the table is made that all of them ask.
pub(super) fn probes_read_ahead(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
        let keys: Option<Vec<usize>> = join.on().iter().map(|(key, _)| key.downcast_ref::<Column>().map(Column::index)).collect();
        let one_table = *join.partition_mode() == PartitionMode::CollectLeft && !join.null_aware;
        let workers = join.right().output_partitioning().partition_count();
        let inputs = [join.left().clone(), join.right().clone()];
        let Some(keys) = keys.filter(|_| one_table && workers > 1) else { return Ok(Transformed::no(node)) };
        let [build, probe] = inputs;
        let built = Arc::new(Event::default());
        let build = Through::over(build, Arc::new(TellEnd { keys, ended: built.clone() }));
        let anybody = matches!(probe.output_partitioning(), Partitioning::UnknownPartitioning(_) | Partitioning::RoundRobinBatch(_)) && probe.output_ordering().is_none();
        let probe = Through::over(probe, Arc::new(ReadAhead::new(built, workers, anybody)));
        Ok(Transformed::yes(replace_children_if_necessary(node, vec![build, probe])?))
    })
    .data()
}

/// Something that happens once.
#[derive(Debug, Default)]
struct Event {
    happened: AtomicBool,
    wake: Notify,
}

impl Event {
    fn happen(&self) {
        self.happened.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    fn has_happened(&self) -> bool {
        self.happened.load(Ordering::Acquire)
    }

    async fn wait(&self) {
        // It is woken from now on.
        let wake = self.wake.notified();
        if !self.has_happened() {
            wake.await;
        }
    }
}

/// Tells that a build side has been read, if some row of it can be met.
#[derive(Debug)]
struct TellEnd {
    keys: Vec<usize>,
    ended: Arc<Event>,
}

impl OnTheWay for TellEnd {
    /// The end of one partition is the end of all.
    fn divides(&self) -> bool {
        false
    }

    fn stream(&self, input: SendableRecordBatchStream, _: usize, _: &TaskContext) -> SendableRecordBatchStream {
        let schema = input.schema();
        let side = BuildSide { input, keys: self.keys.clone(), ended: self.ended.clone(), can_be_met: false };
        let batches = futures::stream::unfold(side, |mut side| async move { Some((side.next().await?, side)) });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

struct BuildSide {
    input: SendableRecordBatchStream,
    keys: Vec<usize>,
    ended: Arc<Event>,
    can_be_met: bool,
}

impl BuildSide {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.input.next().await;
        match &batch {
            Some(Ok(batch)) => self.can_be_met = self.can_be_met || has_key(batch, &self.keys),
            None if self.can_be_met => self.ended.happen(),
            _ => {}
        }
        batch
    }
}

/// True if some row has no NULL among its keys.
fn has_key(batch: &RecordBatch, keys: &[usize]) -> bool {
    let nulls: Vec<Option<NullBuffer>> = keys.iter().map(|&key| batch.column(key).logical_nulls()).collect();
    let rows_with_null = NullBuffer::union_many(nulls.iter().map(Option::as_ref)).map_or(0, |nulls| nulls.null_count());
    rows_with_null < batch.num_rows()
}

/// Its input's rows, some of them read before they are asked for.
#[derive(Debug)]
struct ReadAhead {
    begin: Arc<Event>,
    workers: usize,
    /// What has been read ahead: one for all workers, or one for each.
    ready: Vec<Arc<Ready>>,
}

impl ReadAhead {
    /// `anybody`: whoever asks may have the rows of any partition that are there, and those of one in any order. Often one worker has read them all.
    fn new(begin: Arc<Event>, workers: usize, anybody: bool) -> ReadAhead {
        let pools = if anybody { 1 } else { workers };
        ReadAhead { begin, workers, ready: (0..pools).map(|_| Arc::default()).collect() }
    }
}

impl OnTheWay for ReadAhead {
    fn stream(&self, input: SendableRecordBatchStream, partition: usize, context: &TaskContext) -> SendableRecordBatchStream {
        let most = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(limit) => MOST_BYTES.min(limit / MEMORY_PART / self.workers),
            _ => MOST_BYTES,
        };
        let memory = MemoryConsumer::new("rows read ahead").register(context.memory_pool());
        let schema = input.schema();
        let asked = Arc::new(Event::default());
        let ready = self.ready[partition % self.ready.len()].clone();
        let reading = SpawnedTask::spawn(read_ahead(input, self.begin.clone(), asked.clone(), Reader { ready: ready.clone(), memory: Arc::new(memory), most }));
        let batches = async move {
            asked.happen();
            let rest = reading.join_unwind().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?;
            let ahead = futures::stream::iter(std::iter::from_fn(move || ready.take()));
            Ok::<_, DataFusionError>(ahead.chain(rest))
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(batches).try_flatten()))
    }
}

/// Rows that have been read ahead, in their order, with the memory that each batch is counted in.
#[derive(Debug, Default)]
struct Ready(Mutex<VecDeque<(Result<RecordBatch>, Option<Counted>)>>);

impl Ready {
    fn take(&self) -> Option<Result<RecordBatch>> {
        self.0.lock().pop_front().map(|(batch, _)| batch)
    }
}

/// Bytes of a reservation that are given back when this goes.
#[derive(Debug)]
struct Counted {
    memory: Arc<MemoryReservation>,
    bytes: usize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.memory.shrink(self.bytes);
    }
}

/// Where what one task reads goes.
struct Reader {
    ready: Arc<Ready>,
    memory: Arc<MemoryReservation>,
    /// Bytes that it may hold at a time.
    most: usize,
}

impl Reader {
    /// Puts a batch there; false if it is the last: an error, or one that does not fit.
    fn put(&self, batch: Result<RecordBatch>) -> bool {
        let bytes = batch.as_ref().map_or(0, RecordBatch::get_array_memory_size);
        let fits = self.memory.size() + bytes <= self.most && self.memory.try_grow(bytes).is_ok();
        let goes_on = fits && batch.is_ok();
        let counted = fits.then(|| Counted { memory: self.memory.clone(), bytes });
        self.ready.0.lock().push_back((batch, counted));
        goes_on
    }
}

/// Waits for `begin`, and reads until somebody asks for rows, or so many bytes are there. Gives what it has not read.
async fn read_ahead(input: SendableRecordBatchStream, begin: Arc<Event>, asked: Arc<Event>, reader: Reader) -> Fuse<SendableRecordBatchStream> {
    let mut rest = input.fuse();
    tokio::select! {
        () = begin.wait() => {}
        () = asked.wait() => return rest,
    }
    while !asked.has_happened() {
        let Some(batch) = rest.next().await else { break };
        if !reader.put(batch) {
            break;
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::common::exec_err;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use futures::Stream;

    use super::*;

    fn batch(columns: &[&[Option<i64>]]) -> RecordBatch {
        let columns = columns.iter().zip(["a", "b"]).map(|(values, name)| (name, Arc::new(Int64Array::from(values.to_vec())) as ArrayRef, true));
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    /// A batch for each number, and how many have been read.
    fn numbers(numbers: Vec<Result<i64>>) -> (SendableRecordBatchStream, Arc<AtomicUsize>) {
        let read = Arc::new(AtomicUsize::new(0));
        let counted = read.clone();
        let batches = futures::stream::iter(numbers).map(move |number| {
            counted.fetch_add(1, Ordering::Relaxed);
            number.map(|number| batch(&[&[Some(number)]]))
        });
        (Box::pin(RecordBatchStreamAdapter::new(batch(&[&[]]).schema(), batches)), read)
    }

    fn context() -> TaskContext {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY_PART << 12));
        let environment = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
        TaskContext::default().with_runtime(environment)
    }

    async fn values(batches: impl Stream<Item = Result<RecordBatch>>) -> Vec<Option<i64>> {
        let of = |batch: Result<RecordBatch>| batch.ok().map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0));
        batches.map(of).collect().await
    }

    /// Returns when so many batches have been read.
    async fn until(read: &AtomicUsize, batches: usize) {
        let reading = async {
            while read.load(Ordering::Relaxed) < batches {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reading).await.expect("they are read");
    }

    #[tokio::test]
    async fn rows_are_read_from_the_event_on_and_come_in_their_order() {
        let context = context();
        let begin = Arc::new(Event::default());
        let (input, read) = numbers((0..1000).map(Ok).collect());
        let rows = ReadAhead::new(begin.clone(), 1, true).stream(input, 0, &context);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(read.load(Ordering::Relaxed), 0);
        begin.happen();
        until(&read, 3).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(read.load(Ordering::Relaxed) < 1000, "no more than memory allows");
        assert!(context.memory_pool().reserved() > 0);
        assert_eq!(values(rows).await, (0..1000).map(Some).collect::<Vec<_>>());
        assert_eq!(context.memory_pool().reserved(), 0);
    }

    #[tokio::test]
    async fn what_one_worker_has_read_is_for_all_unless_it_has_to_be_its_own() {
        for anybody in [true, false] {
            let context = context();
            let begin = Arc::new(Event::default());
            begin.happen();
            let ahead = ReadAhead::new(begin, 2, anybody);
            let (all, read) = numbers((0..3).map(Ok).collect());
            let (none, _) = numbers(Vec::new());
            let (first, second) = (ahead.stream(all, 0, &context), ahead.stream(none, 1, &context));
            until(&read, 3).await;
            let (first, second) = (async { first.take(1).count().await }, async { second.count().await });
            let (first, second) = (first.await, second.await);
            assert_eq!((first, second), if anybody { (1, 2) } else { (1, 0) });
            drop(ahead);
            assert_eq!(context.memory_pool().reserved(), 0);
        }
    }

    #[tokio::test]
    async fn whoever_asks_first_reads_himself() {
        let context = context();
        let (input, _) = numbers(vec![Ok(1), exec_err!("for the test"), Ok(2)]);
        let rows = ReadAhead::new(Arc::default(), 1, true).stream(input, 0, &context);
        assert_eq!(values(rows).await, [Some(1), None, Some(2)]);
        let (input, read) = numbers(vec![Ok(1), Ok(2)]);
        let begin = Arc::new(Event::default());
        drop(ReadAhead::new(begin.clone(), 1, true).stream(input, 0, &context));
        begin.happen();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(read.load(Ordering::Relaxed), 0, "nobody wants them");
    }

    #[tokio::test]
    async fn an_error_that_is_read_ahead_comes_where_it_was() {
        let context = context();
        let begin = Arc::new(Event::default());
        begin.happen();
        let (input, read) = numbers(vec![Ok(1), exec_err!("for the test"), Ok(2)]);
        let rows = ReadAhead::new(begin, 1, true).stream(input, 0, &context);
        until(&read, 2).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(read.load(Ordering::Relaxed), 2, "nothing is read ahead behind an error");
        assert_eq!(values(rows).await, [Some(1), None, Some(2)]);
    }

    #[tokio::test]
    async fn a_build_side_tells_its_end_if_a_row_can_be_met() {
        let (some, null) = (Some(1), None);
        let sides: [(Vec<RecordBatch>, bool); 5] = [
            (vec![], false),
            (vec![batch(&[&[], &[]])], false),
            (vec![batch(&[&[null, some], &[some, null]]), batch(&[&[null], &[null]])], false),
            (vec![batch(&[&[null, some], &[some, some]]), batch(&[&[null], &[some]])], true),
            (vec![batch(&[&[some], &[some]])], true),
        ];
        for (at, (batches, expected)) in sides.into_iter().enumerate() {
            let ended = Arc::new(Event::default());
            let count = batches.len();
            let input = RecordBatchStreamAdapter::new(batch(&[&[], &[]]).schema(), futures::stream::iter(batches.into_iter().map(Ok::<_, DataFusionError>)));
            let mut rows = TellEnd { keys: vec![0, 1], ended: ended.clone() }.stream(Box::pin(input), 0, &context());
            for _ in 0..count {
                assert!(rows.next().await.is_some());
                assert!(!ended.has_happened(), "{at}");
            }
            assert!(rows.next().await.is_none());
            assert_eq!(ended.has_happened(), expected, "{at}");
        }
    }
}
