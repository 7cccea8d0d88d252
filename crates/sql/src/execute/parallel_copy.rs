//! INSERT … SELECT of columns of one table, with workers.
//!
//! Pieces of the source are read by workers, each of which makes rows of the target of its piece, finds their keys and index entries and sorts
//! them. The session takes the chunks in the order of the source, so that numbers, duplicates and the binary log are those of one thread, and puts them
//! into the table: a transaction has one writer.

use std::collections::VecDeque;
use std::sync::Arc;

use highkey_table::{Direction, EncodedRows, KeyRange, OnDuplicate, PreparedRows, RowBatch, ScanPartition, Snapshot, Table, TableScan};
use highkey_types::{MySqlError, Value};

use super::Failure;
use super::insert::{BATCH_ROWS, BULK_CHUNK_BYTES, Inserter};
use super::insert_select::PlainCopy;
use crate::df::{Crew, Making};
use crate::plan::Hints;
use crate::session::Session;

/// Workers of a copy: more would make chunks faster than a session takes them.
const MOST_WORKERS: usize = 8;
/// Chunks that may wait for the session, of all workers together.
const MOST_WAITING: usize = 8;
/// About the bytes of a piece of a table that is not large.
const PIECE_BYTES: usize = (1 << 20) + (64 << 10);

/// Where the values of the AUTO_INCREMENT column come from.
#[derive(Clone, Copy)]
enum Numbers {
    /// There is no such column.
    None,
    /// The rows bring them, but for those that have 0 or NULL there.
    Given(usize),
    /// Each row is given one.
    Generated(usize),
}

/// How rows of the source become rows of the target, in any thread.
struct RowPlan {
    source: Arc<Table>,
    snapshot: Snapshot,
    target: Arc<Table>,
    /// A row of what the source does not give, and which of its columns go where in that. None: the bytes stay as they are.
    places: Option<(Vec<Value>, Vec<(usize, usize)>)>,
    numbers: Numbers,
}

/// The numbers that rows bring.
#[derive(Default)]
struct Given {
    greatest: Option<u64>,
    last: u64,
}

/// Some rows, one after the other in the source.
enum Chunk {
    /// Ready for the table, so many.
    Prepared(usize, PreparedRows, Option<Given>),
    /// All or some of them need numbers first.
    Unnumbered(EncodedRows),
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Chunk::Prepared(rows, ..) => *rows,
            Chunk::Unnumbered(rows) => rows.len(),
        }
    }
}

impl RowPlan {
    /// None where a row needs more than its values and constants: a conversion, a default that is computed, a look at NULL.
    fn new(copy: &PlainCopy, inserter: &Inserter, snapshot: &Snapshot) -> Option<RowPlan> {
        if inserter.mode == OnDuplicate::Report {
            return None;
        }
        let constants = inserter.constants()?;
        let (from, to) = (copy.source.columns(), inserter.target.columns());
        let auto = inserter.target.table.auto_increment_column();
        let numbers = match (auto, inserter.generated_column()) {
            (None, _) => Numbers::None,
            (Some(_), Some(column)) => Numbers::Generated(column),
            (Some(column), None) if to[column].ty.is_integer() => Numbers::Given(column),
            (Some(_), None) => return None,
        };
        let is_stored_as_it_is = |&(a, b, same): &(usize, usize, bool)| same && (to[b].nullable || !from[a].nullable || auto == Some(b));
        if !copy.columns.iter().all(is_stored_as_it_is) {
            return None;
        }
        let places = (!copy.same_rows(inserter)).then(|| {
            let constants = constants.into_iter().map(Option::unwrap_or_default).collect();
            (constants, copy.columns.iter().map(|&(a, b, _)| (a, b)).collect())
        });
        Some(RowPlan { source: copy.source.clone(), snapshot: snapshot.clone(), target: inserter.target.table.clone(), places, numbers })
    }

    fn chunk(&self, rows: EncodedRows) -> Chunk {
        let given = match self.numbers {
            Numbers::None => None,
            Numbers::Generated(_) => return Chunk::Unnumbered(rows),
            Numbers::Given(column) => match self.given(&rows, column) {
                Some(given) => Some(given),
                None => return Chunk::Unnumbered(rows),
            },
        };
        Chunk::Prepared(rows.len(), self.target.prepare_rows(rows), given)
    }

    /// None if a row asks for a number.
    fn given(&self, rows: &EncodedRows, column: usize) -> Option<Given> {
        let layout = self.target.layout();
        let unsigned = layout.types()[column].unsigned;
        let mut given = Given::default();
        for i in 0..rows.len() {
            let number = layout.int(rows.row(i), column).filter(|n| *n != 0)?;
            if unsigned || number > 0 {
                given.greatest = given.greatest.max(Some(number as u64));
            }
            given.last = number as u64;
        }
        Some(given)
    }
}

/// Makes chunks of a piece of the source.
struct Reader {
    plan: Arc<RowPlan>,
    /// Until it is begun.
    piece: Option<ScanPartition>,
    scan: Option<TableScan>,
    leaf: RowBatch,
    /// With the constants in it.
    row: Vec<Value>,
}

impl Reader {
    fn new(plan: &Arc<RowPlan>, piece: ScanPartition) -> Reader {
        let row = plan.places.as_ref().map_or_else(Vec::new, |(constants, _)| constants.clone());
        Reader { plan: plan.clone(), piece: Some(piece), scan: None, leaf: RowBatch::new(), row }
    }

    /// The next chunk; None at the end, or when nobody wants it any more.
    fn next(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Chunk>, MySqlError> {
        let plan = self.plan.clone();
        if let Some(piece) = self.piece.take() {
            self.scan = Some(plan.source.scan_partition(&plan.snapshot, 0, &piece, Direction::Forward)?);
        }
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let mut rows = EncodedRows::with_room(PIECE_BYTES);
        let mut ended = false;
        while !ended && rows.byte_len() < BULK_CHUNK_BYTES {
            if !go_on() {
                return Ok(None);
            }
            if !scan.next_batch(&mut self.leaf)? {
                ended = true;
                continue;
            }
            for i in 0..self.leaf.len() {
                let Some((_, places)) = &plan.places else {
                    rows.push_with(|out| out.extend_from_slice(self.leaf.row(i)));
                    continue;
                };
                for &(from, to) in places {
                    self.row[to] = self.leaf.value(i, from);
                }
                rows.push_with(|out| plan.target.layout().encode(&self.row, out));
            }
        }
        if ended {
            self.scan = None;
        }
        Ok((!rows.is_empty()).then(|| plan.chunk(rows)))
    }
}

/// A copy under way.
struct Copying {
    crew: Crew,
    plan: Arc<RowPlan>,
    /// Those that nobody reads yet.
    pieces: std::vec::IntoIter<ScanPartition>,
    /// In the order of the source, as many as there may be readers.
    reading: VecDeque<Making<Chunk>>,
    readers: usize,
    /// Behind those that have got numbers.
    preparing: VecDeque<Making<PreparedRows>>,
}

impl Copying {
    fn new(crew: Crew, plan: RowPlan, pieces: Vec<ScanPartition>) -> Copying {
        // What gets numbers in between is prepared by the other half.
        let readers = if let Numbers::Generated(_) = plan.numbers { crew.workers() / 2 } else { crew.workers() };
        Copying { crew, plan: Arc::new(plan), pieces: pieces.into_iter(), reading: VecDeque::new(), readers, preparing: VecDeque::new() }
    }

    /// The next chunk in the order of the source.
    async fn next(&mut self) -> Result<Option<Chunk>, MySqlError> {
        loop {
            while self.reading.len() < self.readers {
                let Some(piece) = self.pieces.next() else { break };
                let mut reader = Reader::new(&self.plan, piece);
                let ahead = (MOST_WAITING / self.crew.workers()).max(1);
                self.reading.push_back(self.crew.produce(ahead, move |go_on| reader.next(go_on)));
            }
            let Some(first) = self.reading.front_mut() else { return Ok(None) };
            let chunk = first.next().await?;
            if chunk.is_some() {
                return Ok(chunk);
            }
            self.reading.pop_front();
        }
    }

    fn prepare(&mut self, rows: EncodedRows) {
        let (target, mut rows) = (self.plan.target.clone(), Some(rows));
        self.preparing.push_back(self.crew.produce(1, move |_| Ok(rows.take().map(|rows| target.prepare_rows(rows)))));
    }

    /// Rows that were numbered and are prepared, the oldest first. None as long as workers may go on with all there are; `all`: until there are no more.
    async fn prepared(&mut self, all: bool) -> Result<Option<PreparedRows>, MySqlError> {
        if !all && self.preparing.len() <= self.crew.workers() - self.readers {
            return Ok(None);
        }
        let Some(first) = self.preparing.front_mut() else { return Ok(None) };
        let prepared = first.next().await?;
        self.preparing.pop_front();
        Ok(prepared)
    }

    /// Returns when no worker is at it any more.
    async fn end(self) {
        for reading in self.reading {
            reading.end().await;
        }
        for preparing in self.preparing {
            preparing.end().await;
        }
    }
}

impl Session {
    /// Copies the rows with workers. False: there are none to be had, or the copy is not for them; nothing was done.
    pub(super) async fn copy_with_workers(&mut self, inserter: &mut Inserter, copy: &PlainCopy, snapshot: &Snapshot, hints: &Hints) -> Result<bool, Failure> {
        let settings = self.parallel_settings(hints);
        if settings.wanted().is_err() || !hints.pq.divides(&copy.alias) {
            return Ok(false);
        }
        let Some(plan) = RowPlan::new(copy, inserter, snapshot) else { return Ok(false) };
        let mut pieces = copy.source.partitions(0, &KeyRange::all(), false)?.parts;
        if pieces.len() < 2 && settings.cost_threshold == 0 {
            pieces = copy.source.partitions(0, &KeyRange::all(), true)?.parts;
        }
        let rows = copy.source.row_count_estimate()?;
        let (engine, process) = (self.state.instance.queries().clone(), self.state.process.clone());
        let most = pieces.len().min(MOST_WORKERS);
        let is_killed = || process.check().is_err();
        let Some(crew) = Crew::take(&engine, &settings, rows, most, process.queries(), is_killed).await else { return Ok(false) };
        self.lock_auto_increment(inserter).await?;
        let mut copying = Copying::new(crew, plan, pieces);
        let copied = self.take_chunks(inserter, &mut copying).await;
        copying.end().await;
        copied?;
        self.finish_bulk(inserter).await?;
        Ok(true)
    }

    async fn take_chunks(&mut self, inserter: &mut Inserter, copying: &mut Copying) -> Result<(), Failure> {
        while let Some(chunk) = copying.next().await? {
            self.state.process.check()?;
            let rows = chunk.len() as u64;
            self.state.process.progress().add(rows);
            self.note_read(rows);
            match (chunk, copying.plan.numbers) {
                (Chunk::Prepared(rows, prepared, given), _) => {
                    inserter.row += rows as u64;
                    if let Some(given) = given {
                        inserter.pass_until(given.greatest, given.last)?;
                    }
                    // Rows before these may have got their numbers here.
                    self.flush_bulk(inserter, 0).await?;
                    self.add_prepared(inserter, prepared).await?;
                }
                (Chunk::Unnumbered(mut rows), Numbers::Generated(column)) => {
                    let layout = copying.plan.target.layout();
                    let unsigned = layout.types()[column].unsigned;
                    for i in 0..rows.len() {
                        let number = inserter.next_number(&mut self.state)?;
                        inserter.row += 1;
                        let value = if unsigned { Value::UInt(number) } else { Value::Int(number as i64) };
                        layout.set_fixed(rows.row_mut(i), column, &value);
                    }
                    copying.prepare(rows);
                    if let Some(prepared) = copying.prepared(false).await? {
                        self.add_prepared(inserter, prepared).await?;
                    }
                }
                (Chunk::Unnumbered(rows), _) => {
                    let layout = copying.plan.target.layout();
                    for start in (0..rows.len()).step_by(BATCH_ROWS) {
                        let end = rows.len().min(start + BATCH_ROWS);
                        let mut batch: Vec<Vec<Value>> = (start..end).map(|i| layout.values(rows.row(i))).collect();
                        inserter.row += batch.len() as u64;
                        self.write_rows(inserter, &mut batch, false).await?;
                    }
                }
            }
            tokio::task::yield_now().await;
        }
        while let Some(prepared) = copying.prepared(true).await? {
            self.add_prepared(inserter, prepared).await?;
        }
        Ok(())
    }
}
