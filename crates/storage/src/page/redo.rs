//! The one function by which page bytes change, when done and when redone.
//!
//! An operation is a byte and a payload. Ranges: 0x01.. any page (here), 0x10.. `space::redo`, 0x40.. `btree::redo`,
//! 0x80.. `overflow::redo`.

use super::header::{self, PageType};
use crate::error::{Error, Result};
use crate::ids::IndexId;

/// Makes an empty page: payload `type u8, level u8, flags u16, index_id u32`. Needs nothing of the old content.
pub const INIT: u8 = 0x01;
/// Replaces bytes: payload `offset u16, bytes`.
pub const BYTES: u8 = 0x03;

/// True for operations that need nothing of the page's old content, so redo can begin with them on a torn page.
pub fn is_initialising(op: u8) -> bool {
    op == INIT || crate::btree::redo::is_initialising(op) || crate::overflow::redo::is_initialising(op)
}

/// Applies one operation. An error means that the page and the log do not fit together: corruption.
pub fn apply(op: u8, page: &mut [u8], payload: &[u8]) -> Result<()> {
    match op {
        INIT | BYTES => apply_generic(op, page, payload).ok_or_else(|| bad(op, page)),
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

