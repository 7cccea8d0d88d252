//! INSERT … SELECT with workers: they do all but the writing, which is one thread's, for a transaction has one writer.
//!
//! A worker makes rows of the target of a piece of a table, or of some rows of a query, finds their keys and index entries and sorts them. The session takes these
//! chunks in their order, so that numbers, duplicates, warnings and the binary log are those of one thread. A row that has something to tell
//! (a warning, an error), or asks for a number among others that do not, is declined: the session makes it, in its place.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use highkey_table::{Direction, EncodedRows, KeyRange, OnDuplicate, PreparedRows, RowBatch, RowUse, ScanPartition, Snapshot, Table, TableScan};
use highkey_types::{MySqlError, SqlMode, StoreContext, TimeZone, TypeKind, Value};

use super::Failure;
use super::inserter::{BULK_CHUNK_BYTES, Inserter};
use super::insert_select::PlainCopy;
use super::target::to_session;
use crate::df::{Crew, Making, ParallelSettings, Rows};
use crate::expr::row_bytes;
use crate::plan::Hints;
use crate::session::{Session, SessionState};

/// More workers would make chunks faster than a session takes them.
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
    /// The rows bring them; those that have 0 or NULL there are declined.
    Given(usize),
    /// Each row is given one.
    Generated(usize),
}

/// What becomes of one of a row's values.
struct Place {
    column: usize,
    /// It is what the column stores, unless it is a date that the mode does not admit.
    is_stored: bool,
    /// It is a TIMESTAMP as tables store it, to be converted from the session's form.
    in_utc: bool,
}

/// How values become rows of the target, in any thread.
struct RowMaker {
    target: Arc<Table>,
    places: Vec<Place>,
    /// A row of what the values do not give.
    constants: Vec<Value>,
    numbers: Numbers,
    strict: bool,
    ignore: bool,
    mode: SqlMode,
    zone: TimeZone,
    now_micros: i64,
}

/// The numbers that rows bring.
#[derive(Clone, Copy)]
struct Given {
    greatest: Option<u64>,
    last: u64,
}

/// The values of a row that the session has to make.
struct Declined {
    /// Rows of its chunk before it that were made.
    at: usize,
    values: Vec<Value>,
}

/// Rows in the making.
struct Made {
    rows: EncodedRows,
    declined: Vec<Declined>,
    declined_bytes: usize,
}

/// Rows that come one after the other.
enum Chunk {
    /// Ready for the table, so many.
    Prepared(usize, PreparedRows, Option<Given>),
    /// Those that were declined are not in their places yet, or no row has its number.
    Open(EncodedRows, Vec<Declined>),
}

impl RowMaker {
    /// None where a row needs more than its values and constants: a default that is computed, a generated column, a CHECK.
    fn new(inserter: &Inserter, state: &SessionState, places: Vec<Place>) -> Option<RowMaker> {
        if inserter.mode == OnDuplicate::Report || inserter.tells_first_inserted() {
            return None;
        }
        let constants = inserter.constants()?.into_iter().map(Option::unwrap_or_default).collect();
        let target = inserter.target.table.clone();
        let numbers = match (target.auto_increment_column(), inserter.generated_column()) {
            (None, _) => Numbers::None,
            (Some(_), Some(column)) => Numbers::Generated(column),
            (Some(column), None) if target.columns()[column].ty.is_integer() => Numbers::Given(column),
            (Some(_), None) => return None,
        };
        let config = &state.config;
        let (strict, mode, zone) = (state.strict(), config.sql_mode, config.time_zone.clone());
        Some(RowMaker { target, places, constants, numbers, strict, ignore: inserter.ignore, mode, zone, now_micros: state.now_micros })
    }

    /// Adds a row of the values. False: it is declined, nothing was added.
    fn add(&self, value: impl Fn(usize) -> Value, row: &mut [Value], rows: &mut EncodedRows) -> bool {
        for (i, place) in self.places.iter().enumerate() {
            match self.stored(place, value(i)) {
                Some(value) => row[place.column] = value,
                None => return false,
            }
        }
        rows.push_with(|out| self.target.layout().encode(row, out));
        true
    }

    /// The value as its column stores it; None if there is anything to tell of it, or a number is asked for.
    fn stored(&self, place: &Place, mut value: Value) -> Option<Value> {
        let def = &self.target.columns()[place.column];
        if !place.is_stored || !self.mode.admits(&value) {
            if place.in_utc {
                to_session(&mut value, &self.zone);
            }
            let mut warnings = Vec::new();
            let (strict, ignore) = (self.strict && !self.ignore, self.ignore);
            let mut cx = StoreContext {
                strict,
                ignore,
                mode: self.mode,
                time_zone: &self.zone,
                now_micros: self.now_micros,
                row: 0,
                warnings: &mut warnings,
            };
            value = highkey_types::store(value, &def.ty, &def.name, &mut cx).ok()?;
            if !warnings.is_empty() {
                return None;
            }
        }
        let fits = match self.numbers {
            Numbers::Given(column) if column == place.column => !matches!(value, Value::Null | Value::Int(0) | Value::UInt(0)),
            _ => def.nullable || !value.is_null(),
        };
        fits.then_some(value)
    }

    /// A row of the source's bytes has a number, if it is to bring one, and no date in `dates` that the mode does not admit.
    fn takes_bytes(&self, row: &[u8], dates: &[usize]) -> bool {
        let layout = self.target.layout();
        let numbered = match self.numbers {
            Numbers::Given(column) => layout.int(row, column).is_some_and(|n| n != 0),
            _ => true,
        };
        numbered && dates.iter().all(|&column| layout.is_admitted(row, column, &self.mode))
    }

    fn chunk(&self, made: Made) -> Chunk {
        if !made.declined.is_empty() || matches!(self.numbers, Numbers::Generated(_)) {
            return Chunk::Open(made.rows, made.declined);
        }
        let count = made.rows.len();
        let given = self.given(&made.rows, 0..count);
        Chunk::Prepared(count, self.target.prepare_rows(made.rows), given)
    }

    /// None if they bring none.
    fn given(&self, rows: &EncodedRows, which: Range<usize>) -> Option<Given> {
        let Numbers::Given(column) = self.numbers else { return None };
        let layout = self.target.layout();
        let unsigned = layout.types()[column].unsigned;
        let mut given: Option<Given> = None;
        for number in which.filter_map(|i| layout.int(rows.row(i), column)) {
            let greatest = given.and_then(|given| given.greatest).max((unsigned || number > 0).then_some(number as u64));
            given = Some(Given { greatest, last: number as u64 });
        }
        given
    }
}

impl Made {
    fn new() -> Made {
        Made { rows: EncodedRows::with_room(PIECE_BYTES), declined: Vec::new(), declined_bytes: 0 }
    }

    fn decline(&mut self, values: Vec<Value>) {
        self.declined_bytes += row_bytes(&values);
        self.declined.push(Declined { at: self.rows.len(), values });
    }

    fn is_full(&self) -> bool {
        self.rows.byte_len() + self.declined_bytes >= BULK_CHUNK_BYTES
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.declined.is_empty()
    }
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Chunk::Prepared(rows, ..) => *rows,
            Chunk::Open(rows, declined) => rows.len() + declined.len(),
        }
    }
}

/// A table whose rows are copied.
struct Source {
    table: Arc<Table>,
    snapshot: Snapshot,
    /// Of each place, the column that its value comes from.
    columns: Vec<usize>,
    /// The rows' bytes are the target's.
    keeps_bytes: bool,
    /// With that, the columns whose dates the mode may not admit.
    dates: Vec<usize>,
}

/// Makes chunks of a piece of the source.
struct Reader {
    source: Arc<Source>,
    maker: Arc<RowMaker>,
    /// Until it is begun.
    piece: Option<ScanPartition>,
    scan: Option<TableScan>,
    leaf: RowBatch,
    /// Where to go on in it.
    at: usize,
    /// With the constants in it.
    row: Vec<Value>,
}

impl Reader {
    fn new(source: &Arc<Source>, maker: &Arc<RowMaker>, piece: ScanPartition) -> Reader {
        let row = maker.constants.clone();
        Reader { source: source.clone(), maker: maker.clone(), piece: Some(piece), scan: None, leaf: RowBatch::new(), at: 0, row }
    }

    /// The next chunk; None at the end, or when nobody wants it any more.
    fn next(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Chunk>, MySqlError> {
        let (source, maker) = (&self.source, &self.maker);
        if let Some(piece) = self.piece.take() {
            self.scan = Some(source.table.scan_partition(&source.snapshot, 0, &piece, Direction::Forward)?);
        }
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let mut made = Made::new();
        let mut ended = false;
        while !ended && !made.is_full() {
            if !go_on() {
                return Ok(None);
            }
            if self.at == self.leaf.len() {
                self.at = 0;
                if !scan.next_batch(&mut self.leaf)? {
                    ended = true;
                    continue;
                }
                source.table.count_use(None, RowUse::Fetch, self.leaf.len() as u64);
            }
            let leaf = &self.leaf;
            // Its rows may have values of any length elsewhere.
            while self.at < leaf.len() && !made.is_full() {
                let i = self.at;
                self.at += 1;
                let value = |n: usize| leaf.value(i, source.columns[n]);
                let done = if source.keeps_bytes {
                    let fits = maker.takes_bytes(leaf.row(i), &source.dates);
                    if fits {
                        made.rows.push_with(|out| out.extend_from_slice(leaf.row(i)));
                    }
                    fits
                } else {
                    maker.add(value, &mut self.row, &mut made.rows)
                };
                if !done {
                    made.decline((0..source.columns.len()).map(value).collect());
                }
            }
        }
        if ended {
            self.scan = None;
        }
        Ok((!made.is_empty()).then(|| maker.chunk(made)))
    }
}

/// Makes chunks of some rows of a query.
struct Converter {
    maker: Arc<RowMaker>,
    batches: std::vec::IntoIter<Rows>,
    /// The present one, and where to go on in it.
    batch: Option<Rows>,
    at: usize,
    row: Vec<Value>,
}

impl Converter {
    fn new(maker: &Arc<RowMaker>, batches: Vec<Rows>) -> Converter {
        Converter { maker: maker.clone(), batches: batches.into_iter(), batch: None, at: 0, row: maker.constants.clone() }
    }

    /// As `Reader::next`.
    fn next(&mut self, go_on: &mut dyn FnMut() -> bool) -> Option<Chunk> {
        let mut made = Made::new();
        while !made.is_full() {
            if !go_on() {
                return None;
            }
            let Some(batch) = &self.batch else {
                self.batch = self.batches.next();
                self.at = 0;
                if self.batch.is_none() {
                    break;
                }
                continue;
            };
            let full = batch.for_each_from(self.at, |values| {
                if !self.maker.add(|n| values[n].clone(), &mut self.row, &mut made.rows) {
                    made.decline(values.to_vec());
                }
                self.at += 1;
                if made.is_full() { Err(()) } else { Ok(()) }
            });
            if full.is_ok() {
                self.batch = None;
            }
        }
        (!made.is_empty()).then(|| self.maker.chunk(made))
    }
}

/// Chunks on their way from workers to the table.
struct Conveyor {
    crew: Crew,
    maker: Arc<RowMaker>,
    /// In the order of their rows.
    making: VecDeque<Making<Chunk>>,
    /// As many at a time.
    makers: usize,
    /// Rows that have got numbers meanwhile; they are behind no others.
    preparing: VecDeque<Making<PreparedRows>>,
}

impl Conveyor {
    fn new(crew: Crew, maker: Arc<RowMaker>) -> Conveyor {
        // What gets numbers in between is prepared by the other half.
        let makers = if let Numbers::Generated(_) = maker.numbers { crew.workers() / 2 } else { crew.workers() };
        Conveyor { crew, maker, making: VecDeque::new(), makers, preparing: VecDeque::new() }
    }

    fn make(&mut self, make: impl FnMut(&mut dyn FnMut() -> bool) -> Result<Option<Chunk>, MySqlError> + Send + 'static) {
        let ahead = (MOST_WAITING / self.crew.workers()).max(1);
        self.making.push_back(self.crew.produce(ahead, make));
    }

    /// The next chunk of the oldest that has one.
    async fn next(&mut self) -> Result<Option<Chunk>, MySqlError> {
        while let Some(first) = self.making.front_mut() {
            let chunk = first.next().await?;
            if chunk.is_some() {
                return Ok(chunk);
            }
            self.making.pop_front();
        }
        Ok(None)
    }

    fn prepare(&mut self, rows: EncodedRows) {
        let (target, mut rows) = (self.maker.target.clone(), Some(rows));
        self.preparing.push_back(self.crew.produce(1, move |_| Ok(rows.take().map(|rows| target.prepare_rows(rows)))));
    }

    /// The oldest rows that were numbered, prepared. None as long as workers may go on with all there are; `all`: until there are no more.
    async fn prepared(&mut self, all: bool) -> Result<Option<PreparedRows>, MySqlError> {
        if !all && self.preparing.len() <= self.crew.workers() - self.makers {
            return Ok(None);
        }
        let Some(first) = self.preparing.front_mut() else { return Ok(None) };
        let prepared = first.next().await?;
        self.preparing.pop_front();
        Ok(prepared)
    }

    /// Returns when no worker is at it any more.
    async fn end(self) {
        for making in self.making {
            making.end().await;
        }
        for preparing in self.preparing {
            preparing.end().await;
        }
    }
}

/// Rows of a query on their way into a table: the session's at first, the workers' once there are many.
pub(super) struct QueryRows {
    settings: ParallelSettings,
    /// None: they are the session's, all of them.
    maker: Option<Arc<RowMaker>>,
    conveyor: Option<Conveyor>,
    /// The session's so far.
    rows: u64,
    waiting: Vec<Rows>,
    waiting_bytes: usize,
}

impl QueryRows {
    /// Returns when no worker is at it any more.
    pub async fn end(self) {
        if let Some(conveyor) = self.conveyor {
            conveyor.end().await;
        }
    }
}

impl Session {
    /// Copies the rows with workers. False: there are none to be had, or the copy is not for them; nothing was done.
    pub(super) async fn copy_with_workers(&mut self, inserter: &mut Inserter, copy: &PlainCopy, snapshot: &Snapshot, hints: &Hints) -> Result<bool, Failure> {
        let settings = self.parallel_settings(hints);
        let rows = copy.source.row_count_estimate()?;
        if settings.wanted().is_err() || !hints.pq.divides(&copy.alias) || !Crew::is_worth(&settings, rows) {
            return Ok(false);
        }
        let place = |&(from, column, is_stored): &(usize, usize, bool)| {
            let in_utc = matches!(copy.source.columns()[from].ty.kind, TypeKind::Timestamp(_));
            Place { column, is_stored, in_utc }
        };
        let places = copy.columns.iter().map(place).collect();
        let Some(maker) = RowMaker::new(inserter, &self.state, places) else { return Ok(false) };
        let mut pieces = copy.source.partitions(0, &KeyRange::all(), false)?.parts;
        if pieces.len() < 2 && settings.cost_threshold == 0 {
            pieces = copy.source.partitions(0, &KeyRange::all(), true)?.parts;
        }
        let (engine, process) = (self.state.instance.queries().clone(), self.state.process.clone());
        let most = pieces.len().min(MOST_WORKERS);
        let is_killed = || process.check().is_err();
        let Some(crew) = Crew::take(&engine, &settings, most, process.queries(), is_killed).await else { return Ok(false) };
        self.lock_auto_increment(inserter).await?;
        let source = Source {
            table: copy.source.clone(),
            snapshot: snapshot.clone(),
            columns: copy.columns.iter().map(|&(from, ..)| from).collect(),
            keeps_bytes: copy.same_rows(inserter),
            dates: copy.checked_dates(&self.state.config.sql_mode),
        };
        let mut conveyor = Conveyor::new(crew, Arc::new(maker));
        let copied = self.copy_pieces(inserter, &mut conveyor, &Arc::new(source), pieces).await;
        conveyor.end().await;
        copied?;
        self.finish_bulk(inserter).await?;
        Ok(true)
    }

    async fn copy_pieces(&mut self, inserter: &mut Inserter, conveyor: &mut Conveyor, source: &Arc<Source>, pieces: Vec<ScanPartition>) -> Result<(), Failure> {
        let progress = self.state.process.progress();
        let mut pieces = pieces.into_iter();
        loop {
            while conveyor.making.len() < conveyor.makers {
                let Some(piece) = pieces.next() else { break };
                let mut reader = Reader::new(source, &conveyor.maker, piece);
                conveyor.make(move |go_on| reader.next(go_on));
            }
            let Some(first) = conveyor.making.front_mut() else { break };
            let Some(chunk) = first.next().await? else {
                conveyor.making.pop_front();
                // All rows of many pieces may be ones that the copy does not see.
                self.state.process.check()?;
                continue;
            };
            progress.add(chunk.len() as u64);
            self.note_read(chunk.len() as u64);
            self.take_chunk(inserter, conveyor, chunk).await?;
        }
        self.take_numbered(inserter, conveyor).await
    }

    /// Rows of a query, for an insert in bulk.
    pub(super) fn query_rows(&self, inserter: &Inserter, hints: &Hints) -> QueryRows {
        let settings = self.parallel_settings(hints);
        let places = inserter.given_columns().iter().map(|&column| Place { column, is_stored: false, in_utc: false }).collect();
        let maker = settings.wanted().ok().and_then(|_| RowMaker::new(inserter, &self.state, places)).map(Arc::new);
        QueryRows { settings, maker, conveyor: None, rows: 0, waiting: Vec::new(), waiting_bytes: 0 }
    }

    /// The next rows, whose values are those of the inserter's columns. Gives them back if the session is to take them. `batch`: what it has taken and not written.
    pub(super) async fn take_query_rows(
        &mut self,
        inserter: &mut Inserter,
        query: &mut QueryRows,
        batch: &mut Vec<Vec<Value>>,
        rows: Rows,
    ) -> Result<Option<Rows>, Failure> {
        let Some(maker) = &query.maker else { return Ok(Some(rows)) };
        if query.conveyor.is_none() {
            // One batch may be all there are.
            if query.rows == 0 || !Crew::is_worth(&query.settings, query.rows) {
                query.rows += rows.len() as u64;
                return Ok(Some(rows));
            }
            let engine = self.state.instance.queries().clone();
            let Some(crew) = Crew::take_more(&engine, &query.settings, MOST_WORKERS, self.state.process.queries()) else {
                query.maker = None;
                return Ok(Some(rows));
            };
            query.conveyor = Some(Conveyor::new(crew, maker.clone()));
            self.lock_auto_increment(inserter).await?;
            self.write_rows(inserter, batch, false).await?;
            self.flush_bulk(inserter, 0).await?;
        }
        query.waiting_bytes += rows.bytes();
        query.waiting.push(rows);
        if query.waiting_bytes >= BULK_CHUNK_BYTES {
            self.convert_waiting(inserter, query).await?;
        }
        Ok(None)
    }

    async fn convert_waiting(&mut self, inserter: &mut Inserter, query: &mut QueryRows) -> Result<(), Failure> {
        let Some(conveyor) = &mut query.conveyor else { return Ok(()) };
        query.waiting_bytes = 0;
        let mut converter = Converter::new(&conveyor.maker, std::mem::take(&mut query.waiting));
        conveyor.make(move |go_on| Ok(converter.next(go_on)));
        while conveyor.making.len() > conveyor.makers {
            let Some(chunk) = conveyor.next().await? else { break };
            self.take_chunk(inserter, conveyor, chunk).await?;
        }
        Ok(())
    }

    /// The query has no more rows.
    pub(super) async fn take_last_query_rows(&mut self, inserter: &mut Inserter, query: &mut QueryRows) -> Result<(), Failure> {
        if !query.waiting.is_empty() {
            self.convert_waiting(inserter, query).await?;
        }
        let Some(conveyor) = &mut query.conveyor else { return Ok(()) };
        while let Some(chunk) = conveyor.next().await? {
            self.take_chunk(inserter, conveyor, chunk).await?;
        }
        self.take_numbered(inserter, conveyor).await
    }

    async fn take_chunk(&mut self, inserter: &mut Inserter, conveyor: &mut Conveyor, chunk: Chunk) -> Result<(), Failure> {
        self.state.process.check()?;
        match chunk {
            Chunk::Prepared(rows, prepared, given) => {
                inserter.row += rows as u64;
                if let Some(given) = given {
                    inserter.pass_until(given.greatest, given.last)?;
                }
                self.add_prepared(inserter, prepared).await?;
            }
            Chunk::Open(rows, declined) => {
                let (rows, failed) = self.complete(inserter, &conveyor.maker, rows, declined);
                if let Some(error) = failed {
                    return Err(Box::pin(self.fail_behind_chunks(inserter, conveyor, rows, error)).await);
                }
                if let Numbers::Generated(_) = conveyor.maker.numbers {
                    conveyor.prepare(rows);
                    if let Some(prepared) = conveyor.prepared(false).await? {
                        self.add_prepared(inserter, prepared).await?;
                    }
                } else {
                    let target = &conveyor.maker.target;
                    let prepared = self.state.instance.database().engine().blocking(|| target.prepare_rows(rows));
                    self.add_prepared(inserter, prepared).await?;
                }
            }
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    /// As `fail_behind`: `rows` come before the one that cannot be made, and those that wait for their keys before them.
    async fn fail_behind_chunks(&mut self, inserter: &mut Inserter, conveyor: &mut Conveyor, rows: EncodedRows, error: MySqlError) -> Failure {
        let written = match self.take_numbered(inserter, conveyor).await {
            Ok(()) => {
                let target = &conveyor.maker.target;
                let prepared = self.state.instance.database().engine().blocking(|| target.prepare_rows(rows));
                self.add_prepared(inserter, prepared).await
            }
            failed => failed,
        };
        match written {
            Ok(()) => self.fail_behind(inserter, &mut Vec::new(), error).await,
            Err(failure) => failure,
        }
    }

    async fn take_numbered(&mut self, inserter: &mut Inserter, conveyor: &mut Conveyor) -> Result<(), Failure> {
        while let Some(prepared) = conveyor.prepared(true).await? {
            self.add_prepared(inserter, prepared).await?;
        }
        Ok(())
    }

    /// All rows of a chunk: those that were declined in their places, and each with its number. With an error: those before the row that it is of.
    fn complete(&mut self, inserter: &mut Inserter, maker: &RowMaker, mut made: EncodedRows, declined: Vec<Declined>) -> (EncodedRows, Option<MySqlError>) {
        let count = made.len();
        if declined.is_empty() {
            return match self.number_made(inserter, maker, &mut made, 0..count) {
                Ok(()) => (made, None),
                Err((numbered, e)) => (first_rows(&made, numbered), Some(e)),
            };
        }
        let mut rows = EncodedRows::with_room(made.byte_len());
        let mut taken = 0;
        for (at, values) in declined.into_iter().map(|declined| (declined.at, Some(declined.values))).chain([(count, None)]) {
            let numbered = self.number_made(inserter, maker, &mut made, taken..at);
            let end = numbered.as_ref().err().map_or(at, |(numbered, _)| *numbered);
            (taken..end).for_each(|i| rows.push_with(|out| out.extend_from_slice(made.row(i))));
            taken = at;
            let completed = numbered.map_err(|(_, e)| e).and_then(|()| match values {
                Some(values) => self.make_declined(inserter, maker, values, &mut rows),
                None => Ok(()),
            });
            if let Err(e) = completed {
                return (rows, Some(e));
            }
        }
        (rows, None)
    }

    /// Counts rows that a worker has made, and sees to their numbers. An error comes with the row that there is no number for.
    fn number_made(&mut self, inserter: &mut Inserter, maker: &RowMaker, made: &mut EncodedRows, which: Range<usize>) -> Result<(), (usize, MySqlError)> {
        let Numbers::Generated(column) = maker.numbers else {
            inserter.row += which.len() as u64;
            let start = which.start;
            return match maker.given(made, which) {
                Some(given) => inserter.pass_until(given.greatest, given.last).map_err(|e| (start, e)),
                None => Ok(()),
            };
        };
        let layout = maker.target.layout();
        let unsigned = layout.types()[column].unsigned;
        for i in which {
            let number = inserter.next_number(&mut self.state).map_err(|e| (i, e))?;
            inserter.row += 1;
            let value = if unsigned { Value::UInt(number) } else { Value::Int(number as i64) };
            layout.set_fixed(made.row_mut(i), column, &value);
        }
        Ok(())
    }

    /// One row the long way: converted with warnings and errors, numbered, encoded.
    fn make_declined(&mut self, inserter: &mut Inserter, maker: &RowMaker, values: Vec<Value>, rows: &mut EncodedRows) -> Result<(), MySqlError> {
        let mut row = Vec::new();
        inserter.start_row(&mut row);
        for (place, mut value) in maker.places.iter().zip(values) {
            if place.is_stored && maker.mode.admits(&value) {
                row[place.column] = value;
                continue;
            }
            if place.in_utc {
                to_session(&mut value, &maker.zone);
            }
            inserter.assign(&mut self.state, &mut row, place.column, value)?;
        }
        if !inserter.finish_row(&mut self.state, &mut row)? {
            return Ok(());
        }
        let mut row = [row];
        let generated = inserter.number(&mut self.state, &mut row, false)?;
        inserter.note_generated(&generated, |_| false);
        rows.push_with(|out| maker.target.layout().encode(&row[0], out));
        Ok(())
    }
}

/// So many of the rows.
fn first_rows(rows: &EncodedRows, count: usize) -> EncodedRows {
    let mut first = EncodedRows::with_room(rows.byte_len());
    (0..count).for_each(|i| first.push_with(|out| out.extend_from_slice(rows.row(i))));
    first
}
