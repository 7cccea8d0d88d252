//! Texts of joined rows, moved together. An array of texts points into buffers, and what a join gives points into all buffers of its build
//! side; the build side of the next join would have each of them once per batch, and every operator above counts references to thousands.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::StreamExt;

/// More buffers than this are made one.
const MOST_BUFFERS: usize = 4;

/// Its input with the texts of each batch in one buffer.
#[derive(Debug)]
pub(super) struct CompactTexts {
    input: Arc<dyn ExecutionPlan>,
}

impl CompactTexts {
    /// `input`, below the operator if it has columns of texts.
    pub fn over(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let texts = input.schema().fields().iter().any(|f| matches!(f.data_type(), DataType::Utf8View | DataType::BinaryView));
        if texts { Arc::new(CompactTexts { input }) } else { input }
    }
}

impl DisplayAs for CompactTexts {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("CompactTexts")
    }
}

impl ExecutionPlan for CompactTexts {
    fn name(&self) -> &str {
        "CompactTexts"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>, _: ReplaceChildrenOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(CompactTexts { input: children.remove(0) }))
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(CompactTexts { input: children.remove(0) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = self.input.execute(partition, context)?.map(|batch| compact(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
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
