//! What cannot be started says why and ends with a failure's exit code.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use mysql_async::prelude::Queryable;

use super::server::{Bystander, Server};
use super::{Bench, Report, Verdict};
use crate::Result;

/// The user nobody.
const NOBODY: u32 = 65534;

pub async fn run(bench: &Bench, report: &mut Report) {
    report.case("start: the data directory is a file", is_a_file(bench)).await;
    report.case("start: the data directory cannot be made", cannot_be_made(bench)).await;
    report.case("start: the data directory cannot be written", cannot_be_written(bench)).await;
    report.case("start: a read-only mount", read_only_mount(bench)).await;
    report.case("start: the port is in use", port_in_use(bench)).await;
    report.case("start: a socket path too long", socket_too_long(bench)).await;
    report.case("start: a second server on the directory", second_server(bench)).await;
}

/// It ends with a failure, and one of its lines has all `words`.
async fn must_refuse(mut server: Server, words: &[&str]) -> Result<String> {
    let Some(status) = server.ready().await? else { return Err("it started".into()) };
    server.no_panic()?;
    let said = server.said();
    match said.lines().find(|line| words.iter().all(|word| line.contains(word))) {
        Some(line) if status.code().is_some_and(|code| code != 0) => {
            Ok(format!("{status}: {}", line.split_once(": ").map_or(line, |(_, text)| text)))
        }
        _ => Err(format!("ended in {status} and said: {said}").into()),
    }
}

async fn is_a_file(bench: &Bench) -> Result<Verdict> {
    let path = bench.workdir.join("a_file");
    fs::write(&path, "not a directory")?;
    Ok(Verdict::Passed(must_refuse(Server::spawn(bench, &path, &[])?, &["ERROR", "a_file"]).await?))
}

async fn cannot_be_made(bench: &Bench) -> Result<Verdict> {
    Ok(Verdict::Passed(must_refuse(Server::spawn(bench, Path::new("/proc/highkey"), &[])?, &["ERROR", "/proc/highkey"]).await?))
}

async fn cannot_be_written(bench: &Bench) -> Result<Verdict> {
    let path = bench.workdir.join("unwritable");
    fs::create_dir_all(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o555))?;
    // Permissions do not bind root, so another user is needed, who can reach both the directory and the binary.
    if chown(&path, Some(0), Some(0)).is_err() {
        return Ok(Verdict::Skipped("needs root, to become another user".into()));
    }
    let reachable = Command::new("setpriv").args([&format!("--reuid={NOBODY}"), "--clear-groups", "test", "-x"]).arg(&bench.binary).status();
    if !reachable.is_ok_and(|status| status.success()) {
        return Ok(Verdict::Skipped("the user nobody cannot execute the binary where it is".into()));
    }
    let server = Server::spawn_as(bench, &path, &[], Some(NOBODY))?;
    Ok(Verdict::Passed(must_refuse(server, &["ERROR", "unwritable", "ermission denied"]).await?))
}

async fn read_only_mount(bench: &Bench) -> Result<Verdict> {
    let path = bench.workdir.join("read_only");
    fs::create_dir_all(&path)?;
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "ro,size=1m", "tmpfs"]).arg(&path).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        return Ok(Verdict::Skipped("a tmpfs cannot be mounted here (it needs root)".into()));
    }
    let told = must_refuse(Server::spawn(bench, &path, &[])?, &["ERROR", "read_only", "Read-only file system"]).await;
    Command::new("umount").arg(&path).output()?;
    Ok(Verdict::Passed(told?))
}

async fn port_in_use(bench: &Bench) -> Result<Verdict> {
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port();
    let datadir = bench.workdir.join("port");
    let server = Server::spawn(bench, &datadir, &[&format!("--port={port}")])?;
    let told = must_refuse(server, &["ERROR", &port.to_string(), "in use"]).await?;
    // The directory is none the worse for it.
    let server = Server::start(bench, &datadir, &[]).await?;
    server.terminate().await?;
    Ok(Verdict::Passed(told))
}

async fn socket_too_long(bench: &Bench) -> Result<Verdict> {
    let socket = format!("--socket={}/{}.sock", bench.workdir.display(), "s".repeat(150));
    let server = Server::spawn(bench, &bench.workdir.join("socket"), &[&socket])?;
    Ok(Verdict::Passed(must_refuse(server, &["ERROR", "ssss.sock"]).await?))
}

async fn second_server(bench: &Bench) -> Result<Verdict> {
    let datadir = bench.workdir.join("twice");
    let first = Server::start(bench, &datadir, &[]).await?;
    let bystander = Bystander::writing(&first).await?;
    // A link, so that its log is a file of its own.
    let link = bench.workdir.join("twice_again");
    std::os::unix::fs::symlink(&datadir, &link)?;
    let told = must_refuse(Server::spawn(bench, &link, &[])?, &["ERROR", "in use"]).await?;
    let acknowledged = bystander.finish().await?;
    let mut c = first.connect().await?;
    Bystander::check(&mut c, acknowledged).await?;
    c.query_drop("DROP DATABASE bystander").await?;
    drop(c);
    first.terminate().await?;
    Ok(Verdict::Passed(told))
}
