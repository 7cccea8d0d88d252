//! TABLE_MAP_EVENT: what rows events say about their table.

use highkey_types::Value;

use crate::Bitmap;
use crate::column::{Column, primary_key};
use crate::event::{EventType, Stamp, close, open, push_lenenc};
use crate::metadata::{self, RowMetadata};
use crate::row::Packing;

/// A table at one version of its definition: the event's bytes, and how its rows are written. Made once and used by many
/// statements.
#[derive(Clone, Debug)]
pub struct TableMap {
    table_id: u64,
    body: Vec<u8>,
    columns: Vec<Packing>,
    primary_key: Vec<usize>,
}

/// Flag of the event that MySQL sets always: the metadata of BIT columns is exact.
const BIT_LEN_EXACT: u16 = 1;

impl TableMap {
    /// `table_id` (48 bits) ties rows events to this event; it must be another one whenever the definition changes. Panics if a name has
    /// more than 255 bytes.
    pub fn new(table_id: u64, schema: &str, table: &str, columns: &[Column<'_>], metadata: RowMetadata) -> TableMap {
        let packings: Vec<Packing> = columns.iter().map(|column| Packing::of(column.ty)).collect();
        let mut body = Vec::new();
        push_table_id(table_id, &mut body);
        body.extend_from_slice(&BIT_LEN_EXACT.to_le_bytes());
        for name in [schema, table] {
            body.push(u8::try_from(name.len()).expect("names have at most 255 bytes"));
            body.extend_from_slice(name.as_bytes());
            body.push(0);
        }
        push_lenenc(&mut body, columns.len() as u64);
        body.extend(packings.iter().map(|packing| packing.event_type()));
        let mut types = Vec::new();
        packings.iter().for_each(|packing| packing.push_metadata(&mut types));
        push_lenenc(&mut body, types.len() as u64);
        body.extend_from_slice(&types);
        body.extend_from_slice(Bitmap::of(columns.len(), (0..columns.len()).filter(|i| columns[*i].nullable)).as_bytes());
        metadata::push(columns, metadata, &mut body);
        TableMap { table_id, body, columns: packings, primary_key: primary_key(columns) }
    }

    /// Appends the raw event.
    pub fn write(&self, stamp: Stamp, out: &mut Vec<u8>) {
        let start = open(out, stamp, EventType::TABLE_MAP, 0);
        out.extend_from_slice(&self.body);
        close(out, start);
    }

    pub fn table_id(&self) -> u64 {
        self.table_id
    }

    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// The primary key's columns, in its order; empty without one.
    pub fn primary_key(&self) -> &[usize] {
        &self.primary_key
    }

    /// True for the TEXT and BLOB families.
    pub(crate) fn is_blob(&self, column: usize) -> bool {
        self.columns[column].is_blob()
    }

    /// Appends a row image: a bit for each column of `included` that is NULL, then the values of the others. `values` has all the table's
    /// columns, also those that are not included. Panics if a value is not a stored value of its column's type (I1).
    pub fn row_image(&self, included: &Bitmap, values: &[Value], out: &mut Vec<u8>) {
        assert!(values.len() == self.columns.len() && included.columns() == values.len(), "I2: a value for each column");
        let mut null_at = out.len();
        out.resize(null_at + included.count().div_ceil(8), 0);
        let mut null_bit = 1u8;
        for (i, (packing, value)) in self.columns.iter().zip(values).enumerate() {
            if !included.get(i) {
                continue;
            }
            if value.is_null() {
                out[null_at] |= null_bit;
            } else {
                packing.pack(value, out);
            }
            null_bit = null_bit.rotate_left(1);
            null_at += usize::from(null_bit == 1);
        }
    }
}

/// 48 bits.
pub(crate) fn push_table_id(table_id: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&table_id.to_le_bytes()[..6]);
}
