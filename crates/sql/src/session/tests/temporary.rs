//! Temporary tables as other sessions, kept plans and read-only servers see them. What they answer is in `tests/golden/temporary_tables.sql` and
//! `tests/sessions/temporary.sessions`, what they ask of an account in `privileges_k.recorded`.

use std::time::Duration;

use super::{Server, table};

/// Trees of tables, once purge has done what it has to.
async fn trees(server: &Server, expected: usize) {
    let engine = server.instance.database().engine();
    for _ in 0..1000 {
        if engine.indexes().len() == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}, {expected} expected", engine.indexes());
}

#[tokio::test]
async fn kept_plans_follow_the_name() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10))").await;
    c.ok("INSERT INTO t VALUES (1, 'base')").await;
    c.ok("PREPARE s FROM 'SELECT v FROM t WHERE id = 1'").await;
    c.ok("PREPARE i FROM 'INSERT INTO t (id, v) VALUES (2, ''more'')'").await;
    c.ok("PREPARE d FROM 'DELETE FROM t WHERE id = 2'").await;
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!((c.value("SELECT v FROM t WHERE id = 1").await, c.value("EXECUTE s").await), ("base".into(), "base".into()));
            c.ok("EXECUTE i").await;
            c.ok("EXECUTE d").await;
        }
        c.ok("CREATE TEMPORARY TABLE t (v VARCHAR(10), id INT NOT NULL)").await;
        c.ok("INSERT INTO t VALUES ('own', 1)").await;
        for _ in 0..3 {
            assert_eq!((c.value("SELECT v FROM t WHERE id = 1").await, c.value("EXECUTE s").await), ("own".into(), "own".into()));
        }
        c.ok("EXECUTE i").await;
        // Another definition of it: the columns have other places.
        c.ok("ALTER TABLE t ADD COLUMN f INT FIRST, ADD PRIMARY KEY (id)").await;
        for _ in 0..3 {
            assert_eq!((c.value("SELECT v FROM t WHERE id = 1").await, c.value("EXECUTE s").await), ("own".into(), "own".into()));
        }
        assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "2");
        c.ok("DROP TEMPORARY TABLE t").await;
        assert_eq!(c.value("SELECT COUNT(*) FROM t").await, "1");
    }
}

/// MySQL cannot (1137).
#[tokio::test]
async fn a_statement_may_name_it_twice() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TEMPORARY TABLE t (i INT)").await;
    assert!(format!("{:?}", c.rows("SHOW CREATE TABLE t").await).contains("CREATE TEMPORARY TABLE `t`"));
    c.ok("INSERT INTO t VALUES (1), (2)").await;
    assert_eq!(c.rows("SELECT x.i, y.i FROM t x JOIN t y ON x.i < y.i").await, table("1 2"));
    assert_eq!(c.value("SELECT COUNT(*) FROM t WHERE i = (SELECT MAX(i) FROM t)").await, "1");
    c.ok("INSERT INTO t SELECT i + 2 FROM t").await;
    assert_eq!(c.rows("SELECT i FROM t ORDER BY i").await, table("1|2|3|4"));
}

#[tokio::test]
async fn it_is_one_sessions_and_goes_with_it() {
    let server = Server::new();
    let mut one = server.client().await;
    let mut two = server.client().await;
    two.ok("CREATE TABLE t (base INT)").await;
    let before = server.instance.database().engine().indexes().len();
    one.ok("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT, KEY (v))").await;
    one.ok("INSERT INTO t (v) VALUES (1), (2)").await;
    two.ok("CREATE TEMPORARY TABLE own SELECT 7 AS i").await;
    trees(&server, before + 3).await;
    assert_eq!(two.rows("SELECT * FROM t").await, table(""));
    assert_eq!(one.error("SELECT * FROM own").await.0, 1146);
    // A transaction with rows in it: they go first.
    one.ok("BEGIN").await;
    one.ok("UPDATE t SET v = v + 1").await;
    one.session.reset().await.unwrap();
    assert_eq!(one.rows("SELECT * FROM t").await, table(""));
    trees(&server, before + 1).await;
    one.ok("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY)").await;
    one.ok("BEGIN").await;
    one.ok("INSERT INTO t VALUES (1)").await;
    one.ok("DROP TEMPORARY TABLE t").await;
    // Its rows may yet be taken back, so its tree is there until they are.
    assert_eq!(server.instance.database().engine().indexes().len(), before + 2);
    one.ok("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY)").await;
    one.ok("INSERT INTO t VALUES (2)").await;
    one.ok("ROLLBACK").await;
    assert_eq!(one.rows("SELECT * FROM t").await, table(""));
    trees(&server, before + 2).await;
    drop(one);
    drop(two);
    trees(&server, before).await;
}

#[tokio::test]
async fn a_create_that_fails_leaves_nothing() {
    let server = Server::new();
    let mut c = server.client().await;
    let before = server.instance.database().engine().indexes().len();
    c.ok("BEGIN").await;
    assert_eq!(c.error("CREATE TEMPORARY TABLE t (i INT PRIMARY KEY) SELECT 1 AS i UNION ALL SELECT 1").await.0, 1062);
    assert_eq!(c.error("SELECT * FROM t").await.0, 1146);
    c.ok("CREATE TEMPORARY TABLE t (i INT PRIMARY KEY)").await;
    assert_eq!(c.error("ALTER TABLE t ADD COLUMN i INT").await.0, 1060);
    c.ok("INSERT INTO t VALUES (1), (2)").await;
    assert_eq!(c.error("ALTER TABLE t ADD COLUMN u INT DEFAULT 1, ADD UNIQUE KEY (u)").await.0, 1062);
    assert_eq!(c.rows("SELECT * FROM t ORDER BY i").await, table("1|2"));
    c.ok("COMMIT").await;
    trees(&server, before + 1).await;
}

#[tokio::test]
async fn a_server_that_is_read_only_or_locked_lets_them_be_changed() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE base (i INT)").await;
    c.ok("CREATE TEMPORARY TABLE t (i INT)").await;
    for (close, open) in [("SET GLOBAL super_read_only = 1", "SET GLOBAL super_read_only = 0"), ("FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES")] {
        c.ok(close).await;
        for sql in [
            "INSERT INTO t VALUES (1)",
            "BEGIN",
            "UPDATE t SET i = i + 1",
            "COMMIT",
            "CREATE TEMPORARY TABLE u SELECT * FROM t",
            "ALTER TABLE u ADD COLUMN j INT",
            "CREATE INDEX k ON u (j)",
            "DROP INDEX k ON u",
            "TRUNCATE TABLE u",
            "DROP TABLE u",
        ] {
            c.ok(sql).await;
        }
        let refused = c.error("INSERT INTO base SELECT * FROM t").await.0;
        assert!(matches!(refused, 1223 | 1290), "{refused}");
        let refused = c.error("UPDATE base, t SET base.i = t.i, t.i = 0").await.0;
        assert!(matches!(refused, 1223 | 1290), "{refused}");
        c.ok(open).await;
    }
    assert_eq!(c.rows("SELECT i FROM t ORDER BY i").await, table("2|3"));
    assert_eq!(c.rows("SELECT * FROM base").await, table(""));
}

/// What is prepared may outlive the session.
#[tokio::test]
async fn transactions_in_two_phases_do_not_change_them() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TEMPORARY TABLE t (i INT)").await;
    c.ok("XA START 'temporary'").await;
    assert_eq!(c.error("INSERT INTO t VALUES (1)").await.0, 1399);
    assert_eq!(c.error("CREATE TEMPORARY TABLE u SELECT 1").await.0, 1399);
    assert_eq!(c.rows("SELECT * FROM t").await, table(""));
    c.ok("XA END 'temporary'").await;
    assert_eq!(c.error("CREATE TEMPORARY TABLE u (i INT)").await.0, 1399);
    assert_eq!(c.error("DROP TEMPORARY TABLE t").await.0, 1399);
    c.ok("XA ROLLBACK 'temporary'").await;
    c.ok("INSERT INTO t VALUES (1)").await;
}
