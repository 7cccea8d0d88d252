//! Bound INSERT, UPDATE, DELETE and LOAD DATA: what `execute` and the fast path run.

use std::ops::Range;
use std::sync::Arc;

use highkey_table::{Table, TableDef, View};
use highkey_types::{Str, TypeKind, Value};

use crate::parse::ast::{FileFormat, LoadDuplicates};
use crate::plan::{BoundQuery, Expr, Hints, IndexChoice, SortKey};

/// In `RelKind::Scan::columns` and as an output of [`BoundUpdate::Multi`]: the row's clustered key, as the table encodes it (`ExprType::row_key`).
pub const ROW_KEY: usize = usize::MAX;

/// Whether it takes [`ROW_KEY`] to name a row: there is no primary key, or a TIMESTAMP is part of it, which shows two moments alike in the hour that the end
/// of daylight saving repeats.
pub fn needs_row_key(def: &TableDef) -> bool {
    def.primary_key().is_none_or(|key| key.parts.iter().any(|part| matches!(def.columns[part.column].ty.kind, TypeKind::Timestamp(_))))
}

/// A value to assign.
#[derive(Debug, Clone)]
pub enum AssignedValue {
    /// An expression. Not yet converted to the column's type: `types::store` does that.
    Expr(Expr),
    /// DEFAULT: the column's default, or its generated value.
    Default,
}

/// A value in a row of VALUES.
#[derive(Debug, Clone)]
pub enum RowValue {
    /// A literal that is the same wherever it is put. Not yet converted.
    Literal(Value),
    /// Anything else.
    Assigned(AssignedValue),
}

/// CHECK OPTION: what rows that are written through a view have to satisfy.
#[derive(Debug)]
pub struct ViewCheck {
    /// Schema and name of the view, with a dot.
    pub view: Str,
    /// Over the table's columns in definition order.
    pub condition: Expr,
}

/// INSERT or REPLACE.
#[derive(Debug, Clone)]
pub struct BoundInsert {
    /// The target.
    pub table: Arc<Table>,
    /// REPLACE.
    pub replace: bool,
    /// IGNORE.
    pub ignore: bool,
    /// Target columns, in the order of the values.
    pub columns: Vec<usize>,
    /// The rows.
    pub source: BoundSource,
    /// ON DUPLICATE KEY UPDATE: column and new value, whose expressions are over the existing row followed by the
    /// proposed row (`VALUES(c)` is column `n + c` of `n` table columns), and then by what the query gives beyond the target columns.
    pub on_duplicate: Vec<(usize, AssignedValue)>,
    /// CHECK OPTION of the view that is the target.
    pub check: Option<Arc<ViewCheck>>,
    /// The views that it reads or writes through.
    pub views: Vec<Arc<View>>,
    /// Optimizer hints.
    pub hints: Hints,
}

/// Rows to insert.
#[derive(Debug, Clone)]
pub enum BoundSource {
    /// VALUES. Expressions are over the row being built: table columns in order, those not assigned yet at their default.
    Rows(Vec<Vec<RowValue>>),
    /// A query with one output for each target column, and behind them those that ON DUPLICATE KEY UPDATE names.
    Query(Box<BoundQuery>),
}

/// UPDATE.
#[derive(Debug, Clone)]
pub enum BoundUpdate {
    /// One table without subqueries in FROM: all expressions are over the table's columns in definition order.
    Single(Box<SingleUpdate>),
    /// Several tables: run the query, then update each target row once.
    Multi(Box<MultiUpdate>),
}

/// UPDATE of one table. Assignments run left to right, each seeing the ones before it, as MySQL does.
#[derive(Debug, Clone)]
pub struct SingleUpdate {
    /// The target.
    pub table: Arc<Table>,
    /// Its alias, or its name.
    pub alias: Str,
    /// IGNORE.
    pub ignore: bool,
    /// Columns and their new values.
    pub assignments: Vec<(usize, AssignedValue)>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// ORDER BY.
    pub order_by: Vec<SortKey>,
    /// LIMIT.
    pub limit: Option<Expr>,
    /// What index hints leave.
    pub indexes: IndexChoice,
    /// CHECK OPTION of the view that is the target.
    pub check: Option<Arc<ViewCheck>>,
    /// The views that it reads or writes through.
    pub views: Vec<Arc<View>>,
    /// Optimizer hints.
    pub hints: Hints,
}

impl SingleUpdate {
    /// All expressions that may hold subqueries.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let assigned = self.assignments.iter().filter_map(|(_, v)| v.expr());
        self.filter.iter().chain(assigned).chain(self.order_by.iter().map(|k| &k.expr))
    }

    /// The same, to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let assigned = self.assignments.iter_mut().filter_map(|(_, v)| v.expr_mut());
        self.filter.iter_mut().chain(assigned).chain(self.order_by.iter_mut().map(|k| &mut k.expr))
    }
}

/// UPDATE over a join. Assigned values are outputs of the query, but those of the first target see what is assigned before them, those of the others its new row.
#[derive(Debug, Clone)]
pub struct MultiUpdate {
    /// The tables to update.
    pub targets: Vec<UpdateTarget>,
    /// All matching combinations.
    pub query: BoundQuery,
    /// IGNORE.
    pub ignore: bool,
}

/// One table of a multi-table UPDATE.
#[derive(Debug, Clone)]
pub struct UpdateTarget {
    /// The table.
    pub table: Arc<Table>,
    /// Outputs that are its row: all columns in definition order, then [`ROW_KEY`] if that is needed and can be had.
    /// A row of an outer join that is missing has NULL in its key: skip it.
    pub row: Range<usize>,
    /// Columns and the output that holds the new value; `None` is DEFAULT.
    pub assignments: Vec<(usize, Option<usize>)>,
}

/// DELETE.
#[derive(Debug, Clone)]
pub enum BoundDelete {
    /// One table: expressions are over its columns in definition order.
    Single(Box<SingleDelete>),
    /// Several tables: run the query, then delete each target row once.
    Multi { targets: Vec<UpdateTarget>, query: Box<BoundQuery>, ignore: bool },
}

/// DELETE from one table.
#[derive(Debug, Clone)]
pub struct SingleDelete {
    /// The target.
    pub table: Arc<Table>,
    /// Its alias, or its name.
    pub alias: Str,
    /// IGNORE.
    pub ignore: bool,
    /// WHERE.
    pub filter: Option<Expr>,
    /// ORDER BY.
    pub order_by: Vec<SortKey>,
    /// LIMIT.
    pub limit: Option<Expr>,
    /// What index hints leave.
    pub indexes: IndexChoice,
    /// The views that it reads or writes through.
    pub views: Vec<Arc<View>>,
    /// Optimizer hints.
    pub hints: Hints,
}

impl SingleDelete {
    /// All expressions that may hold subqueries.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.filter.iter().chain(self.order_by.iter().map(|k| &k.expr))
    }

    /// The same, to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.filter.iter_mut().chain(self.order_by.iter_mut().map(|k| &mut k.expr))
    }
}

/// Where a field of LOAD DATA goes.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundLoadTarget {
    /// Position of a column.
    Column(usize),
    /// A user variable, lower case.
    Variable(Str),
}

/// LOAD DATA.
#[derive(Debug, Clone)]
pub struct BoundLoad {
    /// The target.
    pub table: Arc<Table>,
    /// LOCAL.
    pub local: bool,
    /// The file.
    pub path: String,
    /// REPLACE or IGNORE.
    pub duplicates: LoadDuplicates,
    /// CHARACTER SET.
    pub charset: Option<String>,
    /// FIELDS and LINES.
    pub format: FileFormat,
    /// IGNORE n LINES.
    pub ignore_lines: u64,
    /// One for each field.
    pub targets: Vec<BoundLoadTarget>,
    /// SET: expressions over the table's columns as loaded so far.
    pub assignments: Vec<(usize, AssignedValue)>,
    /// CHECK OPTION of the view that is the target.
    pub check: Option<Arc<ViewCheck>>,
    /// The views that it reads or writes through.
    pub views: Vec<Arc<View>>,
}
