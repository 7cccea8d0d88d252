//! Operations on extent maps and the tree directory.

use crate::error::{Error, Result};
use crate::page::header;

pub(crate) fn apply(op: u8, page: &mut [u8], _payload: &[u8]) -> Result<()> {
    Err(Error::corrupt(header::page_id(page), format!("operation {op:#04x} does not fit")))
}
