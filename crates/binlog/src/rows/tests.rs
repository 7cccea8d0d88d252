//! How rows become events.

use highkey_types::{Collation, ColumnType, TypeKind, Value};

use super::*;
use crate::{Column, PrimaryKeyPart, RowMetadata, event};

const STAMP: Stamp = Stamp { timestamp: 5, server_id: 1 };

/// (a INT PRIMARY KEY, b INT, c TEXT)
fn table() -> TableMap {
    let int = ColumnType::new(TypeKind::Int);
    let text = ColumnType::with_collation(TypeKind::Text, Collation::utf8mb4());
    let column = |name, ty, primary_key| Column { name, ty, nullable: primary_key == None, primary_key, visible: true };
    let key = Some(PrimaryKeyPart { position: 0, prefix: 0 });
    TableMap::new(9, "d", "t", &[column("a", &int, key), column("b", &int, None), column("c", &text, None)], RowMetadata::Minimal)
}

fn row(a: i64, b: i64, c: &str) -> [Value; 3] {
    [Value::Int(a), Value::Int(b), c.into()]
}

/// Flags, columns and rows of the events.
fn bodies(out: &[u8]) -> Vec<(u16, &[u8])> {
    let events: Vec<_> = event::split(out).collect();
    assert_eq!(events.iter().map(|event| event.len()).sum::<usize>(), out.len(), "whole events");
    events.iter().map(|event| (u16::from_le_bytes([event[FLAGS_AT], event[FLAGS_AT + 1]]), &event[Header::LEN + 10..])).collect()
}

#[test]
fn statements_are_split_and_marked() {
    let (table, mut out) = (table(), vec![0xEE]);
    let all = Bitmap::all(3);
    let mut writer = RowsWriter::begin(RowsKind::Write, STAMP, rows_flags::NO_FOREIGN_KEY_CHECKS, &table, &all, &all);
    let text = "x".repeat(1_000);
    let size_of_row = 1 + 4 + 4 + 2 + 1_000;
    for i in 0..20 {
        writer.push(&row(i, 0, &text), &mut out);
    }
    let last = writer.finish(true, &mut out).unwrap();
    let out = &out[1..];
    let bodies = bodies(out);
    let head = 2;
    assert_eq!(bodies.iter().map(|(_, body)| (body.len() - head) / size_of_row).collect::<Vec<_>>(), [8, 8, 4]);
    assert_eq!(bodies.iter().map(|(flags, _)| *flags).collect::<Vec<_>>(), [2, 2, 3]);
    assert_eq!(event::split(&out[last - 1..]).count(), 1, "the last event's start");
    let firsts: Vec<_> = bodies.iter().map(|(_, body)| body[head + 1]).collect();
    assert_eq!(firsts, [0, 8, 16], "each row once and in order");
}

#[test]
fn a_long_row_is_an_event_of_its_own() {
    let (table, mut out) = (table(), Vec::new());
    let all = Bitmap::all(3);
    let mut writer = RowsWriter::begin(RowsKind::Delete, STAMP, 0, &table, &all, &all);
    for text in ["s", &"l".repeat(20_000), "s"] {
        writer.push(&row(1, 2, text), &mut out);
    }
    assert!(writer.finish(false, &mut out).is_some());
    let events: Vec<_> = bodies(&out).iter().map(|(flags, body)| (*flags, body.len() > 20_000)).collect();
    assert_eq!(events, [(0, false), (0, true), (0, false)]);
}

#[test]
fn a_statement_without_rows_writes_nothing() {
    let (table, mut out) = (table(), Vec::new());
    let all = Bitmap::all(3);
    assert_eq!(RowsWriter::begin(RowsKind::Write, STAMP, 0, &table, &all, &all).finish(true, &mut out), None);
    assert!(out.is_empty());
}

#[test]
fn minimal_updates_with_other_columns_are_other_events() {
    let (table, mut out) = (table(), Vec::new());
    let image = RowImage::Minimal;
    let (before, mut after) = (image.before(&table), Bitmap::none(3));
    let mut writer = RowsWriter::begin(RowsKind::Update, STAMP, 0, &table, &before, &after);
    let changes = [(row(1, 2, "x"), row(1, 3, "x")), (row(2, 2, "x"), row(2, 4, "x")), (row(3, 2, "x"), row(3, 2, "y"))];
    for (old, new) in &changes {
        image.after(&table, old, new, &mut after);
        writer.set_columns(&before, &after, &mut out);
        writer.push_update(old, new, &mut out);
    }
    writer.finish(true, &mut out);
    let bodies = bodies(&out);
    // Width, the key, what changed; a null byte for each image.
    assert_eq!(bodies[0], (0, &[3, 1, 2, 0, 1, 0, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0, 0, 0, 0, 4, 0, 0, 0][..]));
    assert_eq!(bodies[1], (1, &[3, 1, 4, 0, 3, 0, 0, 0, 0, 1, 0, b'y'][..]));
    assert_eq!(bodies.len(), 2);
}

#[test]
fn images_by_option() {
    let table = table();
    let (old, new) = (row(1, 2, "x"), row(1, 3, "x"));
    let mut after = Bitmap::none(3);
    for (image, before, changed) in [(RowImage::Full, 0xFF, 0xFF), (RowImage::Minimal, 1, 2), (RowImage::NoBlob, 3, 3)] {
        image.after(&table, &old, &new, &mut after);
        assert_eq!((image.before(&table).as_bytes(), after.as_bytes()), (&[before][..], &[changed][..]), "{image:?}");
        assert_eq!(image.inserted(&table), Bitmap::all(3));
    }
    RowImage::NoBlob.after(&table, &old, &row(1, 2, "y"), &mut after);
    assert_eq!(after.as_bytes(), [7], "a blob that changed is there");
    let int = ColumnType::new(TypeKind::Int);
    let column = Column { name: "a", ty: &int, nullable: true, primary_key: None, visible: true };
    let without_key = TableMap::new(1, "d", "t", &[column], RowMetadata::Minimal);
    assert_eq!(RowImage::Minimal.before(&without_key), Bitmap::all(1));
}

#[test]
fn null_bits_count_included_columns() {
    let int = ColumnType::new(TypeKind::TinyInt);
    let columns = vec![Column { name: "a", ty: &int, nullable: true, primary_key: None, visible: true }; 20];
    let table = TableMap::new(1, "d", "t", &columns, RowMetadata::Minimal);
    let values: Vec<_> = (0..20).map(|i| if i % 4 == 1 { Value::Null } else { Value::Int(i) }).collect();
    let mut out = Vec::new();
    table.row_image(&Bitmap::of(20, 1..20), &values, &mut out);
    assert_eq!(out[..3], [0b0001_0001, 0b0001_0001, 0b0000_0001]);
    assert_eq!(out[3..], [2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 16, 18, 19]);
}
