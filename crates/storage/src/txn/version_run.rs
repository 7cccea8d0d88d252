//! A run: versions in a scratch file, sorted by row, written once and removed as a whole.
//!
//! ```text
//! block     entries · offset of every 16th of them u32 · how many offsets u32 · crc32c of all that u32
//! entry     bytes of the row shared with the entry before · length of the rest · rest · txn · flags · by · length of the value · value
//! ```
//!
//! Numbers are LEB128, those of fixed size little-endian. Every 16th entry of a block shares nothing: among those a row is searched. The versions of
//! one row are newest first, perhaps over several blocks.
//! In memory are the least bytes that tell each block from the one before: about 30 for 32 KiB.

use std::ops::ControlFlow;

use ahash::AHashSet;

use super::needs::Needs;
use super::scratch::{Scratch, ScratchFile};
use super::versions::{Entry, ShardSet};
use crate::error::{Error, Result};
use crate::ids::TxnId;
use crate::page::slotted::common_prefix;
use crate::sync::{Arc, AtomicU64, Ordering};

/// A block is closed once it has so many bytes.
const BLOCK: usize = if cfg!(test) { 300 } else { 32 << 10 };
/// Of so many entries one can be read without those before it.
const RESTART: usize = if cfg!(test) { 4 } else { 16 };
/// Bytes that are written at once.
const WRITE: usize = if cfg!(test) { 1000 } else { 1 << 20 };
/// Of so many transactions a run knows each, of more only the least and the greatest.
const REPLACERS_MAX: usize = if cfg!(test) { 8 } else { 1024 };
/// Of those that are not known so many ids are asked about at once.
const ASKED_MAX: u64 = if cfg!(test) { 50 } else { 4096 };
/// Blocks that a reader keeps.
const BLOCKS_KEPT: usize = if cfg!(test) { 3 } else { 16 };

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Where blocks begin: in the file, and among the rows.
#[derive(Default)]
struct BlockIndex {
    starts: Vec<u64>,
    /// One behind the other. Each is not below the rows before its block (above them, unless the last of them goes on in it), and not above those in
    /// it; the first is the first row.
    separators: Vec<u8>,
    ends: Vec<usize>,
}

impl BlockIndex {
    fn push(&mut self, start: u64, separator: &[u8]) {
        self.starts.push(start);
        self.separators.extend_from_slice(separator);
        self.ends.push(self.separators.len());
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn separator(&self, block: usize) -> &[u8] {
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.separators[start..self.ends[block]]
    }

    /// The block in which the first entry of a row is, if there is any; the row is not below the first.
    fn find(&self, row: &[u8]) -> usize {
        // A row may begin at the end of the block before the one that its separator is equal to.
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.separator(middle) < row { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    fn memory(&self) -> usize {
        self.separators.capacity() + (self.starts.capacity() + self.ends.capacity()) * 8
    }

    fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.separators.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// The transactions that replaced a run's versions.
struct Replacers {
    least: TxnId,
    greatest: TxnId,
    /// Each of them, if they are few.
    each: Option<AHashSet<TxnId>>,
}

impl Replacers {
    fn add(&mut self, by: TxnId) {
        self.least = self.least.min(by);
        self.greatest = self.greatest.max(by);
        if let Some(each) = &mut self.each
            && each.insert(by)
            && each.len() > REPLACERS_MAX
        {
            self.each = None;
        }
    }

    fn may_have(&self, by: TxnId) -> bool {
        self.least <= by && by <= self.greatest && self.each.as_ref().is_none_or(|each| each.contains(&by))
    }
}

/// Writes a run. Nothing is left of one that is not finished.
pub(crate) struct RunWriter {
    scratch: Arc<Scratch>,
    shards: ShardSet,
    file: Option<ScratchFile>,
    /// Complete blocks, and from `block` on the one that is being filled.
    buffer: Vec<u8>,
    block: usize,
    /// Entries of that one, and where every `RESTART`th begins.
    entries: usize,
    restarts: Vec<u32>,
    written: u64,
    row: Vec<u8>,
    last_by: TxnId,
    index: BlockIndex,
    replacers: Replacers,
    len: u64,
    settled: u64,
}

impl RunWriter {
    /// For rows of the maps `shards`. `settled` as in `Run`.
    pub fn new(scratch: Arc<Scratch>, shards: ShardSet, settled: u64) -> RunWriter {
        let replacers = Replacers { least: TxnId(u64::MAX), greatest: TxnId(0), each: Some(AHashSet::new()) };
        let last_by = TxnId(u64::MAX);
        let index = BlockIndex::default();
        RunWriter {
            scratch,
            shards,
            file: None,
            buffer: Vec::new(),
            block: 0,
            entries: 0,
            restarts: Vec::new(),
            written: 0,
            row: Vec::new(),
            last_by,
            index,
            replacers,
            len: 0,
            settled,
        }
    }

    /// Adds a version. Rows ascend, and the versions of a row come newest first.
    pub fn add(&mut self, row: &[u8], entry: Entry) -> Result<()> {
        debug_assert!(self.row.as_slice() <= row, "the rows of a run ascend");
        if self.buffer.len() - self.block >= BLOCK {
            self.close_block();
            if self.buffer.len() >= WRITE {
                self.write()?;
            }
        }
        let mut shared = common_prefix(&self.row, row);
        if self.entries == 0 {
            let separator = if self.index.len() == 0 { row.len() } else { (shared + 1).min(row.len()) };
            self.index.push(self.written + self.block as u64, &row[..separator]);
        }
        if self.entries.is_multiple_of(RESTART) {
            self.restarts.push((self.buffer.len() - self.block) as u32);
            shared = 0;
        }
        self.entries += 1;
        let out = &mut self.buffer;
        put_number(out, shared as u64);
        put_number(out, (row.len() - shared) as u64);
        out.extend_from_slice(&row[shared..]);
        put_number(out, entry.txn.0);
        put_number(out, entry.flags as u64);
        put_number(out, entry.by.0);
        put_number(out, entry.value.len() as u64);
        out.extend_from_slice(entry.value);
        self.row.clear();
        self.row.extend_from_slice(row);
        if entry.by != self.last_by {
            self.last_by = entry.by;
            self.replacers.add(entry.by);
        }
        self.len += 1;
        Ok(())
    }

    fn close_block(&mut self) {
        let restarts = self.restarts.len() as u32;
        for number in self.restarts.drain(..).chain([restarts]) {
            self.buffer.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&self.buffer[self.block..]);
        self.buffer.extend_from_slice(&crc.to_le_bytes());
        (self.block, self.entries) = (self.buffer.len(), 0);
    }

    fn write(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(self.scratch.create()?),
        };
        file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.block = 0;
        Ok(())
    }

    /// `None`: there was nothing to write.
    pub fn finish(mut self) -> Result<Option<Run>> {
        if self.len == 0 {
            return Ok(None);
        }
        if self.entries > 0 {
            self.close_block();
        }
        if !self.buffer.is_empty() {
            self.write()?;
        }
        self.index.shrink();
        let file = self.file.expect("written above, or before");
        let over_below = AtomicU64::new(self.replacers.least.0);
        Ok(Some(Run {
            file,
            shards: self.shards,
            index: self.index,
            last_row: self.row.into(),
            replacers: self.replacers,
            over_below,
            len: self.len,
            settled: self.settled,
        }))
    }
}

/// What is on its way to a run and somebody needs. Each version waits for the one behind it, to which it hands its link on if no snapshot sees it.
pub(crate) struct Sieve {
    writer: RunWriter,
    is_holding: bool,
    row: Vec<u8>,
    txn: TxnId,
    flags: u16,
    by: TxnId,
    value: Vec<u8>,
    settled: u64,
}

impl Sieve {
    pub fn new(writer: RunWriter) -> Sieve {
        Sieve { writer, is_holding: false, row: Vec::new(), txn: TxnId(0), flags: 0, by: TxnId(0), value: Vec::new(), settled: 0 }
    }

    /// As `RunWriter::add`. If who replaced the version has committed at or below `settled`, that was before it was taken out of the maps.
    pub fn add(&mut self, row: &[u8], mut entry: Entry, mut settled: u64, needs: &impl Needs) -> Result<()> {
        if needs.is_over(entry.by) {
            return Ok(());
        }
        if self.is_holding {
            let held = Entry { txn: self.txn, flags: self.flags, by: self.by, value: &self.value };
            if self.row == row && held.hands_on(&entry, self.settled, needs) {
                (entry.by, settled) = (self.by, self.settled);
            } else {
                self.writer.add(&self.row, held)?;
            }
        }
        if let Some(committed) = needs.committed_at(entry.by).filter(|committed| *committed > settled) {
            // While it was below the maps. Who is open now commits behind all that any run says.
            self.writer.settled = self.writer.settled.min(committed - 1);
        }
        if self.row != row {
            self.row.clear();
            self.row.extend_from_slice(row);
        }
        self.value.clear();
        self.value.extend_from_slice(entry.value);
        (self.is_holding, self.txn, self.flags, self.by, self.settled) = (true, entry.txn, entry.flags, entry.by, settled);
        Ok(())
    }

    /// As `RunWriter::finish`.
    pub fn finish(mut self) -> Result<Option<Run>> {
        if self.is_holding {
            self.writer.add(&self.row, Entry { txn: self.txn, flags: self.flags, by: self.by, value: &self.value })?;
        }
        self.writer.finish()
    }
}

/// Blocks that were read last: who looks for rows in their order finds the next one where the last one was.
#[derive(Default)]
pub(crate) struct BlocksRead {
    /// File, block in it, its content.
    blocks: Vec<(u64, usize, Arc<Block>)>,
    /// The one that goes next.
    oldest: usize,
}

impl BlocksRead {
    fn get(&mut self, run: &Run, block: usize) -> Result<Arc<Block>> {
        let number = run.file.number();
        if let Some((.., content)) = self.blocks.iter().find(|(file, at, _)| (*file, *at) == (number, block)) {
            return Ok(content.clone());
        }
        let content = Arc::new(run.read_block(block)?);
        let read = (number, block, content.clone());
        if self.blocks.len() < BLOCKS_KEPT {
            self.blocks.push(read);
        } else {
            self.blocks[self.oldest] = read;
            self.oldest = (self.oldest + 1) % BLOCKS_KEPT;
        }
        Ok(content)
    }
}

pub(crate) struct Run {
    file: ScratchFile,
    /// The maps that its rows come from.
    shards: ShardSet,
    index: BlockIndex,
    last_row: Box<[u8]>,
    replacers: Replacers,
    /// All who replaced its versions and have a lower id are over.
    over_below: AtomicU64,
    len: u64,
    /// Who had committed at this timestamp and replaced one of its versions had done so before that one was taken out of the maps (V6).
    settled: u64,
}

impl Run {
    /// Versions in it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of its file.
    pub fn bytes(&self) -> u64 {
        self.file.len()
    }

    /// Bytes in memory, about.
    pub fn memory(&self) -> usize {
        let each = self.replacers.each.as_ref().map_or(0, |each| each.capacity() * 9);
        size_of::<Run>() + self.index.memory() + self.last_row.len() + each
    }

    /// Whether nobody needs any of it: every snapshot sees the end of all who replaced its versions.
    pub fn is_over(&self, low_water: TxnId, is_over: impl Fn(TxnId) -> bool) -> bool {
        self.replacers.greatest < low_water
            || match &self.replacers.each {
                Some(each) => each.iter().all(|by| is_over(*by)),
                None => self.all_between_are_over(is_over),
            }
    }

    /// Whether the ids from the least to the greatest of who replaced its versions are over. Some are asked about at a time: who is over stays so.
    fn all_between_are_over(&self, is_over: impl Fn(TxnId) -> bool) -> bool {
        let begun = self.over_below.load(Ordering::Relaxed);
        let greatest = self.replacers.greatest.0;
        let end = (greatest + 1).min(begun + ASKED_MAX);
        let next = (begun..end).find(|id| !is_over(TxnId(*id))).unwrap_or(end);
        self.over_below.store(next, Ordering::Relaxed);
        next > greatest
    }

    /// Whether it may have a version, of a row of the shard, that `by` replaced.
    pub fn may_have(&self, shard: usize, by: TxnId) -> bool {
        self.shards >> shard & 1 != 0 && self.replacers.may_have(by)
    }

    /// Shows `f` the versions of a row, newest first, until it breaks off.
    pub fn visit(&self, row: &[u8], blocks: &mut BlocksRead, f: &mut impl FnMut(Entry) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
        if row < self.index.separator(0) || row > &*self.last_row {
            return Ok(ControlFlow::Continue(()));
        }
        let first = self.index.find(row);
        for block in first..self.index.len() {
            if block > first && self.index.separator(block) > row {
                break;
            }
            let content = blocks.get(self, block)?;
            let mut entries = content.entries_before(row).ok_or_else(|| self.is_corrupt(block))?;
            while let Some(entry) = entries.next().ok_or_else(|| self.is_corrupt(block))? {
                match entries.row.as_slice().cmp(row) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => {
                        if f(entry).is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    std::cmp::Ordering::Greater => return Ok(ControlFlow::Continue(())),
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_block(&self, block: usize) -> Result<Block> {
        let start = self.index.starts[block];
        let end = self.index.starts.get(block + 1).copied().unwrap_or(self.file.len());
        Block::decode(self.file.read(start, (end - start) as usize)?).ok_or_else(|| self.is_corrupt(block))
    }

    fn is_corrupt(&self, block: usize) -> Error {
        Error::corrupt_file(format!("block {block} of {}", self.file.name()))
    }
}

struct Block {
    /// Entries and their offsets.
    bytes: Vec<u8>,
    /// Bytes of the entries.
    entries: usize,
}

impl Block {
    fn decode(mut bytes: Vec<u8>) -> Option<Block> {
        let (rest, crc) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(rest) != u32::from_le_bytes(*crc) {
            return None;
        }
        let (rest, restarts) = rest.split_last_chunk::<4>()?;
        let (rest, restarts) = (rest.len(), u32::from_le_bytes(*restarts) as usize);
        let entries = rest.checked_sub(restarts.checked_mul(4)?)?;
        bytes.truncate(rest);
        Some(Block { bytes, entries })
    }

    /// The entries, from one on that lies before all of the row's, or from the first.
    fn entries_before(&self, row: &[u8]) -> Option<Entries<'_>> {
        let restarts = self.bytes[self.entries..].as_chunks::<4>().0;
        let from = |restart: usize| Some(Entries::new(self.bytes.get(u32::from_le_bytes(*restarts.get(restart)?) as usize..self.entries)?));
        let (mut low, mut high) = (0, restarts.len());
        while low < high {
            let middle = low.midpoint(high);
            let mut entries = from(middle)?;
            entries.next()??;
            if entries.row.as_slice() < row { low = middle + 1 } else { high = middle }
        }
        from(low.saturating_sub(1))
    }
}

/// Entries of a block, one after the other.
struct Entries<'a> {
    rest: &'a [u8],
    /// Of the entry that `next` gave last.
    row: Vec<u8>,
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8]) -> Entries<'a> {
        Entries { rest: bytes, row: Vec::new() }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= ((byte & 0x7f) as u64) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// `Some(None)` at the end, `None` if the bytes are not what a run has.
    fn next(&mut self) -> Option<Option<Entry<'a>>> {
        if self.rest.is_empty() {
            return Some(None);
        }
        let shared = self.number()? as usize;
        let rest = self.number()? as usize;
        let rest = self.take(rest)?;
        if shared > self.row.len() {
            return None;
        }
        self.row.truncate(shared);
        self.row.extend_from_slice(rest);
        let txn = TxnId(self.number()?);
        let flags = self.number()? as u16;
        let by = TxnId(self.number()?);
        let len = self.number()? as usize;
        Some(Some(Entry { txn, flags, by, value: self.take(len)? }))
    }
}

/// A run being read from its beginning.
struct Reading {
    run: Arc<Run>,
    /// The next block.
    block: usize,
    content: Block,
    /// Where the next entry begins in the block, and where the value of the present one lies.
    at: usize,
    row: Vec<u8>,
    txn: TxnId,
    flags: u16,
    by: TxnId,
    value: std::ops::Range<usize>,
}

impl Reading {
    fn new(run: Arc<Run>) -> Reading {
        let none = TxnId(0);
        Reading { run, block: 0, content: Block { bytes: Vec::new(), entries: 0 }, at: 0, row: Vec::new(), txn: none, flags: 0, by: none, value: 0..0 }
    }

    /// Goes to the next version. False at the end.
    fn advance(&mut self) -> Result<bool> {
        if self.at == self.content.entries {
            if self.block == self.run.index.len() {
                return Ok(false);
            }
            self.content = self.run.read_block(self.block)?;
            self.block += 1;
            self.at = 0;
        }
        let bytes = &self.content.bytes[self.at..self.content.entries];
        let mut entries = Entries { rest: bytes, row: std::mem::take(&mut self.row) };
        let entry = entries.next().flatten().ok_or_else(|| self.run.is_corrupt(self.block - 1))?;
        let end = self.content.entries - entries.rest.len();
        (self.txn, self.flags, self.by, self.value) = (entry.txn, entry.flags, entry.by, end - entry.value.len()..end);
        self.row = entries.row;
        self.at = end;
        Ok(true)
    }

    fn entry(&self) -> Entry<'_> {
        Entry { txn: self.txn, flags: self.flags, by: self.by, value: &self.content.bytes[self.value.clone()] }
    }
}

/// Runs that follow each other becoming one.
pub(crate) struct Merge {
    /// Newest first.
    pub inputs: Vec<Arc<Run>>,
    /// Those that have versions left, newest first.
    readings: Vec<Reading>,
    sieve: Sieve,
    begun: bool,
}

impl Merge {
    pub fn new(inputs: Vec<Arc<Run>>, scratch: Arc<Scratch>) -> Merge {
        let readings = inputs.iter().cloned().map(Reading::new).collect();
        let shards = inputs.iter().fold(0, |set, run| set | run.shards);
        let settled = inputs.iter().map(|run| run.settled).max().unwrap_or(0);
        Merge { inputs, readings, sieve: Sieve::new(RunWriter::new(scratch, shards, settled)), begun: false }
    }

    /// Merges about so many versions, and leaves out what nobody needs. True once it is done.
    pub fn advance(&mut self, versions: usize, needs: &impl Needs) -> Result<bool> {
        if !self.begun {
            for at in (0..self.readings.len()).rev() {
                self.step(at)?;
            }
            self.begun = true;
        }
        for _ in 0..versions {
            // Of equal rows the first, which is the newest.
            let Some(least) = (0..self.readings.len()).min_by(|a, b| self.readings[*a].row.cmp(&self.readings[*b].row)) else {
                return Ok(true);
            };
            let reading = &self.readings[least];
            self.sieve.add(&reading.row, reading.entry(), reading.run.settled, needs)?;
            self.step(least)?;
        }
        Ok(self.readings.is_empty())
    }

    fn step(&mut self, at: usize) -> Result<()> {
        if !self.readings[at].advance()? {
            self.readings.remove(at);
        }
        Ok(())
    }

    /// What became of the inputs; `None`: nobody needs any of it.
    pub fn finish(self) -> Result<(Vec<Arc<Run>>, Option<Run>)> {
        Ok((self.inputs, self.sieve.finish()?))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::super::needs::Over;
    use super::*;
    use crate::disk::{SimConfig, SimDisk};
    use rand::{Rng, SeedableRng};
    use std::collections::BTreeMap;

    /// Versions of each row, newest first: `txn`, `by`, value.
    type Model = BTreeMap<Vec<u8>, Vec<(u64, u64, Vec<u8>)>>;

    fn random(rng: &mut impl Rng) -> Model {
        let mut model = Model::new();
        for _ in 0..rng.random_range(1..60) {
            let mut row = vec![b'r'; rng.random_range(1..40)];
            row.push(rng.random_range(0..20));
            // Some have many blocks to themselves.
            let versions = if rng.random_ratio(1, 10) { rng.random_range(1..80) } else { rng.random_range(1..4) };
            let version = |n: u64, rng: &mut _| (n, rng_by(rng), vec![n as u8; n as usize % 90]);
            model.insert(row, (0..versions).map(|n| version(n, rng)).collect());
        }
        model
    }

    fn rng_by(rng: &mut impl Rng) -> u64 {
        rng.random_range(1..1 << 40)
    }

    fn write(scratch: &Arc<Scratch>, model: &Model) -> Run {
        let mut writer = RunWriter::new(scratch.clone(), 1, 0);
        for (row, versions) in model {
            for (txn, by, value) in versions {
                writer.add(row, Entry { txn: TxnId(*txn), flags: *txn as u16, by: TxnId(*by), value }).unwrap();
            }
        }
        writer.finish().unwrap().unwrap()
    }

    fn check(run: &Run, model: &Model) {
        let mut blocks = BlocksRead::default();
        let absent = [vec![0], vec![b'r'], vec![b'r', b'r', 21], vec![b'r'; 41], vec![255]];
        for row in model.keys().chain(absent.iter().filter(|row| !model.contains_key(*row))) {
            let mut found = Vec::new();
            let visited = run.visit(row, &mut blocks, &mut |entry| {
                assert!(entry.flags == entry.txn.0 as u16 && run.may_have(0, entry.by));
                found.push((entry.txn.0, entry.by.0, entry.value.to_vec()));
                ControlFlow::Continue(())
            });
            assert!(visited.unwrap().is_continue());
            assert_eq!(found, model.get(row).cloned().unwrap_or_default());
        }
        assert_eq!(run.len(), model.values().map(|versions| versions.len() as u64).sum::<u64>());
    }

    #[test]
    fn rows_are_found_in_runs_and_in_what_they_become() {
        let scratch = Arc::new(Scratch::new(Arc::new(SimDisk::new(SimConfig::default())), "versions"));
        for seed in 0..100 {
            let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
            let models: Vec<Model> = (0..rng.random_range(1..6)).map(|_| random(&mut rng)).collect();
            let runs: Vec<_> = models.iter().map(|model| Arc::new(write(&scratch, model))).collect();
            models.iter().zip(&runs).for_each(|(model, run)| check(run, model));
            let is_over = |by: TxnId| by.0.is_multiple_of(3);
            let mut merge = Merge::new(runs, scratch.clone());
            while !merge.advance(rng.random_range(1..100), &Over(is_over)).unwrap() {}
            let mut merged = Model::new();
            for (row, versions) in models.into_iter().flatten() {
                let versions: Vec<_> = versions.into_iter().filter(|(_, by, _)| !is_over(TxnId(*by))).collect();
                merged.entry(row).or_default().extend(versions);
            }
            let (inputs, run) = merge.finish().unwrap();
            drop(inputs);
            match run {
                Some(run) => check(&run, &merged),
                None => assert!(merged.values().all(Vec::is_empty)),
            }
            assert_eq!(scratch.len(), 0, "seed {seed}");
        }
    }
}
