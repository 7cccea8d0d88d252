//! A row's entries in a FULLTEXT index: one for each of its words, which belongs to the row's clustered key.

use std::collections::BTreeSet;
use std::sync::Arc;

use highkey_types::{Collation, MySqlError, RowLayout, Value};

use super::words::{WordRules, word_key};
use crate::index::IndexCodec;
use crate::row::Row;
use crate::table::Table;
use crate::transaction::Transaction;

/// What the words of an index are, and how they compare.
#[derive(Clone, Debug)]
pub(crate) struct IndexedWords {
    pub(crate) collation: &'static Collation,
    pub(crate) rules: Arc<WordRules>,
}

impl IndexedWords {
    /// The keys of the words that texts have, each once, ascending.
    fn keys_of<'t>(&self, texts: impl Iterator<Item = &'t str>) -> Vec<Vec<u8>> {
        let words = texts.flat_map(|text| self.rules.words(text)).filter(|word| self.rules.holds(word));
        let found: BTreeSet<Vec<u8>> = words.map(|word| word_key(self.collation, word)).collect();
        found.into_iter().collect()
    }
}

impl IndexCodec {
    /// The keys of a row's words, without the clustered key; of an index that is none of words nothing.
    pub(crate) fn words_of(&self, values: &[Value]) -> Vec<Vec<u8>> {
        let Some(words) = &self.words else { return Vec::new() };
        words.keys_of(self.columns.iter().filter_map(|&column| values[column].as_str()))
    }

    /// The same of an encoded row.
    pub(crate) fn words_of_row(&self, layout: &RowLayout, row: &[u8]) -> Vec<Vec<u8>> {
        let Some(words) = &self.words else { return Vec::new() };
        let texts = self.columns.iter().filter_map(|&column| layout.bytes(row, column)).filter_map(|bytes| std::str::from_utf8(bytes).ok());
        words.keys_of(texts)
    }

    /// Calls `each` with key and value of every entry of a row given as values. `key`, `value`: room for them.
    pub(crate) fn for_each_entry(&self, values: &[Value], clustered: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>, mut each: impl FnMut(&[u8], &[u8])) {
        if !self.is_full_text() {
            self.entry(values, clustered, key, value);
            return each(key, value);
        }
        for word in self.words_of(values) {
            self.word_entry(&word, clustered, key, value);
            each(key, value);
        }
    }

    /// The same of an encoded row.
    pub(crate) fn for_each_entry_of_row(
        &self,
        layout: &RowLayout,
        row: &[u8],
        clustered: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
        mut each: impl FnMut(&[u8], &[u8]),
    ) {
        if !self.is_full_text() {
            self.entry_of_row(layout, row, clustered, key, value);
            return each(key, value);
        }
        for word in self.words_of_row(layout, row) {
            self.word_entry(&word, clustered, key, value);
            each(key, value);
        }
    }

    /// The entry of one word of a row.
    fn word_entry(&self, word: &[u8], clustered: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(word);
        self.finish_entry(false, clustered, key, value);
    }
}

impl Table {
    /// The entries of a new row's words.
    pub(crate) async fn insert_words(&self, txn: &mut Transaction, index: usize, words: Vec<Vec<u8>>, clustered: &[u8]) -> Result<(), MySqlError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for word in words {
            txn.breathe(1).await?;
            self.indexes[index].word_entry(&word, clustered, &mut key, &mut value);
            // Only the row itself could have it already.
            if !self.insert_entry(txn, index, &key, &value).await? {
                return Err(self.corrupt(index));
            }
        }
        Ok(())
    }

    /// Takes the entries of a row's words away.
    pub(crate) async fn delete_words(&self, txn: &mut Transaction, index: usize, words: Vec<Vec<u8>>, clustered: &[u8]) -> Result<(), MySqlError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for word in words {
            txn.breathe(1).await?;
            self.indexes[index].word_entry(&word, clustered, &mut key, &mut value);
            self.delete_entry(txn, index, &key).await?;
        }
        Ok(())
    }

    /// The row `old` becomes `new` with the clustered key `key`: entries of words that it has no more go, those of words that it had not come.
    pub(crate) async fn update_words(&self, txn: &mut Transaction, index: usize, old: &Row, new: &[Value], key: &[u8]) -> Result<(), MySqlError> {
        let codec = &self.indexes[index];
        let (mut before, mut after) = (codec.words_of_row(&self.layout, &old.data), codec.words_of(new));
        if key == old.key {
            let kept: BTreeSet<Vec<u8>> = before.iter().filter(|word| after.binary_search(word).is_ok()).cloned().collect();
            before.retain(|word| !kept.contains(word));
            after.retain(|word| !kept.contains(word));
        }
        self.delete_words(txn, index, before, &old.key).await?;
        self.insert_words(txn, index, after, key).await
    }
}
