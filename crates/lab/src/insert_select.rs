//! Source 000: does a bulk copy get faster with more streams, whatever the width and the key of the table?
//!
//! For n streams, t1 holds rows/n rows and each stream runs `insert into t2 select * from t1` once, so that t2 ends with the
//! same number of rows in every cell. A figure is rows in t2 by the seconds from the start of the first to the end of
//! the last stream.

use std::time::Instant;

use clap::ValueEnum;
use mysql_async::Conn;

use crate::report::{Better, Cell, Report};
use crate::server::{self, Result, Server, number, run as execute};

/// The four tables of the source.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Kind {
    /// Five ints and an auto-increment key.
    Narrow,
    /// A 512-byte string and an auto-increment key.
    Medium,
    /// Four 1024-byte strings and an auto-increment key.
    Wide,
    /// The narrow table, copied into one without a primary key.
    Keyless,
}

/// What to measure.
pub struct Plan {
    pub rows: u64,
    pub wide_rows: u64,
    pub streams: Vec<u64>,
    pub tables: Vec<Kind>,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Narrow => "narrow",
            Kind::Medium => "medium",
            Kind::Wide => "wide",
            Kind::Keyless => "keyless",
        }
    }

    /// Columns with their types and default expressions.
    fn columns(self) -> Vec<(&'static str, &'static str, &'static str)> {
        const INTS: [(&str, &str, &str); 4] =
            [("str1", "int", "100"), ("str2", "int", "100"), ("str3", "int", "100"), ("str4", "int", "100")];
        const WIDE: &str = "varchar(1024) CHARACTER SET latin1";
        match self {
            Kind::Narrow | Kind::Keyless => INTS.to_vec(),
            Kind::Medium => vec![("str1", "varchar(512) CHARACTER SET latin1", "repeat('a',512)")],
            Kind::Wide => vec![
                ("str1", WIDE, "repeat('a1',512)"),
                ("str2", WIDE, "repeat('b2',512)"),
                ("str3", WIDE, "repeat('c3',512)"),
                ("str4", WIDE, "repeat('c3',512)"),
            ],
        }
    }

    /// The source's own DDL, or for a server without invisible columns and expression defaults the same table without them.
    fn ddl(self, table: &str, keyed: bool, modern: bool) -> String {
        let mut parts = Vec::new();
        if keyed {
            parts.push(format!("c1 int{} auto_increment primary key", if modern { " invisible" } else { "" }));
        }
        parts.push("c2 int".to_string());
        for (name, ty, default) in self.columns() {
            let default = if modern { format!(" DEFAULT({default})") } else { String::new() };
            parts.push(format!("{name} {ty}{default} NOT NULL"));
        }
        format!("CREATE TABLE {table} ({}) engine=InnoDB", parts.join(", "))
    }

    fn names(self) -> String {
        let names: Vec<&str> = std::iter::once("c2").chain(self.columns().iter().map(|c| c.0)).collect();
        names.join(", ")
    }

    fn copy(self, modern: bool) -> String {
        if modern {
            "insert into t2 select * from t1".to_string()
        } else {
            format!("insert into t2 ({0}) select {0} from t1", self.names())
        }
    }
}

/// Runs the experiment.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Report> {
    let mut report = Report::new("insert-select", "rows/s", "streams", Better::More, servers);
    for &kind in &plan.tables {
        let total = if matches!(kind, Kind::Wide) { plan.wide_rows } else { plan.rows };
        for &streams in &plan.streams {
            let figures = server::alternate(servers, repeats, async |server| cell(server, database, kind, streams, total / streams).await).await?;
            for (server, figures) in figures.into_iter().enumerate() {
                eprintln!("{} {streams} streams {}: {figures:.0?}", kind.name(), servers[server].name);
                report.push(Cell { group: kind.name().into(), at: streams, server, figures, latency_ms: None });
            }
        }
    }
    Ok(report)
}

async fn cell(server: &Server, database: &str, kind: Kind, streams: u64, rows_each: u64) -> Result<f64> {
    let mut connection = server.fresh(database).await?;
    // Asked with the real thing: a server that does not know the syntax says so.
    let modern = execute(&mut connection, &kind.ddl("t1", true, true)).await.is_ok();
    if !modern {
        execute(&mut connection, &kind.ddl("t1", true, false)).await?;
    }
    match kind {
        Kind::Keyless => execute(&mut connection, &kind.ddl("t2", false, modern)).await?,
        _ => execute(&mut connection, "CREATE TABLE t2 LIKE t1").await?,
    }
    fill(&mut connection, kind, rows_each).await?;

    let copy = kind.copy(modern);
    let mut connections = server.connect_many(database, streams).await?;
    let start = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for mut stream in connections.drain(..) {
        let copy = copy.clone();
        running.spawn(async move { execute(&mut stream, &copy).await });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let seconds = start.elapsed().as_secs_f64();
    let expected = rows_each * streams;
    let found = number(&mut connection, "SELECT COUNT(*) FROM t2").await?;
    if found != expected {
        return Err(format!("{}: t2 has {found} rows, not {expected}", server.name).into());
    }
    Ok(expected as f64 / seconds)
}

/// Fills t1: a thousand rows by VALUES, then doubling.
async fn fill(connection: &mut Conn, kind: Kind, rows: u64) -> Result<()> {
    let values: Vec<&str> = kind.columns().iter().map(|c| c.2).collect();
    let first = rows.min(1000);
    let list: Vec<String> = (0..first).map(|i| format!("({i}, {})", values.join(", "))).collect();
    execute(connection, &format!("INSERT INTO t1 ({}) VALUES {}", kind.names(), list.join(", "))).await?;
    let mut have = first;
    while have < rows {
        let more = have.min(rows - have).min(100_000);
        execute(connection, &format!("INSERT INTO t1 ({0}) SELECT {0} FROM t1 LIMIT {more}", kind.names())).await?;
        have += more;
    }
    Ok(())
}
