//! What a log record says about taking itself back: a list of entries, undone last to first.
//!
//! ```text
//! ROW       op u8 · index u32 · key len u16 · key · before u8 · [txn u64 · flags u16 · value len u32 · value]
//! TREE      op u8 · index u32                                   the tree was created
//! RUN       op u8 · first page u64 · pages u32                  a run of overflow pages was written
//! PAGES     op u8 · index u32 · first page u64 · pages u32      pages were taken for a bulk load
//! LOAD      op u8 · index u32                                   an empty tree was given the pages of a bulk load
//! ```

use crate::error::{Error, Result};
use crate::ids::{IndexId, PageId, TxnId};

const ROW: u8 = 1;
const TREE: u8 = 2;
const RUN: u8 = 3;
const LOAD: u8 = 4;
const PAGES: u8 = 5;

/// A record as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before<'a> {
    pub txn: TxnId,
    pub flags: u16,
    pub value: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undo<'a> {
    Row { index: IndexId, key: &'a [u8], before: Option<Before<'a>> },
    Tree { index: IndexId },
    Run { first: PageId, pages: u32 },
    Pages { index: IndexId, first: PageId, pages: u32 },
    Load { index: IndexId },
}

impl Undo<'_> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Undo::Row { index, key, before } => {
                out.push(ROW);
                out.extend_from_slice(&index.0.to_le_bytes());
                out.extend_from_slice(&(key.len() as u16).to_le_bytes());
                out.extend_from_slice(key);
                out.push(before.is_some() as u8);
                if let Some(before) = before {
                    out.extend_from_slice(&before.txn.0.to_le_bytes());
                    out.extend_from_slice(&before.flags.to_le_bytes());
                    out.extend_from_slice(&(before.value.len() as u32).to_le_bytes());
                    out.extend_from_slice(before.value);
                }
            }
            Undo::Tree { index } => {
                out.push(TREE);
                out.extend_from_slice(&index.0.to_le_bytes());
            }
            Undo::Pages { index, first, pages } => {
                out.push(PAGES);
                out.extend_from_slice(&index.0.to_le_bytes());
                out.extend_from_slice(&first.0.to_le_bytes());
                out.extend_from_slice(&pages.to_le_bytes());
            }
            Undo::Load { index } => {
                out.push(LOAD);
                out.extend_from_slice(&index.0.to_le_bytes());
            }
            Undo::Run { first, pages } => {
                out.push(RUN);
                out.extend_from_slice(&first.0.to_le_bytes());
                out.extend_from_slice(&pages.to_le_bytes());
            }
        }
    }

    /// All entries of a record, in the order they were done.
    pub fn decode(bytes: &[u8]) -> Result<Vec<Undo<'_>>> {
        let mut reader = Reader(bytes);
        let mut entries = Vec::new();
        while !reader.0.is_empty() {
            let entry = reader.entry().ok_or_else(|| Error::corrupt_file("undo bytes of a log record"))?;
            entries.push(entry);
        }
        Ok(entries)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn entry(&mut self) -> Option<Undo<'a>> {
        match self.u8()? {
            ROW => {
                let index = IndexId(self.u32()?);
                let len = self.u16()? as usize;
                let key = self.take(len)?;
                let before = if self.u8()? == 0 {
                    None
                } else {
                    let (txn, flags) = (TxnId(self.u64()?), self.u16()?);
                    let len = self.u32()? as usize;
                    Some(Before { txn, flags, value: self.take(len)? })
                };
                Some(Undo::Row { index, key, before })
            }
            TREE => Some(Undo::Tree { index: IndexId(self.u32()?) }),
            PAGES => Some(Undo::Pages { index: IndexId(self.u32()?), first: PageId(self.u64()?), pages: self.u32()? }),
            LOAD => Some(Undo::Load { index: IndexId(self.u32()?) }),
            RUN => Some(Undo::Run { first: PageId(self.u64()?), pages: self.u32()? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let before = Before { txn: TxnId(9), flags: 3, value: b"old" };
        let entries = [
            Undo::Row { index: IndexId(1), key: b"k", before: None },
            Undo::Row { index: IndexId(2), key: b"", before: Some(before) },
            Undo::Tree { index: IndexId(3) },
            Undo::Run { first: PageId(4), pages: 7 },
            Undo::Load { index: IndexId(5) },
            Undo::Pages { index: IndexId(5), first: PageId(8), pages: 16 },
        ];
        let mut bytes = Vec::new();
        entries.iter().for_each(|e| e.encode(&mut bytes));
        assert_eq!(Undo::decode(&bytes).unwrap(), entries);
        for cut in 1..bytes.len() {
            // A cut list is an error or a prefix, never a panic.
            if let Ok(prefix) = Undo::decode(&bytes[..cut]) {
                assert_eq!(prefix, entries[..prefix.len()]);
            }
        }
    }
}
