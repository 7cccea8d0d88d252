//! Clients that leave, or that read nothing, while their statement runs; many that wait.

mod common;
#[path = "common/raw.rs"]
mod raw;

use std::net::Shutdown;
use std::time::{Duration, Instant};

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

#[test]
fn a_client_that_reads_nothing_is_not_waited_for_once_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &[]);
    let mut other = Raw::connect(&server, 0, "libmysql");
    other.ok("CREATE DATABASE d");
    // More than the system keeps of what is sent.
    other.ok("CREATE TABLE d.big (a LONGTEXT)");
    other.ok("INSERT INTO d.big VALUES (REPEAT('x', 2000000))");
    for _ in 0..5 {
        other.ok("INSERT INTO d.big SELECT a FROM d.big");
    }
    let connections = |c: &Raw| format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {}", c.id);
    let long = Duration::from_secs(40);

    // For 60 seconds (net_write_timeout), with its locks, unless somebody ends it.
    let mut killed = Raw::connect(&server, 0, "libmysql");
    killed.ok("BEGIN");
    killed.query("SELECT * FROM d.big FOR UPDATE");
    std::thread::sleep(Duration::from_secs(1));
    let began = Instant::now();
    other.ok(&format!("KILL {}", killed.id));
    wait_for(&mut other, &connections(&killed), "0");
    assert!(began.elapsed() < long);

    // Or unless it has said how long.
    let mut hasty = Raw::connect(&server, 0, "libmysql");
    hasty.ok("SET net_write_timeout = 1");
    let began = Instant::now();
    hasty.query("SELECT * FROM d.big");
    wait_for(&mut other, &connections(&hasty), "0");
    assert!(began.elapsed() < long);
}

/// A replica that comes back does not wait for its old connection to be noticed as dead, and is one replica.
#[test]
fn a_replica_that_comes_back_ends_its_older_stream() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &["--log-bin", "--rpl-semi-sync-source-enabled=ON"]);
    let mut other = Raw::connect(&server, 0, "libmysql");
    let follow = |uuid: &str, server_id: u32| {
        let mut c = Raw::connect(&server, 0, "libmysql");
        c.ok(&format!("SET @slave_uuid = '{uuid}', @rpl_semi_sync_replica = 1"));
        c.send(0, &[&[0x12, 4, 0, 0, 0, 0, 0][..], &server_id.to_le_bytes(), b"binlog.000001"].concat());
        c
    };
    let streams = "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Binlog Dump'";
    let first = follow("aaaaaaaa-0000-0000-0000-000000000001", 7);
    let _second = follow("aaaaaaaa-0000-0000-0000-000000000002", 7);
    let program = follow("", 9);
    wait_for(&mut other, streams, "3");
    let _again = follow("AAAAAAAA-0000-0000-0000-000000000001", 8);
    let _program_again = follow("", 9);
    wait_for(&mut other, &format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id IN ({}, {})", first.id, program.id), "0");
    wait_for(&mut other, streams, "3");
    wait_for(&mut other, "SELECT CAST(variable_value AS UNSIGNED) FROM performance_schema.global_status WHERE variable_name = 'Rpl_semi_sync_source_clients'", "3");
}

/// Each of them holds a thread: more of them than tokio allows unless it is told to (512).
#[test]
fn sessions_that_wait_for_a_lock_leave_threads_for_who_releases_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"), &["--max-connections=700"]);
    let mut holder = Raw::connect(&server, 0, "libmysql");
    assert_eq!(value(&mut holder, "SELECT GET_LOCK('x', 0)"), "1");
    let waiters: Vec<Raw> = (0..550)
        .map(|_| {
            let mut waiter = Raw::connect(&server, 0, "libmysql");
            waiter.query("SELECT GET_LOCK('x', -1)");
            waiter
        })
        .collect();
    wait_for(&mut holder, "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'", "550");
    let mut other = Raw::connect(&server, 0, "libmysql");
    other.ok(&format!("KILL {}", waiters[0].id));
    wait_for(&mut other, "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'", "549");
    assert_eq!(value(&mut holder, "SELECT RELEASE_LOCK('x')"), "1");
}
