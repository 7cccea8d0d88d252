//! Texts of joined rows, moved together. An array of texts points into buffers, and what a join gives points into all buffers of its build
//! side; the build side of the next join would have each of them once per batch, and every operator above counts references to thousands.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, replace_children_if_necessary};
use futures::{StreamExt, TryStreamExt};

use super::error::final_refusal;
use super::through::{OnTheWay, Through};

/// A text's place in an array.
const VIEW_BYTES: usize = 16;
/// More buffers than this are made one.
const MOST_BUFFERS: usize = 4;

/// The texts of each batch in one buffer.
#[derive(Debug)]
struct CompactTexts;

/// `input`, with its texts together if it has columns of texts.
pub(super) fn compact_texts(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let texts = input.schema().fields().iter().any(|f| matches!(f.data_type(), DataType::Utf8View | DataType::BinaryView));
    if texts { Through::over(input, Arc::new(CompactTexts)) } else { input }
}

impl OnTheWay for CompactTexts {
    fn stream(&self, input: SendableRecordBatchStream, _: usize, _: &TaskContext) -> SendableRecordBatchStream {
        let schema = input.schema();
        Box::pin(RecordBatchStreamAdapter::new(schema, input.map(|batch| compact(&batch?))))
    }
}

/// Texts without what else is in their buffers, in batches of the session's size: windows give what they had of a partition at once.
#[derive(Debug)]
struct TightTexts;

impl OnTheWay for TightTexts {
    fn stream(&self, input: SendableRecordBatchStream, _: usize, context: &TaskContext) -> SendableRecordBatchStream {
        let (schema, rows) = (input.schema(), context.session_config().batch_size());
        let tight = |batch: RecordBatch| -> Result<RecordBatch> {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(batch.schema(), batch.columns().iter().map(tight).collect(), &options)?)
        };
        let parts = move |batch: RecordBatch| {
            let all = batch.num_rows();
            let part = move |at: usize| tight(batch.slice(at, rows.min(all - at)));
            futures::stream::iter((0..all).step_by(rows).map(part))
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, input.map_ok(parts).try_flatten()))
    }
}

/// More rows than this are not kept as the first ones of an order, but sorted with all others: that spills.
const MOST_FIRST_ROWS: usize = 1024;

/// Sorts of a plan that spills: they count the buffers of each batch, though it may share them with others. So does whatever reads what they give, whose
/// texts are in the buffers of all runs that were merged. So do windows that end with their rows, without counting it.
pub(super) fn sorts_that_spill(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if node.is::<BoundedWindowAggExec>() {
            // It keeps the buffers of all batches of a partition, and those of a scan's small batches are nearly empty.
            let input = Through::over(node.children()[0].clone(), Arc::new(TightTexts));
            return Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?));
        }
        let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
        let input = Through::over(sort.input().clone(), Arc::new(TightTexts));
        let sorted = replace_children_if_necessary(node.clone(), vec![input])?;
        let most = sort.fetch().filter(|first| *first > MOST_FIRST_ROWS);
        let sorted: Arc<dyn ExecutionPlan> = match most.and_then(|first| Some((first, sorted.with_fetch(None)?))) {
            Some((first, all)) => Arc::new(LocalLimitExec::new(all, first)),
            None => sorted,
        };
        Ok(Transformed::yes(Through::over(sorted, Arc::new(TightTexts))))
    })
    .data()
}

fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| {
        let buffers = match column.data_type() {
            DataType::Utf8View => column.as_string_view().data_buffers().len(),
            DataType::BinaryView => column.as_binary_view().data_buffers().len(),
            _ => 0,
        };
        if buffers > MOST_BUFFERS { together(column) } else { column.clone() }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &options)?)
}

/// Texts or byte strings that are less than half of the buffers that they point into in buffers of their own; any other array as it is.
pub(super) fn tight(array: &ArrayRef) -> ArrayRef {
    let (used, buffers) = match array.data_type() {
        DataType::Utf8View => (array.as_string_view().total_buffer_bytes_used(), array.as_string_view().data_buffers()),
        DataType::BinaryView => (array.as_binary_view().total_buffer_bytes_used(), array.as_binary_view().data_buffers()),
        _ => return array.clone(),
    };
    if buffers.iter().map(|buffer| buffer.capacity()).sum::<usize>() > 2 * used { together(array) } else { array.clone() }
}

/// Bytes of a batch's values; of buffers that other batches may share, those that it uses.
pub(super) fn used_bytes(batch: &RecordBatch) -> usize {
    let used = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8View => column.as_string_view().total_buffer_bytes_used() + VIEW_BYTES * column.len(),
        DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used() + VIEW_BYTES * column.len(),
        _ => column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()),
    };
    batch.columns().iter().map(used).sum()
}

/// Counts the rows that a window keeps before it gives any: all those of its input.
#[derive(Debug)]
struct RowsOfWindow;

impl OnTheWay for RowsOfWindow {
    fn stream(&self, input: SendableRecordBatchStream, _: usize, context: &TaskContext) -> SendableRecordBatchStream {
        let memory = MemoryConsumer::new("rows of a window").register(context.memory_pool());
        let counted = move |batch: RecordBatch| -> Result<RecordBatch> {
            memory.try_grow(used_bytes(&batch)).map_err(final_refusal)?;
            Ok(batch)
        };
        Box::pin(RecordBatchStreamAdapter::new(input.schema(), input.map(move |batch| counted(batch?))))
    }
}

/// The plan with the rows counted that its windows keep: those whose frames end with the partition.
pub(super) fn windows_counted(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if !node.is::<WindowAggExec>() {
            return Ok(Transformed::no(node));
        }
        let input = Through::over(node.children()[0].clone(), Arc::new(RowsOfWindow));
        Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?))
    })
    .data()
}

/// Texts or byte strings in buffers of their own that hold nothing else; any other array as it is.
pub(super) fn together(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array.clone(),
    }
}
