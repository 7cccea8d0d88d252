//! The version store: what rows were before their newest record, for as long as a snapshot needs it.
//!
//! A chain belongs to one (index, key) and is changed only under the exclusive latch of that key's leaf (by writers and rollback) or by
//! purge, which takes away what nobody reads any more. Readers look at it under a latch of the leaf, so record and chain agree.
//! Nothing here is logged: before-images are in the log, and after a crash only the rows of unfinished transactions need chains.

use std::collections::VecDeque;

use ahash::AHashMap;
use crossbeam::utils::CachePadded;

use super::scratch::{Scratch, Spilled};
use crate::error::Result;
use crate::ids::TxnId;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering};

const SHARDS: usize = 128;
/// A value shorter than this stays in memory.
const SPILL_MIN: usize = 64;
/// A map for so many rows keeps its room.
const ROOM_KEPT: usize = 1024;
/// What a version costs beside its value, about.
const OVERHEAD: usize = 96;

/// A value of an older version.
#[derive(Clone)]
pub(crate) enum Bytes {
    Memory(Arc<[u8]>),
    Spilled(Arc<Spilled>),
}

impl Bytes {
    fn memory(&self) -> usize {
        OVERHEAD + if let Bytes::Memory(bytes) = self { bytes.len() } else { 0 }
    }

    /// Reads it, from the scratch file if it was spilled: not under a latch then.
    pub fn read(&self) -> Result<Vec<u8>> {
        match self {
            Bytes::Memory(bytes) => Ok(bytes.to_vec()),
            Bytes::Spilled(spilled) => spilled.read(),
        }
    }
}

/// A record as it was before transaction `by` replaced it.
#[derive(Clone)]
pub(crate) struct Version {
    pub txn: TxnId,
    pub flags: u16,
    pub value: Bytes,
    /// The transaction that replaced it.
    pub by: TxnId,
}

/// Newest first: `by` of one version is `txn` of the one before it.
type Chain = VecDeque<Version>;

/// What a large transaction made of a map is not kept.
fn give_room_back(map: &mut AHashMap<Box<[u8]>, Chain>) {
    let (len, room) = (map.len(), map.capacity());
    if room > ROOM_KEPT && len < room / 8 {
        map.shrink_to(len * 2);
    }
}

pub(crate) struct VersionStore {
    shards: Vec<CachePadded<Mutex<AHashMap<Box<[u8]>, Chain>>>>,
    hash: ahash::RandomState,
    memory: AtomicUsize,
    count: AtomicU64,
    budget: usize,
    scratch: Arc<Scratch>,
    spill_at: AtomicUsize,
}

impl VersionStore {
    /// Spills past `budget` bytes.
    pub fn new(budget: usize, scratch: Arc<Scratch>) -> VersionStore {
        VersionStore {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            hash: ahash::RandomState::new(),
            memory: AtomicUsize::new(0),
            count: AtomicU64::new(0),
            budget,
            scratch,
            spill_at: AtomicUsize::new(0),
        }
    }

    fn shard(&self, row: &[u8]) -> &Mutex<AHashMap<Box<[u8]>, Chain>> {
        &self.shards[self.hash.hash_one(row) as usize % SHARDS]
    }

    fn add(&self, version: &Version, key: usize) {
        self.memory.fetch_add(version.value.memory() + key, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn sub(&self, version: &Version, key: usize) {
        self.memory.fetch_sub(version.value.memory() + key, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Enters what the row was before `by` changed it first.
    pub fn push(&self, row: &[u8], version: Version) {
        self.add(&version, row.len());
        let mut shard = self.shard(row).lock();
        match shard.get_mut(row) {
            Some(chain) => {
                debug_assert!(chain[0].by == version.txn || chain[0].by != version.by, "I6: one version by a transaction");
                chain.push_front(version);
            }
            None => {
                shard.insert(row.into(), VecDeque::from([version]));
            }
        }
    }

    /// As `push`, of something older than all the chain has: recovery walks the log backwards.
    pub fn push_oldest(&self, row: &[u8], version: Version) {
        self.add(&version, row.len());
        self.shard(row).lock().entry(row.into()).or_default().push_back(version);
    }

    /// Takes back what `by` pushed: its change has been undone.
    pub fn pop(&self, row: &[u8], by: TxnId) {
        let mut shard = self.shard(row).lock();
        let Some(chain) = shard.get_mut(row) else { return };
        // Nearly always the first: another may have changed the row since the change was undone.
        if let Some(version) = chain.iter().position(|v| v.by == by).and_then(|place| chain.remove(place)) {
            self.sub(&version, row.len());
        }
        if chain.is_empty() {
            shard.remove(row);
            give_room_back(&mut shard);
        }
    }

    /// The newest version that `sees` accepts.
    pub fn find(&self, row: &[u8], mut sees: impl FnMut(TxnId) -> bool) -> Option<Version> {
        let shard = self.shard(row).lock();
        shard.get(row)?.iter().find(|v| sees(v.txn)).cloned()
    }

    /// Whether there is a version that `by` replaced.
    pub fn has_replaced(&self, row: &[u8], by: TxnId) -> bool {
        self.shard(row).lock().get(row).is_some_and(|chain| chain.iter().any(|v| v.by == by))
    }

    /// Removes what `by` replaced and everything older, once every snapshot sees `by`. Returns what was removed.
    pub fn purge(&self, row: &[u8], by: TxnId) -> Vec<Version> {
        let mut shard = self.shard(row).lock();
        let Some(chain) = shard.get_mut(row) else { return Vec::new() };
        let Some(place) = chain.iter().position(|v| v.by == by) else { return Vec::new() };
        let removed: Vec<Version> = chain.drain(place..).collect();
        if chain.is_empty() {
            shard.remove(row);
            give_room_back(&mut shard);
        }
        drop(shard);
        removed.iter().for_each(|v| self.sub(v, row.len()));
        removed
    }

    pub fn over_budget(&self) -> bool {
        self.memory.load(Ordering::Relaxed) > self.budget
    }

    /// Moves values to the scratch file until the rest fits the budget, as far as that goes. Called by the purge thread only.
    pub fn spill(&self) -> Result<()> {
        for _ in 0..SHARDS {
            if !self.over_budget() {
                return Ok(());
            }
            let shard = &self.shards[self.spill_at.fetch_add(1, Ordering::Relaxed) % SHARDS];
            let candidates: Vec<(Box<[u8]>, TxnId, Arc<[u8]>)> = shard
                .lock()
                .iter()
                .flat_map(|(row, chain)| chain.iter().map(move |v| (row, v)))
                .filter_map(|(row, v)| match &v.value {
                    Bytes::Memory(bytes) if bytes.len() >= SPILL_MIN => Some((row.clone(), v.by, bytes.clone())),
                    _ => None,
                })
                .collect();
            // The file is written with the shard free; a version that went away meanwhile just drops its place in it.
            for (row, by, bytes) in candidates {
                let spilled = self.scratch.write(&bytes)?;
                self.set_spilled(&row, by, &bytes, spilled);
            }
        }
        Ok(())
    }

    /// The value of the version that `by` replaced has been written to the scratch file.
    fn set_spilled(&self, row: &[u8], by: TxnId, bytes: &Arc<[u8]>, spilled: Arc<Spilled>) {
        let mut shard = self.shard(row).lock();
        let Some(chain) = shard.get_mut(row) else { return };
        // By its bytes: the transaction may have taken its change back, and replaced a newer record since.
        let same = |v: &&mut Version| v.by == by && matches!(&v.value, Bytes::Memory(now) if Arc::ptr_eq(now, bytes));
        if let Some(version) = chain.iter_mut().find(same) {
            self.memory.fetch_sub(bytes.len(), Ordering::Relaxed);
            version.value = Bytes::Spilled(spilled);
        }
    }

    /// Versions held.
    pub fn len(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Bytes in memory, about.
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::disk::{SimConfig, SimDisk};

    #[test]
    fn the_room_of_many_versions_is_given_back() {
        let store = VersionStore::new(usize::MAX, Arc::new(Scratch::new(Arc::new(SimDisk::new(SimConfig::default())))));
        let rows = || (0..400_000u32).map(u32::to_be_bytes);
        for row in rows() {
            store.push(&row, Version { txn: TxnId(1), flags: 0, value: Bytes::Memory([].into()), by: TxnId(2) });
        }
        let room = || store.shards.iter().map(|shard| shard.lock().capacity()).sum::<usize>();
        assert!(room() >= 400_000);
        rows().for_each(|row| assert_eq!(store.purge(&row, TxnId(2)).len(), 1));
        assert!(room() <= SHARDS * ROOM_KEPT, "room for {} rows", room());
    }

    /// A change that is taken back and made again, of a newer record, while the older version is being spilled.
    #[test]
    fn a_version_is_spilled_with_its_own_value() {
        let scratch = Arc::new(Scratch::new(Arc::new(SimDisk::new(SimConfig::default()))));
        let store = VersionStore::new(0, scratch.clone());
        let old: Arc<[u8]> = vec![1; 100].into();
        let version = |txn: u64, value: Arc<[u8]>| Version { txn: TxnId(txn), flags: 0, value: Bytes::Memory(value), by: TxnId(9) };
        store.push(b"row", version(3, old.clone()));
        let spilled = scratch.write(&old).unwrap();
        store.pop(b"row", TxnId(9));
        store.push(b"row", version(4, vec![2; 100].into()));
        let memory = store.memory();
        store.set_spilled(b"row", TxnId(9), &old, spilled);
        let found = store.find(b"row", |txn| txn == TxnId(4)).unwrap();
        assert_eq!((found.value.read().unwrap(), store.memory()), (vec![2; 100], memory));
        store.spill().unwrap();
        let found = store.find(b"row", |txn| txn == TxnId(4)).unwrap();
        assert!(matches!(found.value, Bytes::Spilled(_)));
        assert_eq!(found.value.read().unwrap(), vec![2; 100]);
    }
}
