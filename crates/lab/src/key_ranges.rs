//! Source 000's advice for keys that are not auto-increment: give every thread a range of keys of its own, far from the others'.
//!
//! n streams insert the same number of rows in statements of some rows, each its own commit. The keys of a stream ascend; how they lie
//! among those of the others is the layout.

use std::time::Instant;

use clap::ValueEnum;

use crate::report::{Better, Cell, Report};
use crate::server::{self, Result, Server, number, run as execute};

/// Where the streams' keys lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// [1-1000], [10001-11000], [20001-21000]: what the source advises.
    Apart,
    /// [1-1000], [1001-2000], [2001-3000]: one range cut in pieces.
    Adjacent,
    /// 1, 4, 7 ...; 2, 5, 8 ...; 3, 6, 9 ...: all streams in the same pages.
    Interleaved,
}

/// What to measure.
pub struct Plan {
    pub rows: u64,
    pub streams: Vec<u64>,
    pub layouts: Vec<Layout>,
    /// Rows of a statement.
    pub batch: u64,
}

impl Layout {
    fn name(self) -> &'static str {
        match self {
            Layout::Apart => "apart",
            Layout::Adjacent => "adjacent",
            Layout::Interleaved => "interleaved",
        }
    }

    /// The n-th key of a stream, all from 0.
    fn key(self, streams: u64, rows_each: u64, stream: u64, n: u64) -> u64 {
        1 + match self {
            Layout::Apart => stream * rows_each * 10 + n,
            Layout::Adjacent => stream * rows_each + n,
            Layout::Interleaved => n * streams + stream,
        }
    }
}

/// Runs the experiment. Two reports: rows/s, and how full the primary key's pages are.
pub async fn run(servers: &[Server], database: &str, repeats: usize, plan: &Plan) -> Result<Vec<Report>> {
    let mut speed = Report::new("key-ranges", "rows/s", "streams", Better::More, servers);
    let mut fill = Report::new("key-ranges-fill", "% data/pages", "streams", Better::More, servers);
    for &layout in &plan.layouts {
        for &streams in &plan.streams {
            let measured = server::alternate(servers, repeats, async |server| cell(server, database, layout, streams, plan).await).await?;
            for (server, measured) in measured.into_iter().enumerate() {
                let figures: Vec<f64> = measured.iter().map(|(rows, _)| *rows).collect();
                eprintln!("{} {streams} streams {}: {figures:.0?}", layout.name(), servers[server].name);
                speed.push(Cell { group: layout.name().into(), at: streams, server, figures, latency_ms: None });
                let figures = measured.iter().filter_map(|(_, fill)| *fill).collect();
                fill.push(Cell { group: layout.name().into(), at: streams, server, figures, latency_ms: None });
            }
        }
    }
    Ok(vec![speed, fill])
}

/// Rows per second, and the fill.
async fn cell(server: &Server, database: &str, layout: Layout, streams: u64, plan: &Plan) -> Result<(f64, Option<f64>)> {
    let mut control = server.fresh(database).await?;
    execute(
        &mut control,
        "CREATE TABLE t1 (c1 int NOT NULL PRIMARY KEY, c2 int, str1 int DEFAULT 100 NOT NULL, str2 int DEFAULT 100 NOT NULL, \
         str3 int DEFAULT 100 NOT NULL, str4 int DEFAULT 100 NOT NULL) engine=InnoDB",
    )
    .await?;
    let (rows_each, batch) = (plan.rows / streams, plan.batch);
    let connections = server.connect_many(database, streams).await?;
    let start = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for (stream, mut connection) in (0..).zip(connections) {
        running.spawn(async move {
            for first in (0..rows_each).step_by(batch as usize) {
                let keys = (first..rows_each.min(first + batch)).map(|n| layout.key(streams, rows_each, stream, n));
                let rows: Vec<String> = keys.map(|key| format!("({key}, {})", c2(key))).collect();
                execute(&mut connection, &format!("INSERT INTO t1 (c1, c2) VALUES {}", rows.join(", "))).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let seconds = start.elapsed().as_secs_f64();
    let keys = || (0..streams).flat_map(|stream| (0..rows_each).map(move |n| layout.key(streams, rows_each, stream, n)));
    for (what, expected) in [("COUNT(*)", rows_each * streams), ("SUM(c1)", keys().sum()), ("SUM(c2)", keys().map(c2).sum())] {
        let found = number(&mut control, &format!("SELECT CAST({what} AS UNSIGNED) FROM t1")).await?;
        if found != expected {
            return Err(format!("{}: {what} is {found}, not {expected}", server.name).into());
        }
    }
    let fill = server::fill_percent(&mut control, database, "t1").await?;
    Ok(((rows_each * streams) as f64 / seconds, fill))
}

/// The second column's value, so that its sum tells more than the keys' alone.
fn c2(key: u64) -> u64 {
    key * 7919 % 10_007
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_sources() {
        let keys = |layout: Layout, stream| (0..1000).map(move |n| layout.key(3, 1000, stream, n));
        let ends = |layout, stream| (keys(layout, stream).next().unwrap(), keys(layout, stream).last().unwrap());
        assert_eq!([0, 1, 2].map(|s| ends(Layout::Apart, s)), [(1, 1000), (10_001, 11_000), (20_001, 21_000)]);
        assert_eq!([0, 1, 2].map(|s| ends(Layout::Adjacent, s)), [(1, 1000), (1001, 2000), (2001, 3000)]);
        assert_eq!([0, 1, 2].map(|s| ends(Layout::Interleaved, s)), [(1, 2998), (2, 2999), (3, 3000)]);
        for layout in [Layout::Apart, Layout::Adjacent, Layout::Interleaved] {
            let mut all: Vec<u64> = (0..3).flat_map(|stream| keys(layout, stream)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 3000, "{layout:?}");
        }
    }
}
