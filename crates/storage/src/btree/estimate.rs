//! What the optimiser and partitioned scans ask: about how many rows, and where to cut a range.

use super::search::{Path, Target};
use super::{BTree, corrupt};
use crate::buffer::Access;
use crate::error::Result;
use crate::ids::PageId;
use crate::page::slotted::Node;
use std::ops::Bound;

/// Sizes of a tree, estimated from a few pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    pub rows: u64,
    pub leaf_pages: u64,
    /// Levels, 1 for a root that is a leaf.
    pub height: u32,
}

/// Pages looked at per level.
const SAMPLES: usize = 12;

/// With fewer pages than this above the leaves of a range, it is cut between leaves.
const FEW_MORSELS: usize = 16;

/// Leaves between two cuts of a range that has few pages above its leaves.
pub const MORSEL_LEAVES: usize = 64;

impl BTree {
    /// About how many rows and leaves: fan-outs of a dozen pages a level, multiplied. Delete-marked records count.
    pub fn estimate(&self) -> Result<Estimate> {
        let mut sample = vec![self.root()];
        let mut pages = 1.0f64;
        let mut height = 0;
        loop {
            let (mut slots, mut seen, mut leaf) = (0usize, 0usize, false);
            let mut children = Vec::new();
            for id in &sample {
                let page = self.pool().fix_shared(*id)?;
                let node = Node(&page);
                if !self.owns(&*page) {
                    continue;
                }
                leaf = node.is_leaf();
                slots += node.len();
                seen += 1;
                if !leaf {
                    let step = node.len().div_ceil(SAMPLES.div_ceil(sample.len())).max(1);
                    for slot in (0..node.len()).step_by(step) {
                        children.push(PageId(node.child(slot).map_err(|e| corrupt(*id, e))?));
                    }
                }
            }
            height += 1;
            let average = slots as f64 / seen.max(1) as f64;
            if leaf || children.is_empty() {
                return Ok(Estimate { rows: (pages * average).round() as u64, leaf_pages: pages.round() as u64, height });
            }
            pages *= average;
            sample = children;
        }
    }

    /// About how many rows lie between two bounds: exact within one leaf, else by the separators between them.
    pub fn estimate_range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        let whole = self.estimate()?;
        let (from, to) = (self.fraction(lower)?, match upper {
            Bound::Unbounded => 1.0,
            bound => self.fraction(bound)?,
        });
        Ok(((to - from).max(0.0) * whole.rows as f64).round() as u64)
    }

    /// The share of the tree's rows before a bound, by the slots on the way down.
    fn fraction(&self, bound: Bound<&[u8]>) -> Result<f64> {
        let (key, after) = match bound {
            Bound::Unbounded => return Ok(0.0),
            Bound::Included(key) => (key, false),
            Bound::Excluded(key) => (key, true),
        };
        let mut position = 0.0;
        let mut width = 1.0;
        let mut id = self.root();
        let mut level = u8::MAX;
        loop {
            let page = self.pool().fix_shared(id)?;
            let node = Node(&page);
            if !self.owns(&*page) || level != u8::MAX && node.level() + 1 != level {
                return Ok(position + width / 2.0);
            }
            level = node.level();
            let fail = |e| corrupt(id, e);
            if node.range_of(key).map_err(fail)? != crate::page::slotted::Range::Inside {
                // A split has gone ahead: the page next to it is close enough.
                return Ok(position + width);
            }
            let count = node.len().max(1) as f64;
            if node.is_leaf() {
                let (slot, found) = node.search(key).map_err(fail)?;
                return Ok(position + width * (slot as f64 + if found && after { 1.0 } else { 0.0 }) / count);
            }
            let slot = crate::page::slotted::read::child_slot(node.0, key).map_err(fail)?;
            position += width * slot as f64 / count;
            width /= count;
            let child = PageId(node.child(slot).map_err(fail)?);
            drop(page);
            id = child;
        }
    }

    /// Up to `count` ascending keys strictly between the bounds that cut the range into about equal parts, from the separators of
    /// the highest level that has enough of them.
    pub fn separators(&self, lower: &[u8], upper: Option<&[u8]>, count: usize) -> Result<Vec<Vec<u8>>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let root = self.pool().fix_shared(self.root())?;
        let mut level = Node(&root).level();
        drop(root);
        let mut keys = Vec::new();
        while level > 0 && keys.len() < count {
            keys.clear();
            self.level_separators(lower, upper, level, 1, &mut keys)?;
            level -= 1;
        }
        if keys.len() > count {
            let total = keys.len();
            let mut at = 0;
            keys.retain(|_| {
                at += 1;
                at * count / total != (at - 1) * count / total
            });
        }
        Ok(keys)
    }

    /// Ascending keys strictly between the bounds that cut the range into pieces for parallel scans: at the pages above the leaves, or within
    /// them where those are few. The same whoever asks, and a split moves the cuts of one such page at most: what is remembered of a
    /// piece fits the next scan. `leaves`: of a piece within such a page, at most.
    pub fn morsel_cuts(&self, lower: &[u8], upper: Option<&[u8]>, leaves: usize) -> Result<Vec<Vec<u8>>> {
        let root = self.pool().fix_shared(self.root())?;
        let height = Node(&root).level();
        drop(root);
        let mut keys = Vec::new();
        if height >= 2 {
            self.level_separators(lower, upper, 2, 1, &mut keys)?;
        }
        if height >= 1 && keys.len() < FEW_MORSELS {
            keys.clear();
            self.level_separators(lower, upper, 1, leaves, &mut keys)?;
        }
        Ok(keys)
    }

    /// Adds the last of every `each` keys of a level.
    fn level_separators(&self, lower: &[u8], upper: Option<&[u8]>, level: u8, each: usize, keys: &mut Vec<Vec<u8>>) -> Result<()> {
        let (mut key, mut last) = (Vec::new(), Vec::new());
        let mut seen = 0;
        let mut at = lower.to_vec();
        let mut path = Path::default();
        loop {
            let Some(page) = self.page_shared(Target::Key(&at), level, PageId::NONE, Access::Normal, &mut path)? else { return Ok(()) };
            let node = Node(&page);
            let fail = |e| corrupt(page.id(), e);
            for slot in 0..node.len() {
                key.clear();
                node.key(slot, &mut key).map_err(fail)?;
                if upper.is_some_and(|upper| key.as_slice() >= upper) {
                    return Ok(());
                }
                if key.as_slice() > lower && (seen == 0 || last < key) {
                    seen += 1;
                    if seen % each == 0 {
                        keys.push(key.clone());
                    }
                    std::mem::swap(&mut last, &mut key);
                }
            }
            match node.high().map_err(fail)? {
                Some(high) if upper.is_none_or(|upper| high < upper) => at = high.to_vec(),
                _ => return Ok(()),
            }
        }
    }
}
