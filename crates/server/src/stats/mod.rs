//! `highkey stats`: what every index holds, page by page, as `xtrabackup --stats` prints it.
//!
//! - `report` is one index and its text.
//! - `offline` opens a stopped data directory; `live` asks a running server's information_schema.

mod live;
mod offline;
mod report;

use std::io::{self, Write};
use std::process::ExitCode;

use regex::Regex;

use crate::cli::{StatsOptions, StatsSource};
use report::IndexReport;

/// Prints the statistics; what went wrong goes to stderr, with exit code 1.
pub fn run(options: &StatsOptions) -> ExitCode {
    let printed = read(options).and_then(|reports| match print(&mut io::stdout().lock(), &reports) {
        // Whoever reads the output has seen enough.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(|e| format!("cannot write: {e}")),
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("highkey stats: {message}");
            ExitCode::FAILURE
        }
    }
}

fn read(options: &StatsOptions) -> Result<Vec<IndexReport>, String> {
    let pattern = options.tables.as_deref().map(Regex::new).transpose().map_err(|e| format!("--tables: {e}"))?;
    let wanted = |schema: &str, table: &str| {
        pattern.as_ref().is_none_or(|p| p.is_match(&format!("{schema}.{table}")) || p.is_match(&format!("{schema}/{table}")))
    };
    let mut reports = match &options.source {
        StatsSource::Directory(datadir) => offline::read(datadir, &wanted)?,
        StatsSource::Server(url) => live::read(url, &wanted)?,
    };
    reports.sort_by_key(IndexReport::order);
    Ok(reports)
}

fn print(out: &mut impl Write, reports: &[IndexReport]) -> io::Result<()> {
    writeln!(out, "<INDEX STATISTICS>")?;
    for (i, report) in reports.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        write!(out, "{report}")?;
    }
    out.flush()
}
