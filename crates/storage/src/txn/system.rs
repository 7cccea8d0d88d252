//! What all transactions of an engine share.

use std::collections::hash_map::Entry;
use std::sync::{OnceLock, Weak};

use ahash::AHashMap;

use super::commit::Commits;
use super::prepared::PreparedTransactions;
use super::purge::History;
use super::purge_list::PurgeSpace;
use super::scratch::Scratch;
use super::status::StatusTable;
use super::versions::VersionStore;
use super::views::{View, Views};
use super::watch::Watches;
use crate::btree::{BTree, TreeCounters};
use crate::buffer::Writer;
use crate::disk::Clock;
use crate::error::Result;
use crate::ids::{IndexId, Lsn, TxnId};
use crate::lock::{LockTable, Owner};
use crate::options::Options;
use crate::recovery::{Recovered, Store, Transactions};
use crate::sync::{Arc, AtomicU8, AtomicU64, AtomicUsize, Mutex, Ordering, RwLock};
use crate::waits::WaitTotals;

/// The engine's own index: overflow values to be freed once nobody reads them (see purge).
pub(crate) const GARBAGE_INDEX: IndexId = IndexId(1);
/// The index every database has for its owner's catalog.
pub(crate) const ROOT_INDEX: IndexId = IndexId(2);

const VERSION_BYTES_MIN: u64 = 16 << 20;
/// What purge has to do may have this part of the versions' memory beside it.
const PURGE_SHARE: usize = 16;

#[derive(Default)]
pub(crate) struct Counters {
    pub rollbacks: AtomicU64,
    pub rows_inserted: AtomicU64,
    pub rows_updated: AtomicU64,
    pub rows_deleted: AtomicU64,
    pub rows_read: AtomicU64,
    pub losers_undone: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

pub(crate) struct System {
    pub options: Options,
    pub store: Arc<Store>,
    trees: RwLock<AHashMap<IndexId, BTree>>,
    /// What trees counted that are closed.
    closed_trees: Mutex<TreeCounters>,
    pub status: StatusTable,
    pub views: Arc<Views>,
    pub versions: VersionStore,
    pub scratch: Arc<Scratch>,
    pub locks: Arc<LockTable>,
    pub commits: Commits,
    pub history: History,
    pub prepared: PreparedTransactions,
    pub watches: Watches,
    /// Transactions whose rollback failed, and where it goes on.
    pub undo_later: Mutex<Vec<(Arc<Owner>, Lsn)>>,
    /// How many those are, with those that are being undone.
    pub left_to_undo: AtomicUsize,
    /// Held while a tree is dropped, and while a value is freed or a record purged whose tree must not be.
    pub dropping: Mutex<()>,
    /// `innodb_fill_factor`.
    pub fill_factor: AtomicU8,
    pub counters: Counters,
    /// What statements waited for.
    pub waits: Arc<WaitTotals>,
    /// How a thread waits that others' tasks may need.
    blocking: OnceLock<Blocking>,
}

/// Runs something that blocks its thread for long.
pub(crate) type Blocking = Box<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

impl System {
    pub fn new(store: Arc<Store>, options: Options, clock: Arc<dyn Clock>, recovered: &Recovered) -> System {
        let scratch = Arc::new(Scratch::new(store.disk.clone(), "versions"));
        let budget = options.version_bytes.unwrap_or(VERSION_BYTES_MIN.max(options.buffer_pool_bytes / 4)) as usize;
        System {
            locks: LockTable::new(clock, options.deadlock_detect),
            status: StatusTable::new(
                recovered.next_txn_id,
                recovered.max_ts,
                recovered.losers.iter().map(|l| l.id),
                recovered.losers.iter().filter(|l| l.prepared.is_none()).count() as u64,
            ),
            views: Arc::new(Views::new()),
            versions: VersionStore::new(budget, scratch.clone()),
            scratch,
            commits: Commits::new(recovered.max_ts),
            history: History::new(PurgeSpace::new(budget / PURGE_SHARE, Arc::new(Scratch::new(store.disk.clone(), "purge")))),
            prepared: PreparedTransactions::default(),
            watches: Watches::default(),
            undo_later: Mutex::default(),
            left_to_undo: AtomicUsize::new(0),
            dropping: Mutex::default(),
            fill_factor: AtomicU8::new(options.fill_factor),
            trees: RwLock::default(),
            closed_trees: Mutex::default(),
            counters: Counters::default(),
            waits: Arc::default(),
            blocking: OnceLock::new(),
            options,
            store,
        }
    }

    pub fn set_blocking(&self, blocking: Blocking) {
        let _ = self.blocking.set(blocking);
    }

    /// Runs `f`, which blocks until somebody else's task is done.
    pub fn block(&self, f: &mut dyn FnMut()) {
        match self.blocking.get() {
            Some(blocking) => blocking(f),
            None => f(),
        }
    }

    pub fn tree(&self, index: IndexId) -> Result<BTree> {
        if let Some(tree) = self.trees.read().get(&index) {
            return Ok(tree.clone());
        }
        // Looked for with the map held: one that is dropped meanwhile is forgotten after this.
        match self.trees.write().entry(index) {
            Entry::Occupied(tree) => Ok(tree.get().clone()),
            Entry::Vacant(place) => Ok(place.insert(BTree::open(self.store.pool.clone(), self.store.space.clone(), index)?).clone()),
        }
    }

    /// The log's end, if there is no transaction that has written, none that purge has not dealt with, and no long value that is to be freed. As
    /// long as the end stays there, so does everything.
    pub fn quiet_at(&self) -> Result<Option<Lsn>> {
        let end = self.store.wal.end();
        let quiet = self.locks.owners.len() == 0 && self.history.len() == 0 && self.tree(GARBAGE_INDEX)?.check()?.records == 0;
        Ok(quiet.then_some(end))
    }

    /// The tree has been dropped. Not before: who looks for it in between would open it again.
    pub fn forget_tree(&self, index: IndexId) {
        let mut trees = self.trees.write();
        if let Some(tree) = trees.remove(&index) {
            self.closed_trees.lock().add(&tree.stats().counters());
        }
        self.waits.forget(index);
    }

    /// What all trees counted since the start.
    pub fn tree_counters(&self) -> TreeCounters {
        let trees = self.trees.read();
        let mut all = *self.closed_trees.lock();
        trees.values().for_each(|tree| all.add(&tree.stats().counters()));
        all
    }

    /// Makes a new database's own indexes, in one record: a crash leaves both or none.
    pub fn create_system_trees(&self) -> Result<()> {
        let space = &self.store.space;
        if space.root(ROOT_INDEX).is_some() {
            return Ok(());
        }
        let mut scope = self.store.pool.scope(Writer::System)?;
        for want in [GARBAGE_INDEX, ROOT_INDEX] {
            let index = space.next_index_id();
            assert_eq!(index, want, "a new database numbers its trees from 1");
            BTree::create(&self.store.pool, space, &mut scope, index)?;
        }
        scope.commit()?;
        Ok(())
    }

    /// A new transaction's id, known to checkpoints and to those who will wait for it before anything is written under it.
    pub fn begin_owner(&self) -> Arc<Owner> {
        // The log's end is read first: every record of the transaction lies at or behind it.
        let first_lsn = self.store.wal.end();
        let owner = Arc::new(Owner::new(self.status.begin(), first_lsn.0));
        self.locks.owners.insert(owner.clone());
        owner
    }

    /// Somebody's undo may look for rows in a tree whatever has become of its table since.
    pub fn has_to_undo(&self) -> bool {
        self.status.has_losers() || self.left_to_undo.load(Ordering::SeqCst) > 0
    }

    /// A view that keeps what the reader of a latest record finds in it from being purged while it looks.
    pub fn pin(&self) -> Arc<View> {
        self.status.wait_for_ended();
        Arc::new(self.views.open(&self.status))
    }
}

/// What checkpoints ask of transactions.
pub(crate) struct ForCheckpoint(pub Weak<System>);

impl Transactions for ForCheckpoint {
    fn oldest_lsn(&self) -> Option<Lsn> {
        self.0.upgrade()?.locks.owners.oldest_lsn().map(Lsn)
    }

    fn next_txn_id(&self) -> TxnId {
        self.0.upgrade().expect("the engine stops its checkpointer before it goes").status.next_id()
    }

    fn max_ts(&self) -> u64 {
        self.0.upgrade().expect("the engine stops its checkpointer before it goes").commits.last_ts()
    }
}
