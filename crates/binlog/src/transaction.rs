//! Events around a transaction's rows: GTID, statements, commit.

use crate::Uuid;
use crate::event::{CHECKSUM_LEN, EventType, Header, Stamp, close, header_flags, lenenc_len, open, push_lenenc};

/// What stands before every transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtidEvent {
    /// Server and number; `None` writes an ANONYMOUS_GTID_LOG_EVENT.
    pub gtid: Option<(Uuid, u64)>,
    /// The transaction holds a statement as text (DDL), not rows only.
    pub has_statement: bool,
    /// The logical clock of parallel replicas: this transaction may run beside all those with a greater number than this. Numbers count
    /// from 1 in each file.
    pub last_committed: i64,
    /// This transaction's number in its file.
    pub sequence_number: i64,
    /// Microseconds since 1970-01-01 UTC of the commit here.
    pub immediate_commit_micros: u64,
    /// Microseconds since 1970-01-01 UTC of the commit on the first server.
    pub original_commit_micros: u64,
    /// Bytes of the transaction's raw events behind this one.
    pub following_bytes: u64,
    /// How many events these are.
    pub following_events: u32,
    /// Whether they will be sealed with a checksum (they count in the length that the event tells).
    pub checksum: bool,
    /// This server's version as a number, 80036 for 8.0.36. Readers before 8.0.14 do not look at it.
    pub immediate_server_version: u32,
    /// The version of the server of the first commit.
    pub original_server_version: u32,
}

/// Appends a raw GTID_LOG_EVENT or ANONYMOUS_GTID_LOG_EVENT.
pub fn gtid(stamp: Stamp, event: &GtidEvent, out: &mut Vec<u8>) {
    let event_type = if event.gtid.is_some() { EventType::GTID } else { EventType::ANONYMOUS_GTID };
    let start = open(out, stamp, event_type, 0);
    let (sid, gno) = event.gtid.unwrap_or_default();
    out.push(u8::from(event.has_statement));
    out.extend_from_slice(&sid.0);
    out.extend_from_slice(&gno.to_le_bytes());
    out.push(2);
    out.extend_from_slice(&event.last_committed.to_le_bytes());
    out.extend_from_slice(&event.sequence_number.to_le_bytes());
    // The top bit of an "immediate" field says that the "original" one follows because it differs.
    let other_time = event.original_commit_micros != event.immediate_commit_micros;
    let immediate = event.immediate_commit_micros & MAX_MICROS | if other_time { MICROS_FLAG } else { 0 };
    out.extend_from_slice(&immediate.to_le_bytes()[..7]);
    if other_time {
        out.extend_from_slice(&(event.original_commit_micros & MAX_MICROS).to_le_bytes()[..7]);
    }
    let other_version = event.original_server_version != event.immediate_server_version;
    let versions = if other_version { 8 } else { 4 };
    let checksums = if event.checksum { CHECKSUM_LEN as u64 * (1 + u64::from(event.following_events)) } else { 0 };
    push_transaction_length(out, (out.len() - start + versions) as u64 + event.following_bytes + checksums);
    let immediate = event.immediate_server_version & !VERSION_FLAG | if other_version { VERSION_FLAG } else { 0 };
    out.extend_from_slice(&immediate.to_le_bytes());
    if other_version {
        out.extend_from_slice(&event.original_server_version.to_le_bytes());
    }
    close(out, start);
}

const MICROS_FLAG: u64 = 1 << 55;
const MAX_MICROS: u64 = MICROS_FLAG - 1;
const VERSION_FLAG: u32 = 1 << 31;

/// The length counts itself.
fn push_transaction_length(out: &mut Vec<u8>, without: u64) {
    let mut total = without + lenenc_len(without) as u64;
    if lenenc_len(total) != lenenc_len(without) {
        total = without + lenenc_len(total) as u64;
    }
    push_lenenc(out, total);
}

/// Puts another logical clock into a raw GTID event: the numbers start anew in every file, and which file it will be is known late.
pub fn set_logical_clock(raw: &mut [u8], last_committed: i64, sequence_number: i64) {
    debug_assert!(matches!(raw[4], EventType::GTID | EventType::ANONYMOUS_GTID));
    let clock = &mut raw[Header::LEN + 26..Header::LEN + 42];
    clock[..8].copy_from_slice(&last_committed.to_le_bytes());
    clock[8..].copy_from_slice(&sequence_number.to_le_bytes());
}

/// The session's state that a statement's meaning depends on; a replica sets it before it runs the statement.
#[derive(Clone, Debug, Default)]
pub struct QueryContext<'a> {
    /// The connection's id.
    pub thread_id: u32,
    /// Seconds that the statement took.
    pub exec_seconds: u32,
    /// The error that the statement ended with and must end with on the replica; 0 for success.
    pub error_code: u16,
    /// See [`flags2`].
    pub flags2: u32,
    /// `@@sql_mode` as a number.
    pub sql_mode: u64,
    /// `@@auto_increment_increment` and `@@auto_increment_offset`; written if not (1, 1). (0, 0) counts as (1, 1).
    pub auto_increment: (u16, u16),
    /// Ids of `@@character_set_client`'s default collation, `@@collation_connection` and `@@collation_server`.
    pub charset: Option<(u16, u16, u16)>,
    /// `@@time_zone` if the statement depends on it, otherwise empty.
    pub time_zone: &'a str,
    /// `@@lc_time_names` as a number; written if not 0 (en_US).
    pub lc_time_names: u16,
    /// Id of `@@collation_database`; written if not 0.
    pub charset_database: u16,
    /// Schemas that the statement changes, for replicas with a worker for each schema; written unless empty.
    pub updated_schemas: &'a [&'a str],
    /// Microseconds of the statement's second if it depends on them.
    pub microseconds: Option<u32>,
    /// `@@explicit_defaults_for_timestamp` if the statement depends on it (CREATE and ALTER TABLE).
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// Id of `@@default_collation_for_utf8mb4`; written if not 0.
    pub default_collation_for_utf8mb4: u16,
    /// The replica does not have to `USE` the schema first (BEGIN, CREATE DATABASE).
    pub suppress_use: bool,
}

/// Bits of [`QueryContext::flags2`].
pub mod flags2 {
    /// `@@sql_auto_is_null` is on.
    pub const AUTO_IS_NULL: u32 = 1 << 14;
    /// `@@foreign_key_checks` is off.
    pub const NO_FOREIGN_KEY_CHECKS: u32 = 1 << 26;
    /// `@@unique_checks` is off.
    pub const RELAXED_UNIQUE_CHECKS: u32 = 1 << 27;
}

/// More schemas than this are written as "any".
const MAX_UPDATED_SCHEMAS: usize = 16;

/// Appends a raw QUERY_EVENT: `sql`, in the client's character set, run with `schema` as the default one. Panics if its name has more than 255 bytes.
pub fn query(stamp: Stamp, context: &QueryContext<'_>, schema: &str, sql: &[u8], out: &mut Vec<u8>) {
    let start = open(out, stamp, EventType::QUERY, if context.suppress_use { header_flags::SUPPRESS_USE } else { 0 });
    out.extend_from_slice(&context.thread_id.to_le_bytes());
    out.extend_from_slice(&context.exec_seconds.to_le_bytes());
    out.push(u8::try_from(schema.len()).expect("names have at most 255 bytes"));
    out.extend_from_slice(&context.error_code.to_le_bytes());
    let length_at = out.len();
    out.extend_from_slice(&[0; 2]);
    push_status_variables(context, out);
    let length = (out.len() - length_at - 2) as u16;
    out[length_at..length_at + 2].copy_from_slice(&length.to_le_bytes());
    out.extend_from_slice(schema.as_bytes());
    out.push(0);
    out.extend_from_slice(sql);
    close(out, start);
}

/// In MySQL's order.
fn push_status_variables(context: &QueryContext<'_>, out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&context.flags2.to_le_bytes());
    out.push(1);
    out.extend_from_slice(&context.sql_mode.to_le_bytes());
    out.extend_from_slice(b"\x06\x03std");
    if !matches!(context.auto_increment, (0, 0) | (1, 1)) {
        out.push(3);
        out.extend_from_slice(&context.auto_increment.0.to_le_bytes());
        out.extend_from_slice(&context.auto_increment.1.to_le_bytes());
    }
    if let Some((client, connection, server)) = context.charset {
        out.push(4);
        for id in [client, connection, server] {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }
    if !context.time_zone.is_empty() {
        out.extend_from_slice(&[5, u8::try_from(context.time_zone.len()).expect("names of time zones have at most 255 bytes")]);
        out.extend_from_slice(context.time_zone.as_bytes());
    }
    for (code, id) in [(7, context.lc_time_names), (8, context.charset_database)] {
        if id != 0 {
            out.push(code);
            out.extend_from_slice(&id.to_le_bytes());
        }
    }
    match context.updated_schemas {
        [] => {}
        schemas if schemas.len() > MAX_UPDATED_SCHEMAS => out.extend_from_slice(&[12, 254]),
        schemas => {
            out.extend_from_slice(&[12, schemas.len() as u8]);
            for schema in schemas {
                out.extend_from_slice(schema.as_bytes());
                out.push(0);
            }
        }
    }
    if let Some(micros) = context.microseconds {
        out.push(13);
        out.extend_from_slice(&micros.to_le_bytes()[..3]);
    }
    if let Some(explicit) = context.explicit_defaults_for_timestamp {
        out.extend_from_slice(&[16, u8::from(explicit)]);
    }
    if context.default_collation_for_utf8mb4 != 0 {
        out.push(18);
        out.extend_from_slice(&context.default_collation_for_utf8mb4.to_le_bytes());
    }
}

/// Appends a raw ROWS_QUERY_LOG_EVENT: the statement behind the rows that follow, for people.
pub fn rows_query(stamp: Stamp, sql: &[u8], out: &mut Vec<u8>) {
    let start = open(out, stamp, EventType::ROWS_QUERY, header_flags::IGNORABLE);
    // Readers ignore the length; it is the low byte in MySQL.
    out.push(sql.len() as u8);
    out.extend_from_slice(sql);
    close(out, start);
}

/// Appends a raw XID_EVENT: the transaction's COMMIT.
pub fn xid(stamp: Stamp, xid: u64, out: &mut Vec<u8>) {
    let start = open(out, stamp, EventType::XID, 0);
    out.extend_from_slice(&xid.to_le_bytes());
    close(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { timestamp: 1, server_id: 2 };

    fn event() -> GtidEvent {
        GtidEvent {
            gtid: Some((Uuid([7; 16]), 5)),
            has_statement: false,
            last_committed: 1,
            sequence_number: 2,
            immediate_commit_micros: 1_700_000_000_000_000,
            original_commit_micros: 1_700_000_000_000_000,
            following_bytes: 0,
            following_events: 3,
            checksum: true,
            immediate_server_version: 80036,
            original_server_version: 80036,
        }
    }

    fn body(event: &GtidEvent) -> Vec<u8> {
        let mut raw = Vec::new();
        gtid(STAMP, event, &mut raw);
        raw.split_off(Header::LEN)
    }

    #[test]
    fn the_length_counts_itself_and_checksums() {
        for following_bytes in (0..1_000).chain(65_300..65_600).chain(16_777_000..16_777_300) {
            let body = body(&GtidEvent { following_bytes, ..event() });
            let (first, rest) = (body[49], &body[50..body.len() - 4]);
            let number = rest.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
            let length = if first <= 250 { u64::from(first) } else { number };
            assert_eq!(rest.len(), [0, 2, 3, 8][[250, 0xFC, 0xFD, 0xFE].iter().position(|mark| first <= *mark).unwrap()]);
            assert_eq!(length, (Header::LEN + body.len()) as u64 + following_bytes + 4 * 4, "{following_bytes}");
        }
    }

    #[test]
    fn what_differs_from_the_first_server_follows() {
        let other = GtidEvent { original_commit_micros: 1_600_000_000_000_000, original_server_version: 80012, checksum: false, ..event() };
        let body = body(&other);
        let mut expected = (1_700_000_000_000_000u64 | 1 << 55).to_le_bytes()[..7].to_vec();
        expected.extend_from_slice(&1_600_000_000_000_000u64.to_le_bytes()[..7]);
        assert_eq!(body[42..56], expected);
        assert_eq!(usize::from(body[56]), Header::LEN + body.len());
        assert_eq!(body[57..], [(80036u32 | 1 << 31).to_le_bytes(), 80012u32.to_le_bytes()].concat());
    }

    #[test]
    fn the_logical_clock_is_written_late() {
        let (mut early, mut late) = (Vec::new(), Vec::new());
        gtid(STAMP, &event(), &mut early);
        gtid(STAMP, &GtidEvent { last_committed: 70, sequence_number: 71, ..event() }, &mut late);
        set_logical_clock(&mut early, 70, 71);
        assert_eq!(early, late);
    }

    #[test]
    fn many_schemas_are_any() {
        let names: Vec<_> = (0..17).map(|i| format!("d{i}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let variables = |count: usize| {
            let mut out = Vec::new();
            push_status_variables(&QueryContext { updated_schemas: &names[..count], ..QueryContext::default() }, &mut out);
            out.split_off(19)
        };
        assert!(variables(0).is_empty());
        assert_eq!(variables(2), b"\x0c\x02d0\0d1\0");
        assert_eq!(variables(16)[..2], [12, 16]);
        assert_eq!(variables(17), [12, 254]);
    }
}
