//! The one function by which page bytes change, when done and when redone.
//!
//! An operation is a byte and a payload. Ranges: 0x01.. any page (here), 0x10.. `space::redo`, 0x40.. `btree::redo`,
//! 0x80.. `overflow::redo`.

use super::header::{self, HEADER_SIZE, PAGE_SIZE, PageType};
use crate::error::{Error, Result};
use crate::ids::IndexId;

/// Makes an empty page: payload `type u8, level u8, flags u16, index_id u32`. Needs nothing of the old content.
pub const INIT: u8 = 0x01;
/// Makes a whole page: payload is the header's bytes 4..96 and then `n` times `offset u16, len u16, bytes`, the rest is zero.
pub const IMAGE: u8 = 0x02;
/// Replaces bytes: payload `offset u16, bytes`.
pub const BYTES: u8 = 0x03;

/// True for operations that need nothing of the page's old content, so redo can begin with them on a torn page.
pub fn is_initialising(op: u8) -> bool {
    matches!(op, INIT | IMAGE) || crate::btree::redo::is_initialising(op) || crate::overflow::redo::is_initialising(op)
}

/// Applies one operation. An error means that the page and the log do not fit together: corruption.
pub fn apply(op: u8, page: &mut [u8], payload: &[u8]) -> Result<()> {
    match op {
        INIT | IMAGE | BYTES => apply_generic(op, page, payload).ok_or_else(|| bad(op, page)),
        0x10..0x40 => crate::space::redo::apply(op, page, payload),
        0x40..0x80 => crate::btree::redo::apply(op, page, payload),
        0x80.. => crate::overflow::redo::apply(op, page, payload),
        _ => Err(bad(op, page)),
    }
}

fn bad(op: u8, page: &[u8]) -> Error {
    Error::corrupt(header::page_id(page), format!("operation {op:#04x} does not fit"))
}

fn apply_generic(op: u8, page: &mut [u8], payload: &[u8]) -> Option<()> {
    match op {
        INIT => {
            let fixed: &[u8; 8] = payload.try_into().ok()?;
            let keep: [u8; 16] = page[header::LSN..header::LSN + 16].try_into().ok()?;
            page.fill(0);
            page[header::LSN..header::LSN + 16].copy_from_slice(&keep);
            page[header::TYPE..header::TYPE + 4].copy_from_slice(&fixed[..4]);
            page[header::INDEX_ID..header::INDEX_ID + 4].copy_from_slice(&fixed[4..]);
            Some(())
        }
        IMAGE => {
            let keep: [u8; 16] = page[header::LSN..header::LSN + 16].try_into().ok()?;
            page.fill(0);
            page[4..HEADER_SIZE].copy_from_slice(payload.get(..HEADER_SIZE - 4)?);
            page[header::LSN..header::LSN + 16].copy_from_slice(&keep);
            let mut rest = &payload[HEADER_SIZE - 4..];
            while !rest.is_empty() {
                let at = u16::from_le_bytes(rest.get(..2)?.try_into().ok()?) as usize;
                let len = u16::from_le_bytes(rest.get(2..4)?.try_into().ok()?) as usize;
                page.get_mut(at..at + len)?.copy_from_slice(rest.get(4..4 + len)?);
                rest = &rest[4 + len..];
            }
            Some(())
        }
        _ => {
            let at = u16::from_le_bytes(payload.get(..2)?.try_into().ok()?) as usize;
            let bytes = &payload[2..];
            // The lsn, the page id and the checksum are the buffer pool's.
            if at < 4 || (at < 24 && at + bytes.len() > 8) {
                return None;
            }
            page.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
            Some(())
        }
    }
}

/// `INIT`'s payload.
pub fn init_payload(ty: PageType, level: u8, flags: u16, index: IndexId) -> [u8; 8] {
    let mut p = [0; 8];
    p[0] = ty as u8;
    p[1] = level;
    p[2..4].copy_from_slice(&flags.to_le_bytes());
    p[4..8].copy_from_slice(&index.0.to_le_bytes());
    p
}

/// `IMAGE`'s payload for a page whose content bytes lie in `used` ranges (offsets into the page, from 96 on).
pub fn image_payload(page: &[u8], used: &[std::ops::Range<usize>]) -> Vec<u8> {
    debug_assert_eq!(page.len(), PAGE_SIZE);
    let mut out = Vec::with_capacity(HEADER_SIZE + used.iter().map(|r| r.len() + 4).sum::<usize>());
    out.extend_from_slice(&page[4..HEADER_SIZE]);
    for range in used.iter().filter(|r| !r.is_empty()) {
        out.extend_from_slice(&(range.start as u16).to_le_bytes());
        out.extend_from_slice(&(range.len() as u16).to_le_bytes());
        out.extend_from_slice(&page[range.clone()]);
    }
    out
}

