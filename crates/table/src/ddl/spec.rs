//! From what DDL asks for to a definition: names, limits, and which keys are possible.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highkey_storage::IndexId;
use highkey_types::{MySqlError, Str, TypeKind, errors};

use crate::def::{ColumnDef, IndexDef, IndexKind, IndexPart, IndexSpec, TableDef, TableId, TableSpec, same_name};
use crate::error;
use crate::full_text::WordRules;
use crate::partition::{self, Chooser, Partitioning};

/// Limits of InnoDB.
const COLUMNS_MAX: usize = 1017;
const INDEXES_MAX: usize = 64;
const PARTS_MAX: usize = 16;
const KEY_BYTES_MAX: u64 = 3072;
const ROW_BYTES_MAX: u64 = 65_535;
const NAME_CHARS_MAX: usize = 64;

/// Stands in a definition whose trees have not been made yet.
pub(crate) const NO_TREE: IndexId = IndexId(0);

/// Error 1059.
pub(crate) fn check_name(name: &str) -> Result<(), MySqlError> {
    if name.chars().count() > NAME_CHARS_MAX { Err(error::name_too_long(name)) } else { Ok(()) }
}

/// The time in the catalog's unit, microseconds.
pub(crate) fn now() -> SystemTime {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64);
    UNIX_EPOCH + Duration::from_micros(micros)
}

/// The definition that `spec` describes, with index 0 clustered and all indexes named; trees and id are still to come.
pub(crate) fn define(spec: &TableSpec) -> Result<TableDef, MySqlError> {
    check_name(&spec.name)?;
    let mut columns = spec.columns.clone();
    if columns.is_empty() {
        return Err(error::no_columns());
    }
    if columns.len() > COLUMNS_MAX {
        return Err(error::too_many_columns());
    }
    for (at, column) in columns.iter().enumerate() {
        check_name(&column.name)?;
        if columns[..at].iter().any(|c| same_name(&c.name, &column.name)) {
            return Err(error::duplicate_column(&column.name));
        }
    }
    for (at, check) in spec.checks.iter().enumerate() {
        if spec.checks[..at].iter().any(|c| same_name(&c.name, &check.name)) {
            return Err(error::duplicate_check(&check.name));
        }
    }
    for index in spec.indexes.iter().filter(|i| i.kind == IndexKind::Primary) {
        for part in &index.parts {
            // A primary key makes its columns NOT NULL unless they were declared NULL, which the caller has refused.
            columns[part.column].nullable = false;
        }
    }
    check_row_size(&columns)?;
    let indexes = define_indexes(&columns, &spec.indexes)?;
    check_auto_increment(&columns, &indexes)?;
    let mut foreign_keys = spec.foreign_keys.clone();
    foreign_keys.sort_by(|a, b| a.name.cmp(&b.name));
    let mut def = TableDef {
        id: TableId(0),
        version: 1,
        schema: spec.schema.clone(),
        name: spec.name.clone(),
        columns,
        indexes,
        checks: spec.checks.clone(),
        foreign_keys,
        triggers: Vec::new(),
        collation: spec.collation,
        comment: spec.comment.clone(),
        row_format: spec.row_format.clone(),
        partitioning: None,
        created_at: now(),
    };
    if let Some(partitioning) = &spec.partitioning {
        set_partitioning(&mut def, partitioning.clone())?;
    }
    Ok(def)
}

/// Gives the definition these partitions. Errors 1054, 1178, 1488, 1493, 1495, 1503, 1506.
pub(crate) fn set_partitioning(def: &mut TableDef, partitioning: Partitioning) -> Result<(), MySqlError> {
    // InnoDB's partitions have no geometries.
    if def.columns.iter().any(|column| column.ty.is_geometry()) {
        return Err(errors::check_not_implemented("GEOMETRY"));
    }
    partitioning.check(def)?;
    Chooser::new(def, &partitioning)?;
    def.indexes.iter_mut().for_each(|index| index.id = partition::NO_TREE);
    def.partitioning = Some(partitioning);
    Ok(())
}

fn define_indexes(columns: &[ColumnDef], specs: &[IndexSpec]) -> Result<Vec<IndexDef>, MySqlError> {
    if specs.len() > INDEXES_MAX {
        return Err(error::too_many_indexes(INDEXES_MAX));
    }
    let mut clustered = None;
    let mut unique = Vec::new();
    let mut ordinary = Vec::new();
    let mut full_text = Vec::new();
    let mut taken: Vec<Str> = specs.iter().filter(|s| s.kind != IndexKind::Primary).filter_map(|s| s.name.clone()).collect();
    for (at, name) in taken.iter().enumerate() {
        if same_name(name, "PRIMARY") || name.is_empty() {
            return Err(error::wrong_index_name(name));
        }
        check_name(name)?;
        if taken[..at].iter().any(|n| same_name(n, name)) {
            return Err(error::duplicate_index(name));
        }
    }
    for spec in specs {
        check_parts(columns, spec)?;
        let name = match (&spec.name, spec.kind) {
            (_, IndexKind::Primary) => "PRIMARY".into(),
            (Some(name), _) => name.clone(),
            (None, _) => {
                let name = free_name(&columns[spec.parts[0].column].name, &taken);
                taken.push(name.clone());
                name
            }
        };
        let def = IndexDef {
            id: NO_TREE,
            name,
            kind: spec.kind,
            parts: spec.parts.clone(),
            invisible: spec.invisible,
            generated: spec.generated,
            comment: spec.comment.clone(),
            words: spec.words.clone(),
        };
        match spec.kind {
            IndexKind::Primary if clustered.is_some() => return Err(error::multiple_primary_keys()),
            IndexKind::Primary if spec.invisible => return Err(error::invisible_primary_key()),
            IndexKind::Primary => clustered = Some(def),
            IndexKind::Unique => unique.push(def),
            IndexKind::FullText => full_text.push(def),
            _ => ordinary.push(def),
        }
    }
    let clustered = clustered.unwrap_or_else(|| IndexDef {
        id: NO_TREE,
        name: "GEN_CLUST_INDEX".into(),
        kind: IndexKind::RowId,
        parts: Vec::new(),
        invisible: false,
        generated: false,
        comment: "".into(),
        words: WordRules::usual(),
    });
    // MySQL's order: unique keys without NULL, unique keys, the others, those of words.
    let nullable = |def: &IndexDef| def.parts.iter().any(|p| columns[p.column].nullable);
    unique.sort_by_key(nullable);
    let mut indexes = [vec![clustered], unique, ordinary, full_text].concat();
    while let Some(at) = needless(&indexes) {
        indexes.remove(at);
    }
    Ok(indexes)
}

/// An index made for a foreign key that another index starts with; of two that are alike the first.
fn needless(indexes: &[IndexDef]) -> Option<usize> {
    (0..indexes.len()).find(|&at| {
        let starts = |other: &IndexDef| other.kind != IndexKind::FullText && other.parts.starts_with(&indexes[at].parts);
        let alike = |other: usize| indexes[other].generated && indexes[other].parts == indexes[at].parts && other < at;
        indexes[at].generated && (0..indexes.len()).any(|other| other != at && starts(&indexes[other]) && !alike(other))
    })
}

/// `column`, or `column_2`, `column_3` …
fn free_name(column: &str, taken: &[Str]) -> Str {
    let is_taken = |name: &str| same_name(name, "PRIMARY") || taken.iter().any(|t| same_name(t, name));
    if !is_taken(column) {
        return column.into();
    }
    (2..).map(|n| format!("{column}_{n}")).find(|name| !is_taken(name)).expect("there are numbers enough").into()
}

fn check_parts(columns: &[ColumnDef], spec: &IndexSpec) -> Result<(), MySqlError> {
    if spec.parts.len() > PARTS_MAX {
        return Err(error::too_many_parts(PARTS_MAX));
    }
    let mut bytes = 0;
    for (at, part) in spec.parts.iter().enumerate() {
        let column = &columns[part.column];
        if spec.parts[..at].iter().any(|p| p.column == part.column) {
            return Err(error::duplicate_column(&column.name));
        }
        if spec.kind == IndexKind::FullText {
            check_words(column, &columns[spec.parts[0].column])?;
            continue;
        }
        bytes += part_bytes(column, part)?;
    }
    if bytes > KEY_BYTES_MAX {
        return Err(error::key_too_long(KEY_BYTES_MAX as usize));
    }
    Ok(())
}

/// Error 1283 for a column of a FULLTEXT index that has no words, or whose words compare otherwise than those of its first column.
fn check_words(column: &ColumnDef, first: &ColumnDef) -> Result<(), MySqlError> {
    if column.ty.is_text() && column.ty.collation == first.ty.collation { Ok(()) } else { Err(errors::bad_ft_column(&column.name)) }
}

/// The most bytes of the column that the key holds.
fn part_bytes(column: &ColumnDef, part: &IndexPart) -> Result<u64, MySqlError> {
    let ty = &column.ty;
    if ty.kind == TypeKind::Json {
        return Err(error::json_key(&column.name));
    }
    let Some(prefix) = part.prefix else {
        return if ty.is_blob() { Err(error::blob_key_without_length(&column.name)) } else { Ok(ty.max_bytes()) };
    };
    if !(ty.is_text() || ty.is_binary()) || prefix == 0 {
        return Err(error::wrong_prefix());
    }
    let width = if ty.is_text() { ty.charset().max_bytes() as u64 } else { 1 };
    let bytes = u64::from(prefix) * width;
    if bytes > ty.max_bytes() && !ty.is_blob() {
        return Err(error::wrong_prefix());
    }
    Ok(bytes)
}

/// MySQL's limit on a row without its BLOB and TEXT columns. Error 1118.
fn check_row_size(columns: &[ColumnDef]) -> Result<(), MySqlError> {
    let bytes: u64 = columns
        .iter()
        .map(|c| match c.ty.kind {
            _ if c.ty.is_blob() => 12,
            TypeKind::VarChar(_) | TypeKind::VarBinary(_) => c.ty.max_bytes() + 2,
            _ => c.ty.max_bytes(),
        })
        .sum();
    if bytes > ROW_BYTES_MAX {
        let cause = highkey_storage::Error::TooLarge { what: "row", size: bytes as usize, max: ROW_BYTES_MAX as usize };
        return Err(error::storage(cause, ""));
    }
    Ok(())
}

fn check_auto_increment(columns: &[ColumnDef], indexes: &[IndexDef]) -> Result<(), MySqlError> {
    let mut auto = columns.iter().enumerate().filter(|(_, c)| c.auto_increment);
    let Some((at, column)) = auto.next() else { return Ok(()) };
    if auto.next().is_some() {
        return Err(error::wrong_auto_key());
    }
    if !(column.ty.is_integer() || column.ty.is_real()) {
        return Err(error::wrong_auto_column(&column.name));
    }
    if !indexes.iter().any(|i| i.parts.first().is_some_and(|p| p.column == at)) {
        return Err(error::wrong_auto_key());
    }
    Ok(())
}
