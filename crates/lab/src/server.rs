//! Servers under test.

use std::collections::BTreeMap;

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

/// How proc_pid_stat(5) shows a thread of Highkey that runs queries.
const QUERY_THREAD: &str = "(highkey-query)";

/// The process of a server on this machine.
#[derive(Clone, Debug)]
pub struct Pid {
    server: String,
    pid: u32,
}

/// Parses `NAME=PID`.
pub fn parse_pid(text: &str) -> std::result::Result<Pid, String> {
    let (server, pid) = text.split_once('=').ok_or("expected NAME=PID")?;
    Ok(Pid { server: server.to_string(), pid: pid.parse().map_err(|e| format!("{pid}: {e}"))? })
}

impl Pid {
    /// An error if one of them is of no server.
    pub fn check(pids: &[Pid], servers: &[Server]) -> Result<()> {
        match pids.iter().find(|p| servers.iter().all(|s| s.name != p.server)) {
            Some(unknown) => Err(format!("--pid {}: no server of that name", unknown.server).into()),
            None => Ok(()),
        }
    }

    /// The one of a server.
    pub fn of<'a>(pids: &'a [Pid], server: &Server) -> Option<&'a Pid> {
        pids.iter().find(|p| p.server == server.name)
    }

    /// User and system time of all threads of the process, those that have ended included.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let stat = self.read("stat")?;
        parse_cpu_seconds(&stat).ok_or_else(|| format!("/proc/{}/stat: {stat}", self.pid).into())
    }

    /// User and system time so far of those threads that run reports, by their numbers: of Highkey's threads for queries, or, in a server that has a
    /// thread for each connection, of this one. Threads that have ended are not among them.
    pub fn report_threads(&self, of_connection: Option<u64>) -> Result<BTreeMap<u64, f64>> {
        let folder = format!("/proc/{}/task", self.pid);
        let (mut queries, mut connection) = (BTreeMap::new(), BTreeMap::new());
        for entry in std::fs::read_dir(&folder).map_err(|e| format!("{folder}: {e}"))? {
            let name = entry.map_err(|e| format!("{folder}: {e}"))?.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse::<u64>().ok()) else { continue };
            // One that has ended since has no file any more.
            let Ok(stat) = std::fs::read_to_string(format!("{folder}/{thread}/stat")) else { continue };
            let Some(seconds) = parse_cpu_seconds(&stat) else { continue };
            if stat.contains(QUERY_THREAD) {
                queries.insert(thread, seconds);
            }
            if of_connection == Some(thread) {
                connection.insert(thread, seconds);
            }
        }
        Ok(if queries.is_empty() { connection } else { queries })
    }

    /// Bytes of the process in memory.
    pub fn resident_bytes(&self) -> Result<u64> {
        let status = self.read("status")?;
        parse_resident(&status).ok_or_else(|| format!("/proc/{}/status has no VmRSS", self.pid).into())
    }

    fn read(&self, name: &str) -> Result<String> {
        let file = format!("/proc/{}/{name}", self.pid);
        std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}").into())
    }
}

/// proc_pid_stat(5): fields 14 and 15, in clock ticks.
fn parse_cpu_seconds(stat: &str) -> Option<f64> {
    /// USER_HZ: Linux shows every program 100 ticks a second, whatever the kernel's own are.
    const TICKS_PER_SECOND: f64 = 100.0;
    // Field 2, the name, may hold spaces and parentheses; field 3 follows the last one.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

/// proc_pid_status(5): `VmRSS:  1234 kB`.
fn parse_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_a_process() {
        let stat = "7 (hk (a) b) S 1 7 7 0 -1 4194560 9 0 3 0 250 125 17 18 20 0 12 0 100 1 2";
        assert_eq!(parse_cpu_seconds(stat), Some(3.75));
        assert_eq!(parse_cpu_seconds("7 (hk) S 1"), None);
        let own = Pid { server: String::new(), pid: std::process::id() };
        let start = own.cpu_seconds().unwrap();
        let begin = std::time::Instant::now();
        // Far less than this much time is waited for.
        while own.cpu_seconds().unwrap() < start + 0.05 {
            assert!(begin.elapsed().as_secs() < 60);
        }
    }

    #[test]
    fn processor_time_of_threads() {
        let own = Pid { server: String::new(), pid: std::process::id() };
        assert!(own.report_threads(None).unwrap().is_empty());
        let first = own.report_threads(Some(u64::from(own.pid))).unwrap();
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [u64::from(own.pid)]);
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let query = std::thread::Builder::new().name("highkey-query".into()).spawn(move || stopped.recv().is_err()).unwrap();
        // The name is given by the thread itself.
        while own.report_threads(None).unwrap().len() != 1 {
            std::thread::yield_now();
        }
        assert!(!own.report_threads(Some(u64::from(own.pid))).unwrap().contains_key(&u64::from(own.pid)));
        drop(stop);
        assert!(query.join().unwrap());
    }

    #[test]
    fn memory_of_a_process() {
        assert_eq!(parse_resident("Name:\thk\nVmPeak:\t  99 kB\nVmRSS:\t   1234 kB\nThreads:\t9\n"), Some(1234 * 1024));
        assert_eq!(parse_resident("Name:\thk\n"), None);
        assert!(Pid { server: String::new(), pid: std::process::id() }.resident_bytes().unwrap() > 1 << 20);
    }
}
