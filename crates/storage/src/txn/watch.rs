//! Watching a tree: which of its rows transactions change is told to who makes something of the rows meanwhile.
//!
//! A writer notes the row's key under its own id before it can commit. So who takes a snapshot, and the notes after it, has the key of every row that is
//! another one there than in an earlier snapshot. A key whose writer the snapshot does not see may change again without a further note: it is looked at
//! again later. Rollbacks note nothing: what they bring back is what snapshots show anyway.

use ahash::AHashMap;

use super::snapshot::Snapshot;
use super::system::System;
use crate::ids::{IndexId, TxnId};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, RwLock};

/// Bytes before each key: its writer, and how long it is.
const HEADER: usize = 8 + 2;

/// The bytes of notes that several watches may take together.
pub struct WatchBudget {
    left: Mutex<usize>,
}

impl WatchBudget {
    /// So many bytes.
    pub fn new(bytes: usize) -> Arc<WatchBudget> {
        Arc::new(WatchBudget { left: Mutex::new(bytes) })
    }

    fn take(&self, bytes: usize) -> bool {
        let mut left = self.left.lock();
        let enough = *left >= bytes;
        if enough {
            *left -= bytes;
        }
        enough
    }

    fn give(&self, bytes: usize) {
        *self.left.lock() += bytes;
    }
}

/// The trees that are watched.
#[derive(Default)]
pub(crate) struct Watches {
    /// How many those are: writers of a database in which none is look no further.
    count: AtomicUsize,
    notes: RwLock<AHashMap<IndexId, Arc<Notes>>>,
}

impl Watches {
    pub fn of(&self, index: IndexId) -> Option<Arc<Notes>> {
        match self.count.load(Ordering::Relaxed) {
            0 => None,
            _ => self.notes.read().get(&index).cloned(),
        }
    }
}

/// What was noted of one tree.
pub(crate) struct Notes {
    budget: Arc<WatchBudget>,
    /// Writer, length and key of each row; None once there was no room for one.
    rows: Mutex<Option<Vec<u8>>>,
}

impl Notes {
    /// The budget is asked once for all the keys.
    pub fn add<'k>(&self, writer: TxnId, keys: impl Iterator<Item = &'k [u8]> + Clone) {
        let bytes: usize = keys.clone().map(|key| HEADER + key.len()).sum();
        let mut rows = self.rows.lock();
        let Some(noted) = rows.as_mut() else { return };
        if self.budget.take(bytes) {
            keys.for_each(|key| push(noted, writer, key));
        } else {
            self.budget.give(noted.len());
            *rows = None;
        }
    }
}

fn push(notes: &mut Vec<u8>, writer: TxnId, key: &[u8]) {
    let len = u16::try_from(key.len()).expect("keys are far shorter than 64 KiB");
    notes.extend_from_slice(&writer.0.to_le_bytes());
    notes.extend_from_slice(&len.to_le_bytes());
    notes.extend_from_slice(key);
}

/// A tree that is watched until this is dropped. While it is, no load fills it.
pub struct Watch {
    system: Arc<System>,
    index: IndexId,
    notes: Arc<Notes>,
}

impl Watch {
    /// Whoever begins to watch sees to it that nobody has written to the tree and is not over, and that who writes to it later knows of that.
    pub(super) fn begin(system: Arc<System>, index: IndexId, budget: &Arc<WatchBudget>) -> Watch {
        let notes = Arc::new(Notes { budget: budget.clone(), rows: Mutex::new(Some(Vec::new())) });
        let before = system.watches.notes.write().insert(index, notes.clone());
        assert!(before.is_none(), "one watches a tree");
        system.watches.count.fetch_add(1, Ordering::SeqCst);
        Watch { system, index, notes }
    }

    /// Bytes of notes that wait to be taken. None if there was no room for all of them.
    pub fn waiting(&self) -> Option<usize> {
        self.notes.rows.lock().as_ref().map(Vec::len)
    }

    /// The keys of rows that may be others in `now`, which was taken just before, than in the snapshot of the last call, in their order, each once.
    /// None if there was no room for all of them.
    pub fn changed(&self, now: &Snapshot) -> Option<ChangedKeys> {
        let taken = self.notes.rows.lock().as_mut().map(std::mem::take)?;
        self.notes.budget.give(taken.len());
        let mut spans = Vec::new();
        let mut at = 0;
        while at < taken.len() {
            let writer = TxnId(u64::from_le_bytes(taken[at..at + 8].try_into().expect("8 bytes")));
            let len = u16::from_le_bytes(taken[at + 8..at + HEADER].try_into().expect("2 bytes"));
            let start = at + HEADER;
            at = start + usize::from(len);
            spans.push((writer, start, at));
        }
        spans.sort_unstable_by(|a, b| taken[a.1..a.2].cmp(&taken[b.1..b.2]).then(a.0.cmp(&b.0)));
        spans.dedup_by(|a, b| a.0 == b.0 && taken[a.1..a.2] == taken[b.1..b.2]);
        for (writer, start, end) in &spans {
            if now.may_come(*writer) {
                self.notes.add(*writer, [&taken[*start..*end]].into_iter());
            }
        }
        spans.dedup_by(|a, b| taken[a.1..a.2] == taken[b.1..b.2]);
        Some(ChangedKeys { spans: spans.into_iter().map(|(_, start, end)| (start, end)).collect(), taken })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.system.watches.count.fetch_sub(1, Ordering::SeqCst);
        self.system.watches.notes.write().remove(&self.index);
        if let Some(left) = self.notes.rows.lock().take() {
            self.notes.budget.give(left.len());
        }
    }
}

/// Keys of rows, ascending.
pub struct ChangedKeys {
    taken: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl ChangedKeys {
    /// How many.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|(start, end)| &self.taken[*start..*end])
    }
}
