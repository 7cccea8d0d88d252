//! A client that fills tables in bulk: what was acknowledged is there whole, and of the statement that the kill met, all or nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use bytes::Bytes;
use futures::StreamExt;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::Result;

/// Rows of a table, and the sum of their `v`.
type Contents = (u64, i64);

/// The tables that there are.
type Tables = BTreeMap<&'static str, Contents>;

/// Rows that are too few for a bulk load, enough for one, and enough for one that begins before all rows are read.
const SIZES: [u64; 3] = [300, 6_000, 30_000];
/// A table of more is not filled further.
const ROWS_MAX: u64 = 60_000;

/// What one client knows.
pub(super) struct Filler {
    id: u64,
    rng: StdRng,
    committed: Tables,
    /// The state if the statement under way when the connection broke did take effect.
    in_doubt: Option<Tables>,
    /// The server refuses CREATE TABLE … SELECT: `enforce_gtid_consistency`.
    gtids_enforced: bool,
    /// System calls of the server fail: any statement may.
    fails: bool,
}

/// A statement, and the lines that it loads.
struct Step {
    sql: String,
    lines: Option<Bytes>,
}

impl Filler {
    pub fn new(id: u64, seed: u64, fails: bool) -> Filler {
        Filler { id, rng: StdRng::seed_from_u64(seed), committed: Tables::new(), in_doubt: None, gtids_enforced: false, fails }
    }

    /// Statements until the connection breaks. Returns how many were acknowledged.
    pub async fn fill(mut self, mut connection: Conn) -> (Filler, u64) {
        let mut acknowledged = 0;
        loop {
            let mut next = self.committed.clone();
            let step = self.step(&mut next);
            if let Some(lines) = step.lines {
                let blocks: Vec<_> = lines.chunks(1 << 20).map(|block| Ok(lines.slice_ref(block))).collect();
                connection.set_infile_handler(async move { Ok(futures::stream::iter(blocks).boxed()) });
            }
            match connection.query_drop(&step.sql).await {
                Ok(()) => {
                    self.committed = next;
                    acknowledged += 1;
                }
                // A column or an index that is there already, or is not.
                Err(mysql_async::Error::Server(e)) if matches!(e.code, 1060 | 1061 | 1091) => {}
                Err(mysql_async::Error::Server(e)) if e.code == 1786 => self.gtids_enforced = true,
                Err(mysql_async::Error::Server(e)) if e.code != 1053 && !self.fails => panic!("{}: {e}", step.sql),
                Err(_) => {
                    self.in_doubt = Some(next);
                    return (self, acknowledged);
                }
            }
        }
    }

    /// A random statement that can be done now, and what it makes of the tables.
    fn step(&mut self, tables: &mut Tables) -> Step {
        let id = self.id;
        let statement = |sql: String| Step { sql, lines: None };
        let Some((rows, sum)) = tables.get("loaded").copied() else {
            tables.insert("loaded", (0, 0));
            return statement(format!("CREATE TABLE loaded_{id} (id INT PRIMARY KEY, v INT NOT NULL, pad VARCHAR(300), KEY by_v (v))"));
        };
        if rows == 0 {
            let (lines, contents) = self.lines();
            tables.insert("loaded", contents);
            return Step { sql: format!("LOAD DATA LOCAL INFILE 'lines' INTO TABLE loaded_{id}"), lines: Some(lines) };
        }
        let copied = tables.get("copied").copied();
        match (self.rng.random_range(0..9), copied) {
            (0..=2, None) if self.gtids_enforced => {
                tables.insert("copied", (0, 0));
                statement(format!("CREATE TABLE copied_{id} (v INT NOT NULL, pad VARCHAR(300))"))
            }
            (0..=2, None) => {
                tables.insert("copied", (rows, sum));
                statement(format!("CREATE TABLE copied_{id} SELECT v, pad FROM loaded_{id}"))
            }
            (0..=2, Some((before, before_sum))) if before < ROWS_MAX => {
                tables.insert("copied", (before + rows, before_sum + sum));
                statement(format!("INSERT INTO copied_{id} (v, pad) SELECT v, pad FROM loaded_{id}"))
            }
            (3, Some(_)) => statement(format!("ALTER TABLE copied_{id} ADD COLUMN id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST")),
            (4, Some(_)) => statement(format!("OPTIMIZE TABLE copied_{id}")),
            (5, _) => statement(format!("CREATE INDEX by_pad ON loaded_{id} (pad(9), v)")),
            (6, _) => statement(format!("DROP INDEX by_pad ON loaded_{id}")),
            (7, _) => statement(format!("REPLACE INTO loaded_{id} SELECT * FROM loaded_{id}")),
            (_, Some(_)) if self.rng.random_bool(0.5) => {
                tables.remove("copied");
                statement(format!("DROP TABLE copied_{id}"))
            }
            _ => {
                tables.insert("loaded", (0, 0));
                statement(format!("TRUNCATE TABLE loaded_{id}"))
            }
        }
    }

    /// Lines in order, shuffled, or in order but for the last.
    fn lines(&mut self) -> (Bytes, Contents) {
        let count = SIZES[self.rng.random_range(0..SIZES.len())];
        let mut ids: Vec<u64> = (1..=count).collect();
        match self.rng.random_range(0..3) {
            0 => {}
            1 => ids.shuffle(&mut self.rng),
            _ => ids.rotate_left(1),
        }
        let (mut lines, mut sum) = (String::new(), 0);
        for id in ids {
            let v = (id * 7 % 1000) as i64;
            sum += v;
            writeln!(lines, "{id}\t{v}\t{:0>width$}", id, width = 200 + (id % 60) as usize).expect("a string takes any line");
        }
        (Bytes::from(lines), (count, sum))
    }

    /// What is found after a restart is one of the states that may be.
    pub async fn verify(&mut self, connection: &mut Conn) -> Result<()> {
        let mut found = Tables::new();
        for name in ["loaded", "copied"] {
            let exists: Option<String> = connection.query_first(format!("SHOW TABLES LIKE '{name}_{}'", self.id)).await?;
            if exists.is_some() {
                let sql = format!("SELECT COUNT(*), CAST(COALESCE(SUM(v), 0) AS SIGNED) FROM {name}_{}", self.id);
                found.insert(name, connection.query_first(sql).await?.ok_or("no row")?);
            }
        }
        if let Some(in_doubt) = self.in_doubt.take().filter(|in_doubt| *in_doubt == found) {
            self.committed = in_doubt;
        } else if found != self.committed {
            return Err(format!("bulk client {}: found {found:?}, acknowledged {:?}", self.id, self.committed).into());
        }
        Ok(())
    }
}
