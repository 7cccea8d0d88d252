//! What a transaction leaves for purge, packed: there may be very many rows, and most lie beside the one before. Past a budget what is packed
//! goes to scratch files.
//!
//! ```text
//! ROW, DELETED   op u8 · bytes shared with the row before · length of the rest · rest       lengths as LEB128
//! OVERFLOW       op u8 · index u32 · length · reference
//! TREE           op u8 · index u32
//! COMMIT         op u8 · timestamp u64 · id u64      of the items behind it, in the queue of what is committed
//! ```

use std::collections::VecDeque;

use super::purge::PurgeItem;
use super::scratch::{Scratch, ScratchFile};
use crate::error::{Error, Result};
use crate::ids::{IndexId, TxnId};
use crate::lock::row_key;
use crate::page::slotted::common_prefix;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering};

/// Bytes of a chunk, about: so much at a time goes to disk, and is read from there.
const CHUNK: usize = if cfg!(test) { 1000 } else { 1 << 16 };
/// A scratch file with so many bytes is followed by another one. It goes with the last of its chunks.
const FILE: u64 = if cfg!(test) { 10_000 } else { 64 << 20 };

const ROW: u8 = 0;
const DELETED: u8 = 1;
const OVERFLOW: u8 = 2;
const TREE: u8 = 3;
const COMMIT: u8 = 4;

/// What all lists take together, and where they keep what is too much for memory.
pub(crate) struct PurgeSpace {
    scratch: Arc<Scratch>,
    /// The file that chunks go to, of whichever list: transactions are too many for a file each.
    file: Mutex<Option<Arc<ScratchFile>>>,
    /// Bytes of full chunks in memory.
    memory: AtomicUsize,
    budget: usize,
    /// The last write failed.
    failing: AtomicBool,
}

impl PurgeSpace {
    /// For about `budget` bytes in memory, beside a chunk for each list.
    pub fn new(budget: usize, scratch: Arc<Scratch>) -> PurgeSpace {
        PurgeSpace { scratch, file: Mutex::new(None), memory: AtomicUsize::new(0), budget, failing: AtomicBool::new(false) }
    }

    pub fn is_full(&self) -> bool {
        self.memory.load(Ordering::Relaxed) > self.budget
    }

    /// Bytes of all its files.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.len()
    }

    pub fn write(&self, bytes: &[u8]) -> Result<Written> {
        let written = self.append(bytes);
        self.note(written.as_ref().err());
        written
    }

    fn append(&self, bytes: &[u8]) -> Result<Written> {
        let mut current = self.file.lock();
        let file = match current.take().filter(|file| file.len() < FILE) {
            Some(file) => file,
            None => Arc::new(self.scratch.create()?),
        };
        let file = current.insert(file);
        let at = file.append(bytes)?;
        Ok(Written { file: file.clone(), at, len: bytes.len(), crc: crc32c::crc32c(bytes) })
    }

    /// Removes the file that chunks go to if nothing of it is wanted any more.
    pub fn tidy(&self) {
        let mut current = self.file.lock();
        // Others get at it under the mutex only.
        let unused = current.take_if(|file| Arc::strong_count(file) == 1);
        drop(current);
        drop(unused);
    }

    /// Tells of a failed write if the one before did not fail.
    fn note(&self, error: Option<&Error>) {
        let told = self.failing.swap(error.is_some(), Ordering::Relaxed);
        if let Some(error) = error
            && !told
        {
            tracing::warn!(%error, "what purge has to do stays in memory");
        }
    }
}

/// A full piece of a list, which can be read without those before it.
pub(crate) struct Chunk {
    space: Arc<PurgeSpace>,
    place: Place,
    /// What counts of its bytes.
    len: usize,
}

#[derive(Clone)]
enum Place {
    Memory(Arc<Vec<u8>>),
    File(Written),
}

/// Where a chunk lies in a file.
#[derive(Clone)]
pub(crate) struct Written {
    file: Arc<ScratchFile>,
    at: u64,
    len: usize,
    crc: u32,
}

impl Chunk {
    fn new(space: &Arc<PurgeSpace>, mut bytes: Vec<u8>) -> Chunk {
        bytes.shrink_to_fit();
        space.memory.fetch_add(bytes.len(), Ordering::Relaxed);
        Chunk { space: space.clone(), len: bytes.len(), place: Place::Memory(Arc::new(bytes)) }
    }

    /// Its bytes, if they are in memory.
    pub fn in_memory(&self) -> Option<Arc<Vec<u8>>> {
        match &self.place {
            Place::Memory(bytes) => Some(bytes.clone()),
            Place::File(_) => None,
        }
    }

    /// Its bytes need not stay in memory.
    pub fn set_written(&mut self, written: Written) {
        self.leave_memory();
        self.place = Place::File(written);
    }

    fn leave_memory(&self) {
        if let Place::Memory(bytes) = &self.place {
            self.space.memory.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
    }

    pub fn read(&self) -> Result<Vec<u8>> {
        self.content().read()
    }

    /// What it says, wherever it lies from here on.
    pub fn content(&self) -> Content {
        Content { place: self.place.clone(), len: self.len }
    }
}

/// What a chunk says.
pub(crate) struct Content {
    place: Place,
    len: usize,
}

impl Content {
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = match &self.place {
            Place::Memory(bytes) => bytes.to_vec(),
            Place::File(written) => {
                let bytes = written.file.read(written.at, written.len)?;
                if crc32c::crc32c(&bytes) != written.crc {
                    return Err(Error::corrupt_file(format!("{} at {}", written.file.name(), written.at)));
                }
                bytes
            }
        };
        bytes.truncate(self.len);
        Ok(bytes)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.leave_memory();
    }
}

/// A list of items in their order.
#[derive(Default)]
pub(crate) struct PurgeList {
    /// None is empty.
    chunks: VecDeque<Chunk>,
    /// What follows them.
    open: Vec<u8>,
    len: usize,
    /// The row that the next one may share bytes with.
    pushed: Vec<u8>,
}

/// A length of a list to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    chunks: usize,
    bytes: usize,
    len: usize,
}

impl PurgeList {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// May write to disk: called holding no latch.
    pub fn push(&mut self, space: &Arc<PurgeSpace>, item: &PurgeItem) {
        match item {
            PurgeItem::Row { row, deleted } => return self.push_bytes(space, row, *deleted),
            PurgeItem::Overflow { index, reference } => {
                self.open.push(OVERFLOW);
                self.open.extend_from_slice(&index.0.to_le_bytes());
                put_length(&mut self.open, reference.len());
                self.open.extend_from_slice(reference);
            }
            PurgeItem::Tree(index) => {
                self.open.push(TREE);
                self.open.extend_from_slice(&index.0.to_le_bytes());
            }
        }
        self.pushed(space);
    }

    /// As `push`.
    pub fn push_row(&mut self, space: &Arc<PurgeSpace>, index: IndexId, key: &[u8], deleted: bool) {
        self.push_bytes(space, &row_key(index, key), deleted);
    }

    fn push_bytes(&mut self, space: &Arc<PurgeSpace>, row: &[u8], deleted: bool) {
        let shared = common_prefix(&self.pushed, row);
        self.open.push(if deleted { DELETED } else { ROW });
        put_length(&mut self.open, shared);
        put_length(&mut self.open, row.len() - shared);
        self.open.extend_from_slice(&row[shared..]);
        self.pushed.truncate(shared);
        self.pushed.extend_from_slice(&row[shared..]);
        self.pushed(space);
    }

    /// An item more.
    fn pushed(&mut self, space: &Arc<PurgeSpace>) {
        self.len += 1;
        if self.open.len() >= CHUNK {
            self.close(space);
            if space.is_full() {
                self.spill(space);
            }
        }
    }

    /// Ends the open chunk.
    fn close(&mut self, space: &Arc<PurgeSpace>) {
        if !self.open.is_empty() {
            self.chunks.push_back(Chunk::new(space, std::mem::take(&mut self.open)));
        }
        self.pushed.clear();
    }

    /// Writes what is in memory to disk. What cannot be written stays.
    fn spill(&mut self, space: &PurgeSpace) {
        for chunk in self.chunks.iter_mut().rev() {
            let Some(bytes) = chunk.in_memory() else { return };
            match space.write(&bytes) {
                Ok(written) => chunk.set_written(written),
                Err(_) => return,
            }
        }
    }

    /// Puts a transaction's items behind. Writes nothing to disk.
    pub fn commit(&mut self, space: &Arc<PurgeSpace>, ts: u64, id: TxnId, items: PurgeList) {
        self.open.push(COMMIT);
        self.open.extend_from_slice(&ts.to_le_bytes());
        self.open.extend_from_slice(&id.0.to_le_bytes());
        self.len += items.len;
        if items.chunks.is_empty() {
            // What it shares it shares with its own rows.
            self.open.extend_from_slice(&items.open);
        } else {
            self.close(space);
            self.chunks.extend(items.chunks);
            self.open = items.open;
        }
        self.pushed = items.pushed;
        if self.open.len() >= CHUNK {
            self.close(space);
        }
    }

    /// Takes the first chunk out.
    pub fn pop(&mut self, space: &Arc<PurgeSpace>) -> Option<Chunk> {
        if self.chunks.is_empty() {
            self.close(space);
        }
        self.chunks.pop_front()
    }

    /// Puts the chunk that was taken out last back.
    pub fn put_back(&mut self, chunk: Chunk) {
        self.chunks.push_front(chunk);
    }

    pub fn chunks(&mut self) -> &mut VecDeque<Chunk> {
        &mut self.chunks
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { chunks: self.chunks.len(), bytes: self.open.len(), len: self.len }
    }

    /// Forgets what was pushed since the mark. Nothing has been taken out.
    pub(super) fn truncate(&mut self, mark: &Mark) {
        if mark.len >= self.len {
            return;
        }
        if mark.chunks < self.chunks.len() {
            // The chunk that was open then.
            self.chunks.truncate(mark.chunks + 1);
            match mark.bytes {
                0 => drop(self.chunks.pop_back()),
                bytes => self.chunks[mark.chunks].len = bytes,
            }
            self.open.clear();
        } else {
            self.open.truncate(mark.bytes);
        }
        self.len = mark.len;
        self.pushed.clear();
    }

    /// Bytes in memory and on disk.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub fn bytes(&self) -> usize {
        self.open.len() + self.chunks.iter().map(|chunk| chunk.len).sum::<usize>()
    }
}

/// A chunk of committed items being read.
#[derive(Default)]
pub(crate) struct Reading {
    chunk: Vec<u8>,
    at: usize,
    row: Vec<u8>,
}

/// What a queue has.
pub(crate) enum Queued {
    /// The transaction of the items behind it.
    Commit { ts: u64, id: TxnId },
    Item(PurgeItem),
}

impl Reading {
    pub fn begin(&mut self, chunk: Vec<u8>) {
        (self.chunk, self.at) = (chunk, 0);
        self.row.clear();
    }

    /// What is next, which `pass` goes past. `None` at the chunk's end.
    pub fn next(&mut self) -> Option<(Queued, usize)> {
        let mut reader = Reader(&self.chunk[self.at..]);
        if reader.0.is_empty() {
            return None;
        }
        let next = match reader.take(1)[0] {
            op @ (ROW | DELETED) => {
                let shared = reader.length();
                let rest = reader.length();
                self.row.truncate(shared);
                self.row.extend_from_slice(reader.take(rest));
                Queued::Item(PurgeItem::Row { row: self.row.as_slice().into(), deleted: op == DELETED })
            }
            OVERFLOW => {
                let index = reader.index();
                let len = reader.length();
                Queued::Item(PurgeItem::Overflow { index, reference: reader.take(len).into() })
            }
            TREE => Queued::Item(PurgeItem::Tree(reader.index())),
            COMMIT => Queued::Commit { ts: reader.u64(), id: TxnId(reader.u64()) },
            _ => unreachable!("an op that is not written"),
        };
        Some((next, self.chunk.len() - reader.0.len()))
    }

    /// Goes to where `next` said that what it gave ends.
    pub fn pass(&mut self, end: usize) {
        self.at = end;
    }
}

fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// What a list wrote, so it is never too short.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn length(&mut self) -> usize {
        let mut length = 0;
        for shift in (0..).step_by(7) {
            let byte = self.take(1)[0];
            length |= ((byte & 0x7f) as usize) << shift;
            if byte < 0x80 {
                break;
            }
        }
        length
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().expect("8 bytes"))
    }

    fn index(&mut self) -> IndexId {
        IndexId(u32::from_le_bytes(self.take(4).try_into().expect("4 bytes")))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::super::purge::History;
    use super::*;
    use crate::disk::{Disk, SimConfig, SimDisk};
    use rand::{Rng, SeedableRng};

    fn history(budget: usize) -> (SimDisk, History) {
        let disk = SimDisk::new(SimConfig::default());
        let scratch = Arc::new(Scratch::new(Arc::new(disk.clone()), "purge"));
        (disk, History::new(PurgeSpace::new(budget, scratch)))
    }

    fn take(history: &History) -> Option<(TxnId, PurgeItem)> {
        history.take(u64::MAX).unwrap()
    }

    /// Against a list of items: pushes, returns to marks, then taking out with some put back behind the rest.
    #[test]
    fn items_come_out_as_they_went_in() {
        for seed in 0..60 {
            let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
            let (disk, history) = history([0, 5000, usize::MAX][seed as usize % 3]);
            let mut model = VecDeque::new();
            for txn in 0..rng.random_range(1..60) {
                let mut list = PurgeList::default();
                let mut pushed: Vec<(TxnId, PurgeItem)> = Vec::new();
                let mut marks = vec![(list.mark(), 0)];
                let most = if rng.random_ratio(1, 10) { 3000 } else { 20 };
                for n in 0..rng.random_range(0..most) {
                    let index = IndexId(rng.random_range(0..3));
                    let item = match rng.random_range(0..20) {
                        0 => PurgeItem::Tree(index),
                        1 => PurgeItem::Overflow { index, reference: vec![n as u8; rng.random_range(0..300)].into() },
                        2 => {
                            let key: Vec<u8> = (0..rng.random_range(0..500)).map(|_| rng.random()).collect();
                            PurgeItem::Row { row: row_key(index, &key).into_boxed_slice(), deleted: rng.random() }
                        }
                        _ => PurgeItem::Row { row: row_key(index, &u32::to_be_bytes(n)).into_boxed_slice(), deleted: rng.random() },
                    };
                    list.push(&history.space, &item);
                    pushed.push((TxnId(txn), item));
                    match rng.random_range(0..200) {
                        0..20 => marks.push((list.mark(), pushed.len())),
                        20..22 => {
                            let (mark, len) = marks.pop().unwrap_or((PurgeList::default().mark(), 0));
                            list.truncate(&mark);
                            pushed.truncate(len);
                        }
                        _ => {}
                    }
                }
                assert_eq!(list.len(), pushed.len());
                history.push(txn, TxnId(txn), list);
                model.extend(pushed);
                while rng.random_ratio(1, 3) && !model.is_empty() {
                    assert_eq!(take(&history), model.pop_front(), "seed {seed}");
                }
                if rng.random_ratio(1, 3) {
                    history.spill();
                    assert!(!history.space.is_full());
                }
            }
            let mut again = 100;
            while let Some((txn, item)) = take(&history) {
                let expected = model.pop_front().unwrap();
                assert_eq!((txn, &item), (expected.0, &expected.1), "seed {seed}");
                if again > 0 {
                    again -= 1;
                    history.put_back(txn, &item);
                    model.push_back(expected);
                }
            }
            assert!(model.is_empty());
            assert_eq!(history.space.memory.load(Ordering::Relaxed), 0);
            drop(history);
            assert_eq!(disk.list().unwrap(), Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_not_seen_by_all_is_not_taken() {
        let (_, history) = history(0);
        let list = || {
            let mut list = PurgeList::default();
            list.push_row(&history.space, IndexId(7), b"key", false);
            list
        };
        history.push(5, TxnId(50), list());
        history.push(6, TxnId(40), list());
        assert_eq!(history.next_id(), Some(TxnId(50)));
        assert!(history.take(4).unwrap().is_none());
        assert_eq!(history.take(5).unwrap().map(|(id, _)| id), Some(TxnId(50)));
        assert!(history.take(5).unwrap().is_none());
        assert_eq!(history.next_id(), Some(TxnId(40)));
        assert_eq!(history.take(6).unwrap().map(|(id, _)| id), Some(TxnId(40)));
        assert!(history.take(u64::MAX).unwrap().is_none());
        assert_eq!(history.next_id(), None);
    }

    #[test]
    fn a_large_transaction_takes_no_more_memory_than_lists_may_have() {
        const BUDGET: usize = 20_000;
        let (disk, history) = history(BUDGET);
        let mut list = PurgeList::default();
        for n in 0..100_000u64 {
            list.push_row(&history.space, IndexId(7), &n.to_be_bytes(), false);
            assert!(history.space.memory.load(Ordering::Relaxed) <= BUDGET);
        }
        assert!(list.bytes() > 10 * BUDGET);
        // Some of it is taken back, in a chunk that is on disk by now.
        let mark = list.mark();
        (0..1000u64).for_each(|n| list.push_row(&history.space, IndexId(8), &n.to_be_bytes(), false));
        list.truncate(&mark);
        history.push(1, TxnId(1), list);
        for n in 0..100_000u64 {
            let row = row_key(IndexId(7), &n.to_be_bytes()).into_boxed_slice();
            assert_eq!(take(&history), Some((TxnId(1), PurgeItem::Row { row, deleted: false })));
        }
        assert_eq!(take(&history), None);
        assert_eq!(disk.list().unwrap(), Vec::<String>::new());
    }

    /// However many transactions wait for a reader, open files are few.
    #[test]
    fn transactions_share_files() {
        const TXNS: u64 = 100;
        let (disk, history) = history(0);
        for txn in 0..TXNS {
            let mut list = PurgeList::default();
            (0..500u64).for_each(|n| list.push_row(&history.space, IndexId(7), &n.to_be_bytes(), false));
            assert!(list.chunks().iter().any(|chunk| chunk.in_memory().is_none()));
            history.push(txn, TxnId(txn), list);
        }
        let files = disk.list().unwrap().len();
        assert!(files < TXNS as usize / 2, "{files} files");
        while take(&history).is_some() {}
        assert_eq!(disk.list().unwrap(), Vec::<String>::new());
    }

    /// Nothing is lost to a disk that is full or cannot be read.
    #[test]
    fn what_cannot_be_written_or_read_is_there_still() {
        let (disk, history) = history(0);
        let mut list = PurgeList::default();
        let rows = || (0..2000u64).map(|n| row_key(IndexId(7), &n.to_be_bytes()).into_boxed_slice());
        for (n, row) in rows().enumerate() {
            if n % 100 == 50 {
                disk.fail_at(disk.changes() + 1, Error::OutOfSpace);
            }
            list.push(&history.space, &PurgeItem::Row { row, deleted: true });
        }
        history.push(1, TxnId(1), list);
        disk.fail_at(disk.changes() + 1, Error::OutOfSpace);
        history.spill();
        history.spill();
        assert!(!history.space.is_full());
        for row in rows() {
            disk.fail_read_in(Some(1));
            let taken = history.take(u64::MAX).or_else(|_| history.take(u64::MAX)).unwrap();
            assert_eq!(taken, Some((TxnId(1), PurgeItem::Row { row, deleted: true })));
        }
        disk.fail_read_in(None);
        assert_eq!(take(&history), None);
    }

    #[test]
    fn a_mark_behind_the_end_changes_nothing() {
        let (_, history) = history(usize::MAX);
        let mut list = PurgeList::default();
        let start = list.mark();
        (0..1000u64).for_each(|n| list.push_row(&history.space, IndexId(7), &n.to_be_bytes(), false));
        let end = list.mark();
        list.truncate(&start);
        list.push_row(&history.space, IndexId(7), b"key", true);
        list.truncate(&end);
        assert_eq!(list.len(), 1);
        history.push(1, TxnId(1), list);
        assert_eq!(take(&history), Some((TxnId(1), PurgeItem::Row { row: row_key(IndexId(7), b"key").into_boxed_slice(), deleted: true })));
        assert_eq!(take(&history), None);
    }

    #[test]
    fn rows_in_order_take_few_bytes() {
        let (_, history) = history(usize::MAX);
        let mut list = PurgeList::default();
        const ROWS: usize = 200_000;
        (0..ROWS as u64).for_each(|n| list.push_row(&history.space, IndexId(7), &n.to_be_bytes(), false));
        assert!(list.bytes() < 6 * ROWS, "{} bytes for {ROWS} rows", list.bytes());
    }
}
