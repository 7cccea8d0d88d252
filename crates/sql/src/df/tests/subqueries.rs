//! Subqueries in all their shapes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use highkey_types::TimeZone;
use parking_lot::Mutex;

use super::{Eval, Fixture, QueryContext, int, query, text};

fn tables() -> Fixture {
    let f = Fixture::new();
    f.table("a", &[("id", int()), ("x", int()), ("s", text())], "1|10|one\n2|20|two\n3|NULL|three\n4|40|NULL");
    f.table("b", &[("id", int()), ("a_id!", int()), ("y", int()), ("s", text())], "1|1|10|ONE\n2|1|11|uno\n3|2|20|NULL\n4|9|NULL|nine");
    f
}

#[test]
fn in_and_not_in_know_null() {
    let f = tables();
    f.check("SELECT id FROM a WHERE x IN (SELECT y FROM b) ORDER BY id", "1;2");
    f.check("SELECT id FROM a WHERE x NOT IN (SELECT y FROM b) ORDER BY id", "");
    f.check("SELECT id FROM a WHERE x NOT IN (SELECT y FROM b WHERE y IS NOT NULL) ORDER BY id", "4");
    f.check("SELECT id FROM a WHERE id NOT IN (SELECT a_id FROM b) ORDER BY id", "3;4");
    f.check("SELECT id FROM a WHERE COALESCE(x, 11) NOT IN (SELECT COALESCE(y, 30) FROM b) ORDER BY id", "4");
    f.check("SELECT id FROM a WHERE COALESCE(x, 12) NOT IN (SELECT COALESCE(y, id) FROM b) ORDER BY id", "3;4");
    f.check("SELECT id, x IN (SELECT y FROM b) FROM a ORDER BY id", "1|1;2|1;3|NULL;4|NULL");
    f.check("SELECT id, x NOT IN (SELECT y FROM b WHERE id > 100) FROM a ORDER BY id", "1|1;2|1;3|1;4|1");
    f.check("SELECT id FROM a WHERE s IN (SELECT s FROM b)", "1");
    f.check("SELECT id FROM a WHERE (id, x) IN (SELECT a_id, y FROM b) ORDER BY id", "1;2");
    f.check("SELECT id FROM a WHERE id = 4 OR x IN (SELECT y FROM b) ORDER BY id", "1;2;4");
}

#[test]
fn exists() {
    let f = tables();
    f.check("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id) ORDER BY id", "1;2");
    f.check("SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id) ORDER BY id", "3;4");
    f.check("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.s = a.s)", "1");
    f.check("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.y > a.x AND b.a_id = a.id)", "1");
    f.check("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b) ORDER BY id", "1;2;3;4");
    f.check("SELECT EXISTS (SELECT 1 FROM b WHERE id > 100), NOT EXISTS (SELECT 1 FROM b)", "0|0");
    f.check("SELECT id, EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id) FROM a ORDER BY id", "1|1;2|1;3|0;4|0");
}

#[test]
fn scalar() {
    let f = tables();
    f.check("SELECT (SELECT MAX(y) FROM b), (SELECT y FROM b WHERE id > 100)", "20|NULL");
    f.check("SELECT id, (SELECT COUNT(*) FROM b WHERE b.a_id = a.id) FROM a ORDER BY id", "1|2;2|1;3|0;4|0");
    f.check("SELECT id, (SELECT SUM(y) + 1 FROM b WHERE b.a_id = a.id) FROM a ORDER BY id", "1|22;2|21;3|NULL;4|NULL");
    f.check("SELECT id FROM a WHERE x < (SELECT MAX(y) FROM b WHERE b.a_id = a.id)", "1");
    f.check("SELECT id, (SELECT MIN(y) FROM b WHERE b.s = a.s) FROM a ORDER BY id", "1|10;2|NULL;3|NULL;4|NULL");
    f.check("SELECT id, (SELECT b.s FROM b WHERE b.a_id = a.id ORDER BY b.id LIMIT 1) FROM a ORDER BY id", "1|ONE;2|NULL;3|NULL;4|NULL");
    f.check_error("SELECT (SELECT y FROM b)", 1242);
    f.check_error("SELECT id, (SELECT y FROM b WHERE b.a_id = a.id) FROM a", 1242);
    f.check("SELECT id FROM a ORDER BY (SELECT COUNT(*) FROM b WHERE b.a_id = a.id) DESC, id", "1;2;3;4");
}

#[test]
fn nested_correlation() {
    let f = tables();
    f.check("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND EXISTS (SELECT 1 FROM a c WHERE c.x = b.y AND c.id = a.id)) ORDER BY id", "1;2");
    f.check("SELECT id, (SELECT COUNT(*) FROM b WHERE b.a_id > (SELECT MIN(c.id) FROM a c WHERE c.id >= a.id)) FROM a ORDER BY id", "1|2;2|1;3|1;4|1");
}

#[test]
fn quantified() {
    let f = tables();
    f.check("SELECT id FROM a WHERE x > ANY (SELECT y FROM b) ORDER BY id", "2;4");
    f.check("SELECT id FROM a WHERE x >= ALL (SELECT y FROM b WHERE y IS NOT NULL) ORDER BY id", "2;4");
    f.check("SELECT id FROM a WHERE x >= ALL (SELECT y FROM b)", "");
    f.check("SELECT id FROM a WHERE x <> ALL (SELECT y FROM b WHERE id > 100) ORDER BY id", "1;2;3;4");
}

#[test]
fn derived_tables_and_ctes() {
    let f = tables();
    f.check("SELECT d.n FROM (SELECT a_id, COUNT(*) n FROM b GROUP BY a_id) d WHERE d.a_id = 1", "2");
    f.check("WITH c AS (SELECT a_id, MAX(y) m FROM b GROUP BY a_id) SELECT a.id, c.m FROM a JOIN c ON c.a_id = a.id ORDER BY a.id", "1|11;2|20");
}

/// As MySQL 8.0.12 does.
#[test]
fn a_subquery_that_fails_does_so_for_the_row_that_needs_it() {
    let f = tables();
    for (sql, expected) in [
        ("SELECT id, IF(id < 0, (SELECT y FROM b), 0) FROM a ORDER BY id", "1|0;2|0;3|0;4|0"),
        ("SELECT id, CASE WHEN id < 0 THEN (SELECT y FROM b) ELSE 7 END FROM a ORDER BY id", "1|7;2|7;3|7;4|7"),
        ("SELECT id, id < 0 AND (SELECT y FROM b) FROM a ORDER BY id", "1|0;2|0;3|0;4|0"),
        ("SELECT id, id > 0 OR (SELECT y FROM b) FROM a ORDER BY id", "1|1;2|1;3|1;4|1"),
        ("SELECT id FROM a WHERE id > 0 OR (SELECT y FROM b) = id ORDER BY id", "1;2;3;4"),
        ("SELECT id, id + (SELECT y FROM b) FROM a WHERE id < 0", ""),
        ("SELECT (SELECT y FROM b) FROM a WHERE id < 0", ""),
        ("SELECT id FROM a WHERE id < 0 AND id + (SELECT y FROM b) > 3", ""),
        ("SELECT SUM(IF(id < 0, (SELECT y FROM b), 0)) FROM a", "0"),
        ("SELECT id, IF(id < 0, EXISTS (SELECT 1 FROM b WHERE y = (SELECT y FROM b)), 0) FROM a ORDER BY id", "1|0;2|0;3|0;4|0"),
        ("SELECT IF(id < 0, (SELECT 9223372036854775807 + y FROM b WHERE y = 10), 0) FROM a WHERE id = 1", "0"),
    ] {
        f.check(sql, expected);
    }
    for sql in [
        "SELECT id FROM a WHERE id < 0 AND (SELECT y FROM b)",
        "SELECT id FROM a WHERE id < 0 AND NOT (SELECT y FROM b)",
        "SELECT id FROM a WHERE id < 0 AND id = (SELECT y FROM b)",
        "SELECT id FROM a WHERE id > 0 OR 1 < (SELECT y FROM b)",
        "SELECT id FROM a WHERE id < 0 AND (SELECT y FROM b) IS NULL",
        "SELECT COUNT(*) FROM a GROUP BY id HAVING id < 0 AND (SELECT y FROM b)",
        "SELECT IF(id = 3, (SELECT y FROM b), 0) FROM a",
        "SELECT id FROM a WHERE id BETWEEN 0 AND (SELECT y FROM b)",
    ] {
        f.check_error(sql, 1242);
    }
}

#[test]
fn a_subquery_that_fails_runs_once_and_says_nothing_until_a_row_needs_it() {
    let f = tables();
    let failing = "(SELECT ~0 + COUNT(x) + SUM(s + 0) FROM a)";
    let (rows, warnings, examined) = told(&f, &format!("SELECT id, IF(id > 5, {failing}, 7) FROM a"));
    assert_eq!((rows, warnings), (4, 0));
    assert_eq!(examined, 8, "four rows of each of the two");
    f.check_error(&format!("SELECT id, IF(id > 3, {failing}, 7) FROM a"), 1690);
}

#[test]
fn a_subquery_that_fails_keeps_no_warnings_of_rows_that_others_read() {
    let f = tables();
    // The one that fails has them made; the other one finds them.
    let (rows, warnings, _) = told(&f, "WITH c AS (SELECT s + 0 AS n FROM a) SELECT id, IF(id > 5, (SELECT n FROM c), 7), (SELECT COUNT(n) FROM c) FROM a");
    assert_eq!(rows, 4);
    assert!(warnings >= 3, "{warnings}");
}

/// Of a query: its rows, its warnings and the rows that it has read.
fn told(f: &Fixture, sql: &str) -> (usize, usize, u64) {
    let bound = f.bind(sql).unwrap();
    let eval = Arc::new(Mutex::new(Eval { zone: TimeZone::utc(), warnings: Vec::new(), random: HashMap::new() }));
    let examined = Arc::new(AtomicU64::new(0));
    let context = QueryContext { eval: eval.clone(), examined: examined.clone(), ..f.context() };
    let rows = f.runtime.block_on(async {
        let (mut stream, mut rows) = (query(bound, context).await.unwrap(), 0);
        while let Some(batch) = stream.next().await.unwrap() {
            rows += batch.len();
        }
        rows
    });
    let warnings = eval.lock().warnings.len();
    (rows, warnings, examined.load(Ordering::Relaxed))
}

#[test]
fn coalesce_asks_the_last_of_its_arguments_for_rows_that_need_it() {
    let f = tables();
    f.check("SELECT COALESCE(id, (SELECT x FROM a)) FROM a ORDER BY id", "1;2;3;4");
    f.check("SELECT COALESCE(y, (SELECT x FROM a)) FROM b WHERE y IS NOT NULL ORDER BY id", "10;11;20");
    f.check("SELECT COALESCE(y, (SELECT MAX(x) FROM a)) FROM b ORDER BY id", "10;11;20;40");
    f.check_error("SELECT COALESCE(y, (SELECT x FROM a)) FROM b", 1242);
}
