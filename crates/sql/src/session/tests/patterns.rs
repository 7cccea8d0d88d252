//! Statements that serve others with the same pieces.

use super::{Client, Server, table};
use crate::prepared::CutText;

impl Client {
    /// A statement that is kept serves this text.
    fn is_served(&mut self, sql: &str) -> bool {
        self.session.find_pattern(&CutText::new(sql).unwrap()).is_some()
    }
}

async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT, c VARCHAR(10), d DECIMAL(6,2), day DATE, KEY (k))").await;
    for i in 1..=20 {
        c.ok(&format!("INSERT INTO t VALUES ({i}, {}, 'c{i}', {i}.{i:02}, '2026-01-{i:02}')", i % 5)).await;
    }
    c
}

#[tokio::test]
async fn values_change_from_text_to_text() {
    let server = Server::new();
    let mut c = filled(&server).await;
    assert!(c.is_served("INSERT INTO t VALUES (21, 1, 'c', 1.5, '')"));
    assert_eq!(c.value("SELECT COUNT(DISTINCT d, c, day) FROM t").await, "20");
    for i in 1..=20 {
        assert_eq!(c.value(&format!("SELECT c FROM t WHERE id = {i}")).await, format!("c{i}"));
        assert_eq!(c.value(&format!("SELECT id FROM t WHERE c = 'C{i}' AND d > {i}.0")).await, format!("{i}"));
        assert_eq!(c.value(&format!("SELECT MAX(id) FROM t WHERE day <= '2026-01-{i:02}'")).await, format!("{i}"));
    }
    for served in ["SELECT c FROM t WHERE id = 0", "SELECT id FROM t WHERE c = '' AND d > 7.5", "SELECT MAX(id) FROM t WHERE day <= ''"] {
        assert!(c.is_served(served), "{served}");
    }
    for i in 1..=3 {
        c.ok(&format!("UPDATE t SET c = 'new{i}', k = k + 1 WHERE id = {i}")).await;
        c.ok(&format!("DELETE FROM t WHERE id = {}", i + 10)).await;
    }
    assert_eq!(c.rows("SELECT id, k, c FROM t WHERE id IN (1, 2, 3, 11, 12, 13)").await, table("1 2 new1|2 3 new2|3 4 new3"));
    assert_eq!(c.rows("SELECT id, k, c FROM t WHERE id IN (3, 2, 15, 11, 12, 13)").await, table("2 3 new2|3 4 new3|15 0 c15"));
    // The literal before is of the statement, not a value of it.
    for i in 1..=3 {
        assert_eq!(c.rows(&format!("SELECT {i}, id FROM t WHERE id = 5")).await, vec![vec![i.to_string(), "5".to_owned()]]);
        assert_eq!(c.rows(&format!("SELECT id FROM t WHERE id > 4 ORDER BY id LIMIT {i}")).await.len(), i);
    }
}

#[tokio::test]
async fn hints_set_variables_for_one_statement() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for _ in 0..8 {
        assert_eq!(c.value("SELECT /*+ SET_VAR(div_precision_increment=8) */ k / 3 FROM t WHERE id = 1").await, "0.33333333");
        assert_eq!(c.value("SELECT /*+ SET_VAR(div_precision_increment=2) */ k / 3 FROM t WHERE id = 1").await, "0.33");
        assert_eq!(c.value("SELECT k / 3 FROM t WHERE id = 1").await, "0.3333");
        assert_eq!(c.error("INSERT INTO t (id, c) VALUES (30, 'more than ten characters')").await.0, 1406);
        c.ok("INSERT /*+ SET_VAR(sql_mode='ALLOW_INVALID_DATES') */ INTO t (id, c) VALUES (31, 'more than ten characters')").await;
        c.ok("DELETE FROM t WHERE id = 31").await;
        // Told each time, by kept statements too.
        assert_eq!(c.value("SELECT /*+ SET_VAR(port=8) */ k FROM t WHERE id = 1").await, "1");
        assert_eq!(c.rows("SHOW WARNINGS").await[0][1], "3637");
    }
    // One of them may have had its place taken by a later statement.
    assert!([8, 2].iter().any(|n| c.is_served(&format!("SELECT /*+ SET_VAR(div_precision_increment={n}) */ k / 3 FROM t WHERE id = 7"))));
    assert_eq!(c.rows("SELECT /*+ SET_VAR(parallel_default_dop=2) SET_VAR(highkey_executor=FAST) */ @@parallel_default_dop, @@highkey_executor").await, table("2 FAST"));
    assert_eq!(c.value("SELECT @@highkey_executor").await, "AUTO");
}

#[tokio::test]
async fn a_kept_statement_sees_what_changed() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let select = "SELECT * FROM t WHERE id = 3";
    for _ in 0..3 {
        assert_eq!(c.rows(select).await, table("3 3 c3 3.03 2026-01-03"));
    }
    c.ok("ALTER TABLE t DROP COLUMN d, ADD COLUMN e INT DEFAULT 7").await;
    assert_eq!(c.rows(select).await, table("3 3 c3 2026-01-03 7"));
    c.ok("CREATE DATABASE other").await;
    c.ok("CREATE TABLE other.t (id INT PRIMARY KEY)").await;
    c.ok("INSERT INTO other.t VALUES (3)").await;
    c.ok("USE other").await;
    assert_eq!(c.rows(select).await, table("3"));
    c.ok("DROP TABLE t").await;
    assert_eq!(c.error(select).await.0, 1146);
    c.ok("USE d").await;
    assert!(c.is_served("SELECT * FROM t WHERE id = 4"));
    // What the text is read under.
    for _ in 0..3 {
        assert_eq!(c.value("SELECT \"c\" FROM t WHERE id = 3").await, "c");
    }
    c.ok("SET sql_mode = 'ANSI_QUOTES'").await;
    assert_eq!(c.value("SELECT \"c\" FROM t WHERE id = 3").await, "c3");
    c.ok("SET sql_mode = DEFAULT").await;
    for _ in 0..3 {
        assert_eq!(c.error("INSERT INTO t (id, c) VALUES (30, 'more than ten characters')").await.0, 1406);
    }
    c.ok("SET sql_mode = ''").await;
    c.ok("INSERT INTO t (id, c) VALUES (31, 'more than ten characters')").await;
    assert_eq!(c.value("SELECT c FROM t WHERE id = 31").await, "more than ");
}

/// Values, and settings, that make another plan of the same text.
#[tokio::test]
async fn plans_that_depend_on_values_are_not_kept() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE big (id BIGINT PRIMARY KEY)").await;
    c.ok("INSERT INTO big VALUES (1), (9007199254740992), (9007199254740993)").await;
    for id in ["1", "9007199254740992", "9007199254740993", "1", "9007199254740993"] {
        assert_eq!(c.rows(&format!("SELECT id FROM big WHERE id = '{id}'")).await, table(id));
    }
    for (day, count) in [("2026-01-02", "1"), ("2026-01-03", "2"), ("2026-01-04", "3"), ("2026-02-30", "20")] {
        assert_eq!(c.value(&format!("SELECT COUNT(*) FROM t WHERE day < '{day}'")).await, count);
    }
    for (value, k) in [("1", "1"), ("2", "2"), ("2.6", "3"), ("'2.6'", "3"), ("9007199254740993 - 9007199254740990", "3")] {
        c.ok(&format!("SET @x = {value}")).await;
        c.ok("UPDATE t SET k = @x WHERE id = 1").await;
        assert_eq!(c.value("SELECT k FROM t WHERE id = 1").await, k);
    }
    for (zone, shown) in [("+00:00", "2020-01-01 00:00:00"), ("+05:00", "2020-01-01 05:00:00"), ("+00:00", "2020-01-01 00:00:00")] {
        c.ok(&format!("SET time_zone = '{zone}'")).await;
        for _ in 0..3 {
            assert_eq!(c.value("SELECT CAST('2020-01-01 00:00:00+00:00' AS DATETIME)").await, shown);
        }
    }
}

#[tokio::test]
async fn joins_are_planned_with_their_values() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for i in 1..=5 {
        assert_eq!(c.value(&format!("SELECT COUNT(*) FROM t a JOIN t b ON a.k = b.id WHERE a.id = {i}")).await, if i == 5 { "0" } else { "1" });
        assert_eq!(c.value(&format!("SELECT COUNT(*) FROM (SELECT k FROM t WHERE id > 0) x WHERE k = {}", i % 5)).await, "4");
    }
    assert!(c.is_served("SELECT COUNT(*) FROM t a JOIN t b ON a.k = b.id WHERE a.id = 77"));
}

#[tokio::test]
async fn all_or_none_are_kept() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET highkey_statement_patterns = OFF").await;
    for i in 1..=3 {
        assert_eq!(c.value(&format!("SELECT c FROM t WHERE id = {i}")).await, format!("c{i}"));
    }
    assert!(!c.is_served("SELECT c FROM t WHERE id = 1"));
    c.ok("SET highkey_statement_patterns = ALWAYS").await;
    assert_eq!(c.value("SELECT c FROM t WHERE id = 2").await, "c2");
    assert!(c.is_served("SELECT c FROM t WHERE id = 1"));
    assert_eq!(c.error("SELECT c FROM t WHERE id = ?").await.0, 1064);
}
