//! Clients that leave while their statement runs.

mod common;
#[path = "common/raw.rs"]
mod raw;

use std::net::Shutdown;
use std::time::Duration;

use common::Server;
use raw::Raw;

/// The one value of a query.
fn value(c: &mut Raw, sql: &str) -> String {
    c.query(sql);
    assert_eq!(c.read(), [1], "one column: {sql}");
    c.read();
    let row = c.read();
    assert_eq!(c.read()[0], 0xFE, "one row: {sql}");
    String::from_utf8(row[1..].to_vec()).unwrap()
}

/// Asks until the answer is this.
fn wait_for(c: &mut Raw, sql: &str, wanted: &str) {
    for _ in 0..600 {
        if value(c, sql) == wanted {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{sql} never came to {wanted}");
}

#[test]
fn a_query_ends_with_its_client_and_a_change_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &[]);
    let mut other = Raw::connect(&server, 0, "libmysql");
    other.ok("CREATE DATABASE d");
    other.ok("CREATE TABLE d.t (a INT, b INT)");

    let mut reader = Raw::connect(&server, 0, "libmysql");
    reader.query("SELECT SLEEP(3600)");
    // Sent ahead: it is not lost.
    reader.query("INSERT INTO d.t VALUES (1, 1)");
    reader.stream.shutdown(Shutdown::Write).unwrap();
    wait_for(&mut other, "SELECT COUNT(*) FROM d.t", "1");
    wait_for(&mut other, &format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {}", reader.id), "0");

    let mut writer = Raw::connect(&server, 0, "libmysql");
    writer.query("INSERT INTO d.t VALUES (2, SLEEP(3))");
    drop(writer);
    wait_for(&mut other, "SELECT COUNT(*) FROM d.t WHERE a = 2 AND b = 0", "1");
}
