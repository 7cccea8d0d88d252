//! Queries on DataFusion whose plans are kept for the next execution: when they are used, and when not.

use highkey_types::Value;

use super::{Answer, Client, Server, table};

async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE a (id INT PRIMARY KEY, g INT, s VARCHAR(10), v DOUBLE, t TIME)").await;
    c.ok("CREATE TABLE b (id INT PRIMARY KEY, a_id INT, v INT, KEY (a_id))").await;
    c.ok("INSERT INTO a VALUES (1, 1, 'one', 0.5, '01:00'), (2, 1, 'Two', 1.5, '02:00'), (3, 2, 'three', NULL, NULL), (4, NULL, NULL, -4, '04:00')").await;
    c.ok("INSERT INTO b VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 3, 40)").await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    c
}

/// Queries of all sessions that were executed by a kept plan.
async fn used(c: &mut Client) -> u64 {
    c.rows("SHOW STATUS LIKE 'Highkey_select_kept_plan'").await[0][1].parse().unwrap()
}

/// How many statements had several threads.
async fn parallel(c: &mut Client) -> u64 {
    c.rows("SHOW STATUS LIKE 'PQ_stmt_executed'").await[0][1].parse().unwrap()
}

const JOINED: &[u8] = b"SELECT a.g, COUNT(*), SUM(b.v) FROM a JOIN b ON a.id = b.a_id WHERE b.v >= ? GROUP BY a.g ORDER BY a.g";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_values_find_the_plan() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let id = c.session.prepare(JOINED).await.unwrap().id;
    let from_0 = table("1 2 30|2 2 70");
    let from_20 = table("1 1 20|2 2 70");
    // (value, the plan is there already)
    for (value, kept, expected) in [
        (Value::Int(0), false, &from_0),
        (Value::Int(0), true, &from_0),
        (Value::Int(20), false, &from_20),
        (Value::Int(0), true, &from_0),
        (Value::Int(20), true, &from_20),
        (Value::UInt(20), false, &from_20),
        (Value::Null, false, &table("")),
        (Value::Null, true, &table("")),
        // An integer, beside a column of integers.
        (Value::text("20"), true, &from_20),
        (Value::Double(-0.0), false, &from_0),
        (Value::Double(0.0), false, &from_0),
        (Value::Double(-0.0), true, &from_0),
        (Value::Decimal("20.0".parse().unwrap()), false, &from_20),
        (Value::Decimal("20.00".parse().unwrap()), false, &from_20),
    ] {
        let before = used(&mut c).await;
        assert_eq!(&c.rows_of(id, std::slice::from_ref(&value)).await, expected, "{value:?}");
        assert_eq!(used(&mut c).await - before, u64::from(kept), "{value:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_those_of_the_execution() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut other = server.client().await;
    let id = c.session.prepare(JOINED).await.unwrap().id;
    let zero = [Value::Int(0)];
    assert_eq!(c.rows_of(id, &zero).await, table("1 2 30|2 2 70"));
    let before = used(&mut c).await;
    other.ok("INSERT INTO b VALUES (5, 2, 1)").await;
    assert_eq!(c.rows_of(id, &zero).await, table("1 3 31|2 2 70"));
    c.ok("BEGIN").await;
    c.ok("DELETE FROM b WHERE id = 5").await;
    assert_eq!(c.rows_of(id, &zero).await, table("1 2 30|2 2 70"));
    other.ok("UPDATE b SET v = 100 WHERE id = 1").await;
    assert_eq!(c.rows_of(id, &zero).await, table("1 2 30|2 2 70"));
    c.ok("ROLLBACK").await;
    assert_eq!(c.rows_of(id, &zero).await, table("1 3 121|2 2 70"));
    assert_eq!(used(&mut c).await - before, 4);
}

/// After `change` the plan is made anew, and then kept again.
async fn makes_anew(c: &mut Client, id: u32, change: &str, expected: &str) {
    let zero = [Value::Int(0)];
    c.rows_of(id, &zero).await;
    c.run(change).await;
    for kept in [0, 1] {
        let before = used(c).await;
        assert_eq!(c.rows_of(id, &zero).await, table(expected), "{change}");
        assert_eq!(used(c).await - before, kept, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_plan_depends_on_makes_another() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let id = c.session.prepare(JOINED).await.unwrap().id;
    let same = "1 2 30|2 2 70";
    for change in [
        "CREATE INDEX by_v ON b (v)",
        "ALTER TABLE a ADD COLUMN more INT FIRST",
        "SET time_zone = '+05:00'",
        "SET sql_mode = ''",
        "SET div_precision_increment = 9",
        "SET group_concat_max_len = 50",
        "SET parallel_cost_threshold = 900",
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        "SET max_error_count = 0",
        "ANALYZE TABLE b",
        "ANALYZE TABLE b UPDATE HISTOGRAM ON v",
        "SELECT /*+ SET_VAR(sql_mode = 'ANSI') */ 1",
    ] {
        makes_anew(&mut c, id, change, same).await;
    }
    makes_anew(&mut c, id, "CREATE TEMPORARY TABLE b SELECT 2 AS a_id, 7 AS v", "1 1 7").await;
    makes_anew(&mut c, id, "DROP TEMPORARY TABLE b", same).await;
    makes_anew(&mut c, id, "ALTER TABLE a DROP COLUMN g, ADD COLUMN g INT DEFAULT 9", "9 4 100").await;
    let rows: Vec<String> = (100..400).map(|i| format!("({i}, 1, 0)")).collect();
    makes_anew(&mut c, id, &format!("INSERT INTO b VALUES {}", rows.join(", ")), "9 304 100").await;
    c.ok("DROP TABLE b").await;
    assert!(matches!(c.execute_id(id, &[Value::Int(0)]).await, Answer::Error(e) if e.code == 1146));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_execution_knows_is_not_kept() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET @u = 1, timestamp = 1700000000").await;
    for sql in [
        "SELECT g, COUNT(*), MAX(NOW()) FROM a GROUP BY g ORDER BY g",
        "SELECT g, SUM(v * @u) FROM a GROUP BY g ORDER BY g",
        "SELECT g, @n := COUNT(*) FROM a GROUP BY g ORDER BY g",
        "SELECT g, COUNT(*) FROM a WHERE v >= @@div_precision_increment - 4 GROUP BY g ORDER BY g",
        "SELECT g, MAX(CAST(t AS DATETIME)) FROM a GROUP BY g ORDER BY g",
        "SELECT g, COUNT(*) FROM a WHERE v >= (SELECT AVG(v) FROM a) GROUP BY g ORDER BY g",
        "SELECT id, (SELECT COUNT(*) FROM b WHERE b.a_id < a.id) FROM a ORDER BY id",
        "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT g, COUNT(*) FROM a JOIN n ON a.id = n.i GROUP BY g ORDER BY g",
        "SELECT COUNT(*) > 1 FROM information_schema.tables WHERE table_schema = 'd'",
        "SELECT g, COUNT(*) FROM a GROUP BY g ORDER BY g FOR SHARE",
        "SELECT SQL_CALC_FOUND_ROWS g, COUNT(*) FROM a GROUP BY g ORDER BY g LIMIT 1",
    ] {
        let id = c.session.prepare(sql.as_bytes()).await.unwrap().id;
        let first = c.rows_of(id, &[]).await;
        let before = used(&mut c).await;
        for _ in 0..3 {
            assert_eq!(c.rows_of(id, &[]).await, first, "{sql}");
        }
        assert_eq!(used(&mut c).await, before, "{sql}");
    }
    // Planning warns of the constant, each time.
    c.ok("PREPARE s FROM 'SELECT g, COUNT(*) FROM a WHERE id > CAST(? AS SIGNED) GROUP BY g ORDER BY g'").await;
    c.ok("SET @bad = '1x'").await;
    for _ in 0..3 {
        assert_eq!(c.rows("EXECUTE s USING @bad").await, table("NULL 1|1 1|2 1"));
        assert_eq!(c.rows("SHOW WARNINGS").await[0][1], "1292");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_plans_answer_as_new_ones() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for sql in [
        "SELECT s, v / 3, CONCAT(s, g) FROM a WHERE s LIKE 't%' ORDER BY s",
        "SELECT DISTINCT g FROM a ORDER BY g",
        "SELECT g, MIN(s), MAX(s), SUM(v), AVG(v), GROUP_CONCAT(s ORDER BY id) FROM a GROUP BY g ORDER BY g",
        "SELECT g, COUNT(*) FROM a GROUP BY g WITH ROLLUP",
        "SELECT id, SUM(v) OVER (PARTITION BY g ORDER BY id), ROW_NUMBER() OVER (ORDER BY id DESC) FROM a ORDER BY id",
        "SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id AND b.v > 15 ORDER BY a.id, b.id",
        "SELECT a.id, b.id FROM a JOIN b ON a.v < b.v ORDER BY a.id DESC, b.id LIMIT 3 OFFSET 1",
        "SELECT a.id, b.id FROM a, b ORDER BY a.id, b.id",
        "SELECT id FROM a WHERE id IN (SELECT a_id FROM b WHERE v > 10) ORDER BY id",
        "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id) ORDER BY id",
        "SELECT id, v FROM a WHERE v * 30 >= (SELECT MIN(b.v) FROM b WHERE b.a_id = a.id) ORDER BY id",
        "SELECT g FROM a UNION SELECT a_id FROM b ORDER BY 1",
        "SELECT g FROM a UNION ALL SELECT a_id FROM b",
        "SELECT COUNT(DISTINCT g), COUNT(DISTINCT s), MIN(id), MAX(v) FROM a",
        "SELECT x.n, COUNT(*) FROM (SELECT 1 n UNION ALL SELECT 2) x JOIN a ON a.g = x.n GROUP BY x.n ORDER BY x.n",
        "SELECT id, s FROM a WHERE id BETWEEN 2 AND 3",
    ] {
        let id = c.session.prepare(sql.as_bytes()).await.unwrap().id;
        let first = c.rows_of(id, &[]).await;
        assert!(!first.is_empty(), "{sql}");
        let before = used(&mut c).await;
        for _ in 0..3 {
            assert_eq!(c.rows_of(id, &[]).await, first, "{sql}");
        }
        assert_eq!(used(&mut c).await - before, 3, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_for_several_threads_are_kept() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut other = server.client().await;
    let rows: Vec<String> = (10..3000).map(|i| format!("({i}, {}, 20)", i % 5)).collect();
    c.ok(&format!("INSERT INTO b VALUES {}", rows.join(", "))).await;
    c.ok("SET parallel_cost_threshold = 0, parallel_default_dop = 2, force_parallel_execute = ON").await;
    for sql in [
        "SELECT a.g, COUNT(*), SUM(b.v) FROM a JOIN b ON a.id = b.a_id GROUP BY a.g ORDER BY a.g",
        "SELECT COUNT(DISTINCT x.a_id), COUNT(*) FROM b x JOIN b y ON x.id = y.id + 1 LEFT JOIN a ON a.id = y.a_id WHERE x.v > 10",
        "SELECT a_id, COUNT(*) FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.id = b.id) GROUP BY a_id HAVING COUNT(*) > 1 ORDER BY a_id",
    ] {
        let id = c.session.prepare(sql.as_bytes()).await.unwrap().id;
        let first = c.rows_of(id, &[]).await;
        let (kept, executed) = (used(&mut c).await, parallel(&mut c).await);
        for _ in 0..30 {
            assert_eq!(c.rows_of(id, &[]).await, first, "{sql}");
        }
        assert!(used(&mut c).await > kept, "{sql}");
        assert!(parallel(&mut c).await >= executed + 30, "{sql}");
        // Each execution has a snapshot of its own.
        other.ok("INSERT INTO b VALUES (5000, 1, 20), (5001, 1, 20)").await;
        let more = c.rows_of(id, &[]).await;
        assert_ne!(more, first, "{sql}");
        other.ok("DELETE FROM b WHERE id >= 5000").await;
        assert_eq!(c.rows_of(id, &[]).await, first, "{sql}");
        // A plan for another number of threads is another.
        c.ok("SET parallel_default_dop = 3").await;
        assert_eq!(c.rows_of(id, &[]).await, first, "{sql}");
        c.ok("SET parallel_default_dop = 2").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_least_recently_used_goes() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut ids = Vec::new();
    for n in 0..9 {
        let sql = format!("SELECT g, COUNT(*) + {n} FROM a GROUP BY g ORDER BY g");
        ids.push(c.session.prepare(sql.as_bytes()).await.unwrap().id);
    }
    for &id in &ids[..8] {
        c.rows_of(id, &[]).await;
    }
    let before = used(&mut c).await;
    for &id in &ids[..8] {
        c.rows_of(id, &[]).await;
    }
    assert_eq!(used(&mut c).await - before, 8);
    // In place of the plan of the first.
    c.rows_of(ids[8], &[]).await;
    c.rows_of(ids[0], &[]).await;
    assert_eq!(used(&mut c).await - before, 8);
    c.rows_of(ids[7], &[]).await;
    assert_eq!(used(&mut c).await - before, 9);
}

/// Runs `sql` with each of `values` in turn, written as they are in a text, and compares it with that text; how many executions were by a kept plan.
async fn in_turn(server: &Server, c: &mut Client, sql: &str, values: &[&[(Value, &str)]]) -> u64 {
    let mut texts = server.client().await;
    texts.ok("SET highkey_executor = 'DATAFUSION', highkey_statement_patterns = 'OFF'").await;
    let id = c.session.prepare(sql.as_bytes()).await.unwrap().id;
    let before = used(c).await;
    for values in values {
        let mut text = sql.to_owned();
        values.iter().for_each(|(_, written)| text = text.replacen('?', written, 1));
        let values: Vec<Value> = values.iter().map(|(value, _)| value.clone()).collect();
        assert_eq!(c.rows_of(id, &values).await, texts.rows(&text).await, "{text}");
    }
    used(c).await - before
}

fn ints<const N: usize>(written: [&str; N]) -> [(Value, &str); N] {
    written.map(|written| (Value::Int(written.parse().unwrap()), written))
}

async fn with_dates(server: &Server) -> Client {
    let mut c = filled(server).await;
    c.ok("CREATE TABLE d (id INT PRIMARY KEY, day DATE, at DATETIME(3), n DECIMAL(8, 2), u BIGINT UNSIGNED, s VARCHAR(300), KEY (day))").await;
    c.ok(
        "INSERT INTO d VALUES (1, '1994-01-01', '1994-01-01 10:00', 1.5, 5, 'BUILDING'), (2, '1994-06-30', '1994-06-30 00:00:00.5', 2.25, 6, 'building '), \
         (3, '1995-01-01', '1995-01-01', -1, 18446744073709551615, 'AUTOMOBILE'), (4, NULL, NULL, NULL, NULL, NULL), (5, '1994-12-31', '1994-12-31 23:59', 99, 0, '')",
    )
    .await;
    c
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_values_find_the_plan() {
    let server = Server::new();
    let mut c = with_dates(&server).await;
    for sql in [
        std::str::from_utf8(JOINED).unwrap(),
        "SELECT id, v FROM b WHERE ? <= v ORDER BY id",
        "SELECT id, SUM(CASE WHEN v > ? THEN 1 ELSE 0 END) FROM b GROUP BY id ORDER BY id",
        "SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id AND b.v > ? ORDER BY a.id, b.id",
        "SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id WHERE b.v > ? ORDER BY a.id, b.id",
        "SELECT a_id, SUM(v) FROM b GROUP BY a_id HAVING SUM(v) > ? ORDER BY a_id",
        "SELECT id FROM a WHERE id IN (SELECT a_id FROM b WHERE v > ?) ORDER BY id",
        "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND b.v > ?) ORDER BY id",
        "SELECT x.a_id FROM (SELECT a_id, MAX(v) m FROM b GROUP BY a_id) x WHERE x.m > ? ORDER BY x.a_id",
        "SELECT g FROM a UNION SELECT a_id FROM b WHERE v > ? ORDER BY 1",
        "SELECT id, v > ? FROM b ORDER BY id",
        "SELECT id FROM d WHERE u > ? ORDER BY id",
        "SELECT id FROM a WHERE v < ? ORDER BY id",
    ] {
        let values = ["20", "0", "40", "10", "39", "1000", "0"].map(|written| ints([written]));
        let values: Vec<&[(Value, &str)]> = values.iter().map(|values| &values[..]).collect();
        assert_eq!(in_turn(&server, &mut c, sql, &values).await, 5, "{sql}");
    }
    let text = |written: &'static str| (Value::text(written.trim_matches('\'')), written);
    for (sql, values) in [
        ("SELECT id FROM d WHERE s = ? ORDER BY id", ["'BUILDING'", "'automobile'", "''", "'x'", "'Building'"]),
        ("SELECT id, SUM(CASE WHEN s <> ? THEN n ELSE 0 END) FROM d GROUP BY id ORDER BY id", ["'BUILDING'", "'automobile'", "''", "'x'", "'Building'"]),
        ("SELECT id FROM d WHERE day < ? ORDER BY id", ["'1994-06-30'", "'1995-01-01'", "'2000-12-31'", "'1990-01-01'", "'1994-12-31'"]),
        ("SELECT id FROM d WHERE at >= ? ORDER BY id", ["'1994-06-30'", "'1995-01-01'", "'2000-12-31'", "'1990-01-01'", "'1994-12-31'"]),
    ] {
        let values = values.map(|written| [text(written)]);
        let values: Vec<&[(Value, &str)]> = values.iter().map(|values| &values[..]).collect();
        assert_eq!(in_turn(&server, &mut c, sql, &values).await, 3, "{sql}");
    }
    let decimal = |written: &'static str| (Value::Decimal(written.parse().unwrap()), written);
    let values = ["1.50", "2.25", "1.00", "9.99"].map(|written| [decimal(written)]);
    let values: Vec<&[(Value, &str)]> = values.iter().map(|values| &values[..]).collect();
    assert_eq!(in_turn(&server, &mut c, "SELECT id FROM d WHERE n >= ? ORDER BY id", &values).await, 2);
}

/// Some values differ at first, and then others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_values_differ_later() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let values = [["0", "40"], ["10", "40"], ["20", "40"], ["20", "30"], ["0", "20"], ["5", "30"]].map(ints);
    let values: Vec<&[(Value, &str)]> = values.iter().map(|values| &values[..]).collect();
    let sql = "SELECT b.id, g FROM b LEFT JOIN a ON a.id = b.a_id WHERE b.v BETWEEN ? AND ? ORDER BY b.id";
    assert_eq!(in_turn(&server, &mut c, sql, &values).await, 3);
}

/// Operands that have one value when the plan is made are not one operand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_are_equal_at_first_differ_later() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let values = [["1", "1"], ["2", "2"], ["1", "3"], ["3", "1"], ["4", "2"], ["2", "2"]].map(ints);
    let values: Vec<&[(Value, &str)]> = values.iter().map(|values| &values[..]).collect();
    for sql in [
        "SELECT id FROM b WHERE id = ? OR id = ? ORDER BY id",
        "SELECT id FROM b WHERE id = ? OR a_id = ? ORDER BY id",
        "SELECT id FROM b WHERE id >= ? AND a_id >= ? ORDER BY id",
        "SELECT id FROM b WHERE v > 10 AND id > ? AND id >= ? ORDER BY id",
        "SELECT id, SUM(CASE WHEN a_id > ? THEN v ELSE 0 END), SUM(CASE WHEN a_id > ? THEN v ELSE 1 END) FROM b GROUP BY id ORDER BY id",
        "SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id AND b.id >= ? WHERE a.id >= ? ORDER BY a.id, b.id",
    ] {
        in_turn(&server, &mut c, sql, &values).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_another_kind_make_another_plan() {
    let server = Server::new();
    let mut c = with_dates(&server).await;
    let values: [(Value, &str); 12] = [
        (Value::Int(0), "0"),
        (Value::Int(20), "20"),
        (Value::Null, "NULL"),
        (Value::Int(-5), "-5"),
        (Value::Int(10), "10"),
        (Value::Double(15.5), "15.5e0"),
        (Value::UInt(u64::MAX), "18446744073709551615"),
        (Value::text("20x"), "'20x'"),
        (Value::Decimal("29.9".parse().unwrap()), "29.9"),
        (Value::Null, "NULL"),
        (Value::Int(i64::MAX), "9223372036854775807"),
        (Value::Int(40), "40"),
    ];
    let values: Vec<&[(Value, &str)]> = values.iter().map(std::slice::from_ref).collect();
    for sql in [
        std::str::from_utf8(JOINED).unwrap(),
        "SELECT id FROM d WHERE u >= ? ORDER BY id",
        "SELECT id FROM d WHERE n >= ? ORDER BY id",
        "SELECT id FROM b WHERE v <=> ? ORDER BY id",
        "SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id AND b.v > ? ORDER BY a.id, b.id",
    ] {
        in_turn(&server, &mut c, sql, &values).await;
    }
    // What is no date is compared as text.
    let dates = ["'1994-01-01'", "'1994-06-30'", "'1994-12-31 12:00:00'", "'x'", "'1995-01-01'", "''"];
    let dates = dates.map(|written| [(Value::text(written.trim_matches('\'')), written)]);
    let dates: Vec<&[(Value, &str)]> = dates.iter().map(|values| &values[..]).collect();
    in_turn(&server, &mut c, "SELECT id FROM d WHERE day = ? OR id = 3 ORDER BY id", &dates).await;
    in_turn(&server, &mut c, "SELECT COUNT(*) FROM d WHERE day >= ? AND s <> 'x'", &dates[..3]).await;
}

/// Values that are more than something to compare a column with are the same, or another plan is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_make_the_plan_are_in_it() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE p (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN MAXVALUE)").await;
    c.ok("INSERT INTO p SELECT id, v FROM b").await;
    for sql in [
        "SELECT id FROM a ORDER BY id LIMIT ?",
        "SELECT id, v + ? FROM b ORDER BY id",
        "SELECT id FROM b WHERE v IN (?, 10) ORDER BY id",
        "SELECT id FROM a WHERE s LIKE CONCAT('%', ?, '%') OR id = 1 ORDER BY id",
        "SELECT id, v FROM p WHERE id >= ? ORDER BY id",
    ] {
        let values = ["1", "2", "3", "4", "1"].map(|written| ints([written]));
        let values: Vec<&[(Value, &str)]> = values.iter().map(|values| &values[..]).collect();
        let kept = in_turn(&server, &mut c, sql, &values).await;
        // The first ones come again.
        assert!(kept <= 1, "{sql}: {kept}");
    }
    // A quotient has more digits than its type: it is compared row by row.
    let decimals = ["0.3", "0.5", "0.6", "0.7"].map(|written| [(Value::Decimal(written.parse().unwrap()), written)]);
    let decimals: Vec<&[(Value, &str)]> = decimals.iter().map(|values| &values[..]).collect();
    assert_eq!(in_turn(&server, &mut c, "SELECT id FROM a WHERE g / 3 > ? ORDER BY id", &decimals).await, 0);
}

/// Numbers from 0 on, each the key and a value of a row.
async fn numbers(c: &mut Client, doublings: u32) {
    c.ok("CREATE TABLE r (id INT PRIMARY KEY, k INT, KEY (k))").await;
    let rows: Vec<String> = (0..3000).map(|i| format!("({i}, {i})")).collect();
    c.ok(&format!("INSERT INTO r VALUES {}", rows.join(", "))).await;
    for doubled in 0..doublings {
        let more = 3000 << doubled;
        c.ok(&format!("INSERT INTO r SELECT id + {more}, k + {more} FROM r")).await;
    }
    c.rows("ANALYZE TABLE r").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_are_those_of_the_execution() {
    let server = Server::new();
    let mut c = filled(&server).await;
    numbers(&mut c, 0).await;
    let pairs = [["0", "10"], ["5", "15"], ["100", "110"], ["2990", "4000"], ["10", "5"], ["0", "1"], ["1500", "1600"], ["0", "3000"]];
    for settings in ["SET parallel_cost_threshold = DEFAULT", "SET parallel_cost_threshold = 0, parallel_default_dop = 2, force_parallel_execute = ON"] {
        c.ok(settings).await;
        for sql in [
            "SELECT COUNT(*), MIN(id), MAX(id) FROM r WHERE k >= ? AND k < ?",
            "SELECT COUNT(*), MIN(k), MAX(k) FROM r WHERE id >= ? AND id < ?",
            "SELECT COUNT(*), MIN(x.id), MAX(y.k) FROM r x JOIN r y ON x.id = y.k WHERE x.k >= ? AND x.k < ?",
        ] {
            let values = pairs.map(ints);
            let values: Vec<&[(Value, &str)]> = values.iter().map(|values| &values[..]).collect();
            let kept = in_turn(&server, &mut c, sql, &values).await;
            // Workers of an execution may end a little too late for its plan to be kept.
            assert!(kept >= 3, "{sql}: {kept}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn far_more_rows_make_another_plan() {
    let server = Server::new();
    let mut c = filled(&server).await;
    numbers(&mut c, 3).await;
    let id = c.session.prepare(b"SELECT COUNT(*), MIN(x.id) FROM r x LEFT JOIN a ON a.id = x.id WHERE x.k >= ? AND x.k < ?").await.unwrap().id;
    for (from, to, kept) in [(0, 10, 0), (5, 15, 0), (7, 17, 1), (0, 24_000, 0), (1, 24_000, 1), (5, 15, 0), (6, 16, 1)] {
        let before = used(&mut c).await;
        let found = c.rows_of(id, &[Value::Int(from), Value::Int(to)]).await;
        assert_eq!(found, table(&format!("{} {from}", to - from)));
        assert_eq!(used(&mut c).await - before, kept, "{from} to {to}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_rows_are_those_of_the_values() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let id = c.session.prepare(b"SELECT id, 9223372036854775807 + v FROM b WHERE v < ? ORDER BY id").await.unwrap().id;
    for (below, fails) in [(10, false), (0, false), (5, false), (11, true), (7, false), (30, true), (10, false), (3, false)] {
        match c.execute_id(id, &[Value::Int(below)]).await {
            Answer::Error(e) => assert!(fails && e.code == 1690, "{below}: {e:?}"),
            Answer::Rows { rows, .. } => assert!(!fails && rows.is_empty(), "{below}"),
            answer => panic!("{answer:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_beside_each_other_have_plans_of_their_own() {
    let server = Server::new();
    let mut first = filled(&server).await;
    first.rows("ANALYZE TABLE a, b").await;
    let before = used(&mut first).await;
    let run = async |key: i64| {
        let mut c = server.client().await;
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        c.ok("BEGIN").await;
        c.ok(&format!("INSERT INTO b VALUES ({}, 1, {key})", 100 + key)).await;
        let id = c.session.prepare(JOINED).await.unwrap().id;
        for _ in 0..20 {
            assert_eq!(c.rows_of(id, &[Value::Int(0)]).await, table(&format!("1 3 {}|2 2 70", 30 + key)));
        }
        c.ok("ROLLBACK").await;
    };
    tokio::join!(run(1), run(2), run(3));
    assert_eq!(used(&mut first).await - before, 3 * 19);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_that_come_again_keep_plans() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let sql = "SELECT a.g, COUNT(*) FROM a JOIN b ON a.id = b.a_id WHERE b.v >= 20 GROUP BY a.g ORDER BY a.g";
    for _ in 0..3 {
        assert_eq!(c.rows(sql).await, table("1 1|2 2"));
    }
    let before = used(&mut c).await;
    for _ in 0..3 {
        assert_eq!(c.rows(sql).await, table("1 1|2 2"));
    }
    assert_eq!(used(&mut c).await - before, 3);
    assert_eq!(c.rows(&sql.replace("20", "40")).await, table("2 1"));
    assert_eq!(c.rows(sql).await, table("1 1|2 2"));
    assert_eq!(used(&mut c).await - before, 4);
    assert_eq!(c.rows(&sql.replace("20", "30")).await, table("2 2"));
    assert_eq!(used(&mut c).await - before, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_mean_what_they_mean_now() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut other = server.client().await;
    c.ok("CREATE VIEW w AS SELECT g, id FROM a WHERE id < 3").await;
    c.ok("CREATE TABLE spare LIKE b").await;
    let id = c.session.prepare(b"SELECT w.g, COUNT(*) FROM w JOIN b ON w.id = b.a_id GROUP BY w.g ORDER BY w.g").await.unwrap().id;
    for (change, expected) in [
        ("SELECT 1", "1 2"),
        ("CREATE OR REPLACE VIEW w AS SELECT g, id FROM a WHERE id > 1", "1 1|2 2"),
        ("RENAME TABLE b TO c, spare TO b", ""),
        ("RENAME TABLE b TO spare, c TO b", "1 1|2 2"),
        ("DROP VIEW w", "1146"),
        ("CREATE TABLE w SELECT 7 AS g, 3 AS id", "7 2"),
        ("DROP TABLE w", "1146"),
        ("CREATE VIEW w AS SELECT g, id FROM a", "1 2|2 2"),
    ] {
        other.run(change).await;
        for _ in 0..2 {
            let found = match c.execute_id(id, &[]).await {
                Answer::Error(e) => table(&e.code.to_string()),
                Answer::Rows { columns, rows, .. } => super::text(&columns, &rows),
                answer => panic!("{answer:?}"),
            };
            assert_eq!(found, table(expected), "{change}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_are_asked_for_each_execution() {
    let server = Server::new();
    let mut root = filled(&server).await;
    root.ok("CREATE USER u@localhost").await;
    root.ok("GRANT SELECT ON d.* TO u@localhost").await;
    let mut u = server.connect_as("u");
    u.ok("USE d").await;
    u.ok("SET highkey_executor = 'DATAFUSION'").await;
    let id = u.session.prepare(JOINED).await.unwrap().id;
    let zero = [Value::Int(0)];
    for _ in 0..2 {
        assert_eq!(u.rows_of(id, &zero).await, table("1 2 30|2 2 70"));
    }
    assert_eq!(used(&mut u).await, 1);
    root.ok("REVOKE SELECT ON d.* FROM u@localhost").await;
    root.ok("GRANT SELECT ON d.b TO u@localhost").await;
    root.ok("GRANT SELECT (id) ON d.a TO u@localhost").await;
    for _ in 0..2 {
        assert!(matches!(u.execute_id(id, &zero).await, Answer::Error(e) if e.code == 1143));
    }
    root.ok("GRANT SELECT (g) ON d.a TO u@localhost").await;
    assert_eq!(u.rows_of(id, &zero).await, table("1 2 30|2 2 70"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_share_the_room() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut other = server.client().await;
    other.ok("SET highkey_executor = 'DATAFUSION'").await;
    let room = server.instance.plan_room().clone();
    let all = room.available_permits();
    let id = c.session.prepare(JOINED).await.unwrap().id;
    let in_other = other.session.prepare(JOINED).await.unwrap().id;
    c.rows_of(id, &[Value::Int(0)]).await;
    assert!(room.available_permits() < all);
    let rest = room.clone().try_acquire_many_owned(room.available_permits() as u32).unwrap();
    // Its next query takes the place of the one before.
    for (value, kept) in [(Value::Int(0), 1), (Value::Null, 0), (Value::Null, 1), (Value::Int(0), 0)] {
        let before = used(&mut c).await;
        c.rows_of(id, std::slice::from_ref(&value)).await;
        assert_eq!(used(&mut c).await - before, kept, "{value:?}");
    }
    let before = used(&mut other).await;
    for _ in 0..2 {
        assert_eq!(other.rows_of(in_other, &[Value::Int(0)]).await, table("1 2 30|2 2 70"));
    }
    assert_eq!(used(&mut other).await - before, 0);
    drop(rest);
    for _ in 0..2 {
        other.rows_of(in_other, &[Value::Int(0)]).await;
    }
    assert_eq!(used(&mut other).await - before, 1);
    drop((c, other));
    assert_eq!(room.available_permits(), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_only_take_room_is_not_kept() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let room = server.instance.plan_room().clone();
    let all = room.available_permits();
    let numbers: Vec<String> = (0..3000).map(|i| i.to_string()).collect();
    for sql in [
        format!("SELECT g, COUNT(*) FROM a WHERE id IN ({}) GROUP BY g ORDER BY g", numbers.join(", ")),
        "SELECT /*+ SET_VAR(sql_mode = '') */ g, COUNT(*) FROM a GROUP BY g ORDER BY g".to_owned(),
    ] {
        let id = c.session.prepare(sql.as_bytes()).await.unwrap().id;
        for _ in 0..2 {
            assert_eq!(c.rows_of(id, &[]).await, table("NULL 1|1 2|2 1"));
        }
        assert_eq!(room.available_permits(), all);
    }
    assert_eq!(used(&mut c).await, 0);
}
