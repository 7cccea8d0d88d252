//! The integer keys of a join's build side, as a set that rows are asked about.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Int64Type, UInt64Type};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use std::sync::Arc;

/// Keys beyond which no index lookup would pay.
const MOST_LISTED: usize = 1 << 16;
/// Keys of a partition beyond which none are known: 32 MiB of them.
const MOST_REMEMBERED: usize = 1 << 22;
/// So many far apart are looked through for equal ones.
const LOOKED_THROUGH: usize = 1 << 18;
/// Keys that lie within so many values, or within so many for each of them, have a bit each: at most a MiB, or four bytes a key.
const NEAR: u64 = 1 << 23;
const NEAR_FOR_EACH: u64 = 32;
/// Bits for each key where they lie farther apart: one row in so many is taken for one of them.
const HASHED_BITS: usize = 16;
/// An odd number with its bits spread.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keys as they come, some of them several times. Unsigned ones are kept by their bits.
#[derive(Debug)]
pub(super) struct Remembered {
    keys: Vec<i64>,
    least: i64,
    greatest: i64,
    unsigned: bool,
    /// Those far apart differ: they are not looked through again.
    differ: bool,
    memory: MemoryReservation,
}

impl Remembered {
    pub fn new(pool: &Arc<dyn MemoryPool>) -> Remembered {
        let memory = MemoryConsumer::new("keys of a join").register(pool);
        Remembered { keys: Vec::new(), least: i64::MAX, greatest: i64::MIN, unsigned: false, differ: false, memory }
    }

    /// False if these are too many, or no integers.
    pub fn add(&mut self, array: &ArrayRef) -> bool {
        match array.data_type() {
            DataType::Int64 => self.extend::<Int64Type>(array.as_primitive(), |key| key),
            DataType::UInt64 => {
                self.unsigned = true;
                self.extend::<UInt64Type>(array.as_primitive(), |key| key as i64);
            }
            _ => return false,
        }
        if self.keys.len() > MOST_REMEMBERED || self.keys.len() > LOOKED_THROUGH && !self.differ && !is_near(self.range(), 0) {
            let before = self.keys.len();
            self.keys.sort_unstable();
            self.keys.dedup();
            self.differ = self.keys.len() > before / 2;
            if self.keys.len() > MOST_REMEMBERED / 2 {
                return false;
            }
        }
        self.memory.try_resize(self.keys.capacity() * size_of::<i64>()).is_ok()
    }

    fn extend<T: ArrowPrimitiveType>(&mut self, array: &PrimitiveArray<T>, key: impl Fn(T::Native) -> i64) {
        let from = self.keys.len();
        match array.null_count() {
            0 => self.keys.extend(array.values().iter().map(|&v| key(v))),
            _ => self.keys.extend(array.iter().flatten().map(key)),
        }
        for &key in &self.keys[from..] {
            self.least = self.least.min(key);
            self.greatest = self.greatest.max(key);
        }
    }

    fn range(&self) -> u64 {
        self.greatest.wrapping_sub(self.least) as u64
    }
}

fn is_near(range: u64, keys: usize) -> bool {
    range < NEAR.max(keys as u64 * NEAR_FOR_EACH)
}

/// A set of keys. Of one whose keys are far apart it is not certain that a row belongs to it.
#[derive(Debug)]
pub(super) struct KeySet {
    bits: Vec<u64>,
    place: Place,
    /// None is less than this one, or more than so many above it.
    least: i64,
    range: u64,
    /// Ascending (unsigned ones by their bits), unless there are too many.
    list: Option<Vec<i64>>,
    unsigned: bool,
    _memory: MemoryReservation,
}

/// Where in the bits a key is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At its distance from the least one.
    Distance(i64),
    /// At what is left of its product with a number, shifted by so many bits.
    Hash(u32),
}

impl KeySet {
    /// None if there is no memory for it.
    pub fn of(parts: Vec<Remembered>) -> Option<KeySet> {
        let keys = parts.iter().map(|part| part.keys.len()).sum();
        let least = parts.iter().map(|part| part.least).min()?;
        let range = parts.iter().map(|part| part.greatest).max()?.wrapping_sub(least) as u64;
        let memory = parts[0].memory.new_empty();
        let unsigned = parts.iter().any(|part| part.unsigned);
        let (place, words) = if keys == 0 {
            (Place::Distance(0), 0)
        } else if is_near(range, keys) {
            (Place::Distance(least), range as usize / 64 + 1)
        } else {
            let bits = (keys * HASHED_BITS).next_power_of_two().max(64);
            (Place::Hash(64 - bits.trailing_zeros()), bits / 64)
        };
        memory.try_resize(words * 8 + keys.min(MOST_LISTED) * 8).ok()?;
        let mut set = KeySet { bits: vec![0; words], place, least, range, list: None, unsigned, _memory: memory };
        for part in &parts {
            match place {
                Place::Distance(least) => set.put(&part.keys, |key| key.wrapping_sub(least) as u64),
                Place::Hash(shift) => set.put(&part.keys, |key| hashed(key, shift)),
            }
        }
        set.list = match place {
            Place::Distance(least) => (set.bits.iter().map(|word| word.count_ones() as usize).sum::<usize>() <= MOST_LISTED).then(|| {
                let of_word = |(i, &word): (usize, &u64)| (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| least.wrapping_add((i * 64 + bit) as i64));
                set.bits.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(of_word).collect()
            }),
            Place::Hash(_) if keys <= LOOKED_THROUGH => {
                let mut list: Vec<i64> = parts.iter().flat_map(|part| part.keys.iter().copied()).collect();
                list.sort_unstable();
                list.dedup();
                Some(list).filter(|list| list.len() <= MOST_LISTED)
            }
            Place::Hash(_) => None,
        };
        Some(set)
    }

    /// All keys, unless there are too many.
    pub fn list(&self) -> Option<impl Iterator<Item = i128>> {
        let unsigned = self.unsigned;
        self.list.as_ref().map(|list| list.iter().map(move |&key| if unsigned { i128::from(key as u64) } else { i128::from(key) }))
    }

    pub fn list_len(&self) -> Option<usize> {
        self.list.as_ref().map(Vec::len)
    }

    /// False if no key is `least` or up to `range` more. Both are of the keys' bits, and come round from the greatest to the least: where signed numbers
    /// end is the middle of the unsigned ones.
    pub fn may_have(&self, least: i64, range: u64) -> bool {
        let greatest = least.wrapping_add(range as i64);
        if let Some(list) = &self.list {
            let above = list.get(list.partition_point(|key| *key < least));
            return if least <= greatest { above.is_some_and(|key| *key <= greatest) } else { above.is_some() || list.first().is_some_and(|key| *key <= greatest) };
        }
        match self.place {
            Place::Distance(base) => {
                let (from, to) = (least.wrapping_sub(base) as u64, greatest.wrapping_sub(base) as u64);
                if from <= to { self.has_bit(from, to) } else { self.has_bit(from, u64::MAX) || self.has_bit(0, to) }
            }
            Place::Hash(_) => self.least.wrapping_sub(least) as u64 <= range || least.wrapping_sub(self.least) as u64 <= self.range,
        }
    }

    /// Whether there is a key at some place from one to another.
    fn has_bit(&self, from: u64, to: u64) -> bool {
        let to = to.min((self.bits.len() as u64 * 64).wrapping_sub(1));
        if self.bits.is_empty() || from > to {
            return false;
        }
        let (first, last) = ((from / 64) as usize, (to / 64) as usize);
        let (of_first, of_last) = (u64::MAX << (from % 64), u64::MAX >> (63 - to % 64));
        if first == last {
            return self.bits[first] & of_first & of_last != 0;
        }
        self.bits[first] & of_first != 0 || self.bits[last] & of_last != 0 || self.bits[first + 1..last].iter().any(|word| *word != 0)
    }

    fn put(&mut self, keys: &[i64], at: impl Fn(i64) -> u64) {
        for &key in keys {
            let at = at(key);
            self.bits[(at / 64) as usize] |= 1 << (at % 64);
        }
    }

    /// Which of the rows may have a key of the set, of those in `among`, or of all. `keys` are those of all rows; NULL is none.
    pub fn pick<K: Copy>(&self, keys: &[K], nulls: Option<&NullBuffer>, among: Option<&[u32]>, key: impl Fn(K) -> i64) -> Vec<u32> {
        let has = |at: u64| self.bits.get((at / 64) as usize).copied().unwrap_or(0) >> (at % 64) & 1;
        let mut left = match self.place {
            Place::Distance(least) => picked(keys, among, |k| has(key(k).wrapping_sub(least) as u64)),
            Place::Hash(shift) => picked(keys, among, |k| has(hashed(key(k), shift))),
        };
        if let Some(nulls) = nulls {
            left.retain(|&row| nulls.is_valid(row as usize));
        }
        left
    }

    /// The same by a column of integers; None if it is none.
    pub fn pick_of(&self, column: &ArrayRef, among: Option<&[u32]>) -> Option<Vec<u32>> {
        Some(match column.data_type() {
            DataType::Int64 => self.pick(column.as_primitive::<Int64Type>().values(), column.nulls(), among, |key| key),
            DataType::UInt64 => self.pick(column.as_primitive::<UInt64Type>().values(), column.nulls(), among, |key| key as i64),
            _ => return None,
        })
    }
}

fn hashed(key: i64, shift: u32) -> u64 {
    (key as u64).wrapping_mul(SPREAD) >> shift
}

/// Rows for whose key `has` gives 1, without a branch for each.
fn picked<K: Copy>(keys: &[K], among: Option<&[u32]>, has: impl Fn(K) -> u64) -> Vec<u32> {
    let mut out = vec![0; among.map_or(keys.len(), <[u32]>::len)];
    let mut len = 0;
    match among {
        Some(among) => {
            for &row in among {
                out[len] = row;
                len += has(keys[row as usize]) as usize;
            }
        }
        None => {
            for (row, &key) in keys.iter().enumerate() {
                out[len] = row as u32;
                len += has(key) as usize;
            }
        }
    }
    out.truncate(len);
    out
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, UInt64Array};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};

    use super::*;

    fn set(parts: Vec<ArrayRef>) -> KeySet {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let remembered = parts.iter().map(|part| {
            let mut all = Remembered::new(&pool);
            assert!(all.add(part));
            all
        });
        KeySet::of(remembered.collect()).unwrap()
    }

    fn ints(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn a_set_has_its_keys_and_near_ones_no_others() {
        let near = set(vec![ints(&[7, -3, 7, 200]), ints(&[]), Arc::new(Int64Array::from(vec![None, Some(64)]))]);
        assert_eq!(near.list().unwrap().collect::<Vec<_>>(), [-3, 7, 64, 200]);
        let rows: ArrayRef = Arc::new(Int64Array::from(vec![Some(-4), Some(-3), None, Some(7), Some(64), Some(201), Some(i64::MIN), Some(i64::MAX), Some(200)]));
        assert_eq!(near.pick_of(&rows, None).unwrap(), [1, 3, 4, 8]);
        assert_eq!(near.pick_of(&rows, Some(&[0, 1, 2, 8])).unwrap(), [1, 8]);
        let far = set(vec![ints(&[i64::MIN, 0, i64::MAX, 1 << 40, 0])]);
        assert_eq!(far.list_len(), Some(4));
        assert_eq!(far.pick_of(&ints(&[i64::MAX, 1 << 40, i64::MIN, 0]), None).unwrap(), [0, 1, 2, 3]);
        let many: Vec<i64> = (0..100_000).map(|i: i64| i.wrapping_mul(0x1234_5678_9abc_def1)).collect();
        let far = set(vec![ints(&many)]);
        assert_eq!(far.pick_of(&ints(&many), None).unwrap().len(), many.len());
        let others: Vec<i64> = (0..100_000).map(|i: i64| i.wrapping_mul(0x1234_5678_9abc_def1) + 1).collect();
        assert!(far.pick_of(&ints(&others), None).unwrap().len() < 12_000);
        assert!(far.list_len().is_none());
        let none = set(vec![ints(&[])]);
        assert!(none.pick_of(&ints(&[0, 1]), None).unwrap().is_empty());
        assert_eq!(none.list_len(), Some(0));
    }

    #[test]
    fn unsigned_keys_are_themselves() {
        let keys: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 3, 1 << 63]));
        let unsigned = set(vec![keys.clone()]);
        let mut list: Vec<i128> = unsigned.list().unwrap().collect();
        list.sort_unstable();
        assert_eq!(list, [3, 1 << 63, i128::from(u64::MAX)]);
        assert_eq!(unsigned.pick_of(&keys, None).unwrap(), [0, 1, 2]);
    }

    /// Of keys near each other, of a list of some far apart and of many: what is said of a stretch is so, and of the first two exactly.
    #[test]
    fn a_set_knows_which_stretches_have_none_of_its_keys() {
        let near = [-3, 7, 64, 200];
        let far = [i64::MIN, -5, 1 << 40, i64::MAX];
        let many: Vec<i64> = (0..100_000).map(|i: i64| (1 << 50) + (i << 30)).collect();
        let spread: Vec<i64> = (0..70_000).map(|i: i64| 1000 + i * 3).collect();
        for (keys, exact) in [(&near[..], true), (&far[..], true), (&many[..], false), (&spread[..], true), (&[][..], true)] {
            let set = set(vec![ints(keys)]);
            let mut ends: Vec<i64> = keys.iter().step_by(keys.len() / 3 + 1).flat_map(|key| (-2..=2).map(move |near| key.wrapping_add(near))).collect();
            ends.extend([i64::MIN, -1, 0, i64::MAX]);
            for &least in &ends {
                for &greatest in &ends {
                    let range = greatest.wrapping_sub(least) as u64;
                    let has = keys.iter().any(|key| key.wrapping_sub(least) as u64 <= range);
                    let may_have = set.may_have(least, range);
                    assert!(may_have || !has, "{} keys, {least} to {greatest}", keys.len());
                    assert!(has || !may_have || !exact, "{} keys, {least} to {greatest}", keys.len());
                }
            }
        }
        let many = set(vec![ints(&many)]);
        assert!(many.list_len().is_none() && !many.may_have(0, (1 << 50) - 1) && !many.may_have(1 << 60, 1 << 60));
        let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 1 << 63]));
        let unsigned = set(vec![unsigned]);
        assert!(unsigned.may_have((u64::MAX - 9) as i64, 9) && !unsigned.may_have((u64::MAX - 9) as i64, 8) && !unsigned.may_have(0, i64::MAX as u64));
    }

    #[test]
    fn equal_keys_far_apart_are_few_and_memory_is_asked_for() {
        let repeated: Vec<i64> = (0..LOOKED_THROUGH as i64 * 2 + 2).map(|i| (i % 5) << 50).collect();
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let mut all = Remembered::new(&pool);
        assert!(all.add(&ints(&repeated)));
        assert_eq!(KeySet::of(vec![all]).unwrap().list_len(), Some(5));
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        assert!(!Remembered::new(&pool).add(&ints(&repeated)));
        let mut few = Remembered::new(&pool);
        assert!(few.add(&ints(&[1, 8_000_000])));
        assert!(KeySet::of(vec![few]).is_none());
    }
}
