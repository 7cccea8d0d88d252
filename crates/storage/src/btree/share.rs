//! Rules 2 and 5 of the split point: a full leaf evens out with a sibling, or two full siblings become three pages.
//!
//! This changes separators, so it goes top-down: the parent, the left page, the right page, all in the SMO class, one log record.

use super::search::Path;
use super::split_point::{FULL, page_size, shortest_separator};
use super::{BTree, corrupt, count};
use crate::buffer::{ExclusiveGuard, Scope, Writer};
use crate::error::Result;
use crate::ids::PageId;
use crate::page::slotted::layout::{APPEND, HEADER_SIZE, INCOMPLETE_SPLIT, INNER_OVERHEAD, PAGE_SIZE, SLOT_SIZE};
use crate::page::slotted::node::Trend;
use crate::page::slotted::op::{self, Records, Reshape};
use crate::page::slotted::read::child_slot;
use crate::page::slotted::{Checked, Frame, Node, Range};
use crate::prefetch::prefetch_all;

/// Joint free space from which two pages share instead of becoming three.
const SHARE_MIN: usize = PAGE_SIZE / 8;
/// Share of inserts in the page's top 3/8 that tells late arrivals: a half. Random inserts have 3/8 there.
pub(super) const APPENDED_MIN: u8 = 128;
/// Pages before the last one that late arrivals of appends come to: a thread may be preempted with its id while others insert thousands.
const LATE_PAGES: usize = 64;
/// Pages over which slack is passed on to a late arrival; less than the rounds that it takes part in.
const LATE_HOPS: usize = 7;

impl BTree {
    /// Makes room for a record of `need` bytes under `key` with the help of a sibling under the same parent. False: no sibling can
    /// help, so the page has to be split alone.
    pub(super) fn make_room(&self, key: &[u8], need: usize, path: &mut Path) -> Result<bool> {
        let mut scope = self.pool().scope(Writer::System)?;
        let Some(parent) = self.page_smo(key, 1, path)? else { return Ok(false) };
        let fail = |e| corrupt(parent.id(), e);
        let node = Node(&parent);
        let slot = child_slot(node.0, key).map_err(fail)?;
        let late = self.late_pair(node, slot, need).map_err(fail)?;
        let chosen = if late.is_some() { late } else { self.choose_pair(node, slot).map_err(fail)? };
        let Some(left_slot) = chosen else { return Ok(false) };
        let left_id = PageId(node.child(left_slot).map_err(fail)?);
        let right_id = PageId(node.child(left_slot + 1).map_err(fail)?);
        let left = self.fix_smo(left_id)?;
        let right = self.fix_smo(right_id)?;
        let (l, r) = (Node(&left), Node(&right));
        if !self.owns(&*left) || !self.owns(&*right) {
            return Ok(false);
        }
        // A split whose downlink is not posted yet stands between the two, or behind the full one.
        if l.right_link() != right_id.0 || l.has(INCOMPLETE_SPLIT) {
            drop((right, left, parent, scope));
            return self.wait_for_downlink(left_id);
        }
        if left_slot + 1 == slot && r.has(INCOMPLETE_SPLIT) {
            // The full page's right sibling may take something once the parent knows it.
            drop((right, left, parent, scope));
            return self.wait_for_downlink(right_id);
        }
        if late.is_some() {
            let pair = Pair::new(l, r, None).map_err(fail)?;
            let cut = if left_slot >= slot { pair.cut_to_right(need) } else { pair.cut_to_left() };
            // None: somebody has made room meanwhile, or taken it.
            let Some(cut) = cut.map_err(fail)? else { return Ok(true) };
            if !parent_takes(node, left_slot + 1, &[&cut.separator]).map_err(fail)? {
                return Ok(false);
            }
            self.move_between(&mut scope, parent, left, right, left_slot + 1, &cut)?;
            scope.commit()?;
            count(&self.stats().shares);
            count(&self.stats().shares_slack);
            return Ok(true);
        }
        let full = if left_slot == slot { l } else { r };
        if full.range_of(key).map_err(fail)? != Range::Inside {
            return Ok(false);
        }
        if full.free() >= need {
            return Ok(true);
        }
        // All of both pages is read next, record by record: wherever those lie.
        prefetch_all(&left);
        prefetch_all(&right);
        let pair = Pair::new(l, r, Some(key)).map_err(fail)?;
        let packed = is_appended(l, r, full);
        let young = full.page_id() == l.page_id() && r.has(APPEND) && r.free() >= 2 * need;
        let two = match l.free() + r.free() >= SHARE_MIN + need || young {
            // Rule 2 while the append page can take anything, and rule 5 where appends go on: the left page is left full, so that what will not grow is dense.
            true if packed || young => pair.cut_packed(need).map_err(fail)?,
            true => pair.cut_even(need).map_err(fail)?,
            false => None,
        };
        if let Some(cut) = two {
            if !parent_takes(node, left_slot + 1, &[&cut.separator]).map_err(fail)? {
                return Ok(false);
            }
            self.move_between(&mut scope, parent, left, right, left_slot + 1, &cut)?;
            scope.commit()?;
            count(&self.stats().shares);
            if packed || young {
                count(&self.stats().shares_slack);
            }
            return Ok(true);
        }
        let three = if packed { pair.cut_three_packed(need) } else { pair.cut_three(need) };
        let Some(cuts) = three.map_err(fail)? else { return Ok(false) };
        if !parent_takes(node, left_slot + 1, &[&cuts.0.separator, &cuts.1.separator]).map_err(fail)? {
            return Ok(false);
        }
        self.two_to_three(&mut scope, parent, left, right, left_slot + 1, &cuts)?;
        scope.commit()?;
        count(&self.stats().splits_two_to_three);
        Ok(true)
    }

    /// Near the right end of a tree to which appends go: the slot of the left page of a pair between which records are moved for a late
    /// arrival in the full page at `slot`. That page and a sibling with slack; else the nearest two to the right of it whose left one
    /// may then take something from its left sibling.
    fn late_pair(&self, parent: Node, slot: usize, need: usize) -> Checked<Option<usize>> {
        let last = parent.len() - 1;
        if parent.high()?.is_some() || slot + LATE_PAGES < last {
            return Ok(None);
        }
        // No page that is not in memory: the parent is latched.
        let in_memory = |slot: usize| -> Checked<bool> { Ok(self.pool().is_resident(PageId(parent.child(slot)?))) };
        let look = |slot: usize| -> Checked<Option<(bool, usize)>> {
            let page = self.pool().try_shared(PageId(parent.child(slot)?)).filter(|page| self.owns(&**page));
            Ok(page.map(|page| (is_append_page(Node(&page)), Node(&page).free())))
        };
        let edge = look(last)?;
        if edge.is_some_and(|(append, _)| !append) {
            return Ok(None);
        }
        // The last page is worth waiting for if it is latched: all want it.
        let has_room = |slot: usize| -> Checked<bool> {
            match if slot == last { edge } else { look(slot)? } {
                Some((_, free)) => Ok(free >= 2 * need),
                None => Ok(slot == last && in_memory(slot)?),
            }
        };
        if slot < last && has_room(slot + 1)? {
            return Ok(Some(slot));
        }
        if slot > 0 && has_room(slot - 1)? {
            return Ok(Some(slot - 1));
        }
        for right in slot + 2..=last.min(slot + LATE_HOPS) {
            if has_room(right)? {
                return Ok(in_memory(right - 1)?.then_some(right - 1));
            }
        }
        Ok(None)
    }

    /// Lets the split of `left` be finished, by us if nobody else is about to. True: look again.
    fn wait_for_downlink(&self, left: PageId) -> Result<bool> {
        if self.is_splitting(left) {
            crate::sync::thread::yield_now();
        } else {
            self.finish_split(left, 0)?;
        }
        Ok(true)
    }

    /// The slot of the left page of the pair: the full page with its emptier sibling that is in memory.
    fn choose_pair(&self, parent: Node, slot: usize) -> Checked<Option<usize>> {
        let free = |slot: usize| -> Checked<Option<usize>> {
            Ok(self.pool().try_shared(PageId(parent.child(slot)?)).filter(|page| self.owns(&**page)).map(|page| Node(&page).free()))
        };
        let left = if slot > 0 { free(slot - 1)? } else { None };
        let right = if slot + 1 < parent.len() { free(slot + 1)? } else { None };
        Ok(match (left, right) {
            (None, None) => None,
            (Some(left), Some(right)) if left > right => Some(slot - 1),
            (Some(_), None) => Some(slot - 1),
            _ => Some(slot),
        })
    }

    /// Moves records across the boundary of two siblings and changes the separator.
    fn move_between<'p>(
        &'p self,
        scope: &mut Scope<'p>,
        mut parent: ExclusiveGuard<'p>,
        mut left: ExclusiveGuard<'p>,
        mut right: ExclusiveGuard<'p>,
        slot: usize,
        cut: &PairCut,
    ) -> Result<()> {
        let fail = |e| corrupt(PageId(0), e);
        let (l, r) = (Node(&left), Node(&right));
        let (mut to_left, mut to_right, mut downlink) = (Vec::new(), Vec::with_capacity(PAGE_SIZE), Vec::new());
        let moved_right = cut.at < l.len();
        // The slot of the last insert goes along with its record, so that a run goes on.
        let last_slot = (r.trend().last_slot as usize + l.len()).saturating_sub(cut.at) as u16;
        op::reshape_payload(
            &mut to_left,
            &Reshape {
                keep: 0..cut.at.min(l.len()),
                flags: l.flags(),
                right_link: l.right_link(),
                low: l.low().map_err(fail)?,
                high: Some(&cut.separator),
                before: Records::None,
                after: if moved_right { Records::None } else { Records::Of(r, 0, cut.at - l.len()) },
                trend: l.trend(),
            },
        )
        .map_err(fail)?;
        op::reshape_payload(
            &mut to_right,
            &Reshape {
                keep: cut.at.saturating_sub(l.len())..r.len(),
                flags: r.flags(),
                right_link: r.right_link(),
                low: &cut.separator,
                high: r.high().map_err(fail)?,
                before: if moved_right { Records::Of(l, cut.at, l.len()) } else { Records::None },
                after: Records::None,
                trend: Trend { last_slot, ..r.trend() },
            },
        )
        .map_err(fail)?;
        scope.apply(&mut left, op::RESHAPE, &to_left)?;
        scope.apply(&mut right, op::RESHAPE, &to_right)?;
        op::remove_payload(&mut downlink, slot);
        scope.apply(&mut parent, op::REMOVE, &downlink)?;
        self.put_downlink(scope, &mut parent, slot, &cut.separator, right.id(), &mut downlink)?;
        hold(scope, [parent, left, right]);
        Ok(())
    }

    /// Fills the left page to `full` bytes with the lowest records of the right one, where there is room for the separator. Returns that; `slot` is
    /// the right page's.
    pub(super) fn fill_from<'p>(
        &'p self,
        mut scope: Scope<'p>,
        parent: ExclusiveGuard<'p>,
        left: ExclusiveGuard<'p>,
        right: ExclusiveGuard<'p>,
        slot: usize,
        full: usize,
    ) -> Result<Option<Vec<u8>>> {
        let fail = |e| corrupt(left.id(), e);
        let pair = Pair::new(Node(&left), Node(&right), None).map_err(fail)?;
        let Some(cut) = pair.cut_filling(full).map_err(fail)? else { return Ok(None) };
        if !parent_takes(Node(&parent), slot, &[&cut.separator]).map_err(fail)? {
            return Ok(None);
        }
        self.move_between(&mut scope, parent, left, right, slot, &cut)?;
        scope.commit()?;
        count(&self.stats().shares);
        Ok(Some(cut.separator))
    }

    pub(super) fn put_downlink(
        &self,
        scope: &mut Scope<'_>,
        parent: &mut ExclusiveGuard<'_>,
        slot: usize,
        separator: &[u8],
        child: PageId,
        payload: &mut Vec<u8>,
    ) -> Result<()> {
        let prefix = Node(parent).prefix().map_err(|e| corrupt(parent.id(), e))?.len();
        op::child_payload(payload, slot, &separator[prefix..], child.0);
        scope.apply(parent, op::INSERT_CHILD, payload)
    }

    /// Spreads the records of two siblings over them and a new page between.
    fn two_to_three<'p>(
        &'p self,
        scope: &mut Scope<'p>,
        mut parent: ExclusiveGuard<'p>,
        mut left: ExclusiveGuard<'p>,
        mut right: ExclusiveGuard<'p>,
        slot: usize,
        (first, second): &(PairCut, PairCut),
    ) -> Result<()> {
        let fail = |e| corrupt(PageId(0), e);
        let middle_id = self.space().allocate(scope, self.index())?;
        let mut middle = self.pool().fix_new(middle_id)?;
        let (l, r) = (Node(&left), Node(&right));
        let (mut to_left, mut to_middle, mut to_right, mut downlink) = (Vec::new(), Vec::with_capacity(PAGE_SIZE), Vec::new(), Vec::new());
        let frame = Frame {
            page_id: middle_id.0,
            index_id: self.index().0,
            level: 0,
            flags: 0,
            right_link: right.id().0,
            low: &first.separator,
            high: Some(&second.separator),
            max_txn: 0,
            trend: Trend::default(),
        };
        op::format_payload(&mut to_middle, &frame, Records::Of(l, first.at, l.len()), Records::Of(r, 0, second.at - l.len())).map_err(fail)?;
        op::reshape_payload(
            &mut to_left,
            &Reshape {
                keep: 0..first.at,
                flags: l.flags(),
                right_link: middle_id.0,
                low: l.low().map_err(fail)?,
                high: Some(&first.separator),
                before: Records::None,
                after: Records::None,
                trend: l.trend(),
            },
        )
        .map_err(fail)?;
        op::reshape_payload(
            &mut to_right,
            &Reshape {
                keep: second.at - l.len()..r.len(),
                flags: r.flags(),
                right_link: r.right_link(),
                low: &second.separator,
                high: r.high().map_err(fail)?,
                before: Records::None,
                after: Records::None,
                trend: r.trend(),
            },
        )
        .map_err(fail)?;
        scope.apply(&mut middle, op::FORMAT, &to_middle)?;
        scope.apply(&mut left, op::RESHAPE, &to_left)?;
        scope.apply(&mut right, op::RESHAPE, &to_right)?;
        op::remove_payload(&mut downlink, slot);
        scope.apply(&mut parent, op::REMOVE, &downlink)?;
        self.put_downlink(scope, &mut parent, slot, &first.separator, middle_id, &mut downlink)?;
        self.put_downlink(scope, &mut parent, slot + 1, &second.separator, right.id(), &mut downlink)?;
        hold(scope, [parent, left, right, middle]);
        Ok(())
    }
}

/// Whether the last leaf, opened by an append, is one still: rows of all parts of the table come to all parts of it.
fn is_append_page(last: Node) -> bool {
    last.has(APPEND) && last.trend().top >= APPENDED_MIN
}

/// Whether late arrivals of an append filled the page, rather than random inserts: half of the latest inserts came to its top, and one
/// of the pair was opened by an append.
fn is_appended(left: Node, right: Node, full: Node) -> bool {
    (left.has(APPEND) || right.has(APPEND)) && full.trend().top >= APPENDED_MIN
}

/// Keeps the pages latched until the scope has committed.
fn hold<'p, const N: usize>(scope: &mut Scope<'p>, guards: [ExclusiveGuard<'p>; N]) {
    for guard in guards {
        scope.keep(guard);
    }
}

/// Whether the parent has room when the downlink at `slot` is replaced by those of `separators`.
fn parent_takes(parent: Node, slot: usize, separators: &[&[u8]]) -> Checked<bool> {
    let prefix = parent.prefix()?.len();
    let need: usize = separators.iter().map(|separator| separator.len() - prefix + INNER_OVERHEAD).sum();
    Ok(parent.free() + parent.record_size(slot)? + SLOT_SIZE >= need)
}

/// A boundary in the joint sequence of two pages: the first `at` records lie left of it.
struct PairCut {
    at: usize,
    separator: Vec<u8>,
}

/// Two neighbouring leaves as one sequence. The record that waits is weighed where it will go, but not part of it.
struct Pair<'a> {
    left: Node<'a>,
    right: Node<'a>,
    /// `sums[i]`: bytes of the first `i` records with their full keys.
    sums: Vec<usize>,
    /// Records before the waiting one; without its key it waits for the left page.
    waiting: usize,
}

impl<'a> Pair<'a> {
    fn new(left: Node<'a>, right: Node<'a>, key: Option<&[u8]>) -> Checked<Pair<'a>> {
        let mut sums = Vec::with_capacity(left.len() + right.len() + 1);
        let mut sum = 0;
        sums.push(0);
        for node in [left, right] {
            let prefix = node.prefix()?.len();
            for i in 0..node.len() {
                sum += SLOT_SIZE + node.record_size(i)? + prefix;
                sums.push(sum);
            }
        }
        let waiting = match key {
            Some(key) if left.range_of(key)? == Range::Inside => left.search(key)?.0,
            Some(key) => left.len() + right.search(key)?.0,
            None => 0,
        };
        Ok(Pair { left, right, sums, waiting })
    }
    fn len(&self) -> usize {
        self.sums.len() - 1
    }
    /// Bytes of the records `from..to`, the waiting one among them if it belongs there.
    fn weight(&self, from: usize, to: usize, need: usize) -> usize {
        let waiting = if from <= self.waiting && (self.waiting < to || self.waiting == self.len() && to == self.len()) { need } else { 0 };
        self.sums[to] - self.sums[from] + waiting
    }
    fn key(&self, index: usize, out: &mut Vec<u8>) -> Checked<()> {
        out.clear();
        if index < self.left.len() { self.left.key(index, out) } else { self.right.key(index - self.left.len(), out) }
    }
    fn separator(&self, at: usize) -> Checked<Vec<u8>> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.key(at - 1, &mut before)?;
        self.key(at, &mut after)?;
        let len = shortest_separator(&before, &after).len();
        after.truncate(len);
        Ok(after)
    }
    fn size(&self, from: usize, to: usize, low: &[u8], high: Option<&[u8]>) -> usize {
        page_size(low, high, self.sums[to] - self.sums[from], to - from, true, 0)
    }
    /// The end of a page of F bytes that begins at record `from`, the waiting record counted.
    fn packed_end(&self, from: usize, need: usize) -> usize {
        self.filled_end(from, need, FULL)
    }
    /// The same for a page of `full` bytes.
    fn filled_end(&self, from: usize, need: usize, full: usize) -> usize {
        let prefix = self.left.prefix().map_or(0, <[u8]>::len);
        let limit = |to: usize| full - HEADER_SIZE + (to - from) * prefix;
        (from + 1..self.len()).take_while(|to| self.weight(from, *to, need) <= limit(*to)).last().unwrap_or(from + 1)
    }
    /// The left page full to F, the rest to the right, or as much as fits there.
    fn cut_packed(&self, need: usize) -> Checked<Option<PairCut>> {
        for at in self.packed_end(0, need)..self.len() {
            if let Some(cut) = self.cut_at(at)? {
                return Ok(Some(cut));
            }
        }
        Ok(None)
    }
    /// Two pages full to F, the rest in the third.
    fn cut_three_packed(&self, need: usize) -> Checked<Option<(PairCut, PairCut)>> {
        let first = self.packed_end(0, need).min(self.left.len().saturating_sub(1));
        if first == 0 {
            return Ok(None);
        }
        let second = self.packed_end(first, need).max(self.left.len() + 1);
        self.three_at(first, second)
    }
    /// What is over F in the left page with the waiting record goes right, or as much as fits there.
    fn cut_to_right(&self, need: usize) -> Checked<Option<PairCut>> {
        for at in self.packed_end(0, need)..self.left.len() {
            if let Some(cut) = self.cut_at(at)? {
                return Ok(Some(cut));
            }
        }
        Ok(None)
    }
    /// The lowest records of the right page go left: up to F, or if that is reached, what fits.
    fn cut_to_left(&self) -> Checked<Option<PairCut>> {
        let packed = self.packed_end(0, 0);
        if packed > self.left.len() {
            return self.cut_at(packed);
        }
        let mut best = None;
        for at in self.left.len() + 1..self.len() {
            match self.cut_at(at)? {
                Some(cut) => best = Some(cut),
                None => break,
            }
        }
        Ok(best)
    }
    /// The lowest records of the right page go left until that has `full` bytes, or as many of them as fit.
    fn cut_filling(&self, full: usize) -> Checked<Option<PairCut>> {
        for at in (self.left.len() + 1..=self.filled_end(0, 0, full)).rev() {
            if let Some(cut) = self.cut_at(at)? {
                return Ok(Some(cut));
            }
        }
        Ok(None)
    }
    fn cut_at(&self, at: usize) -> Checked<Option<PairCut>> {
        if at == 0 || at >= self.len() || at == self.left.len() {
            return Ok(None);
        }
        let separator = self.separator(at)?;
        let fits = self.size(0, at, self.left.low()?, Some(&separator)) <= PAGE_SIZE
            && self.size(at, self.len(), &separator, self.right.high()?) <= PAGE_SIZE;
        Ok(fits.then_some(PairCut { at, separator }))
    }
    /// The cut that leaves both pages equally full with the waiting record in.
    fn cut_even(&self, need: usize) -> Checked<Option<PairCut>> {
        let total = self.weight(0, self.len(), need);
        let at = (1..self.len()).min_by_key(|at| (self.weight(0, *at, need) * 2).abs_diff(total));
        match at {
            Some(at) => self.cut_at(at),
            None => Ok(None),
        }
    }
    /// Two cuts that leave three pages equally full.
    fn cut_three(&self, need: usize) -> Checked<Option<(PairCut, PairCut)>> {
        let total = self.weight(0, self.len(), need);
        let closest = |part: usize, range: std::ops::Range<usize>| range.min_by_key(|at| (self.weight(0, *at, need) * 3).abs_diff(total * part));
        // The middle page takes from both.
        let first = closest(1, 1..self.left.len().max(1));
        let second = closest(2, self.left.len() + 1..self.len());
        let (Some(first), Some(second)) = (first, second) else { return Ok(None) };
        self.three_at(first, second)
    }
    fn three_at(&self, first: usize, second: usize) -> Checked<Option<(PairCut, PairCut)>> {
        if second >= self.len() || first >= second {
            return Ok(None);
        }
        let (low, high) = (self.separator(first)?, self.separator(second)?);
        let fits = self.size(0, first, self.left.low()?, Some(&low)) <= PAGE_SIZE
            && self.size(first, second, &low, Some(&high)) <= PAGE_SIZE
            && self.size(second, self.len(), &high, self.right.high()?) <= PAGE_SIZE;
        Ok(fits.then_some((PairCut { at: first, separator: low }, PairCut { at: second, separator: high })))
    }
}
