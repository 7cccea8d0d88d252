//! Filling new trees: rows in any order, sorted in bounded memory, then built bottom-up, several trees side by side; small ones by a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use highkey_storage::{BatchRows, Bounds, Direction, Engine, IndexId, Load, Loaded, Op, SealedLoad, SharedTxn, SortedRows, Stage, Txn};
use highkey_types::{MySqlError, RowLayout, Value, errors};

use super::DdlContext;
use crate::bulk::{Run, Runs, Unbuilt, scratch, side_by_side, useful_threads};
use crate::def::{IndexKind, TableDef};
use crate::error;
use crate::index::{IndexCodec, clustered_key};
use crate::partition::{Chooser, part_defs};
use crate::row::RowBatch;
use crate::scan::{KeyRange, ScanPartition};
use crate::table::{Table, duplicate_entry};
use crate::transaction::Snapshot;

/// Bytes of entries that are sorted at a time.
const RUN_BYTES: usize = 16 << 20;
/// What a thread has at least of the memory for entries: a merge of very many short runs would need more, for its buffers.
const THREAD_MEMORY: usize = 1 << 20;
/// Entries between two looks at KILL.
const LOOK_ENTRIES: u64 = 16 << 10;

/// Sorts the entries of several indexes.
#[derive(Default)]
struct Sorter {
    /// Of each index: the run that grows, and those before it.
    growing: Vec<Run>,
    sorted: Vec<Runs>,
    /// Bytes in `growing`, and in the runs of `sorted` that are in memory.
    bytes: (usize, usize),
    /// Bytes of `sorted` that stay in memory, about.
    memory: usize,
    threads: usize,
}

impl Sorter {
    fn new(engine: &Engine, indexes: usize, memory: usize, threads: usize) -> Sorter {
        Sorter {
            growing: (0..indexes).map(|_| Run::default()).collect(),
            sorted: (0..indexes).map(|_| Runs::new(engine)).collect(),
            bytes: (0, 0),
            memory,
            threads,
        }
    }

    /// Adds an entry of the index at a place. `row`: the place of its row among all.
    fn add(&mut self, at: usize, key: &[u8], value: &[u8], row: u64) {
        self.bytes.0 += self.growing[at].add(key, value, row);
    }

    /// All entries of a row were added. Error 1026.
    fn row_added(&mut self) -> Result<(), MySqlError> {
        if self.bytes.0 < RUN_BYTES.min(self.memory / 4) {
            return Ok(());
        }
        let empty = self.growing.iter().map(Run::with_room_of).collect();
        self.end_runs()?;
        self.growing = empty;
        if self.bytes.1 > self.memory {
            side_by_side(self.threads, self.sorted.iter_mut().collect(), |_, runs: &mut Runs, _| runs.spill())?;
            self.bytes.1 = 0;
        }
        Ok(())
    }

    fn end_runs(&mut self) -> Result<(), MySqlError> {
        let growing = std::mem::take(&mut self.growing);
        let sorted = side_by_side(self.threads, growing, |_, mut run: Run, _| {
            run.sort();
            Ok::<_, MySqlError>(run)
        })?;
        for (runs, run) in self.sorted.iter_mut().zip(sorted) {
            runs.memory.push(run);
        }
        self.bytes = (0, self.bytes.1 + self.bytes.0);
        Ok(())
    }

    /// The runs of each index.
    fn finish(mut self) -> Result<Vec<Runs>, MySqlError> {
        self.end_runs()?;
        Ok(self.sorted)
    }
}

/// Writes rows into the trees of a definition that nobody else sees yet.
pub(crate) struct TreeBuilder<'a> {
    def: &'a TableDef,
    layout: Arc<RowLayout>,
    codecs: Vec<IndexCodec>,
    /// Which indexes are filled; index 0 is among them, as the first, in a rebuild, not in CREATE INDEX.
    filled: Vec<usize>,
    /// Of rows that come one by one.
    sorter: Sorter,
    /// Runs of entries that workers have sorted.
    sorted: Vec<Vec<Runs>>,
    key: Vec<u8>,
    value: Vec<u8>,
    clustered: Vec<u8>,
    pub(crate) rows: u64,
    /// The next hidden row id.
    pub(crate) next_row_id: u64,
    /// The largest positive value of the AUTO_INCREMENT column.
    pub(crate) auto_max: u64,
    auto_column: Option<usize>,
}

impl<'a> TreeBuilder<'a> {
    pub(crate) fn new(engine: &Engine, def: &'a TableDef, filled: Vec<usize>, cx: &DdlContext) -> TreeBuilder<'a> {
        let types: Vec<_> = def.columns.iter().map(|c| c.ty.clone()).collect();
        TreeBuilder {
            def,
            layout: Arc::new(RowLayout::new(&types)),
            codecs: (0..def.indexes.len()).map(|i| IndexCodec::new(def, i)).collect(),
            sorter: Sorter::new(engine, filled.len(), cx.memory.max(THREAD_MEMORY), cx.threads),
            sorted: Vec::new(),
            filled,
            key: Vec::new(),
            value: Vec::new(),
            clustered: Vec::new(),
            rows: 0,
            next_row_id: 1,
            auto_max: 0,
            auto_column: def.auto_increment_column(),
        }
    }

    /// Adds a new row to all trees. Errors: 1026, 1138.
    pub(crate) fn add_row(&mut self, row: &[Value]) -> Result<(), MySqlError> {
        invalid_null(self.def, row)?;
        if let Some(column) = self.auto_column {
            match row[column] {
                Value::Int(v) if v > 0 => self.auto_max = self.auto_max.max(v as u64),
                Value::UInt(v) => self.auto_max = self.auto_max.max(v),
                Value::Float(v) => self.auto_max = self.auto_max.max(v as u64),
                Value::Double(v) => self.auto_max = self.auto_max.max(v as u64),
                _ => {}
            }
        }
        self.clustered.clear();
        match self.codecs[0].kind {
            IndexKind::RowId => {
                self.clustered.extend_from_slice(&self.next_row_id.to_be_bytes());
                self.next_row_id += 1;
            }
            _ => {
                self.codecs[0].encode(row, &mut self.clustered);
            }
        }
        for (at, &index) in self.filled.iter().enumerate() {
            if index == 0 {
                self.value.clear();
                self.layout.encode(row, &mut self.value);
                self.sorter.add(at, &self.clustered, &self.value, self.rows);
            } else {
                let (sorter, place) = (&mut self.sorter, self.rows);
                self.codecs[index].for_each_entry(row, &self.clustered, &mut self.key, &mut self.value, |key, value| sorter.add(at, key, value, place));
            }
        }
        self.rows += 1;
        self.sorter.row_added()
    }

    /// Adds the entries of all rows of the table that the snapshot sees; they are in the clustered tree already. Threads share the table piece by piece, and
    /// the memory. Errors: 1026, 1317.
    pub(crate) fn add_table(&mut self, table: &Arc<Table>, snapshot: &Snapshot, cx: &DdlContext) -> Result<(), MySqlError> {
        cx.progress.enter(Stage::CopyingRows, table.row_count_estimate()?);
        let pieces = table.partitions(0, &KeyRange::all(), false)?.parts;
        let workers = useful_threads(cx.threads, pieces.len());
        let next = AtomicUsize::new(0);
        let this = &*self;
        let done = side_by_side(workers, vec![(); workers], |_, (), _| {
            let mut sorter = Sorter::new(&table.engine, this.filled.len(), (cx.memory / workers).max(THREAD_MEMORY), 1);
            let rows = this.add_pieces(table, snapshot, cx, &pieces, &next, &mut sorter);
            if rows.is_err() {
                // The others need not go on.
                next.store(pieces.len(), Ordering::Relaxed);
            }
            Ok::<_, MySqlError>((rows?, sorter.finish()?))
        })?;
        for (rows, sorted) in done {
            self.rows += rows;
            self.sorted.push(sorted);
        }
        Ok(())
    }

    /// The entries of the pieces that nobody else takes; how many rows those have.
    fn add_pieces(
        &self,
        table: &Arc<Table>,
        snapshot: &Snapshot,
        cx: &DdlContext,
        pieces: &[ScanPartition],
        next: &AtomicUsize,
        sorter: &mut Sorter,
    ) -> Result<u64, MySqlError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut batch = RowBatch::new();
        let mut rows = 0;
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(n) else { return Ok(rows) };
            // In the order of the table, whoever comes first.
            let mut place = (n as u64) << 32;
            let mut scan = table.scan_partition(snapshot, 0, piece, Direction::Forward)?;
            while scan.next_batch(&mut batch)? {
                cx.check_interrupt()?;
                for row in 0..batch.len() {
                    for (at, &index) in self.filled.iter().enumerate() {
                        self.codecs[index].for_each_entry_of_row(&self.layout, batch.row(row), batch.key(row), &mut key, &mut value, |key, value| {
                            sorter.add(at, key, value, place);
                        });
                    }
                    place += 1;
                    sorter.row_added()?;
                }
                rows += batch.len() as u64;
                cx.progress.add(batch.len() as u64);
            }
        }
    }

    /// Builds the trees. Errors: 1026, 1062, 1114, 1317.
    pub(crate) fn finish(mut self, txn: &mut Txn, cx: &DdlContext) -> Result<(), MySqlError> {
        let mut sorted = std::mem::take(&mut self.sorter).finish()?;
        for others in std::mem::take(&mut self.sorted) {
            sorted.iter_mut().zip(others).for_each(|(runs, other)| runs.absorb(other));
        }
        cx.progress.enter(Stage::BuildingIndexes, self.rows * self.filled.len() as u64);
        // Small trees are logged: a load waits for its pages to reach the disk. They come first, for while there are loads nothing else is written.
        let (small, large): (Vec<usize>, Vec<usize>) = (0..sorted.len()).partition(|at| sorted[*at].is_small());
        let mut duplicate = None;
        for at in small {
            match self.insert_entries(txn, cx, at, &sorted) {
                Err(error) if error.code == 1062 => {
                    duplicate = Some((at, error));
                    break;
                }
                done => done?,
            }
        }
        // Of several duplicates, that of the first index counts.
        let wanted = |at: &usize| duplicate.as_ref().is_none_or(|(found, _)| at < found);
        self.load_trees(txn, cx, large.into_iter().filter(wanted).collect(), &sorted)?;
        duplicate.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Inserts the entries of the index at a place of `filled`.
    fn insert_entries(&self, txn: &mut Txn, cx: &DdlContext, at: usize, sorted: &[Runs]) -> Result<(), MySqlError> {
        cx.check_interrupt()?;
        let mut merge = sorted[at].merge()?;
        let mut batch = SortedRows::new();
        while let Some(item) = merge.next().map_err(scratch)? {
            if batch.len().checked_sub(1).is_some_and(|last| batch.key(last) == item.key) {
                return Err(self.duplicate(txn, at, sorted, item.key, item.value));
            }
            batch.push(item.key, item.value);
        }
        self.insert(txn, self.codecs[self.filled[at]].id, &batch)?;
        cx.progress.add(batch.len() as u64);
        Ok(())
    }

    /// Loads the trees of the indexes at these places of `filled`, side by side.
    fn load_trees(&self, txn: &mut Txn, cx: &DdlContext, places: Vec<usize>, sorted: &[Runs]) -> Result<(), MySqlError> {
        let failed = |e| error::storage(e, &self.def.name);
        let mut loads = Vec::with_capacity(places.len());
        for at in places {
            let load = txn.load(self.codecs[self.filled[at]].id).map_err(failed)?;
            loads.push((at, load.expect("nobody else knows a tree that is being made")));
        }
        let shared = SharedTxn::new(txn);
        let built = side_by_side(cx.threads, loads, |_, (at, load), in_vain| {
            self.build(&shared, cx, load, &sorted[at], in_vain).map_err(|unbuilt| (at, unbuilt))
        });
        match built {
            Ok(loads) => {
                let loaded = txn.attach(loads).map_err(failed)?;
                assert_ne!(loaded, Loaded::NotEmpty, "nobody else knows a tree that is being made");
                Ok(())
            }
            Err((_, Unbuilt::Failed(error))) => Err(error),
            Err((at, Unbuilt::Duplicate { key, value })) => Err(self.duplicate(txn, at, sorted, &key, &value)),
        }
    }

    /// Makes the pages of a tree. `in_vain`: nobody wants them any more.
    fn build(&self, mut txn: &SharedTxn<'_>, cx: &DdlContext, mut load: Load, runs: &Runs, in_vain: &dyn Fn() -> bool) -> Result<SealedLoad, Unbuilt> {
        let failed = |e| Unbuilt::Failed(error::storage(e, &self.def.name));
        std::thread::scope(|scope| -> Result<(), Unbuilt> {
            let mut merge = runs.merge_ahead(scope)?;
            let mut last: Vec<u8> = Vec::new();
            let mut count = 0u64;
            while let Some(item) = merge.next().map_err(scratch)? {
                if count > 0 && item.key == last.as_slice() {
                    return Err(Unbuilt::Duplicate { key: item.key.to_vec(), value: item.value.to_vec() });
                }
                if count % LOOK_ENTRIES == 0 {
                    cx.check_interrupt()?;
                    if in_vain() {
                        return Err(Unbuilt::Failed(errors::query_interrupted()));
                    }
                }
                count += 1;
                if count % LOOK_ENTRIES == 0 {
                    cx.progress.add(LOOK_ENTRIES);
                }
                last.clear();
                last.extend_from_slice(item.key);
                load.push(&mut txn, item.key, item.value).map_err(failed)?;
            }
            cx.progress.add(count % LOOK_ENTRIES);
            Ok(())
        })?;
        cx.check_interrupt()?;
        load.seal(&mut txn).map_err(failed)
    }

    fn insert(&self, txn: &mut Txn, id: IndexId, batch: &SortedRows) -> Result<(), MySqlError> {
        let mut done = 0;
        while done < batch.len() {
            match txn.insert_batch(id, batch, done).map_err(|e| error::storage(e, &self.def.name))? {
                Op::Done(outcome) => {
                    assert!(!outcome.duplicate, "a merge gives each key once");
                    done += outcome.inserted;
                }
                Op::Wait(wait) => wait.wait().map_err(error::lock)?,
            }
        }
        Ok(())
    }

    /// Error 1062 for an entry of the index at a place of `filled` whose key another one has.
    fn duplicate(&self, txn: &mut Txn, at: usize, sorted: &[Runs], key: &[u8], value: &[u8]) -> MySqlError {
        let index = self.filled[at];
        let mut row = value.to_vec();
        if index > 0 {
            let found = clustered_key(key, value).map(|clustered| self.find_row(txn, sorted, clustered, &mut row));
            match found {
                Some(Ok(true)) => {}
                Some(Err(error)) => return error,
                _ => return error::corrupt_index(&self.def.name, &self.def.indexes[index].name),
            }
        }
        duplicate_entry(self.def, index, &self.layout.values(&row))
    }

    /// The row of a clustered key. In a rebuild it is not in its tree yet.
    fn find_row(&self, txn: &mut Txn, sorted: &[Runs], clustered: &[u8], row: &mut Vec<u8>) -> Result<bool, MySqlError> {
        if self.filled[0] != 0 {
            // As the entries' rows were: others may have changed them since.
            return txn.get(self.codecs[0].id, clustered, row).map_err(|e| error::storage(e, &self.def.name));
        }
        let mut merge = sorted[0].merge()?;
        while let Some(item) = merge.next().map_err(scratch)? {
            if item.key == clustered {
                row.clear();
                row.extend_from_slice(item.value);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Error 1138 for a row that has NULL where it must not.
pub(super) fn invalid_null(def: &TableDef, row: &[Value]) -> Result<(), MySqlError> {
    let invalid = def.columns.iter().zip(row).any(|(column, value)| !column.nullable && value.is_null());
    if invalid { Err(error::invalid_null()) } else { Ok(()) }
}

/// The definitions whose trees the rows of `def` go into: its own, or one for each partition.
pub(crate) fn tree_defs(def: &TableDef) -> Vec<TableDef> {
    if def.partitioning.is_some() { part_defs(def) } else { vec![def.clone()] }
}

/// Writes rows into the trees of a table, each into those of its partition.
pub(crate) struct TableBuilder<'a> {
    chooser: Option<Chooser>,
    builders: Vec<TreeBuilder<'a>>,
    /// The next hidden row id, which all partitions share.
    pub(crate) next_row_id: u64,
}

impl<'a> TableBuilder<'a> {
    /// `defs`: what `tree_defs` says of `def`.
    pub(crate) fn new(engine: &Engine, def: &TableDef, defs: &'a [TableDef], cx: &DdlContext) -> Result<TableBuilder<'a>, MySqlError> {
        let chooser = def.partitioning.as_ref().map(|partitioning| Chooser::new(def, partitioning)).transpose()?;
        let share = DdlContext { memory: cx.memory / defs.len().max(1), ..cx.clone() };
        let builders = defs.iter().map(|part| TreeBuilder::new(engine, part, (0..part.indexes.len()).collect(), &share)).collect();
        Ok(TableBuilder { chooser, builders, next_row_id: 1 })
    }

    /// Where a row goes. Errors 1526, 1690.
    pub(crate) fn place(&self, row: &[Value]) -> Result<usize, MySqlError> {
        self.chooser.as_ref().map_or(Ok(0), |chooser| chooser.partition_of(row))
    }

    /// As `TreeBuilder::add_row`. Errors: 1026, 1138, 1526, 1690.
    pub(crate) fn add_row(&mut self, row: &[Value]) -> Result<(), MySqlError> {
        let at = self.place(row)?;
        let builder = &mut self.builders[at];
        builder.next_row_id = self.next_row_id;
        builder.add_row(row)?;
        self.next_row_id = builder.next_row_id;
        Ok(())
    }

    pub(crate) fn rows(&self) -> u64 {
        self.builders.iter().map(|builder| builder.rows).sum()
    }

    /// The largest positive value of the AUTO_INCREMENT column.
    pub(crate) fn auto_max(&self) -> u64 {
        self.builders.iter().map(|builder| builder.auto_max).max().unwrap_or(0)
    }

    /// As `TreeBuilder::finish`.
    pub(crate) fn finish(self, txn: &mut Txn, cx: &DdlContext) -> Result<(), MySqlError> {
        self.builders.into_iter().filter(|builder| builder.rows > 0).try_for_each(|builder| builder.finish(txn, cx))
    }
}

/// Calls `each` with every row of the table that the snapshot sees, in clustered order; stops when interrupted.
pub(crate) fn for_each_row(
    table: &Arc<Table>,
    snapshot: &Snapshot,
    cx: &DdlContext,
    mut each: impl FnMut(&RowBatch, usize) -> Result<(), MySqlError>,
) -> Result<(), MySqlError> {
    cx.progress.enter(Stage::CopyingRows, table.row_count_estimate()?);
    let mut scan = table.scan_bounds(snapshot, 0, Bounds::all(), Direction::Forward)?;
    let mut batch = RowBatch::new();
    while scan.next_batch(&mut batch)? {
        cx.check_interrupt()?;
        for row in 0..batch.len() {
            each(&batch, row)?;
        }
        cx.progress.add(batch.len() as u64);
    }
    Ok(())
}
