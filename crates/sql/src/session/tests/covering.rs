//! Indexes whose entries have all that a query asks for: no row is looked at.

use super::{Client, Server};

/// 12,000 rows of about 200 bytes in `t`, and no cache of columns.
async fn filled(server: &Server) -> Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT, b VARBINARY(8) NOT NULL, at TIMESTAMP NULL, e ENUM('x', 'y'), n VARCHAR(10), d DOUBLE, s VARCHAR(200), KEY kb (k, b DESC), UNIQUE KEY at_id (at, id), KEY e (e), KEY n (n), KEY d (d))").await;
    let pad = "s".repeat(170);
    for chunk in 0..6 {
        let row = |id: i32| {
            let k = if id % 13 == 0 { "NULL".to_owned() } else { (id % 500).to_string() };
            let at = if id % 7 == 0 { "NULL".to_owned() } else { format!("'2024-03-{:02} 12:00:{:02}'", 1 + id % 28, id % 60) };
            let even = |n: i32| n % 2 == 0;
            // A few rows have what nearly no other has, in two forms.
            let (n, d) = match (id % 1000 == 5, even(id / 1000)) {
                (true, true) => ("rare", "0"),
                (true, false) => ("RARE", "-0e0"),
                (false, _) => (if even(id) { "n" } else { "N" }, "1.5"),
            };
            format!("({id}, {k}, 'b{}', {at}, '{}', '{n}', {d}, '{pad}{id}')", id % 3, if even(id) { "x" } else { "y" })
        };
        let rows: Vec<String> = (chunk * 2000..chunk * 2000 + 2000).map(row).collect();
        c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    }
    c.ok("CREATE TABLE few (x INT, y INT)").await;
    c.ok("INSERT INTO few VALUES (3, 1), (77, 2), (77, 3), (600, 4), (NULL, 5)").await;
    c.rows("ANALYZE TABLE t, few").await;
    c
}

fn server() -> Server {
    Server::with(|settings| settings.set("highkey_column_cache_size", Some("0")).unwrap())
}

/// What `t` is called where no index may be used.
const PLAIN: &str = "t IGNORE INDEX (kb, at_id, e, n, d)";

const QUERIES: &[&str] = &[
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(*), COUNT(k), SUM(k), COUNT(DISTINCT k), MIN(b), MAX(b) FROM t",
    "SELECT k, COUNT(*), SUM(id), MAX(b) FROM t GROUP BY k ORDER BY k",
    "SELECT e, COUNT(*) FROM t GROUP BY e ORDER BY e",
    "SELECT MIN(at), MAX(at), COUNT(at), COUNT(DISTINCT at) FROM t",
    "SELECT id, k, b FROM t WHERE k = 77 ORDER BY id",
    "SELECT k, b, id FROM t WHERE k BETWEEN 30 AND 44 ORDER BY id DESC",
    "SELECT k, b, id FROM t WHERE k IS NULL AND b > 'b0' ORDER BY id",
    "SELECT COUNT(*), SUM(k) FROM t WHERE k > 20 AND b <> 'b1'",
    "SELECT id, at FROM t WHERE at > '2024-03-27 12:00:30' ORDER BY id",
    "SELECT id, e FROM t WHERE e = 'y' AND id < 60 ORDER BY id",
    "SELECT id, n FROM t WHERE n = 'n' AND id < 60 ORDER BY id",
    "SELECT COUNT(*), MIN(BINARY n) FROM t WHERE n = 'rare'",
    "SELECT COUNT(*) FROM t WHERE n = 'N'",
    "SELECT id, d FROM t WHERE d = 0 AND id < 60 ORDER BY id",
    "SELECT few.y, t.id, t.b FROM few JOIN t ON t.k = few.x ORDER BY 1, 2",
    "SELECT few.y, t.id, t.s FROM few LEFT JOIN t ON t.k = few.x ORDER BY 1, 2",
    "SELECT y FROM few WHERE EXISTS (SELECT 1 FROM t WHERE t.k = few.x) ORDER BY 1",
    "SELECT y, (SELECT COUNT(*) FROM t WHERE t.k = few.x AND t.b = 'b1') FROM few ORDER BY 1",
    "SELECT id FROM t WHERE at = '2024-03-02 12:00:01' AND id = 1",
    "SELECT k, id FROM t ORDER BY k, b DESC, id LIMIT 30",
    "SELECT k, id FROM t ORDER BY k DESC, b, id DESC LIMIT 10 OFFSET 400",
];

const WAYS: &[&str] = &[
    "highkey_executor = 'FAST'",
    "highkey_executor = 'AUTO'",
    "highkey_executor = 'DATAFUSION', force_parallel_execute = OFF",
    "highkey_executor = 'DATAFUSION', force_parallel_execute = ON, parallel_cost_threshold = 0, parallel_default_dop = 3",
];

async fn compare(c: &mut Client) {
    for sql in QUERIES {
        c.ok("SET highkey_executor = 'DATAFUSION', force_parallel_execute = OFF").await;
        let plain = c.rows(&sql.replace("FROM t", &format!("FROM {PLAIN}")).replace("JOIN t", &format!("JOIN {PLAIN}"))).await;
        // In another time zone nothing was at that moment.
        assert!(!plain.is_empty() || sql.contains("at ="), "{sql}");
        for way in WAYS {
            c.ok(&format!("SET {way}")).await;
            assert_eq!(c.rows(sql).await, plain, "{sql} with {way}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_answer_what_rows_do() {
    let server = server();
    let mut c = filled(&server).await;
    compare(&mut c).await;
    c.ok("SET time_zone = '+05:30'").await;
    compare(&mut c).await;
    // Its own changes, and those of others, which it does not see.
    c.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
    let before = c.rows("SELECT COUNT(*), SUM(k), MAX(b) FROM t").await;
    let mut other = server.connect();
    other.ok("UPDATE d.t SET k = k + 1, b = 'z' WHERE id % 5 = 1").await;
    other.ok("DELETE FROM d.t WHERE id % 50 = 2").await;
    other.ok("INSERT INTO d.t (id, k, b) VALUES (100000, 77, 'new')").await;
    for way in WAYS {
        c.ok(&format!("SET {way}")).await;
        assert_eq!(c.rows("SELECT COUNT(*), SUM(k), MAX(b) FROM t").await, before, "{way}");
        assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "12000", "{way}");
    }
    compare(&mut c).await;
    c.ok("INSERT INTO t (id, k, b) VALUES (200000, 78, 'own')").await;
    c.ok("UPDATE t SET k = 77, n = UPPER(n), d = -d WHERE id IN (4, 7, 10)").await;
    compare(&mut c).await;
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "12001");
    c.ok("ROLLBACK").await;
    compare(&mut c).await;
    assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "11761");
}

/// The key and the last column of the line that EXPLAIN has of the last table.
async fn way(c: &mut Client, sql: &str) -> [String; 2] {
    let mut rows = c.rows(&format!("EXPLAIN {sql}")).await;
    let row = rows.pop().unwrap();
    [row[6].clone(), row[11].clone()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_says_where_no_row_is_looked_at() {
    let server = server();
    let mut c = filled(&server).await;
    for (sql, expected) in [
        ("SELECT id, k, b FROM t WHERE k = 77", ["kb", "Using index"]),
        ("SELECT id, k, s FROM t WHERE k = 77", ["kb", "NULL"]),
        ("SELECT id, k FROM t WHERE k = 77 AND id > 500", ["kb", "Using where; Using index"]),
        ("SELECT COUNT(*) FROM t WHERE n = 'rare'", ["n", "Using index"]),
        // The text itself is in the row only.
        ("SELECT n FROM t WHERE n = 'rare'", ["n", "NULL"]),
        ("SELECT d FROM t WHERE d = 0", ["d", "NULL"]),
        ("SELECT k FROM t ORDER BY k DESC LIMIT 3", ["kb", "Backward index scan; Using index"]),
        ("SELECT few.y, t.b FROM few JOIN t ON t.k = few.x", ["kb", "Using index"]),
        ("SELECT few.y, t.s FROM few JOIN t ON t.k = few.x", ["kb", "NULL"]),
    ] {
        assert_eq!(way(&mut c, sql).await, expected, "{sql}");
    }
    // Of two indexes that answer the same, the one that has all.
    c.ok("CREATE TABLE two (id INT PRIMARY KEY, a INT, b INT, c INT, KEY first (a), KEY second (a, b))").await;
    c.ok("INSERT INTO two VALUES (1, 1, 1, 1), (2, 2, 2, 2), (3, 1, 3, 3)").await;
    assert_eq!(way(&mut c, "SELECT b FROM two WHERE a = 1").await, ["second", "Using index"]);
    assert_eq!(way(&mut c, "SELECT id FROM two WHERE a = 1").await, ["first", "Using index"]);
    assert_eq!(way(&mut c, "SELECT c FROM two WHERE a = 1").await, ["first", "NULL"]);
    assert_eq!(way(&mut c, "SELECT b FROM two WHERE a = 1 FOR UPDATE").await, ["first", "NULL"]);
    assert!(c.value("EXPLAIN FORMAT=JSON SELECT id, k, b FROM t WHERE k = 77").await.contains("\"using_index\": true"));
    assert!(!c.value("EXPLAIN FORMAT=JSON SELECT id, k, s FROM t WHERE k = 77").await.contains("using_index"));
    c.ok("SET highkey_executor = 'DATAFUSION', force_parallel_execute = OFF").await;
    for (sql, expected) in [
        ("SELECT SUM(k), COUNT(DISTINCT k) FROM t", ["kb", "Using index"]),
        ("SELECT SUM(k), COUNT(DISTINCT s) FROM t", ["NULL", "NULL"]),
        // The order of the table shows.
        ("SELECT k FROM t", ["NULL", "NULL"]),
        ("SELECT GROUP_CONCAT(k) FROM t", ["NULL", "NULL"]),
        ("SELECT SUM(k) FROM t WHERE k >= 40 AND k <= 60", ["kb", "Using index"]),
    ] {
        assert_eq!(way(&mut c, sql).await, expected, "{sql}");
    }
    assert!(c.value("EXPLAIN FORMAT=TREE SELECT SUM(k), COUNT(DISTINCT k) FROM t").await.contains("Index scan on t using kb"));
    // The first value of all is that of the table's first row, not of the index's.
    for way in ["force_parallel_execute = OFF", "force_parallel_execute = ON, parallel_cost_threshold = 0, parallel_default_dop = 3"] {
        c.ok(&format!("SET {way}")).await;
        assert_eq!(c.rows("SELECT ANY_VALUE(b), SUM(k) > 0 FROM t").await, [["b0", "1"]], "{way}");
    }
}
