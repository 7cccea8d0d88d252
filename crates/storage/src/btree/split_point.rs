//! Where a full leaf is cut: the five rules of README.md. Pure: decides from the page and, through `try_shared`, its right sibling.

use super::BTree;
use crate::ids::PageId;
use crate::page::slotted::layout::{APPEND, HEADER_SIZE, INNER_OVERHEAD, PAGE_SIZE, SLOT_SIZE};
use crate::page::slotted::{Checked, Corrupt, Node, common_prefix, round8};

/// A page is as full as appends leave it: 15/16.
pub(super) const FULL: usize = PAGE_SIZE / 16 * 15;
/// The slack that is left for late arrivals: 1/16.
pub(super) const SLACK: usize = PAGE_SIZE / 16;
/// Share of inserts in the top (bottom) 3/8 of the page that makes it an append page: 7/8.
const TREND_MIN: u8 = 224;
/// The same for the last page: with many ids in flight part of the inserts comes lower while the page is young. Random inserts have
/// 3/8 (96) there.
const LAST_TREND_MIN: u8 = 144;
/// Longest separator taken in full at an append point, so that late arrivals stay left of it.
const WHOLE_SEPARATOR_MAX: usize = 64;

/// What to do with a leaf that cannot, or should not, take the next record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Rule 1: a new empty right page that begins with the record; nothing moves.
    Append { separator: Vec<u8> },
    /// The last (first) leaf gets a fence some way ahead, for its keys to share a prefix, and an empty page beyond it.
    Bound { separator: Vec<u8>, after: bool },
    /// Rules 3 and 4: cut before this record, counting the new one; it belongs to the side it is on.
    Cut { at: usize, descending: bool },
    /// Rule 2: late arrivals have filled the page. As `Share`; alone, cut before this record, behind which appends may go on.
    Late { at: usize },
    /// Rules 2 and 5: even out with a sibling, or make three pages of two; alone, cut in the middle.
    Share,
    /// Cut in the middle by bytes.
    Middle,
}

impl BTree {
    /// The plan for inserting `key` at `slot` of a leaf with `need` bytes, slot included; `None`: it goes in as it is.
    pub(super) fn plan_insert(&self, node: Node, slot: usize, key: &[u8], need: usize) -> Checked<Option<Plan>> {
        let fits = node.free() >= need;
        let used = node.used();
        // The usual case in two comparisons.
        if fits && used < FULL {
            return Ok(None);
        }
        let count = node.len();
        let trend = node.trend();
        let sequential = count > 0 && slot == trend.last_slot as usize + 1 && trend.run >= 1;
        if count == 0 {
            return Ok(None);
        }
        let appended = trend.top >= TREND_MIN || trend.top >= LAST_TREND_MIN && node.right_link() == 0;
        if slot == count && (sequential || appended) {
            return self.plan_append(node, key, need, fits);
        }
        if slot == 0 && trend.last_slot == 0 && trend.bottom >= TREND_MIN && count > 1 {
            return plan_descending(node, key, need, fits);
        }
        if fits {
            return Ok(None);
        }
        if count < 2 {
            return Ok(Some(Plan::Middle));
        }
        if sequential {
            let mut tail = 0;
            for i in slot..count {
                tail += node.record_size(i)? + SLOT_SIZE;
            }
            // A long tail goes right alone and appends go on here; a short one takes the appends along.
            let at = if tail > SLACK { slot + 1 } else { slot };
            return Ok(Some(Plan::Cut { at, descending: false }));
        }
        if appended && self.right_sibling(node) != Right::Young {
            // Late arrivals filled the page before a key behind its last one came: alone, the next page begins with what is over F.
            return Ok(Some(Plan::Late { at: packed_cut(node, slot, need)? }));
        }
        Ok(Some(Plan::Share))
    }

    fn plan_append(&self, node: Node, key: &[u8], need: usize, fits: bool) -> Checked<Option<Plan>> {
        let low = node.low()?;
        let shared = common_prefix(low, key);
        // Cut off at the key, the page's range shares a longer prefix, which its records lose.
        let used = node.used().saturating_sub((shared - node.prefix()?.len()) * node.len());
        if fits && used < FULL {
            return Ok(None);
        }
        // Rule 2: the slack is for late arrivals, all of it. Behind a page opened by an append the last keys may be late as well.
        match self.right_sibling(node) {
            Right::Young => return Ok(if fits { None } else { Some(Plan::Share) }),
            Right::Append if fits => return Ok(None),
            _ => {}
        }
        if node.high()?.is_none()
            && !fits
            && used + need < FULL
            && let Some(separator) = above(&key[..shared])
        {
            return Ok(Some(Plan::Bound { separator, after: true }));
        }
        let mut previous = Vec::new();
        node.key(node.len() - 1, &mut previous)?;
        Ok(Some(Plan::Append { separator: append_separator(&previous, key) }))
    }

    fn right_sibling(&self, node: Node) -> Right {
        let link = PageId(node.right_link());
        if link.is_none() {
            return Right::Other;
        }
        // Left to right, without waiting.
        let Some(page) = self.pool().try_shared(link) else {
            // One that is latched is being appended to.
            return if self.pool().is_resident(link) { Right::Young } else { Right::Other };
        };
        let right = Node(&page);
        match right.is_leaf() && right.has(APPEND) {
            true if right.free() >= 2 * SLACK => Right::Young,
            true => Right::Append,
            false => Right::Other,
        }
    }
}

/// What stands to the right of a leaf.
#[derive(PartialEq, Eq)]
enum Right {
    /// A page opened by an append that still has room for most of what it will take.
    Young,
    /// One that has not.
    Append,
    Other,
}

/// The cut, counting the new record at `slot`, that leaves the page F full.
fn packed_cut(node: Node, slot: usize, need: usize) -> Checked<usize> {
    let mut at = node.len() + 1;
    let mut used = node.used() + need;
    while used > FULL && at > 1 {
        at -= 1;
        used -= match at {
            at if at == slot => need,
            at => SLOT_SIZE + node.record_size(if at > slot { at - 1 } else { at })?,
        };
    }
    Ok(at)
}

/// Rule 4, the mirror of rule 1. The page id stays with the lower keys, so here everything else moves.
fn plan_descending(node: Node, key: &[u8], need: usize, fits: bool) -> Checked<Option<Plan>> {
    let Some(high) = node.high()? else {
        return Ok(if fits { None } else { Some(Plan::Cut { at: 1, descending: true }) });
    };
    let shared = common_prefix(key, high);
    let used = node.used().saturating_sub((shared - node.prefix()?.len()) * node.len());
    if fits && used < FULL {
        return Ok(None);
    }
    if node.low()?.is_empty() && !fits && used + need < FULL && shared > 0 {
        return Ok(Some(Plan::Bound { separator: key[..shared].to_vec(), after: false }));
    }
    Ok(Some(Plan::Cut { at: 1, descending: true }))
}

/// The shortest key above every key that begins with `prefix`, shorter than it.
fn above(prefix: &[u8]) -> Option<Vec<u8>> {
    let end = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut key = prefix[..=end].to_vec();
    key[end] += 1;
    Some(key)
}

/// The shortest key above `left` and not above `right`.
pub(super) fn shortest_separator<'k>(left: &[u8], right: &'k [u8]) -> &'k [u8] {
    debug_assert!(left < right, "I2: keys ascend");
    &right[..(common_prefix(left, right) + 1).min(right.len())]
}

fn append_separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    if right.len() <= WHOLE_SEPARATOR_MAX { right.to_vec() } else { shortest_separator(left, right).to_vec() }
}

/// The bytes a record takes with its full key, before prefix truncation.
fn full_size(node: Node, index: usize, prefix: usize) -> Checked<usize> {
    if index == 0 && !node.is_leaf() {
        return Ok(INNER_OVERHEAD + node.low()?.len());
    }
    Ok(SLOT_SIZE + node.record_size(index)? + prefix)
}

/// A record that is to be added while cutting: its slot, and its bytes with slot and full key.
#[derive(Clone, Copy)]
pub(super) struct Addition<'k> {
    pub slot: usize,
    pub key: &'k [u8],
    pub size: usize,
}

/// A cut of the records of a page and perhaps one more: `at` counts the addition.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    pub at: usize,
    pub separator: Vec<u8>,
}

/// The records of a page with one added, as a sequence.
pub(super) struct Sequence<'a> {
    node: Node<'a>,
    prefix: usize,
    addition: Option<Addition<'a>>,
}

impl<'a> Sequence<'a> {
    pub fn new(node: Node<'a>, addition: Option<Addition<'a>>) -> Checked<Sequence<'a>> {
        Ok(Sequence { node, prefix: node.prefix()?.len(), addition })
    }
    pub fn len(&self) -> usize {
        self.node.len() + usize::from(self.addition.is_some())
    }
    fn size(&self, index: usize) -> Checked<usize> {
        match self.addition {
            Some(add) if index == add.slot => Ok(add.size),
            Some(add) if index > add.slot => full_size(self.node, index - 1, self.prefix),
            _ => full_size(self.node, index, self.prefix),
        }
    }
    fn key(&self, index: usize, out: &mut Vec<u8>) -> Checked<()> {
        out.clear();
        match self.addition {
            Some(add) if index == add.slot => {
                out.extend_from_slice(add.key);
                Ok(())
            }
            Some(add) if index > add.slot => self.node.key(index - 1, out),
            _ => self.node.key(index, out),
        }
    }

    /// The separator of a cut at `at`: between leaves the shortest, of an inner page the child's own.
    pub fn separator(&self, at: usize) -> Checked<Vec<u8>> {
        let mut right = Vec::new();
        self.key(at, &mut right)?;
        if self.node.is_leaf() && at > 0 {
            let mut left = Vec::new();
            self.key(at - 1, &mut left)?;
            let len = shortest_separator(&left, &right).len();
            right.truncate(len);
        }
        Ok(right)
    }

    /// The cut behind all records of the page, before the addition, by a given separator, if legal.
    pub fn cut_behind(&self, separator: &[u8]) -> Checked<Option<Cut>> {
        let count = self.node.len();
        debug_assert!(self.addition.is_some_and(|add| add.slot == count));
        let (low, high) = (self.node.low()?, self.node.high()?);
        // What is in use without the header and the fences are the records without their prefix: they need not be looked at.
        let fences = page_size(low, high, 0, 0, true, 0);
        let full = self.node.used().checked_sub(fences).ok_or(Corrupt("heap accounting"))? + self.prefix * count;
        let left = page_size(low, Some(separator), full, count, true, 0);
        let right = page_size(separator, high, self.addition.map_or(0, |add| add.size), 1, true, 0);
        Ok((left <= PAGE_SIZE && right <= PAGE_SIZE).then(|| Cut { at: count, separator: separator.to_vec() }))
    }

    /// The cut at `at` by a given separator, if legal; `at` may be the end.
    pub fn cut_with(&self, at: usize, separator: &[u8]) -> Checked<Option<Cut>> {
        self.fitting(at, separator.to_vec(), &self.sums()?)
    }

    /// Whether both sides of a cut fit a page each.
    fn legal(&self, at: usize, sums: &[usize]) -> Checked<Option<Cut>> {
        self.fitting(at, self.separator(at)?, sums)
    }

    fn fitting(&self, at: usize, separator: Vec<u8>, sums: &[usize]) -> Checked<Option<Cut>> {
        let (low, high) = (self.node.low()?, self.node.high()?);
        let total = sums[sums.len() - 1];
        let left = page_size(low, Some(&separator), sums[at], at, self.node.is_leaf(), low.len());
        let right = page_size(&separator, high, total - sums[at], self.len() - at, self.node.is_leaf(), separator.len());
        Ok((left <= PAGE_SIZE && right <= PAGE_SIZE).then_some(Cut { at, separator }))
    }

    /// The legal cut closest to `wanted`; without one the addition has to wait for a second round.
    pub fn cut_near(&self, wanted: usize) -> Checked<Option<Cut>> {
        let sums = self.sums()?;
        let last = self.len().saturating_sub(1);
        for distance in 0..=last {
            for at in [wanted.checked_sub(distance), (distance > 0).then_some(wanted + distance)].into_iter().flatten() {
                if (1..=last).contains(&at)
                    && let Some(cut) = self.legal(at, &sums)?
                {
                    return Ok(Some(cut));
                }
            }
        }
        Ok(None)
    }

    /// The legal cut that halves the bytes best.
    pub fn cut_middle(&self) -> Checked<Option<Cut>> {
        let sums = self.sums()?;
        let total = sums[sums.len() - 1];
        let at = sums.partition_point(|sum| sum * 2 < total).max(1);
        let at = if at > 1 && sums[at] * 2 > total + (sums[at] - sums[at - 1]) { at - 1 } else { at };
        self.cut_near(at)
    }

    /// `sums[i]`: bytes of the first `i` records with full keys.
    fn sums(&self) -> Checked<Vec<usize>> {
        let mut sums = Vec::with_capacity(self.len() + 1);
        let mut sum = 0;
        sums.push(0);
        for i in 0..self.len() {
            sum += self.size(i)?;
            sums.push(sum);
        }
        Ok(sums)
    }
}

/// Bytes a page takes that holds `count` records of `full` bytes with their full keys. An inner page keeps no key for its first.
pub(super) fn page_size(low: &[u8], high: Option<&[u8]>, full: usize, count: usize, leaf: bool, first_key: usize) -> usize {
    let prefix = high.map_or(0, |high| common_prefix(low, high));
    let fences = round8(low.len()) + high.map_or(0, |high| round8(high.len()));
    let saved = if leaf { prefix * count } else { first_key + prefix * count.saturating_sub(1) };
    HEADER_SIZE + fences + full - saved.min(full)
}
