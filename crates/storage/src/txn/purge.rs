//! Purge: taking away what no snapshot needs any more, in commit order.
//!
//! A transaction's changes leave older versions, delete-marked records, overflow values that were replaced and indexes that were dropped.
//! Once every snapshot sees the transaction (its timestamp is at or below the oldest view's), all of that goes. What is behind that in the queue is looked
//! through once before: versions and deleted rows go that no snapshot sees, though an older one lives (README.md, "Purge").
//!
//! What purge has to do is in memory and in scratch files, so after a crash nobody would know which replaced overflow values to free. Each is therefore
//! entered in the engine's garbage index by the replacing transaction itself, and taken out of it by the record that frees it; what is there at the
//! next open is freed then.

use std::collections::VecDeque;

use super::long;
use super::needs::Needs;
use super::purge_list::{Chunk, Content, PurgeList, PurgeSpace, Queued, Reading};
use super::system::{GARBAGE_INDEX, System};
use crate::btree::{Cursor, Decision, RecordFlags, RecordRef};
use crate::buffer::Writer;
use crate::error::{Error, Result};
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, Ordering};

/// Something a commit leaves for purge.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PurgeItem {
    /// A row it changed, as a `RowKey`: what it replaced, and the record itself if it was deleted.
    Row { row: Box<[u8]>, deleted: bool },
    /// An overflow value it replaced.
    Overflow { index: IndexId, reference: Box<[u8]> },
    Tree(IndexId),
}

/// Chunks that are looked for at once to be written.
const SPILLED: usize = 64;

/// The last so many chunks of the queue are not looked at ahead: what they tell of is little, and soon has its turn if nobody reads for long.
const NOT_AHEAD: usize = if cfg!(test) { 1 } else { 8 };

/// What is next in the queue.
#[derive(Default)]
struct Front {
    chunk: Reading,
    /// Whose items are next.
    id: TxnId,
    /// Chunks that were taken out before.
    taken: u64,
}

/// How far the queue has been looked through ahead of its turn.
#[derive(Default)]
struct Ahead {
    chunk: Reading,
    /// Whose items are next; `None` until that is met.
    id: Option<TxnId>,
    /// The chunk behind that one, counted from the first that the queue ever had.
    next: u64,
}

/// A delete-marked record that nobody's history knows of: left by a rollback or by an earlier life of the database.
pub(crate) type Hint = (IndexId, Box<[u8]>);

const HINTS_MAX: usize = 10_000;
const NOBODY: u64 = u64::MAX;

/// What purge has to do.
pub(crate) struct History {
    /// By timestamp, since commits are published in that order; behind them may be what could not be done.
    queue: Mutex<PurgeList>,
    /// What has been taken out of that to be read. Locked before it, and over I/O.
    front: Mutex<Front>,
    /// Held while what was found ahead is done.
    ahead: Mutex<Ahead>,
    /// The transaction whose items are next, `NOBODY` if there are none.
    next: AtomicU64,
    /// Where lists keep what is too much for memory.
    pub space: Arc<PurgeSpace>,
    hints: Mutex<Vec<Hint>>,
    /// Dropped trees that unfinished transactions of an earlier life may have rows in.
    held: Mutex<Vec<IndexId>>,
    /// Rows and values in the queue: the history list length.
    len: AtomicU64,
    wake: Condvar,
    sleeping: Mutex<bool>,
    pub removed: AtomicU64,
}

impl History {
    pub fn new(space: PurgeSpace) -> History {
        History {
            queue: Mutex::default(),
            front: Mutex::default(),
            ahead: Mutex::default(),
            next: AtomicU64::new(NOBODY),
            space: Arc::new(space),
            hints: Mutex::default(),
            held: Mutex::default(),
            len: AtomicU64::new(0),
            wake: Condvar::new(),
            sleeping: Mutex::new(false),
            removed: AtomicU64::new(0),
        }
    }

    pub fn push(&self, ts: u64, id: TxnId, items: PurgeList) {
        if items.is_empty() {
            return;
        }
        self.len.fetch_add(items.len() as u64, Ordering::Relaxed);
        self.enter(ts, id, items);
    }

    fn enter(&self, ts: u64, id: TxnId, items: PurgeList) {
        let mut queue = self.queue.lock();
        queue.commit(&self.space, ts, id, items);
        if self.next.load(Ordering::Relaxed) == NOBODY {
            self.next.store(id.0, Ordering::Relaxed);
        }
    }

    /// Enters an item that was taken and could not be done behind the rest: it may fail again.
    pub fn put_back(&self, id: TxnId, item: &PurgeItem) {
        let mut items = PurgeList::default();
        items.push(&self.space, item);
        // Every snapshot sees it.
        self.enter(0, id, items);
    }

    /// The transaction whose changes are next.
    pub fn next_id(&self) -> Option<TxnId> {
        Some(self.next.load(Ordering::Relaxed)).filter(|id| *id != NOBODY).map(TxnId)
    }

    /// Takes out the first item and whose it is, if that one's timestamp is at most `purge_ts`.
    pub fn take(&self, purge_ts: u64) -> Result<Option<(TxnId, PurgeItem)>> {
        let mut front = self.front.lock();
        loop {
            match front.chunk.next() {
                Some((Queued::Item(item), end)) => {
                    front.chunk.pass(end);
                    return Ok(Some((front.id, item)));
                }
                Some((Queued::Commit { ts, id }, end)) => {
                    self.next.store(id.0, Ordering::Relaxed);
                    if ts > purge_ts {
                        return Ok(None);
                    }
                    front.chunk.pass(end);
                    front.id = id;
                }
                None => {
                    let mut queue = self.queue.lock();
                    let Some(chunk) = queue.pop(&self.space) else {
                        self.next.store(NOBODY, Ordering::Relaxed);
                        drop(queue);
                        self.space.tidy();
                        return Ok(None);
                    };
                    drop(queue);
                    match chunk.read() {
                        Ok(bytes) => {
                            front.chunk.begin(bytes);
                            front.taken += 1;
                        }
                        Err(error) => {
                            self.queue.lock().put_back(chunk);
                            return Err(error);
                        }
                    }
                }
            }
        }
    }

    /// The next item that was not looked at ahead, and whose it is, if that one's timestamp is at most `ts`. It stays in the queue.
    fn look_ahead(&self, ahead: &mut Ahead, ts: u64) -> Result<Option<(TxnId, PurgeItem)>> {
        loop {
            match ahead.chunk.next() {
                Some((Queued::Item(item), end)) => {
                    ahead.chunk.pass(end);
                    if let Some(id) = ahead.id {
                        return Ok(Some((id, item)));
                    }
                }
                Some((Queued::Commit { ts: committed, id }, end)) => {
                    if committed > ts {
                        return Ok(None);
                    }
                    ahead.chunk.pass(end);
                    ahead.id = Some(id);
                }
                None => {
                    let Some(content) = self.chunk_ahead(ahead) else { return Ok(None) };
                    // One that cannot be read is passed over: its turn comes.
                    let bytes = content.read().inspect_err(|_| ahead.id = None)?;
                    ahead.chunk.begin(bytes);
                }
            }
        }
    }

    /// What had its turn meanwhile need not be looked at.
    fn catch_up(&self, ahead: &mut Ahead) {
        let taken = self.front.lock().taken;
        if ahead.next < taken {
            *ahead = Ahead { next: taken, ..Ahead::default() };
        }
    }

    fn chunk_ahead(&self, ahead: &mut Ahead) -> Option<Content> {
        // Nothing is taken out meanwhile.
        let front = self.front.lock();
        let mut queue = self.queue.lock();
        let chunks = queue.chunks();
        let at = ahead.next.saturating_sub(front.taken);
        if at as usize + NOT_AHEAD >= chunks.len() {
            return None;
        }
        if ahead.next < front.taken {
            // Whose items the chunk begins with stands in one before.
            (ahead.next, ahead.id) = (front.taken, None);
        }
        ahead.next += 1;
        Some(chunks[at as usize].content())
    }

    /// Writes queued chunks to disk as long as there is too much in memory. What cannot be written stays.
    pub fn spill(&self) {
        // Nothing is taken out of the queue meanwhile: each keeps its place.
        let _front = self.front.lock();
        while self.space.is_full() {
            let in_memory = |(at, chunk): (usize, &Chunk)| chunk.in_memory().map(|bytes| (at, bytes));
            let found: Vec<_> = self.queue.lock().chunks().iter().enumerate().filter_map(in_memory).take(SPILLED).collect();
            if found.is_empty() {
                return;
            }
            for (at, bytes) in found {
                let Ok(written) = self.space.write(&bytes) else { return };
                self.queue.lock().chunks()[at].set_written(written);
            }
        }
    }

    pub fn hint(&self, index: IndexId, key: &[u8]) {
        let mut hints = self.hints.lock();
        if hints.len() < HINTS_MAX {
            hints.push((index, key.into()));
        }
    }

    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Sleeps for at most `ms`, or until `wake`.
    pub fn sleep(&self, ms: u64) {
        let mut sleeping = self.sleeping.lock();
        *sleeping = true;
        self.wake.wait_for(&mut sleeping, std::time::Duration::from_millis(ms));
        *sleeping = false;
    }

    pub fn wake(&self) {
        let _sleeping = self.sleeping.lock();
        self.wake.notify_all();
    }
}

/// Does `work` for each, or puts back those that are left, behind them the one that failed: it may fail again.
fn each<T>(items: Vec<T>, put_back: impl FnOnce(Vec<T>), mut work: impl FnMut(&T) -> Result<()>) -> Result<()> {
    let mut left = VecDeque::from(items);
    while let Some(item) = left.front() {
        if let Err(error) = work(item) {
            left.rotate_left(1);
            put_back(left.into());
            return Err(error);
        }
        left.pop_front();
    }
    Ok(())
}

impl System {
    /// Purges what may go, up to about `limit` items. Returns how many it did.
    pub fn purge(&self, limit: usize) -> Result<usize> {
        let needs = self.horizon();
        let purge_ts = needs.oldest();
        let mut cursor = Cursor::new();
        let mut done = 0;
        let mut outcome = Ok(());
        while done < limit && outcome.is_ok() {
            let (id, item) = match self.history.take(purge_ts) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            done += 1;
            outcome = self.purge_item(&mut cursor, id, &item);
            if outcome.is_ok() {
                self.history.len.fetch_sub(1, Ordering::Relaxed);
            } else {
                self.history.put_back(id, &item);
            }
        }
        if outcome.is_ok() {
            outcome = self.purge_ahead(&mut cursor, &needs, limit, &mut done);
        }
        if !self.has_to_undo() {
            let held = std::mem::take(&mut *self.history.held.lock());
            done += held.len();
            outcome = outcome.and(each(held, |left| self.history.held.lock().extend(left), |index| self.drop_tree(*index)));
        }
        let hints = std::mem::take(&mut *self.history.hints.lock());
        done += hints.len();
        let put_back = |left| self.history.hints.lock().extend::<Vec<Hint>>(left);
        let removed = each(hints, put_back, |(index, key)| {
            // Versions may be left behind it: to a row that is put there anew no link leads to them.
            self.remove_marked(&mut cursor, *index, key, |record| self.status.visible_at(record.txn, purge_ts)).map(|_| ())
        });
        outcome.and(removed).map(|()| done)
    }

    fn purge_item(&self, cursor: &mut Cursor, by: TxnId, item: &PurgeItem) -> Result<()> {
        match item {
            PurgeItem::Row { row, deleted } => {
                self.versions.purge(row, by);
                if *deleted {
                    // Another's deletion may not be for everybody yet.
                    self.remove_marked(cursor, index_of(row), &row[4..], |record| record.txn == by)?;
                }
            }
            PurgeItem::Overflow { index, reference } => self.free_garbage(cursor, *index, reference, |replacer| replacer == by)?,
            // Undo finds rows in their trees. Its owner has no metadata lock any more, so others may have dropped them.
            PurgeItem::Tree(index) if self.has_to_undo() => self.history.held.lock().push(*index),
            PurgeItem::Tree(index) => self.drop_tree(*index)?,
        }
        Ok(())
    }

    /// Ahead of their turn: takes away older versions and deleted rows that no snapshot sees though not every snapshot sees the end of the transaction that
    /// left them. They stay in the queue, and at their turn there is nothing to do. Goes on until `done` is `limit`.
    fn purge_ahead(&self, cursor: &mut Cursor, needs: &impl Needs, limit: usize, done: &mut usize) -> Result<()> {
        let mut ahead = self.history.ahead.lock();
        self.history.catch_up(&mut ahead);
        while *done < limit {
            let Some((by, item)) = self.history.look_ahead(&mut ahead, needs.taken_at())? else { break };
            *done += 1;
            let PurgeItem::Row { row, deleted } = item else { continue };
            let gone = deleted
                && self.remove_marked(cursor, index_of(&row), &row[4..], |record| {
                    record.txn == by && (record.flags & RecordFlags::HAS_OLDER == 0 || self.versions.hides_no_row(&row, by, needs))
                })?;
            if gone {
                self.versions.purge(&row, by);
            } else {
                self.versions.prune(&row, needs);
            }
        }
        Ok(())
    }

    /// Takes a delete-marked record out of its page if `may` says so of it, under the page's exclusive latch. False if there is none, or it stays.
    fn remove_marked(&self, cursor: &mut Cursor, index: IndexId, key: &[u8], may: impl Fn(RecordRef) -> bool) -> Result<bool> {
        // An open frees the trees that its losers had rows in, in a thread of its own.
        let _alone = self.dropping.lock();
        let tree = match self.tree(index) {
            // Dropped meanwhile, records and all.
            Err(Error::NoSuchIndex(_)) => return Ok(false),
            tree => tree?,
        };
        let lsn = tree.modify(cursor, key, Writer::System, |place, _| match place.record() {
            Some(record) if record.flags & RecordFlags::DELETE_MARK != 0 && may(record) => Decision::Remove,
            _ => Decision::Leave,
        })?;
        if lsn.is_none() {
            return Ok(false);
        }
        self.history.removed.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// Frees an overflow value that is entered in the garbage index if `may` says so of the transaction that has entered it, and takes out the entry, in
    /// one record: after an error it is tried again, after a crash by the next open. Only who removes the entry
    /// frees the value, and only while its tree is there: with that its pages have gone, and may be another's.
    fn free_garbage(&self, cursor: &mut Cursor, index: IndexId, reference: &[u8], may: impl Fn(TxnId) -> bool) -> Result<()> {
        let key = garbage_key(index, reference);
        let garbage = self.tree(GARBAGE_INDEX)?;
        // Neither does the tree go meanwhile, nor take others the entry out.
        let _alone = self.dropping.lock();
        if !garbage.read(&key, |record| record.is_some_and(|record| may(record.txn)))? {
            return Ok(());
        }
        let runs = match self.store.space.root(index) {
            None => Vec::new(),
            Some(_) => match long::runs(self, reference) {
                // It will be no better another time: the pages are lost.
                Err(error @ Error::Corrupt { .. }) => {
                    tracing::error!(%error, "the pages of a long value cannot be freed");
                    Vec::new()
                }
                runs => runs?,
            },
        };
        garbage.remove_freeing(cursor, &key, may, &runs, Writer::System)?;
        Ok(())
    }

    /// Frees a dropped index's pages. The directory remembers until then that it is to be dropped.
    pub fn drop_tree(&self, index: IndexId) -> Result<()> {
        let _alone = self.dropping.lock();
        let mut scope = self.store.pool.scope(Writer::System)?;
        self.store.space.drop_tree(&mut scope, index)?;
        scope.commit()?;
        self.forget_tree(index);
        Ok(())
    }

    /// At open, once the losers are undone: frees what the garbage index holds of earlier lives.
    pub fn purge_old_garbage(&self) -> Result<()> {
        let garbage = self.tree(GARBAGE_INDEX)?;
        let mut old = Vec::new();
        super::scan::for_each_record(&garbage, |key, record| {
            let prepared = self.prepared.is_recovered(record.txn);
            if self.status.is_old(record.txn) && !self.status.is_open(record.txn) && !prepared {
                old.push(key.to_vec());
            }
        })?;
        let mut cursor = Cursor::new();
        for key in old {
            let (index, reference) = key.split_at(4);
            let index = IndexId(u32::from_be_bytes(index.try_into().expect("4 bytes")));
            self.free_garbage(&mut cursor, index, reference, |replacer| self.status.is_old(replacer))?;
        }
        Ok(())
    }
}

/// The index of a `RowKey`.
fn index_of(row: &[u8]) -> IndexId {
    IndexId(u32::from_be_bytes(row[..4].try_into().expect("a row key begins with its index")))
}

/// The garbage index's key of an overflow value.
pub(super) fn garbage_key(index: IndexId, reference: &[u8]) -> Vec<u8> {
    let mut key = index.0.to_be_bytes().to_vec();
    key.extend_from_slice(reference);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overflow::OverflowRef;
    use crate::txn::Isolation;
    use crate::txn::tests::{commit, done, engine, new_index, purge_all};

    #[test]
    fn what_fails_is_put_back_behind_the_rest() {
        let (mut seen, mut left) = (Vec::new(), Vec::new());
        let outcome = each(vec![1, 2, 3, 4], |rest| left = rest, |n| {
            seen.push(*n);
            if *n == 2 { Err(Error::OutOfSpace) } else { Ok(()) }
        });
        assert!(matches!(outcome, Err(Error::OutOfSpace)));
        assert_eq!((seen, left), (vec![1, 2], vec![3, 4, 2]));
        each(vec![3, 4, 2], |_| unreachable!("nothing fails"), |_| Ok(())).unwrap();
    }

    /// A value whose replacement was taken back belongs to whoever replaces it next.
    #[test]
    fn a_value_is_freed_for_the_transaction_that_replaced_it_alone() {
        let (engine, x) = engine();
        let system = engine.system();
        let put = |value: &[u8]| {
            let mut txn = engine.begin(Isolation::RepeatableRead);
            if !done(txn.update(x, b"k", value)) {
                done(txn.insert(x, b"k", value));
            }
            let id = txn.id().unwrap();
            commit(txn);
            id
        };
        let first = put(&[1; 100_000]);
        let mut reader = engine.begin(Isolation::RepeatableRead);
        reader.snapshot();
        let second = put(b"short");
        let history = &system.history;
        let items: Vec<PurgeItem> = std::iter::from_fn(|| history.take(u64::MAX).unwrap()).map(|(_, item)| item).collect();
        history.len.store(0, Ordering::Relaxed);
        let list = || {
            let mut list = PurgeList::default();
            items.iter().for_each(|item| list.push(&history.space, item));
            list
        };
        history.push(0, first, list());
        history.push(system.commits.last_ts(), second, list());
        purge_all(&engine);
        assert_eq!(engine.check(GARBAGE_INDEX).unwrap().records, 1);
        let mut out = Vec::new();
        assert!(reader.get(x, b"k", &mut out).unwrap() && out == [1; 100_000]);
        drop(reader);
        purge_all(&engine);
        assert_eq!((engine.check(GARBAGE_INDEX).unwrap().records, system.history.len()), (0, 0));
    }

    /// What could not be done is put back behind what came later: here the drop of its tree.
    #[test]
    fn a_value_whose_purge_failed_goes_with_its_tree() {
        let (engine, x) = engine();
        let system = engine.system();
        let mut txn = engine.begin(Isolation::RepeatableRead);
        done(txn.insert(x, b"k", &[1; 100_000]));
        assert!(done(txn.update(x, b"k", b"short")));
        commit(txn);
        let (id, item) = system.history.take(u64::MAX).unwrap().unwrap();
        let PurgeItem::Overflow { reference, .. } = &item else { panic!("one value was replaced") };
        let first = OverflowRef::decode(reference).unwrap().first;
        let mut txn = engine.begin(Isolation::RepeatableRead);
        txn.drop_index(x).unwrap();
        commit(txn);
        purge_all(&engine);
        let y = new_index(&engine);
        let mut txn = engine.begin(Isolation::RepeatableRead);
        done(txn.insert(y, b"k", &[2; 100_000]));
        commit(txn);
        let pages = system.store.space.pages_of(y);
        assert!(pages.contains(&first), "they are another tree's now");
        system.history.put_back(id, &item);
        purge_all(&engine);
        assert_eq!(system.store.space.pages_of(y), pages);
        assert_eq!((engine.check(GARBAGE_INDEX).unwrap().records, system.history.len()), (0, 0));
    }
}
