//! SHOW BINARY LOGS, BINARY LOG STATUS, BINLOG EVENTS.

use highkey_binlog::describe;
use highkey_binlog::FileReader;
use highkey_table::BinlogBytes;
use highkey_types::{MySqlError, Value};

use super::{Answer, t, u};
use crate::session::SessionState;
use crate::session::error::err;

pub(super) fn files(state: &SessionState) -> Result<Answer, MySqlError> {
    let binlog = state.binlog()?;
    match binlog.catch_up() {
        // There is no space for the newest transactions: which files could be purged is what is asked then.
        Err(e) if e.code == 1114 => {}
        done => done?,
    }
    let rows = binlog.files().into_iter().map(|(name, size)| vec![t(name), u(size)]).collect();
    Ok(Answer::new("Log_name s255;File_size u", rows))
}

pub(super) fn status(state: &SessionState) -> Result<Answer, MySqlError> {
    let mut rows = Vec::new();
    if let Ok(binlog) = state.binlog() {
        binlog.catch_up()?;
        let at = binlog.position();
        rows.push(vec![t(at.file), u(at.position), t(""), t(""), t(binlog.executed().to_string())]);
    }
    Ok(Answer::new("File s255;Position u;Binlog_Do_DB s64;Binlog_Ignore_DB s64;Executed_Gtid_Set S", rows))
}

pub(super) fn replicas(state: &SessionState) -> Answer {
    let own = state.instance.global_u64("server_id");
    let replicas = state.instance.replicas().lock();
    let row = |r: &crate::session::Replica| vec![u(r.server_id), t(&r.host), u(r.port), u(own), t(&r.uuid)];
    Answer::new("Server_id n;Host s255;Port n;Master_id n;Slave_UUID s36", replicas.values().map(row).collect())
}

const EVENTS: &str = "Log_name s255;Pos u;Event_type s20;Server_id n;End_log_pos u;Info S";

/// SHOW RELAYLOG EVENTS: there is no relay log. And the columns of SHOW BINLOG EVENTS.
pub(super) fn relay_events() -> Answer {
    Answer::new(EVENTS, Vec::new())
}

/// Bytes of events that are read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// SHOW BINLOG EVENTS: the events of one file, a piece at a time. It stays open, so what is purged or reset meanwhile is still read to its end.
pub(crate) struct Events {
    name: String,
    reader: FileReader<BinlogBytes>,
    skip: u64,
    left: u64,
}

impl Events {
    /// Of the first file if none is named. `None`: there is no binary log. Error 1220.
    pub fn open(state: &SessionState, file: Option<&str>, from: Option<u64>, limit: Option<(u64, u64)>) -> Result<Option<Events>, MySqlError> {
        let Ok(binlog) = state.binlog() else { return Ok(None) };
        binlog.catch_up()?;
        let name = match file {
            Some(name) => name.to_owned(),
            None => binlog.files().first().map(|(name, _)| name.clone()).unwrap_or_default(),
        };
        let from = from.unwrap_or(4).max(4);
        let checksum = binlog.has_checksums(&name)?.ok_or_else(missing)?;
        let bytes = binlog.read_file(&name, if from == 4 { 0 } else { from })?.ok_or_else(missing)?;
        let reader = if from == 4 { FileReader::new(bytes) } else { FileReader::resume(bytes, from, checksum) };
        // MySQL looks whether there are enough after it has sent one: LIMIT 0 gives one event, LIMIT 1, 0 none.
        let (skip, left) = limit.map_or((0, u64::MAX), |(skip, count)| (skip, if skip == 0 { count.max(1) } else { count }));
        Ok(Some(Events { name, reader, skip, left }))
    }

    /// There are no more rows.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The rows of the next piece, which may be none before the end. Error 1220.
    pub fn next_rows(&mut self, state: &SessionState) -> Result<Vec<Vec<Value>>, MySqlError> {
        let end = self.reader.position().saturating_add(PIECE_BYTES);
        let mut rows = Vec::new();
        while self.left > 0 && self.reader.position() < end {
            state.process.check()?;
            let Some(event) = self.reader.next_event().map_err(|_| failed("Wrong offset or I/O error"))? else {
                self.left = 0;
                return Ok(rows);
            };
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.left -= 1;
            let (kind, info) = describe(event.raw).unwrap_or(("Unknown", String::new()));
            let end = u64::from(event.header.log_pos);
            rows.push(vec![t(&self.name), u(event.position), t(kind), u(event.header.server_id), u(end), t(info)]);
        }
        Ok(rows)
    }
}

fn failed(why: &str) -> MySqlError {
    err(1220, format!("Error when executing command SHOW BINLOG EVENTS: {why}"))
}

fn missing() -> MySqlError {
    failed("Could not find target log")
}
