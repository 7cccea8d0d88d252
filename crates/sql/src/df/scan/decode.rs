//! Encoded rows to Arrow arrays.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, BinaryViewBuilder, Decimal128Builder, Decimal256Builder, Float64Builder, Int32Builder, Int64Builder, StringViewBuilder, UInt16Builder,
    UInt64Builder,
};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::{DataFusionError, Result};
use highkey_table::{RowBatch, Table};
use highkey_types::{ColumnType, TimeZone};

use crate::bind::ROW_KEY;
use crate::df::repr::{Repr, pack_date, pack_datetime, to_i256, unpack_datetime};

/// Encoded rows collected into arrays, one builder per column.
pub(super) struct Decoder {
    columns: Vec<(usize, Cells)>,
    rows: usize,
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
    /// A TIMESTAMP too, still in UTC: see `in_zone`.
    DateTime(Int64Builder),
    Time(Int64Builder),
    Enum(UInt16Builder),
    /// The clustered key.
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
            Repr::DateTime => Cells::DateTime(Int64Builder::with_capacity(rows)),
            Repr::Time => Cells::Time(Int64Builder::with_capacity(rows)),
            Repr::Enum => Cells::Enum(UInt16Builder::with_capacity(rows)),
        }
    }

    fn append(&mut self, batch: &RowBatch, rows: impl Iterator<Item = usize> + Clone, column: usize) -> Result<()> {
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
            Cells::Time(b) => all.for_each(|r| b.append_option(layout.time(r, column).map(|t| t.micros))),
            Cells::Enum(b) => all.for_each(|r| b.append_option(layout.uint(r, column).map(|i| i as u16))),
            Cells::Key(b) => rows.for_each(|i| b.append_value(batch.key(i))),
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Cells::Int(b) | Cells::DateTime(b) | Cells::Time(b) => Arc::new(b.finish()),
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
    /// For these columns of the table, with room for so many rows.
    pub fn new(table: &Table, columns: &[usize], rows: usize) -> Decoder {
        let cells = |column: usize| match column {
            ROW_KEY => Cells::Key(BinaryViewBuilder::with_capacity(rows)),
            _ => Cells::new(&table.columns()[column].ty, rows),
        };
        Decoder { columns: columns.iter().map(|&c| (c, cells(c))).collect(), rows: 0 }
    }

    /// Rows collected since `finish`.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows of a batch, by their positions.
    pub fn append(&mut self, batch: &RowBatch, rows: impl ExactSizeIterator<Item = usize> + Clone) -> Result<()> {
        for (column, cells) in &mut self.columns {
            cells.append(batch, rows.clone(), *column)?;
        }
        self.rows += rows.len();
        Ok(())
    }

    /// What was collected, a column each.
    pub fn finish(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        self.columns.iter_mut().map(|(_, cells)| cells.finish()).collect()
    }
}

/// A TIMESTAMP column in UTC as the session sees it.
pub(super) fn in_zone(utc: &ArrayRef, zone: &TimeZone) -> ArrayRef {
    let local = |packed: i64| {
        let moment = unpack_datetime(packed);
        // Zero is no moment: it has no zone.
        if moment.is_zero() { packed } else { pack_datetime(&zone.from_utc(&moment)) }
    };
    Arc::new(utc.as_primitive::<Int64Type>().unary::<_, Int64Type>(local))
}
