//! Runs: consecutive rows that one transaction has locked, in one entry.
//!
//! A transaction that has more than a few explicit locks keeps them here. A row is in a run as long as only its holders, whose locks go
//! together, are interested in it: who has to wait for it takes it out of the run and into the key's queue first, as with an implicit
//! lock. So nobody ever waits for a run, and the end of one wakes nobody.
//!
//! A run is a span of key bytes and means the rows that it was made of. Neighbours are joined under the latch of the leaf that has them, with no
//! record between them; who inserts a row in between afterwards cuts its key out of the run.

use std::collections::BTreeMap;
use std::ops::Bound;

use ahash::AHashMap;
use crossbeam::utils::CachePadded;
use smallvec::SmallVec;

use super::owner::Owner;
use super::ranges::Span;
use super::table::{RowKey, conflict};
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering};
use crate::txn::LockMode;

const SHARDS: usize = 128;
const MODES: [LockMode; 2] = [LockMode::Shared, LockMode::Exclusive];

/// The records beside a key in its leaf.
#[derive(Default)]
pub(crate) struct Neighbours {
    pub before: Option<RowKey>,
    pub after: Option<RowKey>,
}

fn successor(key: &[u8]) -> Box<[u8]> {
    [key, &[0]].concat().into()
}

/// Disjoint runs by their first keys, each with the first key behind it; `None`: it is the first key alone.
#[derive(Default)]
struct RunSet(BTreeMap<Box<[u8]>, Option<Box<[u8]>>>);

impl RunSet {
    /// The run that has the key, by its first one.
    fn find(&self, key: &[u8]) -> Option<&[u8]> {
        let (first, end) = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        end.as_ref().map_or(**first == *key, |end| *key < **end).then_some(first)
    }

    /// Adds a key that no run has, and joins it with the runs of its neighbours.
    fn add(&mut self, key: &[u8], near: &Neighbours) {
        debug_assert!(self.find(key).is_none(), "a key is added once");
        let (lower, upper) = (near.before.as_deref().unwrap_or(key), near.after.as_deref().unwrap_or(key));
        let (mut before, mut behind, mut left) = (None, None, SmallVec::<[Box<[u8]>; 1]>::new());
        // From behind; nearly always one decides.
        for (first, end) in self.0.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(upper))).rev() {
            let has = |key: &[u8]| end.as_ref().map_or(**first == *key, |end| **first <= *key && *key < **end);
            if near.after.is_some() && has(upper) {
                behind = Some(first.clone());
            } else if **first > *lower {
                // A cut has left it, without a row.
                left.push(first.clone());
            } else {
                if near.before.is_some() && has(lower) {
                    if behind.is_none() && left.is_empty() {
                        *end = Some(successor(key));
                        return;
                    }
                    before = Some(first.clone());
                }
                break;
            }
        }
        for first in left {
            self.0.remove(&first);
        }
        let end = behind.map(|first| self.0.remove(&first).flatten().unwrap_or_else(|| successor(&first)));
        match before {
            Some(first) => self.0.insert(first, Some(end.unwrap_or_else(|| successor(key)))),
            None => self.0.insert(key.into(), end),
        };
    }

    /// Takes away what cuts have left between a key that no run has and its neighbours: it has no row.
    fn tidy(&mut self, key: &[u8], near: &Neighbours) {
        let (lower, upper) = (near.before.as_deref().unwrap_or(key), near.after.as_deref().unwrap_or(key));
        if lower == upper || self.0.is_empty() {
            return;
        }
        let is_left = |end: &Option<Box<[u8]>>| end.as_ref().is_some_and(|end| **end <= *upper);
        while let Some(left) = self.0.range::<[u8], _>((Bound::Excluded(lower), Bound::Excluded(upper))).find(|(_, end)| is_left(end)).map(|(first, _)| first.clone()) {
            self.0.remove(&left);
        }
    }

    /// Cuts a key out; false if no run has it.
    fn remove(&mut self, key: &[u8]) -> bool {
        let end = match self.0.remove(key) {
            Some(end) => end,
            None => {
                let Some(first) = self.find(key).map(Box::<[u8]>::from) else { return false };
                self.0.insert(first, Some(key.into())).flatten()
            }
        };
        if let Some(end) = end {
            let next = successor(key);
            if next < end {
                self.0.insert(next, Some(end));
            }
        }
        true
    }

    fn bytes(&self) -> usize {
        let entry = size_of::<(Box<[u8]>, Option<Box<[u8]>>)>();
        self.0.iter().map(|(first, end)| entry + first.len() + end.as_ref().map_or(0, |end| end.len())).sum()
    }
}

/// One transaction's runs on one index.
struct Holder {
    owner: Arc<Owner>,
    by_mode: [RunSet; 2],
    /// Rows in them.
    rows: usize,
}

impl Holder {
    fn add(&mut self, key: &[u8], mode: LockMode, near: &Neighbours) {
        debug_assert!(self.mode_of(key).is_none(), "I1: a row's lock is in one place");
        for other in MODES.into_iter().filter(|other| *other != mode) {
            self.by_mode[other as usize].tidy(key, near);
        }
        self.by_mode[mode as usize].add(key, near);
        self.rows += 1;
    }

    fn mode_of(&self, key: &[u8]) -> Option<LockMode> {
        MODES.into_iter().find(|mode| self.by_mode[*mode as usize].find(key).is_some())
    }
}

#[derive(Default)]
struct Shard {
    /// Transactions with runs on indexes of the shard. Who finds 0 under a latch that it needs for its key has none to respect, as with `Ranges`.
    holders: AtomicUsize,
    map: Mutex<AHashMap<IndexId, AHashMap<TxnId, Holder>>>,
}

/// The runs of all indexes.
pub(super) struct Runs {
    shards: Vec<CachePadded<Shard>>,
}

/// A run as reports show it: all rows of the span.
#[derive(Clone, Debug)]
pub(crate) struct HeldRun {
    pub owner: TxnId,
    pub index: IndexId,
    pub mode: LockMode,
    pub span: Span,
}

impl Runs {
    pub fn new() -> Runs {
        Runs { shards: (0..SHARDS).map(|_| CachePadded::default()).collect() }
    }

    fn shard(&self, index: IndexId) -> &Shard {
        &self.shards[index.0 as usize % SHARDS]
    }

    /// Whether anybody may have a run on the index.
    pub fn may_have(&self, index: IndexId) -> bool {
        self.shard(index).holders.load(Ordering::SeqCst) > 0
    }

    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.holders.load(Ordering::SeqCst) == 0)
    }

    /// Rows in runs.
    pub fn rows(&self) -> usize {
        self.shards.iter().map(|shard| shard.map.lock().values().flat_map(|holders| holders.values()).map(|h| h.rows).sum::<usize>()).sum()
    }

    /// Enters a row that the owner has locked. False if the owner has ended.
    pub fn add(&self, owner: &Arc<Owner>, index: IndexId, key: &[u8], mode: LockMode, near: &Neighbours) -> bool {
        let shard = self.shard(index);
        let mut map = shard.map.lock();
        let holders = map.entry(index).or_default();
        if !holders.contains_key(&owner.id) {
            let mut held = owner.held.lock();
            if held.released {
                return false;
            }
            held.runs.push(index);
            shard.holders.fetch_add(1, Ordering::SeqCst);
            holders.insert(owner.id, Holder { owner: owner.clone(), by_mode: Default::default(), rows: 0 });
        }
        let holder = holders.get_mut(&owner.id).expect("entered above");
        holder.add(key, mode, near);
        true
    }

    /// As `add`, of a row that is in nobody's queue, for an owner that has runs on the index: whether the lock is new. `None`: that needs a look at
    /// more than this.
    pub fn lock(&self, owner: TxnId, index: IndexId, key: &[u8], mode: LockMode, near: impl FnOnce() -> Neighbours) -> Option<bool> {
        let mut map = self.shard(index).map.lock();
        let holders = map.get_mut(&index)?;
        let others = holders.values().filter(|holder| holder.owner.id != owner);
        if others.filter_map(|holder| holder.mode_of(key)).any(|held| conflict(held, mode)) {
            return None;
        }
        let holder = holders.get_mut(&owner)?;
        match holder.mode_of(key) {
            None => holder.add(key, mode, &near()),
            Some(held) if held == mode || held == LockMode::Exclusive => return Some(false),
            Some(_) => return None,
        }
        Some(true)
    }

    /// How the owner has the key in a run.
    pub fn mode_of(&self, owner: TxnId, index: IndexId, key: &[u8]) -> Option<LockMode> {
        if !self.may_have(index) {
            return None;
        }
        self.shard(index).map.lock().get(&index)?.get(&owner)?.mode_of(key)
    }

    /// Whether another has the key in a run, in a way that conflicts with `mode`.
    pub fn conflicts(&self, owner: TxnId, index: IndexId, key: &[u8], mode: LockMode) -> bool {
        self.may_have(index)
            && self.shard(index).map.lock().get(&index).is_some_and(|holders| {
                let others = holders.values().filter(|h| h.owner.id != owner);
                others.filter_map(|h| h.mode_of(key)).any(|held| conflict(held, mode))
            })
    }

    /// Takes the key out of the runs that `wanted` names by their owner and mode.
    pub fn take(&self, index: IndexId, key: &[u8], wanted: impl Fn(TxnId, LockMode) -> bool) -> SmallVec<[(Arc<Owner>, LockMode); 2]> {
        let mut taken = SmallVec::new();
        if !self.may_have(index) {
            return taken;
        }
        let mut map = self.shard(index).map.lock();
        for holder in map.get_mut(&index).into_iter().flat_map(|holders| holders.values_mut()) {
            for mode in MODES {
                if wanted(holder.owner.id, mode) && holder.by_mode[mode as usize].remove(key) {
                    holder.rows -= 1;
                    taken.push((holder.owner.clone(), mode));
                }
            }
        }
        taken
    }

    /// A row comes to be where there was none: it is in nobody's run. Under the exclusive latch of its leaf.
    pub fn cut(&self, index: IndexId, key: &[u8]) {
        if self.may_have(index) {
            let mut map = self.shard(index).map.lock();
            for holder in map.get_mut(&index).into_iter().flat_map(|holders| holders.values_mut()) {
                for runs in &mut holder.by_mode {
                    runs.remove(key);
                }
            }
        }
    }

    /// Whether another transaction has a run on the index.
    pub fn any_in(&self, index: IndexId, owner: TxnId) -> bool {
        self.may_have(index) && self.shard(index).map.lock().get(&index).is_some_and(|holders| holders.keys().any(|id| *id != owner))
    }

    pub fn release(&self, owner: TxnId, index: IndexId) {
        let shard = self.shard(index);
        let _dropped_later = {
            let mut map = shard.map.lock();
            let Some(holders) = map.get_mut(&index) else { return };
            let holder = holders.remove(&owner);
            if holder.is_some() {
                shard.holders.fetch_sub(1, Ordering::Relaxed);
            }
            if holders.is_empty() {
                map.remove(&index);
            }
            holder
        };
    }

    /// Rows of one transaction's runs, and the bytes of these.
    pub fn size(&self, owner: TxnId, index: IndexId) -> (usize, usize) {
        let map = self.shard(index).map.lock();
        let holder = map.get(&index).and_then(|holders| holders.get(&owner));
        holder.map_or((0, 0), |h| (h.rows, h.by_mode.iter().map(RunSet::bytes).sum()))
    }

    /// Those, by their first key and the first one behind them (`None`: the first key alone), that `wanted` picks, at most `most` of them.
    pub fn held(&self, wanted: impl Fn(IndexId, &[u8], Option<&[u8]>) -> bool, most: usize) -> Vec<HeldRun> {
        let mut all = Vec::new();
        for shard in &self.shards {
            for (index, holders) in shard.map.lock().iter() {
                for (holder, mode) in holders.values().flat_map(|holder| MODES.map(|mode| (holder, mode))) {
                    let left = most - all.len();
                    let picked = holder.by_mode[mode as usize].0.iter().filter(|(first, end)| wanted(*index, first, end.as_deref()));
                    all.extend(picked.take(left).map(|(first, end)| {
                        let upper = end.clone().unwrap_or_else(|| successor(first)).into_vec();
                        HeldRun { owner: holder.owner.id, index: *index, mode, span: Span { lower: first.to_vec(), upper: Some(upper) } }
                    }));
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys are locked, given back and inserted in any order; against a set of keys.
    #[test]
    fn runs_have_the_rows_that_they_were_made_of() {
        use rand::{Rng, SeedableRng};
        use std::collections::BTreeMap as Map;
        for seed in 0..300 {
            let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
            let mut runs = RunSet::default();
            // Whether the row is locked.
            let mut rows: Map<u8, bool> = (0..20).map(|n| (n * 2, false)).collect();
            for _ in 0..60 {
                let key = rng.random_range(0..40u8);
                match rows.get(&key).copied() {
                    None => {
                        runs.remove(&[key]);
                        rows.insert(key, false);
                    }
                    Some(true) => {
                        assert!(runs.remove(&[key]), "seed {seed}, key {key}");
                        rows.insert(key, false);
                    }
                    Some(false) => {
                        let before = rows.range(..key).next_back().map(|(k, _)| RowKey::from_slice(&[*k]));
                        let after = rows.range(key + 1..).next().map(|(k, _)| RowKey::from_slice(&[*k]));
                        runs.add(&[key], &Neighbours { before, after });
                        rows.insert(key, true);
                    }
                }
                for (row, locked) in &rows {
                    assert_eq!(runs.find(&[*row]).is_some(), *locked, "seed {seed}, row {row}");
                }
            }
        }
    }

    #[test]
    fn rows_in_order_are_one_run_from_either_side() {
        for backward in [false, true] {
            let mut runs = RunSet::default();
            for n in 0..100u8 {
                let key = if backward { 99 - n } else { n };
                let (before, after) = (key.checked_sub(1).map(|k| RowKey::from_slice(&[k])), Some(RowKey::from_slice(&[key + 1])));
                runs.add(&[key], &Neighbours { before, after });
            }
            assert_eq!(runs.0.len(), 1);
        }
    }
}
