//! An independent decoder, `mysql_common`, reads a file of ours and finds the values that went in.

mod common;
#[path = "common/sample.rs"]
mod sample;

use std::collections::HashMap;

use common::{Change, Table};
use highkey_binlog::RowMetadata;
use highkey_types::{Collation, ColumnType, TypeKind, Value, json};
use mysql_common::Value as Decoded;
use mysql_common::binlog::BinlogFile;
use mysql_common::binlog::consts::BinlogVersion;
use mysql_common::binlog::events::{EventData, OptionalMetadataField, TableMapEvent};
use mysql_common::binlog::row::BinlogRow;
use mysql_common::binlog::value::BinlogValue;

#[test]
fn with_checksums_and_full_metadata() {
    decode(true, RowMetadata::Full);
}

#[test]
fn without_checksums_and_with_minimal_metadata() {
    decode(false, RowMetadata::Minimal);
}

fn decode(checksum: bool, metadata: RowMetadata) {
    let mut tables = common::tables();
    // The decoder overflows at a negative TIME(1) or TIME(2) with a fraction (0.38.2); `recorded.rs` has them.
    let is_such = |value: &Value| matches!(value, Value::Time(v) if v.is_negative() && v.subsec_micros() > 0);
    let overflows = |change: &Change| change.new.as_ref().is_some_and(|row| row[1..3].iter().any(is_such));
    let times = tables.iter_mut().find(|table| table.name == "times").unwrap();
    let all = times.changes.len();
    times.changes.retain(|change| !overflows(change));
    assert_eq!(all - times.changes.len(), 4);
    let (file, transactions) = sample::file("d", &tables, Collation::utf8mb4(), checksum, metadata);
    let mut changes = tables.iter().flat_map(|table| table.changes.iter().map(move |change| (table, change)));
    let mut log = BinlogFile::new(BinlogVersion::Version4, &file[..]).unwrap();
    let (mut gtids, mut end, mut maps) = (0, 4, HashMap::new());
    while let Some(event) = log.next() {
        let event = event.unwrap();
        end += event.header().event_size();
        assert_eq!(event.header().log_pos(), end);
        let algorithm = event.footer().get_checksum_alg().unwrap().unwrap();
        if let Some(bytes) = event.checksum().filter(|_| checksum) {
            assert_eq!(event.calc_checksum(algorithm), u32::from_le_bytes(bytes));
        }
        match event.read_data().unwrap().expect("a known type") {
            EventData::GtidEvent(gtid) => {
                gtids += 1;
                assert_eq!((gtid.sid(), gtid.gno()), (sample::SERVER.0, gtids));
                assert_eq!((gtid.last_committed(), gtid.sequence_number()), (gtids - 1, gtids));
                assert_eq!(gtid.immediate_commit_timestamp(), 1_700_000_000_000_000 + gtids);
                assert_eq!(gtid.immediate_server_version(), 80036);
            }
            EventData::TableMapEvent(map) => {
                maps.insert(map.table_id(), map.into_owned());
            }
            EventData::RowsEvent(rows) => {
                let (table, change) = changes.next().expect("as many rows events as changes");
                let map = &maps[&rows.table_id()];
                check_map(map, table, metadata);
                let decoded: Vec<_> = rows.rows(map).collect::<Result<_, _>>().unwrap();
                let [(before, after)] = &decoded[..] else { panic!("{} rows", decoded.len()) };
                check_row(before.as_ref(), change.old.as_deref(), table);
                check_row(after.as_ref(), change.new.as_deref(), table);
            }
            _ => {}
        }
    }
    assert_eq!((gtids, end as usize), (transactions, file.len()));
    assert!(changes.next().is_none());
}

fn check_map(map: &TableMapEvent<'_>, table: &Table, metadata: RowMetadata) {
    assert_eq!((map.database_name(), map.table_name()), ("d".into(), table.name.as_str().into()));
    let nullable: Vec<_> = table.columns.iter().map(|column| column.nullable).collect();
    assert_eq!(map.null_bitmask().iter().by_vals().take(nullable.len()).collect::<Vec<_>>(), nullable);
    let mut names = Vec::new();
    let mut collations = Vec::new();
    for field in map.iter_optional_meta() {
        match field.unwrap() {
            OptionalMetadataField::ColumnName(field) => names = field.iter_names().map(|name| name.unwrap().name().into_owned()).collect(),
            OptionalMetadataField::EnumAndSetDefaultCharset(field) => collations.push(field.default_charset()),
            OptionalMetadataField::EnumAndSetColumnCharset(field) => collations = field.iter_charsets().map(Result::unwrap).collect(),
            _ => {}
        }
    }
    if metadata == RowMetadata::Full {
        assert_eq!(names, table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>());
        let of_sets = table.columns.iter().filter(|column| matches!(column.ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)));
        let of_sets: Vec<_> = of_sets.map(|column| column.ty.collation.id).collect();
        assert!(collations == of_sets || collations.len() == 1 && of_sets.contains(&collations[0]), "{collations:?} of {of_sets:?}");
    } else {
        assert!(names.is_empty() && collations.is_empty());
    }
}

/// The image has some of the columns; each has the row's value.
fn check_row(decoded: Option<&BinlogRow>, row: Option<&[Value]>, table: &Table) {
    let (Some(decoded), Some(row)) = (decoded, row) else {
        return assert!(decoded.is_none() && row.is_none());
    };
    assert!(!decoded.is_empty());
    for (i, column) in decoded.columns_ref().iter().enumerate() {
        // Without names the decoder makes some of the index.
        let name = column.name_str();
        let index = name.strip_prefix('@').map(|index| index.parse().unwrap());
        let index = index.or_else(|| table.columns.iter().position(|column| column.name == name)).unwrap();
        let (ty, value) = (&table.columns[index].ty, decoded.as_ref(i).unwrap());
        assert_eq!(text_of_decoded(value, ty), text_of(&row[index], ty), "{}.{name} {ty}", table.name);
    }
}

/// What the decoder is to answer, as text.
fn text_of(value: &Value, ty: &ColumnType) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(v) => v.to_string(),
        Value::UInt(v) => v.to_string(),
        Value::Float(v) => format!("{v:e}"),
        Value::Double(v) => format!("{v:e}"),
        Value::Decimal(v) => v.to_string(),
        Value::Text(v) => {
            let text = if matches!(ty.kind, TypeKind::Char(_)) { v.trim_end_matches(' ') } else { v };
            format!("{:02x?}", ty.charset().encode(text))
        }
        Value::Bytes(v) => {
            let padding = v.iter().rev().take_while(|byte| matches!(ty.kind, TypeKind::Binary(_)) && **byte == 0).count();
            format!("{:02x?}", &v[..v.len() - padding])
        }
        Value::Date(v) => v.to_string(),
        Value::DateTime(v) if matches!(ty.kind, TypeKind::Timestamp(_)) && v.is_zero() => "0".to_owned(),
        Value::DateTime(v) if matches!(ty.kind, TypeKind::Timestamp(_)) => {
            let micros = v.to_micros();
            let fraction = if v.micros == 0 { String::new() } else { format!(".{:06}", v.micros) };
            format!("{}{fraction}", micros.div_euclid(1_000_000))
        }
        Value::DateTime(v) => v.format(6),
        Value::Time(v) => v.format(6),
        Value::Enum(index, _) => index.to_string(),
        Value::Set(bits, _) => bits.to_string(),
        Value::Json(text) => text.to_string(),
    }
}

/// The same of what the decoder answered.
fn text_of_decoded(value: &BinlogValue<'_>, ty: &ColumnType) -> String {
    let value = match value {
        BinlogValue::Value(value) => value,
        BinlogValue::Jsonb(document) => {
            let document = serde_json::Value::try_from(document.clone()).unwrap();
            return json::normalise(&document.to_string()).unwrap().to_string();
        }
        BinlogValue::JsonDiff(_) => panic!("this server does not log differences of documents"),
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match (value, &ty.kind) {
        (Decoded::NULL, _) => "NULL".to_owned(),
        // The decoder forgets the sign of 24 bits, and reads YEAR 0 as 1900.
        (Decoded::Int(v), TypeKind::MediumInt) if !ty.unsigned => (v << 40 >> 40).to_string(),
        (Decoded::Int(v), _) => v.to_string(),
        (Decoded::UInt(v), _) => v.to_string(),
        (Decoded::Float(v), _) => format!("{v:e}"),
        (Decoded::Double(v), _) => format!("{v:e}"),
        (Decoded::Bytes(bytes), TypeKind::Year) if bytes == b"1900" => "0".to_owned(),
        (Decoded::Bytes(bytes), TypeKind::Year | TypeKind::Timestamp(_)) => text(bytes),
        (Decoded::Bytes(bytes), TypeKind::Decimal { scale, .. }) => {
            text(bytes).parse::<highkey_types::Decimal>().unwrap().rescale(*scale).unwrap().to_string()
        }
        (Decoded::Bytes(bytes), TypeKind::Bit(_)) => bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)).to_string(),
        (Decoded::Bytes(bytes), TypeKind::Set(_)) => bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)).to_string(),
        (Decoded::Bytes(bytes), _) => format!("{bytes:02x?}"),
        (Decoded::Date(y, m, d, ..), TypeKind::Date) => format!("{y:04}-{m:02}-{d:02}"),
        (Decoded::Date(y, m, d, h, i, s, u), _) => format!("{y:04}-{m:02}-{d:02} {h:02}:{i:02}:{s:02}.{u:06}"),
        (Decoded::Time(negative, d, h, m, s, u), _) => {
            let hours = d * 24 + u32::from(*h);
            format!("{}{hours:02}:{m:02}:{s:02}.{u:06}", if *negative { "-" } else { "" })
        }
    }
}
