//! Descent: optimistic through the inner pages, holding no latch while it waits, moving right where a split has gone ahead.

use super::{BTree, corrupt, count};
use crate::buffer::{Access, ExclusiveGuard, LatchClass, OptimisticGuard, SharedGuard};
use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::page::slotted::layout::{DELETED, FLAGS, INCOMPLETE_SPLIT, INDEX_ID, LEVEL, PAGE_ID, PAGE_SIZE, PAGE_TYPE_TREE, RIGHT_LINK, TYPE};
use crate::page::slotted::read::{self, Checked};
use crate::page::slotted::{Corrupt, Node, PageBytes, Range};
use crate::sync::Ordering::Relaxed;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::Deref;

/// Deepest tree: two children a page would still hold 2^32 leaves.
pub(super) const LEVELS_MAX: usize = 32;

/// Restarts after which a descent sees to free frames.
const CHASES: u32 = 64;

/// What a descent looks for.
#[derive(Clone, Copy)]
pub(super) enum Target<'k> {
    /// The page whose range holds the key.
    Key(&'k [u8]),
    /// The page that holds the keys just below the bound; `None` is above every key.
    Below(Option<&'k [u8]>),
}

impl Target<'_> {
    fn range<P: PageBytes + ?Sized>(self, page: &P) -> Checked<Range> {
        match self {
            Target::Key(key) => read::range_of(page, key),
            Target::Below(bound) => read::range_below(page, bound),
        }
    }
    fn child<P: PageBytes + ?Sized>(self, page: &P) -> Checked<u64> {
        let slot = match self {
            Target::Key(key) => read::child_slot(page, key)?,
            Target::Below(bound) => read::child_slot_below(page, bound)?,
        };
        read::child(page, slot)
    }
}

/// The inner pages a descent came through, by level: where to look first for a parent. Only a hint.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pages: [PageId; LEVELS_MAX],
    /// An inner page left by its right link although its split is incomplete, and its level: to be finished by a writer.
    pub incomplete: Option<(PageId, u8)>,
}

impl Default for Path {
    fn default() -> Path {
        Path { pages: [PageId::NONE; LEVELS_MAX], incomplete: None }
    }
}

impl Path {
    pub fn at(&self, level: u8) -> PageId {
        self.pages.get(level as usize).copied().unwrap_or(PageId::NONE)
    }
    fn set(&mut self, level: u8, page: PageId) {
        if let Some(entry) = self.pages.get_mut(level as usize) {
            *entry = page;
        }
    }
}

impl PageBytes for OptimisticGuard<'_> {
    #[inline]
    fn u8(&self, at: usize) -> u8 {
        OptimisticGuard::u8(self, at)
    }
    #[inline]
    fn u16(&self, at: usize) -> u16 {
        OptimisticGuard::u16(self, at)
    }
    #[inline]
    fn u64(&self, at: usize) -> u64 {
        OptimisticGuard::u64(self, at)
    }
    #[inline]
    fn u64_unaligned(&self, at: usize) -> u64 {
        let (word, shift) = (at & !7, (at & 7) * 8);
        let low = OptimisticGuard::u64(self, word) >> shift;
        if shift == 0 { low } else { low | OptimisticGuard::u64(self, (word + 8).min(PAGE_SIZE - 8)) << (64 - shift) }
    }
    #[inline]
    fn compare(&self, at: usize, len: usize, key: &[u8]) -> Checked<Ordering> {
        if at + len > PAGE_SIZE {
            return Err(Corrupt("bytes outside the page"));
        }
        Ok(OptimisticGuard::compare(self, at, len, key))
    }
}

enum Step {
    Here,
    Right(PageId, bool),
    Down(PageId, u8),
    Lost,
    /// The tree is not that high.
    TooLow,
}

/// Where a latched page stands to a target.
pub(super) enum Standing {
    Here,
    Right(PageId),
    /// Not the page it was: begin again at the root.
    Lost,
}

impl BTree {
    /// The page of `level` for the target; the caller latches it and checks again. `None` when the root is below that level.
    pub(super) fn descend(&self, target: Target, level: u8, path: &mut Path) -> Result<Option<PageId>> {
        let mut rounds = 0u32;
        loop {
            if let Some(found) = self.try_descend(target, level, path)? {
                return Ok(found);
            }
            self.note_restart(&mut rounds)?;
        }
    }

    /// As `descend` to a leaf, but the last leaf's parent, which the path has, is looked at first: for keys that follow each other.
    pub(super) fn descend_near(&self, key: &[u8], path: &mut Path) -> Result<Option<PageId>> {
        let parent = path.at(1);
        if !parent.is_none() && self.pool().is_resident(parent) {
            let guard = self.pool().optimistic(parent)?;
            let child = self.child_under(&guard, key);
            if guard.validate() && child.is_some() {
                return Ok(child);
            }
        }
        self.descend(Target::Key(key), 0, path)
    }

    /// The leaf of the key if the page is its parent.
    fn child_under(&self, page: &OptimisticGuard, key: &[u8]) -> Option<PageId> {
        let is_parent = self.owns(page) && page.u8(LEVEL) == 1 && read::range_of(page, key) == Ok(Range::Inside);
        if is_parent { Target::Key(key).child(page).ok().map(PageId) } else { None }
    }

    /// Counts a restart; a descent that never ends is a broken tree.
    pub(super) fn note_restart(&self, rounds: &mut u32) -> Result<()> {
        count(&self.stats().restarts);
        *rounds += 1;
        if *rounds > 4 {
            crate::sync::thread::yield_now();
        }
        if rounds.is_multiple_of(CHASES) {
            // Where nearly all pages in memory are dirty, the few others drive each other out: a child its parent, then that the child.
            self.pool().keep_free(LEVELS_MAX)?;
        }
        if *rounds > 10_000_000 {
            return Err(Error::corrupt(self.root(), "a descent does not end"));
        }
        Ok(())
    }

    /// One attempt; the outer `None` is a restart.
    fn try_descend(&self, target: Target, level: u8, path: &mut Path) -> Result<Option<Option<PageId>>> {
        let pool = self.pool();
        let mut page = self.root();
        let mut guard = pool.optimistic(page)?;
        loop {
            let step = match self.step(&guard, page, target, level) {
                // What was read is of one state of the page only if its version still holds, the error as well.
                _ if !guard.validate() => return Ok(None),
                Ok(step) => step,
                Err(e) => return Err(corrupt(page, e)),
            };
            let next = match step {
                Step::Here => return Ok(Some(Some(page))),
                Step::TooLow => return Ok(Some(None)),
                Step::Lost => return Ok(None),
                Step::Right(next, incomplete) => {
                    count(&self.stats().moves_right);
                    if incomplete {
                        path.incomplete = Some((page, guard.u8(LEVEL)));
                    }
                    next
                }
                Step::Down(child, from) => {
                    path.set(from, page);
                    if from == level + 1 {
                        return Ok(Some(Some(child)));
                    }
                    child
                }
            };
            let next_guard = pool.optimistic(next)?;
            // Validating the source after reading the target's version makes reuse of page ids safe (I8).
            if !guard.validate() {
                return Ok(None);
            }
            (page, guard) = (next, next_guard);
        }
    }

    #[inline]
    fn step(&self, page: &OptimisticGuard, id: PageId, target: Target, level: u8) -> Checked<Step> {
        if !self.owns(page) {
            return if id == self.root() { Err(Corrupt("root is not a page of its tree")) } else { Ok(Step::Lost) };
        }
        let here = page.u8(LEVEL);
        if here < level {
            return Ok(if id == self.root() { Step::TooLow } else { Step::Lost });
        }
        // The root covers every key.
        if id != self.root() {
            match target.range(page)? {
                Range::Below => return Ok(Step::Lost),
                Range::Above => return Ok(Step::Right(PageId(page.u64(RIGHT_LINK)), page.u16(FLAGS) & INCOMPLETE_SPLIT != 0)),
                Range::Inside => {}
            }
        }
        if here == level {
            return Ok(Step::Here);
        }
        Ok(Step::Down(PageId(target.child(page)?), here))
    }

    /// A live page of this tree.
    #[inline]
    pub(super) fn owns<P: PageBytes + ?Sized>(&self, page: &P) -> bool {
        page.u8(TYPE) == PAGE_TYPE_TREE
            && page.u16(FLAGS) & DELETED == 0
            && (page.u16(INDEX_ID) as u32 | (page.u16(INDEX_ID + 2) as u32) << 16) == self.index().0
            && (self.inner.loading.load(Relaxed) == 0 || !self.is_loading(PageId(page.u64(PAGE_ID))))
    }

    /// A latched page is the one for the target exactly if it is a live page of this tree and level whose range holds it (I3).
    pub(super) fn standing(&self, page: &[u8], id: PageId, target: Target, level: u8) -> Result<Standing> {
        if !self.owns(page) || page.u8(LEVEL) != level {
            return Ok(Standing::Lost);
        }
        Ok(match target.range(page).map_err(|e| corrupt(id, e))? {
            Range::Below => Standing::Lost,
            Range::Inside => Standing::Here,
            Range::Above => match page.u64(RIGHT_LINK) {
                0 => return Err(Error::corrupt(id, "high key without a right link")),
                right => Standing::Right(PageId(right)),
            },
        })
    }

    /// Latches the leaf for the target shared, beginning at `hint` if there is one.
    pub(super) fn leaf_shared(&self, target: Target, hint: PageId, access: Access, path: &mut Path) -> Result<SharedGuard<'_>> {
        let leaf = self.page_shared(target, 0, hint, access, path)?;
        Ok(leaf.expect("every tree has leaves"))
    }

    /// Latches the page of `level` for the target shared, beginning at `hint` if there is one. `None` when the tree is lower than that.
    pub(super) fn page_shared(&self, target: Target, level: u8, hint: PageId, access: Access, path: &mut Path) -> Result<Option<SharedGuard<'_>>> {
        self.latch_page(target, level, hint, path, |page| self.pool().fix_shared_as(page, access))
    }

    /// Latches the page of `level` for the target with `fix`, beginning at `page` if there is one. `None` when the tree is lower than that.
    #[inline]
    fn latch_page<G: Deref<Target = [u8]>>(
        &self,
        target: Target,
        level: u8,
        mut page: PageId,
        path: &mut Path,
        fix: impl Fn(PageId) -> Result<G>,
    ) -> Result<Option<G>> {
        let mut rounds = 0;
        loop {
            if page.is_none() {
                match self.descend(target, level, path)? {
                    Some(found) => page = found,
                    None => return Ok(None),
                }
            }
            let guard = fix(page)?;
            match self.standing(&guard, page, target, level)? {
                Standing::Here => return Ok(Some(guard)),
                // Released before the next is latched: its fences tell whether it still is the one.
                Standing::Right(next) => {
                    count(&self.stats().moves_right);
                    page = next;
                }
                Standing::Lost => {
                    page = PageId::NONE;
                    drop(guard);
                    self.note_restart(&mut rounds)?;
                }
            }
        }
    }

    /// Latches a page for a structure modification.
    pub(super) fn fix_smo(&self, page: PageId) -> Result<ExclusiveGuard<'_>> {
        count(&self.stats().smo_latches);
        let guard = self.pool().fix_exclusive(page, LatchClass::Smo)?;
        if guard.waited() {
            count(&self.stats().smo_waits);
        }
        Ok(guard)
    }

    /// Latches the page of `level` for `key` for a structure modification, beginning at the path's page. `None` when the tree is lower than that.
    pub(super) fn page_smo(&self, key: &[u8], level: u8, path: &mut Path) -> Result<Option<ExclusiveGuard<'_>>> {
        self.latch_page(Target::Key(key), level, path.at(level), path, |page| self.fix_smo(page))
    }

    /// Reads the record of `key` under the leaf's shared latch; `f` must be short and may not wait.
    pub fn read<T>(&self, key: &[u8], f: impl FnOnce(Option<super::RecordRef<'_>>) -> T) -> Result<T> {
        self.read_place(key, |place| f(place.record()))
    }

    /// As `read`, of the key's place in the leaf.
    pub fn read_place<T>(&self, key: &[u8], f: impl FnOnce(&ReadPlace<'_>) -> T) -> Result<T> {
        let mut path = Path::default();
        let guard = self.leaf_shared(Target::Key(key), PageId::NONE, Access::Normal, &mut path)?;
        let node = Node(&guard);
        let id = guard.id();
        let (slot, found) = node.search(key).map_err(|e| corrupt(id, e))?;
        let record = if found { Some(super::record_ref(node, slot).map_err(|e| corrupt(id, e))?) } else { None };
        Ok(f(&ReadPlace { node, slot, record }))
    }
}

/// Where a key is or would be in its leaf; valid under the leaf's latch.
pub struct ReadPlace<'a> {
    node: Node<'a>,
    slot: usize,
    record: Option<super::RecordRef<'a>>,
}

impl<'a> ReadPlace<'a> {
    pub fn record(&self) -> Option<super::RecordRef<'a>> {
        self.record
    }

    /// The keys of the records before and behind it in this leaf.
    pub fn neighbours(&self) -> [Option<SmallVec<[u8; 64]>>; 2] {
        let behind = self.slot + self.record.is_some() as usize;
        [self.slot.checked_sub(1), (behind < self.node.len()).then_some(behind)].map(|slot| {
            let slot = slot?;
            let parts = self.node.prefix().and_then(|prefix| Ok((prefix, self.node.suffix(slot)?)));
            // The page passed its checksum, so a bad offset here is a broken invariant: stop.
            let (prefix, suffix) = parts.unwrap_or_else(|e| panic!("page {} is corrupt: {}", self.node.page_id(), e.0));
            let mut key = SmallVec::from_slice(prefix);
            key.extend_from_slice(suffix);
            Some(key)
        })
    }
}
