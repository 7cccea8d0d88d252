//! Range locks: gaps that nobody else may insert into, and whole ranges of rows that nobody else may change.
//!
//! A range is a span of key bytes, held by a transaction on an index whether or not the keys at its ends exist. So nothing is to be
//! inherited when such a key is purged, rolled back or inserted, and a scan over a million rows leaves one entry.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::task::Waker;

use ahash::AHashMap;
use crossbeam::utils::CachePadded;

use super::owner::Owner;
use super::table::{LockTable, row_key, split_row};
use super::wait::{LockError, Wants, Waiter};
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, fence};
use crate::txn::LockMode;

const SHARDS: usize = 128;

/// What a range lock keeps others from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeKind {
    /// Inserting. The mode is what the gap's holder asked for; for others it makes no difference.
    Gap(LockMode),
    /// Inserting, and changing or exclusively locking a row.
    Shared,
}

/// Keys from `lower` on and below `upper`; without an upper end, to the supremum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub lower: Vec<u8>,
    pub upper: Option<Vec<u8>>,
}

impl Span {
    pub fn contains(&self, key: &[u8]) -> bool {
        self.lower.as_slice() <= key && self.upper.as_deref().is_none_or(|upper| key < upper)
    }

    fn is_empty(&self) -> bool {
        self.upper.as_ref().is_some_and(|upper| *upper <= self.lower)
    }
}

/// Disjoint spans that do not touch, by their lower ends.
#[derive(Default)]
struct Spans(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Spans {
    fn find(&self, key: &[u8]) -> Option<(&Vec<u8>, &Option<Vec<u8>>)> {
        self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.find(key).is_some_and(|(_, upper)| upper.as_deref().is_none_or(|upper| key < upper))
    }

    /// Adds a span and joins it with those that it overlaps or touches.
    fn add(&mut self, span: Span) {
        let Span { mut lower, mut upper } = span;
        if let Some((first, end)) = self.find(&lower)
            && end.as_ref().is_none_or(|end| *end >= lower)
        {
            if end.is_none() || (upper.is_some() && *end >= upper) {
                return;
            }
            lower = first.clone();
        }
        while let Some((next, end)) = self.0.range::<[u8], _>((Bound::Included(lower.as_slice()), Bound::Unbounded)).next()
            && upper.as_ref().is_none_or(|upper| next <= upper)
        {
            if end.is_none() || (upper.is_some() && *end > upper) {
                upper.clone_from(end);
            }
            let next = next.clone();
            self.0.remove(&next);
        }
        self.0.insert(lower, upper);
    }

    fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.0.iter().map(|(lower, upper)| Span { lower: lower.clone(), upper: upper.clone() })
    }
}

/// One transaction's range locks on one index.
struct Holder {
    owner: Arc<Owner>,
    /// Asked for in share mode and in exclusive mode.
    gaps: [Spans; 2],
    shared: Spans,
    /// Where scans are: what such a scan has read of its leaf, which its caller may have stopped short of.
    open: Vec<(u64, RangeKind, Span)>,
}

impl Holder {
    fn forbids(&self, wants: Wants, key: &[u8]) -> bool {
        let insert = wants == Wants::Insert;
        self.shared.contains(key)
            || (insert && self.gaps.iter().any(|gaps| gaps.contains(key)))
            || self.open.iter().any(|(_, kind, span)| (insert || *kind == RangeKind::Shared) && span.contains(key))
    }

    fn add(&mut self, kind: RangeKind, span: Span) {
        if !span.is_empty() {
            match kind {
                RangeKind::Gap(mode) => self.gaps[mode as usize].add(span),
                RangeKind::Shared => self.shared.add(span),
            }
        }
    }
}

#[derive(Default)]
struct IndexRanges {
    holders: AHashMap<TxnId, Holder>,
    waiting: Vec<Arc<Waiter>>,
}

impl IndexRanges {
    fn forbids(&self, owner: TxnId, wants: Wants, key: &[u8]) -> bool {
        self.holders.iter().any(|(id, holder)| *id != owner && holder.forbids(wants, key))
    }

    /// Ends the waits of those whom nobody is in the way of any more. They look again: this grants nothing.
    fn wake(&mut self, wakers: &mut Vec<Waker>) {
        let mut at = 0;
        while at < self.waiting.len() {
            let waiter = self.waiting[at].clone();
            if self.forbids(waiter.owner.id, waiter.wants, waiter.place().1) {
                at += 1;
                continue;
            }
            self.waiting.swap_remove(at);
            *waiter.owner.waiting.lock() = None;
            wakers.extend(waiter.resolve(Ok(())));
        }
    }
}

#[derive(Default)]
struct Shard {
    /// Transactions with range locks on indexes of the shard. A writer that finds 0 under its latch has none to respect: whoever takes a
    /// range lock does it under the latch of the leaf that it covers (I8).
    holders: AtomicUsize,
    map: Mutex<AHashMap<IndexId, IndexRanges>>,
}

/// The range locks of all indexes.
pub(super) struct Ranges {
    shards: Vec<CachePadded<Shard>>,
    next_open: AtomicUsize,
}

/// A range lock as reports show it.
#[derive(Clone, Debug)]
pub(crate) struct HeldRange {
    pub owner: TxnId,
    pub kind: RangeKind,
    pub index: IndexId,
    pub span: Span,
}

impl Ranges {
    pub fn new() -> Ranges {
        Ranges { shards: (0..SHARDS).map(|_| CachePadded::default()).collect(), next_open: AtomicUsize::new(0) }
    }

    fn shard(&self, index: IndexId) -> &Shard {
        &self.shards[index.0 as usize % SHARDS]
    }

    /// Pairs of a transaction and an index that it has range locks on.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.holders.load(Ordering::Relaxed)).sum()
    }

    /// Changes a transaction's locks on an index, with an entry made for it if there is none.
    fn change(&self, owner: &Arc<Owner>, index: IndexId, change: impl FnOnce(&mut Holder)) {
        let shard = self.shard(index);
        let mut map = shard.map.lock();
        let holder = map.entry(index).or_default().holders.entry(owner.id).or_insert_with(|| {
            let mut held = owner.held.lock();
            assert!(!held.released, "I3: a transaction that has ended asks for no lock");
            held.ranges.push(index);
            shard.holders.fetch_add(1, Ordering::SeqCst);
            Holder { owner: owner.clone(), gaps: Default::default(), shared: Spans::default(), open: Vec::new() }
        });
        change(holder);
    }
}

impl LockTable {
    /// Locks a span until the transaction ends. Gaps conflict with nobody who has them; of a shared range the caller sees to it that nobody
    /// has a row of it exclusively. Under the latch of the leaf that holds the span, as far as the lock has to be right.
    pub fn lock_range(&self, owner: &Arc<Owner>, index: IndexId, kind: RangeKind, span: Span) {
        self.ranges().change(owner, index, |holder| holder.add(kind, span));
        // A shared range's holder looks at the keys' locks next; see `range_forbids_lock`.
        fence(Ordering::SeqCst);
    }

    /// As `lock_range`, of a span that `close_range` may give a part of back.
    pub fn open_range(&self, owner: &Arc<Owner>, index: IndexId, kind: RangeKind, span: Span) -> u64 {
        let number = self.ranges().next_open.fetch_add(1, Ordering::Relaxed) as u64;
        self.ranges().change(owner, index, |holder| holder.open.push((number, kind, span)));
        fence(Ordering::SeqCst);
        number
    }

    /// Keeps `keep` of an open span and gives the rest back. Nothing if the transaction has ended.
    pub fn close_range(&self, owner: TxnId, index: IndexId, number: u64, keep: Option<Span>) {
        let mut wakers = Vec::new();
        {
            let mut map = self.ranges().shard(index).map.lock();
            let Some(ranges) = map.get_mut(&index) else { return };
            let Some(holder) = ranges.holders.get_mut(&owner) else { return };
            let Some(at) = holder.open.iter().position(|(n, _, _)| *n == number) else { return };
            let (_, kind, span) = holder.open.swap_remove(at);
            let shrunk = keep.as_ref() != Some(&span);
            if let Some(keep) = keep {
                holder.add(kind, keep);
            }
            if shrunk {
                ranges.wake(&mut wakers);
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether another transaction's range keeps `owner` from what it wants to do at `key`. Under the exclusive latch of the key's leaf.
    pub fn range_forbids(&self, owner: TxnId, index: IndexId, wants: Wants, key: &[u8]) -> bool {
        let shard = self.ranges().shard(index);
        if shard.holders.load(Ordering::Relaxed) == 0 {
            return false;
        }
        shard.map.lock().get(&index).is_some_and(|ranges| ranges.forbids(owner, wants, key))
    }

    /// As `range_forbids`, for an exclusive lock about to be entered in the key's queue. The caller has the mutex of the key's shard, and the
    /// shard counts the key: who takes a range looks at that count afterwards. So of two that meet here under a shared latch, one sees the other.
    pub(super) fn range_forbids_lock(&self, owner: TxnId, row: &[u8]) -> bool {
        fence(Ordering::SeqCst);
        let (index, key) = split_row(row);
        self.range_forbids(owner, index, Wants::Lock, key)
    }

    /// Queues up behind the ranges in the way; none if there are none any more.
    pub fn wait_for_range(&self, owner: &Arc<Owner>, index: IndexId, wants: Wants, key: &[u8]) -> Option<Arc<Waiter>> {
        let mut map = self.ranges().shard(index).map.lock();
        let ranges = map.get_mut(&index)?;
        if !ranges.forbids(owner.id, wants, key) {
            return None;
        }
        let waiter = Arc::new(Waiter::new(owner.clone(), &row_key(index, key), wants, self.clock().wall_micros()));
        *owner.waiting.lock() = Some(waiter.clone());
        ranges.waiting.push(waiter.clone());
        Some(waiter)
    }

    /// Ends a wait for ranges; false if it has ended.
    pub(super) fn leave_range(&self, waiter: &Arc<Waiter>, error: LockError) -> bool {
        let (index, _) = waiter.place();
        let mut map = self.ranges().shard(index).map.lock();
        let Some(ranges) = map.get_mut(&index) else { return false };
        let Some(at) = ranges.waiting.iter().position(|w| Arc::ptr_eq(w, waiter)) else { return false };
        ranges.waiting.swap_remove(at);
        *waiter.owner.waiting.lock() = None;
        let waker = waiter.resolve(Err(error));
        drop(map);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    pub(super) fn release_ranges(&self, owner: TxnId, index: IndexId, wakers: &mut Vec<Waker>) {
        let shard = self.ranges().shard(index);
        let mut map = shard.map.lock();
        let Some(ranges) = map.get_mut(&index) else { return };
        if ranges.holders.remove(&owner).is_some() {
            shard.holders.fetch_sub(1, Ordering::Relaxed);
        }
        ranges.wake(wakers);
        if ranges.holders.is_empty() {
            debug_assert!(ranges.waiting.is_empty(), "who waits for nobody has been woken");
            map.remove(&index);
        }
    }

    /// Whom a waiter for ranges waits for.
    pub(super) fn range_blockers(&self, waiter: &Arc<Waiter>) -> Vec<Arc<Owner>> {
        let (index, key) = waiter.place();
        let map = self.ranges().shard(index).map.lock();
        let Some(ranges) = map.get(&index).filter(|_| waiter.outcome().is_none()) else { return Vec::new() };
        let others = ranges.holders.values().filter(|holder| holder.owner.id != waiter.owner.id);
        others.filter(|holder| holder.forbids(waiter.wants, key)).map(|holder| holder.owner.clone()).collect()
    }

    /// Whether another transaction has a range lock on the index. Under the exclusive latch of the index's only page.
    pub(super) fn any_range_in(&self, index: IndexId, owner: TxnId) -> bool {
        let shard = self.ranges().shard(index);
        shard.holders.load(Ordering::Relaxed) > 0
            && shard.map.lock().get(&index).is_some_and(|ranges| ranges.holders.keys().any(|id| *id != owner))
    }

    /// Range locks of transactions on indexes that `wanted` picks, those of one index together, at most `most` of them.
    pub fn held_ranges(&self, wanted: impl Fn(TxnId, IndexId) -> bool, most: usize) -> Vec<HeldRange> {
        let mut all = Vec::new();
        for shard in &self.ranges().shards {
            for (index, ranges) in shard.map.lock().iter() {
                for (owner, holder) in ranges.holders.iter().filter(|(owner, _)| wanted(**owner, *index)) {
                    let held = |kind, span| HeldRange { owner: *owner, kind, index: *index, span };
                    for mode in [LockMode::Shared, LockMode::Exclusive] {
                        let left = most - all.len();
                        all.extend(holder.gaps[mode as usize].iter().take(left).map(|span| held(RangeKind::Gap(mode), span)));
                    }
                    let left = most - all.len();
                    all.extend(holder.shared.iter().take(left).map(|span| held(RangeKind::Shared, span)));
                    let left = most - all.len();
                    all.extend(holder.open.iter().take(left).map(|(_, kind, span)| held(*kind, span.clone())));
                }
            }
        }
        all
    }

    /// The waits for ranges.
    pub fn range_waiters(&self) -> Vec<Arc<Waiter>> {
        self.ranges().shards.iter().flat_map(|s| s.map.lock().values().flat_map(|r| r.waiting.clone()).collect::<Vec<_>>()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lower: &str, upper: Option<&str>) -> Span {
        Span { lower: lower.into(), upper: upper.map(Into::into) }
    }

    fn text(spans: &Spans) -> String {
        let end = |s: &Option<Vec<u8>>| s.as_ref().map_or("~".into(), |s| String::from_utf8(s.clone()).unwrap());
        let parts: Vec<_> = spans.iter().map(|s| format!("{}-{}", String::from_utf8(s.lower).unwrap(), end(&s.upper))).collect();
        parts.join(" ")
    }

    #[test]
    fn spans_that_meet_become_one() {
        let mut spans = Spans::default();
        for (lower, upper, all) in [
            ("d", Some("f"), "d-f"),
            ("h", Some("k"), "d-f h-k"),
            ("e", Some("f"), "d-f h-k"),
            ("f", Some("g"), "d-g h-k"),
            ("b", Some("c"), "b-c d-g h-k"),
            ("a", Some("d"), "a-g h-k"),
            ("x", None, "a-g h-k x-~"),
            ("y", Some("z"), "a-g h-k x-~"),
            ("g", Some("i"), "a-k x-~"),
            ("m", None, "a-k m-~"),
            ("", None, "-~"),
        ] {
            spans.add(span(lower, upper));
            assert_eq!(text(&spans), all, "after {lower}-{upper:?}");
        }
    }

    /// Against a set of single keys.
    #[test]
    fn spans_contain_what_was_added() {
        use rand::{Rng, SeedableRng};
        for seed in 0..200 {
            let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
            let (mut spans, mut model) = (Spans::default(), [false; 40]);
            for _ in 0..12 {
                let (a, b) = (rng.random_range(0..40u8), rng.random_range(0..40u8));
                let upper = rng.random_bool(0.95).then(|| vec![b]);
                model.iter_mut().enumerate().filter(|(k, _)| *k >= a.into() && upper.as_ref().is_none_or(|u| *k < u[0].into())).for_each(|(_, m)| *m = true);
                let added = Span { lower: vec![a], upper };
                if !added.is_empty() {
                    spans.add(added);
                }
                for (key, inside) in model.iter().enumerate() {
                    assert_eq!(spans.contains(&[key as u8]), *inside, "seed {seed}, key {key}");
                }
            }
        }
    }
}
