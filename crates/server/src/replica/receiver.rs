//! Reads the binary log of the source: connects, asks from where the replica is, verifies events and hands them to the applier.
//!
//! There is no relay log. Events wait in a queue in memory for the applier; what is in it when the server ends is read again, because the position that
//! counts is the one that transactions commit. A slow applier holds the source's connection back.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use highkey_sql::replica::{Event, event_kind as kind};
use mysql_async::prelude::Queryable;
use mysql_async::{BinlogStream, BinlogStreamRequest, Conn, GnoInterval, OptsBuilder, Sid, SslOpts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::channel::{Channel, now_micros};
use super::event::{Grouping, Part, transaction_start};
use super::gtid::Gtid;
use super::position::{FIRST_OFFSET, Position};
use super::settings::Settings;

/// Bytes of events that wait for the applier; a larger event waits alone.
const QUEUE_BYTES: u32 = 64 << 20;
/// Events that wait.
const QUEUE_EVENTS: usize = 8192;

/// What the applier gets.
pub enum Item {
    Event {
        event: Event,
        part: Part,
        /// Its room in the queue.
        room: OwnedSemaphorePermit,
    },
    /// The connection is a new one and starts where the last whole transaction ended: what has come of another is void.
    Restarted,
}

/// The way to the applier; made anew with every start of it.
#[derive(Clone)]
pub struct Queue {
    items: mpsc::Sender<Item>,
    room: Arc<Semaphore>,
}

impl Queue {
    pub fn new() -> (Queue, mpsc::Receiver<Item>) {
        let (items, receiver) = mpsc::channel(QUEUE_EVENTS);
        (Queue { items, room: Arc::new(Semaphore::new(QUEUE_BYTES as usize)) }, receiver)
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        (QUEUE_BYTES as usize).saturating_sub(self.room.available_permits()) as u64
    }

    /// Tells the applier that what follows comes over a new connection. Err: it is gone.
    pub async fn restart(&self) -> Result<(), Ended> {
        self.items.send(Item::Restarted).await.map_err(|_| Ended::ApplierGone)
    }

    /// Err: the applier is gone.
    pub async fn push(&self, event: Event, part: Part) -> Result<(), Ended> {
        let bytes = u32::try_from(event.body.len()).unwrap_or(QUEUE_BYTES).clamp(1, QUEUE_BYTES);
        let room = self.room.clone().acquire_many_owned(bytes).await.map_err(|_| Ended::ApplierGone)?;
        self.items.send(Item::Event { event, part, room }).await.map_err(|_| Ended::ApplierGone)
    }

    pub fn same(&self, other: &Queue) -> bool {
        Arc::ptr_eq(&self.room, &other.room)
    }
}

/// Why reading ended.
pub enum Ended {
    /// The applier has ended: another one will come with another queue.
    ApplierGone,
    /// To be tried again.
    Lost(u16, String),
    /// Not to be tried again.
    Fatal(u16, String),
}

impl From<mysql_async::Error> for Ended {
    fn from(e: mysql_async::Error) -> Ended {
        match e {
            // What the source says of what was asked for will not change.
            mysql_async::Error::Server(e) if e.code == 1236 => Ended::Fatal(13114, format!("Got fatal error 1236 from master when reading data from binary log: '{}'", e.message)),
            mysql_async::Error::Server(e) => Ended::Lost(e.code, e.message),
            other => Ended::Lost(2013, other.to_string()),
        }
    }
}

/// Runs until it is stopped or fails for good, as the account that START REPLICA gave it.
pub async fn run(channel: Arc<Channel>, user: String, password: String, mut stop: watch::Receiver<bool>) {
    let mut attempts = 0;
    loop {
        let queue = tokio::select! {
            queue = channel.queue() => queue,
            () = stopped(&mut stop) => return,
        };
        let settings = Settings { user: user.clone(), password: password.clone(), ..channel.settings() };
        let ended = tokio::select! {
            ended = read(&channel, &settings, &queue, &mut attempts) => ended,
            () = stopped(&mut stop) => return,
        };
        match ended {
            Ended::ApplierGone => channel.forget_queue(&queue),
            Ended::Fatal(number, message) => {
                channel.receiver_failed(number, message);
                return;
            }
            Ended::Lost(number, message) => {
                attempts += 1;
                let Settings { user, host, port, connect_retry, .. } = &settings;
                channel.receiver_connecting(number, format!("error connecting to master '{user}@{host}:{port}' - retry-time: {connect_retry} retries: {attempts} message: {message}"));
                if settings.retry_count > 0 && attempts >= settings.retry_count {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(*connect_retry)) => {}
                    () = stopped(&mut stop) => return,
                }
            }
        }
    }
}

/// Waits until a thread of the replica is to stop.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The sender lives in the statement that waits for the thread.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Connects and reads until something ends it. A connection that has given an event resets the count of attempts.
async fn read(channel: &Channel, settings: &Settings, queue: &Queue, attempts: &mut u64) -> Ended {
    match stream(channel, settings, queue, attempts).await {
        Ok(never) => match never {},
        Err(ended) => ended,
    }
}

async fn stream(channel: &Channel, settings: &Settings, queue: &Queue, attempts: &mut u64) -> Result<Infallible, Ended> {
    let net_timeout = channel.net_timeout();
    channel.receiver_state("Connecting to master");
    let from = channel.received();
    let mut stream = match timeout(net_timeout, open(channel, settings, &from)).await {
        Ok(opened) => opened?,
        Err(_) => return Err(Ended::Lost(2003, format!("no answer within {} seconds", net_timeout.as_secs()))),
    };
    queue.restart().await?;
    let mut reading = Reading { position: from.clone(), transaction: None, grouping: Grouping::default(), skipping: false, from };
    channel.receiver_connected();
    loop {
        let event = match timeout(net_timeout, stream.next()).await {
            Ok(Some(event)) => event?,
            Ok(None) => return Err(Ended::Lost(2013, "the source ended the log".into())),
            Err(_) => return Err(Ended::Lost(2013, format!("nothing has come for {} seconds, not even a heartbeat", net_timeout.as_secs()))),
        };
        *attempts = 0;
        let event = checked(&event).map_err(|what| Ended::Fatal(1595, format!("Relay log write failure: {what}")))?;
        let part = reading.note(&event).map_err(|what| Ended::Fatal(1595, format!("Relay log write failure: {what}")))?;
        match event.kind {
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => channel.note_heartbeat(now_micros()),
            kind::MARIADB_START_ENCRYPTION => {}
            _ if reading.skipping && part != Part::Log => {}
            _ => queue.push(event, part).await?,
        }
        channel.note_read(queue, &reading.position, part.ends());
    }
}

/// Follows the log: which file and transaction an event belongs to.
struct Reading {
    /// The end of the last event; its GTIDs are those of whole transactions.
    position: Position,
    transaction: Option<Gtid>,
    grouping: Grouping,
    /// The transaction that has begun is one that the replica has.
    skipping: bool,
    from: Position,
}

impl Reading {
    fn note(&mut self, event: &Event) -> Result<Part, String> {
        let part = self.grouping.part(event)?;
        match event.kind {
            kind::ROTATE => (self.position.file, self.position.offset) = event.rotate()?,
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => {}
            _ if event.log_pos > 0 => self.position.offset = after(self.position.offset, event.log_pos),
            _ => {}
        }
        if part == Part::Start {
            self.transaction = transaction_start(event)?.gtid;
            self.skipping = self.transaction.as_ref().is_some_and(|gtid| self.from.gtids.contains(gtid));
        } else if part.ends() {
            if let Some(gtid) = self.transaction.take() {
                self.position.gtids.add(&gtid);
            }
        }
        Ok(part)
    }
}

/// The whole offset of which an event tells the lower 32 bits.
pub fn after(offset: u64, log_pos: u32) -> u64 {
    let whole = offset & !0xFFFF_FFFF | u64::from(log_pos);
    match offset.checked_sub(whole) {
        None => whole,
        Some(back) if back > 1 << 31 => whole + (1 << 32),
        // An event that was made for this connection.
        Some(_) => offset,
    }
}

/// An event as the connection gave it, its checksum verified.
fn checked(event: &mysql_async::binlog::events::Event) -> Result<Event, String> {
    use mysql_async::binlog::BinlogChecksumAlg;
    let header = event.header();
    let mut body = event.data().to_vec();
    let crc = |body: &[u8]| {
        let mut hash = crc32fast::Hasher::new();
        hash.update(&header.timestamp().to_le_bytes());
        hash.update(&[header.event_type_raw()]);
        hash.update(&header.server_id().to_le_bytes());
        hash.update(&header.event_size().to_le_bytes());
        hash.update(&header.log_pos().to_le_bytes());
        hash.update(&header.flags_raw().to_le_bytes());
        hash.update(body);
        hash.finalize().to_le_bytes()
    };
    match (event.footer().get_checksum_alg(), event.checksum()) {
        // The format description has its own way; events out of a compressed transaction have none.
        (Ok(Some(BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_CRC32)), Some(sum)) if header.event_type_raw() != kind::FORMAT_DESCRIPTION && sum != [0; 4] => {
            if crc(&body) != sum {
                return Err(format!("the event of type {} that ends at {} has a wrong checksum", header.event_type_raw(), header.log_pos()));
            }
        }
        // The first event of a connection comes before anything says whether there are checksums.
        (Ok(None), _) if header.event_type_raw() == kind::ROTATE && body.len() > 4 => {
            let (name, sum) = body.split_at(body.len() - 4);
            if crc(name) == sum {
                body.truncate(body.len() - 4);
            }
        }
        _ => {}
    }
    Ok(Event { timestamp: header.timestamp(), kind: header.event_type_raw(), server_id: header.server_id(), log_pos: header.log_pos(), body })
}

/// Connects, checks that this can be a source, and asks for its log.
async fn open(channel: &Channel, settings: &Settings, from: &Position) -> Result<BinlogStream, Ended> {
    let mut options = OptsBuilder::default()
        .ip_or_hostname(settings.host.clone())
        .tcp_port(settings.port)
        .user(Some(settings.user.clone()))
        .pass(Some(settings.password.clone()))
        .prefer_socket(false)
        .stmt_cache_size(0)
        // An event may be as large as a row.
        .max_allowed_packet(Some(1 << 30))
        .wait_timeout(Some(28_800));
    if settings.ssl {
        options = options.ssl_opts(tls(settings));
    }
    let mut source = Conn::new(options).await?;
    let lost = || Ended::Lost(2013, "the source gave no answer to a question about itself".into());
    let (server_id, version): (u64, String) = source.query_first("SELECT @@GLOBAL.server_id, VERSION()").await?.ok_or_else(lost)?;
    let mariadb = version.to_ascii_lowercase().contains("mariadb");
    if server_id == channel.server_id() {
        return Err(Ended::Fatal(
            13117,
            "Fatal error: The slave I/O thread stops because master and slave have equal MySQL server ids; these ids must be different for replication to work (or the --replicate-same-server-id option must be used on slave but this does not always make sense; please check the manual before using it).".into(),
        ));
    }
    let uuid: String = if mariadb { String::new() } else { source.query_first("SELECT @@GLOBAL.server_uuid").await?.ok_or_else(lost)? };
    channel.note_source(server_id, &uuid);
    let nanos = (channel.heartbeat_period(settings) * 1e9) as u64;
    source.query_drop(format!("SET @master_heartbeat_period = {nanos}, @source_heartbeat_period = {nanos}")).await?;
    let own = channel.server_uuid();
    source.query_drop(format!("SET @slave_uuid = '{own}', @replica_uuid = '{own}'")).await?;

    let mut request = BinlogStreamRequest::new(channel.server_id() as u32);
    let sids: Vec<Sid<'static>>;
    if mariadb {
        // 4: GTID events, and all that came before them.
        source.query_drop("SET @mariadb_slave_capability = 4").await?;
        if settings.auto_position {
            source.query_drop(format!("SET @slave_connect_state = '{}', @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0", from.gtids)).await?;
        }
    } else if settings.auto_position {
        let mode: String = source.query_first("SELECT @@GLOBAL.gtid_mode").await?.ok_or_else(lost)?;
        if !mode.starts_with("ON") {
            return Err(Ended::Fatal(13117, format!("The slave IO thread stops because the master has @@GLOBAL.GTID_MODE = {mode} and this server uses AUTO_POSITION = 1.")));
        }
        let mut have = from.gtids.clone();
        if let Some(executed) = channel.executed() {
            have.union(&executed);
        }
        sids = have.mysql_intervals().map(|(source, intervals)| sid(*source, intervals)).collect();
        request = request.with_gtid().with_gtid_set(sids);
    }
    let by_file = !settings.auto_position;
    let (file, offset) = if by_file { (from.file.as_bytes(), from.offset) } else { (&b""[..], FIRST_OFFSET) };
    Ok(source.get_binlog_stream(request.with_filename(file).with_pos(offset)).await?)
}

/// One source's part of a set; the end of an interval is exclusive on the wire.
fn sid(source: [u8; 16], intervals: &[(u64, u64)]) -> Sid<'static> {
    Sid::new(source).with_intervals(intervals.iter().map(|(first, last)| GnoInterval::new(*first, last + 1)).collect())
}

/// Without a CA the source's certificate is not asked about, as in MySQL.
fn tls(settings: &Settings) -> SslOpts {
    let verified = !settings.ssl_ca.is_empty();
    let mut options = SslOpts::default()
        .with_danger_accept_invalid_certs(!verified)
        .with_danger_skip_domain_validation(!settings.ssl_verify);
    if verified {
        options = options.with_root_certs(vec![std::path::PathBuf::from(&settings.ssl_ca).into()]).with_disable_built_in_roots(true);
    }
    if !settings.ssl_cert.is_empty() && !settings.ssl_key.is_empty() {
        let (cert, key) = (std::path::PathBuf::from(&settings.ssl_cert), std::path::PathBuf::from(&settings.ssl_key));
        options = options.with_client_identity(Some(mysql_async::ClientIdentity::new(cert.into(), key.into())));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::gtid::Gtids;

    #[test]
    fn offsets_beyond_4_gib_are_told_by_their_lower_half() {
        assert_eq!(after(4, 120), 120);
        assert_eq!(after(500, 120), 500, "made for this connection");
        assert_eq!(after(0xFFFF_FF00, 0x80), 0x1_0000_0080);
        assert_eq!(after(0x1_0000_0080, 0x100), 0x1_0000_0100);
    }

    #[test]
    fn what_the_replica_has_is_left_out() {
        let have = Position { gtids: Gtids::parse("00112233-4455-6677-8899-aabbccddeeff:1-2").unwrap(), ..Position::start() };
        let mut reading = Reading { position: have.clone(), transaction: None, grouping: Grouping::default(), skipping: false, from: have };
        let event = |kind, log_pos, body: &[u8]| Event { timestamp: 0, kind, server_id: 1, log_pos, body: body.to_vec() };
        let gtid = |number: u8| [&[0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF, number][..], &[0; 7]].concat();
        reading.note(&event(kind::ROTATE, 0, b"\x04\0\0\0\0\0\0\0log.000003")).unwrap();
        assert_eq!((reading.position.file.as_str(), reading.position.offset), ("log.000003", 4));
        reading.note(&event(kind::GTID, 200, &gtid(2))).unwrap();
        assert!(reading.skipping);
        assert_eq!(reading.note(&event(kind::XID, 300, &[0; 8])), Ok(Part::Commit));
        reading.note(&event(kind::GTID, 400, &gtid(3))).unwrap();
        assert!(!reading.skipping && reading.position.gtids.to_string().ends_with(":1-2"));
        reading.note(&event(kind::XID, 500, &[0; 8])).unwrap();
        assert_eq!((reading.position.offset, reading.position.gtids.to_string()), (500, "00112233-4455-6677-8899-aabbccddeeff:1-3".into()));
    }
}
