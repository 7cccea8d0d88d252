//! CHECK TABLE for a tree: verifies every invariant of README.md, while others may be changing it. And what its levels hold.

use super::search::{Path, Target};
use super::{BTree, RecordFlags, corrupt, record_ref};
use crate::buffer::{Access, SharedGuard};
use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::overflow::{OverflowRef, pages_of};
use crate::page::slotted::layout::{HEADER_SIZE, INCOMPLETE_SPLIT, PAGE_SIZE};
use crate::page::slotted::{Checked, Corrupt, Node, round8};
use crate::progress::{Progress, Stage};
use crate::space::PageOwnership;
use std::ops::ControlFlow;

/// What a check counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeReport {
    /// Levels, 1 for a root that is a leaf.
    pub height: u32,
    pub leaf_pages: u64,
    pub inner_pages: u64,
    pub records: u64,
    /// Bytes in use on the leaves, headers and fences included.
    pub leaf_bytes: u64,
    /// Splits whose downlink is not posted.
    pub incomplete_splits: u64,
    /// Every page of the tree.
    pub pages: Vec<PageId>,
    /// How its pages compare with those allocated to it. `None`: not judged, somebody wrote meanwhile.
    pub ownership: Option<PageOwnership>,
}

impl TreeReport {
    /// How full the leaves are, 0 to 1.
    pub fn leaf_fill(&self) -> f64 {
        self.leaf_bytes as f64 / (self.leaf_pages.max(1) * PAGE_SIZE as u64) as f64
    }
}

/// What a level of a tree holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelReport {
    /// 0 for the leaves.
    pub level: u8,
    pub pages: u64,
    /// Records of leaves, delete-marked ones included; children of inner pages.
    pub records: u64,
    /// Bytes in use, headers and fences included.
    pub used_bytes: u64,
    /// Bytes of the records with their slots.
    pub data_bytes: u64,
    /// Splits whose downlink is not posted.
    pub incomplete_splits: u64,
    /// Pages outside the tree that hold the long values of its leaves, and the bytes of these values; 0 on inner levels.
    pub overflow_pages: u64,
    pub overflow_bytes: u64,
}

/// Shows `f` the long values that a leaf's records refer to.
fn each_long_value(node: Node<'_>, f: &mut dyn FnMut(OverflowRef)) -> Checked<()> {
    for slot in 0..node.len() {
        let record = record_ref(node, slot)?;
        if record.flags & RecordFlags::OVERFLOW != 0 {
            f(OverflowRef::decode(record.value).ok_or(Corrupt("overflow reference"))?);
        }
    }
    Ok(())
}

impl BTree {
    /// Counts what is on every level, leaves first. Writers may go on; exact only without them. `stop` is asked before every page;
    /// `None` once it says yes.
    pub fn levels(&self, stop: &dyn Fn() -> bool) -> Result<Option<Vec<LevelReport>>> {
        let height = Node(&self.pool().fix_shared(self.root())?).level();
        let mut levels = Vec::new();
        for level in 0..=height {
            let mut report = LevelReport { level, ..LevelReport::default() };
            let mut stopped = false;
            self.walk_level(level, &mut |page| {
                stopped = stop();
                if stopped {
                    return Ok(ControlFlow::Break(()));
                }
                let node = Node(page);
                report.pages += 1;
                report.records += node.len() as u64;
                report.used_bytes += node.used() as u64;
                let fail = |e| corrupt(page.id(), e);
                let overhead = HEADER_SIZE + round8(node.low().map_err(fail)?.len()) + node.high().map_err(fail)?.map_or(0, |high| round8(high.len()));
                report.data_bytes += node.used().saturating_sub(overhead) as u64;
                report.incomplete_splits += u64::from(node.has(INCOMPLETE_SPLIT));
                if node.is_leaf() {
                    each_long_value(node, &mut |value| {
                        report.overflow_pages += pages_of(value.length);
                        report.overflow_bytes += value.length;
                    })
                    .map_err(fail)?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if stopped {
                return Ok(None);
            }
            // None if the tree lost this level since its height was read.
            if report.pages > 0 {
                levels.push(report);
            }
        }
        Ok(Some(levels))
    }

    /// Verifies the whole tree. Writers may go on; counts are exact only without them.
    pub fn check(&self) -> Result<TreeReport> {
        Ok(self.check_until(&Progress::default(), &|| false, &mut Vec::new())?.unwrap_or_default())
    }

    /// As `check`, counting pages; also where the long values are. `stop` is asked before every page; `None` once it says yes.
    pub fn check_until(&self, progress: &Progress, stop: &dyn Fn() -> bool, long_values: &mut Vec<OverflowRef>) -> Result<Option<TreeReport>> {
        progress.enter(Stage::CheckingPages, self.space().size(self.index()).map_or(0, |(_, used)| used));
        let mut report = TreeReport::default();
        let root = self.pool().fix_shared(self.root())?;
        let mut level = Node(&root).level();
        drop(root);
        report.height = level as u32 + 1;
        loop {
            let mut stopped = false;
            self.walk_level(level, &mut |page| {
                stopped = stop();
                if stopped {
                    return Ok(ControlFlow::Break(()));
                }
                progress.add(1);
                self.check_page(page, level, &mut report, long_values)?;
                Ok(ControlFlow::Continue(()))
            })?;
            if stopped {
                return Ok(None);
            }
            if level == 0 {
                return Ok(Some(report));
            }
            level -= 1;
        }
    }

    fn check_page(&self, page: &SharedGuard<'_>, level: u8, report: &mut TreeReport, long_values: &mut Vec<OverflowRef>) -> Result<()> {
        let node = Node(page);
        let fail = |e| corrupt(page.id(), e);
        node.verify().map_err(fail)?;
        report.pages.push(page.id());
        report.incomplete_splits += u64::from(node.has(INCOMPLETE_SPLIT));
        if level > 0 {
            report.inner_pages += 1;
            return self.check_children(page);
        }
        report.leaf_pages += 1;
        report.records += node.len() as u64;
        report.leaf_bytes += node.used() as u64;
        each_long_value(node, &mut |value| long_values.push(value)).map_err(fail)
    }

    /// Shows `f` the pages of a level, following the right links from its leftmost page, coupled, so that no page is missed or seen
    /// twice, and verifies I4. Ends early when `f` breaks.
    fn walk_level(&self, level: u8, f: &mut dyn FnMut(&SharedGuard<'_>) -> Result<ControlFlow<()>>) -> Result<()> {
        let Some(mut id) = self.descend(Target::Key(&[]), level, &mut Path::default())? else { return Ok(()) };
        let mut page = self.pool().fix_shared_as(id, Access::Scan)?;
        let mut low: Vec<u8> = Vec::new();
        loop {
            let node = Node(&page);
            if !self.owns(&*page) || node.level() != level {
                if low.is_empty() && id != self.root() {
                    // The leftmost page changed since the descent: a root that grew or shrank. Begin again.
                    drop(page);
                    let Some(again) = self.descend(Target::Key(&[]), level, &mut Path::default())? else { return Ok(()) };
                    (id, page) = (again, self.pool().fix_shared_as(again, Access::Scan)?);
                    if !self.owns(&*page) || Node(&page).level() != level {
                        return Ok(());
                    }
                    continue;
                }
                return if id == self.root() { Ok(()) } else { Err(Error::corrupt(id, "I4: a right link leads out of the level")) };
            }
            let fail = |e| corrupt(id, e);
            if node.low().map_err(fail)? != low {
                return Err(Error::corrupt(id, "I4: low fence is not the left neighbour's high key"));
            }
            if node.page_id() != id.0 {
                return Err(Error::corrupt(id, "page id"));
            }
            if f(&page)?.is_break() {
                return Ok(());
            }
            let Some(high) = node.high().map_err(fail)? else {
                return if node.right_link() == 0 && !node.has(INCOMPLETE_SPLIT) {
                    Ok(())
                } else {
                    Err(Error::corrupt(id, "I4: a last page has a right link"))
                };
            };
            low.clear();
            low.extend_from_slice(high);
            id = PageId(node.right_link());
            if id.is_none() {
                return Err(Error::corrupt(page.id(), "I4: a page with a high key has no right link"));
            }
            page = self.pool().fix_shared_as(id, Access::Scan)?;
        }
    }

    /// Every downlink leads to the page whose low fence is its separator, and between two of them lie only pages whose own
    /// downlink is still to be posted. The parent's latch keeps its children from being merged or shared meanwhile.
    fn check_children(&self, parent: &SharedGuard<'_>) -> Result<()> {
        let node = Node(parent);
        let id = parent.id();
        let fail = |e| corrupt(id, e);
        let mut separator = Vec::new();
        for slot in 0..node.len() {
            separator.clear();
            node.key(slot, &mut separator).map_err(fail)?;
            let mut child_id = PageId(node.child(slot).map_err(fail)?);
            let end = if slot + 1 < node.len() {
                let mut end = Vec::new();
                node.key(slot + 1, &mut end).map_err(fail)?;
                Some(end)
            } else {
                node.high().map_err(fail)?.map(<[u8]>::to_vec)
            };
            let mut low = separator.clone();
            loop {
                let child = self.pool().fix_shared_as(child_id, Access::Scan)?;
                let c = Node(&child);
                let fail = |e| corrupt(child_id, e);
                if !self.owns(&*child) || c.level() + 1 != node.level() {
                    return Err(Error::corrupt(id, "I5: a downlink leads out of the level below"));
                }
                if c.low().map_err(fail)? != low {
                    return Err(Error::corrupt(id, "I5: a separator is not its child's low fence"));
                }
                let high = c.high().map_err(fail)?.map(<[u8]>::to_vec);
                if high == end {
                    if c.has(INCOMPLETE_SPLIT) && slot + 1 < node.len() {
                        return Err(Error::corrupt(child_id, "I6: incomplete split, but its downlink is posted"));
                    }
                    break;
                }
                let Some(high) = high else { return Err(Error::corrupt(child_id, "I5: child reaches beyond its parent")) };
                if end.as_ref().is_some_and(|end| high > *end) {
                    return Err(Error::corrupt(child_id, "I5: child reaches beyond its separator"));
                }
                if !c.has(INCOMPLETE_SPLIT) {
                    return Err(Error::corrupt(child_id, "I6: a page without downlink and its left neighbour not marked"));
                }
                low = high;
                child_id = PageId(c.right_link());
            }
        }
        Ok(())
    }
}
