//! Malformed packets.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::raw::{self, COM_QUERY, COM_STMT_EXECUTE, COM_STMT_PREPARE, COM_STMT_SEND_LONG_DATA, Raw, command, framed};
use super::server::{Bystander, Server};
use super::{Bench, HANG, Report, Verdict};
use crate::Result;

const MAX_PACKET: u32 = 1 << 20;
/// More than caches, logs and the bystander take; less than any leak here would make.
const GROWTH_MIB_MAX: u64 = 96;

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let datadir = bench.workdir.join("packets");
    let packet_option = format!("--max-allowed-packet={MAX_PACKET}");
    let options = [packet_option.as_str(), "--connect-timeout=2"];
    let server = Server::start(bench, &datadir, &options).await?;
    let mut control = server.connect().await?;
    for sql in [
        "CREATE DATABASE faults",
        "CREATE TABLE faults.m (id INT PRIMARY KEY, v INT, t VARCHAR(100), d DECIMAL(10,2), KEY (v))",
        "INSERT INTO faults.m VALUES (1, 10, 'one', 1.5), (2, 20, 'two', 2.5), (3, NULL, NULL, NULL)",
    ] {
        control.query_drop(sql).await?;
    }
    let bystander = Bystander::writing(&server).await?;
    let before = connected(&mut control).await?;
    report.case("packets: before authentication", before_authentication(&server)).await;
    report.case("packets: truncated handshakes", truncated_handshakes(&server)).await;
    report.case("packets: half a packet, then silence", silence(&server)).await;
    report.case("packets: headers and sequence numbers", headers(&server)).await;
    report.case("packets: every command byte", every_command(&server, bench.seed)).await;
    report.case("packets: bad executions", bad_executions(&server)).await;
    report.case("packets: long data for no statement", homeless_long_data(&server)).await;
    report.case("packets: long data over max_allowed_packet", endless_long_data(&server)).await;
    let rounds = if bench.short { 2_000 } else { 20_000 };
    report.case("packets: random mutations", mutations(&server, bench.seed, rounds)).await;
    report
        .case("packets: afterwards", async {
            let acknowledged = bystander.finish().await?;
            no_leak(&mut control, before - 1).await?;
            server.no_panic()?;
            drop(control);
            server.kill()?;
            let server = Server::start(bench, &datadir, &options).await?;
            let mut control = server.connect().await?;
            Bystander::check(&mut control, acknowledged).await?;
            drop(control);
            server.terminate().await?;
            Ok(Verdict::Passed(format!("no connection left over, no panic, the bystander's {acknowledged} rows are there after SIGKILL")))
        })
        .await;
    Ok(())
}

async fn connected(control: &mut Conn) -> Result<u64> {
    let row: Option<(String, u64)> = control.query_first("SHOW GLOBAL STATUS LIKE 'Threads_connected'").await?;
    Ok(row.ok_or("no Threads_connected")?.1)
}

/// Closed connections are gone soon.
async fn no_leak(control: &mut Conn, expected: u64) -> Result<()> {
    let deadline = Instant::now() + HANG;
    loop {
        let now = connected(control).await?;
        if now == expected {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{now} connections, expected {expected}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn before_authentication(server: &Server) -> Result<Verdict> {
    let tls = framed(1, &raw::tls_request());
    let cases: [(&str, Vec<u8>, Option<u16>); 9] = [
        ("nothing", vec![], None),
        ("half a header", vec![30, 0], None),
        ("a header only", vec![30, 0, 0, 1], None),
        ("sequence 7", framed(7, &raw::hello()), Some(1156)),
        ("16 MiB announced", vec![0xFF, 0xFF, 0xFF, 1], Some(1153)),
        ("an empty packet", framed(1, &[]), Some(1043)),
        ("text", b"GET / HTTP/1.1\r\n\r\n".to_vec(), None),
        ("garbage for a TLS hello", [&tls[..], &[0x5A; 600]].concat(), None),
        ("a TLS record that never ends", [&tls[..], &[0x16, 3, 1, 0xFF, 0xFF, 1, 2, 3]].concat(), None),
    ];
    let count = cases.len();
    for (name, bytes, code) in cases {
        let mut raw = Raw::greeted(server.port).await?;
        raw.send_bytes(&bytes).await?;
        raw.half_close().await;
        let outcome = raw.read_to_end().await.map_err(|e| format!("{name}: {e}"))?;
        if let Some(code) = code {
            outcome.must_be(code, false).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(Verdict::Passed(format!("{count} greetings answered badly, each closed")))
}

async fn truncated_handshakes(server: &Server) -> Result<Verdict> {
    let hello = raw::hello();
    let mut refused = 0;
    for length in 0..hello.len() {
        let mut raw = Raw::greeted(server.port).await?;
        raw.send(1, &hello[..length]).await?;
        raw.half_close().await;
        let outcome = raw.read_to_end().await.map_err(|e| format!("{length} bytes: {e}"))?;
        // Shorter ones may still be complete for a client of fewer abilities.
        if length < 32 {
            outcome.must_be(1043, false).map_err(|e| format!("{length} bytes: {e}"))?;
        }
        refused += usize::from(!outcome.errors.is_empty());
    }
    Ok(Verdict::Passed(format!("{} lengths, {refused} told an error", hello.len())))
}

async fn silence(server: &Server) -> Result<Verdict> {
    // connect_timeout is 2 s here.
    for bytes in [vec![], vec![30, 0, 0, 1, 1, 2, 3], framed(1, &raw::tls_request())] {
        let mut raw = Raw::greeted(server.port).await?;
        raw.send_bytes(&bytes).await?;
        raw.read_to_end().await.map_err(|e| format!("after {} bytes: {e}", bytes.len()))?;
    }
    // After authentication a client may be slow; when it goes, so does its connection.
    let mut raw = Raw::login(server.port).await?;
    raw.send_bytes(&[100, 0, 0, 0, COM_QUERY, b'S']).await?;
    raw.half_close().await;
    raw.read_to_end().await?;
    Ok(Verdict::Passed("connect_timeout ends those who never say who they are".into()))
}

async fn headers(server: &Server) -> Result<Verdict> {
    let port = server.port;
    let mut raw = Raw::login(port).await?;
    raw.send_bytes(&framed(5, &command(COM_QUERY, b"SELECT 1"))).await?;
    raw.read_to_end().await?.must_be(1156, false)?;

    let mut raw = Raw::login(port).await?;
    let length = (MAX_PACKET + 1).to_le_bytes();
    raw.send_bytes(&[length[0], length[1], length[2], 0, COM_QUERY]).await?;
    raw.read_to_end().await?.must_be(1153, false)?;

    let mut raw = Raw::login(port).await?;
    raw.send_bytes(&[0xFF, 0xFF, 0xFF, 0]).await?;
    raw.read_to_end().await?.must_be(1153, false)?;

    // A command without even its byte.
    let mut raw = Raw::login(port).await?;
    raw.send(0, &[]).await?;
    let outcome = raw.settle().await?;
    outcome.must_be_refused()?;

    // Two commands in one write are two commands.
    let mut raw = Raw::login(port).await?;
    let both = [framed(0, &command(COM_QUERY, b"DO 1")), framed(0, &command(COM_QUERY, b"DO 2"))].concat();
    raw.send_bytes(&both).await?;
    let outcome = raw.settle().await?;
    if !outcome.alive || !outcome.errors.is_empty() {
        return Err(format!("two commands in one write: {outcome:?}").into());
    }
    Ok(Verdict::Passed("1156 out of order, 1153 at the header of a packet too long, an error for an empty one".into()))
}

async fn every_command(server: &Server, seed: u64) -> Result<Verdict> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut told, mut closed) = (0, 0);
    for code in 0..=255_u8 {
        for length in [0, 1, 3, 9] {
            let rest: Vec<u8> = (0..length).map(|_| rng.random()).collect();
            let mut raw = Raw::login(server.port).await?;
            raw.send(0, &command(code, &rest)).await?;
            let outcome = raw.settle().await.map_err(|e| format!("command {code:#x} {rest:?}: {e}"))?;
            told += usize::from(!outcome.errors.is_empty());
            closed += usize::from(!outcome.alive);
            if code > 0x20 && !outcome.errors.iter().any(|(code, _)| *code == 1047) {
                return Err(format!("command {code:#x} does not exist, got {outcome:?}").into());
            }
        }
    }
    server.no_panic()?;
    Ok(Verdict::Passed(format!("1024 commands, {told} told an error, {closed} closed")))
}

/// A COM_STMT_EXECUTE of three parameters: BIGINT 7, VARCHAR 'abc', DATETIME.
fn execution(statement: u32) -> Vec<u8> {
    let mut payload = vec![COM_STMT_EXECUTE];
    payload.extend_from_slice(&statement.to_le_bytes());
    payload.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, 8, 0, 253, 0, 12, 0]);
    payload.extend_from_slice(&7_u64.to_le_bytes());
    payload.extend_from_slice(b"\x03abc");
    payload.extend_from_slice(&[7, 0xE8, 7, 2, 29, 23, 59, 58]);
    payload
}

const THREE: &str = "SELECT ? + 1, CONCAT(?, 'x'), CAST(? AS CHAR)";
/// Where the types and the string's length are in `execution`.
const TYPES_AT: [usize; 3] = [12, 14, 16];
const STRING_AT: usize = 26;
const DATETIME_AT: usize = 30;

async fn bad_executions(server: &Server) -> Result<Verdict> {
    let mut raw = Raw::login(server.port).await?;
    raw.send(0, &execution(4711)).await?;
    raw.settle().await?.must_be(1243, true)?;
    let statement = raw.prepare(THREE).await?;
    let good = execution(statement);
    raw.send(0, &good).await?;
    let outcome = raw.settle().await?;
    if !outcome.alive || !outcome.errors.is_empty() {
        return Err(format!("a correct execution: {outcome:?}").into());
    }
    let mut tried = 0;
    let mut attempts: Vec<(Vec<u8>, bool)> = (1..good.len()).map(|length| (good[..length].to_vec(), true)).collect();
    for at in TYPES_AT {
        for code in 0..=255 {
            let mut bad = good.clone();
            bad[at] = code;
            attempts.push((bad, false));
        }
    }
    for length in 0..=255 {
        for at in [STRING_AT, DATETIME_AT] {
            let mut bad = good.clone();
            bad[at] = length;
            // Up to its own length a string leaves a rest, which nobody forbids.
            let must_fail = at == STRING_AT && length > 11 || at == DATETIME_AT && !matches!(length, 0 | 4 | 7);
            attempts.push((bad, must_fail));
        }
    }
    let mut endless = good[..STRING_AT].to_vec();
    endless.push(0xFE);
    endless.extend_from_slice(&[0xFF; 8]);
    attempts.push((endless, true));
    let mut no_such_day = good.clone();
    no_such_day[DATETIME_AT + 1..].copy_from_slice(&[0xFF; 7]);
    attempts.push((no_such_day, false));
    for (bad, must_fail) in attempts {
        raw.send(0, &bad).await?;
        let outcome = raw.settle().await.map_err(|e| format!("{bad:?}: {e}"))?;
        if must_fail {
            outcome.must_be_refused().map_err(|e| format!("{bad:?}: {e}"))?;
        }
        tried += 1;
        if !outcome.alive {
            raw = Raw::login(server.port).await?;
            let again = raw.prepare(THREE).await?;
            if again != statement {
                return Err("a new connection numbers its statements anew".into());
            }
        }
    }
    server.no_panic()?;
    Ok(Verdict::Passed(format!("{tried} wrong types, lengths and ends")))
}

fn long_data(statement: u32, parameter: u16, bytes: usize) -> Vec<u8> {
    let mut payload = vec![COM_STMT_SEND_LONG_DATA];
    payload.extend_from_slice(&statement.to_le_bytes());
    payload.extend_from_slice(&parameter.to_le_bytes());
    payload.resize(payload.len() + bytes, b'x');
    payload
}

/// Pieces of nearly a packet each; 300 MB together.
const PIECES: u32 = 300;
const PIECE: usize = 1_000_000;

async fn homeless_long_data(server: &Server) -> Result<Verdict> {
    let before = server.resident_mib()?;
    let mut raw = Raw::login(server.port).await?;
    for i in 0..PIECES {
        raw.send(0, &long_data(1000 + i, 0, PIECE)).await?;
    }
    raw.settle().await?;
    let grown = server.resident_mib()?.saturating_sub(before);
    if grown > GROWTH_MIB_MAX {
        return Err(format!("{PIECES} MB for statements that do not exist: the server grew by {grown} MiB").into());
    }
    Ok(Verdict::Passed(format!("{PIECES} MB sent, the server grew by {grown} MiB")))
}

async fn endless_long_data(server: &Server) -> Result<Verdict> {
    let before = server.resident_mib()?;
    let mut raw = Raw::login(server.port).await?;
    let statement = raw.prepare(THREE).await?;
    for _ in 0..PIECES {
        raw.send(0, &long_data(statement, 1, PIECE)).await?;
    }
    raw.settle().await?;
    let grown = server.resident_mib()?.saturating_sub(before);
    if grown > GROWTH_MIB_MAX {
        return Err(format!("{PIECES} MB for one parameter: the server grew by {grown} MiB with max_allowed_packet of 1 MiB").into());
    }
    let mut execute = execution(statement);
    execute.drain(STRING_AT..DATETIME_AT);
    raw.send(0, &execute).await?;
    raw.settle().await?.must_be_refused()?;
    Ok(Verdict::Passed(format!("{PIECES} MB sent, the server grew by {grown} MiB, and refused to execute")))
}

/// Valid requests to start from.
fn requests(statement: u32) -> Vec<Vec<u8>> {
    let query = |sql: &str| command(COM_QUERY, sql.as_bytes());
    vec![
        query("SELECT id, v, t, d FROM faults.m WHERE id = 2"),
        query("SELECT v, COUNT(*), SUM(d) FROM faults.m GROUP BY v HAVING COUNT(*) > 0 ORDER BY 1 LIMIT 5"),
        query("INSERT INTO faults.m VALUES (9, 1, 'nine', 9.99) ON DUPLICATE KEY UPDATE v = v + 1"),
        query("UPDATE faults.m SET t = CONCAT(t, 'x') WHERE id = 1 AND LENGTH(t) < 50"),
        query("SELECT DATE_ADD('2024-02-29 10:11:12', INTERVAL 1 YEAR), CAST('12:30' AS TIME), 1/3, 0x4142, _utf8mb4'\u{e4}\u{1F600}'"),
        query("WITH a AS (SELECT 1 AS n UNION ALL SELECT 2) SELECT * FROM a JOIN faults.m ON a.n = m.id"),
        command(COM_STMT_PREPARE, b"SELECT t FROM faults.m WHERE id = ? OR t LIKE ?"),
        execution(statement),
        long_data(statement, 1, 20),
        command(0x02, b"faults"),
        command(0x04, b"m\0%"),
        command(0x0E, b""),
        command(0x11, b"root\0\0faults\0\xFF\0caching_sha2_password\0"),
        command(0x19, &[9, 0, 0, 0]),
        command(0x1A, &statement.to_le_bytes()),
        command(0x1B, &[0, 0]),
        command(0x1C, &[statement.to_le_bytes(), 5_u32.to_le_bytes()].concat()),
        command(0x1F, b""),
    ]
}

async fn mutations(server: &Server, seed: u64, rounds: u32) -> Result<Verdict> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x6D75_7461);
    let before = server.resident_mib()?;
    let (mut told, mut closed) = (0, 0);
    let mut open: Option<(Raw, u32)> = None;
    for round in 0..rounds {
        let (mut raw, statement) = match open.take() {
            Some(open) => open,
            None => {
                let mut raw = Raw::login(server.port).await?;
                let statement = raw.prepare(THREE).await?;
                (raw, statement)
            }
        };
        let all = requests(statement);
        let mut payload = all[rng.random_range(0..all.len())].clone();
        mutate(&mut rng, &mut payload);
        // COM_PROCESS_KILL could hit the bystander.
        if payload.first() == Some(&0x0C) {
            payload[0] = 0x0E;
        }
        let mut bytes = framed(0, &payload);
        let harmed_header = rng.random_ratio(1, 20);
        if harmed_header {
            bytes[rng.random_range(0..4)] ^= 1 << rng.random_range(0..8);
        }
        raw.send_bytes(&bytes).await?;
        let outcome = if harmed_header {
            raw.half_close().await;
            raw.read_to_end().await
        } else {
            raw.settle().await
        };
        let outcome = outcome.map_err(|e| format!("round {round}, {:?}: {e}", String::from_utf8_lossy(&bytes)))?;
        if !outcome.alive {
            server.no_panic().map_err(|e| format!("round {round}, {:?}: {e}", String::from_utf8_lossy(&bytes)))?;
        }
        told += usize::from(!outcome.errors.is_empty());
        if outcome.alive {
            open = Some((raw, statement));
        } else {
            closed += 1;
        }
    }
    drop(open);
    let mut unnamed = 0;
    for _ in 0..rounds / 10 {
        let mut raw = Raw::greeted(server.port).await?;
        let mut payload = raw::hello();
        mutate(&mut rng, &mut payload);
        raw.send(1, &payload).await?;
        raw.half_close().await;
        unnamed += usize::from(!raw.read_to_end().await?.errors.is_empty());
    }
    server.no_panic()?;
    let grown = server.resident_mib()?.saturating_sub(before);
    if grown > GROWTH_MIB_MAX {
        return Err(format!("the server grew by {grown} MiB").into());
    }
    Ok(Verdict::Passed(format!(
        "{rounds} requests, {told} told an error, {closed} closed; {} handshakes, {unnamed} told an error; memory grew by {grown} MiB",
        rounds / 10
    )))
}

fn mutate(rng: &mut StdRng, payload: &mut Vec<u8>) {
    for _ in 0..rng.random_range(1..=3) {
        let length = payload.len();
        match rng.random_range(0..6) {
            0 | 1 if length > 0 => payload[rng.random_range(0..length)] ^= 1 << rng.random_range(0..8),
            2 if length > 0 => payload[rng.random_range(0..length)] = rng.random(),
            3 => payload.truncate(rng.random_range(0..=length)),
            4 => payload.insert(rng.random_range(0..=length), rng.random()),
            _ if length > 1 => {
                // A piece again, elsewhere.
                let from = rng.random_range(0..length);
                let piece = payload[from..(from + rng.random_range(1..=16)).min(length)].to_vec();
                let to = rng.random_range(0..=length);
                payload.splice(to..to, piece);
            }
            _ => payload.push(rng.random()),
        }
    }
}
