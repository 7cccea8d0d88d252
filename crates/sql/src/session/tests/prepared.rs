//! Prepared statements and cursors.

use highkey_types::{MySqlError, Value};

use super::super::StatusFlags;
use super::{Answer, Client, Collector, Column, OkSummary, ResultSink, Server, table, text};

impl Client {
    pub(super) async fn execute_id(&mut self, id: u32, params: &[Value]) -> Answer {
        let mut sink = Collector::default();
        self.session.execute_prepared(id, params, false, &mut sink).await.unwrap();
        sink.answers.remove(0)
    }

    pub(super) async fn rows_of(&mut self, id: u32, params: &[Value]) -> Vec<Vec<String>> {
        match self.execute_id(id, params).await {
            Answer::Rows { columns, rows, .. } => text(&columns, &rows),
            other => panic!("{other:?}"),
        }
    }
}

/// What COM_STMT_FETCH is answered with: rows of columns that were announced before.
#[derive(Default)]
struct Piece {
    rows: Vec<Vec<Value>>,
    /// There are more.
    exists: bool,
    /// There are none.
    last: bool,
    error: Option<u16>,
}

impl ResultSink for Piece {
    fn columns(&mut self, _: &[Column]) {}
    fn row(&mut self, row: &[Value]) {
        self.rows.push(row.to_vec());
    }
    fn end(&mut self, end: OkSummary) {
        (self.exists, self.last) = (end.status.has(StatusFlags::CURSOR_EXISTS), end.status.has(StatusFlags::LAST_ROW_SENT));
    }
    fn error(&mut self, error: &MySqlError) {
        self.error = Some(error.code);
    }
}

impl Client {
    async fn fetch(&mut self, id: u32, rows: usize) -> Piece {
        let mut piece = Piece::default();
        self.session.fetch(id, rows, &mut piece).await.unwrap();
        piece
    }
}

#[tokio::test]
async fn sysbench_statements() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))").await;
    c.ok("CREATE INDEX k_1 ON sbtest1(k)").await;
    let insert = c.session.prepare(b"INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)").await.unwrap();
    assert_eq!(insert.params, 4);
    for i in 1..=200_i64 {
        let row = [Value::Int(i), Value::Int(i % 10), Value::text(format!("c{:03}", (i * 7) % 50)), Value::text("p")];
        assert!(matches!(c.execute_id(insert.id, &row).await, Answer::Ok(ok) if ok.affected_rows == 1));
    }
    let point = c.session.prepare(b"SELECT c FROM sbtest1 WHERE id=?").await.unwrap();
    assert_eq!(point.columns.len(), 1);
    assert_eq!(c.rows_of(point.id, &[Value::Int(3)]).await, table("c021"));
    assert_eq!(c.rows_of(point.id, &[Value::Int(999)]).await, table(""));
    let range = [Value::Int(10), Value::Int(12)];
    let simple = c.session.prepare(b"SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?").await.unwrap();
    assert_eq!(c.rows_of(simple.id, &range).await, table("c020|c027|c034"));
    let sum = c.session.prepare(b"SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?").await.unwrap();
    assert_eq!(c.rows_of(sum.id, &range).await, table("3"));
    let order = c.session.prepare(b"SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c").await.unwrap();
    assert_eq!(c.rows_of(order.id, &[Value::Int(6), Value::Int(8)]).await, table("c006|c042|c049"));
    let distinct = c.session.prepare(b"SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c").await.unwrap();
    assert_eq!(c.rows_of(distinct.id, &[Value::Int(1), Value::Int(200)]).await.len(), 50);
    let update = c.session.prepare(b"UPDATE sbtest1 SET k=k+1 WHERE id=?").await.unwrap();
    assert!(matches!(c.execute_id(update.id, &[Value::Int(5)]).await, Answer::Ok(ok) if ok.affected_rows == 1));
    let update = c.session.prepare(b"UPDATE sbtest1 SET c=? WHERE id=?").await.unwrap();
    assert!(matches!(c.execute_id(update.id, &[Value::text("new"), Value::Int(5)]).await, Answer::Ok(ok) if ok.affected_rows == 1));
    let delete = c.session.prepare(b"DELETE FROM sbtest1 WHERE id=?").await.unwrap();
    assert!(matches!(c.execute_id(delete.id, &[Value::Int(6)]).await, Answer::Ok(ok) if ok.affected_rows == 1));
    assert_eq!(c.value("SELECT COUNT(*) FROM sbtest1").await, "199");
    assert_eq!(c.rows("SELECT k, c FROM sbtest1 WHERE id = 5").await, table("6 new"));
    // DDL in between: the statement is bound again.
    c.ok("ALTER TABLE sbtest1 ADD COLUMN x INT DEFAULT 1 FIRST").await;
    assert_eq!(c.rows_of(point.id, &[Value::Int(3)]).await, table("c021"));
    c.session.close_prepared(point.id);
    assert!(matches!(c.execute_id(point.id, &[Value::Int(3)]).await, Answer::Error(e) if e.code == 1243));
}

#[tokio::test]
async fn a_plan_of_before_ddl_leaves_other_tables_locked() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    a.ok("CREATE TABLE u (id INT PRIMARY KEY)").await;
    a.ok("INSERT INTO t VALUES (1, 1)").await;
    let update = a.session.prepare(b"UPDATE t SET v = v + 1 WHERE id = ?").await.unwrap();
    assert!(matches!(a.execute_id(update.id, &[Value::Int(1)]).await, Answer::Ok(ok) if ok.affected_rows == 1));
    b.ok("ALTER TABLE t ADD COLUMN x INT").await;
    b.ok("SET lock_wait_timeout = 1").await;
    a.ok("BEGIN").await;
    assert_eq!(a.value("SELECT v FROM t WHERE id = 1").await, "2");
    a.ok("INSERT INTO u VALUES (1)").await;
    assert!(matches!(a.execute_id(update.id, &[Value::Int(1)]).await, Answer::Ok(ok) if ok.affected_rows == 1));
    for refused in ["TRUNCATE u", "DROP TABLE u", "TRUNCATE t"] {
        assert_eq!(b.error(refused).await.0, 1205, "{refused}");
    }
    a.ok("COMMIT").await;
    assert_eq!((b.value("SELECT v FROM t").await, b.value("SELECT COUNT(*) FROM u").await), ("3".to_owned(), "1".to_owned()));
}

#[tokio::test]
async fn cursors_give_rows_in_pieces() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("INSERT INTO t VALUES (1), (2), (3)").await;
    let statement = c.session.prepare(b"SELECT id FROM t").await.unwrap();
    let mut sink = Collector::default();
    c.session.execute_prepared(statement.id, &[], true, &mut sink).await.unwrap();
    assert!(matches!(&sink.answers[0], Answer::Rows { rows, end, .. } if rows.is_empty() && end.status.has(64)));
    let piece = c.fetch(statement.id, 2).await;
    assert_eq!((piece.rows, piece.exists, piece.last), (vec![vec![Value::Int(1)], vec![Value::Int(2)]], true, false));
    let piece = c.fetch(statement.id, 2).await;
    assert_eq!((piece.rows, piece.exists, piece.last), (vec![vec![Value::Int(3)]], false, true));
    assert_eq!(c.fetch(statement.id, 1).await.error, Some(1421));
}

/// They wait in a file: of what a query may take of the disk, not of memory.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_cursors_are_limited_by_temporary_space() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, pad CHAR(200))").await;
    c.ok("INSERT INTO t SELECT n, 'x' FROM (WITH RECURSIVE q (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 1000) SELECT n FROM q) AS s").await;
    for count in [16, 4] {
        let before = c.value("SELECT COUNT(*) FROM t").await;
        c.ok(&format!("INSERT INTO t SELECT t.id + {before} * s.n, pad FROM t, (WITH RECURSIVE q (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < {count}) SELECT n FROM q) AS s")).await;
    }
    let rows: u64 = c.value("SELECT COUNT(*) FROM t").await.parse().unwrap();
    let all = c.session.prepare(b"SELECT id, RPAD(pad, 100, 'y') FROM t").await.unwrap();
    let grouped = c.session.prepare(b"SELECT id, RPAD(MAX(pad), 100, 'y') FROM t GROUP BY id").await.unwrap();
    for statement in [all.id, grouped.id] {
        let mut sink = Collector::default();
        c.session.execute_prepared(statement, &[], true, &mut sink).await.unwrap();
        assert!(matches!(&sink.answers[0], Answer::Rows { end, .. } if end.status.has(64)));
        let mut fetched = 0;
        loop {
            let piece = c.fetch(statement, 10_000).await;
            assert_eq!(piece.error, None);
            fetched += piece.rows.len() as u64;
            if piece.last {
                break;
            }
        }
        assert_eq!(fetched, rows);
    }
    c.ok("SET GLOBAL highkey_temp_space_limit = 1048576").await;
    let mut sink = Collector::default();
    c.session.execute_prepared(all.id, &[], true, &mut sink).await.unwrap();
    assert!(matches!(&sink.answers[0], Answer::Error(e) if e.code == 1114), "{:?}", sink.answers[0]);
    assert_eq!(c.value("SELECT 1").await, "1");
}

/// As MySQL 8.0.12 does.
#[tokio::test]
async fn prepared_statements_run_where_they_were_prepared() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE DATABASE e").await;
    c.ok("CREATE TABLE t (a INT)").await;
    c.ok("INSERT INTO t VALUES (1)").await;
    c.ok("CREATE TABLE e.t (a INT)").await;
    c.ok("INSERT INTO e.t VALUES (2)").await;
    let id = c.session.prepare(b"SELECT a, DATABASE() FROM t").await.unwrap().id;
    c.ok("PREPARE grouped FROM 'SELECT a, COUNT(*) FROM t GROUP BY a'").await;
    c.ok("PREPARE more FROM 'INSERT INTO t VALUES (3)'").await;
    for _ in 0..3 {
        c.ok("USE e").await;
        assert_eq!(c.rows_of(id, &[]).await, table("1 d"));
        assert_eq!(c.rows("EXECUTE grouped").await, table("1 1"));
        assert_eq!(c.value("SELECT DATABASE()").await, "e");
        // A text that comes again means what it means now.
        assert_eq!(c.rows("SELECT a FROM t").await, table("2"));
        c.ok("USE d").await;
        assert_eq!(c.rows("SELECT a FROM t").await, table("1"));
    }
    c.ok("USE e").await;
    c.ok("EXECUTE more").await;
    assert_eq!(c.rows("SELECT a FROM d.t").await, table("1|3"));
    assert_eq!(c.error("PREPARE s FROM 'USE d'").await.0, 1295);
    c.ok("PREPARE s FROM 'DROP DATABASE e'").await;
    c.ok("USE d").await;
    c.ok("EXECUTE s").await;
    assert_eq!(c.value("SELECT DATABASE()").await, "d");
    c.ok("CREATE DATABASE e").await;
    c.ok("PREPARE s FROM 'DROP DATABASE e'").await;
    c.ok("USE e").await;
    c.ok("EXECUTE s").await;
    assert_eq!(c.value("SELECT DATABASE()").await, "NULL");
}

/// As MySQL 8.0.12 does.
#[tokio::test]
async fn constants_are_those_of_the_execution() {
    let server = Server::new();
    let mut c = server.client().await;
    let week = c.session.prepare(b"SELECT EXTRACT(WEEK FROM '2021-01-03'), EXTRACT(WEEK FROM DATE'2021-01-03')").await.unwrap().id;
    for (format, expected) in [(0, "1 1"), (3, "53 53"), (0, "1 1")] {
        c.ok(&format!("SET default_week_format = {format}")).await;
        assert_eq!(c.rows_of(week, &[]).await, table(expected));
    }
    let long = "SELECT LENGTH(REPEAT('a', 2000)), LENGTH(CONCAT(REPEAT('a', 800), REPEAT('b', 800))), LENGTH(SPACE(1024))";
    assert_eq!(c.rows(long).await, table("2000 1600 1024"));
    c.ok("SET GLOBAL max_allowed_packet = 1024").await;
    let mut other = server.client().await;
    assert_eq!(other.rows(long).await, table("NULL NULL 1024"));
    assert_eq!(other.rows("SHOW WARNINGS").await[0][1], "1301");
}

#[tokio::test]
async fn prepare_and_execute_by_name() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("PREPARE s FROM 'SELECT ? + 1'").await;
    c.ok("SET @a = 41").await;
    assert_eq!(c.rows("EXECUTE s USING @a").await, table("42"));
    assert_eq!(c.error("EXECUTE s").await.0, 1210);
    c.ok("DEALLOCATE PREPARE s").await;
    assert_eq!(c.error("EXECUTE s USING @a").await, (1243, "Unknown prepared statement handler (s) given to EXECUTE".into()));
}
