//! Source 004: single-row inserts into an auto-increment table, each its own durable commit, at 1 to 256 connections.

use crate::report::{Better, Cell, Report};
use crate::server::{self, Result, Server, number, run as execute};
use crate::workers::{self, Done, Statement};

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
            let latency_ms = Some(workers::summary_ms(&done));
            report.push(Cell { group: "auto_increment".into(), at: connections, server, figures, latency_ms });
        }
    }
    Ok(report)
}

async fn cell(server: &Server, database: &str, connections: u64, seconds: f64) -> Result<Done> {
    let mut control = server.fresh(database).await?;
    execute(
        &mut control,
        "CREATE TABLE t1 (`id` int NOT NULL AUTO_INCREMENT, `c1` int NOT NULL, PRIMARY KEY (`id`)) engine=InnoDB",
    )
    .await?;
    let all = server.connect_many(database, connections).await?;
    let insert = |connection, _: &mut _| Statement::Text(format!("INSERT INTO t1 (c1) VALUES ({connection})"));
    let done = workers::work(all, seconds, insert).await?;
    let found = number(&mut control, "SELECT COUNT(*) FROM t1").await?;
    if found != done.statements {
        return Err(format!("{}: {} inserts acknowledged, {found} rows found", server.name, done.statements).into());
    }
    Ok(done)
}
