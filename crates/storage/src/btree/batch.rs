//! Changing many keys: sorted, one descent, one latch and one log record per leaf.
//!
//! The record's bytes are written once, as they go to the log; the page is changed from them.

use super::modify::{Cursor, Decision, Place, SHARE_ROUNDS_MAX, Unfinished, check_key, check_value};
use super::share::APPENDED_MIN;
use super::split_point::{FULL, Plan, page_size};
use super::{BTree, corrupt, meta, record_ref};
use crate::buffer::Writer;
use crate::error::Result;
use crate::ids::{Lsn, PageId};
use crate::page::slotted::layout::{LEAF_OVERHEAD, PAGE_SIZE};
use crate::page::slotted::{Node, common_prefix, op};
use crate::wal::{begin_part, end_part};
use std::collections::VecDeque;
use std::ops::Range;

/// Rows of a batch in ascending key order. Of equal keys the first goes before the others.
pub trait BatchRows {
    fn len(&self) -> usize;
    fn key(&self, row: usize) -> &[u8];
    fn value(&self, row: usize) -> &[u8];
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What [`BTree::modify_batch`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchDone {
    /// Rows dealt with, from the first on.
    pub done: usize,
    /// `f` ended the batch before the row after those.
    pub stopped: bool,
    /// The log record, none if nothing was logged.
    pub lsn: Lsn,
}

/// Room that is made in a full leaf for the rows of a batch at once, more only for a longer first one: as much as a share of two pages gives each.
const ROOM_MAX: usize = PAGE_SIZE / 8;

/// Leaves that are looked up ahead of the one that is changed.
const AHEAD_MAX: usize = 3;
/// Rows that the last leaf took, at most, while the next leaves are looked up ahead: with more the wait for a leaf's memory is nothing.
const SPARSE_MAX: usize = 2;

/// The leaves of the rows that come next, which the processor fetches into its cache meanwhile. Only hints.
#[derive(Default)]
pub(super) struct Ahead {
    leaves: VecDeque<(usize, PageId)>,
    /// The root of the tree, and the row that was asked for last.
    tree: PageId,
    row: usize,
    /// The row after the last one that was looked up.
    next: usize,
    /// Rows that the last leaf took.
    last: usize,
}

impl Ahead {
    /// The leaf of a row if it was looked up. Those of rows before it are forgotten; with a row that is not behind the last one, or another tree,
    /// another batch begins.
    fn take(&mut self, tree: PageId, row: usize) -> PageId {
        if row <= self.row || tree != self.tree {
            self.leaves.clear();
            (self.next, self.last) = (0, 0);
        }
        (self.tree, self.row) = (tree, row);
        self.next = self.next.max(row + 1);
        while let Some(&(at, page)) = self.leaves.front() {
            if at > row {
                break;
            }
            self.leaves.pop_front();
            if at == row {
                return page;
            }
        }
        PageId::NONE
    }
}

/// What a batch is going to apply to a leaf, as parts of the log record.
#[derive(Default)]
pub(super) struct Steps {
    steps: Vec<Step>,
    parts: Vec<u8>,
}

struct Step {
    op: u8,
    /// Slot before the batch.
    slot: usize,
    /// Records of an insert run.
    count: usize,
    /// Where its payload begins in the parts.
    at: usize,
}

impl Steps {
    fn clear(&mut self) {
        self.steps.clear();
        self.parts.clear();
    }
    fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
    fn end(&mut self) {
        if let Some(step) = self.steps.last() {
            end_part(&mut self.parts, step.at);
        }
    }
    /// Begins a step; the rest of its payload is appended to what is returned.
    fn begin(&mut self, page: PageId, op: u8, slot: usize) -> &mut Vec<u8> {
        self.end();
        let at = begin_part(&mut self.parts, page, op);
        self.steps.push(Step { op, slot, count: 1, at });
        // The slot, and the number of records of a run: `settle` puts them in.
        self.parts.resize(at + if op == op::INSERT { 4 } else { 2 }, 0);
        &mut self.parts
    }
    /// Adds a record to the run of inserts before the same old slot, or begins one.
    fn insert(&mut self, page: PageId, slot: usize, suffix: &[u8], meta: u64, value: &[u8]) {
        match self.steps.last_mut() {
            Some(step) if step.op == op::INSERT && step.slot == slot => {
                step.count += 1;
                op::push_leaf(&mut self.parts, suffix, meta, value);
            }
            _ => op::push_leaf(self.begin(page, op::INSERT, slot), suffix, meta, value),
        }
    }
    /// Puts in what is known at the end: each step's slot as the steps before it leave the page, and the lengths of runs.
    fn settle(&mut self) -> &mut Vec<u8> {
        self.end();
        let mut shift = 0isize;
        for step in &self.steps {
            let slot = (step.slot as isize + shift) as u16;
            self.parts[step.at..step.at + 2].copy_from_slice(&slot.to_le_bytes());
            match step.op {
                op::INSERT => {
                    self.parts[step.at + 2..step.at + 4].copy_from_slice(&(step.count as u16).to_le_bytes());
                    shift += step.count as isize;
                }
                op => shift -= isize::from(op == op::REMOVE),
            }
        }
        &mut self.parts
    }
}

/// How far a batch came in a leaf.
enum InLeaf {
    Done(BatchDone),
    /// The first row belongs behind a leaf that is full for appends: it opens the next one.
    Append,
    /// Not even the first row could be dealt with here, before a sibling has made room. The bytes of the rows that belong here.
    Crowded { need: usize },
    /// Not even the first row could be dealt with here.
    Full,
}

impl BTree {
    /// Changes the first of `range` of the rows, and with it all that follow in the same leaf, in one log record. The caller
    /// goes on behind what was done with the writer's `prev_lsn` moved on. `f(row, …)` as in [`BTree::modify`], but it is given
    /// only the undo bytes to add to: a row that is put has its own value.
    pub fn modify_batch(
        &self,
        cursor: &mut Cursor,
        rows: &impl BatchRows,
        range: Range<usize>,
        writer: Writer,
        mut f: impl FnMut(usize, &Place<'_>, &mut Vec<u8>) -> Decision,
    ) -> Result<BatchDone> {
        if range.is_empty() {
            return Ok(BatchDone { done: 0, stopped: false, lsn: Lsn::NONE });
        }
        let first = range.start;
        check_key(rows.key(first))?;
        let expected = self.look_ahead(cursor, rows, &range)?;
        let mut steps = std::mem::take(&mut cursor.batch);
        let mut result = self.batch_leaf(cursor, &mut steps, rows, &range, expected, writer, &mut f);
        for _ in 0..SHARE_ROUNDS_MAX {
            let Ok(InLeaf::Crowded { need }) = result else { break };
            result = match self.make_room_reserved(cursor, rows.key(first), need) {
                Ok(true) => self.batch_leaf(cursor, &mut steps, rows, &range, PageId::NONE, writer, &mut f),
                Ok(false) => Ok(InLeaf::Full),
                Err(e) => Err(e),
            };
        }
        if let Ok(InLeaf::Append) = result {
            result = self.batch_append(cursor, &mut steps, rows, &range, writer, &mut f);
        }
        cursor.batch = steps;
        if let InLeaf::Done(done) = result? {
            cursor.ahead.last = done.done;
            return Ok(done);
        }
        // The single-record way splits.
        let mut stopped = false;
        let lsn = self.modify(cursor, rows.key(first), writer, |place, change| {
            let decision = f(first, place, &mut change.undo);
            stopped = decision == Decision::Stop;
            if let Decision::Put { .. } = decision {
                change.value.extend_from_slice(rows.value(first));
            }
            decision
        })?;
        Ok(BatchDone { done: usize::from(!stopped), stopped, lsn })
    }

    /// The leaf of the first row if it is known, having looked up those of some that follow it.
    fn look_ahead(&self, cursor: &mut Cursor, rows: &impl BatchRows, range: &Range<usize>) -> Result<PageId> {
        let expected = cursor.ahead.take(self.root(), range.start);
        if cursor.ahead.last > SPARSE_MAX {
            return Ok(expected);
        }
        while cursor.ahead.leaves.len() < AHEAD_MAX && cursor.ahead.next < range.end {
            let row = cursor.ahead.next;
            cursor.ahead.next += 1;
            if let Some(page) = self.descend_near(rows.key(row), &mut cursor.path)? {
                self.pool().prefetch(page);
                cursor.ahead.leaves.push_back((row, page));
            }
        }
        Ok(expected)
    }

    #[allow(clippy::too_many_arguments)]
    fn batch_leaf(
        &self,
        cursor: &mut Cursor,
        steps: &mut Steps,
        rows: &impl BatchRows,
        range: &Range<usize>,
        expected: PageId,
        writer: Writer,
        f: &mut impl FnMut(usize, &Place<'_>, &mut Vec<u8>) -> Decision,
    ) -> Result<InLeaf> {
        steps.clear();
        let mut scope = self.pool().scope(writer)?;
        let mut unfinished = Unfinished::new();
        let mut leaf = self.leaf_exclusive(cursor, rows.key(range.start), Some(expected), &mut unfinished)?;
        let id = leaf.id();
        let fail = |e| corrupt(id, e);
        let undo = &mut cursor.change.undo;
        undo.clear();
        let node = Node(&leaf);
        let (low, high) = (node.low().map_err(fail)?, node.high().map_err(fail)?);
        let prefix = node.prefix().map_err(fail)?.len();
        let (mut free, mut used) = (node.free(), node.used());
        let used_before = used;
        let (mut row, mut stopped, mut from) = (range.start, false, 0);
        let (mut inserted, mut removed) = (0, false);
        // The slack of the page's right end may be used.
        let mut slack = false;
        while row < range.end {
            let key = rows.key(row);
            // A repeated key begins the next batch, to see what this one did.
            if row > range.start && (key <= rows.key(row - 1) || check_key(key).is_err() || high.is_some_and(|high| key >= high)) {
                break;
            }
            let (slot, found) = node.search_from(from, key).map_err(fail)?;
            from = slot;
            let record = if found { Some(record_ref(node, slot).map_err(fail)?) } else { None };
            if row == range.start && !found {
                node.prefetch_room();
            }
            let undo_before = undo.len();
            match f(row, &Place::at(slot, record), undo) {
                Decision::Stop => {
                    undo.truncate(undo_before);
                    stopped = true;
                    break;
                }
                Decision::Leave => undo.truncate(undo_before),
                Decision::Remove if record.is_none() => undo.truncate(undo_before),
                Decision::Remove => {
                    steps.begin(id, op::REMOVE, slot);
                    removed = true;
                }
                Decision::Put { txn, flags } => {
                    let value = rows.value(row);
                    check_value(key, value)?;
                    let meta = meta(txn, flags);
                    let grows = match record {
                        Some(old) => value.len().saturating_sub(old.value.len()),
                        None => key.len() - prefix + LEAF_OVERHEAD + value.len(),
                    };
                    // At the right end the append rule decides, by the page as it is then. Cut off there its records lose
                    // the prefix that its range then shares.
                    let at_end = record.is_none() && slot == node.len() && used >= FULL && !slack;
                    let full = at_end && used.saturating_sub((common_prefix(low, key) - prefix) * (node.len() + inserted)) >= FULL;
                    if full || grows > free {
                        undo.truncate(undo_before);
                        if !steps.is_empty() || row > range.start {
                            break;
                        }
                        if record.is_some() {
                            return Ok(InLeaf::Full);
                        }
                        match self.plan_insert(node, slot, key, grows).map_err(fail)? {
                            Some(Plan::Append { .. }) => return Ok(InLeaf::Append),
                            Some(Plan::Share | Plan::Late { .. }) => {
                                // Behind appends, slack is passed on row by row.
                                let count = if node.trend().top < APPENDED_MIN { range.len() } else { 1 };
                                // Rows that are far from the first may go to a sibling then: a long one would leave the first's page half empty.
                                let mut need = 0;
                                for row in range.clone().take(count).take_while(|row| high.is_none_or(|high| rows.key(*row) < high)) {
                                    let size = rows.key(row).len() + LEAF_OVERHEAD + rows.value(row).len();
                                    if need > 0 && need + size > ROOM_MAX {
                                        break;
                                    }
                                    need += size;
                                }
                                return Ok(InLeaf::Crowded { need });
                            }
                            Some(_) => return Ok(InLeaf::Full),
                            // Asked again, `f` decides the same: nothing has changed under the latch.
                            None => slack = true,
                        }
                        continue;
                    }
                    free -= grows;
                    used += grows;
                    match record {
                        Some(_) => {
                            let payload = steps.begin(id, op::REPLACE, slot);
                            payload.extend_from_slice(&meta.to_le_bytes());
                            payload.extend_from_slice(value);
                        }
                        None => {
                            steps.insert(id, slot, &key[prefix..], meta, value);
                            inserted += 1;
                        }
                    }
                }
            }
            row += 1;
        }
        let done = row - range.start;
        if steps.is_empty() {
            return Ok(InLeaf::Done(BatchDone { done, stopped, lsn: Lsn::NONE }));
        }
        scope.add_undo(undo);
        scope.apply_parts(&mut leaf, steps.settle())?;
        let lsn = scope.commit()?;
        let cold = removed && self.is_cold(&leaf, used_before);
        drop(leaf);
        self.finish(&unfinished);
        if cold {
            self.merge_quietly(rows.key(range.start));
        }
        Ok(InLeaf::Done(BatchDone { done, stopped, lsn }))
    }

    /// Opens the next leaf with the first row and all that follow it there, in one log record with the split.
    fn batch_append(
        &self,
        cursor: &mut Cursor,
        steps: &mut Steps,
        rows: &impl BatchRows,
        range: &Range<usize>,
        writer: Writer,
        f: &mut impl FnMut(usize, &Place<'_>, &mut Vec<u8>) -> Decision,
    ) -> Result<InLeaf> {
        steps.clear();
        let _reserved = self.space().reserve(self.index(), super::split::PAGES_MAX)?;
        let scope = self.pool().scope(writer)?;
        let mut unfinished = Unfinished::new();
        let leaf = self.leaf_exclusive(cursor, rows.key(range.start), Some(PageId::NONE), &mut unfinished)?;
        let fail = |e| corrupt(leaf.id(), e);
        let node = Node(&leaf);
        let first = rows.key(range.start);
        let (slot, found) = node.search(first).map_err(fail)?;
        let need = LEAF_OVERHEAD + first.len() - node.prefix().map_err(fail)?.len() + rows.value(range.start).len();
        // Looked at without a latch before: it may be another page now, or have room.
        if found {
            return Ok(InLeaf::Full);
        }
        let Some(plan @ Plan::Append { .. }) = self.plan_insert(node, slot, first, need).map_err(fail)? else { return Ok(InLeaf::Full) };
        let Some(cut) = self.choose(node, &plan, slot, first, rows.value(range.start).len()).map_err(fail)? else {
            return Ok(InLeaf::Full);
        };
        if cut.at != slot {
            return Ok(InLeaf::Full);
        }
        let high = node.high().map_err(fail)?;
        let prefix = high.map_or(0, |high| common_prefix(&cut.separator, high));
        let mut used = page_size(&cut.separator, high, 0, 0, true, 0);
        let undo = &mut cursor.change.undo;
        undo.clear();
        let (mut row, mut stopped, mut count) = (range.start, false, 0);
        while row < range.end {
            let (key, value) = (rows.key(row), rows.value(row));
            if row > range.start && (key <= rows.key(row - 1) || check_key(key).is_err() || high.is_some_and(|high| key >= high)) {
                break;
            }
            let grows = key.len() - prefix + LEAF_OVERHEAD + value.len();
            let full = used >= FULL && used.saturating_sub((common_prefix(&cut.separator, key) - prefix) * count) >= FULL;
            if full || used + grows > PAGE_SIZE {
                break;
            }
            let undo_before = undo.len();
            match f(row, &Place::at(count, None), undo) {
                Decision::Put { txn, flags } => {
                    check_value(key, value)?;
                    // The page has no id yet.
                    steps.insert(PageId::NONE, 0, &key[prefix..], meta(txn, flags), value);
                    (used, count) = (used + grows, count + 1);
                }
                decision => {
                    undo.truncate(undo_before);
                    stopped = decision == Decision::Stop;
                    if stopped {
                        break;
                    }
                }
            }
            row += 1;
        }
        let done = row - range.start;
        if steps.is_empty() {
            return Ok(InLeaf::Done(BatchDone { done, stopped, lsn: Lsn::NONE }));
        }
        let lsn = self.split_append(cursor, scope, leaf, cut, steps.settle())?;
        self.finish(&unfinished);
        self.finish_met(&mut cursor.path);
        Ok(InLeaf::Done(BatchDone { done, stopped, lsn }))
    }
}
