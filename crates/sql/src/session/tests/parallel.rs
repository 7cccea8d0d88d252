//! Parallel queries: the same answers as on one thread, and why a query stays on one.

use super::{Client, Server};

/// A table of 40,000 rows, and a session whose every query on DataFusion has three threads if it may.
pub(super) async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, s VARCHAR(20), d DOUBLE, m DECIMAL(12,2), at TIMESTAMP NULL)").await;
    for chunk in 0..8 {
        let rows: Vec<String> = (chunk * 5000..chunk * 5000 + 5000)
            .map(|id| format!("({id}, {}, 'name{}', {}.25, {}.{:02}, '2024-01-01 00:00:00' + INTERVAL {id} MINUTE)", id % 10, id % 7, id % 100, id % 1000, id % 100))
            .collect();
        c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    }
    c.ok("SET highkey_executor = 'DATAFUSION', parallel_cost_threshold = 0, parallel_default_dop = 3").await;
    c
}

pub(super) async fn counter(c: &mut Client, name: &str) -> u64 {
    c.rows(&format!("SHOW STATUS LIKE '{name}'")).await[0][1].parse().unwrap()
}

/// The answer in parallel, which must be the one on one thread, and whether it was found in parallel.
async fn both(c: &mut Client, sql: &str) -> (Vec<Vec<String>>, bool) {
    c.ok("SET force_parallel_execute = OFF").await;
    let serial = c.rows(sql).await;
    c.ok("SET force_parallel_execute = ON").await;
    let (before, order) = (counter(c, "PQ_stmt_executed").await, counter(c, "PQ_serial_order").await);
    let parallel = c.rows(sql).await;
    assert_eq!(serial, parallel, "{sql}");
    let stayed = counter(c, "PQ_stmt_executed").await > before && counter(c, "PQ_serial_order").await == order;
    (parallel, stayed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_one_thread() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for sql in [
        "SELECT COUNT(*), SUM(m), AVG(m), MIN(s), MAX(at), SUM(d), AVG(d) FROM t WHERE id % 3 = 1",
        "SELECT s, COUNT(*), SUM(m), COUNT(DISTINCT k), SUM(DISTINCT k) FROM t GROUP BY s ORDER BY s",
        "SELECT k, s, SUM(m) FROM t GROUP BY k, s WITH ROLLUP",
        "SELECT a.k, COUNT(*) FROM t a JOIN t b ON a.id = b.id + 1 GROUP BY a.k ORDER BY a.k",
        "SELECT id FROM t WHERE m > (SELECT AVG(m) FROM t) ORDER BY id LIMIT 5",
        "SELECT COUNT(*) FROM t WHERE id IN (SELECT id + 1 FROM t WHERE k = 3)",
        "SELECT k FROM (SELECT DISTINCT k FROM t UNION SELECT k + 5 FROM t) u ORDER BY k",
        "WITH big AS (SELECT k, MAX(id) m FROM t GROUP BY k) SELECT * FROM big ORDER BY m DESC",
        "SELECT 1 AS one, m FROM t WHERE id > 20000 UNION ALL SELECT -5, m FROM t WHERE id < 3 ORDER BY one, m DESC, one LIMIT 10",
        "SELECT NULL none, a.id, b.k FROM t a JOIN (SELECT DISTINCT k FROM t) b ORDER BY a.m, a.id DESC, b.k",
        "SELECT k, RANK() OVER (ORDER BY n) FROM (SELECT k, COUNT(*) n FROM t WHERE id < 30007 GROUP BY k) g ORDER BY k",
    ] {
        let (rows, parallel) = both(&mut c, sql).await;
        assert!(parallel && !rows.is_empty(), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_shows_the_order_is_found_in_order() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE few (id INT PRIMARY KEY, x INT)").await;
    c.ok("INSERT INTO few SELECT id, id * 2 FROM t WHERE id % 7 = 3").await;
    c.ok("SET SESSION group_concat_max_len = 1000000").await;
    // Known from the plan.
    for sql in [
        "SELECT GROUP_CONCAT(id), GROUP_CONCAT(s SEPARATOR '') FROM t WHERE id % 3 = 1",
        "SELECT id, m FROM t WHERE k = 3 AND d > 90",
        "SELECT * FROM t",
        "SELECT id FROM t WHERE s = 'name3' LIMIT 20 OFFSET 3000",
        "SELECT k, COUNT(*) FROM t GROUP BY k LIMIT 3",
        "SELECT t.id, x, s FROM t LEFT JOIN few ON few.id = t.id",
        "SELECT t.id, x FROM few JOIN t ON t.k = few.x % 13 WHERE t.m > 995",
        "SELECT few.id, t.id FROM few JOIN t ON t.id BETWEEN few.id AND few.x WHERE few.id < 300",
        "SELECT few.id, t.id, s FROM few JOIN t ON t.id = few.x WHERE few.x % 97 = 1",
        "SELECT id, ROW_NUMBER() OVER (ORDER BY k), LAG(id) OVER (ORDER BY s, k) FROM t",
        "SELECT t.id, d.n, d.s FROM t JOIN (SELECT id, s, ROW_NUMBER() OVER (ORDER BY k) n FROM t WHERE id < 15000) d ON d.id = t.id",
        "SELECT k, STDDEV(m), VAR_SAMP(d), JSON_ARRAYAGG(id) FROM t WHERE id < 9000 GROUP BY k",
        "SELECT id FROM t WHERE k < 3 UNION ALL SELECT id + 1 FROM t WHERE m > 500",
        "WITH RECURSIVE r AS (SELECT id, 0 n FROM t WHERE m > 990 UNION ALL SELECT t.id, n + 1 FROM r JOIN t ON t.id = r.id + 1 WHERE n < 3) SELECT * FROM r",
    ] {
        let (rows, parallel) = both(&mut c, sql).await;
        assert!(parallel && !rows.is_empty(), "{sql}");
    }
    let tree = c.value("EXPLAIN FORMAT=TREE SELECT id, m FROM t WHERE k = 3").await;
    assert!(tree.starts_with("-> Parallel execute (3 workers)\n    -> Gather rows in order\n") && tree.contains("PQblock scan on t"), "{tree}");
    // Row by row: what is assigned may be read by the next row.
    assert!(!both(&mut c, "SELECT @n := id FROM t WHERE id = 7").await.1);
    let tree = c.value("EXPLAIN FORMAT=TREE SELECT @n := id FROM t WHERE m > 7").await;
    assert!(tree.starts_with("-> Serial execute (the answer depends on the order of the rows)\n"), "{tree}");
    // Known from the rows: which text stands for a group, which is the least, what is lost in a sum.
    assert!(both(&mut c, "SELECT ANY_VALUE(k), COUNT(*) FROM t GROUP BY id % 10 ORDER BY 1").await.1, "all of a group are the same");
    c.ok("UPDATE t SET s = UPPER(s) WHERE id IN (39990, 17, 20003)").await;
    c.ok("UPDATE t SET d = 0.1 WHERE id % 2 = 0").await;
    for sql in ["SELECT s, COUNT(*) FROM t GROUP BY s ORDER BY s", "SELECT MIN(s), MAX(s) FROM t", "SELECT SUM(d) FROM t", "SELECT DISTINCT s FROM t ORDER BY s"] {
        assert!(both(&mut c, sql).await.1, "{sql}");
    }
}

/// Where no order shows, partitions are read one after the other: the answers are those of the table without partitions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_show_in_no_answer() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("UPDATE t SET s = UPPER(s) WHERE id IN (39990, 17, 20003)").await;
    c.ok("UPDATE t SET d = 0.1 WHERE id % 2 = 0").await;
    c.ok("CREATE TABLE p LIKE t").await;
    c.ok("ALTER TABLE p PARTITION BY HASH (id) PARTITIONS 3").await;
    c.ok("INSERT INTO p SELECT * FROM t").await;
    for sql in [
        "SELECT COUNT(*), SUM(m), MIN(at), MAX(id) FROM $ WHERE k <> 4",
        "SELECT k, s, COUNT(*), SUM(m) FROM $ GROUP BY k, s ORDER BY k, s",
        "SELECT id, COUNT(*), MAX(s) FROM $ GROUP BY id ORDER BY id",
        "SELECT COUNT(*), SUM(m), MAX(c) FROM (SELECT id, SUM(m) m, COUNT(*) c FROM $ WHERE id BETWEEN 1000 AND 30000 GROUP BY id HAVING c = 1) x",
        "SELECT a.k, COUNT(*), SUM(b.m) FROM $ a JOIN $ b ON a.id = b.id + 1 GROUP BY a.k ORDER BY a.k",
        "SELECT id, m FROM $ ORDER BY id DESC LIMIT 20 OFFSET 17",
        "SELECT SUM(d), AVG(d), STDDEV(m), VAR_SAMP(d) FROM $",
        "SELECT s, COUNT(*) FROM $ GROUP BY s ORDER BY s",
        "SELECT MIN(s), MAX(s), ANY_VALUE(id) FROM $ WHERE id % 3 = 2",
        "SELECT DISTINCT s FROM $ ORDER BY s",
        "SELECT GROUP_CONCAT(id), JSON_ARRAYAGG(id) FROM $ WHERE k = 3 AND id < 900",
        "SELECT id, s FROM $ WHERE m > 995",
        "SELECT id FROM $ WHERE k = 3 LIMIT 7",
        "SELECT id, ROW_NUMBER() OVER (ORDER BY k) FROM $ WHERE id < 900",
    ] {
        let (rows, _) = both(&mut c, &sql.replace('$', "t")).await;
        assert_eq!(both(&mut c, &sql.replace('$', "p")).await.0, rows, "{sql}");
    }
    for (parallel, scan) in [("OFF", "-> Table scan on p"), ("ON", "-> PQblock scan on p")] {
        c.ok(&format!("SET force_parallel_execute = {parallel}")).await;
        let tree = c.value("EXPLAIN FORMAT=TREE SELECT k, COUNT(*) FROM p GROUP BY k").await;
        assert!(tree.contains(scan), "{tree}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn common_table_expressions_show_no_order() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE few (id INT PRIMARY KEY, x INT)").await;
    c.ok("INSERT INTO few SELECT id, id * 2 FROM t WHERE id % 7 = 3").await;
    c.ok("UPDATE t SET d = 0.1 WHERE id % 2 = 0").await;
    // The join shows how its rows are cut into batches.
    for with in ["SELECT id, m FROM t WHERE m > 990 LIMIT 1000", "SELECT id, m FROM t WHERE m > 990 UNION ALL SELECT id, m FROM t WHERE id < 3"] {
        let sql = format!("WITH c AS ({with}) SELECT a.id, b.id FROM c a JOIN c b ON a.m < b.m WHERE a.id % 7 = 0");
        assert!(both(&mut c, &sql).await.0.len() > 10_000, "{sql}");
    }
    let joined = "SELECT f.id, f.x FROM few f JOIN few g ON g.id < f.x % 50 AND g.id < 60 UNION ALL SELECT id, x FROM few";
    both(&mut c, &format!("WITH c AS ({joined}) SELECT SUM(p.x / 7e0) FROM c p JOIN c q ON q.id = p.id")).await;
    // Only the common table expression is worth several threads, and it is planned when a row asks for it.
    c.ok("SET parallel_cost_threshold = 1000").await;
    let least = "(SELECT MIN(p.s) FROM c p JOIN c q ON p.k = q.k WHERE p.k <= few.id % 10)";
    for query in [
        format!("SELECT few.id, {least} FROM few WHERE few.id < 300 ORDER BY few.id"),
        format!("SELECT few.id FROM few WHERE few.id < 300 AND 400.00000000001 < {least} ORDER BY few.id"),
        format!("SELECT few.id FROM few WHERE few.id < 300 AND 400.00000000001 > {least} ORDER BY few.id"),
    ] {
        both(&mut c, &format!("WITH c AS (SELECT k, SUM(d) s FROM t GROUP BY k) {query}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_by_the_first_column_of_an_index_come_sorted() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE items (o INT, n INT, q DECIMAL(10,2), s VARCHAR(20), PRIMARY KEY (o, n))").await;
    c.ok("INSERT INTO items SELECT id DIV 7 - 2000, id % 7, m, s FROM t").await;
    c.ok("CREATE TABLE down (o BIGINT UNSIGNED, n INT, q INT, PRIMARY KEY (o DESC, n))").await;
    c.ok("INSERT INTO down SELECT o + 2000, n, q FROM items").await;
    for (sql, sorted) in [
        ("SELECT o, COUNT(*), SUM(q), MIN(s) FROM items GROUP BY o ORDER BY o", true),
        ("SELECT COUNT(*), SUM(c), MAX(m) FROM (SELECT o, COUNT(*) c, MAX(q) m FROM items WHERE n > 2 AND o BETWEEN -1990 AND 3000 GROUP BY o HAVING SUM(q) > 300) x", true),
        ("SELECT o, COUNT(DISTINCT q) c, MAX(n) FROM items WHERE s > 'name3' GROUP BY o ORDER BY c, o DESC LIMIT 30", true),
        ("SELECT n, COUNT(*) FROM items GROUP BY n ORDER BY n", false),
        ("SELECT o, COUNT(*), SUM(q) FROM down GROUP BY o ORDER BY o", false),
    ] {
        assert!(both(&mut c, sql).await.1, "{sql}");
        let tree = c.value(&format!("EXPLAIN FORMAT=TREE {sql}")).await;
        assert_eq!(tree.contains("Group aggregate"), sorted, "{tree}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_that_are_rounded_are_the_same_over_every_join() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE few (id INT PRIMARY KEY, x INT)").await;
    c.ok("INSERT INTO few SELECT id, id * 7919 % 40009 FROM t WHERE id % 7 = 3").await;
    for sql in [
        "SELECT SUM(t.id / 7e0), AVG(t.id / 7e0), STD(t.id / 7e0), VARIANCE(t.id) FROM few LEFT JOIN t ON t.id = few.x",
        "SELECT SUM(t.id / 7e0) FROM few LEFT JOIN t ON t.id = few.x",
        "SELECT AVG(few.x / 7e0), COUNT(t.id) FROM t RIGHT JOIN few ON t.id = few.x",
        "SELECT t.k, SUM(t.id / 7e0) FROM few LEFT JOIN t ON t.id = few.x GROUP BY t.k ORDER BY 1",
        "SELECT t.k, few.id % 3, AVG(t.id / 7e0) FROM few LEFT JOIN t ON t.id = few.x GROUP BY t.k, few.id % 3 WITH ROLLUP",
        "SELECT SUM(few.x / 7e0) FROM few WHERE EXISTS (SELECT 1 FROM t WHERE t.id = few.x)",
        "SELECT SUM(few.x / 7e0) FROM few WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = few.x AND t.k < 7)",
        "SELECT SUM(few.x / 7e0) FROM few JOIN t ON t.id < few.x % 5",
        "SELECT SUM(d.r) FROM few RIGHT JOIN (SELECT id, PERCENT_RANK() OVER (PARTITION BY k ORDER BY m) r FROM t) d ON d.id = few.x",
        "SELECT AVG(d.r) FROM few RIGHT JOIN (SELECT id, CUME_DIST() OVER (ORDER BY s) r FROM t) d ON d.id = few.x",
        "SELECT SUM(d.r) FROM few LEFT JOIN (SELECT id, CUME_DIST() OVER (ORDER BY s) r FROM t) d ON d.id = few.x WHERE few.id > 100",
    ] {
        both(&mut c, sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn left_joins_give_their_rows_in_the_order_of_the_outer_table() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE o (id INT PRIMARY KEY, x INT)").await;
    c.ok("INSERT INTO o VALUES (1, 70), (2, NULL), (3, 5), (4, -1), (5, 70)").await;
    c.ok("CREATE TABLE i (id INT PRIMARY KEY, y INT, z INT)").await;
    c.ok("INSERT INTO i VALUES (1, 70, 9), (2, 5, 8), (3, 70, 7), (4, 6, 6)").await;
    for workers in [1, 3] {
        c.ok(&format!("SET parallel_default_dop = {workers}")).await;
        let rows = c.rows("SELECT o.id, i.id FROM o LEFT JOIN i ON x = y").await;
        assert_eq!(rows, [["1", "1"], ["1", "3"], ["2", "NULL"], ["3", "2"], ["4", "NULL"], ["5", "1"], ["5", "3"]]);
        let rows = c.rows("SELECT o.id, i.id FROM o LEFT JOIN i ON x = y AND z < 9").await;
        assert_eq!(rows, [["1", "3"], ["2", "NULL"], ["3", "2"], ["4", "NULL"], ["5", "3"]]);
        let rows = c.rows("SELECT t.id, i.id FROM t LEFT JOIN i ON t.id = i.y LEFT JOIN o ON o.id = i.id AND o.x > 50").await;
        let ids: Vec<u32> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
        assert_eq!(ids.len(), 40_001);
        assert!(ids.is_sorted());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_of_equal_rows_are_the_same_every_time() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let first = c.rows("SELECT id, k FROM t ORDER BY k LIMIT 10").await;
    assert_eq!(first.iter().map(|row| row[0].parse::<u32>().unwrap()).collect::<Vec<_>>(), (0..10).map(|n| n * 10).collect::<Vec<_>>());
    for _ in 0..20 {
        assert_eq!(c.rows("SELECT id, k FROM t ORDER BY k LIMIT 10").await, first);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_is_asked_only_about_rows_that_those_before_it_leave() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE big (id INT PRIMARY KEY, x BIGINT)").await;
    c.ok("INSERT INTO big SELECT id, IF(id % 3 = 0, 9000000000000000000, id) FROM t").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM big WHERE x < 1000000 AND x * 10 >= 0").await, "26666");
    assert_eq!(c.error("SELECT COUNT(*) FROM big WHERE x * 10 >= 0").await.0, 1690);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_starts_anew_warns_once() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("UPDATE t SET d = 0.1").await;
    c.rows("SELECT SUM(d), SUM(IF(id = 39999, 1 DIV 0, 0)) FROM t").await;
    assert_eq!(c.rows("SHOW WARNINGS").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warnings_come_in_the_order_of_the_rows() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET max_error_count = 3000").await;
    for sql in [
        "SELECT id, CAST(CONCAT('x', id) AS SIGNED) FROM t WHERE id % 7 = 1",
        "SELECT GROUP_CONCAT(CAST(CONCAT('x', id) AS SIGNED)) FROM t WHERE id % 7 = 1",
        // Its rows come in any order until two warnings differ.
        "SELECT SUM(CAST(CONCAT('x', id) AS SIGNED)) FROM t WHERE id % 3 = 1",
        "SELECT a.id, (SELECT COUNT(*) FROM t b WHERE b.id = CAST(CONCAT(a.id, 'y') AS SIGNED)) FROM t a WHERE a.id % 400 = 3",
    ] {
        c.ok("SET force_parallel_execute = OFF").await;
        let rows = c.rows(sql).await;
        let (warnings, count) = (c.rows("SHOW WARNINGS").await, c.value("SHOW COUNT(*) WARNINGS").await);
        assert!(warnings.len() >= 100, "{sql}");
        c.ok("SET force_parallel_execute = ON").await;
        for _ in 0..3 {
            assert_eq!(c.rows(sql).await, rows, "{sql}");
            assert_eq!((c.rows("SHOW WARNINGS").await, c.value("SHOW COUNT(*) WARNINGS").await), (warnings.clone(), count.clone()), "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subquery_that_reads_nothing_of_the_row_is_run_once_for_all_workers() {
    let server = Server::new();
    let mut c = filled(&server).await;
    // Its rows warn of the same, which shows how often it was run.
    let subquery = "(SELECT NULLIF(id + CAST(CONCAT('x', k - k) AS SIGNED), -1) FROM t WHERE id < 3000)";
    for condition in ["id NOT IN", "id > ALL"] {
        let sql = format!("SELECT COUNT(*) FROM t WHERE {condition} {subquery}");
        c.ok("SET force_parallel_execute = OFF").await;
        let rows = c.rows(&sql).await;
        let warnings = c.value("SHOW COUNT(*) WARNINGS").await;
        c.ok("SET force_parallel_execute = ON").await;
        for _ in 0..5 {
            assert_eq!(c.rows(&sql).await, rows, "{sql}");
            assert_eq!(c.value("SHOW COUNT(*) WARNINGS").await, warnings, "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exists_fails_by_no_row_behind_the_first() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for sql in [
        "SELECT COUNT(*) FROM t WHERE k > 0 AND EXISTS (SELECT 1 FROM t b WHERE 9223372036854775807 + (b.id > 20000) > 0)",
        "SELECT COUNT(*) FROM t WHERE k > 0 AND NOT EXISTS (SELECT 1 FROM t b WHERE 9223372036854775807 + (b.id > 20000) > 0)",
    ] {
        for _ in 0..10 {
            both(&mut c, sql).await;
        }
    }
}

/// A subquery that is run for each row, and reads many.
const PER_ROW: &str = "(SELECT COUNT(*) FROM t b WHERE b.m + a.id > 500 AND b.id % 10 = a.k)";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_stop_when_a_limit_is_reached() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let before = counter(&mut c, "PQ_stmt_executed").await;
    assert_eq!(c.rows(&format!("SELECT id FROM t a WHERE id % 5000 = 0 AND {PER_ROW} >= 0 LIMIT 1")).await, [["0"]]);
    assert!(counter(&mut c, "PQ_stmt_executed").await > before);
    // Whatever a worker was at ends with its subquery.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let read = counter(&mut c, "Innodb_rows_read").await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(counter(&mut c, "Innodb_rows_read").await, read);
    stopped(&server, &mut c).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_ranges_are_shared_in_order() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let keys: Vec<String> = (0..300).map(|n| (n * 131 % 40_000).to_string()).collect();
    let (rows, parallel) = both(&mut c, &format!("SELECT id, m FROM t WHERE id IN ({}) AND m >= 0", keys.join(", "))).await;
    assert!(parallel);
    assert_eq!(rows.len(), 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_few_rows_that_give_many_are_divided() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE few (id INT PRIMARY KEY, k INT)").await;
    c.ok("INSERT INTO few SELECT id, id % 3 FROM t WHERE id < 1200").await;
    // Rows of one leaf, of which one worker would read all.
    c.ok("SET parallel_cost_threshold = 1000").await;
    for sql in [
        "SELECT COUNT(*), SUM(a.id * b.id) FROM few a JOIN few b ON a.id < b.id + 1",
        "SELECT COUNT(*), SUM(a.id - b.id) FROM few a, few b",
        "SELECT a.k, COUNT(*) FROM few a LEFT JOIN few b ON a.id > b.id AND b.k = 1 GROUP BY a.k ORDER BY a.k",
    ] {
        let (rows, parallel) = both(&mut c, sql).await;
        assert!(parallel && !rows.is_empty(), "{sql}");
        let tree = c.value(&format!("EXPLAIN FORMAT=TREE {sql}")).await;
        assert!(tree.contains("Rows for 3 workers"), "{tree}");
    }
    // What is handed out is itself computed in several parts.
    let sql = "SELECT COUNT(*), SUM(a.id), SUM(b.k) FROM few a JOIN (SELECT DISTINCT id % 1111 k FROM few) b ON a.id < b.k + 1";
    assert_eq!(both(&mut c, sql).await.0, [["617716", "228554920", "457109840"]]);
    let sql = "SELECT id, id % 7 FROM few EXCEPT SELECT k, id % 7 FROM few";
    assert!(both(&mut c, &format!("SELECT COUNT(*), SUM(id) FROM ({sql}) x")).await.0[0][0].parse::<u32>().unwrap() > 1000);
    c.ok("SET parallel_cost_threshold = 0").await;
    let sql = "SELECT COUNT(*), SUM(a.id - b.id) FROM few a JOIN few b ON a.k = b.k";
    assert_eq!(both(&mut c, sql).await.0, [["480000", "0"]]);
    let tree = c.value(&format!("EXPLAIN FORMAT=TREE {sql}")).await;
    assert!(tree.contains("PQblock scan on") || tree.contains("Rows for 3 workers"), "{tree}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_hints_and_explain_say_how_many_threads() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let first_line = async |c: &mut Client, hint: &str| {
        let tree = c.value(&format!("EXPLAIN FORMAT=TREE SELECT {hint} k, SUM(m) FROM t GROUP BY k")).await;
        tree.lines().next().unwrap().to_owned()
    };
    let tree = c.value("EXPLAIN FORMAT=TREE SELECT k, SUM(m) FROM t GROUP BY k").await;
    assert!(tree.starts_with("-> Parallel execute (3 workers)\n") && tree.contains("PQblock scan on t"), "{tree}");
    assert_eq!(first_line(&mut c, "/*+ PQ(2) */").await, "-> Parallel execute (2 workers)");
    assert_eq!(first_line(&mut c, "/*+ NO_PQ PQ(2) */").await, "-> Serial execute (NO_PQ)");
    c.ok("SET parallel_cost_threshold = 1000000").await;
    assert_eq!(first_line(&mut c, "").await, "-> Serial execute (cost below parallel_cost_threshold)");
    c.ok("SET parallel_cost_threshold = 1000, force_parallel_execute = OFF").await;
    assert_eq!(first_line(&mut c, "").await, "-> Serial execute (parallel execution is switched off)");
    assert_eq!(first_line(&mut c, "/*+ PQ */").await, "-> Parallel execute (3 workers)");
    c.ok("SET force_parallel_execute = ON, parallel_default_dop = 0").await;
    assert_eq!(first_line(&mut c, "").await, "-> Serial execute (parallel execution is switched off)");

    c.ok("SET force_parallel_execute = OFF, parallel_default_dop = 2, parallel_cost_threshold = 0").await;
    for (hint, first, divided) in [
        ("PQ(a 3)", "-> Parallel execute (3 workers)", ["PQblock scan on a", "Table scan on b"]),
        ("PQ(b)", "-> Parallel execute (2 workers)", ["Table scan on a", "PQblock scan on b"]),
        ("PQ(a 2) PQ(b 4)", "-> Parallel execute (4 workers)", ["PQblock scan on a", "PQblock scan on b"]),
        ("PQ(nobody 3)", "-> Serial execute (parallel execution is switched off)", ["Table scan on a", "Table scan on b"]),
    ] {
        let sql = format!("EXPLAIN FORMAT=TREE SELECT /*+ {hint} */ COUNT(*), SUM(a.m) FROM t a JOIN t b ON a.m = b.m + 1");
        let tree = c.value(&sql).await;
        assert!(tree.starts_with(&format!("{first}\n")) && divided.iter().all(|scan| tree.contains(scan)), "{hint}: {tree}");
    }
    c.rows("SELECT /*+ PQ(nobody 3) */ COUNT(*) FROM t").await;
    assert_eq!(c.rows("SHOW WARNINGS").await, [["Warning", "3128", "Unresolved name 'nobody'@'select#1' for PQ hint"]]);
    c.ok("SET force_parallel_execute = ON").await;

    // No worker is free: it runs on one thread all the same.
    c.ok("SET parallel_default_dop = 3").await;
    c.ok("SET GLOBAL parallel_max_threads = 1").await;
    let (refused, workers) = (counter(&mut c, "PQ_threads_refused").await, counter(&mut c, "PQ_serial_workers").await);
    assert_eq!(c.value("SELECT COUNT(DISTINCT k) FROM t").await, "10");
    assert_eq!((counter(&mut c, "PQ_threads_refused").await, counter(&mut c, "PQ_serial_workers").await), (refused + 1, workers + 1));
    assert_eq!(counter(&mut c, "PQ_threads_running").await, 0, "workers are given back");

    // What the statement's digest says of both runs.
    c.ok("SET GLOBAL parallel_max_threads = 64").await;
    assert_eq!(c.value("SELECT COUNT(DISTINCT k) FROM t").await, "10");
    let told = c
        .rows(
            "SELECT highkey_parallel, highkey_serial_disabled, highkey_serial_hint, highkey_serial_cost, highkey_serial_workers, highkey_serial_order \
             FROM performance_schema.events_statements_summary_by_digest WHERE digest_text LIKE 'SELECT COUNT%DISTINCT%'",
        )
        .await;
    assert_eq!(told, [["1", "0", "0", "0", "1", "0"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insert_select_gives_out_keys_in_the_order_of_the_rows() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE copy (n INT AUTO_INCREMENT PRIMARY KEY, id INT)").await;
    c.ok("INSERT INTO copy (id) SELECT id FROM t WHERE k < 5").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM copy a JOIN copy b ON b.n = a.n + 1 WHERE b.id < a.id").await, "0");
    // Also where the rows wait until the query has ended: for triggers, or as the table itself is read.
    let numbered = "CREATE TABLE x (n INT AUTO_INCREMENT PRIMARY KEY, k INT, c INT)";
    let trigger = "CREATE TRIGGER x_told AFTER INSERT ON x FOR EACH ROW SET @told = NEW.n";
    for (set_up, insert) in [
        ([numbered, trigger], "INSERT INTO x (k, c) SELECT id * 7 % 501, COUNT(*) FROM t GROUP BY id * 7 % 501"),
        ([numbered, "INSERT INTO x (k) VALUES (0)"], "INSERT INTO x (k, c) SELECT t.id * 7 % 501, COUNT(*) FROM t JOIN x ON x.k = t.id * 0 GROUP BY t.id * 7 % 501"),
    ] {
        let mut left = Vec::new();
        for parallel in ["OFF", "ON"] {
            c.ok(&format!("SET force_parallel_execute = {parallel}")).await;
            c.ok("DROP TABLE IF EXISTS x").await;
            for sql in set_up {
                c.ok(sql).await;
            }
            c.ok(insert).await;
            left.push(c.rows("SELECT n, k, c FROM x ORDER BY n").await);
        }
        assert!(left[0].len() > 500 && left[0] == left[1], "{insert}");
    }
    let executed = counter(&mut c, "PQ_stmt_executed").await;
    c.ok("CREATE TABLE sums (k INT PRIMARY KEY, m DECIMAL(30,2))").await;
    c.ok("INSERT INTO sums SELECT k, SUM(m) FROM t GROUP BY k ORDER BY k").await;
    assert!(counter(&mut c, "PQ_stmt_executed").await > executed);
}

/// It sorts more than fits into the least memory.
const SPILLING: &str = "SELECT CONCAT(COUNT(*), ' ', MAX(LENGTH(pad))) FROM (SELECT ROW_NUMBER() OVER (ORDER BY m, id DESC, pad) n, pad FROM \
                        (SELECT a.id, a.m, REPEAT(CONCAT(a.id, b.k), 20) pad FROM t a JOIN (SELECT DISTINCT k FROM t) b) x) y WHERE n > 100000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_temporary_space_are_limited_for_the_next_statement() {
    let server = Server::new();
    let mut c = filled(&server).await;
    assert_eq!(c.value(SPILLING).await, "300000 120");
    let refused = counter(&mut c, "PQ_memory_refused").await;
    c.ok("SET GLOBAL parallel_memory_limit = 16777216").await;
    assert_eq!(c.value(SPILLING).await, "300000 120");
    assert!(counter(&mut c, "PQ_memory_refused").await > refused, "less memory than before");
    c.ok("SET GLOBAL highkey_temp_space_limit = 1048576").await;
    for _ in 0..2 {
        assert_eq!(c.error(SPILLING).await, (1114, "The table '#highkey_tmp' is full".to_string()));
        assert_eq!(counter(&mut c, "PQ_temp_used").await, 0, "its files are gone");
    }
    assert_eq!(server.spilled_files(), 0);
    assert_eq!(c.value("SELECT COUNT(DISTINCT k) FROM t").await, "10");
    c.ok("SET GLOBAL highkey_temp_space_limit = 1073741824").await;
    assert_eq!(c.value(SPILLING).await, "300000 120");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_texts_spill_and_nobody_waits_for_ever() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE l (id INT PRIMARY KEY, g INT, s MEDIUMTEXT)").await;
    c.ok("INSERT INTO l SELECT id, id % 1500, CONCAT(REPEAT(CHAR(97 + id % 26), 2000 + id % 3000), id % 5000) FROM t WHERE id < 6000").await;
    c.ok("SET GLOBAL parallel_memory_limit = 16777216").await;
    c.ok("SET parallel_default_dop = 2").await;
    for sql in [
        "SELECT COUNT(*), SUM(n) FROM (SELECT s, COUNT(*) n FROM l GROUP BY s) x",
        "SELECT COUNT(*), SUM(n) FROM (SELECT CONCAT(s, g) y, COUNT(*) n FROM l GROUP BY CONCAT(s, g)) x",
        "SELECT COUNT(*), SUM(LENGTH(m)) FROM (SELECT s, MAX(s) m FROM l GROUP BY s) x",
        "SELECT COUNT(*), SUM(LENGTH(m)) FROM (SELECT g, MIN(s) m FROM l GROUP BY g) x",
        "SELECT COUNT(*) FROM (SELECT DISTINCT s, g FROM l) x",
        "SELECT COUNT(*) FROM (SELECT s FROM l UNION SELECT CONCAT(s, 'x') FROM l) x",
        "SELECT COUNT(*), SUM(a * b % 1000) FROM (SELECT ROW_NUMBER() OVER (ORDER BY s, id) a, ROW_NUMBER() OVER (ORDER BY g, s DESC, id) b FROM l) x",
        "SELECT COUNT(*), SUM(LENGTH(m)), MAX(n) FROM (SELECT LAG(s) OVER (ORDER BY s, id) m, RANK() OVER (PARTITION BY g % 10 ORDER BY REVERSE(s)) n FROM l) x",
        "SELECT LENGTH(s), id FROM l ORDER BY s, id LIMIT 5000, 3",
    ] {
        let answers = tokio::time::timeout(std::time::Duration::from_secs(120), both(&mut c, sql)).await;
        let (rows, parallel) = answers.unwrap_or_else(|_| panic!("it waits: {sql}"));
        assert!(parallel && !rows.is_empty(), "{sql}");
    }
    // Tasks of the last one may still let go of what they read.
    let begun = std::time::Instant::now();
    while counter(&mut c, "PQ_temp_used").await > 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "files stay");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// The answers with the least memory are those with the default, on one thread and on several, and memory was refused on the way.
async fn same_with_the_least_memory(c: &mut Client, queries: &[&str]) {
    for sql in queries {
        c.ok("SET GLOBAL parallel_memory_limit = 1073741824").await;
        let (rows, _) = both(c, sql).await;
        c.ok("SET GLOBAL parallel_memory_limit = 16777216").await;
        let refused = counter(c, "PQ_memory_refused").await;
        let answers = tokio::time::timeout(std::time::Duration::from_secs(120), both(c, sql)).await;
        let (small, _) = answers.unwrap_or_else(|_| panic!("it waits: {sql}"));
        assert_eq!(small, rows, "{sql}");
        assert!(counter(c, "PQ_memory_refused").await > refused, "it fits: {sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregates_of_more_rows_than_fit_have_the_same_answers() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE l (id INT PRIMARY KEY, g INT, n INT, s VARCHAR(1300))").await;
    c.ok("INSERT INTO l SELECT id, id % 700, id * 7919 % 5003, CONCAT(REPEAT(MD5(id % 9001), 40), id % 9001) FROM t WHERE id < 12000").await;
    c.ok("SET SESSION group_concat_max_len = 200000").await;
    same_with_the_least_memory(
        &mut c,
        &[
            "SELECT COUNT(DISTINCT s, CONCAT(s, id)), COUNT(*) FROM l",
            "SELECT COUNT(DISTINCT s), COUNT(DISTINCT CONCAT(s, 'x')), COUNT(DISTINCT s, n), SUM(n), COUNT(DISTINCT NULLIF(s, s)) FROM l",
            "SELECT SUM(DISTINCT id / 7e0), AVG(DISTINCT n / 3e0), STD(DISTINCT n), COUNT(DISTINCT s, CONCAT(s, id)), GROUP_CONCAT(DISTINCT n % 9) FROM l",
            "SELECT g % 2, COUNT(DISTINCT s), SUM(DISTINCT n), COUNT(n) FROM l GROUP BY g % 2 WITH ROLLUP",
            "SELECT CRC32(GROUP_CONCAT(DISTINCT s ORDER BY s DESC)), CRC32(GROUP_CONCAT(DISTINCT s)) FROM l",
            "SELECT SUM(CRC32(c)), SUM(LENGTH(c)) FROM (SELECT g, GROUP_CONCAT(s) c FROM l GROUP BY g) x",
            "SELECT SUM(CRC32(c)), SUM(LENGTH(c)) FROM (SELECT g, GROUP_CONCAT(s ORDER BY n % 3) c FROM l GROUP BY g) x",
            "SELECT SUM(CRC32(c)), SUM(LENGTH(c)) FROM (SELECT g, GROUP_CONCAT(DISTINCT s) c FROM l GROUP BY g) x",
            "SELECT SUM(CRC32(c)), SUM(LENGTH(c)) FROM (SELECT g, JSON_ARRAYAGG(s) c FROM l GROUP BY g) x",
            "SELECT SUM(CRC32(c)), SUM(LENGTH(c)) FROM (SELECT g, JSON_OBJECTAGG(LEFT(s, 1), CONCAT(s, id)) c FROM l GROUP BY g) x",
        ],
    )
    .await;
    // Only what shows is kept of a list.
    c.ok("SET SESSION group_concat_max_len = 3000").await;
    let cut = c.rows("SELECT GROUP_CONCAT(s), GROUP_CONCAT(s ORDER BY n DESC, id SEPARATOR '--'), GROUP_CONCAT(id ORDER BY n) FROM l").await;
    c.ok("SET GLOBAL parallel_memory_limit = 1073741824").await;
    c.ok("SET SESSION group_concat_max_len = 100000000").await;
    let whole = "SELECT LEFT(GROUP_CONCAT(s), 3000), LEFT(GROUP_CONCAT(s ORDER BY n DESC, id SEPARATOR '--'), 3000), LEFT(GROUP_CONCAT(id ORDER BY n), 3000) FROM l";
    assert_eq!(cut, c.rows(whole).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_more_rows_than_fit_have_the_same_answers() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE l (id INT PRIMARY KEY, n INT, s VARCHAR(1300))").await;
    c.ok("INSERT INTO l SELECT id, id % 977, CONCAT(REPEAT(MD5(id), 30), id) FROM t WHERE id < 12000").await;
    c.ok("CREATE TABLE few (id INT PRIMARY KEY, n INT, s MEDIUMTEXT)").await;
    c.ok("INSERT INTO few SELECT id, id, REPEAT(MD5(id), 300) FROM t WHERE id < 2500").await;
    same_with_the_least_memory(
        &mut c,
        &[
            "SELECT COUNT(*), SUM(LENGTH(b.s)), SUM(a.n) FROM l a LEFT JOIN l b ON a.s = b.s AND b.n < 900",
            "SELECT COUNT(*), SUM(n * r % 1000) FROM \
             (SELECT a.n, ROW_NUMBER() OVER (ORDER BY CONCAT(b.s, a.s), a.id) r FROM l a JOIN l b ON a.s = b.s) x",
            "SELECT COUNT(*), SUM(LENGTH(a.s)), SUM(LENGTH(b.s)) FROM few a LEFT JOIN few b ON a.n < b.n AND a.n > b.n - 3 AND b.n % 2 = 0",
            "SELECT COUNT(*), SUM(LENGTH(s)) FROM few a WHERE NOT EXISTS (SELECT * FROM few b WHERE a.n < b.n AND a.n > b.n - 3 AND a.s < b.s)",
            "SELECT COUNT(*), SUM(LENGTH(a.s) * m + LENGTH(b.s)) FROM (SELECT CONCAT(s, n) s, MAX(n) m FROM few GROUP BY CONCAT(s, n)) a \
             JOIN (SELECT CONCAT(s, n) s, MIN(n) n FROM few GROUP BY CONCAT(s, n)) b ON a.m < b.n AND a.m > b.n - 3",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_spilling_query_is_stopped_within_a_second() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut other = server.client().await;
    c.ok("SET GLOBAL parallel_memory_limit = 16777216").await;
    let id = c.value("SELECT CONNECTION_ID()").await;
    // Ten times the rows: it takes some seconds.
    let long = SPILLING.replace("DISTINCT k FROM t)", "id k FROM t WHERE id < 100)");
    let statement = long.clone();
    let running = tokio::spawn(async move {
        let error = c.error(&statement).await;
        (error, std::time::Instant::now(), c)
    });
    while counter(&mut other, "PQ_temp_used").await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(server.spilled_files() > 0);
    let killed = std::time::Instant::now();
    other.ok(&format!("KILL QUERY {id}")).await;
    let (error, ended, mut c) = running.await.unwrap();
    assert_eq!(error.0, 1317);
    assert!(ended - killed < std::time::Duration::from_secs(1), "{:?}", ended - killed);
    stopped(&server, &mut other).await;

    c.ok("SET max_execution_time = 1500").await;
    let begun = std::time::Instant::now();
    assert_eq!(c.error(&long).await.0, 3024);
    assert!(begun.elapsed() < std::time::Duration::from_millis(2500), "{:?}", begun.elapsed());
    stopped(&server, &mut other).await;
}

/// Within a second no worker runs, and no file and no memory is left.
async fn stopped(server: &Server, c: &mut Client) {
    for _ in 0..100 {
        let left = [counter(c, "PQ_threads_running").await, counter(c, "PQ_temp_used").await, counter(c, "PQ_memory_used").await];
        if left == [0; 3] && server.spilled_files() == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{} files, {} bytes of them", server.spilled_files(), counter(c, "PQ_temp_used").await);
}

/// The frame's rows are looked at again for each row, before the window gives any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_whose_frame_slides_ends_when_its_time_is_over() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for function in ["MIN(s)", "STDDEV(d)", "BIT_OR(k)"] {
        let error = c
            .error(&format!(
                "SELECT /*+ MAX_EXECUTION_TIME(100) */ MAX(w) FROM (SELECT {function} OVER (ORDER BY id ROWS BETWEEN 20000 PRECEDING AND 20000 FOLLOWING) w FROM t) q"
            ))
            .await;
        assert_eq!(error.0, 3024, "{function}");
    }
}

/// A batch of rows with long texts takes seconds; the session does not wait for it, but its workers must not go on for nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_stop_within_a_batch() {
    let server = Server::new();
    let mut c = filled(&server).await;
    assert_eq!(c.error("SELECT /*+ MAX_EXECUTION_TIME(100) */ MAX(SHA2(REPEAT(s, 20000), 512)) FROM t").await.0, 3024);
    stopped(&server, &mut c).await;
}

/// It has two workers, and goes on for minutes.
const BUSY: &str = "SELECT COUNT(*) FROM t a JOIN t b ON a.m + b.m > a.k * b.id";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_query_waits_for_workers_as_long_as_it_may() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let (mut other, mut killer) = (server.client().await, server.client().await);
    c.ok("SET GLOBAL parallel_max_threads = 2").await;
    c.ok("SET parallel_default_dop = 2").await;
    other.ok("SET highkey_executor = 'DATAFUSION', parallel_cost_threshold = 0, parallel_default_dop = 2").await;
    let kill = format!("KILL QUERY {}", c.value("SELECT CONNECTION_ID()").await);
    let begin = |mut c: Client| tokio::spawn(async move { (c.error(BUSY).await.0, c) });
    let short = "SELECT COUNT(DISTINCT k) FROM t";

    let running = begin(c);
    while counter(&mut other, "PQ_threads_running").await < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    // Nobody gives any back in time: it runs on one thread.
    other.ok("SET parallel_queue_timeout = 300").await;
    let told = async |c: &mut Client| [counter(c, "PQ_threads_refused").await, counter(c, "PQ_serial_workers").await, counter(c, "PQ_stmt_executed").await];
    let before = told(&mut other).await;
    let begun = std::time::Instant::now();
    assert_eq!(other.value(short).await, "10");
    assert!(begun.elapsed() >= std::time::Duration::from_millis(300), "{:?}", begun.elapsed());
    assert_eq!(told(&mut other).await, [before[0] + 1, before[1] + 1, before[2]]);
    // It may be killed meanwhile.
    other.ok("SET parallel_queue_timeout = 60000").await;
    assert_eq!(other.error_when_killed(short).await.0, 1317);
    killer.ok(&kill).await;
    let (code, c) = running.await.unwrap();
    assert_eq!(code, 1317);

    while counter(&mut other, "PQ_threads_running").await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }

    // They are given back meanwhile: it has them.
    let running = begin(c);
    while counter(&mut other, "PQ_threads_running").await < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let before = told(&mut other).await;
    let killing = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        killer.ok(&kill).await;
    });
    assert_eq!(other.value(short).await, "10");
    assert_eq!(told(&mut other).await, [before[0] + 1, before[1], before[2] + 1]);
    killing.await.unwrap();
    assert_eq!(running.await.unwrap().0, 1317);
}

/// Its own changes, and of those of others what the isolation level shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_see_what_the_transaction_sees() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut other = server.client().await;
    for (level, shown) in [("READ UNCOMMITTED", 2), ("READ COMMITTED", 1), ("REPEATABLE READ", 0), ("SERIALIZABLE", 1)] {
        let is_low = level.starts_with("READ");
        c.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await;
        c.ok("BEGIN").await;
        assert_eq!(c.value("SELECT COUNT(*) FROM t WHERE id < -5").await, "0");
        other.ok("UPDATE t SET k = 100 WHERE id = 39999").await;
        other.ok("BEGIN").await;
        if is_low {
            other.ok("UPDATE t SET k = 200 WHERE id = 39998").await;
        }
        c.ok("UPDATE t SET k = -1 WHERE id BETWEEN 7000 AND 7039").await;
        c.ok("DELETE FROM t WHERE id BETWEEN 100 AND 199").await;
        c.ok("INSERT INTO t (id, k) VALUES (50000, -1), (50001, -1)").await;
        let (rows, parallel) = both(&mut c, "SELECT COUNT(*), SUM(k = -1), SUM(k > 99), MAX(id), SUM(id BETWEEN 100 AND 199) FROM t").await;
        assert!(parallel, "{level}");
        let shown_rows = shown.to_string();
        assert_eq!(rows, [["39902", "42", shown_rows.as_str(), "50001", "0"]], "{level}");
        let (rows, parallel) = both(&mut c, "SELECT id, k FROM t WHERE k < 0 OR k > 99").await;
        assert!(parallel && rows.len() == 42 + shown, "{level}: {rows:?}");
        let (rows, _) = both(&mut c, "SELECT COUNT(*), SUM(b.k = -1) FROM t a JOIN t b ON a.id = b.id").await;
        assert_eq!(rows, [["39902", "42"]], "{level}");
        c.ok("ROLLBACK").await;
        other.ok("ROLLBACK").await;
        other.ok("UPDATE t SET k = 9 WHERE id = 39999").await;
        assert_eq!(both(&mut c, "SELECT COUNT(*), SUM(k) FROM t").await.0, [["40000", "180000"]], "{level}");
    }
}
