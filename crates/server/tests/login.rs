//! Who is let in, and what others are told.

mod common;
#[path = "common/raw.rs"]
mod raw;

use common::Server;
use raw::Raw;

/// The error that COM_CHANGE_USER ends in.
fn refused(server: &Server, user: &str, response: &[u8]) -> u16 {
    let mut c = Raw::connect(server, 0, "libmysql");
    assert!(c.id > 0);
    // No response, no database, a collation, the plugin.
    let rest = &b"\0\0\0\x2D\0caching_sha2_password\0"[..];
    c.send(0, &[b"\x11", user.as_bytes(), rest].concat());
    assert_eq!(c.read()[0], 0xFE, "the server asks for a response to its nonce");
    c.send(2, response);
    let answer = c.read();
    assert_eq!(answer[0], 0xFF, "{answer:?}");
    u16::from_le_bytes([answer[1], answer[2]])
}

/// As in MySQL 8.0.12.
#[test]
fn who_does_not_know_the_password_is_not_told_that_the_account_is_locked() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &[]);
    let mut root = Raw::connect(&server, 0, "libmysql");
    root.ok("CREATE ROLE r");
    root.ok("CREATE USER locked IDENTIFIED WITH mysql_native_password BY 'x' ACCOUNT LOCK");
    assert_eq!(refused(&server, "r", b""), 3118);
    assert_eq!(refused(&server, "r", &[7; 32]), 1045);
    assert_eq!(refused(&server, "locked", &[7; 20]), 1045);
    assert_eq!(refused(&server, "nobody", &[7; 32]), 1045);
}
