//! Files that queries spill to do not outlive the server, however it ends.

mod common;
#[path = "common/raw.rs"]
mod raw;

use std::path::Path;
use std::time::{Duration, Instant};

use common::Server;
use raw::Raw;

/// Spilled files, and their bytes.
fn spilled(data: &Path) -> (usize, u64) {
    fn add(folder: &Path, sum: &mut (usize, u64)) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            match entry.path() {
                path if path.is_dir() => add(&path, sum),
                _ => *sum = (sum.0 + 1, sum.1 + entry.metadata().map_or(0, |m| m.len())),
            }
        }
    }
    let mut sum = (0, 0);
    add(&data.join("#highkey_tmp"), &mut sum);
    sum
}

#[test]
fn spilled_files_are_gone_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let options = ["--parallel-memory-limit=16777216"];
    let mut server = Server::start(&data, &options);
    let mut c = Raw::connect(&server, 0, "libmysql");
    c.ok("CREATE DATABASE d");
    c.ok("CREATE TABLE d.t (id INT PRIMARY KEY)");
    c.ok("INSERT INTO d.t WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 1000) SELECT n FROM r");
    // A million rows of 200 bytes, sorted in 16 MiB.
    c.query("SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY pad) n FROM (SELECT CONCAT(a.id * 7919 % 1000, REPEAT(b.id, 60)) pad FROM d.t a JOIN d.t b) x) y WHERE n > 5");
    let begun = Instant::now();
    while spilled(&data).1 < 1 << 20 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is spilled");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SIGKILL.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert!(spilled(&data).1 >= 1 << 20, "the crash leaves them");

    let server = Server::start(&data, &options);
    assert_eq!(spilled(&data), (0, 0));
    Raw::connect(&server, 0, "libmysql").ok("INSERT INTO d.t VALUES (1001)");
}
