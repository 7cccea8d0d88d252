//! Operators that let go of their thread now and then.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::compact::compact_texts;

/// Operators above each other that yield. Each takes a unit of the task's budget (128 in tokio) before it asks the one below, and has it back if there is
/// nothing yet: where they took all of it, the lowest would never be asked.
const MOST_YIELDING: usize = 32;

/// Joins make rows without asking their inputs for more, so they are made to let go now and then: KILL, and other queries. Of very many above each other some
/// do. What they give has its texts together.
pub(super) fn yielding(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let every = joins_deep(&plan).div_ceil(MOST_YIELDING).max(1);
    Ok(yielding_every(plan, every)?.0)
}

/// Operators of several inputs above each other.
fn joins_deep(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let children = plan.children();
    let joins = usize::from(children.len() > 1);
    joins + children.into_iter().map(joins_deep).max().unwrap_or(0)
}

/// The plan, and how many joins it has above each other.
fn yielding_every(plan: Arc<dyn ExecutionPlan>, every: usize) -> Result<(Arc<dyn ExecutionPlan>, usize)> {
    let mut children = Vec::new();
    let mut below = 0;
    for child in plan.children() {
        let (child, joins) = yielding_every(child.clone(), every)?;
        children.push(child);
        below = below.max(joins);
    }
    let is_join = children.len() > 1;
    let plan = if children.is_empty() { plan } else { replace_children_if_necessary(plan, children)? };
    if !is_join {
        return Ok((plan, below));
    }
    let plan = compact_texts(plan);
    let plan: Arc<dyn ExecutionPlan> = if below.is_multiple_of(every) { Arc::new(CooperativeExec::new(plan)) } else { plan };
    Ok((plan, below + 1))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::joins::CrossJoinExec;

    use super::*;

    fn joined(joins: usize) -> Arc<dyn ExecutionPlan> {
        let empty = || -> Arc<dyn ExecutionPlan> { Arc::new(EmptyExec::new(Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)])))) };
        (0..joins).fold(empty(), |left, _| Arc::new(CrossJoinExec::new(left, empty())) as _)
    }

    /// That are above each other.
    fn cooperative(plan: &Arc<dyn ExecutionPlan>) -> usize {
        usize::from(plan.is::<CooperativeExec>()) + plan.children().into_iter().map(cooperative).max().unwrap_or(0)
    }

    #[test]
    fn all_joins_yield_unless_there_are_very_many() {
        for (joins, expected) in [(0, 0), (1, 1), (5, 5), (MOST_YIELDING, MOST_YIELDING), (MOST_YIELDING + 1, 17), (200, 29)] {
            assert_eq!(cooperative(&yielding(joined(joins)).unwrap()), expected, "{joins}");
        }
    }
}
