//! Operations on tree pages, done and redone: 0x40..0x80 of the log's operation codes.

use crate::error::{Error, Result};
use crate::page::header;
use crate::page::slotted::op;

/// Applies one tree operation to one page. A record of several pages carries what moves, so each page is redone alone.
pub(crate) fn apply(code: u8, page: &mut [u8], payload: &[u8]) -> Result<()> {
    op::apply(code, page, payload).map_err(|e| Error::corrupt(header::page_id(page), format!("operation {code:#04x}: {}", e.0)))
}

/// True for the operation that needs nothing of the page's old content.
pub(crate) fn is_initialising(code: u8) -> bool {
    code == op::FORMAT
}
