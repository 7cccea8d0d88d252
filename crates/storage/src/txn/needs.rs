//! What somebody needs of older versions (README.md, "Who needs a version").

use std::cell::Cell;

use super::status::{Status, StatusTable};
use super::system::System;
use super::views::ReadPoints;
use crate::ids::TxnId;
use crate::sync::Arc;

/// Says which versions nobody needs. What it says stays true.
pub(crate) trait Needs {
    /// Whether the transaction has ended for every snapshot that lives or will: nobody needs what it replaced. Taken back, no record of it is
    /// left; committed, nobody looks behind it.
    fn is_over(&self, by: TxnId) -> bool;

    /// Whether no snapshot that lives or will sees the version of `txn` that `by` replaced: none was taken between the two commits. False unless `by` had
    /// committed at the timestamp `settled`: what an open transaction has replaced is not only what its rollback brings back, but perhaps also what it has
    /// brought back already (V1), to which other links lead.
    fn is_unseen(&self, txn: TxnId, by: TxnId, settled: u64) -> bool;

    /// When the transaction committed. `None` also if every snapshot sees it.
    fn committed_at(&self, txn: TxnId) -> Option<u64>;

    /// Everything that committed at or below this timestamp had been published when this looked at the snapshots.
    fn taken_at(&self) -> u64;
}

/// For who does not know the snapshots: everything is needed.
pub(super) struct Everything;

impl Needs for Everything {
    fn is_over(&self, _: TxnId) -> bool {
        false
    }

    fn is_unseen(&self, _: TxnId, _: TxnId, _: u64) -> bool {
        false
    }

    fn committed_at(&self, _: TxnId) -> Option<u64> {
        None
    }

    fn taken_at(&self) -> u64 {
        0
    }
}

/// What the snapshots need that live, and those that are taken later.
pub(super) struct Horizon<'a> {
    status: &'a StatusTable,
    points: Arc<ReadPoints>,
    /// Most are asked about many times in a row.
    last: Cell<(TxnId, bool)>,
}

impl Horizon<'_> {
    /// No snapshot, now or later, is older than this.
    pub fn oldest(&self) -> u64 {
        self.points.oldest()
    }
}

impl Needs for Horizon<'_> {
    fn is_over(&self, by: TxnId) -> bool {
        let (known, is_over) = self.last.get();
        if known == by {
            return is_over;
        }
        // Who has no status yet is about to be open.
        let is_over = self.status.has_begun(by)
            && match self.status.status(by) {
                Status::Open => false,
                Status::Committed(ts) => ts <= self.oldest(),
                Status::Aborted => true,
            };
        self.last.set((by, is_over));
        is_over
    }

    fn is_unseen(&self, txn: TxnId, by: TxnId, settled: u64) -> bool {
        let Some(to) = self.committed_at(by).filter(|to| *to <= settled) else { return false };
        let Status::Committed(from) = self.status.status(txn) else { return false };
        self.points.none_between(from, to)
    }

    fn committed_at(&self, txn: TxnId) -> Option<u64> {
        match self.status.status(txn) {
            // Said of all whom every snapshot sees, but also of who was rolled back long ago. Those are over.
            Status::Committed(0) => None,
            Status::Committed(ts) => Some(ts),
            Status::Open | Status::Aborted => None,
        }
    }

    fn taken_at(&self) -> u64 {
        self.points.taken_at()
    }
}

impl System {
    /// What is needed now.
    pub(super) fn horizon(&self) -> Horizon<'_> {
        self.horizon_at(self.views.look(&self.status))
    }

    /// What was needed a little while ago, at nearly no cost: what nobody needed then nobody needs now.
    pub(super) fn recent_horizon(&self) -> Horizon<'_> {
        self.horizon_at(self.views.recent(&self.status))
    }

    fn horizon_at(&self, points: Arc<ReadPoints>) -> Horizon<'_> {
        Horizon { status: &self.status, points, last: Cell::new((TxnId(u64::MAX), false)) }
    }
}

/// For tests: nobody needs what those replaced of whom it says so, all else is needed.
#[cfg(test)]
pub(super) struct Over<F: Fn(TxnId) -> bool>(pub F);

#[cfg(test)]
impl<F: Fn(TxnId) -> bool> Needs for Over<F> {
    fn committed_at(&self, _: TxnId) -> Option<u64> {
        None
    }

    fn is_over(&self, by: TxnId) -> bool {
        (self.0)(by)
    }

    fn is_unseen(&self, _: TxnId, _: TxnId, _: u64) -> bool {
        false
    }

    fn taken_at(&self) -> u64 {
        0
    }
}
