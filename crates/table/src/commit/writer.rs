//! The binary log's files, written behind from the commits in the database's log.
//!
//! What is written follows from the log and from the last saved state alone, so after a crash the same bytes come at the same places:
//! a replica that had read them goes on where it was.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use highkey_binlog::control::{self, FormatDescription, IN_USE_FLAG_POSITION, MAGIC};
use highkey_binlog::event::seal;
use highkey_binlog::transaction::{self, GtidEvent};
use highkey_binlog::{GtidSet, Header, Stamp};
use highkey_storage::{Disk, DiskFile, Engine, Error, LogFollower, LogRecord, Lsn, Result};

use super::files::{self, name_of};
use super::payload::{EventGroup, GtidChoice, NumberNote, Payload};
use super::state::{State, gtids};
use super::{BinlogWritten, FileInfo, Settings, reader};

/// Collected before it is written.
const WRITE_BYTES: usize = 1 << 20;
/// Log behind the saved state that is kept for a crash at most, unless transactions are larger.
const SAVE_BYTES: u64 = 128 << 20;
/// Bytes of a file that begin their way to the disk together, so that making it durable finds few left and commits do not wait behind it.
const BEGIN_SYNC_BYTES: u64 = 1 << 20;
/// A state is saved at least so often while there are commits.
const SAVE_TIME: Duration = Duration::from_secs(10);
/// Commits whose sequence numbers are remembered for those that ran beside them.
const RECENT_COMMITS: usize = 4096;

pub(crate) struct Writer {
    engine: Engine,
    disk: Arc<dyn Disk>,
    settings: Arc<Settings>,
    follower: LogFollower,
    /// All files, oldest first; the last is being written.
    files: Vec<FileInfo>,
    file: Arc<dyn DiskFile>,
    /// What is to be written at the end of the file.
    out: Vec<u8>,
    /// Bytes of the file that have begun their way to the disk.
    sent: u64,
    /// Whether the events of the file end in checksums.
    checksum: bool,
    /// The newest transaction of the file.
    sequence: u64,
    /// Recent commits: LSN, sequence number.
    recent: VecDeque<(Lsn, u64)>,
    executed: GtidSet,
    purged: GtidSet,
    /// The part of `purged` that was in no file: `gtid_purged` was set.
    declared: GtidSet,
    next_gno: u64,
    /// Numbers of this server's own that sessions own.
    taken: BTreeSet<u64>,
    written: BinlogWritten,
    saved_lsn: Lsn,
    saved_at: Instant,
    /// Something was written since.
    unsaved: bool,
    /// A file was begun since the server's start.
    first_file_begun: bool,
    /// The file ends in a Stop event.
    stopped: bool,
    /// The files are as the log says; what comes is new.
    started: bool,
}

/// What a step made known to readers.
pub(crate) struct Progress<'w> {
    pub files: &'w [FileInfo],
    pub executed: &'w GtidSet,
    pub purged: &'w GtidSet,
    pub written: BinlogWritten,
}

impl Writer {
    /// Brings the files to what the log says. A first file is begun if there is none.
    pub fn open(engine: &Engine, settings: Arc<Settings>) -> Result<Writer> {
        let mut writer = Writer::load(engine, settings)?;
        writer.restore()?;
        Ok(writer)
    }

    /// The files as the saved state has them. It writes nothing, unless there is no file or a RESET was under way, so a full disk does not keep
    /// it from being opened and from purging; before anything else it needs `restore`.
    pub fn load(engine: &Engine, settings: Arc<Settings>) -> Result<Writer> {
        let disk = engine.disk().clone();
        let state = match State::read(engine)? {
            Some(state) if !state.reset => state,
            found => {
                let (lsn, file) = found.map_or((None, 0), |s| (s.lsn, s.file));
                begin_reset(&*disk)?;
                State { lsn, file, ..State::first() }
            }
        };
        let mut listed = files::read_index(&*disk)?;
        let (end, _) = engine.log_position();
        let rebuilt = state.lsn.is_some() && state.file > 0;
        listed.retain(|n| *n <= state.file || !rebuilt);
        let from = Lsn(state.lsn.unwrap_or(end.0));
        let number = if state.file > 0 { state.file } else { listed.last().map_or(1, |n| n + 1) };
        let listed = there_of(&*disk, listed, number)?;
        let mut writer = Writer {
            follower: engine.follow_log(from),
            files: listed
                .iter()
                .filter(|n| **n != number)
                .map(|n| Ok(FileInfo { number: *n, size: disk.open(&name_of(*n), false)?.len()? }))
                .collect::<Result<_>>()?,
            file: disk.open(&name_of(number), true)?,
            out: Vec::new(),
            sent: state.position,
            checksum: settings.checksum.load(Ordering::Relaxed),
            sequence: state.sequence,
            recent: VecDeque::new(),
            executed: gtids(&state.executed)?,
            purged: GtidSet::default(),
            declared: gtids(&state.declared)?,
            next_gno: state.next_gno,
            taken: state.taken.iter().copied().collect(),
            written: BinlogWritten::default(),
            saved_lsn: from,
            saved_at: Instant::now(),
            unsaved: false,
            first_file_begun: false,
            stopped: state.stopped,
            started: false,
            engine: engine.clone(),
            disk,
            settings,
        };
        if state.position > 0 {
            if writer.file.len()? < state.position {
                let name = name_of(number);
                return Err(Error::corrupt_file(format!("{name} is shorter than the {} bytes that were durable", state.position)));
            }
            writer.checksum = reader::head(&*writer.disk, number)?.checksum;
        }
        writer.files.push(FileInfo { number, size: state.position });
        writer.purged = writer.before_file(0)?;
        writer.purged.union(&writer.declared);
        // Nobody is to wait for it before it reads.
        writer.follower.pause();
        Ok(writer)
    }

    /// Once, after `load`: writes what the log says behind the saved state.
    pub fn restore(&mut self) -> Result<()> {
        let newest = *self.files.last().expect("there is a file");
        if newest.size == 0 {
            self.files.pop();
            self.begin_file(newest.number)?;
        } else {
            self.file.truncate(newest.size)?;
        }
        while self.step()? {}
        let listed = numbers(&self.files);
        files::write_index(&*self.disk, &listed)?;
        files::remove_unlisted(&*self.disk, &listed)?;
        self.save()
    }

    /// In place of one that met an error: what it had collected may be half of a transaction. From the saved state on the log says it again.
    pub fn reopen(&self) -> Result<Writer> {
        let mut writer = Writer::open(&self.engine, self.settings.clone())?;
        if self.started {
            writer.started = true;
        } else {
            writer.start()?;
        }
        Ok(writer)
    }

    /// Begins a new file, as MySQL does at every start, unless nothing is in the present one.
    pub fn start(&mut self) -> Result<()> {
        if !self.taken.is_empty() {
            // Their owners have gone with the earlier life. Durable before anything gets such a number: after a crash it gets it again.
            for number in std::mem::take(&mut self.taken) {
                self.note_number(NumberNote::Free(number));
            }
            self.save()?;
        }
        if self.sequence > 0 || !self.first_file_begun {
            self.end_file()?;
            self.next_file()?;
        }
        self.started = true;
        Ok(())
    }

    pub fn progress(&self) -> Progress<'_> {
        Progress { files: &self.files, executed: &self.executed, purged: &self.purged, written: self.written }
    }

    fn number(&self) -> u64 {
        self.files.last().expect("there is a file").number
    }

    /// Where the next event goes.
    fn position(&self) -> u64 {
        self.files.last().expect("there is a file").size + self.out.len() as u64
    }

    /// Writes what has become durable since. True: there may be more.
    pub fn step(&mut self) -> Result<bool> {
        let mut any = false;
        // What comes meanwhile is for the next step: readers are told in between.
        let (_, durable) = self.engine.log_position();
        while self.follower.at() < durable
            && let Some(record) = self.follower.next()?
        {
            any = true;
            if let Some(note) = NumberNote::decode(record.events()) {
                self.note_number(note);
                continue;
            }
            let before = self.position();
            self.stopped = false;
            self.transaction(&record)?;
            self.written.bytes += self.position() - before;
            // What is written again after a crash has its place, whatever the limit is now.
            if self.started && self.position() >= self.settings.max_size.load(Ordering::Relaxed) {
                self.rotate()?;
            }
        }
        self.flush()?;
        self.unsaved |= any;
        let behind = self.follower.at().0 - self.saved_lsn.0;
        if behind >= SAVE_BYTES || (self.unsaved && self.saved_at.elapsed() >= SAVE_TIME) {
            self.save()?;
        }
        if !self.engine.options().background {
            // No thread will read on by itself: nobody is to wait for it.
            self.follower.pause();
        }
        Ok(any)
    }

    fn note_number(&mut self, note: NumberNote) {
        match note {
            NumberNote::Taken(number) => drop(self.taken.insert(number)),
            NumberNote::Free(number) => {
                self.taken.remove(&number);
                if !self.executed.contains(self.settings.uuid, number) {
                    // As MySQL, which leaves no gap if it need not.
                    self.next_gno = self.next_gno.min(number);
                }
            }
        }
    }

    /// The next number of this server's own that neither is executed nor owned by a session.
    fn next_own(&self) -> u64 {
        let uuid = self.settings.uuid;
        let mut number = self.executed.next_free(uuid, self.next_gno - 1);
        while self.taken.contains(&number) {
            number = self.executed.next_free(uuid, number);
        }
        number
    }

    fn transaction(&mut self, record: &LogRecord) -> Result<()> {
        let (payload, own) = Payload::decode(record.events())?;
        let broken = || Error::corrupt_file(format!("the binary log's events in the log at {} do not add up", record.lsn));
        let mut parts = payload.parts.iter();
        // The part that is being read, and what is left of it; after the last one, the record's own events.
        let mut part: Option<LogRecord> = None;
        let (mut at, mut end) = (0, 0);
        let mut own_given = false;
        for (nth, group) in payload.groups.iter().enumerate() {
            self.begin_group(&payload, group, record.lsn, nth);
            let mut left = group.bytes;
            for _ in 0..group.events {
                while at == end {
                    (at, end) = match parts.next() {
                        Some(next) => {
                            part = Some(self.follower.part(next.lsn)?);
                            (0, next.bytes as usize)
                        }
                        None if !std::mem::replace(&mut own_given, true) => {
                            part = None;
                            (0, own.len())
                        }
                        None => return Err(broken()),
                    };
                }
                let bytes = part.as_ref().map_or(own, |part| part.events()).get(at..end).ok_or_else(broken)?;
                let len = Header::parse(bytes).map(|h| h.event_size as usize).filter(|len| *len <= bytes.len()).ok_or_else(broken)?;
                self.append(&bytes[..len]);
                at += len;
                left = left.checked_sub(len as u64).ok_or_else(broken)?;
                if self.out.len() >= WRITE_BYTES {
                    self.flush()?;
                }
            }
            if left > 0 {
                return Err(broken());
            }
        }
        self.settings.semi_sync.note_written(record.lsn, (self.number(), self.position()));
        Ok(())
    }

    /// The event that begins a transaction: its GTID, or that it has none, and which transactions it may run beside on a replica: those
    /// that held their locks when it had all of its own.
    fn begin_group(&mut self, payload: &Payload, group: &EventGroup, lsn: Lsn, nth: usize) {
        let before = match self.recent.iter().rposition(|(commit, _)| *commit <= payload.released) {
            Some(at) => self.recent[at].1,
            None => self.recent.front().map_or(self.sequence, |(_, sequence)| sequence - 1),
        };
        let last_committed = if nth > 0 { self.sequence } else { before };
        self.sequence += 1;
        self.written.transactions += 1;
        self.recent.push_back((lsn, self.sequence));
        if self.recent.len() > RECENT_COMMITS {
            self.recent.pop_front();
        }
        let gtid = match payload.gtid {
            GtidChoice::Automatic => Some((self.settings.uuid, self.next_own())),
            GtidChoice::Assigned(sid, gno) => Some((sid, gno)),
            GtidChoice::Anonymous => None,
        };
        let stamp = Stamp { timestamp: (payload.commit_time / 1_000_000) as u32, server_id: payload.server_id };
        let mut raw = Vec::new();
        let event = GtidEvent {
            gtid,
            has_statement: group.statement,
            last_committed: last_committed as i64,
            sequence_number: self.sequence as i64,
            immediate_commit_micros: payload.commit_time,
            original_commit_micros: payload.original_commit_time.unwrap_or(payload.commit_time),
            following_bytes: group.bytes,
            following_events: group.events,
            checksum: self.checksum,
            immediate_server_version: self.settings.version_number,
            original_server_version: payload.original_version.unwrap_or(self.settings.version_number),
        };
        transaction::gtid(stamp, &event, &mut raw);
        self.append(&raw);
        if let Some((sid, gno)) = gtid {
            self.executed.add(sid, gno);
            if payload.gtid == GtidChoice::Automatic {
                self.next_gno = gno + 1;
            }
            if sid == self.settings.uuid {
                self.taken.remove(&gno);
            }
        }
    }

    /// Adds an event at the end.
    fn append(&mut self, raw: &[u8]) {
        seal(raw, self.position(), self.checksum, &mut self.out);
    }

    /// Gives what was collected to the operating system.
    fn flush(&mut self) -> Result<()> {
        if !self.out.is_empty() {
            let last = self.files.last_mut().expect("there is a file");
            self.file.write_at(last.size, &self.out)?;
            last.size += self.out.len() as u64;
            self.out.clear();
            if last.size - self.sent >= BEGIN_SYNC_BYTES {
                self.file.begin_sync(self.sent, last.size - self.sent);
                self.sent = last.size;
            }
        }
        Ok(())
    }

    fn state(&self) -> State {
        State {
            file: self.number(),
            position: self.position(),
            lsn: Some(self.follower.at().0),
            sequence: self.sequence,
            executed: self.executed.to_string(),
            stopped: self.stopped,
            next_gno: self.next_gno,
            reset: false,
            declared: self.declared.to_string(),
            taken: self.taken.iter().copied().collect(),
        }
    }

    /// Makes the files durable and lets go of the log behind them.
    pub fn save(&mut self) -> Result<()> {
        self.flush()?;
        self.file.sync()?;
        let state = self.state();
        self.write_state(&state)?;
        self.saved(&state);
        Ok(())
    }

    fn write_state(&self, state: &State) -> Result<()> {
        // Its own transaction must not wait for this thread to read on.
        self.follower.pause();
        state.write(&self.engine)
    }

    /// The binary log is off from now on.
    pub fn close(&mut self) -> Result<()> {
        self.write_state(&State { lsn: None, ..self.state() })
    }

    fn saved(&mut self, state: &State) {
        // What came before is not known after a crash either.
        self.recent.clear();
        self.saved_lsn = Lsn(state.lsn.expect("the binary log is on"));
        self.saved_at = Instant::now();
        self.unsaved = false;
        self.engine.release_log(Some(self.saved_lsn));
    }

    /// Ends the file and begins the next one.
    pub fn rotate(&mut self) -> Result<()> {
        let next = self.number() + 1;
        let mut raw = Vec::new();
        control::rotate(self.stamp(), &name_of(next), 4, false, &mut raw);
        self.append(&raw);
        self.end_file()?;
        self.next_file()
    }

    fn next_file(&mut self) -> Result<()> {
        let next = self.number() + 1;
        self.sequence = 0;
        // From here on a crash leads to the new file, made again if it is not there.
        let state = State { file: next, position: 0, ..self.state() };
        self.write_state(&state)?;
        self.saved(&state);
        self.checksum = self.settings.checksum.load(Ordering::Relaxed);
        self.begin_file(next)?;
        files::write_index(&*self.disk, &numbers(&self.files))?;
        // Nobody reads a file whose beginning could come out another way after a crash.
        self.save()
    }

    /// The clean end: says so in the file.
    pub fn stop(&mut self) -> Result<()> {
        while self.step()? {}
        if !std::mem::replace(&mut self.stopped, true) {
            let mut raw = Vec::new();
            control::stop(self.stamp(), &mut raw);
            self.append(&raw);
            self.end_file()?;
        }
        self.save()
    }

    fn end_file(&mut self) -> Result<()> {
        self.flush()?;
        self.file.write_at(IN_USE_FLAG_POSITION, &[0])?;
        self.file.sync()
    }

    fn stamp(&self) -> Stamp {
        Stamp { timestamp: super::now().as_secs() as u32, server_id: self.settings.server_id.load(Ordering::Relaxed) }
    }

    fn begin_file(&mut self, number: u64) -> Result<()> {
        self.file = self.disk.open(&name_of(number), true)?;
        self.file.truncate(0)?;
        self.disk.sync_dir()?;
        self.files.push(FileInfo { number, size: 0 });
        self.sent = 0;
        self.stopped = false;
        self.out.clear();
        self.out.extend_from_slice(&MAGIC);
        let mut raw = Vec::new();
        let created = if std::mem::replace(&mut self.first_file_begun, true) { 0 } else { self.stamp().timestamp };
        // The flag is not part of the checksum.
        let format = FormatDescription { server_version: &self.settings.server_version, created, checksum: self.checksum, in_use: false };
        control::format_description(self.stamp(), &format, &mut raw);
        self.append(&raw);
        raw.clear();
        control::previous_gtids(self.stamp(), &self.executed, &mut raw);
        self.append(&raw);
        self.flush()?;
        self.file.write_at(IN_USE_FLAG_POSITION, &[1])?;
        self.file.sync()
    }

    /// Removes the files before `number`. What was in them only, is purged. After an error of this writer too: the files that there are stay what
    /// they were.
    pub fn purge(&mut self, number: u64) -> Result<()> {
        let Some(keep) = self.files.iter().position(|f| f.number >= number).filter(|keep| *keep > 0) else { return Ok(()) };
        let purged = self.before_file(keep)?;
        let gone: Vec<String> = self.files[..keep].iter().map(|f| name_of(f.number)).collect();
        let kept = numbers(&self.files[keep..]);
        match files::write_index(&*self.disk, &kept) {
            // The oldest file makes room for the index. A crash in between leaves it listed, which an open does not mind.
            Err(Error::OutOfSpace) => {
                files::remove(&*self.disk, gone.first().cloned())?;
                files::write_index(&*self.disk, &kept)?;
            }
            written => written?,
        }
        self.purged = purged;
        self.purged.union(&self.declared);
        self.files.drain(..keep);
        files::remove(&*self.disk, gone)
    }

    /// The GTIDs of everything before a file.
    fn before_file(&self, at: usize) -> Result<GtidSet> {
        let file = self.files[at];
        if file.size == 0 && at + 1 == self.files.len() {
            // There was no space to begin it: it comes behind everything.
            return Ok(self.executed.clone());
        }
        Ok(reader::head(&*self.disk, file.number)?.previous)
    }

    /// Counts transactions as executed, though they never were in the files: durable when it returns.
    pub fn declare(&mut self, purged: &GtidSet) -> Result<()> {
        for set in [&mut self.executed, &mut self.purged, &mut self.declared] {
            set.union(purged);
        }
        self.save()
    }

    /// Removes all files and begins anew with the one of this number; no GTID has been used then.
    pub fn reset(&mut self, first: u64) -> Result<()> {
        while self.step()? {}
        self.write_state(&State { reset: true, file: first, ..self.state() })?;
        begin_reset(&*self.disk)?;
        self.files.clear();
        (self.executed, self.purged, self.declared) = (GtidSet::default(), GtidSet::default(), GtidSet::default());
        (self.sequence, self.next_gno) = (0, 1);
        self.checksum = self.settings.checksum.load(Ordering::Relaxed);
        self.begin_file(first)?;
        files::write_index(&*self.disk, &[first])?;
        self.save()
    }
}

/// Those of the listed files that there are. Somebody may have removed others by hand, and a purge for which there was no space the oldest.
fn there_of(disk: &dyn Disk, listed: Vec<u64>, newest: u64) -> Result<Vec<u64>> {
    let mut there = Vec::with_capacity(listed.len());
    for number in listed {
        if number == newest || disk.exists(&name_of(number))? {
            there.push(number);
        } else {
            tracing::warn!("{} is in the index of the binary log, but there is no such file", name_of(number));
        }
    }
    Ok(there)
}

/// As the index lists them.
fn numbers(files: &[FileInfo]) -> Vec<u64> {
    files.iter().map(|f| f.number).collect()
}

/// Removes all files, the index first.
fn begin_reset(disk: &dyn Disk) -> Result<()> {
    files::write_index(disk, &[])?;
    files::remove_unlisted(disk, &[])
}
