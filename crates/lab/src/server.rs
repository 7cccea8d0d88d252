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

impl Server {
    /// Opens a connection over TCP.
    pub async fn connect(&self, database: Option<&str>) -> Result<Conn> {
        let opts = OptsBuilder::from_opts(self.opts.clone()).db_name(database).prefer_socket(false);
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

/// Version and the settings that make a comparison fair.
pub async fn describe(connection: &mut Conn) -> Result<String> {
    let mut parts = Vec::new();
    for variable in
        ["version", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_buffer_pool_size", "log_bin", "sync_binlog"]
    {
        let value: Option<(String, String)> = connection.query_first(format!("SHOW VARIABLES LIKE '{variable}'")).await?;
        parts.push(format!("{variable}={}", value.map_or("-".into(), |v| v.1)));
    }
    Ok(parts.join(" "))
}
