//! Reads the binary log of the source: connects, asks from where the replica is, verifies events and hands them to the applier.
//!
//! There is no relay log. Events wait in a queue in memory for the applier; what is in it when the server ends is read again, because the position that
//! counts is the one that transactions commit. A slow applier holds the source's connection back.
//!
//! A source that waits for replicas (semi-synchronous replication) is told of a transaction when it is durable here: nothing less would survive our own end.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use highkey_sql::replica::{Event, ReplicaTransaction, event_kind as kind};
use mysql_common::packets::binlog_request::BinlogRequest;
use mysql_common::packets::{GnoInterval, Sid};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::channel::{Channel, now_micros};
use super::event::{Grouping, Part, transaction_start};
use super::gtid::Gtid;
use super::position::{FIRST_OFFSET, Position};
use super::settings::Settings;
use super::source::{Acknowledgements, Events, Source, SourceError};

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

impl From<SourceError> for Ended {
    fn from(e: SourceError) -> Ended {
        match e {
            // What the source says of what was asked for will not change.
            SourceError::Server(1236, message) => Ended::Fatal(13114, format!("Got fatal error 1236 from master when reading data from binary log: '{message}'")),
            SourceError::Server(code, message) => Ended::Lost(code, message),
            SourceError::Lost(message) => Ended::Lost(2013, message),
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
            Ended::ApplierGone => {
                channel.forget_queue(&queue);
                channel.receiver_waits();
            }
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
    let Opened { events, acknowledgements, semi_sync } = match timeout(net_timeout, open(channel, settings, &from)).await {
        Ok(opened) => opened?,
        Err(_) => return Err(Ended::Lost(2003, format!("no answer within {} seconds", net_timeout.as_secs()))),
    };
    queue.restart().await?;
    channel.receiver_connected(semi_sync);
    let asks = Asks::default();
    tokio::select! {
        ended = follow(channel, queue, attempts, events, from, &asks) => ended,
        ended = acknowledge(channel, acknowledgements, &asks), if semi_sync => ended,
    }
}

/// Hands events to the applier, and says what is to be acknowledged.
async fn follow(channel: &Channel, queue: &Queue, attempts: &mut u64, mut events: Events, from: Position, asks: &Asks) -> Result<Infallible, Ended> {
    let net_timeout = channel.net_timeout();
    let mut reading = Reading::new(from);
    loop {
        let (event, acknowledge) = events.next(net_timeout).await?.ok_or_else(|| Ended::Lost(2013, "the source ended the log".into()))?;
        *attempts = 0;
        let event = checked(&event).map_err(|what| Ended::Fatal(1595, format!("Relay log write failure: {what}")))?;
        let part = reading.note(&event).map_err(|what| Ended::Fatal(1595, format!("Relay log write failure: {what}")))?;
        match event.kind {
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => channel.note_heartbeat(now_micros()),
            kind::MARIADB_START_ENCRYPTION => {}
            _ if reading.skipping && part != Part::Log => {}
            _ => queue.push(event, part).await?,
        }
        channel.note_read(queue, &reading.position, reading.begun.take(), part.ends());
        if acknowledge {
            asks.add(reading.asked());
        }
    }
}

/// The source waits until this is safe.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    /// As `Position::number` counts: the transactions up to this one.
    number: u64,
    file: String,
    offset: u64,
}

/// What the source waits for, in its order. Of one number the last: there are no more of them than transactions that wait for the applier.
#[derive(Default)]
struct Asks {
    list: Mutex<VecDeque<Asked>>,
    more: Notify,
}

impl Asks {
    fn add(&self, asked: Asked) {
        {
            let mut list = self.list.lock();
            match list.back_mut().filter(|last| last.number == asked.number) {
                // A place is acknowledged with all before it.
                Some(last) => *last = asked,
                None => list.push_back(asked),
            }
        }
        self.more.notify_one();
    }

    /// Waits until there is one: the number of the first.
    async fn first(&self) -> u64 {
        loop {
            let first = self.list.lock().front().map(|asked| asked.number);
            match first {
                Some(number) => return number,
                None => self.more.notified().await,
            }
        }
    }

    /// Removes those that are done: the last of them.
    fn take(&self, done: u64) -> Option<Asked> {
        let mut list = self.list.lock();
        let mut due = None;
        while list.front().is_some_and(|asked| asked.number <= done) {
            due = list.pop_front();
        }
        due
    }
}

/// Acknowledges what is durable here, the last of several that are.
async fn acknowledge(channel: &Channel, mut acknowledgements: Acknowledgements, asks: &Asks) -> Result<Infallible, Ended> {
    let mut applied = channel.applied_number();
    loop {
        let first = asks.first().await;
        // The sender is the channel's.
        let done = applied.wait_for(|number| *number >= first).await.map_or(first, |number| *number);
        let Some(due) = asks.take(done) else { continue };
        channel.make_durable().await.map_err(|e| Ended::Lost(e.code, e.message))?;
        match timeout(channel.net_timeout(), acknowledgements.send(&due.file, due.offset)).await {
            Ok(sent) => sent?,
            Err(_) => return Err(Ended::Lost(2013, "the source takes no acknowledgement".into())),
        }
    }
}

/// Follows the log: which file and transaction an event belongs to.
struct Reading {
    /// The end of the last event; its GTIDs and its number are those of whole transactions, as the applier counts them.
    position: Position,
    transaction: Option<Gtid>,
    grouping: Grouping,
    /// The last event is in the middle of a transaction.
    inside: bool,
    /// The transaction that has begun is one that the replica has.
    skipping: bool,
    /// The transaction that has begun with the last event, if the replica does not have it.
    begun: Option<ReplicaTransaction>,
    from: Position,
}

impl Reading {
    fn new(from: Position) -> Reading {
        Reading { position: from.clone(), transaction: None, grouping: Grouping::default(), inside: false, skipping: false, begun: None, from }
    }

    /// What an acknowledgement of the last event means.
    fn asked(&self) -> Asked {
        let of_this = self.inside && !self.skipping;
        Asked { number: self.position.number + u64::from(of_this), file: self.position.file.clone(), offset: self.position.offset }
    }

    fn note(&mut self, event: &Event) -> Result<Part, String> {
        let part = self.grouping.part(event)?;
        match event.kind {
            kind::ROTATE => (self.position.file, self.position.offset) = event.rotate()?,
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => {}
            _ if event.log_pos > 0 => self.position.offset = after(self.position.offset, event.log_pos),
            _ => {}
        }
        if part == Part::Start {
            let start = transaction_start(event)?;
            self.transaction = start.gtid;
            self.skipping = self.transaction.as_ref().is_some_and(|gtid| self.from.gtids.contains(gtid));
            self.begun = (!self.skipping).then(|| start.shown(now_micros()));
        } else if part.ends() {
            if let Some(gtid) = self.transaction.take() {
                self.position.gtids.add(&gtid);
            }
            self.position.number += u64::from(!self.skipping);
        }
        if part != Part::Log {
            self.inside = !part.ends();
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
fn checked(event: &mysql_common::binlog::events::Event) -> Result<Event, String> {
    use mysql_common::binlog::consts::BinlogChecksumAlg;
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
        (Ok(None | Some(BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_OFF)), _) if header.event_type_raw() == kind::ROTATE && body.len() > 4 => {
            let (name, sum) = body.split_at(body.len() - 4);
            if crc(name) == sum {
                body.truncate(body.len() - 4);
            }
        }
        _ => {}
    }
    Ok(Event { timestamp: header.timestamp(), kind: header.event_type_raw(), server_id: header.server_id(), log_pos: header.log_pos(), body })
}

/// The source's log, being read.
struct Opened {
    events: Events,
    acknowledgements: Acknowledgements,
    /// The source says which events are to be acknowledged.
    semi_sync: bool,
}

/// Connects, checks that this can be a source, and asks for its log.
async fn open(channel: &Channel, settings: &Settings, from: &Position) -> Result<Opened, Ended> {
    let mut source = Source::connect(settings).await?;
    let server_id: u64 = source.value("SELECT @@GLOBAL.server_id").await?.parse().unwrap_or_default();
    let mariadb = source.value("SELECT VERSION()").await?.to_ascii_lowercase().contains("mariadb");
    if server_id == channel.server_id() {
        return Err(Ended::Fatal(
            13117,
            "Fatal error: The slave I/O thread stops because master and slave have equal MySQL server ids; these ids must be different for replication to work (or the --replicate-same-server-id option must be used on slave but this does not always make sense; please check the manual before using it).".into(),
        ));
    }
    let uuid = if mariadb { String::new() } else { source.value("SELECT @@GLOBAL.server_uuid").await? };
    channel.note_source(server_id, &uuid);
    let nanos = (channel.heartbeat_period(settings) * 1e9) as u64;
    source.row(&format!("SET @master_heartbeat_period = {nanos}, @source_heartbeat_period = {nanos}")).await?;
    let own = channel.server_uuid();
    source.row(&format!("SET @slave_uuid = '{own}', @replica_uuid = '{own}'")).await?;
    source.row("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum").await?;

    let mut request = BinlogRequest::new(channel.server_id() as u32);
    if mariadb {
        // 4: GTID events, and all that came before them.
        source.row("SET @mariadb_slave_capability = 4").await?;
        if settings.auto_position {
            source.row(&format!("SET @slave_connect_state = '{}', @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0", from.gtids)).await?;
        }
    } else if settings.auto_position {
        let mode = source.value("SELECT @@GLOBAL.gtid_mode").await?;
        if !mode.starts_with("ON") {
            return Err(Ended::Fatal(13117, format!("The slave IO thread stops because the master has @@GLOBAL.GTID_MODE = {mode} and this server uses AUTO_POSITION = 1.")));
        }
        let mut have = from.gtids.clone();
        if let Some(executed) = channel.executed() {
            have.union(&executed);
        }
        request = request.with_use_gtid(true).with_sids(have.mysql_intervals().map(|(source, intervals)| sid(source.0, intervals)));
    }
    let semi_sync = channel.is_semi_sync() && offer_acknowledgements(&mut source).await?;
    let by_file = !settings.auto_position;
    let (file, offset) = if by_file { (from.file.as_bytes(), from.offset) } else { (&b""[..], FIRST_OFFSET) };
    let (events, acknowledgements) = source.dump(&request.with_filename(file).with_pos(offset), semi_sync).await?;
    Ok(Opened { events, acknowledgements, semi_sync })
}

/// Tells the source that we acknowledge. False: it does not know what that is.
async fn offer_acknowledgements(source: &mut Source) -> Result<bool, Ended> {
    for side in ["source", "master"] {
        match source.value(&format!("SELECT @@GLOBAL.rpl_semi_sync_{side}_enabled")).await {
            Ok(_) => {
                source.row("SET @rpl_semi_sync_replica = 1, @rpl_semi_sync_slave = 1").await?;
                return Ok(true);
            }
            Err(SourceError::Server(1193, _)) => {}
            Err(e) => return Err(e.into()),
        }
    }
    tracing::warn!("replica: the source knows no semi-synchronous replication: nothing is acknowledged");
    Ok(false)
}

/// One source's part of a set; the end of an interval is exclusive on the wire.
fn sid(source: [u8; 16], intervals: &[(u64, u64)]) -> Sid<'static> {
    Sid::new(source).with_intervals(intervals.iter().map(|(first, last)| GnoInterval::new(*first, last + 1)).collect())
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
        let mut reading = Reading::new(have);
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

    #[test]
    fn of_what_the_applier_does_not_do_little_is_kept() {
        let asks = Asks::default();
        let ask = |number, offset| asks.add(Asked { number, file: "log.000001".into(), offset });
        // Every event of a long transaction, and of what the replica has.
        (0..1000).for_each(|event| ask(41, event));
        (1000..2000).for_each(|event| ask(42, event));
        assert_eq!(asks.list.lock().len(), 2);
        assert_eq!(asks.take(40), None);
        assert_eq!(asks.take(41).map(|asked| asked.offset), Some(999));
        // One that was broken off and comes again, and before it another that is there already: none overtakes.
        [(41, 2000), (42, 2001), (43, 2002)].into_iter().for_each(|(number, offset)| ask(number, offset));
        assert_eq!(asks.take(41), None);
        assert_eq!(asks.take(42).map(|asked| asked.offset), Some(2001));
        assert_eq!((asks.take(50).map(|asked| asked.offset), asks.take(50)), (Some(2002), None));
    }

    #[test]
    fn what_is_acknowledged_is_done() {
        let have = Position { gtids: Gtids::parse("00112233-4455-6677-8899-aabbccddeeff:7").unwrap(), file: "log.000001".into(), number: 40, ..Position::start() };
        let mut reading = Reading::new(have);
        let mut asked = |kind, log_pos, body: &[u8]| {
            reading.note(&Event { timestamp: 0, kind, server_id: 1, log_pos, body: body.to_vec() }).unwrap();
            let Asked { number, file, offset } = reading.asked();
            (number, file, offset)
        };
        let uuid = [0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF];
        let gtid = |number: u8| [&[0][..], &uuid, &[number], &[0; 7]].concat();
        let file = |number: u8| format!("log.00000{number}");
        // A source that waits for nobody wants to hear of every event, also of those in the middle of a transaction.
        assert_eq!(asked(kind::FORMAT_DESCRIPTION, 120, &[]), (40, file(1), 120));
        assert_eq!(asked(kind::GTID, 200, &gtid(5)), (41, file(1), 200));
        assert_eq!(asked(kind::TABLE_MAP, 250, &[]), (41, file(1), 250));
        assert_eq!(asked(kind::XID, 300, &[0; 8]), (41, file(1), 300));
        assert_eq!(asked(kind::ROTATE, 350, b"\x04\0\0\0\0\0\0\0log.000002"), (41, file(2), 4));
        // One that we have: what came before is enough.
        assert_eq!(asked(kind::GTID, 400, &gtid(7)), (41, file(2), 400));
        assert_eq!(asked(kind::XID, 500, &[0; 8]), (41, file(2), 500));
        assert_eq!(asked(kind::GTID, 600, &gtid(8)), (42, file(2), 600));
        // It broke off, and the next one follows.
        assert_eq!(asked(kind::GTID, 700, &gtid(8)), (42, file(2), 700));
        assert_eq!(asked(kind::XID, 800, &[0; 8]), (42, file(2), 800));
    }
}
