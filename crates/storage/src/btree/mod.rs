//! The B-link tree: one per index. See README.md.
//!
//! Cut by operation: `search` descends, `modify` and `batch` change records, `split` and `split_point` make room, `share` evens
//! out siblings, `merge` takes cold pages away, `compact` makes the tree dense, `scan` goes along the leaves, `check` verifies, `redo` applies.

mod batch;
mod check;
mod compact;
mod estimate;
mod load;
mod merge;
mod modify;
pub(crate) mod redo;
mod scan;
mod search;
mod share;
mod split;
mod split_point;
mod stats;
#[cfg(test)]
mod tests;

use crate::buffer::{BufferPool, Scope};
use crate::error::{Error, Result};
use crate::ids::{IndexId, PageId, TxnId};
use crate::page::slotted::{self, Corrupt};
use crate::space::{PageRun, Space};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

pub use batch::BatchRows;
pub use check::{LevelReport, TreeReport};
pub(crate) use load::{Top, TreeLoad};
pub use estimate::MORSEL_LEAVES;
pub use modify::{Cursor, Decision};
#[cfg(test)]
pub(crate) use modify::Place;
pub use scan::{Direction, LeafScan, LeafStamp, LeafView};
pub(crate) use scan::Surroundings;
pub use stats::TreeCounters;
pub(crate) use stats::TreeStats;

/// Bits of a record's flags.
pub struct RecordFlags;

impl RecordFlags {
    /// The row is deleted; the record stays until purge.
    pub const DELETE_MARK: u16 = 1;
    /// An older version may exist in the version store.
    pub const HAS_OLDER: u16 = 2;
    /// The value is an [`crate::overflow::OverflowRef`].
    pub const OVERFLOW: u16 = 4;
}

/// A record as it is in its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// The transaction that wrote it.
    pub txn: TxnId,
    /// [`RecordFlags`].
    pub flags: u16,
    pub value: &'a [u8],
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// One tree. Cheap to clone.
#[derive(Clone)]
pub struct BTree {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Arc<BufferPool>,
    space: Arc<Space>,
    stats: TreeStats,
    index: IndexId,
    root: PageId,
    /// Left pages of splits whose downlink a thread is about to post: others need not finish those, and may not free them, for the
    /// thread will latch the page by its id with the parent latched.
    splitting: Mutex<Vec<PageId>>,
    /// Pages of a load under way, which belong to the tree only once they are attached, and how many runs of them there are.
    unattached: Mutex<Vec<PageRun>>,
    loading: crate::sync::AtomicUsize,
    /// Splits whose downlink goes to this level stop after their first step, as if the thread had failed there; 0: none.
    #[cfg(test)]
    interrupt: crate::sync::AtomicU8,
}

impl BTree {
    /// The tree of an index that exists.
    pub fn open(pool: Arc<BufferPool>, space: Arc<Space>, index: IndexId) -> Result<BTree> {
        let root = space.root(index).ok_or(Error::NoSuchIndex(index))?;
        Ok(BTree::at(pool, space, index, root))
    }

    /// Makes an empty tree in the caller's mini-transaction; to be used once that has committed.
    pub fn create<'p>(
        pool: &'p Arc<BufferPool>,
        space: &Arc<Space>,
        scope: &mut Scope<'p>,
        index: IndexId,
    ) -> Result<BTree> {
        let root = space.create_tree(scope, index)?;
        let mut page = pool.fix_new(root)?;
        let mut payload = Vec::new();
        let frame = slotted::Frame::empty(root.0, index.0, 0);
        slotted::op::format_payload(&mut payload, &frame, slotted::op::Records::None, slotted::op::Records::None).map_err(|e| corrupt(root, e))?;
        scope.apply(&mut page, slotted::op::FORMAT, &payload)?;
        scope.keep(page);
        Ok(BTree::at(pool.clone(), space.clone(), index, root))
    }

    fn at(pool: Arc<BufferPool>, space: Arc<Space>, index: IndexId, root: PageId) -> BTree {
        BTree {
            inner: Arc::new(Inner {
                pool,
                space,
                stats: TreeStats::default(),
                index,
                root,
                splitting: Mutex::new(Vec::new()),
                unattached: Mutex::new(Vec::new()),
                loading: crate::sync::AtomicUsize::new(0),
                #[cfg(test)]
                interrupt: crate::sync::AtomicU8::new(0),
            }),
        }
    }

    pub fn index(&self) -> IndexId {
        self.inner.index
    }
    pub fn root(&self) -> PageId {
        self.inner.root
    }
    pub(crate) fn stats(&self) -> &TreeStats {
        &self.inner.stats
    }
    fn pool(&self) -> &BufferPool {
        &self.inner.pool
    }
    fn space(&self) -> &Space {
        &self.inner.space
    }
}

/// A page whose bytes contradict its format: the engine stops on this.
pub(crate) fn corrupt(page: PageId, what: Corrupt) -> Error {
    Error::corrupt(page, what.0)
}

/// A leaf record with its transaction and flags apart.
pub(crate) fn record_ref<'a>(node: slotted::Node<'a>, slot: usize) -> slotted::Checked<RecordRef<'a>> {
    let record = node.record(slot)?;
    Ok(RecordRef { txn: TxnId(record.meta & slotted::TXN_MASK), flags: (record.meta >> 48) as u16, value: record.value })
}

/// Transaction and flags as the record stores them.
pub(crate) fn meta(txn: TxnId, flags: u16) -> u64 {
    debug_assert!(txn.0 <= slotted::TXN_MASK, "transaction ids have 48 bits");
    txn.0 & slotted::TXN_MASK | (flags as u64) << 48
}
