//! Following the log: whoever keeps something beside the database, written behind from the commits' events (the binary log).
//!
//! A follower sees durable commits only, in log order. What it has not released stays in the log's files: after a crash it can begin again
//! where its own files end.

use super::record::{KIND, RECORD_HEADER, plausible_len};
use super::{Kind, Record, Wal};
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Read at once.
const READ_BYTES: usize = 256 << 10;

/// What the log knows of its follower.
pub(super) struct Followed {
    /// The log before this is not needed any more; nothing is let go while it is 0, all is free for `u64::MAX`.
    released: AtomicU64,
    /// How far the follower has read; `u64::MAX` if there is none.
    read: AtomicU64,
    /// Commits, by LSN, whose events begin at an earlier record.
    parts: Mutex<BTreeMap<u64, u64>>,
    /// The leader of a group is to call `on_durable`.
    watched: AtomicBool,
    on_durable: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Followed {
    /// With `hold`, everything is kept until the first release.
    pub fn new(hold: bool) -> Followed {
        Followed {
            released: AtomicU64::new(if hold { 0 } else { u64::MAX }),
            read: AtomicU64::new(u64::MAX),
            parts: Mutex::default(),
            watched: AtomicBool::new(false),
            on_durable: OnceLock::new(),
        }
    }

    pub fn released(&self) -> u64 {
        self.released.load(Ordering::SeqCst)
    }

    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes of log before `end` that the follower has not read.
    pub fn lag(&self, end: u64) -> u64 {
        end.saturating_sub(self.read.load(Ordering::Relaxed))
    }

    pub fn notify(&self) {
        if self.watched.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    pub fn wake(&self) {
        if let Some(hook) = self.on_durable.get() {
            hook();
        }
    }
}

impl Wal {
    /// `hook` tells a follower to look.
    pub(crate) fn set_on_durable(&self, hook: Box<dyn Fn() + Send + Sync>) {
        let _ = self.followed.on_durable.set(hook);
    }

    /// With `watch`, the hook is called after every group commit; without, only when writers wait for the follower.
    pub(crate) fn watch(&self, watch: bool) {
        self.followed.watched.store(watch, Ordering::SeqCst);
    }

    /// The commit at `commit` has events in records from `first` on. Called inside its append, while checkpoints still keep them.
    pub(crate) fn note_parts(&self, commit: Lsn, first: Lsn) {
        let mut parts = self.followed.parts.lock();
        if self.followed.released() != u64::MAX {
            parts.insert(commit.0, first.0);
            self.followed.released.fetch_min(first.0, Ordering::SeqCst);
        }
    }

    /// The follower will not read the commits before `lsn` again; `None`: nobody follows any more.
    pub(crate) fn release(&self, lsn: Option<Lsn>) {
        let lsn = lsn.map_or(u64::MAX, |l| l.0);
        if lsn == u64::MAX {
            self.followed.read.store(u64::MAX, Ordering::SeqCst);
        }
        let mut parts = self.followed.parts.lock();
        parts.retain(|commit, _| *commit >= lsn);
        let oldest = parts.values().copied().min().unwrap_or(u64::MAX);
        self.followed.released.store(lsn.min(oldest), Ordering::SeqCst);
    }
}

/// Reads the durable log forward, commit by commit.
pub struct LogFollower {
    wal: Arc<Wal>,
    /// The record that is looked at next.
    at: u64,
    chunk: Vec<u8>,
    /// The LSN of `chunk`'s first byte.
    chunk_lsn: u64,
}

impl LogFollower {
    pub(crate) fn new(wal: Arc<Wal>, from: Lsn) -> LogFollower {
        wal.followed.read.store(from.0, Ordering::SeqCst);
        LogFollower { wal, at: from.0, chunk: Vec::new(), chunk_lsn: from.0 }
    }

    /// Everything before this has been looked at.
    pub fn at(&self) -> Lsn {
        Lsn(self.at)
    }

    /// Writers do not wait for this follower until it reads on.
    pub fn pause(&self) {
        self.wal.followed.read.store(u64::MAX, Ordering::SeqCst);
    }

    /// The next durable commit, or another end of a transaction or of its preparation, with events. `None`: there is no more as yet.
    pub fn next(&mut self) -> Result<Option<Record>> {
        let durable = self.wal.durable().0;
        let found = self.next_before(durable);
        self.wal.followed.read.store(self.at, Ordering::Relaxed);
        found
    }

    fn next_before(&mut self, durable: u64) -> Result<Option<Record>> {
        while self.at < durable {
            self.have(RECORD_HEADER, durable)?;
            let len = plausible_len(Lsn(self.at), self.rest()).ok_or_else(|| self.broken())?;
            let may_carry = Kind::from_u8(self.rest()[KIND]).is_some_and(Kind::may_carry_events);
            // More than a commit's timestamp.
            if may_carry && len > RECORD_HEADER + 8 {
                self.have(len, durable)?;
                let bytes = self.rest().get(..len).ok_or_else(|| self.broken())?.to_vec();
                let record = Record::parse(Lsn(self.at), bytes).ok_or_else(|| self.broken())?;
                self.at += len as u64;
                if !record.events().is_empty() {
                    return Ok(Some(record));
                }
            } else {
                self.at += len as u64;
            }
        }
        Ok(None)
    }

    /// The part of a transaction's events that was logged at `lsn`. Writers do not wait while the follower is busy with those: it has
    /// not read less for it.
    pub fn part(&self, lsn: Lsn) -> Result<Record> {
        self.pause();
        let mut bytes = vec![0; RECORD_HEADER];
        self.read_files(lsn.0, &mut bytes)?;
        let broken = || Error::corrupt_file(format!("no events in the log at {lsn}"));
        let len = plausible_len(lsn, &bytes).ok_or_else(broken)?;
        bytes.resize(len, 0);
        self.read_files(lsn.0 + RECORD_HEADER as u64, &mut bytes[RECORD_HEADER..])?;
        Record::parse(lsn, bytes).filter(|record| record.kind == Kind::Events).ok_or_else(broken)
    }

    fn broken(&self) -> Error {
        Error::corrupt_file(format!("the log cannot be read again at {}", self.wal.segments.lock().place(self.at)))
    }

    fn rest(&self) -> &[u8] {
        let from = (self.at - self.chunk_lsn) as usize;
        self.chunk.get(from..).unwrap_or(&[])
    }

    /// Reads until `len` bytes from `at` are in memory, or all before `end`. Records longer than what was read are passed by unread.
    fn have(&mut self, len: usize, end: u64) -> Result<()> {
        if self.rest().len() >= len {
            return Ok(());
        }
        let have = self.rest().len();
        let used = self.chunk.len() - have;
        self.chunk.drain(..used);
        self.chunk_lsn = self.at;
        let want = len.max(READ_BYTES).min((end - self.at) as usize);
        self.chunk.resize(want.max(have), 0);
        let mut chunk = std::mem::take(&mut self.chunk);
        let read = self.read_files(self.at + have as u64, &mut chunk[have..]);
        self.chunk = chunk;
        let done = have + read?;
        self.chunk.truncate(done);
        Ok(())
    }

    /// Reads durable bytes. They are not written again, and a file that is not released gets no other name: no mutex is held meanwhile.
    fn read_files(&self, from: u64, out: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let lsn = from + done as u64;
            let (file, at, left) = {
                let segments = self.wal.segments.lock();
                let (file, at) = segments.file_of(lsn).ok_or_else(|| Error::corrupt_file(format!("no log file for {}", segments.place(lsn))))?;
                (file, at, (segments.bytes - at) as usize)
            };
            let n = left.min(out.len() - done);
            let got = file.read_at(at, &mut out[done..done + n])?;
            done += got;
            if got < n {
                break;
            }
        }
        Ok(done)
    }
}
