//! Offsets and limits of the slotted page; the header's are `page/header.rs`'s. README.md has the byte tables.

pub(crate) use crate::page::header::{
    BOT_EWMA as BOTTOM_EWMA, FLAGS, GARBAGE, HEADER_SIZE, HEAP_TOP, INDEX_ID, LAST_SLOT, LEVEL, LSN, MAX_TRX as MAX_TXN, PAGE_ID, PAGE_SIZE, PREFIX_LEN,
    RIGHT_LINK, RUN, SLOT_COUNT, TOP_EWMA, TYPE,
};
use crate::page::header::{HIGH_KEY, LOW_FENCE, PageFlags, PageType};

pub(crate) const SLOT_SIZE: usize = 8;
pub(crate) const PAGE_TYPE_TREE: u8 = PageType::Tree as u8;
pub(crate) const LOW_AT: usize = LOW_FENCE;
pub(crate) const LOW_LEN: usize = LOW_FENCE + 2;
/// 0: the high key is above every key.
pub(crate) const HIGH_AT: usize = HIGH_KEY;
pub(crate) const HIGH_LEN: usize = HIGH_KEY + 2;

/// The right sibling's downlink may be missing in the parent; the separator is this page's high key.
pub(crate) const INCOMPLETE_SPLIT: u16 = PageFlags::INCOMPLETE_SPLIT;
/// Opened empty at an append point by rule 1 of the split point.
pub(crate) const APPEND: u16 = PageFlags::APPEND;
/// Merged away; the bytes stay until the page is used again so that late comers can tell.
pub(crate) const DELETED: u16 = PageFlags::DELETED;

/// Longest key of a tree. An inner page holds four children even when its fences and separators are all this long:
/// 96 + (2 + 3) * 3200 + 4 * 16 = 16160 bytes.
pub const MAX_KEY_LEN: usize = 3200;
/// Fixed bytes of a leaf record: slot, transaction id and flags, value length.
pub(crate) const LEAF_OVERHEAD: usize = SLOT_SIZE + 8 + 2;
/// Fixed bytes of an inner record: slot and child page id.
pub(crate) const INNER_OVERHEAD: usize = SLOT_SIZE + 8;
/// Largest leaf record, overhead included, kept inside the page (about half of it). It fits an otherwise empty page
/// between two fences of MAX_KEY_LEN (96 + 2 * 3200 + 8120 < 16384), so every split has a legal result.
pub const MAX_INLINE_RECORD: usize = 8120;

/// Whether a value of `value_len` bytes under a key of `key_len` bytes is kept in the leaf; if not it goes to overflow pages.
pub fn fits_inline(key_len: usize, value_len: usize) -> bool {
    key_len + value_len + LEAF_OVERHEAD <= MAX_INLINE_RECORD
}

/// Room for records and fences.
pub(crate) const BODY_SIZE: usize = PAGE_SIZE - HEADER_SIZE;
