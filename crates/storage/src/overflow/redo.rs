//! The one operation on overflow pages, done and redone: 0x80 of the log's operation codes.

use super::{Content, DATA_LEN, DATA_MAX, NEXT, NEXT_RUN, RUN_PAGES};
use crate::error::{Error, Result};
use crate::ids::{IndexId, PageId};
use crate::page::header::{self, HEADER_SIZE, PAGE_SIZE, PageType};

/// Writes a whole page: payload `page_id u64, index_id u32, next u64, run_pages u32, next_run u64, data`.
pub(crate) const WRITE: u8 = 0x80;

const FIXED: usize = 32;

/// True for the operation that needs nothing of the page's old content.
pub(crate) fn is_initialising(op: u8) -> bool {
    op == WRITE
}

pub(super) fn write_payload(out: &mut Vec<u8>, index: IndexId, content: &Content<'_>) {
    out.clear();
    out.extend_from_slice(&content.id.0.to_le_bytes());
    out.extend_from_slice(&index.0.to_le_bytes());
    out.extend_from_slice(&content.next.0.to_le_bytes());
    out.extend_from_slice(&content.run_pages.to_le_bytes());
    out.extend_from_slice(&content.next_run.0.to_le_bytes());
    out.extend_from_slice(content.data);
}

pub(crate) fn apply(op: u8, page: &mut [u8], payload: &[u8]) -> Result<()> {
    let data = payload.get(FIXED..).filter(|data| data.len() <= DATA_MAX);
    let (WRITE, Some(data), PAGE_SIZE) = (op, data, page.len()) else {
        return Err(Error::corrupt(header::page_id(page), format!("operation {op:#04x} does not fit an overflow page")));
    };
    let content = Content {
        id: PageId(header::get_u64(payload, 0)),
        next: PageId(header::get_u64(payload, 12)),
        run_pages: header::get_u32(payload, 20),
        next_run: PageId(header::get_u64(payload, 24)),
        data,
    };
    fill(page, IndexId(header::get_u32(payload, 8)), &content);
    Ok(())
}

/// Makes the page, whatever it was; it keeps its LSN.
pub(super) fn fill(page: &mut [u8], index: IndexId, content: &Content<'_>) {
    let lsn = header::lsn(page);
    page.fill(0);
    header::set_lsn(page, lsn);
    header::set_page_type(page, PageType::Overflow);
    header::set_page_id(page, content.id);
    header::set_index_id(page, index);
    header::put_u64(page, NEXT, content.next.0);
    header::put_u32(page, RUN_PAGES, content.run_pages);
    header::put_u64(page, NEXT_RUN, content.next_run.0);
    header::put_u16(page, DATA_LEN, content.data.len() as u16);
    page[HEADER_SIZE..HEADER_SIZE + content.data.len()].copy_from_slice(content.data);
}
