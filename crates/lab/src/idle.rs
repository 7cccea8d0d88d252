//! Source 001's crowd, at rest: what do connections cost that do nothing, and what do they take from those that work?
//!
//! Each cell opens so many connections, of which each has run one statement, and then lets a few others read rows by key. Three reports come of it:
//! memory of the server per connection, connections opened a second, selects a second.

use std::time::Instant;

use mysql_async::Conn;
use rand::Rng;
use rand::rngs::StdRng;

use crate::report::{Better, Figure, Report, push_cells, reports_of};
use crate::sbtest::Table;
use crate::server::{self, Pid, Result, Server, run as execute};
use crate::workers::{self, Statement};

/// What to measure.
pub struct Plan {
    /// Idle connections.
    pub counts: Vec<u64>,
    /// Connections that work.
    pub active: u64,
    pub seconds: f64,
    pub pids: Vec<Pid>,
}

/// Connections that are opened at once.
const OPENING: usize = 64;
const ROWS: u32 = 10_000;

/// One cell's figures.
struct Measured {
    kibibytes_each: Option<f64>,
    opened_per_second: Option<f64>,
    selects: f64,
}

const FIGURES: [Figure<Measured>; 3] = [
    ("idle-memory", "KiB of the server per idle connection", Better::Less, |m| m.kibibytes_each),
    ("idle-opened", "connections opened/s", Better::More, |m| m.opened_per_second),
    ("idle-selects", "selects/s beside them", Better::More, |m| Some(m.selects)),
];

/// Runs the experiment.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Vec<Report>> {
    Pid::check(&plan.pids, servers)?;
    let mut reports = reports_of(&FIGURES, "idle connections", servers);
    for server in servers {
        let mut connection = server.fresh(database).await?;
        Table { number: 1, rows: ROWS }.create(&mut connection).await?;
    }
    for &count in &plan.counts {
        let measured = server::alternate(servers, repeats, async |server| cell(server, database, count, plan).await).await?;
        push_cells(&mut reports, &FIGURES, &format!("{count} idle connections"), "idle", count, &measured);
    }
    Ok(reports)
}

async fn cell(server: &Server, database: &str, count: u64, plan: &Plan) -> Result<Measured> {
    let resident = || Pid::of(&plan.pids, server).map(Pid::resident_bytes).transpose();
    let active = server.connect_many(database, plan.active).await?;
    let before = resident()?;
    let started = Instant::now();
    let idle = open(server, database, count).await?;
    let opened_in = started.elapsed().as_secs_f64();
    let after = resident()?;
    let select = |_, random: &mut StdRng| Statement::Text(format!("SELECT c FROM sbtest1 WHERE id = {}", random.random_range(1..=ROWS)));
    let done = workers::work(active, plan.seconds, select).await?;
    for connection in idle {
        connection.disconnect().await.map_err(|e| format!("{}: {e}", server.name))?;
    }
    let some = count > 0;
    Ok(Measured {
        kibibytes_each: before.zip(after).filter(|_| some).map(|(before, after)| after.saturating_sub(before) as f64 / 1024.0 / count as f64),
        opened_per_second: some.then_some(count as f64 / opened_in),
        selects: done.per_second,
    })
}

/// Opens connections, and runs a statement on each.
async fn open(server: &Server, database: &str, count: u64) -> Result<Vec<Conn>> {
    let mut opening = tokio::task::JoinSet::new();
    let mut idle = Vec::with_capacity(count as usize);
    for _ in 0..count {
        if opening.len() == OPENING
            && let Some(opened) = opening.join_next().await
        {
            idle.push(opened??);
        }
        let (server, database) = (server.clone(), database.to_string());
        opening.spawn(async move {
            let mut connection = server.connect(Some(&database)).await?;
            execute(&mut connection, "DO 1").await?;
            Result::Ok(connection)
        });
    }
    while let Some(opened) = opening.join_next().await {
        idle.push(opened??);
    }
    Ok(idle)
}
