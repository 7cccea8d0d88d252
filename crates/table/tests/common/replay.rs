//! Reads the binary log as a replica would.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use highkey_binlog::event::{self, check_crc32};
use highkey_binlog::{EventType, Header, xa};
use highkey_table::Database;

/// What the binary log's files say.
#[derive(Debug, Default)]
pub struct Replayed {
    pub rows: BTreeMap<i64, i64>,
    /// By type.
    pub events: BTreeMap<&'static str, usize>,
    pub transactions: u64,
    pub statements: Vec<String>,
    pub files: usize,
    /// Prepared and not ended, by name, with their rows events.
    pub prepared: BTreeMap<String, Vec<(u8, Vec<u8>)>>,
}

/// Reads every file, checks each event and the order of events, and applies them to an empty table `t (id int primary key, v int)`.
pub fn replay(db: &Arc<Database>) -> Replayed {
    let binlog = db.binlog().expect("the binary log is on");
    binlog.catch_up().unwrap();
    let mut replayed = Replayed::default();
    let mut names = binlog.files();
    for (name, size) in names.drain(..) {
        let mut bytes = Vec::new();
        binlog.read_file(&name, 0).unwrap().expect("listed").read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, size, "{name}");
        replay_file(&name, &bytes, &mut replayed);
        replayed.files += 1;
    }
    assert_eq!(binlog.executed().count(), replayed.transactions, "GTIDs");
    replayed
}

fn replay_file(name: &str, bytes: &[u8], replayed: &mut Replayed) {
    assert_eq!(bytes[..4], *b"\xfebin", "{name}");
    let (mut at, mut sequence, mut in_transaction, mut ended) = (4, 0, false, false);
    // The transaction in two phases that is being told.
    let mut branch: Option<(String, Vec<(u8, Vec<u8>)>)> = None;
    for (n, sealed) in event::split(&bytes[4..]).enumerate() {
        at += sealed.len();
        let header = Header::parse(sealed).unwrap();
        assert_eq!(header.log_pos as usize, at, "{name}: where event {n} ends");
        let (raw, right) = check_crc32(sealed).unwrap();
        assert!(right, "{name}: checksum of event {n}");
        assert!(!ended, "{name}: nothing behind the end");
        let body = &raw[Header::LEN..];
        *replayed.events.entry(EventType::name(header.event_type)).or_default() += 1;
        match header.event_type {
            EventType::FORMAT_DESCRIPTION => assert_eq!(n, 0, "{name}"),
            EventType::PREVIOUS_GTIDS => assert_eq!(n, 1, "{name}"),
            EventType::GTID => {
                assert!(!in_transaction, "{name}");
                replayed.transactions += 1;
                let number = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
                assert_eq!(number(17), replayed.transactions, "{name}: GTIDs have no gaps");
                sequence += 1;
                assert_eq!(number(34), sequence, "{name}: sequence number");
                assert!(number(26) < sequence, "{name}: a transaction follows what it depends on");
                in_transaction = true;
            }
            EventType::QUERY => {
                assert!(in_transaction, "{name}");
                let schema = body[8] as usize;
                let status = u16::from_le_bytes(body[11..13].try_into().unwrap()) as usize;
                let sql = String::from_utf8(body[13 + status + schema + 1..].to_vec()).unwrap();
                in_transaction = sql == "BEGIN" || sql.starts_with("XA START") || sql.starts_with("XA END");
                match sql.splitn(3, ' ').collect::<Vec<_>>()[..] {
                    ["XA", "START", xid] => assert!(branch.replace((xid.into(), Vec::new())).is_none(), "{name}"),
                    ["XA", "END", xid] => assert_eq!(branch.as_ref().unwrap().0, xid, "{name}"),
                    ["XA", how, xid] => {
                        let changes = replayed.prepared.remove(xid).unwrap_or_else(|| panic!("{name}: {xid} is prepared"));
                        if how == "COMMIT" {
                            changes.iter().for_each(|(kind, body)| replay_rows(*kind, body, &mut replayed.rows));
                        }
                    }
                    _ if !in_transaction => replayed.statements.push(sql),
                    _ => {}
                }
            }
            EventType::WRITE_ROWS | EventType::UPDATE_ROWS | EventType::DELETE_ROWS => {
                assert!(in_transaction, "{name}");
                match &mut branch {
                    Some((_, changes)) => changes.push((header.event_type, body[10..].to_vec())),
                    None => replay_rows(header.event_type, &body[10..], &mut replayed.rows),
                }
            }
            EventType::XID => in_transaction = !std::mem::replace(&mut in_transaction, false),
            EventType::XA_PREPARE => {
                let (xid, one_phase) = xa::decode_prepare(body).unwrap();
                let (started, changes) = branch.take().unwrap();
                assert_eq!(started, xid.to_string(), "{name}");
                match one_phase {
                    true => changes.iter().for_each(|(kind, body)| replay_rows(*kind, body, &mut replayed.rows)),
                    false => assert!(replayed.prepared.insert(started, changes).is_none(), "{name}"),
                }
                in_transaction = false;
            }
            EventType::ROTATE | EventType::STOP => {
                assert!(!in_transaction, "{name}");
                ended = true;
            }
            EventType::TABLE_MAP | EventType::ROWS_QUERY => assert!(in_transaction, "{name}"),
            other => panic!("{name}: an event of type {other}"),
        }
    }
    assert_eq!(at, bytes.len(), "{name} has whole events only");
    assert!(!in_transaction, "{name} has whole transactions only");
}

/// Rows of (INT, INT), both NOT NULL.
fn replay_rows(event_type: u8, body: &[u8], rows: &mut BTreeMap<i64, i64>) {
    let images = if event_type == EventType::UPDATE_ROWS { 2 } else { 1 };
    assert_eq!(body[0], 2, "columns");
    let images_of: Vec<(i64, i64)> = body[1 + images..]
        .chunks(9)
        .map(|image| {
            let int = |at: usize| i64::from(i32::from_le_bytes(image[at..at + 4].try_into().unwrap()));
            (int(1), int(5))
        })
        .collect();
    match event_type {
        EventType::WRITE_ROWS => images_of.iter().for_each(|(id, v)| assert_eq!(rows.insert(*id, *v), None, "row {id} is new")),
        EventType::DELETE_ROWS => images_of.iter().for_each(|(id, v)| assert_eq!(rows.remove(id), Some(*v), "row {id} is there")),
        _ => images_of.chunks(2).for_each(|pair| {
            assert_eq!(rows.remove(&pair[0].0), Some(pair[0].1), "row {} is there", pair[0].0);
            assert_eq!(rows.insert(pair[1].0, pair[1].1), None, "row {} is new", pair[1].0);
        }),
    }
}
