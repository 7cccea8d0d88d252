//! Inserting many rows: sorted in bounded memory, an empty table built bottom-up, a table with rows by batches.
//!
//! Rows come encoded, in statement order, a chunk at a time. [`Table::prepare_rows`] sorts a chunk and may run in any thread;
//! [`BulkInsert::add`] takes chunks in statement order. See README.md, "Bulk insert".

mod run;
mod threads;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Scope;

use highkey_storage::{BatchRows, Engine, Interrupt, Load, LoadTxn, Loaded, Progress, SealedLoad, SharedTxn, SortedRows, Stage, Txn};
use highkey_types::{MySqlError, Value, errors};

use crate::commit::EventMark;
use crate::def::IndexKind;
use crate::index::clustered_key;
use crate::insert::OnDuplicate;
use crate::table::{Table, TableState, granted};
use crate::transaction::Transaction;
pub(crate) use run::{MergeAhead, Run};
use run::{Item, Merge, SpilledRun};
pub(crate) use threads::{side_by_side, useful_threads};

/// Less than this is inserted and logged as usual: a bulk load writes its pages to disk at once.
const BULK_BYTES: usize = 1 << 20;
/// So much in ascending order is taken for the beginning of more: it goes into the load at once, whose pages are then written while the
/// rest is read. More than one chunk, for each is sorted.
const STREAM_BYTES: usize = 6 << 20;
/// Merged rows that are inserted at a time.
const MERGED_BYTES: usize = 8 << 20;
/// Rows inserted in one batch, and between two looks at KILL.
const BATCH_ROWS: usize = 16 << 10;
/// Of those, rows that go into one index before the thread's other tasks may have their turn: some milliseconds.
const TURN_ROWS: usize = 4 << 10;
/// A buffer of encoded rows longer than the first goes to the second at once if nothing else is said: as long as the chunks of a large statement are
/// (`BULK_CHUNK_BYTES` of `highkey-sql`, and a leaf).
const GROWN_BYTES: usize = 64 << 10;
const CHUNK_BYTES: usize = (4 << 20) + GROWN_BYTES;
/// Errors of ignored rows that are kept: as many warnings as a session can (`max_error_count`).
const IGNORED_ERRORS_MAX: usize = 65_535;

/// Encoded rows one after the other, as a table's `RowLayout` writes them.
#[derive(Clone, Debug)]
pub struct EncodedRows {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Room that a buffer longer than `GROWN_BYTES` gets at once: doubling would copy the rows several times.
    room: usize,
}

impl Default for EncodedRows {
    fn default() -> Self {
        EncodedRows::with_room(CHUNK_BYTES)
    }
}

impl EncodedRows {
    /// Empty; more than a few rows are taken to be a chunk of a large statement.
    pub fn new() -> EncodedRows {
        EncodedRows::default()
    }

    /// Empty; more than a few rows are taken to be about so many bytes. What is not needed of them is memory lost where memory comes in huge pages.
    pub fn with_room(bytes: usize) -> EncodedRows {
        EncodedRows { bytes: Vec::new(), ends: Vec::new(), room: bytes }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds what `write` appends as a row.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.try_push_with(|out| {
            write(out);
            true
        });
    }

    /// Adds what `write` appends as a row, if it says so; else the rows are as before.
    pub fn try_push_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let start = self.bytes.len();
        if start > GROWN_BYTES && start < self.room {
            self.bytes.reserve_exact(self.room - start);
        }
        if !write(&mut self.bytes) {
            self.bytes.truncate(start);
            return false;
        }
        let end = u32::try_from(self.bytes.len()).expect("a chunk of rows stays below 4 GiB");
        self.ends.push(end);
        true
    }

    pub fn row(&self, i: usize) -> &[u8] {
        &self.bytes[self.place(i)]
    }

    /// The row, to be changed in place.
    pub fn row_mut(&mut self, i: usize) -> &mut [u8] {
        let place = self.place(i);
        &mut self.bytes[place]
    }

    fn place(&self, i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        start..self.ends[i] as usize
    }
}

/// A chunk of rows with their index entries.
pub struct PreparedRows {
    /// Of each index; of the clustered one only, as long as a table's row ids are not given.
    runs: Vec<Run>,
    count: usize,
    auto_increment: Option<Value>,
}

impl PreparedRows {
    fn bytes(&self) -> usize {
        self.runs.iter().map(Run::bytes).sum()
    }
}

/// What a bulk insert did.
#[derive(Clone, Debug, Default)]
pub struct BulkReport {
    /// Rows that are in.
    pub inserted: u64,
    /// `OnDuplicate::Ignore`: rows left out.
    pub ignored: u64,
    /// The errors that the first of those would have been.
    pub ignored_errors: Vec<MySqlError>,
    /// `OnDuplicate::Replace`: rows deleted to make room.
    pub replaced: u64,
}

/// The entries of one index so far.
pub(crate) struct Runs {
    pub(crate) memory: Vec<Run>,
    spilled: Vec<SpilledRun>,
    /// Where they are spilled to; `None`: where the operating system has temporary files.
    directory: Option<PathBuf>,
}

impl Runs {
    /// No entries. They are spilled beside the database.
    pub(crate) fn new(engine: &Engine) -> Runs {
        Runs { memory: Vec::new(), spilled: Vec::new(), directory: engine.disk().directory().map(PathBuf::from) }
    }

    pub(crate) fn is_small(&self) -> bool {
        self.spilled.is_empty() && self.memory.iter().map(Run::bytes).sum::<usize>() < BULK_BYTES
    }

    pub(crate) fn merge(&self) -> Result<Merge<'_>, MySqlError> {
        Merge::new(&self.memory, &self.spilled).map_err(scratch)
    }

    /// `merge` in a thread of its own.
    pub(crate) fn merge_ahead<'scope, 'env: 'scope>(&'env self, scope: &'scope Scope<'scope, 'env>) -> Result<MergeAhead<'env>, MySqlError> {
        MergeAhead::new(self.merge()?, scope).map_err(scratch)
    }

    pub(crate) fn spill(&mut self) -> Result<(), MySqlError> {
        self.spill_first(self.memory.len())
    }

    /// Spills the first runs, merged into one.
    fn spill_first(&mut self, runs: usize) -> Result<(), MySqlError> {
        if runs > 0 {
            let run = SpilledRun::write(&self.memory[..runs], self.spilled.last(), self.directory.as_deref()).map_err(scratch)?;
            self.spilled.push(run);
            self.memory.drain(..runs);
        }
        Ok(())
    }

    /// Takes over runs of other rows.
    pub(crate) fn absorb(&mut self, other: Runs) {
        self.memory.extend(other.memory);
        self.spilled.extend(other.spilled);
    }

    /// Spills half of what is in memory: all of it would leave the memory empty for the last merge. Returns the bytes that stay.
    fn spill_half(&mut self) -> Result<usize, MySqlError> {
        self.spill_first(self.memory.len().div_ceil(2))?;
        Ok(self.memory.iter().map(Run::bytes).sum())
    }
}

/// As `Runs::spill_half`, of all indexes.
fn spill_halves(threads: usize, indexes: &mut [Runs]) -> Result<usize, MySqlError> {
    let stay = side_by_side(threads, indexes.iter_mut().collect(), |_, runs: &mut Runs, _| runs.spill_half())?;
    Ok(stay.into_iter().sum())
}

/// Whether the n-th runs of all indexes are of the same rows.
fn are_aligned(indexes: &[Runs]) -> bool {
    indexes.iter().all(|runs| runs.spilled.is_empty() && runs.memory.len() == indexes[0].memory.len())
}

/// Rows that a load gives back, as fewer runs than they came in.
struct Returned {
    runs: Runs,
    run: Run,
    memory: usize,
    failed: Option<MySqlError>,
}

impl Returned {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        let row = self.run.len() as u64;
        self.run.add(key, value, row);
        if self.run.bytes() > self.memory && self.failed.is_none() {
            self.runs.memory.push(std::mem::take(&mut self.run));
            self.failed = self.runs.spill().err();
        }
    }

    fn into_runs(mut self) -> Result<Runs, MySqlError> {
        self.runs.memory.push(self.run);
        self.failed.map_or(Ok(self.runs), Err)
    }
}

/// The right to load an empty table: one at a time has it, the others would build their trees in vain.
struct Claim(Arc<TableState>);

impl Claim {
    fn take(state: &Arc<TableState>) -> Option<Claim> {
        (!state.loading.swap(true, Ordering::Relaxed)).then(|| Claim(state.clone()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.loading.store(false, Ordering::Relaxed);
    }
}

enum Phase {
    /// Collecting, to load all of it at the end. `ordered`: the clustered keys have come in strictly ascending order.
    Sorting { indexes: Vec<Runs>, ordered: bool },
    /// Clustered keys come in order: their rows go into the load as they come. `bytes`: of those rows; `mark`: the events before them.
    Streaming { load: Box<Load>, indexes: Vec<Runs>, bytes: usize, mark: EventMark },
    /// The table has rows: chunk by chunk.
    Direct,
}

/// A bulk insert under way. While it is, the transaction writes nothing else; on an error the caller rolls its statement back.
pub struct BulkInsert {
    table: Arc<Table>,
    mode: OnDuplicate,
    /// Bytes of entries kept in memory.
    memory: usize,
    threads: usize,
    phase: Phase,
    _claim: Option<Claim>,
    /// Rows collected so far.
    rows: u64,
    bytes: usize,
    last_key: Vec<u8>,
    report: BulkReport,
}

pub(crate) fn scratch(cause: std::io::Error) -> MySqlError {
    MySqlError::with_message(1026, format!("Error writing file '(temporary)' (errno: {} - {cause})", cause.raw_os_error().unwrap_or(0)))
}

impl Table {
    /// Finds the rows' keys and sorts them. They are complete rows of this table, in statement order.
    pub fn prepare_rows(&self, rows: EncodedRows) -> PreparedRows {
        let count = rows.len();
        let mut run = Run::default();
        run.entries.reserve_exact(count);
        let mut start = 0;
        let row_ids = self.clustered().kind == IndexKind::RowId;
        for (i, end) in rows.ends.iter().enumerate() {
            let key_start = run.keys.len();
            if row_ids {
                run.keys.extend_from_slice(&[0; 8]);
            } else {
                self.clustered().encode_row(&self.layout, &rows.bytes[start as usize..*end as usize], &mut run.keys);
            }
            run.push(key_start, (start, *end), i as u64);
            start = *end;
        }
        let auto_increment = self.auto_increment_column().and_then(|column| {
            let values = (0..count).map(|i| self.layout.value(rows.row(i), column));
            values.max_by_key(number)
        });
        run.values = rows.bytes;
        let mut prepared = PreparedRows { runs: vec![run], count, auto_increment };
        if !row_ids {
            prepared.runs[0].sort();
            self.add_secondaries(&mut prepared);
        }
        prepared
    }

    /// The hidden keys of a chunk for a table without a primary key, and the secondary entries that wait for them.
    fn give_row_ids(&self, txn: &mut Transaction, chunk: &mut PreparedRows) -> Result<(), MySqlError> {
        if self.clustered().kind == IndexKind::RowId {
            let first = txn.take_row_ids(&self.state, chunk.count as u64)?;
            chunk.runs[0].number(first);
            self.add_secondaries(chunk);
        }
        Ok(())
    }

    fn add_secondaries(&self, prepared: &mut PreparedRows) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for codec in &self.indexes[1..] {
            let clustered = &prepared.runs[0];
            let mut run = Run::default();
            run.entries.reserve_exact(clustered.len());
            for i in 0..clustered.len() {
                codec.entry_of_row(&self.layout, clustered.value(i), clustered.key(i), &mut key, &mut value);
                run.add(&key, &value, clustered.row(i));
            }
            run.sort();
            prepared.runs.push(run);
        }
    }

    /// Begins a bulk insert that keeps about `memory` bytes of entries in memory. `mode` is not `Report`.
    pub fn bulk_insert(self: &Arc<Self>, txn: &mut Transaction, mode: OnDuplicate, memory: usize) -> Result<BulkInsert, MySqlError> {
        assert!(mode != OnDuplicate::Report, "a bulk insert does not stop at duplicates");
        // A row left out or replaced because of a secondary index would have to leave the other runs too.
        let mut simple = mode == OnDuplicate::Error || !self.indexes[1..].iter().any(|i| i.is_unique());
        // Whether a row has a parent among the others is known when those before it are in.
        simple &= !(self.checks_parents(txn) && self.references_itself()) && !self.is_partitioned();
        let empty = simple && txn.inner().load(self.clustered().id).map_err(|e| self.failed(e))?.is_some();
        let claim = if empty { Claim::take(&self.state) } else { None };
        let runs = || self.indexes.iter().map(|_| Runs::new(&self.engine)).collect();
        let phase = if claim.is_some() { Phase::Sorting { indexes: runs(), ordered: true } } else { Phase::Direct };
        Ok(BulkInsert {
            table: self.clone(),
            mode,
            memory,
            threads: 1,
            phase,
            _claim: claim,
            rows: 0,
            bytes: 0,
            last_key: Vec::new(),
            report: BulkReport::default(),
        })
    }
}

/// For finding the largest of a column's values.
fn number(value: &Value) -> i128 {
    match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        Value::Float(v) => *v as i128,
        Value::Double(v) => *v as i128,
        _ => 0,
    }
}

/// A duplicate met while merging: in `OnDuplicate::Error` the first in statement order counts.
#[derive(Default)]
struct FirstDuplicate {
    row: Option<u64>,
    entry: (Vec<u8>, Vec<u8>),
}

impl FirstDuplicate {
    fn note(&mut self, item: &Item<'_>) {
        if self.row.is_none_or(|row| item.row < row) {
            self.row = Some(item.row);
            self.entry = (item.key.to_vec(), item.value.to_vec());
        }
    }
}

/// Of equal keys, which entry stays: given in key order, one by one.
#[derive(Default)]
struct Distinct {
    first: FirstDuplicate,
    /// The entry before: with REPLACE the last of equal keys stays, so each waits for the next key.
    key: Vec<u8>,
    value: Vec<u8>,
    waiting: bool,
    count: usize,
}

impl Distinct {
    /// Takes the next entry; `each` gets those that stay.
    fn take(
        &mut self,
        insert: &mut BulkInsert,
        txn: &Transaction,
        item: &Item<'_>,
        each: &mut impl FnMut(&mut BulkInsert, &[u8], &[u8]) -> Result<(), MySqlError>,
    ) -> Result<(), MySqlError> {
        self.count += 1;
        if self.count % BATCH_ROWS == 0 {
            txn.check_interrupt()?;
            txn.progress.add(BATCH_ROWS as u64);
        }
        let equal = self.count > 1 && item.key == self.key.as_slice();
        match insert.mode {
            OnDuplicate::Replace | OnDuplicate::ReplaceNumbered => {
                if equal {
                    insert.report.replaced += 1;
                } else if self.waiting {
                    each(insert, &self.key, &self.value)?;
                }
                self.value.clear();
                self.value.extend_from_slice(item.value);
                self.waiting = true;
            }
            OnDuplicate::Ignore if equal => {
                insert.report.ignored += 1;
                if insert.report.ignored_errors.len() < IGNORED_ERRORS_MAX {
                    let row = insert.table.layout.values(item.value);
                    let error = insert.table.duplicate_entry(0, &row);
                    insert.report.ignored_errors.push(error);
                }
            }
            _ if equal => self.first.note(item),
            _ if self.first.row.is_some() => {}
            _ => each(insert, item.key, item.value)?,
        }
        if !equal {
            self.key.clear();
            self.key.extend_from_slice(item.key);
        }
        Ok(())
    }

    /// All entries were given. Error 1062 if one of equal keys may not stay.
    fn end(
        &mut self,
        insert: &mut BulkInsert,
        each: &mut impl FnMut(&mut BulkInsert, &[u8], &[u8]) -> Result<(), MySqlError>,
    ) -> Result<(), MySqlError> {
        if self.waiting {
            each(insert, &self.key, &self.value)?;
        }
        match self.first.row {
            Some(_) => Err(insert.table.duplicate_entry(0, &insert.table.layout.values(&self.first.entry.1))),
            None => Ok(()),
        }
    }
}

impl BulkInsert {
    /// How many threads may spill, and build the secondary indexes: one, unless it is said. More than the machine has cores are not used.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Rows left out so far because of duplicate keys.
    pub fn report(&self) -> &BulkReport {
        &self.report
    }

    /// Takes the next chunk. Errors as `Table::insert`; 1026 and 1114 for want of space.
    pub async fn add(&mut self, txn: &mut Transaction, mut chunk: PreparedRows) -> Result<(), MySqlError> {
        if chunk.count == 0 {
            return Ok(());
        }
        txn.check_interrupt()?;
        let table = self.table.clone();
        if let Some(largest) = &chunk.auto_increment {
            table.state.auto_increment.note_value(largest)?;
        }
        if table.is_partitioned() {
            return self.insert_each(txn, &chunk.runs[0]).await;
        }
        table.give_row_ids(txn, &mut chunk)?;
        if table.checks_parents(txn) && (table.references_itself() || !Box::pin(table.run_has_parents(txn, &chunk.runs[0])).await?) {
            self.load_all(txn).await?;
            return self.insert_each(txn, &chunk.runs[0]).await;
        }
        if let Phase::Direct = self.phase {
            return self.insert_chunk(txn, chunk).await;
        }
        chunk.runs.iter_mut().for_each(|run| run.shift_rows(self.rows));
        self.rows += chunk.count as u64;
        let run = &chunk.runs[0];
        let follows = self.last_key.is_empty() || self.last_key.as_slice() < run.key(0);
        let in_order = follows && (1..run.len()).all(|i| run.key(i - 1) < run.key(i));
        if in_order {
            self.last_key.clear();
            self.last_key.extend_from_slice(run.key(run.len() - 1));
        }
        let threads = self.threads;
        match &mut self.phase {
            Phase::Direct => unreachable!("dealt with above"),
            Phase::Streaming { load, .. } if load.is_hindered(txn.inner()).map_err(|e| table.failed(e))? => {
                let taken = self.take_back(txn)?;
                self.insert_merged(txn, &taken[0]).await?;
                self.insert_chunk(txn, chunk).await
            }
            Phase::Streaming { load, indexes, bytes, .. } if in_order => {
                push_run(&table, load, txn, &chunk.runs[0])?;
                *bytes += chunk.runs[0].bytes();
                self.report.inserted += chunk.count as u64;
                let mut bytes = 0;
                for (runs, run) in indexes.iter_mut().zip(chunk.runs).skip(1) {
                    bytes += run.bytes();
                    runs.memory.push(run);
                }
                self.bytes += bytes;
                if self.bytes > self.memory {
                    self.bytes = table.engine.blocking(|| spill_halves(threads, indexes))?;
                }
                Ok(())
            }
            // Out of order after all, while what has come can still be sorted with the rest.
            Phase::Streaming { bytes, .. } if self.bytes + *bytes <= self.memory => {
                self.bytes += *bytes;
                let indexes = self.take_back(txn)?;
                self.phase = Phase::Sorting { indexes, ordered: false };
                self.collect(txn, chunk).await
            }
            Phase::Streaming { .. } => {
                // What has come is the table, the rest is inserted into it.
                self.load_all(txn).await?;
                self.insert_chunk(txn, chunk).await
            }
            Phase::Sorting { ordered, .. } => {
                *ordered &= in_order;
                self.collect(txn, chunk).await
            }
        }
    }

    /// `Phase::Sorting`: one more chunk. If that is too much, rows in order begin to stream, others are spilled.
    async fn collect(&mut self, txn: &mut Transaction, chunk: PreparedRows) -> Result<(), MySqlError> {
        let threads = self.threads;
        let Phase::Sorting { indexes, ordered } = &mut self.phase else { return Ok(()) };
        self.bytes += chunk.bytes();
        for (runs, run) in indexes.iter_mut().zip(chunk.runs) {
            runs.memory.push(run);
        }
        let table = self.table.clone();
        let Some(mut load) = txn.inner().load(table.clustered().id).map_err(|e| table.failed(e))? else {
            // Somebody was quicker with the first row of this table: no reason to wait with the others.
            let indexes = std::mem::take(indexes);
            self.phase = Phase::Direct;
            return self.insert_runs(txn, indexes).await;
        };
        let streams = *ordered && indexes[0].spilled.is_empty() && indexes[0].memory.len() > 1 && self.bytes > STREAM_BYTES;
        if streams || *ordered && self.bytes > self.memory {
            let mut bytes = 0;
            let mark = txn.event_mark();
            for run in std::mem::take(&mut indexes[0].memory) {
                push_run(&table, &mut load, txn, &run)?;
                bytes += run.bytes();
                self.report.inserted += run.len() as u64;
            }
            self.bytes -= bytes;
            self.phase = Phase::Streaming { load: Box::new(load), indexes: std::mem::take(indexes), bytes, mark };
        } else if self.bytes > self.memory {
            self.bytes = table.engine.blocking(|| spill_halves(threads, indexes))?;
        }
        Ok(())
    }

    /// Ends `Phase::Streaming` with nothing loaded: the runs of all indexes.
    fn take_back(&mut self, txn: &mut Transaction) -> Result<Vec<Runs>, MySqlError> {
        let Phase::Streaming { load, mut indexes, mark, .. } = std::mem::replace(&mut self.phase, Phase::Direct) else { return Ok(Vec::new()) };
        txn.forget_events(&mark);
        let mut back = self.returned();
        let given = self.table.engine.blocking(|| load.give_back(txn.inner(), |key, value| back.push(key, value)));
        given.map_err(|e| self.table.failed(e))?;
        self.report = BulkReport::default();
        indexes[0] = back.into_runs()?;
        Ok(indexes)
    }

    fn returned(&self) -> Returned {
        Returned { runs: Runs::new(&self.table.engine), run: Run::default(), memory: self.memory, failed: None }
    }

    /// Puts everything in. What the report says is then done.
    pub async fn finish(mut self, txn: &mut Transaction) -> Result<BulkReport, MySqlError> {
        self.load_all(txn).await?;
        Ok(self.report)
    }

    async fn load_all(&mut self, txn: &mut Transaction) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let mut streamed = true;
        let indexes = match std::mem::replace(&mut self.phase, Phase::Direct) {
            Phase::Direct => return Ok(()),
            Phase::Streaming { load, indexes, mark, .. } => {
                let mut back = self.returned();
                let loaded = table.engine.blocking(|| load.finish(txn.inner(), |key, value| back.push(key, value)));
                if loaded.map_err(|e| table.failed(e))? == Loaded::NotEmpty {
                    // Somebody was quicker with the first row of this table.
                    txn.forget_events(&mark);
                    self.report = BulkReport::default();
                    return self.insert_merged(txn, &back.into_runs()?).await;
                }
                indexes
            }
            Phase::Sorting { indexes, ordered } => {
                streamed = false;
                txn.progress.enter(Stage::BuildingIndexes, self.rows * indexes.len() as u64);
                if indexes[0].is_small() || !table.engine.blocking(|| self.load_clustered(txn, &indexes[0], ordered))? {
                    return self.insert_runs(txn, indexes).await;
                }
                indexes
            }
        };
        txn.count_rows(&table.state, (self.report.inserted - self.report.replaced) as i64);
        if streamed && indexes.len() > 1 {
            txn.progress.enter(Stage::BuildingIndexes, self.rows * (indexes.len() - 1) as u64);
        }
        self.load_secondaries(txn, &indexes).await
    }

    /// Gives the clustered entries in key order, of equal keys the one that stays.
    fn distinct(
        &mut self,
        txn: &Transaction,
        runs: &Runs,
        each: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<(), MySqlError>,
    ) -> Result<(), MySqlError> {
        std::thread::scope(|scope| self.distinct_of(txn, runs.merge_ahead(scope)?, each))
    }

    fn distinct_of(
        &mut self,
        txn: &Transaction,
        mut merge: MergeAhead<'_>,
        mut each: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<(), MySqlError>,
    ) -> Result<(), MySqlError> {
        let mut distinct = Distinct::default();
        while let Some(item) = merge.next().map_err(scratch)? {
            distinct.take(self, txn, &item, &mut each)?;
        }
        distinct.end(self, &mut each)
    }

    /// `ordered`: each run begins behind the one before. False: the table is not empty any more, nothing was done.
    fn load_clustered(&mut self, txn: &mut Transaction, runs: &Runs, ordered: bool) -> Result<bool, MySqlError> {
        let table = self.table.clone();
        let Some(mut load) = txn.inner().load(table.clustered().id).map_err(|e| table.failed(e))? else { return Ok(false) };
        let before = self.report.clone();
        let mark = txn.event_mark();
        let start = txn.inner().savepoint();
        if ordered && runs.spilled.is_empty() {
            for run in &runs.memory {
                txn.check_interrupt()?;
                push_run(&table, &mut load, txn, run)?;
                txn.progress.add(run.len() as u64);
                self.report.inserted += run.len() as u64;
            }
        } else {
            // The load writes through the storage transaction only, the interrupt is looked at beside it.
            let mut inner = txn.take_inner();
            let mut events = txn.events.take();
            let pushed = self.distinct(txn, runs, |this, key, value| {
                this.report.inserted += 1;
                load.push(&mut inner, key, value).map_err(|e| table.failed(e))?;
                match &mut events {
                    Some(events) if !table.is_temporary() => events.insert_encoded(&mut inner, &table, value).map_err(|e| table.failed(e)),
                    _ => Ok(()),
                }
            });
            txn.events = events;
            txn.put_inner(inner);
            pushed?;
        }
        if self.mode.replaces() {
            self.report.inserted += self.report.replaced - before.replaced;
        }
        if load.finish(txn.inner(), |_, _| {}).map_err(|e| table.failed(e))? == Loaded::NotEmpty {
            txn.inner().take_back(&start).map_err(|e| table.failed(e))?;
            txn.forget_events(&mark);
            self.report = before;
            return Ok(false);
        }
        Ok(true)
    }

    /// Builds the secondary indexes side by side; those that are not empty any more get their entries in batches.
    async fn load_secondaries(&mut self, txn: &mut Transaction, indexes: &[Runs]) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let mut loads = Vec::new();
        for (index, codec) in table.indexes.iter().enumerate().skip(1) {
            if let Some(load) = txn.inner().load(codec.id).map_err(|e| table.failed(e))? {
                loads.push((index, load));
            }
        }
        let empty: Vec<usize> = loads.iter().map(|(index, _)| *index).collect();
        let built = table.engine.blocking(|| self.build_secondaries(txn, loads, indexes))?;
        for (index, runs) in indexes.iter().enumerate().skip(1) {
            if !built || !empty.contains(&index) {
                self.insert_secondary(txn, index, runs).await?;
            }
        }
        Ok(())
    }

    /// False: one of the indexes is not empty any more, nothing was done.
    fn build_secondaries(&self, txn: &mut Transaction, loads: Vec<(usize, Load)>, indexes: &[Runs]) -> Result<bool, MySqlError> {
        let (interrupt, progress) = (txn.interrupt(), txn.progress.clone());
        let table = &self.table;
        let kept = self.keeps_all_rows();
        let build = SecondaryBuild { table, mode: self.mode, kept, interrupt: &interrupt, progress: &progress };
        // To look for the row of every entry is the transaction's work, which only one thread can do at a time.
        let threads = if kept { self.threads } else { 1 };
        let shared = SharedTxn::new(txn.inner());
        let built = side_by_side(threads, loads, |_, (index, load), in_vain| {
            build.run(&shared, index, load, &indexes[index], in_vain).map_err(|unbuilt| (index, unbuilt))
        });
        match built {
            Ok(loads) => Ok(txn.inner().attach(loads).map_err(|e| table.failed(e))? != Loaded::NotEmpty),
            Err((_, Unbuilt::Failed(error))) => Err(error),
            Err((index, Unbuilt::Duplicate { key, value })) => Err(table.duplicate_of_entry(txn, index, &key, &value)),
        }
    }

    /// With IGNORE and REPLACE there are no unique secondary indexes here, but their runs may have entries of rows that did not stay.
    fn keeps_all_rows(&self) -> bool {
        self.report.ignored == 0 && self.report.replaced == 0
    }

    /// The entries of a secondary index in batches.
    async fn insert_secondary(&mut self, txn: &mut Transaction, index: usize, runs: &Runs) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let kept = self.keeps_all_rows();
        let mut merge = runs.merge()?;
        let mut sorted = SortedRows::new();
        loop {
            sorted.clear();
            while sorted.len() < BATCH_ROWS {
                let Some(item) = merge.next().map_err(scratch)? else { break };
                let repeated = sorted.len().checked_sub(1).is_some_and(|last| sorted.key(last) == item.key);
                if repeated && self.mode != OnDuplicate::Error {
                    continue;
                }
                if repeated {
                    return Err(table.duplicate_of_entry(txn, index, item.key, item.value));
                }
                if kept || table.is_entry_of_row(txn.inner(), index, item.key, item.value)? {
                    sorted.push(item.key, item.value);
                }
            }
            if sorted.is_empty() {
                return Ok(());
            }
            txn.check_interrupt()?;
            if let Some(at) = table.insert_run(txn, index, &sorted).await? {
                return Err(table.duplicate_of_entry(txn, index, sorted.key(at), sorted.value(at)));
            }
        }
    }

    /// What was collected, after all into a table that others write to: chunk by chunk as it came, if it is still in those.
    async fn insert_runs(&mut self, txn: &mut Transaction, indexes: Vec<Runs>) -> Result<(), MySqlError> {
        if !are_aligned(&indexes) {
            return self.insert_merged(txn, &indexes[0]).await;
        }
        let mut indexes: Vec<_> = indexes.into_iter().map(|runs| runs.memory.into_iter()).collect();
        loop {
            let runs: Vec<Run> = indexes.iter_mut().filter_map(Iterator::next).collect();
            let Some(clustered) = runs.first() else { return Ok(()) };
            let count = clustered.len();
            self.insert_chunk(txn, PreparedRows { runs, count, auto_increment: None }).await?;
        }
    }

    /// The rows of the clustered runs in key order, a chunk at a time.
    async fn insert_merged(&mut self, txn: &mut Transaction, runs: &Runs) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let mut merge = runs.merge()?;
        let mut distinct = Distinct::default();
        let mut ended = false;
        while !ended {
            let mut merged = EncodedRows::new();
            let mut each = |_: &mut Self, _: &[u8], value: &[u8]| {
                merged.push_with(|out| out.extend_from_slice(value));
                Ok(())
            };
            let replaced = self.report.replaced;
            let mut taken = 0;
            while !ended && taken < MERGED_BYTES {
                if let Some(item) = merge.next().map_err(scratch)? {
                    taken += item.value.len();
                    distinct.take(self, txn, &item, &mut each)?;
                } else {
                    distinct.end(self, &mut each)?;
                    ended = true;
                }
            }
            self.report.inserted += self.report.replaced - replaced;
            let mut chunk = table.engine.blocking(|| table.prepare_rows(merged));
            if chunk.count > 0 {
                table.give_row_ids(txn, &mut chunk)?;
                self.insert_chunk(txn, chunk).await?;
            }
        }
        Ok(())
    }

    /// A chunk into a table with rows: batches per index, row by row once a duplicate is met.
    async fn insert_chunk(&mut self, txn: &mut Transaction, chunk: PreparedRows) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let start = txn.inner().savepoint();
        if self.insert_sorted(txn, &chunk).await? {
            let run = &chunk.runs[0];
            (0..run.len()).try_for_each(|i| txn.log_encoded(&table, run.value(i)))?;
            txn.count_rows(&table.state, chunk.count as i64);
            self.report.inserted += chunk.count as u64;
            return Ok(());
        }
        txn.inner().take_back(&start).map_err(|e| table.failed(e))?;
        self.insert_each(txn, &chunk.runs[0]).await
    }

    /// Row by row, in statement order.
    async fn insert_each(&mut self, txn: &mut Transaction, run: &Run) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let mut order: Vec<usize> = (0..run.len()).collect();
        order.sort_unstable_by_key(|i| run.row(*i));
        for part in order.chunks(BATCH_ROWS) {
            txn.check_interrupt()?;
            let rows: Vec<Vec<Value>> = part.iter().map(|i| table.layout.values(run.value(*i))).collect();
            let done = match table.is_partitioned() {
                true => table.insert(txn, &rows, self.mode).await?,
                false => table.insert_each(txn, &rows, self.mode).await?,
            };
            self.report.inserted += done.inserted;
            self.report.replaced += done.replaced;
            self.report.ignored += done.ignored.len() as u64;
            let room = IGNORED_ERRORS_MAX - self.report.ignored_errors.len();
            self.report.ignored_errors.extend(done.ignored.into_iter().map(|(_, e)| e).take(room));
        }
        Ok(())
    }

    /// False: a row is a duplicate; some rows may then be in.
    async fn insert_sorted(&mut self, txn: &mut Transaction, chunk: &PreparedRows) -> Result<bool, MySqlError> {
        for (index, run) in chunk.runs.iter().enumerate() {
            if self.table.insert_run(txn, index, run).await?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Why the pages of an index were not made.
pub(crate) enum Unbuilt {
    /// An entry whose key another one has.
    Duplicate { key: Vec<u8>, value: Vec<u8> },
    Failed(MySqlError),
}

impl From<MySqlError> for Unbuilt {
    fn from(error: MySqlError) -> Unbuilt {
        Unbuilt::Failed(error)
    }
}

/// Makes the pages of a secondary index from sorted runs, in any thread.
struct SecondaryBuild<'a> {
    table: &'a Table,
    mode: OnDuplicate,
    /// As `BulkInsert::keeps_all_rows`.
    kept: bool,
    interrupt: &'a Interrupt,
    progress: &'a Progress,
}

impl SecondaryBuild<'_> {
    /// `in_vain`: nobody wants the pages any more.
    fn run(&self, mut txn: &SharedTxn<'_>, index: usize, mut load: Load, runs: &Runs, in_vain: &dyn Fn() -> bool) -> Result<SealedLoad, Unbuilt> {
        let failed = |e| Unbuilt::Failed(self.table.failed(e));
        std::thread::scope(|scope| -> Result<(), Unbuilt> {
            let mut merge = runs.merge_ahead(scope)?;
            let mut first = FirstDuplicate::default();
            let mut last: Vec<u8> = Vec::new();
            let mut count = 0usize;
            while let Some(item) = merge.next().map_err(scratch)? {
                count += 1;
                if count % BATCH_ROWS == 0 {
                    self.check_wanted(in_vain)?;
                    self.progress.add(BATCH_ROWS as u64);
                }
                if count > 1 && item.key == last.as_slice() {
                    // With IGNORE and REPLACE: of rows that are alike, one of which stayed.
                    if self.mode == OnDuplicate::Error {
                        first.note(&item);
                    }
                    continue;
                }
                last.clear();
                last.extend_from_slice(item.key);
                if first.row.is_none() && (self.kept || txn.with(|txn| self.table.is_entry_of_row(txn, index, item.key, item.value))?) {
                    load.push(&mut txn, item.key, item.value).map_err(failed)?;
                }
            }
            match first.row {
                Some(_) => Err(Unbuilt::Duplicate { key: first.entry.0, value: first.entry.1 }),
                None => Ok(()),
            }
        })?;
        self.check_wanted(in_vain)?;
        load.seal(&mut txn).map_err(failed)
    }

    fn check_wanted(&self, in_vain: &dyn Fn() -> bool) -> Result<(), MySqlError> {
        if self.interrupt.is_raised() || in_vain() { Err(errors::query_interrupted()) } else { Ok(()) }
    }
}

/// The first of a batch's rows.
struct FirstRows<'b, B> {
    rows: &'b B,
    len: usize,
}

impl<B: BatchRows> BatchRows for FirstRows<'_, B> {
    fn len(&self) -> usize {
        self.len
    }

    fn key(&self, row: usize) -> &[u8] {
        self.rows.key(row)
    }

    fn value(&self, row: usize) -> &[u8] {
        self.rows.value(row)
    }
}

fn push_run(table: &Table, load: &mut Load, txn: &mut Transaction, run: &Run) -> Result<(), MySqlError> {
    table.engine.blocking(|| {
        (0..run.len()).try_for_each(|i| {
            load.push(txn.inner(), run.key(i), run.value(i)).map_err(|e| table.failed(e))?;
            txn.log_encoded(table, run.value(i))
        })
    })
}

impl Table {
    /// Inserts the batch into one index. The position of the first that meets a row there, if any.
    pub(crate) async fn insert_run(
        &self,
        txn: &mut Transaction,
        index: usize,
        sorted: &impl BatchRows,
    ) -> Result<Option<usize>, MySqlError> {
        let id = self.indexes[index].id;
        let mut done = 0;
        while done < sorted.len() {
            let turn = FirstRows { rows: sorted, len: sorted.len().min(done + TURN_ROWS) };
            let outcome = granted!(self, txn.inner().insert_batch(id, &turn, done));
            done += outcome.inserted;
            if outcome.duplicate {
                return Ok(Some(done));
            }
            txn.breathe(outcome.inserted).await?;
        }
        Ok(None)
    }

    /// Whether a secondary entry is one of the row that its clustered key has now.
    fn is_entry_of_row(&self, txn: &mut Txn, index: usize, key: &[u8], value: &[u8]) -> Result<bool, MySqlError> {
        let clustered = clustered_key(key, value).ok_or_else(|| self.corrupt(index))?;
        let mut row = Vec::new();
        if !txn.get_latest(self.clustered().id, clustered, &mut row).map_err(|e| self.failed(e))? {
            return Ok(false);
        }
        let (mut entry, mut rest) = (Vec::new(), Vec::new());
        self.indexes[index].entry_of_row(&self.layout, &row, clustered, &mut entry, &mut rest);
        Ok(entry == key)
    }

    /// Error 1062 for an entry of a unique index whose key another one has.
    fn duplicate_of_entry(&self, txn: &mut Transaction, index: usize, key: &[u8], value: &[u8]) -> MySqlError {
        let mut row = Vec::new();
        let found = clustered_key(key, value).map(|clustered| txn.inner().get_latest(self.clustered().id, clustered, &mut row));
        match found {
            Some(Ok(true)) => self.duplicate_entry(index, &self.layout.values(&row)),
            _ => self.corrupt(index),
        }
    }
}
