//! DELETE from one table and from several.

use std::collections::HashSet;

use highkey_table::{LockMode, LockWaitPolicy, RowUse, Stage, Table};

use super::cascade::rows_at_once;
use super::query::BoundTables;
use super::subqueries::query_of;
use super::target::Target;
use super::update::{lock_targets, rows_to_change};
use super::{Failure, Outcome, lists};
use crate::bind::{self, BoundDelete, SingleDelete, UpdateTarget};
use crate::parse::ast;
use crate::plan::{BoundQuery, Expr};
use crate::prepared::file_error;
use crate::session::{Executor, Session, StatusCounter};

impl Session {
    pub(crate) async fn delete(&mut self, ast: &ast::Delete) -> Result<Outcome, Failure> {
        let bound = self.bind_and_open(|state| bind::bind_delete(ast, state), delete_tables).await?;
        self.run_delete(&bound).await
    }

    /// Runs a bound DELETE whose tables are open.
    pub(crate) async fn run_delete(&mut self, bound: &BoundDelete) -> Result<Outcome, Failure> {
        self.begin_write(match bound {
            BoundDelete::Single(single) => single.table.is_temporary(),
            BoundDelete::Multi { targets, .. } => targets.iter().all(|target| target.table.is_temporary()),
        })?;
        match bound {
            BoundDelete::Single(single) => self.prepare_cascades(&single.table),
            BoundDelete::Multi { targets, .. } => targets.iter().for_each(|target| self.prepare_cascades(&target.table)),
        }
        match bound {
            BoundDelete::Single(single) => self.note_triggers([&single.table], || delete_tables(bound)),
            BoundDelete::Multi { targets, .. } => self.note_triggers(targets.iter().map(|target| &target.table), || delete_tables(bound)),
        }
        let ignore = match bound {
            BoundDelete::Single(single) => single.ignore,
            BoundDelete::Multi { ignore, .. } => *ignore,
        };
        self.state.begin_changes(ignore);
        let cut = self.delete_with_cut_members(bound);
        let bound = cut.as_ref().unwrap_or(bound);
        let deleted = match bound {
            BoundDelete::Single(single) => {
                self.note_hints(&single.hints);
                self.delete_single(single).await?
            }
            BoundDelete::Multi { targets, query, ignore } => {
                self.note_hints(&query.hints);
                Box::pin(self.delete_multi(targets, query, *ignore, false)).await?
            }
        };
        self.state.check_strict()?;
        self.state.count(StatusCounter::HandlerDelete, deleted);
        self.state.count(StatusCounter::InnodbRowsDeleted, deleted);
        Ok(Outcome::affected(deleted))
    }

    /// `bound` with numbers in its lists (`lists`), if that changes it.
    fn delete_with_cut_members(&mut self, bound: &BoundDelete) -> Option<BoundDelete> {
        let any = match bound {
            BoundDelete::Single(single) => single.exprs().any(|expr| lists::has_cut_member(expr, &self.state)),
            BoundDelete::Multi { query, .. } => lists::plan_has_cut_member(&query.rel, &self.state),
        };
        let mut own = any.then(|| bound.clone())?;
        match &mut own {
            BoundDelete::Single(single) => single.exprs_mut().for_each(|expr| lists::cut_members(expr, &mut self.state)),
            BoundDelete::Multi { query, .. } => lists::cut_members_of_plan(&mut query.rel, &mut self.state),
        }
        Some(own)
    }

    async fn delete_single(&mut self, single: &SingleDelete) -> Result<u64, Failure> {
        if single.exprs().any(Expr::has_subquery) {
            let mut own = single.clone();
            let correlated = Box::pin(self.resolve_all(own.exprs_mut().collect())).await?;
            self.check_safe_change(&own.table, &own.indexes, own.filter.as_ref(), own.limit.as_ref())?;
            return if correlated { Box::pin(self.delete_through_query(&own)).await } else { Box::pin(self.delete_rows(&own)).await };
        }
        self.check_safe_change(&single.table, &single.indexes, single.filter.as_ref(), single.limit.as_ref())?;
        match self.state.config.executor {
            Executor::DataFusion => Box::pin(self.delete_through_query(single)).await,
            _ => self.delete_rows(single).await,
        }
    }

    /// DataFusion finds the rows.
    async fn delete_through_query(&mut self, single: &SingleDelete) -> Result<u64, Failure> {
        if self.limit_value(single.limit.as_ref())? == Some(0) {
            return Ok(0);
        }
        let (rel, width) = rows_to_change(&single.table, &single.alias, &single.indexes, single.filter.as_ref(), &single.order_by, single.limit.as_ref());
        let targets = [UpdateTarget { table: single.table.clone(), row: 0..width, assignments: Vec::new() }];
        self.delete_multi(&targets, &query_of(rel), single.ignore, true).await
    }

    /// Conditions without subqueries: rows are found by an index, locked and deleted one after the other.
    async fn delete_rows(&mut self, single: &SingleDelete) -> Result<u64, Failure> {
        let mut target = Target::new(&single.table, &self.state)?;
        target.triggers = self.table_triggers(&single.table);
        let limit = self.limit_value(single.limit.as_ref())?;
        let mut deleted = 0;
        if limit == Some(0) {
            return Ok(0);
        }
        if !single.order_by.is_empty() {
            let rows = Box::pin(self.sorted_rows(&target, &single.indexes, single.filter.as_ref(), &single.order_by, limit)).await?;
            let found = rows.len();
            for (n, row) in rows.into_iter().enumerate() {
                self.tell_changed(n, found);
                let Some(row) = self.row_again(&single.table, row).await? else { continue };
                self.delete_row(&target, &row, single.ignore).await?;
                deleted += 1;
            }
            count_deleted(&single.table, None, deleted);
            return Ok(deleted);
        }
        let all: Vec<usize> = (0..target.columns().len()).collect();
        let access = self.access(&single.table, &all, &single.indexes, single.filter.as_ref())?;
        let unlocks = self.unlocks_unwanted(&access);
        let before = self.state.process.rows_examined();
        let read = self.pruned(&single.table, &all, single.filter.as_ref())?;
        'ranges: for range in &access.ranges {
            let begun = self.state.process.rows_examined();
            let mut scan = self.locking_rows(&read, &access, range, LockMode::Exclusive, LockWaitPolicy::Wait);
            loop {
                let rows = match unlocks {
                    true => self.next_wanted(&target, access.residual.as_ref(), &mut scan, false).await?.into_iter().collect(),
                    false => self.next_locked(&mut scan, rows_at_once(&single.table, limit.is_some())).await?,
                };
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    if !unlocks && !self.is_one_wanted(&target, access.residual.as_ref(), &row).await? {
                        continue;
                    }
                    self.delete_row(&target, &row, single.ignore).await?;
                    deleted += 1;
                    if limit.is_some_and(|n| deleted >= n) {
                        self.note_range(&read, &access, range, &scan, begun, false);
                        break 'ranges;
                    }
                }
                self.state.process.check()?;
                self.tell_met(&single.table, &access, Stage::ChangingRows, before, limit);
            }
            self.note_range(&read, &access, range, &scan, begun, true);
        }
        count_deleted(&single.table, access.used(), deleted);
        Ok(deleted)
    }

    /// `named_once`: no row comes twice.
    async fn delete_multi(&mut self, targets: &[UpdateTarget], query: &BoundQuery, ignore: bool, named_once: bool) -> Result<u64, Failure> {
        let mut query = query.clone();
        lock_targets(&mut query.rel, targets);
        query.locking = true;
        self.share_reads(&mut query);
        let rows = self.rows_found_by(&query).await?;
        let found = rows.count();
        let mut deleted = 0;
        for (nth, from) in targets.iter().enumerate() {
            let mut target = Target::new(&from.table, &self.state)?;
            target.triggers = self.table_triggers(&from.table);
            let mut done = HashSet::new();
            let before = deleted;
            let mut read = rows.read();
            for n in nth * found.. {
                let Some(values) = read.next_row().map_err(|e| file_error(&e))? else { break };
                self.tell_changed(n, targets.len() * found);
                let Some(row) = self.target_row(&target, &values[from.row.clone()]).await? else { continue };
                if named_once || done.insert(row.key().to_vec()) {
                    self.delete_row(&target, &row, ignore).await?;
                    deleted += 1;
                }
            }
            count_deleted(&from.table, None, deleted - before);
        }
        Ok(deleted)
    }
}

/// Rows were deleted that an index has led to, or none.
fn count_deleted(table: &Table, by: Option<usize>, rows: u64) {
    table.count_use(table.index_of_changes(by), RowUse::Delete, rows);
}

/// The tables of a bound DELETE.
pub(crate) fn delete_tables(bound: &BoundDelete) -> BoundTables {
    match bound {
        BoundDelete::Single(single) => {
            let mut tables = BoundTables::one(&single.table, &single.views);
            single.exprs().for_each(|e| tables.collect_expr(e));
            tables
        }
        BoundDelete::Multi { targets, query, .. } => BoundTables::changing(query, targets.iter().map(|target| &target.table)),
    }
}
