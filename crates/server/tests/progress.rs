//! Progress reports on the wire: MariaDB's packets before the answer of a long statement, to clients that know them and to no others.

mod common;
#[path = "common/raw.rs"]
mod raw;

use std::time::Duration;

use common::Server;
use raw::Raw;

const LOCAL_FILES: u32 = 1 << 7;
const PROGRESS: u32 = 1 << 29;

/// The reports before the answer, and the answer's first packet.
fn answer_of(c: &mut Raw) -> (Vec<Report>, Vec<u8>) {
    let mut reports = Vec::new();
    loop {
        let packet = c.read();
        if !packet.starts_with(&[0xFF, 0xFF, 0xFF]) {
            return (reports, packet);
        }
        reports.push(Report::of(&packet[3..]));
    }
}

#[derive(Debug)]
struct Report {
    stage: u8,
    stages: u8,
    thousandths: u32,
    text: String,
}

impl Report {
    /// As MariaDB's library reads it.
    fn of(body: &[u8]) -> Report {
        assert_eq!(body[0], 1, "one string");
        assert_eq!(body.len(), 7 + usize::from(body[6]));
        Report {
            stage: body[1],
            stages: body[2],
            thousandths: u32::from_le_bytes([body[3], body[4], body[5], 0]),
            text: String::from_utf8(body[7..].to_vec()).unwrap(),
        }
    }
}

/// A server with a file of 200 lines of 2000 bytes, and a statement that takes 15 ms for each of them.
fn server_with_file() -> (tempfile::TempDir, Server, String) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("lines"), lines(200)).unwrap();
    let option = format!("--secure-file-priv={}", directory.path().display());
    let server = Server::start(&directory.path().join("data"), &[&option]);
    let load = format!("LOAD DATA INFILE '{}' INTO TABLE d.t (@line) SET a = LENGTH(@line), b = SLEEP(0.015)", directory.path().join("lines").display());
    let mut c = Raw::connect(&server, 0, "libmysql");
    c.ok("CREATE DATABASE d");
    c.ok("CREATE TABLE d.t (a INT, b INT)");
    (directory, server, load)
}

/// So many lines of 2000 bytes.
fn lines(count: usize) -> String {
    ("x".repeat(1999) + "\n").repeat(count)
}

#[test]
fn reports_come_before_the_answer_of_who_knows_them() {
    let (_directory, server, load) = server_with_file();
    let mut c = Raw::connect(&server, PROGRESS, "libmariadb");
    c.ok("SET progress_report_time = 1");
    c.query(&load);
    let (reports, answer) = answer_of(&mut c);
    assert_eq!(answer[..2], [0, 200], "OK, with the rows");
    assert!((2..=6).contains(&reports.len()), "3 s and a report each second: {reports:?}");
    for report in &reports {
        // All of the lines that are asleep were read in two pieces of 256 KiB.
        assert_eq!((report.stage, report.stages, report.text.as_str()), (1, 2, "reading file"));
        assert!(report.thousandths == 65_536 || report.thousandths == 100_000, "{report:?}");
    }
    // Nothing follows the answer: the next one begins with number 1.
    std::thread::sleep(Duration::from_millis(1200));
    c.ok("DO 1");
    c.ok("SET progress_report_time = 0");
    c.query(&load);
    let (reports, answer) = answer_of(&mut c);
    assert!(reports.is_empty() && answer[0] == 0, "0 is never: {reports:?}");
}

#[test]
fn nobody_else_gets_one() {
    let (_directory, server, load) = server_with_file();
    // The bit alone may be anything of MySQL's; the library alone has nobody who listens.
    let clients = [(PROGRESS, "libmysql"), (0, "libmariadb"), (0, "libmysql")];
    std::thread::scope(|scope| {
        for (capabilities, library) in clients {
            let (server, load) = (&server, &load);
            scope.spawn(move || {
                let mut c = Raw::connect(server, capabilities, library);
                c.ok("SET progress_report_time = 1");
                c.query(load);
                let (reports, answer) = answer_of(&mut c);
                assert!(reports.is_empty(), "{capabilities:x} {library}: {reports:?}");
                assert_eq!(answer[..2], [0, 200]);
            });
        }
    });
}

#[test]
fn a_kill_is_answered_behind_the_reports() {
    let (_directory, server, load) = server_with_file();
    let mut c = Raw::connect(&server, PROGRESS, "libmariadb");
    c.ok("SET progress_report_time = 1");
    c.query(&load);
    let first = c.read();
    assert_eq!(first[..3], [0xFF, 0xFF, 0xFF], "a report came");
    Raw::connect(&server, 0, "libmysql").ok(&format!("KILL QUERY {}", c.id));
    let (_, answer) = answer_of(&mut c);
    assert_eq!((answer[0], u16::from_le_bytes([answer[1], answer[2]])), (0xFF, 1317), "query execution was interrupted");
    c.ok("DO 1");
}

#[test]
fn a_client_that_sends_its_file_is_left_alone_meanwhile() {
    let (_directory, server, load) = server_with_file();
    let mut c = Raw::connect(&server, PROGRESS | LOCAL_FILES, "libmariadb");
    c.ok("SET GLOBAL local_infile = 1");
    c.ok("SET progress_report_time = 1");
    c.query(&load.replace("INFILE", "LOCAL INFILE"));
    assert_eq!(c.read()[0], 0xFB, "the file is asked for");
    c.send(2, lines(100).as_bytes());
    // The server works on these lines; a report now would be out of order.
    std::thread::sleep(Duration::from_millis(2200));
    c.send(3, b"");
    let (_, answer) = answer_of(&mut c);
    assert_eq!(answer[..2], [0, 100]);
}
