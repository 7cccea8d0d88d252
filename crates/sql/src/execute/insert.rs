//! INSERT and REPLACE.

use std::sync::Arc;
use std::time::Instant;

use highkey_table::{DuplicateRow, EncodedRows, InsertReport, OnDuplicate, PreparedRows, Table, Transaction, TriggerEvent, explicit_value};
use highkey_types::{MySqlError, Value};

use super::insert_select::BATCH_BYTES;
use super::inserter::{BATCH_ROWS, BULK_CHUNK_BYTES, BULK_MEMORY, Inserter, check_null};
use super::late::Late;
use super::query::{BoundTables, Destination};
use super::subqueries::has_correlated_subquery;
use super::target::implicit_default;
use super::{Failure, Outcome, lists};
use crate::bind::{self, AssignedValue, BoundInsert, BoundSource, RowValue};
use crate::expr::{self, row_bytes};
use crate::fast::FastQuery;
use crate::measure::{Actual, Figures, Line};
use crate::parse::ast;
use crate::plan::{BoundQuery, Expr};
use crate::prepared::{OpenCursor, file_error};
use crate::session::{AutoIncrementLocking, Executor, Session, error};

/// The rows of a query that has run.
enum Known {
    Few(std::vec::IntoIter<Vec<Value>>),
    Kept(OpenCursor),
}

impl Known {
    /// The next row; `None` behind the last.
    fn next(&mut self) -> Result<Option<Vec<Value>>, MySqlError> {
        match self {
            Known::Few(rows) => Ok(rows.next()),
            Known::Kept(rows) => rows.next_row().map_err(|e| file_error(&e)),
        }
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
        inserter.in_order = self.routines.is_nested();
        inserter.target.check = bound.check.clone();
        inserter.target.triggers = self.table_triggers(&bound.table);
        self.note_triggers([&bound.table], || insert_tables(bound));
        if !bound.on_duplicate.is_empty() {
            inserter.on_duplicate = bound.on_duplicate.clone();
            for (column, value) in &inserter.on_duplicate {
                inserter.target.check_generated(*column, value)?;
            }
            if inserter.on_duplicate.iter().any(|(_, v)| matches!(v, AssignedValue::Expr(e) if e.has_subquery())) {
                inserter.target.calls = inserter.on_duplicate.iter().filter_map(|(_, v)| v.expr()).any(Expr::calls_session);
                let mut assigned = std::mem::take(&mut inserter.on_duplicate);
                Box::pin(self.resolve_all(assigned.iter_mut().filter_map(|(_, v)| v.expr_mut()).collect())).await?;
                if assigned.iter().filter_map(|(_, v)| v.expr()).any(has_correlated_subquery) {
                    return Err(error::not_supported("correlated subqueries in ON DUPLICATE KEY UPDATE").into());
                }
                inserter.by_row |= assigned.iter().filter_map(|(_, v)| v.expr()).any(Expr::calls_session);
                inserter.on_duplicate = assigned;
            }
        }
        let info = match &bound.source {
            BoundSource::Rows(rows) => {
                if rows.iter().flatten().filter_map(RowValue::expr).any(Expr::has_subquery) {
                    let mut rows = rows.clone();
                    inserter.by_row |= rows.iter().flatten().filter_map(RowValue::expr).any(Expr::calls_session);
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
            self.assign_given(inserter, &mut row, i, value)?;
        }
        Ok(row)
    }

    /// The same of values that may call functions which the session runs, each when those before it are there.
    pub(super) async fn assigned_row_by_calls(&mut self, inserter: &mut Inserter, values: &[RowValue]) -> Result<Vec<Value>, Failure> {
        let mut row = Vec::new();
        inserter.start_row(&mut row);
        for (i, value) in values.iter().enumerate() {
            let Some(expr) = value.expr().filter(|expr| expr.calls_session()) else {
                self.assign_given(inserter, &mut row, i, value)?;
                continue;
            };
            let column = inserter.columns[i];
            if let RowValue::Assigned(assigned) = value {
                inserter.target.check_generated(column, assigned)?;
            }
            let seen = inserter.target.session_row(&row, &self.state.config.time_zone);
            let value = Box::pin(self.eval_over_row(expr, &seen)).await?;
            inserter.assign(&mut self.state, &mut row, column, value)?;
        }
        Ok(row)
    }

    /// Puts the value that VALUES gives the column of that number into a row.
    fn assign_given(&mut self, inserter: &mut Inserter, row: &mut [Value], number: usize, value: &RowValue) -> Result<(), MySqlError> {
        let column = inserter.columns[number];
        let value = match value {
            RowValue::Literal(value) => value.clone(),
            RowValue::Assigned(assigned) => {
                inserter.target.check_generated(column, assigned)?;
                match assigned {
                    AssignedValue::Default => {
                        row[column] = inserter.target.default(&mut self.state, column, row, inserter.ignore, inserter.row)?;
                        return Ok(());
                    }
                    AssignedValue::Expr(expr) => match expr.as_literal() {
                        Some(value) => value.clone(),
                        None if inserter.target.timestamps.is_empty() => expr::eval(expr, row, &mut self.state)?,
                        None => {
                            let seen = inserter.target.session_row(row, &self.state.config.time_zone);
                            expr::eval(expr, &seen, &mut self.state)?
                        }
                    },
                }
            }
        };
        inserter.assign(&mut self.state, row, column, value)
    }

    /// The rows of a query into `columns`, in the cheapest way.
    pub(crate) async fn insert_rows_of(&mut self, inserter: &mut Inserter, query: &BoundQuery, columns: &[usize]) -> Result<(), Failure> {
        let copy = match self.state.config.executor {
            Executor::DataFusion => None,
            _ if inserter.by_row || inserter.in_order => None,
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

    /// Rows of any query. All of them are computed first if it reads the table that is written.
    async fn insert_query(&mut self, inserter: &mut Inserter, query: &BoundQuery) -> Result<(), Failure> {
        let query = &mut BoundQuery { ordered: true, ..query.clone() };
        // Who streams its rows serves no calls.
        inserter.by_row |= query.rel.calls_session();
        self.share_reads(query);
        lists::cut_members_of_plan(&mut query.rel, &mut self.state);
        let late = Late::after_limit(&mut query.rel, &self.state);
        let reads_target = BoundTables::of(&query.rel).tables.iter().any(|(t, _)| t.id() == inserter.target.table.id());
        if !inserter.tells_first_inserted() && !inserter.by_row && !inserter.in_order {
            self.begin_bulk(inserter)?;
        }
        let (mut batch, mut bytes) = (Vec::with_capacity(BATCH_ROWS), 0);
        let mut fast = self.compile_fast(query)?;
        if let Some(found) = &fast
            && self.reads_many(found)?
        {
            fast = None;
        }
        let many = fast.as_ref().is_some_and(FastQuery::may_give_many);
        // What triggers do comes between the rows, and needs the session.
        let known = if reads_target || inserter.by_row || inserter.in_order || many {
            Some(Known::Kept(self.keep_rows(query, fast.as_ref()).await?))
        } else {
            let mut rows = Vec::new();
            self.try_fast(query, fast.as_ref(), &mut Destination::Memory(&mut rows)).await?.map(|_| Known::Few(rows.into_iter()))
        };
        self.state.check_strict()?;
        if let Some(mut rows) = known {
            while let Some(values) = rows.next()? {
                let values = self.outputs(late.as_ref(), values);
                if inserter.by_row {
                    Box::pin(self.insert_query_row(inserter, values)).await?;
                    continue;
                }
                bytes += values.as_ref().map_or(0, |values| row_bytes(values));
                let made = values.and_then(|values| self.take_row(inserter, values, &mut batch));
                if let Err(e) = made {
                    return Err(self.fail_behind(inserter, &mut batch, e).await);
                }
                if batch.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
                    self.write_rows(inserter, &mut batch, false).await?;
                    bytes = 0;
                }
            }
        } else {
            // Outputs that are computed here are the session's.
            let mut beside = late.is_none().then(|| self.query_rows(inserter, &query.hints));
            let mut stream = self.stream(query.clone()).await?;
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
                        let values = self.outputs(late.as_ref(), values);
                        bytes += values.as_ref().map_or(0, |values| row_bytes(values));
                        let made = values.and_then(|values| self.take_row(inserter, values, &mut batch));
                        if let Err(e) = made {
                            return Err(self.fail_behind(inserter, &mut batch, e).await);
                        }
                        if batch.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
                            self.write_rows(inserter, &mut batch, false).await?;
                            bytes = 0;
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
    pub(super) async fn fail_behind(&mut self, inserter: &mut Inserter, batch: &mut Vec<Vec<Value>>, error: MySqlError) -> Failure {
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
        let mut generated = self.number_rows(inserter, rows, exact).await?;
        let table = inserter.target.table.clone();
        let leaves_bulk = inserter.leaves_bulk(&generated);
        if leaves_bulk {
            Box::pin(self.finish_bulk(inserter)).await?;
        }
        if inserter.bulk.is_some() {
            inserter.note_generated(&generated, |_| false);
            for row in rows.drain(..) {
                self.push_encoded(inserter, |out| table.layout().encode(&row, out));
                if inserter.bulk_bytes() >= BULK_CHUNK_BYTES {
                    Box::pin(self.flush_bulk(inserter, BULK_CHUNK_BYTES)).await?;
                }
            }
            return Ok(());
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
                let rows = &mut rows[start..end];
                // They have had numbers: most get those again, and need not wait for somebody who is alone in getting more.
                generated = match inserter.has_numbers(rows) {
                    true => inserter.number(&mut self.state, rows, exact)?,
                    false => self.number_rows(inserter, rows, exact).await?,
                };
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

    /// `Inserter::number`, not while another statement is alone in getting numbers.
    pub(super) async fn number_rows(&mut self, inserter: &mut Inserter, rows: &mut [Vec<Value>], exact: bool) -> Result<Vec<(usize, u64)>, MySqlError> {
        loop {
            self.lock_auto_increment(inserter).await?;
            if let Some(numbered) = self.number_unless_locked(inserter, rows, exact) {
                return numbered;
            }
        }
    }

    /// None: somebody has taken the lock since this statement has seen that it need not wait for it.
    fn number_unless_locked(&mut self, inserter: &mut Inserter, rows: &mut [Vec<Value>], exact: bool) -> Option<Result<Vec<(usize, u64)>, MySqlError>> {
        let looks = self.state.instance.auto_increment_locking() == AutoIncrementLocking::Consecutive;
        if !looks || inserter.auto.is_none() || inserter.auto_lock.is_some() {
            return Some(inserter.number(&mut self.state, rows, exact));
        }
        let table = inserter.target.table.clone();
        let _numbering = table.numbering()?;
        Some(inserter.number(&mut self.state, rows, exact))
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
                    let value = match expr.calls_session() {
                        true => Box::pin(self.eval_over_row(expr, &seen)).await?,
                        false => expr::eval(expr, &seen, &mut self.state)?,
                    };
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
