//! Source 002, from the side of others: what do short transactions lose while reports run beside them?
//!
//! sysbench's `oltp_read_write` (ten point selects, four ranges of a hundred rows, two updates, a delete and an insert) on some connections for some
//! seconds: alone, and while one connection runs the 22 queries of TPC-H again and again. Reports: transactions, their 99th percentile, what is kept of
//! them, and the queries. Each cell ends with a check that no row was lost.
//!
//! Of servers whose `--pid` is told also what is kept **per core that is left**: transactions a second beside the reports, divided by the cores that the reports
//! did not use, by transactions a second alone, divided by all cores. What the reports used is the processor time of the threads that ran them, divided
//! by the time that passed: of Highkey's threads for queries, of the connection's thread in MySQL. 100 % is a server in which reports cost others
//! nothing but the processor that they run on; more is one that used its cores better beside them than alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use rand::Rng;
use rand::rngs::StdRng;

use crate::report::{Better, Cell, Report};
use crate::sbtest::{self, Table};
use crate::server::{self, Pid, Result, Server, number};
use crate::tpch;
use crate::workers::{self, Done, Running, Work};

/// What to measure.
pub struct Plan {
    /// Scale factor of TPC-H.
    pub scale: f64,
    /// Of sysbench, and their rows.
    pub tables: u32,
    pub rows: u32,
    pub connections: Vec<u64>,
    pub seconds: f64,
    pub pids: Vec<Pid>,
}

/// Rows of a range.
const RANGE: u32 = 100;

/// sysbench's transaction. A table of the connection's own choice each time.
#[derive(Clone)]
struct ReadWrite {
    rows: u32,
    /// For each table: point select, the four ranges, the two updates, delete, insert.
    statements: Arc<[[String; 9]]>,
    retries: Arc<AtomicU64>,
}

impl ReadWrite {
    fn new(plan: &Plan) -> ReadWrite {
        let of = |table| {
            let name = sbtest::name(table);
            let range = |what: &str, end: &str| format!("SELECT {what} FROM {name} WHERE id BETWEEN ? AND ?{end}");
            [
                format!("SELECT c FROM {name} WHERE id = ?"),
                range("c", ""),
                range("SUM(k)", ""),
                range("c", " ORDER BY c"),
                range("DISTINCT c", " ORDER BY c"),
                format!("UPDATE {name} SET k = k + 1 WHERE id = ?"),
                format!("UPDATE {name} SET c = ? WHERE id = ?"),
                format!("DELETE FROM {name} WHERE id = ?"),
                format!("INSERT INTO {name} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            ]
        };
        ReadWrite { rows: plan.rows, statements: (1..=plan.tables).map(of).collect(), retries: Arc::default() }
    }

    async fn transaction(&self, connection: &mut Conn, random: &mut StdRng) -> std::result::Result<(), Error> {
        let [point, ranges @ .., update_k, update_c, delete, insert] = &self.statements[random.random_range(0..self.statements.len())];
        connection.query_drop("BEGIN").await?;
        for _ in 0..10 {
            let _: Option<String> = connection.exec_first(point, (self.id(random),)).await?;
        }
        for range in ranges {
            let first = self.id(random);
            let _: Vec<mysql_async::Row> = connection.exec(range, (first, first + (RANGE - 1))).await?;
        }
        connection.exec_drop(update_k, (self.id(random),)).await?;
        let text: String = (0..119).map(|_| char::from(b'0' + random.random_range(0..10))).collect();
        connection.exec_drop(update_c, (&text, self.id(random))).await?;
        let id = self.id(random);
        connection.exec_drop(delete, (id,)).await?;
        connection.exec_drop(insert, (id, self.id(random), &text, &text[..59])).await?;
        connection.query_drop("COMMIT").await
    }

    fn id(&self, random: &mut StdRng) -> u32 {
        random.random_range(1..=self.rows)
    }
}

impl Work for ReadWrite {
    async fn piece(&self, connection: &mut Conn, _: u64, random: &mut StdRng) -> Result<bool> {
        loop {
            match self.transaction(connection, random).await {
                Ok(()) => return Ok(true),
                // Deadlock, lock wait timeout, and the duplicate key of two that deleted and inserted the same row.
                Err(Error::Server(e)) if [1213, 1205, 1062].contains(&e.code) => {
                    self.retries.fetch_add(1, Ordering::Relaxed);
                    connection.query_drop("ROLLBACK").await?;
                }
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// The queries of TPC-H, one after the other.
#[derive(Clone)]
struct Reports(Arc<AtomicU64>);

impl Work for Reports {
    async fn piece(&self, connection: &mut Conn, _: u64, _: &mut StdRng) -> Result<bool> {
        let texts = tpch::texts();
        let next = self.0.fetch_add(1, Ordering::Relaxed) as usize % texts.len();
        let _: Vec<mysql_async::Row> = connection.query(texts[next]).await.map_err(|e| format!("query {}: {e}", next + 1))?;
        Ok(true)
    }
}

/// One repeat on one server.
struct Measured {
    alone: Done,
    beside: Done,
    reports: Done,
    /// Cores that the reports used, where the server's process is known.
    report_cores: Option<f64>,
}

impl Measured {
    /// What is kept of the transactions per core that the reports left, in percent.
    fn kept_per_core(&self, cores: f64) -> Option<f64> {
        let left = cores - self.report_cores?;
        // Reports that took all of it left nothing that could be kept.
        (left > 0.0).then(|| 100.0 * (self.beside.per_second / left) / (self.alone.per_second / cores))
    }
}

/// Runs the experiment.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Vec<Report>> {
    Pid::check(&plan.pids, servers)?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get()) as f64;
    for server in servers {
        let mut connection = server.fresh(database).await?;
        tpch::load(&mut connection, &tpch::Source::Scale(plan.scale), tpch::Indexes::Before)
            .await
            .map_err(|e| format!("{}: {e}", server.name))?;
        for number in 1..=plan.tables {
            Table { number, rows: plan.rows }.create(&mut connection).await?;
        }
    }
    let new = |name, unit, better| Report::new(name, unit, "connections", better, servers);
    let mut transactions = new("report-guard", "transactions/s", Better::More);
    let mut late = new("report-guard-p99", "ms, 99th percentile of a transaction", Better::Less);
    let mut kept = new("report-guard-kept", "% of transactions/s beside reports by alone", Better::More);
    let mut per_core = new("report-guard-per-core", "% of transactions/s per core that the reports leave, by those per core alone", Better::More);
    let mut used = new("report-guard-cores", "cores that the reports use", Better::Neither);
    let mut queries = new("report-guard-queries", "queries/hour beside the transactions", Better::More);
    for &at in &plan.connections {
        let measured = server::alternate(servers, repeats, async |server| cell(server, database, at, plan).await).await?;
        for (server, measured) in measured.iter().enumerate() {
            for (group, done) in [("alone", (|m| &m.alone) as fn(&Measured) -> &Done), ("beside reports", |m| &m.beside)] {
                let latency_ms = Some(workers::summary_ms(measured.iter().map(done)));
                let figures = measured.iter().map(|m| done(m).per_second).collect();
                transactions.push(Cell { group: group.into(), at, server, figures, latency_ms });
                let figures = measured.iter().map(|m| workers::p99_ms(done(m))).collect();
                late.push(Cell { group: group.into(), at, server, figures, latency_ms: None });
            }
            let figures = measured.iter().map(|m| 100.0 * m.beside.per_second / m.alone.per_second).collect();
            kept.push(Cell { group: "kept".into(), at, server, figures, latency_ms: None });
            let figures = measured.iter().filter_map(|m| m.kept_per_core(cores)).collect();
            per_core.push(Cell { group: "kept per core".into(), at, server, figures, latency_ms: None });
            let figures = measured.iter().filter_map(|m| m.report_cores).collect();
            used.push(Cell { group: "cores".into(), at, server, figures, latency_ms: None });
            let figures = measured.iter().map(|m| m.reports.per_second * 3600.0).collect();
            queries.push(Cell { group: "queries".into(), at, server, figures, latency_ms: None });
        }
    }
    Ok(vec![transactions, late, kept, per_core, used, queries])
}

async fn cell(server: &Server, database: &str, connections: u64, plan: &Plan) -> Result<Measured> {
    let named = |e| format!("{}: {e}", server.name);
    let work = ReadWrite::new(plan);
    let alone = workers::work_for(server.connect_many(database, connections).await?, plan.seconds, &work).await.map_err(named)?;
    let mut analyst = server.connect(Some(database)).await?;
    let thread: Option<Option<u64>> = analyst.query_first("SELECT THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()").await?;
    let report_threads = || Pid::of(&plan.pids, server).map(|pid| pid.report_threads(thread.flatten())).transpose();
    let others = server.connect_many(database, connections).await?;
    let reports = Running::start(vec![analyst], &Reports(Arc::default()));
    let before = report_threads()?;
    let beside = workers::work_for(others, plan.seconds, &work).await.map_err(named)?;
    let report_cores = before.zip(report_threads()?).map(|(before, after)| {
        let spent = after.iter().map(|(thread, seconds)| seconds - before.get(thread).unwrap_or(&0.0));
        spent.sum::<f64>() / beside.seconds
    });
    let reports = reports.stop().await.map_err(named)?;
    let mut connection = server.connect(Some(database)).await?;
    for table in 1..=plan.tables {
        let rows = number(&mut connection, &format!("SELECT COUNT(*) FROM {}", sbtest::name(table))).await?;
        if rows != u64::from(plan.rows) {
            return Err(format!("{}: {} has {rows} rows, not {}", server.name, sbtest::name(table), plan.rows).into());
        }
    }
    eprintln!(
        "{}, {connections} connections: {:.0} and {:.0} transactions/s, {} queries, {} transactions began again",
        server.name,
        alone.per_second,
        beside.per_second,
        reports.statements,
        work.retries.load(Ordering::Relaxed)
    );
    Ok(Measured { alone, beside, reports, report_cores })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_per_core_that_is_left() {
        let done = |per_second: f64| Done { statements: 1, seconds: 1.0, per_second, latencies: Vec::new() };
        let measured = |beside: f64, report_cores: Option<f64>| Measured { alone: done(1000.0), beside: done(beside), reports: done(1.0), report_cores };
        // Half of the throughput on half of the cores is all that could be kept.
        assert_eq!(measured(500.0, Some(1.0)).kept_per_core(2.0), Some(100.0));
        assert_eq!(measured(600.0, Some(0.5)).kept_per_core(2.0), Some(80.0));
        assert_eq!((measured(500.0, None).kept_per_core(2.0), measured(0.0, Some(2.0)).kept_per_core(2.0)), (None, None));
    }
}
