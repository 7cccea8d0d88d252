//! Types, NULLs, collations, grouping, windows, set operations.

use std::future::pending;
use std::pin::pin;

use futures::FutureExt;
use highkey_types::{Collation, ColumnType, TypeKind};

use super::{Fixture, Shared, int, text};
use crate::df::{EngineOptions, QueryEngine};

fn people() -> Fixture {
    let f = Fixture::new();
    let decimal = ColumnType::decimal(10, 2);
    f.table(
        "p",
        &[("id", int()), ("name", text()), ("team", text()), ("pay", decimal), ("score", ColumnType::double()), ("born", ColumnType::new(TypeKind::Date))],
        "1|Ann|red|100.50|1.5|1990-05-01
         2|bob|RED|200.25|-0.0|1985-12-31
         3|Cid|blue|NULL|0|NULL
         4|NULL|Blue|50.00|2.5|2000-01-01
         5|ann|green|100.50|NULL|1990-05-01",
    );
    f
}

#[test]
fn constants_have_mysql_types() {
    let f = Fixture::new();
    f.check("SELECT 1/2, 1=1, 'a'='A', NULL=1, NULL<=>NULL, 7 DIV 2, -7 % 3, 0.1+0.2", "0.5000|1|1|NULL|1|3|-1|0.3");
    f.check("SELECT 'a' = 'a ' COLLATE utf8mb4_bin, 1 IN (2, NULL), 1 NOT IN (2, 3)", "1|NULL|1");
    f.check("SELECT CASE WHEN NULL THEN 1 ELSE 2 END, COALESCE(NULL, 'x'), IF(1, 'y', 'n')", "2|x|y");
    f.check_error("SELECT 9223372036854775807 + 1", 1690);
}

#[test]
fn nulls_sort_first() {
    let f = people();
    f.check("SELECT id FROM p ORDER BY name, id", "4;1;5;2;3");
    f.check("SELECT id FROM p ORDER BY pay DESC, id DESC", "2;5;1;4;3");
    f.check("SELECT id FROM p ORDER BY id LIMIT 2 OFFSET 1", "2;3");
}

#[test]
fn text_compares_by_collation() {
    let f = people();
    f.check("SELECT id FROM p WHERE name = 'ANN' ORDER BY id", "1;5");
    f.check("SELECT id FROM p WHERE name IN ('BOB', 'cid') ORDER BY id", "2;3");
    f.check("SELECT id FROM p WHERE name LIKE 'a%' ORDER BY id", "1;5");
    f.check("SELECT id FROM p WHERE name NOT LIKE 'a%' ORDER BY id", "2;3");
    f.check("SELECT id FROM p WHERE name BETWEEN 'b' AND 'cz' ORDER BY id", "2;3");
    f.check("SELECT id FROM p WHERE name COLLATE utf8mb4_bin = 'ann'", "5");
    f.check("SELECT a.id, b.id FROM p a JOIN p b ON a.name = b.name AND a.id < b.id", "1|5");
}

#[test]
fn groups_are_the_collations() {
    let f = people();
    f.check("SELECT team, COUNT(*), SUM(pay), AVG(pay), MIN(name), MAX(name) FROM p GROUP BY team ORDER BY team", "blue|2|50.00|50.000000|Cid|Cid;green|1|100.50|100.500000|ann|ann;red|2|300.75|150.375000|Ann|bob");
    f.check("SELECT COUNT(DISTINCT team), COUNT(DISTINCT name, pay), COUNT(name) FROM p", "3|2|4");
    f.check("SELECT COUNT(*), SUM(pay), MAX(name) FROM p WHERE id > 100", "0|NULL|NULL");
    f.check("SELECT team FROM p WHERE id > 100 GROUP BY team", "");
    f.check("SELECT SUM(DISTINCT pay), AVG(score), STD(score), BIT_OR(id), BIT_AND(id) FROM p", "350.75|1|1.0606601717798212|7|0");
    f.check("SELECT GROUP_CONCAT(name ORDER BY name DESC SEPARATOR '-'), GROUP_CONCAT(DISTINCT name ORDER BY id) FROM p", "Cid-bob-Ann-ann|Ann,bob,Cid");
    f.check("SELECT score, COUNT(*) FROM p GROUP BY score ORDER BY score", "NULL|1;0|2;1.5|1;2.5|1");
    f.check("SELECT team, COUNT(*) c FROM p GROUP BY team HAVING c > 1 ORDER BY team", "blue|2;red|2");
}

#[test]
fn rollup_adds_the_totals() {
    let f = people();
    f.check(
        "SELECT team, born, COUNT(*) FROM p WHERE team <> 'blue' GROUP BY team, born WITH ROLLUP",
        &{
            let mut rows = f.ask("SELECT team, born, COUNT(*) FROM p WHERE team <> 'blue' GROUP BY team, born WITH ROLLUP").unwrap();
            let total = rows.iter().position(|r| r[0] == "NULL").expect("the grand total");
            assert_eq!(rows.remove(total), ["NULL", "NULL", "3"]);
            assert!(rows.contains(&vec!["green".into(), "NULL".into(), "1".into()]));
            f.ask("SELECT team, born, COUNT(*) FROM p WHERE team <> 'blue' GROUP BY team, born WITH ROLLUP").unwrap().iter().map(|r| r.join("|")).collect::<Vec<_>>().join(";")
        },
    );
    f.check("SELECT team, COUNT(*) FROM p WHERE id > 100 GROUP BY team WITH ROLLUP", "");
}

#[test]
fn arithmetic_over_columns() {
    let f = people();
    f.check("SELECT pay * 2, pay + id, pay / 3, -pay FROM p WHERE id = 2", "400.50|202.25|66.750000|-200.25");
    f.check("SELECT YEAR(born), EXTRACT(MONTH FROM born), born + INTERVAL 1 DAY FROM p WHERE id = 2", "1985|12|1986-01-01");
    f.check("SELECT id FROM p WHERE born >= '1990-05-01' ORDER BY id", "1;4;5");
    f.check("SELECT CONCAT(name, '!', id) FROM p WHERE id < 3 ORDER BY id", "Ann!1;bob!2");
    f.check("SELECT id FROM p WHERE score = 0 ORDER BY id", "2;3");
    f.check_error("SELECT id * 9223372036854775807 FROM p WHERE id = 2", 1690);
    f.check("SELECT 1 / (id - 1) FROM p WHERE id <= 2 ORDER BY id", "NULL;1.0000");
}

#[test]
fn joins() {
    let f = people();
    f.table("q", &[("id", int()), ("p_id", int()), ("note", text())], "1|1|x\n2|1|y\n3|4|z\n4|NULL|w");
    f.check("SELECT p.id, q.note FROM p LEFT JOIN q ON q.p_id = p.id ORDER BY p.id, q.id", "1|x;1|y;2|NULL;3|NULL;4|z;5|NULL");
    f.check("SELECT COUNT(*) FROM p, q WHERE q.p_id = p.id", "3");
    f.check("SELECT q.id FROM p RIGHT JOIN q ON q.p_id = p.id WHERE p.id IS NULL", "4");
    f.check("SELECT COUNT(*) FROM p CROSS JOIN q", "20");
    f.check("SELECT q.note FROM p JOIN q ON q.p_id = p.id AND p.name = 'ann' ORDER BY 1", "x;y");
}

#[test]
fn windows() {
    let f = people();
    f.check("SELECT id, ROW_NUMBER() OVER (PARTITION BY team ORDER BY id) FROM p ORDER BY id", "1|1;2|2;3|1;4|2;5|1");
    f.check("SELECT id, RANK() OVER (ORDER BY name), DENSE_RANK() OVER (ORDER BY name) FROM p ORDER BY id", "1|2|2;2|4|3;3|5|4;4|1|1;5|2|2");
    f.check("SELECT id, SUM(pay) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM p ORDER BY id", "1|100.50;2|300.75;3|200.25;4|50.00;5|150.50");
    f.check("SELECT id, MAX(name) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM p ORDER BY id", "1|Ann;2|bob;3|Cid;4|Cid;5|ann");
    f.check("SELECT id, LAG(id) OVER (ORDER BY id), LEAD(id, 2, 0) OVER (ORDER BY id) FROM p ORDER BY id", "1|NULL|3;2|1|4;3|2|5;4|3|0;5|4|0");
    f.check("SELECT id, FIRST_VALUE(name) OVER (PARTITION BY team ORDER BY id), COUNT(*) OVER () FROM p ORDER BY id", "1|Ann|5;2|Ann|5;3|Cid|5;4|Cid|5;5|ann|5");
    f.check("SELECT id, NTILE(2) OVER (ORDER BY id) FROM p ORDER BY id", "1|1;2|1;3|1;4|2;5|2");
}

#[test]
fn set_operations() {
    let f = people();
    f.check("SELECT DISTINCT team FROM p ORDER BY team", "blue;green;red");
    f.check("SELECT 'a' UNION SELECT 'A' UNION ALL SELECT 'b'", "a;b");
    f.check("SELECT id FROM p WHERE id < 3 UNION ALL SELECT id FROM p WHERE id < 2 ORDER BY 1", "1;1;2");
    f.check("SELECT 1 UNION SELECT 2.5 ORDER BY 1", "1.0;2.5");
}

#[test]
fn recursion() {
    let f = Fixture::new();
    f.check("WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT SUM(i), COUNT(*) FROM n", "15|5");
    f.check("WITH RECURSIVE n AS (SELECT 1 AS i UNION SELECT i % 3 + 1 FROM n) SELECT i FROM n ORDER BY i", "1;2;3");
    f.check_error("WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i FROM n) SELECT COUNT(*) FROM n", 3636);
}

#[test]
fn other_types_pass_through() {
    let f = Fixture::new();
    let members: std::sync::Arc<[highkey_types::Str]> = std::sync::Arc::from(["small".into(), "large".into()]);
    f.table(
        "o",
        &[
            ("id", int()),
            ("size", ColumnType::with_collation(TypeKind::Enum(members), Collation::utf8mb4())),
            ("big", ColumnType::decimal(50, 10)),
            ("at", ColumnType::new(TypeKind::DateTime(3))),
            ("t", ColumnType::new(TypeKind::Time(0))),
            ("u", ColumnType::ubigint()),
            ("f", ColumnType::new(TypeKind::Float)),
        ],
        "1|large|1234567890123456789012345678901234567890.0123456789|2024-02-29 12:34:56.789|-10:00:00|18446744073709551615|0.1
         2|small|NULL|NULL|NULL|NULL|NULL",
    );
    f.check("SELECT size, big, u, f FROM o ORDER BY size", "small|NULL|NULL|NULL;large|1234567890123456789012345678901234567890.0123456789|18446744073709551615|0.1");
    f.check("SELECT id FROM o WHERE size = 'LARGE'", "1");
    f.check("SELECT id FROM o WHERE u > 1 AND big > 1 AND at > '2024-01-01' AND t < 0", "1");
    f.check("SELECT SUM(big), MAX(u), MIN(at) IS NULL FROM o", "1234567890123456789012345678901234567890.0123456789|18446744073709551615|0");
}

#[test]
fn joins_find_rows_by_dates_in_strings() {
    let f = Fixture::new();
    f.table("d", &[("id", int()), ("made", ColumnType::new(TypeKind::Date))], "1|2020-01-01\n2|2020-02-29\n3|NULL");
    f.table("s", &[("id", int()), ("v", text())], "1|2020-1-1\n2|abc\n3|NULL\n4|2020-02-29 00:00:01");
    for op in ["=", "<=>"] {
        let plan = f.explain(&format!("SELECT d.id, s.id FROM d JOIN s ON d.made {op} s.v")).unwrap().join("\n");
        assert!(plan.contains("hash join"), "{plan}");
    }
    f.check("SELECT d.id, s.id FROM d JOIN s ON d.made <=> s.v ORDER BY 1, 2", "1|1;3|3");
}

#[test]
fn little_memory_spills() {
    let rows: String = (0..60_000).map(|i| format!("{i}|{}|filler text that takes room {}\n", (i * 7919) % 60_000, i % 5_000)).collect();
    let f = Fixture::with_memory(12 << 20);
    f.table("big", &[("id", int()), ("other", int()), ("t", text())], &rows);
    let join = "SELECT COUNT(*), SUM(a.id), MIN(b.t) FROM big a JOIN big b ON a.id = b.other AND a.t <> b.t";
    let answer = "59976|1799280000|filler text that takes room 1";
    f.check(join, answer);
    assert_eq!(f.ask_spilling(join).unwrap()[0].join("|"), answer);
    f.check("SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY t, id) k FROM big) d WHERE k > 50000", "10000");
    f.check("SELECT COUNT(*), MAX(c) FROM (SELECT t, COUNT(*) c FROM big GROUP BY t) d", "5000|12");
}

#[test]
fn what_a_crash_left_of_spilled_queries_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let spill_dir = dir.path().join("spill");
    std::fs::create_dir_all(spill_dir.join("datafusion-x1")).unwrap();
    std::fs::write(spill_dir.join("datafusion-x1/.tmp1"), [0; 1000]).unwrap();
    let engine = QueryEngine::new(EngineOptions { threads: 1, memory_bytes: 16 << 20, temp_bytes: 1 << 30, column_cache_bytes: 0, spill_dir: spill_dir.clone() }).unwrap();
    let left: Vec<_> = std::fs::read_dir(&spill_dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.len() == 1 && !left[0].ends_with("datafusion-x1"), "{left:?}");
    assert_eq!((std::fs::read_dir(&left[0]).unwrap().count(), engine.temp_bytes()), (0, 0));
}

#[test]
fn explain_names_what_runs() {
    let f = people();
    let lines = f.explain("SELECT team, COUNT(*) FROM p WHERE pay > 10 GROUP BY team ORDER BY team LIMIT 3").unwrap();
    let all = lines.join("\n");
    assert!(all.contains("Table scan on p") && all.contains("Filter: ") && all.contains("Sort: "), "{all}");
    let ranged = f.explain("SELECT SUM(pay) FROM p WHERE id BETWEEN 2 AND 3").unwrap().join("\n");
    assert!(ranged.contains("Index range scan on p using PRIMARY"), "{ranged}");
}

#[test]
fn a_constant_of_an_outer_joins_inner_side_still_sorts() {
    let f = Fixture::new();
    f.table("w", &[("a", int()), ("b", int())], "1|1\n2|2\n3|3\n4|4");
    f.check("SELECT w.a FROM w LEFT JOIN (SELECT a, b FROM w WHERE b = 3) s ON s.a = w.a ORDER BY s.b DESC, w.a", "3;1;2;4");
    f.check("SELECT w.a FROM (SELECT a, 7 AS c FROM w WHERE a > 2) s RIGHT JOIN w ON s.a = w.a ORDER BY s.c DESC, w.a", "3;4;1;2");
    f.check("SELECT w.a FROM w LEFT JOIN (SELECT a, MAX(b) OVER () AS c FROM w WHERE a > 2) s ON s.a = w.a ORDER BY s.c DESC, w.a LIMIT 1", "3");
}

#[test]
fn a_constant_group_key_still_sorts() {
    let f = Fixture::new();
    f.table("t0", &[("id!", int()), ("c0", int()), ("c4", int())], "1|1|5\n2|1|4\n3|2|6\n4|2|7");
    let inner = "SELECT DISTINCT a.c4 AS d0, -b.c0 AS d1, NULL AS d2 FROM t0 a LEFT JOIN t0 b ON 1 WHERE b.c4";
    f.check(&format!("SELECT NULL AS d3, d0 FROM ({inner}) s WHERE (s.d1, s.d0) = (-1, 6) GROUP BY s.d2, s.d1 ORDER BY d2, d0 DESC, d1"), "NULL|6");
    f.check(&format!("SELECT SUM(d0) AS d2, d1 FROM ({inner}) s WHERE s.d1 = -1 GROUP BY s.d2, s.d1 ORDER BY d2, d1"), "22|-1");
}

#[test]
fn what_the_optimizer_asks_about_null() {
    let f = Fixture::new();
    f.table("w", &[("a", int()), ("b", int())], "1|1\n2|2\n3|NULL");
    f.check("SELECT s5.a FROM w s5 LEFT JOIN w s6 ON s6.a = s5.b WHERE (s6.a + s6.b) NOT BETWEEN 1 AND 3", "2");
    f.check("SELECT s5.a FROM w s5 LEFT JOIN w s6 ON s6.a = s5.b WHERE SIGN(s6.a) ORDER BY 1", "1;2");
}

#[test]
fn a_window_that_stands_twice() {
    let f = Fixture::new();
    f.table("w", &[("a", int())], "1\n2");
    f.check("SELECT COUNT(*) OVER () x, COUNT(*) OVER () y, a FROM w ORDER BY a", "2|2|1;2|2|2");
}

#[test]
fn quotients_keep_their_digits_until_the_end() {
    let f = Fixture::new();
    f.table("q", &[("id", int()), ("a", int()), ("d", ColumnType::decimal(10, 2))], "1|1|1.00\n2|2|2.00\n3|5|5.50");
    f.check("SELECT a/3*3, d/7*7, CASE WHEN id > 0 THEN a/3 END * 3 FROM q WHERE id = 1", "1.0000|1.000000|1.0000");
    f.check("SELECT a/3 = 0.3333, a/3 > 0.3333, a/3 IN (0.3333), COALESCE(a/3, 0)*3 FROM q WHERE id = 1", "0|1|0|1.0000");
    f.check("SELECT SUM(a/3*3), SUM(1/3), AVG(1/3) FROM q", "8.0000|1.0000|0.33333333");
}

#[test]
fn aggregates_of_constants_and_unions_of_them() {
    let f = Fixture::new();
    f.table("c", &[("a!", int()), ("b", int())], "1|10\n2|20\n3|30");
    f.check("SELECT COUNT(DISTINCT k) FROM (SELECT 5 AS k, a FROM c) d WHERE a > 100", "0");
    f.check("SELECT COUNT(DISTINCT k), COUNT(k) FROM (SELECT 5 AS k, a FROM c) d WHERE a > 1", "1|2");
    f.check("SELECT k, COUNT(*) FROM (SELECT 5 AS k, a FROM c) d WHERE a > 100 GROUP BY k", "");
    // A constant in each of the two, but not the same: it sorts.
    f.check("SELECT 1 AS k, b FROM c UNION ALL SELECT -2, a FROM c ORDER BY k, b DESC LIMIT 3 OFFSET 2", "-2|1;1|30;1|20");
}

#[test]
fn a_plan_that_nobody_waits_for_any_more_keeps_nobody_in_order() {
    let f = people();
    let bound = f.bind("SELECT COUNT(*) FROM p").unwrap();
    let shared = Shared::new(f.context(), &bound.rel, false, None);
    assert!(shared.may_change_order());
    {
        let mut made = pin!(shared.ordered_plan(pending::<()>()));
        assert!(made.as_mut().now_or_never().is_none() && !shared.may_change_order());
    }
    assert!(shared.may_change_order());
}
