//! What a transaction leaves for purge, packed: there may be very many rows, and most lie beside the one before.
//!
//! ```text
//! ROW, DELETED   op u8 · bytes shared with the row before · length of the rest · rest       lengths as LEB128
//! OVERFLOW       op u8 · index u32 · length · reference
//! TREE           op u8 · index u32
//! ```

use std::collections::VecDeque;

use super::purge::PurgeItem;
use crate::ids::IndexId;
use crate::lock::row_key;
use crate::page::slotted::common_prefix;

/// Bytes of a chunk, about: so much memory at a time is given back while the list is read.
const CHUNK: usize = 1 << 16;

const ROW: u8 = 0;
const DELETED: u8 = 1;
const OVERFLOW: u8 = 2;
const TREE: u8 = 3;

/// A list of items, taken out in the order in which they went in.
#[derive(Default)]
pub(crate) struct PurgeList {
    /// Each can be read without those before it, and none is empty.
    chunks: VecDeque<Vec<u8>>,
    len: usize,
    /// The row that the next one in the last chunk may share bytes with.
    pushed: Vec<u8>,
    /// How far the first chunk has been read, and the last row there.
    at: usize,
    popped: Vec<u8>,
}

/// A length of a list to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    chunks: usize,
    bytes: usize,
    len: usize,
}

impl PurgeList {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn push(&mut self, item: &PurgeItem) {
        match item {
            PurgeItem::Row { row, deleted } => self.push_bytes(row, *deleted),
            PurgeItem::Overflow { index, reference } => {
                let chunk = self.chunk();
                chunk.push(OVERFLOW);
                chunk.extend_from_slice(&index.0.to_le_bytes());
                put_length(chunk, reference.len());
                chunk.extend_from_slice(reference);
            }
            PurgeItem::Tree(index) => {
                let chunk = self.chunk();
                chunk.push(TREE);
                chunk.extend_from_slice(&index.0.to_le_bytes());
            }
        }
        self.len += 1;
    }

    pub fn push_row(&mut self, index: IndexId, key: &[u8], deleted: bool) {
        self.push_bytes(&row_key(index, key), deleted);
        self.len += 1;
    }

    fn push_bytes(&mut self, row: &[u8], deleted: bool) {
        self.chunk();
        let shared = common_prefix(&self.pushed, row);
        let chunk = self.chunk();
        chunk.push(if deleted { DELETED } else { ROW });
        put_length(chunk, shared);
        put_length(chunk, row.len() - shared);
        chunk.extend_from_slice(&row[shared..]);
        self.pushed.truncate(shared);
        self.pushed.extend_from_slice(&row[shared..]);
    }

    /// The last chunk, a new one if that is full.
    fn chunk(&mut self) -> &mut Vec<u8> {
        if self.chunks.back().is_none_or(|chunk| chunk.len() >= CHUNK) {
            if let Some(full) = self.chunks.back_mut() {
                full.shrink_to_fit();
            }
            self.chunks.push_back(Vec::new());
            self.pushed.clear();
        }
        self.chunks.back_mut().expect("entered above")
    }

    /// Takes the first item out.
    pub fn pop(&mut self) -> Option<PurgeItem> {
        let chunk = self.chunks.front()?;
        let mut reader = Reader(&chunk[self.at..]);
        let op = reader.take(1)[0];
        let item = match op {
            ROW | DELETED => {
                let shared = reader.length();
                let rest = reader.length();
                self.popped.truncate(shared);
                self.popped.extend_from_slice(reader.take(rest));
                PurgeItem::Row { row: self.popped.as_slice().into(), deleted: op == DELETED }
            }
            OVERFLOW => {
                let index = reader.index();
                let len = reader.length();
                PurgeItem::Overflow { index, reference: reader.take(len).into() }
            }
            TREE => PurgeItem::Tree(reader.index()),
            _ => unreachable!("an op that push does not write"),
        };
        self.at = chunk.len() - reader.0.len();
        if self.at == chunk.len() {
            self.chunks.pop_front();
            self.at = 0;
            self.popped.clear();
        }
        self.len -= 1;
        Some(item)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { chunks: self.chunks.len(), bytes: self.chunks.back().map_or(0, Vec::len), len: self.len }
    }

    /// Forgets what was pushed since the mark. Nothing has been taken out.
    pub(super) fn truncate(&mut self, mark: &Mark) {
        debug_assert!(self.at == 0, "a list that is read is not cut");
        if mark.len >= self.len {
            return;
        }
        self.chunks.truncate(mark.chunks);
        if let Some(last) = self.chunks.back_mut() {
            last.truncate(mark.bytes);
        }
        self.len = mark.len;
        self.pushed.clear();
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum()
    }
}

fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// What `push` wrote, so it is never too short.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn length(&mut self) -> usize {
        let mut length = 0;
        for shift in (0..).step_by(7) {
            let byte = self.take(1)[0];
            length |= ((byte & 0x7f) as usize) << shift;
            if byte < 0x80 {
                break;
            }
        }
        length
    }

    fn index(&mut self) -> IndexId {
        IndexId(u32::from_le_bytes(self.take(4).try_into().expect("4 bytes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    /// Against a list of items: pushes, returns to marks, then taking out with some put back behind the rest.
    #[test]
    fn items_come_out_as_they_went_in() {
        for seed in 0..20 {
            let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
            let (mut list, mut model) = (PurgeList::default(), VecDeque::new());
            let mut marks = vec![(list.mark(), 0)];
            for n in 0..rng.random_range(0..8000u32) {
                let index = IndexId(rng.random_range(0..3));
                let item = match rng.random_range(0..20) {
                    0 => PurgeItem::Tree(index),
                    1 => PurgeItem::Overflow { index, reference: vec![n as u8; rng.random_range(0..300)].into() },
                    2 => {
                        let key: Vec<u8> = (0..rng.random_range(0..3000)).map(|_| rng.random()).collect();
                        PurgeItem::Row { row: row_key(index, &key).into_boxed_slice(), deleted: rng.random() }
                    }
                    _ => PurgeItem::Row { row: row_key(index, &n.to_be_bytes()).into_boxed_slice(), deleted: rng.random() },
                };
                list.push(&item);
                model.push_back(item);
                match rng.random_range(0..1000) {
                    0..50 => marks.push((list.mark(), model.len())),
                    50..52 => {
                        let (mark, len) = marks.pop().unwrap_or((PurgeList::default().mark(), 0));
                        list.truncate(&mark);
                        model.truncate(len);
                    }
                    _ => {}
                }
            }
            let mut again = 100;
            while let Some(item) = list.pop() {
                assert_eq!(Some(&item), model.front(), "seed {seed}");
                model.pop_front();
                if again > 0 {
                    again -= 1;
                    list.push(&item);
                    model.push_back(item);
                }
                assert_eq!(list.len(), model.len());
            }
            assert!(model.is_empty() && list.is_empty());
        }
    }

    #[test]
    fn a_mark_behind_the_end_changes_nothing() {
        let mut list = PurgeList::default();
        let start = list.mark();
        (0..100u64).for_each(|n| list.push_row(IndexId(7), &n.to_be_bytes(), false));
        let end = list.mark();
        list.truncate(&start);
        list.push_row(IndexId(7), b"key", true);
        list.truncate(&end);
        assert_eq!(list.len(), 1);
        assert_eq!(list.pop(), Some(PurgeItem::Row { row: row_key(IndexId(7), b"key").into_boxed_slice(), deleted: true }));
        assert_eq!((list.pop(), list.len()), (None, 0));
    }

    #[test]
    fn rows_in_order_take_few_bytes() {
        let mut list = PurgeList::default();
        const ROWS: usize = 200_000;
        (0..ROWS as u64).for_each(|n| list.push_row(IndexId(7), &n.to_be_bytes(), false));
        assert!(list.bytes() < 6 * ROWS, "{} bytes for {ROWS} rows", list.bytes());
    }
}
