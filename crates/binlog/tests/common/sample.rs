//! A whole file: tables and their changes as this server would log them.

use highkey_binlog::control::{self, FormatDescription, MAGIC};
use highkey_binlog::event::{seal, split};
use highkey_binlog::transaction::{self, GtidEvent, QueryContext};
use highkey_binlog::{GtidSet, RowMetadata, Stamp, Uuid};

use highkey_types::Collation;

use crate::common::Table;

pub const SERVER: Uuid = Uuid([0x3E, 0x11, 0xFA, 0x47, 0x71, 0xCA, 0x11, 0xE1, 0x9E, 0x33, 0xC8, 0x0A, 0xA9, 0x42, 0x95, 0x62]);
const STAMP: Stamp = Stamp { timestamp: 1_700_000_000, server_id: 7 };

/// The session's state of every statement; TIMESTAMPs are written in UTC.
fn context(collation: &Collation) -> QueryContext<'static> {
    QueryContext {
        thread_id: 1,
        sql_mode: 0x0220_0000,
        charset: Some((collation.id, collation.id, collation.id)),
        time_zone: "+00:00",
        default_collation_for_utf8mb4: collation.id,
        ..QueryContext::default()
    }
}

/// The file, and its number of transactions. `collation` is the sessions'.
pub fn file(schema: &str, tables: &[Table], collation: &Collation, checksum: bool, metadata: RowMetadata) -> (Vec<u8>, u64) {
    let (mut file, mut raw, mut gno) = (MAGIC.to_vec(), Vec::new(), 0);
    let mut append = |raw: &[u8]| split(raw).for_each(|event| seal(event, file.len() as u64, checksum, &mut file));
    let format = FormatDescription { server_version: "8.0.36-highkey", created: STAMP.timestamp, checksum, in_use: false };
    control::format_description(STAMP, &format, &mut raw);
    control::previous_gtids(STAMP, &GtidSet::new(), &mut raw);
    append(&raw);
    let mut transaction = |has_statement: bool, events: &[u8]| {
        gno += 1;
        let event = GtidEvent {
            gtid: Some((SERVER, gno)),
            has_statement,
            last_committed: gno as i64 - 1,
            sequence_number: gno as i64,
            immediate_commit_micros: 1_700_000_000_000_000 + gno,
            original_commit_micros: 1_700_000_000_000_000 + gno,
            following_bytes: events.len() as u64,
            following_events: split(events).count() as u32,
            checksum,
            immediate_server_version: 80036,
            original_server_version: 80036,
        };
        let mut raw = Vec::new();
        transaction::gtid(STAMP, &event, &mut raw);
        append(&raw);
        append(events);
    };
    let ddl = |sql: &str| {
        let mut raw = Vec::new();
        let context = QueryContext { suppress_use: sql.starts_with("create database"), updated_schemas: &[schema], ..context(collation) };
        transaction::query(STAMP, &context, schema, sql.as_bytes(), &mut raw);
        raw
    };
    transaction(true, &ddl(&format!("create database {schema}")));
    for (i, table) in tables.iter().enumerate() {
        transaction(true, &ddl(&table.definition()));
        let map = table.map(100 + i as u64, schema, metadata);
        for change in &table.changes {
            raw.clear();
            transaction::query(STAMP, &QueryContext { suppress_use: true, ..context(collation) }, schema, b"BEGIN", &mut raw);
            transaction::rows_query(STAMP, format!("change of {}", table.name).as_bytes(), &mut raw);
            map.write(STAMP, &mut raw);
            change.write(STAMP, &map, &mut raw);
            transaction::xid(STAMP, 1000 + i as u64, &mut raw);
            transaction(false, &raw);
        }
    }
    raw.clear();
    control::rotate(STAMP, "binlog.000002", 4, false, &mut raw);
    append(&raw);
    (file, gno)
}
