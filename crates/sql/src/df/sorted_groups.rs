//! Groups of rows that come in the order of their key. Each worker of a scan takes its pieces in the order of the index, so rows that are grouped by the first
//! column of it come group by group: a grouping gives what is complete, in place of a table of all its groups. Where no group is in two pieces, what a
//! worker has is complete.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode, PlanProperties, replace_children_if_necessary};

use super::scan::ScanExec;
use super::through::{OnTheWay, Through, knowing};

/// Groupings by the first column of the index that a scan below reads, as far as pieces of it have whole groups, are finished by each worker for itself;
/// other shares of groupings only learn that their rows come sorted. `shares`: these too. They keep nothing that could be spilled, and what they give is
/// handed out by a hash of the key and put together there, were a key to come back.
pub(super) fn sorted_groups(plan: Arc<dyn ExecutionPlan>, shares: bool) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| Ok(match finished_by_workers(&node)? {
        Some(finished) => Transformed::yes(finished),
        None => Transformed::no(node),
    }));
    plan.data()?.transform_up(|node| {
        let Some(grouping) = node.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(node)) };
        let wanted = match grouping.mode() {
            AggregateMode::Partial => shares,
            AggregateMode::Single => grouping.input().output_partitioning().partition_count() == 1,
            _ => false,
        };
        let sorted = if wanted { sorted_grouping(grouping, *grouping.mode())? } else { None };
        Ok(sorted.map_or_else(|| Transformed::no(node.clone()), |sorted| Transformed::yes(Arc::new(sorted) as _)))
    })
    .data()
}

/// A grouping that knows that its rows come sorted by its key. None unless they do, and it would give the same columns.
fn sorted_grouping(grouping: &AggregateExec, mode: AggregateMode) -> Result<Option<AggregateExec>> {
    let keys = grouping.group_expr();
    let plain = *grouping.input_order_mode() == InputOrderMode::Linear && grouping.limit_options().is_none() && keys.is_single();
    let [(key, _)] = keys.expr() else { return Ok(None) };
    let Some(key) = key.downcast_ref::<Column>().filter(|_| plain) else { return Ok(None) };
    if scan_sorted_by(grouping.input(), key.index()).is_none() {
        return Ok(None);
    }
    let input = Through::over(grouping.input().clone(), Arc::new(Sorted(key.clone())));
    let (aggregates, filters) = (grouping.aggr_expr().to_vec(), grouping.filter_expr().to_vec());
    let sorted = AggregateExec::try_new(mode, keys.clone(), aggregates, filters, input, grouping.input_schema())?;
    Ok(Some(sorted).filter(|sorted| mode != *grouping.mode() || sorted.schema() == grouping.schema()))
}

/// In place of shares that are handed out by the key and put together: groups that are complete, handed out. A filter of them goes before that.
fn finished_by_workers(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let Some(exchange) = filter.input().downcast_ref::<RepartitionExec>() else { return Ok(None) };
        let finished = exchange.input().downcast_ref::<AggregateExec>().is_some_and(|grouping| *grouping.mode() == AggregateMode::SinglePartitioned);
        let Some(partitioning) = behind(filter, exchange.partitioning()).filter(|_| finished && filter.fetch().is_none()) else { return Ok(None) };
        let filtered = replace_children_if_necessary(node.clone(), vec![exchange.input().clone()])?;
        return Ok(Some(Arc::new(RepartitionExec::try_new(filtered, partitioning)?)));
    }
    let Some(end) = node.downcast_ref::<AggregateExec>() else { return Ok(None) };
    if *end.mode() != AggregateMode::FinalPartitioned || end.limit_options().is_some() {
        return Ok(None);
    }
    let Some(exchange) = end.input().downcast_ref::<RepartitionExec>() else { return Ok(None) };
    let Some(share) = exchange.input().downcast_ref::<AggregateExec>().filter(|share| *share.mode() == AggregateMode::Partial) else { return Ok(None) };
    let [(key, _)] = share.group_expr().expr() else { return Ok(None) };
    let whole = key.downcast_ref::<Column>().and_then(|key| scan_sorted_by(share.input(), key.index())).is_some_and(ScanExec::has_whole_groups);
    let Partitioning::Hash(..) = node.output_partitioning() else { return Ok(None) };
    if !whole {
        return Ok(None);
    }
    let finished = sorted_grouping(share, AggregateMode::SinglePartitioned)?.filter(|finished| finished.schema() == end.schema());
    finished.map(|finished| Ok(Arc::new(RepartitionExec::try_new(Arc::new(finished), node.output_partitioning().clone())?) as _)).transpose()
}

/// The partitioning of a filter's input for what the filter gives. None if it does not give the columns.
fn behind(filter: &FilterExec, partitioning: &Partitioning) -> Option<Partitioning> {
    let (Partitioning::Hash(keys, count), Some(given)) = (partitioning, filter.projection()) else { return Some(partitioning.clone()) };
    let keys = keys.iter().map(|key| {
        let key = key.downcast_ref::<Column>()?;
        Some(Arc::new(Column::new(key.name(), given.iter().position(|column| *column == key.index())?)) as Arc<dyn PhysicalExpr>)
    });
    Some(Partitioning::Hash(keys.collect::<Option<_>>()?, *count))
}

/// The scan whose rows come, if those of each partition are in the order of a column.
fn scan_sorted_by(plan: &Arc<dyn ExecutionPlan>, column: usize) -> Option<&ScanExec> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.is_sorted_by(column).then_some(scan);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let source = projection.expr()[column].expr.downcast_ref::<Column>()?;
        return scan_sorted_by(projection.input(), source.index());
    }
    let passes = plan.is::<CooperativeExec>() || plan.is::<Through>() || plan.downcast_ref::<FilterExec>().is_some_and(|filter| filter.projection().is_none());
    if passes { scan_sorted_by(plan.children()[0], column) } else { None }
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
