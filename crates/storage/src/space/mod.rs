//! Who owns which page: segment files, extents, the extent map, the tree directory. See README.md.

pub(crate) mod redo;

use crate::buffer::Scope;
use crate::error::Result;
use crate::ids::{IndexId, PageId};

/// Pages in an extent.
pub const EXTENT_PAGES: u64 = 64;
/// Pages in a segment file (1 GiB).
pub const SEGMENT_PAGES: u64 = 65536;

/// Consecutive pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRun {
    pub first: PageId,
    pub pages: u32,
}

/// Allocation of pages and the directory of trees.
pub struct Space {}

impl Space {
    /// Makes sure that `pages` single pages can be allocated for the tree without growing a file: `OutOfSpace` comes from
    /// here. Called before latching.
    pub fn reserve(&self, _index: IndexId, _pages: usize) -> Result<()> {
        unimplemented!()
    }
    /// A page for the tree; it is the tree's once the scope commits. Fix it with `fix_new`.
    pub fn allocate(&self, _scope: &mut Scope<'_>, _index: IndexId) -> Result<PageId> {
        unimplemented!()
    }
    /// Consecutive pages for an overflow value: `pages` of them or fewer (at least one), so callers loop. May grow the file.
    pub fn allocate_run(&self, _scope: &mut Scope<'_>, _index: IndexId, _pages: u32) -> Result<PageRun> {
        unimplemented!()
    }
    /// Gives the page back once the scope commits.
    pub fn free(&self, _scope: &mut Scope<'_>, _page: PageId) -> Result<()> {
        unimplemented!()
    }
    pub fn free_run(&self, _scope: &mut Scope<'_>, _run: PageRun) -> Result<()> {
        unimplemented!()
    }
    /// A tree number never used before.
    pub fn next_index_id(&self) -> IndexId {
        unimplemented!()
    }
    /// Enters the tree in the directory and allocates its root page, which the caller formats in the same scope.
    pub fn create_tree(&self, _scope: &mut Scope<'_>, _index: IndexId) -> Result<PageId> {
        unimplemented!()
    }
    /// Marks the tree as to be dropped (in the committing record of the transaction that dropped it).
    pub fn mark_dropping(&self, _scope: &mut Scope<'_>, _index: IndexId) -> Result<()> {
        unimplemented!()
    }
    /// Removes the tree from the directory and frees all its pages, in this one scope. No-op for an unknown tree.
    pub fn drop_tree(&self, _scope: &mut Scope<'_>, _index: IndexId) -> Result<()> {
        unimplemented!()
    }
    /// Trees marked as dropping; at open they are dropped.
    pub fn dropping(&self) -> Vec<IndexId> {
        unimplemented!()
    }
    /// The tree's root page, `None` if there is no such tree.
    pub fn root(&self, _index: IndexId) -> Option<PageId> {
        unimplemented!()
    }
    /// All trees.
    pub fn trees(&self) -> Vec<IndexId> {
        unimplemented!()
    }
    /// Pages the map says the tree owns, ascending.
    pub fn pages_of(&self, _index: IndexId) -> Vec<PageId> {
        unimplemented!()
    }
}
