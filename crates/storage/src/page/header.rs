//! The 96 bytes every page begins with, little-endian.
//!
//! ```text
//!  0 crc32c u32      of everything after it, stamped when the page is written
//!  4 type u8 · 5 level u8 · 6 flags u16
//!  8 lsn u64         of the last record that changed the page
//! 16 page_id u64     24 index_id u32
//! 28 slot_count u16 · 30 heap_top u16
//! 32 right_link u64
//! 40 garbage u16 · 42 prefix_len u16 · 44 low_fence {offset u16, len u16} · 48 high_key {offset u16, len u16}
//! 52 last_slot u16 · 54 run u8 · 55 top_ewma u8 · 56 bot_ewma u8 · 57 unused
//! 64 max_trx u64     72.. unused
//! ```
//! The fields from 28 on belong to the tree's slotted page (`page/slotted`), except where a page type says otherwise.

/// Bytes in a page.
pub const PAGE_SIZE: usize = 16384;
/// Bytes of header; content begins here.
pub const HEADER_SIZE: usize = 96;

pub const CRC: usize = 0;
pub const TYPE: usize = 4;
pub const LEVEL: usize = 5;
pub const FLAGS: usize = 6;
pub const LSN: usize = 8;
pub const PAGE_ID: usize = 16;
pub const INDEX_ID: usize = 24;
pub const SLOT_COUNT: usize = 28;
pub const HEAP_TOP: usize = 30;
pub const RIGHT_LINK: usize = 32;
pub const GARBAGE: usize = 40;
pub const PREFIX_LEN: usize = 42;
pub const LOW_FENCE: usize = 44;
pub const HIGH_KEY: usize = 48;
pub const LAST_SLOT: usize = 52;
pub const RUN: usize = 54;
pub const TOP_EWMA: usize = 55;
pub const BOT_EWMA: usize = 56;
pub const MAX_TRX: usize = 64;

use crate::ids::{IndexId, Lsn, PageId};

/// What a page is for; 0: never written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageType {
    /// The extent map of a segment.
    SpaceMap = 1,
    /// The tree directory.
    Directory = 2,
    /// A page of a tree, leaf or inner by its level.
    Tree = 3,
    /// A page of an overflow extent.
    Overflow = 4,
}

/// Bits of the header's flags.
pub struct PageFlags;

impl PageFlags {
    pub const INCOMPLETE_SPLIT: u16 = 1;
    pub const APPEND: u16 = 2;
    pub const DELETED: u16 = 4;
}

pub fn get_u16(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}
pub fn get_u32(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(page[at..at + 4].try_into().expect("4 bytes"))
}
pub fn get_u64(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"))
}
pub fn put_u16(page: &mut [u8], at: usize, n: u16) {
    page[at..at + 2].copy_from_slice(&n.to_le_bytes());
}
pub fn put_u32(page: &mut [u8], at: usize, n: u32) {
    page[at..at + 4].copy_from_slice(&n.to_le_bytes());
}
pub fn put_u64(page: &mut [u8], at: usize, n: u64) {
    page[at..at + 8].copy_from_slice(&n.to_le_bytes());
}

pub fn page_type(page: &[u8]) -> u8 {
    page[TYPE]
}
pub fn set_page_type(page: &mut [u8], ty: PageType) {
    page[TYPE] = ty as u8;
}
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(get_u64(page, LSN))
}
pub(crate) fn set_lsn(page: &mut [u8], lsn: Lsn) {
    put_u64(page, LSN, lsn.0);
}
pub fn page_id(page: &[u8]) -> PageId {
    PageId(get_u64(page, PAGE_ID))
}
pub(crate) fn set_page_id(page: &mut [u8], id: PageId) {
    put_u64(page, PAGE_ID, id.0);
}
pub fn index_id(page: &[u8]) -> IndexId {
    IndexId(get_u32(page, INDEX_ID))
}
pub fn set_index_id(page: &mut [u8], id: IndexId) {
    put_u32(page, INDEX_ID, id.0);
}
pub fn right_link(page: &[u8]) -> PageId {
    PageId(get_u64(page, RIGHT_LINK))
}

/// The checksum a page should carry.
pub fn checksum(page: &[u8]) -> u32 {
    crc32c::crc32c(&page[CRC + 4..PAGE_SIZE])
}

/// Stamps the checksum; done on the copy that goes to disk.
pub fn seal(page: &mut [u8]) {
    let crc = checksum(page);
    put_u32(page, CRC, crc);
}

/// A page read from disk is what was written: its checksum and its own id. A page of zeros was never written.
pub fn verify(page: &[u8], id: PageId) -> Result<(), String> {
    if page.iter().all(|b| *b == 0) {
        return Ok(());
    }
    let (stored, computed) = (get_u32(page, CRC), checksum(page));
    if stored != computed {
        return Err(format!("checksum {stored:08x} stored, {computed:08x} computed"));
    }
    if page_id(page) != id {
        return Err(format!("holds page {}", page_id(page)));
    }
    Ok(())
}
