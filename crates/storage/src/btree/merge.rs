//! Taking nearly empty pages out of the tree, and a level when the root has one child left. Top-down and in one log record:
//! parent, left page, right page. Only a page that removals have nearly emptied is merged: a hot page would split again.

use super::search::Path;
use super::split_point::page_size;
use super::{BTree, corrupt, count};
use crate::buffer::{ExclusiveGuard, Scope, Writer};
use crate::error::Result;
use crate::ids::PageId;
use crate::page::slotted::layout::{DELETED, INCOMPLETE_SPLIT, PAGE_SIZE, SLOT_SIZE};
use crate::page::slotted::op::{self, Records, Reshape};
use crate::page::slotted::read::child_slot;
use crate::page::slotted::{Checked, Frame, Node, Range};

/// A page with less in use than this is worth a merge.
const UNDERFULL: usize = PAGE_SIZE / 8;
/// The merged page is at most this full, so that it does not split at once.
const MERGED_MAX: usize = PAGE_SIZE / 4 * 3;

/// What one round of merging asks for next.
enum Next {
    Done,
    /// The parent is worth a merge itself.
    Up,
    /// The root has one child left.
    Collapse,
}

impl BTree {
    /// Whether a removal left the leaf worth a merge: when it falls below the mark and, should that one fail, when it is empty.
    pub(super) fn is_cold(&self, leaf: &ExclusiveGuard<'_>, used_before: usize) -> bool {
        let node = Node(leaf);
        leaf.id() != self.root() && (node.len() == 0 || node.used() < UNDERFULL && used_before >= UNDERFULL)
    }

    /// After a removal left the leaf of `key` nearly empty. The removal is logged, so an error here is left for the next one to meet.
    pub(super) fn merge_quietly(&self, key: &[u8]) {
        let _ = self.merge(key);
    }

    /// Merges the leaf of `key` with a sibling if both fit one page, and inner pages that this empties.
    pub fn merge(&self, key: &[u8]) -> Result<()> {
        let mut path = Path::default();
        let mut level = 1;
        loop {
            match self.merge_below(key, level, &mut path)? {
                Next::Done => return Ok(()),
                Next::Up => level += 1,
                Next::Collapse => {
                    while self.collapse()? {}
                    return Ok(());
                }
            }
        }
    }

    /// One merge of children of the page of `level` for `key`.
    fn merge_below(&self, key: &[u8], level: u8, path: &mut Path) -> Result<Next> {
        let mut scope = self.pool().scope(Writer::System)?;
        let Some(mut parent) = self.page_smo(key, level, path)? else { return Ok(Next::Done) };
        let parent_id = parent.id();
        let fail = |e| corrupt(parent_id, e);
        let node = Node(&parent);
        if node.len() == 1 {
            return Ok(if parent_id == self.root() { Next::Collapse } else { Next::Up });
        }
        let slot = child_slot(node.0, key).map_err(fail)?;
        let left_slot = slot.saturating_sub(1);
        let left_id = PageId(node.child(left_slot).map_err(fail)?);
        let right_id = PageId(node.child(left_slot + 1).map_err(fail)?);
        let mut left = self.fix_smo(left_id)?;
        let mut right = self.fix_smo(right_id)?;
        let (l, r) = (Node(&left), Node(&right));
        let whole = self.owns(&*left) && self.owns(&*right) && l.right_link() == right_id.0;
        if !whole || l.has(INCOMPLETE_SPLIT) || r.has(INCOMPLETE_SPLIT) || self.is_splitting(right_id) {
            return Ok(Next::Done);
        }
        let target = if slot == left_slot { l } else { r };
        if target.range_of(key).map_err(fail)? != Range::Inside || target.used() >= UNDERFULL && target.len() > 1 {
            return Ok(Next::Done);
        }
        let most = if target.len() == 0 { PAGE_SIZE } else { MERGED_MAX };
        if merged_size(l, r).map_err(fail)? > most {
            return Ok(Next::Done);
        }
        self.absorb(&mut scope, &mut parent, &mut left, &mut right, left_slot)?;
        scope.commit()?;
        count(&self.stats().merges);
        let node = Node(&parent);
        Ok(match parent_id == self.root() {
            true if node.len() == 1 => Next::Collapse,
            false if node.len() == 1 || node.used() < UNDERFULL => Next::Up,
            _ => Next::Done,
        })
    }

    /// The left page takes over the records of the right one, which is freed. Both fit one page, and `slot` is the left one's.
    pub(super) fn absorb(
        &self,
        scope: &mut Scope<'_>,
        parent: &mut ExclusiveGuard<'_>,
        left: &mut ExclusiveGuard<'_>,
        right: &mut ExclusiveGuard<'_>,
        slot: usize,
    ) -> Result<()> {
        let parent_id = parent.id();
        let fail = |e| corrupt(parent_id, e);
        let (l, r) = (Node(left), Node(right));
        let (mut taken, mut small) = (Vec::new(), Vec::new());
        op::reshape_payload(
            &mut taken,
            &Reshape {
                keep: 0..l.len(),
                flags: l.flags(),
                right_link: r.right_link(),
                low: l.low().map_err(fail)?,
                high: r.high().map_err(fail)?,
                before: Records::None,
                after: Records::Of(r, 0, r.len()),
                trend: l.trend(),
            },
        )
        .map_err(fail)?;
        let gone = r.flags() | DELETED;
        self.space().free(scope, right.id())?;
        scope.apply(left, op::RESHAPE, &taken)?;
        op::flags_payload(&mut small, gone);
        scope.apply(right, op::SET_FLAGS, &small)?;
        op::remove_payload(&mut small, slot + 1);
        scope.apply(parent, op::REMOVE, &small)
    }

    /// The root takes over the content and level of its only child; false if it has more, or is a leaf.
    pub(super) fn collapse(&self) -> Result<bool> {
        let mut scope = self.pool().scope(Writer::System)?;
        let mut root = self.fix_smo(self.root())?;
        if Node(&root).is_leaf() || Node(&root).len() != 1 {
            return Ok(false);
        }
        let fail = |e| corrupt(self.root(), e);
        let child_id = PageId(Node(&root).child(0).map_err(fail)?);
        let mut child = self.fix_smo(child_id)?;
        let node = Node(&child);
        if !self.owns(&*child) || node.right_link() != 0 || node.has(INCOMPLETE_SPLIT) || self.is_splitting(child_id) {
            return Ok(false);
        }
        let mut payload = Vec::new();
        let frame = Frame { trend: node.trend(), ..Frame::empty(self.root().0, self.index().0, node.level()) };
        op::format_payload(&mut payload, &frame, Records::Of(node, 0, node.len()), Records::None).map_err(fail)?;
        let gone = node.flags() | DELETED;
        self.space().free(&mut scope, child_id)?;
        scope.apply(&mut root, op::FORMAT, &payload)?;
        op::flags_payload(&mut payload, gone);
        scope.apply(&mut child, op::SET_FLAGS, &payload)?;
        scope.commit()?;
        count(&self.stats().root_collapses);
        Ok(true)
    }
}

/// Bytes of the page that two siblings make.
pub(super) fn merged_size(left: Node, right: Node) -> Checked<usize> {
    let mut full = 0;
    for node in [left, right] {
        let prefix = node.prefix()?.len();
        for i in 0..node.len() {
            full += SLOT_SIZE + node.record_size(i)? + prefix;
        }
    }
    // An inner page's first child is stored without its key; moved to another page it has one, the low fence.
    if !right.is_leaf() {
        full += right.low()?.len();
    }
    Ok(page_size(left.low()?, right.high()?, full, left.len() + right.len(), left.is_leaf(), 0))
}
