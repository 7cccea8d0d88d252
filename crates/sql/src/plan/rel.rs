//! Relational operators of the bound plan.

use std::sync::Arc;

use highkey_table::Table;
use highkey_types::{ColumnType, Str};

use super::{Expr, ExprKind, ExprType, JsonRows, Subquery, SubqueryKind};
use crate::parse::ast::LockWait;
use crate::prepared::KeptRows;
use crate::stack;
pub use crate::parse::ast::SetOperator;

/// A column of an operator's output, with what a result set says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name, as the result set shows it.
    pub name: Str,
    /// Table name or alias; empty for an expression.
    pub table: Str,
    /// Schema of the table; empty for an expression or a derived table.
    pub schema: Str,
    /// Name of the base table; empty for an expression.
    pub org_table: Str,
    /// Name of the base column; empty for an expression.
    pub org_name: Str,
    /// Type.
    pub ty: ExprType,
    /// `highkey_types::column_flags` of the base column (keys, auto-increment …); type flags are added on the wire.
    pub flags: u16,
    /// The base column is invisible: `*` leaves it out.
    pub invisible: bool,
}

impl Field {
    /// A computed column.
    pub fn computed(name: impl Into<Str>, ty: ExprType) -> Field {
        let empty: Str = Str::from("");
        Field {
            name: name.into(),
            table: empty.clone(),
            schema: empty.clone(),
            org_table: empty.clone(),
            org_name: empty,
            ty,
            flags: 0,
            invisible: false,
        }
    }

    /// `schema.table.column`, as errors name it: the parts that it has.
    pub fn full_name(&self) -> String {
        let parts: Vec<&str> = [&self.schema, &self.table, &self.name].into_iter().map(|s| &**s).filter(|s| !s.is_empty()).collect();
        parts.join(".")
    }
}

/// A relation: an operator and its output columns.
#[derive(Debug)]
pub struct Rel {
    /// The operator.
    pub kind: RelKind,
    /// The output columns, by position.
    pub fields: Vec<Field>,
}

impl Clone for Rel {
    fn clone(&self) -> Rel {
        stack::ensure(|| Rel { kind: self.kind.clone(), fields: self.fields.clone() })
    }
}

/// A table whose rows the session makes: information_schema, performance_schema, SHOW.
#[derive(Debug, Clone)]
pub struct VirtualTable {
    /// Schema, in lower case.
    pub schema: Str,
    /// Name, in lower case.
    pub name: Str,
    /// Column names (as MySQL prints them) and types; `true` if nullable.
    pub columns: Vec<(Str, ColumnType, bool)>,
}

/// How a scan locks its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockSpec {
    /// Exclusive (FOR UPDATE) or shared.
    pub exclusive: bool,
    /// What to do with rows that others hold.
    pub wait: LockWait,
}

/// What USE, FORCE and IGNORE INDEX leave: positions in `TableDef::indexes`; `None` is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexChoice {
    /// To find rows by.
    pub rows: Option<Vec<usize>>,
    /// To read in an order.
    pub order: Option<Vec<usize>>,
}

impl IndexChoice {
    /// Rows may be found by this index.
    pub fn finds(&self, index: usize) -> bool {
        self.rows.as_ref().is_none_or(|allowed| allowed.contains(&index))
    }

    /// Rows may be read in the order of this index.
    pub fn orders(&self, index: usize) -> bool {
        self.order.as_ref().is_none_or(|allowed| allowed.contains(&index))
    }
}

/// The operators.
#[derive(Debug, Clone)]
pub enum RelKind {
    /// A base table. Output i is table column `columns[i]`.
    Scan { table: Arc<Table>, alias: Str, columns: Vec<usize>, indexes: IndexChoice, lock: Option<LockSpec> },
    /// A table made by the session; all its columns in order.
    Virtual { table: Arc<VirtualTable>, alias: Str },
    /// Constant rows (expressions without columns of their own; outer references are possible).
    /// SELECT without FROM reads one row of no columns.
    Values { rows: Vec<Vec<Expr>> },
    /// Rows that a scan has read, and locked, before the query. No more than some wait in memory.
    Kept { rows: Arc<KeptRows> },
    /// Rows for which the predicate is true.
    Filter { input: Box<Rel>, predicate: Expr },
    /// One expression per output column.
    Project { input: Box<Rel>, exprs: Vec<Expr> },
    /// Output is the left columns, then the right ones. `on` is over both. RIGHT JOIN is a Left join under a Project.
    Join { kind: JoinKind, left: Box<Rel>, right: Box<Rel>, on: Option<Expr> },
    /// For each row of `input` the rows of `made`, a subquery of kind [`SubqueryKind::Rows`] of that row: LATERAL, and JSON_TABLE of a column. Output is the columns
    /// of both. `outer`: a row that has none is kept, with NULLs.
    Apply { input: Box<Rel>, made: Expr, outer: bool },
    /// JSON_TABLE: the rows that a document makes. The document is an expression without columns of its own; outer references are possible.
    JsonTable { rows: Arc<JsonRows>, document: Expr },
    /// Output: the group expressions, then the aggregates, then, with rollup, one BIGINT UNSIGNED whose bit i is set
    /// when group expression i was rolled up (its value is then NULL).
    /// Without groups it returns exactly one row.
    Aggregate { input: Box<Rel>, groups: Vec<Expr>, aggregates: Vec<Aggregate>, rollup: bool },
    /// Output: the input, then one column for each window expression.
    Window { input: Box<Rel>, windows: Vec<WindowExpr> },
    /// Sorted output; NULL is less than everything.
    Sort { input: Box<Rel>, keys: Vec<SortKey> },
    /// Skips, then counts. Both are constants or parameters of type BIGINT UNSIGNED.
    Limit { input: Box<Rel>, offset: Option<Expr>, count: Option<Expr> },
    /// Duplicate rows removed, text by its collation, NULL equal to NULL.
    Distinct { input: Box<Rel> },
    /// The inputs have the output's types already. INTERSECT and EXCEPT have two, UNION two or more.
    SetOperation { op: SetOperator, all: bool, inputs: Vec<Rel> },
    /// WITH RECURSIVE: `anchor`, then `step` over the rows of the previous round until it gives none.
    /// `distinct`: UNION, so rows seen before are dropped. `strict`: a text of `step` that is too long for its column is an error; otherwise it is cut.
    RecursiveCte { id: usize, anchor: Box<Rel>, step: Box<Rel>, distinct: bool, strict: bool },
    /// Inside `step`: the previous round's rows of the recursion `id`.
    CteScan { id: usize, name: Str },
    /// The rows of a common table expression that are made once in a query, whichever of the operators of this `id` asks for them first. Each has the plan,
    /// which reads nothing of what is around it.
    MaterializedCte { id: usize, name: Str, plan: Box<Rel> },
}

/// Kinds of join in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    /// STRAIGHT_JOIN: inner, the left input first.
    Straight,
    Left,
}

/// A sort key.
#[derive(Debug, Clone)]
pub struct SortKey {
    /// What to sort by; text sorts by its type's collation.
    pub expr: Expr,
    /// Descending.
    pub desc: bool,
}

/// Aggregate functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AggregateFunc {
    /// COUNT(*): no arguments.
    CountStar,
    /// COUNT(expr), COUNT(DISTINCT expr, …): rows where no argument is NULL.
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    /// STD, STDDEV, STDDEV_POP.
    StddevPop,
    StddevSamp,
    /// VARIANCE, VAR_POP.
    VarPop,
    VarSamp,
    /// Argument 0 is the text of one row (already concatenated); argument 1 the separator, a literal.
    GroupConcat,
    /// Any value of the group; also what a column outside GROUP BY becomes without ONLY_FULL_GROUP_BY (the first row's).
    AnyValue,
    JsonArrayAgg,
    JsonObjectAgg,
}

/// One aggregate.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// The function.
    pub func: AggregateFunc,
    /// DISTINCT.
    pub distinct: bool,
    /// Arguments over the input, already converted: SUM and AVG get DECIMAL or DOUBLE, BIT_* get BIGINT UNSIGNED or bytes.
    pub args: Vec<Expr>,
    /// GROUP_CONCAT's ORDER BY.
    pub order_by: Vec<SortKey>,
    /// Result type.
    pub ty: ExprType,
}

/// Functions that need OVER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum WindowFunc {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    /// NTILE(n)
    Ntile,
    /// LAG(expr, offset, default): the two last are always there.
    Lag,
    Lead,
    FirstValue,
    LastValue,
    /// NTH_VALUE(expr, n)
    NthValue,
    /// An aggregate over the frame.
    Aggregate(AggregateFunc),
}

/// One window function with its window.
#[derive(Debug, Clone)]
pub struct WindowExpr {
    /// The function.
    pub func: WindowFunc,
    /// Arguments over the input.
    pub args: Vec<Expr>,
    /// DISTINCT is not allowed with OVER; kept for symmetry with [`Aggregate`] and always false.
    pub distinct: bool,
    /// PARTITION BY.
    pub partition_by: Vec<Expr>,
    /// ORDER BY.
    pub order_by: Vec<SortKey>,
    /// The frame; `None` is MySQL's default (RANGE UNBOUNDED PRECEDING to CURRENT ROW with ORDER BY, else the partition).
    pub frame: Option<WindowFrame>,
    /// Result type.
    pub ty: ExprType,
}

/// A frame with constant bounds.
#[derive(Debug, Clone)]
pub struct WindowFrame {
    /// ROWS or RANGE.
    pub rows: bool,
    /// First row.
    pub start: FrameBoundary,
    /// Last row.
    pub end: FrameBoundary,
}

/// Bounds of a frame. A RANGE over a temporal key has the interval's unit.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum FrameBoundary {
    UnboundedPreceding,
    Preceding(Expr, Option<highkey_types::IntervalUnit>),
    CurrentRow,
    Following(Expr, Option<highkey_types::IntervalUnit>),
    UnboundedFollowing,
}

impl Rel {
    /// One row without columns: what SELECT without FROM reads.
    pub fn dual() -> Rel {
        Rel { kind: RelKind::Values { rows: vec![Vec::new()] }, fields: Vec::new() }
    }

    /// The rows and the expressions of the last projection, if nothing but an order and DISTINCT come behind it.
    pub fn selected(&self) -> Option<(&Rel, &[Expr])> {
        match &self.kind {
            RelKind::Project { input, exprs } => Some((input, exprs)),
            RelKind::Distinct { input } | RelKind::Sort { input, .. } => input.selected(),
            _ => None,
        }
    }

    /// Rows of `self` that satisfy `predicate`.
    pub fn filter(self, predicate: Expr) -> Rel {
        let fields = self.fields.clone();
        Rel { kind: RelKind::Filter { input: Box::new(self), predicate }, fields }
    }

    /// The same, asking for what needs only the rows that others are made for before those are made.
    pub fn filter_early(self, predicate: Expr) -> Rel {
        let RelKind::Apply { input, made, outer } = self.kind else { return self.filter(predicate) };
        let width = input.fields.len();
        let is_early = |c: &Expr| c.is_steady() && c.columns().last().is_some_and(|last| *last < width);
        let (early, late): (Vec<Expr>, Vec<Expr>) = predicate.conjuncts().iter().cloned().partition(is_early);
        let input = match Expr::and(early) {
            Some(early) => Box::new(input.filter_early(early)),
            None => input,
        };
        let applied = Rel { kind: RelKind::Apply { input, made, outer }, fields: self.fields };
        match Expr::and(late) {
            Some(late) => applied.filter(late),
            None => applied,
        }
    }

    /// What [`RelKind::Apply`] makes for each row, where this is one.
    pub fn made(&self) -> Option<&Rel> {
        match &self.kind {
            RelKind::Apply { made: Expr { kind: ExprKind::Subquery(subquery), .. }, .. } => Some(&subquery.plan),
            _ => None,
        }
    }

    /// For each row of `self` the rows of `made`, which reads it as a subquery does. `fields`: the columns of both.
    pub fn apply(self, made: Rel, outer: bool, fields: Vec<Field>) -> Rel {
        let subquery = Subquery { kind: SubqueryKind::Rows, plan: made, correlated: true, failed: None };
        let made = Expr { kind: ExprKind::Subquery(Box::new(subquery)), ty: ExprType::null() };
        Rel { kind: RelKind::Apply { input: Box::new(self), made, outer }, fields }
    }

    /// `exprs` over `self`, named by `fields`.
    pub fn project(self, exprs: Vec<Expr>, fields: Vec<Field>) -> Rel {
        debug_assert_eq!(exprs.len(), fields.len());
        Rel { kind: RelKind::Project { input: Box::new(self), exprs }, fields }
    }

    /// `self` sorted.
    pub fn sort(self, keys: Vec<SortKey>) -> Rel {
        if keys.is_empty() {
            return self;
        }
        let fields = self.fields.clone();
        Rel { kind: RelKind::Sort { input: Box::new(self), keys }, fields }
    }

    /// `self` without duplicates.
    pub fn distinct(self) -> Rel {
        let fields = self.fields.clone();
        Rel { kind: RelKind::Distinct { input: Box::new(self) }, fields }
    }

    /// `self` cut.
    pub fn limit(self, offset: Option<Expr>, count: Option<Expr>) -> Rel {
        if offset.is_none() && count.is_none() {
            return self;
        }
        let fields = self.fields.clone();
        Rel { kind: RelKind::Limit { input: Box::new(self), offset, count }, fields }
    }

    /// The first `width` columns of `self`.
    pub fn truncate(self, width: usize) -> Rel {
        if self.fields.len() == width {
            return self;
        }
        let exprs = self.fields[..width].iter().enumerate().map(|(i, f)| Expr::column(i, f.ty.clone())).collect();
        let fields = self.fields[..width].to_vec();
        self.project(exprs, fields)
    }
}
