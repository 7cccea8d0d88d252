//! Rows and index entries as bytes: see README.md, "Rows and index entries".

use highkey_storage::IndexId;
use highkey_types::{KeyPart, RowLayout, Value, encode_key_part, encode_key_part_of_row};

use crate::def::{IndexKind, TableDef};
use crate::full_text::IndexedWords;

/// First byte of an entry's value: the clustered key is the end of the entry's key; its length follows, two bytes.
const KEY_AT_END: u8 = 0;
/// First byte of an entry's value: the clustered key follows.
const KEY_FOLLOWS: u8 = 1;

/// How one index of a table encodes its keys. A row has one entry in each, but for indexes of words: those are asked by `for_each_entry`.
#[derive(Clone, Debug)]
pub(crate) struct IndexCodec {
    pub(crate) id: IndexId,
    pub(crate) kind: IndexKind,
    pub(crate) columns: Vec<usize>,
    /// None in an index of words.
    pub(crate) parts: Vec<KeyPart>,
    /// Of an index of words: what they are.
    pub(crate) words: Option<IndexedWords>,
}

impl IndexCodec {
    pub(crate) fn new(def: &TableDef, index: usize) -> IndexCodec {
        let index = &def.indexes[index];
        let of_words = index.kind == IndexKind::FullText;
        let parts = index.parts.iter().filter(|_| !of_words).map(|part| {
            let column = &def.columns[part.column];
            KeyPart {
                ty: column.ty.clone(),
                descending: part.descending,
                prefix: part.prefix,
                nullable: column.nullable,
            }
        });
        IndexCodec {
            id: index.id,
            kind: index.kind,
            columns: index.parts.iter().map(|p| p.column).collect(),
            parts: parts.collect(),
            words: index.parts.first().filter(|_| of_words).map(|part| IndexedWords { collation: def.columns[part.column].ty.collation, rules: index.words.clone() }),
        }
    }

    /// A row has an entry for each of its words.
    pub(crate) fn is_full_text(&self) -> bool {
        self.words.is_some()
    }

    pub(crate) fn is_unique(&self) -> bool {
        matches!(self.kind, IndexKind::Primary | IndexKind::Unique)
    }

    /// Appends the key of a row's values. Returns true if one of them is NULL.
    pub(crate) fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> bool {
        let mut null = false;
        for (&column, part) in self.columns.iter().zip(&self.parts) {
            null |= values[column].is_null();
            encode_key_part(&values[column], part, out);
        }
        null
    }

    /// As `encode`, from an encoded row.
    pub(crate) fn encode_row(&self, layout: &RowLayout, row: &[u8], out: &mut Vec<u8>) -> bool {
        let mut null = false;
        for (&column, part) in self.columns.iter().zip(&self.parts) {
            null |= encode_key_part_of_row(layout, row, column, part, out);
        }
        null
    }

    /// Appends the key of the first `values.len()` parts, given in index order; of a hidden row id the bytes that it is.
    pub(crate) fn encode_prefix(&self, values: &[Value], out: &mut Vec<u8>) {
        if let (IndexKind::RowId, [Value::Bytes(id)]) = (self.kind, values) {
            return out.extend_from_slice(id);
        }
        for (value, part) in values.iter().zip(&self.parts) {
            encode_key_part(value, part, out);
        }
    }

    /// Completes an entry of a secondary index: `key` holds the encoded columns.
    /// A unique key without NULL identifies the row alone; every other one is made distinct by the clustered key.
    pub(crate) fn finish_entry(&self, null: bool, clustered: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>) {
        value.clear();
        if self.is_unique() && !null {
            value.push(KEY_FOLLOWS);
            value.extend_from_slice(clustered);
        } else {
            key.extend_from_slice(clustered);
            value.push(KEY_AT_END);
            let len = u16::try_from(clustered.len()).expect("keys are far shorter than 64 KiB");
            value.extend_from_slice(&len.to_le_bytes());
        }
    }

    /// The entry of a row given as values.
    pub(crate) fn entry(&self, values: &[Value], clustered: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>) {
        key.clear();
        let null = self.encode(values, key);
        self.finish_entry(null, clustered, key, value);
    }

    /// The entry of an encoded row.
    pub(crate) fn entry_of_row(
        &self,
        layout: &RowLayout,
        row: &[u8],
        clustered: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) {
        key.clear();
        let null = self.encode_row(layout, row, key);
        self.finish_entry(null, clustered, key, value);
    }
}

/// The clustered key that an entry of a secondary index points to; None if the entry is not one that this code wrote.
pub(crate) fn clustered_key<'a>(entry_key: &'a [u8], entry_value: &'a [u8]) -> Option<&'a [u8]> {
    match *entry_value.first()? {
        KEY_FOLLOWS => Some(&entry_value[1..]),
        KEY_AT_END => {
            let len = u16::from_le_bytes(entry_value.get(1..3)?.try_into().ok()?);
            entry_key.len().checked_sub(usize::from(len)).map(|start| &entry_key[start..])
        }
        _ => None,
    }
}

/// The smallest byte string above every one that starts with `prefix`; None if there is none.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut next = prefix[..=keep].to_vec();
    next[keep] += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successor_is_above_all_with_the_prefix() {
        assert_eq!(successor(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(successor(&[0xff]), None);
        assert_eq!(successor(&[]), None);
    }

    #[test]
    fn an_entry_that_nobody_wrote_is_refused() {
        assert_eq!(clustered_key(b"abc", &[KEY_AT_END, 4, 0]), None);
        assert_eq!(clustered_key(b"abc", &[KEY_AT_END, 2, 0]), Some(&b"bc"[..]));
        assert_eq!(clustered_key(b"abc", &[KEY_FOLLOWS, 7]), Some(&[7][..]));
        assert_eq!(clustered_key(b"abc", &[9]), None);
        assert_eq!(clustered_key(b"abc", &[]), None);
    }
}
