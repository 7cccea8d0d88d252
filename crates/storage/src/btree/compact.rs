//! OPTIMIZE TABLE: makes the tree dense while it is used. From left to right on every level, leaves first: a page takes over its right
//! sibling, or as much of it as makes it full; then pages at the end of the tree's space move to gaps before them, so that whole extents become free.
//!
//! Every step is one log record over two or three pages and their parent, of the operations that merges and shares are made of. So it may
//! stop anywhere, and readers and writers of the tree go on between the steps.

use super::search::{Path, Target};
use super::split_point::{FULL, SLACK};
use super::{BTree, corrupt, count};
use crate::buffer::{Access, ExclusiveGuard, Writer};
use crate::error::Result;
use crate::ids::PageId;
use crate::progress::{Progress, Stage};
use crate::page::slotted::layout::{DELETED, INCOMPLETE_SPLIT, PAGE_SIZE};
use crate::page::slotted::op::{self, Records, Reshape};
use crate::page::slotted::read::child_slot;
use crate::page::slotted::{Frame, Node, Range};

/// A leaf that lacks less than this of what it is to be filled to is left alone.
const NEARLY: usize = SLACK / 4;
/// Inner pages are merged if they are at most this full then: nothing is moved between them, so they are not asked to fit 15/16.
const INNER_FULL: usize = PAGE_SIZE / 32 * 31;

/// What a page was when it was looked at without its parent.
struct Seen {
    id: PageId,
    used: usize,
    low: Vec<u8>,
    /// Where the next page begins, if there is one.
    high: Option<Vec<u8>>,
    right: PageId,
}

/// What became of a page.
enum Step {
    /// It grew and may take more.
    Grown,
    /// It is as full as it gets; the next one begins at this key, if there is one.
    Next(Option<Vec<u8>>),
    /// The tree has no such level below its root.
    NoLevel,
}

impl BTree {
    /// Makes the tree dense. Leaves are filled to `fill_factor` percent, 100 leaves 1/16. `stop` is asked before every page; once it says yes,
    /// the answer is false, and the tree as dense as it has become.
    pub fn compact(&self, fill_factor: u8, progress: &Progress, stop: &dyn Fn() -> bool) -> Result<bool> {
        let full = (PAGE_SIZE * usize::from(fill_factor) / 100).min(FULL);
        progress.enter(Stage::FillingPages, self.estimate()?.leaf_pages);
        let filled = self.each_level(stop, &mut |key, level| {
            let step = self.fill_page(key, level, full)?;
            progress.add(u64::from(level == 0));
            Ok(step)
        })?;
        while filled && self.collapse()? {}
        if !filled {
            return Ok(false);
        }
        let Some(surplus) = self.space().surplus(self.index()) else { return Ok(true) };
        progress.enter(Stage::MovingPages, surplus.pages);
        self.each_level(stop, &mut |key, level| self.move_down(key, level, surplus.extent, progress))
    }

    /// Takes a step at every page but the root, level by level from the leaves, each from left to right. False: `stop` said yes.
    fn each_level(&self, stop: &dyn Fn() -> bool, step: &mut dyn FnMut(&[u8], u8) -> Result<Step>) -> Result<bool> {
        for level in 0.. {
            let mut key = Vec::new();
            loop {
                if stop() {
                    return Ok(false);
                }
                // Nothing needs this work: unlike other structure changes it does not touch the log's last reserve.
                self.pool().reserve_log()?;
                match step(&key, level)? {
                    Step::Grown => {}
                    Step::Next(Some(next)) => key = next,
                    Step::Next(None) => break,
                    Step::NoLevel => return Ok(true),
                }
            }
        }
        Ok(true)
    }

    /// Looks at the page of a level for `key`, which also brings it into memory: its parent is not held over a read. `None` if it is the root, or the
    /// tree lower.
    fn look(&self, key: &[u8], level: u8, path: &mut Path) -> Result<Option<Seen>> {
        let page = self.page_shared(Target::Key(key), level, PageId::NONE, Access::Scan, path)?;
        let Some(page) = page.filter(|page| page.id() != self.root()) else { return Ok(None) };
        let fail = |e| corrupt(page.id(), e);
        let node = Node(&page);
        Ok(Some(Seen {
            id: page.id(),
            used: node.used(),
            low: node.low().map_err(fail)?.to_vec(),
            high: node.high().map_err(fail)?.map(<[u8]>::to_vec),
            right: PageId(node.right_link()),
        }))
    }

    /// Latches the parent of the page of a level for `key`, to change it; with that page's slot. `None` if there is none.
    fn latch_parent(&self, key: &[u8], level: u8, path: &mut Path) -> Result<Option<(ExclusiveGuard<'_>, usize)>> {
        let Some(parent) = self.page_smo(key, level + 1, path)? else { return Ok(None) };
        let slot = child_slot(Node(&parent).0, key).map_err(|e| corrupt(parent.id(), e))?;
        Ok(Some((parent, slot)))
    }

    /// Lets the page of `key` take over its right sibling, or fills it from there.
    fn fill_page(&self, key: &[u8], level: u8, full: usize) -> Result<Step> {
        let mut path = Path::default();
        let Some(Seen { used, high: next, right, .. }) = self.look(key, level, &mut path)? else { return Ok(Step::NoLevel) };
        if next.is_none() || level == 0 && used + NEARLY > full {
            return Ok(Step::Next(next));
        }
        drop(self.pool().fix_shared_as(right, Access::Scan)?);
        let mut scope = self.pool().scope(Writer::System)?;
        let Some((mut parent, slot)) = self.latch_parent(key, level, &mut path)? else { return Ok(Step::NoLevel) };
        let parent_id = parent.id();
        let fail = |e| corrupt(parent_id, e);
        let node = Node(&parent);
        if slot + 1 == node.len() {
            // The sibling has another parent: see README.md.
            return Ok(Step::Next(next));
        }
        let left_id = PageId(node.child(slot).map_err(fail)?);
        let right_id = PageId(node.child(slot + 1).map_err(fail)?);
        let mut left = self.fix_smo(left_id)?;
        let mut right = self.fix_smo(right_id)?;
        let (l, r) = (Node(&left), Node(&right));
        let whole = self.owns(&*left) && self.owns(&*right) && l.right_link() == right_id.0 && l.range_of(key).map_err(fail)? == Range::Inside;
        if !whole || l.has(INCOMPLETE_SPLIT) || r.has(INCOMPLETE_SPLIT) || self.is_splitting(right_id) {
            // Somebody splits here: it is not to be dense.
            return Ok(Step::Next(next));
        }
        let merged = super::merge::merged_size(l, r).map_err(fail)?;
        if merged <= if level == 0 { full } else { INNER_FULL } {
            self.absorb(&mut scope, &mut parent, &mut left, &mut right, slot)?;
            scope.commit()?;
            count(&self.stats().merges);
            return Ok(Step::Grown);
        }
        if level > 0 {
            return Ok(Step::Next(next));
        }
        let next = self.fill_from(scope, parent, left, right, slot + 1, full)?.or(next);
        Ok(Step::Next(next))
    }

    /// Moves the page of `key` into a gap of the tree's space before the extent `surplus`, if it lies in that or behind it.
    fn move_down(&self, key: &[u8], level: u8, surplus: u64, progress: &Progress) -> Result<Step> {
        let mut path = Path::default();
        let Some(Seen { id, low, high: next, .. }) = self.look(key, level, &mut path)? else { return Ok(Step::NoLevel) };
        if self.space().extent_of(id) < surplus {
            return Ok(Step::Next(next));
        }
        progress.add(1);
        let neighbour = match low.is_empty() {
            true => None,
            false => self.descend(Target::Below(Some(&low)), level, &mut Path::default())?,
        };
        if let Some(left) = neighbour {
            drop(self.pool().fix_shared_as(left, Access::Scan)?);
        }
        let mut scope = self.pool().scope(Writer::System)?;
        let Some((mut parent, slot)) = self.latch_parent(key, level, &mut path)? else { return Ok(Step::NoLevel) };
        let parent_id = parent.id();
        let fail = |e| corrupt(parent_id, e);
        let node = Node(&parent);
        if node.child(slot).map_err(fail)? != id.0 {
            return Ok(Step::Next(next));
        }
        let mut left = match slot {
            _ if low.is_empty() => None,
            // Under another parent it may have become any page since it was looked up, so it is not waited for.
            0 => match neighbour.and_then(|left| self.pool().try_exclusive(left)) {
                Some(left) => Some(left),
                None => return Ok(Step::Next(next)),
            },
            _ => Some(self.fix_smo(PageId(node.child(slot - 1).map_err(fail)?))?),
        };
        if let Some(left) = &left {
            let l = Node(left);
            let linked = self.owns(&**left) && l.level() == level && l.right_link() == id.0 && l.high().map_err(fail)? == Some(low.as_slice());
            if !linked || l.has(INCOMPLETE_SPLIT) {
                return Ok(Step::Next(next));
            }
        }
        let mut page = self.fix_smo(id)?;
        let p = Node(&page);
        if !self.owns(&*page) || p.level() != level || p.low().map_err(fail)? != low || p.has(INCOMPLETE_SPLIT) || self.is_splitting(id) {
            return Ok(Step::Next(next));
        }
        let Some(new_id) = self.space().allocate_before(&mut scope, self.index(), surplus) else { return Ok(Step::Next(next)) };
        let mut new = self.pool().fix_new(new_id)?;
        let mut payload = Vec::new();
        let frame = Frame {
            page_id: new_id.0,
            index_id: self.index().0,
            level,
            flags: p.flags(),
            right_link: p.right_link(),
            low: &low,
            high: p.high().map_err(fail)?,
            max_txn: p.max_txn(),
            trend: p.trend(),
        };
        op::format_payload(&mut payload, &frame, Records::Of(p, 0, p.len()), Records::None).map_err(fail)?;
        let gone = p.flags() | DELETED;
        self.space().free(&mut scope, id)?;
        scope.apply(&mut new, op::FORMAT, &payload)?;
        if let Some(left) = &mut left {
            let l = Node(left);
            let linked = Reshape {
                keep: 0..l.len(),
                flags: l.flags(),
                right_link: new_id.0,
                low: l.low().map_err(fail)?,
                high: l.high().map_err(fail)?,
                before: Records::None,
                after: Records::None,
                trend: l.trend(),
            };
            op::reshape_payload(&mut payload, &linked).map_err(fail)?;
            scope.apply(left, op::RESHAPE, &payload)?;
        }
        let node = Node(&parent);
        let led = Reshape {
            keep: 1..node.len(),
            flags: node.flags(),
            right_link: node.right_link(),
            low: node.low().map_err(fail)?,
            high: node.high().map_err(fail)?,
            before: Records::Children(&[(&low, new_id.0)]),
            after: Records::None,
            trend: node.trend(),
        };
        if slot == 0 {
            // The first child's key is the page's low fence, which no INSERT_CHILD writes.
            op::reshape_payload(&mut payload, &led).map_err(fail)?;
            scope.apply(&mut parent, op::RESHAPE, &payload)?;
        } else {
            op::remove_payload(&mut payload, slot);
            scope.apply(&mut parent, op::REMOVE, &payload)?;
            self.put_downlink(&mut scope, &mut parent, slot, &low, new_id, &mut payload)?;
        }
        op::flags_payload(&mut payload, gone);
        scope.apply(&mut page, op::SET_FLAGS, &payload)?;
        scope.commit()?;
        Ok(Step::Next(next))
    }
}
