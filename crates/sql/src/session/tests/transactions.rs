//! Transactions of several sessions: what each sees, who waits, what ends a wait.

use super::{Answer, Server, table};
use crate::session::StatusFlags;

#[tokio::test]
async fn autocommit_and_explicit_transactions() {
    let server = Server::new();
    let mut a = server.client().await;
    let mut b = server.client().await;
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    let ok = a.ok("BEGIN").await;
    assert!(ok.status.has(StatusFlags::IN_TRANS) && ok.status.has(StatusFlags::AUTOCOMMIT));
    a.ok("INSERT INTO t VALUES (1)").await;
    assert_eq!(b.rows("SELECT * FROM t").await, table(""));
    a.ok("SAVEPOINT s").await;
    a.ok("INSERT INTO t VALUES (2)").await;
    a.ok("ROLLBACK TO s").await;
    assert_eq!(a.rows("SELECT * FROM t").await, table("1"));
    let ok = a.ok("COMMIT").await;
    assert!(!ok.status.has(StatusFlags::IN_TRANS));
    assert_eq!(b.rows("SELECT * FROM t").await, table("1"));
    assert_eq!(a.error("ROLLBACK TO s").await, (1305, "SAVEPOINT s does not exist".into()));
    a.ok("SET autocommit = 0").await;
    a.ok("INSERT INTO t VALUES (3)").await;
    assert!(a.session.status_flags().has(StatusFlags::IN_TRANS));
    a.ok("ROLLBACK").await;
    a.ok("INSERT INTO t VALUES (4)").await;
    // DDL commits what is open.
    a.ok("CREATE TABLE u (id INT)").await;
    assert_eq!(b.rows("SELECT * FROM t").await, table("1|4"));
}

#[tokio::test]
async fn isolation_levels_see_what_they_should() {
    let server = Server::new();
    let mut a = server.client().await;
    let mut b = server.client().await;
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    a.ok("INSERT INTO t VALUES (1, 1)").await;
    a.ok("BEGIN").await;
    assert_eq!(a.value("SELECT v FROM t WHERE id = 1").await, "1");
    b.ok("UPDATE t SET v = 2").await;
    assert_eq!(a.value("SELECT v FROM t WHERE id = 1").await, "1");
    assert_eq!(a.value("SELECT v FROM t WHERE id = 1 FOR UPDATE").await, "2");
    a.ok("COMMIT").await;
    a.ok("SET TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
    a.ok("BEGIN").await;
    assert_eq!(a.value("SELECT v FROM t WHERE id = 1").await, "2");
    b.ok("UPDATE t SET v = 3").await;
    assert_eq!(a.value("SELECT v FROM t WHERE id = 1").await, "3");
    a.ok("COMMIT").await;
    a.ok("START TRANSACTION READ ONLY").await;
    assert_eq!(a.error("UPDATE t SET v = 4").await, (1792, "Cannot execute statement in a READ ONLY transaction.".into()));
    a.ok("ROLLBACK").await;
}

#[tokio::test]
async fn a_lock_wait_times_out_and_only_the_statement_goes() {
    let server = Server::new();
    let mut a = server.client().await;
    let mut b = server.client().await;
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    a.ok("INSERT INTO t VALUES (1, 1), (2, 2)").await;
    a.ok("BEGIN").await;
    a.ok("UPDATE t SET v = 10 WHERE id = 1").await;
    b.ok("SET innodb_lock_wait_timeout = 1").await;
    b.ok("BEGIN").await;
    b.ok("UPDATE t SET v = 20 WHERE id = 2").await;
    assert_eq!(b.error("UPDATE t SET v = 11 WHERE id = 1").await.0, 1205);
    b.ok("COMMIT").await;
    assert_eq!(b.error("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT").await.0, 3572);
    assert_eq!(b.rows("SELECT * FROM t FOR UPDATE SKIP LOCKED").await, table("2 20"));
    a.ok("ROLLBACK").await;
    assert_eq!(b.rows("SELECT * FROM t").await, table("1 1|2 20"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_rolls_one_transaction_back() {
    let server = Server::new();
    let mut a = server.client().await;
    let mut b = server.client().await;
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    a.ok("INSERT INTO t VALUES (1, 1), (2, 2)").await;
    a.ok("BEGIN").await;
    b.ok("BEGIN").await;
    a.ok("UPDATE t SET v = 10 WHERE id = 1").await;
    b.ok("UPDATE t SET v = 20 WHERE id = 2").await;
    let waiting = tokio::spawn(async move {
        let answer = a.run("UPDATE t SET v = 11 WHERE id = 2").await;
        (a, answer)
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let second = b.run("UPDATE t SET v = 21 WHERE id = 1").await;
    let deadlocked = |answer: &Answer| matches!(answer, Answer::Error(e) if e.code == 1213);
    if !deadlocked(&second) {
        b.ok("COMMIT").await;
    }
    let (mut a, first) = waiting.await.unwrap();
    assert!(deadlocked(&first) != deadlocked(&second), "{first:?} {second:?}");
    let victim = if deadlocked(&first) { &mut a } else { &mut b };
    assert!(!victim.session.status_flags().has(StatusFlags::IN_TRANS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_ends_a_waiting_statement() {
    let server = Server::new();
    let mut a = server.client().await;
    let mut b = server.client().await;
    let mut killer = server.client().await;
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    a.ok("INSERT INTO t VALUES (1, 1)").await;
    a.ok("BEGIN").await;
    a.ok("UPDATE t SET v = 2").await;
    let id = b.session.client().connection_id;
    let waiting = tokio::spawn(async move { b.error("UPDATE t SET v = 3").await });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    killer.ok(&format!("KILL QUERY {id}")).await;
    assert_eq!(waiting.await.unwrap(), (1317, "Query execution was interrupted".into()));
    assert_eq!(killer.error("KILL 999999").await, (1094, "Unknown thread id: 999999".into()));
}

/// Rows are locked many at once and then looked at one by one, or looked up by many keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_ends_a_statement_that_asks_much_of_each_row() {
    let server = Server::new();
    let mut killer = server.client().await;
    killer.ok("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(10))").await;
    let rows: Vec<String> = (0..500).map(|id| format!("({id}, 'abcdefghij')")).collect();
    killer.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    let ids: Vec<String> = (0..500).map(|id| id.to_string()).collect();
    let (hash, ids) = ("SHA2(REPEAT(s, 200000), 512)", ids.join(", "));
    for sql in [
        format!("DELETE FROM t WHERE {hash} = 'x'"),
        format!("UPDATE t SET s = '' WHERE {hash} = 'x'"),
        format!("DELETE FROM t ORDER BY {hash}"),
        format!("SELECT id FROM t WHERE id IN ({ids}) AND {hash} = 'x'"),
        format!("SELECT id FROM t WHERE id IN ({ids}) AND {hash} = 'x' FOR UPDATE"),
    ] {
        let mut c = server.client().await;
        let id = c.session.client().connection_id;
        let statement = sql.clone();
        let running = tokio::spawn(async move { c.error(&statement).await });
        while !running.is_finished() && killer.value(&format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND command = 'Query'")).await == "0" {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        killer.ok(&format!("KILL QUERY {id}")).await;
        assert_eq!(running.await.unwrap().0, 1317, "{sql}");
    }
}

#[tokio::test]
async fn several_statements_in_one_text() {
    let server = Server::new();
    let mut c = server.client().await;
    let answers = c.run_all("CREATE TABLE t (id INT); INSERT INTO t VALUES (1); SELECT * FROM t; BAD; SELECT 1").await;
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert!(matches!(&answers[0], Answer::Ok(ok) if ok.status.has(StatusFlags::MORE_RESULTS_EXISTS)));
    assert!(matches!(&answers[2], Answer::Rows { end, .. } if end.status.has(StatusFlags::MORE_RESULTS_EXISTS)));
    assert!(matches!(&answers[3], Answer::Error(e) if e.code == 1064));
    c.session.set_multi_statements(false);
    assert_eq!(c.error("SELECT 1; SELECT 2").await.0, 1064);
}

/// Both lock the gap, then each waits for the other's: MySQL's deadlock.
#[tokio::test]
async fn two_that_delete_a_missing_key_cannot_both_insert_it() {
    let server = Server::new();
    let (mut a, mut b) = (server.client().await, server.client().await);
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)").await;
    for c in [&mut a, &mut b] {
        c.ok("BEGIN").await;
        assert_eq!(c.ok("DELETE FROM t WHERE id = 5").await.affected_rows, 0);
    }
    let engine = server.instance.database().engine().clone();
    let close = async {
        while engine.stats().row_lock_current_waits == 0 {
            tokio::task::yield_now().await;
        }
        // Equal work: who closes the cycle is the victim.
        assert_eq!(b.error("INSERT INTO t VALUES (5)").await.0, 1213);
    };
    tokio::join!(a.ok("INSERT INTO t VALUES (5)"), close);
    a.ok("COMMIT").await;
    assert_eq!(b.rows("SELECT id FROM t").await, table("5"));
}
