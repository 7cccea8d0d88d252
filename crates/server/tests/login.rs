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

/// As in MySQL 8.0.12: whoever can end others is let in when nobody else is.
#[test]
fn one_connection_more_is_for_who_administers_them() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &["--max-connections=1"]);
    let login = |user: &str| Raw::login(&server, user, 0, "libmysql").map_err(|error| u16::from_le_bytes([error[1], error[2]]));
    let mut first = Raw::connect(&server, 0, "libmysql");
    assert!(first.id > 0);
    first.ok("CREATE USER u");
    // Those that are refused leave in their own time.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut second = loop {
        assert_eq!(login("u").err(), Some(1040));
        match login("root") {
            Ok(root) => break root,
            Err(code) => assert!(code == 1040 && std::time::Instant::now() < until, "{code}"),
        }
    };
    assert_eq!(login("root").err(), Some(1040));
    second.ok("DO 1");
}
