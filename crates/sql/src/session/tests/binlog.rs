//! What statements leave in the binary log, and the statements about it.

use std::io::Read;
use std::time::Duration;

use async_trait::async_trait;
use highkey_types::{MySqlError, Value};

use super::{Client, Column, ResultSink, Server, table};

async fn server(more: &[(&str, &str)]) -> (Server, Client) {
    let server = Server::with(|settings| {
        settings.set("log_bin", Some("ON")).unwrap();
        for (name, value) in more {
            settings.set(name, Some(value)).unwrap();
        }
    });
    let client = server.client().await;
    (server, client)
}

/// Types and texts of all events behind the file's first ones, without the GTIDs; row events without their table's number.
async fn events(c: &mut Client) -> Vec<String> {
    let rows = c.rows("SHOW BINLOG EVENTS").await;
    let told = |row: &Vec<String>| match row[2].as_str() {
        "Format_desc" | "Previous_gtids" | "Anonymous_Gtid" | "Gtid" => None,
        "Xid" => Some("commit".to_owned()),
        "Query" => Some(row[5].clone()),
        "Table_map" => row[5].split_once('(').map(|(_, name)| format!("Table_map {}", name.trim_end_matches(')'))),
        kind if kind.ends_with("_rows") => Some(match row[5].split_once("flags: ") {
            Some((_, flags)) => format!("{kind} {flags}"),
            None => kind.to_owned(),
        }),
        kind => Some(format!("{kind} {}", row[5])),
    };
    rows.iter().filter_map(told).collect()
}

/// The events since the last look.
async fn news(c: &mut Client, seen: &mut usize) -> String {
    let all = events(c).await;
    let new = all[*seen..].join("; ");
    *seen = all.len();
    new
}

/// A replica runs no triggers: what they have done comes as rows.
#[tokio::test]
async fn triggers_are_told_as_their_text_and_as_rows() {
    let (_server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    c.ok("CREATE TABLE log (a INT)").await;
    let mut seen = events(&mut c).await.len();
    c.ok("create trigger g after insert on t for each row insert into log values (new.a)").await;
    let told = news(&mut c, &mut seen).await;
    assert!(told.ends_with("CREATE DEFINER=`root`@`localhost` TRIGGER `g` AFTER INSERT ON `t` FOR EACH ROW insert into log values (new.a)"), "{told}");
    c.ok("INSERT INTO t VALUES (1), (2)").await;
    let row = "Table_map d.t; Write_rows STMT_END_F; Table_map d.log; Write_rows STMT_END_F";
    assert_eq!(news(&mut c, &mut seen).await, format!("BEGIN; {row}; {row}; commit"));
    c.ok("drop trigger g").await;
    let told = news(&mut c, &mut seen).await;
    assert!(told.ends_with("drop trigger g"), "{told}");
}

/// What bodies change is told as the statement's; of a step that fails what it did before.
#[tokio::test]
async fn what_triggers_do_is_a_part_of_their_statement() {
    let (_server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("CREATE TABLE log (n INT PRIMARY KEY)").await;
    c.ok("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1062 BEGIN END; INSERT INTO log VALUES (NEW.id), (2); END").await;
    c.ok("SET binlog_rows_query_log_events = ON").await;
    let mut seen = events(&mut c).await.len();
    c.ok("INSERT INTO t VALUES (1), (3)").await;
    let row = "Table_map d.t; Write_rows STMT_END_F; Table_map d.log; Write_rows STMT_END_F";
    assert_eq!(news(&mut c, &mut seen).await, format!("BEGIN; Rows_query # INSERT INTO t VALUES (1), (3); {row}; {row}; commit"));
    assert_eq!(c.rows("SELECT n FROM log").await, table("1|2|3"));
    c.ok("DROP TRIGGER IF EXISTS h").await;
    assert_eq!(news(&mut c, &mut seen).await, "use `d`; DROP TRIGGER IF EXISTS h");
    c.ok("DROP TRIGGER g").await;
    c.ok("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET sql_log_bin = 0").await;
    assert_eq!(c.error("INSERT INTO t VALUES (4)").await.0, 1695);
}

/// What functions change is told as their statement's rows, also where that is a SELECT; that of a statement which fails is not.
#[tokio::test]
async fn what_functions_change_is_told_as_rows() {
    let (_server, mut c) = server(&[("log_bin_trust_function_creators", "ON")]).await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    c.ok("CREATE TABLE log (a INT PRIMARY KEY)").await;
    c.ok("CREATE FUNCTION f(x INT) RETURNS INT BEGIN INSERT INTO log VALUES (x); RETURN x; END").await;
    let mut seen = events(&mut c).await.len();
    let row = "Table_map d.log; Write_rows STMT_END_F";
    c.rows("SELECT f(1)").await;
    assert_eq!(news(&mut c, &mut seen).await, format!("BEGIN; {row}; commit"));
    c.ok("SET @x = f(2)").await;
    assert_eq!(news(&mut c, &mut seen).await, format!("BEGIN; {row}; commit"));
    c.ok("INSERT INTO t VALUES (f(3))").await;
    assert_eq!(news(&mut c, &mut seen).await, format!("BEGIN; {row}; Table_map d.t; Write_rows STMT_END_F; commit"));
    c.ok("START TRANSACTION").await;
    assert_eq!(c.error("SELECT f(4), f(3)").await.0, 1062);
    c.rows("SELECT f(5)").await;
    c.ok("COMMIT").await;
    assert_eq!(news(&mut c, &mut seen).await, format!("BEGIN; {row}; commit"));
    assert_eq!(c.rows("SELECT a FROM log ORDER BY a").await, table("1|2|3|5"));
}

/// The error is MySQL's; it comes there when a block of events is full, here with the row that is too much.
#[tokio::test]
async fn a_statement_whose_events_are_too_many_is_undone() {
    let (_server, mut c) = server(&[("max_binlog_cache_size", "8192")]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(5000))").await;
    let full = (1197, "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this mysqld variable and try again".to_owned());
    assert_eq!(c.error("INSERT INTO t VALUES (1, REPEAT('x', 5000)), (2, REPEAT('x', 5000))").await, full);
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (3, REPEAT('x', 5000))").await;
    assert_eq!(c.error("INSERT INTO t VALUES (4, 'y'), (5, REPEAT('x', 5000))").await, full);
    c.ok("INSERT INTO t VALUES (6, 'y')").await;
    c.ok("COMMIT").await;
    assert_eq!(c.rows("SELECT id FROM t").await, table("3|6"));
    c.ok("SET GLOBAL max_binlog_cache_size = 4194304").await;
    c.ok("INSERT INTO t VALUES (7, REPEAT('x', 5000)), (8, REPEAT('x', 5000))").await;
    let rows: Vec<String> = (10..300).map(|id| format!("({id}, REPEAT('x', 5000))")).collect();
    c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    assert_eq!(c.rows("SHOW GLOBAL STATUS LIKE 'Binlog_cache_%'").await, table("Binlog_cache_disk_use 1|Binlog_cache_use 3"));
}

#[tokio::test]
async fn rows_are_logged_as_transactions_commit() {
    let (_server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE, s TEXT)").await;
    c.ok("CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, v INT)").await;
    let mut seen = events(&mut c).await.len();
    c.ok("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')").await;
    assert_eq!(news(&mut c, &mut seen).await, "BEGIN; Table_map d.t; Write_rows STMT_END_F; commit");
    // Nothing was changed, nothing is logged.
    c.ok("UPDATE t SET v = v").await;
    c.ok("DELETE FROM t WHERE id = 99").await;
    c.ok("BEGIN").await;
    c.ok("INSERT INTO u (v) VALUES (1)").await;
    c.ok("ROLLBACK").await;
    assert_eq!(news(&mut c, &mut seen).await, "");
    // A statement that fails leaves what came before it; a savepoint likewise.
    c.ok("BEGIN").await;
    c.ok("UPDATE t SET s = 'x' WHERE id = 1").await;
    assert_eq!(c.error("INSERT INTO t VALUES (3, 3, 'c'), (4, 1, 'd')").await.0, 1062);
    c.ok("SAVEPOINT p").await;
    c.ok("DELETE FROM t").await;
    c.ok("ROLLBACK TO p").await;
    c.ok("INSERT INTO u (v) VALUES (2), (3)").await;
    c.ok("DELETE FROM t WHERE id = 2").await;
    c.ok("COMMIT").await;
    let expected = "BEGIN; Table_map d.t; Update_rows STMT_END_F; Table_map d.u; Write_rows STMT_END_F; \
        Table_map d.t; Delete_rows STMT_END_F; commit";
    assert_eq!(news(&mut c, &mut seen).await, expected);
    // REPLACE deletes and inserts; the upsert updates.
    c.ok("REPLACE INTO t VALUES (1, 5, 'r')").await;
    assert_eq!(news(&mut c, &mut seen).await, "BEGIN; Table_map d.t; Delete_rows; Write_rows STMT_END_F; commit");
    c.ok("INSERT INTO t VALUES (1, 6, 'q') ON DUPLICATE KEY UPDATE v = 7").await;
    assert_eq!(news(&mut c, &mut seen).await, "BEGIN; Table_map d.t; Update_rows STMT_END_F; commit");
    c.ok("INSERT IGNORE INTO t VALUES (1, 8, 'i'), (9, 9, 'i')").await;
    assert_eq!(news(&mut c, &mut seen).await, "BEGIN; Table_map d.t; Write_rows STMT_END_F; commit");
    c.ok("INSERT INTO u (v) SELECT v FROM t").await;
    assert_eq!(news(&mut c, &mut seen).await, "BEGIN; Table_map d.u; Write_rows STMT_END_F; commit");
    // The text of the statement, and a session that is not logged.
    c.ok("SET binlog_rows_query_log_events = ON").await;
    c.ok("UPDATE u SET v = 0 WHERE id = 2").await;
    let expected = "BEGIN; Rows_query # UPDATE u SET v = 0 WHERE id = 2; Table_map d.u; Update_rows STMT_END_F; commit";
    assert_eq!(news(&mut c, &mut seen).await, expected);
    c.ok("SET sql_log_bin = OFF").await;
    c.ok("DELETE FROM u").await;
    c.ok("DROP TABLE u").await;
    assert_eq!(news(&mut c, &mut seen).await, "");
    c.ok("BEGIN").await;
    assert_eq!(c.error("SET sql_log_bin = ON").await.0, 1694);
}

#[tokio::test]
async fn definitions_are_logged_as_text() {
    let (_server, mut c) = server(&[]).await;
    let mut seen = events(&mut c).await.len();
    let statements = [
        "CREATE TABLE a (id INT PRIMARY KEY, v INT)",
        "ALTER TABLE a ADD COLUMN w INT",
        "CREATE INDEX k ON a (v)",
        "DROP INDEX k ON a",
        "RENAME TABLE a TO b",
        "TRUNCATE TABLE b",
        "DROP TABLE b",
        "ALTER DATABASE d COLLATE utf8mb4_general_ci",
    ];
    for sql in statements {
        c.ok(sql).await;
        assert_eq!(news(&mut c, &mut seen).await, format!("use `d`; {sql}"));
    }
    assert_eq!(c.error("DROP TABLE b").await.0, 1051);
    assert_eq!(c.error("CREATE TABLE d.c (id INT, id INT)").await.0, 1060);
    c.ok("PREPARE s FROM 'CREATE TABLE c (id INT)'").await;
    c.ok("EXECUTE s").await;
    assert_eq!(news(&mut c, &mut seen).await, "use `d`; CREATE TABLE c (id INT)");
    // The table first, then its rows.
    c.ok("INSERT INTO c VALUES (1), (2)").await;
    c.ok("CREATE TABLE e SELECT id AS x FROM c").await;
    let told = news(&mut c, &mut seen).await;
    assert!(told.contains("use `d`; CREATE TABLE `d`.`e` (\n  `x` int"), "{told}");
    assert!(told.ends_with("; BEGIN; Table_map d.e; Write_rows STMT_END_F; commit"), "{told}");
    c.ok("SET sql_generate_invisible_primary_key = ON").await;
    c.ok("CREATE TABLE g (v INT)").await;
    let told = news(&mut c, &mut seen).await;
    assert!(told.starts_with("use `d`; CREATE TABLE `d`.`g` (\n  `my_row_id` bigint unsigned NOT NULL") && told.contains("`v` int"), "{told}");
    assert!(!told.contains("BEGIN"), "{told}");
    c.ok("INSERT INTO g VALUES (1)").await;
    c.ok("CREATE DATABASE other").await;
    news(&mut c, &mut seen).await;
    c.ok("CREATE TABLE other.h SELECT 1 AS x").await;
    assert!(news(&mut c, &mut seen).await.starts_with("use `d`; CREATE TABLE `other`.`h` ("));
    // Passwords are not told.
    c.ok("CREATE USER u@localhost IDENTIFIED BY 'secret'").await;
    c.ok("ALTER USER u@localhost IDENTIFIED BY 'secret'").await;
    c.ok("SET PASSWORD FOR u@localhost = 'secret'").await;
    let told = news(&mut c, &mut seen).await;
    assert!(told.contains("CREATE USER 'u'@'localhost' IDENTIFIED WITH 'caching_sha2_password' AS '$A$") && !told.contains("secret"), "{told}");
    c.ok("RENAME USER u@localhost TO w@localhost").await;
    c.ok("DROP USER w@localhost").await;
    assert_eq!(news(&mut c, &mut seen).await, "use `d`; RENAME USER 'u'@'localhost' TO 'w'@'localhost'; use `d`; DROP USER 'w'@'localhost'");
    for (sql, told) in [
        ("CREATE ROLE r, s", "use `d`; CREATE ROLE 'r'@'%'; use `d`; CREATE ROLE 's'@'%'"),
        (
            "CREATE USER u@localhost IDENTIFIED WITH mysql_native_password DEFAULT ROLE r",
            "use `d`; CREATE USER 'u'@'localhost' IDENTIFIED WITH 'mysql_native_password' AS '' DEFAULT ROLE 'r'@'%' ACCOUNT UNLOCK",
        ),
        ("GRANT r, s TO u@localhost WITH ADMIN OPTION", "use `d`; GRANT 'r'@'%', 's'@'%' TO 'u'@'localhost' WITH ADMIN OPTION"),
        ("ALTER USER u@localhost DEFAULT ROLE ALL", "use `d`; SET DEFAULT ROLE 'r'@'%', 's'@'%' TO 'u'@'localhost'"),
        ("SET ROLE NONE", ""),
        ("SET DEFAULT ROLE NONE TO u@localhost", "use `d`; SET DEFAULT ROLE NONE TO 'u'@'localhost'"),
        ("REVOKE r FROM u@localhost", "use `d`; REVOKE 'r'@'%' FROM 'u'@'localhost'"),
        ("DROP ROLE r", "use `d`; DROP ROLE 'r'@'%'"),
    ] {
        c.ok(sql).await;
        assert_eq!(news(&mut c, &mut seen).await, told, "{sql}");
    }
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn the_first_file_after_a_reset_has_the_number_that_is_asked_for() {
    let (_server, mut c) = server(&[]).await;
    let files = "SHOW BINARY LOGS";
    c.ok("RESET MASTER TO 16").await;
    assert_eq!(c.rows(files).await[0][0], "binlog.000016");
    c.ok("CREATE TABLE t (id INT)").await;
    c.ok("FLUSH BINARY LOGS").await;
    assert_eq!(c.rows(files).await[1][0], "binlog.000017");
    for number in ["0", "2147483648"] {
        let message = format!("The requested value '{number}' for the next binary log index is out of range. Please use a value between '1' and '2147483647'.");
        assert_eq!(c.error(&format!("RESET MASTER TO {number}")).await, (3567, message));
    }
    for wrong in ["-1", "'x'", "3.5"] {
        assert_eq!(c.error(&format!("RESET MASTER TO {wrong}")).await.0, 1064);
    }
    assert_eq!(c.rows(files).await.len(), 2);
    c.ok("RESET MASTER TO 2147483647").await;
    assert_eq!(c.rows(files).await[0][0], "binlog.2147483647");
    c.ok("RESET MASTER").await;
    assert_eq!(c.rows(files).await[0][0], "binlog.000001");
}

#[tokio::test]
async fn groups_of_commits_are_counted() {
    let (_server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    let groups = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Binlog_group_commits'";
    let before: u64 = c.value(groups).await.parse().unwrap();
    for id in 0..3 {
        c.ok(&format!("INSERT INTO t VALUES ({id})")).await;
    }
    // What changes nothing has nothing to write, and what is by itself is a group.
    c.ok("DELETE FROM t WHERE id = 99").await;
    assert_eq!(c.value(groups).await.parse::<u64>().unwrap(), before + 3);
}

/// What there are figures of, as they depend on each other.
#[tokio::test]
async fn what_the_engine_counts_has_innodbs_names() {
    let (_server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("INSERT INTO t VALUES (1)").await;
    let rows = c.rows("SHOW GLOBAL STATUS LIKE 'Innodb%'").await;
    let n = |name: &str| rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}"))[1].parse::<u64>().unwrap();
    assert_eq!(n("Innodb_page_size"), 16384);
    assert_eq!(n("Innodb_buffer_pool_pages_total"), n("Innodb_buffer_pool_pages_free") + n("Innodb_buffer_pool_pages_data") + n("Innodb_buffer_pool_pages_misc"));
    assert_eq!(n("Innodb_buffer_pool_bytes_data"), 16384 * n("Innodb_buffer_pool_pages_data"));
    assert!(n("Innodb_data_written") >= n("Innodb_os_log_written") && n("Innodb_os_log_written") > 0);
    assert!(n("Innodb_data_fsyncs") >= n("Innodb_os_log_fsyncs") && n("Innodb_pages_created") > 0 && n("Innodb_log_writes") > 0);
    assert!(n("Innodb_buffer_pool_read_requests") > n("Innodb_buffer_pool_reads") && n("Innodb_buffer_pool_write_requests") > 0);
    for name in ["Innodb_data_pending_reads", "Innodb_os_log_pending_fsyncs", "Innodb_os_log_pending_writes"] {
        assert!(n(name) < 10, "{name}");
    }
    let rows = c.rows("SHOW GLOBAL STATUS WHERE variable_name LIKE '%table%'").await;
    let n = |name: &str| rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}"))[1].parse::<u64>().unwrap();
    assert_eq!((n("Opened_tables"), n("Table_open_cache_misses"), n("Open_tables")), (1, 1, 1));
    let hits = n("Table_open_cache_hits");
    assert!(hits > 0 && n("Table_locks_immediate") > 0);
    c.rows("SELECT * FROM t").await;
    assert!(c.rows("SHOW GLOBAL STATUS LIKE 'Table_open_cache_hits'").await[0][1].parse::<u64>().unwrap() > hits);
}

#[tokio::test]
async fn files_begin_end_and_go() {
    let (server, mut c) = server(&[("gtid_mode", "ON"), ("server_id", "7")]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    assert_eq!(c.rows("SELECT @@log_bin, @@server_id, @@gtid_mode").await, table("1 7 ON"));
    let uuid = c.value("SELECT @@server_uuid").await;
    assert_eq!(uuid, server.instance.database().server_uuid().to_string());
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{uuid}:1-2"));
    c.ok("FLUSH BINARY LOGS").await;
    c.ok("INSERT INTO t VALUES (1)").await;
    c.ok("FLUSH LOGS").await;
    let files = c.rows("SHOW BINARY LOGS").await;
    assert_eq!(files.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["binlog.000001", "binlog.000002", "binlog.000003"]);
    let status = c.rows("SHOW MASTER STATUS").await;
    assert_eq!(status, c.rows("SHOW BINARY LOG STATUS").await);
    assert_eq!((&*status[0][0], &status[0][1], &*status[0][4]), ("binlog.000003", &files[2][1], &*format!("{uuid}:1-3")));
    // One file, from a position, some of its events.
    let second = c.rows("SHOW BINLOG EVENTS IN 'binlog.000002'").await;
    assert_eq!(second.last().unwrap()[5], "binlog.000003;pos=4");
    let from = &second[2][1];
    let part = c.rows(&format!("SHOW BINLOG EVENTS IN 'binlog.000002' FROM {from} LIMIT 1, 2")).await;
    assert_eq!(part, second[3..5]);
    assert!(second[2][5].contains(&format!("GTID_NEXT= '{uuid}:3'")), "{:?}", second[2]);
    assert_eq!(c.error("SHOW BINLOG EVENTS IN 'binlog.000009'").await.0, 1220);
    assert_eq!(c.error("SHOW BINLOG EVENTS IN 'binlog.000002' FROM 11").await.0, 1220);
    assert_eq!(c.error("PURGE BINARY LOGS TO 'binlog.000009'").await.0, 1373);
    c.ok("PURGE BINARY LOGS BEFORE '2001-01-01 00:00:00'").await;
    assert_eq!(c.rows("SHOW BINARY LOGS").await.len(), 3);
    c.ok("PURGE BINARY LOGS TO 'binlog.000002'").await;
    assert_eq!(c.rows("SELECT @@gtid_purged, @@gtid_executed").await, table(&format!("{uuid}:1-2 {uuid}:1-3")));
    c.ok("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY").await;
    assert_eq!(c.rows("SHOW BINARY LOGS").await.len(), 1);
    c.ok("RESET MASTER").await;
    assert_eq!(c.rows("SHOW MASTER STATUS").await[0][0], "binlog.000001");
    assert_eq!(c.rows("SELECT @@gtid_purged = '', @@gtid_executed = ''").await, table("1 1"));
    c.ok("INSERT INTO t VALUES (2)").await;
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{uuid}:1"));
    assert_eq!(c.rows("SELECT * FROM mysql.gtid_executed").await, table(&format!("{uuid} 1 1")));
    assert_eq!(c.error("SET GLOBAL gtid_mode = OFF").await.0, 1788);
    c.ok("SET GLOBAL gtid_mode = ON_PERMISSIVE").await;
    c.ok("SET GLOBAL gtid_mode = OFF_PERMISSIVE").await;
    c.ok("INSERT INTO t VALUES (3)").await;
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{uuid}:1"));
}

/// As MySQL 8.0.12 answers, but for temporary tables (1787), which MySQL since 8.0.13 does not log either.
#[tokio::test]
async fn gtids_need_consistency() {
    let (_server, mut c) = server(&[]).await;
    for wrong in ["'maybe'", "3", "NULL"] {
        assert_eq!(c.error(&format!("SET GLOBAL enforce_gtid_consistency = {wrong}")).await.0, 1231, "{wrong}");
    }
    assert_eq!(c.error("SET enforce_gtid_consistency = ON").await.0, 1229);
    assert_eq!(c.error("SET GLOBAL gtid_mode = ON").await.0, 1788);
    c.ok("SET GLOBAL enforce_gtid_consistency = WARN").await;
    c.ok("CREATE TABLE t SELECT 1 AS id").await;
    let violates = "Statement violates GTID consistency: CREATE TABLE ... SELECT.";
    assert_eq!(c.rows("SHOW WARNINGS").await, [["Warning", "1786", violates]]);
    c.ok("SET GLOBAL gtid_mode = OFF_PERMISSIVE").await;
    c.ok("SET GLOBAL gtid_mode = ON_PERMISSIVE").await;
    assert_eq!(c.error("SET GLOBAL gtid_mode = ON").await.0, 3111);
    c.ok("SET GLOBAL enforce_gtid_consistency = ON").await;
    c.ok("SET GLOBAL gtid_mode = ON").await;
    for weaker in ["OFF", "WARN"] {
        assert_eq!(c.error(&format!("SET GLOBAL enforce_gtid_consistency = {weaker}")).await.0, 1779, "{weaker}");
    }
    // It commits what is open all the same, and does not ask whether there is such a table.
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (2)").await;
    assert_eq!(c.error("CREATE TABLE IF NOT EXISTS t SELECT 1 AS id").await, (1786, violates.to_owned()));
    c.ok("ROLLBACK").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "2");
    c.ok("BEGIN").await;
    c.ok("CREATE TEMPORARY TABLE x SELECT * FROM t").await;
    c.ok("COMMIT").await;
    c.ok("SET sql_log_bin = 0").await;
    c.ok("CREATE TABLE u SELECT * FROM t").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_for_transactions_of_others() {
    let (server, mut c) = server(&[("gtid_mode", "ON")]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    let uuid = c.value("SELECT @@server_uuid").await;
    let wait = |last: u64, seconds: &str| format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{uuid}:1-{last}'{seconds})");
    // CREATE DATABASE and CREATE TABLE.
    assert_eq!(c.value(&wait(2, "")).await, "0");
    assert_eq!(c.value(&wait(3, ", 0.05")).await, "1");
    assert_eq!(c.value("SELECT WAIT_FOR_EXECUTED_GTID_SET('', NULL)").await, "0");
    assert_eq!(c.error(&wait(3, ", -1")).await, (1210, "Incorrect arguments to WAIT_FOR_EXECUTED_GTID_SET.".to_owned()));
    assert_eq!(c.error("SELECT WAIT_FOR_EXECUTED_GTID_SET(NULL)").await.0, 1772);
    let (sql, mut waiting) = (wait(3, ""), server.client().await);
    let waiter = tokio::spawn(async move { waiting.value(&sql).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiter.is_finished());
    c.ok("INSERT INTO t VALUES (1)").await;
    assert_eq!(waiter.await.unwrap(), "0");
    let (sql, mut waiting) = (wait(9, ""), server.client().await);
    let id = waiting.value("SELECT CONNECTION_ID()").await;
    let waiter = tokio::spawn(async move { waiting.error(&sql).await.0 });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(c.value(&format!("SELECT STATE FROM information_schema.processlist WHERE ID = {id}")).await, "Waiting for GTID to be committed");
    c.ok(&format!("KILL QUERY {id}")).await;
    assert_eq!(waiter.await.unwrap(), 1317);
}

#[tokio::test]
async fn a_server_without_the_binary_log_says_so() {
    let server = Server::new();
    let mut c = server.client().await;
    for sql in ["SHOW BINARY LOGS", "PURGE BINARY LOGS TO 'binlog.000001'", "RESET MASTER"] {
        assert_eq!(c.error(sql).await, (1381, "You are not using binary logging".to_owned()), "{sql}");
    }
    assert!(c.rows("SHOW MASTER STATUS").await.is_empty());
    assert!(c.rows("SHOW BINLOG EVENTS").await.is_empty());
    c.ok("FLUSH LOGS").await;
    assert_eq!(c.value("SELECT @@log_bin").await, "0");
    // Nothing would keep a GTID.
    c.ok(&format!("SET GLOBAL gtid_purged = '{OTHER}:1-5'")).await;
    assert_eq!(c.rows("SHOW WARNINGS").await[0][1], "1381");
    let server = Server::with(|settings| {
        for (name, value) in [("gtid_mode", "ON"), ("enforce_gtid_consistency", "ON")] {
            settings.set(name, Some(value)).unwrap();
        }
    });
    let mut c = server.client().await;
    for sql in [format!("SET GLOBAL gtid_purged = '{OTHER}:1-5'"), format!("SET gtid_next = '{OTHER}:1'")] {
        assert_eq!(c.error(&sql).await.0, 1381, "{sql}");
    }
    c.ok("SET gtid_next = 'AUTOMATIC'").await;
}

/// As MySQL 8.0.12 has it.
#[tokio::test]
async fn what_is_done_for_tables_is_told_unless_it_is_local() {
    let (_server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)").await;
    c.ok("CREATE TABLE p (a INT) PARTITION BY HASH (a) PARTITIONS 2").await;
    let mut seen = events(&mut c).await.len();
    for sql in [
        "ANALYZE TABLE t",
        "OPTIMIZE TABLE t",
        "REPAIR TABLE t",
        "ANALYZE TABLE t UPDATE HISTOGRAM ON b WITH 4 BUCKETS",
        "ANALYZE TABLE t DROP HISTOGRAM ON b",
        "ALTER TABLE p ANALYZE PARTITION p0",
        "ALTER TABLE p OPTIMIZE PARTITION ALL",
        "ALTER TABLE p REPAIR PARTITION p1",
    ] {
        c.rows(sql).await;
        assert_eq!(news(&mut c, &mut seen).await, format!("use `d`; {sql}"));
    }
    c.ok("ALTER TABLE t FORCE").await;
    assert_eq!(news(&mut c, &mut seen).await, "use `d`; ALTER TABLE t FORCE");
    for sql in [
        "ANALYZE LOCAL TABLE t",
        "OPTIMIZE NO_WRITE_TO_BINLOG TABLE t",
        "CHECK TABLE t",
        "CHECKSUM TABLE t",
        "ANALYZE LOCAL TABLE t UPDATE HISTOGRAM ON b",
        "ANALYZE NO_WRITE_TO_BINLOG TABLE t DROP HISTOGRAM ON b",
        "ALTER TABLE p ANALYZE PARTITION LOCAL p0",
        "ALTER TABLE p CHECK PARTITION p0",
        "ALTER TABLE p ANALYZE PARTITION nope",
    ] {
        c.rows(sql).await;
        assert_eq!(news(&mut c, &mut seen).await, "", "{sql}");
    }
}

const OTHER: &str = "11111111-1111-1111-1111-111111111111";

/// As MySQL 8.0.12 answers.
#[tokio::test]
async fn a_gtid_is_used_by_one_transaction() {
    let (server, mut c) = server(&[("gtid_mode", "ON")]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("RESET MASTER").await;
    let next = |n: u64| format!("SET gtid_next = '{OTHER}:{n}'");
    c.ok(&next(1)).await;
    assert_eq!(c.value("SELECT @@gtid_next").await, format!("{OTHER}:1"));
    let mut second = server.client().await;
    // A statement that changes nothing leaves it to the next.
    c.ok("DELETE FROM t WHERE id = 77").await;
    assert_eq!(c.value("SELECT @@gtid_executed").await, "");
    c.ok("INSERT INTO t VALUES (1)").await;
    assert_eq!(c.error("INSERT INTO t VALUES (2)").await.0, 1837);
    assert_eq!(c.error("EXPLAIN ANALYZE INSERT INTO t VALUES (2)").await.0, 1837);
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "1");
    c.ok("BEGIN").await;
    assert_eq!(c.error(&next(2)).await.0, 1766);
    c.ok("ROLLBACK").await;
    // One that fails gives it up, whichever it is.
    for wrong in [next(3), "INSERT INTO t VALUES (1)".into(), "SELECT nothing".into(), "CREATE TABLE t (a INT)".into()] {
        c.ok(&next(2)).await;
        c.run(&wrong).await;
        assert_eq!(c.error("INSERT INTO t VALUES (2)").await.0, 1837, "{wrong}");
    }
    // What has been executed is left out.
    second.ok(&next(1)).await;
    second.ok("INSERT INTO t VALUES (3)").await;
    second.ok("EXPLAIN ANALYZE INSERT INTO t VALUES (3)").await;
    second.ok("BEGIN").await;
    second.ok("DELETE FROM t").await;
    second.ok("COMMIT").await;
    assert_eq!(second.error("CREATE TABLE z (a INT)").await.0, 1837);
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "1");
    // A definition that finds nothing to do uses it.
    let mut third = server.client().await;
    third.ok(&next(20)).await;
    third.ok("CREATE TABLE IF NOT EXISTS t (other INT)").await;
    third.ok(&next(21)).await;
    third.ok("DROP TABLE IF EXISTS nothing").await;
    third.ok("SET gtid_next = AUTOMATIC").await;
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{OTHER}:1:20-21"));
    // An empty transaction; one that is rolled back gives its GTID up.
    c.ok(&next(3)).await;
    c.ok("BEGIN").await;
    c.ok("COMMIT").await;
    c.ok(&next(4)).await;
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (4)").await;
    assert_eq!(c.error("CREATE TABLE z (a INT)").await.0, 1778);
    c.ok("ROLLBACK").await;
    assert_eq!(c.error("INSERT INTO t VALUES (4)").await.0, 1837);
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{OTHER}:1:3:20-21"));
    // Both phases have one.
    c.ok(&next(4)).await;
    c.ok("XA START 'x'").await;
    c.ok("INSERT INTO t VALUES (4)").await;
    c.ok("XA END 'x'").await;
    c.ok("XA PREPARE 'x'").await;
    assert_eq!(c.error("XA COMMIT 'x'").await.0, 1837);
    c.ok(&next(5)).await;
    c.ok("XA COMMIT 'x'").await;
    // What has been executed is left out, also between the phases.
    c.ok(&next(4)).await;
    for sql in ["XA START 'y'", "INSERT INTO t VALUES (9)", "XA END 'y'", "XA PREPARE 'y'"] {
        c.ok(sql).await;
    }
    c.ok(&next(5)).await;
    c.ok("XA COMMIT 'y'").await;
    assert_eq!(c.error("XA COMMIT 'y'").await.0, 1837);
    c.ok(&next(6)).await;
    for sql in ["XA START 'z'", "INSERT INTO t VALUES (5)", "XA END 'z'", "XA PREPARE 'z'"] {
        c.ok(sql).await;
    }
    for (number, end, there) in [(6, "XA COMMIT 'z'", "0"), (6, "XA ROLLBACK 'z'", "0"), (7, "XA COMMIT 'z'", "1")] {
        c.ok(&next(number)).await;
        c.ok(end).await;
        assert_eq!(second.value("SELECT COUNT(*) FROM t WHERE id = 5").await, there, "{end}");
    }
    c.ok("SET gtid_next = AUTOMATIC").await;
    assert!(c.rows("XA RECOVER").await.is_empty());
    // What is not logged is executed all the same, if it is a transaction or a definition.
    c.ok("SET sql_log_bin = 0").await;
    c.ok(&next(11)).await;
    c.ok("UPDATE t SET id = 15 WHERE id = 5").await;
    assert!(!c.value("SELECT @@gtid_executed").await.contains(":11"));
    for sql in ["BEGIN", "UPDATE t SET id = 5 WHERE id = 15", "COMMIT"] {
        c.ok(sql).await;
    }
    c.ok(&next(12)).await;
    c.ok("CREATE TABLE not_logged (id INT)").await;
    c.ok("SET gtid_next = AUTOMATIC").await;
    c.ok("SET sql_log_bin = 1").await;
    let executed = c.value("SELECT @@gtid_executed").await;
    assert!(executed.contains(":11-12"), "{executed}");
    c.ok("INSERT INTO t VALUES (6)").await;
    let own = server.instance.database().server_uuid();
    let executed = c.value("SELECT @@gtid_executed").await;
    assert!(executed.contains(&format!("{OTHER}:1:3-7:11-12:20-21")) && executed.contains(&format!("{own}:1")), "{executed}");
    for (value, code) in [("ANONYMOUS", 1782), ("foo", 1774), (OTHER, 1774)] {
        assert_eq!(c.error(&format!("SET gtid_next = '{value}'")).await.0, code, "{value}");
    }
    c.ok(&format!("SET GLOBAL gtid_purged = '+{OTHER}:8-9'")).await;
    assert_eq!(c.error(&format!("SET GLOBAL gtid_purged = '+{OTHER}:8'")).await.0, 3546);
    assert_eq!(c.value("SELECT @@gtid_purged").await, format!("{OTHER}:8-9"));
    // Each account would be a transaction.
    c.ok("CREATE USER a").await;
    c.ok("CREATE USER b").await;
    c.ok(&format!("SET gtid_next = '{OTHER}:30'")).await;
    assert_eq!(c.error("GRANT SELECT ON d.* TO a, b").await.0, 1235);
}

/// As MySQL 8.0.12 answers: so the output of `mysqlbinlog` can be applied that drops a source's temporary tables.
#[tokio::test]
async fn definitions_of_temporary_tables_use_a_gtid() {
    let (_server, mut c) = server(&[("gtid_mode", "ON")]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("RESET MASTER").await;
    let next = |n: u64| format!("SET gtid_next = '{OTHER}:{n}'");
    for (number, sql) in [
        (1, "DROP TEMPORARY TABLE IF EXISTS nothing"),
        (2, "CREATE TEMPORARY TABLE own (id INT)"),
        (3, "CREATE TEMPORARY TABLE IF NOT EXISTS own (id INT)"),
        (4, "CREATE TEMPORARY TABLE filled SELECT 1 AS id"),
        (5, "DROP TEMPORARY TABLE own"),
    ] {
        c.ok(&next(number)).await;
        c.ok(sql).await;
        assert_eq!(c.error("INSERT INTO t VALUES (1)").await.0, 1837, "{sql}");
    }
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{OTHER}:1-5"));
    // What has been executed is left out.
    c.ok(&next(2)).await;
    c.ok("CREATE TEMPORARY TABLE own (id INT)").await;
    assert_eq!(c.error("SELECT * FROM own").await.0, 1146);
    assert_eq!(c.error("INSERT INTO t VALUES (1)").await.0, 1837);
    // One that fails gives it up.
    c.ok(&next(6)).await;
    assert_eq!(c.error("CREATE TEMPORARY TABLE filled (id INT)").await.0, 1050);
    assert_eq!(c.error("INSERT INTO t VALUES (1)").await.0, 1837);
    c.ok("SET gtid_next = AUTOMATIC").await;
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{OTHER}:1-5"));
}

/// As MySQL 8.0.12 answers: so the output of `mysqlbinlog` can be applied that has them.
#[tokio::test]
async fn flushes_use_a_gtid() {
    let (_server, mut c) = server(&[("gtid_mode", "ON")]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("RESET MASTER").await;
    let next = |n: u64| format!("SET gtid_next = '{OTHER}:{n}'");
    let flushes = ["FLUSH TABLES", "FLUSH LOCAL TABLES", "FLUSH PRIVILEGES", "FLUSH STATUS", "FLUSH BINARY LOGS", "FLUSH TABLES t WITH READ LOCK", "FLUSH TABLES WITH READ LOCK"];
    for (number, sql) in (1..).zip(flushes) {
        c.ok(&next(number)).await;
        c.ok(sql).await;
        assert_eq!(c.error("FLUSH TABLES").await.0, 1837, "{sql}");
        c.ok("SET gtid_next = AUTOMATIC").await;
        c.ok("UNLOCK TABLES").await;
    }
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{OTHER}:1-7"));
    // In the middle of a transaction it would commit that.
    c.ok(&next(8)).await;
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (1)").await;
    assert_eq!(c.error("FLUSH TABLES").await.0, 1778);
    c.ok("COMMIT").await;
    // What has been executed is left out.
    c.ok(&next(1)).await;
    c.ok("FLUSH TABLES WITH READ LOCK").await;
    c.ok("SET gtid_next = AUTOMATIC").await;
    c.ok("INSERT INTO t VALUES (2)").await;
    c.ok(&next(9)).await;
    c.ok("RESET MASTER").await;
    c.ok("SET gtid_next = AUTOMATIC").await;
    assert_eq!(c.value("SELECT @@gtid_executed").await, format!("{OTHER}:9"));
}

/// A session that wants a GTID which another one has waits for the end of that one's transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_gtid_is_one_sessions() {
    let (server, mut c) = server(&[("gtid_mode", "ON")]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok(&format!("SET gtid_next = '{OTHER}:1'")).await;
    let mut second = server.client().await;
    let waiting = tokio::spawn(async move {
        second.ok(&format!("SET gtid_next = '{OTHER}:1'")).await;
        second.ok("INSERT INTO t VALUES (2)").await;
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    c.ok("INSERT INTO t VALUES (1)").await;
    waiting.await.unwrap();
    assert_eq!(c.rows("SELECT * FROM t").await, table("1"), "it has been executed by now");
}

#[tokio::test]
async fn the_second_phase_is_logged_by_whoever_ends_it() {
    let (server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    let mut seen = events(&mut c).await.len();
    let mut gone = server.client().await;
    for (name, end) in [("a", "XA COMMIT 'a'"), ("b", "XA ROLLBACK 'b'")] {
        gone.ok(&format!("XA START '{name}'")).await;
        gone.ok(&format!("INSERT INTO t VALUES ({})", name.as_bytes()[0])).await;
        gone.ok(&format!("XA END '{name}'")).await;
        gone.ok(&format!("XA PREPARE '{name}'")).await;
        gone.session.reset().await.unwrap();
        assert_eq!(c.rows("XA RECOVER").await.len(), 1);
        c.ok(end).await;
        let xid = format!("X'{:02x}',X'',1", name.as_bytes()[0]);
        let (verb, _) = end.rsplit_once(' ').unwrap();
        let expected = format!("XA START {xid}; Table_map d.t; Write_rows STMT_END_F; XA END {xid}; XA_prepare XA PREPARE {xid}; {verb} {xid}");
        assert_eq!(news(&mut c, &mut seen).await, expected);
        gone.ok("USE d").await;
    }
    // Nothing changed, nothing logged; nor is what the session does not log, whoever ends it.
    for (prepared, log) in [("SELECT * FROM t", "ON"), ("INSERT INTO t VALUES (1)", "OFF")] {
        gone.ok(&format!("SET sql_log_bin = {log}")).await;
        for sql in ["XA START 'c'", prepared, "XA END 'c'", "XA PREPARE 'c'"] {
            gone.run(sql).await;
        }
        gone.session.reset().await.unwrap();
        c.ok("XA COMMIT 'c'").await;
        assert_eq!(news(&mut c, &mut seen).await, "");
        gone.ok("USE d").await;
    }
    assert_eq!(c.rows("SELECT * FROM t").await, table("1|97"));
}

/// Rows that a definition fills are not in the log: it has to say the time of it to the microsecond.
#[tokio::test]
async fn definitions_are_logged_with_microseconds() {
    let (server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("INSERT INTO t VALUES (1)").await;
    c.ok("SET timestamp = 1700000000.123456").await;
    c.ok("ALTER TABLE t ADD c TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)").await;
    assert_eq!(c.value("SELECT MICROSECOND(c) FROM t").await, "123456");
    let file = c.rows("SHOW BINLOG EVENTS").await[0][0].clone();
    let mut bytes = Vec::new();
    server.instance.database().binlog().unwrap().read_file(&file, 0).unwrap().unwrap().read_to_end(&mut bytes).unwrap();
    // Q_MICROSECONDS, of three bytes.
    assert!(bytes.windows(4).any(|window| window == [13, 0x40, 0xE2, 0x01]));
}

#[tokio::test]
async fn a_definition_that_fills_rows_otherwise_on_a_replica_is_refused() {
    let (_server, mut c) = server(&[]).await;
    let unsafe_function = (1674, "Statement is unsafe because it uses a system function that may return a different value on the replica.".to_owned());
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    // No row has it yet.
    c.ok("ALTER TABLE t ADD a VARCHAR(36) DEFAULT (UUID())").await;
    c.ok("INSERT INTO t (id) VALUES (1), (2)").await;
    for default in ["UUID()", "RAND()", "CONCAT('x', USER())", "VERSION()"] {
        assert_eq!(c.error(&format!("ALTER TABLE t ADD b VARCHAR(100) DEFAULT ({default})")).await, unsafe_function, "{default}");
    }
    c.ok("ALTER TABLE t ADD b VARCHAR(100) DEFAULT (CONCAT('x', id)), ADD n DATETIME(6) DEFAULT (NOW(6) + INTERVAL 1 DAY)").await;
    // What is there already is not filled again.
    c.ok("ALTER TABLE t ADD d INT FIRST, MODIFY a VARCHAR(40) DEFAULT (UUID())").await;
    c.ok("SET sql_log_bin = OFF").await;
    c.ok("ALTER TABLE t ADD e VARCHAR(36) DEFAULT (UUID())").await;
    assert_eq!(c.value("SELECT COUNT(DISTINCT e) FROM t").await, "2");
    let other = Server::new();
    let mut unlogged = other.client().await;
    unlogged.ok("CREATE TABLE t SELECT 1 AS id").await;
    unlogged.ok("ALTER TABLE t ADD a VARCHAR(36) DEFAULT (UUID())").await;
}

#[tokio::test]
async fn nothing_is_told_of_temporary_tables() {
    let (_server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    let mut seen = events(&mut c).await.len();
    for sql in [
        "CREATE TEMPORARY TABLE own (id INT PRIMARY KEY)",
        "INSERT INTO own VALUES (1), (2)",
        "INSERT INTO own SELECT id + 10 FROM own",
        "UPDATE own SET id = id + 100",
        "DELETE FROM own WHERE id = 101",
        "ALTER TABLE own ADD COLUMN v INT",
        "CREATE TEMPORARY TABLE copy SELECT * FROM own",
        "CREATE INDEX k ON own (v)",
        "TRUNCATE TABLE own",
        "DROP TABLE own",
        "CREATE TEMPORARY TABLE own (id INT)",
        "DROP TEMPORARY TABLE own",
    ] {
        c.ok(sql).await;
    }
    assert_eq!(news(&mut c, &mut seen).await, "");
    // What comes out of them into others is told as rows.
    c.ok("BEGIN").await;
    c.ok("INSERT INTO copy VALUES (1, 3)").await;
    c.ok("INSERT INTO t SELECT id FROM copy").await;
    c.ok("CREATE TEMPORARY TABLE own (id INT)").await;
    c.ok("UPDATE copy SET v = 0").await;
    c.ok("COMMIT").await;
    assert_eq!(news(&mut c, &mut seen).await, "BEGIN; Table_map d.t; Write_rows STMT_END_F; commit");
    c.ok("CREATE TABLE made LIKE copy").await;
    let told = news(&mut c, &mut seen).await;
    assert!(told.contains("CREATE TABLE `d`.`made` (") && !told.contains("LIKE"), "{told}");
    c.ok("DROP TABLE own, made, copy").await;
    let told = news(&mut c, &mut seen).await;
    assert!(told.contains("DROP TABLE `d`.`made` /* generated by server */") && !told.contains("own"), "{told}");
}

#[tokio::test]
async fn procedures_are_logged_as_definitions_and_what_they_change_as_rows() {
    let (_server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    let mut seen = events(&mut c).await.len();
    c.ok("create procedure p( n int ) comment 'said' begin insert into t values (n); create table u (a int); insert into t values (n + 1); end").await;
    let expected = "CREATE DEFINER=`root`@`localhost` PROCEDURE `p`( n int )\n    COMMENT 'said'\nbegin insert into t values (n); create table u (a int); insert into t values (n + 1); end";
    let told = news(&mut c, &mut seen).await;
    assert!(told.ends_with(expected), "{told}");
    c.ok("CALL p(1)").await;
    let told = news(&mut c, &mut seen).await;
    let rows = "BEGIN; Table_map d.t; Write_rows STMT_END_F; commit";
    assert!(told.starts_with(rows) && told.contains("create table u (a int); BEGIN") && told.ends_with(rows), "{told}");
    c.ok("drop procedure p").await;
    c.ok("drop procedure if exists p").await;
    let told = news(&mut c, &mut seen).await;
    // As in MySQL, which tells of nothing dropped, too.
    assert!(told.contains("drop procedure p; ") && told.ends_with("drop procedure if exists p"), "{told}");
}

#[tokio::test]
async fn functions_are_logged_as_definitions_that_say_what_they_do() {
    let (server, mut c) = server(&[]).await;
    let mut seen = events(&mut c).await.len();
    c.ok("create function f( n int ) returns varchar( 5 ) charset latin1 no sql comment 'said' return n").await;
    let expected = "CREATE DEFINER=`root`@`localhost` FUNCTION `f`( n int ) RETURNS varchar(5) CHARSET latin1\n    NO SQL\n    COMMENT 'said'\nreturn n";
    let told = news(&mut c, &mut seen).await;
    assert!(told.ends_with(expected), "{told}");
    c.ok("CREATE TABLE t (a VARCHAR(5))").await;
    news(&mut c, &mut seen).await;
    c.ok("INSERT INTO t VALUES (f(7))").await;
    assert_eq!(news(&mut c, &mut seen).await, "BEGIN; Table_map d.t; Write_rows STMT_END_F; commit");
    c.ok("alter function f comment 'more'").await;
    c.ok("drop function f").await;
    c.ok("drop function if exists f").await;
    let told = news(&mut c, &mut seen).await;
    assert!(told.contains("alter function f comment 'more'; ") && told.contains("drop function f; ") && told.ends_with("drop function if exists f"), "{told}");
    // What it says of itself is what a replica has to believe.
    assert_eq!(c.error("CREATE FUNCTION g() RETURNS INT RETURN 1").await.0, 1418);
    assert_eq!(c.error("CREATE FUNCTION g() RETURNS INT MODIFIES SQL DATA RETURN 1").await.0, 1418);
    c.ok("CREATE FUNCTION g() RETURNS INT DETERMINISTIC RETURN 1").await;
    c.ok("CREATE USER u@localhost").await;
    c.ok("GRANT CREATE ROUTINE ON d.* TO u@localhost").await;
    let mut user = server.connect_as("u");
    assert_eq!(user.error("CREATE FUNCTION d.h() RETURNS INT DETERMINISTIC RETURN 1").await.0, 1419);
    c.ok("SET GLOBAL log_bin_trust_function_creators = ON").await;
    user.ok("CREATE FUNCTION d.h() RETURNS INT RETURN 1").await;
}

/// A client that, before it takes the first event, has the file ended and removed by another.
struct Purging {
    other: Client,
    purged: bool,
    events: usize,
}

#[async_trait]
impl ResultSink for Purging {
    fn columns(&mut self, _: &[Column]) {}
    fn row(&mut self, _: &[Value]) {
        self.events += 1;
    }
    fn error(&mut self, error: &MySqlError) {
        panic!("{error:?}");
    }
    fn wants_flush(&self) -> bool {
        !self.purged
    }
    async fn flush(&mut self) -> std::io::Result<()> {
        self.purged = true;
        self.other.ok("FLUSH BINARY LOGS").await;
        self.other.ok("PURGE BINARY LOGS TO 'binlog.000002'").await;
        Ok(())
    }
}

/// It is read in pieces of a megabyte.
#[tokio::test]
async fn events_of_a_file_that_is_purged_meanwhile_are_shown_to_its_end() {
    let (server, mut c) = server(&[]).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)").await;
    for id in 0..4 {
        c.ok(&format!("INSERT INTO t VALUES ({id}, REPEAT('x', 600000))")).await;
    }
    let events = c.rows("SHOW BINLOG EVENTS").await;
    assert_eq!(events.iter().filter(|row| row[2] == "Write_rows").count(), 4);
    let mut sink = Purging { other: server.connect(), purged: false, events: 0 };
    c.session.execute(b"SHOW BINLOG EVENTS", &mut sink).await.unwrap();
    assert_eq!(c.rows("SHOW BINARY LOGS").await[0][0], "binlog.000002");
    assert_eq!(sink.events, events.len() + 1, "and that it was ended");
}

/// MySQL looks whether there are enough after it has sent one.
#[tokio::test]
async fn a_limit_of_no_events_shows_one_at_the_beginning_only() {
    let (_server, mut c) = server(&[]).await;
    for (limit, events) in [("LIMIT 0", 1), ("LIMIT 0, 0", 1), ("LIMIT 1, 0", 0), ("LIMIT 0 OFFSET 2", 0), ("LIMIT 2", 2)] {
        assert_eq!(c.rows(&format!("SHOW BINLOG EVENTS {limit}")).await.len(), events, "{limit}");
    }
}
