//! `binlog_row_image`: which columns an image has.

use highkey_types::Value;

use crate::{Bitmap, TableMap};

/// `@@binlog_row_image`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RowImage {
    /// All columns.
    #[default]
    Full,
    /// The primary key, or a unique key without NULLs in its place, finds the row; what changed follows. Without such a key all columns find it.
    Minimal,
    /// All columns but the TEXT and BLOB ones that neither changed nor belong to the primary key.
    NoBlob,
}

impl RowImage {
    /// The columns of an INSERT's image: all, which says as much as what MySQL writes there, those that the statement names.
    pub fn inserted(self, table: &TableMap) -> Bitmap {
        Bitmap::all(table.column_count())
    }

    /// The columns of the old row's image in an UPDATE or a DELETE.
    pub fn before(self, table: &TableMap) -> Bitmap {
        let (columns, key) = (table.column_count(), table.primary_key());
        match self {
            RowImage::Minimal if !key.is_empty() => Bitmap::of(columns, key.iter().copied()),
            RowImage::NoBlob if !key.is_empty() => Bitmap::of(columns, (0..columns).filter(|i| !table.is_blob(*i) || key.contains(i))),
            _ => Bitmap::all(columns),
        }
    }

    /// Puts the columns of the new row's image in an UPDATE into `after`. Does not allocate.
    pub fn after(self, table: &TableMap, old: &[Value], new: &[Value], after: &mut Bitmap) {
        if self == RowImage::Full {
            return after.fill();
        }
        after.clear();
        for (column, (old, new)) in old.iter().zip(new).enumerate() {
            if old != new || self == RowImage::NoBlob && !table.is_blob(column) {
                after.set(column);
            }
        }
    }
}
