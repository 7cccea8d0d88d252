//! What every event has: the 19-byte header, its frame while it is built, and the seal that puts it into a file.
//!
//! ```text
//! 0  timestamp u32   4  type u8   5  server_id u32   9  event_size u32   13  log_pos u32   17  flags u16   19  body
//! ```

use std::fmt;

/// Names of schemas and tables have no more bytes: their length is a byte.
pub const NAME_BYTES_MAX: usize = u8::MAX as usize;

/// Who wrote an event and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Seconds since 1970-01-01 UTC: the statement's start.
    pub timestamp: u32,
    /// `server_id` of the server where the change was made first.
    pub server_id: u32,
}

/// The numbers of event types, as constants.
pub struct EventType;

impl EventType {
    pub const QUERY: u8 = 2;
    pub const STOP: u8 = 3;
    pub const ROTATE: u8 = 4;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const TABLE_MAP: u8 = 19;
    pub const HEARTBEAT: u8 = 27;
    pub const ROWS_QUERY: u8 = 29;
    pub const WRITE_ROWS: u8 = 30;
    pub const UPDATE_ROWS: u8 = 31;
    pub const DELETE_ROWS: u8 = 32;
    pub const GTID: u8 = 33;
    pub const ANONYMOUS_GTID: u8 = 34;
    pub const PREVIOUS_GTIDS: u8 = 35;
    pub const XA_PREPARE: u8 = 38;

    /// `Event_type` of SHOW BINLOG EVENTS; `Unknown` for types that this server never writes.
    pub fn name(event_type: u8) -> &'static str {
        match event_type {
            Self::QUERY => "Query",
            Self::STOP => "Stop",
            Self::ROTATE => "Rotate",
            Self::FORMAT_DESCRIPTION => "Format_desc",
            Self::XID => "Xid",
            Self::TABLE_MAP => "Table_map",
            Self::HEARTBEAT => "Heartbeat",
            Self::ROWS_QUERY => "Rows_query",
            Self::WRITE_ROWS => "Write_rows",
            Self::UPDATE_ROWS => "Update_rows",
            Self::DELETE_ROWS => "Delete_rows",
            Self::GTID => "Gtid",
            Self::ANONYMOUS_GTID => "Anonymous_Gtid",
            Self::PREVIOUS_GTIDS => "Previous_gtids",
            Self::XA_PREPARE => "XA_prepare",
            _ => "Unknown",
        }
    }
}

/// Flags of the header.
pub mod header_flags {
    /// The file was not closed; in a format description only, and never under the checksum.
    pub const IN_USE: u16 = 0x1;
    /// A statement that needs no `USE`.
    pub const SUPPRESS_USE: u16 = 0x8;
    /// Made up for the connection; not in any file.
    pub const ARTIFICIAL: u16 = 0x20;
    /// A reader that does not know the type may skip it.
    pub const IGNORABLE: u16 = 0x80;
}

/// An event's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Seconds since 1970-01-01 UTC.
    pub timestamp: u32,
    /// See [`EventType`].
    pub event_type: u8,
    pub server_id: u32,
    /// Bytes of header, body and checksum.
    pub event_size: u32,
    /// Where the event ends in its file, modulo 2^32; 0 in a raw event.
    pub log_pos: u32,
    /// See [`header_flags`].
    pub flags: u16,
}

impl Header {
    /// Bytes of a header.
    pub const LEN: usize = 19;

    /// The header at the start of `bytes`; `None` if they are too few.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; Header::LEN] = bytes.first_chunk()?;
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(Header {
            timestamp: u32_at(0),
            event_type: bytes[4],
            server_id: u32_at(5),
            event_size: u32_at(9),
            log_pos: u32_at(13),
            flags: u16::from_le_bytes([bytes[17], bytes[18]]),
        })
    }
}

/// Bytes of the checksum behind an event.
pub const CHECKSUM_LEN: usize = 4;

/// Bytes of a sealed event whose raw form has `raw_len` bytes. Format descriptions are always [`sealed_len`] with a checksum.
pub fn sealed_len(raw_len: usize, checksum: bool) -> usize {
    raw_len + if checksum { CHECKSUM_LEN } else { 0 }
}

/// Appends the raw event `raw` as it stands in a file at `position`: its end as `log_pos` (modulo 2^32) and, with
/// `checksum`, 4 bytes more for the CRC32. A format description has the checksum always, as in MySQL: its body says
/// what holds for the others.
pub fn seal(raw: &[u8], position: u64, checksum: bool, out: &mut Vec<u8>) {
    let checksum = checksum || raw[4] == EventType::FORMAT_DESCRIPTION;
    let end = position + sealed_len(raw.len(), checksum) as u64;
    seal_with_log_pos(raw, end as u32, checksum, out);
}

/// Like [`seal`] with a `log_pos` of the caller's choice: events that a dump makes up (0 in a rotate at its start, the
/// position reached in a heartbeat).
pub fn seal_with_log_pos(raw: &[u8], log_pos: u32, checksum: bool, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(raw);
    let event = &mut out[start..];
    event[9..13].copy_from_slice(&(sealed_len(raw.len(), checksum) as u32).to_le_bytes());
    event[13..17].copy_from_slice(&log_pos.to_le_bytes());
    if checksum {
        let crc = crc32(event);
        out.extend_from_slice(&crc.to_le_bytes());
    }
}

/// What stands before the checksum of a sealed event, and whether the checksum is right. `None`: the event is too short to have one.
pub fn check_crc32(event: &[u8]) -> Option<(&[u8], bool)> {
    let (body, crc) = event.split_last_chunk::<CHECKSUM_LEN>()?;
    (body.len() >= Header::LEN).then(|| (body, crc32(body) == u32::from_le_bytes(*crc)))
}

/// The checksum of an event without its last four bytes. A file in use is told by a flag that is cleared in place when it is closed, so
/// the flag counts as cleared.
fn crc32(event: &[u8]) -> u32 {
    if event[4] != EventType::FORMAT_DESCRIPTION {
        return crc32fast::hash(event);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&event[..17]);
    hasher.update(&[event[17] & !(header_flags::IN_USE as u8)]);
    hasher.update(&event[18..]);
    hasher.finalize()
}

/// Starts a raw event at the end of `out`; `close` gives it its size.
pub(crate) fn open(out: &mut Vec<u8>, stamp: Stamp, event_type: u8, flags: u16) -> usize {
    let start = out.len();
    out.extend_from_slice(&stamp.timestamp.to_le_bytes());
    out.push(event_type);
    out.extend_from_slice(&stamp.server_id.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&flags.to_le_bytes());
    start
}

/// Ends the raw event that began at `start`.
pub(crate) fn close(out: &mut [u8], start: usize) {
    let size = (out.len() - start) as u32;
    out[start + 9..start + 13].copy_from_slice(&size.to_le_bytes());
}

/// Appends a length-encoded integer.
pub(crate) fn push_lenenc(out: &mut Vec<u8>, n: u64) {
    match n {
        0..=250 => out.push(n as u8),
        251..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(n as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&n.to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
}

/// Bytes of a length-encoded integer.
pub(crate) fn lenenc_len(n: u64) -> usize {
    match n {
        0..=250 => 1,
        251..=0xFFFF => 3,
        0x1_0000..=0xFF_FFFF => 4,
        _ => 9,
    }
}

/// The raw or sealed events of `bytes`, one behind the other, by the sizes in their headers. Stops at the first that is cut short.
pub fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let size = Header::parse(rest)?.event_size as usize;
        if size < Header::LEN {
            return None;
        }
        let (event, behind) = rest.split_at_checked(size)?;
        rest = behind;
        Some(event)
    })
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", EventType::name(self.event_type), self.event_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(event_type: u8, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut out = vec![0xEE];
        let start = open(&mut out, Stamp { timestamp: 7, server_id: 9 }, event_type, flags);
        out.extend_from_slice(body);
        close(&mut out, start);
        out.split_off(1)
    }

    #[test]
    fn sealed_event_has_its_end_and_checksum() {
        let raw = raw(EventType::XID, 0, &[1, 0, 0, 0, 0, 0, 0, 0]);
        let header = Header::parse(&raw).unwrap();
        assert_eq!((header.event_size, header.log_pos, header.timestamp, header.server_id), (27, 0, 7, 9));
        let mut file = Vec::new();
        seal(&raw, u64::from(u32::MAX) - 10, true, &mut file);
        let header = Header::parse(&file).unwrap();
        assert_eq!((header.event_size, header.log_pos), (31, 20), "the position wraps");
        assert_eq!(file.len(), sealed_len(raw.len(), true));
        assert!(check_crc32(&file).unwrap().1);
        for byte in 0..file.len() {
            file[byte] ^= 0x10;
            assert!(!check_crc32(&file).unwrap().1, "a changed byte {byte} is found");
            file[byte] ^= 0x10;
        }
        let mut plain = Vec::new();
        seal(&raw, 4, false, &mut plain);
        assert_eq!((plain.len(), Header::parse(&plain).unwrap().log_pos), (27, 31));
    }

    #[test]
    fn the_in_use_flag_is_not_under_the_checksum() {
        let mut sealed = Vec::new();
        seal(&raw(EventType::FORMAT_DESCRIPTION, header_flags::IN_USE, b"x"), 4, false, &mut sealed);
        assert_eq!(sealed.len(), 24, "a format description has its checksum always");
        assert!(check_crc32(&sealed).unwrap().1);
        sealed[17] = 0;
        assert!(check_crc32(&sealed).unwrap().1);
        sealed[17] = 2;
        assert!(!check_crc32(&sealed).unwrap().1);
    }

    #[test]
    fn events_are_split_by_size() {
        let (a, b) = (raw(EventType::XID, 0, &[0; 8]), raw(EventType::STOP, 0, &[]));
        let mut both = a.clone();
        both.extend_from_slice(&b);
        assert_eq!(split(&both).collect::<Vec<_>>(), [&a[..], &b[..]]);
        assert_eq!(split(&both[..both.len() - 1]).count(), 1);
    }

    #[test]
    fn length_encoded_integers() {
        for n in [0, 250, 251, 65_535, 65_536, 0xFF_FFFF, 0x100_0000, u64::MAX] {
            let mut out = Vec::new();
            push_lenenc(&mut out, n);
            assert_eq!(out.len(), lenenc_len(n), "{n}");
        }
    }
}
