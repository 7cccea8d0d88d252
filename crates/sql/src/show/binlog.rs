//! SHOW BINARY LOGS, BINARY LOG STATUS, BINLOG EVENTS.

use highkey_binlog::describe;
use highkey_binlog::FileReader;
use highkey_types::MySqlError;

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

/// SHOW RELAYLOG EVENTS: there is no relay log.
pub(super) fn relay_events() -> Answer {
    Answer::new(EVENTS, Vec::new())
}

/// Events of one file, the first one if none is named. Error 1220.
pub(super) fn events(state: &SessionState, file: Option<&str>, from: Option<u64>, limit: Option<(u64, u64)>) -> Result<Answer, MySqlError> {
    let Ok(binlog) = state.binlog() else { return Ok(Answer::new(EVENTS, Vec::new())) };
    binlog.catch_up()?;
    let failed = |why: &str| err(1220, format!("Error when executing command SHOW BINLOG EVENTS: {why}"));
    let name = match file {
        Some(name) => name.to_owned(),
        None => binlog.files().first().map(|(name, _)| name.clone()).unwrap_or_default(),
    };
    let from = from.unwrap_or(4).max(4);
    let missing = || failed("Could not find target log");
    let checksum = binlog.has_checksums(&name)?.ok_or_else(missing)?;
    let bytes = binlog.read_file(&name, if from == 4 { 0 } else { from })?.ok_or_else(missing)?;
    let mut reader = if from == 4 { FileReader::new(bytes) } else { FileReader::resume(bytes, from, checksum) };
    // MySQL looks whether there are enough after it has sent one: LIMIT 0 gives one event, LIMIT 1, 0 none.
    let (skip, count) = limit.map_or((0, u64::MAX), |(skip, count)| (skip, if skip == 0 { count.max(1) } else { count }));
    let mut rows = Vec::new();
    let mut seen = 0;
    while (rows.len() as u64) < count {
        state.process.check()?;
        let Some(event) = reader.next_event().map_err(|_| failed("Wrong offset or I/O error"))? else { break };
        seen += 1;
        if seen <= skip {
            continue;
        }
        let (kind, info) = describe(event.raw).unwrap_or(("Unknown", String::new()));
        let end = u64::from(event.header.log_pos);
        rows.push(vec![t(&name), u(event.position), t(kind), u(event.header.server_id), u(end), t(info)]);
    }
    Ok(Answer::new(EVENTS, rows))
}
