//! The command line. Any system variable can be given as `--name=value`, as with mysqld.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use highkey_sql::Settings;

#[derive(Parser)]
#[command(name = "highkey", version, about = "Highkey: a MySQL-compatible database server with its own storage engine")]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Run the server until SIGTERM, Ctrl-C or the SHUTDOWN statement
    #[command(
        after_help = "Every system variable is an option too, as with mysqld:\n  \
        --innodb-buffer-pool-size=4G  --innodb-flush-log-at-trx-commit=2  --max-connections=500\n\n\
        Options override the configuration file, whose groups [mysqld], [server] and [highkey] are read."
    )]
    Serve(ServeArgs),
    /// Print pages, records and fill of every index, level by level, as xtrabackup --stats does
    #[command(
        after_help = "Reads all pages of the tables asked about. A data directory must not be in use; it is opened as the server opens it,\n\
        so that after a crash it is recovered first, and closed cleanly."
    )]
    Stats(StatsArgs),
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["datadir", "url"]))]
struct StatsArgs {
    /// Data directory of a stopped server
    #[arg(long, value_name = "DIR")]
    datadir: Option<PathBuf>,
    /// A running server: mysql://user:password@host:port
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Only tables of which this regular expression matches a part of "database.table" or "database/table"
    #[arg(long, value_name = "REGEX")]
    tables: Option<String>,
}

#[derive(clap::Args)]
struct ServeArgs {
    /// Directory that holds the database; created if it does not exist
    #[arg(long, value_name = "DIR")]
    datadir: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", alias = "bind-address", alias = "bind_address")]
    bind: Option<IpAddr>,
    /// TCP port, 0 for any free one [default: 3306]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Local socket to listen on as well
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Configuration file in my.cnf format
    #[arg(long, value_name = "FILE", alias = "defaults-file")]
    config: Option<PathBuf>,
}

/// What to do.
pub enum Command {
    Serve(Box<ServeOptions>),
    Stats(StatsOptions),
}

/// Whose statistics to print.
pub struct StatsOptions {
    pub source: StatsSource,
    /// A regular expression, not checked yet.
    pub tables: Option<String>,
}

/// Where indexes are read.
pub enum StatsSource {
    Directory(PathBuf),
    /// A URL, not checked yet.
    Server(String),
}

/// A checked command line of `serve`.
pub struct ServeOptions {
    pub datadir: PathBuf,
    pub bind: IpAddr,
    pub port: u16,
    pub socket: Option<PathBuf>,
    pub settings: Settings,
}

/// Reads a command line; the error prints itself (help and version are such errors).
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, clap::Error> {
    let mut command = Cli::command();
    let (own, variables) = split(&command, args);
    let matches = command.try_get_matches_from_mut(own)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let fail = |text: String| Cli::command().error(ErrorKind::ValueValidation, text);
    match cli.command {
        CliCommand::Serve(args) => {
            let mut settings = Settings::default();
            if let Some(file) = &args.config {
                let shown = file.display().to_string();
                let text = std::fs::read_to_string(file).map_err(|e| fail(format!("cannot read {shown}: {e}")))?;
                settings.apply_config(&text, &shown).map_err(|e| fail(e.to_string()))?;
            }
            let path = |p: &PathBuf| p.display().to_string();
            let named = [
                ("datadir", args.datadir.as_ref().map(path)),
                ("bind_address", args.bind.map(|a| a.to_string())),
                ("port", args.port.map(|p| p.to_string())),
                ("socket", args.socket.as_ref().map(path)),
            ];
            for (name, value) in named {
                if let Some(value) = value {
                    settings.set(name, Some(&value)).map_err(|e| fail(e.to_string()))?;
                }
            }
            for (name, value) in variables {
                settings.set(&name, value.as_deref()).map_err(|e| fail(e.to_string()))?;
            }
            settings.check().map_err(|e| fail(e.to_string()))?;
            if !settings.is_given("datadir") {
                return Err(fail("serve needs --datadir DIR, or datadir in the configuration file".into()));
            }
            let datadir = settings.text("datadir");
            if !settings.is_given("innodb_buffer_pool_size") {
                settings.set_internal("innodb_buffer_pool_size", &default_buffer_pool().to_string());
            }
            let bind = settings.text("bind_address");
            let bind = match bind.as_str() {
                "*" => IpAddr::from([0, 0, 0, 0]),
                "localhost" => IpAddr::from([127, 0, 0, 1]),
                text => text.parse().map_err(|_| fail(format!("bind_address '{text}' is not an IP address")))?,
            };
            let port = settings.u64("port");
            let port = u16::try_from(port).map_err(|_| fail(format!("port {port} is not between 0 and 65535")))?;
            let socket = Some(settings.text("socket")).filter(|s| !s.is_empty()).map(PathBuf::from);
            Ok(Command::Serve(Box::new(ServeOptions { datadir: datadir.into(), bind, port, socket, settings })))
        }
        CliCommand::Stats(args) => {
            let source = match (args.datadir, args.url) {
                (Some(datadir), _) => StatsSource::Directory(datadir),
                (None, url) => StatsSource::Server(url.unwrap_or_default()),
            };
            Ok(Command::Stats(StatsOptions { source, tables: args.tables }))
        }
    }
}

/// Separates the options clap knows from `--system-variable[=value]`, or `--system-variable value` where it needs one, which only `serve` takes.
fn split(command: &clap::Command, args: impl Iterator<Item = OsString>) -> (Vec<OsString>, Vec<(String, Option<String>)>) {
    let (mut own, mut variables) = (Vec::new(), Vec::new());
    let mut serve: Option<&clap::Command> = None;
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if serve.is_none() && text == "serve" {
            serve = command.find_subcommand("serve");
        } else if let (Some(serve), Some(option)) = (serve, text.strip_prefix("--")) {
            let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let known = matches!(name, "help" | "")
                || serve.get_arguments().any(|a| a.get_long() == Some(name) || a.get_all_aliases().is_some_and(|all| all.contains(&name)));
            if !known {
                let behind = if value.is_none() && Settings::takes_value(name) { args.next_if(|next| !next.to_string_lossy().starts_with("--")) } else { None };
                let value = value.map(str::to_string).or_else(|| behind.map(|value| value.to_string_lossy().into_owned()));
                variables.push((name.to_string(), value));
                continue;
            }
        }
        own.push(arg);
    }
    (own, variables)
}

/// A quarter of the machine's memory, in bytes; 128 MiB where it cannot be read.
fn default_buffer_pool() -> u64 {
    let memory_kib = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()));
    memory_kib.map_or(128 << 20, |kib| kib / 4 * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_their_values_with_or_without_a_sign() {
        let line = "highkey serve --max-connections 7 --datadir /d --read-only --server-id=3 --port 0 --gtid-mode ON --enforce-gtid-consistency --binlog-format ROW";
        let Ok(Command::Serve(options)) = parse(line.split(' ').map(OsString::from)) else { panic!("{line}") };
        let settings = &options.settings;
        assert_eq!((settings.u64("max_connections"), settings.u64("server_id"), settings.text("gtid_mode").as_str()), (7, 3, "ON"));
        assert!(settings.bool("read_only") && options.port == 0 && options.datadir.as_os_str() == "/d");
        for wrong in ["--max-connections --read-only", "--gtid-mode=ON", "--gtid-mode=ON --enforce-gtid-consistency=WARN"] {
            assert!(parse(format!("highkey serve --datadir /d {wrong}").split(' ').map(OsString::from)).is_err(), "{wrong}");
        }
    }
}
