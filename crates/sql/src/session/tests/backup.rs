//! LOCK INSTANCE FOR BACKUP between sessions. What one session alone may do under it is in `tests/golden/backup_lock.sql`.

use super::locks::until;
use super::{Server, table};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_keeps_definitions_and_nothing_else() {
    let server = Server::new();
    let (mut a, mut b, mut c) = (server.client().await, server.client().await, server.client().await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("LOCK INSTANCE FOR BACKUP").await;
    c.ok("LOCK INSTANCE FOR BACKUP").await;
    c.ok("UNLOCK INSTANCE").await;
    b.ok("SET lock_wait_timeout = 1").await;
    b.ok("INSERT INTO t VALUES (1)").await;
    b.ok("CREATE TEMPORARY TABLE x (id INT)").await;
    b.ok("FLUSH TABLES WITH READ LOCK").await;
    b.ok("UNLOCK TABLES").await;
    assert_eq!((b.error("CREATE TABLE u (id INT)").await.0, b.error("CREATE USER u").await.0), (1205, 1205));
    let optimized = b.rows("OPTIMIZE TABLE t").await;
    assert_eq!((optimized[0][2].as_str(), optimized[1][3].as_str()), ("Error", "Operation failed"));
    a.ok("CREATE TABLE own (id INT)").await;
    b.ok("SET lock_wait_timeout = 100").await;
    let waiting = tokio::spawn(async move {
        b.ok("DROP TABLE own").await;
        b
    });
    until(&mut c, "Waiting for backup lock").await;
    let held = "SELECT lock_type, lock_duration, lock_status FROM performance_schema.metadata_locks WHERE object_type = 'BACKUP LOCK'";
    assert_eq!(c.rows(held).await, table("SHARED EXPLICIT GRANTED|INTENTION_EXCLUSIVE TRANSACTION PENDING"));
    // A session that ends unlocks.
    drop(a);
    let mut b = waiting.await.unwrap();
    assert_eq!((c.rows(held).await, b.error("SELECT * FROM own").await.0), (table(""), 1146));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_waits_for_definitions() {
    let server = Server::new();
    let (mut a, mut b, mut c) = (server.client().await, server.client().await, server.client().await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    a.ok("BEGIN").await;
    a.rows("SELECT * FROM t").await;
    let altering = tokio::spawn(async move {
        b.ok("ALTER TABLE t ADD v INT").await;
        b
    });
    until(&mut c, "Waiting for table metadata lock").await;
    c.ok("SET lock_wait_timeout = 1").await;
    assert_eq!(c.error("LOCK INSTANCE FOR BACKUP").await.0, 1205);
    a.ok("COMMIT").await;
    altering.await.unwrap();
    c.ok("LOCK INSTANCE FOR BACKUP").await;
    c.session.reset().await.unwrap();
    a.ok("ALTER TABLE t ADD w INT").await;
}

/// Statements that wait for one of them do not have the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_takes_its_locks_in_any_order() {
    let server = Server::new();
    let (mut a, mut b, mut c) = (server.client().await, server.client().await, server.client().await);
    a.ok("FLUSH TABLES WITH READ LOCK").await;
    let creating = tokio::spawn(async move { b.ok("CREATE TABLE t (id INT PRIMARY KEY)").await });
    until(&mut c, "Waiting for global read lock").await;
    a.ok("LOCK INSTANCE FOR BACKUP").await;
    a.ok("UNLOCK TABLES").await;
    until(&mut c, "Waiting for backup lock").await;
    a.ok("FLUSH TABLES WITH READ LOCK").await;
    a.ok("UNLOCK INSTANCE").await;
    until(&mut c, "Waiting for global read lock").await;
    a.ok("UNLOCK TABLES").await;
    creating.await.unwrap();
    a.ok("INSERT INTO t VALUES (1)").await;
}
