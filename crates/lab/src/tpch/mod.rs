//! Source 002: the 22 queries of TPC-H, serially and in parallel.
//!
//! Every server loads the same rows. Then each query runs some times, the servers and their modes in turn. All runs on a server must
//! answer the same, and all servers must: what differs is told, and fails the experiment. A server whose `force_parallel_execute` can be
//! set is measured with OFF (serial) and ON (parallel), and if asked for with degrees of parallelism and with a hint.

mod answers;
mod queries;
mod results;
mod tables;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use self::answers::Answer;
pub use self::queries::{COUNT as QUERIES, texts};
use self::results::Results;
pub use self::tables::{Indexes, Source, load, write_files};
use crate::server::{Result, Server, run as execute};

/// What to measure.
pub struct Plan {
    pub source: Source,
    pub indexes: Indexes,
    /// The database has the tables already.
    pub loaded: bool,
    /// From 1.
    pub queries: Vec<usize>,
    pub hint: Option<String>,
    pub dops: Vec<u32>,
    /// A query that takes longer is killed.
    pub limit: Duration,
    /// Folders of results to compare with, as earlier runs and the script for DuckDB leave them.
    pub beside: Vec<PathBuf>,
    /// Each server's results go to a folder of its name in here.
    pub out: PathBuf,
}

/// How a server is made to run a query.
struct Mode {
    name: String,
    settings: Vec<String>,
    hint: Option<String>,
}

impl Mode {
    /// Those that the server has.
    async fn all(connection: &mut Conn, plan: &Plan) -> Result<Vec<Mode>> {
        let mode = |name: &str, settings: Vec<String>| Mode { name: name.into(), settings, hint: None };
        if execute(connection, "SET SESSION force_parallel_execute = OFF").await.is_err() {
            return Ok(vec![mode("", Vec::new())]);
        }
        let parallel = |on| format!("SET SESSION force_parallel_execute = {on}");
        let mut modes = vec![mode("serial", vec![parallel("OFF")]), mode("parallel", vec![parallel("ON")])];
        for dop in &plan.dops {
            modes.push(mode(&format!("dop {dop}"), vec![parallel("ON"), format!("SET SESSION parallel_default_dop = {dop}")]));
        }
        if let Some(hint) = &plan.hint {
            modes.push(Mode { hint: Some(hint.clone()), ..mode(hint, Vec::new()) });
        }
        Ok(modes)
    }
}

/// Runs the experiment: the table, and an error if answers differ.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<(String, Result<()>)> {
    let beside = plan.beside.iter().map(|folder| Results::read(folder)).collect::<Result<Vec<_>>>()?;
    let mut notes = String::new();
    let mut measured = Vec::new();
    for server in servers {
        let mut connection = if plan.loaded { server.connect(Some(database)).await? } else { server.fresh(database).await? };
        if !plan.loaded {
            let (seconds, rows) =
                tables::load(&mut connection, &plan.source, plan.indexes).await.map_err(|e| format!("{}: {e}", server.name))?;
            notes += &format!("{}: {rows} rows loaded, indexed and analysed in {seconds:.1} s\n", server.name);
        }
        measured.push((server, Results { name: server.name.clone(), ..Results::default() }, Mode::all(&mut connection, plan).await?));
    }
    let texts = queries::texts();
    for &query in &plan.queries {
        for _ in 0..repeats {
            for (server, results, modes) in &mut measured {
                for mode in modes.iter() {
                    let runs = results.series_mut(&mode.name).runs.entry(query).or_default();
                    // It would exceed the limit again.
                    if runs.contains(&None) {
                        continue;
                    }
                    let text = texts[query - 1];
                    let text = mode.hint.as_ref().map_or_else(|| text.to_string(), |hint| queries::hinted(text, hint));
                    let (seconds, answer) =
                        ask(server, database, mode, &text, plan.limit).await.map_err(|e| format!("{}: query {query}: {e}", server.name))?;
                    runs.push(seconds);
                    let Some(answer) = answer else { continue };
                    let first = results.answers.entry(query).or_insert_with(|| answer.clone());
                    if let Some(difference) = answer.difference(first, queries::order(query)) {
                        return Err(format!("{}: query {query}, {}: not the answer of before: {difference}", server.name, mode.name).into());
                    }
                }
            }
        }
        for (server, results, _) in &measured {
            let seconds: Vec<String> =
                results.series.iter().map(|s| format!("{} {:.3?}", s.mode, s.runs[&query].iter().flatten().collect::<Vec<_>>())).collect();
            eprintln!("query {query}, {}: {}", server.name, seconds.join(", "));
        }
    }
    let own: Vec<Results> = measured.into_iter().map(|m| m.1).collect();
    own.iter().try_for_each(|results| results.write(&plan.out.join(&results.name)))?;
    // What was there before is the reference.
    let found = results::differences(&beside.iter().chain(&own).collect::<Vec<_>>());
    let all: Vec<Results> = own.into_iter().chain(beside).collect();
    let verdict = match found.len() {
        0 => Ok(()),
        n => Err(format!("ANSWERS DIFFER, {n} times:\n{}", found.iter().map(|f| f.1.as_str()).collect::<Vec<_>>().join("\n")).into()),
    };
    Ok((format!("{notes}{}", results::table(&all, &found)), verdict))
}

/// Runs a query on a connection of its own, with the mode's settings. Seconds until all rows are here, and the rows; `None` if it exceeded the limit.
async fn ask(server: &Server, database: &str, mode: &Mode, text: &str, limit: Duration) -> Result<(Option<f64>, Option<Answer>)> {
    let mut connection = server.connect(Some(database)).await?;
    for setting in &mode.settings {
        execute(&mut connection, setting).await?;
    }
    let start = Instant::now();
    let asked = tokio::time::timeout(limit, Answer::ask(&mut connection, text)).await;
    let seconds = start.elapsed().as_secs_f64();
    match asked {
        Ok(answer) => {
            let answer = answer?;
            connection.disconnect().await?;
            Ok((Some(seconds), Some(answer)))
        }
        Err(_) => {
            let id = connection.id();
            // The dropped future has left the connection amid an answer: the whole connection goes.
            server.connect(None).await?.query_drop(format!("KILL {id}")).await?;
            Ok((None, None))
        }
    }
}
