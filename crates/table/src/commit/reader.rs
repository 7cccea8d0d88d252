//! Looking into the binary log's files.

use highkey_binlog::control::MAGIC;
use highkey_binlog::{EventType, GtidSet, Header};
use highkey_storage::{Disk, DiskFile, Error, Result};

use super::files::name_of;

/// Events at a file's beginning are looked for in its first bytes; a set of GTIDs can be longer.
const HEAD_BYTES: usize = 4096;

/// The events that a file begins with, up to the one that says which GTIDs came before it.
struct Head {
    /// Both with their headers, as they stand in the file.
    format: Vec<u8>,
    previous: Vec<u8>,
}

fn broken(number: u64, what: &str) -> Error {
    Error::corrupt_file(format!("{} {what}", name_of(number)))
}

fn read_exact(file: &dyn DiskFile, at: u64, len: usize, number: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    if file.read_at(at, &mut bytes)? < len {
        return Err(broken(number, "ends within its first events"));
    }
    Ok(bytes)
}

fn head(disk: &dyn Disk, number: u64) -> Result<Head> {
    let file = disk.open(&name_of(number), false)?;
    let mut bytes = vec![0; HEAD_BYTES];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    if !bytes.starts_with(&MAGIC) {
        return Err(broken(number, "is no binary log file"));
    }
    let event = |at: usize, kind: u8| -> Result<Vec<u8>> {
        let header = bytes.get(at..).and_then(Header::parse).filter(|h| h.event_type == kind);
        let header = header.ok_or_else(|| broken(number, "does not begin with the events that it should"))?;
        read_exact(&*file, at as u64, header.event_size as usize, number)
    };
    let format = event(MAGIC.len(), EventType::FORMAT_DESCRIPTION)?;
    let previous = event(MAGIC.len() + format.len(), EventType::PREVIOUS_GTIDS)?;
    Ok(Head { format, previous })
}

/// Whether the events of a file end in checksums.
pub(crate) fn has_checksums(disk: &dyn Disk, number: u64) -> Result<bool> {
    let head = head(disk, number)?;
    // The algorithm stands before the event's own checksum, which is there in any case.
    Ok(head.format.len().checked_sub(5).and_then(|at| head.format.get(at)) == Some(&1))
}

/// The GTIDs of all transactions before a file.
pub(crate) fn previous_gtids(disk: &dyn Disk, number: u64) -> Result<GtidSet> {
    let head = head(disk, number)?;
    let checksum = if has_checksums(disk, number)? { 4 } else { 0 };
    let body = head.previous.get(Header::LEN..head.previous.len() - checksum).unwrap_or(&[]);
    GtidSet::decode(body).map_err(|e| broken(number, &format!("says the GTIDs before it wrongly: {e}")))
}

/// When a file was begun, in seconds since 1970.
pub(crate) fn begun_at(disk: &dyn Disk, number: u64) -> Result<u64> {
    let head = head(disk, number)?;
    Header::parse(&head.format).map(|h| u64::from(h.timestamp)).ok_or_else(|| broken(number, "has no first event"))
}
