//! ORDER BY … LIMIT in parallel, or of a scan by an index that another time may not be chosen. Which of equal rows are the first must not depend on how fast
//! each thread was: pages of a result would overlap. Rows that are equal by the sort's keys are put in the order of their other columns.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::scan::ScanExec;

/// Adds all columns to the keys of sorts that keep only the first rows.
#[derive(Debug)]
pub(super) struct BreakTies;

impl PhysicalOptimizerRule for BreakTies {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        // Which index is scanned whole may be another one the next time.
        let by_entries = plan.exists(|node| Ok(node.downcast_ref::<ScanExec>().is_some_and(ScanExec::changes_order)))?;
        if config.execution.target_partitions <= 1 && !by_entries {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_some()) else { return Ok(Transformed::no(node)) };
            let schema = sort.input().schema();
            let others = schema.fields().iter().enumerate().map(|(i, field)| Arc::new(Column::new(field.name(), i)) as Arc<dyn PhysicalExpr>);
            let others = others.filter(|column| !sort.expr().iter().any(|key| key.expr.eq(column)));
            let others = others.map(|column| PhysicalSortExpr::new(column, SortOptions::default()));
            let Some(keys) = LexOrdering::new(sort.expr().iter().cloned().chain(others)) else { return Ok(Transformed::no(node)) };
            let total = SortExec::new(keys, sort.input().clone()).with_fetch(sort.fetch()).with_preserve_partitioning(sort.preserve_partitioning());
            Ok(Transformed::yes(Arc::new(total) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &str {
        "break_ties"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
