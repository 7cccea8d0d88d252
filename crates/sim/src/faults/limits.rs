//! Statements too long and values out of range.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Value};

use super::raw::{COM_QUERY, Raw};
use super::server::{Bystander, Server};
use super::{Bench, Report, Verdict};
use crate::Result;

/// A gigabyte less what a statement around it takes.
const BLOB: usize = 1_000_000_000;
/// The most that a packet's payload holds.
const PIECE: usize = 0xFF_FFFF;

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let datadir = bench.workdir.join("limits");
    let server = Server::start(bench, &datadir, &["--max-allowed-packet=1M"]).await?;
    let mut c = server.connect().await?;
    c.query_drop("CREATE DATABASE faults").await?;
    c.query_drop("USE faults").await?;
    let bystander = Bystander::writing(&server).await?;
    report.case("limits: a statement over max_allowed_packet", over_max_allowed_packet(&server)).await;
    report.case("limits: values out of range, as text", out_of_range(&mut c, false)).await;
    report.case("limits: values out of range, prepared", out_of_range(&mut c, true)).await;
    let acknowledged = bystander.finish().await?;
    Bystander::check(&mut c, acknowledged).await?;
    drop(c);
    server.no_panic()?;
    server.terminate().await?;
    if !bench.short {
        report.case("limits: a statement of 1 GB", gigabyte(bench)).await;
    }
    Ok(())
}

async fn over_max_allowed_packet(server: &Server) -> Result<Verdict> {
    let before = server.resident_mib()?;
    // A gigabyte announced in its first header; the server need not see the rest to refuse it.
    let mut raw = Raw::login(server.port).await?;
    let mut first = vec![0xFF, 0xFF, 0xFF, 0, COM_QUERY];
    first.resize(4096, b' ');
    raw.send_bytes(&first).await?;
    raw.read_to_end().await?.must_be(1153, false)?;
    // A client that sends all of it regardless gets the error or a broken connection.
    let mut c = server.connect().await?;
    let sql = format!("SELECT '{}'", "x".repeat(3 << 20));
    match c.query_drop(&sql).await {
        Err(Error::Server(e)) if e.code != 1153 => return Err(format!("expected 1153, got {e}").into()),
        Err(_) => {}
        Ok(()) => return Err("3 MiB went through a limit of 1 MiB".into()),
    }
    let grown = server.resident_mib()?.saturating_sub(before);
    if grown > 64 {
        return Err(format!("the server grew by {grown} MiB").into());
    }
    Ok(Verdict::Passed(format!("1153, the connection is closed, memory grew by {grown} MiB")))
}

/// Column type, the value in SQL, and MySQL's error in strict mode.
const BAD_VALUES: &[(&str, &str, u16)] = &[
    ("TINYINT", "128", 1264),
    ("TINYINT", "-129", 1264),
    ("TINYINT UNSIGNED", "-1", 1264),
    ("SMALLINT", "32768", 1264),
    ("MEDIUMINT UNSIGNED", "16777216", 1264),
    ("INT", "2147483648", 1264),
    ("INT UNSIGNED", "4294967296", 1264),
    ("BIGINT", "9223372036854775808", 1264),
    ("BIGINT UNSIGNED", "18446744073709551616", 1264),
    ("BIGINT UNSIGNED", "-1", 1264),
    ("DECIMAL(5,2)", "1000", 1264),
    ("DECIMAL(5,2)", "-999.999", 1264),
    ("FLOAT", "1e39", 1264),
    ("BIT(3)", "8", 1406),
    ("INT", "'abc'", 1366),
    ("INT", "'12abc'", 1265),
    ("INT", "NULL", 1048),
    ("DECIMAL(5,2)", "'x'", 1366),
    ("CHAR(3)", "'abcd'", 1406),
    ("VARCHAR(3)", "'\u{e4}\u{f6}\u{fc}\u{df}'", 1406),
    ("BINARY(2)", "'abc'", 1406),
    ("TINYTEXT", "REPEAT('t', 256)", 1406),
    ("TINYBLOB", "REPEAT('t', 256)", 1406),
    ("TEXT", "REPEAT('t', 65536)", 1406),
    ("VARCHAR(10) CHARACTER SET ascii", "'\u{e4}'", 1366),
    ("DATE", "'2023-02-29'", 1292),
    ("DATE", "'nonsense'", 1292),
    ("DATETIME", "'2023-01-01 25:00:00'", 1292),
    ("TIMESTAMP", "'1969-01-01 00:00:00'", 1292),
    ("TIMESTAMP", "'2040-01-01 00:00:00'", 1292),
    ("TIME", "'839:00:00'", 1292),
    ("YEAR", "2156", 1264),
    ("ENUM('a','b')", "'c'", 1265),
    ("SET('a','b')", "'a,c'", 1265),
    ("JSON", "'{'", 3140),
];

async fn out_of_range(c: &mut Conn, prepared: bool) -> Result<Verdict> {
    let mut wrong = Vec::new();
    for (ty, value, expected) in BAD_VALUES {
        c.query_drop("DROP TABLE IF EXISTS bad").await?;
        c.query_drop(format!("CREATE TABLE bad (id INT AUTO_INCREMENT PRIMARY KEY, c {ty} NOT NULL)")).await?;
        let result = if prepared {
            // The client binds what the expression is: text for quoted and computed values, else a number or NULL.
            let parameter = bind(c, value).await?;
            c.exec_drop("INSERT INTO bad (c) VALUES (?)", (parameter,)).await
        } else {
            c.query_drop(format!("INSERT INTO bad (c) VALUES ({value})")).await
        };
        let got = match result {
            Ok(()) => 0,
            Err(Error::Server(e)) => e.code,
            Err(e) => return Err(format!("{ty} {value}: {e}").into()),
        };
        let rows: Option<u64> = c.query_first("SELECT COUNT(*) FROM bad").await?;
        if got != *expected || rows != Some(0) {
            wrong.push(format!("{ty} {value}: expected {expected}, got {got}, {rows:?} rows"));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join("; ").into());
    }
    Ok(Verdict::Passed(format!("{} values, MySQL's error for each", BAD_VALUES.len())))
}

async fn bind(c: &mut Conn, value: &str) -> Result<Value> {
    if value == "NULL" {
        return Ok(Value::NULL);
    }
    if let Ok(n) = value.parse::<i64>() {
        return Ok(Value::Int(n));
    }
    if let Ok(n) = value.parse::<u64>() {
        return Ok(Value::UInt(n));
    }
    if value.contains('e') && let Ok(n) = value.parse::<f64>() {
        return Ok(Value::Double(n));
    }
    let text: Option<Vec<u8>> = c.query_first(format!("SELECT {value}")).await?;
    Ok(Value::Bytes(text.ok_or("no value")?))
}

async fn gigabyte(bench: &Bench) -> Result<Verdict> {
    let datadir = bench.workdir.join("gigabyte");
    let mut server = Server::start(bench, &datadir, &["--max-allowed-packet=1G"]).await?;
    let mut c = server.connect().await?;
    c.query_drop("CREATE DATABASE faults").await?;
    c.query_drop("CREATE TABLE faults.big (id INT PRIMARY KEY, b LONGBLOB)").await?;
    let bystander = Bystander::writing(&server).await?;
    let mut raw = Raw::login(server.port).await?;
    let (head, tail): (&[u8], &[u8]) = (b"\x03INSERT INTO faults.big VALUES (1, '", b"')");
    let total = head.len() + BLOB + tail.len();
    // A piece at a time: this process does not hold the statement.
    let (mut sent, mut sequence) = (0, 0_u8);
    while sent < total {
        let length = PIECE.min(total - sent);
        let mut piece: Vec<u8> = (length as u32).to_le_bytes().to_vec();
        piece[3] = sequence;
        piece.extend((sent..sent + length).map(|at| match at {
            at if at < head.len() => head[at],
            at if at < head.len() + BLOB => b'g',
            at => tail[at - head.len() - BLOB],
        }));
        raw.send_bytes(&piece).await?;
        sent += length;
        sequence = sequence.wrapping_add(1);
    }
    let mut answer = raw.read().await;
    while answer.is_err() && server.is_running()? && server.resident_mib()? < 12_000 {
        answer = raw.read().await;
    }
    let how = match answer?.as_deref() {
        Some([0, ..]) => {
            let found: Option<(u64, String)> = c.query_first("SELECT LENGTH(b), MD5(b) FROM faults.big WHERE id = 1").await?;
            if found.as_ref().map(|found| found.0) != Some(BLOB as u64) {
                return Err(format!("{BLOB} bytes were acknowledged, found {found:?}").into());
            }
            "went through".to_string()
        }
        Some([0xFF, low, high, text @ ..]) => {
            format!("error {} {}", u16::from_le_bytes([*low, *high]), String::from_utf8_lossy(text))
        }
        other => return Err(format!("answered by {:?}: {}", other.map(<[u8]>::len), server.last_line()).into()),
    };
    let peak = server.peak_mib()?;
    let acknowledged = bystander.finish().await?;
    Bystander::check(&mut c, acknowledged).await?;
    server.no_panic()?;
    if peak > 8 * 1024 {
        return Err(format!("{how}, but {peak} MiB were resident").into());
    }
    drop(c);
    drop(raw);
    server.terminate().await?;
    Ok(Verdict::Passed(format!("{how}, at most {peak} MiB resident")))
}
