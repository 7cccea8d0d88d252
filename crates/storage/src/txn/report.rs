//! The locks as reports show them: as InnoDB's record locks, gaps on the record behind them.
//!
//! What is looked at changes meanwhile: each lock was held at some moment of the report, not all at one.

use std::collections::BTreeSet;
use std::ops::Bound;

use ahash::AHashMap;

use super::rows::LockMode;
use super::system::System;
use crate::btree::{Direction, LeafScan, RecordFlags};
use crate::error::Result;
use crate::ids::{IndexId, TxnId};
use crate::lock::{HeldRange, HeldRun, RangeKind, Wants, Waiter};
use crate::sync::{Arc, Ordering};

/// What a lock on a record covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockExtent {
    /// The record: `REC_NOT_GAP`.
    Record,
    /// The gap before it: `GAP`.
    Gap,
    /// Both: a next-key lock.
    NextKey,
    /// Asked for by who wants to insert before it: `INSERT_INTENTION`.
    InsertIntention,
}

/// A lock that is held or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockReport {
    pub txn: TxnId,
    pub index: IndexId,
    /// The record's key; `None` is the supremum.
    pub key: Option<Vec<u8>>,
    pub mode: LockMode,
    pub extent: LockExtent,
    pub wait: Option<WaitReport>,
}

/// A lock's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitReport {
    /// Wall clock, microseconds since 1970.
    pub since_us: u64,
    /// Whom it waits for.
    pub blockers: Vec<TxnId>,
}

/// How much a transaction has locked and changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnSize {
    /// Explicit locks on keys.
    pub locked_keys: usize,
    /// Their bytes, and their lists'.
    pub lock_bytes: usize,
    /// Indexes with gap or range locks.
    pub locked_ranges: usize,
    /// Rows of all indexes together: what a deadlock's victim is chosen by.
    pub entries_changed: u64,
}

/// What a transaction has locks on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxnLocks {
    /// About so many rows; at least, where it is a million or more.
    pub rows: u64,
    pub indexes: BTreeSet<IndexId>,
}

/// Rows and ranges of a transaction that are counted at most.
const ROWS_COUNTED_MAX: u64 = 1_000_000;
const RANGES_COUNTED_MAX: usize = 10_000;

/// Locks at some moment.
#[derive(Clone, Debug)]
pub struct LockReports {
    pub locks: Vec<LockReport>,
    /// There may be more that are held.
    pub is_cut: bool,
}

/// A deadlock, at the moment when its victim is chosen.
#[derive(Clone, Debug)]
pub struct DeadlockReport {
    /// What the members of the circle wait for: each for the next one, the last for the first.
    pub members: Vec<LockReport>,
    /// The member that is rolled back.
    pub victim: usize,
}

/// A transaction's hold on a record, put together from its explicit lock and its ranges.
#[derive(Clone, Copy, Default)]
struct Hold {
    record: Option<LockMode>,
    gap: Option<LockMode>,
}

fn stronger(a: Option<LockMode>, b: LockMode) -> Option<LockMode> {
    Some(if a == Some(LockMode::Exclusive) { LockMode::Exclusive } else { b })
}

type Holds = AHashMap<(TxnId, IndexId, Option<Vec<u8>>), Hold>;

/// The modes of a range's gaps and of its rows.
fn modes_of(kind: RangeKind) -> (LockMode, LockMode) {
    match kind {
        RangeKind::Gap(mode) => (mode, mode),
        RangeKind::Shared => (LockMode::Shared, LockMode::Shared),
    }
}

/// What `System::expand` makes of a range at one record (`None`: the supremum), before which there is none from `gap` on.
fn hold_at(range: &HeldRange, key: &Option<Vec<u8>>, gap: &[u8], holds: &mut Holds) {
    let span = &range.span;
    let (mode, rows) = modes_of(range.kind);
    let from = gap.max(span.lower.as_slice());
    let covers_gap = key.as_deref().is_none_or(|key| key > from) && span.upper.as_deref().is_none_or(|upper| upper > from);
    let covers_record = key.as_deref().is_some_and(|key| span.contains(key));
    if covers_gap || covers_record {
        let hold = holds.entry((range.owner, range.index, key.clone())).or_default();
        if covers_gap {
            hold.gap = stronger(hold.gap, mode);
        }
        if covers_record {
            hold.record = stronger(hold.record, rows);
        }
    }
}

impl System {
    /// Explicit, gap and range locks and all waits, by transaction, index and key. What a transaction has written and nobody has waited for is not
    /// among them, as in InnoDB. Once there are `most` that are held no more are looked for.
    pub fn lock_reports(&self, most: usize) -> Result<LockReports> {
        let mut holds = Holds::default();
        for (txn, index, key, mode) in self.locks.held_keys(|_, _| true, most) {
            let hold = holds.entry((txn, index, Some(key))).or_default();
            hold.record = stronger(hold.record, mode);
        }
        let left = most.saturating_sub(holds.len());
        let runs = self.locks.held_runs(|_, _, _| true, left);
        // Several may be on one record.
        let mut is_cut = runs.len() >= left;
        for run in runs {
            if self.store.space.root(run.index).is_some() {
                self.expand_run(&run, &mut holds, most)?;
            }
        }
        let left = most.saturating_sub(holds.len());
        let ranges = self.locks.held_ranges(|_, _| true, left);
        is_cut |= ranges.len() >= left;
        for range in ranges {
            // An index that is being dropped has no locks that anybody could ask about.
            if self.store.space.root(range.index).is_some() {
                self.expand(&range, &mut holds, most)?;
            }
        }
        is_cut |= holds.len() >= most;
        Ok(LockReports { locks: self.sorted(holds, self.lock_waits()?), is_cut })
    }

    /// All waits.
    pub fn lock_waits(&self) -> Result<Vec<LockReport>> {
        let waiters = [self.locks.key_waiters(), self.locks.range_waiters()].concat();
        waiters.iter().map(|waiter| self.wait_report(waiter)).collect()
    }

    /// All waits, and the locks that are held on the records which are waited for. However much is locked, only those are looked at.
    pub fn contended_locks(&self) -> Result<Vec<LockReport>> {
        let waits = self.lock_waits()?;
        let mut holds = Holds::default();
        let places: BTreeSet<_> = waits.iter().map(|wait| (wait.index, wait.key.clone())).collect();
        let indexes: BTreeSet<_> = waits.iter().map(|wait| wait.index).collect();
        let is_place = |index: IndexId, key: &[u8]| indexes.contains(&index) && places.contains(&(index, Some(key.to_vec())));
        // The first place at or behind the first key that is before the end.
        let has_place = |index: IndexId, first: &[u8], end: Option<&[u8]>| {
            indexes.contains(&index)
                && places.range((index, Some(first.to_vec()))..).next().is_some_and(|(of, key)| {
                    *of == index && key.as_deref().is_some_and(|key| end.map_or(key == first, |end| key < end))
                })
        };
        for (txn, index, key, mode) in self.locks.held_keys(is_place, usize::MAX) {
            let hold = holds.entry((txn, index, Some(key))).or_default();
            hold.record = stronger(hold.record, mode);
        }
        for run in self.locks.held_runs(has_place, usize::MAX) {
            for (index, key) in places.iter().filter(|(index, key)| *index == run.index && key.as_ref().is_some_and(|key| run.span.contains(key))) {
                let hold = holds.entry((run.owner, *index, key.clone())).or_default();
                hold.record = stronger(hold.record, run.mode);
            }
        }
        let ranges = self.locks.held_ranges(|_, index| indexes.contains(&index), usize::MAX);
        for (index, key) in &places {
            if ranges.iter().any(|range| range.index == *index) && self.store.space.root(*index).is_some() {
                let gap = self.gap_before(*index, key.as_deref())?;
                for range in ranges.iter().filter(|range| range.index == *index) {
                    hold_at(range, key, &gap, &mut holds);
                }
            }
        }
        Ok(self.sorted(holds, waits))
    }

    fn sorted(&self, holds: Holds, waits: Vec<LockReport>) -> Vec<LockReport> {
        let mut all: Vec<LockReport> = holds
            .into_iter()
            .map(|((txn, index, key), hold)| {
                let (mode, extent) = match (hold.record, hold.gap) {
                    (Some(record), None) => (record, LockExtent::Record),
                    (None, Some(gap)) => (gap, if key.is_none() { LockExtent::NextKey } else { LockExtent::Gap }),
                    (Some(record), Some(_)) => (record, LockExtent::NextKey),
                    (None, None) => unreachable!("an entry is made with one of them"),
                };
                LockReport { txn, index, key, mode, extent, wait: None }
            })
            .collect();
        all.extend(waits);
        all.sort_by(|a, b| (a.txn, a.index, a.key.is_none(), &a.key).cmp(&(b.txn, b.index, b.key.is_none(), &b.key)));
        all
    }

    /// A run as locks on its rows, until there are `most`.
    fn expand_run(&self, run: &HeldRun, holds: &mut Holds, most: usize) -> Result<()> {
        let (lower, upper) = (Bound::Included(run.span.lower.clone()), run.span.upper.clone().map_or(Bound::Unbounded, Bound::Excluded));
        let mut at = LeafScan::new(lower, upper, Direction::Forward);
        let tree = self.tree(run.index)?;
        while holds.len() < most
            && tree.scan_leaf(&mut at, |leaf| {
                for n in 0..leaf.len() {
                    let record = leaf.record(n);
                    // A row that is deleted was not there to be locked, unless its holder has deleted it.
                    if record.flags & RecordFlags::DELETE_MARK == 0 || record.txn == run.owner {
                        let mut key = Vec::new();
                        leaf.key(n, &mut key);
                        let hold = holds.entry((run.owner, run.index, Some(key))).or_default();
                        hold.record = stronger(hold.record, run.mode);
                    }
                }
            })?
        {}
        Ok(())
    }

    /// A span as locks on the records in it and on the one behind it, until there are `most`.
    fn expand(&self, range: &HeldRange, holds: &mut Holds, most: usize) -> Result<()> {
        let (txn, index, span) = (range.owner, range.index, &range.span);
        let (mode, rows) = modes_of(range.kind);
        let mut at = LeafScan::new(Bound::Included(span.lower.clone()), Bound::Unbounded, Direction::Forward);
        let tree = self.tree(index)?;
        // Where the gap that is covered begins.
        let mut from = span.lower.clone();
        let mut end = None;
        let mut key = Vec::new();
        while end.is_none()
            && holds.len() < most
            && tree.scan_leaf(&mut at, |leaf| {
                for n in 0..leaf.len() {
                    key.clear();
                    leaf.key(n, &mut key);
                    if span.upper.as_ref().is_some_and(|upper| key >= *upper) {
                        end = Some(key.clone());
                        return;
                    }
                    let hold = holds.entry((txn, index, Some(key.clone()))).or_default();
                    if key > from {
                        hold.gap = stronger(hold.gap, mode);
                    }
                    // Nobody inserts a key of the span either, so with its gap the record is locked.
                    hold.record = stronger(hold.record, rows);
                    from.clone_from(&key);
                    from.push(0);
                }
            })?
        {}
        if holds.len() < most && span.upper.as_ref().is_none_or(|upper| *upper > from) {
            let hold = holds.entry((txn, index, end)).or_default();
            hold.gap = stronger(hold.gap, mode);
        }
        Ok(())
    }

    /// Where the gap before a record begins: behind the record before it.
    fn gap_before(&self, index: IndexId, key: Option<&[u8]>) -> Result<Vec<u8>> {
        let upper = key.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
        let mut at = LeafScan::new(Bound::Unbounded, upper, Direction::Backward);
        let mut from = Vec::new();
        self.tree(index)?.scan_leaf(&mut at, |leaf| {
            leaf.key(leaf.len() - 1, &mut from);
            from.push(0);
        })?;
        Ok(from)
    }

    /// What a transaction has locks on, without looking at each of them. `None`: it has ended.
    pub fn txn_locks(&self, id: TxnId) -> Result<Option<TxnLocks>> {
        let Some(owner) = self.locks.owners.get(id) else { return Ok(None) };
        let indexes = self.locks.locked_indexes(&owner);
        let (locked_keys, ..) = self.locks.size(&owner);
        let mut rows = locked_keys as u64;
        // Rows of other ranges are locked one by one too.
        let shared = self.locks.held_ranges(|txn, index| txn == id && indexes.contains(&index), RANGES_COUNTED_MAX);
        for range in shared.into_iter().filter(|range| range.kind == RangeKind::Shared && self.store.space.root(range.index).is_some()) {
            let upper = range.span.upper.map_or(Bound::Unbounded, Bound::Excluded);
            let mut at = LeafScan::new(Bound::Included(range.span.lower), upper, Direction::Forward);
            let tree = self.tree(range.index)?;
            while rows < ROWS_COUNTED_MAX && tree.scan_leaf(&mut at, |leaf| rows += leaf.len() as u64)? {}
        }
        Ok(Some(TxnLocks { rows, indexes }))
    }

    fn wait_report(&self, waiter: &Arc<Waiter>) -> Result<LockReport> {
        let (index, key) = waiter.place();
        let (key, mode, extent) = match waiter.wants {
            Wants::Row(mode) => (Some(key.to_vec()), mode, LockExtent::Record),
            Wants::Lock => (Some(key.to_vec()), LockMode::Exclusive, LockExtent::Record),
            Wants::Insert => (self.key_behind(index, key)?, LockMode::Exclusive, LockExtent::InsertIntention),
        };
        let blockers = self.locks.blockers(waiter).iter().map(|owner| owner.id).collect();
        Ok(LockReport { txn: waiter.owner.id, index, key, mode, extent, wait: Some(WaitReport { since_us: waiter.since_us, blockers }) })
    }

    fn key_behind(&self, index: IndexId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut at = LeafScan::new(Bound::Excluded(key.to_vec()), Bound::Unbounded, Direction::Forward);
        let mut next = Vec::new();
        let found = self.tree(index)?.scan_leaf(&mut at, |leaf| leaf.key(0, &mut next))?;
        Ok(found.then_some(next))
    }

    /// `None`: it has ended.
    pub fn txn_size(&self, id: TxnId) -> Option<TxnSize> {
        let owner = self.locks.owners.get(id)?;
        let (locked_keys, lock_bytes, locked_ranges) = self.locks.size(&owner);
        Some(TxnSize { locked_keys, lock_bytes, locked_ranges, entries_changed: owner.work.load(Ordering::Relaxed) })
    }

    /// Tells `watcher` of every deadlock, before its victim is told.
    pub fn watch_deadlocks(self: &Arc<Self>, watcher: Box<dyn Fn(&DeadlockReport) + Send + Sync>) {
        let system = Arc::downgrade(self);
        self.locks.watch_deadlocks(Box::new(move |cycle, victim| {
            let Some(system) = system.upgrade() else { return };
            let members: Result<Vec<_>> = cycle.iter().map(|waiter| system.wait_report(waiter)).collect();
            match members {
                Ok(members) => watcher(&DeadlockReport { members, victim }),
                Err(error) => tracing::warn!(%error, "a deadlock could not be reported"),
            }
        }));
    }
}
