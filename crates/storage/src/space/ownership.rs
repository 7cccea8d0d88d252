//! Are the pages that a tree is made of the ones that are allocated to it?

use super::Space;
use crate::ids::{IndexId, PageId};
use std::collections::BTreeSet;

/// What a comparison of a tree with its extents found; empty when all is well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOwnership {
    /// Allocated to the tree but not part of it.
    pub orphans: Vec<PageId>,
    /// Part of the tree but not allocated to it.
    pub foreign: Vec<PageId>,
    /// Met twice in the tree.
    pub doubled: Vec<PageId>,
}

impl Space {
    /// Compares the pages found by walking a tree, those of its long values too, with those allocated to it. Nobody may have changed the tree
    /// since the walk began.
    pub fn compare(&self, index: IndexId, reachable: impl Iterator<Item = PageId>) -> PageOwnership {
        let owned: BTreeSet<PageId> = self.pages_of(index).into_iter().collect();
        let mut seen = BTreeSet::new();
        let mut found = PageOwnership::default();
        for page in reachable {
            if !seen.insert(page) {
                found.doubled.push(page);
            } else if !owned.contains(&page) {
                found.foreign.push(page);
            }
        }
        found.orphans = owned.difference(&seen).copied().collect();
        found
    }
}
