//! Building a tree bottom-up from ascending records: every page is made once, and is full once 15/16 of it are, or less if so asked; its
//! content is not logged.
//!
//! The pages hang nowhere until [`BTree::attach`] makes the (empty) root their parent in one log record; before that record they must be
//! on disk, for nothing could redo them. See README.md, "Bulk load".

use super::split_point::{FULL, page_size, shortest_separator};
use super::modify::{Cursor, Unfinished};
use super::{BTree, corrupt, meta, record_ref};
use crate::buffer::{Access, ExclusiveGuard, LatchClass, Scope, WriteBehind, Writer};
use crate::error::{Error, Result};
use crate::ids::{Lsn, PageId, TxnId};
use crate::overflow::{self, OverflowRef};
use crate::page::slotted::edit::Builder;
use crate::page::slotted::layout::{PAGE_SIZE, SLOT_SIZE};
use crate::page::slotted::node::Trend;
use crate::page::slotted::op::{self, Records};
use crate::page::slotted::{Checked, Frame, Node, read};
use crate::space::PageRun;
use crate::sync::Ordering;
use std::collections::VecDeque;

/// The pages of a tree in the making.
pub(crate) struct TreeLoad {
    tree: BTree,
    txn: TxnId,
    /// Bytes from which on a page is full.
    full: usize,
    /// The page being filled on each level, leaves first.
    levels: Vec<Pending>,
    /// Pages for the tree, and pages for long values: they do not lie between the leaves.
    nodes: Supply,
    long: Supply,
    runs: Vec<PageRun>,
    first_leaf: PageId,
    written: WriteBehind,
}

/// Pages that are taken a run at a time.
struct Supply {
    /// Not used yet.
    spare: PageRun,
    /// Of the record that allocated the last run.
    lsn: Lsn,
    /// The last runs, which are not to be written to disk yet, and how many those are.
    recent: VecDeque<PageRun>,
    recent_max: usize,
}

impl Supply {
    fn new(recent_max: usize) -> Supply {
        Supply { spare: PageRun { first: PageId::NONE, pages: 0 }, lsn: Lsn::NONE, recent: VecDeque::new(), recent_max }
    }

    /// So many pages beside each other, or fewer, of a new run if there are none. `runs` get that, `written` one that is full.
    fn take(
        &mut self,
        pages: u32,
        take: &mut dyn FnMut() -> Result<(PageRun, Lsn)>,
        runs: &mut Vec<PageRun>,
        written: &mut WriteBehind,
    ) -> Result<PageRun> {
        if self.spare.pages == 0 {
            (self.spare, self.lsn) = take()?;
            runs.push(self.spare);
            self.recent.push_back(self.spare);
            if self.recent.len() > self.recent_max
                && let Some(full) = self.recent.pop_front()
            {
                written.add(full)?;
            }
        }
        let run = PageRun { first: self.spare.first, pages: self.spare.pages.min(pages) };
        self.spare = PageRun { first: PageId(run.first.0 + u64::from(run.pages)), pages: self.spare.pages - run.pages };
        Ok(run)
    }
}

/// What an entry of a pending page is: key, then everything that follows it in the record.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// (key start, key end, record end)
    entries: Vec<(usize, usize, usize)>,
    low: Vec<u8>,
    /// Given when the left neighbour is closed; a level's first page gets its own when it is closed.
    id: Option<PageId>,
    /// Pages of this level written so far.
    closed: u64,
}

impl Pending {
    fn len(&self) -> usize {
        self.entries.len()
    }
    fn key(&self, i: usize) -> &[u8] {
        &self.bytes[self.entries[i].0..self.entries[i].1]
    }
    fn body(&self, i: usize) -> &[u8] {
        &self.bytes[self.entries[i].1..self.entries[i].2]
    }
    /// `body`: in parts.
    fn push(&mut self, key: &[u8], body: [&[u8]; 3]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        body.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.entries.push((start, start + key.len(), self.bytes.len()));
    }
    fn pop(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (start, middle, end) = self.entries.pop()?;
        let entry = (self.bytes[start..middle].to_vec(), self.bytes[middle..end].to_vec());
        self.bytes.truncate(start);
        Some(entry)
    }
    /// Bytes of the page if it ends before `high` and holds `more` bytes of one more record.
    fn size(&self, leaf: bool, high: Option<&[u8]>, more: Option<usize>) -> usize {
        let count = self.len() + usize::from(more.is_some());
        let full = self.bytes.len() + self.len() * SLOT_SIZE + more.map_or(0, |more| more + SLOT_SIZE);
        let first_key = if self.len() > 0 { self.entries[0].1 - self.entries[0].0 } else { 0 };
        page_size(&self.low, high, full, count, leaf, first_key)
    }
}

/// What goes into the root.
pub(crate) struct Top {
    level: u8,
    image: Vec<u8>,
    children: Vec<(Vec<u8>, u64)>,
}

impl TreeLoad {
    /// A load of `tree`, whose records will be `txn`'s. `fill_factor`: percent of each page to be filled; 100 leaves 1/16.
    pub fn new(tree: BTree, txn: TxnId, fill_factor: u8) -> TreeLoad {
        let full = (PAGE_SIZE * usize::from(fill_factor) / 100).min(FULL);
        let written = WriteBehind::new(tree.inner.pool.clone());
        // The last page of the run before the present one may wait for its neighbour. A page that waits on an upper level is written twice.
        let (nodes, long) = (Supply::new(2), Supply::new(1));
        TreeLoad { tree, txn, full, levels: vec![Pending::default()], nodes, long, runs: Vec::new(), first_leaf: PageId::NONE, written }
    }

    /// Writes a value that is too long for a leaf. Its record has the reference.
    pub fn write_long(&mut self, value: &[u8], take: &mut dyn FnMut() -> Result<(PageRun, Lsn)>) -> Result<OverflowRef> {
        let TreeLoad { tree, long, runs, written, .. } = self;
        overflow::write_unlogged(tree.pool(), tree.index(), value, |pages| {
            let run = long.take(pages, take, runs, written)?;
            Ok((run, long.lsn))
        })
    }

    /// Adds a record above all before it. `take` gives a run of pages and the LSN of the record that allocated it.
    pub fn push(&mut self, key: &[u8], flags: u16, value: &[u8], take: &mut dyn FnMut() -> Result<(PageRun, Lsn)>) -> Result<()> {
        super::modify::check_key(key)?;
        super::modify::check_value(key, value)?;
        let (meta, len) = (meta(self.txn, flags).to_le_bytes(), (value.len() as u16).to_le_bytes());
        self.add(0, key, [&meta, &len, value], take)
    }

    fn add(&mut self, level: usize, key: &[u8], body: [&[u8]; 3], take: &mut dyn FnMut() -> Result<(PageRun, Lsn)>) -> Result<()> {
        if self.levels.len() == level {
            self.levels.push(Pending::default());
        }
        let length: usize = body.iter().map(|part| part.len()).sum();
        let page = &self.levels[level];
        debug_assert!(page.len() == 0 || page.key(page.len() - 1) < key, "a load's keys ascend");
        if page.len() > 0 {
            // The next key stands in for the high fence, which only the record after it decides; `close` looks again.
            let with = page.size(level == 0, Some(key), Some(key.len() + length));
            // As where appends meet a page: it takes a record as long as it is not full before.
            let before = with.saturating_sub(key.len() + length + SLOT_SIZE);
            if with > PAGE_SIZE || before >= self.full {
                self.close(level, key, take)?;
            }
        }
        self.levels[level].push(key, body);
        Ok(())
    }

    /// Ends the pending page of a level before `next`, writes it, and begins the one after it.
    fn close(&mut self, level: usize, next: &[u8], take: &mut dyn FnMut() -> Result<(PageRun, Lsn)>) -> Result<()> {
        let mut carry: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let high = loop {
            let page = &mut self.levels[level];
            let next = carry.last().map_or(next, |(key, _)| key.as_slice());
            let last = page.key(page.len() - 1);
            let high = if level == 0 { shortest_separator(last, next) } else { next };
            if page.len() == 1 || page.size(level == 0, Some(high), None) <= PAGE_SIZE {
                break high.to_vec();
            }
            carry.extend(page.pop());
        };
        let id = self.page_id(level, take)?;
        if level == 0 && self.first_leaf.is_none() {
            self.first_leaf = id;
        }
        let right = self.take_page(take)?;
        self.write(level, id, right, Some(&high), Trend::default())?;
        let page = &mut self.levels[level];
        let low = std::mem::replace(&mut page.low, high);
        page.bytes.clear();
        page.entries.clear();
        page.id = Some(right);
        page.closed += 1;
        self.add(level + 1, &low, [&id.0.to_le_bytes(), &[], &[]], take)?;
        for (key, body) in carry.into_iter().rev() {
            self.add(level, &key, [&body, &[], &[]], take)?;
        }
        Ok(())
    }

    fn page_id(&mut self, level: usize, take: &mut dyn FnMut() -> Result<(PageRun, Lsn)>) -> Result<PageId> {
        match self.levels[level].id {
            Some(id) => Ok(id),
            None => self.take_page(take),
        }
    }

    fn take_page(&mut self, take: &mut dyn FnMut() -> Result<(PageRun, Lsn)>) -> Result<PageId> {
        Ok(self.nodes.take(1, take, &mut self.runs, &mut self.written)?.first)
    }

    /// Fills `image` with the pending page of a level.
    fn build(&self, image: &mut [u8], level: usize, id: PageId, right: PageId, high: Option<&[u8]>, trend: Trend) -> Checked<()> {
        let page = &self.levels[level];
        let frame = Frame {
            page_id: id.0,
            index_id: self.tree.index().0,
            level: level as u8,
            flags: 0,
            right_link: right.0,
            low: &page.low,
            high,
            max_txn: 0,
            trend,
        };
        let mut builder = Builder::new(image, &frame)?;
        for i in 0..page.len() {
            builder.push(&[], page.key(i), page.body(i))?;
        }
        builder.finish()
    }

    fn write(&self, level: usize, id: PageId, right: PageId, high: Option<&[u8]>, trend: Trend) -> Result<()> {
        let mut guard = self.tree.pool().fix_new(id)?;
        self.build(guard.bytes_mut(), level, id, right, high, trend).map_err(|e| corrupt(id, e))?;
        // Above every record of the page's earlier life, below every one to come: those follow the run's allocation.
        self.tree.pool().mark_unlogged(&mut guard, self.nodes.lsn);
        Ok(())
    }

    /// Makes the last page of every level but the top one, which is left for the root.
    pub fn finish(&mut self, take: &mut dyn FnMut() -> Result<(PageRun, Lsn)>) -> Result<Top> {
        let mut level = 0;
        loop {
            let mut carry = Vec::new();
            while self.levels[level].len() > 1 && self.levels[level].size(level == 0, None, None) > PAGE_SIZE {
                carry.extend(self.levels[level].pop());
            }
            if let Some((next, _)) = carry.last() {
                let next = next.clone();
                self.close(level, &next, take)?;
                for (key, body) in carry.into_iter().rev() {
                    self.add(level, &key, [&body, &[], &[]], take)?;
                }
                continue;
            }
            let page = &self.levels[level];
            if page.closed == 0 {
                break;
            }
            // Appends go on where the load ended.
            let trend = Trend { last_slot: (page.len() - 1) as u16, run: u8::MAX, top: u8::MAX, bottom: 0 };
            let id = self.page_id(level, take)?;
            self.write(level, id, PageId::NONE, None, trend)?;
            let low = std::mem::take(&mut self.levels[level].low);
            self.add(level + 1, &low, [&id.0.to_le_bytes(), &[], &[]], take)?;
            level += 1;
        }
        self.top(level).map_err(|e| corrupt(self.tree.root(), e))
    }

    fn top(&self, level: usize) -> Checked<Top> {
        let page = &self.levels[level];
        let mut top = Top { level: level as u8, image: Vec::new(), children: Vec::new() };
        if level == 0 {
            top.image.resize(PAGE_SIZE, 0);
            self.build(&mut top.image, 0, self.tree.root(), PageId::NONE, None, Trend::default())?;
        } else {
            for i in 0..page.len() {
                let child = page.body(i).first_chunk::<8>().map(|c| u64::from_le_bytes(*c));
                top.children.push((page.key(i).to_vec(), child.unwrap_or_default()));
            }
        }
        Ok(top)
    }

    /// Writes every page to disk, durably.
    pub fn write_out(&mut self) -> Result<()> {
        self.written.finish(&self.runs)
    }

    /// Shows every record that was loaded, in order, in its page.
    pub fn for_each(&self, top: &Top, mut f: impl FnMut(Node<'_>, usize) -> Result<()>) -> Result<()> {
        if top.level == 0 {
            let node = Node(&top.image);
            return (0..node.len()).try_for_each(|slot| f(node, slot));
        }
        let mut next = self.first_leaf;
        while !next.is_none() {
            let page = self.tree.pool().fix_shared_as(next, Access::Scan)?;
            let node = Node(&page);
            (0..node.len()).try_for_each(|slot| f(node, slot))?;
            next = PageId(node.right_link());
        }
        Ok(())
    }

    /// Flags and value of the record of a key that was loaded.
    pub fn get(&self, top: &Top, key: &[u8]) -> Result<Option<(u16, Vec<u8>)>> {
        let in_leaf = |node: Node<'_>| -> Checked<Option<(u16, Vec<u8>)>> {
            let (slot, found) = node.search(key)?;
            let record = if found { Some(record_ref(node, slot)?) } else { None };
            Ok(record.map(|record| (record.flags, record.value.to_vec())))
        };
        let Some(last) = top.children.len().checked_sub(1) else {
            return in_leaf(Node(&top.image)).map_err(|e| corrupt(self.tree.root(), e));
        };
        // The first child has the lowest keys of all.
        let next = top.children.iter().skip(1).position(|(low, _)| low.as_slice() > key).unwrap_or(last);
        let mut id = PageId(top.children[next].1);
        loop {
            let page = self.tree.pool().fix_shared_as(id, Access::Scan)?;
            let node = Node(&page);
            if node.is_leaf() {
                return in_leaf(node).map_err(|e| corrupt(id, e));
            }
            let child = read::child_slot(&*page, key).and_then(|slot| read::child(&*page, slot));
            id = PageId(child.map_err(|e| corrupt(id, e))?);
        }
    }

    /// The runs that were taken.
    pub fn runs(&self) -> &[PageRun] {
        &self.runs
    }

    /// Pages that were taken and hold nothing.
    pub fn unused(&self) -> impl Iterator<Item = PageRun> + use<> {
        [self.nodes.spare, self.long.spare].into_iter().filter(|run| run.pages > 0)
    }
}

impl BTree {
    /// Whether the page is one of a load that is not attached: whoever comes upon it by an old pointer is not to take it for the tree's.
    pub(super) fn is_loading(&self, page: PageId) -> bool {
        self.inner.unattached.lock().iter().any(|run| (run.first.0..run.first.0 + run.pages as u64).contains(&page.0))
    }

    /// Some load is not attached.
    pub(crate) fn has_loads(&self) -> bool {
        self.inner.loading.load(Ordering::Relaxed) > 0
    }

    /// The run is about to be filled by a load. Before the first of its pages looks like one of the tree.
    pub(crate) fn begin_loading(&self, run: PageRun) {
        self.inner.unattached.lock().push(run);
        self.inner.loading.fetch_add(1, Ordering::Relaxed);
    }

    /// The run's pages are attached, or free and no longer like pages of the tree.
    pub(crate) fn end_loading(&self, run: PageRun) {
        let mut unattached = self.inner.unattached.lock();
        // They go newest first.
        if let Some(at) = unattached.iter().rposition(|r| *r == run) {
            unattached.swap_remove(at);
            self.inner.loading.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// True if the tree is one empty leaf.
    pub(crate) fn is_empty_root(&self) -> Result<bool> {
        let root = self.pool().fix_shared(self.root())?;
        let node = Node(&root);
        Ok(node.level() == 0 && node.len() == 0)
    }

    /// Removes the record of `key` if `may` says so of its transaction, and frees the pages of an overflow value, in one log record.
    pub(crate) fn remove_freeing(&self, cursor: &mut Cursor, key: &[u8], may: impl Fn(TxnId) -> bool, runs: &[PageRun], writer: Writer) -> Result<Lsn> {
        let mut scope = self.pool().scope(writer)?;
        let mut unfinished = Unfinished::new();
        let mut leaf = self.leaf_exclusive(cursor, key, None, &mut unfinished)?;
        let id = leaf.id();
        let node = Node(&leaf);
        let (slot, found) = node.search(key).map_err(|e| corrupt(id, e))?;
        if !found || !may(record_ref(node, slot).map_err(|e| corrupt(id, e))?.txn) {
            return Ok(Lsn::NONE);
        }
        let used_before = node.used();
        for run in runs {
            self.space().free_run(&mut scope, *run)?;
        }
        let mut payload = Vec::new();
        op::remove_payload(&mut payload, slot);
        scope.apply(&mut leaf, op::REMOVE, &payload)?;
        let lsn = scope.commit()?;
        let cold = self.is_cold(&leaf, used_before);
        drop(leaf);
        self.finish(&unfinished);
        if cold {
            self.merge_quietly(key);
        }
        Ok(lsn)
    }

    /// Latches the root, to put what was loaded under it. None if the tree is not empty, or `hindered` says, under the root's latch, that it may
    /// not be.
    pub(crate) fn begin_attach(&self, top: &Top, hindered: impl FnOnce() -> bool) -> Result<Option<LatchedRoot<'_>>> {
        let root = self.root();
        let page = self.pool().fix_exclusive(root, LatchClass::Smo)?;
        let node = Node(&page);
        if node.level() != 0 || node.len() != 0 || hindered() {
            return Ok(None);
        }
        if node.right_link() != 0 {
            return Err(Error::corrupt(root, "a root with a right link"));
        }
        let mut payload = Vec::new();
        let frame = Frame::empty(root.0, self.index().0, top.level);
        let children: Vec<(&[u8], u64)> = top.children.iter().map(|(key, child)| (key.as_slice(), *child)).collect();
        let records = if top.level == 0 {
            let image = Node(&top.image);
            Records::Of(image, 0, image.len())
        } else {
            Records::Children(&children)
        };
        op::format_payload(&mut payload, &frame, records, Records::None).map_err(|e| corrupt(root, e))?;
        Ok(Some(LatchedRoot { page, payload }))
    }
}

/// An empty root that is about to get what was loaded, to be held until the pages count as the tree's.
pub(crate) struct LatchedRoot<'p> {
    page: ExclusiveGuard<'p>,
    payload: Vec<u8>,
}

impl LatchedRoot<'_> {
    /// In the scope's record.
    pub fn fill(&mut self, scope: &mut Scope<'_>) -> Result<()> {
        scope.apply(&mut self.page, op::FORMAT, &self.payload)
    }
}
