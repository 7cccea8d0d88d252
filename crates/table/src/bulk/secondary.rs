//! The secondary indexes of a bulk insert, when the rows are in.

use std::collections::HashSet;

use highkey_storage::{BatchRows, Interrupt, Load, LoadTxn, Loaded, Progress, SealedLoad, SharedTxn, SortedRows, Txn};
use highkey_types::{MySqlError, errors};

use super::distinct::FirstDuplicate;
use super::run::{Item, Run};
use super::runs::{Runs, scratch};
use super::threads::side_by_side;
use super::{BATCH_ROWS, BulkInsert, Others};
use crate::index::{IndexCodec, clustered_key};
use crate::insert::OnDuplicate;
use crate::table::Table;
use crate::transaction::Transaction;

/// Stands for the place in the statement of entries that were made of a row which has come out of several.
const OF_CONTESTED: u64 = u64::MAX;

impl BulkInsert {
    /// Several rows have this clustered key.
    pub(super) fn note_contested(&mut self, key: &[u8]) {
        if self.table.indexes.iter().any(IndexCodec::is_full_text) && !self.contested.contains(key) {
            self.contested.insert(key.to_vec());
        }
    }

    /// Adds the words of the rows that stayed of several with one key. The words that all of those brought are left out: to ask a row for its words for each of
    /// them would take the square of their number.
    pub(super) fn add_words_of_contested(&self, txn: &mut Transaction, indexes: &mut [Runs]) -> Result<(), MySqlError> {
        if self.contested.is_empty() {
            return Ok(());
        }
        let table = &self.table;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for (codec, runs) in table.indexes.iter().zip(indexes).filter(|(codec, _)| codec.is_full_text()) {
            let mut run = Run::default();
            for (done, clustered) in self.contested.iter().enumerate() {
                if done % BATCH_ROWS == 0 {
                    txn.check_interrupt()?;
                }
                let mut row = Vec::new();
                if !txn.inner().get_latest(table.clustered().id, clustered, &mut row).map_err(|e| table.failed(e))? {
                    return Err(table.corrupt(0));
                }
                codec.for_each_entry_of_row(&table.layout, &row, clustered, &mut key, &mut value, |key, value| {
                    run.add(key, value, OF_CONTESTED);
                });
                if run.bytes() > self.memory {
                    run.sort();
                    runs.memory.push(std::mem::take(&mut run));
                    runs.spill()?;
                }
            }
            run.sort();
            runs.memory.push(run);
        }
        Ok(())
    }

    /// Builds the secondary indexes side by side; those that are not empty any more get their entries in batches.
    pub(super) async fn load_secondaries(&mut self, txn: &mut Transaction, indexes: &[Runs]) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let mut loads = Vec::new();
        for (index, codec) in table.indexes.iter().enumerate().skip(1) {
            if let Some(load) = txn.inner().load(codec.id).map_err(|e| table.failed(e))? {
                loads.push((index, load));
            }
        }
        let empty: Vec<usize> = loads.iter().map(|(index, _)| *index).collect();
        let built = table.engine.blocking(|| match self.build_secondaries(txn, loads, indexes) {
            Ok(loads) => Ok(txn.inner().attach(loads).map_err(|e| table.failed(e))? != Loaded::NotEmpty),
            Err(Unbuilt::Failed(error)) => Err(error),
            // The first of one index; another index may have one of an earlier row.
            Err(Unbuilt::Duplicate { .. }) => Err(self.first_duplicate(txn, indexes, None)),
        })?;
        for (index, runs) in indexes.iter().enumerate().skip(1) {
            if !built || !empty.contains(&index) {
                self.insert_secondary(txn, index, runs).await?;
            }
        }
        Ok(())
    }

    /// Builds the secondary indexes beside a clustered one that has all its rows, and attaches all of them. If one is not empty any more nothing is loaded, and the rows of
    /// the clustered one come back; of those that `indexes` has, nothing.
    pub(super) fn attach_with(&mut self, txn: &mut Transaction, load: Load, others: Others, indexes: &[Runs]) -> Result<Option<Runs>, MySqlError> {
        let table = self.table.clone();
        let streamed = indexes[0].memory.is_empty() && indexes[0].spilled.is_empty();
        let sealed = load.seal(txn.inner()).map_err(|e| table.failed(e))?;
        let mut back = self.returned();
        let mut keep = |key: &[u8], value: &[u8]| {
            if streamed {
                back.push(key, value);
            }
        };
        let built = match self.build_secondaries(txn, others, indexes) {
            Ok(built) => built,
            Err(Unbuilt::Failed(error)) => return Err(error),
            Err(Unbuilt::Duplicate { .. }) => return Err(self.first_duplicate(txn, indexes, streamed.then_some(&sealed))),
        };
        let loads = std::iter::once(sealed).chain(built).collect();
        let attached = txn.inner().attach_or_give_back(loads, &mut keep).map_err(|e| table.failed(e))?;
        if attached == Loaded::NotEmpty { back.into_runs().map(Some) } else { Ok(None) }
    }

    /// Makes their pages.
    fn build_secondaries(&self, txn: &mut Transaction, loads: Others, indexes: &[Runs]) -> Result<Vec<SealedLoad>, Unbuilt> {
        let (interrupt, progress) = (txn.interrupt(), txn.progress.clone());
        let table = &self.table;
        let kept = self.keeps_all_rows();
        let build = SecondaryBuild { table, mode: self.mode, kept, contested: &self.contested, interrupt: &interrupt, progress: &progress };
        // To look for the row of every entry is the transaction's work, which only one thread can do at a time.
        let threads = if kept { self.threads } else { 1 };
        let shared = SharedTxn::new(txn.inner());
        side_by_side(threads, loads, |_, (index, load), in_vain| build.run(&shared, index, load, &indexes[index], in_vain))
    }

    /// With IGNORE and REPLACE there are no unique secondary indexes here, but their runs may have entries of rows that did not stay.
    fn keeps_all_rows(&self) -> bool {
        self.report.ignored == 0 && self.report.replaced == 0
    }

    /// The entries of a secondary index in batches.
    async fn insert_secondary(&mut self, txn: &mut Transaction, index: usize, runs: &Runs) -> Result<(), MySqlError> {
        let table = self.table.clone();
        let kept = self.keeps_all_rows();
        let mut merge = runs.merge()?;
        let mut sorted = SortedRows::new();
        // The entry before, which may be the last of another batch.
        let mut last: Vec<u8> = Vec::new();
        loop {
            sorted.clear();
            while sorted.len() < BATCH_ROWS {
                let Some(item) = merge.next().map_err(scratch)? else { break };
                let repeated = last.as_slice() == item.key;
                if repeated && self.mode != OnDuplicate::Error {
                    continue;
                }
                if repeated {
                    return Err(table.duplicate_of_entry(txn, index, item.key, item.value));
                }
                if kept || table.stays(txn.inner(), index, &item, &self.contested)? {
                    sorted.push(item.key, item.value);
                    last.clear();
                    last.extend_from_slice(item.key);
                }
            }
            if sorted.is_empty() {
                return Ok(());
            }
            txn.check_interrupt()?;
            if let Some(at) = table.insert_run(txn, index, &sorted).await? {
                return Err(table.duplicate_of_entry(txn, index, sorted.key(at), sorted.value(at)));
            }
        }
    }
}

/// Why the pages of an index were not made.
pub(crate) enum Unbuilt {
    /// An entry whose key another one has.
    Duplicate { key: Vec<u8>, value: Vec<u8> },
    Failed(MySqlError),
}

impl From<MySqlError> for Unbuilt {
    fn from(error: MySqlError) -> Unbuilt {
        Unbuilt::Failed(error)
    }
}

/// Makes the pages of a secondary index from sorted runs, in any thread.
struct SecondaryBuild<'a> {
    table: &'a Table,
    mode: OnDuplicate,
    /// As `BulkInsert::keeps_all_rows`.
    kept: bool,
    /// As `BulkInsert::contested`.
    contested: &'a HashSet<Vec<u8>>,
    interrupt: &'a Interrupt,
    progress: &'a Progress,
}

impl SecondaryBuild<'_> {
    /// `in_vain`: nobody wants the pages any more.
    fn run(&self, mut txn: &SharedTxn<'_>, index: usize, mut load: Load, runs: &Runs, in_vain: &dyn Fn() -> bool) -> Result<SealedLoad, Unbuilt> {
        let failed = |e| Unbuilt::Failed(self.table.failed(e));
        std::thread::scope(|scope| -> Result<(), Unbuilt> {
            let mut merge = runs.merge_ahead(scope)?;
            let mut first = FirstDuplicate::default();
            let mut last: Vec<u8> = Vec::new();
            let mut count = 0usize;
            while let Some(item) = merge.next().map_err(scratch)? {
                count += 1;
                if count % BATCH_ROWS == 0 {
                    self.check_wanted(in_vain)?;
                    self.progress.add(BATCH_ROWS as u64);
                }
                if !self.kept && !txn.with(|txn| self.table.stays(txn, index, &item, self.contested))? {
                    continue;
                }
                if item.key == last.as_slice() {
                    // With IGNORE and REPLACE: of rows that are alike, one of which stayed.
                    if self.mode == OnDuplicate::Error {
                        first.note(&item);
                    }
                    continue;
                }
                last.clear();
                last.extend_from_slice(item.key);
                if first.row.is_none() {
                    load.push(&mut txn, item.key, item.value).map_err(failed)?;
                }
            }
            match first.row {
                Some(_) => Err(Unbuilt::Duplicate { key: first.entry.0, value: first.entry.1 }),
                None => Ok(()),
            }
        })?;
        self.check_wanted(in_vain)?;
        load.seal(&mut txn).map_err(failed)
    }

    fn check_wanted(&self, in_vain: &dyn Fn() -> bool) -> Result<(), MySqlError> {
        if self.interrupt.is_raised() || in_vain() { Err(errors::query_interrupted()) } else { Ok(()) }
    }
}

impl Table {
    /// Whether an entry that came with a row is one of the row that its clustered key has now. `contested`: the keys that several rows came with.
    fn stays(&self, txn: &mut Txn, index: usize, item: &Item<'_>, contested: &HashSet<Vec<u8>>) -> Result<bool, MySqlError> {
        if !self.indexes[index].is_full_text() {
            return self.is_entry_of_row(txn, index, item.key, item.value);
        }
        let clustered = clustered_key(item.key, item.value).ok_or_else(|| self.corrupt(index))?;
        Ok(item.row == OF_CONTESTED || !contested.contains(clustered))
    }

    /// Whether a secondary entry is one of the row that its clustered key has now.
    fn is_entry_of_row(&self, txn: &mut Txn, index: usize, key: &[u8], value: &[u8]) -> Result<bool, MySqlError> {
        let clustered = clustered_key(key, value).ok_or_else(|| self.corrupt(index))?;
        let mut row = Vec::new();
        if !txn.get_latest(self.clustered().id, clustered, &mut row).map_err(|e| self.failed(e))? {
            return Ok(false);
        }
        let (mut entry, mut rest) = (Vec::new(), Vec::new());
        self.indexes[index].entry_of_row(&self.layout, &row, clustered, &mut entry, &mut rest);
        Ok(entry == key)
    }

    /// Error 1062 for an entry of a unique index whose key another one has.
    pub(super) fn duplicate_of_entry(&self, txn: &mut Transaction, index: usize, key: &[u8], value: &[u8]) -> MySqlError {
        let mut row = Vec::new();
        let found = clustered_key(key, value).map(|clustered| txn.inner().get_latest(self.clustered().id, clustered, &mut row));
        match found {
            Some(Ok(true)) => self.duplicate_entry(index, &self.layout.values(&row)),
            _ => self.corrupt(index),
        }
    }
}
