//! Rows of which a join wants some keys only (`sideways`): found by an index if those are few, or else picked while they are read.

use std::sync::Arc;

use highkey_table::{Direction, IndexKind, IndexPart, KeyRange};
use highkey_types::{ColumnType, Value};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::span::Span;
use super::{Access, BaseTable, Piece, PieceKeys, Source};
use crate::df::key_set::KeySet;
use crate::df::sideways::{BuildKeys, JoinKeys};

/// Microseconds that a lookup takes whose pages are in memory, and a row that it finds: by a secondary index, and by the clustered one.
const LOOKUP: f64 = 2.0;
/// One of the keys that are counted took longer than this if it had to read pages.
const LOOKUP_IN_MEMORY: f64 = 10.0;
const ROW_BEHIND_INDEX: f64 = 1.5;
const ROW: f64 = 0.15;
/// Microseconds that it takes to ask whether a row of a scan has one of the keys, from kept columns, and those of a row that has.
const ASKED_ROW: f64 = 0.003;
const SCANNED_ROW: f64 = 0.012;
/// The same of a row whose columns are not kept. The first scan takes many times as long, but those after it find them kept.
const DECODED_ROW: f64 = 0.012;

/// Keys whose rows are counted, and leaves that are counted of each at most.
const COUNTED_KEYS: usize = 16;
const COUNTED_LEAVES: usize = 4;

/// Columns whose keys a join knows.
#[derive(Clone, Debug)]
pub(super) struct ByKeys {
    /// The table's columns, and which of the join's keys each is equal to.
    columns: Vec<(usize, usize)>,
    lookups: Vec<Lookup>,
    keys: Arc<JoinKeys>,
    /// What all workers of the scan read: made by the first of them. `None`: the scan is the better way.
    found: Arc<OnceCell<Option<Found>>>,
}

/// An index that begins with columns whose keys a join knows.
#[derive(Clone, Debug)]
struct Lookup {
    index: usize,
    /// For each of its first parts, which of the join's keys it is equal to.
    parts: Vec<usize>,
}

/// Rows found by keys.
#[derive(Debug)]
struct Found {
    /// In microseconds.
    cost: f64,
    access: Access,
    pieces: Arc<[Piece]>,
}

impl ByKeys {
    /// `columns` of the table are equal to keys of the join. `None` if none of them has keys that can be looked for.
    pub fn new(source: &BaseTable, columns: impl Iterator<Item = (usize, usize)>, keys: &Arc<JoinKeys>) -> Option<ByKeys> {
        let def = source.table.def();
        let columns: Vec<(usize, usize)> = columns.filter(|(column, _)| def.columns.get(*column).is_some_and(|column| column.ty.is_integer())).collect();
        if columns.is_empty() {
            return None;
        }
        let mut lookups: Vec<Lookup> = Vec::new();
        for (index, index_def) in def.indexes.iter().enumerate() {
            if index_def.kind == IndexKind::RowId || (index != 0 && index_def.invisible) || !source.choice.finds(index) {
                continue;
            }
            let key_of = |part: &IndexPart| columns.iter().find(|(column, _)| *column == part.column && part.prefix.is_none()).map(|(_, key)| *key);
            let parts: Vec<usize> = index_def.parts.iter().map_while(key_of).collect();
            // An index that begins with these and others finds fewer rows.
            if parts.is_empty() || lookups.iter().any(|other| other.parts.starts_with(&parts)) {
                continue;
            }
            lookups.retain(|other| !parts.starts_with(&other.parts));
            lookups.push(Lookup { index, parts });
        }
        Some(ByKeys { columns, lookups, keys: keys.clone(), found: Arc::default() })
    }

    /// The keys of the join that some column is equal to.
    pub fn wanted(&self) -> Vec<usize> {
        self.columns.iter().map(|(_, key)| *key).collect()
    }

    /// True if an index might find the rows.
    pub fn looks_up(&self) -> bool {
        !self.lookups.is_empty()
    }

    /// The indexes that might.
    pub fn indexes(&self) -> impl Iterator<Item = usize> {
        self.lookups.iter().map(|lookup| lookup.index)
    }

    /// What is read in place of the scan; None if scanning is cheaper.
    async fn in_place(&self, source: &Source, deadline: Instant) -> Option<&Found> {
        if self.lookups.is_empty() {
            return None;
        }
        let find = async {
            let keys = self.keys.wait(deadline).await?;
            let rows = source.row_estimate() as f64;
            let kept = (source.kept_rows() as f64).min(rows);
            let scan = Scanning { rows, cost: kept * ASKED_ROW + (rows - kept) * DECODED_ROW };
            let found = self.lookups.iter().filter_map(|lookup| lookup.found(source, &keys, &scan));
            let best = found.reduce(|best, next| if next.cost < best.cost { next } else { best })?;
            let rows_found = best.access.rows.unwrap_or(0) as f64;
            let more = best.cost - rows * ASKED_ROW - rows_found * SCANNED_ROW;
            let scans = more > 0.0 && source.keeps().is_some_and(|kept_columns| kept_columns.regrets(more, (rows - kept) * DECODED_ROW));
            (!scans).then_some(best)
        };
        self.found.get_or_init(|| find).await.as_ref()
    }
}

/// What it would take to read all.
struct Scanning {
    rows: f64,
    /// Microseconds until it is known which rows are wanted.
    cost: f64,
}

impl Lookup {
    /// The rows with the keys, unless a scan is cheaper.
    fn found(&self, source: &Source, keys: &BuildKeys, scan: &Scanning) -> Option<Found> {
        let most = (scan.cost + scan.rows * SCANNED_ROW) / LOOKUP;
        let list = keys.listed(&self.parts, most as usize)?;
        let parts = &source.table.indexes()[self.index].parts;
        let types: Vec<&ColumnType> = parts.iter().map(|part| &source.table.columns()[part.column].ty).collect();
        // Other keys no row has.
        let possible = |(key, ty): (&i128, &&ColumnType)| {
            let within = |(least, most): (i64, u64)| (i128::from(least)..=i128::from(most)).contains(key);
            ty.integer_range().is_some_and(within)
        };
        let value = |(key, ty): (&i128, &&ColumnType)| if ty.unsigned { Value::UInt(*key as u64) } else { Value::Int(*key as i64) };
        let ranges: Vec<KeyRange> = list
            .iter()
            .filter(|key| key.iter().zip(&types).all(possible))
            .map(|key| KeyRange::prefix(&key.iter().zip(&types).map(value).collect::<Vec<_>>()))
            .collect();
        let Sample { rows_per_key, lookup } = sample(source, self.index, &ranges)?;
        let row = if self.index == 0 || !source.shared.snapshot.is_uncommitted() && source.table.covers(self.index, &source.columns) { ROW } else { ROW_BEHIND_INDEX };
        let found = ranges.len() as f64 * rows_per_key;
        let cost = ranges.len() as f64 * lookup + found * row;
        if cost > scan.cost + found.min(scan.rows) * SCANNED_ROW {
            return None;
        }
        let pieces = ranges.iter().map(|range| Piece { table: source.table.clone(), keys: PieceKeys::Range(range.clone()) }).collect();
        Some(Found { cost, access: Access { index: self.index, ranges, rows: Some(found as u64), scattered: true }, pieces })
    }
}

/// What is known of all keys by looking up some.
struct Sample {
    rows_per_key: f64,
    /// Microseconds that it takes to find a key.
    lookup: f64,
}

/// Counts the rows of some keys: an estimate of the statistics that is ten times too low would cost a hundred times what the scan does. The time that half of
/// them took at most tells whether the others, too, will have to be read from the disk.
fn sample(source: &Source, index: usize, ranges: &[KeyRange]) -> Option<Sample> {
    let step = ranges.len().div_ceil(COUNTED_KEYS).max(1);
    let (mut times, mut rows) = (Vec::with_capacity(COUNTED_KEYS), 0);
    for range in ranges.iter().step_by(step) {
        let begun = Instant::now();
        rows += rows_of(source, index, range)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_unstable_by(f64::total_cmp);
    let usual = times.get(times.len() / 2).copied().unwrap_or(0.0);
    let lookup = if usual > LOOKUP_IN_MEMORY { usual } else { LOOKUP };
    Some(Sample { rows_per_key: rows as f64 / times.len().max(1) as f64, lookup })
}

/// How many rows a key has: counted where they are few, or else about as many as the pages above them show. A key may have all rows of the table.
fn rows_of(source: &Source, index: usize, range: &KeyRange) -> Option<u64> {
    let mut scan = source.table.scan_at(&source.shared.snapshot, index, range, Direction::Forward).ok()?;
    let mut rows = 0;
    for _ in 0..COUNTED_LEAVES {
        match scan.count_batch().ok()? {
            Some(counted) => rows += counted,
            None => return Some(rows),
        }
    }
    Some(rows.max(source.table.estimate_range(index, range).ok()?))
}

/// How the rows are found with the least work; None if that is the scan as it was planned.
pub(super) async fn cheapest(all: &[ByKeys], source: &Source, deadline: Instant) -> Option<(Access, Arc<[Piece]>)> {
    let mut best: Option<&Found> = None;
    for by_keys in all {
        if let Some(found) = by_keys.in_place(source, deadline).await
            && best.is_none_or(|best| found.cost < best.cost)
        {
            best = Some(found);
        }
    }
    best.map(|found| (found.access.clone(), found.pieces.clone()))
}

/// Rows after which it shows whether few enough have a key, and rows that are not asked about when too many have one.
const TRIED_ROWS: usize = 32 << 10;
const SPARED_ROWS: usize = 512 << 10;
/// It is worth asking while it leaves out a row of so many.
const LEAST_LEFT_OUT: usize = 4;

/// Leaves out rows that no row of a build side would meet.
pub(super) struct KeyFilter {
    /// Which of the scan's output columns.
    pub column: usize,
    keys: Arc<KeySet>,
    seen: usize,
    left: usize,
    spared: usize,
}

impl KeyFilter {
    /// True if the next rows, so many, should be asked about.
    pub fn is_wanted(&mut self, rows: usize) -> bool {
        let wanted = self.spared == 0;
        self.spared = self.spared.saturating_sub(rows);
        wanted
    }

    /// True if no row of such a column has one of the keys.
    pub fn leaves_none(&self, of: &Span) -> bool {
        // A key is known by its bits.
        let far = |(least, greatest): (i128, i128)| !self.keys.may_have(least as i64, (greatest - least) as u64);
        !of.values || of.range.is_some_and(far)
    }

    /// The rows that `pick` leaves, of so many.
    pub fn pick(&mut self, of: usize, pick: impl FnOnce(&KeySet) -> Option<Vec<u32>>) -> Option<Vec<u32>> {
        let left = pick(&self.keys)?;
        self.seen += of;
        self.left += left.len();
        if self.seen >= TRIED_ROWS {
            if self.left > self.seen - self.seen / LEAST_LEFT_OUT {
                self.spared = SPARED_ROWS;
            }
            (self.seen, self.left) = (0, 0);
        }
        Some(left)
    }
}

/// The keys that are known by now, for one worker of the scan.
pub(super) async fn filters(all: &[ByKeys], source: &Source, deadline: Instant) -> Vec<KeyFilter> {
    let mut filters = Vec::new();
    for by_keys in all {
        let Some(known) = by_keys.keys.wait(deadline).await else { continue };
        for (column, key) in &by_keys.columns {
            let column = source.columns.iter().position(|known| known == column);
            if let (Some(column), Some(keys)) = (column, known.set(*key)) {
                filters.push(KeyFilter { column, keys: keys.clone(), seen: 0, left: 0, spared: 0 });
            }
        }
    }
    filters
}
