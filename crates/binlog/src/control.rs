//! Events about the file and the stream: format description, previous GTIDs, rotate, stop, heartbeat.

use crate::GtidSet;
use crate::event::{EventType, Stamp, close, header_flags, open};

/// The first four bytes of a file.
pub const MAGIC: [u8; 4] = [0xFE, b'b', b'i', b'n'];

/// Lengths of the fixed part of the body by event type from 1, as MySQL 8.0.12 writes them.
const POST_HEADER_LENS: [u8; 39] = [
    0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 96, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0, 0, 0, 10, 10, 10, 42, 42, 0, 18, 52, 0, 10,
];

/// What the first event of a file says.
#[derive(Clone, Copy, Debug)]
pub struct FormatDescription<'a> {
    /// `@@version`; the first 49 bytes are written. Readers take the format from its number.
    pub server_version: &'a str,
    /// When the server started, in seconds since 1970-01-01 UTC, in the first file since then; 0 in the others. A replica drops the
    /// session's temporary tables at a start.
    pub created: u32,
    /// The file's events carry a CRC32.
    pub checksum: bool,
    /// The file is being written.
    pub in_use: bool,
}

/// Appends a raw FORMAT_DESCRIPTION_EVENT.
pub fn format_description(stamp: Stamp, format: &FormatDescription<'_>, out: &mut Vec<u8>) {
    let start = open(out, stamp, EventType::FORMAT_DESCRIPTION, if format.in_use { header_flags::IN_USE } else { 0 });
    out.extend_from_slice(&4u16.to_le_bytes());
    let mut version = [0; 50];
    let text = format.server_version.as_bytes();
    let len = text.len().min(version.len() - 1);
    version[..len].copy_from_slice(&text[..len]);
    out.extend_from_slice(&version);
    out.extend_from_slice(&format.created.to_le_bytes());
    out.push(19);
    out.extend_from_slice(&POST_HEADER_LENS);
    out.push(u8::from(format.checksum));
    close(out, start);
}

/// Where the in-use flag stands in a file: the byte to write 0 to when the file is closed.
pub const IN_USE_FLAG_POSITION: u64 = MAGIC.len() as u64 + 17;

/// Appends a raw PREVIOUS_GTIDS_LOG_EVENT: the GTIDs of all files before.
pub fn previous_gtids(stamp: Stamp, gtids: &GtidSet, out: &mut Vec<u8>) {
    let start = open(out, stamp, EventType::PREVIOUS_GTIDS, header_flags::IGNORABLE);
    gtids.encode(out);
    close(out, start);
}

/// Appends a raw ROTATE_EVENT: the log goes on in the file `next` at `position`. `artificial`: made up for a connection, not in a file.
pub fn rotate(stamp: Stamp, next: &str, position: u64, artificial: bool, out: &mut Vec<u8>) {
    let start = open(out, stamp, EventType::ROTATE, if artificial { header_flags::ARTIFICIAL } else { 0 });
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(next.as_bytes());
    close(out, start);
}

/// Appends a raw STOP_EVENT: the server was shut down.
pub fn stop(stamp: Stamp, out: &mut Vec<u8>) {
    let start = open(out, stamp, EventType::STOP, 0);
    close(out, start);
}

/// Appends a raw HEARTBEAT_LOG_EVENT for a connection that waits in the file `name`; its position goes into `log_pos`
/// ([`seal_with_log_pos`](crate::event::seal_with_log_pos)).
pub fn heartbeat(server_id: u32, name: &str, out: &mut Vec<u8>) {
    let start = open(out, Stamp { timestamp: 0, server_id }, EventType::HEARTBEAT, 0);
    out.extend_from_slice(name.as_bytes());
    close(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Header, seal, seal_with_log_pos};

    #[test]
    fn events_of_a_connection() {
        let (mut raw, mut sent) = (Vec::new(), Vec::new());
        rotate(Stamp { timestamp: 0, server_id: 3 }, "binlog.000007", 4, true, &mut raw);
        seal_with_log_pos(&raw, 0, false, &mut sent);
        let header = Header::parse(&sent).unwrap();
        assert_eq!((header.flags, header.log_pos, header.event_size), (header_flags::ARTIFICIAL, 0, 40));
        raw.clear();
        sent.clear();
        heartbeat(3, "binlog.000007", &mut raw);
        seal_with_log_pos(&raw, 1234, true, &mut sent);
        let header = Header::parse(&sent).unwrap();
        assert_eq!((header.event_type, header.timestamp, header.log_pos, header.event_size), (EventType::HEARTBEAT, 0, 1234, 36));
        assert_eq!(&sent[19..32], b"binlog.000007");
    }

    #[test]
    fn a_closed_file_differs_in_one_byte() {
        let stamp = Stamp { timestamp: 1, server_id: 2 };
        let file = |in_use| {
            let (mut raw, mut file) = (Vec::new(), MAGIC.to_vec());
            let long = "8".repeat(60);
            format_description(stamp, &FormatDescription { server_version: &long, created: 0, checksum: true, in_use }, &mut raw);
            seal(&raw, 4, true, &mut file);
            file
        };
        let mut open = file(true);
        open[IN_USE_FLAG_POSITION as usize] = 0;
        assert_eq!(open, file(false));
        assert_eq!(open[4 + 19 + 2 + 49], 0, "the version ends within its field");
    }
}
