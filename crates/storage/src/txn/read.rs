//! Which version of a row a reader gets.

use super::long;
use super::system::{System, count};
use super::version_run::BlocksRead;
use super::versions::{Below, Found, Version};
use super::views::Sight;
use crate::btree::{RecordFlags, RecordRef};
use crate::error::Result;
use crate::ids::{IndexId, TxnId};
use crate::lock::row_key;

/// The version chosen under the latch. It or its value may still have to be fetched, which is done holding no latch.
pub(super) enum Chosen<'a> {
    Inline(&'a [u8]),
    /// An overflow value, by its reference in the record.
    Long(&'a [u8]),
    Older(Version),
    /// One that may be on disk, if there is any.
    Below(Below),
}

/// A value to be fetched once the latch is free. The reader's view keeps it from being freed until then.
pub(super) enum Deferred {
    Long(Vec<u8>),
    Older(Version),
    Below(Below),
}

impl Deferred {
    /// `None`: there is no row for `sight`.
    pub fn fetch(self, system: &System, sight: &Sight, blocks: &mut BlocksRead) -> Result<Option<Vec<u8>>> {
        let version = match self {
            Deferred::Long(reference) => return long::read(system, &reference).map(Some),
            Deferred::Older(version) => version,
            Deferred::Below(below) => {
                let found = system.versions.find_below(&below, blocks, |txn| system.accepts(sight, txn))?;
                match found.filter(|version| version.flags & RecordFlags::DELETE_MARK == 0) {
                    Some(version) => version,
                    None => return Ok(None),
                }
            }
        };
        let value = if version.flags & RecordFlags::OVERFLOW != 0 { long::read(system, &version.value)? } else { version.value.to_vec() };
        Ok(Some(value))
    }
}

impl System {
    /// Whether `sight` takes an older version of this transaction.
    fn accepts(&self, sight: &Sight, txn: TxnId) -> bool {
        match sight {
            Sight::Newest { .. } => !self.status.is_open(txn),
            _ => sight.sees(txn, &self.status),
        }
    }

    /// The version of a row that `sight` sees; `None` when there is no row for it. Under a latch of the row's leaf.
    pub(super) fn choose<'a>(
        &self,
        index: IndexId,
        key: &[u8],
        record: RecordRef<'a>,
        sight: &Sight,
    ) -> Option<Chosen<'a>> {
        let long = record.flags & RecordFlags::OVERFLOW != 0;
        loop {
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
            let found = self.versions.find(&row_key(index, key), record.txn, |txn| self.accepts(sight, txn));
            // What is latest is behind the record as long as its transaction is open. If that has committed since it was asked, the record itself is the
            // latest, and what it replaced may have gone before it was looked for: perhaps no snapshot sees it.
            if !matches!(sight, Sight::Snapshot { .. }) && !self.status.is_open(record.txn) {
                continue;
            }
            return match found {
                Found::Nothing => None,
                Found::Here(older) => (older.flags & RecordFlags::DELETE_MARK == 0).then_some(Chosen::Older(older)),
                Found::Below(below) => Some(Chosen::Below(below)),
            };
        }
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
                Some(Chosen::Below(below)) => deferred = Some(Deferred::Below(below)),
            }
            found = true;
        })?;
        if let Some(deferred) = deferred {
            let value = deferred.fetch(self, sight, &mut BlocksRead::default())?;
            found = value.is_some();
            *out = value.unwrap_or_default();
        }
        count(&self.counters.rows_read, found as u64);
        Ok(found)
    }
}
