//! Changing a tree page in place. Only `op.rs` calls this, so every change is one that redo can repeat.
//!
//! Each function checks before it changes: on `Corrupt` the page is as it was.

use super::layout::*;
use super::node::{Node, Trend, common_prefix, round8};
use super::read::{Checked, Corrupt, PageBytes, Slot, head};
use std::ops::Range;

pub(crate) struct NodeMut<'a>(pub &'a mut [u8]);

impl NodeMut<'_> {
    pub fn node(&self) -> Node<'_> {
        Node(self.0)
    }
    fn put_u16(&mut self, at: usize, value: usize) {
        debug_assert!(value <= u16::MAX as usize);
        self.0[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
    }
    fn put_u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    fn put_slot(&mut self, index: usize, slot: Slot) {
        self.put_u64(HEADER_SIZE + index * SLOT_SIZE, slot.encode());
    }
    pub fn set_flags(&mut self, flags: u16) {
        self.put_u16(FLAGS, flags as usize);
    }
    fn raise_max_txn(&mut self, meta: u64) {
        let txn = meta & TXN_MASK;
        if txn > self.node().max_txn() {
            self.put_u64(MAX_TXN, txn);
        }
    }
    fn add_garbage(&mut self, bytes: usize) {
        let garbage = self.0.u16(GARBAGE) as usize + bytes;
        self.put_u16(GARBAGE, garbage.min(PAGE_SIZE));
    }

    /// Puts a fence below `top`, zeros behind it. Where it begins.
    fn put_padded(&mut self, top: usize, bytes: &[u8]) -> usize {
        let at = top - round8(bytes.len());
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self.0[at + bytes.len()..top].fill(0);
        at
    }

    /// Makes room for `count` slots and `bytes` of heap, compacting if the gap is too small.
    fn reserve(&mut self, count: usize, bytes: usize) -> Checked<()> {
        let need = count * SLOT_SIZE + bytes;
        if self.0.u16(HEAP_TOP) as usize > PAGE_SIZE {
            return Err(Corrupt("heap top"));
        }
        if self.node().gap() >= need {
            return Ok(());
        }
        if self.node().free() < need {
            return Err(Corrupt("record does not fit its page"));
        }
        self.compact(None)?;
        if self.node().gap() < need {
            return Err(Corrupt("heap accounting"));
        }
        Ok(())
    }

    /// Rewrites the heap without garbage; the record of `except` is dropped (its slot keeps its head and length, not a valid offset).
    fn compact(&mut self, except: Option<usize>) -> Checked<()> {
        let mut scratch = [0u8; PAGE_SIZE];
        let node = self.node();
        let (low, high) = (node.low()?, node.high()?);
        let mut top = PAGE_SIZE;
        let mut high_at = 0;
        if low.len() > MAX_KEY_LEN || high.is_some_and(|high| high.len() > MAX_KEY_LEN) {
            return Err(Corrupt("fence length"));
        }
        if let Some(high) = high {
            top -= round8(high.len());
            high_at = top;
            scratch[top..top + high.len()].copy_from_slice(high);
        }
        top -= round8(low.len());
        let low_at = top;
        scratch[top..top + low.len()].copy_from_slice(low);
        let count = node.len();
        let floor = HEADER_SIZE + count * SLOT_SIZE;
        for i in 0..count {
            let mut slot = node.slot(i);
            if except == Some(i) {
                slot.at = 0;
            } else {
                let size = node.record_size(i)?;
                let bytes = node.bytes(slot.at, size)?;
                top = top.checked_sub(size).filter(|top| *top >= floor).ok_or(Corrupt("records overlap"))?;
                scratch[top..top + size].copy_from_slice(bytes);
                slot.at = top;
            }
            let at = HEADER_SIZE + i * SLOT_SIZE;
            scratch[at..at + 8].copy_from_slice(&slot.encode().to_le_bytes());
        }
        self.0[HEADER_SIZE..floor].copy_from_slice(&scratch[HEADER_SIZE..floor]);
        self.0[top..].copy_from_slice(&scratch[top..]);
        self.put_u16(LOW_AT, low_at);
        self.put_u16(HIGH_AT, high_at);
        self.put_u16(HEAP_TOP, top);
        self.put_u16(GARBAGE, 0);
        Ok(())
    }

    fn open_slots(&mut self, index: usize, count: usize) {
        let len = self.node().len();
        let start = HEADER_SIZE + index * SLOT_SIZE;
        let end = HEADER_SIZE + len * SLOT_SIZE;
        self.0.copy_within(start..end, start + count * SLOT_SIZE);
        self.put_u16(SLOT_COUNT, len + count);
    }

    /// Inserts leaf records whose keys are adjacent at slots `index..`.
    pub fn insert_run<'r>(&mut self, index: usize, count: usize, bytes: usize, records: impl Iterator<Item = Checked<LeafInput<'r>>>) -> Checked<()> {
        let len = self.node().len();
        if index > len || count == 0 {
            return Err(Corrupt("insert slot"));
        }
        self.reserve(count, bytes)?;
        let mut top = self.0.u16(HEAP_TOP) as usize;
        let limit = top - bytes;
        self.open_slots(index, count);
        let mut next = index;
        for record in records {
            let record = record?;
            let size = record.suffix.len() + 10 + record.value.len();
            top = top.checked_sub(size).filter(|top| *top >= limit && next < index + count).ok_or(Corrupt("insert run size"))?;
            let slot = Slot { head: head(record.suffix), at: top, key_len: record.suffix.len() };
            let out = &mut self.0[top..top + size];
            let (key, rest) = out.split_at_mut(record.suffix.len());
            key.copy_from_slice(record.suffix);
            rest[..8].copy_from_slice(&record.meta.to_le_bytes());
            rest[8..10].copy_from_slice(&(record.value.len() as u16).to_le_bytes());
            rest[10..].copy_from_slice(record.value);
            self.put_slot(next, slot);
            self.raise_max_txn(record.meta);
            next += 1;
        }
        if next != index + count || top != limit {
            return Err(Corrupt("insert run size"));
        }
        self.put_u16(HEAP_TOP, top);
        self.note_insert(index, count, len);
        Ok(())
    }

    /// Keeps the history that `split_point.rs` reads.
    fn note_insert(&mut self, index: usize, count: usize, len: usize) {
        let mut trend = self.node().trend();
        if len > 0 && index == trend.last_slot as usize + 1 {
            trend.run = trend.run.saturating_add(count.min(255) as u8);
        } else {
            trend.run = (count - 1).min(255) as u8;
        }
        if len > 0 {
            let top = index * 8 >= len * 5;
            let bottom = (index + count - 1) * 8 <= len * 3;
            for _ in 0..count.min(32) {
                trend.top = approach(trend.top, top);
                trend.bottom = approach(trend.bottom, bottom);
            }
        }
        trend.last_slot = (index + count - 1) as u16;
        self.put_trend(trend);
    }

    pub fn put_trend(&mut self, trend: Trend) {
        self.put_u16(LAST_SLOT, trend.last_slot as usize);
        self.0[RUN] = trend.run;
        self.0[TOP_EWMA] = trend.top;
        self.0[BOTTOM_EWMA] = trend.bottom;
    }

    /// Replaces transaction, flags and value of a leaf record.
    pub fn replace(&mut self, index: usize, meta: u64, value: &[u8]) -> Checked<()> {
        let node = self.node();
        if index >= node.len() || !node.is_leaf() {
            return Err(Corrupt("replace slot"));
        }
        let mut slot = node.slot(index);
        let old = node.record(index)?;
        let old_len = old.value.len();
        if value.len() > old_len {
            // The record moves: its old bytes are garbage from here on.
            let key: smallvec::SmallVec<[u8; 128]> = old.suffix.into();
            let (old_size, size) = (slot.key_len + 10 + old_len, slot.key_len + 10 + value.len());
            if node.free() + old_size < size {
                return Err(Corrupt("value does not fit its page"));
            }
            if node.gap() < size {
                self.compact(Some(index))?;
            } else {
                self.add_garbage(old_size);
            }
            let top = (self.0.u16(HEAP_TOP) as usize)
                .min(PAGE_SIZE)
                .checked_sub(size)
                .filter(|top| *top >= HEADER_SIZE + self.node().len() * SLOT_SIZE)
                .ok_or(Corrupt("heap accounting"))?;
            self.0[top..top + key.len()].copy_from_slice(&key);
            self.put_u16(HEAP_TOP, top);
            slot.at = top;
            self.put_slot(index, slot);
        } else {
            self.add_garbage(old_len - value.len());
        }
        let at = slot.at + slot.key_len;
        self.put_u64(at, meta);
        self.put_u16(at + 8, value.len());
        self.0[at + 10..at + 10 + value.len()].copy_from_slice(value);
        self.raise_max_txn(meta);
        Ok(())
    }

    /// Removes a record, or a child other than the first.
    pub fn remove(&mut self, index: usize) -> Checked<()> {
        let node = self.node();
        let len = node.len();
        if index >= len || !node.is_leaf() && index == 0 {
            return Err(Corrupt("remove slot"));
        }
        let size = node.record_size(index)?;
        node.bytes(node.slot(index).at, size)?;
        let last = node.trend().last_slot as usize;
        let at = HEADER_SIZE + index * SLOT_SIZE;
        self.0.copy_within(at + SLOT_SIZE..HEADER_SIZE + len * SLOT_SIZE, at);
        self.put_u16(SLOT_COUNT, len - 1);
        self.add_garbage(size);
        if index <= last && last > 0 {
            self.put_u16(LAST_SLOT, last - 1);
        }
        Ok(())
    }

    /// Inserts a child other than the first into an inner page.
    pub fn insert_child(&mut self, index: usize, suffix: &[u8], child: u64) -> Checked<()> {
        let len = self.node().len();
        if index > len || index == 0 || self.node().is_leaf() {
            return Err(Corrupt("child slot"));
        }
        let size = suffix.len() + 8;
        self.reserve(1, size)?;
        let top = self.0.u16(HEAP_TOP) as usize - size;
        self.open_slots(index, 1);
        self.0[top..top + suffix.len()].copy_from_slice(suffix);
        self.put_u64(top + suffix.len(), child);
        self.put_slot(index, Slot { head: head(suffix), at: top, key_len: suffix.len() });
        self.put_u16(HEAP_TOP, top);
        self.note_insert(index, 1, len);
        Ok(())
    }
}

pub(crate) const TXN_MASK: u64 = (1 << 48) - 1;

fn approach(average: u8, hit: bool) -> u8 {
    if hit { average + (255 - average) / 16 } else { average - average / 16 }
}

#[derive(Clone, Copy)]
pub(crate) struct LeafInput<'a> {
    pub suffix: &'a [u8],
    pub meta: u64,
    pub value: &'a [u8],
}

/// Everything of a page but its records.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub page_id: u64,
    pub index_id: u32,
    pub level: u8,
    pub flags: u16,
    pub right_link: u64,
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
    pub max_txn: u64,
    pub trend: Trend,
}

impl Frame<'static> {
    /// An empty page that covers every key: a new root.
    pub fn empty(page_id: u64, index_id: u32, level: u8) -> Frame<'static> {
        Frame { page_id, index_id, level, flags: 0, right_link: 0, low: &[], high: None, max_txn: 0, trend: Trend::default() }
    }
}

/// Builds a whole page, record by record. Until `finish` it is no page.
pub(crate) struct Builder<'p> {
    page: &'p mut [u8],
    prefix_len: usize,
    count: usize,
    top: usize,
    max_txn: u64,
    level: u8,
}

impl<'p> Builder<'p> {
    /// Builds over what `page` holds; its checksum and LSN stay.
    pub fn new(page: &'p mut [u8], frame: &Frame) -> Checked<Builder<'p>> {
        if page.len() != PAGE_SIZE {
            return Err(Corrupt("page size"));
        }
        page[TYPE..LSN].fill(0);
        page[PAGE_ID..HEADER_SIZE].fill(0);
        let prefix_len = frame.high.map_or(0, |high| common_prefix(frame.low, high));
        if frame.low.len() > MAX_KEY_LEN || frame.high.is_some_and(|high| high.len() > MAX_KEY_LEN || frame.low >= high) {
            return Err(Corrupt("fences"));
        }
        let mut top = PAGE_SIZE;
        let mut node = NodeMut(&mut *page);
        if let Some(high) = frame.high {
            top = node.put_padded(top, high);
            node.put_u16(HIGH_AT, top);
            node.put_u16(HIGH_LEN, high.len());
        }
        top = node.put_padded(top, frame.low);
        node.put_u16(LOW_AT, top);
        node.put_u16(LOW_LEN, frame.low.len());
        node.put_u16(PREFIX_LEN, prefix_len);
        node.0[TYPE] = PAGE_TYPE_TREE;
        node.0[LEVEL] = frame.level;
        node.set_flags(frame.flags);
        node.put_u64(PAGE_ID, frame.page_id);
        node.0[INDEX_ID..INDEX_ID + 4].copy_from_slice(&frame.index_id.to_le_bytes());
        node.put_u64(RIGHT_LINK, frame.right_link);
        node.put_trend(frame.trend);
        Ok(Builder { page, prefix_len, count: 0, top, max_txn: frame.max_txn, level: frame.level })
    }

    /// Appends a record whose full key is `a` then `b`; `body` is everything after the key.
    pub fn push(&mut self, a: &[u8], b: &[u8], body: &[u8]) -> Checked<()> {
        let (a, b): (&[u8], &[u8]) = if self.level > 0 && self.count == 0 {
            (&[], &[])
        } else if self.prefix_len <= a.len() {
            (&a[self.prefix_len..], b)
        } else {
            (&[], b.get(self.prefix_len - a.len()..).ok_or(Corrupt("key shorter than its page's prefix"))?)
        };
        let key_len = a.len() + b.len();
        let floor = HEADER_SIZE + (self.count + 1) * SLOT_SIZE;
        let top = self.top.checked_sub(key_len + body.len()).filter(|top| *top >= floor).ok_or(Corrupt("page overflow"))?;
        self.page[top..top + a.len()].copy_from_slice(a);
        self.page[top + a.len()..top + key_len].copy_from_slice(b);
        self.page[top + key_len..top + key_len + body.len()].copy_from_slice(body);
        let slot = Slot { head: head(&self.page[top..top + key_len]), at: top, key_len };
        self.page[floor - SLOT_SIZE..floor].copy_from_slice(&slot.encode().to_le_bytes());
        if self.level == 0 {
            let meta = body.first_chunk::<8>().ok_or(Corrupt("record without its transaction"))?;
            self.max_txn = self.max_txn.max(u64::from_le_bytes(*meta) & TXN_MASK);
        }
        self.top = top;
        self.count += 1;
        Ok(())
    }

    /// Appends the records of `slots` of a page of the same level, which covers their keys too and whose newest transaction the frame has.
    pub fn push_kept(&mut self, node: Node, slots: Range<usize>) -> Checked<()> {
        let prefix = node.prefix()?;
        for i in slots {
            let mut slot = node.slot(i);
            let size = node.record_size(i)?;
            let record = node.bytes(slot.at, size)?;
            if prefix.len() == self.prefix_len && self.level == 0 {
                // Both prefixes are the key's: the record stays as it is.
                let floor = HEADER_SIZE + (self.count + 1) * SLOT_SIZE;
                slot.at = self.top.checked_sub(size).filter(|top| *top >= floor).ok_or(Corrupt("page overflow"))?;
                self.page[slot.at..slot.at + size].copy_from_slice(record);
                self.page[floor - SLOT_SIZE..floor].copy_from_slice(&slot.encode().to_le_bytes());
                self.top = slot.at;
                self.count += 1;
            } else {
                let (suffix, body) = record.split_at_checked(slot.key_len).ok_or(Corrupt("key outside the page"))?;
                let suffix = if i == 0 && self.level > 0 { &node.low()?[prefix.len()..] } else { suffix };
                self.push(prefix, suffix, body)?;
            }
        }
        Ok(())
    }

    /// Completes the page and checks the whole of it.
    pub fn finish(self) -> Checked<()> {
        self.page[HEADER_SIZE + self.count * SLOT_SIZE..self.top].fill(0);
        let mut node = NodeMut(self.page);
        node.put_u16(SLOT_COUNT, self.count);
        node.put_u16(HEAP_TOP, self.top);
        node.put_u64(MAX_TXN, self.max_txn);
        let last = (node.node().trend().last_slot as usize).min(self.count.saturating_sub(1));
        node.put_u16(LAST_SLOT, last);
        node.node().verify()
    }
}
