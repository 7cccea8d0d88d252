//! Statements that are long or deep: they run, or end in an error, and the server goes on. (A stack that overflows ends this process.)

use super::{Client, Server};

async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, 1)").await;
    c
}

const EXECUTORS: [&str; 2] = ["AUTO", "DATAFUSION"];

#[tokio::test(flavor = "multi_thread")]
async fn operators_in_a_row() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let sum = format!("a{}", " + a".repeat(900));
    let nested = |open: &str, close: &str| format!("{}a{}", open.repeat(300), close.repeat(300));
    let many = |part: &dyn Fn(usize) -> String, between: &str, count: usize| (0..count).map(part).collect::<Vec<_>>().join(between);
    let expected = [
        (format!("SELECT {sum} FROM t WHERE id = 1"), "901"),
        (format!("SELECT SUM({sum}) FROM t"), "1802"),
        (format!("SELECT COUNT(*) FROM t WHERE {sum} = 901 GROUP BY {sum} ORDER BY {sum}"), "2"),
        (format!("SELECT a{} FROM t WHERE id = 1", " IS NULL".repeat(900)), "0"),
        (format!("SELECT COUNT(*) FROM t WHERE a{}", " XOR a".repeat(900)), "2"),
        (format!("SELECT CAST('2020-01-01' AS DATE){} FROM t WHERE id = 1", " + INTERVAL a DAY".repeat(366)), "2021-01-01"),
        (format!("SELECT {} FROM t WHERE id = 1", nested("ABS(", ")")), "1"),
        (format!("SELECT {} FROM t WHERE id = 1", nested("CASE WHEN a THEN ", " END")), "1"),
        (format!("SELECT {} FROM t WHERE id = 1", nested("COALESCE(NULL, ", ")")), "1"),
        (format!("SELECT {} FROM t WHERE id = 1", nested("- ", "")), "1"),
        (format!("SELECT COUNT(*) FROM t WHERE {}", many(&|i| format!("a = {i}"), " OR ", 2000)), "2"),
        (format!("SELECT COUNT(*) FROM t WHERE {}", many(&|i| format!("(a = {i} AND id < {i})"), " OR ", 2000)), "0"),
        (format!("SELECT COUNT(*) FROM t WHERE {}", many(&|i| format!("a <> {}", i + 2), " AND ", 30_000)), "2"),
        (format!("SELECT COUNT(*) FROM t x JOIN t y ON x.id = y.id WHERE {}", many(&|i| format!("x.a <> {}", i + 2), " AND ", 30_000)), "2"),
        (format!("SELECT COUNT(*) FROM t WHERE a IN ({})", many(&|i| i.to_string(), ", ", 10_000)), "2"),
        (format!("SELECT ({0}) <= ({0}) FROM t WHERE id = 1", many(&|_| "a".into(), ", ", 1000)), "1"),
    ];
    for executor in EXECUTORS {
        c.ok(&format!("SET highkey_executor = '{executor}'")).await;
        for (sql, answer) in &expected {
            assert_eq!(c.value(sql).await, *answer, "{executor} {}", &sql[..60]);
        }
        for next in [" + a", " IS NULL", " = a", " XOR a", " | a", " + INTERVAL 1 DAY", " COLLATE utf8mb4_bin"] {
            for count in [5000, 300_000] {
                let (code, _) = c.error(&format!("SELECT a{} FROM t", next.repeat(count))).await;
                assert_eq!(code, 1436, "{next} {count} times");
            }
        }
        assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "2");
    }
}

/// What the catalog keeps as text is written with its parentheses.
#[tokio::test(flavor = "multi_thread")]
async fn operators_in_a_row_of_stored_expressions() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let sum = format!("a{}", " + a".repeat(900));
    c.ok(&format!("CREATE VIEW v AS SELECT {sum} AS x FROM t")).await;
    assert_eq!(c.value("SELECT SUM(x) FROM v").await, "1802");
    c.ok(&format!("CREATE TABLE g (a INT, b INT AS ({sum}) STORED)")).await;
    c.ok("INSERT INTO g (a) VALUES (2)").await;
    assert_eq!(c.value("SELECT b FROM g").await, "1802");
}

/// What is bound twice at each level doubles with each.
#[tokio::test(flavor = "multi_thread")]
async fn copies_in_each_other() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let between = |levels: usize| format!("SELECT {}a{} FROM t WHERE id = 1", "(".repeat(levels), " BETWEEN 0 AND 1)".repeat(levels));
    assert_eq!(c.value(&between(10)).await, "1");
    assert_eq!(c.error(&between(60)).await.0, 1436);
    let case = |levels: usize| format!("SELECT {}a{} FROM t WHERE id = 1", "CASE ".repeat(levels), " WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END".repeat(levels));
    assert_eq!(c.value(&case(5)).await, "1");
    assert_eq!(c.error(&case(60)).await.0, 1436);
    let twice = |levels: usize| {
        let ctes: Vec<String> = (0..levels).map(|i| format!("c{} AS (SELECT p.x FROM c{i} p, c{i} q)", i + 1)).collect();
        format!("WITH c0 AS (SELECT 1 AS x), {} SELECT x FROM c{levels}", ctes.join(", "))
    };
    assert_eq!(c.value(&twice(5)).await, "1");
    assert_eq!(c.error(&twice(40)).await.0, 1436);
    c.ok("CREATE VIEW v0 AS SELECT 1 AS x").await;
    let mut views = 0;
    let refused = loop {
        match c.run(&format!("CREATE VIEW v{} AS SELECT p.x FROM v{views} p, v{views} q", views + 1)).await {
            super::Answer::Ok(_) => views += 1,
            super::Answer::Error(e) => break e.code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused, 1436, "after {views} views");
}

/// Whoever looks through a plan enters each subquery once, not once for each operator above it.
#[tokio::test(flavor = "multi_thread")]
async fn subqueries_in_each_other() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let nested = |open: &str, close: &str, levels: usize| format!("SELECT COUNT(*) FROM t WHERE {}1{}", open.repeat(levels), close.repeat(levels));
    assert_eq!(c.value(&nested("EXISTS (SELECT 1 FROM t WHERE ", ")", 60)).await, "2");
    assert_eq!(c.value(&nested("a = (SELECT a FROM t WHERE ", " ORDER BY id LIMIT 1)", 40)).await, "2");
    assert_eq!(c.value(&nested("a IN (SELECT a FROM t WHERE ", ")", 30)).await, "2");
    assert_eq!(c.error(&nested("EXISTS (SELECT 1 FROM t WHERE ", ")", 64)).await.0, 1473);
}

#[tokio::test(flavor = "multi_thread")]
async fn unions_in_a_row() {
    let server = Server::new();
    let mut c = filled(&server).await;
    assert_eq!(c.rows(&format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(1000))).await.len(), 1001);
    assert_eq!(c.rows(&format!("SELECT 1{}", " UNION SELECT 1".repeat(1000))).await.len(), 1);
    let mixed = format!("SELECT COUNT(*) FROM (SELECT 1{}{}) AS u", " UNION SELECT id FROM t".repeat(200), " UNION ALL SELECT a FROM t".repeat(200));
    assert_eq!(c.value(&mixed).await, "402");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_documents_have_100_levels() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE j (d JSON)").await;
    let document = |levels: usize| format!("'{}1{}'", "[".repeat(levels), "]".repeat(levels));
    c.ok(&format!("INSERT INTO j VALUES ({})", document(100))).await;
    assert_eq!(c.value(&format!("SELECT JSON_DEPTH({})", document(100))).await, "101");
    for levels in [101, 5000, 1_000_000] {
        assert_eq!(c.error(&format!("INSERT INTO j VALUES ({})", document(levels))).await.0, 3157);
        assert_eq!(c.error(&format!("SELECT JSON_DEPTH({})", document(levels))).await.0, 3157);
        assert_eq!(c.error(&format!("SELECT JSON_VALID({})", document(levels))).await.0, 3157);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_joins_above_each_other_than_a_task_has_budget_for() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE p (id INT PRIMARY KEY, k INT)").await;
    c.ok("INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)").await;
    c.ok("CREATE TABLE q (id INT PRIMARY KEY, k INT, v INT)").await;
    c.ok("INSERT INTO q VALUES (1, 1, 1), (2, 2, 2), (3, 3, 100)").await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    let exists: Vec<String> = (0..135).map(|n| format!("EXISTS (SELECT 1 FROM q WHERE q.k = p.k AND q.v < {})", n + 5)).collect();
    assert_eq!(c.value(&format!("SELECT COUNT(*) FROM p WHERE {}", exists.join(" AND "))).await, "2");
}
