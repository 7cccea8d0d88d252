//! A client that sends whatever bytes it is told to.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::HANG;
use crate::Result;

pub const COM_QUERY: u8 = 0x03;
pub const COM_STATISTICS: u8 = 0x09;
pub const COM_CHANGE_USER: u8 = 0x11;
pub const COM_STMT_PREPARE: u8 = 0x16;
pub const COM_STMT_EXECUTE: u8 = 0x17;
pub const COM_STMT_SEND_LONG_DATA: u8 = 0x18;

/// Protocol 4.1, transactions, local files, secure connection, several results, named plugins, no EOF packets.
const CAPABILITIES: u32 = 0x0000_0001 | 0x80 | 0x200 | 0x2000 | 0x8000 | 0x2_0000 | 0x4_0000 | 0x8_0000 | 0x100_0000;

/// A connection without any protocol of its own.
pub struct Raw {
    stream: TcpStream,
    pub connection_id: u64,
}

/// What became of a connection that was sent something.
#[derive(Debug, Default)]
pub struct Outcome {
    /// It still answers.
    pub alive: bool,
    /// The errors it was sent: MySQL's number and text.
    pub errors: Vec<(u16, String)>,
}

impl Raw {
    /// Connects and reads the greeting.
    pub async fn greeted(port: u16) -> Result<Raw> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let mut raw = Raw { stream, connection_id: 0 };
        let greeting = raw.read().await?.ok_or("no greeting")?;
        // Version 10, the server's version up to a NUL, then the id.
        let id = greeting.iter().position(|&b| b == 0).and_then(|nul| greeting.get(nul + 1..nul + 5)).ok_or("a short greeting")?;
        raw.connection_id = u64::from(u32::from_le_bytes(id.try_into()?));
        Ok(raw)
    }

    /// Connects as root without a password.
    pub async fn login(port: u16) -> Result<Raw> {
        let mut raw = Raw::greeted(port).await?;
        raw.send(1, &hello()).await?;
        loop {
            match raw.read().await?.as_deref() {
                Some([0, ..]) => return Ok(raw),
                Some([1, ..]) => {}
                other => return Err(format!("login was answered by {other:?}").into()),
            }
        }
    }

    /// Sends one packet with a correct header.
    pub async fn send(&mut self, sequence: u8, payload: &[u8]) -> Result<()> {
        self.send_bytes(&framed(sequence, payload)).await
    }

    /// Sends bytes as they are. The server may have closed already, which the next read tells.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let _ = tokio::time::timeout(HANG, self.stream.write_all(bytes)).await.map_err(|_| "sending hangs")?;
        Ok(())
    }

    /// Sends no more, as a client that was cut off.
    pub async fn half_close(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// The next packet's payload; `None` when the server has closed.
    pub async fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let receive = async {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header).await?;
            let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
            self.stream.read_exact(&mut payload).await?;
            std::io::Result::Ok(payload)
        };
        match tokio::time::timeout(HANG, receive).await {
            Ok(Ok(payload)) => Ok(Some(payload)),
            Ok(Err(_)) => Ok(None),
            Err(_) => Err(format!("no answer in {} s", HANG.as_secs()).into()),
        }
    }

    /// The id that a COM_STMT_PREPARE gets; its other packets are read.
    pub async fn prepare(&mut self, sql: &str) -> Result<u32> {
        self.send(0, &command(COM_STMT_PREPARE, sql.as_bytes())).await?;
        let answer = self.read().await?.ok_or("closed at a prepare")?;
        let id = answer.get(1..5).filter(|_| answer[0] == 0).ok_or("prepare failed")?;
        let id = u32::from_le_bytes(id.try_into()?);
        self.settle().await?;
        Ok(id)
    }

    /// Asks for statistics, whose answer looks like no other, and reads up to it or to the end.
    pub async fn settle(&mut self) -> Result<Outcome> {
        self.send(0, &[COM_STATISTICS]).await?;
        self.read_to(b"Uptime: ").await
    }

    /// Reads until the server closes.
    pub async fn read_to_end(&mut self) -> Result<Outcome> {
        self.read_to(b"\0\0 nothing begins like this").await
    }

    async fn read_to(&mut self, marker: &[u8]) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        while let Some(payload) = self.read().await? {
            if payload.starts_with(marker) {
                outcome.alive = true;
                break;
            }
            if let [0xFF, low, high, text @ ..] = &payload[..] {
                outcome.errors.push((u16::from_le_bytes([*low, *high]), String::from_utf8_lossy(text).into_owned()));
            }
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// It was told this error, and nothing else.
    pub fn must_be(&self, code: u16, alive: bool) -> Result<()> {
        if self.errors.len() == 1 && self.errors[0].0 == code && self.alive == alive {
            return Ok(());
        }
        Err(format!("expected error {code} and the connection {}, got {self:?}", if alive { "open" } else { "closed" }).into())
    }

    /// It was told some error with a text, or was closed.
    pub fn must_be_refused(&self) -> Result<()> {
        if !self.alive || self.errors.iter().any(|(code, text)| *code >= 1000 && !text.is_empty()) {
            return Ok(());
        }
        Err(format!("expected an error or the end, got {self:?}").into())
    }
}

/// The handshake response of root without a password.
pub fn hello() -> Vec<u8> {
    let mut payload = CAPABILITIES.to_le_bytes().to_vec();
    payload.extend_from_slice(&(64_u32 << 20).to_le_bytes());
    payload.push(255);
    payload.extend_from_slice(&[0; 23]);
    payload.extend_from_slice(b"root\0");
    payload.push(0);
    payload.extend_from_slice(b"caching_sha2_password\0");
    payload
}

/// The short packet by which a client asks for TLS.
pub fn tls_request() -> Vec<u8> {
    let mut payload = (CAPABILITIES | 0x800).to_le_bytes().to_vec();
    payload.extend_from_slice(&(64_u32 << 20).to_le_bytes());
    payload.push(255);
    payload.extend_from_slice(&[0; 23]);
    payload
}

pub fn command(code: u8, rest: &[u8]) -> Vec<u8> {
    [&[code], rest].concat()
}

pub fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes[3] = sequence;
    bytes.extend_from_slice(payload);
    bytes
}
