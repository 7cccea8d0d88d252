//! Damage to the files of a stopped server.
//!
//! Two directories are made once: one of a server that was stopped cleanly, one of a server that was killed with acknowledged
//! commits only in its log. Each trial copies one, harms one file, starts the server and reads everything. Every read gives
//! exactly the rows that were acknowledged, or an error with a text; a server that will not start or stops says why.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, OpenOptions};
use std::hash::{Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::server::Server;
use super::{Bench, HANG, Report, Verdict};
use crate::Result;

const PAGE: u64 = 16384;
const SECTOR: u64 = 4096;

/// Every page of every table, by every index.
const READS: [&str; 6] = [
    "SELECT * FROM faults.plain ORDER BY id",
    "SELECT v, id FROM faults.plain FORCE INDEX (by_v) WHERE v >= 0 ORDER BY v, id",
    "SELECT id, t FROM faults.plain FORCE INDEX (by_t) WHERE t >= '' ORDER BY t",
    "SELECT * FROM faults.wide ORDER BY id",
    "SELECT * FROM faults.keyless ORDER BY a",
    "SELECT * FROM faults.late ORDER BY id",
];

/// A directory to damage copies of, and the answers to `READS`.
struct Base {
    dir: PathBuf,
    answers: Vec<u64>,
    /// Log positions of records, and of the end; empty where the log is not needed.
    records: Vec<u64>,
    segment_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    FlipBit(u64, u8),
    ZeroSector(u64),
    Truncate(u64),
    Remove,
}

/// What a trial ended in, where nothing was wrong.
enum Survived {
    AllCorrect,
    SomeErrors(String),
    WouldNotStart(String),
    Stopped(String),
}

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (clean, killed) = make_bases(bench).await?;
    let mut rng = StdRng::seed_from_u64(bench.seed ^ 0x6669_6C65);
    for (name, base) in [("clean", &clean), ("killed", &killed)] {
        let mut files: Vec<String> = fs::read_dir(&base.dir)?
            .filter_map(|entry| entry.ok().filter(|e| e.path().is_file()).and_then(|e| e.file_name().into_string().ok()))
            .collect();
        files.sort();
        for file in files {
            let harms = choose(&mut rng, base, &file, bench.short)?;
            report.case(&format!("files: {file} of a server {name}"), try_all(bench, base, &file, harms)).await;
        }
    }
    report.case("files: the middle of the acknowledged log", acknowledged_log(bench, &killed)).await;
    report.case("files: behind the end of the log", behind_the_log(bench, &killed)).await;
    Ok(())
}

async fn make_bases(bench: &Bench) -> Result<(Base, Base)> {
    let dir = bench.workdir.join("clean");
    let server = Server::start(bench, &dir, &[]).await?;
    let mut c = server.connect().await?;
    for sql in [
        "CREATE DATABASE faults",
        "CREATE TABLE faults.plain (id BIGINT PRIMARY KEY, v INT, d DECIMAL(20,4), t VARCHAR(200), KEY by_v (v), UNIQUE KEY by_t (t))",
        "CREATE TABLE faults.wide (id INT PRIMARY KEY, b LONGBLOB)",
        "CREATE TABLE faults.keyless (a INT, b VARCHAR(100))",
        "CREATE TABLE faults.late (id INT PRIMARY KEY, t VARCHAR(300))",
    ] {
        c.query_drop(sql).await?;
    }
    for block in 0..10 {
        let rows = |row: fn(i32) -> String| (block * 300..(block + 1) * 300).map(row).collect::<Vec<_>>().join(",");
        let plain = rows(|i| format!("({i}, {}, {i}.25, CONCAT('row {i} ', REPEAT('p', {})))", i * 7919 % 1000, i % 150));
        c.query_drop(format!("INSERT INTO faults.plain VALUES {plain}")).await?;
        c.query_drop(format!("INSERT INTO faults.keyless VALUES {}", rows(|i| format!("({i}, REPEAT('k', {}))", i % 90)))).await?;
        c.query_drop(format!("INSERT INTO faults.wide VALUES ({block}, REPEAT('wide {block} ', 15000))")).await?;
    }
    drop(c);
    server.terminate().await?;

    let killed = bench.workdir.join("killed");
    copy_dir(&dir, &killed)?;
    let server = Server::start(bench, &killed, &[]).await?;
    let mut c = server.connect().await?;
    for i in 0..60 {
        c.query_drop(format!("INSERT INTO faults.late VALUES ({i}, REPEAT('late {i} ', 30))")).await?;
    }
    drop(c);
    server.kill()?;

    let mut bases = Vec::new();
    for (dir, late) in [(dir, 0), (killed, 60)] {
        let (redo_lsn, segment_bytes) = read_control(&dir)?;
        let records = if late > 0 { walk_log(&dir, redo_lsn, segment_bytes)? } else { Vec::new() };
        let trial = bench.workdir.join("trial");
        copy_dir(&dir, &trial)?;
        let server = Server::start(bench, &trial, &[]).await?;
        let mut c = server.connect().await?;
        let found: Option<u64> = c.query_first("SELECT COUNT(*) FROM faults.late").await?;
        if found != Some(late) {
            return Err(format!("{late} rows of faults.late were acknowledged, {found:?} are there").into());
        }
        let mut answers = Vec::new();
        for sql in READS {
            answers.push(answer(&mut c, sql).await?);
        }
        drop(c);
        server.terminate().await?;
        fs::remove_dir_all(&trial)?;
        bases.push(Base { dir, answers, records, segment_bytes });
    }
    let killed = bases.pop().ok_or("two bases")?;
    let clean = bases.pop().ok_or("two bases")?;
    Ok((clean, killed))
}

/// A hash of all rows.
async fn answer(c: &mut Conn, sql: &str) -> Result<u64, mysql_async::Error> {
    let rows: Vec<Row> = c.query(sql).await?;
    let mut hasher = DefaultHasher::new();
    for row in rows {
        format!("{:?}", row.unwrap()).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Seeded places in one file: anywhere, and (for pages) in each part that holds something.
fn choose(rng: &mut StdRng, base: &Base, file: &str, short: bool) -> Result<Vec<Harm>> {
    let bytes = fs::read(base.dir.join(file))?;
    let length = bytes.len() as u64;
    let mut harms = vec![Harm::Remove];
    if length == 0 {
        return Ok(harms);
    }
    harms.extend([Harm::Truncate(0), Harm::Truncate(length - 1), Harm::Truncate(rng.random_range(0..length))]);
    let used: Vec<u64> =
        (0..length.div_ceil(PAGE)).filter(|p| bytes[(p * PAGE) as usize..].iter().take(PAGE as usize).any(|b| *b != 0)).collect();
    let flips = if short { 3 } else { 15 };
    for _ in 0..flips {
        // Where something is, if anything is.
        let page = if used.is_empty() { 0 } else { used[rng.random_range(0..used.len())] };
        let at = (page * PAGE + rng.random_range(0..PAGE)).min(length - 1);
        harms.push(Harm::FlipBit(at, rng.random_range(0..8)));
        if rng.random_ratio(1, 3) {
            harms.push(Harm::ZeroSector(at / SECTOR * SECTOR));
        }
    }
    Ok(harms)
}

async fn try_all(bench: &Bench, base: &Base, file: &str, harms: Vec<Harm>) -> Result<Verdict> {
    let (mut correct, mut errors, mut refused, mut stopped) = (0, 0, 0, 0);
    let mut example = String::new();
    let mut wrong = Vec::new();
    for harm in harms {
        match trial(bench, base, file, harm).await {
            Ok(Survived::AllCorrect) => correct += 1,
            Ok(Survived::SomeErrors(text)) => {
                errors += 1;
                example = text;
            }
            Ok(Survived::WouldNotStart(text)) => {
                refused += 1;
                example = text;
            }
            Ok(Survived::Stopped(text)) => {
                stopped += 1;
                example = text;
            }
            Err(e) => wrong.push(format!("{harm:?}: {e}")),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join(" | ").into());
    }
    let example = if example.is_empty() { String::new() } else { format!("; e.g. {example}") };
    Ok(Verdict::Passed(format!("{correct} correct, {errors} with errors, {refused} would not start, {stopped} stopped{example}")))
}

async fn trial(bench: &Bench, base: &Base, file: &str, harm: Harm) -> Result<Survived> {
    let dir = bench.workdir.join("trial");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    copy_dir(&base.dir, &dir)?;
    apply(&dir.join(file), harm)?;
    let mut server = Server::spawn(bench, &dir, &[])?;
    if let Some(status) = server.ready().await? {
        server.no_panic()?;
        let said = server.last_line();
        let names_it = said.contains(file) || ["corrupt", "page", "control"].iter().any(|word| said.contains(word));
        if status.success() || !said.contains("ERROR") || !names_it {
            return Err(format!("ended in {status} and said: {said}").into());
        }
        return Ok(Survived::WouldNotStart(message(&said)));
    }
    let mut errors = Vec::new();
    for (sql, expected) in READS.iter().zip(&base.answers) {
        // A stopped server refuses the connection.
        let read = async {
            let mut c = server.connect().await?;
            Ok::<_, crate::Error>(answer(&mut c, sql).await?)
        };
        match tokio::time::timeout(HANG, read).await.map_err(|_| format!("{sql} hangs"))? {
            Ok(found) if found == *expected => {}
            Ok(_) => return Err(format!("WRONG ROWS, and no error: {sql}; said: {}", message(&server.last_line())).into()),
            Err(e) => errors.push(e.to_string()),
        }
    }
    server.no_panic()?;
    if !server.is_running()? {
        let said = server.last_line();
        if !said.contains("fatal:") {
            return Err(format!("the server ended and said: {said}").into());
        }
        return Ok(Survived::Stopped(message(&said)));
    }
    if server.said().contains("ended by a panic") {
        return Err("a connection ended by a panic".into());
    }
    match errors.into_iter().next() {
        // Its pages are damaged still: how it stops is not asked.
        Some(error) if error.to_lowercase().contains("corrupt") || error.contains("page") => Ok(Survived::SomeErrors(error)),
        Some(error) => Err(format!("an error that does not name the damage: {error}").into()),
        None => {
            server.terminate().await?;
            Ok(Survived::AllCorrect)
        }
    }
}

/// A log line without time and source.
fn message(line: &str) -> String {
    line.split_once(": ").map_or(line, |(_, text)| text).to_string()
}

fn apply(file: &Path, harm: Harm) -> Result<()> {
    if let Harm::Remove = harm {
        return Ok(fs::remove_file(file)?);
    }
    let open = OpenOptions::new().read(true).write(true).open(file)?;
    match harm {
        Harm::FlipBit(at, bit) => {
            let mut byte = [0];
            open.read_exact_at(&mut byte, at)?;
            open.write_all_at(&[byte[0] ^ 1 << bit], at)?;
        }
        Harm::ZeroSector(at) => {
            let end = open.metadata()?.len();
            open.write_all_at(&vec![0; SECTOR.min(end - at) as usize], at)?;
        }
        Harm::Truncate(length) => open.set_len(length)?,
        Harm::Remove => {}
    }
    Ok(())
}

/// Every commit that was acknowledged before another is known to have been durable: losing it must not go unnoticed.
async fn acknowledged_log(bench: &Bench, base: &Base) -> Result<Verdict> {
    let records = base.records.len();
    if records < 20 {
        return Err(format!("only {records} records in the log").into());
    }
    let places: Vec<usize> = [1, 4, 8, 12, 15].iter().map(|sixteenth| records * sixteenth / 16).collect();
    let mut wrong = Vec::new();
    let mut noticed = String::new();
    for at in &places {
        // Within the record, behind its header.
        let lsn = base.records[*at] + 20;
        let file = format!("wal.{:08}", lsn / base.segment_bytes);
        match trial(bench, base, &file, Harm::FlipBit(lsn % base.segment_bytes, 3)).await {
            Ok(Survived::AllCorrect) => {}
            Ok(Survived::SomeErrors(text) | Survived::WouldNotStart(text) | Survived::Stopped(text)) => noticed = text,
            Err(e) => wrong.push(format!("record {at} of {records} at log position {}: {e}", base.records[*at])),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join(" | ").into());
    }
    Ok(Verdict::Passed(format!("{} flips, none unnoticed: {noticed}", places.len())))
}

/// What lies behind the last record is nobody's.
async fn behind_the_log(bench: &Bench, base: &Base) -> Result<Verdict> {
    let end = *base.records.last().ok_or("an empty log")?;
    for distance in [0, 40, 5000] {
        let lsn = end + distance;
        let file = format!("wal.{:08}", lsn / base.segment_bytes);
        match trial(bench, base, &file, Harm::FlipBit(lsn % base.segment_bytes, 5)).await? {
            Survived::AllCorrect => {}
            Survived::SomeErrors(text) | Survived::WouldNotStart(text) | Survived::Stopped(text) => {
                return Err(format!("{distance} bytes behind the end: {text}").into());
            }
        }
    }
    Ok(Verdict::Passed("a flipped bit there changes nothing".into()))
}

/// Where redo begins and how long a log file is: crates/storage/src/wal/control.rs.
fn read_control(dir: &Path) -> Result<(u64, u64)> {
    let bytes = fs::read(dir.join("control"))?;
    let number = |at: usize| bytes.get(at..at + 8).map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes")));
    let slots = [0, SECTOR as usize].into_iter().filter_map(|slot| Some((number(slot + 8)?, number(slot + 24)?, number(slot + 48)?)));
    let (_, redo_lsn, segment_bytes) = slots.max().ok_or("a short control file")?;
    Ok((redo_lsn, segment_bytes))
}

/// Where records begin, from `lsn` to the end of the log: crates/storage/src/wal/README.md.
fn walk_log(dir: &Path, mut lsn: u64, segment_bytes: u64) -> Result<Vec<u64>> {
    let mut records = vec![lsn];
    loop {
        let segment = fs::read(dir.join(format!("wal.{:08}", lsn / segment_bytes)))?;
        let at = (lsn % segment_bytes) as usize;
        let Some(length) = segment.get(at..at + 4) else { return Err("the log goes beyond its first file".into()) };
        match u32::from_le_bytes(length.try_into()?) {
            0 => return Ok(records),
            length => lsn += u64::from(length),
        }
        records.push(lsn);
    }
}

fn copy_dir(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
