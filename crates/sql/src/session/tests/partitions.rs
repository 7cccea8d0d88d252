//! Partitions as plans, views and prepared statements see them. What statements answer is in `tests/golden/partitions.sql` and `partitions_altered.sql`.

use super::Server;

const RANGES: &str = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION pm VALUES LESS THAN MAXVALUE)";

#[tokio::test]
async fn explain_names_the_partitions_that_are_read() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok(&format!("CREATE TABLE t (id INT PRIMARY KEY, v INT) {RANGES}")).await;
    c.ok("INSERT INTO t VALUES (1, 1), (5, 2), (11, 3), (12, 4), (25, 5), (30, 6)").await;
    for (condition, partitions) in [
        ("", "p0,p1,pm"),
        (" PARTITION (pm, p0)", "p0,pm"),
        (" WHERE id BETWEEN 11 AND 12", "p1"),
        (" WHERE id < 10", "p0"),
        (" WHERE id IN (1, 30)", "p0,pm"),
        (" WHERE id > 19", "pm"),
        (" PARTITION (p1, pm) WHERE id > 9", "p1,pm"),
    ] {
        let lines = c.rows(&format!("EXPLAIN SELECT * FROM t{condition}")).await;
        assert_eq!(lines[0][3], partitions, "{condition}");
    }
    // Columns that decide need no index.
    c.ok("CREATE TABLE dated (id INT, d DATE) PARTITION BY RANGE (TO_DAYS(d)) (PARTITION p0 VALUES LESS THAN (TO_DAYS('2000-01-01')), PARTITION p1 VALUES LESS THAN (TO_DAYS('2001-01-01')), PARTITION pm VALUES LESS THAN MAXVALUE)").await;
    c.ok("INSERT INTO dated VALUES (1, '1999-05-05'), (2, '2000-05-05'), (3, '2001-05-05'), (4, NULL)").await;
    for (condition, partitions, ids) in [
        ("d = '2000-05-05'", "p1", "2"),
        ("d >= '2000-02-01' AND d < '2000-06-01'", "p0,p1", "2"),
        ("d > '2000-12-31'", "p0,p1,pm", "3"),
        ("d IS NULL", "p0", "4"),
        ("id = 1", "p0,p1,pm", "1"),
    ] {
        let lines = c.rows(&format!("EXPLAIN SELECT * FROM dated WHERE {condition}")).await;
        assert_eq!(lines[0][3], partitions, "{condition}");
        assert_eq!(c.value(&format!("SELECT GROUP_CONCAT(id) FROM dated WHERE {condition}")).await, ids, "{condition}");
        c.ok(&format!("UPDATE dated SET id = id + 10 WHERE {condition}")).await;
        c.ok(&format!("UPDATE dated SET id = id - 10 WHERE id > 10 AND {}", condition.replace("id = 1", "id = 11"))).await;
    }
    assert_eq!(c.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM dated").await, "1,2,3,4");
}

#[tokio::test]
async fn a_view_reads_the_partitions_that_it_names() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok(&format!("CREATE TABLE t (id INT PRIMARY KEY, v INT) {RANGES}")).await;
    c.ok("INSERT INTO t VALUES (1, 1), (11, 3), (25, 5)").await;
    c.ok("CREATE VIEW w AS SELECT id FROM t PARTITION (p1)").await;
    assert_eq!(c.value("SELECT GROUP_CONCAT(id) FROM w").await, "11");
    assert_eq!(c.error("SELECT * FROM w PARTITION (p1)").await.0, 1747);
    c.ok("ALTER TABLE t DROP PARTITION p1").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "2");
}

/// Answers of MySQL 8.0.12.
#[tokio::test]
async fn partitions_have_no_geometries() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE g (id INT, g POINT)").await;
    c.ok("CREATE TABLE p (id INT) PARTITION BY HASH (id) PARTITIONS 2").await;
    for sql in [
        "CREATE TABLE t (id INT, g POINT) PARTITION BY HASH (id) PARTITIONS 2",
        "CREATE TABLE t (id INT PRIMARY KEY, g GEOMETRY NOT NULL) PARTITION BY KEY () PARTITIONS 2",
        "CREATE TABLE t PARTITION BY HASH (id) PARTITIONS 2 AS SELECT * FROM g",
        "ALTER TABLE g PARTITION BY HASH (id) PARTITIONS 2",
        "ALTER TABLE p ADD COLUMN g POINT",
    ] {
        let (code, message) = c.error(sql).await;
        assert_eq!((code, &*message), (1178, "The storage engine for the table doesn't support GEOMETRY"), "{sql}");
    }
}

/// What is in the catalog can be read again.
#[tokio::test]
async fn deep_expressions_are_refused() {
    let server = Server::new();
    let mut c = server.client().await;
    let sum = |terms: usize| format!("id{}", " + 1".repeat(terms));
    c.ok(&format!("CREATE TABLE t (id INT) PARTITION BY HASH ({}) PARTITIONS 4", sum(31))).await;
    c.ok(&format!("CREATE TABLE u (id INT) PARTITION BY HASH ({}id{}) PARTITIONS 4", "ABS(".repeat(31), ")".repeat(31))).await;
    assert_eq!(c.error(&format!("CREATE TABLE v (id INT) PARTITION BY HASH ({}) PARTITIONS 4", sum(32))).await.0, 1235);
}

/// Below REPEATABLE READ a row that a statement does not want is unlocked again, of whichever partition it is.
#[tokio::test]
async fn unwanted_rows_are_unlocked() {
    let server = Server::new();
    let mut c = server.client().await;
    let mut other = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 3").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7)").await;
    for statement in ["UPDATE t SET v = v + 10 WHERE v = 4", "DELETE FROM t WHERE v = 4", "SELECT * FROM t WHERE v = 4 FOR UPDATE"] {
        c.ok("SET TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
        c.ok("BEGIN").await;
        c.run(statement).await;
        other.ok("BEGIN").await;
        assert_eq!(other.rows("SELECT id FROM t WHERE id IN (1, 2, 3, 5, 6, 7) FOR UPDATE NOWAIT").await.len(), 6, "{statement}");
        assert_eq!(other.error("SELECT id FROM t WHERE id = 4 FOR UPDATE NOWAIT").await.0, 3572, "{statement}");
        other.ok("ROLLBACK").await;
        c.ok("ROLLBACK").await;
    }
}

/// EXCHANGE … WITHOUT VALIDATION puts rows where they do not belong: they are read, and neither changed nor taken for a row with their key elsewhere.
#[tokio::test]
async fn misplaced_rows_are_not_changed() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok(&format!("CREATE TABLE t (id INT PRIMARY KEY, v INT) {RANGES}")).await;
    c.ok("CREATE TABLE x (id INT PRIMARY KEY, v INT)").await;
    c.ok("INSERT INTO t VALUES (1, 1)").await;
    c.ok("INSERT INTO x VALUES (1, 7), (2, 8)").await;
    c.ok("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x WITHOUT VALIDATION").await;
    assert_eq!(c.error("DELETE FROM t WHERE v = 7").await.0, 1863);
    assert_eq!(c.error("UPDATE t SET v = 9 WHERE v = 8").await.0, 1863);
    assert_eq!(c.error("DELETE FROM t PARTITION (p1)").await.0, 1748);
    assert_eq!(c.error("DELETE t FROM t JOIN (SELECT 7 AS v) x ON t.v = x.v").await.0, 1863);
    assert_eq!(c.error("UPDATE t JOIN (SELECT 8 AS v) x ON t.v = x.v SET t.v = 9").await.0, 1863);
    assert_eq!(c.error("UPDATE t SET v = (SELECT MAX(a) FROM (SELECT 1 AS a) x WHERE a < t.v) WHERE v = 7").await.0, 1863);
    assert_eq!(c.error("DELETE t FROM t PARTITION (p1) JOIN (SELECT 8 AS v) x ON t.v = x.v").await.0, 1748);
    c.ok("CREATE TRIGGER b BEFORE DELETE ON t FOR EACH ROW SET @n = 1").await;
    assert_eq!(c.error("DELETE FROM t WHERE v = 7 ORDER BY id").await.0, 1863);
    c.ok("DROP TRIGGER b").await;
    assert_eq!(c.error("ALTER TABLE t REBUILD PARTITION p1").await.0, 1863);
    assert_eq!(c.value("SELECT GROUP_CONCAT(v ORDER BY v) FROM t").await, "1,7,8");
    c.ok("ALTER TABLE t TRUNCATE PARTITION p1").await;
    assert_eq!(c.value("SELECT GROUP_CONCAT(v) FROM t").await, "1");
}

#[tokio::test]
async fn partitions_that_are_all_emptied_count_anew() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok(&format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT) {RANGES}")).await;
    c.ok("INSERT INTO t VALUES (1, 1), (15, 2)").await;
    c.ok("ALTER TABLE t TRUNCATE PARTITION p1").await;
    c.ok("INSERT INTO t (v) VALUES (3)").await;
    assert_eq!(c.value("SELECT MAX(id) FROM t").await, "16");
    c.ok("ALTER TABLE t TRUNCATE PARTITION p0, p1, pm").await;
    c.ok("INSERT INTO t (v) VALUES (4)").await;
    assert_eq!(c.value("SELECT GROUP_CONCAT(id) FROM t").await, "1");
}

/// Plans that are kept end with the definition, also those of some partitions only.
#[tokio::test]
async fn plans_of_partitions_follow_the_definition() {
    let server = Server::new();
    let mut c = server.client().await;
    let mut other = server.client().await;
    c.ok(&format!("CREATE TABLE t (id INT PRIMARY KEY, v INT) {RANGES}")).await;
    c.ok("INSERT INTO t VALUES (1, 1), (11, 3), (25, 5)").await;
    c.ok("PREPARE s FROM 'SELECT COUNT(*) FROM t PARTITION (p0)'").await;
    assert_eq!(c.value("EXECUTE s").await, "1");
    other.ok("ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION p0 VALUES LESS THAN (20))").await;
    assert_eq!(c.value("EXECUTE s").await, "2");
    other.ok("ALTER TABLE t REMOVE PARTITIONING").await;
    assert_eq!(c.error("EXECUTE s").await.0, 1747);
}

#[tokio::test]
async fn rows_are_the_same_with_and_without_partitions() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE plain (id INT PRIMARY KEY, k INT, s VARCHAR(20), KEY (k), KEY (s))").await;
    c.ok("INSERT INTO plain SELECT n, n * 37 % 101, CONCAT('s', n % 13) FROM (WITH RECURSIVE q (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 900) SELECT n FROM q) x").await;
    for (n, by) in ["HASH (id) PARTITIONS 7", "KEY (id) PARTITIONS 5", "RANGE (id) (PARTITION a VALUES LESS THAN (300), PARTITION b VALUES LESS THAN MAXVALUE)"].iter().enumerate() {
        c.ok(&format!("CREATE TABLE p{n} LIKE plain")).await;
        c.ok(&format!("ALTER TABLE p{n} PARTITION BY {by}")).await;
        c.ok(&format!("INSERT INTO p{n} SELECT * FROM plain")).await;
        for query in [
            "SELECT * FROM $ ORDER BY id DESC LIMIT 20",
            "SELECT id FROM $ WHERE k = 7 ORDER BY id",
            "SELECT k, COUNT(*), SUM(id) FROM $ GROUP BY k ORDER BY k",
            "SELECT s, MIN(id), MAX(k) FROM $ WHERE s > 's3' GROUP BY s ORDER BY s",
            "SELECT COUNT(*) FROM $ a JOIN $ b ON a.k = b.id",
            "SELECT a.id, b.id FROM $ a JOIN $ b ON a.id = b.k WHERE a.id < 20 ORDER BY a.id, b.id",
            "SELECT id FROM $ WHERE id BETWEEN 290 AND 310 ORDER BY id FOR UPDATE",
            "SELECT k FROM $ ORDER BY k, id LIMIT 50",
            "SELECT MIN(id), MAX(id), MIN(k), MAX(k) FROM $",
        ] {
            let name = format!("p{n}");
            assert_eq!(c.rows(&query.replace('$', &name)).await, c.rows(&query.replace('$', "plain")).await, "{by}: {query}");
        }
        c.ok(&format!("UPDATE p{n} SET id = id + 1000 WHERE k < 50")).await;
        c.ok(&format!("DELETE FROM p{n} WHERE k > 90 ORDER BY k LIMIT 30")).await;
        c.ok("DROP TABLE IF EXISTS copy").await;
        c.ok("CREATE TABLE copy LIKE plain").await;
        c.ok("INSERT INTO copy SELECT * FROM plain").await;
        c.ok("UPDATE copy SET id = id + 1000 WHERE k < 50").await;
        c.ok("DELETE FROM copy WHERE k > 90 ORDER BY k LIMIT 30").await;
        assert_eq!(c.rows(&format!("SELECT COUNT(*), SUM(k) FROM p{n}")).await, c.rows("SELECT COUNT(*), SUM(k) FROM copy").await);
        assert_eq!(c.rows(&format!("CHECK TABLE p{n}")).await[0][3], "OK");
    }
}
