//! CH-benCHmark: TPC-C's transactions and the 22 queries of TPC-H adapted to its tables, each alone and both at once on the same rows.
//!
//! Transactions alone run for some seconds; queries run in whole rounds of all, on each connection in an order of its own; together, the transactions
//! run as long as the queries. Every repeat ends with TPC-C's consistency conditions. Four reports come of it: new orders a minute (tpmC), their
//! 99th percentile, queries an hour, and each query's time alone and beside the transactions.

mod tables;
mod transactions;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use self::transactions::Terminal;
use crate::report::{Better, Cell, Report};
use crate::server::{self, Result, Server, number};
use crate::workers::{self, Done, Running};

/// What to measure.
pub struct Plan {
    pub warehouses: u32,
    /// Connections with transactions.
    pub connections: u64,
    /// Connections with queries.
    pub analysts: u64,
    /// Of transactions alone.
    pub seconds: f64,
    /// Rounds of all queries for each connection.
    pub rounds: u32,
    /// From 1; none: all.
    pub queries: Vec<u8>,
    /// Seconds after which a query is given up.
    pub limit: f64,
}

/// Queries are numbered from 1.
pub const QUERIES: usize = 22;

fn texts() -> Vec<&'static str> {
    include_str!("queries.sql").split(';').map(str::trim).filter(|q| !q.is_empty()).collect()
}

/// One repeat on one server.
struct Measured {
    alone: Done,
    queries_alone: Analysis,
    together: Done,
    queries_together: Analysis,
}

/// What the connections with queries did.
#[derive(Default)]
struct Analysis {
    /// Query and seconds.
    times: Vec<(usize, f64)>,
    given_up: u64,
    seconds: f64,
}

impl Analysis {
    fn per_hour(&self) -> f64 {
        self.times.len() as f64 / self.seconds * 3600.0
    }
}

/// Runs the experiment.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Vec<Report>> {
    for server in servers {
        let start = Instant::now();
        let mut connection = server.fresh(database).await?;
        tables::load(&mut connection, plan.warehouses).await.map_err(|e| format!("{}: {e}", server.name))?;
        check(&mut connection).await.map_err(|e| format!("{}: after the load: {e}", server.name))?;
        eprintln!("{}: loaded in {:.1} s", server.name, start.elapsed().as_secs_f64());
    }
    let new = |name, unit, axis, better| Report::new(name, unit, axis, better, servers);
    let mut orders = new("ch-tpmc", "new orders/min", "connections", Better::More);
    let mut late = new("ch-p99", "ms, 99th percentile of a new order", "connections", Better::Less);
    let mut queries = new("ch-queries", "queries/hour", "connections", Better::More);
    let mut times = new("ch-query-times", "ms", "query", Better::Less);
    let measured = server::alternate(servers, repeats, async |server| cell(server, database, plan).await).await?;
    for (server, measured) in measured.iter().enumerate() {
        for (group, done) in [("alone", (|m| &m.alone) as fn(&Measured) -> &Done), ("together", |m| &m.together)] {
            let latency_ms = Some(workers::summary_ms(measured.iter().map(done)));
            let figures = measured.iter().map(|m| done(m).per_second * 60.0).collect();
            orders.push(Cell { group: group.into(), at: plan.connections, server, figures, latency_ms });
            let figures = measured.iter().map(|m| workers::p99_ms(done(m))).collect();
            late.push(Cell { group: group.into(), at: plan.connections, server, figures, latency_ms: None });
        }
        for (group, analysis) in [("alone", (|m| &m.queries_alone) as fn(&Measured) -> &Analysis), ("together", |m| &m.queries_together)] {
            let figures = measured.iter().map(|m| analysis(m).per_hour()).collect();
            queries.push(Cell { group: group.into(), at: plan.analysts, server, figures, latency_ms: None });
            for query in 1..=QUERIES {
                let of_query = measured.iter().flat_map(|m| &analysis(m).times).filter(|t| t.0 == query);
                let figures = of_query.map(|t| t.1 * 1000.0).collect();
                times.push(Cell { group: group.into(), at: query as u64, server, figures, latency_ms: None });
            }
        }
    }
    Ok(vec![orders, late, queries, times])
}

async fn cell(server: &Server, database: &str, plan: &Plan) -> Result<Measured> {
    let named = |e| format!("{}: {e}", server.name);
    let retries = Arc::new(AtomicU64::new(0));
    let terminal = Terminal { warehouses: plan.warehouses, retries: retries.clone() };
    let connections = server.connect_many(database, plan.connections).await?;
    let alone = workers::work_for(connections, plan.seconds, &terminal).await.map_err(named)?;
    let queries_alone = analyse(server, database, plan).await?;
    let running = Running::start(server.connect_many(database, plan.connections).await?, &terminal);
    let queries_together = analyse(server, database, plan).await?;
    let together = running.stop().await.map_err(named)?;
    check(&mut server.connect(Some(database)).await?).await.map_err(named)?;
    eprintln!(
        "{}: {:.0} and {:.0} new orders a minute, {:.0} and {:.0} queries an hour; {} transactions began again, {} queries given up",
        server.name,
        alone.per_second * 60.0,
        together.per_second * 60.0,
        queries_alone.per_hour(),
        queries_together.per_hour(),
        retries.load(Ordering::Relaxed),
        queries_alone.given_up + queries_together.given_up
    );
    Ok(Measured { alone, queries_alone, together, queries_together })
}

/// All rounds of queries on all connections for them.
async fn analyse(server: &Server, database: &str, plan: &Plan) -> Result<Analysis> {
    let chosen: Vec<usize> =
        if plan.queries.is_empty() { (1..=QUERIES).collect() } else { plan.queries.iter().map(|&q| usize::from(q)).collect() };
    let all = Arc::new(Mutex::new(Analysis::default()));
    let mut running = tokio::task::JoinSet::new();
    let start = Instant::now();
    for (analyst, mut connection) in server.connect_many(database, plan.analysts).await?.into_iter().enumerate() {
        limit(&mut connection, plan.limit).await?;
        let (mut chosen, all, rounds, name) = (chosen.clone(), all.clone(), plan.rounds, server.name.clone());
        // Each begins elsewhere.
        let turn = analyst * 7 % chosen.len();
        chosen.rotate_left(turn);
        running.spawn(async move {
            for query in (0..rounds).flat_map(|_| &chosen).copied() {
                let begin = Instant::now();
                let text = texts()[query - 1];
                match connection.query::<mysql_async::Row, _>(text).await {
                    Ok(_) => all.lock().expect("no panic holds it").times.push((query, begin.elapsed().as_secs_f64())),
                    // MySQL's and MariaDB's word for too long.
                    Err(mysql_async::Error::Server(e)) if [3024, 1969].contains(&e.code) => {
                        all.lock().expect("no panic holds it").given_up += 1
                    }
                    Err(e) => return Err(format!("{name}: query {query}: {e}").into()),
                }
            }
            Result::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let mut analysis = std::mem::take(&mut *all.lock().expect("no panic holds it"));
    analysis.seconds = start.elapsed().as_secs_f64();
    Ok(analysis)
}

/// MySQL's variable, or MariaDB's.
async fn limit(connection: &mut Conn, seconds: f64) -> Result<()> {
    if connection.query_drop(format!("SET max_execution_time = {:.0}", seconds * 1000.0)).await.is_err() {
        server::run(connection, &format!("SET max_statement_time = {seconds}")).await?;
    }
    Ok(())
}

/// TPC-C's consistency conditions 1 to 4 (clause 3.3.2), and that every order has its lines. What is wrong is counted.
async fn check(connection: &mut Conn) -> Result<()> {
    const CONDITIONS: [(&str, &str); 4] = [
        (
            "w_ytd is the sum of d_ytd",
            "SELECT COUNT(*) FROM warehouse WHERE w_ytd <> (SELECT SUM(d_ytd) FROM district WHERE d_w_id = w_id)",
        ),
        (
            "d_next_o_id - 1 is the last order",
            "SELECT COUNT(*) FROM district WHERE d_next_o_id - 1 <> (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)",
        ),
        (
            "new orders have no gaps",
            "SELECT COUNT(*) FROM (SELECT 1 AS one FROM new_order GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)) AS gaps",
        ),
        (
            "orders have o_ol_cnt lines",
            "SELECT COUNT(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS line_count FROM order_line \
             GROUP BY ol_w_id, ol_d_id, ol_o_id) AS counts \
             ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_ol_cnt <> COALESCE(line_count, 0)",
        ),
    ];
    for (condition, sql) in CONDITIONS {
        let wrong = number(connection, sql).await?;
        if wrong > 0 {
            return Err(format!("{wrong} times not true: {condition}").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_queries_are_there() {
        assert_eq!(super::texts().len(), super::QUERIES);
    }
}
