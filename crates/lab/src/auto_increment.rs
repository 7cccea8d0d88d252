//! Source 004: single-row inserts into an auto-increment table, each its own durable commit, at 1 to 256 connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::report::{Cell, Report};
use crate::server::{Result, Server, number, run as execute};

/// What to measure.
pub struct Plan {
    pub seconds: f64,
    pub connections: Vec<u64>,
}

/// Runs the experiment.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Report> {
    let mut report = Report {
        name: "auto-increment",
        unit: "inserts/s",
        axis: "connections",
        servers: servers.iter().map(|s| s.name.clone()).collect(),
        cells: Vec::new(),
    };
    for &connections in &plan.connections {
        let mut figures = vec![Vec::new(); servers.len()];
        let mut latencies: Vec<Vec<u32>> = vec![Vec::new(); servers.len()];
        for _ in 0..repeats {
            for (server, target) in servers.iter().enumerate() {
                let (figure, mut micros) = cell(target, database, connections, plan.seconds).await?;
                figures[server].push(figure);
                latencies[server].append(&mut micros);
            }
        }
        for (server, figures) in figures.into_iter().enumerate() {
            eprintln!("{connections} connections {}: {figures:.0?}", servers[server].name);
            let latency_ms = Some(summary_ms(&mut latencies[server]));
            report.cells.push(Cell { group: "auto_increment".into(), at: connections, server, figures, latency_ms });
        }
    }
    Ok(report)
}

/// Average, 95th percentile and maximum, in ms.
fn summary_ms(micros: &mut [u32]) -> [f64; 3] {
    if micros.is_empty() {
        return [0.0; 3];
    }
    micros.sort_unstable();
    let sum: u64 = micros.iter().map(|&m| u64::from(m)).sum();
    let at = |q: f64| f64::from(micros[((micros.len() - 1) as f64 * q) as usize]) / 1000.0;
    [sum as f64 / micros.len() as f64 / 1000.0, at(0.95), at(1.0)]
}

async fn cell(server: &Server, database: &str, connections: u64, seconds: f64) -> Result<(f64, Vec<u32>)> {
    let mut control = server.connect(None).await?;
    execute(&mut control, &format!("DROP DATABASE IF EXISTS {database}")).await?;
    execute(&mut control, &format!("CREATE DATABASE {database}")).await?;
    execute(&mut control, &format!("USE {database}")).await?;
    execute(
        &mut control,
        "CREATE TABLE t1 (`id` int NOT NULL AUTO_INCREMENT, `c1` int NOT NULL, PRIMARY KEY (`id`)) engine=InnoDB",
    )
    .await?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut running = tokio::task::JoinSet::new();
    let all = server.connect_many(database, connections).await?;
    let start = Instant::now();
    for (i, mut connection) in all.into_iter().enumerate() {
        let stop = stop.clone();
        running.spawn(async move {
            let mut micros = Vec::new();
            let sql = format!("INSERT INTO t1 (c1) VALUES ({i})");
            while !stop.load(Ordering::Relaxed) {
                let begin = Instant::now();
                execute(&mut connection, &sql).await?;
                micros.push(begin.elapsed().as_micros() as u32);
            }
            Result::Ok(micros)
        });
    }
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut micros = Vec::new();
    while let Some(done) = running.join_next().await {
        micros.append(&mut done??);
    }
    let elapsed = start.elapsed().as_secs_f64();
    let found = number(&mut control, "SELECT COUNT(*) FROM t1").await?;
    if found != micros.len() as u64 {
        return Err(format!("{}: {} inserts acknowledged, {found} rows found", server.name, micros.len()).into());
    }
    Ok((micros.len() as f64 / elapsed, micros))
}
