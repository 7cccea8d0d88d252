//! The connection to the source. It is our own, out of `mysql_common`'s packets: acknowledgements go back on it while events come, which no client library does.

use std::io::{self, Cursor, Read};
use std::time::Duration;

use highkey_protocol::{CapabilityFlags, PacketError, PacketReader, PacketWriter};
use mysql_common::binlog::EventStreamReader;
use mysql_common::binlog::consts::{BinlogVersion, EventType, TransactionPayloadCompressionType};
use mysql_common::binlog::events::{BinlogEventHeader, Event, TransactionPayloadEvent};
use mysql_common::io::ParseBuf;
use mysql_common::packets::binlog_request::BinlogRequest;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, ComRegisterSlave, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;

use super::login::Login;
use super::settings::Settings;
use super::tls::secured;
use crate::connection::Stream;

/// An event may be as large as a row.
const MAX_PACKET: usize = 1 << 30;
/// utf8mb4_general_ci, which every source knows.
const COLLATION: u8 = 45;
const COM_QUERY: u8 = 3;
/// The first byte of an acknowledgement, and before an event of a source that wants some.
const SEMI_SYNC: u8 = 0xEF;

const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA);

/// Why the source did not do what it was asked for.
#[derive(Debug)]
pub enum SourceError {
    /// It said so: number and message.
    Server(u16, String),
    /// The connection does not go on.
    Lost(String),
}

impl From<io::Error> for SourceError {
    fn from(e: io::Error) -> SourceError {
        SourceError::Lost(e.to_string())
    }
}

impl From<PacketError> for SourceError {
    fn from(e: PacketError) -> SourceError {
        lost(match e {
            PacketError::TooLarge => "a packet of more than 1 GiB came",
            PacketError::OutOfOrder => "packets came out of order",
        })
    }
}

pub type Result<T, E = SourceError> = std::result::Result<T, E>;

pub fn lost(what: impl Into<String>) -> SourceError {
    SourceError::Lost(what.into())
}

/// The next packet, if all of it has come. An error of the source's is one here.
fn arrived(reader: &mut PacketReader) -> Result<Option<Vec<u8>>> {
    let Some(packet) = reader.next_packet()? else { return Ok(None) };
    match packet.first() {
        Some(0xFF) => Err(refusal(&packet)),
        Some(_) => Ok(Some(packet)),
        None => Err(lost("an empty packet came")),
    }
}

/// Waits for some bytes, no matter how many. Safe to cancel.
async fn read(stream: &mut (impl AsyncRead + Unpin), reader: &mut PacketReader) -> Result<()> {
    reader.buffer().reserve(64 << 10);
    match stream.read_buf(reader.buffer()).await? {
        0 => Err(lost("the source has closed the connection")),
        _ => Ok(()),
    }
}

/// What an error packet says. Before the handshake is over it has no SQLSTATE.
fn refusal(packet: &[u8]) -> SourceError {
    let mut rest = ParseBuf(&packet[1..]);
    let code = rest.checked_eat_u16_le().unwrap_or_default();
    let text = rest.eat_all();
    let message = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    SourceError::Server(code, String::from_utf8_lossy(message).into_owned())
}

fn is_eof(packet: &[u8]) -> bool {
    packet[0] == 0xFE && packet.len() < 9
}

/// A connection that asks.
pub struct Source {
    stream: Box<dyn Stream>,
    reader: PacketReader,
    writer: PacketWriter,
}

impl Source {
    pub async fn connect(settings: &Settings) -> Result<Source> {
        let stream = match settings.bind.as_str() {
            "" => TcpStream::connect((settings.host.as_str(), settings.port)).await?,
            bind => connect_from(bind, &settings.host, settings.port).await?,
        };
        stream.set_nodelay(true)?;
        let mut source = Source { stream: Box::new(stream), reader: PacketReader::new(MAX_PACKET), writer: PacketWriter::default() };
        let packet = source.receive().await?;
        let greeting: HandshakePacket<'_> = ParseBuf(&packet).parse(())?;
        let mut capabilities = CAPABILITIES & greeting.capabilities();
        if settings.ssl {
            if !greeting.capabilities().contains(CapabilityFlags::CLIENT_SSL) {
                return Err(SourceError::Server(2026, "SSL connection error: SSL is required but the server doesn't support it".into()));
            }
            capabilities |= CapabilityFlags::CLIENT_SSL;
            if source.reader.is_mid_packet() {
                // What came in the clear would be believed under TLS.
                return Err(lost("the source sent more than its greeting before TLS"));
            }
            source.send(|out| SslRequest::new(capabilities, MAX_PACKET as u32, COLLATION).serialize(out)).await?;
            source.stream = secured(source.stream, settings).await?;
        }
        source.authenticate(&greeting, capabilities, settings).await?;
        Ok(source)
    }

    async fn authenticate(&mut self, greeting: &HandshakePacket<'_>, capabilities: CapabilityFlags, settings: &Settings) -> Result<()> {
        let (mut login, answer) = Login::begin(settings, greeting.auth_plugin(), greeting.nonce())?;
        // The version only chooses the collation.
        let response = HandshakeResponse::new(Some(answer), (8, 0, 0), Some(settings.user.as_bytes()), None::<&[u8]>, Some(login.plugin()), capabilities, None, MAX_PACKET as u32);
        self.send(|out| response.serialize(out)).await?;
        loop {
            let packet = self.receive().await?;
            let answer = match packet[0] {
                0 => return Ok(()),
                // Nothing but the first byte: the method of before 4.1, which has no name yet.
                0xFE if packet.len() == 1 => login.switch(AuthPlugin::MysqlOldPassword, &[])?,
                0xFE => {
                    let request: AuthSwitchRequest<'_> = ParseBuf(&packet).parse(())?;
                    login.switch(request.auth_plugin(), request.plugin_data())?
                }
                1 => login.answer(&packet[1..])?,
                other => return Err(lost(format!("a packet that begins with {other} came during the login"))),
            };
            if let Some(answer) = answer {
                self.send(|out| out.extend(answer)).await?;
            }
        }
    }

    async fn receive(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(packet) = arrived(&mut self.reader)? {
                return Ok(packet);
            }
            read(&mut self.stream, &mut self.reader).await?;
        }
    }

    /// Sends the next packet of an exchange.
    async fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.writer.set_sequence(self.reader.sequence());
        self.writer.packet(fill);
        write(&mut self.stream, &mut self.writer).await?;
        self.reader.set_sequence(self.writer.sequence());
        Ok(())
    }

    /// Begins an exchange.
    async fn command(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.reader.reset_sequence();
        self.send(fill).await
    }

    /// Runs a statement: the first row that it gives, NULL as an empty text.
    pub async fn row(&mut self, sql: &str) -> Result<Option<Vec<String>>> {
        self.command(|out| {
            out.push(COM_QUERY);
            out.extend_from_slice(sql.as_bytes());
        })
        .await?;
        let head = self.receive().await?;
        if head[0] == 0 {
            return Ok(None);
        }
        let columns = ParseBuf(&head).checked_eat_lenenc_int().unwrap_or_default();
        // Their definitions, and what ends these.
        for _ in 0..=columns {
            self.receive().await?;
        }
        let mut first = None;
        loop {
            let packet = self.receive().await?;
            if is_eof(&packet) {
                return Ok(first);
            }
            let mut rest = ParseBuf(&packet);
            let mut value = || match rest.0.first() {
                Some(0xFB) => rest.checked_skip(1).then(String::new),
                _ => rest.checked_eat_lenenc_str().map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            };
            let row: Option<Vec<String>> = (0..columns).map(|_| value()).collect();
            first = first.or(Some(row.ok_or_else(|| lost("a row was cut off"))?));
        }
    }

    /// Runs a query of one value; an error if it gives none.
    pub async fn value(&mut self, sql: &str) -> Result<String> {
        let row = self.row(sql).await?;
        row.and_then(|row| row.into_iter().next()).ok_or_else(|| lost("the source gave no answer to a question about itself"))
    }

    /// Turns the connection into the stream of events that the request asks for. `semi_sync`: the source has been told that some are acknowledged.
    pub async fn dump(mut self, request: &BinlogRequest<'_>, semi_sync: bool) -> Result<(Events, Acknowledgements)> {
        self.command(|out| ComRegisterSlave::new(request.server_id()).serialize(out)).await?;
        self.receive().await?;
        self.command(|out| request.as_cmd().serialize(out)).await?;
        let (read, write) = tokio::io::split(self.stream);
        let decoder = EventStreamReader::new(BinlogVersion::Version4);
        Ok((Events { stream: read, reader: self.reader, decoder, compressed: None, semi_sync }, Acknowledgements { stream: write, writer: self.writer }))
    }
}

/// Connects from an address of this machine, by name or number (SOURCE_BIND).
async fn connect_from(bind: &str, host: &str, port: u16) -> Result<TcpStream> {
    let ours: Vec<_> = lookup_host((bind, 0)).await.map_err(|e| lost(format!("SOURCE_BIND = '{bind}': {e}")))?.collect();
    let mut why = lost(format!("SOURCE_BIND = '{bind}' is no address from which '{host}' can be reached"));
    for theirs in lookup_host((host, port)).await? {
        let Some(own) = ours.iter().find(|own| own.is_ipv4() == theirs.is_ipv4()) else { continue };
        let socket = if theirs.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.bind(*own).map_err(|e| lost(format!("SOURCE_BIND = '{bind}': {e}")))?;
        match socket.connect(theirs).await {
            Ok(stream) => return Ok(stream),
            Err(e) => why = e.into(),
        }
    }
    Err(why)
}

async fn write(stream: &mut (impl AsyncWriteExt + Unpin), writer: &mut PacketWriter) -> Result<()> {
    stream.write_all(writer.bytes()).await?;
    stream.flush().await?;
    writer.clear();
    Ok(())
}

/// The events of the source's binary log as they come.
pub struct Events {
    stream: ReadHalf<Box<dyn Stream>>,
    reader: PacketReader,
    decoder: EventStreamReader,
    /// The events of a compressed transaction that are still to be given.
    compressed: Option<Cursor<Vec<u8>>>,
    semi_sync: bool,
}

impl Events {
    /// The next event, and whether the source waits for an acknowledgement of what ends with it. `None`: there are no more. An error if nothing comes for
    /// `silence`; a long event over a slow line may take longer. Safe to cancel.
    pub async fn next(&mut self, silence: Duration) -> Result<Option<(Event, bool)>> {
        if let Some(events) = &mut self.compressed {
            match self.decoder.read_decompressed(events)? {
                Some(event) => return Ok(Some((event, false))),
                None => self.compressed = None,
            }
        }
        let packet = loop {
            if let Some(packet) = arrived(&mut self.reader)? {
                break packet;
            }
            match timeout(silence, read(&mut self.stream, &mut self.reader)).await {
                Ok(read) => read?,
                Err(_) => return Err(lost(format!("nothing has come for {} seconds, not even a heartbeat", silence.as_secs()))),
            }
        };
        if is_eof(&packet) {
            return Ok(None);
        }
        let Some((bytes, acknowledge)) = unwrapped(&packet, self.semi_sync) else {
            return Err(lost("a packet came that is no event"));
        };
        if acknowledge {
            // Acknowledgements are numbered too, so the source counts anew, as if the event were an answer to one.
            self.reader.set_sequence(1);
        }
        if !is_whole(bytes) {
            return Err(lost("an event was cut off"));
        }
        let Some(event) = self.decoder.read(bytes)? else { return Err(lost("an event was cut off")) };
        if event.header().event_type_raw() == EventType::TRANSACTION_PAYLOAD_EVENT as u8 {
            self.compressed = Some(Cursor::new(decompressed(&event.read_event::<TransactionPayloadEvent<'_>>()?)?));
        }
        Ok(Some((event, acknowledge)))
    }
}

/// Bytes of the event at the start of `bytes`, as its header says.
fn event_size(bytes: &[u8]) -> Option<usize> {
    let size = bytes.get(9..13)?.try_into().map(u32::from_le_bytes).ok()? as usize;
    (size >= BinlogEventHeader::LEN).then_some(size)
}

/// One event and nothing else. All but a STOP have more than a header, and room for a checksum.
fn is_whole(bytes: &[u8]) -> bool {
    event_size(bytes) == Some(bytes.len()) && (bytes.len() >= BinlogEventHeader::LEN + 4 || bytes[4] == EventType::STOP_EVENT as u8)
}

/// The events of a compressed transaction. What is not as long as it says is refused: a part of it would be a part of the transaction.
fn decompressed(payload: &TransactionPayloadEvent<'_>) -> Result<Vec<u8>> {
    let mut events = Vec::new();
    if payload.algorithm() == TransactionPayloadCompressionType::NONE {
        events.extend_from_slice(payload.payload_raw());
    } else {
        let size = payload.uncompressed_size();
        if size > MAX_PACKET as u64 {
            return Err(lost("a compressed transaction of more than 1 GiB came"));
        }
        payload.decompressed()?.take(size + 1).read_to_end(&mut events)?;
        if events.len() as u64 != size {
            return Err(lost("a compressed transaction is not as long as it says"));
        }
    }
    let mut rest = &events[..];
    while !rest.is_empty() {
        rest = event_size(rest).and_then(|size| rest.get(size..)).ok_or_else(|| lost("an event of a compressed transaction was cut off"))?;
    }
    Ok(events)
}

/// The event that a packet of the stream has, and whether it is to be acknowledged.
fn unwrapped(packet: &[u8], semi_sync: bool) -> Option<(&[u8], bool)> {
    match (semi_sync, packet) {
        (false, [0, event @ ..]) => Some((event, false)),
        (true, [0, SEMI_SYNC, acknowledge, event @ ..]) => Some((event, acknowledge & 1 != 0)),
        _ => None,
    }
}

/// The way back to the source.
pub struct Acknowledgements {
    stream: WriteHalf<Box<dyn Stream>>,
    writer: PacketWriter,
}

impl Acknowledgements {
    /// Tells that nothing is lost any more of what is before that place in the source's files.
    pub async fn send(&mut self, file: &str, offset: u64) -> Result<()> {
        self.writer.set_sequence(0);
        self.writer.packet(|out| acknowledgement(file, offset, out));
        write(&mut self.stream, &mut self.writer).await
    }
}

fn acknowledgement(file: &str, offset: u64, out: &mut Vec<u8>) {
    out.push(SEMI_SYNC);
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(file.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_an_event_depends_on_what_was_agreed() {
        assert_eq!(unwrapped(&[0, 1, 2], false), Some((&[1, 2][..], false)));
        assert_eq!(unwrapped(&[0, SEMI_SYNC, 1, 7], true), Some((&[7][..], true)));
        assert_eq!(unwrapped(&[0, SEMI_SYNC, 0, 7], true), Some((&[7][..], false)));
        for (packet, semi_sync) in [(&[0, 1, 2][..], true), (&[0, SEMI_SYNC][..], true), (&[5, 1][..], false)] {
            assert_eq!(unwrapped(packet, semi_sync), None, "{packet:?}");
        }
        let mut packet = Vec::new();
        acknowledgement("b.000002", 0x0102, &mut packet);
        assert_eq!(packet, b"\xEF\x02\x01\0\0\0\0\0\0b.000002");
    }

    #[tokio::test]
    async fn a_connection_comes_from_where_it_is_bound() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let _stream = connect_from("127.0.0.3", "127.0.0.1", port).await.unwrap();
        assert_eq!(listener.accept().await.unwrap().1.ip().to_string(), "127.0.0.3");
        // No address of ours, and one of another family.
        for bind in ["192.0.2.1", "::1"] {
            assert!(matches!(connect_from(bind, "127.0.0.1", port).await, Err(SourceError::Lost(message)) if message.contains("SOURCE_BIND")), "{bind}");
        }
    }

    #[test]
    fn errors_have_a_state_or_not() {
        for packet in [&b"\xFF\x15\x04#28000Access denied"[..], b"\xFF\x15\x04Access denied"] {
            assert!(matches!(refusal(packet), SourceError::Server(1045, message) if message == "Access denied"));
        }
    }

    /// An event of a type with a body, as its header says.
    fn event(kind: EventType, body: &[u8]) -> Vec<u8> {
        let mut event = vec![0; BinlogEventHeader::LEN];
        event[4] = kind as u8;
        event[9..13].copy_from_slice(&((BinlogEventHeader::LEN + body.len()) as u32).to_le_bytes());
        event.extend_from_slice(body);
        event
    }

    #[test]
    fn what_is_cut_off_is_no_event() {
        let xid = event(EventType::XID_EVENT, &[7; 12]);
        assert!(is_whole(&xid) && is_whole(&event(EventType::STOP_EVENT, &[])));
        for end in 0..xid.len() {
            assert!(!is_whole(&xid[..end]), "{end} bytes");
        }
        assert!(!is_whole(&[&xid[..], &[0]].concat()) && !is_whole(&event(EventType::XID_EVENT, &[])));
    }

    #[test]
    fn a_compressed_transaction_is_whole_or_refused() {
        let events = [event(EventType::QUERY_EVENT, b"BEGIN"), event(EventType::XID_EVENT, &[7; 8])].concat();
        let plain = |events: &[u8]| decompressed(&TransactionPayloadEvent::new(events.len() as u64, TransactionPayloadCompressionType::NONE, 0, events.to_vec()));
        assert_eq!(plain(&events).unwrap(), events);
        for end in 1..events.len() {
            assert_eq!(plain(&events[..end]).is_ok(), end == BinlogEventHeader::LEN + 5, "{end} bytes");
        }
        for (size, payload) in [(u64::MAX, &b"x"[..]), (100, b"not compressed"), (1 << 40, b"")] {
            let payload = TransactionPayloadEvent::new(payload.len() as u64, TransactionPayloadCompressionType::ZSTD, size, payload.to_vec());
            assert!(decompressed(&payload).is_err(), "{size}");
        }
    }
}
