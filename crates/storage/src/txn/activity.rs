//! What reports say of a session's transaction while it lasts.

use super::rows::Isolation;
use crate::ids::TxnId;
use crate::sync::{AtomicU8, AtomicU64, Ordering};

/// One per session, used again by each of its transactions: readable by others at any time.
#[derive(Debug, Default)]
pub struct TxnActivity {
    /// Wall clock, microseconds since 1970, at its first read or lock; 0 while there is no transaction.
    started_us: AtomicU64,
    /// 0 until it has one.
    id: AtomicU64,
    isolation: AtomicU8,
    rows_changed: AtomicU64,
}

/// A transaction as `TxnActivity` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveTxn {
    /// Wall clock, microseconds since 1970.
    pub started_us: u64,
    /// `None`: it has neither written nor locked anything.
    pub id: Option<TxnId>,
    pub isolation: Isolation,
    /// As its owner counts rows (`Txn::note_rows_changed`): one with several indexes once.
    pub rows_changed: u64,
}

const LEVELS: [Isolation; 4] =
    [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

impl TxnActivity {
    /// The transaction that goes on, if any.
    pub fn get(&self) -> Option<ActiveTxn> {
        let started_us = self.started_us.load(Ordering::Acquire);
        let id = self.id.load(Ordering::Relaxed);
        let isolation = LEVELS[usize::from(self.isolation.load(Ordering::Relaxed)) % LEVELS.len()];
        let rows_changed = self.rows_changed.load(Ordering::Relaxed);
        (started_us > 0).then_some(ActiveTxn { started_us, id: (id > 0).then_some(TxnId(id)), isolation, rows_changed })
    }

    pub(super) fn begin(&self, now_us: u64, isolation: Isolation) {
        let level = LEVELS.iter().position(|l| *l == isolation).expect("all levels are listed");
        self.isolation.store(level as u8, Ordering::Relaxed);
        self.started_us.store(now_us, Ordering::Release);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.started_us.load(Ordering::Relaxed) > 0
    }

    pub(super) fn set_id(&self, id: TxnId) {
        self.id.store(id.0, Ordering::Relaxed);
    }

    pub(super) fn add_rows(&self, rows: u64) {
        self.rows_changed.fetch_add(rows, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.started_us.store(0, Ordering::Release);
        self.id.store(0, Ordering::Relaxed);
        self.rows_changed.store(0, Ordering::Relaxed);
    }
}
