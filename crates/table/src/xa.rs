//! Transactions in two phases: who has which name, and what is prepared (README.md, "Two phases").

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use highkey_binlog::Xid;
use highkey_storage::{CommitWait, Engine, Isolation, Prepared, TxnId, Waits};
use highkey_types::{MySqlError, errors};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::commit::{EventSource, SemiSync};
use crate::database::{Database, OpenError};
use crate::error;
use crate::metadata_lock::MetadataLocks;
use crate::replica::ReplicaRecord;
use crate::table::TableState;
use crate::transaction::{Committing, HeldLocks, Transaction};

/// What the record that prepares a transaction tells a later life of the database.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Xid")]
struct XidRecord {
    format: i64,
    gtrid: Vec<u8>,
    bqual: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct PreparedInfo {
    #[serde(with = "XidRecord")]
    pub xid: Xid,
    /// The binary log tells of it, and is to be told how it ended.
    pub logged: bool,
    pub tables: Vec<ChangedTable>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ChangedTable {
    pub schema: String,
    pub table: String,
    /// Rows more than before.
    pub added: i64,
}

impl PreparedInfo {
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has string keys only")
    }
}

/// A prepared transaction that has changed something, with the metadata locks of what it has changed.
pub(crate) struct PreparedTransaction {
    pub inner: Prepared,
    pub deltas: Vec<(Arc<TableState>, i64)>,
    pub logged: bool,
    /// Declared after `inner`: they go when the rows have been committed or rolled back.
    pub _locks: HeldLocks,
}

/// What a name stands for.
#[derive(Default)]
enum Work {
    /// Not prepared.
    #[default]
    Open,
    /// Prepared, and has changed nothing; it keeps what it has read as long as somebody holds it.
    Unchanged { _held: Option<Box<Transaction>> },
    Changed(Box<PreparedTransaction>),
}

struct Named {
    xid: Arc<Xid>,
    prepared: bool,
    /// Prepared, and held by no session,
    left: Option<Work>,
    /// since when.
    since: SystemTime,
    /// Whoever prepared it may not have got to note that: an earlier life of the database prepared it, or a replica whose note failed.
    unnoted: bool,
}

/// A prepared transaction that no session has.
#[derive(Clone, Copy, Debug)]
pub struct LeftTransaction {
    pub id: TxnId,
    /// Since then nobody has it: its session has ended, or the database was opened.
    pub since: SystemTime,
    pub isolation: Isolation,
}

/// All transactions in two phases, by the parts of their names that tell them apart. As in MySQL the format does not.
#[derive(Default)]
pub(crate) struct XaBranches {
    named: Mutex<BTreeMap<(Vec<u8>, Vec<u8>), Named>>,
}

fn key(xid: &Xid) -> (Vec<u8>, Vec<u8>) {
    (xid.gtrid.clone(), xid.bqual.clone())
}

impl XaBranches {
    /// Takes over what an earlier life left prepared.
    pub fn open(engine: &Engine, catalog: &Catalog, locks: &Arc<MetadataLocks>) -> Result<XaBranches, OpenError> {
        let branches = XaBranches::default();
        for (inner, info) in engine.take_prepared() {
            let info: PreparedInfo =
                serde_json::from_slice(&info).map_err(|e| OpenError::Catalog(format!("a prepared transaction does not decode: {e}")))?;
            let state = |changed: &ChangedTable| Some((catalog.table(&changed.schema, &changed.table).ok()?.state.clone(), changed.added));
            let deltas = info.tables.iter().filter_map(state).collect();
            let prepared = PreparedTransaction { inner, deltas, logged: info.logged, _locks: HeldLocks::restored(locks, &info.tables) };
            let left = Some(Work::Changed(Box::new(prepared)));
            let named = Named { xid: Arc::new(info.xid), prepared: true, left, since: SystemTime::now(), unnoted: true };
            branches.named.lock().insert(key(&named.xid), named);
        }
        Ok(branches)
    }
}

/// A transaction in two phases, in the hands of somebody. If those let it go it is prepared and anybody's, if it is prepared, else over.
pub struct XaBranch {
    db: Arc<Database>,
    xid: Arc<Xid>,
    work: Work,
}

impl Database {
    /// A new transaction's name. `None`: there is one of this name.
    pub fn xa_start(self: &Arc<Self>, xid: Xid) -> Option<XaBranch> {
        let mut named = self.xa.named.lock();
        let std::collections::btree_map::Entry::Vacant(free) = named.entry(key(&xid)) else { return None };
        let xid = Arc::new(xid);
        free.insert(Named { xid: xid.clone(), prepared: false, left: None, since: SystemTime::now(), unnoted: false });
        Some(XaBranch { db: self.clone(), xid, work: Work::Open })
    }

    /// A prepared transaction that nobody holds.
    pub fn xa_take(self: &Arc<Self>, xid: &Xid) -> Option<XaBranch> {
        let mut named = self.xa.named.lock();
        let found = named.get_mut(&key(xid)).filter(|found| *found.xid == *xid)?;
        let work = found.left.take()?;
        Some(XaBranch { db: self.clone(), xid: found.xid.clone(), work })
    }

    /// The names of all prepared transactions: XA RECOVER.
    pub fn xa_prepared(&self) -> Vec<Arc<Xid>> {
        self.xa.named.lock().values().filter(|named| named.prepared).map(|named| named.xid.clone()).collect()
    }

    /// Those that no session has and that have changed something, for reports.
    pub fn xa_left(&self) -> Vec<LeftTransaction> {
        let named = self.xa.named.lock();
        let left = named.values().filter_map(|named| match &named.left {
            Some(Work::Changed(prepared)) => Some(LeftTransaction { id: prepared.inner.id(), since: named.since, isolation: prepared.inner.isolation() }),
            _ => None,
        });
        left.collect()
    }

    /// Whether a transaction of this name is prepared, and whoever prepared it may not have got to note that: an earlier life of the database
    /// prepared it, or `xa_is_unnoted` was called.
    pub fn xa_may_be_unnoted(&self, xid: &Xid) -> bool {
        self.xa.named.lock().get(&key(xid)).is_some_and(|named| named.unnoted && *named.xid == *xid)
    }

    /// The replica that has prepared it could not note that: it will come again.
    pub fn xa_is_unnoted(&self, xid: &Xid) {
        if let Some(named) = self.xa.named.lock().get_mut(&key(xid)).filter(|named| named.prepared) {
            named.unnoted = true;
        }
    }
}

impl XaBranch {
    /// Its name.
    pub fn xid(&self) -> &Arc<Xid> {
        &self.xid
    }

    /// Whether its end changes something.
    pub fn has_changes(&self) -> bool {
        matches!(self.work, Work::Changed(_))
    }

    /// The binary log has been told of its preparation, and is to be told of its end.
    pub fn is_logged(&self) -> bool {
        matches!(&self.work, Work::Changed(prepared) if prepared.logged)
    }

    /// Prepared, and not ended yet.
    pub fn is_prepared(&self) -> bool {
        !matches!(self.work, Work::Open)
    }

    /// Prepares what has been done. On an error the transaction is rolled back. `appended` is called before the wait for the disk.
    pub async fn prepare(&mut self, txn: Transaction, appended: impl FnOnce()) -> Result<(), MySqlError> {
        let wait = if txn.has_writes() {
            let (interrupt, progress) = txn.waits_with();
            let (prepared, wait, acknowledged) = txn.prepare(&self.xid)?;
            self.work = Work::Changed(Box::new(prepared));
            Some((wait, acknowledged, interrupt, progress))
        } else {
            self.work = Work::Unchanged { _held: Some(Box::new(txn)) };
            None
        };
        if let Some(named) = self.db.xa.named.lock().get_mut(&key(&self.xid)) {
            named.prepared = true;
        }
        appended();
        match wait {
            Some((wait, acknowledged, interrupt, progress)) => {
                wait.await.map_err(failed)?;
                if let Some(acknowledged) = acknowledged {
                    acknowledged.wait(&interrupt, &progress).await;
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A rollback has been decided, and met an error: it can only be rolled back, by this life of the database or by the next.
    pub fn is_rolled_back(&self) -> bool {
        matches!(&self.work, Work::Changed(prepared) if prepared.inner.is_rolled_back())
    }

    /// Commits what is prepared, durably as `Transaction::commit`. With `log` the binary log is told, if it was told of the preparation.
    /// On an error before the commit it stays prepared. Error 1402 where `is_rolled_back`.
    pub async fn commit(&mut self, log: Option<&EventSource>, record: Option<&ReplicaRecord>) -> Result<(), MySqlError> {
        if self.is_rolled_back() {
            return Err(errors::xa_rbrollback());
        }
        if let Work::Changed(prepared) = &mut self.work {
            let replicas = self.db.semi_sync().filter(|replicas| replicas.is_enabled() && log.is_some() && prepared.logged).cloned();
            if let Some(replicas) = &replicas {
                replicas.prepare(prepared.inner.as_txn());
            }
            let wait = match prepared.commit(log, record, &self.xid) {
                Ok(wait) => wait,
                Err(e) => {
                    // Else the log would be kept for the record until the next try, and a commit without it would commit it. That try goes on with an
                    // undo that fails here.
                    if let Err(cause) = prepared.inner.forget_added() {
                        tracing::warn!(%cause, "what was to be committed with a prepared transaction cannot be undone now");
                    }
                    return Err(e);
                }
            };
            self.ended(wait, replicas).await?;
        }
        self.work = Work::Open;
        Ok(())
    }

    /// Rolls back what is prepared. On an error it stays prepared, or `is_rolled_back`: then the next call goes on with it.
    pub async fn rollback(&mut self, log: Option<&EventSource>) -> Result<(), MySqlError> {
        if let Work::Changed(prepared) = &mut self.work {
            let replicas = self.db.semi_sync().filter(|replicas| replicas.is_enabled() && log.is_some() && prepared.logged).cloned();
            if let Some(replicas) = &replicas {
                replicas.prepare_unseen(prepared.inner.as_txn());
            }
            let events = prepared.events(log, "ROLLBACK", &self.xid);
            let wait = prepared.inner.rollback(&events).map_err(failed)?;
            prepared.deltas.clear();
            self.ended(wait, replicas).await?;
        }
        self.work = Work::Open;
        Ok(())
    }

    /// The record that ends it is in the log. Replicas are waited for whatever a KILL says: it ends by `rpl_semi_sync_source_timeout`.
    async fn ended(&mut self, wait: CommitWait, replicas: Option<Arc<SemiSync>>) -> Result<(), MySqlError> {
        let Work::Changed(prepared) = std::mem::take(&mut self.work) else { unreachable!("it has ended something") };
        let acknowledged = replicas.and_then(|replicas| replicas.begin(wait.lsn()));
        let (interrupt, progress) = Default::default();
        Committing::new(wait, &interrupt, &progress).await.map_err(failed)?;
        prepared.deltas.into_iter().for_each(|(table, added)| table.add_rows(added));
        if let Some(acknowledged) = acknowledged {
            acknowledged.wait(&interrupt, &progress).await;
        }
        Ok(())
    }
}

impl PreparedTransaction {
    /// Its commit record is in the log when it returns.
    fn commit(&mut self, log: Option<&EventSource>, record: Option<&ReplicaRecord>, xid: &Xid) -> Result<CommitWait, MySqlError> {
        if let Some(record) = record {
            self.inner.add(|txn| record.put(txn)).map_err(failed)??;
        }
        let events = self.events(log, "COMMIT", xid);
        self.inner.commit(&events).map_err(failed)
    }

    fn events(&self, log: Option<&EventSource>, verb: &str, xid: &Xid) -> Vec<u8> {
        match log.filter(|_| self.logged) {
            // A replica must not end it before it is prepared there.
            Some(source) => {
                let payload = source.xa_payload(verb, xid, self.inner.releasing().max(self.inner.lsn()));
                Waits::note_binlog_bytes(payload.len() as u64);
                payload
            }
            None => Vec::new(),
        }
    }
}

fn failed(cause: highkey_storage::Error) -> MySqlError {
    error::storage(cause, "transaction")
}

impl Drop for XaBranch {
    fn drop(&mut self) {
        let left = match std::mem::take(&mut self.work) {
            Work::Open => {
                self.db.xa.named.lock().remove(&key(&self.xid));
                return;
            }
            Work::Unchanged { .. } => Work::Unchanged { _held: None },
            Work::Changed(mut prepared) => {
                prepared.inner.leave_session();
                Work::Changed(prepared)
            }
        };
        let mut named = self.db.xa.named.lock();
        if let Some(named) = named.get_mut(&key(&self.xid)) {
            (named.left, named.since) = (Some(left), SystemTime::now());
        }
    }
}
