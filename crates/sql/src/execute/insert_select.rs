//! INSERT … SELECT of columns of one table: the copy loop of source 000, without DataFusion and without expressions.
//!
//! Leaf by leaf of a snapshot, into the table in bulk. Between tables of the same columns the rows' bytes are copied; else values are put in their
//! places, and converted only where the column types differ, or dates are there that the mode does not admit. Workers may do it (`super::parallel_insert`).

use std::sync::Arc;

use highkey_table::{Direction, KeyRange, OnDuplicate, RowBatch, RowUse, Stage, Table, TableScan};
use highkey_types::{ColumnType, MySqlError, SqlMode, Str, TypeKind, Value};

use super::Failure;
use super::inserter::{BATCH_ROWS, BULK_CHUNK_BYTES, Inserter};
use super::target::{Target, to_session};
use crate::bind::ROW_KEY;
use crate::plan::{BoundQuery, Hints, RelKind};
use crate::session::Session;

/// A copy without expressions.
pub(crate) struct PlainCopy {
    pub(super) source: Arc<Table>,
    /// What the query calls it.
    pub(super) alias: Str,
    /// (source column, target column, no conversion needed but of dates that the mode does not admit)
    pub(super) columns: Vec<(usize, usize, bool)>,
}

/// The copy that a query into `columns` is, if it is nothing more.
pub(crate) fn plain_copy(query: &BoundQuery, columns: &[usize], target: &Target) -> Option<PlainCopy> {
    if query.into.is_some() || query.locking || query.calc_found_rows || query.rel.fields.len() != columns.len() {
        return None;
    }
    let mut outputs: Vec<usize> = (0..query.rel.fields.len()).collect();
    let mut rel = &query.rel;
    loop {
        match &rel.kind {
            RelKind::Project { input, exprs } => {
                outputs = outputs.iter().map(|&i| exprs[i].as_column()).collect::<Option<_>>()?;
                rel = input;
            }
            RelKind::Scan { table, alias, columns: scanned, lock: None, .. } => {
                let columns = outputs.iter().zip(columns).map(|(&from, &to)| {
                    let from = *scanned.get(from)?;
                    if from == ROW_KEY {
                        return None;
                    }
                    Some((from, to, same_values(&table.columns()[from].ty, &target.columns()[to].ty)))
                });
                return Some(PlainCopy { source: table.clone(), alias: alias.clone(), columns: columns.collect::<Option<_>>()? });
            }
            _ => return None,
        }
    }
}

/// Every stored value of one type is a stored value of the other, unchanged; whether a column may have it is asked of dates (`SqlMode::admits`).
fn same_values(from: &ColumnType, to: &ColumnType) -> bool {
    match (&from.kind, &to.kind) {
        (TypeKind::VarChar(a), TypeKind::VarChar(b)) => a <= b && from.collation.charset == to.collation.charset,
        _ => from.kind == to.kind && from.unsigned == to.unsigned && from.collation.charset == to.collation.charset && from.float_digits == to.float_digits,
    }
}

impl Session {
    pub(crate) async fn copy_rows(&mut self, inserter: &mut Inserter, copy: &PlainCopy, hints: &Hints) -> Result<(), Failure> {
        // What is copied stays what it is until the transaction ends, and is what is there now.
        let latest = self.locks_gaps();
        if latest {
            copy.source.share_range(self.txn(), &KeyRange::all()).await?;
        }
        // A table copied into itself is read under a view of its own, which never sees what this statement writes.
        let own_view = copy.source.id() == inserter.target.table.id() && !self.txn().has_writes();
        let mut view = own_view.then(|| self.state.instance.database().begin(highkey_table::Isolation::RepeatableRead));
        let into_itself = copy.source.id() == inserter.target.table.id() && view.is_none();
        let snapshot = match &mut view {
            Some(view) => view.snapshot(),
            None if latest => self.txn().fresh_snapshot(),
            None => self.txn().snapshot(),
        };
        let progress = self.state.process.progress();
        progress.enter(Stage::CopyingRows, copy.source.row_count_estimate()?);
        let in_bulk = !into_itself && !inserter.tells_first_inserted();
        if in_bulk {
            self.begin_bulk(inserter)?;
            if Box::pin(self.copy_with_workers(inserter, copy, &snapshot, hints)).await? {
                return Ok(());
            }
        }
        let mut scan = copy.source.scan_at(&snapshot, 0, &KeyRange::all(), Direction::Forward)?;
        let mut leaf = RowBatch::new();
        if in_bulk && copy.keeps_bytes(inserter) {
            return self.copy_bytes(inserter, copy, &mut scan).await;
        }
        let mut rows: Vec<Vec<Value>> = Vec::with_capacity(BATCH_ROWS);
        let mut read = 0;
        let mut bytes = 0;
        while scan.next_batch(&mut leaf)? {
            read += leaf.len() as u64;
            progress.add(leaf.len() as u64);
            for i in 0..leaf.len() {
                bytes += leaf.row(i).len();
                match self.copied_row(inserter, copy, |column| leaf.value(i, column)) {
                    Ok(row) => rows.extend(row),
                    Err(e) => return Err(Box::pin(self.fail_behind(inserter, &mut rows, e)).await),
                }
            }
            // A table that must be read whole before it is written to is the rare case of a transaction that wrote before.
            if (rows.len() >= BATCH_ROWS || bytes >= BATCH_BYTES) && !into_itself {
                self.write_rows(inserter, &mut rows, false).await?;
                bytes = 0;
                tokio::task::yield_now().await;
            }
        }
        while rows.len() > 2 * BATCH_ROWS {
            let rest = rows.split_off(BATCH_ROWS);
            self.write_rows(inserter, &mut rows, false).await?;
            rows = rest;
        }
        self.write_rows(inserter, &mut rows, false).await?;
        self.finish_bulk(inserter).await?;
        self.note_read(read);
        copy.source.count_use(None, RowUse::Fetch, read);
        Ok(())
    }

    /// A row of the target with values of the source's columns, or none if it is left out (IGNORE).
    fn copied_row(&mut self, inserter: &mut Inserter, copy: &PlainCopy, of: impl Fn(usize) -> Value) -> Result<Option<Vec<Value>>, MySqlError> {
        let mode = self.state.config.sql_mode;
        let mut row = Vec::new();
        inserter.start_row(&mut row);
        for &(from, to, same) in &copy.columns {
            let mut value = of(from);
            if same && mode.admits(&value) {
                row[to] = value;
                continue;
            }
            if matches!(copy.source.columns()[from].ty.kind, TypeKind::Timestamp(_)) {
                to_session(&mut value, &self.state.config.time_zone);
            }
            inserter.assign(&mut self.state, &mut row, to, value)?;
        }
        Ok(inserter.finish_row(&mut self.state, &mut row)?.then_some(row))
    }

    /// Rows whose bytes are the same in both tables, but for a generated number. Those with a date that the mode does not admit are made of their values.
    async fn copy_bytes(&mut self, inserter: &mut Inserter, copy: &PlainCopy, scan: &mut TableScan) -> Result<(), Failure> {
        let layout = inserter.target.table.layout().clone();
        self.lock_auto_increment(inserter).await?;
        let generated = inserter.generated_column();
        let mode = self.state.config.sql_mode;
        let dates = copy.checked_dates(&mode);
        let mut leaf = RowBatch::new();
        while scan.next_batch(&mut leaf)? {
            for i in 0..leaf.len() {
                if !dates.iter().all(|&column| layout.is_admitted(leaf.row(i), column, &mode)) {
                    match self.copied_row(inserter, copy, |column| leaf.value(i, column)) {
                        Ok(None) => {}
                        Ok(Some(row)) => Box::pin(self.write_rows(inserter, &mut vec![row], false)).await?,
                        Err(e) => return Err(Box::pin(self.fail_behind(inserter, &mut Vec::new(), e)).await),
                    }
                    continue;
                }
                let number = match generated.map(|column| (column, inserter.next_number(&mut self.state))) {
                    Some((column, Ok(number))) => Some((column, number)),
                    Some((_, Err(e))) => return Err(Box::pin(self.fail_behind(inserter, &mut Vec::new(), e)).await),
                    None => None,
                };
                inserter.row += 1;
                self.push_encoded(inserter, |out| {
                    let start = out.len();
                    out.extend_from_slice(leaf.row(i));
                    if let Some((column, number)) = number {
                        let value = if layout.types()[column].unsigned { Value::UInt(number) } else { Value::Int(number as i64) };
                        layout.set_fixed(&mut out[start..], column, &value);
                    }
                });
                // The rows of one leaf may have values of any length elsewhere.
                if inserter.bulk_bytes() >= BULK_CHUNK_BYTES {
                    self.flush_bulk(inserter, BULK_CHUNK_BYTES).await?;
                }
            }
            self.state.process.progress().add(leaf.len() as u64);
            self.note_read(leaf.len() as u64);
            scan.table().count_use(None, RowUse::Fetch, leaf.len() as u64);
            tokio::task::yield_now().await;
        }
        self.finish_bulk(inserter).await
    }
}

impl PlainCopy {
    /// Rows of the source are put into the table in bulk as they are; only a generated number may be put in.
    fn keeps_bytes(&self, inserter: &Inserter) -> bool {
        let generated = inserter.generated_column();
        inserter.mode != OnDuplicate::Report
            && inserter.constants().is_some()
            && inserter.target.table.auto_increment_column().is_none_or(|auto| generated == Some(auto))
            && self.same_rows(inserter)
    }

    /// The source's columns whose values are not all that another column of their type may have in this mode.
    pub(super) fn checked_dates(&self, mode: &SqlMode) -> Vec<usize> {
        let is_date = |column: &usize| matches!(self.source.columns()[*column].ty.kind, TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_));
        if mode.checks_dates() { self.columns.iter().map(|&(from, ..)| from).filter(is_date).collect() } else { Vec::new() }
    }

    /// Every column goes to its own place in a table of the same columns, unchanged; only a generated number may be put in.
    pub(super) fn same_rows(&self, inserter: &Inserter) -> bool {
        let (from, to) = (self.source.columns(), inserter.target.columns());
        let generated = inserter.generated_column();
        from.len() == to.len()
            && self.columns.iter().all(|&(a, b, same)| a == b && same && (to[b].nullable || !from[a].nullable))
            && (0..to.len()).all(|i| {
                same_values(&from[i].ty, &to[i].ty) && (generated == Some(i) || self.columns.iter().any(|&(a, ..)| a == i))
            })
    }
}

/// A batch of wide rows is written before it has a thousand.
pub(super) const BATCH_BYTES: usize = 1 << 20;
