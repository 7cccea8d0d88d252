//! Decoded columns of leaves that nobody changes.
//!
//! A scan decodes rows into columns a block of leaves at a time. If every row of the block is visible to every snapshot (no recent change,
//! nothing deleted), the columns are kept, packed, with the state of each leaf; the next scan that comes to the block asks whether its
//! leaves are still in that state, one comparison a leaf, and takes the columns instead of the rows. Writers know nothing of this and pay
//! nothing: a change gives a page another version. README.md has why this is right.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, UInt8Array, UInt32Array,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int32Type, Int64Type, UInt16Type, UInt64Type};
use datafusion::common::Result;
use datafusion::logical_expr::Operator;
use highkey_table::{LeafRun, Table};
use parking_lot::Mutex;

use super::span::{Span, decided};
use crate::df::compact::together;
use crate::df::key_set::KeySet;

/// Where all queries keep columns.
#[derive(Debug)]
pub(crate) struct ColumnCache {
    /// Bytes that may be kept; 0 keeps nothing.
    limit: usize,
    used: AtomicUsize,
    /// By the table's address, which its `Weak` keeps from being used again.
    tables: Mutex<HashMap<usize, Arc<TableColumns>>>,
    /// All blocks, in the order in which the clock looks at them.
    clock: Mutex<VecDeque<(Arc<TableColumns>, Weak<Block>)>>,
    hits: AtomicU64,
    misses: AtomicU64,
    skips: AtomicU64,
    /// Blocks offered while there was no room.
    offered: AtomicUsize,
}

/// Bytes kept; blocks taken from the cache, and of those the ones at whose rows nobody had to look; blocks read from rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheUsage {
    pub bytes: u64,
    pub hits: u64,
    pub skips: u64,
    pub misses: u64,
}

/// While there is no room, one block in so many is let in: a table larger than the cache then finds some of its blocks every time, instead
/// of throwing out each one just before it comes by again.
const ADMIT_ONE_IN: usize = 8;

/// What a value takes, packed, about.
const BYTES_FOR_VALUE: f64 = 4.0;

/// A block with fewer rows is not worth its bookkeeping.
const LEAST_ROWS: usize = 64;

impl ColumnCache {
    pub fn new(limit: usize) -> ColumnCache {
        ColumnCache {
            limit,
            used: AtomicUsize::new(0),
            tables: Mutex::default(),
            clock: Mutex::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            skips: AtomicU64::new(0),
            offered: AtomicUsize::new(0),
        }
    }

    /// False if nothing is ever kept.
    pub(super) fn keeps_any(&self) -> bool {
        self.limit > 0
    }

    /// The blocks of a table in its present definition. A partition is a table: blocks are of the leaves of one tree.
    pub(super) fn table(&self, table: &Arc<Table>) -> Arc<TableColumns> {
        let mut tables = self.tables.lock();
        if !tables.contains_key(&(Arc::as_ptr(table) as usize)) {
            tables.retain(|_, table| table.is_alive() || self.forget_all(table));
        }
        let known = tables.entry(Arc::as_ptr(table) as usize).or_insert_with(|| Arc::new(TableColumns { table: Arc::downgrade(table), blocks: Mutex::default(), regret: Mutex::default() }));
        known.clone()
    }

    /// True if so many values may be kept together.
    pub(super) fn has_room_for(&self, values: f64) -> bool {
        values * BYTES_FOR_VALUE <= self.limit as f64
    }

    /// True if so many values more can be kept without others going.
    pub(super) fn has_room_left_for(&self, values: usize) -> bool {
        self.used.load(Ordering::Relaxed) as f64 + values as f64 * BYTES_FOR_VALUE <= self.limit as f64
    }

    /// Whether a block is let in though there is no room.
    pub(super) fn lets_in(&self) -> bool {
        self.offered.fetch_add(1, Ordering::Relaxed).is_multiple_of(ADMIT_ONE_IN)
    }

    /// Keeps a block, if there is room, or room can be made and it is `let_in`.
    pub(super) fn keep(&self, table: &Arc<TableColumns>, block: Block, let_in: bool) {
        let block = Arc::new(block);
        if block.bytes > self.limit / 8 || block.rows < LEAST_ROWS {
            return;
        }
        // Counted before it can be found, and forgotten, by others.
        let counted = || self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| used.checked_add(block.bytes).filter(|used| *used <= self.limit)).is_ok();
        if !counted() {
            if !let_in && !self.lets_in() {
                return;
            }
            self.make_room(block.bytes);
            // Another worker may have been quicker.
            if !counted() {
                return;
            }
        }
        if let Some(old) = table.blocks.lock().insert(block.run.low.clone(), block.clone()) {
            self.forget(&old);
        }
        let mut clock = self.clock.lock();
        clock.push_back((table.clone(), Arc::downgrade(&block)));
        // Blocks that were replaced or removed leave their places behind.
        if clock.len().is_power_of_two() {
            clock.retain(|(_, block)| block.strong_count() > 0);
        }
    }

    /// Takes out blocks that were not used since the clock came by, until `bytes` fit.
    fn make_room(&self, bytes: usize) {
        let mut clock = self.clock.lock();
        let mut left = 2 * clock.len();
        while left > 0 && self.used.load(Ordering::Relaxed).saturating_add(bytes) > self.limit {
            left -= 1;
            let Some((table, place)) = clock.pop_front() else { return };
            let Some(block) = place.upgrade() else { continue };
            if block.used.swap(false, Ordering::Relaxed) {
                clock.push_back((table, place));
            } else {
                self.remove(&table, &block);
            }
        }
    }

    /// Forgets a dropped table's blocks; false.
    fn forget_all(&self, table: &TableColumns) -> bool {
        std::mem::take(&mut *table.blocks.lock()).values().for_each(|block| self.forget(block));
        false
    }

    /// Forgets a block whose leaves have changed.
    pub(super) fn remove(&self, table: &TableColumns, block: &Arc<Block>) {
        let mut blocks = table.blocks.lock();
        if blocks.get(&block.run.low).is_some_and(|known| Arc::ptr_eq(known, block)) {
            blocks.remove(&block.run.low);
            self.forget(block);
        }
    }

    fn forget(&self, block: &Block) {
        if !block.gone.swap(true, Ordering::Relaxed) {
            self.used.fetch_sub(block.bytes, Ordering::Relaxed);
        }
    }

    pub(super) fn count(&self, hit: bool) {
        if hit { &self.hits } else { &self.misses }.fetch_add(1, Ordering::Relaxed);
    }

    /// A block was passed over: what is known of its columns was enough.
    pub(super) fn count_skip(&self) {
        self.skips.fetch_add(1, Ordering::Relaxed);
    }

    pub fn usage(&self) -> CacheUsage {
        let counter = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheUsage { bytes: self.used.load(Ordering::Relaxed) as u64, hits: counter(&self.hits), misses: counter(&self.misses), skips: counter(&self.skips) }
    }
}

/// The blocks of one table, by the least key that belongs to them.
#[derive(Debug)]
pub(super) struct TableColumns {
    table: Weak<Table>,
    blocks: Mutex<BTreeMap<Vec<u8>, Arc<Block>>>,
    regret: Mutex<Regret>,
}

/// What it has cost that rows were looked up whose columns a scan would have kept.
#[derive(Debug, Default)]
struct Regret {
    microseconds: f64,
    /// How often a scan was the consequence.
    scans: i32,
}

/// What is kept at a position of a scan.
pub(super) enum Kept {
    /// A block that begins there.
    Block(Arc<Block>),
    /// None; the next thing kept begins or ends at the key (`None`: there is nothing behind).
    UpTo(Option<Vec<u8>>),
    /// The position is inside of a block, which ends at the key.
    Inside(Arc<Block>),
}

impl TableColumns {
    /// False once the table is gone or has another definition, though a plan that nobody executes may still have it.
    fn is_alive(&self) -> bool {
        self.table.upgrade().is_some_and(|table| table.is_current())
    }

    /// How many rows have all of these columns kept.
    pub fn rows_with(&self, columns: &[usize]) -> usize {
        let has_all = |block: &Block| columns.iter().all(|&column| block.columns.iter().any(|&(c, _)| c == column));
        self.blocks.lock().values().filter(|block| has_all(block)).map(|block| block.rows).sum()
    }

    /// Rows were about to be looked up for so many microseconds more than a scan of kept columns takes. True if that has added up to what it costs to keep
    /// them: the rows should be scanned now. Each time it has to add up to twice as much, as nobody knows whether the columns stay.
    pub fn regrets(&self, more: f64, keeping: f64) -> bool {
        let mut regret = self.regret.lock();
        regret.microseconds += more;
        let enough = regret.microseconds >= keeping * 2f64.powi(regret.scans);
        if enough {
            *regret = Regret { microseconds: 0.0, scans: regret.scans + 1 };
        }
        enough
    }

    /// What is kept at a key.
    pub fn at(&self, position: &[u8]) -> Kept {
        let blocks = self.blocks.lock();
        if let Some((low, block)) = blocks.range::<[u8], _>((Bound::Unbounded, Bound::Included(position))).next_back() {
            if low == position {
                return Kept::Block(block.clone());
            }
            if block.run.high.as_deref().is_none_or(|high| position < high) {
                return Kept::Inside(block.clone());
            }
        }
        let next = blocks.range::<[u8], _>((Bound::Excluded(position), Bound::Unbounded)).next();
        Kept::UpTo(next.map(|(low, _)| low.clone()))
    }
}

/// The rows of some leaves by column.
#[derive(Debug)]
pub(super) struct Block {
    pub run: LeafRun,
    pub rows: usize,
    /// The keys of the first row and the last.
    ends: [Vec<u8>; 2],
    /// By the column's position in the table.
    columns: Vec<(usize, Packed)>,
    bytes: usize,
    /// Since the clock came by.
    used: AtomicBool,
    gone: AtomicBool,
}

impl Block {
    /// `columns` are all of the block's rows, `ends` the keys of the first and the last.
    pub fn new(run: LeafRun, rows: usize, ends: [Vec<u8>; 2], columns: Vec<(usize, Packed)>) -> Block {
        let bytes = size_of::<Block>() + run.len() * 32 + ends.iter().map(Vec::len).sum::<usize>() + columns.iter().map(|(_, c)| c.bytes()).sum::<usize>();
        Block { run, rows, ends, columns, bytes, used: AtomicBool::new(false), gone: AtomicBool::new(false) }
    }

    /// A block of the same rows with these columns too; the other one must be of the same leaves.
    pub fn with(&self, mut run: LeafRun, mut more: Vec<(usize, Packed)>) -> Block {
        more.extend(self.columns.iter().cloned());
        // A scan of a range may have begun, and may end, between the rows and the ends of the leaves.
        run.low.clone_from(&self.run.low);
        run.high.clone_from(&self.run.high);
        Block::new(run, self.rows, self.ends.clone(), more)
    }

    /// True if all its rows are at `lower` or above it, and below `upper`; `None` is above every key.
    pub fn is_within(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        let [first, last] = &self.ends;
        lower <= first.as_slice() && upper.is_none_or(|upper| last.as_slice() < upper)
    }

    /// All of these columns are kept.
    pub fn has(&self, mut columns: impl Iterator<Item = usize>) -> bool {
        columns.all(|column| self.columns.iter().any(|(c, _)| *c == column))
    }

    pub fn column(&self, column: usize) -> Option<&Packed> {
        self.used.store(true, Ordering::Relaxed);
        self.columns.iter().find(|(c, _)| *c == column).map(|(_, packed)| packed)
    }
}

/// A column's values, small.
#[derive(Clone, Debug)]
pub(super) enum Packed {
    /// Integers (of the type) as their distance from the least of them.
    Numbers { ty: DataType, least: i128, greatest: i128, distances: Distances, nulls: Option<NullBuffer> },
    /// Few different texts or byte strings: positions among them.
    Dictionary { codes: UInt8Array, values: ArrayRef },
    Plain(ArrayRef),
}

#[derive(Clone, Debug)]
pub(super) enum Distances {
    U8(Arc<[u8]>),
    U16(Arc<[u16]>),
    U32(Arc<[u32]>),
    U64(Arc<[u64]>),
}

impl Distances {
    fn len(&self) -> usize {
        match self {
            Distances::U8(d) => d.len(),
            Distances::U16(d) => d.len(),
            Distances::U32(d) => d.len(),
            Distances::U64(d) => d.len(),
        }
    }
}

impl Packed {
    pub fn of(array: &ArrayRef) -> Packed {
        let packed = match array.data_type() {
            DataType::Int64 => numbers::<Int64Type>(array, |v| v.into()),
            DataType::UInt64 => numbers::<UInt64Type>(array, |v| v.into()),
            DataType::Int32 => numbers::<Int32Type>(array, |v| v.into()),
            DataType::UInt16 => numbers::<UInt16Type>(array, |v| v.into()),
            DataType::Decimal128(..) => numbers::<Decimal128Type>(array, |v| v),
            DataType::Utf8View => dictionary(array, array.as_string_view(), |a, row| a.value(row).as_bytes()),
            DataType::BinaryView => dictionary(array, array.as_binary_view(), |a, row| a.value(row)),
            _ => None,
        };
        packed.unwrap_or_else(|| Packed::Plain(together(array)))
    }

    /// The column as it was.
    pub fn array(&self) -> Result<ArrayRef> {
        Ok(match self {
            Packed::Plain(array) => array.clone(),
            Packed::Dictionary { codes, values } => take(values.as_ref(), codes, None)?,
            Packed::Numbers { ty, least, distances, nulls, .. } => unpack(ty, *least, distances, nulls.clone(), None),
        })
    }

    /// The values of some rows.
    pub fn rows(&self, rows: &UInt32Array) -> Result<ArrayRef> {
        Ok(match self {
            Packed::Plain(array) => take(array.as_ref(), rows, None)?,
            Packed::Dictionary { codes, values } => take(values.as_ref(), &take(codes, rows, None)?, None)?,
            Packed::Numbers { ty, least, distances, nulls, .. } => {
                let nulls = nulls.as_ref().map(|nulls| NullBuffer::from_iter(rows.values().iter().map(|&row| nulls.is_valid(row as usize))));
                unpack(ty, *least, distances, nulls, Some(&rows.values()[..]))
            }
        })
    }

    /// Which rows, of those in `among` or of all, may have a key of the set; None if these are no integers.
    pub fn pick(&self, set: &KeySet, among: Option<&[u32]>) -> Option<Vec<u32>> {
        let Packed::Numbers { ty: DataType::Int64 | DataType::UInt64, least, distances, nulls, .. } = self else {
            return set.pick_of(&self.array().ok()?, among);
        };
        let (least, nulls) = (*least as i64, nulls.as_ref());
        Some(match distances {
            Distances::U8(d) => set.pick(d, nulls, among, |d| least.wrapping_add(d.into())),
            Distances::U16(d) => set.pick(d, nulls, among, |d| least.wrapping_add(d.into())),
            Distances::U32(d) => set.pick(d, nulls, among, |d| least.wrapping_add(d.into())),
            Distances::U64(d) => set.pick(d, nulls, among, |d| least.wrapping_add(d as i64)),
        })
    }

    /// What its values are about.
    pub fn span(&self) -> Span {
        let (rows, nulls, range) = match self {
            Packed::Numbers { least, greatest, distances, nulls, .. } => (distances.len(), nulls.as_ref().map_or(0, NullBuffer::null_count), Some((*least, *greatest))),
            Packed::Dictionary { codes, .. } => (codes.len(), codes.null_count(), None),
            Packed::Plain(array) => (array.len(), array.null_count(), None),
        };
        let values = nulls < rows;
        Span { range: range.filter(|_| values), values, nulls: nulls > 0 }
    }

    /// Which rows, of those in `among` or of all, `column op constant` is true for; None if that is not to be seen from the distances.
    pub fn compared(&self, op: Operator, constant: i128, among: Option<&[u32]>) -> Option<BooleanBuffer> {
        let Packed::Numbers { least, greatest, distances, nulls, .. } = self else { return None };
        let mask = match decided(op, constant, *least, *greatest) {
            Some(all) => {
                let rows = among.map_or(distances.len(), <[u32]>::len);
                if all { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) }
            }
            // It is between the least and the greatest: its distance is of the type of theirs.
            None => {
                let distance = constant.wrapping_sub(*least) as u64;
                match distances {
                    Distances::U8(d) => compared(d, op, distance as u8, among),
                    Distances::U16(d) => compared(d, op, distance as u16, among),
                    Distances::U32(d) => compared(d, op, distance as u32, among),
                    Distances::U64(d) => compared(d, op, distance, among),
                }
            }
        };
        // What a null's place holds means nothing.
        Some(match (nulls, among) {
            (None, _) => mask,
            (Some(nulls), None) => &mask & nulls.inner(),
            (Some(nulls), Some(among)) => BooleanBuffer::collect_bool(among.len(), |i| mask.value(i) && nulls.is_valid(among[i] as usize)),
        })
    }

    /// The texts of a column of few different ones, and which of them each row has, of those in `among` or of all; None if it is not such a
    /// column, or has NULLs.
    pub fn dictionary<'a>(&'a self, among: Option<&'a [u32]>) -> Option<(Codes<'a>, &'a ArrayRef)> {
        let Packed::Dictionary { codes, values } = self else { return None };
        (codes.null_count() == 0).then(|| (Codes { codes: codes.values(), among }, values))
    }

    fn bytes(&self) -> usize {
        match self {
            Packed::Plain(array) => array.get_array_memory_size(),
            Packed::Dictionary { codes, values } => codes.get_array_memory_size() + values.get_array_memory_size(),
            Packed::Numbers { distances, nulls, .. } => {
                let bytes = match distances {
                    Distances::U8(d) => size_of_val(&**d),
                    Distances::U16(d) => size_of_val(&**d),
                    Distances::U32(d) => size_of_val(&**d),
                    Distances::U64(d) => size_of_val(&**d),
                };
                bytes + nulls.as_ref().map_or(0, |n| n.buffer().len())
            }
        }
    }
}

/// Positions among the values of a dictionary.
pub(super) struct Codes<'a> {
    codes: &'a [u8],
    among: Option<&'a [u32]>,
}

impl Codes<'_> {
    /// Which rows have a value that `of_values` is true for.
    pub fn holds(&self, of_values: &BooleanArray) -> BooleanBuffer {
        let mut known = [false; 256];
        for (known, holds) in known.iter_mut().zip(of_values.values()) {
            *known = holds;
        }
        mask(self.codes, self.among, |code| known[usize::from(code)])
    }
}

fn compared<D: Copy + Ord>(distances: &[D], op: Operator, with: D, among: Option<&[u32]>) -> BooleanBuffer {
    match op {
        Operator::Eq => mask(distances, among, |d| d == with),
        Operator::NotEq => mask(distances, among, |d| d != with),
        Operator::Lt => mask(distances, among, |d| d < with),
        Operator::LtEq => mask(distances, among, |d| d <= with),
        Operator::Gt => mask(distances, among, |d| d > with),
        _ => mask(distances, among, |d| d >= with),
    }
}

/// For which values, of those in `among` or of all, `holds` is true.
fn mask<T: Copy>(values: &[T], among: Option<&[u32]>, holds: impl Fn(T) -> bool) -> BooleanBuffer {
    let Some(among) = among else {
        let (whole, rest) = values.as_chunks::<64>();
        let mut words = Vec::with_capacity(whole.len() + 1);
        words.extend(whole.iter().map(|chunk| {
            // Loops that the compiler makes vectors of.
            let mut bytes = [0u8; 64];
            for (byte, &value) in bytes.iter_mut().zip(chunk) {
                *byte = u8::from(holds(value));
            }
            let (eights, _) = bytes.as_chunks::<8>();
            eights.iter().enumerate().fold(0, |word, (i, eight)| {
                // Byte i of eight, 0 or 1, becomes bit i.
                word | (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (i * 8)
            })
        }));
        words.push(rest.iter().enumerate().fold(0, |word, (i, &value)| word | u64::from(holds(value)) << i));
        return BooleanBuffer::new(words.into(), 0, values.len());
    };
    BooleanBuffer::collect_bool(among.len(), |i| holds(values[among[i] as usize]))
}

/// `None` if the values are too far apart.
fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef, wide: impl Fn(T::Native) -> i128) -> Option<Packed> {
    let array = array.as_primitive::<T>();
    let (mut least, mut greatest) = (i128::MAX, i128::MIN);
    let mut see = |value: T::Native| {
        let value = wide(value);
        least = least.min(value);
        greatest = greatest.max(value);
    };
    match array.null_count() {
        0 => array.values().iter().for_each(|&value| see(value)),
        _ => array.iter().flatten().for_each(see),
    }
    if least > greatest {
        (least, greatest) = (0, 0);
    }
    let width = greatest.checked_sub(least)?;
    // What a null's place holds means nothing.
    let all = || array.values().iter().map(|&value| wide(value).wrapping_sub(least));
    let distances = if width <= i128::from(u8::MAX) {
        Distances::U8(all().map(|d| d as u8).collect())
    } else if width <= i128::from(u16::MAX) {
        Distances::U16(all().map(|d| d as u16).collect())
    } else if width <= i128::from(u32::MAX) {
        Distances::U32(all().map(|d| d as u32).collect())
    } else if width <= i128::from(u64::MAX) {
        Distances::U64(all().map(|d| d as u64).collect())
    } else {
        return None;
    };
    Some(Packed::Numbers { ty: array.data_type().clone(), least, greatest, distances, nulls: array.nulls().cloned() })
}

/// The values of some rows, or of all; `nulls` are those of the result.
fn unpack(ty: &DataType, least: i128, distances: &Distances, nulls: Option<NullBuffer>, rows: Option<&[u32]>) -> ArrayRef {
    match ty {
        DataType::Int64 => unpacked::<Int64Type>(distances, rows, nulls, ty, |d| (least as i64).wrapping_add(d as i64)),
        DataType::UInt64 => unpacked::<UInt64Type>(distances, rows, nulls, ty, |d| (least as u64).wrapping_add(d)),
        DataType::Int32 => unpacked::<Int32Type>(distances, rows, nulls, ty, |d| (least as i32).wrapping_add(d as i32)),
        DataType::UInt16 => unpacked::<UInt16Type>(distances, rows, nulls, ty, |d| (least as u16).wrapping_add(d as u16)),
        _ => unpacked::<Decimal128Type>(distances, rows, nulls, ty, |d| least + i128::from(d)),
    }
}

fn unpacked<T: ArrowPrimitiveType>(distances: &Distances, rows: Option<&[u32]>, nulls: Option<NullBuffer>, ty: &DataType, value: impl Fn(u64) -> T::Native) -> ArrayRef {
    let values = match distances {
        Distances::U8(d) => values_at(d, rows, value),
        Distances::U16(d) => values_at(d, rows, value),
        Distances::U32(d) => values_at(d, rows, value),
        Distances::U64(d) => values_at(d, rows, value),
    };
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(ty.clone()))
}

fn values_at<D: Copy + Into<u64>, N>(distances: &[D], rows: Option<&[u32]>, value: impl Fn(u64) -> N) -> Vec<N> {
    match rows {
        None => distances.iter().map(|&d| value(d.into())).collect(),
        Some(rows) => rows.iter().map(|&row| value(distances[row as usize].into())).collect(),
    }
}

/// `None` if there are too many different values.
fn dictionary<A: Array>(array: &ArrayRef, cells: &A, cell: impl Fn(&A, usize) -> &[u8]) -> Option<Packed> {
    const MOST: usize = 256;
    let mut known: HashMap<&[u8], u8, ahash::RandomState> = HashMap::default();
    let mut firsts: Vec<u32> = Vec::new();
    let mut codes = Vec::with_capacity(cells.len());
    for row in 0..cells.len() {
        if cells.is_null(row) {
            codes.push(0);
            continue;
        }
        let value = cell(cells, row);
        let code = match known.get(value) {
            Some(code) => *code,
            None if known.len() == MOST => return None,
            None => {
                let code = known.len() as u8;
                known.insert(value, code);
                firsts.push(row as u32);
                code
            }
        };
        codes.push(code);
    }
    if firsts.len() * 4 > cells.len() {
        return None;
    }
    if firsts.is_empty() {
        // Nulls only: their code must mean something.
        firsts.push(0);
    }
    let values = take(array.as_ref(), &UInt32Array::from(firsts), None).ok()?;
    Some(Packed::Dictionary { codes: UInt8Array::new(codes.into(), array.nulls().cloned()), values: together(&values) })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Decimal128Array, Int32Array, Int64Array, StringViewArray, UInt16Array, UInt64Array};

    use super::*;

    /// Packed, all rows and some of them are what they were, however far apart the values are.
    #[test]
    fn packed_values_are_the_values() {
        let rows = 600i64;
        let picked: UInt32Array = (0..rows as u32).filter(|row| row % 7 != 2).rev().map(Some).collect();
        for width in [3i64, 200, 60_000, 1 << 31, i64::MAX / 700] {
            let number = |row: i64| (row * 31 % 601).wrapping_mul(width / 200 + 1) - width / 3;
            let all = || (0..rows).map(number);
            let arrays: [ArrayRef; 7] = [
                Arc::new(Int64Array::from_iter_values(all())),
                Arc::new(all().map(|n| (n % 5 != 0).then_some(n)).collect::<Int64Array>()),
                Arc::new(UInt64Array::from_iter_values(all().map(|n| n as u64 ^ (1 << 63)))),
                Arc::new(Int32Array::from_iter_values(all().map(|n| n as i32))),
                Arc::new(UInt16Array::from_iter_values(all().map(|n| n as u16))),
                Arc::new(Decimal128Array::from_iter_values(all().map(|n| i128::from(n) * 3)).with_precision_and_scale(38, 2).unwrap()),
                Arc::new(all().map(|n| (n % 3 != 0).then(|| format!("text {}", n % 20))).collect::<StringViewArray>()),
            ];
            for array in arrays {
                let packed = Packed::of(&array);
                assert_eq!(&packed.array().unwrap(), &array, "{width}");
                assert_eq!(&packed.rows(&picked).unwrap(), &take(&array, &picked, None).unwrap(), "{width}");
                let span = packed.span();
                assert_eq!((span.nulls, span.values), (array.null_count() > 0, array.null_count() < array.len()), "{width}");
            }
        }
    }

    #[test]
    fn a_span_is_of_what_is_not_null() {
        let span = |array: ArrayRef| Packed::of(&array).span();
        let range = |least: i128, greatest: i128, nulls| Span { range: Some((least, greatest)), values: true, nulls };
        assert_eq!(span(Arc::new(Int64Array::from(vec![Some(7), None, Some(-3)]))), range(-3, 7, true));
        assert_eq!(span(Arc::new(UInt64Array::from(vec![u64::MAX, 1 << 63]))), range(1 << 63, u64::MAX.into(), false));
        let decimals = Decimal128Array::from(vec![-12_345, -100, -101]).with_precision_and_scale(38, 2).unwrap();
        assert_eq!(span(Arc::new(decimals)), range(-12_345, -100, false));
        assert_eq!(span(Arc::new(Int32Array::from(vec![None, Some(1 << 20)]))), range(1 << 20, 1 << 20, true));
        let nothing = Span { range: None, values: false, nulls: true };
        assert_eq!(span(Arc::new(Int64Array::from(vec![None::<i64>, None]))), nothing);
        assert_eq!(span(Arc::new(StringViewArray::from(vec![None::<&str>, None]))), nothing);
        assert_eq!(span(Arc::new(StringViewArray::from(vec![Some("a"), None]))), Span { range: None, values: true, nulls: true });
        // What is too far apart is kept as it is.
        let far = Decimal128Array::from(vec![i128::MAX / 4, 0]).with_precision_and_scale(38, 2).unwrap();
        assert_eq!(span(Arc::new(far)), Span { range: None, values: true, nulls: false });
    }
}
