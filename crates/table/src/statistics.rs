//! Statistics: row counts, sizes, how many distinct values index prefixes have, and what the trees' levels hold.

use std::collections::HashMap;
use std::sync::Arc;

use highkey_storage::{Bounds, Direction, LevelReport, TreeCounters};
use highkey_types::{MySqlError, errors};
use serde::{Deserialize, Serialize};

use crate::row::RowBatch;
use crate::table::Table;
use crate::transaction::Transaction;

/// Leaves that a sample reads, spread over the clustered index.
const SAMPLE_LEAVES: usize = 20;

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
        self.engine.estimate_rows(self.clustered().id).map_err(|e| self.failed(e))
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
            _ => self.analyze(txn),
        }
    }

    /// ANALYZE TABLE: samples the table anew.
    pub fn analyze(self: &Arc<Self>, txn: &mut Transaction) -> Result<Arc<Statistics>, MySqlError> {
        let statistics = Arc::new(self.sample(txn)?);
        *self.state.statistics.lock() = Some(statistics.clone());
        Ok(statistics)
    }

    /// The statistics that the catalog has, or where there are none a sample that is not kept: for tools that change nothing.
    pub fn statistics_unkept(self: &Arc<Self>, txn: &mut Transaction) -> Result<Arc<Statistics>, MySqlError> {
        match self.cached_statistics() {
            Some(statistics) => Ok(statistics),
            None => Ok(Arc::new(self.sample(txn)?)),
        }
    }

    fn sample(self: &Arc<Self>, txn: &mut Transaction) -> Result<Statistics, MySqlError> {
        let rows = self.row_count_estimate()?;
        let mut sample = Sample::new(self);
        let snapshot = txn.snapshot();
        let parts = self
            .engine
            .split_range(self.clustered().id, &Bounds::all(), SAMPLE_LEAVES)
            .map_err(|e| self.failed(e))?;
        let leaves_each = (SAMPLE_LEAVES / parts.len().max(1)).max(1);
        let mut batch = RowBatch::new();
        for part in parts {
            let mut scan = self.scan_bounds(&snapshot, 0, part, Direction::Forward)?;
            for _ in 0..leaves_each {
                if !scan.next_batch(&mut batch)? {
                    break;
                }
                sample.add(&batch);
            }
        }
        let mut statistics = sample.finish(rows);
        statistics.data_length = self.tree_bytes(0)?;
        for index in 1..self.indexes.len() {
            statistics.index_length += self.tree_bytes(index)?;
        }
        Ok(statistics)
    }

    /// Bytes of an index's leaves, about.
    fn tree_bytes(&self, index: usize) -> Result<u64, MySqlError> {
        let pages = self.engine.estimate_leaf_pages(self.indexes[index].id).map_err(|e| self.failed(e))?;
        Ok(pages.max(1) * PAGE_BYTES)
    }

    /// Sizes and counters of an index, from a few pages of it. `statistics` are this table's.
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
    /// asked before every page; once it says yes, the error is 1317. The caller's transaction has the table open.
    pub fn index_levels(&self, index: usize, stop: &dyn Fn() -> bool) -> Result<Vec<LevelReport>, MySqlError> {
        let levels = self.engine.levels(self.indexes[index].id, stop).map_err(|e| self.failed(e))?;
        levels.ok_or_else(errors::query_interrupted)
    }

    /// Rows of a range of an index, estimated from the tree's inner pages: what the optimiser compares.
    pub fn estimate_range(&self, index: usize, range: &crate::KeyRange) -> Result<u64, MySqlError> {
        let codec = &self.indexes[index];
        self.engine.estimate_range(codec.id, &range.bounds(codec)).map_err(|e| self.failed(e))
    }
}

struct Sample<'a> {
    table: &'a Table,
    rows: u64,
    row_bytes: u64,
    /// For each index and number of parts, how often each prefix of the key was seen.
    seen: Vec<Vec<HashMap<Vec<u8>, u64>>>,
}

impl<'a> Sample<'a> {
    fn new(table: &'a Table) -> Sample<'a> {
        Sample {
            table,
            rows: 0,
            row_bytes: 0,
            seen: table.indexes.iter().map(|i| vec![HashMap::new(); i.parts.len()]).collect(),
        }
    }

    fn add(&mut self, batch: &RowBatch) {
        let layout = &self.table.layout;
        let mut key = Vec::new();
        for row in 0..batch.len() {
            let (clustered, data) = (batch.key(row), batch.row(row));
            self.rows += 1;
            self.row_bytes += (clustered.len() + data.len()) as u64;
            for (index, codec) in self.table.indexes.iter().enumerate() {
                key.clear();
                for (at, (&column, part)) in codec.columns.iter().zip(&codec.parts).enumerate() {
                    highkey_types::encode_key_part(&layout.value(data, column), part, &mut key);
                    *self.seen[index][at].entry(key.clone()).or_default() += 1;
                }
            }
        }
    }

    fn finish(self, rows: u64) -> Statistics {
        // A sample that is (nearly) the whole table is exact.
        let rows = rows.max(self.rows);
        let table = self.table;
        let average = |bytes: u64| bytes.div_ceil(self.rows.max(1));
        let cardinality = self
            .seen
            .iter()
            .zip(&table.indexes)
            .map(|(prefixes, codec)| {
                let mut counts: Vec<u64> = prefixes.iter().map(|seen| distinct(seen, self.rows, rows)).collect();
                if let Some(last) = counts.last_mut()
                    && codec.is_unique()
                {
                    *last = rows;
                }
                counts
            })
            .collect();
        Statistics {
            rows,
            cardinality,
            row_bytes: average(self.row_bytes),
            data_length: 0,
            index_length: 0,
        }
    }
}

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 16 * 1024;

/// Distinct values in `rows` rows, from `sampled` of them: the GEE estimator of Charikar et al. (PODS 2000), which
/// scales what was seen once by the root of the sampling ratio.
fn distinct(seen: &HashMap<Vec<u8>, u64>, sampled: u64, rows: u64) -> u64 {
    let once = seen.values().filter(|&&n| n == 1).count() as f64;
    let more = seen.len() as f64 - once;
    let scale = (rows as f64 / sampled.max(1) as f64).max(1.0).sqrt();
    ((once * scale + more).round() as u64).min(rows)
}
