//! The binary log as a stream: COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID.
//!
//! A replica gets the files' events as they are, one packet each, behind events that are made for it: which file it reads (an artificial
//! rotate) at the start and whenever the file changes, the format, and heartbeats while nothing comes. At the end of the last file the
//! stream waits for the writer (`Binlog::wait_beyond`), without polling.
//!
//! A replica that takes part in semi-synchronous replication gets two bytes before each event, of which the second says whether it is to acknowledge it,
//! and sends acknowledgements on the same connection: how far it has got.
//!
//! A replica that has come back ends its older stream, which may not know yet that nobody reads it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use highkey_binlog::control::{heartbeat, rotate};
use highkey_binlog::event::{header_flags, seal_with_log_pos};
use highkey_binlog::{EventType, FileReader, GtidSet, Header, Stamp, Uuid};
use highkey_protocol::DumpRequest;
use highkey_sql::{Interruption, ProcessEntry, Session};
use highkey_table::{Binlog, BinlogBytes, FileInUse};
use highkey_types::{MySqlError, Value, errors};
use parking_lot::Mutex;

use super::Wire;
use super::wire::FLUSH_BYTES;
use crate::listen::Server;

/// What a replica gets when it asked for nothing else.
const DEFAULT_HEARTBEAT: Duration = Duration::from_secs(30);

/// Read between two looks at what else is to be done.
const YIELD_BYTES: usize = 1 << 20;

/// What the replica's session has set before it asked.
struct Wishes {
    /// Events with CRC32.
    checksum: bool,
    heartbeat: Duration,
    /// It acknowledges.
    semi_sync: bool,
}

impl Wishes {
    fn of(session: &Session) -> Wishes {
        let variable = |names: [&str; 2]| names.iter().find_map(|name| session.user_variable(name));
        let checksum = match variable(["source_binlog_checksum", "master_binlog_checksum"]) {
            Some(value) => value.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("crc32")),
            None => false,
        };
        let nanoseconds = variable(["source_heartbeat_period", "master_heartbeat_period"]).and_then(|value| match value {
            Value::Int(n) => u64::try_from(n).ok(),
            Value::UInt(n) => Some(n),
            Value::Decimal(d) => d.to_string().split('.').next()?.parse().ok(),
            other => other.as_str()?.parse().ok(),
        });
        let heartbeat = match nanoseconds {
            Some(0) => Duration::MAX,
            Some(n) => Duration::from_nanos(n),
            None => DEFAULT_HEARTBEAT,
        };
        let semi_sync = match variable(["rpl_semi_sync_replica", "rpl_semi_sync_slave"]) {
            Some(Value::Int(n)) => n != 0,
            Some(Value::UInt(n)) => n != 0,
            Some(other) => other.as_str().is_some_and(|text| text == "1"),
            None => false,
        };
        Wishes { checksum, heartbeat, semi_sync }
    }
}

/// Who follows, as it says.
#[derive(Debug)]
struct Follower {
    /// `server_uuid`; empty for programs.
    uuid: String,
    server_id: u32,
}

impl Follower {
    fn of(session: &Session, request: &DumpRequest<'_>) -> Follower {
        let uuid = ["replica_uuid", "slave_uuid"].iter().find_map(|name| session.user_variable(name));
        Follower { uuid: uuid.and_then(|value| value.as_str().map(str::to_ascii_lowercase)).unwrap_or_default(), server_id: request.server_id }
    }

    /// As in MySQL: the same server by its UUID, or by its id if neither has one.
    fn gives_way_to(&self, other: &Follower) -> bool {
        self.uuid == other.uuid && (!other.uuid.is_empty() || other.server_id != 0 && self.server_id == other.server_id)
    }
}

/// The streams that are running.
#[derive(Default)]
pub struct Dumps(Mutex<Vec<(Follower, Arc<ProcessEntry>)>>);

impl Dumps {
    /// A stream begins, and those end that the same replica has left.
    fn begin(&self, follower: Follower, process: &Arc<ProcessEntry>) -> RunningDump<'_> {
        let mut running = self.0.lock();
        for (_, older) in running.iter().filter(|(known, _)| known.gives_way_to(&follower)) {
            tracing::info!("connection {}: its replica has come back as connection {}", older.id(), process.id());
            older.interrupt(Interruption::Connection);
        }
        running.push((follower, process.clone()));
        RunningDump { dumps: self, connection: process.id() }
    }
}

/// A stream, as long as it lives.
struct RunningDump<'d> {
    dumps: &'d Dumps,
    connection: u64,
}

impl Drop for RunningDump<'_> {
    fn drop(&mut self) {
        self.dumps.0.lock().retain(|(_, process)| process.id() != self.connection);
    }
}

/// The first byte before an event, and of an acknowledgement.
const SEMI_SYNC: u8 = 0xEF;

/// What an acknowledgement says: the file, and the end of the last event that is safe there. `None`: it is none.
fn read_acknowledgement(packet: &[u8]) -> Option<(u64, u64)> {
    let rest = packet.strip_prefix(&[SEMI_SYNC])?;
    let (position, name) = rest.split_first_chunk::<8>()?;
    let name = std::str::from_utf8(name).ok()?.trim_end_matches('\0');
    Some((highkey_table::binlog_file_number(name)?, u64::from_le_bytes(*position)))
}

/// A replica that acknowledges, as long as its stream lives.
struct Acknowledging {
    binlog: Arc<Binlog>,
    connection: u64,
}

impl Acknowledging {
    fn new(binlog: &Arc<Binlog>, connection: u64) -> Acknowledging {
        binlog.semi_sync().add_replica(connection);
        Acknowledging { binlog: binlog.clone(), connection }
    }
}

impl Drop for Acknowledging {
    fn drop(&mut self) {
        self.binlog.semi_sync().remove_replica(self.connection);
    }
}

/// Error 1236.
fn fatal(what: &str) -> MySqlError {
    MySqlError::with_message(1236, what.to_owned())
}

/// One replica's stream.
struct Dump<'s> {
    binlog: Arc<Binlog>,
    wire: &'s mut Wire,
    wishes: Wishes,
    server_id: u32,
    /// Of the files when the stream began.
    generation: u64,
    /// Transactions that the replica has.
    known: Option<GtidSet>,
    /// The present transaction is one of them.
    skipping: bool,
    acknowledging: Option<Acknowledging>,
    /// The file that is being sent.
    _in_use: Option<FileInUse>,
}

/// Streams until the client goes (`Err` of io), asks for no more than there is (`Ok(Ok)`), or something is wrong.
pub async fn serve(server: &Server, wire: &mut Wire, session: &mut Session, request: &DumpRequest<'_>) -> io::Result<Result<(), MySqlError>> {
    if let Err(e) = session.check_follows() {
        return Ok(Err(e));
    }
    let Some(binlog) = server.instance.database().binlog().cloned() else { return Ok(Err(fatal("Binary log is not open"))) };
    let known = match request.gtids.map(GtidSet::decode).transpose() {
        Ok(known) => known,
        Err(_) => return Ok(Err(errors::malformed_packet())),
    };
    let process = session.process().clone();
    let _running = server.dumps.begin(Follower::of(session, request), &process);
    let _watch = binlog.watch();
    let server_id = server.instance.global_u64("server_id") as u32;
    let generation = binlog.generation();
    let wishes = Wishes::of(session);
    if wishes.semi_sync {
        // Acknowledgements are exchanges of their own.
        wire.reader.reset_sequence();
    }
    let acknowledging = wishes.semi_sync.then(|| Acknowledging::new(&binlog, session.client().connection_id));
    let mut dump = Dump { generation, binlog, wire, wishes, server_id, known, skipping: false, acknowledging, _in_use: None };
    process.set_command("Binlog Dump", "Master has sent all binlog to slave; waiting for more updates");
    tokio::select! {
        biased;
        // What was being sent may have been cut: nothing can follow it.
        () = process.connection_killed() => Err(io::ErrorKind::ConnectionAborted.into()),
        ended = dump.run(request) => ended,
    }
}

impl Dump<'_> {
    async fn run(&mut self, request: &DumpRequest<'_>) -> io::Result<Result<(), MySqlError>> {
        let (mut name, mut position) = match self.start(request) {
            Ok(start) => start,
            Err(e) => return Ok(Err(e)),
        };
        loop {
            // The file before it is let go of only now: what is between the two cannot be purged.
            let Some(in_use) = self.binlog.use_file(&name) else {
                return Ok(Err(fatal("Could not find first log file name in binary log index file")));
            };
            self._in_use = Some(in_use);
            match self.file(&name, position, request.non_blocking).await? {
                Ok(true) => {}
                Ok(false) => return Ok(Ok(())),
                Err(e) => return Ok(Err(e)),
            }
            let Some(next) = self.binlog.file_after(&name) else {
                return Ok(Err(fatal("could not find next log: it was purged")));
            };
            (name, position) = (next, 4);
        }
    }

    /// Where to begin: file and position.
    fn start(&self, request: &DumpRequest<'_>) -> Result<(String, u64), MySqlError> {
        self.binlog.catch_up()?;
        if let Some(known) = &self.known {
            let own: Uuid = self.binlog.settings().uuid;
            let executed = self.binlog.executed();
            if known.intervals_of(own).last().is_some_and(|(_, last)| *last > executed.intervals_of(own).last().map_or(0, |(_, l)| *l)) {
                return Err(fatal(
                    "Slave has more GTIDs than the master has, using the master's SERVER_UUID. This may indicate that the end of the binary \
                     log was truncated or that the last binary log file was lost, e.g., after a power or disk failure when sync_binlog != 1. \
                     The master may or may not have rolled back transactions that were already replicated to the slave. Suggest to replicate \
                     any transactions that master has rolled back from slave to master, and/or commit empty transactions on master to account \
                     for transactions that have been committed on master but are not included in GTID_EXECUTED.",
                ));
            }
            let file = self.binlog.find_start(known)?;
            let missing = "Cannot replicate because the master purged required binary logs. Replicate the missing transactions from elsewhere, \
                           or provision a new slave from backup. Consider increasing the master's binary log expiration period.";
            return file.map(|file| (file, 4)).ok_or_else(|| fatal(missing));
        }
        let name = String::from_utf8_lossy(request.file).into_owned();
        let files = self.binlog.files();
        let found = if name.is_empty() { files.first() } else { files.iter().find(|(file, _)| *file == name) };
        let Some((name, size)) = found else { return Err(fatal("Could not find first log file name in binary log index file")) };
        if request.position < 4 {
            return Err(fatal("Client requested master to start replication from position < 4"));
        }
        if request.position > *size {
            return Err(fatal("Client requested master to start replication from position > file size"));
        }
        Ok((name.clone(), request.position))
    }

    fn stamp(&self) -> Stamp {
        Stamp { timestamp: 0, server_id: self.server_id }
    }

    /// Sends one file from `position` on. True: another one follows; false: this is the end, and the client does not wait for more.
    async fn file(&mut self, name: &str, position: u64, non_blocking: bool) -> io::Result<Result<bool, MySqlError>> {
        let mut raw = Vec::new();
        rotate(self.stamp(), name, position, true, &mut raw);
        self.send_made(&raw, 0);
        let binlog = self.binlog.clone();
        let open = |at: u64| -> Result<BinlogBytes, MySqlError> {
            binlog.read_file(name, at)?.ok_or_else(|| fatal("Could not find first log file name in binary log index file"))
        };
        let mut reader = match open(0) {
            Ok(bytes) => FileReader::new(bytes),
            Err(e) => return Ok(Err(e)),
        };
        // The format is told in any case.
        let mut first = match reader.next_event() {
            Ok(Some(event)) => event.raw.to_vec(),
            _ => return Ok(Err(fatal("binlog truncated in the middle of event; consider out of disk space on master"))),
        };
        let file_checksum = reader.checksum() == Some(true);
        first[17] &= !(header_flags::IN_USE as u8);
        if position > 4 {
            // Not the file's beginning to this replica: nothing was created, and there is no place for it.
            first[Header::LEN + 52..Header::LEN + 56].fill(0);
            self.send_format(&mut first, 0);
            reader = match open(position) {
                Ok(bytes) => FileReader::resume(bytes, position, file_checksum),
                Err(e) => return Ok(Err(e)),
            };
        } else {
            let end = reader.position() as u32;
            self.send_format(&mut first, end);
        }
        let mut read = 0;
        loop {
            match reader.next_event() {
                Ok(Some(event)) => {
                    read += event.sealed.len();
                    if self.is_wanted(event.header.event_type, event.body()) {
                        let end = event.end();
                        let wanted = match (&self.acknowledging, highkey_table::binlog_file_number(name)) {
                            (Some(_), Some(number)) => self.binlog.semi_sync().wants_acknowledgement(number, end),
                            _ => false,
                        };
                        if file_checksum == self.wishes.checksum {
                            self.put(event.sealed, wanted);
                        } else {
                            let mut sealed = Vec::with_capacity(event.raw.len() + 4);
                            seal_with_log_pos(event.raw, event.header.log_pos, self.wishes.checksum, &mut sealed);
                            self.put(&sealed, wanted);
                        }
                    }
                    if self.wire.writer.bytes().len() >= FLUSH_BYTES {
                        self.wire.flush().await?;
                        self.take_acknowledgements()?;
                    }
                    if read >= YIELD_BYTES {
                        // A file may be passed by without a word, and others want to run.
                        read = 0;
                        tokio::task::yield_now().await;
                    }
                }
                Ok(None) => {
                    let at = reader.position();
                    if self.binlog.generation() != self.generation {
                        return Ok(Err(fatal("the binary log was reset")));
                    }
                    if !self.binlog.is_newest(name) && self.binlog.files().iter().all(|(file, size)| file != name || *size <= at) {
                        return Ok(Ok(true));
                    }
                    self.wire.flush().await?;
                    if non_blocking {
                        return Ok(Ok(false));
                    }
                    self.wait(name, at).await?;
                }
                Err(e) => return Ok(Err(fatal(&format!("{name}: {e}")))),
            }
        }
    }

    /// Until there is more; meanwhile the replica hears that the connection lives.
    async fn wait(&mut self, name: &str, position: u64) -> io::Result<()> {
        loop {
            let heartbeat_after = self.wishes.heartbeat.min(Duration::from_secs(3600 * 24 * 365));
            let binlog = self.binlog.clone();
            tokio::select! {
                () = binlog.wait_beyond(name, position, self.generation) => return Ok(()),
                () = tokio::time::sleep(heartbeat_after) => {
                    let mut raw = Vec::new();
                    heartbeat(self.server_id, name, &mut raw);
                    self.send_made(&raw, position as u32);
                    self.wire.flush().await?;
                }
                // A replica that says something else, or nothing any more, is gone.
                received = self.wire.receive() => match received? {
                    Some(Ok(packet)) => self.acknowledged(&packet)?,
                    _ => return Err(io::ErrorKind::ConnectionAborted.into()),
                },
            }
        }
    }

    /// What has been acknowledged while events were being sent.
    fn take_acknowledgements(&mut self) -> io::Result<()> {
        while self.acknowledging.is_some() {
            match self.wire.receive().now_or_never().transpose()?.flatten() {
                Some(Ok(packet)) => self.acknowledged(&packet)?,
                Some(Err(_)) => return Err(io::ErrorKind::ConnectionAborted.into()),
                None => break,
            }
        }
        Ok(())
    }

    fn acknowledged(&mut self, packet: &[u8]) -> io::Result<()> {
        self.wire.reader.reset_sequence();
        let (Some(replica), Some((file, end))) = (&self.acknowledging, read_acknowledgement(packet)) else {
            return Err(io::ErrorKind::ConnectionAborted.into());
        };
        self.binlog.semi_sync().acknowledge(replica.connection, file, end);
        Ok(())
    }

    /// A packet of the stream: a zero, what semi-synchronous replication adds, then the event.
    fn put(&mut self, event: &[u8], acknowledge: bool) {
        let semi_sync = self.acknowledging.is_some();
        self.wire.writer.packet(|out| {
            out.push(0);
            if semi_sync {
                out.extend_from_slice(&[SEMI_SYNC, u8::from(acknowledge)]);
            }
            out.extend_from_slice(event);
        });
        if acknowledge {
            // As an answer of MySQL's to an acknowledgement, which counts packets anew: its replicas insist on it.
            self.wire.writer.set_sequence(1);
        }
    }

    /// False for the events of transactions that the replica has.
    fn is_wanted(&mut self, event_type: u8, body: &[u8]) -> bool {
        let Some(known) = &self.known else { return true };
        match event_type {
            EventType::GTID => {
                let gtid = body.get(1..25).map(|b| (Uuid(b[..16].try_into().expect("16 bytes")), u64::from_le_bytes(b[16..].try_into().expect("8 bytes"))));
                self.skipping = gtid.is_some_and(|(sid, gno)| known.contains(sid, gno));
            }
            EventType::ANONYMOUS_GTID | EventType::ROTATE | EventType::STOP | EventType::PREVIOUS_GTIDS => self.skipping = false,
            _ => {}
        }
        !self.skipping
    }

    /// The format description says whether the stream's events have checksums; it has one itself.
    fn send_format(&mut self, raw: &mut [u8], log_pos: u32) {
        if let Some(algorithm) = raw.last_mut() {
            *algorithm = u8::from(self.wishes.checksum);
        }
        let mut sealed = Vec::new();
        seal_with_log_pos(raw, log_pos, true, &mut sealed);
        self.put(&sealed, false);
    }

    /// An event that is in no file.
    fn send_made(&mut self, raw: &[u8], log_pos: u32) {
        let mut sealed = Vec::new();
        seal_with_log_pos(raw, log_pos, self.wishes.checksum, &mut sealed);
        self.put(&sealed, false);
    }
}
