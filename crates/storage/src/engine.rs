//! The engine: everything below tables behind one handle.

use std::ops::Bound;

use crate::btree::{LevelReport, TreeCounters, TreeReport};
use crate::disk::{Clock, Disk};
use crate::error::{Error, Result};
use crate::ids::{IndexId, Lsn, PageId, TxnId};
use crate::options::Options;
use crate::overflow;
use crate::progress::Progress;
use crate::recovery::Store;
use crate::stats::Stats;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, thread};
use crate::txn::{Bounds, DeadlockReport, ForCheckpoint, Isolation, LeftByCrash, LockReport, LockReports, Pace, Prepared, ROOT_INDEX, System, Txn, TxnLocks, TxnSize};
use crate::waits::Waits;
use crate::wal::{ControlFile, LogFollower};

/// What [`Engine::check`] counted.
pub type CheckReport = TreeReport;

/// What an index has of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSize {
    pub root_page: PageId,
    /// Pages of its extents, in use or not.
    pub pages: u64,
    /// Of these, pages in use: those of the tree, and those of long values.
    pub pages_used: u64,
}

/// A transactional, versioned, ordered byte store: many indexes, each a tree of (key, value). Cloning shares it. When the last handle
/// goes without a `shutdown`, it stops as a crash would stop it: nothing committed is lost, the next open recovers.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    system: Arc<System>,
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    /// Without background threads: when `background_step` saw what.
    pace: Mutex<Pace>,
}

impl Engine {
    /// Opens or makes the database on `disk`. After a crash it returns as soon as redo is done; what unfinished transactions left is
    /// undone in the background (without background threads: before it returns), their rows staying locked until then.
    pub fn open(disk: Arc<dyn Disk>, options: Options, clock: Arc<dyn Clock>) -> Result<Engine> {
        let (store, recovered) = Store::open(disk, &options, &mut |_| {})?;
        tracing::info!(
            created = recovered.created,
            clean = recovered.clean,
            records = recovered.records_scanned,
            pages_redone = recovered.pages_redone,
            pages_restored = recovered.pages_restored,
            unfinished = recovered.losers.len(),
            "opened the database"
        );
        let background = options.background;
        let system = Arc::new(System::new(store.clone(), options, clock, &recovered));
        let inner = Inner {
            system: system.clone(),
            stop: Arc::new(AtomicBool::new(false)),
            threads: Mutex::default(),
            pace: Mutex::new(Pace::new()),
        };
        let engine = Engine { inner: Arc::new(inner) };
        let mut left = LeftByCrash { losers: system.adopt_losers(&recovered.losers)?.into(), dropped: store.space.dropping() };
        store.start(Arc::new(ForCheckpoint(Arc::downgrade(&system))));
        system.create_system_trees()?;
        system.settle_prepared()?;
        if !background {
            system.finish_open(&mut left, &engine.inner.stop)?;
            return Ok(engine);
        }
        engine.spawn("undo", move |system, stop| system.finish_open_until(left, stop));
        engine.spawn("purge", |system, stop| system.purge_until(stop));
        engine.spawn("copy", |system, stop| system.copy_prepared_until(stop));
        Ok(engine)
    }

    /// True if there is a database on `disk`. Changes nothing.
    pub fn exists(disk: &dyn Disk) -> Result<bool> {
        Ok(ControlFile::open(disk)?.is_some_and(|control| control.last().complete))
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&System, &AtomicBool) + Send + 'static) {
        let (system, stop) = (self.inner.system.clone(), self.inner.stop.clone());
        let thread = thread::Builder::new().name(name.into()).spawn(move || run(&system, &stop));
        self.inner.threads.lock().push(thread.expect("the system has room for the engine's threads"));
    }

    /// Flushes everything, writes a checkpoint and joins all threads. Transactions still open are undone by the next open. The engine must
    /// not be used afterwards.
    pub fn shutdown(&self) -> Result<()> {
        self.inner.join();
        let system = &self.inner.system;
        system.set_gate(None);
        system.publish_abandoned()?;
        self.store().shutdown()
    }

    #[cfg(test)]
    pub(crate) fn system(&self) -> &System {
        &self.inner.system
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.system.store
    }

    /// Starts a transaction. It costs nothing until it reads or writes.
    pub fn begin(&self, isolation: Isolation) -> Txn {
        Txn::begin(self.inner.system.clone(), isolation)
    }

    /// The transactions that an earlier life left prepared, each with what [`Txn::prepare`] was told of it. Once: whoever takes them decides.
    pub fn take_prepared(&self) -> Vec<(Prepared, Vec<u8>)> {
        Prepared::take(&self.inner.system)
    }

    /// The index that every new database has: the owner's catalog starts here.
    pub fn root_index(&self) -> IndexId {
        ROOT_INDEX
    }

    /// False for an index never created, rolled back, or dropped and freed.
    pub fn index_exists(&self, index: IndexId) -> bool {
        self.store().space.root(index).is_some()
    }

    /// All indexes, the engine's own included.
    pub fn indexes(&self) -> Vec<IndexId> {
        self.store().space.trees()
    }

    /// What it was opened with.
    pub fn options(&self) -> &Options {
        &self.inner.system.options
    }

    /// `innodb_flush_log_at_trx_commit`: 0, 1 or 2.
    pub fn set_flush_log_at_commit(&self, level: u8) {
        self.store().wal.set_flush_level(level);
    }

    /// The commit gate: commits of transactions that wait for it (`Txn::wait_for_gate`) are durable, but nobody sees them and their rows stay locked, up to the
    /// first whose record is behind `lsn`, and with it all that come after it. `None`, as at the start: there is no gate.
    pub fn set_commit_gate(&self, lsn: Option<Lsn>) {
        self.inner.system.set_gate(lsn);
    }

    /// How a thread is to wait for the gate, once: if other tasks run on it too, among them those that open the gate, they have to move away.
    pub fn on_blocking(&self, blocking: Box<dyn Fn(&mut dyn FnMut()) + Send + Sync>) {
        self.inner.system.set_blocking(blocking);
    }

    /// Runs `f`, which blocks its thread until some other task is done, as `on_blocking` wants it.
    pub fn block(&self, f: &mut dyn FnMut()) {
        self.inner.system.block(f);
    }

    /// As `block`, of work that is long, or may wait long, and gives something back.
    pub fn blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        let (mut work, mut done) = (Some(work), None);
        self.block(&mut || done = work.take().map(|work| work()));
        done.expect("what blocks has been run")
    }

    /// `innodb_deadlock_detect`.
    pub fn set_deadlock_detect(&self, on: bool) {
        self.inner.system.locks.set_deadlock_detect(on);
    }

    /// `innodb_spin_wait_delay`: for how long a page's latch is polled before its waiter sleeps, in sixths of a microsecond or about that. 0:
    /// not at all.
    pub fn set_spin_wait_delay(&self, delay: u32) {
        self.store().pool.set_spin_wait_delay(delay);
    }

    /// `innodb_io_capacity`: pages a second that background writing may spend while nothing presses.
    pub fn set_io_capacity(&self, pages: u32) {
        self.store().set_io_capacity(pages);
    }

    /// `innodb_redo_log_capacity`, in bytes.
    pub fn set_redo_log_capacity(&self, bytes: u64) {
        self.store().wal.set_capacity(bytes);
    }

    /// `innodb_log_buffer_size`, in bytes.
    pub fn set_log_buffer_bytes(&self, bytes: usize) {
        self.store().wal.set_buffer_max(bytes);
    }

    /// `innodb_fill_factor`: percent of their pages that bulk loads begun from now on fill, 10 to 100.
    pub fn set_fill_factor(&self, percent: u8) {
        self.inner.system.fill_factor.store(percent, Ordering::Relaxed);
    }

    /// Whether every commit that has been waited for is durable: `innodb_flush_log_at_trx_commit` was 1, or the log has been synced since.
    pub fn commits_are_durable(&self) -> bool {
        self.store().wal.commits_are_durable()
    }

    /// Makes everything appended to the log so far durable.
    pub fn flush_log(&self) -> Result<()> {
        self.store().wal.flush()
    }

    /// Reads the commits' events from `from` on, a position that was not released.
    pub fn follow_log(&self, from: Lsn) -> LogFollower {
        LogFollower::new(self.inner.system.store.wal.clone(), from)
    }

    /// With `Options::hold_log`: the events of commits before `lsn` will not be read again; `None`: of no commit any more.
    pub fn release_log(&self, lsn: Option<Lsn>) {
        self.store().wal.release(lsn);
    }

    /// `hook` is called when writers wait for the log's follower and, while `watch_log(true)`, after every group commit. It must not block.
    /// Only the first hook counts.
    pub fn on_durable(&self, hook: Box<dyn Fn() + Send + Sync>) {
        self.store().wal.set_on_durable(hook);
    }

    /// Whether the log's follower is told of every group commit, or only when writers wait for it.
    pub fn watch_log(&self, watch: bool) {
        self.store().wal.watch(watch);
    }

    /// The log's end and how far it is durable.
    pub fn log_position(&self) -> (Lsn, Lsn) {
        let wal = &self.store().wal;
        (wal.end(), wal.durable())
    }

    /// The disk that the database is on.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.store().disk
    }

    /// Stops the engine: what is beside the database could not be written. Nothing is acknowledged any more.
    pub fn stop_with(&self, reason: &str) -> Error {
        self.store().stop_with(reason)
    }

    /// Takes a checkpoint now.
    pub fn checkpoint(&self) -> Result<()> {
        self.store().checkpoint()
    }

    /// One round of purge, publication and copies of what is prepared, for engines opened without background threads. Returns how much
    /// it purged.
    pub fn background_step(&self) -> Result<usize> {
        let system = &self.inner.system;
        let done = system.background_step(&mut self.inner.pace.lock())?;
        system.copy_prepared(&self.inner.stop)?;
        Ok(done)
    }

    /// Where a session's statements note what they wait for; `stats` has the sums of all.
    pub fn waits(&self) -> Arc<Waits> {
        Waits::new(self.inner.system.waits.clone())
    }

    /// The counters since the engine was opened.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.inner.system)
    }

    /// Locks that are held, about `most` of them, and all that are waited for, as InnoDB would show them: see [`LockReport`]. An error of the disk.
    pub fn locks(&self, most: usize) -> Result<LockReports> {
        self.inner.system.lock_reports(most)
    }

    /// The locks that are waited for. An error of the disk.
    pub fn lock_waits(&self) -> Result<Vec<LockReport>> {
        self.inner.system.lock_waits()
    }

    /// The locks that are waited for, and those that are held on the same records. An error of the disk.
    pub fn contended_locks(&self) -> Result<Vec<LockReport>> {
        self.inner.system.contended_locks()
    }

    /// What a transaction has locks on, counted; `None` once it has ended. An error of the disk.
    pub fn txn_locks(&self, id: TxnId) -> Result<Option<TxnLocks>> {
        self.inner.system.txn_locks(id)
    }

    /// Somebody has the lock on a number (`Txn::number_lock`).
    pub fn is_number_locked(&self, number: u64) -> bool {
        self.inner.system.locks.is_held(IndexId::NUMBERS, &number.to_be_bytes())
    }

    /// How much a transaction has locked and changed; `None` once it has ended.
    pub fn txn_size(&self, id: TxnId) -> Option<TxnSize> {
        self.inner.system.txn_size(id)
    }

    /// Calls `watcher` with every deadlock from now on, before its victim is told. It may read, but not wait for a lock. The first watcher stays.
    pub fn watch_deadlocks(&self, watcher: Box<dyn Fn(&DeadlockReport) + Send + Sync>) {
        self.inner.system.watch_deadlocks(watcher);
    }

    /// Verifies every invariant of the index's tree.
    pub fn check(&self, index: IndexId) -> Result<CheckReport> {
        self.inner.system.tree(index)?.check()
    }

    /// As `check`, and whether the pages of the tree and of its long values are those allocated to it. `stop` is asked before every page; `None`
    /// once it says yes. Writers may go on; but whose a page is, is judged only if nothing was logged meanwhile and there is no transaction that
    /// has written, for older versions have pages too, and pages are taken before they are linked. The index must not be dropped meanwhile.
    pub fn check_until(&self, index: IndexId, progress: &Progress, stop: &dyn Fn() -> bool) -> Result<Option<CheckReport>> {
        let system = &self.inner.system;
        let tree = system.tree(index)?;
        let before = system.quiet_at()?;
        let mut long_values = Vec::new();
        let Some(mut report) = tree.check_until(progress, stop, &mut long_values)? else { return Ok(None) };
        let Some(before) = before.filter(|_| !tree.has_loads()) else { return Ok(Some(report)) };
        let mut runs = Vec::new();
        for value in long_values {
            if stop() {
                return Ok(None);
            }
            // Its pages may be another's by now: then they need not be what they were.
            match overflow::runs(&system.store.pool, value) {
                Ok(found) => runs.extend(found),
                Err(_) if system.quiet_at()? != Some(before) => return Ok(Some(report)),
                Err(e) => return Err(e),
            }
        }
        let long = runs.iter().flat_map(|run| (run.first.0..run.first.0 + u64::from(run.pages)).map(PageId));
        let ownership = self.store().space.compare(index, report.pages.iter().copied().chain(long));
        report.ownership = (system.quiet_at()? == Some(before)).then_some(ownership);
        Ok(Some(report))
    }

    /// Whether `check_until` would judge whose the pages are if it began now.
    pub fn is_quiet(&self) -> Result<bool> {
        Ok(self.inner.system.quiet_at()?.is_some())
    }

    /// Makes the index dense and gives back the space that this frees, while others read and write it. Leaves are filled as by a bulk load.
    /// `stop` is asked before every page; once it says yes, the answer is false. Rows that purge has not removed yet are kept.
    /// The index must not be dropped meanwhile.
    pub fn compact(&self, index: IndexId, progress: &Progress, stop: &dyn Fn() -> bool) -> Result<bool> {
        let system = &self.inner.system;
        system.tree(index)?.compact(system.fill_factor.load(Ordering::Relaxed), progress, stop)
    }

    /// What the index's tree counted since it was opened: splits by kind, merges, waits, restarts.
    pub fn tree_counters(&self, index: IndexId) -> Result<TreeCounters> {
        Ok(self.inner.system.tree(index)?.stats().counters())
    }

    /// Pages, records and bytes of every level of the index, leaves first. Reads every page of it, under one or two shared latches
    /// at a time; exact only while nobody writes. `stop` is asked before every page; `None` once it says yes. The index must not be
    /// dropped meanwhile.
    pub fn levels(&self, index: IndexId, stop: &dyn Fn() -> bool) -> Result<Option<Vec<LevelReport>>> {
        self.inner.system.tree(index)?.levels(stop)
    }

    /// Where the index's tree begins, and the pages it has.
    pub fn index_size(&self, index: IndexId) -> Result<IndexSize> {
        let space = &self.store().space;
        let root_page = space.root(index).ok_or(Error::NoSuchIndex(index))?;
        let (pages, pages_used) = space.size(index).ok_or(Error::NoSuchIndex(index))?;
        Ok(IndexSize { root_page, pages, pages_used })
    }

    /// Pages that the buffer pool has room for.
    pub fn pool_pages(&self) -> u64 {
        self.store().pool.frame_count() as u64
    }

    /// About how many rows the index has, deleted ones that purge has not reached included.
    pub fn estimate_rows(&self, index: IndexId) -> Result<u64> {
        Ok(self.inner.system.tree(index)?.estimate()?.rows)
    }

    /// About how many rows lie in the range.
    pub fn estimate_range(&self, index: IndexId, bounds: &Bounds) -> Result<u64> {
        let tree = self.inner.system.tree(index)?;
        tree.estimate_range(borrow(&bounds.lower), borrow(&bounds.upper))
    }

    /// Leaf pages of the index, about.
    pub fn estimate_leaf_pages(&self, index: IndexId) -> Result<u64> {
        Ok(self.inner.system.tree(index)?.estimate()?.leaf_pages)
    }

    /// Cuts the range at inner separators into at most `parts` ranges of similar size, in key order.
    pub fn split_range(&self, index: IndexId, bounds: &Bounds, parts: usize) -> Result<Vec<Bounds>> {
        let tree = self.inner.system.tree(index)?;
        let (lower, upper) = ends(bounds);
        Ok(cut(bounds, tree.separators(lower, upper, parts.saturating_sub(1))?))
    }

    /// Cuts the range into pieces for parallel scans, in key order, always at the same keys while the tree keeps its shape.
    /// Of few leaves, each piece has at most `leaves`, usually [`MORSEL_LEAVES`](crate::MORSEL_LEAVES).
    /// `group`: how many of a key's first bytes say which group of keys it belongs to. Where groups are small no cut goes through one.
    pub fn morsels(&self, index: IndexId, bounds: &Bounds, leaves: usize, group: impl Fn(&[u8]) -> usize) -> Result<Morsels> {
        let tree = self.inner.system.tree(index)?;
        let (lower, upper) = ends(bounds);
        let cuts = tree.morsel_cuts(lower, upper, leaves)?;
        let mut before: Vec<Vec<u8>> = cuts.iter().map(|cut| cut[..group(cut)].to_vec()).collect();
        before.dedup();
        before.retain(|cut| cut.as_slice() > lower);
        // Groups of the size of a piece would leave few of them.
        let whole_groups = before.len() * 2 >= cuts.len();
        Ok(Morsels { parts: cut(bounds, if whole_groups { before } else { cuts }), whole_groups })
    }
}

/// A range in pieces; see [`Engine::morsels`].
#[derive(Clone, Debug)]
pub struct Morsels {
    pub parts: Vec<Bounds>,
    /// All keys of the range that belong to one group are in one piece.
    pub whole_groups: bool,
}

/// The bounds' keys, whether they belong to the range or not.
fn ends(bounds: &Bounds) -> (&[u8], Option<&[u8]>) {
    let lower = match &bounds.lower {
        Bound::Included(key) | Bound::Excluded(key) => key.as_slice(),
        Bound::Unbounded => &[],
    };
    let upper = match &bounds.upper {
        Bound::Included(key) | Bound::Excluded(key) => Some(key.as_slice()),
        Bound::Unbounded => None,
    };
    (lower, upper)
}

/// The range in pieces that begin at the cuts.
fn cut(bounds: &Bounds, cuts: Vec<Vec<u8>>) -> Vec<Bounds> {
    let mut ranges = Vec::new();
    let mut from = bounds.lower.clone();
    for cut in cuts {
        ranges.push(Bounds::new(from, Bound::Excluded(cut.clone())));
        from = Bound::Included(cut);
    }
    ranges.push(Bounds::new(from, bounds.upper.clone()));
    ranges
}

fn borrow(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl Inner {
    fn join(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.system.history.wake();
        for thread in self.threads.lock().drain(..) {
            if thread.thread().id() != thread::current().id() {
                thread.join().expect("the engine's threads do not panic");
            }
        }
        self.system.locks.stop();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.join();
        self.system.store.stop();
    }
}
