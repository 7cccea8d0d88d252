//! Every event that MySQL 8.0.12 wrote (`tools/record.py`) is written again by this crate and must have the same bytes.

mod common;

use std::io::Read;

use highkey_binlog::control::{self, FormatDescription};
use highkey_binlog::transaction::{self, GtidEvent, QueryContext, flags2};
use highkey_binlog::{EventType, FileEvent, FileReader, GtidSet, Header, RowMetadata, Stamp, Uuid, describe};

use common::{Change, Table};
use highkey_types::Value;

/// A recorded file.
fn file(gz: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(gz).read_to_end(&mut bytes).unwrap();
    bytes
}

/// An event out of its reader.
struct Recorded {
    position: u64,
    end: u64,
    header: Header,
    raw: Vec<u8>,
}

impl Recorded {
    fn of(event: &FileEvent<'_>) -> Recorded {
        let mut raw = event.raw.to_vec();
        // As it was before it was sealed.
        let len = raw.len() as u32;
        raw[9..13].copy_from_slice(&len.to_le_bytes());
        raw[13..17].fill(0);
        Recorded { position: event.position, end: event.end(), header: event.header, raw }
    }

    fn body(&self) -> &[u8] {
        &self.raw[Header::LEN..]
    }

    /// `len` little-endian bytes of the body.
    fn number(&self, at: usize, len: usize) -> u64 {
        self.body()[at..at + len].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }

    fn stamp(&self) -> Stamp {
        Stamp { timestamp: self.header.timestamp, server_id: self.header.server_id }
    }
}

fn events(file: &[u8]) -> (Vec<Recorded>, bool) {
    let mut reader = FileReader::new(file);
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap_or_else(|error| panic!("{error}")) {
        events.push(Recorded::of(&event));
    }
    assert_eq!(reader.position(), file.len() as u64);
    (events, reader.checksum().unwrap())
}

/// Writes a file's events again, the rows from `tables.txt`.
struct Writer<'t> {
    changes: std::vec::IntoIter<(&'t Table, &'t Change)>,
    schema: &'t str,
    metadata: RowMetadata,
    checksum: bool,
}

impl Writer<'_> {
    /// The event at `at`, raw.
    fn write(&mut self, events: &[Recorded], at: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let event = &events[at];
        let stamp = event.stamp();
        match event.header.event_type {
            EventType::FORMAT_DESCRIPTION => {
                let created = event.number(52, 4) as u32;
                let format = FormatDescription { server_version: "8.0.12", created, checksum: self.checksum, in_use: false };
                control::format_description(stamp, &format, &mut out);
            }
            EventType::PREVIOUS_GTIDS => control::previous_gtids(stamp, &GtidSet::decode(event.body()).unwrap(), &mut out),
            EventType::GTID | EventType::ANONYMOUS_GTID => transaction::gtid(stamp, &self.gtid(events, at), &mut out),
            EventType::QUERY => {
                let body = event.body();
                let schema_len = usize::from(body[8]);
                let sql_at = 13 + event.number(11, 2) as usize + schema_len + 1;
                let (schema, sql) = (&body[sql_at - 1 - schema_len..sql_at - 1], &body[sql_at..]);
                let context = self.context(events, at);
                let definition = self.changes.as_slice().first().map(|(table, _)| table.definition());
                let sql = if sql.starts_with(b"create table") { definition.as_deref().map_or(sql, str::as_bytes) } else { sql };
                transaction::query(stamp, &context, std::str::from_utf8(schema).unwrap(), sql, &mut out);
            }
            EventType::ROWS_QUERY => transaction::rows_query(stamp, &event.body()[1..], &mut out),
            EventType::TABLE_MAP => {
                let (table, _) = self.changes.as_slice()[0];
                table.map(event.number(0, 6), self.schema, self.metadata).write(stamp, &mut out);
            }
            EventType::WRITE_ROWS | EventType::UPDATE_ROWS | EventType::DELETE_ROWS => {
                let (table, change) = self.changes.next().unwrap();
                change.write(stamp, &table.map(event.number(0, 6), self.schema, self.metadata), &mut out);
            }
            EventType::XID => transaction::xid(stamp, event.number(0, 8), &mut out),
            EventType::ROTATE => {
                let next = std::str::from_utf8(&event.body()[8..]).unwrap();
                control::rotate(stamp, next, event.number(0, 8), false, &mut out);
            }
            EventType::STOP => control::stop(stamp, &mut out),
            other => panic!("an event of type {other} at {}", event.position),
        }
        out
    }

    /// What the recorded event says, with the lengths of the transaction as they are in the file.
    fn gtid(&self, events: &[Recorded], at: usize) -> GtidEvent {
        let event = &events[at];
        let sid = Uuid(event.body()[1..17].try_into().unwrap());
        let micros = event.number(42, 7);
        let transaction = &events[at + 1..at + 1 + transaction_len(&events[at + 1..])];
        GtidEvent {
            gtid: (event.header.event_type == EventType::GTID).then(|| (sid, event.number(17, 8))),
            has_statement: event.body()[0] == 1,
            last_committed: event.number(26, 8) as i64,
            sequence_number: event.number(34, 8) as i64,
            immediate_commit_micros: micros,
            original_commit_micros: micros,
            following_bytes: transaction.iter().map(|event| event.raw.len() as u64).sum(),
            following_events: transaction.len() as u32,
            checksum: self.checksum,
            immediate_server_version: 80012,
            original_server_version: 80012,
        }
    }

    /// The session's state, by the statement. BEGIN has that of the statement behind it.
    fn context(&self, events: &[Recorded], at: usize) -> QueryContext<'_> {
        let event = &events[at];
        let is_begin = event.raw.ends_with(b"\0BEGIN");
        let statement = if is_begin { &events[at + 1..] } else { &events[at..] };
        let next = statement.iter().find(|event| event.header.event_type != EventType::ROWS_QUERY).unwrap();
        let mut context = QueryContext {
            thread_id: event.number(0, 4) as u32,
            exec_seconds: event.number(4, 4) as u32,
            sql_mode: 0x0220_0000,
            charset: Some((255, 255, 255)),
            default_collation_for_utf8mb4: 255,
            suppress_use: is_begin,
            ..QueryContext::default()
        };
        if next.header.event_type == EventType::TABLE_MAP {
            // A session's zone is used where a time is converted.
            let (table, change) = self.changes.as_slice()[0];
            if table.name == "timestamps" && matches!(change.new.as_ref().unwrap()[0], Value::DateTime(v) if !v.is_zero()) {
                context.time_zone = "+00:00";
            }
            return context;
        }
        context.updated_schemas = std::slice::from_ref(&self.schema);
        let sql = String::from_utf8_lossy(&next.raw);
        // As tools/record.py sets it, one after the other.
        let sessions = ["'one'", "'two'", "'three'", "'four'", "'five'", "DROP TABLE"];
        let session = sessions.iter().position(|word| sql.contains(word)).map_or(0, |i| i + 1);
        if (1..=2).contains(&session) {
            (context.auto_increment, context.lc_time_names) = ((5, 2), 4);
        }
        if (1..=3).contains(&session) {
            context.time_zone = "+05:30";
        }
        if session >= 2 {
            context.sql_mode = 0;
            context.flags2 = flags2::NO_FOREIGN_KEY_CHECKS | flags2::RELAXED_UNIQUE_CHECKS;
            context.charset = Some((255, 8, 255));
        }
        context.microseconds = match session {
            // The clock's.
            1 => Some(event.number(13 + event.number(11, 2) as usize - 6, 3) as u32),
            3 => Some(250_000),
            _ => None,
        };
        if session >= 4 {
            (context.charset_database, context.default_collation_for_utf8mb4) = (8, 45);
        }
        if session >= 5 {
            context.flags2 |= flags2::AUTO_IS_NULL;
        }
        context.suppress_use |= sql.contains("create database");
        context.explicit_defaults_for_timestamp = sql.contains("` timestamp").then_some(true);
        context
    }
}

/// Events up to the end of the transaction: its XID, or a statement that commits by itself.
fn transaction_len(events: &[Recorded]) -> usize {
    let begins = events[0].raw.ends_with(b"\0BEGIN");
    if !begins {
        return 1;
    }
    events.iter().position(|event| event.header.event_type == EventType::XID).unwrap() + 1
}

/// What the two leave to each other: `recorded` loses what this crate does not write (the status variables of a DDL's XID and of
/// the tables that a multi-table update changes), `ours` what MySQL 8.0.12 did not have yet.
fn make_comparable(recorded: &mut Vec<u8>, ours: &mut Vec<u8>) {
    const BODY: usize = Header::LEN;
    match recorded[4] {
        EventType::QUERY => {
            let len = usize::from(u16::from_le_bytes([recorded[BODY + 11], recorded[BODY + 12]]));
            // Nine bytes before the last variable.
            let at = BODY + 13 + len - 12;
            if matches!(recorded[at], 9 | 17) && recorded[at + 9] == 18 {
                recorded.drain(at..at + 9);
                recorded[BODY + 11..BODY + 13].copy_from_slice(&(len as u16 - 9).to_le_bytes());
                let size = recorded.len() as u32;
                recorded[9..13].copy_from_slice(&size.to_le_bytes());
            }
        }
        EventType::TABLE_MAP => {
            let mut at = optional_metadata_at(ours);
            while at < ours.len() {
                let len = 2 + usize::from(ours[at + 1]);
                if matches!(ours[at], 10 | 11) {
                    ours.drain(at..at + len);
                } else {
                    // Longer fields have their length in three bytes.
                    at += if ours[at + 1] == 0xFC { 4 + usize::from(u16::from_le_bytes([ours[at + 2], ours[at + 3]])) } else { len };
                }
            }
            let size = ours.len() as u32;
            ours[9..13].copy_from_slice(&size.to_le_bytes());
        }
        _ => {}
    }
}

/// Where the fields behind the null bits of a raw table map start.
fn optional_metadata_at(raw: &[u8]) -> usize {
    let lenenc = |at: usize| match raw[at] {
        0xFC => (usize::from(u16::from_le_bytes([raw[at + 1], raw[at + 2]])), at + 3),
        n => (usize::from(n), at + 1),
    };
    let schema_at = Header::LEN + 8;
    let table_at = schema_at + usize::from(raw[schema_at]) + 2;
    let (columns, types_at) = lenenc(table_at + usize::from(raw[table_at]) + 2);
    let (metadata, metadata_at) = lenenc(types_at + columns);
    metadata_at + metadata + columns.div_ceil(8)
}

/// A GTID event of ours has the server's version behind the recorded one's bytes, and so a transaction that is four bytes longer.
fn check_gtid(recorded: &Recorded, ours: &[u8], transaction: &[Recorded]) {
    let (theirs, same) = (&recorded.raw[..], Header::LEN + 49);
    assert_eq!(ours[13..same], theirs[13..same], "at {}", recorded.position);
    assert_eq!(ours[..9], theirs[..9]);
    let lenenc = |bytes: &[u8]| match bytes[0] {
        0xFC => u64::from(u16::from_le_bytes([bytes[1], bytes[2]])),
        0xFD => u64::from(u32::from_le_bytes([bytes[1], bytes[2], bytes[3], 0])),
        n => u64::from(n),
    };
    let end = transaction.last().unwrap().end;
    assert_eq!(lenenc(&theirs[same..]), end - recorded.position, "what MySQL counts");
    let ours_longer = ours.len() as u64 - theirs.len() as u64;
    assert_eq!(lenenc(&ours[same..]), end - recorded.position + ours_longer, "at {}", recorded.position);
    assert_eq!(ours[ours.len() - 4..], 80012u32.to_le_bytes());
}

/// Answers how many events of each type were compared.
fn compare(gz: &[u8], schema: &str, metadata: RowMetadata, tables: &[&str]) -> Vec<(u8, usize)> {
    let (events, checksum) = events(&file(gz));
    let all = common::tables();
    let used = all.iter().filter(|table| tables.is_empty() || tables.contains(&table.name.as_str()));
    let changes: Vec<_> = used.flat_map(|table| table.changes.iter().map(move |change| (table, change))).collect();
    let mut writer = Writer { changes: changes.into_iter(), schema, metadata, checksum };
    let mut counts = std::collections::BTreeMap::new();
    for (at, event) in events.iter().enumerate() {
        let mut ours = writer.write(&events, at);
        *counts.entry(event.header.event_type).or_insert(0) += 1;
        if matches!(event.header.event_type, EventType::GTID | EventType::ANONYMOUS_GTID) {
            check_gtid(event, &ours, &events[at + 1..at + 1 + transaction_len(&events[at + 1..])]);
            continue;
        }
        let mut recorded = event.raw.clone();
        make_comparable(&mut recorded, &mut ours);
        assert!(ours == recorded, "{:?} at {}: {}", describe(&event.raw), event.position, difference(&ours, &recorded));
    }
    assert_eq!(writer.changes.count(), 0, "every change was recorded");
    counts.into_iter().collect()
}

/// A few bytes around the first that differs.
fn difference(ours: &[u8], recorded: &[u8]) -> String {
    let at = ours.iter().zip(recorded).position(|(a, b)| a != b).unwrap_or(ours.len().min(recorded.len()));
    let around = |bytes: &[u8]| format!("{:02x?}", &bytes[at.saturating_sub(8)..bytes.len().min(at + 24)]);
    format!("byte {at} of {} and {}\n   ours {}\nrecorded {}", ours.len(), recorded.len(), around(ours), around(recorded))
}

#[test]
fn all_types_with_full_metadata() {
    let counts = compare(include_bytes!("../testdata/full.binlog.gz"), "d", RowMetadata::Full, &[]);
    assert_eq!(counts, [(2, 180), (4, 1), (15, 1), (16, 158), (19, 158), (30, 147), (31, 7), (32, 4), (33, 180), (35, 1)]);
}

#[test]
fn no_checksums_minimal_metadata_and_sessions() {
    let tables = ["integers", "enums", "sets", "strings", "mixed", "collations"];
    let counts = compare(include_bytes!("../testdata/plain.binlog.gz"), "e", RowMetadata::Minimal, &tables);
    assert_eq!(counts.iter().map(|(event_type, _)| *event_type).collect::<Vec<_>>(), [2, 4, 15, 16, 19, 29, 30, 31, 32, 33, 35]);
}

#[test]
fn without_gtids() {
    let counts = compare(include_bytes!("../testdata/anonymous.binlog.gz"), "e", RowMetadata::Minimal, &["none"]);
    assert_eq!(counts, [(2, 1), (3, 1), (15, 1), (34, 1), (35, 1)]);
}

#[test]
fn descriptions_are_those_of_show_binlog_events() {
    let recorded = [
        (&include_bytes!("../testdata/full.binlog.gz")[..], include_str!("../testdata/full.events.tsv")),
        (include_bytes!("../testdata/plain.binlog.gz"), include_str!("../testdata/plain.events.tsv")),
    ];
    for (gz, text) in recorded {
        let (events, _) = events(&file(gz));
        assert_eq!(events.len(), text.lines().count());
        for (event, line) in events.iter().zip(text.lines()) {
            let (name, info) = describe(&event.raw).unwrap();
            let info: String = info.replace('\\', "\\\\").replace('\n', "\\n").chars().take(200).collect();
            assert_eq!(format!("{}\t{name}\t{}\t{info}", event.position, event.end), line);
        }
    }
}

#[test]
fn sealing_gives_the_file_again() {
    for gz in [&include_bytes!("../testdata/full.binlog.gz")[..], include_bytes!("../testdata/plain.binlog.gz")] {
        let recorded = file(gz);
        let (events, checksum) = events(&recorded);
        let mut sealed = control::MAGIC.to_vec();
        for event in &events {
            highkey_binlog::event::seal(&event.raw, sealed.len() as u64, checksum, &mut sealed);
        }
        assert!(sealed == recorded);
    }
}

#[test]
fn events_cut_short_are_not_described() {
    let (events, _) = events(&file(include_bytes!("../testdata/plain.binlog.gz")));
    for event in events {
        // What has no end of its own (texts, rows) may be cut there; nothing may panic, and a fixed part must be whole.
        let answers: Vec<bool> = (0..event.raw.len()).map(|len| describe(&event.raw[..len]).is_some()).collect();
        assert!(answers.is_sorted(), "{:?}: once whole, longer is whole too", event.header);
        let fixed = [EventType::GTID, EventType::XID, EventType::QUERY, EventType::TABLE_MAP];
        assert!(!fixed.contains(&event.header.event_type) || !answers[Header::LEN + 5]);
    }
}
