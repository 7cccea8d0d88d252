//! A socket with MySQL's packets on it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures::FutureExt;
use highkey_protocol::{PacketError, PacketReader, PacketWriter};
use highkey_sql::{Instance, ProcessEntry, StatusCounter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{CipherSuite, ProtocolVersion};
use tokio_rustls::server::TlsStream;

/// A TCP, TLS or local socket.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Nothing more comes from the other side, once what it has sent is read.
    fn is_closed_by_peer(&self) -> bool;
}

impl Stream for TcpStream {
    fn is_closed_by_peer(&self) -> bool {
        is_closed(self.ready(Interest::READABLE))
    }
}

impl Stream for UnixStream {
    fn is_closed_by_peer(&self) -> bool {
        is_closed(self.ready(Interest::READABLE))
    }
}

impl Stream for TlsStream<Prefixed> {
    fn is_closed_by_peer(&self) -> bool {
        self.get_ref().0.stream.is_closed_by_peer()
    }
}

/// To the source of a replica.
impl Stream for tokio_rustls::client::TlsStream<Box<dyn Stream>> {
    fn is_closed_by_peer(&self) -> bool {
        self.get_ref().0.is_closed_by_peer()
    }
}

/// By what the system has told of the socket so far; nothing is taken from it.
fn is_closed(ready: impl Future<Output = io::Result<Ready>>) -> bool {
    ready.now_or_never().is_some_and(|ready| ready.is_ok_and(|ready| ready.is_read_closed()))
}

/// Answers are sent in pieces of about this many bytes.
pub const FLUSH_BYTES: usize = 64 * 1024;

/// A packet, or what was wrong with the bytes.
pub type Received = Result<Vec<u8>, PacketError>;

/// One connection's bytes in both directions.
pub struct Wire {
    /// Locked for the length of a read or a write. A progress report is the only other writer (`progress.rs`), and `watch.rs` looks at it.
    stream: Arc<Mutex<Box<dyn Stream>>>,
    instance: Arc<Instance>,
    pub reader: PacketReader,
    pub writer: PacketWriter,
    /// How long a client may take nothing of what is sent (`net_write_timeout`).
    pub write_timeout: Duration,
    /// Who counts the bytes, once there is a session.
    pub process: Option<Arc<ProcessEntry>>,
    /// Set once the connection is encrypted.
    pub tls: Option<Tls>,
}

/// What was agreed for an encrypted connection, in the words of Ssl_cipher and Ssl_version.
pub struct Tls {
    pub cipher: String,
    pub version: String,
}

impl Wire {
    pub fn new(stream: Box<dyn Stream>, instance: Arc<Instance>) -> Self {
        // Until a client has proved who it is, it may send little.
        let reader = PacketReader::new(1 << 20);
        let stream = Arc::new(Mutex::new(stream));
        Self { stream, instance, reader, writer: PacketWriter::default(), write_timeout: Duration::from_secs(60), process: None, tls: None }
    }

    /// The next logical packet; `None` at the end of the stream between packets. Safe to cancel.
    pub async fn receive(&mut self) -> io::Result<Option<Received>> {
        loop {
            match self.reader.next_packet() {
                Ok(Some(packet)) => return Ok(Some(Ok(packet))),
                Ok(None) => {}
                Err(e) => return Ok(Some(Err(e))),
            }
            let buffer = self.reader.buffer();
            buffer.reserve(4096);
            let n = self.stream.lock().await.read_buf(buffer).await?;
            self.count(StatusCounter::BytesReceived, n as u64);
            if n == 0 {
                return if self.reader.is_mid_packet() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(None) };
            }
        }
    }

    fn count(&self, counter: StatusCounter, n: u64) {
        match &self.process {
            Some(process) => process.status().add(counter, n),
            None => self.instance.count(counter, n),
        }
    }

    /// The next packet of an exchange in which the server spoke last.
    pub async fn receive_reply(&mut self) -> io::Result<Received> {
        self.reader.set_sequence(self.writer.sequence());
        let reply = self.receive().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.writer.set_sequence(self.reader.sequence());
        Ok(reply)
    }

    /// Sends what was written, however long it takes as long as the client takes some of it. One that has been killed is not waited for.
    pub async fn flush(&mut self) -> io::Result<()> {
        if self.writer.is_empty() {
            return Ok(());
        }
        let bytes = self.writer.bytes();
        let send = async {
            let mut stream = self.stream.lock().await;
            let mut left = bytes;
            while !left.is_empty() {
                match within(self.write_timeout, stream.write(left)).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    sent => left = &left[sent..],
                }
            }
            within(self.write_timeout, stream.flush()).await
        };
        match &self.process {
            None => send.await?,
            Some(process) => tokio::select! {
                biased;
                // What can be sent at once is: the error by which the client learns of the KILL.
                sent = send => sent?,
                () = process.connection_killed() => return Err(io::ErrorKind::ConnectionAborted.into()),
            },
        }
        self.count(StatusCounter::BytesSent, bytes.len() as u64);
        self.writer.clear();
        Ok(())
    }

    /// Continues under TLS; bytes that came with the request are the client's TLS hello.
    pub async fn start_tls(mut self, acceptor: &TlsAcceptor) -> io::Result<Self> {
        let early = self.reader.buffer().split();
        let stream = Arc::into_inner(self.stream).expect("shared only while a statement runs").into_inner();
        self.instance.count(StatusCounter::SslAccepts, 1);
        let stream = acceptor.accept(Prefixed { early, stream }).await?;
        self.instance.count(StatusCounter::SslFinishedAccepts, 1);
        let agreed = stream.get_ref().1;
        self.tls = Some(Tls {
            cipher: agreed.negotiated_cipher_suite().map_or(String::new(), |suite| iana_name(suite.suite())),
            version: match agreed.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3".into(),
                _ => "TLSv1.2".into(),
            },
        });
        self.stream = Arc::new(Mutex::new(Box::new(stream)));
        Ok(self)
    }

    /// Closes the sending side, so that the client reads to the end.
    pub async fn shutdown(&mut self) {
        let close = async { self.stream.lock().await.shutdown().await };
        let _ = tokio::time::timeout(Duration::from_secs(1), close).await;
    }

    /// The connection's bytes, for a writer beside this one.
    pub fn stream(&self) -> Arc<Mutex<Box<dyn Stream>>> {
        self.stream.clone()
    }
}

/// What comes of a part of a write, for which a client may take so long.
async fn within<T>(patience: Duration, part: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut part = std::pin::pin!(part);
    match futures::poll!(part.as_mut()) {
        // Nearly always: no timer is made.
        Poll::Ready(done) => done,
        Poll::Pending => tokio::time::timeout(patience, part).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
    }
}

/// A stream of which some bytes have been read already.
struct Prefixed {
    early: BytesMut,
    stream: Box<dyn Stream>,
}

impl AsyncRead for Prefixed {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let n = self.early.len().min(buf.remaining());
            buf.put_slice(&self.early[..n]);
            self.early.advance(n);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Prefixed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The registered name of a cipher suite. rustls writes TLS13_ where the others of that version are registered as TLS_ too.
pub fn iana_name(suite: CipherSuite) -> String {
    let name = format!("{suite:?}");
    name.strip_prefix("TLS13_").map_or(name.clone(), |rest| format!("TLS_{rest}"))
}
