//! Who has a word.

use std::ops::Bound;
use std::sync::Arc;

use highkey_storage::{Bounds, Direction, LeafRows};
use highkey_types::{MySqlError, errors};

use crate::index::{clustered_key, successor};
use crate::row::Row;
use crate::table::Table;
use crate::transaction::Snapshot;

/// Who has a word.
#[derive(Debug, Default)]
pub struct WordRows {
    /// Entries of the index: one for each row and word.
    pub entries: u64,
    /// The clustered keys of the entries, in the order of the words; None if there are more than was asked for.
    pub keys: Option<Vec<Vec<u8>>>,
}

impl Table {
    /// The rows that have the word with this key (`word_key`) in a FULLTEXT index, or, with `prefix`, words that begin with it, as the snapshot sees them. Of
    /// more than `most` entries the keys are not kept. `stop` is asked before every leaf; once it says yes, the error is 1317. Errors: 1317, 1412.
    pub fn rows_with_word(&self, snapshot: &Snapshot, index: usize, word: &[u8], prefix: bool, most: usize, stop: &dyn Fn() -> bool) -> Result<WordRows, MySqlError> {
        self.check_view(snapshot.epoch)?;
        let Some(collation) = self.indexes[index].words.as_ref().map(|words| words.collation) else { return Ok(WordRows::default()) };
        let beginning = if prefix { collation.key_stem(word) } else { word };
        let upper = successor(beginning).map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = Bounds::new(Bound::Included(beginning.to_vec()), upper);
        let mut scan = snapshot.inner.scan(self.indexes[index].id, bounds, Direction::Forward);
        let mut leaf = LeafRows::new();
        let mut found = WordRows { entries: 0, keys: Some(Vec::new()) };
        while scan.next_leaf(&mut leaf).map_err(|e| self.failed(e))? {
            if stop() {
                return Err(errors::query_interrupted());
            }
            for at in (0..leaf.len()).filter(|at| !prefix || collation.key_begins_with(leaf.key(*at), word)) {
                found.entries += 1;
                if found.entries > most as u64 {
                    found.keys = None;
                }
                if let Some(keys) = &mut found.keys {
                    keys.push(clustered_key(leaf.key(at), leaf.value(at)).ok_or_else(|| self.corrupt(index))?.to_vec());
                }
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
