//! Full-text searches where Highkey differs from InnoDB, and how they are carried out. What they find and how they rank is in `tests/golden/full_text.sql`.

use super::{Server, table};

const FIND: &str = "SELECT id FROM t WHERE MATCH (v) AGAINST ('apple') ORDER BY id";

async fn fruit(server: &Server) -> super::Client {
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100), FULLTEXT (v))").await;
    c.ok("INSERT INTO t VALUES (1, 'red apple'), (2, 'green apple'), (3, 'pear'), (4, NULL)").await;
    c
}

/// InnoDB shows committed rows only.
#[tokio::test]
async fn a_transaction_finds_its_own_rows() {
    let server = Server::new();
    let mut c = fruit(&server).await;
    let mut other = server.client().await;
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (5, 'old apple')").await;
    c.ok("UPDATE t SET v = 'plum' WHERE id = 1").await;
    assert_eq!(c.rows(FIND).await, table("2|5"));
    assert_eq!(other.rows(FIND).await, table("1|2"));
    c.ok("ROLLBACK").await;
    assert_eq!(c.rows(FIND).await, table("1|2"));
    // A snapshot finds what it sees.
    other.ok("BEGIN").await;
    assert_eq!(other.rows(FIND).await, table("1|2"));
    c.ok("DELETE FROM t WHERE MATCH (v) AGAINST ('red')").await;
    c.ok("INSERT INTO t VALUES (6, 'new apple')").await;
    assert_eq!(other.rows(FIND).await, table("1|2"));
    other.ok("COMMIT").await;
    assert_eq!(other.rows(FIND).await, table("2|6"));
}

#[tokio::test]
async fn a_search_is_settled_anew_each_time() {
    let server = Server::new();
    let mut c = fruit(&server).await;
    c.ok("PREPARE s FROM 'SELECT id FROM t WHERE MATCH (v) AGAINST (?) ORDER BY id'").await;
    for round in 0..4 {
        c.ok("SET @w = 'apple'").await;
        assert_eq!(c.value("SELECT COUNT(*) FROM t WHERE MATCH (v) AGAINST ('apple')").await, (2 + round).to_string());
        assert_eq!(c.rows("EXECUTE s USING @w").await.len(), 2 + round);
        c.ok("SET @w = 'pear'").await;
        assert_eq!(c.rows("EXECUTE s USING @w").await, table("3"));
        c.ok(&format!("INSERT INTO t VALUES ({}, 'one more apple')", 10 + round)).await;
    }
}

#[tokio::test]
async fn both_executors_find_the_same() {
    let server = Server::new();
    let mut c = fruit(&server).await;
    for executor in ["FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = '{executor}'")).await;
        assert_eq!(c.rows(FIND).await, table("1|2"), "{executor}");
        assert_eq!(c.rows("SELECT id FROM t WHERE MATCH (v) AGAINST ('+apple -green' IN BOOLEAN MODE)").await, table("1"), "{executor}");
        assert_eq!(c.rows("SELECT a.id, b.id FROM t a JOIN t b ON b.id = a.id + 1 WHERE MATCH (a.v) AGAINST ('green')").await, table("2 3"), "{executor}");
    }
}

#[tokio::test]
async fn rows_are_found_by_the_index_of_words() {
    let server = Server::new();
    let mut c = fruit(&server).await;
    let plan = c.rows("EXPLAIN SELECT * FROM t WHERE MATCH (v) AGAINST ('apple')").await;
    assert_eq!(plan[0][4..8], ["fulltext", "v", "v", "0"], "{plan:?}");
    let plan = c.rows("EXPLAIN SELECT * FROM t WHERE id = 1 AND MATCH (v) AGAINST ('apple')").await;
    assert_eq!(plan[0][4], "const", "{plan:?}");
    // By the hidden row id.
    c.ok("CREATE TABLE n (v TEXT, k INT, FULLTEXT (v))").await;
    c.ok("INSERT INTO n VALUES ('one apple', 1), ('two pears', 2), ('three apples', 3), ('apple pie', 4)").await;
    let plan = c.rows("EXPLAIN SELECT * FROM n WHERE MATCH (v) AGAINST ('apple')").await;
    assert_eq!(plan[0][4], "fulltext", "{plan:?}");
    for executor in ["FAST", "DATAFUSION"] {
        c.ok(&format!("SET highkey_executor = '{executor}'")).await;
        assert_eq!(c.rows("SELECT k FROM n WHERE MATCH (v) AGAINST ('apple') ORDER BY k").await, table("1|4"), "{executor}");
    }
    c.ok("DELETE FROM n WHERE MATCH (v) AGAINST ('pie')").await;
    assert_eq!(c.rows("SELECT k FROM n ORDER BY k").await, table("1|2|3"));
}

/// Sizes are given at start, where a golden script cannot give them; an index keeps those that it was made with.
#[tokio::test]
async fn sizes_of_words_are_those_of_the_start() {
    let server = Server::with(|settings| {
        for (name, size) in [("innodb-ft-min-token-size", "2"), ("innodb-ft-max-token-size", "10"), ("ngram-token-size", "3")] {
            settings.set(name, Some(size)).unwrap();
        }
        assert!(settings.warnings().is_empty());
    });
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v TEXT, w TEXT, FULLTEXT (v), FULLTEXT (w) WITH PARSER ngram)").await;
    c.ok("INSERT INTO t VALUES (1, 'xy elevenchars z', 'pqrs'), (2, '日本', '東京都 日本')").await;
    for (text, ids) in [("xy", "1"), ("elevenchars", ""), ("z", ""), ("日本", "2")] {
        let rows = c.rows(&format!("SELECT id FROM t WHERE MATCH (v) AGAINST ('{text}')")).await;
        assert_eq!(rows, table(ids), "{text}");
    }
    for (text, ids) in [("qrs", "1"), ("pq", ""), ("東京都", "2"), ("日本", "")] {
        let rows = c.rows(&format!("SELECT id FROM t WHERE MATCH (w) AGAINST ('{text}')")).await;
        assert_eq!(rows, table(ids), "{text}");
    }
    assert_eq!(c.rows("SELECT id FROM t WHERE MATCH (w) AGAINST ('日*' IN BOOLEAN MODE)").await, table(""));
    assert_eq!(c.rows("SELECT id FROM t WHERE MATCH (w) AGAINST ('東京*' IN BOOLEAN MODE)").await, table("2"));
    assert_eq!(c.error("SET GLOBAL ngram_token_size = 2").await.0, 1238);
    assert_eq!(c.rows("CHECK TABLE t").await[0][3], "OK");
}

/// An index keeps its stopwords in memory.
#[tokio::test]
async fn there_are_not_too_many_stopwords() {
    let server = Server::new();
    let mut c = server.client().await;
    let mut schema = c.rows("SELECT DATABASE()").await;
    let schema = schema.remove(0).remove(0);
    c.ok("CREATE TABLE stop (value VARCHAR(8000))").await;
    c.ok("INSERT INTO stop VALUES (REPEAT('x', 8000))").await;
    for _ in 0..9 {
        c.ok("INSERT INTO stop SELECT value FROM stop").await;
    }
    c.ok(&format!("SET innodb_ft_user_stopword_table = '{schema}/stop'")).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100), FULLTEXT (v))").await;
    c.ok("INSERT INTO stop SELECT value FROM stop").await;
    assert_eq!(c.error("CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(100), FULLTEXT (v))").await.0, 1235);
}

/// What an index was made with stays, whatever the variables and the table of stopwords are later; a table made like it has what is in force then.
#[tokio::test]
async fn an_index_keeps_its_stopwords() {
    let server = Server::new();
    let mut c = server.client().await;
    let mut schema = c.rows("SELECT DATABASE()").await;
    let schema = schema.remove(0).remove(0);
    c.ok("CREATE TABLE stop (value VARCHAR(30))").await;
    c.ok("INSERT INTO stop VALUES ('apple'), (NULL)").await;
    c.ok(&format!("SET innodb_ft_user_stopword_table = '{schema}/stop'")).await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100), FULLTEXT (v))").await;
    c.ok("INSERT INTO stop VALUES ('pear')").await;
    c.ok("SET innodb_ft_user_stopword_table = NULL").await;
    c.ok("INSERT INTO t VALUES (1, 'the apple'), (2, 'the pear')").await;
    let find = |table: &str, word: &str| format!("SELECT id FROM {table} WHERE MATCH (v) AGAINST ('{word}') ORDER BY id");
    for (word, ids) in [("apple", ""), ("pear", "2"), ("the", "1|2")] {
        assert_eq!(c.rows(&find("t", word)).await, table(ids), "{word}");
    }
    c.ok("ALTER TABLE t ADD COLUMN k INT FIRST").await;
    assert_eq!(c.rows(&find("t", "apple")).await, table(""));
    c.ok("CREATE TABLE u LIKE t").await;
    c.ok("INSERT INTO u SELECT * FROM t").await;
    assert_eq!(c.rows(&find("u", "apple")).await, table("1"));
    assert_eq!(c.rows("CHECK TABLE t").await[0][3], "OK");
}
