//! The mini-transaction: page changes that reach the log as one record, all or nothing.

use super::{BufferPool, ExclusiveGuard, LatchClass, held};
use crate::error::Result;
use crate::ids::{Lsn, PageId, TxnId};
use crate::page::{header, redo};
use crate::sync::Ordering;
use crate::wal::{Draft, Kind, Parts, Urgency, push_part};
use smallvec::SmallVec;
use std::cell::RefCell;

/// For whom a mini-transaction writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writer {
    /// Structure changes outside any transaction: never undone.
    System,
    /// A transaction's change; `prev_lsn` is its previous record (none: its first). `urgent`: it belongs to the end of a prepared
    /// transaction, and may take the log's last reserve.
    Txn { id: TxnId, prev_lsn: Lsn, urgent: bool },
    /// A compensation record: what `undo_next` was before the record it takes back.
    Clr { id: TxnId, prev_lsn: Lsn, undo_next: Lsn },
    /// The record that ends a rollback.
    Abort { id: TxnId, prev_lsn: Lsn },
    /// The record that commits; use `commit_transaction`.
    Commit { id: TxnId, prev_lsn: Lsn },
}

/// What is done once the record is in the log, or when the scope is given up.
type Action = Box<dyn FnOnce() + Send>;

/// One mini-transaction. Use: make it (best holding no latch), fix pages, check everything that can fail, `apply`, `commit`,
/// drop the guards. Once something was applied it must be committed: dropping it then stops the engine.
pub struct Scope<'p> {
    pool: &'p BufferPool,
    writer: Writer,
    buffers: Buffers,
    touched: SmallVec<[u32; 4]>,
    kept: SmallVec<[ExclusiveGuard<'p>; 2]>,
    deferred: Vec<(PageId, u8, SmallVec<[u8; 24]>)>,
    after_commit: Vec<Action>,
    on_cancel: Vec<Action>,
    done: bool,
}

#[derive(Default)]
struct Buffers {
    parts: Vec<u8>,
    undo: Vec<u8>,
}

thread_local! {
    /// Buffers of finished scopes, to be used again.
    static SPARE: RefCell<Vec<Buffers>> = const { RefCell::new(Vec::new()) };
}

impl BufferPool {
    /// Begins a mini-transaction. Makes sure that the log has room, waiting for a checkpoint if need be; a thread that holds
    /// a page latch does not wait (its caller reserved before latching).
    pub fn scope(&self, writer: Writer) -> Result<Scope<'_>> {
        self.fatal.check()?;
        held::assert_none("log space is waited for");
        if !held::any() {
            // Rollback may have to split a page, so structure changes are never refused for a full log either.
            let urgency = if matches!(writer, Writer::Txn { urgent: false, .. }) { Urgency::Normal } else { Urgency::Rollback };
            self.wal.reserve(urgency)?;
        }
        Ok(Scope {
            pool: self,
            writer,
            buffers: SPARE.with_borrow_mut(|s| s.pop()).unwrap_or_default(),
            touched: SmallVec::new(),
            kept: SmallVec::new(),
            deferred: Vec::new(),
            after_commit: Vec::new(),
            on_cancel: Vec::new(),
            done: false,
        })
    }
}

impl BufferPool {
    /// Waits until the log has room as for a transaction's change, without its last reserve (`LogFull`). Called holding no latch.
    pub fn reserve_log(&self) -> Result<()> {
        self.wal.reserve(Urgency::Normal)
    }
}

impl<'p> Scope<'p> {
    /// Changes the page and notes the change for the record. An error says that the page is not what it should be, and
    /// stops the engine.
    pub fn apply(&mut self, page: &mut ExclusiveGuard<'_>, op: u8, payload: &[u8]) -> Result<()> {
        self.touch(page);
        push_part(&mut self.buffers.parts, page.id(), op, payload);
        self.change(page, op, payload)
    }

    /// As `apply`, for operations on the page that were written as parts of a log record before. Leaves `parts` empty.
    pub fn apply_parts(&mut self, page: &mut ExclusiveGuard<'_>, parts: &mut Vec<u8>) -> Result<()> {
        self.touch(page);
        let from = self.buffers.parts.len();
        if from == 0 {
            // The bytes of a long batch are not copied once more.
            std::mem::swap(&mut self.buffers.parts, parts);
        } else {
            self.buffers.parts.append(parts);
        }
        let noted = std::mem::take(&mut self.buffers.parts);
        let done = Parts::new(&noted[from..]).try_for_each(|part| {
            let (id, op, payload) = part?;
            debug_assert_eq!(id, page.id());
            self.change(page, op, payload)
        });
        self.buffers.parts = noted;
        done
    }

    fn touch(&mut self, page: &ExclusiveGuard<'_>) {
        debug_assert!(std::ptr::eq(page.pool, self.pool));
        let frame = page.frame;
        if !self.touched.contains(&frame) {
            debug_assert!(!self.pool.frames.get(frame).in_scope.load(Ordering::Relaxed), "one scope changes a page at a time");
            self.pool.frames.get(frame).in_scope.store(true, Ordering::Relaxed);
            self.touched.push(frame);
        }
    }

    fn change(&self, page: &mut ExclusiveGuard<'_>, op: u8, payload: &[u8]) -> Result<()> {
        redo::apply(op, page.bytes_mut(), payload).inspect_err(|e| {
            self.pool.fatal.stop(&format!("cannot apply a change: {e}"));
        })?;
        if redo::is_initialising(op) {
            let id = page.id();
            header::set_page_id(page.bytes_mut(), id);
            self.pool.frames.get(page.frame).fresh.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Changes a page that the caller does not hold (space maps, the directory), at `commit`: those pages are latched then,
    /// after all others, in id order.
    pub fn apply_at_commit(&mut self, page: PageId, op: u8, payload: &[u8]) {
        self.deferred.push((page, op, SmallVec::from_slice(payload)));
    }

    /// Adds to the record's undo bytes.
    pub fn add_undo(&mut self, bytes: &[u8]) {
        self.buffers.undo.extend_from_slice(bytes);
    }

    /// Holds the guard until the scope has committed.
    pub fn keep(&mut self, guard: ExclusiveGuard<'p>) {
        self.kept.push(guard);
    }

    /// Runs `action` once the record is in the log.
    pub(crate) fn after_commit(&mut self, action: impl FnOnce() + Send + 'static) {
        self.after_commit.push(Box::new(action));
    }

    /// Runs `action` if the scope is dropped with nothing applied.
    pub(crate) fn on_cancel(&mut self, action: impl FnOnce() + Send + 'static) {
        self.on_cancel.push(Box::new(action));
    }

    /// True if nothing was applied or noted.
    pub fn is_empty(&self) -> bool {
        self.buffers.parts.is_empty() && self.deferred.is_empty() && self.buffers.undo.is_empty()
    }

    /// Appends the record, stamps its LSN on the pages, marks them dirty. Returns the record's LSN, or none if nothing was
    /// applied (an `Abort` is always written).
    pub fn commit(mut self) -> Result<Lsn> {
        debug_assert!(!matches!(self.writer, Writer::Commit { .. }), "commit_transaction commits");
        if self.is_empty() && !matches!(self.writer, Writer::Abort { .. } | Writer::Clr { .. }) {
            self.finish();
            return Ok(Lsn::NONE);
        }
        self.write(&[], |_| 0).map(|(lsn, _)| lsn)
    }

    /// As `commit`, for a `Writer::Commit`: `timestamp(lsn)` runs inside the append, so timestamps are in log order. Always
    /// writes a record. Returns (lsn, timestamp).
    pub fn commit_transaction(mut self, binlog: &[u8], timestamp: impl FnOnce(Lsn) -> u64) -> Result<(Lsn, u64)> {
        debug_assert!(matches!(self.writer, Writer::Commit { .. }), "only a Writer::Commit commits");
        self.write(binlog, timestamp)
    }

    fn write(&mut self, binlog: &[u8], timestamp: impl FnOnce(Lsn) -> u64) -> Result<(Lsn, u64)> {
        self.apply_deferred()?;
        // I4: a checkpoint that looks after this sees every page of the record as dirty from before the record.
        let floor = self.pool.wal.end();
        self.pool.counters.page_changes.add(self.touched.len() as u64);
        for &frame in &self.touched {
            self.pool.mark_dirty(frame, floor);
        }
        let undo_next;
        let (kind, txn, prev_lsn, extra) = match self.writer {
            Writer::System => (Kind::System, TxnId(0), Lsn::NONE, binlog),
            Writer::Txn { id, prev_lsn, .. } => (Kind::Data, id, prev_lsn, binlog),
            Writer::Clr { id, prev_lsn, undo_next: next } => {
                undo_next = next.0.to_le_bytes();
                (Kind::Clr, id, prev_lsn, &undo_next[..])
            }
            Writer::Abort { id, prev_lsn } => (Kind::Abort, id, prev_lsn, binlog),
            Writer::Commit { id, prev_lsn } => (Kind::Commit, id, prev_lsn, binlog),
        };
        let draft = Draft { kind, txn, prev_lsn, undo: &self.buffers.undo, parts: &self.buffers.parts, extra };
        let (lsn, ts) = self.pool.wal.append(&draft, timestamp)?;
        for &frame in &self.touched {
            // SAFETY: I1 and I3, the pages of an open scope are held exclusively: by `kept`, or by the caller, whose guard
            // may not be released before `in_scope` is cleared.
            header::set_lsn(unsafe { self.pool.frames.bytes_mut(frame) }, lsn);
        }
        self.finish();
        Ok((lsn, ts))
    }

    /// The record is in the log (or there is none): the pages may be released.
    fn finish(&mut self) {
        self.done = true;
        for &frame in &self.touched {
            self.pool.frames.get(frame).in_scope.store(false, Ordering::Relaxed);
        }
        self.kept.clear();
        for action in self.after_commit.drain(..) {
            action();
        }
    }

    /// Latches and changes the pages noted by `apply_at_commit`. They are pinned in memory, so nothing is read here.
    fn apply_deferred(&mut self) -> Result<()> {
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.sort_by_key(|(page, ..)| *page);
        for (page, op, payload) in &deferred {
            let held = self.kept.iter().position(|g| g.id() == *page);
            let mut guard = match held {
                Some(i) => self.kept.swap_remove(i),
                None => self.pool.fix_exclusive(*page, LatchClass::Ordinary).map_err(|e| {
                    self.pool.fatal.stop(&format!("cannot fix a page of a mini-transaction: {e}"));
                    e
                })?,
            };
            let applied = self.apply(&mut guard, *op, payload);
            self.kept.push(guard);
            applied?;
        }
        Ok(())
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if !self.done {
            if self.touched.is_empty() {
                self.on_cancel.drain(..).for_each(|action| action());
            } else {
                self.pool.fatal.stop("I3: a mini-transaction was given up after it changed a page");
                for &frame in &self.touched {
                    self.pool.frames.get(frame).in_scope.store(false, Ordering::Relaxed);
                }
            }
        }
        let mut buffers = std::mem::take(&mut self.buffers);
        buffers.parts.clear();
        buffers.undo.clear();
        if buffers.parts.capacity() + buffers.undo.capacity() <= 1 << 20 {
            SPARE.with_borrow_mut(|spare| {
                if spare.len() < 4 {
                    spare.push(buffers);
                }
            });
        }
    }
}
