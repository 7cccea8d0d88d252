//! Who holds and who waits: one `Owner` per transaction that has an id.

use ahash::AHashMap;
use crossbeam::utils::CachePadded;
use smallvec::SmallVec;

use super::wait::Waiter;
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// The part of a transaction that others may touch. Exists from the moment the transaction has an id until its end is visible.
pub(crate) struct Owner {
    pub id: TxnId,
    /// Log end before the transaction's first record, or before the copy of them that a prepared one lives from: what a checkpoint must keep.
    first_lsn: AtomicU64,
    /// Rows changed: a deadlock's victim is the one with the least.
    pub work: AtomicU64,
    pub(super) held: Mutex<Held>,
    pub(super) waiting: Mutex<Option<Arc<Waiter>>>,
}

/// The explicit locks of a transaction: where to find them.
#[derive(Default)]
pub(super) struct Held {
    /// Set once, when the transaction ends: nobody may add a lock for it after that (I3).
    pub released: bool,
    pub keys: Vec<Box<[u8]>>,
    /// The indexes that it has runs on.
    pub runs: SmallVec<[IndexId; 2]>,
    /// The indexes that it has range locks on.
    pub ranges: SmallVec<[IndexId; 2]>,
}

impl Owner {
    pub fn new(id: TxnId, first_lsn: u64) -> Owner {
        Owner { id, first_lsn: AtomicU64::new(first_lsn), work: AtomicU64::new(0), held: Mutex::default(), waiting: Mutex::new(None) }
    }

    pub fn first_lsn(&self) -> u64 {
        self.first_lsn.load(Ordering::SeqCst)
    }

    /// Nothing before `lsn` is needed any more.
    pub fn set_first_lsn(&self, lsn: u64) {
        self.first_lsn.store(lsn, Ordering::SeqCst);
    }

    pub fn add_work(&self, rows: u64) {
        self.work.fetch_add(rows, Ordering::Relaxed);
    }

    /// A key that is not locked by an entry of its own any more.
    pub(super) fn forget_key(&self, row: &[u8]) {
        let mut held = self.held.lock();
        let place = held.keys.iter().rposition(|key| **key == *row);
        place.map(|place| held.keys.swap_remove(place));
    }

    /// How many explicit locks it holds.
    #[cfg(test)]
    pub fn explicit_locks(&self) -> usize {
        self.held.lock().keys.len()
    }
}

const SHARDS: usize = 64;

/// The owners of all transactions that have an id and have not ended.
pub(crate) struct Owners {
    shards: Vec<CachePadded<Mutex<AHashMap<TxnId, Arc<Owner>>>>>,
}

impl Owners {
    pub fn new() -> Owners {
        Owners { shards: (0..SHARDS).map(|_| CachePadded::default()).collect() }
    }

    fn shard(&self, id: TxnId) -> &Mutex<AHashMap<TxnId, Arc<Owner>>> {
        &self.shards[id.0 as usize % SHARDS]
    }

    pub fn insert(&self, owner: Arc<Owner>) {
        self.shard(owner.id).lock().insert(owner.id, owner);
    }

    pub fn remove(&self, id: TxnId) {
        self.shard(id).lock().remove(&id);
    }

    pub fn get(&self, id: TxnId) -> Option<Arc<Owner>> {
        self.shard(id).lock().get(&id).cloned()
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock().len()).sum()
    }

    /// The smallest `first_lsn`.
    pub fn oldest_lsn(&self) -> Option<u64> {
        self.shards.iter().filter_map(|s| s.lock().values().map(|o| o.first_lsn()).min()).min()
    }
}
