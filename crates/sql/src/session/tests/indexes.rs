//! What indexes hold, as information_schema and SHOW STATUS tell it.

use super::{Answer, Client, Server, table};
use crate::information_schema;
use crate::plan::Wanted;
use crate::session::Interruption;

/// `t`: 4000 rows in ascending order, in several statements, so that pages split; a secondary index; one long value.
async fn filled(c: &mut Client) {
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, pad VARCHAR(200) NOT NULL, long_text LONGTEXT, KEY by_k (k))").await;
    for first in (0..4000).step_by(500) {
        let rows: Vec<String> = (first..first + 500).map(|id| format!("({id}, {}, REPEAT('x', 150), NULL)", id * 7919 % 4000)).collect();
        c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    }
    c.ok("UPDATE t SET long_text = REPEAT('y', 100000) WHERE id = 5").await;
}

async fn warnings(c: &mut Client, sql: &str) -> u16 {
    match c.run(sql).await {
        Answer::Rows { end, .. } => end.warnings,
        other => panic!("{sql}: {other:?}"),
    }
}

#[tokio::test]
async fn levels_of_every_index() {
    let server = Server::new();
    let mut c = server.client().await;
    filled(&mut c).await;
    c.ok("CREATE TABLE keyless (v INT)").await;
    let levels = "SELECT index_name, level, records FROM information_schema.highkey_index_levels WHERE table_schema = 'd' AND table_name = 't'";
    let leaves = format!("{levels} AND level = 0 ORDER BY index_name");
    assert_eq!(c.rows(&leaves).await, table("by_k 0 4000|PRIMARY 0 4000"));
    // An inner page's records are the pages below it.
    let inner = "SELECT COUNT(*) FROM information_schema.highkey_index_levels a JOIN information_schema.highkey_index_levels b \
        ON a.index_id = b.index_id AND a.level = b.level + 1 WHERE a.records = b.pages AND a.table_name = 't' AND b.table_name = 't'";
    assert_eq!(c.value(inner).await, "2");
    // 100000 characters of one byte each: seven pages.
    let long = "SELECT SUM(overflow_pages), SUM(overflow_bytes) > 100000 FROM information_schema.highkey_index_levels WHERE table_name = 't'";
    assert_eq!(c.rows(long).await, table("7 1"));
    let fill = "SELECT fill_percent = TRUNCATE(data_bytes * 100 / (pages * 16384), 2), fill_percent > 85, used_bytes > data_bytes \
        FROM information_schema.highkey_index_levels WHERE table_name = 't' AND index_name = 'PRIMARY' AND level = 0";
    assert_eq!(c.rows(fill).await, table("1 1 1"));
    let all = "SELECT table_name, index_name, level, pages FROM information_schema.highkey_index_levels WHERE table_name = 'keyless'";
    assert_eq!(c.rows(all).await, table("keyless GEN_CLUST_INDEX 0 1"));
}

#[tokio::test]
async fn counters_of_every_index_and_of_all() {
    let server = Server::new();
    let mut c = server.client().await;
    filled(&mut c).await;
    let own = "SELECT index_name, key_values BETWEEN 1000 AND 4000, splits_append > 10, splits_even + splits_two_to_three + shares > 0, \
        size_pages >= used_pages FROM information_schema.highkey_index_statistics WHERE table_schema = DATABASE() ORDER BY index_name";
    assert_eq!(c.rows(own).await, table("by_k 1 0 1 1|PRIMARY 1 1 0 1"));
    // Pages in use: those of the levels, and those of the long value.
    let pages = "SELECT s.index_name, s.used_pages = SUM(l.pages + l.overflow_pages) \
        FROM information_schema.highkey_index_statistics s JOIN information_schema.highkey_index_levels l ON l.index_id = s.index_id \
        WHERE s.table_name = 't' GROUP BY s.index_name, s.used_pages ORDER BY 1";
    assert_eq!(c.rows(pages).await, table("by_k 1|PRIMARY 1"));
    let status = |name: &'static str| {
        let mut c = server.connect();
        async move { c.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).await[0][1].parse::<u64>().unwrap() }
    };
    assert!(status("Highkey_splits_append").await > 10);
    let kinds = ["append", "run", "slack", "descending", "even", "two_to_three", "inner", "root"];
    let all: Vec<Vec<String>> = c.rows("SHOW GLOBAL STATUS LIKE 'Highkey_splits_%'").await;
    let of_kind = |row: &&Vec<String>| kinds.iter().any(|kind| row[0] == format!("Highkey_splits_{kind}"));
    let sum: u64 = all.iter().filter(of_kind).map(|row| row[1].parse::<u64>().unwrap()).sum();
    assert_eq!(all.iter().filter(of_kind).count(), kinds.len());
    assert_eq!(sum, status("Highkey_page_splits").await);
    for name in ["Highkey_merges", "Highkey_restarts", "Highkey_smo_waits", "Highkey_shares"] {
        status(name).await;
    }
}

/// A table that DDL waits for or has is left out with a warning, and one that is not asked about is not looked at.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_ddl_has_are_left_out() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    c.ok("CREATE TABLE u (id INT PRIMARY KEY)").await;
    let mut reader = server.client().await;
    reader.ok("BEGIN").await;
    reader.rows("SELECT * FROM u").await;
    let mut dropper = server.client().await;
    let dropped = tokio::spawn(async move { dropper.ok("DROP TABLE u").await });
    for view in ["highkey_index_levels", "highkey_index_statistics"] {
        let all = format!("SELECT table_name FROM information_schema.{view} WHERE table_schema = 'd'");
        while warnings(&mut c, &all).await == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(c.rows(&all).await, table("t"));
        let warning = c.rows("SHOW WARNINGS").await;
        assert_eq!(warning[0][1..], ["1684", "Table 'd'.'u' was skipped since its definition is being modified by concurrent DDL statement"]);
        assert_eq!(warnings(&mut c, &format!("{all} AND table_name = 't'")).await, 0);
        assert_eq!(warnings(&mut c, &format!("{all} AND 'u' = table_name")).await, 1);
        c.ok(&format!("PREPARE p FROM \"{all} AND table_name = ?\"")).await;
        c.ok("SET @name = 't'").await;
        match c.run("EXECUTE p USING @name").await {
            Answer::Rows { rows, end, .. } => assert_eq!((rows.len(), end.warnings), (1, 0)),
            other => panic!("{other:?}"),
        }
    }
    reader.ok("COMMIT").await;
    dropped.await.unwrap();
    assert_eq!(warnings(&mut c, "SELECT * FROM information_schema.highkey_index_levels").await, 0);
}

#[tokio::test]
async fn kill_ends_the_reading_of_levels() {
    let server = Server::new();
    let mut c = server.client().await;
    filled(&mut c).await;
    let levels = information_schema::find("information_schema", "highkey_index_levels").unwrap();
    for (kind, code) in [(Interruption::Query, 1317), (Interruption::Timeout, 3024)] {
        let state = &c.session.state;
        state.process.begin_statement("Query", "".into(), false, std::time::Instant::now());
        state.process.interrupt(kind);
        let error = information_schema::rows(state, &levels, &Wanted::default(), &mut Vec::new()).unwrap_err();
        assert_eq!(error.code, code);
    }
}

/// Conditions on TABLE_SCHEMA and TABLE_NAME are used by every table of information_schema, and change no answer.
#[tokio::test]
async fn names_compare_as_the_query_says() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE Mixed (id INT PRIMARY KEY)").await;
    c.ok("CREATE TABLE other (id INT PRIMARY KEY)").await;
    for (condition, found) in [
        ("table_name = 'Mixed'", "Mixed"),
        ("table_name = 'MIXED'", ""),
        ("table_name COLLATE utf8_general_ci = 'MIXED'", "Mixed"),
        ("table_name COLLATE utf8_bin = 'mixed'", ""),
        ("table_name COLLATE utf8_bin = 'Mixed'", "Mixed"),
        ("table_name = CONCAT('oth', 'er')", "other"),
        ("table_name = 'Mixed' AND table_name = 'other'", ""),
        ("table_name = 'Mixed' OR table_name = 'other'", "Mixed|other"),
        ("table_name = NULL", ""),
    ] {
        for view in ["tables", "columns", "highkey_index_levels"] {
            let sql = format!("SELECT table_name FROM information_schema.{view} WHERE table_schema = 'd' AND ({condition}) ORDER BY table_name");
            assert_eq!(c.rows(&sql).await, table(found), "{sql}");
        }
    }
}

/// Where accents count after all letters, the beginnings of texts come in another order than the texts. (MySQL's prefix indexes find other rows.)
#[tokio::test]
async fn prefixes_of_texts_that_are_compared_level_by_level() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, x VARCHAR(20) COLLATE utf8mb4_0900_as_cs, KEY k (x(1)))").await;
    c.ok("INSERT INTO t VALUES (1, 'éa'), (2, 'eb'), (3, 'ea'), (4, 'Ea'), (5, 'Éc'), (6, 'ec')").await;
    for (condition, ids) in [("x < 'eb'", "1|3|4"), ("x > 'Éb'", "5|6"), ("x BETWEEN 'éa' AND 'eb'", "1|2"), ("x = 'éa'", "1"), ("x = 'EA'", "")] {
        for index in ["FORCE INDEX (k)", "IGNORE INDEX (k)"] {
            let found = c.rows(&format!("SELECT id FROM t {index} WHERE {condition} ORDER BY id")).await;
            assert_eq!(found, table(ids), "{condition} {index}");
        }
    }
}
