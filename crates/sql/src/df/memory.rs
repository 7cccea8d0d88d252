//! The memory of all queries together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};

/// One limit for all operators, first come first served, but an operator that can spill gets no more than its share: it then spills while
/// those that cannot still find memory. Pools with different shares may count into the same total.
#[derive(Debug)]
pub(super) struct QueryMemory {
    used: Arc<AtomicUsize>,
    limit: usize,
    spillable_share: usize,
}

impl QueryMemory {
    pub fn new(limit: usize, spillable_share: usize) -> QueryMemory {
        QueryMemory { used: Arc::default(), limit, spillable_share }
    }

    /// The same memory, with another share for operators that can spill.
    pub fn with_share(&self, spillable_share: usize) -> QueryMemory {
        QueryMemory { used: self.used.clone(), limit: self.limit, spillable_share }
    }

    fn refuse(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionError {
        DataFusionError::ResourcesExhausted(format!(
            "{} asked for {additional} bytes more than its {}; {} of {} bytes are in use",
            reservation.consumer().name(),
            reservation.size(),
            self.used.load(Ordering::Relaxed),
            self.limit
        ))
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "query_memory"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if reservation.consumer().can_spill() && reservation.size() + additional > self.spillable_share {
            return Err(self.refuse(reservation, additional));
        }
        let grown = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| used.checked_add(additional).filter(|used| *used <= self.limit));
        grown.map(|_| ()).map_err(|_| self.refuse(reservation, additional))
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query_memory(used: {}, limit: {})", self.used.load(Ordering::Relaxed), self.limit)
    }
}
