//! LOAD DATA from files and clients that are not as they should be.

use async_trait::async_trait;
use bytes::Bytes;
use highkey_types::{MySqlError, Value};

use super::{Answer, Client, Collector, Column, LocalInfile, ResultSink, Server, table};

/// Sends the beginning of its file, and then nothing.
struct Silent(Option<Bytes>);

#[async_trait]
impl LocalInfile for Silent {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, MySqlError> {
        match self.0.take() {
            Some(chunk) => Ok(Some(chunk)),
            None => std::future::pending().await,
        }
    }
}

struct SilentClient;

#[async_trait]
impl ResultSink for SilentClient {
    fn columns(&mut self, _: &[Column]) {}
    fn row(&mut self, _: &[Value]) {}
    async fn local_infile(&mut self, _: &str) -> Result<Box<dyn LocalInfile + '_>, MySqlError> {
        Ok(Box::new(Silent(Some(Bytes::from_static(b"2\tb\n3\tc")))))
    }
}

/// The connection ends, and with it what the statement has locked.
#[tokio::test]
async fn a_client_that_falls_silent_is_not_waited_for() {
    let server = Server::new();
    let (mut c, mut other) = (server.client().await, server.client().await);
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)").await;
    c.ok("INSERT INTO t VALUES (1, 'a')").await;
    c.ok("SET net_read_timeout = 1").await;
    for sql in ["LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS ENCLOSED BY '\"'", "LOAD DATA LOCAL INFILE 'x' INTO TABLE t (nope)"] {
        let ended = c.session.execute(sql.as_bytes(), &mut SilentClient).await;
        // The last one fails before it asks for the file.
        assert_eq!(ended.map_err(|e| e.kind()), if sql.ends_with("(nope)") { Ok(()) } else { Err(std::io::ErrorKind::TimedOut) }, "{sql}");
    }
    c.session.close().await;
    other.ok("SET innodb_lock_wait_timeout = 1").await;
    other.ok("INSERT INTO t VALUES (2, 'mine'), (3, 'mine')").await;
    other.ok("DROP TABLE t").await;
}

/// Such a file is one line: it is not kept in memory for ever.
#[tokio::test]
async fn a_file_without_the_terminator_is_refused() {
    let server = Server::with(|settings| settings.set("max_allowed_packet", Some("1048576")).unwrap());
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT, b TEXT)").await;
    let path = server.dir.path().join("lines");
    std::fs::write(&path, "1\tabcdefghijklmnopqrstuvwxyz\n".repeat(200_000)).unwrap();
    let load = |rest: &str| format!("LOAD DATA INFILE '{}' IGNORE INTO TABLE t {rest}", path.display());
    for rest in [
        "LINES TERMINATED BY '\\r\\n'",
        "FIELDS ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'",
        "LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES",
        "FIELDS ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES",
    ] {
        assert_eq!(c.error(&load(rest)).await.0, 1153, "{rest}");
        assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "0", "{rest}");
    }
    for rest in ["", "FIELDS ENCLOSED BY '\"'", "IGNORE 199990 LINES", "FIELDS ENCLOSED BY '\"' IGNORE 199990 LINES", "LINES STARTING BY '1' (a, b)", "LINES STARTING BY 'there is no such prefix'"] {
        c.ok("TRUNCATE TABLE t").await;
        c.ok(&load(rest)).await;
        let expected = match rest {
            _ if rest.contains("IGNORE") => "10",
            _ if rest.contains("no such") => "0",
            _ => "200000",
        };
        assert_eq!(c.value("SELECT COUNT(*) FROM t").await, expected, "{rest}");
    }
}

/// Lines come one after the other.
#[tokio::test]
async fn a_line_that_is_too_long_comes_behind_those_before_it() {
    let server = Server::with(|settings| settings.set("max_allowed_packet", Some("1048576")).unwrap());
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)").await;
    let path = server.dir.path().join("lines");
    for how in ["", "FIELDS ENCLOSED BY '\"'", "CHARACTER SET gbk"] {
        for (lines, code) in [("1\ta\nx\tb\n", 1366), ("1\ta\n1\tb\n", 1062), ("1\ta\n2\tb\n", 1153)] {
            std::fs::write(&path, format!("{lines}3\t\"{}", "c".repeat(2_300_000))).unwrap();
            let load = format!("LOAD DATA INFILE '{}' INTO TABLE t {how}", path.display());
            assert_eq!(c.error(&load).await.0, code, "{how} {lines}");
            assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "0", "{how} {lines}");
        }
    }
}

async fn load(c: &mut Client, how: &str, file: &[u8]) -> Answer {
    let mut sink = Collector { file: file.to_vec(), ..Collector::default() };
    c.session.execute(format!("LOAD DATA LOCAL INFILE 'x' {how}").as_bytes(), &mut sink).await.unwrap();
    sink.answers.remove(0)
}

/// As MySQL 8.0.12 numbers them.
#[tokio::test]
async fn the_number_of_a_line_that_is_left_out_goes_to_the_next() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT UNIQUE, v VARCHAR(5))").await;
    c.ok("INSERT INTO t (k, v) VALUES (5, 'old')").await;
    load(&mut c, "IGNORE INTO TABLE t (k, v)", b"1\ta\n5\tdup\n2\tb\n1\tdup2\n3\tc\n").await;
    let said: Vec<String> = c.rows("SHOW WARNINGS").await.into_iter().map(|row| row[2].clone()).collect();
    assert_eq!(said, ["Duplicate entry '5' for key 'k'", "Duplicate entry '1' for key 'k'"]);
    assert_eq!(c.rows("SELECT * FROM t ORDER BY id").await, table("1 5 old|2 1 a|3 2 b|4 3 c"));
    assert_eq!(c.value("SELECT LAST_INSERT_ID()").await, "2");
    c.ok("INSERT INTO t (k) VALUES (6)").await;
    assert_eq!(c.value("SELECT MAX(id) FROM t").await, "5");
}

/// A number that there is none behind may be a row's already: that row stays.
#[tokio::test]
async fn replacing_lines_do_not_take_the_last_number_of_a_row() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id TINYINT AUTO_INCREMENT PRIMARY KEY, k INT, v VARCHAR(5))").await;
    c.ok("INSERT INTO t VALUES (127, 1, 'x')").await;
    let answer = load(&mut c, "REPLACE INTO TABLE t (id, k, v)", b"5\t5\tfive\n\\N\t2\ta\n").await;
    assert!(matches!(&answer, Answer::Error(e) if e.code == 1062), "{answer:?}");
    assert_eq!(c.rows("SELECT * FROM t").await, table("127 1 x"));
    c.ok("DELETE FROM t").await;
    c.ok("ALTER TABLE t AUTO_INCREMENT = 1").await;
    load(&mut c, "REPLACE INTO TABLE t (id, k, v)", b"5\t5\tfive\n\\N\t2\ta\n5\t6\tsix\n\\N\t3\tb\n").await;
    assert_eq!(c.rows("SELECT * FROM t ORDER BY id").await, table("5 6 six|6 2 a|7 3 b"));
}

/// As MySQL 8.0.12: lines come one after the other, whatever is wrong with them.
#[tokio::test]
async fn a_duplicate_is_told_before_a_later_line_that_is_no_row() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)").await;
    let path = server.dir.path().join("lines");
    for (how, file) in [
        ("", "1\t1\n1\t2\nx\t3\n"),
        ("FIELDS ENCLOSED BY '\"'", "1\t1\n1\t2\nx\t3\n"),
        // Line by line.
        ("CHARACTER SET gbk", "1\t1\n1\t2\nx\t3\n"),
        ("(a, @b) SET b = CONCAT(@b, '')", "1\t1\n1\t2\n3\tx\n"),
    ] {
        std::fs::write(&path, file).unwrap();
        let load = format!("LOAD DATA INFILE '{}' INTO TABLE t {how}", path.display());
        assert_eq!(c.error(&load).await, (1062, "Duplicate entry '1' for key 'PRIMARY'".to_owned()), "{how}");
        std::fs::write(&path, file.replacen("1\t2", "2\t2", 1)).unwrap();
        assert_ne!(c.error(&load).await.0, 1062, "{how}");
        assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "0", "{how}");
    }
}

/// Of several blocks, which are cut where lines end and not within quotes.
#[tokio::test]
async fn a_file_of_enclosed_fields_is_read_in_blocks() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40), c VARCHAR(40))").await;
    let path = server.dir.path().join("lines");
    let mut file = String::from("a,\"b\n");
    for n in 0..100_000 {
        file += &match n % 4 {
            0 => format!("{n},\"a,b\",\"two\nlines\"\n"),
            1 => format!("\"{n}\",\"say \"\"so\"\"\",NULL\n"),
            2 => format!("{n},a\"b\",\\N\n"),
            _ => format!("{n},\"a\"b\",\"\\\"\n\"\n"),
        };
    }
    std::fs::write(&path, &file).unwrap();
    assert!(file.len() > 3 << 19, "of several blocks");
    let load = |ignore: &str| format!("LOAD DATA INFILE '{}' {ignore} INTO TABLE t FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' IGNORE 1 LINES", path.display());
    c.ok(&load("")).await;
    let counted = c.rows("SELECT a % 4, b, REPLACE(c, '\\n', '~'), COUNT(*) FROM t GROUP BY 1, 2, 3 ORDER BY 1").await;
    let expected = [["0", "a,b", "two~lines", "25000"], ["1", "say \"so\"", "NULL", "25000"], ["2", "a\"b\"", "NULL", "25000"], ["3", "a\"b", "\"~", "25000"]];
    assert_eq!(counted, expected);
    // A row that the session has to make, among the others.
    c.ok("TRUNCATE TABLE t").await;
    std::fs::write(&path, file.replacen("70000,\"a,b\"", "70000x,\"a,b\"", 1)).unwrap();
    c.ok(&load("IGNORE")).await;
    let warnings = c.rows("SHOW WARNINGS").await;
    assert!(warnings.len() == 1 && warnings[0][2].ends_with("at row 70001"), "{warnings:?}");
    assert_eq!(c.rows("SELECT COUNT(*), SUM(a = 70000) FROM t").await, table("100000 1"));
}
