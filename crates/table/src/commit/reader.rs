//! Looking into the binary log's files.

use std::io::{self, Read};
use std::sync::Arc;

use highkey_binlog::FileReader;
use highkey_binlog::{EventType, GtidSet};
use highkey_storage::{Disk, DiskFile, Error, Result};

use super::Binlog;
use super::files::name_of;

/// The bytes of a file of the binary log, from some place to where it has been written: at its end it answers nothing, and goes on when the
/// file has grown.
pub struct BinlogBytes {
    binlog: Arc<Binlog>,
    file: Arc<dyn DiskFile>,
    number: u64,
    at: u64,
    generation: u64,
}

impl BinlogBytes {
    pub(crate) fn open(binlog: Arc<Binlog>, number: u64, at: u64) -> Result<BinlogBytes> {
        let generation = binlog.generation();
        let file = binlog.engine.disk().open(&name_of(number), false)?;
        Ok(BinlogBytes { binlog, file, number, at, generation })
    }
}

impl Read for BinlogBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // A file that was purged is read to where it was.
        let end = match self.binlog.size_of(self.number) {
            Some(size) if self.binlog.generation() == self.generation => size,
            _ => self.file.len().map_err(io::Error::other)?,
        };
        let len = out.len().min(end.saturating_sub(self.at) as usize);
        let got = self.file.read_at(self.at, &mut out[..len]).map_err(io::Error::other)?;
        self.at += got as u64;
        Ok(got)
    }
}

/// A whole file, whatever is known of it.
struct WholeFile {
    file: Arc<dyn DiskFile>,
    at: u64,
}

impl Read for WholeFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(self.at, out).map_err(io::Error::other)?;
        self.at += got as u64;
        Ok(got)
    }
}

/// What a file begins with.
pub(crate) struct Head {
    pub checksum: bool,
    /// When it was begun, in seconds since 1970.
    pub begun_at: u64,
    /// The GTIDs of all transactions before it.
    pub previous: GtidSet,
}

pub(crate) fn head(disk: &dyn Disk, number: u64) -> Result<Head> {
    let broken = |what: &dyn std::fmt::Display| Error::corrupt_file(format!("{}: {what}", name_of(number)));
    let mut reader = FileReader::new(WholeFile { file: disk.open(&name_of(number), false)?, at: 0 });
    let mut begun_at = 0;
    while let Some(event) = reader.next_event().map_err(|e| broken(&e))? {
        match event.header.event_type {
            EventType::FORMAT_DESCRIPTION => begun_at = u64::from(event.header.timestamp),
            EventType::PREVIOUS_GTIDS => {
                let previous = GtidSet::decode(event.body()).map_err(|e| broken(&e))?;
                return Ok(Head { checksum: reader.checksum() == Some(true), begun_at, previous });
            }
            _ => break,
        }
    }
    Err(broken(&"it does not begin with the events that it should"))
}
