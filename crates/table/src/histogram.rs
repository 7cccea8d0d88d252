//! Histograms: how the values of one column are spread, as of the last ANALYZE TABLE … UPDATE HISTOGRAM. Buckets as in MySQL 8.0.
//!
//! A record of the catalog for each column (README.md, "Catalog"). Values are compared by their keys, so under the column's collation, and
//! text by its first 42 characters, as in MySQL.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highkey_storage::{Bounds, Direction, Isolation, Stage};
use highkey_types::{ColumnType, KeyPart, MySqlError, RowLayout, Str, Value, encode_key_part};
use serde::{Deserialize, Serialize};

use crate::catalog::{keys, record};
use crate::def::{TableDef, TableId};
use crate::error;
use crate::high_water::{put, remove};
use crate::row::RowBatch;
use crate::table::Table;
use crate::transaction::Transaction;

/// Characters of text, bytes of binary strings, that tell values apart.
const COMPARED: u32 = 42;
/// Memory that a distinct value takes beside its bytes, about.
const VALUE_OVERHEAD: u64 = 96;

/// The histogram of a column.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Each bucket is one value; else the buckets have about equally many rows.
    singleton: bool,
    buckets: Vec<Bucket>,
    null_fraction: f64,
    sampling_rate: f64,
    updated: SystemTime,
    buckets_wanted: u32,
    part: KeyPart,
}

/// Values from `lower` to `upper`, both included.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub lower: Value,
    pub upper: Value,
    /// Share of all rows, those with NULL among them, up to the end of this bucket.
    pub cumulative: f64,
    pub distinct: u64,
    lower_key: Vec<u8>,
    upper_key: Vec<u8>,
}

/// A table's histograms by the names of their columns.
pub(crate) type Histograms = BTreeMap<Str, Arc<Histogram>>;

impl Histogram {
    /// Whether each bucket is one value; else each is a range of values.
    pub fn is_singleton(&self) -> bool {
        self.singleton
    }

    /// Ascending; empty if no row has a value.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Share of the rows that are NULL.
    pub fn null_fraction(&self) -> f64 {
        self.null_fraction
    }

    /// Share of the rows that were looked at.
    pub fn sampling_rate(&self) -> f64 {
        self.sampling_rate
    }

    /// When it was made.
    pub fn updated(&self) -> SystemTime {
        self.updated
    }

    /// What `WITH n BUCKETS` asked for.
    pub fn buckets_wanted(&self) -> u32 {
        self.buckets_wanted
    }

    /// Distinct values, as far as rows were looked at.
    pub fn distinct(&self) -> u64 {
        self.buckets.iter().map(|b| b.distinct).sum()
    }

    /// Share of the rows whose value equals `value`, which is of the column's type and not NULL.
    pub fn equal(&self, value: &Value) -> f64 {
        let key = key_of(value, &self.part);
        match self.find(&key) {
            Some(at) if self.buckets[at].lower_key <= key => self.share(at) / self.buckets[at].distinct as f64,
            _ => 0.0,
        }
    }

    /// Share of the rows whose value is less than `value`, which is of the column's type and not NULL.
    pub fn below(&self, value: &Value) -> f64 {
        let key = key_of(value, &self.part);
        let Some(at) = self.find(&key) else { return 1.0 - self.null_fraction };
        let bucket = &self.buckets[at];
        self.before(at) + self.share(at) * position(&bucket.lower_key, &bucket.upper_key, &key)
    }

    /// The first bucket that does not end before the key.
    fn find(&self, key: &[u8]) -> Option<usize> {
        let at = self.buckets.partition_point(|b| b.upper_key.as_slice() < key);
        (at < self.buckets.len()).then_some(at)
    }

    fn before(&self, bucket: usize) -> f64 {
        if bucket == 0 { 0.0 } else { self.buckets[bucket - 1].cumulative }
    }

    fn share(&self, bucket: usize) -> f64 {
        self.buckets[bucket].cumulative - self.before(bucket)
    }
}

fn key_of(value: &Value, part: &KeyPart) -> Vec<u8> {
    let mut key = Vec::new();
    encode_key_part(value, part, &mut key);
    key
}

/// How far from `lower` to `upper` the key is: numbers evenly, as their keys' first differing bytes are; text by its sort key.
fn position(lower: &[u8], upper: &[u8], key: &[u8]) -> f64 {
    if key <= lower {
        return 0.0;
    }
    let same = lower.iter().zip(upper).take_while(|(a, b)| a == b).count();
    let head = |key: &[u8]| {
        let mut bytes = [0; 8];
        let rest = &key[same.min(key.len())..];
        let n = rest.len().min(8);
        bytes[..n].copy_from_slice(&rest[..n]);
        u64::from_be_bytes(bytes) as f64
    };
    let (from, to) = (head(lower), head(upper));
    if to > from { ((head(key) - from) / (to - from)).clamp(0.0, 1.0) } else { 0.5 }
}

fn part_of(ty: &ColumnType) -> KeyPart {
    let prefix = (ty.is_text() || ty.is_binary()).then_some(COMPARED);
    KeyPart { prefix, ..KeyPart::new(ty.clone()) }
}

/// The values of one column of the rows that were looked at.
struct Collected {
    column: usize,
    part: KeyPart,
    seen: HashMap<Vec<u8>, (u64, Value)>,
    nulls: u64,
    key: Vec<u8>,
}

impl Collected {
    fn add(&mut self, layout: &RowLayout, row: &[u8]) {
        if layout.is_null(row, self.column) {
            self.nulls += 1;
            return;
        }
        self.key.clear();
        highkey_types::encode_key_part_of_row(layout, row, self.column, &self.part, &mut self.key);
        match self.seen.get_mut(&self.key) {
            Some((count, _)) => *count += 1,
            None => {
                let value = shortened(layout.value(row, self.column));
                self.seen.insert(self.key.clone(), (1, value));
            }
        }
    }

    fn finish(self, wanted: u32, sampling_rate: f64) -> Histogram {
        let mut values: Vec<_> = self.seen.into_iter().map(|(key, (count, value))| (key, count, value)).collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        let present: u64 = values.iter().map(|(_, count, _)| count).sum();
        let rows = (present + self.nulls).max(1) as f64;
        let singleton = values.len() <= wanted as usize;
        let mut histogram = Histogram {
            singleton,
            buckets: Vec::new(),
            null_fraction: self.nulls as f64 / rows,
            sampling_rate,
            updated: now(),
            buckets_wanted: wanted,
            part: self.part,
        };
        let mut so_far = 0;
        let mut sum = 0.0;
        let mut lower: Option<(Vec<u8>, Value)> = None;
        let mut distinct = 0;
        for at in 0..values.len() {
            let (key, count, value) = &values[at];
            so_far += count;
            sum += *count as f64 / rows;
            distinct += 1;
            lower.get_or_insert_with(|| (key.clone(), value.clone()));
            // A bucket ends with the value that comes nearest to its share of the rows, the later one of two.
            let ideal = present as f64 * (histogram.buckets.len() + 1) as f64 / f64::from(wanted);
            let farther = |next: &(Vec<u8>, u64, Value)| ((so_far + next.1) as f64 - ideal).abs() > (so_far as f64 - ideal).abs();
            if singleton || values.get(at + 1).is_none_or(farther) {
                let (lower_key, lower) = lower.take().expect("set with the bucket's first value");
                histogram.buckets.push(Bucket {
                    lower,
                    upper: value.clone(),
                    // As MySQL computes it, to the last bit.
                    cumulative: if singleton { sum } else { so_far as f64 / rows },
                    distinct: std::mem::take(&mut distinct),
                    lower_key,
                    upper_key: key.clone(),
                });
            }
        }
        histogram
    }
}

/// Strings are kept as far as they are compared.
fn shortened(value: Value) -> Value {
    match value {
        Value::Text(text) if text.len() > COMPARED as usize => Value::text(text.chars().take(COMPARED as usize).collect::<String>()),
        Value::Bytes(mut bytes) => {
            bytes.truncate(COMPARED as usize);
            Value::Bytes(bytes)
        }
        other => other,
    }
}

/// In whole microseconds, as the record has it.
fn now() -> SystemTime {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64);
    UNIX_EPOCH + Duration::from_micros(micros)
}

impl Table {
    /// The histogram of a column, if one has been made.
    pub fn histogram(&self, column: usize) -> Option<Arc<Histogram>> {
        self.state.histograms.lock().get(&self.def.columns[column].name).cloned()
    }

    /// Makes histograms of columns, of at most `buckets` buckets each, by reading the table once. `memory`, in bytes, bounds what is
    /// remembered meanwhile: of a larger table only a part of the rows is looked at. Columns may be of every type but JSON. Error 1317.
    pub fn make_histograms(
        self: &Arc<Self>,
        txn: &mut Transaction,
        columns: &[usize],
        buckets: u32,
        memory: u64,
    ) -> Result<Vec<Histogram>, MySqlError> {
        assert!(buckets > 0);
        let types = self.layout.types();
        let collected = |&column: &usize| Collected { column, part: part_of(&types[column]), seen: HashMap::new(), nulls: 0, key: Vec::new() };
        let mut collecting: Vec<Collected> = columns.iter().map(collected).collect();
        let rows = self.row_count_estimate()?;
        let bytes_each: u64 = columns.iter().map(|&c| types[c].max_bytes().min(4 * u64::from(COMPARED)) + VALUE_OVERHEAD).sum();
        let rate = (memory as f64 / (rows.max(1) as f64 * bytes_each as f64)).min(1.0);
        let snapshot = txn.snapshot();
        txn.progress.enter(Stage::ReadingRows, rows);
        let mut scan = self.scan_bounds(&snapshot, 0, Bounds::all(), Direction::Forward)?;
        let mut batch = RowBatch::new();
        // Rows are taken where the sum of the rate passes a whole number: evenly, and the same for the same table.
        let mut taken = 0.0;
        while scan.next_batch(&mut batch)? {
            txn.check_interrupt()?;
            txn.progress.add(batch.len() as u64);
            for row in 0..batch.len() {
                taken += rate;
                if taken >= 1.0 {
                    taken -= 1.0;
                    collecting.iter_mut().for_each(|c| c.add(&self.layout, batch.row(row)));
                }
            }
        }
        Ok(collecting.into_iter().map(|c| c.finish(buckets, rate)).collect())
    }

    /// Sets (or, with None, forgets) histograms of columns, all or none. The caller's transaction has the table open; others that set the
    /// same table's wait. The work is done on this thread, the wait for the log included.
    pub fn store_histograms(&self, changes: Vec<(usize, Option<Histogram>)>) -> Result<(), MySqlError> {
        let failed = |e| error::storage(e, "catalog");
        let _one_at_a_time = self.state.storing_histograms.lock();
        let catalog = self.engine.root_index();
        let mut txn = self.engine.begin(Isolation::ReadCommitted);
        for (column, histogram) in &changes {
            let key = keys::histogram(self.id(), &self.def.columns[*column].name);
            match histogram {
                Some(histogram) => put(&mut txn, catalog, &key, &encode(histogram))?,
                None => remove(&mut txn, catalog, &key)?,
            }
        }
        txn.commit(&[]).map_err(failed)?.wait().map_err(failed)?;
        let mut histograms = self.state.histograms.lock();
        for (column, histogram) in changes {
            let name = self.def.columns[column].name.clone();
            match histogram {
                Some(histogram) => histograms.insert(name, Arc::new(histogram)),
                None => histograms.remove(&name),
            };
        }
        Ok(())
    }

    /// Columns whose histograms do not outlive the change to `new`, in which column i continues column `continues[i]` of this table: they
    /// go, have another name or type, have become unique by themselves, or are among `redefined`.
    pub(crate) fn histograms_lost(&self, new: &TableDef, continues: &[Option<usize>], redefined: &[usize]) -> Vec<Str> {
        let kept = |name: &Str| {
            let same = |(at, from): (usize, &Option<usize>)| {
                let (column, old) = (&new.columns[at], &self.def.columns[(*from)?]);
                let same = *name == old.name && old.name == column.name && old.ty == column.ty && old.nullable == column.nullable;
                (same && !new.is_unique_alone(at) && !redefined.contains(&at)).then_some(())
            };
            continues.iter().enumerate().find_map(same).is_some()
        };
        self.state.histograms.lock().keys().filter(|name| !kept(name)).cloned().collect()
    }
}

#[derive(Serialize, Deserialize)]
struct HistogramRecord {
    singleton: bool,
    buckets: Vec<BucketRecord>,
    /// Fractions as the bits of an f64: they read back as they were.
    nulls: u64,
    rate: u64,
    updated_micros: u64,
    wanted: u32,
}

#[derive(Serialize, Deserialize)]
struct BucketRecord {
    lower: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    upper: Option<String>,
    cumulative: u64,
    distinct: u64,
}

fn encode(histogram: &Histogram) -> Vec<u8> {
    let hex = |value: &Value| record::value_hex(value, &histogram.part.ty);
    let record = HistogramRecord {
        singleton: histogram.singleton,
        buckets: histogram
            .buckets
            .iter()
            .map(|b| BucketRecord {
                lower: hex(&b.lower),
                upper: (b.lower_key != b.upper_key).then(|| hex(&b.upper)),
                cumulative: b.cumulative.to_bits(),
                distinct: b.distinct,
            })
            .collect(),
        nulls: histogram.null_fraction.to_bits(),
        rate: histogram.sampling_rate.to_bits(),
        updated_micros: histogram.updated.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64),
        wanted: histogram.buckets_wanted,
    };
    serde_json::to_vec(&record).expect("catalog records have string keys only")
}

/// A record of the catalog: of a table and a column.
pub(crate) struct Stored {
    pub(crate) table: TableId,
    pub(crate) column: Str,
    pub(crate) value: Vec<u8>,
}

impl Stored {
    /// The histogram, for the table as it is defined.
    pub(crate) fn decode(&self, def: &TableDef) -> Result<Histogram, String> {
        let column = def.columns.iter().find(|c| c.name == self.column);
        let column = column.ok_or_else(|| format!("a histogram of {}.{} is of no column, '{}'", def.schema, def.name, self.column))?;
        let record: HistogramRecord = serde_json::from_slice(&self.value).map_err(|e| format!("a histogram does not decode: {e}"))?;
        let part = part_of(&column.ty);
        let value = |hex: &str| record::hex_value(hex, &column.ty).ok_or("a histogram's value is not hexadecimal");
        let mut buckets = Vec::with_capacity(record.buckets.len());
        for bucket in &record.buckets {
            let lower = value(&bucket.lower)?;
            let upper = bucket.upper.as_deref().map_or_else(|| Ok(lower.clone()), value)?;
            buckets.push(Bucket {
                lower_key: key_of(&lower, &part),
                upper_key: key_of(&upper, &part),
                lower,
                upper,
                cumulative: f64::from_bits(bucket.cumulative),
                distinct: bucket.distinct,
            });
        }
        Ok(Histogram {
            singleton: record.singleton,
            buckets,
            null_fraction: f64::from_bits(record.nulls),
            sampling_rate: f64::from_bits(record.rate),
            updated: UNIX_EPOCH + Duration::from_micros(record.updated_micros),
            buckets_wanted: record.wanted,
            part,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A histogram of integers with how often each occurs.
    fn of(counts: &[(i64, u64)], nulls: u64, wanted: u32) -> Histogram {
        let part = part_of(&ColumnType::bigint());
        let seen = counts.iter().map(|&(n, count)| (key_of(&Value::Int(n), &part), (count, Value::Int(n)))).collect();
        Collected { column: 0, part, seen, nulls, key: Vec::new() }.finish(wanted, 1.0)
    }

    fn ends(histogram: &Histogram) -> Vec<(i64, i64, u64)> {
        histogram.buckets.iter().map(|b| (b.lower.as_i64().unwrap(), b.upper.as_i64().unwrap(), b.distinct)).collect()
    }

    #[test]
    fn buckets_are_those_of_mysql() {
        // Recorded from MySQL 8.0.12: 1 to 9 once, 10 twice, a NULL.
        let counts: Vec<_> = (1..=10).map(|n| (n, if n == 10 { 2 } else { 1 })).collect();
        assert_eq!(ends(&of(&counts, 1, 4)), [(1, 3, 3), (4, 6, 3), (7, 8, 2), (9, 10, 2)]);
        assert_eq!(ends(&of(&counts, 1, 3)), [(1, 4, 4), (5, 7, 3), (8, 10, 3)]);
        assert_eq!(ends(&of(&counts, 1, 1)), [(1, 10, 10)]);
        let nine = [(1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 5, 1), (6, 6, 1), (7, 7, 1), (8, 9, 2), (10, 10, 1)];
        assert_eq!(ends(&of(&counts, 1, 9)), nine);
        let singleton = of(&counts, 1, 10);
        assert!(singleton.is_singleton() && singleton.buckets.len() == 10);
        assert_eq!((singleton.null_fraction, singleton.buckets[4].cumulative), (1.0 / 12.0, 0.416_666_666_666_666_63));
    }

    #[test]
    fn shares_are_those_of_the_rows() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        let h = of(&[(1, 4), (2, 2), (3, 1)], 3, 100);
        near(h.equal(&Value::Int(1)), 0.4);
        near(h.equal(&Value::Int(7)), 0.0);
        near(h.equal(&Value::Int(0)), 0.0);
        near(h.below(&Value::Int(1)), 0.0);
        near(h.below(&Value::Int(3)), 0.6);
        near(h.below(&Value::Int(9)), 0.7);
        // Within a bucket numbers lie evenly.
        let even: Vec<_> = (0..1000).map(|n| (n, 1)).collect();
        let h = of(&even, 0, 4);
        assert!(!h.is_singleton() && h.distinct() == 1000);
        for n in [0, 10, 249, 250, 251, 600, 999] {
            assert!((h.below(&Value::Int(n)) - n as f64 / 1000.0).abs() < 0.002, "{n}: {}", h.below(&Value::Int(n)));
            near(h.equal(&Value::Int(n)), 0.001);
        }
        let nothing = of(&[], 2, 4);
        assert_eq!((nothing.null_fraction, nothing.equal(&Value::Int(1)), nothing.below(&Value::Int(1))), (1.0, 0.0, 0.0));
        assert_eq!(of(&[], 0, 4).null_fraction, 0.0);
    }
}
