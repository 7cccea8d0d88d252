//! Queries that a row fails: what they have warned of before is that of the rows before, whoever runs them. Answers of MySQL 8.0.12.

use super::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_warnings_before_a_failure_stay() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(10))").await;
    c.ok("INSERT INTO t VALUES (1, '1x'), (2, '2y'), (3, '3z'), (4, 'w')").await;
    for (query, warnings) in [
        ("SELECT a, CAST(s AS SIGNED), 9223372036854775805 + a FROM t", &["1x", "2y", "3z"][..]),
        ("SELECT a, 9223372036854775805 + a, CAST(s AS SIGNED) FROM t", &["1x", "2y"]),
        ("SELECT SUM(CAST(s AS SIGNED)), SUM(9223372036854775805 + a) FROM t", &["1x", "2y", "3z"]),
    ] {
        for executor in ["FAST", "DATAFUSION"] {
            c.ok(&format!("SET highkey_executor = {executor}")).await;
            let error = c.error(query).await;
            let mut wanted: Vec<Vec<String>> =
                warnings.iter().map(|text| vec!["Warning".to_owned(), "1292".to_owned(), format!("Truncated incorrect INTEGER value: '{text}'")]).collect();
            wanted.push(vec!["Error".to_owned(), "1690".to_owned(), error.1]);
            assert_eq!(c.rows("SHOW WARNINGS").await, wanted, "{query} on {executor}");
        }
    }
}

/// Not again what would not be the same again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_assigns_variables_runs_once() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    c.ok("INSERT INTO t VALUES (1), (2), (3)").await;
    c.ok("SET highkey_executor = DATAFUSION, @n = 0").await;
    assert_eq!(c.error("SELECT @n := @n + a, 9223372036854775805 + a FROM t").await.0, 1690);
    assert!(c.value("SELECT @n").await.parse::<i64>().unwrap() <= 6);
}
