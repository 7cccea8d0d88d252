//! INSERT and REPLACE.

use std::sync::Arc;
use std::time::Instant;

use highkey_table::{
    AutoIncrementLock, BulkInsert, DuplicateRow, EncodedRows, InsertReport, OnDuplicate, PreparedRows, Table, Transaction, TriggerEvent, TriggerTime, explicit_value,
};
use highkey_types::{MySqlError, TypeKind, Value};

use super::auto_values::AutoValues;
use super::late::Late;
use super::query::{BoundTables, Destination};
use super::subqueries::has_correlated_subquery;
use super::target::{Target, given_null, implicit_default};
use super::{Failure, Outcome, lists};
use crate::bind::{self, AssignedValue, BoundInsert, BoundSource, RowValue};
use crate::expr;
use crate::measure::{Actual, Figures, Line};
use crate::parse::ast;
use crate::plan::{BoundQuery, Expr};
use crate::session::{AutoIncrementLocking, Executor, Session, SessionState, StatusCounter, error};

/// Bytes of encoded rows that are sorted at a time.
pub(crate) const BULK_CHUNK_BYTES: usize = 4 << 20;
/// Bytes of rows and index entries that a bulk insert keeps in memory before they go to a temporary file.
pub(crate) const BULK_MEMORY: usize = 256 << 20;
/// Rows that go to the table at once.
pub(crate) const BATCH_ROWS: usize = 1024;

/// An INSERT (or REPLACE, or LOAD DATA) under way: what is known for all its rows, and what it did so far.
pub(crate) struct Inserter {
    pub target: Target,
    pub ignore: bool,
    pub mode: OnDuplicate,
    /// Columns that the rows give, in their order.
    columns: Vec<usize>,
    /// Columns that they do not, with literal defaults left out: those are in the template.
    missing: Vec<usize>,
    template: Vec<Value>,
    on_duplicate: Vec<(usize, AssignedValue)>,
    /// VALUES with one row: it has no lenient form of NULL, error 1048 in any mode but IGNORE.
    single_row: bool,
    /// Columns of which a warning has said that they cannot be NULL: MySQL says it once per statement.
    null_told: Vec<bool>,
    /// Of the rows that are about to be written: what the query gave beyond their columns, for ON DUPLICATE KEY UPDATE. Empty if it gives no more.
    pub(super) beside: Vec<Vec<Value>>,
    auto: Option<AutoValues>,
    /// INSERT ... SELECT or LOAD DATA: nobody knows how many rows they are.
    pub open_ended: bool,
    /// Held to the end of the statement.
    auto_lock: Option<AutoIncrementLock>,
    /// The row that there is no number for, by its place among those that go to the table at once. The rows before it are written first.
    unnumbered: Option<(usize, MySqlError)>,
    /// Rows so far, the first is 1: "at row N".
    pub row: u64,
    pub inserted: u64,
    pub replaced: u64,
    pub ignored: u64,
    pub updated: u64,
    pub unchanged: u64,
    /// Rows go to the table one by one, for triggers run with each.
    pub by_row: bool,
    /// BEFORE triggers see them first.
    pub before: bool,
    /// Columns of which a warning has said that they have no default: with BEFORE triggers it is asked behind them.
    default_told: Vec<bool>,
    /// With `by_row`: rows of VALUES from the present one on, which get numbers that follow each other; 0 for other rows.
    pub(super) to_come: u64,
    /// With `by_row`: the row that has been written last, with its number.
    pub(super) written: Option<Vec<Value>>,
    /// Where rows go in bulk, and those on the way there.
    bulk: Option<(BulkInsert, EncodedRows)>,
    /// The first generated value of a row that went in.
    first_generated: Option<u64>,
    /// The last explicit value of the AUTO_INCREMENT column, for the OK packet only.
    last_explicit: u64,
}

impl Inserter {
    pub fn new(state: &mut SessionState, table: &Arc<Table>, columns: &[usize], ignore: bool, mode: OnDuplicate) -> Result<Inserter, MySqlError> {
        let target = Target::new(table, state)?;
        let def = table.def();
        let before = def.triggers_for(TriggerEvent::Insert, TriggerTime::Before).next().is_some();
        let by_row = def.has_triggers(TriggerEvent::Insert)
            || (mode == OnDuplicate::Replace && def.has_triggers(TriggerEvent::Delete))
            || (mode == OnDuplicate::Report && def.has_triggers(TriggerEvent::Update));
        let mut template = Vec::with_capacity(target.columns().len());
        let mut missing = Vec::new();
        for (i, column) in target.columns().iter().enumerate() {
            let given = columns.contains(&i);
            match &column.default {
                highkey_table::Default::Literal(value) => template.push(value.clone()),
                highkey_table::Default::CurrentTimestamp(fsp) => {
                    let now = target.now(state, i, *fsp, ignore, 1)?;
                    template.push(now);
                }
                highkey_table::Default::None if column.nullable || column.auto_increment || column.generated.is_some() => template.push(Value::Null),
                // What MySQL's expressions see in a column not assigned yet.
                highkey_table::Default::None | highkey_table::Default::Dropped => {
                    template.push(if column.nullable || before { Value::Null } else { implicit_default(&column.ty) });
                    if !given {
                        missing.push(i);
                    }
                }
                highkey_table::Default::Expr(_) => {
                    template.push(Value::Null);
                    if !given {
                        missing.push(i);
                    }
                }
            }
        }
        let auto = AutoValues::of(table, state);
        if let Some(auto) = &auto
            && !columns.contains(&auto.column)
        {
            template[auto.column] = Value::Null;
        }
        Ok(Inserter {
            target,
            ignore,
            mode,
            columns: columns.to_vec(),
            missing,
            template,
            on_duplicate: Vec::new(),
            single_row: false,
            null_told: vec![false; table.columns().len()],
            beside: Vec::new(),
            auto,
            open_ended: false,
            auto_lock: None,
            unnumbered: None,
            row: 0,
            inserted: 0,
            replaced: 0,
            ignored: 0,
            updated: 0,
            unchanged: 0,
            by_row,
            before,
            default_told: vec![false; if before { table.columns().len() } else { 0 }],
            to_come: 0,
            written: None,
            bulk: None,
            first_generated: None,
            last_explicit: 0,
        })
    }

    /// The stored value of each column that rows do not give. None if rows are not made of given values and constants alone.
    pub fn constants(&self) -> Option<Vec<Option<Value>>> {
        if !self.missing.is_empty() || self.target.computes() {
            return None;
        }
        Some(self.template.iter().enumerate().map(|(i, v)| (!self.columns.contains(&i)).then(|| v.clone())).collect())
    }

    /// A row at its defaults, into a buffer.
    pub fn start_row(&mut self, row: &mut Vec<Value>) {
        self.row += 1;
        row.clone_from(&self.template);
    }

    /// Puts a value into a column, converted.
    pub fn assign(&mut self, state: &mut SessionState, row: &mut [Value], column: usize, value: Value) -> Result<(), MySqlError> {
        row[column] = self.target.store(state, column, value, self.ignore, self.row)?;
        if !self.before && self.auto.as_ref().map(|auto| auto.column) != Some(column) && self.target.columns()[column].generated.is_none() {
            self.check_null(state, column, &mut row[column])?;
        }
        Ok(())
    }

    fn is_lenient(&self, state: &SessionState) -> bool {
        self.ignore || (!state.strict() && !self.single_row)
    }

    fn check_null(&mut self, state: &mut SessionState, column: usize, value: &mut Value) -> Result<(), MySqlError> {
        let lenient = self.is_lenient(state);
        check_null(&self.target, state, column, value, lenient, &mut self.null_told)
    }

    /// What follows the assignments: missing defaults, generated columns, NOT NULL, CHECK. False: the row is left out (IGNORE).
    pub fn finish_row(&mut self, state: &mut SessionState, row: &mut [Value]) -> Result<bool, MySqlError> {
        for i in 0..self.missing.len() {
            let column = self.missing[i];
            // That a column has no default is said of the first row alone; the template has what the others get.
            if self.row > 1 && !matches!(self.target.columns()[column].default, highkey_table::Default::Expr(_)) {
                continue;
            }
            row[column] = self.target.default(state, column, row, self.ignore, self.row)?;
        }
        let auto = self.auto.as_ref().map(|a| a.column);
        for i in 0..self.columns.len() {
            let column = self.columns[i];
            if Some(column) != auto && row[column].is_null() && self.target.columns()[column].generated.is_none() {
                self.check_null(state, column, &mut row[column])?;
            }
        }
        self.target.generate(state, row, self.ignore, self.row)?;
        for i in 0..row.len() {
            if self.target.columns()[i].generated.is_some() {
                self.check_null(state, i, &mut row[i])?;
            }
        }
        let fits = self.target.check_constraints(state, row, self.ignore)?;
        if !fits {
            self.ignored += 1;
        }
        Ok(fits)
    }

    /// What BEFORE triggers see of a row besides the assignments: defaults that are computed, generated columns.
    pub(super) fn show_row(&mut self, state: &mut SessionState, row: &mut [Value]) -> Result<(), MySqlError> {
        for i in 0..self.missing.len() {
            let column = self.missing[i];
            if matches!(self.target.columns()[column].default, highkey_table::Default::Expr(_)) {
                row[column] = self.target.default(state, column, row, self.ignore, self.row)?;
            }
        }
        self.target.generate(state, row, self.ignore, self.row)
    }

    /// As `finish_row`, of a row that BEFORE triggers have seen: it has what they have made of it.
    pub(super) fn finish_shown_row(&mut self, state: &mut SessionState, row: &mut [Value]) -> Result<bool, MySqlError> {
        let auto = self.auto.as_ref().map(|a| a.column);
        for column in 0..row.len() {
            let is_later = Some(column) == auto || self.missing.contains(&column) || self.target.columns()[column].generated.is_some();
            if !is_later {
                self.check_null(state, column, &mut row[column])?;
            }
        }
        for i in 0..self.missing.len() {
            let column = self.missing[i];
            let def = &self.target.columns()[column];
            if !row[column].is_null() || matches!(def.default, highkey_table::Default::Expr(_)) {
                continue;
            }
            // That a column has no default is said once.
            row[column] = match std::mem::replace(&mut self.default_told[column], true) {
                true if def.nullable => Value::Null,
                true => implicit_default(&def.ty),
                false => self.target.default(state, column, row, self.ignore, self.row)?,
            };
        }
        self.target.generate(state, row, self.ignore, self.row)?;
        for column in (0..row.len()).filter(|column| Some(*column) != auto) {
            self.check_null(state, column, &mut row[column])?;
        }
        let fits = self.target.check_constraints(state, row, self.ignore)?;
        if !fits {
            self.ignored += 1;
        }
        Ok(fits)
    }

    /// Gives the rows that ask for one an AUTO_INCREMENT value. `exact`: the statement is known to have no more rows than it has reserved values for, and these.
    /// Returns (position, value) of the generated ones. Where there is none left for one that is not the first: `unnumbered`, but for INSERT in bulk.
    pub(super) fn number(&mut self, state: &mut SessionState, rows: &mut [Vec<Value>], exact: bool) -> Result<Vec<(usize, u64)>, MySqlError> {
        let Some(auto) = &mut self.auto else { return Ok(Vec::new()) };
        let column = auto.column;
        let wants = |value: &Value| match value {
            Value::Null => true,
            _ if auto.zero_is_value => false,
            Value::Int(0) | Value::UInt(0) => true,
            Value::Float(f) => *f == 0.0,
            Value::Double(d) => *d == 0.0,
            _ => false,
        };
        let mut needed = rows.iter().filter(|row| wants(&row[column])).count() as u64;
        let batch = rows.len() as u64;
        let mut generated: Vec<(usize, u64)> = Vec::with_capacity(needed as usize);
        let def = &self.target.columns()[column];
        let zero_is_value = auto.zero_is_value;
        let mut explicit = 0;
        for (i, row) in rows.iter_mut().enumerate() {
            let value = &mut row[column];
            let wanted = match value {
                Value::Null => true,
                Value::Int(0) | Value::UInt(0) => !zero_is_value,
                Value::Float(f) if *f == 0.0 => !zero_is_value,
                Value::Double(d) if *d == 0.0 => !zero_is_value,
                _ => false,
            };
            if !wanted {
                self.last_explicit = match value {
                    Value::Int(n) => *n as u64,
                    Value::UInt(n) => *n,
                    _ => self.last_explicit,
                };
                if let Some(given) = explicit_value(value) {
                    explicit = explicit.max(given);
                    auto.pass(given);
                }
                continue;
            }
            if auto.left == 0 && explicit > 0 {
                // The rows before this are not in the table yet.
                self.target.table.auto_increment().note_explicit(explicit)?;
            }
            let mut count = needed.max(self.to_come);
            if auto.left == 0 && !exact && auto.spares {
                count = needed.max(auto.block);
                auto.block = (count * 2).min(65_536);
            }
            let row = (self.row + 1 + i as u64).saturating_sub(batch);
            let n = match auto.take(state, &self.target.table, count, self.ignore, row) {
                Ok(n) => n,
                Err(e) if i > 0 && (self.bulk.is_none() || self.mode == OnDuplicate::Replace) => {
                    self.unnumbered = Some((i, e));
                    break;
                }
                Err(e) => {
                    // MySQL has written the rows before it.
                    if let Some(first) = self.first_generated.or_else(|| generated.first().map(|(_, n)| *n)) {
                        state.last_insert_id = first;
                    }
                    return Err(e);
                }
            };
            needed -= 1;
            *value = match def.ty.kind {
                TypeKind::Float => Value::Float(n as f32),
                TypeKind::Double => Value::Double(n as f64),
                _ if def.ty.unsigned => Value::UInt(n),
                _ => Value::Int(n as i64),
            };
            generated.push((i, n));
        }
        if explicit > 0 {
            // In bulk they come to the table later than the next rows come here.
            self.target.table.auto_increment().note_explicit(explicit)?;
        }
        Ok(generated)
    }

    /// REPLACE takes the place of any row, but not with a generated number: the last one that there is may be a row's already, and these rows go in by themselves.
    fn leaves_bulk(&self, generated: &[(usize, u64)]) -> bool {
        let has_last = self.auto.as_ref().is_some_and(|auto| generated.iter().any(|(_, number)| auto.is_last(*number)));
        self.bulk.is_some() && self.mode == OnDuplicate::Replace && (has_last || self.unnumbered.is_some())
    }

    /// Rows that `number` has not seen bring numbers themselves, `greatest` at most, and come to the table later than the next rows come here.
    pub(super) fn pass(&mut self, greatest: Option<u64>) -> Result<(), MySqlError> {
        let (Some(auto), Some(greatest)) = (&mut self.auto, greatest) else { return Ok(()) };
        auto.pass(greatest);
        self.target.table.auto_increment().note_explicit(greatest)
    }

    /// `pass`, of rows whose last one brings `last`, which the OK packet tells.
    pub(super) fn pass_until(&mut self, greatest: Option<u64>, last: u64) -> Result<(), MySqlError> {
        self.last_explicit = last;
        self.pass(greatest)
    }

    /// The column that gets a generated value in each row, if rows do not give it and it is an integer.
    pub fn generated_column(&self) -> Option<usize> {
        let column = self.auto.as_ref()?.column;
        (!self.columns.contains(&column) && self.target.columns()[column].ty.is_integer()).then_some(column)
    }

    /// The columns that rows give, in their order.
    pub(super) fn given_columns(&self) -> &[usize] {
        &self.columns
    }

    /// LAST_INSERT_ID() depends on which rows go in.
    pub fn tells_first_inserted(&self) -> bool {
        self.ignore && self.auto.is_some()
    }

    /// The next generated value of a statement whose size is not known.
    pub fn next_number(&mut self, state: &mut SessionState) -> Result<u64, MySqlError> {
        let auto = self.auto.as_mut().ok_or_else(|| error::internal("no AUTO_INCREMENT column"))?;
        let count = auto.block;
        if auto.left == 0 && auto.spares {
            auto.block = (auto.block * 2).min(65_536);
        }
        let n = match auto.take(state, &self.target.table, count, self.ignore, self.row + 1) {
            Ok(n) => n,
            Err(e) => return Err(self.failed(state, e)),
        };
        self.first_generated.get_or_insert(n);
        Ok(n)
    }

    /// The statement fails in this error. MySQL has written the rows before, and LAST_INSERT_ID() tells of them.
    pub(super) fn failed(&self, state: &mut SessionState, error: MySqlError) -> MySqlError {
        if let Some(first) = self.first_generated {
            state.last_insert_id = first;
        }
        error
    }

    fn count(&self, state: &mut SessionState) {
        use StatusCounter as C;
        // Each row that was in the way was looked up.
        state.work.read_key += self.updated + self.unchanged + self.replaced;
        let rows = [
            (C::HandlerWrite, self.row),
            (C::HandlerUpdate, self.updated),
            (C::HandlerDelete, self.replaced),
            (C::InnodbRowsInserted, self.inserted),
            (C::InnodbRowsUpdated, self.updated),
            (C::InnodbRowsDeleted, self.replaced),
        ];
        rows.into_iter().filter(|(_, n)| *n > 0).for_each(|(counter, n)| state.count(counter, n));
    }

    /// Of the rows that go to the table at once those from here on ask for their numbers again, and get the same ones: that of a row that was left
    /// out or updated instead goes to the next, as in MySQL.
    fn take_back(&mut self, generated: &[(usize, u64)], from: usize, rows: &mut [Vec<Value>]) {
        let Some(auto) = &mut self.auto else { return };
        let taken = &generated[generated.partition_point(|(row, _)| *row < from)..];
        let Some((_, number)) = taken.first() else { return };
        auto.take_back(*number);
        for (row, _) in taken {
            // A row whose place is empty has been updated.
            if let Some(value) = rows[*row].get_mut(auto.column) {
                *value = Value::Null;
            }
        }
    }

    /// ON DUPLICATE KEY UPDATE has given a row this number: if it is one of those that were reserved, the next ones are above it.
    fn step_over(&mut self, number: Option<u64>) {
        if let (Some(auto), Some(number)) = (&mut self.auto, number)
            && auto.has(number)
        {
            auto.pass(number);
        }
    }

    pub(super) fn note_generated(&mut self, generated: &[(usize, u64)], left_out: impl Fn(usize) -> bool) {
        if self.first_generated.is_none() {
            self.first_generated = generated.iter().find(|(row, _)| !left_out(*row)).map(|(_, n)| *n);
        }
    }

    /// What the OK packet says; the rows are counted.
    pub fn outcome(&self, state: &mut SessionState, info: bool) -> Outcome {
        self.count(state);
        if let Some(first) = self.first_generated {
            state.last_insert_id = first;
        }
        let id = match (self.first_generated, state.explicit_insert_id) {
            (Some(first), _) => first,
            (None, Some(explicit)) => explicit,
            (None, None) if self.inserted + self.updated > 0 => self.last_explicit,
            _ => 0,
        };
        let found = if state.client.flags.found_rows { self.unchanged } else { 0 };
        let affected = self.inserted + self.replaced + 2 * self.updated + found;
        let duplicates = if self.ignore { self.row.saturating_sub(self.inserted + self.updated) } else { self.replaced + self.updated };
        let info = if info { format!("Records: {}  Duplicates: {duplicates}  Warnings: {}", self.row, state.diagnostics.count()) } else { String::new() };
        Outcome::Done { affected, last_insert_id: id, info }
    }
}

impl Session {
    pub(crate) async fn insert(&mut self, ast: &ast::Insert) -> Result<Outcome, Failure> {
        let bound = self.bind_and_open(|state| bind::bind_insert(ast, state), insert_tables).await?;
        self.run_insert(&bound).await
    }

    /// Runs a bound INSERT whose tables are open.
    pub(crate) async fn run_insert(&mut self, bound: &BoundInsert) -> Result<Outcome, Failure> {
        self.begin_write(bound.table.is_temporary())?;
        self.prepare_cascades(&bound.table);
        self.note_hints(&bound.hints);
        self.state.begin_changes(bound.ignore);
        let mode = match (bound.replace, bound.on_duplicate.is_empty(), bound.ignore) {
            (true, ..) => OnDuplicate::Replace,
            (_, false, _) => OnDuplicate::Report,
            (_, _, true) => OnDuplicate::Ignore,
            _ => OnDuplicate::Error,
        };
        let mut inserter = Inserter::new(&mut self.state, &bound.table, &bound.columns, bound.ignore, mode)?;
        inserter.target.check = bound.check.clone();
        inserter.target.triggers = self.table_triggers(&bound.table);
        self.note_triggers([&bound.table], || insert_tables(bound));
        if !bound.on_duplicate.is_empty() {
            inserter.on_duplicate = bound.on_duplicate.clone();
            for (column, value) in &inserter.on_duplicate {
                inserter.target.check_generated(*column, value)?;
            }
            if inserter.on_duplicate.iter().any(|(_, v)| matches!(v, AssignedValue::Expr(e) if e.has_subquery())) {
                let mut assigned = std::mem::take(&mut inserter.on_duplicate);
                Box::pin(self.resolve_all(assigned.iter_mut().filter_map(|(_, v)| v.expr_mut()).collect())).await?;
                if assigned.iter().filter_map(|(_, v)| v.expr()).any(has_correlated_subquery) {
                    return Err(error::not_supported("correlated subqueries in ON DUPLICATE KEY UPDATE").into());
                }
                inserter.on_duplicate = assigned;
            }
        }
        let info = match &bound.source {
            BoundSource::Rows(rows) => {
                if rows.iter().flatten().filter_map(RowValue::expr).any(Expr::has_subquery) {
                    let mut rows = rows.clone();
                    for row in &mut rows {
                        Box::pin(self.resolve_all(row.iter_mut().filter_map(RowValue::expr_mut).collect())).await?;
                        if row.iter().filter_map(RowValue::expr).any(has_correlated_subquery) {
                            return Err(error::not_supported("subqueries over the row in VALUES").into());
                        }
                    }
                    self.insert_values(&mut inserter, &rows).await?;
                } else {
                    self.insert_values(&mut inserter, rows).await?;
                }
                rows.len() > 1
            }
            BoundSource::Query(query) => {
                for &column in &bound.columns {
                    if inserter.target.columns()[column].generated.is_some() {
                        let table = inserter.target.table.def();
                        return Err(error::generated_not_allowed(&table.columns[column].name, &table.name).into());
                    }
                }
                inserter.open_ended = true;
                Box::pin(self.insert_rows_of(&mut inserter, query, &bound.columns)).await?;
                true
            }
        };
        self.state.check_strict()?;
        Ok(inserter.outcome(&mut self.state, info))
    }

    async fn insert_values(&mut self, inserter: &mut Inserter, rows: &[Vec<RowValue>]) -> Result<(), Failure> {
        inserter.single_row = rows.len() == 1;
        if inserter.by_row {
            return Box::pin(self.insert_values_by_row(inserter, rows)).await;
        }
        let mut built = Vec::with_capacity(rows.len());
        let made = rows.iter().try_for_each(|values| self.make_row(inserter, values, &mut built));
        // MySQL has written the rows before one that cannot be made, and one of them may be why the statement fails.
        self.write_rows(inserter, &mut built, true).await?;
        made.map_err(|e| inserter.failed(&mut self.state, e).into())
    }

    /// One row of VALUES, behind those before it unless it is left out.
    fn make_row(&mut self, inserter: &mut Inserter, values: &[RowValue], built: &mut Vec<Vec<Value>>) -> Result<(), MySqlError> {
        let mut row = self.assigned_row(inserter, values)?;
        let fits = inserter.finish_row(&mut self.state, &mut row)?;
        self.state.check_strict()?;
        if fits {
            built.push(row);
        }
        Ok(())
    }

    /// A row with the values that VALUES gives it.
    pub(super) fn assigned_row(&mut self, inserter: &mut Inserter, values: &[RowValue]) -> Result<Vec<Value>, MySqlError> {
        let mut row = Vec::new();
        inserter.start_row(&mut row);
        for (i, value) in values.iter().enumerate() {
            let column = inserter.columns[i];
            let value = match value {
                RowValue::Literal(value) => value.clone(),
                RowValue::Assigned(assigned) => {
                    inserter.target.check_generated(column, assigned)?;
                    match assigned {
                        AssignedValue::Default => {
                            row[column] = inserter.target.default(&mut self.state, column, &row, inserter.ignore, inserter.row)?;
                            continue;
                        }
                        AssignedValue::Expr(expr) => match expr.as_literal() {
                            Some(value) => value.clone(),
                            None if inserter.target.timestamps.is_empty() => expr::eval(expr, &row, &mut self.state)?,
                            None => {
                                let seen = inserter.target.session_row(&row, &self.state.config.time_zone);
                                expr::eval(expr, &seen, &mut self.state)?
                            }
                        },
                    }
                }
            };
            inserter.assign(&mut self.state, &mut row, column, value)?;
        }
        Ok(row)
    }

    /// The rows of a query into `columns`, in the cheapest way.
    pub(crate) async fn insert_rows_of(&mut self, inserter: &mut Inserter, query: &BoundQuery, columns: &[usize]) -> Result<(), Failure> {
        let copy = match self.state.config.executor {
            Executor::DataFusion => None,
            _ if inserter.by_row => None,
            _ => super::insert_select::plain_copy(query, columns, &inserter.target),
        };
        match copy {
            Some(copy) => {
                let (began, read) = (self.profile.is_some().then(Instant::now), self.state.process.rows_examined());
                self.copy_rows(inserter, &copy, &query.hints).await?;
                if let (Some(profile), Some(began)) = (&self.profile, began) {
                    // Reading and writing alternate.
                    let (all, rows) = (began.elapsed(), self.state.process.rows_examined() - read);
                    let figures = Figures::Known(Actual { loops: 1, rows, first: all, all });
                    profile.set_query(vec![Line { figures, ..Line::new(0, format!("Copy of the rows of {}", copy.alias)) }]);
                }
                Ok(())
            }
            None => self.insert_query(inserter, query).await,
        }
    }

    /// Rows of any query. Its rows are in memory first if it reads the table that is written.
    async fn insert_query(&mut self, inserter: &mut Inserter, query: &BoundQuery) -> Result<(), Failure> {
        let query = &mut query.clone();
        self.share_reads(query);
        lists::cut_members_of_plan(&mut query.rel, &mut self.state);
        let late = Late::after_limit(&mut query.rel, &self.state);
        let reads_target = BoundTables::of(&query.rel).tables.iter().any(|(t, _)| t.id() == inserter.target.table.id());
        if !inserter.tells_first_inserted() && !inserter.by_row {
            self.begin_bulk(inserter)?;
        }
        let mut batch = Vec::with_capacity(BATCH_ROWS);
        let executor = self.state.config.executor;
        let fast = self.compile_fast(query)?.filter(|fast| executor == Executor::Fast || !fast.reads_large_table());
        let mut rows = Vec::new();
        // What triggers do comes between the rows, and needs the session.
        let in_memory = if reads_target || inserter.by_row {
            self.collect(query, fast.as_ref(), &mut Destination::Memory(&mut rows)).await?;
            true
        } else {
            self.try_fast(query, fast.as_ref(), &mut Destination::Memory(&mut rows)).await?.is_some()
        };
        self.state.check_strict()?;
        if in_memory {
            if inserter.by_row {
                return Box::pin(self.insert_query_by_row(inserter, late.as_ref(), rows)).await;
            }
            for values in rows {
                let made = self.outputs(late.as_ref(), values).and_then(|values| self.take_row(inserter, values, &mut batch));
                if let Err(e) = made {
                    return Err(self.fail_behind(inserter, &mut batch, e).await);
                }
                if batch.len() >= BATCH_ROWS {
                    self.write_rows(inserter, &mut batch, false).await?;
                }
            }
        } else {
            // Outputs that are computed here are the session's.
            let mut beside = late.is_none().then(|| self.query_rows(inserter, &query.hints));
            let mut stream = self.stream(query.clone(), true).await?;
            let mut is_taken = true;
            let outcome = loop {
                let rows = match stream.rows.next().await {
                    Ok(Some(rows)) => rows,
                    Ok(None) => break Ok(()),
                    Err(e) => break Err(Failure::Sql(e)),
                };
                if let Err(e) = stream.check_strict() {
                    break Err(Failure::Sql(e));
                }
                let written = async {
                    let rows = match &mut beside {
                        Some(beside) => Box::pin(self.take_query_rows(inserter, beside, &mut batch, rows)).await?,
                        None => Some(rows),
                    };
                    for values in rows.map_or_else(Vec::new, |rows| rows.to_vec()) {
                        let made = self.outputs(late.as_ref(), values).and_then(|values| self.take_row(inserter, values, &mut batch));
                        if let Err(e) = made {
                            return Err(self.fail_behind(inserter, &mut batch, e).await);
                        }
                        if batch.len() >= BATCH_ROWS {
                            self.write_rows(inserter, &mut batch, false).await?;
                        }
                    }
                    Ok::<(), Failure>(())
                };
                if let Err(e) = written.await {
                    is_taken = false;
                    break Err(e);
                }
            };
            // Whatever ended the query, the rows before come first: one of them may be why the statement fails.
            let rest = match &mut beside {
                Some(beside) if is_taken => Box::pin(self.take_last_query_rows(inserter, beside)).await,
                _ => Ok(()),
            };
            stream.finish_keeping_warnings(&mut self.state);
            if let Some(beside) = beside {
                beside.end().await;
            }
            rest?;
            outcome?;
            self.state.check_strict()?;
        }
        self.write_rows(inserter, &mut batch, false).await?;
        self.finish_bulk(inserter).await
    }

    /// A row that cannot be made ends the statement in this error, unless one of the rows before it, which MySQL has written, ends it in another.
    async fn fail_behind(&mut self, inserter: &mut Inserter, batch: &mut Vec<Vec<Value>>, error: MySqlError) -> Failure {
        let written = match Box::pin(self.write_rows(inserter, batch, false)).await {
            Ok(()) => Box::pin(self.finish_bulk(inserter)).await,
            failed => failed,
        };
        written.err().unwrap_or_else(|| inserter.failed(&mut self.state, error).into())
    }

    pub(super) fn outputs(&mut self, late: Option<&Late>, row: Vec<Value>) -> Result<Vec<Value>, MySqlError> {
        match late {
            Some(late) => late.row(&row, &mut self.state),
            None => Ok(row),
        }
    }

    /// One row of a query: values in the order of the target columns, and then those for ON DUPLICATE KEY UPDATE.
    pub(crate) fn take_row(&mut self, inserter: &mut Inserter, values: Vec<Value>, batch: &mut Vec<Vec<Value>>) -> Result<(), MySqlError> {
        let mut row = self.query_row(inserter, values)?;
        if inserter.finish_row(&mut self.state, &mut row)? {
            batch.push(row);
        } else {
            inserter.beside.pop();
        }
        Ok(())
    }

    /// A row with the values of a query's; those for ON DUPLICATE KEY UPDATE are beside it.
    pub(super) fn query_row(&mut self, inserter: &mut Inserter, mut values: Vec<Value>) -> Result<Vec<Value>, MySqlError> {
        let beside = values.split_off(inserter.columns.len());
        let mut row = Vec::new();
        inserter.start_row(&mut row);
        for (i, value) in values.into_iter().enumerate() {
            inserter.assign(&mut self.state, &mut row, inserter.columns[i], value)?;
        }
        if !beside.is_empty() {
            inserter.beside.push(beside);
        }
        Ok(row)
    }

    /// Writes finished rows; the batch is empty afterwards. `exact`: these are all rows of the statement.
    pub(crate) async fn write_rows(&mut self, inserter: &mut Inserter, rows: &mut Vec<Vec<Value>>, exact: bool) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        self.state.process.check()?;
        self.lock_auto_increment(inserter).await?;
        let mut generated = inserter.number(&mut self.state, rows, exact)?;
        let table = inserter.target.table.clone();
        let leaves_bulk = inserter.leaves_bulk(&generated);
        if leaves_bulk {
            Box::pin(self.finish_bulk(inserter)).await?;
        }
        if inserter.bulk.is_some() {
            inserter.note_generated(&generated, |_| false);
            for row in rows.drain(..) {
                if let Some((_, encoded)) = &mut inserter.bulk {
                    encoded.push_with(|out| table.layout().encode(&row, out));
                }
            }
            return Box::pin(self.flush_bulk(inserter, BULK_CHUNK_BYTES)).await;
        }
        // Which row did not go in is asked where a number depends on it: the next one's, or LAST_INSERT_ID() of a statement that fails.
        let mode = match inserter.mode {
            OnDuplicate::Error | OnDuplicate::Ignore if !generated.is_empty() => OnDuplicate::IgnoreOne,
            mode => mode,
        };
        // Those that go to the table at once: all, and behind one that did not go in one, two, four …, since it may not be the only one. `generated` and what
        // the table tells count from `start`; rows behind `end` have no numbers yet, and those behind `limit` get none.
        let (mut start, mut end, mut limit) = (0, rows.len(), rows.len());
        let mut failure = None;
        while start < limit {
            if let Some((at, error)) = inserter.unnumbered.take() {
                limit = start + at;
                end = limit;
                failure = Some(error);
            }
            let (txn, _) = self.txn_and_state();
            let report = match mode {
                OnDuplicate::Replace if !generated.is_empty() => replace_numbered(txn, &table, &rows[start..end], &generated).await?,
                mode => table.insert(txn, &rows[start..end], mode).await?,
            };
            inserter.inserted += report.inserted;
            inserter.replaced += report.replaced;
            inserter.ignored += report.ignored.len() as u64;
            // The row that did not go in, and the first whose number is free. One without parent keeps it if others are updated.
            let mut stop = match (&report.duplicate, &report.orphan) {
                (Some(duplicate), _) => Some((duplicate.row, duplicate.row)),
                (None, Some((row, _))) => Some((*row, *row + 1)),
                (None, None) if mode == OnDuplicate::IgnoreOne => report.ignored.last().map(|(row, _)| (*row, *row)),
                (None, None) => None,
            };
            inserter.note_generated(&generated, |row| stop.is_some_and(|(stop, _)| row >= stop));
            for (_, error) in report.ignored {
                if inserter.mode == OnDuplicate::Error {
                    return Err(inserter.failed(&mut self.state, error).into());
                }
                self.state.push_ignored(error);
            }
            if let Some((_, error)) = report.orphan {
                if !inserter.ignore {
                    return Err(inserter.failed(&mut self.state, error).into());
                }
                inserter.ignored += 1;
                self.state.push_ignored(error);
            }
            let mut assigned = None;
            if let Some(duplicate) = report.duplicate {
                let at = start + duplicate.row;
                let number = generated.binary_search_by_key(&duplicate.row, |(row, _)| *row).ok().map(|i| generated[i].1);
                let proposed = std::mem::take(&mut rows[at]);
                let beside = inserter.beside.get_mut(at).map(std::mem::take).unwrap_or_default();
                assigned = Box::pin(self.update_duplicate(inserter, duplicate, proposed, beside, number.map(|number| (number, exact)))).await?;
                // The row that was updated has it now.
                if let (Some((_, free)), Some(number)) = (&mut stop, number)
                    && assigned == Some(number)
                {
                    *free += 1;
                }
            }
            let next = match stop {
                Some((stop, free)) => {
                    inserter.take_back(&generated, free, &mut rows[start..]);
                    inserter.step_over(assigned);
                    start += stop + 1;
                    1
                }
                None => {
                    let written = end - start;
                    start = end;
                    written.saturating_mul(2)
                }
            };
            end = start.saturating_add(next).min(limit);
            if start < end {
                generated = inserter.number(&mut self.state, &mut rows[start..end], exact)?;
            }
        }
        if inserter.by_row {
            inserter.written = rows.pop();
        }
        rows.clear();
        inserter.beside.clear();
        if leaves_bulk {
            self.begin_bulk(inserter)?;
        }
        failure.map_or(Ok(()), |error| Err(inserter.failed(&mut self.state, error).into()))
    }

    /// Before the statement's first number: waits for the table's AUTO-INC lock, if it is one that takes it.
    pub(crate) async fn lock_auto_increment(&mut self, inserter: &mut Inserter) -> Result<(), MySqlError> {
        if inserter.auto.is_none() || inserter.auto_lock.is_some() {
            return Ok(());
        }
        let table = inserter.target.table.clone();
        let wanted = match self.state.instance.auto_increment_locking() {
            AutoIncrementLocking::Traditional => true,
            AutoIncrementLocking::Consecutive => inserter.open_ended || table.is_auto_increment_locked(),
            AutoIncrementLocking::Interleaved => false,
        };
        if wanted {
            inserter.auto_lock = Some(table.lock_auto_increment(self.txn()).await?);
        }
        Ok(())
    }

    /// From here on rows go to the table in bulk, until `finish_bulk`; not with ON DUPLICATE KEY UPDATE.
    pub(crate) fn begin_bulk(&mut self, inserter: &mut Inserter) -> Result<(), MySqlError> {
        if inserter.mode != OnDuplicate::Report {
            let threads = self.state.config.ddl_threads;
            let (txn, _) = self.txn_and_state();
            let mode = match inserter.mode {
                OnDuplicate::Replace if inserter.auto.as_ref().is_some_and(|auto| !inserter.columns.contains(&auto.column)) => OnDuplicate::ReplaceNumbered,
                mode => mode,
            };
            let mut bulk = inserter.target.table.bulk_insert(txn, mode, BULK_MEMORY)?;
            bulk.set_threads(threads);
            inserter.bulk = Some((bulk, EncodedRows::new()));
        }
        Ok(())
    }

    /// Adds an encoded row.
    pub(crate) fn push_encoded(&mut self, inserter: &mut Inserter, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some((_, encoded)) = &mut inserter.bulk {
            encoded.push_with(write);
        }
    }

    /// Adds rows that are sorted already.
    pub(crate) async fn add_prepared(&mut self, inserter: &mut Inserter, rows: PreparedRows) -> Result<(), Failure> {
        if let Some((bulk, _)) = &mut inserter.bulk {
            let (txn, _) = self.txn_and_state();
            bulk.add(txn, rows).await?;
        }
        Ok(())
    }

    /// Hands the encoded rows to the table once there are `least` bytes of them.
    pub(crate) async fn flush_bulk(&mut self, inserter: &mut Inserter, least: usize) -> Result<(), Failure> {
        let Some((mut bulk, rows)) = inserter.bulk.take() else { return Ok(()) };
        let rows = if rows.byte_len() >= least && !rows.is_empty() {
            self.state.process.check()?;
            let table = &inserter.target.table;
            let prepared = self.state.instance.database().engine().blocking(|| table.prepare_rows(rows));
            let (txn, _) = self.txn_and_state();
            bulk.add(txn, prepared).await?;
            EncodedRows::new()
        } else {
            rows
        };
        inserter.bulk = Some((bulk, rows));
        Ok(())
    }

    /// Puts what went in bulk into the table, and counts it.
    pub(crate) async fn finish_bulk(&mut self, inserter: &mut Inserter) -> Result<(), Failure> {
        self.flush_bulk(inserter, 0).await?;
        let Some((bulk, _)) = inserter.bulk.take() else { return Ok(()) };
        let (txn, _) = self.txn_and_state();
        let report = bulk.finish(txn).await?;
        inserter.inserted += report.inserted;
        inserter.replaced += report.replaced;
        inserter.ignored += report.ignored;
        report.ignored_errors.into_iter().for_each(|e| self.state.push_ignored(e));
        Ok(())
    }

    /// ON DUPLICATE KEY UPDATE for one row. `beside`: what the query gave beyond its columns. `number`: the AUTO_INCREMENT number that was generated for it, and
    /// whether all that the statement needs were reserved with it. Gives the number that the statement assigns to the row in the way, if it does.
    async fn update_duplicate(
        &mut self,
        inserter: &mut Inserter,
        duplicate: DuplicateRow,
        proposed: Vec<Value>,
        beside: Vec<Value>,
        number: Option<(u64, bool)>,
    ) -> Result<Option<u64>, Failure> {
        let lenient = inserter.is_lenient(&self.state);
        let target = &inserter.target;
        let zone = self.state.config.time_zone.clone();
        let stored = duplicate.existing.values();
        let width = stored.len();
        let mut seen = target.session_row(&stored, &zone);
        seen.extend(target.session_row(&proposed, &zone));
        seen.extend(beside);
        let mut new = stored.clone();
        for (column, value) in &inserter.on_duplicate {
            let column = *column;
            let mut value = match value {
                AssignedValue::Default => target.default(&mut self.state, column, &new, inserter.ignore, inserter.row)?,
                // To itself: no mode judges what is there.
                AssignedValue::Expr(expr) if expr.as_column() == Some(column) => new[column].clone(),
                AssignedValue::Expr(expr) => {
                    let value = expr::eval(expr, &seen, &mut self.state)?;
                    target.store(&mut self.state, column, value, inserter.ignore, inserter.row)?
                }
            };
            let def = &target.columns()[column];
            if def.auto_increment && value.is_null() {
                value = implicit_default(&def.ty);
            }
            if def.generated.is_none() && !target.runs_before(TriggerEvent::Update) {
                check_null(target, &mut self.state, column, &mut value, lenient, &mut inserter.null_told)?;
            }
            new[column] = value;
            seen[column] = new[column].clone();
            if target.timestamps.contains(&column) {
                super::target::to_session(&mut seen[column], &zone);
            }
        }
        debug_assert!(seen.len() >= 2 * width);
        let assigned: Vec<usize> = inserter.on_duplicate.iter().map(|(c, _)| *c).collect();
        let given = inserter.auto.as_ref().filter(|auto| assigned.contains(&auto.column)).and_then(|auto| explicit_value(&new[auto.column]));
        // As MySQL: it may be another row's of this statement.
        if let (Some(auto), Some(given), Some((number, true))) = (&inserter.auto, given, number)
            && given != number
            && auto.has(given)
        {
            let error = error::err(1869, "Auto-increment value in UPDATE conflicts with internally generated values");
            return Err(inserter.failed(&mut self.state, error).into());
        }
        let changed = self.write_update(&inserter.target, &duplicate.existing, &stored, new, &assigned, inserter.ignore, inserter.row).await?;
        match changed {
            super::update::Written::Changed(new) => {
                inserter.updated += 1;
                if let Some(auto) = &inserter.auto {
                    inserter.last_explicit = match new[auto.column] {
                        Value::Int(n) => n as u64,
                        Value::UInt(n) => n,
                        _ => 0,
                    };
                }
            }
            super::update::Written::Same => inserter.unchanged += 1,
            super::update::Written::Ignored => inserter.ignored += 1,
        }
        Ok(given)
    }
}

/// REPLACE of rows of which some have generated numbers: their positions, and the numbers.
async fn replace_numbered(txn: &mut Transaction, table: &Arc<Table>, rows: &[Vec<Value>], generated: &[(usize, u64)]) -> Result<InsertReport, MySqlError> {
    let is_numbered = |row: usize| generated.binary_search_by_key(&row, |(row, _)| *row).is_ok();
    let mut report = InsertReport::default();
    let mut start = 0;
    while start < rows.len() {
        let numbered = is_numbered(start);
        let end = (start + 1..rows.len()).find(|row| is_numbered(*row) != numbered).unwrap_or(rows.len());
        let mode = if numbered { OnDuplicate::ReplaceNumbered } else { OnDuplicate::Replace };
        let part = table.insert(txn, &rows[start..end], mode).await?;
        report.inserted += part.inserted;
        report.replaced += part.replaced;
        start = end;
    }
    Ok(report)
}

/// NULL in a NOT NULL column: error 1048, or the implicit default where MySQL is lenient. `told`: the columns of which the warning is there.
fn check_null(target: &Target, state: &mut SessionState, column: usize, value: &mut Value, lenient: bool, told: &mut [bool]) -> Result<(), MySqlError> {
    let def = &target.columns()[column];
    if !value.is_null() || def.nullable {
        return Ok(());
    }
    if lenient && std::mem::replace(&mut told[column], true) {
        *value = given_null(&def.ty);
        return Ok(());
    }
    target.check_null(state, column, value, lenient)
}

impl AssignedValue {
    /// Its expression, to change.
    pub(crate) fn expr_mut(&mut self) -> Option<&mut Expr> {
        match self {
            AssignedValue::Expr(expr) => Some(expr),
            AssignedValue::Default => None,
        }
    }

    /// Its expression.
    pub(crate) fn expr(&self) -> Option<&Expr> {
        match self {
            AssignedValue::Expr(expr) => Some(expr),
            AssignedValue::Default => None,
        }
    }
}

impl RowValue {
    /// Its expression, to change.
    fn expr_mut(&mut self) -> Option<&mut Expr> {
        match self {
            RowValue::Literal(_) => None,
            RowValue::Assigned(value) => value.expr_mut(),
        }
    }

    /// Its expression, unless it is a literal.
    pub(crate) fn expr(&self) -> Option<&Expr> {
        match self {
            RowValue::Literal(_) => None,
            RowValue::Assigned(value) => value.expr(),
        }
    }
}

/// The tables of a bound INSERT.
pub(crate) fn insert_tables(bound: &BoundInsert) -> BoundTables {
    let mut tables = BoundTables::one(&bound.table, &bound.views);
    match &bound.source {
        BoundSource::Rows(rows) => rows.iter().flatten().filter_map(RowValue::expr).for_each(|e| tables.collect_expr(e)),
        BoundSource::Query(query) => tables.collect(&query.rel),
    }
    bound.on_duplicate.iter().filter_map(|(_, v)| v.expr()).for_each(|e| tables.collect_expr(e));
    tables
}

/// Some value or assignment holds a subquery.
pub(crate) fn insert_has_subquery(bound: &BoundInsert) -> bool {
    let rows = match &bound.source {
        BoundSource::Rows(rows) => rows.iter().flatten().filter_map(RowValue::expr).any(Expr::has_subquery),
        BoundSource::Query(_) => true,
    };
    rows || bound.on_duplicate.iter().filter_map(|(_, v)| v.expr()).any(Expr::has_subquery)
}
