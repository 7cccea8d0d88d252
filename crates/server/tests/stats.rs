//! `highkey stats` end to end: the same figures of a running server and of its stopped directory, and clear errors.

mod common;

use std::process::{Command, Output};

use common::Server;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};

fn url(server: &Server) -> String {
    format!("mysql://root@127.0.0.1:{}", server.port)
}

async fn connect(server: &Server) -> Conn {
    let opts = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(server.port).user(Some("root")).prefer_socket(false);
    Conn::new(opts).await.expect("the server accepts")
}

fn stats(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_highkey")).arg("stats").args(arguments).output().expect("the binary starts")
}

/// What a successful run printed.
fn printed(arguments: &[&str]) -> String {
    let output = stats(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A failed run ends with code 1, prints nothing and says why in one line.
fn refused(arguments: &[&str], word: &str) {
    let output = stats(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty() && said.contains(word) && !said.contains("panicked"), "{arguments:?}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_and_its_stopped_directory_tell_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let datadir = directory.path().join("data");
    let dir = datadir.to_str().unwrap();
    refused(&["--datadir", dir], "is not a directory");
    refused(&["--datadir", directory.path().to_str().unwrap()], "is not a data directory");
    assert!(!datadir.exists() && std::fs::read_dir(directory.path()).unwrap().count() == 0, "nothing is made");

    let server = Server::start(&datadir, &[]);
    let mut c = connect(&server).await;
    for sql in [
        "CREATE DATABASE sbtest",
        "CREATE DATABASE other",
        "CREATE TABLE sbtest.sb_order (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, KEY k (k))",
        "CREATE TABLE sbtest.long_values (v LONGTEXT)",
        "CREATE TABLE other.sb_order (id INT PRIMARY KEY)",
        "INSERT INTO sbtest.long_values VALUES (REPEAT('x', 50000))",
    ] {
        c.query_drop(sql).await.unwrap();
    }
    for _ in 0..10 {
        let rows: Vec<String> = (0..500).map(|n| format!("({}, REPEAT('c', 120))", n * 7919 % 500)).collect();
        c.query_drop(format!("INSERT INTO sbtest.sb_order (k, c) VALUES {}", rows.join(", "))).await.unwrap();
    }
    c.query_drop("ANALYZE TABLE sbtest.sb_order, sbtest.long_values, other.sb_order").await.unwrap();

    let url = url(&server);
    let live = printed(&["--url", &url]);
    assert!(live.starts_with("<INDEX STATISTICS>\ntable: other/sb_order, index: PRIMARY, space id: "), "{live}");
    let order = printed(&["--url", &url, "--tables", "sbtest[.]sb_order*"]);
    let lines: Vec<&str> = order.lines().collect();
    assert!(lines[1].starts_with("table: sbtest/sb_order, index: PRIMARY, space id: ") && lines[1].contains(", root page: "), "{order}");
    assert_eq!(lines[2], "estimated statistics in dictionary:");
    assert!(lines[3].starts_with("key vals: 5000, leaf pages: ") && lines[3].contains(", size pages: "), "{order}");
    assert_eq!(lines[4], "real statistics:");
    assert!(lines[5].starts_with("level 1 pages: pages=1, data="), "{order}");
    assert!(lines[6].starts_with("leaf pages: recs=5000, pages="), "{order}");
    assert!(lines[7].is_empty() && lines[8].starts_with("table: sbtest/sb_order, index: k, space id: "), "{order}");
    assert!(!order.contains("long_values") && !order.contains("other/"), "{order}");
    let long = printed(&["--url", &url, "--tables", "^sbtest/long"]);
    assert!(long.contains("index: GEN_CLUST_INDEX") && long.contains("\nexternal pages: pages=4, data=50"), "{long}");
    assert_eq!(printed(&["--url", &url, "--tables", "nothing"]), "<INDEX STATISTICS>\n");

    refused(&["--datadir", dir], "in use");
    refused(&["--url", &url, "--tables", "sb[order"], "--tables");
    refused(&["--url", "no url"], "--url");
    assert_eq!(stats(&[]).status.code(), Some(2), "nothing to read");
    assert_eq!(stats(&["--url", &url, "--datadir", dir]).status.code(), Some(2), "one of them");
    refused(&["--url", "mysql://nobody@127.0.0.1:1"], "cannot connect");

    c.query_drop("SHUTDOWN").await.unwrap();
    let mut server = server;
    assert!(server.child.wait().unwrap().success());
    refused(&["--url", &url], "cannot connect");
    refused(&["--datadir", dir, "--tables", "sb[order"], "--tables");
    assert_eq!(printed(&["--datadir", dir]), live);
    // It leaves the directory as it found it: closed cleanly, and to be read again.
    assert_eq!(printed(&["--datadir", dir, "--tables", "sbtest[.]sb_order*"]), order);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_the_directory_is_recovered_first() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let mut c = connect(&server).await;
    c.query_drop("CREATE DATABASE d").await.unwrap();
    c.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, pad CHAR(200) NOT NULL)").await.unwrap();
    let rows: Vec<String> = (0..1000).map(|n| format!("({n}, 'x')")).collect();
    c.query_drop(format!("INSERT INTO d.t VALUES {}", rows.join(", "))).await.unwrap();
    drop(server);
    let dir = directory.path().to_str().unwrap();
    let first = printed(&["--datadir", dir]);
    assert!(first.contains("leaf pages: recs=1000, pages="), "{first}");
    assert_eq!(printed(&["--datadir", dir]), first);
}
