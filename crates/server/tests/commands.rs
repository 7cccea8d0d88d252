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
        // COM_FIELD_LIST.
        c.ok("CREATE DATABASE IF NOT EXISTS d");
        c.ok("CREATE TABLE IF NOT EXISTS d.t (a INT)");
        c.ok("USE d");
        c.send(0, b"\x04t\0");
        assert_eq!(c.read()[..4], *b"\x03def");
        assert_eq!(c.read(), end);
        c.ok("DO 1");
    }
}
