//! Histograms: what of MySQL's answers the golden scripts cannot record, and what they are good for.

use super::{Client, Server, table};

async fn filled(c: &mut Client) {
    // 9 of 10 rows have k = 1.
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, s VARCHAR(60), v INT, KEY by_k (k))").await;
    let rows: Vec<String> = (0..2000).map(|id| format!("({id}, {}, 'v{}', {id})", if id % 10 > 0 { 1 } else { id }, id % 7)).collect();
    c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
}

async fn filtered(c: &mut Client, condition: &str) -> String {
    c.rows(&format!("EXPLAIN SELECT * FROM t WHERE {condition}")).await[0][10].clone()
}

#[tokio::test]
async fn the_way_to_the_rows_follows_the_histogram() {
    let server = Server::new();
    let mut c = server.client().await;
    filled(&mut c).await;
    c.ok("SET highkey_executor = 'DATAFUSION'").await;
    let plan = async |c: &mut Client, condition: &str| c.value(&format!("EXPLAIN FORMAT=TREE SELECT SUM(v) FROM t WHERE {condition}")).await;
    c.rows("ANALYZE TABLE t UPDATE HISTOGRAM ON k").await;
    // Nearly every row: descents by the index would cost more than the scan.
    let many = plan(&mut c, "k = 1").await;
    assert!(many.contains("Table scan on t"), "{many}");
    let few = plan(&mut c, "k = 500").await;
    assert!(few.contains("using by_k"), "{few}");
    let range = plan(&mut c, "k > 1900").await;
    assert!(range.contains("using by_k"), "{range}");
    c.rows("ANALYZE TABLE t DROP HISTOGRAM ON k").await;
    // Then the index itself tells.
    let many = plan(&mut c, "k = 1").await;
    assert!(many.contains("Table scan on t"), "{many}");
    let few = plan(&mut c, "k = 500").await;
    assert!(few.contains("using by_k"), "{few}");
    assert_eq!(c.value("SELECT COUNT(*) FROM t WHERE k = 1").await, "1800");
}

#[tokio::test]
async fn explain_filters_by_histograms() {
    let server = Server::new();
    let mut c = server.client().await;
    filled(&mut c).await;
    assert_eq!(filtered(&mut c, "v = 3").await, "10.00");
    assert_eq!(filtered(&mut c, "v > 3").await, "33.33");
    assert_eq!(filtered(&mut c, "v BETWEEN 3 AND 4").await, "11.11");
    assert_eq!(filtered(&mut c, "v + 1 = 3").await, "100.00");
    c.rows("ANALYZE TABLE t UPDATE HISTOGRAM ON k, s, v WITH 16 BUCKETS").await;
    assert_eq!(filtered(&mut c, "v < 500").await, "25.00");
    assert_eq!(filtered(&mut c, "v >= 500 AND v < 1000").await, "25.00");
    assert_eq!(filtered(&mut c, "v < 500.5").await, "25.05");
    assert_eq!(filtered(&mut c, "v IS NULL").await, "0.05");
    assert_eq!(filtered(&mut c, "NOT v < 500").await, "75.00");
    assert_eq!(filtered(&mut c, "s = 'V3'").await, "14.30");
    assert_eq!(filtered(&mut c, "s IN ('v1', 'v2') OR v < 1000").await, "64.30");
    // By the index: what is left to be checked.
    assert_eq!(filtered(&mut c, "id = 3 AND v < 500").await, "100.00");
}

#[tokio::test]
async fn a_large_table_is_sampled() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(60))").await;
    for first in (0..20_000).step_by(2000) {
        let rows: Vec<String> = (first..first + 2000).map(|id| format!("({id}, 'text {}')", id % 5000)).collect();
        c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    }
    c.ok("SET histogram_generation_max_mem_size = 1000000").await;
    c.rows("ANALYZE TABLE t UPDATE HISTOGRAM ON s").await;
    let rate = "SELECT histogram->'$.\"sampling-rate\"' FROM information_schema.column_statistics";
    let rate: f64 = c.value(rate).await.parse().unwrap();
    // 20000 rows of up to 168 bytes, and what goes with them.
    assert!((0.1..0.5).contains(&rate), "{rate}");
    let of: f64 = filtered(&mut c, "s < 'text 25'").await.parse().unwrap();
    assert!((20.0..45.0).contains(&of), "{of}: a third of the texts");
}

#[tokio::test]
async fn every_name_is_answered_in_order() {
    let server = Server::new();
    let mut c = server.client().await;
    filled(&mut c).await;
    let rows = c.rows("ANALYZE TABLE t UPDATE HISTOGRAM ON V, nope, id, k").await;
    let said: Vec<_> = rows.iter().map(|row| format!("{} {} {}", row[1], row[2], row[3])).collect();
    assert_eq!(
        said,
        [
            "histogram Error The column 'id' is covered by a single-part unique index.",
            "histogram status Histogram statistics created for column 'k'.",
            "histogram Error The column 'nope' does not exist.",
            "histogram status Histogram statistics created for column 'v'.",
        ]
    );
    assert_eq!(c.rows("SELECT column_name FROM information_schema.column_statistics").await, table("k|v"));
}
