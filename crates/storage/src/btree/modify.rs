//! Changing one record: find its leaf, latch it, let the caller decide, log and apply.

use super::search::{Path, Target};
use super::split_point::Plan;
use super::{BTree, RecordRef, corrupt, count, meta, record_ref};
use crate::buffer::{ExclusiveGuard, LatchClass, Writer};
use crate::error::{Error, Result};
use crate::ids::{Lsn, PageId, TxnId};
use crate::page::slotted::layout::{INCOMPLETE_SPLIT, LEAF_OVERHEAD};
use crate::page::slotted::{MAX_INLINE_RECORD, MAX_KEY_LEN, Node, fits_inline, op};
use crate::space::Reserved;
use smallvec::SmallVec;

/// What the caller of [`BTree::modify`] wants done with the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Insert the record or replace it; the value is [`Change::value`].
    Put { txn: TxnId, flags: u16 },
    /// Take the record out of the page.
    Remove,
    /// Nothing.
    Leave,
    /// In a batch: nothing, and the batch ends before this key.
    Stop,
}

/// Buffers the caller fills (in a batch only `undo`); kept in the cursor, so nothing is allocated per change.
#[derive(Default)]
pub struct Change {
    /// The new value of a [`Decision::Put`].
    pub value: Vec<u8>,
    /// Added to the log record's undo bytes.
    pub undo: Vec<u8>,
}

/// What a session keeps between changes of one tree or several: the leaf it was at, and buffers.
#[derive(Default)]
pub struct Cursor {
    pub(super) hint: Option<Hint>,
    pub(super) change: Change,
    pub(super) payload: Vec<u8>,
    pub(super) path: Path,
    pub(super) batch: super::batch::Steps,
    pub(super) ahead: super::batch::Ahead,
    spare: Option<Hint>,
}

/// The cached leaf: worth a latch only for keys between its fences as they were.
#[derive(Default)]
pub(super) struct Hint {
    tree: PageId,
    page: PageId,
    low: Vec<u8>,
    high: Vec<u8>,
    bounded: bool,
}

impl Cursor {
    pub fn new() -> Cursor {
        Cursor::default()
    }

    fn hinted(&self, tree: &BTree, key: &[u8]) -> Option<PageId> {
        let hint = self.hint.as_ref()?;
        // The leftmost leaf's low fence is empty. Comparing nothing is not free: memcmp may look at where it would be, and fault there.
        let above = hint.low.is_empty() || key >= hint.low.as_slice();
        let inside = hint.tree == tree.root() && above && (!hint.bounded || key < hint.high.as_slice());
        inside.then_some(hint.page)
    }

    pub(super) fn remember(&mut self, tree: &BTree, node: Node, page: PageId) {
        let (Ok(low), Ok(high)) = (node.low(), node.high()) else { return };
        let mut hint = self.hint.take().or_else(|| self.spare.take()).unwrap_or_default();
        hint.tree = tree.root();
        hint.page = page;
        hint.low.clear();
        hint.low.extend_from_slice(low);
        hint.high.clear();
        hint.high.extend_from_slice(high.unwrap_or_default());
        hint.bounded = high.is_some();
        self.hint = Some(hint);
    }

    pub(super) fn forget(&mut self) {
        if let Some(hint) = self.hint.take() {
            self.spare = Some(hint);
        }
    }
}

/// A key's place in its latched leaf.
pub struct Place<'a> {
    slot: usize,
    record: Option<RecordRef<'a>>,
}

impl<'a> Place<'a> {
    pub(super) fn at(slot: usize, record: Option<RecordRef<'a>>) -> Place<'a> {
        Place { slot, record }
    }

    /// The record of the key.
    pub fn record(&self) -> Option<RecordRef<'a>> {
        self.record
    }
}

/// What a round of an operation found out for the next.
#[derive(Default)]
pub(super) struct Rounds {
    /// Pages for a split.
    pub reserved: Option<Reserved>,
    /// Siblings could not take anything: split by oneself.
    pub alone: bool,
    count: u32,
}

/// Rounds of sharing after which the writer splits the page alone, so that it ends.
pub(super) const SHARE_ROUNDS_MAX: u32 = 8;

pub(super) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY_LEN {
        return Err(Error::TooLarge { what: "key", size: key.len(), max: MAX_KEY_LEN });
    }
    Ok(())
}

pub(super) fn check_value(key: &[u8], value: &[u8]) -> Result<()> {
    if !fits_inline(key.len(), value.len()) {
        return Err(Error::TooLarge { what: "record", size: key.len() + value.len() + LEAF_OVERHEAD, max: MAX_INLINE_RECORD });
    }
    Ok(())
}

impl BTree {
    /// Changes the record of `key` as `f` decides. `f` runs under the leaf's exclusive latch: it must be short, may not wait, and
    /// may be called again (then only its last decision counts). Returns the log record's LSN, none if nothing was logged.
    ///
    /// On an error nothing was changed.
    pub fn modify(&self, cursor: &mut Cursor, key: &[u8], writer: Writer, mut f: impl FnMut(&Place<'_>, &mut Change) -> Decision) -> Result<Lsn> {
        check_key(key)?;
        let mut rounds = Rounds::default();
        loop {
            if let Some(lsn) = self.modify_once(cursor, key, writer, &mut f, &mut rounds)? {
                return Ok(lsn);
            }
        }
    }

    fn modify_once(
        &self,
        cursor: &mut Cursor,
        key: &[u8],
        writer: Writer,
        f: &mut impl FnMut(&Place<'_>, &mut Change) -> Decision,
        rounds: &mut Rounds,
    ) -> Result<Option<Lsn>> {
        let mut scope = self.pool().scope(writer)?;
        let mut unfinished = Unfinished::new();
        let mut leaf = self.leaf_exclusive(cursor, key, None, &mut unfinished)?;
        let id = leaf.id();
        let Cursor { change, payload, .. } = cursor;
        change.value.clear();
        change.undo.clear();
        let place = self.place(&leaf, key)?;
        if place.record.is_none() {
            Node(&leaf).prefetch_room();
        }
        let decision = f(&place, change);
        let (slot, old) = (place.slot, place.record.map(|r| r.value.len()));
        let node = Node(&leaf);
        let used_before = node.used();
        match decision {
            Decision::Leave | Decision::Stop => {
                return Ok(Some(Lsn::NONE));
            }
            Decision::Remove if old.is_none() => {
                return Ok(Some(Lsn::NONE));
            }
            Decision::Remove => {
                op::remove_payload(payload, slot);
                scope.add_undo(&change.undo);
                scope.apply(&mut leaf, op::REMOVE, payload)?;
                let lsn = scope.commit()?;
                let cold = self.is_cold(&leaf, used_before);
                drop(leaf);
                self.finish(&unfinished);
                if cold {
                    self.merge_quietly(key);
                }
                return Ok(Some(lsn));
            }
            Decision::Put { txn, flags } => {
                check_value(key, &change.value)?;
                let meta = meta(txn, flags);
                let plan = match old {
                    Some(old) if node.free() + old >= change.value.len() => {
                        op::replace_payload(payload, slot, meta, &change.value);
                        scope.add_undo(&change.undo);
                        scope.apply(&mut leaf, op::REPLACE, payload)?;
                        None
                    }
                    // A value that grows beyond its page: make room first, then come again.
                    Some(_) => Some(if node.len() < 2 { Plan::Middle } else { Plan::Share }),
                    None => {
                        let suffix = key.len() - node.prefix().map_err(|e| corrupt(id, e))?.len();
                        let need = suffix + LEAF_OVERHEAD + change.value.len();
                        let plan = self.plan_insert(node, slot, key, need).map_err(|e| corrupt(id, e))?;
                        if plan.is_none() {
                            op::insert_payload(payload, slot, 1);
                            op::push_leaf(payload, &key[key.len() - suffix..], meta, &change.value);
                            scope.add_undo(&change.undo);
                            scope.apply(&mut leaf, op::INSERT, payload)?;
                        }
                        plan
                    }
                };
                if let Some(plan) = plan {
                    if let Plan::Share | Plan::Late { .. } = plan
                        && !rounds.alone
                    {
                        let need = change.value.len() + LEAF_OVERHEAD + key.len();
                        drop(leaf);
                        drop(scope);
                        rounds.count += 1;
                        let made = self.make_room_reserved(cursor, key, need)?;
                        rounds.alone = !made || rounds.count >= SHARE_ROUNDS_MAX;
                        return Ok(None);
                    }
                    if rounds.reserved.is_none() {
                        // Pages are reserved holding no latch; what is found then may be another page.
                        drop(leaf);
                        drop(scope);
                        rounds.reserved = Some(self.space().reserve(self.index(), super::split::PAGES_MAX)?);
                        return Ok(None);
                    }
                    let lsn = self.split_leaf(cursor, scope, leaf, plan, slot, key, old.is_none().then_some(meta))?;
                    rounds.reserved = None;
                    self.finish(&unfinished);
                    self.finish_met(&mut cursor.path);
                    return Ok(lsn);
                }
            }
        }
        let lsn = scope.commit()?;
        drop(leaf);
        self.finish(&unfinished);
        self.finish_met(&mut cursor.path);
        Ok(Some(lsn))
    }

    /// `make_room` with the pages that it may need; the cursor looks for the leaf again. Called holding no latch.
    pub(super) fn make_room_reserved(&self, cursor: &mut Cursor, key: &[u8], need: usize) -> Result<bool> {
        let _reserved = self.space().reserve(self.index(), super::split::PAGES_MAX)?;
        cursor.forget();
        self.make_room(key, need, &mut cursor.path)
    }

    /// The place of `key` in its leaf.
    pub(super) fn place<'a>(&'a self, leaf: &'a ExclusiveGuard<'_>, key: &[u8]) -> Result<Place<'a>> {
        let node = Node(leaf);
        let (slot, found) = node.search(key).map_err(|e| corrupt(leaf.id(), e))?;
        let record = if found { Some(record_ref(node, slot).map_err(|e| corrupt(leaf.id(), e))?) } else { None };
        Ok(Place::at(slot, record))
    }

    /// Latches the leaf of `key` exclusively and notes the incomplete splits met on the way. `batch`: the key is one of many in their order; if it is
    /// not in the cursor's last leaf, that page is looked at first, unless it is none, then what is beside the last one.
    pub(super) fn leaf_exclusive(&self, cursor: &mut Cursor, key: &[u8], batch: Option<PageId>, unfinished: &mut Unfinished) -> Result<ExclusiveGuard<'_>> {
        let hinted = cursor.hinted(self, key);
        if let Some(page) = hinted {
            let guard = self.pool().fix_exclusive(page, LatchClass::Ordinary)?;
            if let super::search::Standing::Here = self.standing(&guard, page, Target::Key(key), 0)? {
                count(&self.stats().hint_hits);
                unfinished.note(&guard);
                return Ok(guard);
            }
        }
        count(&self.stats().hint_misses);
        let (mut expected, mut near) = (batch.unwrap_or(PageId::NONE), batch.is_some());
        let mut page = expected;
        let mut rounds = 0;
        loop {
            if page.is_none() {
                let path = &mut cursor.path;
                let found = if std::mem::take(&mut near) { self.descend_near(key, path) } else { self.descend(Target::Key(key), 0, path) };
                page = found?.unwrap_or(self.root());
            }
            let guard = self.pool().fix_exclusive(page, LatchClass::Ordinary)?;
            match self.standing(&guard, page, Target::Key(key), 0)? {
                super::search::Standing::Here => {
                    unfinished.note(&guard);
                    cursor.remember(self, Node(&guard), page);
                    return Ok(guard);
                }
                // Changed meanwhile, and perhaps far away.
                super::search::Standing::Right(_) | super::search::Standing::Lost if page == expected => {
                    expected = PageId::NONE;
                    page = PageId::NONE;
                }
                super::search::Standing::Right(next) => {
                    count(&self.stats().moves_right);
                    unfinished.note(&guard);
                    page = next;
                }
                super::search::Standing::Lost => {
                    page = PageId::NONE;
                    drop(guard);
                    self.note_restart(&mut rounds)?;
                }
            }
        }
    }

    /// Finishes splits met on the way whose own writer is not about to: after a crash, or when it failed. Their downlinks are
    /// not needed for the change that was made, so an error here is left for the next writer to meet.
    pub(super) fn finish(&self, unfinished: &Unfinished) {
        if unfinished.0.is_empty() {
            return;
        }
        for left in &unfinished.0 {
            if self.is_splitting(*left) {
                continue;
            }
            if self.finish_split(*left, 0).is_ok() {
                count(&self.stats().splits_finished);
            }
        }
    }
}

/// Leaves met with INCOMPLETE_SPLIT set.
pub(super) struct Unfinished(SmallVec<[PageId; 2]>);

impl Unfinished {
    pub fn new() -> Unfinished {
        Unfinished(SmallVec::new())
    }
    fn note(&mut self, page: &ExclusiveGuard<'_>) {
        if Node(page).has(INCOMPLETE_SPLIT) {
            self.0.push(page.id());
        }
    }
}
