//! Many connections that run short statements for some time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql_async::Conn;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::server::{Result, run};

/// What the connections did.
pub struct Done {
    pub statements: u64,
    pub per_second: f64,
    /// Of each statement, in microseconds.
    pub latencies: Vec<u32>,
}

/// Runs `statement(connection number, random numbers of its own)` on every connection, again and again for `seconds`. The first error
/// ends it.
pub async fn work(
    connections: Vec<Conn>,
    seconds: f64,
    statement: impl Fn(u64, &mut StdRng) -> String + Clone + Send + Sync + 'static,
) -> Result<Done> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut running = tokio::task::JoinSet::new();
    let start = Instant::now();
    for (number, mut connection) in connections.into_iter().enumerate() {
        let (stop, statement) = (stop.clone(), statement.clone());
        running.spawn(async move {
            let mut random = StdRng::seed_from_u64(number as u64);
            let mut latencies = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let sql = statement(number as u64, &mut random);
                let begin = Instant::now();
                run(&mut connection, &sql).await?;
                latencies.push(begin.elapsed().as_micros() as u32);
            }
            Result::Ok(latencies)
        });
    }
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    while let Some(done) = running.join_next().await {
        latencies.append(&mut done??);
    }
    let statements = latencies.len() as u64;
    Ok(Done { statements, per_second: statements as f64 / start.elapsed().as_secs_f64(), latencies })
}
