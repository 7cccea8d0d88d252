//! Scans: a leaf at a time under its shared latch, between leaves nothing is held. A position is a key, so it survives every
//! split and merge: forward goes on at the old leaf's high key by its right link, backward re-descends with its low fence.

use super::search::{Path, Target};
use super::{BTree, RecordFlags, RecordRef, corrupt, record_ref};
use crate::buffer::Access;
use crate::error::Result;
use crate::ids::{Lsn, PageId};
use crate::page::header;
use crate::page::slotted::read::child_slot;
use crate::page::slotted::{Checked, Node};
use crate::sync::{AtomicU64, Ordering};
use std::ops::Bound;

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

/// A scan between two bounds and how far it has come.
#[derive(Clone, Debug)]
pub struct LeafScan {
    direction: Direction,
    /// Keys from here on (forward: moves on).
    lower: Vec<u8>,
    /// Keys below this (backward: moves on); `None` is above every key.
    upper: Option<Vec<u8>>,
    /// Where the next leaf should be.
    hint: PageId,
    /// Leaves without a record of the scan are shown too.
    every_leaf: bool,
    /// No leaf was read yet.
    fresh: bool,
    done: bool,
    /// Leaves read, forward, and up to which one the disk knows of them.
    leaves: usize,
    announced: usize,
    /// The leaf at which it is told of more.
    announces_at: usize,
}

/// A scan that has read so many leaves will go on, as a rule.
const ANNOUNCES_AFTER: usize = 8;
/// Leaves that the disk knows of before they are read, at most: 1 MiB. It is told of more when half of them are left.
const ANNOUNCED: usize = 64;

/// The shortest key above `key`.
fn successor(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

impl LeafScan {
    pub fn new(lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>, direction: Direction) -> LeafScan {
        let lower = match lower {
            Bound::Included(key) => key,
            Bound::Excluded(key) => successor(key),
            Bound::Unbounded => Vec::new(),
        };
        let upper = match upper {
            Bound::Included(key) => Some(successor(key)),
            Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        let done = upper.as_ref().is_some_and(|upper| *upper <= lower);
        LeafScan { direction, lower, upper, hint: PageId::NONE, every_leaf: false, fresh: true, done, leaves: 0, announced: 0, announces_at: ANNOUNCES_AFTER + 1 }
    }
    /// From now on leaves that have no record between the bounds are shown too: for who locks what is between records, or notes all leaves.
    pub fn show_every_leaf(&mut self) {
        self.every_leaf = true;
    }
    pub fn direction(&self) -> Direction {
        self.direction
    }
    /// Where a forward scan goes on; `None` at its end.
    pub fn position(&self) -> Option<&[u8]> {
        (!self.done).then_some(&self.lower)
    }
    /// The end of the range; `None` is above every key.
    pub fn upper(&self) -> Option<&[u8]> {
        self.upper.as_deref()
    }
    /// A forward scan goes on at `key`; `None` ends it.
    pub fn skip_to(&mut self, key: Option<&[u8]>) {
        match key {
            Some(key) => {
                self.lower.clear();
                self.lower.extend_from_slice(key);
                self.settle();
            }
            None => self.done = true,
        }
    }
    /// Goes on behind `key` (in the scan's direction), whatever the scan has seen: for callers that stop inside a leaf.
    pub fn resume_after(&mut self, key: &[u8]) {
        match self.direction {
            Direction::Forward => {
                self.lower.clear();
                self.lower.extend_from_slice(key);
                self.lower.push(0);
            }
            Direction::Backward => self.upper = Some(key.to_vec()),
        }
        self.settle();
    }
    fn settle(&mut self) {
        self.hint = PageId::NONE;
        self.done = self.upper.as_ref().is_some_and(|upper| *upper <= self.lower);
    }
}

/// The records of one leaf that a scan covers, ascending whatever the direction; valid under the leaf's latch.
pub struct LeafView<'a> {
    node: Node<'a>,
    version: u64,
    prefix: &'a [u8],
    low: &'a [u8],
    high: Option<&'a [u8]>,
    from: usize,
    to: usize,
    /// The scan's lower bound, if the first record is right there.
    bound: Option<&'a [u8]>,
    /// Where the scan stands, and its end.
    lower: &'a [u8],
    upper: Option<&'a [u8]>,
    /// The lower, upper end of the scan is in this leaf, and it is the first, last that the scan reads.
    starts_here: bool,
    ends_here: bool,
}

/// What lies around the records of a scan in a leaf, up to the neighbours that it does not read; see [`LeafView::surroundings`].
pub struct Surroundings {
    pub lower: Vec<u8>,
    /// `None`: to the end of the tree.
    pub upper: Option<Vec<u8>>,
    /// There may be more without records below `lower`, above `upper`: the neighbour is in another leaf.
    pub open_below: bool,
    pub open_above: bool,
}

/// A leaf as it was when it was read.
#[derive(Debug)]
pub struct LeafStamp {
    page: PageId,
    lsn: Lsn,
    /// The page's version when it was last seen to be the same.
    version: AtomicU64,
}

impl LeafStamp {
    /// True if both are of one state of one page.
    pub fn is_same(&self, other: &LeafStamp) -> bool {
        self.page == other.page && self.lsn == other.lsn
    }
}

impl<'a> LeafView<'a> {
    pub fn len(&self) -> usize {
        self.to - self.from
    }
    /// True if the scan covers all records of the leaf.
    pub fn is_whole(&self) -> bool {
        self.from == 0 && self.to == self.node.len()
    }
    /// The least key that belongs on the leaf.
    pub fn low_fence(&self) -> &'a [u8] {
        self.low
    }
    /// The least key above those that belong on the leaf; `None` on the last one.
    pub fn high_key(&self) -> Option<&'a [u8]> {
        self.high
    }
    /// The keys of the leaf that the scan covers: from the first on, below the second (`None`: to the end of the tree).
    pub fn covered(&self) -> (&'a [u8], Option<&'a [u8]>) {
        let high = match (self.upper, self.high) {
            (Some(upper), Some(high)) => Some(upper.min(high)),
            (upper, high) => upper.or(high),
        };
        (self.lower.max(self.low), high)
    }
    /// For `BTree::is_unchanged`.
    pub fn stamp(&self) -> LeafStamp {
        LeafStamp { page: PageId(self.node.page_id()), lsn: header::lsn(self.node.0), version: AtomicU64::new(self.version) }
    }
    /// The newest transaction that wrote a record of the page: below the low-water mark no record needs a visibility check.
    pub fn max_txn(&self) -> u64 {
        self.node.max_txn()
    }
    /// What all keys of the page begin with.
    pub fn prefix(&self) -> &'a [u8] {
        self.prefix
    }
    /// The rest of the key.
    pub fn suffix(&self, index: usize) -> &'a [u8] {
        self.checked(self.node.suffix(self.from + index))
    }
    pub fn record(&self, index: usize) -> RecordRef<'a> {
        self.checked(record_ref(self.node, self.from + index))
    }
    /// Appends the key to `out`.
    pub fn key(&self, index: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix);
        out.extend_from_slice(self.suffix(index));
    }
    /// The span of keys of this leaf in which the scan finds no other records than these: from behind the record before its first one, or from its
    /// lower bound if there is a row there, to the record after its last one.
    pub fn surroundings(&self) -> Surroundings {
        let key = |slot| [self.prefix, self.checked(self.node.suffix(slot))].concat();
        let mut open_below = false;
        let bound = self.bound.filter(|_| self.checked(record_ref(self.node, self.from)).flags & RecordFlags::DELETE_MARK == 0);
        let lower = if let Some(bound) = bound {
            bound.to_vec()
        } else if self.from > 0 {
            successor(key(self.from - 1))
        } else {
            open_below = self.starts_here && !self.low.is_empty();
            self.low.to_vec()
        };
        let (upper, open_above) = match self.high {
            _ if self.to < self.node.len() => (Some(key(self.to)), false),
            None => (None, false),
            Some(high) => (Some(high.to_vec()), self.ends_here),
        };
        Surroundings { lower, upper, open_below, open_above }
    }
    /// The page passed its checksum, so a bad offset here is a broken invariant: stop.
    fn checked<T>(&self, what: Checked<T>) -> T {
        what.unwrap_or_else(|e| panic!("page {} is corrupt: {}", self.node.page_id(), e.0))
    }
}

impl BTree {
    /// True if the leaf's bytes are those of the stamp, which then is as if taken now. Reads the page only if it has been latched exclusively meanwhile.
    pub fn is_unchanged(&self, stamp: &LeafStamp) -> Result<bool> {
        if self.pool().has_version(stamp.page, stamp.version.load(Ordering::Relaxed))? {
            return Ok(true);
        }
        let page = self.pool().fix_shared_as(stamp.page, Access::Scan)?;
        let unchanged = header::lsn(&page) == stamp.lsn;
        if unchanged {
            stamp.version.store(page.version(), Ordering::Relaxed);
        }
        Ok(unchanged)
    }

    /// Shows `f` the next leaf that has records of the scan, after `show_every_leaf` also the empty ones before it; false at its end.
    /// `f` must be short and may not wait.
    pub fn scan_leaf(&self, scan: &mut LeafScan, mut f: impl FnMut(&LeafView<'_>)) -> Result<bool> {
        while !scan.done {
            let found = match scan.direction {
                Direction::Forward => self.forward(scan, &mut f)?,
                Direction::Backward => self.backward(scan, &mut f)?,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tells the disk which leaves a forward scan comes to next, as far as the page above the one where it stands knows them. Nothing is latched before or after.
    fn announce(&self, scan: &mut LeafScan) -> Result<()> {
        let mut pages = Vec::new();
        let known = scan.announced.saturating_sub(scan.leaves);
        if let Some(page) = self.page_shared(Target::Key(&scan.lower), 1, PageId::NONE, Access::Normal, &mut Path::default())? {
            let node = Node(&page);
            let fail = |e| corrupt(page.id(), e);
            let next = child_slot(node.0, &scan.lower).map_err(fail)? + 1;
            let end = node.len().min(next + ANNOUNCED);
            scan.announced = scan.leaves + end.saturating_sub(next);
            // The leaves behind are below another page.
            scan.announces_at = if end == node.len() { scan.announced + 1 } else { scan.announced - ANNOUNCED / 2 + 1 };
            let mut key = Vec::new();
            for slot in next + known..end {
                if let Some(upper) = &scan.upper {
                    key.clear();
                    node.key(slot, &mut key).map_err(fail)?;
                    if key >= *upper {
                        // There are no more.
                        scan.announces_at = usize::MAX;
                        break;
                    }
                }
                pages.push(PageId(node.child(slot).map_err(fail)?));
            }
        } else {
            scan.announces_at = usize::MAX;
        }
        self.pool().read_ahead(&pages);
        Ok(())
    }

    fn forward(&self, scan: &mut LeafScan, f: &mut impl FnMut(&LeafView<'_>)) -> Result<bool> {
        scan.leaves += 1;
        if scan.leaves >= scan.announces_at {
            self.announce(scan)?;
        }
        let leaf = self.leaf_shared(Target::Key(&scan.lower), scan.hint, Access::Scan, &mut Path::default())?;
        let fail = |e| corrupt(leaf.id(), e);
        let node = Node(&leaf);
        let low = node.low().map_err(fail)?;
        // Only who locks gaps asks whether the bound itself has a record; then it is looked for also in a leaf that begins there.
        let (from, exact) = if low == scan.lower && !scan.every_leaf { (0, false) } else { node.search(&scan.lower).map_err(fail)? };
        let high = node.high().map_err(fail)?;
        let ends_here = match (&scan.upper, high) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(upper), Some(high)) => upper.as_slice() <= high,
        };
        let to = match &scan.upper {
            Some(upper) if high.is_none_or(|high| upper.as_slice() < high) => node.search(upper).map_err(fail)?.0,
            _ => node.len(),
        };
        let found = from < to;
        if found || scan.every_leaf {
            let (prefix, starts_here) = (node.prefix().map_err(fail)?, scan.fresh);
            let bound = (exact && starts_here).then_some(scan.lower.as_slice());
            let (lower, upper) = (scan.lower.as_slice(), scan.upper.as_deref());
            f(&LeafView { node, version: leaf.version(), prefix, low, high, from, to, bound, lower, upper, starts_here, ends_here });
        }
        scan.fresh = false;
        scan.done = ends_here;
        if let (false, Some(high)) = (ends_here, high) {
            scan.lower.clear();
            scan.lower.extend_from_slice(high);
            scan.hint = PageId(node.right_link());
        }
        Ok(found)
    }

    fn backward(&self, scan: &mut LeafScan, f: &mut impl FnMut(&LeafView<'_>)) -> Result<bool> {
        let target = Target::Below(scan.upper.as_deref());
        let leaf = self.leaf_shared(target, PageId::NONE, Access::Scan, &mut Path::default())?;
        let fail = |e| corrupt(leaf.id(), e);
        let node = Node(&leaf);
        let (low, high) = (node.low().map_err(fail)?, node.high().map_err(fail)?);
        let to = match &scan.upper {
            Some(upper) if high.is_none_or(|high| upper.as_slice() < high) => node.search(upper).map_err(fail)?.0,
            _ => node.len(),
        };
        let within = scan.lower.as_slice() >= low;
        let (from, exact) = if !within || (scan.lower.as_slice() == low && !scan.every_leaf) { (0, false) } else { node.search(&scan.lower).map_err(fail)? };
        let found = from < to;
        if found || scan.every_leaf {
            let (prefix, ends_here) = (node.prefix().map_err(fail)?, scan.fresh);
            let bound = exact.then_some(scan.lower.as_slice());
            let (lower, upper) = (scan.lower.as_slice(), scan.upper.as_deref());
            f(&LeafView { node, version: leaf.version(), prefix, low, high, from, to, bound, lower, upper, starts_here: within, ends_here });
        }
        scan.fresh = false;
        scan.done = within;
        if !scan.done {
            scan.upper = Some(low.to_vec());
        }
        Ok(found)
    }
}
