//! Expressions as written.

pub use highkey_types::IntervalUnit;
use highkey_types::Str;

use super::{ObjectName, Query, VariableScope};

/// Byte offsets of a piece of the statement's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// An expression and where it stands in the text.
#[derive(Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it is.
    pub span: Span,
}

impl Expr {
    /// The element of the select list that it stands for in ORDER BY and GROUP BY, from 1: a literal integer does.
    pub fn ordinal(&self) -> Option<u64> {
        match self.kind {
            ExprKind::Literal(Literal::Int(n)) => Some(n),
            _ => None,
        }
    }
}

impl Clone for Expr {
    fn clone(&self) -> Expr {
        crate::stack::ensure(|| Expr { kind: self.kind.clone(), span: self.span })
    }
}

/// A column reference, qualified as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRef {
    /// Schema qualifier.
    pub schema: Option<String>,
    /// Table or alias qualifier.
    pub table: Option<String>,
    /// Column name.
    pub column: String,
}

impl std::fmt::Display for ColumnRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        if let Some(table) = &self.table {
            write!(f, "{table}.")?;
        }
        f.write_str(&self.column)
    }
}

/// A literal value as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Bool(bool),
    /// An integer of up to 64 bits.
    Int(u64),
    /// A number with a point, or an integer too long for 64 bits: digits as written.
    Decimal(String),
    /// A number with an exponent: text as written.
    Float(String),
    /// A character string; `introducer` is the character set of `_utf8mb4'…'` (N'…' is utf8).
    String { value: Str, introducer: Option<String> },
    /// `x'…'` or `0x…`: bytes; `introducer` as above.
    Hex { value: Vec<u8>, introducer: Option<String> },
    /// `b'…'` or `0b…`: bytes, most significant first.
    Bit(Vec<u8>),
    /// DATE '…'.
    Date(String),
    /// TIME '…'.
    Time(String),
    /// TIMESTAMP '…'.
    Timestamp(String),
}

/// Prefix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UnaryOp {
    Plus,
    Minus,
    /// `~`
    BitNot,
    /// NOT and `!`
    Not,
    /// BINARY expr
    Binary,
}

/// Infix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// `/`
    Div,
    /// DIV
    IntDiv,
    /// `%` and MOD
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Eq,
    /// `<=>`
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `||` under PIPES_AS_CONCAT
    Concat,
    /// `->`
    JsonExtract,
    /// `->>`
    JsonUnquote,
}

/// ANY or ALL of a quantified comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Quantifier {
    Any,
    All,
}

/// The target of CAST and CONVERT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CastType {
    /// SIGNED [INTEGER]
    Signed,
    /// UNSIGNED [INTEGER]
    Unsigned,
    /// BINARY[(n)]
    Binary(Option<u32>),
    /// CHAR[(n)] [CHARACTER SET c], NCHAR
    Char { length: Option<u32>, charset: Option<String> },
    /// DATE
    Date,
    /// DATETIME[(fsp)]
    DateTime(u8),
    /// TIME[(fsp)]
    Time(u8),
    /// YEAR
    Year,
    /// DECIMAL[(p[,s])]
    Decimal { precision: Option<u32>, scale: Option<u32> },
    /// FLOAT
    Float,
    /// DOUBLE, REAL
    Double,
    /// JSON
    Json,
}

/// A function call that is not an aggregate, with ordinary arguments.
#[derive(Debug, Clone)]
pub struct FunctionCall {
    /// `[schema.]name`, as written.
    pub name: ObjectName,
    /// Arguments.
    pub args: Vec<Expr>,
}

/// JSON_VALUE(document, path [RETURNING type] [… ON EMPTY] [… ON ERROR]).
#[derive(Debug, Clone)]
pub struct JsonValueCall {
    /// JSON, or a text that is.
    pub document: Expr,
    /// Where in the document.
    pub path: Expr,
    /// RETURNING.
    pub returning: Option<CastType>,
    /// Where the path leads nowhere.
    pub on_empty: JsonOtherwise,
    /// Where what it leads to is no value of the type.
    pub on_error: JsonOtherwise,
}

/// MATCH (column, …) AGAINST (query …).
#[derive(Debug, Clone)]
pub struct MatchCall {
    /// Columns.
    pub columns: Vec<Expr>,
    /// What is searched for.
    pub query: Expr,
    /// How it is read.
    pub mode: MatchMode,
}

/// How AGAINST reads what is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    /// IN NATURAL LANGUAGE MODE, also if no mode is written.
    NaturalLanguage,
    /// IN BOOLEAN MODE.
    Boolean,
    /// WITH QUERY EXPANSION.
    QueryExpansion,
}

impl MatchMode {
    /// As MySQL writes it behind the search.
    pub fn suffix(self) -> &'static str {
        match self {
            MatchMode::NaturalLanguage => "",
            MatchMode::Boolean => " in boolean mode",
            MatchMode::QueryExpansion => " with query expansion",
        }
    }
}

/// What JSON_VALUE answers where it has no value.
#[derive(Debug, Clone)]
pub enum JsonOtherwise {
    /// NULL.
    Null,
    /// An error.
    Error,
    /// Another value.
    Default(Expr),
}

/// An aggregate or window function call.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// Name in upper case: COUNT, SUM, ROW_NUMBER …
    pub name: String,
    /// DISTINCT given.
    pub distinct: bool,
    /// COUNT(*).
    pub star: bool,
    /// Arguments.
    pub args: Vec<Expr>,
    /// GROUP_CONCAT's ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// GROUP_CONCAT's SEPARATOR.
    pub separator: Option<String>,
    /// OVER clause.
    pub over: Option<Over>,
}

/// What follows OVER.
#[derive(Debug, Clone)]
pub enum Over {
    /// OVER name
    Named(String),
    /// OVER ( … )
    Spec(WindowSpec),
}

/// A window definition.
#[derive(Debug, Clone, Default)]
pub struct WindowSpec {
    /// The window it refines.
    pub base: Option<String>,
    /// PARTITION BY.
    pub partition_by: Vec<Expr>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// ROWS or RANGE frame.
    pub frame: Option<Frame>,
}

/// A window frame.
#[derive(Debug, Clone)]
pub struct Frame {
    /// ROWS (true) or RANGE (false).
    pub rows: bool,
    /// Start bound.
    pub start: FrameBound,
    /// End bound; CURRENT ROW if not written.
    pub end: FrameBound,
}

/// A bound of a window frame.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>),
    CurrentRow,
    Following(Box<Expr>),
    UnboundedFollowing,
}

/// An element of ORDER BY or GROUP BY … ASC|DESC.
#[derive(Debug, Clone)]
pub struct OrderItem {
    /// The expression, alias or ordinal.
    pub expr: Expr,
    /// DESC.
    pub desc: bool,
}

/// The forms of an expression.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// A literal.
    Literal(Literal),
    /// A column.
    Column(ColumnRef),
    /// The n-th `?` of the statement, from 0.
    Param(usize),
    /// `@name`.
    UserVar(String),
    /// `@@[scope.]name`.
    SystemVar { scope: Option<VariableScope>, name: String },
    /// `@name := expr`.
    Assign { name: String, value: Box<Expr> },
    /// Prefix operator.
    Unary { op: UnaryOp, expr: Box<Expr> },
    /// Infix operator.
    Binary { op: BinaryOp, left: Box<Expr>, right: Box<Expr> },
    /// IS [NOT] NULL.
    IsNull { expr: Box<Expr>, negated: bool },
    /// IS [NOT] TRUE | FALSE | UNKNOWN (`None`).
    IsBool { expr: Box<Expr>, value: Option<bool>, negated: bool },
    /// [NOT] BETWEEN.
    Between { expr: Box<Expr>, low: Box<Expr>, high: Box<Expr>, negated: bool },
    /// [NOT] IN (list).
    InList { expr: Box<Expr>, list: Vec<Expr>, negated: bool },
    /// [NOT] IN (query).
    InQuery { expr: Box<Expr>, query: Box<Query>, negated: bool },
    /// [NOT] LIKE … [ESCAPE …].
    Like { expr: Box<Expr>, pattern: Box<Expr>, escape: Option<Box<Expr>>, negated: bool },
    /// [NOT] REGEXP | RLIKE.
    Regexp { expr: Box<Expr>, pattern: Box<Expr>, negated: bool },
    /// a SOUNDS LIKE b.
    SoundsLike { left: Box<Expr>, right: Box<Expr> },
    /// value MEMBER OF (array).
    MemberOf { value: Box<Expr>, array: Box<Expr> },
    /// [NOT] EXISTS (query).
    Exists { query: Box<Query>, negated: bool },
    /// (query) as a scalar or a row.
    Subquery(Box<Query>),
    /// expr op ANY|ALL (query).
    Quantified { op: BinaryOp, quantifier: Quantifier, expr: Box<Expr>, query: Box<Query> },
    /// CASE.
    Case { operand: Option<Box<Expr>>, branches: Vec<(Expr, Expr)>, otherwise: Option<Box<Expr>> },
    /// CAST and CONVERT(…, type).
    Cast { expr: Box<Expr>, ty: CastType },
    /// CONVERT(… USING charset).
    ConvertUsing { expr: Box<Expr>, charset: String },
    /// … COLLATE name.
    Collate { expr: Box<Expr>, collation: String },
    /// date ± INTERVAL value unit, DATE_ADD, DATE_SUB, TIMESTAMPADD.
    DateArith { date: Box<Expr>, value: Box<Expr>, unit: IntervalUnit, subtract: bool },
    /// EXTRACT(unit FROM date).
    Extract { unit: IntervalUnit, date: Box<Expr> },
    /// TIMESTAMPDIFF(unit, from, to).
    TimestampDiff { unit: IntervalUnit, from: Box<Expr>, to: Box<Expr> },
    /// TRIM([BOTH|LEADING|TRAILING] [what] FROM text).
    Trim { side: TrimSide, what: Option<Box<Expr>>, text: Box<Expr> },
    /// CHAR(n, … [USING charset]).
    Char { args: Vec<Expr>, charset: Option<String> },
    /// WEIGHT_STRING(text [AS CHAR|BINARY(n)]).
    WeightString { expr: Box<Expr>, cast: Option<CastType> },
    /// GET_FORMAT(DATE|TIME|DATETIME, 'EUR'): the kind in upper case.
    GetFormat { kind: String, style: Box<Expr> },
    /// JSON_VALUE.
    JsonValue(Box<JsonValueCall>),
    /// MATCH … AGAINST.
    Match(Box<MatchCall>),
    /// An ordinary function.
    Function(FunctionCall),
    /// An aggregate or window function.
    Aggregate(Box<AggregateCall>),
    /// (a, b, …) with at least two members.
    Row(Vec<Expr>),
    /// DEFAULT as a value (`None`), or DEFAULT(column).
    Default(Option<ColumnRef>),
    /// VALUES(column) of ON DUPLICATE KEY UPDATE.
    Values(ColumnRef),
}

/// Sides of TRIM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}
