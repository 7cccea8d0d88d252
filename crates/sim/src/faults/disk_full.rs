//! A full disk: a tmpfs of a few megabytes, filled by rows, then filled from outside so that the log cannot grow.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use super::server::{Bystander, Server};
use super::{Bench, HANG, Report, Verdict};
use crate::Result;

const SIZE_MIB: u64 = 128;
const BALLAST: usize = 32 << 20;

pub async fn run(bench: &Bench, report: &mut Report) {
    report.case("disk full: by rows", filled_by_rows(bench)).await;
    report.case("disk full: the log cannot grow", log_cannot_grow(bench)).await;
}

/// A mounted tmpfs, unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(dir: PathBuf) -> Result<Option<SmallDisk>> {
        fs::create_dir_all(&dir)?;
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={SIZE_MIB}m"), "tmpfs"]).arg(&dir).output();
        Ok(status.is_ok_and(|output| output.status.success()).then_some(SmallDisk(dir)))
    }

    /// Takes all the room that is left but `keep` bytes.
    fn fill(&self, keep: u64) -> Result<PathBuf> {
        let path = self.0.join("filler");
        let mut file = fs::File::create(&path)?;
        while file.write_all(&[1; 4096]).is_ok() {}
        let length = file.metadata()?.len();
        file.set_len(length.saturating_sub(keep))?;
        Ok(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

fn not_allowed() -> Result<Verdict> {
    Ok(Verdict::Skipped("a tmpfs cannot be mounted here (it needs root)".into()))
}

/// What a full disk may be called: 1114 the table, 1021 the disk.
fn is_full(e: &Error) -> bool {
    matches!(e, Error::Server(e) if matches!(e.code, 1114 | 1021))
}

async fn filled_by_rows(bench: &Bench) -> Result<Verdict> {
    let Some(disk) = SmallDisk::mount(bench.workdir.join("small"))? else { return not_allowed() };
    let datadir = disk.0.join("data");
    let options = ["--innodb-redo-log-capacity=8M"];
    // Room to give back to a server that cannot help itself.
    let ballast = disk.0.join("ballast");
    fs::write(&ballast, vec![1; BALLAST])?;
    let server = Server::start(bench, &datadir, &options).await?;
    let mut c = server.connect().await?;
    c.query_drop("CREATE DATABASE faults").await?;
    c.query_drop("CREATE TABLE faults.t (id INT PRIMARY KEY, pad LONGTEXT)").await?;
    c.query_drop("INSERT INTO faults.t VALUES (0, 'first')").await?;
    let bystander = Bystander::reading(&server, "SELECT pad FROM faults.t WHERE id = 0").await?;
    // Autocommitted rows until the disk is full.
    let mut rows = 1_u64;
    let full = loop {
        match insert(&mut c, rows).await {
            Ok(()) => rows += 1,
            Err(e) => break e,
        }
        if rows > 100_000 {
            return Err("the disk does not become full".into());
        }
    };
    if !is_full(&full) {
        return Err(format!("after {rows} rows: {full}: {}", server.last_line()).into());
    }
    // A transaction that meets the full disk can be rolled back and leaves nothing.
    c.query_drop("BEGIN").await?;
    let mut met = false;
    for i in 0..2000 {
        if let Err(e) = insert(&mut c, 1_000_000 + i).await {
            if !is_full(&e) {
                return Err(format!("within a transaction: {e}: {}", server.last_line()).into());
            }
            met = true;
            break;
        }
    }
    c.query_drop("ROLLBACK").await.map_err(|e| format!("ROLLBACK: {e}"))?;
    if !met {
        return Err("the disk was full, and then took 2000 rows more".into());
    }
    expect_rows(&mut c, rows).await?;
    bystander.finish().await?;
    // Killed while full: everything acknowledged comes back.
    drop(c);
    server.kill()?;
    let server = Server::start(bench, &datadir, &options).await.map_err(|e| format!("restart on the full disk: {e}"))?;
    let mut c = server.connect().await?;
    expect_rows(&mut c, rows).await?;
    // The room of deleted rows is used again. (TRUNCATE makes the new tree before it gives up the old one, so it needs room first.)
    c.query_drop("DELETE FROM faults.t").await.map_err(|e| format!("DELETE on the full disk: {e}"))?;
    let wanted = rows / 2;
    let mut again = refill(&mut c, 0, wanted).await;
    let mut reused = "the room of deleted rows was used again";
    if again < wanted {
        reused = "the room of deleted rows was used again once the log had room";
        fs::remove_file(ballast)?;
        again = refill(&mut c, again, wanted).await;
    }
    if again < wanted {
        return Err(format!("{rows} rows filled the disk; after DELETE and with room only {again} fit: {}", server.last_line()).into());
    }
    c.query_drop("DELETE FROM faults.t").await?;
    c.query_drop("TRUNCATE TABLE faults.t").await.map_err(|e| format!("TRUNCATE with room: {e}"))?;
    drop(c);
    server.terminate().await?;
    Ok(Verdict::Passed(format!("{rows} rows, then error {full}; rolled back, killed and restarted with all rows; {reused}")))
}

/// Inserts rows from `from` up to `wanted`; returns how far it came. Freed extents come back when purge and a checkpoint have been by.
async fn refill(c: &mut Conn, from: u64, wanted: u64) -> u64 {
    let mut at = from;
    for _ in 0..25 {
        while at < wanted && insert(c, at).await.is_ok() {
            at += 1;
        }
        if at >= wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    at
}

async fn insert(c: &mut Conn, id: u64) -> Result<(), Error> {
    c.query_drop(format!("INSERT INTO faults.t VALUES ({id}, REPEAT('x', 20000))")).await
}

async fn expect_rows(c: &mut Conn, rows: u64) -> Result<()> {
    let found: Option<(u64, u64)> = c.query_first("SELECT COUNT(*), MAX(id) FROM faults.t").await?;
    if found != Some((rows, rows - 1)) {
        return Err(format!("{rows} rows were acknowledged, found (count, highest id) {found:?}").into());
    }
    Ok(())
}

async fn log_cannot_grow(bench: &Bench) -> Result<Verdict> {
    let Some(disk) = SmallDisk::mount(bench.workdir.join("smaller"))? else { return not_allowed() };
    let datadir = disk.0.join("data");
    let server = Server::start(bench, &datadir, &[]).await?;
    let mut c = server.connect().await?;
    c.query_drop("CREATE DATABASE faults").await?;
    c.query_drop("CREATE TABLE faults.t (id INT PRIMARY KEY, v INT, pad VARCHAR(4000))").await?;
    c.query_drop("INSERT INTO faults.t VALUES (0, 0, ''), (1, 0, '')").await?;
    // An open transaction needs its part of the log, so that the files cannot simply be used again.
    let mut holder = server.connect().await?;
    holder.query_drop("BEGIN").await?;
    holder.query_drop("UPDATE faults.t SET v = 7 WHERE id = 0").await?;
    let filler = disk.fill(64 << 10)?;
    // Updates in place need room in the log only, 8 KB each.
    let mut acknowledged = 0_u64;
    let ended = loop {
        let sql = format!("UPDATE faults.t SET v = {}, pad = REPEAT('{}', 4000) WHERE id = 1", acknowledged + 1, acknowledged % 10);
        match c.query_drop(sql).await {
            Ok(()) => acknowledged += 1,
            Err(e) => break e,
        }
        if acknowledged > 60_000 {
            return Err("the log goes on although the disk is full and a transaction holds its oldest part".into());
        }
    };
    let how = match &ended {
        e if is_full(e) => {
            let mut other = server.connect().await?;
            let found: Option<u64> = other.query_first("SELECT v FROM faults.t WHERE id = 1").await?;
            if found != Some(acknowledged) {
                return Err(format!("update {acknowledged} was acknowledged, found {found:?}").into());
            }
            // Once nobody holds the old part of the log, it is used again.
            holder.query_drop("ROLLBACK").await.map_err(|e| format!("ROLLBACK without room in the log: {e}"))?;
            let sql = "UPDATE faults.t SET v = v + 1 WHERE id = 1";
            let deadline = Instant::now() + HANG;
            while let Err(e) = c.query_drop(sql).await {
                if !is_full(&e) || Instant::now() > deadline {
                    return Err(format!("after ROLLBACK of the transaction that held the log: {e}: {}", server.last_line()).into());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            acknowledged += 1;
            format!("error {e}; the server goes on reading, and writes again after ROLLBACK")
        }
        e => {
            let said = server.last_line();
            if !said.contains("fatal:") && !said.contains("space") {
                return Err(format!("{e}; the server said: {said}").into());
            }
            format!("stopped: {said}")
        }
    };
    drop((c, holder));
    server.kill()?;
    fs::remove_file(filler)?;
    restart_and_check(bench, &datadir, acknowledged).await?;
    Ok(Verdict::Passed(format!("{acknowledged} updates, then {how}; all there after a restart with room")))
}

async fn restart_and_check(bench: &Bench, datadir: &Path, acknowledged: u64) -> Result<()> {
    let server = Server::start(bench, datadir, &[]).await?;
    let mut c = server.connect().await?;
    let found: Option<u64> = c.query_first("SELECT v FROM faults.t WHERE id = 1").await?;
    if found != Some(acknowledged) {
        return Err(format!("after a restart: update {acknowledged} was acknowledged, found {found:?}").into());
    }
    c.query_drop("UPDATE faults.t SET v = 0 WHERE id = 1").await?;
    drop(c);
    server.terminate().await
}
