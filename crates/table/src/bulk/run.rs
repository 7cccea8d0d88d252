//! Sorted runs of index entries: in memory, spilled to a file, and merged.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::{Builder, Scope};

use highkey_storage::{BatchRows, Waits, for_helpers, prefetch};

/// Bytes read from a spilled run at a time, less if a merge would have more than the second in its buffers.
const READ_BYTES: usize = 256 << 10;
const READ_BYTES_ALL: usize = 32 << 20;
/// Entries of a block that a merge hands to another thread, bytes of those of them that were read from files, and how many blocks it may
/// be ahead.
const AHEAD_ENTRIES: usize = 2048;
const AHEAD_BYTES: usize = 256 << 10;
const AHEAD_BLOCKS: usize = 4;
/// Entries of the runs in memory that are merged at a time, about: what is known of them while they are sorted fits a core's second-level cache.
const PART_ENTRIES: usize = 32 << 10;
/// How many entries ahead of its use one is fetched from memory: merged ones lie anywhere.
const FETCH_AHEAD: usize = 8;

/// Entries of one index in key order; equal keys in the order of their rows.
#[derive(Default)]
pub(crate) struct Run {
    pub keys: Vec<u8>,
    pub values: Vec<u8>,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The key's first bytes: a merge need not fetch the key.
    prefix: u64,
    key: (u32, u32),
    value: (u32, u32),
    /// Place of its row in the statement.
    row: u64,
}

impl Run {
    /// Empty, with room for about as much as another one has: growing by doubling would copy it several times.
    pub fn with_room_of(other: &Run) -> Run {
        let room = |len: usize| len + len / 16;
        Run {
            keys: Vec::with_capacity(room(other.keys.len())),
            values: Vec::with_capacity(room(other.values.len())),
            entries: Vec::with_capacity(room(other.entries.len())),
        }
    }

    pub fn row(&self, i: usize) -> u64 {
        self.entries[i].row
    }

    /// By what an entry is ordered.
    fn order(&self, i: usize) -> (u64, &[u8], u64) {
        self.order_of(&self.entries[i])
    }

    fn order_of(&self, entry: &Entry) -> (u64, &[u8], u64) {
        (entry.prefix, &self.keys[entry.key.0 as usize..entry.key.1 as usize], entry.row)
    }

    /// Bytes it takes in memory.
    pub fn bytes(&self) -> usize {
        self.keys.len() + self.values.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Adds an entry. Returns the bytes it takes.
    pub fn add(&mut self, key: &[u8], value: &[u8], row: u64) -> usize {
        let (key_start, value_start) = (self.keys.len(), self.values.len() as u32);
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value);
        self.push(key_start, (value_start, self.values.len() as u32), row);
        key.len() + value.len() + size_of::<Entry>()
    }

    /// Adds an entry whose key the caller has just appended to `keys`, from `key_start` on, and whose value lies in `values`.
    pub fn push(&mut self, key_start: usize, value: (u32, u32), row: u64) {
        let prefix = prefix(&self.keys[key_start..]);
        self.entries.push(Entry { prefix, key: (key_start as u32, self.keys.len() as u32), value, row });
    }

    /// Gives the entries ascending numbers, from `first` on, for their keys of eight bytes.
    pub fn number(&mut self, first: u64) {
        for ((entry, key), number) in self.entries.iter_mut().zip(self.keys.chunks_exact_mut(8)).zip(first..) {
            key.copy_from_slice(&number.to_be_bytes());
            entry.prefix = number;
        }
    }

    /// Adds `first` to the rows' places.
    pub fn shift_rows(&mut self, first: u64) {
        self.entries.iter_mut().for_each(|e| e.row += first);
    }

    /// Puts the entries in order: by key, equal keys by row. True if they were.
    pub fn sort(&mut self) -> bool {
        if (1..self.len()).all(|i| self.order(i - 1) <= self.order(i)) {
            return true;
        }
        // Most comparisons end in the first eight bytes after what all keys share.
        let first = self.key(0);
        let shared = (1..self.len()).fold(first.len(), |shared, i| {
            self.key(i).iter().zip(&first[..shared]).take_while(|(a, b)| a == b).count()
        });
        let head = |e: &Entry| {
            let rest = &self.keys[e.key.0 as usize + shared..e.key.1 as usize];
            let mut head = [0; 8];
            let n = rest.len().min(8);
            head[..n].copy_from_slice(&rest[..n]);
            u64::from_be_bytes(head)
        };
        let mut order: Vec<Place> = self.entries.iter().zip(0..).map(|(e, entry)| Place { head: head(e), run: 0, entry }).collect();
        sort_places(&mut order, &mut Vec::new(), |place| (self.key(place.entry as usize), self.row(place.entry as usize)));
        self.entries = order.into_iter().map(|place| self.entries[place.entry as usize]).collect();
        false
    }
}

impl BatchRows for Run {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn key(&self, i: usize) -> &[u8] {
        let (start, end) = self.entries[i].key;
        &self.keys[start as usize..end as usize]
    }

    fn value(&self, i: usize) -> &[u8] {
        let (start, end) = self.entries[i].value;
        &self.values[start as usize..end as usize]
    }
}

/// Where an entry is, with eight bytes of its key as a number that orders as they do.
#[derive(Clone, Copy, Default)]
struct Place {
    head: u64,
    run: u32,
    entry: u32,
}

/// So few are compared rather than counted.
const COUNTED_MIN: usize = 256;

/// Sorts by the heads, places of equal heads by what `rest` says of them. Radix sort by those bytes of the heads that differ: no comparison
/// of random keys, whose outcome the processor cannot foresee. `spare` is room for a copy.
fn sort_places<K: Ord>(places: &mut Vec<Place>, spare: &mut Vec<Place>, rest: impl Fn(&Place) -> K) {
    if places.len() < COUNTED_MIN {
        places.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| rest(a).cmp(&rest(b))));
        return;
    }
    let first = places[0].head;
    let differing = places.iter().fold(0, |bits, place| bits | (place.head ^ first));
    spare.clear();
    spare.resize(places.len(), Place::default());
    for shift in (0..u64::BITS).step_by(8).filter(|shift| (differing >> shift) as u8 != 0) {
        let digit = |place: &Place| (place.head >> shift) as u8 as usize;
        let mut counts = [0; 256];
        places.iter().for_each(|place| counts[digit(place)] += 1);
        let mut next = 0;
        for count in &mut counts {
            next += std::mem::replace(count, next);
        }
        for place in places.iter() {
            let at = &mut counts[digit(place)];
            spare[*at] = *place;
            *at += 1;
        }
        std::mem::swap(places, spare);
    }
    places.chunk_by_mut(|a, b| a.head == b.head).filter(|equal| equal.len() > 1).for_each(|equal| equal.sort_unstable_by_key(&rest));
}

/// A run on disk: `key len u32 · value len u32 · row u64 · key · value` each.
pub(crate) struct SpilledRun {
    /// Without a name: it goes with its handle, also in a crash.
    file: Arc<File>,
    start: u64,
    len: u64,
}

impl SpilledRun {
    /// Writes the runs, merged, to a file: behind the run that was written before, or, if there is none, to a new one. `None` for the directory: the
    /// operating system's of temporary files. An error of the kind `Interrupted` once `stop` says so.
    pub fn write(runs: &[Run], before: Option<&SpilledRun>, directory: Option<&Path>, stop: &dyn Fn() -> bool) -> std::io::Result<SpilledRun> {
        let (file, start) = match before {
            Some(run) => (run.file.clone(), run.start + run.len),
            None => {
                let file = directory.map_or_else(tempfile::tempfile, tempfile::tempfile_in)?;
                (Arc::new(file), 0)
            }
        };
        std::thread::scope(|scope| SpilledRun::write_merged(file, start, MergeAhead::new(Merge::new(runs, &[])?, scope)?, stop))
    }

    fn write_merged(file: Arc<File>, start: u64, mut source: MergeAhead<'_>, stop: &dyn Fn() -> bool) -> std::io::Result<SpilledRun> {
        let mut out = BufWriter::with_capacity(1 << 20, file.clone());
        let (mut len, mut asked) = (0u64, 0u64);
        while let Some(item) = source.next()? {
            if len >= asked {
                if stop() {
                    return Err(ErrorKind::Interrupted.into());
                }
                asked = len + ASK_BYTES;
            }
            out.write_all(&(item.key.len() as u32).to_le_bytes())?;
            out.write_all(&(item.value.len() as u32).to_le_bytes())?;
            out.write_all(&item.row.to_le_bytes())?;
            out.write_all(item.key)?;
            out.write_all(item.value)?;
            len += (HEAD + item.key.len() + item.value.len()) as u64;
        }
        out.flush()?;
        Ok(SpilledRun { file, start, len })
    }
}

const HEAD: usize = 16;
/// Bytes that are spilled between two looks at KILL.
const ASK_BYTES: u64 = 4 << 20;

/// An entry at the head of a merge.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub row: u64,
}

/// The runs in memory as one. They are merged a part at a time: of each the entries up to a head are gathered, and all of those sorted, which
/// costs less than a heap of many runs.
struct InMemory<'a> {
    /// Each with the number of its entries that are gathered.
    runs: Vec<(&'a Run, usize)>,
    part: Vec<Place>,
    spare: Vec<Place>,
    /// The current one of the part.
    at: usize,
}

impl<'a> InMemory<'a> {
    fn new(runs: &'a [Run]) -> InMemory<'a> {
        let runs = runs.iter().filter(|run| !run.is_empty()).map(|run| (run, 0)).collect();
        let mut merged = InMemory { runs, part: Vec::new(), spare: Vec::new(), at: 0 };
        merged.fill();
        merged
    }

    fn current(&self) -> Option<Item<'a>> {
        let place = self.part.get(self.at)?;
        let (run, i) = (self.runs[place.run as usize].0, place.entry as usize);
        Some(Item { key: run.key(i), value: run.value(i), row: run.row(i) })
    }

    fn prefix(&self) -> Option<u64> {
        let place = self.part.get(self.at)?;
        Some(self.runs[place.run as usize].0.entries[place.entry as usize].prefix)
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.at == self.part.len() {
            self.fill();
        }
    }

    /// The next part, empty at the end: up to the least entry that some run has so many further on. So it is about as long as it should be, whatever
    /// the keys are.
    fn fill(&mut self) {
        self.part.clear();
        self.at = 0;
        self.runs.retain(|(run, at)| *at < run.len());
        let ahead = PART_ENTRIES / self.runs.len().max(1);
        let mut last: Option<(u64, &[u8], u64)> = None;
        for (run, at) in self.runs.iter().filter(|(run, at)| at + ahead < run.len()) {
            let further = run.order(at + ahead);
            if last.is_none_or(|last| further < last) {
                last = Some(further);
            }
        }
        // What all keys of the part begin with, between the least and the greatest of them.
        let first = self.runs.iter().map(|(run, at)| run.order(*at)).min();
        let shared = match (first, last) {
            (Some((_, first, _)), Some((_, last, _))) => first.iter().zip(last).take_while(|(a, b)| a == b).count(),
            _ => 0,
        };
        // The first bytes, which are at hand, are enough to tell most keys apart.
        let near = shared < size_of::<u32>() || last.is_none_or(|(_, last, _)| last.len() <= size_of::<u64>());
        for ((run, at), number) in self.runs.iter_mut().zip(0..) {
            let rest = *at..run.len().min(*at + ahead + 1);
            let end = match last {
                Some(last) => rest.start + run.entries[rest].partition_point(|entry| run.order_of(entry) <= last),
                None => rest.end,
            };
            for i in *at..end {
                let head = if near { run.entries[i].prefix } else { prefix(&run.key(i)[shared..]) };
                self.part.push(Place { head, run: number, entry: i as u32 });
            }
            *at = end;
        }
        let runs = &self.runs;
        sort_places(&mut self.part, &mut self.spare, |place| {
            let (run, i) = (runs[place.run as usize].0, place.entry as usize);
            (run.key(i), run.row(i))
        });
    }
}

enum Cursor<'a> {
    Memory(InMemory<'a>),
    /// Read up to `read`, `chunk` bytes at a time; the run goes to `end`.
    File { file: Arc<File>, read: u64, end: u64, chunk: usize, buffer: Vec<u8>, at: usize },
}

impl<'a> Cursor<'a> {
    /// If it is in memory: the entry for as long as its run is there.
    fn in_memory(&self) -> Option<Item<'a>> {
        match self {
            Cursor::Memory(runs) => runs.current(),
            Cursor::File { .. } => None,
        }
    }

    /// The first bytes of the current key; `None` at the end.
    fn prefix(&self) -> Option<u64> {
        match self {
            Cursor::Memory(runs) => runs.prefix(),
            Cursor::File { .. } => self.current().map(|item| prefix(item.key)),
        }
    }

    fn current(&self) -> Option<Item<'_>> {
        match self {
            Cursor::Memory(runs) => runs.current(),
            Cursor::File { buffer, at, .. } => {
                let (key, value) = lengths(buffer.get(*at..)?)?;
                let body = &buffer[*at + HEAD..];
                let row = u64::from_le_bytes(buffer[*at + 8..*at + 16].try_into().ok()?);
                Some(Item { key: &body[..key], value: &body[key..key + value], row })
            }
        }
    }

    fn advance(&mut self) -> std::io::Result<()> {
        match self {
            Cursor::Memory(runs) => runs.advance(),
            Cursor::File { buffer, at, .. } => {
                if let Some((key, value)) = lengths(&buffer[*at..]) {
                    *at += HEAD + key + value;
                }
                return self.fill();
            }
        }
        Ok(())
    }

    /// Reads on until a whole entry is in the buffer, or the run ends.
    fn fill(&mut self) -> std::io::Result<()> {
        let Cursor::File { file, read, end, chunk, buffer, at } = self else { return Ok(()) };
        loop {
            let rest = buffer.len() - *at;
            let need = lengths(&buffer[*at..]).map_or(HEAD, |(key, value)| HEAD + key + value);
            if rest >= need && need > HEAD || *read == *end {
                return Ok(());
            }
            buffer.drain(..*at);
            *at = 0;
            let want = ((*chunk).max(need) as u64).min(*end - *read) as usize;
            let start = buffer.len();
            buffer.resize(start + want, 0);
            // Several merges may read one file: each keeps its own place.
            file.read_exact_at(&mut buffer[start..], *read)?;
            *read += want as u64;
        }
    }
}

fn lengths(entry: &[u8]) -> Option<(usize, usize)> {
    let head = entry.first_chunk::<8>()?;
    let [a, b, c, d, e, f, g, h] = *head;
    Some((u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize))
}

/// A cursor in the heap of a merge, with the first eight bytes of its key: most comparisons end there, without a look at the entry.
#[derive(Clone, Copy)]
struct Head {
    prefix: u64,
    cursor: u32,
}

/// The first eight bytes of a key, as a number that orders as they do.
fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(first)
        }
    }
}

/// Entries of several runs in key order, equal keys in the order of their rows.
pub(crate) struct Merge<'a> {
    cursors: Vec<Cursor<'a>>,
    /// A heap of cursors that are not at their end, the least first.
    heap: Vec<Head>,
    started: bool,
}

impl<'a> Merge<'a> {
    pub fn new(memory: &'a [Run], spilled: &[SpilledRun]) -> std::io::Result<Merge<'a>> {
        let mut cursors: Vec<Cursor<'a>> = Vec::with_capacity(spilled.len() + 1);
        let chunk = (READ_BYTES_ALL / spilled.len().max(1)).clamp(READ_BYTES / 8, READ_BYTES);
        for run in spilled {
            let (read, end) = (run.start, run.start + run.len);
            let mut cursor = Cursor::File { file: run.file.clone(), read, end, chunk, buffer: Vec::new(), at: 0 };
            cursor.fill()?;
            cursors.push(cursor);
        }
        cursors.push(Cursor::Memory(InMemory::new(memory)));
        let mut merge = Merge { cursors, heap: Vec::new(), started: false };
        merge.heap = (0..merge.cursors.len()).filter_map(|c| merge.head(c as u32)).collect();
        for i in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(i);
        }
        Ok(merge)
    }

    /// None at the cursor's end.
    fn head(&self, cursor: u32) -> Option<Head> {
        self.cursors[cursor as usize].prefix().map(|prefix| Head { prefix, cursor })
    }

    fn less(&self, a: Head, b: Head) -> bool {
        if a.prefix != b.prefix {
            return a.prefix < b.prefix;
        }
        let (Some(a), Some(b)) = (self.cursors[a.cursor as usize].current(), self.cursors[b.cursor as usize].current()) else { return false };
        (a.key, a.row) < (b.key, b.row)
    }

    fn sift_down(&mut self, mut i: usize) {
        loop {
            let (left, right) = (2 * i + 1, 2 * i + 2);
            let mut least = i;
            if left < self.heap.len() && self.less(self.heap[left], self.heap[least]) {
                least = left;
            }
            if right < self.heap.len() && self.less(self.heap[right], self.heap[least]) {
                least = right;
            }
            if least == i {
                return;
            }
            self.heap.swap(i, least);
            i = least;
        }
    }

    /// The next entry.
    pub fn next(&mut self) -> std::io::Result<Option<Item<'_>>> {
        Ok(self.next_cursor()?.and_then(|cursor| cursor.current()))
    }

    /// The cursor that is at the next entry.
    fn next_cursor(&mut self) -> std::io::Result<Option<&Cursor<'a>>> {
        if self.started {
            if let Some(&top) = self.heap.first() {
                self.cursors[top.cursor as usize].advance()?;
                match self.head(top.cursor) {
                    Some(head) => self.heap[0] = head,
                    None => drop(self.heap.swap_remove(0)),
                }
                self.sift_down(0);
            }
        }
        self.started = true;
        Ok(self.heap.first().map(|top| &self.cursors[top.cursor as usize]))
    }
}

/// Merged entries.
#[derive(Default)]
struct Block<'a> {
    /// `None`: the next one of `read`.
    entries: Vec<Option<Item<'a>>>,
    /// Those that came from files.
    read: Run,
}

impl<'a> Block<'a> {
    /// Takes entries until the block is full or there are no more.
    fn fill(&mut self, merge: &mut Merge<'a>) -> std::io::Result<()> {
        while self.entries.len() < AHEAD_ENTRIES && self.read.bytes() < AHEAD_BYTES {
            let Some(cursor) = merge.next_cursor()? else { break };
            let in_memory = cursor.in_memory();
            if let (None, Some(item)) = (in_memory, cursor.current()) {
                self.read.add(item.key, item.value, item.row);
            }
            self.entries.push(in_memory);
        }
        Ok(())
    }
}

/// A merge in a thread of its own, ahead of the one who takes the entries: finding the order need not wait for memory, nor the building of
/// pages for either.
pub(crate) struct MergeAhead<'a> {
    blocks: Receiver<std::io::Result<Block<'a>>>,
    block: Block<'a>,
    at: usize,
    /// Entries of the block's `read` that were given out.
    read: usize,
}

impl<'a> MergeAhead<'a> {
    /// An error: the system has no thread to give.
    pub fn new<'scope>(mut merge: Merge<'a>, scope: &'scope Scope<'scope, '_>) -> std::io::Result<MergeAhead<'a>>
    where
        'a: 'scope,
    {
        let (send, blocks) = sync_channel(AHEAD_BLOCKS);
        let waits = Waits::current();
        Builder::new().name("hk-merge".into()).spawn_scoped(scope, move || {
            loop {
                let mut block = Block::default();
                let mut fill = || block.fill(&mut merge);
                // The statement's own work, but for the waits until somebody takes the block.
                let filled = match &waits {
                    Some(waits) => waits.work(fill),
                    None => fill(),
                };
                let last = block.entries.is_empty() || filled.is_err();
                // Nobody receives any more: the other side has failed.
                if send.send(filled.map(|()| block)).is_err() || last {
                    return;
                }
            }
        })?;
        Ok(MergeAhead { blocks, block: Block::default(), at: 0, read: 0 })
    }

    /// The next entry.
    pub fn next(&mut self) -> std::io::Result<Option<Item<'_>>> {
        if self.at == self.block.entries.len() {
            let received = match self.blocks.try_recv() {
                Err(TryRecvError::Empty) => for_helpers(|| self.blocks.recv()).ok(),
                received => received.ok(),
            };
            self.block = received.unwrap_or_else(|| Ok(Block::default()))?;
            (self.at, self.read) = (0, 0);
        }
        if let Some(Some(later)) = self.block.entries.get(self.at + FETCH_AHEAD) {
            prefetch(later.key);
            prefetch(later.value);
        }
        let Some(entry) = self.block.entries.get(self.at) else { return Ok(None) };
        self.at += 1;
        let read = &self.block.read;
        Ok(Some(entry.unwrap_or_else(|| {
            self.read += 1;
            let i = self.read - 1;
            Item { key: read.key(i), value: read.value(i), row: read.row(i) }
        })))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use highkey_storage::{Engine, FileDisk, Options, SystemClock};

    use super::*;
    use crate::bulk::Runs;

    fn run(rows: &[(&str, u64)]) -> Run {
        let mut run = Run::default();
        for (key, row) in rows {
            run.add(key.as_bytes(), format!("{key}{row}").as_bytes(), *row);
        }
        run
    }

    fn drain(mut merge: Merge) -> Vec<(String, String, u64)> {
        let mut all = Vec::new();
        while let Some(item) = merge.next().unwrap() {
            let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
            all.push((text(item.key), text(item.value), item.row));
        }
        all
    }

    #[test]
    fn numbered_rows_merge_with_others() {
        let mut numbered = Run::default();
        for row in 0..3 {
            let start = numbered.keys.len();
            numbered.keys.extend_from_slice(&[0; 8]);
            numbered.push(start, (0, 0), row);
        }
        numbered.number(5);
        let mut others = Run::default();
        for (key, row) in [(4u64, 3), (9, 4)] {
            others.add(&key.to_be_bytes(), b"", row);
        }
        let runs = [others, numbered];
        let mut merge = Merge::new(&runs, &[]).unwrap();
        let mut keys = Vec::new();
        while let Some(item) = merge.next().unwrap() {
            keys.push(u64::from_be_bytes(item.key.try_into().unwrap()));
        }
        assert_eq!(keys, [4, 5, 6, 7, 9]);
    }

    #[test]
    fn runs_in_memory_and_on_disk_merge_in_key_then_row_order() {
        let mut state = 88172645463325252u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut expected = Vec::new();
        let (mut memory, mut spilled) = (Vec::new(), Vec::new());
        let mut row = 0;
        for n in 0..9 {
            let rows: Vec<(String, u64)> = (0..next() % 700)
                .map(|_| {
                    row += 1;
                    (format!("shared{}", next() % 900), row)
                })
                .collect();
            let mut sorted = run(&rows.iter().map(|(k, r)| (k.as_str(), *r)).collect::<Vec<_>>());
            sorted.sort();
            expected.extend(rows.into_iter().map(|(k, r)| (k.clone(), format!("{k}{r}"), r)));
            if n % 3 == 0 {
                let run = SpilledRun::write(&[sorted], spilled.last(), None, &|| false).unwrap();
                spilled.push(run);
            } else {
                memory.push(sorted);
            }
        }
        expected.sort_by(|a, b| (&a.0, a.2).cmp(&(&b.0, b.2)));
        assert_eq!(drain(Merge::new(&memory, &spilled).unwrap()), expected);
        assert_eq!(drain(Merge::new(&memory, &spilled).unwrap()), expected, "again");
        let ahead = std::thread::scope(|scope| {
            let mut ahead = MergeAhead::new(Merge::new(&memory, &spilled).unwrap(), scope).unwrap();
            drop(MergeAhead::new(Merge::new(&memory, &spilled).unwrap(), scope).unwrap());
            let mut copy = Run::default();
            while let Some(item) = ahead.next().unwrap() {
                copy.add(item.key, item.value, item.row);
            }
            assert!(ahead.next().unwrap().is_none());
            copy
        });
        assert_eq!(drain(Merge::new(&[ahead], &[]).unwrap()), expected, "ahead");
    }

    #[test]
    fn more_entries_than_a_part_merge_whatever_their_keys_have_in_common() {
        let kinds: [fn(u64) -> Vec<u8>; 4] = [
            |n| (n as u32).to_be_bytes().to_vec(),
            |n| format!("all keys begin with this {n}").into_bytes(),
            |n| vec![b'a'; (n % 300) as usize],
            // Most of one kind, some of others.
            |n| if n % 50 == 0 { n.to_string().into_bytes() } else { format!("customer {n:06}").into_bytes() },
        ];
        for (kind, key) in kinds.into_iter().enumerate() {
            for ascending in [false, true] {
                let mut all = Vec::new();
                let (mut runs, mut row) = (Vec::new(), 0);
                for _ in 0..40 {
                    let mut run = Run::default();
                    for _ in 0..2000 {
                        row += 1;
                        let n = if ascending { row } else { row * 7919 % 60_013 };
                        run.add(&key(n), &row.to_le_bytes(), row);
                        all.push((key(n), row));
                    }
                    run.sort();
                    runs.push(run);
                }
                all.sort();
                let mut merge = Merge::new(&runs, &[]).unwrap();
                for (at, (key, row)) in all.iter().enumerate() {
                    let item = merge.next().unwrap().unwrap();
                    assert_eq!((item.key, item.row, item.value), (key.as_slice(), *row, &row.to_le_bytes()[..]), "kind {kind}, entry {at}");
                }
                assert!(merge.next().unwrap().is_none());
            }
        }
    }

    /// Entries of a secondary index come in the order of the clustered keys, not of the rows.
    #[test]
    fn equal_keys_that_came_against_the_order_of_their_rows_merge_in_it() {
        let rows = 2 * PART_ENTRIES as u64;
        let mut sorted = Run::default();
        for (key, row) in [("a", rows), ("b", 2 * rows)].into_iter().flat_map(|(key, end)| (end - rows..end).rev().map(move |row| (key, row))) {
            sorted.add(key.as_bytes(), b"", row);
        }
        assert!(!sorted.sort());
        let found: Vec<u64> = drain(Merge::new(&[sorted], &[]).unwrap()).into_iter().map(|(_, _, row)| row).collect();
        assert!(found.into_iter().eq(0..2 * rows));
    }

    #[test]
    fn an_entry_longer_than_the_buffer_is_read_whole() {
        let long = "x".repeat(READ_BYTES * 2);
        let mut sorted = run(&[(&long, 2), ("a", 1), ("z", 3)]);
        assert!(!sorted.sort());
        let spilled = [SpilledRun::write(std::slice::from_ref(&sorted), None, None, &|| false).unwrap()];
        let stopped = SpilledRun::write(std::slice::from_ref(&sorted), None, None, &|| true);
        assert_eq!(stopped.err().map(|e| e.kind()), Some(ErrorKind::Interrupted));
        assert_eq!(drain(Merge::new(&[], &spilled).unwrap()), drain(Merge::new(&[sorted], &[]).unwrap()));
    }

    #[test]
    fn runs_are_spilled_beside_the_database() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(FileDisk::open(directory.path()).unwrap());
        let engine = Engine::open(disk, Options { buffer_pool_bytes: 4 << 20, ..Options::default() }, Arc::new(SystemClock::new())).unwrap();
        let mut runs = Runs::new(&engine);
        let mut one = run(&[("a", 1)]);
        one.sort();
        runs.memory.push(one);
        runs.spill().unwrap();
        let place = std::fs::read_link(format!("/proc/self/fd/{}", runs.spilled[0].file.as_raw_fd())).unwrap();
        assert!(place.starts_with(directory.path().canonicalize().unwrap()), "{}", place.display());
        assert_eq!(drain(runs.merge().unwrap()).len(), 1);
    }
}
