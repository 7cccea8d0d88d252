//! Columns that scans keep: whatever is written, every snapshot sees the rows that a scan of rows sees.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Answer, Client, Server, text};

const QUERIES: [&str; 3] = [
    "SELECT COUNT(*), SUM(id), SUM(k), COUNT(s), MAX(at) FROM t",
    "SELECT s, COUNT(*), SUM(k) FROM t GROUP BY s ORDER BY s, 2",
    "SELECT SUM(k), MIN(at) FROM t WHERE id BETWEEN 700 AND 2900",
];

/// Both executors' answers, which must be the same.
async fn check(c: &mut Client, what: &str) {
    for sql in QUERIES {
        c.ok("SET highkey_executor = 'FAST'").await;
        let rows = c.rows(sql).await;
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        // Once from rows or from what is kept, then from what the first has kept.
        for time in ["first", "second"] {
            assert_eq!(c.rows(sql).await, rows, "{what}, {time}: {sql}");
        }
    }
}

async fn usage(c: &mut Client, name: &str) -> u64 {
    c.rows(&format!("SHOW STATUS LIKE 'Highkey_column_cache_{name}'")).await[0][1].parse().unwrap()
}

async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(300), at TIMESTAMP NULL)").await;
    let rows: Vec<String> = (0..4000)
        .map(|id| {
            let s = if id % 11 == 0 { "NULL".to_owned() } else { format!("'{}'", "x".repeat(id % 5 * 60)) };
            format!("({id}, {id}, {s}, '2024-06-01 00:00:00' + INTERVAL {id} MINUTE)")
        })
        .collect();
    c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    c
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_scan_takes_what_the_first_has_kept() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    // Rows are everybody's once the purge thread has come by.
    while usage(&mut c, "bytes").await == 0 {
        c.rows(QUERIES[0]).await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let hits = usage(&mut c, "hits").await;
    c.rows(QUERIES[0]).await;
    assert!(usage(&mut c, "hits").await > hits);
    // TIMESTAMPs are kept in UTC.
    let noon = c.value("SELECT MAX(at) FROM t WHERE id >= 0").await;
    c.ok("SET time_zone = '+03:00'").await;
    assert_ne!(c.value("SELECT MAX(at) FROM t WHERE id >= 0").await, noon);
    check(&mut c, "another time zone").await;
    // Another definition is another table.
    c.ok("ALTER TABLE t ADD COLUMN early INT DEFAULT 5 FIRST").await;
    assert_eq!(c.value("SELECT SUM(early) FROM t").await, "20000");
    check(&mut c, "a column more").await;
    c.ok("TRUNCATE TABLE t").await;
    check(&mut c, "no rows").await;
}

/// As partitions, which all have more rows than a block must have.
const PARTITIONS: [(&str, u64); 4] = [
    ("RANGE (id) (PARTITION p0 VALUES LESS THAN (900), PARTITION p1 VALUES LESS THAN (2500), PARTITION p2 VALUES LESS THAN MAXVALUE)", 3),
    ("HASH (id) PARTITIONS 4", 4),
    ("LIST (MOD(id, 4)) (PARTITION p0 VALUES IN (1), PARTITION p1 VALUES IN (0, 3), PARTITION p2 VALUES IN (2))", 3),
    ("KEY () PARTITIONS 5", 5),
];

/// Asks until so many blocks are found kept.
async fn keep(c: &mut Client, sql: &str, blocks: u64) {
    loop {
        let hits = usage(c, "hits").await;
        c.rows(sql).await;
        if usage(c, "hits").await - hits >= blocks {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_takes_blocks_whose_rows_it_has() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    keep(&mut c, "SELECT SUM(k) FROM t", 1).await;
    let all = "SELECT MAX(at), SUM(k) FROM t WHERE id BETWEEN -5 AND 3999";
    let most = "SELECT MAX(at), SUM(k) FROM t WHERE id BETWEEN 0 AND 3998";
    for (sql, counted) in [
        // Columns are added.
        (all, (0, 1)),
        (all, (1, 0)),
        (most, (0, 1)),
        ("SELECT MIN(at), MAX(k), MIN(id) FROM t", (1, 0)),
        ("SELECT SUM(k) FROM t WHERE id > 0", (0, 1)),
        ("SELECT SUM(k) FROM t WHERE id >= 0 AND k > 17", (1, 0)),
    ] {
        c.ok("SET highkey_executor = 'FAST'").await;
        let rows = c.rows(sql).await;
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        let (hits, misses) = (usage(&mut c, "hits").await, usage(&mut c, "misses").await);
        assert_eq!(c.rows(sql).await, rows, "{sql}");
        assert_eq!((usage(&mut c, "hits").await - hits, usage(&mut c, "misses").await - misses), counted, "{sql}");
    }
    // A row that comes between the end of the block and that of the range.
    c.ok("INSERT INTO t VALUES (4000, 1000000, 'new', NULL), (-7, 1, 'new', NULL)").await;
    check(&mut c, "rows at the ends").await;
    c.ok("SET highkey_executor = 'FAST'").await;
    let wider = "SELECT COUNT(*), SUM(k) FROM t WHERE id BETWEEN -9 AND 5000";
    let rows = c.rows(wider).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    assert_eq!(c.rows(wider).await, rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_partition_keeps_its_columns() {
    for (by, partitions) in PARTITIONS {
        let server = Server::new();
        let mut c = filled(&server).await;
        c.ok(&format!("ALTER TABLE t PARTITION BY {by}")).await;
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        keep(&mut c, QUERIES[0], partitions).await;
        for (sql, blocks) in [
            ("SELECT COUNT(*), SUM(k), MAX(s) FROM t", partitions),
            ("SELECT k, COUNT(*) FROM t PARTITION (p1) WHERE k % 3 = 1 GROUP BY k ORDER BY k", 1),
            ("SELECT SUM(id) FROM t PARTITION (p2, p0)", 2),
            ("SELECT SUM(k), MIN(id) FROM t WHERE id BETWEEN 0 AND 4999", partitions),
            // A partition has its own order.
            ("SELECT id, s FROM t PARTITION (p2)", 1),
            // Rows of several are put in order.
            ("SELECT id, k FROM t", 0),
            ("SELECT k FROM t PARTITION (p0, p1) LIMIT 30", 0),
        ] {
            c.ok("SET highkey_executor = 'FAST'").await;
            let rows = c.rows(sql).await;
            c.ok("SET highkey_executor = 'DATAFUSION'").await;
            let (hits, misses) = (usage(&mut c, "hits").await, usage(&mut c, "misses").await);
            assert_eq!(c.rows(sql).await, rows, "{by}: {sql}");
            assert_eq!((usage(&mut c, "hits").await - hits, usage(&mut c, "misses").await - misses), (blocks, 0), "{by}: {sql}");
        }
        check(&mut c, by).await;
        // What was kept of the other partitions stays.
        let mut other = server.client().await;
        other.ok("UPDATE t PARTITION (p1) SET k = k + 5").await;
        let hits = usage(&mut c, "hits").await;
        c.rows("SELECT SUM(k) FROM t").await;
        assert_eq!(usage(&mut c, "hits").await - hits, partitions - 1, "{by}");
        check(&mut c, by).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_that_come_and_go_bring_no_columns() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut old = server.client().await;
    old.ok("SET highkey_executor = 'DATAFUSION'").await;
    c.ok(&format!("ALTER TABLE t PARTITION BY {}", PARTITIONS[0].0)).await;
    c.ok("CREATE TABLE x LIKE t").await;
    c.ok("ALTER TABLE x REMOVE PARTITIONING").await;
    c.ok("INSERT INTO x SELECT id, k + 1000000, 'x', at FROM t WHERE id BETWEEN 900 AND 2000").await;
    let of_x = "SELECT COUNT(*), SUM(k), MAX(s) FROM x";
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    keep(&mut c, QUERIES[0], 3).await;
    keep(&mut c, of_x, 1).await;
    // With how many partitions have rows then.
    for (ddl, partitions) in [
        ("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x", 3),
        ("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x", 3),
        ("ALTER TABLE t TRUNCATE PARTITION p0", 2),
        ("ALTER TABLE t REORGANIZE PARTITION p1, p2 INTO (PARTITION q1 VALUES LESS THAN (3000), PARTITION q2 VALUES LESS THAN MAXVALUE)", 2),
        ("ALTER TABLE t ADD COLUMN early INT DEFAULT 5 FIRST", 2),
        ("ALTER TABLE t DROP PARTITION q1", 1),
        ("ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 3", 3),
        ("ALTER TABLE t REMOVE PARTITIONING", 1),
        ("ALTER TABLE t PARTITION BY KEY () PARTITIONS 2", 2),
    ] {
        old.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
        c.ok(ddl).await;
        assert_eq!(old.error(QUERIES[0]).await.0, 1412, "{ddl}");
        old.ok("ROLLBACK").await;
        check(&mut c, ddl).await;
        c.ok("SET highkey_executor = 'FAST'").await;
        let rows = c.rows(of_x).await;
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        assert_eq!(c.rows(of_x).await, rows, "{ddl}");
        keep(&mut c, QUERIES[0], partitions).await;
        keep(&mut c, of_x, 1).await;
    }
    c.ok("DROP TABLE t, x").await;
    c.ok("CREATE TABLE e (id INT PRIMARY KEY)").await;
    assert_eq!(c.value("SELECT COUNT(*) + SUM(id) IS NULL FROM e").await, "1");
    assert_eq!(usage(&mut c, "bytes").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_plan_does_not_keep_columns_of_a_dropped_table() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    let id = c.session.prepare(QUERIES[0].as_bytes()).await.unwrap().id;
    while usage(&mut c, "bytes").await == 0 {
        c.rows_of(id, &[]).await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    c.rows_of(id, &[]).await;
    c.ok("DROP TABLE t").await;
    c.ok("CREATE TABLE e (id INT PRIMARY KEY)").await;
    assert_eq!(c.value("SELECT COUNT(*) + SUM(id) IS NULL FROM e").await, "1");
    assert_eq!(usage(&mut c, "bytes").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_is_what_is_there() {
    // Without partitions, with them, and with several workers.
    for (seed, by) in (0..).zip([None; 6].into_iter().chain(PARTITIONS.map(|(by, _)| Some(by)))) {
        let server = Server::new();
        let mut writer = filled(&server).await;
        if let Some(by) = by {
            writer.ok(&format!("ALTER TABLE t PARTITION BY {by}")).await;
        }
        if by.is_some() && seed % 2 == 0 {
            writer.ok("SET parallel_cost_threshold = 0, parallel_default_dop = 3").await;
        }
        let mut old = server.client().await;
        let mut random = StdRng::seed_from_u64(seed);
        check(&mut writer, "at first").await;
        for step in 0..25 {
            if random.random_bool(0.3) {
                old.ok("COMMIT").await;
                old.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
            }
            let open = random.random_bool(0.5);
            if open {
                writer.ok("BEGIN").await;
            }
            let (from, len) = (random.random_range(0..4200), random.random_range(1..60));
            let to = from + len;
            let sql = match random.random_range(0..4) {
                0 => format!("UPDATE t SET k = k + 1 WHERE id BETWEEN {from} AND {to}"),
                1 => format!("DELETE FROM t WHERE id BETWEEN {from} AND {to}"),
                2 => format!("UPDATE t SET s = REPEAT('y', {}) WHERE id BETWEEN {from} AND {to}", random.random_range(0..300)),
                _ => {
                    let rows: Vec<String> = (from..to).map(|id| format!("({id}, 7, 'new', NULL)")).collect();
                    format!("INSERT IGNORE INTO t VALUES {}", rows.join(", "))
                }
            };
            writer.ok(&sql).await;
            let what = format!("seed {seed}, step {step}: {sql}");
            check(&mut writer, &what).await;
            check(&mut old, &what).await;
            if open {
                writer.ok(if random.random_bool(0.5) { "ROLLBACK" } else { "COMMIT" }).await;
                check(&mut old, &what).await;
                check(&mut writer, &what).await;
            }
        }
    }
}

/// Changes move rows and what they have, so that the sums stay; some are undone.
async fn move_things(mut c: Client, seed: u64, until: std::time::Instant) -> u32 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut committed = 0;
    // One row was changed.
    async fn one(c: &mut Client, sql: String) -> bool {
        matches!(c.run(&sql).await, Answer::Ok(done) if done.affected_rows == 1)
    }
    while std::time::Instant::now() < until {
        let (a, b) = (random.random_range(0..MANY), random.random_range(0..MANY));
        c.ok("BEGIN").await;
        let mut done = match random.random_range(0..3) {
            // The other way round, if it was moved before.
            0 => one(&mut c, format!("UPDATE s SET id = id + 1000000 WHERE id = {a}")).await || one(&mut c, format!("UPDATE s SET id = id - 1000000 WHERE id = {a} + 1000000")).await,
            1 => a != b && one(&mut c, format!("UPDATE s SET v = v + 1 WHERE id = {a}")).await && one(&mut c, format!("UPDATE s SET v = v - 1 WHERE id = {b}")).await,
            _ => match c.run(&format!("SELECT g, v FROM s WHERE id = {a} FOR UPDATE")).await {
                Answer::Rows { columns, rows, .. } if rows.len() == 1 => {
                    let row = &text(&columns, &rows)[0];
                    one(&mut c, format!("DELETE FROM s WHERE id = {a}")).await && one(&mut c, format!("INSERT INTO s VALUES ({a}, {}, {})", row[0], row[1])).await
                }
                _ => false,
            },
        };
        if random.random_range(0..4) == 0 {
            let _ = c.run(&format!("DELETE FROM s WHERE id BETWEEN {a} AND {a} + 20")).await;
            done = false;
        }
        c.ok(if done { "COMMIT" } else { "ROLLBACK" }).await;
        committed += u32::from(done);
    }
    committed
}

/// Rows of the table that the sums are about: some blocks of a scan's batches.
const MANY: u32 = 120_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn totals_hold_while_writers_are_at_work() {
    totals_hold("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn totals_hold_while_rows_move_between_partitions() {
    totals_hold("PARTITION BY HASH (id) PARTITIONS 3").await;
}

async fn totals_hold(partitions: &str) {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok(&format!("CREATE TABLE s (id INT PRIMARY KEY, g INT NOT NULL, v INT NOT NULL) {partitions}")).await;
    c.ok(&format!("INSERT INTO s SELECT a.id + b.id * 4000, a.id % 97, a.id % 10 FROM t a JOIN t b ON b.id < {}", MANY / 4000)).await;
    c.ok("SET highkey_executor = 'DATAFUSION', parallel_cost_threshold = 0, parallel_default_dop = 3").await;
    let totals = "SELECT COUNT(*), SUM(v) FROM s";
    let expected = [[MANY.to_string(), (MANY / 10 * 45).to_string()]];
    while usage(&mut c, "bytes").await < 100_000 {
        assert_eq!(c.rows(totals).await, expected);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let hits = usage(&mut c, "hits").await;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(4);
    let mut writers = Vec::new();
    for seed in 1..4 {
        writers.push(tokio::spawn(move_things(server.client().await, seed, until)));
    }
    let mut scans = 0;
    while std::time::Instant::now() < until {
        assert_eq!(c.rows(totals).await, expected, "a snapshot of its own");
        // One snapshot for several scans, each of which finds other blocks kept.
        c.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
        let whole = "SELECT COUNT(*), SUM(v), SUM(id) FROM s";
        let first = c.rows(whole).await;
        assert_eq!(first[0][..2], expected[0], "the snapshot");
        let groups = c.rows("SELECT g, COUNT(*), SUM(v), SUM(id) FROM s GROUP BY g").await;
        let sum = |column: usize| groups.iter().map(|row| row[column].parse::<i64>().unwrap()).sum::<i64>().to_string();
        assert_eq!([sum(1), sum(2), sum(3)], first[0][..], "its groups");
        c.ok("SET force_parallel_execute = OFF").await;
        assert_eq!(c.rows(whole).await, first, "on one thread");
        c.ok("SET force_parallel_execute = ON").await;
        assert_eq!(c.rows(whole).await, first, "once more");
        c.ok("COMMIT").await;
        scans += 5;
    }
    let mut committed = 0;
    for writer in writers {
        committed += writer.await.unwrap();
    }
    assert_eq!(c.rows(totals).await, expected);
    assert!(scans >= 5 && committed > 10, "{scans} scans, {committed} transactions");
    assert!(usage(&mut c, "hits").await > hits, "some columns were kept");
}
