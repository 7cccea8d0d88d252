//! Inserting many rows: sorted in bounded memory, an empty table built bottom-up, a table with rows by batches.
//!
//! Rows come encoded, in statement order, a chunk at a time. [`Table::prepare_rows`] sorts a chunk and may run in any thread;
//! [`BulkInsert::add`] takes chunks in statement order. See README.md, "Bulk insert".

mod distinct;
mod rows;
mod run;
mod runs;
mod secondary;
mod threads;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use highkey_storage::{BatchRows, Load, Loaded, Stage};
use highkey_types::{MySqlError, Value};

use crate::commit::EventMark;
use crate::insert::OnDuplicate;
use crate::table::{Table, TableState, granted};
use crate::transaction::Transaction;
use distinct::Distinct;
pub use rows::{EncodedRows, PreparedRows};
use run::MergeAhead;
pub(crate) use run::Run;
pub(crate) use runs::{Runs, scratch};
use runs::{Returned, are_aligned, spill_halves};
pub(crate) use secondary::Unbuilt;
pub(crate) use threads::{side_by_side, useful_threads};

/// So much in ascending order is taken for the beginning of more: it goes into the load at once, whose pages are then written while the
/// rest is read. More than one chunk, for each is sorted.
const STREAM_BYTES: usize = 6 << 20;
/// Merged rows that are inserted at a time.
const MERGED_BYTES: usize = 8 << 20;
/// Rows inserted in one batch, and between two looks at KILL.
const BATCH_ROWS: usize = 16 << 10;
/// Of those, rows that go into one index before the thread's other tasks may have their turn: some milliseconds.
const TURN_ROWS: usize = 4 << 10;
/// The error of a row that has a key of another.
const DUPLICATE: u16 = 1062;
/// Errors of ignored rows that are kept: as many warnings as a session can (`max_error_count`).
const IGNORED_ERRORS_MAX: usize = 65_535;

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

/// Loads of the secondary indexes, with their positions.
type Others = Vec<(usize, Load)>;

enum Phase {
    /// Collecting, to load all of it at the end. `ordered`: the clustered keys have come in strictly ascending order.
    Sorting { indexes: Vec<Runs>, ordered: bool },
    /// Clustered keys come in order: their rows go into the load as they come. `others`: see `begin_others`; `bytes`: of those rows; `mark`: the events
    /// before them.
    Streaming { load: Box<Load>, others: Option<Others>, indexes: Vec<Runs>, bytes: usize, mark: EventMark },
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
    /// Of a table with FULLTEXT indexes: the clustered keys that several of the rows have. They are kept in memory.
    contested: HashSet<Vec<u8>>,
    report: BulkReport,
}

impl Table {
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
            contested: HashSet::new(),
            report: BulkReport::default(),
        })
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
        let (threads, interrupt) = (self.threads, txn.interrupt());
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
                    self.bytes = table.engine.blocking(|| spill_halves(threads, indexes, &interrupt))?;
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
        let (threads, interrupt) = (self.threads, txn.interrupt());
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
            let others = begin_others(&table, self.mode, txn)?;
            for run in std::mem::take(&mut indexes[0].memory) {
                push_run(&table, &mut load, txn, &run)?;
                bytes += run.bytes();
                self.report.inserted += run.len() as u64;
            }
            self.bytes -= bytes;
            self.phase = Phase::Streaming { load: Box::new(load), others, indexes: std::mem::take(indexes), bytes, mark };
        } else if self.bytes > self.memory {
            self.bytes = table.engine.blocking(|| spill_halves(threads, indexes, &interrupt))?;
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
        Returned::new(&self.table.engine, self.memory)
    }

    /// Puts everything in. What the report says is then done.
    pub async fn finish(mut self, txn: &mut Transaction) -> Result<BulkReport, MySqlError> {
        self.load_all(txn).await?;
        Ok(self.report)
    }

    async fn load_all(&mut self, txn: &mut Transaction) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let mut streamed = true;
        let mut indexes = match std::mem::replace(&mut self.phase, Phase::Direct) {
            Phase::Direct => return Ok(()),
            Phase::Streaming { load, others: Some(others), indexes, mark, .. } => {
                txn.progress.enter(Stage::BuildingIndexes, self.rows * (indexes.len() - 1) as u64);
                let back = table.engine.blocking(|| self.attach_with(txn, *load, others, &indexes))?;
                if let Some(back) = back {
                    // Somebody was quicker with the first row of this table.
                    txn.forget_events(&mark);
                    self.report = BulkReport::default();
                    return self.insert_merged(txn, &back).await;
                }
                txn.count_rows(&table.state, self.report.inserted as i64);
                return Ok(());
            }
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
                if indexes[0].is_small() {
                    return self.insert_runs(txn, indexes).await;
                }
                let others = begin_others(&table, self.mode, txn)?;
                let together = others.is_some();
                let loaded = table.engine.blocking(|| self.load_clustered(txn, &indexes, ordered, others))?;
                if !loaded {
                    return self.insert_runs(txn, indexes).await;
                }
                if together {
                    txn.count_rows(&table.state, self.report.inserted as i64);
                    return Ok(());
                }
                indexes
            }
        };
        txn.count_rows(&table.state, (self.report.inserted - self.report.replaced) as i64);
        if streamed && indexes.len() > 1 {
            txn.progress.enter(Stage::BuildingIndexes, self.rows * (indexes.len() - 1) as u64);
        }
        self.add_words_of_contested(txn, &mut indexes)?;
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

    /// `ordered`: each run begins behind the one before. With `others` all indexes are loaded, else the clustered one. False: the table is not empty any more,
    /// nothing was done.
    fn load_clustered(&mut self, txn: &mut Transaction, indexes: &[Runs], ordered: bool, others: Option<Others>) -> Result<bool, MySqlError> {
        let table = self.table.clone();
        let Some(mut load) = txn.inner().load(table.clustered().id).map_err(|e| table.failed(e))? else { return Ok(false) };
        let before = self.report.clone();
        let mark = txn.event_mark();
        let start = txn.inner().savepoint();
        let runs = &indexes[0];
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
                    Some(events) if !table.is_temporary() => events.insert_encoded(&mut inner, &table, value),
                    _ => Ok(()),
                }
            });
            txn.events = events;
            txn.put_inner(inner);
            match pushed {
                // Another index may have one of an earlier row.
                Err(e) if e.code == DUPLICATE => return Err(self.first_duplicate(txn, indexes, None)),
                pushed => pushed?,
            }
        }
        if self.mode.replaces() {
            self.report.inserted += self.report.replaced - before.replaced;
        }
        let attached = match others {
            Some(others) => self.attach_with(txn, load, others, indexes)?.is_none(),
            None => load.finish(txn.inner(), |_, _| {}).map_err(|e| table.failed(e))? != Loaded::NotEmpty,
        };
        if !attached {
            txn.inner().take_back(&start).map_err(|e| table.failed(e))?;
            txn.forget_events(&mark);
            self.report = before;
            return Ok(false);
        }
        Ok(true)
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

/// Begins the loads of all secondary indexes, to be attached with the clustered one when all are built: what fails before has put nothing into the table. To be called
/// before the clustered one has a row. None if there are none or one is not empty, and for IGNORE and REPLACE, whose secondary entries may be known only by the rows that
/// are in.
fn begin_others(table: &Table, mode: OnDuplicate, txn: &mut Transaction) -> Result<Option<Others>, MySqlError> {
    if mode != OnDuplicate::Error || table.indexes.len() < 2 {
        return Ok(None);
    }
    let mut others = Vec::with_capacity(table.indexes.len() - 1);
    for (index, codec) in table.indexes.iter().enumerate().skip(1) {
        match txn.inner().load(codec.id).map_err(|e| table.failed(e))? {
            Some(load) => others.push((index, load)),
            None => return Ok(None),
        }
    }
    Ok(Some(others))
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
}
