//! The version store: what rows were before their newest record, for as long as a snapshot needs it.
//!
//! A row's versions are linked: `by` of one is `txn` of the record or version before it. Readers follow the links from the record in the page,
//! so that a version to which none leads is as good as removed. Those entered last are in maps; past a budget all that is there goes to a run in a
//! scratch file (`spill`, `version_run`), which is never changed: taking a version away that is in a run does nothing.
//!
//! A map's chain belongs to one (index, key) and is changed only under the exclusive latch of that key's leaf (by writers and rollback), by
//! purge and whoever finds a chain long, who take away what nobody reads any more, or taken as a whole by `spill`. Readers look at it under a latch of the leaf, so record and
//! chain agree, and take the list of what is below with them, in which they look holding no latch.
//! Nothing here is logged: before-images are in the log, and after a crash only the rows of unfinished transactions need chains.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use ahash::AHashMap;
use crossbeam::utils::CachePadded;

use super::needs::Needs;
use super::scratch::Scratch;
use super::spill::{Level, Merging};
use super::version_run::BlocksRead;
use crate::btree::RecordFlags;
use crate::error::Result;
use crate::ids::TxnId;
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, RwLock};

pub(super) const SHARDS: usize = 128;
/// Some of the shards, a bit each.
pub(super) type ShardSet = u128;
/// A map for so many rows keeps its room.
const ROOM_KEPT: usize = 1024;
/// So many versions of a row are looked through for some that nobody needs.
const MANY: usize = if cfg!(test) { 4 } else { 16 };
/// What a row with versions costs beside its key, and a version beside its value, about.
const ROW_OVERHEAD: usize = 96;
const VERSION_OVERHEAD: usize = 80;

/// A record as it was before transaction `by` replaced it.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub txn: TxnId,
    pub flags: u16,
    pub value: Arc<[u8]>,
    /// The transaction that replaced it.
    pub by: TxnId,
}

impl Version {
    pub(super) fn memory(&self) -> usize {
        VERSION_OVERHEAD + self.value.len()
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        Entry { txn: self.txn, flags: self.flags, by: self.by, value: &self.value }
    }
}

/// A version that lies elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub txn: TxnId,
    pub flags: u16,
    pub by: TxnId,
    pub value: &'a [u8],
}

impl Entry<'_> {
    /// Whether no snapshot sees this version, and its link may go to `behind`, the next older one of the row. See `Needs` for `settled`.
    pub(super) fn hands_on(&self, behind: &Entry, settled: u64, needs: &impl Needs) -> bool {
        // Without older ones, what is behind it is of an earlier row, or was taken back.
        self.flags & RecordFlags::HAS_OLDER != 0 && behind.by == self.txn && needs.is_unseen(self.txn, self.by, settled)
    }
}

/// Newest first.
pub(super) type Chain = VecDeque<Version>;
pub(super) type Chains = AHashMap<Box<[u8]>, Chain>;

/// Memory of a row's key and its place in a map.
pub(super) fn row_memory(row: &[u8]) -> usize {
    ROW_OVERHEAD + row.len()
}

/// What a look for a version comes to.
pub(crate) enum Found {
    /// There is none.
    Nothing,
    Here(Version),
    /// The maps do not have it.
    Below(Below),
}

/// Where a look for a version goes on, once no latch is held.
pub(crate) struct Below {
    row: Box<[u8]>,
    /// The version that this transaction replaced is next.
    by: TxnId,
    levels: Arc<[Level]>,
}

enum Step {
    Pass,
    Take,
    End,
}

/// Looks at a version on the way along a row's links, `next` being who replaced the one that is looked for.
fn step(next: &mut TxnId, version: Entry, sees: &mut impl FnMut(TxnId) -> bool) -> Step {
    if version.by != *next {
        // Of a change that was taken back.
        return Step::Pass;
    }
    if sees(version.txn) {
        return Step::Take;
    }
    if version.flags & RecordFlags::HAS_OLDER == 0 {
        // Whatever else is there was taken back, or belongs to an earlier row of this key that nobody sees any more.
        return Step::End;
    }
    *next = version.txn;
    Step::Pass
}

/// What a large transaction made of a map is not kept.
fn give_room_back(map: &mut Chains) {
    let (len, room) = (map.len(), map.capacity());
    if room > ROOM_KEPT && len < room / 8 {
        map.shrink_to(len * 2);
    }
}

pub(crate) struct VersionStore {
    pub(super) shards: Vec<CachePadded<Mutex<Chains>>>,
    hash: ahash::RandomState,
    /// Bytes and versions in the maps.
    pub(super) memory: AtomicUsize,
    pub(super) count: AtomicU64,
    /// Bytes of what is frozen.
    pub(super) frozen: AtomicUsize,
    pub(super) budget: usize,
    pub(super) scratch: Arc<Scratch>,
    /// What is older than the maps, newest first.
    pub(super) levels: RwLock<Arc<[Level]>>,
    /// There is any.
    pub(super) has_levels: AtomicBool,
    /// Held while versions go from the maps to a run. The shard that is next.
    pub(super) spilling: Mutex<usize>,
    pub(super) merging: Mutex<Merging>,
}

impl VersionStore {
    /// Keeps about `budget` bytes in memory.
    pub fn new(budget: usize, scratch: Arc<Scratch>) -> VersionStore {
        VersionStore {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            hash: ahash::RandomState::new(),
            memory: AtomicUsize::new(0),
            count: AtomicU64::new(0),
            frozen: AtomicUsize::new(0),
            budget,
            scratch,
            levels: RwLock::new(Arc::new([])),
            has_levels: AtomicBool::new(false),
            spilling: Mutex::new(0),
            merging: Mutex::default(),
        }
    }

    fn shard_of(&self, row: &[u8]) -> usize {
        self.hash.hash_one(row) as usize % SHARDS
    }

    fn shard(&self, row: &[u8]) -> &Mutex<Chains> {
        &self.shards[self.shard_of(row)]
    }

    fn add(&self, version: &Version, row: usize) {
        self.memory.fetch_add(version.memory() + row, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// After versions were removed, under the shard's mutex: `spill` counts what it takes.
    fn sub(&self, removed: &[Version], row: usize) {
        let bytes = removed.iter().map(Version::memory).sum::<usize>() + row;
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
        self.count.fetch_sub(removed.len() as u64, Ordering::Relaxed);
    }

    /// Enters what the row was before `by` changed it first. True if the row has so many that `prune` is worth its while.
    pub fn push(&self, row: &[u8], version: Version) -> bool {
        let mut shard = self.shard(row).lock();
        match shard.get_mut(row) {
            Some(chain) => {
                debug_assert!(chain[0].by == version.txn || chain[0].by != version.by, "I6: one version by a transaction");
                self.add(&version, 0);
                chain.push_front(version);
                // `prune` sees to it that it has room for as many again. So it pays a constant for each version.
                chain.len() >= MANY && chain.len() == chain.capacity()
            }
            None => {
                self.add(&version, row_memory(row));
                shard.insert(row.into(), VecDeque::from([version]));
                false
            }
        }
    }

    /// Takes out what no snapshot sees, though older ones may see what is behind it: what is behind gets its link (V6). The oldest version stays: what is below
    /// the maps is linked to it.
    pub fn prune(&self, row: &[u8], needs: &impl Needs) {
        let mut shard = self.shard(row).lock();
        let Some(chain) = shard.get_mut(row) else { return };
        let len = chain.len();
        let (mut kept, mut bytes) = (0, 0);
        for at in 0..len {
            if at + 1 < len && chain[at].entry().hands_on(&chain[at + 1].entry(), u64::MAX, needs) {
                bytes += chain[at].memory();
                chain[at + 1].by = chain[at].by;
            } else {
                chain.swap(kept, at);
                kept += 1;
            }
        }
        chain.truncate(kept);
        if chain.capacity() > MANY && kept < chain.capacity() / 4 {
            chain.shrink_to(kept * 2);
        } else if kept > chain.capacity() / 2 {
            chain.reserve(kept);
        }
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
        self.count.fetch_sub((len - kept) as u64, Ordering::Relaxed);
    }

    /// Whether no snapshot sees a row in what is behind the row's record, which is of transaction `record`. False if it is not known, for some of it is
    /// below the maps. Under a latch of the row's leaf.
    pub fn hides_no_row(&self, row: &[u8], record: TxnId, needs: &impl Needs) -> bool {
        let shard = self.shard(row).lock();
        let mut next = record;
        for version in shard.get(row).into_iter().flatten() {
            if version.by != next {
                continue;
            }
            if version.flags & RecordFlags::DELETE_MARK == 0 && !needs.is_unseen(version.txn, version.by, u64::MAX) {
                return false;
            }
            if version.flags & RecordFlags::HAS_OLDER == 0 {
                return true;
            }
            next = version.txn;
        }
        // As in `find`.
        !self.has_levels.load(Ordering::Relaxed)
    }

    /// As `push`, of something older than all the chain has: recovery walks the log backwards. See `spill_oldest`.
    pub fn push_oldest(&self, row: &[u8], version: Version) {
        let mut shard = self.shard(row).lock();
        let new = !shard.contains_key(row);
        self.add(&version, if new { row_memory(row) } else { 0 });
        shard.entry(row.into()).or_default().push_back(version);
    }

    /// Takes back what `by` pushed: its change has been undone.
    pub fn pop(&self, row: &[u8], by: TxnId) {
        // Nearly always the first: another may have changed the row since the change was undone.
        self.remove(row, by, |chain, place| chain.remove(place).into_iter().collect());
    }

    /// Removes what `by` replaced and everything older, once every snapshot sees `by`.
    pub fn purge(&self, row: &[u8], by: TxnId) {
        self.remove(row, by, |chain, place| chain.drain(place..).collect());
    }

    fn remove(&self, row: &[u8], by: TxnId, take: impl FnOnce(&mut Chain, usize) -> Vec<Version>) {
        let mut shard = self.shard(row).lock();
        let Some(chain) = shard.get_mut(row) else { return };
        let Some(place) = chain.iter().position(|v| v.by == by) else { return };
        let removed = take(chain, place);
        let is_empty = chain.is_empty();
        self.sub(&removed, if is_empty { row_memory(row) } else { 0 });
        if is_empty {
            shard.remove(row);
            give_room_back(&mut shard);
        }
    }

    /// The newest version that `sees` accepts of those behind the row's record, which is of transaction `record` and has older ones. Under a latch
    /// of the row's leaf.
    pub fn find(&self, row: &[u8], record: TxnId, mut sees: impl FnMut(TxnId) -> bool) -> Found {
        let mut next = record;
        let shard = self.shard(row).lock();
        for version in shard.get(row).into_iter().flatten() {
            match step(&mut next, version.entry(), &mut sees) {
                Step::Pass => {}
                Step::Take => return Found::Here(version.clone()),
                Step::End => return Found::Nothing,
            }
        }
        // What was taken out of the map before is below by now. The shard's mutex orders this load too.
        if !self.has_levels.load(Ordering::Relaxed) {
            return Found::Nothing;
        }
        // With the mutex held: the link that was found last is the one to what is below at this moment, while others prune there and here (V6).
        Found::Below(Below { row: row.into(), by: next, levels: self.levels.read().clone() })
    }

    /// Goes on with a look that has found nothing in the maps. May read from disk.
    pub fn find_below(&self, below: &Below, blocks: &mut BlocksRead, mut sees: impl FnMut(TxnId) -> bool) -> Result<Option<Version>> {
        let Below { row, by, levels } = below;
        let shard = self.shard_of(row);
        let mut next = *by;
        let mut found = None;
        for level in levels.iter() {
            // What `next` replaced is newer than all that its link leads to: a level without it has none of that.
            if let Level::Run(run) = level
                && !run.may_have(shard, next)
            {
                continue;
            }
            let mut visit = |entry: Entry| match step(&mut next, entry, &mut sees) {
                Step::Pass => ControlFlow::Continue(()),
                Step::Take => {
                    found = Some(Version { txn: entry.txn, flags: entry.flags, value: entry.value.into(), by: entry.by });
                    ControlFlow::Break(())
                }
                Step::End => ControlFlow::Break(()),
            };
            let flow = match level {
                Level::Frozen(frozen) => frozen.visit(shard, row, &mut visit),
                Level::Run(run) => run.visit(row, blocks, &mut visit)?,
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(found)
    }

    /// Versions held. Of those below the maps also the ones that nobody needs any more, until what they are in goes as a whole.
    pub fn len(&self) -> u64 {
        let levels = self.levels.read().clone();
        self.count.load(Ordering::Relaxed) + levels.iter().map(Level::len).sum::<u64>()
    }

    /// Of those, how many are on disk.
    pub fn spilled(&self) -> u64 {
        let levels = self.levels.read().clone();
        levels.iter().filter(|level| matches!(level, Level::Run(_))).map(Level::len).sum()
    }

    /// Bytes in memory, about.
    pub fn memory(&self) -> usize {
        let levels = self.levels.read().clone();
        self.in_maps_and_frozen() + levels.iter().map(Level::index_memory).sum::<usize>()
    }

    pub(super) fn in_maps_and_frozen(&self) -> usize {
        self.memory.load(Ordering::Relaxed) + self.frozen.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::super::needs::Over;
    use super::*;
    use crate::disk::{SimConfig, SimDisk};

    #[test]
    fn the_room_of_many_versions_is_given_back() {
        let store = VersionStore::new(usize::MAX, Arc::new(Scratch::new(Arc::new(SimDisk::new(SimConfig::default())), "versions")));
        let rows = || (0..400_000u32).map(u32::to_be_bytes);
        for row in rows() {
            store.push(&row, Version { txn: TxnId(1), flags: 0, value: [].into(), by: TxnId(2) });
        }
        let room = || store.shards.iter().map(|shard| shard.lock().capacity()).sum::<usize>();
        assert!(room() >= 400_000);
        rows().for_each(|row| store.purge(&row, TxnId(2)));
        assert!(room() <= SHARDS * ROOM_KEPT, "room for {} rows", room());
        assert_eq!((store.len(), store.memory()), (0, 0));
    }

    /// Who waits for room waits for no more than a slice to be written.
    #[test]
    fn a_spill_takes_a_slice_of_the_maps() {
        const BUDGET: usize = 400_000;
        let store = VersionStore::new(BUDGET, Arc::new(Scratch::new(Arc::new(SimDisk::new(SimConfig::default())), "versions")));
        let rows = || (0..8000u32).map(u32::to_be_bytes);
        for row in rows() {
            store.push(&row, Version { txn: TxnId(1), flags: 0, value: row.into(), by: TxnId(2) });
        }
        let before = store.in_maps_and_frozen();
        store.spill(&Over(|_: TxnId| false)).unwrap();
        let spilled = before - store.in_maps_and_frozen();
        assert!(spilled > 0 && spilled < before / 8, "{spilled} of {before} bytes");
        while store.has_to_spill() {
            store.spill(&Over(|_: TxnId| false)).unwrap();
        }
        assert!((1..=BUDGET / 2).contains(&store.in_maps_and_frozen()));
        for row in rows() {
            let found = match store.find(&row, TxnId(2), |txn| txn == TxnId(1)) {
                Found::Nothing => None,
                Found::Here(version) => Some(version),
                Found::Below(below) => store.find_below(&below, &mut BlocksRead::default(), |txn| txn == TxnId(1)).unwrap(),
            };
            assert_eq!(found.map(|version| version.value.to_vec()), Some(row.to_vec()));
        }
    }

    /// A change that is taken back and made again, of a newer record, after its first version was spilled.
    #[test]
    fn a_version_that_was_taken_back_is_not_found() {
        let store = VersionStore::new(0, Arc::new(Scratch::new(Arc::new(SimDisk::new(SimConfig::default())), "versions")));
        let version = |txn: u64, by: u64, value: u8| Version { txn: TxnId(txn), flags: RecordFlags::HAS_OLDER, value: [value].into(), by: TxnId(by) };
        let find = |record: u64, seen: u64| match store.find(b"row", TxnId(record), |txn| txn.0 <= seen) {
            Found::Nothing => None,
            Found::Here(version) => Some(version.value[0]),
            Found::Below(below) => {
                let found = store.find_below(&below, &mut BlocksRead::default(), |txn| txn.0 <= seen).unwrap();
                found.map(|version| version.value[0])
            }
        };
        let spill = || store.spill(&Over(|_: TxnId| false)).unwrap();
        store.push(b"row", version(3, 9, 1));
        spill();
        store.pop(b"row", TxnId(9));
        assert_eq!((find(3, 2), find(9, 3)), (None, Some(1)));
        store.push(b"row", version(3, 4, 2));
        spill();
        store.push(b"row", version(4, 9, 3));
        assert_eq!((find(9, 4), find(9, 3), find(4, 3)), (Some(3), Some(2), Some(2)));
        spill();
        assert_eq!((find(9, 4), find(9, 3), find(4, 3), find(9, 2)), (Some(3), Some(2), Some(2), None));
        assert_eq!((store.len(), store.spilled()), (3, 3));
        store.drop_runs(TxnId(0), &Over(|by: TxnId| by == TxnId(9)));
        assert_eq!((store.len(), find(4, 3)), (1, Some(2)));
        store.drop_runs(TxnId(5), &Over(|_: TxnId| false));
        assert_eq!((store.len(), store.memory(), store.scratch.len()), (0, 0, 0));
    }
}
