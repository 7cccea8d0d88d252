//! Which version of a row a reader gets.

use super::long;
use super::system::{System, count};
use super::versions::Version;
use super::views::Sight;
use crate::btree::{RecordFlags, RecordRef};
use crate::error::Result;
use crate::ids::IndexId;
use crate::lock::row_key;

/// The version chosen under the latch. Its value may still have to be fetched, which is done holding no latch.
pub(super) enum Chosen<'a> {
    Inline(&'a [u8]),
    /// An overflow value, by its reference in the record.
    Long(&'a [u8]),
    Older(Version),
}

/// A value to be fetched once the latch is free. The reader's view keeps it from being freed until then.
pub(super) enum Deferred {
    Long(Vec<u8>),
    Older(Version),
}

impl Deferred {
    pub fn fetch(self, system: &System) -> Result<Vec<u8>> {
        match self {
            Deferred::Long(reference) => long::read(system, &reference),
            Deferred::Older(version) => {
                let value = version.value.read()?;
                if version.flags & RecordFlags::OVERFLOW != 0 { long::read(system, &value) } else { Ok(value) }
            }
        }
    }
}

impl System {
    /// The version of a row that `sight` sees; `None` when there is no row for it. Under a latch of the row's leaf.
    pub(super) fn choose<'a>(
        &self,
        index: IndexId,
        key: &[u8],
        record: RecordRef<'a>,
        sight: &Sight,
    ) -> Option<Chosen<'a>> {
        let long = record.flags & RecordFlags::OVERFLOW != 0;
        // Another's uncommitted overflow value may be freed by its rollback while it is read: READ UNCOMMITTED
        // reads the committed version then.
        let dirty_long =
            long && matches!(sight, Sight::Newest { own, .. } if *own != Some(record.txn) && self.status.is_open(record.txn));
        if !dirty_long && sight.sees(record.txn, &self.status) {
            return match record.flags & RecordFlags::DELETE_MARK != 0 {
                true => None,
                false if long => Some(Chosen::Long(record.value)),
                false => Some(Chosen::Inline(record.value)),
            };
        }
        if record.flags & RecordFlags::HAS_OLDER == 0 {
            return None;
        }
        let committed = |txn| match sight {
            Sight::Newest { .. } => !self.status.is_open(txn),
            _ => sight.sees(txn, &self.status),
        };
        let older = self.versions.find(&row_key(index, key), committed)?;
        (older.flags & RecordFlags::DELETE_MARK == 0).then_some(Chosen::Older(older))
    }

    /// Reads one row into `out`, which is cleared first.
    pub(super) fn read_row(&self, index: IndexId, key: &[u8], sight: &Sight, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let mut found = false;
        let mut deferred = None;
        self.tree(index)?.read(key, |record| {
            let Some(record) = record else { return };
            match self.choose(index, key, record, sight) {
                None => return,
                Some(Chosen::Inline(value)) => out.extend_from_slice(value),
                Some(Chosen::Long(reference)) => deferred = Some(Deferred::Long(reference.to_vec())),
                Some(Chosen::Older(version)) => deferred = Some(Deferred::Older(version)),
            }
            found = true;
        })?;
        if let Some(deferred) = deferred {
            *out = deferred.fetch(self)?;
        }
        count(&self.counters.rows_read, found as u64);
        Ok(found)
    }
}
