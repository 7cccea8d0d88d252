//! Queries: SELECT, TABLE, VALUES and what combines them.

use super::{DataType, Expr, ObjectName, OrderItem, Target, WindowSpec};

/// A query expression with everything that may surround it.
#[derive(Debug, Clone)]
pub struct Query {
    /// WITH.
    pub with: Option<With>,
    /// The body.
    pub body: QueryBody,
    /// ORDER BY of the whole.
    pub order_by: Vec<OrderItem>,
    /// LIMIT of the whole.
    pub limit: Option<Limit>,
    /// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
    pub locks: Vec<LockClause>,
    /// INTO, wherever it was written.
    pub into: Option<Into>,
}

/// WITH [RECURSIVE] …
#[derive(Debug, Clone)]
pub struct With {
    /// RECURSIVE was written.
    pub recursive: bool,
    /// The common table expressions, in order.
    pub ctes: Vec<Cte>,
}

/// One common table expression.
#[derive(Debug, Clone)]
pub struct Cte {
    /// Its name.
    pub name: String,
    /// Column names, if given.
    pub columns: Vec<String>,
    /// Its query.
    pub query: Query,
}

/// The body of a query.
#[derive(Debug, Clone)]
pub enum QueryBody {
    /// SELECT.
    Select(Box<Select>),
    /// VALUES ROW(…), …
    Values(Vec<Vec<Expr>>),
    /// TABLE name.
    Table(ObjectName),
    /// (query).
    Nested(Box<Query>),
    /// first op body op body …, done from left to right.
    SetOperations { first: Box<QueryBody>, rest: Vec<SetOperand> },
}

/// An operator between two queries and the query on its right.
#[derive(Debug, Clone)]
pub struct SetOperand {
    /// The operator.
    pub op: SetOperator,
    /// ALL.
    pub all: bool,
    /// The query.
    pub body: QueryBody,
}

/// UNION, INTERSECT, EXCEPT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// One SELECT.
#[derive(Debug, Clone)]
pub struct Select {
    /// Its number among the query blocks of the statement, in the order of the text, from 1; 0 for one that is not written as SELECT.
    pub number: u32,
    /// Optimizer hints.
    pub hints: Vec<OptimizerHint>,
    /// DISTINCT or DISTINCTROW.
    pub distinct: bool,
    /// SQL_CALC_FOUND_ROWS.
    pub calc_found_rows: bool,
    /// STRAIGHT_JOIN.
    pub straight_join: bool,
    /// The select list.
    pub items: Vec<SelectItem>,
    /// FROM; empty for none or DUAL.
    pub from: Vec<TableRef>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// GROUP BY.
    pub group_by: Vec<OrderItem>,
    /// WITH ROLLUP.
    pub rollup: bool,
    /// HAVING.
    pub having: Option<Expr>,
    /// WINDOW name AS (…).
    pub windows: Vec<(String, WindowSpec)>,
}

/// An element of the select list.
#[derive(Debug, Clone)]
pub enum SelectItem {
    /// `*`, at a byte of the text.
    Star { at: usize },
    /// `[schema.]table.*`, at a byte of the text.
    QualifiedStar { name: ObjectName, at: usize },
    /// An expression. `name` is the result column's name: the alias, else what MySQL makes of the source text. `aliased`: it is the alias.
    Expr { expr: Expr, name: String, aliased: bool },
}

/// An element of FROM.
#[derive(Debug, Clone)]
pub enum TableRef {
    /// A table, view or common table expression.
    Table { name: ObjectName, alias: Option<String>, partitions: Vec<String>, index_hints: Vec<IndexHint> },
    /// ([LATERAL] query) [AS] alias [(columns)].
    Derived { lateral: bool, query: Box<Query>, alias: String, columns: Vec<String> },
    /// JSON_TABLE(…) [AS] alias.
    JsonTable(Box<JsonTable>),
    /// left JOIN right.
    Join { kind: JoinKind, left: Box<TableRef>, right: Box<TableRef>, condition: JoinCondition },
    /// A parenthesised list: (a, b) — a cross join.
    List(Vec<TableRef>),
}

impl TableRef {
    /// It may read columns of the tables before it, as LATERAL and JSON_TABLE do; or a table that it joins may.
    pub fn is_lateral(&self) -> bool {
        match self {
            TableRef::Table { .. } => false,
            TableRef::Derived { lateral, .. } => *lateral,
            TableRef::JsonTable(_) => true,
            TableRef::Join { left, right, .. } => left.is_lateral() || right.is_lateral(),
            TableRef::List(tables) => tables.iter().any(TableRef::is_lateral),
        }
    }
}

/// JSON_TABLE(document, path COLUMNS(…)) [AS] alias.
#[derive(Debug, Clone)]
pub struct JsonTable {
    /// The document.
    pub document: Expr,
    /// Each value in it that this path leads to makes a row.
    pub path: String,
    /// COLUMNS.
    pub columns: Vec<JsonTableColumn>,
    /// The table's name.
    pub alias: String,
}

/// An element of COLUMNS.
#[derive(Debug, Clone)]
pub enum JsonTableColumn {
    /// name FOR ORDINALITY.
    Ordinality { name: String },
    /// name type PATH path [… ON EMPTY] [… ON ERROR]. `written`: the type's text.
    Path { name: String, ty: DataType, written: String, path: String, on_empty: Option<JsonTableOtherwise>, on_error: Option<JsonTableOtherwise> },
    /// name type EXISTS PATH path.
    Exists { name: String, ty: DataType, written: String, path: String },
    /// NESTED [PATH] path COLUMNS(…).
    Nested { path: String, columns: Vec<JsonTableColumn> },
}

/// What a column of JSON_TABLE has where it has no value.
#[derive(Debug, Clone)]
pub enum JsonTableOtherwise {
    /// NULL.
    Null,
    /// An error.
    Error,
    /// DEFAULT, as the text of a JSON value.
    Default(String),
}

/// Kinds of join as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    /// JOIN, INNER JOIN, CROSS JOIN and the comma.
    Inner,
    /// STRAIGHT_JOIN.
    Straight,
    Left,
    Right,
}

/// The condition of a join.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum JoinCondition {
    None,
    On(Expr),
    /// The columns, at a byte of the text.
    Using { columns: Vec<String>, at: usize },
    /// The join ends at a byte of the text.
    Natural { at: usize },
}

/// USE, FORCE and IGNORE INDEX.
#[derive(Debug, Clone)]
pub struct IndexHint {
    /// The verb.
    pub kind: IndexHintKind,
    /// FOR JOIN | ORDER BY | GROUP BY, in upper case.
    pub purpose: Option<String>,
    /// Index names.
    pub indexes: Vec<String>,
}

/// Verbs of index hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexHintKind {
    Use,
    Force,
    Ignore,
}

/// LIMIT.
#[derive(Debug, Clone)]
pub struct Limit {
    /// Rows to skip: a literal integer or a parameter.
    pub offset: Option<Expr>,
    /// Rows to return: a literal integer or a parameter.
    pub count: Expr,
}

/// A locking clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockClause {
    /// FOR UPDATE (true) or FOR SHARE.
    pub exclusive: bool,
    /// OF tables; empty for all.
    pub of: Vec<String>,
    /// What to do with rows that others hold.
    pub wait: LockWait,
}

/// NOWAIT and SKIP LOCKED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LockWait {
    Wait,
    NoWait,
    SkipLocked,
}

/// SELECT … INTO.
#[derive(Debug, Clone)]
pub enum Into {
    /// INTO OUTFILE.
    Outfile { path: String, charset: Option<String>, format: FileFormat },
    /// INTO DUMPFILE.
    Dumpfile(String),
    /// INTO @a, @b (names without the sign).
    Variables(Vec<String>),
    /// Variables of a routine among them.
    Targets(Vec<Target>),
}

/// FIELDS and LINES clauses, with MySQL's defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY.
    pub field_terminator: Vec<u8>,
    /// FIELDS ENCLOSED BY: at most one character.
    pub enclosed_by: Vec<u8>,
    /// OPTIONALLY.
    pub optionally_enclosed: bool,
    /// FIELDS ESCAPED BY: at most one character.
    pub escaped_by: Vec<u8>,
    /// The statement says it.
    pub says_escape: bool,
    /// LINES STARTING BY.
    pub line_prefix: Vec<u8>,
    /// LINES TERMINATED BY.
    pub line_terminator: Vec<u8>,
}

impl FileFormat {
    /// Neither terminated nor enclosed: fields are told apart by their width.
    pub fn is_fixed(&self) -> bool {
        self.field_terminator.is_empty() && self.enclosed_by.is_empty()
    }

    /// As it is meant where it is run: under NO_BACKSLASH_ESCAPES nothing escapes unless the statement says so.
    pub fn in_mode(mut self, no_backslash_escapes: bool) -> FileFormat {
        if no_backslash_escapes && !self.says_escape {
            self.escaped_by.clear();
        }
        self
    }
}

impl Default for FileFormat {
    fn default() -> Self {
        FileFormat {
            field_terminator: b"\t".to_vec(),
            enclosed_by: Vec::new(),
            optionally_enclosed: false,
            escaped_by: b"\\".to_vec(),
            says_escape: false,
            line_prefix: Vec::new(),
            line_terminator: b"\n".to_vec(),
        }
    }
}

/// The hint `SET_VAR(name = value)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVarHint {
    /// As written.
    pub name: String,
    /// What the variable is set to for the statement.
    pub value: SetVarValue,
}

/// A value of SET_VAR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetVarValue {
    /// `16M` is 16777216.
    Number(u64),
    /// A string or a word.
    Text(String),
}

impl std::fmt::Display for SetVarValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SetVarValue::Number(n) => write!(f, "{n}"),
            SetVarValue::Text(text) => write!(f, "'{text}'"),
        }
    }
}

/// One hint of `/*+ … */` but SET_VAR.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptimizerHint {
    /// PQ, NO_PQ, MAX_EXECUTION_TIME …, in upper case.
    pub name: String,
    /// `@block` before all else: the query block that it is about.
    pub block: Option<String>,
    /// Tables, as written.
    pub tables: Vec<HintTable>,
    /// What else stands between the parentheses: indexes, strategies in upper case, a name or a number.
    pub args: Vec<String>,
}

/// `table[@block]` in a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintTable {
    /// The table's alias.
    pub name: String,
    /// The query block that it is of.
    pub block: Option<String>,
}
