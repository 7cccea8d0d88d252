//! OPTIMIZE TABLE, ALTER … FORCE and ALTER … ENGINE: what they answer, and that nobody waits for them.

use super::{Answer, Client, Server, table};
use crate::session::Interruption;

/// `t`: 8000 rows, of which a random half is deleted.
async fn thinned(c: &mut Client) {
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, pad VARCHAR(200) NOT NULL, KEY by_k (k))").await;
    for first in (0..8000).step_by(1000) {
        let rows: Vec<String> = (first..first + 1000).map(|id| format!("({id}, {}, REPEAT('x', 150))", id * 7919 % 8000)).collect();
        c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    }
    c.ok("DELETE FROM t WHERE CRC32(id) % 2 = 0").await;
}

/// Per cent of the leaves of both indexes, headers and fences counted.
async fn fill(c: &mut Client) -> Vec<f64> {
    let sql = "SELECT used_bytes * 100 / (pages * 16384) FROM information_schema.highkey_index_levels WHERE table_name = 't' AND level = 0 ORDER BY index_name";
    c.rows(sql).await.iter().map(|row| row[0].parse().unwrap()).collect()
}

/// The secondary index has seven leaves, of which the last one may be anything.
fn is_dense(fill: &[f64]) -> bool {
    matches!(fill, [by_k, primary] if *by_k >= 80.0 && *primary >= 90.0)
}

#[tokio::test]
async fn a_transaction_that_writes_is_not_waited_for() {
    let server = Server::new();
    let mut c = server.client().await;
    thinned(&mut c).await;
    let sum = c.rows("SELECT COUNT(*), SUM(id), SUM(k) FROM t").await;
    let mut other = server.connect();
    other.ok("USE d").await;
    other.ok("START TRANSACTION").await;
    other.ok("INSERT INTO t VALUES (100000, 1, 'other')").await;
    let said: Vec<String> = c.rows("OPTIMIZE TABLE t").await.iter().map(|row| row.join(" ")).collect();
    assert_eq!(said, ["d.t optimize note Table does not support optimize, doing recreate + analyze instead", "d.t optimize status OK"]);
    other.ok("INSERT INTO t VALUES (100001, 1, 'other')").await;
    c.ok("INSERT INTO t VALUES (100002, 1, 'own')").await;
    other.ok("ROLLBACK").await;
    c.ok("DELETE FROM t WHERE id > 100000").await;
    let after = fill(&mut c).await;
    assert!(is_dense(&after), "{after:?}");
    assert_eq!(c.rows("SELECT COUNT(*), SUM(id), SUM(k) FROM t").await, sum);
    assert_eq!(c.rows("CHECK TABLE t").await, table("d.t check status OK"));
}

#[tokio::test]
async fn alter_table_force_and_engine_do_the_same() {
    let server = Server::new();
    let mut c = server.client().await;
    for alter in ["ALTER TABLE t FORCE", "ALTER TABLE t ENGINE=InnoDB", "ALTER TABLE t ENGINE=InnoDB, FORCE, ALGORITHM=INPLACE, LOCK=NONE"] {
        thinned(&mut c).await;
        let mut other = server.connect();
        other.ok("USE d").await;
        other.ok("START TRANSACTION").await;
        other.ok("UPDATE t SET k = k + 1 WHERE id = 1").await;
        c.ok(alter).await;
        other.ok("COMMIT").await;
        let after = fill(&mut c).await;
        assert!(is_dense(&after), "{alter}: {after:?}");
        assert_eq!(c.rows("CHECK TABLE t").await, table("d.t check status OK"));
        c.ok("DROP TABLE t").await;
    }
    thinned(&mut c).await;
    c.ok("ALTER TABLE t FORCE, ALGORITHM=COPY").await;
    assert_eq!(c.rows("CHECK TABLE t").await, table("d.t check status OK"));
    assert!(matches!(c.run("ALTER TABLE nope FORCE").await, Answer::Error(e) if e.code == 1146));
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_go_on_while_it_works() {
    let server = Server::new();
    let mut c = server.client().await;
    thinned(&mut c).await;
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let mut client = server.connect();
            tokio::spawn(async move {
                client.ok("USE d").await;
                for n in 0..300 {
                    let id = 100_000 + writer * 1000 + n;
                    client.ok(&format!("INSERT INTO t VALUES ({id}, {n}, REPEAT('w', 100))")).await;
                    client.ok(&format!("UPDATE t SET pad = REPEAT('u', 120), k = k + 1 WHERE id = {}", n * 23 + writer)).await;
                    if n % 2 == 0 {
                        client.ok(&format!("DELETE FROM t WHERE id = {id}")).await;
                    }
                }
            })
        })
        .collect();
    let mut rounds = 0;
    while !writers.iter().all(|writer| writer.is_finished()) || rounds == 0 {
        assert_eq!(c.rows("OPTIMIZE TABLE t").await.len(), 2);
        rounds += 1;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(c.rows("CHECK TABLE t").await, table("d.t check status OK"));
    assert_eq!(c.value("SELECT COUNT(*) FROM t WHERE id >= 100000").await, "450");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_ends_it() {
    let server = Server::new();
    let mut c = server.client().await;
    // A snapshot keeps the deleted rows from being purged, which is waited for at first.
    c.ok("CREATE TABLE other (a INT)").await;
    let mut reader = server.connect();
    reader.ok("USE d").await;
    reader.ok("START TRANSACTION").await;
    reader.rows("SELECT * FROM other").await;
    thinned(&mut c).await;
    let process = c.session.process().clone();
    let killer = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        process.interrupt(Interruption::Query);
    });
    assert!(matches!(c.run("OPTIMIZE TABLE t").await, Answer::Error(e) if e.code == 1317));
    killer.await.unwrap();
    assert_eq!(c.rows("CHECK TABLE t").await, table("d.t check status OK"));
}
