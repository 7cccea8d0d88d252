//! Who owns which page: segment files, extents, the extent map, the tree directory. See README.md.

mod allocate;
#[cfg(all(test, not(feature = "shuttle")))]
mod check;
mod directory;
mod open;
mod ownership;
pub(crate) mod redo;
mod state;

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;


pub use ownership::PageOwnership;

use crate::buffer::BufferPool;
use crate::ids::{IndexId, PageId};
use crate::sync::{Arc, Mutex};
use state::State;

/// Pages in an extent.
pub const EXTENT_PAGES: u64 = 64;
/// Pages in a segment file (1 GiB).
pub(crate) use crate::disk::SEGMENT_PAGES;

/// Owner of the extents that hold extent maps and the tree directory.
const SYSTEM: IndexId = IndexId(u32::MAX);
/// The first page of the tree directory.
const DIRECTORY: PageId = PageId(1);

/// Directory flag: the tree was dropped by a committed transaction, its pages are about to be freed.
const DROPPING: u32 = 1;

/// Consecutive pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRun {
    pub first: PageId,
    pub pages: u32,
}

/// Pages set aside for one operation on a tree. What it has not allocated when this is dropped is anybody's.
#[must_use]
pub(crate) struct Reserved {
    state: Arc<Mutex<State>>,
    index: IndexId,
    pages: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.state.lock().end_promise(self.index, self.pages);
    }
}

/// Allocation of pages and the directory of trees.
pub struct Space {
    pool: Arc<BufferPool>,
    state: Arc<Mutex<State>>,
    /// One growth of the files at a time.
    growing: Mutex<()>,
    /// One growth of the directory at a time.
    chaining: Mutex<()>,
}

/// The extent map page of an extent, and the extent's entry in it.
fn map_of(extent: u64) -> (PageId, u16) {
    let per_segment = SEGMENT_PAGES / EXTENT_PAGES;
    (PageId(extent / per_segment * SEGMENT_PAGES), (extent % per_segment) as u16)
}
