//! The buffer pool: the only way to page bytes. See README.md.

mod guard;
mod scope;

pub use guard::{ExclusiveGuard, OptimisticGuard, SharedGuard};
pub use scope::{Scope, Writer};

use crate::error::Result;
use crate::ids::PageId;
use crate::wal::Wal;
use crate::sync::Arc;

/// Who waits for a latch: a structure modification goes before everybody else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatchClass {
    Ordinary,
    Smo,
}

/// How a page that is fixed ages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Likely to be wanted again.
    Normal,
    /// Read once by a scan: does not count as a use.
    Scan,
}

/// Page frames, the page table, latches, and eviction.
pub struct BufferPool {}

impl BufferPool {
    pub fn wal(&self) -> &Arc<Wal> {
        unimplemented!()
    }
    /// Latches the page shared, reading it if need be.
    pub fn fix_shared(&self, _id: PageId) -> Result<SharedGuard<'_>> {
        unimplemented!()
    }
    pub fn fix_shared_as(&self, _id: PageId, _access: Access) -> Result<SharedGuard<'_>> {
        unimplemented!()
    }
    /// Latches the page exclusively, reading it if need be. `Ordinary` waits while an `Smo` wants the page.
    pub fn fix_exclusive(&self, _id: PageId, _class: LatchClass) -> Result<ExclusiveGuard<'_>> {
        unimplemented!()
    }
    /// Latches a page just allocated: all zeros but for its id, never read. The first operation must be initialising.
    pub fn fix_new(&self, _id: PageId) -> Result<ExclusiveGuard<'_>> {
        unimplemented!()
    }
    /// `None` when the latch is not free at once or the page is not in memory: no wait, no I/O.
    pub fn try_shared(&self, _id: PageId) -> Option<SharedGuard<'_>> {
        unimplemented!()
    }
    /// As `try_shared`.
    pub fn try_exclusive(&self, _id: PageId) -> Option<ExclusiveGuard<'_>> {
        unimplemented!()
    }
    /// The page's version for unlatched reads, reading it from disk if need be; waits while it is latched exclusively.
    pub fn optimistic(&self, _id: PageId) -> Result<OptimisticGuard<'_>> {
        unimplemented!()
    }
    /// True if the page is in memory.
    pub fn is_resident(&self, _id: PageId) -> bool {
        unimplemented!()
    }
    /// Begins a mini-transaction. Waits for log space, so it is called holding no latch.
    pub fn scope(&self, _writer: Writer) -> Result<Scope<'_>> {
        unimplemented!()
    }
}
