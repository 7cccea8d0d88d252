//! What an INSERT, REPLACE or LOAD DATA knows for all its rows: how each is made, and what became of those so far.

use std::sync::Arc;

use highkey_table::{AutoIncrementLock, BulkInsert, EncodedRows, OnDuplicate, RowUse, Table, TriggerEvent, TriggerTime, explicit_value};
use highkey_types::{MySqlError, Value};

use super::Outcome;
use super::auto_values::{AutoValues, number_value};
use super::target::{Target, given_null, implicit_default};
use crate::bind::AssignedValue;
use crate::session::{SessionState, StatusCounter, error};

/// Bytes of encoded rows that are sorted at a time.
pub(super) const BULK_CHUNK_BYTES: usize = 4 << 20;
/// Bytes of rows and index entries that a bulk insert keeps in memory before they go to a temporary file.
pub(super) const BULK_MEMORY: usize = 256 << 20;
/// Rows that go to the table at once.
pub(super) const BATCH_ROWS: usize = 1024;

/// An INSERT (or REPLACE, or LOAD DATA) under way: what is known for all its rows, and what it did so far.
pub(crate) struct Inserter {
    pub target: Target,
    pub ignore: bool,
    pub mode: OnDuplicate,
    /// Columns that the rows give, in their order.
    pub(super) columns: Vec<usize>,
    /// Columns that they do not, with literal defaults left out: those are in the template.
    missing: Vec<usize>,
    template: Vec<Value>,
    pub(super) on_duplicate: Vec<(usize, AssignedValue)>,
    /// VALUES with one row: it has no lenient form of NULL, error 1048 in any mode but IGNORE.
    pub(super) single_row: bool,
    /// Columns of which a warning has said that they cannot be NULL: MySQL says it once per statement.
    pub(super) null_told: Vec<bool>,
    /// Of the rows that are about to be written: what the query gave beyond their columns, for ON DUPLICATE KEY UPDATE. Empty if it gives no more.
    pub(super) beside: Vec<Vec<Value>>,
    pub(super) auto: Option<AutoValues>,
    /// INSERT ... SELECT or LOAD DATA: nobody knows how many rows they are.
    pub open_ended: bool,
    /// Held to the end of the statement.
    pub(super) auto_lock: Option<AutoIncrementLock>,
    /// The row that there is no number for, by its place among those that go to the table at once. The rows before it are written first.
    pub(super) unnumbered: Option<(usize, MySqlError)>,
    /// Rows so far, the first is 1: "at row N".
    pub row: u64,
    pub inserted: u64,
    pub replaced: u64,
    pub ignored: u64,
    pub updated: u64,
    pub unchanged: u64,
    /// Rows go to the table one by one, for triggers or functions that the session runs come with each.
    pub by_row: bool,
    /// The statement is a part of another, and what it wrote stays if it fails (`session/nested.rs`): its rows go in in their order, up to the one that cannot.
    pub in_order: bool,
    /// BEFORE triggers see them first.
    pub before: bool,
    /// Columns of which a warning has said that they have no default: with BEFORE triggers it is asked behind them.
    default_told: Vec<bool>,
    /// With `by_row`: rows of VALUES from the present one on, which get numbers that follow each other; 0 for other rows.
    pub(super) to_come: u64,
    /// With `by_row`: the row that has been written last, with its number.
    pub(super) written: Option<Vec<Value>>,
    /// Where rows go in bulk, and those on the way there.
    pub(super) bulk: Option<(BulkInsert, EncodedRows)>,
    /// The first generated value of a row that went in.
    first_generated: Option<u64>,
    /// The last explicit value of the AUTO_INCREMENT column, for the OK packet only.
    pub(super) last_explicit: u64,
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
            in_order: false,
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

    pub(super) fn is_lenient(&self, state: &SessionState) -> bool {
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
        let mut needed = rows.iter().filter(|row| auto.is_asked(&row[column])).count() as u64;
        let batch = rows.len() as u64;
        let mut generated: Vec<(usize, u64)> = Vec::with_capacity(needed as usize);
        let def = &self.target.columns()[column];
        let mut explicit = 0;
        for (i, row) in rows.iter_mut().enumerate() {
            let value = &mut row[column];
            if !auto.is_asked(value) {
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
            *value = number_value(n, &def.ty);
            generated.push((i, n));
        }
        if explicit > 0 {
            // In bulk they come to the table later than the next rows come here.
            self.target.table.auto_increment().note_explicit(explicit)?;
        }
        Ok(generated)
    }

    /// What is reserved is enough for those of the rows that ask for a number.
    pub(super) fn has_numbers(&self, rows: &[Vec<Value>]) -> bool {
        let Some(auto) = &self.auto else { return true };
        let asking = rows.iter().filter(|row| auto.is_asked(&row[auto.column])).count();
        // One that brings its own may pass some.
        asking == 0 || asking == rows.len() && auto.has_left(asking as u64)
    }

    /// Bytes of encoded rows that wait to be handed to the table.
    pub(super) fn bulk_bytes(&self) -> usize {
        self.bulk.as_ref().map_or(0, |(_, rows)| rows.byte_len())
    }

    /// Rows go to the table in bulk.
    pub fn is_in_bulk(&self) -> bool {
        self.bulk.is_some()
    }

    /// REPLACE of rows of which some bring their numbers, and this one is to be given one: it may be the last that there is (`leaves_bulk`).
    pub fn may_take_last(&self, row: &[Value]) -> bool {
        let asks = |auto: &AutoValues| self.columns.contains(&auto.column) && auto.is_asked(&row[auto.column]);
        self.mode == OnDuplicate::Replace && self.auto.as_ref().is_some_and(asks)
    }

    /// REPLACE takes the place of any row, but not with a generated number: the last one that there is may be a row's already, and these rows go in by themselves.
    pub(super) fn leaves_bulk(&self, generated: &[(usize, u64)]) -> bool {
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
        // A row that has taken the place of another was tried twice.
        let uses = [(RowUse::Insert, self.row + self.replaced), (RowUse::Update, self.updated), (RowUse::Delete, self.replaced)];
        uses.into_iter().for_each(|(what, n)| self.target.table.count_use(None, what, n));
    }

    /// Of the rows that go to the table at once those from here on ask for their numbers again, and get the same ones: that of a row that was left
    /// out or updated instead goes to the next, as in MySQL.
    pub(super) fn take_back(&mut self, generated: &[(usize, u64)], from: usize, rows: &mut [Vec<Value>]) {
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
    pub(super) fn step_over(&mut self, number: Option<u64>) {
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

/// NULL in a NOT NULL column: error 1048, or the implicit default where MySQL is lenient. `told`: the columns of which the warning is there.
pub(super) fn check_null(target: &Target, state: &mut SessionState, column: usize, value: &mut Value, lenient: bool, told: &mut [bool]) -> Result<(), MySqlError> {
    let def = &target.columns()[column];
    if !value.is_null() || def.nullable {
        return Ok(());
    }
    if lenient && !target.takes_null_for_now(state, column) && std::mem::replace(&mut told[column], true) {
        *value = given_null(&def.ty);
        return Ok(());
    }
    target.check_null(state, column, value, lenient)
}
