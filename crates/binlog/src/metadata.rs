//! The optional metadata at the end of a table map (`binlog_row_metadata`): fields of type u8, length and bytes.

use std::collections::BTreeMap;

use highkey_types::{ColumnType, TypeKind};

use crate::column::{Column, primary_key};
use crate::event::push_lenenc;

/// `@@binlog_row_metadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RowMetadata {
    /// Signs of numbers, character sets and kinds of geometries.
    #[default]
    Minimal,
    /// Names, members of ENUM and SET, the primary key and visibility too.
    Full,
}

const SIGNEDNESS: u8 = 1;
const DEFAULT_CHARSET: u8 = 2;
const COLUMN_CHARSET: u8 = 3;
const COLUMN_NAME: u8 = 4;
const SET_STR_VALUE: u8 = 5;
const ENUM_STR_VALUE: u8 = 6;
const GEOMETRY_TYPE: u8 = 7;
const SIMPLE_PRIMARY_KEY: u8 = 8;
const PRIMARY_KEY_WITH_PREFIX: u8 = 9;
const ENUM_AND_SET_DEFAULT_CHARSET: u8 = 10;
const ENUM_AND_SET_COLUMN_CHARSET: u8 = 11;
const COLUMN_VISIBILITY: u8 = 12;

/// Appends the fields in MySQL's order. Those that MySQL 8.0.12 did not have (10 to 12) are skipped by older readers.
pub(crate) fn push(columns: &[Column<'_>], metadata: RowMetadata, out: &mut Vec<u8>) {
    push_signedness(columns, out);
    push_charsets(columns, is_character, [DEFAULT_CHARSET, COLUMN_CHARSET], out);
    push_shapes(columns, out);
    if metadata == RowMetadata::Full {
        push_names(columns, out);
        push_members(columns, SET_STR_VALUE, |ty| if let TypeKind::Set(members) = &ty.kind { Some(members) } else { None }, out);
        push_members(columns, ENUM_STR_VALUE, |ty| if let TypeKind::Enum(members) = &ty.kind { Some(members) } else { None }, out);
        push_charsets(columns, is_enum_or_set, [ENUM_AND_SET_DEFAULT_CHARSET, ENUM_AND_SET_COLUMN_CHARSET], out);
        push_primary_key(columns, out);
        if columns.iter().any(|column| !column.visible) {
            push_field(COLUMN_VISIBILITY, &bits(columns.iter().map(|column| column.visible)), out);
        }
    }
}

fn push_field(field: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(field);
    push_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// One bit each, the first in the highest bit.
fn bits(of: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (i, bit) in of.enumerate() {
        if i % 8 == 0 {
            bytes.push(0);
        }
        bytes[i / 8] |= u8::from(bit) << (7 - i % 8);
    }
    bytes
}

/// A bit for each number: set if it is unsigned. YEAR and BIT are no numbers here.
fn push_signedness(columns: &[Column<'_>], out: &mut Vec<u8>) {
    let is_number = |ty: &ColumnType| ty.is_number() && !matches!(ty.kind, TypeKind::Year | TypeKind::Bit(_));
    let bytes = bits(columns.iter().filter(|column| is_number(column.ty)).map(|column| column.ty.unsigned));
    if !bytes.is_empty() {
        push_field(SIGNEDNESS, &bytes, out);
    }
}

/// The kind of each column of geometries, by its number in WKB.
fn push_shapes(columns: &[Column<'_>], out: &mut Vec<u8>) {
    let shape = |column: &Column<'_>| if let TypeKind::Geometry(ty) = column.ty.kind { Some(ty.shape.code()) } else { None };
    let bytes: Vec<u8> = columns.iter().filter_map(shape).collect();
    if !bytes.is_empty() {
        push_field(GEOMETRY_TYPE, &bytes, out);
    }
}

fn is_character(ty: &ColumnType) -> bool {
    ty.is_text() || ty.is_binary() && !ty.is_geometry()
}

fn is_enum_or_set(ty: &ColumnType) -> bool {
    matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_))
}

/// The collations of the columns that `of` picks, in the shorter of two forms: the most frequent one and the exceptions, or
/// one for each column. MySQL's estimate of the lengths decides.
fn push_charsets(columns: &[Column<'_>], of: fn(&ColumnType) -> bool, [with_default, of_each]: [u8; 2], out: &mut Vec<u8>) {
    let ids: Vec<u64> = columns.iter().filter(|column| of(column.ty)).map(|column| u64::from(column.ty.collation.id)).collect();
    let mut counts = BTreeMap::new();
    ids.iter().for_each(|id| *counts.entry(*id).or_insert(0) += 1);
    // The first of those with the greatest count.
    let Some((default, count)) = counts.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best }) else {
        return;
    };
    let mut bytes = Vec::new();
    if ids.len() < 1 + (ids.len() - count) * 2 {
        ids.iter().for_each(|id| push_lenenc(&mut bytes, *id));
        return push_field(of_each, &bytes, out);
    }
    push_lenenc(&mut bytes, default);
    for (i, id) in ids.iter().enumerate().filter(|(_, id)| **id != default) {
        push_lenenc(&mut bytes, i as u64);
        push_lenenc(&mut bytes, *id);
    }
    push_field(with_default, &bytes, out);
}

fn push_names(columns: &[Column<'_>], out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    for column in columns {
        push_lenenc(&mut bytes, column.name.len() as u64);
        bytes.extend_from_slice(column.name.as_bytes());
    }
    push_field(COLUMN_NAME, &bytes, out);
}

/// The members of each column that has some, in the column's character set.
fn push_members<'c>(
    columns: &[Column<'c>],
    field: u8,
    members: impl Fn(&'c ColumnType) -> Option<&'c std::sync::Arc<[highkey_types::Str]>>,
    out: &mut Vec<u8>,
) {
    let mut bytes = Vec::new();
    for column in columns {
        let Some(members) = members(column.ty) else { continue };
        push_lenenc(&mut bytes, members.len() as u64);
        for member in members.iter() {
            let member = column.ty.charset().encode(member);
            push_lenenc(&mut bytes, member.len() as u64);
            bytes.extend_from_slice(&member);
        }
    }
    if !bytes.is_empty() {
        push_field(field, &bytes, out);
    }
}

fn push_primary_key(columns: &[Column<'_>], out: &mut Vec<u8>) {
    let key = primary_key(columns);
    let prefix_of = |column: usize| columns[column].primary_key.map_or(0, |part| part.prefix);
    let has_prefix = key.iter().any(|column| prefix_of(*column) > 0);
    let mut bytes = Vec::new();
    for column in &key {
        push_lenenc(&mut bytes, *column as u64);
        if has_prefix {
            push_lenenc(&mut bytes, u64::from(prefix_of(*column)));
        }
    }
    if !bytes.is_empty() {
        push_field(if has_prefix { PRIMARY_KEY_WITH_PREFIX } else { SIMPLE_PRIMARY_KEY }, &bytes, out);
    }
}

#[cfg(test)]
mod tests {
    use highkey_types::{GeometryType, Shape};

    use super::*;

    /// What MySQL 8.0.12 logs of (a INT, b POINT, c GEOMETRY SRID 0, d BLOB, e GEOMCOLLECTION): only the BLOB has a character set.
    #[test]
    fn kinds_of_geometries() {
        let geometry = |shape| ColumnType::new(TypeKind::Geometry(GeometryType::new(shape)));
        let types = [ColumnType::new(TypeKind::Int), geometry(Shape::Point), geometry(Shape::Geometry), ColumnType::new(TypeKind::Blob), geometry(Shape::Collection)];
        let columns: Vec<Column<'_>> = types.iter().map(|ty| Column { name: "c", ty, nullable: true, primary_key: None, visible: true }).collect();
        let mut out = Vec::new();
        push(&columns, RowMetadata::Minimal, &mut out);
        assert_eq!(out, [SIGNEDNESS, 1, 0, DEFAULT_CHARSET, 1, 63, GEOMETRY_TYPE, 3, 1, 0, 7]);
    }

    /// MySQL 8.0.12, whose logs the other fields are compared with, has no invisible columns: this is the form of 8.0.23's
    /// `Table_map_log_event::init_column_visibility_field`.
    #[test]
    fn invisible_columns() {
        let ty = ColumnType::bigint();
        let mut columns = vec![Column { name: "a", ty: &ty, nullable: false, primary_key: None, visible: true }; 9];
        let fields = |columns: &[Column<'_>], metadata| {
            let mut out = Vec::new();
            push(columns, metadata, &mut out);
            out
        };
        let before = fields(&columns, RowMetadata::Full);
        columns[1].visible = false;
        columns[8].visible = false;
        let after = fields(&columns, RowMetadata::Full);
        assert_eq!(after.strip_prefix(&before[..]), Some(&[COLUMN_VISIBILITY, 2, 0b1011_1111, 0][..]));
        assert_eq!(fields(&columns, RowMetadata::Minimal), [SIGNEDNESS, 2, 0, 0]);
    }
}
