//! Commands of the protocol that are answered with the end of an answer alone: byte for byte as by MySQL 8.0.12.

mod common;
#[path = "common/raw.rs"]
mod raw;

use common::Server;
use raw::Raw;

const DEPRECATE_EOF: u32 = 1 << 24;

#[test]
fn an_end_is_an_eof_or_an_ok_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &[]);
    for (capabilities, end) in [(0, &[0xFE, 0, 0, 2, 0, 0, 0][..]), (DEPRECATE_EOF, &[0xFE, 0, 0, 2, 0][..])] {
        let mut c = Raw::connect(&server, capabilities, "libmysql");
        assert!(c.id > 0);
        // COM_SET_OPTION: several statements at once, and no longer.
        for option in [0, 1] {
            c.send(0, &[0x1B, option, 0]);
            assert_eq!(c.read(), end);
        }
        c.send(0, &[0x1B, 2, 0]);
        assert_eq!(c.read(), b"\xFF\x17\x04#08S01Unknown command");
        // COM_FIELD_LIST: behind each definition is the column in an empty row.
        c.ok("CREATE DATABASE IF NOT EXISTS d");
        c.ok("CREATE TABLE IF NOT EXISTS d.t (a INT)");
        c.ok("USE d");
        c.send(0, b"\x04t\0");
        let definition = c.read();
        assert!(definition.starts_with(b"\x03def\x01d\x01t\x01t\x01a\x01a\x0C") && definition.ends_with(b"\0\0\xFB"), "{definition:?}");
        assert_eq!(c.read(), end);
        c.ok("DO 1");
    }
}

#[test]
fn listed_fields_tell_their_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &[]);
    let mut c = Raw::connect(&server, 0, "libmysql");
    c.ok("CREATE DATABASE d");
    c.ok("USE d");
    c.ok("CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a1 VARCHAR(9) DEFAULT 'xä', a2 CHAR(3) NOT NULL, a3 DECIMAL(4,2) DEFAULT 7, \
        a4 DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, a5 ENUM('p', 'q') NOT NULL, a6 BIT(8) DEFAULT b'1000001', a7 INT ZEROFILL DEFAULT 5)");
    c.ok("CREATE VIEW v AS SELECT a3 AS a4, a1 + 1 AS b FROM t");
    let all: [&[u8]; 8] = [b"\x010", b"\x03x\xC3\xA4", b"\0", b"\x047.00", b"\x130000-00-00 00:00:00", b"\x01p", b"\x01A", b"\x0A0000000005"];
    let expected: [(&[u8], &[&[u8]]); 6] = [
        (b"\x04t\0", &all),
        (b"\x04t\0A_", &all[1..]),
        (b"\x04t\0%3", &all[3..4]),
        (b"\x04t\0i%", &all[..1]),
        (b"\x04t\0none", &[]),
        (b"\x04v\0", &[b"\x047.00", b"\xFB"]),
    ];
    for (request, values) in expected {
        c.send(0, request);
        for value in values {
            let packet = c.read();
            assert!(packet.ends_with(value), "{request:?}: {packet:?}");
        }
        assert_eq!(c.read()[0], 0xFE, "{request:?}");
    }
    c.send(0, b"\x04nothing\0");
    assert_eq!(c.read()[1..3], 1146u16.to_le_bytes());
}
