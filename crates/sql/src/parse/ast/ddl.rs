//! Statements that define schemas, tables and indexes.

use highkey_table::{CheckOption, ViewAlgorithm};

use super::{Expr, ObjectName, Query, UserName};

/// Default character set and collation of a schema, as named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// [DEFAULT] CHARACTER SET.
    pub charset: Option<String>,
    /// [DEFAULT] COLLATE.
    pub collation: Option<String>,
}

/// An expression kept with its text, for what the catalog stores as SQL.
#[derive(Debug, Clone)]
pub struct ExprText {
    /// The expression.
    pub expr: Expr,
    /// Its text in the statement.
    pub text: String,
}

/// A column type as written.
#[derive(Debug, Clone, PartialEq)]
pub struct DataType {
    /// Base type and its arguments.
    pub kind: DataTypeKind,
    /// UNSIGNED.
    pub unsigned: bool,
    /// ZEROFILL (implies UNSIGNED).
    pub zerofill: bool,
    /// Display width of an integer type.
    pub width: Option<u32>,
    /// CHARACTER SET of this column.
    pub charset: Option<String>,
    /// COLLATE of this column.
    pub collation: Option<String>,
    /// BINARY attribute: the `_bin` collation of the character set.
    pub binary: bool,
    /// SRID of this column.
    pub srid: Option<u64>,
}

/// Base types; a length that was not written is `None`.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum DataTypeKind {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    /// BOOL and BOOLEAN: TINYINT(1).
    Bool,
    /// SERIAL: BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE.
    Serial,
    Decimal { precision: Option<u32>, scale: Option<u32> },
    /// FLOAT, FLOAT(p), FLOAT(m,d).
    Float { precision: Option<u32>, scale: Option<u32> },
    Double { precision: Option<u32>, scale: Option<u32> },
    Bit(Option<u32>),
    Char(Option<u32>),
    VarChar(Option<u32>),
    /// TEXT and TEXT(n).
    Text(Option<u32>),
    TinyText,
    MediumText,
    LongText,
    Binary(Option<u32>),
    VarBinary(Option<u32>),
    Blob(Option<u32>),
    TinyBlob,
    MediumBlob,
    LongBlob,
    Date,
    DateTime(u32),
    Timestamp(u32),
    Time(u32),
    Year,
    Enum(Vec<String>),
    Set(Vec<String>),
    Json,
    /// GEOMETRY and its kinds.
    Geometry(highkey_types::Shape),
    /// A type that MySQL has and we do not (VECTOR): upper-case name, answered by 1235.
    Unsupported(String),
}

/// DEFAULT of a column.
#[derive(Debug, Clone)]
pub enum ColumnDefault {
    /// A literal (sign applied), including NULL.
    Literal(Expr),
    /// CURRENT_TIMESTAMP[(fsp)] and its synonyms.
    CurrentTimestamp(u32),
    /// (expression).
    Expr(ExprText),
}

/// GENERATED ALWAYS AS (…).
#[derive(Debug, Clone)]
pub struct Generated {
    /// The expression.
    pub expr: ExprText,
    /// STORED.
    pub stored: bool,
}

/// A column definition.
#[derive(Debug, Clone)]
pub struct ColumnDef {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: DataType,
    /// NULL (Some(true)), NOT NULL (Some(false)) or neither.
    pub nullable: Option<bool>,
    /// DEFAULT.
    pub default: Option<ColumnDefault>,
    /// ON UPDATE CURRENT_TIMESTAMP[(fsp)].
    pub on_update: Option<u32>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// INVISIBLE (Some(true)) or VISIBLE.
    pub invisible: Option<bool>,
    /// GENERATED ALWAYS AS.
    pub generated: Option<Generated>,
    /// UNIQUE [KEY].
    pub unique: bool,
    /// [PRIMARY] KEY.
    pub primary: bool,
    /// COMMENT.
    pub comment: Option<String>,
    /// CHECK constraints written with the column.
    pub checks: Vec<CheckDef>,
}

/// A CHECK constraint.
#[derive(Debug, Clone)]
pub struct CheckDef {
    /// CONSTRAINT name.
    pub name: Option<String>,
    /// The condition.
    pub expr: ExprText,
    /// NOT ENFORCED is false.
    pub enforced: bool,
}

/// A part of an index.
#[derive(Debug, Clone)]
pub struct IndexPart {
    /// Column or expression.
    pub key: IndexKey,
    /// Prefix length: characters of a string, bytes of a binary column.
    pub prefix: Option<u32>,
    /// DESC.
    pub desc: bool,
}

/// What an index part indexes.
#[derive(Debug, Clone)]
pub enum IndexKey {
    /// A column.
    Column(String),
    /// (expression): a functional key part.
    Expr,
}

/// Kinds of index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexKind {
    Primary,
    Unique,
    Ordinary,
    FullText,
    Spatial,
}

/// An index definition.
#[derive(Debug, Clone)]
pub struct IndexDef {
    /// Kind.
    pub kind: IndexKind,
    /// Name, if given (CONSTRAINT name counts for PRIMARY and UNIQUE).
    pub name: Option<String>,
    /// Parts.
    pub parts: Vec<IndexPart>,
    /// INVISIBLE.
    pub invisible: bool,
    /// Stands for the index that a foreign key needs if there is no other: made by itself.
    pub generated: bool,
    /// COMMENT.
    pub comment: Option<String>,
    /// USING BTREE | HASH, in upper case.
    pub using: Option<String>,
    /// WITH PARSER ngram.
    pub ngram: bool,
}

/// A FOREIGN KEY. MATCH is read and means nothing, as in MySQL.
#[derive(Debug, Clone)]
pub struct ForeignKeyDef {
    /// CONSTRAINT name.
    pub name: Option<String>,
    /// The name between KEY and the columns: of the index that is made for it, and its own if it has no other one (until MySQL 8.0.15).
    pub index_name: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
    /// The referenced table.
    pub parent: ObjectName,
    /// Its columns; empty if not written.
    pub parent_columns: Vec<String>,
    /// ON DELETE.
    pub on_delete: ReferenceAction,
    /// ON UPDATE.
    pub on_update: ReferenceAction,
    /// How many indexes were written as elements before it.
    pub position: usize,
}

/// What follows ON DELETE and ON UPDATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ReferenceAction {
    /// As `Restrict`, and what is meant when nothing is written.
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    /// Read, and refused by the session.
    SetDefault,
}

/// Options of a table, as written; unknown ones are error 1064 or 1235 already in the parser.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// ENGINE.
    pub engine: Option<String>,
    /// [DEFAULT] CHARACTER SET.
    pub charset: Option<String>,
    /// [DEFAULT] COLLATE.
    pub collation: Option<String>,
    /// AUTO_INCREMENT.
    pub auto_increment: Option<u64>,
    /// COMMENT.
    pub comment: Option<String>,
    /// ROW_FORMAT in upper case.
    pub row_format: Option<String>,
    /// Everything else that MySQL accepts (KEY_BLOCK_SIZE, STATS_…, CONNECTION …): name in upper case and value.
    pub other: Vec<(String, String)>,
}

/// CREATE TABLE.
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Name.
    pub name: ObjectName,
    /// LIKE other; then everything below is empty.
    pub like: Option<ObjectName>,
    /// Columns.
    pub columns: Vec<ColumnDef>,
    /// Indexes written as separate elements.
    pub indexes: Vec<IndexDef>,
    /// CHECK written as separate elements.
    pub checks: Vec<CheckDef>,
    /// FOREIGN KEY elements.
    pub foreign_keys: Vec<ForeignKeyDef>,
    /// Table options.
    pub options: TableOptions,
    /// PARTITION BY.
    pub partition_by: Option<PartitionBy>,
    /// IGNORE or REPLACE before AS SELECT.
    pub select_duplicates: Option<super::LoadDuplicates>,
    /// AS SELECT.
    pub select: Option<Box<Query>>,
}

/// PARTITION BY.
#[derive(Debug, Clone)]
pub struct PartitionBy {
    /// RANGE, LIST, HASH or KEY, of what.
    pub method: PartitionMethod,
    /// PARTITIONS n.
    pub count: Option<u64>,
    /// The partitions written one by one.
    pub partitions: Option<Vec<PartitionDef>>,
}

/// What decides about a row's partition.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum PartitionMethod {
    Range(Expr),
    List(Expr),
    RangeColumns(Vec<String>),
    ListColumns(Vec<String>),
    Hash { expr: Expr, linear: bool },
    Key { columns: Vec<String>, linear: bool, algorithm: Option<u64> },
}

/// PARTITION name …
#[derive(Debug, Clone)]
pub struct PartitionDef {
    /// Name.
    pub name: String,
    /// VALUES.
    pub values: PartitionValues,
    /// COMMENT.
    pub comment: Option<String>,
    /// ENGINE.
    pub engine: Option<String>,
}

/// VALUES of a partition.
#[derive(Debug, Clone)]
pub enum PartitionValues {
    /// None are written.
    Unwritten,
    /// LESS THAN MAXVALUE, without parentheses.
    LessThanMax,
    /// LESS THAN (…).
    LessThan(Vec<PartitionValue>),
    /// IN (…): values, or tuples of them in parentheses.
    In(Vec<Vec<PartitionValue>>),
}

/// A value in VALUES.
#[derive(Debug, Clone)]
pub enum PartitionValue {
    /// MAXVALUE.
    MaxValue,
    /// An expression and its text.
    Expr(ExprText),
}

/// What ALTER TABLE does with single partitions. Names are `None` for ALL.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum PartitionAction {
    Add { count: Option<u64>, partitions: Vec<PartitionDef> },
    Drop(Vec<String>),
    Coalesce(u64),
    Reorganize { names: Vec<String>, into: Vec<PartitionDef> },
    Truncate(Option<Vec<String>>),
    Rebuild(Option<Vec<String>>),
    Exchange { partition: String, table: ObjectName, validate: bool },
    /// ANALYZE, CHECK, OPTIMIZE or REPAIR, in capitals. `local`: the binary log is not told.
    Maintain { what: &'static str, names: Option<Vec<String>>, local: bool },
}

/// DROP TABLE and DROP VIEW.
#[derive(Debug, Clone)]
pub struct DropTable {
    /// TEMPORARY.
    pub temporary: bool,
    /// VIEW instead of TABLE.
    pub view: bool,
    /// IF EXISTS.
    pub if_exists: bool,
    /// Names.
    pub names: Vec<ObjectName>,
}

/// CREATE VIEW and ALTER VIEW.
#[derive(Debug, Clone)]
pub struct CreateView {
    /// ALTER.
    pub alter: bool,
    /// OR REPLACE.
    pub replace: bool,
    /// ALGORITHM.
    pub algorithm: ViewAlgorithm,
    /// DEFINER.
    pub definer: Option<UserName>,
    /// SQL SECURITY, if given: INVOKER or DEFINER.
    pub invoker: Option<bool>,
    /// Name.
    pub name: ObjectName,
    /// The column list, if given.
    pub columns: Vec<String>,
    /// AS SELECT.
    pub query: Box<Query>,
    /// WITH … CHECK OPTION.
    pub check: CheckOption,
}

/// CREATE INDEX.
#[derive(Debug, Clone)]
pub struct CreateIndex {
    /// The index; its name is always given.
    pub index: IndexDef,
    /// The table.
    pub table: ObjectName,
    /// LOCK=, in capitals.
    pub lock: Option<String>,
}

/// Where a new or moved column goes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ColumnPosition {
    Last,
    First,
    After(String),
}

/// One action of ALTER TABLE.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum AlterAction {
    AddColumn(Box<ColumnDef>, ColumnPosition),
    DropColumn(String),
    /// MODIFY (old name = new name) and CHANGE. The position is `None` when not written: it stays.
    ChangeColumn { old: String, def: Box<ColumnDef>, position: Option<ColumnPosition> },
    RenameColumn { old: String, new: String },
    /// ALTER COLUMN c SET DEFAULT v (Some) or DROP DEFAULT (None).
    SetDefault { column: String, default: Option<ColumnDefault> },
    /// ALTER COLUMN c SET VISIBLE | INVISIBLE.
    SetVisible { column: String, visible: bool },
    AddIndex(IndexDef),
    AddCheck(CheckDef),
    AddForeignKey(ForeignKeyDef),
    DropIndex(String),
    DropPrimaryKey,
    DropForeignKey(String),
    DropCheck(String),
    /// DROP CONSTRAINT name: of whatever kind it is.
    DropConstraint(String),
    /// ALTER CHECK name [NOT] ENFORCED.
    AlterCheck { name: String, enforced: bool },
    RenameIndex { old: String, new: String },
    AlterIndexVisible { name: String, visible: bool },
    RenameTable(ObjectName),
    /// ENGINE=, AUTO_INCREMENT=, COMMENT=, DEFAULT CHARSET= …
    Options(TableOptions),
    /// CONVERT TO CHARACTER SET … [COLLATE …].
    ConvertCharset { charset: Option<String>, collation: Option<String> },
    /// ORDER BY columns: accepted, a clustered table ignores it.
    OrderBy(Vec<String>),
    /// FORCE: rebuild.
    Force,
    /// DISABLE KEYS, ENABLE KEYS.
    EnableKeys,
    PartitionBy(Box<PartitionBy>),
    RemovePartitioning,
    /// The only action of its statement.
    Partitions(PartitionAction),
}

/// ALTER TABLE. ALGORITHM, LOCK and VALIDATION are checked and dropped.
#[derive(Debug, Clone)]
pub struct AlterTable {
    /// The table.
    pub name: ObjectName,
    /// Actions in the order written.
    pub actions: Vec<AlterAction>,
    /// ALGORITHM in upper case.
    pub algorithm: Option<String>,
    /// LOCK in upper case.
    pub lock: Option<String>,
}
