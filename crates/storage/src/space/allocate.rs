//! Taking pages and giving them back.

use super::redo::{MAP_ALLOCATE, MAP_FREE, allocate_payload, free_payload};
use super::state::{SEGMENT_EXTENTS, State, mask};
use super::{EXTENT_PAGES, PageRun, Reserved, SEGMENT_PAGES, SYSTEM, Space, map_of};
use crate::buffer::{Scope, Writer, held};
use crate::error::{Error, Result};
use crate::ids::{IndexId, PageId};
use crate::page::PageType;
use crate::page::redo as page_redo;

impl Space {
    /// Sets `pages` single pages aside for the tree, so that allocating them grows no file: `OutOfSpace` comes from here. Called
    /// before latching.
    pub fn reserve(&self, index: IndexId, pages: u64) -> Result<Reserved> {
        loop {
            {
                let mut state = self.state.lock();
                loop {
                    let tree = state.trees.entry(index).or_default();
                    if tree.reserve >= tree.promised + pages {
                        tree.promised += pages;
                        return Ok(Reserved { state: self.state.clone(), index, pages });
                    }
                    let Some(&n) = state.free.first() else { break };
                    state.give_extent(index, n);
                }
            }
            self.grow(1)?;
        }
    }

    /// A page for the tree; it is the tree's once the scope commits. Fix it with `fix_new`.
    pub fn allocate(&self, scope: &mut Scope<'_>, index: IndexId) -> Result<PageId> {
        let taken = self.state.lock().take_page(index);
        let page = match taken {
            Some(page) => page,
            None => {
                // Only a caller that has nothing reserved, and so no latch, comes here.
                let _reserved = self.reserve(index, 1)?;
                self.state.lock().take_page(index).expect("a page is reserved")
            }
        };
        self.note_allocated(scope, index, page, 1);
        Ok(page)
    }

    /// A free page of the tree in an extent before `extent` that nobody has reserved, if there is one. Grows no file, so it may be called
    /// under latches.
    pub fn allocate_before(&self, scope: &mut Scope<'_>, index: IndexId, extent: u64) -> Option<PageId> {
        let page = {
            let mut state = self.state.lock();
            let tree = state.trees.get(&index)?;
            if tree.reserve <= tree.promised || *tree.partial.first()? >= extent {
                return None;
            }
            state.take_page(index)?
        };
        self.note_allocated(scope, index, page, 1);
        Some(page)
    }

    /// Consecutive pages for an overflow value: `pages` of them or fewer (at least one), so callers loop. May grow the file.
    pub fn allocate_run(&self, scope: &mut Scope<'_>, index: IndexId, pages: u32) -> Result<PageRun> {
        assert!(pages > 0, "a run has a page");
        loop {
            let run = {
                let mut state = self.state.lock();
                // Room for all of it beside the end is better than many pieces.
                let enough = state.free.len() as u64 * EXTENT_PAGES >= pages as u64 || (pages as u64) < EXTENT_PAGES;
                if enough { state.take_run(index, pages) } else { None }
            };
            if let Some(run) = run {
                self.note_allocated(scope, index, run.first, run.pages as u64);
                return Ok(run);
            }
            match self.grow((pages as u64).div_ceil(EXTENT_PAGES)) {
                Ok(()) => {}
                // What is left in pieces will do.
                Err(Error::OutOfSpace) => {
                    let mut state = self.state.lock();
                    let mut sizes = std::iter::successors(Some(pages), |size| Some(size / 2).filter(|size| *size > 0));
                    let run = sizes.find_map(|size| state.take_run(index, size)).ok_or(Error::OutOfSpace)?;
                    drop(state);
                    self.note_allocated(scope, index, run.first, run.pages as u64);
                    return Ok(run);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Logs the allocation in the scope; were the scope given up, the pages go back.
    fn note_allocated(&self, scope: &mut Scope<'_>, index: IndexId, first: PageId, pages: u64) {
        self.pool.counters().pages_allocated.add(pages);
        for (extent, bits) in pieces(first, pages) {
            let (map, entry) = map_of(extent);
            scope.apply_at_commit(map, MAP_ALLOCATE, &allocate_payload(entry, index, bits));
            let state = self.state.clone();
            scope.on_cancel(move || state.lock().put_back(index, extent, bits));
        }
    }

    /// Gives the page back once the scope commits.
    pub fn free(&self, scope: &mut Scope<'_>, page: PageId) -> Result<()> {
        self.free_run(scope, PageRun { first: page, pages: 1 })
    }

    pub fn free_run(&self, scope: &mut Scope<'_>, run: PageRun) -> Result<()> {
        for (extent, bits) in pieces(run.first, run.pages as u64) {
            let owner = {
                let state = self.state.lock();
                match state.extents.get(extent as usize) {
                    Some(e) if e.owner.0 != 0 && e.owner != SYSTEM && e.used & bits == bits => e.owner,
                    _ => return Err(Error::corrupt(run.first, "freed, but not allocated")),
                }
            };
            let (map, entry) = map_of(extent);
            scope.apply_at_commit(map, MAP_FREE, &free_payload(entry, bits));
            let state = self.state.clone();
            // I2: not before the record is in the log, or another record could take the page first.
            scope.after_commit(move || state.lock().put_back(owner, extent, bits));
        }
        self.pool.counters().pages_freed.add(run.pages as u64);
        Ok(())
    }

    /// Grows the files by at least `extents` free ones beside each other (within a segment), or changes nothing.
    pub(crate) fn grow(&self, extents: u64) -> Result<()> {
        held::assert_none("an extent is waited for");
        let before = self.state.lock().extents.len();
        let _one = self.growing.lock();
        let have = {
            let state = self.state.lock();
            // Another thread grew the files while this one waited; it may have used them up, then the caller comes again.
            if state.extents.len() > before && !state.free.is_empty() {
                return Ok(());
            }
            state.extents.len() as u64
        };
        // An eighth more, 4 to 64 MiB: few fdatasyncs, little waste.
        let step = (have / 8).clamp(4, 64).max(extents);
        let (segment, at) = (have / SEGMENT_EXTENTS, have % SEGMENT_EXTENTS);
        let until = (at + step).min(SEGMENT_EXTENTS);
        match self.pool.grow_file(segment, until * EXTENT_PAGES) {
            Ok(()) => self.add_grown(segment, at, until),
            Err(Error::OutOfSpace) if until > at + 1 => {
                self.pool.grow_file(segment, (at + 1) * EXTENT_PAGES)?;
                self.add_grown(segment, at, at + 1)
            }
            Err(e) => Err(e),
        }
    }

    fn add_grown(&self, segment: u64, from: u64, until: u64) -> Result<()> {
        if from == 0 {
            self.format_segment(segment)?;
        }
        let mut state = self.state.lock();
        for n in from..until {
            let extent = if n == 0 { system_extent(1) } else { Default::default() };
            state.add_extent(segment * SEGMENT_EXTENTS + n, extent);
        }
        self.pool.counters().extents_grown.add(until - from);
        Ok(())
    }

    /// Makes a segment's extent map: its own extent belongs to the system.
    pub(super) fn format_segment(&self, segment: u64) -> Result<()> {
        let id = PageId(segment * SEGMENT_PAGES);
        let mut scope = self.pool.scope(Writer::System)?;
        let mut map = self.pool.fix_new(id)?;
        scope.apply(&mut map, page_redo::INIT, &page_redo::init_payload(PageType::SpaceMap, 0, 0, SYSTEM))?;
        scope.apply(&mut map, MAP_ALLOCATE, &allocate_payload(0, SYSTEM, 1))?;
        scope.commit()?;
        self.pool.pin(&map);
        Ok(())
    }
}

pub(super) fn system_extent(used: u64) -> super::redo::Extent {
    super::redo::Extent { owner: SYSTEM, used }
}

/// The extents that a run touches, with the bits of its pages in each.
pub(super) fn pieces(first: PageId, pages: u64) -> impl Iterator<Item = (u64, u64)> {
    let (mut at, end) = (first.0, first.0 + pages);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (extent, bit) = (at / EXTENT_PAGES, at % EXTENT_PAGES);
        let n = (EXTENT_PAGES - bit).min(end - at);
        at += n;
        Some((extent, mask(bit, n)))
    })
}

/// All pages of an extent that are used.
pub(super) fn used_pages(state: &State, extent: u64) -> impl Iterator<Item = PageId> + use<> {
    let used = state.extents[extent as usize].used;
    (0..EXTENT_PAGES).filter(move |bit| used & (1 << bit) != 0).map(move |bit| PageId(extent * EXTENT_PAGES + bit))
}
