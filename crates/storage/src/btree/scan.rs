//! Scans: a leaf at a time under its shared latch, between leaves nothing is held. A position is a key, so it survives every
//! split and merge: forward goes on at the old leaf's high key by its right link, backward re-descends with its low fence.

use super::search::{Path, Target};
use super::{BTree, RecordFlags, RecordRef, corrupt, record_ref};
use crate::buffer::Access;
use crate::error::Result;
use crate::ids::PageId;
use crate::page::slotted::{Checked, Node};
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
}

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
        LeafScan { direction, lower, upper, hint: PageId::NONE, every_leaf: false, fresh: true, done }
    }
    /// Also shows leaves that have no record between the bounds, for who locks what is between records.
    pub fn every_leaf(mut self) -> LeafScan {
        self.every_leaf = true;
        self
    }
    pub fn direction(&self) -> Direction {
        self.direction
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
    prefix: &'a [u8],
    low: &'a [u8],
    high: Option<&'a [u8]>,
    from: usize,
    to: usize,
    /// The scan's lower bound, if the first record is right there.
    bound: Option<&'a [u8]>,
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

impl<'a> LeafView<'a> {
    pub fn len(&self) -> usize {
        self.to - self.from
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
    /// Shows `f` the next leaf that has records of the scan; false at its end. `f` must be short and may not wait.
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

    fn forward(&self, scan: &mut LeafScan, f: &mut impl FnMut(&LeafView<'_>)) -> Result<bool> {
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
            f(&LeafView { node, prefix, low, high, from, to, bound, starts_here, ends_here });
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
            f(&LeafView { node, prefix, low, high, from, to, bound, starts_here: within, ends_here });
        }
        scan.fresh = false;
        scan.done = within;
        if !scan.done {
            scan.upper = Some(low.to_vec());
        }
        Ok(found)
    }
}
