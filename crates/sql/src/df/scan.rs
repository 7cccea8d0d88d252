//! Base tables as DataFusion sources: leaves of an index decoded column by column into Arrow arrays.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, BinaryViewBuilder, Decimal128Builder, Decimal256Builder, Float64Builder, Int32Builder, Int64Builder, RecordBatch, RecordBatchOptions,
    StringViewBuilder, UInt16Builder, UInt64Builder,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, DataFusionError, Result, Statistics};
use datafusion::datasource::TableType;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Expr as DfExpr;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};
use highkey_table::{Direction, KeyRange, RowBatch, ScanPartition, Table, TableScan};
use highkey_types::{ColumnType, TimeZone, TypeKind, Value};

use super::context::Shared;
use super::error::user;
use super::repr::{Repr, pack_date, pack_datetime, scalar, to_i256};
use crate::bind::ROW_ID;

/// Which rows of a table are read, and by which index.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub index: usize,
    pub ranges: Vec<KeyRange>,
    /// An estimate of how many rows are in the ranges; `None` for the whole table.
    pub rows: Option<u64>,
}

/// A table under the query's snapshot.
#[derive(Clone)]
pub(super) struct BaseTable {
    shared: Arc<Shared>,
    table: Arc<Table>,
    alias: String,
    /// Output i is the table's column `columns[i]`.
    columns: Vec<usize>,
    schema: SchemaRef,
    access: Access,
}

impl BaseTable {
    pub fn new(
        shared: Arc<Shared>,
        table: Arc<Table>,
        alias: &str,
        columns: Vec<usize>,
        schema: SchemaRef,
        access: Access,
    ) -> BaseTable {
        BaseTable { shared, table, alias: alias.to_string(), columns, schema, access }
    }

    fn row_estimate(&self) -> usize {
        let total = self.table.row_count_estimate().unwrap_or(0);
        self.access.rows.map_or(total, |rows| rows.min(total.max(1))) as usize
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
        let pieces = source.pieces(state.config().target_partitions())?;
        Ok(Arc::new(ScanExec::new(source, pieces, limit)))
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
        if column == ROW_ID {
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

    /// What each of at most `count` partitions scans.
    fn pieces(&self, count: usize) -> Result<Vec<Vec<Piece>>> {
        let ranges = self.access.ranges.iter();
        if count <= 1 || self.access.ranges.is_empty() {
            return Ok(vec![ranges.cloned().map(Piece::Range).collect()]);
        }
        let mut all = Vec::new();
        for range in ranges {
            all.extend(self.table.partitions(self.access.index, range, count).map_err(user)?.into_iter().map(Piece::Partition));
        }
        let each = all.len().div_ceil(count).max(1);
        Ok(all.chunks(each).map(<[Piece]>::to_vec).collect())
    }
}

#[derive(Clone, Debug)]
enum Piece {
    Range(KeyRange),
    Partition(ScanPartition),
}

/// The scan as an operator.
#[derive(Debug)]
pub(super) struct ScanExec {
    source: BaseTable,
    pieces: Vec<Vec<Piece>>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    fn new(source: BaseTable, mut pieces: Vec<Vec<Piece>>, limit: Option<usize>) -> ScanExec {
        if pieces.is_empty() {
            pieces.push(Vec::new());
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(source.schema.clone()),
            Partitioning::UnknownPartitioning(pieces.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        ScanExec { source, pieces, limit, properties: Arc::new(properties) }
    }

    /// As EXPLAIN names it: `Table scan on t`, `Index range scan on t using k`.
    pub fn describe(&self) -> String {
        let source = &self.source;
        if source.access.rows.is_none() {
            return format!("Table scan on {}", source.alias);
        }
        let index = &source.table.indexes()[source.access.index];
        format!("Index range scan on {} using {}", source.alias, index.name)
    }

    pub fn row_estimate(&self) -> usize {
        self.source.row_estimate()
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

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
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
        let pieces = self.pieces[partition].clone();
        let batches = Batches::new(self.source.clone(), pieces, self.limit, context.session_config().batch_size());
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// The rows of some ranges, batch by batch.
struct Batches {
    source: BaseTable,
    pieces: std::vec::IntoIter<Piece>,
    scan: Option<TableScan>,
    leaf: RowBatch,
    /// How many of the leaf's rows have been decoded.
    position: usize,
    decoder: Decoder,
    batch_rows: usize,
    /// Rows still wanted.
    wanted: usize,
    failed: bool,
}

impl Batches {
    fn new(source: BaseTable, pieces: Vec<Piece>, limit: Option<usize>, batch_rows: usize) -> Batches {
        let decoder = Decoder::new(&source, batch_rows);
        Batches { source, pieces: pieces.into_iter(), scan: None, leaf: RowBatch::new(), position: 0, decoder, batch_rows, wanted: limit.unwrap_or(usize::MAX), failed: false }
    }

    /// Fills `leaf` with the next rows; false at the end.
    fn next_leaf(&mut self) -> Result<bool> {
        loop {
            if let Some(scan) = &mut self.scan {
                if scan.next_batch(&mut self.leaf).map_err(user)? {
                    return Ok(true);
                }
                self.scan = None;
            }
            let Some(piece) = self.pieces.next() else { return Ok(false) };
            let (table, snapshot, index) = (&self.source.table, &self.source.shared.snapshot, self.source.access.index);
            let scan = match piece {
                Piece::Range(range) => table.scan_at(snapshot, index, &range, Direction::Forward),
                Piece::Partition(partition) => table.scan_partition(snapshot, index, &partition, Direction::Forward),
            };
            self.scan = Some(scan.map_err(user)?);
        }
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        self.source.shared.check_killed()?;
        let enough = self.batch_rows.min(self.wanted);
        while self.decoder.rows < enough {
            if self.position == self.leaf.len() {
                self.position = 0;
                if !self.next_leaf()? {
                    self.leaf = RowBatch::new();
                    break;
                }
            }
            // Some of the leaf's rows may be left for the next batch.
            let end = self.leaf.len().min(self.position + enough - self.decoder.rows);
            self.decoder.append(&self.leaf, self.position..end)?;
            self.position = end;
        }
        self.source.shared.examined.fetch_add(self.decoder.rows as u64, Ordering::Relaxed);
        self.wanted = self.wanted.saturating_sub(self.decoder.rows);
        self.decoder.finish()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        if self.failed || self.wanted == 0 {
            return None;
        }
        let batch = self.batch();
        self.failed = batch.is_err();
        batch.transpose()
    }
}

/// Encoded rows collected into arrays, one builder per column.
struct Decoder {
    schema: SchemaRef,
    columns: Vec<(usize, Cells)>,
    rows: usize,
    zone: TimeZone,
}

enum Cells {
    Int(Int64Builder),
    UInt(UInt64Builder),
    Decimal(Decimal128Builder),
    WideDecimal(Decimal256Builder),
    Double(Float64Builder),
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    Date(Int32Builder),
    DateTime(Int64Builder),
    /// Stored in UTC, seen in the session's zone.
    Timestamp(Int64Builder),
    Time(Int64Builder),
    Enum(UInt16Builder),
    /// The clustered key, which identifies the row of a table without primary key.
    Key(BinaryViewBuilder),
}

impl Cells {
    fn new(ty: &ColumnType, rows: usize) -> Cells {
        let repr = Repr::of(ty);
        match repr {
            Repr::Int => Cells::Int(Int64Builder::with_capacity(rows)),
            Repr::UInt | Repr::Set => Cells::UInt(UInt64Builder::with_capacity(rows)),
            Repr::Decimal(_) => Cells::Decimal(Decimal128Builder::with_capacity(rows).with_data_type(repr.data_type())),
            Repr::WideDecimal(_) => Cells::WideDecimal(Decimal256Builder::with_capacity(rows).with_data_type(repr.data_type())),
            Repr::Double => Cells::Double(Float64Builder::with_capacity(rows)),
            Repr::Text | Repr::Json => Cells::Text(StringViewBuilder::with_capacity(rows)),
            Repr::Bytes => Cells::Bytes(BinaryViewBuilder::with_capacity(rows)),
            Repr::Date => Cells::Date(Int32Builder::with_capacity(rows)),
            Repr::DateTime if matches!(ty.kind, TypeKind::Timestamp(_)) => Cells::Timestamp(Int64Builder::with_capacity(rows)),
            Repr::DateTime => Cells::DateTime(Int64Builder::with_capacity(rows)),
            Repr::Time => Cells::Time(Int64Builder::with_capacity(rows)),
            Repr::Enum => Cells::Enum(UInt16Builder::with_capacity(rows)),
        }
    }

    fn append(&mut self, batch: &RowBatch, rows: Range<usize>, column: usize, zone: &TimeZone) -> Result<()> {
        let layout = batch.layout();
        let all = rows.clone().map(|i| batch.row(i));
        match self {
            Cells::Int(b) => all.for_each(|r| b.append_option(layout.int(r, column))),
            Cells::UInt(b) => all.for_each(|r| b.append_option(layout.uint(r, column))),
            Cells::Decimal(b) => all.for_each(|r| b.append_option(layout.decimal_i128(r, column))),
            Cells::WideDecimal(b) => all.for_each(|r| b.append_option(layout.decimal(r, column).map(to_i256))),
            Cells::Double(b) => all.for_each(|r| b.append_option(layout.double(r, column))),
            Cells::Text(b) => {
                for r in all {
                    match layout.bytes(r, column) {
                        Some(bytes) => b.append_value(std::str::from_utf8(bytes).map_err(|e| DataFusionError::External(Box::new(e)))?),
                        None => b.append_null(),
                    }
                }
            }
            Cells::Bytes(b) => all.for_each(|r| b.append_option(layout.bytes(r, column))),
            Cells::Date(b) => all.for_each(|r| b.append_option(layout.date(r, column).map(|d| pack_date(&d)))),
            Cells::DateTime(b) => all.for_each(|r| b.append_option(layout.datetime(r, column).map(|d| pack_datetime(&d)))),
            Cells::Timestamp(b) => all.for_each(|r| {
                // Zero is no moment: it has no zone.
                let local = layout.datetime(r, column).map(|d| if d.is_zero() { d } else { zone.from_utc(&d) });
                b.append_option(local.map(|d| pack_datetime(&d)));
            }),
            Cells::Time(b) => all.for_each(|r| b.append_option(layout.time(r, column).map(|t| t.micros))),
            Cells::Enum(b) => all.for_each(|r| b.append_option(layout.uint(r, column).map(|i| i as u16))),
            Cells::Key(b) => rows.for_each(|i| b.append_value(batch.key(i))),
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Cells::Int(b) | Cells::DateTime(b) | Cells::Timestamp(b) | Cells::Time(b) => Arc::new(b.finish()),
            Cells::UInt(b) => Arc::new(b.finish()),
            Cells::Decimal(b) => Arc::new(b.finish()),
            Cells::WideDecimal(b) => Arc::new(b.finish()),
            Cells::Double(b) => Arc::new(b.finish()),
            // A builder's blocks double up to 2 MiB, whatever the next batch needs: start small again, or memory limits count air.
            Cells::Text(b) => Arc::new(std::mem::take(b).finish()),
            Cells::Bytes(b) | Cells::Key(b) => Arc::new(std::mem::take(b).finish()),
            Cells::Date(b) => Arc::new(b.finish()),
            Cells::Enum(b) => Arc::new(b.finish()),
        }
    }
}

impl Decoder {
    fn new(source: &BaseTable, rows: usize) -> Decoder {
        let cells = |column: usize| match column {
            ROW_ID => Cells::Key(BinaryViewBuilder::with_capacity(rows)),
            _ => Cells::new(&source.table.columns()[column].ty, rows),
        };
        let columns = source.columns.iter().map(|&c| (c, cells(c))).collect();
        Decoder { schema: source.schema.clone(), columns, rows: 0, zone: source.shared.time_zone.clone() }
    }

    fn append(&mut self, batch: &RowBatch, rows: Range<usize>) -> Result<()> {
        for (column, cells) in &mut self.columns {
            cells.append(batch, rows.clone(), *column, &self.zone)?;
        }
        self.rows += rows.len();
        Ok(())
    }

    /// What was collected as a batch; `None` if nothing was.
    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(None);
        }
        let arrays = self.columns.iter_mut().map(|(_, cells)| cells.finish()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?))
    }
}

