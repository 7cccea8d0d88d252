//! Rows of a partitioned table: each is inserted, found, changed and deleted in its partition.

use std::sync::Arc;

use highkey_storage::{LockMode, LockWaitPolicy};
use highkey_types::{MySqlError, Str, Value};

use super::Parts;
use crate::commit::Change;
use crate::def::IndexKind;
use crate::error;
use crate::insert::{InsertReport, OnDuplicate};
use crate::row::Row;
use crate::scan::KeyRange;
use crate::table::{Table, granted};
use crate::transaction::{Scratch, Transaction};

/// Errors of a row that has no place: no partition takes it, or none of those that the statement names.
const NO_PARTITION: u16 = 1526;
const NOT_IN_NAMED_PARTITIONS: u16 = 1748;

impl Table {
    pub fn is_partitioned(&self) -> bool {
        self.parts.is_some()
    }

    /// Positions of the columns that decide about a row's partition; none of a table without.
    pub fn partitioned_by(&self) -> &[usize] {
        match &self.parts {
            Some(parts) => &parts.chooser.columns,
            None => &[],
        }
    }

    /// Names of the partitions that a scan of these ranges of an index reads, in order: of those that a statement names, if it does. `None`: the table
    /// has no partitions.
    pub fn partitions_read(&self, index: usize, ranges: &[KeyRange]) -> Option<Vec<Str>> {
        let (parts, partitioning) = (self.parts.as_ref()?, self.def.partitioning.as_ref()?);
        let read: Vec<Arc<Table>> = ranges.iter().flat_map(|range| parts.with_range(self, index, range)).collect();
        let is_read = |at: &&usize| read.iter().any(|part| Arc::ptr_eq(part, &parts.tables[**at]));
        Some(parts.selected.iter().filter(is_read).map(|&at| partitioning.partitions[at].name.clone()).collect())
    }

    /// The table as a statement sees it that names partitions: its other rows are not there, and new ones that belong elsewhere are error 1748.
    /// Errors 1735, 1747.
    pub fn with_partitions(self: &Arc<Self>, names: &[String]) -> Result<Arc<Table>, MySqlError> {
        let (Some(parts), Some(partitioning)) = (&self.parts, &self.def.partitioning) else { return Err(error::not_partitioned_for_clause()) };
        let find = |name: &String| partitioning.position(name).ok_or_else(|| error::unknown_partition(name, &self.def.name));
        let mut selected = names.iter().map(find).collect::<Result<Vec<usize>, _>>()?;
        selected.sort_unstable();
        selected.dedup();
        Ok(Arc::new(self.with_parts(Parts { selected: selected.into(), named: true, ..parts.clone() })))
    }

    /// The table without the partitions in which no row of these ranges of the columns that decide (`partitioned_by`, each ascending) can be. What it
    /// writes goes into any of them.
    pub fn with_ranges(self: &Arc<Self>, ranges: &[KeyRange]) -> Arc<Table> {
        let Some(parts) = &self.parts else { return self.clone() };
        let columns: Vec<Option<usize>> = parts.chooser.columns.iter().map(|column| Some(*column)).collect();
        let mut wanted = vec![false; parts.tables.len()];
        for range in ranges {
            match parts.chooser.of_range(&columns, true, range) {
                Some(places) => places.into_iter().for_each(|at| wanted[at] = true),
                None => return self.clone(),
            }
        }
        let selected = parts.selected.iter().copied().filter(|at| wanted[*at]).collect();
        Arc::new(self.with_parts(Parts { selected, ..parts.clone() }))
    }

    /// The partitions as tables of their own, in order: all, whatever a statement names. Empty for a table without.
    pub fn partition_tables(&self) -> &[Arc<Table>] {
        match &self.parts {
            Some(parts) => &parts.tables,
            None => &[],
        }
    }

    /// The partitions in which rows of a range of an index can be, as tables of their own: in order, of those that a statement names or may need. Empty for
    /// a table without.
    pub fn partitions_with(&self, index: usize, range: &KeyRange) -> Vec<Arc<Table>> {
        match &self.parts {
            Some(parts) => parts.with_range(self, index, range),
            None => Vec::new(),
        }
    }

    /// The tables that have trees: this one, or each of its partitions.
    pub(crate) fn own_trees(self: &Arc<Self>) -> &[Arc<Table>] {
        if self.parts.is_some() { self.partition_tables() } else { std::slice::from_ref(self) }
    }

    /// The same, with the names that the storage engine's reports know them by: this one, or each of its partitions.
    pub fn stored_tables(self: &Arc<Self>) -> Vec<(String, Arc<Table>)> {
        match (&self.parts, &self.def.partitioning) {
            (Some(parts), Some(partitioning)) => {
                let name = |at: usize| format!("{}#P#{}", self.def.name, partitioning.partitions[at].name);
                parts.tables.iter().enumerate().map(|(at, part)| (name(at), part.clone())).collect()
            }
            _ => vec![(self.def.name.to_string(), self.clone())],
        }
    }

    /// The partition of a row that a locking read of this table gave, for a change of it. Errors 1526 and 1748, and 1863 for a row that is in another one,
    /// where EXCHANGE PARTITION … WITHOUT VALIDATION may have put it.
    pub(crate) fn part_to_change(&self, txn: &mut Transaction, parts: &Parts, row: &Row) -> Result<Arc<Table>, MySqlError> {
        let at = parts.chooser.partition_of(&row.values())?;
        let mut data = Vec::new();
        let mut has_row = |part: &Table| -> Result<bool, MySqlError> {
            let found = txn.inner().get_latest(part.clustered().id, &row.key, &mut data).map_err(|e| self.failed(e))?;
            Ok(found && data == row.data)
        };
        if !has_row(&parts.tables[at])? {
            if parts.named && !parts.is_selected(at) {
                return Err(error::row_outside_partitions());
            }
            for &other in parts.selected.iter() {
                if has_row(&parts.tables[other])? {
                    return Err(highkey_types::errors::row_in_wrong_partition(&format!("{other}. Correct is {at}")));
                }
            }
        }
        Ok(parts.tables[at].clone())
    }

    /// The partition in which a row belongs that a read of this table gave.
    pub(crate) fn part_of(&self, parts: &Parts, row: &Row) -> Result<Arc<Table>, MySqlError> {
        let at = parts.chooser.partition_of(&row.values())?;
        Ok(parts.tables[at].clone())
    }

    /// That no partition but the one where it belongs has a row with this primary key. Errors 1748 and 1863 as `part_to_change`.
    pub fn check_placed(&self, txn: &mut Transaction, key: &[Value]) -> Result<(), MySqlError> {
        let Some(parts) = &self.parts else { return Ok(()) };
        let mut wanted = Vec::new();
        self.indexes[0].encode_prefix(key, &mut wanted);
        let home = parts.with_key(self, 0, key);
        let mut data = Vec::new();
        for &at in parts.selected.iter() {
            let part = &parts.tables[at];
            if home.iter().any(|home| Arc::ptr_eq(home, part))
                || !txn.inner().get_latest(part.clustered().id, &wanted, &mut data).map_err(|e| self.failed(e))?
            {
                continue;
            }
            let right = parts.chooser.partition_of(&self.layout.values(&data))?;
            if parts.named && !parts.is_selected(right) {
                return Err(error::row_outside_partitions());
            }
            return Err(highkey_types::errors::row_in_wrong_partition(&format!("{at}. Correct is {right}")));
        }
        Ok(())
    }

    /// As `Table::lock_found`: the clustered key alone does not say which partition the row is in.
    pub(crate) async fn lock_found_in_parts(
        &self,
        txn: &mut Transaction,
        parts: &Parts,
        clustered_key: &[u8],
        mode: LockMode,
        policy: LockWaitPolicy,
    ) -> Result<Option<Row>, MySqlError> {
        let mut data = Vec::new();
        for part in parts.selected() {
            if txn.inner().get_latest(part.clustered().id, clustered_key, &mut data).map_err(|e| self.failed(e))?
                && let Some(row) = part.lock_row(txn, clustered_key.to_vec(), mode, policy).await?
            {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// As `Table::insert`.
    pub(crate) async fn insert_into_parts(
        &self,
        txn: &mut Transaction,
        parts: &Parts,
        rows: &[Vec<Value>],
        mode: OnDuplicate,
    ) -> Result<InsertReport, MySqlError> {
        if rows.len() > 1 && self.insert_together(txn, parts, rows).await? {
            return Ok(InsertReport { inserted: rows.len() as u64, ..InsertReport::default() });
        }
        let mut report = InsertReport::default();
        let ignores = matches!(mode, OnDuplicate::Ignore | OnDuplicate::IgnoreOne);
        for (position, row) in rows.iter().enumerate() {
            if mode == OnDuplicate::IgnoreOne && !report.ignored.is_empty() {
                break;
            }
            let part = match parts.for_new(row) {
                Ok(part) => part.clone(),
                Err(homeless) if ignores && is_homeless(&homeless) => {
                    report.ignored.push((position, homeless));
                    continue;
                }
                Err(homeless) if mode == OnDuplicate::Report && is_homeless(&homeless) => {
                    report.orphan = Some((position, homeless));
                    return Ok(report);
                }
                Err(error) => return Err(error),
            };
            let done = part.insert_each(txn, std::slice::from_ref(row), mode).await?;
            report.inserted += done.inserted;
            report.replaced += done.replaced;
            report.ignored.extend(done.ignored.into_iter().map(|(_, error)| (position, error)));
            if let Some(mut duplicate) = done.duplicate {
                duplicate.row = position;
                report.duplicate = Some(duplicate);
                return Ok(report);
            }
        }
        Ok(report)
    }

    /// All rows, partition by partition. False: nothing is in, for one of them has no place or is a duplicate.
    async fn insert_together(&self, txn: &mut Transaction, parts: &Parts, rows: &[Vec<Value>]) -> Result<bool, MySqlError> {
        let mut shares: Vec<(Arc<Table>, Vec<Vec<Value>>)> = Vec::new();
        for row in rows {
            let Ok(part) = parts.for_new(row) else { return Ok(false) };
            match shares.iter_mut().find(|(known, _)| Arc::ptr_eq(known, part)) {
                Some((_, share)) => share.push(row.clone()),
                None => shares.push((part.clone(), vec![row.clone()])),
            }
        }
        let start = txn.inner().savepoint();
        for (part, share) in &shares {
            let mut scratch = std::mem::take(&mut txn.scratch);
            let inserted = part.insert_sorted(txn, share, &mut scratch).await;
            txn.scratch = scratch;
            if !inserted? {
                txn.inner().take_back(&start).map_err(|e| self.failed(e))?;
                return Ok(false);
            }
        }
        if txn.events.is_some() {
            rows.iter().try_for_each(|row| txn.log_change(self, &Change::Insert(row)))?;
        }
        txn.count_rows(&self.state, rows.len() as i64);
        Ok(true)
    }

    /// As `Table::update`: where the new row belongs to another partition it moves.
    pub(crate) async fn update_in_parts(&self, txn: &mut Transaction, parts: &Parts, old: &Row, new: &[Value]) -> Result<bool, MySqlError> {
        let from = self.part_to_change(txn, parts, old)?;
        let to = parts.for_new(new)?.clone();
        if Arc::ptr_eq(&from, &to) {
            return from.update_here(txn, old, new).await;
        }
        txn.breathe(1).await?;
        if let Some(column) = self.auto_increment_column() {
            self.state.auto_increment.note_value(&new[column])?;
        }
        let mut scratch = std::mem::take(&mut txn.scratch);
        let moved = self.move_row(txn, &from, &to, old, new, &mut scratch).await;
        txn.scratch = scratch;
        moved?;
        txn.note_changed(&self.state);
        if txn.events.is_some() {
            txn.log_change(self, &Change::Update(&old.values(), new))?;
        }
        Ok(true)
    }

    /// Into the one partition, out of the other. On an error everything is as before.
    async fn move_row(&self, txn: &mut Transaction, from: &Table, to: &Table, old: &Row, new: &[Value], scratch: &mut Scratch) -> Result<(), MySqlError> {
        let start = txn.inner().savepoint();
        let mut clustered = Vec::with_capacity(old.key.len());
        match to.clustered().kind {
            IndexKind::RowId => clustered.extend_from_slice(&old.key),
            _ => {
                to.clustered().encode(new, &mut clustered);
            }
        }
        let mut data = Vec::with_capacity(old.data.len() + 16);
        self.layout.encode(new, &mut data);
        for index in 0..to.indexes.len() {
            let inserted = if index == 0 {
                to.insert_entry(txn, 0, &clustered, &data).await?
            } else {
                to.indexes[index].entry(new, &clustered, &mut scratch.key, &mut scratch.value);
                to.insert_entry(txn, index, &scratch.key, &scratch.value).await?
            };
            if !inserted {
                txn.inner().take_back(&start).map_err(|e| self.failed(e))?;
                return Err(self.duplicate_entry(index, new));
            }
        }
        let deleted = granted!(from, txn.inner().delete(from.clustered().id, &old.key));
        assert!(deleted, "update is given a row that a locking read of this transaction found");
        for index in 1..from.indexes.len() {
            from.indexes[index].entry_of_row(&self.layout, &old.data, &old.key, &mut scratch.key, &mut scratch.value);
            from.delete_entry(txn, index, &scratch.key).await?;
        }
        Ok(())
    }
}

fn is_homeless(error: &MySqlError) -> bool {
    matches!(error.code, NO_PARTITION | NOT_IN_NAMED_PARTITIONS)
}
