//! The snapshots that live: what they need is kept.

use std::collections::{BTreeMap, BTreeSet};

use ahash::AHashMap;
use crossbeam::utils::CachePadded;

use super::status::StatusTable;
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering};

const SHARDS: usize = 32;
/// After so many commits, and one for each snapshot that there was, who is content with the recent ones looks at them anew.
const LOOKED_EVERY: u64 = if cfg!(test) { 1 } else { 16 };

/// Timestamps of live snapshots with how many have each.
pub(crate) struct Views {
    shards: Vec<CachePadded<Mutex<BTreeMap<u64, usize>>>>,
    next: AtomicUsize,
    /// What was found at the last look.
    recent: Mutex<Arc<ReadPoints>>,
}

/// The timestamps at which snapshots read or will read, as of a moment: those that lived then, and all from that moment's visible timestamp on. Who lives
/// later had either been found then or is one of those.
pub(crate) struct ReadPoints {
    /// The visible timestamp, read before the snapshots were looked at.
    taken_at: u64,
    /// Ascending.
    live: Vec<u64>,
}

impl ReadPoints {
    pub fn taken_at(&self) -> u64 {
        self.taken_at
    }

    /// No snapshot, now or later, is older than this.
    pub fn oldest(&self) -> u64 {
        self.live.first().map_or(self.taken_at, |ts| self.taken_at.min(*ts))
    }

    /// Whether no snapshot, now or later, has a timestamp of `from..to`.
    pub fn none_between(&self, from: u64, to: u64) -> bool {
        to <= self.taken_at && {
            let at = self.live.partition_point(|ts| *ts < from);
            self.live.get(at).is_none_or(|ts| *ts >= to)
        }
    }
}

impl Views {
    pub fn new() -> Views {
        // Of the time before all commits: that says nothing of any interval.
        let recent = Mutex::new(Arc::new(ReadPoints { taken_at: 0, live: Vec::new() }));
        Views { shards: (0..SHARDS).map(|_| CachePadded::default()).collect(), next: AtomicUsize::new(0), recent }
    }

    /// Takes a view of what is committed now. The timestamp is read and published under one mutex: `look`, which reads the visible
    /// timestamp before it looks at the shard, either finds the view or the view is no older than what it read.
    pub fn open(self: &Arc<Self>, status: &StatusTable) -> View {
        let shard = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut live = self.shards[shard].lock();
        let ts = status.visible_ts();
        *live.entry(ts).or_insert(0) += 1;
        drop(live);
        View { ts, shard, views: self.clone(), replaced: Replaced::default() }
    }

    /// No snapshot, now or later, is older than this.
    pub fn oldest(&self, status: &StatusTable) -> u64 {
        self.look(status).oldest()
    }

    /// The timestamps at which snapshots read.
    pub fn look(&self, status: &StatusTable) -> Arc<ReadPoints> {
        let mut recent = self.recent.lock();
        *recent = self.look_at_all(status);
        recent.clone()
    }

    /// Those of some commits ago.
    pub fn recent(&self, status: &StatusTable) -> Arc<ReadPoints> {
        let mut recent = self.recent.lock();
        // A look costs a step for each snapshot: so each commit pays for a few of them.
        if status.visible_ts() >= recent.taken_at + LOOKED_EVERY + recent.live.len() as u64 {
            *recent = self.look_at_all(status);
        }
        recent.clone()
    }

    fn look_at_all(&self, status: &StatusTable) -> Arc<ReadPoints> {
        // First: who is not found below is no older than this.
        let taken_at = status.visible_ts();
        let mut live = Vec::new();
        for shard in &self.shards {
            live.extend(shard.lock().keys().copied());
        }
        live.sort_unstable();
        live.dedup();
        Arc::new(ReadPoints { taken_at, live })
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock().values().sum::<usize>()).sum()
    }
}

/// A live snapshot's timestamp. Dropping it lets purge go on.
pub(crate) struct View {
    pub ts: u64,
    shard: usize,
    views: Arc<Views>,
    replaced: Replaced,
}

/// The rows whose last committed version a view does not see, and which its own transaction has changed nevertheless: the view sees what it has made of
/// them, so not the version that entries of other indexes that it sees were made for.
#[derive(Default)]
struct Replaced {
    any: AtomicBool,
    keys: Mutex<AHashMap<IndexId, BTreeSet<Vec<u8>>>>,
}

impl View {
    /// The view's own transaction has changed a row whose last committed version the view does not see.
    pub fn note_replaced(&self, index: IndexId, key: &[u8]) {
        self.replaced.keys.lock().entry(index).or_default().insert(key.to_vec());
        self.replaced.any.store(true, Ordering::Release);
    }

    /// The keys of those rows.
    pub fn replaced(&self, index: IndexId) -> BTreeSet<Vec<u8>> {
        if !self.replaced.any.load(Ordering::Acquire) {
            return BTreeSet::new();
        }
        self.replaced.keys.lock().get(&index).cloned().unwrap_or_default()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut live = self.views.shards[self.shard].lock();
        let count = live.get_mut(&self.ts).expect("a live view is published");
        *count -= 1;
        if *count == 0 {
            live.remove(&self.ts);
        }
    }
}

/// Which record of a row a read wants.
#[derive(Clone)]
pub(crate) enum Sight {
    /// What was committed at the view's timestamp, or is the reader's own.
    Snapshot { view: Arc<View>, own: Option<TxnId> },
    /// The latest committed or own one. The view, taken before the read, keeps what it refers to.
    Latest { own: Option<TxnId>, _view: Arc<View> },
    /// The newest, committed or not.
    Newest { own: Option<TxnId>, _view: Arc<View> },
}

impl Sight {
    pub fn sees(&self, txn: TxnId, status: &StatusTable) -> bool {
        match self {
            Sight::Snapshot { view, own } => *own == Some(txn) || status.visible_at(txn, view.ts),
            Sight::Latest { own, .. } => *own == Some(txn) || !status.is_open(txn),
            Sight::Newest { .. } => true,
        }
    }

    pub fn own(&self) -> Option<TxnId> {
        match self {
            Sight::Snapshot { own, .. } | Sight::Latest { own, .. } | Sight::Newest { own, .. } => *own,
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn what_no_snapshot_sees_is_known() {
        let status = StatusTable::new(TxnId(1), 5, [], 0);
        let views = Arc::new(Views::new());
        let (first, again) = (views.open(&status), views.open(&status));
        status.set_visible_ts(9);
        let second = views.open(&status);
        status.set_visible_ts(20);
        let points = views.look(&status);
        assert_eq!((points.oldest(), points.taken_at()), (5, 20));
        let free = [(0, 5), (6, 9), (10, 20), (7, 7)];
        let taken = [(0, 6), (5, 6), (5, 9), (6, 10), (9, 10), (9, 20), (0, 20)];
        assert!(free.iter().all(|(from, to)| points.none_between(*from, *to)));
        assert!(taken.iter().all(|(from, to)| !points.none_between(*from, *to)));
        // Snapshots may be taken at 20 and later.
        assert!(!points.none_between(10, 21) && !points.none_between(20, 21) && !points.none_between(30, 31));
        drop((first, second));
        let points = views.look(&status);
        assert!(points.none_between(6, 20) && !points.none_between(5, 6));
        drop(again);
        assert_eq!((views.oldest(&status), views.len()), (20, 0));
        status.set_visible_ts(20 + LOOKED_EVERY);
        let third = views.open(&status);
        assert!(views.recent(&status).none_between(0, third.ts));
    }
}
