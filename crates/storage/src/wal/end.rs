//! Where the log ends after a crash, and whether it may end there. See README.md, "The end of the log".

use super::Wal;
use super::read::Scanner;
use super::record::{KIND, Kind, RECORD_HEADER, plausible_len};
use crate::error::{Error, Result};
use crate::ids::Lsn;
use std::collections::BTreeSet;

/// Something outside the log from which follows that the log before `durable` had been durable.
pub(crate) struct Evidence {
    pub durable: Lsn,
    pub source: &'static str,
}

/// The log files that are erased behind the end before the first append: the one that the end is in, where what is torn now must not
/// be completed by later writes, and those in which something looks like a record.
pub(crate) struct Remains(BTreeSet<u64>);

impl Remains {
    #[cfg(all(test, not(feature = "shuttle")))]
    pub fn files(&self) -> usize {
        self.0.len()
    }
}

/// Behind the end, up to this many times the bytes that lie there are checksummed; bytes made to look like long records everywhere
/// would else take for ever.
const EFFORT: u64 = 16;

impl Wal {
    /// Refuses a log of which a file that is needed from `from` on is missing or cut off.
    pub(crate) fn check_files(&self, from: Lsn) -> Result<()> {
        self.segments.lock().check_files(from.0)
    }

    /// The valid log ends at `end`. Refused, with nothing erased, if it is known to have been durable beyond: then `end` is damage, not
    /// the torn write of a crash. Else what is before `end` is made durable (a killed process may not have got to it), and pages may be
    /// written; the log is usable after `start`.
    pub(crate) fn resume_at(&self, end: Lsn, known: &[Evidence]) -> Result<Remains> {
        if let Some(Evidence { durable, source }) = known.iter().find(|e| e.durable > end) {
            return Err(self.damaged(end, &format!("{source} says that the log was durable up to position {durable}")));
        }
        let remains = self.look_behind(end)?;
        let mut segments = self.segments.lock();
        segments.settle_last(end.0)?;
        segments.sync_all()?;
        drop(segments);
        self.set_end(end);
        Ok(remains)
    }

    /// Redo is done: erases what lies behind the end, and takes appends. The log is kept from `keep` on.
    pub(crate) fn start(&self, keep: Lsn, remains: &Remains) -> Result<()> {
        self.segments.lock().erase(self.end().0, &remains.0)?;
        self.room.start(self, keep)
    }

    /// Looks for records behind the end, at every byte. One that was appended when the log was durable beyond `end` says that the end is
    /// damage. Others are what a crash left of its unsynced tail.
    fn look_behind(&self, end: Lsn) -> Result<Remains> {
        let mut remains = BTreeSet::from([end.0 / self.segment_bytes]);
        let mut scan = self.scan(end);
        let files_end = scan.files_end;
        let mut effort = files_end.saturating_sub(end.0).saturating_mul(EFFORT);
        while let Some(record) = scan.find(&mut effort)? {
            if record.durable > end {
                let place = self.segments.lock().place(record.lsn.0);
                let why = format!("the log was durable up to position {} when the record in {place} was appended", record.durable);
                return Err(self.damaged(end, &why));
            }
            remains.extend(record.lsn.0 / self.segment_bytes..=(record.end().0 - 1) / self.segment_bytes);
        }
        if effort == 0 && scan.at.0 < files_end {
            remains.extend(scan.at.0 / self.segment_bytes..files_end / self.segment_bytes);
        }
        Ok(Remains(remains))
    }

    fn damaged(&self, end: Lsn, why: &str) -> Error {
        let segments = self.segments.lock();
        let mut header = [0; RECORD_HEADER];
        let found = match segments.read(end.0, &mut header) {
            Err(e) => e.to_string(),
            Ok(0) => "nothing".to_string(),
            Ok(_) if header == [0; RECORD_HEADER] => "zeros".to_string(),
            Ok(got) => match plausible_len(end, &header[..got]) {
                Some(len) => format!("a record of {len} bytes whose checksum is wrong"),
                None => format!("no record, but {:02x?}", &header[..got.min(16)]),
            },
        };
        Error::corrupt_file(format!("the log is damaged in {}: found {found}; {why}", segments.place(end.0)))
    }
}

impl Scanner<'_> {
    /// The next record that begins at `at` or anywhere behind, `None` when there is none or `effort`, the bytes that may be checksummed,
    /// is used up.
    fn find(&mut self, effort: &mut u64) -> Result<Option<super::Record>> {
        while self.have(RECORD_HEADER)? >= RECORD_HEADER {
            let (at, rest) = (self.at.0, self.rest());
            let places = rest.len() - RECORD_HEADER + 1;
            let mut from = 0;
            let candidate = loop {
                let Some(skipped) = find_kind(&rest[from + KIND..places + KIND]) else { break None };
                let n = from + skipped;
                match plausible_len(Lsn(at + n as u64), &rest[n..]) {
                    Some(len) if at + (n + len) as u64 <= self.files_end => break Some((n, len)),
                    _ => from = n + 1,
                }
            };
            let Some((n, len)) = candidate else {
                self.at.0 += places as u64;
                continue;
            };
            self.at.0 += n as u64;
            *effort = effort.saturating_sub(len as u64);
            if *effort == 0 {
                return Ok(None);
            }
            if let Some(record) = self.record(len)? {
                return Ok(Some(record));
            }
            self.at.0 += 1;
        }
        Ok(None)
    }
}

/// Where the first byte lies that can be a record's kind; in blocks, since most bytes are none.
fn find_kind(bytes: &[u8]) -> Option<usize> {
    let is_kind = |byte: &u8| Kind::from_u8(*byte).is_some();
    bytes.chunks(64).enumerate().find_map(|(i, block)| {
        let any = block.iter().fold(false, |any, byte| any | is_kind(byte));
        if any { block.iter().position(is_kind).map(|n| i * 64 + n) } else { None }
    })
}
