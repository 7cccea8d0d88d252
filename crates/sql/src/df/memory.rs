//! The memory of all queries together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use tokio::sync::OwnedSemaphorePermit;

use super::error::out_of_memory;

/// One limit for all operators, first come first served, but an operator that can spill gets no more than its share once half of the memory is in use:
/// it then spills while those that cannot still find memory. Pools with different shares may count into the same total.
#[derive(Clone, Debug)]
pub(super) struct QueryMemory {
    used: Arc<AtomicUsize>,
    refused: Arc<AtomicU64>,
    limit: Arc<AtomicUsize>,
    /// An operator that can spill gets this part of the limit.
    part: usize,
    /// For plans of operators that spill.
    spilling: bool,
}

/// Bytes that an operator may always have, so that a tiny limit still lets a sort hold some batches.
const LEAST_SHARE: usize = 2 << 20;
/// The same for groups, whose texts are in blocks of 2 MiB, some of them at a time.
const LEAST_GROUPS: usize = 13 << 19;

/// What a query gets for itself when others leave it none: the least that `parallel_memory_limit` may be, in which every operator that spills can work.
pub(super) const OWN_BYTES: usize = 16 << 20;
/// So many queries at once. They are beside the limit: 64 MiB at most.
pub(super) const OWN_AT_ONCE: usize = 4;

/// What a merge asks for while it goes on, and not to read one file more.
const LITTLE: usize = 64 << 10;

/// The memory of all queries at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryUse {
    /// `PQ_memory_used`.
    pub bytes: usize,
    /// `PQ_memory_refused`: requests that were refused, so that operators spilled or a plan was changed.
    pub refused: u64,
}

impl QueryMemory {
    /// `part`: an operator that can spill gets so much of the limit at most: 2 is half of it.
    pub fn new(limit: usize, part: usize) -> QueryMemory {
        QueryMemory { used: Arc::default(), refused: Arc::default(), limit: Arc::new(AtomicUsize::new(limit)), part, spilling: false }
    }

    /// The same memory for plans of operators that spill, with another share for each.
    pub fn for_spilling(&self, part: usize) -> QueryMemory {
        QueryMemory { part, spilling: true, ..self.clone() }
    }

    /// Memory that no other query counts in, for plans of operators that spill. All of it is in use as long as there is one that has it.
    fn own(&self, part: usize) -> QueryMemory {
        QueryMemory { used: Arc::default(), limit: Arc::new(AtomicUsize::new(OWN_BYTES)), part, spilling: true, ..self.clone() }
    }

    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Another limit, from now on; what is in use stays so. Returns the one before.
    pub fn set_limit(&self, limit: usize) -> usize {
        self.limit.swap(limit, Ordering::Relaxed)
    }

    /// True if such an operator has had its share and is to do with less. A merge that goes on asks for a little more now and then, which would end it.
    fn is_too_much(&self, reservation: &MemoryReservation, additional: usize) -> bool {
        let Some((share, free)) = self.share(reservation.consumer()) else { return false };
        let name = reservation.consumer().name();
        // Groups that have spilled all they had ask for what a batch takes, which they cannot spill before they have it.
        if reservation.size() == 0 && name.contains("AggregateStream") {
            return false;
        }
        let goes_on = additional <= LITTLE && name.starts_with("ExternalSorterMerge");
        !goes_on && reservation.size() + additional > share && self.used.load(Ordering::Relaxed) + additional > free
    }

    /// What an operator that can do with less may have beside others, and the bytes in use up to which it may have more. Those are operators that spill,
    /// and merges of what was spilled, which read more files at a time the more they get: the two below a merge join leave room for the sort above it.
    fn share(&self, consumer: &MemoryConsumer) -> Option<(usize, usize)> {
        let limit = self.limit();
        let least = match consumer.name() {
            name if name.starts_with("ExternalSorterMerge") => 2 * LEAST_SHARE,
            // A merge join spills the rows of a key, though it does not say so.
            name if name.starts_with("SMJStream") => LEAST_SHARE,
            _ if !consumer.can_spill() => return None,
            name if name.contains("AggregateStream") => LEAST_GROUPS,
            _ => LEAST_SHARE,
        };
        Some(((limit / self.part).max(least), limit / 2))
    }

    pub fn in_use(&self) -> MemoryUse {
        MemoryUse { bytes: self.used.load(Ordering::Relaxed), refused: self.refused.load(Ordering::Relaxed) }
    }

    fn refuse(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let consumer = reservation.consumer();
        let message = format!(
            "{} asked for {additional} bytes more than its {}; {} of {} bytes are in use",
            consumer.name(),
            reservation.size(),
            self.used.load(Ordering::Relaxed),
            self.limit()
        );
        // It would read its inner side again, which exchanges between threads do not allow: that is for a plan on one.
        if !self.spilling && !consumer.can_spill() && consumer.name().starts_with("NestedLoopJoin") {
            return out_of_memory(message);
        }
        DataFusionError::ResourcesExhausted(message)
    }
}

/// Memory of one query alone, until it is dropped.
pub(super) struct OwnMemory {
    /// Where the query runs.
    pub environment: Arc<RuntimeEnv>,
    common: QueryMemory,
    /// Its place among those that have some.
    _place: OwnedSemaphorePermit,
}

impl OwnMemory {
    /// `like`: what its environment is but for the memory, which is beside that of `common`. `part`: as for [`QueryMemory::new`].
    pub fn new(common: &QueryMemory, part: usize, like: &RuntimeEnv, place: OwnedSemaphorePermit) -> OwnMemory {
        common.used.fetch_add(OWN_BYTES, Ordering::Relaxed);
        let environment = RuntimeEnv { memory_pool: Arc::new(common.own(part)), ..like.clone() };
        OwnMemory { environment: Arc::new(environment), common: common.clone(), _place: place }
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        self.common.used.fetch_sub(OWN_BYTES, Ordering::Relaxed);
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
        if additional == 0 {
            return Ok(());
        }
        let limit = self.limit();
        if self.is_too_much(reservation, additional) {
            return Err(self.refuse(reservation, additional));
        }
        let grown = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| used.checked_add(additional).filter(|used| *used <= limit));
        grown.map(|_| ()).map_err(|_| self.refuse(reservation, additional))
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit())
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query_memory(used: {}, limit: {})", self.used.load(Ordering::Relaxed), self.limit())
    }
}
