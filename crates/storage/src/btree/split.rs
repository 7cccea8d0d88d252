//! Splits in two legal steps: carve (one log record: new right page, link, high key, INCOMPLETE_SPLIT), then post the downlink in
//! the parent. Between the two, and after a crash there, the tree is legal: the right page is reached by its link.

use super::search::Path;
use super::split_point::{Addition, Cut, Plan, Sequence};
use super::{BTree, corrupt, count};
use crate::buffer::{ExclusiveGuard, Scope, Writer};
use crate::error::{Error, Result};
use crate::ids::{Lsn, PageId};
use crate::page::slotted::layout::{APPEND, INCOMPLETE_SPLIT, INNER_OVERHEAD, LEAF_OVERHEAD};
use crate::page::slotted::node::Trend;
use crate::page::slotted::op::{self, Records, Reshape};
use crate::page::slotted::{Checked, Frame, Node};
use crate::wal::set_part_page;

/// Pages that one split allocates at most: both children of a root.
pub(super) const PAGES_MAX: u64 = 2;

/// A downlink that is to be posted: `right` under `separator` in the parent level `level`.
struct Downlink {
    left: PageId,
    right: PageId,
    separator: Vec<u8>,
    level: u8,
}

/// What a carve leaves latched.
struct Halves<'p> {
    left: ExclusiveGuard<'p>,
    right: ExclusiveGuard<'p>,
    /// The root, one level higher than before: nothing to post.
    root: Option<ExclusiveGuard<'p>>,
}

/// How a page is carved.
struct Carve<'a> {
    /// Slots that stay left.
    keep: usize,
    separator: &'a [u8],
    /// A child that goes before the moved ones of an inner page.
    first: Records<'a>,
    append: bool,
    left_trend: Trend,
    right_trend: Trend,
}

impl BTree {
    /// Splits the latched leaf by the plan and inserts the pending record (`meta`, the cursor's value) in the same log record.
    /// `None`: split without it, or not at all; come again.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn split_leaf(
        &self,
        cursor: &mut super::Cursor,
        mut scope: Scope<'_>,
        leaf: ExclusiveGuard<'_>,
        plan: Plan,
        slot: usize,
        key: &[u8],
        meta: Option<u64>,
    ) -> Result<Option<Lsn>> {
        let id = leaf.id();
        let fail = |e| corrupt(id, e);
        let chosen = match meta {
            Some(_) => self.choose(Node(&leaf), &plan, slot, key, cursor.change.value.len()).map_err(fail)?,
            None => None,
        };
        let (Some(cut), Some(meta)) = (chosen, meta) else {
            drop(leaf);
            drop(scope);
            self.split_without(cursor, key)?;
            return Ok(None);
        };
        let node = Node(&leaf);
        let keep = if slot < cut.at { cut.at - 1 } else { cut.at };
        let trend = node.trend();
        let append = matches!(plan, Plan::Append { .. } | Plan::Late { .. });
        let descending = matches!(plan, Plan::Cut { descending: true, .. });
        let carve = Carve {
            keep,
            separator: &cut.separator,
            first: Records::None,
            append,
            left_trend: if descending { Trend { last_slot: 0, ..trend } } else { trend },
            right_trend: match plan {
                Plan::Append { .. } | Plan::Late { .. } => Trend { last_slot: 0, run: 0, ..trend },
                Plan::Bound { after: false, .. } => trend,
                _ => Trend::default(),
            },
        };
        let mut halves = self.carve(&mut scope, leaf, &carve, &mut cursor.payload)?;
        let (side, at) = if slot < cut.at { (&mut halves.left, slot) } else { (&mut halves.right, slot - keep) };
        let prefix = Node(side).prefix().map_err(fail)?.len();
        op::insert_payload(&mut cursor.payload, at, 1);
        op::push_leaf(&mut cursor.payload, &key[prefix..], meta, &cursor.change.value);
        scope.add_undo(&cursor.change.undo);
        scope.apply(side, op::INSERT, &cursor.payload)?;
        let lsn = scope.commit()?;
        let stats = self.stats();
        count(match plan {
            Plan::Append { .. } | Plan::Bound { .. } => &stats.splits_append,
            Plan::Late { .. } => &stats.splits_slack,
            Plan::Cut { descending: false, .. } => &stats.splits_run,
            Plan::Cut { descending: true, .. } => &stats.splits_descending,
            Plan::Share | Plan::Middle => &stats.splits_even,
        });
        // The record is logged: an error in the second step leaves a legal tree, and the next writer there meets it.
        let _ = self.complete(halves, cut.separator, 1, &mut cursor.path);
        Ok(Some(lsn))
    }

    pub(super) fn choose(&self, node: Node, plan: &Plan, slot: usize, key: &[u8], value_len: usize) -> Checked<Option<Cut>> {
        let addition = Addition { slot, key, size: LEAF_OVERHEAD + key.len() + value_len };
        let sequence = Sequence::new(node, Some(addition))?;
        match plan {
            Plan::Append { separator } => match sequence.cut_behind(separator)? {
                Some(cut) => Ok(Some(cut)),
                None => sequence.cut_near(node.len()),
            },
            Plan::Bound { separator, after } => {
                let at = if *after { node.len() + 1 } else { 0 };
                match sequence.cut_with(at, separator)? {
                    Some(cut) => Ok(Some(cut)),
                    None => sequence.cut_near(at),
                }
            }
            Plan::Cut { at, .. } | Plan::Late { at } => sequence.cut_near(*at),
            Plan::Share | Plan::Middle => sequence.cut_middle(),
        }
    }

    /// Opens a new page behind the latched leaf, by the cut of an append, with the records that `parts` inserts into it (their page's id
    /// is not in them yet), in one log record with the cursor's undo bytes.
    pub(super) fn split_append(
        &self,
        cursor: &mut super::Cursor,
        mut scope: Scope<'_>,
        leaf: ExclusiveGuard<'_>,
        cut: Cut,
        parts: &mut Vec<u8>,
    ) -> Result<Lsn> {
        let node = Node(&leaf);
        let trend = node.trend();
        let carve = Carve {
            keep: node.len(),
            separator: &cut.separator,
            first: Records::None,
            append: true,
            left_trend: trend,
            right_trend: Trend { last_slot: 0, run: 0, ..trend },
        };
        let mut halves = self.carve(&mut scope, leaf, &carve, &mut cursor.payload)?;
        set_part_page(parts, halves.right.id());
        scope.add_undo(&cursor.change.undo);
        scope.apply_parts(&mut halves.right, parts)?;
        let lsn = scope.commit()?;
        count(&self.stats().splits_append);
        cursor.remember(self, Node(&halves.right), halves.right.id());
        // As in `split_leaf`.
        let _ = self.complete(halves, cut.separator, 1, &mut cursor.path);
        Ok(lsn)
    }

    /// Splits the leaf of `key` in the middle with nothing to insert: for values that grow, and records too large for both sides.
    fn split_without(&self, cursor: &mut super::Cursor, key: &[u8]) -> Result<()> {
        let _reserved = self.space().reserve(self.index(), PAGES_MAX)?;
        let mut scope = self.pool().scope(Writer::System)?;
        let mut unfinished = super::modify::Unfinished::new();
        let leaf = self.leaf_exclusive(cursor, key, None, &mut unfinished)?;
        let id = leaf.id();
        let node = Node(&leaf);
        let cut = Sequence::new(node, None).and_then(|s| s.cut_middle()).map_err(|e| corrupt(id, e))?;
        // A leaf of one record: another thread has taken the rest since, and there is room now.
        let Some(cut) = cut else { return Ok(()) };
        let carve =
            Carve { keep: cut.at, separator: &cut.separator, first: Records::None, append: false, left_trend: node.trend(), right_trend: Trend::default() };
        let halves = self.carve(&mut scope, leaf, &carve, &mut cursor.payload)?;
        scope.commit()?;
        count(&self.stats().splits_even);
        let _ = self.complete(halves, cut.separator, 1, &mut cursor.path);
        self.finish(&unfinished);
        Ok(())
    }

    /// Step one: moves the slots from `keep` on to a new right page. A root passes its content to two new pages instead.
    fn carve<'p>(&'p self, scope: &mut Scope<'_>, mut page: ExclusiveGuard<'p>, carve: &Carve, payload: &mut Vec<u8>) -> Result<Halves<'p>> {
        let id = page.id();
        let fail = |e| corrupt(id, e);
        // All that can fail for want of space or frames comes before the first change.
        let right_id = self.space().allocate(scope, self.index())?;
        let root_left = if id == self.root() { Some(self.space().allocate(scope, self.index())?) } else { None };
        let mut right = self.pool().fix_new(right_id)?;
        let root_left = match root_left {
            Some(left_id) => Some((left_id, self.pool().fix_new(left_id)?)),
            None => None,
        };
        let node = Node(&page);
        let moved = Records::Of(node, carve.keep, node.len());
        let append = if carve.append { APPEND } else { 0 };
        let mut frame = Frame {
            page_id: right_id.0,
            index_id: self.index().0,
            level: node.level(),
            // The flag goes with the old high key.
            flags: node.flags() & INCOMPLETE_SPLIT | append,
            right_link: node.right_link(),
            low: carve.separator,
            high: node.high().map_err(fail)?,
            max_txn: 0,
            trend: carve.right_trend,
        };
        op::format_payload(payload, &frame, carve.first, moved).map_err(fail)?;
        scope.apply(&mut right, op::FORMAT, payload)?;
        let Some((left_id, mut left)) = root_left else {
            let low = node.low().map_err(fail)?;
            let reshape = Reshape {
                keep: 0..carve.keep,
                flags: node.flags() | INCOMPLETE_SPLIT,
                right_link: right_id.0,
                low,
                high: Some(carve.separator),
                before: Records::None,
                after: Records::None,
                trend: carve.left_trend,
            };
            op::reshape_payload(payload, &reshape).map_err(fail)?;
            scope.apply(&mut page, op::RESHAPE, payload)?;
            return Ok(Halves { left: page, right, root: None });
        };
        frame.page_id = left_id.0;
        frame.flags = 0;
        frame.right_link = right_id.0;
        frame.low = &[];
        frame.high = Some(carve.separator);
        frame.trend = carve.left_trend;
        op::format_payload(payload, &frame, Records::Of(node, 0, carve.keep), Records::None).map_err(fail)?;
        scope.apply(&mut left, op::FORMAT, payload)?;
        let level = node.level().checked_add(1).ok_or_else(|| Error::corrupt(id, "tree too high"))?;
        let children: [(&[u8], u64); 2] = [(&[], left_id.0), (carve.separator, right_id.0)];
        op::format_payload(payload, &Frame::empty(id.0, self.index().0, level), Records::Children(&children), Records::None).map_err(fail)?;
        scope.apply(&mut page, op::FORMAT, payload)?;
        count(&self.stats().splits_root);
        Ok(Halves { left, right, root: Some(page) })
    }

    /// Step two, after the carve is committed: releases the halves and posts the downlink.
    fn complete(&self, halves: Halves<'_>, separator: Vec<u8>, level: u8, path: &mut Path) -> Result<()> {
        if halves.root.is_some() {
            return Ok(());
        }
        #[cfg(test)]
        if self.inner.interrupt.load(crate::sync::Ordering::Relaxed) == level {
            return Ok(());
        }
        let (left, right) = (halves.left.id(), halves.right.id());
        // Entered before the latches are released, so that no one sees the flag without it.
        self.inner.splitting.lock().push(left);
        drop(halves);
        let result = self.post(Downlink { left, right, separator, level }, path);
        self.done_splitting(left);
        result
    }

    fn done_splitting(&self, left: PageId) {
        let mut splitting = self.inner.splitting.lock();
        if let Some(at) = splitting.iter().position(|page| *page == left) {
            splitting.swap_remove(at);
        }
    }

    /// Whether a thread is about to post the downlink of a split of the page. Exact for who holds the page's latch.
    pub(super) fn is_splitting(&self, left: PageId) -> bool {
        self.inner.splitting.lock().contains(&left)
    }

    /// Posts the downlink of a page found with INCOMPLETE_SPLIT.
    pub(super) fn finish_split(&self, left: PageId, level: u8) -> Result<()> {
        let downlink = {
            let page = self.pool().fix_shared(left)?;
            let node = Node(&page);
            if !self.owns(&*page) || node.level() != level || !node.has(INCOMPLETE_SPLIT) {
                return Ok(());
            }
            let Some(high) = node.high().map_err(|e| corrupt(left, e))? else {
                return Err(Error::corrupt(left, "incomplete split of a last page"));
            };
            let downlink = Downlink { left, right: PageId(node.right_link()), separator: high.to_vec(), level: level + 1 };
            let mut splitting = self.inner.splitting.lock();
            if splitting.contains(&left) {
                return Ok(());
            }
            splitting.push(left);
            downlink
        };
        let result = self.post(downlink, &mut Path::default());
        self.done_splitting(left);
        result
    }

    fn post(&self, downlink: Downlink, path: &mut Path) -> Result<()> {
        let mut next = Some(downlink);
        let mut ours = None;
        while let Some(downlink) = next {
            let result = self.post_one(downlink, path);
            if let Some(left) = ours.take() {
                self.done_splitting(left);
            }
            next = result?;
            // A parent that was split is ours to finish; `post_one` has entered it.
            ours = next.as_ref().map(|downlink| downlink.left);
            #[cfg(test)]
            if let Some(Downlink { left, level, .. }) = next
                && self.inner.interrupt.load(crate::sync::Ordering::Relaxed) == level
            {
                self.done_splitting(left);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Posts one downlink; returns the parent's own if that had to be split, or was found incomplete.
    fn post_one(&self, downlink: Downlink, path: &mut Path) -> Result<Option<Downlink>> {
        let Downlink { left, right, separator, level } = &downlink;
        let (separator, level) = (separator.as_slice(), *level);
        let mut reserved = None;
        let mut payload = Vec::new();
        loop {
            let mut scope = self.pool().scope(Writer::System)?;
            let Some(mut parent) = self.page_smo(separator, level, path)? else { return Ok(None) };
            let parent_id = parent.id();
            let fail = |e| corrupt(parent_id, e);
            // Top-down: the parent is held while the child is waited for, never the other way round.
            let Some(mut child) = self.incomplete_at(*left, separator, *right, level - 1)? else { return Ok(None) };
            let node = Node(&parent);
            let (slot, posted) = node.search(separator).map_err(fail)?;
            if posted || node.low().map_err(fail)? == separator {
                return Err(Error::corrupt(parent_id, "I6: a downlink is there although its split is incomplete"));
            }
            let prefix = node.prefix().map_err(fail)?.len();
            let need = INNER_OVERHEAD + separator.len() - prefix;
            let flags = Node(&child).flags() & !INCOMPLETE_SPLIT;
            if node.free() >= need {
                op::child_payload(&mut payload, slot, &separator[prefix..], right.0);
                scope.apply(&mut parent, op::INSERT_CHILD, &payload)?;
                op::flags_payload(&mut payload, flags);
                scope.apply(&mut child, op::SET_FLAGS, &payload)?;
                scope.commit()?;
                count(&self.stats().downlinks);
                drop(child);
                return self.after_post(parent, level);
            }
            if reserved.is_none() {
                drop(child);
                drop(parent);
                drop(scope);
                reserved = Some(self.space().reserve(self.index(), PAGES_MAX)?);
                continue;
            }
            let cut = Self::choose_inner(node, slot, separator).map_err(fail)?;
            let cut = cut.ok_or_else(|| Error::corrupt(parent_id, "I7: an inner page cannot be cut"))?;
            let keep = if slot < cut.at { cut.at - 1 } else { cut.at };
            let pending = [(separator, right.0)];
            let leads = slot == cut.at;
            let carve = Carve {
                keep,
                separator: &cut.separator,
                first: if leads { Records::Children(&pending) } else { Records::None },
                append: false,
                left_trend: node.trend(),
                right_trend: if leads { Trend { last_slot: 0, ..node.trend() } } else { Trend::default() },
            };
            let mut halves = self.carve(&mut scope, parent, &carve, &mut payload)?;
            if !leads {
                let (side, at) = if slot < cut.at { (&mut halves.left, slot) } else { (&mut halves.right, slot - keep) };
                let prefix = Node(side).prefix().map_err(fail)?.len();
                op::child_payload(&mut payload, at, &separator[prefix..], right.0);
                scope.apply(side, op::INSERT_CHILD, &payload)?;
            }
            op::flags_payload(&mut payload, flags);
            scope.apply(&mut child, op::SET_FLAGS, &payload)?;
            scope.commit()?;
            count(&self.stats().downlinks);
            count(&self.stats().splits_inner);
            drop(child);
            if halves.root.is_some() {
                return Ok(None);
            }
            let (left, right) = (halves.left.id(), halves.right.id());
            self.inner.splitting.lock().push(left);
            return Ok(Some(Downlink { left, right, separator: cut.separator, level: level + 1 }));
        }
    }

    /// A parent found with an incomplete split of its own that nobody is about to finish.
    fn after_post(&self, parent: ExclusiveGuard<'_>, level: u8) -> Result<Option<Downlink>> {
        let node = Node(&parent);
        if !node.has(INCOMPLETE_SPLIT) {
            return Ok(None);
        }
        let left = parent.id();
        let mut splitting = self.inner.splitting.lock();
        if splitting.contains(&left) {
            return Ok(None);
        }
        splitting.push(left);
        drop(splitting);
        count(&self.stats().splits_finished);
        let high = node.high().map_err(|e| corrupt(left, e))?.unwrap_or_default().to_vec();
        Ok(Some(Downlink { left, right: PageId(node.right_link()), separator: high, level: level + 1 }))
    }

    fn choose_inner(node: Node, slot: usize, separator: &[u8]) -> Checked<Option<Cut>> {
        let addition = Addition { slot, key: separator, size: INNER_OVERHEAD + separator.len() };
        let sequence = Sequence::new(node, Some(addition))?;
        let trend = node.trend();
        // Appends leave full inner pages behind, as they do leaves.
        if slot == trend.last_slot as usize + 1 && trend.run >= 1 {
            return sequence.cut_near((slot + 1).min(node.len()));
        }
        sequence.cut_middle()
    }

    /// Latches the page whose split at `separator` is still incomplete: `left`, or one to its right if `left` was split again.
    /// `None` when the split has been finished, and perhaps undone by a merge or moved by sharing since: then there is nothing to
    /// post, and posting would point to a page that is gone.
    fn incomplete_at(&self, left: PageId, separator: &[u8], right: PageId, level: u8) -> Result<Option<ExclusiveGuard<'_>>> {
        let mut id = left;
        let mut page = self.fix_smo(id)?;
        loop {
            let node = Node(&page);
            if !self.owns(&*page) || node.level() != level || node.low().map_err(|e| corrupt(id, e))? >= separator {
                return Ok(None);
            }
            match node.high().map_err(|e| corrupt(id, e))? {
                Some(high) if high == separator => {
                    return Ok((node.has(INCOMPLETE_SPLIT) && node.right_link() == right.0).then_some(page));
                }
                Some(high) if high < separator => {
                    id = PageId(node.right_link());
                    // Coupled, left to right.
                    let next = self.fix_smo(id)?;
                    page = next;
                }
                _ => return Ok(None),
            }
        }
    }

    /// Finishes what a descent met at inner levels.
    pub(super) fn finish_met(&self, path: &mut Path) {
        if let Some((page, level)) = path.incomplete.take()
            && !self.is_splitting(page)
            && self.finish_split(page, level).is_ok()
        {
            count(&self.stats().splits_finished);
        }
    }
}
