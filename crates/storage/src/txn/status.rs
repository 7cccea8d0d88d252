//! Which transactions have committed, and when: a ring of commit timestamps indexed by transaction id.
//!
//! A transaction is *open* from its id to its end. Its end is one store of its timestamp (or of `ABORTED`, once nothing of it is left in
//! any page). All ids below the low-water mark have ended and are seen by every snapshot, so most reads ask nothing else.
//!
//! A transaction that stays open for very long, a forgotten one or a prepared one, holds the low-water mark. So that nothing grows meanwhile,
//! what is open far behind the newest id, and what an earlier life of the database left, is kept by itself: below the *settled* mark all
//! but those have ended and are seen by everybody.

use std::collections::HashMap;

use ahash::AHashMap;
use crossbeam::utils::CachePadded;

use crate::ids::TxnId;
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock, thread};

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
    /// Ids that a newer one pushed out of the ring before the settled mark passed them. The mutex also orders `end` against that push, and
    /// against the mark's passing.
    overflow: Vec<CachePadded<Mutex<HashMap<u64, u64>>>>,
    next_id: AtomicU64,
    low_water: AtomicU64,
    /// At or above the low-water mark.
    settled: AtomicU64,
    /// The states of ids below the settled mark that are open, or not seen by everybody.
    old: RwLock<AHashMap<u64, u64>>,
    old_len: AtomicU64,
    /// A bit by id, set for those in `old` at least: readers of other ids take no lock. Changed under `old`'s.
    old_bits: [AtomicU64; OLD_WORDS],
    visible_ts: AtomicU64,
    /// Of the commit that is being published, or was last. Between its end and `visible_ts` others may find that it has ended, and not see it in a
    /// snapshot yet.
    publishing_ts: AtomicU64,
    /// Ids below this were given before the engine opened.
    opened_at: u64,
    /// Of those, how many are to be undone.
    losers_left: AtomicU64,
}

const OLD_WORDS: usize = 64;

/// The word and the bit of an id in `old_bits`.
fn old_bit(id: u64) -> (usize, u64) {
    let at = id as usize % (OLD_WORDS * 64);
    (at / 64, 1 << (at % 64))
}

/// An id that is open this far behind the newest one is kept by itself.
const FAR_BEHIND: u64 = RING / 2;

impl StatusTable {
    /// `open`: what an earlier life of the database left open, `losers` of them to be undone.
    pub fn new(next_id: TxnId, visible_ts: u64, open: impl IntoIterator<Item = TxnId>, losers: u64) -> StatusTable {
        let old: AHashMap<u64, u64> = open.into_iter().map(|id| (id.0, OPEN)).collect();
        let opened_at = next_id.0.max(1);
        let low_water = old.keys().copied().min().unwrap_or(opened_at);
        let table = StatusTable {
            ring: (0..RING / CHUNK).map(|_| std::sync::OnceLock::new()).collect(),
            overflow: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            next_id: AtomicU64::new(opened_at),
            low_water: AtomicU64::new(low_water),
            settled: AtomicU64::new(opened_at),
            old_len: AtomicU64::new(0),
            old: RwLock::new(old),
            old_bits: std::array::from_fn(|_| AtomicU64::new(0)),
            visible_ts: AtomicU64::new(visible_ts),
            publishing_ts: AtomicU64::new(visible_ts),
            opened_at,
            losers_left: AtomicU64::new(losers),
        };
        table.note_old(&table.old.write());
        table
    }

    /// Says for readers what is in `old`. A bit that was set and stays so is set all the time.
    fn note_old(&self, old: &AHashMap<u64, u64>) {
        let mut words = [0; OLD_WORDS];
        for id in old.keys() {
            let (word, bit) = old_bit(*id);
            words[word] |= bit;
        }
        for (word, bits) in self.old_bits.iter().zip(words) {
            word.store(bits, Ordering::SeqCst);
        }
        self.old_len.store(old.len() as u64, Ordering::SeqCst);
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
        if old != 0 && old >= self.settled.load(Ordering::Acquire) {
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
        let mut overflow = self.overflow(id.0).lock();
        if id.0 < self.settled.load(Ordering::SeqCst) {
            let mut old = self.old.write();
            if state == ABORTED {
                old.remove(&id.0);
                self.note_old(&old);
            } else {
                old.insert(id.0, state);
            }
            return;
        }
        let slot = self.slot(id.0);
        if slot.id.load(Ordering::Relaxed) == id.0 {
            slot.ts.store(state, Ordering::Release);
        } else {
            overflow.insert(id.0, state);
        }
    }

    /// What is known of an id below the settled mark.
    fn old_status(&self, id: u64) -> Status {
        let (word, bit) = old_bit(id);
        if self.old_bits[word].load(Ordering::SeqCst) & bit == 0 {
            return Status::Committed(0);
        }
        match self.old.read().get(&id) {
            Some(&OPEN) => Status::Open,
            Some(&ts) => Status::Committed(ts),
            None => Status::Committed(0),
        }
    }

    pub fn status(&self, id: TxnId) -> Status {
        let id = id.0;
        if id < self.low_water.load(Ordering::Acquire) {
            return Status::Committed(0);
        }
        if id < self.settled.load(Ordering::SeqCst) {
            return self.old_status(id);
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
            // Neither in the ring nor in the overflow: the settled mark passed it since it was compared above.
            None => {
                assert!(id < self.settled.load(Ordering::SeqCst), "transaction {id} was never begun");
                self.old_status(id)
            }
        }
    }

    /// Whether an id that was given has a status: it is given before its slot is set up.
    pub fn has_begun(&self, id: TxnId) -> bool {
        id.0 < self.settled.load(Ordering::SeqCst) || self.slot(id.0).id.load(Ordering::SeqCst) >= id.0
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

    /// Said before the transaction ends.
    pub fn set_publishing_ts(&self, ts: u64) {
        self.publishing_ts.store(ts, Ordering::SeqCst);
    }

    /// Whatever has been found to be committed until now, new snapshots see after this. The wait is for two stores of the publishing thread.
    pub fn wait_for_ended(&self) {
        let ended = self.publishing_ts.load(Ordering::SeqCst);
        while self.visible_ts() < ended {
            thread::yield_now();
        }
    }

    pub fn low_water(&self) -> TxnId {
        TxnId(self.low_water.load(Ordering::Acquire))
    }

    pub fn next_id(&self) -> TxnId {
        TxnId(self.next_id.load(Ordering::SeqCst))
    }

    /// True until all that an earlier life of the database left unfinished is undone. What it left prepared does not count.
    pub fn has_losers(&self) -> bool {
        self.losers_left.load(Ordering::SeqCst) > 0
    }

    /// A transaction that an earlier life left unfinished has been undone.
    pub fn loser_is_undone(&self) {
        self.losers_left.fetch_sub(1, Ordering::SeqCst);
    }

    /// True for ids of an earlier life of the database.
    pub fn is_old(&self, id: TxnId) -> bool {
        id.0 < self.opened_at
    }

    /// Moves the low-water mark over ids that ended and that snapshots at `purge_ts` and later see. One thread at a time.
    pub fn advance_low_water(&self, purge_ts: u64) {
        let mut mark = self.settled.load(Ordering::Acquire);
        let before = mark;
        let next = self.next_id.load(Ordering::SeqCst);
        // The mark waits for a slot to be set up.
        while mark < next && self.has_begun(TxnId(mark)) {
            match self.status(TxnId(mark)) {
                Status::Open if next - mark > FAR_BEHIND => self.keep_by_itself(mark),
                Status::Open => break,
                Status::Committed(ts) if ts > purge_ts => break,
                _ => {}
            }
            mark += 1;
        }
        self.settled.fetch_max(mark, Ordering::SeqCst);
        let low_water = match self.old_len.load(Ordering::SeqCst) {
            0 => mark,
            _ => self.forget_seen(purge_ts).map_or(mark, |oldest| oldest.min(mark)),
        };
        self.low_water.store(low_water, Ordering::SeqCst);
        if mark > before && mark > RING {
            for shard in &self.overflow {
                let mut shard = shard.lock();
                if !shard.is_empty() {
                    shard.retain(|id, _| *id >= mark);
                }
            }
        }
    }

    /// Lets the settled mark pass an id that is open, if it still is.
    fn keep_by_itself(&self, id: u64) {
        // Whoever ends it has this mutex.
        let overflow = self.overflow(id).lock();
        let slot = self.slot(id);
        let state = if slot.id.load(Ordering::SeqCst) == id { slot.ts.load(Ordering::SeqCst) } else { overflow.get(&id).copied().unwrap_or(OPEN) };
        if state != ABORTED {
            let mut old = self.old.write();
            old.insert(id, state);
            self.note_old(&old);
        }
        self.settled.store(id + 1, Ordering::SeqCst);
    }

    /// Forgets what everybody sees of the ids that are kept by themselves. The oldest of the rest.
    fn forget_seen(&self, purge_ts: u64) -> Option<u64> {
        let mut old = self.old.write();
        let before = old.len();
        old.retain(|_, state| *state == OPEN || *state > purge_ts);
        if old.len() < before {
            self.note_old(&old);
        }
        old.keys().copied().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_follows_a_transaction() {
        let table = StatusTable::new(TxnId(10), 5, [TxnId(4), TxnId(7), TxnId(8)], 2);
        assert_eq!(table.status(TxnId(3)), Status::Committed(0));
        assert_eq!(table.status(TxnId(4)), Status::Open);
        assert_eq!(table.status(TxnId(5)), Status::Committed(0));
        let a = table.begin();
        let b = table.begin();
        assert_eq!((a, b), (TxnId(10), TxnId(11)));
        assert!(table.has_begun(TxnId(4)) && table.has_begun(b) && !table.has_begun(TxnId(12)));
        assert!(table.is_open(a) && table.is_open(b));
        table.commit(b, 6);
        assert!(table.visible_at(b, 6) && !table.visible_at(b, 5));
        table.abort(TxnId(4));
        table.advance_low_water(6);
        assert_eq!(table.low_water(), TxnId(7));
        assert!(table.has_losers());
        table.loser_is_undone();
        table.loser_is_undone();
        // The one that is left was prepared: it commits like any other.
        assert!(!table.has_losers() && table.is_open(TxnId(8)));
        table.abort(TxnId(7));
        table.commit(TxnId(8), 9);
        assert!(table.visible_at(TxnId(8), 9) && !table.visible_at(TxnId(8), 8));
        table.advance_low_water(8);
        assert_eq!(table.low_water(), TxnId(8));
        table.abort(a);
        assert_eq!(table.status(a), Status::Aborted);
        table.advance_low_water(9);
        assert_eq!(table.low_water(), TxnId(12));
        assert_eq!(table.status(TxnId(8)), Status::Committed(0));
    }

    #[test]
    fn a_snapshot_waits_for_what_has_ended_before_it_is_visible() {
        let table = StatusTable::new(TxnId(1), 5, [], 0);
        let id = table.begin();
        table.set_publishing_ts(6);
        table.commit(id, 6);
        assert!(!table.is_open(id));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                table.wait_for_ended();
                assert_eq!(table.visible_ts(), 6);
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiter.is_finished());
            table.set_visible_ts(6);
        });
        table.wait_for_ended();
    }

    #[test]
    fn an_old_open_transaction_survives_the_ring() {
        let table = StatusTable::new(TxnId(1), 0, [], 0);
        let old = table.begin();
        let early = table.begin();
        table.commit(early, 1);
        for ts in 0..RING {
            let id = table.begin();
            table.commit(id, ts + 2);
        }
        assert_eq!(table.status(old), Status::Open);
        assert_eq!(table.status(early), Status::Committed(1));
        // It is kept by itself, and nothing else is kept for it.
        table.advance_low_water(RING + 1);
        assert!(table.low_water() == old && table.overflow.iter().all(|s| s.lock().is_empty()));
        assert_eq!((table.status(old), table.status(early)), (Status::Open, Status::Committed(0)));
        // One that has its bit is still another one.
        let same_bit = TxnId(old.0 + 64 * OLD_WORDS as u64);
        assert_eq!((old_bit(same_bit.0), table.status(same_bit)), (old_bit(old.0), Status::Committed(0)));
        table.commit(old, RING + 9);
        assert_eq!(table.status(old), Status::Committed(RING + 9));
        table.advance_low_water(RING + 1);
        assert_eq!(table.low_water(), old);
        table.advance_low_water(RING + 9);
        assert!(table.low_water() == table.next_id() && table.overflow.iter().all(|s| s.lock().is_empty()));
    }
}
