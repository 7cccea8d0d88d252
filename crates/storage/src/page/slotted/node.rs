//! Reading a latched tree page.

use super::layout::*;
use super::read::{self, Checked, Corrupt, PageBytes, Range, Slot};
use crate::prefetch::{LINE, prefetch_line};

/// Cache lines below the heap that a record of 100 to 200 bytes goes to.
const ROOM_LINES: usize = 3;

/// A tree page, leaf or inner, under a latch.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(pub &'a [u8]);

/// A leaf record; the key's part before `suffix` is the page's prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafRecord<'a> {
    pub suffix: &'a [u8],
    /// 48-bit transaction id below, 16 flag bits above.
    pub meta: u64,
    pub value: &'a [u8],
}

/// Fill history by which the split point tells an append from random inserts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trend {
    pub last_slot: u16,
    pub run: u8,
    pub top: u8,
    pub bottom: u8,
}

impl<'a> Node<'a> {
    #[inline]
    pub fn level(self) -> u8 {
        self.0[LEVEL]
    }
    pub fn is_leaf(self) -> bool {
        self.level() == 0
    }
    #[inline]
    pub fn flags(self) -> u16 {
        self.0.u16(FLAGS)
    }
    pub fn has(self, flag: u16) -> bool {
        self.flags() & flag != 0
    }
    pub fn page_id(self) -> u64 {
        self.0.u64(PAGE_ID)
    }
    #[inline]
    pub fn index_id(self) -> u32 {
        self.0.u16(INDEX_ID) as u32 | (self.0.u16(INDEX_ID + 2) as u32) << 16
    }
    /// 0 when the page is the last of its level.
    #[inline]
    pub fn right_link(self) -> u64 {
        self.0.u64(RIGHT_LINK)
    }
    /// The newest transaction that wrote a record of this leaf.
    pub fn max_txn(self) -> u64 {
        self.0.u64(MAX_TXN)
    }
    #[inline]
    pub fn len(self) -> usize {
        // Checked by every operation that goes on to read slots; a count beyond the page ends in `Corrupt` there.
        (self.0.u16(SLOT_COUNT) as usize).min(BODY_SIZE / SLOT_SIZE)
    }
    pub fn low(self) -> Checked<&'a [u8]> {
        self.bytes(self.0.u16(LOW_AT) as usize, self.0.u16(LOW_LEN) as usize)
    }
    /// `None` is above every key.
    pub fn high(self) -> Checked<Option<&'a [u8]>> {
        match self.0.u16(HIGH_AT) as usize {
            0 => Ok(None),
            at => self.bytes(at, self.0.u16(HIGH_LEN) as usize).map(Some),
        }
    }
    pub fn prefix(self) -> Checked<&'a [u8]> {
        self.low()?.get(..self.0.u16(PREFIX_LEN) as usize).ok_or(Corrupt("prefix longer than the low fence"))
    }
    pub fn trend(self) -> Trend {
        Trend { last_slot: self.0.u16(LAST_SLOT), run: self.0[RUN], top: self.0[TOP_EWMA], bottom: self.0[BOTTOM_EWMA] }
    }

    pub fn bytes(self, at: usize, len: usize) -> Checked<&'a [u8]> {
        self.0.get(at..at + len).ok_or(Corrupt("bytes outside the page"))
    }
    #[inline]
    pub fn slot(self, index: usize) -> Slot {
        read::slot(self.0, index)
    }
    /// The key of a slot without the page's prefix. Slot 0 of an inner page has none.
    #[inline]
    pub fn suffix(self, index: usize) -> Checked<&'a [u8]> {
        let slot = self.slot(index);
        self.bytes(slot.at, slot.key_len)
    }
    #[inline]
    pub fn record(self, index: usize) -> Checked<LeafRecord<'a>> {
        let slot = self.slot(index);
        let body = self.0.get(slot.at..).ok_or(Corrupt("record outside the page"))?;
        let (suffix, rest) = body.split_at_checked(slot.key_len).ok_or(Corrupt("key outside the page"))?;
        let (meta, rest) = rest.split_first_chunk::<8>().ok_or(Corrupt("record outside the page"))?;
        let (len, rest) = rest.split_first_chunk::<2>().ok_or(Corrupt("record outside the page"))?;
        let value = rest.get(..u16::from_le_bytes(*len) as usize).ok_or(Corrupt("value outside the page"))?;
        Ok(LeafRecord { suffix, meta: u64::from_le_bytes(*meta), value })
    }
    pub fn child(self, index: usize) -> Checked<u64> {
        if index >= self.len() {
            return Err(Corrupt("no such child"));
        }
        read::child(self.0, index)
    }
    /// Bytes of a record in the heap, without its slot.
    pub fn record_size(self, index: usize) -> Checked<usize> {
        let slot = self.slot(index);
        if !self.is_leaf() {
            return Ok(slot.key_len + 8);
        }
        let at = slot.at + slot.key_len + 8;
        let len = self.bytes(at, 2)?;
        Ok(slot.key_len + 10 + u16::from_le_bytes([len[0], len[1]]) as usize)
    }
    /// The full key of a slot; for slot 0 of an inner page its low fence. Appends to `out`.
    pub fn key(self, index: usize, out: &mut Vec<u8>) -> Checked<()> {
        if !self.is_leaf() && index == 0 {
            out.extend_from_slice(self.low()?);
        } else {
            out.extend_from_slice(self.prefix()?);
            out.extend_from_slice(self.suffix(index)?);
        }
        Ok(())
    }

    #[inline]
    pub fn range_of(self, key: &[u8]) -> Checked<Range> {
        read::range_of(self.0, key)
    }
    /// First slot not below `key` and whether it is equal; `key` is inside the page's range.
    #[inline]
    pub fn search(self, key: &[u8]) -> Checked<(usize, bool)> {
        // Ascending inserts end here: one comparison instead of a binary search.
        let count = read::slot_count(self.0)?;
        let last = self.0.u16(LAST_SLOT) as usize;
        if count > 0 && self.is_leaf() && last + 1 == count {
            let suffix = key.get(self.0.u16(PREFIX_LEN) as usize..).ok_or(Corrupt("key shorter than its page's prefix"))?;
            if self.suffix(last)? < suffix {
                return Ok((count, false));
            }
        }
        read::lower_bound(self.0, usize::from(!self.is_leaf()), key)
    }
    /// As `search` for a leaf, looking only at slots from `from` on.
    pub fn search_from(self, from: usize, key: &[u8]) -> Checked<(usize, bool)> {
        if from == 0 { self.search(key) } else { read::lower_bound(self.0, from, key) }
    }

    /// Bytes that a record (with its slot) can still take, after compaction if need be.
    pub fn free(self) -> usize {
        self.gap() + self.0.u16(GARBAGE) as usize
    }
    /// Bytes between the slots and the heap.
    pub fn gap(self) -> usize {
        (self.0.u16(HEAP_TOP) as usize).min(PAGE_SIZE).saturating_sub(HEADER_SIZE + self.len() * SLOT_SIZE)
    }
    /// Lets the processor fetch meanwhile what the next record, unless it is long, is written to.
    #[inline]
    pub fn prefetch_room(self) {
        let top = self.0.u16(HEAP_TOP) as usize;
        for line in 0..ROOM_LINES {
            if let Some(byte) = self.0.get(top.saturating_sub(1 + line * LINE)) {
                prefetch_line(byte);
            }
        }
    }
    /// Bytes in use, header and fences included.
    pub fn used(self) -> usize {
        PAGE_SIZE - self.free().min(PAGE_SIZE)
    }

    /// Verifies the page by itself: offsets, order, heads, fences, accounting.
    pub fn verify(self) -> Checked<()> {
        let count = read::slot_count(self.0)?;
        let heap_top = self.0.u16(HEAP_TOP) as usize;
        if heap_top > PAGE_SIZE || heap_top < HEADER_SIZE + count * SLOT_SIZE {
            return Err(Corrupt("heap top"));
        }
        let (low, high) = (self.low()?, self.high()?);
        let prefix = self.prefix()?;
        if let Some(high) = high {
            if low >= high {
                return Err(Corrupt("low fence not below the high key"));
            }
            if !high.starts_with(prefix) {
                return Err(Corrupt("prefix not common to the fences"));
            }
        } else if !prefix.is_empty() {
            return Err(Corrupt("prefix without a high key"));
        }
        let mut live = round8(low.len()) + high.map_or(0, |high| round8(high.len()));
        let mut previous: Option<(u32, &[u8])> = None;
        let first = usize::from(!self.is_leaf());
        if first > count {
            return Err(Corrupt("inner page without children"));
        }
        for i in 0..count {
            let slot = self.slot(i);
            if slot.at < heap_top {
                return Err(Corrupt("record below the heap"));
            }
            let size = self.record_size(i)?;
            self.bytes(slot.at, size)?;
            live += size;
            let suffix = self.suffix(i)?;
            if slot.head != read::head(suffix) {
                return Err(Corrupt("slot head"));
            }
            if i < first {
                if slot.key_len != 0 {
                    return Err(Corrupt("first separator of an inner page not empty"));
                }
                continue;
            }
            match previous {
                // Keys of different heads are in the order of these.
                Some((head, _)) if head < slot.head => {}
                Some((_, previous)) if previous >= suffix => return Err(Corrupt("keys out of order")),
                None if low.get(prefix.len()..).is_some_and(|low| suffix < low || first == 1 && suffix == low) => {
                    return Err(Corrupt("key below the low fence"));
                }
                _ => {}
            }
            previous = Some((slot.head, suffix));
        }
        // The keys ascend: of the last one it is known for all.
        if let (Some((_, last)), Some(high)) = (previous, high)
            && last >= &high[prefix.len()..]
        {
            return Err(Corrupt("key not below the high key"));
        }
        if live + self.0.u16(GARBAGE) as usize != PAGE_SIZE - heap_top {
            return Err(Corrupt("heap accounting"));
        }
        Ok(())
    }
}

/// Fences are stored at multiples of eight so that optimistic readers compare them word by word.
pub(crate) fn round8(len: usize) -> usize {
    len.next_multiple_of(8)
}

pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
