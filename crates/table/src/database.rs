//! The database: an engine with a catalog of tables.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use highkey_storage::{Clock, Disk, Engine, Error, FileDisk, IndexId, Isolation, Options, SystemClock};
use highkey_binlog::Uuid;
use highkey_types::MySqlError;
use parking_lot::Mutex;

use crate::catalog::{Catalog, keys, load};
use crate::commit::{Binlog, BinlogOptions, SemiSync};
use crate::high_water::put;
use crate::metadata_lock::MetadataLocks;
use crate::session_locks::SessionLocks;
use crate::statistics::Statistics;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::xa::XaBranches;

/// An open database. Shared by all sessions; needs no server.
pub struct Database {
    engine: Engine,
    catalog: ArcSwap<Catalog>,
    /// Held while a new catalog is made from the present one.
    publishing: Mutex<()>,
    /// Counts published catalogs: a snapshot taken at epoch e sees the trees of every table published up to e.
    epoch: AtomicU64,
    accounts_version: AtomicU64,
    pub(crate) metadata_locks: Arc<MetadataLocks>,
    server_uuid: Uuid,
    binlog: Option<Arc<Binlog>>,
    pub(crate) xa: XaBranches,
}

/// Why a database does not open.
#[derive(Debug)]
pub enum OpenError {
    Storage(Error),
    /// The catalog is damaged or of another version.
    Catalog(String),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Storage(cause) => write!(f, "{cause}"),
            OpenError::Catalog(what) => write!(f, "the catalog cannot be used: {what}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<Error> for OpenError {
    fn from(cause: Error) -> OpenError {
        OpenError::Storage(cause)
    }
}

impl From<MySqlError> for OpenError {
    fn from(cause: MySqlError) -> OpenError {
        OpenError::Catalog(cause.message)
    }
}

impl Database {
    /// Opens the database in a directory, or makes one there.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Arc<Database>, OpenError> {
        Database::open_with(path, options, BinlogOptions::default())
    }

    /// As `open`, with a binary log beside the database.
    pub fn open_with(path: impl AsRef<Path>, options: Options, binlog: BinlogOptions) -> Result<Arc<Database>, OpenError> {
        let disk = FileDisk::open(path.as_ref())?;
        Database::open_on(Arc::new(disk), options, Arc::new(SystemClock::new()), binlog)
    }

    /// True if the directory holds a database. Changes nothing.
    pub fn exists(path: impl AsRef<Path>) -> Result<bool, OpenError> {
        let path = path.as_ref();
        Ok(path.is_dir() && Engine::exists(&FileDisk::open(path)?)?)
    }

    /// Opens the database on a disk, which may be a simulated one.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        options: Options,
        clock: Arc<dyn Clock>,
        binlog: BinlogOptions,
    ) -> Result<Arc<Database>, OpenError> {
        // What an earlier life left in the log for the binary log's files must stay until they are looked at.
        let engine = Engine::open(disk, Options { hold_log: true, ..options }, clock)?;
        let metadata_locks = Arc::new(MetadataLocks::new());
        let (catalog, server_uuid) = load::load(&engine, &metadata_locks)?;
        let binlog = Binlog::open_or_close(&engine, server_uuid, binlog)?;
        let xa = XaBranches::open(&engine, &catalog, &metadata_locks)?;
        Ok(Arc::new(Database {
            engine,
            catalog: ArcSwap::from_pointee(catalog),
            publishing: Mutex::new(()),
            epoch: AtomicU64::new(0),
            accounts_version: AtomicU64::new(0),
            metadata_locks,
            server_uuid,
            binlog,
            xa,
        }))
    }

    /// The storage engine below.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// `server_uuid`: made when the database was.
    pub fn server_uuid(&self) -> Uuid {
        self.server_uuid
    }

    /// The binary log, if it is on.
    pub fn binlog(&self) -> Option<&Arc<Binlog>> {
        self.binlog.as_ref()
    }

    /// What commits of the binary log ask whether they are to wait for replicas.
    pub(crate) fn semi_sync(&self) -> Option<&Arc<SemiSync>> {
        self.binlog.as_ref().map(|binlog| binlog.semi_sync())
    }

    /// The committed definitions at this moment. Does not lock.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Another number after every change of an account: what was read of accounts under the same number is still so.
    pub fn accounts_version(&self) -> u64 {
        self.accounts_version.load(Ordering::Acquire)
    }

    /// To be called after the changed accounts have been published, and when something else has changed what they may do.
    pub fn note_accounts_changed(&self) {
        self.accounts_version.fetch_add(1, Ordering::Release);
    }

    /// A transaction of nobody's session.
    pub fn begin(self: &Arc<Self>, isolation: Isolation) -> Transaction {
        Transaction::new(self.clone(), isolation, None)
    }

    /// A transaction of a session.
    pub fn begin_in(self: &Arc<Self>, isolation: Isolation, session: &Arc<SessionLocks>) -> Transaction {
        Transaction::new(self.clone(), isolation, Some(session.clone()))
    }

    /// Writes counters and statistics, then closes the engine cleanly. No transaction may be open, but prepared ones that nobody holds.
    pub fn shutdown(&self) -> Result<(), OpenError> {
        if let Some(binlog) = &self.binlog {
            binlog.shutdown()?;
        }
        let catalog = self.catalog();
        let mut txn = self.engine.begin(Isolation::ReadCommitted);
        for table in catalog.all_tables() {
            table.state.auto_increment.counter().settle()?;
            table.state.row_ids.counter().settle()?;
            let mut statistics = table.cached_statistics().map_or_else(Statistics::default, |s| (*s).clone());
            statistics.rows = table.row_count_estimate()?;
            put(&mut txn, self.catalog_index(), &keys::statistics(table.id()), &statistics.record())?;
        }
        put(&mut txn, self.catalog_index(), &keys::clean(), b"")?;
        txn.commit(&[])?.wait()?;
        self.engine.shutdown()?;
        Ok(())
    }

    pub(crate) fn catalog_index(&self) -> IndexId {
        self.engine.root_index()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Replaces the catalog by an edited copy, after the edit has been committed to the catalog tree. `edit` is given
    /// the new epoch, for tables whose trees are new.
    pub(crate) fn publish<T>(&self, edit: impl FnOnce(&mut Catalog, u64) -> T) -> T {
        let _publishing = self.publishing.lock();
        let epoch = self.epoch() + 1;
        let mut next = (*self.catalog()).clone();
        let outcome = edit(&mut next, epoch);
        next.settle_links();
        self.catalog.store(Arc::new(next));
        self.epoch.store(epoch, Ordering::Release);
        outcome
    }

    /// Replaces one table by its next definition.
    pub(crate) fn replace_table(&self, catalog: &mut Catalog, old: &Table, new: Arc<Table>) {
        catalog.remove_table(&old.def.schema, &old.def.name);
        catalog.put_table(new);
        old.retire();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(binlog) = &self.binlog {
            binlog.join();
        }
    }
}
