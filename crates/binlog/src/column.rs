//! Columns as the events need to know them.

use highkey_types::ColumnType;

/// A column as the events need to know it.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    pub name: &'a str,
    pub ty: &'a ColumnType,
    pub nullable: bool,
    /// Its part of the primary key.
    pub primary_key: Option<PrimaryKeyPart>,
    /// False for an INVISIBLE column.
    pub visible: bool,
}

/// A column's part of the primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimaryKeyPart {
    /// From 0 in the order of the key.
    pub position: u16,
    /// Characters (bytes in a binary column) of a prefix; 0 for the whole column.
    pub prefix: u32,
}

/// The columns of the key in its order.
pub(crate) fn primary_key(columns: &[Column<'_>]) -> Vec<usize> {
    let mut parts: Vec<_> = columns.iter().enumerate().filter_map(|(i, column)| Some((column.primary_key?.position, i))).collect();
    parts.sort_unstable();
    parts.into_iter().map(|(_, column)| column).collect()
}
