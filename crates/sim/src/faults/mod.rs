//! Bad input against a running server.
//!
//! Every case does one kind of harm from outside the process and asserts what a user is owed: a clear MySQL error, or a stop
//! with a readable message; other connections go on; nothing acknowledged is lost.
//!
//! - `packets`: malformed packets before and after authentication, random mutations of valid ones;
//! - `files`: bit flips, zeroed sectors, truncations and removals of every file of a stopped server;
//! - `disk_full`: a small tmpfs, filled by rows and filled from outside;
//! - `start`: directories, ports and sockets that cannot be used;
//! - `limits`: statements over `max_allowed_packet`, values out of range;
//! - `stop`: SIGTERM under load, KILL of connections in every state.
//!
//! The seed is printed; the same seed makes the same harm. A time limit here only tells a hang: none is near what is measured.

mod disk_full;
mod files;
mod limits;
mod packets;
mod raw;
mod server;
mod start;
mod stop;

use std::future::Future;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::Result;

/// Longer than anything here takes: whoever does not answer by then hangs.
pub const HANG: Duration = Duration::from_secs(60);

#[derive(Args)]
pub struct Options {
    /// The server's binary
    #[arg(long)]
    binary: PathBuf,
    /// Directory for data and logs; must not exist, removed if all is well
    #[arg(long)]
    workdir: PathBuf,
    /// First of the ten TCP ports to use
    #[arg(long, default_value_t = 13990)]
    port: u16,
    /// Seed of what is damaged and how
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fewer damages of each kind, no statement of a gigabyte
    #[arg(long)]
    short: bool,
    /// Only these groups of cases
    #[arg(long)]
    only: Vec<Group>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Group {
    Packets,
    Files,
    DiskFull,
    Start,
    Limits,
    Stop,
}

/// What the cases share.
pub struct Bench {
    pub binary: PathBuf,
    pub workdir: PathBuf,
    pub seed: u64,
    pub short: bool,
    port: u16,
    started: AtomicU16,
}

impl Bench {
    /// A port for the next server: its predecessor's may still be closing, and clients of others may hold any.
    pub fn next_port(&self) -> Result<u16> {
        (0..10)
            .map(|_| self.port + self.started.fetch_add(1, Ordering::Relaxed) % 10)
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .ok_or_else(|| format!("none of the ports {}..{} is free", self.port, self.port + 10).into())
    }
}

/// How a case ended well.
pub enum Verdict {
    /// With what was seen.
    Passed(String),
    /// With why it cannot run here.
    Skipped(String),
}

/// Collects what the cases say.
#[derive(Default)]
pub struct Report {
    passed: u32,
    skipped: u32,
    failed: Vec<String>,
}

impl Report {
    /// Runs one case and prints its line.
    pub async fn case(&mut self, name: &str, case: impl Future<Output = Result<Verdict>>) {
        let begin = Instant::now();
        let (word, detail) = match case.await {
            Ok(Verdict::Passed(detail)) => {
                self.passed += 1;
                ("ok", detail)
            }
            Ok(Verdict::Skipped(why)) => {
                self.skipped += 1;
                ("skipped", why)
            }
            Err(e) => {
                self.failed.push(name.to_string());
                ("FAILED", e.to_string())
            }
        };
        println!("{word:8} {name}: {detail} ({:.1} s)", begin.elapsed().as_secs_f64());
    }
}

pub async fn run(options: Options) -> Result<()> {
    if options.workdir.exists() {
        return Err(format!("{} exists already", options.workdir.display()).into());
    }
    std::fs::create_dir_all(&options.workdir)?;
    let bench = Bench {
        binary: options.binary.canonicalize().map_err(|e| format!("{}: {e}", options.binary.display()))?,
        workdir: options.workdir.canonicalize()?,
        seed: options.seed,
        short: options.short,
        port: options.port,
        started: AtomicU16::new(0),
    };
    println!("seed {}", options.seed);
    let mut report = Report::default();
    let wanted = |group| options.only.is_empty() || options.only.contains(&group);
    if wanted(Group::Packets) {
        packets::run(&bench, &mut report).await?;
    }
    if wanted(Group::Files) {
        files::run(&bench, &mut report).await?;
    }
    if wanted(Group::DiskFull) {
        disk_full::run(&bench, &mut report).await;
    }
    if wanted(Group::Start) {
        start::run(&bench, &mut report).await;
    }
    if wanted(Group::Limits) {
        limits::run(&bench, &mut report).await?;
    }
    if wanted(Group::Stop) {
        stop::run(&bench, &mut report).await;
    }
    println!("{} passed, {} skipped, {} failed", report.passed, report.skipped, report.failed.len());
    if report.failed.is_empty() {
        std::fs::remove_dir_all(&bench.workdir)?;
        return Ok(());
    }
    Err(format!("seed {}: {}; data and logs are in {}", bench.seed, report.failed.join("; "), bench.workdir.display()).into())
}
