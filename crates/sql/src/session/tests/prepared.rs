use highkey_types::Value;

use super::{Answer, Client, Collector, Server, table, text};

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
