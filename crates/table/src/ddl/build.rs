//! Filling new trees: rows in any order, sorted chunk by chunk in bounded memory, then batch-inserted.

use std::sync::Arc;

use highkey_storage::{BatchOutcome, Bounds, Direction, Op, SortedRows, Txn};
use highkey_types::{MySqlError, RowLayout, Value};

use super::{DdlContext, Phase};
use crate::def::{IndexKind, TableDef};
use crate::error;
use crate::index::{IndexCodec, clustered_key};
use crate::row::RowBatch;
use crate::table::{Table, duplicate_entry};
use crate::transaction::Snapshot;

/// Bytes of entries that are sorted at a time.
const CHUNK_BYTES: usize = 32 << 20;

/// Entries of one index that wait to be sorted.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// (key start, value start, value end)
    entries: Vec<(u32, u32, u32)>,
}

impl Chunk {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        let end = u32::try_from(self.bytes.len()).expect("a chunk is written out long before 4 GiB");
        self.entries.push((start, middle, end));
    }
}

/// Writes rows into the trees of a definition that nobody else sees yet.
pub(crate) struct TreeBuilder<'a> {
    def: &'a TableDef,
    layout: Arc<RowLayout>,
    codecs: Vec<IndexCodec>,
    /// Which indexes are filled; index 0 is among them in a rebuild, not in CREATE INDEX.
    filled: Vec<usize>,
    chunks: Vec<Chunk>,
    sorted: SortedRows,
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
            chunks: filled.iter().map(|_| Chunk::default()).collect(),
            filled,
            sorted: SortedRows::new(),
            key: Vec::new(),
            value: Vec::new(),
            clustered: Vec::new(),
            rows: 0,
            next_row_id: 1,
            auto_max: 0,
            auto_column: def.auto_increment_column(),
        }
    }

    /// Adds a new row to all trees. Errors: 1062, 1138.
    pub(crate) fn add_row(&mut self, txn: &mut Txn, row: &[Value]) -> Result<(), MySqlError> {
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
        for (chunk, &index) in self.chunks.iter_mut().zip(&self.filled) {
            if index == 0 {
                self.value.clear();
                self.layout.encode(row, &mut self.value);
                chunk.push(&self.clustered, &self.value);
            } else {
                self.codecs[index].entry(row, &self.clustered, &mut self.key, &mut self.value);
                chunk.push(&self.key, &self.value);
            }
        }
        self.row_added(txn)
    }

    /// Adds the entries of a row that is in the clustered tree already.
    pub(crate) fn add_entries(&mut self, txn: &mut Txn, clustered: &[u8], data: &[u8]) -> Result<(), MySqlError> {
        for (chunk, &index) in self.chunks.iter_mut().zip(&self.filled) {
            self.codecs[index].entry_of_row(&self.layout, data, clustered, &mut self.key, &mut self.value);
            chunk.push(&self.key, &self.value);
        }
        self.row_added(txn)
    }

    fn row_added(&mut self, txn: &mut Txn) -> Result<(), MySqlError> {
        self.rows += 1;
        let bytes: usize = self.chunks.iter().map(|c| c.bytes.len()).sum();
        if bytes >= CHUNK_BYTES { self.write_chunks(txn) } else { Ok(()) }
    }

    pub(crate) fn finish(&mut self, txn: &mut Txn) -> Result<(), MySqlError> {
        self.write_chunks(txn)
    }

    fn write_chunks(&mut self, txn: &mut Txn) -> Result<(), MySqlError> {
        for at in 0..self.filled.len() {
            let index = self.filled[at];
            let mut chunk = std::mem::take(&mut self.chunks[at]);
            let Chunk { bytes, entries } = &mut chunk;
            let key = |e: &(u32, u32, u32)| &bytes[e.0 as usize..e.1 as usize];
            let value = |e: &(u32, u32, u32)| &bytes[e.1 as usize..e.2 as usize];
            if !entries.windows(2).all(|w| key(&w[0]) < key(&w[1])) {
                entries.sort_unstable_by(|a, b| key(a).cmp(key(b)));
            }
            self.sorted.clear();
            let mut twice = None;
            for entry in entries.iter() {
                if let Some(last) = self.sorted.len().checked_sub(1)
                    && self.sorted.key(last) == key(entry)
                {
                    // Written without its double, so that the row can be found for the message.
                    twice.get_or_insert((key(entry).to_vec(), value(entry).to_vec()));
                    continue;
                }
                self.sorted.push(key(entry), value(entry));
            }
            let mut done = 0;
            while done < self.sorted.len() {
                let outcome = self.insert(txn, index, done)?;
                done += outcome.inserted;
                if outcome.duplicate {
                    let (key, value) = (self.sorted.key(done).to_vec(), self.sorted.value(done).to_vec());
                    return Err(self.duplicate(txn, index, &key, &value));
                }
            }
            if let Some((key, value)) = twice {
                return Err(self.duplicate(txn, index, &key, &value));
            }
            chunk.bytes.clear();
            chunk.entries.clear();
            self.chunks[at] = chunk;
        }
        Ok(())
    }

    fn insert(&self, txn: &mut Txn, index: usize, from: usize) -> Result<BatchOutcome, MySqlError> {
        loop {
            let outcome = txn.insert_batch(self.codecs[index].id, &self.sorted, from);
            match outcome.map_err(|e| error::storage(e, &self.def.name))? {
                Op::Done(outcome) => return Ok(outcome),
                Op::Wait(wait) => wait.wait().map_err(error::lock)?,
            }
        }
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
    phase: Phase,
    mut each: impl FnMut(&RowBatch, usize) -> Result<(), MySqlError>,
) -> Result<(), MySqlError> {
    cx.progress.enter(phase, table.row_count_estimate()?);
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

