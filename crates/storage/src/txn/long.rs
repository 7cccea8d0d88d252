//! Values too long for a leaf, on behalf of transactions.

use super::system::System;
use super::transaction::Txn;
use super::undo::Undo;
use crate::buffer::Writer;
use crate::error::{Error, Result};
use crate::ids::IndexId;
use crate::overflow::{self, OverflowRef};
use crate::space::PageRun;

/// Writes a value to overflow pages; each run's log record can be undone by itself. Returns the reference that goes into the row.
pub(super) fn write(txn: &mut Txn, index: IndexId, value: &[u8]) -> Result<Vec<u8>> {
    let owner = txn.owner();
    let mut writer = txn.writer(owner.id);
    let store = &txn.system.store;
    let written = overflow::write(&store.pool, &store.space, index, value, &mut writer, |run, undo| {
        Undo::Run { first: run.first, pages: run.pages }.encode(undo);
    });
    let start = txn.last_lsn;
    if let Writer::Txn { prev_lsn, .. } = writer {
        txn.last_lsn = prev_lsn;
    }
    match written {
        Ok(reference) => Ok(reference.encode().to_vec()),
        Err(error) => {
            // The runs that were written go again.
            txn.undo_part(start)?;
            Err(error)
        }
    }
}

pub(super) fn read(system: &System, reference: &[u8]) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    overflow::read(&system.store.pool, decode(reference)?, &mut value)?;
    Ok(value)
}

/// The pages of a value.
pub(super) fn runs(system: &System, reference: &[u8]) -> Result<Vec<PageRun>> {
    overflow::runs(&system.store.pool, decode(reference)?)
}

fn decode(reference: &[u8]) -> Result<OverflowRef> {
    OverflowRef::decode(reference).ok_or_else(|| Error::corrupt_file("a reference to an overflow value"))
}
