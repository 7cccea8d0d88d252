//! A server to test against.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server on a free port, killed with the test.
pub struct Server {
    pub child: Child,
    pub port: u16,
}

impl Server {
    /// `options`: as on the command line.
    pub fn start(datadir: &Path, options: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_highkey"))
            .args(["serve", "--port", "0", "--innodb-buffer-pool-size=32M"])
            .args(options)
            .arg("--datadir")
            .arg(datadir)
            .env("HIGHKEY_LOG", "info")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let port = lines.by_ref().map(|line| line.expect("a log line")).find_map(|line| {
            let (_, rest) = line.split_once("ready for connections on 127.0.0.1:")?;
            rest.split_whitespace().next()?.parse().ok()
        });
        // What the server says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, port: port.expect("the server says its port") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
