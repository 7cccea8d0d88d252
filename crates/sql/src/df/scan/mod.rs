//! Base tables as DataFusion sources. `batches`: what a worker of a scan does. `decode`: rows to Arrow arrays. `encoded`: rows whose columns are decoded
//! when somebody asks for them. `columns`: arrays that are kept. `span`: what is known of them without a look. `filter`: conditions evaluated by the
//! scan. `keys`: rows found, or left out, by the keys of a join. `open`: ranges of each execution.

mod batches;
mod columns;
mod decode;
mod encoded;
mod filter;
mod keys;
mod open;
mod span;

use std::any::Any;
use std::fmt;
use std::ops::{Bound, Deref};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::datasource::{TableType, source_as_provider};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use highkey_table::{KeyRange, ScanPartition, Table};
use highkey_types::{TypeKind, Value};
use parking_lot::Mutex;

use super::activity::ScanActivity;
use super::aside;
use super::context::{Owner, Shared};
use super::error::user;
use super::give_way::{GiveWay, Pace};
use super::explain::ShownScan;
use super::materialize::with_ctes;
use super::repr::scalar;
use super::sideways::JoinKeys;
use crate::bind::ROW_KEY;
use crate::measure::Measure;
use crate::plan::{IndexChoice, smaller_index};
use crate::session::{Reach, Work};

use batches::{Batches, Pieces, Watch};
pub(super) use columns::{CacheUsage, ColumnCache};
pub(super) use open::OpenConditions;
use columns::TableColumns;
use filter::Filter;
use keys::ByKeys;

/// Which rows of a table are read, and by which index.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub index: usize,
    pub ranges: Vec<KeyRange>,
    /// An estimate of how many rows are in the ranges; `None` for the whole table.
    pub rows: Option<u64>,
    /// Single keys: few rows of a leaf, each for itself.
    pub scattered: bool,
}

/// Rows of a scan, their columns kept, that take as long as one behind a secondary index, and as one that is made of its entry.
pub(super) const BEHIND_INDEX: f64 = 100.0;
const OF_ENTRY: f64 = 8.0;

impl Access {
    /// All rows, or all entries of a secondary index.
    pub fn whole(index: usize) -> Access {
        Access { index, ranges: vec![KeyRange::all()], rows: None, scattered: false }
    }

    /// What it costs, in rows of a scan, of a table of so many rows. `covering`: the entries of the index are enough.
    pub fn cost(&self, table_rows: f64, covering: bool) -> f64 {
        let rows = self.rows.map_or(table_rows, |rows| rows as f64);
        match self.index {
            0 => rows,
            _ => rows * if covering { OF_ENTRY } else { BEHIND_INDEX },
        }
    }
}

/// A table under the query's snapshot.
#[derive(Clone)]
pub(super) struct BaseTable {
    owner: Arc<Owner>,
    table: Arc<Table>,
    alias: String,
    /// Output i is the table's column `columns[i]`.
    columns: Vec<usize>,
    schema: SchemaRef,
    access: Access,
    /// Ranges of other indexes that hold the rows, too: better ones if all columns that are asked for are in the entries.
    others: Arc<[Access]>,
    /// What index hints leave.
    choice: IndexChoice,
    /// Partitions that are read one after the other, each as a table by itself. None of them: the rows of all come in the order of the index.
    apart: Arc<[Arc<Table>]>,
    /// What is asked of its rows, if the plan is to serve for other constants than those of `access`, too.
    open: Option<Arc<OpenConditions>>,
}

impl BaseTable {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        owner: Arc<Owner>,
        table: Arc<Table>,
        alias: &str,
        columns: Vec<usize>,
        schema: SchemaRef,
        access: Access,
        others: Vec<Access>,
        choice: IndexChoice,
        open: Option<OpenConditions>,
    ) -> BaseTable {
        let open = open.map(Arc::new);
        BaseTable { owner, table, alias: alias.to_string(), columns, schema, access, others: others.into(), choice, apart: Arc::default(), open }
    }

    /// The entries of the index that is read are enough.
    fn is_covering(&self) -> bool {
        // READ UNCOMMITTED looks at the rows.
        self.table.covers(self.access.index, &self.columns) && !self.owner.shared().is_ok_and(|shared| shared.snapshot.is_uncommitted())
    }

    /// A better access for these columns, all of which are in the entries of an index.
    fn covering_access(&self, shared: &Shared) -> Option<Access> {
        if shared.snapshot.is_uncommitted() {
            return None;
        }
        let rows = self.table_rows() as f64;
        let cost = |access: &Access| access.cost(rows, self.table.covers(access.index, &self.columns));
        let other = self.others.iter().filter(|access| self.table.covers(access.index, &self.columns)).min_by(|a, b| cost(a).total_cmp(&cost(b)));
        if let Some(other) = other.filter(|other| cost(other) < cost(&self.access)) {
            return Some(other.clone());
        }
        // All rows come in the order of the table, where that shows. What stays in memory is faster by its kept columns, from the second time on.
        let cache = shared.engine.columns();
        let keeps = || {
            let values = rows * self.columns.len().max(1) as f64;
            let stays = self.table.index_pages(0).is_ok_and(|pages| pages <= self.table.pool_pages() / 2);
            stays && cache.has_room_for(values) && !self.columns.contains(&ROW_KEY) && cache.keeps_any()
        };
        if self.access.rows.is_some() || !shared.may_change_order() || keeps() {
            return None;
        }
        let index = smaller_index(&self.table, &self.columns, &self.choice)?;
        shared.watch_order();
        Some(Access::whole(index))
    }

    /// The partitions that are to be read one after the other. Their rows need not be put in order then, and each of them keeps its columns as a table without
    /// partitions does: blocks come of the leaves of one tree. Of several partitions that is another order than the table's.
    fn parts_apart(&self, shared: &Shared, limit: Option<usize>) -> Arc<[Arc<Table>]> {
        if self.access.index != 0 || limit.is_some() || self.columns.contains(&ROW_KEY) {
            return Arc::default();
        }
        let parts = self.table.partitions_with(0, &KeyRange::all());
        if parts.len() > 1 {
            if !shared.may_change_order() {
                return Arc::default();
            }
            shared.watch_order();
        }
        parts.into()
    }

    /// The tables that are read, one after the other.
    fn trees(&self) -> &[Arc<Table>] {
        if self.apart.is_empty() { std::slice::from_ref(&self.table) } else { &self.apart }
    }

    /// Those of them that have rows of a range.
    fn trees_with(&self, range: &KeyRange) -> Vec<Arc<Table>> {
        if self.apart.is_empty() { vec![self.table.clone()] } else { self.table.partitions_with(self.access.index, range) }
    }

    fn row_estimate(&self) -> usize {
        let total = self.table_rows();
        self.access.rows.map_or(total, |rows| total.max(1).min(rows as usize))
    }

    /// All rows are read, in the order of the table.
    fn reads_table(&self) -> bool {
        self.access.rows.is_none() && self.access.index == 0
    }

    /// About how many rows the table has.
    fn table_rows(&self) -> usize {
        self.table.row_count_estimate().unwrap_or(0) as usize
    }
}

impl fmt::Debug for BaseTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BaseTable").field("alias", &self.alias).field("access", &self.access).finish()
    }
}

#[async_trait]
impl TableProvider for BaseTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.estimates())
    }

    async fn scan(&self, state: &dyn Session, projection: Option<&Vec<usize>>, _: &[DfExpr], limit: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut source = self.clone();
        if let Some(projection) = projection {
            source.columns = projection.iter().map(|&i| self.columns[i]).collect();
            source.schema = Arc::new(self.schema.project(projection)?);
        }
        let shared = self.owner.shared()?;
        if let Some(access) = source.covering_access(&shared) {
            source.access = access;
        }
        source.apart = source.parts_apart(&shared, limit);
        let pieces = source.pieces()?;
        let workers = state.config().target_partitions().min(pieces.most_workers);
        Ok(Arc::new(ScanExec::new(source, pieces, workers, limit)))
    }
}

impl BaseTable {
    /// Nothing here is exact: DataFusion would answer MIN, MAX and COUNT from it.
    fn estimates(&self) -> Statistics {
        let rows = self.row_estimate();
        Statistics {
            num_rows: Precision::Inexact(rows),
            total_byte_size: Precision::Absent,
            column_statistics: self.columns.iter().map(|&column| self.column_estimates(column, rows)).collect(),
        }
    }

    /// What the column's histogram says, of `rows` rows.
    fn column_estimates(&self, column: usize, rows: usize) -> ColumnStatistics {
        let unknown = ColumnStatistics::new_unknown();
        if column == ROW_KEY {
            return unknown;
        }
        let Some(histogram) = self.table.histogram(column) else { return unknown };
        let ty = &self.table.columns()[column].ty;
        // Text is in the order of its collation and a TIMESTAMP in UTC; Arrow compares bytes and the session's time.
        let ordered = (ty.is_number() || ty.is_temporal()) && !matches!(ty.kind, TypeKind::Timestamp(_));
        let end = |value: Option<&Value>| match value {
            Some(value) if ordered => Precision::Inexact(scalar(value, ty)),
            _ => Precision::Absent,
        };
        ColumnStatistics {
            null_count: Precision::Inexact((histogram.null_fraction() * rows as f64) as usize),
            min_value: end(histogram.buckets().first().map(|b| &b.lower)),
            max_value: end(histogram.buckets().last().map(|b| &b.upper)),
            distinct_count: Precision::Inexact((histogram.distinct() as usize).min(rows)),
            ..unknown
        }
    }

    /// The pieces that the workers share.
    fn pieces(&self) -> Result<AllPieces> {
        let shared = self.owner.shared()?;
        let Access { index, ranges, .. } = &self.access;
        let small = self.row_estimate() < PIECES_FROM_ROWS;
        let divided = (!small || shared.cuts_small_scans()) && shared.divides(&self.alias);
        let mut all = Vec::new();
        // Two ranges, or partitions, may have rows of one group.
        let mut whole_groups = ranges.len() == 1 && self.apart.len() <= 1;
        for range in ranges {
            for table in self.trees_with(range) {
                if !divided {
                    all.push(Piece { table, keys: PieceKeys::Range(range.clone()) });
                    continue;
                }
                let pieces = table.partitions(*index, range, small).map_err(user)?;
                whole_groups &= pieces.whole_groups;
                all.extend(pieces.parts.into_iter().map(|keys| Piece { table: table.clone(), keys: PieceKeys::Partition(keys) }));
            }
        }
        let most_workers = if divided { all.len() } else { ranges.len() };
        Ok(AllPieces { all: all.into(), most_workers, whole_groups })
    }
}

/// A table as a query reads it.
#[derive(Clone)]
struct Source {
    base: BaseTable,
    shared: Arc<Shared>,
}

impl Source {
    /// True if columns of what it reads can be kept: they are of no tree's leaves where the rows of several partitions are put in order.
    fn can_keep(&self) -> bool {
        self.shared.engine.columns().keeps_any() && self.trees().iter().all(|table| !table.is_partitioned())
    }

    /// Where they are kept: what is kept of each tree.
    fn kept(&self) -> Vec<Arc<TableColumns>> {
        let cache = self.shared.engine.columns();
        if self.can_keep() { self.trees().iter().map(|table| cache.table(table)).collect() } else { Vec::new() }
    }

    /// Where it is noted what it costs to look rows up whose columns a scan of all of them would keep; None if it keeps none, or they are too many.
    fn keeps(&self) -> Option<Arc<TableColumns>> {
        let values = self.table_rows() as f64 * self.columns.len() as f64;
        let all = self.reads_table() && !self.columns.contains(&ROW_KEY);
        if all && self.shared.engine.columns().has_room_for(values) { self.kept().into_iter().next() } else { None }
    }

    /// Rows whose columns need not be decoded.
    fn kept_rows(&self) -> usize {
        self.kept().iter().map(|kept| kept.rows_with(&self.columns)).sum()
    }
}

impl Deref for Source {
    type Target = BaseTable;

    fn deref(&self) -> &BaseTable {
        &self.base
    }
}

/// Fewer rows are one worker's, unless whatever it costs shall be in parallel.
const PIECES_FROM_ROWS: usize = 16 * 1024;

/// What EXPLAIN says that reading a row costs: MySQL's row_evaluate_cost.
pub const ROW_COST: f64 = 0.1;

/// The cost of a plan in the unit of `parallel_cost_threshold`: the rows that its scans read, and the pairs that joins without equalities look at.
/// (DataFusion's other joins and groups are in proportion to the scans.)
pub(super) fn cost(plan: &LogicalPlan) -> f64 {
    let mut cost = 0.0;
    let _ = plan.apply_with_subqueries(|node| {
        cost += ROW_COST
            * match node {
                LogicalPlan::TableScan(_) => rows(node),
                LogicalPlan::Join(join) if join.on.is_empty() => rows(node),
                _ => 0.0,
            };
        Ok(TreeNodeRecursion::Continue)
    });
    cost
}

/// About how many rows a plan gives at most, before conditions.
fn rows(plan: &LogicalPlan) -> f64 {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok();
            let table = provider.as_ref().and_then(|provider| (provider.as_ref() as &dyn Any).downcast_ref::<BaseTable>());
            table.map_or(0.0, |table| table.row_estimate() as f64)
        }
        LogicalPlan::Join(join) if join.on.is_empty() => rows(&join.left) * rows(&join.right),
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => 1.0,
        _ => plan.inputs().into_iter().map(rows).fold(0.0, f64::max),
    }
}

/// What the workers of a scan share.
#[derive(Clone, Debug)]
struct AllPieces {
    all: Arc<[Piece]>,
    /// One reads a small table, however many partitions it has.
    most_workers: usize,
    /// All rows with the same value in the first column of the index are in one piece.
    whole_groups: bool,
}

/// Rows of a table, or of one of its partitions.
#[derive(Clone, Debug)]
struct Piece {
    table: Arc<Table>,
    keys: PieceKeys,
}

#[derive(Clone, Debug)]
enum PieceKeys {
    Range(KeyRange),
    Partition(ScanPartition),
}

/// Of more ranges, few rows each, several make a partition: one for each would cost more than it reads.
const MOST_BY_RANGE: usize = 64;

/// The scan as an operator: each of its partitions takes the next piece that none has taken.
#[derive(Debug)]
pub(super) struct ScanExec {
    source: BaseTable,
    pieces: AllPieces,
    limit: Option<usize>,
    /// What the query asks of the rows.
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// Joins above that may want few keys only.
    by_keys: Vec<ByKeys>,
    /// Each partition is so many pieces, one after the other.
    by_piece: Option<usize>,
    /// How far each execution has come, and how often each partition was executed: its n-th time is part of the n-th execution.
    executions: Mutex<(Vec<Arc<AtomicUsize>>, Vec<usize>)>,
    /// Where its workers tell what they have done, if anybody is told.
    activity: OnceLock<Arc<ScanActivity>>,
    /// The same for EXPLAIN ANALYZE.
    measure: OnceLock<Arc<Measure>>,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    fn new(source: BaseTable, pieces: AllPieces, workers: usize, limit: Option<usize>) -> ScanExec {
        let workers = workers.max(1);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(source.schema.clone()),
            Partitioning::UnknownPartitioning(workers),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        ScanExec { source, pieces, limit, conditions: Vec::new(), by_keys: Vec::new(), by_piece: None, executions: Mutex::new((Vec::new(), vec![0; workers])), activity: OnceLock::new(), measure: OnceLock::new(), properties: Arc::new(properties) }
    }

    /// The scan for another execution of its plan: nothing of it has been read, its ranges are those of this execution's constants, and the table is cut as it is
    /// now. `None` if another plan is the better one for these.
    pub fn anew(&self) -> Result<Option<ScanExec>> {
        let mut source = self.source.clone();
        if let Some(open) = &self.source.open
            && !open.set_ranges(&mut source)?
        {
            return Ok(None);
        }
        let pieces = source.pieces()?;
        Ok(Some(ScanExec { source, ..self.unread(pieces) }))
    }

    /// The scan with these pieces, none of which has been read. It shares what is known of its rows: the operators above a scan with the same properties
    /// keep theirs, which takes long to find out.
    fn unread(&self, pieces: AllPieces) -> ScanExec {
        ScanExec {
            source: self.source.clone(),
            pieces,
            limit: self.limit,
            conditions: self.conditions.clone(),
            by_keys: self.by_keys.clone(),
            by_piece: self.by_piece,
            executions: Mutex::new((Vec::new(), vec![0; self.properties.output_partitioning().partition_count()])),
            activity: OnceLock::new(),
            measure: OnceLock::new(),
            properties: self.properties.clone(),
        }
    }

    /// The scan with a partition for each piece, or some pieces, in the order of the index. None if the pieces are not known, or rows are counted over all of them.
    pub fn by_piece(&self) -> Option<ScanExec> {
        if self.limit.is_some() || self.by_keys.iter().any(ByKeys::looks_up) {
            return None;
        }
        let together = if self.source.access.ranges.len() > MOST_BY_RANGE { self.pieces.all.len().div_ceil(MOST_BY_RANGE).max(1) } else { 1 };
        let mut scan = ScanExec::new(self.source.clone(), self.pieces.clone(), self.pieces.all.len().div_ceil(together), None);
        scan.conditions = self.conditions.clone();
        scan.by_keys = self.by_keys.clone();
        scan.by_piece = Some(together);
        Some(scan)
    }

    /// The position among the pieces that this execution's partitions share.
    fn next_piece(&self, partition: usize) -> Arc<AtomicUsize> {
        let (positions, executed) = &mut *self.executions.lock();
        let execution = executed[partition];
        executed[partition] += 1;
        if execution == positions.len() {
            positions.push(Arc::default());
        }
        positions[execution].clone()
    }

    /// As EXPLAIN names it: `Table scan on t`, `Index scan on t using k`, `Index range scan on t using k`, `PQblock scan on t`.
    pub fn describe(&self) -> String {
        let source = &self.source;
        let whole = source.reads_table();
        // GreatSQL's words for a table that several threads divide.
        let how = match (self.properties.output_partitioning().partition_count(), source.access.rows) {
            (1, None) if whole => "Table scan",
            (1, None) => "Index scan",
            (1, Some(_)) => "Index range scan",
            _ => "PQblock scan",
        };
        let name = |index: usize| &source.table.indexes()[index].name;
        let using = if whole { String::new() } else { format!(" using {}", name(source.access.index)) };
        let indexes = self.by_keys.iter().flat_map(ByKeys::indexes);
        let lookups: Vec<String> = indexes.map(|index| format!(", or index lookup using {} if the join has few keys", name(index))).collect();
        format!("{how} on {}{using}{}", source.alias, lookups.concat())
    }

    pub fn alias(&self) -> &str {
        &self.source.alias
    }

    pub fn row_estimate(&self) -> usize {
        self.source.row_estimate()
    }

    pub fn table_rows(&self) -> usize {
        self.source.table_rows()
    }

    /// Where its rows come in another order than those of a scan in order, which is that of the table.
    pub fn changes_order(&self) -> bool {
        let source = &self.source;
        source.access.rows.is_none() && !source.reads_table() || source.apart.len() > 1
    }

    /// As EXPLAIN's other formats are told of it.
    pub fn shown(&self) -> ShownScan {
        let source = &self.source;
        ShownScan {
            table: source.table.id(),
            alias: source.alias.clone(),
            index: source.access.rows.map(|_| source.access.index),
            entries: (source.access.rows.is_none() && source.access.index != 0).then_some(source.access.index),
            covering: source.is_covering(),
            rows: source.row_estimate() as u64,
            divided: self.properties.output_partitioning().partition_count() > 1,
            lookups: self.by_keys.iter().flat_map(ByKeys::indexes).collect(),
        }
    }

    /// True if the rows of each partition come in the order of a column: it is the first of the index, and its values sort as Arrow's do.
    pub fn is_sorted_by(&self, column: usize) -> bool {
        let source = &self.source;
        let first = source.table.indexes()[source.access.index].parts.first();
        let sorted = first.is_some_and(|part| part.column == source.columns[column] && !part.descending && source.table.columns()[part.column].ty.is_integer());
        // Partitions come one after the other, and rows that the keys of a join find in the order of another index.
        sorted && source.apart.len() <= 1 && !self.by_keys.iter().any(ByKeys::looks_up)
    }

    /// True if rows with the same value in the first column of the index all come from one partition.
    pub fn has_whole_groups(&self) -> bool {
        self.pieces.whole_groups && self.by_piece.is_none()
    }

    /// The scan that gives rows with the keys of a join only, and which of these it can use: those of columns of integers. `columns`: names, and the
    /// keys that they are equal to.
    pub fn by_keys(&self, columns: &[(&str, usize)], keys: &Arc<JoinKeys>) -> Option<(ScanExec, Vec<usize>)> {
        let of_table = columns.iter().filter_map(|(name, key)| Some((self.source.columns[self.source.schema.index_of(name).ok()?], *key)));
        let found = ByKeys::new(&self.source, of_table, keys).filter(|_| self.limit.is_none())?;
        let mut scan = self.unread(self.pieces.clone());
        let wanted = found.wanted();
        scan.by_keys.push(found);
        Some((scan, wanted))
    }

    /// Its workers tell what they do from now on. In order, the pieces are read by so many.
    fn watch(&self, threads: usize) -> Arc<ScanActivity> {
        let workers = if self.by_piece.is_some() { threads } else { self.properties.output_partitioning().partition_count() };
        self.activity.get_or_init(|| Arc::new(ScanActivity::new(self.describe(), self.pieces.all.len(), workers))).clone()
    }

    /// What its workers tell from now on of the rows that they read.
    pub fn measure(&self) -> Arc<Measure> {
        self.measure.get_or_init(Arc::default).clone()
    }

    /// Counts how it comes to its rows. `first`: it is the first of its query.
    fn count(&self, first: bool, work: &mut Work) {
        let Access { ranges, rows, .. } = &self.source.access;
        if self.source.reads_table() {
            work.read_table(0, self.limit.is_none());
        } else {
            ranges.iter().for_each(|range| work.begin_range(range, false));
        }
        let reach = match &ranges[..] {
            _ if self.source.reads_table() => Reach::Table,
            _ if rows.is_none() => Reach::Index,
            [KeyRange { lower: Bound::Included(lower), upper: Bound::Included(upper) }] if lower == upper => Reach::Value,
            _ => Reach::Ranges,
        };
        match first {
            true => work.select([reach]),
            // Behind another.
            false => work.select([Reach::Value, reach]),
        }
    }

    /// The conditions that the scan evaluates.
    pub fn conditions(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.conditions
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(&self, f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        for condition in &self.conditions {
            if f(condition)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    /// Takes all conditions, unless it counts rows before them.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let mut scan = self.unread(self.pieces.clone());
        let mut taken = Vec::new();
        for filter in pushed.parent_filters {
            if self.limit.is_some() || phase != FilterPushdownPhase::Pre || is_volatile(&filter.filter) {
                taken.push(PushedDown::No);
            } else {
                taken.push(PushedDown::Yes);
                scan.conditions.push(filter.filter);
            }
        }
        let result: FilterPushdownPropagation<Arc<dyn ExecutionPlan>> = FilterPushdownPropagation::with_parent_pushdown_result(taken);
        // A scan that is another makes others of all operators above it.
        Ok(if scan.conditions.len() > self.conditions.len() { result.with_updated_node(Arc::new(scan)) } else { result })
    }

    fn replace_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>, _: ReplaceChildrenOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.source.estimates()))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.source.schema.clone();
        let mut pieces = match self.by_piece {
            Some(together) => Pieces { all: self.pieces.all.iter().skip(partition * together).take(together).cloned().collect(), next: Arc::default() },
            None => Pieces { all: self.pieces.all.clone(), next: self.next_piece(partition) },
        };
        let filter = (!self.conditions.is_empty()).then(|| Filter::new(&self.conditions, &schema)).transpose()?;
        let mut source = Source { base: self.source.clone(), shared: self.source.owner.shared()? };
        let (limit, batch_rows) = (self.limit, context.session_config().batch_size());
        let watch = self.activity.get().map(|scan| Watch { scan: scan.clone(), worker: self.by_piece.is_none().then_some(partition) });
        let measure = self.measure.get().map(|measure| (measure.clone(), aside::worker().unwrap_or(partition)));
        let give_way = source.shared.engine.give_way().clone();
        if self.by_keys.is_empty() {
            let batches = Batches::new(source, pieces, limit, filter, Vec::new(), batch_rows, watch).measured(measure);
            return Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, paced(batches, give_way)))));
        }
        let by_keys = self.by_keys.clone();
        let batches = async move {
            let deadline = JoinKeys::patience(source.row_estimate());
            if let Some(found) = keys::cheapest(&by_keys, &source, deadline).await {
                (source.base.access, pieces.all) = found;
            }
            let key_filters = keys::filters(&by_keys, &source, deadline).await;
            paced(Batches::new(source, pieces, limit, filter, key_filters, batch_rows, watch).measured(measure), give_way)
        };
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, futures::stream::once(batches.boxed()).flatten()))))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// The scans of a plan that is about to run on so many threads, whose workers tell what they do.
pub(super) fn watched(plan: &Arc<dyn ExecutionPlan>, threads: usize) -> Result<Vec<Arc<ScanActivity>>> {
    let mut scans = Vec::new();
    for plan in with_ctes(plan)? {
        plan.apply(|node| {
            scans.extend(node.downcast_ref::<ScanExec>().map(|scan| scan.watch(threads)));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(scans)
}

/// What a plan that has begun to run does to come to its rows, but for the rows that its scans read.
pub(super) struct Working {
    /// What is known as it begins.
    work: Work,
    counting: Vec<(Counting, Figures)>,
}

/// What the figures of an operator are.
enum Counting {
    Sort,
    Grouping,
    Other,
}

/// An operator's own figures.
enum Figures {
    Of(Arc<dyn ExecutionPlan>),
    Begun(MetricsSet),
}

/// To be called as the plan begins. The nodes of joins keep the rows that they have built: no node of a plan with joins is kept until its end, so the
/// figures of an operator that begins later, in a task of its own, stay unknown.
pub(super) fn working(plan: &Arc<dyn ExecutionPlan>) -> Working {
    // Those are queries of their own.
    let plans = with_ctes(plan).unwrap_or_default();
    let joins = plans.iter().any(|plan| plan.exists(|node| Ok(is_join(node))).is_ok_and(|joins| joins));
    let mut working = Working { work: Work::default(), counting: Vec::new() };
    let mut sorts = 0;
    // With whether a scan there is the first of its query.
    let mut left: Vec<(&Arc<dyn ExecutionPlan>, bool)> = plans.iter().map(|plan| (plan, true)).collect();
    while let Some((node, first)) = left.pop() {
        let mut first_below = first;
        let mut counting = Counting::Other;
        if let Some(scan) = node.downcast_ref::<ScanExec>() {
            scan.count(first, &mut working.work);
        } else if node.name() == "SortExec" {
            sorts += 1;
            counting = Counting::Sort;
        } else if let Some(grouping) = node.downcast_ref::<AggregateExec>() {
            // What is grouped is a query of its own: a subquery's plan is part of its statement's.
            first_below = true;
            if !grouping.group_expr().expr().is_empty() && *grouping.mode() != AggregateMode::Partial {
                working.work.created_tmp_tables += 1;
                counting = Counting::Grouping;
            }
        }
        let figures = if joins { node.metrics().map(Figures::Begun) } else { Some(Figures::Of(node.clone())) };
        working.counting.extend(figures.map(|figures| (counting, figures)));
        let joining = is_join(node);
        left.extend(node.children().into_iter().enumerate().map(|(at, child)| (child, first_below && (at == 0 || !joining))));
    }
    if working.work.select_range > 0 && working.work.select_scan == 0 {
        working.work.sort_range = sorts;
    } else {
        working.work.sort_scan = sorts;
    }
    working
}

impl Working {
    /// All of it, once the plan has run.
    pub(super) fn end(self) -> Work {
        let mut work = self.work;
        for (counting, figures) in self.counting {
            let metrics = match figures {
                Figures::Of(node) => node.metrics(),
                Figures::Begun(metrics) => Some(metrics),
            };
            let Some(metrics) = metrics else { continue };
            let spilled = metrics.spill_count().unwrap_or(0) as u64;
            work.created_tmp_files += spilled;
            match counting {
                Counting::Sort => {
                    work.sort_rows += metrics.output_rows().unwrap_or(0) as u64;
                    work.sort_merge_passes += spilled;
                }
                Counting::Grouping => work.created_tmp_disk_tables += u64::from(spilled > 0),
                Counting::Other => {}
            }
        }
        work
    }
}

fn is_join(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.name().contains("Join")
}

/// A worker's batches, with the rests that it takes between them, and turns for others.
fn paced(batches: Batches, give_way: Arc<GiveWay>) -> BoxStream<'static, Result<RecordBatch>> {
    let batches = futures::stream::unfold((batches, Pace::default(), Turn::default(), give_way), |(mut batches, mut pace, mut turn, give_way)| async move {
        pace.rest(&give_way).await;
        turn.end_if_long().await;
        let batch = batches.next()?;
        Some((batch, (batches, pace, turn, give_way)))
    });
    batches.boxed()
}

/// How long a task keeps its thread.
const LONGEST_TURN: Duration = Duration::from_millis(1);

/// How long a worker has had its thread. What a task wakes is run by its own thread next, and tokio lets no other thread have it: a worker that built a join's
/// table and goes on to ask it would keep the others waiting, who have just learned that it is there.
#[derive(Default)]
struct Turn {
    since: Option<Instant>,
}

impl Turn {
    /// Before a batch: lets others have the thread at first and then now and then.
    async fn end_if_long(&mut self) {
        if self.since.is_none_or(|since| since.elapsed() >= LONGEST_TURN) {
            tokio::task::yield_now().await;
            self.since = Some(Instant::now());
        }
    }
}
