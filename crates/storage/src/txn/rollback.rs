//! Taking changes back: of a transaction, of its part since a savepoint, of one that a crash left unfinished.
//!
//! One walk for all three: along `prev_lsn` through the log, each change compensated by a record whose `undo_next` names what is to be
//! undone after it. A crash in between begins again at the last `undo_next`; within a record of several entries it begins again with
//! the last entry, which is right because an entry is undone only while the record it changed is still the transaction's.

use super::purge::garbage_key;
use super::system::{System, count};
use super::undo::{Before, Undo};
use super::versions::Version;
use crate::btree::{Cursor, Decision, RecordFlags};
use crate::buffer::Writer;
use crate::error::{Error, Result};
use crate::ids::{IndexId, Lsn, TxnId};
use crate::lock::{Owner, row_key};
use crate::overflow;
use crate::progress::{Progress, Stage};
use crate::recovery::Loser;
use crate::space::PageRun;
use crate::sync::Arc;
use crate::wal::Kind;

/// Bytes of log whose undo takes so long that the other tasks of its thread move away first.
const LONG_UNDO: u64 = 1 << 20;

impl System {
    /// Undoes what the owner logged behind `until`, from `last_lsn` back, which becomes the newest record of the undo: after an error it says
    /// where to go on. What may be undone only once would else be undone again.
    pub fn undo_until(&self, owner: &Owner, last_lsn: &mut Lsn, until: Lsn, progress: Option<&Progress>) -> Result<()> {
        let span = last_lsn.0.saturating_sub(until.0.max(owner.first_lsn()));
        if let Some(progress) = progress {
            progress.enter(Stage::RollingBack, span);
        }
        if span < LONG_UNDO {
            return self.undo_each(owner, last_lsn, until, progress);
        }
        let mut undone = Ok(());
        self.block(&mut || undone = self.undo_each(owner, last_lsn, until, progress));
        undone
    }

    fn undo_each(&self, owner: &Owner, last_lsn: &mut Lsn, until: Lsn, progress: Option<&Progress>) -> Result<()> {
        let mut cursor = Cursor::new();
        let id = owner.id;
        let start = last_lsn.0;
        let mut next = *last_lsn;
        while next > until {
            if let Some(progress) = progress {
                progress.set_done(start - next.0);
            }
            let record = self.store.wal.read(next)?;
            if record.txn != id {
                return Err(Error::corrupt_file(format!("log record {next} belongs to transaction {}", record.txn)));
            }
            next = match record.kind {
                Kind::Clr => record.undo_next(),
                Kind::Prepare | Kind::RollBack => record.prev_lsn,
                Kind::Data | Kind::Undo => {
                    let entries = Undo::decode(record.undo())?;
                    for (n, entry) in entries.iter().enumerate().rev() {
                        let undo_next = if n == 0 { record.prev_lsn } else { record.lsn };
                        let lsn = match *entry {
                            // Many records: each begins the load's undo again.
                            Undo::Load { index } => self.undo_load(id, index, *last_lsn, record.lsn)?,
                            _ => self.undo_entry(&mut cursor, id, entry, *last_lsn, undo_next)?,
                        };
                        if !lsn.is_none() {
                            *last_lsn = lsn;
                        }
                    }
                    record.prev_lsn
                }
                kind => return Err(Error::corrupt_file(format!("log record {next} of kind {kind:?} in an undo chain"))),
            };
        }
        Ok(())
    }

    fn undo_entry(&self, cursor: &mut Cursor, id: TxnId, entry: &Undo, prev_lsn: Lsn, undo_next: Lsn) -> Result<Lsn> {
        let writer = Writer::Clr { id, prev_lsn, undo_next };
        match *entry {
            Undo::Row { index, key, before } => self.undo_row(cursor, writer, id, index, key, before),
            Undo::Tree { index } => {
                let mut scope = self.store.pool.scope(writer)?;
                self.store.space.drop_tree(&mut scope, index)?;
                let lsn = scope.commit()?;
                self.forget_tree(index);
                Ok(lsn)
            }
            Undo::Pages { index, first, pages } => self.undo_pages(index, PageRun { first, pages }, writer),
            Undo::Load { .. } => unreachable!("undone by undo_load"),
            Undo::Run { first, pages } => {
                overflow::free_run(&self.store.pool, &self.store.space, PageRun { first, pages }, writer)
            }
        }
    }

    fn undo_row(
        &self,
        cursor: &mut Cursor,
        writer: Writer,
        id: TxnId,
        index: IndexId,
        key: &[u8],
        before: Option<Before>,
    ) -> Result<Lsn> {
        let lsn = self.tree(index)?.modify(cursor, key, writer, |place, change| {
            match (place.record(), before) {
                (Some(record), Some(before)) if record.txn == id => {
                    change.value.extend_from_slice(before.value);
                    Decision::Put { txn: before.txn, flags: before.flags }
                }
                (Some(record), None) if record.txn == id => Decision::Remove,
                _ => Decision::Leave,
            }
        })?;
        let Some(before) = before.filter(|b| b.txn != id) else { return Ok(lsn) };
        // Readers find the record restored before its copy goes; in between they see the same row twice, newest first.
        self.versions.pop(&row_key(index, key), id);
        if before.flags & RecordFlags::DELETE_MARK != 0 {
            // Purge may have come by while the record was ours.
            self.history.hint(index, key);
        }
        Ok(lsn)
    }

    /// Undoes the whole transaction and ends it. After an error: see `undo_until`.
    pub fn roll_back(&self, owner: &Arc<Owner>, last_lsn: &mut Lsn, progress: Option<&Progress>) -> Result<()> {
        if !last_lsn.is_none() {
            self.undo_until(owner, last_lsn, Lsn::NONE, progress)?;
            self.store.pool.scope(Writer::Abort { id: owner.id, prev_lsn: *last_lsn })?.commit()?;
        }
        self.status.abort(owner.id);
        self.locks.release(owner);
        count(&self.counters.rollbacks, 1);
        Ok(())
    }

    /// At open, before anybody reads: the losers' owners, so that their rows are locked, and the versions their records hide. Those to be
    /// undone are returned.
    pub fn adopt_losers(&self, losers: &[Loser]) -> Result<Vec<(Arc<Owner>, Lsn)>> {
        let mut unfinished = Vec::new();
        for loser in losers {
            let owner = Arc::new(Owner::new(loser.id, loser.first_lsn.0));
            self.locks.owners.insert(owner.clone());
            self.restore_versions(loser)?;
            match loser.prepared {
                None => unfinished.push((owner, loser.last_lsn)),
                Some(prepare) => self.adopt_prepared(owner, prepare, loser.last_lsn)?,
            }
        }
        self.spill_restored(true);
        Ok(unfinished)
    }

    fn restore_versions(&self, loser: &Loser) -> Result<()> {
        let mut next = loser.last_lsn;
        while !next.is_none() {
            let record = self.store.wal.read(next)?;
            if record.kind == Kind::Clr {
                next = record.undo_next();
                continue;
            }
            for entry in Undo::decode(record.undo())?.iter().rev() {
                if let Undo::Row { index, key, before: Some(before) } = *entry
                    && before.txn != loser.id
                {
                    let version = Version { txn: before.txn, flags: before.flags, value: before.value.into(), by: loser.id };
                    self.versions.push_oldest(&row_key(index, key), version);
                }
            }
            next = record.prev_lsn;
            self.spill_restored(false);
        }
        Ok(())
    }

    fn spill_restored(&self, all: bool) {
        if let Err(error) = self.versions.spill_oldest(all) {
            // Whoever changes rows meets it, should they need the room.
            tracing::warn!(%error, "versions of unfinished transactions stay in memory");
        }
    }
}

/// The undo entry of an insertion into the garbage index, and its key.
pub(super) fn garbage_entry(index: IndexId, reference: &[u8], undo: &mut Vec<u8>) -> Vec<u8> {
    let key = garbage_key(index, reference);
    Undo::Row { index: super::system::GARBAGE_INDEX, key: &key, before: None }.encode(undo);
    key
}
