//! INSERT … SELECT with workers: it leaves and tells what it does on one thread.

use super::{Client, Server, table};

/// A session whose copies have three workers, and tables with the rows 2, 4, 6 …: `few` has some dozens of leaves, `many` some hundreds.
async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("SET SESSION cte_max_recursion_depth = 100000, parallel_default_dop = 3, parallel_cost_threshold = 0").await;
    for (name, rows) in [("few", 2_000), ("many", 20_000)] {
        c.ok(&format!("CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, s VARCHAR(400) NOT NULL, n INT, d INT NOT NULL)")).await;
        c.ok(&format!(
            "INSERT INTO {name} WITH RECURSIVE r AS (SELECT 1 id UNION ALL SELECT id + 1 FROM r WHERE id < {rows}) \
             SELECT id * 2, id * 7919 % 20011, REPEAT(CHAR(97 + id % 26), 320), IF(id % 5, id, NULL), id % ({rows} - 100) FROM r"
        ))
        .await;
    }
    c
}

async fn counter(c: &mut Client, name: &str) -> u64 {
    c.rows(&format!("SHOW STATUS LIKE '{name}'")).await[0][1].parse().unwrap()
}

/// What is told of a statement, and what it leaves in `x`, made anew by `create`.
async fn copied(c: &mut Client, create: &[&str], copy: &str) -> Vec<String> {
    c.ok("DROP TABLE IF EXISTS x").await;
    for statement in create {
        c.ok(statement).await;
    }
    let told = c.run(copy).await;
    let (count, first) = (c.value("SHOW COUNT(*) WARNINGS").await, c.rows("SHOW WARNINGS LIMIT 20").await);
    let last = c.value("SELECT LAST_INSERT_ID()").await;
    assert_eq!(c.rows("CHECK TABLE x").await, table("d.x check status OK"), "{copy}");
    let rows = c.rows("SELECT * FROM x").await.into_iter().map(|row| row.join("|"));
    [format!("{told:?}"), format!("{count} {first:?}"), last].into_iter().chain(rows).collect()
}

/// Asserts that it is the same with workers and without.
async fn both(c: &mut Client, create: &[&str], copy: &str) {
    c.ok("SET force_parallel_execute = OFF").await;
    let alone = copied(c, create, copy).await;
    c.ok("SET force_parallel_execute = ON").await;
    let beside = copied(c, create, copy).await;
    let differs = alone.iter().zip(&beside).find(|(a, b)| a != b);
    assert!(alone.len() == beside.len() && differs.is_none(), "{copy}: {} and {} lines, {differs:?}", alone.len(), beside.len());
}

/// Whether the copy itself has workers if it may.
async fn with_workers(c: &mut Client, create: &[&str], copy: &str) -> bool {
    c.ok("SET force_parallel_execute = ON").await;
    c.ok("DROP TABLE IF EXISTS x").await;
    for statement in create {
        c.ok(statement).await;
    }
    let before = counter(c, "PQ_stmt_executed").await;
    c.run(copy).await;
    counter(c, "PQ_stmt_executed").await > before
}

const OWN_COLUMNS: &str =
    "CREATE TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, s VARCHAR(400) NOT NULL, n INT, d INT NOT NULL, KEY (k))";
const MOVED: &str = "CREATE TABLE x (k INT PRIMARY KEY, c INT DEFAULT 7, id INT UNIQUE, s VARCHAR(500), KEY (s(10), k))";
const SOME: &str = "INSERT INTO x SELECT * FROM few WHERE id % 1000 = 0";

/// How `x` is made, and what goes into it but for the table that it comes from.
const COPIES: &[(&[&str], &str)] = &[
    (&["CREATE TABLE x LIKE few"], "INSERT INTO x SELECT * FROM "),
    (&[MOVED], "INSERT INTO x (k, id, s) SELECT k, id, s FROM "),
    (&["CREATE TABLE x (n INT, s VARCHAR(400), KEY (n))"], "INSERT INTO x SELECT n, s FROM "),
    // Generated numbers, into rows that stay as they are and into others.
    (&[OWN_COLUMNS], "INSERT INTO x (k, s, n, d) SELECT k, s, n, d FROM "),
    (&["CREATE TABLE x (s VARCHAR(400), a BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, k INT UNIQUE)"], "INSERT INTO x (k, s) SELECT k, s FROM "),
    // Given ones, and some of both.
    (&[OWN_COLUMNS], "INSERT INTO x SELECT * FROM "),
    (&["CREATE TABLE x (a INT AUTO_INCREMENT PRIMARY KEY, k INT, KEY (k))"], "INSERT INTO x SELECT n, k FROM "),
    // Rows that are there already.
    (&["CREATE TABLE x LIKE few", SOME], "REPLACE INTO x SELECT * FROM "),
    (&["CREATE TABLE x LIKE few", SOME], "INSERT IGNORE INTO x SELECT * FROM "),
    (&["CREATE TABLE x LIKE few", SOME], "INSERT INTO x SELECT * FROM "),
    (&["CREATE TABLE x LIKE few", "INSERT INTO x VALUES (1, 1, 's', 1, 1), (999999, 1, 's', 1, 1)"], "INSERT INTO x SELECT * FROM "),
    // Rows of the source that exclude each other.
    (&["CREATE TABLE x (d INT PRIMARY KEY, id INT)"], "INSERT INTO x SELECT d, id FROM "),
    (&["CREATE TABLE x (d INT PRIMARY KEY, id INT)"], "INSERT IGNORE INTO x SELECT d, id FROM "),
    (&["CREATE TABLE x (d INT PRIMARY KEY, id INT)"], "REPLACE INTO x SELECT d, id FROM "),
    (&["CREATE TABLE x (id INT PRIMARY KEY, d INT UNIQUE)"], "INSERT INTO x SELECT id, d FROM "),
    (&["CREATE TABLE x (id INT PRIMARY KEY, d INT UNIQUE)"], "REPLACE INTO x SELECT id, d FROM "),
    // Conversions, some of which have something to tell.
    (&["CREATE TABLE x (id BIGINT UNSIGNED, k VARCHAR(10), d DECIMAL(10,2), n DOUBLE)"], "INSERT INTO x SELECT id, k, d, n FROM "),
    (&["CREATE TABLE x (id INT PRIMARY KEY, n INT NOT NULL)"], "INSERT IGNORE INTO x SELECT id, n FROM "),
    (&["CREATE TABLE x (id INT PRIMARY KEY, n INT NOT NULL)"], "INSERT INTO x SELECT id, n FROM "),
    (&["CREATE TABLE x (id SMALLINT UNSIGNED, k SMALLINT)"], "INSERT IGNORE INTO x SELECT id, k * 3 FROM "),
    (&["CREATE TABLE x (id INT, k SMALLINT)"], "INSERT IGNORE INTO x SELECT id, d FROM "),
    (&["CREATE TABLE x (id INT, k TINYINT)"], "INSERT INTO x SELECT id, d FROM "),
    (&["CREATE TABLE x (a INT AUTO_INCREMENT PRIMARY KEY, k TINYINT UNSIGNED)"], "REPLACE INTO x (k) SELECT d FROM "),
    (&["CREATE TABLE x (id INT, s VARCHAR(20))"], "INSERT INTO x SELECT id, s FROM "),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_are_the_same_with_workers() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for from in ["few", "many"] {
        for (create, copy) in COPIES.iter().filter(|(_, copy)| !copy.contains("k * 3")) {
            let copy = format!("{copy}{from}");
            both(&mut c, create, &copy).await;
            assert!(with_workers(&mut c, create, &copy).await, "{copy}");
        }
        let fill = format!("INSERT INTO x SELECT * FROM {from}");
        let itself = [OWN_COLUMNS, fill.as_str()];
        both(&mut c, &itself, "INSERT INTO x (k, s, n, d) SELECT k, s, n, d FROM x").await;
        assert!(with_workers(&mut c, &itself, "INSERT INTO x (k, s, n, d) SELECT k, s, n, d FROM x").await);
    }
}

/// The same statements as queries on DataFusion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_queries_are_the_same_with_workers() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    for (create, copy) in COPIES {
        both(&mut c, create, &format!("{copy}many")).await;
    }
    // The query stays on one thread, what becomes of its rows does not.
    let create = ["CREATE TABLE x (id INT PRIMARY KEY, k INT, KEY (k))"];
    let copy = "INSERT INTO x SELECT id, @k := k FROM many";
    both(&mut c, &create, copy).await;
    assert!(with_workers(&mut c, &create, copy).await);
    assert_eq!(c.value("SELECT @k = (SELECT k FROM many ORDER BY id DESC LIMIT 1)").await, "1");
}

/// Nothing but their number keeps them from the fast path, where all of them would be in memory: below REPEATABLE READ no gap is locked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_large_table_are_not_held() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
    let create = ["CREATE TABLE x (id INT PRIMARY KEY, k INT)"];
    let copy = "INSERT INTO x SELECT id, k + 1 FROM many";
    assert!(!with_workers(&mut c, &create, copy).await);
    c.ok("INSERT INTO many VALUES (1, 1, 's', 1, 1)").await;
    both(&mut c, &create, copy).await;
    assert!(with_workers(&mut c, &create, copy).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_are_converted_in_the_zone_of_the_session() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET time_zone = '+05:00'").await;
    c.ok("CREATE TABLE times (id INT PRIMARY KEY, at TIMESTAMP NULL, on_day DATETIME, pad CHAR(200))").await;
    c.ok("INSERT INTO times SELECT id, '2024-01-01 00:00:00' + INTERVAL id MINUTE, '2024-06-01' + INTERVAL id MINUTE, 'x' FROM many").await;
    let create = ["CREATE TABLE x (id INT PRIMARY KEY, a DATETIME, b TIMESTAMP NULL, c TIMESTAMP NULL)"];
    let copy = "INSERT INTO x SELECT id, at, on_day, at FROM times";
    both(&mut c, &create, copy).await;
    assert!(with_workers(&mut c, &create, copy).await);
    let wrong = "SELECT COUNT(*) FROM x JOIN times USING (id) WHERE a <> at OR b <> on_day OR c <> at";
    assert_eq!(c.value(wrong).await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_the_session_has_no_workers() {
    let server = Server::new();
    let mut c = filled(&server).await;
    for (create, copy) in [
        ("CREATE TABLE x (id INT, g INT AS (id + 1))", "INSERT INTO x (id) SELECT id FROM few"),
        ("CREATE TABLE x (id INT, CHECK (id > 0))", "INSERT INTO x (id) SELECT id FROM few"),
        ("CREATE TABLE x (id INT, e INT DEFAULT (id + 1))", "INSERT INTO x (id) SELECT id FROM few"),
        ("CREATE TABLE x (id INT PRIMARY KEY)", "INSERT INTO x SELECT id FROM few ON DUPLICATE KEY UPDATE id = 1"),
        ("CREATE TABLE x (a INT AUTO_INCREMENT PRIMARY KEY, id INT)", "INSERT IGNORE INTO x (id) SELECT id FROM few"),
        ("CREATE TABLE x (id INT)", "INSERT INTO x SELECT /*+ NO_PQ */ id FROM few"),
        ("CREATE TABLE x (id INT)", "INSERT INTO x SELECT /*+ PQ(1) */ id FROM few"),
    ] {
        assert!(!with_workers(&mut c, &[create], copy).await, "{copy}");
        both(&mut c, &[create], copy).await;
    }
    // A row costs a tenth.
    c.ok("SET parallel_cost_threshold = 4000").await;
    assert!(!with_workers(&mut c, &["CREATE TABLE x (id INT)"], "INSERT INTO x SELECT id FROM many").await);
    c.ok("SET parallel_cost_threshold = 1000").await;
    assert!(with_workers(&mut c, &["CREATE TABLE x (id INT)"], "INSERT INTO x SELECT id FROM many").await);
    // None are free.
    c.ok("SET GLOBAL parallel_max_threads = 1").await;
    c.ok("SET parallel_cost_threshold = 0").await;
    let before = counter(&mut c, "PQ_serial_workers").await;
    assert!(!with_workers(&mut c, &["CREATE TABLE x (id INT)"], "INSERT INTO x SELECT id FROM few").await);
    assert_eq!(counter(&mut c, "PQ_serial_workers").await, before + 1);
    assert_eq!(c.value("SELECT COUNT(*) FROM x").await, "2000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_killed_leaves_nothing() {
    let server = Server::new();
    let mut c = filled(&server).await;
    let mut other = server.client().await;
    c.ok("CREATE TABLE x LIKE many").await;
    c.ok("ALTER TABLE x ADD KEY (k)").await;
    // A row that the copy comes to behind most of the others.
    other.ok("BEGIN").await;
    other.ok("INSERT INTO x VALUES (36000, 1, 's', 1, 1)").await;
    let id = c.session.client().connection_id;
    let copying = tokio::spawn(async move {
        let error = c.error("INSERT INTO x SELECT * FROM many").await;
        (error, c)
    });
    while counter(&mut other, "PQ_threads_running").await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    other.ok(&format!("KILL QUERY {id}")).await;
    let (error, mut c) = copying.await.unwrap();
    assert_eq!(error, (1317, "Query execution was interrupted".into()));
    assert_eq!(counter(&mut c, "PQ_threads_running").await, 0);
    other.ok("ROLLBACK").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM x").await, "0");
    assert_eq!(c.rows("CHECK TABLE x").await, table("d.x check status OK"));
    assert_eq!(c.ok("INSERT INTO x SELECT * FROM many").await.affected_rows, 20_000);
    c.ok("DROP TABLE many").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM x FORCE INDEX (k) WHERE k > -1").await, "20000");
}

/// As MySQL 8.0.12: a date that the mode does not admit is refused wherever it comes from, but not before a duplicate among the rows before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dates_are_asked_the_mode() {
    let server = Server::new();
    let mut c = filled(&server).await;
    c.ok("SET sql_mode = 'ALLOW_INVALID_DATES'").await;
    c.ok("CREATE TABLE dated (id INT NOT NULL PRIMARY KEY, day DATE, at DATETIME, stamp TIMESTAMP NULL, s VARCHAR(400))").await;
    c.ok("INSERT INTO dated SELECT id, IF(id = 3002, '2021-02-30', '2021-02-28'), IF(id = 3004, '0000-00-00', '2021-01-01 10:00:00'), \
          IF(id = 3006, '0000-00-00', '2021-01-01 10:00:00'), s FROM few")
        .await;
    c.ok("SET sql_mode = DEFAULT").await;
    let numbered = "CREATE TABLE x (n INT AUTO_INCREMENT PRIMARY KEY, day DATE, at DATETIME, stamp TIMESTAMP NULL)";
    for (create, columns, from) in [
        ("CREATE TABLE x LIKE dated", "", "*"),
        ("CREATE TABLE x (stamp TIMESTAMP NULL, at DATETIME, day DATE)", "(stamp, at, day)", "stamp, at, day"),
        (numbered, "(day, at, stamp)", "day, at, stamp"),
    ] {
        let copy = format!("INTO x {columns} SELECT {from} FROM dated");
        for verb in ["INSERT", "REPLACE", "INSERT IGNORE"] {
            both(&mut c, &[create], &format!("{verb} {copy}")).await;
        }
        c.ok("DELETE FROM x").await;
        let (code, message) = c.error(&format!("INSERT {copy}")).await;
        assert_eq!((code, message.as_str()), (1292, "Incorrect date value: '2021-02-30' for column 'day' at row 1501"), "{create}");
        for mode in ["", "ALLOW_INVALID_DATES"] {
            c.ok("DELETE FROM x").await;
            c.ok(&format!("SET sql_mode = '{mode}'")).await;
            c.ok(&format!("INSERT {copy}")).await;
            assert_eq!(c.value("SHOW COUNT(*) WARNINGS").await, "0", "{mode} {create}");
            assert_eq!(c.value("SELECT COUNT(*) FROM x WHERE day LIKE '%-30'").await, "1", "{mode} {create}");
            c.ok("SET sql_mode = DEFAULT").await;
        }
    }
    let unique = "CREATE TABLE x (id INT PRIMARY KEY, day DATE, at DATETIME, stamp TIMESTAMP NULL, s VARCHAR(400) UNIQUE)";
    both(&mut c, &[unique], "INSERT INTO x SELECT * FROM dated").await;
    assert_eq!(c.error("INSERT INTO x SELECT * FROM dated").await.0, 1062);
}
