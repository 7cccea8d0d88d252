//! Connections as threads, what they run, how many there are and what they have counted, and the metadata locks that they have and wait for: performance_schema's threads,
//! events_statements_current and _history, accounts, users, hosts, session_connect_attrs, status_by_thread, metadata_locks and highkey_table_lock_waits.
//! A thread's number is its connection's.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use highkey_table::{MetadataLockReport, MetadataMode, MetadataObject};
use highkey_types::{Value, errors::sqlstate};

use super::rows::{t, u};
use crate::parse;
use crate::session::history::{PastStatement, SHOWN_BYTES, StatementKind};
use crate::session::{ProcessEntry, ProcessSnapshot, SessionState, digest_hash, host_of};

/// performance_schema.threads: the connections, the replica's workers, and who runs events. Threads of the operating system serve all of them, and are nobody's.
pub(super) fn threads(state: &SessionState) -> Vec<Vec<Value>> {
    state.instance.processes().all().iter().map(|process| thread(process)).collect()
}

fn thread(process: &ProcessEntry) -> Vec<Value> {
    let p = process.snapshot();
    let given = |text: &str| if text.is_empty() { Value::Null } else { t(text) };
    let name = match process.connection_type() {
        Some(_) => "thread/sql/one_connection",
        None if p.command == "Daemon" => "thread/sql/event_scheduler",
        None => "thread/sql/slave_worker",
    };
    vec![
        u(p.id),
        t(name),
        t("FOREGROUND"),
        u(p.id),
        given(&p.user),
        given(host(&p)),
        p.db.map_or(Value::Null, t),
        t(p.command),
        Value::Int(p.seconds as i64),
        given(&p.state),
        p.info.map_or(Value::Null, Value::Text),
        Value::Null,
        Value::Null,
        t("YES"),
        t("YES"),
        process.connection_type().map_or(Value::Null, t),
        Value::Null,
        Value::Null,
    ]
}

fn host(p: &ProcessSnapshot) -> &str {
    host_of(&p.host)
}

/// performance_schema.events_statements_current: the statements that run, of which what is counted when they end is 0; of a connection that runs none the last one, as in MySQL.
pub(super) fn statements(state: &SessionState) -> Vec<Vec<Value>> {
    let row = |process: &Arc<ProcessEntry>| {
        statement(process).or_else(|| {
            let last = process.history().past().last().cloned();
            last.map(|last| past_statement(state, process.id(), &last))
        })
    };
    state.instance.processes().all().iter().filter_map(row).collect()
}

fn statement(process: &ProcessEntry) -> Option<Vec<Value>> {
    let p = process.snapshot();
    let text = p.info?;
    let picos = u64::try_from(p.elapsed.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
    let nulls = |count: usize| vec![Value::Null; count];
    let zeros = |count: usize| vec![u(0_u64); count];
    let mut row = vec![u(p.id), u(process.history().ended() + 1), Value::Null, t(format!("statement/com/{}", p.command))];
    // Where it comes from, and when it began; then its digest.
    row.extend(nulls(3));
    row.extend([u(picos), u(0_u64), Value::Text(text), Value::Null, Value::Null, p.db.map_or(Value::Null, t)]);
    // The object that it is a part of, and what has become of it.
    row.extend(nulls(7));
    row.extend(zeros(4));
    row.push(u(process.rows_examined()));
    row.extend(zeros(13));
    row.extend(nulls(3));
    Some(row)
}

/// performance_schema.events_statements_history: the statements that each connection has run last.
pub(super) fn past_statements(state: &SessionState) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for process in state.instance.processes().all() {
        let past: Vec<PastStatement> = process.history().past().cloned().collect();
        rows.extend(past.iter().map(|past| past_statement(state, process.id(), past)));
    }
    rows
}

fn past_statement(state: &SessionState, thread: u64, past: &PastStatement) -> Vec<Value> {
    let picos = |nanos: u64| u(nanos.saturating_mul(1000));
    let nulls = |count: usize| vec![Value::Null; count];
    let parsed = match past.digest {
        None => parse::parse_single(&past.text, state.config.parse).ok(),
        Some(_) => None,
    };
    let digest = past.digest.as_deref().or(parsed.as_ref().map(|parsed| &*parsed.digest));
    let (code, message) = past.error.as_deref().map_or((0, None), |(code, message)| (*code, Some(message)));
    // What is no statement has none.
    let digest = digest.filter(|_| past.kind != StatementKind::Error);
    let end = u64::try_from(state.instance.since_start(past.ended).as_nanos()).unwrap_or(u64::MAX);
    let mut row = vec![u(thread), u(past.number), u(past.number), t(past.kind.event()), Value::Null];
    row.extend([picos(end.saturating_sub(past.elapsed)), picos(end), picos(past.elapsed), picos(past.locked)]);
    row.extend([t(&past.text[..past.text.floor_char_boundary(SHOWN_BYTES)]), digest.map_or(Value::Null, |digest| t(digest_hash(digest))), digest.map_or(Value::Null, t)]);
    row.push(past.schema.as_deref().map_or(Value::Null, t));
    // The object that it is a part of, and what has become of it. Who sends rows says no SQLSTATE.
    row.extend(nulls(4));
    let sqlstate = match code {
        0 if past.rows_sent > 0 || past.kind.is_select() => Value::Null,
        0 => t("00000"),
        code => t(sqlstate(code).as_str()),
    };
    row.extend([Value::Int(i64::from(code)), sqlstate, message.map_or(Value::Null, |text| t(&text[..text.floor_char_boundary(128)]))]);
    row.extend([u64::from(past.failed), past.warnings, past.rows_affected, past.rows_sent, past.rows_examined].map(u));
    row.extend(past.work.map(u));
    row.extend([Value::Null, Value::Null, Value::Int(0)]);
    row
}

/// performance_schema.accounts, users and hosts: how many connections each has, and has made.
pub(super) fn connections(state: &SessionState, by_user: bool, by_host: bool) -> Vec<Vec<Value>> {
    let processes = state.instance.processes();
    let key = |user: &str, host: &str| (by_user.then(|| user.to_owned()), by_host.then(|| host.to_owned()));
    let mut counts: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for ((user, host), made) in processes.made() {
        counts.entry(key(&user, &host)).or_default().1 += made;
    }
    for process in processes.all().iter().filter(|process| process.connection_type().is_some()) {
        let p = process.snapshot();
        if let Some((current, _)) = counts.get_mut(&key(&p.user, host(&p))) {
            *current += 1;
        }
    }
    let row = |((user, host), (current, made)): ((Option<String>, Option<String>), (u64, u64))| {
        let named = user.into_iter().chain(host).map(t);
        named.chain([current, made].map(|n| Value::Int(n as i64))).collect::<Vec<Value>>()
    };
    counts.into_iter().map(row).collect()
}

/// performance_schema.session_connect_attrs: what clients say of themselves, in no order. `own`: those of who is the session's user, from where it is.
pub(super) fn attributes(state: &SessionState, own: bool) -> Vec<Vec<Value>> {
    let is_own = |p: &ProcessSnapshot| p.user == state.client.user && host(p) == host_of(&state.client.client_address);
    let mut rows = Vec::new();
    for process in state.instance.processes().all() {
        if !own || is_own(&process.snapshot()) {
            rows.extend(process.attributes().iter().map(|(name, value)| vec![u(process.id()), t(name), t(value), Value::Null]));
        }
    }
    rows
}

/// performance_schema.status_by_thread: what the connections have counted for themselves, and their TLS.
pub(super) fn status(state: &SessionState) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for process in state.instance.processes().all() {
        let row = |name: &str, value: &str| vec![u(process.id()), t(name), t(value)];
        rows.extend(process.status().of_session().map(|(name, n)| row(name, &n.to_string())));
        if process.connection_type().is_some() {
            let (version, cipher) = process.tls();
            // No session of TLS is resumed.
            rows.extend([row("Ssl_cipher", cipher), row("Ssl_version", version), row("Ssl_sessions_reused", "0")]);
        }
    }
    rows
}

/// The connections by their sessions' numbers in reports of metadata locks.
fn owners(state: &SessionState) -> HashMap<u64, Arc<ProcessEntry>> {
    state.instance.processes().all().into_iter().map(|process| (process.lock_owner(), process)).collect()
}

/// LOCK_TYPE, as MySQL names what comes nearest.
fn lock_type(lock: &MetadataLockReport) -> &'static str {
    match (&lock.object, lock.mode) {
        (MetadataObject::Table(..), MetadataMode::Read) => "SHARED_READ",
        (MetadataObject::Table(..), MetadataMode::Write) => "SHARED_WRITE",
        (MetadataObject::Table(..), MetadataMode::ReadOnly) => "SHARED_READ_ONLY",
        (MetadataObject::Table(..), MetadataMode::Upgradable) => "SHARED_UPGRADABLE",
        (MetadataObject::Table(..), MetadataMode::Exclusive) if lock.is_of_session => "SHARED_NO_READ_WRITE",
        (_, MetadataMode::Exclusive) => "EXCLUSIVE",
        (_, MetadataMode::ReadOnly) => "SHARED",
        (_, MetadataMode::Read | MetadataMode::Write | MetadataMode::Upgradable) => "INTENTION_EXCLUSIVE",
    }
}

/// LOCK_DURATION; as in MySQL, LOCK TABLES has no other than a transaction.
fn lock_duration(lock: &MetadataLockReport) -> &'static str {
    match (&lock.object, lock.mode) {
        (MetadataObject::Global | MetadataObject::Commit, MetadataMode::Write) => "STATEMENT",
        (MetadataObject::Global | MetadataObject::Commit, _) | (MetadataObject::Backup, MetadataMode::ReadOnly) => "EXPLICIT",
        _ => "TRANSACTION",
    }
}

/// performance_schema.metadata_locks.
pub(super) fn metadata_locks(state: &SessionState) -> Vec<Vec<Value>> {
    let owners = owners(state);
    let row = |lock: &MetadataLockReport| {
        let (kind, schema, name) = match &lock.object {
            MetadataObject::Global => ("GLOBAL", Value::Null, Value::Null),
            MetadataObject::Commit => ("COMMIT", Value::Null, Value::Null),
            MetadataObject::Backup => ("BACKUP LOCK", Value::Null, Value::Null),
            MetadataObject::Schema(schema) => ("SCHEMA", t(schema), Value::Null),
            MetadataObject::Table(schema, name) => ("TABLE", t(schema), t(name)),
        };
        let status = if lock.is_granted { "GRANTED" } else { "PENDING" };
        let owner = owners.get(&lock.session).map_or(Value::Null, |process| u(process.id()));
        vec![t(kind), schema, name, Value::Null, u(0_u64), t(lock_type(lock)), t(lock_duration(lock)), t(status), Value::Null, owner, Value::Null]
    };
    state.instance.database().metadata_lock_reports().iter().map(row).collect()
}

/// performance_schema.highkey_table_lock_waits: who waits for a table, beside each that has a lock of it.
pub(super) fn table_lock_waits(state: &SessionState) -> Vec<Vec<Value>> {
    let owners = owners(state);
    let locks = state.instance.database().metadata_lock_reports();
    let mut rows = Vec::new();
    for waiting in locks.iter().filter(|lock| !lock.is_granted) {
        let (MetadataObject::Table(schema, name), Some(waiter)) = (&waiting.object, owners.get(&waiting.session)) else { continue };
        let w = waiter.snapshot();
        for held in locks.iter().filter(|lock| lock.is_granted && lock.object == waiting.object) {
            let Some(holder) = owners.get(&held.session) else { continue };
            let id = holder.id();
            let mut row = vec![t(schema), t(name), u(w.id), u(w.id), account(&w), t(lock_type(waiting)), t(lock_duration(waiting)), w.info.clone().map_or(Value::Null, Value::Text)];
            row.extend([Value::Int(w.seconds as i64), u(0_u64), u(waiter.rows_examined()), u(id), u(id), account(&holder.snapshot())]);
            row.extend([t(lock_type(held)), t(lock_duration(held)), t(format!("KILL QUERY {id}")), t(format!("KILL {id}"))]);
            rows.push(row);
        }
    }
    rows
}

fn account(p: &ProcessSnapshot) -> Value {
    t(format!("{}@{}", p.user, host(p)))
}
