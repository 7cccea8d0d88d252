//! Who has a word.

use std::ops::Bound;
use std::sync::Arc;

use highkey_storage::{Bounds, Direction, LeafRows};
use highkey_types::{MySqlError, errors};

use crate::index::{clustered_key, successor};
use crate::row::Row;
use crate::table::Table;
use crate::transaction::Snapshot;

impl Table {
    /// The clustered keys of the rows that have words whose keys (`word_key`) begin with `word` in a FULLTEXT index, as the snapshot sees them: one for
    /// each row and word, in the order of the words. `stop` is asked before every leaf; once it says yes, the error is 1317. Errors: 1317, 1412.
    pub fn rows_with_word(&self, snapshot: &Snapshot, index: usize, word: &[u8], stop: &dyn Fn() -> bool) -> Result<Vec<Vec<u8>>, MySqlError> {
        self.check_view(snapshot.epoch)?;
        let upper = successor(word).map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = Bounds::new(Bound::Included(word.to_vec()), upper);
        let mut scan = snapshot.inner.scan(self.indexes[index].id, bounds, Direction::Forward);
        let mut leaf = LeafRows::new();
        let mut found = Vec::new();
        while scan.next_leaf(&mut leaf).map_err(|e| self.failed(e))? {
            if stop() {
                return Err(errors::query_interrupted());
            }
            for at in 0..leaf.len() {
                let clustered = clustered_key(leaf.key(at), leaf.value(at)).ok_or_else(|| self.corrupt(index))?;
                found.push(clustered.to_vec());
            }
        }
        Ok(found)
    }

    /// The row with a clustered key, as the snapshot sees it. Errors: 1412.
    pub fn row_at(self: &Arc<Self>, snapshot: &Snapshot, clustered: &[u8]) -> Result<Option<Row>, MySqlError> {
        self.check_view(snapshot.epoch)?;
        let mut data = Vec::new();
        let found = snapshot.inner.get(self.clustered().id, clustered, &mut data).map_err(|e| self.failed(e))?;
        Ok(found.then(|| Row { layout: self.layout.clone(), key: clustered.to_vec(), data }))
    }
}
