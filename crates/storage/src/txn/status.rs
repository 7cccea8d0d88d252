//! Which transactions have committed, and when: a ring of commit timestamps indexed by transaction id.
//!
//! A transaction is *open* from its id to its end. Its end is one store of its timestamp (or of `ABORTED`, once nothing of it is left in
//! any page). All ids below the low-water mark have ended and are seen by every snapshot, so most reads ask nothing else.

use std::collections::HashMap;

use ahash::AHashSet;
use crossbeam::utils::CachePadded;

use crate::ids::TxnId;
use crate::sync::{AtomicU64, Mutex, Ordering};

const RING: u64 = 1 << 20;
const CHUNK: u64 = 1 << 10;
const SHARDS: u64 = 64;

const OPEN: u64 = 0;
const ABORTED: u64 = u64::MAX;

/// What is known of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Open,
    /// Committed at this timestamp; 0 when every snapshot sees it.
    Committed(u64),
    /// Rolled back: no page holds a record of it any more.
    Aborted,
}

#[derive(Default)]
struct Slot {
    id: AtomicU64,
    ts: AtomicU64,
}

pub(crate) struct StatusTable {
    /// Made a chunk at a time, so that a small engine does not pay for the whole ring.
    ring: Vec<std::sync::OnceLock<Box<[Slot]>>>,
    /// Ids that a newer one pushed out of the ring before the low-water mark passed them. The mutex also orders `end` against that push.
    overflow: Vec<CachePadded<Mutex<HashMap<u64, u64>>>>,
    next_id: AtomicU64,
    low_water: AtomicU64,
    visible_ts: AtomicU64,
    /// Ids below this were given before the engine opened: committed, but for the losers.
    opened_at: u64,
    losers: Mutex<AHashSet<u64>>,
    losers_left: AtomicU64,
}

impl StatusTable {
    /// `losers` stay open until `end` is called for them.
    pub fn new(next_id: TxnId, visible_ts: u64, losers: impl IntoIterator<Item = TxnId>) -> StatusTable {
        let losers: AHashSet<u64> = losers.into_iter().map(|id| id.0).collect();
        let opened_at = next_id.0.max(1);
        let low_water = losers.iter().copied().min().unwrap_or(opened_at);
        StatusTable {
            ring: (0..RING / CHUNK).map(|_| std::sync::OnceLock::new()).collect(),
            overflow: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            next_id: AtomicU64::new(opened_at),
            low_water: AtomicU64::new(low_water),
            visible_ts: AtomicU64::new(visible_ts),
            opened_at,
            losers_left: AtomicU64::new(losers.len() as u64),
            losers: Mutex::new(losers),
        }
    }

    fn slot(&self, id: u64) -> &Slot {
        let place = id % RING;
        let chunk = self.ring[(place / CHUNK) as usize].get_or_init(|| (0..CHUNK).map(|_| Slot::default()).collect());
        &chunk[(place % CHUNK) as usize]
    }

    fn overflow(&self, id: u64) -> &Mutex<HashMap<u64, u64>> {
        &self.overflow[(id % SHARDS) as usize]
    }

    /// A new id, open.
    pub fn begin(&self) -> TxnId {
        let id = self.next_id.fetch_add(1, Ordering::SeqCst);
        let slot = self.slot(id);
        // The two ids of a slot differ by a multiple of the ring, hence of SHARDS: one mutex guards both.
        let mut overflow = self.overflow(id).lock();
        let old = slot.id.load(Ordering::Relaxed);
        if old != 0 && old >= self.low_water.load(Ordering::Acquire) {
            overflow.insert(old, slot.ts.load(Ordering::Relaxed));
        }
        // Readers load the id, the timestamp, and the id again: no timestamp is taken for another id's.
        slot.id.store(0, Ordering::SeqCst);
        slot.ts.store(OPEN, Ordering::SeqCst);
        slot.id.store(id, Ordering::SeqCst);
        TxnId(id)
    }

    pub fn commit(&self, id: TxnId, ts: u64) {
        debug_assert!(ts != OPEN && ts != ABORTED);
        self.end(id, ts);
    }

    pub fn abort(&self, id: TxnId) {
        self.end(id, ABORTED);
    }

    fn end(&self, id: TxnId, state: u64) {
        if id.0 < self.opened_at {
            if self.losers.lock().remove(&id.0) {
                self.losers_left.fetch_sub(1, Ordering::SeqCst);
            }
            return;
        }
        let mut overflow = self.overflow(id.0).lock();
        let slot = self.slot(id.0);
        if slot.id.load(Ordering::Relaxed) == id.0 {
            slot.ts.store(state, Ordering::Release);
        } else {
            overflow.insert(id.0, state);
        }
    }

    pub fn status(&self, id: TxnId) -> Status {
        let id = id.0;
        if id < self.low_water.load(Ordering::Acquire) {
            return Status::Committed(0);
        }
        if id < self.opened_at {
            return if self.losers_left.load(Ordering::Acquire) > 0 && self.losers.lock().contains(&id) {
                Status::Open
            } else {
                Status::Committed(0)
            };
        }
        let slot = self.slot(id);
        let state = if slot.id.load(Ordering::SeqCst) == id {
            let ts = slot.ts.load(Ordering::SeqCst);
            (slot.id.load(Ordering::SeqCst) == id).then_some(ts)
        } else {
            None
        };
        let state = state.or_else(|| {
            let overflow = self.overflow(id).lock();
            let slot = self.slot(id);
            if slot.id.load(Ordering::Relaxed) == id {
                return Some(slot.ts.load(Ordering::Relaxed));
            }
            overflow.get(&id).copied()
        });
        match state {
            Some(OPEN) => Status::Open,
            Some(ABORTED) => Status::Aborted,
            Some(ts) => Status::Committed(ts),
            // Neither in the ring nor in the overflow: the low-water mark passed it since it was compared above.
            None => {
                assert!(id < self.low_water.load(Ordering::Acquire), "transaction {id} was never begun");
                Status::Committed(0)
            }
        }
    }

    pub fn is_open(&self, id: TxnId) -> bool {
        self.status(id) == Status::Open
    }

    /// Whether a snapshot taken at `ts` sees the transaction's records.
    pub fn visible_at(&self, id: TxnId, ts: u64) -> bool {
        matches!(self.status(id), Status::Committed(committed) if committed <= ts)
    }

    /// The newest timestamp that new snapshots see. Everything committed at or below it has been published.
    pub fn visible_ts(&self) -> u64 {
        self.visible_ts.load(Ordering::SeqCst)
    }

    pub fn set_visible_ts(&self, ts: u64) {
        self.visible_ts.store(ts, Ordering::SeqCst);
    }

    pub fn low_water(&self) -> TxnId {
        TxnId(self.low_water.load(Ordering::Acquire))
    }

    pub fn next_id(&self) -> TxnId {
        TxnId(self.next_id.load(Ordering::SeqCst))
    }

    /// True until all that an earlier life of the database left unfinished is undone.
    pub fn has_losers(&self) -> bool {
        self.losers_left.load(Ordering::SeqCst) > 0
    }

    /// True for ids of an earlier life of the database.
    pub fn is_old(&self, id: TxnId) -> bool {
        id.0 < self.opened_at
    }

    /// Moves the low-water mark over ids that ended and that snapshots at `purge_ts` and later see. One thread at a time.
    pub fn advance_low_water(&self, purge_ts: u64) {
        let mut mark = self.low_water.load(Ordering::Acquire);
        if mark < self.opened_at {
            let first = self.losers.lock().iter().copied().min();
            mark = first.unwrap_or(self.opened_at);
        }
        let next = self.next_id.load(Ordering::SeqCst);
        let begun = |id: u64| {
            // An id is given before its slot is set up; the mark waits for that.
            self.slot(id).id.load(Ordering::SeqCst) >= id
        };
        while mark >= self.opened_at && mark < next && begun(mark) {
            match self.status(TxnId(mark)) {
                Status::Open => break,
                Status::Committed(ts) if ts > purge_ts => break,
                _ => mark += 1,
            }
        }
        let old = self.low_water.swap(mark, Ordering::SeqCst);
        if mark - old > 0 && mark > RING {
            for shard in &self.overflow {
                let mut shard = shard.lock();
                if !shard.is_empty() {
                    shard.retain(|id, _| *id >= mark);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_follows_a_transaction() {
        let table = StatusTable::new(TxnId(10), 5, [TxnId(4), TxnId(7)]);
        assert_eq!(table.status(TxnId(3)), Status::Committed(0));
        assert_eq!(table.status(TxnId(4)), Status::Open);
        assert_eq!(table.status(TxnId(5)), Status::Committed(0));
        let a = table.begin();
        let b = table.begin();
        assert_eq!((a, b), (TxnId(10), TxnId(11)));
        assert!(table.is_open(a) && table.is_open(b));
        table.commit(b, 6);
        assert!(table.visible_at(b, 6) && !table.visible_at(b, 5));
        table.abort(TxnId(4));
        table.advance_low_water(6);
        assert_eq!(table.low_water(), TxnId(7));
        table.abort(TxnId(7));
        table.abort(a);
        assert_eq!(table.status(a), Status::Aborted);
        table.advance_low_water(5);
        assert_eq!(table.low_water(), TxnId(11));
        table.advance_low_water(6);
        assert_eq!(table.low_water(), TxnId(12));
    }

    #[test]
    fn an_old_open_transaction_survives_the_ring() {
        let table = StatusTable::new(TxnId(1), 0, []);
        let old = table.begin();
        let early = table.begin();
        table.commit(early, 1);
        for ts in 0..RING {
            let id = table.begin();
            table.commit(id, ts + 2);
        }
        assert_eq!(table.status(old), Status::Open);
        assert_eq!(table.status(early), Status::Committed(1));
        table.commit(old, RING + 9);
        assert_eq!(table.status(old), Status::Committed(RING + 9));
        table.advance_low_water(RING + 1);
        assert_eq!(table.low_water(), old);
        table.advance_low_water(RING + 9);
        assert!(table.low_water() == table.next_id() && table.overflow.iter().all(|s| s.lock().is_empty()));
    }
}
