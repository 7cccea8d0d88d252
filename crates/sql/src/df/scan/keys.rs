//! Rows of which a join wants some keys only (`sideways`): found by an index if those are few, or else picked while they are read.

use std::sync::Arc;

use highkey_table::{Direction, IndexKind, KeyRange};
use highkey_types::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::{Access, BaseTable, Piece, Source};
use crate::df::key_set::KeySet;
use crate::df::sideways::JoinKeys;

/// Microseconds that a lookup takes, and a row that it finds: by a secondary index, and by the clustered one.
const LOOKUP: f64 = 2.0;
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

/// A column whose keys a join knows.
#[derive(Clone, Debug)]
pub(super) struct ByKeys {
    /// One that begins with the column.
    pub index: Option<usize>,
    column: usize,
    keys: Arc<JoinKeys>,
    /// What all workers of the scan read: made by the first of them. `None`: the scan is the better way.
    found: Arc<OnceCell<Option<(f64, Access, Arc<[Piece]>)>>>,
}

impl ByKeys {
    /// `None` if the column has no keys that can be looked for.
    pub fn new(source: &BaseTable, column: usize, keys: &Arc<JoinKeys>) -> Option<ByKeys> {
        let def = source.table.def();
        if !def.columns.get(column)?.ty.is_integer() {
            return None;
        }
        let usable = |&index: &usize| {
            let index_def = &def.indexes[index];
            let leads = index_def.parts.first().is_some_and(|part| part.column == column && part.prefix.is_none());
            leads && index_def.kind != IndexKind::RowId && (index == 0 || !index_def.invisible) && source.choice.finds(index)
        };
        let index = (0..def.indexes.len()).find(usable);
        Some(ByKeys { index, column, keys: keys.clone(), found: Arc::default() })
    }

    /// What reading by the keys costs, and how; None if scanning is cheaper.
    async fn lookups(&self, source: &Source, deadline: Instant) -> Option<&(f64, Access, Arc<[Piece]>)> {
        let index = self.index?;
        let find = async {
            let keys = self.keys.wait(deadline).await?;
            let rows = source.row_estimate() as f64;
            let kept = (source.kept_rows() as f64).min(rows);
            let scan = kept * ASKED_ROW + (rows - kept) * DECODED_ROW;
            if keys.list_len()? as f64 * LOOKUP > scan + rows * SCANNED_ROW {
                return None;
            }
            let ty = &source.table.columns()[self.column].ty;
            let (least, most) = ty.integer_range()?;
            // Other keys no row has.
            let mut keys: Vec<i128> = keys.list()?.filter(|key| (i128::from(least)..=i128::from(most)).contains(key)).collect();
            keys.sort_unstable();
            let value = |key: i128| if ty.unsigned { Value::UInt(key as u64) } else { Value::Int(key as i64) };
            let ranges: Vec<KeyRange> = keys.into_iter().map(|key| KeyRange::prefix(&[value(key)])).collect();
            let rows_per_key = rows_per_key(source, index, &ranges)?;
            let row = if index == 0 { ROW } else { ROW_BEHIND_INDEX };
            let found = ranges.len() as f64 * rows_per_key;
            let cost = ranges.len() as f64 * LOOKUP + found * row;
            if cost > scan + found.min(rows) * SCANNED_ROW {
                return None;
            }
            let pieces = ranges.iter().cloned().map(Piece::Range).collect();
            Some((cost, Access { index, ranges, rows: Some(found as u64), scattered: true }, pieces))
        };
        self.found.get_or_init(|| find).await.as_ref()
    }
}

/// How many rows a key has, by counting those of some keys: an estimate of the statistics that is ten times too low would cost a hundred times
/// what the scan does.
fn rows_per_key(source: &Source, index: usize, ranges: &[KeyRange]) -> Option<f64> {
    let step = ranges.len().div_ceil(COUNTED_KEYS).max(1);
    let (mut keys, mut rows) = (0, 0);
    for range in ranges.iter().step_by(step) {
        let mut scan = source.table.scan_at(&source.shared.snapshot, index, range, Direction::Forward).ok()?;
        keys += 1;
        for _ in 0..COUNTED_LEAVES {
            match scan.count_batch().ok()? {
                Some(n) => rows += n,
                None => break,
            }
        }
    }
    Some(rows as f64 / f64::from(keys.max(1)))
}

/// How the rows are found with the least work; None if that is the scan as it was planned.
pub(super) async fn cheapest(all: &[ByKeys], source: &Source, deadline: Instant) -> Option<(Access, Arc<[Piece]>)> {
    let mut best: Option<&(f64, Access, Arc<[Piece]>)> = None;
    for by_keys in all {
        if let Some(found) = by_keys.lookups(source, deadline).await
            && best.is_none_or(|best| found.0 < best.0)
        {
            best = Some(found);
        }
    }
    best.map(|(_, access, pieces)| (access.clone(), pieces.clone()))
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
        let column = source.columns.iter().position(|&column| column == by_keys.column);
        if let (Some(column), Some(keys)) = (column, by_keys.keys.wait(deadline).await) {
            filters.push(KeyFilter { column, keys, seen: 0, left: 0, spared: 0 });
        }
    }
    filters
}
