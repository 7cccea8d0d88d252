//! Do the maps and the memory agree?

use super::state::SEGMENT_EXTENTS;
use super::{EXTENT_PAGES, SEGMENT_PAGES, SYSTEM, Space, redo};
use crate::error::Result;
use crate::ids::PageId;

impl Space {
    /// Compares the extent maps with the state in memory; a description of each difference. No scope may be open.
    pub fn check_maps(&self) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let extents = self.state.lock().extents.len() as u64;
        for segment in 0..extents.div_ceil(SEGMENT_EXTENTS) {
            let map = self.pool.fix_shared(PageId(segment * SEGMENT_PAGES))?;
            let state = self.state.lock();
            for n in 0..SEGMENT_EXTENTS {
                let number = segment * SEGMENT_EXTENTS + n;
                let on_page = redo::extent(&map, n as usize);
                let Some(in_memory) = state.extents.get(number as usize) else {
                    if on_page != Default::default() {
                        wrong.push(format!("extent {number} is mapped but beyond the files"));
                    }
                    continue;
                };
                // An extent reserved for a tree that has taken no page of it yet is free on the page.
                let same = on_page == *in_memory || (in_memory.used == 0 && on_page == Default::default());
                if !same {
                    wrong.push(format!("extent {number} is {on_page:?} on the map, {in_memory:?} in memory"));
                }
                if (in_memory.owner.0 == 0) != state.free.contains(&number) {
                    wrong.push(format!("extent {number} is {in_memory:?} but the free list disagrees"));
                }
            }
        }
        let state = self.state.lock();
        for (id, tree) in &state.trees {
            let free: u64 = tree.extents.iter().map(|n| state.extents[*n as usize].used.count_zeros() as u64).sum();
            if free != tree.reserve {
                wrong.push(format!("index {id} has {free} free pages but counts {}", tree.reserve));
            }
            if *id != SYSTEM && let Some(root) = tree.root {
                let extent = state.extents.get((root.0 / EXTENT_PAGES) as usize);
                if extent.is_none_or(|e| e.owner != *id || e.used & (1 << (root.0 % EXTENT_PAGES)) == 0) {
                    wrong.push(format!("index {id}'s root {root} is not allocated to it"));
                }
            }
        }
        Ok(wrong)
    }

    /// Extents in the files, and how many of them are free.
    pub fn usage(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.extents.len() as u64, state.free.len() as u64)
    }
}
