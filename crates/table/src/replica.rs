//! Records that a replica keeps in the catalog: its settings, and how far it has got. This layer knows their names and bytes only, and writes
//! them in the transaction that they are about (README.md, "Replica records").

use std::ops::Bound;

use highkey_storage::{Bounds, Direction, IndexId, Isolation, LeafRows, Txn};
use highkey_types::MySqlError;

use crate::catalog::keys;
use crate::database::Database;
use crate::error;
use crate::high_water;
use crate::transaction::Transaction;

/// A record to be written together with something else.
#[derive(Clone, Debug)]
pub struct ReplicaRecord {
    catalog: IndexId,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl ReplicaRecord {
    pub(crate) fn put(&self, txn: &mut Txn) -> Result<(), MySqlError> {
        high_water::put(txn, self.catalog, &self.key, &self.value)
    }
}

impl Database {
    /// A record that replaces the one of this name. A name has one writer at a time: the caller sees to that.
    pub fn replica_record(&self, name: &[u8], value: Vec<u8>) -> ReplicaRecord {
        ReplicaRecord { catalog: self.catalog_index(), key: keys::replica(name), value }
    }

    /// All records as last committed: names and values, in the order of the names.
    pub fn replica_records(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>, MySqlError> {
        let failed = |e| error::storage(e, "catalog");
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        let bounds = Bounds::new(Bound::Included(vec![keys::REPLICA]), Bound::Excluded(vec![keys::REPLICA + 1]));
        let mut scan = txn.scan(self.catalog_index(), bounds, Direction::Forward);
        let mut leaf = LeafRows::new();
        let mut records = Vec::new();
        while scan.next_leaf(&mut leaf).map_err(failed)? {
            records.extend((0..leaf.len()).map(|row| (leaf.key(row)[1..].to_vec(), leaf.value(row).to_vec())));
        }
        Ok(records)
    }

    /// Writes and removes records, durably and all at once, on this thread.
    pub fn change_replica_records(&self, put: &[ReplicaRecord], remove: &[&[u8]]) -> Result<(), MySqlError> {
        let failed = |e| error::storage(e, "catalog");
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        for record in put {
            record.put(&mut txn)?;
        }
        for name in remove {
            high_water::remove(&mut txn, self.catalog_index(), &keys::replica(name))?;
        }
        txn.commit(&[]).map_err(failed)?.wait().map_err(failed)
    }
}

impl Transaction {
    /// Writes a record with this transaction: it is there if the rows are.
    pub fn put_replica_record(&mut self, record: &ReplicaRecord) -> Result<(), MySqlError> {
        record.put(self.inner())
    }
}
