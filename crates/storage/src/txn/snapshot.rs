//! Snapshots: consistent views that leave the transaction's thread.

use std::collections::BTreeSet;

use super::rows::{Bounds, Direction};
use super::scan::{Scan, Wanted};
use super::status::Status;
use super::system::System;
use super::views::Sight;
use crate::error::Result;
use crate::ids::{IndexId, TxnId};
use crate::sync::Arc;

/// A consistent view: what was committed when it was taken, and its own transaction's writes. Clones share it; while one lives,
/// the versions it needs are kept. Its own transaction's writes are kept for it no longer than the transaction is open.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) system: Arc<System>,
    pub(super) sight: Sight,
}

impl Snapshot {
    /// Reads one row into `out` (cleared first). False when there is none.
    pub fn get(&self, index: IndexId, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        self.system.read_row(index, key, &self.sight, out)
    }

    /// Whether it shows what is not committed: two reads of it may not fit together.
    pub fn is_uncommitted(&self) -> bool {
        matches!(self.sight, Sight::Newest { .. })
    }

    /// The keys of the rows of an index whose last committed version it does not see, and which its own transaction has changed nevertheless. What it sees of
    /// other indexes does not fit what it sees of these rows.
    pub fn replaced_unseen(&self, index: IndexId) -> BTreeSet<Vec<u8>> {
        match &self.sight {
            Sight::Snapshot { view, .. } => view.replaced(index),
            Sight::Latest { .. } | Sight::Newest { .. } => BTreeSet::new(),
        }
    }

    /// Whether a later one may show what this transaction has written, and this one does not.
    pub(super) fn may_come(&self, txn: TxnId) -> bool {
        !self.sight.sees(txn, &self.system.status) && self.system.status.status(txn) != Status::Aborted
    }

    /// A scan of its own, for another thread if need be.
    pub fn scan(&self, index: IndexId, bounds: Bounds, direction: Direction) -> Scan {
        Scan::new(self.system.clone(), self.sight.clone(), Wanted::Visible, index, bounds, direction)
    }
}
