//! How often statements have read and changed rows of a table, by the index that led to them.
//!
//! Who runs statements counts, once for a range or a statement: this layer reads and changes rows for other ends too (foreign keys, copies of ALTER TABLE, statistics).

use std::sync::Arc;

use highkey_storage::StripedCounts;
use highkey_types::Str;
use parking_lot::Mutex;

use crate::def::{IndexKind, TableDef};
use crate::table::Table;

/// What is done with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowUse {
    Fetch,
    Insert,
    Update,
    Delete,
}

/// Rows by [`RowUse`].
pub type RowUses = [u64; 4];

type Counts = Arc<StripedCounts<4>>;

/// The counters of a table over all its definitions: an index keeps its own under its name.
#[derive(Default)]
pub(crate) struct Usage(Mutex<Vec<(Option<Str>, Counts)>>);

impl Usage {
    /// Those of the indexes of a definition, by position, and of no index behind them.
    pub(crate) fn of(&self, def: &TableDef) -> Arc<[Counts]> {
        let mut known = self.0.lock();
        let names = def.indexes.iter().map(|index| Some(index.name.clone())).chain([None]);
        let with_counts = |name: Option<Str>| {
            let counts = known.iter().find(|(other, _)| *other == name).map(|(_, counts)| counts.clone()).unwrap_or_default();
            (name, counts)
        };
        let present: Vec<(Option<Str>, Counts)> = names.map(with_counts).collect();
        let counts = present.iter().map(|(_, counts)| counts.clone()).collect();
        *known = present;
        counts
    }
}

impl Table {
    /// A statement has used so many rows that an index has led it to; `None`: no index, as for rows that are inserted, and where all were read.
    pub fn count_use(&self, index: Option<usize>, what: RowUse, rows: u64) {
        if rows > 0 {
            self.usage[index.unwrap_or(self.def.indexes.len())].add(what as usize, rows);
        }
    }

    /// How often rows were used by an index, or by none; `None`: never.
    pub fn uses(&self, index: Option<usize>) -> Option<RowUses> {
        self.usage[index.unwrap_or(self.def.indexes.len())].get()
    }

    /// Counts from 0 again.
    pub fn clear_uses(&self) {
        self.usage.iter().for_each(|counts| counts.clear());
    }

    /// The index that changes are counted for which a scan has led to: rows that were found by reading all are found again by their primary key, if there is one.
    pub fn index_of_changes(&self, by: Option<usize>) -> Option<usize> {
        by.or_else(|| (self.def.indexes[0].kind != IndexKind::RowId).then_some(0))
    }
}
