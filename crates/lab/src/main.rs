//! `highkey-lab`: the experiments of the five sources, over the MySQL wire, against any server.
//!
//! It knows nothing of Highkey: servers are named URLs, measured side by side, alternating, and the median of the
//! repeats is reported with its spread. Each experiment is one file: `insert_select`, `key_ranges` (source 000), `load_order` (003),
//! `auto_increment` (004), `commits` and `idle` (001), `tpch`, `report_guard` and `ch` (002). `report` prints, and writes CSV and SVG.
#![forbid(unsafe_code)]

mod auto_increment;
mod ch;
mod commits;
mod idle;
mod insert_select;
mod key_ranges;
mod load_data;
mod load_order;
mod report;
mod report_guard;
mod sbtest;
mod server;
mod tpch;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::report::Report;
use crate::server::Server;

/// Run an experiment of the five sources against one or more MySQL-compatible servers.
#[derive(Parser)]
#[command(name = "highkey-lab", version)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Source 000: `insert into t2 select * from t1` on four kinds of tables with several streams at once
    InsertSelect {
        #[command(flatten)]
        common: Common,
        /// Rows in t2 at the end of each cell, over all streams
        #[arg(long, default_value_t = 200_000)]
        rows: u64,
        /// Rows of the wide table at the end of each cell [default: a tenth of --rows]
        #[arg(long)]
        wide_rows: Option<u64>,
        /// Concurrent streams
        #[arg(long, value_delimiter = ',', default_value = "1,2,6,10,16")]
        streams: Vec<u64>,
        /// Kinds of tables
        #[arg(long, value_delimiter = ',', default_value = "narrow,medium,wide,keyless")]
        tables: Vec<insert_select::Kind>,
    },
    /// Source 004: single-row inserts into an auto-increment table, each its own commit
    AutoIncrement {
        #[command(flatten)]
        common: Common,
        /// Seconds of each cell
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        /// Concurrent connections
        #[arg(long, value_delimiter = ',', default_value = "1,8,64,256")]
        connections: Vec<u64>,
    },
    /// Source 001: sysbench's oltp_update_index on servers with a binary log and servers without
    Commits {
        #[command(flatten)]
        common: Common,
        /// Tables
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=server::PREPARED_MAX as i64))]
        tables: u32,
        /// Rows of each table
        #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
        rows: u32,
        /// Seconds of each cell
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        /// Concurrent connections
        #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
        connections: Vec<u64>,
        /// Process of a server on this machine, whose processor time is then reported: NAME=PID (may be repeated)
        #[arg(long = "pid", value_parser = server::parse_pid)]
        pids: Vec<server::Pid>,
    },
    /// Source 001: what connections cost that do nothing, and what they take from those that work
    Idle {
        #[command(flatten)]
        common: Common,
        /// Idle connections
        #[arg(long, value_delimiter = ',', default_value = "0,1000,10000")]
        counts: Vec<u64>,
        /// Connections that work beside them
        #[arg(long, default_value_t = 8)]
        active: u64,
        /// Seconds of that work
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        /// Process of a server on this machine, whose memory is then reported: NAME=PID (may be repeated)
        #[arg(long = "pid", value_parser = server::parse_pid)]
        pids: Vec<server::Pid>,
    },
    /// Source 003: the same rows ordered and shuffled by LOAD DATA LOCAL or by INSERTs of many rows, then point selects and index updates on what was loaded
    LoadOrder {
        #[command(flatten)]
        common: Common,
        /// Rows of the table
        #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..))]
        rows: u32,
        /// Orders of the rows
        #[arg(long, value_delimiter = ',', default_value = "ordered,shuffled")]
        orders: Vec<load_order::Order>,
        /// Secondary indexes of the table
        #[arg(long, value_delimiter = ',', default_value = "0,1", value_parser = clap::value_parser!(u64).range(0..=1))]
        indexes: Vec<u64>,
        /// Rows of each INSERT; 0 for LOAD DATA LOCAL
        #[arg(long, default_value_t = 0)]
        insert: usize,
        /// Seconds of selects, and seconds of updates
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        /// Concurrent connections of selects and updates
        #[arg(long, default_value_t = 8)]
        connections: u64,
    },
    /// Source 000: streams that insert into ranges of keys of their own, against ranges side by side and interleaved keys
    KeyRanges {
        #[command(flatten)]
        common: Common,
        /// Rows at the end of each cell, over all streams
        #[arg(long, default_value_t = 200_000)]
        rows: u64,
        /// Concurrent streams
        #[arg(long, value_delimiter = ',', default_value = "1,2,6,10,16")]
        streams: Vec<u64>,
        /// Where the streams' keys lie
        #[arg(long, value_delimiter = ',', default_value = "apart,adjacent,interleaved")]
        layouts: Vec<key_ranges::Layout>,
        /// Rows of a statement, each its own commit
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
        batch: u64,
    },
    /// Source 002: the 22 queries of TPC-H, serially and in parallel, with their answers compared
    Tpch {
        #[command(flatten)]
        common: Common,
        /// Scale factor: 1 is 8.7 million rows, 1 GB
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// Folder of the .tbl files to load [default: rows are generated while they are sent]
        #[arg(long)]
        tbl: Option<PathBuf>,
        /// When secondary indexes are built: each server has its faster way
        #[arg(long, default_value = "before")]
        indexes: tpch::Indexes,
        /// The database has the tables already (of a run with --keep)
        #[arg(long)]
        loaded: bool,
        /// The database stays
        #[arg(long)]
        keep: bool,
        /// Queries [default: all]
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=tpch::QUERIES as i64))]
        queries: Vec<u8>,
        /// An optimizer hint for every query, measured beside the others, as in --hint 'PQ(4)'
        #[arg(long)]
        hint: Option<String>,
        /// Degrees of parallelism, each measured beside the others
        #[arg(long, value_delimiter = ',')]
        dop: Vec<u32>,
        /// Seconds after which a query is killed
        #[arg(long, default_value_t = 600.0)]
        limit: f64,
        /// Results to compare with: the folder that an earlier run or the script for DuckDB has left (repeat it); the first one's answers are the reference
        #[arg(long)]
        beside: Vec<PathBuf>,
    },
    /// Source 002: what sysbench's oltp_read_write loses while the queries of TPC-H run beside it
    ReportGuard {
        #[command(flatten)]
        common: Common,
        /// Scale factor of TPC-H
        #[arg(long, default_value_t = 0.1)]
        scale: f64,
        /// Tables of sysbench
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
        tables: u32,
        /// Rows of each
        #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1000..))]
        rows: u32,
        /// Concurrent connections of transactions
        #[arg(long, value_delimiter = ',', default_value = "16")]
        connections: Vec<u64>,
        /// Seconds alone, and seconds beside the queries
        #[arg(long, default_value_t = 20.0)]
        seconds: f64,
        /// A server's process on this machine: NAME=PID. What is kept per core that the reports leave is reported of those
        #[arg(long = "pid", value_parser = server::parse_pid)]
        pids: Vec<server::Pid>,
    },
    /// CH-benCHmark: TPC-C's transactions and 22 queries over its tables, each alone and both at once
    Ch {
        #[command(flatten)]
        common: Common,
        /// Warehouses: 600,000 rows each
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
        warehouses: u32,
        /// Connections with transactions
        #[arg(long, default_value_t = 8)]
        connections: u64,
        /// Connections with queries
        #[arg(long, default_value_t = 1)]
        analysts: u64,
        /// Seconds of transactions alone
        #[arg(long, default_value_t = 20.0)]
        seconds: f64,
        /// Rounds of all queries, of each connection with queries
        #[arg(long, default_value_t = 1)]
        rounds: u32,
        /// Queries [default: all]
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=ch::QUERIES as i64))]
        queries: Vec<u8>,
        /// Seconds after which a query is given up
        #[arg(long, default_value_t = 120.0)]
        limit: f64,
    },
    /// Writes the rows of TPC-H as .tbl files
    TpchFiles {
        /// Scale factor
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// Folder to write to
        #[arg(long)]
        dir: PathBuf,
    },
}

#[derive(Args)]
struct Common {
    /// A server: NAME=mysql://user:password@host:port (repeat it to compare)
    #[arg(long = "server", required = true, value_parser = server::parse)]
    servers: Vec<Server>,
    /// Repeats of every cell; the median is reported
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Directory for the CSV and SVG files
    #[arg(long, default_value = "lab-results")]
    out: PathBuf,
    /// Database to work in; created, and dropped at the end
    #[arg(long, default_value = "highkey_lab")]
    database: String,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    match runtime.block_on(run(cli.experiment)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("highkey-lab: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn run(experiment: Experiment) -> server::Result<()> {
    let (common, reports) = match experiment {
        Experiment::InsertSelect { common, rows, wide_rows, streams, tables } => {
            let plan = insert_select::Plan { rows, wide_rows: wide_rows.unwrap_or(rows / 10), streams, tables };
            let report = insert_select::run(&common.servers, &common.database, common.repeats, &plan).await?;
            (common, vec![report])
        }
        Experiment::AutoIncrement { common, seconds, connections } => {
            let plan = auto_increment::Plan { seconds, connections };
            let report = auto_increment::run(&common.servers, &common.database, common.repeats, &plan).await?;
            (common, vec![report])
        }
        Experiment::Commits { common, tables, rows, seconds, connections, pids } => {
            let plan = commits::Plan { tables, rows, seconds, connections, pids };
            let reports = commits::run(&common.servers, &common.database, common.repeats, &plan).await?;
            (common, reports)
        }
        Experiment::Idle { common, counts, active, seconds, pids } => {
            let plan = idle::Plan { counts, active, seconds, pids };
            let reports = idle::run(&common.servers, &common.database, common.repeats, &plan).await?;
            (common, reports)
        }
        Experiment::LoadOrder { common, rows, orders, indexes, insert, seconds, connections } => {
            let plan = load_order::Plan { rows, orders, indexes, insert, seconds, connections };
            let reports = load_order::run(&common.servers, &common.database, common.repeats, &plan).await?;
            (common, reports)
        }
        Experiment::KeyRanges { common, rows, streams, layouts, batch } => {
            let plan = key_ranges::Plan { rows, streams, layouts, batch };
            let reports = key_ranges::run(&common.servers, &common.database, common.repeats, &plan).await?;
            (common, reports)
        }
        Experiment::Tpch { common, scale, tbl, indexes, loaded, keep, queries, hint, dop, limit, beside } => {
            let all = || (1..=tpch::QUERIES).collect();
            let plan = tpch::Plan {
                source: tbl.map_or(tpch::Source::Scale(scale), tpch::Source::Files),
                indexes,
                loaded,
                queries: if queries.is_empty() { all() } else { queries.into_iter().map(usize::from).collect() },
                hint,
                dops: dop,
                limit: Duration::from_secs_f64(limit),
                beside,
                out: common.out.clone(),
            };
            let (table, verdict) = tpch::run(&common.servers, &common.database, common.repeats, &plan).await?;
            finish(&common, &[], keep || loaded).await?;
            print!("{table}");
            return verdict;
        }
        Experiment::ReportGuard { common, scale, tables, rows, connections, seconds, pids } => {
            let plan = report_guard::Plan { scale, tables, rows, connections, seconds, pids };
            let reports = report_guard::run(&common.servers, &common.database, common.repeats, &plan).await?;
            (common, reports)
        }
        Experiment::Ch { common, warehouses, connections, analysts, seconds, rounds, queries, limit } => {
            let plan = ch::Plan { warehouses, connections, analysts, seconds, rounds, queries, limit };
            let reports = ch::run(&common.servers, &common.database, common.repeats, &plan).await?;
            (common, reports)
        }
        Experiment::TpchFiles { scale, dir } => return tpch::write_files(scale, &dir),
    };
    finish(&common, &reports, false).await
}

async fn finish(common: &Common, reports: &[Report], keep: bool) -> server::Result<()> {
    for server in &common.servers {
        let mut connection = server.connect(None).await?;
        if !keep {
            server::run(&mut connection, &format!("DROP DATABASE IF EXISTS {}", common.database)).await?;
        }
        println!("{}: {}", server.name, server::describe(&mut connection).await?);
    }
    for report in reports {
        print!("{}", report.table());
        report.write(&common.out)?;
    }
    println!("written to {}", common.out.display());
    Ok(())
}
