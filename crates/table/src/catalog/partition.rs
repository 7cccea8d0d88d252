//! Partitions as part of a table's record, and back.

use highkey_storage::IndexId;
use highkey_types::ColumnType;
use serde::{Deserialize, Serialize};

use super::record::{hex_value, value_hex};
use crate::def::TableDef;
use crate::partition::{ColumnLimit, PartitionDef, PartitionExpr, PartitionMethod, PartitionValues, Partitioning};

#[derive(Serialize, Deserialize)]
pub(super) struct PartitioningRecord {
    method: MethodRecord,
    partitions: Vec<PartitionRecord>,
    numbered: bool,
}

#[derive(Serialize, Deserialize)]
enum MethodRecord {
    Range(PartitionExpr),
    List(PartitionExpr),
    RangeColumns(Vec<String>),
    ListColumns(Vec<String>),
    Hash(PartitionExpr, bool),
    Key(Vec<String>, bool, Option<u8>),
}

#[derive(Serialize, Deserialize)]
struct PartitionRecord {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    comment: String,
    values: ValuesRecord,
    trees: Vec<u32>,
}

/// Numbers are decimal texts: they may be beyond 64 bits with sign.
#[derive(Serialize, Deserialize)]
enum ValuesRecord {
    ByPlace,
    Below(Option<String>),
    In(Vec<Option<String>>),
    BelowColumns(Vec<LimitRecord>),
    InColumns(Vec<Vec<LimitRecord>>),
}

/// The value in hexadecimal and its text; `None`: MAXVALUE.
type LimitRecord = Option<(String, String)>;

pub(super) fn record(def: &TableDef, partitioning: &Partitioning) -> PartitioningRecord {
    let names = |columns: &[highkey_types::Str]| columns.iter().map(ToString::to_string).collect::<Vec<_>>();
    let method = match &partitioning.method {
        PartitionMethod::Range(expr) => MethodRecord::Range(expr.clone()),
        PartitionMethod::List(expr) => MethodRecord::List(expr.clone()),
        PartitionMethod::RangeColumns(columns) => MethodRecord::RangeColumns(names(columns)),
        PartitionMethod::ListColumns(columns) => MethodRecord::ListColumns(names(columns)),
        PartitionMethod::Hash { expr, linear } => MethodRecord::Hash(expr.clone(), *linear),
        PartitionMethod::Key { columns, linear, algorithm } => MethodRecord::Key(names(columns), *linear, *algorithm),
    };
    let types = column_types(def, partitioning);
    let limits = |limits: &[ColumnLimit]| {
        let one = |(limit, ty): (&ColumnLimit, &ColumnType)| match limit {
            ColumnLimit::MaxValue => None,
            ColumnLimit::Value { value, text } => Some((value_hex(value, ty), text.to_string())),
        };
        limits.iter().zip(&types).map(one).collect::<Vec<LimitRecord>>()
    };
    let number = |value: &i128| value.to_string();
    let partition = |partition: &PartitionDef| PartitionRecord {
        name: partition.name.to_string(),
        comment: partition.comment.to_string(),
        values: match &partition.values {
            PartitionValues::ByPlace => ValuesRecord::ByPlace,
            PartitionValues::Below(limit) => ValuesRecord::Below(limit.as_ref().map(number)),
            PartitionValues::In(values) => ValuesRecord::In(values.iter().map(|value| value.as_ref().map(number)).collect()),
            PartitionValues::BelowColumns(tuple) => ValuesRecord::BelowColumns(limits(tuple)),
            PartitionValues::InColumns(tuples) => ValuesRecord::InColumns(tuples.iter().map(|tuple| limits(tuple)).collect()),
        },
        trees: partition.trees.iter().map(|tree| tree.0).collect(),
    };
    PartitioningRecord { method, partitions: partitioning.partitions.iter().map(partition).collect(), numbered: partitioning.numbered }
}

/// What [`record`] made of partitions of the table; `None` if it is nothing of that kind.
pub(super) fn partitioning(def: &TableDef, record: PartitioningRecord) -> Option<Partitioning> {
    let names = |columns: Vec<String>| columns.into_iter().map(Into::into).collect();
    let method = match record.method {
        MethodRecord::Range(expr) => PartitionMethod::Range(expr),
        MethodRecord::List(expr) => PartitionMethod::List(expr),
        MethodRecord::RangeColumns(columns) => PartitionMethod::RangeColumns(names(columns)),
        MethodRecord::ListColumns(columns) => PartitionMethod::ListColumns(names(columns)),
        MethodRecord::Hash(expr, linear) => PartitionMethod::Hash { expr, linear },
        MethodRecord::Key(columns, linear, algorithm) => PartitionMethod::Key { columns: names(columns), linear, algorithm },
    };
    let mut found = Partitioning { method, partitions: Vec::new(), numbered: record.numbered };
    let types = column_types(def, &found);
    let limits = |limits: Vec<LimitRecord>| {
        if limits.len() != types.len() {
            return None;
        }
        let one = |(limit, ty): (LimitRecord, &ColumnType)| {
            Some(match limit {
                None => ColumnLimit::MaxValue,
                Some((hex, text)) => ColumnLimit::Value { value: hex_value(&hex, ty)?, text: text.into() },
            })
        };
        limits.into_iter().zip(&types).map(one).collect::<Option<Vec<_>>>()
    };
    let number = |number: Option<String>| number.map_or(Some(None), |number| number.parse::<i128>().ok().map(Some));
    for partition in record.partitions {
        let values = match partition.values {
            ValuesRecord::ByPlace => PartitionValues::ByPlace,
            ValuesRecord::Below(limit) => PartitionValues::Below(number(limit)?),
            ValuesRecord::In(values) => PartitionValues::In(values.into_iter().map(number).collect::<Option<_>>()?),
            ValuesRecord::BelowColumns(tuple) => PartitionValues::BelowColumns(limits(tuple)?),
            ValuesRecord::InColumns(tuples) => PartitionValues::InColumns(tuples.into_iter().map(limits).collect::<Option<_>>()?),
        };
        if partition.trees.len() != def.indexes.len() {
            return None;
        }
        let trees = partition.trees.into_iter().map(IndexId).collect();
        found.partitions.push(PartitionDef { name: partition.name.into(), comment: partition.comment.into(), values, trees });
    }
    (!found.partitions.is_empty()).then_some(found)
}

/// The types of the columns that decide, nullable or not.
fn column_types(def: &TableDef, partitioning: &Partitioning) -> Vec<ColumnType> {
    partitioning.columns(def).iter().filter_map(|name| def.column(name)).map(|column| def.columns[column].ty.clone()).collect()
}
