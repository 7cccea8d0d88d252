//! The snapshots that live: purge keeps what the oldest of them needs.

use std::collections::BTreeMap;

use crossbeam::utils::CachePadded;

use super::status::StatusTable;
use crate::ids::TxnId;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering};

const SHARDS: usize = 32;

/// Timestamps of live snapshots with how many have each.
pub(crate) struct Views {
    shards: Vec<CachePadded<Mutex<BTreeMap<u64, usize>>>>,
    next: AtomicUsize,
}

impl Views {
    pub fn new() -> Views {
        Views { shards: (0..SHARDS).map(|_| CachePadded::default()).collect(), next: AtomicUsize::new(0) }
    }

    /// Takes a view of what is committed now. The timestamp is read and published under one mutex: `oldest`, which reads the visible
    /// timestamp before it looks at the shard, either finds the view or the view is no older than what it read.
    pub fn open(self: &Arc<Self>, status: &StatusTable) -> View {
        let shard = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut live = self.shards[shard].lock();
        let ts = status.visible_ts();
        *live.entry(ts).or_insert(0) += 1;
        drop(live);
        View { ts, shard, views: self.clone() }
    }

    /// No snapshot, now or later, is older than this.
    pub fn oldest(&self, status: &StatusTable) -> u64 {
        let visible = status.visible_ts();
        let live = self.shards.iter().filter_map(|s| s.lock().first_key_value().map(|(ts, _)| *ts)).min();
        live.map_or(visible, |ts| ts.min(visible))
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
