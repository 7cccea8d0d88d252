//! UPDATE of one table and of several.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use highkey_table::{LockMode, LockWaitPolicy, Row, RowUse, Stage, Table, TriggerEvent};
use highkey_types::{MySqlError, TimeZone, Value};

use super::cascade::rows_at_once;
use super::late::Late;
use super::query::BoundTables;
use super::subqueries::{lift_subqueries, query_of};
use super::target::{Target, to_session};
use super::{Failure, Outcome, lists};
use crate::bind::{self, AssignedValue, BoundUpdate, MultiUpdate, ROW_KEY, SingleUpdate, UpdateTarget, needs_row_key};
use crate::expr;
use crate::parse::ast::{self, LockWait};
use crate::plan::{Expr, ExprType, Field, IndexChoice, LockSpec, Rel, RelKind, SortKey};
use crate::prepared::{KeptRows, file_error};
use crate::session::{Executor, Session, StatusCounter, error};

/// What became of a row.
pub(crate) enum Written {
    Changed(Vec<Value>),
    Same,
    /// IGNORE: an error became a warning.
    Ignored,
}

/// Counts for the OK packet.
#[derive(Default)]
pub(crate) struct Counts {
    matched: u64,
    changed: u64,
    /// The index that has led to the rows that are changed as they are found.
    by: Option<usize>,
}

impl Counts {
    fn note(&mut self, written: &Written) {
        self.matched += 1;
        if matches!(written, Written::Changed(_)) {
            self.changed += 1;
        }
    }
}

impl Session {
    pub(crate) async fn update(&mut self, ast: &ast::Update) -> Result<Outcome, Failure> {
        let bound = self.bind_and_open(|state| bind::bind_update(ast, state), update_tables).await?;
        self.run_update(&bound).await
    }

    /// Runs a bound UPDATE whose tables are open.
    pub(crate) async fn run_update(&mut self, bound: &BoundUpdate) -> Result<Outcome, Failure> {
        self.begin_write(match bound {
            BoundUpdate::Single(single) => single.table.is_temporary(),
            BoundUpdate::Multi(multi) => multi.targets.iter().all(|target| target.table.is_temporary()),
        })?;
        match bound {
            BoundUpdate::Single(single) => self.prepare_cascades(&single.table),
            BoundUpdate::Multi(multi) => multi.targets.iter().for_each(|target| self.prepare_cascades(&target.table)),
        }
        match bound {
            BoundUpdate::Single(single) => self.note_triggers([&single.table], || update_tables(bound)),
            BoundUpdate::Multi(multi) => self.note_triggers(multi.targets.iter().map(|target| &target.table), || update_tables(bound)),
        }
        let ignore = match bound {
            BoundUpdate::Single(single) => single.ignore,
            BoundUpdate::Multi(multi) => multi.ignore,
        };
        self.state.begin_changes(ignore);
        let cut = self.update_with_cut_members(bound);
        let bound = cut.as_ref().unwrap_or(bound);
        let counts = match bound {
            BoundUpdate::Single(single) => {
                self.note_hints(&single.hints);
                let counts = self.update_single(single).await?;
                count_updated(&single.table, counts.by, counts.changed);
                counts
            }
            BoundUpdate::Multi(multi) => {
                self.note_hints(&multi.query.hints);
                Box::pin(self.update_multi(multi)).await?
            }
        };
        self.state.check_strict()?;
        self.state.count(StatusCounter::HandlerUpdate, counts.changed);
        self.state.count(StatusCounter::InnodbRowsUpdated, counts.changed);
        let info = format!("Rows matched: {}  Changed: {}  Warnings: {}", counts.matched, counts.changed, self.state.diagnostics.count());
        let affected = if self.state.client.flags.found_rows { counts.matched } else { counts.changed };
        Ok(Outcome::Done { affected, last_insert_id: self.state.explicit_insert_id.unwrap_or(0), info })
    }

    /// `bound` with numbers in its lists (`lists`), if that changes it.
    fn update_with_cut_members(&mut self, bound: &BoundUpdate) -> Option<BoundUpdate> {
        let any = match bound {
            BoundUpdate::Single(single) => single.exprs().any(|expr| lists::has_cut_member(expr, &self.state)),
            BoundUpdate::Multi(multi) => lists::plan_has_cut_member(&multi.query.rel, &self.state),
        };
        let mut own = any.then(|| bound.clone())?;
        match &mut own {
            BoundUpdate::Single(single) => single.exprs_mut().for_each(|expr| lists::cut_members(expr, &mut self.state)),
            BoundUpdate::Multi(multi) => lists::cut_members_of_plan(&mut multi.query.rel, &mut self.state),
        }
        Some(own)
    }

    async fn update_single(&mut self, single: &SingleUpdate) -> Result<Counts, Failure> {
        if single.exprs().any(Expr::has_subquery) {
            let mut own = single.clone();
            let correlated = Box::pin(self.resolve_all(own.exprs_mut().collect())).await?;
            self.check_safe_change(&own.table, &own.indexes, own.filter.as_ref(), own.limit.as_ref())?;
            return if correlated { Box::pin(self.update_through_query(&own)).await } else { Box::pin(self.update_rows(&own)).await };
        }
        self.check_safe_change(&single.table, &single.indexes, single.filter.as_ref(), single.limit.as_ref())?;
        match self.state.config.executor {
            Executor::DataFusion => Box::pin(self.update_through_query(single)).await,
            _ => self.update_rows(single).await,
        }
    }

    /// Expressions without subqueries: rows are found by an index, locked and changed one after the other.
    async fn update_rows(&mut self, single: &SingleUpdate) -> Result<Counts, Failure> {
        let mut target = Target::through(&single.table, single.check.as_ref(), &self.state)?;
        target.triggers = self.table_triggers(&single.table);
        for (column, value) in &single.assignments {
            target.check_generated(*column, value)?;
        }
        let limit = self.limit_value(single.limit.as_ref())?;
        let mut counts = Counts::default();
        if limit == Some(0) {
            return Ok(counts);
        }
        let all: Vec<usize> = (0..target.columns().len()).collect();
        let access = self.access(&single.table, &all, &single.indexes, single.filter.as_ref())?;
        // What triggers assign may move rows too.
        let moves = target.runs_before(TriggerEvent::Update) || moves_key(&target, access.index, single.assignments.iter().map(|(c, _)| *c));
        if !single.order_by.is_empty() {
            let rows = Box::pin(self.sorted_rows(&target, &single.indexes, single.filter.as_ref(), &single.order_by, limit)).await?;
            let found = rows.len();
            for (n, row) in rows.into_iter().enumerate() {
                self.tell_changed(n, found);
                let Some(row) = self.row_again(&single.table, row).await? else { continue };
                let written = self.update_row(&target, single, &row, &[], counts.matched + 1).await?;
                counts.note(&written);
            }
            return Ok(counts);
        }
        let unlocks = self.unlocks_unwanted(&access);
        let before = self.state.process.rows_examined();
        let read = self.pruned(&single.table, &all, single.filter.as_ref())?;
        let stage = if moves { Stage::ReadingRows } else { Stage::ChangingRows };
        counts.by = access.used().filter(|_| !moves);
        // Rows whose place in the index moves would be met again further on: they are collected first.
        let mut waiting = Vec::new();
        'ranges: for range in &access.ranges {
            let begun = self.state.process.rows_examined();
            let mut scan = self.locking_rows(&read, &access, range, LockMode::Exclusive, LockWaitPolicy::Wait);
            loop {
                // One by one where few are wanted, so that no more is locked than is changed.
                let rows = match unlocks {
                    true => self.next_wanted(&target, access.residual.as_ref(), &mut scan, true).await?.into_iter().collect(),
                    false => self.next_locked(&mut scan, rows_at_once(&single.table, limit.is_some())).await?,
                };
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    if !unlocks && !self.is_one_wanted(&target, access.residual.as_ref(), &row).await? {
                        continue;
                    }
                    if moves {
                        waiting.push(row);
                    } else {
                        let written = self.update_row(&target, single, &row, &[], counts.matched + 1).await?;
                        counts.note(&written);
                    }
                    if limit.is_some_and(|n| counts.matched + waiting.len() as u64 >= n) {
                        self.note_range(&read, &access, range, &scan, begun, false);
                        break 'ranges;
                    }
                }
                self.state.process.check()?;
                self.tell_met(&single.table, &access, stage, before, limit);
            }
            self.note_range(&read, &access, range, &scan, begun, true);
        }
        let found = waiting.len();
        for (n, row) in waiting.into_iter().enumerate() {
            self.tell_changed(n, found);
            let Some(row) = self.row_again(&single.table, row).await? else { continue };
            let written = self.update_row(&target, single, &row, &[], counts.matched + 1).await?;
            counts.note(&written);
        }
        Ok(counts)
    }

    /// All matching rows, locked, in the order asked for, cut at the limit.
    pub(crate) async fn sorted_rows(&mut self, target: &Target, indexes: &IndexChoice, filter: Option<&Expr>, order_by: &[SortKey], limit: Option<u64>) -> Result<Vec<Row>, MySqlError> {
        let all: Vec<usize> = (0..target.columns().len()).collect();
        let lock = LockSpec { exclusive: true, wait: LockWait::Wait };
        let scanned = self.state.work.read_rnd_next;
        let rows = self.locked_rows(&target.table, &all, indexes, filter, lock).await?;
        let of_ranges = self.state.work.read_rnd_next == scanned;
        let began = self.profile.is_some().then(Instant::now);
        let zone = self.state.config.time_zone.clone();
        let mut keyed = Vec::with_capacity(rows.len());
        for row in rows {
            self.txn().breathe(1).await?;
            let mut seen = row.values();
            target.to_session(&mut seen, &zone);
            let mut key = Vec::with_capacity(order_by.len());
            for sort in order_by {
                key.push(crate::fast::sort_form(expr::eval(&sort.expr, &seen, &mut self.state)?, sort));
            }
            keyed.push((key, row));
        }
        self.state.check_strict()?;
        self.state.with_cast(|cx| keyed.sort_by(|a, b| crate::fast::compare_keys(&a.0, &b.0, order_by, cx)));
        let limit = limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        self.state.work.sort(of_ranges, keyed.len().min(limit) as u64);
        if let (Some(profile), Some(began)) = (&self.profile, began) {
            profile.changing().sorted(began.elapsed(), keyed.len().min(limit));
        }
        Ok(keyed.into_iter().take(limit).map(|(_, row)| row).collect())
    }

    /// Assigns left to right: an expression sees what was assigned before it. `computed` stands after the row's columns in what expressions see.
    async fn update_row(&mut self, target: &Target, single: &SingleUpdate, row: &Row, computed: &[Value], number: u64) -> Result<Written, Failure> {
        let stored = row.values();
        let zone = &self.state.config.time_zone.clone();
        let mut seen = target.session_row(&stored, zone);
        seen.extend_from_slice(computed);
        let mut new = stored.clone();
        let mut assigned = Vec::with_capacity(single.assignments.len());
        for (column, assigned_value) in &single.assignments {
            let column = *column;
            let value = match assigned_value {
                AssignedValue::Default => target.default(&mut self.state, column, &new, single.ignore, number)?,
                // To itself: no mode judges what is there.
                AssignedValue::Expr(expr) if expr.as_column() == Some(column) => new[column].clone(),
                AssignedValue::Expr(expr) => {
                    let value = match expr.has_subquery() {
                        true => self.eval_over_row(expr, &seen).await?,
                        false => expr::eval(expr, &seen, &mut self.state)?,
                    };
                    target.store(&mut self.state, column, value, single.ignore, number)?
                }
            };
            self.assign(target, &mut new, column, value, matches!(assigned_value, AssignedValue::Default), single.ignore)?;
            show(target, column, &new, &mut seen, zone);
            assigned.push(column);
        }
        self.write_update(target, row, &stored, new, &assigned, single.ignore, number).await
    }

    fn assign(&mut self, target: &Target, new: &mut [Value], column: usize, mut value: Value, is_default: bool, ignore: bool) -> Result<(), MySqlError> {
        let def = &target.columns()[column];
        if def.auto_increment && value.is_null() && is_default {
            value = super::target::implicit_default(&def.ty);
        }
        // A generated column has its value later.
        if def.generated.is_none() && !target.runs_before(TriggerEvent::Update) {
            let lenient = ignore || !self.state.strict();
            target.check_null(&mut self.state, column, &mut value, lenient)?;
        }
        new[column] = value;
        Ok(())
    }

    /// Writes a changed row: ON UPDATE CURRENT_TIMESTAMP, generated columns, CHECK, then the table. `stored` are the values of `row`.
    pub(crate) async fn write_update(
        &mut self,
        target: &Target,
        row: &Row,
        stored: &[Value],
        mut new: Vec<Value>,
        assigned: &[usize],
        ignore: bool,
        number: u64,
    ) -> Result<Written, Failure> {
        let changed = assigned.iter().any(|&c| !is_same(&new[c], &stored[c]));
        if target.runs(TriggerEvent::Update) {
            return Box::pin(self.update_with_triggers(target, row, stored, new, assigned, changed, ignore, number)).await;
        }
        if !changed {
            return Ok(Written::Same);
        }
        self.touch(target, &mut new, assigned, ignore, number)?;
        target.generate(&mut self.state, &mut new, ignore, number)?;
        for (column, def) in target.columns().iter().enumerate() {
            if def.generated.is_some() && !def.nullable {
                target.check_null(&mut self.state, column, &mut new[column], ignore)?;
            }
        }
        if !target.check_constraints(&mut self.state, &new, ignore)? {
            return Ok(Written::Ignored);
        }
        if target.calls {
            return Box::pin(self.update_row_behind(target, row, stored, new, ignore)).await;
        }
        self.update_plainly(target, row, new, ignore).await
    }

    /// ON UPDATE CURRENT_TIMESTAMP of the columns that are not assigned.
    pub(super) fn touch(&mut self, target: &Target, new: &mut [Value], assigned: &[usize], ignore: bool, number: u64) -> Result<(), MySqlError> {
        for (column, def) in target.columns().iter().enumerate() {
            if def.on_update_now && !assigned.contains(&column) {
                new[column] = target.now(&mut self.state, column, def.ty.fsp(), ignore, number)?;
            }
        }
        Ok(())
    }

    /// The row in the table becomes the new one.
    pub(super) async fn update_plainly(&mut self, target: &Target, row: &Row, new: Vec<Value>, ignore: bool) -> Result<Written, Failure> {
        let (txn, state) = self.txn_and_state();
        match target.table.update(txn, row, &new).await {
            Ok(true) => Ok(Written::Changed(new)),
            Ok(false) => Ok(Written::Same),
            Err(e) if ignore && matches!(e.code, 1062 | 1451 | 1452) => {
                state.push_ignored(e);
                Ok(Written::Ignored)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// DataFusion finds the rows and computes the subqueries over them; the assignments are evaluated here, row by row.
    async fn update_through_query(&mut self, single: &SingleUpdate) -> Result<Counts, Failure> {
        let mut target = Target::through(&single.table, single.check.as_ref(), &self.state)?;
        target.triggers = self.table_triggers(&single.table);
        target.calls = single.assignments.iter().filter_map(|(_, value)| value.expr()).any(Expr::calls_session_anywhere);
        for (column, value) in &single.assignments {
            target.check_generated(*column, value)?;
        }
        if self.limit_value(single.limit.as_ref())? == Some(0) {
            return Ok(Counts::default());
        }
        let (rel, width) = rows_to_change(&single.table, &single.alias, &single.indexes, single.filter.as_ref(), &single.order_by, single.limit.as_ref());
        let columns = target.columns().len();
        let mut exprs: Vec<Expr> = rel.fields.iter().enumerate().map(|(i, f)| Expr::column(i, f.ty.clone())).collect();
        let mut own = single.clone();
        let mut assigned = Vec::new();
        for (column, value) in &mut own.assignments {
            if let Some(expr) = value.expr_mut() {
                lift_subqueries(expr, &assigned, columns, &mut exprs, width);
            }
            assigned.push(*column);
        }
        let mut fields = rel.fields.clone();
        fields.extend(exprs[width..].iter().map(|e| Field::computed("value", e.ty.clone())));
        let mut query = query_of(rel.project(exprs, fields));
        self.share_reads(&mut query);
        let rows = self.rows_found_by(&query).await?;
        let mut counts = Counts::default();
        let mut read = rows.read();
        for n in 0.. {
            let Some(values) = read.next_row().map_err(|e| file_error(&e))? else { break };
            self.tell_changed(n, rows.count());
            let Some(row) = self.target_row(&target, &values[..width]).await? else { continue };
            let written = self.update_row(&target, &own, &row, &values[width..], counts.matched + 1).await?;
            counts.note(&written);
        }
        Ok(counts)
    }

    /// An expression whose subqueries read what this statement has already changed in the row, or that calls functions which the session runs: that is done
    /// once for each row.
    pub(super) async fn eval_over_row(&mut self, expr: &Expr, seen: &[Value]) -> Result<Value, Failure> {
        let mut expr = expr.clone();
        expr.bind_outer_row(seen);
        // EXPLAIN ANALYZE would be told of each row's.
        let profile = self.profile.take();
        let resolved = if expr.calls_session() {
            expr.bind_row(seen);
            self.resolve_calls(&mut expr).await
        } else {
            self.resolve_subqueries(&mut expr).await
        };
        self.profile = profile;
        resolved?;
        Ok(expr::eval(&expr, seen, &mut self.state)?)
    }

    async fn update_multi(&mut self, multi: &MultiUpdate) -> Result<Counts, Failure> {
        let mut query = multi.query.clone();
        lock_targets(&mut query.rel, &multi.targets);
        query.locking = true;
        self.share_reads(&mut query);
        let calls = query.rel.calls_session();
        // A row that several others match is updated by the first of them; what the others would give need not be right.
        let late = Late::of_update(&mut query.rel, &multi.targets, &self.state);
        let zone = self.state.config.time_zone.clone();
        let mut counts = Counts::default();
        let reads_assigned = late.as_ref().is_some_and(Late::reads_assigned);
        // Rows that values are put into are in memory.
        let (mut rows, kept) = match reads_assigned {
            true => (self.rows_of(&query).await?, None),
            false => (vec![Vec::new()], Some(self.rows_found_by(&query).await?)),
        };
        let count = kept.as_ref().map_or(rows.len(), |kept| kept.count());
        for (n, update) in multi.targets.iter().enumerate() {
            let mut target = Target::new(&update.table, &self.state)?;
            target.triggers = self.table_triggers(&update.table);
            target.calls = calls;
            let shows = n == 0 && reads_assigned;
            let mut done: HashMap<Vec<u8>, usize> = HashMap::new();
            let before = counts.changed;
            let mut read = kept.as_ref().map(KeptRows::read);
            for nth in 0..count {
                self.tell_changed(n * count + nth, multi.targets.len() * count);
                // Of those that are kept there is one at a time.
                let i = match &mut read {
                    Some(read) => {
                        let Some(next) = read.next_row().map_err(|e| file_error(&e))? else { break };
                        rows[0] = next;
                        0
                    }
                    None => nth,
                };
                let Some(row) = self.target_row(&target, &rows[i][update.row.clone()]).await? else { continue };
                if let Some(&before) = done.get(row.key()) {
                    if shows {
                        let seen = rows[before][update.row.clone()].to_vec();
                        rows[i][update.row.clone()].clone_from_slice(&seen);
                    }
                    continue;
                }
                done.insert(row.key().to_vec(), i);
                let values = &mut rows[i];
                let stored = row.values();
                let mut new = stored.clone();
                let number = counts.matched + 1;
                for (column, output) in &update.assignments {
                    let value = match output {
                        None => target.default(&mut self.state, *column, &new, multi.ignore, number)?,
                        Some(output) => {
                            let value = match &late {
                                Some(late) if late.output(*output).has_subquery() => self.eval_over_row(late.output(*output), values).await?,
                                Some(late) => late.value(*output, values, &mut self.state)?,
                                None => values[*output].clone(),
                            };
                            if target.columns()[*column].generated.is_some() {
                                return Err(error::generated_not_allowed(&target.columns()[*column].name, &target.table.def().name).into());
                            }
                            target.store(&mut self.state, *column, value, multi.ignore, number)?
                        }
                    };
                    self.assign(&target, &mut new, *column, value, output.is_none(), multi.ignore)?;
                    if shows {
                        show(&target, *column, &new, &mut values[update.row.clone()], &zone);
                    }
                }
                let assigned: Vec<usize> = update.assignments.iter().map(|(c, _)| *c).collect();
                let written = self.write_update(&target, &row, &stored, new, &assigned, multi.ignore, number).await?;
                if shows && let Written::Changed(new) = &written {
                    (0..new.len()).for_each(|column| show(&target, column, new, &mut values[update.row.clone()], &zone));
                }
                counts.note(&written);
            }
            count_updated(&update.table, None, counts.changed - before);
        }
        Ok(counts)
    }

    /// The row that a query's output names, locked; `None` for the missing side of an outer join, and for a row that is gone.
    pub(crate) async fn target_row(&mut self, target: &Target, values: &[Value]) -> Result<Option<Row>, MySqlError> {
        let table = target.table.clone();
        if let Some(key) = values.get(target.columns().len()) {
            let Value::Bytes(key) = key else { return Ok(None) };
            let (txn, _) = self.txn_and_state();
            return table.lock_found(txn, key, LockMode::Exclusive, LockWaitPolicy::Wait).await;
        }
        let def = table.def();
        let mut key = Vec::new();
        for part in &def.indexes[0].parts {
            let mut value = values[part.column].clone();
            if value.is_null() {
                return Ok(None);
            }
            let is_zero = matches!(&value, Value::DateTime(moment) if moment.is_zero());
            if target.timestamps.contains(&part.column) && !is_zero {
                value = self.state.store(value, &def.columns[part.column].ty, &def.columns[part.column].name, false, 1)?;
            }
            key.push(value);
        }
        let zone = table.is_partitioned().then(|| self.state.config.time_zone.clone());
        let (txn, _) = self.txn_and_state();
        let found = table.lock_get(txn, 0, &key, LockMode::Exclusive, LockWaitPolicy::Wait).await?;
        // EXCHANGE PARTITION … WITHOUT VALIDATION may have put a row with the key of another one into another partition: the one is not taken for the other.
        if let Some(zone) = zone
            && !found.as_ref().is_some_and(|row| target.session_row(&row.values(), &zone) == *values)
        {
            table.check_placed(txn, &key)?;
        }
        Ok(found)
    }
}

/// Rows were changed that an index has led to, or none.
fn count_updated(table: &Table, by: Option<usize>, rows: u64) {
    table.count_use(table.index_of_changes(by), RowUse::Update, rows);
}

/// A column of the new row, as expressions see it.
fn show(target: &Target, column: usize, new: &[Value], seen: &mut [Value], zone: &TimeZone) {
    seen[column] = new[column].clone();
    if target.timestamps.contains(&column) {
        to_session(&mut seen[column], zone);
    }
}

/// Not only equal: -0 is not 0.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// True if assigning these columns moves rows within the index, or to another partition.
fn moves_key(target: &Target, index: usize, mut columns: impl Iterator<Item = usize>) -> bool {
    let decides = |column: &usize| target.table.partitioned_by().contains(column);
    let index = &target.table.indexes()[index];
    let generated = target.columns().iter().any(|c| c.generated.is_some()) && index.parts.iter().any(|p| target.columns()[p.column].generated.is_some());
    generated
        || index.parts.iter().any(|p| target.columns()[p.column].on_update_now)
        || target.table.partitioned_by().iter().any(|c| target.columns()[*c].generated.is_some() || target.columns()[*c].on_update_now)
        || columns.any(|c| decides(&c) || index.parts.iter().any(|p| p.column == c) || target.table.indexes()[0].parts.iter().any(|p| p.column == c))
}

/// The rows that a statement over one table changes, locked, in its order; and how many outputs a row is.
pub(crate) fn rows_to_change(
    table: &Arc<Table>,
    alias: &str,
    indexes: &IndexChoice,
    filter: Option<&Expr>,
    order_by: &[SortKey],
    limit: Option<&Expr>,
) -> (Rel, usize) {
    let (mut rel, width) = locked_scan(table, alias, indexes);
    if let Some(filter) = filter {
        rel = rel.filter(filter.clone());
    }
    (rel.sort(order_by.to_vec()).limit(None, limit.cloned()), width)
}

/// A locking scan of all columns, then of the row's key if they do not name it; and how many outputs that are.
fn locked_scan(table: &Arc<Table>, alias: &str, indexes: &IndexChoice) -> (Rel, usize) {
    let mut fields = super::query::table_fields(table, alias);
    let mut columns: Vec<usize> = (0..fields.len()).collect();
    if needs_row_key(table.def()) {
        columns.push(ROW_KEY);
        fields.push(Field::computed("DB_ROW_KEY", ExprType::row_key(false)));
    }
    let width = columns.len();
    let lock = Some(LockSpec { exclusive: true, wait: LockWait::Wait });
    (Rel { kind: RelKind::Scan { table: table.clone(), alias: alias.into(), columns, indexes: indexes.clone(), lock }, fields }, width)
}

/// The rows to change are locked, and read as they are now, before the query runs over them.
pub(crate) fn lock_targets(rel: &mut Rel, targets: &[UpdateTarget]) {
    if let RelKind::Scan { table, lock, .. } = &mut rel.kind
        && targets.iter().any(|t| t.table.id() == table.id())
    {
        *lock = Some(LockSpec { exclusive: true, wait: LockWait::Wait });
    }
    for input in rel.inputs_mut() {
        lock_targets(input, targets);
    }
}

/// The tables of a bound UPDATE.
pub(crate) fn update_tables(bound: &BoundUpdate) -> BoundTables {
    match bound {
        BoundUpdate::Single(single) => {
            let mut tables = BoundTables::one(&single.table, &single.views);
            single.exprs().for_each(|e| tables.collect_expr(e));
            tables
        }
        BoundUpdate::Multi(multi) => BoundTables::changing(&multi.query, multi.targets.iter().map(|target| &target.table)),
    }
}
