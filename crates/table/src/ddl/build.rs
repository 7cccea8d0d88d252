//! Filling new trees: rows in any order, sorted in bounded memory, then built bottom-up; small ones by a batch.

use std::sync::Arc;

use highkey_storage::{BatchRows, Bounds, Direction, IndexId, Load, Loaded, Op, SortedRows, Stage, Txn};
use highkey_types::{MySqlError, RowLayout, Value};

use super::DdlContext;
use crate::bulk::{MergeAhead, Run, Runs, scratch};
use crate::def::{IndexKind, TableDef};
use crate::error;
use crate::index::{IndexCodec, clustered_key};
use crate::row::RowBatch;
use crate::table::{Table, duplicate_entry};
use crate::transaction::Snapshot;

/// Bytes of entries that are sorted at a time.
const RUN_BYTES: usize = 16 << 20;
/// Bytes of entries kept in memory before they go to a temporary file.
const MEMORY: usize = 256 << 20;
/// Rows between two looks at KILL, and in a batch.
const BATCH_ROWS: u64 = 16 << 10;

/// Writes rows into the trees of a definition that nobody else sees yet.
pub(crate) struct TreeBuilder<'a> {
    def: &'a TableDef,
    layout: Arc<RowLayout>,
    codecs: Vec<IndexCodec>,
    /// Which indexes are filled; index 0 is among them in a rebuild, not in CREATE INDEX.
    filled: Vec<usize>,
    /// Of each filled index: the run that grows, and those before it.
    growing: Vec<Run>,
    sorted: Vec<Runs>,
    /// Bytes in `growing`, and in the runs of `sorted` that are in memory.
    bytes: (usize, usize),
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
    pub(crate) fn new(def: &'a TableDef, filled: Vec<usize>) -> TreeBuilder<'a> {
        let types: Vec<_> = def.columns.iter().map(|c| c.ty.clone()).collect();
        TreeBuilder {
            def,
            layout: Arc::new(RowLayout::new(&types)),
            codecs: (0..def.indexes.len()).map(|i| IndexCodec::new(def, i)).collect(),
            growing: filled.iter().map(|_| Run::default()).collect(),
            sorted: filled.iter().map(|_| Runs::default()).collect(),
            bytes: (0, 0),
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
        if self.def.columns.iter().zip(row).any(|(column, value)| !column.nullable && value.is_null()) {
            return Err(error::invalid_null());
        }
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
        for (run, &index) in self.growing.iter_mut().zip(&self.filled) {
            if index == 0 {
                self.value.clear();
                self.layout.encode(row, &mut self.value);
                self.bytes.0 += run.add(&self.clustered, &self.value, self.rows);
            } else {
                self.codecs[index].entry(row, &self.clustered, &mut self.key, &mut self.value);
                self.bytes.0 += run.add(&self.key, &self.value, self.rows);
            }
        }
        self.row_added()
    }

    /// Adds the entries of a row that is in the clustered tree already. Error 1026.
    pub(crate) fn add_entries(&mut self, clustered: &[u8], data: &[u8]) -> Result<(), MySqlError> {
        for (run, &index) in self.growing.iter_mut().zip(&self.filled) {
            self.codecs[index].entry_of_row(&self.layout, data, clustered, &mut self.key, &mut self.value);
            self.bytes.0 += run.add(&self.key, &self.value, self.rows);
        }
        self.row_added()
    }

    fn row_added(&mut self) -> Result<(), MySqlError> {
        self.rows += 1;
        if self.bytes.0 >= RUN_BYTES { self.end_runs() } else { Ok(()) }
    }

    fn end_runs(&mut self) -> Result<(), MySqlError> {
        for (run, runs) in self.growing.iter_mut().zip(&mut self.sorted) {
            run.sort();
            runs.memory.push(std::mem::take(run));
        }
        self.bytes = (0, self.bytes.1 + self.bytes.0);
        if self.bytes.1 > MEMORY {
            self.sorted.iter_mut().try_for_each(Runs::spill)?;
            self.bytes.1 = 0;
        }
        Ok(())
    }

    /// Builds the trees. Errors: 1026, 1062, 1114, 1317.
    pub(crate) fn finish(&mut self, txn: &mut Txn, cx: &DdlContext) -> Result<(), MySqlError> {
        self.end_runs()?;
        cx.progress.enter(Stage::BuildingIndexes, self.rows * self.filled.len() as u64);
        for at in 0..self.filled.len() {
            let runs = std::mem::take(&mut self.sorted[at]);
            self.build(txn, cx, self.filled[at], &runs, self.rows * at as u64)?;
        }
        Ok(())
    }

    /// `done`: entries of the indexes before this one.
    fn build(&self, txn: &mut Txn, cx: &DdlContext, index: usize, runs: &Runs, done: u64) -> Result<(), MySqlError> {
        let id = self.codecs[index].id;
        let failed = |e| error::storage(e, &self.def.name);
        // Small trees are logged: a load waits for its pages to reach the disk.
        let mut load = if runs.is_small() { None } else { txn.load(id).map_err(failed)? };
        std::thread::scope(|scope| self.build_from(txn, cx, index, &mut load, runs.merge_ahead(scope)?, done))?;
        if let Some(load) = load {
            let loaded = load.finish(txn, |_, _| {}).map_err(failed)?;
            assert_ne!(loaded, Loaded::NotEmpty, "nobody else knows a tree that is being made");
        }
        Ok(())
    }

    fn build_from(
        &self,
        txn: &mut Txn,
        cx: &DdlContext,
        index: usize,
        load: &mut Option<Load>,
        mut merge: MergeAhead<'_>,
        done: u64,
    ) -> Result<(), MySqlError> {
        let id = self.codecs[index].id;
        let mut batch = SortedRows::new();
        let mut last = Vec::new();
        let mut count = 0u64;
        loop {
            let item = merge.next().map_err(scratch)?;
            if let Some(item) = &item
                && count > 0
                && item.key == last.as_slice()
            {
                let (key, value) = (item.key.to_vec(), item.value.to_vec());
                self.insert(txn, id, &batch)?;
                return Err(self.duplicate(txn, index, &key, &value));
            }
            if item.is_none() || count % BATCH_ROWS == 0 {
                cx.check_interrupt()?;
                cx.progress.set_done(done + count);
                self.insert(txn, id, &batch)?;
                batch.clear();
            }
            let Some(item) = item else { break };
            count += 1;
            last.clear();
            last.extend_from_slice(item.key);
            match load {
                Some(load) => load.push(txn, item.key, item.value).map_err(|e| error::storage(e, &self.def.name))?,
                None => batch.push(item.key, item.value),
            }
        }
        Ok(())
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

    /// Error 1062 for an entry whose key another one has.
    fn duplicate(&self, txn: &mut Txn, index: usize, key: &[u8], value: &[u8]) -> MySqlError {
        let mut row = value.to_vec();
        if index > 0 {
            let found = clustered_key(key, value)
                .map(|clustered| txn.get_latest(self.codecs[0].id, clustered, &mut row));
            if !matches!(found, Some(Ok(true))) {
                return error::corrupt_index(&self.def.name, &self.def.indexes[index].name);
            }
        }
        duplicate_entry(self.def, index, &self.layout.values(&row))
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

