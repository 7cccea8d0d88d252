//! Partitioned tables: one set of trees for each partition, and which of them a row belongs to.
//!
//! A partitioned table ([`Table`](crate::Table)) has no trees of its own; each of its partitions is a table of the same definition with trees
//! of its own. As every unique key names all columns that decide about the partition (error 1503), what is unique in its partition is unique.

mod expr;
mod rows;
mod scan;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use highkey_storage::IndexId;
use highkey_types::{KeyPart, MySqlError, Str, Value, encode_key_part};

pub use expr::{PartitionArgument, PartitionCall, PartitionExpr, PartitionOperator};
pub use scan::{PartsLocking, PartsScan};

use crate::def::{IndexKind, TableDef, same_name};
use crate::error;
use crate::index::IndexCodec;
use crate::scan::KeyRange;
use crate::table::Table;

/// How a table is cut into partitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    pub method: PartitionMethod,
    pub partitions: Vec<PartitionDef>,
    /// The partitions were given as a number: they are shown so.
    pub numbered: bool,
}

/// What decides about a row's partition.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionMethod {
    /// The first partition whose limit is above the value. NULL is below everything.
    Range(PartitionExpr),
    /// The partition that lists the value.
    List(PartitionExpr),
    /// As `Range`, of a tuple of columns.
    RangeColumns(Vec<Str>),
    /// As `List`, of a tuple of columns.
    ListColumns(Vec<Str>),
    Hash { expr: PartitionExpr, linear: bool },
    /// By a hash of the columns' keys; without columns by the primary key's, or those of the first unique key without NULL. `algorithm`: as written.
    Key { columns: Vec<Str>, linear: bool, algorithm: Option<u8> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionDef {
    pub name: Str,
    pub comment: Str,
    pub values: PartitionValues,
    /// One for each index of the table. Empty: they have not been made yet.
    pub trees: Vec<IndexId>,
}

/// The rows of a partition.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionValues {
    /// HASH and KEY: the place among the partitions says it.
    ByPlace,
    /// RANGE. `None`: MAXVALUE.
    Below(Option<i128>),
    /// LIST. `None`: NULL.
    In(Vec<Option<i128>>),
    /// RANGE COLUMNS.
    BelowColumns(Vec<ColumnLimit>),
    /// LIST COLUMNS.
    InColumns(Vec<Vec<ColumnLimit>>),
}

/// A value of RANGE COLUMNS or LIST COLUMNS.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnLimit {
    MaxValue,
    /// Of the column's type. `text`: the literal as SHOW CREATE TABLE prints it.
    Value { value: Value, text: Str },
}

impl Partitioning {
    /// The columns that decide, as they are named; of KEY () those of the key that stands for them.
    pub fn columns(&self, def: &TableDef) -> Vec<Str> {
        match &self.method {
            PartitionMethod::Range(expr) | PartitionMethod::List(expr) | PartitionMethod::Hash { expr, .. } => {
                let mut columns: Vec<Str> = Vec::new();
                expr.each_column(&mut |name: &String| {
                    if !columns.iter().any(|known| same_name(known, name)) {
                        columns.push(name.as_str().into());
                    }
                });
                columns
            }
            PartitionMethod::RangeColumns(columns) | PartitionMethod::ListColumns(columns) => columns.clone(),
            PartitionMethod::Key { columns, .. } if !columns.is_empty() => columns.clone(),
            PartitionMethod::Key { .. } => {
                let whole = |index: &&crate::def::IndexDef| {
                    index.kind == IndexKind::Primary || index.kind == IndexKind::Unique && index.parts.iter().all(|part| !def.columns[part.column].nullable)
                };
                let parts = def.indexes.iter().find(whole).map_or(&[][..], |index| index.parts.as_slice());
                parts.iter().map(|part| def.columns[part.column].name.clone()).collect()
            }
        }
    }

    /// Position of a partition by its name, which compares without case.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.partitions.iter().position(|partition| same_name(&partition.name, name))
    }

    /// RANGE or LIST, by expression or by columns: partitions can be dropped and reorganised one by one.
    pub fn lists_values(&self) -> bool {
        !matches!(self.method, PartitionMethod::Hash { .. } | PartitionMethod::Key { .. })
    }

    /// `RANGE`, `LINEAR HASH` …, as information_schema names it.
    pub fn method_name(&self) -> &'static str {
        match &self.method {
            PartitionMethod::Range(_) => "RANGE",
            PartitionMethod::List(_) => "LIST",
            PartitionMethod::RangeColumns(_) => "RANGE COLUMNS",
            PartitionMethod::ListColumns(_) => "LIST COLUMNS",
            PartitionMethod::Hash { linear: false, .. } => "HASH",
            PartitionMethod::Hash { .. } => "LINEAR HASH",
            PartitionMethod::Key { linear: false, .. } => "KEY",
            PartitionMethod::Key { .. } => "LINEAR KEY",
        }
    }

    /// The definition is one that a table can have: the columns are there, in every unique key, and no foreign key or FULLTEXT index is. Errors 1054, 1214, 1488, 1503, 1506.
    pub(crate) fn check(&self, def: &TableDef) -> Result<(), MySqlError> {
        let columns = self.columns(def);
        for name in &columns {
            if def.column(name).is_none() {
                return Err(error::unknown_partition_column(name));
            }
        }
        if columns.is_empty() {
            return Err(error::no_partition_columns());
        }
        for index in def.indexes.iter().filter(|index| index.is_unique()) {
            let has = |name: &Str| index.parts.iter().any(|part| part.prefix.is_none() && same_name(&def.columns[part.column].name, name));
            if !columns.iter().all(has) {
                let what = if index.kind == IndexKind::Primary { "PRIMARY KEY" } else { "UNIQUE INDEX" };
                return Err(highkey_types::errors::unique_key_need_all_fields_in_pf(what));
            }
        }
        if !def.foreign_keys.is_empty() {
            return Err(highkey_types::errors::foreign_key_on_partitioned());
        }
        if def.indexes.iter().any(|index| index.kind == IndexKind::FullText) {
            return Err(highkey_types::errors::table_cant_handle_ft());
        }
        Ok(())
    }
}

impl PartitionValues {
    /// What stands between the parentheses of VALUES; `None` where there is none.
    pub fn description(&self) -> Option<String> {
        let tuple = |limits: &[ColumnLimit]| limits.iter().map(ColumnLimit::text).collect::<Vec<_>>().join(",");
        let number = |value: &Option<i128>| value.map_or_else(|| "NULL".to_owned(), |value| value.to_string());
        match self {
            PartitionValues::ByPlace => None,
            PartitionValues::Below(None) => Some("MAXVALUE".into()),
            PartitionValues::Below(Some(limit)) => Some(limit.to_string()),
            PartitionValues::In(values) => {
                // As in MySQL NULL comes first.
                let (nulls, others): (Vec<&Option<i128>>, Vec<_>) = values.iter().partition(|value| value.is_none());
                Some(nulls.into_iter().chain(others).map(number).collect::<Vec<_>>().join(","))
            }
            PartitionValues::BelowColumns(limits) => Some(tuple(limits)),
            PartitionValues::InColumns(tuples) => {
                let texts: Vec<String> = tuples.iter().map(|limits| if limits.len() == 1 { tuple(limits) } else { format!("({})", tuple(limits)) }).collect();
                Some(texts.join(","))
            }
        }
    }
}

impl ColumnLimit {
    fn text(&self) -> &str {
        match self {
            ColumnLimit::MaxValue => "MAXVALUE",
            ColumnLimit::Value { text, .. } => text,
        }
    }
}

/// The partition of a row, by a definition whose columns are found.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    /// Positions of the columns that decide.
    columns: Vec<usize>,
    width: usize,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Upper limits, ascending.
    Range(PartitionExpr<usize>, Vec<Option<i128>>),
    List(PartitionExpr<usize>, HashMap<Option<i128>, usize>),
    RangeColumns(Vec<KeyPart>, Vec<TupleLimit>),
    ListColumns(Vec<KeyPart>, HashMap<Vec<u8>, usize>),
    Hash { expr: PartitionExpr<usize>, count: usize, linear: bool },
    Key { parts: Vec<KeyPart>, count: usize, linear: bool },
}

/// The key of the values before MAXVALUE, or of all.
#[derive(Clone, Debug)]
struct TupleLimit {
    key: Vec<u8>,
    max: bool,
}

impl TupleLimit {
    fn is_above(&self, key: &[u8]) -> bool {
        key < self.key.as_slice() || self.max && key.starts_with(&self.key)
    }

    fn compare(&self, other: &TupleLimit) -> Ordering {
        match (self.max && other.key.starts_with(&self.key), other.max && self.key.starts_with(&other.key)) {
            (true, true) => other.key.len().cmp(&self.key.len()),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.key.cmp(&other.key),
        }
    }
}

impl Chooser {
    /// Errors 1054, and 1493, 1495 for values that are not in order or there twice.
    pub(crate) fn new(def: &TableDef, partitioning: &Partitioning) -> Result<Chooser, MySqlError> {
        let position = |name: &str| def.column(name).ok_or_else(|| error::unknown_partition_column(name));
        let columns = partitioning.columns(def).iter().map(|name| position(name)).collect::<Result<Vec<_>, _>>()?;
        let parts = || columns.iter().map(|&column| KeyPart { ty: def.columns[column].ty.clone(), descending: false, prefix: None, nullable: true }).collect();
        let count = partitioning.partitions.len();
        let values = partitioning.partitions.iter().map(|partition| &partition.values);
        let rule = match &partitioning.method {
            PartitionMethod::Range(expr) => {
                let limits: Vec<Option<i128>> = values.map(|values| if let PartitionValues::Below(limit) = values { *limit } else { None }).collect();
                let ascending = |pair: &[Option<i128>]| pair[0].is_some_and(|low| pair[1].is_none_or(|high| low < high));
                if !limits.windows(2).all(ascending) {
                    return Err(highkey_types::errors::range_not_increasing_error());
                }
                Rule::Range(expr.resolve(&position)?, limits)
            }
            PartitionMethod::List(expr) => {
                let mut places = HashMap::new();
                for (at, values) in values.enumerate() {
                    let PartitionValues::In(values) = values else { continue };
                    for value in values {
                        if places.insert(*value, at).is_some() {
                            return Err(error::repeated_list_value());
                        }
                    }
                }
                Rule::List(expr.resolve(&position)?, places)
            }
            PartitionMethod::RangeColumns(_) => {
                let parts: Vec<KeyPart> = parts();
                let limits: Vec<TupleLimit> = values.map(|values| if let PartitionValues::BelowColumns(limits) = values { tuple_limit(&parts, limits) } else { tuple_limit(&parts, &[]) }).collect();
                if !limits.windows(2).all(|pair| pair[0].compare(&pair[1]) == Ordering::Less) {
                    return Err(highkey_types::errors::range_not_increasing_error());
                }
                Rule::RangeColumns(parts, limits)
            }
            PartitionMethod::ListColumns(_) => {
                let parts: Vec<KeyPart> = parts();
                let mut places = HashMap::new();
                for (at, values) in values.enumerate() {
                    let PartitionValues::InColumns(tuples) = values else { continue };
                    for tuple in tuples {
                        if places.insert(tuple_limit(&parts, tuple).key, at).is_some() {
                            return Err(error::repeated_list_value());
                        }
                    }
                }
                Rule::ListColumns(parts, places)
            }
            PartitionMethod::Hash { expr, linear } => Rule::Hash { expr: expr.resolve(&position)?, count, linear: *linear },
            PartitionMethod::Key { linear, .. } => Rule::Key { parts: parts(), count, linear: *linear },
        };
        Ok(Chooser { columns, width: def.columns.len(), rule })
    }

    /// The partition of a row. Errors 1526, 1690.
    pub(crate) fn partition_of(&self, row: &[Value]) -> Result<usize, MySqlError> {
        match &self.rule {
            Rule::Range(expr, limits) => {
                let value = expr.eval(row)?;
                range_place(limits, value).ok_or_else(|| error::no_partition(&number_text(value)))
            }
            Rule::List(expr, places) => {
                let value = expr.eval(row)?;
                places.get(&value).copied().ok_or_else(|| error::no_partition(&number_text(value)))
            }
            Rule::RangeColumns(parts, limits) => {
                let key = self.tuple(parts, row);
                let at = limits.partition_point(|limit| !limit.is_above(&key));
                (at < limits.len()).then_some(at).ok_or_else(|| error::no_partition("from column_list"))
            }
            Rule::ListColumns(parts, places) => places.get(&self.tuple(parts, row)).copied().ok_or_else(|| error::no_partition("from column_list")),
            Rule::Hash { expr, count, linear } => {
                let value = expr.eval(row)?.unwrap_or(0);
                // MySQL takes a number without sign for one with it.
                Ok(if *linear { linear_place(value as u64, *count) } else { (value as i64 % *count as i64).unsigned_abs() as usize })
            }
            Rule::Key { parts, count, linear } => {
                let hash = hash(&self.tuple(parts, row));
                Ok(if *linear { linear_place(hash, *count) } else { (hash % *count as u64) as usize })
            }
        }
    }

    /// Rows with the same values in these columns are in one partition.
    pub(crate) fn is_told_by(&self, columns: &[usize]) -> bool {
        self.columns.iter().all(|column| columns.contains(column))
    }

    fn tuple(&self, parts: &[KeyPart], row: &[Value]) -> Vec<u8> {
        let mut key = Vec::new();
        self.columns.iter().zip(parts).for_each(|(&column, part)| encode_key_part(&row[column], part, &mut key));
        key
    }

    /// The partitions that rows of a range of these columns can be in, if the range tells; `None`: in any. A column whose values are cut short in the
    /// range's index is `None`. `ascending`: the order of the first one.
    pub(crate) fn of_range(&self, columns: &[Option<usize>], ascending: bool, range: &KeyRange) -> Option<Vec<usize>> {
        if let (Bound::Included(lower), Bound::Included(upper)) = (&range.lower, &range.upper) {
            let same = lower.iter().zip(upper).take_while(|(a, b)| a == b).count();
            if let Some(row) = self.row_of(columns, &lower[..same]) {
                // No partition takes the value: no row has it.
                return Some(self.partition_of(&row).into_iter().collect());
            }
        }
        // The first column of the range is the first that decides, and partitions are in its order.
        let first = (*columns.first()?)?;
        if self.columns.first() != Some(&first) || !ascending {
            return None;
        }
        // Of integers the neighbour is the bound where this one is excluded.
        let bound = |bound: &Bound<Vec<Value>>, beside: i64| match bound {
            Bound::Included(values) => values.first().cloned(),
            Bound::Excluded(values) => values.first().map(|value| match value {
                Value::Int(value) if values.len() == 1 => Value::Int(value.saturating_add(beside)),
                Value::UInt(value) if values.len() == 1 => Value::UInt(value.saturating_add_signed(beside)),
                value => value.clone(),
            }),
            Bound::Unbounded => None,
        };
        let (lower, upper) = (bound(&range.lower, 1), bound(&range.upper, -1));
        let place = |value: Value| {
            let mut row = vec![Value::Null; self.width];
            row[first] = value;
            match &self.rule {
                Rule::Range(expr, limits) if expr.is_monotonic() => {
                    let value = expr.eval(&row).ok()?;
                    // NULL of something that is not NULL (a date of zeros) is in no order.
                    (value.is_some() || row[first].is_null()).then(|| range_place(limits, value).unwrap_or(limits.len() - 1))
                }
                _ => None,
            }
        };
        match &self.rule {
            Rule::Range(expr, limits) => {
                let low = lower.map_or(Some(0), place)?;
                let high = upper.map_or(Some(limits.len() - 1), place)?;
                // As in MySQL: dates that are none have no number, wherever they lie among the others.
                let nulls = (low > 0 && expr.has_nulls()).then_some(0);
                Some(nulls.into_iter().chain(low..=high).collect())
            }
            Rule::RangeColumns(parts, limits) => {
                let encode = |value: &Value| {
                    let mut key = Vec::new();
                    encode_key_part(value, &parts[0], &mut key);
                    key
                };
                // Rows that begin with the value are in the partitions from the first whose limit is not below all of them.
                let low = lower.map_or(0, |value| {
                    let key = encode(&value);
                    limits.partition_point(|limit| !limit.is_above(&key))
                });
                let high = upper.map_or(limits.len() - 1, |value| {
                    let key = encode(&value);
                    let ends_among_them = |limit: &TupleLimit| limit.key.starts_with(&key) && !(limit.max && limit.key.len() == key.len());
                    limits.partition_point(|limit| !limit.is_above(&key) || ends_among_them(limit))
                });
                Some((low..limits.len().min(high + 1)).collect())
            }
            _ => None,
        }
    }

    /// A row with the leading values of these columns, if they are all that decides.
    pub(crate) fn row_of(&self, columns: &[Option<usize>], key: &[Value]) -> Option<Vec<Value>> {
        let mut row = vec![Value::Null; self.width];
        let mut found = 0;
        for (column, value) in columns.iter().zip(key) {
            if let Some(column) = column.filter(|column| self.columns.contains(column)) {
                row[column] = value.clone();
                found += 1;
            }
        }
        (found == self.columns.len()).then_some(row)
    }
}

/// The columns of an index whose values it has whole.
fn whole_columns(codec: &IndexCodec) -> Vec<Option<usize>> {
    codec.columns.iter().zip(&codec.parts).map(|(column, part)| part.prefix.is_none().then_some(*column)).collect()
}

fn tuple_limit(parts: &[KeyPart], limits: &[ColumnLimit]) -> TupleLimit {
    let mut key = Vec::new();
    for (part, limit) in parts.iter().zip(limits) {
        match limit {
            ColumnLimit::MaxValue => return TupleLimit { key, max: true },
            ColumnLimit::Value { value, .. } => encode_key_part(value, part, &mut key),
        }
    }
    TupleLimit { key, max: false }
}

fn range_place(limits: &[Option<i128>], value: Option<i128>) -> Option<usize> {
    let Some(value) = value else { return Some(0) };
    let at = limits.partition_point(|limit| limit.is_some_and(|limit| limit <= value));
    (at < limits.len()).then_some(at)
}

fn number_text(value: Option<i128>) -> String {
    value.map_or_else(|| "NULL".into(), |value| value.to_string())
}

/// MySQL's linear hashing: the lower bits, or one bit fewer where that partition is not there.
fn linear_place(value: u64, count: usize) -> usize {
    let mask = (count as u64).next_power_of_two() - 1;
    let place = value & mask;
    (if place >= count as u64 { value & (mask >> 1) } else { place }) as usize
}

/// FNV-1a: constant over versions, for rows stay where it has put them.
fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The partitions of a table, as tables.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) chooser: Arc<Chooser>,
    /// All of them, in order.
    pub(crate) tables: Arc<[Arc<Table>]>,
    /// Those that a statement names or may need, ascending.
    pub(crate) selected: Arc<[usize]>,
    /// The statement names them: rows of others are an error (1748).
    pub(crate) named: bool,
}

impl Parts {
    pub(crate) fn selected(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.selected.iter().map(|&at| &self.tables[at])
    }

    pub(crate) fn is_selected(&self, at: usize) -> bool {
        self.selected.binary_search(&at).is_ok()
    }

    /// The partition that takes a new row. Errors 1526, 1690, 1748.
    pub(crate) fn for_new(&self, row: &[Value]) -> Result<&Arc<Table>, MySqlError> {
        let at = self.chooser.partition_of(row)?;
        if self.named && !self.is_selected(at) {
            return Err(error::row_outside_partitions());
        }
        Ok(&self.tables[at])
    }

    /// Those of the selected ones in which a whole unique key can be.
    pub(crate) fn with_key(&self, table: &Table, index: usize, key: &[Value]) -> Vec<Arc<Table>> {
        match self.chooser.row_of(&whole_columns(&table.indexes[index]), key).map(|row| self.chooser.partition_of(&row)) {
            Some(found) => found.ok().filter(|at| self.is_selected(*at)).map(|at| self.tables[at].clone()).into_iter().collect(),
            None => self.selected().cloned().collect(),
        }
    }

    /// Those of the selected ones in which rows of a range can be.
    pub(crate) fn with_range(&self, table: &Table, index: usize, range: &KeyRange) -> Vec<Arc<Table>> {
        let codec = &table.indexes[index];
        let ascending = codec.parts.first().is_some_and(|part| !part.descending);
        match self.chooser.of_range(&whole_columns(codec), ascending, range) {
            Some(places) => places.into_iter().filter(|at| self.is_selected(*at)).map(|at| self.tables[at].clone()).collect(),
            None => self.selected().cloned().collect(),
        }
    }
}

/// The definitions of the partitions, in order, as those of tables with their trees; none of a table without.
pub(crate) fn part_defs(def: &TableDef) -> Vec<TableDef> {
    let Some(partitioning) = &def.partitioning else { return Vec::new() };
    let bare = TableDef { partitioning: None, ..def.clone() };
    let part = |partition: &PartitionDef| {
        let mut part = bare.clone();
        for (at, index) in part.indexes.iter_mut().enumerate() {
            index.id = partition.trees.get(at).copied().unwrap_or(NO_TREE);
        }
        part
    };
    partitioning.partitions.iter().map(part).collect()
}

/// Stands for the trees of a partitioned table, which has none of its own: the storage engine knows no such tree.
pub(crate) const NO_TREE: IndexId = IndexId(u32::MAX);

#[cfg(test)]
mod tests;
