//! Source 003: does the order of the keys matter to LOAD DATA or INSERTs of many rows, to the size of the table and to what is done with it afterwards?
//!
//! Each cell loads the same rows in one order into an empty table, checks them, and then runs point selects and updates of the
//! secondary index's column for some seconds each. Five reports come of it: loading, fill, size, selects, updates.

use std::time::Instant;

use clap::ValueEnum;
use futures::StreamExt;
use mysql_async::Conn;
use rand::Rng;
use rand::rngs::StdRng;

use crate::load_data;
use crate::report::{Better, Figure, Report, push_cells, reports_of};
use crate::sbtest::{self, File};
use crate::server::{self, Result, Server, number, run as execute};
use crate::workers::{self, Statement};

/// The order of the file's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// By id, ascending.
    Ordered,
    /// At random.
    Shuffled,
}

/// What to measure.
pub struct Plan {
    pub rows: u32,
    pub orders: Vec<Order>,
    /// 0 or 1 each.
    pub indexes: Vec<u64>,
    /// Rows of an INSERT; 0: LOAD DATA.
    pub insert: usize,
    /// Of selects, and of updates.
    pub seconds: f64,
    pub connections: u64,
}

/// One cell's figures.
struct Measured {
    rows_per_second: f64,
    fill_percent: Option<f64>,
    mebibytes: f64,
    selects: f64,
    updates: f64,
}

const FIGURES: [Figure<Measured>; 5] = [
    ("load-order", "rows/s", Better::More, |m| Some(m.rows_per_second)),
    ("load-order-fill", "% data/pages", Better::More, |m| m.fill_percent),
    ("load-order-size", "MiB", Better::Less, |m| Some(m.mebibytes)),
    ("load-order-selects", "selects/s", Better::More, |m| Some(m.selects)),
    ("load-order-updates", "updates/s", Better::More, |m| Some(m.updates)),
];

/// Runs the experiment.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Vec<Report>> {
    let mut reports = reports_of(&FIGURES, "secondary indexes", servers);
    for &order in &plan.orders {
        let file = File::new(plan.rows, order == Order::Shuffled);
        let group = if order == Order::Shuffled { "shuffled" } else { "ordered" };
        for &indexes in &plan.indexes {
            let measured = server::alternate(servers, repeats, async |server| cell(server, database, &file, indexes > 0, plan).await).await?;
            push_cells(&mut reports, &FIGURES, &format!("{group}, {indexes} secondary indexes"), group, indexes, &measured);
        }
    }
    Ok(reports)
}

async fn cell(server: &Server, database: &str, file: &File, secondary: bool, plan: &Plan) -> Result<Measured> {
    let mut connection = server.fresh(database).await?;
    load_data::allow(&mut connection).await;
    execute(&mut connection, &sbtest::ddl(secondary)).await?;
    let seconds = load(&mut connection, file, plan.insert).await?;
    sbtest::compare(server, "after the load", sbtest::found(&mut connection).await?, file.sums)?;
    execute(&mut connection, "ANALYZE TABLE sb_order").await?;
    // MySQL 8.0 keeps the sizes for a day otherwise; the others have no such variable and no such memory.
    let _ = execute(&mut connection, "SET SESSION information_schema_stats_expiry = 0").await;
    let size = format!(
        "SELECT DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME = 'sb_order'"
    );
    let bytes = number(&mut connection, &size).await?;
    let fill_percent = server::fill_percent(&mut connection, database, "sb_order").await?;

    let rows = plan.rows;
    let of_any = move |random: &mut StdRng, sql: &str| Statement::Text(format!("{sql} WHERE id = {}", random.random_range(1..=rows)));
    let connections = server.connect_many(database, plan.connections).await?;
    let selects = workers::work(connections, plan.seconds, move |_, random| of_any(random, "SELECT c FROM sb_order")).await?;
    let connections = server.connect_many(database, plan.connections).await?;
    let updates = workers::work(connections, plan.seconds, move |_, random| of_any(random, "UPDATE sb_order SET k = k + 1")).await?;
    let mut expected = file.sums;
    expected.ks += updates.statements;
    let found = sbtest::found(&mut connection).await?;
    // The rows' checksums have changed with k.
    expected.checksums = found.checksums;
    sbtest::compare(server, "after the updates", found, expected)?;
    Ok(Measured {
        rows_per_second: f64::from(rows) / seconds,
        fill_percent,
        mebibytes: bytes as f64 / f64::from(1 << 20),
        selects: selects.per_second,
        updates: updates.per_second,
    })
}

/// LOAD DATA LOCAL of a file that is in memory, or INSERTs of `insert` rows each. Seconds until the server says it is done.
async fn load(connection: &mut Conn, file: &File, insert: usize) -> Result<f64> {
    if insert > 0 {
        let inserts = file.inserts(insert);
        let start = Instant::now();
        for sql in &inserts {
            execute(connection, sql).await?;
        }
        return Ok(start.elapsed().as_secs_f64());
    }
    let blocks = file.blocks.clone();
    connection.set_infile_handler(async move { Ok(futures::stream::iter(blocks).map(Ok).boxed()) });
    let start = Instant::now();
    execute(connection, "LOAD DATA LOCAL INFILE 'sb_order' INTO TABLE sb_order").await?;
    Ok(start.elapsed().as_secs_f64())
}
