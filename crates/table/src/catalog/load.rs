//! Reading the catalog tree at open, and writing its first records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use highkey_binlog::Uuid;
use highkey_storage::{Bounds, Direction, Engine, IndexId, Isolation, LeafRows, Rng, SystemRng};

use super::{Catalog, keys, record, stored_record};
use crate::database::OpenError;
use crate::def::{TableId, UserDef};
use crate::event::EventDef;
use crate::high_water::put;
use crate::histogram;
use crate::metadata_lock::MetadataLocks;
use crate::routine::RoutineDef;
use crate::statistics::Statistics;
use crate::table::{Table, TableState};
use crate::view::{View, ViewDef};

/// Written at the first open; another one is a database of another version.
const FORMAT: &[u8] = b"highkey catalog 1";

#[derive(Default)]
struct Records {
    format: Option<Vec<u8>>,
    clean: bool,
    server_uuid: Option<Uuid>,
    next_auto: BTreeMap<TableId, u64>,
    next_row_id: BTreeMap<TableId, u64>,
    statistics: BTreeMap<TableId, Statistics>,
    histograms: Vec<histogram::Stored>,
    tables: Vec<crate::def::TableDef>,
    views: Vec<ViewDef>,
    routines: Vec<RoutineDef>,
    events: Vec<EventDef>,
    /// Trees of temporary tables of an earlier life.
    temporary: Vec<IndexId>,
    catalog: Catalog,
}

pub(crate) fn load(engine: &Engine, locks: &MetadataLocks) -> Result<(Catalog, Uuid), OpenError> {
    let records = match read(engine)? {
        Some(records) => records,
        None => {
            write_first(engine)?;
            read(engine)?.ok_or_else(|| corrupt("the first records are missing"))?
        }
    };
    let mut catalog = records.catalog;
    let mut unowned: Vec<Vec<u8>> = Vec::new();
    let known: BTreeSet<TableId> = records.tables.iter().map(|def| def.id).collect();
    unowned.extend(records.next_auto.keys().filter(|id| !known.contains(id)).map(|id| keys::auto_increment(*id)));
    unowned.extend(records.next_row_id.keys().filter(|id| !known.contains(id)).map(|id| keys::row_id(*id)));
    if let Some(lost) = records.histograms.iter().find(|stored| !known.contains(&stored.table)) {
        return Err(corrupt(&format!("the histogram of column '{}' has no table", lost.column)));
    }
    for def in records.tables {
        let id = def.id;
        if catalog.schema(&def.schema).is_none() {
            return Err(corrupt(&format!("table {}.{} has no schema", def.schema, def.name)));
        }
        if let Some((_, at, _)) = def.trees().into_iter().find(|(tree, ..)| !engine.index_exists(*tree)) {
            let index = &def.indexes[at];
            return Err(corrupt(&format!("index {} of table {}.{} has no tree", index.name, def.schema, def.name)));
        }
        let next = |marks: &BTreeMap<TableId, u64>| marks.get(&id).copied().unwrap_or(1);
        let (auto, row_id) = (next(&records.next_auto), next(&records.next_row_id));
        let state = TableState::new(engine, engine.root_index(), id, auto, row_id);
        if let Some(statistics) = records.statistics.get(&id) {
            if records.clean {
                state.set_rows(statistics.rows);
            }
            *state.statistics.lock() = Some(Arc::new(statistics.clone()));
        }
        for stored in records.histograms.iter().filter(|stored| stored.table == id) {
            let histogram = stored.decode(&def).map_err(|e| corrupt(&e))?;
            state.histograms.lock().insert(stored.column.clone(), Arc::new(histogram));
        }
        let lock = locks.lock_of(&def.schema, &def.name);
        locks.opened.fetch_add(1, Ordering::Relaxed);
        catalog.put_table(Arc::new(Table::new(engine.clone(), def, Arc::new(state), lock, 0)));
    }
    for def in records.views {
        if catalog.schema(&def.schema).is_none() {
            return Err(corrupt(&format!("view {}.{} has no schema", def.schema, def.name)));
        }
        if catalog.find_table(&def.schema, &def.name).is_some() {
            return Err(corrupt(&format!("{}.{} is a table and a view", def.schema, def.name)));
        }
        let lock = locks.lock_of(&def.schema, &def.name);
        catalog.put_view(Arc::new(View::new(def, lock)));
    }
    for def in records.routines {
        if catalog.schema(&def.schema).is_none() {
            return Err(corrupt(&format!("routine {}.{} has no schema", def.schema, def.name)));
        }
        catalog.put_routine(Arc::new(def));
    }
    for def in records.events {
        if catalog.schema(&def.schema).is_none() {
            return Err(corrupt(&format!("event {}.{} has no schema", def.schema, def.name)));
        }
        catalog.put_event(Arc::new(def));
    }
    catalog.settle_links();
    if records.clean {
        unowned.push(keys::clean());
    }
    unowned.extend(records.temporary.iter().map(|tree| keys::temporary(*tree)));
    if !unowned.is_empty() {
        // Counters of tables that a crash kept from coming to be, and temporary tables whose sessions are gone.
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for tree in records.temporary {
            txn.drop_index(tree)?;
        }
        for key in unowned {
            crate::high_water::remove(&mut txn, engine.root_index(), &key)?;
        }
        txn.commit(&[])?.wait()?;
    }
    let server_uuid = match records.server_uuid {
        Some(uuid) => uuid,
        None => write_server_uuid(engine)?,
    };
    Ok((catalog, server_uuid))
}

/// None: a new database.
fn read(engine: &Engine) -> Result<Option<Records>, OpenError> {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let mut scan = txn.scan(engine.root_index(), Bounds::all(), Direction::Forward);
    let mut leaf = LeafRows::new();
    let mut records = Records::default();
    let mut any = false;
    while scan.next_leaf(&mut leaf)? {
        for row in 0..leaf.len() {
            any = true;
            read_record(leaf.key(row), leaf.value(row), &mut records).map_err(|e| corrupt(&e))?;
        }
    }
    if !any {
        return Ok(None);
    }
    match records.format.as_deref() {
        Some(FORMAT) => Ok(Some(records)),
        Some(other) => Err(OpenError::Catalog(format!(
            "its format is '{}', this version reads '{}'",
            String::from_utf8_lossy(other),
            String::from_utf8_lossy(FORMAT)
        ))),
        None => Err(corrupt("it has no format record")),
    }
}

fn read_record(key: &[u8], value: &[u8], records: &mut Records) -> Result<(), String> {
    let id = || keys::table_id(key).ok_or_else(|| format!("the key {key:?} names no table"));
    let number = || value.try_into().map(u64::from_le_bytes).map_err(|_| format!("the counter {key:?} is no number"));
    let kind = *key.first().ok_or("a record has an empty key")?;
    match kind {
        keys::META if key == keys::format() => records.format = Some(value.to_vec()),
        keys::META if key == keys::clean() => records.clean = true,
        keys::META if key == keys::binlog() => {}
        keys::META if key == keys::server_uuid() => {
            records.server_uuid = Some(Uuid(value.try_into().map_err(|_| "the server's UUID has not 16 bytes")?));
        }
        keys::SCHEMA => records.catalog.put_schema(record::decode_schema(value)?),
        keys::TABLE => records.tables.push(record::decode_table(value)?),
        keys::VIEW => records.views.push(stored_record::decode_view(value)?),
        keys::ROUTINE => records.routines.push(stored_record::decode_routine(value)?),
        keys::EVENT => records.events.push(stored_record::decode_event(value)?),
        keys::USER => {
            let user: UserDef = serde_json::from_slice(value).map_err(|e| format!("an account does not decode: {e}"))?;
            records.catalog.put_user(user);
        }
        keys::AUTO_INCREMENT => {
            records.next_auto.insert(id()?, number()?);
        }
        keys::ROW_ID => {
            records.next_row_id.insert(id()?, number()?);
        }
        keys::STATISTICS => {
            let statistics = serde_json::from_slice(value).map_err(|e| format!("statistics do not decode: {e}"))?;
            records.statistics.insert(id()?, statistics);
        }
        keys::HISTOGRAM => {
            let (table, column) = keys::histogram_of(key).ok_or_else(|| format!("the key {key:?} names no column"))?;
            records.histograms.push(histogram::Stored { table, column: column.into(), value: value.to_vec() });
        }
        keys::TEMPORARY => {
            let tree = keys::temporary_of(key).ok_or_else(|| format!("the key {key:?} names no tree"))?;
            records.temporary.push(tree);
        }
        // Read when the server asks for them.
        keys::REPLICA => {}
        _ => return Err(format!("a record of an unknown kind, key {key:?}")),
    }
    Ok(())
}

/// The format record and the first account.
fn write_first(engine: &Engine) -> Result<(), OpenError> {
    let root = UserDef::root();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    put(&mut txn, engine.root_index(), &keys::format(), FORMAT)?;
    put(&mut txn, engine.root_index(), &keys::user(&root.user, &root.host), &record::encode_user(&root))?;
    txn.commit(&[])?.wait()?;
    Ok(())
}

/// A random UUID (version 4).
fn write_server_uuid(engine: &Engine) -> Result<Uuid, OpenError> {
    let random = u128::from(SystemRng.next()) << 64 | u128::from(SystemRng.next());
    let mut bytes = random.to_be_bytes();
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let mut txn = engine.begin(Isolation::ReadCommitted);
    put(&mut txn, engine.root_index(), &keys::server_uuid(), &bytes)?;
    txn.commit(&[])?.wait()?;
    Ok(Uuid(bytes))
}

fn corrupt(what: &str) -> OpenError {
    OpenError::Catalog(what.to_string())
}
