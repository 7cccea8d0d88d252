//! The plain values that row operations take and give.

use std::ops::Bound;

use crate::btree::BatchRows;
use crate::lock::LockWait;

/// How much of other transactions' work a transaction's consistent reads see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Reads the newest record, committed or not.
    ReadUncommitted,
    /// A new snapshot for every statement (`begin_statement`).
    ReadCommitted,
    /// One snapshot, taken at the first consistent read.
    RepeatableRead,
    /// As `RepeatableRead` here; the layer above turns its reads into shared locking reads.
    Serializable,
}

/// Which lock a locking read takes on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    Shared,
    Exclusive,
}

/// What a locking read does about a key that somebody else holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWaitPolicy {
    Wait,
    /// `NOWAIT`: give up at once.
    NoWait,
    /// `SKIP LOCKED`: give up at once; the caller leaves the row out.
    SkipLocked,
}

/// The outcome of a row operation: done, or to be retried after the wait. Nothing was changed when it is `Wait`.
#[must_use]
pub enum Op<T> {
    Done(T),
    Wait(LockWait),
}

/// What `insert` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    Yes,
    /// A live row of this key exists, committed or this transaction's own. Nothing was changed.
    Duplicate,
}

/// What `lock` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The lock is held; the value is the latest committed or own one, `None` when there is no such row (its gap is locked, if at all).
    Yes(Option<Vec<u8>>),
    /// Somebody else holds it and the policy was not to wait.
    WouldBlock,
}

/// What `insert_batch` did from its start position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOutcome {
    /// Rows inserted by this call. Fewer than were left means: call again from there (or see `duplicate`).
    pub inserted: usize,
    /// The row after the inserted ones meets a live row of the same key.
    pub duplicate: bool,
}

/// Rows of a batch in strictly ascending key order, in one buffer.
#[derive(Clone, Debug, Default)]
pub struct SortedRows {
    bytes: Vec<u8>,
    /// (key start, value start, value end)
    rows: Vec<(u32, u32, u32)>,
}

impl SortedRows {
    pub fn new() -> SortedRows {
        SortedRows::default()
    }

    /// Adds a row. Panics unless its key is above all keys before it.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        if let Some(last) = self.rows.len().checked_sub(1) {
            assert!(self.key(last) < key, "the rows of a batch ascend");
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = u32::try_from(self.bytes.len()).expect("a batch stays below 4 GiB");
        self.rows.push((start as u32, middle as u32, end));
    }

    /// Builds a batch from rows in any order of distinct keys.
    pub fn from_unsorted(mut rows: Vec<(Vec<u8>, Vec<u8>)>) -> SortedRows {
        rows.sort();
        let mut sorted = SortedRows::new();
        for (key, value) in &rows {
            sorted.push(key, value);
        }
        sorted
    }

    /// Forgets the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Bytes of keys and values together.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }
}

impl BatchRows for SortedRows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn key(&self, row: usize) -> &[u8] {
        let (start, middle, _) = self.rows[row];
        &self.bytes[start as usize..middle as usize]
    }

    fn value(&self, row: usize) -> &[u8] {
        let (_, middle, end) = self.rows[row];
        &self.bytes[middle as usize..end as usize]
    }
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
}

impl Bounds {
    /// Every key.
    pub fn all() -> Bounds {
        Bounds { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    pub fn new(lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Bounds {
        Bounds { lower, upper }
    }

    /// Whether the key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.above_lower(key) && self.below_upper(key)
    }

    pub(crate) fn above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= lower.as_slice(),
            Bound::Excluded(lower) => key > lower.as_slice(),
        }
    }

    pub(crate) fn below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= upper.as_slice(),
            Bound::Excluded(upper) => key < upper.as_slice(),
        }
    }
}

/// The order in which a scan gives its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// The rows of one leaf that a scan sees, copied out, in the scan's direction. Reused between leaves.
#[derive(Clone, Debug, Default)]
pub struct LeafRows {
    pub(crate) bytes: Vec<u8>,
    /// (key start, value start, value end)
    pub(crate) rows: Vec<(u32, u32, u32)>,
}

impl LeafRows {
    pub fn new() -> LeafRows {
        LeafRows::default()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory for the values and keys of rows, those that it has and those that it could take.
    pub fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The key of a row, by its place.
    pub fn key(&self, row: usize) -> &[u8] {
        let (start, middle, _) = self.rows[row];
        &self.bytes[start as usize..middle as usize]
    }

    /// The value of a row, by its place.
    pub fn value(&self, row: usize) -> &[u8] {
        let (_, middle, end) = self.rows[row];
        &self.bytes[middle as usize..end as usize]
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Adds a row whose key is in two parts, as leaves store it.
    pub(crate) fn push(&mut self, prefix: &[u8], suffix: &[u8], value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(prefix);
        self.bytes.extend_from_slice(suffix);
        let middle = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.rows.push((start, middle, self.bytes.len() as u32));
    }

    /// Keeps the first rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// Takes rows out, which ascend.
    pub(crate) fn remove(&mut self, rows: &[usize]) {
        let (mut at, mut gone) = (0, rows.iter().peekable());
        if !rows.is_empty() {
            self.rows.retain(|_| {
                at += 1;
                gone.next_if_eq(&&(at - 1)).is_none()
            });
        }
    }

    /// Gives a row its value after all.
    pub(crate) fn replace_value(&mut self, row: usize, value: &[u8]) {
        let (start, middle, _) = self.rows[row];
        let key = start as usize..middle as usize;
        let at = self.bytes.len() as u32;
        // The row moves to the end of the buffer; its old place is a hole until the next leaf.
        self.bytes.extend_from_within(key);
        let middle = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.rows[row] = (at, middle, self.bytes.len() as u32);
    }
}
