//! Scans that look at some columns of some rows only: blocks of kept columns are passed over, and columns of rows that are not kept are decoded for the
//! rows that the filter leaves. The answers are those of the fast path, which goes row by row.

use super::{Client, Server};

/// Rows of `z`: some blocks of a scan's batches.
const ROWS: usize = 40_000;

/// All columns but those of text grow or fall with the key, so that most blocks have none of the values that are asked for; `k` is NULL in the middle.
async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE one (i INT PRIMARY KEY)").await;
    let rows: Vec<String> = (0..4000).map(|i| format!("({i})")).collect();
    c.ok(&format!("INSERT INTO one VALUES {}", rows.join(", "))).await;
    c.ok("CREATE TABLE z (id INT PRIMARY KEY, d DATE, dt DATETIME, n DECIMAL(10, 2), u BIGINT UNSIGNED, k INT, g INT NOT NULL, s VARCHAR(40), at TIMESTAMP NULL)").await;
    let columns = "i, '2000-01-01' + INTERVAL i DIV 20 DAY, '2000-01-01 00:00:00' + INTERVAL i HOUR, -i * 0.25, 18446744073709511615 + i, IF(i BETWEEN 10000 AND 29999, NULL, i % 1000), i DIV 1000, CONCAT('the text of row ', i), '2024-10-26 00:00:00' + INTERVAL i SECOND";
    c.ok(&format!("INSERT INTO z SELECT {columns} FROM (SELECT a.i + b.i * 4000 AS i FROM one a JOIN one b ON b.i < {}) AS x", ROWS / 4000)).await;
    c.ok("CREATE TABLE few (k BIGINT)").await;
    c.ok("INSERT INTO few VALUES (3), (5), (NULL), (70)").await;
    c
}

async fn usage(c: &mut Client, name: &str) -> u64 {
    c.rows(&format!("SHOW STATUS LIKE 'Highkey_column_cache_{name}'")).await[0][1].parse().unwrap()
}

/// Conditions that all rows of some blocks are known not to satisfy.
const PASSED_OVER: &[&str] = &[
    "d = '2003-05-05'",
    "d < DATE '2000-03-01'",
    "d BETWEEN '2001-01-01' AND '2001-02-01'",
    "d IN ('2000-01-02', '2004-12-31', '1999-01-01')",
    "d > '2009-01-01'",
    "dt >= '2004-06-01'",
    "dt = '2002-02-02 02:00:00'",
    "'2000-01-05' > dt",
    "n < -9000",
    "n <= -9999.75",
    "n > -100.5",
    "n = -2500.25",
    "n = -2500.255",
    "n > 0",
    "n IN (-1.25, -2, 77)",
    "n BETWEEN -50 AND -49.5",
    "u >= 18446744073709551000",
    "u = 18446744073709511615",
    "u < 9223372036854775808",
    "g = 7",
    "g <> 7 AND g IN (6, 7, 8)",
    "k IS NOT NULL",
    "k IS NULL",
    "k = 5",
    "k > 999",
    "k IN (1, 2000000)",
    "k IS NULL AND d > '2004-01-01'",
    "n < -9000 OR u < 18446744073709511700",
    "s LIKE '%9' AND g < 2",
];

/// Others.
const LOOKED_AT: &[&str] = &[
    "NOT d < '2005-01-01'",
    "k <> 5",
    "k IS NULL OR n > -30",
    "s = 'the text of row 31415'",
    "s LIKE '%99' AND n < -9000",
    "at > '2024-10-26 10:00:00'",
    "at IS NULL",
    "n * 2 < -19000 AND k = 3",
    "g + 1 = 7 AND s > 'the text of row 69'",
    "(id < 500 OR id BETWEEN 9000 AND 31000 OR id > 39900) AND n < -7000",
    "id BETWEEN 5 AND 30000 AND g = 12 AND k IS NULL",
];

const SELECTS: &[(&str, &str)] = &[
    ("SELECT COUNT(*), SUM(id), MIN(n), MAX(u), MIN(dt), COUNT(k), MAX(s) FROM z WHERE", ""),
    ("SELECT * FROM z WHERE", "ORDER BY id LIMIT 50"),
    ("SELECT id, s, n FROM z WHERE", "ORDER BY id DESC LIMIT 7"),
    ("SELECT g, COUNT(*), MIN(s), MAX(d), MAX(at) FROM z WHERE", "GROUP BY g ORDER BY g"),
];

const JOINS: &[&str] = &[
    "SELECT COUNT(*), SUM(z.id), MAX(z.s) FROM few JOIN z ON z.g = few.k",
    "SELECT COUNT(*), SUM(z.id), MAX(z.s) FROM few JOIN z ON z.g = few.k AND z.n < -800",
    "SELECT few.k, COUNT(z.id), MAX(z.s) FROM few LEFT JOIN z ON z.g = few.k GROUP BY few.k ORDER BY few.k",
    "SELECT COUNT(*), SUM(z.id) FROM few JOIN z ON z.k = few.k",
];

/// Both executors' answers.
async fn check_sql(c: &mut Client, what: &str, sql: &str) {
    c.ok("SET highkey_executor = 'FAST'").await;
    let rows = c.rows(sql).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    assert_eq!(c.rows(sql).await, rows, "{what}: {sql}");
}

/// Each condition under one of the selects, which `shift` chooses.
async fn check(c: &mut Client, what: &str, shift: usize) {
    for (at, condition) in PASSED_OVER.iter().chain(LOOKED_AT).enumerate() {
        let (select, end) = SELECTS[(at + shift) % SELECTS.len()];
        check_sql(c, what, &format!("{select} {condition} {end}")).await;
    }
    for sql in JOINS {
        check_sql(c, what, sql).await;
    }
}

const ALL_COLUMNS: &str = "SELECT COUNT(id), MAX(d), MAX(dt), MAX(n), MAX(u), MAX(k), MAX(g), MAX(s), MAX(at) FROM z";

/// Until a scan finds its blocks: how many it does not find, one if the last is too small to be kept.
async fn keep(c: &mut Client, scan: &str) -> u64 {
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    loop {
        let before = (usage(c, "misses").await, usage(c, "hits").await);
        c.rows(scan).await;
        let (missed, found) = (usage(c, "misses").await - before.0, usage(c, "hits").await - before.1);
        if missed <= 1 && found >= 3 {
            return missed;
        }
        // Rows are everybody's once the purge thread has come by.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_without_a_row_that_is_wanted_are_passed_over() {
    let server = Server::new();
    let mut c = filled(&server).await;
    keep(&mut c, ALL_COLUMNS).await;
    for condition in PASSED_OVER {
        let skips = usage(&mut c, "skips").await;
        c.rows(&format!("{} {condition}", SELECTS[0].0)).await;
        assert!(usage(&mut c, "skips").await > skips, "{condition}");
    }
    let skips = usage(&mut c, "skips").await;
    c.rows(JOINS[0]).await;
    assert!(usage(&mut c, "skips").await > skips, "the join has keys of the first blocks only");
    // Keys 3 and 5.
    assert_eq!(c.rows(JOINS[0]).await, [["2000", "8999000", "the text of row 5999"]]);
    for shift in 0..SELECTS.len() {
        check(&mut c, "all kept", shift).await;
    }
    // The same rows, more or fewer of them, and others: old snapshots see what they saw.
    let mut old = server.client().await;
    old.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
    c.ok("DELETE FROM z WHERE id BETWEEN 12000 AND 12100 OR id % 9000 = 77").await;
    c.ok("UPDATE z SET n = 500, k = 5, d = '2010-01-01' WHERE id IN (20000, 39000)").await;
    check(&mut c, "changed", 0).await;
    check(&mut old, "before the change", 1).await;
    old.ok("COMMIT").await;
    keep(&mut c, ALL_COLUMNS).await;
    assert_eq!(c.rows("SELECT id FROM z WHERE n > 0 ORDER BY id").await, [["20000"], ["39000"]]);
    assert_eq!(c.rows("SELECT id FROM z WHERE d > '2009-01-01' ORDER BY id DESC LIMIT 1").await, [["39000"]]);
    assert_eq!(c.value("SELECT COUNT(*) FROM z WHERE k = 5 AND id BETWEEN 10000 AND 29999").await, "1");
}

/// A column that no scan has kept yet is not read where the others show that no row is wanted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_are_not_added_to_blocks_without_a_row_that_is_wanted() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let missed = keep(&mut c, "SELECT COUNT(id), MAX(n), MAX(k) FROM z").await;
    let misses = usage(&mut c, "misses").await;
    for sql in ["n > 0", "n IS NULL", "k > id"] {
        assert_eq!(c.value(&format!("SELECT MAX(s) FROM z WHERE {sql}")).await, "NULL", "{sql}");
    }
    assert_eq!(usage(&mut c, "misses").await, misses + 3 * missed);
    assert_eq!(c.value("SELECT MAX(s) FROM z WHERE k = id").await, "the text of row 999");
    assert_eq!(usage(&mut c, "misses").await, misses + 4 * missed + 1, "one block has all rows whose k is their id");
}

/// Conditions that may raise something are asked behind those that cannot, wherever they are written: of rows that these leave, and of no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_that_raise_something_are_asked_of_rows_that_are_left() {
    let server = Server::new();
    let mut c = filled(&server).await;
    keep(&mut c, ALL_COLUMNS).await;
    for (rest, left) in [("n > 100", false), ("n > -100.5", true)] {
        for sql in [format!("s + 0 = 1 AND {rest}"), format!("{rest} AND s + 0 = 1")] {
            assert_eq!(c.value(&format!("SELECT COUNT(*) FROM z WHERE {sql}")).await, "0");
            assert_eq!(!c.rows("SHOW WARNINGS").await.is_empty(), left, "{sql}");
        }
        for sql in [format!("u + 100000 > 5 AND {rest}"), format!("{rest} AND u + 100000 > 5")] {
            let sql = format!("SELECT COUNT(*) FROM z WHERE {sql}");
            if left {
                assert_eq!(c.error(&sql).await.0, 1690, "{sql}");
            } else {
                assert_eq!(c.value(&sql).await, "0", "{sql}");
            }
        }
    }
}

/// Nothing is kept, or a part of it: columns are decoded for the rows that are left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_of_rows_that_are_not_kept_are_decoded_late() {
    for bytes in ["0", "1000000"] {
        let server = Server::with(|settings| settings.set("highkey_column_cache_size", Some(bytes)).unwrap());
        let mut c = filled(&server).await;
        for executor in ["FAST", "DATAFUSION"] {
            c.ok(&format!("SET highkey_executor = '{executor}'")).await;
            // Backwards, and columns that neither the condition nor the answer has.
            let rows = c.rows("SELECT s, at FROM z WHERE k = 999 AND g <> 39 ORDER BY id DESC LIMIT 2").await;
            assert_eq!(rows, [["the text of row 38999", "2024-10-26 10:49:59"], ["the text of row 37999", "2024-10-26 10:33:19"]], "{executor}");
        }
        check(&mut c, bytes, 1).await;
        c.ok("SET force_parallel_execute = ON, parallel_cost_threshold = 0, parallel_default_dop = 3").await;
        check(&mut c, bytes, 2).await;
        c.ok("SET time_zone = '+03:00'").await;
        check_sql(&mut c, bytes, "SELECT id, s, at FROM z WHERE at < '2024-10-26 03:00:30' AND g = 0 ORDER BY id").await;
        // By a secondary index, in ranges, and back.
        c.ok("ALTER TABLE z ADD INDEX (g, k)").await;
        for sql in [
            "SELECT id, s FROM z FORCE INDEX (g) WHERE g IN (3, 4, 39) AND n < -900 ORDER BY id",
            "SELECT id, s FROM z FORCE INDEX (g) WHERE (g = 2 OR g BETWEEN 20 AND 22) AND s LIKE '%7' ORDER BY g DESC, k DESC, id DESC LIMIT 20",
        ] {
            check_sql(&mut c, bytes, sql).await;
        }
        c.ok("BEGIN").await;
        c.ok("DELETE FROM z WHERE id BETWEEN 12000 AND 12100").await;
        c.ok("UPDATE z SET n = 500 WHERE id = 20000").await;
        check(&mut c, "its own changes", 3).await;
        c.ok("ROLLBACK").await;
    }
}

/// Of rows too long to wait for the filter all columns are decoded, and those behind them wait again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_rows_do_not_wait() {
    let server = Server::with(|settings| settings.set("highkey_column_cache_size", Some("0")).unwrap());
    let mut c = server.client().await;
    c.ok("CREATE TABLE long_rows (id INT PRIMARY KEY, k INT, b LONGTEXT, s VARCHAR(20))").await;
    for chunk in 0..4 {
        let rows: Vec<String> = (chunk * 60..chunk * 60 + 60).map(|id| format!("({id}, {}, REPEAT('x', {}), 's{id}')", id % 7, 60_000 + id)).collect();
        c.ok(&format!("INSERT INTO long_rows VALUES {}", rows.join(", "))).await;
    }
    let rows: Vec<String> = (240..12_000).map(|id| format!("({id}, {}, 'short', 's{id}')", id % 7)).collect();
    c.ok(&format!("INSERT INTO long_rows VALUES {}", rows.join(", "))).await;
    for sql in [
        "SELECT COUNT(*), SUM(id), MAX(s) FROM long_rows WHERE k = 3",
        "SELECT id, s, LENGTH(b) FROM long_rows WHERE k = 3 AND s LIKE '%1' ORDER BY id",
        "SELECT SUM(LENGTH(b)), COUNT(*) FROM long_rows WHERE k IN (2, 6)",
    ] {
        check_sql(&mut c, "long rows", sql).await;
    }
}

/// A column of each type that has spans, and some that have none but NULLs; `v` is computed.
async fn filled_with_types(server: &Server) -> Client {
    let mut c = filled(server).await;
    c.ok("SET sql_mode = ''").await;
    c.ok("CREATE TABLE y (id INT PRIMARY KEY, yr YEAR, t TIME(2), e ENUM('low', 'middle', 'high'), b BIT(10), st SET('a', 'b', 'c'), zd DATE NOT NULL, big BIGINT, wide DECIMAL(38, 0), f DOUBLE, tiny TINYINT UNSIGNED, v INT AS (id DIV 100) VIRTUAL)").await;
    let columns = "id, 1990 + id DIV 1000, SEC_TO_TIME(id - 20000), 1 + id DIV 15000, id DIV 50, 1 << (id DIV 15000), IF(id < 9000, '0000-00-00', '2000-01-01' + INTERVAL id DIV 50 DAY), (id - 20000) * 461168601842738, id * 2500000000000000000000000000000000, IF(id < 20000, NULL, id / 3), IF(id % 7 = 0, NULL, id DIV 200)";
    c.ok(&format!("INSERT INTO y (id, yr, t, e, b, st, zd, big, wide, f, tiny) SELECT {columns} FROM z")).await;
    c
}

const ALL_TYPES: &str = "SELECT COUNT(id), MAX(yr), MAX(t), COUNT(e), MAX(b + 0), COUNT(st), MAX(zd), MAX(big), MAX(wide), MAX(f), MAX(tiny), MAX(v) FROM y";

/// What is asked of them: constants of other signs and scales, and NULLs.
const OF_TYPES: &[&str] = &[
    "yr = 1995",
    "yr < 1991",
    "yr IN (2001, 1989)",
    "NOT yr > 2000",
    "yr > -1",
    "yr <=> NULL",
    "t < '-01:00:00'",
    "t = TIME '00:00:10'",
    "t BETWEEN TIME '-00:00:05.5' AND TIME '00:00:05'",
    "t > TIME '23:00:00'",
    "e = 'high'",
    "e = 2",
    "e IN ('low', 'nothing')",
    "e > 'low'",
    "NOT e",
    "b = 3",
    "b > b'1011110000'",
    "b < 0",
    "b >= -1",
    "b <> -1",
    "b IN (-3, 799, 1024)",
    "st = 'c'",
    "st = 4",
    "FIND_IN_SET('b', st) > 0",
    "zd = '0000-00-00'",
    "zd < '2000-06-01'",
    "zd = '2000-12-31'",
    "zd = '2000-12-31 00:00:01'",
    "zd <= '2000-12-31 23:59:59'",
    "zd > '2000-12-31 00:00:00' AND zd < '2001-01-01 00:00:00'",
    "zd >= DATE '2001-01-01' AND zd < TIMESTAMP '2001-01-02 00:00:00.5'",
    "zd NOT BETWEEN '2000-01-01' AND '2001-06-01 12:00:00'",
    "big < -9223372036854000000",
    "big = 9223372036854775808",
    "big > 9223372036854775807",
    "big >= -9223372036854775809",
    "NOT big <= 0",
    "big > 0.5 AND big < 461168601842738.5",
    "big BETWEEN NULL AND 5",
    "NOT big BETWEEN 5 AND NULL",
    "wide > 99000000000000000000000000000000000000",
    "wide = 2500000000000000000000000000000000",
    "wide < 0.5",
    "wide < -1",
    "wide IN (0, 5000000000000000000000000000000000)",
    "f > 13000",
    "f IS NULL AND id > 19990",
    "f IS NOT NULL",
    "tiny < 0",
    "tiny > -5",
    "tiny = 256 OR tiny = -1",
    "tiny IN (-1, 300)",
    "tiny <> 300",
    "tiny = 1.5 OR tiny = 1.0",
    "tiny IS NULL OR tiny > 150",
    "tiny <=> NULL AND yr = 2020",
    "NOT tiny <=> 5",
    "NOT tiny > 500",
    "(tiny > 500) IS NULL",
    "(tiny > 500) IS NOT TRUE",
    "tiny NOT IN (1, NULL)",
    "tiny NOT IN (1, 300)",
    "tiny IN (NULL, 300)",
    "tiny = NULL",
    "NULL OR tiny = 3",
    "v = 5",
    "v < 0",
    "v BETWEEN 398 AND 500 AND tiny IS NULL",
];

const SELECTS_OF_TYPES: &[(&str, &str)] = &[
    ("SELECT COUNT(*), SUM(id), MIN(t), MAX(wide), MIN(zd), MAX(v), COUNT(tiny), MAX(f) FROM y WHERE", ""),
    ("SELECT id, yr, t, e, b + 0, st, zd, big, wide, f, tiny, v FROM y WHERE", "ORDER BY id LIMIT 30"),
    ("SELECT DISTINCT yr, e, st FROM y WHERE", "ORDER BY yr, e, st"),
    ("SELECT e, SUM(b + 0), MAX(v) FROM y WHERE", "GROUP BY e ORDER BY e"),
];

/// All types, whether blocks are kept or rows wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_on_all_types_leave_the_same_rows() {
    for bytes in ["0", "100000000"] {
        let server = Server::with(|settings| settings.set("highkey_column_cache_size", Some(bytes)).unwrap());
        let mut c = filled_with_types(&server).await;
        if bytes != "0" {
            keep(&mut c, ALL_TYPES).await;
        }
        for (at, condition) in OF_TYPES.iter().enumerate() {
            for shift in 0..2 {
                let (select, end) = SELECTS_OF_TYPES[(at + shift * 2) % SELECTS_OF_TYPES.len()];
                check_sql(&mut c, bytes, &format!("{select} {condition} {end}")).await;
            }
        }
        // Answers that are known.
        c.ok("SET highkey_executor = 'DATAFUSION'").await;
        for (condition, rows) in [
            ("b < 0", "0"),
            ("b >= -1", "40000"),
            ("NOT tiny > 500", "34285"),
            ("tiny NOT IN (1, NULL)", "0"),
            ("big > 9223372036854775807", "0"),
            ("big >= -9223372036854775809", "40000"),
            ("zd = '0000-00-00'", "9000"),
            ("zd = '2000-12-31 00:00:01'", "0"),
            ("zd = '2000-12-31'", "50"),
            ("zd < '2000-12-31 00:00:01' AND zd >= '2000-12-31'", "50"),
        ] {
            assert_eq!(c.value(&format!("SELECT COUNT(*) FROM y WHERE {condition}")).await, rows, "{bytes}: {condition}");
        }
        // What is locked is read whole.
        c.ok("SET highkey_executor = 'FAST'").await;
        let rows = c.rows("SELECT id, v, zd FROM y WHERE tiny = 5 AND yr = 1991 ORDER BY id LIMIT 3 FOR UPDATE").await;
        assert_eq!(rows, [["1000", "10", "0000-00-00"], ["1002", "10", "0000-00-00"], ["1003", "10", "0000-00-00"]]);
    }
}

/// Partitions have spans of their own, and blocks that a range has whole are passed over too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_of_partitions_are_passed_over() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("ALTER TABLE z PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10000), PARTITION p1 VALUES LESS THAN (30000), PARTITION p2 VALUES LESS THAN MAXVALUE)").await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    // Each partition may have a last block that is too small.
    loop {
        let before = (usage(&mut c, "misses").await, usage(&mut c, "hits").await);
        c.rows(ALL_COLUMNS).await;
        if usage(&mut c, "misses").await - before.0 <= 3 && usage(&mut c, "hits").await - before.1 >= 3 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    for (condition, rows) in [("n > 0", "0"), ("g = 7", "1000"), ("k IS NULL", "20000"), ("id BETWEEN 0 AND 29999 AND g = 12", "1000")] {
        let skips = usage(&mut c, "skips").await;
        assert_eq!(c.value(&format!("SELECT COUNT(*) FROM z WHERE {condition}")).await, rows, "{condition}");
        assert!(usage(&mut c, "skips").await > skips, "{condition}");
    }
    for shift in 0..SELECTS.len() {
        check(&mut c, "partitions", shift).await;
    }
    c.ok("BEGIN").await;
    c.ok("UPDATE z SET id = id + 40000, n = 7 WHERE id IN (15, 9999)").await;
    c.ok("DELETE FROM z WHERE id BETWEEN 10000 AND 10010").await;
    check(&mut c, "its own changes", 0).await;
    c.ok("ROLLBACK").await;
    check(&mut c, "no changes", 1).await;
}
