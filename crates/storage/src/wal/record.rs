//! What a log record is.
//!
//! ```text
//! 0 len u32 (all of it) · 4 crc32c u32 · 8 kind u8 · 9 txn u64 · 17 prev_lsn u64 · 25 undo len u32 · 29 parts len u32
//! 33 durable u32 (how far before this record the log was known durable when it was appended; all ones: further than that)
//! 37 undo · parts {page_id u64, op u8, payload len u16, payload}* · extra (to the end)
//! ```
//! A commit record's extra begins with its timestamp, that of a prepare record with `first u64 · info len u32 · info`. The stored checksum is that of the bytes from 8 on (a commit's
//! timestamp and `durable` taken last) and of `len`, XORed with a hash of the record's LSN, so that what an earlier life of
//! the segment left at the same place never looks like a record.

use crate::error::{Error, Result};
use crate::ids::{Lsn, PageId, TxnId};
use crc32c::crc32c_append;

/// Bytes before the undo bytes.
pub(crate) const RECORD_HEADER: usize = 37;
/// Where the kind lies.
pub(crate) const KIND: usize = 8;
/// Where the header's last field lies.
const DURABLE: usize = 33;
/// Longer records are refused when read: garbage, not a length.
pub(crate) const MAX_RECORD: usize = 1 << 30;

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Pages changed outside any transaction (a split, a purge).
    System = 1,
    /// Pages changed by a transaction; `undo` says how to take it back.
    Data = 2,
    /// Pages changed by taking back a `Data` record; `extra` is undo_next u64.
    Clr = 3,
    /// A transaction committed; `extra` is the commit timestamp u64, then its binlog events.
    Commit = 4,
    /// A transaction has been taken back completely.
    Abort = 5,
    /// A part of a transaction's binlog events that came before its commit; `extra` is the part. Redo and undo pass it by.
    Events = 6,
    /// A transaction is prepared: a crash neither undoes nor ends it. `extra` is where its chain begins if that is not its first record (else
    /// 0), what its owner wants to know of it, then its binlog events.
    Prepare = 7,
    /// A prepared transaction is to be taken back; `extra` is its binlog events.
    RollBack = 8,
    /// Undo bytes of a prepared transaction's earlier records, copied. It counts once a `Prepare` leads to it.
    Undo = 9,
}

impl Kind {
    pub(crate) fn from_u8(n: u8) -> Option<Kind> {
        Some(match n {
            1 => Kind::System,
            2 => Kind::Data,
            3 => Kind::Clr,
            4 => Kind::Commit,
            5 => Kind::Abort,
            6 => Kind::Events,
            7 => Kind::Prepare,
            8 => Kind::RollBack,
            9 => Kind::Undo,
            _ => return None,
        })
    }

    /// Its records may carry a transaction's binlog events.
    pub(super) fn may_carry_events(self) -> bool {
        self.is_waited_for()
    }

    /// Somebody is told once its record is durable.
    pub(super) fn is_waited_for(self) -> bool {
        matches!(self, Kind::Commit | Kind::Prepare | Kind::RollBack)
    }
}

/// What a prepare record's extra has before the binlog events. `first`: see [`Kind::Prepare`].
pub(crate) fn prepare_extra(first: Lsn, info: &[u8], events: &[u8]) -> Vec<u8> {
    [&first.0.to_le_bytes()[..], &(info.len() as u32).to_le_bytes(), info, events].concat()
}

/// Before a prepare record's info.
const PREPARE_HEADER: usize = 12;

/// A record about to be appended, in pieces.
pub(crate) struct Draft<'a> {
    pub kind: Kind,
    pub txn: TxnId,
    pub prev_lsn: Lsn,
    pub undo: &'a [u8],
    pub parts: &'a [u8],
    pub extra: &'a [u8],
}

impl Draft<'_> {
    pub fn len(&self) -> usize {
        let ts = if self.kind == Kind::Commit { 8 } else { 0 };
        RECORD_HEADER + self.undo.len() + self.parts.len() + ts + self.extra.len()
    }

    fn header(&self) -> [u8; RECORD_HEADER] {
        let mut h = [0; RECORD_HEADER];
        h[..4].copy_from_slice(&(self.len() as u32).to_le_bytes());
        h[KIND] = self.kind as u8;
        h[9..17].copy_from_slice(&self.txn.0.to_le_bytes());
        h[17..25].copy_from_slice(&self.prev_lsn.0.to_le_bytes());
        h[25..29].copy_from_slice(&(self.undo.len() as u32).to_le_bytes());
        h[29..33].copy_from_slice(&(self.parts.len() as u32).to_le_bytes());
        h
    }

    /// The part of the checksum that needs neither LSN nor timestamp; the costly one, done outside the append mutex.
    pub fn checksum(&self) -> u32 {
        let mut crc = crc32c::crc32c(&self.header()[8..DURABLE]);
        for piece in [self.undo, self.parts, self.extra] {
            crc = crc32c_append(crc, piece);
        }
        crc
    }

    /// Puts the record at the end of `out`. `ts` is a commit's timestamp; the log before `durable` is known durable.
    pub fn write(&self, lsn: Lsn, checksum: u32, ts: u64, durable: Lsn, out: &mut Vec<u8>) {
        let mut header = self.header();
        let behind = u32::try_from(lsn.0 - durable.0).unwrap_or(u32::MAX);
        header[DURABLE..].copy_from_slice(&behind.to_le_bytes());
        let ts_bytes = ts.to_le_bytes();
        let ts_bytes = if self.kind == Kind::Commit { &ts_bytes[..] } else { &[] };
        let crc = finish_checksum(checksum, ts_bytes, &header, lsn);
        header[4..8].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&header);
        for piece in [self.undo, self.parts, ts_bytes, self.extra] {
            out.extend_from_slice(piece);
        }
    }
}

fn finish_checksum(crc: u32, ts: &[u8], header: &[u8], lsn: Lsn) -> u32 {
    let crc = crc32c_append(crc, ts);
    let crc = crc32c_append(crc32c_append(crc, &header[..4]), &header[DURABLE..RECORD_HEADER]);
    let mixed = lsn.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    crc ^ (mixed >> 32) as u32
}

/// Adds one page operation to a record's parts.
pub(crate) fn push_part(parts: &mut Vec<u8>, page: PageId, op: u8, payload: &[u8]) {
    let start = begin_part(parts, page, op);
    parts.extend_from_slice(payload);
    end_part(parts, start);
}

/// Begins a page operation whose payload the caller appends to `parts`. Returns where the payload starts, for `end_part`.
pub(crate) fn begin_part(parts: &mut Vec<u8>, page: PageId, op: u8) -> usize {
    parts.extend_from_slice(&page.0.to_le_bytes());
    parts.push(op);
    parts.extend_from_slice(&[0; 2]);
    parts.len()
}

/// Ends the operation that was begun last; `start` is where its payload starts.
pub(crate) fn end_part(parts: &mut [u8], start: usize) {
    let len = u16::try_from(parts.len() - start).expect("a page operation's payload fits u16");
    parts[start - 2..start].copy_from_slice(&len.to_le_bytes());
}

/// Gives the first operation of `parts` its page.
pub(crate) fn set_part_page(parts: &mut [u8], page: PageId) {
    parts[..8].copy_from_slice(&page.0.to_le_bytes());
}

/// A record read back.
#[derive(Clone, Debug)]
pub struct Record {
    pub lsn: Lsn,
    pub kind: Kind,
    pub txn: TxnId,
    pub prev_lsn: Lsn,
    /// The log before this was durable when the record was appended.
    pub durable: Lsn,
    undo_end: usize,
    parts_end: usize,
    bytes: Vec<u8>,
}

/// The length a record claims, `None` if it cannot be one.
pub(crate) fn claimed_len(prefix: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(prefix.get(..4)?.try_into().ok()?) as usize;
    (RECORD_HEADER..=MAX_RECORD).contains(&len).then_some(len)
}

/// Cheaply, from its header alone: the length of the record that may begin at `lsn`, `None` if no record can.
pub(crate) fn plausible_len(lsn: Lsn, header: &[u8]) -> Option<usize> {
    let kind = Kind::from_u8(*header.get(KIND)?)?;
    let len = claimed_len(header)?;
    let header = header.get(..RECORD_HEADER)?;
    let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes")) as usize;
    let prev_lsn = u64::from_le_bytes(header[17..25].try_into().expect("8 bytes"));
    let body = RECORD_HEADER.checked_add(u32_at(25))?.checked_add(u32_at(29))?;
    let fits = match kind {
        Kind::System | Kind::Data | Kind::Abort | Kind::Undo => body == len,
        Kind::Clr => body.checked_add(8)? == len,
        // The timestamp, then as many events as there are.
        Kind::Commit => body.checked_add(8)? <= len,
        Kind::Events | Kind::RollBack => body == RECORD_HEADER,
        Kind::Prepare => body == RECORD_HEADER && len >= RECORD_HEADER + PREPARE_HEADER,
    };
    (fits && prev_lsn < lsn.0).then_some(len)
}

impl Record {
    /// Takes the bytes of one record; `None` if they are not what was written at `lsn`.
    pub(crate) fn parse(lsn: Lsn, bytes: Vec<u8>) -> Option<Record> {
        if plausible_len(lsn, &bytes)? != bytes.len() {
            return None;
        }
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let kind = Kind::from_u8(bytes[KIND])?;
        let undo_end = RECORD_HEADER + u32_at(25) as usize;
        let parts_end = undo_end + u32_at(29) as usize;
        let ts_len = if kind == Kind::Commit { 8 } else { 0 };
        let crc = crc32c::crc32c(&bytes[8..DURABLE]);
        let crc = crc32c_append(crc, &bytes[RECORD_HEADER..parts_end]);
        let crc = crc32c_append(crc, &bytes[parts_end + ts_len..]);
        if finish_checksum(crc, &bytes[parts_end..parts_end + ts_len], &bytes[..RECORD_HEADER], lsn) != u32_at(4) {
            return None;
        }
        let durable = match u32_at(DURABLE) {
            u32::MAX => Lsn::NONE,
            behind => Lsn(lsn.0.checked_sub(u64::from(behind))?),
        };
        if kind == Kind::Prepare && bytes.len() - parts_end - PREPARE_HEADER < u32_at(parts_end + 8) as usize {
            return None;
        }
        let (txn, prev_lsn) = (TxnId(u64_at(9)), Lsn(u64_at(17)));
        Some(Record { lsn, kind, txn, prev_lsn, durable, undo_end, parts_end, bytes })
    }

    /// Where the next record begins.
    pub fn end(&self) -> Lsn {
        Lsn(self.lsn.0 + self.bytes.len() as u64)
    }

    /// How to take it back, as `txn` wrote it; empty where there is nothing to undo.
    pub fn undo(&self) -> &[u8] {
        &self.bytes[RECORD_HEADER..self.undo_end]
    }

    /// What follows the parts (a `Commit`'s timestamp taken off).
    fn extra(&self) -> &[u8] {
        &self.bytes[self.parts_end + if self.kind == Kind::Commit { 8 } else { 0 }..]
    }

    fn extra_u64(&self) -> u64 {
        self.bytes.get(self.parts_end..self.parts_end + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("8 bytes")))
    }

    /// A `Clr`'s next record to take back.
    pub fn undo_next(&self) -> Lsn {
        debug_assert_eq!(self.kind, Kind::Clr);
        Lsn(self.extra_u64())
    }

    /// A `Commit`'s timestamp.
    pub fn commit_ts(&self) -> u64 {
        debug_assert_eq!(self.kind, Kind::Commit);
        self.extra_u64()
    }

    /// A `Prepare`'s: the chain's first record if that is not the transaction's first one, and what its owner wants to know of it.
    pub(crate) fn prepared(&self) -> (Lsn, &[u8]) {
        debug_assert_eq!(self.kind, Kind::Prepare);
        (Lsn(self.extra_u64()), &self.bytes[self.parts_end + PREPARE_HEADER..self.prepare_end()])
    }

    fn prepare_end(&self) -> usize {
        let len = &self.bytes[self.parts_end + 8..self.parts_end + PREPARE_HEADER];
        self.parts_end + PREPARE_HEADER + u32::from_le_bytes(len.try_into().expect("4 bytes")) as usize
    }

    /// The binlog events that it carries.
    pub fn events(&self) -> &[u8] {
        match self.kind {
            Kind::Commit | Kind::RollBack | Kind::Events => self.extra(),
            Kind::Prepare => &self.bytes[self.prepare_end()..],
            _ => &[],
        }
    }

    /// The page operations: page, operation, payload.
    pub fn parts(&self) -> Parts<'_> {
        Parts { lsn: self.lsn, rest: &self.bytes[self.undo_end..self.parts_end] }
    }
}

/// Iterator over a record's page operations.
pub struct Parts<'a> {
    lsn: Lsn,
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Page operations as they are to be logged.
    pub(crate) fn new(bytes: &'a [u8]) -> Parts<'a> {
        Parts { lsn: Lsn::NONE, rest: bytes }
    }

    fn take(&mut self) -> Option<(PageId, u8, &'a [u8])> {
        let page = PageId(u64::from_le_bytes(self.rest.get(..8)?.try_into().ok()?));
        let op = *self.rest.get(8)?;
        let len = u16::from_le_bytes(self.rest.get(9..11)?.try_into().ok()?) as usize;
        let payload = self.rest.get(11..11 + len)?;
        self.rest = &self.rest[11 + len..];
        Some((page, op, payload))
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<(PageId, u8, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.take() {
            Some(part) => Some(Ok(part)),
            None => {
                self.rest = &[];
                Some(Err(Error::corrupt_file(format!("log record at {} has a broken part", self.lsn))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft<'a>(kind: Kind, undo: &'a [u8], parts: &'a [u8], extra: &'a [u8]) -> Draft<'a> {
        Draft { kind, txn: TxnId(7), prev_lsn: Lsn(99), undo, parts, extra }
    }

    #[test]
    fn what_is_written_is_read_at_its_lsn_only() {
        let mut parts = Vec::new();
        push_part(&mut parts, PageId(5), 0x41, b"payload");
        push_part(&mut parts, PageId(6), 0x42, b"");
        let cases = [
            (Kind::Data, &b""[..], &b"undo"[..], &parts[..]),
            (Kind::Commit, b"events", b"undo", &parts),
            (Kind::Clr, &[1, 0, 0, 0, 0, 0, 0, 0], b"undo", &parts),
            (Kind::Events, b"events", b"", b""),
            (Kind::RollBack, b"events", b"", b""),
            (Kind::Undo, b"", b"undo", b""),
            (Kind::Prepare, b"\x05\0\0\0\0\0\0\0\x04\0\0\0infoevents", b"", b""),
        ];
        for (kind, extra, undo, parts) in cases {
            let d = draft(kind, undo, parts, extra);
            let mut out = Vec::new();
            d.write(Lsn(1000), d.checksum(), 55, Lsn(900), &mut out);
            assert_eq!(out.len(), d.len());
            let r = Record::parse(Lsn(1000), out.clone()).unwrap();
            assert_eq!((r.undo(), r.txn, r.prev_lsn, r.kind), (undo, TxnId(7), Lsn(99), kind));
            assert_eq!(r.durable, Lsn(900));
            let read: Vec<_> = r.parts().map(|p| p.unwrap()).collect();
            let written = [(PageId(5), 0x41, &b"payload"[..]), (PageId(6), 0x42, &b""[..])];
            assert_eq!(read, if parts.is_empty() { &[] } else { &written[..] });
            match kind {
                Kind::Commit => assert_eq!((r.commit_ts(), r.events()), (55, &b"events"[..])),
                Kind::Clr => assert_eq!(r.undo_next(), Lsn(1)),
                Kind::Events | Kind::RollBack => assert_eq!(r.events(), b"events"),
                Kind::Prepare => assert_eq!((r.prepared(), r.events()), ((Lsn(5), &b"info"[..]), &b"events"[..])),
                _ => {}
            }
            assert!(Record::parse(Lsn(1001), out.clone()).is_none());
            for i in 0..out.len() {
                let mut bad = out.clone();
                bad[i] ^= 0x10;
                assert!(Record::parse(Lsn(1000), bad).is_none(), "a flip in byte {i} is noticed");
            }
        }
    }
}
