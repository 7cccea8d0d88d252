//! Cursors on the wire, for a client that is sent an EOF behind the columns.

mod common;
#[path = "common/raw.rs"]
mod raw;

use common::Server;
use raw::Raw;

const DEPRECATE_EOF: u32 = 1 << 24;
const CURSOR_EXISTS: u16 = 64;

fn is_eof(packet: &[u8]) -> bool {
    packet[0] == 0xFE && packet.len() < 9
}

fn prepare(c: &mut Raw, sql: &str) -> u32 {
    c.send(0, &[b"\x16", sql.as_bytes()].concat());
    let ok = c.read();
    assert_eq!(ok[0], 0, "{sql}: {ok:?}");
    let columns = u16::from_le_bytes([ok[5], ok[6]]);
    if columns > 0 {
        for _ in 0..columns {
            c.read();
        }
        assert!(is_eof(&c.read()), "{sql}");
    }
    u32::from_le_bytes(ok[1..5].try_into().unwrap())
}

fn rows(c: &mut Raw) -> usize {
    let mut rows = 0;
    while !is_eof(&c.read()) {
        rows += 1;
    }
    rows
}

/// Executes with CURSOR_TYPE_READ_ONLY: whether there is a cursor, else how many rows came.
fn execute(c: &mut Raw, statement: u32) -> Option<usize> {
    c.send(0, &[&[0x17], &statement.to_le_bytes()[..], &[1], &1u32.to_le_bytes()[..]].concat());
    let count = c.read();
    assert_eq!(count.len(), 1, "{count:?}");
    for _ in 0..count[0] {
        c.read();
    }
    let end = c.read();
    assert!(is_eof(&end), "behind the columns: {end:?}");
    if u16::from_le_bytes([end[3], end[4]]) & CURSOR_EXISTS != 0 { None } else { Some(rows(c)) }
}

#[test]
fn only_queries_open_cursors() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &[]);
    let mut c = Raw::connect(&server, DEPRECATE_EOF, "libmysql");
    assert!(c.id > 0);
    c.ok("CREATE DATABASE d");
    c.ok("CREATE TABLE d.t (id INT PRIMARY KEY, a INT)");
    c.ok("INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3)");
    for (sql, count) in [("SHOW TABLES FROM d", 1), ("DESCRIBE d.t", 2), ("EXPLAIN SELECT * FROM d.t", 1), ("CHECK TABLE d.t", 1)] {
        let statement = prepare(&mut c, sql);
        assert_eq!(execute(&mut c, statement), Some(count), "{sql}");
    }
    let statement = prepare(&mut c, "SELECT id FROM d.t");
    assert_eq!(execute(&mut c, statement), None);
    for expected in [2, 1] {
        c.send(0, &[&[0x1C], &statement.to_le_bytes()[..], &2u32.to_le_bytes()[..]].concat());
        assert_eq!(rows(&mut c), expected);
    }
    c.ok("DO 1");
}
