//! Definitions: what a table is, as the catalog keeps it and as DDL asks for it.

use std::sync::Arc;
use std::time::SystemTime;

use highkey_storage::IndexId;
use highkey_types::{Collation, ColumnType, Str, Value};

use crate::full_text::WordRules;
use crate::grants::Grants;
use crate::partition::{PartitionDef, Partitioning};
use crate::trigger::TriggerDef;

/// A table's identity: constant over renames, rebuilds and truncation, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u64);

/// A committed table definition. Immutable: DDL makes a new one.
#[derive(Clone, Debug)]
pub struct TableDef {
    pub id: TableId,
    /// Counts the definitions this table has had; prepared statements compare it.
    pub version: u64,
    pub schema: Str,
    pub name: Str,
    pub columns: Vec<ColumnDef>,
    /// Index 0 is clustered: the primary key, or the hidden row id (`IndexKind::RowId`, no parts).
    pub indexes: Vec<IndexDef>,
    pub checks: Vec<CheckDef>,
    /// By name.
    pub foreign_keys: Vec<ForeignKeyDef>,
    /// Those of one event and time in the order in which they run.
    pub triggers: Vec<TriggerDef>,
    pub collation: &'static Collation,
    pub comment: Str,
    /// `ROW_FORMAT` as written; kept for SHOW CREATE TABLE, it changes nothing.
    pub row_format: Option<Str>,
    /// A partitioned table has its trees in the partitions; those of `indexes` are none.
    pub partitioning: Option<Partitioning>,
    pub created_at: SystemTime,
}

impl TableDef {
    /// Position of the column, by MySQL's rule that column names compare without case.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| same_name(&c.name, name))
    }

    /// The trees of all indexes and partitions, each with the index's position and the partition.
    pub fn trees(&self) -> Vec<(IndexId, usize, Option<&PartitionDef>)> {
        match &self.partitioning {
            None => self.indexes.iter().enumerate().map(|(at, index)| (index.id, at, None)).collect(),
            Some(partitioning) => {
                let mut trees = Vec::new();
                for partition in &partitioning.partitions {
                    trees.extend(partition.trees.iter().enumerate().map(|(at, id)| (*id, at, Some(partition))));
                }
                trees
            }
        }
    }

    /// Position of the index in `indexes`.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|i| i.kind != IndexKind::RowId && same_name(&i.name, name))
    }

    pub fn auto_increment_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| c.auto_increment)
    }

    /// Whether the column's values alone are unique: it is the only part, and whole, of a unique index.
    pub fn is_unique_alone(&self, column: usize) -> bool {
        self.indexes.iter().any(|i| i.is_unique() && i.parts.len() == 1 && i.parts[0].column == column && i.parts[0].prefix.is_none())
    }

    /// The primary key, if the table has one.
    pub fn primary_key(&self) -> Option<&IndexDef> {
        self.indexes.first().filter(|i| i.kind == IndexKind::Primary)
    }
}

#[derive(Clone, Debug)]
pub struct ColumnDef {
    pub name: Str,
    pub ty: ColumnType,
    pub nullable: bool,
    pub invisible: bool,
    /// A character set or a collation was written with it, which SHOW CREATE TABLE then names even if it is the table's.
    pub explicit_collation: bool,
    pub default: Default,
    pub on_update_now: bool,
    pub auto_increment: bool,
    /// Both kinds of generated column are stored in the row: `stored` is what SHOW CREATE TABLE prints.
    pub generated: Option<Generated>,
    pub comment: Str,
}

impl ColumnDef {
    /// A plain nullable column without default.
    pub fn new(name: &str, ty: ColumnType) -> ColumnDef {
        ColumnDef {
            name: name.into(),
            ty,
            nullable: true,
            invisible: false,
            explicit_collation: false,
            default: Default::None,
            on_update_now: false,
            auto_increment: false,
            generated: None,
            comment: "".into(),
        }
    }

    pub fn not_null(mut self) -> ColumnDef {
        self.nullable = false;
        self
    }

    pub fn auto_increment(mut self) -> ColumnDef {
        self.auto_increment = true;
        self.nullable = false;
        self
    }

    /// Whether there is no value for it where none is given.
    pub fn lacks_default(&self) -> bool {
        let none = match self.default {
            Default::None => !self.nullable,
            Default::Dropped => true,
            Default::Literal(_) | Default::Expr(_) | Default::CurrentTimestamp(_) => false,
        };
        none && !self.auto_increment && self.generated.is_none()
    }
}

/// What a column gets when INSERT does not name it.
#[derive(Clone, Debug)]
pub enum Default {
    /// NULL where that may be.
    None,
    /// Of a nullable column: DROP DEFAULT has taken NULL, too.
    Dropped,
    /// Of the column's type. `Literal(Value::Null)` is an explicit DEFAULT NULL.
    Literal(Value),
    /// SQL text, evaluated for every row.
    Expr(String),
    CurrentTimestamp(u8),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    pub expr: String,
    pub stored: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckDef {
    pub name: Str,
    /// SQL text over the table's columns.
    pub expr: String,
    pub enforced: bool,
}

/// A FOREIGN KEY: rows whose columns hold no NULL have a row of the parent table with the same values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeyDef {
    /// Unique in the schema of its table, without regard to case.
    pub name: Str,
    /// Positions in the columns of its own table.
    pub columns: Vec<usize>,
    pub parent_schema: Str,
    /// A table that need not exist: it may come later, if somebody made the foreign key without checks.
    pub parent_table: Str,
    /// As many as `columns`.
    pub parent_columns: Vec<Str>,
    pub on_delete: ReferenceAction,
    pub on_update: ReferenceAction,
}

impl ForeignKeyDef {
    pub fn is_of_parent(&self, schema: &str, table: &str) -> bool {
        &*self.parent_schema == schema && &*self.parent_table == table
    }
}

/// What becomes of the rows that reference one which is deleted, or whose referenced columns change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceAction {
    /// As `Restrict`; only information_schema tells them apart.
    NoAction,
    /// The change is refused.
    Restrict,
    /// They are deleted, or get the new values.
    Cascade,
    SetNull,
}

impl ReferenceAction {
    /// Refuses the change instead of changing the rows.
    pub fn refuses(self) -> bool {
        matches!(self, ReferenceAction::NoAction | ReferenceAction::Restrict)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// The clustered index of a table without primary key: 64-bit row ids that no column shows.
    RowId,
    Primary,
    Unique,
    Ordinary,
    /// Of the words of its columns, which have one collation: see `full_text`. Its parts have neither prefix nor direction.
    FullText,
}

#[derive(Clone, Debug)]
pub struct IndexDef {
    pub id: IndexId,
    pub name: Str,
    pub kind: IndexKind,
    pub parts: Vec<IndexPart>,
    pub invisible: bool,
    /// Made for a foreign key by itself: it goes when another index can take its place.
    pub generated: bool,
    pub comment: Str,
    /// What a FULLTEXT index was made with; the usual ones of others.
    pub words: Arc<WordRules>,
}

impl IndexDef {
    /// At most one row for each key that holds no NULL.
    pub fn is_unique(&self) -> bool {
        matches!(self.kind, IndexKind::Primary | IndexKind::Unique)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexPart {
    /// Position in `TableDef::columns`.
    pub column: usize,
    /// Characters (bytes for binary types) of the column that the key holds.
    pub prefix: Option<u32>,
    pub descending: bool,
}

impl IndexPart {
    pub fn column(column: usize) -> IndexPart {
        IndexPart { column, prefix: None, descending: false }
    }
}

/// What CREATE TABLE and ALTER TABLE ask for.
#[derive(Clone, Debug)]
pub struct TableSpec {
    pub schema: Str,
    pub name: Str,
    pub columns: Vec<ColumnDef>,
    pub indexes: Vec<IndexSpec>,
    pub checks: Vec<CheckDef>,
    /// With names, and with indexes for their columns among `indexes`.
    pub foreign_keys: Vec<ForeignKeyDef>,
    pub collation: &'static Collation,
    pub comment: Str,
    pub row_format: Option<Str>,
    /// Those of its partitions that have trees keep them.
    pub partitioning: Option<Partitioning>,
    /// `AUTO_INCREMENT=n`: the next value. None keeps the counter (ALTER) or starts at 1 (CREATE).
    pub auto_increment: Option<u64>,
}

impl TableSpec {
    pub fn new(schema: &str, name: &str, columns: Vec<ColumnDef>, indexes: Vec<IndexSpec>) -> TableSpec {
        TableSpec {
            schema: schema.into(),
            name: name.into(),
            columns,
            indexes,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            collation: Collation::by_name("utf8mb4_0900_ai_ci").expect("the default collation exists"),
            comment: "".into(),
            row_format: None,
            partitioning: None,
            auto_increment: None,
        }
    }

    /// The specification that would make a table like `def`: the start of every ALTER, and without foreign keys CREATE TABLE ... LIKE.
    pub fn like(def: &TableDef, schema: &str, name: &str) -> TableSpec {
        TableSpec {
            schema: schema.into(),
            name: name.into(),
            columns: def.columns.clone(),
            indexes: def.indexes.iter().filter(|i| i.kind != IndexKind::RowId).map(IndexSpec::from_def).collect(),
            checks: def.checks.clone(),
            foreign_keys: def.foreign_keys.clone(),
            collation: def.collation,
            comment: def.comment.clone(),
            row_format: def.row_format.clone(),
            partitioning: def.partitioning.clone(),
            auto_increment: None,
        }
    }
}

/// An index to be made. `kind` is never `RowId`: a table without primary key gets that by itself.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    /// None: named after the first column, with `_2`, `_3` … if taken. A primary key is always `PRIMARY`.
    pub name: Option<Str>,
    pub kind: IndexKind,
    pub parts: Vec<IndexPart>,
    pub invisible: bool,
    /// Wanted for a foreign key alone: not made if another index can take its place.
    pub generated: bool,
    pub comment: Str,
    /// What a FULLTEXT index is made with.
    pub words: Arc<WordRules>,
}

impl IndexSpec {
    pub fn new(kind: IndexKind, name: Option<&str>, columns: &[usize]) -> IndexSpec {
        IndexSpec {
            name: name.map(Into::into),
            kind,
            parts: columns.iter().map(|&c| IndexPart::column(c)).collect(),
            invisible: false,
            generated: false,
            comment: "".into(),
            words: WordRules::usual(),
        }
    }

    pub fn primary(columns: &[usize]) -> IndexSpec {
        IndexSpec::new(IndexKind::Primary, None, columns)
    }

    pub fn unique(name: &str, columns: &[usize]) -> IndexSpec {
        IndexSpec::new(IndexKind::Unique, Some(name), columns)
    }

    pub fn ordinary(name: &str, columns: &[usize]) -> IndexSpec {
        IndexSpec::new(IndexKind::Ordinary, Some(name), columns)
    }

    pub fn from_def(def: &IndexDef) -> IndexSpec {
        IndexSpec {
            name: Some(def.name.clone()),
            kind: def.kind,
            parts: def.parts.clone(),
            invisible: def.invisible,
            generated: def.generated,
            comment: def.comment.clone(),
            words: def.words.clone(),
        }
    }
}

/// A schema (database).
#[derive(Clone, Debug)]
pub struct SchemaDef {
    pub name: Str,
    pub collation: &'static Collation,
}

/// An account. The key is (user, host).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UserDef {
    pub user: String,
    /// `%`, `localhost`, an address or a pattern with `%` and `_`.
    pub host: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// What the plugin stores: never a password. Empty: no password.
    pub authentication_string: String,
    pub password_expired: bool,
    pub account_locked: bool,
    /// What it may do. Records from before there were grants do not say: those accounts could do everything.
    #[serde(default = "Grants::all")]
    pub grants: Grants,
}

impl UserDef {
    /// The account that a new database has: `root`@`localhost` without a password, which may do everything.
    pub fn root() -> UserDef {
        UserDef {
            user: "root".into(),
            host: "localhost".into(),
            plugin: "caching_sha2_password".into(),
            authentication_string: String::new(),
            password_expired: false,
            account_locked: false,
            grants: Grants::all(),
        }
    }
}

/// Names of columns and indexes compare without case.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}

/// Schemas that exist in every instance and hold no tables of the user.
pub const SYSTEM_SCHEMAS: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];

pub fn is_system_schema(name: &str) -> bool {
    SYSTEM_SCHEMAS.iter().any(|s| s.eq_ignore_ascii_case(name))
}
