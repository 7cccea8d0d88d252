//! What the extent maps say, in memory: the authority while the engine runs. A mini-transaction takes pages here first and the
//! maps follow when it commits; what it frees becomes free here only then.

use super::redo::{Extent, Entry};
use super::{EXTENT_PAGES, PageRun};
use crate::ids::{IndexId, PageId};
use ahash::AHashMap;
use std::collections::BTreeSet;

/// Extents in a segment.
pub(super) const SEGMENT_EXTENTS: u64 = super::SEGMENT_PAGES / EXTENT_PAGES;

#[derive(Default)]
pub(super) struct State {
    /// By number; those beyond are not in any file yet.
    pub extents: Vec<Extent>,
    pub free: BTreeSet<u64>,
    pub trees: AHashMap<IndexId, Tree>,
    pub next_tree: u32,
    /// Directory pages in chain order, and how their slots are taken.
    pub directory: Vec<(PageId, Vec<bool>)>,
}

/// A tree's extents and its directory entry.
#[derive(Default, Clone)]
pub(super) struct Tree {
    pub extents: BTreeSet<u64>,
    /// Those with a free page.
    pub partial: BTreeSet<u64>,
    /// Free pages in all of them: the tree's reserve.
    pub reserve: u64,
    /// Of those, promised to operations that hold a [`super::Reserved`].
    pub promised: u64,
    pub root: Option<PageId>,
    pub flags: u32,
    /// Directory page (index in the chain) and slot.
    pub place: (usize, usize),
}

impl State {
    /// Adds an extent read from a map, or a new one.
    pub fn add_extent(&mut self, n: u64, extent: Extent) {
        debug_assert_eq!(n, self.extents.len() as u64);
        self.extents.push(extent);
        if extent.owner.0 == 0 {
            self.free.insert(n);
        } else {
            let tree = self.trees.entry(extent.owner).or_default();
            tree.extents.insert(n);
            if extent.used != u64::MAX {
                tree.partial.insert(n);
                tree.reserve += extent.used.count_zeros() as u64;
            }
        }
    }

    /// Gives a free extent to a tree.
    pub fn give_extent(&mut self, index: IndexId, n: u64) {
        self.free.remove(&n);
        self.extents[n as usize] = Extent { owner: index, used: 0 };
        let tree = self.trees.entry(index).or_default();
        tree.extents.insert(n);
        tree.partial.insert(n);
        tree.reserve += EXTENT_PAGES;
    }

    /// Takes pages of an extent that the tree owns.
    pub fn take(&mut self, index: IndexId, n: u64, mask: u64) {
        let extent = &mut self.extents[n as usize];
        assert!(extent.owner == index && extent.used & mask == 0, "I1: a page is allocated once, to its extent's owner");
        extent.used |= mask;
        let full = extent.used == u64::MAX;
        let tree = self.trees.get_mut(&index).expect("owner");
        tree.reserve -= mask.count_ones() as u64;
        if full {
            tree.partial.remove(&n);
        }
    }

    /// Gives pages back. An extent with none left is free for everybody.
    pub fn put_back(&mut self, index: IndexId, n: u64, mask: u64) {
        let extent = &mut self.extents[n as usize];
        if extent.owner != index {
            // The whole tree was dropped meanwhile.
            return;
        }
        let freed = (extent.used & mask).count_ones() as u64;
        extent.used &= !mask;
        let empty = extent.used == 0;
        let Some(tree) = self.trees.get_mut(&index) else { return };
        tree.reserve += freed;
        tree.partial.insert(n);
        // What is promised stays with the tree, in memory: on the map the extent is free.
        if empty && tree.reserve >= tree.promised + EXTENT_PAGES {
            tree.reserve -= EXTENT_PAGES;
            tree.partial.remove(&n);
            tree.extents.remove(&n);
            self.extents[n as usize] = Extent::default();
            self.free.insert(n);
        }
    }

    /// So many pages are not promised to the tree any more. What was set aside for a tree that has not come to be is free for everybody.
    pub fn end_promise(&mut self, index: IndexId, pages: u64) {
        let Some(tree) = self.trees.get_mut(&index) else { return };
        tree.promised = tree.promised.saturating_sub(pages);
        if tree.root.is_some() || tree.promised > 0 {
            return;
        }
        let empty: Vec<u64> = tree.extents.iter().copied().filter(|n| self.extents[*n as usize].used == 0).collect();
        for n in empty {
            tree.reserve -= EXTENT_PAGES;
            tree.partial.remove(&n);
            tree.extents.remove(&n);
            self.extents[n as usize] = Extent::default();
            self.free.insert(n);
        }
        if tree.extents.is_empty() {
            self.trees.remove(&index);
        }
    }

    /// One page of the tree's reserve: the lowest of the lowest extent.
    pub fn take_page(&mut self, index: IndexId) -> Option<PageId> {
        let n = *self.trees.get(&index)?.partial.first()?;
        let bit = self.extents[n as usize].used.trailing_ones() as u64;
        self.take(index, n, 1 << bit);
        Some(PageId(n * EXTENT_PAGES + bit))
    }

    /// Up to `pages` consecutive pages: within one of the tree's extents, or free extents beside each other.
    pub fn take_run(&mut self, index: IndexId, pages: u32) -> Option<PageRun> {
        let want = (pages as u64).min(EXTENT_PAGES);
        if (pages as u64) < EXTENT_PAGES
            && let Some(tree) = self.trees.get(&index)
            && tree.reserve >= tree.promised + want
        {
            for &n in &tree.partial {
                if let Some(bit) = find_gap(self.extents[n as usize].used, want) {
                    self.take(index, n, mask(bit, want));
                    return Some(PageRun { first: PageId(n * EXTENT_PAGES + bit), pages: want as u32 });
                }
            }
        }
        let wanted_extents = (pages as u64).div_ceil(EXTENT_PAGES);
        let (first, count) = self.longest_free_run(wanted_extents)?;
        let got = (count * EXTENT_PAGES).min(pages as u64);
        for i in 0..count {
            self.give_extent(index, first + i);
            let n = (got - i * EXTENT_PAGES).min(EXTENT_PAGES);
            self.take(index, first + i, mask(0, n));
        }
        Some(PageRun { first: PageId(first * EXTENT_PAGES), pages: got as u32 })
    }

    /// Free extents beside each other in one segment: the first run of `wanted`, else the longest there is.
    fn longest_free_run(&self, wanted: u64) -> Option<(u64, u64)> {
        let (mut best, mut start, mut len) = (None, 0, 0);
        for &n in &self.free {
            if len > 0 && n == start + len && n % SEGMENT_EXTENTS != 0 {
                len += 1;
            } else {
                (start, len) = (n, 1);
            }
            if best.is_none_or(|(_, l)| len > l) {
                best = Some((start, len));
            }
            if len == wanted {
                break;
            }
        }
        best
    }

    /// A free slot of the directory: page in the chain, slot.
    pub fn free_slot(&mut self) -> Option<(usize, usize)> {
        for (i, (_, slots)) in self.directory.iter().enumerate() {
            if let Some(slot) = slots.iter().position(|used| !used) {
                return Some((i, slot));
            }
        }
        None
    }

    /// Enters a directory entry read at open or just made.
    pub fn enter(&mut self, entry: Entry, place: (usize, usize)) {
        self.directory[place.0].1[place.1] = true;
        let tree = self.trees.entry(entry.tree).or_default();
        tree.root = Some(entry.root);
        tree.flags = entry.flags;
        tree.place = place;
        self.next_tree = self.next_tree.max(entry.tree.0 + 1);
    }
}

/// `n` bits from `bit`.
pub(super) fn mask(bit: u64, n: u64) -> u64 {
    if n == 64 { u64::MAX } else { ((1 << n) - 1) << bit }
}

/// The lowest place of `n` zero bits beside each other.
fn find_gap(used: u64, n: u64) -> Option<u64> {
    (0..=EXTENT_PAGES - n).find(|bit| used & mask(*bit, n) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_handed_out_once_and_come_back() {
        let mut s = State::default();
        for n in 0..4 {
            s.add_extent(n, Extent::default());
        }
        s.give_extent(IndexId(7), 0);
        let mut pages: Vec<_> = (0..64).map(|_| s.take_page(IndexId(7)).unwrap().0).collect();
        assert!(s.take_page(IndexId(7)).is_none());
        pages.dedup();
        assert_eq!(pages, (0..64).collect::<Vec<_>>());
        s.put_back(IndexId(7), 0, mask(10, 5));
        assert_eq!(s.take_run(IndexId(7), 6).unwrap(), PageRun { first: PageId(64), pages: 6 });
        assert_eq!(s.take_run(IndexId(7), 5).unwrap(), PageRun { first: PageId(10), pages: 5 });
        s.put_back(IndexId(7), 0, u64::MAX);
        assert_eq!(s.free.first(), Some(&0));
        assert_eq!(s.trees[&IndexId(7)].reserve, 58);
        let run = s.take_run(IndexId(8), 1000).unwrap();
        assert_eq!(run, PageRun { first: PageId(128), pages: 128 });
    }
}
