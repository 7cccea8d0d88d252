//! Making the first segment, and rebuilding the state in memory from the maps and the directory at open.

use super::allocate::system_extent;
use super::redo::{self, DIRECTORY_NEXT, DIRECTORY_SLOTS};
use super::state::{SEGMENT_EXTENTS, State};
use super::{DIRECTORY, EXTENT_PAGES, SEGMENT_PAGES, SYSTEM, Space};
use crate::buffer::{BufferPool, LatchClass, Writer};
use crate::error::{Error, Result};
use crate::ids::{IndexId, PageId};
use crate::page::redo as page_redo;
use crate::page::{PageType, header};
use crate::sync::{Arc, Mutex};

impl Space {
    /// Makes the first segment of a new database: its extent map and the empty tree directory.
    pub(crate) fn create(pool: Arc<BufferPool>) -> Result<Space> {
        let space = Space { pool, state: Arc::new(Mutex::new(State::default())), growing: Mutex::new(()), chaining: Mutex::new(()) };
        space.pool.grow_file(0, 4 * EXTENT_PAGES)?;
        let mut scope = space.pool.scope(Writer::System)?;
        let mut map = space.pool.fix_new(PageId(0))?;
        scope.apply(&mut map, page_redo::INIT, &page_redo::init_payload(PageType::SpaceMap, 0, 0, SYSTEM))?;
        scope.apply(&mut map, redo::MAP_ALLOCATE, &redo::allocate_payload(0, SYSTEM, 0b11))?;
        let mut directory = space.pool.fix_new(DIRECTORY)?;
        scope.apply(&mut directory, page_redo::INIT, &page_redo::init_payload(PageType::Directory, 0, 0, SYSTEM))?;
        scope.apply(&mut directory, DIRECTORY_NEXT, &1u32.to_le_bytes())?;
        scope.commit()?;
        space.pool.pin(&map);
        space.pool.pin(&directory);
        drop((map, directory));
        let mut state = space.state.lock();
        state.add_extent(0, system_extent(0b11));
        (1..4).for_each(|n| state.add_extent(n, Default::default()));
        state.directory.push((DIRECTORY, vec![false; DIRECTORY_SLOTS]));
        state.next_tree = 1;
        drop(state);
        Ok(space)
    }

    /// Reads maps and directory, after redo. The pages read stay in memory.
    pub(crate) fn open(pool: Arc<BufferPool>) -> Result<Space> {
        let mut state = State::default();
        let segments = pool.files().count()?;
        for segment in 0..segments {
            let id = PageId(segment * SEGMENT_PAGES);
            let in_file = (pool.files().len(segment)? / EXTENT_PAGES).min(SEGMENT_EXTENTS);
            let map = match pool.fix_exclusive(id, LatchClass::Ordinary) {
                Ok(map) => map,
                // The file was made, but the record that formats its map was lost: the segment is not there yet.
                Err(Error::Corrupt { .. }) if segment > 0 && segment + 1 == segments && is_blank(&pool, id)? => break,
                Err(e) => return Err(e),
            };
            if header::page_type(&map) != PageType::SpaceMap as u8 {
                return Err(Error::corrupt(id, "not an extent map"));
            }
            pool.pin(&map);
            let used = (0..SEGMENT_EXTENTS).rev().find(|n| redo::extent(&map, *n as usize).owner.0 != 0).map_or(0, |n| n + 1);
            for n in 0..in_file.max(used) {
                state.add_extent(segment * SEGMENT_EXTENTS + n, redo::extent(&map, n as usize));
            }
            if in_file < SEGMENT_EXTENTS && segment + 1 < segments {
                // Growth goes on only in the last segment, so the numbers must be dense: the file's missing end is made up.
                let from = in_file.max(used);
                pool.grow_file(segment, SEGMENT_PAGES)?;
                (from..SEGMENT_EXTENTS).for_each(|n| state.add_extent(segment * SEGMENT_EXTENTS + n, Default::default()));
            }
        }
        let mut page = DIRECTORY;
        while page.0 != 0 {
            if state.directory.iter().any(|(seen, _)| *seen == page) {
                return Err(Error::corrupt(page, "the tree directory is a circle"));
            }
            let guard = pool.fix_exclusive(page, LatchClass::Ordinary)?;
            if header::page_type(&guard) != PageType::Directory as u8 {
                return Err(Error::corrupt(page, "not a tree directory"));
            }
            pool.pin(&guard);
            let place = state.directory.len();
            state.directory.push((page, vec![false; DIRECTORY_SLOTS]));
            for slot in 0..DIRECTORY_SLOTS {
                if let Some(entry) = redo::entry(&guard, slot) {
                    state.enter(entry, (place, slot));
                }
            }
            if page == DIRECTORY {
                state.next_tree = state.next_tree.max(redo::next_tree(&guard));
            }
            page = header::right_link(&guard);
        }
        // I3: extents belong to trees of the directory.
        if let Some((id, _)) = state.trees.iter().find(|(id, t)| **id != SYSTEM && t.root.is_none()) {
            return Err(Error::corrupt_file(format!("extents belong to index {id}, which is not in the directory")));
        }
        debug_assert!(!state.trees.contains_key(&IndexId(0)));
        Ok(Space { pool, state: Arc::new(Mutex::new(state)), growing: Mutex::new(()), chaining: Mutex::new(()) })
    }
}

fn is_blank(pool: &BufferPool, id: PageId) -> Result<bool> {
    let mut bytes = vec![0; crate::page::PAGE_SIZE];
    pool.files().read(id, &mut bytes)?;
    Ok(bytes.iter().all(|b| *b == 0))
}
