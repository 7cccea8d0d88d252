//! What the fast path takes, what it leaves to DataFusion when it has seen some of it, and what indexes know without it.

use super::{Client, Server, table};

/// 6000 rows: `k` is `id`, `pad` is one of 5000, and 20 have each `few`.
async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE big (id INT PRIMARY KEY, k INT NOT NULL, few INT, pad VARCHAR(20), KEY k (k), KEY few (few, k))").await;
    c.ok("CREATE TABLE copy (id INT PRIMARY KEY, pad VARCHAR(20))").await;
    add(&mut c, 0, 6000).await;
    c
}

async fn add(c: &mut Client, from: usize, to: usize) {
    for chunk in (from..to).step_by(3000) {
        let rows: Vec<String> = (chunk..to.min(chunk + 3000)).map(|id| format!("({id}, {id}, {}, 'pad{}')", id / 20, id % 5000)).collect();
        c.ok(&format!("INSERT INTO big VALUES {}", rows.join(", "))).await;
    }
}

async fn counter(c: &mut Client, name: &str) -> u64 {
    c.rows(&format!("SHOW STATUS LIKE '{name}'")).await[0][1].parse().unwrap()
}

/// How many rows a query has, and whether DataFusion found them.
async fn found(c: &mut Client, sql: &str) -> (usize, bool) {
    let before = counter(c, "Highkey_select_datafusion").await;
    let rows = c.rows(sql).await.len();
    (rows, counter(c, "Highkey_select_datafusion").await > before)
}

/// How EXPLAIN says that a table is read, and what it says besides.
async fn explained(c: &mut Client, sql: &str) -> (String, String) {
    let row = c.rows(&format!("EXPLAIN {sql}")).await.remove(0);
    (format!("{} {}", row[4], row[6]), row[11].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_with_very_many_rows_is_left_for_a_scan() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for (sql, rows, key, scans) in [
        ("SELECT id, pad FROM big WHERE k >= 0", 6000, "ALL NULL", true),
        ("SELECT id, pad FROM big WHERE k >= 0 ORDER BY k", 6000, "ALL NULL", true),
        ("SELECT id, pad FROM big WHERE k >= 0 AND pad LIKE 'pad1%'", 1222, "ALL NULL", true),
        ("SELECT pad, COUNT(*) FROM big WHERE k >= 0 GROUP BY pad", 5000, "ALL NULL", true),
        ("SELECT id, pad FROM big WHERE k >= 5900", 100, "range k", false),
        ("SELECT id, pad FROM big WHERE k >= 5000", 1000, "range k", false),
        ("SELECT id, pad FROM big WHERE few = 7", 20, "ref few", false),
        ("SELECT id, pad FROM big FORCE INDEX (k) WHERE k >= 0", 6000, "range k", false),
        ("SELECT id, pad FROM big WHERE k >= 0 LIMIT 1000", 1000, "range k", false),
        ("SELECT id, pad FROM big WHERE id >= 0", 6000, "range PRIMARY", false),
    ] {
        assert_eq!(explained(&mut c, sql).await.0, key, "{sql}");
        assert_eq!(found(&mut c, sql).await, (rows, scans), "{sql}");
    }
    // Each execution has values of its own.
    c.ok("PREPARE s FROM 'SELECT id, pad FROM big WHERE k >= ?'").await;
    for (from, expected) in [(0, (6000, true)), (5990, (10, false)), (100, (5900, true))] {
        c.ok(&format!("SET @from = {from}")).await;
        assert_eq!(found(&mut c, "EXECUTE s USING @from").await, expected, "{from}");
    }
    // What assigns is not done twice.
    c.ok("SET @n = 0").await;
    assert_eq!(found(&mut c, "SELECT @n := @n + 1 FROM big WHERE k >= 0").await, (6000, false));
    assert_eq!(c.value("SELECT @n").await, "6000");
    // The fast path alone goes on.
    c.ok("SET highkey_executor = 'FAST'").await;
    assert_eq!(found(&mut c, "SELECT id, pad FROM big WHERE k >= 0").await, (6000, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_remembers_rows_is_bounded() {
    let server = Server::new();
    let mut c = filled(&server).await;
    assert_eq!(found(&mut c, "SELECT DISTINCT pad FROM big WHERE id >= 0").await, (5000, false));
    add(&mut c, 6000, 24_000).await;
    assert_eq!(found(&mut c, "SELECT DISTINCT pad FROM big WHERE id >= 0").await, (5000, true));
    assert_eq!(found(&mut c, "SELECT DISTINCT pad FROM big WHERE id < 1000").await, (1000, false));
    assert_eq!(found(&mut c, "SELECT DISTINCT few FROM big WHERE id < 1000 LIMIT 5").await, (5, false));
    c.ok("SET highkey_executor = 'FAST'").await;
    assert_eq!(found(&mut c, "SELECT DISTINCT pad FROM big WHERE id >= 0").await, (5000, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_copy_streams_and_locks_ranges() {
    let server = Server::new();
    let mut c = filled(&server).await;
    add(&mut c, 6000, 24_000).await;
    let mut other = server.client().await;
    other.ok("SET innodb_lock_wait_timeout = 1").await;
    for (condition, rows) in [("id >= 0", "24000"), ("k >= 0", "24000"), ("id < 10", "10"), ("id >= 0 LIMIT 15000", "15000"), ("id >= 0 ORDER BY id DESC LIMIT 3", "3")] {
        c.ok("BEGIN").await;
        c.ok(&format!("INSERT INTO copy SELECT id + 1, pad FROM big WHERE {condition}")).await;
        assert_eq!(c.rows("SELECT COUNT(*), COUNT(DISTINCT id) FROM copy").await, table(&format!("{rows} {rows}")), "{condition}");
        // A row that was read stays as it is.
        let id = if condition.contains("DESC") { 23_999 } else { 5 };
        assert_eq!(other.error(&format!("UPDATE big SET pad = '' WHERE id = {id}")).await.0, 1205, "{condition}");
        c.ok("ROLLBACK").await;
    }
    let tree = c.value("EXPLAIN FORMAT=TREE INSERT INTO copy SELECT id + 1, pad FROM big WHERE id >= 0").await;
    assert!(!tree.contains("Fast path"), "{tree}");
}

#[tokio::test]
async fn values_of_variables_are_no_keys() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("INSERT INTO t VALUES (1), (2), (3)").await;
    for executor in ["AUTO", "FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = '{executor}'")).await;
        c.ok("BEGIN").await;
        c.ok("INSERT INTO t VALUES (4)").await;
        // A variable that was never set is bound as text.
        let mut rows = c.rows(&format!("SELECT DISTINCT @a{executor}, @a{executor} := id FROM t")).await;
        rows.sort();
        // MySQL 8.0.12 has NULL in all of them, as the variable was never set; one that was has what the row before has assigned.
        assert_eq!(rows, table("1 2|2 3|3 4|NULL 1"), "{executor}");
        c.rows(&format!("SELECT COUNT(DISTINCT v) FROM (SELECT @b{executor} v, @b{executor} := id w FROM t) d")).await;
        c.rows(&format!("SELECT v, COUNT(*) FROM (SELECT @c{executor} v, @c{executor} := id w FROM t) d GROUP BY v")).await;
        assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "4", "{executor}: the transaction is still there");
        c.ok("ROLLBACK").await;
        assert_eq!(c.rows("SELECT DISTINCT v FROM (SELECT id / 3 v FROM t) d ORDER BY v").await, table("0.3333|0.6667|1.0000"));
    }
}

/// The answers are golden (`tests/golden/index_ends.sql`); so is what MySQL 8.0.12 says of them here.
#[tokio::test]
async fn ends_of_indexes_are_read_for_least_and_greatest_values() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, s VARCHAR(10), f VARCHAR(20), KEY ab (a, b), KEY b (b), KEY s (s), KEY f (f(3)))").await;
    c.ok("INSERT INTO t VALUES (1, 5, NULL, 'a', 'abcd'), (2, 5, 3, 'A', 'abce'), (3, 5, 7, 'b', 'x'), (4, 6, 1, NULL, 'y'), (5, NULL, 4, 'C', 'z')").await;
    for (query, answer) in [
        ("SELECT MIN(b), MAX(b) FROM t", "1 7"),
        ("SELECT COUNT(*), MAX(id), MIN(id), COUNT(id), COUNT(1) FROM t", "5 5 1 5 5"),
        ("SELECT MAX(b) FROM t WHERE a = 5", "7"),
        ("SELECT MIN(b) FROM t WHERE a = 5", "3"),
        ("SELECT MIN(b), MAX(b) FROM t WHERE a = 5 AND b > 3", "7 7"),
        ("SELECT MAX(a), MIN(b) FROM t WHERE a = 5", "5 3"),
        ("SELECT MAX(b) FROM t WHERE a IS NULL", "4"),
        ("SELECT MIN(id), MAX(id) FROM t WHERE id BETWEEN 2 AND 4", "2 4"),
        ("SELECT MAX(id) + 1, MIN(b) * 2 FROM t", "6 2"),
        ("SELECT MAX(s), MIN(s) FROM t", "C a"),
        ("SELECT MAX(s) FROM t WHERE s <= 'a'", "A"),
    ] {
        assert_eq!(explained(&mut c, query).await.1, "Select tables optimized away", "{query}");
        assert_eq!(c.rows(query).await, table(answer), "{query}");
    }
    for query in [
        "SELECT SUM(id), MAX(id) FROM t",
        "SELECT MAX(f) FROM t",
        "SELECT COUNT(*), MAX(b) FROM t WHERE a = 5",
        "SELECT COUNT(b), MAX(b) FROM t",
        "SELECT MAX(b) FROM t WHERE a = 5 AND s = 'b'",
        "SELECT MAX(id) FROM t WHERE id IN (1, 2)",
        "SELECT MAX(b) FROM t USE INDEX () WHERE a = 5",
        "SELECT MAX(b), MAX(a) FROM t WHERE a < 6",
    ] {
        assert_ne!(explained(&mut c, query).await.1, "Select tables optimized away", "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_are_given_to_whoever_asks_for_them() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let first = async |c: &mut Client, sql: &str| c.value(&format!("EXPLAIN FORMAT=TREE {sql}")).await.lines().next().unwrap_or_default().to_owned();
    c.ok("SET parallel_cost_threshold = 100, parallel_default_dop = 2").await;
    for sql in ["SELECT /*+ PQ(2) */ COUNT(*) FROM big", "SELECT /*+ PQ(big 2) */ COUNT(pad) FROM big"] {
        assert_eq!(first(&mut c, sql).await, "-> Parallel execute (2 workers)", "{sql}");
        let before = counter(&mut c, "PQ_stmt_executed").await;
        assert!(found(&mut c, sql).await.1, "{sql}");
        assert!(counter(&mut c, "PQ_stmt_executed").await > before, "{sql}");
    }
    for sql in [
        "SELECT COUNT(*) FROM big",
        "SELECT /*+ NO_PQ */ COUNT(*) FROM big",
        "SELECT /*+ PQ(1) */ COUNT(*) FROM big",
        "SELECT /*+ PQ(2) */ MAX(id) FROM big",
        "SELECT /*+ PQ(2) */ id, pad FROM big WHERE id >= 5000",
        "SELECT /*+ PQ(2) */ id, pad FROM big LIMIT 10",
    ] {
        let asks = if sql.contains("+ PQ(2)") { " (serial, though PQ asks for workers)" } else { "" };
        assert_eq!(first(&mut c, sql).await, format!("-> Fast path{asks}"), "{sql}");
        assert!(!found(&mut c, sql).await.1, "{sql}");
    }
    // The fast path is the reason for what has read as much as workers are for.
    for (sql, counts) in [
        ("SELECT id, pad FROM big", 1),
        ("SELECT /*+ NO_PQ */ id, pad FROM big", 0),
        ("SELECT id, pad FROM big WHERE id < 100", 0),
        ("SELECT id, pad FROM big WHERE id = 100", 0),
    ] {
        let before = counter(&mut c, "PQ_serial_fast_path").await;
        c.rows(sql).await;
        assert_eq!(counter(&mut c, "PQ_serial_fast_path").await - before, counts, "{sql}");
    }
    let told = "SELECT SUM(highkey_serial_fast_path) FROM performance_schema.events_statements_summary_by_digest WHERE digest_text = 'SELECT `id` , `pad` FROM `big`'";
    assert_eq!(c.value(told).await, "1");
}
