//! Statements that change rows.

use super::{ColumnRef, Expr, FileFormat, Limit, ObjectName, OptimizerHint, OrderItem, Query, TableRef, With};

/// `column = value`; the value may be [`super::ExprKind::Default`].
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The target.
    pub column: ColumnRef,
    /// The new value.
    pub value: Expr,
}

/// INSERT or REPLACE.
#[derive(Debug, Clone)]
pub struct Insert {
    /// REPLACE.
    pub replace: bool,
    /// DELAYED, which MySQL only warns of.
    pub delayed: bool,
    /// IGNORE.
    pub ignore: bool,
    /// Optimizer hints.
    pub hints: Vec<OptimizerHint>,
    /// The target.
    pub table: ObjectName,
    /// PARTITION (…): kept so that the session can answer 1747.
    pub partitions: Vec<String>,
    /// The column list; `None` when not written. INSERT … SET fills it.
    pub columns: Option<Vec<ColumnRef>>,
    /// Where the rows come from.
    pub source: InsertSource,
    /// `AS new[(columns)]` after VALUES: the row alias of ON DUPLICATE KEY UPDATE.
    pub row_alias: Option<(String, Vec<String>)>,
    /// ON DUPLICATE KEY UPDATE.
    pub on_duplicate: Vec<Assignment>,
}

/// Rows of an INSERT.
#[derive(Debug, Clone)]
pub enum InsertSource {
    /// VALUES (…), …; a value may be DEFAULT; an empty row `()` means all defaults.
    Values(Vec<Vec<Expr>>),
    /// SELECT, TABLE, VALUES ROW.
    Query(Box<Query>),
}

/// UPDATE.
#[derive(Debug, Clone)]
pub struct Update {
    /// WITH.
    pub with: Option<With>,
    /// Optimizer hints.
    pub hints: Vec<OptimizerHint>,
    /// IGNORE.
    pub ignore: bool,
    /// The tables: one [`TableRef::Table`] for the single-table form.
    pub tables: Vec<TableRef>,
    /// SET.
    pub assignments: Vec<Assignment>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// ORDER BY (single table only).
    pub order_by: Vec<OrderItem>,
    /// LIMIT (single table only; no offset).
    pub limit: Option<Limit>,
}

/// DELETE.
#[derive(Debug, Clone)]
pub struct Delete {
    /// WITH.
    pub with: Option<With>,
    /// Optimizer hints.
    pub hints: Vec<OptimizerHint>,
    /// IGNORE.
    pub ignore: bool,
    /// Names of the tables to delete from, in the multi-table forms; empty for the single-table form.
    pub targets: Vec<ObjectName>,
    /// The tables read: one [`TableRef::Table`] for the single-table form.
    pub tables: Vec<TableRef>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// ORDER BY (single table only).
    pub order_by: Vec<OrderItem>,
    /// LIMIT (single table only).
    pub limit: Option<Limit>,
}

/// What LOAD DATA does with rows whose unique key exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LoadDuplicates {
    Error,
    Replace,
    Ignore,
}

/// A target of a field of LOAD DATA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadTarget {
    /// A column.
    Column(String),
    /// A user variable (without the sign).
    Variable(String),
}

/// LOAD DATA [LOCAL] INFILE.
#[derive(Debug, Clone)]
pub struct LoadData {
    /// LOCAL.
    pub local: bool,
    /// The file's name.
    pub path: String,
    /// REPLACE or IGNORE.
    pub duplicates: LoadDuplicates,
    /// The target.
    pub table: ObjectName,
    /// PARTITION (…).
    pub partitions: Vec<String>,
    /// CHARACTER SET.
    pub charset: Option<String>,
    /// FIELDS and LINES.
    pub format: FileFormat,
    /// IGNORE n LINES.
    pub ignore_lines: u64,
    /// (column | @var, …); empty for all columns.
    pub targets: Vec<LoadTarget>,
    /// SET.
    pub assignments: Vec<Assignment>,
}
