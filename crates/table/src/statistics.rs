//! Statistics: row counts, sizes, how many distinct values index prefixes have, and what the trees' levels hold.

use std::ops::Bound;
use std::sync::Arc;

use highkey_storage::{Bounds, Direction, Isolation, LeafRows, LevelReport, TreeCounters};
use highkey_types::{MySqlError, errors, key_part_len};
use serde::{Deserialize, Serialize};

use crate::catalog::keys;
use crate::error;
use crate::high_water::put;
use crate::index::IndexCodec;
use crate::partition::Parts;
use crate::table::Table;
use crate::transaction::{Snapshot, Transaction};

/// Leaves of each index that a sample reads, twice as many at most, spread over the index.
const SAMPLE_LEAVES: usize = 20;
/// Keys from above the leaves that it looks at.
const SAMPLE_CUTS: usize = 256;

/// Estimates of one table, as of the last ANALYZE (or the first question for them).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Statistics {
    pub rows: u64,
    /// For each index, for each number of leading parts: distinct values. Empty for a hidden row id.
    pub cardinality: Vec<Vec<u64>>,
    /// Average bytes of an encoded row.
    pub row_bytes: u64,
    /// Bytes of the clustered index, estimated.
    pub data_length: u64,
    /// Bytes of the secondary indexes, estimated.
    pub index_length: u64,
}

impl Statistics {
    /// As the catalog has them.
    pub(crate) fn record(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("statistics have string keys only")
    }
}

/// What is known of one index without reading all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSummary {
    /// Distinct keys, estimated by the statistics; of a hidden row id the rows.
    pub key_values: u64,
    /// Leaf pages, estimated now.
    pub leaf_pages: u64,
    /// Pages of the extents the index owns, in use or not, and those in use: the tree's, and those of long values.
    pub size_pages: u64,
    pub used_pages: u64,
    /// The page where the tree begins.
    pub root_page: u64,
    /// What the tree counted since the server used it first.
    pub counters: TreeCounters,
}

impl Table {
    /// Committed rows, nearly: exact between clean shutdowns, an estimate of the storage engine after a crash.
    pub fn row_count_estimate(&self) -> Result<u64, MySqlError> {
        if let Some(rows) = self.state.rows() {
            return Ok(rows);
        }
        self.estimate_rows()
    }

    /// The storage engine's estimate of the rows in the table's trees.
    fn estimate_rows(&self) -> Result<u64, MySqlError> {
        match &self.parts {
            Some(parts) => parts.tables.iter().map(|part| part.estimate_rows()).sum(),
            None => self.engine.estimate_rows(self.clustered().id).map_err(|e| self.failed(e)),
        }
    }

    /// Rows and sizes of the table's trees as they are now, without distinct values: what information_schema tells of a partition.
    pub fn sizes(&self) -> Result<Statistics, MySqlError> {
        let rows = self.estimate_rows()?;
        let data_length = self.tree_bytes(0)?;
        let index_length = (1..self.indexes.len()).map(|index| self.tree_bytes(index)).sum::<Result<u64, MySqlError>>()?;
        Ok(Statistics { rows, data_length, index_length, row_bytes: data_length / rows.max(1), ..Statistics::default() })
    }

    /// The statistics as they were last asked for; `None` before that.
    pub fn cached_statistics(&self) -> Option<Arc<Statistics>> {
        let cached = self.state.statistics.lock().clone();
        cached.filter(|s| s.cardinality.len() == self.indexes.len())
    }

    /// The present statistics; sampled now if there are none, or if the table has more than doubled or halved since.
    pub fn statistics(self: &Arc<Self>, txn: &mut Transaction) -> Result<Arc<Statistics>, MySqlError> {
        let rows = self.row_count_estimate()?;
        match self.cached_statistics() {
            Some(s) if s.rows <= rows.saturating_mul(2).max(100) && rows <= s.rows.saturating_mul(2).max(100) => Ok(s),
            _ => self.renew(txn),
        }
    }

    /// ANALYZE TABLE: samples the table anew, and stores what it finds. The work is done on this thread, the wait for the log included.
    pub fn analyze(self: &Arc<Self>, txn: &mut Transaction) -> Result<Arc<Statistics>, MySqlError> {
        let statistics = self.renew(txn)?;
        if !self.is_temporary() {
            self.engine.blocking(|| self.store_statistics(&statistics))?;
        }
        Ok(statistics)
    }

    fn renew(self: &Arc<Self>, txn: &mut Transaction) -> Result<Arc<Statistics>, MySqlError> {
        let statistics = Arc::new(self.sample(txn)?);
        *self.state.statistics.lock() = Some(statistics.clone());
        Ok(statistics)
    }

    fn store_statistics(&self, statistics: &Statistics) -> Result<(), MySqlError> {
        let failed = |e| error::storage(e, "catalog");
        let mut txn = self.engine.begin(Isolation::ReadCommitted);
        put(&mut txn, self.engine.root_index(), &keys::statistics(self.id()), &statistics.record())?;
        txn.commit(&[]).map_err(failed)?.wait().map_err(failed)?;
        Ok(())
    }

    /// The statistics that the catalog has, or where there are none a sample that is not kept: for tools that change nothing.
    pub fn statistics_unkept(self: &Arc<Self>, txn: &mut Transaction) -> Result<Arc<Statistics>, MySqlError> {
        match self.cached_statistics() {
            Some(statistics) => Ok(statistics),
            None => Ok(Arc::new(self.sample(txn)?)),
        }
    }

    fn sample(self: &Arc<Self>, txn: &mut Transaction) -> Result<Statistics, MySqlError> {
        let snapshot = txn.snapshot();
        match &self.parts {
            Some(parts) => self.sample_parts(&snapshot, parts),
            None => self.sample_trees(&snapshot, self.row_count_estimate()?),
        }
    }

    /// The sums of all partitions. A column by which they are cut has values of its own in each; of others all may have the same.
    fn sample_parts(&self, snapshot: &Snapshot, parts: &Parts) -> Result<Statistics, MySqlError> {
        let mut all = Statistics { cardinality: self.indexes.iter().map(|codec| vec![0; codec.parts.len()]).collect(), ..Statistics::default() };
        let mut bytes = 0;
        for part in parts.tables.iter() {
            let one = part.sample_trees(snapshot, part.estimate_rows()?)?;
            all.rows += one.rows;
            all.data_length += one.data_length;
            all.index_length += one.index_length;
            bytes += one.row_bytes * one.rows;
            for (index, (all, one)) in all.cardinality.iter_mut().zip(&one.cardinality).enumerate() {
                for (at, (all, one)) in all.iter_mut().zip(one).enumerate() {
                    let leading = &self.indexes[index].columns[..=at];
                    *all = if parts.chooser.is_told_by(leading) { *all + one } else { (*all).max(*one) };
                }
            }
        }
        all.row_bytes = bytes.div_ceil(all.rows.max(1));
        Ok(all)
    }

    fn sample_trees(&self, snapshot: &Snapshot, rows: u64) -> Result<Statistics, MySqlError> {
        let mut statistics = Statistics { rows, ..Statistics::default() };
        for (index, codec) in self.indexes.iter().enumerate() {
            let sample = self.sample_index(snapshot, codec)?;
            if index == 0 {
                // A sample that is (nearly) the whole table is exact.
                statistics.rows = statistics.rows.max(sample.entries);
                statistics.row_bytes = sample.bytes.div_ceil(sample.entries.max(1));
                statistics.data_length = self.tree_bytes(0)?;
            } else {
                statistics.index_length += self.tree_bytes(index)?;
            }
            let mut counts: Vec<u64> = (0..codec.parts.len()).map(|part| sample.distinct(part, statistics.rows)).collect();
            if let Some(last) = counts.last_mut()
                && codec.is_unique()
            {
                *last = statistics.rows;
            }
            statistics.cardinality.push(counts);
        }
        Ok(statistics)
    }

    /// Reads some leaves of an index, spread over it, in its order.
    fn sample_index(&self, snapshot: &Snapshot, codec: &IndexCodec) -> Result<Sample, MySqlError> {
        let cut = |parts| self.engine.split_range(codec.id, &Bounds::all(), parts).map_err(|e| self.failed(e));
        let mut sample = Sample::new(codec.parts.len());
        for bounds in cut(SAMPLE_CUTS)? {
            if let Bound::Included(key) | Bound::Excluded(key) = &bounds.lower {
                sample.cuts.add(codec, key, false);
            }
        }
        let parts = cut(SAMPLE_LEAVES)?;
        let leaves_each = (SAMPLE_LEAVES / parts.len().max(1)).max(1);
        let mut leaf = LeafRows::new();
        // Whether the entry before the next one has been seen.
        let mut beside = false;
        for part in parts {
            let mut scan = snapshot.inner.scan(codec.id, part, Direction::Forward);
            let mut leaves = 0;
            loop {
                // Leaves of deleted rows count: there may be any number of them.
                if !scan.read_leaf(&mut leaf).map_err(|e| self.failed(e))? {
                    break;
                }
                for entry in 0..leaf.len() {
                    sample.entries += 1;
                    sample.bytes += (leaf.key(entry).len() + leaf.value(entry).len()) as u64;
                    sample.leaves.add(codec, leaf.key(entry), beside);
                    beside = true;
                }
                leaves += 1;
                if leaves > leaves_each {
                    beside = false;
                    break;
                }
            }
        }
        Ok(sample)
    }

    /// Bytes of an index's leaves, about.
    fn tree_bytes(&self, index: usize) -> Result<u64, MySqlError> {
        if let Some(parts) = &self.parts {
            return parts.tables.iter().map(|part| part.tree_bytes(index)).sum();
        }
        let pages = self.engine.estimate_leaf_pages(self.indexes[index].id).map_err(|e| self.failed(e))?;
        Ok(pages.max(1) * PAGE_BYTES)
    }

    /// Pages that an index has now, those of long values among them, of all partitions together. Nothing is read for it.
    pub fn index_pages(&self, index: usize) -> Result<u64, MySqlError> {
        match &self.parts {
            Some(parts) => parts.tables.iter().map(|part| part.index_pages(index)).sum(),
            None => Ok(self.engine.index_size(self.indexes[index].id).map_err(|e| self.failed(e))?.pages_used),
        }
    }

    /// Pages that the buffer pool has room for.
    pub fn pool_pages(&self) -> u64 {
        self.engine.pool_pages()
    }

    /// Sizes and counters of an index, from a few pages of it. `statistics` are this table's. Of a partitioned table ask each of `partition_tables`.
    pub fn index_summary(&self, statistics: &Statistics, index: usize) -> Result<IndexSummary, MySqlError> {
        let id = self.indexes[index].id;
        let size = self.engine.index_size(id).map_err(|e| self.failed(e))?;
        let distinct = statistics.cardinality.get(index).and_then(|prefixes| prefixes.last());
        Ok(IndexSummary {
            key_values: distinct.copied().unwrap_or(statistics.rows),
            leaf_pages: self.engine.estimate_leaf_pages(id).map_err(|e| self.failed(e))?,
            size_pages: size.pages,
            used_pages: size.pages_used,
            root_page: size.root_page.0,
            counters: self.engine.tree_counters(id).map_err(|e| self.failed(e))?,
        })
    }

    /// What each level of an index holds, leaves first, by reading all of it page by page; exact only while nobody writes. `stop` is
    /// asked before every page; once it says yes, the error is 1317. The caller's transaction has the table open. Of a partitioned table ask each of
    /// `partition_tables`.
    pub fn index_levels(&self, index: usize, stop: &dyn Fn() -> bool) -> Result<Vec<LevelReport>, MySqlError> {
        let levels = self.engine.levels(self.indexes[index].id, stop).map_err(|e| self.failed(e))?;
        levels.ok_or_else(errors::query_interrupted)
    }

    /// Rows of a range of an index, estimated from the tree's inner pages: what the optimiser compares.
    pub fn estimate_range(&self, index: usize, range: &crate::KeyRange) -> Result<u64, MySqlError> {
        if let Some(parts) = &self.parts {
            return parts.with_range(self, index, range).iter().map(|part| part.estimate_range(index, range)).sum();
        }
        let codec = &self.indexes[index];
        self.engine.estimate_range(codec.id, &range.bounds(codec)).map_err(|e| self.failed(e))
    }
}

/// Entries of an index, in its order.
struct Sample {
    entries: u64,
    bytes: u64,
    leaves: Changes,
    /// Keys that lie about as far from each other as leaves do, all over the index.
    cuts: Changes,
}

/// How often keys differ from those before them.
struct Changes {
    last: Vec<u8>,
    /// Pairs of keys that lie side by side in the index.
    neighbours: u64,
    /// For each number of parts: neighbours that differ in them.
    differ: Vec<u64>,
    /// For each number of parts: different values among the keys.
    values: Vec<u64>,
}

impl Changes {
    fn new(parts: usize) -> Changes {
        Changes { last: Vec::new(), neighbours: 0, differ: vec![0; parts], values: vec![0; parts] }
    }

    /// `beside`: the key before this one is its neighbour in the index.
    fn add(&mut self, codec: &IndexCodec, key: &[u8], beside: bool) {
        let first = self.values.first().is_none_or(|&values| values == 0);
        self.neighbours += u64::from(beside);
        let same = key.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        let mut end = 0;
        for (part, encoded) in codec.parts.iter().enumerate() {
            end += key_part_len(encoded, &key[end..]);
            if first || same < end {
                self.values[part] += 1;
                self.differ[part] += u64::from(beside);
            }
        }
        self.last.clear();
        self.last.extend_from_slice(key);
    }
}

impl Sample {
    fn new(parts: usize) -> Sample {
        Sample { entries: 0, bytes: 0, leaves: Changes::new(parts), cuts: Changes::new(parts) }
    }

    /// Different values of the first `part + 1` parts in an index of `rows` entries: as many as neighbours differ. Where values lie in many leaves each,
    /// few neighbours do; there the keys between leaves tell most of them.
    fn distinct(&self, part: usize, rows: u64) -> u64 {
        let seen = self.leaves.values[part].max(self.cuts.values[part]);
        if self.entries >= rows || self.leaves.neighbours == 0 {
            return seen.min(rows);
        }
        let share = self.leaves.differ[part] as f64 / self.leaves.neighbours as f64;
        ((share * rows as f64).round() as u64).max(seen).min(rows)
    }
}

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 16 * 1024;
