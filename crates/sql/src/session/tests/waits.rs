//! Where a statement's time went: EXPLAIN ANALYZE, the statement digests, SHOW ENGINE INNODB STATUS.

use highkey_types::Value;

use super::{Answer, Client, Collector, Server, table};

/// The lines of EXPLAIN ANALYZE.
async fn analyze(c: &mut Client, sql: &str) -> Vec<String> {
    let text = c.value(&format!("EXPLAIN ANALYZE {sql}")).await;
    text.lines().map(str::to_owned).collect()
}

/// The root's text, the rows it says, and the parts of the time by name, in milliseconds.
fn parts(lines: &[String]) -> (&str, u64, Vec<(&str, f64)>) {
    let (root, actual) = lines[0].split_once("  (actual time=").expect("the root has its time");
    let rows = actual.split_once("rows=").and_then(|(_, rest)| rest.split_once(' ')).expect("the root has its rows").0;
    let at = lines.iter().position(|line| line.starts_with("Time: ")).expect("the time is told");
    let number = |text: &str| text.split(' ').next().and_then(|n| n.parse().ok()).expect("milliseconds");
    let parts = lines[at..].iter().filter(|line| !line.starts_with("        ")).map(|line| {
        let (name, rest) = line.trim().split_once(": ").expect("name: time");
        (name, number(rest))
    });
    (root, rows.parse().unwrap(), parts.collect())
}

const PARTS: [&str; 8] = ["Time", "cpu", "latch wait", "row-lock wait", "log wait", "page read", "page write", "other"];

#[track_caller]
fn assert_analyzed(lines: &[String], root: &str, rows: u64, commits: bool) {
    let (first, counted, parts) = parts(lines);
    assert_eq!((first, counted), (root, rows), "{lines:#?}");
    assert_eq!(parts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), PARTS, "{lines:#?}");
    let part = |name: &str| parts.iter().find(|(n, _)| *n == name).unwrap().1;
    assert!(part("Time") > 0.0 && part("cpu") > 0.0);
    assert_eq!(lines.iter().any(|line| line.starts_with("    log wait: ") && line.contains(" in ")), commits, "{lines:#?}");
}

/// What statements have made for the binary log: of those whose digest text begins so, in order of their first run.
async fn binlog_bytes(c: &mut Client, begins: &str) -> Vec<u64> {
    let digests = "SELECT highkey_binlog_bytes FROM performance_schema.events_statements_summary_by_digest";
    let rows = c.rows(&format!("{digests} WHERE digest_text LIKE '{begins}%' ORDER BY first_seen")).await;
    rows.iter().map(|row| row[0].parse().unwrap()).collect()
}

#[tokio::test]
async fn the_binary_log_has_its_price() {
    let server = Server::with(|settings| settings.set("log_bin", Some("ON")).unwrap());
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000))").await;
    assert!(binlog_bytes(&mut c, "CREATE TABLE").await[0] > 80);
    let lines = analyze(&mut c, "INSERT INTO t VALUES (1, REPEAT('x', 1000))").await;
    let told: u64 = lines.iter().find_map(|line| line.strip_prefix("Binary log: ")?.strip_suffix(" bytes")?.parse().ok()).expect("the bytes are told");
    assert!((1100..1400).contains(&told), "{told}");
    // Whoever makes the events pays for them, and the end of the transaction for itself.
    c.ok("BEGIN").await;
    c.ok("UPDATE t SET v = REPEAT('y', 1000)").await;
    c.ok("COMMIT").await;
    let (update, commit) = (binlog_bytes(&mut c, "UPDATE").await[0], binlog_bytes(&mut c, "COMMIT").await[0]);
    assert!((2000..2400).contains(&update) && (1..200).contains(&commit), "{update} {commit}");
    c.ok("SET sql_log_bin = 0").await;
    c.ok("DELETE FROM t").await;
    c.rows("SELECT * FROM t").await;
    assert_eq!((binlog_bytes(&mut c, "DELETE").await, binlog_bytes(&mut c, "SELECT * FROM").await), (vec![0], vec![0]));
}

#[tokio::test]
async fn explain_analyze_runs_what_it_explains() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    assert_analyzed(&analyze(&mut c, "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await, "-> Insert into t", 3, true);
    assert_analyzed(&analyze(&mut c, "UPDATE t SET v = v + 10 WHERE id >= 2").await, "-> UPDATE t", 2, true);
    assert_analyzed(&analyze(&mut c, "REPLACE INTO t VALUES (3, 33)").await, "-> Replace into t", 2, true);
    assert_analyzed(&analyze(&mut c, "DELETE FROM t WHERE id = 1").await, "-> DELETE t", 1, true);
    assert_eq!(c.rows("SELECT * FROM t").await, table("2 12|3 33"));
    c.ok("CREATE TABLE s (id INT PRIMARY KEY, v INT)").await;
    let copied = analyze(&mut c, "INSERT INTO s SELECT * FROM t").await;
    assert_analyzed(&copied, "-> Insert into s", 2, true);
    assert!(copied[1].contains("-> "), "the query is explained, too: {copied:#?}");
    assert_eq!(c.rows("SELECT * FROM s").await, table("2 12|3 33"));
    let joined = analyze(&mut c, "UPDATE t, s SET t.v = s.v + 1 WHERE t.id = s.id").await;
    assert_eq!((parts(&joined).1, parts(&joined).2.len()), (2, PARTS.len()));
    assert!(joined[0].starts_with("-> UPDATE t  (") && joined[1].starts_with("    -> "), "{joined:#?}");
    assert_eq!(c.rows("SELECT * FROM t").await, table("2 13|3 34"));
    let mut sink = Collector { file: b"7\t70\n8\t80\n".to_vec(), ..Collector::default() };
    c.session.execute(b"EXPLAIN ANALYZE LOAD DATA LOCAL INFILE 'f' INTO TABLE s", &mut sink).await.unwrap();
    let Answer::Rows { rows, .. } = &sink.answers[0] else { panic!("{:?}", sink.answers) };
    let Value::Text(text) = &rows[0][0] else { panic!("{rows:?}") };
    assert!(text.starts_with("-> Load into s  (actual time=") && text.contains(" rows=2 loops=1)\n"), "{text}");
    assert_eq!(c.value("SELECT SUM(v) FROM s WHERE id > 6").await, "150");
}

#[tokio::test]
async fn explain_analyze_of_queries() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await;
    for executor in ["FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = {executor}")).await;
        let lines = analyze(&mut c, "SELECT id FROM t WHERE v >= 2").await;
        let (_, rows, parts) = parts(&lines);
        assert_eq!(rows, 2, "{lines:#?}");
        assert_eq!(parts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), PARTS, "{lines:#?}");
        assert!(parts[0].1 > 0.0 && parts[1].1 > 0.0);
    }
    for executor in ["FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = {executor}")).await;
        // Word for word again: the session keeps the plan.
        for _ in 0..4 {
            c.rows("SELECT /*+ NO_SUCH_HINT() */ id FROM t").await;
            assert_eq!(c.rows("SHOW WARNINGS").await.len(), 1, "{executor}");
        }
        for explain in ["EXPLAIN", "EXPLAIN FORMAT=TREE", "EXPLAIN ANALYZE"] {
            c.rows(&format!("{explain} SELECT /*+ NO_SUCH_HINT() */ id FROM t")).await;
            // Beside the query as it was understood.
            assert_eq!(c.rows("SHOW WARNINGS").await.iter().filter(|warning| warning[1] != "1003").count(), 1, "{explain} {executor}");
        }
    }
    let paused = analyze(&mut c, "SELECT SLEEP(0.01)").await;
    assert!(paused.iter().any(|line| line.starts_with("    pause: ") && line.ends_with("in 1 wait")), "{paused:#?}");
    assert_eq!(c.error("EXPLAIN ANALYZE FORMAT=TRADITIONAL SELECT 1").await.0, 1235);
    assert_eq!(c.error("EXPLAIN ANALYZE SELECT id FROM missing").await.0, 1146);
}

/// The lines of the tree, without estimates and times: `text | rows=1 loops=1`.
fn tree(lines: &[String]) -> Vec<String> {
    let plan = lines.iter().take_while(|line| !line.starts_with("Time: "));
    let masked = plan.map(|line| {
        let (text, counted) = match (line.strip_suffix("(never executed)"), line.split_once("(actual time=")) {
            (Some(text), _) => (text, "never"),
            (None, Some((text, figures))) => (text, figures.split_once(' ').map_or("", |(_, counted)| counted.trim_end_matches(')'))),
            (None, None) => (line.as_str(), ""),
        };
        format!("{} | {counted}", text.split("  (cost=").next().unwrap_or_default().trim_end())
    });
    masked.collect()
}

/// `t` has 3 rows; `u` has 2, 1 and none for them, and 1 more.
async fn two_tables(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await;
    c.ok("CREATE TABLE u (id INT PRIMARY KEY, t INT NOT NULL, w INT, KEY kt (t))").await;
    c.ok("INSERT INTO u VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 9, 40)").await;
    c
}

#[tokio::test]
async fn every_operator_of_the_fast_path_is_measured() {
    let server = Server::new();
    let mut c = two_tables(&server).await;
    c.ok("SET highkey_executor = FAST").await;
    let lines = analyze(&mut c, "SELECT id FROM t WHERE v >= 2 ORDER BY v DESC LIMIT 1").await;
    let expected = [
        "-> Fast path | rows=1 loops=1",
        "    -> Project: t.id | rows=1 loops=1",
        "        -> Limit: 1 row(s) | rows=1 loops=1",
        "            -> Sort: t.v DESC | rows=2 loops=1",
        "                -> Project: t.id, t.v | rows=2 loops=1",
        "                    -> Filter: (t.v >= 2) | rows=2 loops=1",
        "                        -> Table scan on t | rows=3 loops=1",
    ];
    assert_eq!(tree(&lines), expected);
    assert!(lines[6].contains("  (cost=0.30 rows=3) (actual time="), "{lines:#?}");
    let joined = analyze(&mut c, "SELECT t.id, u.w FROM t STRAIGHT_JOIN u ON u.t = t.id WHERE u.w > 10").await;
    let expected = [
        "-> Fast path | rows=2 loops=1",
        "    -> Nested loop inner join | rows=2 loops=1",
        "        -> Table scan on t | rows=3 loops=1",
        "        -> Filter: (u.w > 10) | rows=1 loops=3",
        "            -> Index lookup on u using kt (t=t.id) | rows=1 loops=3",
    ];
    assert_eq!(tree(&joined), expected);
    // Rows without a match go on, too.
    let outer = tree(&analyze(&mut c, "SELECT COUNT(*), MAX(u.w) FROM t LEFT JOIN u ON u.t = t.id WHERE t.id > 0").await);
    for line in ["Aggregate: count(*), max(u.w) | rows=1 loops=1", "Nested loop left join | rows=4 loops=1", "Index lookup on u using kt (t=t.id) | rows=1 loops=3"] {
        assert!(outer.iter().any(|shown| shown.trim_start().strip_prefix("-> ") == Some(line)), "{line}: {outer:#?}");
    }
    let none = tree(&analyze(&mut c, "SELECT u.w FROM t STRAIGHT_JOIN u ON u.t = t.id WHERE t.v > 9").await);
    assert!(none.iter().any(|line| line.trim_start() == "-> Index lookup on u using kt (t=t.id) | never"), "{none:#?}");
}

#[tokio::test]
async fn every_operator_on_datafusion_is_measured() {
    let server = Server::new();
    let mut c = two_tables(&server).await;
    c.ok("SET highkey_executor = DATAFUSION").await;
    let lines = tree(&analyze(&mut c, "SELECT id FROM t WHERE v >= 2 ORDER BY v DESC LIMIT 1").await);
    let expected = [
        "-> Serial execute (cost below parallel_cost_threshold) | rows=1 loops=1",
        "    -> Sort: t.v DESC, limit input to 1 row(s) per chunk | rows=1 loops=1",
        "        -> Filter: (t.v >= 2) | rows=2 loops=1",
        "            -> Table scan on t | rows=3 loops=1",
    ];
    assert_eq!(lines, expected);
    // Once for each row, and once for all.
    let correlated = "SELECT id FROM t WHERE v < (SELECT AVG(w) FROM u WHERE u.w <> t.id * 10)";
    for (sql, loops) in [(correlated, 3), ("SELECT id FROM t WHERE v <= (SELECT COUNT(w) FROM u WHERE w > 0)", 1)] {
        let lines = tree(&analyze(&mut c, sql).await);
        assert_eq!(lines[0].split_once(" | ").unwrap().1, "rows=3 loops=1", "{lines:#?}");
        let subquery = lines.iter().position(|line| line.starts_with("-> Subquery: Serial execute")).expect("it is shown");
        assert!(lines[subquery].ends_with(&format!(" | rows=1 loops={loops}")), "{lines:#?}");
        assert!(lines[subquery + 1..].iter().any(|line| line.ends_with(&format!("Table scan on u | rows=4 loops={loops}"))), "{lines:#?}");
    }
    let recursive = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT COUNT(*) FROM r";
    let lines = tree(&analyze(&mut c, recursive).await);
    for line in ["-> Recursion: first round | rows=1 loops=1", "-> Recursion: further rounds | rows=1 loops=4", "            -> Table scan on <temporary> | rows=4 loops=1"] {
        assert!(lines.iter().any(|shown| shown == line), "{line}: {lines:#?}");
    }
    // What is made once, and is shown once.
    let lines = tree(&analyze(&mut c, "WITH c AS (SELECT t, MAX(w) m FROM u GROUP BY t) SELECT COUNT(*) FROM c p JOIN c q ON p.m = q.m").await);
    for line in ["-> Materialize CTE c if needed | rows=3 loops=1", "-> Table scan on u | rows=4 loops=1", "-> Table scan on q | rows=3 loops=1"] {
        assert!(lines.iter().any(|shown| shown.trim_start() == line), "{line}: {lines:#?}");
    }
    assert!(lines.iter().all(|line| !line.ends_with(" | ") || line.contains("printed elsewhere") || line.contains("-> Hash")), "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_workers_are_summed_up() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE many (id INT PRIMARY KEY, k INT NOT NULL, v INT)").await;
    let rows: Vec<String> = (0..5000).map(|id| format!("({id}, {}, {id})", id % 7)).collect();
    c.ok(&format!("INSERT INTO many VALUES {}", rows.join(", "))).await;
    c.ok("SET highkey_executor = DATAFUSION, parallel_cost_threshold = 0, force_parallel_execute = ON, parallel_default_dop = 2").await;
    let lines = analyze(&mut c, "SELECT k, COUNT(*) FROM many GROUP BY k").await;
    let shown = tree(&lines);
    assert_eq!(shown[0], "-> Parallel execute (2 workers) | rows=7 loops=1");
    // The groups of all, above those of each worker.
    assert!(shown[1].starts_with("    -> Aggregate") && shown[1].ends_with(" | rows=7 loops=1"), "{shown:#?}");
    assert_eq!(shown.last().unwrap().trim_start(), "-> PQblock scan on many | rows=5000 loops=1");
    let helped = lines.iter().find_map(|line| line.strip_prefix("        on other threads: ")?.strip_suffix(" ms")?.parse::<f64>().ok());
    assert!(helped.is_some_and(|ms| ms > 0.0), "{lines:#?}");
    // In order, each piece of the scan is some worker's.
    let shown = tree(&analyze(&mut c, "SELECT id, v FROM many WHERE k = 3").await);
    let expected = ["-> Parallel execute (2 workers)", "    -> Gather rows in order", "        -> Filter: (many.k = 3)"].map(|line| format!("{line} | rows=714 loops=1"));
    assert_eq!(shown[..3], expected);
    assert_eq!(shown[3..], ["            -> PQblock scan on many | rows=5000 loops=1"]);
}

#[tokio::test]
async fn what_finds_the_rows_of_a_change_is_measured() {
    let server = Server::new();
    let mut c = two_tables(&server).await;
    c.ok("CREATE TABLE s (id INT PRIMARY KEY, v INT)").await;
    let expected = [
        "-> UPDATE t | rows=1 loops=1",
        "    -> Filter: ((t.id >= 2) and (t.v > 2)) | rows=1 loops=1",
        "        -> Index range scan on t using PRIMARY | rows=2 loops=1",
    ];
    assert_eq!(tree(&analyze(&mut c, "UPDATE t SET v = 9 WHERE id >= 2 AND v > 2").await), expected);
    let expected = ["-> DELETE u | rows=2 loops=1", "    -> Sort: u.w DESC, limit input to 2 row(s) per chunk | rows=2 loops=1", "        -> Filter: (u.w > 10) | rows=3 loops=1", "            -> Table scan on u | rows=4 loops=1"];
    assert_eq!(tree(&analyze(&mut c, "DELETE FROM u WHERE w > 10 ORDER BY w DESC LIMIT 2").await), expected);
    let copied = tree(&analyze(&mut c, "INSERT INTO s SELECT * FROM t").await);
    assert_eq!(copied, ["-> Insert into s | rows=3 loops=1", "    -> Copy of the rows of t | rows=3 loops=1"]);
    for executor in ["FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = {executor}")).await;
        let computed = tree(&analyze(&mut c, "REPLACE INTO s SELECT id + 100, v FROM t WHERE v < 9").await);
        assert!(computed[0].starts_with("-> Replace into s | rows="), "{computed:#?}");
        assert!(computed[1..].iter().all(|line| line.starts_with("    ")) && computed.last().unwrap().ends_with("Table scan on t | rows=3 loops=1"), "{computed:#?}");
        let resolved = tree(&analyze(&mut c, "UPDATE t SET v = 2 WHERE id = 2 AND 3 > (SELECT COUNT(w) FROM u WHERE w >= 0)").await);
        assert!(resolved.iter().any(|line| line.starts_with("-> Subquery: ")), "{resolved:#?}");
    }
    // Rows that are locked before DataFusion sees them.
    let locked = tree(&analyze(&mut c, "UPDATE t SET v = 5 WHERE id = 1").await);
    assert_eq!(locked.last().unwrap(), "-> Locking read of t | rows=1 loops=1");
}

#[tokio::test]
async fn explain_analyze_in_a_transaction_and_of_what_fails() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    c.ok("BEGIN").await;
    assert_analyzed(&analyze(&mut c, "INSERT INTO t VALUES (1, 1)").await, "-> Insert into t", 1, false);
    assert_eq!(c.error("EXPLAIN ANALYZE INSERT INTO t VALUES (2, 2), (1, 1)").await.0, 1062);
    assert_eq!(c.rows("SELECT * FROM t").await, table("1 1"));
    c.ok("ROLLBACK").await;
    assert_eq!(c.error("EXPLAIN ANALYZE INSERT INTO t VALUES (2, 2), (2, 2)").await.0, 1062);
    assert_eq!(c.rows("SELECT * FROM t").await, table(""));
}

const DIGESTS: &str = "performance_schema.events_statements_summary_by_digest";

/// These columns of the digests of the schema `d`, by their text.
async fn digests(c: &mut Client, columns: &str, text: &str) -> Vec<Vec<String>> {
    c.rows(&format!("SELECT {columns} FROM {DIGESTS} WHERE schema_name = 'd' AND digest_text LIKE '{text}' ORDER BY digest_text")).await
}

#[tokio::test]
async fn statements_that_differ_in_their_values_are_one() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await;
    c.ok("INSERT INTO t VALUES (4, 4), (5, 5)").await;
    for id in 1..=4 {
        c.rows(&format!("SELECT v FROM t WHERE id = {id}")).await;
    }
    // Once more word for word: kept by the session from now on.
    for _ in 0..3 {
        c.rows("SELECT v FROM t WHERE id = 9").await;
    }
    let id = c.session.prepare(b"select v from t where id = ?").await.unwrap().id;
    for value in 1..=2 {
        c.session.execute_prepared(id, &[Value::Int(value)], false, &mut Collector::default()).await.unwrap();
    }
    let counts = "count_star, sum_rows_affected, sum_rows_sent, sum_rows_examined, sum_errors";
    assert_eq!(digests(&mut c, counts, "INSERT INTO%").await, table("2 5 0 0 0"));
    assert_eq!(digests(&mut c, counts, "SELECT `v` FROM%").await, table("9 0 6 6 0"));
    let text = digests(&mut c, "digest_text, digest = STATEMENT_DIGEST('SELECT v FROM t WHERE id = 1'), query_sample_text LIKE 'SELECT v FROM t WHERE id = _'", "SELECT `v`%").await;
    assert_eq!(text, [["SELECT `v` FROM `t` WHERE `id` = ?", "1", "1"]]);
    let times = "min_timer_wait > 0, min_timer_wait <= avg_timer_wait, avg_timer_wait <= max_timer_wait, sum_timer_wait >= highkey_cpu_time + highkey_log_wait, \
        highkey_cpu_time > 0, quantile_95 <= quantile_999, first_seen <= last_seen";
    assert_eq!(digests(&mut c, times, "%`t`%").await, vec![vec!["1"; 7]; 3]);
    let log = "highkey_log_wait > 0, sum_lock_time, highkey_row_lock_wait, highkey_latch_wait";
    assert_eq!(digests(&mut c, log, "INSERT INTO%").await, table("1 0 0 0"));
    assert_eq!(digests(&mut c, "highkey_log_wait", "SELECT `v`%").await, table("0"));
}

#[tokio::test]
async fn what_fails_is_counted_and_truncate_forgets() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("INSERT INTO t VALUES (1)").await;
    assert_eq!(c.error("INSERT INTO t VALUES (1)").await.0, 1062);
    assert_eq!(c.error("SELEC 1, 2").await.0, 1064);
    c.ok("INSERT IGNORE INTO t VALUES (1)").await;
    let counts = "count_star, sum_errors, sum_warnings, sum_rows_affected";
    assert_eq!(digests(&mut c, counts, "INSERT INTO%").await, table("2 1 0 1"));
    assert_eq!(digests(&mut c, counts, "INSERT IGNORE%").await, table("1 0 1 0"));
    assert_eq!(digests(&mut c, &format!("digest_text, {counts}"), "SELEC %").await, [["SELEC ?, ...", "1", "1", "0", "0"]]);
    let id = c.session.prepare(b"SELECT id FROM t").await.unwrap().id;
    for round in 1..=2 {
        c.session.execute_prepared(id, &[], false, &mut Collector::default()).await.unwrap();
        c.session.execute_prepared(id, &[], false, &mut Collector::default()).await.unwrap();
        c.ok(&format!("TRUNCATE TABLE {DIGESTS}")).await;
        assert_eq!(digests(&mut c, "count_star", "SELECT `id`%").await, table(""), "{round}");
        assert_eq!(digests(&mut c, "count_star", "TRUNCATE%").await, table("1"), "{round}");
    }
    c.session.execute_prepared(id, &[], false, &mut Collector::default()).await.unwrap();
    assert_eq!(digests(&mut c, "count_star, sum_rows_sent", "SELECT `id`%").await, table("1 1"));
    c.ok("CREATE USER u IDENTIFIED BY 'secret'").await;
    c.ok("PREPARE s FROM 'ALTER USER u IDENTIFIED BY ''secret'''").await;
    for digest in ["CREATE%USER%", "PREPARE%"] {
        assert_eq!(digests(&mut c, "count_star, query_sample_text", digest).await, table("1 NULL"));
    }
}

#[tokio::test]
async fn what_is_no_statement_has_its_own_text_and_figures_only() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("INSERT INTO t VALUES (1), (2), (3)").await;
    assert_eq!(c.rows("SELECT id FROM t").await.len(), 3);
    let Answer::Error(e) = c.run(" SELEC 7 ; SELECT 'of another'").await else { panic!("no statement") };
    assert_eq!(e.code, 1064);
    let figures = "count_star, sum_rows_examined, query_sample_text";
    assert_eq!(digests(&mut c, figures, "SELEC %").await, [["1", "0", "SELEC 7 "]]);
    assert_eq!(digests(&mut c, "sum_rows_examined", "SELECT `id`%").await, table("3"));
}

#[tokio::test]
async fn digests_are_of_the_text_as_the_session_reads_it() {
    let server = Server::new();
    let mut c = server.connect();
    let statement = r#"'SELECT "a"'"#;
    let id = c.session.prepare(format!("SELECT STATEMENT_DIGEST_TEXT({statement})").as_bytes()).await.unwrap().id;
    for (mode, text) in [("", "SELECT ?"), ("ANSI_QUOTES", "SELECT `a`"), ("", "SELECT ?")] {
        c.ok(&format!("SET sql_mode = '{mode}'")).await;
        for executor in ["FAST", "DATAFUSION"] {
            c.ok(&format!("SET highkey_executor = {executor}")).await;
            assert_eq!(c.value(&format!("SELECT STATEMENT_DIGEST_TEXT({statement})")).await, text, "{mode} {executor}");
            let mut sink = Collector::default();
            c.session.execute_prepared(id, &[], false, &mut sink).await.unwrap();
            let Answer::Rows { rows, .. } = &sink.answers[0] else { panic!("{:?}", sink.answers) };
            assert_eq!(rows[0][0], Value::text(text), "{mode} {executor}");
        }
    }
    assert_eq!(c.value("SELECT @@performance_schema").await, "1");
}

#[tokio::test]
async fn a_full_table_of_digests_and_none() {
    let server = Server::with(|settings| settings.set("performance_schema_digests_size", Some("3")).unwrap());
    let mut c = server.connect();
    for column in ["a", "b", "c", "d"] {
        c.rows(&format!("SELECT 1 AS {column}")).await;
    }
    let rows = c.rows(&format!("SELECT schema_name, digest, digest_text, count_star FROM {DIGESTS} ORDER BY digest_text")).await;
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0], ["NULL", "NULL", "NULL", "2"]);
    assert_eq!((&rows[1][2][..], &rows[2][2][..]), ("SELECT ? AS `a`", "SELECT ? AS `b`"));
    assert_eq!(c.rows("SHOW STATUS LIKE 'Performance_schema_digest_lost'").await, table("Performance_schema_digest_lost 3"));
    let off = Server::with(|settings| settings.set("performance_schema_digests_size", Some("0")).unwrap());
    let mut c = off.connect();
    c.rows("SELECT 1").await;
    assert_eq!(c.value(&format!("SELECT COUNT(*) FROM {DIGESTS}")).await, "0");
}

#[tokio::test]
async fn a_row_lock_that_was_waited_for() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    a.ok("INSERT INTO t VALUES (1, 0)").await;
    a.ok("BEGIN").await;
    a.ok("UPDATE t SET v = 1 WHERE id = 1").await;
    let engine = server.instance.database().engine().clone();
    let release = async {
        while engine.stats().row_lock_current_waits == 0 {
            tokio::task::yield_now().await;
        }
        a.ok("COMMIT").await;
    };
    let (waited, ()) = tokio::join!(analyze(&mut b, "UPDATE t SET v = v + 1 WHERE id = 1"), release);
    assert!(waited.iter().any(|line| line.starts_with("    row-lock wait: ") && line.ends_with(" in 1 wait")), "{waited:#?}");
    assert_eq!(b.value("SELECT v FROM t").await, "2");
    let waits = "count_star, highkey_row_lock_wait > 0, sum_lock_time = highkey_row_lock_wait, sum_timer_wait > highkey_row_lock_wait";
    assert_eq!(digests(&mut b, waits, "EXPLAIN ANALYZE UPDATE%").await, table("1 1 1 1"));
    assert_eq!(digests(&mut b, "highkey_row_lock_wait", "UPDATE%").await, table("0"), "who held the lock waited for nothing");
    let status = b.rows("SHOW ENGINE INNODB STATUS").await.remove(0).remove(2);
    assert!(status.contains("\nrow-lock wait: 0.") && status.contains("\nlog wait: 0."), "{status}");
    let counters = b.rows("SHOW GLOBAL STATUS LIKE 'Highkey%wait_count'").await;
    assert!(counters.contains(&vec!["Highkey_row_lock_wait_count".to_owned(), "1".to_owned()]), "{counters:?}");
}

#[tokio::test]
async fn ddl_that_waits_for_a_transaction() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("BEGIN").await;
    a.rows("SELECT * FROM t").await;
    let release = async {
        loop {
            let waiting = a.value("SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock%'").await;
            if waiting == "1" {
                break;
            }
        }
        a.ok("COMMIT").await;
    };
    tokio::join!(b.ok("ALTER TABLE t ADD COLUMN v INT"), release);
    assert_eq!(digests(&mut b, "sum_lock_time > 0, highkey_row_lock_wait", "ALTER TABLE%").await, table("1 0"));
}

#[tokio::test]
async fn latches_are_named_by_their_index() {
    use highkey_table::{IndexId, LatchMode, LatchPlace, LatchWaits, LatchedPage, WaitSum};
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY by_v (v))").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM information_schema.highkey_latch_waits").await, "0");
    let by_v = server.instance.database().catalog().find_table("d", "t").unwrap().def().indexes[1].id;
    let waits = |index| LatchWaits {
        place: LatchPlace { index, page: LatchedPage::Leaf, mode: LatchMode::Exclusive },
        sum: WaitSum { count: 2, nanos: 5000 },
    };
    let both = [waits(by_v), waits(IndexId(0))];
    let rows = crate::information_schema::latch_rows(&c.session.state, &both);
    let text = |text: &str| Value::text(text);
    let end = || [text("leaf"), text("exclusive"), Value::UInt(2), Value::UInt(5_000_000)];
    assert_eq!(rows[0][..4], [text("d"), text("t"), text("by_v"), Value::UInt(by_v.0.into())]);
    assert_eq!(rows[1][..4], [Value::Null, Value::Null, Value::Null, Value::UInt(0)]);
    assert!(rows.iter().all(|row| row[4..] == end()));
    let names = crate::show::index_names(&c.session.state);
    let names = both.map(|latch| crate::execute::latch_name(&names, &latch));
    assert_eq!(names, ["d.t by_v, leaf exclusive", "the engine's own pages, leaf exclusive"]);
}

#[tokio::test]
async fn digests_tell_of_the_syncs_that_commits_wait_for() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    for id in 0..20 {
        c.ok(&format!("INSERT INTO t VALUES ({id})")).await;
    }
    c.rows("SELECT * FROM t").await;
    let columns = "highkey_log_syncs, highkey_group_commits, highkey_sync_time";
    let figures = |rows: Vec<Vec<String>>| -> Vec<u64> { rows[0].iter().map(|figure| figure.parse().unwrap()).collect() };
    let inserts = figures(digests(&mut c, columns, "INSERT%").await);
    assert!((1..=20).contains(&inserts[0]) && inserts[1] >= inserts[0] && inserts[2] > 0, "{inserts:?}");
    assert_eq!(figures(digests(&mut c, columns, "SELECT * FROM `t`%").await), [0, 0, 0]);
}

#[tokio::test]
async fn the_statements_that_ended_last_are_told() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    c.ok("TRUNCATE TABLE performance_schema.events_statements_history").await;
    c.ok("INSERT INTO t VALUES (1, 1)").await;
    for _ in 0..2 {
        c.rows("SELECT v FROM t WHERE id = 1").await;
    }
    c.error("SELEC 1").await;
    c.ok("CREATE USER u IDENTIFIED BY 'secret'").await;
    c.ok(&format!("INSERT INTO t VALUES (2, 2) /* {} */", "x".repeat(5000))).await;
    let told = "event_name, LEFT(sql_text, 40), mysql_errno, rows_affected, rows_sent, rows_examined, timer_wait > 0";
    let history = "FROM performance_schema.events_statements_history WHERE thread_id = PS_CURRENT_THREAD_ID()";
    let rows = c.rows(&format!("SELECT {told} {history} ORDER BY event_id")).await;
    let expected = [
        ["statement/sql/truncate", "TRUNCATE TABLE performance_schema.events", "0", "0", "0", "0", "1"],
        ["statement/sql/insert", "INSERT INTO t VALUES (1, 1)", "0", "1", "0", "0", "1"],
        ["statement/sql/select", "SELECT v FROM t WHERE id = 1", "0", "0", "1", "1", "1"],
        ["statement/sql/select", "SELECT v FROM t WHERE id = 1", "0", "0", "1", "1", "1"],
        ["statement/sql/error", "SELEC 1", "1064", "0", "0", "0", "1"],
        ["statement/sql/create_user", "CREATE USER ... IDENTIFIED BY <secret>", "0", "0", "0", "0", "1"],
        ["statement/sql/insert", "INSERT INTO t VALUES (2, 2) /* xxxxxxxxx", "0", "1", "0", "0", "1"],
    ];
    assert_eq!(rows, expected);
    // Its digest is the one of the sums, whether it is kept or found out.
    let joined = "performance_schema.events_statements_summary_by_digest d ON d.digest = h.digest AND d.digest_text = h.digest_text AND d.schema_name = h.current_schema";
    let found = format!("SELECT COUNT(*) FROM performance_schema.events_statements_history h JOIN {joined} WHERE h.sql_text LIKE 'INSERT%' OR h.sql_text LIKE 'SELECT v%' OR h.sql_text LIKE 'CREATE%'");
    assert_eq!(c.value(&found).await, "5");
    assert_eq!(c.value(&format!("SELECT MAX(LENGTH(sql_text)) {history}")).await, "1024");

    let id = c.session.prepare(b"SELECT v FROM t WHERE id = ?").await.unwrap().id;
    let mut sink = Collector::default();
    c.session.execute_prepared(id, &[Value::Int(2)], false, &mut sink).await.unwrap();
    let last = c.rows(&format!("SELECT event_name, sql_text, rows_sent {history} ORDER BY event_id DESC LIMIT 1")).await;
    assert_eq!(last, [["statement/com/Execute", "SELECT v FROM t WHERE id = ?", "1"]]);
    // Passwords in what is no statement, or only becomes one.
    c.error("CREATE USERS v IDENTIFIED BY 'hunter2'").await;
    c.ok("PREPARE p FROM 'SELECT ''hunter2'' AS password'").await;
    assert_eq!(c.value(&format!("SELECT COUNT(*) {history} AND CONCAT(sql_text, IFNULL(message_text, '')) LIKE '%hunter2%'")).await, "0");
    assert_eq!(c.rows(&format!("SELECT event_name {history} AND sql_text LIKE 'PREPARE%'")).await, [["statement/sql/prepare_sql"]]);
    for n in 0..20 {
        c.rows(&format!("SELECT {n}")).await;
    }
    assert_eq!(c.value(&format!("SELECT COUNT(*) {history}")).await, "10");
    // Each connection has its own, and takes them along.
    let mut other = server.connect();
    other.rows("SELECT 77").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM performance_schema.events_statements_history").await, "11");
    drop(other);
    assert_eq!(c.value("SELECT COUNT(*) FROM performance_schema.events_statements_history").await, "10");

    let off = Server::with(|settings| settings.set("performance_schema_events_statements_history_size", Some("0")).unwrap());
    let mut c = off.client().await;
    c.rows("SELECT 1").await;
    assert!(c.rows("SELECT * FROM performance_schema.events_statements_history").await.is_empty());
    assert!(!c.rows("SELECT * FROM performance_schema.events_statements_summary_by_digest").await.is_empty());
}

#[tokio::test]
async fn statements_are_summed_up_by_what_they_are() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    let mut other = server.connect();
    other.ok("INSERT INTO d.t VALUES (1, 1), (2, 2)").await;
    other.error("INSERT INTO d.t VALUES (1, 1)").await;
    c.ok("INSERT INTO t VALUES (3, 3)").await;
    let sums = |whose: &str, more: &str| {
        let columns = "count_star, sum_errors, sum_rows_affected, sum_timer_wait >= max_timer_wait";
        format!("SELECT {columns} FROM performance_schema.events_statements_summary_{whose}_by_event_name WHERE event_name = 'statement/sql/insert'{more}")
    };
    let whose = [("global", ""), ("by_user", " AND user = 'root'"), ("by_host", " AND host = 'localhost'"), ("by_account", " AND user = 'root' AND host = 'localhost'")];
    for (whose, more) in whose {
        assert_eq!(c.rows(&sums(whose, more)).await, table("3 1 3 1"), "{whose}");
    }
    assert_eq!(c.rows(&sums("by_thread", " AND thread_id = PS_CURRENT_THREAD_ID()")).await, table("1 0 1 1"));
    assert_eq!(c.rows(&sums("by_thread", "")).await.len(), 2);
    drop(other);
    assert_eq!(c.rows(&sums("by_thread", "")).await.len(), 1);
    for (whose, more) in whose {
        assert_eq!(c.rows(&sums(whose, more)).await, table("3 1 3 1"), "{whose}, of one that is gone too");
    }
    assert_eq!(c.rows("SELECT statements > 10 FROM sys.user_summary WHERE user = 'root'").await, table("1"));
    let id = c.session.prepare(b"SELECT v FROM t").await.unwrap().id;
    c.session.execute_prepared(id, &[], false, &mut Collector::default()).await.unwrap();
    let executed = "SELECT count_star, sum_rows_sent, sum_rows_examined, sum_select_scan FROM performance_schema.events_statements_summary_global_by_event_name WHERE event_name = 'statement/com/Execute'";
    assert_eq!(c.rows(executed).await, table("1 3 3 1"));
    // Who becomes another user leaves them to the first one.
    c.ok("CREATE USER w@localhost").await;
    let mut third = server.connect();
    third.ok("DO 1").await;
    let mut client = third.session.state.client.clone();
    client.user = "w".into();
    third.session.change_user(client).await.unwrap();
    let done = "SELECT user, count_star FROM performance_schema.events_statements_summary_by_user_by_event_name WHERE event_name = 'statement/sql/do'";
    assert_eq!(c.rows(done).await, table("root 1"));
    c.ok("TRUNCATE TABLE performance_schema.events_statements_summary_global_by_event_name").await;
    for (whose, more) in whose {
        assert!(c.rows(&sums(whose, more)).await.is_empty(), "{whose}");
    }
}
