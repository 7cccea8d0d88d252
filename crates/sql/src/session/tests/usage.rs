//! How tables and indexes are used: performance_schema.table_io_waits_summary_by_index_usage. Counts are those of MySQL 8.0.12 for the same plans. Then files, waits
//! and memory.

use super::{Client, Server, table};

/// What was counted since the last time, by index: fetched, inserted, updated, deleted.
async fn counted(c: &mut Client, name: &str) -> Vec<Vec<String>> {
    let counts = "index_name, count_fetch, count_insert, count_update, count_delete";
    let from = format!("performance_schema.table_io_waits_summary_by_index_usage WHERE object_schema = 'd' AND object_name = '{name}' AND count_star > 0");
    let rows = c.rows(&format!("SELECT {counts} FROM {from} ORDER BY index_name")).await;
    c.ok("TRUNCATE TABLE performance_schema.table_io_waits_summary_by_index_usage").await;
    rows
}

#[tokio::test]
async fn rows_count_for_the_index_that_led_to_them() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY a (a), UNIQUE KEY b (b))").await;
    c.ok("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 1, 3), (4, 2, 4), (5, 1, 5)").await;
    assert_eq!(counted(&mut c, "t").await, table("NULL 0 5 0 0"));
    for (query, expected) in [
        ("SELECT a + b FROM t", "NULL 5 0 0 0"),
        ("SELECT * FROM t WHERE id = 3", "PRIMARY 1 0 0 0"),
        ("SELECT * FROM t WHERE id = 77", "PRIMARY 1 0 0 0"),
        ("SELECT * FROM t FORCE INDEX (a) WHERE a = 1", "a 3 0 0 0"),
        ("SELECT * FROM t WHERE b = 1", "b 1 0 0 0"),
        ("SELECT * FROM t WHERE id BETWEEN 2 AND 4", "PRIMARY 3 0 0 0"),
        ("SELECT * FROM t ORDER BY id", "PRIMARY 5 0 0 0"),
        ("SELECT id FROM t FORCE INDEX (a) ORDER BY a LIMIT 1", "a 1 0 0 0"),
        ("SELECT MAX(b) FROM t", "b 1 0 0 0"),
        ("SELECT id FROM t WHERE id = 2 FOR UPDATE", "PRIMARY 1 0 0 0"),
    ] {
        c.rows(query).await;
        assert_eq!(counted(&mut c, "t").await, table(expected), "{query}");
    }
    // InnoDB knows how many rows there are without reading them.
    c.rows("SELECT COUNT(*) FROM t").await;
    assert!(counted(&mut c, "t").await.is_empty());
    for (change, expected) in [
        ("UPDATE t SET a = 7 WHERE id = 3", "PRIMARY 1 0 1 0"),
        ("UPDATE t SET b = b + 100", "PRIMARY 0 0 5 0|NULL 5 0 0 0"),
        ("UPDATE t FORCE INDEX (a) SET b = b + 10 WHERE a = 1", "a 2 0 2 0"),
        ("DELETE FROM t WHERE id = 1", "PRIMARY 1 0 0 1"),
        ("DELETE FROM t", "PRIMARY 0 0 0 4|NULL 4 0 0 0"),
    ] {
        c.ok(change).await;
        let mut rows = counted(&mut c, "t").await;
        rows.sort_by_key(|row| row[0] == "NULL");
        assert_eq!(rows, table(expected), "{change}");
    }
}

#[tokio::test]
async fn a_join_counts_its_lookups_by_table() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)").await;
    c.ok("CREATE TABLE u (id INT PRIMARY KEY, t INT)").await;
    c.ok("INSERT INTO t VALUES (3, 1), (104, 2)").await;
    c.ok("INSERT INTO u VALUES (1, 3), (2, 3), (3, 104), (4, 77)").await;
    c.ok("TRUNCATE TABLE performance_schema.table_io_waits_summary_by_table").await;
    c.rows("SELECT u.id, t.a FROM u LEFT JOIN t ON t.id = u.t").await;
    let rows = c.rows("SELECT object_name, index_name, count_fetch FROM performance_schema.table_io_waits_summary_by_index_usage WHERE object_schema = 'd' AND count_star > 0 ORDER BY 1").await;
    // MySQL keeps the row that a key gave last, and counts 3.
    assert_eq!(rows, table("t PRIMARY 4|u NULL 4"));
}

/// MySQL counts no searches of FULLTEXT indexes, and so takes all of them for unused.
#[tokio::test]
async fn a_full_text_search_uses_its_index() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE f (id INT PRIMARY KEY, a TEXT, FULLTEXT KEY w (a))").await;
    c.ok("INSERT INTO f VALUES (1, 'apple banana'), (2, 'banana cherry'), (3, 'cherry apple')").await;
    let unused = "SELECT index_name FROM sys.schema_unused_indexes WHERE object_schema = 'd'";
    assert_eq!(c.rows(unused).await, table("w"));
    c.rows("SELECT id FROM f WHERE MATCH (a) AGAINST ('banana')").await;
    assert!(c.rows(unused).await.is_empty());
    c.ok("TRUNCATE TABLE performance_schema.table_io_waits_summary_by_index_usage").await;
    assert_eq!(c.rows(unused).await, table("w"));
    c.rows("SELECT id FROM f WHERE MATCH (a) AGAINST ('damson')").await;
    assert!(c.rows(unused).await.is_empty(), "what is not found was looked for");
}

#[tokio::test]
async fn partitions_count_as_one_table_whatever_runs_the_query() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE p (id INT PRIMARY KEY, a INT, KEY a (a)) PARTITION BY HASH (id) PARTITIONS 4").await;
    c.ok("INSERT INTO p VALUES (1, 1), (2, 2), (3, 1), (4, 2), (5, 1)").await;
    c.ok("TRUNCATE TABLE performance_schema.table_io_waits_summary_by_table").await;
    // DataFusion reads small tables as a whole, whatever is forced.
    for (executor, by_index) in [("FAST", "a 3 0 0 0"), ("DATAFUSION", "NULL 5 0 0 0")] {
        c.ok(&format!("SET highkey_executor = {executor}")).await;
        c.rows("SELECT a, id FROM p").await;
        assert_eq!(counted(&mut c, "p").await, table("NULL 5 0 0 0"), "{executor}");
        c.rows("SELECT SUM(a + id) FROM p").await;
        assert_eq!(counted(&mut c, "p").await, table("NULL 5 0 0 0"), "{executor}");
        c.rows("SELECT a, id FROM p FORCE INDEX (a) WHERE a = 1").await;
        assert_eq!(counted(&mut c, "p").await, table(by_index), "{executor}");
    }
}

#[tokio::test]
async fn files_waits_and_memory_are_told() {
    let server = Server::with(|settings| settings.set("log_bin", Some("ON")).unwrap());
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000))").await;
    for n in 0..20 {
        c.ok(&format!("INSERT INTO t VALUES ({n}, REPEAT('x', 1000))")).await;
    }
    let opened = "SELECT COUNT(*) FROM performance_schema.file_instances WHERE open_count > 0 AND event_name = 'wait/io/file/innodb/innodb";
    assert_eq!(c.value(&format!("{opened}_data_file' AND file_name LIKE '%/pages.000'")).await, "1");
    assert!(c.value(&format!("{opened}_log_file' AND file_name LIKE '%/wal.%'")).await.parse::<u64>().unwrap() > 0);
    let log = "FROM performance_schema.file_summary_by_event_name WHERE event_name = 'wait/io/file/innodb/innodb_log_file'";
    let written = format!("SELECT count_write > 0, sum_number_of_bytes_write > 20000, sum_timer_write >= max_timer_write, min_timer_write > 0, count_star = count_read + count_write + count_misc {log}");
    assert_eq!(c.rows(&written).await, table("1 1 1 1 1"));
    let by_name = "SELECT SUM(sum_number_of_bytes_write) > 20000 FROM performance_schema.file_summary_by_instance WHERE file_name LIKE '%/wal.%'";
    assert_eq!(c.value(by_name).await, "1");
    let files = c.rows("SELECT file FROM sys.io_global_by_file_by_bytes WHERE file LIKE '%binlog.000001'").await;
    assert_eq!(files.len(), 1, "{files:?}");

    let events = c.rows("SELECT event_name, count_star > 0 FROM performance_schema.events_waits_summary_global_by_event_name WHERE event_name LIKE 'wait/io/table%' OR event_name LIKE '%log_file' ORDER BY 1").await;
    assert_eq!(events, table("wait/io/file/innodb/innodb_log_file 1|wait/io/table/sql/handler 1"));
    assert!(!c.rows("SELECT * FROM sys.waits_global_by_latency").await.is_empty());
    let unknown = "SELECT event_name FROM performance_schema.events_waits_summary_global_by_event_name WHERE event_name NOT IN (SELECT name FROM performance_schema.setup_instruments)";
    assert!(c.rows(unknown).await.is_empty());
    let pool = "SELECT current_number_of_bytes_used = high_number_of_bytes_used, current_number_of_bytes_used > 0 FROM performance_schema.memory_summary_global_by_event_name WHERE event_name = 'memory/innodb/buf_buf_pool'";
    assert_eq!(c.rows(pool).await, table("1 1"));
    assert_eq!(c.value("SELECT total_allocated > 0 FROM sys.x$memory_global_total").await, "1");
    assert_eq!(c.rows("SELECT event_name FROM performance_schema.socket_summary_by_event_name").await, table("wait/io/socket/sql/client_connection"));

    let bytes = format!("SELECT sum_number_of_bytes_write {log}");
    let before: u64 = c.value(&bytes).await.parse().unwrap();
    c.ok("TRUNCATE TABLE performance_schema.file_summary_by_instance").await;
    assert!(c.value(&bytes).await.parse::<u64>().unwrap() < before);
}
