//! Rows of tables with triggers: BEFORE, the row, AFTER, and then the next row.

use std::sync::Arc;

use highkey_table::{LockMode, LockWaitPolicy, OnDuplicate, Row, Table, TriggerEvent, TriggerTime};
use highkey_types::{MySqlError, Value};

use super::Failure;
use super::inserter::Inserter;
use super::query::BoundTables;
use super::target::Target;
use super::update::{Written, is_same};
use crate::bind::RowValue;
use crate::session::Session;

impl Session {
    /// A statement that changes rows of `changed` begins. If any of them has triggers, all `tables` of the statement are out of their reach.
    pub(super) fn note_triggers<'t>(&mut self, changed: impl IntoIterator<Item = &'t Arc<Table>>, tables: impl FnOnce() -> BoundTables) {
        if changed.into_iter().any(|table| !table.def().triggers.is_empty()) {
            self.routines.tables = tables().ids();
        }
    }

    /// The row as it is behind BEFORE triggers, and functions: what they have done to other tables may have changed it by foreign keys' actions.
    async fn row_behind(&mut self, target: &Target, row: &Row) -> Result<Option<Row>, Failure> {
        if target.table.def().foreign_keys.is_empty() {
            return Ok(Some(row.clone()));
        }
        Ok(target.table.lock_found(self.txn(), row.key(), LockMode::Exclusive, LockWaitPolicy::Wait).await?)
    }

    pub(super) async fn delete_with_triggers(&mut self, target: &Target, row: &Row, ignore: bool) -> Result<(), Failure> {
        let old = row.values();
        self.run_triggers(target, (TriggerEvent::Delete, TriggerTime::Before), &old, &mut []).await?;
        let Some(row) = self.row_behind(target, row).await? else { return Ok(()) };
        if self.delete_plainly(target, &row, ignore).await? {
            self.run_triggers(target, (TriggerEvent::Delete, TriggerTime::After), &old, &mut []).await?;
        }
        Ok(())
    }

    /// `changed`: the assignments give the row other values.
    #[allow(clippy::too_many_arguments)]
    pub(super) async fn update_with_triggers(
        &mut self,
        target: &Target,
        row: &Row,
        stored: &[Value],
        mut new: Vec<Value>,
        assigned: &[usize],
        changed: bool,
        ignore: bool,
        number: u64,
    ) -> Result<Written, Failure> {
        if changed {
            self.touch(target, &mut new, assigned, ignore, number)?;
        }
        target.generate(&mut self.state, &mut new, ignore, number)?;
        self.state.check_strict()?;
        self.run_triggers(target, (TriggerEvent::Update, TriggerTime::Before), stored, &mut new).await?;
        let lenient = ignore || !self.state.strict();
        for (column, def) in target.columns().iter().enumerate() {
            if def.generated.is_none() {
                target.check_null(&mut self.state, column, &mut new[column], lenient)?;
            }
        }
        target.generate(&mut self.state, &mut new, ignore, number)?;
        for (column, def) in target.columns().iter().enumerate() {
            if def.generated.is_some() {
                target.check_null(&mut self.state, column, &mut new[column], ignore)?;
            }
        }
        if !target.check_constraints(&mut self.state, &new, ignore)? {
            return Ok(Written::Ignored);
        }
        self.state.check_strict()?;
        let mut written = Written::Same;
        if new.iter().zip(stored).any(|(new, old)| !is_same(new, old)) {
            written = self.update_row_behind(target, row, stored, new.clone(), ignore).await?;
        }
        if !matches!(written, Written::Ignored) {
            self.run_triggers(target, (TriggerEvent::Update, TriggerTime::After), stored, &mut new).await?;
        }
        Ok(written)
    }

    /// The row that `stored` was, as it is behind such bodies, becomes the new one. What foreign keys' actions have done stays in the columns that this statement
    /// leaves as they were; a row that they have deleted is left out.
    pub(super) async fn update_row_behind(&mut self, target: &Target, row: &Row, stored: &[Value], mut new: Vec<Value>, ignore: bool) -> Result<Written, Failure> {
        let Some(row) = self.row_behind(target, row).await? else { return Ok(Written::Ignored) };
        if !target.table.def().foreign_keys.is_empty() {
            for (column, now) in row.values().into_iter().enumerate() {
                if is_same(&new[column], &stored[column]) {
                    new[column] = now;
                }
            }
        }
        self.update_plainly(target, &row, new, ignore).await
    }

    pub(super) async fn insert_values_by_row(&mut self, inserter: &mut Inserter, rows: &[Vec<RowValue>]) -> Result<(), Failure> {
        for (i, values) in rows.iter().enumerate() {
            inserter.to_come = (rows.len() - i) as u64;
            let row = match self.assigned_row_by_calls(inserter, values).await {
                Err(Failure::Sql(e)) => return Err(inserter.failed(&mut self.state, e).into()),
                made => made?,
            };
            self.insert_with_triggers(inserter, row, true).await?;
        }
        Ok(())
    }

    /// The values of a query's row, if they could be computed, as a row of a table with triggers.
    pub(super) async fn insert_query_row(&mut self, inserter: &mut Inserter, values: Result<Vec<Value>, MySqlError>) -> Result<(), Failure> {
        let made = values.and_then(|values| self.query_row(inserter, values));
        let row = made.map_err(|e| inserter.failed(&mut self.state, e))?;
        self.insert_with_triggers(inserter, row, false).await
    }

    /// One row into the table, with what runs before and behind it. `exact` as for `write_rows`.
    pub(super) async fn insert_with_triggers(&mut self, inserter: &mut Inserter, mut row: Vec<Value>, exact: bool) -> Result<(), Failure> {
        self.state.process.check()?;
        let fits = if inserter.before {
            inserter.show_row(&mut self.state, &mut row)?;
            self.state.check_strict()?;
            self.run_triggers(&inserter.target, (TriggerEvent::Insert, TriggerTime::Before), &[], &mut row).await?;
            inserter.finish_shown_row(&mut self.state, &mut row)
        } else {
            inserter.finish_row(&mut self.state, &mut row)
        };
        let fits = fits.and_then(|fits| self.state.check_strict().map(|()| fits)).map_err(|e| inserter.failed(&mut self.state, e))?;
        if !fits {
            inserter.beside.clear();
            return Ok(());
        }
        let before = inserter.inserted;
        if inserter.mode == OnDuplicate::Replace {
            self.replace_row(inserter, row, exact).await?;
        } else {
            self.write_rows(inserter, &mut vec![row], exact).await?;
        }
        if inserter.inserted > before
            && let Some(mut row) = inserter.written.take()
        {
            self.run_triggers(&inserter.target, (TriggerEvent::Insert, TriggerTime::After), &[], &mut row).await?;
        }
        Ok(())
    }

    /// REPLACE of one row: those in its way go first, each with its triggers.
    async fn replace_row(&mut self, inserter: &mut Inserter, row: Vec<Value>, exact: bool) -> Result<(), Failure> {
        let mut rows = [row];
        let generated = self.number_rows(inserter, &mut rows, exact).await?;
        let table = inserter.target.table.clone();
        loop {
            let (txn, _) = self.txn_and_state();
            let report = table.insert(txn, &rows, OnDuplicate::Report).await?;
            if let Some((_, error)) = report.orphan {
                return Err(inserter.failed(&mut self.state, error).into());
            }
            let Some(duplicate) = report.duplicate else {
                inserter.inserted += report.inserted;
                break;
            };
            // As without triggers: the last number that there is may be a row's already, which stays.
            if !generated.is_empty() && table.begins_with_number(duplicate.index) {
                return Err(inserter.failed(&mut self.state, table.duplicate_entry(duplicate.index, &rows[0])).into());
            }
            let (txn, _) = self.txn_and_state();
            if !inserter.target.runs(TriggerEvent::Delete) && table.is_same_in_last_key(txn, duplicate.index, &duplicate.existing, &rows[0]) {
                inserter.inserted += 1;
                break;
            }
            self.delete_row(&inserter.target, &duplicate.existing, false).await?;
            inserter.replaced += 1;
        }
        inserter.note_generated(&generated, |_| false);
        let [row] = rows;
        inserter.written = Some(row);
        Ok(())
    }
}
