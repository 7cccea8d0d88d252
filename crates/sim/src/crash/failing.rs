//! A system call of the running server that fails, as those of a failing disk do: strace puts the error in the place of what the call does.
//!
//! A server whose log, pages or binary log could not be made durable has to stop by itself, and to say why. What is found after the restart is judged as after
//! a kill: nothing acknowledged may be missing. Of a write that fails elsewhere a statement is told, and the server goes on.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::StdRng;

use super::{Options, Server};
use crate::Result;

/// The failing call is one of the first so many of its thread.
const CALLS_MAX: u32 = 20;
/// Under load there are as many much sooner.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than a server needs to stop.
const GOES_ON: Duration = Duration::from_secs(10);
const SIGABRT: i32 = 6;

/// What became of the calls.
#[derive(Default)]
pub(super) struct Failures {
    /// The server stopped.
    stops: u32,
    /// It went on, as it may.
    survived: u32,
    /// No thread made so many calls.
    unmet: u32,
}

impl Failures {
    pub fn describe(&self) -> String {
        format!("failed calls stopped the server {} times, not {} times, and were not made {} times", self.stops, self.survived, self.unmet)
    }

    /// Lets a call fail that is chosen from `options.fail`, and waits for the server to end if it has to.
    pub async fn fail_one(&mut self, options: &Options, server: &mut Server, rng: &mut StdRng) -> Result<()> {
        let chosen = &options.fail[rng.random_range(0..options.fail.len())];
        let (call, error) = chosen.split_once(':').ok_or_else(|| format!("{chosen} is not CALL:ERROR"))?;
        let log = options.datadir.with_extension("log");
        let said_before = std::fs::metadata(&log)?.len() as usize;
        let trace = options.datadir.with_extension("trace");
        let mut tracer = Tracer::attach(server, &trace, call, error, rng.random_range(1..=CALLS_MAX))?;
        let began = Instant::now();
        let mut failed = None;
        loop {
            if let Some(status) = server.0.try_wait()? {
                let said = std::fs::read(&log)?;
                let said = String::from_utf8_lossy(said.get(said_before..).unwrap_or_default()).into_owned();
                let path = failed_call(&trace, call)?.map(|failed| failed.path);
                stopped_well(status, &said).map_err(|e| format!("{chosen} of {path:?}: {e}"))?;
                self.stops += 1;
                return Ok(());
            }
            if failed.is_none() {
                failed = failed_call(&trace, call)?.map(|failed| (failed, Instant::now()));
            }
            match &failed {
                None if began.elapsed() > PATIENCE => {
                    self.unmet += 1;
                    return Ok(());
                }
                Some((failed, at)) if at.elapsed() > GOES_ON => {
                    if call == "fdatasync" && !failed.is_new {
                        return Err(format!("{chosen} of {}, and the server goes on", failed.path).into());
                    }
                    self.survived += 1;
                    return Ok(());
                }
                _ => {}
            }
            // It ends with the server, which is asked first.
            if let Some(status) = tracer.0.try_wait()?
                && server.0.try_wait()?.is_none()
            {
                return Err(format!("strace ended, {status}: may it attach to other processes here?").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn stopped_well(status: ExitStatus, said: &str) -> Result<()> {
    if status.signal() != Some(SIGABRT) {
        return Err(format!("the server ended in {status}").into());
    }
    if !said.contains("fatal: ") || !said.contains("recovery will run at the next start") {
        return Err(format!("the server stopped and said: {said}").into());
    }
    Ok(())
}

/// strace, which ends with who started it.
struct Tracer(Child);

impl Tracer {
    /// `nth`: the call of each thread that fails.
    fn attach(server: &Server, trace: &Path, call: &str, error: &str, nth: u32) -> Result<Tracer> {
        std::fs::write(trace, "")?;
        let child = Command::new("strace")
            .args(["-f", "-qq", "-y", "-s", "0", "-e", &format!("trace={call},fallocate")])
            .args(["-e", &format!("inject={call}:error={error}:when={nth}"), "-p", &server.0.id().to_string(), "-o"])
            .arg(trace)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|e| format!("strace: {e}"))?;
        Ok(Tracer(child))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The call that was made to fail.
#[derive(Debug, PartialEq, Eq)]
struct Failed {
    path: String,
    /// Of a file of the log in the making: it was no part of the log yet, and goes.
    is_new: bool,
}

/// What strace tells of the call that failed, if one has.
fn failed_call(trace: &Path, call: &str) -> Result<Option<Failed>> {
    let text = std::fs::read(trace)?;
    Ok(find_failed(&String::from_utf8_lossy(&text), call))
}

fn find_failed(trace: &str, call: &str) -> Option<Failed> {
    // By thread: its last call but one and its last, each with its file.
    let mut calls: HashMap<&str, [(&str, &str); 2]> = HashMap::new();
    for line in trace.lines() {
        let Some((thread, what)) = line.split_once(' ') else { continue };
        let last = calls.entry(thread).or_default();
        // What goes on that was told of before begins with "<... ".
        if let Some((name, arguments)) = what.trim_start().split_once('(')
            && !name.starts_with('<')
        {
            let path = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(path, _)| path);
            *last = [last[1], (name, path)];
        }
        if line.contains("(INJECTED)") {
            let [before, (name, path)] = *last;
            let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_new = name == call && file.starts_with("wal.") && before == ("fallocate", path);
            return Some(Failed { path: path.to_owned(), is_new });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_call_is_found_among_those_of_other_threads() {
        let begin = "11 fdatasync(5</d/wal.00000001>) = 0\n12 fallocate(9</d/wal.00000003>, 0, 0, 1048576) = 0\n12 fdatasync(9</d/wal.00000003> <unfinished ...>\n";
        assert_eq!(find_failed(begin, "fdatasync"), None);
        let log = format!("{begin}11 fdatasync(5</d/wal.00000001>) = -1 EIO (Input/output error) (INJECTED)\n");
        assert_eq!(find_failed(&log, "fdatasync"), Some(Failed { path: "/d/wal.00000001".into(), is_new: false }));
        let new = format!("{begin}11 fdatasync(5</d/wal.00000001>) = 0\n12 <... fdatasync resumed>) = -1 EIO (Input/output error) (INJECTED)\n");
        assert_eq!(find_failed(&new, "fdatasync"), Some(Failed { path: "/d/wal.00000003".into(), is_new: true }));
    }
}
