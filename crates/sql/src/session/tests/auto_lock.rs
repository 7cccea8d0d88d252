//! `innodb_autoinc_lock_mode`. What waits in which mode was seen in MySQL 8.0.12.

use super::{Answer, Client, Server, table};

const MANY: &str = "INSERT INTO t (b) SELECT b FROM s";
const FEW: &str = "INSERT INTO t (b) VALUES (1), (2), (3)";

/// Returns when so many wait for rows.
async fn until_waiting(c: &mut Client, count: &str) {
    while c.value("SELECT COUNT(DISTINCT requesting_engine_transaction_id) FROM performance_schema.data_lock_waits").await != count {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

/// Whether `other` waits while `holder`, which has its numbers, waits for a row.
async fn waits(mode: &str, holder: &'static str, other: &str) -> bool {
    let server = Server::with(|settings| settings.set("innodb_autoinc_lock_mode", Some(mode)).unwrap());
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, b INT UNIQUE)").await;
    c.ok("CREATE TABLE s (b INT PRIMARY KEY)").await;
    c.ok("INSERT INTO s VALUES (1), (2), (3)").await;
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (100, 3)").await;
    let mut a = server.client().await;
    let held = tokio::spawn(async move { a.ok(holder).await });
    until_waiting(&mut c, "1").await;
    let mut b = server.client().await;
    b.ok("SET innodb_lock_wait_timeout = 1").await;
    let answer = b.run(other).await;
    let waited = match &answer {
        Answer::Error(error) => {
            assert_eq!(error.code, 1205);
            true
        }
        _ => false,
    };
    c.ok("ROLLBACK").await;
    held.await.unwrap();
    assert_eq!(c.rows("SELECT id FROM t WHERE b < 4 ORDER BY id").await, table("101|102|103"), "consecutive");
    // It is given back with the statement.
    b.ok("INSERT INTO t (b) VALUES (90)").await;
    waited
}

#[tokio::test(flavor = "multi_thread")]
async fn mode_0_every_insert_holds_the_lock() {
    assert!(waits("0", FEW, "INSERT INTO t (b) VALUES (50)").await);
    assert!(waits("0", MANY, "INSERT INTO t (b) SELECT b + 10 FROM s").await);
    assert!(!waits("0", FEW, "UPDATE t SET b = 60 WHERE id = 77").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn mode_1_open_ended_inserts_hold_the_lock() {
    assert!(waits("1", MANY, "INSERT INTO t (b) VALUES (50)").await);
    assert!(waits("1", MANY, "INSERT INTO t VALUES (200, 50)").await);
    assert!(waits("1", MANY, "INSERT INTO t (b) SELECT b + 10 FROM s").await);
    assert!(!waits("1", FEW, "INSERT INTO t (b) VALUES (50)").await);
    assert!(!waits("1", FEW, "INSERT INTO t (b) SELECT b + 10 FROM s").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn mode_2_nobody_waits() {
    assert!(!waits("2", MANY, "INSERT INTO t (b) VALUES (50)").await);
    assert!(!waits("2", MANY, "INSERT INTO t (b) SELECT b + 10 FROM s").await);
}

/// One has its numbers and waits for a row, the other has the row and wants numbers.
#[tokio::test(flavor = "multi_thread")]
async fn a_circle_through_a_row_is_a_deadlock() {
    let server = Server::with(|settings| settings.set("innodb_autoinc_lock_mode", Some("1")).unwrap());
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, b INT UNIQUE)").await;
    c.ok("CREATE TABLE s (b INT PRIMARY KEY)").await;
    c.ok("INSERT INTO s VALUES (1), (2), (3)").await;
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (100, 3)").await;
    let mut a = server.client().await;
    let held = tokio::spawn(async move { a.run(MANY).await });
    until_waiting(&mut c, "1").await;
    let answers = [c.run("INSERT INTO t (b) SELECT b + 10 FROM s").await, held.await.unwrap()];
    let errors: Vec<u16> = answers.iter().filter_map(|answer| if let Answer::Error(error) = answer { Some(error.code) } else { None }).collect();
    // The other one goes on, once the victim is undone.
    assert_eq!(errors, [1213]);
}

/// ON DUPLICATE KEY UPDATE has given a row the number that was meant for the one behind it, which then wants another.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_tried_again_waits_for_the_lock_as_the_first_time() {
    let server = Server::with(|settings| settings.set("innodb_autoinc_lock_mode", Some("1")).unwrap());
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, b INT UNIQUE)").await;
    c.ok("CREATE TABLE s (b INT PRIMARY KEY)").await;
    c.ok("INSERT INTO s VALUES (11), (12), (13)").await;
    c.ok("INSERT INTO t VALUES (1, 1)").await;
    c.ok("BEGIN").await;
    c.ok("INSERT INTO t VALUES (100, 13)").await;
    let mut d = server.client().await;
    d.ok("BEGIN").await;
    d.rows("SELECT b FROM t WHERE id = 1 FOR UPDATE").await;
    let mut a = server.client().await;
    a.ok("SET innodb_lock_wait_timeout = 5").await;
    let tried = tokio::spawn(async move { a.run("INSERT INTO t VALUES (NULL, 5), (1, 6), (NULL, 7) ON DUPLICATE KEY UPDATE id = 102").await });
    until_waiting(&mut c, "1").await;
    let mut b = server.client().await;
    let held = tokio::spawn(async move { b.ok(MANY).await });
    until_waiting(&mut c, "2").await;
    d.ok("COMMIT").await;
    assert!(matches!(tried.await.unwrap(), Answer::Error(error) if error.code == 1205));
    c.ok("ROLLBACK").await;
    held.await.unwrap();
    assert_eq!(c.rows("SELECT id, b FROM t ORDER BY id").await, table("1 1|103 11|104 12|105 13"));
}
