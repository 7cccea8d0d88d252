//! Triggers, as far as golden answers cannot show it: turns, KILL, files, what the session is behind a body that failed.

use super::{Collector, Server, table};

/// A statement of a body has the turn of the statement that it runs inside of.
#[tokio::test]
async fn bodies_need_no_turn_of_their_own() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    c.ok("CREATE TABLE log (a INT, n INT)").await;
    c.ok("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW INSERT INTO log SELECT NEW.a, COUNT(*) FROM t").await;
    c.ok("SET GLOBAL innodb_thread_concurrency = 1").await;
    c.ok("INSERT INTO t VALUES (1), (2)").await;
    c.ok("SET GLOBAL innodb_thread_concurrency = 0").await;
    assert_eq!(c.rows("SELECT a, n FROM log ORDER BY a").await, table("1 1|2 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_ends_a_body_and_its_statement() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    c.ok("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; WHILE NEW.a = 2 DO SET @i = 1; END WHILE; END").await;
    assert_eq!(c.error_when_killed("INSERT INTO t VALUES (1), (2)").await.0, 1317);
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "0");
}

#[tokio::test]
async fn rows_of_a_file_run_triggers() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10) NOT NULL, c INT)").await;
    c.ok("CREATE TABLE log (a INT)").await;
    c.ok("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.c = NEW.a * 10, NEW.b = IFNULL(NEW.b, 'none')").await;
    c.ok("CREATE TRIGGER h AFTER DELETE ON t FOR EACH ROW INSERT INTO log VALUES (OLD.a)").await;
    let mut load = async |how: &str, file: &[u8]| {
        let mut sink = Collector { file: file.to_vec(), ..Collector::default() };
        c.session.execute(format!("LOAD DATA LOCAL INFILE 'x' {how} INTO TABLE t (a, b)").as_bytes(), &mut sink).await.unwrap();
        let mut told = c.rows("SELECT a, b, c FROM t ORDER BY a").await;
        told.extend(c.rows("SELECT a FROM log").await);
        told
    };
    assert_eq!(load("", b"1\tx\n2\t\\N\n").await, table("1 x 10|2 none 20"));
    assert_eq!(load("REPLACE", b"2\ty\n3\tz\n").await, table("1 x 10|2 y 20|3 z 30|2"));
}

/// More than a few rows of a query for a table with triggers, or of one that reads the table itself, wait in a file.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_query_wait_in_a_file() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE s (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(3000))").await;
    c.ok("INSERT INTO s (b) VALUES (REPEAT('x', 3000))").await;
    for _ in 0..10 {
        c.ok("INSERT INTO s (b) SELECT b FROM s").await;
    }
    c.ok("CREATE TABLE t LIKE s").await;
    c.ok("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN SET @n = @n + 1; SET NEW.b = CONCAT(NEW.a, LEFT(NEW.b, 2000)); END").await;
    c.ok("SET @n = 0").await;
    c.ok("INSERT INTO t SELECT a, b FROM s").await;
    assert_eq!(c.rows("SELECT @n, COUNT(*), SUM(LEFT(b, LENGTH(b) - 2000) = a) FROM t").await, table("1024 1024 1024"));
    c.ok("SET GLOBAL highkey_temp_space_limit = 1048576").await;
    assert_eq!(c.error("INSERT INTO t SELECT a + 100000, b FROM s").await.0, 1114);
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "1024");
}

/// As in MySQL 8.0.12.
#[tokio::test]
async fn no_handler_of_a_body_takes_a_wait_in_vain() {
    let server = Server::new();
    let (mut c, mut other) = (server.client().await, server.client().await);
    c.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    c.ok("CREATE TABLE l (a INT PRIMARY KEY, v INT)").await;
    c.ok("INSERT INTO l VALUES (1, 1), (2, 2), (3, 3)").await;
    c.ok("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @h = 1; UPDATE l SET v = v + 100 ORDER BY a; END").await;
    other.ok("BEGIN").await;
    other.ok("DELETE FROM l WHERE a = 2").await;
    c.ok("SET innodb_lock_wait_timeout = 1, @h = 0").await;
    c.ok("BEGIN").await;
    assert_eq!(c.error("INSERT INTO t VALUES (1)").await.0, 1205);
    assert_eq!(c.rows("SELECT @h, (SELECT COUNT(*) FROM t), (SELECT SUM(v) FROM l)").await, table("0 0 6"));
    c.ok("ROLLBACK").await;
    other.ok("ROLLBACK").await;
}

/// As in MySQL, which locks them before.
#[tokio::test]
async fn bodies_use_tables_that_lock_tables_has_not_named() {
    let server = Server::new();
    let mut c = server.client().await;
    for name in ["t", "u", "v", "w"] {
        c.ok(&format!("CREATE TABLE {name} (a INT)")).await;
    }
    c.ok("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW INSERT INTO u SELECT a FROM v").await;
    c.ok("INSERT INTO v VALUES (1)").await;
    c.ok("LOCK TABLES t WRITE").await;
    c.ok("INSERT INTO t VALUES (1)").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "1");
    assert_eq!(c.error("SELECT * FROM w").await.0, 1100);
    c.ok("UNLOCK TABLES").await;
    assert_eq!(c.rows("SELECT a FROM u").await, table("1"));
}

/// What was put aside for a body that failed is there again.
#[tokio::test]
async fn the_session_is_as_before_behind_a_body() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE DATABASE e").await;
    c.ok("CREATE TABLE e.t (a INT PRIMARY KEY, b INT)").await;
    c.ok("SET sql_mode = ''").await;
    c.ok("CREATE TRIGGER e.g BEFORE INSERT ON e.t FOR EACH ROW BEGIN SET @where = CONCAT(DATABASE(), ' ', @@sql_mode = ''); IF NEW.a = 2 THEN SIGNAL SQLSTATE '45000'; END IF; END").await;
    c.ok("SET sql_mode = DEFAULT").await;
    c.ok("PREPARE s FROM 'INSERT INTO e.t VALUES (?, ? + 1), (? + 1, ?)'").await;
    c.ok("SET @a = 5, @b = 1").await;
    c.ok("EXECUTE s USING @a, @b, @a, @a").await;
    assert_eq!(c.error("EXECUTE s USING @b, @a, @b, @b").await, (1644, "Unhandled user-defined exception condition".to_owned()));
    assert_eq!(c.rows("SELECT a, b FROM e.t ORDER BY a").await, table("5 2|6 5"));
    assert_eq!(c.rows("SELECT DATABASE(), @@sql_mode <> ''").await, table("d 1"));
    assert_eq!(c.value("SELECT @where").await, "e 1");
}
