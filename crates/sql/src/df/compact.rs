//! Texts of joined rows, moved together. An array of texts points into buffers, and what a join gives points into all buffers of its build
//! side; the build side of the next join would have each of them once per batch, and every operator above counts references to thousands.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use futures::StreamExt;

use super::through::{OnTheWay, Through};

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
    fn stream(&self, input: SendableRecordBatchStream, _: &TaskContext) -> SendableRecordBatchStream {
        let schema = input.schema();
        Box::pin(RecordBatchStreamAdapter::new(schema, input.map(|batch| compact(&batch?))))
    }
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

/// Texts or byte strings in buffers of their own that hold nothing else; any other array as it is.
pub(super) fn together(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array.clone(),
    }
}
