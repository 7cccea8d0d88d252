//! Who has locked what, and who waits for whom: INNODB_TRX, performance_schema's data_locks, data_lock_waits, highkey_row_lock_waits and events_transactions_current, and the text of a deadlock.
//!
//! Names of locks are `transaction:index:record`, the record by a hash of its key; those that are waited for end with `:w`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{Display, Write as _};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use highkey_table::{ActiveTxn, DeadlockReport, IndexId, Isolation, LeftTransaction, LockExtent, LockMode, LockReport, Stage, Table, TxnId};
use highkey_types::{DateTime, MySqlError, Time, Value, Warning};

use super::rows::{t, u};
use crate::session::{Instance, ProcessEntry, SessionState, error};
use crate::show;

/// The tables by their trees' numbers, with the index.
type Places = HashMap<u32, (Arc<Table>, usize)>;

fn places(instance: &Instance) -> Places {
    let catalog = instance.database().catalog();
    let mut places = HashMap::new();
    for table in catalog.schemas().iter().flat_map(|schema| catalog.tables(&schema.name)) {
        places.extend(table.def().trees().into_iter().map(|(tree, at, _)| (tree.0, (table.clone(), at))));
    }
    places
}

/// More locks than this are not shown: a range can have as many as a table has rows.
const LOCKS_SHOWN_MAX: usize = 100_000;

fn engine_error(e: impl Display) -> MySqlError {
    error::err(1030, format!("Got error from storage engine: {e}"))
}

/// The locks of tables; those of the engine's own indexes and of private tables are nobody's business.
fn of_tables(mut all: Vec<LockReport>, places: &Places) -> Vec<LockReport> {
    all.retain(|lock| places.contains_key(&lock.index.0));
    all
}

/// All waits, and the locks that are held on what is waited for.
fn contended(instance: &Instance, places: &Places) -> Result<Vec<LockReport>, MySqlError> {
    Ok(of_tables(instance.database().engine().contended_locks().map_err(engine_error)?, places))
}

/// The waits, by who waits.
fn waits(instance: &Instance, places: &Places) -> Result<HashMap<TxnId, LockReport>, MySqlError> {
    let all = instance.database().engine().lock_waits().map_err(engine_error)?;
    Ok(of_tables(all, places).into_iter().map(|lock| (lock.txn, lock)).collect())
}

/// About how many rows a transaction has locked, and how many tables it has locks of.
fn locked(instance: &Instance, places: &Places, id: Option<TxnId>, wait: Option<&LockReport>) -> Result<(u64, u64), MySqlError> {
    let Some(id) = id else { return Ok((0, 0)) };
    let locks = instance.database().engine().txn_locks(id).map_err(engine_error)?.unwrap_or_default();
    let indexes = locks.indexes.iter().copied().chain(wait.map(|lock| lock.index));
    let tables: BTreeSet<u64> = indexes.filter_map(|index| Some(places.get(&index.0)?.0.id().0)).collect();
    Ok((locks.rows, tables.len() as u64))
}

fn lock_id(lock: &LockReport) -> String {
    place_id(lock.txn, lock) + if lock.wait.is_some() { ":w" } else { "" }
}

/// The name of a transaction's lock where `lock` is.
fn place_id(txn: TxnId, lock: &LockReport) -> String {
    let record = lock.key.as_ref().map_or_else(
        || "supremum".into(),
        |key| {
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            format!("{:016x}", hasher.finish())
        },
    );
    format!("{}:{}:{record}", txn.0, lock.index.0)
}

/// As MySQL since 8.0.18 writes it. The supremum is not a record, so it has no lock without its gap, and none says so.
fn mode(lock: &LockReport) -> String {
    let mode = if lock.mode == LockMode::Exclusive { "X" } else { "S" };
    let extent = match (lock.extent, &lock.key) {
        (LockExtent::NextKey, _) | (LockExtent::Gap, None) => "",
        (LockExtent::Record, _) => ",REC_NOT_GAP",
        (LockExtent::Gap, Some(_)) => ",GAP",
        (LockExtent::InsertIntention, Some(_)) => ",GAP,INSERT_INTENTION",
        (LockExtent::InsertIntention, None) => ",INSERT_INTENTION",
    };
    format!("{mode}{extent}")
}

fn data(table: &Table, index: usize, lock: &LockReport) -> Value {
    match &lock.key {
        None => t("supremum pseudo-record"),
        Some(key) => table.lock_data(index, key).ok().flatten().map_or(Value::Null, t),
    }
}

/// The connections whose transactions have these numbers.
fn sessions(instance: &Instance) -> HashMap<TxnId, Arc<ProcessEntry>> {
    let all = instance.processes().all();
    all.into_iter().filter_map(|process| Some((process.activity().get()?.id?, process))).collect()
}

fn thread(sessions: &HashMap<TxnId, Arc<ProcessEntry>>, txn: TxnId) -> Value {
    sessions.get(&txn).map_or(Value::Null, |process| u(process.id()))
}

/// performance_schema.data_locks. A table's intention lock is shown where the transaction has locks of its records.
pub(super) fn data_locks(state: &SessionState, warnings: &mut Vec<Warning>) -> Result<Vec<Vec<Value>>, MySqlError> {
    let places = places(&state.instance);
    let sessions = sessions(&state.instance);
    let mut rows = Vec::new();
    let mut intentions: BTreeMap<(TxnId, u64), (&str, &Arc<Table>)> = BTreeMap::new();
    let shown = state.instance.database().engine().locks(LOCKS_SHOWN_MAX).map_err(engine_error)?;
    if shown.is_cut {
        warnings.push(error::warning(1105, format!("More than {LOCKS_SHOWN_MAX} locks are held: not all of them are shown")));
    }
    let reports = of_tables(shown.locks, &places);
    let row = |id: String, txn: TxnId, table: &Table, index: Value, kind: &str, mode: &str, granted: bool, data: Value| {
        let def = table.def();
        let status = if granted { "GRANTED" } else { "WAITING" };
        let (schema, name) = (t(&def.schema), t(&def.name));
        let event = [u(txn.0), thread(&sessions, txn), Value::Null, schema, name, Value::Null, Value::Null, index, u(0_u64)];
        let mut row = vec![t("INNODB"), t(id)];
        row.extend(event);
        row.extend([t(kind), t(mode), t(status), data]);
        row
    };
    for lock in &reports {
        let (table, index) = &places[&lock.index.0];
        let intention = intentions.entry((lock.txn, table.id().0)).or_insert(("IS", table));
        if lock.mode == LockMode::Exclusive {
            intention.0 = "IX";
        }
        let name = t(&table.def().indexes[*index].name);
        rows.push(row(lock_id(lock), lock.txn, table, name, "RECORD", &mode(lock), lock.wait.is_none(), data(table, *index, lock)));
    }
    let tables = intentions.iter().map(|(&(txn, id), (mode, table))| row(format!("{}:{id}", txn.0), txn, table, Value::Null, "TABLE", mode, true, Value::Null));
    let mut all: Vec<_> = tables.collect();
    all.extend(rows);
    Ok(all)
}

/// performance_schema.data_lock_waits: a row for each that a waiter waits for.
pub(super) fn data_lock_waits(state: &SessionState) -> Result<Vec<Vec<Value>>, MySqlError> {
    let places = places(&state.instance);
    let sessions = sessions(&state.instance);
    let reports = contended(&state.instance, &places)?;
    let held: BTreeSet<String> = reports.iter().filter(|lock| lock.wait.is_none()).map(lock_id).collect();
    let mut rows = Vec::new();
    for lock in &reports {
        for &blocker in lock.wait.iter().flat_map(|wait| &wait.blockers) {
            // Who is not a holder is a waiter ahead.
            let mut blocking = place_id(blocker, lock);
            if !held.contains(&blocking) {
                blocking += ":w";
            }
            let side = |id: String, txn: TxnId| [t(id), u(txn.0), thread(&sessions, txn), Value::Null, u(0_u64)];
            let mut row = vec![t("INNODB")];
            row.extend(side(lock_id(lock), lock.txn));
            row.extend(side(blocking, blocker));
            rows.push(row);
        }
    }
    Ok(rows)
}

/// performance_schema.highkey_row_lock_waits: a row for each that a waiter waits for, with what INNODB_TRX says of both.
pub(super) fn lock_waits(state: &SessionState) -> Result<Vec<Vec<Value>>, MySqlError> {
    let places = places(&state.instance);
    let sessions = sessions(&state.instance);
    let reports = contended(&state.instance, &places)?;
    let moment = |us: u64| Value::DateTime(state.config.time_zone.from_utc(&DateTime::from_micros(us as i64).unwrap_or_default()));
    let age = |us: u64| (now_us() / 1_000_000).saturating_sub(us / 1_000_000) as i64;
    let time = |us: u64| Value::Time(Time { micros: age(us) * 1_000_000 });
    let query = |side: &Side| side.query.clone().map_or(Value::Null, Value::Text);
    let waits = reports.iter().filter_map(|lock| Some((lock.txn, lock.wait.as_ref()?)));
    let involved: BTreeSet<TxnId> = waits.flat_map(|(txn, wait)| wait.blockers.iter().copied().chain([txn])).collect();
    let mut sides = HashMap::new();
    for txn in involved {
        if let Some(found) = side(state, &places, &sessions, txn)? {
            sides.insert(txn, found);
        }
    }
    let mut rows = Vec::new();
    for lock in &reports {
        let Some(wait) = &lock.wait else { continue };
        let Some(waiter) = sides.get(&lock.txn) else { continue };
        let def = places[&lock.index.0].0.def();
        let table = format!("{}.{}", show::quote(&def.schema), show::quote(&def.name));
        for &txn in &wait.blockers {
            let Some(blocker) = sides.get(&txn) else { continue };
            let of_blocker = |held: &&LockReport| held.txn == txn && held.index == lock.index && held.key == lock.key;
            let held = reports.iter().filter(of_blocker).min_by_key(|held| held.wait.is_some());
            let index = t(&def.indexes[places[&lock.index.0].1].name);
            let mut row = vec![moment(wait.since_us), time(wait.since_us), Value::Int(age(wait.since_us)), t(&table), t(&def.schema), t(&def.name), Value::Null, Value::Null, index];
            row.extend([t("RECORD"), t(lock.txn.0.to_string()), moment(waiter.started_us), time(waiter.started_us), u(waiter.rows_locked), u(waiter.rows_changed)]);
            row.extend([u(waiter.connection), query(waiter), t(lock_id(lock)), t(mode(lock)), t(txn.0.to_string()), u(blocker.connection)]);
            row.extend([query(blocker), t(held.map_or_else(|| place_id(txn, lock), lock_id)), held.map_or(Value::Null, |held| t(mode(held)))]);
            row.extend([moment(blocker.started_us), time(blocker.started_us), u(blocker.rows_locked), u(blocker.rows_changed)]);
            row.extend([t(format!("KILL QUERY {}", blocker.connection)), t(format!("KILL {}", blocker.connection))]);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// One of the two of a wait.
struct Side {
    connection: u64,
    query: Option<Arc<str>>,
    started_us: u64,
    rows_locked: u64,
    rows_changed: u64,
}

/// `None` for a transaction that is no session's, or has ended meanwhile.
fn side(state: &SessionState, places: &Places, sessions: &HashMap<TxnId, Arc<ProcessEntry>>, txn: TxnId) -> Result<Option<Side>, MySqlError> {
    let Some((process, active)) = sessions.get(&txn).and_then(|process| Some((process, process.activity().get()?))) else { return Ok(None) };
    let snapshot = process.snapshot();
    let query = snapshot.info.filter(|_| snapshot.command != "Sleep");
    let (rows_locked, _) = locked(&state.instance, places, Some(txn), None)?;
    Ok(Some(Side { connection: process.id(), query, started_us: active.started_us, rows_locked, rows_changed: active.rows_changed }))
}

fn level(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

/// What a transaction that has locked nothing is called: numbers that no other has.
const UNNUMBERED: u64 = 1 << 48;

/// performance_schema.events_transactions_current: the transactions that go on, numbered by when they began.
pub(super) fn current_transactions(state: &SessionState) -> Vec<Vec<Value>> {
    let nulls = |count: usize| vec![Value::Null; count];
    let row = |process: &Arc<ProcessEntry>| {
        let active = process.activity().get()?;
        let picos = now_us().saturating_sub(active.started_us).saturating_mul(1_000_000);
        let mut row = vec![u(process.id()), u(active.started_us), Value::Null, t("transaction"), t("ACTIVE"), active.id.map_or(Value::Null, |id| u(id.0))];
        // GTID, XA, source and moments.
        row.extend(nulls(8));
        let mode = if process.is_read_only() { "READ ONLY" } else { "READ WRITE" };
        row.extend([u(picos), t(mode), t(level(active.isolation)), t(if process.is_in_transaction() { "NO" } else { "YES" })]);
        // Savepoints, and what it is inside of.
        row.extend(nulls(6));
        Some(row)
    };
    state.instance.processes().all().iter().filter_map(row).collect()
}

/// information_schema.INNODB_TRX. Not the asking session's, if it has locked nothing: it has a view only to ask.
pub(super) fn transactions(state: &SessionState) -> Result<Vec<Vec<Value>>, MySqlError> {
    let places = places(&state.instance);
    let waits = waits(&state.instance, &places)?;
    let mut rows = Vec::new();
    for process in state.instance.processes().all() {
        if let Some(active) = process.activity().get()
            && (active.id.is_some() || process.id() != state.client.connection_id)
        {
            let wait = active.id.and_then(|id| waits.get(&id));
            rows.push(transaction(state, &process, &active, wait, &places)?);
        }
    }
    for left in state.instance.database().xa_left() {
        rows.push(left_transaction(state, &left, &places)?);
    }
    Ok(rows)
}

fn transaction(state: &SessionState, process: &ProcessEntry, active: &ActiveTxn, wait: Option<&LockReport>, places: &Places) -> Result<Vec<Value>, MySqlError> {
    let moment = |micros: u64| Value::DateTime(state.config.time_zone.from_utc(&DateTime::from_micros(micros as i64).unwrap_or_default()));
    let waiting = wait.and_then(|lock| Some((lock, lock.wait.as_ref()?)));
    let size = active.id.and_then(|id| state.instance.database().engine().txn_size(id)).unwrap_or_default();
    let (records, tables) = locked(&state.instance, places, active.id, wait)?;
    let snapshot = process.snapshot();
    let running = snapshot.command != "Sleep";
    let operation = match waiting {
        Some((lock, _)) if lock.extent == LockExtent::InsertIntention => t("inserting"),
        Some(_) => t("starting index read"),
        None => Value::Null,
    };
    let locks = size.locked_keys + size.locked_ranges;
    Ok(vec![
        u(active.id.map_or(UNNUMBERED + process.id(), |id| id.0)),
        t(match waiting {
            Some(_) => "LOCK WAIT",
            None if process.progress().stage() == Stage::RollingBack => "ROLLING BACK",
            None => "RUNNING",
        }),
        moment(active.started_us),
        waiting.map_or(Value::Null, |(lock, _)| t(lock_id(lock))),
        waiting.map_or(Value::Null, |(_, wait)| moment(wait.since_us)),
        u(locks as u64 + active.rows_changed),
        u(process.id()),
        snapshot.info.as_ref().filter(|_| running).map_or(Value::Null, |info| t(&**info)),
        operation,
        u(if running { tables } else { 0 }),
        u(tables),
        u(locks as u64),
        u(size.lock_bytes as u64),
        u(records),
        u(active.rows_changed),
        u(0_u64),
        t(level(active.isolation)),
        Value::Int(i64::from(process.checks_unique())),
        Value::Int(i64::from(process.checks_foreign_keys())),
        Value::Null,
        Value::Int(0),
        u(0_u64),
        Value::Int(i64::from(process.is_read_only())),
        Value::Int(i64::from(active.id.is_none() && !process.is_in_transaction())),
    ])
}

/// A prepared transaction of no session: it has no connection, and waits for nothing.
fn left_transaction(state: &SessionState, left: &LeftTransaction, places: &Places) -> Result<Vec<Value>, MySqlError> {
    let since = left.since.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
    let size = state.instance.database().engine().txn_size(left.id).unwrap_or_default();
    let (records, tables) = locked(&state.instance, places, Some(left.id), None)?;
    let locks = (size.locked_keys + size.locked_ranges) as u64;
    let mut row = vec![u(left.id.0), t("RUNNING"), Value::DateTime(state.config.time_zone.from_utc(&DateTime::from_micros(since).unwrap_or_default()))];
    row.extend([Value::Null, Value::Null, u(locks + size.entries_changed), u(0_u64), Value::Null, Value::Null, u(0_u64), u(tables), u(locks)]);
    row.extend([u(size.lock_bytes as u64), u(records), u(size.entries_changed), u(0_u64), t(level(left.isolation)), Value::Int(1), Value::Int(1)]);
    row.extend([Value::Null, Value::Int(0), u(0_u64), Value::Int(0), Value::Int(0)]);
    Ok(row)
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}

fn seconds_since(us: u64) -> u64 {
    now_us().saturating_sub(us) / 1_000_000
}

fn moment_text() -> String {
    DateTime::from_micros(now_us() as i64).unwrap_or_default().format(0)
}

/// What InnoDB's monitor says of a transaction before it comes to its locks. `wait` is what it waits for, `tables` those it has locks of.
fn transaction_lines(instance: &Instance, process: &ProcessEntry, active: &ActiveTxn, wait: Option<&LockReport>, tables: u64) -> String {
    let size = active.id.and_then(|id| instance.database().engine().txn_size(id)).unwrap_or_default();
    let p = process.snapshot();
    let operation = match wait {
        Some(lock) if lock.extent == LockExtent::InsertIntention => " inserting",
        Some(_) => " starting index read",
        None => "",
    };
    let id = active.id.map_or(UNNUMBERED + process.id(), |id| id.0);
    let mut text = format!("TRANSACTION {id}, ACTIVE {} sec{operation}\n", seconds_since(active.started_us));
    if tables > 0 && p.command != "Sleep" {
        let _ = writeln!(text, "mysql tables in use {tables}, locked {tables}");
    }
    let waits = if wait.is_some() { "LOCK WAIT " } else { "" };
    let _ = write!(text, "{waits}{} lock struct(s), heap size {}, {} row lock(s)", size.locked_keys + size.locked_ranges, size.lock_bytes, size.locked_keys);
    if size.entries_changed > 0 {
        let _ = write!(text, ", undo log entries {}", size.entries_changed);
    }
    let connection = format!("MySQL thread id {}, {} {} {}", p.id, p.host, p.user, p.state);
    let _ = writeln!(text, "\n{}", connection.trim_end());
    if let Some(info) = &p.info {
        let _ = writeln!(text, "{info}");
    }
    text
}

/// What SHOW ENGINE INNODB STATUS says under LIST OF TRANSACTIONS FOR EACH SESSION.
pub(crate) fn transactions_text(instance: &Instance) -> Result<String, MySqlError> {
    let places = places(instance);
    let waits = waits(instance, &places)?;
    let mut text = String::new();
    for process in instance.processes().all() {
        let Some(active) = process.activity().get() else {
            let _ = writeln!(text, "---TRANSACTION {}, not started\n0 lock struct(s), heap size 0, 0 row lock(s)", UNNUMBERED + process.id());
            continue;
        };
        let wait = active.id.and_then(|id| waits.get(&id));
        let (_, tables) = locked(instance, &places, active.id, wait)?;
        let waiting = wait.and_then(|lock| Some((lock, lock.wait.as_ref()?)));
        text += "---";
        text += &transaction_lines(instance, &process, &active, wait, tables);
        if let Some((lock, wait)) = waiting {
            let seconds = seconds_since(wait.since_us);
            let _ = writeln!(text, "------- TRX HAS BEEN WAITING {seconds} SEC FOR THIS LOCK TO BE GRANTED:\n{}\n------------------", lock_text(&places, lock.txn, lock, true));
        }
    }
    Ok(text)
}

/// What SHOW ENGINE INNODB STATUS says under LATEST FOREIGN KEY ERROR: of a statement that ends with error 1451 or 1452, whose transaction goes on.
pub(crate) fn foreign_key_text(instance: &Instance, process: &ProcessEntry, error: &MySqlError) -> String {
    let told = error.message.split_once(" (").and_then(|(_, told)| told.strip_suffix(')')).unwrap_or(&error.message);
    let (table, constraint) = told.split_once(", CONSTRAINT").unwrap_or((told, ""));
    let mut text = format!("{} Transaction:\n", moment_text());
    if let Some(active) = process.activity().get() {
        text += &transaction_lines(instance, process, &active, None, 0);
    }
    text + &format!("Foreign key constraint fails for table {table}:\n,\n  CONSTRAINT{constraint}\n")
}

/// What SHOW ENGINE INNODB STATUS says under LATEST DETECTED DEADLOCK, and the error log with `innodb_print_all_deadlocks`.
pub(crate) fn deadlock_text(instance: &Instance, deadlock: &DeadlockReport) -> String {
    let places = places(instance);
    let sessions = sessions(instance);
    let mut text = moment_text() + "\n";
    let count = deadlock.members.len();
    // As in MySQL, who has closed the circle, the first of its members, comes last.
    for number in 1..=count {
        let n = number % count;
        let waits = &deadlock.members[n];
        let _ = writeln!(text, "*** ({number}) TRANSACTION:");
        match sessions.get(&waits.txn).and_then(|process| Some((process, process.activity().get()?))) {
            Some((process, active)) => text += &transaction_lines(instance, process, &active, Some(waits), 0),
            None => text += &format!("TRANSACTION {}\n", waits.txn.0),
        }
        // What the one before it in the circle waits for.
        let held = &deadlock.members[(n + count - 1) % count];
        let _ = writeln!(text, "*** ({number}) HOLDS THE LOCK(S):\n{}", lock_text(&places, waits.txn, held, false));
        let _ = writeln!(text, "*** ({number}) WAITING FOR THIS LOCK TO BE GRANTED:\n{}", lock_text(&places, waits.txn, waits, true));
    }
    let victim = if deadlock.victim == 0 { count } else { deadlock.victim };
    let _ = writeln!(text, "*** WE ROLL BACK TRANSACTION ({victim})");
    text
}

fn lock_text(places: &Places, txn: TxnId, lock: &LockReport, waiting: bool) -> String {
    if lock.index == IndexId::NUMBERS {
        let number = lock.key.as_deref().and_then(|key| <[u8; 8]>::try_from(key).ok()).map(u64::from_be_bytes);
        let name = places.values().find(|(table, _)| Some(table.id().0) == number);
        let name = name.map_or_else(String::new, |(table, _)| format!(" table `{}`.`{}`", table.def().schema, table.def().name));
        return format!("TABLE LOCK{name} trx id {} lock mode AUTO-INC{}", txn.0, if waiting { " waiting" } else { "" });
    }
    let Some((table, index)) = places.get(&lock.index.0) else { return format!("RECORD LOCKS of index {} trx id {}", lock.index.0, txn.0) };
    let def = table.def();
    let name = &def.indexes[*index].name;
    let data = match data(table, *index, lock) {
        Value::Text(data) => data.to_string(),
        _ => "(no record)".into(),
    };
    let mode = match (waiting, lock.mode) {
        (false, _) => String::new(),
        (true, LockMode::Exclusive) => format!(" lock_mode X{} waiting", extent_text(lock)),
        (true, _) => format!(" lock mode S{} waiting", extent_text(lock)),
    };
    format!("RECORD LOCKS index {name} of table `{}`.`{}` trx id {}{mode}\nRecord lock, data {data}", def.schema, def.name, txn.0)
}

/// `mode` in the monitor's words.
fn extent_text(lock: &LockReport) -> &'static str {
    match (lock.extent, &lock.key) {
        (LockExtent::NextKey, _) | (LockExtent::Gap, None) => "",
        (LockExtent::Record, _) => " locks rec but not gap",
        (LockExtent::Gap, Some(_)) => " locks gap before rec",
        (LockExtent::InsertIntention, Some(_)) => " locks gap before rec insert intention",
        (LockExtent::InsertIntention, None) => " insert intention",
    }
}
