//! What clients see of the replica: the trait that the server implements, SHOW REPLICA STATUS and the tables of performance_schema.

use async_trait::async_trait;
use highkey_types::{DateTime, MySqlError, Value, Warning};

use super::ReplicaStatement;
use crate::session::SessionState;
use crate::show::Answer;

/// The replica of a server, as its sessions ask for it.
#[async_trait]
pub trait ReplicaControl: Send + Sync {
    /// Does what a statement asks; the warnings are for its client. Errors as MySQL's: 1198, 1200, 1593, 1776, 3021, 3074, 3081, …
    async fn execute(&self, statement: &ReplicaStatement) -> Result<Vec<Warning>, MySqlError>;

    /// The channel as it is now; None: there is no source.
    fn status(&self) -> Option<ReplicaStatus>;

    /// What is not applied, be there a source or not.
    fn filters(&self) -> Vec<ReplicaFilter>;
}

/// Whether one of the two threads runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadState {
    #[default]
    No,
    /// The receiver has no connection at the moment.
    Connecting,
    Yes,
}

impl ThreadState {
    fn name(self) -> &'static str {
        match self {
            ThreadState::No => "No",
            ThreadState::Connecting => "Connecting",
            ThreadState::Yes => "Yes",
        }
    }

    fn service(self) -> &'static str {
        match self {
            ThreadState::No => "OFF",
            ThreadState::Connecting => "CONNECTING",
            ThreadState::Yes => "ON",
        }
    }
}

/// The last error of a thread; number 0 is none.
#[derive(Clone, Debug, Default)]
pub struct ReplicaFailure {
    pub number: u16,
    pub message: String,
    /// Microseconds since 1970.
    pub at_micros: i64,
}

/// A rule of CHANGE REPLICATION FILTER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaFilter {
    /// `REPLICATE_DO_DB`.
    pub name: &'static str,
    /// As SHOW REPLICA STATUS shows it.
    pub rule: String,
    /// It is an option of the server, not a statement's.
    pub by_option: bool,
    /// Microseconds since 1970; 0: not known.
    pub since_micros: i64,
}

/// A transaction of the source, where one of the replica's threads has it. Times are microseconds since 1970; 0: none, or not known.
#[derive(Clone, Debug, Default)]
pub struct ReplicaTransaction {
    /// ANONYMOUS for one without; empty for no transaction.
    pub gtid: String,
    /// When the server that ran it first committed it, and when the source did: MySQL 8.0 says so.
    pub original_commit_micros: i64,
    pub immediate_commit_micros: i64,
    pub started_micros: i64,
    pub ended_micros: i64,
}

impl ReplicaTransaction {
    /// The transaction is over at that time; there is none now. Returns it.
    pub fn end(&mut self, micros: i64) -> ReplicaTransaction {
        ReplicaTransaction { ended_micros: micros, ..std::mem::take(self) }
    }
}

/// One of those that apply transactions beside each other.
#[derive(Clone, Debug, Default)]
pub struct ReplicaWorker {
    /// Its connection id in the process list.
    pub thread: u64,
    pub applying: ReplicaTransaction,
    pub last_applied: ReplicaTransaction,
}

/// A channel, its settings and its progress. Texts are as SHOW REPLICA STATUS shows them.
#[derive(Clone, Debug, Default)]
pub struct ReplicaStatus {
    pub host: String,
    pub user: String,
    pub port: u16,
    pub bind: String,
    pub connect_retry: u64,
    pub retry_count: u64,
    /// Seconds between heartbeats.
    pub heartbeat_period: f64,
    pub auto_position: bool,
    pub delay: u64,
    pub ssl: bool,
    pub ssl_ca: String,
    pub ssl_capath: String,
    pub ssl_cert: String,
    pub ssl_cipher: String,
    pub ssl_key: String,
    pub ssl_crl: String,
    pub ssl_crlpath: String,
    pub ssl_verify: bool,
    pub tls_version: String,
    pub public_key_path: String,
    pub get_public_key: bool,
    pub ignore_server_ids: String,

    pub receiver: ThreadState,
    pub receiver_state: String,
    pub receiver_thread: u64,
    pub receiver_failure: ReplicaFailure,
    /// The transaction that is being read.
    pub queueing: ReplicaTransaction,
    pub last_queued: ReplicaTransaction,
    /// What is durable here is acknowledged to the source.
    pub semi_sync: bool,
    pub applier: ThreadState,
    pub applier_state: String,
    pub applier_failure: ReplicaFailure,
    pub workers: Vec<ReplicaWorker>,
    /// The transaction that is being given to a worker.
    pub processing: ReplicaTransaction,
    pub last_processed: ReplicaTransaction,

    /// The source's file that is being read, and the end of the last event read.
    pub read_file: String,
    pub read_position: u64,
    /// The end of the last transaction applied.
    pub applied_file: String,
    pub applied_position: u64,
    pub received_gtids: String,
    pub applied_gtids: String,
    /// Bytes read and not applied yet.
    pub queued_bytes: u64,
    pub seconds_behind: Option<u64>,
    pub remaining_delay: Option<u64>,
    pub retries: u64,
    pub heartbeats: u64,
    /// Microseconds since 1970; 0 for none.
    pub last_heartbeat_micros: i64,
    pub source_id: u64,
    pub source_uuid: String,

    /// Do_DB, Ignore_DB, Do_Table, Ignore_Table, Wild_Do_Table, Wild_Ignore_Table, Rewrite_DB.
    pub filters: [String; 7],
    pub skip_counter: u64,
    /// None, Master, SQL_BEFORE_GTIDS, SQL_AFTER_GTIDS.
    pub until_condition: String,
    pub until_file: String,
    pub until_position: u64,
}

fn t(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

fn u(n: u64) -> Value {
    Value::UInt(n)
}

fn i(n: u64) -> Value {
    Value::Int(n as i64)
}

fn yes(on: bool) -> Value {
    t(if on { "Yes" } else { "No" })
}

/// What MySQL calls the two repositories where they are tables.
const REPOSITORY: &str = "mysql.slave_master_info";

/// The columns of SHOW REPLICA STATUS; SHOW SLAVE STATUS says Slave, Master and Master for Replica, Source and Source.
const STATUS_COLUMNS: &str = "Replica_IO_State s14;Source_Host s60;Source_User s32;Source_Port n;Connect_Retry n;Source_Log_File s255;Read_Source_Log_Pos u;Relay_Log_File s255;Relay_Log_Pos u;Relay_Source_Log_File s255;Replica_IO_Running s10;Replica_SQL_Running s3;Replicate_Do_DB s255;Replicate_Ignore_DB s255;Replicate_Do_Table s255;Replicate_Ignore_Table s255;Replicate_Wild_Do_Table s255;Replicate_Wild_Ignore_Table s255;Last_Errno n;Last_Error s1024;Skip_Counter n;Exec_Source_Log_Pos u;Relay_Log_Space u;Until_Condition s16;Until_Log_File s255;Until_Log_Pos u;Source_SSL_Allowed s7;Source_SSL_CA_File s512;Source_SSL_CA_Path s512;Source_SSL_Cert s512;Source_SSL_Cipher s512;Source_SSL_Key s512;Seconds_Behind_Source u?;Source_SSL_Verify_Server_Cert s3;Last_IO_Errno n;Last_IO_Error s1024;Last_SQL_Errno n;Last_SQL_Error s1024;Replicate_Ignore_Server_Ids s1024;Source_Server_Id n;Source_UUID s36;Source_Info_File s512;SQL_Delay n;SQL_Remaining_Delay n?;Replica_SQL_Running_State s64;Source_Retry_Count u;Source_Bind s60;Last_IO_Error_Timestamp s20;Last_SQL_Error_Timestamp s20;Source_SSL_Crl s512;Source_SSL_Crlpath s512;Retrieved_Gtid_Set S;Executed_Gtid_Set S;Auto_Position I;Replicate_Rewrite_DB s1024;Channel_Name s64;Source_TLS_Version s512;Source_public_key_path s512;Get_Source_public_key I";

/// SHOW REPLICA STATUS, with the names of SHOW SLAVE STATUS if `old_names`.
pub(crate) fn show_status(state: &SessionState, old_names: bool) -> Answer {
    let columns = match old_names {
        true => STATUS_COLUMNS.replace("Get_Source_", "Get_master_").replace("Source_public", "Master_public").replace("Replica_", "Slave_").replace("Source", "Master"),
        false => STATUS_COLUMNS.to_string(),
    };
    let rows = state.instance.replica().and_then(|replica| replica.status()).iter().map(|status| status_row(state, status)).collect();
    Answer::new(&columns, rows)
}

fn status_row(state: &SessionState, s: &ReplicaStatus) -> Vec<Value> {
    let (do_db, rest) = s.filters.split_first().expect("seven filters");
    // The applier's error is also the one without a thread.
    let mut row = vec![t(&s.receiver_state), t(&s.host), t(&s.user), u(u64::from(s.port)), u(s.connect_retry)];
    row.extend([t(&s.read_file), u(s.read_position), t(""), u(0), t(&s.applied_file)]);
    row.extend([t(s.receiver.name()), t(s.applier.name()), t(do_db)]);
    row.extend(rest[..5].iter().map(t));
    row.extend([u(u64::from(s.applier_failure.number)), t(&s.applier_failure.message), u(s.skip_counter), u(s.applied_position), u(s.queued_bytes)]);
    row.extend([t(&s.until_condition), t(&s.until_file), u(s.until_position)]);
    row.extend([yes(s.ssl), t(&s.ssl_ca), t(&s.ssl_capath), t(&s.ssl_cert), t(&s.ssl_cipher), t(&s.ssl_key)]);
    row.extend([s.seconds_behind.map_or(Value::Null, u), yes(s.ssl_verify)]);
    for failure in [&s.receiver_failure, &s.applier_failure] {
        row.extend([u(u64::from(failure.number)), t(&failure.message)]);
    }
    row.extend([t(&s.ignore_server_ids), u(s.source_id), t(&s.source_uuid), t(REPOSITORY), u(s.delay)]);
    row.extend([s.remaining_delay.map_or(Value::Null, u), t(&s.applier_state), u(s.retry_count), t(&s.bind)]);
    for failure in [&s.receiver_failure, &s.applier_failure] {
        row.push(t(stamp(state, failure)));
    }
    row.extend([t(&s.ssl_crl), t(&s.ssl_crlpath), t(&s.received_gtids), t(&s.applied_gtids), i(u64::from(s.auto_position))]);
    row.extend([t(&s.filters[6]), t(""), t(&s.tls_version), t(&s.public_key_path), i(u64::from(s.get_public_key))]);
    row
}

/// The rows of mysql.slave_master_info and slave_relay_log_info. A password is nobody's business, and there is no relay log.
pub(crate) fn repository(state: &SessionState, table: &str) -> Vec<Vec<Value>> {
    let Some(s) = state.instance.replica().and_then(|replica| replica.status()) else { return Vec::new() };
    let on = |switch: bool| i(u64::from(switch));
    if table == "slave_relay_log_info" {
        return vec![vec![u(7), t(""), u(0), t(&s.applied_file), u(s.applied_position), i(s.delay), u(s.workers.len() as u64), u(1), t("")]];
    }
    let mut row = vec![u(27), t(&s.read_file), u(s.read_position), t(&s.host), t(&s.user), t(""), u(u64::from(s.port)), u(s.connect_retry)];
    row.extend([on(s.ssl), t(&s.ssl_ca), t(&s.ssl_capath), t(&s.ssl_cert), t(&s.ssl_cipher), t(&s.ssl_key), on(s.ssl_verify), Value::Double(s.heartbeat_period)]);
    row.extend([t(&s.bind), t(&s.ignore_server_ids), t(&s.source_uuid), u(s.retry_count), t(&s.ssl_crl), t(&s.ssl_crlpath), on(s.auto_position), t("")]);
    row.extend([t(&s.tls_version), t(&s.public_key_path), on(s.get_public_key)]);
    vec![row]
}

/// `261122 03:15:00`, empty for no error.
fn stamp(state: &SessionState, failure: &ReplicaFailure) -> String {
    if failure.number == 0 {
        return String::new();
    }
    let at = state.config.time_zone.from_utc(&DateTime::from_micros(failure.at_micros).unwrap_or_default());
    format!("{:02}{:02}{:02} {:02}:{:02}:{:02}", at.date.year % 100, at.date.month, at.date.day, at.hour, at.minute, at.second)
}

/// The rows of `performance_schema.replication_applier_filters` and `…_global_filters`: there is one channel, which has what is set for all.
pub(crate) fn filters(state: &SessionState, of_channel: bool) -> Vec<Vec<Value>> {
    let Some(replica) = state.instance.replica().filter(|replica| !of_channel || replica.status().is_some()) else { return Vec::new() };
    let row = |filter: &ReplicaFilter| {
        let by = t(if filter.by_option { "STARTUP_OPTIONS" } else { "CHANGE_REPLICATION_FILTER" });
        let rule = [t(filter.name), t(&filter.rule), by, moment(state, filter.since_micros)];
        // How often a rule was asked is not counted.
        if of_channel { [t("")].into_iter().chain(rule).chain([u(0)]).collect() } else { rule.to_vec() }
    };
    replica.filters().iter().map(row).collect()
}

/// In the session's time zone; 0 is MySQL's zero.
fn moment(state: &SessionState, micros: i64) -> Value {
    Value::DateTime(if micros == 0 { DateTime::default() } else { state.config.time_zone.from_utc(&DateTime::from_micros(micros).unwrap_or_default()) })
}

/// What the tables of performance_schema show of the last transaction of a thread, and of the present one.
fn transactions(state: &SessionState, last: &ReplicaTransaction, present: &ReplicaTransaction) -> Vec<Value> {
    let commits = |of: &ReplicaTransaction| vec![t(&of.gtid), moment(state, of.original_commit_micros), moment(state, of.immediate_commit_micros), moment(state, of.started_micros)];
    let mut row = commits(last);
    row.push(moment(state, last.ended_micros));
    row.extend(commits(present));
    row
}

/// The rows of `performance_schema.replication_…`, but those of filters.
pub(crate) fn performance_schema(state: &SessionState, table: &str) -> Vec<Vec<Value>> {
    let Some(s) = state.instance.replica().and_then(|replica| replica.status()) else { return Vec::new() };
    let failure = |f: &ReplicaFailure| vec![i(u64::from(f.number)), t(&f.message), moment(state, if f.number == 0 { 0 } else { f.at_micros })];
    let thread = |state: ThreadState, id: u64| if state == ThreadState::No { Value::Null } else { u(id) };
    let upper = |on: bool| t(if on { "YES" } else { "NO" });
    if table == "replication_applier_status_by_worker" {
        let worker = |(number, worker): (usize, &ReplicaWorker)| {
            let mut row = vec![t(""), u(number as u64 + 1), thread(s.applier, worker.thread), t(s.applier.service())];
            row.extend(failure(&s.applier_failure));
            row.extend(transactions(state, &worker.last_applied, &worker.applying));
            row
        };
        return s.workers.iter().enumerate().map(worker).collect();
    }
    let row = match table {
        "replication_connection_configuration" => vec![
            t(""),
            t(&s.host),
            i(u64::from(s.port)),
            t(&s.user),
            t(&s.bind),
            t(if s.auto_position { "1" } else { "0" }),
            upper(s.ssl),
            t(&s.ssl_ca),
            t(&s.ssl_capath),
            t(&s.ssl_cert),
            t(&s.ssl_cipher),
            t(&s.ssl_key),
            upper(s.ssl_verify),
            t(&s.ssl_crl),
            t(&s.ssl_crlpath),
            i(s.connect_retry),
            u(s.retry_count),
            Value::Double(s.heartbeat_period),
            t(&s.tls_version),
            t(&s.public_key_path),
            upper(s.get_public_key),
        ],
        "replication_connection_status" => {
            let mut row = vec![t(""), t(""), t(&s.source_uuid), thread(s.receiver, s.receiver_thread), t(s.receiver.service()), u(s.heartbeats)];
            row.push(moment(state, s.last_heartbeat_micros));
            row.push(t(&s.received_gtids));
            row.extend(failure(&s.receiver_failure));
            row.extend(transactions(state, &s.last_queued, &s.queueing));
            row
        }
        // It has no connection of its own.
        "replication_applier_status_by_coordinator" => {
            let mut row = vec![t(""), Value::Null, t(s.applier.service())];
            row.extend(failure(&s.applier_failure));
            row.extend(transactions(state, &s.last_processed, &s.processing));
            row
        }
        "replication_applier_configuration" => vec![t(""), i(s.delay)],
        _ => vec![t(""), t(s.applier.service()), s.remaining_delay.map_or(Value::Null, u), u(s.retries)],
    };
    vec![row]
}
