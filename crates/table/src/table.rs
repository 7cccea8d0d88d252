//! One table: reading and changing single rows. Inserting is in insert.rs, scanning in scan.rs.

use std::sync::{Arc, OnceLock};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highkey_binlog::{RowMetadata, TableMap};
use highkey_storage::{Engine, IndexId, Isolation, Locked, LockMode, LockWaitPolicy, StripedCounts};
use highkey_types::{ColumnType, MySqlError, RowLayout, Value};
use parking_lot::{Mutex, RwLock};

use crate::auto_increment::{self, AutoIncrement, Reservation};
use crate::catalog::keys;
use crate::commit::Change;
use crate::def::{ColumnDef, IndexDef, IndexKind, TableDef, TableId};
use crate::error;
use crate::foreign::Links;
use crate::high_water::HighWater;
use crate::histogram::Histograms;
use crate::index::{self, IndexCodec};
use crate::metadata_lock::MetadataLock;
use crate::partition::{Chooser, Parts, part_defs};
use crate::row::Row;
use crate::row_id::{self, RowIds};
use crate::statistics::Statistics;
use crate::transaction::{Scratch, Transaction};
use crate::usage::Usage;

/// Repeats a row operation until it needs no further wait for a row lock.
macro_rules! granted {
    ($table:expr, $operation:expr) => {
        loop {
            match $operation.map_err(|e| $crate::error::storage(e, &$table.def.name))? {
                highkey_storage::Op::Done(outcome) => break outcome,
                highkey_storage::Op::Wait(wait) => wait.await.map_err($crate::error::lock)?,
            }
        }
    };
}
pub(crate) use granted;

/// A table by one of its definitions. DDL replaces the `Table`; what lives longer is in its `TableState`.
pub struct Table {
    pub(crate) def: Arc<TableDef>,
    pub(crate) layout: Arc<RowLayout>,
    pub(crate) indexes: Vec<IndexCodec>,
    pub(crate) state: Arc<TableState>,
    pub(crate) lock: Arc<MetadataLock>,
    pub(crate) engine: Engine,
    /// The catalog's epoch when the trees became what they are: an older snapshot does not see their rows.
    pub(crate) trees_epoch: u64,
    /// How the binary log names the table and its columns: minimal, full.
    event_maps: Arc<[OnceLock<Arc<TableMap>>; 2]>,
    current: Arc<AtomicBool>,
    auto_column: Option<usize>,
    /// What foreign keys tie it to; None for most tables.
    pub(crate) links: Option<Box<Links>>,
    /// One session's own: in no catalog, and not in the binary log.
    temporary: bool,
    /// The partitions; None for most tables.
    pub(crate) parts: Option<Parts>,
    /// What statements have done by each index, and by none; partitions have their table's.
    pub(crate) usage: Arc<[Arc<StripedCounts<4>>]>,
}

/// What belongs to a table over all its definitions.
pub(crate) struct TableState {
    pub(crate) auto_increment: AutoIncrement,
    /// See `Table::numbering`.
    pub(crate) numbering: RwLock<()>,
    pub(crate) row_ids: RowIds,
    /// Committed rows; negative: not known since the start, the storage engine is asked.
    rows: AtomicI64,
    /// When a transaction that changed rows last committed, microseconds since 1970; 0: not since the start.
    changed_us: AtomicU64,
    /// A bulk insert collects rows to load the empty table with; others need not try.
    pub(crate) loading: AtomicBool,
    pub(crate) statistics: Mutex<Option<Arc<Statistics>>>,
    /// As the catalog has them.
    pub(crate) histograms: Mutex<Histograms>,
    /// Held from the write into the catalog to the one here.
    pub(crate) storing_histograms: Mutex<()>,
    usage: Usage,
}

const UNKNOWN_ROWS: i64 = i64::MIN;

impl TableState {
    /// `next_auto` and `next_row_id` are what the catalog has, 1 if nothing.
    pub(crate) fn new(engine: &Engine, catalog: IndexId, id: TableId, next_auto: u64, next_row_id: u64) -> TableState {
        let counter = |key, next, step| HighWater::new(engine.clone(), catalog, key, next, step);
        TableState::of(
            counter(keys::auto_increment(id), next_auto, auto_increment::MARK_STEP),
            counter(keys::row_id(id), next_row_id, row_id::MARK_STEP),
        )
    }

    /// Of a new temporary table: its counters go with it.
    pub(crate) fn temporary(engine: &Engine, catalog: IndexId, id: TableId, next_auto: u64) -> TableState {
        let counter = |key, next, step| HighWater::new(engine.clone(), catalog, key, next, step).volatile();
        TableState::of(
            counter(keys::auto_increment(id), next_auto, auto_increment::MARK_STEP),
            counter(keys::row_id(id), 1, row_id::MARK_STEP),
        )
    }

    fn of(auto_increment: HighWater, row_ids: HighWater) -> TableState {
        TableState {
            auto_increment: AutoIncrement::new(auto_increment),
            numbering: RwLock::new(()),
            row_ids: RowIds::new(row_ids),
            rows: AtomicI64::new(UNKNOWN_ROWS),
            changed_us: AtomicU64::new(0),
            loading: AtomicBool::new(false),
            statistics: Mutex::new(None),
            histograms: Mutex::default(),
            storing_histograms: Mutex::default(),
            usage: Usage::default(),
        }
    }

    /// A transaction that changed rows has committed; of them it has added so many.
    pub(crate) fn add_rows(&self, delta: i64) {
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
        self.changed_us.fetch_max(now_us, Ordering::Relaxed);
        // Unknown stays unknown: the storage engine's estimate already counts these rows.
        let _ = self.rows.fetch_update(Ordering::AcqRel, Ordering::Acquire, |rows| {
            // Below zero for a moment if the row's deletion is counted before its insertion, by another transaction.
            (rows != UNKNOWN_ROWS).then(|| rows + delta)
        });
    }

    pub(crate) fn set_rows(&self, rows: u64) {
        self.rows.store(i64::try_from(rows).unwrap_or(i64::MAX), Ordering::Release);
    }

    /// The storage engine is asked from now on.
    pub(crate) fn forget_rows(&self) {
        self.rows.store(UNKNOWN_ROWS, Ordering::Release);
    }

    pub(crate) fn rows(&self) -> Option<u64> {
        let rows = self.rows.load(Ordering::Acquire);
        (rows != UNKNOWN_ROWS).then_some(rows.max(0) as u64)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({}.{} v{})", self.def.schema, self.def.name, self.def.version)
    }
}

impl Table {
    pub(crate) fn new(
        engine: Engine,
        def: TableDef,
        state: Arc<TableState>,
        lock: Arc<MetadataLock>,
        trees_epoch: u64,
    ) -> Table {
        let types: Vec<_> = def.columns.iter().map(|c| c.ty.clone()).collect();
        let auto_column = def.auto_increment_column();
        if let Some(column) = auto_column {
            state.auto_increment.set_type(&types[column]);
        }
        let layout = Arc::new(RowLayout::new(&types));
        let event_maps: Arc<[OnceLock<Arc<TableMap>>; 2]> = Arc::default();
        let usage = state.usage.of(&def);
        // A partition's definition is replaced with its table's.
        let current = Arc::new(AtomicBool::new(true));
        let part = |def: TableDef| {
            Arc::new(Table {
                layout: layout.clone(),
                indexes: (0..def.indexes.len()).map(|i| IndexCodec::new(&def, i)).collect(),
                auto_column,
                def: Arc::new(def),
                state: state.clone(),
                lock: lock.clone(),
                engine: engine.clone(),
                trees_epoch,
                event_maps: event_maps.clone(),
                current: current.clone(),
                links: None,
                temporary: false,
                parts: None,
                usage: usage.clone(),
            })
        };
        let parts = def.partitioning.as_ref().map(|partitioning| {
            let chooser = Chooser::new(&def, partitioning).expect("a definition is checked before it becomes a table");
            let tables: Arc<[Arc<Table>]> = part_defs(&def).into_iter().map(part).collect();
            Parts { chooser: Arc::new(chooser), selected: (0..tables.len()).collect(), tables, named: false }
        });
        Table {
            indexes: (0..def.indexes.len()).map(|i| IndexCodec::new(&def, i)).collect(),
            layout,
            auto_column,
            def: Arc::new(def),
            state,
            lock,
            engine,
            trees_epoch,
            event_maps,
            current,
            links: None,
            temporary: false,
            parts,
            usage,
        }
    }

    /// The same as a temporary table.
    pub(crate) fn into_temporary(self) -> Table {
        Table { temporary: true, ..self }
    }

    /// The same table, tied to others.
    pub(crate) fn with_links(&self, links: Option<Box<Links>>) -> Table {
        Table {
            def: self.def.clone(),
            layout: self.layout.clone(),
            indexes: self.indexes.clone(),
            state: self.state.clone(),
            lock: self.lock.clone(),
            engine: self.engine.clone(),
            trees_epoch: self.trees_epoch,
            event_maps: self.event_maps.clone(),
            current: Arc::new(AtomicBool::new(true)),
            auto_column: self.auto_column,
            links,
            temporary: self.temporary,
            parts: self.parts.clone(),
            usage: self.usage.clone(),
        }
    }

    /// The same table and definition, as a statement sees it that reads some partitions only.
    pub(crate) fn with_parts(&self, parts: Parts) -> Table {
        Table { current: self.current.clone(), parts: Some(parts), ..self.with_links(None) }
    }

    pub fn def(&self) -> &Arc<TableDef> {
        &self.def
    }

    pub fn id(&self) -> TableId {
        self.def.id
    }

    pub fn columns(&self) -> &[ColumnDef] {
        &self.def.columns
    }

    /// Index 0 is clustered.
    pub fn indexes(&self) -> &[IndexDef] {
        &self.def.indexes
    }

    /// How the encoded rows of scans and reads are laid out.
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// One session's own: see `Database::create_temporary_table`.
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// False once DDL has replaced or dropped this definition.
    pub fn is_current(&self) -> bool {
        self.current.load(Ordering::Acquire)
    }

    pub(crate) fn retire(&self) {
        self.current.store(false, Ordering::Release);
    }

    /// Reserves `count` AUTO_INCREMENT values; see `AutoIncrement::reserve`. Error 1467, and 1075 without such a column.
    pub fn reserve(&self, count: u64, increment: u64, offset: u64) -> Result<Reservation, MySqlError> {
        let column = self.auto_column.ok_or_else(error::wrong_auto_key)?;
        self.state.auto_increment.reserve(&self.def.columns[column].ty, count, increment, offset)
    }

    pub fn auto_increment(&self) -> &AutoIncrement {
        &self.state.auto_increment
    }

    /// When rows of it were last changed by a transaction that has committed; `None`: not since the server started.
    pub fn changed_at(&self) -> Option<SystemTime> {
        let micros = self.state.changed_us.load(Ordering::Relaxed);
        (micros > 0).then(|| UNIX_EPOCH + Duration::from_micros(micros))
    }

    /// The value that the next plain insert gets; `None` without an AUTO_INCREMENT column.
    pub fn next_auto_increment(&self) -> Option<u64> {
        self.auto_column.map(|column| self.state.auto_increment.next(&self.def.columns[column].ty))
    }

    /// The largest value of the AUTO_INCREMENT column; `None` without one.
    pub fn largest_auto_increment(&self) -> Option<u64> {
        self.auto_column.map(|column| auto_increment::largest(&self.def.columns[column].ty))
    }

    /// Position of the AUTO_INCREMENT column.
    pub fn auto_increment_column(&self) -> Option<usize> {
        self.auto_column
    }

    /// Error 1059: its name is too long for the binary log.
    pub(crate) fn event_map(&self, metadata: RowMetadata) -> Result<&Arc<TableMap>, MySqlError> {
        let kept = &self.event_maps[usize::from(metadata == RowMetadata::Full)];
        if let Some(map) = kept.get() {
            return Ok(map);
        }
        let map = Arc::new(crate::commit::table_map(&self.def, metadata)?);
        Ok(kept.get_or_init(|| map))
    }

    pub(crate) fn clustered(&self) -> &IndexCodec {
        &self.indexes[0]
    }

    pub(crate) fn failed(&self, cause: highkey_storage::Error) -> MySqlError {
        error::storage(cause, &self.def.name)
    }

    pub(crate) fn corrupt(&self, index: usize) -> MySqlError {
        error::corrupt_index(&format!("{}/{}", self.def.schema, self.def.name), &self.def.indexes[index].name)
    }

    /// A consistent read under `epoch`'s snapshot may use this table's trees. Error 1412.
    pub(crate) fn check_view(&self, epoch: u64) -> Result<(), MySqlError> {
        if epoch < self.trees_epoch { Err(error::definition_changed()) } else { Ok(()) }
    }

    /// Consistent read of the row with `key`, all columns of a unique index in index order. A key with a NULL finds nothing.
    pub fn get(&self, txn: &mut Transaction, index: usize, key: &[Value]) -> Result<Option<Row>, MySqlError> {
        let mut row = Row { layout: self.layout.clone(), key: Vec::new(), data: Vec::new() };
        Ok(self.get_into(txn, index, key, &mut row)?.then_some(row))
    }

    /// As `get`, into a row of this table that the caller reuses. False: no such row.
    pub fn get_into(
        &self,
        txn: &mut Transaction,
        index: usize,
        key: &[Value],
        row: &mut Row,
    ) -> Result<bool, MySqlError> {
        let epoch = txn.view_epoch();
        self.check_view(epoch)?;
        let codec = &self.indexes[index];
        assert!(codec.is_unique() && key.len() == codec.parts.len(), "get takes a whole unique key");
        if key.iter().any(Value::is_null) {
            return Ok(false);
        }
        if let Some(parts) = &self.parts {
            for part in parts.with_key(self, index, key) {
                if part.get_into(txn, index, key, row)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if !Arc::ptr_eq(&row.layout, &self.layout) {
            row.layout = self.layout.clone();
        }
        row.key.clear();
        codec.encode_prefix(key, &mut row.key);
        if index == 0 {
            return txn.inner().get(codec.id, &row.key, &mut row.data).map_err(|e| self.failed(e));
        }
        // E5: the entry is looked for among those of these rows.
        let replaced = txn.inner().replaced_unseen(self.clustered().id);
        for clustered in &replaced {
            if txn.inner().get(self.clustered().id, clustered, &mut row.data).map_err(|e| self.failed(e))? && self.has_entry(index, &row.data, clustered, &row.key) {
                row.key.clone_from(clustered);
                return Ok(true);
            }
        }
        if !txn.inner().get(codec.id, &row.key, &mut row.data).map_err(|e| self.failed(e))? {
            return Ok(false);
        }
        if !replaced.is_empty() && index::clustered_key(&row.key, &row.data).is_some_and(|clustered| replaced.contains(clustered)) {
            return Ok(false);
        }
        let clustered = index::clustered_key(&row.key, &row.data).ok_or_else(|| self.corrupt(index))?.to_vec();
        let entry = std::mem::replace(&mut row.key, clustered);
        let uncommitted = txn.isolation() == Isolation::ReadUncommitted;
        if !txn.inner().get(self.clustered().id, &row.key, &mut row.data).map_err(|e| self.failed(e))? {
            return if uncommitted { Ok(false) } else { Err(self.corrupt(index)) };
        }
        Ok(!uncommitted || self.has_entry(index, &row.data, &row.key, &entry))
    }

    /// A locked record as `data_locks.LOCK_DATA` shows it: the values of the index's columns, and what else makes a key of an ordinary index unique,
    /// the primary key or the row id. `None`: there is no such record now.
    pub fn lock_data(&self, index: usize, key: &[u8]) -> Result<Option<String>, MySqlError> {
        if let Some(parts) = &self.parts {
            let found = parts.tables.iter().map(|part| part.lock_data(index, key));
            return found.filter_map(Result::transpose).next().transpose();
        }
        let codec = &self.indexes[index];
        let mut txn = self.engine.begin(Isolation::ReadUncommitted);
        let (mut entry, mut clustered) = (Vec::new(), key.to_vec());
        if index > 0 {
            if !txn.get(codec.id, key, &mut entry).map_err(|e| self.failed(e))? {
                return Ok(None);
            }
            clustered = index::clustered_key(key, &entry).ok_or_else(|| self.corrupt(index))?.to_vec();
        }
        let mut row = Row { layout: self.layout.clone(), key: clustered, data: Vec::new() };
        if !txn.get(self.clustered().id, &row.key, &mut row.data).map_err(|e| self.failed(e))? {
            return Ok(None);
        }
        let mut columns = codec.columns.clone();
        if !codec.is_unique() {
            columns.extend(self.clustered().columns.iter().filter(|column| !codec.columns.contains(column)));
        }
        let mut parts: Vec<String> = columns.iter().map(|&column| lock_text(&row.value(column), &self.def.columns[column].ty)).collect();
        if !codec.is_unique() && self.clustered().kind == IndexKind::RowId {
            parts.push(row.key.iter().fold("0x".into(), |text, byte| format!("{text}{byte:02X}")));
        }
        Ok(Some(parts.join(", ")))
    }

    /// Locks and reads the latest committed row with `key` (a whole unique key). None: there is none, and the gap where it
    /// would be is locked at REPEATABLE READ and SERIALIZABLE; or, with `SkipLocked`, somebody else has it. Errors: 1205, 1213, 1317, 3572 (`NoWait`).
    pub async fn lock_get(
        &self,
        txn: &mut Transaction,
        index: usize,
        key: &[Value],
        mode: LockMode,
        policy: LockWaitPolicy,
    ) -> Result<Option<Row>, MySqlError> {
        let codec = &self.indexes[index];
        assert!(codec.is_unique() && key.len() == codec.parts.len(), "lock_get takes a whole unique key");
        if key.iter().any(Value::is_null) {
            return Ok(None);
        }
        let mut wanted = Vec::new();
        codec.encode_prefix(key, &mut wanted);
        let Some(parts) = &self.parts else { return self.lock_key(txn, index, &wanted, mode, policy).await };
        for part in parts.with_key(self, index, key) {
            if let Some(row) = part.lock_key(txn, index, &wanted, mode, policy).await? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// As `lock_get`, of an encoded key.
    pub(crate) async fn lock_key(
        &self,
        txn: &mut Transaction,
        index: usize,
        wanted: &[u8],
        mode: LockMode,
        policy: LockWaitPolicy,
    ) -> Result<Option<Row>, MySqlError> {
        if index == 0 {
            return self.lock_row(txn, wanted.to_vec(), mode, policy).await;
        }
        let codec = &self.indexes[index];
        let mut entry = Vec::new();
        let mut found = Vec::new();
        loop {
            // The entry itself is never locked, only the gap where it is missing: writers go from the row to its entries, and a
            // reader that held an entry while it waits for the row would meet them halfway.
            if !txn.inner().get_latest(codec.id, wanted, &mut entry).map_err(|e| self.failed(e))? {
                match granted!(self, txn.inner().lock(codec.id, wanted, mode, policy)) {
                    Locked::Yes(None) => return Ok(None),
                    Locked::Yes(Some(_)) => continue,
                    Locked::WouldBlock => return would_block(policy),
                }
            }
            let clustered = index::clustered_key(wanted, &entry).ok_or_else(|| self.corrupt(index))?.to_vec();
            let row = match granted!(self, txn.inner().lock(self.clustered().id, &clustered, mode, policy)) {
                Locked::Yes(row) => row,
                Locked::WouldBlock => return would_block(policy),
            };
            // While we waited the row may have got another key, and the key another row.
            if let Some(data) = row {
                found.clear();
                codec.encode_row(&self.layout, &data, &mut found);
                if found == wanted {
                    return Ok(Some(Row { layout: self.layout.clone(), key: clustered, data }));
                }
            }
        }
    }

    /// Locks the row at a clustered key.
    pub(crate) async fn lock_row(
        &self,
        txn: &mut Transaction,
        key: Vec<u8>,
        mode: LockMode,
        policy: LockWaitPolicy,
    ) -> Result<Option<Row>, MySqlError> {
        match granted!(self, txn.inner().lock(self.clustered().id, &key, mode, policy)) {
            Locked::Yes(data) => Ok(data.map(|data| Row { layout: self.layout.clone(), key, data })),
            Locked::WouldBlock => would_block(policy),
        }
    }

    /// Locks a row that a consistent scan found and reads its latest committed version; None if it is gone (or skipped).
    pub async fn lock_found(
        &self,
        txn: &mut Transaction,
        clustered_key: &[u8],
        mode: LockMode,
        policy: LockWaitPolicy,
    ) -> Result<Option<Row>, MySqlError> {
        match &self.parts {
            Some(parts) => self.lock_found_in_parts(txn, parts, clustered_key, mode, policy).await,
            None => self.lock_row(txn, clustered_key.to_vec(), mode, policy).await,
        }
    }

    /// Gives back the lock of the row that the last locking read of the transaction gave, because the statement does not want it: for READ COMMITTED and
    /// READ UNCOMMITTED. It stays if the transaction had it before, or waited for it.
    pub fn unlock(&self, txn: &mut Transaction, row: &Row) {
        match &self.parts {
            // One whose partition cannot be told stays locked.
            Some(parts) => {
                if let Ok(part) = self.part_of(parts, row) {
                    part.unlock(txn, row);
                }
            }
            None => txn.inner().unlock(self.clustered().id, row.key()),
        }
    }

    /// Deletes a row that a locking read gave. Foreign keys' actions may delete and change others, of this table too: read them again then.
    ///
    /// Errors 1317, 1451, 1526, 1748, 1761, 1863, 3008; everything is then as before, as long as the caller goes on with the transaction.
    pub async fn delete(&self, txn: &mut Transaction, old: &Row) -> Result<(), MySqlError> {
        match &self.parts {
            Some(parts) => self.part_to_change(txn, parts, old)?.delete_here(txn, old).await,
            None => self.delete_here(txn, old).await,
        }
    }

    async fn delete_here(&self, txn: &mut Transaction, old: &Row) -> Result<(), MySqlError> {
        txn.breathe(1).await?;
        if self.is_referenced(txn) {
            return Box::pin(self.delete_referenced(txn, old)).await;
        }
        let deleted = granted!(self, txn.inner().delete(self.clustered().id, &old.key));
        assert!(deleted, "delete is given a row that a locking read of this transaction found");
        for index in 1..self.indexes.len() {
            let codec = &self.indexes[index];
            if codec.is_full_text() {
                Box::pin(self.delete_words(txn, index, codec.words_of_row(&self.layout, &old.data), &old.key)).await?;
                continue;
            }
            let mut scratch = std::mem::take(&mut txn.scratch);
            codec.entry_of_row(&self.layout, &old.data, &old.key, &mut scratch.key, &mut scratch.value);
            let outcome = self.delete_entry(txn, index, &scratch.key).await;
            txn.scratch = scratch;
            outcome?;
        }
        txn.count_rows(&self.state, -1);
        if txn.events.is_some() {
            txn.log_change(self, &Change::Delete(&old.values()))?;
        }
        Ok(())
    }

    pub(crate) async fn delete_entry(&self, txn: &mut Transaction, index: usize, key: &[u8]) -> Result<(), MySqlError> {
        match granted!(self, txn.inner().delete(self.indexes[index].id, key)) {
            true => Ok(()),
            false => Err(self.corrupt(index)),
        }
    }

    /// Replaces a row that a locking read gave. False: the new row is the old one, byte for byte.
    ///
    /// Errors 1062, 1317, 1451, 1452, 1526, 1690, 1748, 1761, 1863, 3008; everything is then as before, as long as the caller goes on with the transaction.
    pub async fn update(&self, txn: &mut Transaction, old: &Row, new: &[Value]) -> Result<bool, MySqlError> {
        match &self.parts {
            Some(parts) => self.update_in_parts(txn, parts, old, new).await,
            None => self.update_here(txn, old, new).await,
        }
    }

    pub(crate) async fn update_here(&self, txn: &mut Transaction, old: &Row, new: &[Value]) -> Result<bool, MySqlError> {
        txn.breathe(1).await?;
        let mut data = Vec::with_capacity(old.data.len() + 16);
        self.layout.encode(new, &mut data);
        if data == old.data {
            return Ok(false);
        }
        let mut key = Vec::with_capacity(old.key.len());
        match self.clustered().kind {
            IndexKind::RowId => key.extend_from_slice(&old.key),
            _ => {
                self.clustered().encode(new, &mut key);
            }
        }
        if let Some(column) = self.auto_column {
            self.state.auto_increment.note_value(&new[column])?;
        }
        if self.is_linked(txn) {
            Box::pin(self.update_linked(txn, old, new, &key, &data)).await?;
        } else {
            let mut scratch = std::mem::take(&mut txn.scratch);
            let outcome = self.apply_update(txn, old, new, &key, &data, &mut scratch).await;
            txn.scratch = scratch;
            outcome?;
        }
        txn.note_changed(&self.state);
        if txn.events.is_some() {
            txn.log_change(self, &Change::Update(&old.values(), new))?;
        }
        Ok(true)
    }

    async fn apply_update(
        &self,
        txn: &mut Transaction,
        old: &Row,
        new: &[Value],
        key: &[u8],
        data: &[u8],
        scratch: &mut Scratch,
    ) -> Result<(), MySqlError> {
        let start = txn.inner().savepoint();
        if key == old.key {
            let updated = granted!(self, txn.inner().update(self.clustered().id, key, data));
            assert!(updated, "update is given a row that a locking read of this transaction found");
        } else {
            if !self.insert_entry(txn, 0, key, data).await? {
                return Err(self.duplicate_entry(0, new));
            }
            let deleted = granted!(self, txn.inner().delete(self.clustered().id, &old.key));
            assert!(deleted, "update is given a row that a locking read of this transaction found");
        }
        for index in 1..self.indexes.len() {
            let codec = &self.indexes[index];
            if codec.is_full_text() {
                Box::pin(self.update_words(txn, index, old, new, key)).await?;
                continue;
            }
            codec.entry_of_row(&self.layout, &old.data, &old.key, &mut scratch.other_key, &mut scratch.other_value);
            codec.entry(new, key, &mut scratch.key, &mut scratch.value);
            if scratch.key == scratch.other_key {
                if scratch.value != scratch.other_value
                    && !granted!(self, txn.inner().update(codec.id, &scratch.key, &scratch.value))
                {
                    return Err(self.corrupt(index));
                }
                continue;
            }
            self.delete_entry(txn, index, &scratch.other_key).await?;
            if !self.insert_entry(txn, index, &scratch.key, &scratch.value).await? {
                txn.inner().take_back(&start).map_err(|e| self.failed(e))?;
                return Err(self.duplicate_entry(index, new));
            }
        }
        Ok(())
    }

    /// False: the key is taken.
    pub(crate) async fn insert_entry(
        &self,
        txn: &mut Transaction,
        index: usize,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, MySqlError> {
        let id = self.indexes[index].id;
        Ok(granted!(self, txn.inner().insert(id, key, value)) == highkey_storage::Inserted::Yes)
    }

    /// Error 1062 for a row that meets another one in `index`.
    pub fn duplicate_entry(&self, index: usize, values: &[Value]) -> MySqlError {
        duplicate_entry(&self.def, index, values)
    }
}

/// Error 1062 in MySQL 8.0.12's shape: the values of the key's columns joined by `-`, and the key's bare name.
pub(crate) fn duplicate_entry(def: &TableDef, index: usize, values: &[Value]) -> MySqlError {
    let mut text = entry_text(def, index, values);
    let index = &def.indexes[index];
    // The message buffer of MySQL has 512 bytes.
    let room = 512 - "Duplicate entry '' for key ''".len() - index.name.len().min(256);
    if text.len() > room {
        let mut cut = room - 4;
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text.truncate(cut);
        text.push_str("...");
    }
    highkey_types::errors::dup_entry(&text, &index.name)
}

/// The values of the key's columns joined by `-`.
pub(crate) fn entry_text(def: &TableDef, index: usize, values: &[Value]) -> String {
    let mut text = String::new();
    for (i, part) in def.indexes[index].parts.iter().enumerate() {
        if i > 0 {
            text.push('-');
        }
        text.push_str(&key_text(&values[part.column], &def.columns[part.column].ty, part.prefix));
    }
    text
}

fn key_text(value: &Value, ty: &ColumnType, prefix: Option<u32>) -> String {
    let mut bytes = Vec::new();
    if !value.to_text(ty, &mut bytes) {
        return "NULL".into();
    }
    match (ty.is_binary(), prefix) {
        (true, prefix) => {
            let end = prefix.map_or(bytes.len(), |p| bytes.len().min(p as usize));
            bytes[..end].iter().fold(String::new(), |mut text, &b| {
                match b {
                    0x20..=0x7e => text.push(char::from(b)),
                    _ => text.push_str(&format!("\\x{b:02X}")),
                }
                text
            })
        }
        (false, Some(prefix)) => String::from_utf8_lossy(&bytes).chars().take(prefix as usize).collect(),
        (false, None) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// A value of a key as InnoDB shows it: text in quotes, bytes in hexadecimal.
fn lock_text(value: &Value, ty: &ColumnType) -> String {
    let mut bytes = Vec::new();
    if !value.to_text(ty, &mut bytes) {
        return "NULL".into();
    }
    match value {
        Value::Int(_) | Value::UInt(_) => String::from_utf8_lossy(&bytes).into_owned(),
        _ if ty.is_binary() && matches!(value, Value::Bytes(_)) => bytes.iter().fold("0x".into(), |text, byte| format!("{text}{byte:02X}")),
        _ => format!("'{}'", String::from_utf8_lossy(&bytes).replace('\'', "\\'")),
    }
}

pub(crate) fn would_block<T>(policy: LockWaitPolicy) -> Result<Option<T>, MySqlError> {
    match policy {
        LockWaitPolicy::SkipLocked => Ok(None),
        _ => Err(error::no_wait()),
    }
}


/// Statements run as tasks that move between threads.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, DdlContext, OnDuplicate, TableSpec};

    fn send<T: Send>(_: impl FnOnce() -> T) {}

    #[test]
    fn futures_are_send() {
        fn _insert(t: &Arc<Table>, txn: &mut Transaction) {
            send(|| t.insert(txn, &[], OnDuplicate::Error));
        }
        fn _update(t: &Arc<Table>, txn: &mut Transaction, row: &Row) {
            send(|| t.update(txn, row, &[]));
        }
        fn _lock(t: &Arc<Table>, txn: &mut Transaction) {
            send(|| t.lock_get(txn, 0, &[], LockMode::Shared, LockWaitPolicy::Wait));
        }
        fn _open(txn: &mut Transaction) {
            send(|| txn.table("", ""));
        }
        fn _commit(txn: Transaction) {
            send(|| txn.commit());
        }
        fn _create(db: &Arc<Database>, cx: &DdlContext, spec: TableSpec) {
            send(|| db.create_table(cx, spec));
        }
        send(|| ());
    }
}
