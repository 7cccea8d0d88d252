//! Operations on extent maps and the tree directory.

use crate::error::{Error, Result};
use crate::ids::{IndexId, PageId};
use crate::page::header;

/// Pages of an extent become the tree's: payload `extent u16, owner u32, mask u64`.
pub(crate) const MAP_ALLOCATE: u8 = 0x10;
/// Pages of an extent become free, the extent too when none is left: payload `extent u16, mask u64`.
pub(crate) const MAP_FREE: u8 = 0x11;
/// Whole extents become free: payload `extent u16` *.
pub(crate) const MAP_RELEASE: u8 = 0x12;
/// A directory entry is replaced (tree 0: removed): payload `slot u16, tree u32, flags u32, root u64`.
pub(crate) const DIRECTORY_PUT: u8 = 0x13;
/// The lowest tree number never used: payload `u32`.
pub(crate) const DIRECTORY_NEXT: u8 = 0x14;

/// Extents in a segment, entries in its map page.
pub(crate) const MAP_EXTENTS: usize = 1024;
const MAP_ENTRIES: usize = header::HEADER_SIZE;
const MAP_ENTRY: usize = 12;
const NEXT_TREE: usize = header::HEADER_SIZE;
const DIRECTORY_ENTRIES: usize = header::HEADER_SIZE + 16;
const DIRECTORY_ENTRY: usize = 16;
/// Trees in a directory page.
pub(crate) const DIRECTORY_SLOTS: usize = (header::PAGE_SIZE - DIRECTORY_ENTRIES) / DIRECTORY_ENTRY;

/// One extent: who owns it and which of its pages are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Extent {
    pub owner: IndexId,
    pub used: u64,
}

pub(crate) fn extent(page: &[u8], n: usize) -> Extent {
    let at = MAP_ENTRIES + n * MAP_ENTRY;
    Extent { owner: IndexId(header::get_u32(page, at)), used: header::get_u64(page, at + 4) }
}

fn set_extent(page: &mut [u8], n: usize, extent: Extent) {
    let at = MAP_ENTRIES + n * MAP_ENTRY;
    header::put_u32(page, at, extent.owner.0);
    header::put_u64(page, at + 4, extent.used);
}

/// One directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub tree: IndexId,
    pub flags: u32,
    pub root: PageId,
}

pub(crate) fn entry(page: &[u8], slot: usize) -> Option<Entry> {
    let at = DIRECTORY_ENTRIES + slot * DIRECTORY_ENTRY;
    let tree = IndexId(header::get_u32(page, at));
    (tree.0 != 0).then(|| Entry { tree, flags: header::get_u32(page, at + 4), root: PageId(header::get_u64(page, at + 8)) })
}

pub(crate) fn next_tree(page: &[u8]) -> u32 {
    header::get_u32(page, NEXT_TREE)
}

pub(crate) fn allocate_payload(extent: u16, owner: IndexId, mask: u64) -> [u8; 14] {
    let mut p = [0; 14];
    p[..2].copy_from_slice(&extent.to_le_bytes());
    p[2..6].copy_from_slice(&owner.0.to_le_bytes());
    p[6..].copy_from_slice(&mask.to_le_bytes());
    p
}

pub(crate) fn free_payload(extent: u16, mask: u64) -> [u8; 10] {
    let mut p = [0; 10];
    p[..2].copy_from_slice(&extent.to_le_bytes());
    p[2..].copy_from_slice(&mask.to_le_bytes());
    p
}

pub(crate) fn put_payload(slot: u16, entry: Option<Entry>) -> [u8; 18] {
    let entry = entry.unwrap_or(Entry { tree: IndexId(0), flags: 0, root: PageId(0) });
    let mut p = [0; 18];
    p[..2].copy_from_slice(&slot.to_le_bytes());
    p[2..6].copy_from_slice(&entry.tree.0.to_le_bytes());
    p[6..10].copy_from_slice(&entry.flags.to_le_bytes());
    p[10..].copy_from_slice(&entry.root.0.to_le_bytes());
    p
}

pub(crate) fn apply(op: u8, page: &mut [u8], payload: &[u8]) -> Result<()> {
    change(op, page, payload)
        .ok_or_else(|| Error::corrupt(header::page_id(page), format!("space operation {op:#04x} does not fit")))
}

fn change(op: u8, page: &mut [u8], p: &[u8]) -> Option<()> {
    let u16_at = |at: usize| p.get(at..at + 2).map(|_| header::get_u16(p, at) as usize);
    match op {
        MAP_ALLOCATE if p.len() == 14 => {
            let n = u16_at(0).filter(|n| *n < MAP_EXTENTS)?;
            let old = extent(page, n);
            set_extent(page, n, Extent { owner: IndexId(header::get_u32(p, 2)), used: old.used | header::get_u64(p, 6) });
        }
        MAP_FREE if p.len() == 10 => {
            let n = u16_at(0).filter(|n| *n < MAP_EXTENTS)?;
            let old = extent(page, n);
            let used = old.used & !header::get_u64(p, 2);
            set_extent(page, n, Extent { owner: if used == 0 { IndexId(0) } else { old.owner }, used });
        }
        MAP_RELEASE if p.len() % 2 == 0 => {
            for at in (0..p.len()).step_by(2) {
                let n = u16_at(at).filter(|n| *n < MAP_EXTENTS)?;
                set_extent(page, n, Extent::default());
            }
        }
        DIRECTORY_PUT if p.len() == 18 => {
            let slot = u16_at(0).filter(|s| *s < DIRECTORY_SLOTS)?;
            let at = DIRECTORY_ENTRIES + slot * DIRECTORY_ENTRY;
            page[at..at + DIRECTORY_ENTRY].copy_from_slice(&p[2..]);
        }
        DIRECTORY_NEXT if p.len() == 4 => {
            let next = next_tree(page).max(header::get_u32(p, 0));
            header::put_u32(page, NEXT_TREE, next);
        }
        _ => return None,
    }
    Some(())
}
