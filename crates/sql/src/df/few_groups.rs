//! Groupings whose rows have few different keys, as flags and states are. A worker's share of a grouping numbers its groups by a table that is asked once a
//! row, without hashing columns or comparing them one after the other. Where there are more groups than that is good for, or no memory, it gives the states
//! that it has, and DataFusion's grouping has the rows that are left: the states are put together with all others.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat, take};
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type, SchemaRef, UInt16Type, UInt64Type};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy, aggregate_expressions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, InputOrderMode, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::aggregate::Aggregate;
use super::compact::tight;
use super::kernel::{INLINE_BYTES, Known};

/// More groups than this are DataFusion's.
const MOST_GROUPS: usize = 256;
/// Groupings by more columns are.
const MOST_KEYS: usize = 4;

/// The workers' shares of groupings are done here as long as they have few groups.
pub(super) fn few_groups(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| Ok(match FewGroupsExec::of(&node)? {
        Some(few) => Transformed::yes(Arc::new(few) as Arc<dyn ExecutionPlan>),
        None => Transformed::no(node),
    }))
    .data()
}

/// A worker's share of a grouping.
struct Grouping {
    group_by: PhysicalGroupBy,
    /// The columns of the input that are the keys.
    keys: Vec<usize>,
    aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// What each aggregate is given.
    args: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// The first aggregate that has the same states as each, often itself: SUM and AVG of a column.
    same: Vec<usize>,
    input_schema: SchemaRef,
    schema: SchemaRef,
}

impl Grouping {
    /// None if it is not a worker's share, or of a kind that is left to DataFusion.
    fn of(grouping: &AggregateExec) -> Result<Option<Grouping>> {
        let group_by = grouping.group_expr();
        let plain = *grouping.mode() == AggregateMode::Partial
            && *grouping.input_order_mode() == InputOrderMode::Linear
            && grouping.limit_options().is_none()
            && group_by.is_single()
            && grouping.filter_expr().iter().all(Option::is_none)
            && grouping.aggr_expr().iter().all(|aggregate| aggregate.groups_accumulator_supported());
        if !plain || !(1..=MOST_KEYS).contains(&group_by.expr().len()) {
            return Ok(None);
        }
        let input = grouping.input().schema();
        // Whatever is computed has been: it is asked for twice where rows are left to DataFusion.
        let column = |key: &Arc<dyn PhysicalExpr>| key.downcast_ref::<Column>().map(Column::index).filter(|&at| has_words(input.field(at).data_type()));
        let Some(keys) = group_by.expr().iter().map(|(key, _)| column(key)).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let aggregates = grouping.aggr_expr().to_vec();
        let args = aggregate_expressions(&aggregates, grouping.mode(), keys.len())?;
        let same = (0..aggregates.len()).map(|at| (0..at).find(|&other| args[other] == args[at] && have_same_states(&aggregates[other], &aggregates[at])).unwrap_or(at));
        let same = same.collect();
        Ok(Some(Grouping { group_by: group_by.clone(), keys, aggregates, args, same, input_schema: grouping.input_schema(), schema: grouping.schema() }))
    }

    /// DataFusion's grouping of rows.
    fn of_rows(&self, rows: SendableRecordBatchStream, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = rows.schema();
        let rows: Arc<dyn PartitionStream> = Arc::new(RowsLeft { schema: schema.clone(), rows: Mutex::new(Some(rows)) });
        let rows = Arc::new(StreamingTableExec::try_new(schema, vec![rows], None, None, false, None)?);
        let filters = vec![None; self.aggregates.len()];
        AggregateExec::try_new(AggregateMode::Partial, self.group_by.clone(), self.aggregates.clone(), filters, rows, self.input_schema.clone())?.execute(0, context)
    }
}

/// The partial states of two aggregates of the same arguments are the same.
fn have_same_states(one: &AggregateFunctionExpr, other: &AggregateFunctionExpr) -> bool {
    match (ours(one), ours(other)) {
        (Some(one), Some(other)) => one.has_states_of(other),
        _ => false,
    }
}

fn ours(aggregate: &AggregateFunctionExpr) -> Option<&Aggregate> {
    aggregate.fun().inner().downcast_ref::<Aggregate>()
}

/// Rows that were read and those to come, once.
struct RowsLeft {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for RowsLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowsLeft")
    }
}

impl PartitionStream for RowsLeft {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        self.rows.lock().take().unwrap_or_else(|| Box::pin(EmptyRecordBatchStream::new(self.schema.clone())))
    }
}

/// A worker's share of a grouping, in place of DataFusion's, which is its child: it is what EXPLAIN shows.
pub(super) struct FewGroupsExec {
    shown: Arc<dyn ExecutionPlan>,
    grouping: Arc<Grouping>,
}

impl FewGroupsExec {
    fn of(node: &Arc<dyn ExecutionPlan>) -> Result<Option<FewGroupsExec>> {
        let Some(grouping) = node.downcast_ref::<AggregateExec>() else { return Ok(None) };
        Ok(Grouping::of(grouping)?.map(|grouping| FewGroupsExec { shown: node.clone(), grouping: Arc::new(grouping) }))
    }

    pub fn shown(&self) -> &dyn ExecutionPlan {
        self.shown.as_ref()
    }

    fn of_child(mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let child = children.remove(0);
        Ok(match FewGroupsExec::of(&child)? {
            Some(few) => Arc::new(few) as Arc<dyn ExecutionPlan>,
            None => child,
        })
    }
}

impl fmt::Debug for FewGroupsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FewGroupsExec").field("shown", &self.shown).finish_non_exhaustive()
    }
}

impl DisplayAs for FewGroupsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("FewGroups")
    }
}

impl ExecutionPlan for FewGroupsExec {
    fn name(&self) -> &str {
        "FewGroups"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.shown.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.shown]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>, _: ReplaceChildrenOptions) -> Result<Arc<dyn ExecutionPlan>> {
        FewGroupsExec::of_child(children)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        FewGroupsExec::of_child(children)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.shown.children()[0].execute(partition, context.clone())?;
        let states = futures::stream::once(grouped(self.grouping.clone(), input, context)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), states)))
    }
}

/// The states of the groups of some rows.
async fn grouped(grouping: Arc<Grouping>, mut rows: SendableRecordBatchStream, context: Arc<TaskContext>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let memory = MemoryConsumer::new("few groups").with_can_spill(true).register(context.memory_pool());
    let mut few = FewGroups::new(grouping.clone(), memory)?;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        if !few.add(&batch)? {
            let found = futures::stream::iter(few.states()?.map(Ok));
            // Its memory is for those of the rows left.
            drop(few);
            let left = RecordBatchStreamAdapter::new(rows.schema(), futures::stream::iter([Ok(batch)]).chain(rows));
            return Ok(found.chain(grouping.of_rows(Box::pin(left), context)?).boxed());
        }
    }
    Ok(futures::stream::iter(few.states()?.map(Ok)).boxed())
}

/// The groups of the rows so far.
struct FewGroups {
    grouping: Arc<Grouping>,
    numbers: Box<dyn NumberGroups>,
    /// Of each key, those that are long.
    long: Vec<LongKeys>,
    /// Of each key, the groups' values, as they came.
    keys: Vec<Vec<ArrayRef>>,
    groups: usize,
    /// None: the aggregate has the states of another.
    aggregates: Vec<Option<Box<dyn GroupsAccumulator>>>,
    /// The group of each row of a batch.
    of_rows: Vec<usize>,
    /// It takes no more rows.
    full: bool,
    memory: MemoryReservation,
}

impl FewGroups {
    fn new(grouping: Arc<Grouping>, memory: MemoryReservation) -> Result<FewGroups> {
        let keys = grouping.keys.len();
        let aggregates = grouping.aggregates.iter().zip(&grouping.same).enumerate();
        let aggregates = aggregates.map(|(at, (aggregate, &same))| if same == at { aggregate.create_groups_accumulator().map(Some) } else { Ok(None) });
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        Ok(FewGroups {
            numbers: numbers(keys),
            long: (0..keys).map(|_| LongKeys::default()).collect(),
            keys: vec![Vec::new(); keys],
            groups: 0,
            aggregates,
            of_rows: Vec::new(),
            full: false,
            memory,
            grouping,
        })
    }

    /// False: it has taken none of the rows, nor will it take others.
    fn add(&mut self, batch: &RecordBatch) -> Result<bool> {
        let rows = batch.num_rows();
        if self.full {
            return Ok(false);
        }
        if rows == 0 {
            return Ok(true);
        }
        let keys: Vec<&ArrayRef> = self.grouping.keys.iter().map(|&at| batch.column(at)).collect();
        let words: Vec<Cow<[u128]>> = keys.iter().zip(&mut self.long).map(|(&key, long)| words(key, long)).collect();
        let words: Vec<&[u128]> = words.iter().map(|words| &words[..]).collect();
        self.of_rows.resize(rows, 0);
        let mut firsts = Vec::new();
        if self.long.iter().any(LongKeys::are_many) || !self.numbers.number(&words, &mut self.of_rows, &mut firsts) {
            self.full = true;
            return Ok(false);
        }
        if !firsts.is_empty() {
            self.groups += firsts.len();
            let firsts = UInt32Array::from(firsts);
            for (known, key) in self.keys.iter_mut().zip(keys) {
                known.push(tight(&take(key, &firsts, None)?));
            }
        }
        for (aggregate, args) in self.aggregates.iter_mut().zip(&self.grouping.args) {
            if let Some(aggregate) = aggregate {
                let args = args.iter().map(|arg| arg.evaluate(batch)?.into_array(rows)).collect::<Result<Vec<_>>>()?;
                aggregate.update_batch(&args, &self.of_rows, None, self.groups)?;
            }
        }
        self.full = self.memory.try_resize(self.bytes()).is_err();
        Ok(true)
    }

    fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().flatten().map(|values| values.get_array_memory_size()).sum();
        let long: usize = self.long.iter().map(|long| long.bytes).sum();
        let states: usize = self.aggregates.iter().flatten().map(|aggregate| aggregate.size()).sum();
        self.numbers.bytes() + keys + long + states + self.of_rows.capacity() * size_of::<usize>()
    }

    /// The states of all groups, if there are any.
    fn states(&mut self) -> Result<Option<RecordBatch>> {
        if self.groups == 0 {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(self.grouping.schema.fields().len());
        for values in &self.keys {
            let values: Vec<&dyn Array> = values.iter().map(|values| values.as_ref()).collect();
            columns.push(concat(&values)?);
        }
        let mut states: Vec<Vec<ArrayRef>> = Vec::with_capacity(self.aggregates.len());
        for (aggregate, &same) in self.aggregates.iter_mut().zip(&self.grouping.same) {
            states.push(match aggregate {
                Some(aggregate) => aggregate.state(EmitTo::All)?,
                None => states[same].clone(),
            });
        }
        columns.extend(states.into_iter().flatten());
        Ok(Some(RecordBatch::try_new(self.grouping.schema.clone(), columns)?))
    }
}

/// A key of a row as a number, the same for equal values. The low 32 bits are the length of a text, or 0 of a number.
const NULL: u128 = u32::MAX as u128;
/// No value.
const NOTHING: u128 = u128::MAX;

fn has_words(ty: &DataType) -> bool {
    matches!(ty, DataType::BinaryView | DataType::Int64 | DataType::UInt64 | DataType::Int32 | DataType::UInt16)
}

/// The words of a column for which `has_words`.
fn words<'a>(key: &'a ArrayRef, long: &mut LongKeys) -> Cow<'a, [u128]> {
    match key.data_type() {
        DataType::BinaryView => words_of_bytes(key.as_binary_view(), long),
        DataType::UInt64 => words_of_numbers::<UInt64Type>(key, |value| value),
        DataType::Int32 => words_of_numbers::<Int32Type>(key, |value| u64::from(value as u32)),
        DataType::UInt16 => words_of_numbers::<UInt16Type>(key, u64::from),
        _ => words_of_numbers::<Int64Type>(key, |value| value as u64),
    }
}

fn words_of_numbers<T: ArrowPrimitiveType>(key: &ArrayRef, number: impl Fn(T::Native) -> u64) -> Cow<'static, [u128]> {
    let values = key.as_primitive::<T>();
    let word = |value: T::Native| u128::from(number(value)) << 32;
    Cow::Owned(match values.null_count() {
        0 => values.values().iter().map(|&value| word(value)).collect(),
        _ => values.iter().map(|value| value.map_or(NULL, word)).collect(),
    })
}

/// A view of few bytes is all of them.
fn words_of_bytes<'a>(values: &'a BinaryViewArray, long: &mut LongKeys) -> Cow<'a, [u128]> {
    let views = &values.views()[..];
    if values.null_count() == 0 && values.data_buffers().iter().all(|buffer| buffer.is_empty()) {
        return Cow::Borrowed(views);
    }
    let mut known = Known::new();
    let words = views.iter().enumerate().map(|(row, &view)| {
        if values.is_null(row) {
            NULL
        } else if view as u32 as usize <= INLINE_BYTES {
            view
        } else {
            known.get(view, || long.word(values.value(row)))
        }
    });
    Cow::Owned(words.collect())
}

/// Values that are longer than a view, numbered.
#[derive(Default)]
struct LongKeys {
    numbers: HashMap<Box<[u8]>, u32, ahash::RandomState>,
    bytes: usize,
}

impl LongKeys {
    fn word(&mut self, value: &[u8]) -> u128 {
        let number = self.numbers.get(value).copied().unwrap_or_else(|| {
            let number = self.numbers.len() as u32;
            if !self.are_many() {
                self.numbers.insert(value.into(), number);
                self.bytes += value.len() + size_of::<(Box<[u8]>, u32)>();
            }
            number
        });
        u128::from(number) << 32 | value.len() as u32 as u128
    }

    /// More than there may be groups; words say nothing then.
    fn are_many(&self) -> bool {
        self.numbers.len() > MOST_GROUPS
    }
}

/// Gives groups their numbers.
trait NumberGroups: Send {
    /// The group of each row, by the words of its keys; `firsts` is extended by the first row of each new one. False if they are too many.
    fn number(&mut self, words: &[&[u128]], groups: &mut [usize], firsts: &mut Vec<u32>) -> bool;
    fn bytes(&self) -> usize;
}

fn numbers(keys: usize) -> Box<dyn NumberGroups> {
    match keys {
        1 => Box::new(Numbers::<1>::new()),
        2 => Box::new(Numbers::<2>::new()),
        3 => Box::new(Numbers::<3>::new()),
        _ => Box::new(Numbers::<MOST_KEYS>::new()),
    }
}

/// Groups that were asked for are kept in so many places, each in one that its keys say; another group may take it.
const PLACES: usize = 1024;

struct Numbers<const KEYS: usize> {
    places: Vec<([u128; KEYS], usize)>,
    all: HashMap<[u128; KEYS], usize, ahash::RandomState>,
}

impl<const KEYS: usize> Numbers<KEYS> {
    fn new() -> Numbers<KEYS> {
        Numbers { places: vec![([NOTHING; KEYS], 0); PLACES], all: HashMap::default() }
    }

    fn place(key: &[u128; KEYS]) -> usize {
        let mixed = key.iter().fold(0u64, |mixed, &word| (mixed.rotate_left(5) ^ (word ^ word >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (mixed >> (64 - PLACES.ilog2())) as usize
    }
}

impl<const KEYS: usize> NumberGroups for Numbers<KEYS> {
    fn number(&mut self, words: &[&[u128]], groups: &mut [usize], firsts: &mut Vec<u32>) -> bool {
        let words: [&[u128]; KEYS] = std::array::from_fn(|key| &words[key][..groups.len()]);
        for (row, group) in groups.iter_mut().enumerate() {
            let key: [u128; KEYS] = std::array::from_fn(|key| words[key][row]);
            let place = &mut self.places[Self::place(&key)];
            if place.0 != key {
                let Some(found) = find(&mut self.all, key, row, firsts) else { return false };
                *place = (key, found);
            }
            *group = place.1;
        }
        true
    }

    fn bytes(&self) -> usize {
        (self.places.capacity() + self.all.capacity()) * size_of::<([u128; KEYS], usize)>()
    }
}

/// The number of a group that may be new; None if it is one too many. Apart from the loop over the rows.
#[inline(never)]
fn find<const KEYS: usize>(all: &mut HashMap<[u128; KEYS], usize, ahash::RandomState>, key: [u128; KEYS], row: usize, firsts: &mut Vec<u32>) -> Option<usize> {
    if let Some(&known) = all.get(&key) {
        return Some(known);
    }
    let new = all.len();
    if new == MOST_GROUPS {
        return None;
    }
    all.insert(key, new);
    firsts.push(row as u32);
    Some(new)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::common::ScalarValue;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool, UnboundedMemoryPool};
    use datafusion::functions_aggregate::count::count_udaf;
    use datafusion::physical_expr::aggregate::AggregateExprBuilder;
    use datafusion::physical_plan::collect;

    use super::*;
    use crate::df::aggregate::AggregateKind;
    use crate::df::repr::Repr;

    fn schema() -> SchemaRef {
        let field = |name: &str, ty: DataType| Field::new(name, ty, true);
        Arc::new(Schema::new(vec![field("text", DataType::BinaryView), field("number", DataType::Int64), field("value", DataType::Int64)]))
    }

    /// Rows with so many different texts, some of them long, and some NULL; and with so many different numbers, some of them NULL.
    fn batches(texts: usize, numbers: usize) -> Vec<RecordBatch> {
        let text = |row: usize| (row % 11 != 5).then(|| format!("{}{}", "a text longer than a view".repeat(row % texts % 2), row % texts));
        let number = |row: usize| (row % 13 != 7).then_some((row / 3 % numbers) as i64 - 2);
        (0..4)
            .map(|batch| {
                let rows = batch * 500..batch * 500 + 500;
                let columns: Vec<ArrayRef> = vec![
                    Arc::new(rows.clone().map(text).collect::<BinaryViewArray>()),
                    Arc::new(rows.clone().map(number).collect::<Int64Array>()),
                    Arc::new(rows.map(|row| (row % 17 != 3).then_some(row as i64)).collect::<Int64Array>()),
                ];
                RecordBatch::try_new(schema(), columns).unwrap()
            })
            .collect()
    }

    fn stream(batches: Vec<RecordBatch>) -> SendableRecordBatchStream {
        Box::pin(RecordBatchStreamAdapter::new(schema(), futures::stream::iter(batches.into_iter().map(Ok))))
    }

    fn columns(names: &[&str]) -> Vec<(Arc<dyn PhysicalExpr>, String)> {
        names.iter().map(|&name| (Arc::new(Column::new_with_schema(name, &schema()).unwrap()) as Arc<dyn PhysicalExpr>, name.to_owned())).collect()
    }

    /// COUNT, SUM and AVG of the values.
    fn aggregates() -> Vec<Arc<AggregateFunctionExpr>> {
        let exact = |mean: bool| Aggregate::udaf(AggregateKind::Exact { input: Repr::Int, mean }, DataType::Decimal128(38, if mean { 4 } else { 0 }), &Arc::default());
        let all = [("count", count_udaf()), ("sum", exact(false)), ("mean", exact(true))];
        all.into_iter()
            .map(|(name, function)| {
                let value = columns(&["value"]).remove(0).0;
                Arc::new(AggregateExprBuilder::new(function, vec![value]).schema(schema()).alias(name).build().unwrap())
            })
            .collect()
    }

    fn share(keys: &[&str], batches: Vec<RecordBatch>) -> AggregateExec {
        let rows: Arc<dyn PartitionStream> = Arc::new(RowsLeft { schema: schema(), rows: Mutex::new(Some(stream(batches))) });
        let rows = Arc::new(StreamingTableExec::try_new(schema(), vec![rows], None, None, false, None).unwrap());
        AggregateExec::try_new(AggregateMode::Partial, PhysicalGroupBy::new_single(columns(keys)), aggregates(), vec![None; 3], rows, schema()).unwrap()
    }

    /// The groups of all rows, sorted as text.
    fn groups(keys: &[&str], share: Arc<dyn ExecutionPlan>) -> Vec<String> {
        let group_by = PhysicalGroupBy::new_single(columns(keys)).as_final();
        let whole = AggregateExec::try_new(AggregateMode::Final, group_by, aggregates(), vec![None; 3], share, schema()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let batches = runtime.block_on(collect(Arc::new(whole), Arc::new(TaskContext::default()))).unwrap();
        let row = |batch: &RecordBatch, row: usize| batch.columns().iter().map(|c| format!("{:?}|", ScalarValue::try_from_array(c, row).unwrap())).collect::<String>();
        let mut rows: Vec<String> = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at))).collect();
        rows.sort();
        rows
    }

    /// Few groups, one more than there may be of a column, and so many that rows are left after some batches.
    #[test]
    fn groups_are_those_of_datafusion() {
        for (texts, numbers) in [(1, 1), (5, 3), (40, 6), (MOST_GROUPS + 1, 2), (3, 400)] {
            let all: [&[&str]; 4] = [&["text"], &["number"], &["text", "number"], &["number", "text", "value"]];
            for keys in all {
                let expected = groups(keys, Arc::new(share(keys, batches(texts, numbers))));
                let few = few_groups(Arc::new(share(keys, batches(texts, numbers)))).unwrap();
                assert!(few.is::<FewGroupsExec>());
                assert_eq!(groups(keys, few), expected, "{texts} {numbers} {keys:?}");
            }
        }
    }

    #[test]
    fn sum_and_mean_have_the_same_states() {
        let grouping = Grouping::of(&share(&["text"], Vec::new())).unwrap().unwrap();
        assert_eq!(grouping.same, [0, 1, 1]);
    }

    #[test]
    fn without_memory_no_rows_are_taken() {
        let pools: [(Arc<dyn MemoryPool>, bool); 2] = [(Arc::new(UnboundedMemoryPool::default()), true), (Arc::new(GreedyMemoryPool::new(1)), false)];
        for (pool, has_memory) in pools {
            let grouping = Arc::new(Grouping::of(&share(&["text"], Vec::new())).unwrap().unwrap());
            let mut few = FewGroups::new(grouping, MemoryConsumer::new("test").register(&pool)).unwrap();
            let batches = batches(5, 1);
            // It may have to give back what it has when it has more.
            assert!(few.add(&batches[0]).unwrap());
            assert_eq!(few.add(&batches[1]).unwrap(), has_memory);
            // Five texts and NULL.
            assert_eq!(few.states().unwrap().unwrap().num_rows(), 6);
        }
    }

    #[test]
    fn numbers_tell_nulls_and_lengths_apart() {
        let mut long = LongKeys::default();
        let texts = ["", "\0", "\0\0", "twelve bytes", "thirteen byte", "thirteen bytf"];
        let all: Vec<Option<&str>> = texts.iter().copied().map(Some).chain([None]).collect();
        let array: ArrayRef = Arc::new(all.iter().copied().collect::<BinaryViewArray>());
        let once = words(&array, &mut long).into_owned();
        assert!((0..once.len()).all(|at| once.iter().position(|word| *word == once[at]) == Some(at)), "{once:?}");
        assert_eq!(words(&array, &mut long), once);
        let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), Some(-1), Some(i64::MAX), Some(i64::MIN), None]));
        let once = words(&array, &mut long).into_owned();
        assert!((0..once.len()).all(|at| once.iter().position(|word| *word == once[at]) == Some(at)), "{once:?}");
        assert!(!once.contains(&NOTHING));
    }
}
