//! Prints binary logs of MySQL 8.0, and ours, as MySQL 8.0's `mysqlbinlog` does, which is not installed with the servers that we compare with
//! (`scripts/replay.sh`): `as_text FILE...`. Comments and headers of events are left out. Follows `Query_log_event::print_query_header` and
//! `process_event` of mysqlbinlog.cc.

use highkey_binlog::event::{Header, header_flags};
use highkey_binlog::{EventType, FileReader, Uuid, xa};

const ROWS_STMT_END: u16 = 1;

/// What of a session's state has been printed, so that it is not printed again.
#[derive(Default)]
struct Printed {
    schema: Vec<u8>,
    flags: Option<u32>,
    sql_mode: Option<u64>,
    auto_increment: Option<(u16, u16)>,
    charset: Option<[u16; 3]>,
    time_zone: Vec<u8>,
    thread_id: Option<u32>,
}

fn main() {
    println!("/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;");
    println!("/*!50003 SET @OLD_COMPLETION_TYPE=@@COMPLETION_TYPE,COMPLETION_TYPE=0*/;");
    println!("DELIMITER /*!*/;");
    let mut printed = Printed::default();
    for path in std::env::args().skip(1) {
        print_file(&path, &mut printed);
    }
    println!("SET @@SESSION.GTID_NEXT= 'AUTOMATIC' /* added by mysqlbinlog */ /*!*/;");
    println!("DELIMITER ;");
    println!("# End of log file");
    println!("/*!50003 SET COMPLETION_TYPE=@OLD_COMPLETION_TYPE*/;");
    println!("/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=0*/;");
}

fn print_file(path: &str, printed: &mut Printed) {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut reader = FileReader::new(&bytes[..]);
    // Row events that wait for the last one of their statement.
    let mut rows: Vec<Vec<u8>> = Vec::new();
    while let Some(event) = reader.next_event().unwrap_or_else(|e| panic!("{path}: {e}")) {
        let (kind, body) = (event.header.event_type, event.body());
        match kind {
            EventType::FORMAT_DESCRIPTION => {
                println!("SET @@SESSION.GTID_NEXT= 'AUTOMATIC' /* added by mysqlbinlog */ /*!*/;");
                println!("ROLLBACK/*!*/;");
                print_binlog(&[event.sealed.to_vec()]);
            }
            EventType::GTID => {
                let sid = Uuid(body[1..17].try_into().expect("16 bytes"));
                println!("SET @@SESSION.GTID_NEXT= '{sid}:{}'/*!*/;", u64::from_le_bytes(body[17..25].try_into().expect("8 bytes")));
            }
            EventType::ANONYMOUS_GTID => println!("SET @@SESSION.GTID_NEXT= 'ANONYMOUS'/*!*/;"),
            EventType::QUERY => print_query(&event.header, body, printed),
            EventType::XID => println!("COMMIT/*!*/;"),
            EventType::XA_PREPARE => {
                let (xid, one_phase) = xa::decode_prepare(body).expect("a name");
                println!("{} {xid}{}\n/*!*/;", if one_phase { "XA COMMIT" } else { "XA PREPARE" }, if one_phase { " ONE PHASE" } else { "" });
            }
            EventType::TABLE_MAP | EventType::ROWS_QUERY => rows.push(event.sealed.to_vec()),
            EventType::WRITE_ROWS | EventType::UPDATE_ROWS | EventType::DELETE_ROWS => {
                rows.push(event.sealed.to_vec());
                if u16::from_le_bytes([body[6], body[7]]) & ROWS_STMT_END != 0 {
                    print_binlog(&std::mem::take(&mut rows));
                }
            }
            EventType::PREVIOUS_GTIDS | EventType::ROTATE | EventType::STOP => {}
            other => panic!("{path}: an event of type {other}"),
        }
    }
}

fn print_binlog(events: &[Vec<u8>]) {
    println!("\nBINLOG '");
    for event in events {
        print!("{}", base64(event));
    }
    println!("'/*!*/;");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for line in bytes.chunks(57) {
        for chunk in line.chunks(3) {
            let group = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
            out.extend((0..4).map(|i| if i <= chunk.len() { DIGITS[(group >> (18 - 6 * i) & 63) as usize] as char } else { '=' }));
        }
        out.push('\n');
    }
    out
}

fn print_query(header: &Header, body: &[u8], printed: &mut Printed) {
    let u16_at = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let u32_at = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let u64_at = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let thread_id = u32_at(body, 0);
    let (schema_len, variables_len) = (body[8] as usize, u16_at(body, 11) as usize);
    let (mut variables, rest) = body[13..].split_at(variables_len);
    let (schema, sql) = (&rest[..schema_len], &rest[schema_len + 1..]);
    if header.flags & header_flags::SUPPRESS_USE == 0 && !schema.is_empty() && printed.schema != schema {
        println!("use `{}`/*!*/;", String::from_utf8_lossy(schema).replace('`', "``"));
        printed.schema = schema.to_vec();
    }
    let mut micros = None;
    let mut settings = String::new();
    let mut take = |n: usize| {
        let (taken, rest) = variables.split_at(n.min(variables.len()));
        variables = rest;
        taken
    };
    while let [code] = take(1) {
        match code {
            0 => {
                let flags = u32_at(take(4), 0);
                if printed.flags.replace(flags) != Some(flags) {
                    let [null, autocommit, keys, unique] = [14, 19, 26, 27].map(|bit| flags >> bit & 1);
                    settings += &format!(
                        "SET @@session.foreign_key_checks={}, @@session.sql_auto_is_null={null}, @@session.unique_checks={}, @@session.autocommit={}/*!*/;\n",
                        1 - keys,
                        1 - unique,
                        1 - autocommit
                    );
                }
            }
            1 => {
                let mode = u64_at(take(8), 0);
                if printed.sql_mode.replace(mode) != Some(mode) {
                    settings += &format!("SET @@session.sql_mode={mode}/*!*/;\n");
                }
            }
            3 => {
                let bytes = take(4);
                let pair = (u16_at(bytes, 0), u16_at(bytes, 2));
                if printed.auto_increment.replace(pair) != Some(pair) {
                    settings += &format!("SET @@session.auto_increment_increment={}, @@session.auto_increment_offset={}/*!*/;\n", pair.0, pair.1);
                }
            }
            4 => {
                let bytes = take(6);
                let charset = [0, 2, 4].map(|at| u16_at(bytes, at));
                if printed.charset.replace(charset) != Some(charset) {
                    let [client, connection, server] = charset;
                    // The client's own charset is utf8mb4 throughout.
                    settings += &format!("SET @@session.character_set_client={client},@@session.collation_connection={connection},@@session.collation_server={server}/*!*/;\n");
                }
            }
            5 => {
                let length = take(1)[0] as usize;
                let zone = take(length);
                if !zone.is_empty() && printed.time_zone != zone {
                    settings += &format!("SET @@session.time_zone='{}'/*!*/;\n", String::from_utf8_lossy(zone));
                    printed.time_zone = zone.to_vec();
                }
            }
            6 => {
                let length = take(1)[0] as usize;
                take(length);
            }
            7 => settings += &format!("SET @@session.lc_time_names={}/*!*/;\n", u16_at(take(2), 0)),
            8 => match u16_at(take(2), 0) {
                0 => settings += "SET @@session.collation_database=DEFAULT/*!*/;\n",
                id => settings += &format!("SET @@session.collation_database={id}/*!*/;\n"),
            },
            9 | 17 => drop(take(8)),
            10 => drop(take(4)),
            11 => {
                for _ in 0..2 {
                    let length = take(1)[0] as usize;
                    take(length);
                }
            }
            12 => {
                let count = take(1)[0];
                for _ in 0..if count == 254 { 0 } else { count } {
                    while take(1).first().is_some_and(|b| *b != 0) {}
                }
            }
            13 => micros = Some(take(3).iter().rev().fold(0u32, |n, b| n << 8 | u32::from(*b))),
            16 | 19 | 20 => drop(take(1)),
            18 => settings += &format!("/*!80011 SET @@session.default_collation_for_utf8mb4={}*//*!*/;\n", u16_at(take(2), 0)),
            other => panic!("a status variable {other}"),
        }
    }
    match micros {
        Some(micros) => println!("SET TIMESTAMP={}.{micros:06}/*!*/;", header.timestamp),
        None => println!("SET TIMESTAMP={}/*!*/;", header.timestamp),
    }
    if printed.thread_id.replace(thread_id) != Some(thread_id) {
        println!("SET @@session.pseudo_thread_id={thread_id}/*!*/;");
    }
    print!("{settings}");
    use std::io::Write as _;
    let mut out = std::io::stdout();
    out.write_all(sql).and_then(|()| out.write_all(b"\n/*!*/;\n")).expect("writing");
}
