//! What locking reads lock besides records: the gaps that a scan passes over, the gap where a key is missing, whole ranges of rows.
//!
//! As InnoDB, gaps are locked at REPEATABLE READ and SERIALIZABLE only, and reach from record to record, not from bound to bound. What a
//! statement has asked for is locked under the latch of the leaf that it is read from, so nothing comes between; how far the gap goes
//! beyond that into neighbouring leaves is looked up afterwards, since nothing but the likeness to InnoDB depends on it.

use std::ops::Bound;

use super::rows::{Bounds, Isolation, LeafRows, LockMode, LockWaitPolicy, Op};
use super::system::System;
use super::transaction::Txn;
use crate::btree::{BTree, Direction, LeafScan, LeafView, RecordFlags, RecordRef, Surroundings};
use crate::error::Result;
use crate::ids::{IndexId, TxnId};
use crate::lock::{Owner, RangeKind, Span};
use crate::sync::Arc;

/// The gaps of a scan. What belongs to the present leaf stays open until the scan goes on or stops.
pub(super) struct Gaps {
    system: Arc<System>,
    owner: Arc<Owner>,
    index: IndexId,
    direction: Direction,
    kind: RangeKind,
    /// A row of this key is the last of the range: nothing behind it was asked for.
    last: Option<Vec<u8>>,
    open: Option<Open>,
}

struct Open {
    number: u64,
    span: Span,
    beyond: Beyond,
}

/// Whether the gap goes on in the leaves beside.
#[derive(Clone, Copy, Default)]
struct Beyond {
    below: bool,
    above: bool,
}

fn successor(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// The span around a scan's records in a leaf.
fn span_of(leaf: &LeafView, last: Option<&[u8]>) -> (Span, Beyond) {
    let Surroundings { lower, upper, open_below: below, open_above: above } = leaf.surroundings();
    if let (Some(last), Some(n)) = (last, leaf.len().checked_sub(1))
        && leaf.record(n).flags & RecordFlags::DELETE_MARK == 0
    {
        let mut key = Vec::new();
        leaf.key(n, &mut key);
        if key == last {
            return (Span { lower, upper: Some(successor(key)) }, Beyond { below, above: false });
        }
    }
    (Span { lower, upper }, Beyond { below, above })
}

impl Gaps {
    /// Locks what lies around the leaf's rows. Under its latch.
    pub fn cover(&mut self, leaf: &LeafView) {
        // The leaf before, if there was one in the same step, had nothing to stop at.
        self.close(|open| Some(open.span.clone()));
        let (span, beyond) = span_of(leaf, self.last.as_deref());
        let number = self.system.locks.open_range(&self.owner, self.index, self.kind, span.clone());
        self.open = Some(Open { number, span, beyond });
    }

    /// After a leaf's latch: the gap before the scan's first row may begin in another leaf.
    pub fn reach_back(&mut self, tree: &BTree) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let beyond = match self.direction {
            Direction::Forward => Beyond { below: std::mem::take(&mut open.beyond.below), above: false },
            Direction::Backward => Beyond { below: false, above: std::mem::take(&mut open.beyond.above) },
        };
        let span = open.span.clone();
        self.system.reach_beyond(&self.owner, tree, self.kind, &span, beyond)
    }

    /// The scan goes on: all of the leaf was read, and what follows it up to the next record is locked with it.
    pub fn pass(&mut self, tree: &BTree) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let (span, beyond) = (open.span.clone(), open.beyond);
        self.system.reach_beyond(&self.owner, tree, self.kind, &span, beyond)?;
        self.close(|open| Some(open.span.clone()));
        Ok(())
    }

    /// The scan ends after `read` of the leaf's rows: what lies behind them is free again.
    pub fn stop(&mut self, rows: &LeafRows, read: usize) {
        let direction = self.direction;
        self.close(|open| {
            let span = open.span.clone();
            match direction {
                _ if read == 0 => None,
                Direction::Forward => Some(Span { upper: Some(successor(rows.key(read - 1).to_vec())), ..span }),
                Direction::Backward if read < rows.len() => Some(Span { lower: successor(rows.key(read).to_vec()), ..span }),
                Direction::Backward => Some(span),
            }
        });
    }

    fn close(&mut self, keep: impl FnOnce(&Open) -> Option<Span>) {
        if let Some(open) = self.open.take() {
            self.system.locks.close_range(self.owner.id, self.index, open.number, keep(&open));
        }
    }
}

impl Drop for Gaps {
    fn drop(&mut self) {
        // Who does not say where it stopped has read all that it was given.
        self.close(|open| Some(open.span.clone()));
    }
}

impl System {
    /// Locks the gaps beside a span as far as the next records.
    fn reach_beyond(&self, owner: &Arc<Owner>, tree: &BTree, kind: RangeKind, span: &Span, beyond: Beyond) -> Result<()> {
        if beyond.below {
            let mut at = LeafScan::new(Bound::Unbounded, Bound::Excluded(span.lower.clone()), Direction::Backward);
            let mut lower = Vec::new();
            tree.scan_leaf(&mut at, |leaf| leaf.key(leaf.len() - 1, &mut lower))?;
            if !lower.is_empty() {
                lower.push(0);
            }
            self.locks.lock_range(owner, tree.index(), kind, Span { lower, upper: Some(span.lower.clone()) });
        }
        if let (true, Some(high)) = (beyond.above, &span.upper) {
            let mut at = LeafScan::new(Bound::Included(high.clone()), Bound::Unbounded, Direction::Forward);
            let mut upper = Vec::new();
            let found = tree.scan_leaf(&mut at, |leaf| leaf.key(0, &mut upper))?;
            self.locks.lock_range(owner, tree.index(), kind, Span { lower: high.clone(), upper: found.then_some(upper) });
        }
        Ok(())
    }

    /// Whether the record is of an open transaction other than `own`.
    fn is_others(&self, own: TxnId, record: RecordRef) -> bool {
        record.txn != own && self.status.is_open(record.txn)
    }
}

impl Txn {
    /// Whether its locking reads lock gaps.
    pub(super) fn locks_gaps(&self) -> bool {
        matches!(self.isolation(), Isolation::RepeatableRead | Isolation::Serializable)
    }

    pub(super) fn gaps(&mut self, index: IndexId, direction: Direction, mode: LockMode, last: Option<Vec<u8>>) -> Option<Gaps> {
        let owner = self.locks_gaps().then(|| self.owner())?;
        Some(Gaps { system: self.system.clone(), owner, index, direction, kind: RangeKind::Gap(mode), last, open: None })
    }

    /// Locks the gap in which `key` is missing. False: it has a row by now, or somebody's uncommitted change.
    pub(super) fn lock_gap(&mut self, tree: &BTree, key: &[u8], mode: LockMode) -> Result<bool> {
        let (system, owner) = (self.system.clone(), self.owner());
        let mut at = LeafScan::new(Bound::Included(key.to_vec()), Bound::Included(key.to_vec()), Direction::Forward);
        at.show_every_leaf();
        let mut covered = None;
        tree.scan_leaf(&mut at, |leaf| {
            if leaf.len() > 0 {
                let record = leaf.record(0);
                if record.flags & RecordFlags::DELETE_MARK == 0 || system.is_others(owner.id, record) {
                    return;
                }
            }
            let (span, beyond) = span_of(leaf, None);
            system.locks.lock_range(&owner, tree.index(), RangeKind::Gap(mode), span.clone());
            covered = Some((span, beyond));
        })?;
        let Some((span, beyond)) = covered else { return Ok(false) };
        system.reach_beyond(&owner, tree, RangeKind::Gap(mode), &span, beyond)?;
        Ok(true)
    }

    /// Locks the gap before a record that the transaction has locked, as InnoDB does with the record that an insert meets in a unique index.
    /// Nothing below REPEATABLE READ.
    pub fn lock_gap_before(&mut self, index: IndexId, key: &[u8], mode: LockMode) -> Result<()> {
        if !self.locks_gaps() {
            return Ok(());
        }
        let (system, owner) = (self.system.clone(), self.owner());
        let tree = system.tree(index)?;
        let mut at = LeafScan::new(Bound::Unbounded, Bound::Excluded(key.to_vec()), Direction::Backward);
        let mut lower = Vec::new();
        tree.scan_leaf(&mut at, |leaf| {
            leaf.key(leaf.len() - 1, &mut lower);
            lower.push(0);
        })?;
        system.locks.lock_range(&owner, index, RangeKind::Gap(mode), Span { lower, upper: Some(key.to_vec()) });
        Ok(())
    }

    /// Locks a range of an index as it is: until the transaction ends nobody else inserts into it, or changes or exclusively locks a row of it.
    /// Rows that others are changing are waited for on the way. A snapshot taken afterwards sees the rows that were locked.
    pub fn share_range(&mut self, index: IndexId, bounds: Bounds) -> ShareRange {
        let mut at = LeafScan::new(bounds.lower, bounds.upper, Direction::Forward);
        at.show_every_leaf();
        ShareRange { index, at, contested: None }
    }
}

/// A range being locked as a whole.
pub struct ShareRange {
    index: IndexId,
    at: LeafScan,
    /// Where it is: a key that somebody else has, or waits for, exclusively. What lies behind is not locked yet.
    contested: Option<Vec<u8>>,
}

impl ShareRange {
    /// Locks what can be locked without waiting. After `Wait` it goes on where it was.
    pub fn lock(&mut self, txn: &mut Txn) -> Result<Op<()>> {
        let (system, owner) = (txn.system.clone(), txn.owner());
        let tree = system.tree(self.index)?;
        loop {
            if let Some(key) = &self.contested {
                if let Op::Wait(wait) = txn.lock(self.index, key, LockMode::Shared, LockWaitPolicy::Wait)? {
                    return Ok(Op::Wait(wait));
                }
                self.contested = None;
            }
            let contested = &mut self.contested;
            let mut locked = Vec::new();
            let more = tree.scan_leaf(&mut self.at, |leaf| {
                let (span, beyond) = span_of(leaf, None);
                let number = system.locks.open_range(&owner, tree.index(), RangeKind::Shared, span.clone());
                locked.push((number, span, beyond));
                if leaf.max_txn() < system.status.low_water().0 && !system.locks.any_key() {
                    return;
                }
                *contested = (0..leaf.len()).find_map(|n| {
                    let mut key = Vec::new();
                    leaf.key(n, &mut key);
                    let others = system.is_others(owner.id, leaf.record(n)) || system.locks.is_wanted_exclusively(owner.id, tree.index(), &key);
                    others.then_some(key)
                });
            })?;
            for (number, mut span, mut beyond) in locked {
                if let Some(key) = contested
                    && span.contains(key)
                {
                    span.upper = Some(successor(key.clone()));
                    beyond.above = false;
                    self.at.resume_after(key);
                }
                system.locks.close_range(owner.id, tree.index(), number, Some(span.clone()));
                system.reach_beyond(&owner, &tree, RangeKind::Gap(LockMode::Shared), &span, beyond)?;
            }
            if !more {
                return Ok(Op::Done(()));
            }
        }
    }
}
