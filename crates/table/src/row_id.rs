//! Hidden row ids of tables without primary key: leased in blocks, so that every transaction appends to leaves of its own.

use highkey_types::MySqlError;
use parking_lot::Mutex;

use crate::error;
use crate::high_water::HighWater;

/// Rows of a block: tens of leaf pages of ordinary rows.
const BLOCK: u64 = 8192;
/// The most blocks that one catalog write covers.
pub(crate) const MARK_STEP: u64 = BLOCK * 256;

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

    /// A lease of at least `count` ids.
    pub(crate) fn lease(&self, count: u64) -> Result<Lease, MySqlError> {
        if count <= BLOCK {
            let mut unfinished = self.unfinished.lock();
            if let Some(at) = unfinished.iter().rposition(|l| l.end - l.next >= count) {
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
        if lease.next < lease.end {
            self.unfinished.lock().push(lease);
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
