//! Changing many keys: sorted, one descent, one latch and one log record per leaf.

use super::modify::{Change, Cursor, Decision, Place, Unfinished, check_key, check_value};
use super::split_point::FULL;
use super::{BTree, corrupt, meta, record_ref};
use crate::buffer::Writer;
use crate::error::Result;
use crate::ids::Lsn;
use crate::page::slotted::layout::LEAF_OVERHEAD;
use crate::page::slotted::{Node, op};

/// What [`BTree::modify_batch`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchDone {
    /// Keys dealt with, from the first on.
    pub done: usize,
    /// `f` ended the batch before key `done`.
    pub stopped: bool,
    /// The log record, none if nothing was logged.
    pub lsn: Lsn,
}

/// What a batch is going to apply to a leaf.
#[derive(Default)]
pub(super) struct Steps {
    steps: Vec<Step>,
    /// The steps' payloads one after the other.
    bytes: Vec<u8>,
}

struct Step {
    op: u8,
    /// Slot before the batch.
    slot: usize,
    /// Records of an insert run.
    count: usize,
    from: usize,
    to: usize,
}

impl Steps {
    fn clear(&mut self) {
        self.steps.clear();
        self.bytes.clear();
    }
    fn push(&mut self, op: u8, slot: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len();
        write(&mut self.bytes);
        self.steps.push(Step { op, slot, count: 1, from, to: self.bytes.len() });
    }
    /// Adds a record to the run of inserts before the same old slot, or begins one.
    fn push_insert(&mut self, slot: usize, suffix: &[u8], meta: u64, value: &[u8]) {
        match self.steps.last_mut() {
            Some(step) if step.op == op::INSERT && step.slot == slot => {
                op::push_leaf(&mut self.bytes, suffix, meta, value);
                step.count += 1;
                step.to = self.bytes.len();
            }
            _ => self.push(op::INSERT, slot, |out| op::push_leaf(out, suffix, meta, value)),
        }
    }
}

impl BTree {
    /// Changes the first of `count` ascending keys, and with them all that follow in the same leaf, in one log record. The caller
    /// goes on at `done` with the writer's `prev_lsn` moved on. `f(i, …)` as in [`BTree::modify`].
    pub fn modify_batch<'k>(
        &self,
        cursor: &mut Cursor,
        count: usize,
        key: impl Fn(usize) -> &'k [u8],
        writer: Writer,
        mut f: impl FnMut(usize, &Place<'_>, &mut Change) -> Decision,
    ) -> Result<BatchDone> {
        if count == 0 {
            return Ok(BatchDone { done: 0, stopped: false, lsn: Lsn::NONE });
        }
        check_key(key(0))?;
        let mut steps = std::mem::take(&mut cursor.batch);
        let result = self.batch_leaf(cursor, &mut steps, count, &key, writer, &mut f);
        cursor.batch = steps;
        if let Some(done) = result? {
            return Ok(done);
        }
        // The first key does not fit: the single-record way splits.
        let mut stopped = false;
        let lsn = self.modify(cursor, key(0), writer, |place, change| {
            let decision = f(0, place, change);
            stopped = decision == Decision::Stop;
            decision
        })?;
        Ok(BatchDone { done: usize::from(!stopped), stopped, lsn })
    }

    /// `None` when not even the first key could be dealt with here.
    fn batch_leaf<'k>(
        &self,
        cursor: &mut Cursor,
        steps: &mut Steps,
        count: usize,
        key: &impl Fn(usize) -> &'k [u8],
        writer: Writer,
        f: &mut impl FnMut(usize, &Place<'_>, &mut Change) -> Decision,
    ) -> Result<Option<BatchDone>> {
        steps.clear();
        let mut scope = self.pool().scope(writer)?;
        let mut unfinished = Unfinished::new();
        let mut leaf = self.leaf_exclusive(cursor, key(0), &mut unfinished)?;
        let id = leaf.id();
        let fail = |e| corrupt(id, e);
        let Cursor { change, payload, .. } = cursor;
        change.undo.clear();
        let node = Node(&leaf);
        let prefix = node.prefix().map_err(fail)?.len();
        let (mut free, mut used) = (node.free(), node.used());
        let used_before = used;
        let (mut done, mut stopped, mut from) = (0, false, 0);
        let mut removed = false;
        while done < count {
            let previous = done.checked_sub(1).map(key);
            let key = key(done);
            // A repeated key begins the next batch, to see what this one did.
            if previous.is_some_and(|previous| key <= previous || check_key(key).is_err()) || done > 0 && !self.covers(&leaf, key)? {
                break;
            }
            let (slot, found) = node.search_from(from, key).map_err(fail)?;
            from = slot;
            let record = if found { Some(record_ref(node, slot).map_err(fail)?) } else { None };
            change.value.clear();
            let undo = change.undo.len();
            let place = Place::at(slot, record);
            let decision = f(done, &place, change);
            match decision {
                Decision::Stop => {
                    change.undo.truncate(undo);
                    stopped = true;
                    break;
                }
                Decision::Leave => change.undo.truncate(undo),
                Decision::Remove if record.is_none() => change.undo.truncate(undo),
                Decision::Remove => {
                    steps.push(op::REMOVE, slot, |_| {});
                    removed = true;
                }
                Decision::Put { txn, flags } => {
                    check_value(key, &change.value)?;
                    let meta = meta(txn, flags);
                    let grows = match record {
                        Some(old) => change.value.len().saturating_sub(old.value.len()),
                        None => key.len() - prefix + LEAF_OVERHEAD + change.value.len(),
                    };
                    // At the right end the append rule decides, by the page as it is then.
                    let append = record.is_none() && slot == node.len() && used >= FULL;
                    if grows > free || append {
                        change.undo.truncate(undo);
                        break;
                    }
                    free -= grows;
                    used += grows;
                    match record {
                        Some(_) => steps.push(op::REPLACE, slot, |out| {
                            out.extend_from_slice(&meta.to_le_bytes());
                            out.extend_from_slice(&change.value);
                        }),
                        None => steps.push_insert(slot, &key[prefix..], meta, &change.value),
                    }
                }
            }
            done += 1;
        }
        if steps.steps.is_empty() {
            return Ok((done > 0 || stopped).then_some(BatchDone { done, stopped, lsn: Lsn::NONE }));
        }
        scope.add_undo(&change.undo);
        let mut shift = 0isize;
        for step in &steps.steps {
            let slot = (step.slot as isize + shift) as usize;
            let bytes = &steps.bytes[step.from..step.to];
            match step.op {
                op::INSERT => {
                    op::insert_payload(payload, slot, step.count);
                    shift += step.count as isize;
                }
                _ => {
                    op::remove_payload(payload, slot);
                    shift -= isize::from(step.op == op::REMOVE);
                }
            }
            payload.extend_from_slice(bytes);
            scope.apply(&mut leaf, step.op, payload)?;
        }
        let lsn = scope.commit()?;
        let cold = removed && self.is_cold(&leaf, used_before);
        drop(leaf);
        self.finish(&unfinished);
        if cold {
            self.merge_quietly(key(0));
        }
        Ok(Some(BatchDone { done, stopped, lsn }))
    }
}
