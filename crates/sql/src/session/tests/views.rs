//! Views as other sessions, plans and the binary log see them. What they answer is in `tests/golden/views.sql` and `view_changes.sql`.

use highkey_types::Value;

use super::{Answer, Client, Collector, Server, table};
use crate::parse::{parse_query, print};

async fn tables(c: &mut Client) {
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c INT, d DATETIME, e JSON, KEY kb (b))").await;
    c.ok("CREATE TABLE u (a INT, z INT, KEY ka (a))").await;
    c.ok("INSERT INTO t SELECT n, CONCAT('b', n), n % 7, NULL, NULL FROM (WITH RECURSIVE q (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 500) SELECT n FROM q) s").await;
}

/// A view's text is written in a form that, read and written again, stays what it is.
#[tokio::test]
async fn a_views_text_is_read_as_it_was_written() {
    let server = Server::new();
    let mut c = server.client().await;
    tables(&mut c).await;
    let queries = [
        "SELECT * FROM t",
        "SELECT t.*, z FROM t, u WHERE t.a = u.a",
        "SELECT x.a FROM t x CROSS JOIN u y LEFT JOIN (u v JOIN t w ON w.a = v.a) ON v.z = x.a",
        "SELECT * FROM t NATURAL JOIN u",
        "SELECT x.a, y.z FROM u y RIGHT JOIN t x USING (a) WHERE a > 1",
        "SELECT a + 1 AS q, COUNT(*) FROM t GROUP BY 1 HAVING q > 1 ORDER BY q DESC, 2 LIMIT 3, 4",
        "SELECT a AS b, b AS a FROM t ORDER BY b, t.b",
        "SELECT a FROM t UNION SELECT z FROM u UNION ALL (SELECT 1 ORDER BY 1 LIMIT 1) ORDER BY a LIMIT 2",
        "WITH q AS (SELECT a FROM t), p AS (SELECT * FROM q) SELECT q.a FROM q JOIN p ON q.a = p.a",
        "WITH RECURSIVE q (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 5) SELECT n FROM q",
        "SELECT d2.x FROM (SELECT a, b FROM t WHERE a > 1) d2 (x, y) WHERE y = 'x'",
        "SELECT a FROM t WHERE NOT (a > 1 AND c < 2) AND NOT b IS NULL AND a NOT IN (1, 2) AND b NOT LIKE 'x|%' ESCAPE '|' AND NOT a BETWEEN 1 AND 2",
        "SELECT a FROM t WHERE a IN (SELECT a FROM u) OR a <> ALL (SELECT z FROM u) OR a >= ANY (SELECT z FROM u) OR EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        "SELECT CASE a WHEN 1 THEN 'x' ELSE b END, IF(a, 1, 2), -a, ~a, a DIV 2, a % 3, MOD(a, 3), a ^ 1, a XOR 0, !a, a <=> NULL FROM t",
        "SELECT CAST(a AS CHAR(3)), CAST(b AS BINARY(2)), CAST(a AS DECIMAL(10, 2)), CONVERT(b USING latin1), b COLLATE utf8mb4_bin, BINARY b, CAST(a AS SIGNED) FROM t",
        "SELECT d + INTERVAL 1 DAY, DATE_SUB(d, INTERVAL '1:2' HOUR_MINUTE), EXTRACT(YEAR FROM d), TIMESTAMPDIFF(DAY, d, NOW()), DATE(d), NOW(3) FROM t",
        "SELECT TRIM(BOTH 'x' FROM b), TRIM(b), SUBSTRING(b FROM 2 FOR 3), POSITION('a' IN b), CHAR(65, 66 USING utf8mb4), UCASE(b), INSTR(b, 'x') FROM t",
        "SELECT e->'$.a', e->>'$.b', b REGEXP 'x', b NOT RLIKE 'y', b SOUNDS LIKE 'z', JSON_OBJECT('a', 1) FROM t",
        "SELECT JSON_VALUE(e, '$.a'), JSON_VALUE(e, '$.b' RETURNING DECIMAL(5, 2) DEFAULT 1.5 ON EMPTY ERROR ON ERROR) FROM t",
        "SELECT 'it''s', 'back\\\\slash', 'nl\\nx', x'4142', 0x43, b'101', 1.50, 1e3, TRUE, NULL, DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00', _utf8mb4'x'",
        "SELECT GROUP_CONCAT(DISTINCT b ORDER BY a DESC, c SEPARATOR ';'), COUNT(DISTINCT a, b), MIN(DISTINCT a), STDDEV(a), JSON_ARRAYAGG(a) FROM t",
        "SELECT SUM(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) s, RANK() OVER w r, MAX(a) OVER (w ROWS UNBOUNDED PRECEDING) m, COUNT(*) OVER () n FROM t WINDOW w AS (ORDER BY a DESC)",
        "SELECT a FROM t USE INDEX (kb) WHERE (a, c) IN ((1, 2), (3, 4)) AND (SELECT MAX(z) FROM u WHERE u.a = t.a) > 1",
        "SELECT `strange ``tbl`.a AS `select` FROM t AS `strange ``tbl`",
        "SELECT 1 FROM DUAL WHERE 1 = 1",
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a WITH ROLLUP HAVING n > 1",
    ];
    for (i, query) in queries.iter().enumerate() {
        c.ok(&format!("CREATE VIEW v{i} AS {query}")).await;
        let text = c.value(&format!("SELECT view_definition FROM information_schema.views WHERE table_name = 'v{i}'")).await;
        let parsed = parse_query(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(print::shortened(&parsed, None).unwrap(), text, "{query}");
        let (plain, through) = (format!("SELECT COUNT(*) FROM ({query}) s"), format!("SELECT COUNT(*) FROM v{i}"));
        // Some columns share a name, which a derived table may not.
        if !query.contains("NOW") && !query.contains("DISTINCT b") && !query.starts_with("SELECT CA") {
            assert_eq!(c.run(&through).await.rows(), c.run(&plain).await.rows(), "{query}");
        }
    }
    c.ok("CREATE DATABASE d2").await;
    for (i, _) in queries.iter().enumerate() {
        let shown = c.rows(&format!("SHOW CREATE VIEW v{i}")).await[0][1].clone();
        let text = c.value(&format!("SELECT view_definition FROM information_schema.views WHERE table_schema = 'd' AND table_name = 'v{i}'")).await;
        // As a dump does: what is shown makes the same view.
        c.ok(&format!("DROP VIEW v{i}")).await;
        c.ok(&shown).await;
        let again = c.value(&format!("SELECT view_definition FROM information_schema.views WHERE table_schema = 'd' AND table_name = 'v{i}'")).await;
        // A comma is shown as a join, as by MySQL, and a join has parentheses when it is kept.
        assert_eq!(again.replace("(`d`.`t` join `d`.`u`)", "`d`.`t` join `d`.`u`"), text);
        c.ok("USE d2").await;
        c.rows(&format!("SHOW COLUMNS FROM d.v{i}")).await;
        c.ok("USE d").await;
    }
}

impl Answer {
    fn rows(self) -> Vec<Vec<Value>> {
        match self {
            Answer::Rows { rows, .. } => rows,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_condition_on_a_view_uses_the_tables_index() {
    let server = Server::new();
    let mut c = server.client().await;
    tables(&mut c).await;
    c.ok("CREATE VIEW v (k, name) AS SELECT a, b FROM t WHERE c < 6").await;
    c.ok("CREATE VIEW w AS SELECT name, k FROM v").await;
    for (sql, key) in [
        ("SELECT name FROM v WHERE k = 5", "PRIMARY"),
        ("SELECT k FROM w WHERE name = 'b9'", "kb"),
        ("UPDATE w SET name = 'x' WHERE k = 10", "PRIMARY"),
        ("DELETE FROM w WHERE name = 'b11'", "kb"),
        ("SELECT s.name FROM (SELECT b AS name, a AS k FROM t) s WHERE s.k = 3", "PRIMARY"),
    ] {
        let plan = c.rows(&format!("EXPLAIN {sql}")).await;
        assert_eq!((plan.len(), plan[0][6].as_str()), (1, key), "{sql}: {plan:?}");
    }
    let examined = |c: &Client| c.session.process().rows_examined();
    assert_eq!(c.rows("SELECT name FROM w WHERE k = 5").await, table("b5"));
    assert_eq!(examined(&c), 1);
    assert_eq!(c.rows("SELECT name FROM w WHERE k = 6").await, table(""));
}

#[tokio::test]
async fn what_reads_a_view_holds_it_and_plans_follow_it() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    tables(&mut a).await;
    a.ok("CREATE VIEW v AS SELECT a, b FROM t").await;
    let point = a.session.prepare(b"SELECT b FROM v WHERE a = ?").await.unwrap();
    let change = a.session.prepare(b"UPDATE v SET b = ? WHERE a = ?").await.unwrap();
    async fn execute(c: &mut Client, id: u32, params: &[Value]) -> Answer {
        let mut sink = Collector::default();
        c.session.execute_prepared(id, params, false, &mut sink).await.unwrap();
        sink.answers.remove(0)
    }
    for _ in 0..2 {
        assert_eq!(execute(&mut a, point.id, &[Value::Int(7)]).await.rows(), [[Value::text("b7")]]);
    }
    a.ok("CREATE OR REPLACE VIEW v AS SELECT a, CONCAT(b, '!') AS b FROM t").await;
    assert_eq!(execute(&mut a, point.id, &[Value::Int(7)]).await.rows(), [[Value::text("b7!")]]);
    assert!(matches!(execute(&mut a, change.id, &[Value::text("x"), Value::Int(7)]).await, Answer::Error(e) if e.code == 1348));
    a.ok("ALTER VIEW v AS SELECT a, b FROM t").await;
    assert!(matches!(execute(&mut a, change.id, &[Value::text("x"), Value::Int(7)]).await, Answer::Ok(ok) if ok.affected_rows == 1));
    // A transaction that has read it keeps it as it is.
    b.ok("SET lock_wait_timeout = 1").await;
    a.ok("BEGIN").await;
    assert_eq!(a.value("SELECT COUNT(*) FROM v").await, "500");
    assert_eq!(b.error("DROP VIEW v").await.0, 1205);
    assert_eq!(b.error("CREATE OR REPLACE VIEW v AS SELECT 1").await.0, 1205);
    a.ok("COMMIT").await;
    b.ok("DROP VIEW v").await;
    assert!(matches!(execute(&mut a, point.id, &[Value::Int(7)]).await, Answer::Error(e) if e.code == 1146));
}

#[tokio::test]
async fn lock_tables_of_a_view_has_its_tables() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    tables(&mut a).await;
    a.ok("CREATE VIEW v AS SELECT a FROM t").await;
    a.ok("CREATE VIEW w AS SELECT a FROM v").await;
    a.ok("LOCK TABLES w READ").await;
    assert_eq!(a.value("SELECT COUNT(*) FROM w").await, "500");
    assert_eq!(a.error("SELECT * FROM u").await.0, 1100);
    assert_eq!(a.error("DELETE FROM w").await.0, 1099);
    b.ok("SET lock_wait_timeout = 1").await;
    assert_eq!(b.error("DELETE FROM t WHERE a = 1").await.0, 1205);
    a.ok("UNLOCK TABLES").await;
    b.ok("DELETE FROM t WHERE a = 1").await;
}

#[tokio::test]
async fn a_view_is_logged_so_that_any_server_makes_the_same() {
    let server = Server::with(|settings| settings.set("log_bin", Some("ON")).unwrap());
    let mut c = server.client().await;
    tables(&mut c).await;
    c.ok("CREATE SQL SECURITY INVOKER VIEW v (k) AS SELECT a FROM t WHERE b = 'x' WITH CHECK OPTION").await;
    c.ok("DROP VIEW v").await;
    let events = c.rows("SHOW BINLOG EVENTS").await;
    let queries: Vec<&str> = events.iter().filter(|e| e[2] == "Query").map(|e| e[5].as_str()).collect();
    let made = "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY INVOKER VIEW `d`.`v` (`k`) AS select `d`.`t`.`a` AS `a` from `d`.`t` where (`d`.`t`.`b` = 'x') WITH CASCADED CHECK OPTION";
    assert!(queries[queries.len() - 2].ends_with(made), "{queries:?}");
    assert!(queries[queries.len() - 1].ends_with("DROP VIEW v"), "{queries:?}");
}

#[tokio::test]
async fn views_that_meet_themselves_or_lack_their_definer_are_refused() {
    let server = Server::new();
    let mut c = server.client().await;
    tables(&mut c).await;
    c.ok("CREATE VIEW v AS SELECT a FROM t").await;
    c.ok("CREATE VIEW w AS SELECT a FROM v").await;
    assert_eq!(c.error("ALTER VIEW v AS SELECT a FROM w").await.0, 1462);
    c.ok("CREATE USER x").await;
    c.ok("CREATE DEFINER = x VIEW y AS SELECT a FROM t").await;
    assert_eq!(c.error("SELECT COUNT(*) FROM y").await.0, 1356);
    c.ok("GRANT SELECT ON d.t TO x").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM y").await, "500");
    c.ok("DROP USER x").await;
    assert_eq!(c.error("SELECT * FROM y").await.0, 1449);
    c.ok("CREATE OR REPLACE DEFINER = x SQL SECURITY INVOKER VIEW y AS SELECT a FROM t").await;
    assert_eq!(c.rows("SHOW WARNINGS").await[0][1], "1449");
    assert_eq!(c.value("SELECT COUNT(*) FROM y").await, "500");
}
