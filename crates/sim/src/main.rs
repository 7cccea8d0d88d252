//! `highkey-sim`: the project's own test drivers, outside the server's process.
//!
//! - `golden` records the answers of a real MySQL to a script of statements, and checks that Highkey gives the same.
//! - `sessions` does the same with scripts of several sessions that wait for each other.
//! - `histories` lets sessions do random transactions and checks that they are as serialisable as their level promises.
//! - `crash` kills a server under load, again and again, and checks that nothing acknowledged was lost.
//! - `faults` gives a server bad packets, damaged files, full disks and too much, and checks that it says so and loses nothing.
//! - `queries` runs random queries in every way that the server has, and compares the answers.
//! - `replica` loads a source and compares its replica with it.
//!
//! The simulated disk and the schedules live beside the code they test, in `highkey-storage`.
#![forbid(unsafe_code)]

mod crash;
mod faults;
mod golden;
mod histories;
mod queries;
mod replica;
mod sessions;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Errors are for people.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(name = "highkey-sim", version, about = "Test drivers of Highkey")]
struct Cli {
    #[command(subcommand)]
    driver: Driver,
}

#[derive(Subcommand)]
enum Driver {
    /// Golden answers: record them from MySQL, or run them against a server
    #[command(subcommand)]
    Golden(golden::Action),
    /// Several sessions beside each other: record who waits and what they see from MySQL, or compare a server with it
    #[command(subcommand)]
    Sessions(golden::Action),
    /// Random transactions of several sessions: is what they saw what each isolation level allows?
    Histories(histories::Options),
    /// Kill -9 under load, with an oracle outside the server
    Crash(crash::Options),
    /// Malformed packets, damaged files, full disks, statements too long: clear errors, and nothing lost
    Faults(faults::Options),
    /// Random queries over random tables, run in every way that the server has, and on MySQL: all must answer the same
    Queries(queries::Options),
    /// A load for a source, and the comparison of a replica with it
    #[command(subcommand)]
    Replica(replica::Action),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let result = match cli.driver {
        Driver::Golden(action) => runtime.block_on(golden::run(action)),
        Driver::Sessions(action) => runtime.block_on(sessions::run(action)),
        Driver::Histories(options) => runtime.block_on(histories::run(options)),
        Driver::Crash(options) => runtime.block_on(crash::run(options)),
        Driver::Faults(options) => runtime.block_on(faults::run(options)),
        Driver::Queries(options) => runtime.block_on(queries::run(options)),
        Driver::Replica(action) => runtime.block_on(replica::run(action)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("highkey-sim: {e}");
            ExitCode::FAILURE
        }
    }
}
