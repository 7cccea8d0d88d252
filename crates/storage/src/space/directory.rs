//! The tree directory: from a tree's number to its root page.

use super::allocate::used_pages;
use super::redo::{
    DIRECTORY_NEXT, DIRECTORY_PUT, DIRECTORY_SLOTS, Entry, Extent, MAP_RELEASE, put_payload,
};
use super::{DIRECTORY, DROPPING, EXTENT_PAGES, SYSTEM, Space, map_of};
use crate::buffer::{Scope, Writer};
use crate::error::{Error, Result};
use crate::ids::{IndexId, PageId};
use crate::page::redo as page_redo;
use crate::page::{PageType, header};
use std::collections::BTreeMap;

/// Extents of a tree from `extent` on, and the pages in use there.
pub(crate) struct Surplus {
    pub extent: u64,
    pub pages: u64,
}

impl Space {
    /// A tree number never used before. (One that no committed scope entered in the directory may come again after a restart.)
    pub fn next_index_id(&self) -> IndexId {
        let mut state = self.state.lock();
        let id = state.next_tree;
        state.next_tree += 1;
        IndexId(id)
    }

    /// Enters the tree in the directory and allocates its root page, which the caller formats in the same scope.
    pub fn create_tree(&self, scope: &mut Scope<'_>, index: IndexId) -> Result<PageId> {
        assert!(index.0 != 0 && index != SYSTEM);
        if self.root(index).is_some() {
            return Err(Error::Unusable(format!("index {index} exists")));
        }
        let root = self.allocate(scope, index)?;
        let entry = Entry { tree: index, flags: 0, root };
        let (page, place) = loop {
            {
                let mut state = self.state.lock();
                if let Some(place) = state.free_slot() {
                    state.enter(entry, place);
                    break (state.directory[place.0].0, place);
                }
            }
            self.grow_directory()?;
        };
        scope.apply_at_commit(page, DIRECTORY_PUT, &put_payload(place.1 as u16, Some(entry)));
        scope.apply_at_commit(DIRECTORY, DIRECTORY_NEXT, &(index.0 + 1).to_le_bytes());
        let state = self.state.clone();
        scope.on_cancel(move || {
            let mut state = state.lock();
            state.directory[place.0].1[place.1] = false;
            if let Some(tree) = state.trees.get_mut(&index) {
                tree.root = None;
            }
        });
        Ok(root)
    }

    /// Adds a page to the directory's chain, in a scope of its own: an empty page there does no harm.
    fn grow_directory(&self) -> Result<()> {
        let _one = self.chaining.lock();
        let last = {
            let mut state = self.state.lock();
            if state.free_slot().is_some() {
                return Ok(());
            }
            state.directory.last().expect("the directory has a page").0
        };
        let mut scope = self.pool.scope(Writer::System)?;
        let id = self.allocate(&mut scope, SYSTEM)?;
        let mut page = self.pool.fix_new(id)?;
        scope.apply(&mut page, page_redo::INIT, &page_redo::init_payload(PageType::Directory, 0, 0, SYSTEM))?;
        let mut link = Vec::from((header::RIGHT_LINK as u16).to_le_bytes());
        link.extend_from_slice(&id.0.to_le_bytes());
        scope.apply_at_commit(last, page_redo::BYTES, &link);
        scope.commit()?;
        self.pool.pin(&page);
        self.state.lock().directory.push((id, vec![false; DIRECTORY_SLOTS]));
        Ok(())
    }

    /// Marks the tree as to be dropped (in the committing record of the transaction that dropped it).
    pub fn mark_dropping(&self, scope: &mut Scope<'_>, index: IndexId) -> Result<()> {
        let (page, slot, entry) = self.directory_entry(index)?;
        let entry = Entry { flags: entry.flags | DROPPING, ..entry };
        scope.apply_at_commit(page, DIRECTORY_PUT, &put_payload(slot, Some(entry)));
        let state = self.state.clone();
        scope.after_commit(move || {
            if let Some(tree) = state.lock().trees.get_mut(&index) {
                tree.flags |= DROPPING;
            }
        });
        Ok(())
    }

    fn directory_entry(&self, index: IndexId) -> Result<(PageId, u16, Entry)> {
        let state = self.state.lock();
        let tree = state.trees.get(&index).ok_or(Error::NoSuchIndex(index))?;
        let root = tree.root.ok_or(Error::NoSuchIndex(index))?;
        let (page, slot) = (state.directory[tree.place.0].0, tree.place.1 as u16);
        Ok((page, slot, Entry { tree: index, flags: tree.flags, root }))
    }

    /// Removes the tree from the directory and frees all its pages, in this one scope. No-op for an unknown tree. Nobody may
    /// use the tree any more.
    pub fn drop_tree(&self, scope: &mut Scope<'_>, index: IndexId) -> Result<()> {
        let Ok((page, slot, _)) = self.directory_entry(index) else { return Ok(()) };
        scope.apply_at_commit(page, DIRECTORY_PUT, &put_payload(slot, None));
        let mut maps: BTreeMap<PageId, Vec<u8>> = BTreeMap::new();
        {
            let state = self.state.lock();
            for &n in &state.trees[&index].extents {
                let (map, entry) = map_of(n);
                maps.entry(map).or_default().extend_from_slice(&entry.to_le_bytes());
                self.pool.counters().pages_freed.add(state.extents[n as usize].used.count_ones() as u64);
            }
        }
        for (map, entries) in maps {
            scope.apply_at_commit(map, MAP_RELEASE, &entries);
        }
        let state = self.state.clone();
        scope.after_commit(move || {
            let mut state = state.lock();
            let Some(tree) = state.trees.remove(&index) else { return };
            state.directory[tree.place.0].1[tree.place.1] = false;
            for n in tree.extents {
                state.extents[n as usize] = Extent::default();
                state.free.insert(n);
            }
        });
        Ok(())
    }

    /// Trees marked as dropping; at open they are dropped.
    pub fn dropping(&self) -> Vec<IndexId> {
        self.trees_where(|flags| flags & DROPPING != 0)
    }

    /// All trees, ascending, without those marked as dropping.
    pub fn trees(&self) -> Vec<IndexId> {
        self.trees_where(|flags| flags & DROPPING == 0)
    }

    fn trees_where(&self, wanted: impl Fn(u32) -> bool) -> Vec<IndexId> {
        let state = self.state.lock();
        let mut trees: Vec<_> =
            state.trees.iter().filter(|(_, t)| t.root.is_some() && wanted(t.flags)).map(|(id, _)| *id).collect();
        trees.sort();
        trees
    }

    /// The tree's root page, `None` if there is no such tree.
    pub fn root(&self, index: IndexId) -> Option<PageId> {
        self.state.lock().trees.get(&index).and_then(|t| t.root)
    }

    /// Pages of the tree's extents, and those of them in use. `None` if there is no such tree.
    pub fn size(&self, index: IndexId) -> Option<(u64, u64)> {
        let state = self.state.lock();
        let tree = state.trees.get(&index).filter(|t| t.root.is_some())?;
        let used = tree.extents.iter().map(|&n| state.extents[n as usize].used.count_ones() as u64).sum();
        Some((tree.extents.len() as u64 * EXTENT_PAGES, used))
    }

    /// The last of the tree's extents that it could do without, were their pages in the ones before. None: it needs all of them.
    pub fn surplus(&self, index: IndexId) -> Option<Surplus> {
        let (_, used) = self.size(index)?;
        let state = self.state.lock();
        let mut rest = state.trees.get(&index)?.extents.iter().skip(used.div_ceil(EXTENT_PAGES) as usize).peekable();
        let extent = **rest.peek()?;
        Some(Surplus { extent, pages: rest.map(|&n| u64::from(state.extents[n as usize].used.count_ones())).sum() })
    }

    /// The extent that a page lies in.
    pub fn extent_of(&self, page: PageId) -> u64 {
        page.0 / EXTENT_PAGES
    }

    /// Pages the map says the tree owns, ascending.
    pub fn pages_of(&self, index: IndexId) -> Vec<PageId> {
        let state = self.state.lock();
        let Some(tree) = state.trees.get(&index) else { return Vec::new() };
        tree.extents.iter().flat_map(|n| used_pages(&state, *n)).collect()
    }
}
