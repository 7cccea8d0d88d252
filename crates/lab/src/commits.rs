//! Source 001: what does the binary log cost? sysbench's `oltp_update_index`: prepared updates of one indexed column, each its own
//! durable commit, over several tables.
//!
//! A server cannot switch its log while it runs, so each is given twice: `NAME-on` and `NAME-off`. The rows are loaded once; every
//! cell ends with a check that `k`, over all tables, grew by as much as updates were acknowledged. Up to seven reports come of it:
//! updates, their ratio with the log to without, the server's processor, and what it wrote of its logs as far as it tells.

use std::sync::Arc;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::Rng;
use rand::rngs::StdRng;

use crate::report::{Better, Cell, Figure, Report};
use crate::sbtest::{self, Table};
use crate::server::{self, Pid, Result, Server, number};
use crate::workers::{self, Done, Statement};

/// What to measure.
pub struct Plan {
    pub tables: u32,
    /// Of each table.
    pub rows: u32,
    pub seconds: f64,
    pub connections: Vec<u64>,
    pub pids: Vec<Pid>,
}

/// A server's name without its ending, and whether it has a binary log.
struct Side<'a> {
    name: &'a str,
    log: bool,
}

impl<'a> Side<'a> {
    fn of(name: &'a str) -> Result<Side<'a>> {
        let cut = |ending, log| name.strip_suffix(ending).map(|name| Side { name, log });
        cut("-on", true).or_else(|| cut("-off", false)).ok_or_else(|| format!("{name}: not named NAME-on or NAME-off").into())
    }

    fn group(&self) -> &'static str {
        if self.log { "on" } else { "off" }
    }
}

/// What one cell gave.
struct Measured {
    done: Done,
    spent: Spent,
}

impl Measured {
    fn per_update(&self, spent: Option<f64>) -> Option<f64> {
        spent.map(|spent| spent / self.done.statements as f64)
    }
}

const FIGURES: [Figure<Measured>; 6] = [
    ("commits", "updates/s", Better::More, |m| Some(m.done.per_second)),
    ("commits-cores", "cores of the server busy", Better::Neither, |m| m.spent.cpu_seconds.map(|s| s / m.done.seconds)),
    ("commits-cpu", "µs of the server's processor per update", Better::Less, |m| m.per_update(m.spent.cpu_seconds.map(|s| s * 1e6))),
    ("commits-log-bytes", "bytes written to the redo log per update", Better::Less, |m| m.per_update(m.spent.log_bytes)),
    ("commits-binlog-bytes", "bytes of binary log per update", Better::Less, |m| m.per_update(m.spent.binlog_bytes)),
    ("commits-per-fsync", "updates per fsync of the redo log", Better::Neither, |m| {
        // Without an fsync there is no such figure.
        m.spent.log_fsyncs.filter(|&n| n > 0.0).map(|n| m.done.statements as f64 / n)
    }),
];

/// Runs the experiment.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Vec<Report>> {
    let sides: Vec<Side> = servers.iter().map(|s| Side::of(&s.name)).collect::<Result<_>>()?;
    Pid::check(&plan.pids, servers)?;
    if let Some(twice) = (1..servers.len()).find(|&i| servers[..i].iter().any(|s| s.name == servers[i].name)) {
        return Err(format!("{}: two servers of that name", servers[twice].name).into());
    }
    let mut names: Vec<String> = Vec::new();
    for side in &sides {
        if !names.iter().any(|n| n == side.name) {
            names.push(side.name.to_string());
        }
    }
    let new = |name, unit, better| Report { name, unit, axis: "connections", better, servers: names.clone(), cells: Vec::new() };
    let mut reports: Vec<Report> = FIGURES.iter().map(|&(name, unit, better, _)| new(name, unit, better)).collect();
    let mut ratios = new("commits-on-by-off", "updates/s with the binary log by without", Better::Neither);

    // The sum of k that every server must end with.
    let mut expected = Vec::new();
    for (server, side) in servers.iter().zip(&sides) {
        expected.push(load(server, side.log, database, plan).await?);
    }
    for &connections in &plan.connections {
        let measured = server::alternate(servers, repeats, async |server| cell(server, database, connections, plan).await).await?;
        for ((sum, measured), server) in expected.iter_mut().zip(&measured).zip(servers) {
            *sum += measured.iter().map(|m| m.done.statements).sum::<u64>();
            let figures: Vec<f64> = measured.iter().map(|m| m.done.per_second).collect();
            eprintln!("{connections} connections {}: {figures:.0?}", server.name);
        }
        for (server, name) in names.iter().enumerate() {
            let of = |log| sides.iter().position(|s| s.name == name && s.log == log).map(|i| (&sides[i], &measured[i]));
            let (on, off) = (of(true), of(false));
            for (side, measured) in [on, off].into_iter().flatten() {
                for (report, (_, _, _, figure)) in reports.iter_mut().zip(&FIGURES) {
                    // Latencies belong to the updates.
                    let latency_ms = (report.name == "commits").then(|| workers::summary_ms(measured.iter().map(|m| &m.done)));
                    let figures = measured.iter().filter_map(figure).collect();
                    report.push(Cell { group: side.group().into(), at: connections, server, figures, latency_ms });
                }
            }
            if let (Some((_, on)), Some((_, off))) = (on, off) {
                // Each repeat with its neighbour in time.
                let figures = on.iter().zip(off).map(|(on, off)| on.done.per_second / off.done.per_second).collect();
                ratios.push(Cell { group: "ratio".into(), at: connections, server, figures, latency_ms: None });
            }
        }
    }
    for (server, expected) in servers.iter().zip(expected) {
        let mut connection = server.connect(Some(database)).await?;
        let found = sum_of_k(&mut connection, plan.tables).await?;
        check_sum(server, "at the end", found, expected)?;
    }
    reports.insert(1, ratios);
    reports.retain(|r| !r.cells.is_empty());
    Ok(reports)
}

/// Creates and fills the tables; the sum of k.
async fn load(server: &Server, log: bool, database: &str, plan: &Plan) -> Result<u64> {
    let mut connection = server.fresh(database).await?;
    let has_log = number(&mut connection, "SELECT @@log_bin").await? == 1;
    if has_log != log {
        return Err(format!("{}: its log_bin is {}", server.name, if has_log { "on" } else { "off" }).into());
    }
    let mut expected = 0;
    for number in 1..=plan.tables {
        let table = Table { number, rows: plan.rows };
        table.create(&mut connection).await?;
        expected += table.sum_of_k();
    }
    let found = sum_of_k(&mut connection, plan.tables).await?;
    check_sum(server, "after the load", found, expected)?;
    Ok(found)
}

async fn cell(server: &Server, database: &str, connections: u64, plan: &Plan) -> Result<Measured> {
    let mut control = server.connect(Some(database)).await?;
    let updates: Arc<[Arc<str>]> =
        (1..=plan.tables).map(|table| format!("UPDATE {} SET k=k+1 WHERE id=?", sbtest::name(table)).into()).collect();
    let mut all = server.connect_many(database, connections).await?;
    for connection in &mut all {
        for update in updates.iter() {
            // The connection keeps it and finds it again by its text.
            connection.prep(update.clone()).await.map_err(|e| format!("{}: {e}, in: {update}", server.name))?;
        }
    }
    let pid = Pid::of(&plan.pids, server);
    let sum_before = sum_of_k(&mut control, plan.tables).await?;
    let logs_before = Spent::logs(&mut control).await?;
    let cpu_before = pid.map(Pid::cpu_seconds).transpose()?;
    let rows = plan.rows;
    let done = workers::work(all, plan.seconds, move |_, random: &mut StdRng| {
        let update = updates[random.random_range(0..updates.len())].clone();
        Statement::Prepared(update, (random.random_range(1..=rows),).into())
    })
    .await
    .map_err(|e| format!("{}: {e}", server.name))?;
    let cpu_after = pid.map(Pid::cpu_seconds).transpose()?;
    let found = sum_of_k(&mut control, plan.tables).await?;
    check_sum(server, &format!("after updates on {connections} connections"), found, sum_before + done.statements)?;
    if done.statements == 0 {
        return Err(format!("{}: no update within {} seconds", server.name, plan.seconds).into());
    }
    // A log may be written behind the commits: it has had the time of the sums.
    let logs_after = Spent::logs(&mut control).await?;
    let (before, after) = (Spent { cpu_seconds: cpu_before, ..logs_before }, Spent { cpu_seconds: cpu_after, ..logs_after });
    Ok(Measured { done, spent: after.since(before) })
}

/// Of all tables, by reading all rows.
async fn sum_of_k(connection: &mut Conn, tables: u32) -> Result<u64> {
    let mut sum = 0;
    for table in 1..=tables {
        sum += number(connection, &format!("SELECT CAST(SUM(k) AS UNSIGNED) FROM {} FORCE INDEX (PRIMARY)", sbtest::name(table))).await?;
    }
    Ok(sum)
}

fn check_sum(server: &Server, when: &str, found: u64, expected: u64) -> Result<()> {
    if found == expected { Ok(()) } else { Err(format!("{}: {when}: the sum of k is {found}, not {expected}", server.name).into()) }
}

/// What a server has used since it started; `None` where nobody tells.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spent {
    cpu_seconds: Option<f64>,
    log_bytes: Option<f64>,
    log_fsyncs: Option<f64>,
    binlog_bytes: Option<f64>,
}

impl Spent {
    /// From the status variables and the list of binary logs. InnoDB counts whole blocks of the redo log, as often as it writes them; fsyncs of
    /// binary log files are in no server's status.
    async fn logs(connection: &mut Conn) -> Result<Spent> {
        let variables: Vec<(String, String)> = connection
            .query("SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_os_log_written', 'Innodb_os_log_fsyncs')")
            .await?;
        let status = |name: &str| variables.iter().find(|v| v.0 == name).and_then(|v| v.1.parse().ok());
        let mut spent = Spent {
            cpu_seconds: None,
            log_bytes: status("Innodb_os_log_written"),
            log_fsyncs: status("Innodb_os_log_fsyncs"),
            binlog_bytes: None,
        };
        if number(connection, "SELECT @@log_bin").await? == 1 {
            let files: Vec<mysql_async::Row> = connection.query("SHOW BINARY LOGS").await?;
            let bytes = files.iter().map(|file| file.get::<f64, _>("File_size").ok_or("SHOW BINARY LOGS without File_size"));
            spent.binlog_bytes = Some(bytes.sum::<std::result::Result<f64, _>>()?);
        }
        Ok(spent)
    }

    fn since(self, before: Spent) -> Spent {
        let less = |after: Option<f64>, before: Option<f64>| Some(after? - before?);
        Spent {
            cpu_seconds: less(self.cpu_seconds, before.cpu_seconds),
            log_bytes: less(self.log_bytes, before.log_bytes),
            log_fsyncs: less(self.log_fsyncs, before.log_fsyncs),
            binlog_bytes: less(self.binlog_bytes, before.binlog_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_whether_there_is_a_log() {
        let side = |name| Side::of(name).map(|s| (s.name, s.group())).ok();
        assert_eq!(side("mysql-8.0.12-on"), Some(("mysql-8.0.12", "on")));
        assert_eq!(side("a-off"), Some(("a", "off")));
        assert_eq!(side("a"), None);
    }

    #[test]
    fn what_one_reading_lacks_is_not_told() {
        let at = |cpu_seconds, log_fsyncs| Spent { cpu_seconds, log_bytes: None, log_fsyncs, binlog_bytes: Some(1.0) };
        let spent = at(Some(5.0), Some(7.0)).since(at(Some(2.0), None));
        assert_eq!(spent, Spent { cpu_seconds: Some(3.0), log_bytes: None, log_fsyncs: None, binlog_bytes: Some(0.0) });
    }
}
