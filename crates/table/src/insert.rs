//! Inserting rows: batches sorted by key, one descent a leaf; row by row once a duplicate is met.

use std::sync::Arc;

use highkey_storage::{LockMode, LockWaitPolicy, Locked, SortedRows};
use highkey_types::{MySqlError, Value};

use crate::commit::Change;
use crate::def::IndexKind;
use crate::index;
use crate::row::Row;
use crate::table::{Table, granted};
use crate::transaction::{Scratch, StatementSavepoint, Transaction};

/// What a duplicate key does to an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Error 1062. The caller rolls its statement back; rows before the duplicate are in.
    Error,
    /// INSERT IGNORE: the row is left out.
    Ignore,
    /// The same of rows that get other numbers if one before them is left out: as `Ignore`, but the rows behind the first that is left out are not in. Call
    /// again from the next one.
    IgnoreOne,
    /// REPLACE: the rows in the way are deleted.
    Replace,
    /// The same of rows whose AUTO_INCREMENT numbers were generated: one that has such a number already stays, error 1062. At the end of the column's range it
    /// would be the same row again and again.
    ReplaceNumbered,
    /// ON DUPLICATE KEY UPDATE: stop, and give the row in the way, locked.
    Report,
}

impl OnDuplicate {
    /// REPLACE.
    pub(crate) fn replaces(self) -> bool {
        matches!(self, OnDuplicate::Replace | OnDuplicate::ReplaceNumbered)
    }
}

/// What an insert did.
#[derive(Clone, Debug, Default)]
pub struct InsertReport {
    /// Rows that are in.
    pub inserted: u64,
    /// `Ignore`, `IgnoreOne`: positions of the rows left out, and the error each would have been.
    pub ignored: Vec<(usize, MySqlError)>,
    /// `Replace`: rows deleted to make room.
    pub replaced: u64,
    /// `Report`: rows before this one are in, it and those after it are not. Call again from the next one.
    pub duplicate: Option<DuplicateRow>,
    /// `Report`: rows before this one are in, it has no parent (error 1452) or no partition (1526, 1748). Call again from the next one, if it may be left out.
    pub orphan: Option<(usize, MySqlError)>,
}

/// A row that was in the way.
#[derive(Clone, Debug)]
pub struct DuplicateRow {
    /// Position of the new row.
    pub row: usize,
    /// The index in which they meet.
    pub index: usize,
    /// Locked exclusively: it may be updated or deleted.
    pub existing: Row,
}

/// Entries of words that are collected before they go into a FULLTEXT index.
const WORDS_BYTES: usize = 1 << 20;
/// The error of a row without parent.
const NO_PARENT: u16 = 1452;

/// Why a row did not go in.
struct Conflict {
    index: usize,
}

impl Table {
    /// Inserts rows of all columns, in column order, with values of the columns' types. Errors: 1062 (`OnDuplicate::Error`), 1114, 1118,
    /// 1205, 1213, 1317, 1452 (`Error`, `Replace`), 1526, 1690, 1748; with `Replace` those of `delete`.
    pub async fn insert(
        self: &Arc<Self>,
        txn: &mut Transaction,
        rows: &[Vec<Value>],
        mode: OnDuplicate,
    ) -> Result<InsertReport, MySqlError> {
        self.note_auto_increment(rows)?;
        txn.breathe(rows.len()).await?;
        if let Some(parts) = &self.parts {
            return self.insert_into_parts(txn, parts, rows, mode).await;
        }
        if rows.len() > 1 && self.may_go_together(txn, rows).await? {
            let start = txn.inner().savepoint();
            let mut scratch = std::mem::take(&mut txn.scratch);
            let inserted = self.insert_sorted(txn, rows, &mut scratch).await;
            txn.scratch = scratch;
            if inserted? {
                if txn.events.is_some() {
                    rows.iter().try_for_each(|row| txn.log_change(self, &Change::Insert(row)))?;
                }
                txn.count_rows(&self.state, rows.len() as i64);
                return Ok(InsertReport { inserted: rows.len() as u64, ..InsertReport::default() });
            }
            // Some row meets another one. Which one is the first in the statement's order, and what becomes of it,
            // is found out row by row.
            txn.inner().take_back(&start).map_err(|e| self.failed(e))?;
        }
        self.insert_each(txn, rows, mode).await
    }

    /// False if foreign keys make the rows' order matter, or if one has no parent.
    async fn may_go_together(&self, txn: &mut Transaction, rows: &[Vec<Value>]) -> Result<bool, MySqlError> {
        Ok(!self.checks_parents(txn) || !self.references_itself() && Box::pin(self.have_parents(txn, rows)).await?)
    }

    fn note_auto_increment(&self, rows: &[Vec<Value>]) -> Result<(), MySqlError> {
        if let Some(column) = self.auto_increment_column() {
            for row in rows {
                self.state.auto_increment.note_value(&row[column])?;
            }
        }
        Ok(())
    }

    /// All rows, index by index, each in key order. False if any is a duplicate; some rows may then be in.
    pub(crate) async fn insert_sorted(
        &self,
        txn: &mut Transaction,
        rows: &[Vec<Value>],
        scratch: &mut Scratch,
    ) -> Result<bool, MySqlError> {
        // Clustered keys, which the entries of all indexes need, in statement order.
        let Scratch { arena, spans, order, sorted, key, value, .. } = scratch;
        arena.clear();
        spans.clear();
        let mut row_id = match self.clustered().kind {
            IndexKind::RowId => Some(txn.take_row_ids(&self.state, rows.len() as u64)?),
            _ => None,
        };
        for row in rows {
            let start = arena.len() as u32;
            match &mut row_id {
                Some(id) => {
                    arena.extend_from_slice(&id.to_be_bytes());
                    *id += 1;
                }
                None => {
                    self.clustered().encode(row, arena);
                }
            }
            spans.push((start, arena.len() as u32));
        }
        let clustered = |row: usize| &arena[spans[row].0 as usize..spans[row].1 as usize];

        order.clear();
        order.extend(0..rows.len() as u32);
        if !(1..rows.len()).all(|i| clustered(i - 1) < clustered(i)) {
            order.sort_unstable_by(|&a, &b| clustered(a as usize).cmp(clustered(b as usize)));
            if order.windows(2).any(|w| clustered(w[0] as usize) == clustered(w[1] as usize)) {
                return Ok(false);
            }
        }
        sorted.clear();
        for &row in order.iter() {
            value.clear();
            self.layout.encode(&rows[row as usize], value);
            sorted.push(clustered(row as usize), value);
        }
        if self.insert_run(txn, 0, sorted).await?.is_some() {
            return Ok(false);
        }

        let mut entries = Vec::new();
        let mut entry_spans: Vec<(u32, u32, u32)> = Vec::with_capacity(rows.len());
        for index in 1..self.indexes.len() {
            let codec = &self.indexes[index];
            entries.clear();
            entry_spans.clear();
            for (i, row) in rows.iter().enumerate() {
                codec.for_each_entry(row, clustered(i), key, value, |key, value| {
                    let start = entries.len() as u32;
                    entries.extend_from_slice(key);
                    let middle = entries.len() as u32;
                    entries.extend_from_slice(value);
                    entry_spans.push((start, middle, entries.len() as u32));
                });
                // Rows have any number of words, and no two entries of words meet.
                if codec.is_full_text() && entries.len() >= WORDS_BYTES {
                    self.insert_spans(txn, index, &entries, &mut entry_spans, sorted).await?;
                    entries.clear();
                    entry_spans.clear();
                }
            }
            if !self.insert_spans(txn, index, &entries, &mut entry_spans, sorted).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Entries of an index, each by where its key and its value begin in `entries` and where that ends, in key order. False if any is a duplicate; some may
    /// then be in.
    async fn insert_spans(
        &self,
        txn: &mut Transaction,
        index: usize,
        entries: &[u8],
        spans: &mut [(u32, u32, u32)],
        sorted: &mut SortedRows,
    ) -> Result<bool, MySqlError> {
        let key_of = |s: &(u32, u32, u32)| &entries[s.0 as usize..s.1 as usize];
        spans.sort_unstable_by(|a, b| key_of(a).cmp(key_of(b)));
        if spans.windows(2).any(|w| key_of(&w[0]) == key_of(&w[1])) {
            return Ok(false);
        }
        sorted.clear();
        for span in spans.iter() {
            sorted.push(key_of(span), &entries[span.1 as usize..span.2 as usize]);
        }
        Ok(self.insert_run(txn, index, sorted).await?.is_none())
    }

    pub(crate) async fn insert_each(
        self: &Arc<Self>,
        txn: &mut Transaction,
        rows: &[Vec<Value>],
        mode: OnDuplicate,
    ) -> Result<InsertReport, MySqlError> {
        let mut report = InsertReport::default();
        let ignores = matches!(mode, OnDuplicate::Ignore | OnDuplicate::IgnoreOne);
        for (position, row) in rows.iter().enumerate() {
            if mode == OnDuplicate::IgnoreOne && !report.ignored.is_empty() {
                break;
            }
            txn.breathe(1).await?;
            // Of a row that takes the place of others and then cannot go in nothing stays.
            let mut before_row: Option<StatementSavepoint> = None;
            loop {
                let mut scratch = std::mem::take(&mut txn.scratch);
                let outcome = self.insert_row(txn, row, mode, &mut scratch).await;
                txn.scratch = scratch;
                let outcome = match outcome {
                    Err(orphan) if orphan.code == NO_PARENT && ignores => {
                        report.ignored.push((position, orphan));
                        break;
                    }
                    Err(orphan) if orphan.code == NO_PARENT && mode == OnDuplicate::Report => {
                        report.orphan = Some((position, orphan));
                        return Ok(report);
                    }
                    Err(e) => {
                        before_row.map_or(Ok(()), |before| txn.rollback_to_statement(&before))?;
                        return Err(e);
                    }
                    Ok(outcome) => outcome,
                };
                let Some(conflict) = outcome else {
                    report.inserted += 1;
                    txn.count_rows(&self.state, 1);
                    txn.log_change(self, &Change::Insert(row))?;
                    break;
                };
                let met = match mode {
                    OnDuplicate::ReplaceNumbered if self.begins_with_number(conflict.index) => OnDuplicate::Error,
                    mode => mode,
                };
                match met {
                    // The row in the way stays locked, so that the answer stays true. None: it went away while we waited for it; try again.
                    OnDuplicate::Error | OnDuplicate::Ignore | OnDuplicate::IgnoreOne if !self.share_conflicting(txn, conflict.index, row).await? => {}
                    OnDuplicate::Error => return Err(self.duplicate_entry(conflict.index, row)),
                    OnDuplicate::Ignore | OnDuplicate::IgnoreOne => {
                        report.ignored.push((position, self.duplicate_entry(conflict.index, row)));
                        break;
                    }
                    OnDuplicate::Replace | OnDuplicate::ReplaceNumbered => {
                        if let Some(existing) = self.lock_conflicting(txn, conflict.index, row).await? {
                            // MySQL writes over a row that is met in the last unique index, and so finds that there is nothing to change.
                            if self.is_same_in_last_key(txn, conflict.index, &existing, row) {
                                report.inserted += 1;
                                break;
                            }
                            let before = before_row.get_or_insert_with(|| txn.statement_savepoint());
                            if let Err(e) = self.delete(txn, &existing).await {
                                txn.rollback_to_statement(before)?;
                                return Err(e);
                            }
                            report.replaced += 1;
                        }
                    }
                    OnDuplicate::Report => {
                        // None: the row went away while we waited for it; try again.
                        if let Some(existing) = self.lock_conflicting(txn, conflict.index, row).await? {
                            let duplicate = DuplicateRow { row: position, index: conflict.index, existing };
                            report.duplicate = Some(duplicate);
                            return Ok(report);
                        }
                    }
                }
            }
        }
        Ok(report)
    }

    /// One row into all indexes. On a conflict nothing of it stays.
    async fn insert_row(&self, txn: &mut Transaction, row: &[Value], mode: OnDuplicate, scratch: &mut Scratch) -> Result<Option<Conflict>, MySqlError> {
        let start = txn.inner().savepoint();
        let checks_parents = self.checks_parents(txn);
        let Scratch { arena: clustered, key, value, .. } = scratch;
        clustered.clear();
        match self.clustered().kind {
            IndexKind::RowId => {
                let id = txn.take_row_ids(&self.state, 1)?;
                clustered.extend_from_slice(&id.to_be_bytes());
            }
            _ => {
                self.clustered().encode(row, clustered);
            }
        }
        value.clear();
        self.layout.encode(row, value);
        if checks_parents {
            Box::pin(self.check_parents(txn, row, 0, None)).await?;
        }
        if !self.insert_entry(txn, 0, clustered, value).await? {
            if checks_parents {
                Box::pin(self.check_other_keys(txn, row, 0, mode)).await?;
            }
            return Ok(Some(Conflict { index: 0 }));
        }
        for index in 1..self.indexes.len() {
            if checks_parents && let Err(orphan) = Box::pin(self.check_parents(txn, row, index, None)).await {
                txn.inner().take_back(&start).map_err(|e| self.failed(e))?;
                return Err(orphan);
            }
            if self.indexes[index].is_full_text() {
                let words = self.indexes[index].words_of(row);
                Box::pin(self.insert_words(txn, index, words, clustered)).await?;
                continue;
            }
            self.indexes[index].entry(row, clustered, key, value);
            if !self.insert_entry(txn, index, key, value).await? {
                txn.inner().take_back(&start).map_err(|e| self.failed(e))?;
                if checks_parents {
                    Box::pin(self.check_other_keys(txn, row, index, mode)).await?;
                }
                return Ok(Some(Conflict { index }));
            }
        }
        Ok(None)
    }

    /// Locks what an INSERT meets in `index` against changes: the row, or the entry of a secondary index (not its row as well: who changes the row
    /// has it and then comes to the entry). False: it is gone.
    async fn share_conflicting(&self, txn: &mut Transaction, index: usize, row: &[Value]) -> Result<bool, MySqlError> {
        let codec = &self.indexes[index];
        let mut key = Vec::new();
        codec.encode(row, &mut key);
        let found = granted!(self, txn.inner().lock(codec.id, &key, LockMode::Shared, LockWaitPolicy::Wait));
        if index > 0 {
            txn.inner().lock_gap_before(codec.id, &key, LockMode::Shared).map_err(|e| self.failed(e))?;
        }
        Ok(matches!(found, Locked::Yes(Some(_))))
    }

    /// A row that meets another one in an index: REPLACE and ON DUPLICATE KEY UPDATE look at the unique indexes behind it as well, as in
    /// InnoDB, and so at the parents that go with those. Error 1452.
    async fn check_other_keys(&self, txn: &mut Transaction, row: &[Value], index: usize, mode: OnDuplicate) -> Result<(), MySqlError> {
        if mode.replaces() || mode == OnDuplicate::Report {
            for other in (index + 1..self.indexes.len()).filter(|other| self.indexes[*other].is_unique()) {
                self.check_parents(txn, row, other, None).await?;
            }
        }
        Ok(())
    }

    /// The AUTO_INCREMENT column is the first of the index.
    pub fn begins_with_number(&self, index: usize) -> bool {
        let first = self.def.indexes[index].parts.first();
        first.is_some_and(|part| Some(part.column) == self.auto_increment_column())
    }

    /// The row in the way is the new one, byte for byte, and no other unique index is left in which the new one could meet another.
    pub fn is_same_in_last_key(&self, txn: &Transaction, index: usize, existing: &Row, row: &[Value]) -> bool {
        if self.is_referenced(txn) || self.indexes[index + 1..].iter().any(index::IndexCodec::is_unique) {
            return false;
        }
        let mut data = Vec::with_capacity(existing.data.len());
        self.layout.encode(row, &mut data);
        data == existing.data
    }

    /// Locks the row that has the key of `row` in `index`, and in a secondary index the gap before it.
    async fn lock_conflicting(
        &self,
        txn: &mut Transaction,
        index: usize,
        row: &[Value],
    ) -> Result<Option<Row>, MySqlError> {
        let mut key = Vec::new();
        self.indexes[index].encode(row, &mut key);
        if index > 0 {
            // Our own insert met this entry, so its owner has committed or is this transaction.
            let id = self.indexes[index].id;
            let entry = match granted!(self, txn.inner().lock(id, &key, LockMode::Exclusive, LockWaitPolicy::Wait)) {
                Locked::Yes(Some(entry)) => entry,
                _ => return Ok(None),
            };
            txn.inner().lock_gap_before(id, &key, LockMode::Exclusive).map_err(|e| self.failed(e))?;
            key = index::clustered_key(&key, &entry).ok_or_else(|| self.corrupt(index))?.to_vec();
        }
        self.lock_row(txn, key, LockMode::Exclusive, LockWaitPolicy::Wait).await
    }
}
