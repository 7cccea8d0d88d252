//! Many connections that run short statements for some time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::server::{Result, run};

/// What the connections did.
pub struct Done {
    pub statements: u64,
    /// From the first statement's begin to the last one's end.
    pub seconds: f64,
    pub per_second: f64,
    /// Of each statement, in microseconds.
    pub latencies: Vec<u32>,
}

/// What a connection sends.
pub enum Statement {
    Text(String),
    /// Prepared by the connection at its first use.
    Prepared(Arc<str>, Params),
}

impl Statement {
    async fn run(self, connection: &mut Conn) -> Result<()> {
        match self {
            Statement::Text(sql) => run(connection, &sql).await,
            Statement::Prepared(sql, params) => {
                connection.exec_drop(sql.clone(), params).await.map_err(|e| format!("{e}, in: {sql}").into())
            }
        }
    }
}

/// What connections do again and again.
pub trait Work: Clone + Send + Sync + 'static {
    /// One piece of it, by the connection of this number with random numbers of its own. Whether it counts.
    fn piece(&self, connection: &mut Conn, number: u64, random: &mut StdRng) -> impl Future<Output = Result<bool>> + Send;
}

/// Connections at work.
pub struct Running {
    stop: Arc<AtomicBool>,
    all: tokio::task::JoinSet<Result<Vec<u32>>>,
    start: Instant,
}

impl Running {
    /// Lets every connection work until it is told to stop. The first error ends it.
    pub fn start(connections: Vec<Conn>, work: &impl Work) -> Running {
        let mut running = Running { stop: Arc::new(AtomicBool::new(false)), all: tokio::task::JoinSet::new(), start: Instant::now() };
        for (number, mut connection) in connections.into_iter().enumerate() {
            let (stop, work) = (running.stop.clone(), work.clone());
            running.all.spawn(async move {
                let mut random = StdRng::seed_from_u64(number as u64);
                let mut latencies = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    if work.piece(&mut connection, number as u64, &mut random).await? {
                        latencies.push(begin.elapsed().as_micros() as u32);
                    }
                }
                Result::Ok(latencies)
            });
        }
        running
    }

    /// Ends each connection's work with the piece that it is at.
    pub async fn stop(mut self) -> Result<Done> {
        self.stop.store(true, Ordering::Relaxed);
        let mut latencies = Vec::new();
        while let Some(done) = self.all.join_next().await {
            latencies.append(&mut done??);
        }
        let (statements, seconds) = (latencies.len() as u64, self.start.elapsed().as_secs_f64());
        Ok(Done { statements, seconds, per_second: statements as f64 / seconds, latencies })
    }
}

/// Statements made by a function of the connection's number and random numbers.
#[derive(Clone)]
struct Statements<F>(F);

impl<F: Fn(u64, &mut StdRng) -> Statement + Clone + Send + Sync + 'static> Work for Statements<F> {
    async fn piece(&self, connection: &mut Conn, number: u64, random: &mut StdRng) -> Result<bool> {
        let statement = self.0(number, random);
        statement.run(connection).await?;
        Ok(true)
    }
}

/// Runs `statement(connection number, random numbers of its own)` on every connection, again and again for `seconds`. The first error
/// ends it.
pub async fn work(
    connections: Vec<Conn>,
    seconds: f64,
    statement: impl Fn(u64, &mut StdRng) -> Statement + Clone + Send + Sync + 'static,
) -> Result<Done> {
    work_for(connections, seconds, &Statements(statement)).await
}

/// Lets every connection work for `seconds`.
pub async fn work_for(connections: Vec<Conn>, seconds: f64, work: &impl Work) -> Result<Done> {
    let running = Running::start(connections, work);
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    running.stop().await
}

/// Average, 95th percentile and maximum of all latencies, in ms; zeros if there are none.
pub fn summary_ms<'a>(done: impl IntoIterator<Item = &'a Done>) -> [f64; 3] {
    let mut micros: Vec<u32> = done.into_iter().flat_map(|d| d.latencies.iter().copied()).collect();
    if micros.is_empty() {
        return [0.0; 3];
    }
    micros.sort_unstable();
    let sum: u64 = micros.iter().map(|&m| u64::from(m)).sum();
    [sum as f64 / micros.len() as f64 / 1000.0, quantile_ms(&micros, 0.95), quantile_ms(&micros, 1.0)]
}

/// 99th percentile, in ms; zero if there is no latency.
pub fn p99_ms(done: &Done) -> f64 {
    let mut micros = done.latencies.clone();
    micros.sort_unstable();
    if micros.is_empty() { 0.0 } else { quantile_ms(&micros, 0.99) }
}

/// Of sorted microseconds.
fn quantile_ms(micros: &[u32], q: f64) -> f64 {
    f64::from(micros[((micros.len() - 1) as f64 * q) as usize]) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_several_repeats() {
        let done = |latencies: Vec<u32>| Done { statements: latencies.len() as u64, seconds: 1.0, per_second: 1.0, latencies };
        assert_eq!(summary_ms(&[done((51..=100).rev().map(|n| n * 1000).collect()), done((1..=50).map(|n| n * 1000).collect())]), [
            50.5, 95.0, 100.0
        ]);
        assert_eq!(summary_ms(&[done(Vec::new())]), [0.0; 3]);
        assert_eq!(p99_ms(&done((1..=1000).rev().map(|n| n * 1000).collect())), 990.0);
        assert_eq!(p99_ms(&done(Vec::new())), 0.0);
    }
}
