//! Source 004: single-row inserts into an auto-increment table, each its own durable commit, at 1 to 256 connections.

use crate::report::{Better, Cell, Report};
use crate::server::{self, Result, Server, number, run as execute};
use crate::workers::{self, Done};

/// What to measure.
pub struct Plan {
    pub seconds: f64,
    pub connections: Vec<u64>,
}

/// Runs the experiment.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Report> {
    let mut report = Report::new("auto-increment", "inserts/s", "connections", Better::More, servers);
    for &connections in &plan.connections {
        let done = server::alternate(servers, repeats, async |server| cell(server, database, connections, plan.seconds).await).await?;
        for (server, done) in done.into_iter().enumerate() {
            let figures: Vec<f64> = done.iter().map(|d| d.per_second).collect();
            eprintln!("{connections} connections {}: {figures:.0?}", servers[server].name);
            let mut latencies: Vec<u32> = done.into_iter().flat_map(|d| d.latencies).collect();
            let latency_ms = Some(summary_ms(&mut latencies));
            report.push(Cell { group: "auto_increment".into(), at: connections, server, figures, latency_ms });
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

async fn cell(server: &Server, database: &str, connections: u64, seconds: f64) -> Result<Done> {
    let mut control = server.fresh(database).await?;
    execute(
        &mut control,
        "CREATE TABLE t1 (`id` int NOT NULL AUTO_INCREMENT, `c1` int NOT NULL, PRIMARY KEY (`id`)) engine=InnoDB",
    )
    .await?;
    let all = server.connect_many(database, connections).await?;
    let done = workers::work(all, seconds, |connection, _| format!("INSERT INTO t1 (c1) VALUES ({connection})")).await?;
    let found = number(&mut control, "SELECT COUNT(*) FROM t1").await?;
    if found != done.statements {
        return Err(format!("{}: {} inserts acknowledged, {found} rows found", server.name, done.statements).into());
    }
    Ok(done)
}
