//! What a session has locked beyond its transactions: LOCK TABLES, FLUSH TABLES WITH READ LOCK, and LOCK INSTANCE FOR BACKUP.
//!
//! Its transactions and its DDL know of it (`Database::begin_in`, `DdlContext::session`): they are of one group in the lock table, and what is
//! locked here they do not lock again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use highkey_storage::Interrupt;
use highkey_types::{MySqlError, errors};
use parking_lot::Mutex;

use crate::database::Database;
use crate::ddl::TableName;
use crate::gate::{Gate, Way};
use crate::metadata_lock::{MetadataLock, MetadataLockReport, MetadataLocks, MetadataMode, Owner};

/// Dropping it releases everything. Only its session changes it; whoever else works for the session may ask.
pub struct SessionLocks {
    locks: Arc<MetadataLocks>,
    owner: Owner,
    /// `held` is not empty.
    has_tables: AtomicBool,
    /// LOCK TABLES ... WRITE is inside the gate of statements until UNLOCK TABLES: the global read lock waits for that.
    writes: AtomicBool,
    /// Both gates are closed by this session.
    has_read_lock: AtomicBool,
    /// LOCK INSTANCE FOR BACKUP was executed, and not yet UNLOCK INSTANCE.
    has_instance: AtomicBool,
    held: Mutex<Held>,
}

/// Of LOCK TABLES.
#[derive(Default)]
struct Held {
    tables: Vec<LockedTable>,
    /// The schemas of `tables`: nobody drops them.
    schemas: Vec<Arc<MetadataLock>>,
}

struct LockedTable {
    name: TableName,
    lock: Arc<MetadataLock>,
    write: bool,
}

impl LockedTable {
    fn mode(&self) -> MetadataMode {
        if self.write { MetadataMode::Exclusive } else { MetadataMode::ReadOnly }
    }

    fn is(&self, schema: &str, name: &str) -> bool {
        *self.name.0 == *schema && *self.name.1 == *name
    }
}

impl Database {
    /// The locks of a new session: none.
    pub fn session_locks(&self) -> Arc<SessionLocks> {
        let locks = self.metadata_locks.clone();
        Arc::new(SessionLocks {
            owner: locks.new_owner(),
            locks,
            has_tables: AtomicBool::new(false),
            writes: AtomicBool::new(false),
            has_read_lock: AtomicBool::new(false),
            has_instance: AtomicBool::new(false),
            held: Mutex::default(),
        })
    }
}

impl Database {
    /// The metadata locks that somebody has or waits for, by object.
    pub fn metadata_lock_reports(&self) -> Vec<MetadataLockReport> {
        self.metadata_locks.reports()
    }

    /// Since the start: how often statements have opened a table or view, and how many definitions of tables were made or read. All stay open.
    pub fn table_opens(&self) -> (u64, u64) {
        (self.metadata_locks.uses.get(), self.metadata_locks.opened.load(Ordering::Relaxed))
    }
}

impl SessionLocks {
    /// The session's number in reports of metadata locks.
    pub fn number(&self) -> u64 {
        self.owner.group()
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// LOCK TABLES was executed, and not yet UNLOCK TABLES.
    pub fn has_tables(&self) -> bool {
        self.has_tables.load(Ordering::Relaxed)
    }

    /// FLUSH TABLES WITH READ LOCK was executed, and not yet UNLOCK TABLES.
    pub fn has_read_lock(&self) -> bool {
        self.has_read_lock.load(Ordering::Relaxed)
    }

    /// Under LOCK TABLES: errors 1100 if it does not have this table, 1099 if it is to be changed and locked for reading.
    pub fn check_table(&self, schema: &str, name: &str, write: bool) -> Result<(), MySqlError> {
        match self.held.lock().tables.iter().find(|table| table.is(schema, name)) {
            None => Err(errors::table_not_locked(name)),
            Some(table) if write && !table.write => Err(errors::table_not_locked_for_write(name)),
            Some(_) => Ok(()),
        }
    }

    /// Under LOCK TABLES: error 1099 if it has a table for reading.
    pub fn check_all_for_write(&self) -> Result<(), MySqlError> {
        match self.held.lock().tables.iter().find(|table| !table.write) {
            Some(table) => Err(errors::table_not_locked_for_write(&*table.name.1)),
            None => Ok(()),
        }
    }

    /// Whether what is locked here covers a lock. Error 1099 if it is here, and in a weaker mode.
    pub(crate) fn covers(&self, lock: &Arc<MetadataLock>, wanted: MetadataMode) -> Result<bool, MySqlError> {
        if !self.has_tables() {
            return Ok(false);
        }
        let held = self.held.lock();
        if held.schemas.iter().any(|schema| Arc::ptr_eq(schema, lock)) {
            return if wanted == MetadataMode::Read { Ok(true) } else { Err(errors::lock_or_active_transaction()) };
        }
        match held.tables.iter().find(|table| Arc::ptr_eq(&table.lock, lock)) {
            Some(table) if table.mode().covers(wanted) => Ok(true),
            Some(table) => Err(errors::table_not_locked_for_write(&*table.name.1)),
            None => Ok(false),
        }
    }

    /// LOCK TABLES: each table once, with whether it is for writing. Waits for transactions that use the tables otherwise; the session itself has
    /// none, and no tables locked. Errors: 1205, 1213, 1223, 1317.
    pub async fn lock_tables(&self, tables: &[(TableName, bool)], timeout: Duration, interrupt: &Interrupt) -> Result<(), MySqlError> {
        assert!(!self.has_tables(), "LOCK TABLES releases first");
        let writes = tables.iter().any(|(_, write)| *write);
        if writes {
            if self.has_read_lock() {
                return Err(errors::cant_update_with_readlock());
            }
            self.locks.statements().enter_locked(&self.locks, self.owner, timeout, interrupt).await?;
            // From here on `unlock_tables` leaves the gate.
            self.writes.store(true, Ordering::Relaxed);
        }
        let mut schemas: Vec<_> = tables.iter().map(|((schema, _), _)| schema.clone()).collect();
        schemas.sort();
        schemas.dedup();
        let schemas: Vec<_> = schemas.iter().map(|schema| self.locks.lock_of(schema, "")).collect();
        let locked = |(name, write): &(TableName, bool)| LockedTable { lock: self.locks.lock_of(&name.0, &name.1), name: name.clone(), write: *write };
        let tables: Vec<_> = tables.iter().map(locked).collect();
        let of_schemas = schemas.iter().map(|lock| (lock.clone(), MetadataMode::Read));
        let wanted: Vec<_> = of_schemas.chain(tables.iter().map(|table| (table.lock.clone(), table.mode()))).collect();
        if let Err(e) = self.locks.acquire_all(self.owner, &wanted, timeout, interrupt).await {
            self.unlock_tables();
            return Err(e);
        }
        *self.held.lock() = Held { tables, schemas };
        self.has_tables.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What LOCK TABLES has locked is free.
    pub fn unlock_tables(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        self.has_tables.store(false, Ordering::Relaxed);
        for lock in held.tables.iter().map(|table| &table.lock).chain(&held.schemas) {
            self.locks.release(self.owner, lock);
        }
        if self.writes.swap(false, Ordering::Relaxed) {
            self.locks.statements().leave(&self.locks, self.owner, &Way::Locked);
        }
    }

    /// A table of LOCK TABLES was dropped: its name is free. With the last one LOCK TABLES ends, as in MySQL.
    pub fn forget_table(&self, schema: &str, name: &str) {
        let mut held = self.held.lock();
        if let Some(at) = held.tables.iter().position(|table| table.is(schema, name)) {
            let gone = held.tables.remove(at);
            self.locks.release(self.owner, &gone.lock);
        }
        if held.tables.is_empty() {
            drop(held);
            self.unlock_tables();
        }
    }

    /// A table that LOCK TABLES has for writing has got another name: that is locked instead, once nobody else has it. Errors: 1205, 1213, 1317.
    pub async fn rename_table(&self, from: &TableName, to: TableName, timeout: Duration, interrupt: &Interrupt) -> Result<(), MySqlError> {
        let lock = self.locks.lock_of(&to.0, &to.1);
        self.locks.acquire(self.owner, &lock, MetadataMode::Exclusive, timeout, interrupt).await?;
        let mut held = self.held.lock();
        let renamed = held.tables.iter_mut().find(|table| table.name == *from);
        let old = renamed.map(|table| std::mem::replace(table, LockedTable { name: to, lock: lock.clone(), write: true }));
        self.locks.release(self.owner, old.as_ref().map_or(&lock, |old| &old.lock));
        Ok(())
    }

    /// FLUSH TABLES WITH READ LOCK: waits for the statements that change something and then for the commits that go on; there are no others until
    /// `release_read_lock`. Errors: 1205, 1213, 1317.
    pub async fn take_read_lock(&self, timeout: Duration, interrupt: &Interrupt) -> Result<(), MySqlError> {
        if self.has_read_lock() {
            return Ok(());
        }
        // Statements first: one that commits by itself must be able to end.
        let statements = self.locks.statements().close(&self.locks, self.owner, timeout, interrupt).await?;
        self.locks.commits().close(&self.locks, self.owner, timeout, interrupt).await?.keep();
        statements.keep();
        self.has_read_lock.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Gives up the global read lock, if the session has it.
    pub fn release_read_lock(&self) {
        if self.has_read_lock.swap(false, Ordering::Relaxed) {
            self.locks.commits().open(&self.locks, self.owner);
            self.locks.statements().open(&self.locks, self.owner);
        }
    }

    /// LOCK INSTANCE FOR BACKUP: waits for the statements of others that change a definition; there are no others until `unlock_instance`. Several
    /// sessions may have it. Errors: 1205, 1213, 1317.
    pub async fn lock_instance(&self, timeout: Duration, interrupt: &Interrupt) -> Result<(), MySqlError> {
        if !self.has_instance.load(Ordering::Relaxed) {
            self.locks.acquire(self.owner, self.locks.backup(), MetadataMode::ReadOnly, timeout, interrupt).await?;
            self.has_instance.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// UNLOCK INSTANCE: gives up the backup lock, if the session has it.
    pub fn unlock_instance(&self) {
        if self.has_instance.swap(false, Ordering::Relaxed) {
            self.locks.release(self.owner, self.locks.backup());
        }
    }

    /// To be held by a statement that changes a definition. Waits while another session has locked the instance; `told` is called before. Errors:
    /// 1205, 1213, 1317.
    pub async fn begin_definition_beside_backups(
        self: &Arc<Self>,
        timeout: Duration,
        interrupt: &Interrupt,
        told: impl FnOnce(),
    ) -> Result<DefinitionPassage, MySqlError> {
        if let Some(begun) = self.try_begin_definition_beside_backups() {
            return Ok(begun);
        }
        told();
        let (mode, before) = self.definition_mode();
        self.locks.acquire(self.owner, self.locks.backup(), mode, timeout, interrupt).await?;
        Ok(DefinitionPassage { session: self.clone(), before })
    }

    /// As `begin_definition_beside_backups`. `None`: it would have to wait.
    pub fn try_begin_definition_beside_backups(self: &Arc<Self>) -> Option<DefinitionPassage> {
        let (mode, before) = self.definition_mode();
        self.locks.try_acquire(self.owner, self.locks.backup(), mode).then(|| DefinitionPassage { session: self.clone(), before })
    }

    /// Who has locked the instance itself is alone meanwhile, and has what it had before when it is done.
    fn definition_mode(&self) -> (MetadataMode, Option<MetadataMode>) {
        match self.has_instance.load(Ordering::Relaxed) {
            true => (MetadataMode::Exclusive, Some(MetadataMode::ReadOnly)),
            false => (MetadataMode::Write, None),
        }
    }

    /// To be held by a statement that changes something, its commit included if it commits by itself. Waits while another session has the global
    /// read lock; `told` is called before. Errors: 1223 if this one has it; 1205, 1213, 1317.
    pub async fn begin_change(self: &Arc<Self>, timeout: Duration, interrupt: &Interrupt, told: impl FnOnce()) -> Result<Passage, MySqlError> {
        self.enter_statements(timeout, interrupt, told, false).await
    }

    /// As `begin_change`, for a statement that may wait long for tables: the read lock waits for it as for a table, so that circles are found.
    pub async fn begin_definition(self: &Arc<Self>, timeout: Duration, interrupt: &Interrupt, told: impl FnOnce()) -> Result<Passage, MySqlError> {
        self.enter_statements(timeout, interrupt, told, true).await
    }

    /// As `begin_definition`. `None`: it would have to wait. Error 1223.
    pub fn try_begin_definition(self: &Arc<Self>) -> Result<Option<Passage>, MySqlError> {
        if self.writes.load(Ordering::Relaxed) {
            return Ok(Some(Passage { session: self.clone(), way: None, commit: false }));
        }
        if self.has_read_lock() {
            return Err(errors::cant_update_with_readlock());
        }
        let way = self.locks.statements().try_enter_locked(&self.locks, self.owner);
        Ok(way.map(|way| Passage { session: self.clone(), way: Some(way), commit: false }))
    }

    async fn enter_statements(
        self: &Arc<Self>,
        timeout: Duration,
        interrupt: &Interrupt,
        told: impl FnOnce(),
        by_lock: bool,
    ) -> Result<Passage, MySqlError> {
        let way = match self.writes.load(Ordering::Relaxed) {
            true => None,
            false => Some(self.enter(self.locks.statements(), timeout, interrupt, told, by_lock).await?),
        };
        Ok(Passage { session: self.clone(), way, commit: false })
    }

    /// To be held by the commit of a transaction that has changed something, if no change is. Otherwise as `begin_change`.
    pub async fn begin_commit(self: &Arc<Self>, timeout: Duration, interrupt: &Interrupt, told: impl FnOnce()) -> Result<Passage, MySqlError> {
        let way = self.enter(self.locks.commits(), timeout, interrupt, told, false).await?;
        Ok(Passage { session: self.clone(), way: Some(way), commit: true })
    }

    async fn enter(&self, gate: &Gate, timeout: Duration, interrupt: &Interrupt, told: impl FnOnce(), by_lock: bool) -> Result<Way, MySqlError> {
        if self.has_read_lock() {
            return Err(errors::cant_update_with_readlock());
        }
        let entered = if by_lock { gate.try_enter_locked(&self.locks, self.owner) } else { gate.try_enter(self.owner) };
        match entered {
            Some(way) => Ok(way),
            None => {
                told();
                gate.enter_locked(&self.locks, self.owner, timeout, interrupt).await
            }
        }
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        self.unlock_tables();
        self.release_read_lock();
        self.unlock_instance();
    }
}

/// A session is changing a definition: see [`SessionLocks::begin_definition_beside_backups`]. Ends when dropped.
pub struct DefinitionPassage {
    session: Arc<SessionLocks>,
    before: Option<MetadataMode>,
}

impl Drop for DefinitionPassage {
    fn drop(&mut self) {
        let locks = &self.session.locks;
        locks.give_back(self.session.owner, locks.backup(), self.before);
    }
}

/// A session is changing something, or committing: see [`SessionLocks::begin_change`]. Ends when dropped.
pub struct Passage {
    session: Arc<SessionLocks>,
    /// None: LOCK TABLES has let it in.
    way: Option<Way>,
    commit: bool,
}

impl Drop for Passage {
    fn drop(&mut self) {
        let Some(way) = &self.way else { return };
        let locks = &self.session.locks;
        let gate = if self.commit { locks.commits() } else { locks.statements() };
        gate.leave(locks, self.session.owner, way);
    }
}
