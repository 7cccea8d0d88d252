//! SIGTERM under load, and KILL of connections in every state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use super::raw::{COM_CHANGE_USER, COM_QUERY, Raw, command};
use super::server::{Bystander, Server};
use super::{Bench, HANG, Report, Verdict};
use crate::Result;

pub async fn run(bench: &Bench, report: &mut Report) {
    report.case("stop: SIGTERM under load", sigterm_under_load(bench)).await;
    report.case("stop: KILL in every state", kills(bench)).await;
}

const CLIENTS: u64 = 8;

async fn sigterm_under_load(bench: &Bench) -> Result<Verdict> {
    let datadir = bench.workdir.join("sigterm");
    let server = Server::start(bench, &datadir, &[]).await?;
    let mut c = server.connect().await?;
    c.query_drop("CREATE DATABASE faults").await?;
    c.query_drop("CREATE TABLE faults.t (client INT, n INT, pad VARCHAR(200), PRIMARY KEY (client, n), KEY (n))").await?;
    let mut clients = tokio::task::JoinSet::new();
    let total = Arc::new(AtomicU64::new(0));
    for client in 0..CLIENTS {
        let (mut c, total) = (server.connect().await?, total.clone());
        clients.spawn(async move {
            // (acknowledged, the highest whose COMMIT was under way)
            let mut n = 0_u64;
            loop {
                let sql = format!("INSERT INTO faults.t VALUES ({client}, {}, REPEAT('a', 100)), ({client}, {}, 'b')", 2 * n, 2 * n + 1);
                for sql in ["BEGIN", sql.as_str(), "COMMIT"] {
                    if c.query_drop(sql).await.is_err() {
                        return (client, n);
                    }
                }
                n += 1;
                total.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    // An open transaction and a statement that runs for long do not hold it up.
    c.query_drop("BEGIN").await?;
    c.query_drop("INSERT INTO faults.t VALUES (1000, 1, 'never committed')").await?;
    let mut sleeper = server.connect().await?;
    let sleeping = tokio::spawn(async move { sleeper.query_drop("SELECT SLEEP(1000)").await });
    while total.load(Ordering::Relaxed) < 500 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.terminate().await?;
    let _ = sleeping.await?;
    drop(c);
    let server = Server::start(bench, &datadir, &[]).await?;
    let mut c = server.connect().await?;
    let mut acknowledged = 0;
    while let Some(done) = clients.join_next().await {
        let (client, n) = done?;
        acknowledged += n;
        let rows: Option<u64> = c.query_first(format!("SELECT COUNT(*) FROM faults.t WHERE client = {client}")).await?;
        // The transaction whose COMMIT was cut off is there whole or not at all.
        if rows != Some(2 * n) && rows != Some(2 * n + 2) {
            return Err(format!("client {client}: {n} transactions of two rows acknowledged, {rows:?} rows found").into());
        }
    }
    let open: Option<u64> = c.query_first("SELECT COUNT(*) FROM faults.t WHERE client = 1000").await?;
    if open != Some(0) {
        return Err("a row that was never committed is there".into());
    }
    drop(c);
    server.terminate().await?;
    Ok(Verdict::Passed(format!("exit code 0, {acknowledged} acknowledged transactions are there")))
}

async fn kills(bench: &Bench) -> Result<Verdict> {
    let datadir = bench.workdir.join("kill");
    let server = Server::start(bench, &datadir, &[]).await?;
    let mut c = server.connect().await?;
    c.query_drop("CREATE DATABASE faults").await?;
    c.query_drop("CREATE TABLE faults.t (id INT PRIMARY KEY, v INT)").await?;
    c.query_drop("INSERT INTO faults.t VALUES (1, 1), (2, 2)").await?;
    let bystander = Bystander::writing(&server).await?;

    // Idle.
    let mut idle = Raw::login(server.port).await?;
    kill(&mut c, idle.connection_id).await?;
    idle.read_to_end().await.map_err(|e| format!("idle: {e}"))?;
    gone(&mut c, idle.connection_id).await.map_err(|e| format!("idle: {e}"))?;

    // Idle within a transaction: its row lock is free at once.
    let mut holder = server.connect().await?;
    holder.query_drop("BEGIN").await?;
    holder.query_drop("UPDATE faults.t SET v = 100 WHERE id = 1").await?;
    kill(&mut c, u64::from(holder.id())).await?;
    c.query_drop("UPDATE faults.t SET v = v + 10 WHERE id = 1").await.map_err(|e| format!("idle in a transaction: {e}"))?;

    // Half way to another user: the locks are free before that, and KILL ends it.
    let mut changing = Raw::login(server.port).await?;
    for sql in ["BEGIN", "UPDATE faults.t SET v = 100 WHERE id = 1"] {
        changing.send(0, &command(COM_QUERY, sql.as_bytes())).await?;
        changing.settle().await?;
    }
    changing.send(0, &command(COM_CHANGE_USER, b"root\0\x05abcde\0\xFF\0caching_sha2_password\0")).await?;
    match changing.read().await?.as_deref() {
        Some([0xFE, ..]) => {}
        other => return Err(format!("COM_CHANGE_USER was answered by {other:?}").into()),
    }
    c.query_drop("SET innodb_lock_wait_timeout = 1").await?;
    c.query_drop("UPDATE faults.t SET v = v + 0 WHERE id = 1").await.map_err(|e| format!("changing the user: {e}"))?;
    c.query_drop("SET innodb_lock_wait_timeout = DEFAULT").await?;
    kill(&mut c, changing.connection_id).await?;
    changing.read_to_end().await.map_err(|e| format!("changing the user: {e}"))?;
    gone(&mut c, changing.connection_id).await.map_err(|e| format!("changing the user: {e}"))?;

    // By its own wish, at the end of a transaction.
    for (before, last) in [("DO 1", "COMMIT RELEASE"), ("DO 1", "ROLLBACK RELEASE"), ("SET completion_type = RELEASE", "COMMIT")] {
        let mut released = Raw::login(server.port).await?;
        released.send(0, &command(COM_QUERY, before.as_bytes())).await?;
        released.settle().await?;
        released.send(0, &command(COM_QUERY, last.as_bytes())).await?;
        let outcome = released.read_to_end().await.map_err(|e| format!("{last}: {e}"))?;
        if !outcome.errors.is_empty() {
            return Err(format!("{last}: {outcome:?}").into());
        }
    }

    // In a query: one that sleeps, one that reads.
    c.query_drop("CREATE TABLE faults.many (x INT PRIMARY KEY)").await?;
    let rows: Vec<String> = (0..100).map(|x| format!("({x})")).collect();
    c.query_drop(format!("INSERT INTO faults.many VALUES {}", rows.join(","))).await?;
    let product = "SELECT MAX(a.x + b.x * c.x - d.x + e.x) FROM faults.many a, faults.many b, faults.many c, faults.many d, faults.many e";
    for sql in ["SELECT SLEEP(1000)", product] {
        let mut victim = Raw::login(server.port).await?;
        victim.send(0, &command(COM_QUERY, sql.as_bytes())).await?;
        busy(&mut c, victim.connection_id).await?;
        kill(&mut c, victim.connection_id).await?;
        victim.read_to_end().await.map_err(|e| format!("in {sql:.30}: {e}"))?;
        gone(&mut c, victim.connection_id).await.map_err(|e| format!("in {sql:.30}: {e}"))?;
    }

    // KILL QUERY ends the statement only.
    let mut victim = Raw::login(server.port).await?;
    victim.send(0, &command(COM_QUERY, product.as_bytes())).await?;
    busy(&mut c, victim.connection_id).await?;
    c.query_drop(format!("KILL QUERY {}", victim.connection_id)).await?;
    victim.settle().await?.must_be(1317, true).map_err(|e| format!("KILL QUERY: {e}"))?;

    // In a lock wait.
    c.query_drop("BEGIN").await?;
    c.query_drop("UPDATE faults.t SET v = 0 WHERE id = 2").await?;
    let mut waiter = Raw::login(server.port).await?;
    waiter.send(0, &command(COM_QUERY, b"UPDATE faults.t SET v = 999 WHERE id = 2")).await?;
    busy(&mut c, waiter.connection_id).await?;
    kill(&mut c, waiter.connection_id).await?;
    waiter.read_to_end().await.map_err(|e| format!("in a lock wait: {e}"))?;
    gone(&mut c, waiter.connection_id).await.map_err(|e| format!("in a lock wait: {e}"))?;
    c.query_drop("COMMIT").await?;

    // In LOAD DATA, with the client's file half sent.
    let mut loader = Raw::login(server.port).await?;
    loader.send(0, &command(COM_QUERY, b"LOAD DATA LOCAL INFILE 'rows' INTO TABLE faults.t")).await?;
    match loader.read().await?.as_deref() {
        Some([0xFB, ..]) => {}
        other => return Err(format!("LOAD DATA was answered by {other:?}").into()),
    }
    let rows: String = (1000..3000).map(|id| format!("{id}\t7\n")).collect();
    loader.send(2, rows.as_bytes()).await?;
    kill(&mut c, loader.connection_id).await?;
    loader.read_to_end().await.map_err(|e| format!("in LOAD DATA: {e}"))?;
    gone(&mut c, loader.connection_id).await.map_err(|e| format!("in LOAD DATA: {e}"))?;

    // Itself, and nobody.
    let mut own = server.connect().await?;
    let id = own.id();
    expect_code(own.query_drop(format!("KILL {id}")).await, 1317)?;
    expect_code(c.query_drop("KILL 4000000000").await, 1094)?;

    let rows: Vec<(u32, i64)> = c.query("SELECT id, v FROM faults.t ORDER BY id").await?;
    if rows != [(1, 11), (2, 0)] {
        return Err(format!("what the killed ones did was not all taken back: {rows:?}").into());
    }
    let acknowledged = bystander.finish().await?;
    Bystander::check(&mut c, acknowledged).await?;
    drop((c, own, holder));
    server.no_panic()?;
    server.terminate().await?;
    Ok(Verdict::Passed("idle, in a transaction, asleep, computing, waiting for a lock, loading, itself: each ended, its work taken back".into()))
}

async fn kill(c: &mut Conn, id: u64) -> Result<()> {
    Ok(c.query_drop(format!("KILL {id}")).await?)
}

/// Until the connection's statement is seen running.
async fn busy(c: &mut Conn, id: u64) -> Result<()> {
    until(c, &format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND command = 'Query'"), 1).await
}

async fn gone(c: &mut Conn, id: u64) -> Result<()> {
    until(c, &format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}"), 0).await
}

async fn until(c: &mut Conn, sql: &str, wanted: u64) -> Result<()> {
    let deadline = Instant::now() + HANG;
    while c.query_first::<u64, _>(sql).await? != Some(wanted) {
        if Instant::now() > deadline {
            return Err(format!("still not {wanted}: {sql}").into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn expect_code(result: Result<(), Error>, code: u16) -> Result<()> {
    match result {
        Err(Error::Server(e)) if e.code == code => Ok(()),
        other => Err(format!("expected error {code}, got {other:?}").into()),
    }
}
