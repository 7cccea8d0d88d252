//! LOCK TABLES and FLUSH TABLES WITH READ LOCK between sessions. What one session alone may do under them is in `tests/golden/locks.sql`.

use super::{Client, Server, table};

/// Waits until some session's state is this.
pub(super) async fn until(c: &mut Client, state: &str) {
    while c.value(&format!("SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE '{state}%'")).await == "0" {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn lock_tables_restricts_and_excludes() {
    let server = Server::new();
    let mut a = server.client().await;
    let mut b = server.client().await;
    a.ok("CREATE TABLE t (id INT)").await;
    a.ok("CREATE TABLE u (id INT)").await;
    a.ok("LOCK TABLES t READ").await;
    assert_eq!(a.error("SELECT * FROM u").await.0, 1100);
    assert_eq!(a.error("INSERT INTO t VALUES (1)").await.0, 1099);
    b.ok("SET lock_wait_timeout = 1").await;
    assert_eq!(b.error("INSERT INTO t VALUES (1)").await.0, 1205);
    a.ok("UNLOCK TABLES").await;
    b.ok("INSERT INTO t VALUES (1)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_tables_waits_for_transactions() {
    let server = Server::new();
    let (mut a, mut b, mut c) = (server.client().await, server.client().await, server.client().await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("BEGIN").await;
    a.rows("SELECT * FROM t").await;
    b.ok("SET lock_wait_timeout = 1").await;
    assert_eq!(b.error("LOCK TABLES t WRITE").await.0, 1205);
    b.ok("LOCK TABLES t READ").await;
    // Readers do not wait behind a writer that does.
    let writing = tokio::spawn(async move {
        a.ok("INSERT INTO t VALUES (1)").await;
        a.ok("COMMIT").await;
        a
    });
    until(&mut c, "Waiting for table metadata lock").await;
    assert_eq!(c.rows("SELECT * FROM t").await, table(""));
    b.ok("UNLOCK TABLES").await;
    let mut a = writing.await.unwrap();
    a.ok("LOCK TABLES t WRITE").await;
    b.ok("SET lock_wait_timeout = 1").await;
    assert_eq!((b.error("SELECT * FROM t").await.0, b.error("DROP TABLE t").await.0, b.error("DROP DATABASE d").await.0), (1205, 1205, 1205));
    a.ok("ALTER TABLE t ADD v INT DEFAULT 7").await;
    assert_eq!(a.rows("OPTIMIZE TABLE t").await[1][2..], ["status", "OK"]);
    assert_eq!(a.rows("SELECT * FROM t").await, table("1 7"));
    a.ok("ALTER TABLE t RENAME TO u").await;
    assert_eq!((a.value("SELECT v FROM u").await, b.error("SELECT * FROM u").await.0, b.error("SELECT * FROM t").await.0), ("7".to_owned(), 1205, 1146));
    a.ok("SET autocommit = 0").await;
    a.ok("INSERT INTO u VALUES (9, 9)").await;
    drop(a);
    assert_eq!(b.value("SELECT v FROM u").await, "7", "a session that ends rolls back and unlocks");
    b.ok("DROP TABLE u").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_global_read_lock_stops_writers_and_commits() {
    let server = Server::new();
    let [mut a, mut b, mut c, mut d] = [server.client().await, server.client().await, server.client().await, server.client().await];
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("CREATE TABLE s (id INT PRIMARY KEY)").await;
    a.ok("BEGIN").await;
    a.ok("INSERT INTO t VALUES (1)").await;
    b.ok("FLUSH TABLES WITH READ LOCK").await;
    c.ok("SET lock_wait_timeout = 1").await;
    for change in ["INSERT INTO t VALUES (2)", "SELECT * FROM t FOR UPDATE", "CREATE TABLE u (id INT)", "CREATE USER u", "LOCK TABLES t WRITE"] {
        assert_eq!(c.error(change).await.0, 1205, "{change}");
    }
    c.ok("LOCK TABLES s READ").await;
    c.ok("UNLOCK TABLES").await;
    let committing = tokio::spawn(async move {
        a.ok("COMMIT").await;
        a
    });
    until(&mut b, "Waiting for commit lock").await;
    // What a backup does: all its sessions see one state.
    d.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
    assert_eq!((b.rows("SELECT * FROM t").await, c.rows("SELECT * FROM t").await), (table(""), table("")));
    b.ok("UNLOCK TABLES").await;
    let mut a = committing.await.unwrap();
    c.ok("INSERT INTO t VALUES (2)").await;
    assert_eq!((a.rows("SELECT * FROM t").await, d.rows("SELECT * FROM t").await), (table("1|2"), table("")));
    b.ok("FLUSH TABLES WITH READ LOCK").await;
    let waiting = tokio::spawn(async move { c.ok("INSERT INTO t VALUES (3)").await });
    until(&mut a, "Waiting for global read lock").await;
    drop(b);
    assert_eq!(waiting.await.unwrap().affected_rows, 1, "a session that ends unlocks");
    // A commit that is not let through is undone.
    d.ok("COMMIT").await;
    a.ok("SET lock_wait_timeout = 1").await;
    a.ok("BEGIN").await;
    a.ok("INSERT INTO t VALUES (4)").await;
    d.ok("FLUSH TABLES WITH READ LOCK").await;
    assert_eq!(a.error("COMMIT").await.0, 1205);
    d.ok("UNLOCK TABLES").await;
    assert_eq!(a.rows("SELECT * FROM t").await, table("1|2|3"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_global_read_lock_waits_for_statements_that_run() {
    let server = Server::new();
    let [mut a, mut b, mut c] = [server.client().await, server.client().await, server.client().await];
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    let inserting = tokio::spawn(async move {
        a.ok("INSERT INTO t SELECT SLEEP(0.2)").await;
        a
    });
    until(&mut b, "User sleep").await;
    b.ok("FLUSH TABLES WITH READ LOCK").await;
    assert_eq!(b.value("SELECT COUNT(*) FROM t").await, "1", "with its commit");
    let mut a = inserting.await.unwrap();
    b.ok("UNLOCK TABLES").await;
    // DDL that waits for a transaction that wants to write: the transaction is the victim, and all go on.
    a.ok("BEGIN").await;
    a.rows("SELECT * FROM t").await;
    let altering = tokio::spawn(async move {
        b.ok("ALTER TABLE t ADD v INT").await;
        b
    });
    until(&mut a, "Waiting for table metadata lock").await;
    let flushing = tokio::spawn(async move {
        c.ok("FLUSH TABLES WITH READ LOCK").await;
        c
    });
    until(&mut a, "Waiting for global read lock").await;
    assert_eq!(a.error("INSERT INTO t VALUES (5)").await.0, 1213);
    let mut b = altering.await.unwrap();
    let mut c = flushing.await.unwrap();
    assert_eq!(c.rows("SELECT * FROM t").await, table("0 NULL"));
    assert_eq!(c.error("INSERT INTO t VALUES (1, 1)").await.0, 1223);
    c.session.close().await;
    b.ok("INSERT INTO t VALUES (1, 1)").await;
}

#[tokio::test]
async fn open_tables_are_in_use_under_lock_tables() {
    let server = Server::new();
    let [mut a, mut b, mut c] = [server.client().await, server.client().await, server.client().await];
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("CREATE TABLE s (id INT PRIMARY KEY)").await;
    assert_eq!(c.rows("SHOW OPEN TABLES").await, table("d s 0 0|d t 0 0"));
    a.ok("LOCK TABLES t READ").await;
    b.ok("LOCK TABLES t READ, s WRITE").await;
    assert_eq!(c.rows("SHOW OPEN TABLES").await, table("d s 1 0|d t 2 0"));
    a.ok("UNLOCK TABLES").await;
    assert_eq!(c.rows("SHOW OPEN TABLES").await, table("d s 1 0|d t 1 0"));
}
