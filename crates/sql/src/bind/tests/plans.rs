//! Plans of queries, and the errors of name resolution.

use super::*;
use crate::plan::{best_access, describe_rel, key_ranges};

fn plan(sql: &str) -> String {
    let session = TestSession::with_tables();
    session.query(sql).map_or_else(|e| format!("{}: {}", e.code, e.message), |q| describe_rel(&q.rel))
}

fn error(sql: &str) -> u16 {
    TestSession::with_tables().query(sql).err().unwrap_or_else(|| panic!("{sql} was bound")).code
}

#[test]
fn names_and_clauses() {
    assert_eq!(
        plan("SELECT id, a + 1 AS x FROM t WHERE b = 'y' ORDER BY x DESC, c LIMIT 2"),
        "-> Project: t.id, x\n    -> Limit: 2 row(s)\n        -> Sort: x DESC, t.c\n            -> Project: t.id, (t.a + 1), t.c\n                -> Filter: (t.b = 'y')\n                    -> Table scan on t\n"
    );
    for (sql, code) in [
        ("SELECT nope FROM t", 1054),
        ("SELECT id FROM t, u", 1052),
        ("SELECT x.id FROM t", 1054),
        ("SELECT * FROM t, t", 1066),
        ("SELECT * FROM nope", 1146),
        ("SELECT a FROM t GROUP BY b", 1055),
        ("SELECT a, count(*) FROM t", 1140),
        ("SELECT * FROM t WHERE count(*) > 1", 1111),
        ("SELECT 1 UNION SELECT 1, 2", 1222),
        ("SELECT (SELECT 1, 2)", 1241),
        ("SELECT * FROM t WHERE (id, a) = 1", 1241),
        ("SELECT nope(1)", 1305),
        ("SELECT left('a')", 1582),
        ("SELECT 'a' COLLATE utf8mb4_bin = 'b' COLLATE utf8mb4_general_ci", 1267),
        ("SELECT * FROM t ORDER BY 9", 1054),
        ("SELECT DISTINCT a FROM t ORDER BY b", 3065),
        ("SELECT * FROM (SELECT 1, 1) x", 1060),
        ("SELECT * FROM (SELECT 1)", 1248),
        ("SELECT a FROM t HAVING nope = 1", 1054),
        ("SELECT * FROM t JOIN u USING (nope)", 1054),
    ] {
        assert_eq!(error(sql), code, "{sql}");
    }
}

/// Queries that bind.
pub(super) const QUERIES: &[&str] = &[
    "SELECT a, count(*) c, sum(c) FROM t GROUP BY a HAVING c > 1 ORDER BY sum(c)",
    "SELECT id, a, b FROM t GROUP BY id",
    "SELECT t.id, t.b, u.name FROM t JOIN u ON t.id = u.t_id WHERE u.name = 'x' GROUP BY u.id",
    "SELECT a + 1 AS k, max(b) FROM t GROUP BY k",
    "SELECT a, b, GROUPING(a), count(*) FROM t GROUP BY a, b WITH ROLLUP HAVING GROUPING(b) = 0",
    "SELECT (SELECT max(u.id) FROM u WHERE u.t_id = t.a) FROM t GROUP BY a",
    "SELECT sum(a) OVER (PARTITION BY b ORDER BY c), row_number() OVER w FROM t WINDOW w AS (ORDER BY id)",
    "SELECT a, sum(count(*)) OVER () FROM t GROUP BY a",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "WITH x AS (SELECT a FROM t) SELECT * FROM x JOIN x AS y USING (a)",
    "WITH x AS (SELECT a, count(*) AS n FROM t GROUP BY a) SELECT x.a, sum(y.n) FROM x JOIN x AS y USING (n) GROUP BY x.a",
    "SELECT * FROM t NATURAL LEFT JOIN u",
    "SELECT * FROM t RIGHT JOIN u ON t.id = u.t_id WHERE EXISTS (SELECT 1 FROM t AS t2 WHERE t2.id = u.id)",
    "SELECT 1 AS x UNION ALL SELECT 'a' ORDER BY x",
    "SELECT * FROM t WHERE a IN (SELECT t_id FROM u) AND b > ALL (SELECT name FROM u)",
    "VALUES ROW(1, 'a'), ROW(2.5, 'b')",
    "SELECT DISTINCT a, b FROM t ORDER BY a + 1, upper(b)",
    "SELECT a AS x FROM t ORDER BY x + 1, t.b LIMIT 1 OFFSET 2",
    "SELECT t.* FROM t, (SELECT max(id) AS m FROM u) AS d WHERE t.id = d.m FOR UPDATE OF t SKIP LOCKED",
    "SELECT count(DISTINCT a, b), group_concat(DISTINCT b ORDER BY a DESC SEPARATOR '-') FROM t",
    "(SELECT a FROM t LIMIT 1) UNION (SELECT id FROM u ORDER BY name LIMIT 1) ORDER BY 1 DESC LIMIT 3",
    "SELECT * FROM t WHERE (id, a) IN (SELECT id, t_id FROM u) AND (id, a) IN ((1, 2), (3, 4))",
    "SELECT a, (SELECT count(*) FROM u WHERE u.t_id = t.a HAVING count(*) > t.a) FROM t GROUP BY a",
    "SELECT lag(a, 1, 0) OVER w, first_value(b) OVER (w ROWS 2 PRECEDING), ntile(4) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY id)",
];

#[test]
fn groups_and_what_they_determine() {
    for sql in QUERIES {
        let text = plan(sql);
        assert!(text.starts_with("->"), "{sql}: {text}");
    }
}

#[test]
fn what_with_names_is_made_once_where_mysql_materializes_it() {
    for (sql, made) in [
        ("WITH x AS (SELECT a, rand() AS r FROM t WHERE a > 1 ORDER BY a) SELECT * FROM x JOIN x AS y USING (a)", 0),
        ("WITH x AS (SELECT 1 AS a UNION SELECT 2) SELECT * FROM x JOIN x AS y USING (a)", 0),
        ("WITH x AS (SELECT rand() AS r) SELECT * FROM x", 1),
        ("WITH x AS (SELECT DISTINCT a FROM t) SELECT * FROM x WHERE a = 1", 0),
        ("WITH x AS (SELECT DISTINCT a FROM t) SELECT * FROM x JOIN x AS y USING (a)", 2),
        ("WITH x AS (SELECT a FROM t LIMIT 3) SELECT * FROM x JOIN x AS y USING (a)", 2),
        ("WITH x AS (SELECT a FROM t UNION SELECT id FROM u) SELECT * FROM x JOIN x AS y USING (a)", 2),
        ("WITH x AS (SELECT count(*) AS n FROM t) SELECT * FROM x JOIN x AS y USING (n)", 2),
        ("WITH x AS (SELECT a, row_number() OVER (ORDER BY id) AS n FROM t ORDER BY b) SELECT * FROM x JOIN x AS y USING (n)", 2),
        ("WITH x AS (SELECT id, (SELECT max(u.id) FROM u WHERE u.t_id = t.id) AS m FROM t) SELECT * FROM x JOIN x AS y USING (id)", 2),
        ("WITH x AS (SELECT id, (@n := 1) AS m FROM t) SELECT * FROM x JOIN x AS y USING (id)", 2),
        ("WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 5) SELECT * FROM x", 0),
        ("WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 5) SELECT * FROM x JOIN x AS y USING (n)", 2),
        // Each round reads it.
        ("WITH RECURSIVE y AS (SELECT DISTINCT a FROM t), x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x JOIN y ON y.a = x.n) SELECT * FROM x", 1),
        // The other is in a subquery, which is not shown.
        ("WITH x AS (SELECT DISTINCT a FROM t) SELECT * FROM x WHERE a = (SELECT max(a) FROM x)", 1),
        // The inner one is read in one place.
        ("WITH x AS (SELECT DISTINCT a FROM t), y AS (SELECT DISTINCT a FROM x) SELECT * FROM y JOIN y AS z USING (a)", 2),
        ("WITH x AS (SELECT DISTINCT a FROM t), y AS (SELECT a FROM x) SELECT * FROM y JOIN y AS z USING (a)", 2),
    ] {
        let text = plan(sql);
        assert!(text.starts_with("->"), "{sql}: {text}");
        assert_eq!(text.matches("Materialize CTE x").count() + text.matches("Materialize CTE y").count(), made, "{sql}: {text}");
    }
}

#[test]
fn types_merge() {
    let session = TestSession::with_tables();
    let types = |sql: &str| -> Vec<String> { session.query(sql).unwrap().fields().iter().map(|f| f.ty.ty.to_string()).collect() };
    assert_eq!(types("SELECT a FROM t UNION SELECT c FROM t"), ["decimal(12,2)"]);
    assert_eq!(types("SELECT sum(a), avg(a), sum(c), count(*), max(b) FROM t"), ["decimal(32,0)", "decimal(14,4)", "decimal(32,2)", "bigint", "varchar(20)"]);
    assert_eq!(types("SELECT a / 3, c * c, a * c FROM t"), ["decimal(14,4)", "decimal(20,4)", "decimal(20,2)"]);
    assert_eq!(types("SELECT coalesce(d, '2020-01-01'), ifnull(a, 1.5), concat(b, a) FROM t")[1..], ["decimal(11,1)", "varchar(31)"]);
    assert_eq!(types("SELECT pi() * 2, pi() / 2, pi() + 1e0, coalesce(pi(), a) FROM t"), ["double(22,6)", "double(22,10)", "double", "double(22,6)"]);
}

#[test]
fn index_ranges() {
    let mut session = TestSession::with_tables();
    let table = session.db.as_ref().unwrap().catalog().table("test", "t").unwrap();
    let columns: Vec<usize> = (0..table.def().columns.len()).collect();
    let mut ranges = |condition: &str| {
        let filter = bind_table_expr(&parse::parse_expr(condition).unwrap(), table.def(), true, &session).unwrap();
        let access = best_access(&filter, table.def(), &columns, &Default::default())?;
        let found = key_ranges(&access, table.def(), &mut session).unwrap();
        Some((access.index, access.unique, access.residual.is_some(), found.iter().map(|r| format!("{:?}..{:?}", r.lower, r.upper)).collect::<Vec<_>>()))
    };
    let point = |n: i64| format!("Included([Int({n})])..Included([Int({n})])");
    assert_eq!(ranges("id = 5"), Some((0, true, false, vec![point(5)])));
    assert_eq!(ranges("id = '5'"), Some((0, true, false, vec![point(5)])));
    assert_eq!(ranges("id = '5x'"), Some((0, true, true, vec![point(5)])));
    assert_eq!(ranges("id > '5x'"), None);
    assert_eq!(ranges("id IN (7, 3, 3) AND b = 'x'"), Some((0, true, true, vec![point(3), point(7)])));
    assert_eq!(ranges("id BETWEEN 1 AND 9"), Some((0, false, false, vec!["Included([Int(1)])..Included([Int(9)])".to_string()])));
    assert_eq!(ranges("id > 1.5"), Some((0, false, false, vec!["Excluded([Int(1)])..Unbounded".to_string()])));
    assert_eq!(ranges("id = 1.5"), Some((0, true, false, vec![])));
    assert_eq!(ranges("id < 99999999999"), Some((0, false, false, vec!["Unbounded..Included([Int(2147483647)])".to_string()])));
    assert_eq!(ranges("a < 5"), Some((1, false, false, vec!["Excluded([Null])..Excluded([Int(5)])".to_string()])));
    assert_eq!(ranges("a IS NULL"), Some((1, false, false, vec!["Included([Null])..Included([Null])".to_string()])));
    assert_eq!(ranges("id = NULL"), Some((0, true, false, vec![])));
    assert_eq!(ranges("id = 1 OR id = 4 OR id BETWEEN 3 AND 6").map(|r| r.3.len()), Some(2));
    assert_eq!(ranges("b = 'x'"), None);
    assert_eq!(ranges("id + 1 = 5"), None);
}

#[test]
fn statements_that_change_rows() {
    let session = TestSession::with_tables();
    let statement = |sql: &str| parse::parse_single(sql, ParseOptions::default()).unwrap().statement;
    let ast::Statement::Insert(insert) = statement("INSERT INTO t (id, a) VALUES (1, 2), (3, DEFAULT) ON DUPLICATE KEY UPDATE a = a + VALUES(a)") else { panic!() };
    let bound = bind_insert(&insert, &session).unwrap();
    assert_eq!(bound.columns, [0, 1]);
    let AssignedValue::Expr(expr) = &bound.on_duplicate[0].1 else { panic!() };
    assert_eq!(expr.columns(), [1, 6]);
    let ast::Statement::Insert(insert) = statement("INSERT INTO t VALUES (1, 2)") else { panic!() };
    assert_eq!(bind_insert(&insert, &session).unwrap_err().code, 1136);
    let ast::Statement::Update(update) = statement("UPDATE t SET a = a + 1 WHERE id = 3 ORDER BY a LIMIT 1") else { panic!() };
    assert!(matches!(bind_update(&update, &session).unwrap(), BoundUpdate::Single(_)));
    let ast::Statement::Update(update) = statement("UPDATE t JOIN u ON t.id = u.t_id SET t.a = u.id, u.name = t.b WHERE t.a > 1") else { panic!() };
    let BoundUpdate::Multi(multi) = bind_update(&update, &session).unwrap() else { panic!() };
    assert_eq!(multi.targets.len(), 2);
    assert_eq!(multi.targets[0].row, 0..5);
    assert_eq!(multi.targets[1].assignments, [(2, Some(9))]);
    let ast::Statement::Delete(delete) = statement("DELETE u FROM t JOIN u ON t.id = u.t_id") else { panic!() };
    let BoundDelete::Multi { targets, .. } = bind_delete(&delete, &session).unwrap() else { panic!() };
    assert_eq!(targets.len(), 1);
    assert_eq!(targets[0].row, 0..3);
}
