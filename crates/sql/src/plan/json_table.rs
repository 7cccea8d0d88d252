//! JSON_TABLE(): which values of a document make rows and columns.

use highkey_types::json::Path;
use highkey_types::{ColumnType, Str, Value};

/// Rows of the values that `path` leads to, in a document or in the value of a row around.
#[derive(Debug)]
pub struct JsonRows {
    /// Where the values are.
    pub path: Path,
    /// Columns with a value in each row.
    pub columns: Vec<JsonColumn>,
    /// NESTED: each has rows of its own within such a value, in which the columns of its siblings are NULL.
    pub nested: Vec<JsonRows>,
}

/// A column.
#[derive(Debug)]
pub struct JsonColumn {
    /// Its place among the table's columns.
    pub output: usize,
    /// Its name, for errors.
    pub name: Str,
    /// What it has.
    pub source: JsonSource,
}

/// What a column has.
#[derive(Debug)]
pub enum JsonSource {
    /// The number of the row among those of the same value around, from 1.
    Ordinality,
    /// The value that the path leads to, as `ty`.
    Path { path: Path, ty: ColumnType, on_empty: JsonOtherwise, on_error: JsonOtherwise },
    /// Whether the path leads anywhere, 1 or 0 as `ty`.
    Exists { path: Path, ty: ColumnType },
}

/// What a column has where the path leads nowhere, or to what it cannot hold.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum JsonOtherwise {
    Null,
    Error,
    /// A value of the column's type.
    Default(Value),
}
