//! A server process, and a connection that uses it all the while.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinHandle;

use super::{Bench, HANG};
use crate::Result;

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
    log: PathBuf,
}

impl Server {
    /// Starts the process, on a port of its own unless `options` name one.
    pub fn spawn(bench: &Bench, datadir: &Path, options: &[&str]) -> Result<Server> {
        Server::spawn_as(bench, datadir, options, None)
    }

    /// As another user, for permissions that do not bind root.
    pub fn spawn_as(bench: &Bench, datadir: &Path, options: &[&str], uid: Option<u32>) -> Result<Server> {
        let port = bench.next_port()?;
        let log = bench.workdir.join(format!("{}.log", datadir.file_name().unwrap_or_default().to_string_lossy()));
        let stderr = File::create(&log)?;
        let mut command = Command::new(&bench.binary);
        command.arg("serve").arg("--datadir").arg(datadir).args(["--innodb-buffer-pool-size=16M", "--local-infile=ON"]);
        if !options.iter().any(|o| o.starts_with("--port")) {
            command.arg(format!("--port={port}"));
        }
        command.args(options).stdout(stderr.try_clone()?).stderr(stderr);
        if let Some(uid) = uid {
            command.uid(uid).gid(uid);
        }
        let child = command.stdin(Stdio::null()).spawn().map_err(|e| format!("{}: {e}", bench.binary.display()))?;
        Ok(Server { child, port, log })
    }

    /// Starts a server that must become ready.
    pub async fn start(bench: &Bench, datadir: &Path, options: &[&str]) -> Result<Server> {
        let mut server = Server::spawn(bench, datadir, options)?;
        match server.ready().await? {
            None => Ok(server),
            Some(status) => Err(format!("the server did not start: {status}: {}", server.last_line()).into()),
        }
    }

    /// Waits until the server accepts connections (`None`) or has ended.
    pub async fn ready(&mut self) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + HANG;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if self.connect().await.is_ok() {
                return Ok(None);
            }
            if Instant::now() > deadline {
                return Err(format!("neither ready nor ended after {} s", HANG.as_secs()).into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits for the process to end.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        let deadline = Instant::now() + HANG;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(format!("still running after {} s", HANG.as_secs()).into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    pub async fn connect(&self) -> Result<Conn> {
        let opts = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(self.port).user(Some("root")).prefer_socket(false);
        Ok(tokio::time::timeout(HANG, Conn::new(opts)).await.map_err(|_| "connecting hangs")??)
    }

    /// Asks the process to stop.
    pub fn send_sigterm(&self) -> Result<()> {
        let pid = Pid::from_raw(self.child.id() as i32).ok_or("no process id")?;
        Ok(kill_process(pid, Signal::TERM)?)
    }

    /// SIGTERM; it must end well.
    pub async fn terminate(mut self) -> Result<()> {
        self.send_sigterm()?;
        let status = self.ended().await?;
        if !status.success() {
            return Err(format!("SIGTERM ended in {status}: {}", self.last_line()).into());
        }
        self.no_panic()
    }

    /// SIGKILL.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// What the server has said so far, without colours.
    pub fn said(&self) -> String {
        let text = std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let mut plain = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c == '\u{1b}' {
                chars.by_ref().find(char::is_ascii_alphabetic);
            } else {
                plain.push(c);
            }
        }
        plain
    }

    pub fn last_line(&self) -> String {
        self.said().trim_end().lines().last().unwrap_or("(nothing on stderr)").to_string()
    }

    /// A panic is a defect even where only its own connection ends.
    pub fn no_panic(&self) -> Result<()> {
        let said = self.said();
        match said.lines().position(|line| line.contains("panicked at")) {
            Some(at) => Err(format!("a panic: {}", said.lines().skip(at).take(2).collect::<Vec<_>>().join(" ")).into()),
            None => Ok(()),
        }
    }

    /// Resident memory in MiB.
    pub fn resident_mib(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// The most that was resident so far, in MiB.
    pub fn peak_mib(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)).ok_or("no memory figure in /proc")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Another user: works without a pause while the harm is done, and takes any error of its own as a failure.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<u64>>,
}

const PULSE: &str = "bystander.pulse";

impl Bystander {
    /// Inserts rows.
    pub async fn writing(server: &Server) -> Result<Bystander> {
        let mut connection = server.connect().await?;
        connection.query_drop("CREATE DATABASE IF NOT EXISTS bystander").await?;
        connection.query_drop(format!("CREATE TABLE IF NOT EXISTS {PULSE} (id BIGINT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100))")).await?;
        Ok(Bystander::start(connection, format!("INSERT INTO {PULSE} (v) VALUES (REPEAT('v', 50))")))
    }

    /// Only reads.
    pub async fn reading(server: &Server, sql: &str) -> Result<Bystander> {
        Ok(Bystander::start(server.connect().await?, sql.to_string()))
    }

    fn start(mut connection: Conn, sql: String) -> Bystander {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut done = 0;
            while !stopped.load(Ordering::Relaxed) {
                let statement = tokio::time::timeout(HANG, connection.query_drop(&sql)).await;
                statement.map_err(|_| "the bystander's statement hangs")?.map_err(|e| format!("the bystander got: {e}"))?;
                done += 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Ok(done)
        });
        Bystander { stop, task }
    }

    /// How many statements were acknowledged.
    pub async fn finish(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await?
    }

    /// After a restart: every acknowledged row is there, once.
    pub async fn check(connection: &mut Conn, acknowledged: u64) -> Result<()> {
        let found: Option<u64> = connection.query_first(format!("SELECT COUNT(*) FROM {PULSE}")).await?;
        if found != Some(acknowledged) {
            return Err(format!("{acknowledged} rows of the bystander were acknowledged, {found:?} are there").into());
        }
        Ok(())
    }
}
