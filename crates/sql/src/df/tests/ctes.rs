//! Common table expressions that are made once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use highkey_types::{Collation, ColumnType};

use super::{Fixture, explain, int, query};

fn tables() -> Fixture {
    let f = Fixture::new();
    f.table("a", &[("id", int()), ("x", int())], "1|10\n2|20\n3|NULL");
    f.table("b", &[("id", int()), ("a_id", int()), ("y", int())], "1|1|10\n2|1|11\n3|2|20\n4|9|NULL");
    f
}

/// How many rows of tables are read for a query. Nothing of it is left at its end.
#[track_caller]
fn rows_read(f: &Fixture, sql: &str) -> u64 {
    let context = f.context();
    let (examined, eval) = (context.examined.clone(), context.eval.clone());
    let bound = f.bind(sql).unwrap();
    f.runtime.block_on(async {
        let mut rows = query(bound, context).await.unwrap();
        while rows.next().await.unwrap().is_some() {}
    });
    assert_eq!(Arc::strong_count(&eval), 1, "{sql}: something holds its context");
    examined.load(Ordering::Relaxed)
}

#[test]
fn tables_are_read_once() {
    let f = tables();
    let with = "WITH c AS (SELECT a_id, MAX(y) m FROM b GROUP BY a_id)";
    for (sql, answer) in [
        ("SELECT COUNT(*), SUM(p.m = q.m) FROM c p JOIN c q USING (a_id)", "3|2"),
        ("SELECT a_id FROM c WHERE m = (SELECT MAX(m) FROM c)", "2"),
        ("SELECT a_id, m FROM c UNION ALL SELECT m, a_id FROM c ORDER BY 1, 2", "NULL|9;1|11;2|20;9|NULL;11|1;20|2"),
        ("SELECT COUNT(*) FROM c WHERE a_id IN (SELECT a_id FROM c WHERE m IS NULL) OR EXISTS (SELECT 1 FROM c d WHERE d.m < c.m)", "2"),
    ] {
        let sql = format!("{with} {sql}");
        f.check(&sql, answer);
        assert_eq!(rows_read(&f, &sql), 4, "{sql}");
        let spilled = f.ask_spilling(&sql).unwrap().iter().map(|row| row.join("|")).collect::<Vec<_>>().join(";");
        assert_eq!(spilled, answer, "{sql}");
    }
    // For each row of the enclosing query.
    let sql = format!("{with} SELECT id, (SELECT COUNT(*) FROM c p JOIN c q ON p.m <= q.m WHERE p.a_id >= a.id LIMIT 1) FROM a ORDER BY id");
    f.check(&sql, "1|3;2|1;3|0");
    assert_eq!(rows_read(&f, &sql), 3 + 4);
    f.check(&format!("{with}, d AS (SELECT p.m, q.a_id FROM c p JOIN c q ON p.m >= q.m LIMIT 10) SELECT COUNT(*) FROM d x JOIN d y USING (m)"), "5");
}

#[test]
fn volatile_rows_are_the_same_for_all() {
    let f = tables();
    f.check("WITH c AS (SELECT DISTINCT id, RAND() r FROM b) SELECT COUNT(*), SUM(p.r = q.r) FROM c p JOIN c q USING (id)", "4|4");
    f.check("WITH c AS (SELECT id, RAND() r FROM b LIMIT 3) SELECT COUNT(*) FROM c WHERE r IN (SELECT r FROM c)", "3");
    f.check("WITH c AS (SELECT MAX(RAND()) r FROM b) SELECT SUM((SELECT r FROM c WHERE a.id > 0) = c.r) FROM a JOIN c", "3");
    f.check("WITH RECURSIVE c AS (SELECT 1 i, RAND() r UNION ALL SELECT i + 1, RAND() FROM c WHERE i < 5) SELECT SUM(p.r = q.r) FROM c p JOIN c q USING (i)", "5");
    // Merged, as in MySQL.
    f.check("WITH c AS (SELECT id, RAND() r FROM b) SELECT COUNT(*), SUM(p.r = q.r) FROM c p JOIN c q USING (id)", "4|0");
}

#[test]
fn more_rows_than_memory_go_to_a_file() {
    let filler = "x".repeat(300);
    let rows: String = (0..60_000).map(|i| format!("{i}|{}|{filler}{i}\n", (i * 7919) % 60_000)).collect();
    let f = Fixture::with_memory(12 << 20);
    f.table("big", &[("id", int()), ("other", int()), ("t", ColumnType::varchar(400, Collation::utf8mb4()))], &rows);
    f.check(
        "WITH c AS (SELECT id, other, t FROM big LIMIT 100000) SELECT COUNT(*), SUM(p.id), MAX(LENGTH(q.t)) FROM c p JOIN c q ON p.id = q.other",
        "60000|1799970000|305",
    );
    let memory = f.engine.memory();
    assert!(memory.refused > 0);
    assert_eq!(memory.bytes, 0);
}

#[test]
fn explain_shows_the_plan_once() {
    let f = tables();
    let count = |lines: &[String], part: &str| lines.iter().filter(|line| line.contains(part)).count();
    let lines = f.explain("WITH c AS (SELECT a_id, MAX(y) m FROM b GROUP BY a_id) SELECT COUNT(*) FROM c p JOIN c q ON p.m = q.m").unwrap();
    for (part, times) in [("-> Materialize CTE c if needed", 2), ("(query plan printed elsewhere)", 1), ("Table scan on b", 1), ("Table scan on p", 1), ("Table scan on q", 1)] {
        assert_eq!(count(&lines, part), times, "{part}: {lines:#?}");
    }
    let lines = f.explain("WITH c AS (SELECT a_id, MAX(y) m FROM b GROUP BY a_id) SELECT COUNT(*) FROM c").unwrap();
    assert_eq!(count(&lines, "Materialize"), 0, "{lines:#?}");
    // It is planned and not run, and nothing holds it.
    let context = f.context();
    let eval = context.eval.clone();
    let bound = f.bind("WITH c AS (SELECT DISTINCT y FROM b) SELECT * FROM c p, c q WHERE p.y IN (SELECT y FROM c)").unwrap();
    f.runtime.block_on(explain(bound, context)).unwrap();
    assert_eq!(Arc::strong_count(&eval), 1);
}
