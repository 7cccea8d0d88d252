//! The locks as reports show them: as InnoDB's record locks, gaps on the record behind them.
//!
//! What is looked at changes meanwhile: each lock was held at some moment of the report, not all at one.

use std::ops::Bound;

use ahash::AHashMap;

use super::rows::LockMode;
use super::system::System;
use crate::btree::{Direction, LeafScan, RecordFlags};
use crate::error::Result;
use crate::ids::{IndexId, TxnId};
use crate::lock::{HeldRun, RangeKind, Span, Wants, Waiter};
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

impl System {
    /// All explicit, gap and range locks and all waits, by transaction, index and key. What a transaction has written and nobody has waited for is not
    /// among them, as in InnoDB.
    pub fn lock_reports(&self) -> Result<Vec<LockReport>> {
        let mut holds = Holds::default();
        let (granted, mut waiting) = self.locks.held_keys();
        for (txn, index, key, mode) in granted {
            let hold = holds.entry((txn, index, Some(key))).or_default();
            hold.record = stronger(hold.record, mode);
        }
        for run in self.locks.held_runs() {
            if self.store.space.root(run.index).is_some() {
                self.expand_run(&run, &mut holds)?;
            }
        }
        for range in self.locks.held_ranges() {
            // An index that is being dropped has no locks that anybody could ask about.
            if self.store.space.root(range.index).is_some() {
                self.expand(range.owner, range.index, range.kind, &range.span, &mut holds)?;
            }
        }
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
        waiting.extend(self.locks.range_waiters());
        for waiter in waiting {
            all.push(self.wait_report(&waiter)?);
        }
        all.sort_by(|a, b| (a.txn, a.index, a.key.is_none(), &a.key).cmp(&(b.txn, b.index, b.key.is_none(), &b.key)));
        Ok(all)
    }

    /// A run as locks on its rows.
    fn expand_run(&self, run: &HeldRun, holds: &mut Holds) -> Result<()> {
        let (lower, upper) = (Bound::Included(run.span.lower.clone()), run.span.upper.clone().map_or(Bound::Unbounded, Bound::Excluded));
        let mut at = LeafScan::new(lower, upper, Direction::Forward);
        let tree = self.tree(run.index)?;
        while tree.scan_leaf(&mut at, |leaf| {
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
        })? {}
        Ok(())
    }

    /// A span as locks on the records in it and on the one behind it.
    fn expand(&self, txn: TxnId, index: IndexId, kind: RangeKind, span: &Span, holds: &mut Holds) -> Result<()> {
        let (mode, rows) = match kind {
            RangeKind::Gap(mode) => (mode, None),
            RangeKind::Shared => (LockMode::Shared, Some(LockMode::Shared)),
        };
        let mut at = LeafScan::new(Bound::Included(span.lower.clone()), Bound::Unbounded, Direction::Forward);
        let tree = self.tree(index)?;
        // Where the gap that is covered begins.
        let mut from = span.lower.clone();
        let mut end = None;
        let mut key = Vec::new();
        while end.is_none()
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
                    hold.record = stronger(hold.record, rows.unwrap_or(mode));
                    from.clone_from(&key);
                    from.push(0);
                }
            })?
        {}
        if span.upper.as_ref().is_none_or(|upper| *upper > from) {
            let hold = holds.entry((txn, index, end)).or_default();
            hold.gap = stronger(hold.gap, mode);
        }
        Ok(())
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
