//! Results that are larger than memory, and statements that wait with many rows.

use super::parallel::{counter, filled};
use super::{Client, Server, table};

/// With a table that is too large to be a join's build side in the least memory, which there is.
async fn with_little_memory(server: &Server) -> Client {
    let mut c = filled(server).await;
    c.ok("CREATE TABLE l (id INT PRIMARY KEY, n INT, s VARCHAR(1300))").await;
    c.ok("INSERT INTO l SELECT id, id % 977, CONCAT(REPEAT(MD5(id), 30), id) FROM t WHERE id < 12000").await;
    c.ok("SET GLOBAL parallel_memory_limit = 16777216").await;
    c
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_runs_out_behind_rows_that_have_left() {
    let server = Server::new();
    let mut c = with_little_memory(&server).await;
    for (before, rows) in [
        ("SELECT id FROM t", 40_000),
        // Other operators give them in another order.
        ("SELECT l.id FROM l JOIN t ON l.n = t.id", 12_000),
        ("SELECT k, COUNT(*) FROM t GROUP BY k UNION ALL SELECT NULL, id FROM t WHERE id < 20000", 20_010),
    ] {
        let columns = if before.contains("COUNT") { "a.id, b.n" } else { "a.id" };
        let sql = format!("{before} UNION ALL SELECT {columns} FROM l a JOIN l b ON a.s = b.s");
        c.ok("SET GLOBAL parallel_memory_limit = 1073741824").await;
        let mut expected = c.rows(&sql).await;
        assert_eq!(expected.len(), rows + 12_000, "{sql}");
        c.ok("SET GLOBAL parallel_memory_limit = 16777216").await;
        let refused = counter(&mut c, "PQ_memory_refused").await;
        let mut found = c.rows(&sql).await;
        assert!(counter(&mut c, "PQ_memory_refused").await > refused, "it fits: {sql}");
        expected.sort();
        found.sort();
        assert!(found == expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_beyond_a_limit_are_counted() {
    let server = Server::new();
    let mut c = with_little_memory(&server).await;
    for executor in ["AUTO", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = '{executor}'")).await;
        assert_eq!(c.rows("SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 2 OFFSET 3").await, table("3|4"));
        assert_eq!(c.value("SELECT FOUND_ROWS()").await, "40000");
        assert_eq!(c.rows("SELECT SQL_CALC_FOUND_ROWS id, s FROM l WHERE n = 3 ORDER BY s LIMIT 0").await, table(""));
        assert_eq!(c.value("SELECT FOUND_ROWS()").await, "13");
        // The second row is one too many; the first is there, as in MySQL.
        c.ok("SET @a = -1, @b = -1").await;
        assert_eq!(c.error("SELECT id, k INTO @a, @b FROM t WHERE id > 4 ORDER BY id").await.0, 1172);
        assert_eq!(c.rows("SELECT @a, @b").await, table("5 5"));
        c.ok("SELECT id, k INTO @a, @b FROM t WHERE id = 17").await;
        assert_eq!(c.rows("SELECT @a, @b").await, table("17 7"));
        c.ok("SELECT id, k INTO @a, @b FROM t WHERE id < 0").await;
        assert_eq!(c.rows("SELECT @a, @b").await, table("17 7"));
        assert_eq!(c.error("UPDATE t SET k = (SELECT n FROM l) WHERE id = 3").await.0, 1242);
        assert_eq!(c.ok("UPDATE t SET k = 3 WHERE id = 3 AND EXISTS (SELECT * FROM l)").await.affected_rows, 0);
    }
}

/// Their rows are locked and read first, and wait in files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_with_subqueries_over_the_row_find_many_rows() {
    let server = Server::new();
    let mut c = with_little_memory(&server).await;
    c.ok("SET highkey_executor = 'AUTO'").await;
    c.ok("CREATE TABLE odd (x INT PRIMARY KEY)").await;
    c.ok("INSERT INTO odd SELECT id FROM t WHERE id % 2 = 1").await;
    c.ok("CREATE TABLE u LIKE t").await;
    c.ok("INSERT INTO u SELECT * FROM t").await;
    let sums = "SELECT COUNT(*), SUM(id), SUM(k), MIN(d), MAX(s) FROM u";
    assert_eq!(c.rows(sums).await, table("40000 799980000 180000 0.25 name6"));
    assert_eq!(c.ok("UPDATE u SET k = k + (SELECT COUNT(*) FROM odd WHERE x = u.id)").await.affected_rows, 20_000);
    assert_eq!(c.rows(sums).await, table("40000 799980000 200000 0.25 name6"));
    assert_eq!(c.ok("UPDATE u JOIN odd ON x = u.id SET u.k = u.k - 1").await.affected_rows, 20_000);
    assert_eq!(c.rows(sums).await, table("40000 799980000 180000 0.25 name6"));
    assert_eq!(c.ok("DELETE FROM u WHERE EXISTS (SELECT 1 FROM odd WHERE odd.x = u.id)").await.affected_rows, 20_000);
    assert_eq!(c.rows("SELECT COUNT(*), SUM(id % 2) FROM u").await, table("20000 0"));
    assert_eq!(c.ok("DELETE u, odd FROM u JOIN odd ON x = u.id + 1").await.affected_rows, 40_000);
    assert_eq!(c.value("SELECT (SELECT COUNT(*) FROM u) + (SELECT COUNT(*) FROM odd)").await, "0");
    // Tasks of the last one may still let go of what they read.
    let begun = std::time::Instant::now();
    while counter(&mut c, "PQ_temp_used").await > 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "files stay");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // Beyond the space there is they fail, and nothing is changed.
    c.ok("INSERT INTO u SELECT * FROM t").await;
    c.ok("INSERT INTO odd SELECT id FROM t WHERE id % 2 = 1").await;
    c.ok("SET GLOBAL highkey_temp_space_limit = 1048576").await;
    assert_eq!(c.error("DELETE FROM u WHERE EXISTS (SELECT 1 FROM odd WHERE odd.x = u.id)").await.0, 1114);
    assert_eq!(c.value("SELECT COUNT(*) FROM u").await, "40000");
}

/// Their rows wait in files that have their part of the temporary space as those of queries have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursors_share_the_temporary_space() {
    let server = Server::new();
    let mut c = with_little_memory(&server).await;
    let all = c.session.prepare(b"SELECT * FROM l").await.unwrap().id;
    let more = c.session.prepare(b"SELECT * FROM l").await.unwrap().id;
    c.ok("SET GLOBAL highkey_temp_space_limit = 20971520").await;
    let mut sink = super::Collector::default();
    c.session.execute_prepared(all, &[], true, &mut sink).await.unwrap();
    assert!(matches!(&sink.answers[0], super::Answer::Rows { .. }), "{:?}", sink.answers[0]);
    let used = counter(&mut c, "PQ_temp_used").await;
    assert!(used > 11 << 20, "{used}");
    // Each by itself would fit.
    let mut sink = super::Collector::default();
    c.session.execute_prepared(more, &[], true, &mut sink).await.unwrap();
    assert!(matches!(&sink.answers[0], super::Answer::Error(e) if e.code == 1114), "{:?}", sink.answers[0]);
    assert_eq!(counter(&mut c, "PQ_temp_used").await, used);
    c.session.close_prepared(all);
    assert_eq!(counter(&mut c, "PQ_temp_used").await, 0);
    let mut sink = super::Collector::default();
    c.session.execute_prepared(more, &[], true, &mut sink).await.unwrap();
    assert!(matches!(&sink.answers[0], super::Answer::Rows { .. }), "{:?}", sink.answers[0]);
}
