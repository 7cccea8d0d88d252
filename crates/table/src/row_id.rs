//! Hidden row ids of tables without primary key: leased in blocks, so that every transaction appends to leaves of its own.

use highkey_types::MySqlError;
use parking_lot::Mutex;

use crate::error;
use crate::high_water::HighWater;

/// Rows of a block: tens of leaf pages of ordinary rows.
const BLOCK: u64 = 8192;
/// The most blocks that one catalog write covers.
pub(crate) const MARK_STEP: u64 = BLOCK * 256;

/// More than sessions insert into a table at the same time. Ids are not scarce: beyond that, the smallest leases go.
const UNFINISHED_MAX: usize = 1024;

/// Consecutive ids that one transaction hands out.
#[derive(Debug)]
pub(crate) struct Lease {
    next: u64,
    end: u64,
}

impl Lease {
    pub(crate) fn empty() -> Lease {
        Lease { next: 0, end: 0 }
    }

    pub(crate) fn take(&mut self, count: u64) -> Option<u64> {
        if self.end - self.next < count {
            return None;
        }
        let first = self.next;
        self.next += count;
        Some(first)
    }
}

pub(crate) struct RowIds {
    counter: HighWater,
    /// Blocks that transactions did not use up: the next transaction goes on where the last one stopped.
    unfinished: Mutex<Vec<Lease>>,
}

impl RowIds {
    pub(crate) fn new(counter: HighWater) -> RowIds {
        RowIds { counter, unfinished: Mutex::default() }
    }

    /// A lease of at least `count` ids, behind those of the transaction's last one: rows that come one after the other ascend.
    pub(crate) fn lease(&self, count: u64, last: &Lease) -> Result<Lease, MySqlError> {
        if count <= BLOCK {
            let mut unfinished = self.unfinished.lock();
            if let Some(at) = unfinished.iter().rposition(|l| l.end - l.next >= count && l.next >= last.end) {
                return Ok(unfinished.remove(at));
            }
        }
        let size = count.max(BLOCK);
        let next = self.counter.advance(|next| {
            let end = next.checked_add(size).ok_or_else(error::auto_increment_exhausted)?;
            Ok((end, next))
        })?;
        Ok(Lease { next, end: next + size })
    }

    pub(crate) fn give_back(&self, lease: Lease) {
        if lease.next == lease.end {
            return;
        }
        let mut unfinished = self.unfinished.lock();
        unfinished.push(lease);
        if unfinished.len() > UNFINISHED_MAX
            && let Some((smallest, _)) = unfinished.iter().enumerate().min_by_key(|(_, lease)| lease.end - lease.next)
        {
            unfinished.remove(smallest);
        }
    }

    /// After a rebuild: ids below `next` are taken, blocks of the old tree are void.
    pub(crate) fn reset(&self, next: u64) {
        self.unfinished.lock().clear();
        self.counter.reset(next);
    }

    pub(crate) fn counter(&self) -> &HighWater {
        &self.counter
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use highkey_storage::{Engine, Options, SimConfig, SimDisk, SystemClock};

    use super::*;

    fn row_ids() -> RowIds {
        let options = Options {
            buffer_pool_bytes: 8 << 20,
            redo_log_capacity: 16 << 20,
            log_segment_bytes: 1 << 20,
            log_buffer_bytes: 1 << 20,
            background: false,
            ..Options::default()
        };
        let engine = Engine::open(Arc::new(SimDisk::new(SimConfig::default())), options, Arc::new(SystemClock::new())).unwrap();
        let catalog = engine.root_index();
        RowIds::new(HighWater::new(engine, catalog, b"row ids".to_vec(), 1, MARK_STEP))
    }

    #[test]
    fn leases_too_small_to_go_on_with_do_not_pile_up() {
        let ids = row_ids();
        let mut last = 0;
        for _ in 0..3000 {
            let mut lease = ids.lease(5000, &Lease::empty()).unwrap();
            let first = lease.take(5000).unwrap();
            assert!(first > last, "given once");
            last = first + 4999;
            ids.give_back(lease);
        }
        let left = ids.unfinished.lock().len();
        assert!(left <= UNFINISHED_MAX, "{left}");
        // The large ones stay.
        let whole: Vec<_> = (0..UNFINISHED_MAX).map(|_| ids.lease(BLOCK, &Lease::empty()).unwrap()).collect();
        whole.into_iter().for_each(|lease| ids.give_back(lease));
        let unfinished = ids.unfinished.lock();
        assert!(unfinished.len() == UNFINISHED_MAX && unfinished.iter().all(|lease| lease.end - lease.next == BLOCK));
    }
}
