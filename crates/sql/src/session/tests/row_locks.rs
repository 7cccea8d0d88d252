//! Row and gap locks as clients see them: information_schema.innodb_trx, performance_schema.data_locks and data_lock_waits, deadlocks in SHOW ENGINE
//! INNODB STATUS. Who waits for whom at which level is recorded from MySQL in `tests/sessions`.

use super::*;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(10), KEY k (k), UNIQUE KEY s (s))";
const LOCKS: &str = "SELECT IFNULL(index_name, '-'), lock_type, lock_mode, lock_status, IFNULL(lock_data, '-') FROM performance_schema.data_locks";

/// The locks of a connection as `index type mode status data`, ordered.
async fn locks(c: &mut Client, thread: u64) -> Vec<String> {
    let rows = c.rows(&format!("{LOCKS} WHERE thread_id = {thread} ORDER BY lock_type DESC, index_name, lock_data")).await;
    rows.into_iter().map(|row| row.join(" ")).collect()
}

async fn connection(c: &mut Client) -> u64 {
    c.value("SELECT CONNECTION_ID()").await.parse().unwrap()
}

#[tokio::test]
async fn locks_that_are_held() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok(TABLE).await;
    a.ok("INSERT INTO t VALUES (10, 10, 'a'), (20, 20, 'b'), (30, 30, 'c')").await;
    let id = connection(&mut a).await;
    assert_eq!(locks(&mut b, id).await, [""; 0]);
    a.ok("BEGIN").await;
    a.rows("SELECT * FROM t WHERE id = 10 FOR SHARE").await;
    a.rows("SELECT * FROM t WHERE k = 20 FOR UPDATE").await;
    a.rows("SELECT * FROM t WHERE s = 'bb' FOR UPDATE").await;
    a.rows("SELECT * FROM t WHERE id > 25 FOR UPDATE").await;
    let expected = [
        "- TABLE IX GRANTED -",
        "k RECORD X GRANTED 20, 20",
        "k RECORD X,GAP GRANTED 30, 30",
        "PRIMARY RECORD S,REC_NOT_GAP GRANTED 10",
        "PRIMARY RECORD X,REC_NOT_GAP GRANTED 20",
        "PRIMARY RECORD X GRANTED 30",
        "PRIMARY RECORD X GRANTED supremum pseudo-record",
        "s RECORD X,GAP GRANTED 'c'",
    ];
    assert_eq!(locks(&mut b, id).await, expected);
    let trx = "SELECT trx_state, trx_query IS NULL, trx_rows_modified, trx_isolation_level, trx_tables_locked, trx_is_read_only FROM information_schema.innodb_trx";
    assert_eq!(b.rows(trx).await, [["RUNNING", "1", "0", "REPEATABLE READ", "1", "0"]]);
    a.ok("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y')").await;
    a.ok("UPDATE t SET k = 3 WHERE id = 2").await;
    a.ok("DELETE FROM t WHERE id = 1").await;
    assert_eq!(b.value("SELECT trx_rows_modified FROM information_schema.innodb_trx").await, "4");
    a.ok("COMMIT").await;
    assert_eq!((locks(&mut b, id).await.len(), b.rows(trx).await.len()), (0, 0));
}

#[tokio::test]
async fn locks_that_are_waited_for() {
    let server = Server::new();
    let (mut a, mut b, mut c) = (server.client().await, server.client().await, server.client().await);
    a.ok(TABLE).await;
    a.ok("INSERT INTO t VALUES (10, 10, 'a'), (20, 20, 'b')").await;
    let (holder, waiter) = (connection(&mut a).await, connection(&mut b).await);
    a.ok("BEGIN").await;
    a.rows("SELECT * FROM t WHERE id > 15 FOR SHARE").await;
    let look = async {
        let waiting = format!("{LOCKS} WHERE thread_id = {waiter} AND lock_status = 'WAITING'");
        while c.rows(&waiting).await.is_empty() {}
        assert_eq!(c.rows(&waiting).await, [["PRIMARY", "RECORD", "X,INSERT_INTENTION", "WAITING", "supremum pseudo-record"]]);
        let waits = "SELECT w.requesting_thread_id, w.blocking_thread_id, b.lock_mode, b.lock_data FROM performance_schema.data_lock_waits w
            JOIN performance_schema.data_locks b ON b.engine_lock_id = w.blocking_engine_lock_id
            JOIN performance_schema.data_locks r ON r.engine_lock_id = w.requesting_engine_lock_id";
        let (waiter, holder) = (waiter.to_string(), holder.to_string());
        assert_eq!(c.rows(waits).await, [[waiter.as_str(), &holder, "S", "supremum pseudo-record"]]);
        let trx = "SELECT trx_state, trx_query, trx_operation_state, trx_wait_started >= trx_started, l.lock_status FROM information_schema.innodb_trx
            JOIN performance_schema.data_locks l ON l.engine_lock_id = trx_requested_lock_id";
        assert_eq!(c.rows(trx).await, [["LOCK WAIT", "INSERT INTO t VALUES (30, 30, 'c')", "inserting", "1", "WAITING"]]);
        a.ok("COMMIT").await;
    };
    tokio::join!(b.ok("INSERT INTO t VALUES (30, 30, 'c')"), look);
    assert_eq!(c.value("SELECT COUNT(*) FROM performance_schema.data_lock_waits").await, "0");
}

#[tokio::test]
async fn transactions_without_locks() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok(TABLE).await;
    a.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
    a.ok("START TRANSACTION READ ONLY").await;
    let trx = "SELECT trx_id > 281474976710656, trx_isolation_level, trx_is_read_only, trx_autocommit_non_locking FROM information_schema.innodb_trx";
    assert_eq!(b.rows(trx).await.len(), 0, "it has read nothing");
    a.rows("SELECT * FROM t").await;
    assert_eq!(b.rows(trx).await, [["1", "READ COMMITTED", "1", "0"]]);
    a.ok("COMMIT").await;
    assert_eq!(b.rows(trx).await.len(), 0);
}

#[tokio::test]
async fn prepared_transactions_of_no_session() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    for sql in [TABLE, "SET unique_checks = 0", "XA START 'x'", "INSERT INTO t VALUES (1, 1, 'a')"] {
        a.ok(sql).await;
    }
    let trx = "SELECT trx_state, trx_mysql_thread_id > 0, trx_unique_checks, trx_foreign_key_checks FROM information_schema.innodb_trx";
    assert_eq!(b.rows(trx).await, [["RUNNING", "1", "0", "1"]]);
    for sql in ["XA END 'x'", "XA PREPARE 'x'"] {
        a.ok(sql).await;
    }
    drop(a);
    assert_eq!(b.rows(trx).await, [["RUNNING", "0", "1", "1"]]);
    b.ok("XA ROLLBACK 'x'").await;
    assert!(b.rows(trx).await.is_empty());
}

#[tokio::test]
async fn the_latest_deadlock() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok(TABLE).await;
    a.ok("INSERT INTO t VALUES (10, 10, 'a'), (20, 20, 'b')").await;
    assert!(!a.rows("SHOW ENGINE INNODB STATUS").await[0][2].contains("LATEST DETECTED DEADLOCK"));
    for (c, id) in [(&mut a, 10), (&mut b, 20)] {
        c.ok("BEGIN").await;
        c.ok(&format!("UPDATE t SET k = 1 WHERE id = {id}")).await;
    }
    a.ok("UPDATE t SET s = 'x' WHERE id = 10").await;
    let engine = server.instance.database().engine().clone();
    let close = async {
        while engine.stats().row_lock_current_waits == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(b.error("UPDATE t SET k = 2 WHERE id = 10").await.0, 1213);
    };
    tokio::join!(a.ok("UPDATE t SET k = 2 WHERE id = 20"), close);
    a.ok("COMMIT").await;
    let status = b.rows("SHOW ENGINE INNODB STATUS").await.remove(0).remove(2);
    for part in [
        "\nLATEST DETECTED DEADLOCK\n",
        "\n*** (1) TRANSACTION:\n",
        "\nUPDATE t SET k = 2 WHERE id = 10\n",
        "\n*** (2) HOLDS THE LOCK(S):\n",
        "\nUPDATE t SET k = 2 WHERE id = 20\n",
        " lock_mode X locks rec but not gap waiting\nRecord lock, data 20\n",
        "of table `d`.`t` trx id",
        "\n*** WE ROLL BACK TRANSACTION (2)\n",
    ] {
        assert!(status.contains(part), "{part:?} is missing in {status}");
    }
    // Who has closed the circle comes last.
    assert!(status.find("WHERE id = 20\n") < status.find("WHERE id = 10\n"), "{status}");
}

/// Sections and lines that tools look for, in InnoDB's order.
#[tokio::test]
async fn the_monitor_speaks_as_innodbs() {
    let server = Server::new();
    let (mut a, mut b, mut c) = (server.client().await, server.client().await, server.client().await);
    a.ok("CREATE TABLE p (id INT PRIMARY KEY)").await;
    a.ok("CREATE TABLE child (id INT PRIMARY KEY, pid INT, CONSTRAINT f FOREIGN KEY (pid) REFERENCES p (id))").await;
    a.ok("INSERT INTO p VALUES (1), (2)").await;
    assert!(!a.rows("SHOW ENGINE INNODB STATUS").await[0][2].contains("LATEST FOREIGN KEY ERROR"));
    assert_eq!(a.error("INSERT INTO child VALUES (1, 7)").await.0, 1452);
    let (holder, waiter) = (connection(&mut a).await, connection(&mut b).await);
    a.ok("BEGIN").await;
    a.ok("DELETE FROM p WHERE id = 1").await;
    b.ok("BEGIN").await;
    let engine = server.instance.database().engine().clone();
    let look = async {
        while engine.stats().row_lock_current_waits == 0 {
            tokio::task::yield_now().await;
        }
        let status = c.rows("SHOW ENGINE INNODB STATUS").await.remove(0).remove(2);
        a.ok("COMMIT").await;
        status
    };
    let (_, status) = tokio::join!(b.ok("DELETE FROM p WHERE id = 1 OR id = 2"), look);
    let waiting = format!("\nMySQL thread id {waiter}, localhost root ");
    let held = format!("\nMySQL thread id {holder}, localhost root\n");
    let parts = [
        " INNODB MONITOR OUTPUT\n=",
        "\nBACKGROUND THREAD\n",
        "\nSEMAPHORES\n",
        "\nMutex spin waits ",
        "\nLATEST FOREIGN KEY ERROR\n",
        "\nINSERT INTO child VALUES (1, 7)\nForeign key constraint fails for table `d`.`child`:\n,\n  CONSTRAINT `f` FOREIGN KEY (`pid`) REFERENCES `p` (`id`)\n",
        "\nTRANSACTIONS\n",
        "\nTrx id counter ",
        "\nPurge done for trx's n:o < ",
        "\nHistory list length ",
        "\nPurge queue on disk: ",
        "\nOlder versions of rows: ",
        "\nLIST OF TRANSACTIONS FOR EACH SESSION:\n---TRANSACTION ",
        held.as_str(),
        "\nLOCK WAIT ",
        waiting.as_str(),
        "\nDELETE FROM p WHERE id = 1 OR id = 2\n------- TRX HAS BEEN WAITING ",
        " of table `d`.`p` trx id ",
        ", not started\n0 lock struct(s), heap size 0, 0 row lock(s)\n",
        "\nFILE I/O\n",
        " OS fsyncs\n",
        "\nLog sequence number          ",
        "\nLog flushed up to            ",
        "\nLast checkpoint at           ",
        "\nBuffer pool size   ",
        "\n0 queries inside InnoDB, 0 queries in queue\n",
        "\nNumber of rows inserted 2, updated 0, deleted 1, read ",
        "\nEND OF INNODB MONITOR OUTPUT\n",
    ];
    let mut from = 0;
    for part in parts {
        match status[from..].find(part) {
            // The line's end may be the next one's begin.
            Some(at) => from += at + part.len() - usize::from(part.ends_with('\n')),
            None => panic!("{part:?} is missing behind {from} in {status}"),
        }
    }
    b.ok("ROLLBACK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_statement_that_waits_for_a_lock_has_no_turn() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok(TABLE).await;
    a.ok("INSERT INTO t VALUES (10, 10, 'a')").await;
    a.ok("SET GLOBAL innodb_thread_concurrency = 1").await;
    a.ok("BEGIN").await;
    a.ok("UPDATE t SET k = 11").await;
    let waits = tokio::spawn(async move {
        b.ok("UPDATE t SET k = k + 1").await;
        b
    });
    while a.value("SELECT COUNT(*) FROM performance_schema.data_lock_waits").await == "0" {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    a.ok("COMMIT").await;
    let mut b = waits.await.unwrap();
    assert_eq!(b.value("SELECT k FROM t").await, "12");
    // Nor has one that waits for a lock of the session's, or for a table.
    assert_eq!(a.value("SELECT GET_LOCK('l', 0)").await, "1");
    a.ok("BEGIN").await;
    a.ok("UPDATE t SET k = 13").await;
    let waits = tokio::spawn(async move {
        assert_eq!(b.value("SELECT GET_LOCK('l', 60)").await, "1");
        b.ok("ALTER TABLE t ADD KEY (k, s)").await;
        b
    });
    super::locks::until(&mut a, "User lock").await;
    assert_eq!(a.value("SELECT RELEASE_LOCK('l')").await, "1");
    super::locks::until(&mut a, "Waiting for table metadata lock").await;
    a.ok("COMMIT").await;
    let mut b = waits.await.unwrap();
    b.ok("SET GLOBAL innodb_thread_concurrency = 0").await;
    assert_eq!(b.value("SELECT @@GLOBAL.innodb_thread_concurrency").await, "0");
}
