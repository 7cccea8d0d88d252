//! Reading a tree page through any source of bytes: a latched slice, or an inner page read optimistically through relaxed atomics.
//!
//! An optimistic reader may see a torn page, so every offset is checked here, and `Corrupt` means "restart" to a reader whose
//! version no longer matches and "stop" to one whose version does.

use std::cmp::Ordering;

use super::layout::*;

/// Bytes that contradict the page format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt(pub &'static str);

pub(crate) type Checked<T> = Result<T, Corrupt>;

/// A source of page bytes. Offsets are below `PAGE_SIZE`, multi-byte reads are little-endian and naturally aligned.
pub(crate) trait PageBytes {
    fn u8(&self, at: usize) -> u8;
    fn u16(&self, at: usize) -> u16;
    fn u64(&self, at: usize) -> u64;
    /// Reads 8 bytes at any offset up to `PAGE_SIZE - 8`.
    fn u64_unaligned(&self, at: usize) -> u64;
    fn compare(&self, at: usize, len: usize, key: &[u8]) -> Checked<Ordering>;
}

impl PageBytes for [u8] {
    #[inline]
    fn u8(&self, at: usize) -> u8 {
        self[at]
    }
    #[inline]
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self[at], self[at + 1]])
    }
    #[inline]
    fn u64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self[at..at + 8]);
        u64::from_le_bytes(bytes)
    }
    #[inline]
    fn u64_unaligned(&self, at: usize) -> u64 {
        self.u64(at)
    }
    #[inline]
    fn compare(&self, at: usize, len: usize, key: &[u8]) -> Checked<Ordering> {
        Ok(self.get(at..at + len).ok_or(Corrupt("bytes outside the page"))?.cmp(key))
    }
}

/// First four bytes of a key suffix as a big-endian number, zero-padded.
#[inline]
pub(crate) fn head(suffix: &[u8]) -> u32 {
    if let Some(first) = suffix.first_chunk::<4>() {
        return u32::from_be_bytes(*first);
    }
    let mut bytes = [0; 4];
    bytes[..suffix.len()].copy_from_slice(suffix);
    u32::from_be_bytes(bytes)
}

/// One slot: `head u32, offset u16, key length u16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub head: u32,
    pub at: usize,
    pub key_len: usize,
}

impl Slot {
    #[inline]
    pub fn decode(word: u64) -> Slot {
        Slot { head: word as u32, at: (word >> 32) as u16 as usize, key_len: (word >> 48) as usize }
    }
    #[inline]
    pub fn encode(self) -> u64 {
        self.head as u64 | (self.at as u64) << 32 | (self.key_len as u64) << 48
    }
}

#[inline]
pub(crate) fn slot_count<P: PageBytes + ?Sized>(page: &P) -> Checked<usize> {
    let count = page.u16(SLOT_COUNT) as usize;
    if HEADER_SIZE + count * SLOT_SIZE > PAGE_SIZE {
        return Err(Corrupt("slot count"));
    }
    Ok(count)
}

#[inline]
pub(crate) fn slot<P: PageBytes + ?Sized>(page: &P, index: usize) -> Slot {
    Slot::decode(page.u64(HEADER_SIZE + index * SLOT_SIZE))
}

/// Where `key` lies against the page's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    Below,
    Inside,
    Above,
}

/// `low_fence <= key < high_key`: the page's range (I3 of btree/README.md).
#[inline]
pub(crate) fn range_of<P: PageBytes + ?Sized>(page: &P, key: &[u8]) -> Checked<Range> {
    let low_len = page.u16(LOW_LEN) as usize;
    // The leftmost page's low fence is empty, and at the end of the page: memcmp of nothing may look behind it, and fault there.
    if low_len != 0 && page.compare(page.u16(LOW_AT) as usize, low_len, key)? == Ordering::Greater {
        return Ok(Range::Below);
    }
    let high_at = page.u16(HIGH_AT) as usize;
    if high_at != 0 && page.compare(high_at, page.u16(HIGH_LEN) as usize, key)? != Ordering::Greater {
        return Ok(Range::Above);
    }
    Ok(Range::Inside)
}

/// As `range_of` for the keys just below `bound` (`None`: above every key): inside when `low_fence < bound <= high_key`.
pub(crate) fn range_below<P: PageBytes + ?Sized>(page: &P, bound: Option<&[u8]>) -> Checked<Range> {
    let high_at = page.u16(HIGH_AT) as usize;
    let Some(bound) = bound else {
        return Ok(if high_at == 0 { Range::Inside } else { Range::Above });
    };
    let low_len = page.u16(LOW_LEN) as usize;
    // The leftmost page has an empty low fence; nothing lies below an empty bound, and it answers for that too.
    if low_len != 0 && page.compare(page.u16(LOW_AT) as usize, low_len, bound)? != Ordering::Less {
        return Ok(Range::Below);
    }
    if high_at != 0 && page.compare(high_at, page.u16(HIGH_LEN) as usize, bound)? == Ordering::Less {
        return Ok(Range::Above);
    }
    Ok(Range::Inside)
}

/// How far from the place that interpolation gives the next comparison is: within a cache line of slots.
const NEAR: usize = 4;

/// The head of a fence without the page's prefix.
#[inline]
fn fence_head<P: PageBytes + ?Sized>(page: &P, at: usize, len: usize, prefix: usize) -> u64 {
    let (at, len) = (at + prefix, len.saturating_sub(prefix).min(4));
    // Fences lie at the page's end: what is read must not begin behind its last eight bytes.
    let from = at.min(PAGE_SIZE - 8);
    let word = page.u64_unaligned(from).checked_shr(8 * (at - from) as u32).unwrap_or(0) as u32;
    (word.swap_bytes() as u64) & !(u32::MAX as u64).checked_shr(8 * len as u32).unwrap_or(0)
}

/// Where the slot of a head would be if heads were evenly spread between the fences; `None` without a high key.
/// Interpolation search: Peterson, *Addressing for Random-Access Storage* (1957). Random and ascending numbers are met within a cache line
/// of slots; for others it is the first of the comparisons.
#[inline]
fn interpolated<P: PageBytes + ?Sized>(page: &P, prefix: usize, count: usize, wanted: u32) -> Option<usize> {
    let high_at = page.u16(HIGH_AT) as usize;
    if high_at == 0 {
        return None;
    }
    let low = fence_head(page, page.u16(LOW_AT) as usize, page.u16(LOW_LEN) as usize, prefix);
    let high = fence_head(page, high_at, page.u16(HIGH_LEN) as usize, prefix);
    let above = (wanted as u64).checked_sub(low)?;
    let range = high.checked_sub(low).filter(|range| *range != 0)?;
    Some((above * count as u64 / range) as usize)
}

/// First slot from `from` on whose key is not below `key`, and whether it is equal. `key` is inside the page's range.
#[inline]
pub(crate) fn lower_bound<P: PageBytes + ?Sized>(page: &P, from: usize, key: &[u8]) -> Checked<(usize, bool)> {
    let count = slot_count(page)?;
    let prefix = page.u16(PREFIX_LEN) as usize;
    let suffix = key.get(prefix..).ok_or(Corrupt("key shorter than the prefix of its page"))?;
    let wanted = head(suffix);
    let (mut low, mut high) = (from, count);
    // From the interpolated place on further and further, as long as that is nearer than the middle of what is left.
    let (mut probe, mut reach) = match interpolated(page, prefix, count, wanted) {
        Some(guess) => (guess.clamp(low, high.saturating_sub(1).max(low)), NEAR),
        None => ((low + high) / 2, count),
    };
    while low < high {
        let slot = slot(page, probe);
        let order = match slot.head.cmp(&wanted) {
            // All of both keys: the record need not be fetched.
            Ordering::Equal if slot.key_len == suffix.len() && slot.key_len <= size_of::<u32>() => Ordering::Equal,
            Ordering::Equal => page.compare(slot.at, slot.key_len, suffix)?,
            order => order,
        };
        match order {
            Ordering::Less => {
                low = probe + 1;
                probe = ((low + high) / 2).min(low + reach);
            }
            Ordering::Equal => return Ok((probe, true)),
            Ordering::Greater => {
                high = probe;
                probe = ((low + high) / 2).max(high.saturating_sub(reach));
            }
        }
        reach *= 4;
    }
    Ok((low, false))
}

/// The slot of an inner page whose child covers `key`: the last separator not above it. Slot 0 stands for the low fence.
#[inline]
pub(crate) fn child_slot<P: PageBytes + ?Sized>(page: &P, key: &[u8]) -> Checked<usize> {
    if slot_count(page)? == 0 {
        return Err(Corrupt("inner page without children"));
    }
    let (slot, equal) = lower_bound(page, 1, key)?;
    Ok(if equal { slot } else { slot - 1 })
}

/// The slot of an inner page whose child covers the keys just below `bound`: the last separator below it.
pub(crate) fn child_slot_below<P: PageBytes + ?Sized>(page: &P, bound: Option<&[u8]>) -> Checked<usize> {
    let count = slot_count(page)?;
    if count == 0 {
        return Err(Corrupt("inner page without children"));
    }
    let Some(bound) = bound else { return Ok(count - 1) };
    let high_at = page.u16(HIGH_AT) as usize;
    // A bound equal to the high key need not share the page's prefix.
    if high_at != 0 && page.compare(high_at, page.u16(HIGH_LEN) as usize, bound)? == Ordering::Equal {
        return Ok(count - 1);
    }
    if bound.is_empty() {
        return Ok(0);
    }
    Ok(lower_bound(page, 1, bound)?.0 - 1)
}

/// Child page id of a slot of an inner page.
#[inline]
pub(crate) fn child<P: PageBytes + ?Sized>(page: &P, index: usize) -> Checked<u64> {
    let slot = slot(page, index);
    let at = slot.at + slot.key_len;
    if at > PAGE_SIZE - 8 {
        return Err(Corrupt("child outside the page"));
    }
    Ok(page.u64_unaligned(at))
}
