//! Groups of rows that come in the order of their key. Each worker of a scan takes its pieces in the order of the index, so rows that are grouped by the first
//! column of it come group by group: the worker's share of a grouping gives what is complete, in place of a table of all its groups.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, PlanProperties};

use super::scan::ScanExec;
use super::through::{OnTheWay, Through, knowing};

/// Tells the workers' shares of groupings which rows come sorted by their key. The rest of the plan hears nothing of it: what the shares give is handed
/// out by a hash of the key. Were a key to come back, its group would be put together there.
pub(super) fn sorted_groups(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let Some(grouping) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
        let keys = grouping.group_expr();
        let share = *grouping.mode() == AggregateMode::Partial && *grouping.input_order_mode() == InputOrderMode::Linear && grouping.limit_options().is_none();
        let [(key, _)] = keys.expr() else { return Ok(Transformed::no(node)) };
        let Some(key) = key.downcast_ref::<Column>().filter(|_| share && keys.is_single()) else { return Ok(Transformed::no(node)) };
        if !is_sorted_by(grouping.input(), key.index()) {
            return Ok(Transformed::no(node));
        }
        let input = Through::over(grouping.input().clone(), Arc::new(Sorted(key.clone())));
        let (aggregates, filters) = (grouping.aggr_expr().to_vec(), grouping.filter_expr().to_vec());
        let sorted = AggregateExec::try_new(AggregateMode::Partial, keys.clone(), aggregates, filters, input, grouping.input_schema())?;
        // The same columns: what is above reads them.
        Ok(if sorted.schema() == grouping.schema() { Transformed::yes(Arc::new(sorted) as _) } else { Transformed::no(node) })
    })
    .data()
}

/// True if each partition gives its rows in the order of a column.
fn is_sorted_by(plan: &Arc<dyn ExecutionPlan>, column: usize) -> bool {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.is_sorted_by(column);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let source = projection.expr()[column].expr.downcast_ref::<Column>();
        return source.is_some_and(|source| is_sorted_by(projection.input(), source.index()));
    }
    let passes = plan.is::<CooperativeExec>() || plan.downcast_ref::<FilterExec>().is_some_and(|filter| filter.projection().is_none());
    passes && is_sorted_by(plan.children()[0], column)
}

/// What comes is sorted by a column.
#[derive(Debug)]
struct Sorted(Column);

impl OnTheWay for Sorted {
    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        let key = PhysicalSortExpr::new(Arc::new(self.0.clone()), SortOptions::default());
        knowing(input, EquivalenceProperties::new_with_orderings(input.schema(), [[key]]))
    }
}
