//! A client of which every byte is known.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::Server;

/// LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_RESULTS, PLUGIN_AUTH, CONNECT_ATTRS, DEPRECATE_EOF.
const CAPABILITIES: u32 = 1 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 17 | 1 << 19 | 1 << 20 | 1 << 24;

/// A connection.
pub struct Raw {
    pub stream: TcpStream,
    /// Of the next packet from the server.
    sequence: u8,
    /// The connection's.
    pub id: u32,
}

impl Raw {
    /// `capabilities`: those in which it differs from the others. `library` is what the client says it is.
    pub fn connect(server: &Server, capabilities: u32, library: &str) -> Raw {
        Raw::login(server, "root", capabilities, library).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// As an account without a password; the error packet if it is not let in.
    pub fn login(server: &Server, user: &str, capabilities: u32, library: &str) -> Result<Raw, Vec<u8>> {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut raw = Raw { stream, sequence: 0, id: 0 };
        let greeting = raw.read();
        if greeting[0] == 0xFF {
            return Err(greeting);
        }
        // Protocol version, the server's up to a NUL, then the id.
        let id = greeting.iter().position(|&b| b == 0).unwrap() + 1;
        raw.id = u32::from_le_bytes(greeting[id..id + 4].try_into().unwrap());
        let mut hello = (CAPABILITIES ^ capabilities).to_le_bytes().to_vec();
        hello.extend_from_slice(&(1u32 << 24).to_le_bytes());
        hello.push(45);
        hello.extend_from_slice(&[0; 23]);
        hello.extend_from_slice(user.as_bytes());
        hello.extend_from_slice(b"\0\0caching_sha2_password\0");
        let attribute = [&[12], &b"_client_name"[..], &[library.len() as u8], library.as_bytes()].concat();
        hello.push(attribute.len() as u8);
        hello.extend_from_slice(&attribute);
        raw.send(1, &hello);
        loop {
            let answer = raw.read();
            match answer[0] {
                0 => return Ok(raw),
                0xFF => return Err(answer),
                _ => {}
            }
        }
    }

    pub fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
        packet[3] = sequence;
        packet.extend_from_slice(payload);
        self.stream.write_all(&packet).unwrap();
        self.sequence = sequence.wrapping_add(1);
    }

    /// The next packet, which must have the next number.
    pub fn read(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).unwrap();
        assert_eq!(header[3], self.sequence, "the numbers have no gap");
        self.sequence = self.sequence.wrapping_add(1);
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }

    pub fn query(&mut self, sql: &str) {
        self.send(0, &[b"\x03", sql.as_bytes()].concat());
    }

    /// Runs a statement that answers with OK at once.
    pub fn ok(&mut self, sql: &str) {
        self.query(sql);
        let answer = self.read();
        assert_eq!(answer[0], 0, "{sql}: {answer:?}");
    }
}
