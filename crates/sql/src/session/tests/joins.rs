//! Joins by index: loops on the fast path, and scans under DataFusion that read the keys of a build side only.

use super::{Answer, Client, Server, table};

/// `big` has 40,000 rows, eight to a key; `few` has keys that it has, keys that it cannot have, one of them twice, and NULL.
async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE big (id INT UNSIGNED PRIMARY KEY, k INT, v DECIMAL(10,2), KEY (k))").await;
    for chunk in 0..8 {
        let row = |id: i32| format!("({id}, {}, {}.5)", if id % 11 == 0 { "NULL".to_owned() } else { (id % 5000 - 100).to_string() }, id % 100);
        let rows: Vec<String> = (chunk * 5000..chunk * 5000 + 5000).map(row).collect();
        c.ok(&format!("INSERT INTO big VALUES {}", rows.join(", "))).await;
    }
    c.ok("CREATE TABLE few (n BIGINT, u BIGINT UNSIGNED, note VARCHAR(9))").await;
    c.ok("INSERT INTO few VALUES (7, 7, 'a'), (7, 90, 'b'), (-50, 3000, 'c'), (4899, 39999, 'd'), (4900, 40000, 'e'), (5000000000, 18446744073709551615, 'f'), (-5000000000, 8, 'g'), (NULL, NULL, 'h')").await;
    c.rows("ANALYZE TABLE big").await;
    c.ok("SET parallel_cost_threshold = 0, parallel_default_dop = 3").await;
    c
}

async fn counter(c: &mut Client, name: &str) -> u64 {
    c.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).await[0][1].parse().unwrap()
}

/// The answer, and how many rows were read for it.
async fn answer(c: &mut Client, sql: &str) -> (Vec<Vec<String>>, u64) {
    let before = counter(c, "Innodb_rows_read").await;
    let rows = c.rows(sql).await;
    (rows, counter(c, "Innodb_rows_read").await - before)
}

/// Joins of `big` (named `big b`) that need few of its rows.
const SELECTIVE: &[&str] = &[
    "SELECT f.note, b.id FROM few f JOIN big b ON b.k = f.n ORDER BY 1, 2",
    "SELECT f.note, b.id, b.v FROM few f JOIN big b ON b.id = f.u ORDER BY 1, 2",
    "SELECT f.note, b.id FROM few f LEFT JOIN big b ON b.k = f.n ORDER BY 1, 2",
    "SELECT f.note, b.id FROM few f LEFT JOIN big b ON b.k = f.n AND b.v > 50 ORDER BY 1, 2",
    "SELECT f.note, SUM(b.v), COUNT(*) FROM few f JOIN big b ON b.k = f.n GROUP BY f.note ORDER BY 1",
    "SELECT f.note FROM few f WHERE EXISTS (SELECT 1 FROM big b WHERE b.k = f.n) ORDER BY 1",
    "SELECT f.note FROM few f WHERE NOT EXISTS (SELECT 1 FROM big b WHERE b.k = f.n AND b.v < 90) ORDER BY 1",
    "SELECT f.note FROM few f WHERE f.n IN (SELECT b.k FROM big b WHERE b.id % 2 = 1) ORDER BY 1",
    "SELECT b.id FROM big b WHERE b.k IN (SELECT f.n FROM few f) ORDER BY 1",
    "SELECT f.note, d.s FROM few f JOIN (SELECT b.k, SUM(b.v) s FROM big b GROUP BY b.k HAVING SUM(b.v) > 10) d ON d.k = f.n ORDER BY 1",
    "SELECT f.note, (SELECT MAX(b.v) FROM big b WHERE b.k = f.n) FROM few f ORDER BY 1",
    "SELECT b.id, c.id FROM few f JOIN big b ON b.k = f.n JOIN big c ON c.id = b.id + 1 WHERE f.note < 'd' ORDER BY 1, 2",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_reads_the_keys_of_the_build_side_only() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for sql in SELECTIVE {
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        let (whole, read) = answer(&mut c, &sql.replace("FROM big b", "FROM big b IGNORE INDEX (k, PRIMARY)").replace("JOIN big b", "JOIN big b IGNORE INDEX (k, PRIMARY)")).await;
        assert!(read >= 40_000, "{sql} read {read} rows without indexes");
        assert!(!whole.is_empty(), "{sql}");
        for setting in ["force_parallel_execute = ON", "force_parallel_execute = OFF", "highkey_executor = 'FAST'", "highkey_executor = 'AUTO'"] {
            c.ok(&format!("SET {setting}")).await;
            let (rows, read) = answer(&mut c, sql).await;
            assert_eq!(rows, whole, "{sql} with {setting}");
            // `b.id + 1` is no column whose keys could be looked up: `c` is read whole by DataFusion.
            assert!(read < if sql.contains("big c") { 45_000 } else { 2_000 }, "{sql} with {setting} read {read} rows");
        }
    }
}

/// 40,000 lines of 4,000 orders, all of one warehouse; `picked` has a few orders, one of them twice, one of another warehouse, one that is none and a NULL.
async fn lines(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE line (w INT, d INT, o INT, n INT, v INT NOT NULL, PRIMARY KEY (w, d, o, n))").await;
    for d in 1..=4 {
        let orders = (1..=1000).flat_map(|o| (1..=10).map(move |n| format!("(1, {d}, {o}, {n}, {})", (o * 7 + n * d) % 97)));
        c.ok(&format!("INSERT INTO line VALUES {}", orders.collect::<Vec<_>>().join(", "))).await;
    }
    c.ok("CREATE TABLE picked (w INT, d INT, o INT, note VARCHAR(9))").await;
    c.ok("INSERT INTO picked VALUES (1, 1, 7, 'a'), (1, 2, 7, 'b'), (1, 4, 1000, 'c'), (1, 4, 1001, 'd'), (2, 1, 7, 'e'), (NULL, 1, 7, 'f'), (1, 3, 500, 'g'), (1, 3, 500, 'h')").await;
    c.rows("ANALYZE TABLE line, picked").await;
    c.ok("SET highkey_executor = 'DATAFUSION', parallel_cost_threshold = 0, parallel_default_dop = 3").await;
    c
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_several_columns_are_looked_up_together() {
    let server = Server::new();
    let mut c = lines(&server).await;
    for sql in [
        "SELECT p.note, l.n, l.v FROM picked p JOIN line l ON l.w = p.w AND l.d = p.d AND l.o = p.o ORDER BY 1, 2",
        "SELECT p.note, l.n, l.v FROM picked p LEFT JOIN line l ON l.o = p.o AND l.w = p.w AND l.d = p.d ORDER BY 1, 2",
        "SELECT p.note FROM picked p WHERE EXISTS (SELECT 1 FROM line l WHERE l.w = p.w AND l.d = p.d AND l.o = p.o AND l.v > 40) ORDER BY 1",
        "SELECT p.note, g.s FROM picked p JOIN (SELECT l.w, l.d, l.o, SUM(l.v) s FROM line l GROUP BY l.w, l.d, l.o) g ON g.w = p.w AND g.d = p.d AND g.o = p.o ORDER BY 1",
        "SELECT p.note, l.n FROM picked p JOIN line l ON l.w = p.w AND l.d = p.d AND l.o = p.o AND l.n = p.d ORDER BY 1, 2",
    ] {
        let (whole, read) = answer(&mut c, &sql.replace("line l", "line l IGNORE INDEX (PRIMARY)")).await;
        assert!(read >= 40_000, "{sql} read {read} rows without indexes");
        assert!(!whole.is_empty(), "{sql}");
        for setting in ["force_parallel_execute = ON", "force_parallel_execute = OFF"] {
            c.ok(&format!("SET {setting}")).await;
            let (rows, read) = answer(&mut c, sql).await;
            assert_eq!(rows, whole, "{sql} with {setting}");
            assert!(read < 500, "{sql} with {setting} read {read} rows");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_rows_narrow_the_whole_chain() {
    let server = Server::new();
    let mut c = lines(&server).await;
    let chain = "SELECT COUNT(*) FROM line m, line l, picked p WHERE m.w = l.w AND m.d = l.d AND m.o = l.o AND l.w = p.w AND l.d = p.d AND l.o = p.o AND p.note";
    for setting in ["force_parallel_execute = ON", "force_parallel_execute = OFF"] {
        c.ok(&format!("SET {setting}")).await;
        // An order has 10 lines.
        for (note, count, most) in [("'nobody'", 0, 8), ("'e'", 0, 8), ("'a'", 100, 200), ("'d'", 0, 8)] {
            let (rows, read) = answer(&mut c, &format!("{chain} = {note}")).await;
            assert_eq!(rows, [[count.to_string()]], "{note} with {setting}");
            assert!(read <= most, "{note} with {setting} read {read} rows");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_all_rows_have_is_scanned_for() {
    let server = Server::new();
    let mut c = lines(&server).await;
    let kept = "SELECT SUM(w), SUM(o), SUM(v) FROM line";
    // Rows are everybody's once the purge thread has come by.
    while counter(&mut c, "Highkey_column_cache_bytes").await == 0 {
        c.rows(kept).await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    c.rows(kept).await;
    let expected = c.value("SELECT SUM(v) FROM line WHERE o = 8").await;
    let hits = counter(&mut c, "Highkey_column_cache_hits").await;
    // By the index all rows would be read: they are the warehouse's.
    let sum = c.value("SELECT SUM(l.v) FROM picked p JOIN line l ON l.w = p.w AND l.o = p.o + 1 WHERE p.note = 'a'").await;
    assert_eq!(sum, expected);
    assert!(counter(&mut c, "Highkey_column_cache_hits").await > hits, "the columns were there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lookups_that_come_again_make_a_scan_keep_the_columns() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE ids (id INT UNSIGNED PRIMARY KEY)").await;
    let ids: Vec<String> = (0..150).map(|i| format!("({})", i * 200)).collect();
    c.ok(&format!("INSERT INTO ids VALUES {}", ids.join(", "))).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    let sql = "SELECT COUNT(*), SUM(b.v) FROM ids i JOIN big b ON b.id = i.id";
    let (first, read) = answer(&mut c, sql).await;
    assert!(read < 2_000, "150 lookups are less than a scan that has to read all rows: {read}");
    let mut most = 0;
    for _ in 0..4 {
        let (rows, read) = answer(&mut c, sql).await;
        assert_eq!(rows, first);
        most = most.max(read);
    }
    assert!(most >= 40_000, "several times 150 lookups are more than a scan of kept columns: {most}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_of_one_table_is_looked_up_in_others() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    for (sql, answer) in [
        ("SELECT COUNT(*) FROM big a JOIN big b ON a.id = b.id WHERE b.id < 10", "10"),
        ("SELECT COUNT(*) FROM big a JOIN big b ON a.id = b.id WHERE 30 <= b.id AND b.id < 33", "3"),
        ("SELECT COUNT(*) FROM big a, big b, few f WHERE a.id = b.id AND b.id IN (7, 90, 50000)", "16"),
        ("SELECT COUNT(*) FROM big a, big b, few f WHERE b.id = a.id + 1 AND ((a.id = 7 AND f.note = 'a') OR (f.note < 'c' AND a.id = 9))", "3"),
        ("SELECT COUNT(a.id) FROM big b LEFT JOIN big a ON a.id = b.id WHERE b.id >= 39990", "10"),
    ] {
        let plan = c.value(&format!("EXPLAIN FORMAT=TREE {sql}")).await;
        assert!(plan.contains("scan on a using PRIMARY"), "{sql}: {plan}");
        assert_eq!(c.value(sql).await, answer, "{sql}");
    }
    // Rows without a partner are rows of the answer, whatever is asked of the other side.
    assert_eq!(c.value("SELECT COUNT(*) FROM big a LEFT JOIN big b ON a.id = b.id AND b.id < 10").await, "40000");
    // As doubles the number and the text are equal, as integers they are not.
    c.ok("CREATE TABLE exact (i BIGINT PRIMARY KEY)").await;
    c.ok("INSERT INTO exact VALUES (9007199254740992), (5), (6)").await;
    c.ok("CREATE TABLE rounded (d DOUBLE)").await;
    c.ok("INSERT INTO rounded VALUES (9007199254740992)").await;
    for condition in ["r.d = '9007199254740993'", "r.d IN ('9007199254740993', '7')"] {
        let sql = format!("SELECT COUNT(*) FROM rounded r JOIN exact e ON r.d = e.i WHERE {condition}");
        assert_eq!(c.value(&sql).await, "1", "{sql}");
    }
    // Loops begin with what is implied if that leaves fewer rows: here 50 and not 2,000.
    c.ok("CREATE TABLE twice (n INT PRIMARY KEY, id INT UNSIGNED NOT NULL, KEY by_id (id))").await;
    let rows: Vec<String> = (0..4000).map(|n| format!("({n}, {})", n % 100)).collect();
    c.ok(&format!("INSERT INTO twice VALUES {}", rows.join(", "))).await;
    c.rows("ANALYZE TABLE twice").await;
    c.ok("SET highkey_executor = 'AUTO'").await;
    let sql = "SELECT COUNT(*) FROM twice t JOIN big a ON a.id = t.id WHERE t.id < 50 AND a.v = 3.5";
    let plan = c.value(&format!("EXPLAIN FORMAT=TREE {sql}")).await;
    assert!(plan.contains("Index range scan on a using PRIMARY") && plan.contains("Index lookup on t using by_id"), "{plan}");
    assert_eq!(c.value(sql).await, "40");
    let equal = c.value("EXPLAIN FORMAT=TREE SELECT COUNT(*) FROM big a JOIN big b ON a.id = b.id WHERE b.id < 50").await;
    assert!(equal.contains("Index range scan on b using PRIMARY"), "begun where the condition stands: {equal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_keys_are_scanned_for() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    let (rows, read) = answer(&mut c, "SELECT COUNT(*), SUM(a.v) FROM big a JOIN big b ON a.k = b.k").await;
    // 4,545 or so of each 5,000 keys' eight rows have a key: counted by the groups themselves.
    let (expected, _) = answer(&mut c, "SELECT SUM(n * n), SUM(n * s) FROM (SELECT k, COUNT(*) n, SUM(v) s FROM big WHERE k IS NOT NULL GROUP BY k) g").await;
    assert_eq!(rows, expected);
    assert_eq!(read, 80_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_beyond_its_budget_is_left_to_datafusion() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let paths = async |c: &mut Client| (counter(c, "Highkey_select_fast_path").await, counter(c, "Highkey_select_datafusion").await);
    // (statement, on the fast path)
    for (sql, fast) in [
        ("SELECT COUNT(*) FROM few f JOIN big b ON b.k = f.n", true),
        ("SELECT COUNT(*) FROM big a JOIN big b ON b.id = a.id + 1 WHERE a.id < 100", true),
        ("SELECT COUNT(*) FROM big a JOIN big b ON b.id = a.id + 1 WHERE a.id < 30000", false),
        ("SELECT a.id FROM big a JOIN big b ON b.id = a.k ORDER BY a.id DESC LIMIT 3", true),
        // Begun, for the LIMIT might have been reached early, and given up.
        ("SELECT a.id FROM big a JOIN big b ON b.id = a.k WHERE b.v < a.v - 99 ORDER BY a.id DESC LIMIT 3", false),
    ] {
        let before = paths(&mut c).await;
        let rows = c.rows(sql).await;
        let after = paths(&mut c).await;
        // The question about the counters is none of the statements that they count.
        assert_eq!((after.0 - before.0, after.1 - before.1), if fast { (1, 0) } else { (0, 1) }, "{sql}");
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        assert_eq!(rows, c.rows(sql).await, "{sql}");
        c.ok("SET highkey_executor = 'AUTO'").await;
    }
    // What a prepared statement's first values promise need not hold for others.
    c.ok("PREPARE s FROM 'SELECT COUNT(*), MAX(b.v) FROM big a JOIN big b ON b.id = a.id + 1 WHERE a.id BETWEEN ? AND ?'").await;
    for (first, last, fast) in [(10, 20, true), (0, 35_000, false), (39_990, 50_000, true)] {
        let before = paths(&mut c).await;
        c.ok(&format!("SET @a = {first}, @b = {last}")).await;
        let rows = c.rows("EXECUTE s USING @a, @b").await;
        let after = paths(&mut c).await;
        assert_eq!((after.0 - before.0, after.1 - before.1), if fast { (1, 0) } else { (0, 1) }, "{first}..{last}");
        assert_eq!(rows[0][0], (last.min(39_998) - first + 1).to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_shows_the_loops() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let plan = c.rows("EXPLAIN FORMAT=TREE SELECT f.note, b.v, x.v FROM few f JOIN big b ON b.k = f.n LEFT JOIN big x ON x.id = b.id + 1").await;
    let expected = [
        "-> Fast path",
        "    -> Nested loop left join",
        "        -> Nested loop inner join",
        "            -> Table scan on f",
        "            -> Index lookup on b using k (k=f.n)",
        "        -> Single-row index lookup on x using PRIMARY (id=(b.id + 1))",
    ];
    let lines: Vec<(&str, &str)> = plan[0][0].lines().map(|line| line.split_once("  (cost=").unwrap_or((line, ""))).collect();
    assert_eq!(lines.iter().map(|(text, _)| *text).collect::<Vec<_>>(), expected);
    assert!(lines[1..].iter().all(|(_, estimate)| estimate.contains(" rows=")), "{plan:?}");
    let table = c.rows("EXPLAIN SELECT f.note, b.v, x.v FROM few f JOIN big b ON b.k = f.n LEFT JOIN big x ON x.id = b.id + 1").await;
    // Table, type, key, key_len, ref.
    let shown: Vec<String> = table.iter().map(|row| [2, 4, 6, 7, 8].map(|i| row[i].clone()).join(" ")).collect();
    assert_eq!(shown, ["f ALL NULL NULL NULL", "b ref k 5 d.f.n", "x eq_ref PRIMARY 4 func"]);
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    let plan = c.rows("EXPLAIN FORMAT=TREE SELECT COUNT(*) FROM few f JOIN big b ON b.k = f.n").await;
    assert!(plan[0][0].contains("scan on b, or index lookup using k if the join has few keys"), "{}", plan[0][0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_joined_by_what_ties_them() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE mid (id INT PRIMARY KEY, u INT UNSIGNED NOT NULL, n INT)").await;
    c.ok("INSERT INTO mid SELECT id, id * 3 % 40000, id % 7 FROM big WHERE id BETWEEN 1 AND 500").await;
    for (sql, unordered) in [
        // `few` and `mid` are neighbours in FROM, and `big` is what ties them.
        ("SELECT COUNT(*), SUM(b.v) FROM few f, mid m, big b WHERE b.id = m.u AND f.n = b.k AND m.n < 5", false),
        ("SELECT COUNT(*), MAX(m.id) FROM few f, mid m, big b WHERE b.id = m.u AND MOD(b.id, 10) = f.n", false),
        ("SELECT COUNT(*), MIN(b.v) FROM few f, big b WHERE (b.k = f.n AND b.v > 90) OR (b.v < 5 AND b.k = f.n)", false),
        ("SELECT COUNT(*), MAX(f.note) FROM few f, mid m, mid x WHERE x.id = m.n + 1", true),
    ] {
        c.ok("SET highkey_executor = 'FAST'").await;
        let expected = c.rows(sql).await;
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        assert_eq!(c.rows(sql).await, expected, "{sql}");
        let plan = c.rows(&format!("EXPLAIN FORMAT=TREE {sql}")).await;
        assert_eq!(plan[0][0].contains("no condition"), unordered, "{sql}: {}", plan[0][0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_tells_which_tables_are_joined_first() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("CREATE TABLE mid (id INT PRIMARY KEY, n INT)").await;
    c.ok("INSERT INTO mid SELECT id, id % 7 FROM big WHERE id BETWEEN 1 AND 500").await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    // A tenth is guessed of `x`, a third would be of `y`, which has 210 rows of 40,000.
    let sql = "SELECT COUNT(*), SUM(f.v) FROM big f, mid x, big y WHERE f.k = x.id AND y.id = f.id + 0 AND x.n = 3 AND y.id < 210";
    let plan = c.value(&format!("EXPLAIN FORMAT=TREE {sql}")).await;
    let depth = |alias: &str| plan.lines().find(|line| line.contains(&format!("scan on {alias}"))).and_then(|line| line.find("->")).unwrap_or_else(|| panic!("{plan}"));
    assert!(depth("x") < depth("y"), "{plan}");
    let joined = c.rows(sql).await;
    c.ok("SET highkey_executor = 'FAST'").await;
    assert_eq!(c.rows(sql).await, joined);
    assert_ne!(joined[0][0], "0");
}

#[tokio::test]
async fn timestamps_are_joined_by_what_the_clock_shows() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("SET time_zone = '+00:00'").await;
    c.ok("CREATE TABLE a (id INT PRIMARY KEY, ts TIMESTAMP NULL)").await;
    c.ok("CREATE TABLE b (id INT PRIMARY KEY, n INT, ts TIMESTAMP NULL, KEY (ts, n), KEY (n, ts DESC))").await;
    // In Berlin 02:20, twice 02:30, 02:40 of the second hour.
    c.ok("INSERT INTO a VALUES (1, '2024-10-27 00:20:00'), (2, '2024-10-27 00:30:00'), (3, '2024-10-27 01:30:00'), (4, '2024-10-27 01:40:00'), (5, NULL)").await;
    c.ok("INSERT INTO b SELECT id, 7, ts FROM a").await;
    c.ok("INSERT INTO b SELECT id + 10 * k, 7, '2024-06-01 00:00:00' + INTERVAL id + 10 * k HOUR FROM a, (SELECT 1 k UNION ALL SELECT 2 UNION ALL SELECT 3) m").await;
    c.rows("ANALYZE TABLE a, b").await;
    c.ok("SET time_zone = 'Europe/Berlin'").await;
    for executor in ["FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = '{executor}'")).await;
        for hint in ["", "FORCE INDEX (ts)", "FORCE INDEX (n)"] {
            let equal = c.rows(&format!("SELECT a.id, b.id FROM a STRAIGHT_JOIN b {hint} ON b.ts = a.ts AND b.n = 7 ORDER BY 1, 2")).await;
            assert_eq!(equal, [["1", "1"], ["2", "2"], ["2", "3"], ["3", "2"], ["3", "3"], ["4", "4"]], "{executor} {hint}");
            let less = c.rows(&format!("SELECT a.id, COUNT(*) FROM a STRAIGHT_JOIN b {hint} ON b.ts < a.ts AND b.n = 7 AND b.id < 10 GROUP BY a.id ORDER BY 1")).await;
            assert_eq!(less, [["2", "1"], ["3", "1"], ["4", "3"]], "{executor} {hint}");
            let not_less = c.rows(&format!("SELECT a.id, COUNT(*) FROM a STRAIGHT_JOIN b {hint} ON b.ts >= a.ts AND b.n = 7 AND b.id < 10 GROUP BY a.id ORDER BY 1")).await;
            assert_eq!(not_less, [["1", "4"], ["2", "3"], ["3", "3"], ["4", "1"]], "{executor} {hint}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_statements_lock_are_rows_read() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)").await;
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        c.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")).await;
        for (sql, rows) in [("UPDATE t SET v = v + 10 WHERE id = 3", 1), ("UPDATE t SET v = 0 WHERE v > 100", 4), ("DELETE FROM t WHERE v > 100", 4)] {
            let before = counter(&mut c, "Innodb_rows_read").await;
            c.ok(sql).await;
            assert_eq!(counter(&mut c, "Innodb_rows_read").await - before, rows, "{sql} at {isolation}");
        }
    }
    assert_eq!(answer(&mut c, "SELECT v FROM t WHERE id = 1 FOR UPDATE").await.1, 1);
}

/// The sides of a RIGHT JOIN are locked as those of the LEFT JOIN that it is: as MySQL 8.0.12 does.
#[tokio::test]
async fn a_right_join_locks_what_it_needs() {
    let server = Server::new();
    let (mut c, mut other) = (server.client().await, server.client().await);
    c.ok("CREATE TABLE a (id INT PRIMARY KEY, v INT)").await;
    c.ok("CREATE TABLE b (id INT PRIMARY KEY, a_id INT, w INT, KEY (a_id))").await;
    c.ok("CREATE TABLE d (id INT PRIMARY KEY)").await;
    c.ok("INSERT INTO a VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)").await;
    c.ok("INSERT INTO b VALUES (10, 1, 1), (20, 2, 2), (30, 3, 3), (40, 4, 4)").await;
    c.ok("INSERT INTO d VALUES (2), (3), (7)").await;
    for (join, row) in [
        ("b RIGHT JOIN a ON b.a_id = a.id WHERE a.id = 2", "20 2 2 2 2"),
        ("b RIGHT JOIN a ON b.a_id = a.id RIGHT JOIN d ON d.id = a.id WHERE d.id = 2", "20 2 2 2 2 2"),
        ("d LEFT JOIN (b RIGHT JOIN a ON b.a_id = a.id) ON d.id = a.id WHERE d.id = 2", "2 20 2 2 2 2"),
    ] {
        c.ok("BEGIN").await;
        assert_eq!(c.rows(&format!("SELECT * FROM {join} FOR UPDATE")).await, table(row), "{join}");
        for (wanted, is_free) in [("a WHERE id = 2", false), ("a WHERE id = 3", true), ("b WHERE id = 20", false), ("b WHERE id = 40", true), ("d WHERE id = 7", true)] {
            let found = other.run(&format!("SELECT id FROM {wanted} FOR UPDATE NOWAIT")).await;
            assert_eq!(matches!(found, Answer::Rows { .. }), is_free, "{wanted} beside {join}: {found:?}");
        }
        c.ok("ROLLBACK").await;
    }
}

#[tokio::test]
async fn several_keys_are_made_of_one_column() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE p (v VARCHAR(9), h CHAR(6), n ENUM('a', 'b'), i INT)").await;
    c.ok("INSERT INTO p VALUES ('a', 'a', 'a', 1), ('b', 'a', 'b', 1), ('bb', 'bb', 'a', 2)").await;
    c.ok("SET highkey_executor = DATAFUSION").await;
    for (sql, answer) in [
        ("SELECT COUNT(*) FROM p a JOIN p b ON a.v = b.n AND a.h = b.n", "2"),
        ("SELECT COUNT(*) FROM p a JOIN p b ON a.i = LENGTH(b.v) AND a.i = LENGTH(CONCAT(b.v, ''))", "5"),
        ("SELECT COUNT(*) FROM p a WHERE EXISTS (SELECT 1 FROM p b WHERE a.v = CONCAT(b.v, '') AND a.h = CONCAT(b.v, ''))", "2"),
    ] {
        assert_eq!(c.value(sql).await, answer, "{sql}");
    }
}

#[tokio::test]
async fn straight_join_of_a_select_keeps_the_order_of_its_tables() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE many (id INT PRIMARY KEY, v INT)").await;
    c.ok("CREATE TABLE few (id INT PRIMARY KEY, m INT, KEY (m))").await;
    let rows: Vec<String> = (0..50).map(|id| format!("({id}, {id})")).collect();
    c.ok(&format!("INSERT INTO many VALUES {}", rows.join(", "))).await;
    c.ok("INSERT INTO few VALUES (1, 3), (2, 4)").await;
    for (sql, order) in [
        ("SELECT many.v FROM many JOIN few ON few.m = many.id", ["few", "many"]),
        ("SELECT STRAIGHT_JOIN many.v FROM many JOIN few ON few.m = many.id", ["many", "few"]),
        ("SELECT STRAIGHT_JOIN many.v FROM many, few WHERE few.m = many.id", ["many", "few"]),
        ("SELECT /*+ JOIN_FIXED_ORDER() */ many.v FROM many, few WHERE few.m = many.id", ["many", "few"]),
        ("SELECT /*+ JOIN_ORDER(many, few) */ many.v FROM few, many WHERE few.m = many.id", ["many", "few"]),
        ("SELECT /*+ JOIN_PREFIX(many) */ many.v FROM few JOIN many ON few.m = many.id", ["many", "few"]),
        ("SELECT /*+ JOIN_SUFFIX(few) */ many.v FROM few JOIN many ON few.m = many.id", ["many", "few"]),
        ("SELECT /*+ QB_NAME(q) JOIN_SUFFIX(@q few) */ many.v FROM few JOIN many ON few.m = many.id", ["many", "few"]),
        // What is not there, and what cannot be followed behind another.
        ("SELECT /*+ JOIN_ORDER(many, nobody) */ many.v FROM many JOIN few ON few.m = many.id", ["few", "many"]),
        ("SELECT /*+ JOIN_ORDER(few, many) JOIN_PREFIX(many) */ many.v FROM many JOIN few ON few.m = many.id", ["few", "many"]),
    ] {
        let tables: Vec<String> = c.rows(&format!("EXPLAIN {sql}")).await.into_iter().map(|row| row[2].clone()).collect();
        assert_eq!(tables, order, "{sql}");
        let mut found = c.rows(sql).await;
        found.sort();
        assert_eq!(found, [["3"], ["4"]], "{sql}");
    }
    // On DataFusion, with the columns where FROM has them.
    let all = c.rows("SELECT * FROM few JOIN many ON few.m = many.id ORDER BY few.id").await;
    assert_eq!(all, [["1", "3", "3", "3"], ["2", "4", "4", "4"]]);
    for executor in ["FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = {executor}")).await;
        assert_eq!(c.rows("SELECT /*+ JOIN_PREFIX(many) */ * FROM few JOIN many ON few.m = many.id ORDER BY few.id").await, all, "{executor}");
    }
    // Rows that are not read stay free.
    let mut other = server.client().await;
    c.ok("SET highkey_executor = AUTO").await;
    c.ok("BEGIN").await;
    assert_eq!(c.value("SELECT /*+ JOIN_PREFIX(few) */ many.v FROM many, few WHERE few.m = many.id AND few.id = 1 FOR UPDATE").await, "3");
    assert_eq!(other.error("SELECT v FROM many WHERE id = 3 FOR UPDATE NOWAIT").await.0, 3572);
    assert_eq!(other.value("SELECT v FROM many WHERE id = 4 FOR UPDATE NOWAIT").await, "4");
    c.ok("ROLLBACK").await;
}

#[tokio::test]
async fn index_hints_choose_what_a_table_is_read_by() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY ka (a), KEY kb (b))").await;
    let rows: Vec<String> = (0..200).map(|id| format!("({id}, {}, {})", id % 20, id % 50)).collect();
    c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    for (from, key) in [
        ("/*+ INDEX(t ka) */ id FROM t", "ka"),
        ("/*+ INDEX(t kb) */ id FROM t", "kb"),
        ("/*+ NO_INDEX(t ka) */ id FROM t", "kb"),
        ("/*+ NO_INDEX(t ka, kb) */ id FROM t", "NULL"),
        ("/*+ NO_INDEX(t) */ id FROM t", "NULL"),
        ("/*+ JOIN_INDEX(t ka) */ id FROM t", "ka"),
        ("/*+ INDEX(t ka) */ id FROM t USE INDEX (kb)", "ka"),
        ("/*+ QB_NAME(q) INDEX(@q t ka) */ id FROM t", "ka"),
        ("/*+ INDEX(@inner t ka) */ id FROM (SELECT /*+ QB_NAME(inner) */ * FROM t) t", "ka"),
        ("id FROM t FORCE INDEX (ka)", "ka"),
        ("id FROM t IGNORE INDEX (ka)", "kb"),
        ("id FROM t USE INDEX ()", "NULL"),
    ] {
        let sql = format!("SELECT {from} WHERE a = 5 AND b = 5");
        assert_eq!(c.rows(&format!("EXPLAIN {sql}")).await[0][6], key, "{sql}");
        let mut found = c.rows(&sql).await;
        found.sort();
        assert_eq!(found, [["105"], ["5"]], "{sql}");
    }
    for change in ["UPDATE /*+ INDEX(t kb) */ t SET a = 5", "DELETE /*+ NO_INDEX(t ka) */ FROM t"] {
        assert_eq!(c.rows(&format!("EXPLAIN {change} WHERE a = 5 AND b = 5")).await[0][6], "kb", "{change}");
    }
    c.rows("SELECT /*+ INDEX(t nokey) */ id FROM t WHERE id = 1").await;
    assert_eq!(c.rows("SHOW WARNINGS").await, [["Warning", "3128", "Unresolved name `t`@`select#1` `nokey` for INDEX hint"]]);
}
