//! Reading a binary log file, which is not trusted.

use std::fmt;
use std::io::{self, Read};

use crate::control::MAGIC;
use crate::event::{CHECKSUM_LEN, EventType, Header, check_crc32};

/// An event of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileEvent<'r> {
    /// Offset in the file.
    pub position: u64,
    pub header: Header,
    /// Header, body and, if the file has them, checksum: what a replica is sent.
    pub sealed: &'r [u8],
    /// Header and body without the checksum; the header is as it stands in the file.
    pub raw: &'r [u8],
}

impl FileEvent<'_> {
    /// Offset of what follows.
    pub fn end(&self) -> u64 {
        self.position + self.sealed.len() as u64
    }

    /// What follows the header.
    pub fn body(&self) -> &[u8] {
        &self.raw[Header::LEN..]
    }
}

/// What is wrong with a file. Positions are offsets in it, of the event's start.
#[derive(Debug)]
pub enum ReadError {
    Io(io::Error),
    /// It does not begin with [`MAGIC`].
    NotABinlog,
    /// The first event is not a format description.
    NoFormat {
        event_type: u8,
    },
    /// The file ends within the magic or an event. Reading may be tried again when the file has grown.
    Cut {
        position: u64,
        /// Bytes that are there.
        have: usize,
        /// Bytes that the header says; the header's own length if that is cut too.
        need: usize,
    },
    /// A size that no event has.
    Size {
        position: u64,
        size: u32,
    },
    /// The header's `log_pos` is not where the event ends.
    Position {
        position: u64,
        log_pos: u32,
        end: u64,
    },
    Checksum {
        position: u64,
        event_type: u8,
    },
    /// The format description names a checksum that is not CRC32.
    ChecksumAlgorithm {
        position: u64,
        algorithm: u8,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "{error}"),
            ReadError::NotABinlog => f.write_str("not a binary log: it does not begin with its magic number"),
            ReadError::NoFormat { event_type } => {
                write!(f, "the event at 4 is of type {event_type} ({}), not a format description", EventType::name(*event_type))
            }
            ReadError::Cut { position, have, need } => write!(f, "cut short at {position}: {have} of {need} bytes"),
            ReadError::Size { position, size } => write!(f, "the event at {position} cannot have {size} bytes"),
            ReadError::Position { position, log_pos, end } => {
                write!(f, "the event at {position} ends at {end}, but says {log_pos}")
            }
            ReadError::Checksum { position, event_type } => {
                write!(f, "the checksum of the event at {position} ({}) is wrong", EventType::name(*event_type))
            }
            ReadError::ChecksumAlgorithm { position, algorithm } => {
                write!(f, "the format description at {position} names checksum algorithm {algorithm}, which is not known")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

/// The greatest event: MySQL's limit of a packet, 1 GiB, and room for the header.
const MAX_EVENT_SIZE: u32 = (1 << 30) + 1024;
/// The smallest format description: one without any event type, and its checksum.
const MIN_FORMAT_SIZE: usize = Header::LEN + 2 + 50 + 4 + 1 + 1 + CHECKSUM_LEN;

/// The events of a file, one after the other. At the end of the source it answers `None`, and goes on from there if the source has
/// grown when it is asked again.
#[derive(Debug)]
pub struct FileReader<R> {
    source: R,
    /// The event being read, or its first bytes if the source ended within it.
    event: Vec<u8>,
    /// It was answered.
    taken: bool,
    /// Offset of `event` in the file.
    position: u64,
    /// The file's events have checksums; known from the format description on.
    checksum: Option<bool>,
}

impl<R: Read> FileReader<R> {
    /// Reads from the start of a file.
    pub fn new(source: R) -> FileReader<R> {
        FileReader { source, event: Vec::new(), taken: false, position: 0, checksum: None }
    }

    /// Reads on from `position`, where the source stands and an event begins, in a file whose format description is known.
    pub fn resume(source: R, position: u64, checksum: bool) -> FileReader<R> {
        FileReader { source, event: Vec::new(), taken: false, position, checksum: Some(checksum) }
    }

    /// Offset of the next event.
    pub fn position(&self) -> u64 {
        self.position + if self.taken { self.event.len() as u64 } else { 0 }
    }

    /// Whether the file's events have checksums; `None` before the format description was read.
    pub fn checksum(&self) -> Option<bool> {
        self.checksum
    }

    /// The next event, its checksum and position verified; `None` at the end. After an error other than [`ReadError::Io`] and
    /// [`ReadError::Cut`] every call answers that error again.
    pub fn next_event(&mut self) -> Result<Option<FileEvent<'_>>, ReadError> {
        if self.taken {
            self.position += self.event.len() as u64;
            self.event.clear();
            self.taken = false;
        }
        if self.position == 0 {
            if !self.fill(MAGIC.len())? {
                return Ok(None);
            }
            if self.event != MAGIC {
                return Err(ReadError::NotABinlog);
            }
            self.position = MAGIC.len() as u64;
            self.event.clear();
        }
        if !self.fill(Header::LEN)? {
            return Ok(None);
        }
        let position = self.position;
        let Some(header) = Header::parse(&self.event) else { return Ok(None) };
        let is_format = header.event_type == EventType::FORMAT_DESCRIPTION;
        if self.checksum.is_none() && !is_format {
            return Err(ReadError::NoFormat { event_type: header.event_type });
        }
        let least = match self.checksum {
            _ if is_format => MIN_FORMAT_SIZE,
            Some(true) => Header::LEN + CHECKSUM_LEN,
            _ => Header::LEN,
        };
        if (header.event_size as usize) < least || header.event_size > MAX_EVENT_SIZE {
            return Err(ReadError::Size { position, size: header.event_size });
        }
        self.fill(header.event_size as usize)?;
        self.verify(&header)?;
        self.taken = true;
        let checksummed = is_format || self.checksum == Some(true);
        let raw_len = self.event.len() - if checksummed { CHECKSUM_LEN } else { 0 };
        Ok(Some(FileEvent { position, header, sealed: &self.event, raw: &self.event[..raw_len] }))
    }

    fn verify(&mut self, header: &Header) -> Result<(), ReadError> {
        let (position, event_type) = (self.position, header.event_type);
        let end = position + self.event.len() as u64;
        let is_format = event_type == EventType::FORMAT_DESCRIPTION;
        if (is_format || self.checksum == Some(true)) && !check_crc32(&self.event).is_some_and(|(_, right)| right) {
            return Err(ReadError::Checksum { position, event_type });
        }
        if header.log_pos != end as u32 {
            return Err(ReadError::Position { position, log_pos: header.log_pos, end });
        }
        if is_format {
            self.checksum = match self.event[self.event.len() - CHECKSUM_LEN - 1] {
                0 => Some(false),
                1 => Some(true),
                algorithm => return Err(ReadError::ChecksumAlgorithm { position, algorithm }),
            };
        }
        Ok(())
    }

    /// Reads until the event has `need` bytes; false if the source ended before its first. Memory grows with what is there, not with what a
    /// header says.
    fn fill(&mut self, need: usize) -> Result<bool, ReadError> {
        let missing = need.saturating_sub(self.event.len()) as u64;
        self.source.by_ref().take(missing).read_to_end(&mut self.event)?;
        match self.event.len() {
            0 => Ok(false),
            have if have < need => Err(ReadError::Cut { position: self.position, have, need }),
            _ => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use crate::control::{FormatDescription, format_description, stop};
    use crate::event::seal;
    use crate::transaction::xid;

    fn file(checksum: bool) -> Vec<u8> {
        let stamp = Stamp { timestamp: 1, server_id: 2 };
        let mut raws = [Vec::new(), Vec::new(), Vec::new()];
        let format = FormatDescription { server_version: "8.0.36", created: 0, checksum, in_use: true };
        format_description(stamp, &format, &mut raws[0]);
        xid(stamp, 7, &mut raws[1]);
        stop(stamp, &mut raws[2]);
        let mut file = MAGIC.to_vec();
        for raw in &raws {
            seal(raw, file.len() as u64, checksum, &mut file);
        }
        file
    }

    fn read(bytes: &[u8]) -> Result<Vec<(u64, u8, u64)>, ReadError> {
        let mut reader = FileReader::new(bytes);
        let mut events = Vec::new();
        while let Some(event) = reader.next_event()? {
            events.push((event.position, event.header.event_type, event.end()));
        }
        assert_eq!(reader.position(), bytes.len() as u64);
        Ok(events)
    }

    #[test]
    fn files_with_and_without_checksums() {
        assert_eq!(read(&file(true)).unwrap(), [(4, 15, 124), (124, 16, 155), (155, 3, 178)]);
        assert_eq!(read(&file(false)).unwrap(), [(4, 15, 124), (124, 16, 151), (151, 3, 170)]);
        assert_eq!(read(&[]).unwrap(), []);
    }

    #[test]
    fn every_changed_byte_is_found() {
        let whole = file(true);
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0x40;
            let error = read(&broken).expect_err("a broken byte").to_string();
            let position = [155, 124, 4, 0].into_iter().find(|start| at >= *start).unwrap();
            assert!(position == 0 || error.contains(&format!("at {position}")), "byte {at}: {error}");
        }
    }

    #[test]
    fn a_file_that_grows() {
        let whole = file(true);
        for cut in 0..whole.len() {
            let mut reader = FileReader::new(Growing { bytes: &whole, end: cut, at: 0 });
            let mut events = 0;
            let at_end = loop {
                match reader.next_event() {
                    Ok(Some(_)) => events += 1,
                    other => break other.map(|_| ()),
                }
            };
            let clean = [0, 4, 124, 155].contains(&cut);
            assert_eq!(at_end.is_ok(), clean, "cut at {cut}: {at_end:?}");
            if let Err(error) = at_end {
                assert!(matches!(error, ReadError::Cut { have, need, .. } if have < need), "cut at {cut}: {error}");
            }
            reader.source.end = whole.len();
            while reader.next_event().unwrap().is_some() {
                events += 1;
            }
            assert_eq!(events, 3, "cut at {cut}");
        }
    }

    #[test]
    fn reading_on_from_a_position() {
        let whole = file(true);
        let mut reader = FileReader::resume(&whole[124..], 124, true);
        let event = reader.next_event().unwrap().unwrap();
        assert_eq!((event.position, event.body()), (124, &7u64.to_le_bytes()[..]));
        let mut lost = FileReader::resume(&whole[124..], 125, true);
        assert!(matches!(lost.next_event(), Err(ReadError::Position { position: 125, log_pos: 155, end: 156 })));
    }

    /// The first `end` bytes.
    struct Growing<'b> {
        bytes: &'b [u8],
        end: usize,
        at: usize,
    }

    impl Read for Growing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(self.end - self.at);
            buffer[..len].copy_from_slice(&self.bytes[self.at..self.at + len]);
            self.at += len;
            Ok(len)
        }
    }
}
