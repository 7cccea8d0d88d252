//! Reading records back: one by its LSN (rollback), or all from a checkpoint on (recovery).

use super::record::{RECORD_HEADER, claimed_len};
use super::{Record, Wal};
use crate::error::{Error, Result};
use crate::ids::Lsn;

impl Wal {
    /// The record that begins at `lsn`, from memory or file.
    pub fn read(&self, lsn: Lsn) -> Result<Record> {
        let broken = || Error::corrupt_file(format!("no log record at {lsn}"));
        let writing = {
            let tail = self.tail.lock();
            if lsn.0 >= tail.base {
                let bytes = tail.buf.get((lsn.0 - tail.base) as usize..).ok_or_else(broken)?;
                return from_memory(lsn, bytes).ok_or_else(broken);
            }
            tail.writing.clone()
        };
        if let Some((base, data)) = writing
            && lsn.0 >= base
            && lsn.0 < base + data.len() as u64
        {
            return from_memory(lsn, &data[(lsn.0 - base) as usize..]).ok_or_else(broken);
        }
        self.read_file(lsn)?.ok_or_else(broken)
    }

    fn read_file(&self, lsn: Lsn) -> Result<Option<Record>> {
        let segments = self.segments.lock();
        let mut bytes = vec![0; 512];
        let got = segments.read(lsn.0, &mut bytes)?;
        bytes.truncate(got);
        let Some(len) = claimed_len(&bytes) else { return Ok(None) };
        if len > got {
            bytes.resize(len, 0);
            if segments.read(lsn.0 + got as u64, &mut bytes[got..])? < len - got {
                return Ok(None);
            }
        }
        bytes.truncate(len);
        Ok(Record::parse(lsn, bytes))
    }

    /// Reads forward from `start` to the first place that holds no valid record.
    pub(crate) fn scan(&self, start: Lsn) -> Scanner<'_> {
        let files_end = self.segments.lock().prepared_end(start.0);
        Scanner { wal: self, at: start, files_end, chunk: Vec::new(), chunk_lsn: start.0 }
    }

    /// Bytes of log files on disk.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub fn file_bytes(&self) -> u64 {
        self.segments.lock().total_bytes()
    }
}

fn from_memory(lsn: Lsn, bytes: &[u8]) -> Option<Record> {
    let len = claimed_len(bytes)?;
    Record::parse(lsn, bytes.get(..len)?.to_vec())
}

/// Reads the log in large pieces. `at` ends up where the valid log ends.
pub(crate) struct Scanner<'w> {
    wal: &'w Wal,
    pub at: Lsn,
    /// No record goes beyond.
    pub(super) files_end: u64,
    chunk: Vec<u8>,
    chunk_lsn: u64,
}

const CHUNK: usize = 4 << 20;

impl Scanner<'_> {
    /// The next record, `None` at the end of the valid log.
    pub fn next(&mut self) -> Result<Option<Record>> {
        if self.have(RECORD_HEADER)? < RECORD_HEADER {
            return Ok(None);
        }
        match claimed_len(self.rest()) {
            Some(len) if self.at.0 + len as u64 <= self.files_end => self.record(len),
            _ => Ok(None),
        }
    }

    /// The record of `len` bytes at `at`, if there is one; `at` is then behind it.
    pub(super) fn record(&mut self, len: usize) -> Result<Option<Record>> {
        if self.have(len)? < len {
            return Ok(None);
        }
        let Some(record) = Record::parse(self.at, self.rest()[..len].to_vec()) else { return Ok(None) };
        self.at = record.end();
        Ok(Some(record))
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.chunk[(self.at.0 - self.chunk_lsn) as usize..]
    }

    /// Makes sure that `len` bytes from `at` are in memory, if the files have them; returns how many are.
    pub(super) fn have(&mut self, len: usize) -> Result<usize> {
        let have = self.rest().len();
        if have >= len {
            return Ok(have);
        }
        let used = (self.at.0 - self.chunk_lsn) as usize;
        self.chunk.drain(..used);
        self.chunk_lsn = self.at.0;
        let old = self.chunk.len();
        self.chunk.resize(old + CHUNK.max(len - old), 0);
        let got = self.wal.segments.lock().read(self.at.0 + old as u64, &mut self.chunk[old..])?;
        self.chunk.truncate(old + got);
        Ok(self.chunk.len())
    }
}
