//! Servers under test.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};

/// Errors are for people: they name the server and the statement.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A server by name.
#[derive(Clone, Debug)]
pub struct Server {
    pub name: String,
    opts: Opts,
}

/// Parses `NAME=mysql://user@host:port`.
pub fn parse(text: &str) -> std::result::Result<Server, String> {
    let (name, url) = text.split_once('=').ok_or("expected NAME=mysql://user@host:port")?;
    let opts = Opts::from_url(url).map_err(|e| format!("{url}: {e}"))?;
    Ok(Server { name: name.to_string(), opts })
}

/// Prepared statements that a connection keeps: an experiment never needs one prepared again.
pub const PREPARED_MAX: usize = 1024;

impl Server {
    /// Opens a connection over TCP.
    pub async fn connect(&self, database: Option<&str>) -> Result<Conn> {
        let opts = OptsBuilder::from_opts(self.opts.clone()).db_name(database).prefer_socket(false).stmt_cache_size(PREPARED_MAX);
        Conn::new(opts).await.map_err(|e| format!("{}: {e}", self.name).into())
    }

    /// Opens many, a few at a time.
    pub async fn connect_many(&self, database: &str, count: u64) -> Result<Vec<Conn>> {
        let mut all = Vec::with_capacity(count as usize);
        for _ in 0..count {
            all.push(self.connect(Some(database)).await?);
        }
        Ok(all)
    }

    /// A connection to a new, empty database of this name.
    pub async fn fresh(&self, database: &str) -> Result<Conn> {
        let mut connection = self.connect(None).await?;
        run(&mut connection, &format!("DROP DATABASE IF EXISTS {database}")).await?;
        run(&mut connection, &format!("CREATE DATABASE {database}")).await?;
        run(&mut connection, &format!("USE {database}")).await?;
        Ok(connection)
    }
}

/// Measures a cell on every server in turn, `repeats` rounds of it, so that all meet the same weather. What each server gave.
pub async fn alternate<T>(servers: &[Server], repeats: usize, cell: impl AsyncFn(&Server) -> Result<T>) -> Result<Vec<Vec<T>>> {
    let mut given: Vec<Vec<T>> = servers.iter().map(|_| Vec::with_capacity(repeats)).collect();
    for _ in 0..repeats {
        for (server, given) in servers.iter().zip(&mut given) {
            given.push(cell(server).await?);
        }
    }
    Ok(given)
}

/// Runs a statement, whose text becomes part of an error.
pub async fn run(connection: &mut Conn, sql: &str) -> Result<()> {
    connection.query_drop(sql).await.map_err(|e| format!("{e}, in: {}", sql.chars().take(200).collect::<String>()).into())
}

/// One number, as of SELECT COUNT(*).
pub async fn number(connection: &mut Conn, sql: &str) -> Result<u64> {
    let found: Option<u64> = connection.query_first(sql).await.map_err(|e| format!("{e}, in: {sql}"))?;
    found.ok_or_else(|| format!("no row from: {sql}").into())
}

/// How much of the primary key's pages is records, in percent, as `xtrabackup --stats` counts it. Highkey reads all leaves; InnoDB tells of the
/// pages in its buffer pool. `None` where a server tells neither.
pub async fn fill_percent(connection: &mut Conn, database: &str, table: &str) -> Result<Option<f64>> {
    let highkey = format!(
        "SELECT DATA_BYTES * 100 / (PAGES * 16384) FROM information_schema.HIGHKEY_INDEX_LEVELS \
         WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME = '{table}' AND INDEX_NAME = 'PRIMARY' AND LEVEL = 0"
    );
    let innodb = format!(
        "SELECT SUM(DATA_SIZE) * 100 / (COUNT(*) * 16384) FROM information_schema.INNODB_BUFFER_PAGE \
         WHERE TABLE_NAME = '`{database}`.`{table}`' AND INDEX_NAME = 'PRIMARY' AND PAGE_TYPE = 'INDEX'"
    );
    for sql in [highkey, innodb] {
        match connection.query_first::<Option<f64>, _>(&sql).await {
            Ok(percent) => return Ok(percent.flatten()),
            // Unknown table: a server of the other kind.
            Err(mysql_async::Error::Server(e)) if [1109, 1146].contains(&e.code) => {}
            Err(e) => return Err(format!("{e}, in: {sql}").into()),
        }
    }
    Ok(None)
}

/// Version and the settings that make a comparison fair.
pub async fn describe(connection: &mut Conn) -> Result<String> {
    let mut parts = Vec::new();
    for variable in
        ["version", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_buffer_pool_size", "log_bin", "binlog_format", "sync_binlog"]
    {
        let value: Option<(String, String)> = connection.query_first(format!("SHOW VARIABLES LIKE '{variable}'")).await?;
        parts.push(format!("{variable}={}", value.map_or("-".into(), |v| v.1)));
    }
    Ok(parts.join(" "))
}
