//! `highkey`: the server binary.
//!
//! - `cli` reads the command line, `config` applies `my.cnf` and the system variables given as options.
//! - `listen` accepts connections over TCP and a local socket and shuts down cleanly.
//! - `connection` is one client: handshake, authentication, commands; `sink` turns results into packets.
//! - `replica` reads another server's binary log and applies it.
//! - `stats` prints what every index holds.
//! - `keys` holds the TLS certificate and the RSA key of `caching_sha2_password`.
#![deny(unsafe_code)]

mod cli;
mod connection;
mod keys;
mod listen;
mod replica;
mod stats;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the allocator keeps what was freed, in milliseconds. Queries take large pieces of memory again and again; at mimalloc's own second a tenth of the
/// processor time of TPC-H went into pages that the system had just been given back and had to clear.
const PURGE_DELAY: std::ffi::c_long = 10_000;
/// `mi_option_purge_delay`, which the bindings do not name: the one before.
const OPTION: libmimalloc_sys::mi_option_t = libmimalloc_sys::mi_option_use_numa_nodes - 1;

/// To be called before there are other threads.
#[allow(unsafe_code)]
fn keep_freed_memory() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: it is one of mimalloc's options, and no other thread sets one.
        unsafe { libmimalloc_sys::mi_option_set(OPTION, PURGE_DELAY) };
    }
}

fn main() -> ExitCode {
    keep_freed_memory();
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => error.exit(),
    };
    match command {
        cli::Command::Serve(options) => listen::serve(*options),
        cli::Command::Stats(options) => stats::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn the_option_is_the_delay() {
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            // SAFETY: it is one of mimalloc's options, and no other test sets one.
            assert_eq!(unsafe { libmimalloc_sys::mi_option_get(OPTION) }, 1000, "no other option is a second");
        }
    }
}
