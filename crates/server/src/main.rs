//! `highkey`: the server binary.
//!
//! - `cli` reads the command line, `config` applies `my.cnf` and the system variables given as options.
//! - `listen` accepts connections over TCP and a local socket and shuts down cleanly.
//! - `connection` is one client: handshake, authentication, commands; `sink` turns results into packets.
//! - `replica` reads another server's binary log and applies it.
//! - `stats` prints what every index holds.
//! - `keys` holds the TLS certificate and the RSA key of `caching_sha2_password`.
#![forbid(unsafe_code)]

mod cli;
mod connection;
mod keys;
mod listen;
mod replica;
mod stats;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => error.exit(),
    };
    match command {
        cli::Command::Serve(options) => listen::serve(*options),
        cli::Command::Stats(options) => stats::run(&options),
    }
}
