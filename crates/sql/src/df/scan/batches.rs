//! What one worker of a scan does: pieces of the table, batch by batch, from rows or from kept columns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::{BatchCoalescer, take};
use datafusion::common::Result;
use highkey_table::{Direction, RowBatch, RowUse, TableScan};
use highkey_types::TypeKind;

use super::columns::{Block, Kept, Packed, TableColumns};
use super::decode::{Decoder, in_zone};
use super::encoded::{Encoded, Waiting};
use super::filter::{Filter, Selected, Unfiltered};
use super::keys::KeyFilter;
use super::span::Span;
use super::{Piece, PieceKeys, Source};
use crate::bind::ROW_KEY;
use crate::df::activity::ScanActivity;
use crate::df::aside;
use crate::df::engine::BATCH_ROWS;
use crate::df::error::user;
use crate::df::key_set::KeySet;
use crate::measure::Measure;

/// Batches or blocks that a scan reads at most before it lets go of its thread: about a millisecond's work.
const STEPS_BETWEEN_PAUSES: usize = 16;

/// Pieces not yet taken.
pub(super) struct Pieces {
    pub all: Arc<[Piece]>,
    pub next: Arc<AtomicUsize>,
}

impl Pieces {
    fn take(&self) -> Option<&Piece> {
        self.all.get(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Where a worker tells what it has done.
pub(super) struct Watch {
    pub scan: Arc<ScanActivity>,
    /// None: whoever has the piece.
    pub worker: Option<usize>,
}

/// The rows of some pieces, batch by batch.
pub(super) struct Batches {
    source: Source,
    pieces: Pieces,
    /// The scan uses columns that are kept, and keeps some.
    keeps: bool,
    /// Where those of the present piece are kept.
    kept: Option<Arc<TableColumns>>,
    scan: Option<TableScan>,
    leaf: RowBatch,
    /// How many of the leaf's rows have been decoded.
    position: usize,
    decoder: Decoder,
    /// Rows may wait, encoded, for the filter: it asks for some of their columns only.
    may_wait: bool,
    waiting: Waiting,
    batch_rows: usize,
    /// Rows still wanted.
    wanted: usize,
    filter: Option<Filter>,
    key_filters: Vec<KeyFilter>,
    /// What the filters have left, until it is a batch.
    gathered: BatchCoalescer,
    ended: bool,
    watch: Option<Watch>,
    /// EXPLAIN ANALYZE: what is told of the scan, and as which worker.
    measure: Option<(Arc<Measure>, usize)>,
    /// A piece has been begun and not ended.
    in_piece: bool,
}

/// Rows of the table in columns.
enum Rows<'a> {
    Decoded(Vec<ArrayRef>, usize),
    Encoded(Encoded<'a>),
    Kept(&'a Block),
}

/// The same as the query sees them.
struct SeenRows<'a> {
    source: &'a Source,
    from: Rows<'a>,
}

impl Unfiltered for SeenRows<'_> {
    fn rows(&self) -> usize {
        match &self.from {
            Rows::Decoded(_, rows) => *rows,
            Rows::Encoded(rows) => rows.rows(),
            Rows::Kept(block) => block.rows,
        }
    }

    fn whole(&self, column: usize) -> Result<ArrayRef> {
        Ok(self.seen(column, match &self.from {
            Rows::Decoded(arrays, _) => arrays[column].clone(),
            Rows::Encoded(encoded) => encoded.whole(column)?,
            Rows::Kept(block) => self.of_block(block, column).array()?,
        }))
    }

    fn some(&self, column: usize, rows: &UInt32Array) -> Result<ArrayRef> {
        Ok(self.seen(column, match &self.from {
            Rows::Decoded(arrays, _) => take(&arrays[column], rows, None)?,
            Rows::Encoded(encoded) => encoded.some(column, rows.values())?,
            Rows::Kept(block) => self.of_block(block, column).rows(rows)?,
        }))
    }

    fn packed(&self, column: usize) -> Option<&Packed> {
        match self.from {
            Rows::Kept(block) if !self.is_in_zone(column) => Some(self.of_block(block, column)),
            _ => None,
        }
    }

    fn span(&self, column: usize) -> Option<Span> {
        let Rows::Kept(block) = self.from else { return None };
        let span = block.column(self.source.columns[column])?.span();
        // In a time zone moments may come in another order.
        Some(if self.is_in_zone(column) { Span { range: None, ..span } } else { span })
    }

    fn is_encoded(&self) -> bool {
        matches!(self.from, Rows::Encoded(_))
    }
}

impl SeenRows<'_> {
    fn of_block<'b>(&self, block: &'b Block, column: usize) -> &'b Packed {
        block.column(self.source.columns[column]).expect("no column is missing")
    }

    /// The session's time zone shows in the column.
    fn is_in_zone(&self, column: usize) -> bool {
        let column = self.source.columns[column];
        column != ROW_KEY && matches!(self.source.table.columns()[column].ty.kind, TypeKind::Timestamp(_))
    }

    fn seen(&self, column: usize, array: ArrayRef) -> ArrayRef {
        if self.is_in_zone(column) { in_zone(&array, &self.source.shared.time_zone) } else { array }
    }

    /// Which rows, of those in `among` or of all, may have a key of the set.
    fn with_key(&self, column: usize, keys: &KeySet, among: Option<&[u32]>) -> Option<Vec<u32>> {
        match &self.from {
            Rows::Decoded(arrays, _) => keys.pick_of(&arrays[column], among),
            Rows::Encoded(encoded) => encoded.pick(column, keys, among),
            Rows::Kept(block) => self.of_block(block, column).pick(keys, among),
        }
    }
}

impl Batches {
    pub fn new(
        source: Source,
        pieces: Pieces,
        limit: Option<usize>,
        filter: Option<Filter>,
        key_filters: Vec<KeyFilter>,
        batch_rows: usize,
        watch: Option<Watch>,
    ) -> Batches {
        let decoder = Decoder::new(&source.table, &source.columns, batch_rows);
        // Whole blocks are too much for a few rows and where memory is short; rows behind a secondary index lie anywhere.
        let keeps = source.access.index == 0 && !source.access.scattered && limit.is_none() && batch_rows >= BATCH_ROWS && !source.columns.contains(&ROW_KEY) && source.can_keep();
        let gathered = BatchCoalescer::new(source.schema.clone(), batch_rows).with_biggest_coalesce_batch_size(Some(batch_rows / 2));
        let wanted = limit.unwrap_or(usize::MAX);
        let (leaf, position) = (RowBatch::new(), 0);
        // Where batches are of few rows, conditions are asked about no more of them at once.
        let is_asked = |column: usize| filter.iter().flat_map(|filter| filter.columns()).chain(key_filters.iter().map(|keys| keys.column)).any(|asked| asked == column);
        let asks = filter.is_some() || !key_filters.is_empty();
        let may_wait = asks && limit.is_none() && batch_rows >= BATCH_ROWS && !(0..source.columns.len()).all(is_asked);
        let waiting = Waiting::default();
        Batches { source, pieces, keeps, kept: None, scan: None, leaf, position, decoder, may_wait, waiting, batch_rows, wanted, filter, key_filters, gathered, ended: false, watch, measure: None, in_piece: false }
    }

    /// The same, told as a worker's.
    pub fn measured(self, measure: Option<(Arc<Measure>, usize)>) -> Batches {
        Batches { measure, ..self }
    }

    /// Begins the next piece; false at the end.
    fn next_piece(&mut self) -> Result<bool> {
        if let Some(watch) = self.watch.as_ref().filter(|_| self.in_piece) {
            self.source.shared.activity.piece_done(&watch.scan);
        }
        self.in_piece = false;
        let Some(piece) = self.pieces.take() else { return Ok(false) };
        self.in_piece = true;
        let (table, snapshot, index) = (&piece.table, &self.source.shared.snapshot, self.source.access.index);
        let scan = match &piece.keys {
            PieceKeys::Range(range) => table.scan_at(snapshot, index, range, Direction::Forward),
            PieceKeys::Partition(partition) => table.scan_partition(snapshot, index, partition, Direction::Forward),
        };
        self.kept = self.keeps.then(|| self.cache().table(table));
        self.scan = Some(scan.map_err(user)?.of_columns(&self.source.columns));
        Ok(true)
    }

    /// Fills `leaf` with the next rows; false at the end.
    fn next_leaf(&mut self) -> Result<bool> {
        loop {
            if let Some(scan) = &mut self.scan {
                if scan.next_batch(&mut self.leaf).map_err(user)? {
                    return Ok(true);
                }
                self.scan = None;
            }
            if !self.next_piece()? {
                return Ok(false);
            }
        }
    }

    /// The next rows, exactly `batch_rows` but for the last, or of whole leaves if they may wait. As the other steps: false at the end.
    fn read_rows(&mut self) -> Result<bool> {
        if self.may_wait {
            while self.rows_taken() < self.batch_rows && self.next_leaf()? {
                self.waiting.take_in(&mut self.leaf, &mut self.decoder)?;
            }
            return self.give_taken();
        }
        let enough = self.batch_rows.min(self.wanted);
        while self.decoder.rows() < enough {
            if self.position == self.leaf.len() {
                self.position = 0;
                if !self.next_leaf()? {
                    self.leaf = RowBatch::new();
                    break;
                }
            }
            // Some of the leaf's rows may be left for the next batch.
            let end = self.leaf.len().min(self.position + enough - self.decoder.rows());
            self.decoder.append(&self.leaf, self.position..end)?;
            self.position = end;
        }
        let rows = self.decoder.rows();
        let arrays = self.decoder.finish();
        self.wanted = self.wanted.saturating_sub(rows);
        self.give(Rows::Decoded(arrays, rows))?;
        Ok(rows > 0)
    }

    /// Rows that were read and not yet given.
    fn rows_taken(&self) -> usize {
        self.decoder.rows() + self.waiting.rows()
    }

    /// Gives the rows that were read. False if there are none.
    fn give_taken(&mut self) -> Result<bool> {
        let rows = self.rows_taken();
        if self.waiting.rows() > 0 {
            let waiting = std::mem::take(&mut self.waiting);
            let encoded = waiting.encoded(&self.source.table, &self.source.columns);
            self.give(Rows::Encoded(encoded))?;
            self.waiting = waiting;
            self.waiting.clear();
        } else {
            let arrays = self.decoder.finish();
            self.give(Rows::Decoded(arrays, rows))?;
        }
        Ok(rows > 0)
    }

    /// The next rows, of whole leaves, where columns are kept or may be.
    fn read_block(&mut self) -> Result<bool> {
        loop {
            let Some(position) = self.scan.as_ref().and_then(|scan| scan.position()) else {
                if !self.next_piece()? {
                    return Ok(false);
                }
                continue;
            };
            let kept = self.kept.clone().expect("a piece was begun");
            let stop = match kept.at(position) {
                Kept::Block(block) => {
                    if self.kept_block(&kept, &block)? {
                        return Ok(true);
                    }
                    block.run.high.clone()
                }
                Kept::UpTo(stop) => stop,
                Kept::Inside(block) => {
                    if self.reads_all() {
                        // The table has grown and is cut elsewhere now.
                        self.cache().remove(&kept, &block);
                    } else if self.kept_block(&kept, &block)? {
                        return Ok(true);
                    }
                    block.run.high.clone()
                }
            };
            self.cache().count(false);
            let ends = self.read_up_to(stop.as_deref())?;
            let run = self.scan.as_mut().and_then(TableScan::take_run);
            let mut let_in = false;
            if self.waiting.rows() > 0 {
                let has_room = self.cache().has_room_left_for(self.waiting.rows() * self.source.columns.len());
                let_in = run.is_some() && !has_room && self.cache().lets_in();
                if run.is_none() || !has_room && !let_in {
                    return self.give_taken();
                }
                self.waiting.decode(&mut self.decoder)?;
            }
            let rows = self.decoder.rows();
            let arrays = self.decoder.finish();
            if let Some(run) = run.filter(|_| rows > 0) {
                self.cache().keep(&kept, Block::new(run, rows, ends, pack(&self.source.columns, &arrays)), let_in);
            }
            if rows > 0 {
                self.give(Rows::Decoded(arrays, rows))?;
                return Ok(true);
            }
        }
    }

    /// Decodes leaves, or lets their rows wait, until there is a batch of rows, or up to a key. The keys of the first row and the last.
    fn read_up_to(&mut self, stop: Option<&[u8]>) -> Result<[Vec<u8>; 2]> {
        let parts = self.reads_all();
        let scan = self.scan.as_mut().expect("a piece was begun");
        let mut ends = [Vec::new(), Vec::new()];
        scan.start_run(parts);
        while self.decoder.rows() + self.waiting.rows() < self.batch_rows && scan.next_batch(&mut self.leaf).map_err(user)? {
            // A batch has a row.
            if self.decoder.rows() + self.waiting.rows() == 0 {
                ends[0] = self.leaf.key(0).to_vec();
            }
            ends[1] = self.leaf.key(self.leaf.len() - 1).to_vec();
            if self.may_wait {
                self.waiting.take_in(&mut self.leaf, &mut self.decoder)?;
            } else {
                self.decoder.append(&self.leaf, 0..self.leaf.len())?;
            }
            if stop.is_some_and(|stop| scan.position().is_none_or(|position| position >= stop)) {
                break;
            }
        }
        Ok(ends)
    }

    /// The rows of a kept block, if it is part of the piece and its leaves are as they were. Otherwise false: the scan is where it was and
    /// the block is forgotten, unless only this scan cannot use it.
    fn kept_block(&mut self, kept: &Arc<TableColumns>, block: &Arc<Block>) -> Result<bool> {
        let reads_all = self.reads_all();
        let scan = self.scan.as_mut().expect("a piece was begun");
        let inside = match (scan.upper(), block.run.high.as_deref()) {
            // Of a range it has all rows, or none: where the leaves have no rows between the block's and the ends of the range, a new one would be a change.
            (upper, _) if !reads_all => scan.position().is_some_and(|position| block.is_within(position, upper)),
            (None, _) => true,
            (Some(_), None) => false,
            (Some(upper), Some(high)) => high <= upper,
        };
        if !inside {
            if reads_all {
                self.cache().remove(kept, block);
            }
            return Ok(false);
        }
        if !scan.is_unchanged(&block.run).map_err(user)? {
            self.cache().remove(kept, block);
            return Ok(false);
        }
        let missing: Vec<usize> = self.source.columns.iter().copied().filter(|&c| block.column(c).is_none()).collect();
        if !missing.is_empty() && !self.leaves_none(block)? {
            return self.add_columns(kept, block, &missing);
        }
        self.scan.as_mut().expect("a piece was begun").skip_to(block.run.high.as_deref());
        self.cache().count(true);
        self.give(Rows::Kept(block))?;
        Ok(true)
    }

    /// True if the filter leaves no row of a block that lacks columns, as far as it can be asked without them, and without raising anything: it will be
    /// asked again.
    fn leaves_none(&self, block: &Block) -> Result<bool> {
        let Some(filter) = &self.filter else { return Ok(false) };
        let from = SeenRows { source: &self.source, from: Rows::Kept(block) };
        let can_ask = !filter.raises() && block.has(filter.columns().map(|column| self.source.columns[column]));
        Ok(filter.leaves_none(&from) || can_ask && matches!(filter.select(&from)?, Selected::None))
    }

    /// As `kept_block` for a block that lacks columns: they are decoded and kept with it.
    fn add_columns(&mut self, kept: &Arc<TableColumns>, block: &Arc<Block>, missing: &[usize]) -> Result<bool> {
        let reads_all = self.reads_all();
        let scan = self.scan.as_mut().expect("a piece was begun");
        let position = scan.position().map(<[u8]>::to_vec);
        let mut decoder = Decoder::new(&self.source.table, missing, block.rows);
        scan.start_run(true);
        while decoder.rows() < block.rows && scan.next_batch(&mut self.leaf).map_err(user)? {
            decoder.append(&self.leaf, 0..self.leaf.len())?;
        }
        let run = scan.take_run().filter(|run| decoder.rows() == block.rows && run.has_same_leaves(&block.run));
        let Some(run) = run else {
            scan.skip_to(position.as_deref());
            // Somebody has just changed a leaf; or a range goes on in a leaf where the block ends.
            if reads_all {
                self.cache().remove(kept, block);
            }
            return Ok(false);
        };
        // Leaves without rows at the end of the block are part of it.
        scan.skip_to(block.run.high.as_deref());
        self.cache().count(false);
        let more = block.with(run, pack(missing, &decoder.finish()));
        self.give(Rows::Kept(&more))?;
        self.cache().keep(kept, more, false);
        Ok(true)
    }

    /// The whole table: its pieces end where those of every such scan do, some within a leaf.
    fn reads_all(&self) -> bool {
        self.source.reads_table()
    }

    fn cache(&self) -> &super::columns::ColumnCache {
        self.source.shared.engine.columns()
    }

    /// Takes rows that were read; those that the filter leaves go out, as the query sees them.
    fn give(&mut self, from: Rows) -> Result<()> {
        let from = SeenRows { source: &self.source, from };
        let rows = from.rows();
        if rows == 0 {
            return Ok(());
        }
        self.source.shared.examined.fetch_add(rows as u64, Ordering::Relaxed);
        let index = self.source.access.index;
        let all = self.reads_all();
        self.source.table.count_use((index != 0 || !all).then_some(index), RowUse::Fetch, rows as u64);
        if !all {
            self.source.shared.activity.add_by_ranges(rows);
        }
        if let Some(watch) = &self.watch {
            watch.scan.add_rows(watch.worker.or_else(aside::worker).unwrap_or(0), rows);
        }
        let began = self.measure.as_ref().map(|_| Instant::now());
        let is_quiet = self.filter.as_ref().is_none_or(|filter| !filter.raises());
        let lacks_keys = |keys: &KeyFilter| from.span(keys.column).is_some_and(|span| keys.leaves_none(&span));
        let selected = if self.filter.as_ref().is_some_and(|filter| filter.leaves_none(&from)) || is_quiet && self.key_filters.iter().any(lacks_keys) {
            self.cache().count_skip();
            Selected::None
        } else {
            match &self.filter {
                Some(filter) => filter.select(&from)?,
                None => Selected::All,
            }
        };
        if let (Some((measure, worker)), Some(began)) = (&self.measure, began) {
            measure.add_read(*worker, rows, began.elapsed());
        }
        let columns = 0..self.source.columns.len();
        let (arrays, rows) = match with_keys(&mut self.key_filters, selected, &from) {
            Selected::None => return Ok(()),
            Selected::All => (columns.map(|i| from.whole(i)).collect::<Result<Vec<_>>>()?, rows),
            Selected::Some(picked) => (columns.map(|i| from.some(i, &picked)).collect::<Result<Vec<_>>>()?, picked.len()),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.source.schema.clone(), arrays, &options)?;
        if rows > self.batch_rows / 2 {
            // With a few rows before it, it would be copied, and leave a few for the next one.
            self.gathered.finish_buffered_batch()?;
        }
        Ok(self.gathered.push_batch(batch)?)
    }

    /// None at the end. Empty now and then while the filter leaves nothing, so that the thread may turn to others.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        for _ in 0..STEPS_BETWEEN_PAUSES {
            if let Some(batch) = self.gathered.next_completed_batch() {
                return Ok(Some(batch));
            }
            if self.ended || self.wanted == 0 {
                self.gathered.finish_buffered_batch()?;
                return Ok(self.gathered.next_completed_batch());
            }
            self.source.shared.check_killed()?;
            let more = if self.keeps { self.read_block() } else { self.read_rows() };
            self.ended = !more?;
        }
        Ok(Some(RecordBatch::new_empty(self.source.schema.clone())))
    }
}

/// Of the selected rows those with keys of the joins above.
fn with_keys(filters: &mut [KeyFilter], mut selected: Selected, from: &SeenRows) -> Selected {
    for filter in filters {
        let (of, among) = match &selected {
            Selected::None => return Selected::None,
            Selected::All => (from.rows(), None),
            Selected::Some(picked) => (picked.len(), Some(&picked.values()[..])),
        };
        if !filter.is_wanted(of) {
            continue;
        }
        let column = filter.column;
        match filter.pick(of, |keys| from.with_key(column, keys, among)) {
            Some(left) if left.is_empty() => return Selected::None,
            Some(left) if left.len() < of => selected = Selected::Some(left.into()),
            _ => {}
        }
    }
    selected
}

fn pack(columns: &[usize], arrays: &[ArrayRef]) -> Vec<(usize, Packed)> {
    columns.iter().zip(arrays).map(|(&column, array)| (column, Packed::of(array))).collect()
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.next_batch();
        self.ended |= batch.is_err();
        batch.transpose()
    }
}
