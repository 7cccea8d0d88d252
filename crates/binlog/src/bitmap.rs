//! Sets of columns.

/// A set of a table's columns, in the order of bits that events have (the first column is bit 0 of byte 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    bytes: Vec<u8>,
    columns: usize,
}

impl Bitmap {
    /// No column of `columns`.
    pub fn none(columns: usize) -> Bitmap {
        Bitmap { bytes: vec![0; columns.div_ceil(8)], columns }
    }

    /// All columns; the bits behind the last one are set too, as MySQL writes a full row image.
    pub fn all(columns: usize) -> Bitmap {
        Bitmap { bytes: vec![0xFF; columns.div_ceil(8)], columns }
    }

    /// These columns, by index.
    pub fn of(columns: usize, set: impl IntoIterator<Item = usize>) -> Bitmap {
        let mut bitmap = Bitmap::none(columns);
        set.into_iter().for_each(|column| bitmap.set(column));
        bitmap
    }

    /// Columns of the table.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Columns in the set.
    pub fn count(&self) -> usize {
        (0..self.columns).filter(|column| self.get(*column)).count()
    }

    /// Adds a column; panics beyond the table's columns.
    pub fn set(&mut self, column: usize) {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        self.bytes[column / 8] |= 1 << (column % 8);
    }

    /// True if the column is in the set.
    pub fn get(&self, column: usize) -> bool {
        self.bytes[column / 8] & 1 << (column % 8) != 0
    }

    /// Takes every column out.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// Puts every column in, as [`all`](Bitmap::all) does.
    pub fn fill(&mut self) {
        self.bytes.fill(0xFF);
    }

    /// The bytes as they stand in an event.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
