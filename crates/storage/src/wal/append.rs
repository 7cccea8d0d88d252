//! Appending: a record is copied to the tail under one short mutex, which gives its LSN.

use super::Wal;
pub(crate) use super::record::Draft;
use super::record::Kind;
use super::group::Need;
use crate::error::Result;
use crate::ids::Lsn;
use crate::sync::{Arc, Ordering};

/// The end of the log that no leader has taken yet.
#[derive(Default)]
pub(super) struct Tail {
    pub buf: Vec<u8>,
    /// The LSN of `buf`'s first byte.
    pub base: u64,
    /// What a leader is writing just now, and its LSN: still readable here.
    pub writing: Option<(u64, Arc<Vec<u8>>)>,
    /// A buffer to use again.
    pub spare: Vec<u8>,
    /// Commits in `buf`.
    pub commits: u64,
    /// One of them has binary log events.
    pub has_events: bool,
}

impl Wal {
    /// Appends a record and returns its LSN. `timestamp` runs inside the append (for commits: timestamp order = log
    /// order). Waits only for the buffer to be written, which needs no latch.
    pub(crate) fn append(&self, draft: &Draft<'_>, timestamp: impl FnOnce(Lsn) -> u64) -> Result<(Lsn, u64)> {
        let checksum = draft.checksum();
        let len = draft.len();
        let mut tail = self.tail.lock();
        while !tail.buf.is_empty() && tail.buf.len() + len > self.buffer_max() {
            let last = Lsn(tail.base + tail.buf.len() as u64 - 1);
            drop(tail);
            self.counters.log_buffer_waits.add(1);
            self.wait_blocking(last, Need::Written)?;
            tail = self.tail.lock();
        }
        self.fatal.check()?;
        let lsn = Lsn(tail.base + tail.buf.len() as u64);
        let ts = timestamp(lsn);
        draft.write(lsn, checksum, ts, self.durable(), &mut tail.buf);
        tail.commits += u64::from(draft.kind.is_waited_for());
        tail.has_events |= draft.kind == Kind::Commit && !draft.extra.is_empty();
        self.end.store(lsn.0 + len as u64, Ordering::SeqCst);
        drop(tail);
        self.counters.log_records.add(1);
        self.counters.log_bytes.add(len as u64);
        Ok((lsn, ts))
    }
}
