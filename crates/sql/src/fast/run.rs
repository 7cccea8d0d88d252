//! Running a compiled query: rows stream through the stages up to the first that blocks, are held there, and go on as a whole.

use highkey_table::{Direction, KeyRange, Row, RowBatch, RowUse};
use highkey_types::{KeyPart, MySqlError, TimeZone, Value, encode_key_part};

use super::aggregate::{Accumulator, Groups};
use super::compile::BUDGET;
use super::join::rows_of;
use super::known::Found;
use super::meter::{FILTER, Meter, SCAN};
use super::{FastQuery, Progress, Source, Stage, TableSource, compare_keys, sort_form};
use crate::bind::ROW_KEY;
use crate::execute::{Destination, Failure, columns, lock_mode, lock_policy, to_session, whole_key};
use crate::expr::{self, row_bytes};
use crate::parse::ast::LockWait;
use crate::plan::{self, Field, LockSpec, SortKey};
use crate::session::{Executor, Reach, Session, SessionState};

/// Rows that are read of an index before it is asked how many there are. Fewer are read in less time than DataFusion plans in.
const LOOK_AFTER: u64 = 500;
/// Or rows that wait of so many bytes.
const WAITING_BYTES: usize = 1 << 20;
/// Rows that wait of so many bytes are too many to be remembered.
const REMEMBERED_BYTES: usize = 16 << 20;

/// A streaming stage with what it remembers.
enum Step<'a> {
    Filter(&'a plan::Expr),
    Project(&'a [plan::Expr]),
    Limit { skip: u64, left: u64 },
    Distinct { parts: &'a [KeyPart], seen: ahash::AHashSet<Vec<u8>> },
}

/// Whether a row goes on.
enum Flow {
    Pass,
    Drop,
    /// Neither this row nor any after it.
    Stop,
}

/// Behind a condition that is false: a KILL may be why it is, and there may be no row behind this one.
fn check_killed(wanted: bool, state: &SessionState) -> Result<(), MySqlError> {
    if wanted { Ok(()) } else { state.process.check() }
}

impl Step<'_> {
    fn apply(&mut self, row: &mut Vec<Value>, state: &mut SessionState) -> Result<Flow, MySqlError> {
        match self {
            Step::Filter(predicate) => {
                let wanted = expr::eval_condition(predicate, row, state)?;
                check_killed(wanted, state)?;
                Ok(if wanted { Flow::Pass } else { Flow::Drop })
            }
            Step::Project(exprs) => {
                let mut out = Vec::with_capacity(exprs.len());
                for e in *exprs {
                    out.push(match e.as_column() {
                        Some(i) => row[i].clone(),
                        None => expr::eval(e, row, state)?,
                    });
                }
                *row = out;
                Ok(Flow::Pass)
            }
            Step::Limit { left: 0, .. } => Ok(Flow::Stop),
            Step::Limit { skip, left } => {
                if *skip > 0 {
                    *skip -= 1;
                    return Ok(Flow::Drop);
                }
                *left -= 1;
                Ok(Flow::Pass)
            }
            Step::Distinct { parts, seen } => {
                let mut key = Vec::new();
                for (value, part) in row.iter().zip(*parts) {
                    encode_key_part(value, part, &mut key);
                }
                Ok(if seen.insert(key) { Flow::Pass } else { Flow::Drop })
            }
        }
    }

    /// Nothing more can pass.
    fn is_full(&self) -> bool {
        matches!(self, Step::Limit { left: 0, .. })
    }
}

/// What the first blocking stage holds.
enum Held<'a> {
    Sort(&'a [SortKey], Vec<(Vec<Value>, Vec<Value>)>),
    Aggregate(Vec<Accumulator<'a>>),
    Groups(Groups<'a>),
    /// Nothing blocks: rows go straight to their destination.
    Nothing,
}

impl<'a> Held<'a> {
    /// For a stage that blocks.
    fn new(stage: &'a Stage) -> Held<'a> {
        match stage {
            Stage::Sort(keys) => Held::Sort(keys, Vec::new()),
            Stage::Aggregate(aggregates) => Held::Aggregate(aggregates.iter().map(Accumulator::new).collect()),
            Stage::Group { groups, keys, aggregates } => Held::Groups(Groups::new(groups, keys, aggregates)),
            _ => Held::Nothing,
        }
    }

    /// Takes a row; gives it back if nothing holds it.
    fn take(&mut self, row: Vec<Value>, state: &mut SessionState) -> Result<Option<Vec<Value>>, MySqlError> {
        match self {
            Held::Sort(keys, rows) => {
                let mut key = Vec::with_capacity(keys.len());
                for k in *keys {
                    let value = match k.expr.as_column() {
                        Some(i) => row[i].clone(),
                        None => expr::eval(&k.expr, &row, state)?,
                    };
                    key.push(sort_form(value, k));
                }
                rows.push((key, row));
            }
            Held::Aggregate(accumulators) => {
                for accumulator in accumulators {
                    accumulator.add(&row, state)?;
                }
            }
            Held::Groups(groups) => groups.add(&row, state)?,
            Held::Nothing => return Ok(Some(row)),
        }
        Ok(None)
    }
}

/// The state of a run.
pub(super) struct Run<'a> {
    steps: Vec<Step<'a>>,
    held: Held<'a>,
    fields: &'a [Field],
    sent: u64,
    /// Rows for the client that wait until it is known that they are the fast path's.
    waiting: Option<Vec<Vec<Value>>>,
    /// What those take.
    waiting_bytes: usize,
    /// What it remembers of the rows it has read is limited by the budget.
    bounded: bool,
    /// Whether the index has too many rows is still to be looked at.
    undecided: bool,
    pub scanned: u64,
    /// Rows of joined tables that were met again in memory.
    pub met_again: u64,
    pub budget: u64,
    pub stopped: bool,
    /// EXPLAIN ANALYZE.
    pub meter: Option<Meter>,
}

impl Run<'_> {
    fn measure(&mut self, tell: impl FnOnce(&mut Meter)) {
        if let Some(meter) = &mut self.meter {
            tell(meter);
        }
    }

    /// The time since the last look was a node's.
    pub fn lap(&mut self, node: usize) {
        self.measure(|meter| meter.lap(node));
    }

    /// The same; it gives a row.
    pub fn lap_row(&mut self, node: usize) {
        self.measure(|meter| {
            meter.lap(node);
            meter.rows(node, 1);
        });
    }

    /// A level of the loops begins to be read, or has been.
    pub fn enter(&mut self, level: usize) {
        self.measure(|meter| meter.enter(level));
    }

    pub fn leave(&mut self, level: usize) {
        self.measure(|meter| meter.leave(level));
    }

    /// The time since the last look was the client's.
    fn skip(&mut self) {
        self.measure(Meter::skip);
    }

    /// Rows in memory cost less.
    pub fn over_budget(&self) -> bool {
        self.scanned + self.met_again / 8 > self.budget
    }

    /// It may have enough before it has read everything.
    pub fn may_stop_early(&self) -> bool {
        matches!(self.held, Held::Nothing) && self.steps.iter().any(|step| matches!(step, Step::Limit { .. }))
    }
}

impl Session {
    pub(crate) async fn run_fast(&mut self, query: &FastQuery, fields: &[Field], destination: &mut Destination<'_>) -> Result<Progress, Failure> {
        let blocking = query.stages.iter().position(Stage::blocks);
        let streaming = &query.stages[..blocking.unwrap_or(query.stages.len())];
        let steps = self.steps(streaming)?;
        let held = blocking.map_or(Held::Nothing, |at| Held::new(&query.stages[at]));
        let meter = self.profile.is_some().then(|| Meter::new(query.levels(), query.stages.len()));
        let undecided = matches!(&query.source, Source::Table(source) if query.found_max(source, u64::MAX).is_some());
        let bounded = query.budget != u64::MAX && matches!(&query.source, Source::Table(source) if source.lock.is_none()) && query.stages.iter().any(Stage::holds);
        // A join holds its rows until it is known to be within its budget.
        let holds = blocking.is_some() || matches!(query.source, Source::Join(_));
        let waits = !holds && (undecided || bounded) && matches!(destination, Destination::Sink(_));
        let mut run = Run {
            steps,
            held,
            fields,
            sent: 0,
            waiting: waits.then(Vec::new),
            waiting_bytes: 0,
            bounded,
            undecided,
            scanned: 0,
            met_again: 0,
            budget: query.budget,
            stopped: false,
            meter,
        };
        if !holds
            && !waits
            && let Destination::Sink(sink) = destination
        {
            sink.columns(&columns(&self.state, fields));
        }
        let kept_before = if let Destination::Memory(kept) = destination { kept.len() } else { 0 };
        let mut joined = Vec::new();
        if run.steps.iter().any(Step::is_full) {
            run.stopped = true;
        }
        if !matches!(query.source, Source::Join(_)) {
            run.enter(0);
        }
        match &query.source {
            Source::Rows(rows) => {
                for row in rows {
                    let mut values = Vec::with_capacity(row.len());
                    for e in row {
                        values.push(expr::eval(e, &[], &mut self.state)?);
                    }
                    run.lap_row(SCAN);
                    self.push(&mut run, values, destination)?;
                    if run.stopped {
                        break;
                    }
                }
            }
            Source::Table(source) => {
                let complete = if source.lock.is_some() { Box::pin(self.scan_locked(source, &mut run, destination)).await } else { self.scan(query, source, &mut run, destination).await };
                self.note_read(run.scanned);
                if !complete? {
                    if let Destination::Memory(kept) = destination {
                        kept.truncate(kept_before);
                    }
                    return Ok(Progress::TooLarge);
                }
            }
            Source::Join(source) => {
                let complete = self.join(source, &mut run, &mut Destination::Memory(&mut joined));
                self.note_read(run.scanned);
                if !complete? {
                    return Ok(Progress::TooLarge);
                }
            }
            Source::Known { table, answers } => {
                let found = self.find_answers(table, answers).await?;
                run.lap_row(SCAN);
                if let Held::Aggregate(accumulators) = &mut run.held {
                    for (accumulator, found) in accumulators.iter_mut().zip(found) {
                        match found {
                            Found::Rows(rows) => accumulator.add_rows(rows),
                            Found::Value(value) => accumulator.set(value),
                        }
                    }
                }
            }
        }
        self.note_reached(query);
        if !holds {
            self.send_waiting(&mut run, destination);
            return Ok(Progress::Done(run.sent, run.meter.map_or_else(Vec::new, Meter::finish)));
        }
        let mut meter = run.meter;
        let rows = match blocking {
            Some(at) => {
                let rows = self.release(run.held)?;
                note_stage(&mut meter, at, rows.len());
                self.note_sorted(&query.stages[at..], rows.len(), query.reads_ranges())?;
                self.finish_stages(rows, query, at + 1, &mut meter).await?
            }
            None => joined,
        };
        let measured = meter.map_or_else(Vec::new, Meter::finish);
        if let Destination::Sink(sink) = destination {
            sink.columns(&columns(&self.state, fields));
        }
        let count = rows.len() as u64;
        for row in rows {
            match destination {
                Destination::Sink(sink) => {
                    sink.row(&row);
                    if sink.wants_flush() {
                        sink.flush().await?;
                    }
                }
                Destination::Memory(kept) => kept.push(row),
            }
        }
        Ok(Progress::Done(count, measured))
    }

    /// Counts how a query came to its tables, and what it kept of their rows.
    fn note_reached(&mut self, query: &FastQuery) {
        let work = &mut self.state.work;
        match &query.source {
            Source::Table(source) => work.select([source.reach()]),
            Source::Join(join) => work.select(join.reaches()),
            Source::Rows(_) | Source::Known { .. } => {}
        }
        work.created_tmp_tables += query.stages.iter().filter(|stage| matches!(stage, Stage::Group { .. } | Stage::Distinct(_))).count() as u64;
    }

    /// Counts the rows that the first of `stages` has given if it is a sort: no more than a LIMIT behind it wants.
    fn note_sorted(&mut self, stages: &[Stage], rows: usize, of_ranges: bool) -> Result<(), MySqlError> {
        let [Stage::Sort(_), after @ ..] = stages else { return Ok(()) };
        let mut wanted = u64::MAX;
        if let Some(Stage::Limit { offset, count }) = after.iter().find(|stage| !matches!(stage, Stage::Project(_))) {
            let offset = self.limit_value(offset.as_ref())?.unwrap_or(0);
            wanted = self.limit_value(count.as_ref())?.map_or(u64::MAX, |count| count.saturating_add(offset));
        }
        self.state.work.sort(of_ranges, wanted.min(rows as u64));
        Ok(())
    }

    /// Counts what was read of a range. `ended`: it was seen that there is no more.
    fn note_scanned(&mut self, source: &TableSource, range: &KeyRange, rows: u64, ended: bool) {
        source.table.count_use(source.used(), RowUse::Fetch, rows);
        match source.reach() {
            Reach::Table => self.state.work.read_table(rows, ended),
            _ => self.state.work.read_range(range, source.backward, rows, ended),
        }
    }

    fn steps<'a>(&mut self, stages: &'a [Stage]) -> Result<Vec<Step<'a>>, MySqlError> {
        stages
            .iter()
            .map(|stage| {
                Ok(match stage {
                    Stage::Filter(predicate) => Step::Filter(predicate),
                    Stage::Project(exprs) => Step::Project(exprs),
                    Stage::Limit { offset, count } => Step::Limit {
                        skip: self.limit_value(offset.as_ref())?.unwrap_or(0),
                        left: self.limit_value(count.as_ref())?.unwrap_or(u64::MAX),
                    },
                    Stage::Distinct(parts) => Step::Distinct { parts, seen: ahash::AHashSet::new() },
                    Stage::Sort(_) | Stage::Aggregate(_) | Stage::Group { .. } => unreachable!("the streaming stages end before the first that blocks"),
                })
            })
            .collect()
    }

    /// One row of the source through the streaming stages to where it is held or sent.
    pub(super) fn push(&mut self, run: &mut Run<'_>, mut row: Vec<Value>, destination: &mut Destination<'_>) -> Result<(), MySqlError> {
        for (stage, step) in run.steps.iter_mut().enumerate() {
            let flow = step.apply(&mut row, &mut self.state)?;
            if let Some(meter) = &mut run.meter {
                let node = meter.stage(stage);
                meter.lap(node);
                meter.rows(node, u64::from(matches!(flow, Flow::Pass)));
            }
            match flow {
                Flow::Pass => {}
                Flow::Drop => return Ok(()),
                Flow::Stop => {
                    run.stopped = true;
                    return Ok(());
                }
            }
        }
        if run.steps.iter().any(Step::is_full) {
            run.stopped = true;
        }
        if let Some(row) = run.held.take(row, &mut self.state)? {
            run.sent += 1;
            match (&mut run.waiting, destination) {
                (Some(waiting), _) => {
                    run.waiting_bytes += row_bytes(&row);
                    waiting.push(row);
                }
                (None, Destination::Sink(sink)) => sink.row(&row),
                (None, Destination::Memory(kept)) => kept.push(row),
            }
            run.skip();
        } else if let Some(meter) = &mut run.meter {
            meter.lap(meter.stage(run.steps.len()));
        }
        Ok(())
    }

    /// The ranges to read, in the order to read them.
    fn ranges(&mut self, source: &TableSource) -> Result<Vec<KeyRange>, MySqlError> {
        let mut ranges = match &source.access {
            Some(access) => plan::key_ranges(access, source.table.def(), &mut self.state)?,
            None => vec![KeyRange::all()],
        };
        if source.backward {
            ranges.reverse();
        }
        Ok(ranges)
    }

    /// The same for an estimate: whoever reads them evaluates their bounds again, and warns.
    fn expected_ranges(&mut self, source: &TableSource) -> Result<Vec<KeyRange>, MySqlError> {
        let diagnostics = self.state.diagnostics.clone();
        let ranges = self.ranges(source);
        self.state.diagnostics = diagnostics;
        ranges
    }

    /// The rows that wait are the fast path's: they go to the client.
    fn send_waiting(&self, run: &mut Run<'_>, destination: &mut Destination<'_>) {
        let Some(rows) = run.waiting.take() else { return };
        if let Destination::Sink(sink) = destination {
            sink.columns(&columns(&self.state, run.fields));
            rows.iter().for_each(|row| sink.row(row));
        }
        run.skip();
    }

    /// An index has more rows in `ranges` than are read by it faster than by DataFusion, which may read the whole table.
    fn has_too_many(&self, query: &FastQuery, source: &TableSource, ranges: &[KeyRange]) -> Result<bool, MySqlError> {
        let Some(most) = query.found_max(source, source.table.row_count_estimate()?) else { return Ok(false) };
        Ok(plan::rows_in_ranges(&source.table, source.index, ranges).is_some_and(|rows| rows > most))
    }

    /// The query will be left to DataFusion, as far as that is known before it runs: EXPLAIN asks.
    pub(crate) fn will_leave(&mut self, query: &FastQuery) -> Result<bool, MySqlError> {
        let Source::Table(source) = &query.source else { return Ok(false) };
        let fixed = source.access.as_ref().is_some_and(|access| access.bounds().all(plan::is_fixed));
        if !fixed || query.found_max(source, u64::MAX).is_none() {
            return Ok(false);
        }
        let ranges = self.expected_ranges(source)?;
        self.has_too_many(query, source, &ranges)
    }

    /// It reads more rows, by an estimate, than a stage may hold: not for whoever keeps them in memory, or can lock them as one range.
    pub(crate) fn reads_many(&mut self, query: &FastQuery) -> Result<bool, MySqlError> {
        let Source::Table(source) = &query.source else { return Ok(false) };
        if self.state.config.executor == Executor::Fast {
            return Ok(false);
        }
        // DataFusion is given all rows at once that are locked in another way.
        let ranges_lock = |lock: LockSpec| !lock.exclusive && lock.wait == LockWait::Wait && self.locks_gaps();
        if source.lock.is_some_and(|lock| !ranges_lock(lock)) || query.stages.iter().any(|stage| matches!(stage, Stage::Limit { .. })) {
            return Ok(false);
        }
        let rows = match &source.access {
            None => source.table.row_count_estimate()?,
            Some(access) if access.unique => access.ranges.len() as u64,
            Some(access) => {
                let ranges = self.expected_ranges(source)?;
                plan::rows_in_ranges(&source.table, source.index, &ranges).unwrap_or_else(|| rows_of(&source.table, Some(access)) as u64)
            }
        };
        Ok(rows > BUDGET)
    }

    /// A consistent read. False: too much for the fast path.
    async fn scan(&mut self, query: &FastQuery, source: &TableSource, run: &mut Run<'_>, destination: &mut Destination<'_>) -> Result<bool, Failure> {
        let direction = if source.backward { Direction::Backward } else { Direction::Forward };
        let zone = self.state.config.time_zone.clone();
        let unique = source.access.as_ref().is_some_and(|a| a.unique);
        let mut batch = RowBatch::new();
        let ranges = self.ranges(source)?;
        for range in &ranges {
            if unique && let Some(key) = whole_key(range, &source.table.def().indexes[source.index]) {
                self.state.work.read_key += 1;
                source.table.count_use(Some(source.index), RowUse::Fetch, 1);
                if run.scanned > 0 {
                    self.txn().breathe(1).await?;
                }
                let found = match &source.covered {
                    Some(columns) => source.table.get_columns(self.txn(), source.index, key, columns)?,
                    None => source.table.get(self.txn(), source.index, key)?,
                };
                run.lap(SCAN);
                if let Some(found) = found {
                    self.push_found(source, run, &found, destination)?;
                }
                if run.stopped {
                    break;
                }
                continue;
            }
            let before = run.scanned;
            let mut scan = source.table.scan(self.txn(), source.index, range, direction)?;
            if let Some(columns) = &source.covered {
                scan = scan.of_columns(columns);
            }
            while !run.stopped && scan.next_batch(&mut batch)? {
                for i in 0..batch.len() {
                    self.txn().breathe(1).await?;
                    run.scanned += 1;
                    let mut row = vec![Value::Null; source.columns.len()];
                    source.decode(&source.asked, &batch, i, &zone, &mut row);
                    run.lap_row(SCAN);
                    if let Some(residual) = &source.residual {
                        let wanted = expr::eval_condition(residual, &row, &mut self.state)?;
                        check_killed(wanted, &self.state)?;
                        run.lap(FILTER);
                        if !wanted {
                            continue;
                        }
                        run.lap_row(FILTER);
                    }
                    source.decode(&source.later, &batch, i, &zone, &mut row);
                    run.lap(SCAN);
                    self.push(run, row, destination)?;
                    if run.stopped {
                        break;
                    }
                }
                if run.bounded && (run.scanned > run.budget || run.waiting_bytes > REMEMBERED_BYTES) {
                    return Ok(false);
                }
                if run.undecided && !run.stopped && (run.scanned > LOOK_AFTER || run.waiting_bytes > WAITING_BYTES) {
                    run.undecided = false;
                    if self.has_too_many(query, source, &ranges)? {
                        return Ok(false);
                    }
                    if !run.bounded {
                        self.send_waiting(run, destination);
                    }
                }
                run.lap(SCAN);
                if let Destination::Sink(sink) = destination
                    && sink.wants_flush()
                {
                    sink.flush().await?;
                    run.skip();
                }
            }
            run.lap(SCAN);
            self.note_scanned(source, range, run.scanned - before, !run.stopped);
            if run.stopped {
                break;
            }
        }
        Ok(true)
    }

    /// A locking read: latest committed rows, each locked before it is looked at. Never over a budget: what is locked stays locked.
    async fn scan_locked(&mut self, source: &TableSource, run: &mut Run<'_>, destination: &mut Destination<'_>) -> Result<bool, Failure> {
        let Some(lock) = source.lock else { return Ok(true) };
        let direction = if source.backward { Direction::Backward } else { Direction::Forward };
        let (mode, policy) = (lock_mode(lock), lock_policy(lock.wait));
        let unique = source.access.as_ref().is_some_and(|a| a.unique);
        let ranges = self.ranges(source)?;
        // MySQL keeps the one row of a table that it has read by a whole key before it asks for the rest of the condition.
        let unlocks = source.residual.is_some() && !self.locks_gaps() && !(unique && ranges.len() == 1);
        for range in ranges {
            if run.stopped {
                break;
            }
            let key = if unique { whole_key(&range, &source.table.def().indexes[source.index]) } else { None };
            if let Some(key) = key {
                self.state.work.read_key += 1;
                source.table.count_use(Some(source.index), RowUse::Fetch, 1);
                if run.scanned > 0 {
                    self.txn().breathe(1).await?;
                }
                let found = source.table.lock_get(self.txn(), source.index, key, mode, policy).await?;
                run.lap(SCAN);
                if let Some(found) = found {
                    let wanted = self.push_found(source, run, &found, destination)?;
                    if !wanted && unlocks {
                        source.table.unlock(self.txn(), &found);
                    }
                }
                continue;
            }
            let before = run.scanned;
            let mut scan = source.table.scan_locking(self.txn(), source.index, &range, direction, mode, policy);
            if !source.ordered {
                scan = scan.in_any_order();
            }
            while !run.stopped {
                let Some(found) = scan.next(self.txn()).await? else { break };
                let wanted = self.push_found(source, run, &found, destination)?;
                if !wanted && unlocks {
                    source.table.unlock(self.txn(), &found);
                }
                if let Destination::Sink(sink) = destination
                    && sink.wants_flush()
                {
                    sink.flush().await?;
                    run.skip();
                }
            }
            run.lap(SCAN);
            self.note_scanned(source, &range, run.scanned - before, !run.stopped);
        }
        Ok(true)
    }

    /// A row found by its key, or locked, through the stages, if it satisfies what the index left to be checked: whether it does.
    fn push_found(&mut self, source: &TableSource, run: &mut Run<'_>, found: &Row, destination: &mut Destination<'_>) -> Result<bool, MySqlError> {
        run.scanned += 1;
        let mut row: Vec<Value> = source.columns.iter().map(|&c| if c == ROW_KEY { Value::Bytes(found.key().to_vec()) } else { found.value(c) }).collect();
        for &t in &source.timestamps {
            to_session(&mut row[t], &self.state.config.time_zone);
        }
        run.lap_row(SCAN);
        if let Some(residual) = &source.residual {
            let wanted = expr::eval_condition(residual, &row, &mut self.state)?;
            check_killed(wanted, &self.state)?;
            run.lap(FILTER);
            if !wanted {
                return Ok(false);
            }
            run.lap_row(FILTER);
        }
        self.push(run, row, destination)?;
        Ok(true)
    }

    /// What a blocking stage makes of the rows it held.
    fn release(&mut self, held: Held<'_>) -> Result<Vec<Vec<Value>>, MySqlError> {
        Ok(match held {
            Held::Sort(keys, mut rows) => {
                self.state.with_cast(|cx| rows.sort_by(|a, b| compare_keys(&a.0, &b.0, keys, cx)));
                rows.into_iter().map(|(_, row)| row).collect()
            }
            Held::Aggregate(accumulators) => vec![accumulators.into_iter().map(|a| a.finish(&mut self.state)).collect()],
            Held::Groups(groups) => groups.finish(&mut self.state),
            Held::Nothing => Vec::new(),
        })
    }

    /// The stages from `first` on, after the first blocking one, over rows in memory.
    async fn finish_stages(&mut self, mut rows: Vec<Vec<Value>>, query: &FastQuery, first: usize, meter: &mut Option<Meter>) -> Result<Vec<Vec<Value>>, MySqlError> {
        // Without a table there is no transaction, and a row or so.
        let many = !matches!(query.source, Source::Rows(_));
        for (at, stage) in query.stages.iter().enumerate().skip(first) {
            if !stage.blocks() {
                let mut steps = self.steps(&query.stages[at..=at])?;
                let mut kept = Vec::with_capacity(rows.len());
                for mut row in rows {
                    if many {
                        self.txn().breathe(1).await?;
                    }
                    match steps[0].apply(&mut row, &mut self.state)? {
                        Flow::Pass => kept.push(row),
                        Flow::Drop => {}
                        Flow::Stop => break,
                    }
                }
                rows = kept;
                note_stage(meter, at, rows.len());
                continue;
            }
            let mut held = Held::new(stage);
            for row in rows {
                held.take(row, &mut self.state)?;
            }
            rows = self.release(held)?;
            note_stage(meter, at, rows.len());
            self.note_sorted(&query.stages[at..], rows.len(), false)?;
        }
        Ok(rows)
    }
}

impl TableSource {
    /// Fills some fields of a row from the one of a batch.
    fn decode(&self, fields: &[usize], batch: &RowBatch, at: usize, zone: &TimeZone, row: &mut [Value]) {
        for &field in fields {
            let column = self.columns[field];
            row[field] = if column == ROW_KEY { Value::Bytes(batch.key(at).to_vec()) } else { batch.value(at, column) };
            if self.timestamps.contains(&field) {
                to_session(&mut row[field], zone);
            }
        }
    }
}

/// A stage has made all its rows.
fn note_stage(meter: &mut Option<Meter>, stage: usize, rows: usize) {
    if let Some(meter) = meter {
        let node = meter.stage(stage);
        meter.lap(node);
        meter.rows(node, rows as u64);
    }
}
