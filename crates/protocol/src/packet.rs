//! Framing: a packet is a 3-byte little-endian length, a sequence number and a payload; a payload of
//! 2^24 - 1 bytes or more is split and ends with a shorter (possibly empty) packet.

use bytes::{Buf, BytesMut};

/// The longest payload of one physical packet.
pub const MAX_PAYLOAD: usize = 0xFF_FFFF;

/// What can be wrong with the byte stream of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum PacketError {
    /// The logical packet is longer than `max_allowed_packet` (error 1153).
    TooLarge,
    /// A sequence number is not the expected one (error 1156).
    OutOfOrder,
}

/// Reassembles logical packets from received bytes.
#[derive(Debug)]
pub struct PacketReader {
    buffer: BytesMut,
    partial: Option<Vec<u8>>,
    sequence: u8,
    max_allowed: usize,
}

impl PacketReader {
    /// `max_allowed` is `max_allowed_packet` in bytes.
    pub fn new(max_allowed: usize) -> Self {
        Self { buffer: BytesMut::with_capacity(16 * 1024), partial: None, sequence: 0, max_allowed }
    }

    /// Changes `max_allowed_packet`, in bytes.
    pub fn set_max_allowed(&mut self, max_allowed: usize) {
        self.max_allowed = max_allowed;
    }

    /// The buffer to append received bytes to.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Starts a new command: the next packet must have sequence number 0.
    pub fn reset_sequence(&mut self) {
        self.sequence = 0;
    }

    /// The sequence number that follows the last packet, from which the answer goes on.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Continues an exchange in which the server has sent packets up to `sequence - 1`.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Whether bytes of an unfinished packet are held.
    pub fn is_mid_packet(&self) -> bool {
        self.partial.is_some() || !self.buffer.is_empty()
    }

    /// The next logical packet, or `None` until more bytes arrive.
    pub fn next_packet(&mut self) -> Result<Option<Vec<u8>>, PacketError> {
        loop {
            if self.buffer.len() < 4 {
                return Ok(None);
            }
            let length = u32::from_le_bytes([self.buffer[0], self.buffer[1], self.buffer[2], 0]) as usize;
            let so_far = self.partial.as_ref().map_or(0, Vec::len);
            // Checked on the header, before the bytes are buffered: a 1 GB statement costs no memory.
            if so_far + length > self.max_allowed {
                return Err(PacketError::TooLarge);
            }
            if self.buffer[3] != self.sequence {
                return Err(PacketError::OutOfOrder);
            }
            if self.buffer.len() < 4 + length {
                self.buffer.reserve(4 + length - self.buffer.len());
                return Ok(None);
            }
            self.sequence = self.sequence.wrapping_add(1);
            self.buffer.advance(4);
            let payload = self.buffer.split_to(length);
            match (&mut self.partial, length == MAX_PAYLOAD) {
                (None, false) => return Ok(Some(payload.to_vec())),
                (None, true) => self.partial = Some(payload.to_vec()),
                (Some(partial), more) => {
                    partial.extend_from_slice(&payload);
                    if !more {
                        return Ok(self.partial.take());
                    }
                }
            }
        }
    }
}

/// Collects answers as framed packets, ready to be written to the socket.
#[derive(Debug, Default)]
pub struct PacketWriter {
    out: Vec<u8>,
    sequence: u8,
    start: Option<usize>,
}

impl PacketWriter {
    /// Answers begin with the sequence number after the request's last packet.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The sequence number that the client's next packet must carry.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Bytes waiting to be sent.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The framed bytes, which the caller sends and then clears with [`Self::clear`].
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Forgets what has been sent.
    pub fn clear(&mut self) {
        self.out.clear();
        if self.out.capacity() > 1 << 20 {
            self.out.shrink_to(64 * 1024);
        }
    }

    /// Appends one packet whose payload `fill` writes in place.
    pub fn packet(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.begin();
        fill(&mut self.out);
        self.end(start);
    }

    /// Like [`Self::packet`] for a payload that may fail to encode; on an error nothing is appended.
    pub fn try_packet<E>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.begin();
        match fill(&mut self.out) {
            Ok(()) => {
                self.end(start);
                Ok(())
            }
            Err(e) => {
                self.out.truncate(start);
                self.start = None;
                Err(e)
            }
        }
    }

    fn begin(&mut self) -> usize {
        let start = self.out.len();
        self.start = Some(start);
        self.out.extend_from_slice(&[0; 4]);
        start
    }

    fn end(&mut self, start: usize) {
        let length = self.out.len() - start - 4;
        self.start = None;
        if length < MAX_PAYLOAD {
            self.header(start, length);
            return;
        }
        // Split in place: rare, so the copy does not matter.
        let payload = self.out.split_off(start + 4);
        self.out.truncate(start);
        let mut rest = &payload[..];
        loop {
            let n = rest.len().min(MAX_PAYLOAD);
            let at = self.out.len();
            self.out.extend_from_slice(&[0; 4]);
            self.out.extend_from_slice(&rest[..n]);
            self.header(at, n);
            rest = &rest[n..];
            if n < MAX_PAYLOAD {
                return;
            }
        }
    }

    fn header(&mut self, at: usize, length: usize) {
        self.out[at..at + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        self.out[at + 3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(length: usize) {
        let payload: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let mut writer = PacketWriter::default();
        writer.packet(|out| out.extend_from_slice(&payload));
        let mut reader = PacketReader::new(1 << 30);
        // Byte counts that cut headers and payloads anywhere.
        for chunk in writer.bytes().chunks(1_000_003) {
            reader.buffer().extend_from_slice(chunk);
            if let Some(got) = reader.next_packet().unwrap() {
                assert_eq!(got, payload);
                assert_eq!(reader.sequence(), writer.sequence());
                assert!(!reader.is_mid_packet());
                return;
            }
        }
        panic!("the packet of {length} bytes did not arrive");
    }

    #[test]
    fn packets_of_every_kind_of_length_arrive() {
        for length in [0, 1, 250, 70_000, MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD] {
            round_trip(length);
        }
    }

    #[test]
    fn a_packet_over_the_limit_is_refused_at_its_header() {
        let mut reader = PacketReader::new(1000);
        reader.buffer().extend_from_slice(&[0xE9, 0x03, 0, 0]);
        assert_eq!(reader.next_packet(), Err(PacketError::TooLarge));
    }

    #[test]
    fn a_packet_out_of_order_is_refused() {
        let mut reader = PacketReader::new(1000);
        reader.buffer().extend_from_slice(&[1, 0, 0, 7, 0]);
        assert_eq!(reader.next_packet(), Err(PacketError::OutOfOrder));
    }

    #[test]
    fn a_failed_payload_leaves_nothing() {
        let mut writer = PacketWriter::default();
        writer.packet(|out| out.push(1));
        let before = writer.bytes().to_vec();
        assert_eq!(writer.try_packet(|out| { out.push(9); Err::<(), _>("no") }), Err("no"));
        assert_eq!(writer.bytes(), before);
    }
}
