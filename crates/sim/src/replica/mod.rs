//! Replication: a load for a source, and the comparison of a replica with it.
//!
//! - `load` runs random transactions over every column type, tables with and without keys, definitions and large transactions. It outlives the source: when
//!   the connection breaks it waits for the server to be there again.
//! - `compare` waits until the replica has what the source has, then compares every table row for row.
//!
//! Starting, breaking and killing the servers is the caller's (`scripts/replica.sh`).

mod compare;
mod load;

use std::time::Duration;

use clap::{Args, Subcommand};
use mysql_async::{Conn, Opts, OptsBuilder};

use crate::Result;

#[derive(Subcommand)]
pub enum Action {
    /// Random transactions against a source
    Load(LoadOptions),
    /// Waits for a replica and compares it with its source, row for row
    Compare(CompareOptions),
}

#[derive(Args)]
pub struct LoadOptions {
    /// The source
    #[arg(long)]
    url: String,
    /// How long, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Connections; one more changes definitions
    #[arg(long, default_value_t = 4)]
    clients: u64,
    /// Seed of the statements
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// No definitions
    #[arg(long)]
    rows_only: bool,
    /// One table, too, that names no collations and does not say what its TIMESTAMP columns are: what that means is the source's
    #[arg(long)]
    defaults: bool,
    /// Rows of the large transactions
    #[arg(long, default_value_t = 3000)]
    large_rows: u64,
    /// Time between two transactions of a connection, in ms: replicas may be slower than their source
    #[arg(long, default_value_t = 0)]
    pause_ms: u64,
}

#[derive(Args)]
pub struct CompareOptions {
    #[arg(long)]
    source: String,
    #[arg(long)]
    replica: String,
    /// Longest time for the replica to catch up, in seconds
    #[arg(long, default_value_t = 60)]
    timeout: u64,
    /// Nothing is under way: compares at once, and writes nothing
    #[arg(long)]
    at_rest: bool,
}

pub async fn run(action: Action) -> Result<()> {
    match action {
        Action::Load(options) => load::run(options).await,
        Action::Compare(options) => compare::run(options).await,
    }
}

async fn connect(url: &str) -> Result<Conn> {
    let options = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false).init(vec!["SET NAMES utf8mb4"]);
    Ok(tokio::time::timeout(Duration::from_secs(5), Conn::new(options)).await??)
}

/// Connects to a server that may be starting.
async fn connect_patiently(url: &str) -> Result<Conn> {
    let mut last: Option<crate::Error> = None;
    for _ in 0..600 {
        match connect(url).await {
            Ok(connection) => return Ok(connection),
            Err(e) => last = Some(e),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(last.unwrap_or_else(|| "no server".into()))
}
