//! LATERAL derived tables, which MySQL has from 8.0.14 on: its manual says what they are. And of JSON_TABLE what recorded answers cannot say.

use super::{Answer, Client, Server, table};

/// Three rows; the first has three of `s`, the second one, the last none.
async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, g INT)").await;
    c.ok("INSERT INTO t (id) VALUES (1), (2), (3)").await;
    c.ok("CREATE TABLE s (id INT PRIMARY KEY, t_id INT, v INT, KEY (t_id))").await;
    c.ok("INSERT INTO s VALUES (1, 1, 10), (2, 1, 30), (3, 1, 20), (4, 2, 5)").await;
    c
}

#[tokio::test]
async fn the_rows_of_each_row() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let answers = [
        ("SELECT t.id, d.v FROM t, LATERAL (SELECT v FROM s WHERE s.t_id = t.id ORDER BY v DESC LIMIT 2) d ORDER BY 1, 2 DESC", "1 30|1 20|2 5"),
        ("SELECT t.id, d.v FROM t JOIN LATERAL (SELECT v FROM s WHERE s.t_id = t.id ORDER BY v LIMIT 1) AS d ORDER BY 1", "1 10|2 5"),
        ("SELECT t.id, d.v FROM t LEFT JOIN LATERAL (SELECT v FROM s WHERE s.t_id = t.id ORDER BY v DESC LIMIT 2) d ON TRUE ORDER BY 1, 2 DESC", "1 30|1 20|2 5|3 NULL"),
        ("SELECT t.id, d.v FROM t LEFT JOIN LATERAL (SELECT v FROM s WHERE s.t_id = t.id) d ON d.v > 10 AND t.id < 3 ORDER BY 1, 2 DESC", "1 30|1 20|2 NULL|3 NULL"),
        ("SELECT t.id, d.n, d.m FROM t, LATERAL (SELECT COUNT(*) n, MAX(v) m FROM s WHERE t_id = t.id) d ORDER BY 1", "1 3 30|2 1 5|3 0 NULL"),
        ("SELECT id, a, b FROM t, LATERAL (SELECT COUNT(*), MAX(v) FROM s WHERE t_id = t.id) AS d (a, b) WHERE t.id > 1 ORDER BY 1", "2 1 5|3 0 NULL"),
        ("SELECT t.id, d.v FROM t, LATERAL (SELECT v FROM s WHERE t_id = t.id UNION ALL SELECT t.id * 100) d ORDER BY 1, 2", "1 10|1 20|1 30|1 100|2 5|2 200|3 300"),
        ("SELECT t.id, d.y FROM t, LATERAL (SELECT e.x * 2 y FROM LATERAL (SELECT t.id + 1 x) e) d ORDER BY 1", "1 4|2 6|3 8"),
        ("SELECT t.id, d.y FROM t, LATERAL (SELECT e.x * t.id y FROM (SELECT t.id + 1 x) e) d ORDER BY 1", "1 2|2 6|3 12"),
        ("SELECT t.id, a.m, b.n FROM t, LATERAL (SELECT MAX(v) m FROM s WHERE t_id = t.id) a, LATERAL (SELECT COUNT(*) n FROM s WHERE v < a.m) b ORDER BY 1", "1 30 3|2 5 0|3 NULL 0"),
        // Of tables that are joined to each other before.
        ("SELECT t.id, s.id FROM t, s JOIN LATERAL (SELECT t.id * 10 k) d ON d.k = s.v ORDER BY 1", "1 1|2 3|3 2"),
        ("SELECT t.id, s.id, d.k FROM t, s JOIN LATERAL (SELECT t.id + s.id k) d WHERE d.k = 5 ORDER BY 1", "1 4 5|2 3 5|3 2 5"),
        ("SELECT t.id, s.id FROM t LEFT JOIN (s JOIN LATERAL (SELECT s.v * 2 w) d ON d.w > 20) ON s.t_id = t.id ORDER BY 1, 2", "1 2|1 3|2 NULL|3 NULL"),
        // It reads no row of its own FROM.
        ("SELECT t.id, d.n FROM t, LATERAL (SELECT COUNT(*) n FROM s) d ORDER BY 1", "1 4|2 4|3 4"),
        ("SELECT (SELECT MAX(d.v) FROM (SELECT 1) one, LATERAL (SELECT v FROM s WHERE s.t_id = t.id) d) FROM t ORDER BY t.id", "30|5|NULL"),
        ("SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM s, LATERAL (SELECT s.v + t.id w) d WHERE s.t_id = t.id AND d.w = 21)", "1"),
        ("SELECT d.k, COUNT(*) FROM t, LATERAL (SELECT t.id % 2 k) d GROUP BY d.k ORDER BY 1", "0 1|1 2"),
        ("WITH RECURSIVE c AS (SELECT 1 n UNION ALL SELECT d.m FROM c, LATERAL (SELECT c.n + 1 m) d WHERE d.m < 4) SELECT n FROM c ORDER BY n", "1|2|3"),
        ("WITH c AS (SELECT t_id, v FROM s) SELECT t.id, d.w FROM t, LATERAL (SELECT SUM(v) w FROM c WHERE c.t_id = t.id) d ORDER BY 1", "1 60|2 5|3 NULL"),
        // A common table expression that reads the row around is read in a subquery.
        ("SELECT id, (WITH c AS (SELECT t.id * 2 x) SELECT (SELECT x FROM c) FROM c) FROM t ORDER BY 1", "1 2|2 4|3 6"),
    ];
    for (sql, rows) in answers {
        assert_eq!(c.rows(sql).await, table(rows), "{sql}");
    }
}

#[tokio::test]
async fn which_columns_lateral_sees() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let errors = [
        ("SELECT * FROM LATERAL (SELECT t.id) d, t", 1054),
        ("SELECT * FROM t, (SELECT t.id) d", 1054),
        ("SELECT * FROM t, s JOIN (SELECT 1 one) x ON t.id = s.id", 1054),
        ("SELECT * FROM t, LATERAL (SELECT x.id) d, s x", 1054),
        ("SELECT * FROM t, s, LATERAL (SELECT id) d", 1052),
        ("SELECT * FROM t, s JOIN LATERAL (SELECT id) d", 1052),
        ("SELECT * FROM t RIGHT JOIN LATERAL (SELECT t.id) d ON TRUE", 3668),
        ("SELECT * FROM t, LATERAL (SELECT t.id)", 1248),
        ("SELECT * FROM t, LATERAL (s) x", 1064),
        ("SELECT * FROM t, LATERAL s", 1064),
        ("SELECT * FROM t, LATERAL (SELECT 1) t", 1066),
        ("SELECT * FROM t, LATERAL (SELECT 1, 2) d (a)", 1353),
    ];
    for (sql, code) in errors {
        assert_eq!(c.error(sql).await.0, code, "{sql}");
    }
}

#[tokio::test]
async fn many_above_each_other() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE VIEW v0 AS SELECT 0 a").await;
    for v in 1..=4 {
        let joined: String = (1..=35).map(|i| format!(", LATERAL (SELECT d{}.a + 1 a) d{i}", i - 1)).collect();
        c.ok(&format!("CREATE VIEW v{v} AS SELECT d35.a FROM v{} d0{joined}", v - 1)).await;
    }
    assert_eq!(c.value("SELECT a FROM v4").await, "140");
}

#[tokio::test]
async fn lateral_in_statements() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE VIEW v AS SELECT t.id, d.v FROM t, LATERAL (SELECT v FROM s WHERE s.t_id = t.id ORDER BY v LIMIT 1) d").await;
    assert_eq!(c.rows("SELECT * FROM v ORDER BY id").await, table("1 10|2 5"));
    assert!(c.rows("SHOW CREATE VIEW v").await[0][1].contains("join lateral (select"));
    c.ok("PREPARE p FROM 'SELECT t.id, d.v FROM t, LATERAL (SELECT v FROM s WHERE t_id = t.id AND v > ? ORDER BY v LIMIT 1) d ORDER BY 1'").await;
    c.ok("SET @least = 10").await;
    assert_eq!(c.rows("EXECUTE p USING @least").await, table("1 20"));
    c.ok("SET @least = 1").await;
    assert_eq!(c.rows("EXECUTE p USING @least").await, table("1 10|2 5"));
    assert_eq!(c.ok("UPDATE t JOIN LATERAL (SELECT SUM(v) m FROM s WHERE s.t_id = t.id) d ON TRUE SET t.g = d.m").await.affected_rows, 2);
    assert_eq!(c.rows("SELECT id, g FROM t ORDER BY id").await, table("1 60|2 5|3 NULL"));
    c.ok("INSERT INTO s SELECT t.id + 10, t.id, d.m FROM t, LATERAL (SELECT MAX(v) + 1 m FROM s WHERE t_id = t.id) d").await;
    assert_eq!(c.rows("SELECT id, v FROM s WHERE id > 10 ORDER BY id").await, table("11 31|12 6|13 NULL"));
    assert_eq!(c.ok("DELETE t FROM t JOIN LATERAL (SELECT COUNT(*) n FROM s WHERE s.t_id = t.id) d ON d.n = 1").await.affected_rows, 1);
    assert_eq!(c.rows("SELECT id FROM t ORDER BY id").await, table("1|2"));
}

/// What is evaluated inside sees the session as it is at each row.
#[tokio::test]
async fn functions_of_the_session_inside() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET @n = 0").await;
    assert_eq!(c.rows("SELECT t.id, d.n FROM t, LATERAL (SELECT @n := @n + t.id n) d").await, table("1 1|2 3|3 6"));
    assert_eq!(c.value("SELECT COUNT(DISTINCT d.r) FROM t, LATERAL (SELECT RAND() r WHERE t.id > 0) d").await, "3");
    assert_eq!(c.rows("SELECT t.id, d.n FROM t, LATERAL (SELECT LAST_INSERT_ID(LAST_INSERT_ID() + t.id) n) d").await, table("1 1|2 3|3 6"));
    assert_eq!(c.value("SELECT LAST_INSERT_ID()").await, "6");
    c.ok("CREATE FUNCTION counted(i INT) RETURNS INT NO SQL RETURN (@n := @n + i)").await;
    assert_eq!(c.rows("SELECT t.id, d.n FROM t, LATERAL (SELECT counted(t.id) n) d").await, table("1 7|2 9|3 12"));
    assert_eq!(c.value("SELECT @n").await, "12");
    c.ok("CREATE FUNCTION most(i INT) RETURNS INT READS SQL DATA RETURN (SELECT MAX(v) FROM s WHERE t_id = i)").await;
    assert_eq!(c.rows("SELECT t.id, d.n FROM t, LATERAL (SELECT most(t.id) n) d").await, table("1 30|2 5|3 NULL"));
}

/// What is locked inside is locked before, as a subquery's rows are; the tables around are not.
#[tokio::test]
async fn locks_inside() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut other = server.client().await;
    for (lock, shared) in [("FOR UPDATE", Some(3572)), ("FOR SHARE", None)] {
        c.ok("BEGIN").await;
        let sql = format!("SELECT t.id, d.v FROM t, LATERAL (SELECT v FROM s WHERE s.t_id = t.id {lock}) d ORDER BY 1, 2");
        assert_eq!(c.rows(&sql).await, table("1 10|1 20|1 30|2 5"), "{lock}");
        assert_eq!(other.error("SELECT v FROM s WHERE id = 4 FOR UPDATE NOWAIT").await.0, 3572, "{lock}");
        match shared {
            Some(code) => assert_eq!(other.error("SELECT v FROM s WHERE id = 4 FOR SHARE NOWAIT").await.0, code, "{lock}"),
            None => assert_eq!(other.value("SELECT v FROM s WHERE id = 4 FOR SHARE NOWAIT").await, "5", "{lock}"),
        }
        assert_eq!(other.value("SELECT id FROM t WHERE id = 2 FOR UPDATE NOWAIT").await, "2", "{lock}");
        c.ok("ROLLBACK").await;
    }
}

#[tokio::test]
async fn lateral_and_json_table_are_explained() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let plan = c.rows("EXPLAIN SELECT * FROM t, LATERAL (SELECT v FROM s WHERE s.t_id = t.id LIMIT 1) d").await;
    assert!(plan.iter().any(|line| line[1] == "DEPENDENT DERIVED"), "{plan:?}");
    let plan = c.rows("EXPLAIN SELECT * FROM t, JSON_TABLE(CONCAT('[', t.id, ']'), '$[*]' COLUMNS(a INT PATH '$')) jt").await;
    assert!(plan.iter().any(|line| line[2] == "jt" && line[11] == "Table function: json_table; Using temporary"), "{plan:?}");
    c.ok("CREATE VIEW v AS SELECT t.id, jt.a FROM t, JSON_TABLE(CONCAT('[', t.id, ']'), '$[*]' COLUMNS(a INT PATH '$')) jt").await;
    let plan = c.rows("EXPLAIN SELECT * FROM v").await;
    assert!(plan.iter().any(|line| line[2] == "jt"), "{plan:?}");
    c.rows("EXPLAIN FORMAT=TREE SELECT * FROM t, LATERAL (SELECT v FROM s WHERE s.t_id = t.id LIMIT 1) d").await;
    c.rows("EXPLAIN ANALYZE SELECT * FROM t, LATERAL (SELECT v FROM s WHERE s.t_id = t.id LIMIT 1) d").await;
}

#[tokio::test]
async fn json_table_in_programs_and_of_many_documents() {
    let server = Server::new();
    let mut c = server.client().await;
    assert_eq!(c.rows("SELECT * FROM JSON_TABLE('[{\"a\":[1,2]}]', '$[*]' COLUMNS(NESTED '$.a[*]' COLUMNS(x INT PATH '$'))) jt").await, table("1|2"));
    c.ok("CREATE FUNCTION total(d JSON) RETURNS INT DETERMINISTIC RETURN (SELECT SUM(a) FROM JSON_TABLE(d, '$[*]' COLUMNS(a INT PATH '$')) jt)").await;
    assert_eq!(c.value("SELECT total('[1,2,3]')").await, "6");
    c.ok("CREATE PROCEDURE items(d JSON) SELECT a FROM JSON_TABLE(d, '$[*]' COLUMNS(a INT PATH '$')) jt").await;
    let answers = c.run_all("CALL items('[4,5]')").await;
    assert!(matches!(&answers[0], Answer::Rows { rows, .. } if rows.len() == 2), "{answers:?}");
    c.ok("CREATE TABLE docs (id INT PRIMARY KEY, doc JSON)").await;
    let rows: Vec<String> = (0..20_000).map(|id| format!("({id}, '[{id}, {}]')", id + 1)).collect();
    for chunk in rows.chunks(5000) {
        c.ok(&format!("INSERT INTO docs VALUES {}", chunk.join(", "))).await;
    }
    for parallel in ["0", "1000000"] {
        c.ok(&format!("SET parallel_cost_threshold = {parallel}")).await;
        let counted = "SELECT COUNT(*), SUM(a), SUM(id), MAX(n) FROM docs, JSON_TABLE(doc, '$[*]' COLUMNS(n FOR ORDINALITY, a INT PATH '$')) jt";
        assert_eq!(c.rows(counted).await, table("40000 400000000 399980000 2"));
        let outer = "SELECT COUNT(*), COUNT(a), SUM(a) FROM docs LEFT JOIN JSON_TABLE(doc, '$[*]' COLUMNS(a INT PATH '$')) jt ON a % 2 = 0 AND id >= 10000";
        assert_eq!(c.rows(outer).await, table("20000 10000 150000000"));
        assert_eq!(c.rows("SELECT a FROM docs, JSON_TABLE(doc, '$[*]' COLUMNS(a INT PATH '$')) jt WHERE id = 7 ORDER BY a LIMIT 1").await, table("7"));
    }
    let many = "SELECT COUNT(*) FROM JSON_TABLE((SELECT JSON_ARRAYAGG(id) FROM docs), '$[*]' COLUMNS(a INT PATH '$')) jt WHERE a < 100";
    assert_eq!(c.value(many).await, "100");
    // One document has more rows than a batch, of which the condition leaves none, some, and all.
    for (least, rows) in [(20_000, "1 0"), (10_000, "10000 10000"), (0, "20000 20000")] {
        let sql = format!(
            "SELECT COUNT(*), COUNT(a) FROM (SELECT JSON_ARRAYAGG(id) d FROM docs) one LEFT JOIN JSON_TABLE(one.d, '$[*]' COLUMNS(a INT PATH '$')) jt ON a >= {least}"
        );
        assert_eq!(c.rows(&sql).await, table(rows), "{sql}");
    }
}
